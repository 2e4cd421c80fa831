"""Texts of models as the page shows them: without characters that would hide, turn round or break what stands there."""

from __future__ import annotations

from irrun.check.render.text import one_line
from irrun.diagnostics import LONGEST_NAME, clipped

LONGEST_VALUE = 1000
"""Characters of an attribute."""


UNNAMED = "(unnamed)"


def name(text: str) -> str:
    """A name in one line, without its middle where it is long; one that nobody would see is said to be none."""
    return UNNAMED if not text.strip() else clipped(one_line(clipped(text, LONGEST_NAME)), 2 * LONGEST_NAME)


def value(text: str) -> str:
    return clipped(one_line(clipped(text, LONGEST_VALUE)), 2 * LONGEST_VALUE)
