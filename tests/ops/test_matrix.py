"""Matrix ops: written-out products, slow loops, element types, constraints and dynamic shapes."""

import ml_dtypes
import numpy as np
import pytest
from tolerance import tolerated

from irrun.spec import Tensor, Violation, fresh
from irrun.spec.registry import registry

ops = registry().ops
matmul, einsum, inverse = ops["MatMul-1"], ops["Einsum-7"], ops["Inverse-14"]
grouped_matmul = ops["GroupedMatMul-17"]
rng = np.random.default_rng(0)


def message(op, *inputs, **attrs):
    with pytest.raises(Violation) as caught:
        op(*inputs, **attrs)
    return caught.value.label, caught.value.message


def shape_of(op, *tensors, **attrs):
    return op.infer(tensors, op.defaults | attrs).outputs[0].shape


def loop_product(a, b):
    """The product of two arrays of rank 2 or more, element by element, in Python integers."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = np.broadcast_to(a, (*batch, *a.shape[-2:]))
    b = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    result = np.zeros((*batch, a.shape[-2], b.shape[-1]), object)
    for place in np.ndindex(result.shape):
        *rest, row, column = place
        result[place] = sum(int(a[(*rest, row, k)]) * int(b[(*rest, k, column)]) for k in range(a.shape[-1]))
    return result


class TestMatMul:
    def test_two_vectors_give_a_scalar(self):
        result = matmul(np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.float32))
        assert result == 32
        assert np.shape(result) == ()
        assert np.asarray(result).dtype == np.float32

    def test_a_vector_on_the_left_is_a_row(self):
        matrices = np.arange(12.0).reshape(2, 2, 3)
        assert matmul(np.array([1.0, 10.0]), matrices).tolist() == [[30, 41, 52], [96, 107, 118]]

    def test_a_vector_on_the_right_is_a_column(self):
        matrices = np.arange(12.0).reshape(2, 2, 3)
        assert matmul(matrices, np.array([1.0, 0.0, 10.0])).tolist() == [[20, 53], [86, 119]]

    def test_of_booleans_any_pair_of_which_both_are_true(self):
        with pytest.warns(UserWarning, match="is boolean.*and so does irrun") as told:
            result = matmul(np.array([[1, 1, 0], [0, 0, 1]], bool), np.array([[1, 0], [1, 0], [0, 0]], bool))
        assert result.tolist() == [[True, False], [False, False]]
        assert len(told) == 1

    def test_a_boolean_and_a_number_are_no_pair(self):
        assert "is f32, but `A` is boolean" in message(matmul, np.ones((2, 2), bool), np.ones((2, 2), np.float32))[1]

    def test_vectors_are_never_transposed(self):
        row = np.array([1.0, 2.0])
        assert matmul(row, np.array([[3.0, 4.0]]), transpose_a=True, transpose_b=True).tolist() == [11]
        assert matmul(np.array([[3.0], [4.0]]), row, transpose_a=True, transpose_b=True).tolist() == [11]

    @pytest.mark.parametrize("transpose_a", [False, True])
    @pytest.mark.parametrize("transpose_b", [False, True])
    @pytest.mark.parametrize(
        ("batch_a", "batch_b"),
        [((), ()), ((3,), ()), ((), (3,)), ((2, 1), (3,)), ((2, 3), (1, 1)), ((3, 1, 2), (4, 1))],
    )
    def test_batches_broadcast_and_matrices_transpose(self, batch_a, batch_b, transpose_a, transpose_b):
        a, b = rng.integers(-9, 9, (*batch_a, 2, 3)), rng.integers(-9, 9, (*batch_b, 3, 4))
        want = loop_product(a, b).astype(int)
        left = np.ascontiguousarray(a.swapaxes(-1, -2)) if transpose_a else a
        right = np.ascontiguousarray(b.swapaxes(-1, -2)) if transpose_b else b
        attrs = {"transpose_a": transpose_a, "transpose_b": transpose_b}
        for type in (np.float32, np.int32):
            got = matmul(left.astype(type), right.astype(type), **attrs)
            assert got.dtype == type
            assert (got == want).all()
        tensors = [Tensor("f32", left.shape), Tensor("f32", right.shape)]
        assert shape_of(matmul, *tensors, **attrs) == want.shape

    def test_nothing_to_sum_gives_zeros(self):
        assert matmul(np.ones((2, 3, 0), np.float32), np.ones((0, 2), np.float32)).tolist() == [[[0, 0]] * 3] * 2
        assert matmul(np.ones((0, 3, 2), np.int8), np.ones((2, 4), np.int8)).shape == (0, 3, 4)

    @pytest.mark.parametrize("type", [np.float16, ml_dtypes.bfloat16])
    def test_16_bit_floats_are_rounded_once(self, type):
        a, b = rng.normal(size=(3, 200)).astype(type), rng.normal(size=(200, 2)).astype(type)
        got = matmul(a, b)
        assert got.dtype == type
        want = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
        np.testing.assert_allclose(got.astype(np.float32), want, rtol=np.finfo(np.float32).eps + 2.0**-8)
        ones = np.full((1, 5000), 1, type)
        assert matmul(ones, ones.T).item() == np.float32(5000).astype(type)

    @pytest.mark.parametrize("type", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
    def test_integers_are_exact_and_wrap_around(self, type):
        info = np.iinfo(type)
        a = rng.integers(info.min, info.max, (2, 4), type, endpoint=True)
        b = rng.integers(info.min, info.max, (4, 3), type, endpoint=True)
        want = [[(int(n) - info.min) % 2**info.bits + info.min for n in row] for row in loop_product(a, b)]
        got = matmul(a, b)
        assert got.dtype == type
        assert got.tolist() == want

    def test_matmul_1_c1_rows_and_columns_of_different_length(self):
        a, b = np.ones((2, 3)), np.ones((4, 5))
        assert message(matmul, a, b) == ("C1", "rows of `A` have 3 elements, but columns of `B` have 4")
        assert message(matmul, a, b, transpose_a=True, transpose_b=True)[1].startswith("rows of `A` have 2")
        assert message(matmul, a, np.ones(2)) == ("C1", "rows of `A` have 3 elements, but columns of `B` have 2")

    def test_matmul_1_c2_batches_that_do_not_broadcast(self):
        label, text = message(matmul, np.ones((2, 1, 1)), np.ones((3, 1, 1)))
        assert label == "C2"
        assert text == "`A` has the batch [2], `B` [3], which do not broadcast"

    def test_a_scalar_is_no_matrix(self):
        label, _ = message(matmul, np.array(1.0), np.ones(1))
        assert label == "E305"

    def test_unknown_dimensions_are_kept(self):
        batch, rows, inner = fresh(), fresh(), fresh()
        shape = shape_of(matmul, Tensor("f32", (batch, rows, inner)), Tensor("f32", (768, 5)))
        assert shape == (batch, rows, 5)
        assert shape[0] is batch

    def test_an_unknown_rank_leaves_the_result_unknown(self):
        assert shape_of(matmul, Tensor("f32", None), Tensor("f32", (2, 3))) is None


class TestEinsum:
    CUBE = np.array([[[1.0, 2, 3], [4, 5, 6], [7, 8, 9]], [[2.0, 4, 6], [8, 10, 12], [14, 16, 18]]])
    SQUARE = CUBE[0]

    def test_the_examples_of_the_page(self):
        a, b = np.array([1.0, 2, 3]), np.array([4.0, 5, 6])
        assert np.asarray(einsum(a, b, equation="i,i->")).item() == 32
        assert einsum(np.array([a, a]), b, equation="ij,j->i").tolist() == [32, 32]
        assert einsum(self.CUBE, equation="kii->k").tolist() == [15, 30]
        assert einsum(self.CUBE, equation="kii->ki").tolist() == [[1, 5, 9], [2, 10, 18]]
        assert shape_of(einsum, Tensor("f32", (2, fresh(), 3)), equation="kii->ki") == (2, 3)
        assert einsum(self.CUBE[:1], equation="ijk->kij").tolist() == [[[1, 4, 7]], [[2, 5, 8]], [[3, 6, 9]]]
        assert einsum(self.SQUARE, equation="a...->...").tolist() == [12, 15, 18]
        assert einsum(self.SQUARE, np.array([0.5]), equation="a...,...->a...").tolist() == (self.SQUARE / 2).tolist()
        assert einsum(self.CUBE[:1, :2], equation="AbC").tolist() == [[[1, 4], [2, 5], [3, 6]]]

    def test_broadcast_dimensions_under_the_ellipsis(self):
        a, b = rng.normal(size=(9, 1, 4, 3)), rng.normal(size=(3, 11, 7, 1))
        got = einsum(a, b, equation="a...b,b...->a...")
        assert got.shape == (9, 11, 7, 4)
        want = (a.transpose(0, 3, 1, 2)[:, :, None] * b[None]).sum(1)
        np.testing.assert_allclose(got, want, 1e-12)

    def test_three_inputs(self):
        a, b, c = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 7, 1)), rng.normal(size=(2, 4, 7))
        got = einsum(a, b, c, equation="ab...,ac...,ade->...bc")
        assert got.shape == (4, 3, 7)
        want = np.zeros((4, 3, 7))
        for i, b_, c_, n in np.ndindex(4, 3, 7, 2):
            want[i, b_, c_] += a[n, b_, i] * b[n, c_, 0] * c[n].sum()
        np.testing.assert_allclose(got, want, 1e-12)

    def test_a_label_of_size_1_is_broadcast(self):
        a, b = np.array([[1.0], [2.0]]), np.arange(12.0).reshape(3, 4)
        assert einsum(a, b, equation="ij,jk->ik").tolist() == [[12, 15, 18, 21], [24, 30, 36, 42]]

    def test_dimensions_that_the_output_lacks_are_summed(self):
        assert einsum(self.CUBE, equation="a...->a").tolist() == [45, 90]

    def test_blanks_mean_nothing_and_letters_sort_in_implicit_mode(self):
        a, b = rng.normal(size=(4, 2, 2, 3)), rng.normal(size=(3, 5))
        got = einsum(a, b, equation=" d bbc, ca ")
        np.testing.assert_allclose(got, np.einsum("dbbc,ca->ad", a, b), 1e-12)

    def test_a_transposition_is_no_view(self):
        assert not np.may_share_memory(einsum(self.SQUARE, equation="ij->ji"), self.SQUARE)

    def test_scalars(self):
        assert np.asarray(einsum(np.array(3.0), np.array([1.0, 2.0]), equation=",i->i")).tolist() == [3, 6]

    @pytest.mark.parametrize(
        "equation",
        ["btd,dhe->bhte", "bhqe,bhke->bhqk", "bhqe,qke->bhqk", "bhqk,bhke->bqhe", "ab,bc->ca", "ab,ab->", "abc,b->ca",
         "aab,bc->ac", "abc,bd->ad", "ab,cb->bac"],
    )  # fmt: skip
    def test_sums_of_two_inputs_are_products_of_matrices(self, equation):
        rng = np.random.default_rng(3)
        sizes = dict(zip("abcdehkqt", (2, 3, 4, 5, 6, 2, 3, 7, 5), strict=True))
        arrays = [rng.normal(size=[sizes[label] for label in term]) for term in equation.split("->")[0].split(",")]
        np.testing.assert_allclose(einsum(*arrays, equation=equation), np.einsum(equation, *arrays), 1e-10, 1e-12)
        empty = [
            array[..., :0] if term[-1] == "e" else array
            for array, term in zip(arrays, equation.split("->")[0].split(","), strict=True)
        ]
        np.testing.assert_allclose(einsum(*empty, equation=equation), np.einsum(equation, *empty), 1e-10, 1e-12)

    def test_types(self):
        ones = np.ones((1, 5000), np.float16)
        assert einsum(ones, ones, equation="ij,kj->ik").tolist() == [[5000]]
        assert einsum(ones, ones, equation="ij,kj->ik").dtype == np.float16
        numbers = np.array([100, 100], np.int8)
        assert np.asarray(einsum(numbers, numbers, equation="i,i->")).item() == 20000 % 256
        assert np.asarray(einsum(numbers, numbers, equation="i,i->")).dtype == np.int8

    @pytest.mark.parametrize("equation", ["i1->i", "....->i", "i...j...->i", "i->j->k", "i;j", "i-->i", "i..->i"])
    def test_einsum_7_c1_malformed_equation(self, equation):
        assert message(einsum, np.ones(2), equation=equation)[0] == "C1"

    def test_einsum_7_c2_number_of_subscripts(self):
        expected = ("C2", "`equation` has 2 input subscripts, but there are 1 inputs")
        assert message(einsum, np.ones(2), equation="i,i->") == expected

    def test_einsum_7_c3_labels_against_the_rank(self):
        assert message(einsum, np.ones(2), equation="ij") == ("C3", "`ij` has 2 labels, but `inputs[0]` has rank 1")
        assert message(einsum, np.ones(2), equation="i...j")[0] == "C3"

    def test_einsum_7_c4_a_diagonal_of_no_square(self):
        assert message(einsum, np.ones((2, 3)), equation="ii") == ("C4", "`i` is both 2 and 3 in `inputs[0]`")
        assert message(einsum, np.ones((1, 3)), equation="ii")[0] == "C4"

    def test_einsum_7_c5_sizes_that_do_not_broadcast(self):
        expected = ("C5", "`i` is 3 in `inputs[1]`, but 2 before it")
        assert message(einsum, np.ones(2), np.ones(3), equation="i,i") == expected
        assert message(einsum, np.ones(2), np.ones(3), equation="...,...")[1].startswith("`...` is 3")

    @pytest.mark.parametrize("output", ["ii", "j"])
    def test_einsum_7_c6_wrong_output_subscript(self, output):
        label, text = message(einsum, np.ones(2), equation=f"i->{output}")
        assert (label, text) == ("C6", f"the output subscript is `{output}`, but the inputs have `i`")

    def test_einsum_7_c6_ellipsis_for_no_dimensions(self):
        label, text = tolerated(einsum, np.ones(2), equation="i->...i")
        assert (label, text) == ("C6", "the output subscript is `...i`, but the inputs have `i`")

    def test_unknown_dimensions(self):
        a, b = fresh(), fresh()
        inferred = shape_of(einsum, Tensor("f32", (a, b)), Tensor("f32", (b, 4)), equation="ij,jk->ki")
        assert inferred == (4, a)
        assert shape_of(einsum, Tensor("f32", None), equation="...i->i...") is None


class TestInverse:
    def test_the_inverse_times_the_matrix_is_one(self):
        matrices = rng.normal(size=(2, 3, 4, 4)).astype(np.float32)
        np.testing.assert_allclose(matrices @ inverse(matrices), np.broadcast_to(np.eye(4), (2, 3, 4, 4)), atol=1e-4)

    def test_adjoint_transposes(self):
        matrix = np.array([[1.0, 2.0], [0.0, 1.0]], np.float32)
        assert inverse(matrix).tolist() == [[1, -2], [0, 1]]
        assert inverse(matrix, adjoint=True).tolist() == [[1, 0], [-2, 1]]

    def test_f64_is_computed_in_f32(self):
        result = inverse(np.array([[3.0]]))
        assert result.dtype == np.float64
        assert result.item() == float(np.float32(1) / np.float32(3))

    def test_a_singular_matrix_gives_nan_and_spoils_no_other(self):
        got = inverse(np.array([[[1, 1], [1, 1]], [[2, 0], [0, 4]]], np.float16))
        assert np.isnan(got[0]).all()
        assert got[1].tolist() == [[0.5, 0], [0, 0.25]]
        assert got.dtype == np.float16

    def test_empty(self):
        assert inverse(np.zeros((0, 2, 2), np.float32)).shape == (0, 2, 2)
        assert inverse(np.zeros((2, 0, 0), np.float32)).shape == (2, 0, 0)

    def test_rows_and_columns_differ(self):
        assert message(inverse, np.ones((2, 3))) == ("E304", "`n` is 2 and 3 in `input`, expected one size for both")


class TestGroupedMatMul:
    def test_uniform_groups(self):
        a, b = rng.normal(size=(3, 2, 4)), rng.normal(size=(3, 5, 4))
        np.testing.assert_allclose(grouped_matmul(a, b), np.stack([x @ y.T for x, y in zip(a, b, strict=True)]))

    def test_rows_in_groups_one_of_which_is_empty(self):
        a, b = rng.integers(-9, 9, (5, 4)).astype(np.int8), rng.integers(-9, 9, (3, 2, 4)).astype(np.int8)
        got = grouped_matmul(a, b, np.array([2, 2, 5], np.int32))
        assert got.dtype == np.int8
        want = np.concatenate([loop_product(a[:2], b[0].T), loop_product(a[2:], b[2].T)])
        assert (got == want.astype(int).astype(np.int8)).all()

    def test_f16_is_rounded_once(self):
        got = grouped_matmul(np.ones((1, 1, 5000), np.float16), np.ones((1, 1, 5000), np.float16))
        assert got.dtype == np.float16
        assert got.item() == 5000

    def test_groups_and_rows_are_known_from_any_input(self):
        a, b = Tensor("f32", (fresh(), 2, 4)), Tensor("f32", (3, 5, 4))
        assert shape_of(grouped_matmul, a, b, None) == (3, 2, 5)
        assert shape_of(grouped_matmul, Tensor("f32", (fresh(), 4)), b, Tensor.of(np.array([2, 2, 7]))) == (7, 5)

    def test_groupedmatmul_17_c1_offsets_with_3d_or_missing_with_2d(self):
        a, b = np.ones((2, 1, 3)), np.ones((2, 4, 3))
        expected = ("C1", "`offsets` is given for `mat_a` of rank 3")
        assert message(grouped_matmul, a, b, np.array([1, 2])) == expected
        assert message(grouped_matmul, a[0], b) == ("C1", "`offsets` is missing for `mat_a` of rank 2")

    def test_groupedmatmul_17_c2_offsets_out_of_order_or_short(self):
        a, b = np.ones((4, 3)), np.ones((2, 1, 3))
        expected = ("C2", "`offsets` is [4, 2], expected ascending from 0")
        assert message(grouped_matmul, a, b, np.array([4, 2])) == expected
        assert message(grouped_matmul, a, b, np.array([-1, 4]))[0] == "C2"
        assert message(grouped_matmul, a, b, np.array([1, 3])) == ("C2", "`offsets` end at 3, but `mat_a` has 4 rows")

    def test_unknown_tokens(self):
        tokens = fresh()
        tensors = [Tensor("f32", (tokens, 4)), Tensor("f32", (3, 5, 4)), Tensor("i64", (3,))]
        assert shape_of(grouped_matmul, *tensors) == (tokens, 5)
