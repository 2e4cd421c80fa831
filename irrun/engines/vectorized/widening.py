"""Works of bf16 in f32 between two conversions: numpy computes nothing in bf16, and the ops' kernels are slow at it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import dense_strides
from irrun.engines.memory import ITEM, aligned
from irrun.engines.work import Arrays, Call, Compiled, Operand, Work, chain
from irrun.spec.op import Array


def widened(work: Work, compile: Callable[[Work], Compiled | None]) -> Compiled | None:
    """What `compile` makes of a work of bf16 in f32, its results rounded; None for works that name their type."""
    if "bf16" in work.attrs.values() or work.compressed:
        return None
    compiled = compile(replace(work, inputs=[*map(_wide, work.inputs)], outputs=[*map(_present, work.outputs)]))
    if compiled is None or compiled.doubtful:
        return None
    tensors = [*work.inputs, *work.outputs]
    sizes = [0 if own is None or own.type != "bf16" else aligned(ITEM * prod(own.shape)) for own in tensors]
    starts = [0, *accumulate(sizes)]

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        def room(position: int, shape: tuple[int, ...], strides: tuple[int, ...] | None) -> Array:
            return np.ndarray(shape, np.float32, scratch, starts[position], strides)

        read, written, before, after = list(inputs), list(outputs), list[Call](), list[Call]()
        for number, (operand, array) in enumerate(zip(work.inputs, inputs, strict=True)):
            if operand is None or array is None or operand.type != "bf16":
                continue
            if operand.value is not None:
                read[number] = array.astype(np.float32, order="C")
                continue
            read[number] = room(number, operand.shape, None)
            before.append(partial(np.copyto, read[number], array))
        for number, (operand, array) in enumerate(zip(work.outputs, outputs, strict=True)):
            if operand.type == "bf16":
                layout = compiled.gives.get(number)
                written[number] = room(len(inputs) + number, operand.shape, None if layout is None else layout.strides)
                after.append(partial(np.copyto, array, written[number], "unsafe"))
        rest = scratch[starts[-1] : starts[-1] + compiled.scratch] if compiled.scratch else None
        return chain([*before, compiled.bind(read, written, rest), *after])

    gives = {number: layout for number, layout in compiled.gives.items() if work.outputs[number].type != "bf16"}
    return Compiled(bind, starts[-1] + compiled.scratch, compiled.wants, gives, compiled.taken)


def _wide(operand: Operand | None) -> Operand | None:
    return None if operand is None else _present(operand)


def _present(operand: Operand) -> Operand:
    """An operand of bf16 as one of f32 in C order."""
    if operand.type != "bf16":
        return operand
    value = None if operand.value is None else operand.value.astype(np.float32, order="C")
    return Operand("f32", operand.shape, dense_strides(operand.shape), value)
