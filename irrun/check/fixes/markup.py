"""Fixes of texts that are not well-formed XML, which are made to the bytes alone."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from irrun.diagnostics import Diagnostic, Fix, Replacement
from irrun.ir.lines import Source
from irrun.ir.text_edits import Edit

_DOCTYPE = re.compile(rb"<!DOCTYPE[^>\[]*(\[[^\]]*\]\s*)?>[ \t]*(?:\r\n|\n|\r)?")
_TAG = re.compile(rb"""<[\w.-]+(?:\s+[^\s=/>]+\s*=\s*(?:"[^"]*"|'[^']*'))*""")
_ATTRIBUTE = re.compile(rb"""\s+([^\s=/>]+)\s*=\s*("[^"]*"|'[^']*')""")
_BARE = re.compile(rb"""[^\s"'<>=]+?(?=\s|/?>)""")
_ENTITY = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#\d+|#x[0-9a-fA-F]+);)")
_UNENDED = re.compile(rb"""=\s*\Z""")
_OPEN_VALUE = re.compile(rb"""=\s*["'][^"'<]*\Z""")


def markup(diagnostic: Diagnostic, source: Source) -> Iterator[Fix]:
    """E101, E105, E106: what is forbidden goes or is written as XML has it."""
    if diagnostic.span is None or diagnostic.span.line < 1:
        return
    place = diagnostic.span.line, diagnostic.span.column
    at = bisect_left(range(len(source.data)), place, key=source.position)
    for title, edit, safe in _found(diagnostic, source.data, at):
        start, end = source.position(edit.start), source.position(edit.end)
        yield Fix(title, (Replacement(edit.start, edit.end, edit.text, start, end),), safe)


def _found(diagnostic: Diagnostic, data: bytes, at: int) -> Iterator[tuple[str, Edit, bool]]:
    if diagnostic.code == "E105":
        found = _DOCTYPE.match(data, at)
        if found:
            used = _ENTITY.search(data, found.end())  # what the declaration says they stand for is lost
            yield "delete the declaration", Edit(at, found.end(), ""), used is None
        return
    if diagnostic.code == "E106":
        if data[at:].strip():
            end = len(data.rstrip())
            yield "delete what follows the root element", Edit(at, end, ""), b"<" not in data[at:]
        return
    if diagnostic.message.startswith("`<` is missing"):
        yield "write `<`", Edit(at, at, "<"), True
        return
    begin = data.rfind(b"<", 0, at + 1)
    if begin < 0:
        return
    if "given twice" in diagnostic.message:
        yield from _twice(data, begin)
        return
    end = data.find(b">", at)
    entity = _ENTITY.search(data, max(begin, at - 64), min(end if end > 0 else len(data), at + 2))
    if entity:
        yield "write `&amp;`", Edit(entity.start(), entity.start() + 1, "&amp;"), True
    elif data[at : at + 1] == b"<" and _OPEN_VALUE.search(data, max(data.rfind(b"<", 0, at), 0), at):
        yield "write `&lt;`", Edit(at, at + 1, "&lt;"), True
    elif _UNENDED.search(data, begin, at) and (bare := _BARE.match(data, at)):
        yield "write the value in quotes", Edit(at, bare.end(), f'"{bare[0].decode()}"'), True


def _twice(data: bytes, begin: int) -> Iterator[tuple[str, Edit, bool]]:
    tag = _TAG.match(data, begin)
    seen: dict[bytes, bytes] = {}
    for attribute in _ATTRIBUTE.finditer(data, begin, tag.end()) if tag else ():
        name, value = attribute[1], attribute[2]
        if name in seen:
            same = seen[name][1:-1] == value[1:-1]
            title = f"delete the second `{name.decode()}`"
            yield title, Edit(attribute.start(), attribute.end(), ""), same
            return
        seen[name] = value
