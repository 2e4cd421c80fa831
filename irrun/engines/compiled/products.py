"""Products with compressed weights: of a few rows from the codes as they are, of more with some of them made f32, or
bf16 where they may be rounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import gcd, prod
from typing import Any

import numpy as np

from irrun.engines.compiled import post_kernel
from irrun.engines.compiled.bf16 import is_made, item_of
from irrun.engines.compiled.code import LANES
from irrun.engines.compiled.compiler import compiled
from irrun.engines.compiled.decoding import STEP, bytes_of_step, is_possible, order_of
from irrun.engines.compiled.post_kernel import PostKind
from irrun.engines.compiled.posts import kernel_posts, operand_arguments
from irrun.engines.compiled.product_blocks import Blocks
from irrun.engines.compiled.product_code import BLOCK_WIDTH, FORM, ProductCode, ProductKind
from irrun.engines.compiled.product_few import FewRows
from irrun.engines.compiled.product_panels import TERMS, Panels
from irrun.engines.compiled.product_rows import NATURAL, Rows
from irrun.engines.compiled.product_tiles import few_at_once, lanes, many_at_once, panels_at_once, rows_of_panels
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import WAKING_SECONDS, Team
from irrun.engines.compressed import PACKED, CompressedWeights, numbers_of
from irrun.engines.memory import ALIGNMENT, ITEM, data_address
from irrun.engines.picking import picked
from irrun.engines.rows import rows_of
from irrun.engines.vectorized.posts import posts_of
from irrun.engines.work import Arrays, Call, Compiled, Work, chain
from irrun.records import dataclass
from irrun.spec.op import Array

FEW = 8
"""Rows up to which a kernel reads codes for each few of them anew. From then on it is quicker to make them numbers
once: f32 in blocks or, for more rows, panels, and bf16 in panels."""

CODE_SPEED = 20e9
"""Codes per second that one thread multiplies with one row, about."""

CHUNK = 64
"""Columns of weights that a thread takes at once."""

PART = 768
"""Elements of a column that are made f32 at once, about: with the rows that they meet they stay in the first cache."""

PANEL_PART = 1024
"""Lines of a panel that are made numbers at once, about: with the codes of the next one, and some rows, they stay in
the second cache."""

TILE = 16
"""Columns that a chunk has a multiple of: f32 of a cache line."""


@dataclass(frozen=True, slots=True)
class _Groups:
    """Weights [columns, inner] as `count` groups of codes a row; the arguments of kernels that say how they lie.

    `numbers` are those that codes which share bytes stand for. Kernels know only where they are: who binds one holds
    all of this.
    """

    weights: CompressedWeights
    numbers: Array | None
    count: int
    steps: int
    arguments: dict[str, int]

    def packed(self, **own: int) -> Array:
        """The arguments of a call, those of the weights and its own, as kernels read them; what is not told is 0."""
        return FORM.of(**dict.fromkeys(FORM.names, 0) | self.arguments | own)

    def parted(self) -> _Groups:
        """The same with smaller groups of one scale, where there is one of a row."""
        if self.count > 1:
            return self
        steps = gcd(self.steps, 4)
        count = self.steps // steps
        return replace(self, count=count, steps=steps, arguments=self.arguments | {"groups": count, "steps": steps})

    def part(self, most: int) -> int:
        """How many groups have about so many elements at most, where all parts of a row are of one size."""
        return -(-self.count // -(-self.count * self.steps * STEP // most))

    def kind(self, columns: int, rows: int) -> ProductKind:
        weights = self.weights
        return ProductKind(
            weights.type,
            weights.scale is not None,
            weights.zero is not None,
            columns,
            rows,
            self.steps if self.count > 1 else 0,
            lanes=lanes(),
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
        "codes": data_address(weights.codes),
        "code_row": inner // STEP * step,
        "groups": count,
        "steps": size // STEP,
    }
    numbers = numbers_of(weights.type) if weights.type in PACKED else None
    if numbers is not None:
        arguments["numbers"] = data_address(numbers)
    for name, factor in factors.items():
        if factor is not None:
            arguments[name] = data_address(factor)
            arguments[f"{name}_row"] = prod(factor.shape[1:]) * ITEM if factor.shape[0] > 1 else 0
            arguments[f"{name}_group"] = ITEM if prod(factor.shape[1:]) > 1 else 0
    return _Groups(weights, numbers, count, size // STEP, arguments)


WAYS: dict[str, Callable[[Any, ProductKind], ProductCode]] = {"few": FewRows, "blocks": Blocks, "panels": Panels}


def _address_of(kind: ProductKind) -> int:
    """Where the machine code of a kernel lies."""
    return compiled(kind, lambda function: WAYS[kind.way](function, kind).write())


def matmul(work: Work, team: Team) -> Compiled | None:
    """MatMul-1 of f32 rows and compressed weights [columns, inner]."""
    left, right = work.required(2)
    weights, found = right.compressed, None if left.compressed is not None else rows_of(work)
    if weights is None or found is None or not work.attrs["transpose_b"]:
        return None
    groups = _groups(weights)
    if groups is None or any(operand is not None and operand.compressed for operand in work.inputs[2:]):
        return None
    rows, strides, wants = found
    least = FEW + 1 if weights.rounded and is_made() else rows_of_panels()
    way = _few if rows <= FEW else _blocks if rows < least else _panels
    made = way(work, groups, rows, strides, team)
    if made is not None:
        made.wants, made.taken = wants, frozenset({1})
    return made


def narrow_rows(work: Work, team: Team) -> Compiled | None:
    """MatMul-1 of a few rows of bf16 with weights of bf16 [columns, inner], which the engine has made sure of."""
    right, output = work.required(2)[1], work.outputs[0]
    if right.value is None or output.type not in ("bf16", "f32") or not is_made():
        return None
    (columns, inner), rows = right.shape, prod(output.shape[:-1])
    weights = CompressedWeights("bf16", right.value.reshape(-1).view(np.uint8), right.shape, right.shape)
    groups = _groups(weights)
    assert groups is not None, "columns are whole steps"
    size, side = few_at_once(rows, weights.type)
    kind = replace(groups.kind(side, size), rows_type="bf16", result_type=output.type)
    address, (threads, chunk) = _address_of(kind), _shared(groups, rows, team)
    sizes = {"chunk": chunk, "rows": rows}
    sizes |= {"data_row": inner * item_of("bf16"), "result_row": columns * item_of(output.type)}

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        places = {"data": data_address(inputs[0]), "result": data_address(outputs[0])}
        held, seconds = (groups, inputs[0], outputs[0]), rows * columns * inner / CODE_SPEED
        team.expect_steps()
        array, shared = groups.packed(**sizes, **places), threads > 1
        return Kernel(team, address, array, held, shared=shared, seconds=seconds, beside=False)

    return Compiled(bind, taken=frozenset({1}))


def picked_product(work: Work, team: Team) -> Compiled | None:
    """PickedProduct-0 of compressed matrices."""
    return picked(work, partial(matmul, team=team))


COMPRESSED = {"MatMul-1": matmul, "PickedProduct-0": picked_product}
"""For works of which an input is compressed."""


def _few(work: Work, groups: _Groups, rows: int, strides: tuple[int, int], team: Team) -> Compiled | None:
    """Every code is read for each few rows."""
    at_once, side = few_at_once(rows, groups.weights.type)
    threads, chunk = _shared(groups, rows, team)
    return _compiled(work, groups, groups.kind(side, at_once), rows, strides, {"chunk": chunk}, threads, team)


def _shared(groups: _Groups, rows: int, team: Team) -> tuple[int, int]:
    """How many threads go over codes for a few rows, and the columns that each takes at once."""
    columns, inner = groups.weights.shape
    threads = team.count if rows * columns * inner / CODE_SPEED > WAKING_SECONDS else 1
    return threads, max(-(-columns // (4 * threads * TILE)), 1) * TILE


def _blocks(work: Work, groups: _Groups, rows: int, strides: tuple[int, int], team: Team) -> Compiled | None:
    """Codes of some columns are made f32 once for all rows."""
    columns, groups = groups.weights.shape[0], groups.parted()
    size = STEP * groups.steps
    part = groups.part(PART)
    chunk = min(CHUNK, max(-(-columns // (team.count * TILE)), 1) * TILE)
    row = part * size * ITEM + ALIGNMENT
    room = {"chunk": chunk, "part": part, "room_row": row, "room_size": BLOCK_WIDTH * row}
    at_once, side = many_at_once(rows)
    kind = replace(groups.kind(side, at_once), steps=groups.steps, way="blocks")
    return _compiled(work, groups, kind, rows, strides, room, team.count, team)


def _panels(work: Work, groups: _Groups, rows: int, strides: tuple[int, int], team: Team) -> Compiled | None:
    """The same of so many columns, term by term, that one element of a row meets several vectors of them."""
    (columns, inner), groups = groups.weights.shape, groups.parted()
    size, code_row = STEP * groups.steps, groups.arguments["code_row"]
    type = "bf16" if groups.weights.rounded and is_made() else "f32"
    part = groups.part(PANEL_PART * TERMS[type])
    at_once, side = panels_at_once(rows, columns, team.count)
    room = {"chunk": side, "part": part, "room_size": side * part * size * item_of(type), "ahead": side * team.count}
    room["pace"] = -(-side * code_row * TERMS[type] // (-(-rows // at_once) * inner))
    kind = groups.kind(side, at_once)
    kind = replace(kind, steps=0, way="panels", rows_type=type)  # which is the same for groups of all sizes
    return _compiled(work, groups, kind, rows, strides, room, team.count, team)


def _compiled(
    work: Work,
    groups: _Groups,
    kind: ProductKind,
    rows: int,
    strides: tuple[int, int],
    sizes: dict[str, int],
    threads: int,
    team: Team,
) -> Compiled | None:
    columns, inner = groups.weights.shape
    # of columns that are no whole vectors the last ones may be computed once more by who takes the last chunk
    own, operands = kernel_posts(work, (rows, columns)) if columns % LANES == 0 else ((), ())
    rest = posts_of(replace(work, posts=work.posts[len(own) :]), (rows, columns))
    if rest is None:
        return None
    address, posts = _address_of(kind), PostKind(own)
    read = Rows(rows, inner, strides, NATURAL if kind.way != "few" else order_of(kind.type), kind.rows_type)

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        first, data = read.bind(team, inputs[0], scratch)
        output = outputs[0].reshape(rows, columns)
        told = {"data": data_address(data), "data_row": read.row, "rows": rows}
        told |= {"result": data_address(output), "result_row": columns * ITEM}
        if kind.way != "few":
            told["room"] = data_address(scratch[read.room :])
        behind = None
        if posts.posts:
            lying = {name: told[name] for name in ("result", "result_row")}
            behind = posts.form.of(**lying, **operand_arguments(posts.posts, operands, inputs, post_kernel.AXES))
            told |= {"posts": post_kernel.address_of(posts), "posts_arguments": data_address(behind)}
        held = (groups, data, output, scratch, behind, inputs)
        array, seconds = groups.packed(**sizes, **told), rows * columns * inner / CODE_SPEED
        counted = FORM.place("room"), told.get("room", 0)
        team.expect_steps()
        shared, beside = threads > 1, kind.way != "few"
        kernel = Kernel(team, address, array, held, shared=shared, seconds=seconds, counted=counted, beside=beside)
        return chain([*first, kernel, *rest.bind(inputs, output)(...)])

    return Compiled(bind, read.room + threads * sizes.get("room_size", 0))
