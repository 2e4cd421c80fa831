"""The benchmarks run: on two samples, with one turn. What they measure is not judged here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def bench(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "tests" / "bench" / "run.py", "--python", sys.executable, *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def test_two_samples_are_measured_beside_openvino(tmp_path):
    pytest.importorskip("openvino")
    done = bench(
        *("--models", ROOT / "samples", "--only", "cnn", "--only", "scatter-elements-update", "--turns", 1),
        *("--measure", "one-shot", "--measure", "steady", "--json", tmp_path / "results.json"),
    )
    assert done.returncode == 0, done.stderr
    assert "geometric mean of irrun / openvino" in done.stdout
    record = json.loads((tmp_path / "results.json").read_text())
    measured = {(found["measure"], found["model"], found["runtime"]): found for found in record["results"]}
    for model in ("cnn", "scatter-elements-update"):
        ours = measured["one-shot", model, "irrun"]
        assert ours["failure"] is None
        assert len(ours["seconds"]) == len(ours["peaks"]) == 1
        steady = [found for (measure, name, _), found in measured.items() if (measure, name) == ("steady", model)]
        assert len([found for found in steady if found["seconds"]]) >= 2
        assert all(found["difference"] < 1e-5 for found in steady if found["difference"] is not None)


def test_a_runtime_that_fails_is_named(tmp_path):
    pytest.importorskip("openvino")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "model.xml").write_text("<net/>")
    (tmp_path / "broken" / "inputs.npz").write_bytes((ROOT / "samples" / "cnn" / "inputs.npz").read_bytes())
    done = bench("--models", tmp_path, "--turns", 1, "--measure", "one-shot")
    assert done.returncode == 0, done.stderr
    assert "not measured\none-shot, broken, irrun: " in done.stdout
