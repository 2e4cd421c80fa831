"""Assertions for tests of models, and the fixture for pytest."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from irrun.testing import assert_close

F32 = np.float32


def test_what_is_within_the_precision_passes():
    right = np.random.default_rng(0).normal(size=(3, 100)).astype(F32)
    assert_close(right * F32(1.004), right, "bf16")
    assert_close({"y": right}, {"y": right.copy()}, "exact")
    with pytest.raises(AssertionError):
        assert_close(right * F32(1.004), right, "f32")


def test_the_message_has_the_worst_place_and_the_least_tolerance():
    with pytest.raises(AssertionError) as raised:
        assert_close({"a": F32([1, 2]), "b": F32([1, 2])}, {"a": F32([1, 2]), "b": F32([1, 2.3])}, atol=0.1)
    text = str(raised.value)
    assert text.splitlines()[0] == "`b` differs in 1 of 2 values, beyond 0.1"
    assert "most at [1]: 2.0, expected 2.299999952316284" in text
    assert text.endswith("passes with atol=0.3, or rtol=0.131")


def test_the_tolerance_that_the_message_names_passes():
    chance = np.random.default_rng(1)
    right, wrong = chance.normal(size=(2, 50))
    with pytest.raises(AssertionError) as raised:
        assert_close(wrong, right)
    last = str(raised.value).splitlines()[-1].removeprefix("  passes with ")
    atol, rtol = (float(part.partition("=")[2]) for part in last.split(", or "))
    assert_close(wrong, right, atol=atol)
    assert_close(wrong, right, rtol=rtol)


@pytest.mark.parametrize(
    ("wrong", "right", "said"),
    [
        (np.int32([1, 2, 7]), np.int32([1, 2, 4]), "  most at [2]: 7, expected 4\n  passes with atol=3"),
        (np.bool_([True, True]), np.bool_([True, False]), "  most at [1]: 1, expected 0\n  passes with atol=1"),
    ],
)
def test_whole_numbers_and_truth_values_have_no_steps_of_floats(wrong, right, said):
    with pytest.raises(AssertionError) as raised:
        assert_close(wrong, right)
    assert str(raised.value).split("\n", 1)[1] == said


def test_the_criterion_that_fails_is_named_with_its_figure():
    ones = np.ones(3, np.float32)
    with pytest.raises(AssertionError) as raised:
        assert_close(ones * np.float32(1.1), ones, "bf16")
    assert str(raised.value).splitlines()[0] == "the result differs by 20.0 dB, of which 25 dB are wanted"
    with pytest.raises(AssertionError) as raised:
        assert_close(ones * 2, ones)
    assert str(raised.value).splitlines()[0] == (
        "the result differs in 3 of 3 values, beyond 0.0001 of the rms + 0.0001 of each element, "
        "and by 0.0 dB, of which 80 dB are wanted"
    )
    with pytest.raises(AssertionError, match="the result differs in 1 of 3 values, which have to be equal\n"):
        assert_close(np.int8([1, 2, 3]), np.int8([1, 2, 4]))


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        (F32([1, 2]), F32([[1, 2]]), r"the result is f32\[2\], expected f32\[1, 2\]"),
        (F32([np.nan]), F32([1]), "NaN or infinite elsewhere: 1\n  no tolerance passes"),
        (
            np.array(["a"]),
            np.array(["b"]),
            r"differs in 1 of 1 values, which have to be equal\n  most at \[0\]: 'a', expected 'b'$",
        ),
        ({"a": 1}, {"b": 1}, "result has no `b`; it has `a`"),
        ({"a": 1, "b": 1}, {"b": 1}, "what is expected has no `a`"),
        ({"a": 1}, np.array(1), "the result is a mapping, expected an array"),
        (np.array([1, 2]), np.array([1, 3]), "differs in 1 of 2 values"),
    ],
)
def test_what_differs_is_said(actual, expected, message):
    with pytest.raises(AssertionError, match=message):
        assert_close(actual, expected)


def test_only_some_names_are_compared():
    assert_close({"a": F32(1), "b": F32(1)}, {"a": F32(1), "b": F32(9)}, names=["a"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "f31"}, "there is no precision `f31`"),
        ({"atol": -1}, "`atol` is -1"),
        ({"rtol": float("nan")}, "`rtol` is nan"),
    ],
)
def test_a_wrong_tolerance_is_no_failure_of_the_test(options, message):
    with pytest.raises(ValueError, match=message):
        assert_close(1, 1, **options)


def test_outliers_may_be_anywhere():
    right = np.zeros(100)
    wrong = right.copy()
    wrong[3] = 5
    assert_close(wrong, right, atol=0, outliers=0.01)


PLUGIN = """
import sys
import pytest

def test_it_is_there(irrun_close):
    irrun_close([1.0], [1.0])
    with pytest.raises(AssertionError):
        irrun_close([1.0], [2.0])
"""


def run_pytest(folder, text):
    (folder / "test_it.py").write_text(text)
    call = [sys.executable, "-m", "pytest", "-q", "-p", "irrun.pytest_plugin", "-p", "no:cacheprovider", str(folder)]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # it is registered twice where irrun is installed
    return subprocess.run(call, capture_output=True, text=True, cwd=folder, timeout=120, env=alone)


def test_pytest_has_the_fixture(tmp_path):
    found = run_pytest(tmp_path, PLUGIN)
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_plugin_loads_no_numpy_where_it_is_not_used(tmp_path):
    found = run_pytest(tmp_path, "import sys\n\ndef test_it():\n    assert 'numpy' not in sys.modules\n")
    assert found.returncode == 0, found.stdout + found.stderr


def test_assertions_need_no_pytest():
    text = "import sys; sys.modules['pytest'] = None; import irrun.testing; irrun.testing.assert_close(1.0, 1.0)"
    assert subprocess.run([sys.executable, "-c", text], timeout=60).returncode == 0


@pytest.mark.parametrize("type", ["f4", "i8", "u8", "u1", "?"])
def test_the_tolerances_that_are_said_to_pass_do(type):
    random = np.random.default_rng(0)
    for count in range(1, 20):
        expected = (random.integers(1, 200, count) * 1.01).astype(type)
        actual = expected.copy()
        actual[0] = not expected[0]
        with pytest.raises(AssertionError) as caught:
            assert_close(actual, expected, "exact")
        said = re.search(r"passes with atol=(\S+?)(?:, or rtol=(\S+))?$", str(caught.value))
        assert_close(actual, expected, atol=float(said[1]))
        assert (said[2] is not None) == (type == "f4")
        if said[2]:
            assert_close(actual, expected, rtol=float(said[2]))


def test_integers_are_told_as_they_are():
    with pytest.raises(AssertionError, match=r"most at \[0\]: 9007199254740993, expected 9007199254740992\n"):
        assert_close(np.array([2**53 + 1]), np.array([2**53]))
