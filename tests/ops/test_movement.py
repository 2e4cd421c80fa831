"""Data movement ops."""

import ml_dtypes
import numpy as np
import pytest
from ir_builder import Model
from refusal import refuses
from tolerance import tolerated

from irrun import validate
from irrun.spec import Dim, Tensor, Violation, fresh
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.evaluation import Evaluation
from irrun.spec.op import NUMERIC
from irrun.spec.registry import registry

ops = registry().ops
gather_1, gather_7, gather_8 = ops["Gather-1"], ops["Gather-7"], ops["Gather-8"]
gather_elements = ops["GatherElements-6"]
gather_nd_5, gather_nd_8 = ops["GatherND-5"], ops["GatherND-8"]
elements_3, elements_12 = ops["ScatterElementsUpdate-3"], ops["ScatterElementsUpdate-12"]
scatter_update = ops["ScatterUpdate-3"]
scatter_nd_3, scatter_nd_15 = ops["ScatterNDUpdate-3"], ops["ScatterNDUpdate-15"]
concat, split, variadic_split = ops["Concat-1"], ops["Split-1"], ops["VariadicSplit-1"]
slice_8, slice_scatter, strided_slice = ops["Slice-8"], ops["SliceScatter-15"], ops["StridedSlice-1"]
broadcast_1, broadcast_3 = ops["Broadcast-1"], ops["Broadcast-3"]
tile, pad_1, pad_12, roll = ops["Tile-1"], ops["Pad-1"], ops["Pad-12"], ops["Roll-7"]
transpose = ops["Transpose-1"]
depth_to_space, space_to_depth = ops["DepthToSpace-1"], ops["SpaceToDepth-1"]
batch_to_space, space_to_batch = ops["BatchToSpace-2"], ops["SpaceToBatch-2"]
reverse, reverse_sequence = ops["Reverse-1"], ops["ReverseSequence-1"]
shuffle, gather_tree, unique = ops["ShuffleChannels-1"], ops["GatherTree-1"], ops["Unique-10"]
col_2_im, image_patches = ops["Col2Im-15"], ops["ExtractImagePatches-3"]

INT_MAX, INT_MIN = 2**31 - 1, -(2**31)
LONG_MAX, LONG_MIN = 2**63 - 1, -(2**63)
random = np.random.default_rng(5)


def f32(values):
    return np.array(values, np.float32)


def i64(*values):
    return np.array(values, np.int64)


def infers(op, *inputs, **attrs):
    """What is known of the outputs: shapes and arrays stand for tensors, None for one that is not connected."""
    tensors = []
    for item in inputs:
        if isinstance(item, np.ndarray):
            tensors.append(Tensor.of(item))
        elif isinstance(item, tuple):
            tensors.append(Tensor("f32", item))
        else:
            tensors.append(item)
    return op.infer(tensors, op.defaults | attrs)


def shape_of(op, *inputs, **attrs):
    return infers(op, *inputs, **attrs).outputs[0].shape


def broken(op, *inputs, **attrs):
    """The label and the message of what breaks a rule before the run."""
    with pytest.raises(Violation) as caught:
        infers(op, *inputs, **attrs)
    return caught.value.label, caught.value.message


UNKNOWN_INDEX = Tensor("i64", ())
UNKNOWN_RANK = Tensor("f32", None)
UNKNOWN_INDICES = Tensor("i64", None)


def dims(*values):
    """A value that is known in part."""
    array = np.empty(len(values), object)
    array[:] = values
    return Tensor("i64", (len(values),), array)


def same(got, expected):
    """Whether two shapes are provably equal."""
    return len(got) == len(expected) and all((a == b) is True for a, b in zip(got, expected, strict=True))


def lies_in(shape, inferred):
    """Whether a real shape lies in an inferred one."""
    return len(shape) == len(inferred) and all(
        (size.low or 0) <= n <= (n if size.high is None else size.high) if isinstance(size, Dim) else n == size
        for n, size in zip(shape, inferred, strict=True)
    )


# Gather


@pytest.mark.parametrize("op", [gather_7, gather_8], ids=["7", "8"])
def test_gather_examples_of_the_specification(op):
    assert op(i64(1, 2, 3, 4, 5), i64(0, 0, 4), i64(0)).tolist() == [1, 1, 5]
    two = np.arange(1, 11).reshape(2, 5)
    rows = np.array([[0, 0, 4], [4, 0, 0]])
    assert op(two, rows, np.array(1), batch_dims=1).tolist() == [[1, 1, 5], [10, 6, 6]]
    assert op(two, rows, np.array(1), batch_dims=-1).tolist() == [[1, 1, 5], [10, 6, 6]]
    four = np.arange(1, 21).reshape(2, 2, 5)
    deep = np.array([[[0, 0, 4], [4, 0, 0]], [[1, 2, 4], [4, 3, 2]]])
    assert op(four, deep, np.array(2), batch_dims=2).tolist() == [[[1, 1, 5], [10, 6, 6]], [[12, 13, 15], [20, 19, 18]]]
    wide = np.arange(1, 41).reshape(2, 1, 5, 4)
    assert op(wide, np.array([[1, 2, 4], [4, 3, 2]]), np.array(2), batch_dims=1).tolist() == [
        [[[5, 6, 7, 8], [9, 10, 11, 12], [17, 18, 19, 20]]],
        [[[37, 38, 39, 40], [33, 34, 35, 36], [29, 30, 31, 32]]],
    ]


def test_gather_8_counts_negative_indices_from_the_end_and_gives_zeros_outside():
    data = i64(1, 2, 3, 4, 5)
    assert gather_8(data, i64(0, -2, -1), np.array(0)).tolist() == [1, 4, 5]
    assert gather_8(data, i64(3, 10, -20), np.array(0)).tolist() == [4, 0, 0]
    two = np.arange(1, 7).reshape(2, 3)
    assert gather_8(two, np.array([[5, -1], [0, -4]]), np.array(1), batch_dims=1).tolist() == [[0, 3], [4, 0]]
    assert gather_8(two, np.array([[5], [0]]), np.array(1)).tolist() == [[[0], [1]], [[0], [4]]]
    assert gather_8(np.array(["a", "bc"]), i64(1, 7), np.array(0)).tolist() == ["bc", ""]
    assert gather_8(np.zeros((0, 2), np.float32), i64(0, 1), np.array(0)).tolist() == [[0, 0], [0, 0]]


def slow_gather(data, indices, axis, batch):
    shape = (*data.shape[:axis], *indices.shape[batch:], *data.shape[axis + 1 :])
    output = np.zeros(shape, data.dtype)
    inner = indices.ndim - batch
    for place in np.ndindex(shape):
        index = indices[(*place[:batch], *place[axis : axis + inner])]
        output[place] = data[(*place[:axis], index, *place[axis + inner :])]
    return output


@pytest.mark.parametrize(
    ("shape", "indices", "axis", "batch"),
    [
        ((4, 3), (), 0, 0),
        ((2, 3, 4), (2, 2), 1, 0),
        ((2, 3, 4), (5,), -1, 0),
        ((2, 3, 4, 2), (2, 3, 2, 2), 3, 2),
        ((2, 3, 4, 2), (2, 2), 3, 1),
        ((2, 3, 4), (2, 3), 2, 2),
        ((2, 3, 4), (0, 2), 1, 0),
        ((0, 3), (0, 2), 1, 1),
    ],
)
def test_gather_agrees_with_a_slow_loop(shape, indices, axis, batch):
    data = random.standard_normal(shape).astype(np.float32)
    places = random.integers(0, shape[axis], indices)
    expected = slow_gather(data, places, axis % len(shape), batch)
    for op in (gather_7, gather_8) if batch else (gather_1, gather_7, gather_8):
        got = op(data, places, np.array(axis), **({"batch_dims": batch} if op is not gather_1 else {}))
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, expected)


def test_gather_takes_every_type():
    for dtype in (ml_dtypes.bfloat16, np.float16, np.bool_, np.uint64, ml_dtypes.int4):
        got = np.asarray(gather_8(np.array([0, 1, 1]).astype(dtype), np.array([2, -3], np.int32), i64(0)))
        assert got.dtype == dtype
        assert got.astype(np.int64).tolist() == [1, 0]


def test_gather_1_c1_axis_outside_the_rank():
    refuses(gather_1, "C1", "`axis` is 2, outside [-2, 2) for rank 2", f32([[1]]), i64(0), i64(2))


def test_gather_1_c1_scalar_data():
    refuses(gather_1, "C1", "`axis` is 0, outside [0, 0) for rank 0", f32(1), i64(0), i64(0))


@pytest.mark.parametrize("op", [gather_1, gather_7, gather_8], ids=["1", "7", "8"])
def test_gather_c1_axis_outside_the_one_rank_that_is_known(op):
    assert broken(op, (2, 3), UNKNOWN_INDICES, i64(2)) == ("C1", "`axis` is 2, outside [-2, 2) for rank 2")
    message = "`axis` is an axis of a scalar, which has none"
    assert broken(op, (), UNKNOWN_INDICES, UNKNOWN_INDEX) == ("C1", message)
    assert shape_of(op, (2, 3), UNKNOWN_INDICES, i64(1)) is None


@pytest.mark.parametrize("op", [gather_7, gather_8], ids=["7", "8"])
@pytest.mark.parametrize(
    ("data", "indices", "axis", "batch", "limits"),
    [
        (UNKNOWN_RANK, i64(0, 1), i64(3), 2, "indices of rank 1 and axis 3"),
        (UNKNOWN_RANK, i64(0, 1), i64(-1), -2, "indices of rank 1"),
        (UNKNOWN_RANK, UNKNOWN_INDICES, i64(1), 2, "axis 1"),
        ((2, 3), UNKNOWN_INDICES, i64(-2), 1, "data of rank 2 and axis 0"),
        ((2, 3), UNKNOWN_INDICES, UNKNOWN_INDEX, 2, "data of rank 2"),
        ((4,), Tensor("i64", (4,)), UNKNOWN_INDEX, 1, "data of rank 1, indices of rank 1"),
    ],
)
def test_gather_c2_batch_dims_beyond_what_is_known(op, data, indices, axis, batch, limits):
    assert broken(op, data, indices, axis, batch_dims=batch) == ("C2", f"`batch_dims` is {batch} for {limits}")


def test_gather_batch_dims_within_what_is_known():
    for axis in (i64(1), i64(-1), UNKNOWN_INDEX):
        assert shape_of(gather_8, UNKNOWN_RANK, Tensor("i64", (2, 3)), axis, batch_dims=-1) is None
        assert shape_of(gather_8, (2, 3), UNKNOWN_INDICES, axis, batch_dims=1) is None
    assert len(shape_of(gather_8, (2, 3), Tensor("i64", (2, 3)), UNKNOWN_INDEX, batch_dims=1)) == 2


def test_gather_1_c2_index_outside_the_axis():
    refuses(gather_1, "C2", "`indices[1]` is 3, outside [0, 3)", f32([1, 2, 3]), i64(0, 3), i64(0))
    refuses(gather_1, "C2", "`indices[0]` is -1, outside [0, 3)", f32([1, 2, 3]), i64(-1, 3), i64(0))


def test_gather_7_c1_axis_outside_the_rank():
    refuses(gather_7, "C1", "`axis` is -3, outside [-2, 2) for rank 2", f32([[1]]), i64(0), i64(-3))


def test_gather_7_c2_batch_dims_above_the_axis():
    message = "`batch_dims` is 2 for data of rank 2, indices of rank 2 and axis 1"
    refuses(gather_7, "C2", message, f32([[1]]), i64([0]), i64(1), batch_dims=2)


def test_gather_7_c2_batch_dims_below_minus_the_rank():
    message = "`batch_dims` is -3 for data of rank 2, indices of rank 2 and axis 1"
    refuses(gather_7, "C2", message, f32([[1]]), i64([0]), i64(1), batch_dims=-3)


def test_gather_7_c3_batches_differ():
    message = "dimension 0 is 2 in `data`, but 1 in `indices`"
    refuses(gather_7, "C3", message, f32([[1], [2]]), i64([0]), i64(1), batch_dims=1)


def test_gather_7_c4_index_outside_the_axis():
    refuses(gather_7, "C4", "`indices[0, 1]` is 4, outside [0, 3)", f32([1, 2, 3]), i64([0, 4]), i64(0))


def test_gather_8_c1_axis_outside_the_rank():
    refuses(gather_8, "C1", "`axis` is 2, outside [-1, 1) for rank 1", f32([1]), i64(0), i64(2))


def test_gather_8_c2_batch_dims_outside():
    message = "`batch_dims` is 1 for data of rank 2, indices of rank 2 and axis 0"
    refuses(gather_8, "C2", message, f32([[1]]), i64([0]), i64(0), batch_dims=1)


def test_gather_8_c3_batches_differ():
    message = "dimension 0 is 2 in `data`, but 3 in `indices`"
    refuses(gather_8, "C3", message, f32([[1], [2]]), i64([0], [0], [0]), i64(1), batch_dims=1)


def test_gather_keeps_unknown_dimensions():
    batch, size, width = fresh(), fresh(), fresh()
    indices = Tensor("i64", (batch, size))
    assert same(shape_of(gather_8, (batch, 5, width), indices, np.array(1)), (batch, batch, size, width))
    assert same(shape_of(gather_8, (batch, 5, width), indices, np.array(1), batch_dims=1), (batch, size, width))
    assert len(shape_of(gather_8, (batch, 5, width), indices, UNKNOWN_INDEX)) == 4
    assert shape_of(gather_8, UNKNOWN_RANK, indices, np.array(1)) is None


def test_gather_computes_on_dimensions():
    size = fresh()
    value = np.array([size, 3, 4], object)
    assert gather_8.kernel(value, i64(0, -1), np.array(0), batch_dims=0).tolist() == [size, 4]
    assert np.asarray(gather_8.kernel(value, np.array(0), np.array(0), batch_dims=0)).item() is size


# GatherElements


def test_gatherelements_examples_of_the_specification():
    assert gather_elements(np.array([[1, 2], [3, 4]]), i64([0, 1], [0, 0]), axis=0).tolist() == [[1, 4], [1, 2]]
    got = gather_elements(np.array([[1, 7], [4, 3]]), i64([1, 1, 0], [1, 0, 1]), axis=1)
    assert got.tolist() == [[7, 7, 1], [3, 4, 3]]
    got = gather_elements(np.arange(1, 10).reshape(3, 3), i64([1, 0, 1], [1, 2, 0]), axis=-2)
    assert got.tolist() == [[4, 2, 6], [4, 8, 3]]


def test_gatherelements_6_c1_axis_outside_the_rank():
    refuses(gather_elements, "C1", "`axis` is 2, outside [-2, 2) for rank 2", f32([[1]]), i64([0]), axis=2)


def test_gatherelements_6_c2_ranks_differ():
    refuses(gather_elements, "C2", "`indices` has rank 1, expected 2", f32([[1]]), i64(0), axis=0)


def test_gatherelements_6_c3_dimensions_differ_off_the_axis():
    message = "dimension 1 is 2 in `indices`, but 1 in `data`"
    refuses(gather_elements, "C3", message, f32([[1]]), i64([0, 0]), axis=0)


def test_gatherelements_6_c4_index_outside_the_axis():
    refuses(gather_elements, "C4", "`indices[0, 0]` is 1, outside [0, 1)", f32([[1]]), i64([1]), axis=0)
    refuses(gather_elements, "C4", "`indices[1, 0]` is -3, outside [0, 2)", f32([[1], [2]]), i64([-1], [-3]), axis=0)


def test_gatherelements_6_c4_negative_index_counts_from_the_end():
    given = f32([[1, 2], [3, 4], [5, 6]]), i64([-1, -2], [0, -3])
    assert tolerated(gather_elements, *given, axis=0) == ("C4", "`indices[0, 0]` is -1, outside [0, 3)")
    assert gather_elements.kernel(*given, axis=0).tolist() == [[5, 4], [1, 2]]


def test_gatherelements_has_the_shape_of_the_indices():
    batch, size = fresh(), fresh()
    assert same(shape_of(gather_elements, (7, batch), Tensor("i64", (size, fresh())), axis=0)[:1], (size,))
    assert same(shape_of(gather_elements, UNKNOWN_RANK, Tensor("i64", (size, 2)), axis=0), (size, 2))
    assert shape_of(gather_elements, (fresh(), 4), Tensor("i64", (3, fresh())), axis=0) == (3, 4)


# GatherND


@pytest.mark.parametrize("op", [gather_nd_5, gather_nd_8], ids=["5", "8"])
def test_gathernd_examples_of_the_specification(op):
    data = np.array([[1, 2], [3, 4]])
    assert op(data, i64([0, 0], [1, 0])).tolist() == [1, 3]
    assert op(data, i64([1], [0])).tolist() == [[3, 4], [1, 2]]
    assert op(data, i64([[1]], [[0]])).tolist() == [[[3, 4]], [[1, 2]]]
    assert op(data, i64([1], [0]), batch_dims=1).tolist() == [2, 3]
    deep = np.arange(1, 25).reshape(2, 3, 4)
    assert op(deep, i64([1], [0]), batch_dims=1).tolist() == [[5, 6, 7, 8], [13, 14, 15, 16]]
    rows = i64([[[1]], [[0]], [[2]]], [[[0]], [[2]], [[2]]])
    expected = np.array([[2], [5], [11], [13], [19], [23]])
    assert (
        op(deep, rows, batch_dims=2).tolist() == expected.reshape((6, 1) if op is gather_nd_5 else (2, 3, 1)).tolist()
    )


def test_gathernd_8_example_of_three_batch_dimensions():
    data = np.arange(1, 17).reshape(1, 2, 2, 4)
    assert gather_nd_8(data, i64([[[1], [0]], [[3], [2]]]), batch_dims=3).tolist() == [[[2, 5], [12, 15]]]


def test_gathernd_shapes_of_the_specification():
    data, indices = (30, 2, 100, 35), Tensor("i64", (30, 2, 3, 1))
    assert shape_of(gather_nd_5, data, indices, batch_dims=2) == (60, 3, 35)
    assert shape_of(gather_nd_8, data, indices, batch_dims=2) == (30, 2, 3, 35)
    assert shape_of(gather_nd_8, (1000, 256, 10, 15), Tensor("i64", (25, 125, 3))) == (25, 125, 15)


def test_gathernd_counts_negative_indices_from_the_end():
    assert gather_nd_8(np.arange(6).reshape(2, 3), i64([-1, -1], [-2, 0])).tolist() == [5, 0]


def test_gathernd_takes_everything_for_empty_tuples():
    assert gather_nd_8(i64(1, 2), np.zeros((2, 0), np.int64)).tolist() == [[1, 2], [1, 2]]


def test_gathernd_broadcasts_batch_dimensions():
    data = np.arange(6).reshape(2, 3)
    assert gather_nd_8(data, i64([2]), batch_dims=1).tolist() == [2, 5]
    assert gather_nd_8(data[:1], i64([2], [0]), batch_dims=1).tolist() == [2, 0]
    assert shape_of(gather_nd_8, (1, 3), Tensor("i64", (4, 1)), batch_dims=1) == (4,)


@pytest.mark.parametrize(("op", "low"), [(gather_nd_5, 0), (gather_nd_8, -3)], ids=["5", "8"])
def test_gathernd_index_outside_names_its_place(op, low):
    data = f32([[1, 2, 3], [4, 5, 6]])
    message = f"`indices[1, 1]` is 3, outside [{low}, 3)"
    refuses(op, "C4", message, data, i64([1, 0], [1, 3]))


def test_gathernd_5_c1_batch_dims_outside_the_ranks():
    message = "`batch_dims` is 1, outside [0, 1) for data of rank 1 and indices of rank 2"
    refuses(gather_nd_5, "C1", message, f32([1]), i64([0]), batch_dims=1)


@pytest.mark.parametrize("op", [gather_nd_5, gather_nd_8], ids=["5", "8"])
def test_gathernd_c1_batch_dims_outside_the_one_rank_that_is_known(op):
    said = "`batch_dims` is 2, outside [0, 2) for"
    assert broken(op, (2, 3), UNKNOWN_INDICES, batch_dims=2) == ("C1", f"{said} data of rank 2")
    assert broken(op, UNKNOWN_RANK, Tensor("i64", (2, 3)), batch_dims=2) == ("C1", f"{said} indices of rank 2")
    assert shape_of(op, UNKNOWN_RANK, Tensor("i64", (2, 3)), batch_dims=1) is None
    assert shape_of(op, UNKNOWN_RANK, UNKNOWN_INDICES, batch_dims=5) is None


def test_gathernd_5_c2_tuples_longer_than_the_rank():
    message = "`indices` has tuples of 2, but `data` has 2 dimensions, 1 of them batch dimensions"
    refuses(gather_nd_5, "C2", message, f32([[1]]), i64([0, 0]), batch_dims=1)


def test_gathernd_5_c3_batches_differ():
    message = "dimension 0 is 2 in `data`, but 3 in `indices`"
    refuses(gather_nd_5, "C3", message, f32([[1], [2]]), i64([0], [0], [0]), batch_dims=1)


def test_gathernd_5_c4_negative_index():
    refuses(gather_nd_5, "C4", "`indices[1, 0]` is -3, outside [0, 2)", f32([1, 2]), i64([-1], [-3]))
    given = f32([[1, 2], [3, 4], [5, 6]]), i64([-1, -2], [0, -1])
    assert tolerated(gather_nd_5, *given) == ("C4", "`indices[0, 0]` is -1, outside [0, 3)")
    assert gather_nd_5.kernel(*given, batch_dims=0).tolist() == [5, 2]


def test_gathernd_8_c1_batch_dims_outside_the_ranks():
    message = "`batch_dims` is 1, outside [0, 1) for data of rank 2 and indices of rank 1"
    refuses(gather_nd_8, "C1", message, f32([[1]]), i64(0), batch_dims=1)


def test_gathernd_8_c2_tuples_longer_than_the_rank():
    message = "`indices` has tuples of 2, but `data` has 1 dimensions, 0 of them batch dimensions"
    refuses(gather_nd_8, "C2", message, f32([1]), i64([0, 0]))


def test_gathernd_8_c3_batches_differ():
    message = "dimension 0 is 2 in `data`, but 3 in `indices`"
    refuses(gather_nd_8, "C3", message, f32([[1], [2]]), i64([0], [0], [0]), batch_dims=1)


def test_gathernd_8_c4_index_outside_the_dimension():
    refuses(gather_nd_8, "C4", "`indices[0, 0]` is -3, outside [-2, 2)", f32([1, 2]), i64([-3]))


def test_gathernd_8_c4_index_beyond_all_that_the_dimension_may_be():
    data = Tensor("f32", (fresh(1, 3), 4))
    with pytest.raises(Violation) as error:
        shape_of(gather_nd_8, data, i64([3, 0]))
    assert (error.value.label, error.value.message) == ("C4", "`indices[0, 0]` is 3, outside [-3, 1..3)")
    assert shape_of(gather_nd_8, data, i64([2, 0])) == (1,)


def test_gathernd_keeps_unknown_dimensions():
    batch, count, width = fresh(), fresh(), fresh()
    indices = Tensor("i64", (batch, count, 1))
    assert same(shape_of(gather_nd_8, (batch, 4, width), indices, batch_dims=1), (batch, count, width))
    assert same(
        shape_of(gather_nd_5, (batch, count, width, 3), Tensor("i64", (batch, count, 2)), batch_dims=2),
        (batch * count,),
    )
    assert shape_of(gather_nd_8, (batch, 4), Tensor("i64", (3, fresh()))) is None


# ScatterElementsUpdate

SUM_DATA, SUM_UPDATES = i64(2, 3, 4, 6), i64(10, 20, 30, 40, 70, 60)
SQUARE = i64([1, 1], [0, 3])
ELEVEN = i64([11, 12], [13, 14])


def test_scatterelementsupdate_examples_of_the_specification():
    got = elements_12(SUM_DATA, i64(1, 0, 0, -2, -1, 2), SUM_UPDATES, i64(0), reduction="sum", use_init_val=True)
    assert got.tolist() == [52, 13, 104, 76]
    got = elements_12(SUM_DATA, i64(1, 0, 0, 2, 3, 2), SUM_UPDATES, i64(0), reduction="sum", use_init_val=False)
    assert got.tolist() == [50, 10, 100, 70]
    got = elements_12(np.zeros((3, 4), np.int32), i64([1, 2], [0, 3]), ELEVEN.astype(np.int32), i64(1))
    assert got.tolist() == [[0, 11, 12, 0], [13, 0, 0, 14], [0, 0, 0, 0]]
    got = elements_12(np.ones((3, 4), np.int64), SQUARE, ELEVEN, i64(1), reduction="sum")
    assert got.tolist() == [[1, 24, 1, 1], [14, 1, 1, 15], [1, 1, 1, 1]]
    got = elements_12(np.full((3, 4), 2), SQUARE, ELEVEN, i64(1), reduction="prod")
    assert got.tolist() == [[2, 264, 2, 2], [26, 2, 2, 28], [2, 2, 2, 2]]


@pytest.mark.parametrize("op", [elements_3, elements_12], ids=["3", "12"])
def test_scatterelementsupdate_shapes_of_the_specification(op):
    indices, updates = Tensor("i64", (125, 20, 7, 6)), (125, 20, 7, 6)
    assert shape_of(op, (1000, 256, 7, 7), indices, updates, i64(0)) == (1000, 256, 7, 7)


REDUCTIONS = {
    "none": lambda old, new: new,
    "sum": lambda old, new: old + new,
    "mean": lambda old, new: old + new,
    "prod": lambda old, new: old * new,
    "min": min,
    "max": max,
}
NEUTRAL = {"none": 0, "sum": 0, "mean": 0, "prod": 1, "min": float("inf"), "max": float("-inf")}


def slow_elements(data, indices, updates, axis, reduction, use_init_val):
    """The output as nested lists of Python numbers."""
    output = data.astype(object)
    counts = {}
    for place in np.ndindex(indices.shape):
        target = list(place)
        target[axis] = indices[place] % data.shape[axis]
        target = tuple(target)
        if target not in counts:
            counts[target] = int(use_init_val)
            output[target] = output[target] if use_init_val else NEUTRAL[reduction]
        counts[target] += 1
        output[target] = REDUCTIONS[reduction](output[target], updates[place].item())
    if reduction == "mean":
        for target, count in counts.items():
            whole = data.dtype.kind in "iu"
            output[target] = output[target] // count if whole else output[target] / count
    return output.tolist()


@pytest.mark.parametrize(
    ("shape", "indices", "axis"),
    [
        ((5,), (9,), 0),
        ((3, 4), (3, 4), 1),
        ((3, 4), (2, 3), -2),
        ((3, 2, 4), (2, 1, 7), 2),
        ((2, 3, 2, 2), (1, 3, 2, 1), 1),
        ((3, 4), (0, 4), 1),
        ((0, 4), (0, 2), 1),
    ],
)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("use_init_val", [True, False])
def test_scatterelementsupdate_12_agrees_with_a_slow_loop(shape, indices, axis, reduction, use_init_val):
    for dtype in (np.int32, np.float64):
        data = random.integers(-3, 4, shape).astype(dtype)
        places = random.integers(-shape[axis], shape[axis], indices)
        updates = random.integers(-3, 4, indices).astype(dtype)
        kept = data.copy(), updates.copy()
        for order in ("C", "F"):
            arrays = [np.asarray(array, order=order) for array in (data, places, updates)]
            got = elements_12(*arrays, np.array(axis), reduction=reduction, use_init_val=use_init_val)
            assert got.dtype == dtype
            expected = slow_elements(data, places, updates, axis % len(shape), reduction, use_init_val)
            np.testing.assert_allclose(got.tolist(), expected, rtol=1e-12)
        np.testing.assert_array_equal(data, kept[0])
        np.testing.assert_array_equal(updates, kept[1])


@pytest.mark.parametrize(
    ("shape", "indices", "axis"), [((5,), (3,), 0), ((3, 4), (2, 3), -1), ((2, 3, 4), (2, 2, 3), 1)]
)
def test_scatterelementsupdate_3_agrees_with_a_slow_loop(shape, indices, axis):
    data = random.standard_normal(shape).astype(np.float32)
    places = random.integers(0, shape[axis], indices, np.int32)
    updates = random.standard_normal(indices).astype(np.float32)
    expected = slow_elements(data, places, updates, axis % len(shape), "none", True)
    np.testing.assert_allclose(elements_3(data, places, updates, i64(axis)), np.array(expected, np.float32))


@pytest.mark.parametrize("type", sorted(NUMERIC))
def test_scatterelementsupdate_takes_every_numeric_type(type):
    dtype = numpy_dtype(type)
    data, updates = np.array([1, 2, 3]).astype(dtype), np.array([4, 6]).astype(dtype)
    got = elements_3(data, i64(2, 0), updates, np.array(0, np.int32))
    assert (got.dtype, got.astype(np.int64).tolist()) == (dtype, [6, 2, 4])
    expected = {"sum": [11, 2, 3], "prod": [24, 2, 3], "min": [1, 2, 3], "max": [6, 2, 3], "mean": [3, 2, 3]}
    for reduction, values in expected.items():
        got = elements_12(data, np.array([0, -3], np.int32), updates, i64(-1), reduction=reduction)
        if type in ("f64", "f32", "f16", "bf16") and reduction == "mean":
            values = [np.array(11 / 3).astype(dtype).item(), 2, 3]
        assert (got.dtype, got.tolist()) == (dtype, np.array(values).astype(dtype).tolist())
    for reduction, value in {"sum": 10, "prod": 24, "min": 4, "max": 6, "mean": 5}.items():
        got = elements_12(data, i64(0, 0), updates, i64(0), reduction=reduction, use_init_val=False)
        assert got.astype(np.int64).tolist() == [value, 2, 3]


def test_scatterelementsupdate_takes_every_integer_index():
    for dtype in (np.uint8, np.int16, np.uint64):
        assert elements_3(i64(1, 2), np.array([1], dtype), i64(9), np.array(0, dtype)).tolist() == [1, 9]
        assert elements_12(i64(1, 2), np.array([1], dtype), i64(9), np.array(0, dtype), reduction="sum").tolist() == [
            1,
            11,
        ]


def test_scatterelementsupdate_rounds_integer_means_down():
    got = elements_12(i64(-2, 2), i64(0, 1), i64(-3, 3), i64(0), reduction="mean")
    assert got.tolist() == [-3, 2]
    got = elements_12(np.array([100], np.int8), i64(0, 0), np.array([100, 100], np.int8), i64(0), reduction="mean")
    assert (got.dtype, got.tolist()) == (np.int8, [100])


def test_scatterelementsupdate_wraps_integer_sums():
    got = elements_12(np.array([100], np.int8), i64(0), np.array([100], np.int8), i64(0), reduction="sum")
    assert got.tolist() == [-56]


def test_scatterelementsupdate_rounds_half_types_once():
    data, updates = np.array([2048], np.float16), np.ones(2, np.float16)
    assert elements_12(data, i64(0, 0), updates, i64(0), reduction="sum").tolist() == [2050]
    huge = np.array([60000, 60000], np.float16)
    assert elements_12(data, i64(0, 0), huge, i64(0), reduction="mean", use_init_val=False).tolist() == [60000]


def test_scatterelementsupdate_reduces_booleans():
    data, indices, updates = np.array([True, False]), i64(0, 1, 1), np.array([False, True, False])
    for reduction, expected in {"sum": [True, True], "max": [True, True], "prod": [False, False]}.items():
        assert elements_12(data, indices, updates, i64(0), reduction=reduction).tolist() == expected
    assert elements_12(data, indices, updates, i64(0), reduction="min").tolist() == [False, False]
    assert elements_12(data, indices, updates, i64(0), reduction="none").tolist() == [False, False]
    got = elements_12(data, i64(1, 1), np.array([True, True]), i64(0), reduction="prod", use_init_val=False)
    assert got.tolist() == [True, True]


def test_scatterelementsupdate_minimum_of_infinity_and_of_nan():
    data = f32([-2, 1])
    got = elements_12(data, i64(0), f32([np.inf]), i64(0), reduction="min", use_init_val=False)
    assert got.tolist() == [np.inf, 1]
    for order in ([np.nan, 1], [1, np.nan]):
        got = elements_12(data, i64(0, 0), f32(order), i64(0), reduction="max")
        assert np.isnan(got[0])


def test_scatterelementsupdate_leaves_untouched_cells_without_the_initial_value():
    got = elements_12(f32([5, 6, 7]), i64(1), f32([1]), i64(0), reduction="mean", use_init_val=False)
    assert got.tolist() == [5, 1, 7]


def test_scatterelementsupdate_none_ignores_use_init_val():
    assert elements_12(i64(1, 2), i64(1), i64(5), i64(0), use_init_val=False).tolist() == [1, 5]


def test_scatterelementsupdate_moves_strings():
    assert elements_12(np.array(["a", "b"]), i64(0), np.array(["long"]), i64(0)).tolist() == ["long", "b"]


@pytest.mark.parametrize(
    ("shape", "indices", "axis"),
    [
        ((400, 500), (300, 500), 0),
        ((400, 500), (400, 350), 0),
        ((400, 500), (300, 700), 1),
        ((90, 50, 40), (90, 60, 33), 1),
        ((90, 50, 40), (100, 50, 40), 0),
        ((9000,), (150_000,), 0),
    ],
)
def test_scatterelementsupdate_the_last_of_many_updates_wins(shape, indices, axis):
    data = random.standard_normal(shape).astype(np.float32)
    places = random.integers(0, shape[axis], indices)
    updates = random.standard_normal(indices).astype(np.float32)
    expected = data.copy()
    for number in range(indices[axis]):
        part = tuple(slice(number, number + 1) if i == axis else slice(None) for i in range(len(shape)))
        window = expected[tuple(slice(None) if i == axis else slice(size) for i, size in enumerate(indices))]
        np.put_along_axis(window, places[part], updates[part], axis)
    for order in ("C", "F"):
        arrays = [np.asarray(array, order=order) for array in (data, places, updates)]
        np.testing.assert_array_equal(elements_3(*arrays, i64(axis)), expected)


def test_scatterelementsupdate_of_nothing():
    empty = np.zeros((0, 3), np.float32)
    assert elements_3(empty, np.zeros((0, 2), np.int64), empty[:, :2], i64(0)).shape == (0, 3)
    got = elements_3(f32([1, 2]), np.zeros(0, np.int64), f32([]), i64(0))
    assert got.tolist() == [1, 2]


def test_scatterelementsupdate_3_c1_axis_outside_the_rank():
    refuses(elements_3, "C1", "`axis` is 1, outside [-1, 1) for rank 1", f32([1, 2]), i64(0), f32([1]), i64(1))
    refuses(elements_3, "C1", "`axis` is -2, outside [-1, 1) for rank 1", f32([1, 2]), i64(0), f32([1]), i64(-2))


def test_scatterelementsupdate_3_c1_scalar_data():
    refuses(elements_3, "C1", "`axis` is 0, outside [0, 0) for rank 0", f32(1), np.array(0), f32(1), i64(0))


def test_scatterelementsupdate_3_c2_ranks_differ():
    message = "`indices` and `updates` have rank 1, but `data` has rank 2"
    refuses(elements_3, "C2", message, f32([[1, 2]]), i64(0), f32([1]), i64(1))


def test_scatterelementsupdate_3_c3_more_updates_than_data_off_the_axis():
    message = "dimension 0 is 3 in `indices`, but 2 in `data`"
    data, indices, updates = np.zeros((2, 2), np.float32), np.zeros((3, 1), np.int64), np.ones((3, 1), np.float32)
    refuses(elements_3, "C3", message, data, indices, updates, i64(1))
    assert elements_3(data, indices, updates, i64(0)).tolist() == [[1, 0], [0, 0]]


def test_scatterelementsupdate_3_c4_index_outside_or_negative():
    data, updates = np.zeros((2, 3), np.float32), np.zeros((2, 2), np.float32)
    for wrong in (3, -1):
        message = f"`indices[1, 0]` is {wrong}, outside [0, 3)"
        refuses(elements_3, "C4", message, data, i64([0, 2], [wrong, 0]), updates, i64(1))


def test_scatterelementsupdate_3_c4_negative_index_where_the_size_is_unknown():
    with pytest.raises(Violation, match=r"`indices\[0\]` is -1, outside \[0, \?\)"):
        infers(elements_3, (fresh(),), i64(-1), (1,), i64(0))


def test_scatterelementsupdate_updates_of_another_shape_or_type():
    with pytest.raises(Violation, match=r"`indices` is \[2\] in `updates`, but \[1\] in `indices`") as error:
        elements_3(f32([1, 2]), i64(0), f32([1, 2]), i64(0))
    assert error.value.label == "E304"
    with pytest.raises(Violation, match="`updates` is i64, but `data` is f32") as error:
        elements_12(f32([1, 2]), i64(0), i64(1), i64(0))
    assert error.value.label == "E303"
    with pytest.raises(Violation, match=r"`axis` has a dimension of 2, expected 1"):
        elements_3(f32([1, 2]), i64(0), f32([1]), i64(0, 0))


def test_scatterelementsupdate_12_c1_axis_outside_the_rank():
    refuses(elements_12, "C1", "`axis` is 2, outside [-2, 2) for rank 2", f32([[1]]), i64([0]), f32([[1]]), i64(2))


def test_scatterelementsupdate_12_c2_ranks_differ():
    message = "`indices` and `updates` have rank 2, but `data` has rank 1"
    refuses(elements_12, "C2", message, f32([1, 2]), i64([0]), f32([[1]]), i64(0))


def test_scatterelementsupdate_12_c3_more_updates_than_data_off_the_axis():
    message = "dimension 0 is 3 in `indices`, but 2 in `data`"
    indices, updates = np.zeros((3, 1), np.int64), np.zeros((3, 1), np.float32)
    refuses(elements_12, "C3", message, np.zeros((2, 2), np.float32), indices, updates, i64(1))


def test_scatterelementsupdate_12_c4_index_outside_the_axis():
    data, updates = np.zeros((2, 3), np.float32), np.zeros((2, 2), np.float32)
    for wrong in (3, -4):
        message = f"`indices[0, 1]` is {wrong}, outside [-3, 3)"
        refuses(elements_12, "C4", message, data, i64([-3, wrong], [0, 0]), updates, i64(1), reduction="sum")


def test_scatterelementsupdate_12_c5_mean_of_booleans():
    message = "`reduction` is mean for elements of type boolean"
    refuses(elements_12, "C5", message, np.array([True]), i64(0), np.array([True]), i64(0), reduction="mean")


def test_scatterelementsupdate_12_c5_sum_of_strings():
    message = "`reduction` is sum for elements of type string"
    refuses(elements_12, "C5", message, np.array(["a"]), i64(0), np.array(["b"]), i64(0), reduction="sum")


@pytest.mark.parametrize("op", [elements_3, elements_12], ids=["3", "12"])
def test_scatterelementsupdate_infers_what_is_known(op):
    batch, size = fresh(), fresh()
    indices, updates = Tensor("i64", (fresh(), fresh())), (fresh(), fresh())
    assert same(shape_of(op, (batch, size), indices, updates, UNKNOWN_INDEX), (batch, size))
    assert len(shape_of(op, UNKNOWN_RANK, indices, updates, i64(1))) == 2
    assert shape_of(op, UNKNOWN_RANK, Tensor("i64", None), UNKNOWN_RANK, i64(1)) is None
    assert shape_of(op, (2, 3), Tensor("i64", None), UNKNOWN_RANK, i64(1)) == (2, 3)
    assert not infers(op, (2, 3), Tensor("i64", (1, 3)), (1, 3), i64(0)).complete
    assert infers(op, (2, 3), i64([0, 1, 1]), (1, 3), i64(0)).complete


def test_scatterelementsupdate_computes_on_dimensions():
    size = fresh()
    got = elements_12.kernel(i64(1, 2), i64(1), np.array([size], object), i64(0), **elements_12.defaults)
    assert got.tolist() == [1, size]


# ScatterUpdate


def test_scatterupdate_example_of_the_specification():
    data = f32([[-1, 1, -1, 3, 4], [-1, 6, -1, 8, 9], [-1, 11, 1, 13, 14]])
    got = scatter_update(data, i64(0, 2), f32([[1, 1], [1, 1], [1, 2]]), i64(1))
    assert got.tolist() == [[1, 1, 1, 3, 4], [1, 6, 1, 8, 9], [1, 11, 2, 13, 14]]


@pytest.mark.parametrize(
    ("shape", "indices", "axis"), [((3,), (), 0), ((4, 3), (2, 2), 0), ((2, 4, 3), (3, 1), 1), ((2, 3, 4), (5,), -1)]
)
def test_scatterupdate_agrees_with_a_slow_loop(shape, indices, axis):
    data = random.standard_normal(shape).astype(np.float32)
    places = random.integers(0, shape[axis], indices)
    axis %= len(shape)
    updates = random.standard_normal((*shape[:axis], *indices, *shape[axis + 1 :])).astype(np.float32)
    expected = data.copy()
    for place in np.ndindex(indices):
        before, after = (slice(None),) * axis, (slice(None),) * (len(shape) - axis - 1)
        expected[(*before, places[place], *after)] = updates[(*before, *place, *after)]
    np.testing.assert_array_equal(scatter_update(data, places, updates, np.array(axis)), expected)
    turned = np.asfortranarray(data), np.asfortranarray(places), np.asfortranarray(updates)
    np.testing.assert_array_equal(scatter_update(*turned, np.array(axis)), expected)


def test_scatterupdate_3_c1_axis_outside_the_rank():
    refuses(scatter_update, "C1", "`axis` is 1, outside [-1, 1) for rank 1", f32([1]), i64(0), f32([1]), i64(1))


def test_scatterupdate_3_c1_scalar_data():
    message = "`axis` is an axis of a scalar, which has none"
    assert broken(scatter_update, (), UNKNOWN_INDICES, UNKNOWN_RANK, UNKNOWN_INDEX) == ("C1", message)


def test_scatterupdate_3_c1_axis_where_only_the_rank_of_data_is_known():
    message = "`axis` is 2, outside [-2, 2) for rank 2"
    assert broken(scatter_update, (2, 3), UNKNOWN_INDICES, UNKNOWN_RANK, i64(2)) == ("C1", message)
    assert shape_of(scatter_update, (2, 3), UNKNOWN_INDICES, UNKNOWN_RANK, i64(1)) == (2, 3)


def test_scatterupdate_3_c2_updates_of_the_wrong_shape():
    message = "`updates` is [2, 3], expected [2, 1]"
    refuses(scatter_update, "C2", message, np.zeros((2, 3)), i64(0), np.zeros((2, 3)), i64(1))


def test_scatterupdate_3_c3_index_outside_or_negative():
    refuses(scatter_update, "C3", "`indices[0]` is 2, outside [0, 2)", f32([1, 2]), i64(2), f32([1]), i64(0))
    refuses(scatter_update, "C3", "`indices[0]` is -1, outside [0, 2)", f32([1, 2]), i64(-1), f32([1]), i64(0))


def test_scatterupdate_computes_on_dimensions():
    size = fresh()
    assert scatter_update.kernel(i64(1, 2), i64(0), np.array([size], object), i64(0)).tolist() == [size, 2]


# ScatterNDUpdate

BLOCKS = [[[1, 2, 3, 4], [5, 6, 7, 8], [8, 7, 6, 5], [4, 3, 2, 1]]] * 2
BLOCKS += [[[8, 7, 6, 5], [4, 3, 2, 1], [1, 2, 3, 4], [5, 6, 7, 8]]] * 2
FIVES = [[[n] * 4 for n in (5, 6, 7, 8)], [[n] * 4 for n in (1, 2, 3, 4)]]


@pytest.mark.parametrize("op", [scatter_nd_3, scatter_nd_15], ids=["3", "15"])
def test_scatterndupdate_examples_of_the_specification(op):
    got = op(np.arange(1, 9), i64([4], [3], [1], [7]), i64(9, 10, 11, 12))
    assert got.tolist() == [1, 11, 3, 10, 9, 6, 7, 12]
    got = op(np.array(BLOCKS), i64([0], [2]), np.array(FIVES))
    assert got.tolist() == [FIVES[0], BLOCKS[1], FIVES[1], BLOCKS[3]]


def test_scatterndupdate_15_examples_of_the_specification():
    data, places, updates = i64(1, 2, 3, 4), i64([0], [2], [-3], [-3], [0]), i64(10, 20, 30, 40, 50)
    expected = {"none": [50, 40, 20, 4], "sum": [61, 72, 23, 4], "sub": [-59, -68, -17, 4], "prod": [500, 2400, 60, 4]}
    for reduction, values in expected.items():  # for prod the page prints 3600 and 40, as if 2 and 3 changed places
        assert scatter_nd_15(data, places, updates, reduction=reduction).tolist() == values
    got = scatter_nd_15(np.arange(1, 9), i64([4], [3], [1], [7], [-2], [-4]), np.arange(9, 15))
    assert got.tolist() == [1, 11, 3, 10, 14, 6, 13, 12]


@pytest.mark.parametrize("reduction", ["none", "sum", "sub", "prod", "min", "max"])
@pytest.mark.parametrize(
    ("shape", "places"), [((5,), (7, 1)), ((3, 2, 2), (4, 1)), ((3, 2, 2), (2, 3, 2)), ((2, 3), (3, 0))]
)
def test_scatterndupdate_15_agrees_with_a_slow_loop(reduction, shape, places):
    data = random.integers(-3, 4, shape).astype(np.float32)
    length = places[-1]
    indices = np.stack(
        [random.integers(-n, n, places[:-1]) for n in shape[:length]] or [np.zeros((0, *places[:-1]))], -1
    )
    indices = indices.astype(np.int32).reshape(places)
    updates = random.integers(-3, 4, (*places[:-1], *shape[length:])).astype(np.float32)
    expected = data.copy()
    slow = {**REDUCTIONS, "sub": np.subtract, "min": np.minimum, "max": np.maximum}[reduction]
    for place in np.ndindex(places[:-1]):
        target = tuple(indices[place])
        expected[target] = slow(expected[target], updates[place])
    np.testing.assert_array_equal(scatter_nd_15(data, indices, updates, reduction=reduction), expected)


def test_scatterndupdate_15_reduces_booleans():
    data, places = np.array([True, False, True]), i64([0], [1], [2])
    updates = np.array([True, True, False])
    for reduction, expected in {"sum": [1, 1, 1], "sub": [0, 1, 1], "prod": [1, 0, 0]}.items():
        assert scatter_nd_15(data, places, updates, reduction=reduction).tolist() == list(map(bool, expected))


def test_scatterndupdate_takes_one_element_for_a_scalar():
    assert scatter_nd_3(i64([1, 2], [3, 4]), i64(1, 0), i64(9)).tolist() == [[1, 2], [9, 4]]
    assert scatter_nd_3(i64([1, 2], [3, 4]), i64(1, 0), np.array(9)).tolist() == [[1, 2], [9, 4]]


@pytest.mark.parametrize("op", [scatter_nd_3, scatter_nd_15], ids=["3", "15"])
def test_scatterndupdate_names_the_place_of_an_index_outside(op):
    low = 0 if op is scatter_nd_3 else -2
    data = np.zeros((2, 2), np.float32)
    refuses(op, "C3", f"`indices[1, 0]` is 2, outside [{low}, 2)", data, i64([0, 0], [2, 0]), f32([1, 2]))


def test_scatterndupdate_3_c1_tuples_longer_than_the_rank():
    refuses(
        scatter_nd_3, "C1", "`indices` has tuples of 2, but `data` has 1 dimensions", f32([1]), i64([0, 0]), f32([1])
    )


def test_scatterndupdate_3_c2_updates_of_the_wrong_shape():
    refuses(scatter_nd_3, "C2", "`updates` is [2], expected [1]", f32([1]), i64([0]), f32([1, 2]))
    refuses(scatter_nd_3, "C2", "`updates` is [2], expected []", f32([1]), i64(0), f32([1, 2]))


def test_scatterndupdate_3_c3_negative_index():
    refuses(scatter_nd_3, "C3", "`indices[0, 0]` is -2, outside [0, 1)", f32([1]), i64([-2]), f32([1]))
    given = f32([[1, 2], [3, 4], [5, 6]]), i64([-1, -2], [0, -1]), f32([8, 9])
    assert tolerated(scatter_nd_3, *given) == ("C3", "`indices[0, 0]` is -1, outside [0, 3)")
    assert scatter_nd_3.kernel(*given).tolist() == [[1, 9], [3, 4], [8, 6]]


def test_scatterndupdate_15_c1_tuples_longer_than_the_rank():
    refuses(
        scatter_nd_15, "C1", "`indices` has tuples of 2, but `data` has 1 dimensions", f32([1]), i64([0, 0]), f32([1])
    )


def test_scatterndupdate_15_c2_updates_of_the_wrong_shape():
    refuses(scatter_nd_15, "C2", "`updates` is [1, 1], expected [1]", f32([1]), i64([0]), f32([[1]]))


def test_scatterndupdate_15_c3_index_outside_the_dimension():
    refuses(scatter_nd_15, "C3", "`indices[0, 0]` is -2, outside [-1, 1)", f32([1]), i64([-2]), f32([1]))


def test_scatterndupdate_15_c4_reduction_of_a_packed_type():
    four_bit = np.array([1], ml_dtypes.int4)
    refuses(
        scatter_nd_15, "C4", "`reduction` is sum for elements of type i4", four_bit, i64([0]), four_bit, reduction="sum"
    )


# Concat, Split, VariadicSplit


def test_concat_examples_of_the_specification():
    shapes = (1, 8, 50, 50), (1, 16, 50, 50), (1, 32, 50, 50)
    assert shape_of(concat, *shapes, axis=1) == (1, 56, 50, 50)
    assert shape_of(concat, *shapes, axis=-3) == (1, 56, 50, 50)
    assert concat(i64(1), i64(), i64(2, 3), axis=0).tolist() == [1, 2, 3]


def test_concat_sums_unknown_sizes_and_agrees_on_the_others():
    a, b, batch = fresh(), fresh(), fresh()
    assert same(shape_of(concat, (batch, a), (batch, b), axis=1), (batch, a + b))
    assert same(shape_of(concat, (batch, 2), (4, b), axis=1), (4, b + 2))
    got = shape_of(concat, (batch, 2), UNKNOWN_RANK, axis=1)
    assert same(got[:1], (batch,))
    assert got[1].low == 2
    assert shape_of(concat, UNKNOWN_RANK, UNKNOWN_RANK, axis=0) is None


def test_concat_computes_on_dimensions():
    size = fresh()
    assert concat.kernel(np.array([size], object), i64(-1), axis=0).tolist() == [size, -1]


def test_concat_1_c1_no_inputs():
    refuses(concat, "C1", "0 inputs, expected 1 or more", axis=0)


def test_concat_1_c2_scalars_and_ranks_that_differ():
    refuses(concat, "C2", "`inputs[0]` is a scalar, expected rank 1 or more", f32(1), f32(1), axis=0)
    refuses(concat, "C2", "`inputs[1]` has rank 2, but `inputs[0]` has rank 1", f32([1]), f32([[1]]), axis=0)


def test_concat_1_c3_axis_outside_the_rank():
    refuses(concat, "C3", "`axis` is 1, outside [-1, 1) for rank 1", f32([1]), axis=1)


def test_concat_1_c4_dimensions_differ_off_the_axis():
    refuses(concat, "C4", "dimension 1 is 1 in `inputs[1]`, but 2 before", f32([[1, 2]]), f32([[1]]), axis=0)


def test_split_example_of_the_specification():
    outputs = infers(split, (6, 12, 10, 24), np.array(1), num_splits=3).outputs
    assert [tensor.shape for tensor in outputs] == [(6, 4, 10, 24)] * 3
    parts = split(np.arange(6).reshape(2, 3), np.array(-1), num_splits=3)
    assert [part.tolist() for part in parts] == [[[0], [3]], [[1], [4]], [[2], [5]]]


def test_split_divides_an_unknown_size():
    size = fresh()
    assert same(shape_of(split, (2, size * 4), np.array(1), num_splits=2), (2, size * 2))
    outputs = infers(split, (size, 2), UNKNOWN_INDEX, num_splits=2).outputs
    assert [len(tensor.shape) for tensor in outputs] == [2, 2]
    assert [tensor.shape for tensor in infers(split, UNKNOWN_RANK, np.array(1), num_splits=2).outputs] == [None, None]


def test_split_1_c1_axis_outside_the_rank():
    refuses(split, "C1", "`axis` is 1, outside [-1, 1) for rank 1", f32([1, 2]), np.array(1), num_splits=2)


def test_split_1_c2_parts_do_not_divide_the_axis():
    message = "axis 0 has 3 elements, which 2 parts do not divide"
    refuses(split, "C2", message, f32([1, 2, 3]), np.array(0), num_splits=2)


def test_variadicsplit_examples_of_the_specification():
    outputs = infers(variadic_split, (6, 12, 10, 24), np.array(0), i64(1, 2, 3)).outputs
    assert [tensor.shape for tensor in outputs] == [(1, 12, 10, 24), (2, 12, 10, 24), (3, 12, 10, 24)]
    outputs = infers(variadic_split, (6, 12, 10, 24), np.array(0), i64(-1, 2)).outputs
    assert [tensor.shape for tensor in outputs] == [(4, 12, 10, 24), (2, 12, 10, 24)]


@pytest.mark.parametrize("lengths", [[3, 0, 1], [-1, 1, 1], [1, -1], [4], [-1], [4, -1], [0, -1, 4]])
def test_variadicsplit_gives_parts_of_their_lengths(lengths):
    data = np.arange(8).reshape(2, 4)
    parts = variadic_split(data, i64(1), np.array(lengths))
    rest = 4 - sum(n for n in lengths if n >= 0)
    assert [part.shape[1] for part in parts] == [rest if n < 0 else n for n in lengths]
    np.testing.assert_array_equal(np.concatenate(parts, 1), data)


def test_variadicsplit_infers_unknown_sizes():
    size, length = fresh(), fresh()
    outputs = infers(variadic_split, (size,), np.array(0), i64(3, -1)).outputs
    assert outputs[0].shape == (3,)
    assert same(outputs[1].shape, (size - 3,))
    outputs = infers(variadic_split, (size,), np.array(0), dims(length, -1)).outputs
    assert same(outputs[0].shape, (length,))
    assert len(infers(variadic_split, (size,), np.array(0), Tensor("i64", (3,))).outputs) == 3
    outputs = infers(variadic_split, UNKNOWN_RANK, np.array(0), i64(3, -1)).outputs
    assert [tensor.shape for tensor in outputs] == [None, None]


def test_variadicsplit_1_c1_axis_outside_the_rank():
    refuses(variadic_split, "C1", "`axis` is 1, outside [-1, 1) for rank 1", f32([1]), i64(1), i64(1))


def test_variadicsplit_1_c2_lengths_that_are_none():
    message = "`split_lengths[1]` is -2, expected -1 or more"
    refuses(variadic_split, "C2", message, f32([1]), i64(0), i64(1, -2))
    message = "`split_lengths[2]` is -1, but so is `split_lengths[0]`"
    refuses(variadic_split, "C2", message, f32([1]), i64(0), i64(-1, 0, -1))


def test_variadicsplit_1_c3_lengths_do_not_add_up():
    refuses(variadic_split, "C3", "the lengths leave 1 of the 3 elements of axis 0", f32([1, 2, 3]), i64(0), i64(1, 1))
    refuses(
        variadic_split, "C3", "the lengths leave -1 of the 3 elements of axis 0", f32([1, 2, 3]), i64(0), i64(4, -1)
    )


# Slice


@pytest.mark.parametrize(
    ("start", "stop", "step", "expected"),
    [
        (1, 8, 1, [1, 2, 3, 4, 5, 6, 7]),
        (1, 8, 2, [1, 3, 5, 7]),
        (-100, 100, 1, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (9, -11, -1, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
        (9, 0, -1, [9, 8, 7, 6, 5, 4, 3, 2, 1]),
        (9, -10, -1, [9, 8, 7, 6, 5, 4, 3, 2, 1]),
        (9, -11, -2, [9, 7, 5, 3, 1]),
        (100, -100, -1, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
        (9, LONG_MIN, -1, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
        (LONG_MAX, INT_MIN, -3, [9, 6, 3, 0]),
        (5, 5, 1, []),
        (7, 3, 1, []),
        (-3, LONG_MAX, LONG_MAX, [7]),
    ],
)
def test_slice_examples_of_the_specification(start, stop, step, expected):
    bounds = i64(start), i64(stop), i64(step)
    assert slice_8(np.arange(10), *bounds, i64(0)).tolist() == expected
    assert slice_8(np.arange(10), *bounds).tolist() == expected
    assert shape_of(slice_8, (10,), *bounds) == (len(expected),)


def test_slice_of_several_axes():
    data = np.arange(10).reshape(2, 5)
    assert slice_8(data, i64(0, 1), i64(2, 4), i64(1, 2), i64(0, 1)).tolist() == [[1, 3], [6, 8]]
    assert slice_8(data, i64(1), i64(9), i64(3), i64(-1)).tolist() == [[1, 4], [6, 9]]
    assert shape_of(slice_8, (20, 10, 5), i64(0, 0), i64(4, 10), i64(1, 1)) == (4, 10, 5)


def test_slice_infers_every_length_that_python_gives():
    size = fresh(0, 6)
    bounds = (-7, -6, -2, -1, 0, 1, 3, 6, 7)
    for start in (*bounds, LONG_MIN, LONG_MAX):
        for stop in (*bounds, INT_MAX, INT_MIN):
            for step in (1, 2, -1, -3):
                (inferred,) = shape_of(slice_8, (size,), i64(start), i64(stop), i64(step))
                for n in range(7):
                    length = len(range(n)[start:stop:step])
                    assert lies_in((length,), (inferred,)), (start, stop, step, n, inferred)
                    assert shape_of(slice_8, (n,), i64(start), i64(stop), i64(step)) == (length,)


def test_slice_keeps_the_identity_of_a_dimension():
    size = fresh()
    for stop in (INT_MAX, LONG_MAX):
        assert same(shape_of(slice_8, (size,), i64(0), i64(stop), i64(1)), (size,))
    assert same(shape_of(slice_8, (size,), i64(-1), i64(INT_MIN), i64(-1)), (size,))
    assert same(shape_of(slice_8, (size,), dims(0), dims(size), i64(1)), (size,))
    big = fresh(8)
    assert same(shape_of(slice_8, (big,), i64(1), i64(INT_MAX), i64(1)), (big - 1,))
    assert same(shape_of(slice_8, (big,), i64(0), i64(-2), i64(1)), (big - 2,))
    assert shape_of(slice_8, (big,), i64(2), i64(7), i64(1)) == (5,)
    assert shape_of(slice_8, (big,), i64(-3), i64(LONG_MAX), i64(1)) == (3,)


@pytest.mark.parametrize("step", [1, 2, -1])
@pytest.mark.parametrize("start", [0, 2, -3])
def test_slice_knows_what_is_left_without_padding_that_there_may_be_none_of(start, step):
    size = fresh(1)
    padding = -size % 4
    (length,) = shape_of(slice_8, (size + 5,), i64(start), dims(-padding), i64(step))
    for number in range(1, 20):
        left = range(number + 5)[slice(start, -(-number % 4), step)]
        assert Evaluation.of([(size,)], [(number,)]).size(length) == len(left)


def test_slice_bounds_what_it_cannot_know():
    size = fresh()
    first = shape_of(slice_8, (size,), i64(1), i64(INT_MAX), i64(1))
    assert (first[0].low, first[0].high) == (0, None)
    (some,) = shape_of(slice_8, (size,), i64(0), i64(3), i64(1))
    assert (some.low, some.high) == (0, 3)
    for stop, most in ((3, 3), (9, 7), (-1, 7), (INT_MAX, 7)):
        (unknown,) = shape_of(slice_8, (7,), Tensor("i64", (1,)), i64(stop), i64(1))
        assert (unknown.low, unknown.high) == (0, most)
    shape = shape_of(slice_8, (7, 2), i64(0), i64(1), i64(1), Tensor("i64", (1,)))
    assert [size.high for size in shape] == [7, 2]


@pytest.mark.parametrize(
    ("start", "stop", "step", "most"),
    [
        *[(1, 9, 1, 8), (1, 9, 3, 3), (-9, -1, 2, 4), (-3, 9, 1, 3), (-9, 2, 1, 2), (5, 2, 1, 0), (2, -1, 1, None)],
        *[(9, 1, -1, 8), (-1, -9, -3, 3), (3, -9, -1, 4), (9, -3, -1, 2), (LONG_MAX, LONG_MIN, -1, None)],
        *[(LONG_MIN, LONG_MAX, 1, None), (-4, LONG_MAX, 1, 4), (-4, LONG_MAX, 3, 2)],
    ],
)
def test_a_slice_of_an_unknown_size_has_at_most_as_many_elements_as_lie_between_its_bounds(start, stop, step, most):
    (length,) = shape_of(slice_8, (fresh(),), i64(start), i64(stop), i64(step))
    assert (length if isinstance(length, int) else length.high) == most


def test_a_slice_between_margins_lacks_both():
    (length,) = shape_of(slice_8, (fresh(1, 200),), i64(5), i64(-2), i64(1))
    assert length.high == 193
    (length,) = shape_of(slice_8, (fresh(1, 200),), i64(-2), i64(5), i64(-2))
    assert length.high == 97


def test_the_end_of_an_axis_is_as_long_as_asked_for_or_all_of_it():
    size = fresh(2, 5)
    (length,) = shape_of(slice_8, (size,), i64(-3), i64(LONG_MAX), i64(1))
    assert (length.low, length.high) == (2, 3)
    assert same((length,), shape_of(slice_8, (size,), i64(0), i64(3), i64(1)))


def test_slice_returns_a_view():
    data = np.arange(10)
    assert np.shares_memory(slice_8(data, i64(1), i64(8), i64(2)), data)


def test_slice_computes_on_dimensions():
    size = fresh()
    assert slice_8.kernel(np.array([1, size], object), i64(1), i64(LONG_MAX), i64(1)).tolist() == [size]


def test_slice_8_c1_step_of_zero():
    refuses(slice_8, "C1", "`step[1]` is 0", np.zeros((2, 2)), i64(0, 0), i64(1, 1), i64(1, 0))


def test_slice_8_c2_axis_outside_the_rank():
    refuses(slice_8, "C2", "`axes[0]` is 1, outside [-1, 1) for rank 1", f32([1]), i64(0), i64(1), i64(1), i64(1))
    refuses(slice_8, "C2", "`axes[1]` is 1, outside [-1, 1) for rank 1", f32([1]), i64(0, 0), i64(1, 1), i64(1, 1))


def test_slice_8_c3_axis_twice():
    message = "`axes[1]` is axis 1 of `data` once more"
    refuses(slice_8, "C3", message, np.zeros((2, 2)), i64(0, 0), i64(1, 1), i64(1, 1), i64(1, -1))


@pytest.mark.parametrize("count", [3, fresh(3, 5)])
def test_slice_8_c3_more_slices_than_dimensions(count):
    bounds = [Tensor("i64", (count,))] * 4
    message = f"`start` has {count} slices, but `data` has 2 dimensions"
    assert broken(slice_8, (2, 2), *bounds) == ("C3", message)
    assert broken(slice_8, (2, 2), *[Tensor("i64", (fresh(),))] * 3, bounds[3]) == ("C3", message)
    assert len(shape_of(slice_8, (2, 2), *[Tensor("i64", (fresh(2),))] * 4)) == 2


def test_slicescatter_examples_of_the_specification():
    data = np.arange(10).reshape(2, 5)
    got = slice_scatter(data, i64([10, 20, 30, 40, 50]), i64(0), i64(1), i64(1), i64(0))
    assert got.tolist() == [[10, 20, 30, 40, 50], [5, 6, 7, 8, 9]]
    got = slice_scatter(data, i64([10, 20, 30], [40, 50, 60]), i64(-25), i64(25), i64(2), i64(1))
    assert got.tolist() == [[10, 1, 20, 3, 30], [40, 6, 50, 8, 60]]
    got = slice_scatter(np.arange(15).reshape(3, 5), i64([50, 60], [70, 80]), i64(0, 1), i64(3, 5), i64(2, 2))
    assert got.tolist() == [[0, 50, 2, 60, 4], [5, 6, 7, 8, 9], [10, 70, 12, 80, 14]]
    assert data.tolist() == np.arange(10).reshape(2, 5).tolist()


def test_slicescatter_15_c1_step_of_zero():
    refuses(slice_scatter, "C1", "`step[0]` is 0", f32([1]), f32([1]), i64(0), i64(1), i64(0))


def test_slicescatter_15_c2_axis_outside_the_rank():
    message = "`axes[0]` is -2, outside [-1, 1) for rank 1"
    refuses(slice_scatter, "C2", message, f32([1]), f32([1]), i64(0), i64(1), i64(1), i64(-2))


def test_slicescatter_15_c3_axis_twice():
    message = "`axes[1]` is axis 0 of `data` once more"
    refuses(slice_scatter, "C3", message, f32([1]), f32([1]), i64(0, 0), i64(1, 1), i64(1, 1), i64(0, 0))


def test_slicescatter_15_c4_updates_of_the_wrong_shape():
    message = "`updates` is [3], expected [2]"
    refuses(slice_scatter, "C4", message, f32([1, 2, 3]), f32([1, 2, 3]), i64(1), i64(9), i64(1))


def test_slicescatter_15_c3_more_slices_than_dimensions():
    message = "`start` has 3 slices, but `data` has 2 dimensions"
    assert broken(slice_scatter, (2, 2), (2, 2), *[Tensor("i64", (3,))] * 4) == ("C3", message)


def test_slicescatter_15_c4_updates_longer_than_the_data_whatever_the_axes_are():
    bounds = [i64(0), i64(2), i64(1), Tensor("i64", (1,))]
    message = "`updates` is [5, 4], expected [0..4, 0..4]"
    assert broken(slice_scatter, (4, 4), (5, 4), *bounds) == ("C4", message)
    assert shape_of(slice_scatter, (4, 4), (2, 4), *bounds) == (4, 4)


@pytest.mark.parametrize("shape", [(4, 4), "..."])
@pytest.mark.parametrize("axis", [np.array(0), "i64"])
def test_split_has_as_many_outputs_as_num_splits_says(shape, axis, tmp_path):
    model = Model()
    x = model.parameter("x", "f32", shape)
    along = model.parameter("axis", axis, ()) if isinstance(axis, str) else model.constant(axis)
    for output in model.layer("Split", [x, along], [("f32", (2, 4))] * 3, num_splits="2"):
        model.result(output)
    assert [(e.code, e.message) for e in validate(model.save(tmp_path)).errors] == [
        ("E302", "Split-1 declares 3 outputs, expected 2")
    ]


@pytest.mark.parametrize("shape", [(4, 4), "..."])
@pytest.mark.parametrize("lengths", [i64(2, 2), (2,), ("?",)])
def test_variadicsplit_has_as_many_outputs_as_there_are_lengths(shape, lengths, tmp_path):
    model = Model()
    x, axis = model.parameter("x", "f32", shape), model.parameter("axis", "i64", ())
    parts = model.constant(lengths) if isinstance(lengths, np.ndarray) else model.parameter("parts", "i64", lengths)
    for output in model.layer("VariadicSplit", [x, axis, parts], [("f32", (2, 4))] * 3):
        model.result(output)
    found = [(e.code, e.message) for e in validate(model.save(tmp_path)).errors]
    expected = [("E302", "VariadicSplit-1 declares 3 outputs, expected 2")]
    assert found == ([] if parts[3] == (-1,) else expected)


# StridedSlice


def masks(begin=(), end=(), new=(), shrink=(), ellipsis=()):
    """The masks, filled up with zeros to the length of the longest."""
    names = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
    given = (begin, end, new, shrink, ellipsis)
    count = max(map(len, given))
    return {name: (*mask, *[0] * (count - len(mask))) for name, mask in zip(names, given, strict=True)}


@pytest.mark.parametrize(
    ("shape", "begin", "end", "stride", "attrs", "expected"),
    [
        ((2, 3, 4), (0, 0, 0), (2, 2, -1), (1, 1, 1), masks(), np.s_[0:2, 0:2, 0:-1]),
        ((2, 3, 4), (1, 1, 123), (0, 0, 2), (1, 1, -1), masks((0, 1, 1), (1, 1, 1)), np.s_[1:, :, ::-1]),
        (
            (2, 4),
            (1234, 0, -1, 0),
            (1234, 2, 9876, 4),
            (132, 1, 241, 1),
            masks(new=(1, 0, 1)),
            np.s_[None, 0:2, None, 0:4],
        ),
        ((1, 2, 3, 4, 5), (0, 0, 0, 0, 0), (1, 0, 3, 4, 5), (1, 1, 1, 1, 1), masks(shrink=(0, 1)), np.s_[0:1, 0]),
        ((4, 2, 1, 3, 5), (0, 0, 0), (3, 0, 2), (1, -1, 1), masks(ellipsis=(0, 1, 0)), np.s_[0:3, ..., 0:2]),
        (
            (4, 2, 3, 5),
            (2, 1, 10, 10),
            (123, 1, 10, 3),
            (1, -1, 1, 1),
            masks((0, 0, 1, 1), (1, 1, 0, 0), (0, 0, 1), (0,), (0, 1)),
            np.s_[2:, ..., None, :3],
        ),
        ((4, 4), (0, 3), (4, 0), (2, -2), masks(), np.s_[0:4:2, 3:0:-2]),
        ((4, 3), (-1, 0), (0, 0), (0, 1), masks((), (0, 1), (), (1,)), np.s_[-1, :]),
        ((4, 3), (2, 1), (0, 0), (1, 1), masks((1, 0), (), (), (1, 1)), np.s_[0, 1]),
        ((4, 3), (0, 1), (1, 3), (1, 1), masks(new=(1,), shrink=(1,)), np.s_[None, 1:3]),
        ((2, 2), (0, 0, 1), (1, 0, 2), (1, 1, 1), masks(ellipsis=(0, 1)), np.s_[0:1, ..., 1:2]),
        ((2, 2), (0, 1), (1, 2), (1, 1), masks(new=(1,), ellipsis=(1,)), np.s_[..., 1:2]),
        ((5,), (1,), (1,), (1,), masks(), np.s_[1:1]),
        ((0, 2), (0,), (5,), (1,), masks(), np.s_[0:5]),
        ((3,), (), (), (), masks(), np.s_[...]),
        ((), (), (), (), masks(), np.s_[...]),
        ((), (0,), (0,), (1,), masks(new=(1,)), np.s_[None]),
        ((2, 4), (-3, -9), (-(2**31), -5), (-1, -2), masks(), np.s_[:1, :1]),  # a begin before the first is the first
        ((2, 4), (-(2**31), -1), (7, -9), (-1, -3), masks(end=(1, 0)), np.s_[:1, ::-3]),
        ((3, 0), (-9, -9), (-9, -9), (1, -1), masks(), np.s_[:0]),
        ((2, 1, 5), (0, -7), (0, -8), (1, -1), masks(ellipsis=(1, 0)), np.s_[..., :1]),
    ],
)
def test_stridedslice_is_pythons(shape, begin, end, stride, attrs, expected):
    data = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    arrays = [np.array(part, np.int64) for part in (begin, end, stride)]
    got = strided_slice(data, *arrays, **attrs)
    np.testing.assert_array_equal(got, data[expected])
    assert isinstance(got, np.ndarray)
    assert shape_of(strided_slice, shape, *arrays, **attrs) == data[expected].shape
    unknown = shape_of(strided_slice, tuple(fresh() for _ in shape), *arrays, **attrs)
    assert lies_in(data[expected].shape, unknown)


def test_stridedslice_has_a_stride_of_one():
    assert strided_slice(i64(1, 2, 3), i64(1), i64(3), **masks()).tolist() == [2, 3]


def test_stridedslice_infers_unknown_dimensions():
    batch, size = fresh(), fresh()
    ones = i64(1, 1)
    got = shape_of(strided_slice, (batch, size, 7), i64(0, 0), i64(0, 0), ones, **masks((1, 1), (1, 1)))
    assert same(got, (batch, size, 7))
    assert same(
        shape_of(strided_slice, (batch, size), i64(0, 2), i64(0, 3), ones, **masks((1,), (1,), (), (0, 1))), (batch,)
    )
    got = shape_of(strided_slice, (batch, 7), dims(0, fresh(0)), dims(size, 5), ones, **masks((1,), (0,)))
    assert (got[1].low, got[1].high) == (0, 5)
    assert shape_of(strided_slice, UNKNOWN_RANK, i64(0), i64(1), i64(1), **masks()) is None
    some = Tensor("i64", (fresh(),))
    got = shape_of(strided_slice, (batch, 7), some, some, some, **masks())
    assert [(size.low, size.high) for size in got] == [(0, None), (0, 7)]
    assert shape_of(strided_slice, (batch, 7), some, some, some, **masks((1,), (1,), (), (1,))) is None


def test_stridedslice_takes_one_dimension_out_of_a_shape():
    size = fresh()
    got = strided_slice.kernel(np.array([2, size], object), i64(1), i64(2), i64(1), **masks(shrink=(1,)))
    assert got.shape == ()
    assert got.item() is size


def test_stridedslice_1_c1_stride_of_zero():
    refuses(strided_slice, "C1", "`stride[0]` is 0", f32([1, 2]), i64(0), i64(1), i64(0), **masks())


def test_stridedslice_1_c2_more_slices_than_dimensions():
    message = "`begin` has 2 slices for 1 dimensions"
    refuses(strided_slice, "C2", message, f32([1]), i64(0, 0), i64(1, 1), i64(1, 1), **masks())


def test_stridedslice_1_c3_two_ellipses():
    message = "`ellipsis_mask` has 2 ones, expected one at most"
    refuses(strided_slice, "C3", message, f32([1]), i64(0, 0), i64(1, 1), i64(1, 1), **masks(ellipsis=(1, 1)))


def test_stridedslice_1_c4_removed_dimension_has_no_such_element():
    message = "`begin[0]` is 7, outside [-2, 2)"
    refuses(strided_slice, "C4", message, f32([1, 2]), i64(7), i64(8), i64(1), **masks(shrink=(1,)))


@pytest.mark.parametrize("name", ["end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask"])
@pytest.mark.parametrize("values", [(0,), (0, 0, 0)])
def test_stridedslice_1_c5_masks_of_different_lengths(name, values):
    message = f"`{name}` has {len(values)} values, but `begin_mask` 2"
    given = {**masks((0, 0)), name: values}
    refuses(strided_slice, "C5", message, f32([[1, 2]]), i64(0, 0), i64(1, 1), i64(1, 1), **given)


def test_stridedslice_takes_masks_without_values():
    nothing = dict.fromkeys(("end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask"), ())
    got = strided_slice(i64(1, 2, 3), i64(1), i64(3), begin_mask=(1,), **nothing)
    assert got.tolist() == [1, 2, 3]


# Broadcast and Tile


@pytest.mark.parametrize("op", [broadcast_1, broadcast_3], ids=["1", "3"])
def test_broadcast_examples_of_the_specification(op):
    assert shape_of(op, (16, 1, 1), i64(1, 16, 50, 50)) == (1, 16, 50, 50)
    assert shape_of(op, (16,), i64(1, 16, 50, 50), i64(1), mode="explicit") == (1, 16, 50, 50)
    assert shape_of(op, (50, 50), i64(1, 50, 50, 16), i64(1, 2), mode="explicit") == (1, 50, 50, 16)


def test_broadcast_3_is_bidirectional():
    assert shape_of(broadcast_3, (16, 1, 1), i64(1, 1, 50, 50), mode="bidirectional") == (1, 16, 50, 50)
    got = broadcast_3(np.array([[[1], [2]]]), i64(3), mode="bidirectional")
    assert got.tolist() == [[[1, 1, 1], [2, 2, 2]]]


def test_broadcast_repeats_the_data():
    data = np.array([[1], [2]])
    assert broadcast_3(data, i64(2, 2, 2)).tolist() == [[[1, 1], [2, 2]]] * 2
    for mode in ("explicit", "none"):
        got = broadcast_1(data, i64(2, 3, 1), i64(0, 2), mode=mode)
        assert got.tolist() == [[[1], [1], [1]], [[2], [2], [2]]]
    assert broadcast_3(np.array(True), i64()).tolist() is True
    assert broadcast_3(f32([1]), i64(0)).shape == (0,)


def test_broadcast_1_ignores_the_scalar_that_openvino_writes():
    assert broadcast_1(i64(1), i64(2), np.array(0, np.uint8)).tolist() == [1, 1]


def test_broadcast_infers_unknown_sizes():
    batch, size = fresh(), fresh()
    assert same(shape_of(broadcast_3, (1, 8), dims(batch, 8)), (batch, 8))
    assert same(shape_of(broadcast_3, (size, 8), dims(batch, 8)), (batch, 8))
    assert shape_of(broadcast_3, (5, 8), dims(batch, fresh(None))) == (5, 8)
    assert same(shape_of(broadcast_3, (1, 8), dims(batch, 1), mode="bidirectional"), (batch, 8))
    assert len(shape_of(broadcast_3, (1, 8), Tensor("i64", (3,)))) == 3
    assert shape_of(broadcast_3, (1, 8), Tensor("i64", (fresh(),))) is None


@pytest.mark.parametrize("op", [broadcast_1, broadcast_3], ids=["1", "3"])
def test_broadcast_to_more_than_it_fits(op):
    refuses(op, "C2", "`data` has rank 2, but `target_shape` has 1 sizes", f32([[1, 2]]), i64(2))
    refuses(op, "C3", "`axes_mapping` has 2 axes for data of rank 1", f32([1]), i64(2), i64(0, 1), mode="explicit")


def test_broadcast_1_c1_negative_size():
    refuses(broadcast_1, "C1", "`target_shape[1]` is -1, expected 0 or more", f32([1]), i64(2, -1))


def test_broadcast_1_c2_dimension_does_not_fit():
    refuses(broadcast_1, "C2", "dimension 0 of `data` is 2, which does not broadcast to 3", f32([1, 2]), i64(3))


def test_broadcast_1_c3_no_mapping():
    message = "`axes_mapping` is not connected, but `mode` is explicit"
    given = f32([1, 2]), i64(2, 2)
    assert tolerated(broadcast_1, *given, mode="explicit") == ("C3", message)
    assert broadcast_1.kernel(*given, mode="explicit").tolist() == [[1, 2], [1, 2]]


def test_broadcast_1_c4_axes_do_not_ascend():
    message = "`axes_mapping[1]` is 0, expected ascending axes in [0, 2)"
    refuses(broadcast_1, "C4", message, f32([[1, 2]]), i64(2, 1), i64(1, 0), mode="explicit")


def test_broadcast_3_c1_negative_size():
    refuses(broadcast_3, "C1", "`target_shape[0]` is -2, expected 0 or more", f32([1]), i64(-2))


def test_broadcast_3_c2_dimension_does_not_fit():
    message = "dimension 0 of `data` is 2, which does not broadcast to 3"
    refuses(broadcast_3, "C2", message, f32([1, 2]), i64(3), mode="bidirectional")
    refuses(broadcast_3, "C2", "dimension 0 of `data` is 2, which does not broadcast to 1", f32([1, 2]), i64(1))


def test_broadcast_3_c3_a_mapping_that_nothing_reads():
    for mode in ("numpy", "bidirectional"):
        message = f"`axes_mapping` is connected, but `mode` is {mode}"
        refuses(broadcast_3, "C3", message, i64(1, 2), i64(3, 2), i64(1), mode=mode)


def test_broadcast_3_c3_no_mapping():
    message = "`axes_mapping` is not connected, but `mode` is explicit"
    refuses(broadcast_3, "C3", message, f32([1, 2]), i64(2), mode="explicit")


def test_broadcast_3_c3_where_the_rank_of_data_is_unknown():
    target, mapping = Tensor("i64", (2,)), i64(0)
    for mode in ("numpy", "bidirectional"):
        message = f"`axes_mapping` is connected, but `mode` is {mode}"
        assert broken(broadcast_3, UNKNOWN_RANK, target, mapping, mode=mode) == ("C3", message)
    message = "`axes_mapping` is not connected, but `mode` is explicit"
    assert broken(broadcast_3, UNKNOWN_RANK, target, mode="explicit") == ("C3", message)
    assert shape_of(broadcast_3, UNKNOWN_RANK, target, mapping, mode="explicit") is not None


@pytest.mark.parametrize("op", [broadcast_1, broadcast_3], ids=["1", "3"])
def test_broadcast_c3_a_mapping_of_another_rank_than_1(op):
    message = "`axes_mapping` has rank 0, expected a vector with an axis for each of `data`"
    assert broken(op, UNKNOWN_RANK, i64(2, 2), UNKNOWN_INDEX, mode="explicit") == ("C3", message)


@pytest.mark.parametrize("op", [broadcast_1, broadcast_3], ids=["1", "3"])
def test_broadcast_c3_a_mapping_of_another_rank(op):
    for mapping, rank in ((i64([0, 1]), 2), (np.array(1), 0)):
        message = f"`axes_mapping` has rank {rank}, expected a vector with an axis for each of `data`"
        refuses(op, "C3", message, f32([[1, 2]]), i64(2, 2), mapping, mode="explicit")


@pytest.mark.parametrize("op", [broadcast_1, broadcast_3], ids=["1", "3"])
def test_broadcast_c3_a_scalar_with_an_axis_of_1(op):
    message, given = "`axes_mapping` has 1 axes for data of rank 0", (np.float32(6), i64(1, 2), i64(0))
    assert tolerated(op, *given, mode="explicit") == ("C3", message)
    assert op.kernel(*given, mode="explicit").tolist() == [[6, 6]]
    message = "dimension 0 of `data` is 1, which does not broadcast to 2"
    refuses(op, "C2", message, np.float32(6), i64(1, 2), i64(1), mode="explicit")
    message = "`axes_mapping` has 2 axes for data of rank 0"
    refuses(op, "C3", message, np.float32(6), i64(1, 2), i64(0, 1), mode="explicit")


def test_broadcast_3_c4_axis_outside_the_target():
    message = "`axes_mapping[0]` is 2, expected ascending axes in [0, 2)"
    refuses(broadcast_3, "C4", message, f32([1]), i64(2, 1), i64(2), mode="explicit")


def test_tile_examples_of_the_specification():
    assert shape_of(tile, (2, 3, 4), i64(1, 2, 3)) == (2, 6, 12)
    assert shape_of(tile, (2, 3, 4), i64(5, 1, 2, 3)) == (5, 2, 6, 12)
    assert shape_of(tile, (5, 2, 3, 4), i64(1, 2, 3)) == (5, 2, 6, 12)
    assert tile(np.array([[1], [2]]), i64(1, 2)).tolist() == [[1, 1], [2, 2]]
    assert tile(np.array(3), i64(2, 1)).tolist() == [[3], [3]]


@pytest.mark.parametrize("type", [ml_dtypes.int4, ml_dtypes.uint4])
def test_tile_takes_repeats_of_four_bits(type):
    assert tile(np.array([[1], [2]]), np.array([1, 2], type)).tolist() == [[1, 1], [2, 2]]


def test_tile_repeats_nothing():
    for times in (0, -1):
        assert tile(f32([1, 2]), i64(times)).shape == (0,)
        assert shape_of(tile, (2,), i64(times)) == (0,)


def test_tile_multiplies_unknown_sizes():
    batch, times = fresh(), fresh()
    assert same(shape_of(tile, (batch, 3), dims(1, times)), (batch, times * 3))
    assert shape_of(tile, (batch, 3), Tensor("i64", (fresh(),))) is None
    assert len(shape_of(tile, (batch, 3), Tensor("i64", (4,)))) == 4


# Pad

PADDED = {
    "constant": [[0, 1, 2, 3, 4, 0, 0, 0], [0, 5, 6, 7, 8, 0, 0, 0], [0, 9, 10, 11, 12, 0, 0, 0], [0] * 8, [0] * 8],
    "edge": [[1, 1, 2, 3, 4, 4, 4, 4], [5, 5, 6, 7, 8, 8, 8, 8], *[[9, 9, 10, 11, 12, 12, 12, 12]] * 3],
    "reflect": [
        [2, 1, 2, 3, 4, 3, 2, 1],
        [6, 5, 6, 7, 8, 7, 6, 5],
        [10, 9, 10, 11, 12, 11, 10, 9],
        [6, 5, 6, 7, 8, 7, 6, 5],
        [2, 1, 2, 3, 4, 3, 2, 1],
    ],
    "symmetric": [
        [1, 1, 2, 3, 4, 4, 3, 2],
        [5, 5, 6, 7, 8, 8, 7, 6],
        [9, 9, 10, 11, 12, 12, 11, 10],
        [9, 9, 10, 11, 12, 12, 11, 10],
        [5, 5, 6, 7, 8, 8, 7, 6],
    ],
}
MIXED = {
    "constant": [[0] * 6, [0] * 6, [2, 3, 4, 0, 0, 0], [6, 7, 8, 0, 0, 0]],
    "edge": [[2, 3, 4, 4, 4, 4], [2, 3, 4, 4, 4, 4], [2, 3, 4, 4, 4, 4], [6, 7, 8, 8, 8, 8]],
    "reflect": [[10, 11, 12, 11, 10, 9], [6, 7, 8, 7, 6, 5], [2, 3, 4, 3, 2, 1], [6, 7, 8, 7, 6, 5]],
    "symmetric": [[6, 7, 8, 8, 7, 6], [2, 3, 4, 4, 3, 2], [2, 3, 4, 4, 3, 2], [6, 7, 8, 8, 7, 6]],
}


@pytest.mark.parametrize("mode", PADDED)
def test_pad_examples_of_the_specification(mode):
    data = np.arange(1, 13).reshape(3, 4)
    for op in (pad_1, pad_12):
        assert op(data, i64(0, 1), i64(2, 3), pad_mode=mode).tolist() == PADDED[mode]
    assert pad_12(data, i64(-1, -1), i64(-1, -1), pad_mode=mode).tolist() == [[6, 7]]
    assert pad_12(data, i64(2, -1), i64(-1, 3), pad_mode=mode).tolist() == MIXED[mode]


def test_pad_shapes_of_the_specification():
    assert shape_of(pad_1, (1, 3, 32, 40), i64(0, 5, 2, 1), i64(1, 0, 3, 7), pad_mode="constant") == (2, 8, 37, 48)
    got = shape_of(pad_12, (2, 3, 32, 40), i64(0, -2, -8, 1), i64(-1, 4, -6, 7), pad_mode="constant")
    assert got == (1, 5, 18, 48)


def test_pad_fills_with_its_value():
    assert pad_12(f32([1]), i64(1), i64(2), f32(7), pad_mode="constant").tolist() == [7, 1, 7, 7]
    got = pad_12(np.array([1], ml_dtypes.bfloat16), i64(1), i64(0), pad_mode="constant")
    assert (got.dtype, got.astype(int).tolist()) == (ml_dtypes.bfloat16, [0, 1])
    assert pad_12(np.array(["a"]), i64(1), i64(1), pad_mode="constant").tolist() == ["", "a", ""]
    assert pad_12(np.array(["a"]), i64(0), i64(1), np.array("long"), pad_mode="constant").tolist() == ["a", "long"]


def test_pad_crops_all_there_is():
    for mode in PADDED:
        assert pad_12(i64(1, 2, 3), i64(-2), i64(-1), pad_mode=mode).tolist() == []
        assert pad_12(i64(1, 2, 3), i64(2), i64(-5), pad_mode=mode).tolist() == []
    assert pad_12(i64(1, 2, 3), i64(-3), i64(2), pad_mode="constant").tolist() == [0, 0]
    assert pad_12(i64(1, 2, 3), i64(-3), i64(2), pad_mode="edge").tolist() == [3, 3]
    assert pad_12(i64(1, 2, 3), i64(2), i64(-3), pad_mode="constant").tolist() == [0, 0]


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize(("begin", "end"), [(-4, 0), (0, -4), (-2, -2), (-5, 1), (1, -5)])
def test_pad_12_crops_more_than_there_is_to_nothing(mode, begin, end):
    assert pad_12(i64(1, 2, 3), i64(begin), i64(end), pad_mode=mode).tolist() == []
    got = pad_12(i64([1, 2, 3], [4, 5, 6]), i64(0, begin), i64(1, end), pad_mode=mode)
    assert got.shape == (3, 0)


def test_pad_12_c4_crops_more_than_there_is():
    for begin, end in ((-5, 4), (4, -5)):
        message = f"dimension 0 has 3 elements, of which pads of {begin} and {end} crop more"
        refuses(pad_12, "C4", message, i64(1, 2, 3), i64(begin), i64(end), pad_mode="constant")
    assert len(shape_of(pad_12, (fresh(),), i64(-5), i64(0), pad_mode="constant")) == 1
    assert len(shape_of(pad_12, (fresh(0, 4),), i64(-5), Tensor("i64", (1,)), pad_mode="constant")) == 1


def test_pad_1_c4_crops_more_than_there_is():
    message = "dimension 0 has 2 elements, of which pads of -3 and 0 crop more"
    refuses(pad_1, "C4", message, i64(1, 2), i64(-3), i64(0), pad_mode="constant")


def test_pad_adds_to_unknown_sizes():
    size = fresh()
    assert same(shape_of(pad_1, (size,), i64(1), i64(2), pad_mode="reflect"), (size + 3,))
    (cropped,) = shape_of(pad_12, (size,), i64(-1), i64(0), pad_mode="constant")
    assert cropped.low == 0
    assert same(shape_of(pad_12, (4,), dims(size), i64(0), pad_mode="constant"), (size + 4,))
    assert len(shape_of(pad_12, (4, 5), Tensor("i64", (2,)), Tensor("i64", None), pad_mode="edge")) == 2


def test_pad_1_c1_pads_of_another_rank():
    message = "`pads_begin` has 2 elements for data of rank 1"
    refuses(pad_1, "C1", message, f32([1]), i64(0, 0), i64(0, 0), pad_mode="constant")


def test_pad_1_c2_negative_pads():
    given = f32([1, 2]), i64(1), i64(-1)
    assert tolerated(pad_1, *given, pad_mode="constant") == ("C2", "`pads_end[0]` is -1, expected 0 or more")
    assert pad_1.kernel(*given, pad_mode="constant").tolist() == [0, 1]


@pytest.mark.parametrize(
    ("mode", "size", "pad"), [("reflect", 2, 2), ("symmetric", 2, 3), ("edge", 0, 1), ("reflect", 0, 1)]
)
@pytest.mark.parametrize(("op", "label"), [(pad_1, "C3"), (pad_12, "C2")], ids=["1", "12"])
def test_pad_reaches_no_further_than_its_mode(op, label, mode, size, pad):
    data = np.zeros(size, np.float32)
    message = f"`pads_begin[0]` is {pad} for a size of {size} ({mode})"
    refuses(op, label, message, data, i64(pad), i64(0), pad_mode=mode)
    if (mode, size) != ("reflect", 0):
        assert op(data, i64(0), i64(0), pad_mode=mode).shape == (size,)


@pytest.mark.parametrize(("op", "label"), [(pad_1, "C3"), (pad_12, "C2")], ids=["1", "12"])
def test_pad_does_not_reflect_beside_an_empty_dimension(op, label):
    message = "`pads_begin[0]` is 0 for a size of 0 (reflect)"
    refuses(op, label, message, np.zeros((0, 3), np.float32), i64(0, 1), i64(0, 0), pad_mode="reflect")
    assert op(np.zeros((0, 3), np.float32), i64(0, 1), i64(0, 0), pad_mode="symmetric").shape == (0, 4)


def test_pad_1_c3_reflection_beyond_the_data():
    message = "`pads_end[0]` is 2 for a size of 2 (reflect)"
    refuses(pad_1, "C3", message, f32([1, 2]), i64(0), i64(2), pad_mode="reflect")


def test_pad_12_c1_pads_of_another_rank():
    message = "`pads_begin` has 1 elements for data of rank 2"
    refuses(pad_12, "C1", message, f32([[1]]), i64(0), i64(0), pad_mode="constant")


def test_pad_12_c2_reflection_beyond_the_data():
    message = "`pads_end[0]` is 3 for a size of 2 (symmetric)"
    refuses(pad_12, "C2", message, f32([1, 2]), i64(0), i64(3), pad_mode="symmetric")


def test_pad_12_c3_edge_of_strings():
    message = "`pad_mode` is edge for strings, expected constant"
    refuses(pad_12, "C3", message, np.array(["a"]), i64(0), i64(1), pad_mode="edge")


def test_pad_1_c5_edge_of_strings():
    message = "`pad_mode` is edge for strings, expected constant"
    refuses(pad_1, "C5", message, np.array(["a"]), i64(0), i64(1), pad_mode="edge")


@pytest.mark.filterwarnings("ignore:E303")
@pytest.mark.parametrize("op", [pad_1, pad_12], ids=["1", "12"])
def test_strings_are_padded_with_one(op):
    texts = np.array(["ab", "c"])
    assert op(texts, i64(1), i64(2), pad_mode="constant").tolist() == ["", "ab", "c", "", ""]
    assert op(texts, i64(0), i64(1), np.array("xyz"), pad_mode="constant").tolist() == ["ab", "c", "xyz"]


# Roll, Transpose

TWELVE = np.arange(1, 13).reshape(4, 3)


def test_roll_examples_of_the_specification():
    assert roll(TWELVE, np.array(1), np.array(0)).tolist() == [[10, 11, 12], [1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert roll(TWELVE, i64(-1, 2), i64(0, 1)).tolist() == [[5, 6, 4], [8, 9, 7], [11, 12, 10], [2, 3, 1]]
    assert roll(TWELVE, i64(1, 2, 1), i64(0, 1, 0)).tolist() == [[8, 9, 7], [11, 12, 10], [2, 3, 1], [5, 6, 4]]


def test_roll_shifts_several_axes_by_one_number():
    assert roll(i64([1, 2], [3, 4]), np.array(1), i64(0, -1)).tolist() == [[4, 3], [2, 1]]
    assert roll(i64(1, 2), np.array(LONG_MAX), i64(0)).tolist() == [2, 1]


def test_roll_7_c1_axis_outside_the_rank():
    refuses(roll, "C1", "`axes[0]` is 1, outside [-1, 1)", f32([1]), i64(0), i64(1))


def test_roll_7_c2_shifts_and_axes_differ_in_number():
    message = "`shift` is a vector of {} for {} axes, expected a scalar or one for each"
    refuses(roll, "C2", message.format(2, 1), f32([1]), i64(1, 1), i64(0))
    refuses(roll, "C2", message.format(1, 2), f32([[1]]), i64(1), i64(0, 1))


def test_roll_7_c2_a_vector_of_shifts_for_a_scalar_axis():
    refuses(roll, "C2", "`shift` is a vector, but `axes` a scalar", f32([1]), i64(1), np.array(0))


def test_transpose_examples_of_the_specification():
    assert shape_of(transpose, (2, 3, 4), i64(2, 0, 1)) == (4, 2, 3)
    assert shape_of(transpose, (2, 3, 4), i64()) == (4, 3, 2)
    assert transpose(np.arange(6).reshape(1, 2, 3), i64()).tolist() == [[[0], [3]], [[1], [4]], [[2], [5]]]
    assert transpose(f32(1), i64()).shape == ()


def test_transpose_moves_unknown_dimensions():
    batch, size = fresh(), fresh()
    assert same(shape_of(transpose, (batch, 4, size), i64(0, 2, 1)), (batch, size, 4))
    assert len(shape_of(transpose, (batch, 4, size), Tensor("i64", (3,)))) == 3
    assert len(shape_of(transpose, UNKNOWN_RANK, Tensor("i64", (3,)))) == 3
    assert shape_of(transpose, UNKNOWN_RANK, Tensor("i64", (0,))) is None
    assert len(shape_of(transpose, (batch, 4, size), Tensor("i64", (fresh(),)))) == 3


def test_transpose_1_c1_no_permutation():
    refuses(transpose, "C1", "`input_order` has 1 axes for rank 2", f32([[1]]), i64(0))
    refuses(transpose, "C1", "`input_order` is [0, 0], expected the axes 0 to 1 in some order", f32([[1]]), i64(0, 0))
    refuses(transpose, "C1", "`input_order` is [0, -1], expected the axes 0 to 1 in some order", f32([[1]]), i64(0, -1))


# Blocks


def slow_depth_to_space(data, block, mode):
    n, c, h, w = data.shape
    depth = c // block**2
    output = np.zeros((n, depth, h * block, w * block), data.dtype)
    for b, d, y, x in np.ndindex(output.shape):
        offset = (y % block) * block + x % block
        channel = offset * depth + d if mode == "blocks_first" else d * block**2 + offset
        output[b, d, y, x] = data[b, channel, y // block, x // block]
    return output


@pytest.mark.parametrize("mode", ["blocks_first", "depth_first"])
def test_depthtospace_agrees_with_a_slow_loop_and_spacetodepth_undoes_it(mode):
    data = np.arange(2 * 8 * 2 * 3).reshape(2, 8, 2, 3)
    got = depth_to_space(data, block_size=2, mode=mode)
    np.testing.assert_array_equal(got, slow_depth_to_space(data, 2, mode))
    np.testing.assert_array_equal(space_to_depth(got, block_size=2, mode=mode), data)
    deep = np.arange(27 * 2 * 4).reshape(1, 54, 1, 2, 2)
    np.testing.assert_array_equal(
        space_to_depth(depth_to_space(deep, block_size=3, mode=mode), block_size=3, mode=mode), deep
    )
    line = np.arange(12).reshape(1, 4, 3)
    expected = (
        [[0, 6, 1, 7, 2, 8], [3, 9, 4, 10, 5, 11]]
        if mode == "blocks_first"
        else [[0, 3, 1, 4, 2, 5], [6, 9, 7, 10, 8, 11]]
    )
    assert depth_to_space(line, block_size=2, mode=mode).tolist() == [expected]


def test_depthtospace_shapes():
    size = fresh()
    assert shape_of(depth_to_space, (5, 28, 2, 3), block_size=2, mode="blocks_first") == (5, 7, 4, 6)
    assert shape_of(space_to_depth, (5, 7, 4, 6), block_size=2, mode="blocks_first") == (5, 28, 2, 3)
    assert same(shape_of(depth_to_space, (size, 28, size, 3), block_size=2, mode="depth_first"), (size, 7, size * 2, 6))
    assert same(shape_of(space_to_depth, (size, 1, size * 2, 4), block_size=2, mode="depth_first"), (size, 4, size, 2))


def test_sizes_that_blocks_divide_have_tight_bounds():
    attrs = {"block_size": 2, "mode": "blocks_first"}
    assert shape_of(depth_to_space, Tensor("f32", (1, fresh(5, 11), 4, 4)), **attrs) == (1, 2, 8, 8)
    assert shape_of(space_to_depth, Tensor("f32", (1, 1, fresh(5, 7), fresh(9, 14))), **attrs)[2] == 3
    blocks, none = np.array([1, 5]), np.array([0, 0])
    assert shape_of(batch_to_space, Tensor("f32", (fresh(9, 13), 26)), blocks, none, none) == (2, 130)
    assert shape_of(space_to_batch, Tensor("f32", (2, fresh(9, 13))), blocks, none, none) == (10, 2)


def test_parts_that_divide_an_axis_have_tight_bounds():
    assert shape_of(split, (fresh(2, 5),), i64(0).reshape(()), num_splits=4) == (1,)


def test_depthtospace_1_c1_block_does_not_divide_the_depth():
    message = "`C` is 6, which 4 does not divide"
    refuses(depth_to_space, "C1", message, np.zeros((1, 6, 1, 1)), block_size=2, mode="depth_first")


def test_spacetodepth_1_c1_block_does_not_divide_a_dimension():
    message = "dimension 3 is 3, which 2 does not divide"
    refuses(space_to_depth, "C1", message, np.zeros((1, 1, 2, 3)), block_size=2, mode="depth_first")


def test_batchtospace_examples_of_the_specification():
    assert shape_of(batch_to_space, (10, 2), i64(1, 5), i64(0, 2), i64(0, 0)) == (2, 8)
    blocks, margins = i64(1, 2, 4, 3, 1), i64(0, 0, 1, 0, 0)
    assert shape_of(batch_to_space, (48, 3, 3, 1, 3), blocks, margins, margins) == (2, 6, 10, 3, 3)
    assert shape_of(space_to_batch, (2, 6, 10, 3, 3), blocks, margins, margins) == (48, 3, 3, 1, 3)


def test_spacetobatch_agrees_with_a_slow_loop_and_batchtospace_undoes_it():
    data = np.arange(2 * 3 * 5).reshape(2, 3, 5)
    blocks, begin, end = i64(1, 2, 3), i64(0, 1, 0), i64(0, 0, 1)
    got = space_to_batch(data, blocks, begin, end)
    whole = np.zeros((2, 4, 6), int)
    whole[:, 1:, :5] = data
    expected = np.zeros((12, 2, 2), int)
    for n, y, x in np.ndindex(whole.shape):
        expected[((y % 2) * 3 + x % 3) * 2 + n, y // 2, x // 3] = whole[n, y, x]
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(batch_to_space(got, blocks, begin, end), data)
    assert space_to_batch(np.zeros((0, 4), np.float32), i64(1, 2), i64(0, 0), i64(0, 0)).shape == (0, 2)


def test_batchtospace_infers_unknown_sizes():
    batch, size = fresh(), fresh()
    assert same(shape_of(batch_to_space, (batch * 4, size), i64(1, 2), i64(0, 0), i64(0, 0)), (batch * 2, size * 2))
    assert same(shape_of(space_to_batch, (batch, size * 2), i64(1, 2), i64(0, 1), i64(0, 1)), (batch * 2, size + 1))
    some = Tensor("i64", (2,))
    assert len(shape_of(batch_to_space, (batch, size), some, some, some)) == 2


def test_batchtospace_2_c1_wrong_number_of_blocks():
    message = "`block_shape` has 1 elements for data of rank 2"
    refuses(batch_to_space, "C1", message, f32([[1]]), i64(1), i64(0), i64(0))


def test_batchtospace_2_c2_blocks_below_one():
    refuses(
        batch_to_space, "C2", "`block_shape[1]` is 0, expected 1 or more", f32([[1]]), i64(1, 0), i64(0, 0), i64(0, 0)
    )
    refuses(batch_to_space, "C2", "`block_shape[0]` is 2, expected 1", f32([[1]]), i64(2, 1), i64(0, 0), i64(0, 0))


def test_batchtospace_2_c3_negative_crops():
    refuses(
        batch_to_space, "C3", "`crops_end[1]` is -1, expected 0 or more", f32([[1]]), i64(1, 1), i64(0, 0), i64(0, -1)
    )
    refuses(batch_to_space, "C3", "`crops_begin[0]` is 1, expected 0", f32([[1]]), i64(1, 1), i64(1, 0), i64(0, 0))


def test_batchtospace_2_c4_blocks_do_not_divide_the_batch():
    refuses(batch_to_space, "C4", "`batch` is 1, which 2 does not divide", f32([[1]]), i64(1, 2), i64(0, 0), i64(0, 0))


def test_batchtospace_2_c5_more_cropped_than_there_is():
    message = "1 and 2 are cropped from the 2 elements of dimension 1"
    refuses(batch_to_space, "C5", message, f32([[1], [2]]), i64(1, 2), i64(0, 1), i64(0, 2))


def test_spacetobatch_2_c1_wrong_number_of_blocks():
    message = "`block_shape` has 3 elements for data of rank 2"
    refuses(space_to_batch, "C1", message, f32([[1]]), i64(1, 1, 1), i64(0, 0, 0), i64(0, 0, 0))


def test_spacetobatch_2_c2_blocks_below_one():
    refuses(
        space_to_batch, "C2", "`block_shape[1]` is -1, expected 1 or more", f32([[1]]), i64(1, -1), i64(0, 0), i64(0, 0)
    )


def test_spacetobatch_2_c3_negative_pads():
    refuses(
        space_to_batch, "C3", "`pads_begin[1]` is -1, expected 0 or more", f32([[1]]), i64(1, 1), i64(0, -1), i64(0, 0)
    )


def test_spacetobatch_2_c4_block_does_not_divide_the_padded_dimension():
    message = "dimension 1 is 3 with its pads, which the block 2 does not divide"
    refuses(space_to_batch, "C4", message, f32([[1]]), i64(1, 2), i64(0, 1), i64(0, 1))


# Reverse, ReverseSequence, ShuffleChannels


def test_reverse_by_index_and_by_mask():
    data = i64([1, 2], [3, 4])
    assert reverse(data, i64(0), mode="index").tolist() == [[3, 4], [1, 2]]
    assert reverse(data, i64(1, 0), mode="index").tolist() == [[4, 3], [2, 1]]
    assert reverse(data, i64(), mode="index").tolist() == data.tolist()
    assert reverse(data, np.array([True, False]), mode="mask").tolist() == [[3, 4], [1, 2]]
    assert reverse(data, np.array([False, False]), mode="mask").tolist() == data.tolist()


def test_reverse_1_c1_mask_of_integers():
    refuses(reverse, "C1", "`axis` is i64 in mode mask", f32([1]), i64(0), mode="mask")
    refuses(reverse, "C1", "`axis` is boolean in mode index", f32([1]), np.array([True]), mode="index")


def test_reverse_1_c2_wrong_number_of_axes():
    refuses(reverse, "C2", "`axis` has 1 elements for data of rank 2", f32([[1]]), np.array([True]), mode="mask")
    refuses(reverse, "C2", "`axis` has 2 elements for data of rank 1", f32([1]), i64(0, 0), mode="index")


def test_reverse_1_c3_axis_outside_the_rank():
    refuses(reverse, "C3", "`axis[0]` is 1, outside [0, 1)", f32([1]), i64(1), mode="index")


def test_reverse_1_c4_an_axis_twice():
    data = i64([1, 2], [3, 4])
    found = tolerated(reverse, data, i64(1, 1), mode="index")
    assert found == ("C4", "`axis` is [1, 1], which has an axis twice")
    assert reverse.kernel(data, i64(1, 1), mode="index").tolist() == [[2, 1], [4, 3]]


def test_reversesequence_reverses_the_first_elements():
    data = np.arange(24).reshape(2, 4, 3)
    got = reverse_sequence(data, i64(2, 4))
    expected = data.copy()
    expected[0, :2] = data[0, :2][::-1]
    expected[1] = data[1, ::-1]
    np.testing.assert_array_equal(got, expected)
    got = reverse_sequence(data, f32([1, 2, 2]), batch_axis=2, seq_axis=-3)
    expected = data.copy()
    expected[:, :, 1:] = data[::-1, :, 1:]
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_reversesequence_has_as_many_batches_as_lengths(axis):
    sizes = [fresh() for _ in range(3)]
    expected = [4 if each == axis else size for each, size in enumerate(sizes)]
    lengths = Tensor("i64", (4,))
    assert same(shape_of(reverse_sequence, tuple(sizes), lengths, batch_axis=axis, seq_axis=axis - 1), expected)


def test_reversesequence_1_c1_batch_axis_outside_the_rank():
    message = "`batch_axis` is 2, outside [-2, 2) for rank 2"
    refuses(reverse_sequence, "C1", message, f32([[1]]), i64(1), batch_axis=2)


def test_reversesequence_1_c2_seq_axis_outside_the_rank_or_the_batch():
    message = "`seq_axis` is -3, outside [-2, 2) for rank 2"
    refuses(reverse_sequence, "C2", message, f32([[1]]), i64(1), seq_axis=-3)
    refuses(reverse_sequence, "C2", "`seq_axis` and `batch_axis` are both 0", f32([[1]]), i64(1), seq_axis=-2)


def test_reversesequence_1_c3_wrong_number_of_lengths():
    refuses(reverse_sequence, "C3", "`seq_lengths` has 2 elements for 1 batches", f32([[1]]), i64(1, 1))


def test_reversesequence_1_c4_length_outside_the_sequence():
    refuses(reverse_sequence, "C4", "`seq_lengths[1]` is 3, outside [0, 3)", f32([[1, 2], [3, 4]]), i64(1, 3))
    refuses(reverse_sequence, "C4", "`seq_lengths[0]` is -1, outside [0, 3)", f32([[1, 2], [3, 4]]), i64(-1, 1))


def test_reversesequence_1_c4_a_sequence_of_length_0_stays_as_it_is():
    data = f32([[1, 2], [3, 4]])
    found = tolerated(reverse_sequence, data, i64(2, 0))
    assert found == ("C4", "`seq_lengths[1]` is 0, expected 1 or more")
    assert reverse_sequence.kernel(data, i64(2, 0), batch_axis=0, seq_axis=1).tolist() == [[2, 1], [3, 4]]


def test_shufflechannels_interleaves_groups():
    data = np.arange(12).reshape(1, 6, 2)
    assert shuffle(data, axis=1, group=3)[0, :, 0].tolist() == [0, 4, 8, 2, 6, 10]
    assert shuffle(np.arange(4), axis=-1, group=2).tolist() == [0, 2, 1, 3]
    assert shape_of(shuffle, (5, 12, 200, 400), group=3, axis=1) == (5, 12, 200, 400)


def test_shufflechannels_1_c1_axis_outside_the_rank():
    refuses(shuffle, "C1", "`axis` is 1, outside [-1, 1) for rank 1", f32([1]))


def test_shufflechannels_1_c2_group_does_not_divide_the_channels():
    refuses(shuffle, "C2", "the axis has 3 elements, which 2 groups do not divide", f32([[1, 2, 3]]), group=2)


# GatherTree


def slow_gather_tree(step_ids, parent_ids, lengths, end):
    steps, batches, beams = step_ids.shape
    output = np.full(step_ids.shape, end)
    for batch in range(batches):
        for beam in range(beams):
            length = min(steps, int(lengths[batch]))
            if not length:
                continue
            output[length - 1, batch, beam] = step_ids[length - 1, batch, beam]
            parent = parent_ids[length - 1, batch, beam]
            for step in reversed(range(length - 1)):
                output[step, batch, beam] = step_ids[step, batch, parent]
                parent = parent_ids[step, batch, parent]
            finished = False
            for step in range(length):
                if finished:
                    output[step, batch, beam] = end
                finished = finished or output[step, batch, beam] == end
    return output


def test_gathertree_agrees_with_a_slow_loop():
    step_ids = random.integers(0, 5, (6, 4, 3)).astype(np.int32)
    parents = random.integers(0, 3, (6, 4, 3)).astype(np.int32)
    lengths = np.array([6, 4, 0, 9], np.int32)
    expected = slow_gather_tree(step_ids, parents, lengths, 2)
    np.testing.assert_array_equal(gather_tree(step_ids, parents, lengths, np.array(2, np.int32)), expected)
    floats = [array.astype(np.float32) for array in (step_ids, parents, lengths)]
    got = gather_tree(*floats, np.array(2, np.float32))
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, expected)


def test_gathertree_1_c1_negative_length():
    ids = np.zeros((1, 1, 1), np.int64)
    refuses(gather_tree, "C1", "`max_seq_len[0]` is -1, expected 0 or more", ids, ids, i64(-1), np.array(0))


def test_gathertree_1_c2_parent_outside_the_beams():
    ids = np.zeros((2, 1, 1), np.int64)
    parents = ids.copy()
    parents[1] = 1
    refuses(gather_tree, "C2", "`parent_ids[1, 0, 0]` is 1, outside [0, 1)", ids, parents, i64(2), np.array(0))
    assert gather_tree(ids, parents, i64(1), np.array(0)).shape == (2, 1, 1)


# Unique


def lists(arrays):
    return [array.tolist() for array in arrays]


def test_unique_elements():
    data = f32([[3, 1, 3], [2, 1, 5]])
    assert lists(unique(data)) == [[1, 2, 3, 5], [1, 3, 0, 5], [2, 0, 2, 1, 0, 3], [2, 1, 2, 1]]
    assert lists(unique(data, sorted=False)) == [[3, 1, 2, 5], [0, 1, 3, 5], [0, 1, 0, 2, 1, 3], [2, 2, 1, 1]]
    assert lists(unique(np.array(7))) == [[7], [0], [0], [1]]
    assert lists(unique(f32([]))) == [[], [], [], []]
    assert lists(unique(np.array(["b", "a", "b"]))) == [["a", "b"], [1, 0], [1, 0, 1], [1, 2]]


@pytest.mark.parametrize("dtype", ["i8", "i4", "u1", "f4", "?"])
def test_unique_elements_by_a_loop(dtype):
    rng = np.random.default_rng(0)
    for count in (0, 1, 7, 500):
        data = rng.integers(0, 20, count).astype(dtype)
        places = {}
        for place, value in enumerate(data.tolist()):
            places.setdefault(value, []).append(place)
        for ordered in (True, False):
            values = sorted(places) if ordered else list(places)
            inverse = [values.index(value) for value in data.tolist()]
            expected = [values, [places[v][0] for v in values], inverse, [len(places[v]) for v in values]]
            assert lists(unique(data, sorted=ordered)) == expected


def test_unique_slices():
    data = f32([[2, 1], [1, 5], [2, 1]])
    assert lists(unique(data, np.array(0))) == [[[1, 5], [2, 1]], [1, 0], [1, 0, 1], [1, 2]]
    assert lists(unique(data, i64(-2), sorted=False)) == [[[2, 1], [1, 5]], [0, 1], [0, 1, 0], [2, 1]]
    assert lists(unique(data.T, np.array(1))) == [[[1, 2], [5, 1]], [1, 0], [1, 0, 1], [1, 2]]
    values, first, inverse, counts = unique(np.zeros((3, 0), np.float32), np.array(0))
    assert (values.shape, first.tolist(), inverse.tolist(), counts.tolist()) == ((1, 0), [0], [0, 0, 0], [3])
    values, *rest = unique(np.zeros((0, 3), np.float32), np.array(0))
    assert (values.shape, lists(rest)) == ((0, 3), [[], [], []])


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "?"])
@pytest.mark.parametrize("seed", range(6))
def test_unique_numbers_near_and_far(dtype, seed):
    """Against numpy, whose slices come in the order of their elements."""
    rng = np.random.default_rng(seed)
    limits = np.iinfo(dtype) if dtype[0] in "iu" else None
    for spread in (3, 1 << 15, 1 << 20, 1 << 31, 1 << 40):
        if limits is None:
            data = rng.integers(0, spread, (200, 3)).astype(dtype)
        else:
            spread = min(spread, int(limits.max) - int(limits.min))
            start = int(rng.choice([limits.min, max(-spread // 2, limits.min), limits.max - spread]))
            above = rng.integers(0, spread, (200, 3), np.uint64, endpoint=True)
            data = (np.uint64(start % (1 << 64)) + above).astype(dtype)
        data = data[rng.integers(0, 150, 200)]
        for own, axis in ((data.reshape(-1), None), (data, 0), (data, 1), (np.tile(data, 40), 0)):
            found = unique(own, None if axis is None else np.array(axis))
            expected = np.unique(own, True, True, True, axis)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other.reshape(one.shape))


def test_unique_types():
    for dtype in (ml_dtypes.bfloat16, np.bool_, np.uint8):
        data = np.array([[1, 0], [1, 0]]).astype(dtype)
        for axis in (None, i64(0)):
            outputs = unique(data, axis, index_element_type="i32")
            assert [output.dtype for output in outputs] == [dtype, np.int32, np.int32, np.int64]
    inferred = infers(unique, (2, 3), None, count_element_type="i32")
    assert [tensor.type for tensor in inferred.outputs] == ["f32", "i64", "i64", "i32"]


def test_unique_infers_bounds():
    values, first, inverse, counts = (tensor.shape for tensor in infers(unique, (3, 4), None).outputs)
    assert (values[0].low, values[0].high, inverse) == (1, 12, (12,))
    assert same(first, values)
    assert same(counts, values)
    size = fresh()
    values, _, inverse, _ = (tensor.shape for tensor in infers(unique, (size, 4), np.array(0)).outputs)
    assert (values[0].low, values[1]) == (0, 4)
    assert same(inverse, (size,))
    assert len(shape_of(unique, (size, 4), UNKNOWN_INDEX)) == 2
    assert len(shape_of(unique, UNKNOWN_RANK, None)) == 1
    assert shape_of(unique, UNKNOWN_RANK, UNKNOWN_INDEX) is None


def test_unique_10_c1_axis_outside_the_rank():
    refuses(unique, "C1", "`axis` is 2, outside [-2, 2) for rank 2", f32([[1]]), i64(2))


def test_unique_10_c2_axis_that_only_a_run_tells(tmp_path):
    model = Model()
    x, varying = model.parameter("x", "f32", (2, 3)), model.parameter("axis", "i64", (1,))
    outputs = [("f32", (-1, -1)), ("i64", (-1,)), ("i64", (-1,)), ("i64", (-1,))]
    for axis in (
        varying,
        model.constant(i64(1)),
        *model.layer("Convert", [model.constant(i64(1))], [("i64", (1,))], destination_type="i64"),
    ):
        for output in model.layer("Unique", [x, axis], outputs, "opset10", f"by {axis[0]}"):
            model.result(output)
    (error,) = validate(model.save(tmp_path)).errors
    assert error.message == "Unique-10 C2: `axis` is known in a run only, expected a Const"
    assert error.layer.name == "by 1"


# Col2Im, ExtractImagePatches


def slow_col_2_im(data, size, kernel, strides, dilations, begins, ends):
    n, rows, _ = data.shape
    channels = rows // (kernel[0] * kernel[1])
    output = np.zeros((n, channels, *size))
    starts = [range(-begins[i], size[i] + ends[i] - dilations[i] * (kernel[i] - 1), strides[i]) for i in range(2)]
    for b, c, i, j in np.ndindex(n, channels, *kernel):
        windows = [(y, x) for y in starts[0] for x in starts[1]]
        for number, (y, x) in enumerate(windows):
            place = y + i * dilations[0], x + j * dilations[1]
            if 0 <= place[0] < size[0] and 0 <= place[1] < size[1]:
                output[(b, c, *place)] += data[b, (c * kernel[0] + i) * kernel[1] + j, number]
    return output


def test_col2im_shapes_of_the_specification():
    assert shape_of(col_2_im, (3, 12, 225), i64(16, 16), i64(2, 2)) == (3, 3, 16, 16)
    attrs = {"dilations": (2, 2), "pads_begin": (1, 1), "pads_end": (1, 1), "strides": (2, 2)}
    assert shape_of(col_2_im, (1, 27, 49), i64(16, 16), i64(3, 3), **attrs) == (1, 3, 16, 16)
    attrs = {"dilations": (2, 2), "pads_begin": (3, 3), "pads_end": (3, 3)}
    assert shape_of(col_2_im, (12, 12, 1296), i64(32, 32), i64(2, 2), **attrs) == (12, 3, 32, 32)


@pytest.mark.parametrize(
    ("size", "kernel", "attrs"),
    [
        ((4, 5), (2, 3), {}),
        ((5, 4), (3, 2), {"strides": (2, 1), "pads_begin": (1, 0), "pads_end": (0, 2)}),
        ((6, 6), (2, 2), {"dilations": (2, 3), "strides": (3, 2)}),
    ],
)
def test_col2im_agrees_with_a_slow_loop(size, kernel, attrs):
    attrs = col_2_im.defaults | attrs
    spans = [
        size[i] + attrs["pads_begin"][i] + attrs["pads_end"][i] - attrs["dilations"][i] * (kernel[i] - 1) - 1
        for i in range(2)
    ]
    count = np.prod([span // step + 1 for span, step in zip(spans, attrs["strides"], strict=True)])
    data = random.standard_normal((2, 3 * kernel[0] * kernel[1], count)).astype(np.float32)
    expected = slow_col_2_im(
        data, size, kernel, attrs["strides"], attrs["dilations"], attrs["pads_begin"], attrs["pads_end"]
    )
    got = col_2_im(data, np.array(size), np.array(kernel), **attrs)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(col_2_im(data[1], np.array(size), np.array(kernel), **attrs), got[1])


def test_col2im_infers_unknown_sizes():
    batch, columns = fresh(), fresh()
    assert same(shape_of(col_2_im, (batch, 12, columns), i64(4, 4), i64(2, 2)), (batch, 3, 4, 4))
    assert len(shape_of(col_2_im, (batch, 12, columns), Tensor("i64", (2,)), Tensor("i64", (2,)))) == 4


def test_col2im_15_c1_wrong_number_of_strides():
    message = "`strides` has 1 values for 2 spatial axes"
    refuses(col_2_im, "C1", message, np.zeros((1, 4, 9)), i64(4, 4), i64(2, 2), strides=(1,))


def test_col2im_15_c2_empty_image_or_kernel_too_large():
    refuses(col_2_im, "C2", "`output_size[1]` is 0, expected 1 or more", np.zeros((1, 4, 9)), i64(4, 0), i64(2, 2))
    message = "the kernel reaches over 3 elements, but spatial axis 0 has 2 with padding"
    refuses(col_2_im, "C2", message, np.zeros((1, 9, 1)), i64(2, 4), i64(3, 3))


def test_col2im_15_c3_kernel_does_not_divide_the_rows():
    message = "`CK` is 5, which a kernel of 4 elements does not divide"
    refuses(col_2_im, "C3", message, np.zeros((1, 5, 9)), i64(4, 4), i64(2, 2))


def test_col2im_15_c4_wrong_number_of_columns():
    refuses(col_2_im, "C4", "`L` is 8, expected 9 windows", np.zeros((1, 4, 8)), i64(4, 4), i64(2, 2))


HUNDRED = np.arange(1, 101).reshape(1, 1, 10, 10)


def test_extractimagepatches_examples_of_the_specification():
    def patch(data, sizes, strides, rates, auto_pad):
        return image_patches(data, sizes=sizes, strides=strides, rates=rates, auto_pad=auto_pad)

    got = patch(HUNDRED, (3, 3), (5, 5), (1, 1), "valid")
    assert got.shape == (1, 9, 2, 2)
    assert got[0, 1].tolist() == [[2, 7], [52, 57]]
    assert got[0, 8].tolist() == [[23, 28], [73, 78]]
    got = patch(HUNDRED, (4, 4), (8, 8), (1, 1), "valid")
    assert got.ravel().tolist() == [1, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24, 31, 32, 33, 34]
    got = patch(HUNDRED, (4, 4), (9, 9), (1, 1), "same_upper")
    assert got.shape == (1, 16, 2, 2)
    assert got[0, :6].tolist() == [
        [[0, 0], [0, 89]],
        [[0, 0], [81, 90]],
        [[0, 0], [82, 0]],
        [[0, 0], [83, 0]],
        [[0, 9], [0, 99]],
        [[1, 10], [91, 100]],
    ]
    got = patch(HUNDRED, (3, 3), (5, 5), (2, 2), "valid")
    assert got[0, 5].tolist() == [[25, 30], [75, 80]]
    got = patch(np.arange(1, 51).reshape(1, 2, 5, 5), (2, 2), (3, 3), (1, 1), "valid")
    assert got[0, :3].tolist() == [[[1, 4], [16, 19]], [[26, 29], [41, 44]], [[2, 5], [17, 20]]]


def test_extractimagepatches_pads_in_front_with_same_lower():
    got = image_patches(HUNDRED[:, :, :3, :3], sizes=(2, 2), strides=(1, 1), rates=(1, 1), auto_pad="same_lower")
    assert got[0, 0].tolist() == [[0, 0, 0], [0, 1, 2], [0, 11, 12]]


def test_extractimagepatches_shapes():
    attrs = {"sizes": (3, 3), "strides": (5, 5), "rates": (1, 1)}
    assert shape_of(image_patches, (64, 3, 10, 10), **attrs, auto_pad="valid") == (64, 27, 2, 2)
    batch, rows = fresh(), fresh()
    got = shape_of(image_patches, (batch, 3, rows, 10), **attrs, auto_pad="same_upper")
    assert same(got[:2], (batch, 27))
    assert got[3] == 2


def test_extractimagepatches_3_c1_wrong_number_of_sizes():
    message = "`sizes` has 1 values for 2 spatial axes"
    attrs = {"sizes": (3,), "strides": (5, 5), "rates": (1, 1), "auto_pad": "valid"}
    refuses(image_patches, "C1", message, np.zeros((1, 1, 4, 4)), **attrs)


@pytest.mark.parametrize(("rates", "shape"), [((2, 2), (1, 9, 0, 0)), ((9, 1), (1, 9, 0, 2))])
def test_extractimagepatches_3_c2_patch_does_not_fit(rates, shape):
    reach = 2 * rates[0] + 1
    message = f"the kernel reaches over {reach} elements, but spatial axis 0 has 4 with padding"
    attrs = {"sizes": (3, 3), "strides": (1, 1), "rates": rates, "auto_pad": "valid"}
    data = np.zeros((1, 1, 4, 4), np.int8)
    found = [each.violation for each in infers(image_patches, data, **attrs).tolerated]
    assert (found[0].label, found[0].message) == ("C2", message)
    assert shape_of(image_patches, (1, 1, 4, 4), **attrs) == shape
    got = image_patches.kernel(data, **attrs)
    assert (got.shape, got.dtype) == (shape, np.int8)


@pytest.mark.parametrize("some", [1, 10, 1 << 16])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float16])
@pytest.mark.parametrize("reduction", ["sum", "sub", "prod", "min", "max"])
def test_scatterndupdate_15_reduces_rows_in_order(reduction, dtype, some, monkeypatch):
    monkeypatch.setattr("irrun.opsets._indexing.REDUCED", some)
    rng = np.random.default_rng(3)
    steps = {"sum": np.add, "sub": np.subtract, "prod": np.multiply, "min": np.minimum, "max": np.maximum}
    data, updates = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((4, 3, 2, 5), (7, 2, 5)))
    indices = rng.integers(0, 3, (7, 2)) - [[4, 0]] * 7
    wide = np.float32 if dtype is np.float16 else dtype
    expected = data.astype(wide)
    for place, update in zip(indices, updates, strict=True):
        expected[tuple(place)] = steps[reduction](expected[tuple(place)], update.astype(wide))
    found = scatter_nd_15(data, indices, updates, reduction=reduction)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected.astype(dtype))


@pytest.mark.parametrize("type", [ml_dtypes.int4, ml_dtypes.uint4])
def test_indices_of_four_bits(type):
    data, axis = np.arange(300, dtype=np.int32), np.array(0)
    for op in (gather_1, gather_7, gather_8):
        assert op(data, np.array([[6], [1]], type), axis).tolist() == [[6], [1]]
    for op in (gather_nd_5, gather_nd_8):
        assert op(data.reshape(3, 100), np.array([[2, 7], [0, 3]], type)).tolist() == [207, 3]
    for op in (elements_3, elements_12, scatter_update):
        assert op(data[:6], np.array([5, 1], type), np.int32([70, 80]), axis).tolist() == [0, 80, 2, 3, 4, 70]
    message = r"`indices\[1\]` is 7, outside \[0, 6\)"
    for op in (gather_1, gather_7, scatter_update):
        updates = [np.zeros(2, np.int32)] if op is scatter_update else []
        with pytest.raises(Violation, match=message):
            infers(op, data[:6], np.array([0, 7], type), *updates, axis)


def test_negative_indices_of_four_bits():
    indices, axis = np.array([-1, -8], ml_dtypes.int4), np.array(0)
    data = np.arange(300, dtype=np.int32)
    assert gather_8(data, indices, axis).tolist() == [299, 292]
    assert gather_nd_8.kernel(data, indices[:, None], batch_dims=0).tolist() == [299, 292]
    assert elements_12(data, indices, np.int32([1, 2]), axis)[290:].tolist() == [290, 291, 2, *range(293, 299), 1]
    with pytest.raises(Violation, match=r"`indices\[0\]` is -1, outside \[0, 300\)"):
        infers(scatter_update, data, indices, np.zeros(2, np.int32), axis)
