"""Gather of few columns by a kernel, against the op's own."""

import numpy as np
import pytest
from engines.works import computed, plain, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the kernel")

from irrun.engines.compiled.columns import CHUNK, gather
from irrun.engines.compiled.engine import LEAST, CompiledEngine
from irrun.engines.compiled.team import Team
from irrun.engines.work import Post

TEAM = Team(2)


def compiled(data, indices, axis=-1, name="Gather-8", constant=(1, 2), posts=(), **attrs):
    arrays = [data, np.asarray(indices, np.int64), np.int64(axis)]
    expected = plain(name, attrs, arrays)
    work = work_of(name, attrs, arrays, [(expected.shape, str(expected.dtype)[0] + "32")], posts, constant)
    return work, gather(work, TEAM), arrays, expected


@pytest.mark.parametrize("seed", range(60))
def test_columns_of_all_numbers(seed):
    rng = np.random.default_rng((6, seed))
    width, rows = int(rng.integers(2, 9)), int(rng.choice([16, 17, 31, 48, 1000, 16 * CHUNK + 5]))
    data = rng.integers(-(2**31), 2**31, (rows, width)).astype(np.int32)
    if seed % 2:
        data = data.view(np.float32)  # NaN of all kinds among them
    name = ("Gather-8", "Gather-7", "Gather-1")[seed % 3]
    least = -width if name == "Gather-8" else 0
    indices = rng.integers(least, width, int(rng.integers(1, 9)))
    work, found, arrays, expected = compiled(data, indices, axis=-1 if seed % 4 else 1, name=name)
    assert found is not None
    made = computed(found, work, arrays)[0]
    np.testing.assert_array_equal(made.view(np.int32), expected.view(np.int32))


def test_numbers_of_an_example():
    """Red, green and blue in the place of blue, green and red."""
    image = np.arange(2 * 3 * 4 * 3, dtype=np.float32).reshape(2, 3, 4, 3)
    work, found, arrays, _ = compiled(image, [2, 1, 0], axis=3)
    assert computed(found, work, arrays)[0][1, 2, 3].tolist() == [71, 70, 69]


def test_what_is_left_to_others():
    data = np.zeros((64, 3), np.float32)
    assert compiled(data, [2, 0])[1] is not None
    for own in (data[:15], np.zeros((64, 9), np.float32), np.zeros((64, 1), np.float32)):
        assert compiled(own, [0])[1] is None
    assert compiled(data, [2, 0], axis=0)[1] is None
    assert compiled(data, [[2, 0]])[1] is None
    assert compiled(data, [0] * 9)[1] is None
    assert compiled(data, [5, -4])[1] is None  # zeros stand for what is outside
    assert compiled(data, [2, 0], constant=(2,))[1] is None
    assert compiled(data, [2, 0], posts=[Post("ReLU-1", {})])[1] is None


def test_only_such_gathers_are_a_reason_to_compile():
    rows = LEAST["Gather-8"] // 3 + 1
    engine = CompiledEngine(2)
    for data, axis, taken in ((np.zeros((rows, 3), np.float32), 1, True), (np.zeros((3, rows), np.float32), 0, False)):
        assert (engine.compile(compiled(data, [2, 1, 0], axis=axis)[0]) is not None) == taken
