"""Every defect of this folder is reported at its line, but for those in `misses.txt`, once and with its layer, but for
those in `follow_ups.txt`; nothing valid is called an error, but for what stands in `alarms.txt`. `report.py` prints the
rates, `record.py` asks OpenVINO."""

import json
from functools import cache
from pathlib import Path

import pytest

from defects import collection
from defects.measure import ask, verdict
from defects.planting import Defect, Valid

HERE = Path(__file__).parent
DEFECTS = collection.defects()
VALID = collection.valid()


@cache
def listed(name: str) -> dict[str, str]:
    """The keys in a table, each with the reason above it in brackets."""
    reason = ""
    found: dict[str, str] = {}
    for line in (HERE / name).read_text().splitlines():
        if line.startswith("["):
            reason = line.strip("[]")
        elif line and not line.startswith("#"):
            assert reason, line
            assert line not in found, f"{line} stands in {name} twice"
            found[line] = reason
    return found


def params(models: list[Defect] | list[Valid], table: str) -> list[object]:
    known = listed(table)
    return [
        pytest.param(
            model, id=model.key, marks=[pytest.mark.xfail(reason=known[model.key])] if model.key in known else []
        )
        for model in models
    ]


@pytest.mark.parametrize("defect", params([d for d in DEFECTS if not d.arguable], "misses.txt"))
def test_a_defect_is_reported_at_its_line(defect: Defect) -> None:
    result = ask(defect)
    assert result.fault is None
    judged = verdict(defect, result)
    assert judged["at_line"], result.said
    assert (judged["layer"] and judged["once"]) == (defect.key not in listed("follow_ups.txt")), result.said


def test_what_is_not_reported_once_and_with_its_layer_is_reported_at_its_line() -> None:
    assert listed("follow_ups.txt").keys().isdisjoint(listed("misses.txt"))


@pytest.mark.parametrize("model", params(VALID, "alarms.txt"))
def test_a_valid_model_has_no_error(model: Valid) -> None:
    result = ask(model)
    assert result.fault is None
    assert not [said for said in result.said if said.severity == "error"]


def test_what_is_arguable_is_answered() -> None:
    for defect in DEFECTS:
        if defect.arguable:
            assert ask(defect).fault is None, defect.key


def test_the_tables_name_nothing_that_is_not_there() -> None:
    defects = {defect.key for defect in DEFECTS if not defect.arguable}
    assert not listed("misses.txt").keys() - defects
    assert not listed("follow_ups.txt").keys() - defects
    assert not listed("alarms.txt").keys() - {model.key for model in VALID}
    recorded = json.loads((HERE / "answers.json").read_text())
    assert recorded.keys() == {model.key for model in (*DEFECTS, *VALID)}
    assert set(recorded.values()) <= {"refused", "accepted", "crashes", "hangs"}
