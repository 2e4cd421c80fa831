"""The benchmark of sweeps runs, on few models and with one turn. No figure is judged here."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).with_name("sweep.py")


@pytest.mark.slow
def test_built_models_are_swept_beside_sums_and_a_loop(tmp_path):
    options = ["--count", "3", "--turns", "1", "--loop", "1", "--workers", "2"]
    command = [sys.executable, str(BENCHMARK), str(tmp_path), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split("|")[1].strip() for line in done.stdout.splitlines() if line.startswith("| ")]
    assert lines == [
        "",
        "---",
        "sums, 2 workers",
        "2 workers",
        "a loop of `irrun execute`, by 1 tasks",
    ]
    assert "sent for 64 tasks of a model: " in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["built000", "built001", "built002"]
