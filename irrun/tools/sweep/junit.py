"""A sweep as JUnit XML: a suite for each model, a test for each task."""

from __future__ import annotations

from collections.abc import Sequence

from lxml import etree

from irrun.check.render.text import one_line
from irrun.tools.sweep.rows import AT_FAULT, OK, Row


def render_junit(rows: Sequence[Row]) -> bytes:
    """What a model is at fault for is a failure; what could not be done an error."""
    suites: dict[str, list[Row]] = {}
    for row in rows:
        suites.setdefault(row.model, []).append(row)
    root = etree.Element("testsuites", {"name": "irrun sweep", **_counts(rows)})
    for model, group in suites.items():
        suite = etree.SubElement(root, "testsuite", {"name": one_line(model), **_counts(group)})
        for row in group:
            name = " ".join(one_line(part) for part in (row.do, row.device, row.inputs) if part)
            given = {"classname": one_line(model), "name": name, "time": f"{row.seconds:.6f}"}
            case = etree.SubElement(suite, "testcase", given)
            if row.status != OK:
                tag = "failure" if row.status in AT_FAULT else "error"
                kind = " ".join(part for part in (row.status, row.cause or row.code) if part)
                etree.SubElement(case, tag, {"type": kind, "message": one_line(row.reason)})
    content: bytes = etree.tostring(root, xml_declaration=True, encoding="utf-8", pretty_print=True)
    return content


def _counts(rows: Sequence[Row]) -> dict[str, str]:
    failures = sum(row.status in AT_FAULT for row in rows)
    errors = sum(row.status != OK for row in rows) - failures
    seconds = sum(row.seconds for row in rows)
    return {
        "tests": str(len(rows)),
        "failures": str(failures),
        "errors": str(errors),
        "skipped": "0",
        "time": f"{seconds:.6f}",
    }
