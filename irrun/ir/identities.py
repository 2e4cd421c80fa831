"""Which layers of a graph ids stand for: also where a layer has none that can be read, or that of another one."""

from __future__ import annotations

from dataclasses import field

from irrun.ir.graph import Layer
from irrun.records import dataclass

MAX_LOOSE = 100
"""Layers whose id nobody knows that are looked for, and of one id."""


@dataclass(eq=False, repr=False, slots=True)
class Identities:
    """`layers` by their ids, or by those that edges name in place of these.

    Of each group of `loose` ones nobody knows the id of one, which cannot be read, or is that of the others. Which
    layer is meant by the id of a `doubtful` one nobody knows.
    """

    layers: dict[int, Layer]
    loose: list[list[Layer]] = field(default_factory=list)
    doubtful: set[Layer] = field(default_factory=set)

    def find(self, id: int, type: str) -> Layer | None:
        """The layer of an id: one of `type`, where there are several that may be meant."""
        found = self.layers.get(id)
        if found is not None and (found.type == type or found not in self.doubtful):
            return found
        for group in self.loose[:MAX_LOOSE]:
            fitting = (layer for layer in group[:MAX_LOOSE] if layer.type == type and (not found or layer.id == id))
            layer = next(fitting, None)
            if layer is not None and found is None:  # it has this id from now on, and is looked for no more
                self.loose.remove(group)
                self.layers[id] = layer
            if layer is not None:
                return layer
        return found
