"""Deformable convolutions: taps read between pixels into columns, a block of windows at a time, then a product.

Data come with their channels last: all channels of a pixel are read with the same weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from irrun.engines.axes import channels_last, lies_so
from irrun.engines.compiled.loops import Floats, looped, unordered
from irrun.engines.compiled.team import Team
from irrun.engines.threads import Threads, cuts
from irrun.engines.work import Arrays, Call, Compiled, Layout, Work, chain
from irrun.spec.op import Array
from irrun.spec.windows import axes_of

PLACES = 256
"""Windows whose pixels and weights stay in the cache for all channels."""

PIXEL_NANOSECONDS = 0.5
"""What it takes about to read and weigh a pixel."""

COLUMN_BYTES = 8 << 20
"""Of the columns of a block of windows."""

_pools: WeakKeyDictionary[Team, Threads] = WeakKeyDictionary()
"""The threads that call BLAS for products, whose own ones would wait for each other."""

GROUPS = 1
"""The attribute group."""

MASKED = False
"""Whether taps are scaled."""

ZEROS = False
"""The attribute bilinear_interpolation_pad."""


def interpolate(
    begin: int,
    end: int,
    data: Floats,
    offsets: Floats,
    mask: Floats,
    columns: Floats,
    channels: int,
    parts: int,
    height: int,
    width: int,
    taps: int,
    kernel: int,
    windows: int,
    across: int,
    first: int,
    count: int,
    stride_y: int,
    stride_x: int,
    dilation_y: int,
    dilation_x: int,
    pad_y: int,
    pad_x: int,
) -> None:
    """Columns [group, count, taps, channels of a group] of an image's windows from `first` on, blocks of them for each
    tap of a part.

    The image is [height, width, channels], `kernel` is the width of the kernel, and `across` are the windows of a row,
    of `windows` in all.
    """
    places = np.empty(4 * PLACES, np.int64)
    weights = np.empty(4 * PLACES, np.float32)
    blocks = (count + PLACES - 1) // PLACES
    own, group = channels // parts, channels // GROUPS
    for number in range(begin, end):
        pair = number // blocks
        part, tap = pair // taps, pair % taps
        start = number % blocks * PLACES
        many = min(PLACES, count - start)
        for i in range(many):
            window = first + start + i
            row, column = window // across * stride_y - pad_y, window % across * stride_x - pad_x
            at = 2 * pair * windows + window
            y = float(offsets[at]) + float(row + tap // kernel * dilation_y)
            x = float(offsets[at + windows]) + float(column + tap % kernel * dilation_x)
            inside = within(y, height) * within(x, width)
            y, x = y if inside > 0 else 0.0, x if inside > 0 else 0.0
            top, left = np.floor(y), np.floor(x)
            down, right = y - top, x - left
            scale = float(mask[pair * windows + window]) * inside if MASKED else inside
            for corner in range(4):
                v, u = int(top) + corner // 2, int(left) + corner % 2
                share = (down if corner // 2 > 0 else 1.0 - down) * (right if corner % 2 > 0 else 1.0 - right)
                if ZEROS and (v < 0 or v >= height or u < 0 or u >= width):
                    share = 0.0
                v, u = min(max(v, 0), height - 1), min(max(u, 0), width - 1)
                places[4 * i + corner] = (v * width + u) * channels
                weights[4 * i + corner] = np.float32(share * scale)
        for i in range(many):
            upper, lower = places[4 * i], places[4 * i + 2]
            further, last = places[4 * i + 1], places[4 * i + 3]
            a, b, c, d = weights[4 * i], weights[4 * i + 1], weights[4 * i + 2], weights[4 * i + 3]
            channel = part * own
            while channel < (part + 1) * own:
                one = channel // group
                run = min((part + 1) * own, (one + 1) * group) - channel
                target = ((one * count + start + i) * taps + tap) * group + channel - one * group
                for k in range(run):
                    total = data[upper + channel + k] * a + data[further + channel + k] * b
                    columns[target + k] = total + data[lower + channel + k] * c + data[last + channel + k] * d
                channel += run


def within(place: float, size: int) -> float:
    """1 where a coordinate lies in the image, or with zeros around it less than a pixel outside; else 0."""
    if ZEROS:
        return 1.0 if place > -1.0 and place < float(size) else 0.0
    return 1.0 if place >= 0.0 and place < float(size) else 0.0


def deformable_convolution(work: Work, team: Team) -> Compiled | None:
    """DeformableConvolution-1 and -8 of f32."""
    operands = [operand for operand in work.own if operand is not None]
    if work.posts or any(operand.type != "f32" for operand in operands):
        return None
    (data, _, filters), attrs = work.required(3), work.attrs
    batch, channels, height, width = data.shape
    geometry = {name: attrs[name] for name in ("strides", "dilations", "pads_begin", "pads_end", "auto_pad")}
    rows, columns = axes_of(data.shape[2:], filters.shape[2:], **geometry)
    group, parts, taps = attrs["group"], attrs["deformable_group"], filters.shape[2] * filters.shape[3]
    features, (high, across) = filters.shape[0], work.outputs[0].shape[2:]
    windows, length = high * across, channels // group * taps
    step = min(max(COLUMN_BYTES // (4 * channels * taps), PLACES), windows)
    constants: dict[str, int] = {
        "PLACES": PLACES,
        "GROUPS": group,
        "MASKED": work.optional(3) is not None,
        "ZEROS": bool(attrs.get("bilinear_interpolation_pad", False)),
    }
    sliding = [value for name in ("stride", "dilation") for value in (getattr(rows, name), getattr(columns, name))]
    sliding += [int(axis.pads[0]) for axis in (rows, columns)]
    pool = _pools.setdefault(team, Threads(team.count))
    last, wants, gives = channels_last(data), unordered(work), dict[int, Layout]()
    if lies_so(data, last):
        wants.pop(0, None)
        gives[0] = channels_last(work.outputs[0])
    else:
        wants[0] = last
    if filters.value is None:
        wants[2] = channels_last(filters)

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        images, offsets = inputs[0].transpose(0, 2, 3, 1), inputs[1]
        weights = np.ascontiguousarray(inputs[2].transpose(0, 2, 3, 1)).reshape(group, features // group, length)
        mask = inputs[3] if constants["MASKED"] else offsets
        results = outputs[0].reshape(batch, group, features // group, windows)
        calls: list[Call] = []
        for image, first in np.ndindex(batch, -(-windows // step)):
            first *= step
            count = min(step, windows - first)
            made = scratch[: 4 * channels * taps * count].view(np.float32)
            arguments = [images[image], offsets[image], mask[image], made, channels, parts, height, width]
            arguments += [taps, filters.shape[3], windows, across, first, count, *sliding]
            pieces = parts * taps * -(-count // PLACES)
            nanoseconds = channels * taps * count * 4 * PIXEL_NANOSECONDS
            calls.append(looped(team, interpolate, arguments, pieces, nanoseconds, **constants))
            right = made.reshape(group, count, length)
            result = results[image][..., first : first + count]
            parted = cuts(count, min(team.count, -(-count // PLACES)))
            calls.append(pool.call([_product(weights, right[:, c], result[..., c]) for c in parted]))
        return chain(calls)

    return Compiled(bind, scratch=4 * channels * taps * step, wants=wants, gives=gives)


def _product(weights: Array, columns: Array, result: Array) -> Call:
    """A call for [group, features, length] times [group, windows, length], transposed, as the result lies."""
    if result.strides[-1] == result.itemsize:
        return partial(np.matmul, weights, columns.transpose(0, 2, 1), out=result)
    return partial(np.matmul, columns, weights.transpose(0, 2, 1), out=result.transpose(0, 2, 1))


COMPILERS = dict.fromkeys(("DeformableConvolution-1", "DeformableConvolution-8"), deformable_convolution)
