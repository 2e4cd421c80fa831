"""Embedding bags on numpy: rows of a table, taken block by block into the cache and summed there, bags by length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import is_dense
from irrun.engines.threads import Threads, cuts
from irrun.engines.vectorized.posts import with_posts
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.records import dataclass
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array

BLOCK = 1 << 20
"""Bytes of rows that are taken at once: with their sums they stay in the cache of a core."""

MAX_ROWS = 1 << 13
"""Rows that are taken at once where they are short: their indices have to stay in the cache as well."""

PIECE = 64
"""Rows that are summed one after the other; longer bags are summed in pieces, which threads share."""

SHARED = 1 << 23
"""Bytes of rows from which on blocks are shared among threads: fewer are summed sooner than that is arranged."""

TYPES = {
    "f16": "f32",
    **{type: type for type in ("f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")},
}
"""The element types of tables, and those in which their rows are summed."""

PRODUCT_COLUMNS = 8
"""The fewest columns with which a product of weights and rows is quicker than to add row after row."""

Found = tuple[Array, Array, Array, Array | None]
"""Where bags start in the indices, how many indices they have, the indices and their weights."""

Find = Callable[[Sequence[Any], int], Found]
"""Finds the bags in the inputs of an op, in each call, given how many there are."""


def embedding_bags(work: Work, threads: Threads, find: Find, default: int | None) -> Compiled | None:
    """An op that sums bags, as `find` finds them. The input of number `default` says which row an empty bag is."""
    (table, places), own = work.required(2), len(work.own)
    mean = work.attrs.get("reduction") == "mean"
    if table.type not in TYPES:
        return None
    wide, stored = numpy_dtype(TYPES[table.type]), numpy_dtype(table.type)
    if not all(operand is None or is_dense(operand) for operand in work.own) or (mean and wide.kind != "f"):
        return None
    columns, count = prod(table.shape[1:]), prod(places.shape)
    widened = stored != wide and table.shape[0] < count  # as a whole, else each row as it is taken
    table_bytes = prod(table.shape) * wide.itemsize if widened else 0
    sizes = _Sizes(columns, wide, wide if widened else stored, count, threads.count)

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> list[Call]:
        given_rows, target = inputs[0].reshape(-1, columns), outputs[0].reshape(-1, columns)
        rows = scratch[:table_bytes].view(wide).reshape(-1, columns) if widened else given_rows
        parts = cuts(len(rows), threads.pieces(rows.size * 2e-9)) if widened else []
        widen = threads.call([partial(np.copyto, rows[part], given_rows[part]) for part in parts])
        pool = _Pool(sizes, scratch[table_bytes:], threads)
        given = inputs[:own]
        filler: Any = None if default is None or default >= own else inputs[default]

        def call() -> None:
            starts, counts, indices, weights = find(given, len(target))
            number = -1 if filler is None else int(filler)
            pool.default = None if number < 0 else given_rows[number]
            if widened:
                widen()
            bags = Bags(starts, counts, np.arange(len(counts)), counts if mean else None)
            pool.reduce(rows, indices, weights, bags, target)

        return [call]

    return with_posts(work, bind, table_bytes + sizes.scratch)


def _segments(inputs: Sequence[Any], count: int) -> Found:
    indices, ids = inputs[1:3]
    weights = inputs[5] if len(inputs) > 5 else None
    if (ids[1:] < ids[:-1]).any():
        order = _stable_order(ids, count)
        indices = indices[order]
        weights = None if weights is None else weights[order]
    counts = np.bincount(ids, minlength=count)
    return np.cumsum(counts) - counts, counts, indices, weights


def _stable_order(ids: Array, count: int) -> Array:
    """The order of integers in [0, count), by digits of 16 bits: for these numpy has a radix sort."""
    order = np.argsort(ids.astype(np.uint16), kind="stable")
    for shift in range(16, count.bit_length(), 16):
        order = order[np.argsort((ids >> shift).astype(np.uint16)[order], kind="stable")]
    return order


def _offsets(inputs: Sequence[Any], _: int) -> Found:
    indices, offsets = inputs[1:3]
    starts = offsets.astype(np.intp, copy=False)
    counts = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=counts[:-1])
    counts[-1] = len(indices) - starts[-1]
    return starts, counts, indices, inputs[4] if len(inputs) > 4 else None


def _packed(inputs: Sequence[Any], _: int) -> Found:
    indices = inputs[1]
    batch, length = indices.shape
    weights = inputs[2] if len(inputs) > 2 else None
    starts = np.arange(0, batch * length, length)
    return starts, np.full(batch, length), indices.reshape(-1), None if weights is None else weights.reshape(-1)


@dataclass(slots=True, eq=False)
class _Sizes:
    """How the scratch is cut: first come the sums of the pieces of long bags, of those pieces' pieces, and so on.

    Behind them lie, for each thread, a block of rows in the type of sums, its sums, and the rows as they are stored.
    A block has `most` rows, or a few more; `rows` is what it is given room for.
    """

    columns: int
    wide: np.dtype[Any]
    stored: np.dtype[Any]
    count: int
    threads: int
    most: int = field(init=False)
    rows: int = field(init=False)
    parts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.most = min(max(BLOCK // (self.columns * self.wide.itemsize), 1), MAX_ROWS)
        self.rows = min(self.most, self.count) + PIECE
        self.parts = rooms_for_pieces(self.count)

    @property
    def rooms(self) -> list[tuple[int, np.dtype[Any]]]:
        """The rows and the type of each part of the scratch."""
        stored = 0 if self.stored == self.wide else self.rows
        each = [(self.rows, self.wide), (self.rows, self.wide), (stored, self.stored)]
        return [*((count, self.wide) for count in self.parts), *each * self.threads]

    @property
    def scratch(self) -> int:
        return self.columns * sum(rows * dtype.itemsize for rows, dtype in self.rooms)


@dataclass(slots=True, eq=False)
class Bags:
    """Bag i has `counts[i]` indices from `starts[i]` on; its sum, over any divisor it has, goes to `places[i]`."""

    starts: Array
    counts: Array
    places: Array
    divisors: Array | None

    def __getitem__(self, which: Any) -> Bags:
        divisors = None if self.divisors is None else self.divisors[which]
        return Bags(self.starts[which], self.counts[which], self.places[which], divisors)


Sum = Callable[[Array, Array, "Array | None", Bags, Array], object]
"""Sums `table[indices]` times the weights, bag by bag, into rows of a target: of bags of a piece at most."""


def sum_pieces(
    add: Sum,
    parts: Sequence[Array],
    table: Array,
    indices: Array,
    weights: Array | None,
    bags: Bags,
    target: Array,
) -> None:
    """Sum bags of any length by `add`: those of more than a piece as bags of the sums of their pieces.

    These are put into `parts`: the first for pieces, the next one for the pieces that these sums are taken in, and on.
    """
    if bags.counts.max() <= PIECE:
        add(table, indices, weights, bags, target)
        return
    long = bags.counts > PIECE
    add(table, indices, weights, bags[~long], target)
    bags = bags[long]
    pieces = -(-bags.counts // PIECE)
    ends = np.cumsum(pieces)
    before = ends - pieces
    total = int(ends[-1])
    done = PIECE * (np.arange(total) - np.repeat(before, pieces))
    lengths = np.minimum(np.repeat(bags.counts, pieces) - done, PIECE)
    sums = parts[0][:total]
    add(table, indices, weights, Bags(np.repeat(bags.starts, pieces) + done, lengths, np.arange(total), None), sums)
    rest = replace(bags, starts=before, counts=pieces)
    sum_pieces(add, parts[1:], sums, np.arange(total), None, rest, target)


def rooms_for_pieces(count: int) -> list[int]:
    """The most sums of pieces that there can be among `count` indices, and of pieces of these sums, and so on."""
    rooms: list[int] = []
    while count > PIECE:
        count = 2 * count // PIECE  # a bag that is cut has more than one piece, all but the last one whole
        rooms.append(count)
    return rooms


class _Pool:
    """Sums the rows of bags. `default` is the row of an empty one, None if that is zeros."""

    def __init__(self, sizes: _Sizes, scratch: Array, threads: Threads) -> None:
        self.default: Array | None = None
        self.threads, self.most = threads, sizes.most
        self.columns, self.wide = sizes.columns, sizes.wide
        self.product = sizes.wide.kind == "f" and sizes.columns >= PRODUCT_COLUMNS
        rooms, begin = [], 0
        for rows, dtype in sizes.rooms:
            end = begin + rows * sizes.columns * dtype.itemsize
            rooms.append(scratch[begin:end].view(dtype).reshape(rows, sizes.columns))
            begin = end
        own = rooms[len(sizes.parts) :]
        self.parts, self.rows, self.sums, self.stored = rooms[: len(sizes.parts)], own[::3], own[1::3], own[2::3]
        self.ones = np.ones(PIECE, sizes.wide)

    def reduce(self, table: Array, indices: Array, weights: Array | None, bags: Bags, target: Array) -> None:
        """Sum `table[indices]` times the weights, bag by bag, into rows of `target`."""
        sum_pieces(self._sum, self.parts, table, indices, weights, bags, target)

    def _sum(self, table: Array, indices: Array, weights: Array | None, bags: Bags, target: Array) -> None:
        """The same for bags of a piece at most: the longest first, so that those of a block have the same length."""
        bags = bags[(PIECE - bags.counts).astype(np.uint8).argsort(kind="stable")]  # a radix sort
        filled = int(np.count_nonzero(bags.counts))
        ends = bags.counts[:filled].cumsum()
        total = int(ends[-1]) if filled else 0
        ends_of_blocks = ends.searchsorted(np.arange(self.most, total, self.most)).tolist()
        blocks = [*pairwise(dict.fromkeys((0, *ends_of_blocks, filled)))]
        empty = bags.places[filled:]
        step = self.most
        fills = [empty[begin : begin + step] for begin in range(0, len(empty), step)]

        def sum_block(number: int, thread: int) -> None:
            if number >= len(blocks):
                target[fills[number - len(blocks)]] = 0 if self.default is None else self.default
                return
            block = bags[slice(*blocks[number])]
            longest = int(block.counts[0])
            if self.product and longest == block.counts[-1] > 1:
                sums = self._product(table, indices, weights, block.starts, longest, thread)
            else:
                sums = self._added(table, indices, weights, block.starts, block.counts, thread)
            if block.divisors is not None:
                np.divide(sums, block.divisors.astype(self.wide)[:, None], out=sums)
            target[block.places] = sums

        def sum_all() -> None:
            for number in range(pieces):
                sum_block(number, 0)

        pieces = len(blocks) + len(fills)
        if (total + len(empty)) * self.columns * self.wide.itemsize > SHARED:
            self.threads.run(sum_block, pieces)
        else:
            self.threads.alone(sum_all)()

    def _product(
        self, table: Array, indices: Array, weights: Array | None, starts: Array, length: int, thread: int
    ) -> Array:
        """The sums of bags of one length, as products of their weights and their rows."""
        rows = self._taken(table, _windows(indices, length)[starts].view(indices.dtype), thread)
        count = len(starts)
        sums = self.sums[thread][:count]
        if weights is None:
            factors = self.ones[:length]
        else:
            factors = _windows(weights, length)[starts].view(weights.dtype).astype(self.wide, copy=False)
        np.matmul(
            factors.reshape(-1, 1, length),
            rows.reshape(count, length, self.columns),
            out=sums.reshape(count, 1, self.columns),
        )
        return sums

    def _added(
        self, table: Array, indices: Array, weights: Array | None, starts: Array, counts: Array, thread: int
    ) -> Array:
        """The sums of bags that become shorter: the first rows of all, then the second ones of those that have one."""
        longest = int(counts[0])
        if longest == counts[-1]:
            alive = np.full(longest, len(starts))
            places = (np.arange(longest)[:, None] + starts).reshape(-1)
        else:
            alive = np.bincount(counts)[:0:-1].cumsum()[::-1]  # bags of k + 1 rows or more
            places = starts.take(np.arange(alive.sum()) - np.repeat(alive.cumsum() - alive, alive))
            places += np.repeat(np.arange(longest), alive)
        rows = self._taken(table, indices.take(places), thread)
        if weights is not None:
            np.multiply(rows, weights.take(places).astype(self.wide, copy=False)[:, None], out=rows)
        sums = rows[: len(starts)]
        for begin, end in pairwise(accumulate(alive.tolist())):
            part = sums[: end - begin]
            np.add(part, rows[begin:end], out=part)
        return sums

    def _taken(self, table: Array, indices: Array, thread: int) -> Array:
        """Rows of a table in the type of sums."""
        rows = self.rows[thread][: len(indices)]
        if table.dtype == rows.dtype:
            return table.take(indices, 0, rows, "clip")  # the other modes copy `out`
        stored = table.take(indices, 0, self.stored[thread][: len(indices)], "clip")
        np.copyto(rows, stored)
        return rows


def _windows(array: Array, length: int) -> Array:
    """Each run of `length` elements as one element, for numpy to copy it at once."""
    step = array.itemsize
    run = np.dtype((np.void, length * step))
    return np.ndarray((len(array) - length + 1,), run, array, 0, (step,))


FINDERS: dict[str, tuple[Find, int | None]] = {
    "EmbeddingSegmentsSum-3": (_segments, 4),
    **dict.fromkeys(("EmbeddingBagOffsetsSum-3", "EmbeddingBagOffsets-15"), (_offsets, 3)),
    **dict.fromkeys(("EmbeddingBagPackedSum-3", "EmbeddingBagPacked-15"), (_packed, None)),
}
"""What finds the bags of an op, and the number of the input that says which row an empty one is."""

COMPILERS = {name: partial(embedding_bags, find=find, default=default) for name, (find, default) in FINDERS.items()}
