"""The page as a file: what is in it, how large it is, and that names stay texts."""

import base64
import gzip
import hashlib
import json
import os
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest
from command_line import irrun as command
from ir_builder import Model

from irrun.tools.report.collection import collected, subject
from irrun.tools.report.page import MAX_ROWS, SCRIPTS, STYLES, WORKER, rendered

from .models import HOSTILE, deep, hostile

ROOT = Path(__file__).parents[3]
CNN = ROOT / "samples" / "cnn" / "model.xml"
FIVE = ROOT / "tests" / "invalid" / "five_defects.xml"
MB = 1_000_000


class Elements(HTMLParser):
    """The elements of a page, as (tag, attributes), the texts in each kind of them, and all other text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {}
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._open = tag

    def handle_endtag(self, tag):
        self._open = ""

    def handle_data(self, data):
        self.inside.setdefault(self._open, []).append(data)


def page_of(path: Path) -> str:
    return rendered(collected(subject(path))).decode()


def embedded(page: str) -> dict:
    (packed,) = re.findall(r'<script type="application/octet-stream" id="data">([A-Za-z0-9+/=]*)</script>', page)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_the_data_are_in_the_page_as_they_were_collected():
    data = collected(subject(CNN))
    assert embedded(rendered(data).decode()) == json.loads(json.dumps(data))


def test_the_policy_allows_what_is_in_the_page_and_nothing_else():
    page = page_of(CNN)
    elements = Elements(page)
    (policy,) = (attrs["content"] for tag, attrs in elements.tags if attrs.get("http-equiv"))
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy
    assert "http" not in policy
    for tag, kind in (("script", "script-src"), ("style", "style-src")):
        texts = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digests = {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts}
        assert {f"'sha256-{digest}'" for digest in digests} == set(rules[kind].split())
    assert not [attrs for _, attrs in elements.tags if {"src", "href", "style", "onclick", "onload"} & attrs.keys()]


def test_nothing_of_the_package_ends_a_script_too_early():
    page = files("irrun.tools.report").joinpath("page")
    for name in (*SCRIPTS, *WORKER, *STYLES):
        text = page.joinpath(*name.split("/")).read_text()
        assert "</script" not in text.lower()
        assert "</style" not in text.lower()
        assert "<!--" not in text
        assert "sourceMappingURL" not in text


def test_all_files_of_the_page_are_used_and_others_have_their_licenses():
    page = files("irrun.tools.report").joinpath("page")
    used = {*SCRIPTS, *WORKER, *STYLES, "page.html"}
    there = {entry.name for entry in page.iterdir() if entry.is_file()}
    vendor = {entry.name for entry in page.joinpath("vendor").iterdir()}
    assert there == {name for name in used if "/" not in name}
    assert {f"vendor/{name}" for name in vendor if name.endswith((".js", ".css"))} == used - there
    notes = page.joinpath("vendor", "README").read_text()
    for name in ("dagre", "uplot"):
        assert f"{name}.LICENSE" in vendor
        assert f"{name}.LICENSE" in notes


def test_hostile_names_make_no_elements(tmp_path):
    page = page_of(hostile(tmp_path))
    elements, harmless = Elements(page), Elements(page_of(CNN))
    assert {tag for tag, _ in elements.tags} <= {tag for tag, _ in harmless.tags} | {"bdi", "small", "pre"}
    assert len(re.findall(r"<script\b", page)) == len(SCRIPTS) + 2
    assert HOSTILE["markup"] in "".join(text for texts in elements.inside.values() for text in texts)
    assert not any(character in page for character in "\u202e\u2028\ufeff")


def test_without_scripts_there_are_tables():
    text = page_of(FIVE)
    noscript = text[text.index("<noscript>") : text.index("</noscript>")]
    texts = " ".join("".join(found) for found in Elements(noscript).inside.values())
    assert "Clamp-1 lacks its required attribute `min`" in texts
    assert '<data max="6"/>' in texts
    assert noscript.count("<tr><td>") == 10


def test_a_thousand_layers_take_little(tmp_path):
    page = page_of(deep(tmp_path, 1000, scoped=True))
    assert len(page) < 1.5 * MB
    assert page.count("<tr><td>") == 1002


def test_twenty_thousand_layers_take_not_much_more(tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (1, 16))
    for number in range(19_998):
        name = f"__module.model.layers.{number // 40}.mlp.part{number % 40 // 20}/aten::gate/Gate_{number}"
        (x,) = model.layer(("Sigmoid", "Tanh")[number % 2], [x], [("f32", (1, 16))], name=name, names=[f"t{number}"])
    model.result(x)
    page = page_of(model.save(tmp_path))
    assert len(page) < 10 * MB
    assert page.count("<tr><td>") == MAX_ROWS


def test_the_command_writes_a_page_of_everything(tmp_path):
    output = tmp_path / "report.html"
    other = tmp_path / "other.xml"
    other.write_bytes(CNN.read_bytes().replace(b"Relu_50", b"renamed"))
    other.with_suffix(".bin").write_bytes(CNN.with_suffix(".bin").read_bytes())
    options = ("--random", 1, "--profile", "--compare", "precision:f16", "--diff", other, "-o", output)
    done = command("report", CNN, *options)
    assert done.stdout == ""
    data = embedded(output.read_text())
    assert {entry["type"] for entry in data["profile"]["entries"]} >= {"SoftMax", "MatMul"}
    assert data["profile"]["events"][0][1] == 0.0
    named = [layer for entry in data["profile"]["entries"] for layer in entry["layers"]]
    assert "Softmax_62" in {data["layers"]["name"][layer] for layer in named}
    assert data["comparison"]["other"] == "precision:f16"
    assert [group["kind"] for group in data["difference"]["groups"]] == ["renamed"]


def test_times_are_those_of_the_second_run_alone(tmp_path):
    """The calls and the microseconds of an entry are the sums of its events, whatever the first run has computed."""
    output = tmp_path / "report.html"
    command("report", ROOT / "samples" / "language-model" / "model.xml", "--random", 1, "--profile", "-o", output)
    profile = embedded(output.read_text())["profile"]
    sums = [[0, 0.0] for _ in profile["entries"]]
    for entry, _, micros in profile["events"]:
        sums[entry][0] += 1
        sums[entry][1] += micros
    assert [entry["calls"] for entry in profile["entries"]] == [calls for calls, _ in sums]
    assert [entry["time"] for entry in profile["entries"]] == pytest.approx([micros for _, micros in sums], abs=1)


def test_a_comparison_that_was_written_is_shown(tmp_path):
    results, output = tmp_path / "results.json", tmp_path / "report.html"
    overflow = ROOT / "samples" / "f16-overflow"
    inputs = ("--inputs", overflow / "inputs.npz")
    command("compare", overflow / "model.xml", "precision:f16", *inputs, "-o", results, status=1)
    command("report", overflow / "model.xml", "--compare", results, *inputs, "-o", output)
    data = embedded(output.read_text())
    assert [tensor["cause"] for tensor in data["comparison"]["tensors"] if not tensor["agrees"]] == ["N202"]
    other = command("report", CNN, "--compare", results, "-o", output, status=2)
    assert "it is of another model than" in other.stderr
    strict = command("report", overflow / "model.xml", "--compare", results, "--tol", "f16", "-o", output, status=2)
    assert "--tol and --config are for a --compare that runs" in strict.stderr
    text = json.loads(results.read_text())
    results.write_text(json.dumps(text | {"tensors": [{}]}))
    done = command("report", overflow / "model.xml", "--compare", results, "-o", output, status=2)
    assert "somebody has changed" in done.stderr


def test_a_model_with_errors_has_a_report_and_is_not_run(tmp_path):
    output = tmp_path / "report.html"
    done = command("report", FIVE, "--profile", "--random", 1, "-o", output)
    assert "it is neither run nor compared" in done.stderr
    assert embedded(output.read_text())["counts"]["error"] == 4


def test_a_model_without_layers_has_a_report(tmp_path):
    path = tmp_path / "empty.xml"
    path.write_text('<net name="empty" version="11"><layers/><edges/></net>')
    data = embedded(page_of(path))
    assert data["layers"]["name"] == []
    assert data["memory"] == {"layers": [], "bytes": [], "tensors": []}


def test_sizes_are_those_of_the_inputs(tmp_path):
    output = tmp_path / "report.html"
    command("report", CNN, "--inputs", CNN.with_name("inputs.npz"), "-o", output)
    data = embedded(output.read_text())
    assert data["layers"]["texts"] == {}
    assert data["layers"]["outputs"][0][0][0] == "f32[2, 3, 16, 16]"


def test_a_model_from_standard_input_goes_to_standard_output():
    done = command("report", "-", "-o", "-", stdin=FIVE.read_bytes())
    assert embedded(done.stdout)["summary"]["name"] == "five independent defects"


@pytest.mark.parametrize(
    ("args", "status", "said"),
    [
        ((CNN,), 2, "give the file to write with -o FILE"),
        ((CNN, "-o", "-", "--open"), 2, "--open needs a file"),
        (("nowhere.xml", "-o", "{out}"), 2, "there is no file nowhere.xml"),
        ((CNN, "-o", CNN), 2, "is read by this run"),
        ((CNN, "-o", "{out}/none/report.html"), 2, "there is no folder"),
        ((CNN, "-o", "{out}", "--shape", "picture=1,3,8,8"), 2, "`picture` is no input of the model"),
        ((CNN, "-o", "{out}", "--profile"), 1, "make them up with --random SEED"),
        ((CNN, "-o", "{out}", "--compare", "nothing.json"), 2, "there is no file nothing.json"),
        ((CNN, "-o", "{out}", "--tol", "f16"), 2, "--tol and --config are for a --compare that runs"),
        ((CNN, "-o", "{out}", "--compare", "nothing.npz", "--random", "1"), 2, "there is no file nothing.npz"),
        ((CNN, "-o", "{out}", "--diff", CNN.with_suffix(".bin")), 1, "error["),
        ((CNN.with_suffix(".bin"), "-o", "{out}"), 1, "error["),
        ((CNN, "-o", "{out}", "--inputs", CNN), 1, "error: "),
    ],
)
def test_wrong_use_and_bad_files_are_told_and_nothing_is_written(args, status, said, tmp_path):
    output = tmp_path / "report.html"
    given = [str(arg).replace("{out}", str(output)) for arg in args]
    done = command("report", *given, status=status)
    assert said in done.stderr
    assert not output.exists()


def test_without_jinja2_it_is_said_how_to_get_it(tmp_path):
    script = "import sys; sys.modules['jinja2'] = None\n"
    (tmp_path / "sitecustomize.py").write_text(script)
    paths = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    done = command("report", CNN, "-o", tmp_path / "report.html", status=2, env={"PYTHONPATH": paths})
    assert "pip install 'irrun[report]'" in done.stderr
