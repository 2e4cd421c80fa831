"""From matched graphs to edits: what differs in each pair of layers, and what became of the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irrun.ir.graph import Port
from irrun.spec.op import FLOAT
from irrun.tools.diff.cones import Cones
from irrun.tools.diff.constants import Constants, compare
from irrun.tools.diff.edits import SILENT, Edit
from irrun.tools.diff.hashes import commutes
from irrun.tools.diff.interface import tell_interface, tell_tensor_names
from irrun.tools.diff.matching import Matching
from irrun.tools.diff.regions import regions_of
from irrun.tools.diff.replacements import Replacements
from irrun.tools.diff.runtime import tell_model, tell_runtime
from irrun.tools.diff.telling import Teller
from irrun.tools.diff.view import Node, View, entry_text
from irrun.tools.diff.wording import (
    Source,
    array_text,
    blob_text,
    described,
    figures_of,
    place_of,
    plain,
    role_of,
    value_text,
)

INLINE = 8
"""Elements of a constant that are written out."""

_BESIDE = (*SILENT, "rt_info")
"""Edits that change neither type nor shape of a tensor."""


class Account:
    """The edits of two graphs, and of the bodies in them.

    `weights` is what counts of constants: "exact", "close" or "stats". `ignored` are aspects that do not.
    """

    def __init__(self, constants: tuple[Constants, Constants], weights: str, ignored: frozenset[str]) -> None:
        self._constants = constants
        self._teller = Teller(weights, ignored)
        self._cones = Cones(constants, weights == "stats")
        self.matched = self.followed = 0
        self.pairs: list[tuple[Node, Node]] = []

    @property
    def edits(self) -> list[Edit]:
        """All that was told, graph by graph."""
        return self._teller.edits

    def compare(self, before: View, after: View) -> None:
        """Match two graphs and tell all that differs in them."""
        matching = Matching(before, after, self._constants, "names" not in self._teller.ignored)
        partner = matching.partner
        regions = regions_of(before, after, partner)
        covered = {(x.number, number) for region in regions for x, number in region.slots}
        self._teller.path = before.path
        changed: set[Node] = set()
        for x in before.nodes:
            y = partner.get(x)
            if y is None:
                continue
            self.matched += 1
            self.pairs.append((x, y))
            count = len(self._teller.edits)
            self._node(x, y)
            self._inputs(x, y, partner, covered)
            fed = any((x.number, number) in covered for number in range(max(len(x.inputs), len(y.inputs))))
            edited = any(edit.kind not in _BESIDE for edit in self.edits[count:])
            if self._ports(x, y, changed, told=edited or fed):
                changed.add(x)
        replacements = Replacements(self._teller, self._cones, partner)
        for region in regions:
            replacements.tell(region)
        tell_interface(self._teller, before, after, partner)
        for x in before.nodes:
            y = partner.get(x)
            if y is not None:
                for tag in x.bodies:
                    if tag in y.bodies:
                        self.compare(x.bodies[tag], y.bodies[tag])

    def _node(self, x: Node, y: Node) -> None:
        if x.layer.name != y.layer.name and "names" not in self._teller.ignored:
            self._teller.tell("renamed", "", x, y)
        if x.is_const:
            self._constant(x, y)
        elif x.layer.type == "Parameter":
            self._parameter(x, y)
        else:
            self._attributes(x, y)
        if x.entry != y.entry:
            self._teller.tell("rewired", f"is mapped as {entry_text(x)} -> {entry_text(y)}", x, y)
        if "rt_info" not in self._teller.ignored:
            tell_runtime(self._teller, x, y)
        if "names" not in self._teller.ignored:
            tell_tensor_names(self._teller, x, y)

    def _attributes(self, x: Node, y: Node) -> None:
        old, new = x.attributes, y.attributes
        changes = [
            (name, old.get(name), new.get(name))
            for name in dict.fromkeys((*old, *new))
            if name != "output_names" and not _equal(old.get(name), new.get(name))
        ]
        if x.op != y.op:
            shared = [change for change in changes if change[0] in old and change[0] in new]
            texts = "".join(f", `{name}` {value_text(was)} -> {value_text(now)}" for name, was, now in shared)
            values = {name: [plain(was), plain(now)] for name, was, now in changes}
            self._teller.tell("opset", f"{x.op} -> {y.op}{texts}", x, y, attributes=values)
            return
        for name, was, now in changes:
            message = f"`{name}` of {x.type} {value_text(was)} -> {value_text(now)}"
            self._teller.tell("attribute", message, x, y, attribute=name, old=plain(was), new=plain(now))

    def _parameter(self, x: Node, y: Node) -> None:
        was, now = x.attributes.get("element_type"), y.attributes.get("element_type")
        what = "input" if not self._teller.path else "Parameter"
        if was != now:
            self._teller.tell("retyped", f"{what} {was} -> {now}", x, y, old=was, new=now)
        was, now = x.attributes.get("shape"), y.attributes.get("shape")
        if was != now:
            self._teller.tell("reshaped", f"{what} [{was}] -> [{now}]", x, y, old=was, new=now)

    def _constant(self, x: Node, y: Node) -> None:
        """Tell how two constants differ that stand at the same place."""
        before, after = self._constants
        mine, theirs = before.blob(x.layer), after.blob(y.layer)
        if mine is None or theirs is None:
            return
        role, place = role_of(x), place_of(x)
        types = mine.element_type, theirs.element_type
        if mine.elements != theirs.elements:
            kind = "constant" if len(mine.shape) == len(theirs.shape) == 1 else "reshaped"
            if "shapes" not in self._teller.ignored or kind == "constant":
                small = max(mine.elements, theirs.elements) <= INLINE
                message = f"{blob_text(mine)} -> {blob_text(theirs)}"
                self._teller.tell(kind, (small and self._values(x, y)) or message, x, y, place, role)
            return
        delta = None
        if before.compared(x.layer) and after.compared(y.layer):
            delta = compare(before, x.layer, after, y.layer, stats=self._teller.values == "stats")
        if types[0] != types[1] and not ("precision" in self._teller.ignored and set(types) <= FLOAT):
            same = delta is None or delta.rounded or not delta.differing
            message = f"{types[0]} -> {types[1]}" + ("" if same else ", with other values")
            figures = figures_of(delta) if delta and delta.differing else {}
            self._teller.tell("retyped", message, x, y, place, role, old=types[0], new=types[1], **figures)
        elif delta is not None and delta.differing and self._teller.counts(delta):
            values = self._values(x, y) if mine.elements <= INLINE else ""
            figures = {} if values and mine.elements == 1 else figures_of(delta)
            self._teller.tell("constant", values or f"other values of {types[0]}", x, y, place, role, **figures)
        if mine.shape != theirs.shape and "shapes" not in self._teller.ignored:
            also = "" if delta is not None and delta.differing else ", with the same elements"
            message = f"{list(mine.shape)} -> {list(theirs.shape)}{also}"
            self._teller.tell("reshaped", message, x, y, place, role, old=list(mine.shape), new=list(theirs.shape))

    def _values(self, x: Node, y: Node) -> str:
        before, after = self._constants
        if not (before.compared(x.layer) and after.compared(y.layer)):
            return ""
        return f"{array_text(before.values(x.layer))} -> {array_text(after.values(y.layer))}"

    def model(self, before: View, after: View) -> None:
        """Tell what differs in the runtime information of whole models."""
        self._teller.path = ()
        tell_model(self._teller, before, after)

    def _inputs(self, x: Node, y: Node, partner: Mapping[Node, Node], covered: set[tuple[int, int]]) -> None:
        """Tell of inputs that come from something else, where no region does."""
        count = max(len(x.inputs), len(y.inputs))
        sources = [
            (
                x.inputs[number] if number < len(x.inputs) else None,
                y.inputs[number] if number < len(y.inputs) else None,
            )
            for number in range(count)
        ]
        wrong = [
            number
            for number, (old, new) in enumerate(sources)
            if (x.number, number) not in covered and not _same_source(old, new, partner)
        ]
        if len(wrong) == 2 and commutes(x) and commutes(y):
            (first, other), (second, one) = sources
            if _same_source(first, one, partner) and _same_source(second, other, partner):
                return
        for number in wrong:
            old, new = sources[number]
            self._teller.rewired(x, y, number, old, new)

    def _ports(self, x: Node, y: Node, changed: set[Node], told: bool) -> bool:
        """Whether types or shapes of the outputs differ; told where nothing else explains that."""
        old, new = ([self._counted(value.port) for value in node.layer.outputs] for node in (x, y))
        if old == new:
            return False
        after = any(source and source[0] in changed for source in x.inputs)
        if told or after or x.is_const or x.layer.type in ("Parameter", "Result"):
            self.followed += after and not told
            return True
        if len(old) == len(new) and all(map(_may_be_the_same, old, new)):
            return False
        if any(body.nodes for body in x.bodies.values()):
            return True
        for was, now in zip(old, new, strict=False):
            if was[0] != now[0]:
                self._teller.tell("retyped", f"output of {x.type} {was[0]} -> {now[0]}", x, y, old=was[0], new=now[0])
            if was[1] != now[1]:
                message = f"output of {x.type} {list(was[1])} -> {list(now[1])}"
                self._teller.tell("reshaped", message, x, y, old=list(was[1]), new=list(now[1]))
        if len(old) != len(new):
            self._teller.tell("attribute", f"{x.type} has {len(new)} outputs, in place of {len(old)}", x, y)
        return True

    def _counted(self, port: Port) -> tuple[str, tuple[int, ...]]:
        """The type and shape of a port, as far as they count."""
        type, dims = described(port)
        kind = "float" if type in FLOAT and "precision" in self._teller.ignored else type
        return kind, () if "shapes" in self._teller.ignored else dims


def _may_be_the_same(old: tuple[str, tuple[int, ...]], new: tuple[str, tuple[int, ...]]) -> bool:
    """Whether types and shapes differ only in sizes that one side leaves open, as not all writers know the same."""
    sizes = zip(old[1], new[1], strict=False)
    return old[0] == new[0] and len(old[1]) == len(new[1]) and all(a == b or min(a, b) < 0 for a, b in sizes)


def _same_source(old: Source, new: Source, partner: Mapping[Node, Node]) -> bool:
    if old is None or new is None:
        return old is new
    return partner.get(old[0]) is new[0] and old[1] == new[1]


def _equal(old: Any, new: Any) -> bool:
    return bool(old == new) or (old != old and new != new)
