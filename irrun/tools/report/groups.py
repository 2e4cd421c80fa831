"""The boxes of the graph as a tree: scopes, blocks that repeat, parts of long rows, and bodies of layers.

What is in a box is never too much to be laid out; how it is drawn is the page's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field

from irrun.ir.graph import Graph, Layer
from irrun.records import dataclass
from irrun.tools.inspect.contents import Contents
from irrun.tools.report.blocks import repeats, stretches
from irrun.tools.report.scopes import Scope, scopes

MOST = 80
"""Boxes in a box, those of constants not counted."""


@dataclass(eq=False, slots=True)
class Group:
    """Layers and groups of a graph, in an order in which producers come first.

    `kind` is "body", of the layer that `owner` is; "scope", "block" of those that repeat, or "part" of a long row.
    `sign` is the same for groups that hold the same types of layers in the same order.
    """

    kind: str
    label: str
    children: list[Group | Layer] = field(default_factory=list)
    owner: Layer | None = None
    sign: int = 0

    def layers(self) -> Iterator[Layer]:
        for child in self.children:
            if isinstance(child, Layer):
                yield child
            else:
                yield from child.layers()


def grouped(contents: Contents) -> list[Group]:
    """The graph of the model first, and all bodies of layers, as they are in the file."""
    found: list[Group] = []
    quiet = {layer for layer in contents.stored if layer.outputs}
    pending: list[tuple[Graph, str, Layer | None]] = [(contents.model.graph, "", None)]
    while pending:
        graph, label, owner = pending.pop(0)
        group = Group("body", label, owner=owner)
        found.append(group)
        _fill(group, graph, contents, quiet)
        for layer in graph.layers:
            pending += [(body.graph, tag, layer) for tag, body in layer.bodies.items()]
    return found


def _fill(group: Group, graph: Graph, contents: Contents, quiet: Collection[Layer]) -> None:
    order = contents.ordered(graph)
    shown = [layer for layer in order if layer not in quiet]
    apart = {layer: None for layer in shown if _is_border(layer)}
    _nest(group, scopes(shown, apart))
    _merge(group)
    _divide(group)
    _sign(group, {})
    homes = {layer: home for home in walk(group) for layer in home.children if isinstance(layer, Layer)}
    for layer in reversed(order):
        if layer in quiet:  # where it is read first: readers come later, and have their place already
            readers = (consumer for value in layer.outputs for consumer, _ in value.consumers)
            home = next((homes[reader] for reader in readers if reader in homes), group)
            home.children.append(layer)
            homes[layer] = home


def _is_border(layer: Layer) -> bool:
    return not layer.inputs or not layer.outputs


def _nest(group: Group, scopes: Mapping[Layer, Scope]) -> None:
    known: dict[Scope, Group] = {(): group}
    for layer, scope in scopes.items():
        for length in range(1, len(scope) + 1):
            inner = scope[:length]
            if inner not in known:
                known[inner] = Group("scope", inner[-1])
                known[inner[:-1]].children.append(known[inner])
        known[scope].children.append(layer)


def _merge(group: Group) -> None:
    """Do without groups of one box: a layer stands for itself, and scopes that hold one scope have its place."""
    merged: list[Group | Layer] = []
    for child in group.children:
        if isinstance(child, Group):
            _merge(child)
            if len(child.children) == 1:
                (only,) = child.children
                if isinstance(only, Group):
                    only.label = f"{child.label}.{only.label}"
                child = only
        merged.append(child)
    group.children = merged


def _divide(group: Group) -> None:
    """Put what is too much for one box into blocks that repeat, or else into stretches of a row."""
    for child in group.children:
        if isinstance(child, Group):
            _divide(child)
    while len(group.children) > MOST:
        signs: dict[object, int] = {}
        row = [_sign(child, signs) for child in group.children]
        found = repeats(row, MOST - 2)
        if found is None:
            group.children = [*_stretched(group.children)]
            continue
        begin, length, count = found
        end = begin + length * count
        blocks = [
            Group("block", f"block {n + 1}", group.children[begin + n * length : begin + (n + 1) * length])
            for n in range(count)
        ]
        for block in blocks:
            _divide(block)
        before: list[Group | Layer] = group.children[:begin]
        behind: list[Group | Layer] = group.children[end:]
        if count + len(before) + len(behind) > MOST:
            before, behind = _side("before", before), _side("behind", behind)
        group.children = [*before, *blocks, *behind]


def _side(label: str, children: list[Group | Layer]) -> list[Group | Layer]:
    """What is on a side of blocks, as one box."""
    if len(children) < 2:
        return children
    side = Group("part", label, children)
    _divide(side)
    return [side]


def _stretched(children: Sequence[Group | Layer]) -> Iterator[Group]:
    places = {
        layer: number
        for number, child in enumerate(children)
        for layer in ([child] if isinstance(child, Layer) else child.layers())
    }
    reads = {
        (places[value.layer], place)
        for layer, place in places.items()
        for value in layer.inputs
        if value is not None and places.get(value.layer, place) != place
    }
    begins = stretches(len(children), sorted(reads))
    for number, (begin, end) in enumerate(zip(begins, [*begins[1:], len(children)], strict=True), 1):
        yield Group("part", f"part {number}", list(children[begin:end]))


def _sign(child: Group | Layer, signs: dict[object, int]) -> int:
    if isinstance(child, Layer):
        return signs.setdefault(child.type, len(signs))
    child.sign = signs.setdefault(tuple(_sign(each, signs) for each in child.children), len(signs))
    return child.sign


def walk(group: Group) -> Iterator[Group]:
    yield group
    for child in group.children:
        if isinstance(child, Group):
            yield from walk(child)
