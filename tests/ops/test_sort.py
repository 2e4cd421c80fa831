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
def test_top_k_agrees_with_a_loop(axis, mode, sort):
    data = np.random.default_rng(3).integers(-4, 4, (4, 5, 6)).astype(np.float32)
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
    assert (values.shape[1].low, values.shape[1].high) == (1, 5)
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


def test_search_sorted_one_row_serves_any_values():
    assert search_sorted(np.array([1, 5]), np.array(3), output_type="i32").tolist() == 1
    assert search_sorted(np.zeros(0), np.ones((2, 2))).tolist() == [[0, 0], [0, 0]]
    assert search_sorted(np.zeros((2, 0)), np.ones((2, 3))).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_searchsorted_15_c1_rows_that_do_not_fit_the_values():
    with pytest.raises(Violation, match=r"`sorted` is \[2, 4\] and `values` is \[3, 3\]") as error:
        search_sorted(np.zeros((2, 4)), np.zeros((3, 3)))
    assert error.value.label == "C1"
    with pytest.raises(Violation, match=r"`values` is \[4\]"):
        search_sorted(np.zeros((2, 4)), np.zeros(4))
