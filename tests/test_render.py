"""The formats of reports: each read back by the rules of those who read it."""

import io
import json
import os
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import unquote, urlsplit

import jsonschema
import pytest
from pydantic import BaseModel
from sarif_pydantic import Sarif

from irrun.check.codes import CODES
from irrun.check.render.alike import grouped
from irrun.check.render.concise import render_concise
from irrun.check.render.formats import FORMATS
from irrun.check.render.github import render_github
from irrun.check.render.gitlab import render_gitlab
from irrun.check.render.json import render_json, render_jsonl
from irrun.check.render.junit import render_junit
from irrun.check.render.sarif import render_sarif
from irrun.check.render.shapes import render_shapes
from irrun.check.render.text import cells, one_line, overview, padded, render_text
from irrun.check.validate import Report, validate
from irrun.cli.options import FORMAT_NAMES
from irrun.diagnostics import Diagnostic, LayerName, Note, Span
from irrun.tools.compare.table import _aligned

ROOT = Path(__file__).parent.parent
INVALID = sorted((Path(__file__).parent / "invalid").glob("*.xml"))
CNN = ROOT / "samples" / "cnn" / "model.xml"

NASTY = Report(
    Path("folder, a/m%:odel\n.xml"),
    [
        Diagnostic("E102", "no place: 100%\r\nand, a line\x1b[0m more", file="folder, a/m%:odel\n.xml"),
        Diagnostic(
            "E304",
            'sizes <&> "differ"\x00\ufffe',
            Span(3, 5, 7),
            LayerName(4, "a\n`b`, c::d", "Add"),
            "help: ::error::50%\nsecond",
            (Note("from <here>", Span(2, 1)), Note("nowhere")),
            file="folder, a/m%:odel\n.xml",
        ),
        Diagnostic("W931", "twice", Span(9, 1), file="folder, a/m%:odel\n.xml"),
        Diagnostic("W931", "twice", Span(10, 1), file="folder, a/m%:odel\n.xml"),
    ],
)
"""Whatever could break a format, in names, messages and the path."""


@pytest.fixture(scope="module")
def reports():
    return [*map(validate, INVALID), validate(CNN), NASTY]


def found_in(reports):
    return [diagnostic for report in reports for diagnostic in report.diagnostics]


def causes_in(reports):
    """The first diagnostic of each cause, with where the others are."""
    return [
        (alike.first, f" ({alike.more})" if alike.more else "") for r in reports for alike in grouped(r.diagnostics)
    ]


def test_the_command_line_offers_every_format():
    assert tuple(FORMATS) == FORMAT_NAMES


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_takes_no_one_and_many_reports(name, reports):
    render = FORMATS[name]
    for number in (0, 1, len(reports)):
        text = render(reports[:number])
        assert isinstance(text, str)
        assert not text.endswith("\n\n")


def test_text_shows_no_control_characters():
    shown = render_text([NASTY])
    assert r"error[E102]: no place: 100%\r\nand, a line\x1b[0m more" in shown
    assert set(shown) - {"\n"} == set(filter(str.isprintable, shown))


def test_an_excerpt_keeps_its_caret_in_place_behind_control_characters(tmp_path):
    path = tmp_path / "model.xml"
    path.write_bytes(b'<net>\r\n\x1b\t<layer x="1"/>\r\n')
    shown = render_text([Report(path, [Diagnostic("E101", "bad", Span(2, 3, 6), file="model.xml")])])
    assert '2 | \ufffd <layer x="1"/>\n  |   ^^^^^^\n' in shown


def test_an_excerpt_keeps_its_caret_in_place_behind_wide_and_combining_characters(tmp_path):
    path = tmp_path / "model.xml"
    path.write_text('<a n="模型e\u0301"/><層/>', encoding="utf-8")
    shown = render_text([Report(path, [Diagnostic("E101", "bad", Span(1, 14, 2), file="model.xml")])])
    assert f'1 | <a n="模型e\u0301"/><層/>\n  | {" " * 14}^^^\n' in shown


def test_columns_are_as_wide_as_terminals_show_them():
    names = ("ab", "模型", "e\u0301x", "😀")
    assert [cells(name) for name in names] == [2, 4, 2, 2]
    assert [padded(name, 4) for name in names] == ["ab  ", "模型", "e\u0301x  ", "😀  "]
    assert [padded(name, 4, right=True) for name in names] == ["  ab", "模型", "  e\u0301x", "  😀"]
    rows = [("tensor", "line"), ("模型:0", "1"), ("layer:0", "22")]
    assert _aligned(rows) == "tensor   line\n模型:0      1\nlayer:0    22\n"


def test_the_overview_counts_models_and_diagnostics():
    clean = Report(Path("a.xml"), [])
    counts, names = overview([clean, NASTY]).split("\n")
    assert counts == "2 models: 1 ok, 2 errors, 2 warnings"
    assert names.startswith("errors in ")
    many = [Report(Path(f"{number}.xml"), [Diagnostic("E101", "broken")]) for number in range(23)]
    assert overview(many).endswith(" 18.xml, 19.xml and 3 more")
    assert overview([clean], 1) == "1 model: 1 ok; 1 other .xml file skipped"
    assert overview([], 2) == "0 models: nothing to check; 2 other .xml files skipped"


def test_concise_is_one_line_each_that_the_problem_matcher_reads(reports):
    (matcher,) = json.loads((ROOT / ".github" / "irrun-problem-matcher.json").read_text())["problemMatcher"]
    (pattern,) = matcher["pattern"]
    lines = render_concise(reports).split("\n")
    expected = causes_in(reports)
    assert len(lines) == len(expected)
    for line, (diagnostic, more) in zip(lines, expected, strict=True):
        match = re.fullmatch(pattern["regexp"], line)
        assert match, line
        assert int(match[pattern["line"]]) == (diagnostic.line or 1)
        assert int(match[pattern["column"]]) == (diagnostic.column or 1)
        assert match[pattern["severity"]] == diagnostic.severity
        assert match[pattern["code"]] == diagnostic.code
        if diagnostic.message.isprintable():
            assert match[pattern["message"]] == diagnostic.message + more
        if diagnostic.file.isprintable():
            assert match[pattern["file"]] == diagnostic.file


def test_jsonl_has_the_diagnostics_of_json_line_by_line(reports):
    expected = [diagnostic for report in json.loads(render_json(reports)) for diagnostic in report["diagnostics"]]
    assert [json.loads(line) for line in render_jsonl(reports).split("\n")] == expected


# what irrun writes of SARIF 2.1.0, by the words of the standard: nothing else may stand there
TEXT = {"type": "object", "required": ["text"], "additionalProperties": False}
TEXT |= {"properties": {"text": {"type": "string", "minLength": 1}, "markdown": {"type": "string", "minLength": 1}}}
POSITIVE = {"type": "integer", "minimum": 1}
LEVEL = {"enum": ["none", "note", "warning", "error"]}


def exactly(**properties):
    return {"type": "object", "required": [*properties], "additionalProperties": False, "properties": properties}


def several(items, **more):
    return {"type": "array", "items": items, **more}


ARTIFACT_LOCATION = exactly(uri={"type": "string", "pattern": r"^[A-Za-z0-9._~/%:-]+$"})
REGION = exactly(startLine=POSITIVE, startColumn=POSITIVE, endLine=POSITIVE, endColumn=POSITIVE)
LOCATION = exactly(physicalLocation=exactly(artifactLocation=ARTIFACT_LOCATION, region=REGION))
LOCATION["properties"] |= {
    "id": {"type": "integer", "minimum": 0},
    "message": TEXT,
    "logicalLocations": several(
        exactly(name={"type": "string"}, fullyQualifiedName={"type": "string"}, kind={"type": "string"})
    ),
}
RULE = exactly(
    id={"type": "string"},
    shortDescription=TEXT,
    fullDescription=TEXT,
    help=TEXT,
    defaultConfiguration=exactly(level=LEVEL),
)
RESULT = exactly(
    ruleId={"type": "string"},
    ruleIndex={"type": "integer", "minimum": 0},
    level=LEVEL,
    message=TEXT,
    locations=several(LOCATION, minItems=1),
    partialFingerprints={"type": "object", "additionalProperties": {"type": "string"}},
)
RESULT["properties"]["relatedLocations"] = several(LOCATION, uniqueItems=True)
DRIVER = exactly(
    name={"type": "string"}, version={"type": "string", "minLength": 1}, rules=several(RULE, uniqueItems=True)
)
SARIF = exactly(
    version={"const": "2.1.0"},
    runs=several(
        exactly(
            tool=exactly(driver=DRIVER),
            columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
            artifacts=several(exactly(location=ARTIFACT_LOCATION), uniqueItems=True),
            results=several(RESULT),
        )
    ),
)
SARIF["properties"]["$schema"] = {"type": "string", "format": "uri"}


def test_sarif_has_the_form_that_it_should(reports):
    for some in ([], reports[:1], reports):
        jsonschema.validate(json.loads(render_sarif(some)), SARIF)


def test_sarif_fits_the_published_schema(reports):
    path = os.environ.get("IRRUN_SARIF_SCHEMA")
    if not path:
        pytest.skip("set IRRUN_SARIF_SCHEMA to a copy of sarif-schema-2.1.0.json from docs.oasis-open.org/sarif")
    schema = json.loads(Path(path).read_text())
    check = jsonschema.validators.validator_for(schema)(schema)
    for some in ([], reports[:1], reports):
        check.validate(json.loads(render_sarif(some)))


def test_sarif_is_read_by_a_parser_of_the_published_format(reports):
    for some in ([], reports[:1], reports):
        log = Sarif.model_validate_json(render_sarif(some))
        assert len(log.runs[0].results or []) == len(found_in(some))
        assert set(unknown_fields(log)) <= {"columnKind"}  # which the format has, but this parser not


def unknown_fields(part):
    """Those that the format does not have, at any depth."""
    if isinstance(part, BaseModel):
        yield from part.model_extra or ()
        for name in type(part).model_fields:
            yield from unknown_fields(getattr(part, name))
    elif isinstance(part, list):
        for item in part:
            yield from unknown_fields(item)


def test_sarif_results_point_at_their_rules_and_places(reports):
    (run,) = json.loads(render_sarif(reports))["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted({diagnostic.code for diagnostic in found_in(reports)})
    assert all(CODES[rule["id"]].explanation in rule["help"]["text"] for rule in rules)
    for result, diagnostic in zip(run["results"], found_in(reports), strict=True):
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == diagnostic.code
        assert result["level"] == diagnostic.severity
        (location,) = result["locations"]
        region = location["physicalLocation"]["region"]
        assert region["startLine"] == (diagnostic.line or 1)
        assert region["startColumn"] < region["endColumn"]
        if diagnostic.span:
            assert region["endColumn"] - region["startColumn"] == diagnostic.span.length
    assert [note["message"]["text"] for note in run["results"][-3]["relatedLocations"]] == ["from <here>"]


def test_sarif_uris_lead_to_the_files(monkeypatch, tmp_path):
    (tmp_path / "in side").mkdir()
    inside, outside = tmp_path / "in side" / "a:b#ü.xml", tmp_path.parent / "out side.xml"
    monkeypatch.chdir(tmp_path)
    (run,) = json.loads(render_sarif([Report(path, []) for path in (inside, outside)]))["runs"]
    first, second = (artifact["location"]["uri"] for artifact in run["artifacts"])
    assert unquote(first) == "in side/a:b#ü.xml"
    assert urlsplit(first).path == first
    assert second.startswith("file:///")
    assert unquote(urlsplit(second).path) == str(outside)


def test_github_commands_read_back_by_the_rules_of_the_runner(reports):
    lines = render_github(reports).split("\n")
    for line, (diagnostic, more) in zip(lines, causes_in(reports), strict=True):
        command, listed, data = re.fullmatch(r"::(\w+) ([^\r\n]*?)::([^\r\n]*)", line).groups()
        properties = dict(part.split("=", 1) for part in listed.split(","))
        unescaped = {key: unescape(value, {":": "%3A", ",": "%2C"}) for key, value in properties.items()}
        assert command == diagnostic.severity
        assert Path(unescaped["file"]).absolute() == Path(diagnostic.file).absolute()
        assert unescaped["title"] == f"{diagnostic.code} {CODES[diagnostic.code].title}"
        assert unescape(data, {}).split("\nhelp: ", 1)[0] == one_line(diagnostic.message) + more
        if diagnostic.span:
            assert int(properties["line"]) == diagnostic.line
            assert int(properties["col"]) == diagnostic.column
            assert int(properties["endColumn"]) == diagnostic.end_column
        else:
            assert set(properties) == {"file", "title"}


def unescape(text, more):
    for character, code in {"\r": "%0D", "\n": "%0A", **more, "%": "%25"}.items():
        text = text.replace(code, character)
    return text


def test_gitlab_has_its_fields_and_fingerprints_that_are_all_different(reports):
    issues = json.loads(render_gitlab(reports))
    for issue, diagnostic in zip(issues, found_in(reports), strict=True):
        assert set(issue) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert issue["check_name"] == diagnostic.code
        assert issue["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert issue["location"]["lines"] == {"begin": diagnostic.line or 1}
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)


def test_paths_are_relative_to_the_current_directory(monkeypatch):
    for variable in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(ROOT)
    (issue, *_) = json.loads(render_gitlab([validate(INVALID[0])]))
    assert issue["location"]["path"] == f"tests/invalid/{INVALID[0].name}"


@pytest.mark.parametrize("variable", ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"])
def test_paths_are_relative_to_what_is_checked_out(variable, monkeypatch, tmp_path):
    monkeypatch.setenv(variable, str(tmp_path))
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path / "models")
    found = [Report(Path(name), [Diagnostic("E102", name)]) for name in ("a.xml", "../b.xml", "../../c.xml")]
    wanted = ["models/a.xml", "b.xml", "../../c.xml"]
    assert [issue["location"]["path"] for issue in json.loads(render_gitlab(found))] == wanted
    assert re.findall("file=([^,]*),", render_github(found)) == wanted
    (run,) = json.loads(render_sarif(found))["runs"]
    assert [artifact["location"]["uri"] for artifact in run["artifacts"]] == wanted


def test_a_model_that_is_named_twice_is_one_file(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    twice = [Report(path, [Diagnostic("E102", "no place")]) for path in (Path("a.xml"), tmp_path / "a.xml")]
    (run,) = json.loads(render_sarif(twice))["runs"]
    assert run["artifacts"] == [{"location": {"uri": "a.xml"}}]
    assert len({result["partialFingerprints"]["irrunDiagnostic/v1"] for result in run["results"]}) == 2


def test_fingerprints_outlive_edits_elsewhere(tmp_path):
    path = tmp_path / "model.xml"
    text = (Path(__file__).parent / "invalid" / "five_defects.xml").read_text()
    path.write_text(text)
    before = json.loads(render_gitlab([validate(path)]))
    path.write_text(text.replace("<layers>", "\n\n   <layers>"))
    after = json.loads(render_gitlab([validate(path)]))
    assert [issue["fingerprint"] for issue in before] == [issue["fingerprint"] for issue in after]
    assert before[0]["location"]["lines"]["begin"] + 2 == after[0]["location"]["lines"]["begin"]


def test_junit_has_a_suite_per_model_and_a_failure_per_error(reports):
    root = ET.parse(io.StringIO(render_junit(reports))).getroot()
    assert [suite.get("name") for suite in root][:-1] == [str(report.path) for report in reports][:-1]
    for suite, report in zip(root, reports, strict=True):
        cases = suite.findall("testcase")
        assert len(cases) == int(suite.get("tests")) == max(1, len(report.diagnostics))
        assert len(suite.findall("testcase/failure")) == int(suite.get("failures")) == len(report.errors)
        for case, diagnostic in zip(cases, report.diagnostics, strict=False):
            assert case.get("name").startswith(diagnostic.code)
    assert int(root.get("tests")) == sum(int(suite.get("tests")) for suite in root)
    assert int(root.get("failures")) == sum(int(suite.get("failures")) for suite in root)
    (failure,) = root[-1][1].findall("failure")
    assert failure.get("message") == r'sizes <&> "differ"\x00\ufffe'
    assert "note: from <here> at line 2" in failure.text


def test_shapes_of_layers_bodies_and_failures():
    loop = render_shapes(validate(ROOT / "samples" / "stateful-loop" / "model.xml"))
    assert re.search(r"f32\[1, 4\], f32\[.+, 4\].*Loop_13276.*\n +body", loop)
    assert re.search(r"^ +3.*f32\[4, 4\].*Constant_13264", loop, re.MULTILINE)
    failed = render_shapes(validate(Path(__file__).parent / "invalid" / "five_defects.xml"))
    assert re.search(r"unknown.*misspelt", failed)
    assert render_shapes(validate(ROOT / "nothing.xml")) == ""
