"""Diagnostics of one cause are said once, and what converters always leave is an info."""

import json

import numpy as np
import pytest
from command_line import irrun as command
from ir_builder import Model

import irrun
from irrun.check.leftovers import is_leftover
from irrun.check.render.alike import grouped
from irrun.diagnostics import Diagnostic, LayerName, Span

SHAPE = ("f32", (1, 1, 4, 4))


def of_convolutions(folder, number, types=("Convolution",), **attributes):
    """A row of convolutions of 1 x 1, with further attributes on each."""
    m = Model()
    x = m.parameter("x", "f32", (1, 1, 4, 4))
    data = {"strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1", **attributes}
    for index in range(number):
        kind = types[index % len(types)]
        weights = m.constant(np.ones((1,) * (5 if kind == "GroupConvolution" else 4), np.float32))
        x = m.layer(kind, [x, weights], [SHAPE], name=f"layer {index}", **data)[0]
    m.result(x)
    return m.save(folder)


def lines_with(path, word):
    return [number for number, line in enumerate(path.read_text().split("\n"), 1) if word in line]


def test_equal_warnings_are_one_with_the_lines_of_the_others(tmp_path):
    path = of_convolutions(tmp_path, 68, paddings="0,0")
    shown = command("validate", path).stdout
    first, *others = lines_with(path, "paddings=")
    assert shown.count("warning[W930]: Convolution-1 has no attribute `paddings`; it is ignored\n") == 1
    assert f"model.xml:{first}:" in shown
    assert f"note: and 67 more: lines {', '.join(map(str, others[:10]))}, ...\n" in shown
    assert shown.endswith("model.xml: 68 warnings\n")


def test_concise_and_github_say_it_once_too(tmp_path):
    path = of_convolutions(tmp_path, 3, paddings="0,0")
    _, *others = lines_with(path, "paddings=")
    more = f"(and 2 more: lines {others[0]}, {others[1]})"
    (line,) = command("validate", "--format=concise", path).stdout.splitlines()
    assert line.endswith(f"warning[W930] Convolution-1 has no attribute `paddings`; it is ignored {more}")
    (line,) = command("validate", "--format=github", path).stdout.splitlines()
    assert line.startswith("::warning file=")
    assert more in line


def test_what_programs_read_has_all_of_them(tmp_path):
    path = of_convolutions(tmp_path, 3, paddings="0,0")
    expected = lines_with(path, "paddings=")
    shown = {name: irrun.validate(path).render(name) for name in ("json", "jsonl", "sarif", "gitlab", "junit")}
    assert [found["line"] for found in json.loads(shown["json"])["diagnostics"]] == expected
    assert [json.loads(line)["line"] for line in shown["jsonl"].splitlines()] == expected
    places = [result["locations"][0] for result in json.loads(shown["sarif"])["runs"][0]["results"]]
    assert [place["physicalLocation"]["region"]["startLine"] for place in places] == expected
    assert [issue["location"]["lines"]["begin"] for issue in json.loads(shown["gitlab"])] == expected
    assert shown["junit"].count("<testcase ") == 3


def test_other_attributes_and_other_types_of_layers_are_other_causes(tmp_path):
    path = of_convolutions(tmp_path, 4, ("Convolution", "GroupConvolution"), paddings="0,0", colour="red")
    found = grouped(irrun.validate(path).diagnostics)
    assert [(alike.first.layer.type, alike.first.message.split("`")[1], len(alike.others)) for alike in found] == [
        ("Convolution", "paddings", 1),
        ("Convolution", "colour", 1),
        ("GroupConvolution", "paddings", 1),
        ("GroupConvolution", "colour", 1),
    ]


def diagnostic(code, message, line, type="Add", label=None):
    return Diagnostic(code, message, Span(line, 1), LayerName(line, f"l{line}", type), label=label)


def test_names_and_numbers_of_a_place_make_no_difference_where_the_code_says_so():
    stale = [diagnostic("W931", f"output 0 is declared as [{n}], but is [{n + 1}]", n) for n in (3, 5)]
    (alike,) = grouped(stale)
    assert alike.first is stale[0]
    assert alike.more == "and 1 more: line 5"
    assert len(grouped([diagnostic("E304", f"`n` is {n} in `a`, but 9 in `b`", n) for n in (3, 5)])) == 2


def test_warnings_of_a_constraint_are_one_and_errors_are_not():
    warnings = [diagnostic("W950", f"Add-1 C2: `axis` is {n}", n, label="C2") for n in (3, 5)]
    assert len(grouped(warnings)) == 1
    assert len(grouped([*warnings, diagnostic("W950", "Add-1 C3: other", 7, label="C3")])) == 2
    assert len(grouped([diagnostic("E401", f"Add-1 C2: `axis` is {n}", n, label="C2") for n in (3, 5)])) == 2
    assert len(grouped([diagnostic("E401", "Add-1 C2: `axis` is 9", n, label="C2") for n in (3, 5)])) == 1


@pytest.mark.parametrize("number", [10, 11])
def test_what_is_wrong_everywhere_is_one_cause_whatever_layers_it_is_said_of(number):
    types = ("Add", "MatMul")
    said = [
        diagnostic("E206", f"layer {n} `l{n}` ({types[n % 2]}) has no output port 0", n, types[n % 2])
        for n in range(number)
    ]
    other = diagnostic("E206", "layer 99 `x` (Add) has no input port 7", 99)
    found = grouped([*said, other])
    assert len(found) == (11 if number == 10 else 2)
    assert found[-1].first is other
    assert sum(1 + len(alike.others) for alike in found) == number + 1


def test_words_of_files_are_one_cause_in_layers_of_all_types():
    for code, message in (("E301", "`OPSET1` is not an operation set that the reader knows"), ("E210", "`x` is none")):
        assert len(grouped([diagnostic(code, message, n, type) for n, type in enumerate(("Add", "Abs"))])) == 1


def test_others_on_the_same_line_or_without_one():
    (alike,) = grouped([diagnostic("W904", "unreachable", 1)] * 4)
    assert alike.more == "and 3 more on this line"
    (alike,) = grouped([Diagnostic("W904", "unreachable")] * 1002)
    assert alike.more == "and 1,001 more"


def test_counts_have_what_is_not_listed(tmp_path):
    path = of_convolutions(tmp_path, 2300, paddings="0,0")
    report = irrun.validate(path)
    assert len(report.warnings) == 2001
    assert str(report).endswith("model.xml: 2300 warnings")
    assert json.loads(report.render("json"))["warnings"] == 2300


def test_what_a_converter_leaves_on_every_layer_is_an_info(tmp_path):
    path = of_convolutions(tmp_path, 5, ("Convolution", "GroupConvolution"), output_padding="0,0")
    report = irrun.validate(path)
    assert (report.ok, report.warnings, len(report.infos)) == (True, [], 5)
    message = "Convolution-1 has no attribute `output_padding`, which a converter has left"
    assert (report.infos[0].code, report.infos[0].severity, report.infos[0].message) == ("I901", "info", message)
    done = command("validate", "--strict", path)
    assert done.stdout == f"{path}: ok, 12 layers checked; 5 infos with --verbose\n"
    shown = command("validate", "--strict", "--verbose", path).stdout
    assert f"info[I901]: {message}\n" in shown
    assert shown.count("note: and ") == 2
    assert shown.endswith("model.xml: ok, 12 layers checked, 5 infos\n")
    assert "info[I901]" in command("validate", "--select=I901", path).stdout
    assert str(report) == done.stdout[:-1]
    assert report.render(verbose=True) == shown[:-1]


def test_infos_in_every_format(tmp_path):
    path = of_convolutions(tmp_path, 1, output_padding="0,0")
    found = json.loads(command("validate", "--format=json", path).stdout)
    assert (found["ok"], found["warnings"], found["infos"]) == (True, 0, 1)
    assert found["diagnostics"][0]["severity"] == "info"
    (run,) = json.loads(command("validate", "--format=sarif", path).stdout)["runs"]
    assert run["results"][0]["level"] == run["tool"]["driver"]["rules"][0]["defaultConfiguration"]["level"] == "note"
    (issue,) = json.loads(command("validate", "--format=gitlab", path).stdout)
    assert issue["severity"] == "info"
    for format in ("concise", "github"):
        assert command("validate", f"--format={format}", path).stdout == ""
    assert command("validate", "--format=github", "-v", path).stdout.startswith("::notice file=")
    assert 'name="valid"' in command("validate", "--format=junit", path).stdout
    assert 'name="I901 ' in command("validate", "--format=junit", "-v", path).stdout


@pytest.mark.parametrize(
    ("type", "name", "text", "left"),
    [
        ("Convolution", "output_padding", "0,0", True),
        ("Convolution", "output_padding", "1,0", False),
        ("Convolution", "output_padding", "0,x", False),
        ("Convolution", "output_padding", "", False),
        ("ReLU", "output_padding", "0,0", False),
        ("DetectionOutput", "eta", "1.0", True),
        ("DetectionOutput", "eta", "0.9", False),
        ("DetectionOutput", "visualize", "False", True),
        ("DetectionOutput", "share_locations", "1", False),
        ("PriorBoxClustered", "img_h", "300", False),
        ("PriorBoxClustered", "flip", "1", True),
        ("MaxPool", "dilations", "1,1", True),
        ("MaxPool", "dilations", "2,2", False),
        ("Pad", "pad_value", "0.0", True),
        ("Pad", "pad_value", "1", False),
    ],
)
def test_only_what_says_nothing_is_a_leftover(type, name, text, left):
    assert is_leftover(type, name, text) is left


def test_a_padding_that_would_do_something_is_still_a_warning(tmp_path):
    (found,) = irrun.validate(of_convolutions(tmp_path, 1, output_padding="1,1")).diagnostics
    assert found.code == "W930"


def pooled(folder, read):
    m = Model()
    x = m.parameter("x", "f32", (1, 1, 4, 4))
    data = {"strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0", "kernel": "2,2", "index_element_type": "i64"}
    outputs = [("f32", (1, 1, 2, 2))] * 2
    y, indices = m.layer("MaxPool", [x], outputs, "opset8", **data)
    m.result(y)
    if read:
        m.result(indices)
    return irrun.validate(m.save(folder))


def test_the_type_declared_of_an_output_that_nothing_reads_is_an_info(tmp_path):
    (found,) = pooled(tmp_path, read=False).diagnostics
    assert (found.code, found.message) == ("I902", "output 1 is declared as f32, but is i64")
    assert "W932" in {found.code for found in pooled(tmp_path, read=True).diagnostics}


def test_edges_of_a_layer_that_is_lost_are_one_cause_whatever_they_lead_to():
    said = ((3, "ReLU", 4), (5, "Result", 4), (6, "Result", 7))
    found = [
        Diagnostic("E205", f"there is no layer {lost} in the model", Span(line, 1), LayerName(line, "", type))
        for line, type, lost in said
    ]
    assert [(alike.first.line, alike.more) for alike in grouped(found)] == [(3, "and 1 more: line 5"), (6, None)]
