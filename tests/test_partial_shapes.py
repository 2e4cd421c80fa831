"""Inference beside that of OpenVINO, where inputs of the cases have unknown or bounded sizes, or an unknown rank."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import openvino as ov
import pytest
from conformance.harness import Case, all_cases, model_of, write

import irrun
from irrun.spec import Dim

CORE = ov.Core()
OTHERWISE = {"Interpolate-1 axes backwards"}
"""OpenVINO infers sizes of axes in the order of their numbers, and computes in the order in which they are given."""

CASES = [case for case in all_cases() if case.deviates is None and str(case) not in OTHERWISE]
OPS = sorted({case.op for case in CASES})


def loosened(root: Element, random: Random) -> None:
    """Declare less of the Parameters of a model than what they get."""
    for layer in root.iterfind("layers/layer[@type='Parameter']"):
        data, port = layer.find("data"), layer.find("output/port")
        assert data is not None
        assert port is not None
        sizes = [part for part in data.attrib["shape"].split(",") if part]
        known = [size for size in sizes if size.isdigit()]
        loose = [random.choice([size, "?", f"{size}..", f"{size}..{int(size) + 2}"]) for size in known]
        if len(known) < len(sizes):
            loose = sizes
        data.set("shape", "..." if random.random() < 0.1 else ",".join(loose))
        for size in port.findall("dim"):
            port.remove(size)
        for part in loose if data.attrib["shape"] != "..." else ():
            SubElement(port, "dim").text = part if part.isdigit() else "-1"


def contradicts(output: Any, type: str, shape: tuple[Any, ...] | None) -> bool:
    """Whether nothing can be what both say of an output."""
    theirs = output.get_partial_shape()
    if output.get_element_type().get_type_name() != type:
        return True
    if shape is None or theirs.rank.is_dynamic:
        return False
    return len(theirs) != len(shape) or any(map(apart, theirs, shape))


def apart(theirs: Any, size: Any) -> bool:
    low, high = (size.low or 0, size.high) if isinstance(size, Dim) else (size, size)
    most = theirs.get_max_length()
    return (high is not None and high < theirs.get_min_length()) or -1 < most < low


@pytest.mark.parametrize("op", OPS)
def test_what_is_inferred_of_less_is_not_what_openvino_rules_out(op: str, tmp_path: Path) -> None:
    for case in CASES:
        if case.op == op:
            compare(case, tmp_path)


def compare(case: Case, folder: Path) -> None:
    path = folder / "model.xml"
    write(model_of(case)[0], path, case)
    tree = ElementTree.parse(path)
    loosened(tree.getroot(), Random(str(case)))
    tree.write(path, encoding="utf-8")
    try:
        model = CORE.read_model(path)
    except RuntimeError:
        return  # of what is unknown OpenVINO refuses more than what the specification rules out
    report = irrun.validate(path)
    assert not report.errors, f"{case}: {report}"
    assert report.model is not None
    assert report.inference is not None
    for result, layer in zip(model.get_results(), report.model.graph.results, strict=True):
        tensor = report.inference.tensor(layer.inputs[0])
        theirs = result.input_value(0)
        assert not contradicts(theirs, tensor.type, tensor.shape), f"{case}: {tensor} instead of {theirs}"
