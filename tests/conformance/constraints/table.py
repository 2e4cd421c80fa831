"""The table of constraints: every labelled constraint and every check of a declaration, and what OpenVINO makes of it.

A row is a model that breaks one rule. Those that the tests of ops give stand in the table whole; the others are made
anew from the declarations and the conformance cases, and are known by what was changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from conformance.constraints.bodies import body_rows
from conformance.constraints.row import Row
from conformance.constraints.ruled import ruled_rows
from conformance.constraints.signatures import signature_rows
from irrun.spec.registry import registry

FILE = Path(__file__).with_name("table.json")

REPORTED_BEFORE = {
    ("If-8", "C1"),
    ("Loop-5", "C8"),
    ("TensorIterator-1", "C8"),
    ("ReadValue-3", "C2"),
    ("ReadValue-6", "C4"),
    ("EmbeddingSegmentsSum-3", "C5"),
    ("EmbeddingBagOffsetsSum-3", "C5"),
    ("EmbeddingBagOffsets-15", "C5"),
}
"""Constraints that no file can break so that nothing else is wrong with it before, as are all of Constant-1."""

WARNINGS = {"E303": "W952", "E306": "W950", "E307": "W953"}
"""What a check of a declaration is where OpenVINO does not insist on it; of a constraint it is W951 with its label."""


@cache
def table() -> tuple[Row, ...]:
    """The rows of the file, with their models."""
    return tuple(loaded(json.loads(FILE.read_text(encoding="utf-8"))))


def loaded(entries: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    made = {key(row): row for row in made_rows()}
    for entry in entries:
        row = Row.loads(entry)
        model = made.get(key(row)) if row.changed else row
        if model is not None and model.digest == entry["model"]:
            yield replace(model, **{name: getattr(row, name) for name in SAID})


SAID = ("text", "answers", "code", "verdict", "because")
"""What the file says of a row besides its model."""


def key(row: Row) -> tuple[str, str, str]:
    return row.op, row.label, row.changed


def made_rows() -> Iterator[Row]:
    """The rows that are made from declarations, conformance cases and the corpus."""
    for name in registry().ops:
        yield from ruled_rows(name)
        yield from body_rows(name)
        yield from signature_rows(name)


def write(rows: Iterable[Row]) -> None:
    lines = ",\n".join(row.dumps() for row in sorted(rows, key=lambda row: row.key))
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def shares(row: Row, codes: Sequence[str]) -> str:
    """The code among those that irrun reports that stands for the rule of the row, or nothing."""
    if codes and (row.op == "Constant-1" or (row.op, row.label) in REPORTED_BEFORE):
        return codes[0]
    for code in codes:
        if code == row.label or code.partition(" ")[2] == row.label:
            return code
        if WARNINGS.get(row.label) == code:
            return code
    return ""
