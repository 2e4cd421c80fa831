"""Which known deviations concern the layers of cases, before their run and in it.

`python -m conformance.concerned`, in tests/, lists the cases in which OpenVINO agrees though one concerns them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np

import irrun
from conformance.harness import RESET, Case, all_cases, model_of, write
from irrun.check.deviations import Deviation, concerning, explaining
from irrun.ir.graph import Layer, Value
from irrun.run.session import Event


class Found(NamedTuple):
    """What is known of the layers of a case that are the op under test: by its model, and by its last run."""

    before: list[Deviation]
    after: list[Deviation]


def found(case: Case, folder: Path) -> Found:
    model, arrays = model_of(case)
    path = folder / "model.xml"
    write(model, path, case)
    report = irrun.validate(path)
    assert report.model is not None
    assert report.inference is not None
    made: dict[tuple[Layer, int], Any] = {}

    def keep(event: Event) -> None:
        made[event.layer, event.port] = event.array.copy()

    executor = irrun.GraphExecutor(report.model, engine="reference")
    with catch_warnings():
        simplefilter("ignore", UserWarning)  # of data that are doubtful
        for run in (run for run in (arrays, *case.later) if run is not RESET):
            given = [np.asarray(array) for array in run]
            executor.run(given, observer=keep)
    for parameter, array in zip(report.model.graph.parameters, given, strict=True):
        made[parameter, 0] = array

    def array_of(value: Value | None) -> Any:
        if value is not None and value.layer.type == "Const":
            return report.model.weights.constant(value.layer, mapped=False)
        return None if value is None else made.get((value.layer, value.index))

    before, after = [], []
    for layer, node in report.inference.nodes.items():
        if node.op.name == case.op:
            before += concerning(layer, report.inference)
            outputs = [made.get((layer, number)) for number in range(len(layer.outputs))]
            after += explaining(layer, report.inference, [array_of(value) for value in layer.inputs], outputs)
    return Found(before, after)


def agreeing() -> list[Case]:
    """The cases in which OpenVINO agrees, of ops of which a deviation is known."""
    deviating = {case.op for case in all_cases() if case.deviates is not None}
    return [case for case in all_cases() if case.deviates is None and case.op in deviating]


def concerned(cases: list[Case]) -> list[str]:
    """The cases that a deviation is said to concern after their run, and which."""
    with tempfile.TemporaryDirectory() as folder:
        said = [(case, deviation) for case in cases for deviation in found(case, Path(folder)).after[:1]]
    return [f"{case}: {deviation.does} {deviation.when}" for case, deviation in said]


if __name__ == "__main__":
    cases = agreeing()
    lines = concerned(cases)
    print(*lines, f"{len(lines)} of {len(cases)} cases, {len(lines) / len(cases):.1%}", sep="\n")
