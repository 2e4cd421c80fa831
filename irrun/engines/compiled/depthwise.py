"""Depthwise convolutions, with what follows, channels last: in registers the taps that meet data are added up.

Along each axis it is told in advance which taps of a window meet data, so that padding, however wide, costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
from llvmlite import ir

from irrun.engines.axes import channels_last, unless_so
from irrun.engines.compiled.code import FLOAT, FLOATS, INTS, LANES, LINE, Code, Form, long
from irrun.engines.compiled.posts import (
    KernelPost,
    kernel_posts,
    operand_arguments,
    operand_names,
    posted,
    read_operand,
)
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import Team
from irrun.engines.depthwise import is_depthwise
from irrun.engines.memory import ITEM, data_address
from irrun.engines.windows import Axis, axes_of
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.records import dataclass
from irrun.spec.op import Array

TOGETHER = 8
"""Windows whose sums are in registers at once: so many additions that do not wait for one another."""

SHARED = 1 << 17
"""Products from which on threads share them."""

ITEMS = 8
"""Items for each thread, at least, where channels can be cut."""

PRODUCT_SECONDS, WINDOW_SECONDS = 0.05e-9, 0.3e-9
"""What a product takes about, and an element of the result."""

ACROSS = 3
"""Axes that kernels have; fewer are as if others of one element came before them."""

AXES = ("image", "layer", "row", "pixel")
"""Along which operands of posts are told their bytes from one to the next."""

_ALONG = ("layer", "row", "pixel")
_NAMES = (
    *("items", "lines", "chunk", "vectors", "channels", "layers", "rows", "pixels", "segments", "stride"),
    *("data", "filters", "result", "result_pixel", "image", "filter_layer", "filter_row"),
    *(f"{kind}_{axis}" for kind in ("table", "size", "step") for axis in _ALONG),
)
"""An item is a `chunk` of the vectors of channels of one of the `lines`, rows of windows [images, layers, rows]. Along
an axis a table has for each window how many taps meet data, the first of these, and where it lies; along the last one
the same for `segments` of windows with the same taps, behind the first window of each and how many they are. Elements
are `size` bytes apart, those that taps meet `step`, and windows of a row `stride`. The vectors are of the channels of
the result, of which each channel of the data makes `features`."""


@dataclass(frozen=True, slots=True)
class DepthwiseKind:
    """What a kernel is compiled for."""

    posts: tuple[KernelPost, ...]
    features: int

    @property
    def form(self) -> Form:
        return Form((*_NAMES, *operand_names(self.posts, AXES)))


def depthwise(work: Work, team: Team) -> Compiled | None:
    """GroupConvolution-1 of one channel in a group, which may have several features, of f32 with constant filters."""
    if not is_depthwise(work):
        return None
    (data, filters), output = work.required(2), work.outputs[0]
    lacking = (1,) * (ACROSS - len(data.shape[2:]))
    images, channels, *_ = output.shape
    windows, features = (*lacking, *output.shape[2:]), filters.shape[1]
    posts, operands = kernel_posts(work, (images, channels, *windows), (0, 2, 3, 4, 1))
    assert filters.value is not None
    if len(posts) < len(work.posts):
        return None
    own = axes_of(work.attrs, data.shape[2:], filters.shape[3:], output.shape[2:])
    axes = [*(Axis(1, 1, 1, 1, 1, 0, 0) for _ in lacking), *own]
    vectors, taps = -(-channels // LANES), prod(filters.shape[3:])
    packed = np.zeros((taps, vectors * LANES), np.float32)
    packed[:, :channels] = filters.value.reshape(channels, taps).T
    tables = [*map(_table, axes[:-1]), _segments(axes[-1])]
    pixel = data.shape[1] * ITEM
    sizes = (pixel * axes[1].size * axes[2].size, pixel * axes[2].size, pixel)
    lines = images * windows[0] * windows[1]
    chunk = max(1, min(vectors, vectors * lines // (ITEMS * team.count)))
    told = {"items": lines * -(-vectors // chunk), "lines": lines, "chunk": chunk, "vectors": vectors}
    told |= {"channels": channels, "layers": windows[0], "rows": windows[1], "pixels": windows[2]}
    told |= {"segments": len(tables[-1]), "stride": pixel * axes[2].stride, "result_pixel": channels * ITEM}
    told |= {"image": sizes[0] * axes[0].size, "filters": data_address(packed)}
    told |= {"filter_row": axes[2].kernel * vectors * LINE}
    told |= {"filter_layer": axes[1].kernel * told["filter_row"]}
    for name, table, size, axis in zip(_ALONG, tables, sizes, axes, strict=True):
        told |= {f"table_{name}": data_address(table), f"size_{name}": size, f"step_{name}": size * axis.dilation}
    products = prod(output.shape) * taps
    seconds = products * PRODUCT_SECONDS + prod(output.shape) * WINDOW_SECONDS
    kind = DepthwiseKind(posts, features)

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        address = kind.form.address(kind, partial(_item, kind))
        lying = {"data": data_address(inputs[0]), "result": data_address(outputs[0])}
        arguments = kind.form.of(**told, **lying, **operand_arguments(posts, operands, inputs, AXES))
        held = inputs, outputs, packed, tables
        return Kernel(team, address, arguments, held, shared=products >= SHARED, seconds=seconds)

    wants, gives = unless_so(data, channels_last(data)), unless_so(output, channels_last(output))
    return Compiled(bind, wants=wants, gives=gives, taken=frozenset({1}))


def _met(axis: Axis, window: int) -> tuple[int, int, int]:
    """How many taps of a window meet data, the first one of these, and where it lies."""
    begin = window * axis.stride - axis.begin
    first = max(-(begin // axis.dilation), 0)
    behind = min(-((begin - axis.size) // axis.dilation), axis.kernel)
    return max(behind - first, 0), first, begin + first * axis.dilation


def _table(axis: Axis) -> Array:
    return np.array([_met(axis, window) for window in range(axis.windows)], np.int64)


def _segments(axis: Axis) -> Array:
    """Windows in a row of which the same taps meet data: which is the first one, how many they are, and of that the
    same as in a table."""
    found: list[list[int]] = []
    for window in range(axis.windows):
        count, first, place = _met(axis, window)
        if found and found[-1][2:4] == [count, first]:
            found[-1][1] += 1
        else:
            found.append([window, 1, count, first, place])
    return np.array(found, np.int64)


def _item(kind: DepthwiseKind, c: Code, at: dict[str, Any], item: Any) -> None:
    b, pixel = c.b, at["size_pixel"]
    chunk, line = b.mul(b.udiv(item, at["lines"]), at["chunk"]), b.urem(item, at["lines"])
    row, layer = b.urem(line, at["rows"]), b.udiv(line, at["rows"])
    image, layer = b.udiv(layer, at["layers"]), b.urem(layer, at["layers"])
    places = {"image": image, "layer": layer, "row": row}
    deep, first, near = _entries(c, c.at(at["table_layer"], layer, 3 * 8), 3)
    high, tap, above = _entries(c, c.at(at["table_row"], row, 3 * 8), 3)
    filters = c.at(c.at(at["filters"], first, at["filter_layer"]), tap, at["filter_row"])
    source = c.at(c.at(c.at(at["data"], image, at["image"]), near, at["size_layer"]), above, at["size_row"])
    target = c.at(at["result"], b.mul(line, at["pixels"]), at["result_pixel"])

    def windows(vector: Any, inside: Any) -> None:
        """Those of the line, for the channels `inside` if not all of the vector are."""
        column = b.mul(vector, long(LANES))
        weights, end = (c.at(one, vector, LINE) for one in (filters, target))
        data = c.at(source, vector, LINE // kind.features)

        def segment(place: Any) -> None:
            window, many, count, tap, meets = _entries(c, c.at(at["table_pixel"], place, 5 * 8), 5)
            first = c.at(data, meets, pixel)
            own = c.at(weights, b.mul(tap, at["vectors"]), LINE)

            def together(width: int, start: Any) -> None:
                sums = [c.variable(ir.Constant(FLOATS, None)) for _ in range(width)]

                def add(meet: Any, tap: Any) -> None:
                    factor = c.load(tap, FLOATS)
                    for n, sum in enumerate(sums):
                        value = _channels(c, kind, c.at(meet, long(n), at["stride"]), inside)
                        sum.set(c.fma(value, factor, sum.get()))

                _taps(c, at, [deep, high, count], c.at(first, start, at["stride"]), own, add)
                for n, sum in enumerate(sums):
                    place = {**places, "pixel": b.add(b.add(window, start), long(n))}
                    read = partial(_read, c, at, place, column, inside)
                    made = posted(c, kind.posts, sum.get(), read)
                    c.put(made, c.at(end, place["pixel"], at["result_pixel"]), inside)

            whole = b.udiv(many, long(TOGETHER))
            c.times(whole, lambda n: together(TOGETHER, b.mul(n, long(TOGETHER))))
            done = b.mul(whole, long(TOGETHER))
            c.times(b.sub(many, done), lambda n: together(1, b.add(done, n)))

        c.loop(at["segments"], segment)

    full, behind = b.udiv(at["channels"], long(LANES)), c.least(b.add(chunk, at["chunk"]), at["vectors"])
    c.times(b.sub(c.least(behind, full), chunk), lambda number: windows(b.add(chunk, number), None))
    with b.if_then(b.icmp_unsigned(">", behind, full)):
        windows(full, c.first_lanes(b.urem(at["channels"], long(LANES))))


def _channels(c: Code, kind: DepthwiseKind, address: Any, inside: Any) -> Any:
    """A vector of channels of the data, each as often as it has features."""
    if kind.features == 1:
        return c.some(address, FLOATS, inside)
    few = c.load(address, ir.VectorType(FLOAT, LANES // kind.features), 4)
    return c.b.shuffle_vector(few, few, ir.Constant(INTS, [lane // kind.features for lane in range(LANES)]))


def _taps(
    c: Code, at: dict[str, Any], counts: Sequence[Any], data: Any, filters: Any, add: Callable[[Any, Any], None]
) -> None:
    """What `add` does for so many taps along each axis, given where the data lie that they meet, and their factors."""
    steps = [at["filter_layer"], at["filter_row"], c.b.mul(at["vectors"], long(LINE))]

    def along(axis: int, data: Any, filters: Any) -> None:
        if axis == ACROSS:
            add(data, filters)
            return
        step = at[f"step_{_ALONG[axis]}"]
        c.times(counts[axis], lambda n: along(axis + 1, c.at(data, n, step), c.at(filters, n, steps[axis])))

    along(0, data, filters)


def _read(c: Code, at: dict[str, Any], place: dict[str, Any], column: Any, inside: Any, n: int, along: bool) -> Any:
    return read_operand(c, at, n, place, column, inside, along=along)


def _entries(c: Code, address: Any, count: int) -> list[Any]:
    return [c.number(c.b.add(address, long(8 * n)), 8) for n in range(count)]


COMPILERS = {"GroupConvolution-1": depthwise}
