"""Shape ops."""

import numpy as np
import pytest
from tolerance import tolerated

from irrun.spec import Dim, Tensor, Violation, fresh
from irrun.spec.registry import registry

OPS = registry().ops
RESHAPE = OPS["Reshape-1"]


def tensor(*shape, type="f32"):
    return Tensor(type, shape)


def sizes(*values, type="i64"):
    array = np.array(values, object if any(isinstance(v, Dim) for v in values) else np.int64)
    return Tensor(type, array.shape, array)


def reshape(data, shape, special_zero=False):
    return RESHAPE(np.asarray(data), np.array(shape, np.int64), special_zero=special_zero)


def reshaped(data, shape, special_zero=False):
    return RESHAPE.infer([data, shape], {"special_zero": special_zero}).outputs[0].shape


# ShapeOf


@pytest.mark.parametrize(("output_type", "dtype"), [("i32", np.int32), ("i64", np.int64)])
def test_shape_of_has_the_output_type(output_type, dtype):
    shape = OPS["ShapeOf-3"](np.zeros((2, 3)), output_type=output_type)
    assert shape.tolist() == [2, 3]
    assert shape.dtype == dtype


def test_shape_of_a_scalar_is_empty():
    assert OPS["ShapeOf-1"](np.zeros(())).tolist() == []
    assert OPS["ShapeOf-1"](np.array("text")).dtype == np.int64


def test_shape_of_knows_its_value():
    batch = fresh()
    (shape,) = OPS["ShapeOf-3"].infer([tensor(batch, 3)], {"output_type": "i32"}).outputs
    assert (shape.type, shape.shape) == ("i32", (2,))
    assert shape.value.tolist() == [batch, 3]
    (known,) = OPS["ShapeOf-1"].infer([tensor(2, 3)], {}).outputs
    assert known.value.dtype == np.int64
    assert known.known


def test_shape_of_an_unknown_rank():
    (shape,) = OPS["ShapeOf-3"].infer([Tensor("f32", None)], {"output_type": "i64"}).outputs
    assert shape.value is None
    assert isinstance(shape.shape[0], Dim)


# Reshape


@pytest.mark.parametrize(
    ("shape", "pattern", "special_zero", "expected"),
    [
        ((2, 5, 5, 0), [0, 4], False, (0, 4)),
        ((2, 5, 5, 24), [0, -1, 4], True, (2, 150, 4)),
        ((2, 2, 3), [0, 0, 1, -1], True, (2, 2, 1, 3)),
        ((3, 1, 1), [-1, 0], True, (3, 1)),
        ((3, 1, 1), [0, -1], True, (3, 1)),
        ((1,), [], False, ()),
        ((), [1, 1], False, (1, 1)),
        ((0, 6), [0, -1, 3], True, (0, 2, 3)),
        ((0, 6), [-1, 3], False, (0, 3)),
        ((2, 0), [0, -1], False, (0, 2)),
        ((0, 3), [0, 2, -1], False, (0, 2, 0)),
        ((0, 0), [0, -1], False, (0, 0)),
        ((0,), [0, 0, -1], False, (0, 0, 0)),
        ((2, 0, 3), [2, -1, 0], False, (2, 3, 0)),
    ],
)
def test_reshape_of_the_specification(shape, pattern, special_zero, expected):
    assert reshape(np.zeros(shape), pattern, special_zero).shape == expected
    assert reshaped(tensor(*shape), sizes(*pattern), special_zero) == expected


def of_two_sizes(n, m):
    """Shapes, patterns without special_zero, and what comes of them."""
    return [
        ((n, 4), (n, 2, -1), (n, 2, 2)),
        ((n, m, 6), (n, -1, 3), (n, 2 * m, 3)),
        ((n, m, 6), (-1, m, 2), (3 * n, m, 2)),
        ((n, m), (m, -1), (m, n)),
        ((n, m, 2), (m, n, -1), (m, n, 2)),
    ]


@pytest.mark.parametrize("batch", [0, 1, 3])
@pytest.mark.parametrize("length", [0, 2])
def test_a_reshape_of_sizes_that_turn_out_to_be_0_is_as_inferred(batch, length):
    for shape, pattern, expected in of_two_sizes(fresh(name="n"), fresh(name="m")):
        assert reshaped(tensor(*shape), sizes(*pattern)) == expected
    for shape, pattern, expected in of_two_sizes(batch, length):
        assert reshape(np.zeros(shape), pattern).shape == expected


def test_reshape_copies_a_size_of_which_nothing_is_known():
    """Which is no -1 of the pattern, whatever it may be."""
    size = fresh() - fresh()
    assert reshaped(tensor(size, 2, 2), sizes(0, 4), True) == (size, 4)
    assert reshaped(tensor(size, 2, 2), sizes(0, -1), True) == (size, 4)


def test_reshape_keeps_elements_and_type():
    result = reshape(np.arange(6, dtype=np.uint8).reshape(2, 3), [3, 2])
    assert result.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert result.dtype == np.uint8


def test_reshape_divides_unknown_sizes():
    batch, steps = fresh(), fresh()
    data = tensor(batch, steps, 768)
    assert reshaped(data, sizes(0, -1, 12, 64), True) == (batch, steps, 12, 64)
    assert reshaped(data, sizes(0, 0, 12, 64), True) == (batch, steps, 12, 64)
    assert reshaped(data, sizes(-1, 768)) == (batch * steps, 768)
    assert reshaped(data, sizes(batch * steps, 768)) == (batch * steps, 768)
    assert reshaped(data, sizes(batch, -1, 64)) == (batch, steps * 12, 64)


def test_reshape_finds_one_unknown_element():
    assert reshaped(tensor(2, 3, 4), sizes(fresh(None), 6)) == (4, 6)
    rank = Tensor("i64", (2,))
    assert len(reshaped(tensor(2, 3, 4), rank)) == 2
    assert reshaped(tensor(2, 3, 4), Tensor("i64", None)) is None
    assert reshaped(tensor(2, 3, 4), Tensor("i64", (fresh(),))) is None


def test_reshape_of_an_unknown_rank():
    first, second, third = reshaped(Tensor("f32", None), sizes(0, -1, 4), True)
    assert isinstance(first, Dim)
    assert isinstance(second, Dim)
    assert third == 4


def test_reshape_computes_on_sizes():
    values = np.array([fresh(), 2], object)
    assert RESHAPE.kernel(values, np.array([2, 1]), special_zero=False).tolist() == [[values[0]], [2]]


def test_reshape_1_c1_element_below_minus_one():
    with pytest.raises(Violation, match=r"`shape\[1\]` is -2, expected -1 or more"):
        reshape([1, 2], [2, -2])


def test_reshape_1_c2_two_free_sizes():
    with pytest.raises(Violation, match=r"`shape` is \[-1, -1\], expected at most one -1"):
        reshape([1, 2], [-1, -1])


def test_reshape_1_c3_zero_behind_the_rank():
    with pytest.raises(Violation, match=r"`shape\[1\]` is 0, but `data` has rank 1"):
        reshape([1, 2], [2, 0], True)


def test_reshape_1_c4_other_number_of_elements():
    with pytest.raises(Violation, match=r"`data` is \[3\], 3 elements, expected 2 for `shape` \[2\]"):
        reshape([1, 2, 3], [2])
    with pytest.raises(Violation, match="3 elements, expected 2"):
        reshape([1, 2, 3], [-1, 2])
    with pytest.raises(Violation, match="3 elements, expected 0"):
        reshape([1, 2, 3], [-1, 0])


def test_reshape_1_c4_elements_that_are_no_multiple_whatever_the_sizes_are():
    n, m = fresh(), fresh()
    with pytest.raises(Violation, match=r"has 6 elements where `shape` .* wants a multiple of 4") as error:
        reshaped(tensor(n, m, 6), sizes(n, m, -1, 4))
    assert error.value.label == "C4"
    with pytest.raises(Violation, match=r"has 6 elements where `shape` .* wants a multiple of 4"):
        reshaped(tensor(n, 6), sizes(0, -1, 4), special_zero=True)
    for pattern in ((n, m, -1, 3), (n, -1), (-1, 4), (n, m, 6), (m, n, 2, 3), (n * m, -1, 2)):
        reshaped(tensor(n, m, 6), sizes(*pattern))


@pytest.mark.parametrize(("multiple", "wanted"), [(1, 7), (2, -1), (3, 1)])
def test_a_reshape_that_only_data_without_elements_fit(multiple, wanted):
    n = fresh()
    found = RESHAPE.infer([tensor(n, 3), sizes(n * multiple, wanted)], {"special_zero": False}).doubts
    assert [doubt.code for doubt in found] == ["W954"] * (multiple != 3)
    assert reshape(np.zeros((0, 3)), [0, wanted]).shape == (0, 3 if wanted == -1 else wanted)


@pytest.mark.parametrize(
    ("data", "pattern", "doubtful"),
    [((4,), (0, 9), True), ((0,), (0, 9), False), ((4,), (-1,), False), ((4,), (0, -1), True), ((0,), (0, -1), False)],
)
def test_a_reshape_to_no_elements_is_doubtful_where_data_may_have_some(data, pattern, doubtful):
    found = RESHAPE.infer([tensor(fresh(), *data), sizes(*pattern)], {"special_zero": False}).doubts
    assert [doubt.code for doubt in found] == ["W954"] * doubtful


def test_the_size_that_is_left_is_a_whole_number():
    assert reshaped(tensor(fresh(2, 4)), sizes(-1, 3)) == (1, 3)
    (rows, _) = reshaped(tensor(1, fresh(1), fresh(1), 512), sizes(-1, 7 * 7 * 512))
    assert (rows.low, rows.high) == (1, None)
    (none, _) = reshaped(tensor(fresh(0, 4)), sizes(-1, 3))
    assert (none.low, none.high) == (0, 1)


@pytest.mark.parametrize(("special_zero", "doubtful"), [(False, True), (True, False)])
def test_a_reshape_to_no_elements_is_doubtful_whatever_the_rank_of_data(special_zero, doubtful):
    found = RESHAPE.infer([Tensor("f32", None), sizes(0, -1)], {"special_zero": special_zero}).doubts
    assert [doubt.code for doubt in found] == ["W954"] * doubtful


# Squeeze, Unsqueeze


@pytest.mark.parametrize("name", ["Squeeze-1", "Squeeze-15"])
@pytest.mark.parametrize(
    ("shape", "axes", "expected"),
    [
        ((1, 3, 1, 2), [0, 2], (3, 2)),
        ((1,), [0], ()),
        ((1, 3, 1), None, (3,)),
        ((1, 3, 1), [], (3,)),
        ((1, 3, 1), [0, 1], (3, 1)),
        ((1, 3, 1), [-1], (1, 3)),
        ((1, 3, 1), 0, (3, 1)),
        ((), None, ()),
        ((), [-1], ()),
    ],
)
def test_squeeze_drops_ones(name, shape, axes, expected):
    inputs = [np.zeros(shape)] + ([] if axes is None else [np.array(axes, np.int64)])
    assert OPS[name](*inputs).shape == expected
    assert OPS[name].infer([Tensor.of(a) for a in inputs], OPS[name].defaults).outputs[0].shape == expected


def test_squeeze_infers_an_unknown_listed_size_as_dropped():
    data = tensor(1, fresh(), fresh(2), 3)
    assert OPS["Squeeze-1"].infer([data, sizes(1)], {}).outputs[0].shape == (1, data.shape[2], 3)
    assert OPS["Squeeze-1"].infer([data, sizes(0, 2)], {}).outputs[0].shape == data.shape[1:]
    assert OPS["Squeeze-15"].infer([data, sizes(1)], {"allow_axis_skip": False}).outputs[0].shape is not None


def test_squeeze_says_where_it_supposes_sizes():
    data = tensor(1, fresh(), 3)
    assert not OPS["Squeeze-1"].infer([data, sizes(0)], {}).supposed
    supposed = OPS["Squeeze-1"].infer([data, sizes(0, 1)], {})
    assert supposed.supposed
    assert not supposed.complete


def test_squeeze_of_unknown_sizes_may_have_any_rank():
    data = tensor(1, fresh(), 3)
    assert OPS["Squeeze-1"].infer([data], {}).outputs[0].shape is None
    assert OPS["Squeeze-15"].infer([data, sizes(1)], {"allow_axis_skip": True}).outputs[0].shape is None
    assert OPS["Squeeze-1"].infer([data, Tensor("i64", (1,))], {}).outputs[0].shape is None
    assert OPS["Squeeze-1"].infer([tensor(1, fresh(2), 3)], {}).outputs[0].rank == 2


def outside(name):
    with pytest.raises(Violation, match=r"`axes\[1\]` is 2, outside \[-2, 2\) for rank 2"):
        OPS[name](np.zeros((1, 1)), np.array([0, 2]))


def test_squeeze_1_c1_axis_outside_the_rank():
    outside("Squeeze-1")


def test_squeeze_15_c1_axis_outside_the_rank():
    outside("Squeeze-15")


def squeezed_twice(name, axes, text):
    op, data = OPS[name], np.zeros((1, 1))
    assert tolerated(op, data, np.array(axes)) == ("C2", f"`axes` is {text}, which has an axis twice")
    assert op.kernel(data, np.array(axes), **op.defaults).shape == (1,)


def test_squeeze_1_c2_an_axis_twice():
    squeezed_twice("Squeeze-1", [0, -2], "[0, -2]")


def test_squeeze_15_c2_an_axis_twice():
    squeezed_twice("Squeeze-15", [1, 1], "[1, 1]")


@pytest.mark.parametrize(
    ("shape", "axes", "expected"),
    [
        ((2, 3), [0, 3], (1, 2, 3, 1)),
        ((), [0], (1,)),
        ((2, 3), [-1], (2, 3, 1)),
        ((2, 3), 1, (2, 1, 3)),
        ((2, 3), [3, 0], (1, 2, 3, 1)),
    ],
)
def test_unsqueeze_inserts_ones(shape, axes, expected):
    data, where = np.zeros(shape), np.array(axes, np.int64)
    assert OPS["Unsqueeze-1"](data, where).shape == expected
    assert OPS["Unsqueeze-1"].infer([Tensor.of(data), Tensor.of(where)], {}).outputs[0].shape == expected


def test_unsqueeze_with_an_unknown_axis_has_one_more():
    assert OPS["Unsqueeze-1"].infer([tensor(2, 3), Tensor("i64", ())], {}).outputs[0].rank == 3
    assert OPS["Unsqueeze-1"].infer([tensor(2, 3), Tensor("i64", (2,))], {}).outputs[0].shape is None
    assert OPS["Unsqueeze-1"].infer([Tensor("f32", None), sizes(0)], {}).outputs[0].shape is None


def test_unsqueeze_computes_on_sizes():
    size = fresh()
    assert OPS["Unsqueeze-1"].kernel(np.array(size, object), np.array(0)).tolist() == [size]


def test_unsqueeze_1_c1_axis_outside_the_rank():
    with pytest.raises(Violation, match=r"`axes` is 2, outside \[-2, 2\) for rank 2"):
        OPS["Unsqueeze-1"](np.zeros(3), np.array([2]))


def test_unsqueeze_1_c2_an_axis_twice():
    op, axes = OPS["Unsqueeze-1"], np.array([0, 0])
    assert tolerated(op, np.zeros(2), axes) == ("C2", "`axes` is [0, 0], which has an axis twice")
    assert op.kernel(np.zeros(2), axes).shape == (1, 2)


def test_unsqueeze_1_c2_two_names_of_one_place():
    with pytest.raises(Violation, match="`axes` 2 and -1 are both place 2 of rank 3"):
        OPS["Unsqueeze-1"](np.zeros(3), np.array([2, -1]))


def test_unsqueeze_1_c3_no_axes():
    with pytest.raises(Violation, match="`axes` is empty") as caught:
        OPS["Unsqueeze-1"](np.zeros(3), np.array([], int))
    assert caught.value.label == "C3"
