"""Every rule of every op has a row in the table, and irrun's severities are what OpenVINO's answers ask for."""

import json
import random
import re
import warnings
from functools import cache

import numpy as np
import pytest

import irrun
from conformance.constraints.asking import Asker, listed, shown
from conformance.constraints.checking import found
from conformance.constraints.judgement import judged
from conformance.constraints.row import CONSTANTS, PARAMETERS
from conformance.constraints.table import FILE, made_rows, shares, table
from conformance.harness import OPS, engines

PARTS = 8
"""Of the table, for tests that run beside each other."""

ASKED = 30
"""Rows of which OpenVINO is asked again; `python -m conformance.constraints --again` asks all."""

DEPARTING = {
    "BinaryConvolution-1",
    "CumSum-3",  # of booleans a result of the model is whether there are any, though all that reads it sees how many
    "ExperimentalDetectronGenerateProposalsSingleImage-6",  # of boxes with equal scores it takes any
    "LRN-1",
    "PriorBoxClustered-1",
}
"""Ops that OpenVINO computes otherwise without a broken rule, too: known deviations."""

TOLERANCE = 2e-3


def said(row):
    return row.op, row.label, row.changed or row.text


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """What irrun says of a row, once for all tests."""
    folder = tmp_path_factory.mktemp("rows")
    return cache(lambda number: found(table()[number], True, folder))


def test_the_models_of_the_table_are_those_that_are_made_today():
    entries = json.loads(FILE.read_text(encoding="utf-8"))
    assert len(table()) == len(entries), "run `python -m conformance.constraints` in tests/"


def test_every_labelled_constraint_has_a_row():
    there = {(row.op, row.label) for row in table()}
    labels = {(name, label) for name, op in OPS.items() for label in re.findall(r"^ +(C\d+):", op.__doc__ or "", re.M)}
    assert len(labels) > 490
    assert not labels - there, "run `python -m conformance.constraints` in tests/"


def test_every_check_of_a_declaration_has_a_row(tmp_path):
    """One that is made today and has no row must not break what it is to break."""
    there = {row.digest for row in table()}
    absent = [row for row in made_rows() if row.digest not in there]
    assert len(absent) < 300
    for row in absent:
        assert not shares(row, found(row, True, tmp_path)[0]), f"{said(row)}: run `python -m conformance.constraints`"
    assert {row.op for row in table()} == set(OPS)


def test_verdicts_are_what_answers_and_judgements_say():
    for row in table():
        assert judged(row, row.answers) == (row.verdict, row.because), said(row)


@pytest.mark.parametrize("part", range(PARTS))
def test_codes_are_those_of_the_table(part, reported):
    for number in range(part, len(table()), PARTS):
        row, (codes, messages, _) = table()[number], reported(number)
        assert shares(row, codes) == row.code, f"{said(row)}: {codes} {messages}"
        if row.verdict == "error":
            refused = any(code.startswith("E") for code in codes)
            assert refused, f"{said(row)} is an error: {row.because or row.answers}"


def tolerated(part):
    """The warnings of one of the parts in which codes are looked at, by number."""
    numbered = list(enumerate(table()))[part::PARTS]
    return [(number, row) for number, row in numbered if row.verdict == "warning"]


@pytest.mark.parametrize("part", range(PARTS))
def test_what_openvino_computes_is_a_warning_and_computed_as_it_does(part, reported, tmp_path):
    for number, row in tolerated(part):
        codes, messages, outputs = reported(number)
        assert outputs is not None, f"{said(row)}: {codes} {messages}"
        answers = {CONSTANTS: row.answers[CONSTANTS], PARAMETERS: row.answers.get(PARAMETERS, "")}
        for way, answer in answers.items():
            if not answer.startswith("computes: ") or row.op in DEPARTING:
                continue
            model, arrays = read(row, way == CONSTANTS, tmp_path)
            for engine in engines():
                got = shown([listed(array) for array in computed(model, arrays, engine)])
                assert alike(got, answer.removeprefix("computes: ")), f"{said(row)}, engine {engine}: {got}; {answer}"


def read(row, constants, folder):
    xml, weights, arrays = row.model(constants)
    path = folder / "model.xml"
    path.write_text(xml, encoding="utf-8")
    path.with_suffix(".bin").write_bytes(weights)
    return irrun.validate(path).model, [np.asarray(array) for array in arrays]


def computed(model, arrays, engine):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(irrun.GraphExecutor(model, engine=engine).run(arrays).values())


def alike(ours: str, theirs: str) -> bool:
    """Whether two texts are equal but for digits of numbers."""
    number = r"-?\d+\.?\d*(?:e[-+]?\d+)?"
    if re.sub(number, "#", ours) != re.sub(number, "#", theirs):
        return False
    pairs = zip(re.findall(number, ours), re.findall(number, theirs), strict=True)
    return all(abs(float(a) - float(b)) <= TOLERANCE * max(1, abs(float(b))) for a, b in pairs)


def test_openvino_still_answers_so():
    """A few rows of each verdict; what ends the process takes too long."""
    asked = [row for row in table() if not row.answers[CONSTANTS].startswith(("crashes", "hangs", "unstable"))]
    with Asker() as asker:
        for row in random.Random(16).sample(asked, ASKED):
            answer, _ = asker.ask(row, True)
            assert answer.partition(":")[0] == row.answers[CONSTANTS].partition(":")[0], f"{said(row)}: {answer}"
