"""Constants at odd addresses: one copy for all views of the same bytes, which is as they are."""

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.run.alignment import Alignment


def odd(array):
    """The array one byte behind the beginning of its memory."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    memory[1:] = array.ravel().view(np.uint8)
    return memory[1:].view(array.dtype).reshape(array.shape)


def test_what_is_aligned_is_taken_as_it_is():
    array = np.arange(6, dtype=np.float32)
    assert Alignment()(array) is array


def test_views_keep_numbers_and_strides_and_share_a_copy():
    alignment, array = Alignment(), odd(np.arange(6, dtype=np.float32).reshape(2, 3))
    for view in (array, array.T, array[::-1], array[:, ::-1], array[::-1, ::-1].T):
        copy = alignment(view)
        assert copy.flags.aligned
        assert copy.strides == view.strides
        assert copy.tolist() == view.tolist()
        assert np.shares_memory(copy, alignment(array))
    assert len(alignment._copies) == 1


def test_a_repeated_constant_stays_repeated():
    array = np.broadcast_to(odd(np.float64([5, 7]))[:, None], (2, 1000))
    copy = Alignment()(array)
    assert (copy.strides, copy[:, 999].tolist()) == ((8, 0), [5, 7])


def test_a_copy_cannot_be_written_to():
    assert not Alignment()(odd(np.float32([1, 2]))).flags.writeable


@pytest.mark.parametrize(("once", "copied"), [(True, False), (False, True)])
def test_weights_of_products_are_not_copied_for_a_single_run(once, copied, tmp_path):
    rng = np.random.default_rng(20261127)
    m = Model()
    x = m.parameter("x", "f32", (5, 64))
    m.constant(np.uint8([1]))  # what follows lies at odd addresses
    for size, transpose in ((2048, "true"), (64, "false")):
        weights = m.constant(rng.normal(size=(2048, 64)).astype(np.float32))
        (x,) = m.layer("MatMul", [x, weights], [("f32", (5, size))], transpose_a="false", transpose_b=transpose)
    m.result(x)
    executor = irrun.GraphExecutor(m.save(tmp_path), engine="numpy", once=once)
    data = rng.normal(size=(5, 64)).astype(np.float32)
    (result,) = executor.run([data]).values()
    (expected,) = irrun.GraphExecutor(tmp_path / "model.xml", engine="reference").run([data]).values()
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    assert bool(executor._setting.alignment._copies) == copied
