"""README.md: its examples give the output that stands there."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
COMMANDS = [
    (command, expected)
    for block in re.findall(r"^```console\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "samples", folder / "samples")
    shutil.copytree(ROOT / "tests" / "invalid", folder / "tests" / "invalid")
    return folder


@pytest.mark.parametrize(("command", "expected"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_a_command_prints_what_the_readme_says(command, expected, tree):
    program, *args = shlex.split(command)
    assert program == "irrun"
    python = [sys.executable, "-c", "from irrun.cli import main; main(prog_name='irrun')", *args]
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "80"}
    done = subprocess.run(
        python, cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, check=False
    )
    pattern = ".*".join(re.escape(part) for part in expected.rstrip("\n").split("[...]"))
    assert re.fullmatch(pattern, done.stdout.rstrip("\n"), re.DOTALL), done.stdout


def test_the_python_examples_run(tree, monkeypatch):
    monkeypatch.chdir(tree)
    blocks = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})


def test_the_first_two_shell_blocks_are_the_two_commands():
    first, second = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)[:2]
    assert first.count("\n") == second.count("\n") == 1
    assert "irrun validate samples/" in first
    assert "irrun execute samples/" in first
    assert "pytest" in second
