"""The known deviations that ship with irrun: in step with the cases, and said of the layers that they concern."""

import json
import re

import pytest

from conformance.concerned import agreeing, concerned, found
from conformance.deviations import DATA, data, departure, deviating, when
from conformance.harness import Case
from irrun.check.deviations import IN_RUNS, known_deviations
from irrun.check.deviations.conditions import names, parse
from irrun.spec.registry import registry

MOST = 0.03


def test_the_data_are_up_to_date():
    assert DATA.read_text(encoding="utf-8") == data(), "run `python -m conformance.deviations` in tests/"


def test_each_deviating_case_is_one_known_deviation():
    known = [row for rows in known_deviations().values() for row in rows]
    assert [(row.op, row.case) for row in known] == [(case.op, case.title) for case in deviating()]
    assert {row.kind for row in known} == {"differs", "refuses", "crashes"}
    assert {(row.device, row.openvino) for row in known} == {("CPU", json.loads(data())["openvino"])}


@pytest.mark.parametrize("case", deviating(), ids=str)
def test_the_conditions_of_a_case_are_of_the_language_and_of_its_op(case: Case):
    op = registry().ops[case.op]
    ports = {port.name for port in (*op.inputs, *op.outputs)} | {attr.keyword for attr in op.attrs} | {"layer"}
    for clause in when(case):
        assert parse(clause)
        assert names(clause) <= ports, clause


@pytest.mark.parametrize("case", deviating(), ids=str)
def test_a_deviating_case_is_concerned_by_its_own_deviation_before_its_run_and_after_it(case: Case, tmp_path):
    before, after = found(case, tmp_path)
    assert departure(case).does in [deviation.does for deviation in before]
    own = {deviation for deviation in after if deviation.does == departure(case).does}
    assert len(own) == 1, "of one layer, or of several alike"
    (deviation,) = own
    assert IN_RUNS not in deviation.when
    assert all(clause.startswith("(") for clause in deviation.when), "data decide all but what is said in brackets"


@pytest.mark.parametrize("assumed", [False, True])
def test_attributes_that_are_demanded_are_left_out_in_a_case_that_openvino_refuses_or_computes_otherwise(assumed):
    left_out = {
        (row.op, attribute)
        for rows in known_deviations().values()
        for row in rows
        if (row.kind == "differs") == assumed
        for clause in row.when
        for attribute in re.findall(r"(\w+) is left out", clause)
    }
    demanded = {
        (name, attr.keyword)
        for name, op in registry().ops.items()
        for attr in op.attrs
        if attr.demanded and (attr.assumed is not None) == assumed
    }
    assert demanded
    assert not demanded - left_out


def test_few_agreeing_cases_are_said_to_be_concerned():
    cases = agreeing()
    said = concerned(cases)
    assert len(said) <= MOST * len(cases), "\n".join(said)
