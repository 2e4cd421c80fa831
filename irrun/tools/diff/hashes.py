"""Numbers for nodes that are equal where all that leads to them, and all that they lead to, is the same.

As in Weisfeiler and Lehman's test: what a node is and reads becomes a number, shared by both models, and so on down the
graph; the same upwards. They are numbers of a table, not hashes of bytes, so that nothing collides.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from irrun.records import dataclass
from irrun.spec.traits import Converting, Elementwise, Quantizing
from irrun.tools.diff.constants import Constants
from irrun.tools.diff.view import Node, View

LEVELS = 4
"""0: the same op, attributes and constants. 1: constants only of the same type and shape, ops of any version.
2: whatever is constant is one. 3: conversions and roundings are as nothing."""

Key = tuple[int, int]
Key3 = tuple[int, int, int]


class Numbers(dict[Hashable, int]):
    """A number for each thing that is asked for."""

    def of(self, thing: Hashable) -> int:
        return self.setdefault(thing, len(self))


@dataclass(frozen=True, slots=True)
class Keys:
    """For each node, by its number, what it is, what leads to it and what it leads to, each at one level."""

    label: list[int]
    above: list[int]
    below: list[int]

    def both(self, node: Node) -> Key:
        return self.above[node.number], self.below[node.number]


def keys_of(view: View, constants: Constants, numbers: Numbers, level: int, names: bool = False) -> Keys:
    """The keys of all nodes at a level; with `names`, those of tensors tell inputs of the model apart at level 0."""
    count = len(view.nodes)
    label, above, below = [0] * count, [0] * count, [0] * count
    for node in view.nodes:
        what = _label(node, constants, numbers, level)
        if names and level == 0 and node.layer.type == "Parameter" and not view.path:
            what = *what, *sorted(name for value in node.layer.outputs for name in value.port.names)
        label[node.number] = numbers.of(what)
        inputs: list[Any] = []
        for source in node.inputs:
            if source is None:
                inputs.append(None)
            elif level >= 2 and source[0].constant:
                inputs.append("constant")
            else:
                inputs.append((above[source[0].number], source[1] if len(source[0].readers) > 1 else 0))
        if level == 3 and is_transparent(node) and isinstance(inputs[0], tuple):
            above[node.number] = inputs[0][0]
        elif level >= 2 and node.constant:
            above[node.number] = numbers.of(("constant", label[node.number]))
        else:
            ordered = sorted(inputs, key=repr) if commutes(node) else inputs
            above[node.number] = numbers.of(("above", label[node.number], *ordered))
    ends: list[list[Key3]] = [[] for _ in range(count)]
    for node in reversed(view.nodes):
        found: list[Key3] = []
        for output, listed in enumerate(node.readers):
            for reader, number in listed:
                if level == 3 and number == 0 and is_transparent(reader):
                    found += [(output, place, key) for _, place, key in ends[reader.number]]
                else:
                    found.append((output, 0 if commutes(reader) else number, below[reader.number]))
        ends[node.number] = sorted(set(found) if level == 3 else found)
        below[node.number] = numbers.of(("below", label[node.number], *ends[node.number]))
    return Keys(label, above, below)


def is_transparent(node: Node) -> bool:
    """Whether a node gives what it reads, in another type or rounded."""
    if node.found is None or not node.inputs or node.inputs[0] is None or node.constant:
        return False
    return node.found.trait(Converting) is not None or node.found.trait(Quantizing) is not None


def commutes(node: Node) -> bool:
    """Whether the order of its two inputs does not matter."""
    trait = node.found.trait(Elementwise) if node.found else None
    return trait is not None and trait.commutative and len(node.inputs) == 2


def _label(node: Node, constants: Constants, numbers: Numbers, level: int) -> tuple[Hashable, ...]:
    if node.is_const:
        if level >= 2:
            return ("constant",)
        blob = constants.blob(node.layer)
        what = (None, None) if blob is None else (blob.element_type, blob.shape)
        return ("constant", *what, constants.sample(node.layer) if level == 0 else None)
    name = node.op if level == 0 else node.type
    attributes: Any = tuple(node.attributes.items())
    if level >= 1 and node.layer.type in ("Parameter", "Result"):
        attributes = ()
    inner = sorted(node.bodies.items()) if level < 2 else ()
    return name, attributes, node.entry, *((tag, _digest(body, constants, numbers, level)) for tag, body in inner)


def _digest(body: View, constants: Constants, numbers: Numbers, level: int) -> tuple[int, ...]:
    keys = keys_of(body, constants, numbers, level)
    sinks = [node for node in body.nodes if not any(node.readers)]
    return tuple(sorted(keys.above[node.number] for node in sinks))
