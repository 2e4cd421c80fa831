"""Quantization ops: written-out numbers, loops, constraints and inference."""

import math

import ml_dtypes
import numpy as np
import pytest

from irrun.spec import Tensor, Violation, fresh
from irrun.spec.registry import registry

ops = registry().ops


def quantized(x, levels, *limits, dtype=np.float32, **attrs):
    arrays = [np.asarray(array, dtype) for array in (x, *limits)]
    return ops["FakeQuantize-1"](*arrays, levels=levels, **attrs)


def inferred(x, *limits, **attrs):
    op = ops["FakeQuantize-1"]
    tensors = [Tensor("f32", shape) for shape in (x, *limits)]
    return op.infer(tensors, op.defaults | {"levels": 16} | attrs).outputs[0].shape


def slow_quantize(x, low, high, first, last, levels):
    if x <= min(low, high):
        return first
    if x > max(low, high):
        return last
    return round((x - low) / (high - low) * (levels - 1)) / (levels - 1) * (last - first) + first


def test_fake_quantize_rounds_halves_to_even():
    found = quantized([-1, 0, 0.5, 1.5, 2.5, 3.5, 4, 5], 5, 0, 4, 0, 4)
    assert found.tolist() == [0, 0, 0, 2, 2, 4, 4, 4]
    assert found.dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fake_quantize_to_whole_numbers_gives_these(dtype):
    """1 / 49 * 49 is below 1, and would be 0 behind a conversion."""
    for levels in range(2, 257):
        codes, top = np.arange(levels), levels - 1
        assert quantized(codes / 2, levels, 0, top / 2, 0, top, dtype=dtype).tolist() == codes.tolist()
    by_channel = quantized([[1], [1]], 4, 0, 3, 0, [[1], [3]], dtype=dtype)
    assert by_channel.tolist() == [[dtype(1) / dtype(3)], [1]]


def test_fake_quantize_with_two_levels_and_equal_limits():
    assert quantized([0, 0.5, 0.51, 2], 2, 0, 1, -1, 1).tolist() == [-1, -1, 1, 1]
    assert quantized([0, 1, 1.5], 2, 1, 1, -1, 3).tolist() == [-1, -1, 3]


def test_fake_quantize_takes_inverted_limits():
    assert quantized([-2, -1, 0, 1, 2, 3], 5, 2, -2, -1, 3).tolist() == [-1, 2, 1, 0, -1, 3]
    assert quantized([0, 1, 2], 3, 0, 2, 5, 1).tolist() == [5, 3, 1]


def test_fake_quantize_keeps_nan_and_clips_infinity():
    found = quantized([math.nan, math.inf, -math.inf], 5, 0, 4, -1, 3)
    assert math.isnan(found[0])
    assert found[1:].tolist() == [3, -1]


@pytest.mark.parametrize("shape", [(), (1,), (3, 1, 1), (1, 3, 1, 1), (2, 3, 2, 2), (2,)])
def test_fake_quantize_broadcasts_each_limit(shape):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 2, 2)) * 3
    low, first = rng.uniform(-2, -1, shape), rng.uniform(-2, -1, shape)
    high, last = rng.uniform(1, 2, (3, 1, 1)), rng.uniform(1, 2, (2,))
    found = quantized(x, 16, low, high, first, last, dtype=np.float64)
    arrays = np.broadcast_arrays(x, low, high, first, last)
    want = [slow_quantize(*items, 16) for items in zip(*(array.ravel().tolist() for array in arrays), strict=True)]
    np.testing.assert_allclose(found.ravel(), want, atol=1e-12)


def test_fake_quantize_pdpd_aligns_limits_at_an_axis():
    attrs = {"auto_broadcast": "pdpd", "auto_broadcast_axis": 0}
    found = quantized([[1, 5], [1, 5]], 3, [0, 0], [2, 4], [0, 0], [2, 4], **attrs)
    assert found.tolist() == [[1, 2], [0, 4]]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_fake_quantize_rounds_short_floats_once(dtype):
    found = quantized([1.0], 256, 0, 3, 0, 3, dtype=dtype)
    assert found.dtype == dtype
    assert found[0] == np.float32(85 / 255 * 3).astype(dtype)


def test_fake_quantize_of_scalars_and_nothing():
    assert quantized(1.4, 3, 0, 2, 0, 2).tolist() == 1
    assert quantized(np.zeros((0, 3)), 3, 0, 2, 0, 2).shape == (0, 3)


def test_fake_quantize_keeps_unknown_sizes():
    batch = fresh()
    assert inferred((batch, 3, 4), (), (3, 1), (1,), (1, 1, 4)) == (batch, 3, 4)


def test_fake_quantize_knows_sizes_of_x_from_its_limits():
    assert inferred((fresh(), fresh(), 5), (1, 3, 1), (), (), ())[1:] == (3, 5)
    with pytest.raises(Violation, match=r"`output_low` is \[4, 1\], which does not broadcast to \[3, 6\]"):
        inferred((fresh(), 6), (3, 1), (), (4, 1), ())


def test_fakequantize_1_c1_limits_that_do_not_broadcast_to_x():
    message = r"`output_low` is \[2\], which does not broadcast to \[2, 3\] \(numpy\)"
    with pytest.raises(Violation, match=message) as caught:
        inferred((2, 3), (), (), (2,), ())
    assert caught.value.label == "C1"
    with pytest.raises(Violation, match=r"`input_low` is \[4, 1, 1\]"):
        inferred((2, 3), (4, 1, 1), (), (), ())
    with pytest.raises(Violation, match=r"`input_high` is \[4\]"):
        inferred((1,), (), (4,), (), ())
    with pytest.raises(Violation, match=r"\(none\)"):
        inferred((2, 3), (2, 3), (2, 3), (2, 3), (3,), auto_broadcast="none")


def fake_converted(data, *limits, to="f8e4m3", dtype=np.float32):
    return ops["FakeConvert-13"](*(np.asarray(item, dtype) for item in (data, *limits)), destination_type=to)


def test_fake_convert_rounds_halves_to_even_and_saturates():
    data = [0.3, 17, 19, 17 + 2.0**-12, 500, -math.inf, 2.0**-10, 0]
    assert fake_converted(data, 1).tolist() == [0.3125, 16, 20, 18, 448, -448, 0, 0]
    assert fake_converted([9, 11, 1e6, math.inf, 2.0**-16], 1, to="f8e5m2").tolist() == [8, 12, 57344, 57344, 2.0**-16]
    assert math.isnan(fake_converted([math.nan], 1)[0])


def test_fake_convert_scales_and_shifts_there_and_back():
    # 2 * 9 - 1 = 17 becomes 16, and (16 + 1) / 2 = 8.5
    assert fake_converted([[9], [9]], [[2], [1]], [[1], [0]]).tolist() == [[8.5], [9]]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_fake_convert_keeps_short_floats(dtype):
    found = fake_converted([17, 1000], [1], dtype=dtype)
    assert found.dtype == dtype
    assert found.tolist() == [16, 448]


def converted_shape(*shapes):
    op = ops["FakeConvert-13"]
    return op.infer([Tensor("f32", shape) for shape in shapes], {"destination_type": "f8e4m3"}).outputs[0].shape


def test_fake_convert_keeps_unknown_sizes():
    batch = fresh()
    assert converted_shape((batch, 3), (1, 3), (1, 3)) == (batch, 3)


def test_fake_convert_knows_sizes_of_the_data_from_the_scale():
    assert converted_shape((fresh(), 3, fresh(1, 4)), (2, 1, 1))[:2] == (2, 3)


def test_fakeconvert_13_c1_a_scale_that_does_not_broadcast_to_data():
    with pytest.raises(Violation, match=r"`scale` is \[2\], which does not broadcast to \[2, 3\]") as caught:
        converted_shape((2, 3), (2,))
    assert caught.value.label == "C1"
    with pytest.raises(Violation, match=r"`scale` is \[2\]"):
        converted_shape((1,), (2,))


def test_fakeconvert_13_c2_a_shift_of_another_shape_than_scale():
    with pytest.raises(Violation, match=r"`shift` is \[1\], but `scale` is \[3\]") as caught:
        converted_shape((2, 3), (3,), (1,))
    assert caught.value.label == "C2"
