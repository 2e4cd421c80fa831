"""f16, small integers and f32 by the processor's instructions, held against numpy's."""

import numpy as np
import pytest
from engines.works import computed, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the loop")

from irrun.engines.compiled import conversion
from irrun.engines.compiled.compiler import features
from irrun.engines.compiled.engine import CompiledEngine
from irrun.engines.compiled.team import Team
from irrun.spec.dtypes import element_type

TEAM = Team(2)
NAMES = {np.float16: "f16", np.float32: "f32", np.int32: "i32"}

pytestmark = pytest.mark.skipif("f16c" not in features(), reason="the processor has no F16C")


def converted(data, type):
    with np.errstate(all="ignore"):
        expected = data.astype(type)
    work = work_of("Convert-1", {"destination_type": NAMES[type]}, [data], [(data.shape, element_type(expected.dtype))])
    found = conversion.convert(work, TEAM)
    return None if found is None else computed(found, work, [data])[0], expected


def same(found, expected):
    """But for which NaN it is."""
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    bits = f"u{found.itemsize}"
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(
        np.ascontiguousarray(found).view(bits)[known], np.ascontiguousarray(expected).view(bits)[known]
    )


def test_every_f16():
    same(*converted(np.arange(1 << 16, dtype=np.uint16).view(np.float16), np.float32))


@pytest.mark.parametrize("size", [1, 15, 16, 17, 8191, 8192, 8193, 100_003])
def test_f32_of_all_sizes(size):
    rng = np.random.default_rng(size)
    bits = rng.integers(0, 1 << 32, size, np.uint32).view(np.float32)
    middle = (rng.normal(size=size) * 10.0 ** rng.integers(-9, 6, size)).astype(np.float32)
    halfway = (rng.integers(0, 0x7C00, size).astype(np.uint16).view(np.float16).astype(np.float32)) * np.float32(
        1 + 2**-11
    )
    for data in (bits, middle, halfway):
        same(*converted(data, np.float16))
    same(*converted(np.clip(middle, -6e4, 6e4).astype(np.float16), np.float32))


@pytest.mark.parametrize("type", [np.uint8, np.int8, np.uint16, np.int16])
def test_every_small_integer(type):
    limits = np.iinfo(type)
    for data in (np.arange(limits.min, limits.max + 1).astype(type), np.arange(100_003).astype(type)):
        same(*converted(data, np.float32))


def test_the_result_lies_as_the_data_do():
    data = np.random.default_rng(0).normal(size=(2, 7, 5, 3)).astype(np.float32).transpose(0, 3, 1, 2)
    same(*converted(data, np.float16))
    assert converted(data[:, :2], np.float16)[0] is None
    assert converted(data, np.int32)[0] is None


def test_only_what_it_converts_is_a_reason_to_load_llvmlite():
    for source, target, expected in (
        (np.float32, np.float16, True),
        (np.uint8, np.float32, True),
        (np.float32, np.int32, False),
        (np.int32, np.float32, False),
    ):
        large = np.zeros(1 << 17, source)
        work = work_of("Convert-1", {"destination_type": NAMES[target]}, [large], [(large.shape, NAMES[target])])
        assert (CompiledEngine(2).compile(work) is not None) == expected
