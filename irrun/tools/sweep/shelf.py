"""Models that a worker keeps ready for the next inputs, with the other side where they are compared."""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING

from irrun.records import dataclass
from irrun.run.executor import GraphExecutor

if TYPE_CHECKING:
    from irrun.tools.compare.sides.contract import Side

MOST_KEPT = 8
"""Models that are kept ready, at most."""

Made = tuple[GraphExecutor, "Side | None"]


@dataclass(slots=True)
class Kept:
    """A model that is ready, and the other side; both take about so many `bytes`.

    `prepared` is how many seconds that took, for who has asked for it first, and 0 for all others; `runs` counts them.
    """

    executor: GraphExecutor
    side: Side | None
    bytes: int
    prepared: float
    runs: int = 0

    def close(self) -> None:
        if self.side is not None:
            with suppress(Exception):  # whatever is left of it
                self.side.close()


class Shelf:
    """Models that were used last, up to `MOST_KEPT`, and up to as many bytes as a worker may have."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()
        self._given_up = 0

    def take(self, key: Hashable, bytes: int, most: int, make: Callable[[], Made]) -> Kept:
        """What goes by `key`, made where it is not there; others are given up for it."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            found.prepared = 0.0
            return found
        while self._kept and (
            len(self._kept) >= MOST_KEPT or bytes + sum(kept.bytes for kept in self._kept.values()) > most
        ):
            _, kept = self._kept.popitem(last=False)
            kept.close()
            self._given_up += kept.bytes
        if self._given_up > most // 4:
            gc.collect()  # executors are full of cycles, and their arrays are no concern of the collector's
            self._given_up = 0
        begin = perf_counter()
        executor, side = make()
        self._kept[key] = made = Kept(executor, side, bytes, perf_counter() - begin)
        return made

    def drop(self, key: Hashable) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            kept.close()
