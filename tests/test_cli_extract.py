"""irrun extract as a process: parts that `irrun execute` confirms, and wishes that are refused."""

from pathlib import Path

import pytest
from command_line import irrun

SAMPLES = Path(__file__).parents[1] / "samples"
CNN, LOOP = SAMPLES / "cnn" / "model.xml", SAMPLES / "stateful-loop" / "model.xml"


@pytest.mark.parametrize(
    ("model", "wish"),
    [
        (CNN, ("--from", "Add_55", "--to", "ReduceMean_59", "--random", 7)),
        (CNN, ("--around", "Relu_50", "--distance", 2, "--dynamic", "keep", "--inputs", CNN.with_name("inputs.npz"))),
        (LOOP, ("--body", "Loop_13276[1]", "--inputs", LOOP.with_name("inputs.npz"))),
    ],
)
def test_a_part_gives_what_is_expected_of_it(tmp_path, model, wish):
    done = irrun("extract", model, *wish, "-o", tmp_path / "part.xml")
    assert "part_inputs.npz" in done.stdout
    given, expected = tmp_path / "part_inputs.npz", tmp_path / "part_expected.npz"
    ran = irrun("execute", tmp_path / "part.xml", "--inputs", given, "--expect", expected)
    assert "as expected" in ran.stderr


def test_without_a_run_there_is_the_model_alone(tmp_path):
    done = irrun("extract", CNN, "--to", "Relu_50", "-o", tmp_path / "part.xml")
    assert done.stdout.startswith(f"{tmp_path / 'part.xml'}: 7 layers; inputs: image: f32[image.0, 3, 16, 16]; outputs")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part.bin", "part.xml"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--to", "Relu_5"), 2, "there is no layer or tensor `Relu_5`"),
        ((), 2, "say which part"),
        (("--to", "Relu_50", "--save-inputs", "x.npz"), 2, "needs a run"),
        (("--to", "Relu_50", "--around", "Relu_50"), 2, "does not go with"),
        (("--to", "Relu_50", "--distance", 2), 2, "--distance is that from a layer: name it with --around"),
        (("--to", "Relu_50", "--inputs", SAMPLES / "cnn" / "expected.npz"), 1, "error: "),
    ],
)
def test_what_is_no_part_is_refused(tmp_path, arguments, status, message):
    done = irrun("extract", CNN, *arguments, "-o", tmp_path / "part.xml", status=status, cwd=tmp_path)
    assert message in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_model_is_not_written_over(tmp_path):
    for suffix in (".xml", ".bin"):
        (tmp_path / f"model{suffix}").write_bytes(CNN.with_suffix(suffix).read_bytes())
    path = tmp_path / "model.xml"
    done = irrun("extract", path, "--to", "Relu_50", "-o", path, status=2)
    assert "would be overwritten" in done.stderr
    assert path.read_bytes() == CNN.read_bytes()
