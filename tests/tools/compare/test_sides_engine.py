"""irrun against itself: another engine, another precision."""

from pathlib import Path

import numpy as np
import pytest
from ir_builder import Model as Builder

import irrun
from irrun.diagnostics import EngineError
from irrun.run.arrays import read_npz
from irrun.tools.compare.sides.contract import SideFailed
from irrun.tools.compare.sides.opening import open_side

SAMPLES = Path(__file__).parents[3] / "samples"


def sample(name):
    return irrun.read_model(SAMPLES / name / "model.xml"), read_npz(SAMPLES / name / "inputs.npz")


def test_f64_agrees_with_layers_of_f32_that_only_move_their_data_and_others():
    with irrun.build("f32", opset=13) as g:
        x = g.Parameter("f32[4, 64]", name="x")
        weights = np.random.default_rng(0).normal(size=(64, 32)).astype(np.float32)
        g.Result(g.ReLU(g.Transpose(g.MatMul(g.Exp(x), weights), np.array([1, 0])), name="y"))
    inputs = irrun.GraphExecutor(g.model).random_inputs(0)
    found = irrun.compare(g.model, "precision:f64", inputs)
    assert found.agrees, str(found)
    assert len(found.tensors) == 4


def test_another_precision_and_the_full_one():
    model, inputs = sample("transformer-block")
    side = open_side("precision:f16", model)
    full = side.precise()
    assert (side.kind, full.name, full.precise()) == ("engine", "precision:f16 at full precision", None)
    (narrow,), (wide,) = side.observe([inputs]), full.observe([inputs])
    assert set(narrow.tensors) == set(wide.tensors)
    apart = np.abs(narrow.tensors["Add_5454:0"].astype(float) - wide.tensors["Add_5454:0"]).max()
    assert 1e-6 < apart < 0.1
    assert narrow.outputs["block"].dtype == np.float32
    side.outputs([inputs])
    assert side.runtime()["MatMul_5450"].precision == "f16"
    side.close()
    full.close()


def test_another_engine_and_what_it_computes_together():
    model, inputs = sample("cnn")
    side = open_side("engine:numpy", model)
    (results,) = side.outputs([inputs])
    expected = irrun.GraphExecutor(model, engine="reference").run(inputs)
    np.testing.assert_allclose(results["probabilities"], expected["probabilities"], 1e-5, 1e-6)
    made = side.runtime()["Add_49"]
    assert (made.primitive, made.fused) == ("numpy", ("Convolution_47", "Add_49", "Relu_50"))
    (observed,) = side.observe([inputs])
    names = {f"{layer.name}:0" for layer in model.graph.layers if layer.inputs and layer.outputs}
    assert names == {*observed.tensors, *side.untapped}
    (cut,) = side.cut([inputs], ["Convolution_47:0"])
    assert cut["Convolution_47:0"].shape == (2, 8, 16, 16)
    side.close()


def test_tensors_of_bodies_step_by_step():
    model, inputs = sample("stateful-loop")
    side = open_side("engine:reference", model)
    first, second = side.observe([inputs, inputs])
    session, dump = irrun.GraphExecutor(model, engine="reference").session(), irrun.Dump()
    session.run(inputs)
    session.run(inputs, observer=dump)
    assert set(second.tensors) == set(dump)
    inside = [key for key in dump if "/body[1]/" in key]
    assert inside
    for key in inside:
        np.testing.assert_array_equal(second.tensors[key], dump[key])
    (alone,) = side.observe([inputs], inside[:1])
    assert list(alone.tensors) == inside[:1]
    np.testing.assert_array_equal(alone.tensors[inside[0]], first.tensors[inside[0]])
    side.close()


def test_layers_of_one_name_go_by_their_ids_as_well(tmp_path):
    b = Builder()
    x = b.parameter("x", "f32", (2,))
    (y,) = b.layer("Abs", [x], [("f32", (2,))], name="twice")
    (z,) = b.layer("Negative", [y], [("f32", (2,))], name="twice")
    b.result(b.layer("Exp", [z], [("f32", (2,))], name="last")[0])
    side = open_side("engine:reference", irrun.read_model(b.save(tmp_path)))
    (observed,) = side.observe([{"x": np.float32([1, 2])}])
    assert set(observed.tensors) == {"twice#1:0", "twice#2:0", "last:0"}
    assert side.untapped == {}
    ((cut,),) = (side.cut([{"x": np.float32([1, 2])}], ["twice#2:0"]),)
    assert cut["twice#2:0"].tolist() == [-1, -2]
    side.close()


def test_data_that_break_a_constraint_are_a_failure_of_the_side(tmp_path):
    b = Builder()
    x, shape = b.parameter("x", "f32", (2,)), b.parameter("shape", "i64", (1,))
    b.result(b.layer("Reshape", [x, shape], [("f32", (-1,))], name="other", special_zero="false")[0])
    model = irrun.read_model(b.save(tmp_path))
    side = open_side("engine:reference", model)
    with pytest.raises(SideFailed) as failed:
        side.outputs([{"x": np.float32([1, 2]), "shape": np.array([5])}])
    assert (failed.value.phase, failed.value.layer.name) == ("run", "other")
    side.close()


def test_engines_and_precisions_that_there_are_not():
    model, _ = sample("cnn")
    with pytest.raises(EngineError, match="there is no engine `cuda`; there are auto, onednn, numpy"):
        open_side("engine:cuda", model)
    with pytest.raises(EngineError, match="there is no precision `i8-vnni`; there are auto, declared"):
        open_side("precision:i8-vnni", model)
