"""Edits of models: they stay in step, can be checked, run, copied, pickled and written, and refuse what cannot be."""

import doctest
import pickle
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from equality import differences
from ir_builder import Model

import irrun
from irrun.ir.attribute_editing import attribute_text
from irrun.ir.graph import Graph, LayerBody
from irrun.ir.port_editing import (
    add_back_edge,
    add_input,
    map_input,
    map_output,
    map_purpose,
    remove_input,
    remove_output,
)
from irrun.ir.weights import MAX_COPIED
from irrun.ir.xml import Element

ROOT = Path(__file__).parents[2]
CNN, LOOP = (ROOT / "samples" / name / "model.xml" for name in ("cnn", "stateful-loop"))
INVALID = ROOT / "tests" / "invalid"
X = np.float32([[1, -2], [3, -4]])


@pytest.fixture
def model(tmp_path):
    """x of f32[N, 2], plus [10, 20], `total`; its ReLU, `rectified`; its two halves, the second a result."""
    made = Model()
    x = made.parameter("x", "f32", ("?", 2))
    total = made.layer("Add", [x, made.constant(np.float32([10, 20]), "table")], [("f32", (-1, 2))], name="total")[0]
    rectified = made.layer("ReLU", [total], [("f32", (-1, 2))], name="rectified", names=["out"])[0]
    axis = made.constant(np.int64(1), "axis")
    halves = made.layer("Split", [rectified, axis], [("f32", (-1, 1))] * 2, name="halves", num_splits="2")
    made.result(rectified)
    made.result(halves[1])
    return irrun.read_model(made.save(tmp_path))


def results(model):
    return [array.tolist() for array in irrun.GraphExecutor(model, engine="reference").run(X).values()]


def check(model, folder):
    """A model in step: no findings, values and their readers agree, and it is written as it is."""
    found = irrun.validate(model).diagnostics
    assert not found, found
    for graph in {layer.graph for layer in model.graph.walk()}:
        read = {
            (value, layer, number)
            for layer in graph.layers
            for number, value in enumerate(layer.inputs)
            if value is not None
        }
        told = {(value, *reader) for layer in graph.layers for value in layer.outputs for reader in value.consumers}
        assert read == told
        for layer in graph.layers:
            assert len(layer.inputs) == len(layer.input_ports) == len(layer.input_edges)
            assert [value.index for value in layer.outputs] == list(range(len(layer.outputs)))
    irrun.write_model(model, folder / "edited.xml")
    again = irrun.read_model(folder / "edited.xml")
    assert not differences(model, again)
    assert not irrun.validate(again).diagnostics
    assert not differences(again, pickle.loads(pickle.dumps(model)))
    return again


def narrowed(model):
    model.set_constant(model.layer("Constant_46"), np.zeros((3, 3), np.float32))


def rewired(model):
    model.rewire(model.layer("MatMul_61"), 1, model.layer("Constant_58"))


def turned(model):
    model.set_attribute(model.layer("Softmax_62"), "axis", 7)


@pytest.mark.parametrize("change", [narrowed, rewired, turned])
def test_a_model_that_a_change_has_broken_is_not_written_unless_it_is_meant(change, tmp_path):
    model = irrun.read_model(CNN)
    change(model)
    out = tmp_path / "out.xml"
    with pytest.raises(irrun.IRError, match=r"error\[E(303|401)\]") as refusal:
        irrun.write_model(model, out)
    assert "`check=False` writes" in refusal.value.__notes__[0]
    assert not list(tmp_path.iterdir())
    irrun.write_model(model, out, check=False)
    assert not irrun.validate(out).ok


def test_a_model_that_was_broken_before_is_written_as_it_is(tmp_path):
    model = irrun.read_model(INVALID / "unknown_opset.xml")
    irrun.write_model(model, tmp_path / "out.xml")
    model.rename(model.graph.layers[0], "other")
    with pytest.raises(irrun.IRError):
        irrun.write_model(model, tmp_path / "out.xml")
    irrun.write_model(model, tmp_path / "out.xml", check=False)
    assert irrun.read_model(tmp_path / "out.xml").graph.layers[0].name == "other"


def test_several_changes_lead_from_one_valid_model_to_the_next(tmp_path):
    model = irrun.read_model(CNN)
    model.set_constant(model.layer("Constant_60"), np.zeros((10, 16), np.float32))
    model.set_attribute(model.layer("MatMul_61"), "transpose_b", True)
    irrun.write_model(model, tmp_path / "out.xml")
    assert irrun.validate(tmp_path / "out.xml").ok


def test_a_layer_is_added_between_others(model, tmp_path):
    total = model.layer("total")
    doubled = model.add("Multiply", [total, model.add_constant(np.float32(2))], {"auto_broadcast": "numpy"})
    model.rewire(model.layer("rectified"), 0, doubled)
    irrun.redeclare(model)
    assert doubled.outputs[0].port.dims == (-1, 2)
    assert doubled.name == f"Multiply_{doubled.id}"
    assert results(check(model, tmp_path)) == results(model) == [[[22, 36], [26, 32]], [[36], [32]]]


def test_a_layer_is_removed_and_an_input_bridged_to_its_output(model, tmp_path):
    model.remove(model.layer("rectified"), bridge=0)
    assert model.layer("total").outputs[0].port.names == ("out",)
    assert results(check(model, tmp_path)) == [[[11, 18], [13, 16]], [[18], [16]]]
    assert list(irrun.GraphExecutor(model).run(-20 * X)) == ["out", "halves.1"]


def test_a_layer_is_replaced_by_another_one(model, tmp_path):
    negative = model.add("Negative", [model.layer("total")], name="negative")
    model.replace(model.layer("rectified"), negative)
    irrun.redeclare(model)
    assert "rectified" not in [layer.name for layer in model.graph.layers]
    assert results(check(model, tmp_path)) == [[[-11, -18], [-13, -16]], [[-18], [-16]]]


def test_what_replaces_a_layer_may_read_it(model, tmp_path):
    rectified = model.layer("rectified")
    model.replace(rectified, model.add("Negative", [rectified]))
    irrun.redeclare(model)
    assert results(check(model, tmp_path)) == [[[-11, -18], [-13, -16]], [[-18], [-16]]]


def test_a_value_is_cut_and_becomes_an_input(model, tmp_path):
    value = model.layer("rectified").outputs[0]
    cut = model.add_parameter("f32", (None, 2), name="cut")
    model.replace(value, cut)
    removed = model.prune(parameters=True)
    assert [layer.name for layer in removed] == ["x", "table", "total", "rectified"]
    assert [info.name for info in model.inputs] == ["cut"]
    again = check(model, tmp_path)
    assert irrun.GraphExecutor(again).run(X)[0].tolist() == X.tolist()
    assert irrun.GraphExecutor(again).run(X)[1].tolist() == [[-2], [-4]]


def test_results_are_added_and_removed(model, tmp_path):
    first, second = model.graph.results
    model.remove(second)
    model.remove(model.layer("halves"))
    model.prune()
    added = model.add_result(model.layer("total"), name="sum")
    assert model.graph.results == [first, added]
    assert results(check(model, tmp_path)) == [[[11, 18], [13, 16]]] * 2
    assert [info.name for info in model.outputs] == ["out", "total"]


def test_constants_are_given_other_data(model, tmp_path):
    table = model.layer("table")
    model.set_constant(table, np.float32([0, 100]))
    assert results(model)[0] == [[1, 98], [3, 96]]
    model.set_constant(table, np.zeros((1, 2), np.float32))
    assert table.attributes["shape"] == "1, 2"
    again = check(model, tmp_path)
    assert results(again)[0] == [[1, 0], [3, 0]]
    assert (tmp_path / "edited.bin").stat().st_size == 8 + 8
    model.set_constant(table, np.zeros(2, np.float16))
    assert [found.code for found in irrun.validate(model).errors] == ["E303"]
    with pytest.raises(ValueError, match=r"^layer . `total` \(Add\) is not a Const$"):
        model.set_constant(model.layer("total"), np.float32([1]))
    with pytest.raises(TypeError, match=r"no constant of i8"):
        model.set_constant(table, np.float32([1]), type="i8")


def test_a_large_constant_that_is_added_is_read_in_all_ways(tmp_path):
    made = Model()
    made.result(made.parameter("x", "f32", (1,)))
    model = irrun.read_model(made.save(tmp_path))
    array = np.arange(MAX_COPIED, dtype=np.float32)
    layer = model.add_constant(array)
    np.testing.assert_array_equal(model.weights.constant(layer), array)
    assert not model.weights.constant(layer).flags.writeable
    assert model.weights.packed(layer).tobytes() == array.tobytes()
    assert b"".join(model.weights.chunks(layer)) == array.tobytes()
    assert model.weights.allocated(layer) == 0
    assert model.weights.size == 4 * MAX_COPIED


def test_attributes_are_set_by_what_the_op_declares(model, tmp_path):
    halves = model.layer("halves")
    model.set_attribute(model.graph.parameters[0], "shape", (None, "2..8"))
    assert model.graph.parameters[0].attributes["shape"] == "?, 2..8"
    model.set_attribute(model.graph.parameters[0], "shape", "?,2")
    model.set_attribute(model.layer("total"), "auto_broadcast", "none")
    assert [found.code for found in irrun.validate(model).errors] == ["E401"]
    model.set_attribute(model.layer("total"), "auto_broadcast", None)
    check(model, tmp_path)
    with pytest.raises(ValueError, match=r"^Split-1 has no attribute `splits`; it has `num_splits`$"):
        model.set_attribute(halves, "splits", 2)
    with pytest.raises(ValueError, match=r"^attribute `num_splits` of Split-1 is `two`, expected an integer$"):
        model.set_attribute(halves, "num_splits", "two")
    with pytest.raises(ValueError, match=r"`offset` of layer . `table` .* goes with its data"):
        model.set_attribute(model.layer("table"), "offset", 4)
    assert halves.attributes == {"num_splits": "2"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (np.bool_(False), "false"),
        (np.int64(-3), "-3"),
        (2.0, "2"),
        (1e-5, "1e-05"),
        (np.float32(0.1), "0.1"),
        (float("-inf"), "-inf"),
        ("numpy", "numpy"),
        ((1, None, "2..8"), "1, ?, 2..8"),
        (np.array([[1, 2]]), "1, 2"),
        ((), ""),
        (np.float16, "f16"),
        (np.dtype("int32"), "i32"),
        (["a", "b"], "a, b"),
    ],
)
def test_values_as_a_file_has_them(value, text):
    assert attribute_text(value) == text


def test_layers_and_tensors_are_renamed(model, tmp_path):
    model.rename(model.layer("total"), "sum")
    model.name_tensor(model.layer("sum"), "s", "a,b")
    again = check(model, tmp_path)
    assert again.layer("sum").outputs[0].port.names == ("s", "a,b")
    assert irrun.GraphExecutor(again).run(X, outputs=["a,b"])["a,b"].tolist() == [[11, 18], [13, 16]]
    with pytest.raises(ValueError, match=r"^layer . `rectified` .* has the name `rectified` already$"):
        model.rename(model.layer("sum"), "rectified")
    with pytest.raises(ValueError, match=r"^output 0 of layer . `rectified` .* has the name `out` already$"):
        model.name_tensor(model.layer("sum"), "out")
    with pytest.raises(ValueError, match=r"cannot be empty"):
        model.name_tensor(model.layer("sum"), "")
    with pytest.raises(ValueError, match=r"^a name of a layer cannot be empty$"):
        model.rename(model.layer("sum"), "")


def test_a_name_is_no_layer(model):
    total, said = model.layer("total"), r"model\.layer\(\.\.\.\) finds one by its name or id$"
    for change in (
        lambda: model.set_attribute("total", "auto_broadcast", "numpy"),
        lambda: model.rename("total", "sum"),
        lambda: model.rewire("total", 0, total),
        lambda: model.remove("total"),
        lambda: model.set_constant("total", [1]),
    ):
        with pytest.raises(TypeError, match=r"^'total' is no Layer: " + said):
            change()
    for change in (
        lambda: model.rewire(total, 0, "rectified"),
        lambda: model.replace("rectified", total),
        lambda: model.replace(total, "rectified"),
        lambda: model.name_tensor("rectified", "r"),
        lambda: model.add("Abs", ["rectified"]),
    ):
        with pytest.raises(TypeError, match=r"^'rectified' is neither a Value nor a Layer: " + said):
            change()


def test_new_names_are_those_of_no_other_layer(model):
    id = 1 + max(layer.id for layer in model.graph.layers)
    model.rename(model.layer("total"), f"Abs_{id}")
    assert model.add("Abs", [model.layer("rectified")]).name == f"Abs_{id + 1}"


def test_layers_are_found_by_name_or_id(model):
    assert model.layer("total") is model.layer(model.layer("total").id)
    with pytest.raises(
        ValueError, match=r"^there is no layer `totl` among the 8 of the model; did you mean `total`\?$"
    ):
        model.layer("totl")
    model.layer("table").name = "axis"
    with pytest.raises(ValueError, match=r"^`axis` is the name of 2 layers: 1 `axis` \(Const\), 4 `axis` \(Const\)$"):
        model.layer("axis")


def test_a_layer_that_was_removed_is_in_no_graph(model):
    total, result = model.layer("total"), model.graph.results[0]
    model.remove(result)
    with pytest.raises(ValueError, match=r"is not in the graph any more$"):
        model.remove(result)
    model.replace(total, total.inputs[0])
    model.prune()
    with pytest.raises(ValueError, match=r"cannot be output 0 of layer . `total` .*, which is not in the same graph$"):
        model.add_result(total)


def test_what_would_break_the_graph_is_refused_and_changes_nothing(model, tmp_path):
    total, halves, rectified = model.layer("total"), model.layer("halves"), model.layer("rectified")
    with pytest.raises(ValueError, match=r"cannot be removed: its output 0 is input 0 of layer . `rectified`"):
        model.remove(total)
    with pytest.raises(ValueError, match=r"`total` .* has no input 5: they go from 0 to 1$"):
        model.remove(total, bridge=5)
    with pytest.raises(ValueError, match=r"`halves` .* has no output 2: they go from 0 to 1$"):
        model.remove(halves, bridge={2: 0})
    with pytest.raises(ValueError, match=r"`x` .* has no input 0: it has none$"):
        model.rewire(model.layer("x"), 0, total)
    with pytest.raises(ValueError, match=r"`halves` .* has 2 outputs: say which, as in layer.outputs\[0\]$"):
        model.rewire(rectified, 0, halves)
    other = irrun.read_model(tmp_path / "model.xml").layer("x")
    with pytest.raises(ValueError, match=r"^input 0 of layer . `rectified` .* cannot be output 0 of layer 0 `x`"):
        model.rewire(rectified, 0, other)
    with pytest.raises(ValueError, match=r"^input 0 of a new Abs cannot be .*, which is not in the same graph$"):
        model.add("Abs", [other], graph=model.graph)
    with pytest.raises(ValueError, match=r"^Split-1 may have any number of outputs: say how many$"):
        model.add("Split", [total, model.layer("axis")], {"num_splits": 2})
    with pytest.raises(ValueError, match=r"has no attribute `alpha`"):
        model.add("ReLU", [total], {"alpha": 1})
    with pytest.raises(TypeError, match=r"no constant of u1"):
        model.add_constant(np.float32([1]), type="u1")
    with pytest.raises(ValueError, match=r"has 1 outputs, but output 1 of layer . `halves` .* is read$"):
        model.replace(halves, total)
    model.edited = False
    assert not differences(model, irrun.read_model(tmp_path / "model.xml"))
    check(model, tmp_path)


def test_diagnostics_of_new_layers_have_no_line(model):
    bad = model.add("Split", [model.layer("total"), model.layer("axis")], {"num_splits": 3}, name="thirds", outputs=3)
    for value in bad.outputs:
        model.add_result(value)
    report = irrun.validate(model)
    (found,) = report.errors
    assert (found.code, found.line, found.layer.name) == ("E401", None, "thirds")
    assert f"note: in layer {bad.id} `thirds` (Split)" in report.render()
    for format in ("json", "sarif", "concise", "github", "gitlab", "junit"):
        assert "thirds" in report.render(format) or "E401" in report.render(format)


def test_what_edits_have_broken_is_found(model):
    rectified, total = model.layer("rectified"), model.layer("total")
    model.rewire(total, 0, rectified)
    assert [found.code for found in irrun.validate(model).errors] == ["E209"]
    with pytest.raises(irrun.IRError, match=r"E209.*in a cycle"):
        irrun.GraphExecutor(model)
    model.rewire(total, 0, model.layer("x"))
    for result in model.graph.results:
        model.remove(result)
    assert [found.code for found in irrun.validate(model).errors] == ["E212"]


def test_a_copy_shares_only_bytes(model, tmp_path):
    copy = model.copy()
    assert not differences(model, copy)
    assert copy.layer("total").span == model.layer("total").span
    copy.set_constant(copy.layer("table"), np.float32([0, 0]))
    copy.rename(copy.layer("total"), "sum")
    copy.remove(copy.layer("rectified"), bridge=0)
    assert results(copy)[0] == X.tolist()
    assert results(model)[0] == [[11, 18], [13, 16]]
    assert (tmp_path / "model.bin").stat().st_size == 16
    check(copy, tmp_path)
    original = irrun.read_model(LOOP)
    assert not differences(original, original.copy())
    original.copy().prune(parameters=True)
    assert not differences(original, irrun.read_model(LOOP))


def test_copies_hold_the_weights_that_were_read(tmp_path):
    made = Model()
    x = made.parameter("x", "f32", (2,))
    made.result(made.layer("Add", [x, made.constant(np.float32([1, 2]))], [("f32", (2,))])[0])
    path = made.save(tmp_path)
    model = irrun.read_model(path)
    path.with_suffix(".bin").unlink()
    copy = model.copy()
    del model
    assert irrun.GraphExecutor(copy).run(np.float32([0, 0]))[0].tolist() == [1, 2]


def test_bodies_are_edited_like_models(tmp_path):
    model = irrun.read_model(LOOP)
    (loop,) = [layer for layer in model.graph.layers if layer.bodies]
    inner = loop.bodies["body"].graph
    (tanh,) = [layer for layer in inner.layers if layer.type == "Tanh"]
    source = tanh.inputs[0]
    inputs = dict(np.load(LOOP.with_name("inputs.npz")))
    before = irrun.GraphExecutor(model).run(inputs)
    model.replace(tanh, model.add("Sigmoid", [source], name="gate"))
    assert model.layer("gate").graph is inner
    irrun.redeclare(model)
    check(model, tmp_path)
    after = irrun.GraphExecutor(model).run(inputs)
    assert not np.array_equal(before["hidden"], after["hidden"])
    with pytest.raises(ValueError, match=r"a body reads what is outside through its Parameters: see map_input$"):
        model.rewire(model.layer("gate"), 0, model.graph.parameters[0])


def test_port_maps_of_bodies_are_edited(tmp_path):
    """An iteration over x of f32[3, 2] that gives running sums: made by hand, then changed."""
    made = Model()
    made.result(made.parameter("x", "f32", (3, 2)))
    model = irrun.read_model(made.save(tmp_path))
    x = model.layer("x")
    start = model.add_constant(np.zeros((1, 2), np.float32))
    loop = model.add("TensorIterator", [], outputs=0, name="sums")
    body = loop.bodies["body"] = LayerBody(Graph(Element("body", {}), loop))
    part = model.add_parameter("f32", (1, 2), name="part", graph=body.graph)
    sofar = model.add_parameter("f32", (1, 2), name="sofar", graph=body.graph)
    total = model.add("Add", [part, sofar], name="inside")
    result = model.add_result(total)
    map_input(part, x, {"axis": 0})
    map_input(sofar, start, {})
    add_back_edge(result, sofar)
    last, every = map_output(result, None, {}), map_output(result, None, {"axis": 0})
    model.add_result(last)
    model.add_result(every)
    irrun.redeclare(model)
    x = np.float32([[1, 2], [3, 4], [5, 6]])
    again = check(model, tmp_path)
    assert [array.tolist() for array in irrun.GraphExecutor(again).run(x).values()][1:] == [
        [[9, 12]],
        [[1, 2], [4, 6], [9, 12]],
    ]
    with pytest.raises(ValueError, match=r"`part` .* of the body has a value already$"):
        map_input(part, model.layer("x"), {})
    with pytest.raises(ValueError, match=r"`sofar` .* of the body has a back edge already$"):
        add_back_edge(result, sofar)
    with pytest.raises(ValueError, match=r"is output 0 of layer . `sums` \(TensorIterator\): remove that first$"):
        model.remove(result)
    with pytest.raises(ValueError, match=r"is mapped to layer . `part` .* of its body; remove that first$"):
        remove_input(loop, 0)
    with pytest.raises(ValueError, match=r"^output 0 of layer . `sums` .* is read by layer"):
        remove_output(loop, 0)
    with pytest.raises(ValueError, match=r"is not a Parameter of a body$"):
        map_input(model.layer("x"), start, {})
    model.remove(last.consumers[0][0])
    remove_output(loop, 0)
    assert irrun.GraphExecutor(check(model, tmp_path)).run(x)[1].tolist() == [[1, 2], [4, 6], [9, 12]]
    model.replace(part.outputs[0], sofar)
    model.remove(part)
    irrun.redeclare(model)
    remove_input(loop, 0)
    assert [entry.external for entry in body.inputs] == [0]
    assert len(loop.input_ports) == 1


def test_inputs_are_added_and_removed(tmp_path):
    made = Model()
    x = made.parameter("x", "f32", (2,))
    made.result(made.layer("Concat", [x, x], [("f32", (4,))], name="joined", axis="0")[0])
    model = irrun.read_model(made.save(tmp_path))
    joined = model.layer("joined")
    assert add_input(joined, model.add_constant(np.float32([7]))) == 2
    assert [port.id for port in joined.input_ports] == [0, 1, 2]
    assert joined.outputs[0].port.id == 3
    irrun.redeclare(model)
    assert irrun.GraphExecutor(check(model, tmp_path)).run(np.float32([1, 2]))[0].tolist() == [1, 2, 1, 2, 7]
    remove_input(joined, 0)
    irrun.redeclare(model)
    assert irrun.GraphExecutor(check(model, tmp_path)).run(np.float32([1, 2]))[0].tolist() == [1, 2, 7]


def test_purposes_are_given_once(tmp_path):
    model = irrun.read_model(LOOP)
    (loop,) = [layer for layer in model.graph.layers if layer.bodies]
    body = loop.bodies["body"]
    counter = model.add_parameter("i64", (), graph=body.graph)
    if any(entry.purpose == "current_iteration" for entry in body.inputs):
        with pytest.raises(ValueError, match=r"has its `current_iteration` already$"):
            map_purpose(counter, "current_iteration")
    else:
        map_purpose(counter, "current_iteration")
        with pytest.raises(ValueError, match=r"has its `current_iteration` already$"):
            map_purpose(counter, "current_iteration")


def test_openvino_reads_what_was_edited(model, tmp_path):
    import openvino as ov

    doubled = model.add("Multiply", [model.layer("total"), model.add_constant(np.float32(2))], name="doubled")
    model.rewire(model.layer("rectified"), 0, doubled)  # its ports declare nothing yet
    irrun.write_model(model, tmp_path / "edited.xml")
    compiled = ov.Core().compile_model(tmp_path / "edited.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    assert [array.tolist() for array in compiled(X).values()] == [[[22, 36], [26, 32]], [[36], [32]]]


def test_redeclaring_says_what_is_wrong(model):
    model.set_attribute(model.layer("halves"), "num_splits", 3)
    with pytest.raises(irrun.IRError, match=r"E401"):
        irrun.redeclare(model)


@pytest.mark.parametrize("module", ["irrun.tools.editing"])
def test_examples_of_docstrings_run(module, monkeypatch):
    monkeypatch.chdir(ROOT)
    failed, tried = doctest.testmod(import_module(module))
    assert not failed
    assert tried
