"""Matrix ops: products of matrices, their inverse, and sums of products in Einstein's notation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from irrun.spec import (
    BOOL,
    BOOLEAN,
    FLOAT,
    INDEX,
    NUMERIC,
    STRING,
    Accumulating,
    Array,
    Attr,
    Input,
    MatrixProduct,
    Node,
    Output,
    Products,
    Shape,
    Shapes,
    Size,
    Undecided,
    broadcast,
    broadcast_shapes,
    meet,
    op,
    product,
    shape_text,
)

from ._precision import widened

LONGEST, PART = 1 << 17, 1 << 14
"""Products of an element of the result that f32 adds up; more are added in parts."""

EXACT = 2**53
"""Up to here f64 holds every integer."""


def _operations(shapes: Sequence[Shape], attrs: Mapping[str, Any], result: Shape) -> Size:
    data = shapes[0]
    transposed = attrs["transpose_a"] and len(data) > 1
    return 2 * product(result) * data[-2 if transposed else -1]


@op(
    "MatMul-1",
    types={"T": NUMERIC},
    lenient_types={"T": BOOLEAN},
    inputs=[Input("A", "T", "[*a_rows, a_columns]"), Input("B", "T", "[*b_rows, b_columns]")],
    outputs=[Output("result", "T", "[*result]")],
    attrs=[Attr("transpose_a", BOOL, False), Attr("transpose_b", BOOL, False)],
    traits=[Products(_operations), MatrixProduct("transpose_a", "transpose_b")],
)
def matmul(A: Array, B: Array, *, transpose_a: bool, transpose_b: bool) -> Any:
    """Multiply matrices, the last two axes of each input; the axes before them are broadcast.

    A 1-D input is a row vector on the left and a column vector on the right, whose extra axis the result lacks; it is
    never transposed. 16-bit floats are summed in f32 and rounded once; integers wrap around. Of booleans, which
    converters write and OpenVINO takes, a sum of products is whether there is a pair of which both are true.

    Constraints:
        C1: after the transpositions the rows of A are as long as the columns of B.
        C2: the axes before the last two fit under numpy's broadcasting.

    Deviation: OpenVINO's CPU plugin saturates integers and computes those of 32 bits in f32.

    Source: matrix/matmul-1.rst

    >>> op(np.array([[1, 2], [3, 4]]), np.array([10, 1])).tolist()
    [12, 34]
    """
    left = A.swapaxes(-1, -2) if transpose_a and A.ndim > 1 else A
    right = B.swapaxes(-1, -2) if transpose_b and B.ndim > 1 else B
    if A.dtype.kind == "b":
        return left @ right
    if A.dtype.kind in "iu":
        return _integer_product(left, right)
    return _product(widened(left), widened(right)).astype(A.dtype, copy=False)


@matmul.shapes
def _(node: Node) -> Shapes:
    a = _transposed(node.shape("A"), node.attrs["transpose_a"])
    b = _transposed(node.shape("B"), node.attrs["transpose_b"])
    inner = b[-2] if len(b) > 1 else b[0]
    node.require(
        "C1", a[-1] == inner, f"rows of `A` have {a[-1]} elements, but columns of `B` have {inner}", about=["A", "B"]
    )
    batch = broadcast_shapes(a[:-2], b[:-2])
    if batch is None:
        node.fail(
            "C2",
            f"`A` has the batch {shape_text(a[:-2])}, `B` {shape_text(b[:-2])}, which do not broadcast",
            about=["A", "B"],
        )
    return {"result": (*batch, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))}


def _transposed(shape: tuple[Size, ...], transpose: bool) -> tuple[Size, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if transpose and len(shape) > 1 else shape


def _product(a: Any, b: Any) -> Any:
    """The product of floats; long sums are made of parts in f64, as f32 would lose digits."""
    inner = a.shape[-1]
    if a.dtype != np.float32 or inner <= LONGEST:
        return _matmul(a, b)
    parts = (slice(start, start + PART) for start in range(0, inner, PART))
    return sum(_matmul(a[..., part], b[part] if b.ndim == 1 else b[..., part, :]).astype(np.float64) for part in parts)


def _matmul(a: Any, b: Any) -> Any:
    """The product of floats; a batch that meets one matrix becomes the rows of one product."""
    while 2 < b.ndim <= a.ndim and b.shape[0] == 1:
        b = b[0]
    if b.ndim == 2 and a.ndim > 2 and a.flags.c_contiguous:
        rows = a.shape[:-1]
        return np.matmul(a.reshape(prod(rows), a.shape[-1]), b).reshape(*rows, b.shape[-1])
    return np.matmul(a, b)


def _integer_product(a: Array, b: Array) -> Any:
    """The product of integers, in f64 (for which there is BLAS) where no sum can become inexact."""
    if not (a.size and b.size):
        return np.matmul(a, b)
    if _magnitude(a) * _magnitude(b) * a.shape[-1] <= EXACT:
        return _product(a.astype(np.float64), b.astype(np.float64)).astype(np.int64).astype(a.dtype)
    return np.matmul(a, b)


def _magnitude(array: Array) -> int:
    return max(int(array.max()), -int(array.min()))


def _contracted(shapes: Sequence[Shape], attrs: Mapping[str, Any], result: Shape) -> Size:
    """Two inputs at a time, from the left; a label that nothing behind them needs is summed over at once."""
    terms, kept = _subscripts(attrs["equation"], list(map(len, shapes)))
    sizes: dict[Any, Size] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for label, size in zip(term, shape, strict=True):
            both = broadcast(sizes.get(label, 1), size)
            assert both is not None, "the rule rejects sizes that do not fit"
            sizes[label] = both
    count: Size = 0
    labels = set(terms[0])
    for number, term in enumerate(terms[1:], 2):
        labels |= set(term)
        count += 2 * product(sizes[label] for label in labels)
        labels &= set(kept).union(*terms[number:])
    return count


@op(
    "Einsum-7",
    types={"T": NUMERIC},
    inputs=[Input("inputs", "T", "...", variadic=True)],
    outputs=[Output("result", "T", "[*result]")],
    attrs=[Attr("equation", STRING)],
    traits=[Accumulating(_contracted)],
)
def einsum(*inputs: Array, equation: str) -> Any:
    """Multiply the inputs and sum over the labels that the output lacks, as an equation in Einstein's notation says.

    16-bit floats are summed in f32 and rounded once; integers wrap around.

    Constraints:
        C1: equation is input subscripts of letters, each with at most one ellipsis, between commas, then perhaps an
            arrow and an output subscript.
        C2: equation has one subscript for each input.
        C3: a subscript has a label for each dimension of its input; an ellipsis covers any number of them.
        C4: dimensions of one input with the same label are equal.
        C5: dimensions of several inputs with the same label, and those under ellipses, fit under numpy's broadcasting.
        C6: the output subscript has no label twice, and only labels (or an ellipsis) that the inputs have.

    Deviation: OpenVINO rejects blanks, which the page allows anywhere.

    Source: matrix/einsum-7.rst

    >>> op(np.array([[1, 2], [3, 4]]), np.array([10, 1]), equation="ij,j->i").tolist()
    [12, 34]
    """
    terms, result = _subscripts(equation, [array.ndim for array in inputs])
    lengths: dict[Any, int] = {}
    for term, array in zip(terms, inputs, strict=True):
        for label, length in zip(term, array.shape, strict=True):
            lengths[label] = length if lengths.get(label, 1) == 1 else lengths[label]
    numbers = {label: number for number, label in enumerate(lengths)}
    operands: list[Any] = []
    for term, array in zip(terms, inputs, strict=True):
        # a dimension of 1 that is broadcast drops out: what is left has equal dimensions, as BLAS needs them
        kept = [lengths[label] == length for label, length in zip(term, array.shape, strict=True)]
        operands.append(widened(array)[tuple(slice(None) if keep else 0 for keep in kept)])
        operands.append([numbers[label] for label, keep in zip(term, kept, strict=True) if keep])
    product = _as_product(operands, [numbers[label] for label in result])
    if product is None:
        product = np.einsum(*operands, [numbers[label] for label in result], optimize=len(inputs) > 1)
    if len(inputs) == 1 and np.may_share_memory(product, inputs[0]):
        return product.copy()
    return product.astype(inputs[0].dtype, copy=False)


def _as_product(operands: Sequence[Any], result: list[int]) -> Any:
    """The sum of two operands, each an array and its labels, as a product of matrices, for which numpy has BLAS.

    None where nothing is summed over, or one of them has a label twice or one that is in it alone and summed over.
    """
    if len(operands) != 4:
        return None
    left, own, right, others = operands
    summed = [label for label in own if label in others and label not in result]
    batch = [label for label in own if label in others and label in result]
    rows, columns = ([label for label in labels if label not in (*summed, *batch)] for labels in (own, others))
    labels = [*batch, *rows, *columns]
    if not summed or len({*own}) < len(own) or len({*others}) < len(others) or sorted(labels) != sorted(result):
        return None
    lengths = dict(zip([*own, *others], [*left.shape, *right.shape], strict=True))
    matrices = (
        array.transpose([names.index(label) for label in order]).reshape(
            [*(lengths[label] for label in batch), *(prod(lengths[label] for label in part) for part in parts)]
        )
        for array, names, order, parts in (
            (left, own, [*batch, *rows, *summed], (rows, summed)),
            (right, others, [*batch, *summed, *columns], (summed, columns)),
        )
    )
    product = np.matmul(*matrices).reshape([lengths[label] for label in labels])
    return product.transpose([labels.index(label) for label in result])


@einsum.shapes
def _(node: Node) -> Shapes:
    equation = node.attrs["equation"]
    parsed = _parse(equation)
    if parsed is None:
        node.fail("C1", f"`equation` is `{equation}`, expected subscripts such as `ij,jk->ik`", about=["equation"])
    texts, output = parsed
    tensors = node.inputs["inputs"]
    if len(texts) != len(tensors):
        node.fail(
            "C2",
            f"`equation` has {len(texts)} input subscripts, but there are {len(tensors)} inputs",
            about=["equation"],
        )
    for number, (text, tensor) in enumerate(zip(texts, tensors, strict=True)):
        labels = len(text.replace("...", ""))
        if tensor.rank is None or (tensor.rank >= labels if "..." in text else tensor.rank == labels):
            continue
        node.fail(
            "C3",
            f"`{text}` has {labels} labels, but `inputs[{number}]` has rank {tensor.rank}",
            about=[("inputs", number)],
        )
    if output is not None:
        _check_output(node, texts, output)
    if any(tensor.rank is None for tensor in tensors):
        raise Undecided
    terms, result = _subscripts(equation, [tensor.rank for tensor in tensors])
    sizes: dict[Any, Size] = {}
    for number, (term, tensor) in enumerate(zip(terms, tensors, strict=True)):
        own: dict[Any, Size] = {}
        for label, size in zip(term, tensor.shape, strict=True):
            first = own.setdefault(label, size)
            node.require(
                "C4",
                first == size,
                f"`{label}` is both {first} and {size} in `inputs[{number}]`",
                about=[("inputs", number)],
            )
            own[label] = meet(first, size)
        for label, size in own.items():
            both = broadcast(sizes.get(label, 1), size)
            if both is None:
                name = label if isinstance(label, str) else "..."
                node.fail(
                    "C5",
                    f"`{name}` is {size} in `inputs[{number}]`, but {sizes[label]} before it",
                    about=[("inputs", number)],
                )
            sizes[label] = both
    return {"result": tuple(sizes[label] for label in result)}


def _check_output(node: Node, texts: Sequence[str], output: str) -> None:
    letters = output.replace("...", "")
    given = "".join(texts)
    foreign = set(letters) - set(given)
    message = f"the output subscript is `{output}`, but the inputs have `{','.join(texts)}`"
    if len(set(letters)) < len(letters) or foreign:
        node.fail("C6", message)
    if "..." in output and "..." not in given:
        node.tolerate("C6", "takes the ellipsis for no dimensions", message)


@cache
def _parse(equation: str) -> tuple[list[str], str | None] | None:
    """The input subscripts and the output subscript (None: there is none); None where the equation is malformed."""
    subscript = r"[A-Za-z]*(?:\.\.\.)?[A-Za-z]*"
    text = equation.replace(" ", "")
    if not re.fullmatch(rf"{subscript}(?:,{subscript})*(?:->{subscript})?", text):
        return None
    left, arrow, right = text.partition("->")
    return left.split(","), right if arrow else None


def _subscripts(equation: str, ranks: Sequence[int]) -> tuple[list[list[Any]], list[Any]]:
    """One label per dimension, of each input and of the result; a dimension under an ellipsis has a negative number."""
    parsed = _parse(equation)
    assert parsed is not None, "the rule rejects malformed equations"
    texts, output = parsed
    covered = 0
    terms = []
    for text, rank in zip(texts, ranks, strict=True):
        width = rank - len(text.replace("...", "")) if "..." in text else 0
        covered = max(covered, width)
        terms.append(_labels(text, width))
    if output is None:
        letters = "".join(texts).replace("...", "")
        output = "..." * ("..." in equation) + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    return terms, _labels(output, covered)


def _labels(text: str, width: int) -> list[Any]:
    before, dots, after = text.partition("...")
    return [*before, *(range(-width, 0) if dots else ()), *after]


@op(
    "Inverse-14",
    types={"T": FLOAT},
    inputs=[Input("input", "T", "[*batch, n, n]")],
    outputs=[Output("output", "T", "[*batch, n, n]")],
    attrs=[Attr("adjoint", BOOL, False)],
    traits=[Accumulating(lambda shapes, attrs, result: 2 * product(result) * result[-1])],
)
def inverse(input: Array, *, adjoint: bool) -> Any:
    """Invert square matrices, in f32 whatever their type; with adjoint, transpose the inverses.

    A singular matrix has no inverse, and the page leaves its result undefined: here it is NaN throughout.

    Source: matrix/inverse-14.rst

    >>> op(np.array([[0.0, 4.0], [2.0, 0.0]])).tolist()
    [[0.0, 0.5], [0.25, 0.0]]
    """
    matrices = input.astype(np.float32, copy=False)
    try:
        result = np.linalg.inv(matrices)
    except np.linalg.LinAlgError:
        flat = matrices.reshape(-1, *matrices.shape[-2:])
        result = np.stack([_inverse_or_nan(matrix) for matrix in flat]).reshape(matrices.shape)
    return (result.swapaxes(-1, -2) if adjoint else result).astype(input.dtype, copy=False)


def _inverse_or_nan(matrix: Array) -> Any:
    try:
        return np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return np.full_like(matrix, np.nan)


@op(
    "GroupedMatMul-17",
    types={"T": NUMERIC, "T_IDX": INDEX},
    inputs=[
        Input("mat_a", "T", "[total_tokens, K] | [G, M, K]"),
        Input("mat_b", "T", "[G, N, K]"),
        Input("offsets", "T_IDX", "[G]", optional=True),
    ],
    outputs=[Output("result", "T", "[*result]")],
    opsets=frozenset({17}),
    traits=[Accumulating(lambda shapes, attrs, result: 2 * product(result) * shapes[0][-1])],
)
def grouped_matmul(mat_a: Array, mat_b: Array, offsets: Array | None = None) -> Any:
    """Multiply each group of rows by the transposed matrix of its group.

    The groups are the matrices of a 3-D mat_a, or consecutive rows of a 2-D one, which end at offsets.

    Constraints:
        C1: offsets is given exactly where mat_a is 2-D.
        C2: offsets do not descend from 0 and end at total_tokens.

    Deviation: the page lays mat_b out as [G, K, N] and has a product of two 2-D inputs; OpenVINO has [G, N, K], as
    here, and no such product.

    Source: matrix/grouped-matmul-17.rst

    >>> a, b = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    >>> op(a, b, np.array([1, 3])).tolist()
    [[1.0], [4.0], [6.0]]
    """
    multiply = _integer_product if mat_a.dtype.kind in "iu" else _product
    a, b = widened(mat_a), widened(mat_b).swapaxes(-1, -2)
    if offsets is None:
        return multiply(a, b).astype(mat_a.dtype, copy=False)
    result = np.empty((len(a), b.shape[-1]), mat_a.dtype)
    ends = offsets.tolist()
    for group, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        result[start:end] = multiply(a[start:end], b[group])
    return result


@grouped_matmul.shapes
def _(node: Node) -> Shapes:
    a = node.shape("mat_a")
    given = node.inputs["offsets"] is not None
    if given != (len(a) == 2):
        node.fail(
            "C1",
            f"`offsets` is {'given' if given else 'missing'} for `mat_a` of rank {len(a)}",
            about=["offsets", "mat_a"],
        )
    if not given:
        return {"result": (meet(a[0], node.dims["G"]), a[1], node.dims["N"])}
    total, offsets = a[0], node.value("offsets")
    if offsets is not None:
        ends = [0, *offsets.tolist()]
        node.require(
            "C2", ends == sorted(ends), f"`offsets` is {offsets.tolist()}, expected ascending from 0", about=["offsets"]
        )
        node.require(
            "C2",
            total == ends[-1],
            f"`offsets` end at {ends[-1]}, but `mat_a` has {total} rows",
            about=["offsets", "mat_a"],
        )
        total = meet(total, ends[-1])
    return {"result": (total, node.dims["N"])}
