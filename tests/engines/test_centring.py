"""Mean and variance, and norms, along any axes by compiled loops, held against the op's kernel."""

import numpy as np
import pytest
from engines.works import computed, plain, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the loops")

from irrun.engines.compiled import centring, folding, normalization
from irrun.engines.compiled.team import Team

TEAM = Team(2)
COMPILERS = {**centring.COMPILERS, "MVN-6": normalization.COMPILERS["MVN-6"]}
SHAPES = [
    ((3, 1500), (0,)),
    ((70, 1500), (0,)),
    ((40, 6), (0,)),
    ((3, 5, 40), (0, 2)),
    ((300, 2, 70), (0, 2)),
    ((2, 4, 3, 5, 6), (1, 3)),
    ((2, 4, 3, 5), (1, 3)),
    ((2, 3, 5, 7), (0, 1, 2)),
    ((20, 30, 40, 5), (1, 2)),
]
ROOTS = ("inside_sqrt", "outside_sqrt")
MVN = [{"normalize_variance": divides, "eps": 1e-5, "eps_mode": mode} for divides in (True, False) for mode in ROOTS]
NORMS = [{"eps": eps, "eps_mode": mode} for eps in (1e-8, 3.0) for mode in ("add", "max")]
MODES = [*(("MVN-6", attrs) for attrs in MVN), *(("NormalizeL2-1", attrs) for attrs in NORMS)]


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Small data are taken, and cut into parts."""
    monkeypatch.setattr(centring, "LEAST", 1)
    monkeypatch.setattr(folding, "SHARED_NANOSECONDS", 20)


def check(name, attrs, data, axes):
    """Whether anything is compiled."""
    arrays = [data, np.array(axes)]
    work = work_of(name, attrs, arrays, [(data.shape, "f32")], constant=(1,))
    compiled = COMPILERS[name](work, TEAM)
    if compiled is None:
        return False
    (found,), expected = computed(compiled, work, arrays), plain(name, attrs, arrays)
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6 * max(np.abs(expected).max(initial=0), 1e-30))
    return True


@pytest.mark.parametrize(("name", "attrs"), MODES)
def test_every_kind_of_axes(name, attrs):
    rng = np.random.default_rng(5)
    for shape, axes in SHAPES:
        scale = 10 ** rng.uniform(-3, 3)
        assert check(name, attrs, (rng.normal(size=shape) * scale).astype(np.float32), axes)
        assert check(name, attrs, np.full(shape, scale, np.float32), axes)
    if name == "NormalizeL2-1":
        for shape, axes in (((300, 20), (1,)), ((5, 900), (1,)), ((9000,), (0,)), ((2, 3, 5, 7), (0, 1, 2, 3))):
            assert check(name, attrs, rng.normal(size=shape).astype(np.float32), axes)


@pytest.mark.parametrize(("name", "attrs"), MODES)
@pytest.mark.parametrize("seed", range(3))
def test_random_axes(name, attrs, seed):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        shape = tuple(rng.choice([1, 2, 3, 5, 8, 20, 150], rng.integers(1, 5), p=[0.1, *[0.16] * 5, 0.1]))
        axes = rng.permutation(len(shape))[: rng.integers(1, len(shape) + 1)].tolist()
        check(name, attrs, rng.normal(2, 1, shape).astype(np.float32), axes)


@pytest.mark.parametrize(("name", "attrs"), MODES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e-30, 1e30])
def test_floats_that_are_strange(name, attrs, value):
    rng = np.random.default_rng(1)
    data = rng.normal(size=(30, 50)).astype(np.float32)
    data[3, 4] = value
    arrays = [data, np.array([0])]
    work = work_of(name, attrs, arrays, [(data.shape, "f32")], constant=(1,))
    (found,) = computed(COMPILERS[name](work, TEAM), work, arrays)
    with np.errstate(all="ignore"):
        expected = plain(name, attrs, arrays)
    others = np.arange(50) != 4
    np.testing.assert_allclose(found[:, others], expected[:, others], rtol=2e-6, atol=2e-6)
    if np.abs(value) < 1e20 or not np.isfinite(value):
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)


def test_what_loops_are_not_made_for_is_left():
    data = np.ones((2, 3, 4, 5, 6, 7), np.float32)
    for name, attrs in MODES:
        assert not check(name, attrs, data, (0, 2, 4))
        assert not check(name, attrs, data[0, 0, 0, 0].T, (0,))


@pytest.mark.parametrize("mode", ROOTS)
def test_means_far_from_zero(mode):
    attrs = {"normalize_variance": True, "eps": 1e-9, "eps_mode": mode}
    for shape, axes in SHAPES:
        for mean in (1e3, 1e5, 1e7):
            data = np.random.default_rng(3).normal(size=shape) + mean
            assert check("MVN-6", attrs, data.astype(np.float32), axes)


@pytest.mark.parametrize(("name", "attrs"), MODES)
def test_squares_beyond_f32(name, attrs):
    data = (np.random.default_rng(3).normal(size=(30, 2, 70)) * 1e20).astype(np.float32)
    with np.errstate(over="ignore"):
        assert check(name, attrs, data, (0, 2))
