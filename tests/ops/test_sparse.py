"""Sparse ops."""

import ml_dtypes
import numpy as np
import pytest
from refusal import refuses

from irrun.spec import Dim, Tensor, Violation, fresh
from irrun.spec.registry import registry

ops = registry().ops
fill = ops["SparseFillEmptyRows-16"]
segments_sum = ops["EmbeddingSegmentsSum-3"]
offsets_sum = ops["EmbeddingBagOffsetsSum-3"]
offsets_bag = ops["EmbeddingBagOffsets-15"]
packed_sum = ops["EmbeddingBagPackedSum-3"]
packed_bag = ops["EmbeddingBagPacked-15"]

TABLE = np.array([[-0.2, -0.6], [-0.1, -0.4], [-1.9, -1.8], [-1.0, 1.5], [0.8, -0.7]], np.float32)
HALVES = np.full(4, 0.5, np.float32)
FOUR = np.array([0, 2, 3, 4])


def close(got, expected):
    np.testing.assert_allclose(got, np.array(expected, np.float32), rtol=1e-6)


# SparseFillEmptyRows-16


def filled(values, dense_shape, indices, default=9.0, index_type=np.int64):
    """The three outputs as lists."""
    pairs = np.array(indices, index_type).reshape(-1, 2)
    outputs = fill(np.array(values, np.float32), np.array(dense_shape, index_type), pairs, np.float32(default))
    assert [output.dtype for output in outputs] == [index_type, np.float32, np.bool_]
    return [output.tolist() for output in outputs]


def slow_fill(values, dense_shape, indices, default):
    entries = list(zip(map(tuple, indices), values, strict=True))
    occupied = {row for (row, _), _ in entries}
    empty = [row not in occupied for row in range(dense_shape[0])]
    entries += [((row, 0), default) for row, is_empty in enumerate(empty) if is_empty]
    entries.sort(key=lambda entry: entry[0])
    return [[list(place) for place, _ in entries], [value for _, value in entries], empty]


def test_fill_empty_rows_example_1_of_the_page():
    indices, values, empty = filled([1, 2, 3, 4], [5, 6], [[0, 1], [0, 3], [2, 0], [3, 1]])
    assert indices == [[0, 1], [0, 3], [1, 0], [2, 0], [3, 1], [4, 0]]
    assert values == [1, 2, 9, 3, 4, 9]
    assert empty == [False, True, False, False, True]


def test_fill_empty_rows_layer_example_of_the_page():
    got = filled([1, 3], [3, 3], [[0, 0], [2, 2]], 42, np.int32)
    assert got == [[[0, 0], [1, 0], [2, 2]], [1, 42, 3], [False, True, False]]


def test_fill_empty_rows_sorts_by_row_then_column():
    got = filled([1, 2, 3, 4], [4, 5], [[3, 4], [0, 2], [3, 1], [0, 0]])
    assert got == [[[0, 0], [0, 2], [1, 0], [2, 0], [3, 1], [3, 4]], [4, 2, 9, 9, 3, 1], [False, True, True, False]]


def test_fill_empty_rows_keeps_the_order_of_duplicates():
    got = filled([1, 2, 3, 4], [2, 3], [[1, 2], [1, 1], [1, 2], [1, 1]])
    assert got == [[[0, 0], [1, 1], [1, 1], [1, 2], [1, 2]], [9, 2, 4, 1, 3], [True, False]]


def test_fill_empty_rows_without_values_without_rows_and_without_empty_rows():
    assert filled([], [2, 3], []) == [[[0, 0], [1, 0]], [9, 9], [True, True]]
    assert filled([], [0, 3], []) == [[], [], []]
    assert filled([1, 2], [2, 3], [[0, 2], [1, 1]]) == [[[0, 2], [1, 1]], [1, 2], [False, False]]


def test_fill_empty_rows_also_where_there_is_no_column_0():
    assert filled([], [2, 0], []) == [[[0, 0], [1, 0]], [9, 9], [True, True]]


@pytest.mark.parametrize("seed", range(8))
def test_fill_empty_rows_agrees_with_a_loop(seed):
    random = np.random.default_rng(seed)
    rows, columns, m = random.integers(1, 9, 3)
    indices = np.stack([random.integers(0, rows, m), random.integers(0, columns, m)], 1)
    values = random.integers(0, 100, m).tolist()
    assert filled(values, [rows, columns], indices) == slow_fill(values, [rows, columns], indices.tolist(), 9.0)


@pytest.mark.parametrize("columns", [1 << 14, 1 << 31, 1 << 50, (1 << 63) - 1])
def test_fill_empty_rows_sorts_places_of_any_size(columns):
    random = np.random.default_rng(columns % 97)
    indices = np.stack([random.integers(0, 300, 500), random.integers(0, columns, 500)], 1)
    indices[100:150] = indices[:50]
    indices[150:200, 1] = columns - 1
    values = random.permutation(500).tolist()
    assert filled(values, [400, columns], indices) == slow_fill(values, [400, columns], indices.tolist(), 9.0)


@pytest.mark.parametrize("type", [np.int8, np.uint64, np.float16, ml_dtypes.bfloat16], ids=lambda t: t.__name__)
def test_fill_empty_rows_keeps_the_type_of_the_values(type):
    values = fill(np.array([7], type), np.array([2, 1]), np.array([[1, 0]]), np.array(3, type))[1]
    assert values.dtype == type
    assert values.astype(int).tolist() == [3, 7]


def test_fill_empty_rows_does_not_change_its_inputs():
    indices = np.array([[1, 0], [0, 1]])
    fill(np.array([1.0, 2.0]), np.array([3, 2]), indices, np.array(0.0))
    assert indices.tolist() == [[1, 0], [0, 1]]


def inferred_fill(values, dense_shape, indices):
    inferred = fill.infer([Tensor("f32", values), dense_shape, indices, Tensor("f32", ())], {})
    return [tensor.shape for tensor in inferred.outputs], inferred.complete


def bounds(size):
    return (size.low, size.high) if isinstance(size, Dim) else size


def test_fill_empty_rows_shapes_are_exact_where_indices_and_dense_shape_are_constant():
    shapes, complete = inferred_fill((3,), Tensor.of(np.array([5, 6])), Tensor.of(np.array([[4, 1], [0, 1], [4, 0]])))
    assert shapes == [(6, 2), (6,), (5,)]
    assert complete


def test_fill_empty_rows_shapes_are_bounded_where_indices_are_unknown():
    (indices, values, empty), complete = inferred_fill((3,), Tensor.of(np.array([5, 6])), Tensor("i64", (3, 2)))
    assert bounds(values[0]) == (5, 8)
    assert (indices[0] == values[0]) is True
    assert indices[1] == 2
    assert empty == (5,)
    assert not complete


def test_fill_empty_rows_shapes_where_the_length_has_bounds():
    m = fresh(2, 4)
    (_, values, empty), _ = inferred_fill((m,), Tensor.of(np.array([3, 6])), Tensor("i64", (m, 2)))
    assert bounds(values[0]) == (3, 7)
    assert empty == (3,)


def test_fill_empty_rows_without_values_has_as_many_as_rows():
    rows = fresh()
    dense_shape = Tensor("i64", (2,), np.array([rows, 4], object))
    (_, values, empty), _ = inferred_fill((0,), dense_shape, Tensor("i64", (0, 2)))
    assert (values[0] == empty[0]) is True


def test_fill_empty_rows_shapes_follow_unknown_rows_where_indices_are_constant():
    dense_shape = Tensor("i64", (2,), np.array([fresh(), 4], object))
    (_, values, empty), complete = inferred_fill((3,), dense_shape, Tensor.of(np.array([[0, 1], [2, 1], [2, 2]])))
    assert (values[0] - empty[0]) == 1
    assert values[0].low == 3
    assert not complete


def test_fill_empty_rows_shapes_where_nothing_is_known():
    shapes, complete = inferred_fill(None, Tensor("i64", None), Tensor("i64", None))
    assert [len(shape) for shape in shapes] == [2, 1, 1]
    assert (shapes[0][0] == shapes[1][0]) is True
    assert not complete


def test_fill_empty_rows_shapes_hold_what_the_kernel_gives():
    arrays = [np.ones(3, np.float32), np.array([4, 3]), np.array([[1, 0], [1, 2], [3, 1]]), np.float32(0)]
    tensors = [Tensor.of(np.asarray(array)) for array in arrays]
    outputs = fill(*arrays)
    for known in ([0, 1, 2, 3], [1, 2], [2], [1], []):
        given = [t if i in known else Tensor(t.type, t.shape) for i, t in enumerate(tensors)]
        for tensor, output in zip(fill.infer(given, {}).outputs, outputs, strict=True):
            assert tensor.type == Tensor.of(output).type
            assert all((size == real) is not False for size, real in zip(tensor.shape, output.shape, strict=True))


@pytest.mark.parametrize(("shape", "number", "size"), [([-1, 3], 0, -1), ([2, -5], 1, -5)])
def test_sparsefillemptyrows_16_c1_negative_dense_shape(shape, number, size):
    message = f"`dense_shape[{number}]` is {size}, expected 0 or more"
    refuses(fill, "C1", message, np.zeros(0, np.float32), shape, np.zeros((0, 2), np.int64), np.float32(0))


@pytest.mark.parametrize("row", [-1, 3])
def test_sparsefillemptyrows_16_c2_row_outside_dense_shape(row):
    message = f"`indices[1, 0]`, a row, is {row}, outside [0, 3)"
    refuses(fill, "C2", message, np.ones(2, np.float32), [3, 2], [[0, 1], [row, 0]], np.float32(0))


@pytest.mark.parametrize("column", [-2, 2])
def test_sparsefillemptyrows_16_c3_column_outside_dense_shape(column):
    message = f"`indices[1, 1]`, a column, is {column}, outside [0, 2)"
    refuses(fill, "C3", message, np.ones(2, np.float32), [3, 2], [[0, 1], [1, column]], np.float32(0))


@pytest.mark.parametrize(("rows", "place", "limit"), [(fresh(), -1, "?"), (fresh(1, 4), 4, "4")])
def test_sparsefillemptyrows_16_c2_is_checked_as_far_as_dense_shape_is_known(rows, place, limit):
    dense_shape = Tensor("i64", (2,), np.array([rows, 2], object))
    with pytest.raises(Violation) as error:
        inferred_fill((1,), dense_shape, Tensor.of(np.array([[place, 0]])))
    assert error.value.label == "C2"
    assert error.value.message == f"`indices[0, 0]`, a row, is {place}, outside [0, {limit})"


@pytest.mark.parametrize("shape", [(0,), (1,), (1, 1)])
def test_fill_empty_rows_default_must_be_a_scalar_unlike_in_the_example_of_the_page(shape):
    message = f"`default_value` has rank {len(shape)}, expected a scalar"
    refuses(fill, "E305", message, np.ones(2, np.float32), [3, 3], [[0, 0], [2, 2]], np.zeros(shape, np.float32))


def test_fill_empty_rows_lengths_must_agree():
    message = "`M` is 3 in `indices`, but 2 in `values`"
    refuses(fill, "E304", message, np.ones(2, np.float32), [3, 3], [[0, 0], [1, 1], [2, 2]], np.float32(0))


def test_fill_empty_rows_is_for_two_dimensions_only():
    message = "`dense_shape` has a dimension of 3, expected 2"
    refuses(fill, "E304", message, np.ones(1, np.float32), [3, 3, 3], [[0, 0]], np.float32(0))
    message = "`indices` has a dimension of 3, expected 2"
    refuses(fill, "E304", message, np.ones(1, np.float32), [3, 3], [[0, 0, 0]], np.float32(0))


def test_fill_empty_rows_types():
    refuses(fill, "E303", "`indices` is i32, but `dense_shape` is i64", np.ones(1), [1, 1], np.int32([[0, 0]]), 0.0)
    refuses(fill, "E303", "`default_value` is f32, but `values` is f64", np.ones(1), [1, 1], [[0, 0]], np.float32(0))
    with pytest.raises(Violation, match="`values` is boolean, expected one of bf16, f16, f32"):
        fill(np.array([True]), np.array([1, 1]), np.array([[0, 0]]), np.array(True))


# Embedding ops: what they share


def slow_pool(table, bags, default=None, weights=None, mean=False):
    """`bags` are lists of (row of the table, position of the weight)."""
    result = np.zeros((len(bags), *table.shape[1:]), np.float64)
    for number, bag in enumerate(bags):
        for row, position in bag:
            result[number] += table[row] * (1 if weights is None else float(weights[position]))
        if mean and bag:
            result[number] /= len(bag)
        if not bag and default not in (None, -1):
            result[number] = table[default]
    return result


def slices(indices, offsets):
    ends = [*offsets[1:], len(indices)]
    return [[(indices[i], i) for i in range(start, end)] for start, end in zip(offsets, ends, strict=True)]


def random_case(seed):
    random = np.random.default_rng(seed)
    table = random.standard_normal((6, *[(), (3,), (2, 2)][seed % 3])).astype(np.float32)
    indices = random.integers(0, 6, 12)
    weights = random.standard_normal(12).astype(np.float32) if seed % 2 else None
    default = [np.array(-1), np.array(4), None][seed % 3] if weights is None else np.array([-1, 4][seed % 4 // 2])
    return random, table, indices, weights, default


# EmbeddingSegmentsSum-3


def test_segments_sum_example_of_the_page():
    got = segments_sum(TABLE, FOUR, np.array([0, 0, 2, 2]), np.array(3), np.array(0), HALVES)
    close(got, [[-1.05, -1.2], [-0.2, -0.6], [-0.1, 0.4]])
    assert got.dtype == np.float32


def test_segments_sum_empty_segments_are_zeros_without_a_default_and_with_minus_1():
    expected = [[0, 0], [-2.1, -2.4], [0, 0], [-0.2, 0.8], [0, 0]]
    ids = np.array([1, 1, 3, 3], np.int32)
    indices, count = FOUR.astype(np.int32), np.int32(5)
    np.testing.assert_allclose(segments_sum(TABLE, indices, ids, count), expected, atol=1e-6)
    np.testing.assert_allclose(segments_sum(TABLE, indices, ids, count, np.int32(-1)), expected, atol=1e-6)


def test_segments_sum_the_default_row_is_not_weighted():
    got = segments_sum(TABLE, np.array([0]), np.array([1]), np.array(2), np.array(4), np.array([10], np.float32))
    close(got, [[0.8, -0.7], [-2, -6]])


def test_segments_sum_unsorted_ids_are_computed_with_a_warning():
    ids, weights = np.array([0, 2, 1, 0]), np.array([1, 10, 100, 1000], np.float32)
    with pytest.warns(UserWarning, match=r"^`segment_ids\[2\]` is 1, below 2 before it; they should be sorted$"):
        got = segments_sum(np.array([[1.0], [2], [3], [4]], np.float32), np.arange(4), ids, np.array(3), None)
    assert got.tolist() == [[5], [3], [2]]
    with pytest.warns(UserWarning, match=r"`segment_ids\[2\]`"):
        got = segments_sum(np.ones((4, 1), np.float32), np.arange(4), ids, np.array(3), np.array(-1), weights)
    assert got.tolist() == [[1001], [100], [10]]


@pytest.mark.parametrize("seed", range(12))
def test_segments_sum_agrees_with_a_loop(seed):
    random, table, indices, weights, default = random_case(seed)
    ids = np.sort(random.integers(0, 7, 12))
    got = segments_sum(table, indices, ids, np.array(8), default, weights)
    bags = [[(indices[i], i) for i in range(12) if ids[i] == segment] for segment in range(8)]
    np.testing.assert_allclose(got, slow_pool(table, bags, default, weights), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_segments_sum_of_bags_of_all_lengths(weighted):
    random = np.random.default_rng(5)
    lengths = np.array([0, 1, 5000, 63, 64, 65, 0, 128, 129, 4097, *random.integers(0, 9, 3000), 0])
    ids = np.repeat(np.arange(len(lengths)), lengths)
    table = random.integers(-9, 10, (50, 128))
    indices = random.integers(0, 50, len(ids))
    weights = random.integers(-3, 4, len(ids)) if weighted else np.ones(len(ids), int)
    expected = np.zeros((len(lengths), 128), int)
    np.add.at(expected, ids, table[indices] * weights[:, None])
    for dtype in (np.int64, np.float32):  # whose sums are as exact
        weights = weights.astype(dtype)
        extra = (np.array(-1), weights) if weighted else ()
        got = segments_sum(table.astype(dtype), indices, ids, np.array(len(lengths)), *extra)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, expected)


def test_segments_sum_of_many_unsorted_ids():
    random = np.random.default_rng(6)
    ids = random.integers(0, 200_000, 1000, np.int32)
    ids[500:700] = ids[:200]
    table, indices = random.integers(0, 9, (7, 2)), random.integers(0, 7, 1000, np.int32)
    expected = np.zeros((200_000, 2), int)
    np.add.at(expected, ids, table[indices])
    with pytest.warns(UserWarning, match="should be sorted"):
        got = segments_sum(table, indices, ids, np.array(200_000, np.int32))
    np.testing.assert_array_equal(got, expected)


def test_segments_sum_of_tables_without_rows_columns_or_segments():
    none = np.zeros(0, np.int64)
    assert segments_sum(np.zeros((0, 3), np.float32), none, none, np.array(2)).tolist() == [[0, 0, 0]] * 2
    assert segments_sum(np.zeros((2, 0, 3), np.float32), np.array([1]), np.array([0]), np.array(2)).shape == (2, 0, 3)
    assert segments_sum(TABLE, none, none, np.array(0)).shape == (0, 2)
    assert segments_sum(np.arange(3.0), np.array([1, 2]), np.array([0, 0]), np.array(1)).tolist() == [3]


def test_segments_sum_of_half_precision_is_rounded_once():
    # in f16 itself, 2048 + 1 is 2048 again, and so on
    table = np.array([[2048], [1]], np.float16)
    got = segments_sum(table, np.array([0, 1, 1, 1, 1]), np.zeros(5, np.int64), np.array(1))
    assert got.dtype == np.float16
    assert got.tolist() == [[2052]]
    table = np.array([[256], [1]], ml_dtypes.bfloat16)
    got = segments_sum(table, np.array([0, 1, 1]), np.zeros(3, np.int64), np.array(1))
    assert got.dtype == ml_dtypes.bfloat16
    assert got.astype(float).tolist() == [[258]]


def test_segments_sum_of_half_precision_with_fewer_indices_than_rows_uses_only_those():
    table = np.arange(40, dtype=np.float16).reshape(20, 2)
    got = segments_sum(table, np.array([19, 3, 19]), np.array([0, 0, 1]), np.array(3), np.array(7))
    assert got.tolist() == [[44, 46], [38, 39], [14, 15]]


def test_segments_sum_of_integers_is_exact_and_wraps_around():
    table = np.array([[2**62 + 1], [3]])
    assert segments_sum(table, np.array([0, 1]), np.array([0, 0]), np.array(1)).tolist() == [[2**62 + 4]]
    table = np.array([[100, 3]], np.int8)
    got = segments_sum(table, np.array([0, 0]), np.array([0, 0]), np.array(1), np.array(-1), np.array([1, 1], np.int8))
    assert got.dtype == np.int8
    assert got.tolist() == [[-56, 6]]


def test_segments_sum_does_not_touch_other_rows():
    table = np.array([[1.0], [np.nan], [np.inf]], np.float32)
    assert segments_sum(table, np.array([0]), np.array([0]), np.array(2)).tolist() == [[1], [0]]


def test_segments_sum_of_read_only_and_unaligned_tables():
    table = np.frombuffer(b"\0" + TABLE.tobytes(), np.float32, offset=1).reshape(TABLE.shape)
    close(segments_sum(table, FOUR, np.array([0, 0, 1, 1]), np.array(2)), [[-2.1, -2.4], [-0.2, 0.8]])


def inferred_segments(table, indices, ids, count, *rest):
    inferred = segments_sum.infer([table, indices, ids, count, *rest], {})
    return inferred.outputs[0], inferred.complete


IDS = Tensor("i64", (4,))


def test_segments_sum_shape_needs_the_value_of_num_segments():
    output, complete = inferred_segments(Tensor("f16", (5, 2, 3)), IDS, IDS, Tensor.of(np.array(7)))
    assert (output.type, output.shape, complete) == ("f16", (7, 2, 3), False)
    output, _ = inferred_segments(Tensor("f32", (5, 2)), IDS, IDS, Tensor("i64", ()))
    assert bounds(output.shape[0]) == (0, None)
    assert output.shape[1] == 2


def test_segments_sum_shape_follows_dimensions():
    batch, width = fresh(), fresh()
    table = Tensor("f32", (fresh(), width))
    output, _ = inferred_segments(table, IDS, IDS, Tensor("i64", (), np.array(batch, object)))
    assert (output.shape[0] == batch) is True
    assert (output.shape[1] == width) is True


def test_segments_sum_shape_of_a_table_of_unknown_rank_is_unknown():
    output, _ = inferred_segments(Tensor("f32", None), IDS, IDS, Tensor.of(np.array(7)))
    assert output.shape is None


def test_segments_sum_is_decided_before_the_run_where_all_integers_are_constant():
    constants = [Tensor.of(array) for array in (FOUR, np.array([0, 0, 2, 2]), np.array(3), np.array(-1))]
    _, complete = inferred_segments(Tensor("f32", (5, 2)), *constants)
    assert complete


def segments_refuse(label, message, indices=FOUR, ids=(0, 0, 2, 2), count=3, default=0, weights=HALVES):
    refuses(segments_sum, label, message, TABLE, indices, np.array(ids, np.int64), count, default, weights)


def test_embeddingsegmentssum_3_c1_negative_num_segments():
    segments_refuse("C1", "`num_segments` is -1, expected 0 or more", count=-1)


@pytest.mark.parametrize("id", [-1, 3])
def test_embeddingsegmentssum_3_c2_segment_outside_num_segments(id):
    segments_refuse("C2", f"`segment_ids[2]` is {id}, outside [0, 3)", ids=(0, 0, id, 2))


def test_embeddingsegmentssum_3_c2_negative_segment_where_num_segments_is_unknown():
    with pytest.raises(Violation, match=r"`segment_ids\[1\]` is -4"):
        inferred_segments(Tensor("f32", (5, 2)), IDS, Tensor.of(np.array([0, -4, 0, 0])), Tensor("i64", ()))


@pytest.mark.parametrize("index", [-1, 5])
def test_embeddingsegmentssum_3_c3_index_outside_the_table(index):
    segments_refuse("C3", f"`indices[3]` is {index}, outside [0, 5)", indices=[0, 1, 2, index])


@pytest.mark.parametrize("index", [-2, 5])
def test_embeddingsegmentssum_3_c4_default_outside_the_table(index):
    segments_refuse("C4", f"`default_index` is {index}, outside [-1, 5)", default=index)


def test_embeddingsegmentssum_3_c5_weights_without_a_default():
    message = (
        "`per_sample_weights` is input 5, but `default_index`, input 4, is not connected; "
        "it cannot be left out, and -1 stands for none"
    )
    segments_refuse("C5", message, default=None)


def test_segments_sum_weights_in_the_place_of_the_default_are_of_the_wrong_type_or_rank():
    message = "`default_index` is f32, expected one of i32, i64"
    refuses(segments_sum, "E303", message, TABLE, FOUR, [0, 0, 2, 2], 3, HALVES)
    message = "`default_index` has rank 1, expected a scalar"
    refuses(segments_sum, "E305", message, TABLE.astype(np.int64), FOUR, [0, 0, 2, 2], 3, [1, 1, 1, 1])


def test_segments_sum_lengths_must_agree():
    segments_refuse("E304", "`num_indices` is 3 in `segment_ids`, but 4 in `indices`", ids=(0, 0, 2))
    segments_refuse("E304", "`num_indices` is 2 in `per_sample_weights`, but 4 in `indices`", weights=HALVES[:2])


def test_segments_sum_index_types_must_agree():
    message = "`segment_ids` is i64, but `indices` is i32"
    refuses(segments_sum, "E303", message, TABLE, FOUR.astype(np.int32), [0, 0, 2, 2], 3)


# EmbeddingBagOffsetsSum-3 and EmbeddingBagOffsets-15

OFFSETS = np.array([0, 2, 2])
both_offsets = pytest.mark.parametrize("op", [offsets_sum, offsets_bag], ids=lambda op: op.name)


@both_offsets
def test_offsets_example_1_of_the_pages(op):
    got = op(TABLE, FOUR, OFFSETS, np.array(0), HALVES)
    close(got, [[-1.05, -1.2], [-0.2, -0.6], [-0.1, 0.4]])
    assert got.dtype == np.float32


def test_offsets_example_2_of_the_page():
    weights = np.array([0.5, 0.2, -2, 1], np.float32)
    close(offsets_bag(TABLE, FOUR, OFFSETS, np.array(-1), weights), [[-0.48, -0.66], [0, 0], [2.8, -3.7]])


def test_offsets_example_3_of_the_page():
    close(offsets_bag(TABLE, FOUR, OFFSETS, reduction="mean"), [[-1.05, -1.2], [0, 0], [-0.1, 0.4]])


def test_offsets_mean_leaves_the_default_row_as_it_is():
    got = offsets_bag(TABLE, FOUR, OFFSETS, np.array(4), reduction="mean")
    close(got, [[-1.05, -1.2], [0.8, -0.7], [-0.1, 0.4]])


@both_offsets
def test_offsets_empty_last_bag_and_indices_before_the_first_offset(op):
    got = op(TABLE, np.array([4, 1, 2, 0]), np.array([1, 3, 4], np.int64), np.array(3))
    close(got, [[-2.0, -2.2], [-0.2, -0.6], [-1, 1.5]])


@both_offsets
def test_offsets_without_bags_or_indices(op):
    none = np.zeros(0, np.int64)
    assert op(TABLE, FOUR, none).shape == (0, 2)
    assert op(TABLE, none, np.array([0, 0])).tolist() == [[0, 0], [0, 0]]


@both_offsets
@pytest.mark.parametrize("seed", range(12))
def test_offsets_agree_with_a_loop(op, seed):
    random, table, indices, weights, default = random_case(seed)
    offsets = np.sort(random.integers(0, 13, 6))
    mean = op is offsets_bag and weights is None
    got = op(table, indices, offsets, default, weights, **({"reduction": "mean"} if mean else {}))
    expected = slow_pool(table, slices(indices, offsets.tolist()), default, weights, mean)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_offsets_mean_of_integers_is_exact_and_truncated():
    table = np.array([[100, -3], [101, -4]], np.int8)
    got = offsets_bag(table, np.array([0, 1, 1]), np.array([0, 2]), reduction="mean")
    assert got.dtype == np.int8
    assert got.tolist() == [[100, -3], [101, -4]]
    table = np.array([[2**63], [2**63 - 2]], np.uint64) // np.uint64(2)
    assert offsets_bag(table, np.array([0, 1]), np.array([0]), reduction="mean").tolist() == [[2**62 - 1]]


@both_offsets
def test_offsets_shape_and_type(op):
    batch, width = fresh(), fresh()
    known = [Tensor("bf16", (9, width)), Tensor("i32", (fresh(),)), Tensor("i32", (batch,))]
    inferred = op.infer(known, op.defaults)
    assert inferred.outputs[0].type == "bf16"
    assert (inferred.outputs[0].shape[0] == batch) is True
    assert (inferred.outputs[0].shape[1] == width) is True
    assert not inferred.complete


def offsets_refuse(op, label, message, indices=FOUR, offsets=OFFSETS, default=0, weights=HALVES, **attrs):
    refuses(op, label, message, TABLE, indices, offsets, default, weights, **attrs)


OFFSET_ABOVE = "`offsets[2]` is 5, outside [0, 5)"
OFFSET_FALLS = "`offsets[2]` is 1, below 3 before it"
INDEX_ABOVE = "`indices[1]` is 5, outside [0, 5)"
INDEX_BELOW = "`indices[1]` is -1, outside [0, 5)"
DEFAULT_BELOW = "`default_index` is -2, outside [-1, 5)"
DEFAULT_ABOVE = "`default_index` is 5, outside [-1, 5)"
NO_DEFAULT = (
    "`per_sample_weights` is input 4, but `default_index`, input 3, is not connected; "
    "it cannot be left out, and -1 stands for none"
)
WEIGHTED_MEAN = "`per_sample_weights` is connected, but `reduction` is mean"


def test_embeddingbagoffsetssum_3_c1_offset_outside_the_indices():
    offsets_refuse(offsets_sum, "C1", OFFSET_ABOVE, offsets=[0, 2, 5])
    offsets_refuse(offsets_sum, "C1", "`offsets[0]` is -1, outside [0, 5)", offsets=[-1, 2])


def test_embeddingbagoffsetssum_3_c2_offsets_fall():
    offsets_refuse(offsets_sum, "C2", OFFSET_FALLS, offsets=[0, 3, 1])


def test_embeddingbagoffsetssum_3_c3_index_outside_the_table():
    offsets_refuse(offsets_sum, "C3", INDEX_ABOVE, indices=[0, 5, 1, 1])
    offsets_refuse(offsets_sum, "C3", INDEX_BELOW, indices=[0, -1, 1, 1])


def test_embeddingbagoffsetssum_3_c4_default_outside_the_table():
    offsets_refuse(offsets_sum, "C4", DEFAULT_BELOW, default=-2)
    offsets_refuse(offsets_sum, "C4", DEFAULT_ABOVE, default=5)


def test_embeddingbagoffsetssum_3_c5_weights_without_a_default():
    offsets_refuse(offsets_sum, "C5", NO_DEFAULT, default=None)


def test_embeddingbagoffsets_15_c1_offset_outside_the_indices():
    offsets_refuse(offsets_bag, "C1", OFFSET_ABOVE, offsets=[0, 2, 5])


def test_embeddingbagoffsets_15_c2_offsets_fall():
    offsets_refuse(offsets_bag, "C2", OFFSET_FALLS, offsets=[0, 3, 1])


def test_embeddingbagoffsets_15_c3_index_outside_the_table():
    offsets_refuse(offsets_bag, "C3", INDEX_ABOVE, indices=[0, 5, 1, 1])


def test_embeddingbagoffsets_15_c4_default_outside_the_table():
    offsets_refuse(offsets_bag, "C4", DEFAULT_ABOVE, default=5)


def test_embeddingbagoffsets_15_c5_weights_without_a_default():
    offsets_refuse(offsets_bag, "C5", NO_DEFAULT, default=None)


def test_embeddingbagoffsets_15_c6_weights_with_mean():
    offsets_refuse(offsets_bag, "C6", WEIGHTED_MEAN, reduction="mean")


@both_offsets
def test_offsets_lengths_must_agree(op):
    message = "`num_indices` is 3 in `per_sample_weights`, but 4 in `indices`"
    offsets_refuse(op, "E304", message, weights=HALVES[:3])


# EmbeddingBagPackedSum-3 and EmbeddingBagPacked-15

PAIRS = np.array([[0, 2], [1, 2], [3, 4]])
both_packed = pytest.mark.parametrize("op", [packed_sum, packed_bag], ids=lambda op: op.name)


@both_packed
def test_packed_examples_of_the_pages(op):
    got = op(TABLE, PAIRS)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, [[-2.1, -2.4], [-2.0, -2.2], [-0.2, 0.8]], rtol=1e-6)
    close(op(TABLE, PAIRS, np.full((3, 2), 0.5, np.float32)), [[-1.05, -1.2], [-1.0, -1.1], [-0.1, 0.4]])


def test_packed_example_of_the_mean():
    close(packed_bag(TABLE, PAIRS, reduction="mean"), [[-1.05, -1.2], [-1.0, -1.1], [-0.1, 0.4]])


@both_packed
@pytest.mark.parametrize("seed", range(6))
def test_packed_agrees_with_a_loop(op, seed):
    _, table, indices, weights, _ = random_case(seed)
    mean = op is packed_bag and weights is None
    shaped = None if weights is None else weights.reshape(4, 3)
    got = op(table, indices.reshape(4, 3), shaped, **({"reduction": "mean"} if mean else {}))
    expected = slow_pool(table, slices(indices, [0, 3, 6, 9]), None, weights, mean)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@both_packed
def test_packed_without_bags_or_indices_is_zeros(op):
    assert op(TABLE, np.zeros((0, 2), np.int64)).shape == (0, 2)
    for attrs in [{}, {"reduction": "mean"}] if op is packed_bag else [{}]:
        assert op(TABLE, np.zeros((2, 0), np.int64), **attrs).tolist() == [[0, 0], [0, 0]]


def test_packed_mean_of_integers_is_truncated():
    table = np.array([[3], [-4]], np.int32)
    got = packed_bag(table, np.array([[0, 1], [1, 1], [1, 0]]), reduction="mean")
    assert got.dtype == np.int32
    assert got.tolist() == [[0], [-4], [0]]


@both_packed
def test_packed_shape_and_type(op):
    batch = fresh()
    output = op.infer([Tensor("f16", (9, 4, 5)), Tensor("i64", (batch, fresh()))], op.defaults).outputs[0]
    assert (output.shape[0] == batch) is True
    assert (output.type, output.shape[1:]) == ("f16", (4, 5))


def test_embeddingbagpackedsum_3_c1_index_outside_the_table():
    refuses(packed_sum, "C1", "`indices[1, 0]` is 5, outside [0, 5)", TABLE, [[0, 1], [5, 0]])
    refuses(packed_sum, "C1", "`indices[0, 1]` is -1, outside [0, 5)", TABLE, [[0, -1], [2, 0]])


def test_embeddingbagpacked_15_c1_index_outside_the_table():
    refuses(packed_bag, "C1", "`indices[1, 0]` is 5, outside [0, 5)", TABLE, [[0, 1], [5, 0]])


def test_embeddingbagpacked_15_c2_weights_with_mean():
    refuses(packed_bag, "C2", WEIGHTED_MEAN, TABLE, [[0, 1]], np.ones((1, 2), np.float32), reduction="mean")


@both_packed
def test_packed_weights_have_the_shape_of_the_indices(op):
    message = "`indices_per_bag` is 3 in `per_sample_weights`, but 2 in `indices`"
    refuses(op, "E304", message, TABLE, PAIRS, np.ones((3, 3), np.float32))
