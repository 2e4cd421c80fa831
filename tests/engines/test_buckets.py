"""Buckets found by compiled loops, held against the op's kernel."""

import numpy as np
import pytest
from engines.works import computed, plain, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the loops")

from irrun.engines.compiled.buckets import LANES, bucketize
from irrun.engines.compiled.team import Team

TEAM = Team(2)


def check(data, boundaries, type="i64", constant=(1,)):
    """Of both kinds of buckets; whether they are compiled."""
    for right in (True, False):
        attrs, arrays = {"output_type": type, "with_right_bound": right}, [np.asarray(data), boundaries]
        expected = plain("Bucketize-3", attrs, arrays)
        work = work_of("Bucketize-3", attrs, arrays, [(expected.shape, type)], constant=constant)
        compiled = bucketize(work, TEAM)
        if compiled is None:
            return False
        (found,) = computed(compiled, work, arrays)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    return True


@pytest.mark.parametrize("count", [*range(1, 20), 31, 32, 33, 100, 1000, 4097])
@pytest.mark.parametrize("dtype", ["f4", "i4", "i8"])
def test_numbers_on_boundaries_and_between(count, dtype):
    rng = np.random.default_rng(count)
    boundaries = np.unique(rng.integers(-3 * count, 3 * count, 2 * count)).astype(dtype)[:count]
    for size in (1, LANES - 1, LANES, 5 * LANES + 3, 20_000):
        data = rng.integers(-4 * count, 4 * count, size).astype(dtype)
        assert check(data, boundaries, str(rng.choice(["i32", "i64"])))
        assert check(data, np.sort(rng.choice(boundaries, boundaries.size)))  # of which some are there twice


def test_numbers_that_are_strange():
    strange = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45, -3e38], np.float32)
    for boundaries in ([0], [-np.inf, 0, np.inf], [-1e-45, 1e-45], [-0.0, 1]):
        assert check(np.tile(strange, 20), np.float32(boundaries))
    ends = np.iinfo(np.int64)
    assert check(np.array([ends.min, -1, 0, ends.max]), np.array([ends.min, 0, ends.max]))
    assert check(np.float32(2), np.float32([1, 2, 3]))


def test_what_is_left_to_others():
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert not check(data, np.array([1.0, 2.0]))
    assert not check(data, np.float32([np.nan]))
    assert not check(data, np.float32([1]), constant=())
    assert check(data, np.float32([1, 3]), constant=())
    assert not check(data.astype(np.float16), np.float16([1]))
