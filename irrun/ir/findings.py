"""Where the reader's diagnostics gather, and the checks of attributes that layers, ports, edges and port maps share."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from irrun.diagnostics import MAX_ALIKE, Diagnostic, Note
from irrun.ir.graph import Graph, Layer
from irrun.ir.identities import Identities
from irrun.ir.xml import Element, attribute_span
from irrun.spelling import advice, blank_help, listed, misspelt

_WHOLE = re.compile(r"\s*(\+?)0*(\d+)", re.ASCII)
_INTEGER = re.compile(r"\s*([-+]?)0*(\d+)", re.ASCII)
_DIGITS = 19
"""2**63 has so many: longer numbers are out of range, and need not be converted."""


@cache
def _one_more(code: str) -> Diagnostic:
    return Diagnostic(code, "one more")


def _enclosing(graph: Graph) -> tuple[Note, ...]:
    """The layers whose bodies `graph` lies in, from the inside out; none for the graph of the model itself."""
    notes: list[Note] = []
    while graph.owner:
        notes.append(Note(f"in the {graph.element.tag} of layer {graph.owner}", graph.owner.span))
        graph = graph.owner.graph
    return tuple(notes)


class Findings:
    """The diagnostics of one file, whose format has the number `version`, in the order in which they were found.

    Layers that are `lacking` have so many inputs, or outputs, less than edges name, which is reported, and so may have
    fewer than they need. `identities` are known of graphs with layers whose ids are at fault.
    """

    def __init__(self, version: int = 11) -> None:
        self.version = version
        self.diagnostics: list[Diagnostic] = []
        self.lacking: Counter[tuple[Layer, bool]] = Counter()
        self.identities: dict[Graph, Identities] = {}
        self._counts: Counter[str] = Counter()

    def add(
        self,
        code: str,
        message: str,
        element: Element,
        attribute: str | None = None,
        *,
        graph: Graph | None = None,
        layer: Layer | None = None,
        help: str | None = None,
        notes: tuple[Note, ...] = (),
        remedy: str | None = None,
    ) -> None:
        """Note down a diagnostic at `element`, or at its `attribute`."""
        self._counts[code] += 1
        if self._counts[code] > MAX_ALIKE:  # which is only counted
            self.diagnostics.append(_one_more(code))
            return
        span = attribute_span(element, attribute) if attribute else element.span
        graph = graph or (layer.graph if layer else None)
        if graph:
            notes += _enclosing(graph)
        label = layer.label if layer else None
        found = Diagnostic(code, message, span, layer=label, help=help, notes=notes, remedy=remedy)
        self.diagnostics.append(found)

    def errors_since(self, start: int) -> bool:
        return any(found.severity == "error" for found in self.diagnostics[start:])

    def lacks(self, element: Element, names: tuple[str, ...], graph: Graph, layer: Layer | None = None) -> bool:
        """Whether `element` has not all attributes of `names`; then that is an error, at one that seems to be meant."""
        given = element.attributes
        missing = [name for name in names if name not in given]
        if not missing:
            return False
        message = f"<{element.tag}> has no {' and no '.join(f'`{name}`' for name in missing)}"
        written, help = None, f"OpenVINO reads no <{element.tag}> without {listed(names)}"
        meant = misspelt(missing, given, names)
        if meant is not None:
            name, written = meant
            help = f"`{written}` is not read: {advice(written, name)}"
        self.add("E201", message, element, written, graph=graph, layer=layer, help=help)
        return True

    def whole(self, element: Element, name: str, graph: Graph, layer: Layer | None = None) -> int | None:
        """The attribute as a number from 0 to 2**63 - 1; None, and an error, where it is something else."""
        text = element.attributes[name]
        number = whole_number(text)
        if number is not None:
            return number
        what = "less than 2**63" if _WHOLE.fullmatch(text) else "a whole number, 0 or more"
        message = f"`{name}` is `{text}`, but must be {what}"
        help = blank_help(text) or "write digits alone, without a sign or a point"
        self.add("E202", message, element, name, graph=graph, layer=layer, help=help)
        return None

    def integer(self, element: Element, name: str, default: int, layer: Layer) -> int | None:
        """The attribute as a number that may be negative, `default` where there is none; None, and an error, where it
        is something else."""
        text = element.attributes.get(name)
        if text is None:
            return default
        match = _INTEGER.fullmatch(text)
        if match and (number := _number(match)) is not None:
            return number
        what = "inside [-2**63, 2**63)" if match else "an integer"
        message = f"`{name}` is `{text}`, but must be {what}"
        help = blank_help(text) or "write digits, with a minus before them if it is counted from the end"
        self.add("E202", message, element, name, layer=layer, help=help)
        return None


def whole_number(text: str) -> int | None:
    """A number from 0 to 2**63 - 1, None where it is none: OpenVINO reads ids, offsets and sizes of bytes so."""
    if len(text) < _DIGITS and text.isdecimal() and text.isascii():
        return int(text)
    match = _WHOLE.fullmatch(text)
    return None if match is None else _number(match)


def _number(match: re.Match[str]) -> int | None:
    """A sign and digits as an integer of 64 bits, None where they are none."""
    sign, digits = match.groups()
    number = int(sign + digits) if len(digits) <= _DIGITS else 2**63
    return number if -(2**63) <= number < 2**63 else None
