"""What a word that nobody knows may be meant for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

_LONGEST = 80
"""Characters of a word that somebody may have misspelt."""

_MAX_KNOWN = 1000
_MAX_COMPARED = 12

_PER_EDIT = 4
"""Characters of a word for each letter that may be wrong, missing, too many or swapped with the next one."""


def close_matches(word: str, known: Iterable[str], *, likely: bool = False) -> list[str]:
    """The known words that `word` may be meant for, the likeliest first; case and separators make no difference.

    A wrong advice is worse than none, so they are near: one of four letters differs at most, and not the first one
    beside others. Where it is `likely` that one of them is meant, as one is missing, they need only be alike. What
    stands before `::` says where a name is from.

    >>> close_matches("Softmax", ["SoftMax", "LogSoftmax"]), close_matches("padsBegin", ["pads_begin", "pads_end"])
    (['SoftMax'], ['pads_begin'])
    >>> close_matches("Deconvolution", ["Convolution"]), close_matches("output_padding", ["pads_end", "auto_pad"])
    ([], [])
    """
    from difflib import get_close_matches  # 2 ms, and most files have no misspelt word

    spelling = {name.lower(): name for name in known}
    if len(word) > _LONGEST or len(spelling) > _MAX_KNOWN:  # comparing takes time, and a file may have many words
        return []
    meant = word.lower().rpartition("::")[2]
    letters = set(meant)
    shared = sorted(spelling, key=lambda name: len(letters.symmetric_difference(name)) + abs(len(name) - len(meant)))
    alike = get_close_matches(meant, shared[:_MAX_COMPARED])
    return [spelling[match] for match in alike if likely or _is_near(meant, match)]


def _is_near(word: str, known: str) -> bool:
    a, b = ("".join(filter(str.isalnum, text)) for text in (word, known))
    edits = _edits(a, b)
    return edits <= max(len(word), len(known)) // _PER_EDIT and (edits < 2 or a[:1] == b[:1])


def _edits(a: str, b: str) -> int:
    """How many letters have to be changed, left out, put in or swapped with the next one to make one of the other."""
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            row.append(min(last[j] + 1, row[-1] + 1, last[j - 1] + (x != y)))
            if i > 1 and j > 1 and (x, y) == (b[j - 2], a[i - 2]):
                row[j] = min(row[j], before[j - 2] + 1)
        before, last = last, row
    return last[-1]


def misspelt(lacked: Iterable[str], given: Iterable[str], known: Collection[str]) -> tuple[str, str] | None:
    """The first attribute that is lacked though a given one, which is not among the `known`, seems to be meant for it.

    >>> misspelt(["offset", "size"], ["element_type", "offst"], ["element_type", "offset", "size"])
    ('offset', 'offst')
    """
    unread = [name for name in given if name not in known]
    pairs = [(name, close) for name in lacked if unread for close in close_matches(name, unread)[:1]]
    return pairs[0] if pairs else None


def listed(names: Sequence[str]) -> str:
    """Names in a row, as a sentence has them.

    >>> listed(["id"]), listed(["id", "name", "type"])
    ('`id`', '`id`, `name` and `type`')
    """
    *others, last = (f"`{name}`" for name in names)
    return f"{', '.join(others)} and {last}" if others else last


def advice(word: str, close: str) -> str:
    """The question whether a close word is meant, and which characters that may look like its own stand in the other.

    >>> advice("Subtrac\uff54", "Subtract")
    'did you mean `Subtract`? There is U+FF54 (FULLWIDTH LATIN SMALL LETTER T) in it'
    """
    strange = dict.fromkeys(character for character in word if not character.isascii() and character not in close)
    listed = ", ".join(map(code_point, strange))
    return f"did you mean `{close}`?" + (f" There is {listed} in it" if listed else "")


def code_point(character: str) -> str:
    """What a character is, which may not be seen or look like another one.

    >>> code_point("\u0430")
    'U+0430 (CYRILLIC SMALL LETTER A)'
    """
    import unicodedata

    name = unicodedata.name(character, "")
    return f"U+{ord(character):04X}" + (f" ({name})" if name else "")


def blank_help(text: str) -> str | None:
    """What to do about blanks behind a number, which are easily overlooked; None where there are none."""
    number = text.strip()
    if text.endswith(number) or not number.lstrip("+-").isdecimal():
        return None
    return f"write `{number}`: OpenVINO refuses a number with blanks behind it"
