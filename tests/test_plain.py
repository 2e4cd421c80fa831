"""Layers and edges in their usual form: read without a parser, but for all that anyone can see as with one."""

import random
import sys
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from bench.layers import made
from fuzz.mutants import BYTES
from openvino import opset13

import irrun
from irrun.ir.plain import plain_runs
from irrun.ir.reader import read
from irrun.ir.xml import MAX_DEPTH, parse

ROOT = Path(__file__).parents[1]
LAYER = '<layer id="{}" name="n" type="ReLU" version="opset1"><output><port id="0" precision="FP32"/></output></layer>'
EDGE = '<edge from-layer="0" from-port="1" to-layer="1" to-port="0"/>'
PIECES = [
    *BYTES,
    *(b"<?plain?>", b"<layers>", b"</layers>", b"<edges>", b"</edges>", b"</layer>", b"<data/>", b"<dim>3</dim>"),
    *(b" ", b"\r\n", b"\t", b"x", b"0", b"-1", b"\xc3\xa9", b"&amp;", b' a="1"', b"Const", b"const", LAYER.encode()),
    *(EDGE.encode(), b'<port id="0" precision="FP32"/>', b'<rt_info><attribute name="a" version="0"/></rt_info>'),
]


def element(found):
    """All that an element is, with its place."""
    if found is None:
        return None
    dims = [size if isinstance(size, int) else element(size) for size in found.dims]
    return found.tag, found.attributes, dims, found.text, found.offset, found.span, [*map(element, found.children)]


def port(found):
    return found.id, found.precision, found.dims, found.names, element(found.element)


def graph(found):
    """All that a graph is: its layers, ports, connections and bodies."""
    numbers = {layer: number for number, layer in enumerate(found.layers)}
    layers = [
        (
            *(layer.id, layer.name, layer.type, layer.version, layer.attributes, layer.broken, layer.precise),
            *(element(layer.element), element(layer.data), element(layer.rt_info), [*map(element, layer.strays)]),
            [*map(port, layer.input_ports)],
            [value and (numbers[value.layer], value.index) for value in layer.inputs],
            [*map(element, layer.input_edges)],
            [(port(value.port), [(numbers[to], number) for to, number in value.consumers]) for value in layer.outputs],
            {tag: graph(body.graph) for tag, body in layer.bodies.items()},
        )
        for layer in found.layers
    ]
    return element(found.element), element(found.rt_info), found.unsure, layers


def seen(text):
    """All that can be seen of a file: what is reported, and the model."""
    weights = bytes(1 << 16)
    report = irrun.validate(text, weights)
    model, problems = read("<model>", weights, text)
    return report.render("json"), [str(problem) for problem in problems], model and graph(model.graph)


@pytest.fixture
def both(monkeypatch):
    """Sees a file as it is read, and as it would be read by the parser alone."""

    def seen_twice(text):
        plain = seen(text)
        with monkeypatch.context() as patch:
            patch.setattr("irrun.ir.xml.plain_runs", lambda text: iter(()))
            return plain, seen(text)

    return seen_twice


def files():
    paths = [*ROOT.glob("samples/*/model.xml"), *ROOT.glob("tests/invalid/*.xml")]
    return [path.read_bytes() for path in sorted(paths) if path.stat().st_size < 100_000]


def test_models_of_this_repository_are_read_alike_in_both_ways(both):
    for text in files():
        plain, parsed = both(text)
        assert plain == parsed


def test_changed_texts_are_read_alike_in_both_ways(both):
    rng = random.Random(0)
    texts = [text for text in files() if len(text) < 20_000]
    for number in range(400):
        text = rng.choice(texts)
        for _ in range(rng.choice((1, 1, 2, 3))):
            start, length = rng.randrange(len(text)), rng.choice((0, 0, 1, 5, 40, 300))
            moved = text[start : start + length] if rng.random() < 0.2 else rng.choice(PIECES)
            sought = text.find(rng.choice((b'"', b"<", b">", b"id=", b"<port", b"<layer", b"</")), start)
            at = sought if sought >= 0 and rng.random() < 0.6 else rng.randrange(len(text))
            text = text[:at] + moved + text[at + length :]
        plain, parsed = both(text)
        assert plain == parsed, (number, text)


def net(layers, edges=""):
    return f'<net name="m" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>'


@pytest.mark.parametrize(
    "text",
    [
        net(f"<!-- {LAYER.format(0)} -->{LAYER.format(1)}"),
        net(f"<![CDATA[{LAYER.format(0)}]]>{LAYER.format(1)}"),
        net(f"<?x {LAYER.format(0)} ?>{LAYER.format(1)}"),
        net(f'<a b="{LAYER.format(0)}"/>'),
        net(f"<?plain?>{LAYER.format(0)}<?plain?>"),
        net(f"<?plain ?>{LAYER.format(0)}<?plain?>") + "<?plain?>",
        net(LAYER.format(0), LAYER.format(1)),
        net(EDGE, EDGE),
        net(LAYER.format(0)) + LAYER.format(1),
        LAYER.format(0) + net(""),
        f"<net>{LAYER.format(0)}</net>",
        f"<!DOCTYPE net [<!ENTITY a '{LAYER.format(0)}'>]>{net('&a;')}",
        net(f"<dim>3{LAYER.format(0)} 4</dim>"),
        net(f"{LAYER.format(0)} words {LAYER.format(1)}"),
        "<layers>" * (MAX_DEPTH - 3) + LAYER.format(0) + "</layers>" * (MAX_DEPTH - 3),
        f'<?xml version="1.0" encoding="utf-7"?>{net(LAYER.format(0))}',
        f'<?xml version="1.0" encoding="latin-1"?>{net(LAYER.format(0))}',
        net(LAYER.format(0).replace('precision="FP32"', 'precision="f32"')),
        net(LAYER.format(0).replace("ReLU", "result")),
        net(LAYER.format(0).replace("<output>", '<data a="1" a="2"/><output>')),
        net(LAYER.format(0).replace("</output>", '<port id="0" precision="FP32"/></output>')),
        net(LAYER.format(18446744073709551616), EDGE.replace('from-layer="0"', 'from-layer="00"')),
        net(LAYER.format(0) + LAYER.format(0) + LAYER.format(1), EDGE * 2),
        net(LAYER.format(0).replace('name="n"', 'name="&lt;\u0444"')).replace("version", "\n version"),
    ],
)
def test_what_only_looks_like_an_element_or_has_something_to_report_is_read_alike(both, text):
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        plain, parsed = both(text.encode(encoding))
        assert plain == parsed


def test_what_openvino_writes_is_read_without_a_parser(tmp_path):
    x = opset13.parameter([-1, 4], np.float32, name="x")
    parts = opset13.split(opset13.relu(x), opset13.constant(1), 2)
    weights = opset13.convert(opset13.constant(np.array([[1, 2]], np.float16)), "f32")
    model = ov.Model([opset13.add(parts.output(0), weights), opset13.exp(parts.output(1))], [x])
    ov.save_model(model, tmp_path / "model.xml")
    found = irrun.read_model(tmp_path / "model.xml")
    assert {layer.type for layer in found.graph.layers if not layer.element.deferred} <= {"Result"}
    assert [len(layer.outputs) for layer in found.graph.layers if layer.type == "Split"] == [2]


def test_an_element_that_someone_looks_into_is_that_of_the_layer():
    text = net(
        '<layer id="0" name="c" type="Const" version="opset1"><data element_type="f32" shape="" offset="0" size="4"/>'
        '<rt_info><attribute name="precise" version="0"/></rt_info>'
        '<output><port id="0" precision="FP32" names="a,b"/></output></layer>'
    )
    (layer,) = read("<model>", b"1234", text.encode())[0].graph.layers
    assert layer.element.deferred
    assert layer.precise
    assert not layer.element.deferred
    assert layer.data is layer.element.find("data")
    assert layer.data.attributes is layer.attributes
    assert layer.outputs[0].port.element is layer.element.find("output").find("port")
    with pytest.raises(AttributeError):
        layer.element.nonesuch  # noqa: B018


def test_what_does_not_have_the_form_ends_a_run():
    first, odd, last = LAYER.format(1), LAYER.format(2).replace("opset1", "opset&#49;"), LAYER.format(3)
    text = f"<layers>{first}\n{first}\n{odd}{last}</layers>{EDGE}"
    assert [(run.tag, len(run.members), text[run.start : run.stop]) for run in plain_runs(text)] == [
        ("layer", 2, f"{first}\n{first}"),
        ("layer", 1, last),
        ("edge", 1, EDGE),
    ]


@pytest.mark.parametrize("plain", [True, False])
def test_the_work_grows_with_the_number_of_layers_and_no_faster(plain):
    def calls(count):
        model = made(count)
        text = model.text() if plain else model.text().replace(b'version="opset1"', b"version='opset1'")
        counted = 0

        def count_call(frame, event, argument):
            nonlocal counted
            counted += event in ("call", "c_call")

        sys.setprofile(count_call)
        try:
            assert irrun.validate(text, bytes(model.weights)).ok
        finally:
            sys.setprofile(None)
        return counted / len(model.layers)

    assert calls(20_000 if plain else 8_000) <= 1.05 * calls(2_000)


def test_marks_in_place_of_many_runs_are_found():
    text = "".join(f"<!-- {number} -->{LAYER.format(number)}" for number in range(5000))
    layers = parse(net(text).encode()).find("layers").children
    assert [layer.attributes["id"] for layer in layers] == [str(number) for number in range(5000)]
