"""What a run of a command reads is not what it writes over, however the file is spelled."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import irrun

CNN = Path(__file__).parents[1] / "samples" / "cnn"
SAID = "is read by this run, and would be overwritten"

READ = [
    ("validate", "model.xml", "-o", "model.xml"),
    ("validate", "model.xml", "-o", "./model.xml"),
    ("validate", "model.xml", "-o", "link.xml"),
    ("validate", "model.xml", "-o", "model.bin"),
    ("validate", ".", "-o", "other.bin"),
    ("validate", "model.xml", "--bin", "other.bin", "-o", "other.bin"),
    ("validate", "model.xml", "--config", "tool.toml", "-o", "tool.toml"),
    ("validate", "model.xml", "--ops", "ops.py", "-o", "ops.py"),
    ("inspect", "model.xml", "-o", "model.xml"),
    ("inspect", "model.xml", "-o", "model.bin"),
    ("inspect", "model.xml", "--bin", "other.bin", "-o", "other.bin"),
    ("compare", "model.xml", "engine:numpy", "--random", "-o", "model.xml"),
    ("compare", "model.xml", "engine:numpy", "--inputs", "inputs.npz", "-o", "inputs.npz"),
    ("compare", "model.xml", "other.xml", "--random", "-o", "other.xml"),
    ("compare", "model.xml", "other.xml", "--random", "-o", "other.bin"),
    ("edit", "model.xml", "--dedup", "-o", "link.xml"),
    ("edit", "model.xml", "--bin", "other.bin", "--dedup", "-o", "other.xml"),
    ("edit", "model.xml", "--append", "other.xml", "--map", "probabilities=image", "-o", "other.xml"),
    ("report", "model.xml", "-o", "model.bin"),
    ("report", "model.xml", "--diff", "other.xml", "-o", "other.bin"),
    ("report", "model.xml", "--random", "--compare", "other.xml", "-o", "other.xml"),
    ("reduce", "min.xml", "--random", "--nonfinite", "-o", "."),
    ("reduce", "model.xml", "--inputs", "inputs.npz", "--nonfinite", "-o", "."),
    ("reduce", "work/model.xml", "--random", "--nonfinite", "-o", "."),
    ("sweep", "model.xml", "other.xml", "--do", "validate", "--junit", "other.bin"),
    ("sweep", "model.xml", "--do", "compare", "--random", "1", "--against", "other.xml", "--matrix", "other.xml"),
]


@pytest.fixture
def folder(tmp_path):
    for name in ("model", "other", "min", "work/model"):
        for suffix in (".xml", ".bin"):
            target = tmp_path / f"{name}{suffix}"
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile((CNN / "model").with_suffix(suffix), target)
    shutil.copyfile(CNN / "inputs.npz", tmp_path / "inputs.npz")
    (tmp_path / "link.xml").symlink_to("model.xml")
    (tmp_path / "ops.py").write_text("")
    (tmp_path / "tool.toml").write_text("[tool.irrun]\n")
    return tmp_path


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    return {path.relative_to(folder): path.read_bytes() for path in files}


@pytest.mark.parametrize("arguments", READ, ids=" ".join)
def test_what_is_read_is_not_overwritten(arguments, folder):
    before = contents(folder)
    assert SAID in irrun(*arguments, cwd=folder, status=2).stderr
    assert contents(folder) == before


def test_a_model_may_be_edited_in_its_place(folder):
    irrun("edit", "model.xml", "--mean", "1,2,3", "-o", "./model.xml", cwd=folder)
    data = np.load(CNN / "inputs.npz")["image"]
    np.savez(folder / "shifted.npz", image=data + np.float32([1, 2, 3]).reshape(1, 3, 1, 1))
    irrun("execute", "other.xml", "--inputs", "inputs.npz", "-o", "expected.npz", cwd=folder)
    irrun("execute", "model.xml", "--inputs", "shifted.npz", "--expect", "expected.npz", cwd=folder)


def test_other_files_are_written_over(folder):
    (folder / "old.txt").write_text("old")
    irrun("validate", "model.xml", "-o", "old.txt", cwd=folder)
    assert "ok" in (folder / "old.txt").read_text()


@pytest.mark.parametrize("command", ["execute", "inspect"])
def test_a_folder_is_no_model(command, folder):
    done = irrun(command, ".", *(["--random"] if command == "execute" else []), "-o", "out.npz", cwd=folder, status=1)
    assert "error" in done.stderr
