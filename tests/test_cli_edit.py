"""irrun edit as a process: the order of edits, files, exit status and messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import irrun as command

import irrun

SAMPLE = Path(__file__).parents[1] / "samples" / "cnn"
MODEL = SAMPLE / "model.xml"


def test_edits_are_made_in_the_order_of_the_command_line(tmp_path):
    out = tmp_path / "out.xml"
    command("edit", MODEL, "-o", out, "--rename", "Relu_50=first", "--cut-to", "first", "--reshape", "image=1,3,16,16")
    assert irrun.read_model(out).outputs[0].shape == (1, 8, 16, 16)
    done = command("edit", MODEL, "-o", out, "--cut-to", "first", "--rename", "Relu_50=first", status=2)
    assert "--cut-to first: `first` is no tensor of the model" in done.stderr


def test_layers_of_bodies_are_counted(tmp_path):
    out = tmp_path / "out.xml"
    done = command("edit", SAMPLE.parent / "stateful-loop" / "model.xml", "--strip", "names", "-o", out)
    assert done.stderr == f"{out}: {len([*irrun.read_model(out).graph.walk()])} layers\n"


def test_verified_edits_are_written(tmp_path):
    out = tmp_path / "out.xml"
    done = command("edit", MODEL, "-o", out, "--fold", "--dedup", "--verify", SAMPLE / "inputs.npz")
    assert "probabilities: the same" in done.stderr
    assert irrun.validate(out).ok


def test_results_that_differ_are_not_written(tmp_path):
    out = tmp_path / "out.xml"
    done = command("edit", MODEL, "-o", out, "--weights", "f16", "--verify", SAMPLE / "inputs.npz", status=1)
    assert "error: results are not within 1e-05 of their largest number; nothing is written\n" in done.stderr
    assert "help: --tolerance allows more" in done.stderr
    assert not list(tmp_path.iterdir())
    command("edit", MODEL, "-o", out, "--weights", "f16", "--verify", SAMPLE / "inputs.npz", "--tolerance", "1e-2")
    assert out.with_suffix(".bin").stat().st_size < 0.7 * (SAMPLE / "model.bin").stat().st_size


def test_preprocessing_flags_take_a_name_or_none(tmp_path):
    out = tmp_path / "out.xml"
    command("edit", MODEL, "-o", out, "--reverse-channels", "--input-type", "image=u8", "--layout", "NHWC")
    assert str(irrun.read_model(out).inputs[0]) != str(irrun.read_model(MODEL).inputs[0])
    image = np.zeros((1, 16, 16, 3), np.uint8)
    assert irrun.GraphExecutor(out).run([image])["probabilities"].shape == (1, 10)


def test_append_with_a_map(tmp_path):
    one, two, out = tmp_path / "one.xml", tmp_path / "two.xml", tmp_path / "out.xml"
    command("edit", MODEL, "-o", one, "--cut-to", "Relu_50")
    command("edit", MODEL, "-o", two, "--cut-from", "Relu_50")
    command("edit", one, "-o", out, "--append", two, "--map", "Relu_50=Relu_50")
    assert "the same model" in command("diff", MODEL, out).stdout
    assert "goes behind the --append" in command("edit", one, "-o", out, "--map", "a=b", "--fold", status=2).stderr


def test_what_is_wrong_behind_an_appended_model_stands_in_its_file(tmp_path):
    one, two, out = tmp_path / "one.xml", tmp_path / "two.xml", tmp_path / "out.xml"
    with irrun.build("one") as g:
        g.Result(g.ReLU(g.Parameter("f32[2,3]", name="x"), name="y"))
    irrun.write_model(g.model, one)
    with irrun.build("two") as g:
        g.Result(g.MatMul(g.Parameter("f32[?,4]", name="x"), np.ones((4, 5), np.float32), name="product"))
    irrun.write_model(g.model, two)
    said = command("edit", one, "-o", out, "--append", two, status=1).stderr
    line = next(n for n, text in enumerate(two.read_text().splitlines(), 1) if 'name="product"' in text)
    assert f"--> {two}:{line}" in said
    assert not out.exists()


def test_a_target_that_cannot_be_reached_says_where(tmp_path):
    done = command("edit", MODEL, "-o", tmp_path / "out.xml", "--target", "2021.4", status=1)
    assert f"{MODEL}:2:1" in done.stderr
    assert "does not read version 11 of the format" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "nothing to do"),
        (("--reshape", "x=1"), "`x` is no input of the model; its inputs are `image`"),
        (("--weights", "f8"), "`f8` is not one of f16, f32"),
        (("--fold", "--tolerance", "0.1"), "--tolerance says what --verify allows: give --verify FILE, too"),
        (("--mean", "1", "--scale", "2", "--mean", "3"), "it is given twice for input `image`"),
    ],
)
def test_wrong_use(options, says, tmp_path):
    assert says in command("edit", MODEL, "-o", tmp_path / "out.xml", *options, status=2).stderr


def test_a_model_that_is_broken_is_not_edited(tmp_path):
    bad = tmp_path / "bad.xml"
    bad.write_bytes(MODEL.read_bytes().replace(b'type="ReLU"', b'type="Relux"', 1))
    bad.with_suffix(".bin").write_bytes(MODEL.with_suffix(".bin").read_bytes())
    done = command("edit", bad, "-o", tmp_path / "out.xml", "--fold", status=1)
    assert "E301" in done.stderr
    done = command("edit", MODEL, "-o", tmp_path / "out.xml", "--append", tmp_path, status=1)
    assert f"`{tmp_path}` is a directory, not an .xml file" in done.stderr


def test_verification_gives_renamed_inputs_their_arrays(tmp_path):
    out = tmp_path / "out.xml"
    done = command("edit", MODEL, "-o", out, "--rename", "image=photo", "--verify", SAMPLE / "inputs.npz")
    assert "probabilities: the same" in done.stderr
    np.savez(tmp_path / "other.npz", image=np.zeros((2, 3, 16, 16)))
    done = command("edit", MODEL, "-o", out, "--fold", "--verify", tmp_path / "other.npz", status=1)
    assert "error: the model before the edit: input `image` is f64, expected f32" in done.stderr
    np.savez(tmp_path / "one.npz", image=np.zeros((1, 3, 16, 16), np.float32))
    done = command("edit", MODEL, "-o", out, "--reshape", "image=4,3,16,16", "--verify", tmp_path / "one.npz", status=1)
    assert (
        "error: the model after the edit: input `image` has shape [1, 3, 16, 16], expected [4, 3, 16, 16]"
        in done.stderr
    )


@pytest.mark.parametrize(
    "steps",
    [
        ("--layout", "NHWC"),
        ("--mean", "1,2,3", "--scale", "5"),
        ("--reverse-channels", "--scale", "4,5,6"),
        ("--input-type", "u8", "--mean", "123.7,116.3,103.5", "--scale", "58.4,57.1,57.4", "--layout", "NHWC"),
        (
            "--input-type",
            "f16",
        ),
        ("--scale", "2,3,4", "--dedup", "--layout", "NWHC", "--rename", "image=photo", "--mean", "0.5"),
    ],
    ids=" ".join,
)
def test_verification_undoes_preprocessing_for_the_new_model(steps, tmp_path):
    done = command("edit", MODEL, "-o", tmp_path / "out.xml", *steps, "--verify", SAMPLE / "inputs.npz")
    assert "probabilities: the same" in done.stderr


@pytest.mark.parametrize(
    ("steps", "outputs"),
    [
        (("--cut-to", "Relu_56"), ["Relu_56"]),
        (("--add-output", "Relu_50", "--rename", "Relu_50=first", "--target", "2022.1"), ["probabilities", "first"]),
        (("--fold", "--rename", "Relu_50=r", "--cut-to", "Relu_56", "--cut-to", "r"), ["Relu_56", "r"]),
        (("--cut-from", "Relu_50"), ["probabilities"]),
        (("--scale", "2", "--add-output", "image/scale", "--add-output", "image"), ["probabilities"]),
    ],
    ids=" ".join,
)  # fmt: skip
def test_verification_holds_outputs_against_the_tensors_that_they_were(steps, outputs, tmp_path):
    done = command("edit", MODEL, "-o", tmp_path / "out.xml", *steps, "--verify", SAMPLE / "inputs.npz")
    assert [line for line in done.stderr.splitlines() if line.endswith(": the same")] == [
        f"{name}: the same" for name in outputs
    ]


def test_verification_runs_models_that_are_appended_on_what_they_read(tmp_path):
    one, two, out = tmp_path / "one.xml", tmp_path / "two.xml", tmp_path / "out.xml"
    for path, number in ((one, 1.0), (two, 2.0)):
        with irrun.build("m") as g:
            x, z = g.Parameter("f16[2]", name="x"), g.Parameter("f16[2]", name="z")
            g.Result(g.Divide(g.Add(x, np.float16(number)), z), name="y")
        irrun.write_model(g.model, path)
    x, z = np.float16([0.3, 5]), np.float16([7, 9])
    np.savez(tmp_path / "x.npz", x=x, z=z, z_1=x, z_2=z)
    add = ("--append", two, "--map", "y=x")
    done = command("edit", one, "-o", out, *add, "--append", one, "--map", "y_1=x", "--verify", tmp_path / "x.npz")
    assert "the same" in done.stderr
    np.savez(tmp_path / "x.npz", x=x, z=z)
    done = command("edit", one, "-o", out, *add, "--verify", tmp_path / "x.npz", status=1)
    assert "no array for input `z_1`" in done.stderr
