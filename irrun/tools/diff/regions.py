"""Layers without a partner, as regions: those that hang together, with those that stand in their place on the other
side. What is told of them is the matter of accounts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from irrun.records import dataclass
from irrun.tools.diff.view import Node, View

Slot = tuple[Node, int]
"""An input of a node of the first graph that has a partner."""


@dataclass(eq=False, slots=True)
class Region:
    """Nodes of both graphs that stand in each other's place, in order; `slots` are the inputs that read from them."""

    before: list[Node] = field(default_factory=list)
    after: list[Node] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)

    @property
    def constant(self) -> bool:
        """Whether it is all constant, on both sides."""
        return all(node.constant for node in (*self.before, *self.after))


class _Sets:
    """Which things hang together."""

    def __init__(self) -> None:
        self._above: dict[Node | Slot, Node | Slot] = {}

    def root(self, item: Node | Slot) -> Node | Slot:
        above = self._above
        while above.setdefault(item, item) is not item:
            above[item] = item = above[above[item]]
        return item

    def join(self, one: Node | Slot, other: Node | Slot) -> None:
        self._above[self.root(one)] = self.root(other)


def regions_of(before: View, after: View, partner: Mapping[Node, Node]) -> list[Region]:
    """The regions of two graphs, in the order of the layers that read from them."""
    sets = _Sets()
    slots: dict[tuple[int, int], Slot] = {}
    links = [
        (node, target, first)
        for view, first in ((before, True), (after, False))
        for node, target in _links(view, partner, first, slots)
    ]
    for node, target, _ in links:
        if not _is_leaf(node):
            sets.join(node, target)
        else:
            sets.root(target)
    regions: dict[Node | Slot, Region] = {}
    members: set[tuple[int, Node]] = set()

    def add(place: Node | Slot, node: Node, first: bool) -> None:
        root = sets.root(place)
        region = regions.setdefault(root, Region())
        if (id(region), node) not in members:
            members.add((id(region), node))
            (region.before if first else region.after).append(node)

    for view, first in ((before, True), (after, False)):
        for node in view.nodes:
            if node not in partner and node.layer.type != "Result" and not _is_leaf(node):
                add(node, node, first)
    for node, target, first in links:
        if _is_leaf(node):
            add(target, node, first)
    for slot in slots.values():
        regions[sets.root(slot)].slots.append(slot)
    for region in regions.values():
        region.before.sort(key=lambda node: node.number)
        region.after.sort(key=lambda node: node.number)
        region.slots.sort(key=_slot_rank)
    return sorted(_merged(regions.values()), key=_rank)


def _merged(regions: Iterable[Region]) -> Iterable[Region]:
    """The regions, those of the same nodes as one."""
    found: dict[tuple[tuple[Node, ...], tuple[Node, ...]], Region] = {}
    for region in regions:
        first = found.setdefault((tuple(region.before), tuple(region.after)), region)
        if first is not region:
            first.slots = sorted([*first.slots, *region.slots], key=_slot_rank)
    return found.values()


def _slot_rank(slot: Slot) -> tuple[int, int]:
    return slot[0].number, slot[1]


def _rank(region: Region) -> tuple[int, ...]:
    if region.slots:
        return region.slots[0][0].number, region.slots[0][1], 0
    return min((node.number for node in region.before or region.after), default=0), 0, 1


def _links(
    view: View, partner: Mapping[Node, Node], first: bool, slots: dict[tuple[int, int], Slot]
) -> Iterator[tuple[Node, Node | Slot]]:
    """Nodes without a partner, each with all that reads it: such a node, or an input of one that has a partner.

    What only leaves read, such as a conversion of several, is read by what reads these.
    """
    targets: dict[Node, dict[Node | Slot, None]] = {}
    for node in reversed(view.nodes):
        if node in partner or node.layer.type == "Result":
            continue
        found: dict[Node | Slot, None] = {}
        for listed in node.readers:
            for reader, number in listed:
                if reader in partner:
                    x = reader if first else partner[reader]
                    found[slots.setdefault((x.number, number), (x, number))] = None
                elif _is_leaf(reader):
                    found |= targets[reader]
                elif reader.layer.type != "Result":
                    found[reader] = None
        if not found and _is_leaf(node):
            found[node] = None
        targets[node] = found
        for target in found:
            yield node, target


def _is_leaf(node: Node) -> bool:
    """Whether a node does not make one region of all that reads it: an input, or what is constant and read often."""
    if node.layer.type == "Parameter" or not node.constant:
        return node.layer.type == "Parameter"
    readers = [reader for listed in node.readers for reader, _ in listed]
    return len(readers) > 1 or (len(readers) == 1 and readers[0].constant and _is_leaf(readers[0]))
