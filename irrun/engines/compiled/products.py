"""Products with compressed weights: of a few rows from the codes as they are, of many with blocks made f32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from math import gcd, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from irrun.engines.axes import Sizes
from irrun.engines.compiled import post_kernel
from irrun.engines.compiled.code import LANES
from irrun.engines.compiled.compiler import compiled
from irrun.engines.compiled.decoding import STEP, bytes_of_step, is_possible, order_of
from irrun.engines.compiled.post_kernel import PostKind
from irrun.engines.compiled.posts import kernel_posts, operand_arguments
from irrun.engines.compiled.product_blocks import Blocks
from irrun.engines.compiled.product_code import BLOCK_WIDTH, FORM, ProductCode, ProductKind
from irrun.engines.compiled.product_few import FewRows
from irrun.engines.compiled.product_tiles import few_at_once, lanes, many_at_once
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import WAKING_SECONDS, Team
from irrun.engines.compressed import PACKED, CompressedWeights, numbers_of
from irrun.engines.extents import view
from irrun.engines.memory import ALIGNMENT, ITEM, aligned, data_address
from irrun.engines.onednn.library import DST, SRC, WEIGHTS
from irrun.engines.picking import picked
from irrun.engines.rows import rows_of
from irrun.engines.vectorized.posts import posts_of
from irrun.engines.work import Arrays, Call, Compiled, Work, chain
from irrun.records import dataclass
from irrun.spec.op import Array

if TYPE_CHECKING:
    from irrun.engines.onednn.library import Library

FEW = 8
"""Rows up to which a kernel reads codes for each few of them anew; from then on it is quicker to make them f32 once."""

MANY = 64
"""Rows from which on oneDNN, where it is, multiplies with weights that are made f32 for it, if that is quicker."""

NEAR = 1 << 20
"""Bytes of rows up to which it is not: they stay in the second cache, where our kernel reads them again and again."""

PANEL = 16 << 20
"""Bytes of f32 that are made for it at a time, about."""

CODE_SPEED = 20e9
"""Codes per second that one thread multiplies with one row, about."""

CHUNK = 64
"""Columns of weights that a thread takes at once."""

PART = 768
"""Elements of a column that are made f32 at once, about: with the rows that they meet they stay in the first cache."""

TILE = 16
"""Columns that a chunk has a multiple of: f32 of a cache line."""

NATURAL = (STEP,), (1,)
"""The way of rows whose numbers lie one after the other."""


@dataclass(frozen=True, slots=True)
class _Groups:
    """Weights [columns, inner] as `count` groups of codes a row; the arguments of kernels that say how they lie."""

    weights: CompressedWeights
    count: int
    steps: int
    arguments: dict[str, int]

    def packed(self, **own: int) -> Array:
        """The arguments of a call, those of the weights and its own, as kernels read them; what is not told is 0."""
        return FORM.of(**dict.fromkeys(FORM.names, 0) | self.arguments | own)

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
    if weights.type in PACKED:
        arguments["numbers"] = data_address(numbers_of(weights.type))
    for name, factor in factors.items():
        if factor is not None:
            arguments[name] = data_address(factor)
            arguments[f"{name}_row"] = prod(factor.shape[1:]) * ITEM if factor.shape[0] > 1 else 0
            arguments[f"{name}_group"] = ITEM if prod(factor.shape[1:]) > 1 else 0
    return _Groups(weights, count, size // STEP, arguments)


def _address_of(kind: ProductKind) -> int:
    """Where the machine code of a kernel lies."""
    made = ProductCode if not kind.rows else Blocks if kind.blocks else FewRows
    return compiled(kind, lambda function: made(function, kind).write())


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
    if rows <= FEW:
        made = _few(work, groups, rows, strides, team)
    else:
        far = rows >= MANY and rows * groups.weights.shape[1] * ITEM > NEAR
        made = (_panels(work, groups, rows, strides, team) if far else None) or _many(work, groups, rows, strides, team)
    if made is not None:
        made.wants, made.taken = wants, frozenset({1})
    return made


def picked_product(work: Work, team: Team) -> Compiled | None:
    """PickedProduct-0 of compressed matrices."""
    return picked(work, partial(matmul, team=team))


COMPRESSED = {"MatMul-1": matmul, "PickedProduct-0": picked_product}
"""For works of which an input is compressed."""


def _few(work: Work, groups: _Groups, rows: int, strides: tuple[int, int], team: Team) -> Compiled | None:
    """Every code is read for each few rows."""
    columns, inner = groups.weights.shape
    at_once, side = few_at_once(rows, groups.weights.type)
    kind = groups.kind(side, at_once)
    threads = team.count if rows * columns * inner / CODE_SPEED > WAKING_SECONDS else 1
    chunk = max(-(-columns // (4 * threads * TILE)), 1) * TILE
    return _compiled(work, groups, kind, rows, strides, {"chunk": chunk}, threads, team)


def _many(work: Work, groups: _Groups, rows: int, strides: tuple[int, int], team: Team) -> Compiled | None:
    """Codes are made f32 once for all rows."""
    columns = groups.weights.shape[0]
    arguments = dict(groups.arguments)
    if groups.count == 1:  # smaller groups of one scale
        steps = gcd(groups.steps, 4)
        arguments |= {"groups": groups.steps // steps, "steps": steps}
    size = STEP * arguments["steps"]
    parts = -(-arguments["groups"] * size // PART)
    part = -(-arguments["groups"] // parts)
    chunk = min(CHUNK, max(-(-columns // (team.count * TILE)), 1) * TILE)
    row = part * size * ITEM + ALIGNMENT
    room = {"chunk": chunk, "part": part, "room_row": row, "room_size": BLOCK_WIDTH * row}
    groups = replace(groups, arguments=arguments)
    at_once, side = many_at_once(rows)
    kind = replace(groups.kind(side, at_once), steps=arguments["steps"], blocks=True)
    return _compiled(work, groups, kind, rows, strides, room, team.count, team)


def _panels(work: Work, groups: _Groups, rows: int, strides: tuple[int, int], team: Team) -> Compiled | None:
    """Some columns of the weights after the other are made f32, and multiplied by oneDNN."""
    library = _onednn(team.count)
    posts = posts_of(work, (rows, groups.weights.shape[0]))
    if library is None or posts is None:
        return None
    columns, inner = groups.weights.shape
    panel = min(columns, max(PANEL // (inner * ITEM) // CHUNK, 1) * CHUNK)
    layout, copied = _ordered(inner, rows, strides, NATURAL)
    row = inner * ITEM if copied else strides[0]
    source = library.strided((rows, inner), (row, ITEM))
    if source is None:
        return None
    products = {}
    for size in {panel, columns % panel} - {0}:
        right = library.strided((inner, size), (ITEM, inner * ITEM))
        result = library.strided((rows, size), (columns * ITEM, ITEM))
        if right is None or result is None:
            return None
        product = library.primitive("matmul", source, right, None, result)
        if product is None:
            return None
        products[size] = product, right, result
    kind = replace(groups.kind(1, 0), steps=groups.steps, blocks=True)
    address = _address_of(kind)
    values = aligned(panel * inner * ITEM)
    scratch_size = aligned(max(product.scratch for product, _, _ in products.values()))

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        first, data = layout(inputs[0], scratch)
        output = outputs[0].reshape(rows, columns)
        made = scratch[copied : copied + values]
        room = scratch[copied + values :]
        calls = list(first)
        for start in range(0, columns, panel):
            size = min(panel, columns - start)
            own = {"columns": size, "chunk": min(CHUNK, -(-size // team.count))}
            own |= {"result": data_address(made), "result_row": inner * ITEM}
            for name, step in (("codes", "code_row"), ("scale", "scale_row"), ("zero", "zero_row")):
                own[name] = groups.arguments.get(name, 0) + start * groups.arguments.get(step, 0)
            array = groups.packed(**own)
            seconds = size * inner / CODE_SPEED
            calls.append(Kernel(team, address, array, (groups.weights, made), shared=True, seconds=seconds))
            product, right, result = products[size]
            read = [(SRC, source, data), (WEIGHTS, right, made), (DST, result, output[:, start : start + size])]
            calls.append(product.bind(read, room))
        return chain([*calls, *posts.bind(inputs, output)(...)])

    return Compiled(bind, copied + values + scratch_size)


def _ordered(
    inner: int, rows: int, strides: tuple[int, int], way: tuple[Sizes, Sizes]
) -> tuple[Callable[[Any, Any], tuple[list[Call], Array]], int]:
    """What gives calls that lay rows in a way that `order_of` tells, and these, in so many bytes at the start of
    scratch."""
    sizes, between = way
    order = (rows, inner // STEP, *sizes)
    steps = (strides[0], *(number * strides[1] for number in (STEP, *between)))
    copied = aligned(rows * inner * ITEM) if len(sizes) > 1 or strides[1] != ITEM else 0

    def lay(array: Any, scratch: Any) -> tuple[list[Call], Array]:
        data = view(array, order, steps)
        if not copied:
            return [], data
        dense = scratch[: rows * inner * ITEM].view(np.float32).reshape(order)
        return [partial(np.copyto, dense, data)], dense

    return lay, copied


@cache
def _onednn(threads: int) -> Library | None:
    from irrun.engines.onednn.library import open_library

    return open_library(threads)


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
    layout, copied = _ordered(inner, rows, strides, NATURAL if kind.blocks else order_of(kind.type))

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        first, data = layout(inputs[0], scratch)
        row = inner * ITEM if copied else strides[0]
        output = outputs[0].reshape(rows, columns)
        told = {"data": data_address(data), "data_row": row, "rows": rows}
        told |= {"result": data_address(output), "result_row": columns * ITEM}
        if kind.blocks:
            told["room"] = data_address(scratch[copied:])
        behind = None
        if posts.posts:
            lying = {name: told[name] for name in ("rows", "result", "result_row")}
            behind = posts.form.of(**lying, **operand_arguments(posts.posts, operands, inputs, post_kernel.AXES))
            told |= {"posts": post_kernel.address_of(posts), "posts_arguments": data_address(behind)}
        held = (groups.weights, data, output, scratch, behind, inputs)
        array, seconds = groups.packed(**sizes, **told), rows * columns * inner / CODE_SPEED
        counted = FORM.place("room"), told.get("room", 0)
        team.expect_steps()
        kernel = Kernel(team, address, array, held, shared=threads > 1, seconds=seconds, counted=counted, beside=False)
        return chain([*first, kernel, *rest.bind(inputs, output)(...)])

    return Compiled(bind, copied + threads * sizes.get("room_size", 0))
