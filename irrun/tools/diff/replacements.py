"""What became of layers without a partner: regions told as inserted, removed, replaced, or stored in another way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irrun.spec.op import FLOAT
from irrun.spec.traits import Converting, Reading
from irrun.tools.diff.cones import Cones
from irrun.tools.diff.regions import Region
from irrun.tools.diff.telling import Teller
from irrun.tools.diff.view import Node
from irrun.tools.diff.wording import figures_of, labels, pattern, port_of, reader_of, tensor_text


class Replacements:
    """Tells of the regions of two graphs."""

    def __init__(self, teller: Teller, cones: Cones, partner: Mapping[Node, Node]) -> None:
        self._teller, self._cones, self._partner = teller, cones, partner

    def tell(self, region: Region) -> None:
        """Tell what became of a region."""
        if not region.before and not region.after:
            return
        for nodes, verb in ((region.before, "is gone"), (region.after, "is new")):
            for node in nodes:
                reading = node.found.trait(Reading) if node.found else None
                name = node.layer.attributes.get(reading.variable) if reading else None
                if name is not None:
                    x, y = (node, None) if verb == "is gone" else (None, node)
                    self._teller.tell("variable", f"a variable {verb}", x, y, f"`{name}`", variable=name)
        outer = all(node.layer.type == "Parameter" for node in (*region.before, *region.after))
        if outer and not (region.before and region.after):
            self._direct(region)
            return
        if region.constant and region.slots and region.before and region.after:
            self._cone(region)
            return
        kind = "replaced" if region.before and region.after else "inserted" if region.after else "removed"
        parts = [pattern(nodes) for nodes in (region.before, region.after) if nodes]
        message = " -> ".join(parts)
        place = self._where(region)
        details = {
            "removed": [node.layer.id for node in region.before],
            "added": [node.layer.id for node in region.after],
        }
        if kind != "replaced" and "precision" in self._teller.ignored and _only_conversions(region):
            return
        self._tell(kind, message, region, place, _target(region), details)

    def _direct(self, region: Region) -> None:
        """Tell of inputs that read from an input of the model that the other one does not have."""
        for x, number in region.slots:
            y = self._partner[x]
            old = x.inputs[number] if number < len(x.inputs) else None
            new = y.inputs[number] if number < len(y.inputs) else None
            self._teller.rewired(x, y, number, old, new)

    def _where(self, region: Region) -> str:
        """Between which layers a region lies, and whether these are connected without it."""
        feeds = {
            (source[0], source[1]): None
            for node in (region.after or region.before)
            for source in node.inputs
            if source is not None and source[0] in self._partner
        }
        named = [tensor_text(feed) for feed in feeds]
        ends = [f"`{x.layer.name}`" for x, _ in region.slots]
        text = ""
        if named:
            text = f"behind {named[0]}" + (f" and {len(named) - 1} more" if len(named) > 1 else "")
        if ends:
            text += f"{' ' if text else ''}before {ends[0]}" + (f" and {len(ends) - 1} more" if len(ends) > 1 else "")
        if region.before and region.after:
            return text
        instead = self._instead(region, set(feeds))
        return text + (
            f", in place of {instead}" if instead and region.after else f"; {instead} in its place" if instead else ""
        )

    def _instead(self, region: Region, feeds: set[tuple[Node, int]]) -> str:
        """What the other side has where a region is that does not pass it on."""
        for x, number in region.slots:
            node = x if region.after else self._partner[x]
            source = node.inputs[number] if number < len(node.inputs) else None
            if source is not None and source[0] in self._partner and (self._partner[source[0]], source[1]) not in feeds:
                return tensor_text(source)
        return ""

    def _cone(self, region: Region) -> None:
        """Tell how a constant input is made in another way: stored in another type, compressed, or computed."""
        x, number = region.slots[0]
        old, new = self._cones.described(region.before), self._cones.described(region.after)
        end = reader_of(x) if x.constant else None
        reader, number = end[:2] if end else (x, number)
        role = f"{port_of(reader, number)} of {reader.type}"
        stored = old.stored, new.stored
        place = f"`{reader.layer.name}`"
        known, delta = self._cones.delta(region)
        figures = figures_of(delta) if delta is not None and delta.differing else {}
        if not known and self._cones.needs_computing(region):
            figures = {"uncomputed": True}
        if old.plain and new.plain and stored[0] != stored[1]:
            exact = delta is None or delta.rounded or not delta.differing
            if "precision" in self._teller.ignored and {*stored} <= FLOAT:
                if delta is not None and not exact and self._teller.counts(delta):
                    self._tell("constant", "other values of float", region, place, role, figures)
                return
            how = f"with {new.chain}" if new.chain else f"without {old.chain}" if old.chain else "as it is"
            message = f"{stored[0]} -> {stored[1]}, {how}" + ("" if exact else ", with other values")
            self._tell("retyped", message, region, place, role, {"old": stored[0], "new": stored[1], **figures})
        elif old.text != new.text:
            self._tell("replaced", f"{old.text} -> {new.text}", region, place, role, figures)
        elif not known:
            self._tell("replaced", f"{old.text}, made in another way", region, place, role, figures)
        elif delta is not None and delta.differing and self._teller.counts(delta):
            self._tell("constant", f"other values of {old.text}", region, place, role, figures)

    def _tell(self, kind: str, message: str, region: Region, place: str, role: str, details: dict[str, Any]) -> None:
        sides = tuple(labels(region.before)), tuple(labels(region.after))
        readers = tuple(x.layer.label for x, _ in region.slots)
        self._teller.add(kind, message, *sides, place=place, role=role, details=details, readers=readers)


def _target(region: Region) -> str:
    if not region.slots:
        return "read by no other layer"
    x, number = region.slots[0]
    return f"{'into' if region.after else 'before'} {port_of(x, number)} of {x.type}"


def _only_conversions(region: Region) -> bool:
    """Whether a region only gives floats as floats of another type."""
    nodes = [node for node in (*region.before, *region.after) if not node.is_const]
    return all(
        node.found is not None
        and node.found.trait(Converting) is not None
        and node.layer.outputs[0].port.precision in FLOAT
        and all(source[0].layer.outputs[source[1]].port.precision in FLOAT for source in node.inputs if source)
        for node in nodes
    )
