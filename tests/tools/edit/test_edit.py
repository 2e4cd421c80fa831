"""Edits of models: what each verb does to results, shapes, types and names, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import irrun
from irrun.diagnostics import IRError
from irrun.ir.writer import model_bytes
from irrun.spec.dtypes import numpy_dtype
from irrun.tools.edit import EditError, Step, edit
from irrun.tools.edit.verification import verify
from irrun.tools.strip.stripping import strip

SAMPLES = Path(__file__).parents[3] / "samples"
CNN = SAMPLES / "cnn" / "model.xml"


@pytest.fixture
def model():
    return irrun.read_model(CNN)


@pytest.fixture(scope="module")
def inputs():
    return irrun.GraphExecutor(CNN).random_inputs(7)


def edited(model, *steps):
    edit(model, [Step(*step) for step in steps])
    report = irrun.validate(model)
    assert not report.diagnostics, report.diagnostics[0]
    return model


def run(model, inputs):
    return irrun.GraphExecutor(model).run(inputs)


def test_reshape_declares_sizes_everywhere(model):
    edited(model, ("reshape", "image=4,3,16,16"))
    assert model.outputs[0].shape == (4, 10)
    assert model.layer("Relu_50").outputs[0].port.dims == (4, 8, 16, 16)


def test_reshape_of_what_no_layer_takes_says_which_layer(model):
    with pytest.raises(IRError, match="Convolution"):
        edit(model, [Step("reshape", "image=1,4,16,16")])


def test_reshape_of_an_unknown_input_lists_the_inputs(model):
    with pytest.raises(EditError, match=r"--reshape picture=1,3,16,16: `picture` is no input .* `image`"):
        edit(model, [Step("reshape", "picture=1,3,16,16")])


def test_weights_are_halved_and_back(model, inputs):
    expected = run(model, inputs)["probabilities"]
    size = sum(model.weights.check(layer).size for layer in model.graph.layers if layer.type == "Const")
    half = edited(model, ("weights", "f16"))
    assert sum(half.weights.check(layer).size for layer in half.graph.layers if layer.type == "Const") < 0.6 * size
    found = run(half, inputs)["probabilities"]
    assert found.dtype == np.float32
    assert 0 < np.abs(found - expected).max() < 1e-2
    whole = edited(half, ("weights", "f32"))
    assert {layer.attributes["element_type"] for layer in whole.graph.layers if layer.type == "Const"} == {"f32", "i64"}
    np.testing.assert_allclose(run(whole, inputs)["probabilities"], found, rtol=1e-5)


class Unsearched(list):
    """Layers that are not looked for one by one, which takes the time of all of them for each."""

    def __contains__(self, _):
        raise AssertionError

    def remove(self, _):
        raise AssertionError


@pytest.mark.parametrize(("step", "layers"), [(("dedup", ""), 6), (("weights", "f16"), 11)], ids=lambda v: str(v))
def test_edits_of_many_constants_take_time_in_proportion_to_them(step, layers):
    with irrun.build("m") as g:
        x = g.Parameter("f32[32]", name="x")
        for _ in range(3):
            x = g.Add(x, g.Constant(np.ones(32, np.float32)))
        g.Result(x, name="y")
    g.model.graph.layers = Unsearched(g.model.graph.layers)
    assert len(edited(g.model, step).graph.layers) == layers


def test_weights_that_f16_cannot_hold_stay():
    with irrun.build("m") as g:
        x = g.Parameter("f32[2,40]", name="x")
        g.Result(g.Add(x, np.full((1, 40), 1e6, np.float32)))
    model = edited(g.model, ("weights", "f16"))
    assert [layer.attributes["element_type"] for layer in model.graph.layers if layer.type == "Const"] == ["f32"]


@pytest.mark.filterwarnings("error")
def test_weights_of_which_none_is_finite_are_halved():
    with irrun.build("m") as g:
        g.Result(g.Add(g.Parameter("f32[40]", name="x"), np.full(40, np.inf, np.float32)))
    model = edited(g.model, ("weights", "f16"))
    assert [layer.attributes["element_type"] for layer in model.graph.layers if layer.type == "Const"] == ["f16"]


def test_preprocessing_is_what_numpy_does(model, inputs):
    expected = run(model, inputs)["probabilities"]
    mean, scale = np.array([1.0, 2, 3], np.float32), np.array([4.0, 5, 6], np.float32)
    steps = [("scale", "4,5,6"), ("mean", "image=1,2,3"), ("reverse-channels", ""), ("layout", "NHWC")]
    changed = edited(irrun.read_model(CNN), *steps)
    image = inputs["image"].transpose(0, 2, 3, 1) * scale + mean
    found = run(changed, {"image": np.ascontiguousarray(image[..., ::-1])})["probabilities"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_input_type_takes_bytes(model):
    changed = edited(model, ("input-type", "u8"), ("mean", "127.5"), ("scale", "255"))
    image = np.random.default_rng(0).integers(0, 256, (1, 3, 16, 16)).astype(np.uint8)
    before = run(irrun.read_model(CNN), {"image": (image.astype(np.float32) - 127.5) / 255})
    np.testing.assert_allclose(run(changed, {"image": image})["probabilities"], before["probabilities"], rtol=1e-5)


@pytest.mark.parametrize(
    ("verb", "given", "says"),
    [
        ("mean", "1,2", "2 means for the 3 channels"),
        ("scale", "0", "a scale of 0"),
        ("scale", "2,1e-46,1", "a scale of 1e-46 is 0 in f32, the type of input `image`"),
        ("scale", "1e39", "a scale of 1e\\+39 is inf in f32"),
        ("mean", "-1e39", "a mean of -1e\\+39 is -inf in f32"),
        ("mean", "one", "`one` is no list of numbers"),
        ("layout", "NHW", "NHW has 3 axes"),
        ("layout", "NHWC->NCH", "is no layout"),
        ("input-type", "u88", "is no element type"),
    ],
)
def test_preprocessing_that_cannot_be(model, verb, given, says):
    with pytest.raises(EditError, match=says):
        edit(model, [Step(verb, given)])


def test_cut_parts_compute_what_the_whole_does(model, inputs):
    expected = run(model, inputs)["probabilities"]
    first = edited(irrun.read_model(CNN), ("cut-to", "Relu_50"))
    second = edited(irrun.read_model(CNN), ("cut-from", "Relu_50"))
    assert second.inputs[0].name == "Relu_50"
    middle = run(first, inputs)["Relu_50"]
    np.testing.assert_allclose(run(second, {"Relu_50": middle})["probabilities"], expected, rtol=1e-5)


def test_several_ends_are_outputs_in_order(model):
    edited(model, ("cut-to", "Relu_56"), ("cut-to", "Relu_50"))
    assert [output.name for output in model.outputs] == ["Relu_56", "Relu_50"]


def test_cut_keeps_the_variables_that_are_read():
    model = irrun.read_model(SAMPLES / "stateful-loop" / "model.xml")
    kept = {layer.type for layer in model.graph.layers}
    output = model.graph.results[0].inputs[0]
    edit(model, [Step("cut-to", f"{output.layer.name}:{output.index}")])
    assert ("Assign" in kept) == ("Assign" in {layer.type for layer in model.graph.layers})
    assert irrun.validate(model).ok


def test_an_added_output_is_the_tensor(model, inputs):
    edited(model, ("add-output", "Relu_50"))
    found = run(model, inputs)
    assert list(found) == ["probabilities", "Relu_50"]
    with pytest.raises(EditError, match="is an output of the model already"):
        edit(model, [Step("add-output", "Relu_50")])


def test_names_that_are_not_there_are_told_with_those_that_are(model):
    with pytest.raises(EditError, match=r"--cut-to Relu_5: `Relu_5` is no tensor of the model; did you mean `Relu_5"):
        edit(model, [Step("cut-to", "Relu_5")])


def test_a_layer_of_several_outputs_is_no_tensor_but_has_some():
    with irrun.build() as g:
        x = g.Parameter("f32[4]", name="x")
        for half in g.Split(x, 0, num_splits=2, name="halves"):
            g.Result(half)
    with pytest.raises(EditError, match=r"`halves` is the name of 2 tensors: say which, as `halves:0`, `halves:1`$"):
        edit(g.model, [Step("cut-to", "halves")])


def test_rename_of_inputs_outputs_and_layers(model, inputs):
    expected = run(model, inputs)["probabilities"]
    edited(model, ("rename", "image=pixels"), ("rename", "probabilities=p"), ("rename", "Relu_50=first"))
    found = run(model, {"pixels": inputs["image"]})
    np.testing.assert_array_equal(found["p"], expected)
    assert model.layer("first").type == "ReLU"
    with pytest.raises(EditError, match="there is no layer or tensor `nobody`"):
        edit(model, [Step("rename", "nobody=somebody")])


def test_precise_marks_layers(model):
    edited(model, ("precise", "Relu_50"))
    content, weights = model_bytes(model)
    assert irrun.read_model(content, weights).layer("Relu_50").precise


def test_strip_leaves_inputs_and_outputs(model, inputs):
    expected = run(model, inputs)["probabilities"]
    edited(model, ("strip", "rt_info,names"))
    assert model.graph.rt_info is None
    assert [layer.name for layer in model.graph.layers if "Relu_" in layer.name] == []
    np.testing.assert_array_equal(run(model, inputs)["probabilities"], expected)
    with pytest.raises(EditError, match="`colour` is not one of rt_info, names"):
        edit(model, [Step("strip", "colour")])


@pytest.mark.parametrize("type", ["f16", "bf16", "f32"])
def test_verification_sees_what_is_preprocessed_otherwise(type, tmp_path):
    with irrun.build("m") as g:
        x = g.Parameter(f"{type}[2,3,4,5]", name="x")
        g.Result(g.Multiply(x, x, name="y"))
    irrun.write_model(g.model, tmp_path / "m.xml")
    data = {"x": np.random.default_rng(1).standard_normal((2, 3, 4, 5), np.float32).astype(numpy_dtype(type))}
    steps = [Step("layout", "NHWC"), Step("mean", "1,2,3"), Step("scale", "0.3"), Step("reverse-channels")]
    model = irrun.read_model(tmp_path / "m.xml")
    done = edit(model, steps)
    assert verify(tmp_path / "m.xml", None, model, data, 1e-5, done).ok
    for wrong in (steps[:3], [*steps[:2], Step("scale", "0.4")], [steps[0], Step("mean", "3,2,1"), *steps[2:]]):
        (said,) = edit(irrun.read_model(tmp_path / "m.xml"), wrong).preprocessings
        said = replace(said, parameter=model.graph.parameters[0])
        assert not verify(tmp_path / "m.xml", None, model, data, 1e-5, replace(done, preprocessings=[said])).ok


def twice_named():
    """Two outputs, and the layers of these, have one name, and two branches a layer of one name."""
    with irrun.build("m") as g:
        x = g.Parameter("f32[2,4]", name="x")
        one, other = g.Split(x, 1, num_splits=2)
        then, otherwise = g.body(), g.body()
        with then:
            then.Result(then.ReLU(one, name="m"))
        with otherwise:
            otherwise.Result(otherwise.Exp(one, name="m"))
        g.Result(g.If(g.Greater(g.ReduceSum(x, [0, 1]), 0.0), then_body=then, else_body=otherwise, name="choice"))
        for value in (one, other):
            g.Result(value)
    for result in g.model.graph.results[1:]:
        result.name = "res"
        g.model.set_attribute(result, "output_names", "res")
    return g.model


def test_what_is_printed_of_names_that_are_there_twice_is_taken():
    model = twice_named()
    _, _, key = [info.name for info in model.outputs]
    assert key == "res_1"
    last = model.graph.results[2]
    assert irrun.extract(model, end=["res_1"]).model.outputs[0].shape == (2, 2)
    with pytest.raises(EditError, match=rf"say which, as `res#\d+`, `res#{last.id}`"):
        edit(model, [Step("rename", "res=other")])
    with pytest.raises(EditError, match=r"say which, as `choice/then_body/m`, `choice/else_body/m`"):
        edit(model, [Step("precise", "m")])
    edit(model, [Step("rename", f"res#{last.id}=last"), Step("rename", "res_1=second")])
    assert (last.name, [info.name for info in model.outputs][1:]) == ("last", ["res", "second"])
    edit(model, [Step("precise", "choice/else_body/m"), Step("precise", "choice/then_body[0]/m")])
    assert [layer.type for layer in model.graph.walk() if layer.precise] == ["ReLU", "Exp"]
    model = twice_named()
    value = model.graph.results[2].inputs[0]
    edit(model, [Step("cut-to", "res_1")])
    assert [result.inputs[0] for result in model.graph.results] == [value]
    with pytest.raises(EditError, match="there is no layer or tensor `res_1`"):
        edit(model, [Step("rename", "res_1=other")])


def test_names_of_outputs_have_commas(tmp_path):
    with irrun.build("m") as g:
        g.Result(g.ReLU(g.Parameter("f32[2]", name="x"), name="y"))
    g.model.set_attribute(g.model.graph.results[0], "output_names", "a\\, b,c")
    irrun.write_model(g.model, tmp_path / "m.xml")
    model = irrun.read_model(tmp_path / "m.xml")
    assert model.outputs[0].names[:2] == ("a, b", "c")
    edit(model, [Step("rename", "c=d, e")])
    assert model.outputs[0].names[:2] == ("a, b", "d, e")
    assert len(strip(model).model.outputs[0].names) == len(model.outputs[0].names)


def constants(model):
    return [layer for layer in model.graph.layers if layer.type == "Const"]


def test_fold_makes_constants_of_sizes_that_are_known():
    with irrun.build("m") as g:
        x = g.Parameter("f32[batch,3,4]", name="x")
        size = g.ShapeOf(x, name="size")
        rows = g.Concat(g.Gather(size, [0], 0), np.int64([-1]), axis=0)
        g.Result(g.Reshape(x, rows, special_zero=False), name="y")
        g.Result(g.Gather(size, [1, 2], 0), name="inner")
    model = edited(g.model, ("fold",))
    assert [layer.type for layer in model.graph.layers if layer.type == "ShapeOf"] == ["ShapeOf"]
    assert model.graph.results[1].inputs[0].layer.type == "Const"
    edited(model, ("reshape", "x=2,3,4"), ("fold",))
    assert (
        sorted(layer.type for layer in model.graph.layers) == ["Const"] * 2 + ["Parameter", "Reshape"] + ["Result"] * 2
    )
    found = run(model, {"x": np.zeros((2, 3, 4), np.float32)})
    assert (found["y"].shape, found["inner"].tolist()) == ((2, 12), [3, 4])


def test_fold_and_dedup_leave_the_results():
    with irrun.build("m") as g:
        x = g.Parameter("f32[2,3]", name="x")
        one, same = g.Constant(np.float32([1, 2, 3])), g.Constant(np.float32([1, 2, 3]))
        g.Result(g.Add(g.Multiply(x, one), g.Add(same, g.Multiply(one, same))))
    model = edited(g.model, ("dedup",))
    assert len(constants(model)) == 1
    edited(model, ("fold",))
    assert [layer.type for layer in model.graph.layers if layer.type not in ("Const", "Parameter", "Result")] == [
        "Multiply",
        "Add",
    ]
    found = next(iter(run(model, {"x": np.ones((2, 3), np.float32)}).values()))
    np.testing.assert_array_equal(found, [[3, 8, 15]] * 2)


def test_fold_keeps_weights_small():
    with irrun.build("m") as g:
        x = g.Parameter("f32[1,64]", name="x")
        packed = g.Constant(np.zeros((64, 64), np.int8))
        g.Result(g.MatMul(x, g.Convert(packed, destination_type="f32")))
    model = edited(g.model, ("fold",))
    assert constants(model)[0].attributes["element_type"] == "i8"


def folded(give):
    """A model whose MatMuls read what `give` makes of constants, and how it was and is: bytes of the .bin, and ops."""
    with irrun.build("m") as g:
        x = g.Parameter("f32[1,32]", name="x")
        for weights in give(g):
            g.Result(g.MatMul(x, weights))
    data = {"x": np.arange(32, dtype=np.float32).reshape(1, 32)}
    before, expected = len(model_bytes(g.model)[1]), run(g.model, data)
    model = edited(g.model, ("fold",))
    for found, wanted in zip(run(model, data).values(), expected.values(), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    ops = [layer.type for layer in model.graph.layers if layer.type not in ("Const", "Parameter", "Result", "MatMul")]
    return before, len(model_bytes(model)[1]), ops


@pytest.mark.parametrize("shape", [(32, 32), (32, 1)])
def test_fold_leaves_compressed_weights_as_they_are(shape):
    def give(g):
        codes, zero = g.Constant(np.ones(shape, np.uint8)), g.Constant(np.uint8([[3]]))
        numbers = [g.Convert(each, destination_type="f16") for each in (codes, zero)]
        scaled = g.Multiply(g.Subtract(*numbers), g.Constant(np.float16([[0.5]])))
        return [g.Convert(scaled, destination_type="f32")]

    before, after, ops = folded(give)
    assert after == before
    assert ops == ["Convert", "Convert", "Subtract", "Multiply", "Convert"]


def test_fold_computes_what_takes_the_place_of_weights():
    before, after, ops = folded(lambda g: [g.Transpose(g.Constant(np.ones((8, 32), np.float32)), np.int64([1, 0]))])
    assert after == before - 16
    assert ops == []


def test_fold_computes_nothing_of_weights_that_stay():
    def give(g):
        weights = g.Constant(np.ones((32, 32), np.float32))
        return [weights, g.Transpose(weights, np.int64([1, 0]))]

    before, after, ops = folded(give)
    assert after == before
    assert ops == ["Transpose"]


def test_append_joins_what_was_cut(inputs, tmp_path):
    expected = run(irrun.read_model(CNN), inputs)["probabilities"]
    second = edited(irrun.read_model(CNN), ("cut-from", "Relu_50"))
    irrun.write_model(second, tmp_path / "second.xml")
    first = edited(irrun.read_model(CNN), ("cut-to", "Relu_50"))
    whole = edited(first, ("append", f"{tmp_path / 'second.xml'}\nRelu_50=Relu_50"))
    np.testing.assert_allclose(run(whole, inputs)["probabilities"], expected, rtol=1e-6)


def test_append_of_a_model_that_takes_another_type(tmp_path):
    """Its Convert would be one of f32 to f32, and let fractions through."""
    with irrun.build("bytes") as g:
        g.Result(g.ReLU(g.Convert(g.Parameter("u8[?,10]", name="pixels"), destination_type="f32"), name="y"))
    irrun.write_model(g.model, tmp_path / "bytes.xml")
    model = irrun.read_model(CNN)
    with pytest.raises(EditError, match="output `probabilities` is f32, but input `pixels` takes u8"):
        edit(model, [Step("append", str(tmp_path / "bytes.xml"))])


def test_append_of_a_model_with_bodies_and_equal_names(tmp_path):
    path = SAMPLES / "stateful-loop" / "model.xml"
    model = irrun.read_model(path)
    with pytest.raises(EditError, match="both models have a variable"):
        edit(model, [Step("append", f"{path}\nnowhere=x")])
    other = irrun.read_model(CNN)
    irrun.write_model(other, tmp_path / "cnn.xml")
    with pytest.raises(EditError, match="`nowhere` is no output of the model; its outputs are"):
        edit(model, [Step("append", f"{tmp_path / 'cnn.xml'}\nnowhere=image")])
