"""Deformable convolutions: taps read between pixels into columns, a block of windows at a time, and their product.

Data come with their channels last: all channels of a pixel are read with the same weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from irrun.engines.axes import channels_last, lies_so
from irrun.engines.compiled.code import LANES
from irrun.engines.compiled.loops import Floats, looped, unordered
from irrun.engines.compiled.panels import panel_call, panels_of
from irrun.engines.compiled.team import Team
from irrun.engines.memory import ITEM, aligned
from irrun.engines.threads import Threads
from irrun.engines.work import Arrays, Call, Compiled, Layout, Operand, Work
from irrun.spec.op import Array
from irrun.spec.windows import axes_of

PLACES = 256
"""Windows, at most, whose columns one thread makes and multiplies while they are in its cache."""

SHARES = 2
"""That each thread takes of the windows, where they are few."""

_pools: WeakKeyDictionary[Team, Threads] = WeakKeyDictionary()
"""The threads that share windows, and call BLAS, whose own ones would wait for each other."""

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
    """Columns [group, count, taps, channels of a group] of an image's windows from `first` on, for each tap of a part.

    The image is [height, width, channels], `kernel` is the width of the kernel, and `across` are the windows of a row,
    of `windows` in all; `count` are at most PLACES.
    """
    places = np.empty(4 * PLACES, np.int64)
    weights = np.empty(4 * PLACES, np.float32)
    own, group = channels // parts, channels // GROUPS
    for pair in range(begin, end):
        part, tap = pair // taps, pair % taps
        for i in range(count):
            window = first + i
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
        for i in range(count):
            upper, lower = places[4 * i], places[4 * i + 2]
            further, last = places[4 * i + 1], places[4 * i + 3]
            a, b, c, d = weights[4 * i], weights[4 * i + 1], weights[4 * i + 2], weights[4 * i + 3]
            channel = part * own
            while channel < (part + 1) * own:
                one = channel // group
                run = min((part + 1) * own, (one + 1) * group) - channel
                target = ((one * count + i) * taps + tap) * group + channel - one * group
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
    windows, inner, outer = high * across, channels // group * taps, features // group
    step = min(PLACES, -(-batch * windows // (team.count * SHARES)), windows)
    constants: dict[str, int] = {
        "PLACES": PLACES,
        "GROUPS": group,
        "MASKED": work.optional(3) is not None,
        "ZEROS": bool(attrs.get("bilinear_interpolation_pad", False)),
    }
    sliding = [value for name in ("stride", "dilation") for value in (getattr(rows, name), getattr(columns, name))]
    sliding += [int(axis.pads[0]) for axis in (rows, columns)]
    room = aligned(ITEM * channels * taps * step)
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
        mask = inputs[3] if constants["MASKED"] else offsets
        results = outputs[0].reshape(batch, group, outer, windows)
        multiply = _multiplying(team, filters, inputs[2], group, results)

        def some(place: tuple[int, int], made: Array) -> list[Call]:
            """The calls for some windows of an image, whose columns are `made` in between."""
            image, first = place[0], place[1] * step
            count = min(step, windows - first)
            columns = made[: group * count * inner]
            arguments = [images[image], offsets[image], mask[image], columns, channels, parts, height, width]
            arguments += [taps, filters.shape[3], windows, across, first, count, *sliding]
            interpolated = looped(team, interpolate, arguments, parts * taps, 0, **constants)
            result = results[image][..., first : first + count].transpose(0, 2, 1)
            return [interpolated, *multiply(columns.reshape(group, count, inner), result)]

        pieces = list(np.ndindex(batch, -(-windows // step)))
        return pool.each(pieces, some, scratch, room, shared=len(pieces) > 1, blas=True)

    return Compiled(bind, scratch=room * team.count, wants=wants, gives=gives)


def _multiplying(
    team: Team, filters: Operand, weights: Array, group: int, results: Array
) -> Callable[[Array, Array], list[Call]]:
    """What gives the calls for columns [group, windows, inner] times filters, as [group, windows, outer]."""
    outer = results.shape[2]
    if filters.value is None or outer < LANES or results.strides[2] != results.itemsize:
        rows = np.ascontiguousarray(weights.transpose(0, 2, 3, 1)).reshape(group, outer, -1)
        return lambda columns, result: [_product(rows, columns, result)]
    groups = [filters.value[n * outer : (n + 1) * outer] for n in range(group)]
    panels = [panels_of(own, _last, "channels last").array() for own in groups]

    def multiply(columns: Array, result: Array) -> list[Call]:
        triples = zip(panels, columns, result, strict=True)
        return [panel_call(team, own, data, written) for own, data, written in triples]

    return multiply


def _last(filters: Array) -> Array:
    """Filters [outer, inner] of some with their channels last."""
    return filters.transpose(0, 2, 3, 1).reshape(len(filters), -1)


def _product(weights: Array, columns: Array, result: Array) -> Call:
    """A call for [group, windows, inner] times [group, outer, inner], transposed, as the result lies."""
    if result.strides[-1] == result.itemsize:
        return partial(np.matmul, columns, weights.transpose(0, 2, 1), out=result)
    return partial(np.matmul, weights, columns.transpose(0, 2, 1), out=result.transpose(0, 2, 1))


COMPILERS = dict.fromkeys(("DeformableConvolution-1", "DeformableConvolution-8"), deformable_convolution)
