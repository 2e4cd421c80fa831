"""XML text to a light tree of elements that know their place in the file; what they mean is the reader's matter."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from typing import Any
from xml.parsers import expat

from irrun.diagnostics import NOWHERE, Diagnostic, IRError, Span
from irrun.ir.collector import collector_paused
from irrun.ir.lines import NO_FILE, Source
from irrun.ir.plain import PlainEdge, PlainLayer, Run, plain_runs

MAX_DEPTH = 256
"""A body nests three elements deeper than its layer, so this is some 80 bodies in each other; files have 3 or 4."""

MAX_COST = 900 << 20
"""Bytes of memory for a model, as `_cost` estimates them, unless its file is large: some 130,000 layers."""

MAX_GROWTH = 24
"""Such bytes for each of a larger file, as layers with small ports need; made up of empty elements it would need 60."""

_DENSEST = 550
"""Such bytes for each that is written, at most: for `<layer`."""

MAX_TAG = 1 << 20
"""Bytes from one < to the next. What is longer takes a multiple of it as text."""

MAX_TEXT = 1 << 16
"""Characters of the text in an element that are kept; nothing reads more than a number."""

_UTF16 = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
"""How text in UTF-16 begins, with or without a mark."""


class Element:
    """An element. `text` is the character data directly inside a `<dim>`, of which nothing else in an IR has any.

    The `<dim>`s of a `<port>`, a third of all elements, are not among its `children`: `dims` has a number for each,
    or the element where the text is anything else. `offset` is the byte of its `<` in `source`: lines and columns are
    counted only when someone asks for them. An element that was added stands in no file: its line is 0.
    """

    __slots__ = ("attributes", "children", "dims", "offset", "source", "tag", "text")

    deferred = False

    def __init__(self, tag: str, attributes: dict[str, str], source: Source | None = None, offset: int = 0) -> None:
        self.tag = tag
        self.attributes = attributes
        self.source = source or NO_FILE
        self.offset = offset
        self.children: list[Element] = _NONE
        self.dims: list[int | Element] = _NONE
        self.text = ""

    @property
    def line(self) -> int:
        return self.span.line

    @property
    def column(self) -> int:
        return self.span.column

    @property
    def span(self) -> Span:
        """Where `<tag` stands."""
        if self.source is NO_FILE:
            return NOWHERE
        return self.source.span(self.offset, len(self.tag) + 1)

    def find(self, tag: str) -> Element | None:
        """The first child with this tag."""
        for child in self.children:
            if child.tag == tag:
                return child
        return None

    def findall(self, tag: str) -> list[Element]:
        return [child for child in self.children if child.tag == tag]


class Deferred(Element):
    """A layer or an edge of which `plain` says all until it is taken; it is parsed when someone looks inside.

    As long as it is `deferred` it has the attributes of a plain layer or edge, and nothing that has to do with bodies.
    """

    __slots__ = ("_plain", "deferred")

    def __init__(self, tag: str, source: Source, offset: int, plain: PlainLayer | PlainEdge) -> None:
        self.tag = tag
        self.source = source
        self.offset = offset
        self.deferred = True
        self._plain: PlainLayer | PlainEdge | None = plain

    def take(self) -> Any:
        """What it says, once; None when someone has looked inside, or has it already."""
        plain, self._plain = self._plain if self.deferred else None, None
        return plain

    def __getattr__(self, name: str) -> Any:
        if name not in Element.__slots__ or not self.deferred:
            raise AttributeError(name)
        data = self.source.data
        end = data.index(b">", data.index(b"</layer" if self.tag == "layer" else b"/", self.offset)) + 1
        parsed = _elements(self.source, data[self.offset : end], self.offset)
        self.attributes, self.children = parsed.attributes, parsed.children
        self.dims, self.text = parsed.dims, parsed.text
        self.deferred = False
        return getattr(self, name)


def attribute_span(element: Element, name: str) -> Span:
    """Where `name="value"` stands in the start tag of `element`; the place of the element where it is not found."""
    span = element.source.attributes(element.offset).get(name.encode())
    if span is None:
        return element.span
    shown = element.source.data[slice(*span)].split(b"\n")[0].rstrip()
    return element.source.span(span[0], len(shown.decode("utf-8", "replace")))


def as_utf8(data: bytes) -> bytes:
    """The text of a file in UTF-16 in UTF-8; any other as it is."""
    encoding = _UTF16.get(data[:2])
    return data if encoding is None else data.decode(encoding, "replace").encode()


_DECLARED_UTF16 = re.compile(rb"""<\?xml[^>]*?encoding\s*=\s*["']utf-?16""", re.IGNORECASE)


def parser_of(source: Source) -> expat.XMLParserType:
    """A parser for the bytes of a source: text that was in UTF-16 still says so, but is in UTF-8 by now."""
    return expat.ParserCreate("utf-8" if _DECLARED_UTF16.match(source.data) else None)


def parse(data: bytes) -> Element:
    """The root element of an XML text. Raises IRError with one diagnostic where it is not well-formed or not safe."""
    encoding = "utf-8" if data[:2] in _UTF16 else None
    source = Source(as_utf8(data))
    _check_size(source)
    with collector_paused():
        if encoding is None and not _OTHER_ENCODING.match(source.data):
            with suppress(_MisplacedError, IRError):  # of which the whole text will tell
                return _without_plain(source)
        return _elements(source, source.data, encoding=encoding)


def parse_source(source: Source) -> Element:
    """The root element of a text that is in UTF-8 by now, if it was in UTF-16. Raises IRError as `parse` does."""
    _check_size(source)
    with collector_paused():
        return _elements(source, source.data, encoding="utf-8" if _DECLARED_UTF16.match(source.data) else None)


_OTHER_ENCODING = re.compile(rb"""(\xef\xbb\xbf)?<\?xml[^>]*?encoding\s*=\s*(?!["']utf-8["'])""", re.IGNORECASE)
_MARK = b"<?plain?>"


class _MisplacedError(Exception):
    """What looks like elements stands where there are none, as in a comment, or where the reader does not want them."""


def _without_plain(source: Source) -> Element:
    """The root, from the text with a mark in place of each run of plain elements: a parser says where these stand.

    Raises IRError for a text that is not well-formed, _MisplacedError.
    """
    data = source.data
    parts: list[bytes] = []
    marks: dict[int, Run] = {}
    position = length = 0
    for run in plain_runs(data.decode("latin-1")):
        length += run.start - position
        marks[length] = run
        length += len(_MARK)
        parts += data[position : run.start], _MARK
        position = run.stop
    text = b"".join([*parts, data[position:]])
    root = _elements(source, text, marks=marks)
    if marks:
        raise _MisplacedError
    source.parsed = text
    return root


def _elements(
    source: Source, text: bytes, shift: int = 0, marks: dict[int, Run] | None = None, encoding: str | None = None
) -> Element:
    """The root of a `text`, which begins at the byte `shift` of `source`, with what is in place of `marks`.

    Takes out of `marks` those that were found. Raises IRError, _MisplacedError.
    """
    parser = expat.ParserCreate(encoding)
    top = Element("", {}, source)
    stack = [top]

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, source, parser.CurrentByteIndex + shift)
        stack.append(element)
        if tag == "dim":
            parser.CharacterDataHandler = characters
        if len(stack) > MAX_DEPTH:
            message = f"elements are nested more than {MAX_DEPTH} deep"
            raise IRError([Diagnostic("E104", message, element.span)])

    def end(tag: str) -> None:
        element = stack.pop()
        parent = stack[-1]
        if tag == "dim":
            parser.CharacterDataHandler = characters if parent.tag == "dim" else None
            if parent.tag == "port":
                size = int(element.text) if _is_plain(element.text) else element
                if parent.dims:
                    parent.dims.append(size)
                else:
                    parent.dims = [size]
                return
        if parent.children:
            parent.children.append(element)
        else:
            parent.children = [element]

    def characters(text: str) -> None:
        if not text.isspace() and len(stack[-1].text) < MAX_TEXT:
            stack[-1].text += text

    def instruction(*_: object) -> None:
        nonlocal shift
        run = marks.pop(parser.CurrentByteIndex, None) if marks else None
        if run is not None:
            parent = stack[-1]
            if parent.tag != f"{run.tag}s" or len(stack) > MAX_DEPTH - _PLAIN_DEPTH:
                raise _MisplacedError
            members: list[Element] = [Deferred(run.tag, source, *member) for member in run.members]
            if parent.children:
                parent.children += members
            else:
                parent.children = members
            shift = run.stop - parser.CurrentByteIndex - len(_MARK)

    def doctype(*_: object) -> None:
        span = source.span(parser.CurrentByteIndex, len("<!DOCTYPE"))
        help = "delete the declaration; an IR needs none, and OpenVINO expands no entities"
        raise IRError([Diagnostic("E105", "a DOCTYPE declaration is not allowed in an IR", span, help=help)])

    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = doctype
    parser.ProcessingInstructionHandler = instruction
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        from irrun.ir.malformed import explained

        raise IRError([explained(error.code, source, parser.ErrorByteIndex, stack)]) from None
    except (LookupError, ValueError):
        from irrun.ir.malformed import UTF8

        raise IRError([Diagnostic("E101", "the declared encoding is not known", Span(1, 1), help=UTF8)]) from None
    finally:
        parser.StartElementHandler = parser.EndElementHandler = parser.StartDoctypeDeclHandler = None
        parser.ProcessingInstructionHandler = None
    return top.children[0]


_PLAIN_DEPTH = 4
"""A layer, its inputs, a port and a size."""

_NONE: list[Any] = []
"""The children and dims of all elements without any: most of a file are such."""


def _is_plain(text: str) -> bool:
    """Whether the text of a `<dim>` is what writers of IR put there."""
    return (text.isdecimal() and text.isascii() and len(text) < 19) or text == "-1"


def _check_size(source: Source) -> None:
    """Refuse what would take more memory or time than any model does. Raises IRError."""
    data = source.data
    most = max(MAX_COST, MAX_GROWTH * len(data))
    cost = _cost(data, data.count(b"<")) if len(data) > MAX_COST // _DENSEST else 0
    if cost > most and (cost := _cost(data, data.count(b"<") - data.count(b"</"))) > most:
        message = f"reading the file would take some {cost >> 20:,} MiB of memory, more than {most >> 20:,}"
        help = "it has more elements, attributes or layers than any real model"
        raise IRError([Diagnostic("E104", message, Span(1, 1), help=help)])
    for start in range(0, len(data) - MAX_TAG, MAX_TAG):
        if data.find(b"<", start, start + MAX_TAG) < 0:
            at = max(data.rfind(b"<", 0, start), 0)
            message = f"a tag or a text has more than {MAX_TAG:,} bytes"
            raise IRError([Diagnostic("E104", message, source.span(at))])


def _cost(data: bytes, elements: int) -> int:
    """The bytes of memory that the tree of a file and the model made of it take at most, roughly."""
    return 250 * elements + 110 * data.count(b"=") + 3000 * data.count(b"<layer") + len(data)
