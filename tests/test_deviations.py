"""The known deviations of OpenVINO: which of them concern a layer, and how they are listed."""

import json
import re
import xml.etree.ElementTree as ET

import ml_dtypes
import numpy as np
import pytest
from command_line import irrun as command
from ir_builder import Model

import irrun
from irrun.check.deviations import concerning, explaining, known_deviations, with_deviations
from irrun.check.deviations.conditions import decide, names, parse
from irrun.check.deviations.facts import Facts
from irrun.check.deviations.properties import PROPERTIES
from irrun.spec.dtypes import ELEMENT_TYPES, numpy_dtype

NAN, INF = float("nan"), float("inf")
LINE = {"strides": "1", "pads_begin": "0", "pads_end": "0", "kernel": "3"}
SPATIAL = {"strides": "2", "pads_begin": "0", "pads_end": "0", "kernel": "3"}


def loaded(model, folder, type):
    """What is known of a model, and its first layer of a type."""
    report = irrun.validate(model.save(folder))
    assert report.ok, str(report)
    return next(layer for layer in report.inference.nodes if layer.type == type), report.inference


def unary(type, element, shape, folder, version="opset1", **attributes):
    model = Model()
    x = model.parameter("x", element, shape)
    (y,) = model.layer(type, [x], [(element, x[3])], version, **attributes)
    model.result(y)
    return loaded(model, folder, type)


def binary(type, element, folder, a=None, b=None, **attributes):
    model = Model()
    inputs = [
        model.parameter(name, element, (2,)) if array is None else model.constant(array)
        for name, array in (("a", a), ("b", b))
    ]
    (y,) = model.layer(type, inputs, [(element, (2,))], **attributes)
    model.result(y)
    return loaded(model, folder, type)


def said(deviations):
    return [(deviation.does, deviation.when) for deviation in deviations]


def test_what_only_data_decide_is_left_in_when(tmp_path):
    relu, inference = unary("ReLU", "f32", (2,), tmp_path)
    assert said(concerning(relu, inference)) == [("gives 0 for NaN", ("data has nan",))]
    assert said(explaining(relu, inference, [np.float32([1, NAN])])) == [("gives 0 for NaN", ())]
    assert explaining(relu, inference, [np.float32([1, INF])]) == []


def test_an_input_that_nobody_has_kept_leaves_it_open(tmp_path):
    relu, inference = unary("ReLU", "f32", (2,), tmp_path)
    assert said(explaining(relu, inference, [None])) == [("gives 0 for NaN", ("data has nan",))]


def test_integers_have_no_nan(tmp_path):
    relu, inference = unary("ReLU", "i8", (2,), tmp_path)
    assert concerning(relu, inference) == []


@pytest.mark.parametrize("type", ["f16", "bf16", "f8e4m3"])
def test_nan_of_other_types(type, tmp_path):
    exp, inference = unary("Exp", "f16" if type == "f8e4m3" else type, (2,), tmp_path)
    numpy = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f8e4m3": ml_dtypes.float8_e4m3fn}[type]
    assert said(explaining(exp, inference, [np.array([1, NAN], numpy)])) == [("gives inf for NaN", ())]
    assert explaining(exp, inference, [np.array([1, 2], numpy)]) == []


def test_a_layer_of_constants_is_computed_by_openvino_s_reference(tmp_path):
    model = Model()
    (y,) = model.layer("ReLU", [model.constant(np.float32([NAN]))], [("f32", (1,))])
    model.result(y)
    assert concerning(*loaded(model, tmp_path, "ReLU")) == []


def test_a_layer_behind_a_constant_layer_is_constant_too(tmp_path):
    model = Model()
    (half,) = model.layer(
        "Convert", [model.constant(np.float16([1] * 5000))], [("f32", (5000,))], destination_type="f32"
    )
    (y,) = model.layer("ReLU", [half], [("f32", (5000,))])
    model.result(y)
    assert concerning(*loaded(model, tmp_path, "ReLU")) == []


@pytest.mark.parametrize(
    ("a", "b", "concerned"), [([100, 0], [27, 0], False), ([100, 0], [28, 0], True), ([-100, 0], [-29, 0], True)]
)
def test_integers_that_leave_their_type(a, b, concerned, tmp_path):
    add, inference = binary("Add", "i8", tmp_path)
    assert said(concerning(add, inference)) == [("saturates", ("result overflows",))]
    found = explaining(add, inference, [np.int8(a), np.int8(b)])
    assert said(found) == ([("saturates", ())] if concerned else [])


def test_what_is_rounded_to_an_integer(tmp_path):
    log, inference = unary("Log", "i32", (2,), tmp_path)
    assert said(concerning(log, inference)) == [("rounds the result", ("result is rounded",))]
    assert explaining(log, inference, [np.int32([1, 0])]) == []  # 0 and -infinity
    assert said(explaining(log, inference, [np.int32([1, 2])])) == [("rounds the result", ())]


def test_i64_beyond_i32_in_an_input_or_the_result(tmp_path):
    add, inference = binary("Add", "i64", tmp_path)
    small, large = np.array([2**31 - 1, 0]), np.array([2**31, 0])
    assert said(explaining(add, inference, [large, small])) == [("computes in i32", ())]
    assert said(explaining(add, inference, [small, small], [small + small])) == [("computes in i32", ())]
    assert explaining(add, inference, [small, small * 0], [small]) == []


def test_attributes_decide_before_a_run(tmp_path):
    divide = {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": "0"}
    assert said(concerning(*binary("Divide", "f32", tmp_path, **divide))) == [
        ("refuses pdpd from an inner axis", ()),
        ("aligns the last axes, as numpy does, where their sizes let it", ("(the last axes fit as well)",)),
    ]
    assert concerning(*binary("Divide", "f32", tmp_path, auto_broadcast="numpy")) == []


def test_the_sign_of_a_constant_decides_before_a_run(tmp_path):
    layer, inference = binary("Divide", "i32", tmp_path, b=np.int32([-2, 2]))
    assert [deviation.when for deviation in concerning(layer, inference)] == [()]
    layer, inference = binary("Divide", "i32", tmp_path, b=np.int32([2, 2]))
    assert [deviation.when for deviation in concerning(layer, inference)] == [
        ("a has negative numbers | b has negative numbers",)
    ]


@pytest.mark.parametrize(
    ("shape", "concerned"), [(("?", 1, "?"), True), (("?", 1, 7), False), ((1, 1, 7), False), ("...", True)]
)
def test_sizes_that_are_unknown_where_it_counts(shape, concerned, tmp_path):
    shape = ",".join(map(str, shape)) if shape != "..." else shape
    data = {**SPATIAL, "dilations": "1", "auto_pad": "same_lower"}
    model = Model()
    x = model.parameter("x", "f32", shape)
    values, _ = model.layer("MaxPool", [x], [("f32", (-1, 1, -1)), ("i64", (-1, 1, -1))], "opset8", **data)
    model.result(values)
    found = [each for each in concerning(*loaded(model, tmp_path, "MaxPool")) if not each.when]
    assert said(found) == ([("pads at the end where the size is dynamic", ())] if concerned else [])


def test_an_attribute_that_is_left_out(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (1, 1, 7))
    values, _ = model.layer("MaxPool", [x], [("f32", (1, 1, 3)), ("i64", (1, 1, 3))], "opset8", **SPATIAL)
    model.result(values)
    assert said(concerning(*loaded(model, tmp_path, "MaxPool"))) == [("refuses a line without dilations", ())]


def test_empty_tensors_and_scalars(tmp_path):
    model = Model()
    x, axes = model.parameter("x", "f32", (2, 3)), model.constant(np.zeros(0, np.int64))
    (y,) = model.layer("ReduceSum", [x, axes], [("f32", (2, 3))])
    model.result(y)
    layer, inference = loaded(model, tmp_path, "ReduceSum")
    assert said(concerning(layer, inference)) == [("refuses axes without an element", ())]
    assert decide("axes is a scalar", Facts(layer, inference)) is False
    assert decide("x is connected", Facts(layer, inference)) is False
    assert decide("axis 5 of data > 0", Facts(layer, inference)) is False
    assert decide("size of data = 6", Facts(layer, inference)) is True
    assert decide("shape of data along axes > 1", Facts(layer, inference)) is False


def test_sums_of_operands(tmp_path):
    layer, inference = binary("Add", "f32", tmp_path, np.float32([1, 2]), np.float32([3, -2]))
    facts = Facts(layer, inference)
    assert decide("size of a + sum of b = 3", facts) is True
    assert decide("a + b > 4", facts) is False
    assert decide("rank of a < size of a + rank of b", facts) is True
    assert decide("size of a + sum of absent = 3", facts) is False
    layer, inference = unary("ReLU", "f32", "?,3", tmp_path)
    facts = Facts(layer, inference)
    assert decide("shape of data + rank of data > 4", facts) is True
    assert decide("shape of data + rank of data > 5", facts) is None
    assert decide("sum of data + rank of data > 5", facts) is None
    assert names("block_shape > shape of data + pads_begin") == {"data", "pads_begin", "block_shape"}


def test_all_of_several_inputs(tmp_path):
    layer, inference = binary("Add", "f32", tmp_path, b=np.float32([1, 2]))
    facts = Facts(layer, inference)
    assert decide("a, b are constant", facts) is False
    assert decide("a, b are f32", facts) is True
    assert names("a, b are constant") == {"a", "b"}
    layer, inference = unary("ReLU", "f32", "?,3", tmp_path)
    assert decide("data, result are empty", Facts(layer, inference)) is None


def test_axes_that_are_named(tmp_path):
    model = Model()
    x, axes = model.parameter("x", "f32", (2, 3, 4)), model.constant(np.int64([2, 0]))
    (y,) = model.layer("ReduceSum", [x, axes], [("f32", (3,))])
    model.result(y)
    facts = Facts(*loaded(model, tmp_path, "ReduceSum"))
    assert decide("axes has all axes of data from 2 on", facts) is True
    assert decide("axes has all axes of data from 1 on", facts) is False
    assert decide("axes has not all axes of data from 1 on", facts) is True
    assert names("axes has not all axes of data from 1 on") == {"axes", "data"}


@pytest.mark.parametrize(
    ("a", "b", "otherwise"),
    [((), (1, 1), False), ((3,), (1, 3), False), ((3,), (3, 1), True), ((1,), (3,), True), ((2, 1, 3), (3,), True)],
)
def test_axes_along_which_tensors_vary(a, b, otherwise, tmp_path):
    model = Model()
    inputs = [model.constant(np.ones(shape, np.float32)) for shape in (a, b)]
    (y,) = model.layer("Add", inputs, [("f32", np.broadcast_shapes(a, b))])
    model.result(y)
    assert decide("a varies along other axes than b", Facts(*loaded(model, tmp_path, "Add"))) is otherwise


@pytest.mark.parametrize(
    ("low", "high", "levels", "almost"),
    [
        (-128.1, 126.9, 256, True),
        (-128, 127, 256, False),
        (-128.2, 126.8, 256, False),
        (-1, 127 / 128, 256, False),
        (0, 255, 256, False),
        (-127.9, 126.1, 255, False),
        ([-127.1, -127], [126.9, 127], 255, True),
        ([-127.1, -100], [126.9, 127], 255, False),
        (-8.005, 6.995, 16, True),
        (-8.05, 6.95, 16, False),
    ],
)
def test_0_beside_a_level(low, high, levels, almost, tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (3, 2))
    limits = [model.constant(np.float32(limit)) for limit in (-1, 1, low, high)]
    (y,) = model.layer("FakeQuantize", [x, *limits], [("f32", (3, 2))], levels=str(levels))
    model.result(y)
    assert decide("0 is almost a level", Facts(*loaded(model, tmp_path, "FakeQuantize"))) is almost


def test_what_is_made_by_the_same_op(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (2,))
    (y,) = model.layer("ReLU", [x], [("f32", (2,))], name="first")
    (z,) = model.layer("ReLU", [y], [("f32", (2,))], name="second")
    model.result(z)
    report = irrun.validate(model.save(tmp_path))
    first, second = (layer for layer in report.inference.nodes if layer.type == "ReLU")
    assert decide("data is made by the same op", Facts(first, report.inference)) is False
    assert decide("data is made by the same op", Facts(second, report.inference)) is True
    assert decide("result is read", Facts(second, report.inference)) is True


def test_what_is_the_largest_of_windows(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (1, 2, 4))
    attributes = {"kernel": "2", "strides": "2", "pads_begin": "0", "pads_end": "0"}
    (y,) = model.layer("MaxPool", [x], [("f32", (1, 2, 2))], **attributes)
    (z,) = model.layer("ReLU", [y], [("f32", (1, 2, 2))])
    model.result(z)
    report = irrun.validate(model.save(tmp_path))
    largest, behind = (layer for layer in report.inference.nodes if layer.type in ("MaxPool", "ReLU"))
    assert decide("data is made by a maximum of windows", Facts(largest, report.inference)) is False
    assert decide("data is made by a maximum of windows", Facts(behind, report.inference)) is True


def test_a_result_that_nobody_reads(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (1, 1, 7))
    values, _ = model.layer("MaxPool", [x], [("f32", (1, 1, 5)), ("i64", (1, 1, 5))], "opset8", dilations="1", **LINE)
    model.result(values)
    facts = Facts(*loaded(model, tmp_path, "MaxPool"))
    assert decide("result is read", facts) is True
    assert decide("indices is read", facts) is False


def test_what_a_run_has_not_told_is_not_decided(tmp_path):
    layer, inference = unary("ReLU", "f32", "?,3", tmp_path)
    facts = Facts(layer, inference)
    assert decide("axis 0 of data > 1", facts) is None
    assert decide("axis 0 of data > 1 | axis 1 of data = 3", facts) is True
    assert decide("axis 0 of data > 1 | axis 1 of data = 4", facts) is None
    assert decide("data > 1", facts) is None
    assert decide("(a person sees it)", facts) is None
    assert decide("data is empty", Facts(layer, inference, [np.zeros((0, 3), np.float32)])) is True


@pytest.mark.parametrize("clause", ["", "data", "data is blue", "data has luck", "data ~ 1", "i8 overflows"])
def test_a_clause_of_another_language_is_refused(clause):
    with pytest.raises(ValueError, match="`"):
        parse(clause)


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_property_is_asked_of_arrays_of_every_type_that_can_have_it(name):
    found = PROPERTIES[name]
    for type in found.types or set(ELEMENT_TYPES) - {"dynamic", "boolean", "string"}:
        array = np.ones((2, 3)).astype(numpy_dtype(type))
        assert found.holds(array) == (name in ("odd numbers", "rows of several chances")), type
        assert not found.holds(array[:, :0]), type
        assert found.holds(array[0, 0]) == (name == "odd numbers"), type


@pytest.mark.parametrize(
    ("name", "number", "expected"),
    [
        ("fractions", INF, False),
        ("fractions", -0.5, True),
        ("odd numbers", -3, True),
        ("numbers out of order", -1, True),
        ("numbers out of order", 0, False),
        ("numbers beyond i32", -(2.0**31), False),
        ("numbers beyond i32", 2.0**31, True),
        ("numbers beyond i32", NAN, False),
        ("numbers beyond f32", 3.5e38, True),
        ("numbers beyond f32", INF, False),
        ("numbers just below a half", np.nextafter(np.float32(0.5), np.float32(0)), True),
        ("numbers just below a half", 0.25, False),
        ("numbers next to 1", -0.995, True),
        ("numbers next to 1", 1, False),
        ("numbers beyond 2**24", -(2**24) - 1, True),
        ("the lowest number of its type", -np.finfo(np.float64).max, True),
        ("the lowest number of its type", -INF, False),
    ],
)
def test_the_borders_of_properties(name, number, expected):
    assert PROPERTIES[name].holds(np.array([0, number])) is expected


def test_an_unknown_rank_is_told_where_it_begins(tmp_path):
    with irrun.build("m") as g:
        known, unknown = g.Parameter("f32[2,3]", name="known"), g.Parameter("f32[...]", name="unknown")
        axes = g.Parameter("i64[?]", name="axes")
        for name, data in (("own", known), ("follows", unknown)):
            g.Result(g.ReduceSum(data, axes, keep_dims=False, name=name), name=f"{name} result")
    irrun.write_model(g.model, tmp_path / "m.xml")
    found = with_deviations(irrun.validate(tmp_path / "m.xml")).diagnostics
    refused = [str(diagnostic.layer) for diagnostic in found if "of unknown rank" in diagnostic.message]
    assert refused == ["1 `unknown` (Parameter)", "3 `own` (ReduceSum)"]


@pytest.mark.parametrize(
    ("equation", "expected"), [("dB,AA", True), ("ab,bc", False), ("aa->a", False), ("...aa", True), ("a...", False)]
)
def test_equations_with_labels_twice_and_no_result(equation, expected):
    assert PROPERTIES["labels twice and no result"].holds(np.asarray(equation)) is expected


def test_layers_that_could_not_be_inferred_have_none(tmp_path):
    model = Model()
    x = model.parameter("x", "boolean", (2,))
    (y,) = model.layer("ReLU", [x], [("boolean", (2,))])
    model.result(y)
    report = irrun.validate(model.save(tmp_path))
    (relu,) = [layer for layer in report.model.graph.layers if layer.type == "ReLU"]
    assert concerning(relu, report.inference) == []
    assert explaining(relu, report.inference, [None]) == []
    assert not [found for found in with_deviations(report).diagnostics if found.severity == "info"]


def test_the_data_are_complete():
    rows = [row for rows in known_deviations().values() for row in rows]
    assert len(rows) >= 190
    for row in rows:
        assert row.kind in ("differs", "refuses", "crashes"), row
        assert row.does, row
        assert row.because, row
        assert row.device == "CPU", row
        assert re.fullmatch(r"\d{4}\.\d+\.\d+", row.openvino), row


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Nine ReLUs, one of them in integers, and a Divide that OpenVINO refuses."""
    made = Model()
    x, whole = made.parameter("x", "f32", (2,)), made.parameter("whole", "i8", (2,))
    for number in range(8):
        (x,) = made.layer("ReLU", [x], [("f32", (2,))], name=f"relu {number}")
    (whole,) = made.layer("ReLU", [whole], [("i8", (2,))], name="integers")
    pdpd = {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": "0"}
    (ratio,) = made.layer("Divide", [x, x], [("f32", (2,))], name="ratio", **pdpd)
    made.result(ratio)
    made.result(whole)
    return made.save(tmp_path_factory.mktemp("model"))


def listed(*arguments, **options):
    done = command("validate", "--format=jsonl", *arguments, **options)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_validate_lists_them_when_asked_at_their_layers(model):
    assert listed(model) == []
    found = listed(model, "--deviations")
    assert [entry["code"] for entry in found] == ["D102"] * 8 + ["D101", "D102"]
    assert {entry["severity"] for entry in found} == {"info"}
    assert [entry["layer"]["name"] for entry in found] == [*(f"relu {number}" for number in range(8)), "ratio", "ratio"]
    lines = model.read_text().splitlines()
    assert all(f'name="{entry["layer"]["name"]}"' in lines[entry["line"] - 1] for entry in found)
    assert found[0]["message"] == "ReLU-1 in OpenVINO's CPU plugin gives 0 for NaN (where data has nan)"
    assert {entry["message"] for entry in found[:8]} == {found[0]["message"]}
    assert found[8]["message"] == "Divide-1 in OpenVINO's CPU plugin refuses pdpd from an inner axis"
    assert found[8]["help"] == "irrun goes by this: the page has it; seen with OpenVINO 2026.4.1"


def test_they_change_no_exit_status(model):
    assert "ok, 14 layers checked" in command("validate", model, "--deviations", "--strict", status=0).stdout
    both = command("validate", model, model.parent, "--deviations", "--strict", "--format=concise", status=0)
    assert both.stderr == ""


def test_they_are_selected_by_their_codes(model):
    assert [entry["code"] for entry in listed(model, "--deviations", "--ignore=D102")] == ["D101"]
    assert [entry["code"] for entry in listed(model, "--deviations", "--select=D102")] == ["D102"] * 9
    assert listed(model, "--deviations", "--select=E") == []


def test_every_format_has_them_as_information(model):
    def text(format):
        return command("validate", model, "--deviations", f"--format={format}").stdout

    assert text("text").count("info[D102]: ReLU-1") == 1
    assert "note: and 7 more: lines " in text("text")
    assert "`ratio` (Divide)" in text("text")
    assert text("concise").count(": info[D102] ReLU-1") == 1
    assert json.loads(text("json"))["warnings"] == 0
    assert [result["level"] for result in json.loads(text("sarif"))["runs"][0]["results"]] == ["note"] * 10
    assert text("github").count("::notice ") == 3
    assert {entry["severity"] for entry in json.loads(text("gitlab"))} == {"info"}
    suites = ET.fromstring(text("junit"))
    assert suites.findall(".//failure") == []
    assert len(suites.findall(".//testcase")) == 10


def test_a_terminal_has_them_in_colour(model):
    done = command("validate", model, "--deviations", env={"FORCE_COLOR": "1"})
    assert "\x1b[36m\x1b[1minfo[D101]" in done.stdout


def test_ops_lists_them_with_their_conditions():
    shown = command("ops", "ReLU-1").stdout
    shown = shown.partition("OpenVINO's CPU plugin (2026.4.1) deviates:\n")[2]
    assert shown.endswith("\n  gives 0 for NaN; the formula gives NaN\n    where data has nan\n")
    assert "deviates" not in command("ops", "Ceiling").stdout
    (data,) = json.loads(command("ops", "Select-1", "--json").stdout)
    row, *_ = data["deviations"]
    assert row["kind"] == "refuses"
    assert row["when"] == ["layer is not constant", "auto_broadcast = pdpd", "auto_broadcast_axis != -1"]
    assert row["conditions"] == "auto_broadcast = pdpd and auto_broadcast_axis != -1"


def test_explain_explains_them():
    assert "OpenVINO is known to do otherwise" in command("explain", "d101").stdout
