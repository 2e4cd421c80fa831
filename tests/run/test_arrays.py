"""Arrays in files, as they are written."""

import io

import ml_dtypes
import numpy as np
import pytest

from irrun.run.arrays import dump_npz


@pytest.mark.parametrize(
    "array",
    [
        np.arange(100_003, dtype=np.float32),
        np.arange(24, dtype=np.int64).reshape(2, 3, 4),
        np.asfortranarray(np.arange(12, dtype=np.float16).reshape(3, 4)),
        np.arange(20, dtype=np.uint8)[::-2],
        np.broadcast_to(np.float64(1.5), (2, 3)),
        np.array(2.5, np.float32),
        np.empty((0, 3), np.int32),
        np.array([True, False]),
        np.array([["ab", "c"], ["ü", ""]]),
        np.array(["", ""], "<U0"),
        np.ones(3, ml_dtypes.bfloat16),
        np.ones((1, 4), ml_dtypes.int4),
    ],
    ids=lambda array: f"{array.dtype} {array.shape}",
)
def test_numpy_reads_what_was_written(array):
    stream = io.BytesIO()
    dump_npz(stream, {"x": array})
    stream.seek(0)
    with np.load(stream) as found:
        read = found["x"]
    assert read.shape == array.shape
    assert read.flags.f_contiguous == array.flags.f_contiguous or not array.flags.forc
    if array.dtype in (ml_dtypes.bfloat16, ml_dtypes.int4):
        assert read.dtype == (np.float32 if array.dtype == ml_dtypes.bfloat16 else np.int8)
    else:
        assert read.dtype == array.dtype
    np.testing.assert_array_equal(read, array.astype(read.dtype))
