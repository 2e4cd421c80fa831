"""Images with their channels last, joined along these by a kernel."""

import numpy as np
import pytest
from engines.onednn_works import ENGINE
from engines.works import computed, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the kernel")

from irrun.engines import onednn
from irrun.engines.compiled.strips import concatenate
from irrun.engines.compiled.team import Team
from irrun.engines.rows import LEAST_JOINED, MOST_OF_A_STRIP
from irrun.engines.work import Post
from irrun.spec.dtypes import element_type

TEAM = Team(2)


def images(rng, type, shape, channels, apart=0):
    """An image whose channels come last, beside those of others if they are to lie apart."""
    whole = rng.integers(0, 256, (shape[0], *shape[1:], channels + apart)).astype(type)
    return np.moveaxis(whole, -1, 1)[:, apart // 2 : apart // 2 + channels]


def joined(arrays, axis=1, posts=()):
    shape = np.concatenate(arrays, axis).shape
    work = work_of("Concat-1", {"axis": axis}, arrays, [(shape, element_type(arrays[0].dtype))], posts)
    return work, concatenate(work, TEAM)


@pytest.mark.parametrize("seed", range(60))
def test_images_of_all_kinds(seed):
    rng = np.random.default_rng((8, seed))
    type = ("u1", "f4", "f2", "i8", "?")[seed % 5]
    shape = [int(n) for n in rng.integers(1, 40, int(rng.integers(2, 5)))]
    shape[0] = int(rng.integers(1, 3))
    if np.prod(shape) > 20000:
        shape[-1] = 2
    arrays = [
        images(rng, type, shape, int(rng.integers(2, 100)), int(rng.choice([0, 0, 1, 7])))
        for _ in range(int(rng.integers(1, 5)))
    ]
    if np.prod(shape) == 1:
        arrays = [np.moveaxis(np.ones((2, 3, 4, 5), type), -1, 1)]
    work, found = joined(arrays, axis=1 if seed % 2 else 1 - arrays[0].ndim)
    assert found is not None
    made = computed(found, work, arrays)[0]
    np.testing.assert_array_equal(made, np.concatenate(arrays, 1))
    assert made.strides[1] == made.itemsize


def test_numbers_of_an_example():
    first, second = (np.moveaxis(np.arange(n, n + 4).reshape(1, 1, 2, 2), -1, 1).astype(np.int32) for n in (0, 10))
    work, found = joined([first, second])
    assert computed(found, work, [first, second])[0][0, :, 0, 1].tolist() == [2, 3, 12, 13]


def test_what_is_left_to_others():
    rng = np.random.default_rng(1)
    image = images(rng, "f4", (1, 6, 5), 8)
    assert joined([image, image])[1] is not None
    long = images(rng, "f4", (1, 6, 5), MOST_OF_A_STRIP // 4 + 1)
    dense, none, flat = np.ascontiguousarray(image), image[:, :0], np.zeros((4, 5), np.float32)
    rows = images(rng, "f4", (2, 6, 5), 8)[:, :, :, :3]  # which are apart
    for arrays in ([image, dense], [image, none], [image, long], [rows, rows]):
        assert joined(arrays)[1] is None
    assert joined([image, image], axis=2)[1] is None
    assert joined([flat, flat])[1] is None
    assert joined([image, image], posts=[Post("ReLU-1", {})])[1] is None


@pytest.mark.skipif(ENGINE is None, reason="oneDNN is not installed")
def test_large_images_are_left_to_the_kernel():
    rng = np.random.default_rng(2)
    beside, alone = onednn.load(2, compiling=True), onednn.load(2)
    for side, taken in ((40, False), (20, True)):
        image = images(rng, "u1", (1, side, side), 32)
        work = joined([image, image])[0]
        assert (2 * image.size >= LEAST_JOINED) != taken
        assert (beside.compile(work) is not None) == taken
        assert alone.compile(work) is not None
