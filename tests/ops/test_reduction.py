"""Reduction ops."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from ir_builder import Model
from tolerance import tolerated

from irrun import GraphExecutor
from irrun.spec import Dim, Tensor, Violation, fresh
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.registry import registry

ops = registry().ops
NUMERIC = [
    "ReduceSum-1",
    "ReduceProd-1",
    "ReduceMean-1",
    "ReduceMax-1",
    "ReduceMin-1",
    "ReduceL1-4",
    "ReduceL2-4",
]
ALL = [
    "ReduceSum-1",
    "ReduceProd-1",
    "ReduceMean-1",
    "ReduceMax-1",
    "ReduceMin-1",
    "ReduceL1-4",
    "ReduceL2-4",
    "ReduceLogicalAnd-1",
    "ReduceLogicalOr-1",
]
SYMBOLIC = ["ReduceSum-1", "ReduceProd-1", "ReduceMax-1", "ReduceMin-1"]
NAN, INF = float("nan"), float("inf")

SLOW = {
    "ReduceSum-1": sum,
    "ReduceProd-1": math.prod,
    "ReduceMean-1": lambda numbers: sum(numbers) / len(numbers),
    "ReduceMax-1": max,
    "ReduceMin-1": min,
    "ReduceL1-4": lambda numbers: sum(map(abs, numbers)),
    "ReduceL2-4": lambda numbers: math.sqrt(sum(number * number for number in numbers)),
    "ReduceLogicalAnd-1": all,
    "ReduceLogicalOr-1": any,
}


def reduced(name, data, axes, keep_dims=False):
    data = np.asarray(data)
    result = ops[name](data, np.asarray(axes, np.int64), keep_dims=keep_dims)
    assert np.asarray(result).dtype == data.dtype
    return np.asarray(result)


def slow(name, data, axes, keep_dims):
    axes = {axis % data.ndim for axis in np.ravel(axes).astype(int).tolist()}
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(data.shape))
    groups = {}
    for place in np.ndindex(data.shape):
        target = tuple(0 if axis in axes else i for axis, i in enumerate(place))
        groups.setdefault(target, []).append(data[place].item())
    result = np.zeros(shape)
    for place, numbers in groups.items():
        result[place] = SLOW[name](numbers)
    return result if keep_dims else result.reshape([s for axis, s in enumerate(data.shape) if axis not in axes])


@pytest.mark.parametrize("name", ALL)
def test_the_examples_of_the_pages(name):
    op = ops[name]
    data = Tensor("f32" if name in NUMERIC else "boolean", (6, 12, 10, 24))
    for axes, keep_dims, shape in (
        ([2, 3], True, (6, 12, 1, 1)),
        ([2, 3], False, (6, 12)),
        ([1], False, (6, 10, 24)),
        ([-2], False, (6, 12, 24)),
    ):
        inferred = op.infer([data, Tensor.of(np.array(axes))], {"keep_dims": keep_dims})
        assert inferred.outputs == [Tensor(data.type, shape)]
        assert inferred.complete


def test_written_out_numbers():
    data = [[-1.0, 2.0], [3.0, -4.0]]
    assert reduced("ReduceSum-1", data, [1]).tolist() == [1, -1]
    assert reduced("ReduceProd-1", data, [1]).tolist() == [-2, -12]
    assert reduced("ReduceMean-1", data, [1]).tolist() == [0.5, -0.5]
    assert reduced("ReduceMax-1", data, [0]).tolist() == [3, 2]
    assert reduced("ReduceMin-1", data, [0]).tolist() == [-1, -4]
    assert reduced("ReduceL1-4", data, [0, 1]).tolist() == 10
    assert reduced("ReduceL2-4", [[3.0, -4.0]], [-1], keep_dims=True).tolist() == [[5]]
    assert reduced("ReduceLogicalAnd-1", [[True, False], [True, True]], [0]).tolist() == [True, False]
    assert reduced("ReduceLogicalOr-1", [[True, False], [False, False]], [1]).tolist() == [True, False]


CASES = list(itertools.product(ALL, [0, [1], [-1, 0], [2, 1, 0], []], [False, True]))


@pytest.mark.parametrize(("name", "axes", "keep_dims"), CASES, ids=str)
def test_agrees_with_a_loop(name, axes, keep_dims):
    random = np.random.default_rng(5)
    data = random.standard_normal((2, 3, 4)) if name in NUMERIC else random.random((2, 3, 4)) > 0.6
    got = reduced(name, data, axes, keep_dims)
    expected = slow(name, data, axes, keep_dims)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_of_a_scalar(name):
    data = np.array(2.0) if name in NUMERIC else np.array(True)
    for axes in ([], 0, [0]):
        assert reduced(name, data, axes).tolist() == data.tolist()


@pytest.mark.parametrize("name", ALL)
def test_the_result_is_a_new_array(name):
    data = np.array([1.0, 2.0]) if name in NUMERIC else np.array([True, False])
    result = reduced(name, data, [])
    assert not np.shares_memory(result, data)


def test_without_axes_the_norms_still_take_absolute_values():
    assert reduced("ReduceL1-4", [-1.0, 2.0], []).tolist() == [1, 2]
    assert reduced("ReduceL2-4", [-1.0, 2.0], []).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("name", "type", "expected"),
    [
        ("ReduceSum-1", "f4", 0),
        ("ReduceProd-1", "f4", 1),
        ("ReduceMean-1", "f4", 0),
        ("ReduceMean-1", "i4", 0),
        ("ReduceMax-1", "f4", -3.4028234663852886e38),
        ("ReduceMax-1", "f2", -INF),
        ("ReduceMax-1", ml_dtypes.bfloat16, -INF),
        ("ReduceMax-1", "i1", -128),
        ("ReduceMax-1", "u1", 0),
        ("ReduceMin-1", "f4", INF),
        ("ReduceMin-1", "f2", INF),
        ("ReduceMin-1", ml_dtypes.bfloat16, INF),
        ("ReduceMin-1", "i1", 127),
        ("ReduceL1-4", "f4", 0),
        ("ReduceL2-4", "f4", 0),
        ("ReduceLogicalAnd-1", "?", True),
        ("ReduceLogicalOr-1", "?", False),
    ],
)
def test_of_nothing(name, type, expected):
    data = np.zeros((0, 2), type)
    assert reduced(name, data, [0]).astype(float).tolist() == [expected, expected]
    assert reduced(name, data, [0, 1], keep_dims=True).astype(float).tolist() == [[expected]]
    assert reduced(name, data, [1]).shape == (0,)
    assert reduced(name, data, []).shape == (0, 2)


def test_integers_keep_their_type_and_wrap_around():
    assert reduced("ReduceSum-1", np.array([100, 100], np.int8), 0).tolist() == -56
    assert reduced("ReduceProd-1", np.array([16, 17], np.uint8), 0).tolist() == 16
    assert reduced("ReduceL1-4", np.array([-128, 1], np.int8), 0).tolist() == -127
    assert reduced("ReduceSum-1", np.array([2**62, 1], np.int64), 0).tolist() == 2**62 + 1


def test_means_of_integers_are_exact_and_truncated():
    assert reduced("ReduceMean-1", np.array([-1, -2], np.int32), 0).tolist() == -1
    assert reduced("ReduceMean-1", np.array([1, 2], np.int32), 0).tolist() == 1
    assert reduced("ReduceMean-1", np.array([200, 201], np.uint8), 0).tolist() == 200
    assert reduced("ReduceMean-1", np.full(300, -7, np.int8), 0).tolist() == -7
    assert reduced("ReduceMean-1", np.array([2**63, 2**62], np.uint64), 0).tolist() == 2**62 + 2**61


def test_norms_of_integers_are_truncated():
    assert reduced("ReduceL2-4", np.array([2, 2], np.int32), 0).tolist() == 2
    assert reduced("ReduceL2-4", np.array([100, 50], np.int8), 0).tolist() == 111
    assert reduced("ReduceL2-4", np.array([3, 4], np.uint64), 0).tolist() == 5


@pytest.mark.parametrize(
    ("type", "big", "count", "total"),
    [(np.float16, 2048, 5, 2052), (ml_dtypes.bfloat16, 256, 3, 258)],
    ids=["f16", "bf16"],
)
def test_half_precision_is_rounded_once(type, big, count, total):
    data = np.array([big] + [1] * (count - 1), type)
    assert float(reduced("ReduceSum-1", data, 0)) == total
    assert float(reduced("ReduceL1-4", -data, 0)) == total
    # the square of 300 is no f16
    assert float(reduced("ReduceL2-4", np.array([240, 320], np.float16), 0)) == 400
    assert float(reduced("ReduceMean-1", np.full(4, 60000, np.float16), 0)) == 60000
    assert float(reduced("ReduceProd-1", np.array([1000, 1000, 0.001], np.float16), 0)) == pytest.approx(1000, rel=1e-3)


@pytest.mark.parametrize("type", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64], ids=lambda t: t.__name__)
def test_max_and_min_skip_nan_and_keep_infinity(type):
    data = np.array([[NAN, 1, 2], [-INF, -INF, NAN], [INF, NAN, INF], [NAN, NAN, NAN]], type)
    np.testing.assert_array_equal(reduced("ReduceMax-1", data, 1).astype(float), [2, -INF, INF, NAN])
    np.testing.assert_array_equal(reduced("ReduceMin-1", data, 1).astype(float), [1, -INF, INF, NAN])


def test_sums_do_not_skip_nan():
    assert math.isnan(reduced("ReduceSum-1", [1.0, NAN], 0))
    assert math.isnan(reduced("ReduceL2-4", [1.0, NAN], 0))


@pytest.mark.parametrize("type", ["i8", "i32", "u64"])
def test_axes_of_every_integer_type(type):
    axes = np.array([1], type.replace("i", "int").replace("u", "uint"))
    assert np.asarray(ops["ReduceSum-1"](np.ones((2, 3)), axes)).tolist() == [3, 3]


def test_types():
    with pytest.raises(Violation, match="`data` is boolean, expected one of"):
        reduced("ReduceMax-1", [True], 0)
    with pytest.raises(Violation, match="`data` is f64, expected one of boolean"):
        reduced("ReduceLogicalAnd-1", [1.0], 0)
    with pytest.raises(Violation, match="`axes` is f32"):
        ops["ReduceSum-1"](np.ones(2), np.zeros(1, np.float32))
    with pytest.raises(Violation, match=r"`axes` has rank 2, expected a scalar or \[num_axes\]"):
        ops["ReduceSum-1"](np.ones(2), np.zeros((1, 1), np.int64))


# shapes before the run


def inferred(data, axes, keep_dims=False, name="ReduceSum-1"):
    result = ops[name].infer([Tensor("f32", data), axes], {"keep_dims": keep_dims})
    return result.outputs[0].shape


def bounds(shape):
    return [(size.low, size.high) if isinstance(size, Dim) else size for size in shape]


def test_known_axes_keep_the_other_dimensions():
    batch, length = fresh(), fresh()
    shape = inferred((batch, 3, length), Tensor.of(np.array([1])))
    assert (shape[0] == batch) is True
    assert (shape[1] == length) is True
    assert inferred((batch, length), Tensor.of(np.array([0, -1])), keep_dims=True) == (1, 1)


def test_unknown_axes_with_keep_dims_keep_the_rank():
    shape = inferred((5, 1, fresh(2, 7), fresh(), 0), Tensor("i64", (fresh(),)), keep_dims=True)
    assert bounds(shape) == [(1, 5), 1, (1, 7), (0, None), (0, 1)]
    assert len(inferred((2, 3), Tensor("i64", None), keep_dims=True)) == 2


def test_a_known_number_of_unknown_axes_gives_the_rank():
    assert bounds(inferred((5, 3, 4), Tensor("i64", (1,)))) == [(3, 5), (3, 4)]
    assert bounds(inferred((5, 5, 4), Tensor("i64", ()))) == [5, (4, 5)]
    assert inferred((5,), Tensor("i64", (1,))) == ()
    assert inferred((5,), Tensor("i64", (1,)), keep_dims=True) == (1,)
    assert inferred((5, 3), Tensor("i64", (0,))) == (5, 3)
    assert inferred((), Tensor("i64", (1,))) == ()


def test_several_unknown_axes_may_be_one():
    assert inferred((5, 3), Tensor("i64", (2,))) is None
    assert bounds(inferred((5, 3), Tensor("i64", (2,)), keep_dims=True)) == [(1, 5), (1, 3)]


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "auto"])
@pytest.mark.parametrize("type", ["f32", "f16", "bf16"])
@pytest.mark.filterwarnings("ignore:.*which names axis . twice")
def test_axes_of_a_run_that_name_one_twice(tmp_path, engine, type):
    model = Model()
    data, axes = model.parameter("data", type, (2, 4)), model.parameter("axes", "i64", (2,))
    model.result(model.layer("ReduceMax", [data, axes], [(type, (-1,))], keep_dims="false")[0])
    executor = GraphExecutor(model.save(tmp_path), engine=engine)
    given = np.arange(8).reshape(2, 4).astype(numpy_dtype(type))
    for named, expected in (([0, 0], [4, 5, 6, 7]), ([1, -1], [3, 7]), ([0, 1], 7)):
        (found,) = executor.run([given, np.array(named)]).values()
        assert found.tolist() == expected


def test_an_unknown_number_of_axes_or_an_unknown_rank_gives_nothing():
    assert inferred((5, 3), Tensor("i64", (fresh(),))) is None
    assert inferred(None, Tensor.of(np.array([0])), keep_dims=True) is None


@pytest.mark.parametrize("keep_dims", [False, True])
def test_inferred_shapes_hold_what_the_kernel_gives(keep_dims):
    data = np.ones((4, 2, 3))
    for axes in ([], [0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]):
        real = reduced("ReduceSum-1", data, axes, keep_dims).shape
        for unknown in (Tensor("i64", (len(axes),)), Tensor("i64", (fresh(),))):
            shape = inferred(data.shape, unknown, keep_dims)
            if shape is not None:
                assert len(shape) == len(real)
                assert all((size == number) is not False for size, number in zip(shape, real, strict=True))


@pytest.mark.parametrize("name", SYMBOLIC)
def test_dimensions_are_reduced_like_numbers(name):
    op = ops[name]
    assert op.symbolic
    n = fresh(1, 9)
    axes = np.array([0])
    value = op.kernel(np.array([n, 2, 3], object), axes, keep_dims=False)
    expected = {"ReduceSum-1": n + 5, "ReduceProd-1": n * 6, "ReduceMax-1": None, "ReduceMin-1": None}[name]
    if expected is not None:
        assert (value.item() == expected) is True
    else:
        assert bounds([value.item()]) == [(3, 9) if name == "ReduceMax-1" else (1, 2)]
    numbers = op.kernel(np.array([[4, 2], [3, 5]], object), np.array([0, 1]), keep_dims=True)
    assert numbers.dtype == object
    assert numbers.tolist() == [[SLOW[name]([4, 2, 3, 5])]]
    assert op.kernel(np.array([n], object), axes, keep_dims=True).shape == (1,)


# constraints


def shaped(name):
    data = np.ones((2, 3), np.float32)
    return data if name in NUMERIC else data.astype(bool)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("axis", [2, -3])
def test_reductions_c1_axis_outside_the_rank(name, axis):
    op, data, axes = ops[name], shaped(name), np.array([0, axis])
    known = [Tensor(Tensor.of(data).type, data.shape), Tensor.of(axes)]
    for call in (lambda: op.infer(known, op.defaults), lambda: op(data, axes)):
        with pytest.raises(Violation) as error:
            call()
        assert error.value.label == "C1"
        assert error.value.message == f"`axes` is {axis}, outside [-2, 2) for rank 2"


@pytest.mark.parametrize("name", ["ReduceSum-1", "ReduceMax-1", "ReduceL2-4"])
def test_reductions_c1_a_scalar_keeps_no_axis(name):
    with pytest.raises(Violation, match="`data` is a scalar, which has no axis to keep") as caught:
        ops[name](np.array(2.0), np.array([0]), keep_dims=True)
    assert caught.value.label == "C1"
    assert ops[name](np.array(2.0), np.array([0])).tolist() == 2
    assert ops[name](np.array(2.0), np.array([], int), keep_dims=True).tolist() == 2


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("axes", "twice"), [([0, 0], 0), ([1, -1], 1)])
def test_reductions_c2_axis_named_twice(name, axes, twice):
    op, data = ops[name], shaped(name)
    label, message = tolerated(op, data, np.array(axes))
    assert label == "C2"
    assert message == f"`axes` is {axes}, which names axis {twice} twice"
    with pytest.warns(UserWarning, match="counts an axis once"):
        np.testing.assert_array_equal(op(data, np.array(axes)), op(data, np.array([twice])))
