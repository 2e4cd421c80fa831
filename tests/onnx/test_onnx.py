"""ONNX's own backend tests, converted by OpenVINO: irrun passes what OpenVINO passes. Opt-in.

    pip install onnx
    python tests/onnx/convert.py /tmp/onnx
    IRRUN_ONNX=/tmp/onnx pytest -m onnx

A case passes where all outputs have the type and shape that ONNX expects, and its values within the tolerance of the
case. Cases that OpenVINO cannot convert are out.
"""

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import irrun

FOLDER = os.environ.get("IRRUN_ONNX")
FILES = sorted(Path(FOLDER).glob("*/case.json")) if FOLDER else []
CASES = {path.parent.name: json.loads(path.read_text()) for path in FILES}
CONVERTED = [name for name, case in CASES.items() if case["converted"]]

DEVIATIONS = {
    "test_div_int32_trunc": "the IR asks for m_pythondiv, which rounds down; OpenVINO rounds towards 0",
    "test_gather_elements_negative_indices": "GatherElements-6 C4: the page has no negative indices",
    "test_reversesequence_batch": "ReverseSequence-1 C4: the page has no length of 0",
}
"""Cases that OpenVINO passes and irrun does not, with the reason."""

pytestmark = [
    pytest.mark.onnx,
    pytest.mark.skipif(not CONVERTED, reason="IRRUN_ONNX names no folder that convert.py has filled"),
]


def data_sets(name: str) -> Iterator[Path]:
    return (path.parent for path in sorted((Path(FOLDER) / name).glob("*/inputs.npz")))


def read(path: Path) -> list[tuple[str, np.ndarray]]:
    """Type and values of each array."""
    with np.load(path) as arrays:
        return [(key.split()[1], array) for key, array in arrays.items()]


def compare(found: list[tuple[str, np.ndarray]], folder: Path, case: dict) -> None:
    expected = read(folder / "expected.npz")
    assert len(found) == len(expected)
    for number, ((our_type, ours), (their_type, theirs)) in enumerate(zip(found, expected, strict=True)):
        assert our_type == their_type, f"type of output {number}"
        assert ours.shape == theirs.shape, f"shape of output {number}"
        if theirs.dtype.kind == "U":
            np.testing.assert_array_equal(ours, theirs, f"output {number}")
            continue
        rtol = max(case["rtol"], 2**-6 if their_type == "bfloat16" else 0)  # as ONNX's runner
        np.testing.assert_allclose(ours, theirs, rtol, case["atol"], err_msg=f"output {number}")


def check_openvino(name: str) -> None:
    assert "failure" not in CASES[name], CASES[name]["failure"]
    for folder in data_sets(name):
        compare(read(folder / "openvino.npz"), folder, CASES[name])


def check_irrun(name: str) -> None:
    path = Path(FOLDER) / name / f"{name}.xml"
    report = irrun.validate(path)
    assert report.ok, "\n".join(map(str, report.diagnostics))
    executor = irrun.GraphExecutor(path)
    for folder in data_sets(name):
        outputs = executor.run([array for _, array in read(folder / "inputs.npz")])
        compare([typed(array) for array in outputs.values()], folder, CASES[name])


def typed(array: np.ndarray) -> tuple[str, np.ndarray]:
    """Type and values, as `read` gives them."""
    if array.dtype.kind == "U":
        return "str", array
    builtin = array.dtype.isbuiltin == 1
    return array.dtype.name, array if builtin else array.astype(np.float32)


@cache
def failure(check, name: str) -> Exception | None:
    try:
        check(name)
    except Exception as error:  # also those of OpenVINO's and ours that no test expects
        return error
    return None


@pytest.mark.parametrize("name", CONVERTED)
def test_a_case_that_openvino_passes_passes(name, request):
    if failure(check_openvino, name):
        pytest.skip("OpenVINO fails it")
    if name in DEVIATIONS:
        request.applymarker(pytest.mark.xfail(reason=DEVIATIONS[name], raises=Exception))
    if error := failure(check_irrun, name):
        raise error


def test_irrun_passes_no_fewer_cases_than_openvino(capsys):
    passed = {
        check: {name for name in CONVERTED if not failure(check, name)} for check in (check_openvino, check_irrun)
    }
    theirs, ours = passed[check_openvino], passed[check_irrun]
    with capsys.disabled():
        print(f"\n{len(CONVERTED)} of {len(CASES)} cases convert; OpenVINO passes {len(theirs)}, irrun {len(ours)}")
    assert len(ours) >= len(theirs)
