"""What other tools have written as the other side: names, steps, formats, and files that are not what they say."""

import base64
import io
import json
from pathlib import Path

import numpy as np
import pytest
from ir_builder import Model as Builder

import irrun
from irrun.diagnostics import InputError
from irrun.run.arrays import read_npz, write_npz
from irrun.tools.compare.sides.contract import SideFailed
from irrun.tools.compare.sides.opening import open_side
from irrun.tools.compare.sides.recordings import read_recorded

SAMPLES = Path(__file__).parents[3] / "samples"
F32 = np.float32


@pytest.fixture
def model(tmp_path):
    """`y` is twice the absolute value of `x`; its tensor is called `doubled`."""
    b = Builder()
    x = b.parameter("x", "f32", (2,))
    (size,) = b.layer("Abs", [x], [("f32", (2,))], name="size")
    (y,) = b.layer("Multiply", [size, b.constant(F32([2]))], [("f32", (2,))], name="y", names=["doubled"])
    b.result(y)
    folder = tmp_path / "model"
    folder.mkdir()
    return irrun.read_model(b.save(folder))


STEP = {"x": F32([1, -2])}


def test_a_dump_of_irrun_and_its_outputs(tmp_path):
    model = irrun.read_model(SAMPLES / "stateful-loop" / "model.xml")
    inputs = read_npz(SAMPLES / "stateful-loop" / "inputs.npz")
    dump = irrun.Dump()
    results = irrun.GraphExecutor(model, engine="reference").run(inputs, observer=dump)
    dump.save(tmp_path / "dump.npz")
    side = open_side(str(tmp_path / "dump.npz"), model)
    (observed,) = side.observe([inputs])
    assert set(observed.tensors) == set(dump)
    assert any("/body[" in key for key in observed.tensors)
    for key, array in results.items():
        np.testing.assert_array_equal(observed.outputs[key], array)
    (alone,) = side.observe([inputs], ["Loop_13276:0"])
    assert list(alone.tensors) == ["Loop_13276:0"]


@pytest.mark.parametrize("type", ["f16", "bf16"])
def test_a_dump_of_what_was_computed_in_f32_is_as_precise_as_outputs_of_fewer_digits(type, tmp_path):
    with irrun.build("few digits", opset=13) as g:
        x = g.Parameter(f"{type}[4, 64]", name="x")
        g.Result(g.MatMul(x, g.Convert(np.random.default_rng(0).normal(size=(64, 32)), destination_type=type)))
    inputs = irrun.GraphExecutor(g.model).random_inputs(0)
    dump = irrun.Dump()
    irrun.GraphExecutor(g.model).run(inputs, observer=dump)
    dump.save(tmp_path / "dump.npz")
    assert irrun.compare(g.model, str(tmp_path / "dump.npz"), inputs).agrees


def test_names_of_tensors_outputs_and_places(model, tmp_path):
    path = tmp_path / "other.npz"
    for name in ("doubled", "y", "y:0", "output_0"):
        write_npz(path, {name: F32([2, 4]), "size": F32([1, 2]), "nobody's": F32([0])})
        side = open_side(str(path), model)
        (observed,) = side.observe([STEP])
        assert {key: array.tolist() for key, array in observed.outputs.items()} == {"doubled": [2, 4]}
        assert {key: array.tolist() for key, array in observed.tensors.items()} == {"y:0": [2, 4], "size:0": [1, 2]}
        assert side.unknown == {"nobody's"}
        assert (side.kind, side.precise(), side.runtime()) == ("recorded", None, {})
    write_npz(path, {"doubled": F32([2, 4])})
    side = open_side(str(path), model)
    side.observe([STEP])
    assert side.untapped == {"size:0": "it was not recorded"}
    with pytest.raises(SideFailed, match="it was recorded"):
        side.cut([STEP], ["size:0"])


def test_names_that_are_nothing_of_the_model(model, tmp_path):
    write_npz(tmp_path / "other.npz", {"a": F32([1]), "b": F32([1])})
    with pytest.raises(
        InputError, match="has no array that goes by the name of a tensor of the model; it has `a`, `b`"
    ):
        open_side(str(tmp_path / "other.npz"), model)


def test_steps_before_names(model, tmp_path):
    path = tmp_path / "steps.npz"
    write_npz(path, {"turn_1/size": F32([1, 2]), "turn_10/size": F32([3, 4]), "turn_9/size": F32([5, 6])})
    side = open_side(str(path), model)
    assert [o.tensors["size:0"].tolist() for o in side.observe([STEP] * 3)] == [[1, 2], [5, 6], [3, 4]]
    with pytest.raises(InputError, match="has 3 steps, but 4 are compared"):
        side.outputs([STEP] * 4)


def encoded(array):
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return {"array": base64.b64encode(stream.getvalue()).decode(), "polygraphy_class": "ndarray"}


def polygraphy(*iterations):
    """What `polygraphy run --save-outputs` writes."""
    listed = [
        {
            "outputs": {
                name: {"values": encoded(array), "polygraphy_class": "LazyArray"} for name, array in made.items()
            },
            "runtime": 0.1,
            "runner_name": "onnxrt",
            "polygraphy_class": "IterationResult",
        }
        for made in iterations
    ]
    return {"lst": [["onnxrt", listed]], "polygraphy_class": "RunResults"}


def test_iterations_of_polygraphy(model, tmp_path):
    path = tmp_path / "outputs.json"
    path.write_text(json.dumps(polygraphy({"doubled": F32([2, 4])}, {"doubled": F32([6, 8])})))
    side = open_side(str(path), model)
    assert [outputs["doubled"].tolist() for outputs in side.outputs([STEP, STEP])] == [[2, 4], [6, 8]]
    path.write_text(json.dumps([{"size": encoded(F32([1, 2]))}]))  # as --save-inputs
    assert open_side(str(path), model).observe([STEP])[0].tensors["size:0"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("{}", "has no outputs as Polygraphy's --save-outputs writes them"),
        ('{"lst": [["r", [{"outputs": []}]]]}', "has no outputs"),
        ('[{"x": {"array": 3}}]', "`x` of .* is no array as Polygraphy writes them"),
        ('[{"x": {"array": "%%"}}]', "`x` of .* is no base64"),
        ('[{"x": {"array": "AAAA"}}]', r"`x` of .* is no array in \.npy format"),
    ],
)
def test_json_that_is_not_polygraphys(text, message, tmp_path):
    path = tmp_path / "outputs.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_recorded(path)


def test_nothing_is_unpickled(tmp_path):
    stream = io.BytesIO()
    np.save(stream, np.array([{}], object), allow_pickle=True)
    path = tmp_path / "outputs.json"
    path.write_text(json.dumps([{"x": {"array": base64.b64encode(stream.getvalue()).decode()}}]))
    with pytest.raises(InputError, match="Python objects, which irrun never unpickles"):
        read_recorded(path)


def safetensors(header, data):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def test_safetensors(tmp_path):
    bf16 = irrun.spec.numpy_dtype("bf16")
    data = F32([1.5, -2]).tobytes() + F32([3, 4]).astype(bf16).tobytes()
    header = {
        "a": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]},
        "step1/b": {"dtype": "BF16", "shape": [2], "data_offsets": [8, 12]},
        "none": {"dtype": "I64", "shape": [0, 3], "data_offsets": [12, 12]},
        "__metadata__": {"format": "pt"},
    }
    path = tmp_path / "a.safetensors"
    path.write_bytes(safetensors(header, data))
    (step,) = read_recorded(path)
    assert step["a"].tolist() == [[1.5, -2]]
    assert (step["b"].dtype, step["b"].tolist()) == (bf16, [3, 4])
    assert step["none"].shape == (0, 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no dump"),
        (b"\xff" * 16, "is no dump"),
        (safetensors([], b""), "is no dump"),
        (
            safetensors({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 8]}}, bytes(8)),
            "not where it says",
        ),
        (
            safetensors({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, bytes(4)),
            "not where it says",
        ),
        (
            safetensors({"a": {"dtype": "Q", "shape": [2], "data_offsets": [0, 8]}}, bytes(8)),
            "the type 'Q'",
        ),
        (safetensors({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 8]}}, bytes(8)), "no good shape"),
        (safetensors({"a": 3}, b""), "the type None"),
    ],
)
def test_safetensors_that_are_none(content, message, tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_recorded(path)


def test_folders_of_npy_files(model, tmp_path):
    folder = tmp_path / "dump"
    for step in (0, 1):
        (folder / f"step{step}").mkdir(parents=True)
        np.save(folder / f"step{step}" / "size.npy", F32([step, 1]))
    side = open_side(str(folder), model)
    assert [o.tensors["size:0"].tolist() for o in side.observe([STEP, STEP])] == [[0, 1], [1, 1]]
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match=r"has no \.npy, \.pb or \.safetensors files in it"):
        open_side(str(empty), model)


def test_test_data_of_onnx(model, tmp_path):
    pytest.importorskip("onnx.helper", reason="onnx reads .pb files")  # a folder of tests is called onnx, too
    onnx = pytest.importorskip("onnx")
    folder = tmp_path / "data"
    for step in (0, 1):
        (folder / f"test_data_set_{step}").mkdir(parents=True)
        for name, array in (("output_0", F32([2, step])), ("input_0", F32([1, 1]))):
            content = onnx.numpy_helper.from_array(array, "any").SerializeToString()
            (folder / f"test_data_set_{step}" / f"{name}.pb").write_bytes(content)
    side = open_side(str(folder), model)
    assert [outputs["doubled"].tolist() for outputs in side.outputs([STEP, STEP])] == [[2, 0], [2, 1]]
    (tmp_path / "broken.pb").write_bytes(b"\xff\xff")
    with pytest.raises(InputError, match="is no ONNX tensor"):
        read_recorded(tmp_path / "broken.pb")


def test_a_file_of_another_kind(model, tmp_path):
    path = tmp_path / "outputs.txt"
    path.write_text("1 2 3")
    with pytest.raises(InputError, match=r"is none of \.npz"):
        open_side(str(path), model)


def test_a_dump_of_irrun_is_read_step_by_step_and_array_by_array(tmp_path, monkeypatch):
    from irrun.tools.compare.sides.recordings import read_recorded
    from irrun.tools.watch.files import _NpzReader

    np.savez(tmp_path / "d.npz", **{"a:0": np.float32([1]), "a:0@step2": np.float32([2]), "b:0@step2": np.float32([3])})
    read = []
    plain = _NpzReader.read
    monkeypatch.setattr(_NpzReader, "read", lambda self, key: read.append(key) or plain(self, key))
    first, second = read_recorded(tmp_path / "d.npz")
    assert (list(first), sorted(second), read) == (["a:0"], ["a:0", "b:0"], [])
    assert (first["a:0"].tolist(), second["a:0"].tolist()) == ([1], [2])
    assert read == ["a:0", "a:0@step2"]
