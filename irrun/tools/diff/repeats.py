"""Edits that say the same of many places, told once: 24 of them in layers.0 to layers.23."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from irrun.records import dataclass
from irrun.tools.diff.edits import SILENT, Edit

_DIGITS = re.compile(r"(\d+)")

_FEW = 3
"""Names from which on they are a range."""

_LONG = 18
"""Digits of what is no number to count by."""


@dataclass(frozen=True, slots=True)
class Group:
    """Edits of one kind that say the same, in order."""

    kind: str
    message: str
    edits: tuple[Edit, ...]


def grouped(edits: Sequence[Edit]) -> list[Group]:
    """The edits by what they say, in the order of the first of each."""
    found: dict[tuple[Any, ...], list[Edit]] = {}
    for edit in edits:
        bodies = tuple(edit.path[1::2])
        types = () if edit.kind in SILENT or edit.role else tuple(layer.type for layer in edit.layers[:1])
        found.setdefault((edit.kind, edit.message, types, bodies), []).append(edit)
    return [Group(key[0], key[1], tuple(listed)) for key, listed in found.items()]


def by_role(edits: Sequence[Edit]) -> dict[str, list[Edit]]:
    """Edits that say the same by what they say it of, the most frequent first."""
    found: dict[str, list[Edit]] = {}
    for edit in edits:
        found.setdefault(edit.role, []).append(edit)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def ranges(names: Sequence[str]) -> list[str]:
    """Names in which only one number differs as one, `layers.{0..23}.mlp`; other ones as they are, in order."""
    templates: dict[str, list[list[str]]] = {}
    for name in dict.fromkeys(names):
        parts = _DIGITS.split(name)
        numbers = parts[1::2]
        templates.setdefault("\0".join(parts[::2]), []).append(numbers)
    listed = []
    for template, rows in templates.items():
        parts = template.split("\0")
        columns = [[row[column] for row in rows] for column in range(len(parts) - 1)]
        varying = [column for column, values in enumerate(columns) if len(set(values)) > 1]
        if len(rows) < _FEW or len(varying) != 1:
            listed += [_filled(parts, row) for row in rows]
            continue
        texts = list(rows[0])
        texts[varying[0]] = f"{{{_span(columns[varying[0]])}}}"
        listed.append(_filled(parts, texts))
    return listed


def _filled(parts: Sequence[str], numbers: Sequence[str]) -> str:
    return parts[0] + "".join(number + part for number, part in zip(numbers, parts[1:], strict=True))


def _span(numbers: list[str]) -> str:
    """`0..23`, or `0,2,..,22` where some are missing between them."""
    ordered = sorted(set(numbers), key=lambda number: (len(number), number))
    if max(map(len, ordered)) < _LONG and int(ordered[-1]) - int(ordered[0]) + 1 == len(ordered):
        return f"{ordered[0]}..{ordered[-1]}"
    if len(ordered) <= _FEW:
        return ",".join(ordered)
    return f"{ordered[0]},{ordered[1]},..,{ordered[-1]}"
