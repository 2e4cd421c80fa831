"""What a report holds of a model, beside what the tools say that it comes from."""

import json
from pathlib import Path

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.tools.report.collection import collected, subject

from .models import HOSTILE, hostile

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "samples"
CNN = SAMPLES / "cnn" / "model.xml"
LOOP = SAMPLES / "stateful-loop" / "model.xml"
OVERFLOW = SAMPLES / "f16-overflow" / "model.xml"


def test_all_of_it_is_json_and_columns_are_of_one_length():
    for path in sorted(SAMPLES.glob("*/model.xml")):
        data = collected(subject(path))
        json.dumps(data, allow_nan=False)
        layers = data["layers"]
        count = len(layers["name"])
        columns = ("id", "type", "op", "category", "line", "quiet", "inputs", "outputs", "attributes", "macs", "parent")
        assert {len(layers[column]) for column in columns} == {count}
        assert all(-1 <= parent < count + len(layers["groups"]) for parent in layers["parent"])


def test_layers_of_a_model_by_the_numbers():
    data = collected(subject(CNN, shapes={"image": (2, 3, 16, 16)}))
    layers = data["layers"]
    first = layers["type"].index("Convolution")
    assert layers["outputs"][first][0][0] == "f32[2, 8, 16, 16]"
    assert layers["macs"][first] == 2 * 8 * 16 * 16 * 3 * 9
    assert layers["category"][first] == "convolution"
    assert [layers["type"][number] for number in layers["inputs"][first][::2]] == ["Parameter", "Const"]
    assert layers["ports"]["Convolution-1"][0] == ["data", "filters"]


def test_unknown_sizes_are_told_and_taken_as_a_number():
    layers = collected(subject(CNN))["layers"]
    first = layers["type"].index("Convolution")
    assert layers["texts"][str(first)]["macs"] == "55296*image.0"
    assert layers["macs"][first] == 55296 * layers["taken"]


@pytest.mark.parametrize(("squared", "macs"), [(4, "about 7.92e+28"), (12, "depends on the data")])
def test_sizes_that_are_squared_again_and_again_are_written_short_or_not_at_all(squared, macs):
    """64 elements, 4,096, 2**24, ...: of the 12th square the digits alone would fill pages."""
    with irrun.build("m") as g:
        y = g.Parameter("f32[?]", name="x")
        for _ in range(squared):
            pairs = g.Multiply(g.Unsqueeze(y, np.int64([0])), g.Unsqueeze(y, np.int64([1])))
            y = g.Reshape(pairs, np.int64([-1]), special_zero=False)
        g.Result(g.MatMul(g.Unsqueeze(y, np.int64([0])), g.Unsqueeze(y, np.int64([1]))))
    data = collected(subject(g.model))
    json.dumps(data, allow_nan=False)
    assert {label: text for label, text, _ in data["summary"]["facts"]}["MACs"] == macs


def test_the_bodies_of_a_loop_say_how_they_are_connected():
    layers = collected(subject(LOOP))["layers"]
    (group,) = layers["groups"]
    loop = layers["type"].index("Loop")
    assert (group["kind"], group["label"], group["parent"]) == ("body", "body", loop)
    assert {layers["type"][layer] for _, layer, _ in group["into"]} == {"Parameter"}
    assert {layers["type"][layer] for _, layer, _ in group["out"]} == {"Result"}
    assert all(layers["parent"][layer] == len(layers["name"]) for _, layer, _ in group["into"])


@pytest.mark.parametrize("sample", ["cnn", "transformer-block", "f16-overflow", "stateful-loop"])
def test_the_most_memory_is_what_inspect_says(sample):
    path = SAMPLES / sample / "model.xml"
    shapes = {"image": (2, 3, 16, 16)} if sample == "cnn" else None
    found = irrun.inspect(path, shapes)
    memory = collected(subject(path, shapes=shapes))["memory"]
    assert found.peak is not None
    if isinstance(found.peak.bytes, int):
        assert max(memory["bytes"]) == found.peak.bytes
        live = [sum(size for _, _, size, begin, end in memory["tensors"] if begin <= place <= end)
                for place in range(len(memory["layers"]))]  # fmt: skip
        assert all(held >= alive for held, alive in zip(memory["bytes"], live, strict=True))


def test_sizes_that_depend_on_data_leave_memory_unknown():
    memory = collected(subject(SAMPLES / "sparse-fill-empty-rows" / "model.xml"))["memory"]
    assert "depends on the data" in memory["unknown"] or max(memory["bytes"]) > 0


def test_diagnostics_come_with_their_lines():
    data = collected(subject(ROOT / "tests" / "invalid" / "five_defects.xml"))
    first = data["diagnostics"][0]
    assert (first["code"], first["line"], first["about"]) == ("E306", 11, "1 `bounded` (Clamp)")
    excerpt = first["excerpt"]
    assert excerpt["text"][excerpt["from"] : excerpt["from"] + excerpt["length"]] == "<data"
    assert data["layers"]["name"][first["layer"]] == "bounded"
    assert data["counts"]["error"] == 4


def test_a_comparison_is_told_by_layers():
    inputs = dict(np.load(OVERFLOW.with_name("inputs.npz")))
    found = irrun.compare(OVERFLOW, "precision:f16", inputs)
    data = collected(subject(OVERFLOW), comparison=found)
    comparison, layers = data["comparison"], data["layers"]
    first = next(tensor for tensor in comparison["tensors"] if not tensor["agrees"])
    assert layers["name"][first["layer"]] == "square"
    assert comparison["agrees"] is False
    (output,) = comparison["outputs"]
    assert layers["type"][output["layer"]] == "Result"
    assert {"N200", "N202"} <= {diagnostic["code"] for diagnostic in data["diagnostics"]}


def test_what_differs_is_told_by_layers():
    other = irrun.read_model(CNN)
    other.set_attribute(next(layer for layer in other.graph.layers if layer.type == "MaxPool"), "strides", "1,1")
    data = collected(subject(CNN), difference=irrun.diff(CNN, other))
    group = next(group for group in data["difference"]["groups"] if group["kind"] == "attribute")
    ((number, name, type),) = group["places"][0]["before"]
    assert (data["layers"]["name"][number], type) == (name, "MaxPool")


def test_equal_names_are_told_apart_by_their_place(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (1, 4))
    (x,) = model.layer("Tanh", [x], [("f32", (1, 4))], name="same")
    (x,) = model.layer("Relux", [x], [("f32", (1, 4))], name="same")
    (x,) = model.layer("Relux", [x], [("f32", (1, 4))], name="same")
    model.result(x)
    diagnostics = collected(subject(model.save(tmp_path)))["diagnostics"]
    (found,) = (found for found in diagnostics if found["code"] == "E301")
    assert (found["layer"], found["layers"]) == (2, [2, 3])


def test_names_keep_nothing_that_hides_or_turns_round(tmp_path):
    layers = collected(subject(hostile(tmp_path)))["layers"]
    names = layers["name"][1 : 1 + len(HOSTILE)]
    assert all(name.isprintable() and name.strip() and len(name) <= 600 for name in names)
    assert names[0] == HOSTILE["markup"]
    assert "\\u202e" in names[list(HOSTILE).index("turned")]


def test_a_model_that_cannot_be_read_has_no_report(tmp_path):
    path = tmp_path / "broken.xml"
    path.write_text("<net><layers>")
    with pytest.raises(irrun.IRError):
        subject(path)
