"""The benchmarks run: on a sample, with one turn, beside a model that cannot be read. No figure is judged here."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_a_sample_is_measured_beside_openvino_and_failures_are_named(tmp_path):
    pytest.importorskip("openvino")
    shutil.copytree(ROOT / "samples" / "cnn", tmp_path / "cnn")
    shutil.copytree(ROOT / "samples" / "cnn", tmp_path / "broken")
    (tmp_path / "broken" / "model.xml").write_text("<net/>")
    command = [sys.executable, ROOT / "tests" / "bench" / "run.py", "--python", sys.executable, "--turns", 1]
    command += [
        "--models",
        tmp_path,
        "--measure",
        "check",
        "--measure",
        "one-shot",
        "--measure",
        "steady",
        "--json",
        tmp_path / "found.json",
    ]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "geometric mean of irrun / openvino" in done.stdout
    assert "not measured\ncheck, broken, irrun: " in done.stdout
    assert "\none-shot, broken, irrun: " in done.stdout
    for found in json.loads((tmp_path / "found.json").read_text())["results"]:
        if found["model"] == "broken":
            assert found["failure"]
            assert not found["seconds"]
        elif found["runtime"] in ("irrun", "irrun numpy", "openvino"):
            assert found["failure"] is None
            assert len(found["seconds"]) == 1
            assert len(found["peaks"]) == (found["measure"] != "steady")
        assert found["difference"] is None or found["difference"] < 1e-5
