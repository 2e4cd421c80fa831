"""Fixes of texts that are not well-formed XML, which are made to the bytes alone."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

from irrun.diagnostics import SECOND, Diagnostic, Fix, Replacement
from irrun.ir.lines import Source
from irrun.ir.recovery import Damage, damages
from irrun.ir.text_edits import Edit


def markup(source: Source) -> Callable[[Diagnostic], tuple[Fix, ...]]:
    """E101, E105, E106, E107: what is forbidden goes or is written as XML has it, as the text was read."""
    found = damages(source.data)
    told = {(*source.position(each.place), each.message): number for number, each in enumerate(found) if each.title}

    def fixes(diagnostic: Diagnostic) -> tuple[Fix, ...]:
        number = told.get((diagnostic.line or 0, diagnostic.column or 0, diagnostic.message))
        if number is None:
            return ()
        damage = found[number]
        parts = [damage, *takewhile(lambda each: not each.message, found[number + 1 :])]
        fix = _fix(source, damage.title, [Edit(part.start, part.end, part.text) for part in parts], damage.safe)
        if damage.other is None:
            return (fix,)
        other = _fix(source, damage.title.replace("second", "first"), [Edit(*_with_blanks(source, damage), "")], False)
        return (other, fix) if diagnostic.remedy == SECOND else (fix, other)

    return fixes


def _fix(source: Source, title: str, edits: list[Edit], safe: bool) -> Fix:
    parts = (
        Replacement(edit.start, edit.end, edit.text, source.position(edit.start), source.position(edit.end))
        for edit in edits
    )
    return Fix(title, tuple(parts), safe)


def _with_blanks(source: Source, damage: Damage) -> tuple[int, int]:
    """The first of two attributes of a name, with the blanks before it."""
    assert damage.other is not None
    start, end = damage.other
    return len(source.data[:start].rstrip()), end
