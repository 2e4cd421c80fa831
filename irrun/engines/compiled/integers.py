"""Convolutions and products of codes with constant weights of i8, added up exactly, where oneDNN's are not: processors
without VNNI add up products of bytes in 16 bits, which saturate.

Data come with their channels last, and go so. Zero points are subtracted while codes are made numbers of 16 bits, with
which a processor multiplies as many at once as it does twice over in f32.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import Strided, lies_so
from irrun.engines.compiled.code import LANES, LINE
from irrun.engines.compiled.integer_kernel import CHANNEL_PIXELS, PAIR, PIXELS, IntegerKind, address_of
from irrun.engines.compiled.requantization import Requantization, layout_of, requantization
from irrun.engines.compiled.team import Team
from irrun.engines.grid import Grid, factors_of
from irrun.engines.memory import Arranged, aligned, allocate, data_address
from irrun.engines.windows import Axis, axes_of
from irrun.engines.work import Arrays, Call, Compiled, Layout, Operand, Work
from irrun.records import NamedTuple, dataclass
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array

INTEGER = "Integer"
"""How the names of ops begin that take codes, and their zero point as their third input."""

MAX_TERMS = 1 << 16
"""Of a sum: so many products of codes, less a zero point, fit into 32 bits."""

MAX_TAPS = 1 << 9
"""Of a sum of products of one channel, which f32 has exactly."""

ROOM = 128 << 10
"""Bytes of numbers that a band has, about: they stay in the second cache."""

LEAST_PIXELS = 48
"""Of a band of rows that are one pixel, which are as many as there are: weights are read once for them."""

PRODUCTS = 40e9
"""Products that one thread adds up in a second, about."""

SHARED_SECONDS = 25e-6
"""What one thread must need for threads to share it."""

CHUNKS = 4
"""That each thread takes, where it can."""


class _Geometry(NamedTuple):
    """Images of `lines` lines of `positions` pixels of `channels`, which windows along `axes` (of lines, and along one)
    make images of results of. `single` are groups of one channel, of which each makes one column. So many groups are
    `joined` that their columns fill a panel: zeros for the channels of others take less time than what becomes of sums
    does for a panel of a few columns."""

    images: int
    channels: int
    groups: int
    axes: tuple[Axis, Axis]
    single: bool = False
    joined: int = 1

    @property
    def item(self) -> int:
        """Bytes of a number that codes are made."""
        return 4 if self.single else 2

    @property
    def panel_groups(self) -> int:
        """Groups that have panels of their own."""
        return -(-self.groups // self.joined)

    @property
    def flat(self) -> bool:
        """Whether pixels are lines, each of which makes one result."""
        return self.axes[1] == NONE and _keeps(self.axes[0])


NONE = Axis(1, 1, 1, 1, 1, 0, 0)
"""An axis that is not there."""


def _keeps(axis: Axis) -> bool:
    """Whether each element of an axis makes a result of its own."""
    return axis.kernel == axis.stride == 1 and not axis.begin and axis.windows == axis.size


def _arranged(geometry: _Geometry, runs: int, codes: Array) -> Array:
    """Codes [columns, channels of a group, taps down, taps along], as a kernel reads them: [panels, runs, pairs, 16
    columns, 2], or f32 [panels, taps, 16] where columns are of single channels."""
    columns = len(codes)
    if geometry.single:
        padded = np.zeros((-(-columns // LANES) * LANES, runs), np.float32)
        padded[:columns] = codes.reshape(columns, runs)
        return _kept(padded.reshape(-1, LANES, runs).transpose(0, 2, 1))
    if geometry.joined > 1:
        codes = _joined(codes, geometry.groups, geometry.joined)
    groups, inner = geometry.panel_groups, codes.shape[1]
    own = len(codes) // groups
    terms = prod(codes.shape[1:]) // runs
    last = codes.reshape(groups, own, inner, -1).transpose(0, 1, 3, 2).reshape(groups, own, runs, terms)
    padded = np.zeros((groups, -(-own // LANES) * LANES, runs, terms + terms % 2), np.int8)
    padded[:, :own, :, :terms] = last
    return _kept(padded.reshape(-1, LANES, runs, padded.shape[-1] // 2, 2).transpose(0, 2, 3, 1, 4))


def _joined(codes: Array, groups: int, joined: int) -> Array:
    """Groups as fewer ones, with zeros for the channels of others and for groups that are not there."""
    own, inner, taps = len(codes) // groups, codes.shape[1], codes.shape[2:]
    fewer = -(-groups // joined)
    made = np.zeros((fewer * joined, own, joined, inner, *taps), codes.dtype)
    for number in range(joined):
        made[number:groups:joined, :, number] = codes.reshape(groups, own, inner, *taps)[number::joined]
    return made.reshape(fewer * joined * own, joined * inner, *taps)


def _kept(array: Array) -> Array:
    made: Array = allocate(array.nbytes).view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


_weights: weakref.WeakValueDictionary[tuple[Hashable, ...], Arranged] = weakref.WeakValueDictionary()


@dataclass(frozen=True, slots=True)
class _Product:
    """What a work is: geometry, weights [columns, channels, taps down, taps along], and what becomes of sums."""

    type: str
    zero: int | None
    geometry: _Geometry
    weights: Arranged
    runs: int
    columns: int
    ending: Requantization

    def compiled(self, team: Team, layout: Strided | None, gives: Strided | None) -> Compiled:
        geometry, (down, along) = self.geometry, self.geometry.axes
        length = along.covered(along.windows) * geometry.channels * geometry.item
        height, width = down.windows, along.windows
        least = min(LEAST_PIXELS, height) if geometry.flat else 1
        rows = max(min((ROOM // length - down.covered(1)) // down.stride + 1, height), least)
        terms = prod(axis.kernel for axis in geometry.axes) * geometry.channels // geometry.groups
        products = geometry.images * height * width * self.columns * terms
        shared = team.count > 1 and products / PRODUCTS > SHARED_SECONDS
        own = self.columns // geometry.groups * geometry.joined
        panels = geometry.panel_groups * -(-own // LANES)
        if shared and geometry.images * -(-height // rows) * panels < CHUNKS * team.count:
            wanted = -(-CHUNKS * team.count // (geometry.images * panels))
            least = -(-LEAST_PIXELS // width)
            rows = min(rows, max(-(-height // wanted), least))
        rows = -(-height // -(-height // rows))
        beyond = -geometry.groups % geometry.joined * geometry.channels // geometry.groups  # channels of no group
        room = aligned(down.covered(rows) * length + beyond * geometry.item + 8 * LINE)
        cut = _Cut(height, width, rows, length, room, shared)
        wants: dict[int, Layout | None] = dict(self.ending.wants)
        if layout is not None:
            wants[0] = layout
        return Compiled(
            lambda inputs, outputs, scratch: self._bind(team, cut, inputs, outputs, scratch),
            room * team.count,
            wants,
            {} if gives is None else {0: gives},
            frozenset({1}),
            coded=self.ending.coded | (frozenset({0}) if self.zero is not None else frozenset()),
        )

    def _bind(self, team: Team, cut: _Cut, inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        geometry, (down, along) = self.geometry, self.geometry.axes
        single, (result,) = geometry.single, outputs
        item, channels = geometry.item, geometry.channels
        weights, pixels = self.weights.array(), cut.rows * cut.width
        most = CHANNEL_PIXELS if single else PIXELS
        kind = IntegerKind(self.type, single, -(-pixels // -(-pixels // most)), self.ending.ending)
        bands, panels = -(-cut.height // cut.rows), len(weights)
        chunks = 1
        if cut.shared:
            chunks = min(panels, -(-CHUNKS * team.count // (bands * geometry.images)))
        chunk = -(-panels // chunks)
        chunks = -(-panels // chunk)
        rows, places = np.divmod(np.arange(pixels), cut.width)
        windows = rows * (down.stride * cut.length) + places * (along.stride * channels * item)
        windows = windows.astype(np.int64)
        steps, shifts = self._steps(cut), self._shifts()
        step = numpy_dtype(self.ending.ending.type).itemsize
        reached = along.covered(along.windows)
        left = min(along.begin, reached)
        body = min(along.size, reached - left)
        told = {
            "items": chunks * bands * geometry.images,
            "scratch": data_address(scratch),
            "room": cut.room,
            "chunk": chunk,
            "chunks": chunks,
            "panels": panels,
            "panel": weights.strides[0],
            "weights": data_address(weights),
            "shifts": data_address(shifts),
            "bands": bands,
            "rows": cut.rows,
            "height": cut.height,
            "width": cut.width,
            "places": data_address(windows),
            "runs": self.runs,
            "steps": data_address(steps),
            "pairs": 1 if single else weights.strides[1] // PAIR,
            "data": data_address(inputs[0]),
            "image": down.size * along.size * channels,
            "row": along.size * channels,
            "lines": down.size,
            "stride": down.stride,
            "reach": down.covered(1),
            "begin": down.begin,
            "left": left * channels,
            "body": body * channels,
            "right": (reached - left - body) * channels,
            "flat": int(geometry.flat),
            "zero": (self.zero or 0) & (1 << 64) - 1,
            "result": data_address(result),
            "result_image": prod(result.shape) // geometry.images * step,
            "result_pixel": self.columns * step,
            **self.ending.arguments(inputs),
        }
        arguments = kind.form.of(slot=0, **told)
        address, pointer, zeros = address_of(kind), data_address(arguments), 1 + kind.form.names.index("zero")
        given = None if self.zero is not None else inputs[2].reshape(-1)
        held = (inputs, outputs, scratch, weights, windows, steps, shifts, self.ending)

        def call(_: object = held) -> None:
            arguments[:2] = 0
            if given is not None:
                arguments[zeros] = int(given[0]) & (1 << 64) - 1
            team.beside(address, pointer, shared=cut.shared)

        return call

    def _steps(self, cut: _Cut) -> Array:
        """Where the runs of a window begin, in bytes behind it."""
        down, along = self.geometry.axes
        lines = np.arange(down.kernel)[:, None] * (down.dilation * cut.length)
        if self.runs == down.kernel:
            return lines.reshape(-1).astype(np.int64)
        taps = np.arange(along.kernel)[None] * (along.dilation * self.geometry.channels * self.geometry.item)
        return np.ascontiguousarray((lines + taps).reshape(-1), np.int64)

    def _shifts(self) -> Array:
        """Of the panels: where their channels begin, in bytes, their first column, and how many of these they have."""
        geometry, item = self.geometry, self.geometry.item
        groups = 1 if geometry.single else geometry.panel_groups
        own = self.columns if geometry.single else self.columns // geometry.groups * geometry.joined
        starts = np.arange(0, own, LANES)
        shifts = np.zeros((groups, len(starts), 3), np.int64)
        between = geometry.channels // geometry.groups * geometry.joined * item
        shifts[..., 0] = starts * item if geometry.single else np.arange(groups)[:, None] * between
        shifts[..., 1] = np.arange(groups)[:, None] * own + starts
        shifts[..., 2] = np.minimum(np.minimum(own - starts, LANES), self.columns - shifts[..., 1])
        return shifts


class _Cut(NamedTuple):
    """How a result is cut: its rows and the pixels of each, rows of a band, bytes of a line of numbers, and of those of
    a band; and whether threads share it."""

    height: int
    width: int
    rows: int
    length: int
    room: int
    shared: bool


def convolution(work: Work, team: Team) -> Compiled | None:
    """Convolution-1 and GroupConvolution-1 along one or two axes."""
    data, filters = work.required(2)
    weights, codes, grid = filters.compressed, *_codes(work, data)
    assert weights is not None
    grouped, result = "Group" in work.name, work.outputs[0].shape
    shape = weights.shape[1:] if grouped else weights.shape
    groups = weights.shape[0] if grouped else 1
    axes = axes_of(work.attrs, data.shape[2:], shape[2:], result[2:])
    if len(axes) not in (1, 2) or any(axis.begin < 0 for axis in axes):
        return None
    if len(axes) == 1:
        axes.insert(0, NONE)
    filters_of = weights.plain().reshape(result[1], shape[1], axes[0].kernel, axes[1].kernel)
    met, taps = zip(*(axis.meeting() for axis in axes), strict=True)
    axes, filters_of = [*met], filters_of[:, :, *taps]
    if all(map(_keeps, axes)):
        pixels = prod(result[2:])
        axes = [NONE._replace(size=pixels, windows=pixels), NONE]
    single = groups > 1 and shape[:2] == (1, 1)
    joined = LANES // shape[0] if groups > 1 and not single and LANES % shape[0] == 0 else 1
    geometry = _Geometry(data.shape[0], data.shape[1], groups, (axes[0], axes[1]), single, joined)
    if len(grid.scale) > 1 and not single:
        return None
    factors = np.broadcast_to(factors_of(weights, grid, grouped=grouped), result[1])
    return _compiled(work, team, codes, grid, geometry, filters_of, factors, last=False)


def product(work: Work, team: Team) -> Compiled | None:
    """MatMul-1 with a matrix of weights."""
    data, right = work.required(2)
    weights, codes, grid = right.compressed, *_codes(work, data)
    assert weights is not None
    if work.attrs["transpose_a"] or len(weights.shape) != 2 or len(grid.scale) > 1 or not data.shape:
        return None
    matrix = weights.plain() if work.attrs["transpose_b"] else weights.plain().T
    rows = prod(data.shape[:-1])
    geometry = _Geometry(1, data.shape[-1], 1, (NONE._replace(size=rows, windows=rows), NONE))
    factors = np.broadcast_to(factors_of(weights, grid, grouped=False), len(matrix))
    return _compiled(work, team, codes, grid, geometry, matrix[:, :, None, None], factors, last=True)


def _compiled(
    work: Work,
    team: Team,
    codes: Operand,
    grid: Grid,
    geometry: _Geometry,
    filters: Array,
    factors: Array,
    *,
    last: bool,
) -> Compiled | None:
    down, along = geometry.axes
    taps = down.kernel * along.kernel
    if taps > MAX_TAPS if geometry.single else filters[0].size > MAX_TERMS:
        return None
    height = down.windows * along.windows
    ending = requantization(work, factors, geometry.images, height, last=last)
    if ending is None:
        return None
    whole = along.dilation == 1 and geometry.groups == 1 and not geometry.single
    runs = down.kernel if whole else taps
    key = data_address(filters), filters.shape, filters.strides, geometry.groups, runs
    kept = _weights.setdefault(key, Arranged(filters, partial(_arranged, geometry, runs)))
    layout = layout_of(codes, last=last)
    gives = None if last else layout_of(work.outputs[0], last=False)
    zero = None if work.name.startswith(INTEGER) else grid.zero
    made = _Product(grid.type, zero, geometry, kept, runs, len(filters), ending)
    return made.compiled(team, None if lies_so(codes, layout) else layout, gives)


def _codes(work: Work, data: Operand) -> tuple[Operand, Grid]:
    """The operand of the codes, and their grid."""
    if work.name.startswith(INTEGER):
        return data, Grid(data.type, (1.0,), 0)
    assert data.codes is not None
    assert data.grid is not None
    return data.codes, data.grid


COMPILERS = {
    **dict.fromkeys(("Convolution-1", "GroupConvolution-1"), convolution),
    **dict.fromkeys(("IntegerConvolution-1", "IntegerGroupConvolution-1"), convolution),
    **dict.fromkeys(("MatMul-1", "IntegerMatMul-1"), product),
}
