"""An engine for tests of the planner: it computes by the ops' own kernels, in layouts that nobody else can read."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from irrun.engines.work import Call, Compiled, Operand, Work
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.registry import registry


@dataclass(frozen=True)
class Backwards:
    """The elements from the last one to the first one, behind `padding` bytes."""

    nbytes: int
    padding: int
    strides: None = None


@dataclass(frozen=True)
class Strided:
    """The axes in the opposite order."""

    nbytes: int
    strides: tuple[int, ...]


class Toy:
    """Takes works at random, with fewer posts than offered at random, and gives and wants layouts at random."""

    name = "toy"
    threads = 1
    decodes = coding = False
    quantized = False

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self.offered = self.taken = 0

    def unaligned(self, name: str) -> bool:
        return False

    def compile(self, work: Work) -> Compiled | None:
        op = registry().ops[work.name]
        self.offered += 1
        if self._draw.random() < 0.2 or op.context or not all(prod(operand.shape) for operand in work.outputs):
            return None
        wants = {
            number: self._layout(operand)
            for number, operand in enumerate(work.inputs)
            if operand is not None and self._draw.random() < 0.3
        }
        gives = {n: layout for n, o in enumerate(work.outputs) if (layout := self._layout(o)) is not None}
        taken = {
            n: o.value for n, o in enumerate(work.inputs) if o and o.value is not None and self._draw.random() < 0.5
        }
        wants = {number: layout for number, layout in wants.items() if number not in taken}
        self.taken += 1
        return Compiled(partial(self._bind, work, wants, gives, taken), 64, wants, gives, frozenset(taken))

    def computes(self, name: str, type: str) -> bool:
        return True

    def together(self, calls: Sequence[Call]) -> None:
        for call in calls:
            call()

    def open(self, work: Work) -> None:
        return None

    def reorder(self, operand: Operand, layout) -> Compiled:
        def bind(inputs, outputs, _):
            return lambda: _write(outputs[0], operand, layout, _read(inputs[0], operand, operand.layout))

        return Compiled(bind)

    def _layout(self, operand: Operand):
        size = numpy_dtype(operand.type).itemsize
        match self._draw.randrange(4):
            case 0:
                return Backwards(prod(operand.shape) * size + 8, 8)
            case 1:
                strides = [prod(operand.shape[:axis]) * size for axis in range(len(operand.shape))]
                return Strided(prod(operand.shape) * size, tuple(strides))
        return None

    def _bind(self, work, wants, gives, taken, inputs, outputs, scratch):
        assert scratch is not None
        assert scratch.size >= 64
        assert all(array is None for number, array in enumerate(inputs) if number in taken)

        def call():
            arrays = []
            for number, (array, operand) in enumerate(zip(inputs, work.inputs, strict=True)):
                layout = wants.get(number, operand.layout if operand else None)
                value = (
                    taken[number] if number in taken else array if operand is None else _read(array, operand, layout)
                )
                arrays.append(value)
            scratch[...] = 77
            op = registry().ops[work.name]
            results = op.kernel(*arrays[: len(arrays) - sum(p.operand is not None for p in work.posts)], **work.attrs)
            results = list(results) if isinstance(results, tuple | list) else [results]
            for post in work.posts:
                operands = [] if post.operand is None else [arrays[post.operand]]
                pair = [*operands, results[0]] if post.reflected else [results[0], *operands]
                results[0] = registry().ops[post.name].kernel(*pair, **post.attrs)
            for number, (array, operand, result) in enumerate(zip(outputs, work.outputs, results, strict=False)):
                _write(array, operand, gives.get(number), np.asarray(result))

        return call


def _read(array, operand, layout):
    if isinstance(layout, Backwards):
        elements = array[layout.padding : layout.nbytes].view(numpy_dtype(operand.type))
        return elements[::-1].reshape(operand.shape)
    assert array.shape == operand.shape
    if isinstance(layout, Strided):
        assert array.strides == layout.strides
    return array


def _write(array, operand, layout, value):
    assert value.shape == operand.shape
    assert value.dtype == numpy_dtype(operand.type)
    if isinstance(layout, Backwards):
        array[layout.padding : layout.nbytes].view(numpy_dtype(operand.type))[...] = value.ravel()[::-1]
    else:
        array[...] = value
