"""Where a diagnostic lies: the element, its attribute, the layer and the graph, and changes of the text there."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar
from xml.sax.saxutils import quoteattr

from irrun.check.infer import Inference
from irrun.diagnostics import Diagnostic, Fix, Replacement, Span
from irrun.ir.graph import Graph, Layer, Model, Port
from irrun.ir.lines import Source
from irrun.ir.text_edits import Edit, Extent, extents
from irrun.ir.text_edits import set_attribute as with_attribute
from irrun.ir.xml import Element
from irrun.records import dataclass

_Found = TypeVar("_Found")

_TAG = re.compile(rb"[^\s/>]+")

_SIZES = re.compile(rb"\s*(?:<dim>[^<]*</dim>\s*)*")
_ONE = re.compile(rb"<dim>[^<]*</dim>")
_INDENTATION = re.compile(rb"(?:\r\n|\n|\r)?[ \t]*\Z")


class Text:
    """The text of a model that was read: its elements in order, and the layer and graph that each lies in."""

    def __init__(self, model: Model) -> None:
        root = model.graph.element
        self.source: Source = root.source
        self.elements: list[Element] = []
        self._homes: dict[int, tuple[Layer | None, Graph]] = {}
        layers = {layer.element.offset: layer for layer in model.graph.walk()}
        pending: list[tuple[Element, Layer | None, Graph]] = [(root, None, model.graph)]
        while pending:
            element, layer, graph = pending.pop()
            layer = layers.get(element.offset, layer) if element.tag == "layer" else layer
            if layer is not None and element.tag in layer.bodies:
                graph, layer = layer.bodies[element.tag].graph, None
            self.elements.append(element)
            self._homes[element.offset] = layer, graph
            pending += [(child, layer, graph) for child in element.children]
        self.elements.sort(key=lambda element: element.offset)
        self._found: dict[tuple[Graph, Callable[[Graph], Any]], Any] = {}

    def of(self, graph: Graph, find: Callable[[Graph], _Found]) -> _Found:
        """What `find` finds in a graph, once for all diagnostics."""
        key = graph, find
        if key not in self._found:
            self._found[key] = find(graph)
        found: _Found = self._found[key]
        return found

    @cached_property
    def _extents(self) -> dict[int, Extent]:
        return extents(self.source, [element.offset for element in self.elements])

    def extent(self, element: Element) -> Extent:
        return self._extents[element.offset]

    def home(self, element: Element) -> tuple[Layer | None, Graph]:
        return self._homes[element.offset]

    def at(self, span: Span) -> tuple[Element, str | None]:
        """The element that begins at a place, or whose attribute does; else the last one that begins before it."""
        place = span.line, span.column
        number = bisect_right(self.elements, place, key=lambda element: self.source.position(element.offset)) - 1
        element = self.elements[max(number, 0)]
        for name, (start, _) in self.source.attributes(element.offset).items():
            if self.source.position(start) == place:
                return element, name.decode()
        return element, None

    def replacement(self, edit: Edit) -> Replacement:
        at, until = self.source.position(edit.start), self.source.position(edit.end)
        return Replacement(edit.start, edit.end, edit.text, at, until)

    def lead(self, offset: int) -> bytes:
        """The line break and the blanks before what begins at a byte; nothing where it does not begin its line."""
        found = _INDENTATION.search(self.source.data, max(offset - 400, 0), offset)
        blanks = found[0] if found else b""
        return blanks if blanks[:1] in (b"\r", b"\n") else b""


@dataclass(frozen=True, slots=True)
class Case:
    """A diagnostic with the element that it is about, the attribute of it if it is one, and what that lies in."""

    diagnostic: Diagnostic
    model: Model
    inference: Inference | None
    text: Text
    element: Element
    attribute: str | None
    layer: Layer | None
    graph: Graph

    def found(self, find: Callable[[Graph], _Found]) -> _Found:
        """What `find` finds in the graph, once for all diagnostics."""
        return self.text.of(self.graph, find)

    def fix(self, title: str, *edits: Edit, safe: bool = True) -> Fix:
        return Fix(title, tuple(map(self.text.replacement, edits)), safe)

    def set(self, name: str, value: str, *, element: Element | None = None, safe: bool = True) -> Fix:
        """Give an attribute another value."""
        element = element or self.element
        there = element.attributes.get(name)
        title = f"write {name}={quoteattr(value)}" + (f" for {quoteattr(there)}" if there is not None else "")
        return self.fix(title, with_attribute(element, name, value), safe=safe)

    def rename(self, name: str, new: str, *, safe: bool = True) -> Fix:
        """Give an attribute of the element another name."""
        start = self.text.source.attributes(self.element.offset)[name.encode()][0]
        return self.fix(f"rename `{name}` to `{new}`", Edit(start, start + len(name.encode()), new), safe=safe)

    def without_attribute(self, element: Element, name: str) -> Edit:
        start, end = self.text.source.attributes(element.offset)[name.encode()]
        data = self.text.source.data
        while data[start - 1 : start].isspace():
            start -= 1
        return Edit(start, end, "")

    def without(self, element: Element) -> Edit:
        """An element goes, and its line with it where it has one of its own."""
        place = self.text.extent(element)
        lead = self.text.lead(place.start)
        own_line = self.text.source.data[place.end : place.end + 1] in (b"\r", b"\n", b"")
        return Edit(place.start - len(lead) * own_line, place.end, "")

    def respelled(self, element: Element, tag: str) -> list[Edit]:
        """An element gets another tag."""
        place = self.text.extent(element)
        written = _TAG.match(self.text.source.data, place.start + 1)  # one that was misspelt has its right tag by now
        length = len(written[0]) if written else 0
        ends = [place.start + 1] if place.closed_at_once else [place.start + 1, place.close + 2]
        return [Edit(start, start + length, tag) for start in ends]

    def last_in(self, parent: Element, text: str) -> Edit:
        """A new element, the last in a parent; formatted as the others are."""
        place = self.text.extent(parent)
        if place.closed_at_once:
            opened = self.text.source.data[place.start : place.end].removesuffix(b"/>").rstrip()
            return Edit(place.start + len(opened), place.end, f">{text}</{parent.tag}>")
        if not parent.children:
            return Edit(place.inside, place.inside, text)
        lead = self.text.lead(parent.children[-1].offset).decode()
        end = self.text.extent(parent.children[-1]).end
        return Edit(end, end, lead + text)

    def sizes(self, port: Port, sizes: list[int]) -> Edit | None:
        """The <dim>s of a port become these; None where something else stands among them."""
        data, place = self.text.source.data, self.text.extent(port.element)
        if place.closed_at_once:
            if not sizes:
                return None
            opened = data[place.start : place.end].removesuffix(b"/>").rstrip()
            listed = "".join(f"<dim>{size}</dim>" for size in sizes)
            return Edit(place.start + len(opened), place.end, f">{listed}</port>")
        rest = [self.text.extent(child).start for child in port.element.children]
        stop = min(rest, default=place.close)
        found = _SIZES.fullmatch(data, place.inside, stop)
        if found is None:
            return None
        dims = [match.span() for match in _ONE.finditer(data, place.inside, stop)]
        lead = self.text.lead(dims[0][0]).decode() if dims else ""
        listed = lead.join(f"<dim>{size}</dim>" for size in sizes)
        if not dims:
            return Edit(place.inside, place.inside, listed)
        if sizes:
            return Edit(dims[0][0], dims[-1][1], listed)
        return Edit(dims[0][0] - len(lead), dims[-1][1], "")
