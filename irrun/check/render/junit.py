"""Reports as JUnit XML: a test suite for each model, with a failed test for each error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from irrun.check.codes import CODES
from irrun.check.render.text import one_line, plain, render_diagnostic
from irrun.diagnostics import Diagnostic

if TYPE_CHECKING:
    from irrun.check.validate import Report

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(reports: Sequence[Report]) -> str:
    """A model without diagnostics has one test, which passes; so do those of warnings, which say so as output."""
    suites = "\n".join(_suite(report) for report in reports)
    body = f'<testsuites name="irrun" {_counts(reports)}>\n{suites}\n</testsuites>'
    ascii = body.encode("ascii", "xmlcharrefreplace").decode()  # standard output may have another encoding
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ascii}'


def _suite(report: Report) -> str:
    path = _quoted(str(report.path))
    cases = "\n".join(_case(diagnostic, path) for diagnostic in report.diagnostics)
    passed = f'<testcase classname={path} name="valid"/>'
    return f"<testsuite name={path} {_counts([report])}>\n{cases or passed}\n</testsuite>"


def _counts(reports: Sequence[Report]) -> str:
    tests = sum(len(report.diagnostics) or 1 for report in reports)
    failures = sum(len(report.errors) for report in reports)
    return f'tests="{tests}" failures="{failures}" errors="0" skipped="0"'


def _case(diagnostic: Diagnostic, path: str) -> str:
    where = f" at line {diagnostic.line}" if diagnostic.line else ""
    name = _quoted(f"{diagnostic.code} {CODES[diagnostic.code].title}{where}")
    text = escape(_clean(render_diagnostic(diagnostic, None, plain)))
    if diagnostic.severity == "error":
        inner = f'<failure type="{diagnostic.code}" message={_quoted(diagnostic.message)}>{text}</failure>'
    else:
        inner = f"<system-out>{text}</system-out>"
    line = f' file={path} line="{diagnostic.line}"' if diagnostic.line else ""
    return f"<testcase classname={path} name={name}{line}>{inner}</testcase>"


def _quoted(text: str) -> str:
    return f'"{escape(_clean(one_line(text)))}"'


def _clean(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)
