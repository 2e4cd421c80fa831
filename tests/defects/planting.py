"""Defects: one cause planted into a valid model, with the lines and the layer that should be blamed for it.

The sign `¤` in the text of a model marks the line to blame: a line of its own, or, where it opens a layer, all lines
of this layer but those of layers inside it. `¢` stands for the file as a whole, and is line 0. Whoever plants a defect
writes the mark before anybody has looked at it."""

import re
from dataclasses import dataclass

MARK = "¤"
FILE = "¢"
OPENING = re.compile(r"<layer[\s>]")


@dataclass(frozen=True, slots=True)
class Defect:
    """A model with one cause: `lines` are those to blame (from 1), `layer` the name that is to be named."""

    family: str
    name: str
    text: bytes
    weights: bytes | None
    lines: frozenset[int]
    layer: str | None
    arguable: str = ""

    @property
    def key(self) -> str:
        return f"{self.family}: {self.name}"


@dataclass(frozen=True, slots=True)
class Valid:
    """An unusual model that has no defect."""

    family: str
    name: str
    text: bytes
    weights: bytes | None

    @property
    def key(self) -> str:
        return f"{self.family}: {self.name}"


@dataclass(frozen=True, slots=True)
class Base:
    """A valid model, for `plant`."""

    text: str
    weights: bytes


def extent(lines: list[str], start: int) -> list[int]:
    """The indices of the layer that opens in a line, without those of layers inside it."""
    depth = 0
    own = []
    for index in range(start, len(lines)):
        line = lines[index]
        opens = bool(OPENING.search(line))
        depth += opens
        if depth <= 1:
            own.append(index)
        if "</layer>" in line or (opens and line.rstrip().endswith("/>") and "<data" not in line):
            depth -= 1
            if depth == 0:
                break
    return own


def blamed(text: str) -> frozenset[int]:
    lines = text.split("\n")
    found: set[int] = set()
    for index, line in enumerate(lines):
        if MARK in line:
            found.update(extent(lines, index) if OPENING.search(line) else [index])
    return frozenset(index + 1 for index in found)


def marked(
    family: str, name: str, text: str, weights: bytes | None, layer: str | None = None, arguable: str = ""
) -> Defect:
    """The defect of a text that has marks."""
    lines = blamed(text) | ({0} if FILE in text else frozenset())
    assert lines, (family, name, "no mark")
    return Defect(family, name, text.replace(MARK, "").replace(FILE, "").encode(), weights, lines, layer, arguable)


def changed(text: str, layer: str | None, old: str, new: str) -> str:
    """The text with `new` for the one `old` in it, or for the first one in the layer of that name; without a mark in
    `new` the first line of what has changed is marked, or the layer itself if `old` begins with `^`."""
    start = 0
    if layer is not None:
        opening = re.search(rf'<layer [^>]*name="{re.escape(layer)}"', text)
        assert opening, layer
        start = opening.start()
    whole = old.startswith("^")
    old = old.removeprefix("^")
    at = text.index(old, start)
    if layer is None:
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
    if whole:
        text = text[:at] + new + text[at + len(old) :]
        return text[:start] + MARK + text[start:]
    if MARK not in new:
        lead = len(new) - len(new.lstrip("\n\t "))
        new = new[:lead] + MARK + new[lead:]
    return text[:at] + new + text[at + len(old) :]


def renamed(text: str, layer: str | None, tag: str, name: str) -> str:
    """The text with an element of another name, from its opening tag, which is marked, to its closing tag."""
    text = changed(text, layer, f"<{tag}>", f"<{name}>")
    at = text.index(f"</{tag}>", text.index(f"{MARK}<{name}>"))
    return text[:at] + f"</{name}>" + text[at + len(tag) + 3 :]


def plant(
    family: str,
    base: Base,
    table: list[tuple[str, str | None, str, str]],
    arguable: dict[str, str] | None = None,
    named: bool = True,
) -> list[Defect]:
    """A defect for each row: name, the layer to look in and to be named, what is replaced, by what; where both are
    a tag, the whole element has the other name."""
    made = []
    for name, layer, old, new in table:
        opening, other = re.fullmatch(r"<(\w+)>", old), re.fullmatch(r"<(\w+)>", new)
        try:
            if opening and other:
                text = renamed(base.text, layer, opening[1], other[1])
            else:
                text = changed(base.text, layer, old, new)
        except (AssertionError, ValueError) as error:
            raise AssertionError(f"{family}: {name}: {error}") from error
        why = (arguable or {}).get(name, "")
        made.append(marked(family, name, text, base.weights, layer if named else None, why))
    return made
