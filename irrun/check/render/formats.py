"""The table of the forms that reports are given in, each by a module of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from irrun.check.render.concise import render_concise
from irrun.check.render.github import render_github
from irrun.check.render.gitlab import render_gitlab
from irrun.check.render.json import render_json, render_jsonl
from irrun.check.render.junit import render_junit
from irrun.check.render.sarif import render_sarif
from irrun.check.render.text import render_text

if TYPE_CHECKING:
    from irrun.check.validate import Report

FORMATS: dict[str, Callable[[Sequence[Report]], str]] = {
    "text": render_text,
    "concise": render_concise,
    "json": render_json,
    "jsonl": render_jsonl,
    "sarif": render_sarif,
    "github": render_github,
    "gitlab": render_gitlab,
    "junit": render_junit,
}
"""What `--format` takes, to what writes it, without a line break at the end."""
