"""Remainders and whole quotients by compiled loops, held against the op's kernel."""

import numpy as np
import pytest
from engines.works import computed, plain, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the loops")

from irrun.engines.compiled import elementwise, remainders
from irrun.engines.compiled.team import Team
from irrun.spec.dtypes import element_type

TEAM = Team(2)
NUMPY = {"auto_broadcast": "numpy", "auto_broadcast_axis": -1}
COMPILERS = remainders.COMPILERS | {"Divide-1": elementwise.COMPILERS["Divide-1"]}


def check(name, arrays, attrs=NUMPY):
    """To the bit; whether anything is compiled."""
    if name == "Divide-1":
        attrs = {"m_pythondiv": True} | attrs
    arrays = [np.asarray(array) for array in arrays]
    type = element_type(arrays[0].dtype)
    expected = np.asarray(plain(name, attrs, arrays, {"T": type}))
    work = work_of(name, attrs, arrays, [(expected.shape, type)])
    compiled = COMPILERS[name](work, TEAM)
    if compiled is None:
        return False
    (found,) = computed(compiled, work, arrays)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    if type == "f32":
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))
    return True


def drawn(rng, shape, dtype, reach=None):
    """Numbers of all magnitudes, as far as the type or the given limit reaches; floats are whole at times."""
    if dtype == "f4":
        numbers = (rng.standard_normal(shape) * 10 ** rng.uniform(-3, 3, shape)).astype(np.float32)
        return np.where(rng.random(shape) < 0.5, np.rint(numbers), numbers)
    limits = np.iinfo(dtype)
    most = min(int(limits.max), reach or 1 << 52)
    scale = float(most) ** rng.random(shape)
    numbers = np.minimum(scale, most).astype(dtype)
    return np.where(rng.random(shape) < 0.5, -numbers, numbers).astype(dtype) if limits.min else numbers


SHAPES = [
    ((7,), (7,)),
    ((2, 3, 5), ()),
    ((), (2, 3, 5)),
    ((2, 4, 9, 9), (1, 1, 9, 9)),
    ((2, 1, 9, 1), (2, 4, 1, 7)),
    ((40000,), (40000,)),
    ((3, 1, 20000), (3, 2, 1)),
    ((4, 1, 1, 1), (4, 3, 2, 5)),
]


@pytest.mark.parametrize("name", ["Mod-1", "FloorMod-1", "Divide-1"])
@pytest.mark.parametrize("dtype", ["f4", "u1", "i4", "i8"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_numbers_are_those_of_the_kernel(name, dtype, shapes):
    if name == "Divide-1" and dtype == "f4":
        pytest.skip("a chain of element-wise ops")
    rng = np.random.default_rng(4)
    left, right = (drawn(rng, shape, dtype) for shape in shapes)
    assert check(name, [left, np.where(right == 0, np.array(1, dtype), right)])


@pytest.mark.parametrize("name", ["Mod-1", "FloorMod-1", "Divide-1"])
@pytest.mark.parametrize("seed", range(20))
def test_quotients_next_to_integers(name, seed):
    """As near as two integers can have them, and at the ends of what a type holds."""
    rng = np.random.default_rng(seed)
    for dtype, reach in (("i4", 1 << 31), ("i8", 1 << 53), ("u1", 256)):
        right = drawn(rng, 5000, dtype, int(reach**0.5))
        whole = drawn(rng, 5000, dtype, int(reach**0.5) - 2)
        right[right == 0] = 1
        left = whole * right + rng.integers(-1, 2, 5000).astype(dtype)
        assert check(name, [left, right])
    ends = np.array([-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 2, 2**31 - 1], np.int32)
    assert check(name, [ends[:, None], ends[ends != 0]])


@pytest.mark.parametrize("name", ["Mod-1", "FloorMod-1", "Divide-1"])
def test_integers_that_no_float_holds(name):
    rng = np.random.default_rng(1)
    ends = np.array([-(2**63), -(2**63) + 1, -(2**53) - 1, 2**53 + 1, 2**62 + 3, 2**63 - 1, 3, -1], np.int64)
    assert check(name, [ends[:, None], ends])
    assert check(name, [rng.integers(-(2**63), 2**63 - 1, 3000), drawn(rng, 3000, "i8") | 1])
    assert check(name, [np.arange(-5, 5), np.int64(2**60 + 1)])
    assert check(name, [np.full(9, -6004799503160663), np.int64(3002399751580331)])
    assert check(name, [rng.integers(-(2**53) + 1, 2**53, 3000), rng.integers(2**51, 2**53, 3000)])


@pytest.mark.parametrize("name", ["Mod-1", "FloorMod-1"])
@pytest.mark.parametrize("one", [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-38, 3e38, -2.5, 7.0])
@pytest.mark.parametrize("other", [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-38, 3e38, -2.5, 7.0])
def test_floats_that_are_strange(name, one, other):
    rng = np.random.default_rng(3)
    left, right = rng.standard_normal((2, 100)).astype(np.float32)
    left[3], right[3] = one, other
    assert check(name, [left, right])
    assert check(name, [left, np.float32(other)])
    assert check(name, [np.float32(one), right])


@pytest.mark.parametrize("seed", range(30))
def test_random_shapes(seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 6, rng.integers(1, 6))
    dtype = rng.choice(["f4", "u1", "i4", "i8"])
    sizes = [np.where(rng.random(shape.size) < 0.3, 1, shape)[rng.integers(0, shape.size + 1) :] for _ in range(2)]
    left, right = (drawn(rng, own, dtype) for own in sizes)
    check(rng.choice(["Mod-1", "FloorMod-1"]), [left, np.where(right == 0, np.array(1, dtype), right)])


def test_operands_may_lie_with_gaps():
    rng = np.random.default_rng(5)
    left, right = rng.integers(1, 99, (6, 4, 20)), rng.integers(1, 99, (6, 8, 20))
    assert check("FloorMod-1", [left[:, :, 3:13], right[:, ::2, :10]])
    assert not check("FloorMod-1", [left.T, right[0, 0, 0]])


def test_what_loops_are_not_made_for_is_left():
    data = np.arange(1, 7).reshape(2, 3)
    assert not check("Mod-1", [data.astype(np.uint64), data.astype(np.uint64)])
    assert not check("Mod-1", [data, data], NUMPY | {"auto_broadcast": "pdpd"})
    assert not check("Divide-1", [data, data], NUMPY | {"m_pythondiv": False})
