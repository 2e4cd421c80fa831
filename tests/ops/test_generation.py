"""Generation ops."""

import ml_dtypes
import numpy as np
import pytest

from irrun.spec import Dim, Tensor, Violation, fresh, numpy_dtype
from irrun.spec.registry import registry

OPS = registry().ops
RANGE, EYE, UNIFORM, MULTINOMIAL = (OPS[name] for name in ("Range-4", "Eye-9", "RandomUniform-8", "Multinomial-13"))


def range_(start, stop, step, output_type="i64"):
    arrays = [np.array(number) for number in (start, stop, step)]
    result = RANGE(*arrays, output_type=output_type)
    assert result.dtype == numpy_dtype(output_type)
    (inferred,) = RANGE.infer([Tensor.of(array) for array in arrays], {"output_type": output_type}).outputs
    assert inferred.shape == result.shape
    return result.tolist()


def scalar(value, type="i64"):
    return Tensor(type, (), np.array(value, object))


def count(start, stop, step, output_type="i64"):
    return RANGE.infer([scalar(n) for n in (start, stop, step)], {"output_type": output_type}).outputs[0].shape[0]


# Range


def test_range_of_the_specification():
    assert range_(2, 23, 3, "i32") == [2, 5, 8, 11, 14, 17, 20]
    assert range_(23, 2, -3, "i32") == [23, 20, 17, 14, 11, 8, 5]
    assert range_(1.0, 2.5, 0.5, "f32") == [1, 1.5, 2]
    assert OPS["Range-1"](np.array(23), np.array(2), np.array(-3)).tolist() == [23, 20, 17, 14, 11, 8, 5]


@pytest.mark.parametrize("limits", [(0, 0, 1), (5, 0, 1), (0, 5, -1), (3.0, 3.0, 1.5)])
def test_range_may_be_empty(limits):
    assert range_(*limits) == range_(*limits, "f32") == []


def test_range_truncates_first_for_integers():
    assert range_(0.5, 3.9, 1, "i32") == [0, 1, 2]
    assert range_(-0.5, -3.9, -1.9, "i32") == [0, -1, -2]
    assert range_(0.5, 3.9, 1, "f32") == [0.5, 1.5, 2.5, 3.5]


def test_range_against_a_slow_loop():
    for start, stop, step in [(0, 1, 0.1), (-2, 3, 0.7), (5, -5, -1.3), (1, 1.05, 0.1)]:
        expected, number = [], start
        while number < stop if step > 0 else number > stop:
            expected.append(number)
            number = start + len(expected) * step
        assert range_(float(start), float(stop), step, "f64") == expected


def test_range_has_exact_wide_integers():
    assert range_(2**62, 2**62 + 3, 2) == [2**62, 2**62 + 2]
    start = np.array(2**64 - 2, np.uint64)
    assert range_(start, np.array(2**64 - 1, np.uint64), np.uint8(1), "u64") == [2**64 - 2]


def test_range_in_half_precision_is_rounded_once():
    result = RANGE(np.array(0.0), np.array(1.0), np.array(0.1), output_type="bf16")
    assert result.tolist() == (np.arange(10) * 0.1).astype(ml_dtypes.bfloat16).tolist()


def test_range_up_to_an_unknown_size():
    size = fresh()
    assert (count(0, size, 1) == size) is True
    assert (count(0, size * 2, 2) == size) is True
    assert (count(size, 0, -1) == size) is True
    assert count(size, size + 5, 2) == 3
    assert isinstance(count(0, size, fresh(None)), Dim)
    floats = [Tensor("f32", (), np.array(number, object)) for number in (2.0, size + 2, 1.0, 0.5)]
    assert (RANGE.infer(floats[:3], {"output_type": "f32"}).outputs[0].shape[0] == size) is True
    assert isinstance(RANGE.infer([*floats[:2], floats[3]], {"output_type": "f32"}).outputs[0].shape[0], Dim)
    unknown = RANGE.infer([Tensor("f32", ()), scalar(3), scalar(1)], {"output_type": "f32"})
    assert isinstance(unknown.outputs[0].shape[0], Dim)
    assert not unknown.complete


def test_range_computes_on_sizes():
    size = fresh()
    arrays = [np.array(n, object) for n in (size, size + 3, 2)]
    assert RANGE.kernel(*arrays, output_type="i64").tolist() == [size, size + 2]


@pytest.mark.parametrize(
    "limits", [(0.0, 1e308, 1e-308), (-1e308, 1e308, 1e-300), (0.5, 1e308, 5e-324), (1e308, -1e308, -0.5)]
)
def test_range_of_more_numbers_than_floats_count(limits):
    with pytest.raises(Violation, match="no memory could hold") as error:
        range_(*limits, "f64")
    assert error.value.label == "E308"
    start, stop, step = limits
    assert range_(stop, start, step, "f64") == range_(start, stop, -step, "f64") == []


def test_range_1_c1_step_of_zero():
    with pytest.raises(Violation, match="`step` is 0 and counts as 0 in i64"):
        OPS["Range-1"](np.array(0), np.array(3), np.array(0))


def test_range_1_c2_infinite_stop():
    with pytest.raises(Violation, match="`stop` is inf, expected a finite number"):
        OPS["Range-1"](np.array(0.0), np.array(np.inf), np.array(1.0))


def test_range_4_c1_step_that_is_truncated_to_zero():
    with pytest.raises(Violation, match=r"`step` is 0.5 and counts as 0 in i32"):
        range_(0, 3, 0.5, "i32")


def test_range_4_c2_start_that_is_no_number():
    with pytest.raises(Violation, match="`start` is nan, expected a finite number"):
        range_(float("nan"), 3, 1, "f32")


# Eye


def eye(rows, columns, diagonal, batch=None, output_type="i32"):
    inputs = [np.array(n) for n in (rows, columns, diagonal)] + ([] if batch is None else [np.array(batch, np.int64)])
    result = EYE(*inputs, output_type=output_type)
    assert result.dtype == numpy_dtype(output_type)
    return result


def test_eye_of_the_specification():
    assert eye(3, 4, 2).tolist() == [[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert eye(3, 4, -1).tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    assert eye(2, 2, 5, [1, 2], "f16").tolist() == [[[[0, 0], [0, 0]], [[0, 0], [0, 0]]]]


def test_eye_takes_one_element_for_a_scalar():
    assert eye([2], [2], [0], [], "bf16").astype(int).tolist() == [[1, 0], [0, 1]]
    assert eye(0, 3, 0).shape == (0, 3)
    assert eye(2, 2, -(2**40), [3]).tolist() == [[[0, 0], [0, 0]]] * 3


def test_eye_infers_unknown_sizes():
    attrs, rows, batch = {"output_type": "f32"}, fresh(), fresh()
    shape = Tensor("i64", (1,), np.array([batch], object))
    (output,) = EYE.infer([scalar(rows), scalar(3), Tensor("i64", ()), shape], attrs).outputs
    assert output == Tensor("f32", (batch, rows, 3))
    assert EYE.infer([scalar(2), scalar(3), scalar(0), Tensor("i64", (fresh(),))], attrs).outputs[0].shape is None
    assert EYE.infer([Tensor("i64", ()), scalar(3), scalar(0)], attrs).outputs[0].rank == 2


def test_eye_9_c1_negative_rows():
    with pytest.raises(Violation, match="`num_rows` is -1, expected 0 or more"):
        eye(-1, 2, 0)
    with pytest.raises(Violation, match="`num_columns` is -2, expected 0 or more"):
        eye(1, -2, 0)


def test_eye_9_c2_negative_batch():
    with pytest.raises(Violation, match=r"`batch_shape\[1\]` is -1, expected 0 or more"):
        eye(1, 1, 0, [2, -1])


# RandomUniform


def uniform(shape, low, high, output_type, global_seed, op_seed, alignment="tensorflow"):
    limits = [np.array(limit).astype(numpy_dtype(output_type)) for limit in (low, high)]
    seeds = {"global_seed": global_seed, "op_seed": op_seed}
    result = UNIFORM(np.array(shape, np.int64), *limits, output_type=output_type, alignment=alignment, **seeds)
    assert result.dtype == numpy_dtype(output_type)
    return result


def test_random_uniform_of_the_specification():
    expected = [
        [0.7011236, 0.30539632, 0.93931055],
        [0.9456035, 0.11694777, 0.50770056],
        [0.5197197, 0.22727466, 0.991374],
    ]
    np.testing.assert_array_equal(uniform([3, 3], 0, 1, "f32", 150, 10), np.float32(expected))
    expected = [[5.65927959, 4.23122376], [2.67008206, 2.36423758]]
    np.testing.assert_allclose(uniform([2, 2], 2, 10, "f64", 80, 100), expected, rtol=1e-8)
    assert uniform([2, 3], 50, 100, "i32", 80, 100).tolist() == [[65, 70, 56], [59, 82, 92]]


REFERENCE = [  # OpenVINO's reference kernel
    ("tensorflow", "i64", 50, 100, [85, 70, 64, 61, 57, 75]),
    ("tensorflow", "i64", -(2**40), 2**40, [490608218509, -242552113566, 321344591636]),
    ("tensorflow", "f16", 0, 4, [1.55078125, 3.4453125, 2.3828125, 0.77734375, 3.078125, 1.2890625]),
    ("pytorch", "f32", 0, 1, [0.6104230284690857, 0.09601950645446777, 0.048029303550720215, 0.5372440218925476]),
    ("pytorch", "f64", 2, 10, [9.067076401353173, 5.073877446908415, 7.533241863666989]),
    ("pytorch", "f16", 0, 4, [2.341796875, 2.3671875, 1.82421875, 0.412109375]),
    ("pytorch", "i32", 50, 100, [77, 58, 62, 69, 60, 94]),
    ("pytorch", "i64", 50, 100, [77, 58, 62, 69, 60, 94]),
    ("pytorch", "i64", -5, 100, [47, 93, 97, 74, -5, 24]),
    ("pytorch", "i64", 0, 2**40, [754523346108, 715238508755, 43615861554]),
]


@pytest.mark.parametrize(("alignment", "type", "low", "high", "expected"), REFERENCE)
def test_random_uniform_of_the_reference(alignment, type, low, high, expected):
    assert uniform([len(expected)], low, high, type, 80, 100, alignment).tolist() == expected


@pytest.mark.parametrize("alignment", ["tensorflow", "pytorch"])
@pytest.mark.parametrize("type", ["f16", "bf16", "f32", "f64", "i32", "i64"])
def test_random_uniform_stays_in_range(alignment, type):
    numbers = uniform([500], -2, 6, type, 2**33 + 1, 2**34 + 1, alignment).astype(float)
    assert numbers.min() >= -2
    assert numbers.max() < 6 or type in ("f16", "bf16")  # which round to it
    assert abs(numbers.mean() - (1.5 if type[0] == "i" else 2)) < 0.5


def test_seeds_decide_unless_both_are_zero():
    assert uniform([4], 0, 1, "f32", 1, 0).tolist() == uniform([4], 0, 1, "f32", 1, 0).tolist()
    assert uniform([4], 0, 1, "f32", 1, 0).tolist() != uniform([4], 0, 1, "f32", 1, 1).tolist()
    assert uniform([4], 0, 1, "f64", 0, 0).tolist() != uniform([4], 0, 1, "f64", 0, 0).tolist()


def test_random_uniform_of_scalars_and_nothing():
    assert uniform([], 0, 1, "f32", 1, 1).shape == ()
    assert uniform([2, 0], 0, 1, "f64", 1, 1).shape == (2, 0)
    assert uniform([0], 0, 1, "f32", 1, 1, "pytorch").shape == (0,)


def test_random_uniform_infers_unknown_sizes():
    size, attrs = fresh(), UNIFORM.defaults | {"output_type": "f32"}
    limits = [Tensor("f32", ()), Tensor("f32", (1,))]
    shape = Tensor("i64", (2,), np.array([size, 3], object))
    assert UNIFORM.infer([shape, *limits], attrs).outputs == [Tensor("f32", (size, 3))]
    assert UNIFORM.infer([Tensor("i64", (fresh(),)), *limits], attrs).outputs[0].shape is None


def test_randomuniform_8_c1_negative_size():
    with pytest.raises(Violation, match=r"`shape\[1\]` is -1, expected 0 or more"):
        uniform([2, -1], 0, 1, "f32", 1, 1)


def test_randomuniform_8_c2_type_of_the_limits():
    with pytest.raises(Violation, match="`maxval` is f64, but `output_type` is f32"):
        UNIFORM(np.array([1]), np.float32(0), np.float64(1), output_type="f32")


def test_randomuniform_8_c3_empty_range():
    with pytest.raises(Violation, match="`minval` is 3, but `maxval` is 3"):
        uniform([1], 3, 3, "i32", 1, 1)


# Multinomial


def multinomial(probs, samples, seed=5, dtype=np.float32, **attrs):
    attrs = {"convert_type": "i32", "with_replacement": True, "log_probs": False, "global_seed": seed} | attrs
    return MULTINOMIAL(np.array(probs, dtype), np.array(samples), **attrs)


def test_multinomial_draws_by_probability():
    drawn = multinomial([[0.1, 0.5, 0.4], [8, 0, 2]], 2000)
    assert drawn.dtype == np.int32
    counts = [np.bincount(row, minlength=3) / 2000 for row in drawn]
    np.testing.assert_allclose(counts, [[0.1, 0.5, 0.4], [0.8, 0, 0.2]], atol=0.04)


def test_multinomial_draws_the_first_class_that_reaches_the_random_number():
    numbers = uniform([2, 4], 0, 1, "f64", 5, 0)
    probs = np.array([[0.1, 0.5, 0.4], [0.3, 0.3, 0.4]])
    for row, drawn, draws in zip(probs, multinomial(probs, 4, dtype=np.float64), numbers, strict=True):
        for class_, number in zip(drawn, draws, strict=True):
            assert class_ == next(i for i in range(3) if number <= sum(row[: i + 1]))


def test_multinomial_without_replacement_draws_each_class_once():
    drawn = multinomial([[0.1, 0.5, 0.4, 1e-30]] * 50, 4, with_replacement=False, convert_type="i64")
    assert drawn.dtype == np.int64
    assert {tuple(sorted(row)) for row in drawn.tolist()} == {(0, 1, 2, 3)}
    assert len({tuple(row) for row in drawn.tolist()}) > 1


def test_multinomial_takes_logarithms_of_any_size():
    assert multinomial([[-1, 1, 2000], [50, 1, 21]], 10, log_probs=True).tolist() == [[2] * 10, [0] * 10]


@pytest.mark.parametrize(
    "logs", [[-9000, 0, -3000, 3000], [-5000, -1000, -2000, 0], [-np.inf, 800, -2e300, 1e300], [3, 800, 9, 900]]
)
def test_multinomial_without_replacement_repeats_no_class_whose_logarithm_is_far_below(logs):
    order = sorted(range(4), key=lambda i: -logs[i])  # each is likelier than all behind it together
    assert multinomial([logs], 4, dtype=np.float64, log_probs=True, with_replacement=False).tolist() == [order]


def test_multinomial_without_replacement_takes_classes_of_probability_0_last():
    drawn = multinomial([[0, 1, 0, 0, 2], [0, 0, 0, 1, 0]], 5, with_replacement=False).tolist()
    assert [sorted(drawn[0][:2]), drawn[0][2:], drawn[1]] == [[1, 4], [0, 2, 3], [3, 0, 1, 2, 4]]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_multinomial_of_any_float_type(dtype):
    assert multinomial([[0, 1, 0]], [3], dtype=dtype).tolist() == [[1, 1, 1]]


def test_multinomial_of_nothing():
    assert multinomial([[1, 2]], 0).shape == (1, 0)
    assert multinomial(np.zeros((0, 3)), 2).shape == (0, 2)


def test_multinomial_infers_unknown_sizes():
    attrs = MULTINOMIAL.defaults | {"convert_type": "i64", "with_replacement": True, "log_probs": False}
    batch, samples = fresh(), fresh()
    inputs = [Tensor("f32", (batch, 3)), scalar(samples)]
    assert MULTINOMIAL.infer(inputs, attrs).outputs == [Tensor("i64", (batch, samples))]


def test_multinomial_13_c1_negative_number():
    with pytest.raises(Violation, match="`num_samples` is -1, expected 0 or more"):
        multinomial([[1, 2]], -1)


def test_multinomial_13_c2_more_samples_than_classes():
    with pytest.raises(Violation, match="`num_samples` is 3 without replacement, but there are 2 classes"):
        multinomial([[1, 2]], 3, with_replacement=False)


def test_multinomial_13_c2_no_classes():
    with pytest.raises(Violation, match="`num_samples` is 3, but there are no classes"):
        multinomial(np.zeros((2, 0)), 3)
    assert multinomial(np.zeros((2, 0)), 0).shape == (2, 0)
    assert multinomial(np.zeros((0, 0)), 0, log_probs=True).shape == (0, 0)


def test_multinomial_13_c3_negative_probability():
    with pytest.raises(Violation, match=r"`probs\[0, 1\]` is -2.0, expected 0 or more"):
        multinomial([[1, -2]], 1)
    with pytest.raises(Violation, match=r"`probs\[1\]` has only zeros"):
        multinomial([[1, 2], [0, 0]], 1)
