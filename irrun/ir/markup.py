"""Elements of lxml after those that were read, with the comments and texts that stand around them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Any

from irrun.ir.lines import NO_FILE, Source
from irrun.ir.remnants import DOCUMENT, Aside, Remnant, remnants
from irrun.ir.xml import Element
from irrun.records import dataclass

_XML = "{http://www.w3.org/XML/1998/namespace}"

# what XML 1.0 has no way to write
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(slots=True)
class Markup:
    """What makes the elements, `etree` being that of lxml; `left` is what was left over of the files that were read.

    It is `namespaced` once an element was made that declares a namespace."""

    etree: Any
    namespaced: bool = False
    left: dict[Source, dict[int, Remnant]] = field(default_factory=dict)

    def _remnant(self, element: Element, offset: int) -> Remnant | None:
        """What was left over at a byte of the file that an element is from."""
        if element.source is NO_FILE:
            return None
        if element.source not in self.left:
            self.left[element.source] = remnants(element.source)
        return self.left[element.source].get(offset)

    def copy(
        self,
        node: Any,
        element: Element,
        tag: str | None = None,
        known: Mapping[str, str] | None = None,
        dropped: Collection[str] = (),
    ) -> None:
        """An element with all that is in it."""
        made = self.make(node, element, tag, known, dropped)
        if element.text and not made.text:
            made.text = element.text
        for size in element.dims:
            if isinstance(size, int):
                self.etree.SubElement(made, "dim").text = str(size)
            else:
                self.copy(made, size)
        for child in element.children:
            self.copy(made, child)
        self.close(made, element)

    def make(
        self,
        node: Any,
        element: Element,
        tag: str | None = None,
        known: Mapping[str, str] | None = None,
        dropped: Collection[str] = (),
    ) -> Any:
        """An element in `node` without its children: the attributes that it has, but for those that are `dropped`, and
        with what is `known` in place of what stands there, in the order of the file."""
        attributes = element.attributes
        if known or dropped:
            attributes = {name: text for name, text in attributes.items() if name not in dropped} | dict(known or {})
            if element.source is NO_FILE and known:
                attributes = {**known, **attributes}
        tag = tag or element.tag
        left = self._remnant(element, element.offset)
        for aside in left.before if left and node is not None else ():
            node.append(self._aside(aside))
        try:
            made = self._bare(node, tag, attributes)
            if left:
                made.text, made.tail = left.text or None, left.tail or None
        except Unwritable:
            raise
        except ValueError:
            raise Unwritable(_unwritable(tag, attributes)) from None
        if node is None and left:
            for aside in left.before:
                made.addprevious(self._aside(aside))
        behind = self._remnant(element, DOCUMENT) if node is None else None
        for aside in reversed(behind.last if behind else ()):
            made.addnext(self._aside(aside))
        return made

    def _bare(self, node: Any, tag: str, attributes: Mapping[str, str]) -> Any:
        if ":" not in tag and ":" not in "".join(attributes) and "xmlns" not in attributes:
            if node is None:
                return self.etree.Element(tag, attributes)
            if not self.namespaced or None not in node.nsmap:  # which is looked for in all elements around
                return self.etree.SubElement(node, tag, attributes)
        declared = {name: text for name, text in attributes.items() if name.partition(":")[0] == "xmlns"}
        self.namespaced = self.namespaced or bool(declared)
        nsmap = {name.partition(":")[2] or None: text for name, text in declared.items()}
        known = {**({} if node is None else node.nsmap), **nsmap}
        written = {_full(name, known, ""): text for name, text in attributes.items() if name not in declared}
        full = _full(tag, known, known.get(None) or "")
        if node is None:
            return self.etree.Element(full, written, nsmap)
        return self.etree.SubElement(node, full, written, nsmap)

    def close(self, node: Any, element: Element) -> None:
        """What stands in an element behind its children."""
        left = self._remnant(element, element.offset)
        for aside in left.last if left else ():
            node.append(self._aside(aside))

    def _aside(self, aside: Aside) -> Any:
        if aside.target is None:
            return self.etree.Comment(aside.text)
        return self.etree.ProcessingInstruction(aside.target, aside.text)


class Unwritable(ValueError):
    """What is wrong with an element, without the layer that it is in."""


def _unwritable(tag: str, attributes: Mapping[str, str]) -> str:
    for name, text in attributes.items():
        found = _FORBIDDEN.search(text)
        if found:
            return f"`{name}` of its <{tag}> holds the character {found[0]!a}, which XML does not have"
        if not re.fullmatch(r"[^\W\d][\w.:-]*", name):
            return f"`{name}` of its <{tag}> is no name that XML has"
    return f"<{tag}> has a name or an attribute that XML does not have"


def _full(name: str, known: Mapping[str | None, str], default: str) -> str:
    """A name with its namespace, as lxml has it."""
    prefix, colon, local = name.rpartition(":")
    if not colon:
        return f"{{{default}}}{name}" if default else name
    if prefix == "xml":
        return _XML + local
    if prefix not in known:
        raise Unwritable(f"the namespace of `{name}` is not declared")
    return f"{{{known[prefix]}}}{local}"
