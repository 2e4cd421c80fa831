"""Softmax and its logarithm by compiled loops against the plain kernel."""

import numpy as np
import pytest
from engines.works import computed, plain, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the loop")

from irrun.engines.compiled.engine import LEAST, CompiledEngine
from irrun.engines.compiled.softmax import COMPILERS
from irrun.engines.compiled.team import Team
from irrun.engines.work import Post

TEAM, NAMES = Team(2), ("SoftMax-8", "LogSoftmax-5")


def compiled(data, axis=-1, name="SoftMax-8"):
    work = work_of(name, {"axis": axis}, [data], [(data.shape, "f32")])
    return work, COMPILERS[name](work, TEAM)


def check(data, rtol=2e-6, **attrs):
    work, found = compiled(data, **attrs)
    assert found is not None
    expected = plain(work.name, work.attrs, [data])
    near = 2e-6 if work.name == "LogSoftmax-5" else 1e-37  # a logarithm is a difference
    np.testing.assert_allclose(computed(found, work, [data])[0], expected, rtol=rtol, atol=near)


@pytest.mark.parametrize("length", [16, 17, 31, 32, 33, 100, 1000, 9000])
def test_rows_of_all_lengths(length):
    rng = np.random.default_rng(length)
    for rows in ((), (1,), (3, 5), (70,)):
        for name in NAMES:
            check((rng.normal(size=(*rows, length)) * 5).astype(np.float32), name=name)


@pytest.mark.parametrize("columns", [16, 17, 31, 32, 100, 5000])
def test_columns_of_all_lengths(columns):
    rng = np.random.default_rng(columns)
    for before, length in (((), 1), ((), 2), ((3,), 16), ((2, 2), 33), ((1, 1), 512 if columns < 100 else 7)):
        for name in NAMES:
            data = (rng.normal(size=(*before, length, columns)) * 5).astype(np.float32)
            check(data, rtol=5e-6, axis=len(before), name=name)
            if columns % 4 == 0:
                check(data.reshape(*before, length, 4, columns // 4), rtol=5e-6, axis=len(before), name=name)


def test_versions_and_axes():
    data = np.random.default_rng(1).normal(size=(4, 5, 20)).astype(np.float32)
    check(data, axis=2, name="SoftMax-1")
    check(data, axis=-1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, -3e38])
def test_numbers_that_are_not_finite_or_large(value, name):
    rng = np.random.default_rng(2)
    for place in (0, 15, 16, 19):
        data = rng.normal(size=(3, 20)).astype(np.float32)
        data[1, place] = value
        check(data, name=name)
        check(data, axis=0, name=name)
    check(np.full((2, 20), value, np.float32), name=name)


def test_logarithms_of_all_sums():
    """From 1 to the number of elements: the others are far below, or alike."""
    for length in (16, 50, 4000, 65536):
        for alike in (1, 2, 3, length // 2, length):
            data = np.full((1, length), -80, np.float32)
            data[0, :alike] = 0.25
            check(data, name="LogSoftmax-5")


def test_what_is_left_to_others():
    data = np.zeros((20, 30), np.float32)
    assert compiled(data.T)[1] is None
    for axis in (0, 1):
        assert compiled(data[:, :15].copy(), axis=axis)[1] is None
    assert compiled(np.zeros((513, 16), np.float32), axis=0)[1] is None
    work = work_of("SoftMax-8", {"axis": 1}, [data], [(data.shape, "f32")], (Post("ReLU-1", {}),))
    assert COMPILERS["SoftMax-8"](work, TEAM) is None


def test_small_works_are_no_reason_to_load_what_compiles():
    engine = CompiledEngine(2)
    for rows, taken in ((LEAST["SoftMax-8"] // 64 - 1, False), (LEAST["SoftMax-8"] // 64, True), (1, True)):
        work, _ = compiled(np.zeros((rows, 64), np.float32))
        assert (engine.compile(work) is not None) == taken
