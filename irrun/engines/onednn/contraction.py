"""Einsum of two tensors as a product of matrices, by the strides of what it reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from irrun.engines.axes import broadcast_strides, dense_strides, merged
from irrun.engines.contraction import contraction_of
from irrun.engines.onednn.library import Library
from irrun.engines.onednn.products import product_of
from irrun.engines.onednn.tensors import itemsize
from irrun.engines.work import Arrays, Call, Compiled, Operand, Work
from irrun.spec.op import Array


def compile(library: Library, work: Work) -> Compiled | None:
    """Einsum-7 of two tensors of which only one has the last label of the result, its columns, and the other one rows.

    What is summed over must be one axis of both.
    """
    found, shape = contraction_of(work), work.outputs[0].shape
    others = [operand for operand in work.inputs if operand is not None]
    if found is None or not shape or any(operand.layout is not None or operand.codes for operand in others):
        return None
    if any(operand.type != "f32" for operand in others):
        return None
    last = found.output[-1]
    right = next((number for number in (1, 0) if last in found.alone(number)), None)
    if right is None or not found.inner or not found.alone(1 - right):
        return None
    tensors, left, rows = work.required(2), 1 - right, found.alone(1 - right)
    strides = [dict(zip(found.terms[number], tensors[number].strides, strict=True)) for number in range(2)]
    summed = [[strides[number][label] for label in found.inner] for number in (left, right)]
    depth, steps = merged([found.sizes[label] for label in found.inner], summed)
    if len(depth) != 1:
        return None
    order = [label for label in found.output[:-1] if label not in rows] + rows

    def matrices(number: int, labels: Sequence[str], *own: tuple[int, int]) -> Operand:
        """A tensor as one along `labels` and further axes of these sizes and strides."""
        along = [
            (found.sizes[label], strides[number][label]) if label in strides[number] else (1, 0) for label in labels
        ]
        sizes, given = zip(*along, *own, strict=True)
        return Operand("f32", sizes, given, tensors[number].value)

    turned = [found.output.index(label) for label in (*order, last)]
    if work.posts and turned != sorted(turned):  # operands of posts are read beyond their ends then (oneDNN 3.2)
        return None
    result = work.outputs[0]
    whole = dense_strides(shape, itemsize(result))
    product = Work(
        "MatMul-1",
        {"transpose_a": False, "transpose_b": False},
        [
            matrices(left, order, (depth[0], steps[0][0])),
            matrices(right, order[:-1], (depth[0], steps[1][0]), (found.sizes[last], strides[right][last])),
            *(None if operand is None else _turned(operand, shape, turned) for operand in work.inputs[2:]),
        ],
        [Operand(result.type, tuple(shape[n] for n in turned), tuple(whole[n] for n in turned))],
        work.posts,
    )
    made = product_of(library, product)
    if made is None or whole[turned[-1]] != itemsize(result):
        return None
    compiled = made.compiled(library, product)
    bind = compiled.bind

    def bound(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        return bind([inputs[left], inputs[right], *inputs[2:]], outputs, scratch)

    taken = frozenset({right} if compiled.taken else ())
    return replace(compiled, bind=bound, taken=taken, again=None)


def _turned(operand: Operand, shape: Sequence[int], order: Sequence[int]) -> Operand:
    """An operand that broadcasts to a result of `shape`, for the axes of that in another order."""
    steps = broadcast_strides(operand, shape)
    sizes = (1,) * (len(shape) - len(operand.shape)) + operand.shape
    return replace(operand, shape=tuple(sizes[n] for n in order), strides=tuple(steps[n] for n in order))


COMPILERS = {"Einsum-7": compile}
