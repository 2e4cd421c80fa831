"""What reading a model passes over and writing it must not lose: comments, processing instructions, and texts."""

from __future__ import annotations

import re
from dataclasses import field

from irrun.ir.lines import Source
from irrun.ir.xml import parser_of
from irrun.records import dataclass

DOCUMENT = -1
"""Where a remnant stands that comes behind the root element."""

_SOMETHING = re.compile(rb"<!--|<!\[CDATA\[|<\?(?!xml\s)|(?<!<dim)>\s*[^\s<]")


@dataclass(frozen=True, slots=True)
class Aside:
    """A comment, or a processing instruction for the program `target`."""

    text: str
    target: str | None = None


@dataclass(slots=True)
class Remnant:
    """What stands `before` an element, as the `last` in it, as the first `text` in it and as the `tail` behind it."""

    before: list[Aside] = field(default_factory=list)
    last: list[Aside] = field(default_factory=list)
    text: str = ""
    tail: str = ""


def remnants(source: Source) -> dict[int, Remnant]:
    """What is left over of a file that was read, by the byte at which its elements begin; sizes have none."""
    if not _SOMETHING.search(source.data):
        return {}
    found: dict[int, Remnant] = {}
    parser = parser_of(source)
    opened: list[int] = []
    asides: list[Aside] = []
    closed: list[int | None] = [None]

    def at(offset: int) -> Remnant:
        return found.setdefault(offset, Remnant())

    def start(tag: str, _: dict[str, str]) -> None:
        offset = parser.CurrentByteIndex
        if asides:
            if tag == "dim" and opened:
                at(opened[-1]).last.extend(asides)
            else:
                at(offset).before.extend(asides)
            asides.clear()
        opened.append(offset)
        closed[0] = None

    def end(_: str) -> None:
        offset = opened.pop()
        if asides:
            at(offset).last.extend(asides)
            asides.clear()
        closed[0] = offset

    def text(characters: str) -> None:
        if characters.isspace() or not opened:
            return
        if closed[0] is None:
            at(opened[-1]).text += characters
        else:
            at(closed[0]).tail += characters

    def instruction(target: str, data: str) -> None:
        asides.append(Aside(data, target))

    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.CommentHandler = lambda data: asides.append(Aside(data))
    parser.ProcessingInstructionHandler = instruction
    try:
        parser.Parse(source.data, True)
    finally:
        parser.StartElementHandler = parser.EndElementHandler = parser.CharacterDataHandler = None
        parser.CommentHandler = parser.ProcessingInstructionHandler = None
    if asides:
        found[DOCUMENT] = Remnant(last=asides)
    return found
