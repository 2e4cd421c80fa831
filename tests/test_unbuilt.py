"""Layers that reach no Result: what is wrong with them is a warning, unless they may be misspelt Results."""

import numpy as np
import pytest

import irrun

NET = """\
<net name="m" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/><output>
<port id="0" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="1" name="r" type="ReLU" version="opset1"><input><port id="0"><dim>2</dim></port></input><output>
<port id="1" precision="FP32"><dim>2</dim></port></output></layer>
{layers}
<layer id="9" name="o" type="Result" version="opset1"><input><port id="0"><dim>2</dim></port></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="9" to-port="0"/>
{edges}
</edges></net>"""

INPUT = '<input><port id="0" precision="FP32"><dim>2</dim></port></input>'
OUTPUT = '<output><port id="1" precision="FP32"><dim>2</dim></port></output>'


def layer(type, version="opset1", data="", output=OUTPUT, id=5):
    return f'<layer id="{id}" name="u{id}" type="{type}" version="{version}">{data}{INPUT}{output}</layer>'


def edge(start, end, port=1):
    return f'<edge from-layer="{start}" from-port="{port}" to-layer="{end}" to-port="0"/>'


def said(layers, edges):
    text = NET.format(layers="\n".join(layers), edges="\n".join(edges))
    report = irrun.validate(text.encode())
    return report, [(d.line, d.code, d.severity) for d in report.diagnostics if d.code != "W904"]


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (layer("Foo"), "E301"),
        (layer("ReLU", "opset99"), "E301"),
        (layer("Gelu"), "E301"),
        (layer("Clamp", data='<data min="0"/>'), "E306"),
        (layer("Transpose"), "E302"),
        (layer("SoftMax", data='<data axis="7"/>'), "E401"),
    ],
)
def test_errors_of_a_layer_that_nothing_reads_are_warnings(broken, code):
    report, found = said([broken], [edge(1, 5)])
    assert found == [(6, code, "warning")]
    (message,) = [d.message for d in report.diagnostics if d.code == code]
    assert message.startswith("nothing reads the layer, so OpenVINO passes over it: ")
    assert report.ok
    results = irrun.GraphExecutor(report.model).run([np.float32([-1, 2])])
    assert results["o"].tolist() == [0, 2]


@pytest.mark.parametrize(
    "end", [layer("Rsult"), layer("Reslut", output=""), layer("Asign", "opset6"), layer("Output", output="")]
)
def test_a_layer_that_may_be_meant_to_end_the_graph_is_an_error(end):
    assert said([end], [edge(1, 5)])[1] == [(6, "E301", "error")]


def test_what_leads_to_it_is_an_error_too():
    layers = [layer("Foo"), layer("Rsult", output="", id=6)]
    assert said(layers, [edge(1, 5), edge(5, 6)])[1] == [(6, "E301", "error"), (7, "E301", "error")]


def test_a_chain_that_nothing_reads_is_passed_over():
    layers = [layer("Foo"), layer("Clamp", id=6)]
    assert said(layers, [edge(1, 5), edge(5, 6)])[1] == [(6, "E301", "warning"), (7, "E306", "warning")]


def test_where_an_edge_is_missing_nothing_is_known_to_be_unread():
    layers = [layer("Foo"), layer("ReLU", id=6)]
    assert said(layers, [edge(1, 5)])[1] == [(6, "E301", "error"), (7, "E208", "error")]


def test_a_variable_in_a_body_that_nobody_reads_is_no_error():
    with irrun.build() as g:
        x = g.Parameter("f32[3]", name="x")
        with g.body() as body:
            kept = body.ReadValue(np.zeros(3, np.float32), variable_id="v", variable_type="f32", variable_shape=[3])
            body.Assign(kept, variable_id="v")
            body.Result(body.Add(body.input(x), kept))
            body.condition(body.Constant(True))
        g.Loop(np.int64(2), True, body=body)
        g.Result(g.ReLU(x))
    report = irrun.validate(g.model)
    assert [diagnostic.code for diagnostic in report.diagnostics] == ["W904"], str(report)
