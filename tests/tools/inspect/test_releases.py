"""The oldest release that reads a model, what forces it, and what an older one cannot read."""

import pytest
from ir_builder import Model

import irrun
from irrun.spec.dtypes import ELEMENT_TYPES
from irrun.spec.registry import registry
from irrun.tools.inspect.assertions import parse_condition
from irrun.tools.inspect.releases import _table, parse_release
from irrun.tools.inspect.rendering import render_text


def chain(folder, *types, version="opset1", format=11, element_type="f32"):
    """A model of element-wise layers, one behind the other."""
    m = Model(format)
    x = m.parameter("x", element_type, (2, 3))
    for type in types:
        (x,) = m.layer(type, [x], [(element_type, (2, 3))], version, name=type.lower())
    m.result(x)
    return m.save(folder)


def test_the_table_has_every_op_every_operation_set_and_every_element_type():
    table = _table()
    assert table.ops.keys() == registry().ops.keys()
    assert table.opsets.keys() == {f"opset{number}" for number in range(1, 18)}
    assert table.types.keys() == ELEMENT_TYPES.keys()
    assert (table.first, table.last) == ((2023, 0, 0), (2026, 4, 1))


@pytest.mark.parametrize(
    ("name", "release"),
    # read with the wheels: openvino 2024.4.0 refuses opset15's Squeeze, 2024.5.0 reads it
    [
        ("Squeeze-15", "2024.5"),
        ("ErfInv-17", "2026.2"),
        ("ScaledDotProductAttention-13", "2023.3"),
        ("Abs-1", "2023.0"),
    ],
)
def test_first_releases_of_ops_are_measured(name, release):
    assert _table().ops[name] == parse_release(release)


def test_an_op_that_came_while_its_operation_set_grew_needs_less_than_the_whole(tmp_path):
    table = _table()
    assert table.opsets["opset15"] == (2024, 5, 0)
    assert table.apart["Col2Im-15 of opset15"] == (2024, 2, 0)


def test_the_newest_layer_decides(tmp_path):
    runs = irrun.inspect(chain(tmp_path, "ReLU", "Abs", "ReLU")).releases
    assert (runs.oldest, runs.measured) == ("2022.1", False)  # version 11 of the format
    runs = irrun.inspect(chain(tmp_path, "ReLU", "Abs", version="opset14")).releases
    assert (runs.oldest, runs.measured) == ("2024.0", True)
    assert [(demand.path, demand.what) for demand in runs.force] == [
        ("relu", "ReLU of opset14"),
        ("abs", "Abs of opset14"),
    ]
    assert runs.counts == {"2024.0": 2, "2020.1": 2}


def test_operation_sets_speak_for_releases_before_the_first_that_was_measured(tmp_path):
    runs = irrun.inspect(chain(tmp_path, "ReLU", version="opset4", format=10)).releases
    assert (runs.oldest, runs.measured) == ("2021.1", False)
    assert runs.force[0].what == "ReLU-1 of opset4"


@pytest.mark.parametrize(("type", "release"), [("f8e4m3", "2024.0"), ("string", "2023.3"), ("u2", "2024.1")])
def test_element_types_ask_for_releases(tmp_path, type, release):
    runs = irrun.inspect(chain(tmp_path, element_type=type)).releases
    assert runs.oldest == release
    assert runs.force[0].what == f"the element type {type}"


def test_a_variable_without_a_first_value_needs_more_than_its_op(tmp_path):
    m = Model()
    variable = {"variable_id": "v", "variable_type": "f32", "variable_shape": "2"}
    (value,) = m.layer("ReadValue", [], [("f32", (2,))], "opset6", **variable)
    m.layer("Assign", [value], [], "opset6", variable_id="v")
    m.result(value)
    runs = irrun.inspect(m.save(tmp_path)).releases
    assert (runs.oldest, runs.force[0].what) == ("2023.3", "ReadValue-6 of 0 inputs")


@pytest.mark.parametrize(("rounding", "release"), [("ceil", "2024.0"), ("ceil_torch", "2024.1")])
def test_a_word_that_an_attribute_got_later_is_known(tmp_path, rounding, release):
    m = Model()
    x = m.parameter("x", "f32", (1, 2, 8, 8))
    window = {"strides": "2,2", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "kernel": "2,2"}
    window |= {"rounding_type": rounding, "auto_pad": "explicit", "index_element_type": "i64", "axis": "0"}
    outputs = m.layer("MaxPool", [x], [("f32", (1, 2, 4, 4)), ("i64", (1, 2, 4, 4))], "opset14", **window)
    m.result(outputs[0])
    runs = irrun.inspect(m.save(tmp_path)).releases
    assert runs.oldest == release
    if rounding == "ceil_torch":
        assert runs.force[0].what == "MaxPool-14 with rounding_type=ceil_torch"


def test_what_an_older_release_cannot_read_is_said_at_its_line(tmp_path):
    path = chain(tmp_path, "ReLU", "Abs", version="opset12")
    found = irrun.inspect(path, target="2023.0")
    assert not found.ok
    assert [(d.code, d.severity, d.layer.name, d.message) for d in found.diagnostics] == [
        ("T101", "error", "relu", "OpenVINO 2023.0 does not read ReLU of opset12"),
        ("T101", "error", "abs", "OpenVINO 2023.0 does not read Abs of opset12"),
    ]
    assert found.diagnostics[0].help == "2023.1 is the first release that does"
    assert path.read_text().splitlines()[found.diagnostics[0].line - 1].startswith('<layer id="1" name="relu"')
    assert irrun.inspect(path, target="2023.1").ok


def test_the_format_is_too_new_for_releases_that_read_version_10_only(tmp_path):
    found = irrun.inspect(chain(tmp_path, "ReLU"), target="2021.4")
    assert [d.message for d in found.diagnostics] == ["OpenVINO 2021.4 does not read version 11 of the format"]
    assert irrun.inspect(chain(tmp_path, "ReLU", format=10), target="2021.4").ok


def test_what_was_not_measured_is_said_to_be(tmp_path):
    (found,) = irrun.inspect(chain(tmp_path, "ReLU", version="opset8", format=10), target="2021.4").diagnostics
    assert found.help == "2022.1 is the first release that does, by its operation sets; not measured"


@pytest.mark.parametrize("text", ["1999.1", "2024", "newest", "2024.2.0.1", "2024.2 or so", "2019.3", "\uff12024.2"])
def test_what_is_no_release_is_refused(text):
    with pytest.raises(ValueError, match="is no release of OpenVINO"):
        parse_release(text)


def test_an_op_that_no_release_has_yet_is_read_by_none(tmp_path):
    m = Model()
    x = m.parameter("x", "f32", (2, 3))
    m.result(m.layer("Atan2", [x, x], [("f32", (2, 3))], "opset17", name="angle")[0])
    path = m.save(tmp_path)
    runs = irrun.inspect(path).releases
    assert (runs.oldest, runs.measured, runs.force[0].what) == ("later", True, "Atan2-17 of opset17")
    assert "runs on      no release of OpenVINO yet (measured with 2023.0 to 2026.4.1)" in render_text(
        irrun.inspect(path)
    )
    (found,) = irrun.inspect(path, target="2026.4").diagnostics
    assert found.message == "OpenVINO 2026.4 does not read Atan2-17 of opset17"
    assert found.help == "no release up to 2026.4.1 does"
    assert parse_condition("release>2026.4").failure(irrun.inspect(path)) is None
    assert parse_condition("release<=2026.4").failure(irrun.inspect(path)) is not None


def test_layers_of_other_packages_need_an_extension(tmp_path):
    m = Model()
    x = m.parameter("x", "f32", (2, 3))
    m.result(m.layer("Mine", [x], [("f32", (2, 3))], "extension", name="mine")[0])
    assert irrun.inspect(m.save(tmp_path)).releases.foreign == ("mine",)
