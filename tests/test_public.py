"""The public library: what is exported, how models and arrays are given, what comes back, and what is said."""

import doctest
import io
import os
import pickle
import subprocess
import sys
import zipfile
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from ir_builder import Model

import irrun
import irrun.spec.registry
from irrun.ir import reader
from irrun.ir.weights import MAX_COPIED

ROOT = Path(__file__).parent.parent
CNN = ROOT / "samples" / "cnn" / "model.xml"
LOOP = ROOT / "samples" / "stateful-loop" / "model.xml"
DEFECTS = ROOT / "tests" / "invalid" / "five_defects.xml"


@pytest.fixture
def chain(tmp_path):
    """Two inputs, x of f32[N, 2] and y of f32[2], and two results: x + y, and its half, which is read of a Split."""
    model = Model()
    x = model.parameter("x", "f32", ("?", 2))
    y = model.parameter("y", "f32", (2,))
    (total,) = model.layer("Add", [x, y], [("f32", (-1, 2))], name="total", names=["sum"])
    axis = model.constant(np.int64(1))
    halves = model.layer(
        "Split", [total, axis], [("f32", (-1, 1))] * 2, name="halves", names=["left", "right"], num_splits="2"
    )
    model.result(total)
    model.result(halves[1])
    return model.save(tmp_path)


X = np.float32([[1, 2], [3, 4]])
Y = np.float32([10, 20])


DOCUMENTED = [
    "irrun",
    "irrun.check.deviations",
    "irrun.check.validate",
    "irrun.ir.reader",
    "irrun.tools.watch.dump",
    "irrun.tools.compare.comparison",
    "irrun.run.executor",
    "irrun.spec",
    "irrun.spec.attributes",
    "irrun.spec.dims",
    "irrun.spec.dtypes",
    "irrun.spec.op",
    "irrun.spec.patterns",
    "irrun.spec.registry",
]


def test_all_that_is_public_can_be_imported_and_has_a_docstring():
    for name in irrun.__all__:
        assert getattr(irrun, name).__doc__, name
        assert name in dir(irrun)
    with pytest.raises(AttributeError, match="module 'irrun' has no attribute 'validte'"):
        irrun.validte  # noqa: B018


@pytest.mark.parametrize("module", DOCUMENTED)
def test_examples_of_docstrings_run(module, monkeypatch):
    monkeypatch.chdir(ROOT)
    own = irrun.spec.registry._registry.__wrapped__()  # what an example registers is gone with it
    monkeypatch.setattr(irrun.spec.registry, "registry", lambda: own)
    failed, tried = doctest.testmod(import_module(module))
    assert not failed
    assert tried


def test_help_reads_as_documentation():
    text = subprocess.run(
        [sys.executable, "-c", "import irrun; help(irrun)"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    assert "Validate and run OpenVINO IR models" in text
    for name in ("GraphExecutor", "validate", "read_model", "TensorInfo"):
        assert name in text


def test_help_of_the_spec_reads_as_documentation():
    text = subprocess.run(
        [sys.executable, "-c", "import irrun.spec; help(irrun.spec)"], capture_output=True, text=True, check=True
    ).stdout
    assert "An op is a declaration, a kernel, and a rule" in text
    assert text.count(">>> ") >= 30


def test_importing_loads_no_numpy():
    script = "import sys, irrun; irrun.Diagnostic; dir(irrun); sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_inputs_and_outputs_are_described(chain):
    executor = irrun.GraphExecutor(chain)
    x, y = executor.inputs
    assert (x.name, x.type, x.shape, x.rank, x.layout) == ("x", "f32", ("x.0", 2), 2, None)
    assert x.dtype == np.float32
    assert (str(y), repr(y)) == ("f32[2]", "TensorInfo('y', f32[2])")
    total, right = executor.outputs
    assert (total.shape, right.shape) == (("x.0", 2), ("x.0", 1))
    assert "sum" in total.names
    assert executor.model.inputs == executor.inputs
    assert [output.shape for output in executor.model.outputs] == [("?", 2), ("?", 1)]
    assert repr(executor.model).startswith("<Model ")
    assert repr(executor).startswith("<GraphExecutor of ")


def test_layouts_name_the_sizes_of_inputs(tmp_path):
    text = CNN.read_text()
    (image,) = irrun.read_model(CNN).inputs
    assert image.name in text
    assert image.shape == (image.shape[0], 3, 16, 16)


def test_variables_are_described():
    executor = irrun.GraphExecutor(LOOP)
    (variable,) = executor.variables
    assert variable.name in executor.session().variables or variable.type == "f32"
    assert executor.variables == executor.model.variables


def test_a_type_that_is_not_known_has_no_dtype():
    with pytest.raises(TypeError, match="`x` has no element type of its own"):
        irrun.TensorInfo("x", ("x",), "dynamic", None).dtype  # noqa: B018
    assert str(irrun.TensorInfo("x", ("x",), "dynamic", None)) == "dynamic[...]"


def test_results_go_by_any_tensor_name_and_by_number(chain):
    outputs = irrun.GraphExecutor(chain).run([X, Y])
    first = next(iter(outputs))
    assert outputs[0] is outputs[first]
    assert outputs[-1] is outputs[1]
    assert outputs["sum"] is outputs[0]
    assert dict(outputs).keys() == set(outputs)
    with pytest.raises(KeyError, match=f"there is no output 'missing'; the outputs are `{first}`"):
        outputs["missing"]
    with pytest.raises(KeyError, match="there is no output 2"):
        outputs[2]
    again = pickle.loads(pickle.dumps(outputs))
    np.testing.assert_array_equal(again["sum"], outputs["sum"])


@pytest.mark.parametrize("given", [((), {"x": X, "y": Y}), (([X],), {"y": Y}), (({"x": X},), {"y": Y})])
def test_inputs_are_keywords_too(chain, given):
    positional, named = given
    np.testing.assert_array_equal(irrun.GraphExecutor(chain).run(*positional, **named)["sum"], X + Y)


def test_an_array_is_one_input(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (2, 2))
    model.result(model.layer("Abs", [x], [("f32", (2, 2))])[0])
    executor = irrun.GraphExecutor(model.save(tmp_path))
    np.testing.assert_array_equal(executor.run(-X)[0], X)
    np.testing.assert_array_equal(executor.session().run(x=-X)[0], X)


def test_an_array_alone_leaves_the_second_input_missing(chain):
    with pytest.raises(irrun.InputError, match=r"^no array for input `y` \(f32\[2\]\)$"):
        irrun.GraphExecutor(chain).run(X)


def test_all_that_is_wrong_with_inputs_is_said_at_once(chain):
    with pytest.raises(irrun.InputError) as caught:
        irrun.GraphExecutor(chain).run({"x": X.astype(np.float64)[:, :1], "z": Y})
    assert len(caught.value.problems) == 4
    text = str(caught.value)
    assert "`z` is no input" in text
    assert "no array for input `y`" in text
    assert "input `x` has shape [2, 1], expected [?, 2]: axis 1 has 1 elements, not 2" in text
    assert "input `x` is f64, expected f32" in text
    assert pickle.loads(pickle.dumps(caught.value)).problems == caught.value.problems


@pytest.mark.parametrize(
    ("shape", "hint"),
    [
        ((1, 8, 6, 3), "are its axes in another order? array.transpose(0, 3, 1, 2) fits"),
        ((3, 8, 6), "is the batch missing? array[np.newaxis] has one"),
        ((1, 1, 3, 8, 6), "is the batch too many? array[0] has none"),
        ((1, 3, 6, 8), "are its axes in another order? array.transpose(0, 1, 3, 2) fits"),
        ((1, 3, 9, 9), "axis 2 has 9 elements, not 8"),
    ],
)
def test_a_wrong_shape_comes_with_a_hint(shape, hint, tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (1, 3, 8, 6))
    model.result(model.layer("Abs", [x], [("f32", (1, 3, 8, 6))])[0])
    executor = irrun.GraphExecutor(model.save(tmp_path))
    with pytest.raises(irrun.InputError) as caught:
        executor.run(np.zeros(shape, np.float32))
    assert str(caught.value).endswith(hint)


def test_a_part_of_a_model_is_computed_up_to_any_tensor(chain):
    executor = irrun.GraphExecutor(chain)
    outputs = executor.run([X, Y], outputs=["halves:0", "total"])
    assert list(outputs) == ["halves:0", "total"]
    np.testing.assert_array_equal(outputs["halves:0"], X[:, :1] + Y[:1])
    np.testing.assert_array_equal(outputs["total"], X + Y)
    np.testing.assert_array_equal(executor.run(x=X, outputs="x")["x"], X)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("totla", r"^`totla` is no tensor of the model; did you mean `total`\?$"),
        ("", "^`` is no tensor of the model$"),
    ],
)
def test_a_part_that_is_not_there_is_refused(chain, name, message):
    with pytest.raises(ValueError, match=message):
        irrun.GraphExecutor(chain).run([X, Y], outputs=[name])
    with pytest.raises(TypeError, match="`outputs` are names of tensors, but 0 is int"):
        irrun.GraphExecutor(chain).run([X, Y], outputs=[0])


def test_a_part_needs_only_its_own_inputs_and_leaves_variables_as_they_are():
    executor = irrun.GraphExecutor(LOOP)
    x = np.array([[0.1, -0.2, 0.3, 0.4]], np.float32)
    first = executor.run([x, 3])["hidden"]
    executor.reset_state()
    name = executor.outputs[0].name
    for _ in range(2):
        np.testing.assert_array_equal(executor.run([x, 3], outputs=[name])[name], first)


def test_models_come_from_bytes_files_and_archives(tmp_path):
    content, weights = CNN.read_bytes(), CNN.with_suffix(".bin").read_bytes()
    executor = irrun.GraphExecutor(CNN)
    inputs = executor.random_inputs(7)
    expected = executor.run(inputs)[0]
    archive = tmp_path / "model.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("model.xml", content)
        file.writestr("model.bin", weights)
    with (
        CNN.open("rb") as xml,
        CNN.with_suffix(".bin").open("rb") as bin,
        zipfile.ZipFile(archive) as zipped,
        zipped.open("model.xml") as member,
        zipped.open("model.bin") as values,
    ):
        for source in (
            (content, weights),
            (bytearray(content), memoryview(weights)),
            (io.BytesIO(content), io.BytesIO(weights)),
            (xml, bin),
            (member, values),
            (str(CNN), weights),
            (content, CNN.with_suffix(".bin")),
        ):
            made = irrun.GraphExecutor(*source)
            np.testing.assert_array_equal(made.run(inputs)[0], expected)


def test_large_weights_of_a_file_are_mapped_and_those_of_bytes_not_copied(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (MAX_COPIED,))
    model.result(model.layer("Add", [x, model.constant(np.ones(MAX_COPIED, np.float32))], [("f32", (MAX_COPIED,))])[0])
    path = model.save(tmp_path)
    held = path.with_suffix(".bin").read_bytes()
    with path.with_suffix(".bin").open("rb") as file:
        mapped = irrun.read_model(path, file)
    loaded = irrun.read_model(path, held)
    for found in (mapped, loaded):
        (layer,) = [layer for layer in found.graph.layers if layer.type == "Const"]
        array = found.weights.constant(layer)
        assert not array.flags.owndata
        assert not array.flags.writeable
        assert array.sum() == MAX_COPIED
    assert np.shares_memory(array, np.frombuffer(held, np.uint8))


def test_a_text_from_memory_has_no_weights_beside_it(monkeypatch):
    monkeypatch.chdir(CNN.parent)
    report = irrun.validate(CNN.read_bytes())
    assert [found.code for found in report.errors] == ["E501"]
    assert "no weights are given" in report.errors[0].message
    assert "give its .bin, too, as a path" in report.errors[0].help
    assert str(report.path) == "<model>"


def test_a_file_of_text_is_refused():
    with pytest.raises(TypeError, match="a file that gives str: open it in binary mode"):
        irrun.read_model(io.StringIO("<net/>"))
    with pytest.raises((TypeError, AttributeError)):
        irrun.read_model(7)


def test_text_of_a_report_is_what_the_command_prints():
    report = irrun.validate(DEFECTS)
    printed = subprocess.run(
        [sys.executable, "-m", "irrun", "validate", str(DEFECTS)], capture_output=True, text=True, check=False
    ).stdout
    assert str(report) == printed.rstrip("\n")
    assert '"version": "2.1.0"' in report.render("sarif")
    with pytest.raises(ValueError, match="there is no format 'html'; there are text, concise"):
        report.render("html")


def test_text_of_an_error_has_notes_and_help():
    with pytest.raises(irrun.IRError) as caught:
        irrun.GraphExecutor(ROOT / "tests" / "invalid" / "elements_that_do_not_fit.xml")
    text = str(caught.value)
    assert "error[E401]: Reshape-1 C4" in text
    assert "\n  note: in layer 4 `unflattened` (Reshape)" in text
    assert "from layer 2 `shape` (ShapeOf) at line 12\n" in text
    assert "\n  help: data has as many elements as the output" in text
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), type(again), again.diagnostics) == (text, irrun.IRError, caught.value.diagnostics)


def _outputs(executor):
    return os.getpid(), executor.run(executor.random_inputs(7))[0]


def _checked(path):
    return irrun.validate(path)


def test_models_executors_and_reports_go_to_other_processes():
    executor = irrun.GraphExecutor(CNN, engine="reference", threads=1)
    here = executor.run(executor.random_inputs(7))[0]
    from_bytes = irrun.GraphExecutor(CNN.read_bytes(), CNN.with_suffix(".bin").read_bytes(), engine="reference")
    with ProcessPoolExecutor(1) as pool:
        for made in (executor, from_bytes):
            process, there = pool.submit(_outputs, made).result()
            assert process != os.getpid()
            np.testing.assert_array_equal(there, here)
        report = pool.submit(_checked, DEFECTS).result()
    assert str(report) == str(irrun.validate(DEFECTS))
    again = pickle.loads(pickle.dumps(executor))
    assert again._options == executor._options
    assert pickle.loads(pickle.dumps(irrun.read_model(CNN))).inputs == executor.model.inputs


def test_a_pickled_model_whose_file_is_gone_says_so(chain):
    data = pickle.dumps(irrun.read_model(chain))
    chain.unlink()
    with pytest.raises(irrun.IRError, match="E102"):
        pickle.loads(data)


def test_a_dump_keeps_what_it_is_asked_for(chain, tmp_path):
    executor = irrun.GraphExecutor(chain)
    dump = irrun.Dump(layers="hal*")
    executor.run([X, Y], observer=dump)
    assert list(dump) == ["halves:0", "halves:1"]
    np.testing.assert_array_equal(dump["halves:1"], X[:, 1:] + Y[1:])
    dump.save(tmp_path / "dump.npz")
    with np.load(tmp_path / "dump.npz") as saved:
        np.testing.assert_array_equal(saved["halves:0"], dump["halves:0"])
    dump.clear()
    assert len(dump) == 0
    kept = irrun.Dump(types=["Add"])
    executor.run([X, Y], observer=kept)
    assert list(kept) == ["total:0"]


def test_a_dump_names_bodies_and_iterations():
    executor = irrun.GraphExecutor(LOOP)
    dump = irrun.Dump()
    executor.run([np.zeros((1, 4), np.float32), 2], observer=dump)
    inside = [name for name in dump if "/" in name]
    assert inside
    assert any("/body[1]/" in name for name in inside)


def test_the_reader_takes_a_content_with_a_path_for_it():
    model, found = reader.read("<stdin>", None, DEFECTS.read_bytes())
    assert model is not None
    assert {diagnostic.file for diagnostic in found} == {"<stdin>"}


def test_results_are_found_by_all_their_names_whichever_way_they_are_asked_for(chain):
    results = irrun.GraphExecutor(CNN).run(np.zeros((1, 3, 16, 16), np.float32))
    (name,) = results
    assert name in results
    assert 0 in results
    assert 1 not in results
    assert "nope" not in results
    assert results.get(0) is results[name]
    assert results.get("nope") is None
    other = next(alias for alias in results._aliases if alias != name)
    assert other in results
    assert results.get(other) is results[name]


def test_arrays_go_by_position_in_a_mapping_too():
    executor, image = irrun.GraphExecutor(CNN), np.ones((1, 3, 16, 16), np.float32)
    assert np.array_equal(executor.run({0: image})[0], executor.run(image)[0])


def test_what_is_no_array_and_no_model_is_said():
    executor = irrun.GraphExecutor(CNN)
    with pytest.raises(irrun.InputError, match="the inputs are NoneType, expected arrays by name, a list or one array"):
        executor.run(None)
    with pytest.raises(irrun.InputError, match="its rank is 0, not 4"):
        executor.run(1.0)
    with pytest.raises(TypeError, match="int is no file: give a path, bytes or an open binary file"):
        irrun.validate(5)
    with pytest.raises(TypeError, match="a text is no path: give what a file holds as bytes"):
        irrun.GraphExecutor(CNN.read_text())


@pytest.mark.parametrize("shape", ["35", 5])
def test_a_shape_is_a_sequence_of_sizes(shape):
    with pytest.raises(ValueError, match=f"the shape of `image` is {shape!r}, expected a sequence of sizes"):
        irrun.validate(CNN, shapes={"image": shape})


def test_shapes_are_those_of_named_inputs():
    told = r"`shapes` is \[1, 3\], expected shapes by names of inputs, such as \{'x': \('\?', 3\)\}"
    for call in (
        irrun.validate,
        irrun.inspect,
        lambda path, shapes: irrun.GraphExecutor(path).random_inputs(0, shapes),
    ):
        with pytest.raises(TypeError, match=told):
            call(CNN, shapes=[1, 3])
