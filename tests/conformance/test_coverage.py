"""Whether the suite has cases of every op, and whether the table of deviations says what they say."""

from collections import Counter

from conformance.deviations import TABLE, table
from conformance.harness import OPS, all_cases

CASES = all_cases()
FEWEST = 4
WITHOUT_KERNEL = {"BGRtoNV12-17", "GroupedMatMul-17", "RGBtoNV12-17"}
"""Ops that OpenVINO's CPU plugin does not compute."""


def test_every_op_has_cases():
    counts = Counter(case.op for case in CASES)
    assert {name: counts[name] for name in OPS if counts[name] < FEWEST} == {}
    assert counts.keys() <= OPS.keys()
    assert len(CASES) >= 1200


def test_every_case_has_a_title_of_its_own():
    counts = Counter(map(str, CASES))
    assert [title for title, count in counts.items() if count > 1] == []


def test_openvino_agrees_in_some_case_of_every_op_that_it_computes():
    agreeing = {case.op for case in CASES if case.deviates is None}
    assert OPS.keys() - agreeing == WITHOUT_KERNEL


def test_a_deviation_says_what_openvino_does_and_what_it_should_do():
    for case in CASES:
        assert (case.deviates is None) == (case.expected is None), case
        assert case.deviates or not case.crashes, case
        if case.deviates is not None:
            does, because = case.deviates.does, case.deviates.because
            assert does, case
            assert because, case
            assert not does.startswith(("the ", "OpenVINO")), f"the plugin goes without saying: {does}"


def test_the_table_of_deviations_is_up_to_date():
    assert TABLE.read_text(encoding="utf-8") == table(), "run `python -m conformance.deviations` in tests/"
