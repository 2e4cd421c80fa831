"""Whole comparisons: agreement, faults that are planted, fusions, steps of a session, and what is said of all that."""

import json
from pathlib import Path

import numpy as np
import pytest
from ir_builder import Model as Builder

import irrun
from irrun.run.arrays import read_npz, write_npz
from irrun.run.session import Session
from irrun.tools.compare.passes import Trace, trace
from irrun.tools.compare.rechecking import rejudged
from irrun.tools.compare.replay import Course
from irrun.tools.compare.results import Comparison
from irrun.tools.compare.sides.contract import Observation, Options, Runtime, SideFailed
from irrun.tools.compare.sides.failures import named_in
from irrun.tools.compare.tolerances import parse

SAMPLES = Path(__file__).parents[3] / "samples"
CNN = SAMPLES / "cnn" / "model.xml"
LOOP = SAMPLES / "stateful-loop" / "model.xml"
F32 = np.float32


def inputs_of(sample):
    return read_npz(SAMPLES / sample / "inputs.npz")


class Made:
    """Another side that gives what functions make of our own tensors: `wrong` on the way and behind, `fused` only where
    nobody looks. `noise` is what outputs change by in every second run."""

    name, kind, precision = "device", "device", "f32"

    def __init__(self, path, wrong=None, fused=None, noise=0.0, precise=None, runtime=None):
        self._executor = irrun.GraphExecutor(path, engine="reference")
        self._wrong, self._fused, self._noise, self._precise = wrong or {}, fused or {}, noise, precise
        self._runtime, self._runs, self.untapped = runtime or {}, 0, {}

    def _run(self, steps, watched, until=None):
        session, found = self._executor.session(), []
        changes = {**self._wrong, **({} if watched else self._fused)}
        for inputs in steps:
            tensors = {}

            def observer(event, tensors=tensors):
                change = changes.get(event.name)
                if change is None or (until is not None and not watched and event.name == until):
                    tensors[event.name] = event.array.copy()
                    return None
                array = np.asarray(change(event.array), event.array.dtype)
                tensors[event.name] = array
                return array

            outputs = session.run(inputs, observer=observer)
            self._runs += 1
            if self._noise and self._runs % 2:
                outputs = {name: array + F32(self._noise) for name, array in outputs.items()}
            found.append(Observation(dict(outputs), tensors, 0.0))
        return found

    def outputs(self, steps):
        return [step.outputs for step in self._run(steps, watched=False)]

    def observe(self, steps, keys=None):
        return self._run(steps, watched=True)

    def cut(self, steps, keys):
        (key,) = keys
        return [{key: step.tensors[key]} for step in self._run(steps, watched=False)]

    def runtime(self):
        return self._runtime

    def precise(self):
        return self._precise

    def close(self):
        pass


def codes(found):
    return [diagnostic.code for diagnostic in found.diagnostics]


def test_a_side_that_gives_the_same_agrees_in_all_tensors():
    found = irrun.compare(CNN, Made(CNN), inputs_of("cnn"))
    assert (found.agrees, found.first, found.cause, codes(found)) == (True, None, None, [])
    assert [result.name for result in found.outputs] == ["probabilities"]
    assert [result.layer.type for result in found.tensors] == [
        *["Convolution", "Add", "ReLU", "MaxPool"] * 2,
        "ReduceMean",
        "MatMul",
        "SoftMax",
    ]
    assert all(result.own.metrics.equal and result.accumulated.metrics.equal for result in found.tensors)
    assert str(found).splitlines()[-1] == f"{CNN} and device: they agree (1 output, 11 tensors on the way)"


def test_what_is_not_finite_at_full_precision_either_is_told_as_that():
    lost = {"Softmax_62:0": lambda x: np.where(np.arange(x.size).reshape(x.shape) == 1, np.nan, x)}
    found = irrun.compare(CNN, Made(CNN, lost, precise=Made(CNN, lost)), inputs_of("cnn"), outputs_only=True)
    (diagnostic,) = found.diagnostics
    extent = f"in 1 of {found.outputs[0].worst.metrics.count} values that are not finite on one side"
    assert diagnostic.message == f"output `probabilities` differs {extent}"
    assert f"at full precision it differs as well {extent}" in [note.message for note in diagnostic.notes]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda x: x * 0.125, "N205"),
        (lambda x: np.where(np.arange(x.shape[1]) == 5, 0, 1)[:, None, None] * x, "N206"),
        (lambda x: np.where(x > np.quantile(x, 0.9), np.nan, x), "N201"),
        (lambda x: np.roll(x, 1, -1), "N207"),
        (lambda x: x.transpose(0, 1, 3, 2), "N204"),
    ],
)
def test_the_layer_with_a_fault_is_the_first_one_and_the_only_one(change, code):
    """What follows it only hands the fault on: its own error is none."""
    found = irrun.compare(CNN, Made(CNN, {"Convolution_53:0": change}), inputs_of("cnn"))
    assert not found.agrees
    assert found.first.layer.name == "Convolution_53"
    assert [result.key for result in found.tensors if not result.agrees] == ["Convolution_53:0"]
    assert (found.cause, found.first.cause) == (code, code)
    assert codes(found)[0] == code
    first = found.diagnostics[0]
    assert (first.line, first.file) == (135, str(CNN))
    later = next(result for result in found.tensors if result.layer.name == "MatMul_61")
    assert later.own.metrics.equal
    assert not later.accumulated.metrics.equal


def test_two_faults_are_both_told_in_the_order_of_computation():
    faults = {"MatMul_61:0": lambda x: x * 2, "Relu_50:0": lambda x: x - 1}
    found = irrun.compare(CNN, Made(CNN, faults), inputs_of("cnn"))
    assert [(diagnostic.code, diagnostic.layer.name) for diagnostic in found.diagnostics] == [
        ("N205", "Relu_50"),
        ("N205", "MatMul_61"),
        ("N200", "Result_63"),
    ]
    assert "is the first tensor that differs" in found.diagnostics[0].message
    assert "is the first" not in found.diagnostics[1].message


def test_rounding_of_bf16_is_no_fault_of_a_side_that_computes_in_it():
    def rounded(x):
        return (x.view(np.uint32) + 0x8000 & 0xFFFF0000).astype(np.uint32).view(F32)

    wrong = dict.fromkeys(("Convolution_47:0", "Convolution_53:0", "MatMul_61:0"), rounded)
    runtime = {
        name: Runtime("bf16", "jit", (name, "Add_55")) for name in ("Convolution_47", "Convolution_53", "MatMul_61")
    }
    side = Made(CNN, wrong, runtime=runtime, precise=Made(CNN))
    found = irrun.compare(CNN, side, inputs_of("cnn"))
    assert (found.agrees, codes(found)) == (True, ["N101"])
    assert found.outputs[0].precise.metrics.equal
    assert {result.precision for result in found.tensors} == {"bf16", None}
    assert found.tensors[0].fused == ("Convolution_47", "Add_55")
    unsaid = irrun.compare(CNN, Made(CNN, wrong), inputs_of("cnn"))
    assert not unsaid.agrees
    assert unsaid.first.layer.name == "Convolution_47"


def test_rounding_that_adds_up_is_told_where_no_layer_is_at_fault():
    tolerance = [parse("1e-9,0")]
    wrong = {"MatMul_61:0": lambda x: x * F32(1 + 3e-7)}
    found = irrun.compare(CNN, Made(CNN, wrong, precise=Made(CNN)), inputs_of("cnn"), tolerances=tolerance)
    assert codes(found) == ["N102", "N200"]
    assert (found.agrees, found.first, found.cause) == (False, None, "N200")


def test_a_fusion_that_is_wrong_is_found_where_models_that_end_earlier_are():
    """While somebody looks all is right: the layer is found by cutting."""
    fused = {"Relu_56:0": lambda x: x * 0.5}
    found = irrun.compare(CNN, Made(CNN, fused=fused), inputs_of("cnn"))
    assert not found.agrees
    assert found.watching > 0.001
    assert (found.first.layer.name, found.cause) == ("Relu_56", "N214")


def test_a_fault_that_looking_makes_is_told_as_such():
    class Disturbed(Made):
        def _run(self, steps, watched, until=None):
            kept, self._wrong = self._wrong, self._wrong if watched else {}
            try:
                return super()._run(steps, watched, until)
            finally:
                self._wrong = kept

    found = irrun.compare(CNN, Disturbed(CNN, {"Relu_56:0": lambda x: x * 0.5}), inputs_of("cnn"))
    assert found.cause == "N214"
    assert found.outputs[0].agrees


def test_a_side_that_gives_something_else_each_time():
    found = irrun.compare(CNN, Made(CNN, noise=0.25), inputs_of("cnn"))
    assert found.diagnostics[0].code == "N209"
    little = irrun.compare(CNN, Made(CNN, noise=1e-8), inputs_of("cnn"))
    assert (little.agrees, codes(little)) == (True, ["N105"])


def test_a_side_that_rounds_otherwise_where_less_is_watched_is_not_taken_for_unsteady():
    found = irrun.compare(CNN, Fusing(CNN, {"Convolution_53:0": lambda x: x * 2}), inputs_of("cnn"))
    assert (found.first.key, found.cause) == ("Convolution_53:0", "N205")


class Fusing(Made):
    def observe(self, steps, keys=None):
        found = super().observe(steps)
        for step in found if keys is not None else ():
            step.tensors["Convolution_53:0"] = step.tensors["Convolution_53:0"] + F32(0.1)
        return found


def test_steps_of_a_session_and_runs_apart():
    """A side that loses its state: right in the first step of each session, wrong in the second."""

    class Forgetful(Made):
        def _run(self, steps, watched, until=None):
            return [super(Forgetful, self)._run([inputs], watched, until)[0] for inputs in steps]

    given = inputs_of("stateful-loop")
    steps = [
        given,
        {name: (array * 0.5).astype(array.dtype) if array.dtype == F32 else array for name, array in given.items()},
    ]
    apart = irrun.compare(LOOP, Forgetful(LOOP), steps)
    assert apart.agrees
    assert {result.runs for result in apart.outputs} == {2}
    found = irrun.compare(LOOP, Forgetful(LOOP), steps, consecutive=True)
    assert not found.agrees
    assert found.first.layer.type == "ReadValue"
    assert found.first.own.where.step == 1
    assert found.cause == "N210"
    assert {(result.runs, result.differing) for result in found.outputs} == {(2, 1)}


def remembering(tmp_path):
    """What is read of a variable, times 2, plus the input, which the variable holds next."""
    b = Builder()
    x = b.parameter("x", "f32", (1, 4))
    kept = {"variable_id": "v", "variable_shape": "1,4", "variable_type": "f32"}
    (old,) = b.layer("ReadValue", [b.constant(np.full((1, 4), 0.3, F32))], [("f32", (1, 4))], "opset6", "read", **kept)
    (twice,) = b.layer("Multiply", [old, b.constant(F32([2]))], [("f32", (1, 4))], name="twice")
    (new,) = b.layer("Add", [twice, x], [("f32", (1, 4))], name="new")
    b.layer("Assign", [new], [("f32", (1, 4))], "opset6", **kept)
    b.result(new)
    return b.save(tmp_path)


@pytest.mark.parametrize(("precision", "off"), [("f32", 5e-7), ("bf16", 3e-3)])
def test_a_state_that_is_rounded_is_not_at_fault(tmp_path, precision, off):
    """Whatever type its reader says: nobody sees what a variable holds before it is read."""
    model = remembering(tmp_path)
    wrong = {"read:0": lambda a: a * F32(1 + off), "twice:0": lambda a: a * F32(3)}
    side = Made(model, wrong, runtime={"read": Runtime("f32", "unknown_f32", ("read",))})
    side.precision = precision
    steps = [{"x": np.linspace(1, 2, 4, dtype=F32)[None]}] * 2
    found = irrun.compare(model, side, steps, consecutive=True)
    assert (found.first.layer.name, found.cause) == ("twice", "N205")
    assert [result.layer.name for result in found.tensors if not result.agrees] == ["twice"]


@pytest.mark.parametrize("said", ["i32", "f32"])
@pytest.mark.parametrize(("precision", "cause"), [("f32", "N202"), ("bf16", None)])
def test_what_is_moved_may_be_of_another_type_than_a_device_says(tmp_path, said, precision, cause):
    """One that computes in bf16 says i32 of a Select whose conditions it computes together with it, or f32 where it
    moves constants that it has rounded."""
    g = irrun.build(opset=13)
    x = g.Parameter("f32[1,4]", name="x")
    g.Result(g.Multiply(g.Select(g.Greater(x, F32(0)), x, F32(-3.4028235e38), name="chosen"), F32(0.5)), name="half")
    irrun.write_model(g.model, path := tmp_path / "model.xml")
    largest = F32(-3.3895314e38)  # of bf16
    side = Made(
        path, {"chosen:0": lambda a: np.maximum(a, largest)}, runtime={"chosen": Runtime(said, "jit", ("chosen",))}
    )
    side.precision = precision
    found = irrun.compare(path, side, {"x": F32([[1, -1, 2, -2]])})
    assert found.cause == cause


class Apart(Made):
    """One that rounds otherwise in each run, and shows one tensor in each where all are wanted, else `room` of them."""

    def __init__(self, path, wrong=None, room=9):
        super().__init__(path, wrong)
        self._room, self.watched = room, []

    def observe(self, steps, keys=None):
        self.watched.append(keys)
        (full,) = super().observe(steps)
        names = list(full.tensors) if keys is None else list(keys)
        room = 1 if keys is None else self._room
        runs = {name: number // room for number, name in enumerate(names)}
        tensors = {name: full.tensors[name] * (1 + F32(3e-6) * F32(runs[name])) for name in names}
        return [Observation(full.outputs, tensors, 0.0, (full.outputs,) * max(runs.values()), runs)]


def turning(tmp_path):
    b = Builder()
    x = b.parameter("x", "f32", (4, 3))
    (y,) = b.layer("Multiply", [x, b.constant(F32([2]))], [("f32", (4, 3))], name="y")
    (turned,) = b.layer("Transpose", [y, b.constant(np.int64([1, 0]))], [("f32", (3, 4))], name="turned")
    b.result(turned)
    return b.save(tmp_path), {"x": np.linspace(1, 2, 12, dtype=F32).reshape(4, 3)}


@pytest.mark.parametrize("room", [9, 1])
def test_a_layer_is_not_blamed_for_what_it_has_read_in_another_run(tmp_path, room):
    """All that it needs is watched in one run, where there is room for that."""
    model, inputs = turning(tmp_path)
    side = Apart(model, room=room)
    found = irrun.compare(model, side, inputs)
    turned = next(result for result in found.tensors if result.layer.name == "turned")
    assert (found.agrees, found.first, side.watched) == (True, None, [None, ["turned:0", "y:0"]])
    assert (turned.own.metrics.equal, turned.runs, turned.differing) == (room > 1, 1, 0)


def test_a_layer_that_is_wrong_in_one_run_too_is_at_fault(tmp_path):
    model, inputs = turning(tmp_path)
    found = irrun.compare(model, Apart(model, {"turned:0": lambda a: np.roll(a, 1, -1)}), inputs)
    assert (found.first.key, found.cause, found.first.runs, found.first.differing) == ("turned:0", "N207", 1, 1)
    lost = irrun.compare(model, Apart(model, {"turned:0": lambda a: np.roll(a, 1, -1)}, room=1), inputs)
    assert lost.first.key == "turned:0"


class Twofold(Made):
    """Of several runs, in one of which fewer are above the score."""

    def observe(self, steps, keys=None):
        found = super().observe(steps, keys)
        for observation in found:
            observation.tensors["other:0"] = observation.tensors["other:0"] & np.array([True, True, False, True])
        return found


def test_tensors_of_runs_that_do_not_fit_together_end_no_comparison(tmp_path):
    g = irrun.build(opset=13)
    x = g.Parameter("f32[4]", name="x")
    one, other = (g.NonZero(g.Greater(x, F32(0), name=name), name=f"of {name}") for name in ("one", "other"))
    both = g.Add(one, other, name="both")
    g.Result(g.Multiply(g.Convert(both, destination_type="f32"), F32(0.5), name="half"), name="places")
    irrun.write_model(g.model, path := tmp_path / "model.xml")
    side = Twofold(path, {"half:0": lambda a: a * F32(2)})
    found = irrun.compare(path, side, {"x": F32([1, -1, 2, 3])})
    assert list(found.untapped) == ["both:0"]
    assert found.untapped["both:0"].startswith("the other side's tensors there are of runs that differ: Add-1 C1: ")
    assert {result.layer.name for result in found.tensors if not result.agrees} == {"other", "of other", "half"}


def test_a_state_that_is_wrong_still_is_at_fault(tmp_path):
    model = remembering(tmp_path)
    side = Made(model, {"read:0": lambda a: a + F32(1e-3)})
    found = irrun.compare(model, side, {"x": np.ones((1, 4), F32)})
    assert (found.first.layer.name, found.first.own.metrics.mismatches) == ("read", 4)


def looping(folder, weight, seed=None):
    """Three times tanh(x * weight); with a seed, plus a random number, of which 0 is another one in each run."""
    g = irrun.build(opset=13)
    x = g.Parameter("f32[1,4]", name="x")
    body = g.body()
    inner = body.input(x)
    body.carry(inner, last := body.Tanh(body.Multiply(inner, F32(weight)), name="tanh"))
    body.Result(last)
    body.condition(body.Constant(np.bool_(True)))
    y = g.Loop(np.int64(3), np.bool_(True), body=body)
    if seed is not None:
        limits = F32(0), F32(1)
        y = g.Add(y, g.RandomUniform(np.int64([4]), *limits, output_type="f32", global_seed=seed, op_seed=seed))
    g.Result(y, name="y")
    folder.mkdir()
    irrun.write_model(g.model, folder / "model.xml")
    return folder / "model.xml"


@pytest.mark.parametrize(
    ("weight", "seed", "runs"),
    [
        (1.5, None, 4),  # results, tensors, ours, ours with these tensors
        (1.75, None, 7),  # our own tensors, the other constants and ours again, for causes
        (1.75, 7, 9),  # results and tensors a second time, as there are random numbers
    ],
)
def test_how_often_models_run(weight, seed, runs, tmp_path, monkeypatch):
    ours, theirs = looping(tmp_path / "ours", 1.5, seed), looping(tmp_path / "theirs", weight, seed)
    counts = []
    whole = Session.run

    def counted(*args, **named):
        counts.append(1)
        return whole(*args, **named)

    monkeypatch.setattr(Session, "run", counted)
    found = irrun.compare(ours, str(theirs), {"x": F32([[1, 2, 3, 4]])})
    assert found.agrees is (weight == 1.5)
    assert found.cause == (None if found.agrees else "N212")
    assert len(counts) == runs


class Hiding(Made):
    """One that shows no tensors of some layers."""

    def __init__(self, path, hidden, wrong):
        super().__init__(path, wrong)
        self._hidden = hidden

    def observe(self, steps, keys=None):
        found = super().observe(steps, keys)
        for step in found:
            for key in [key for key in step.tensors if any(name in key for name in self._hidden)]:
                del step.tensors[key]
        return found


def off(part):
    """A change by such a part of each element, up and down in turn."""
    return lambda array: array * (1 + F32(part) * np.resize(F32([1, -1, 1]), array.shape))


def test_layers_between_tensors_that_are_shown_are_judged_as_one():
    """The kernel of a layer that reads another one's rounding cannot tell what it does of its own."""
    hidden = ["Convolution_53", "Add_55"]
    found = irrun.compare(CNN, Hiding(CNN, hidden, {"Relu_56:0": off(3e-5)}), inputs_of("cnn"))
    result = next(result for result in found.tensors if result.layer.name == "Relu_56")
    assert (found.agrees, result.between) == (True, ("Convolution_53", "Add_55"))
    assert 0 < result.own.share < 1
    assert not irrun.compare(CNN, Hiding(CNN, [], {"Relu_56:0": off(3e-5)}), inputs_of("cnn")).agrees

    found = irrun.compare(CNN, Hiding(CNN, hidden, {"Convolution_53:0": lambda x: x * 2}), inputs_of("cnn"))
    assert [result.key for result in found.tensors if not result.agrees] == ["Relu_56:0"]
    assert "one of the 2 layers before it, from `Convolution_53` on may be at fault" in str(found)
    assert str(found).splitlines()[-1].endswith("or one of the 2 layers before it, from `Convolution_53` on")
    assert Comparison.from_dict(json.loads(json.dumps(found.to_dict()))).first.between == found.first.between


def test_behind_layers_that_only_move_elements_a_layer_is_judged_by_itself(tmp_path):
    b = Builder()
    x = b.parameter("x", "f32", (4, 3))
    (turned,) = b.layer("Transpose", [x, b.constant(np.int64([1, 0]))], [("f32", (3, 4))], name="turned")
    (y,) = b.layer("Multiply", [turned, b.constant(F32([2]))], [("f32", (3, 4))], name="y")
    b.result(y)
    model, x = b.save(tmp_path), np.linspace(1, 2, 12, dtype=F32).reshape(4, 3)
    found = irrun.compare(model, Hiding(model, ["turned"], {"y:0": off(3e-5)}), {"x": x})
    assert (found.first.layer.name, found.first.between, found.first.output) == ("y", ("turned",), None)
    assert irrun.compare(model, Hiding(model, ["turned"], {}), {"x": x}).agrees


def test_what_a_variable_holds_is_not_known_where_nobody_has_seen_it_stored(tmp_path):
    model, steps = remembering(tmp_path), [{"x": np.linspace(1, 2, 4, dtype=F32)[None]}] * 2
    second = {"read:0": lambda a: a if (a < 0.5).all() else off(3e-5)(a)}
    found = irrun.compare(model, Hiding(model, ["new", "Assign"], second), steps, consecutive=True)
    read = next(result for result in found.tensors if result.layer.name == "read")
    assert (found.agrees, read.between) == (True, ("new",))
    assert not irrun.compare(model, Made(model, second), steps, consecutive=True).agrees


def test_what_an_iteration_hands_on_is_not_known_where_nobody_has_seen_it():
    key = "Loop_13276/body[1]/MatMul_13265:0"
    wrong = {key: off(3e-5)}
    found = irrun.compare(LOOP, Hiding(LOOP, ["body[0]/Add", "body[0]/Tanh"], wrong), inputs_of("stateful-loop"))
    handed = next(result for result in found.tensors if result.key == key)
    assert handed.agrees
    assert handed.between == ("Add_13266", "Tanh_13267")
    assert irrun.compare(LOOP, Made(LOOP, wrong), inputs_of("stateful-loop")).first.key == key


def test_an_output_behind_layers_that_nobody_has_seen_is_judged_as_it_is_asked_for(tmp_path):
    found = irrun.compare(CNN, Hiding(CNN, ["MatMul_61"], {"Softmax_62:0": off(1e-2)}), inputs_of("cnn"))
    assert [result.output for result in found.tensors if not result.agrees] == ["probabilities"]
    allowed = [parse("0.1,0")]
    assert rejudged(found, allowed).agrees
    side = Hiding(CNN, ["MatMul_61"], {"Softmax_62:0": off(1e-2)})
    assert irrun.compare(CNN, side, inputs_of("cnn"), tolerances=allowed).agrees


class Caching(Made):
    """One that keeps a variable in 8 bits, but for what is `uncompressed`."""

    def __init__(self, path, rounded, wrong=None):
        super().__init__(path, {**(wrong or {}), **rounded})
        self._exact = Made(path, wrong)

    def cached_in(self):
        return "u8", "KEPT=f32"

    def uncompressed(self):
        return self._exact


def test_what_a_side_keeps_in_fewer_bits_hides_no_fault_and_is_none_of_a_layer(tmp_path):
    model, steps = remembering(tmp_path), [{"x": np.linspace(1, 2, 4, dtype=F32)[None]}] * 2
    rounded = {"read:0": off(1e-2)}
    found = irrun.compare(model, Caching(model, rounded), steps, consecutive=True)
    assert (codes(found), found.first) == (["N106", "N200"], None)
    assert found.outputs[0].cache.explains
    assert Comparison.from_dict(json.loads(json.dumps(found.to_dict()))).outputs[0].cache == found.outputs[0].cache
    assert rejudged(found, [parse("1,1")]).agrees
    wrong = {"twice:0": lambda a: a * F32(3)}
    found = irrun.compare(model, Caching(model, rounded, wrong), steps, consecutive=True)
    assert (codes(found), found.first.layer.name) == (["N205", "N200"], "twice")
    assert not found.outputs[0].cache.explains


def choosing(tmp_path):
    """The largest of four numbers, and where it stands."""
    b = Builder()
    x = b.parameter("x", "f32", (1, 4))
    (scores,) = b.layer("Multiply", [x, b.constant(F32([3]))], [("f32", (1, 4))], name="scores")
    given = {"axis": "1", "mode": "max", "sort": "value", "index_element_type": "i64"}
    one = b.constant(np.int64(1))
    ends = [("f32", (1, 1)), ("i64", (1, 1))]
    top = b.layer("TopK", [scores, one], ends, "opset3", "top", ["best", "place"], **given)
    for each in top:
        b.result(each)
    return b.save(tmp_path)


def test_a_choice_that_rounding_has_tipped_is_told_though_its_layer_is_right(tmp_path):
    model = choosing(tmp_path)
    side = Made(model, {"scores:0": lambda a: a * F32([[1, 1, 1, 1 + 3e-7]])})
    found = irrun.compare(model, side, {"x": F32([[0.1, 0.5, 0.2, 0.5]])})
    assert [(d.code, d.layer.name) for d in found.diagnostics] == [("N103", "top"), ("N200", "Result_6")]
    tie, output = found.diagnostics
    assert tie.message.startswith("`top:1` differs, which is explained: a tie")
    assert tie.notes[0].message == "1 of 1 value chosen otherwise"
    assert output.help.startswith("see the tie above")
    assert (found.agrees, found.first) == (False, None)
    again = rejudged(found, [parse("f32")])
    assert [d.code for d in again.diagnostics] == ["N103", "N200"]


def test_a_choice_behind_a_fault_is_no_tie(tmp_path):
    model = choosing(tmp_path)
    side = Made(model, {"scores:0": lambda a: a * F32([[1, 1, 1, 2]])})
    found = irrun.compare(model, side, {"x": F32([[0.1, 0.5, 0.2, 0.5]])})
    assert (found.first.layer.name, "N103" in codes(found)) == ("scores", False)


def test_a_choice_that_nobody_reads_is_not_told(tmp_path):
    """The maximum is right; where it stands is nothing to anybody."""
    b = Builder()
    (scores,) = b.layer("Multiply", [b.parameter("x", "f32", (1, 1, 4)), b.constant(F32([3]))], [("f32", (1, 1, 4))])
    given = {"strides": "2", "dilations": "1", "pads_begin": "0", "pads_end": "0", "kernel": "2", "axis": "0"}
    ends = [("f32", (1, 1, 2)), ("i64", (1, 1, 2))]
    pooled, _ = b.layer("MaxPool", [scores], ends, "opset8", "pool", index_element_type="i64", **given)
    (half,) = b.layer("Multiply", [pooled, b.constant(F32([0.5]))], [("f32", (1, 1, 2))], name="half")
    b.result(half)
    model = b.save(tmp_path)
    wrong = {"pool:1": lambda a: a[..., ::-1], "half:0": lambda a: a * F32(2)}
    found = irrun.compare(model, Made(model, wrong), {"x": F32([[[1, 2, 3, 4]]])})
    assert (found.first.key, len(found.diagnostics)) == ("half:0", 2)
    assert [result.key for result in found.tensors if result.layer.name == "pool"] == ["pool:0"]


def test_bodies_are_looked_into_where_the_other_side_shows_them():
    key = "Loop_13276/body[2]/Tanh_13267:0"
    found = irrun.compare(LOOP, Made(LOOP, {key: lambda x: -x}), inputs_of("stateful-loop"))
    assert found.first.key == key
    assert found.cause == "N205"


def test_tensors_of_another_shape_or_type_are_findings():
    found = irrun.compare(CNN, Reshaped(CNN), inputs_of("cnn"))
    assert found.first.layer.name == "ReduceMean_59"
    assert found.cause in ("N204", "N216")


class Reshaped(Made):
    def __init__(self, path, shape=(-1, 1)):
        super().__init__(path)
        self._shape = shape

    def observe(self, steps, keys=None):
        found = super().observe(steps, keys)
        for step in found:
            step.tensors["ReduceMean_59:0"] = step.tensors["ReduceMean_59:0"].reshape(self._shape)
        return found


def test_axes_of_one_element_are_no_fault_where_converters_have_made_both_models():
    """The name of a scalar that is unsqueezed is often that of the layer that does both."""
    converted = Reshaped(CNN, shape=(2, 1, 16))
    converted.kind = "model"
    found = irrun.compare(CNN, converted, inputs_of("cnn"))
    assert found.agrees
    converted = Reshaped(CNN, shape=(4, 8))
    converted.kind = "model"
    assert irrun.compare(CNN, converted, inputs_of("cnn")).first.layer.name == "ReduceMean_59"


def test_tensors_of_inputs_say_what_the_other_side_was_given(tmp_path):
    dump = irrun.Dump()
    executor = irrun.GraphExecutor(CNN, engine="reference")
    given = inputs_of("cnn")
    results = executor.run({"image": given["image"][:, ::-1].copy()}, observer=dump)
    write_npz(tmp_path / "dump.npz", {**dump, **results, "image:0": given["image"][:, ::-1].copy()})
    found = irrun.compare(CNN, str(tmp_path / "dump.npz"), given)
    assert found.cause == "N213"
    assert found.diagnostics[0].layer.name == "image"


def test_the_search_for_causes_ends(monkeypatch):
    """What tensors show by themselves is told all the same."""
    monkeypatch.setattr("irrun.tools.compare.budget.LEAST_SECONDS", 0.0)
    monkeypatch.setattr("irrun.tools.compare.budget.TIMES_A_RUN", 0.0)
    noise = np.random.default_rng(0).standard_normal(9999)
    wrong = {
        "Convolution_53:0": lambda x: x + x.std() * np.resize(noise, x.shape),
        "Relu_56:0": lambda x: x * 2,
    }
    found = irrun.compare(CNN, Made(CNN, wrong), inputs_of("cnn"))
    first, second, *_ = found.diagnostics
    assert (first.code, second.code) == ("N299", "N205")
    assert first.message.endswith("it is not looked into further, as looking for causes has taken 0 s")


def test_several_inputs_name_the_worst(tmp_path):
    given = inputs_of("cnn")
    small = {"image": given["image"] * F32(0.01)}

    def wrong(x):
        return np.where(x > np.abs(given["image"]).max() / 4, 2 * x, x)

    found = irrun.compare(CNN, Made(CNN, {"Convolution_53:0": wrong}), [small, given, small])
    (output,) = found.outputs
    assert (output.runs, output.differing, output.worst.where.inputs) == (3, 1, "inputs 1")
    assert found.first.own.where.inputs == "inputs 1"


def test_only_outputs_where_nobody_wants_more():
    found = irrun.compare(CNN, Made(CNN, {"MatMul_61:0": lambda x: x * 2}), inputs_of("cnn"), outputs_only=True)
    assert (found.agrees, codes(found), list(found.tensors)) == (False, ["N200"], [])


def test_a_comparison_goes_to_json_and_back():
    found = irrun.compare(CNN, Made(CNN, {"Convolution_53:0": lambda x: x * np.nan}), inputs_of("cnn"))
    again = Comparison.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.to_dict() == found.to_dict()
    assert str(again) == str(found)
    for broken in ({}, {"irrun-compare": 99}, {**found.to_dict(), "outputs": [{}]}, {**found.to_dict(), "tensors": 7}):
        with pytest.raises(ValueError, match="comparison"):
            Comparison.from_dict(broken)


def test_judged_again_by_another_tolerance_without_running():
    found = irrun.compare(CNN, Made(CNN, {"MatMul_61:0": lambda x: x * F32(1.01)}), inputs_of("cnn"))
    assert not found.agrees
    larger = [parse("0.1,0.1"), parse("MatMul_61:0.1,0.1")]
    assert rejudged(found, larger).agrees
    assert not rejudged(found, [parse("0.1,0.1")]).agrees  # the layer stays at fault
    worst = found.outputs[0].worst.metrics
    for atol, holds in ((worst.max_abs * 1.001, True), (worst.max_abs * 0.999, False)):
        assert rejudged(found, [parse(f"{atol},0")]).outputs[0].agrees == holds
    with pytest.raises(ValueError, match="outliers"):
        rejudged(found, [parse("1,1,0.5")])


def test_a_tolerance_for_a_layer_holds_for_it_alone():
    side = Made(CNN, {"MatMul_61:0": lambda x: x * F32(1.01), "Relu_56:0": lambda x: x * F32(1.01)})
    tolerances = [parse("bf16"), parse("MatMul_*:0,0.02")]
    found = irrun.compare(CNN, side, inputs_of("cnn"), tolerances=tolerances)
    assert [result.layer.name for result in found.tensors if not result.agrees] == ["Relu_56"]


def test_the_transformation_that_changes_values_is_named(tmp_path):
    """Graphs as a compiler would leave them, of which the third has another constant, and one cannot be read."""

    class Step:
        def __init__(self, number, name, path):
            self.number, self.name, self.path = number, name, path

    def graph(name, factor, label):
        model = Builder()
        x = model.parameter("x", "f32", (2,))
        (y,) = model.layer("Multiply", [x, model.constant(F32(factor))], [("f32", (2,))], name=label)
        model.result(y)
        (tmp_path / name).mkdir()
        return model.save(tmp_path / name)

    original = graph("original", 3, "times")
    broken = tmp_path / "broken.xml"
    broken.write_text("<net/>")
    steps = [
        Step(0, "Same", graph("a", 3, "times")),
        Step(1, "Compilers", broken),
        Step(2, "Rounding", graph("b", 3.000001, "times")),
        Step(3, "Wrong", graph("c", 4, "scaled")),
        Step(4, "Later", graph("d", 5, "times")),
    ]
    course = Course("inputs", [{"x": F32([1, 2])}])
    model = irrun.read_model(original)
    found = trace(model, steps, course)
    assert (found.changing.name, found.run, found.total, found.layers) == ("Wrong", 3, 5, ("scaled",))
    assert found.metrics.max_abs == pytest.approx(2, rel=1e-5)
    assert trace(model, steps[:3], course) == Trace(3, 2)


def test_a_device_agrees_at_full_precision_and_rounds_at_its_own():
    """OpenVINO's CPU plugin, in whatever type it computes on this processor."""
    given = inputs_of("transformer-block")
    path = SAMPLES / "transformer-block" / "model.xml"
    found = irrun.compare(path, "ov:CPU", given)
    assert found.agrees, str(found)
    assert found.first is None
    assert {result.precision for result in found.tensors} <= {"f32", "bf16", "f16", None}
    assert set(codes(found)) <= {"N101"}


def test_weights_of_another_model_are_named_and_proved(tmp_path):
    model = irrun.read_model(CNN)
    weights = model.layer("MatMul_61").inputs[1].layer
    changed = model.weights.constant(weights).copy()
    changed[3] *= 2
    model.set_constant(weights, changed)
    irrun.write_model(model, tmp_path / "other.xml")
    found = irrun.compare(CNN, str(tmp_path / "other.xml"), inputs_of("cnn"))
    assert (found.first.layer.name, found.cause) == ("MatMul_61", "N212")
    assert "with it our own kernel gives the other side's result" in found.diagnostics[0].notes[1].message
    assert irrun.compare(CNN, str(CNN), inputs_of("cnn")).agrees


@pytest.mark.parametrize(("wrong", "cause"), [(0, "N212"), (0.05, "N299")], ids=["rounded", "and at fault"])
def test_what_the_rounding_of_compressed_weights_does_is_told_though_nobody_has_the_other_ones(wrong, cause, tmp_path):
    """A normalization in both of them, of which the weights of the model have become others."""
    chance = np.random.default_rng(0)
    weights, bias = chance.normal(size=(8, 3, 3, 3)).astype(np.float32), chance.normal(size=(1, 8, 1, 1))
    x = chance.normal(size=(1, 3, 9, 9)).astype(np.float32)
    results = []
    for type in (np.float16, np.float32):
        with irrun.build("m") as g:
            data, held = g.Parameter("f32[1,3,9,9]", name="x"), g.Convert(weights.astype(type), destination_type="f32")
            settings = {name: [0, 0] for name in ("pads_begin", "pads_end")}
            found = g.Convolution(data, held, strides=[1, 1], dilations=[1, 1], **settings)
            g.Result(g.Add(found, g.Convert(bias.astype(type), destination_type="f32"), name="sum"), name="y")
        irrun.write_model(g.model, tmp_path / f"{type.__name__}.xml")
        results.append(irrun.GraphExecutor(g.model).run({"x": x})["y"])
    write_npz(tmp_path / "y.npz", {"sum:0": results[1] + (wrong * chance.normal(size=results[1].shape)).astype("f4")})
    compared = irrun.compare(tmp_path / "float16.xml", str(tmp_path / "y.npz"), {"x": x})
    assert [tensor.cause for tensor in compared.tensors] == [cause]
    assert not compared.agrees


def test_runs_apart_beside_a_recording_of_several_steps(tmp_path):
    """The second run is held against the second step, not again against the first one."""
    given = inputs_of("cnn")
    other = {"image": given["image"] * F32(0.5)}
    executor = irrun.GraphExecutor(CNN, engine="reference")
    results = [executor.run(inputs)["probabilities"] for inputs in (given, other)]
    np.savez(tmp_path / "both.npz", **{f"step{n}/probabilities": array for n, array in enumerate(results)})
    assert irrun.compare(CNN, str(tmp_path / "both.npz"), [given, other]).agrees
    assert not irrun.compare(CNN, str(tmp_path / "both.npz"), [other, given]).agrees
    with pytest.raises(irrun.InputError, match="has 2 steps, but 3 are compared"):
        irrun.compare(CNN, str(tmp_path / "both.npz"), [given, other, given])


def test_a_recording_of_inputs_alone_is_nothing_to_compare_with(tmp_path):
    given = inputs_of("cnn")
    np.savez(tmp_path / "inputs.npz", **{"image:0": given["image"]})
    with pytest.raises(irrun.InputError, match="inputs of the model alone"):
        irrun.compare(CNN, str(tmp_path / "inputs.npz"), given)


def test_results_that_are_held_in_f16_are_judged_as_such(tmp_path):
    given = inputs_of("cnn")
    results = irrun.GraphExecutor(CNN).run(given)
    np.savez(tmp_path / "f16.npz", **{name: array.astype(np.float16) for name, array in results.items()})
    assert irrun.compare(CNN, str(tmp_path / "f16.npz"), given).agrees


def test_how_many_tensors_were_not_recorded(tmp_path):
    model, inputs = turning(tmp_path)
    side = Made(model)
    for count, said in (
        (1, "1 tensor could not be looked at: it was"),
        (2, "2 tensors could not be looked at: they were"),
    ):
        side.untapped = dict.fromkeys([f"{number}:0" for number in range(count)], "it was not recorded")
        assert f"{said} not recorded\n" in str(irrun.compare(model, side, inputs))


def test_a_tolerance_for_nothing_is_refused():
    with pytest.raises(ValueError, match="no such output or layer"):
        irrun.compare(CNN, "engine:numpy", inputs_of("cnn"), tolerances=[parse("nosuch:f16")])


def test_tolerances_are_texts_as_on_the_command_line():
    given = inputs_of("cnn")
    found = irrun.compare(CNN, "precision:f16", given, tolerances=["probabilities:0.5,0.5", "Relu_50:exact"])
    assert found.outputs[0].worst.tolerance == parse("0.5,0.5")[1]
    with pytest.raises(ValueError, match="`f33` is neither ATOL"):
        irrun.compare(CNN, "engine:numpy", given, tolerances=["f33"])


def test_codes_of_eight_bits_are_tipped_by_rounding_at_full_precision_too(tmp_path):
    """A step of the grid is 40 dB below the result, where no grid lets rounding come through alone: 80 dB."""

    def model(name, levels):
        b = Builder()
        x = b.parameter("x", "f32", (200,))
        limits = [b.constant(F32([value])) for value in (-1, 1, -1, 1)]
        (y,) = b.layer("FakeQuantize", [x, *limits], [("f32", (200,))], levels=str(levels))
        (z,) = b.layer("Sigmoid", [y], [("f32", (200,))], name="last")
        b.result(z)
        (tmp_path / name).mkdir()
        return b.save(tmp_path / name)

    def tipped(array):
        return array + F32(0.01) * (np.arange(200) % 7 == 0)

    given = {"x": np.linspace(-1, 1, 200, dtype=F32)}
    for levels, agree in ((256, True), (65536, False)):
        path = model(str(levels), levels)
        (output,) = irrun.compare(path, Made(path, {"last:0": tipped}), given, outputs_only=True).outputs
        assert output.agrees is agree


def test_what_a_device_shows_in_a_narrow_type_is_no_fault_of_who_reads_it_in_a_wide_one(tmp_path):
    """It computes in f32, where nobody sees the digits that f16 has not, and other readers see all of them."""
    with irrun.build("m") as g:
        x = g.Parameter("f32[4]", name="x")
        wide = g.Convert(g.Convert(x, destination_type="f16", name="narrow"), destination_type="f32", name="wide")
        g.Result(g.Add(wide, wide, name="sum"))
        g.Result(g.ReLU(x, name="positive"))
        g.Result(g.ReLU(g.Convert(x, destination_type="f16", name="other")))
    irrun.write_model(g.model, tmp_path / "m.xml")
    given = {"x": F32([1.0001, 2.0003, 0.1, -3.3])}
    options = Options(config={"INFERENCE_PRECISION_HINT": "f32"})
    found = irrun.compare(tmp_path / "m.xml", "ov:CPU", given, options=options)
    assert found.agrees, found.diagnostics
    assert {"narrow:0", "wide:0", "positive:0"} <= {tensor.key for tensor in found.tensors}


def test_inputs_that_a_device_fails_for_are_at_fault_themselves(tmp_path):
    b = Builder()
    x, i, u = b.parameter("x", "f32", (4, 2)), b.parameter("i", "i64", (1,)), b.parameter("u", "f32", (1, 2))
    given = [x, i, u, b.constant(np.array(0))]
    b.result(b.layer("ScatterUpdate", given, [("f32", (4, 2))], version="opset3", name="scatter")[0])
    arrays = {"x": np.ones((4, 2), F32), "i": np.array([9]), "u": np.ones((1, 2), F32)}
    path = b.save(tmp_path)
    with pytest.raises(irrun.ExecutionError, match=r"`indices\[0\]` is 9, outside \[0, 4\)"):
        irrun.compare(path, "ov:CPU", arrays)
    layer = irrun.read_model(path).layer("scatter")
    assert named_in("Node scatter.0 of type ScatterUpdate\nit failed", {"scatter": layer, "it": layer}) is layer


def test_a_refusal_that_is_known_is_told_as_such(tmp_path):
    b = Builder()
    x = b.parameter("x", "f32", (2, 3))
    (y,) = b.layer("ReduceSum", [x, b.constant(np.zeros(0, np.int64))], [("f32", (2, 3))], name="sum of nothing")
    b.result(y)
    given = {"x": np.ones((2, 3), F32)}
    with pytest.raises(SideFailed) as failed:
        irrun.compare(b.save(tmp_path), "ov:CPU", given)
    (known,) = failed.value.known
    assert known.startswith("known: ReduceSum-1 refuses axes without an element, which concerns `sum of nothing` at")
    assert known in str(failed.value)


def test_a_result_of_another_shape_may_be_a_known_deviation(tmp_path):
    b = Builder()
    ends = [b.parameter(name, "i32", ()) for name in ("start", "stop", "step")]
    (y,) = b.layer("Range", ends, [("i32", (-1,))], name="none")
    b.result(y)
    given = {"start": np.int32(5), "stop": np.int32(3), "step": np.int32(1)}
    found = irrun.compare(b.save(tmp_path), "ov:CPU", given)
    assert [d.message for d in found.diagnostics if d.code == "N104"] == [
        "`none:0` differs, which is explained: a known deviation: gives one number"
    ]


def test_a_deviation_of_what_a_device_computes_while_it_compiles(tmp_path):
    b = Builder()
    (y,) = b.layer("Atanh", [b.constant(np.array([1, 0], np.int64))], [("i64", (2,))], "opset4", name="folded")
    b.result(y)
    (z,) = b.layer("Atanh", [b.constant(np.array([0], np.int64))], [("i64", (1,))], "opset4", name="right")
    b.result(z)
    found = irrun.compare(b.save(tmp_path), "ov:CPU", {})
    (said,) = [d for d in found.diagnostics if d.code == "N104"]
    assert said.message == (
        "Atanh `folded`, which is computed of constants: a known deviation: hands i64 out through i32"
    )
    assert "shows it to nobody" in said.notes[1].message


def test_a_deviation_on_a_condition_that_only_people_can_judge_is_a_note(tmp_path):
    b = Builder()
    rois = np.array([[0, 0.1, 0.1, 0.95, 0.98], [0, 0.2, 0.2, 6.5, 6.5]], F32)
    given = {"x": np.random.default_rng(5).standard_normal((1, 4, 7, 7)).astype(F32), "rois": rois}
    data = {"output_dim": "1", "spatial_bins_x": "2", "spatial_bins_y": "2", "group_size": "2", "spatial_scale": "1.0"}
    inputs = [b.parameter("x", "f32", (1, 4, 7, 7)), b.parameter("rois", "f32", (2, 5))]
    (y,) = b.layer("PSROIPooling", inputs, [("f32", (2, 1, 2, 2))], name="pooled", mode="bilinear", **data)
    b.result(y)
    model = b.save(tmp_path)
    side = Made(model, {"pooled:0": lambda a: a + np.arange(8, dtype=F32).reshape(a.shape) ** 2})
    side.name = "ov:CPU"
    found = irrun.compare(model, side, given)
    (said,) = [d for d in found.diagnostics if "`pooled:0`" in d.message]
    assert said.code != "N104"
    assert any(note.message.startswith("a known deviation where a region ends between") for note in said.notes)


def test_a_deviation_of_a_layer_that_is_fused_with_the_wrong_one_is_a_note(tmp_path):
    b = Builder()
    low, high, least, most = (b.constant(F32([[limit]])) for limit in (-64, 191, -128, 127))
    x = b.parameter("x", "f32", (1, 2))
    (codes,) = b.layer("FakeQuantize", [x, low, high, low, high], [("f32", (1, 2))], levels="256")
    axes = b.constant(np.array([1]))
    (largest,) = b.layer("ReduceMax", [codes, axes], [("f32", (1, 1))], name="largest", keep_dims="true")
    (again,) = b.layer("FakeQuantize", [largest, low, high, least, most], [("f32", (1, 1))], levels="256")
    (y,) = b.layer("Convert", [again], [("i8", (1, 1))], name="y", destination_type="i8")
    b.result(y)
    model = b.save(tmp_path)
    side = Made(model, fused={"y:0": lambda a: a - 57}, runtime={"y": Runtime("u8", fused=("largest", "y"))})
    side.name = "ov:CPU"
    (said, _) = irrun.compare(model, side, {"x": F32([[120, 120]])}).diagnostics
    assert said.code == "N214"
    known = [note.message for note in said.notes if "a known deviation" in note.message]
    assert known[0].startswith(
        "a known deviation of ReduceMax `largest` where a FakeQuantize makes i8 of the result: takes 127 for codes"
    )
