"""Model Explorer lays out the graphs, and colours their nodes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import irrun
from irrun.tools.compare.metrics import measure
from irrun.tools.viewers.facts import viewed
from irrun.tools.viewers.model_explorer.graphs import graphs, write_graphs
from irrun.tools.viewers.model_explorer.node_data import node_data, write_node_data
from irrun.tools.viewers.scopes import MAX_DEPTH, scopes

from .models import LINES, MARKUP, SLASHES, checked, long, strange

CNN = Path(__file__).parents[3] / "samples/cnn/model.xml"

CONVERT = """\
import json, sys
from model_explorer.extension_manager import ExtensionManager

manager = ExtensionManager(["irrun.tools.viewers.model_explorer"])
manager.load_extensions()
command = {"extensionId": "irrun", "cmdId": "convert", "modelPath": sys.argv[1], "settings": {}}
json.dump(manager.run_cmd(command), open(sys.argv[2], "w"))
"""
"""What the server does with a model; its own adapters are loaded as well."""


@pytest.fixture
def explored(model_explorer, tmp_path):
    """What Model Explorer makes of a model."""

    def explore(path: Path, *group: str) -> dict:
        write_graphs(viewed(checked(path)), tmp_path / "graphs.json")
        return model_explorer(tmp_path / "graphs.json", *group)

    return explore


def named(graph: dict, name: str) -> dict:
    (node,) = (node for node in graph["nodes"].values() if node["attrs"]["name"] == name)
    return node


def test_model_explorer_lays_out_a_network_with_types_on_its_edges(explored):
    graph = explored(CNN)["model.xml"]
    assert (len(graph["nodes"]), graph["placed"], graph["groups"]) == (19, 19, [])
    assert graph["root"] == {
        "layers": "19",
        "MACs": "129184*image.0",
        "bytes": "83192*image.0 + 6224",
    }
    convolution = named(graph, "Convolution_47")
    assert (convolution["label"], convolution["attrs"]["op"]) == ("Convolution", "Convolution-1")
    assert convolution["attrs"]["pads_begin"] == "1, 1"
    assert convolution["outputsMetadata"]["0"] == {"shape": "f32[image.0, 8, 16, 16]"}
    assert [convolution["inputsMetadata"][number]["__tensor_tag"] for number in "01"] == ["data", "filters"]
    assert [(edge["sourceNodeId"], edge["targetNodeInputId"]) for edge in convolution["incomingEdges"]] == [
        ("0", "0"),
        ("1", "1"),
    ]


def test_bodies_are_graphs_that_their_layers_lead_to(explored, tmp_path):
    found = explored(strange(tmp_path))
    assert list(found) == [
        "strange.xml",
        "strange.xml/each/body",
        "strange.xml/choice/then_body",
        "strange.xml/choice/then_body/nested/then_body",
        "strange.xml/choice/then_body/nested/else_body",
        "strange.xml/choice/else_body",
    ]
    assert named(found["strange.xml"], "choice")["subgraphIds"] == [
        "strange.xml/choice/then_body",
        "strange.xml/choice/else_body",
    ]
    assert named(found["strange.xml/each/body"], "alike")["outputsMetadata"]["0"]["shape"] == "f32[1, 2]"
    for graph in found.values():
        assert graph["placed"] == len(graph["nodes"]) > 1
    twins = [node for node in found["strange.xml"]["nodes"].values() if node["attrs"]["name"] == "twin"]
    assert [twin["label"] for twin in twins] == ["Tanh", "Sigmoid"]
    assert twins[1]["style"]["borderColor"] == "#e37400"
    assert "two layers are named `twin`" in twins[1]["attrs"]["W903"]
    for name in (MARKUP, LINES, "__proto__"):
        assert named(found["strange.xml"], name)


def test_names_of_any_length_and_depth_are_cut(tmp_path):
    nodes = graphs(viewed(checked(strange(tmp_path))))[0]["nodes"]
    (node,) = (node for node in nodes if node["namespace"].startswith("deep"))
    assert node["namespace"] == "/".join(["deep"] * MAX_DEPTH)
    (name,) = (pair["value"] for pair in node["attrs"] if pair["key"] == "name")
    assert name.endswith("[... 499 characters ...]" + SLASHES[-500:])


def test_seven_thousand_layers_are_groups(explored, tmp_path):
    graph = explored(long(tmp_path), "model/layers.998/mlp___group___")["model.xml"]
    assert len(graph["nodes"]) == 7003
    assert len(graph["roots"]) == 4  # the input, the weights, the output, and the group of all else
    assert "model/layers.3/mlp___group___" in graph["groups"]


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("__module.model.layers.3.self_attn/aten::linear/MatMul", ["model", "layers.3", "self_attn", "aten::linear"]),
        ("/model/layers.0/attn/MatMul_1", ["model", "layers.0", "attn"]),
        ("MatMul_1", []),
        ("", []),
        ("__module.0.1/aten::relu/Relu", ["0.1", "aten::relu"]),
        ("a;b\\/c\n/d", ["a_b_", "c_"]),
        ("a//b/ /c", ["a", "b"]),
    ],
)
def test_the_levels_of_a_name(name, levels):
    assert scopes(name) == levels


@pytest.fixture(scope="module")
def compared():
    """A network with a profile and a comparison."""
    profile = irrun.Profile()
    executor = irrun.GraphExecutor(CNN, engine="numpy")
    inputs = executor.random_inputs(7)
    executor.run(inputs, profile=profile)
    found = irrun.compare(CNN, "precision:f16", inputs)
    return viewed(irrun.validate(CNN, shapes={"image": (1, 3, 16, 16)}), profile, found)


def test_nodes_have_a_number_and_a_gradient_for_each_metric(compared, tmp_path):
    written = write_node_data(compared, tmp_path / "model.json")
    assert [path.name for path in written] == [
        "model_macs.json",
        "model_bytes.json",
        "model_time.json",
        "model_own_error.json",
        "model_accumulated_error.json",
    ]
    macs = json.loads(written[0].read_text())["model.xml"]
    assert macs["name"] == "MACs"
    assert macs["results"] == {"2": {"value": 55296}, "8": {"value": 73728}, "16": {"value": 160}}
    assert [stop["stop"] for stop in macs["gradient"]] == [0, 0.5, 1]
    errors = json.loads(written[3].read_text())["model.xml"]["results"]
    assert -120 < errors["2"]["value"] < -40  # dB, of rounding to f16


def test_what_no_gradient_colours_has_a_colour(compared):
    layer = next(facts for facts in compared.layers if facts.own is not None)
    bad = replace(layer.own, metrics=measure(np.float32([np.nan, 1]), np.float32([0, 1])))
    alone = replace(layer, own=bad, time=(0.5, "numpy"))
    found = node_data(replace(compared, layers=[alone]))
    assert list(found["own_error"]["model.xml"]["results"].values()) == [{"value": "not finite", "bgColor": "#7f0000"}]
    assert list(found["time"]["model.xml"]["results"].values()) == [{"value": 500.0, "bgColor": "#7f0000"}]


def test_a_file_that_has_an_id_twice_still_has_nodes_of_their_own(tmp_path):
    path = tmp_path / "twice.xml"
    path.write_text(CNN.read_text().replace('<layer id="5"', '<layer id="4"', 1))
    (graph,) = graphs(viewed(irrun.validate(path)))
    ids = [node["id"] for node in graph["nodes"]]
    assert len(set(ids)) == len(ids) == 19
    for node in graph["nodes"]:
        assert {edge["sourceNodeId"] for edge in node["incomingEdges"]} <= set(ids)


def test_its_server_converts_a_model_by_the_adapter(model_explorer, tmp_path):
    path = strange(tmp_path)
    command = [sys.executable, "-P", "-c", CONVERT, str(path), str(tmp_path / "graphs.json")]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    found = model_explorer(tmp_path / "graphs.json")
    assert len(found) == 6
    assert named(found["strange.xml"], "alike")["outputsMetadata"]["0"]["shape"] == "f32[4, 2]"


def test_the_adapter_says_why_there_is_no_graph(tmp_path):
    if find_spec("model_explorer") is None:
        pytest.skip("the viewer is not installed: pip install ai-edge-model-explorer")
    (tmp_path / "broken.xml").write_text("<net")
    command = [sys.executable, "-P", "-c", CONVERT, str(tmp_path / "broken.xml"), str(tmp_path / "graphs.json")]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert done.returncode == 1
    assert b"ValueError: there is no graph to show: " in done.stderr


def test_graphs_need_no_package_of_the_viewer():
    code = "import sys; sys.modules['model_explorer'] = None; import irrun.tools.viewers.model_explorer.node_data"
    subprocess.run([sys.executable, "-P", "-c", code], check=True, timeout=60)
