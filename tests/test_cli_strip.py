"""irrun strip as a process: a model to be shown, and whether it fails as before."""

import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import irrun
from ir_builder import Model

CNN = Path(__file__).parents[1] / "samples" / "cnn" / "model.xml"


def test_a_stripped_model_runs_on_inputs_under_its_new_names(tmp_path):
    done = irrun("strip", CNN, "-o", tmp_path / "shared.xml", "--inputs", CNN.with_name("inputs.npz"))
    assert "5 constants and 21 names changed" in done.stdout
    irrun("execute", tmp_path / "shared.xml", "--inputs", tmp_path / "shared_inputs.npz")


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("'SoftMax' in text", 0, "it fails as before: exit 1"),
        ("'Softmax_62' in text", 1, "it does not fail as before (exit 1), but not at all"),
        ("'Loop' in text", 1, "does not fail itself"),
    ],
)
def test_it_is_said_whether_the_failure_survives(tmp_path, code, status, said):
    script = tmp_path / "check.py"
    script.write_text(f"import sys\ntext = open(sys.argv[1]).read()\nsys.exit(int({code}))\n")
    command = f"{shlex.quote(sys.executable)} -S {shlex.quote(str(script))} {{model}}"
    done = irrun("strip", CNN, "-o", tmp_path / "shared.xml", "--check", command, status=status)
    assert said in done.stdout + done.stderr


def test_the_model_is_not_written_over(tmp_path):
    for suffix in (".xml", ".bin"):
        (tmp_path / f"model{suffix}").write_bytes(CNN.with_suffix(suffix).read_bytes())
    done = irrun("strip", tmp_path / "model.xml", "-o", tmp_path / "model.xml", status=2)
    assert "would be overwritten" in done.stderr


def test_an_array_that_is_no_input_is_not_shared(tmp_path):
    np.savez(tmp_path / "x.npz", customer=np.zeros(2))
    done = irrun("strip", CNN, "-o", tmp_path / "shared.xml", "--inputs", tmp_path / "x.npz", status=1)
    assert done.stderr == "error: `customer` is no input of the model; its inputs are `image`\n"
    assert not (tmp_path / "shared.xml").exists()


def test_inputs_of_a_model_that_has_none_are_written_as_well(tmp_path):
    b = Model()
    b.result(b.layer("ReLU", [b.constant(np.float32([-1, 2]))], [("f32", (2,))])[0])
    np.savez(tmp_path / "nothing.npz")
    model = b.save(tmp_path)
    irrun("strip", model, "-o", tmp_path / "shared.xml", "--inputs", tmp_path / "nothing.npz")
    with np.load(tmp_path / "shared_inputs.npz") as written:
        assert not written.files
    irrun("strip", model, "-o", tmp_path / "other.xml")
    assert not (tmp_path / "other_inputs.npz").exists()


def test_a_command_that_is_not_there_tells_nothing_of_the_models(tmp_path):
    done = irrun("strip", CNN, "-o", tmp_path / "shared.xml", "--check", "irrun-has-no-such {model}", status=2)
    assert "--check: the command is not there (exit 127): " in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--timeout", 5), "--timeout goes with --check"),
        (("--values", "keep", "--seed", 5), "--seed is that of random weights, which --values keep does not make"),
    ],
)
def test_options_that_would_do_nothing_are_refused(options, message, tmp_path):
    assert message in irrun("strip", CNN, "-o", tmp_path / "shared.xml", *options, status=2).stderr
    assert not (tmp_path / "shared.xml").exists()
