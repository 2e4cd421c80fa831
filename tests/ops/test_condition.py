"""Condition ops."""

import ml_dtypes
import numpy as np
import pytest
from irrun.opsets._indexing import places_of
from tolerance import tolerated

from irrun.spec import Body, BodyInput, BodyOutput, Dim, Tensor, Violation, fresh
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.registry import registry

OPS = registry().ops
IF, SELECT, NON_ZERO, BUCKETIZE = (OPS[name] for name in ("If-8", "Select-1", "NonZero-3", "Bucketize-3"))
BINCOUNT = OPS["Bincount-17"]


FROM_INPUT_1, TO_OUTPUT_0 = (BodyInput(1, 0),), (BodyOutput(0, 0),)


def body(results, inputs=FROM_INPUT_1, outputs=TO_OUTPUT_0, run=None, declared=()):
    """A body with one parameter whose results are known."""
    return Body(inputs, outputs, (), 1, len(results), lambda tensors: list(results), run, declared)


def if_outputs(then_results, else_results, condition=None, **fields):
    bodies = {"then_body": body(then_results, **fields), "else_body": body(else_results, **fields)}
    cond = Tensor("boolean", ()) if condition is None else Tensor.of(np.array(condition))
    return IF.infer([cond, Tensor("f32", (1,))], {}, bodies).outputs


# If


@pytest.mark.parametrize("cond", [np.array(True), np.array([True])])
def test_if_runs_one_body(cond):
    bodies = {
        "then_body": body([Tensor("f32", (1,))], run=lambda arrays: [arrays[0] + 1]),
        "else_body": body([Tensor("f32", (1,))], run=lambda arrays: [arrays[0] * 10]),
    }
    assert IF.kernel(cond, np.float32([2]), bodies=bodies)[0].tolist() == [3]
    assert IF.kernel(~cond, np.float32([2]), bodies=bodies)[0].tolist() == [20]


def test_outputs_and_inputs_are_taken_as_the_port_maps_say():
    two = [Tensor("f32", (1,)), Tensor("f32", (1,))]
    swapped = (BodyOutput(1, 0), BodyOutput(0, 1))
    bodies = {
        "then_body": body(two, (BodyInput(2, 0),), swapped, lambda arrays: [arrays[0], arrays[0] + 1]),
        "else_body": body(two, (), (BodyOutput(0, 0), BodyOutput(1, 1)), lambda arrays: [np.zeros(1), np.ones(1)]),
    }
    assert [a.tolist() for a in IF.kernel(np.array(True), np.zeros(1), np.full(1, 5), bodies=bodies)] == [[6], [5]]
    assert [a.tolist() for a in IF.kernel(np.array(False), np.zeros(1), np.full(1, 5), bodies=bodies)] == [[0], [1]]


def test_equal_sizes_are_kept_and_others_are_bounded():
    batch = fresh()
    (output,) = if_outputs([Tensor("f32", (batch, 2, 3))], [Tensor("f32", (batch, 5, 3))])
    assert output.shape[0] is batch
    assert (output.shape[1].low, output.shape[1].high) == (2, 5)
    assert output.shape[2] == 3


def test_a_size_without_bound_makes_a_size_without_bound():
    (output,) = if_outputs([Tensor("f32", (fresh(1),))], [Tensor("f32", (5,))])
    assert (output.shape[0].low, output.shape[0].high) == (1, None)


def test_different_ranks_are_unknown():
    assert if_outputs([Tensor("f32", (1, 2))], [Tensor("f32", (2,))])[0].shape is None


def test_a_constant_condition_picks_a_body():
    then, other = Tensor("f32", (1, 2)), Tensor("f32", (2,))
    assert if_outputs([then], [other], True) == [then]
    assert if_outputs([then], [other], False) == [other]


@pytest.mark.parametrize("condition", [True, False, None])
def test_a_body_that_does_not_run_goes_by_what_it_declares(condition):
    """What the other one gets breaks no rule in it."""
    given = {}

    def branch(name):
        def infer(tensors):
            given[name] = tensors[0].shape
            return [Tensor("f32", (1,))]

        return Body(FROM_INPUT_1, TO_OUTPUT_0, (), 1, 1, infer, None, (Tensor("f32", (2, 4)),))

    bodies = {name: branch(name) for name in ("then_body", "else_body")}
    cond = Tensor("boolean", ()) if condition is None else Tensor.of(np.array(condition))
    IF.infer([cond, Tensor("f32", (3, 3))], {}, bodies)
    assert given == {
        "then_body": (2, 4) if condition is False else (3, 3),
        "else_body": (2, 4) if condition is True else (3, 3),
    }


def test_if_8_c1_missing_output():
    bodies = {"then_body": body([Tensor("f32", ())]), "else_body": body([Tensor("f32", ())], outputs=())}
    with pytest.raises(Violation, match="`else_body` gives 0 outputs, expected 1"):
        IF.infer([Tensor("boolean", ()), Tensor("f32", ())], {}, bodies)
    with pytest.raises(Violation, match="`then_body` gives 0 outputs, expected 1"):
        if_outputs([], [], outputs=())


def test_if_8_c2_different_types():
    with pytest.raises(Violation, match="output 0 is f32 in `then_body`, but f16 in `else_body`"):
        if_outputs([Tensor("f32", (1,))], [Tensor("f16", (1,))], True)


def test_if_8_c3_type_of_a_parameter():
    given = body([Tensor("f32", ())], declared=(Tensor("i32", ()),))
    bodies = {"then_body": given, "else_body": body([Tensor("f32", ())])}
    (found,) = IF.infer([Tensor("boolean", ()), Tensor("f32", (1,))], {}, bodies).tolerated
    assert found.does == "goes by the type of the input"
    assert found.violation.label == "C3"
    assert found.violation.message == "input 1 is f32, but parameter 0 of the body declares i32"


def test_the_condition_has_one_element():
    with pytest.raises(Violation, match="`cond` has a dimension of 2, expected 1"):
        IF.infer([Tensor("boolean", (2,))], {}, {})


# Select


def select(cond, then, other, **attrs):
    return SELECT(np.array(cond, bool), np.asarray(then), np.asarray(other), **attrs)


def test_select_of_the_specification():
    cond = [[False, False], [True, False], [True, True]]
    result = select(cond, [[-1, 0], [1, 2], [3, 4]], [[11, 10], [9, 8], [7, 6]])
    assert result.tolist() == [[11, 10], [1, 8], [3, 4]]


def test_select_against_a_slow_loop():
    rng = np.random.default_rng(0)
    cond, then, other = rng.random((3, 1)) < 0.5, rng.random((2, 1, 4)), rng.random(4)
    result = select(cond, then, other)
    for i in range(2):
        for j in range(3):
            for k in range(4):
                assert result[i, j, k] == (then[i, 0, k] if cond[j, 0] else other[k])


def test_select_keeps_the_type():
    for dtype in (np.float16, np.int8, np.uint64, ml_dtypes.bfloat16, ml_dtypes.int4):
        assert select([True, False], np.ones((), dtype), np.zeros(2, dtype)).dtype == dtype
    assert select([True, False], ["a"], ["long"]).tolist() == ["a", "long"]


def test_the_condition_may_be_larger():
    assert select([True, False], 1, 2).tolist() == [1, 2]


def test_select_pdpd_aligns_with_then():
    then = np.arange(6).reshape(2, 3)
    result = select([True, False], then, [7, 8], auto_broadcast="pdpd", auto_broadcast_axis=0)
    assert result.tolist() == [[0, 1, 2], [8, 8, 8]]
    assert select([True, False, True], then, then + 10, auto_broadcast="pdpd").tolist() == [[0, 11, 2], [3, 14, 5]]


def test_select_computes_on_sizes():
    size = fresh()
    args = np.array([True, False]), np.array([size, 1], object), np.array([2, 3])
    assert SELECT.kernel(*args, auto_broadcast="numpy", auto_broadcast_axis=-1).tolist() == [size, 3]


def test_select_infers_unknown_sizes():
    batch = fresh()
    inputs = [Tensor("boolean", (1, 4)), Tensor("f32", (batch, 1)), Tensor("f32", ())]
    assert SELECT.infer(inputs, SELECT.defaults).outputs == [Tensor("f32", (batch, 4))]
    inputs = [Tensor("boolean", None), *inputs[1:]]
    assert SELECT.infer(inputs, SELECT.defaults).outputs == [Tensor("f32", None)]


@pytest.mark.parametrize(("mode", "shape"), [("numpy", (3,)), ("none", (1,)), ("none", (1, 2)), ("pdpd", (3,))])
def test_select_1_c1_shapes_that_do_not_broadcast(mode, shape):
    message = rf"and `else` is \[{', '.join(map(str, shape))}\], which do not broadcast \({mode}\)"
    with pytest.raises(Violation, match=message):
        select([True, False], [1, 2], np.zeros(shape, np.int64), auto_broadcast=mode)


def test_select_1_c1_condition_that_does_not_broadcast():
    with pytest.raises(Violation, match=r"`cond` is \[3\], `then` is \[2\] and `else` is \[2\], which"):
        select([True, False, True], [1, 2], [1, 2])
    with pytest.raises(Violation, match=r"which do not broadcast \(none\)"):
        select([True], [1, 2], [1, 2], auto_broadcast="none")


@pytest.mark.parametrize("mode", ["numpy", "none", "pdpd"])
@pytest.mark.parametrize("unknown", ["cond", "then", "else"])
def test_select_1_c1_two_shapes_that_do_not_broadcast_whatever_the_third_is(mode, unknown):
    shapes = {"cond": (2, 4), "then": (2, 3), "else": (2, 4)}
    if unknown == "then":
        shapes["else"] = (2, 5)
    shapes[unknown] = None
    tensors = [Tensor("boolean" if name == "cond" else "f32", shape) for name, shape in shapes.items()]
    attrs = {"auto_broadcast": mode, "auto_broadcast_axis": -1}
    first, second = [f"`{name}` is {list(shape)}" for name, shape in shapes.items() if shape is not None]
    with pytest.raises(Violation) as caught:
        SELECT.infer(tensors, attrs)
    assert caught.value.label == "C1"
    if (mode, unknown) == ("pdpd", "then"):
        message = "`cond` is [2, 4], `then` is [?, ?, ?, ?] and `else` is [2, 5], which do not broadcast (pdpd)"
        assert caught.value.message == f"{message}, if `then` has rank 4; with any other rank something else is wrong"
    else:
        assert caught.value.message == f"{first} and {second}, which do not broadcast ({mode})"


@pytest.mark.parametrize("mode", ["numpy", "none", "pdpd"])
def test_select_of_an_unknown_rank(mode):
    for unknown in range(3):
        shapes = [None if number == unknown else (2, 3) for number in range(3)]
        tensors = [Tensor(type, shape) for type, shape in zip(("boolean", "f32", "f32"), shapes, strict=True)]
        attrs = {"auto_broadcast": mode, "auto_broadcast_axis": -1}
        (inferred,) = SELECT.infer(tensors, attrs).outputs
        assert inferred.shape == (None if mode != "none" else (2, 3))


# NonZero


def test_non_zero_of_the_specification():
    result = NON_ZERO(np.array([[1, 0], [1, 1]]))
    assert result.tolist() == [[0, 1, 1], [0, 0, 1]]
    assert result.dtype == np.int64


@pytest.mark.parametrize("dtype", [np.bool_, np.float16, np.uint8, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_non_zero_of_any_type(dtype):
    result = NON_ZERO(np.array([0, 1, 0, 1]).astype(dtype), output_type="i32")
    assert result.tolist() == [[1, 3]]
    assert result.dtype == np.int32


def test_non_zero_takes_nan_and_leaves_negative_zero():
    assert NON_ZERO(np.array([float("nan"), -0.0])).tolist() == [[0]]


def test_non_zero_of_scalars_and_empty_tensors():
    assert NON_ZERO(np.array(5)).shape == (0, 1)
    assert NON_ZERO(np.array(0)).shape == (0, 0)
    assert NON_ZERO(np.zeros((2, 0))).shape == (2, 0)
    assert NON_ZERO(np.zeros((2, 3))).shape == (2, 0)


def test_non_zero_has_at_most_as_many_columns_as_elements():
    rank, count = NON_ZERO.infer([Tensor("f32", (2, 3))], NON_ZERO.defaults).outputs[0].shape
    assert (rank, count.low, count.high) == (2, 0, 6)
    _, count = NON_ZERO.infer([Tensor("f32", (2, fresh(0, 5)))], NON_ZERO.defaults).outputs[0].shape
    assert count.high == 10
    assert NON_ZERO.infer([Tensor.of(np.array([3, 0, 1]))], NON_ZERO.defaults).outputs[0].shape == (1, 2)
    assert isinstance(NON_ZERO.infer([Tensor("f32", None)], NON_ZERO.defaults).outputs[0].shape[0], Dim)


# Bucketize


def bucketize(data, boundaries, **attrs):
    return BUCKETIZE(np.asarray(data), np.asarray(boundaries), **attrs)


def test_bucketize_of_the_specification():
    result = bucketize([[3, 50], [10, -1]], [0, 5, 10])
    assert result.tolist() == [[1, 3], [2, 0]]
    assert result.dtype == np.int64


def test_bucketize_against_a_slow_loop():
    data, boundaries = np.array([-1, 0, 2.5, 5, 7, 10, 11]), [0, 5, 10]
    right = bucketize(data, boundaries)
    left = bucketize(data, boundaries, with_right_bound=False, output_type="i32")
    assert left.dtype == np.int32
    for value, a, b in zip(data, right, left, strict=True):
        assert a == sum(boundary < value for boundary in boundaries)
        assert b == sum(boundary <= value for boundary in boundaries)


def test_bucketize_without_boundaries():
    assert bucketize([1.0, 2.0], np.zeros(0)).tolist() == [0, 0]
    assert bucketize(np.zeros((0, 2)), [1.0]).shape == (0, 2)
    assert bucketize(np.float32(3), [1.0]).shape == ()


def test_bucketize_of_nan():
    assert bucketize(np.array([np.nan, 9]), [0.0, 1.0]).tolist() == [0, 2]
    assert bucketize(np.array([np.nan, -9]), [0.0, 1.0], with_right_bound=False).tolist() == [2, 0]


def test_bucketize_mixes_types():
    data = np.array([0.5, 1, 2], ml_dtypes.bfloat16)
    assert bucketize(data, np.array([1, 2])).tolist() == [0, 0, 1]
    assert bucketize(np.array([1, 2]), np.array([0.5, 1.5], np.float16)).tolist() == [1, 2]
    assert bucketize(np.array([1, 2]), np.array([0.5, 1.5], ml_dtypes.bfloat16)).tolist() == [1, 2]


def test_bucketize_3_c1_boundaries_that_do_not_ascend():
    with pytest.raises(Violation, match=r"`buckets\[1\]` is 5, not below `buckets\[2\]`, 4"):
        bucketize([1], [0, 5, 4])


def test_bucketize_3_c1_boundaries_that_are_there_twice_are_buckets_without_elements():
    given = np.array([1, 5, 6]), np.array([0, 5, 5])
    assert tolerated(BUCKETIZE, *given) == ("C1", "`buckets[1]` is 5, not below `buckets[2]`, 5")
    assert BUCKETIZE.kernel(*given, **BUCKETIZE.defaults).tolist() == [1, 1, 3]


# Bincount


@pytest.mark.parametrize("type", ["i32", "i64", "u8", "u16", "u32", "u64"])
def test_bincount_counts_each_number_up_to_the_largest(type):
    found = BINCOUNT(np.array([0, 1, 1, 3, 3], numpy_dtype(type)))
    assert (found.tolist(), found.dtype) == ([1, 2, 0, 2], np.int64)


def test_bincount_has_minlength_numbers_or_more():
    assert BINCOUNT(np.array([1, 1]), minlength=4).tolist() == [0, 2, 0, 0]
    assert BINCOUNT(np.array([5]), minlength=4).tolist() == [0, 0, 0, 0, 0, 1]
    assert BINCOUNT(np.zeros(0, np.int32), minlength=3).tolist() == [0, 0, 0]
    assert BINCOUNT(np.zeros(0, np.int32)).shape == (0,)


@pytest.mark.parametrize("type", ["f32", "f64", "i32", "i64"])
def test_bincount_adds_up_weights_as_a_slow_loop_does(type):
    rng = np.random.default_rng(17)
    data, weights = rng.integers(0, 9, 50), (rng.normal(size=50) * 100).astype(numpy_dtype(type))
    found = BINCOUNT(data, weights, minlength=12)
    assert (found.dtype, found.shape) == (numpy_dtype(type), (12,))
    for number, total in enumerate(found.tolist()):
        assert total == pytest.approx(
            sum(w for d, w in zip(data.tolist(), weights.tolist(), strict=True) if d == number), 1e-6
        )
    assert BINCOUNT(data[:0], weights[:0], minlength=2).tolist() == [0, 0]


def test_bincount_of_integers_wraps_around():
    assert BINCOUNT(np.array([0, 0]), np.array([2**31 - 1, 1], np.int32)).tolist() == [-(2**31)]
    assert BINCOUNT(np.array([0, 0]), np.array([2**53, 1], np.int64)).tolist() == [2**53 + 1]


def test_bincount_infers_what_is_known():
    def infer(*tensors, **attrs):
        (output,) = BINCOUNT.infer(tensors, BINCOUNT.defaults | attrs).outputs
        return output

    known, unknown = Tensor.of(np.array([0, 4, 2])), Tensor("i32", (3,))
    assert infer(known).shape == (5,)
    assert infer(known, minlength=9).shape == (9,)
    found = infer(unknown, minlength=4)
    assert (found.type, found.shape[0].low, found.shape[0].high) == ("i64", 4, None)
    assert infer(unknown, Tensor("f32", (3,))).type == "f32"
    assert infer(Tensor("i64", None), Tensor("dynamic", None)).type == "dynamic"


def test_bincount_17_c1_negative_minlength():
    with pytest.raises(Violation, match="minlength is -1, expected 0 or more") as caught:
        BINCOUNT(np.array([1]), minlength=-1)
    assert caught.value.label == "C1"


def test_bincount_17_c2_negative_numbers():
    with pytest.raises(Violation, match=r"`data\[1\]` is -3, expected a number that is not negative") as caught:
        BINCOUNT(np.array([1, -3]))
    assert caught.value.label == "C2"


def test_bincount_takes_one_weight_for_each_number():
    with pytest.raises(Violation):
        BINCOUNT(np.array([1, 2]), np.float32([1]))


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4, 5), (1, 1, 7), (0, 3), (3, 0), (2, 0, 4), (6, 1)])
def test_places_of_what_holds_are_those_of_numpy(shape):
    rng = np.random.default_rng(3)
    for mask in (rng.random(shape) > 0.5, np.zeros(shape, bool), np.ones(shape, bool), (rng.random(shape) > 0.3).T):
        found = places_of(mask)
        np.testing.assert_array_equal(found, np.array(np.nonzero(mask)))
        assert found.dtype == np.int64
