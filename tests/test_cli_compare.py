"""irrun compare and irrun tune as processes: what they print, write and end with."""

import json
import os
import resource
import shutil
import signal
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from bounded import GIB, bounded
from command_line import irrun
from ir_builder import Model

SAMPLES = Path(__file__).parent.parent / "samples"
CNN = SAMPLES / "cnn" / "model.xml"
INPUTS = SAMPLES / "cnn" / "inputs.npz"


@pytest.fixture
def recorded(tmp_path):
    """All tensors of the cnn, of which one channel of a convolution is doubled, and what comes of that."""
    from irrun import GraphExecutor
    from irrun.run.arrays import read_npz, write_npz

    dump = {}

    def double(event):
        array = event.array.copy()
        if event.layer.name == "Convolution_53":
            array[:, 3] *= 2
        dump[event.name] = array
        return array

    results = GraphExecutor(CNN, engine="reference").run(read_npz(INPUTS), observer=double)
    write_npz(tmp_path / "dump.npz", {**dump, **results})
    return tmp_path / "dump.npz"


def test_agreement_ends_with_0_and_a_table():
    done = irrun("compare", CNN, "engine:numpy", "--inputs", INPUTS, "--top", 3)
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["output", "error", "of", "rms", "dB", "full", "precision", "runs", "off"]
    assert lines[1].startswith("probabilities ")
    assert "engine:numpy: they agree (1 output, " in lines[-1]
    assert any(line.endswith(" more tensors, which are no worse") for line in lines)
    assert done.stderr == ""
    done = irrun("compare", CNN, "engine:numpy", "--inputs", INPUTS, "--top", 10)
    assert "\nand 1 more tensor, which is no worse\n" in done.stdout


def test_a_fault_ends_with_1_at_the_line_of_its_layer(recorded):
    done = irrun("compare", CNN, recorded, "--inputs", INPUTS, status=1)
    assert done.stdout.startswith(
        "error[N206]: `Convolution_53:0` is the first tensor that differs: a part of the tensor is wrong: slice 3"
    )
    assert f"--> {CNN}:135:3" in done.stdout
    assert done.stdout.rstrip().endswith("the first layer at fault is `Convolution_53`, line 135")


def test_outputs_alone_blame_no_layer_for_the_rounding_of_those_before_it(tmp_path):
    import irrun as package

    chance = np.random.default_rng(0)
    with package.build("turned", opset=13) as g:
        product = g.MatMul(g.Parameter("f32[5, 64]", name="x"), chance.normal(size=(64, 32)).astype(np.float32))
        g.Result(g.Transpose(product, np.array([1, 0]), name="y"))
    model = tmp_path / "model.xml"
    package.write_model(g.model, model)
    x = chance.normal(size=(5, 64)).astype(np.float32)
    (y,) = package.GraphExecutor(model).run(x).values()
    np.savez(tmp_path / "x.npz", x=x)
    np.savez(tmp_path / "y.npz", y=y * (1 + 1e-6 * chance.choice([-1, 1], y.shape)).astype(np.float32))
    irrun("compare", model, tmp_path / "y.npz", "--inputs", tmp_path / "x.npz")
    np.savez(tmp_path / "y.npz", y=y * np.float32(1.01))
    done = irrun("compare", model, tmp_path / "y.npz", "--inputs", tmp_path / "x.npz", status=1)
    assert "error[N205]: `y:0` is the first tensor that differs: a factor: the result is times 1.01" in done.stdout
    assert "what it has read there is not known: `MatMul_" in done.stdout
    assert "help: have the other side give tensors in between as well" in done.stdout


@pytest.fixture
def two_outputs(tmp_path):
    """A model with the outputs `small` and `large`, and its inputs."""
    import irrun as package

    with package.build("two", opset=13) as g:
        x = g.Parameter("f32[3]", name="x")
        g.Result(g.Abs(x, name="small"))
        g.Result(g.Multiply(x, np.float32([100]), name="large"))
    package.write_model(g.model, tmp_path / "two.xml")
    np.savez(tmp_path / "x.npz", x=np.float32([1, -2, 3]))
    return tmp_path / "two.xml", tmp_path / "x.npz"


def test_an_array_of_no_name_of_the_model_beside_an_output_without_one_is_an_error(two_outputs, tmp_path):
    model, inputs = two_outputs
    small = np.float32([1, 2, 3])
    np.savez(tmp_path / "y.npz", small=small, larg=np.float32([0, 0, 0]))
    (tmp_path / "arrays").mkdir()
    np.save(tmp_path / "arrays" / "small.npy", small)
    np.save(tmp_path / "arrays" / "larg.npy", np.float32([0, 0, 0]))
    for other in (tmp_path / "y.npz", tmp_path / "arrays"):
        done = irrun("compare", model, other, "--inputs", inputs, status=1)
        message = f"error[N217]: output `large` was not compared: no array of {other} goes by its name"
        assert done.stdout.startswith(message)
        assert "help: if `larg` is it, call its array `large`, or `output_1`, by its place" in done.stdout
        assert "\n1 array of the other side is nothing of the model: `larg`\n" in done.stdout
        assert "they differ (1 output" in done.stdout


def test_an_output_that_was_not_recorded_is_a_warning(two_outputs, tmp_path):
    model, inputs = two_outputs
    np.savez(tmp_path / "y.npz", small=np.float32([1, 2, 3]))
    done = irrun("compare", model, tmp_path / "y.npz", "--inputs", inputs)
    assert done.stdout.startswith(f"warning[N301]: output `large` was not compared: {tmp_path / 'y.npz'} has nothing")
    assert "they agree (1 output" in done.stdout
    second = {"step0/large": np.float32([100, -200, 300]), "step1/small": np.float32([1, 2, 3])}
    np.savez(tmp_path / "y.npz", **second, **{"step0/small": np.float32([1, 2, 3])})
    done = irrun("compare", model, tmp_path / "y.npz", "--inputs", inputs, "--inputs", inputs)
    assert "warning[N301]: output `large` was compared in 1 of 2 runs" in done.stdout
    assert done.stdout.count("N301") == 1


def test_arrays_that_are_nothing_of_the_model_are_named_where_all_outputs_are_there(two_outputs, tmp_path):
    model, inputs = two_outputs
    outputs = {"small": np.float32([1, 2, 3]), "output_1": np.float32([100, -200, 300])}
    np.savez(tmp_path / "y.npz", **outputs, **{f"more{number}": np.float32([0]) for number in range(7)})
    done = irrun("compare", model, tmp_path / "y.npz", "--inputs", inputs)
    assert "7 arrays of the other side are nothing of the model: `more0`, " in done.stdout
    assert "`more4` and 2 more\n" in done.stdout
    assert "N217" not in done.stdout


def test_a_cache_of_attention_in_fewer_bits_is_told_as_the_cause(tmp_path):
    """A prefill and two steps; who computes in f32 need not keep keys and values in it."""
    model, steps, length = SAMPLES / "language-model" / "model.xml", [], 0
    for number, tokens in enumerate(([3, 1, 4, 2, 6], [9], [9])):
        positions = np.arange(length, length := length + len(tokens))
        given = {"input_ids": [tokens], "attention_mask": [[1] * length], "position_ids": [positions]}
        path = tmp_path / f"step{number}.npz"
        np.savez(path, **{name: np.int64(value) for name, value in given.items()}, beam_idx=np.int32([0]))
        steps += ["--inputs", path]
    command = ["compare", model, "ov:CPU", *steps, "--steps", "--config", "INFERENCE_PRECISION_HINT=f32", "--config"]
    done = irrun(*command, "KV_CACHE_PRECISION=u8", status=1)
    cause = "ov:CPU keeps what attention has seen of earlier steps in u8: with that in f32 output `logits` agrees"
    assert done.stdout.startswith(f"info[N106]: {cause}")
    assert "help: compare with --config KV_CACHE_PRECISION=f32, or allow more with --tol" in done.stdout
    assert "tensors are those with KV_CACHE_PRECISION=f32" in done.stdout
    assert not [word for word in ("N102", "irrun tune", "at fault") if word in done.stdout]
    done = irrun(*command, "KV_CACHE_PRECISION=f32")
    assert "KV_CACHE_PRECISION" not in done.stdout


def test_integers_and_texts_have_to_be_equal_and_the_message_says_so(tmp_path):
    import irrun as package

    for name, first in (("one", 10), ("other", 11)):
        with package.build(name, opset=13) as g:
            x = g.Parameter("u8[4, 100]", name="x")
            g.Result(g.Add(x, np.array([first] + [10] * 99, np.uint8), name="sum"))
        package.write_model(g.model, tmp_path / f"{name}.xml")
    done = irrun("compare", tmp_path / "one.xml", tmp_path / "other.xml", "--random", 1, status=1)
    assert "of the rms" not in done.stdout.replace("of rms", "")
    assert "by irrun; it has to be equal\n" in done.stdout
    assert "error[N200]: output `sum` differs in 4 of 400 values, which have to be equal\n" in done.stdout

    with package.build("texts", opset=15) as g:
        bounds = [g.Parameter("i32[2]", name=name) for name in ("b", "e")]
        g.Result(g.StringTensorPack(*bounds, g.Parameter("u8[6]", name="c"), name="words"))
    package.write_model(g.model, tmp_path / "texts.xml")
    given = {"b": np.int32([0, 3]), "e": np.int32([3, 6]), "c": np.frombuffer(b"oneTWO", np.uint8)}
    np.savez(tmp_path / "x.npz", **given)
    for words, status in ((["one", "TWO"], 0), (["one", "two"], 1)):
        np.savez(tmp_path / "y.npz", words=np.array(words))
        files = tmp_path / "texts.xml", tmp_path / "y.npz", "--inputs", tmp_path / "x.npz"
        done = irrun("compare", *files, status=status)
    assert "error[N200]: output `words` differs in 1 of 2 values, which have to be equal\n" in done.stdout


@pytest.mark.parametrize("form", ["json", "sarif", "github", "concise", "junit", "gitlab", "jsonl"])
def test_every_format_has_the_finding(recorded, form):
    done = irrun("compare", CNN, recorded, "--inputs", INPUTS, "--format", form, status=1)
    assert "N206" in done.stdout
    assert "135" in done.stdout
    if form == "json":
        report = json.loads(done.stdout)
        assert (report["ok"], report["diagnostics"][0]["layer"]["name"]) == (False, "Convolution_53")


def test_what_was_measured_is_judged_again_without_running(recorded, tmp_path):
    written = tmp_path / "found.json"
    irrun("compare", CNN, recorded, "--inputs", INPUTS, "-o", written, status=1)
    data = json.loads(written.read_text())
    assert (data["agrees"], data["outputs"][0]["name"]) == (False, "probabilities")
    again = irrun("compare", "--recheck", written, "--tol", "1,1", "--tol", "Convolution_53:1e3,1e3")
    assert "they agree" in again.stdout
    strict = irrun("compare", "--recheck", written, "--tol", "1e-9,0", status=1)
    assert "they differ" in strict.stdout
    irrun("compare", "--recheck", written, status=2)
    edits = {"tensors": 3}, {"untapped": 3}, {"outputs": [{**data["outputs"][0], "name": [1]}]}, {"model": None}
    for change in edits:
        written.write_text(json.dumps({**data, **change}))
        assert "cannot be judged again" in irrun("compare", "--recheck", written, "--tol", "f32", status=2).stderr
    for text in ("", "[]", "{}", "[" * 10_000, '{"irrun-compare": 1}', '{"irrun-compare": 1, "model": 7}'):
        written.write_text(text)
        done = irrun("compare", "--recheck", written, "--tol", "f32", status=2)
        assert "cannot be judged again" in done.stderr


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (("compare", "--tol", "f32", "--recheck"), 2),
        (("report", CNN, "--random", "-o", "report.html", "--compare"), 1),
    ],
    ids=["recheck", "report"],
)
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(command, status, tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    done = irrun(*command, tmp_path / "pipe.json", status=status, cwd=tmp_path)
    assert "it is not a regular file" in done.stderr


def test_what_is_judged_again_has_names_and_figures_and_nothing_beside_it(recorded, tmp_path):
    written = tmp_path / "found.json"
    irrun("compare", CNN, "engine:numpy", "--inputs", INPUTS, "-o", written)
    typo = irrun("compare", "--recheck", written, "--tol", "typo:exact", status=2)
    assert "a tolerance is for `typo`, but the comparison has no such output or layer" in typo.stderr
    for more in ((CNN,), (CNN, recorded), ("--inputs", INPUTS), ("--random", 1), ("--steps",)):
        done = irrun("compare", "--recheck", written, "--tol", "f32", *more, status=2)
        assert "--recheck runs nothing" in done.stderr
    strict = irrun("compare", "--recheck", written, "--tol", "exact", "--tol", "Softmax_62:exact", status=1).stdout
    for begin in ("error[N221]: `Softmax_62:0`", "error[N200]: output `probabilities`"):
        (line,) = (line for line in strict.splitlines() if line.startswith(begin))
        assert "at most, and has to be equal" in line


def test_what_is_written_is_json_of_finite_numbers(tmp_path):
    sample, written = SAMPLES / "f16-overflow", tmp_path / "found.json"
    irrun("compare", sample / "model.xml", "precision:f16", "--inputs", sample / "inputs.npz", "-o", written, status=1)

    def refused(name):
        raise AssertionError(f"{name} is no JSON")

    data = json.loads(written.read_text(), parse_constant=refused)
    assert data["tensors"][0]["accumulated"]["tolerance"]["atol"] == "inf"
    again = irrun("compare", "--recheck", written, "--tol", "f16", status=1).stdout
    assert "error[N202]: `square:0`" in again


def test_a_tolerance_for_a_layer_may_be_less_than_its_precision_explains(tmp_path):
    import irrun as package

    x = np.linspace(1000, 1001, 64, dtype=np.float32).reshape(8, 8)
    with package.build() as g:
        y = g.Subtract(g.Parameter("f32[8, 8]", name="x"), np.float32([1000.5]), name="rest")
        g.Result(g.Multiply(y, np.float32([3]), name="times"), name="y")
    package.write_model(g.model, tmp_path / "model.xml")
    np.savez(tmp_path / "x.npz", x=x)
    rest = x - np.float32(1000.5) + np.float32(3e-5) * np.sign(np.sin(9 * x))
    np.savez(tmp_path / "dump.npz", **{"rest:0": rest, "times:0": rest * 3, "y": rest * 3})
    args = (tmp_path / "model.xml", tmp_path / "dump.npz", "--inputs", tmp_path / "x.npz", "--tol", "f16")
    assert "info[N101]: `rest:0` differs, which is explained" in irrun("compare", *args).stdout
    strict = irrun("compare", *args, "--tol", "rest:exact", status=1).stdout
    assert "error[N221]: `rest:0` is the first tensor that differs: more than --tol allows, exact" in strict


def test_a_run_each_or_steps_of_one_session(tmp_path):
    model, inputs = SAMPLES / "stateful-loop" / "model.xml", SAMPLES / "stateful-loop" / "inputs.npz"
    other = tmp_path / "second.npz"
    shutil.copy(inputs, other)
    for more, runs in ((), "in 2 runs"), (("--steps",), "in 2 runs"):
        done = irrun("compare", model, "engine:numpy", "--inputs", inputs, "--inputs", other, *more)
        assert runs in done.stdout.splitlines()[-1]


def test_wrong_use_ends_with_2():
    for args, said in (
        ((), "MODEL and OTHER are needed"),
        ((CNN,), "MODEL and OTHER are needed"),
        ((CNN, "nothing.npz", "--random", 1), "there is no file nothing.npz"),
        ((CNN, "engine:fast", "--random", 1), "fast"),
        ((CNN, "precision:f99", "--random", 1), "f99"),
        ((CNN, "ov:", "--random", 1), "lacks a device"),
        ((CNN, "engine:numpy", "--inputs", "nothing.npz"), "nothing.npz"),
        ((CNN, "engine:numpy", "--random", 1, "--tol", "f33"), "did you mean"),
        (
            (CNN, "engine:numpy", "--random", 1, "--tol", "x:f32"),
            "for --tol: a tolerance is for `x`, but the model has",
        ),
        ((CNN, "engine:numpy", "--random", 1, "--config", "KEY"), "KEY=VALUE"),
        ((CNN, "engine:numpy", "--random", 1, "--config", "A=B"), "--config is for devices of OpenVINO"),
        ((CNN, "engine:numpy", "--random", 1, "--passes"), "those of OpenVINO"),
    ):
        assert said in irrun("compare", *args, status=2).stderr


def test_what_is_wrong_with_the_other_model_stands_in_lines_of_its_own(tmp_path):
    other = tmp_path / "other.xml"
    other.write_text('<net name="x" version="11"><layers></net>')
    done = irrun("compare", CNN, other, "--random", 1, status=3)
    assert "error[E101]: <layers> is not closed before `</net>`\n" in done.stderr + done.stdout
    assert "\nnote: <layers> is opened here at line 1\n" in done.stderr + done.stdout


def test_a_model_or_inputs_at_fault_end_with_1(tmp_path):
    assert "image" in irrun("compare", CNN, "engine:numpy", status=1).stderr
    np.savez(tmp_path / "x.npz", image=np.zeros((1, 4, 4, 3), np.float32))
    assert "image" in irrun("compare", CNN, "engine:numpy", "--inputs", tmp_path / "x.npz", status=1).stderr
    broken = Path(__file__).parent / "invalid" / "five_defects.xml"
    assert "E306" in irrun("compare", broken, "engine:numpy", "--random", 1, status=1).stderr


def test_a_device_that_refuses_the_model_ends_with_3():
    """OpenVINO 2026.4 cannot compile this one while its sizes are unknown; the line is that of the op that it names."""
    model = SAMPLES / "embedding-segments-sum" / "model.xml"
    inputs = model.with_name("inputs.npz")
    done = irrun("compare", model, "ov:CPU", "--inputs", inputs, status=3)
    assert "error[E701]: ov:CPU failed while" in done.stderr
    assert str(model) in done.stderr


def test_a_device_and_the_transformations_that_it_makes():
    done = irrun(
        "compare",
        CNN,
        "ov:CPU",
        "--inputs",
        INPUTS,
        "--passes",
        "--outputs-only",
        "--config",
        "INFERENCE_PRECISION_HINT=f32",
    )
    assert "no transformation changes the outputs by more than rounding in f32" in done.stdout
    assert "they agree (1 output)" in done.stdout


def test_an_interruption_ends_with_130(tmp_path):
    import subprocess

    from command_line import COMMAND

    with subprocess.Popen(
        [*COMMAND, "compare", CNN, "ov:CPU", "--inputs", INPUTS], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            process.wait(1.5)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert b"Traceback" not in out + err
    # on a busy machine Python itself may not have begun, which the signal ends then: shells say 130 of that, too
    assert process.returncode in (0, 130, -signal.SIGINT)


def test_tune_finds_few_layers_and_the_file_is_good_enough(tmp_path):
    """On a processor that computes in f32 anyway there is nothing to mark."""
    model, inputs = SAMPLES / "transformer-block" / "model.xml", SAMPLES / "transformer-block" / "inputs.npz"
    fixed = tmp_path / "fixed.xml"
    before = tmp_path / "before.json"
    irrun("compare", model, "ov:CPU", "--inputs", inputs, "--outputs-only", "-o", before)
    worst = json.loads(before.read_text())["outputs"][0]["worst"]["metrics"]["max_abs"]
    wanted = f"{worst * 0.8 if worst > 1e-5 else 1e-5},0"
    done = irrun("tune", model, "--inputs", inputs, "--tol", wanted, "-o", fixed)
    checks = done.stdout.splitlines()[-1]
    if "marked:" in done.stdout:
        assert "good enough" in checks
        assert int(checks.split(" checks")[0].rsplit(" ", 1)[1]) <= 30
    irrun("validate", fixed)
    assert fixed.with_suffix(".bin").read_bytes() == model.with_suffix(".bin").read_bytes()
    irrun("compare", model, fixed, "--inputs", inputs, "--outputs-only")


def test_tune_says_when_marks_are_not_enough_or_make_no_sense(tmp_path):
    model, inputs = SAMPLES / "transformer-block" / "model.xml", SAMPLES / "transformer-block" / "inputs.npz"
    assert "is read by this run" in irrun("tune", model, "--inputs", inputs, "-o", model, status=2).stderr
    done = irrun("tune", model, "--device", "engine:numpy", "--inputs", inputs, "-o", tmp_path / "a.xml", status=2)
    assert "heeds no marks" in done.stderr
    done = irrun("tune", model, "--inputs", inputs, "--tol", "exact", "-o", tmp_path / "b.xml", status=1)
    assert "not good enough" in done.stdout


def test_tune_asks_what_computes_where_weights_are_compressed(tmp_path):
    """A device that computes in f32 then names the type of the weights."""
    import irrun as package

    with package.build("m") as g:
        weights = np.random.default_rng(1).standard_normal((512, 64)).astype(np.float16)
        product = g.MatMul(g.Parameter("f32[4,512]", name="x"), g.Convert(weights, destination_type="f32"))
        g.Result(g.Tanh(g.Exp(g.Multiply(product, np.float32(0.01)))), name="y")
    package.write_model(g.model, tmp_path / "m.xml")
    config = "--config", "INFERENCE_PRECISION_HINT=f32"
    command = "tune", tmp_path / "m.xml", "--random", 1, *config, "-o", tmp_path / "fixed.xml"
    assert "0 of 0 layers in 16 bits" in irrun(*command, "--tol", "exact", status=1).stdout
    assert "a tolerance is for `z`" in irrun(*command, "--tol", "z:exact", status=2).stderr


def test_tune_marks_layers_in_bodies(tmp_path):
    """On a processor that computes in f32 anyway there is nothing to mark."""
    import irrun as package

    rng = np.random.default_rng(1)
    with package.build("m") as g:
        x, h = g.Parameter("f32[1,3,8]", name="x"), g.Parameter("f32[1,8]", name="h")
        with g.body() as body:
            part, before = body.input(x, axis=1), body.input(h)
            product = body.MatMul(before, rng.standard_normal((8, 8)).astype(np.float32), name="product")
            after = body.Tanh(body.Add(product, body.Squeeze(part, 1)))
            body.carry(before, after)
            body.Result(after)
        g.Result(g.TensorIterator(body=body, name="steps"), name="y")
    package.write_model(g.model, tmp_path / "m.xml")
    fixed = tmp_path / "fixed.xml"
    command = "tune", tmp_path / "m.xml", "--random", 1, "--tol", "1e-4,0", "-o", fixed
    done = irrun(*command)
    if "marked:" in done.stdout:
        assert "marked: steps/body/product" in done.stdout
        assert "which does not tell of" in done.stdout
        assert package.read_model(fixed).layer("product").precise


def test_a_weight_that_is_not_finite_on_the_other_side_is_blamed_and_no_layer(tmp_path):
    data = bytearray(CNN.with_suffix(".bin").read_bytes())
    data[:4] = np.float32(np.nan).tobytes()
    (tmp_path / "model.bin").write_bytes(data)
    (tmp_path / "model.xml").write_bytes(CNN.read_bytes())
    done = irrun("compare", CNN, tmp_path / "model.xml", "--random", 1, "--top", 0, status=1)
    assert "is the first tensor that differs: the weights differ: input 1" in done.stdout
    assert "NaN or infinite elsewhere" in done.stdout
    assert "N201" not in done.stdout


def test_of_many_marked_layers_the_first_are_named(capsys):
    from irrun.cli.tune import MAX_LISTED, _tell
    from irrun.tools.compare.metrics import measure
    from irrun.tools.compare.results import Measured, Where
    from irrun.tools.compare.tolerances import LEVELS
    from irrun.tools.tune import Tuned

    ones = np.ones(3, np.float32)
    measured = Measured(Where("inputs"), measure(ones, ones, LEVELS["f32"]), LEVELS["f32"])
    names = tuple(f"layer{number}" for number in range(MAX_LISTED + 5))
    _tell(Tuned(names, b"", measured, measured, 200, 105, 9), "ov:CPU", Path("fixed.xml"))
    *lines, verdict = capsys.readouterr().out.splitlines()
    assert lines[-2:] == [f"marked: layer{MAX_LISTED - 1}", "marked: 5 layers more, which fixed.xml has"]
    assert len(lines) == MAX_LISTED + 1
    assert "105 of 200 layers in 16 bits marked" in verdict


def test_another_model_that_is_broken_is_shown_at_its_own_place(tmp_path):
    other = tmp_path / "other.xml"
    lines = CNN.read_text().splitlines()
    number = next(n for n, line in enumerate(lines) if 'type="SoftMax"' in line)
    lines[number + 1] = lines[number + 1].replace('axis="1"', 'axis="x"')
    other.write_text("\n".join(lines))
    shutil.copy(CNN.with_suffix(".bin"), other.with_suffix(".bin"))
    done = irrun("compare", CNN, other, "--random", status=3)
    assert f"error[E701]: {other} failed while compiling the model: {other}:{number + 2}:" in done.stderr
    assert f"  --> {other}:{number + 2}:" in done.stderr
    assert f"--> {CNN}" not in done.stderr
    other.write_text("no model")
    done = irrun("compare", CNN, other, "--random", status=3)
    assert f"  --> {other}:1:1\n" in done.stderr


WRITTEN = {
    "compare": ["{other}"],
    "report": ["--compare", "{other}", "-o", "{folder}/r.html"],
    "reduce": ["--diverges", "{other}", "-o", "{folder}/r"],
    "tune": ["--device", "{other}", "-o", "{folder}/r.xml"],
    "sweep": ["--do", "compare", "--against", "{other}"],
}
"""The options of the commands that have another side write its tensors down."""


@pytest.mark.parametrize(
    ("command", "other"),
    [
        (command, other)
        for command in WRITTEN
        for other in ("engine:numpy", "precision:f16", "ov:CPU")
        if command != "tune" or other == "ov:CPU"
    ],
)
def test_a_temporary_folder_that_is_full_is_the_fault_of_no_layer_and_no_device(command, other, tmp_path, monkeypatch):
    if other == "ov:CPU" and find_spec("openvino") is None:
        pytest.skip("openvino is not installed")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # modules would be cut off, too, and stay so
    model = Model()
    x = model.parameter("x", "f32", (1,))
    many = model.layer("Broadcast", [x, model.constant([100_000])], [("f32", (100_000,))], "opset3", mode="numpy")[0]
    model.result(model.layer("Relu", [many], [("f32", (100_000,))])[0])
    arguments = [option.format(other=other, folder=tmp_path) for option in WRITTEN[command]]
    limits = {resource.RLIMIT_FSIZE: 100_000}
    status = 3 if command == "sweep" else 2
    asked = (command, model.save(tmp_path), *arguments, "--random", 0)
    done = bounded(*asked, status=status, seconds=60, memory=64 * GIB, limits=limits)
    said = f"the temporary folder {tempfile.gettempdir()} cannot be written: File too large"
    if command == "sweep":
        assert f"{other}: {said}\n" in done.output
    else:
        assert done.output.endswith(f"error: {said}\n")
