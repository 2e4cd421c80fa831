"""Adaptive pooling by compiled loops, held against the op's kernel."""

import numpy as np
import pytest
from engines.works import computed, plain, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the loops")

from irrun.engines.compiled.adaptive import COMPILERS
from irrun.engines.compiled.team import Team
from irrun.spec.dtypes import element_type

TEAM = Team(2)


def check(name, data, sizes, outputs=2, type="i64"):
    attrs = {"index_element_type": type} if name == "AdaptiveMaxPool-8" else {}
    arrays = [data, np.array(sizes)]
    expected = plain(name, attrs, arrays)
    expected = list(expected)[:outputs] if attrs else [expected]
    made = [(own.shape, element_type(own.dtype)) for own in expected]
    work = work_of(name, attrs, arrays, made, constant=(1,))
    compiled = COMPILERS[name](work, TEAM)
    assert compiled is not None
    found = computed(compiled, work, arrays)
    for own, right in zip(found, expected, strict=True):
        assert own.dtype == right.dtype
        if attrs:
            np.testing.assert_array_equal(own, right)
        else:
            np.testing.assert_allclose(own, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", COMPILERS)
@pytest.mark.parametrize("seed", range(40))
def test_random_windows(name, seed):
    """Also more of them than elements, and elements that are alike."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    shape, sizes = rng.integers(1, 14, 2 + rank), rng.integers(1, 18, rank)
    data = rng.standard_normal(shape).astype(np.float32)
    if seed % 2:
        data = np.rint(data)
    check(name, data, sizes, int(rng.integers(1, 3)), str(rng.choice(["i32", "i64"])))


@pytest.mark.parametrize("name", COMPILERS)
@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite(name, strange):
    rng = np.random.default_rng(3)
    data = rng.standard_normal((2, 5, 9, 7)).astype(np.float32)
    data[0, 1], data[1, 2, 3, 4], data[1, 3, :, 2] = strange, strange, strange
    for sizes in ((1, 1), (3, 2), (9, 7), (12, 5)):
        check(name, data, sizes)


@pytest.mark.parametrize("name", COMPILERS)
def test_large_planes(name):
    rng = np.random.default_rng(4)
    for shape, sizes in (((1, 3, 100_000), (1,)), ((2, 3, 300, 200), (7, 7)), ((1, 2, 40, 30, 20), (4, 1, 3))):
        check(name, (rng.standard_normal(shape) + 3).astype(np.float32), sizes)


def test_what_is_left_to_others():
    data = np.zeros((1, 1, 4), np.float16)
    for arrays, constant in (([data, np.array([2])], (1,)), ([data.astype("f4"), np.array([2])], ())):
        work = work_of("AdaptiveAvgPool-8", {}, arrays, [((1, 1, 2), element_type(arrays[0].dtype))], constant=constant)
        assert COMPILERS["AdaptiveAvgPool-8"](work, TEAM) is None
