"""Devices of OpenVINO as the other side of a comparison: what they give, and how their process fails."""

import gc
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import openvino
import openvino.opset1
import pytest
from ir_builder import Model as Builder

import irrun
from irrun.diagnostics import EngineError, InputError
from irrun.ir.writer import model_text
from irrun.run.arrays import read_npz
from irrun.tools.compare.sides.contract import Options, SideFailed
from irrun.tools.compare.sides.opening import open_side
from irrun.tools.compare.sides.openvino import OpenvinoSide
from irrun.tools.compare.sides.openvino_models import Openvino
from irrun.tools.compare.sides.openvino_worker import _bytes

SAMPLES = Path(__file__).parents[3] / "samples"
F32 = np.float32


def sample(name):
    return irrun.read_model(SAMPLES / name / "model.xml"), read_npz(SAMPLES / name / "inputs.npz")


@pytest.fixture(scope="module")
def block():
    """The transformer block on the CPU, and its inputs; nobody ends or changes it."""
    model, inputs = sample("transformer-block")
    side = open_side("ov:CPU", model)
    yield side, model, inputs
    side.close()


@pytest.fixture(scope="module")
def cpu(block):
    """Other models on the CPU, in the process that there is."""
    return lambda model, options=None: OpenvinoSide(model, "CPU", options or Options(), owner=block[0])


def ours(model, steps):
    """What irrun computes in each step, results and tensors."""
    session = irrun.GraphExecutor(model, engine="reference").session()
    found = []
    for step in steps:
        dump = irrun.Dump()
        found.append((session.run(step, observer=dump), dict(dump)))
    return found


def layer_names(model):
    return {layer.name for layer in model.graph.layers}


def close(mine, other):
    assert mine.dtype == other.dtype
    np.testing.assert_allclose(other.astype(np.float64), mine.astype(np.float64), 1e-5, 1e-5)


@pytest.mark.parametrize(
    "name", ["cnn", "stateful-loop", "transformer-block", "scatter-elements-update", "sparse-fill-empty-rows"]
)
def test_all_tensors_at_full_precision_are_ours_in_every_step(cpu, name):
    model, inputs = sample(name)
    side = cpu(model)
    full = side.precise()
    steps = [inputs, inputs]
    observed = full.observe(steps)
    for (results, tensors), plain, other in zip(ours(model, steps), full.outputs(steps), observed, strict=True):
        assert list(plain) == list(other.outputs) == list(results)
        for key, mine in results.items():
            close(mine, plain[key])
            close(mine, other.outputs[key])
        assert not other.repeats
        expected = {key for key in tensors if "[" not in key and not key.startswith("Assign_")}
        assert expected == set(other.tensors)
        for key, array in other.tensors.items():
            close(tensors[key], array)
    assert not full.untapped


def test_a_variable_goes_on_in_models_that_end_at_a_tensor(cpu):
    model, inputs = sample("stateful-loop")
    side = cpu(model)
    full, steps = side.precise(), [inputs, inputs]
    for cut, (_, tensors) in zip(full.cut(steps, ["Loop_13276:0", "Reshape_13278:0"]), ours(model, steps), strict=True):
        assert set(cut) == {"Loop_13276:0", "Reshape_13278:0"}
        for key, array in cut.items():
            close(tensors[key], array)


def test_what_the_device_says_of_layers(block):
    side, _, _ = block
    full = side.precise().runtime()
    assert full["MatMul_5450"].precision == "f32"
    assert full["MatMul_5450"].fused == ("MatMul_5450", "Gelu_5451")
    assert full["Gelu_5451"] == full["MatMul_5450"]
    assert full["MatMul_5450"].primitive
    assert side.precise().precise() is None
    narrow = side.runtime()["MatMul_5450"].precision
    if narrow == "f32":
        pytest.skip("this processor computes products in f32 whatever it is told")
    assert narrow in ("bf16", "f16")


def test_tensors_that_do_not_fit_at_once_take_several_runs(cpu):
    model, inputs = sample("transformer-block")
    side = cpu(model, Options(max_bytes=8000))
    full = side.precise()
    (observed,) = full.observe([inputs])
    ((results, tensors),) = ours(model, [inputs])
    assert set(observed.tensors) == set(tensors)
    assert len(observed.repeats) > 4
    for outputs in (observed.outputs, *observed.repeats):
        close(results["block"], outputs["block"])
    close(tensors["Gelu_5451:0"], observed.tensors["Gelu_5451:0"])


def test_tensors_that_are_asked_for_alone(block):
    side, _, inputs = block
    (observed,) = side.precise().observe([inputs], ["MVN_5420:0", "Add_5454:0", "tokens:0"])
    assert set(observed.tensors) == {"MVN_5420:0", "Add_5454:0", "tokens:0"}
    np.testing.assert_array_equal(observed.tensors["Add_5454:0"], observed.outputs["block"])
    with pytest.raises(ValueError, match="the model has no tensor `Add_5454:1`"):
        side.observe([inputs], ["Add_5454:1"])


def test_passes_leave_irs_behind(block):
    side, _, _ = block
    passes = side.passes("ConvertPrecision")
    assert passes
    assert [each.number for each in passes] == list(range(len(passes)))
    assert {each.name for each in passes} == {"ov::pass::ConvertPrecision"}
    assert len({each.model for each in passes}) == 1
    assert irrun.read_model(passes[0].path).outputs[0].name == "block"


def test_another_file_on_the_same_device(block, tmp_path):
    side, model, inputs = block
    path = tmp_path / "marked.xml"
    text = model.path.read_text()
    begin = text.index(">", text.index('name="MatMul_5450"')) + 1
    mark = '<rt_info><attribute name="precise" version="0" /></rt_info>'
    end = text.index("</layer>", begin)
    assert "<rt_info>" not in text[begin:end]
    path.write_text(f"{text[:end]}{mark}{text[end:]}")
    marked = side.marked(path)
    close(marked.precise().outputs([inputs])[0]["block"], side.precise().outputs([inputs])[0]["block"])
    if side.runtime()["MatMul_5450"].precision != "f32":
        assert marked.runtime()["MatMul_5450"].precision == "f32"


def test_another_file_of_a_model_that_was_changed_in_memory_goes_with_the_weights_that_this_has_now(cpu, tmp_path):
    with irrun.build("m") as g:
        g.Result(g.Add(g.Parameter("f32[2]", name="x"), F32([1, 2]), name="add"), name="y")
    irrun.write_model(g.model, tmp_path / "m.xml")
    model = irrun.read_model(tmp_path / "m.xml")
    model.set_constant(model.layer("add").inputs[1].layer, F32([3, 4]))
    path = tmp_path / "other" / "marked.xml"
    path.parent.mkdir()
    path.write_bytes(model_text(model))
    np.testing.assert_array_equal(cpu(model).marked(path).outputs([{"x": F32([0, 0])}])[0]["y"], [3, 4])


def test_hostile_names_and_element_types(cpu, tmp_path):
    b = Builder()
    x = b.parameter("x", "bf16", (2, 3))
    (a,) = b.layer("ReLU", [x], [("bf16", (2, 3))], name="same, name")
    (c,) = b.layer("Abs", [a], [("bf16", (2, 3))], name="same, name")
    (d,) = b.layer("Abs", [c], [("bf16", (2, 3))], name='a "quoted", \'<&>:0\n\u00fc/name')
    (e,) = b.layer("Convert", [d], [("u4", (2, 3))], name="narrow", destination_type="u4")
    (f,) = b.layer("Convert", [e], [("f16", (2, 3))], name="narrow, wide", destination_type="f16")
    b.result(f)
    model = irrun.read_model(b.save(tmp_path))
    side = cpu(model)
    x = F32([[1, -2, 3], [4, 5, 6]]).astype(irrun.spec.numpy_dtype("bf16"))
    (observed,) = side.observe([{"x": x}])
    name = 'a "quoted", \'<&>:0%0A\u00fc/name:0'
    assert observed.tensors[name].dtype == irrun.spec.numpy_dtype("bf16")
    assert observed.tensors[name].astype(int).tolist() == [[1, 0, 3], [4, 5, 6]]
    assert next(iter(observed.outputs.values())).tolist() == [[1, 0, 3], [4, 5, 6]]
    assert side.untapped["same, name#1:0"] == "2 layers have the name `same, name`"
    assert "narrow:0" in {**observed.tensors, **side.untapped}
    assert all(name in layer_names(model) for made in side.runtime().values() for name in made.fused)


@pytest.mark.parametrize(("shape", "size"), [((3, 4), 48), ((0, 4), 0), ((-1, 4), None), ("2..5,4", 80)])
def test_what_a_tensor_takes_at_most(shape, size):
    shape = openvino.PartialShape(shape if isinstance(shape, str) else list(shape))
    assert _bytes(openvino.opset1.parameter(shape, F32).output(0)) == size


class Fusing:
    """A core that leaves models as the fusion of heads of which a part is rotated does: all of a head for the part."""

    def __init__(self, core):
        self._core = core

    def compile_model(self, model, *settings):
        result = model.get_results()[1]
        whole = openvino.opset1.concat([result.input_value(0), result.input_value(0)], 1)
        result.input(0).replace_source_output(whole.output(0))
        model.validate_nodes_and_infer_types()
        return self._core.compile_model(model, *settings)


def test_a_tensor_that_a_fusion_has_replaced_is_not_looked_at(tmp_path):
    b = Builder()
    (part,) = b.layer("Abs", [b.parameter("x", "f32", (-1, 8))], [("f32", (-1, 8))], name="part")
    (whole,) = b.layer("ReLU", [part], [("f32", (-1, 8))], name="whole")
    b.result(whole)
    b.save(tmp_path)
    request = {"xml": str(tmp_path / "model.xml"), "bin": None, "stamp": [], "device": "CPU", "config": {}}
    runtime = Openvino(lambda what: None)
    taps = [["part", "Abs", 0], ["whole", "ReLU", 0]]
    assert runtime.tapped(request, taps, lambda what: None)[1:] == ([1, 0], {})
    runtime._core = Fusing(runtime._core)
    reason = "the device has a tensor of [?,16] in its place, not of [?,8]: it is fused with others"
    assert runtime.tapped(request, taps, lambda what: None)[1:] == ([1, 0], {0: reason})


def test_a_scalar_an_empty_tensor_and_texts(cpu, tmp_path):
    b = Builder()
    x, y = b.parameter("x", "f32", ()), b.parameter("y", "f32", (0, 2))
    texts = b.parameter("texts", "string", (2,))
    b.result(b.layer("Abs", [x], [("f32", ())], name="scalar")[0])
    b.result(b.layer("Abs", [y], [("f32", (0, 2))], name="empty")[0])
    b.result(texts)
    model = irrun.read_model(b.save(tmp_path))
    side = cpu(model)
    given = {"x": F32(-2), "y": np.zeros((0, 2), F32), "texts": np.array(["a", "\u00fc b"])}
    (observed,) = side.observe([given])
    assert observed.tensors["scalar:0"].shape == ()
    assert float(observed.tensors["scalar:0"]) == 2
    assert observed.outputs["empty"].shape == (0, 2)
    assert observed.outputs["texts"].tolist() == ["a", "\u00fc b"]


def test_a_model_from_memory(block, cpu):
    _, model, inputs = block
    held = irrun.read_model(model.path.read_bytes(), model.weights.path.read_bytes())
    side = cpu(held)
    assert side.outputs([inputs])[0]["block"].shape == (2, 7, 32)


def test_a_model_that_was_built_or_changed_in_memory(tmp_path):
    with irrun.build("m") as g:
        g.Result(g.Clamp(g.Parameter("f32[2]", name="x"), min=0.0, max=6.0, name="limit"), name="y")
    assert irrun.compare(g.model, "ov:CPU", {"x": F32([1, 9])}).agrees
    irrun.write_model(g.model, tmp_path / "m.xml")
    model = irrun.read_model(tmp_path / "m.xml")
    model.set_attribute(model.layer("limit"), "max", 3.0)
    assert irrun.compare(model, "ov:CPU", {"x": F32([1, 9])}).agrees
    assert not irrun.compare(tmp_path / "m.xml", "ov:CPU", {"x": F32([1, 9])}).outputs[0].differing


@pytest.mark.parametrize("config", [{}, {"INFERENCE_NUM_THREADS": "1"}], ids=["all threads", "one thread"])
def test_a_message_names_our_layer(cpu, tmp_path, config):
    b = Builder()
    x = b.parameter("x", "f32", ("?", "?"))
    shape = b.constant(np.array([3, 2]))
    (y,) = b.layer("Reshape", [x, shape], [("f32", (3, 2))], special_zero="false", name="the shape")
    b.result(y)
    model = irrun.read_model(b.save(tmp_path))
    side = cpu(model, Options(config=config))
    with pytest.raises(SideFailed) as failed:
        side.outputs([{"x": np.zeros((2, 4), F32)}])
    assert failed.value.phase == "run"
    assert failed.value.layer.name == "the shape"
    assert failed.value.span.line == model.graph.layers[2].span.line
    assert "Exception from" not in str(failed.value)


def test_a_message_names_an_input_without_quotes(cpu, tmp_path):
    net = Builder()
    x = net.parameter("x of mine", "f32", "...")
    net.result(*net.layer("ReLU", [x], [("f32", ())]))
    side = cpu(irrun.read_model(net.save(tmp_path)))
    with pytest.raises(SideFailed) as caught:
        side.outputs([{"x of mine": F32([1])}])
    assert caught.value.layer.name == "x of mine"


def test_a_device_that_is_not_there(block):
    _, model, _ = block
    with pytest.raises(EngineError, match=r"there is no device `NOTHING`; there are .*CPU"):
        open_side("ov:NOTHING", model)
    with pytest.raises(EngineError, match="lacks a device"):
        open_side("ov:", model)


def test_inputs_that_do_not_fit(block):
    side, _, _ = block
    with pytest.raises(InputError, match="no array for input `tokens`"):
        side.outputs([{}])


def test_a_setting_that_the_device_does_not_have(block, cpu):
    _, model, inputs = block
    side = cpu(model, Options(config={"NO_SUCH_KEY": "1"}))
    with pytest.raises(SideFailed, match=r"compiling the model: .*NO_SUCH_KEY"):
        side.outputs([inputs])


def test_what_is_known_of_layers_is_not_told_of_settings(tmp_path):
    net = Builder()
    x = net.parameter("x", "f32", "...")
    net.result(*net.layer("ReduceMean", [x, net.constant(np.array([-1]))], [("f32", ())], keep_dims="true"))
    path = net.save(tmp_path)
    for config, told in (({}, True), ({"NO_SUCH_KEY": "1"}, False), ({"INFERENCE_PRECISION_HINT": "f99"}, False)):
        with pytest.raises(SideFailed) as failed:
            irrun.compare(path, "ov:CPU", {"x": F32([1])}, options=Options(config=config))
        assert bool(failed.value.known) == told


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV"])
def test_a_process_that_dies_loses_one_call_only(block, name):
    side, _, inputs = block
    before = side.outputs([inputs])[0]["block"]
    process = side._worker.pid
    os.kill(process, signal.SIGSTOP)

    def end():
        time.sleep(0.1)
        os.kill(process, getattr(signal, name))
        os.kill(process, signal.SIGCONT)

    thread = threading.Thread(target=end)
    thread.start()
    with pytest.raises(SideFailed, match=f"its process was ended by {name}") as failed:
        side.outputs([inputs])
    thread.join()
    assert failed.value.signal == name
    np.testing.assert_array_equal(side.outputs([inputs])[0]["block"], before)
    assert side._worker.pid != process


def test_a_process_that_does_not_answer_is_ended():
    model, inputs = sample("scatter-elements-update")
    side = open_side("ov:CPU", model)
    side._worker._timeout = 0.3
    process = side._worker.pid
    os.kill(process, signal.SIGSTOP)
    with pytest.raises(SideFailed, match=r"no answer within 0\.3 seconds"):
        side.outputs([inputs])
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    side.close()


def test_files_are_gone_when_a_side_is_closed():
    model, inputs = sample("scatter-elements-update")
    side = open_side("ov:CPU", model)
    folder = side._scratch.path
    (results,) = side.outputs([inputs])
    array = results["updated" if "updated" in results else next(iter(results))]
    assert list(folder.iterdir())
    side.close()
    assert not folder.exists()
    assert array.shape


def test_a_process_ends_with_a_side_that_nobody_closes():
    model, _ = sample("scatter-elements-update")
    side = open_side("ov:CPU", model)
    process, folder = side._worker.pid, side._scratch.path
    del side
    gc.collect()
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
