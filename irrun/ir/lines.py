"""The bytes of a file and where its lines begin, so that places in it are told by line and column."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence

from irrun.diagnostics import Span

TAG = re.compile(rb"<[^\s/>]+")
"""The beginning of a start tag, up to the end of its name."""

_BLOCK = 1 << 13
_CONTINUED = bytes(range(0x80, 0xC0))
"""The bytes with which no UTF-8 character begins."""

_ATTRIBUTE = re.compile(rb"""\s+([^\s=/>]+)\s*=\s*("[^"]*"|'[^']*')""")


class Source:
    """The bytes of a file, and where its lines begin.

    Both are counted by blocks: a file may be one line of megabytes, or nothing but line breaks. What was `parsed` of
    it has marks in place of plain elements.
    """

    __slots__ = ("_characters", "_lines", "_tag", "data", "parsed")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.parsed = data
        self._lines: list[int] = []
        self._characters: list[int] = []
        self._tag: tuple[int, dict[bytes, tuple[int, int]]] = -1, {}

    def _index(self) -> None:
        """Count the line breaks and the characters before every block."""
        lines = characters = 0
        for start in range(0, len(self.data) + 1, _BLOCK):
            self._lines.append(lines)
            self._characters.append(characters)
            block = self.data[start : start + _BLOCK]
            lines += block.count(b"\n")
            characters += len(block.translate(None, _CONTINUED))

    def position(self, offset: int) -> tuple[int, int]:
        """The line and the column, in characters from 1, of the byte at `offset`."""
        if not self._lines:
            self._index()
        block = offset // _BLOCK
        line = self._lines[block] + self.data.count(b"\n", block * _BLOCK, offset)
        last = self.data.rfind(b"\n", block * _BLOCK, offset)
        if last < 0 and self._lines[block]:
            before = bisect_left(self._lines, self._lines[block]) - 1
            last = self.data.rfind(b"\n", before * _BLOCK, (before + 1) * _BLOCK)
        start = last + 1
        if line == 0 and self.data.startswith(codecs.BOM_UTF8):
            start = min(len(codecs.BOM_UTF8), offset)
        if offset - start <= _BLOCK:
            return line + 1, len(self.data[start:offset].decode("utf-8", "replace")) + 1
        return line + 1, self._before(offset) - self._before(start) + 1

    def _before(self, offset: int) -> int:
        """How many characters there are before a byte."""
        block = offset // _BLOCK
        return self._characters[block] + len(self.data[block * _BLOCK : offset].translate(None, _CONTINUED))

    def window(self, line: int, column: int, width: int) -> str | None:
        """The characters of a line from a column on, `width` at most; None where there is no such line."""
        start = self._line_start(line)
        if start is None:
            return None
        if line == 1 and self.data.startswith(codecs.BOM_UTF8):
            start = len(codecs.BOM_UTF8)
        stop = self.data.find(b"\n", start, start + _BLOCK)
        if stop < 0 and column > width:
            sought = self._before(start) + column - 1
            block = max(bisect_left(self._characters, sought) - 1, start // _BLOCK)
            start = max(start, block * _BLOCK)
            while start < len(self.data) and self.data[start] in _CONTINUED:
                start += 1
            column = sought - self._before(start) + 1
        reach = start + 2 * _BLOCK
        stop = self.data.find(b"\n", start, reach)
        stop = min(len(self.data), reach) if stop < 0 else stop
        return self.data[start:stop].decode("utf-8", "replace")[column - 1 : column - 1 + width]

    def _line_start(self, line: int) -> int | None:
        if not self._lines:
            self._index()
        block = max(bisect_left(self._lines, line - 1) - 1, 0)
        start, missing = block * _BLOCK, line - 1 - self._lines[block]
        for _ in range(missing if block or line > 1 else 0):
            start = self.data.find(b"\n", start) + 1
            if not start:
                return None
        return start

    def span(self, offset: int, length: int = 1) -> Span:
        return Span(*self.position(offset), length)

    def attributes(self, offset: int) -> dict[bytes, tuple[int, int]]:
        """From where to where the attributes of the start tag at `offset` go."""
        if self._tag[0] != offset:
            found = {}
            tag = TAG.match(self.data, offset)
            attribute = _ATTRIBUTE.match(self.data, tag.end()) if tag else None
            while attribute:
                found[attribute[1]] = attribute.start(1), attribute.end()
                attribute = _ATTRIBUTE.match(self.data, attribute.end())
            self._tag = offset, found
        return self._tag[1]


class MendedSource(Source):
    """A text as it is meant: `original` with parts replaced, whose places are those of the original.

    Each of the `parts` is from where to where it goes there, and what stands in its place. In `unsure` lines nobody
    knows what is meant.
    """

    __slots__ = ("_begins", "_parts", "original", "unsure")

    def __init__(
        self, original: Source, parts: Sequence[tuple[int, int, bytes]], unsure: Collection[int | None]
    ) -> None:
        pieces: list[bytes] = []
        self.original = original
        self.unsure = unsure
        self._begins: list[int] = []
        self._parts: list[tuple[int, int, int]] = []
        at = length = 0
        for start, end, text in parts:
            pieces += [original.data[at:start], text]
            length += start - at
            self._begins.append(length)
            length += len(text)
            self._parts.append((length, start, end))
            at = end
        super().__init__(b"".join([*pieces, original.data[at:]]))

    def position(self, offset: int) -> tuple[int, int]:
        number = bisect_right(self._begins, offset) - 1
        if number < 0:
            return self.original.position(offset)
        behind, start, end = self._parts[number]
        return self.original.position(start if offset < behind else offset - behind + end)


NO_FILE = Source(b"")
"""The source of elements that were not read, but made."""
