"""The broken models of tests/invalid: exactly the codes that stand as comments on the offending lines."""

import re
from pathlib import Path

import pytest

import irrun

FILES = sorted((Path(__file__).parent / "invalid").glob("*.xml"))
EXPECTED = re.compile(r"<!-- ((?:[EW]\d{3} ?)+)-->")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_defect_is_reported_at_its_line_and_nothing_else(path):
    expected = sorted(
        (number, code)
        for number, line in enumerate(path.read_text().split("\n"), 1)
        for match in EXPECTED.finditer(line)
        for code in match[1].split()
    )
    assert expected, "a broken model says what is wrong with it"
    assert sorted((d.line, d.code) for d in irrun.validate(path).diagnostics) == expected
