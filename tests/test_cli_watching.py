"""`irrun execute` as a process, with somebody who looks at the tensors: --dump, --check-finite, --check-range."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import irrun
from ir_builder import Model

import irrun as package

SAMPLES = Path(__file__).parent.parent / "samples"
CNN = SAMPLES / "cnn" / "model.xml"
LOOP = SAMPLES / "stateful-loop" / "model.xml"
F32 = np.float32


def chain(tmp_path, *layers, shape=(2,)):
    """x of f32, and layers on top of each other: (name, type), or (name, type, constant) of what reads that, too."""
    model = Model()
    value = model.parameter("x", "f32", shape)
    for name, type, *constants in layers:
        inputs = [value, *(model.constant(np.asarray(constant, F32)) for constant in constants)]
        data = {"auto_broadcast": "numpy"} if constants else {"axis": str(len(shape) - 1)} if type == "SoftMax" else {}
        (value,) = model.layer(type, inputs, [("f32", shape)], name=name, **data)
    model.result(value)
    return model.save(tmp_path)


def given(tmp_path, *numbers):
    np.savez(tmp_path / "in.npz", x=F32(numbers))
    return tmp_path / "in.npz"


def test_statistics_are_what_is_dumped_unless_something_says_which_tensors(tmp_path):
    done = irrun("execute", CNN, "--random", 7, "--dump", tmp_path / "d.npz")
    assert done.stderr == f"{tmp_path / 'd.npz'}: statistics of 11 tensors\n"
    with package.Dump.open(tmp_path / "d.npz") as dump:
        assert (len(dump), len(dump.entries)) == (0, 11)
        assert dump.run["model"]["path"] == str(CNN)
        assert len(dump.run["model"]["weights"]) == 64
        assert dump.run["inputs"]["image"]["shape"] == [1, 3, 16, 16]
        first = next(iter(dump.entries.values()))
        assert (first.layer, first.operation, first.line, first.id) == ("Convolution_47", "Convolution", 26, 2)
    done = irrun("execute", CNN, "--random", 7, "--dump", tmp_path / "d.npz", "--type", "Convolution,SoftMax")
    assert done.stderr == f"{tmp_path / 'd.npz'}: values of 3 tensors\n"
    results = package.GraphExecutor(CNN).run(package.GraphExecutor(CNN).random_inputs(7))
    with package.Dump.open(tmp_path / "d.npz") as dump:
        assert [entry.operation for entry in dump.entries.values()] == ["Convolution", "Convolution", "SoftMax"]
        np.testing.assert_allclose(dump["Softmax_62:0"], results[0], 1e-5)


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_lines_of_json(engine, tmp_path):
    irrun("execute", CNN, "--random", 7, "--dump", tmp_path / "d.jsonl", "--layer", "Convolution_*", "--engine", engine)
    head, *lines = (json.loads(line) for line in (tmp_path / "d.jsonl").read_text().splitlines())
    assert (head["schema"], head["run"]["record"]) == (1, "stats")
    assert [(line["key"], line["statistics"]["count"]) for line in lines] == [
        ("Convolution_47:0", 2048),
        ("Convolution_53:0", 1024),
    ]


def test_safetensors_and_iterations(tmp_path):
    irrun("execute", LOOP, "--random", 7, "--dump", tmp_path / "d.safetensors", "--record", "values")
    with package.Dump.open(tmp_path / "d.safetensors") as dump:
        inside = [key for key in dump if "/body[" in key]
        assert any("body[0]" in key for key in inside)
        assert any("body[1]" in key for key in inside)
    done = irrun("execute", LOOP, "--random", 7, "--dump", tmp_path / "e.npz", "--iterations", "last")
    with package.Dump.open(tmp_path / "e.npz") as dump:
        numbers = {iteration for entry in dump.entries.values() for _, _, iteration in entry.path}
    assert len(numbers) == 1
    assert "statistics" in done.stderr


def test_runs_of_a_session_have_keys_of_their_own(tmp_path):
    irrun("execute", LOOP, "--random", 7, "--dump", tmp_path / "d.npz", "--record", "values", "--repeat", 3)
    with package.Dump.open(tmp_path / "d.npz") as dump:
        steps = [entry.step for entry in dump.entries.values()]
        assert sorted(set(steps)) == [1, 2, 3]
        assert steps.count(1) == steps.count(2) == steps.count(3)
        changed = [
            key
            for key, entry in dump.entries.items()
            if entry.step == 1 and dump[key].any() and not np.array_equal(dump[key], dump[f"{key}@step2"])
        ]
        assert changed
    irrun("execute", CNN, "--random", 7, "--dump", tmp_path / "e.npz", "--repeat", 3)
    with package.Dump.open(tmp_path / "e.npz") as dump:
        assert {entry.step for entry in dump.entries.values()} == {1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--layer", "x"], "--layer says what --dump writes: give --dump FILE, too"),
        (["--distance", "2", "--dump", "d.npz"], "--distance is that from a layer: name it with --around"),
        (["--dump", "d.txt"], "d.txt is none of .npz, .safetensors and .jsonl"),
        (["--dump", "none/d.npz"], "there is no folder none to write to"),
        (["--dump", "d.jsonl", "--record", "values"], ".jsonl is for statistics"),
        (["--dump", "d.npz", "--layer", "Convolution_4"], "the model has no layer `Convolution_4`; did you mean"),
        (["--dump", "d.npz", "--type", "Convolution,Relu"], "the model has no type `Relu`; did you mean `ReLU`?"),
        (
            ["--dump", "d.npz", "--around", "Softmax_6"],
            "the model has no layer `Softmax_6`; did you mean `Softmax_62`?",
        ),
        (["--dump", "d.npz", "--iterations", "1-3"], "`1-3` is not all, first, last, or numbers such as 0,3,-1"),
        (["--dump", "d.npz", "-o", "d.npz"], "d.npz would be written twice"),
    ],
)
def test_what_cannot_be_asked_for(arguments, message, tmp_path):
    done = irrun("execute", CNN, "--random", 7, *arguments, status=2, cwd=tmp_path)
    assert message in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_fails_leaves_no_file(tmp_path):
    (tmp_path / "d.npz").write_bytes(b"before")
    irrun("execute", CNN, "--random", 7, "--dump", tmp_path / "d.npz", "--max-memory", "10kB", status=1)
    irrun("execute", CNN, "--dump", tmp_path / "d.npz", status=1)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("d.npz", b"before")]


def test_all_is_finite(tmp_path):
    assert irrun("execute", CNN, "--random", 7, "--check-finite").stderr == "finite: 7 tensors\n"
    assert irrun("execute", CNN, "--random", 7, "--check-range", "f16").stderr == "in the range of f16: 7 tensors\n"
    done = irrun("execute", CNN, "--random", 7, "--check-finite", "--engine", "reference")
    assert done.stderr == "finite: 11 tensors\n"


def test_nan_that_is_made_of_infinity_is_not_said_to_be_made_of_nothing_like_it(tmp_path):
    model = chain(tmp_path, ("big", "Add", [np.inf, 1]), ("product", "Multiply", [0, 1]))
    done = irrun("execute", model, "--inputs", given(tmp_path, 1, 2), "--check-finite", status=1)
    assert "the result has 1 NaN of 2 elements, the first at [0]; what the layer has read has no NaN\n" in done.stderr


@pytest.mark.parametrize(("engine", "dumped"), [("reference", False), ("onednn", False), ("onednn", True)])
def test_the_first_layer_that_makes_infinity_is_named(engine, dumped, tmp_path):
    model = chain(tmp_path, ("big", "Multiply", [1e20]), ("square", "Multiply", [1e20]))
    more = ["--dump", tmp_path / "d.npz"] if dumped else []
    x = given(tmp_path, 1, 2)
    done = irrun("execute", model, "--inputs", x, "--check-finite", "--engine", engine, *more, status=1)
    assert (
        "error[E607]: the result has 2 infinite of 2 elements, the first at [0]; what the layer has read has none"
        in done.stderr
    )
    assert "layer 4 `square` (Multiply)" in done.stderr
    assert "note: input 0 is f32[2] of layer 2 `big` (Multiply), from 1e+20 to 2e+20" in done.stderr


def test_nan_is_traced_to_where_it_was_made(tmp_path):
    model = chain(tmp_path, ("low", "Subtract", [5]), ("root", "Sqrt"), ("more", "Multiply", [2]), ("end", "Tanh"))
    done = irrun("execute", model, "--inputs", given(tmp_path, 1, 9), "--check-finite", status=1)
    assert "1 NaN of 2 elements, the first at [0]" in done.stderr
    assert "`root` (Sqrt)" in done.stderr
    assert "warning: not finite" in done.stderr


def test_infinities_of_constants_and_masks_are_left_alone(tmp_path):
    masked = chain(tmp_path, ("hide", "Add", [0, -np.inf, 0]), ("share", "SoftMax"), shape=(3,))
    done = irrun("execute", masked, "--inputs", given(tmp_path, 1, 2, 3), "--check-finite")
    assert done.stderr == "finite but for what comes from inputs, constants and masks: 2 tensors\n"
    logged = chain(tmp_path, ("mask", "Log"), ("scores", "Add", [1, 2, 3]), ("share", "SoftMax"), shape=(3,))
    done = irrun("execute", logged, "--inputs", given(tmp_path, 1, 0, 1), "--check-finite", "--engine", "reference")
    assert "note: taken for masks, -inf among zeros: 1 `mask` (Log)" in done.stderr
    hidden = chain(tmp_path, ("hide", "Add", [-np.inf] * 3), ("share", "SoftMax"), shape=(3,))
    done = irrun("execute", hidden, "--inputs", given(tmp_path, 1, 2, 3), "--check-finite", status=1)
    assert "`share` (SoftMax)" in done.stderr
    assert "note: input 0 is f32[3] of layer 2 `hide` (Add), 3 infinite of 3 elements, the first at [0]" in done.stderr


def test_inputs_that_are_not_finite_are_said_to_be(tmp_path):
    model = chain(tmp_path, ("end", "Tanh"))
    done = irrun("execute", model, "--inputs", given(tmp_path, np.nan, 1), "--check-finite", status=1)
    assert "error[E607]: the input is given 1 NaN of 2 elements, the first at [0]" in done.stderr


def test_nan_that_is_made_of_infinite_inputs_is_found_behind_them(tmp_path):
    model = chain(tmp_path, ("scale", "Multiply", [2, 2]), ("share", "SoftMax"))
    done = irrun("execute", model, "--inputs", given(tmp_path, np.inf, 1), "--check-finite", status=1)
    assert "error[E607]: the result has 2 NaN of 2 elements" in done.stderr
    assert "`share` (SoftMax)" in done.stderr
    assert "(Parameter): the input is given 1 infinite of 2 elements, the first at [0]" in done.stderr
    done = irrun("execute", model, "--inputs", given(tmp_path, -np.inf, 1), "--check-finite", status=1)
    assert "error[E607]: the input is given 1 infinite of 2 elements, the first at [0]" in done.stderr


def test_numbers_that_f16_does_not_have(tmp_path):
    model = chain(tmp_path, ("big", "Multiply", [1000]), ("huge", "Multiply", [1000]), ("small", "Multiply", [1e-12]))
    x = given(tmp_path, 1, 2)
    done = irrun("execute", model, "--inputs", x, "--check-range", "f16", "--engine", "reference", status=1)
    assert "error[E608]: the result has 2 beyond 65504 of 2 elements, the first at [0], up to 2e+06" in done.stderr
    assert "`huge` (Multiply)" in done.stderr
    done = irrun("execute", model, "--inputs", x, "--check-range", "bf16", "--engine", "reference")
    assert done.stderr == "in the range of bf16: 3 tensors\n"


def test_numbers_that_f16_rounds_to_0(tmp_path):
    model = chain(tmp_path, ("tiny", "Multiply", [1e-9]), ("end", "Add", [1]))
    x = given(tmp_path, 1, 2)
    for more in ([], ["--dump", tmp_path / "d.jsonl"]):
        done = irrun("execute", model, "--inputs", x, "--check-range", "f16", "--engine", "reference", *more)
        said = "note: 1 layer makes numbers that f16 has not, and rounds to 0: 2 in layer 2 `tiny` (Multiply)\n"
        assert said in done.stderr


def test_what_a_state_carries_over_is_checked_in_every_run(tmp_path):
    """A variable that is multiplied by 1e15 in each run is infinite in the third."""
    model = Model()
    x = model.parameter("x", "f32", (1,))
    start = model.constant(F32([1]))
    variable = {"variable_id": "v", "variable_type": "f32", "variable_shape": "1"}
    (read,) = model.layer("ReadValue", [start], [("f32", (1,))], version="opset6", name="read", **variable)
    factor = model.constant(F32([1e15]))
    (grown,) = model.layer("Multiply", [read, factor], [("f32", (1,))], name="grown", auto_broadcast="numpy")
    model.layer("Assign", [grown], [("f32", (1,))], version="opset6", variable_id="v")
    (total,) = model.layer("Add", [grown, x], [("f32", (1,))], name="total", auto_broadcast="numpy")
    model.result(total)
    path, x = model.save(tmp_path), given(tmp_path, 1)
    assert irrun("execute", path, "--inputs", x, "--check-finite", "--repeat", 2).returncode == 0
    done = irrun("execute", path, "--inputs", x, "--check-finite", "--repeat", 3, status=1)
    assert "`grown` (Multiply)" in done.stderr
    assert "from 1e+30 to 1e+30" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("kind", ["npz", "safetensors", "jsonl"])
@pytest.mark.parametrize("model", [CNN, LOOP], ids=["cnn", "loop"])
def test_a_file_that_takes_no_more_is_the_fault_of_no_layer(model, kind, tmp_path):
    (tmp_path / f"d.{kind}").symlink_to("/dev/full")
    record = "stats" if kind == "jsonl" else "values"
    done = irrun("execute", model, "--random", "--dump", tmp_path / f"d.{kind}", "--record", record, status=2)
    assert done.stderr == f"error: {tmp_path / f'd.{kind}'} cannot be written: No space left on device\n"
