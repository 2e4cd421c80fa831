"""Elements that are chosen by compiled loops, held against the op's kernel."""

import numpy as np
import pytest
from engines.works import computed, plain, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the loops")

from irrun.engines.compiled import select
from irrun.engines.compiled.team import Team
from irrun.spec.dtypes import element_type

TEAM = Team(2)
NUMPY = {"auto_broadcast": "numpy", "auto_broadcast_axis": -1}


def chosen(arrays, attrs=NUMPY):
    """What is compiled, and the kernel's; None where nothing is."""
    expected = np.asarray(plain("Select-1", attrs, arrays))
    work = work_of("Select-1", attrs, arrays, [(expected.shape, element_type(expected.dtype))])
    compiled = select.select(work, TEAM)
    return None if compiled is None else (computed(compiled, work, arrays)[0], expected)


def same(found, expected):
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.view(np.uint8), np.ascontiguousarray(expected).view(np.uint8))


SHAPES = [
    ((7,), (7,), (7,)),
    ((2, 3, 5), (2, 3, 5), ()),
    ((1, 1, 9, 9), (2, 4, 9, 9), (1,)),
    ((2, 1, 1, 9), (2, 4, 9, 9), (2, 4, 9, 9)),
    ((2, 1, 9, 1), (9,), (2, 4, 1, 1)),
    ((40000,), (), (40000,)),
    ((3, 1, 20000), (3, 2, 20000), (1, 2, 1)),
    ((4, 3, 2, 5), (3, 1, 5), (4, 1, 1, 1)),
]


@pytest.mark.parametrize("type", [np.float32, np.int8, np.int32, np.int64, np.float64, np.bool_])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_elements_are_those_of_the_kernel(shapes, type):
    rng = np.random.default_rng(4)
    condition = rng.random(shapes[0]) < 0.5
    one, other = ((rng.normal(size=shape) * 50).astype(type) for shape in shapes[1:])
    same(*chosen([np.asarray(condition), np.asarray(one), np.asarray(other)]))


def test_bits_stay_as_they_are():
    strange = np.array([np.nan, -np.nan, -0.0, np.inf, 1e-45], np.float32)
    strange[0] = np.uint32(0x7FA00001).view(np.float32)
    same(*chosen([np.array([True, False, True, False, True]), strange, strange[::-1].copy()]))


def test_operands_may_lie_with_gaps():
    rng = np.random.default_rng(5)
    condition = (rng.random((6, 4, 20)) < 0.5)[:, :, 3:13]
    one, other = rng.normal(size=(6, 8, 20)).astype(np.float32)[:, ::2, :10], np.float32(7)
    same(*chosen([condition, one, np.asarray(other)]))


@pytest.mark.parametrize("seed", range(30))
def test_random_shapes(seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 6, rng.integers(1, 6))
    arrays = []
    for dtype in (np.bool_, np.float32, np.float32):
        own = np.where(rng.random(shape.size) < 0.3, 1, shape)[rng.integers(0, shape.size + 1) :]
        arrays.append(np.asarray((rng.normal(size=own) * 3 + 0.5).astype(np.int8).astype(dtype)))
    found = chosen(arrays)
    if found is not None:
        same(*found)


def test_what_loops_are_not_made_for_is_left():
    data = np.zeros((4, 5), np.float32)
    turned = np.zeros((5, 4), np.float32).T
    assert chosen([data == 0, turned, data]) is None
    assert chosen([data == 0, data, data], {"auto_broadcast": "pdpd", "auto_broadcast_axis": -1}) is None
    assert chosen([data == 0, data.astype(np.float16), data.astype(np.float16)]) is None
    assert select.COMPILERS.keys() == {"Select-1"}
