"""Matrix ops against OpenVINO."""

import ml_dtypes
import numpy as np
import openvino as ov
from openvino import opset1, opset7, opset14, opset17

from conformance.harness import ANY_INTEGER, Case, Const, Departure, conformance, with_attribute

rng = np.random.default_rng(0)


def f32(*shape):
    return rng.normal(size=shape).astype(np.float32)


def matmul(transpose_a=False, transpose_b=False):
    return lambda a, b: opset1.matmul(a, b, transpose_a, transpose_b)


def einsum(equation):
    return lambda *inputs: opset7.einsum(list(inputs), equation)


def inverse(adjoint=False):
    return lambda data: opset14.inverse(data, adjoint)


def both_ways(x):
    """Two products with the same weights."""
    weights = opset1.constant(SQUARE)
    return [opset1.matmul(x, weights, False, turned).output(0) for turned in (False, True)]


def weighed(weights, type, scales, transposed):
    """A product with weights of 4 rows and columns that are stored in few bits, and perhaps in groups."""

    def build(x):
        scaled = opset1.multiply(opset1.convert(opset1.constant(weights, type), "f16"), opset1.constant(scales))
        if weights.ndim > 2:
            scaled = opset1.reshape(scaled, opset1.constant(np.int64([4, 4])), False)
        return opset1.matmul(x, opset1.convert(scaled, "f32"), False, transposed)

    return build


def weighed_rows(weights):
    """Weights that are stored in 4 bits, times a number for each row."""
    codes = opset1.convert(opset1.constant(weights, ov.Type.i4), "f32")
    return opset1.multiply(codes, opset1.constant(np.full((len(weights), 1), 0.5, np.float32)))


def compressed(title, type, weights, scales, transposed, departure, crashes=False):
    x = np.float32([[1, -2, 0.5, 3], [0, 1, 1, -1]])
    scaled = (weights * scales).astype(np.float32).reshape(4, 4)
    expected = [x @ (scaled.T if transposed else scaled)]
    build = weighed(weights, type, scales, transposed)
    return Case("MatMul-1", title, build, [x], deviates=departure, expected=expected, crashes=crashes)


SIGNS = np.float32([[1, -1, 0, 1], [0, 1, 1, -1], [-1, 0, 1, 0], [1, 1, 1, 0]])
GROUPED = Departure(
    "refuses square weights that are stored in groups, and not transposed; the reference computes them",
    "B is stored as i4, u4, i8, u8, nf4 in groups; transpose_b = false; axis 0 of B = axis 1 of B",
)

# rows of fewer or shorter ones are not enough for it where there is AMX
TENS = np.arange(16 * 33, dtype=np.float32).reshape(16, 33) % 10
ODD = np.random.default_rng(3).integers(-8, 8, (2, 33), np.int8)
"""Weights of 4 bits, of which every other row begins within a byte."""

LARGE = np.full((1, 2), 100, np.int8)
SQUARE = np.float32([[1, 0], [3, 0.5]])

CASES = [
    Case("MatMul-1", "two matrices", matmul(), [f32(3, 4), f32(4, 5)]),
    Case("MatMul-1", "constant weights, transposed", matmul(False, True), [f32(2, 3, 4), Const(f32(5, 4))]),
    Case("MatMul-1", "both transposed, broadcast batch", matmul(True, True), [f32(2, 1, 4, 3), f32(5, 6, 4)]),
    Case("MatMul-1", "two vectors", matmul(), [f32(4), f32(4)]),
    Case("MatMul-1", "vector and matrices", matmul(True), [f32(4), f32(2, 4, 3)]),
    Case("MatMul-1", "matrices and vector", matmul(False, True), [f32(2, 3, 4), f32(4)]),
    Case("MatMul-1", "all sizes unknown", matmul(), [f32(2, 3, 4), f32(1, 4, 5)], dynamic=True),
    Case("MatMul-1", "f16", matmul(), [f32(2, 300).astype(np.float16), f32(300, 3).astype(np.float16)], rtol=1e-3),
    Case(
        "MatMul-1",
        "bf16",
        matmul(),
        [f32(2, 300).astype(ml_dtypes.bfloat16), f32(300, 3).astype(ml_dtypes.bfloat16)],
        rtol=1e-2,
    ),
    Case("MatMul-1", "f64", matmul(), [f32(2, 3).astype(np.float64), f32(3, 2).astype(np.float64)]),
    Case(
        "MatMul-1", "i32", matmul(), [rng.integers(-99, 99, (2, 3), np.int32), rng.integers(-99, 99, (3, 2), np.int32)]
    ),
    Case("MatMul-1", "i64", matmul(), [rng.integers(-99, 99, (2, 3)), rng.integers(-99, 99, (3, 2))]),
    Case(
        "MatMul-1",
        "i8 overflow",
        matmul(),
        [LARGE, LARGE.T.copy()],
        deviates=Departure("saturates; the reference wraps around", "A is i8, u8; result overflows"),
        expected=[[[np.int64(20000).astype(np.int8)]]],
    ),
    *(
        compressed(
            f"square weights in groups, {type.get_type_name()}",
            type,
            SIGNS.astype(np.int8).reshape(4, 2, 2),
            np.float16([1, 2, 4, 0.5, 1, 8, 2, 2]).reshape(4, 2, 1),
            False,
            GROUPED,
        )
        for type in (ov.Type.i4, ov.Type.i8)
    ),
    compressed(
        "nf4 weights with a scale for each column",
        ov.Type.nf4,
        SIGNS,
        np.float16([[1, 2, 4, 0.5]]),
        True,
        Departure(
            "crashes; the reference computes it",
            "B is stored as nf4 scaled along its last axis; transpose_b = true; B is not stored as nf4 in groups",
        ),
        crashes=True,
    ),
    Case(
        "MatMul-1",
        "rows of 4 bits that begin within a byte",
        lambda x: opset1.matmul(x, weighed_rows(ODD), False, True),
        [TENS],
        deviates=Departure(
            "takes other weights for those of rows that begin within a byte, where A has many rows; "
            "the reference takes each element from its own bits",
            "B is stored as u2, i4, u4, nf4; (the elements of a row of B do not fill whole bytes)",
        ),
        expected=[TENS @ (ODD.T * np.float32(0.5))],
    ),
    Case(
        "MatMul-1",
        "square weights of two products, as they lie and transposed",
        both_ways,
        [np.float32([[1, 2], [3, 5]])],
        deviates=Departure(
            "reads the weights as a product before it has them that reads them otherwise; each reads its own",
            "A is f32; B is constant; axis 0 of B = axis 1 of B; transpose_b is another one elsewhere; "
            "(it reads the same weights there)",
        ),
        expected=[np.float32([[7.0, 1.0], [18.0, 2.5]]), np.float32([[1.0, 4.0], [3.0, 11.5]])],
    ),
    Case("MatMul-1", "no rows", matmul(), [f32(0, 3), f32(3, 4)]),
    Case("MatMul-1", "no columns, dynamic", matmul(transpose_b=True), [f32(2, 3), f32(0, 3)], dynamic=True),
    Case(
        "MatMul-1",
        "no elements, transposed",
        matmul(transpose_b=True),
        [np.ones((2, 0), np.float32), np.ones((3, 0), np.float32)],
        deviates=Departure(
            "refuses matrices without elements that are transposed, of bf16 or of integers where shapes are known; "
            "their product is 0 or empty",
            f"A is empty | B is empty; transpose_a = true | transpose_b = true | A is bf16, {ANY_INTEGER}; "
            "A is not constant; B is not constant; layer is not dynamic",
        ),
        expected=[np.zeros((2, 3), np.float32)],
    ),
    Case("Einsum-7", "product", einsum("ij,jk->ik"), [f32(3, 4), f32(4, 5)]),
    Case("Einsum-7", "implicit", einsum("Cba"), [f32(3, 4, 2)]),
    Case("Einsum-7", "diagonals", einsum("kii->ki"), [f32(2, 3, 3)]),
    Case("Einsum-7", "trace", einsum("kii->k"), [f32(2, 3, 3)]),
    Case("Einsum-7", "attention", einsum("bhqd,bhkd->bhqk"), [f32(2, 3, 4, 5), f32(2, 3, 6, 5)], dynamic=True),
    Case("Einsum-7", "ellipses", einsum("a...b,b...->a..."), [f32(5, 1, 4, 3), f32(3, 2, 2, 1)]),
    Case("Einsum-7", "three inputs", einsum("ab...,ac...,ade->...bc"), [f32(2, 3, 4), f32(2, 7, 1), f32(2, 4, 7)]),
    Case("Einsum-7", "broadcast label", einsum("ij,jk->ik"), [f32(2, 1), f32(3, 4)]),
    Case(
        "Einsum-7",
        "blanks",
        einsum("ij,jk->ik"),
        [np.float32([[1, 2]]), np.float32([[3], [4]])],
        deviates=Departure("refuses blanks in the equation; the page's equations have them", "equation has blanks"),
        expected=[np.float32([[11]])],
        edit=with_attribute("equation", "ij, jk -> ik"),
    ),
    Case("Einsum-7", "summed ellipsis", einsum("a...->a"), [f32(2, 3, 4)]),
    Case("Einsum-7", "i32", einsum("ij,kj->ik"), [np.arange(6, dtype=np.int32).reshape(2, 3)] * 2),
    Case("Inverse-14", "matrix", inverse(), [f32(4, 4)], rtol=1e-3, atol=1e-4),
    Case("Inverse-14", "adjoint of a batch", inverse(True), [f32(2, 3, 3, 3)], rtol=1e-3, atol=1e-4),
    Case("Inverse-14", "all sizes unknown", inverse(), [f32(2, 2)], dynamic=True, rtol=1e-3, atol=1e-4),
    Case("Inverse-14", "f16", inverse(), [(np.eye(3) * 3 + 1).astype(np.float16)], rtol=2e-3, atol=1e-3),
    Case("Inverse-14", "f64", inverse(), [np.eye(3) * 3 + 1]),
]

CASES += [
    Case(
        "MatMul-1",
        title,
        matmul(),
        [np.array([row], type), np.array([[1], [last]], type)],
        deviates=Departure(f"{what}; the reference {instead}", when),
        expected=[np.array([[result]], type)],
    )
    for title, type, row, last, what, instead, when, result in (
        (
            "i32 beyond f32",
            np.int32,
            [2**24 + 1, 1],
            0,
            "computes in f32",
            "computes in i32",
            "A is i32; layer has numbers beyond 2**24",
            2**24 + 1,
        ),
        (
            "i64 beyond i32",
            np.int64,
            [2**40, 1],
            0,
            "passes through i32",
            "computes in i64",
            "A is i64; layer has numbers beyond i32",
            2**40,
        ),
        ("u8 overflow", np.uint8, [200, 100], 1, "saturates", "wraps around", "A is i8, u8; result overflows", 44),
    )
]

ROWS, GROUPS = np.arange(12, dtype=np.float32).reshape(4, 3), f32(2, 5, 3)


def grouped(title, a, b, *offsets, dynamic=False, **rest):
    if not offsets:
        expected = a.astype(np.float32) @ b.swapaxes(1, 2).astype(np.float32)
    else:
        parts = zip(np.split(a, offsets[0][:-1]), b, strict=True)
        expected = np.concatenate([part.astype(np.float32) @ matrix.T.astype(np.float32) for part, matrix in parts])
    return Case(
        "GroupedMatMul-17",
        title,
        opset17.grouped_matmul,
        [a, b, *offsets],
        dynamic,
        deviates=Departure("refuses to compute the op, which has no kernel; the page defines it"),
        expected=[expected.astype(a.dtype)],
        **rest,
    )


CASES += [
    grouped("matrices", f32(2, 4, 3), GROUPS),
    grouped("groups of rows", ROWS, GROUPS, np.array([1, 4], np.int32)),
    grouped("an empty group", ROWS, GROUPS, np.array([4, 4])),
    grouped("sizes unknown", ROWS, GROUPS, np.array([3, 4]), dynamic=True),
    grouped("matrices, sizes unknown", f32(2, 1, 3), GROUPS, dynamic=True),
    grouped("i32", ROWS.astype(np.int32), np.ones((2, 5, 3), np.int32), np.array([2, 4])),
    grouped("f16", ROWS.astype(np.float16), GROUPS.astype(np.float16), np.array([2, 4]), rtol=1e-3, atol=1e-3),
]
CASES += [
    Case(
        "Einsum-7",
        "sums of nothing",
        einsum("ij,kj->ik"),
        [f32(2, 0), f32(3, 0)],
        deviates=Departure(
            "refuses empty operands whose sums are results; a sum of nothing is 0",
            "inputs is empty; size of result > 0",
        ),
        expected=[np.zeros((2, 3), np.float32)],
    ),
]

CASES += [
    Case(
        "Einsum-7",
        "a label twice, no result",
        einsum("dB,AA"),
        [np.float32([[1, 2]]), np.float32([[1, 5], [6, 2]])],
        deviates=Departure(
            "refuses labels twice in an operand where no result is written; the page derives it from the others",
            "equation has labels twice and no result",
        ),
        expected=[np.float32([[3], [6]])],
    )
]

test_agrees_with_openvino = conformance(CASES)
