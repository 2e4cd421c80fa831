"""FakeQuantize by a kernel, bit by bit what the op's own gives."""

import numpy as np
import pytest
from engines.works import computed, plain, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the kernel")

from irrun.engines.compiled.elementwise import COMPILERS
from irrun.engines.compiled.engine import LEAST, CompiledEngine
from irrun.engines.compiled.team import Team
from irrun.engines.work import Post

TEAM, NAME = Team(2), "FakeQuantize-1"


def compiled(data, *limits, levels=256, constant=(1, 2, 3, 4), posts=(), **attrs):
    arrays = [data, *(np.asarray(limit, np.float32) for limit in limits)]
    work = work_of(NAME, {"levels": levels, "auto_broadcast": "numpy", **attrs}, arrays, [(data.shape, "f32")], posts)
    for number in constant:
        work.inputs[number].value = arrays[number]
    return work, COMPILERS[NAME](work, TEAM), arrays


def check(data, *limits, **attrs):
    work, found, arrays = compiled(data, *limits, **attrs)
    assert found is not None
    np.testing.assert_array_equal(computed(found, work, arrays)[0], plain(NAME, work.attrs, arrays))


@pytest.mark.parametrize("size", [1, 15, 16, 17, 4095, 4096, 4097, 40000])
def test_tensors_of_all_sizes(size):
    data = np.random.default_rng(size).normal(size=size).astype(np.float32)
    check(data, -1.0, 0.9, -1.0, 0.9)
    check(data, 0.0, 2.5, 0.0, 2.5, levels=16)


@pytest.mark.parametrize("seed", range(30))
def test_random_limits(seed):
    rng = np.random.default_rng(seed)
    data = (rng.normal(size=(3, 50)) * 10 ** rng.uniform(-3, 3)).astype(np.float32)
    data[rng.random(data.shape) < 0.05] = rng.choice(np.float32([np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38]))
    low, high = np.sort(rng.normal(size=2) * 10 ** rng.uniform(-3, 3))
    first, last = (low, high) if seed % 2 else rng.normal(size=2) * 10 ** rng.uniform(-3, 3)
    data[0, :3] = low, high, np.nextafter(np.float32(high), np.float32(np.inf))
    check(data, low, [high], [[first]], last, levels=int(rng.integers(2, 300)))


def test_numbers_of_the_page():
    """Four levels between 0 and 3."""
    work, found, arrays = compiled(np.float32([-1, 0.4, 0.5, 1.5, 2.5, 2.6, 9]), 0, 3, 0, 3, levels=4)
    assert computed(found, work, arrays)[0].tolist() == [0, 0, 0, 2, 2, 3, 3]


def test_axes_in_any_order():
    data = np.random.default_rng(1).normal(size=(2, 5, 7, 6)).astype(np.float32).transpose(0, 3, 1, 2)
    work, found, arrays = compiled(data, -1.0, 1.0, -1.0, 1.0)
    assert found.gives[0].strides == data.strides
    np.testing.assert_array_equal(computed(found, work, arrays)[0], plain(NAME, work.attrs, arrays))


def test_what_is_left_to_others():
    data = np.zeros((4, 32), np.float32)
    for limits in ((1, 1, 0, 1), (1, 0, 0, 1), (-3e38, 3e38, 0, 1), (0, 1, -3e38, 3e38), (0, 1, 0, np.inf)):
        assert compiled(data, *limits)[1] is None
    assert compiled(data, 0, [[1], [2], [3], [4]], 0, 1)[1] is None
    assert compiled(data, 0, 1, 0, 1, constant=(1, 2, 3))[1] is None
    assert compiled(data, 0, 1, 0, 1, posts=(Post("Tan-1", {}),))[1] is None
    assert compiled(data, 0, 1, 0, 1, auto_broadcast="pdpd")[1] is None
    assert compiled(data[:, ::2], 0, 1, 0, 1)[1] is None


def test_the_engine():
    for size, taken in ((LEAST[NAME] - 1, False), (LEAST[NAME], True)):
        work, _, _ = compiled(np.zeros(size, np.float32), 0, 1, 0, 1)
        assert (CompiledEngine(2).compile(work) is not None) == taken
