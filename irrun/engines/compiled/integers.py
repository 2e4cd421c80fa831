"""Convolutions and products of codes with constant weights of i8, added up exactly, where oneDNN's are not: processors
without VNNI add up products of bytes in 16 bits, which saturate.

Data come with their channels last, and go so. Zero points are subtracted while codes are made numbers of 16 bits, with
which a processor multiplies as many at once as it does twice over in f32.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from functools import partial
from math import prod

import numpy as np

from irrun.engines.axes import unless_so
from irrun.engines.compiled import integer_windows, integer_winograd
from irrun.engines.compiled.code import LANES
from irrun.engines.compiled.integer_product import NONE, Geometry, Product, keeps
from irrun.engines.compiled.integer_windows import Windows
from irrun.engines.compiled.integer_winograd import Winograd
from irrun.engines.compiled.requantization import layout_of, requantization
from irrun.engines.compiled.stages import Affine
from irrun.engines.compiled.team import Team
from irrun.engines.grid import INTEGER, Grid, factors_of
from irrun.engines.memory import Arranged, arranged_once
from irrun.engines.windows import axes_of
from irrun.engines.work import Compiled, Operand, Work
from irrun.spec.op import Array

MAX_TAPS = 1 << 9
"""Of a sum of products of one channel, which f32 has exactly."""

_weights: weakref.WeakValueDictionary[tuple[Hashable, ...], Arranged] = weakref.WeakValueDictionary()


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
    if all(map(keeps, axes)):
        pixels = prod(result[2:])
        axes = [NONE._replace(size=pixels, windows=pixels), NONE]
    single = groups > 1 and shape[:2] == (1, 1)
    joined = LANES // shape[0] if groups > 1 and not single and LANES % shape[0] == 0 else 1
    geometry = Geometry(data.shape[0], data.shape[1], groups, (axes[0], axes[1]), single, joined)
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
    geometry = Geometry(1, data.shape[-1], 1, (NONE._replace(size=rows, windows=rows), NONE))
    factors = np.broadcast_to(factors_of(weights, grid, grouped=False), len(matrix))
    return _compiled(work, team, codes, grid, geometry, matrix[:, :, None, None], factors, last=True)


def _compiled(
    work: Work,
    team: Team,
    codes: Operand,
    grid: Grid,
    geometry: Geometry,
    filters: Array,
    factors: Array,
    *,
    last: bool,
) -> Compiled | None:
    down, along = geometry.axes
    if geometry.single and down.kernel * along.kernel > MAX_TAPS:
        return None
    height = down.windows * along.windows
    first, sizes = Affine(factors, np.zeros(1)), (geometry.images, height, len(filters))
    ending = requantization(work, first, sizes, last=last)
    if ending is None:
        return None
    fewer = integer_winograd.is_possible(geometry, len(filters))
    way: type[Product] = Winograd if fewer else Windows
    arrange: Callable[[Array], Array] = (
        integer_winograd.arranged if fewer else partial(integer_windows.arranged, geometry)
    )
    runs = integer_windows.runs_of(geometry)
    kept = arranged_once(_weights, [filters], arrange, fewer, geometry.groups, runs)
    layout = layout_of(codes, last=last)
    gives = None if last else layout_of(work.outputs[0], last=False)
    zero = None if work.name.startswith(INTEGER) else grid.zero
    made = way(grid.type, zero, geometry, kept, len(filters), ending)
    return made.compiled(team, unless_so(codes, layout), gives)


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
