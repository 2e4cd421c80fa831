"""The page on sweeps: its tables are those of the code, and its snippets run, where what they need is installed."""

import doctest
import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import pytest

from irrun.tools.sweep import sweeping
from irrun.tools.sweep.rows import STATUSES, Row
from irrun.tools.sweep.tasks import DO

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / ".github" / "SWEEP.md").read_text(encoding="utf-8")
SNIPPETS = re.findall("```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_columns_and_the_statuses_are_those_of_rows():
    columns = [name for line in re.findall(r"(?m)^\| (`.*?) \|", PAGE) for name in re.findall(r"`(\w+)`", line)]
    assert sorted(columns) == sorted(field.name for field in fields(Row))
    for name in (*STATUSES, *DO):
        assert f"`{name}`" in PAGE


@pytest.mark.parametrize(("package", "said"), [("ray", "Counter({'ok': 16})"), ("pyspark", "1000 0.99999")])
def test_a_snippet_runs(tmp_path, package, said):
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    if package == "pyspark" and shutil.which("java") is None:
        pytest.skip("there is no Java")
    shutil.copytree(ROOT / "samples", tmp_path / "samples")
    (snippet,) = (text for text in SNIPPETS if re.search(f"(import|from) {package}", text))
    script = tmp_path / "snippet.py"
    script.write_text(snippet)
    env = os.environ | {"PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


def test_examples_of_the_documentation(monkeypatch):
    monkeypatch.chdir(ROOT)
    found = doctest.testmod(sweeping)
    assert found.attempted
    assert not found.failed
