"""The table of codes: whatever the sources emit is explained, and nothing else is."""

import re
from pathlib import Path

import pytest

import irrun
import irrun.check.codes
from irrun.check.codes import CODES

SOURCES = Path(irrun.check.codes.__file__).parent.parent


def emitted():
    codes = set()
    for path in SOURCES.rglob("*.py"):
        if path.name != "codes.py":
            codes |= set(re.findall(r'"([A-Z]\d{3})"', path.read_text()))
    return codes


def test_every_emitted_code_is_in_the_table_and_no_other():
    assert emitted() | {"E401"} == set(CODES)


@pytest.mark.parametrize("code", CODES)
def test_an_explanation_says_enough(code):
    entry = CODES[code]
    assert entry.title
    assert entry.explanation.count(". ") >= 1
    assert entry.explanation.endswith(".")
    broken, mended = entry.example
    assert broken != mended


HELPLESS = [
    ('offset="0"', 'offset="first"', "E506"),
    ('size="', 'sizes="', "E505"),
    ('<port id="0"', '<port id="zero"', "E202"),
    ('<edge from-layer="', '<edge start="', "E201"),
]


@pytest.mark.parametrize(("old", "new", "code"), HELPLESS)
def test_an_error_of_the_form_has_a_help(old, new, code):
    sample = Path(__file__).parents[1] / "samples" / "cnn" / "model.xml"
    text = sample.read_text()
    assert old in text
    found = irrun.validate(text.replace(old, new, 1).encode(), sample.with_suffix(".bin")).errors
    assert [each.code for each in found] == [code]
    assert found[0].help
