"""How what attention of many rows is compiled to is told what to do, and where it keeps what."""

from __future__ import annotations

from irrun.engines.compiled import amx, bf16
from irrun.engines.compiled.code import LANES, LINE, Form, vectors_of
from irrun.engines.compiled.compiler import features
from irrun.engines.memory import ITEM
from irrun.engines.placement import is_x86
from irrun.records import dataclass

KEYS = 256
"""Keys of a block: with their values they stay in the second cache while all rows go over them."""

TILE, TILE_WIDE = (6, 1), (12, 2)
"""Rows and vectors of columns whose sums are in registers, of which there are 16, or 32 where they are wide."""

TILED = (2 * LANES, 2)
"""The same where they are in four tiles of the processor."""

HEAD = ("query", "key", "value", "mask", "sink", "result")
"""Addresses of a head, one after the other in memory as u64."""

FORM = Form(
    (
        *("items", "room", "room_size", "heads", "blocks", "block", "rows", "keys", "factor", "ends"),
        *("query_row", "key_row", "value_row", "mask_row", "sink_row", "result_row"),
    )
)
"""`items` are blocks of `block` rows, of which each head has `blocks`. `heads` points to the addresses of each
head, and `ends` to the number of keys that matter for each row, as i64. `factor` is an f32. Strides are in bytes. The
first thread has `room_size` bytes at `room` for itself, and the next one those behind: the kernel changes that."""


@dataclass(frozen=True, slots=True)
class FlashKind:
    """What a kernel is compiled for: f32 or bf16, elements of a key and of a value, the type of the mask (None: there
    is none), whether there is a sink, and row i sees the keys up to i, rows and vectors of columns that are computed at
    once, and keys of a block."""

    type: str
    size: int
    width: int
    mask: str | None
    sink: bool
    causal: bool
    tile: tuple[int, int]
    keys: int

    def room_size(self, rows: int) -> int:
        """Bytes that a thread needs for blocks of so many rows, which are whole tiles."""
        return self.rows_at + rows * self.row_size

    @property
    def steps(self) -> int:
        """Lines that the elements of a key fill, those of the last one with zeros behind them."""
        return -(-self.size * (ITEM if self.type == "f32" else ITEM // 2) // LINE)

    @property
    def scores_row(self) -> int:
        """Bytes from row to row of scores; not a power of 2, for which caches have few places."""
        return self.keys * ITEM + LINE

    @property
    def values_at(self) -> int:
        """Where values begin in the memory of a thread, behind keys; then come scores of a tile, then rows."""
        return self.keys * (self.size * ITEM if self.type == "f32" else self.steps * LINE)

    @property
    def scores_at(self) -> int:
        return self.values_at + self.keys * vectors_of(self.width) * (LINE if self.type == "f32" else LINE // 2)

    @property
    def rows_at(self) -> int:
        return self.scores_at + self.tile[0] * self.scores_row

    @property
    def sums_at(self) -> int:
        """Where sums of values begin in the memory of a row, behind the query; then come those of weights, numbers."""
        return self.steps * LINE

    @property
    def total_at(self) -> int:
        return self.sums_at + vectors_of(self.width) * LINE

    @property
    def peak_at(self) -> int:
        return self.total_at + LINE

    @property
    def scale_at(self) -> int:
        return self.peak_at + ITEM

    @property
    def less_at(self) -> int:
        return self.scale_at + ITEM

    @property
    def edge_at(self) -> int:
        return self.peak_at + LINE

    @property
    def row_size(self) -> int:
        return self.edge_at + LINE


def tile(type: str) -> tuple[int, int] | None:
    """Rows and vectors of columns that are computed at once; None where there are no instructions for a type."""
    if type != "f32":
        wide = TILED if amx.is_there() else TILE_WIDE
        return wide if type == "bf16" and bf16.is_made() else None
    if "avx512f" in features():
        return TILE_WIDE
    return None if is_x86() and "fma" not in features() else TILE
