"""Netron shows beside each layer what irrun knows of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.tools.compare.metrics import measure
from irrun.tools.viewers.facts import viewed
from irrun.tools.viewers.netron import attachment, write_attachment

from .models import LINES, MARKUP, SLASHES, checked, long, strange

CNN = Path(__file__).parents[3] / "samples/cnn/model.xml"
DEFECTS = Path(__file__).parents[2] / "invalid/five_defects.xml"


def entries(found: dict, kind: str, target: str) -> dict:
    both = [*found["metadata"], *found["metrics"]]
    return {entry["name"]: entry["value"] for entry in both if (entry["kind"], entry["target"]) == (kind, target)}


def shown(found: dict, name: str, graph: int = 0) -> list[dict]:
    return [node["shown"] for node in found["graphs"][graph]["nodes"] if node["name"] == name]


@pytest.fixture(scope="module")
def measured():
    """A network with the profile of two runs, and a comparison with an engine."""
    profile = irrun.Profile()
    executor = irrun.GraphExecutor(CNN, engine="numpy")
    inputs = executor.random_inputs(7)
    for _ in range(2):
        executor.run(inputs, profile=profile)
    comparison = irrun.compare(CNN, "precision:f16", inputs)
    return viewed(irrun.validate(CNN, shapes={"image": (1, 3, 16, 16)}), profile, comparison)


def test_netron_shows_shapes_costs_times_and_errors(netron, measured, tmp_path):
    write_attachment(measured, tmp_path / "model.json")
    found = netron(CNN, tmp_path / "model.json")
    assert (found["attached"], found["format"]) == (True, "OpenVINO IR")
    (convolution,) = shown(found, "Convolution_47")
    assert convolution["inferred output"] == "f32[1, 8, 16, 16]"
    assert (convolution["line"], convolution["MACs"], convolution["bytes"]) == (26, 55296, 12128)
    assert convolution["computed by"] == "numpy"
    assert 0 < convolution["time, ms"] < 1e4
    assert 1e-5 < convolution["own error"] < 1e-2
    assert 1e-5 < convolution["accumulated error"] < 1e-2
    assert found["graphs"][0]["values"]["2:2"] == {"inferred": "f32[1, 8, 16, 16]"}
    assert found["graphs"][0]["values"]["0:0"] == {"inferred": "f32[1, 3, 16, 16]"}
    model = found["model"]
    assert (model["layers"], model["MACs"]) == (19, 129184)
    assert model["time, ms"] > 0


def test_layers_that_are_computed_together_say_with_which(measured):
    found = attachment(measured)
    company = {facts.layer.name: facts.together.name for facts in measured.layers if facts.together is not None}
    assert company
    for name, other in company.items():
        assert entries(found, "node", name)["computed with"] == other
        assert "time, ms" not in entries(found, "node", name)


def test_what_several_layers_are_called_says_which_one_it_is_about(netron, tmp_path):
    path = strange(tmp_path)
    write_attachment(viewed(checked(path)), tmp_path / "strange.json")
    found = netron(path, tmp_path / "strange.json")
    (alike,) = shown(found, "alike")
    assert alike["inferred output of alike"] == "f32[4, 2]"
    assert alike["inferred output of each/body/alike"] == "f32[1, 2]"
    first, second = shown(found, "twin")
    assert first == second
    assert {"line of twin#9", "line of twin#10", "W903 of twin#10"} <= first.keys()
    assert [node["name"] for node in found["graphs"][1]["nodes"]][:3] == ["Parameter_0", "alike", "inside"]
    assert shown(found, "inside", graph=1)[0]["inferred output"] == "f32[1, 2]"
    inside, outside = found["graphs"][1]["values"]["1:1"], found["graphs"][0]["values"]["1:1"]
    assert inside == outside == {"inferred of each": "f32[4, 2]"}  # Netron takes both for one


def test_names_that_are_no_good_find_their_layers(netron, tmp_path):
    path = strange(tmp_path)
    write_attachment(viewed(checked(path)), tmp_path / "strange.json")
    found = netron(path, tmp_path / "strange.json")
    for name in (MARKUP, LINES, SLASHES):
        assert shown(found, name)[0]["inferred output"] == "f32[4, 3]"
    assert shown(found, "__proto__")[0]["inferred output"] == "f32[4, 2]"


def test_a_model_of_seven_thousand_layers(netron, tmp_path):
    path = long(tmp_path)
    write_attachment(viewed(checked(path)), tmp_path / "long.json")
    found = netron(path, tmp_path / "long.json")
    assert len(found["graphs"][0]["nodes"]) == 7002  # all but the Parameter; the weights are read more than once
    assert shown(found, "__module.model.layers.999.mlp/aten::linear/MatMul")[0]["MACs"] == 64


def test_diagnostics_stand_at_their_layers():
    found = attachment(viewed(irrun.validate(DEFECTS)))
    texts = [entry["value"] for entry in found["metadata"] if entry["name"] == "E306"]
    assert texts
    assert texts[0].startswith("Clamp-1 lacks its required attribute `min`")


def test_what_is_wrong_with_a_layer_without_a_name_is_said_of_the_model(tmp_path):
    model = Model()
    (y,) = model.layer("Clamp", [model.parameter("x", "f32", (2,))], [("f32", (2,))], name="clamp")
    model.result(y)
    path = model.save(tmp_path)
    path.write_text(path.read_text().replace('name="clamp"', 'name=""'))
    found = attachment(viewed(irrun.validate(path)))
    assert "E306 of #1" in entries(found, "model", "m")
    assert not entries(found, "node", "")


def test_an_error_that_is_no_number_is_text(measured):
    layer = next(facts for facts in measured.layers if facts.own is not None)
    bad = replace(layer.own, metrics=measure(np.float32([np.nan, 1]), np.float32([0, 1])))
    other = replace(layer.own, metrics=measure(np.float32([1]), np.float32([0, 1])))
    changed = replace(measured, layers=[replace(layer, own=bad, accumulated=other)])
    found = entries(json.loads(json.dumps(attachment(changed), allow_nan=False)), "node", layer.layer.name)
    assert (found["own error"], found["accumulated error"]) == ("not finite", "another shape or type")


def test_integers_that_javascript_would_round_are_text(measured):
    layer = measured.layers[2]
    cost = replace(layer.cost, macs=2**53 + 1)
    found = attachment(replace(measured, layers=[replace(layer, cost=cost)]))
    assert entries(found, "node", "Convolution_47")["MACs"] == "9,007,199,254,740,993"


def test_a_file_without_a_graph_is_refused(tmp_path):
    (tmp_path / "broken.xml").write_text("<net")
    with pytest.raises(ValueError, match=r"^there is no graph to show: .*broken\.xml:1:"):
        viewed(irrun.validate(tmp_path / "broken.xml"))
