"""Valid models to break, as rows: one of each op version, of a conformance case."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

import irrun
from conformance.constraints.row import Given, Row
from conformance.harness import Case, all_cases, model_of
from irrun.ir.graph import Layer

MAX_KEPT = 4096
"""Elements of an input of integers, whose values matter."""

BESIDE = ("Parameter", "Const", "Result", "Assign", "ReadValue")
"""Layers that a row is not made of: they are what it has besides, or keep a state."""


@cache
def bases(first: bool = False) -> Mapping[str, Row]:
    """A row without a defect by op version; of its `first` case, or of the one that says most of its inputs."""
    wanted: dict[str, Case] = {}
    for case in all_cases():
        if case.dynamic or case.later or case.crashes or (first and case.deviates):
            continue
        known = wanted.get(case.op)
        if known is None or (not first and _merit(case) > _merit(known)):
            wanted[case.op] = case
    with tempfile.TemporaryDirectory() as folder:
        found = {name: _base(case, Path(folder)) for name, case in wanted.items()}
    return {name: row for name, row in found.items() if row is not None}


def _merit(case: Case) -> tuple[bool, int, int]:
    size = sum(np.asarray(getattr(item, "array", item)).size for item in case.inputs)
    return case.deviates is None, len(case.inputs), -size


def _base(case: Case, folder: Path) -> Row | None:
    model, arrays = model_of(case)
    path = folder / "model.xml"
    ov.serialize(model, path, path.with_suffix(".bin"))
    report = irrun.validate(path)
    read, inference = report.model, report.inference
    assert read is not None
    assert inference is not None
    layer = next((node.layer for node in inference.nodes.values() if node.op.name == case.op), None)
    if layer is None or layer.bodies or layer.type in BESIDE:
        return None
    parameters = dict(zip(read.graph.parameters, arrays, strict=True))
    inputs: list[Given | None] = []
    for value in layer.inputs:
        if value is None:
            inputs.append(None)
        elif value.layer in parameters:
            inputs.append(_given(parameters[value.layer], value.layer))
        elif value.layer.type == "Const":
            inputs.append(_given(read.weights.constant(value.layer, mapped=False), value.layer))
        else:
            return None
    return Row(case.op, inputs=tuple(inputs), attrs=dict(layer.attributes), outputs=len(layer.outputs))


def _given(value: Any, layer: Layer) -> Given:
    array, type = np.asarray(value), layer.attributes["element_type"]
    if array.dtype.kind not in "biu" or array.size > MAX_KEPT:
        if array.size > 8:
            return Given(type, array.shape)
        array = array if array.dtype.kind == "U" else array.astype(np.float64)
    return Given(type, array.shape, tuple(array.ravel().tolist()))
