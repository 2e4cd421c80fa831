"""Colours of images by compiled loops, held against the ops' kernels."""

import numpy as np
import pytest
from engines.works import computed, plain, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the loops")

from irrun.engines.compiled.engine import CompiledEngine
from irrun.engines.compiled.yuv_to_rgb import COMPILERS

ENGINE = CompiledEngine(2)


def planes(name, single):
    """The shapes of two images of 6 x 8 pixels."""
    if single:
        return [(2, 9, 8, 1)]
    return [(2, 6, 8, 1), (2, 3, 4, 2)] if name.startswith("NV12") else [(2, 6, 8, 1), (2, 3, 4, 1), (2, 3, 4, 1)]


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("type", ["u8", "f32"])
@pytest.mark.parametrize("name", COMPILERS)
def test_colours_are_those_of_the_kernel(name, type, single):
    rng = np.random.default_rng(3)
    for _ in range(5):
        arrays = [rng.integers(0, 256, shape).astype(np.uint8) for shape in planes(name, single)]
        if type == "f32":
            arrays = [array + rng.normal(size=array.shape).astype(np.float32) for array in arrays]
        work = work_of(name, {}, arrays, [((2, 6, 8, 3), type)])
        (found,) = computed(ENGINE.compile(work), work, arrays)
        np.testing.assert_array_equal(found, plain(name, {}, arrays))
