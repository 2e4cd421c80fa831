"""Diagnostics of one cause, for forms that say it once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence

from irrun.diagnostics import Diagnostic
from irrun.records import NamedTuple

MAX_LINES = 10
"""Lines of further places that are listed."""

_MANY = 10
"""Causes of one code in the same words that are said each: more of them are one that is everywhere in the file."""

_WORDS = re.compile(r"`[^`]*`|\([A-Za-z]\w*\)|[\d., -]+")
"""What sets messages in the same words apart: names, types of layers, and numbers."""


class Alike(NamedTuple):
    """The first diagnostic of a cause, and the others in their order."""

    first: Diagnostic
    others: Sequence[Diagnostic] = ()

    @property
    def more(self) -> str | None:
        """How many others there are, and where; None where there are none."""
        if not self.others:
            return None
        count = f"and {len(self.others):,} more"
        lines = list(dict.fromkeys(str(found.line) for found in self.others if found.line is not None))
        if not lines:
            return count
        if lines == [str(self.first.line)]:
            return f"{count} on this line"
        listed = ", ".join(lines[:MAX_LINES]) + (", ..." if len(lines) > MAX_LINES else "")
        return f"{count}: line{'s' * (len(lines) != 1)} {listed}"


def grouped(diagnostics: Sequence[Diagnostic]) -> list[Alike]:
    """Diagnostics by cause, each at the place of its first one; those of too many causes, by what they say."""
    causes = [_cause(found) for found in diagnostics]
    kinds = dict(zip(causes, map(_kind, diagnostics), strict=True))
    counts = Counter(kinds.values())
    groups: dict[Hashable, list[Diagnostic]] = {}
    for found, cause in zip(diagnostics, causes, strict=True):
        kind = kinds[cause]
        groups.setdefault(kind if counts[kind] > _MANY else cause, []).append(found)
    return [Alike(first, others) for first, *others in groups.values()]


def _kind(diagnostic: Diagnostic) -> Hashable:
    """What diagnostics have in common that say the same of other layers, names and numbers."""
    return diagnostic.code, diagnostic.severity, diagnostic.file, _WORDS.sub(" ", diagnostic.message)


def _cause(diagnostic: Diagnostic) -> Hashable:
    """What those have in common that are said once: the code, the type of the layer, and what is wrong with it.

    That is the message, or where messages tell but names and numbers of the place, nothing more; a warning of a
    constraint goes by its label, an error of one by what breaks it.
    """
    from irrun.check.codes import CODES  # most models have no diagnostics

    code, known = diagnostic.code, CODES.get(diagnostic.code)
    type = None if diagnostic.layer is None or (known is not None and known.anywhere) else diagnostic.layer.type
    by_label = diagnostic.label is not None and diagnostic.severity != "error"
    cause = None if by_label or (known is not None and known.by_place) else diagnostic.message
    return code, diagnostic.severity, diagnostic.file, type, diagnostic.label, cause, diagnostic.number
