"""Images read at real places by compiled loops, held against the op's kernel."""

import itertools

import numpy as np
import pytest
from engines.works import computed, plain, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the loops")


from irrun.engines.compiled.engine import CompiledEngine
from irrun.engines.compiled.sampling import PLACES
from irrun.engines.compiled.team import Team

TEAM = Team(2)
ENGINE = CompiledEngine(2)
NAN, INF = float("nan"), float("inf")
SHAPES = [
    ((2, 3, 5, 7), (2, 4, 6)),
    ((1, 1, 1, 1), (1, 3, 3)),
    ((1, 2, 2, 3), (1, 1, PLACES)),
    ((2, 1, 4, 4), (2, 1, 2 * PLACES + 1)),
]


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_grid_sample_gives_what_its_kernel_gives(mode, padding, aligned):
    rng = np.random.default_rng(9)
    attrs = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
    for (shape, places), wild in itertools.product(SHAPES, [False, True]):
        data = rng.normal(size=shape).astype(np.float32)
        grid = rng.normal(0, 0.9, (*places, 2)).astype(np.float32)
        grid[rng.random(grid.shape) < 0.3] = 0.5  # halves, edges and middles
        if wild:
            flat = grid.reshape(-1)
            flat[rng.integers(0, flat.size, 6)] = [NAN, INF, -INF, 1e30, -1, 1]
            data.reshape(-1)[-1] = INF
        work = work_of("GridSample-9", attrs, [data, grid], [((*shape[:2], *places[1:]), "f32")])
        compiled = ENGINE.compile(work)
        assert compiled is not None
        (found,) = computed(compiled, work, [data, grid])
        np.testing.assert_array_equal(found, plain("GridSample-9", attrs, [data, grid]))


def test_grid_sample_takes_f32_alone_and_wants_c_order():
    data, grid = np.zeros((1, 1, 4, 4), np.float32), np.zeros((1, 2, 2, 2), np.float32)
    attrs = {"mode": "bilinear", "padding_mode": "zeros", "align_corners": False}
    turned = work_of("GridSample-9", attrs, [data.swapaxes(2, 3), grid], [((1, 1, 2, 2), "f32")])
    compiled = ENGINE.compile(turned)
    assert compiled is not None
    assert compiled.wants == {0: None}
    for arrays, type in (([data.astype(np.int32), grid], "i32"), ([data, grid.astype(np.float16)], "f32")):
        assert ENGINE.compile(work_of("GridSample-9", attrs, arrays, [((1, 1, 2, 2), type)])) is None
