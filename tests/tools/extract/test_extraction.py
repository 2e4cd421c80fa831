"""Parts of models: what is in them, what goes in and out, and that they make of it what the whole did."""

import doctest
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from differential.generate import case
from differential.graph import save
from ir_builder import Model

import irrun
from irrun.diagnostics import InputError, IRError
from irrun.run.arrays import read_npz
from irrun.tools.extract.places import find_home, find_place
from tools.extract.properties import check_parts

SAMPLES = Path(__file__).parents[3] / "samples"
CNN, LOOP = SAMPLES / "cnn" / "model.xml", SAMPLES / "stateful-loop" / "model.xml"
GIVEN = read_npz(LOOP.with_name("inputs.npz"))


def types(model):
    return [layer.type for layer in model.graph.layers]


@pytest.mark.parametrize("name", sorted(path.parent.name for path in SAMPLES.glob("*/model.xml")))
def test_any_part_of_a_sample_is_a_model_that_makes_what_the_whole_did(name):
    inputs = read_npz(SAMPLES / name / "inputs.npz")
    assert check_parts(irrun.read_model(SAMPLES / name / "model.xml"), inputs, np.random.default_rng(3), 4)


def test_any_part_of_a_random_model_is_a_model_that_makes_what_the_whole_did(tmp_path):
    count = 0
    for number in range(24):
        found = case(5, number)
        model = irrun.read_model(save(found, tmp_path))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                irrun.GraphExecutor(model, engine="reference").run(found.feeds[0])
            except IRError:  # some are to fail
                continue
        count += check_parts(model, found.feeds[0], np.random.default_rng(number), 3)
    assert count > 30


def test_a_part_has_the_layers_between_two_and_only_their_weights(tmp_path):
    part = irrun.extract(CNN, begin=["Convolution_53"], end=["Relu_56"])
    assert types(part.model) == ["Const", "Convolution", "Const", "Add", "ReLU", "Parameter", "Result"]
    assert part.inputs is part.outputs is None
    irrun.write_model(part.model, tmp_path / "part.xml")
    assert (tmp_path / "part.bin").stat().st_size == 4 * (16 * 8 * 3 * 3 + 16)


def test_a_tensor_to_begin_with_is_an_input():
    part = irrun.extract(CNN, begin=["Add_55:0"], end=["MaxPool_57"])
    assert types(part.model) == ["ReLU", "MaxPool", "Parameter", "Result"]
    assert str(part.model.inputs[0]) == "f32[Add_55.0, 16, 8, 8]"


def test_tensors_go_by_their_names():
    with irrun.build() as g:
        x = g.Parameter("f32[2, 4]", name="x")
        left, right = g.Split(x, np.int64(1), num_splits=2, name="cut")
        g.Result(g.Add(g.ReLU(left, name="r"), right, name="sum"), name="o")
    model = g.model
    for layer in model.graph.layers:
        for value in layer.outputs:
            value.port.names = {("cut", 0): ("left", "first:0"), ("cut", 1): ("right", "r")}.get(
                (layer.name, value.index), value.port.names
            )
    data = {"x": np.float32([[-1, 2, 3, 4], [5, -6, 7, 8]])}
    for name in ("left", "first:0"):
        part = irrun.extract(model, begin=[name], end=["r"], inputs=data)
        assert types(part.model) == ["ReLU", "Parameter", "Result"]
        assert part.outputs["r"].tolist() == [[0, 2], [5, 0]]
    part = irrun.extract(model, end=["right"], inputs=data)
    assert next(iter(part.outputs.values())).tolist() == [[3, 4], [7, 8]]
    with pytest.raises(ValueError, match="did you mean `right`"):
        irrun.extract(model, end=["rigth"])


def test_sizes_are_those_of_the_run_unless_they_are_to_stay_open():
    inputs = read_npz(CNN.with_name("inputs.npz"))
    assert irrun.extract(CNN, end=["Relu_50"], inputs=inputs).model.inputs[0].shape == (2, 3, 16, 16)
    kept = irrun.extract(CNN, end=["Relu_50"], inputs=inputs, dynamic=True)
    assert kept.model.inputs[0].shape == ("image.0", 3, 16, 16)
    assert kept.outputs["Relu_50"].shape == (2, 8, 16, 16)


def test_sizes_of_which_the_one_that_is_read_is_known_are_inputs():
    with irrun.build("sizes") as g:
        x = g.Parameter("f32[?, 3]", name="x")
        sizes = g.ShapeOf(x, name="sizes")
        last = g.Gather(sizes, np.int64(1), np.int64(0), name="last")
        g.Result(g.Range(np.int64(0), last, np.int64(1), output_type="i64"), name="y")
    part = irrun.extract(g.model, around="last", distance=0, inputs=np.zeros((2, 3), np.float32))
    assert [found.tolist() for found in (*part.inputs.values(), *part.outputs.values())] == [[2, 3], 3]


def test_what_lies_around_a_layer_goes_as_far_as_it_is_said():
    near = irrun.extract(CNN, around="Relu_50", distance=0)
    assert types(near.model) == ["ReLU", "Parameter", "Result"]
    far = irrun.extract(CNN, around="Relu_50", distance=1)
    assert types(far.model) == ["Const", "Add", "ReLU", "MaxPool", "Parameter", "Result"]


def test_an_iteration_of_a_body_is_a_model_with_what_it_was_given():
    parts = [irrun.extract(LOOP, body=f"Loop_13276[{number}]", inputs=GIVEN) for number in range(3)]
    history = irrun.GraphExecutor(LOOP, engine="reference").run(GIVEN)["history"]
    for number, part in enumerate(parts):
        states = [array for array in part.outputs.values() if array.shape == (1, 4)]
        assert states[0].tolist() == history[number : number + 1].tolist()
        assert types(part.model).count("MatMul") == 1
    carried = [array.tolist() for array in parts[1].inputs.values()]
    assert history[:1].tolist() in carried


def test_the_only_iteration_of_a_loop_is_given_its_number(tmp_path):
    """Which is known before the run, and so is all that is computed of it."""
    with irrun.build() as g:
        x = g.Parameter("f32[2]", name="x")
        loop = g.body()
        taken, number = loop.input(x), loop.Convert(loop.iteration(), destination_type="f32", name="number")
        loop.condition(loop.Constant(np.array(True)))
        loop.Result(loop.Add(taken, number, name="sum"))
        g.Result(g.op("Loop", np.int64(1), np.array(True), body=loop, name="once"))
    given = {"x": np.float32([1, 2])}
    for wish in ({"body": "once[0]"}, {"begin": ["once[0]/sum"]}):
        part = irrun.extract(g.model, inputs=given, **wish)
        assert sorted(array.tolist() for array in part.inputs.values() if array.ndim == 0) == [0]
        assert [1, 2] in [array.tolist() for array in part.outputs.values()]


def test_a_body_of_which_all_is_known_before_is_refused_as_that():
    """No other inputs would help."""
    with irrun.build("m", opset=13) as g:
        then, other = g.body(), g.body()
        then.Result(then.LogicalNot(then.Constant(np.array(True))))
        other.Result(other.Constant(np.array(True)))
        g.Result(g.op("If", g.Parameter("boolean[]", name="c"), then_body=then, else_body=other, name="choice"))
    told = "does not come by choice/then_body.*: all of it is known before, so no run computes any of it"
    with pytest.raises(irrun.InputError, match=told):
        irrun.extract(g.model, inputs={"c": np.array(True)}, body="choice/then_body")


def test_an_iteration_that_was_not_run_is_refused():
    for number in (3, -4):
        told = rf"does not come by Loop_13276/body\[{number}\]: it runs body of `Loop_13276` 3 times, \[0\] to \[2\]"
        with pytest.raises(InputError, match=told):
            irrun.extract(LOOP, body=f"Loop_13276[{number}]", inputs=GIVEN)


def test_iterations_are_counted_from_the_last_one_too():
    for number in range(3):
        one, other = (irrun.extract(LOOP, body=f"Loop_13276[{n}]", inputs=GIVEN).outputs for n in (number, number - 3))
        assert [array.tolist() for array in one.values()] == [array.tolist() for array in other.values()]


def test_a_branch_that_is_not_taken_is_said_with_the_one_that_is():
    with irrun.build() as g:
        x = g.Parameter("f32[2]", name="x")
        then, otherwise = g.body(), g.body()
        then.Result(then.Exp(x))
        otherwise.Result(otherwise.Abs(x))
        g.Result(g.If(g.Greater(g.ReduceSum(x, 0), 0.0), then_body=then, else_body=otherwise, name="choice"))
    told = r"choice/else_body\[0\]: it takes then_body of `choice`; give inputs that take else_body"
    with pytest.raises(InputError, match=told):
        irrun.extract(g.model, body="choice/else_body", inputs=[np.ones(2, np.float32)])


def test_a_variable_at_the_border_is_an_input():
    part = irrun.extract(LOOP, end=["Loop_13276:0"], inputs=GIVEN)
    assert not part.model.variables
    assert part.inputs["ReadValue_13274"].tolist() == [[0, 0, 0, 0]]


def test_branches_and_bodies_in_each_other_are_found_by_their_texts():
    with irrun.build() as g:
        x = g.Parameter("f32[2]", name="x")
        then, other = g.body(), g.body()
        loop = then.body()
        once = loop.input(x)
        again = loop.Tanh(once, name="deep")
        loop.carry(once, again)
        loop.condition(loop.Constant(np.array(True)))
        loop.Result(again)
        then.Result(then.op("Loop", np.int64(3), np.array(True), body=loop, name="a/b[1]"))
        other.Result(other.Negative(x))
        total = g.ReduceSum(x, np.int64([0]))
        g.Result(g.op("If", g.Greater(total, np.float32(0)), then_body=then, else_body=other, name="choice"))
    given = {"x": np.float32([0.5, 1])}
    part = irrun.extract(g.model, body="choice/then_body/a/b[1][2]", inputs=given)
    (found,) = [array for array in part.outputs.values() if array.dtype == np.float32]
    assert found.tolist() == np.tanh(np.tanh(np.tanh(given["x"]))).tolist()
    deep = irrun.extract(g.model, end=["choice/then_body/a/b[1][0]/deep"], inputs=given)
    assert [array.tolist() for array in deep.outputs.values()] == [np.tanh(given["x"]).tolist()]
    with pytest.raises(InputError, match="else_body"):
        irrun.extract(g.model, body="choice/else_body", inputs=given)


def test_layers_of_one_name_are_told_apart_by_their_ids(tmp_path):
    made = Model()
    x = made.parameter("x", "f32", (2,))
    first = made.layer("ReLU", [x], [("f32", (2,))], name="same")[0]
    second = made.layer("Negative", [first], [("f32", (2,))], name="same")[0]
    made.result(second)
    model = irrun.read_model(made.save(tmp_path))
    with pytest.raises(ValueError, match=r"the name of 2 layers: say which, as `same#\d`, `same#\d`"):
        irrun.extract(model, end=["same"])
    named = f"same#{next(layer.id for layer in model.graph.layers if layer.type == 'ReLU')}"
    part = irrun.extract(model, begin=[f"{named}:0"], inputs={"x": np.float32([1, -1])})
    assert part.outputs[0].tolist() == [-1, 0]


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"end": ["Relu_51"]}, "there is no layer or tensor `Relu_51` in the model; did you mean `Relu_5"),
        ({"end": ["Relu_50:1"]}, "has no output 1: they go from 0 to 0"),
        ({"body": "Relu_50[0]"}, "is no body of the model; layers with bodies: none"),
        ({"begin": ["Relu_56"], "end": ["Relu_50"]}, "no way leads from `Relu_56` to `Relu_50`"),
        ({"around": "image", "distance": 0}, "there is no layer to compute within 0 of `image`"),
        ({"around": "image", "end": ["Relu_50"]}, "has no other begin or end"),
    ],
)
def test_what_is_no_part_is_refused(wish, message):
    with pytest.raises(ValueError, match=message):
        irrun.extract(CNN, **wish)


def test_places_are_those_of_keys():
    model = irrun.read_model(LOOP)
    place = find_place(model, "Loop_13276/body[2]/Tanh_13267:0")
    assert (str(place.home), place.layer.name, place.port) == ("Loop_13276/body[2]", "Tanh_13267", 0)
    assert str(find_home(model, "Loop_13276[1]")) == "Loop_13276/body[1]"
    with pytest.raises(ValueError, match=r"say in which iteration, as Loop_13276\[0\]/Tanh_13267"):
        find_place(model, "Tanh_13267")


def test_the_examples_are_true(monkeypatch):
    monkeypatch.chdir(SAMPLES.parent)
    module = import_module("irrun.tools.extract.extraction")
    assert doctest.testmod(module).failed == 0
