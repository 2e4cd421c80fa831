"""What `irrun validate --fix` does: which defects it mends, and that it changes nothing else."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from command_line import irrun as command
from corpus import PARTS, defects

import irrun
from irrun.check.fixes import with_fixes
from irrun.check.fixes.application import mended
from irrun.ir.text_edits import Edit, apply

SAMPLE = Path(__file__).parents[1] / "samples" / "cnn" / "model.xml"
STEP = 2
"""Of the defects so many are passed over to come to the next one, for time."""

INVALID = sorted((Path(__file__).parent / "invalid").glob("*.xml"))

SAFE: dict[str, dict[str, int]] = {
    "files": {
        "E101": 4, "E106": 1, "E109": 1,
    },
    "graphs": {
        "E201": 15, "E202": 10, "E203": 10, "E204": 8, "E205": 18, "E206": 12, "E207":
        10, "E208": 10, "E210": 6, "E211": 7, "E220": 14, "E221": 2, "E302": 8, "E306": 7, "W901": 4, "W902":
        3, "W903": 3, "W906": 3, "W907": 3, "W908": 8, "W930": 4,
    },
    "families": {
        "E206": 3, "E210": 39, "E213": 1, "E220": 11, "E301": 3, "W906": 5, "W907": 22, "W908": 26, "W930": 6, "W931":
        32, "W932": 25,
    },
    "attributes": {
        "E306": 123, "E307": 157, "E401": 3, "W930": 118,
    },
    "constants": {
        "E217": 6, "E503": 6, "E504": 12, "E505": 4, "E506": 13, "E508": 5, "W905": 2,
    },
    "signatures": {
        "E301": 101, "W931": 81, "W932": 38,
    },
    "bodies": {
        "E201": 5, "E202": 13, "E203": 3, "E205": 1, "E207": 1, "E208": 5, "E213": 11, "E214": 4, "E215": 7,
        "E217": 2, "E301": 2, "E307": 4, "W908": 1, "W930": 2, "W932": 7,
    },
    "constraints": {
        "W930": 1,
    },
}  # fmt: skip
"""Defects that a safe fix mends, by part and code; the corpus changes with its models, so half will do."""


@pytest.mark.parametrize("part", PARTS)
def test_safe_fixes_of_the_corpus_leave_nothing_of_what_they_mend(part, tmp_path):
    path, weights = tmp_path / "model.xml", tmp_path / "model.bin"
    safe: Counter[str] = Counter()
    for defect in islice(defects(part), 0, None, STEP):
        path.write_bytes(defect.xml)
        weights.unlink(missing_ok=True)
        if defect.weights is not None:
            weights.write_bytes(defect.weights)
        report = with_fixes(irrun.validate(path))
        fixed = [found for found in report.diagnostics if any(fix.safe for fix in found.fixes)]
        if not fixed:
            continue
        result = mended(path, defect.xml)
        left = {(found.code, found.layer) for found in result.report.diagnostics}
        assert not [str(found) for found in fixed if (found.code, found.layer) in left], str(defect)
        before = {found.code for found in report.errors}
        new = [found for found in result.report.errors if found.code in before and found.fixes and found.fixes[0].safe]
        assert not new, str(defect)
        safe.update(found.code for found in fixed)
    assert {code: count for code, count in SAFE[part].items() if safe[code] < count // 2} == {}, dict(safe)


def fixed(content: bytes, tmp_path: Path, **options: bool) -> bytes:
    path = tmp_path / "model.xml"
    path.write_bytes(content)
    path.with_suffix(".bin").write_bytes(SAMPLE.with_suffix(".bin").read_bytes())
    return mended(path, content, **options).content


def sample_defects() -> bytes:
    text = SAMPLE.read_bytes()
    for old, new in (
        (b'type="ReLU"', b'type="Relux"'),
        (b'strides="2, 2"', b'strides="2; 2"'),
        (b"opset1", b"Opset 1"),
    ):
        assert old in text
        text = text.replace(old, new, 1)
    return text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
@pytest.mark.parametrize("breaks", ["\n", "\r\n"])
def test_line_ends_marks_and_encodings_stay(encoding, breaks, tmp_path):
    def written(text: bytes) -> bytes:
        lines = text.decode().replace("Relu_50", "Relü_50").replace('<?xml version="1.0"?>', declaration)
        return lines.replace("\r\n", "\n").replace("\n", breaks).encode(encoding)

    declaration = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>'
    assert fixed(written(sample_defects()), tmp_path) == written(SAMPLE.read_bytes())


def test_a_model_on_one_line(tmp_path):
    def joined(text: bytes) -> bytes:
        return b"".join(line.strip() for line in text.splitlines())

    assert fixed(joined(sample_defects()), tmp_path) == joined(SAMPLE.read_bytes())


def test_what_changes_results_needs_unsafe(tmp_path):
    text = SAMPLE.read_bytes().replace(b'auto_pad="explicit"', b'auto_pda="same_upper"', 1)
    assert fixed(text, tmp_path) == text
    assert b'auto_pad="same_upper"' in fixed(text, tmp_path, unsafe=True)


def test_a_word_for_a_boolean_is_what_openvino_goes_on_with_or_needs_unsafe(tmp_path):
    """It ignores what it cannot read: without keep_dims it is false."""
    text = next(path for path in INVALID if path.stem == "unreadable_boolean").read_bytes()
    assert fixed(text, tmp_path) == text
    assert b'keep_dims="true"' in fixed(text, tmp_path, unsafe=True)
    assert b'keep_dims="false"' in fixed(text.replace(b'"yes"', b'"no"'), tmp_path)


def test_errors_that_hide_others_are_mended_round_by_round(tmp_path):
    text = sample_defects().replace(b"<edges>", b"<edge_list>").replace(b"</edges>", b"</edge_list>")
    text = text.replace(b'name="image"', b"name=image", 1) + b"\nwritten by a tool\n"
    assert fixed(text, tmp_path).rstrip() == SAMPLE.read_bytes().rstrip()


def test_an_output_keeps_its_name_before_an_inner_tensor(tmp_path):
    text = SAMPLE.read_bytes()
    inner = b'precision="FP32" names="logits,probabilities">'
    at = text.index(b'precision="FP32">', text.index(b"<output>", text.index(b'type="Convolution"')))
    text = text[:at] + inner + text[at + len(b'precision="FP32">') :]
    assert fixed(text, tmp_path) == text.replace(b"logits,probabilities", b"logits,probabilities_1")


def test_replacements_have_their_lines_and_columns(tmp_path):
    path = tmp_path / "model.xml"
    path.write_bytes(sample_defects())
    path.with_suffix(".bin").write_bytes(SAMPLE.with_suffix(".bin").read_bytes())
    report = with_fixes(irrun.validate(path))
    lines = path.read_text().splitlines()
    found = {d.code: d.fixes[0] for d in report.diagnostics}
    part = found["E307"].replacements[0]
    assert lines[part.at[0] - 1][part.at[1] - 1 : part.until[1] - 1] == '"2; 2"'
    assert part.text == '"2, 2"'
    edits = [Edit(p.start, p.end, p.text) for d in report.diagnostics for p in d.fixes[0].replacements]
    assert irrun.validate(path, content=apply(path.read_bytes(), edits)).ok


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_broken_models_get_no_more_errors(path):
    content = path.read_bytes()
    before = irrun.validate(path)
    for unsafe in (False, True):
        assert len(mended(path, content, unsafe=unsafe).report.errors) <= len(before.errors)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.xml"
    path.write_bytes(sample_defects())
    path.with_suffix(".bin").write_bytes(SAMPLE.with_suffix(".bin").read_bytes())
    return path


def test_fix_changes_the_file_and_reports_the_result(model):
    done = command("validate", "--fix", model)
    assert model.read_bytes() == SAMPLE.read_bytes()
    assert done.stdout.endswith("ok, 19 layers checked\n")
    assert 'fixed: write type="ReLU" for "Relux"' in done.stderr


def test_diff_changes_nothing(model):
    done = command("validate", "--diff", model)
    assert model.read_bytes() == sample_defects()
    assert done.stdout.startswith(f"--- {model}\n+++ {model}\n@@ ")
    assert [line for line in done.stdout.splitlines() if line[:1] == "+"][1:] != []
    assert sum(line[:1] == "+" for line in done.stdout.splitlines()) == 4
    assert "would be fixed" in done.stderr


def test_what_cannot_be_fixed_is_left_and_fails(model):
    model.write_bytes(model.read_bytes().replace(b'auto_pad="explicit"', b'auto_pad="sideways"', 1))
    done = command("validate", "--fix", model, status=1)
    assert "sideways" in done.stdout
    assert b"Relux" not in model.read_bytes()


def test_codes_that_are_ignored_are_not_fixed(model):
    command("validate", "--fix", "--ignore", "E301", model)
    assert b"Relux" in model.read_bytes()
    assert b'"2; 2"' not in model.read_bytes()


def test_programs_are_told_of_fixes(model):
    found = json.loads(command("validate", "--format", "json", model, status=1).stdout)["diagnostics"]
    assert {fix["title"] for each in found for fix in each["fixes"] if fix["safe"]} == {
        'write type="ReLU" for "Relux"',
        'write strides="2, 2" for "2; 2"',
        'write version="opset1" for "Opset 1"',
    }
    results = json.loads(command("validate", "--format", "sarif", model, status=1).stdout)["runs"][0]["results"]
    change = results[0]["fixes"][0]["artifactChanges"][0]["replacements"][0]
    assert change["deletedRegion"].keys() == {"startLine", "startColumn", "endLine", "endColumn"}


def test_standard_input_has_no_file_to_fix(model):
    assert "--diff" in command("validate", "--fix", "-", status=2, stdin=model.read_bytes()).stderr
    command("validate", "--unsafe", model, status=2)
    command("validate", "--fix", "--diff", model, status=2)
