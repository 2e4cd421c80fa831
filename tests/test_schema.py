"""The grammar that `irrun schema` prints: valid models satisfy it, broken structure does not."""

import os
from pathlib import Path

import openvino as ov
import pytest
from command_line import irrun as command
from conformance.harness import all_cases, model_of
from lxml import etree

import irrun
from irrun.check.grammar import grammar
from irrun.spec.registry import registry

ROOT = Path(__file__).parent.parent
SAMPLES = sorted((ROOT / "samples").glob("*/model.xml"))
INVALID = sorted((ROOT / "tests" / "invalid").glob("*.xml"))
EXPORTS = sorted(Path(os.environ["IRRUN_EXPORTS"]).rglob("*.xml")) if "IRRUN_EXPORTS" in os.environ else []

SEEN = {"E220", "E301", "E302", "E306", "E307", "W907", "W930"}
"""Codes of tests/invalid for which a layer is not of the grammar; the others are of types, shapes and values."""

CNN = (ROOT / "samples" / "cnn" / "model.xml").read_text()
LOOP = (ROOT / "samples" / "stateful-loop" / "model.xml").read_text()


@pytest.fixture(scope="module")
def schema():
    return etree.RelaxNG(etree.fromstring(grammar(registry()).encode()))


@pytest.mark.parametrize("path", [*SAMPLES, *EXPORTS], ids=lambda path: path.parent.name)
def test_what_exporters_write_satisfies_it(schema, path):
    schema.assertValid(etree.parse(path))


def test_a_model_of_every_op_satisfies_it(schema, tmp_path):
    """One conformance case for each op, as OpenVINO writes it; the ten versions of old files have none."""
    first = {case.op: case for case in reversed(all_cases())}
    for case in first.values():
        path = tmp_path / "model.xml"
        ov.serialize(model_of(case)[0], path, path.with_suffix(".bin"))
        assert schema.validate(etree.parse(path)), (str(case), schema.error_log)
    assert len(first) > 200


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_it_knows_broken_models_by_their_layers(schema, path):
    codes = {diagnostic.code for diagnostic in irrun.validate(path).diagnostics}
    assert schema.validate(etree.parse(path)) is not bool(codes & SEEN)


def test_errors_are_reported_at_the_layer(schema):
    path = ROOT / "tests" / "invalid" / "unreadable_boolean.xml"
    (line,) = [diagnostic.line for diagnostic in irrun.validate(path).diagnostics]
    schema.validate(etree.parse(path))
    assert schema.error_log[0].line in (line, line - 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('version="11"', 'version="9"'),
        ('version="11"', ""),
        ("<layers>", "<layers/><layers>"),
        ("<edges>", "<edges/><edges>"),
        ('<layer id="0"', "<layer"),
        ('<layer id="0"', '<layer id="-1"'),
        ('<layer id="0"', '<layer id="0x1"'),
        ('<layer id="0"', '<layer id="9223372036854775808"'),
        ('name="image" type', "type"),
        ('type="Parameter"', 'type="Parametre"'),
        ('type="Const"', 'type="Constant"'),
        ('type="Convolution" version="opset1"', 'type="Convolution" version="opset17"'),
        ('type="Convolution" version="opset1"', 'type="Convolution" version="opset99"'),
        ('type="Convolution" version="opset1"', 'type="Convolution" version="ie_internal_opset"'),
        ('type="Convolution" version="opset1"', 'type="Convolution"'),
        ('type="Convolution" version="opset1"', 'type="Convolution" version="opset1" precision="FP32"'),
        ('element_type="f32"', 'element_type="FP32"'),
        ('element_type="f32"', ""),
        ('strides="1, 1"', 'strides="1,,1"'),
        ('strides="1, 1"', 'strides="0,1"'),
        ('strides="1, 1"', 'strides="1;1"'),
        ('strides="1, 1"', 'strides="1, 1, "'),
        ('strides="1, 1"', 'strides=" "'),
        ('pads_begin="1, 1"', 'pads_begin="-1,1"'),
        ('auto_pad="explicit"', 'auto_pad="implicit"'),
        ('auto_pad="explicit"', 'autopad="explicit"'),
        ('offset="0"', 'offset="1.7"'),
        ('offset="0"', 'offset="-8"'),
        ('offset="0"', 'offset="0" value="1"'),
        ("<output>", "<outputs/><output>"),
        ("<output>", "<output><port/></output><output>"),
        ('precision="FP32" names="image"', 'names="image"'),
        ('precision="FP32" names="image"', 'precision="float" names="image"'),
        ("<dim>3</dim>", "<dim>?</dim>"),
        ("<dim>3</dim>", "<dim></dim>"),
        ("<dim>3</dim>", "<dim>-2</dim>"),
        ("<dim>3</dim>", "<size>3</size>"),
        ('<edge from-layer="0"', "<edge"),
        ('<edge from-layer="0"', '<edge from-layer="first"'),
        ('<edge from-layer="0"', '<edge from="0" from-layer="0"'),
    ],
)
def test_a_broken_structure_does_not_satisfy_it(schema, old, new):
    assert old in CNN
    assert not schema.validate(etree.fromstring(CNN.replace(old, new, 1).encode()))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("body>", "the_body>"),
        ("port_map>", "ports>"),
        ("back_edges>", "backedges>"),
        ('external_port_id="', 'external="'),
        ('external_port_id="', 'external_port_id="-1'),
        ('internal_layer_id="', 'internal_layer_id="1.'),
        ('purpose="', 'axis="first" purpose="'),
    ],
)
def test_a_broken_body_does_not_satisfy_it(schema, old, new):
    assert old in LOOP
    assert not schema.validate(etree.fromstring(LOOP.replace(old, new).encode()))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('version="11"', 'version="10"'),
        ('strides="1, 1"', 'strides=" 1 ,1,"'),
        ('auto_pad="explicit"', 'auto_pad="EXPLICIT"'),
        ('type="Convolution" version="opset1"', 'type="MyConvolution" version="extension"'),
        ('type="Convolution" version="opset1"', 'type="Anything" version="my_ops"'),
        ("</net>", "<meta_data><MO_version value='1'/></meta_data></net>"),
        ("</net>", "<pre-process mean-precision='FP32'><channel id='0'/></pre-process></net>"),
        ('element_type="f32"', 'element_type="f32" PrimitivesPriority="cpu:ref"'),
    ],
)
def test_what_is_read_otherwise_satisfies_it_too(schema, old, new):
    assert old in CNN
    schema.assertValid(etree.fromstring(CNN.replace(old, new, 1).encode()))


def test_the_command_prints_it():
    assert command("schema").stdout == grammar(registry())
