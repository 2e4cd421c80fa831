"""Reductions by checks in this process: what is left of a model with a fault, how it gets there, and how it goes on."""

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import irrun
from irrun.files import Unwritten
from irrun.run.arrays import read_npz, write_npz
from irrun.tools.reduce import judging
from irrun.tools.reduce.journal import Journal
from irrun.tools.reduce.judging import HANDLERS, Judgement
from irrun.tools.reduce.outcome import FINE, Outcome
from irrun.tools.reduce.reduction import NoFailure, reduce
from irrun.tools.reduce.trials import Limits

SAMPLES = Path(__file__).parents[3] / "samples"


@dataclass
class Planted:
    """A check that has a model fail by what the function finds in a run of it: None, or the parts of a signature."""

    find: Callable[[irrun.Model, dict], dict | None]
    description: str = "planted"
    seen: list[int] = field(default_factory=list)

    def __call__(self, model, inputs):
        made = irrun.read_model(model)
        self.seen.append(len(made.graph.layers))
        found = self.find(made, read_npz(inputs))
        return FINE if found is None else Outcome(True, found)

    def shown_by(self, running):
        return "./planted" if running else "./planted --dry"

    def close(self):
        pass


def wrong(type):
    """Outputs are off because what an op of this type makes is doubled, and 1 more."""

    def find(model, inputs):
        executor = irrun.GraphExecutor(model, engine="reference")

        def fault(event):
            return np.asarray(event.array * 2 + 1, event.array.dtype) if event.layer.type == type else None

        right, faulty = executor.session().run(inputs), executor.session().run(inputs, observer=fault)
        off = any(not np.allclose(array, faulty[name], 1e-3, 1e-5) for name, array in right.items())
        return {"exit": "7"} if off else None

    return Planted(find)


def has(*types):
    """There are layers of all these types."""

    def find(model, _):
        there = {layer.type for layer in model.graph.walk()}
        return {"exit": "1"} if there.issuperset(types) else None

    return Planted(find)


def sample(name):
    model = irrun.read_model(SAMPLES / name / "model.xml")
    executor = irrun.GraphExecutor(model, engine="reference")
    return model, executor.named(read_npz(SAMPLES / name / "inputs.npz"))


def types(path):
    quiet = ("Parameter", "Const", "Result")
    return sorted(layer.type for layer in irrun.read_model(path).graph.walk() if layer.type not in quiet)


@pytest.mark.parametrize(
    ("name", "type"),
    [("cnn", "MaxPool"), ("cnn", "MatMul"), ("transformer-block", "Gelu"), ("language-model", "MatMul")],
)
def test_one_wrong_op_is_all_that_is_left(tmp_path, name, type):
    found = reduce(*sample(name), wrong(type), tmp_path)
    assert types(tmp_path / "min.xml") == [type]
    assert found.checks <= 30
    assert found.sizes[-1] == 1
    results = irrun.GraphExecutor(tmp_path / "min.xml").run(read_npz(tmp_path / "inputs.npz"))
    for key, array in read_npz(tmp_path / "expected.npz").items():
        assert np.allclose(results[key], array, 1e-3, 1e-5)


def test_a_wrong_op_in_a_loop_is_taken_out_of_it(tmp_path):
    reduce(*sample("stateful-loop"), wrong("Tanh"), tmp_path)
    assert types(tmp_path / "min.xml") == ["Tanh"]


def test_two_layers_far_apart_stay_together(tmp_path):
    reduce(*sample("cnn"), has("MaxPool", "SoftMax"), tmp_path)
    assert types(tmp_path / "min.xml") == ["MaxPool", "SoftMax"]


def test_sizes_and_numbers_become_small(tmp_path):
    reduce(*sample("cnn"), has("Convolution"), tmp_path)
    inputs = read_npz(tmp_path / "inputs.npz")
    assert [(array.shape, array.any()) for array in inputs.values()] == [((1, 1, 1, 1), False)]


def test_sizes_stay_where_the_failure_needs_them(tmp_path):
    def find(model, inputs):
        wide = any(array.shape[-1:] == (16,) for array in inputs.values())
        return {"exit": "1"} if wide and any(layer.type == "Convolution" for layer in model.graph.layers) else None

    reduce(*sample("cnn"), Planted(find), tmp_path)
    assert [array.shape[-1] for array in read_npz(tmp_path / "inputs.npz").values()] == [16]


def test_another_failure_is_kept_aside_and_not_followed(tmp_path):
    def find(model, _):
        there = [layer.type for layer in model.graph.layers]
        return {"exit": "1"} if "SoftMax" in there else {"exit": "SIGSEGV"}

    found = reduce(*sample("cnn"), Planted(find), tmp_path)
    assert types(tmp_path / "min.xml") == ["SoftMax"]
    assert list(found.others) in ([], ["exit SIGSEGV"])
    found = reduce(*sample("cnn"), Planted(lambda m, i: find(m, i) | {"n": str(min(len(m.graph.layers), 9))}, "other"),
                   tmp_path / "other")  # fmt: skip
    assert (tmp_path / "other" / "interesting" / "1" / "model.xml").exists()
    assert found.others


def test_a_reduction_that_was_ended_goes_on_and_asks_nothing_twice(tmp_path):
    first = has("Gelu")
    begun = reduce(*sample("transformer-block"), first, tmp_path, Limits(3))
    assert begun.exhausted
    assert len(first.seen) == 3
    second, alone = has("Gelu"), has("Gelu")
    gone_on = reduce(*sample("transformer-block"), second, tmp_path)
    reduce(*sample("transformer-block"), alone, tmp_path / "alone")
    assert not gone_on.exhausted
    assert len(first.seen) + len(second.seen) == len(alone.seen)
    assert (tmp_path / "min.xml").read_bytes() == (tmp_path / "alone" / "min.xml").read_bytes()
    third = has("Gelu")
    reduce(*sample("transformer-block"), third, tmp_path)
    assert not third.seen


def test_a_model_that_ended_a_reduction_is_not_tried_again(tmp_path):
    model, inputs = sample("cnn")
    reduce(model, inputs, has("SoftMax"), tmp_path, Limits(2))
    lines = (tmp_path / "reduce.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["fails"]
    (tmp_path / "reduce.jsonl").write_text("\n".join(lines[:-1]) + '\n{"hash": "cut o')
    task = json.loads(lines[0])["task"]
    journal = Journal(tmp_path / "reduce.jsonl", task)
    assert journal.find(json.loads(lines[-1])["hash"]).fails is False
    journal.close()


def test_a_check_for_which_there_was_no_room_says_nothing_of_its_model_and_is_made_again(tmp_path):
    class Full:
        description = has("SoftMax").description

        def __call__(self, model, inputs):
            raise Unwritten(errno.ENOSPC, "No space left on device", "/tmp")

        def close(self):
            pass

    with pytest.raises(Unwritten):
        reduce(*sample("cnn"), Full(), tmp_path)
    assert reduce(*sample("cnn"), has("SoftMax"), tmp_path, Limits(2)).outcome.fails


def test_a_folder_of_another_reduction_is_refused(tmp_path):
    reduce(*sample("cnn"), has("SoftMax"), tmp_path, Limits(2))
    with pytest.raises(ValueError, match="is of another reduction"):
        reduce(*sample("stateful-loop"), has("Tanh"), tmp_path)


def test_a_model_that_does_not_fail_is_said_so(tmp_path):
    with pytest.raises(NoFailure):
        reduce(*sample("cnn"), has("Loop"), tmp_path)


def test_without_inputs_sizes_stay_as_they_are_declared(tmp_path):
    model, _ = sample("cnn")
    reduce(model, None, has("MaxPool"), tmp_path)
    assert types(tmp_path / "min.xml") == ["MaxPool"]
    assert irrun.read_model(tmp_path / "min.xml").inputs[0].shape[1:] == (16, 8, 8)


def test_a_layer_that_fails_in_the_run_is_what_is_left(tmp_path):
    with irrun.build() as g:
        x, target = g.Parameter("f32[?]", name="x"), g.Parameter("i64[2]", name="target")
        shape = g.Add(target, np.int64([0, 0]))
        g.Result(g.ReLU(g.Reshape(g.Tanh(x), shape, special_zero=False)))
    inputs = {"x": np.ones(6, np.float32), "target": np.int64([4, 2])}
    reduce(g.model, inputs, Judgement("diagnostic", {"code": "E401"}), tmp_path)
    assert types(tmp_path / "min.xml") == ["Reshape"]


def test_what_is_computed_of_constants_becomes_one(tmp_path):
    with irrun.build() as g:
        x = g.Parameter("f32[2, 3]", name="x")
        weights = g.Multiply(g.Convert(np.int8([[1, 2, 3]]), destination_type="f32"), np.float32(0.5))
        g.Result(g.MatMul(x, weights, transpose_b=True))
    reduce(g.model, {"x": np.ones((2, 3), np.float32)}, has("MatMul"), tmp_path)
    assert types(tmp_path / "min.xml") == ["MatMul"]


def test_the_report_names_the_failure_and_the_script_is_short(tmp_path):
    reduce(*sample("cnn"), has("SoftMax"), tmp_path)
    report = (tmp_path / "REPORT.md").read_text()
    assert report.startswith("# SoftMax: exit 1\n\nA model of 11 layers fails; so does this one of 1.\n")
    assert "| `Softmax_62` | `SoftMax (opset1)` |" in report
    assert "```\n./planted\npython repro.py CPU\n```\n\n`expected.npz` is what irrun computes" in report
    assert len((tmp_path / "repro.py").read_text().splitlines()) <= 27
    assert not (tmp_path / "work").exists()


def test_names_mean_nothing_in_a_report(tmp_path):
    with irrun.build() as g:
        x = g.Parameter("f32[2]", name="__a__ <b>")
        g.Result(g.ReLU(x, name="a`|`` [x](javascript:y)"))
    reduce(g.model, {"__a__ <b>": np.ones(2, np.float32)}, has("ReLU"), tmp_path)
    report = (tmp_path / "REPORT.md").read_text()
    assert "| `__a__ <b>` | `Parameter (opset1)` |" in report
    assert "| ``` a`\\|`` [x](javascript:y) ``` | `ReLU (opset1)` |" in report


def test_what_was_never_run_is_shown_by_the_check_alone(tmp_path):
    found = reduce(sample("cnn")[0], None, has("SoftMax"), tmp_path)
    report = (tmp_path / "REPORT.md").read_text()
    assert "```\n./planted --dry\n```\n\n## Where" in report
    done = subprocess.run([sys.executable, tmp_path / "repro.py"], capture_output=True, text=True, check=False)
    assert "it is compiled; there are no inputs to run it on" in done.stderr
    assert found.outcome.kind == "exit 1"


def test_the_script_runs_where_numpy_has_no_name_for_types_of_inputs_and_outputs(tmp_path):
    with irrun.build("bf16", opset=13) as g:
        x = g.Parameter("bf16[2, 3]", name="x")
        y = g.Parameter("f32[3]", name="y")
        g.Result(g.Exp(x), name="powers")
        g.Result(g.Exp(y), name="others")
    inputs = irrun.GraphExecutor(g.model).random_inputs(0)
    reduce(g.model, inputs, Planted(lambda *_: {"exit": 1}), tmp_path, Limits(1))
    done = subprocess.run([sys.executable, tmp_path / "repro.py"], capture_output=True, text=True, check=True)
    assert "powers float32 (2, 3) expected (2, 3)\n  largest difference" in done.stdout


def diverging(tmp_path):
    """A request for a check of a model that is off beside OpenVINO by any rounding."""
    with irrun.build("rounding", opset=13) as g:
        x = g.Parameter("f32[4,64]", name="x")
        g.Result(g.Exp(x, name="y"))
    irrun.write_model(g.model, tmp_path / "model.xml")
    write_npz(tmp_path / "inputs.npz", {"x": np.linspace(-3, 3, 256, dtype=np.float32).reshape(4, 64)})
    return {
        "model": str(tmp_path / "model.xml"),
        "inputs": str(tmp_path / "inputs.npz"),
        "timeout": 60,
        "ops": [],
        "other": "ov:CPU",
        "config": {},
        "tolerances": ["exact"],
    }


def test_a_device_is_started_once_for_all_checks_and_again_when_it_has_died(tmp_path, monkeypatch):
    monkeypatch.setattr(judging, "_FIRST", [])
    request = diverging(tmp_path)
    first = HANDLERS["diverges"](request, lambda _: None)
    assert first["signature"] == {"cause": "N200"}
    (side,) = judging._FIRST
    process = side._worker.pid
    assert HANDLERS["diverges"](request, lambda _: None) == first
    assert side._worker.pid == process
    os.kill(process, signal.SIGKILL)
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    assert HANDLERS["diverges"](request, lambda _: None) == first
    assert side._worker.pid != process
    side.close()


def test_a_check_leaves_nothing_behind_where_others_write(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "others"))
    (tmp_path / "others").mkdir()
    request = diverging(tmp_path)
    check = Judgement("diverges", {name: request[name] for name in ("other", "config", "tolerances")})
    assert check(Path(request["model"]), Path(request["inputs"])).signature == {"cause": "N200"}
    assert list((tmp_path / "others").glob("*/*"))
    check.close()
    assert not list((tmp_path / "others").iterdir())
