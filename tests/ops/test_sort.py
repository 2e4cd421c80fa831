"""Sort ops."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from irrun.spec import Dim, Tensor, Violation, fresh, numpy_dtype
from irrun.spec.registry import registry

ops = registry().ops
NAN, INF = float("nan"), float("inf")
every_top_k = pytest.mark.parametrize("op", [ops["TopK-1"], ops["TopK-3"], ops["TopK-11"]], ids=lambda op: op.name)
top_k, search_sorted = ops["TopK-11"], ops["SearchSorted-15"]


def chosen(data, k, axis=0, mode="max", sort="value", op=top_k, **attrs):
    values, indices = op(np.asarray(data), np.array(k), axis=axis, mode=mode, sort=sort, **attrs)
    assert values.shape == indices.shape
    return values.tolist(), indices.tolist()


def slow_top_k(row, k, mode, sort):
    """Positions in a list without NaN."""
    order = sorted(range(len(row)), key=lambda i: (-row[i] if mode == "max" else row[i], i))[:k]
    return sorted(order) if sort == "index" else order


def test_top_k_11_example_of_the_page():
    data = [5, 3, 1, 2, 5, 5]
    assert chosen(data, 4, 0, "min", "index", stable=True) == ([5, 3, 1, 2], [0, 1, 2, 3])


@every_top_k
def test_top_k_orders_by_value_or_index(op):
    data = [5, 9, 1, 7, 3]
    assert chosen(data, 3, 0, "max", "value", op) == ([9, 7, 5], [1, 3, 0])
    assert chosen(data, 3, 0, "max", "index", op) == ([5, 9, 7], [0, 1, 3])
    assert chosen(data, 3, 0, "min", "value", op) == ([1, 3, 5], [2, 4, 0])
    assert chosen(data, 3, 0, "min", "index", op) == ([5, 1, 3], [0, 2, 4])


@pytest.mark.filterwarnings("ignore:.*`data` is boolean")
def test_top_k_11_of_booleans():
    data = [False, True, False, True, True]
    assert chosen(data, 4, 0, "max") == ([True, True, True, False], [1, 3, 4, 0])
    assert chosen(data, 3, 0, "min") == ([False, False, True], [0, 2, 1])
    assert chosen(data, 1, 0, "max") == ([True], [1])


@pytest.mark.parametrize("stable", [False, True])
def test_top_k_takes_the_lower_index_of_equal_elements_first(stable):
    data = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0]
    assert chosen(data, 2, 0, "max", stable=stable)[1] == [1, 3]
    assert chosen(data, 4, 0, "max", stable=stable)[1] == [1, 3, 5, 0]
    assert chosen(data, 4, 0, "min", stable=stable)[1] == [0, 2, 4, 1]
    assert chosen(data, 4, 0, "min", "index", stable=stable)[1] == [0, 1, 2, 4]
    assert chosen(data, 1, 0, "max", stable=stable)[1] == [1]


def test_top_k_zeros_of_both_signs_are_equal():
    assert chosen([0.0, -0.0, 0.0], 2, 0, "max")[1] == [0, 1]
    assert chosen([0.0, -0.0, 0.0], 2, 0, "min")[1] == [0, 1]


def test_top_k_sort_none_is_by_value():
    assert chosen([5, 3, 1, 2, 5, 5, 9, 7], 4, 0, "max", "none") == ([9, 7, 5, 5], [6, 7, 0, 4])


@pytest.mark.parametrize("type", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64], ids=lambda t: t.__name__)
def test_top_k_nan_is_smaller_than_any_number(type):
    data = np.array([1, NAN, 3, NAN, -INF, INF], type)
    for mode, order in (("max", [5, 2, 0, 4, 1, 3]), ("min", [1, 3, 4, 0, 2, 5])):
        for k in (1, 3, 5, 6):
            values, indices = top_k(data, np.array(k), axis=0, mode=mode, sort="value")
            assert indices.tolist() == order[:k]
            np.testing.assert_array_equal(values.astype(float), data[order[:k]].astype(float))


@pytest.mark.parametrize("type", [np.int8, np.int64, np.uint8, np.uint64])
def test_top_k_of_the_extremes_of_integers(type):
    low, high = np.iinfo(type).min, np.iinfo(type).max
    data = np.array([1, low, high, low, 2], type)
    values, indices = top_k(data, np.array(3), axis=0, mode="max", sort="value")
    assert values.dtype == type
    assert (values.tolist(), indices.tolist()) == ([high, 2, 1], [2, 4, 0])
    values, indices = top_k(data, np.array(3), axis=0, mode="min", sort="value")
    assert (values.tolist(), indices.tolist()) == ([low, low, 1], [1, 3, 0])


@pytest.mark.parametrize(
    ("axis", "mode", "sort"), list(itertools.product([0, 1, -1], ["min", "max"], ["value", "index"]))
)
@pytest.mark.parametrize(
    ("type", "numbers"),
    [
        (np.float32, (-4, 4)),
        (np.float64, (-4, 4)),
        (np.int8, (-128, 128)),
        (np.int64, (-4, 4)),
        (np.int64, (2**62, 2**62 + 4)),
        (np.int64, (-(2**63), 2**63 - 1)),  # beside an index they need more than 64 bits
        (np.int64, (-(2**59), 2**59)),  # the most that do not
        (np.uint64, (2**64 - 4, 2**64 - 1)),
        (np.uint64, (0, 2**64 - 1)),
    ],
)
def test_top_k_agrees_with_a_loop(axis, mode, sort, type, numbers):
    drawn = np.uint64 if type is np.uint64 else np.int64
    data = np.random.default_rng(3).integers(*numbers, (4, 5, 6), drawn).astype(type)
    data[1, 2] = data[1, 3]
    for k in (1, 2, 4):
        values, indices = top_k(data, np.array(k), axis=axis, mode=mode, sort=sort)
        rows = np.moveaxis(data, axis, -1).reshape(-1, data.shape[axis])
        expected = [slow_top_k(row.tolist(), k, mode, sort) for row in rows]
        assert np.moveaxis(indices, axis, -1).reshape(-1, k).tolist() == expected
        np.testing.assert_array_equal(values, np.take_along_axis(data, indices, axis))


@every_top_k
def test_top_k_index_types_and_the_types_of_k(op):
    for type in ("i8", "i32", "i64"):
        k = np.array(2, type.replace("i", "int"))
        assert op(np.arange(3.0), k, axis=0, mode="max", sort="value")[1].dtype == np.int32
    got = op(np.arange(3.0), np.array(2), axis=0, mode="max", sort="value", index_element_type="i64")
    assert got[0].dtype == np.float64
    assert got[1].dtype == np.int64


def test_top_k_1_does_not_take_k_of_every_type():
    with pytest.raises(Violation, match="`k` is u8, expected one of i8, i32, i64"):
        ops["TopK-1"](np.arange(3.0), np.uint8(2), axis=0, mode="max", sort="value")
    assert chosen(np.arange(3.0), np.uint8(2), op=ops["TopK-3"])[1] == [2, 1]


def test_top_k_of_no_rows():
    assert chosen(np.zeros((0, 3)), 2, axis=1) == ([], [])
    assert top_k(np.zeros((0, 3)), np.array(2), axis=1, mode="max", sort="value")[0].shape == (0, 2)


@every_top_k
def test_top_k_of_no_elements_may_take_none(op):
    """As detectors do that find nothing: OpenVINO gives nothing, too."""
    for shape, axis, expected in (((0,), 0, (0,)), ((3, 0), -1, (3, 0)), ((3, 0), 0, (0, 0)), ((0, 5), 1, (0, 0))):
        data = np.zeros(shape, np.float32)
        values, indices = op(data, np.array(0), axis=axis, mode="max", sort="value", index_element_type="i64")
        assert (values.shape, values.dtype, indices.shape, indices.dtype) == (expected, "f4", expected, "i8")
        refuses(op, "C2", "`k` is -1, expected 0 or more", data, np.array(-1), axis)
    refuses(op, "C2", "`k` is 1, above 0, the size of `data` along axis 0", np.zeros(0, np.float32), np.array(1), 0)
    (values, _), complete = inferred(Tensor("f32", (fresh(), 5)), Tensor.of(np.array(0)), op=op)
    assert values.shape[1] == 0
    assert not complete  # the run tells whether there are elements


def inferred(data, k, axis=1, op=top_k):
    attrs = op.defaults | {"axis": axis, "mode": "max", "sort": "value"}
    result = op.infer([data, k], attrs)
    return result.outputs, result.complete


@every_top_k
def test_top_k_shape_and_types(op):
    (values, indices), complete = inferred(Tensor("f16", (2, 5, 4)), Tensor.of(np.array(3)), -2, op)
    assert (values.type, values.shape) == ("f16", (2, 3, 4))
    assert (indices.type, indices.shape) == ("i32", (2, 3, 4))
    assert complete


def test_top_k_shape_where_k_is_unknown_is_bounded_by_the_axis():
    batch = fresh()
    (values, indices), complete = inferred(Tensor("f32", (batch, 5)), Tensor("i64", ()))
    assert (values.shape[0] == batch) is True
    assert isinstance(values.shape[1], Dim)
    assert (values.shape[1].low, values.shape[1].high) == (0, 5)
    (filled, _), _ = inferred(Tensor("f32", (2, 5)), Tensor("i64", ()))
    assert (filled.shape[1].low, filled.shape[1].high) == (1, 5)
    assert (values.shape[1] == indices.shape[1]) is True
    assert not complete
    assert inferred(Tensor("f32", (2, 1)), Tensor("i64", ()))[0][0].shape == (2, 1)


def test_top_k_shape_where_k_is_a_dimension_or_the_rank_is_unknown():
    k = fresh()
    (values, _), _ = inferred(Tensor("f32", (3, fresh())), Tensor("i64", (), np.array(k, object)))
    assert (values.shape[1] == k) is True
    assert inferred(Tensor("f32", None), Tensor.of(np.array(2)))[0][0].shape is None


def refuses(op, label, message, data, k, axis):
    tensors = [Tensor("f32", data.shape), Tensor.of(k)]
    attrs = {"axis": axis, "mode": "max", "sort": "value"}
    for call in (lambda: op.infer(tensors, op.defaults | attrs), lambda: op(data, k, **attrs)):
        with pytest.raises(Violation) as error:
            call()
        assert (error.value.label, error.value.message) == (label, message)


def refuses_axis(op):
    data = np.zeros((2, 3), np.float32)
    refuses(op, "C1", "`axis` is 2, outside [-2, 2) for rank 2", data, np.array(1), 2)
    refuses(op, "C1", "`axis` is -3, outside [-2, 2) for rank 2", data, np.array(1), -3)
    refuses(op, "C1", "`data` is a scalar, which has no axis", np.zeros((), np.float32), np.array(1), 0)


def refuses_k(op):
    data = np.zeros((2, 3), np.float32)
    refuses(op, "C2", "`k` is 4, above 3, the size of `data` along axis 1", data, np.array(4), -1)
    refuses(op, "C2", "`k` is 0, expected 1 or more", data, np.array(0), 1)
    refuses(op, "C2", "`k` is -1, expected 1 or more", data, np.array(-1), 1)


def test_topk_1_c1_axis_outside_the_rank():
    refuses_axis(ops["TopK-1"])


def test_topk_3_c1_axis_outside_the_rank():
    refuses_axis(ops["TopK-3"])


def test_topk_11_c1_axis_outside_the_rank():
    refuses_axis(ops["TopK-11"])


def test_topk_1_c2_k_outside_the_axis():
    refuses_k(ops["TopK-1"])


def test_topk_3_c2_k_outside_the_axis():
    refuses_k(ops["TopK-3"])


def test_topk_11_c2_k_outside_the_axis():
    refuses_k(ops["TopK-11"])


def test_topk_11_c3_stable_without_an_order():
    with pytest.raises(Violation, match="`stable` is true, but `sort` is none") as caught:
        ops["TopK-11"](np.arange(3.0), np.array(1), axis=0, mode="max", sort="none", stable=True)
    assert caught.value.label == "C3"


def test_topk_11_c2_k_above_the_upper_bound_of_the_axis():
    with pytest.raises(Violation, match=r"`k` is 9, above 2\.\.5, the size of `data` along axis 1"):
        inferred(Tensor("f32", (1, fresh(2, 5))), Tensor.of(np.array(9)))


@every_top_k
def test_top_k_needs_a_scalar_k(op):
    with pytest.raises(Violation, match=r"`k` has rank 1, expected a scalar"):
        op(np.arange(3.0), np.array([1]), axis=0, mode="max", sort="value")


@pytest.mark.parametrize("type", ["f32", "bf16", "f16", "i64", "u8"])
def test_search_sorted_counts_the_elements_below_or_up_to_a_value(type):
    rows, values = np.array([[1, 3, 3, 7], [0, 0, 2, 2]]), np.array([[3, 8, 0], [2, 1, 0]])
    dtype = numpy_dtype(type)
    for right in (False, True):
        got = search_sorted(rows.astype(dtype), values.astype(dtype), right_mode=right)
        want = [
            [sum(r <= v if right else r < v for r in row) for v in some] for row, some in zip(rows, values, strict=True)
        ]
        assert got.tolist() == want
        assert got.dtype == np.int64


def test_search_sorted_rows_say_what_is_unknown_of_values():
    attrs = search_sorted.defaults | {"output_type": "i64"}
    given = [Tensor("f32", (2, 3, 7)), Tensor("f32", (fresh(), fresh(), 4))]
    assert search_sorted.infer(given, attrs).outputs[0].shape == (2, 3, 4)


def test_search_sorted_one_row_serves_any_values():
    assert search_sorted(np.array([1, 5]), np.array(3), output_type="i32").tolist() == 1
    assert search_sorted(np.zeros(0), np.ones((2, 2))).tolist() == [[0, 0], [0, 0]]
    assert search_sorted(np.zeros((2, 0)), np.ones((2, 3))).tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("right", [False, True])
def test_search_sorted_puts_nan_in_front(right):
    assert search_sorted(np.array([1.0, 5.0]), np.array([NAN, 6]), right_mode=right).tolist() == [0, 2]


def test_searchsorted_15_c1_rows_that_do_not_fit_the_values():
    with pytest.raises(Violation, match=r"`sorted` is \[2, 4\] and `values` is \[3, 3\]") as error:
        search_sorted(np.zeros((2, 4)), np.zeros((3, 3)))
    assert error.value.label == "C1"
    with pytest.raises(Violation, match=r"`values` is \[4\]"):
        search_sorted(np.zeros((2, 4)), np.zeros(4))


random = np.random.default_rng(5)
FIXED = ["NonMaxSuppression-1", "NonMaxSuppression-3", "NonMaxSuppression-4"]
SCORED = ["NonMaxSuppression-5", "NonMaxSuppression-9"]
every_nms = pytest.mark.parametrize("name", FIXED + SCORED)
PAGE_BOXES = np.array(
    [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]]
)
PAGE_SCORES = np.array([0.9, 0.75, 0.6, 0.95, 0.5, 0.3])


def suppressed(name, boxes=PAGE_BOXES, scores=PAGE_SCORES, most=3, iou=0.5, score=0.0, *more, **attrs):
    """The rows that are taken, without those after the end."""
    boxes, scores = np.array(boxes, np.float32), np.array(scores, np.float32)
    boxes = boxes if boxes.ndim == 3 else boxes[None]
    scores = scores if scores.ndim == 3 else scores[None, None]
    limits = [np.array(most), *(np.float32(item) for item in (iou, score, *more))]
    result = ops[name](boxes, scores, *limits, **attrs)
    rows = result[0] if isinstance(result, tuple) else result
    return [row for row in rows.tolist() if row[0] != -1]


def slow_iou(a, b, pixel=0.0):
    width, height = (min(a[i + 2], b[i + 2]) - max(a[i], b[i]) for i in (0, 1))
    shared = 0 if min(width, height) < 0 else (width + pixel) * (height + pixel)
    areas = [(box[2] - box[0] + pixel) * (box[3] - box[1] + pixel) for box in (a, b)]
    return shared / (sum(areas) - shared)


def slow_suppression(boxes, scores, most, iou, score):
    taken = []
    for box in sorted(range(len(boxes)), key=lambda i: (-scores[i], i)):
        if scores[box] > score and len(taken) < most and all(slow_iou(boxes[box], boxes[i]) <= iou for i in taken):
            taken.append(box)
    return taken


@every_nms
def test_suppression_takes_the_best_of_each_cluster(name):
    assert suppressed(name) == [[0, 0, 3], [0, 0, 0], [0, 0, 5]]
    assert suppressed(name, most=2) == [[0, 0, 3], [0, 0, 0]]
    assert suppressed(name, score=0.3) == [[0, 0, 3], [0, 0, 0]]
    assert suppressed(name, most=6, iou=1.0) == [[0, 0, box] for box in (3, 0, 1, 2, 4, 5)]


@every_nms
def test_suppression_takes_any_corners_and_centers(name):
    flipped = PAGE_BOXES[:, [2, 1, 0, 3]]
    assert suppressed(name, flipped) == [[0, 0, 3], [0, 0, 0], [0, 0, 5]]
    centers = np.concatenate([(PAGE_BOXES[:, :2] + PAGE_BOXES[:, 2:]) / 2, PAGE_BOXES[:, 2:] - PAGE_BOXES[:, :2]], 1)
    assert suppressed(name, centers, box_encoding="center") == [[0, 0, 3], [0, 0, 0], [0, 0, 5]]


@every_nms
def test_suppression_equals_a_slow_loop(name):
    boxes = random.uniform(0, 1, (40, 2))
    boxes = np.concatenate([boxes, boxes + random.uniform(0.1, 0.5, (40, 2))], 1).astype(np.float32)
    scores = random.integers(1, 9, 40) / 10
    expected = slow_suppression(boxes.tolist(), scores.tolist(), 40, 0.3, 0.2)
    assert suppressed(name, boxes, scores, 40, 0.3, 0.2) == [[0, 0, box] for box in expected]


@every_nms
def test_suppression_orders_over_batches_and_classes(name):
    boxes = np.stack([PAGE_BOXES[[0, 3]]] * 2)
    scores = [[[0.5, 0.25], [0.75, 0.25]], [[0.5, 0.875], [0.125, 0]]]
    ordered = [[1, 0, 1], [0, 1, 0], [0, 0, 0], [1, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 0]]
    unordered = [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 1], [1, 0, 0], [1, 1, 0]]
    assert suppressed(name, boxes, scores) == ordered
    assert suppressed(name, boxes, scores, sort_result_descending=False) == unordered


@every_nms
def test_suppression_without_limits_takes_nothing(name):
    result = ops[name](PAGE_BOXES[None], PAGE_SCORES[None, None])
    rows = result[0] if isinstance(result, tuple) else result
    assert rows.shape == (0, 3)
    assert suppressed(name, np.zeros((1, 0, 4)), np.zeros((1, 1, 0))) == []


@pytest.mark.parametrize("name", ["NonMaxSuppression-1", "NonMaxSuppression-3", "NonMaxSuppression-4"])
def test_filled_suppressions_c1_negative_limit(name):
    with pytest.raises(Violation) as caught:
        suppressed(name, most=-1)
    assert caught.value.label == "C1"
    assert caught.value.message == "`max_output_boxes_per_class` is -1, expected 0 or more"


@pytest.mark.parametrize("name", ["NonMaxSuppression-5", "NonMaxSuppression-9"])
def test_scored_suppressions_c1_negative_limit(name):
    with pytest.raises(Violation) as caught:
        suppressed(name, most=-1)
    assert caught.value.label == "C1"
    assert caught.value.message == "`max_output_boxes_per_class` is -1, expected 0 or more"


def test_unused_rows_are_minus_one():
    name = "NonMaxSuppression-4"
    boxes, scores = np.zeros((1, 6, 4), np.float32), np.full((1, 2, 6), 0.5, np.float32)
    boxes[..., 2:] = 1
    few = ops[name](boxes[:, :4], scores[:, :1, :4], np.array(4), np.float32(0.5))
    assert few.tolist() == [[0, 0, 0], *[[-1] * 3] * 3]
    assert ops[name](boxes, scores, np.array(6), np.float32(0.5)).shape == (6 * 2, 3)


@pytest.mark.parametrize("name", ["NonMaxSuppression-1", "NonMaxSuppression-3"])
def test_first_versions_have_a_row_for_each_box_of_all_images(name):
    boxes, scores = np.tile(np.float32([0, 0, 1, 1]), (3, 6, 1)), np.full((3, 2, 6), 0.5, np.float32)
    found = ops[name](boxes, scores, np.array(1), np.float32(0.5))
    assert found.tolist() == [[image, label, 0] for image in range(3) for label in range(2)]
    known = [Tensor("f32", (3, 6, 4)), Tensor("f32", (3, 2, 6)), Tensor.of(np.array(1)), Tensor("f32", ())]
    (rows, three) = ops[name].infer(known, ops[name].defaults).outputs[0].shape
    assert (rows.high, three) == (6, 3)


def test_rows_of_unknown_boxes():
    boxes, scores = Tensor("f32", (fresh(), fresh(), 4)), Tensor("f32", (fresh(), 3, fresh()))
    limit = Tensor.of(np.array(5))
    for name, attrs in ((FIXED[0], {}), (FIXED[1], {"output_type": "i32"})):
        (tensor,) = ops[name].infer([boxes, scores, limit], ops[name].defaults | attrs).outputs
        assert (tensor.type, tensor.shape[0].high) == (attrs.get("output_type", "i64"), None)
    (tensor,) = ops[FIXED[2]].infer([boxes, scores, limit], ops[FIXED[2]].defaults).outputs
    assert tensor.shape[1] == 3
    known = [Tensor("f32", (2, 9, 4)), Tensor("f32", (2, 3, 9)), limit]
    assert ops[FIXED[2]].infer(known, ops[FIXED[2]].defaults).outputs[0].shape == (30, 3)
    for name in SCORED:
        first, second, third = ops[name].infer(known, ops[name].defaults).outputs
        assert (first.shape[0].low, first.shape[0].high) == (0, 30)
        assert (first.shape[0] == second.shape[0]) is True
        assert third.shape == (1,)
        assert second.type == "f32"
        unknown = ops[name].infer([boxes, scores, Tensor("i64", ())], ops[name].defaults).outputs
        assert unknown[0].shape[0].high is None


@pytest.mark.parametrize("type", [np.float16, ml_dtypes.bfloat16, np.float64], ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", SCORED)
def test_scores_have_the_type_of_the_thresholds(name, type):
    boxes, scores = np.array([[[0, 0, 1, 1]]], type), np.array([[[0.5]]], type)
    inputs = [boxes, scores, np.array([1], np.uint8), np.array([0.5], np.float32)]
    indices, values, count = ops[name](*inputs, output_type="i32")
    assert (indices.dtype, values.dtype, count.dtype) == (np.int32, np.float32, np.int32)
    assert (values.tolist(), count.tolist()) == ([[0, 0, 0.5]], [1])


def test_soft_suppression_lowers_scores_and_keeps_what_stays_above():
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.75], [2, 2, 3, 3], [0, 0, 1, 0.25]]], np.float32)
    scores = np.array([[[0.9, 0.8, 0.7, 0.3]]], np.float32)
    limits = [np.array(9), *np.float32([0.5, 0.28, 0.5])]
    low = 0.8 * np.exp(-(0.75**2)), 0.3 * np.exp(-(0.25**2))
    indices, values, _ = ops["NonMaxSuppression-9"](boxes, scores, *limits)
    assert indices[:, 2].tolist() == [0, 2, 1]
    np.testing.assert_allclose(values[:, 2], [0.9, 0.7, low[0]], rtol=1e-6)
    indices, values, _ = ops["NonMaxSuppression-5"](boxes, scores, *limits)
    assert indices[:, 2].tolist() == [0, 2, 3]
    np.testing.assert_allclose(values[:, 2], [0.9, 0.7, low[1]], rtol=1e-6)


def test_boxes_without_area_overlap_nothing():
    boxes = [[0, 0, 1, 1], [0.5, 0.5, 0.5, 1], [0.5, 0.5, 0.5, 1]]
    assert suppressed("NonMaxSuppression-9", boxes, [0.9, 0.8, 0.7], 3, 0.0) == [[0, 0, 0], [0, 0, 1], [0, 0, 2]]


def covered(boxes, sign, points):
    """Which points lie in rotated boxes, whose angle turns the x axis towards the y axis for sign 1."""
    x, y = (points[:, None] - boxes[:, :2]).transpose(2, 0, 1)
    cos, sin = np.cos(sign * boxes[:, 4]), np.sin(sign * boxes[:, 4])
    return (np.abs(x * cos + y * sin) <= boxes[:, 2] / 2) & (np.abs(y * cos - x * sin) <= boxes[:, 3] / 2)


@pytest.mark.parametrize("clockwise", [True, False])
def test_rotated_overlaps_are_those_of_counted_points(clockwise):
    grid = np.linspace(-4, 10, 400)
    points = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)
    for _ in range(6):
        boxes = np.concatenate(
            [random.uniform(2, 4, (2, 2)), random.uniform(1, 5, (2, 2)), random.uniform(-3, 3, (2, 1))], 1
        )
        inside = covered(boxes, 1 if clockwise else -1, points)
        iou = inside.all(1).sum() / inside.any(1).sum()
        for limit, taken in ((iou - 0.02, 1), (iou + 0.02, 2)):
            inputs = [boxes[None], np.array([[[0.9, 0.8]]]), np.array(2), np.float32(limit), np.float32(0)]
            assert ops["NMSRotated-13"](*inputs, clockwise=clockwise)[2].tolist() == [taken]


def test_rotated_boxes_that_are_the_same_apart_or_empty():
    boxes = np.array([[[2, 2, 2, 2, 0.5], [2, 2, 2, 2, 0.5], [9, 9, 2, 2, 1], [2, 2, 0, 2, 0], [2, 2, 1, 1, 0.5]]])
    scores, limits = np.array([[[0.9, 0.8, 0.7, 0.6, 0.5]]]), [np.array([9]), np.float32([0.2]), np.float32([0])]
    indices, values, count = ops["NMSRotated-13"](boxes, scores, *limits)
    assert indices[:, 2].tolist() == [0, 2, 3]
    assert (values.dtype, count.tolist()) == (np.float32, [3])
    near = [*limits[:1], np.float32([0.26]), limits[2]]
    assert ops["NMSRotated-13"](boxes, scores, *near)[0][:, 2].tolist() == [0, 2, 3, 4]


def test_nmsrotated_13_c1_negative_limit():
    with pytest.raises(Violation) as caught:
        ops["NMSRotated-13"](np.zeros((1, 1, 5)), np.ones((1, 1, 1)), np.array(-2), np.array(0.5), np.array(0.0))
    assert (caught.value.label, caught.value.message) == (
        "C1",
        "`max_output_boxes_per_class` is -2, expected 0 or more",
    )


MULTICLASS = ["MulticlassNms-8", "MulticlassNms-9"]
CLUSTERS = np.array([[0, 0, 1, 1], [0, 0, 1, 0.75], [2, 2, 3, 3]], np.float32)


def listed(name, boxes, scores, *more, **attrs):
    """(class, score) rows, indices and counts."""
    rows, indices, counts = ops[name](np.array(boxes, np.float32), np.array(scores, np.float32), *more, **attrs)
    return rows[:, :2].tolist(), indices.ravel().tolist(), counts.tolist()


@pytest.mark.parametrize("name", MULTICLASS)
def test_multiclass_nms_takes_and_orders(name):
    scores = [[[0.5, 0.75, 0.25], [0.875, 0.125, 0]]]
    boxes = CLUSTERS[None]
    by_score = [[1, 0.875], [0, 0.75], [0, 0.25], [1, 0]]
    assert listed(name, boxes, scores, iou_threshold=0.5) == (by_score, [0, 1, 2, 2], [4])
    by_class = sorted(by_score, key=lambda row: row[0])
    assert listed(name, boxes, scores, iou_threshold=0.5, sort_result_type="classid")[0] == by_class
    assert listed(name, boxes, scores, iou_threshold=0.5, score_threshold=0.25)[0] == by_score[:3]
    assert listed(name, boxes, scores, iou_threshold=0.5, keep_top_k=1)[2] == [1]
    assert listed(name, boxes, scores, iou_threshold=0.5, nms_top_k=1)[0] == by_score[:2]
    assert listed(name, boxes, scores, iou_threshold=0.5, background_class=0)[1] == [0, 2]
    assert listed(name, boxes, scores, score_threshold=2.0) == ([], [], [0])


@pytest.mark.parametrize("name", MULTICLASS)
def test_multiclass_nms_over_images(name):
    boxes, scores = np.stack([CLUSTERS[[0, 2]]] * 2), [[[0.5, 0.25], [0.75, 0.125]], [[0.875, 0], [0, 0.625]]]
    attrs = {"iou_threshold": 0.5, "score_threshold": 0.2}
    found = [[[1, 0.75], [0, 0.5], [0, 0.25]], [[0, 0.875], [1, 0.625]]]
    assert listed(name, boxes, scores, **attrs) == (found[0] + found[1], [0, 0, 1, 2, 3], [3, 2])
    attrs["sort_result_across_batch"] = True
    assert listed(name, boxes, scores, **attrs)[0] == found[0] + found[1]
    by_score = listed(name, boxes, scores, **attrs, sort_result_type="score")
    assert by_score == (sorted(found[0] + found[1], key=lambda row: -row[1]), [2, 0, 3, 0, 1], [3, 2])
    by_class = listed(name, boxes, scores, **attrs, sort_result_type="classid")
    assert by_class[:2] == ([[0, 0.5], [0, 0.25], [0, 0.875], [1, 0.75], [1, 0.625]], [0, 1, 2, 0, 3])


@pytest.mark.parametrize("name", MULTICLASS)
def test_multiclass_nms_lowers_the_threshold_and_counts_pixels(name):
    boxes = [[[0, 0, 10, 10], [0, 0, 10, 8], [12, 12, 20, 20]]]
    scores = [[[0.75, 0.5, 0.25]]]
    assert listed(name, boxes, scores, iou_threshold=0.9)[1] == [0, 1, 2]
    assert listed(name, boxes, scores, iou_threshold=0.9, nms_eta=0.75)[1] == [0, 2]
    pixels = [[[0, 0, 3, 3], [0, 0, 3, 1], [4, 0, 5, 3]]]  # 16, 8 and 8 pixels, the last a pixel apart
    assert listed(name, pixels, scores, iou_threshold=0.45)[1] == [0, 1, 2]
    assert listed(name, pixels, scores, iou_threshold=0.45, normalized=False)[1] == [0, 2]


@pytest.mark.parametrize("name", [*MULTICLASS, "MatrixNms-8"])
def test_multiclass_bounds(name):
    known = [Tensor("f32", (2, 5, 4)), Tensor("f32", (2, 3, 5))]
    for attrs, most in (({}, 30), ({"nms_top_k": 2}, 12), ({"keep_top_k": 4}, 8), ({"nms_top_k": 0}, None)):
        rows, indices, counts = ops[name].infer(known, ops[name].defaults | attrs | {"output_type": "i32"}).outputs
        assert (rows.shape[0] == 0) if most is None else (rows.shape[0].high == most)
        assert (rows.shape[1], indices.shape[1], counts.shape) == (6, 1, (2,))
        assert (rows.type, indices.type, counts.type) == ("f32", "i32", "i32")
    unknown = [Tensor("f32", (fresh(), fresh(), 4)), Tensor("f32", (fresh(), fresh(), fresh()))]
    outputs = ops[name].infer(unknown, ops[name].defaults).outputs
    assert outputs[0].shape[0].high is None
    assert len(outputs[2].shape) == 1
    empty = ops[name](np.zeros((0, 5, 4)), np.zeros((0, 3, 5)))
    assert [item.shape for item in empty] == [(0, 6), (0, 1), (0,)]


def test_multiclass_nms_with_boxes_of_each_class():
    boxes = np.stack([CLUSTERS, CLUSTERS + 10])
    scores = [[0.5, 0.75, 0.25], [0.125, 0.375, 0.875]]
    found = listed("MulticlassNms-9", boxes, scores, np.array([2, 0, 1]), iou_threshold=0.5)
    assert found == ([[0, 0.75], [1, 0.375], [1, 0.875], [0, 0.25]], [2, 3, 5, 4], [2, 0, 2])
    rows, *_ = ops["MulticlassNms-9"](boxes, np.array(scores, np.float32), np.array([2, 0, 1]), iou_threshold=0.5)
    assert rows[1, 2:].tolist() == [10, 10, 11, 10.75]


def test_multiclassnms_9_c1_rank_of_scores():
    with pytest.raises(Violation) as caught:
        ops["MulticlassNms-9"](CLUSTERS[None], np.ones((1, 3), np.float32))
    assert (caught.value.label, caught.value.message) == ("C1", "`scores` has rank 2 without `roisnum`, expected 3")
    with pytest.raises(Violation) as caught:
        ops["MulticlassNms-9"](CLUSTERS[None], np.ones((1, 2, 3), np.float32), np.array([3]))
    assert caught.value.message == "`scores` has rank 3 with `roisnum`, expected 2"


def test_multiclassnms_9_c2_numbers_of_boxes():
    for counts, message in (
        ([2, 2], "`roisnum` sums to 4, but `num_boxes` is 3"),
        ([4, -1], "`roisnum` holds -1, expected 0 or more"),
    ):
        with pytest.raises(Violation) as caught:
            ops["MulticlassNms-9"](CLUSTERS[None], np.ones((1, 3), np.float32), np.array(counts))
        assert (caught.value.label, caught.value.message) == ("C2", message)


def slow_matrix(boxes, scores, sigma, pixel):
    order = sorted(range(len(boxes)), key=lambda i: (-scores[i], i))
    highest = [max((slow_iou(boxes[i], boxes[j], pixel) for j in order[:n]), default=0) for n, i in enumerate(order)]
    lowered = []
    for n, i in enumerate(order):
        ious = [slow_iou(boxes[i], boxes[j], pixel) for j in order[:n]]
        if sigma is None:
            decays = [(1 - iou) / (1 - most + 1e-10) for iou, most in zip(ious, highest, strict=False)]
        else:
            decays = [np.exp(sigma * (most**2 - iou**2)) for iou, most in zip(ious, highest, strict=False)]
        lowered.append((i, scores[i] * min([1, *decays])))
    return sorted(lowered, key=lambda item: -item[1])


@pytest.mark.parametrize("sigma", [None, 1.5])
@pytest.mark.parametrize("pixel", [0, 1])
def test_matrix_nms_equals_a_slow_loop(sigma, pixel):
    boxes = random.uniform(0, 6, (12, 2))
    boxes = np.concatenate([boxes, boxes + random.uniform(2, 6, (12, 2))], 1)
    scores = random.uniform(0.1, 1, 12)
    attrs = {} if sigma is None else {"decay_function": "gaussian", "gaussian_sigma": sigma}
    attrs |= {"normalized": not pixel, "sort_result_type": "score"}
    rows, indices, _ = ops["MatrixNms-8"](boxes[None], scores[None, None], **attrs)
    expected = slow_matrix(boxes.tolist(), scores.tolist(), sigma, pixel)
    assert indices.ravel().tolist() == [index for index, _ in expected]
    np.testing.assert_allclose(rows[:, 1], [score for _, score in expected], rtol=1e-9)


def test_matrix_nms_orders_an_image_by_score_alone():
    boxes, scores = CLUSTERS[None], [[[0.5, 0, 0], [0, 0, 0.75]]]
    by_score = [[1, 0.75], [0, 0.5]]
    attrs = {"score_threshold": 0.25}
    for kind in ("none", "score", "classid"):
        assert listed("MatrixNms-8", boxes, scores, sort_result_type=kind, **attrs)[0] == by_score
    attrs["sort_result_across_batch"] = True
    assert listed("MatrixNms-8", boxes, scores, sort_result_type="classid", **attrs)[0] == by_score[::-1]


def test_matrix_nms_thresholds():
    scores = [[[0.75, 0.5, 0.25], [0.5, 0.5, 0.5]]]
    rows, indices, _ = listed("MatrixNms-8", CLUSTERS[None], scores, background_class=1)
    assert indices == [0, 2, 1]
    np.testing.assert_allclose(rows, [[0, 0.75], [0, 0.25], [0, 0.125]], rtol=1e-6)
    assert listed("MatrixNms-8", CLUSTERS[None], scores, background_class=1, post_threshold=0.2)[1] == [0, 2]
    assert listed("MatrixNms-8", CLUSTERS[None], scores, background_class=1, score_threshold=0.5)[1] == [0]
    assert listed("MatrixNms-8", CLUSTERS[None], scores, background_class=1, nms_top_k=2)[1] == [0, 1]
    assert listed("MatrixNms-8", CLUSTERS[None], scores, keep_top_k=1)[0] == [[0, 0.75]]


def test_matrix_nms_of_an_image_without_boxes_goes_on():
    scores = [[[0, 0, 0]], [[0.5, 0, 0]]]
    assert listed("MatrixNms-8", np.stack([CLUSTERS] * 2), scores) == ([[0, 0.5]], [3], [0, 1])


def test_top_k_rois_orders_and_fills():
    rois, op = np.arange(12.0).reshape(3, 4), ops["ExperimentalDetectronTopKROIs-6"]
    probabilities = np.array([0.25, 0.75, 0.25])
    assert op(rois, probabilities, max_rois=2).tolist() == [[4, 5, 6, 7], [0, 1, 2, 3]]
    assert op(rois, probabilities, max_rois=4).tolist() == [[4, 5, 6, 7], [0, 1, 2, 3], [8, 9, 10, 11], [0, 0, 0, 0]]
    assert op(rois.astype(np.float16), probabilities.astype(np.float16)).shape == (0, 4)
    for version in ("extension", "experimental"):
        assert registry().find("ExperimentalDetectronTopKROIs", version) is op
    (tensor,) = op.infer([Tensor("f32", (fresh(), 4)), Tensor("f32", (fresh(),))], {"max_rois": 5}).outputs
    assert tensor.shape == (5, 4)


@pytest.mark.parametrize("name", ["MulticlassNms-8", "MulticlassNms-9", "MatrixNms-8"])
@pytest.mark.parametrize("attr", ["nms_top_k", "keep_top_k", "background_class"])
def test_numbers_that_openvino_keeps_in_32_bits(name, attr):
    (found,) = (each for each in registry().ops[name].attrs if each.name == attr)
    assert found.parse("2147483647") == 2147483647
    with pytest.raises(ValueError, match="is 4294967295, expected 2147483647 or less"):
        found.parse("4294967295")


@pytest.mark.parametrize("version", [1, 3, 4, 5, 9])
@pytest.mark.parametrize(
    ("types", "port", "other"),
    [("f32 f64 f32 f32", "scores", "boxes"), ("f32 f32 f64 f32", "score_threshold", "iou_threshold")],
)
def test_boxes_are_not_suppressed_in_f64_beside_other_types(version, types, port, other):
    op = registry().ops[f"NonMaxSuppression-{version}"]
    boxes, scores, *limits = (
        Tensor(type, shape) for type, shape in zip(types.split(), [(1, 6, 4), (1, 2, 6), (), ()], strict=True)
    )
    with pytest.raises(Violation, match=f"`{port}` is .*, but `{other}` is") as error:
        op.infer([boxes, scores, Tensor("i64", ()), *limits], op.defaults)
    assert error.value.label == "E303"
