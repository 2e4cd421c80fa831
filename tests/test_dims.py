"""Dimensions: arithmetic, bounds and what is provable."""

import itertools

import numpy as np
import pytest

from irrun.spec.dims import (
    MAX_TERMS,
    UNDECIDED,
    Undecided,
    _identities,
    broadcast,
    broadcast_shapes,
    divided,
    every,
    fresh,
    largest,
    product,
    smallest,
)


def test_a_size_is_equal_to_itself_and_undecided_against_another():
    batch, other = fresh(), fresh()
    assert (batch == batch) is True
    assert (batch == other) is UNDECIDED
    assert (batch != batch) is False


def test_an_undecided_answer_cannot_steer_a_branch():
    with pytest.raises(Undecided):
        bool(fresh() == 3)
    with pytest.raises(Undecided):
        int(fresh())


def test_bounds_decide_comparisons():
    size = fresh(2, 8)
    assert (size > 1) is True
    assert (size >= 2) is True
    assert (size > 2) is UNDECIDED
    assert (size == 9) is False
    assert (size + 7 > 8) is True
    assert (size < 9) is True


def test_arithmetic_keeps_identity():
    batch, seq = fresh(), fresh()
    assert (batch * seq == seq * batch) is True
    assert (2 * batch - batch - batch) == 0
    assert ((batch + 1) * (batch + 1) == batch * batch + 2 * batch + 1) is True
    assert (batch + 1 > batch) is True
    assert (batch // 2 == batch // 2) is True


def test_products_divide_where_it_is_provable():
    batch, seq = fresh(), fresh()
    assert (batch * seq * 768 // (seq * 12) == 64 * batch) is True
    assert (batch * 6) % 3 == 0
    assert (batch * 6 // 3 == 2 * batch) is True
    assert (batch // 3 * 3 == batch) is UNDECIDED
    assert (batch * 0) == 0


def test_bounds_come_through_arithmetic():
    size = fresh(2, 8)
    assert repr(size + 3) == "5..11"
    assert repr(size * 3) == "6..24"
    assert repr(10 - size) == "2..8"
    assert repr(size // 3) == "0..2"
    assert repr((size - 1) // 2 + 1) == "1..4"
    assert repr(fresh(4) // 2) == "2.."
    assert repr(size % 4) == "0..3"
    assert repr(-size // 2) == "-4..-1"
    assert repr((fresh(0, 6) - 3) // 1 + 1) == "-2..4"
    assert repr((size - 9) // fresh(2, 3)) == "-4..-1"


def test_a_size_between_two_multiples_is_none():
    assert (fresh(7, 8) % 3 == 0) is False
    assert repr(fresh(7, 8) % 3) == "1..2"
    assert (fresh(7, 9) % 3 == 0) is UNDECIDED
    assert (fresh(6, 8) % 3 == 0) is UNDECIDED
    assert (fresh(-2, -1) % 3 == 0) is False
    assert (2 * fresh(7, 8) % 6 == 0) is False


def test_one_possible_value_is_an_int():
    size = fresh(2, 8)
    assert size.within(3, 3) == 3
    assert isinstance(size.within(3, 3), int)
    assert fresh(0, 1) // 2 == 0


def test_extremes_of_unknown_sizes():
    size = fresh(2, 8)
    assert largest(size, 1) is size
    assert largest(size, 9) == 9
    assert repr(largest(size, 5)) == "5..8"
    assert repr(smallest(size, 5)) == "2..5"
    assert (largest(size, 5) == largest(5, size)) is True
    assert largest(3, 4) == 4


def test_polynomials_do_not_grow_without_end():
    sizes = [fresh() for _ in range(3 * MAX_TERMS)]
    total, again = (sum(sizes[1:], sizes[0]) for _ in range(2))
    assert len(total.terms) <= MAX_TERMS
    assert (total == again) is True
    assert (total == total + 1) is not True
    assert len((total * total * total).terms) <= MAX_TERMS
    power = product([sizes[0]] * 100)
    assert (power == product([sizes[0]] * 100)) is True
    assert all(len(monomial) <= MAX_TERMS for monomial in power.terms)


def test_numbers_in_polynomials_stay_short():
    size = fresh(1, 10)
    for _ in range(100):
        size = size * size * 3 + size
    assert all(factor.bit_length() <= 64 for factor in size.terms.values())
    assert (size.low or 0).bit_length() <= 65
    assert size.high is None
    assert (size >= 1) is True


def test_sizes_made_alike_are_equal_however_deep():
    batch, others = fresh(), set(map(id, _identities.values()))

    def deep():
        size = batch
        for _ in range(2000):
            size = largest(size * size // 7, size + 1)
        return size

    assert (deep() == deep()) is True
    assert hash(deep()) == hash(deep())
    kept = [tag[0] for tag, identity in _identities.items() if id(identity) not in others]
    assert "max" not in kept, "the table keeps nothing that nobody uses"


def test_product_of_a_shape():
    batch = fresh()
    assert product(()) == 1
    assert (product((batch, 3, 4)) == 12 * batch) is True


def test_every_is_false_before_it_is_undecided():
    assert every([]) is True
    assert every([UNDECIDED, False]) is False
    assert every([UNDECIDED, True]) is UNDECIDED


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [(1, 3, 3), (3, 1, 3), (3, 3, 3), (2, 3, None), (0, 1, 0), (0, 3, None)],
)
def test_sizes_broadcast_as_in_numpy(a, b, expected):
    assert broadcast(a, b) == expected


def test_unknown_sizes_broadcast_to_what_is_provable():
    batch = fresh()
    assert broadcast(batch, 1) is batch
    assert broadcast(batch, batch) is batch
    assert broadcast(batch, 7) == 7
    assert broadcast(fresh(2, 3), 7) is None
    assert repr(broadcast(fresh(1, 3), fresh(1, 5))) == "1..5"
    assert broadcast(fresh(2, 4), fresh(3, 7)).bounds == "3..4"
    assert broadcast(fresh(1, 4), fresh(3, 7)).bounds == "3..7"
    assert broadcast(fresh(2, 4), fresh(4, 7)) == 4
    assert (broadcast(batch, fresh(2, 2)) == 2) is True
    assert broadcast_shapes((batch, 1, 4), (3, 1))[0] is batch
    assert broadcast_shapes((2, 4), (3, 4)) is None


def test_a_size_that_has_to_be_a_multiple_has_a_quotient_within_tighter_bounds():
    size = fresh()
    assert divided(12, 4) == 3
    assert divided(fresh(9, 13), 5) == 2
    assert divided(fresh(9, 16), 5).bounds == "2..3"
    assert divided(fresh(9), 5).bounds == "2.."
    assert (divided(size * 6, 3) == size * 2) is True
    assert divided(fresh(9, 13), size).bounds == (fresh(9, 13) // size).bounds


def test_the_absolute_value_of_a_size_is_itself():
    size = fresh()
    assert abs(size) is size
    assert abs(fresh(-3, 2) - 0).high == 3
    assert (abs(size - 4) == abs(4 - size)) is True
    assert np.absolute(np.array([size, -3], object)).tolist() == [size, 3]


def test_arrays_of_sizes_compute():
    batch = fresh()
    value = np.array([batch, 3], object)
    assert ((value * 2)[0] == 2 * batch) is True
    assert (value + value).tolist()[1] == 6
    assert (np.prod(value) == 3 * batch) is True


def test_a_named_size_prints_its_name():
    assert repr(fresh(name="batch")) == "batch"
    assert repr(fresh()) == "?"
    assert repr(fresh(1)) == "1.."


def test_an_unknown_size_may_be_every_number_between_its_bounds():
    ends = [None, 0, 1, 3, 4, 9]
    for low, high, more, less in itertools.product(ends, repeat=4):
        size = fresh(low, high).within(more, less)
        first = max((end for end in (low, more) if end is not None), default=-99)
        last = min((end for end in (high, less) if end is not None), default=99)
        if first < last:
            for number in range(-2, 12):
                assert (size == number) is (UNDECIDED if first <= number <= last else False)
                assert (size == number) is (size + 1 == number + 1)
