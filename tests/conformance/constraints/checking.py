"""What irrun says of a row's model: the codes of its errors, or what it computes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

import irrun
from conformance.constraints.row import Row

NOISE = {"W931", "W932", "W913", "W904"}
"""Of models whose outputs declare nothing, and whose numbers are made up."""


def found(row: Row, constants: bool, folder: Path) -> tuple[list[str], list[str], list[Any] | None]:
    """The codes that irrun reports, its messages, and the outputs where it computes some."""
    xml, weights, arrays = row.model(constants)
    path = folder / "model.xml"
    path.write_text(xml, encoding="utf-8")
    path.with_suffix(".bin").write_bytes(weights)
    report = irrun.validate(path)
    told = [each for each in report.diagnostics if each.code not in NOISE]
    codes, messages = [_code(each) for each in told], [each.message for each in told]
    if report.errors:
        return codes, messages, None
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            executor = irrun.GraphExecutor(report.model, engine="reference")
            for _ in range(2):  # a state is there in the second run
                outputs = list(executor.run([np.asarray(array) for array in arrays]).values())
    except irrun.ExecutionError as error:
        said = error.diagnostics
        return [*codes, *map(_code, said)], [*messages, *(each.message for each in said)], None
    return codes, [*messages, *(str(each.message) for each in said)], outputs


def _code(diagnostic: Any) -> str:
    return f"{diagnostic.code} {diagnostic.label}" if diagnostic.label else str(diagnostic.code)
