"""Einsum of two tensors on numpy as a batch of matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from irrun.engines.contraction import Contraction, contraction_of
from irrun.engines.memory import ITEM
from irrun.engines.threads import Threads, even_blocks
from irrun.engines.vectorized.copying import copy_calls
from irrun.engines.vectorized.posts import BLOCK, part, with_posts
from irrun.engines.vectorized.products import direct, pieces_of
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.spec.op import Array

ELEMENT_NANOSECONDS = 0.3
"""What a product takes about where nothing is summed over."""


def einsum(work: Work, threads: Threads) -> Compiled | None:
    """Einsum-7 of two tensors, as `contraction_of` has it."""
    contraction = contraction_of(work)
    if contraction is None:
        return None
    if not contraction.inner:
        return _elements(work, contraction, threads)
    terms, output, sizes, inner = contraction.terms, contraction.output, contraction.sizes, contraction.inner
    batch, alone = contraction.shared(), (contraction.alone(0), contraction.alone(1))
    swapped = bool(alone[0] and alone[1]) and output.index(alone[0][0]) > output.index(alone[1][0])
    one, other = (1, 0) if swapped else (0, 1)
    rows, columns = alone[one], alone[other]
    count, height, width, length = (prod(sizes[label] for label in some) for some in (batch, rows, columns, inner))
    roomy = [prod(operand.shape) for operand in work.required(2)] + [prod(work.outputs[0].shape)]
    ends = np.cumsum([0, *roomy]) * ITEM

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> list[Call]:
        rooms = [scratch[begin:end].view(np.float32) for begin, end in pairwise(ends)]
        before: list[Call] = []
        behind: list[Call] = []
        matrices = []
        for number, order, shape in (
            (one, (*batch, *rows, *inner), (count, height, length)),
            (other, (*batch, *inner, *columns), (count, length, width)),
        ):
            turned = inputs[number].transpose([terms[number].index(label) for label in order])
            matrix = turned.reshape(shape)
            if not np.may_share_memory(matrix, inputs[number]) or not direct((matrix.shape, matrix.strides)):
                dense = rooms[number].reshape(turned.shape)
                before += copy_calls(dense, turned)
                matrix = dense.reshape(shape)
            matrices.append(matrix)
        target = outputs[0].transpose([output.index(label) for label in (*batch, *rows, *columns)])
        result = target.reshape(count, height, width)
        if not np.may_share_memory(result, outputs[0]):
            result = rooms[2].reshape(count, height, width)
            behind = copy_calls(target, result.reshape(target.shape))
        products = [
            partial(np.matmul, matrices[0][piece[0], piece[1]], matrices[1][piece[0], :, piece[2]], result[piece])
            for piece in pieces_of(result.shape, length, threads)
        ]
        return [*before, threads.call(products), *behind]

    return with_posts(work, bind, int(ends[-1]))


def _elements(work: Work, contraction: Contraction, threads: Threads) -> Compiled | None:
    """Where nothing is summed over: products of elements, which broadcast to the result."""
    terms, output = contraction.terms, contraction.output
    shape = work.outputs[0].shape
    sharing = threads.sharing(prod(shape) * ELEMENT_NANOSECONDS)

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> list[Call]:
        factors = []
        for term, array in zip(terms, inputs, strict=False):
            turned = array.transpose([term.index(label) for label in output if label in term])
            factors.append(turned[tuple(slice(None) if label in term else None for label in output)])
        calls = [
            partial(np.multiply, *(part(factor, cut) for factor in factors), outputs[0][cut])
            for cut in even_blocks(shape, BLOCK, sharing)
        ]
        return [threads.call(calls)]

    return with_posts(work, bind)


COMPILERS = {"Einsum-7": einsum}
