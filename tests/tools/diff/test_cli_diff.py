"""irrun diff as a process: what it prints, and its exit status."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import numpy as np
from command_line import irrun
from tools.diff.mutation import Ir, disguised

from irrun.tools.diff import IGNORABLE, WEIGHTS
from irrun.tools.diff.edits import TOLERANCE
from irrun.tools.diff.numeric import difference_of
from irrun.tools.diff.rendering import RENDERERS

SAMPLE = Path(__file__).parents[3] / "samples" / "cnn" / "model.xml"


def changed(folder, seed=3):
    """The sample with another stride, in another form."""
    ir = Ir.read(SAMPLE)
    ir.root.find("layers/layer[@type='Convolution']").find("data").set("strides", "2,2")
    return disguised(ir, seed, "kept").save(folder)


def test_options_are_those_of_the_function():
    command = import_module("irrun.cli.diff")
    assert command.ASPECTS == IGNORABLE
    assert command.VALUES == WEIGHTS
    assert tuple(RENDERERS) == command.FORMATS


def test_the_same_model_ends_with_status_0(tmp_path):
    other = disguised(Ir.read(SAMPLE), 1, "new").save(tmp_path)
    done = irrun("diff", SAMPLE, other)
    assert "the same model, but for names inside it" in done.stdout
    assert irrun("diff", SAMPLE, other, "--ignore", "names").stdout.endswith("the same model\n")


def test_another_model_ends_with_status_1_and_says_why(tmp_path):
    done = irrun("diff", SAMPLE, changed(tmp_path), "--ignore", "ids", status=1)
    assert "attribute  `strides` of Convolution [1,1] -> [2,2]" in done.stdout
    assert done.stderr == ""


def test_json_has_every_edit_with_its_layers_and_values(tmp_path):
    found = json.loads(irrun("diff", SAMPLE, changed(tmp_path), "--format", "json", status=1).stdout)
    assert found["equal"] is False
    assert found["version"] == 1
    (edit,) = found["edits"]
    assert edit["kind"] == "attribute"
    assert edit["before"][0]["type"] == edit["after"][0]["type"] == "Convolution"
    assert edit["details"] == {"attribute": "strides", "old": [1, 1], "new": [2, 2]}


def test_the_first_tensor_that_differs_is_said(tmp_path):
    ir = Ir.read(SAMPLE)
    ir.root.find("layers/layer[@type='Convolution']").find("data").set("dilations", "1,1")
    data = ir.constants()[0].find("data")
    content = np.frombuffer(ir.weights, np.float32).copy()
    content[int(data.get("offset")) // 4] += 4
    ir.weights = content.tobytes()
    other = ir.save(tmp_path)
    done = irrun("diff", SAMPLE, other, "--random", 1, status=1)
    assert "on the same inputs: the first tensor that differs is `" in done.stdout
    assert f"; allowed is {TOLERANCE}" in done.stdout
    np.savez(tmp_path / "inputs.npz", image=np.zeros((1, 3, 16, 16), np.float32))
    done = irrun("diff", SAMPLE, SAMPLE, "--numeric", tmp_path / "inputs.npz")
    assert f"tensors that both have are equal, floats within {TOLERANCE}" in done.stdout
    np.savez(tmp_path / "inputs.npz", np.zeros((1, 3, 16, 16), np.float32))  # which has no name
    assert irrun("diff", SAMPLE, SAMPLE, "--numeric", tmp_path / "inputs.npz").stdout == done.stdout


def test_what_floats_may_differ_by_is_what_is_said():
    assert TOLERANCE in " ".join(irrun("diff", "--help").stdout.split())
    one, mixed = np.float32([1]), np.float32([1000, 1])
    assert not difference_of(one, one * np.float32(1.0019))
    assert difference_of(one, one * np.float32(1.0021)).endswith(f"; allowed is {TOLERANCE}")
    assert not difference_of(mixed, mixed + np.float32([0, 0.7]))
    assert difference_of(mixed, mixed + np.float32([0, 0.8]))
    assert not difference_of(0 * one, np.float32([0.9e-5]))
    assert difference_of(0 * one, np.float32([1.1e-5]))
    assert "allowed" not in difference_of(np.int32([1000]), np.int32([1001]))


def test_wrong_use_ends_with_status_2(tmp_path):
    assert "there is no file" in irrun("diff", SAMPLE, tmp_path / "none.xml", status=2).stderr
    done = irrun("diff", SAMPLE, SAMPLE, "--max-memory", "1GiB", status=2)
    assert "--max-memory is that of runs: give --numeric or --random, too" in done.stderr
    assert "`colours` is not one of" in irrun("diff", SAMPLE, SAMPLE, "--ignore", "colours", status=2).stderr


def test_a_broken_model_ends_with_status_1_and_its_diagnostics(tmp_path):
    broken = tmp_path / "broken.xml"
    broken.write_text('<net version="11"><layers><layer id="0"/></layers></net>')
    assert "error[E201]" in irrun("diff", SAMPLE, broken, status=1).stderr
    missing = tmp_path / "bare.xml"
    missing.write_bytes(SAMPLE.read_bytes())
    assert "error[E501]" in irrun("diff", SAMPLE, missing, status=1).stderr
    assert "the same model" in irrun("diff", SAMPLE, missing, "--ignore", "weights").stdout


def test_what_differs_is_told_where_the_runs_fail(tmp_path):
    other = tmp_path / "model.xml"
    irrun("edit", SAMPLE, "-o", other, "--input-type", "u8", "--rename", "image=pixels")
    np.savez(tmp_path / "x.npz", image=np.zeros((1, 3, 16, 16), np.float32))
    done = irrun("diff", SAMPLE, other, "--numeric", tmp_path / "x.npz", "--format", "json", status=1)
    assert json.loads(done.stdout)["edits"]
    assert "error: input `pixels` is f32, expected u8" in done.stderr
