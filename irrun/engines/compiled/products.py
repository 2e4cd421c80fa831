"""Products with compressed weights: of a few rows from the codes as they are, of many with blocks made f32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import rows_of
from irrun.engines.compiled.kernels import ARGUMENTS, STEP, Kind, address_of, bytes_of_step, is_possible
from irrun.engines.compiled.team import _KERNEL, team_call
from irrun.engines.compressed import PACKED, CompressedWeights, numbers_of
from irrun.engines.extents import view
from irrun.engines.memory import ITEM, aligned
from irrun.engines.vectorized.posts import posts_of
from irrun.engines.vectorized.threads import PRODUCT_SPEED, Threads, cuts
from irrun.engines.work import Arrays, Call, Compiled, Work, chain
from irrun.spec.op import Array

FEW = 24
"""Rows up to which a kernel reads codes for each few of them anew; from then on it is quicker to make them f32 once."""

COLUMNS, ROWS = {1: 4, 2: 2, 3: 2, 4: 2}, 4
"""Columns that a kernel computes at once for so many rows at once, and the most rows."""

CODE_SPEED = 20e9
"""Codes per second that one thread multiplies with one row, about."""

SHARED_SECONDS = 12e-6
"""What one thread must need for threads to share it: to wake another one costs about as much."""

BLOCK = 1 << 17
"""Elements of a block of weights that are made f32: it stays in the cache of a processor."""


@dataclass(frozen=True, slots=True)
class _Groups:
    """Weights [columns, inner] as `count` groups of codes a row; the arguments of kernels that say how they lie."""

    weights: CompressedWeights
    count: int
    steps: int
    arguments: dict[str, int]

    def kind(self, columns: int, rows: int) -> Kind:
        weights = self.weights
        return Kind(
            weights.type,
            weights.scale is not None,
            weights.zero is not None,
            columns,
            rows,
            self.steps if self.count > 1 else 0,
        )


def _groups(weights: CompressedWeights) -> _Groups | None:
    """None where groups are no whole steps, or scales are not those of groups along rows."""
    columns, inner = weights.shape
    factors = {"scale": weights.scale, "zero": weights.zero}
    there = [factor for factor in factors.values() if factor is not None]
    if not is_possible(weights.type) or any(factor.shape[-1] != 1 for factor in there):
        return None
    stored = (columns, 1, inner)
    if any(factor.ndim > 1 and prod(factor.shape[1:]) > 1 for factor in there):
        if len(weights.stored) != 3 or weights.stored[0] != columns:
            return None
        stored = weights.stored
    elif there and (weights.stored[0] != columns and any(factor.size > 1 for factor in there)):
        return None
    _, count, size = stored
    if size % STEP:
        return None
    step = bytes_of_step(weights.type)
    arguments = {
        "columns": columns,
        "codes": weights.codes.ctypes.data,
        "code_row": inner // STEP * step,
        "groups": count,
        "steps": size // STEP,
    }
    if weights.type in PACKED:
        arguments["numbers"] = numbers_of(weights.type).ctypes.data
    for name, factor in factors.items():
        if factor is not None:
            arguments[name] = factor.ctypes.data
            arguments[f"{name}_row"] = prod(factor.shape[1:]) * ITEM if factor.shape[0] > 1 else 0
            arguments[f"{name}_group"] = ITEM if prod(factor.shape[1:]) > 1 else 0
    return _Groups(weights, count, size // STEP, arguments)


def _array_of(arguments: dict[str, int]) -> Array:
    return np.array([arguments.get(name, 0) for name in ARGUMENTS], np.uint64)


def matmul(work: Work, pool: Threads) -> Compiled | None:
    """MatMul-1 of f32 rows and compressed weights [columns, inner]."""
    left, right = work.required(2)
    weights, found = right.compressed, None if left.compressed is not None else rows_of(work)
    if weights is None or found is None or not work.attrs["transpose_b"]:
        return None
    groups = _groups(weights)
    if groups is None or any(operand is not None and operand.compressed for operand in work.inputs[2:]):
        return None
    rows, strides, wants = found
    made = (_few if rows <= FEW else _many)(work, groups, rows, strides, pool)
    if made is not None:
        made.wants, made.taken = wants, frozenset({1})
    return made


COMPRESSED = {"MatMul-1": matmul}
"""For works of which an input is compressed."""


def _few(work: Work, groups: _Groups, rows: int, strides: tuple[int, int], pool: Threads) -> Compiled | None:
    columns, inner = groups.weights.shape
    posts = posts_of(work, (rows, columns))
    if posts is None:
        return None
    at_once = min(rows, ROWS)
    kind = groups.kind(COLUMNS[at_once] if columns >= COLUMNS[at_once] else 1, at_once)
    address = address_of(kind)
    halved = groups.weights.type in PACKED
    copied = halved or strides[1] != ITEM
    threads = pool.count if rows * columns * inner / CODE_SPEED > SHARED_SECONDS else 1
    chunk = max(-(-columns // (4 * threads * 16)), 1) * 16
    order = (rows, inner // STEP, 2, STEP // 2) if halved else (rows, inner)
    steps = (strides[0], STEP * strides[1], strides[1], 2 * strides[1]) if halved else strides

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        data = view(inputs[0], order, steps)
        first: list[Call] = []
        if copied:
            room = scratch[: rows * inner * ITEM].view(np.float32).reshape(order)
            first, data = [partial(np.copyto, room, data)], room
        row = inner * ITEM if copied else strides[0]
        output = outputs[0].reshape(rows, columns)
        arguments = _array_of(
            {
                **groups.arguments,
                "chunk": chunk,
                "data": data.ctypes.data,
                "data_row": row,
                "rows": rows,
                "result": output.ctypes.data,
                "result_row": columns * ITEM,
            }
        )
        return chain([*first, team_call(address, arguments, threads, pool), *posts.bind(inputs, output)(...)])

    return Compiled(bind, aligned(rows * inner * ITEM) if copied else 0)


def _many(work: Work, groups: _Groups, rows: int, strides: tuple[int, int], pool: Threads) -> Compiled | None:
    columns, inner = groups.weights.shape
    posts = posts_of(work, (rows, columns))
    if posts is None:
        return None
    unpack = _KERNEL(address_of(groups.kind(1, 0)))
    pieces = cuts(columns, pool.pieces(2.0 * rows * columns * inner / PRODUCT_SPEED), 16)
    step = max(BLOCK // inner // 16, 1) * 16
    room = aligned(min(step, columns) * inner * ITEM)

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        data = view(inputs[0], (rows, inner), strides)
        output = outputs[0].reshape(rows, columns)
        on = posts.bind(inputs, output)
        calls = []
        for number, piece in enumerate(pieces):
            memory = scratch[number * room : (number + 1) * room].view(np.float32)
            some: list[Call] = []
            for start in range(piece.start, piece.stop, step):
                cut = slice(start, min(start + step, piece.stop))
                matrix = memory[: (cut.stop - start) * inner].reshape(-1, inner)
                some += [
                    partial(_unpack, unpack, _unpacking(groups, cut, matrix)),
                    partial(np.matmul, data, matrix.T, output[:, cut]),
                    *on((slice(None), cut)),
                ]
            calls.append(chain(some))
        return pool.call(calls)

    return Compiled(bind, room * len(pieces))


def _unpacking(groups: _Groups, cut: slice, matrix: Array) -> Array:
    """The arguments of a kernel that writes some rows of weights to a matrix."""
    own = dict(groups.arguments)
    for name, row in (("codes", "code_row"), ("scale", "scale_row"), ("zero", "zero_row")):
        own[name] = own.get(name, 0) + cut.start * own.get(row, 0)
    size = cut.stop - cut.start
    own |= {"columns": size, "chunk": size, "result": matrix.ctypes.data, "result_row": matrix.shape[1] * ITEM}
    return _array_of(own)


def _unpack(kernel: Any, arguments: Array) -> None:
    arguments[0] = 0
    kernel(arguments.ctypes.data)
