"""Deformable convolutions whose taps compiled loops read, held against the op's kernel."""

import itertools

import numpy as np
import pytest
from engines.works import computed, plain, wanted, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the loops")

from irrun.engines.compiled import deformable
from irrun.engines.compiled.engine import CompiledEngine

ENGINE = CompiledEngine(2)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(("group", "parts"), [(1, 1), (2, 1), (1, 2), (2, 4), (2, 3), (3, 2)])
def test_deformable_convolutions_give_what_their_kernels_give(group, parts, zeros, masked, monkeypatch):
    rng = np.random.default_rng(5)
    cases = [((2, 12, 9, 7), 3, 1, 1, 1), ((1, 48, 20, 21), 3, 2, 1, 0), ((2, 12, 12, 11), 2, 1, 3, 2)]
    for (shape, kernel, stride, dilation, pad), (places, features) in itertools.product(cases, ((256, 60), (32, 6))):
        monkeypatch.setattr(deformable, "PLACES", places)
        high, across = ((size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for size in shape[2:])
        taps = kernel * kernel
        offsets = rng.normal(0, 2, (shape[0], parts * taps * 2, high, across)).astype(np.float32)
        offsets[rng.random(offsets.shape) < 0.3] = -1  # at pixels, and just outside
        offsets[rng.random(offsets.shape) < 0.1] = rng.choice([np.nan, np.inf, -1e30, 5.5])
        arrays = [rng.normal(size=shape), offsets, rng.normal(size=(features, shape[1] // group, kernel, kernel))]
        arrays += [rng.uniform(0, 1, (shape[0], parts * taps, high, across))] if masked else []
        arrays = [array.astype(np.float32) for array in arrays]
        attrs = {"strides": (stride,) * 2, "dilations": (dilation,) * 2, "pads_begin": (pad,) * 2}
        attrs |= {"pads_end": (pad,) * 2, "auto_pad": "explicit", "group": group, "deformable_group": parts}
        name = "DeformableConvolution-8" if zeros or masked else "DeformableConvolution-1"
        attrs |= {"bilinear_interpolation_pad": zeros} if name.endswith("8") else {}
        expected = plain(name, attrs, arrays)
        for last, constant in itertools.product((False, True), ((), (2,))):
            if last:
                arrays[0] = np.ascontiguousarray(arrays[0].transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
            work = work_of(name, attrs, arrays, [(expected.shape, "f32")], constant=constant)
            compiled = ENGINE.compile(work)
            assert compiled is not None
            assert (0 in compiled.wants, 0 in compiled.gives) == (not last, last)
            assert (2 in compiled.wants) == (not constant)
            (found,) = computed(compiled, work, wanted(compiled, work, arrays))
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)
