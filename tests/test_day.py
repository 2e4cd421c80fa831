"""The sample script: it prints what stands beside it, of public API alone, and its types are right."""

import ast
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import irrun
import irrun.spec

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "samples" / "day.py"

WRONG = """
import irrun
irrun.validte("model.xml")
irrun.GraphExecutor("model.xml").run([1], profle=None, outputs=3)
irrun.validate("model.xml").ok()
"""


def test_it_prints_what_stands_beside_it():
    done = subprocess.run([sys.executable, SCRIPT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == SCRIPT.with_suffix(".txt").read_text()


def test_every_line_is_public():
    tree = ast.parse(SCRIPT.read_text())
    imports = {node.module: node.names for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.name for name in imports["irrun.spec"]} <= set(irrun.spec.__all__)
    assert not [module for module in imports if module.startswith("irrun") and module != "irrun.spec"]
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "irrun"
    }
    assert used
    assert used <= set(irrun.__all__)
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr.startswith("_")]


@pytest.mark.skipif(find_spec("mypy") is None, reason="mypy, which pip install '.[dev]' brings, is not installed")
def test_types_are_checked_strictly(tmp_path):
    (tmp_path / "day.py").write_text(SCRIPT.read_text())
    (tmp_path / "wrong.py").write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", "--no-error-summary"]
    environment = {**os.environ, "MYPYPATH": str(ROOT)}  # mypy does not follow editable installs
    done = subprocess.run(
        [*command, "day.py", "wrong.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    assert not [line for line in lines if line.startswith("day.py") and "error" in line], done.stdout
    assert any('wrong.py:3: error: Module has no attribute "validte"' in line for line in lines), done.stdout
    assert any("wrong.py:4: error" in line and "outputs" in line for line in lines), done.stdout
    assert any('wrong.py:5: error: "bool" not callable' in line for line in lines), done.stdout
