"""Conversions of f16 on oneDNN, bit for bit those of the op's own kernel."""

import numpy as np
import pytest
from engines.onednn_works import ENGINE, computed, expected, prepared, work_of

from irrun.spec.dtypes import element_type

pytestmark = pytest.mark.skipif(ENGINE is None, reason="oneDNN is not installed")


def check(array, type):
    attrs = {"destination_type": type}
    (result,) = expected("Convert-1", attrs, [array], [])
    work = work_of("Convert-1", attrs, [array], [result], type=type)
    compiled = prepared(work)
    if compiled is None:
        assert not _is_compiled(array, type), "the engine does not take it"
        pytest.skip("on this processor oneDNN converts element by element, which is left to numpy")
    (found,) = computed(work, compiled, [array])
    assert found.dtype == result.dtype
    np.testing.assert_array_equal(found, result)


def _is_compiled(array, type):
    """Whether oneDNN has compiled code for the conversion."""
    library, own = ENGINE._library, element_type(array.dtype)
    primitive = library.primitive("reorder", *(library.dense(array.shape, each) for each in (own, type)))
    return primitive is not None and primitive.implementation.startswith("jit")


def test_every_number_of_f16():
    array = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(16, -1)
    check(array, "f32")
    check(array.T, "f32")


def test_numbers_between_those_of_f16_and_beyond_them():
    """Halfway between two of them, next to that, too small ones, and more than the largest one."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middle = (halves[1:] + halves[:-1]) / 2
    beside = [np.nextafter(middle, np.float32(end)) for end in (0, np.inf)]
    special = np.float32([65519, 65520, 1e9, np.inf, np.nan, 1e-8, 2**-25, 3e-8, 1e-40, 0.0])
    array = np.concatenate([middle, *beside, special])
    check(np.stack([array, -array]), "f16")
    check(np.moveaxis(array[: 7 * 8 * 9].reshape(1, 7, 8, 9), -1, 1), "f16")
