"""Words that nobody knows, and what they may be meant for."""

import pytest

from irrun.spec.registry import registry
from irrun.spelling import close_matches


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("Relux", "ReLU"),
        ("Matmul", "MatMul"),
        ("Convolusion", "Convolution"),
        ("NonMaxSupression", "NonMaxSuppression"),
    ],
)
def test_misspelt_types(word, meant):
    assert close_matches(word, registry().types())[0] == meant


@pytest.mark.parametrize("word", ["", "x" * 1_000_000, "Qqqq"])
def test_words_like_no_other(word):
    assert close_matches(word, registry().types()) == []


def test_too_many_words_are_not_compared():
    assert close_matches("name", [f"name{n}" for n in range(2000)]) == []
