"""Convolution of bits on numpy: one of numbers that are 1 and -1, whose products are 1 where bits are equal."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import dense_strides
from irrun.engines.memory import ITEM, aligned
from irrun.engines.plain import plain_call
from irrun.engines.threads import Threads
from irrun.engines.vectorized.convolution import compile_convolution
from irrun.engines.windows import axes_of, places_of
from irrun.engines.work import Arrays, Call, Compiled, Operand, Work
from irrun.spec.op import Array

LONGEST = 1 << 24
"""Bits of a filter whose sums are exact in f32."""


def binary_convolution(work: Work, threads: Threads) -> Compiled | None:
    """BinaryConvolution-1 of f32 with constant filters. Data other than 0 and 1 are left to the op when they come."""
    (data, filters), output, pad = work.required(2), work.outputs[0], work.attrs["pad_value"]
    if work.posts or data.type != "f32" or filters.value is None:
        return None
    if prod(filters.shape[1:]) > LONGEST:
        return None
    axes = axes_of(work.attrs, data.shape[2:], filters.shape[2:], output.shape[2:])
    elements, places = places_of(axes, [slice(0, axis.windows) for axis in axes])
    shape = (*data.shape[:2], *(axis.covered(axis.windows) for axis in axes))
    signs = 2 * filters.value.reshape(filters.shape).astype(np.float32) - 1
    dense = Operand("f32", shape, dense_strides(shape)), Operand("f32", filters.shape, signs.strides, signs)
    window = {name: work.attrs[name] for name in ("strides", "dilations")}
    attrs = window | {"pads_begin": (0, 0), "pads_end": (0, 0), "auto_pad": "explicit"}
    inner = compile_convolution(Work("Convolution-1", attrs, [*dense], [output]), threads)
    if inner is None:
        return None
    room = aligned(prod(shape) * ITEM)

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        frame = scratch[: prod(shape) * ITEM].view(np.float32).reshape(shape)
        convolve = inner.bind([frame, signs], outputs, scratch[room : room + inner.scratch] if inner.scratch else None)
        source, inside, otherwise = inputs[0][elements], frame[places], plain_call(work, inputs, outputs)

        def call() -> None:
            ones = source == 1
            if not np.logical_or(ones, source == 0).all():
                otherwise()
                return
            frame.fill(pad if pad in (0, 1) else -1)
            np.multiply(ones, np.float32(2), inside)
            np.subtract(inside, np.float32(1), inside)
            convolve()

        return call

    return Compiled(bind, scratch=room + inner.scratch)


COMPILERS = {"BinaryConvolution-1": binary_convolution}
