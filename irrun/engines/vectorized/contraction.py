"""Einsum of two tensors on numpy as a batch of matrix products."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from irrun.engines.memory import ITEM
from irrun.engines.vectorized.copying import copy_calls
from irrun.engines.vectorized.posts import with_posts
from irrun.engines.vectorized.products import direct, pieces_of
from irrun.engines.vectorized.threads import Threads
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.spec.op import Array

EQUATION = re.compile(r"([A-Za-z]+),([A-Za-z]+)->([A-Za-z]*)")


def einsum(work: Work, threads: Threads) -> Compiled | None:
    """Einsum-7 of two tensors of f32 whose labels are all different, each in the other tensor or in the result."""
    found = EQUATION.fullmatch(re.sub(r"\s", "", work.attrs["equation"]))
    if found is None or len(work.own) != 2 or any(operand.type != "f32" for operand in work.required(2)):
        return None
    terms, output = [found[1], found[2]], found[3]
    shapes = [operand.shape for operand in work.required(2)]
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for label, size in zip(term, shape, strict=True):
            if sizes.setdefault(label, size) != size:
                return None
    first, second = map(set, terms)
    if any(len(set(term)) != len(term) for term in terms) or (first ^ second) - set(output):
        return None
    batch = [label for label in output if label in first & second]
    alone = [[label for label in output if label in own - other] for own, other in ((first, second), (second, first))]
    swapped = bool(alone[0] and alone[1]) and output.index(alone[0][0]) > output.index(alone[1][0])
    one, other = (1, 0) if swapped else (0, 1)
    inner = [label for label in terms[0] if label in second and label not in output]
    rows, columns = alone[one], alone[other]
    count, height, width, length = (prod(sizes[label] for label in some) for some in (batch, rows, columns, inner))
    roomy = [prod(shape) for shape in shapes] + [prod(work.outputs[0].shape)]
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


COMPILERS = {"Einsum-7": einsum}
