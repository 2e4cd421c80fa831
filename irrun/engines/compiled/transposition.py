"""Copies in which another axis lies side by side than before: tiles of 16 x 16 elements, turned in registers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import dense_strides, is_dense, merged
from irrun.engines.compiled import strips
from irrun.engines.compiled.code import FLOATS, LANES, Code, Form, long
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import Team
from irrun.engines.extents import extent_of
from irrun.engines.memory import ITEM, data_address
from irrun.engines.vectorized.copies import MOVERS
from irrun.engines.vectorized.copying import Mover, Pairs, filling
from irrun.engines.work import Arrays, Call, Compiled, Layout, Operand, Work, chain
from irrun.records import NamedTuple
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array

LEAST = 1 << 14
"""Elements from which on a copy is worth a kernel."""

SHARED = 1 << 15
"""Elements from which on threads share them."""

PART = 1 << 10
"""Columns of a matrix that a thread turns at once."""

ELEMENT_SECONDS = 0.3e-9
"""What an element takes about."""

_STRIDES = ("data_step", "data_matrix", "target_step", "target_matrix")
_FORM = Form(("items", "parts", "rows", "columns", "data", "target", *_STRIDES))
"""`items` are 16 rows of one of `parts` of a matrix each. The elements of a column of the data lie side by side, those
of a row of the target; a step leads to the next column or row, in bytes."""


class _Turn(NamedTuple):
    """Matrices [matrices, rows, columns], and their strides in bytes, in the order of `_STRIDES`."""

    matrices: int
    rows: int
    columns: int
    strides: tuple[int, int, int, int]


def transposition(work: Work, team: Team) -> Compiled | None:
    """Ops that only move elements, of 4 bytes, where most of them are turned."""
    if work.posts or max(prod(own.shape) for own in work.outputs) < LEAST:
        return None
    moved = [own for own in work.inputs if own is not None and own.value is None]
    if work.name != "Transpose-1" and all(map(is_dense, moved)):
        return None
    mover = MOVERS[work.name](work)
    if mover is None or not all(map(_is_plain, (*moved, *work.outputs))):
        return None
    inputs = [None if own is None else _like(own) if own.value is None else own.value for own in work.inputs]
    return _compiled(team, mover, mover(inputs, [*map(_like, work.outputs)]))


def reorder(operand: Operand, layout: Layout | None, team: Team) -> Compiled | None:
    """A copy in another layout, if most elements are turned."""
    strides = dense_strides(operand.shape) if layout is None else layout.strides
    if strides is None or not _is_plain(operand) or prod(operand.shape) < LEAST:
        return None
    target = Operand(operand.type, operand.shape, strides)
    return _compiled(team, lambda inputs, outputs: [(outputs[0], inputs[0])], [(_like(target), _like(operand))])


def _compiled(team: Team, mover: Mover, alike: Pairs) -> Compiled | None:
    """What copies as `mover` says, unless little is turned of views that are `alike`."""
    turned = sum(target.size for target, source in alike if _turn(target, source) is not None)
    if turned < LEAST or 2 * turned < sum(target.size for target, _ in alike):
        return None

    def bind(arrays: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        calls: list[Call] = []
        for target, source in mover(arrays, outputs):
            turn = _turn(target, source)
            calls += filling(target, source) if turn is None else [_kernel(team, turn, target, source)]
        return chain(calls)

    return Compiled(bind)


def _is_plain(operand: Operand) -> bool:
    """Whether elements are of 4 bytes, and lie in memory as strides say that go upwards."""
    known = operand.layout is None and operand.type != "string" and numpy_dtype(operand.type).itemsize == ITEM
    return known and min(operand.strides, default=0) >= 0


def _like(operand: Operand) -> Array:
    """An array that lies as an operand does, of any elements."""
    shape, type = operand.shape, numpy_dtype(operand.type)
    room = np.empty(extent_of(shape, operand.strides, ITEM)[1], np.uint8)
    return np.ndarray(shape, type, room, 0, operand.strides)


def _turn(target: Array, source: Any) -> _Turn | None:
    """How a view of a target is filled with one that is turned; None where it is not, or in more than one way."""
    if not isinstance(source, np.ndarray) or source.shape != target.shape or target.size == 0:
        return None
    shape, (to, come) = merged(target.shape, [target.strides, source.strides])
    if len(shape) not in (2, 3) or min(*to, *come) <= 0:
        return None
    row, column = (next((axis for axis, step in enumerate(own) if step == ITEM), None) for own in (come, to))
    if row is None or column is None or row == column or min(shape[row], shape[column]) < LANES:
        return None
    others = [axis for axis in range(len(shape)) if axis not in (row, column)]
    matrices, *apart = (shape[others[0]], come[others[0]], to[others[0]]) if others else (1, 0, 0)
    return _Turn(matrices, shape[row], shape[column], (come[column], apart[0], to[row], apart[1]))


def _kernel(team: Team, turn: _Turn, target: Array, source: Array) -> Kernel:
    address = _FORM.address("transposition", _rows)
    elements, parts = turn.matrices * turn.rows * turn.columns, -(-turn.columns // PART)
    told = {"items": turn.matrices * -(-turn.rows // LANES) * parts, "parts": parts, "rows": turn.rows}
    told |= {"columns": turn.columns, "data": data_address(source), "target": data_address(target)}
    arguments = _FORM.of(**told, **dict(zip(_STRIDES, turn.strides, strict=True)))
    shared, seconds = elements >= SHARED, elements * ELEMENT_SECONDS
    return Kernel(team, address, arguments, (target, source), shared=shared, seconds=seconds)


def _rows(c: Code, at: dict[str, Any], item: Any) -> None:
    b = c.b
    part, item = b.urem(item, at["parts"]), b.udiv(item, at["parts"])
    blocks = c.blocks(at["rows"], long(LANES))
    matrix = b.udiv(item, blocks)
    # the last tiles have elements of the ones before where rows or columns end within one
    row = c.least(b.mul(b.urem(item, blocks), long(LANES)), b.sub(at["rows"], long(LANES)))
    source = c.at(c.at(at["data"], matrix, at["data_matrix"]), row, ITEM)
    target = c.at(c.at(at["target"], matrix, at["target_matrix"]), row, at["target_step"])
    first = b.mul(part, long(PART))
    count = c.least(long(PART), b.sub(at["columns"], first))

    def tile(number: Any) -> None:
        column = c.least(b.add(first, b.mul(number, long(LANES))), b.sub(at["columns"], long(LANES)))
        start, end = c.at(source, column, at["data_step"]), c.at(target, column, ITEM)
        read = [c.load(c.at(start, long(n), at["data_step"]), FLOATS) for n in range(LANES)]
        for n, vector in enumerate(c.transposed(read)):
            c.store(vector, c.at(end, long(n), at["target_step"]))

    c.loop(c.blocks(count, long(LANES)), tile)


def concatenation(work: Work, team: Team) -> Compiled | None:
    """Concat-1, of strips or turned."""
    return strips.concatenate(work, team) or transposition(work, team)


COMPILERS = {**dict.fromkeys(MOVERS, transposition), "Concat-1": concatenation}
