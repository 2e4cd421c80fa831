"""XML text to a light tree of elements that know their place in the file; what they mean is the reader's matter."""

from __future__ import annotations

import codecs
import gc
import re
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from xml.parsers import expat

from irrun.diagnostics import Diagnostic, IRError, Note, Place

MAX_DEPTH = 256
"""A body nests three elements deeper than its layer, so this is some 80 bodies in each other; files have 3 or 4."""

MAX_ELEMENTS = 5_000_000
"""About 2 GB of memory as a tree. A language model of several thousand layers has some 200,000 elements."""

_ATTRIBUTE = re.compile(rb"""\s+([^\s=/>]+)\s*=\s*("[^"]*"|'[^']*')""")
_TAG = re.compile(rb"<[^\s/>]+")
_ELIDED = re.compile(rb"<\w+[^>]*?\.\.\.")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_FRAGMENT = (
    "the samples on OpenVINO's operation specification pages are abbreviated: write out what stands as `...`, "
    "give every <layer> an id, a name and a version, and put all into <net><layers>"
)


class Source:
    """The bytes of a file, and where its lines begin."""

    __slots__ = ("_breaks", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._breaks: list[int] | None = None

    def position(self, offset: int) -> tuple[int, int]:
        """The line and the column, in characters from 1, of the byte at `offset`."""
        if self._breaks is None:
            self._breaks = [match.start() for match in re.finditer(rb"\n", self.data)]
        line = bisect_left(self._breaks, offset)
        start = self._breaks[line - 1] + 1 if line else 0
        if line == 0 and self.data.startswith(codecs.BOM_UTF8):
            start = min(len(codecs.BOM_UTF8), offset)
        return line + 1, len(self.data[start:offset].decode("utf-8", "replace")) + 1

    def place(self, offset: int, length: int = 1) -> Place:
        return Place(*self.position(offset), length)


@dataclass(eq=False, slots=True)
class Element:
    """An element; `text` is the character data directly inside, empty where that is only blanks.

    `offset` is the byte of its `<` in `source`: lines and columns are counted only when someone asks for them.
    """

    tag: str
    attributes: dict[str, str]
    source: Source = field(default_factory=lambda: Source(b""), repr=False)
    offset: int = 0
    children: list[Element] = field(default_factory=list, repr=False)
    text: str = ""

    @property
    def line(self) -> int:
        return self.source.position(self.offset)[0]

    @property
    def column(self) -> int:
        return self.source.position(self.offset)[1]

    @property
    def place(self) -> Place:
        """Where `<tag` stands."""
        return self.source.place(self.offset, len(self.tag) + 1)

    def find(self, tag: str) -> Element | None:
        """The first child with this tag."""
        for child in self.children:
            if child.tag == tag:
                return child
        return None

    def findall(self, tag: str) -> list[Element]:
        return [child for child in self.children if child.tag == tag]


def attribute_place(element: Element, name: str) -> Place:
    """Where `name="value"` stands in the start tag of `element`; the place of the element where it is not found."""
    data = element.source.data
    tag = _TAG.match(data, element.offset)
    attribute = _ATTRIBUTE.match(data, tag.end()) if tag else None
    while attribute:
        if attribute[1] == name.encode():
            start = attribute.start(1)
            shown = data[start : attribute.end()].split(b"\n")[0].rstrip()
            return element.source.place(start, len(shown.decode("utf-8", "replace")))
        attribute = _ATTRIBUTE.match(data, attribute.end())
    return element.place


@contextmanager
def collector_paused() -> Iterator[None]:
    """Without the garbage collector: it would walk the growing tree again and again, a third of the time of parsing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def parse(data: bytes) -> Element:
    """The root element of an XML text. Raises IRError with one diagnostic where it is not well-formed or not safe."""
    if data.startswith(_UTF16):
        data = data.decode("utf-16", "replace").encode()
        parser = expat.ParserCreate("utf-8")
    else:
        parser = expat.ParserCreate()
    source = Source(data)
    if data.count(b"<") - data.count(b"</") > MAX_ELEMENTS:
        raise IRError([Diagnostic("E104", f"the file has more than {MAX_ELEMENTS:,} elements", Place(1, 1))])
    top = Element("", {}, source)
    stack = [top]

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, source, parser.CurrentByteIndex, [])
        stack[-1].children.append(element)
        stack.append(element)
        if len(stack) > MAX_DEPTH:
            message = f"elements are nested more than {MAX_DEPTH} deep"
            raise IRError([Diagnostic("E104", message, element.place)])

    def end(_: str) -> None:
        stack.pop()

    def text(characters: str) -> None:
        if not characters.isspace():
            stack[-1].text += characters

    def doctype(*_: object) -> None:
        place = source.place(parser.CurrentByteIndex, len("<!DOCTYPE"))
        help = "delete the declaration; an IR needs none, and OpenVINO expands no entities"
        raise IRError([Diagnostic("E105", "a DOCTYPE declaration is not allowed in an IR", place, help=help)])

    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = doctype
    with collector_paused():
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            raise IRError([_explained(error.code, source, parser.ErrorByteIndex, stack)]) from None
        except (LookupError, ValueError):
            raise IRError([Diagnostic("E101", "the declared encoding is not known", Place(1, 1), help=_UTF8)]) from None
        finally:
            parser.StartElementHandler = parser.StartDoctypeDeclHandler = None
    return top.children[0]


_UTF8 = "save the file as UTF-8"
_WORDS = {
    expat.errors.XML_ERROR_INVALID_TOKEN: (
        "this character is not allowed here",
        "inside an attribute write `&lt;` for < and `&amp;` for &, and quote every value",
    ),
    expat.errors.XML_ERROR_UNCLOSED_TOKEN: ("this tag is not closed before the file ends", "the file may be cut short"),
    expat.errors.XML_ERROR_DUPLICATE_ATTRIBUTE: (
        "an attribute is given twice in one tag",
        "delete one of the two",
    ),
    expat.errors.XML_ERROR_UNDEFINED_ENTITY: (
        "an entity is used that XML does not define",
        "XML knows &lt; &gt; &amp; &quot; &apos; only; write `&amp;` for a plain &",
    ),
    expat.errors.XML_ERROR_MISPLACED_XML_PI: (
        "the XML declaration must be the very first thing in the file",
        "delete the blanks before `<?xml`, or the second declaration",
    ),
    expat.errors.XML_ERROR_UNKNOWN_ENCODING: ("the declared encoding is not known", _UTF8),
    expat.errors.XML_ERROR_INCORRECT_ENCODING: ("the declared encoding is not that of the file", _UTF8),
    expat.errors.XML_ERROR_PARTIAL_CHAR: ("the file ends within a character", "the file may be cut short"),
}


def _explained(code: int, source: Source, offset: int, stack: list[Element]) -> Diagnostic:
    """The diagnostic for expat's error `code` at byte `offset`, while `stack` was open."""
    place, data = source.place(offset), source.data
    opened = stack[-1] if len(stack) > 1 else None
    note = (Note(f"<{opened.tag}> is opened here", opened.place),) if opened else ()
    line = data[data.rfind(b"\n", 0, offset) + 1 : data.find(b"\n", offset) % (len(data) + 1)]
    if _ELIDED.search(line):
        return Diagnostic("E101", "`...` stands where attributes should be", place, help=_FRAGMENT)
    name = expat.errors.messages[code]
    if name == expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT:
        help = "delete it; OpenVINO ignores what follows, other readers of XML refuse the file"
        return Diagnostic("E106", "the file goes on after its root element", place, help=help)
    if name == expat.errors.XML_ERROR_NO_ELEMENTS and opened is None:
        return Diagnostic("E101", "the file has no XML element", place, help="was it written to the end?")
    if name == expat.errors.XML_ERROR_NO_ELEMENTS and opened:
        help = "the file may be cut short"
        return Diagnostic("E101", f"the file ends while <{opened.tag}> is open", place, help=help, notes=note)
    if name == expat.errors.XML_ERROR_TAG_MISMATCH and opened:
        return _mismatch(source, data.rfind(b"<", 0, offset + 1), opened, note)
    if name == expat.errors.XML_ERROR_INVALID_TOKEN and _broken_utf8(data, offset):
        return Diagnostic("E101", "the bytes here are not UTF-8", place, help=_UTF8)
    message, help = _WORDS.get(name, (f"not well-formed XML: {name}", "see https://www.w3.org/TR/xml"))
    return Diagnostic("E101", message, place, help=help, notes=note)


def _mismatch(source: Source, offset: int, opened: Element, note: tuple[Note, ...]) -> Diagnostic:
    end = _TAG.match(source.data, offset + 1 if source.data[offset : offset + 1] != b"<" else offset)
    found = source.data[offset : source.data.find(b">", offset) + 1].decode("utf-8", "replace")
    help = f"close <{opened.tag}> first, or delete `{found}`"
    if found == "</port>" and opened.tag in ("input", "output"):
        help = f"a <port .../> before it is closed at once, so its <dim>s lie outside: write <port ...>; {_FRAGMENT}"
    length = len(found) if end or found else 1
    message = f"`{found}` does not close <{opened.tag}>"
    return Diagnostic("E101", message, source.place(offset, length), help=help, notes=note)


def _broken_utf8(data: bytes, offset: int) -> bool:
    try:
        data[offset : offset + 4].decode()
    except UnicodeDecodeError as error:
        return error.reason != "unexpected end of data"
    return False
