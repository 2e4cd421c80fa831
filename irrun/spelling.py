"""What a word that nobody knows may be meant for."""

from __future__ import annotations

from collections.abc import Iterable

_LONGEST = 80
"""Characters of a word that somebody may have misspelt."""

_MAX_KNOWN = 1000
_MAX_COMPARED = 12


def close_matches(word: str, known: Iterable[str]) -> list[str]:
    """The known words that `word` may be meant for, the likeliest first; case makes no difference."""
    from difflib import get_close_matches  # 2 ms, and most files have no misspelt word

    spelling = {name.lower(): name for name in known}
    if len(word) > _LONGEST or len(spelling) > _MAX_KNOWN:  # comparing takes time, and a file may have many words
        return []
    meant = word.lower()
    letters = set(meant)
    shared = sorted(spelling, key=lambda name: len(letters.symmetric_difference(name)) + abs(len(name) - len(meant)))
    return [spelling[match] for match in get_close_matches(meant, shared[:_MAX_COMPARED])]
