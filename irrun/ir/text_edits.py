"""Changes to the text of an .xml that leave all other bytes as they are: where elements lie, and what to put there."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import quoteattr

from irrun.ir.graph import Layer
from irrun.ir.lines import Source
from irrun.ir.xml import Element, as_utf8, parse, parser_of
from irrun.records import dataclass

PRECISE = "precise"
"""The runtime info of a layer that keeps it from being computed in 16 bits."""

_START = re.compile(rb"""<[^\s/>]+(?:\s+[^\s=/>]+\s*=\s*(?:"[^"]*"|'[^']*'))*\s*(/?)>""")
_ENCODING = re.compile(rb"""^(?:\xef\xbb\xbf)?<\?xml[^>]*?encoding\s*=\s*["']([\w.-]+)""")
_UTF16 = re.compile(r"utf-?16", re.IGNORECASE)
_BREAK = re.compile(rb"[ \t]*(?:\r\n|\n|\r)[ \t]*\Z")


@dataclass(frozen=True, slots=True)
class Edit:
    """Bytes from `start` to `end` that `text` takes the place of; an insertion where these are equal."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Extent:
    """The bytes of an element: where its start tag begins and ends, where its end tag begins and ends.

    One that is closed at once, as `<a/>`, has none: both are the end of its start tag.
    """

    start: int
    inside: int
    close: int
    end: int

    @property
    def closed_at_once(self) -> bool:
        return self.close == self.end


def apply(data: bytes, edits: Iterable[Edit]) -> bytes:
    """The text with the edits made, whose bytes count in `irrun.ir.xml.as_utf8(data)`, as those of elements do.

    Characters that the encoding of the file does not have are written as references. Raises ValueError where two edits
    overlap, or one lies outside of the text.
    """
    utf8 = as_utf8(data)
    encoding = _encoding(utf8)
    parts: list[bytes] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if not at <= edit.start <= edit.end <= len(utf8):
            what = "overlaps the one before" if edit.start < at else f"lies outside of the text of {len(utf8)} bytes"
            raise ValueError(f"the edit of bytes {edit.start} to {edit.end} {what}")
        parts += [utf8[at : edit.start], edit.text.encode(encoding, "xmlcharrefreplace")]
        at = edit.end
    changed = b"".join([*parts, utf8[at:]])
    if utf8 is data or not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return changed
    big = data.startswith(codecs.BOM_UTF16_BE)
    mark = codecs.BOM_UTF16_BE if big else codecs.BOM_UTF16_LE
    return mark + changed.decode().encode("utf-16-be" if big else "utf-16-le")


def extents(source: Source, offsets: Iterable[int]) -> dict[int, Extent]:
    """The extents of the elements that begin at these bytes of a text that was read."""
    sought = set(offsets)
    found: dict[int, Extent] = {}
    opened: list[int] = []
    parser = parser_of(source)

    def start(*_: object) -> None:
        opened.append(parser.CurrentByteIndex)

    def end(_: str) -> None:
        begin, close = opened.pop(), parser.CurrentByteIndex
        if begin in sought:
            found[begin] = _extent(source.data, begin, close)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        parser.Parse(source.data, True)
    finally:
        parser.StartElementHandler = parser.EndElementHandler = None
    return found


def _extent(data: bytes, begin: int, close: int) -> Extent:
    tag = _START.match(data, begin)
    if tag is None:
        raise ValueError("the text is not in an encoding such as UTF-8, in which ASCII is as it is")
    if tag[1]:
        return Extent(begin, tag.end(), tag.end(), tag.end())
    return Extent(begin, tag.end(), close, data.index(b">", close) + 1)


def set_attribute(element: Element, name: str, value: str) -> Edit:
    """The edit that gives an attribute a value, in quotes of the kind that it has; a new one becomes the last."""
    data = element.source.data
    there = element.source.attributes(element.offset).get(name.encode())
    if there is not None:
        text = data[slice(*there)]
        quote = chr(text[-1])
        start = there[0] + text.index(quote.encode())
        return Edit(start, there[1], _quoted(value, quote))
    tag = _START.match(data, element.offset)
    if tag is None:
        raise ValueError(f"no <{element.tag}> stands at byte {element.offset}")
    end = tag.end() - (2 if tag[1] else 1)
    while data[end - 1 : end].isspace():
        end -= 1
    return Edit(end, end, f" {name}={_quoted(value, chr(34))}")


def _quoted(value: str, quote: str) -> str:
    text = quoteattr(value, {'"': "&quot;", "'": "&apos;"} if quote == "'" else {'"': "&quot;"})[1:-1]
    return f"{quote}{text}{quote}"


def mark_precise(content: bytes, layers: Sequence[str | int | Layer]) -> bytes:
    """The text of a model in which layers are marked to be computed in f32 where a device would take 16 bits.

    Layers are given by name, by id in the model itself, or as those of a model that was read from this text; what is
    marked already is not marked again, and other runtime info is kept. All other bytes stay as they are.

    Raises IRError where the text is no XML, ValueError where there is no such layer, a name is that of several, or the
    version of the model is 10, in which OpenVINO reads no runtime info of layers.

    >>> text = b'<net version="11"><layers><layer id="0" name="a" type="Abs"><data/></layer></layers></net>'
    >>> mark_precise(text, ["a"])[60:-15]
    b'<data/><rt_info><attribute name="precise" version="0" /></rt_info></layer>'
    """
    root = parse(content)
    if root.attributes.get("version", "").strip() == "10":
        raise ValueError(
            "OpenVINO reads no runtime info of layers in an IR of version 10; write it as version 11 first"
        )
    there = _Layers(root)
    elements = [there.element(layer) for layer in dict.fromkeys(layers)]
    wanted = [element for element in dict.fromkeys(elements) if not _is_precise(element)]
    offsets = [part.offset for element in wanted for part in (element, *element.children)]
    offsets += [part.offset for element in wanted for info in element.findall("rt_info")[:1] for part in info.children]
    places = extents(root.source, offsets)
    return apply(content, [edit for element in wanted for edit in _marked(element, places)])


class _Layers:
    """The layers of a text, those of bodies too, which are looked through once however many are asked for."""

    def __init__(self, root: Element) -> None:
        self._root = root
        own = root.find("layers")
        self._numbered: dict[int | None, list[Element]] = {}
        for layer in own.findall("layer") if own else ():
            self._numbered.setdefault(_id(layer), []).append(layer)
        self._named: dict[str | None, list[Element]] = {}
        self._placed: dict[int, Element] = {}
        for layer in _all_layers(root):
            self._named.setdefault(layer.attributes.get("name"), []).append(layer)
            self._placed[layer.offset] = layer

    def element(self, wanted: str | int | Layer) -> Element:
        """The one that is meant. Raises ValueError where there is none, or there are several."""
        if isinstance(wanted, Layer):
            own = wanted.element
            if own.source.data == self._root.source.data:
                return self._placed[own.offset]
            raise ValueError(f"layer {wanted} was not read from this text")
        found = self._numbered.get(wanted, []) if isinstance(wanted, int) else self._named.get(wanted, [])
        if len(found) == 1:
            return found[0]
        if not found:
            raise ValueError(f"there is no layer `{wanted}` in the model")
        lines = ", ".join(str(layer.line) for layer in found[:8])
        raise ValueError(f"`{wanted}` is the name of {len(found)} layers, at the lines {lines}")


def _id(layer: Element) -> int | None:
    text = layer.attributes.get("id", "").strip()
    return int(text) if text.isdecimal() and len(text) < 21 else None


def _all_layers(element: Element) -> list[Element]:
    found = []
    for child in element.children:
        if child.tag == "layer":
            found.append(child)
        found += _all_layers(child)
    return found


def _is_precise(layer: Element) -> bool:
    info = layer.find("rt_info")
    return info is not None and any(mark.attributes.get("name") == PRECISE for mark in info.findall("attribute"))


def _marked(layer: Element, places: dict[int, Extent]) -> list[Edit]:
    """What puts the mark into the first <rt_info> of a layer, or into a new one behind its <data>."""
    data = layer.source.data
    place = places[layer.offset]
    outer = _lead(data, layer.offset)
    child = _lead(data, layer.children[0].offset) if layer.children else _deeper(outer, "")
    inner = _deeper(child, outer)
    mark = f'<attribute name="{PRECISE}" version="0" />'
    info = layer.find("rt_info")
    if info is not None:
        there = places[info.offset]
        if there.closed_at_once:
            opened = data[there.start : there.end].removesuffix(b"/>").rstrip()
            return [Edit(there.start + len(opened), there.end, f">{inner}{mark}{child}</rt_info>")]
        if not info.children and not data[there.inside : there.close].strip():
            return [Edit(there.inside, there.close, f"{inner}{mark}{child}")]
        last = places[info.children[-1].offset].end if info.children else there.inside
        lead = _lead(data, info.children[0].offset) if info.children else inner
        return [Edit(last, last, f"{lead}{mark}")]
    text = f"<rt_info>{inner}{mark}{child}</rt_info>"
    if place.closed_at_once:
        opened = data[place.start : place.end].removesuffix(b"/>").rstrip()
        return [Edit(place.start + len(opened), place.end, f">{child}{text}{outer}</{layer.tag}>")]
    first = layer.find("data")
    after = places[first.offset].end if first else place.inside
    return [Edit(after, after, child + text + ("" if layer.children else outer))]


def _lead(data: bytes, offset: int) -> str:
    """The line break and the blanks before an element, nothing where it does not begin its line."""
    found = _BREAK.search(data, max(offset - 400, 0), offset)
    return found[0].lstrip(b" \t").decode() if found else ""


def _deeper(lead: str, outer: str) -> str:
    """`lead` with one step of indentation more, which is what it has more than `outer`, else a tab."""
    if not lead:
        return ""
    step = lead.removeprefix(outer) if outer and lead.startswith(outer) else ""
    return lead + (step or "\t")


def _encoding(utf8: bytes) -> str:
    """The encoding of a text that is not in UTF-16; UTF-8 where that which is declared is not known."""
    found = _ENCODING.match(utf8)
    name = found[1].decode() if found else "utf-8"
    try:
        codecs.lookup(name)
    except LookupError:
        return "utf-8"
    return "utf-8" if _UTF16.match(name) else name
