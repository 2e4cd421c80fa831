"""Small arrays of integers and dimensions do what numpy's do, and become these where more is asked of them."""

import operator
import subprocess
import sys

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.check import ahead
from irrun.spec import Sizes, Tensor, fresh, joined, quiet
from irrun.spec.registry import registry

A = np.arange(24).reshape(2, 3, 4) - 5


def sizes(array):
    return Sizes(array.ravel().tolist(), array.shape)


def same(ours, theirs):
    theirs = np.asarray(theirs)
    assert isinstance(ours, Sizes) == bool(theirs.shape) or isinstance(ours, int | Sizes)
    assert np.shape(ours if isinstance(ours, Sizes) else 0) == theirs.shape
    assert (ours.tolist() if isinstance(ours, Sizes) else ours) == theirs.tolist()


@pytest.mark.parametrize(
    "index",
    [
        0,
        -1,
        (1, 2, 3),
        (slice(None), 1),
        (slice(None, None, -1), slice(1, 9), slice(3, None, -2)),
        (None, 1, None, slice(2)),
        (slice(5, None), None),
        (),
    ],
    ids=str,
)
def test_indices_select_as_in_numpy(index):
    same(sizes(A)[index], A[index])


@pytest.mark.parametrize("index", [2, -3, (0, 0, 0, 0), (0, 3)])
def test_an_index_beyond_the_end_is_none(index):
    with pytest.raises((IndexError, StopIteration)):
        sizes(A)[index]


@pytest.mark.parametrize(
    "function",
    [
        operator.add,
        operator.sub,
        operator.mul,
        operator.floordiv,
        operator.mod,
        operator.lt,
        operator.le,
        operator.gt,
        operator.ge,
        operator.eq,
        operator.ne,
    ],
)
@pytest.mark.parametrize(
    "other", [A + 30, A[:, :1] + 30, A[0, 1] + 30, np.array(3), np.zeros((2, 0, 1, 4)) + 1], ids=np.shape
)
def test_arithmetic_broadcasts_as_in_numpy(function, other):
    if other.size:
        same(function(sizes(A), sizes(other)), function(A, other))
        same(function(sizes(other), sizes(A + 30)), function(other, A + 30))
    same(function(sizes(A), 7), function(A, 7))


def test_shapes_that_do_not_broadcast_are_an_error():
    for other in (A[:, :2], A[..., :3]):
        with pytest.raises(ValueError, match="broadcast"):
            sizes(A) + sizes(other)


def test_the_rest_of_what_shapes_are_computed_with_is_as_in_numpy():
    a = sizes(A)
    same(a.reshape(6, -1), A.reshape(6, -1))
    same(a.reshape((4, 3, 2)), A.reshape(4, 3, 2))
    same(a.ravel(), A.ravel())
    same(a.transpose([2, 0, 1]), A.transpose(2, 0, 1))
    same(a.transpose(), A.T)
    same(a[:1].squeeze((0,)), A[:1].squeeze(0))
    for axis in (0, 1, 2):
        same(a.take(sizes(np.array([[1, -1], [0, 0]])), axis), A.take([[1, -1], [0, 0]], axis))
        same(joined([a, a[:, :, :], a], axis), np.concatenate([A, A, A], axis))
        for keepdims in (False, True):
            same(a.prod((axis,), keepdims), A.prod(axis, keepdims=keepdims))
            same(a.sum((axis,), keepdims), A.sum(axis, keepdims=keepdims))
    same(a.sum((0, 1, 2)), A.sum())
    same(a.sum((2, 0)), A.sum((2, 0)))
    same(a.spread((2, 2, 3, 4)), np.broadcast_to(A, (2, 2, 3, 4)))
    same(-a, -A)
    same(abs(a), abs(A))
    same(Sizes([], (2, 0)).prod((1,)), [1, 1])
    assert (a < 100).all()
    assert not (a > 0).all()
    with pytest.raises(ValueError, match="joined"):
        joined([a, a[:, 1:]], 2)
    with pytest.raises(ValueError, match="fit"):
        a.reshape(5, 5)


def test_what_numpy_gets_is_an_array_of_objects():
    n = fresh(name="n")
    total = np.add(Sizes([n, 2]), np.array([1, 1]))
    assert total.dtype == object
    assert total.tolist()[1] == 3
    assert (total[0] == n + 1) is True


def test_a_value_of_known_numbers_is_of_the_type_of_its_tensor():
    value = Sizes([1, 2], type="i32")
    assert (value.array().dtype, value.array().tolist(), value.known) == (np.int32, [1, 2], True)
    assert value.array() is value.array()
    unknown = Sizes([fresh(), 2])
    assert (unknown.array().dtype, unknown.known, unknown.symbolic) == (object, False, True)
    assert unknown.key != Sizes([fresh(), 2]).key
    assert Tensor("i64", (2,), unknown).symbolic


def test_warnings_are_numpys():
    with quiet(np.array(1)):
        assert np.geterr()["divide"] == "ignore"
    before = np.geterr()
    with quiet(Sizes([1])):
        assert np.geterr() == before


def test_what_the_type_does_not_hold_wraps_around_as_in_a_run(tmp_path):
    net = Model()
    (product,) = net.layer("Multiply", [net.constant(np.int32([2**30])), net.constant(np.int32([6]))], [("i32", (1,))])
    net.result(product)
    report = irrun.validate(net.save(tmp_path))
    (node,) = (node for node in report.inference.nodes.values() if node.layer.type == "Multiply")
    assert node.outputs[0].numbers == [-(2**31)]


@pytest.mark.parametrize(
    ("name", "arrays", "attrs"),
    [
        ("Gather-8", [[4, 5, 6], [[0, -1], [2, 1]], 0], {"batch_dims": 0}),
        ("Gather-1", [[4, 5, 6], 1, 0], {}),
        ("Concat-1", [[1], [2, 3]], {"axis": 0}),
        ("Split-1", [[1, 2, 3, 4], -1], {"num_splits": 2}),
        ("Slice-8", [[1, 2, 3, 4], [3], [0], [-2]], {}),
        ("Squeeze-1", [[[7]]], {}),
        ("Unsqueeze-1", [7, [0, 1]], {}),
        ("Transpose-1", [[[1, 2], [3, 4]], []], {}),
        ("Broadcast-3", [[[1], [2]], [2, 3]], {"mode": "numpy"}),
        ("ReduceProd-1", [[[2, 3], [4, 5]], [0]], {"keep_dims": False}),
        ("ReduceSum-1", [[[2, 3], [4, 5]], [0, 1]], {"keep_dims": True}),
        ("ReduceMax-1", [[2, 3], [0]], {"keep_dims": False}),
        ("Range-4", [5, 0, -2], {"output_type": "i64"}),
        ("Floor-1", [[3]], {}),
        ("Abs-1", [[-3]], {}),
        ("ScatterElementsUpdate-12", [[3, -3, 5], [0, 1], [4, -4], 0], {"reduction": "mean", "use_init_val": True}),
        ("FloorMod-1", [[-7], [3]], {"auto_broadcast": "numpy", "auto_broadcast_axis": -1}),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_kernels_give_the_same_for_sizes(name, arrays, attrs):
    kernel = registry().ops[name].kernel
    arrays = [np.array(array, np.int64) for array in arrays]
    theirs, ours = kernel(*arrays, **attrs), kernel(*map(sizes, arrays), **attrs)
    for a, b in zip(ours, theirs, strict=True) if isinstance(theirs, tuple) else [(ours, theirs)]:
        assert np.shape(a) == np.shape(b)
        assert np.asarray(a).tolist() == np.asarray(b).tolist()


SHAPES = """
import sys
from irrun.deferred import defer
defer("numpy")
import irrun
report = irrun.validate(sys.argv[1])
(result,) = report.model.graph.results
last = report.inference.nodes[result.inputs[0].layer]
print(report.ok, last.outputs[0].shape, "numpy.linalg" in sys.modules)
"""


def test_shape_arithmetic_loads_no_numpy(tmp_path):
    net = Model()
    x = net.parameter("x", "f32", (2, 3, 4))
    (shape,) = net.layer("ShapeOf", [x], [("i64", (3,))], version="opset3", output_type="i64")
    (first,) = net.layer(
        "Gather", [shape, net.constant(np.array([0])), net.constant(np.array(0))], [("i64", (1,))], version="opset8"
    )
    (rest,) = net.layer("Multiply", [net.constant(np.array([3])), net.constant(np.array([4]))], [("i64", (1,))])
    (target,) = net.layer("Concat", [first, rest], [("i64", (2,))], axis="0")
    (flat,) = net.layer("Reshape", [x, target], [("f32", (2, 12))], special_zero="false")
    net.result(flat)
    done = subprocess.run(
        [sys.executable, "-c", SHAPES, str(net.save(tmp_path))], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True (2, 12) False\n"


def windows(net, begin, end, size=56):
    """Places of a part of a picture, as a mask of windows is made: of a range, cut and put in a column."""
    numbers = [net.constant(np.array(number)) for number in (0, size * size, 1)]
    (places,) = net.layer("Range", numbers, [("i64", (size * size,))], version="opset4", output_type="i64")
    rows = net.constant(np.array([1, size, size, 1]))
    (picture,) = net.layer("Reshape", [places, rows], [("i64", (1, size, size, 1))], special_zero="false")
    cut = [net.constant(np.array(numbers)) for numbers in ([begin, begin], [end, end], [1, 1], [1, 2])]
    count = (end - begin) ** 2
    (part,) = net.layer("Slice", [picture, *cut], [("i64", (1, end - begin, end - begin, 1))], version="opset8")
    (column,) = net.layer(
        "Reshape", [part, net.constant(np.array([-1, 1]))], [("i64", (count, 1))], special_zero="false"
    )
    return column, count


def scattered(tmp_path, begin, end, more=0, factor=1):
    """A model that updates `more` less than all places of a picture at those of a part of it, times a factor."""
    net = Model()
    data = net.parameter("x", "f32", (3136 - more,))
    column, count = windows(net, begin, end)
    if factor != 1:
        (column,) = net.layer("FloorMod", [column, net.constant(np.array(factor))], [("i64", (count, 1))])
    updates = net.parameter("updates", "f32", (count,))
    (made,) = net.layer("ScatterNDUpdate", [data, column, updates], [("f32", (3136 - more,))], version="opset4")
    net.result(made)
    return net.save(tmp_path)


def test_places_that_are_computed_are_looked_at_without_numpy(tmp_path):
    path = scattered(tmp_path, 0, 50)
    done = subprocess.run([sys.executable, "-c", SHAPES, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "True (3136,) False\n"


def test_places_that_are_computed_may_be_wrong(tmp_path):
    report = irrun.validate(scattered(tmp_path, 50, 56, more=1))
    (found,) = report.errors
    assert "`indices[35, 0]` is 3135, outside [0, 3135)" in found.message
    report = irrun.validate(scattered(tmp_path, 0, 20, factor=1000))
    assert [found.code for found in report.diagnostics] == ["W948"]
    assert "`indices[360]` names the same place as `indices[8]`" in report.diagnostics[0].message


def test_many_large_tables_of_integers_are_left_to_numpy(monkeypatch, tmp_path):
    given = []
    net = Model()
    for number in range(4):
        data = net.parameter(f"x{number}", "f32", (3136,))
        column, count = windows(net, 0, 50)
        updates = net.parameter(f"updates{number}", "f32", (count,))
        (made,) = net.layer("ScatterNDUpdate", [data, column, updates], [("f32", (3136,))], version="opset4")
        net.result(made)
    array = Sizes.array
    monkeypatch.setattr(Sizes, "array", lambda self: given.append(self.size) or array(self))
    path = net.save(tmp_path)
    assert irrun.validate(path).ok
    assert max(given, default=0) <= 256
    monkeypatch.setattr(ahead, "MAX_EXACT_WORK", 10_000)
    assert irrun.validate(path).ok
