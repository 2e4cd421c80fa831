"""Convolution ops: examples of the specification, loops, constraints and inference."""

import ml_dtypes
import numpy as np
import pytest
from ir_builder import Model
from tolerance import tolerated

from irrun import GraphExecutor
from irrun.spec import Dim, Tensor, Violation, fresh
from irrun.spec.registry import registry

ops = registry().ops
CONVOLUTIONS = ["Convolution-1", "GroupConvolution-1"]
TRANSPOSED = ["ConvolutionBackpropData-1", "GroupConvolutionBackpropData-1"]
GROUPED = ["GroupConvolution-1", "GroupConvolutionBackpropData-1"]
ALL = ["Convolution-1", "GroupConvolution-1", "ConvolutionBackpropData-1", "GroupConvolutionBackpropData-1"]


def window(rank, **attrs):
    ones, none = (1,) * rank, (0,) * rank
    return {"strides": ones, "dilations": ones, "pads_begin": none, "pads_end": none} | attrs


def shape_of(name, *shapes, **attrs):
    op = ops[name]
    tensors = [Tensor("f32", shape) for shape in shapes]
    return op.infer(tensors, op.defaults | window(len(shapes[0]) - 2) | attrs).outputs[0].shape


def fails(name, *shapes, **attrs):
    with pytest.raises(Violation) as caught:
        shape_of(name, *shapes, **attrs)
    return caught.value


def filters_for(name, channels=2, features=2, kernel=(3, 3)):
    """The shape of filters that fit the data of one group."""
    return (1, features, channels, *kernel) if name in GROUPED else (features, channels, *kernel)


def slow_convolution(data, filters, strides, dilations, begins, ends):
    """`filters` is [GROUPS, C_OUT, C_IN, *kernel]."""
    groups, features, channels, *kernel = filters.shape
    padded = np.pad(data, [(0, 0), (0, 0), *zip(begins, ends, strict=True)])
    sizes = [
        (size - (k - 1) * d - 1) // s + 1
        for size, k, s, d in zip(padded.shape[2:], kernel, strides, dilations, strict=True)
    ]
    result = np.zeros((len(data), groups * features, *sizes))
    for n, f, *place in np.ndindex(*result.shape):
        group, feature = divmod(f, features)
        for c, *tap in np.ndindex(channels, *kernel):
            at = [p * s + t * d for p, s, t, d in zip(place, strides, tap, dilations, strict=True)]
            weight = filters[(group, feature, c, *tap)]
            result[(n, f, *place)] += padded[(n, group * channels + c, *at)] * weight
    return result


def slow_transposed(data, filters, strides, dilations, begins, sizes):
    """`filters` is [GROUPS, C_IN, C_OUT, *kernel]; the result has the spatial `sizes`."""
    groups, channels, features, *kernel = filters.shape
    result = np.zeros((len(data), groups * features, *sizes))
    for n, c, *place in np.ndindex(*data.shape):
        group, channel = divmod(c, channels)
        for feature, *tap in np.ndindex(features, *kernel):
            at = [p * s + t * d - b for p, s, t, d, b in zip(place, strides, tap, dilations, begins, strict=True)]
            if all(0 <= i < size for i, size in zip(at, sizes, strict=True)):
                weight = filters[(group, channel, feature, *tap)]
                result[(n, group * features + feature, *at)] += data[(n, c, *place)] * weight
    return result


def test_examples_of_the_pages():
    name = "Convolution-1"
    assert shape_of(name, (1, 5, 128), (16, 5, 4), strides=(2,), auto_pad="valid") == (1, 16, 63)
    assert shape_of(name, (1, 3, 224, 224), (64, 3, 5, 5), pads_begin=(2, 2), pads_end=(2, 2)) == (1, 64, 224, 224)
    cube = (320, 320, 320)
    assert shape_of(name, (1, 7, *cube), (32, 7, 3, 3, 3), strides=(3,) * 3, dilations=(2,) * 3) == (
        *(1, 32),
        *(106,) * 3,
    )
    two = {"pads_begin": (2,), "pads_end": (2,)}
    assert shape_of("GroupConvolution-1", (1, 12, 224), (4, 1, 3, 5), **two) == (1, 4, 224)
    name = "ConvolutionBackpropData-1"
    one = {"pads_begin": (1, 1), "pads_end": (1, 1)}
    data, filters = (1, 20, 224, 224), (20, 10, 3, 3)
    assert shape_of(name, data, filters, strides=(2, 2), **one) == (1, 10, 447, 447)
    assert shape_of(name, (1, 20, 2, 2), filters, strides=(3, 3), output_padding=(2, 2)) == (1, 10, 8, 8)
    op = ops[name]
    tensors = [Tensor("f32", data), Tensor("f32", filters), Tensor.of(np.array([450, 450]))]
    found = op.infer(tensors, op.defaults | window(2, **one) | {"auto_pad": "valid"})
    assert found.outputs[0].shape == (1, 10, 450, 450)
    one = {"pads_begin": (1,), "pads_end": (1,), "strides": (2,)}
    assert shape_of("GroupConvolutionBackpropData-1", (1, 20, 224), (4, 5, 2, 3), **one) == (1, 8, 447)


@pytest.mark.parametrize("auto_pad", ["explicit", "same_upper", "same_lower", "valid"])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_convolutions_agree_with_loops(auto_pad, groups):
    rng = np.random.default_rng(0)
    data = rng.standard_normal((2, 4, 9, 8))
    filters = rng.standard_normal((groups, 3, 4 // groups, 3, 2))
    attrs = window(2, strides=(2, 1), dilations=(1, 2), pads_begin=(1, 0), pads_end=(0, 1), auto_pad=auto_pad)
    begins, ends = {
        "explicit": ((1, 0), (0, 1)),
        "valid": ((0, 0), (0, 0)),
        "same_upper": ((1, 1), (1, 1)),
        "same_lower": ((1, 1), (1, 1)),
    }[auto_pad]
    want = slow_convolution(data, filters, (2, 1), (1, 2), begins, ends)
    np.testing.assert_allclose(ops["GroupConvolution-1"](data, filters, **attrs), want, atol=1e-12)
    if groups == 1:
        np.testing.assert_allclose(ops["Convolution-1"](data, filters[0], **attrs), want, atol=1e-12)


@pytest.mark.parametrize("kernel", [(3,), (2, 3, 2), (1, 1)])
@pytest.mark.parametrize("groups", [1, 3])
def test_convolutions_of_every_rank_with_strides_wider_than_the_kernel(kernel, groups):
    rng = np.random.default_rng(1)
    rank = len(kernel)
    data = rng.standard_normal((1, 3, *(5, 7, 6)[:rank]))
    filters = rng.standard_normal((groups, 2, 3 // groups, *kernel))
    attrs = window(rank, strides=(3, 4, 2)[:rank], pads_end=(2, 1, 0)[:rank])
    want = slow_convolution(data, filters, *attrs.values())
    np.testing.assert_allclose(ops["GroupConvolution-1"](data, filters, **attrs), want, atol=1e-12)


def test_same_padding_puts_the_odd_element_behind_or_in_front():
    data, filters = np.array([[[1.0, 2, 3]]]), np.array([[[10.0, 1]]])
    assert ops["Convolution-1"](data, filters, **window(1, auto_pad="same_upper")).tolist() == [[[12, 23, 30]]]
    assert ops["Convolution-1"](data, filters, **window(1, auto_pad="same_lower")).tolist() == [[[1, 12, 23]]]


def test_blocks_of_columns_give_the_same_result(monkeypatch):
    rng = np.random.default_rng(2)
    data, filters = rng.standard_normal((2, 4, 6, 5, 4)), rng.standard_normal((2, 3, 2, 2, 3, 1))
    convolution, transposed = (ops[name] for name in GROUPED)
    attrs = window(3, strides=(1, 2, 1), pads_begin=(1, 1, 0))
    back = np.ascontiguousarray(np.moveaxis(filters, 1, 2))
    want = convolution(data, filters, **attrs), transposed(data, back, **attrs)
    for limit in (1, 700, 3000):
        monkeypatch.setattr("irrun.opsets._window.blocks.__defaults__", (limit,))
        np.testing.assert_allclose(convolution(data, filters, **attrs), want[0], atol=1e-12)
        np.testing.assert_allclose(transposed(data, back, **attrs), want[1], atol=1e-12)


def test_depthwise_in_pieces_gives_the_same_result(monkeypatch):
    rng = np.random.default_rng(3)
    data, filters = rng.standard_normal((2, 5, 6, 6)), rng.standard_normal((5, 2, 1, 3, 3))
    attrs = window(2, pads_begin=(1, 1), pads_end=(1, 1), strides=(2, 2), dilations=(1, 2))
    want = ops["GroupConvolution-1"](data, filters, **attrs)
    monkeypatch.setattr("irrun.opsets.convolution.CACHE_BYTES", 1)
    np.testing.assert_array_equal(ops["GroupConvolution-1"](data, filters, **attrs), want)
    np.testing.assert_allclose(want, slow_convolution(data, filters, (2, 2), (1, 2), (1, 1), (1, 1)), atol=1e-12)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("attrs", [{}, {"output_padding": (1, 2)}, {"dilations": (2, 1)}, {"auto_pad": "same_upper"}])
def test_transposed_convolutions_agree_with_loops(groups, attrs):
    rng = np.random.default_rng(4)
    data = rng.standard_normal((2, 4, 3, 4))
    filters = rng.standard_normal((groups, 4 // groups, 3, 3, 2))
    attrs = window(2, strides=(2, 3), pads_begin=(1, 0), pads_end=(0, 1)) | attrs
    got = ops["GroupConvolutionBackpropData-1"](data, filters, **attrs)
    begins, ends = ((1, 0), (0, 1)) if "auto_pad" not in attrs else ((0, 0), (0, 0))
    extra = attrs.get("output_padding", (0, 0))
    sizes = [
        (size - 1) * s + (k - 1) * d + 1 - b - e + o
        for size, s, k, d, b, e, o in zip(
            (3, 4), attrs["strides"], (3, 2), attrs["dilations"], begins, ends, extra, strict=True
        )
    ]
    want = slow_transposed(data, filters, attrs["strides"], attrs["dilations"], begins, sizes)
    np.testing.assert_allclose(got, want, atol=1e-12)
    if groups == 1:
        np.testing.assert_allclose(ops["ConvolutionBackpropData-1"](data, filters[0], **attrs), want, atol=1e-12)


@pytest.mark.parametrize(
    ("auto_pad", "size", "expected"),
    [
        ("same_upper", 4, [13, 20, 130, 200]),
        ("same_lower", 4, [2, 13, 20, 130]),
        ("explicit", 5, [2, 13, 20, 130, 200]),
        ("valid", 9, [1, 2, 13, 20, 130, 200, 300, 0, 0]),
    ],
)
def test_output_shape_distributes_the_padding(auto_pad, size, expected):
    data, filters = np.array([[[1.0, 10, 100]]]), np.array([[[1.0, 2, 3]]])
    attrs = window(1, strides=(2,), auto_pad=auto_pad, pads_begin=(7,))
    got = ops["ConvolutionBackpropData-1"](data, filters, np.array([size]), **attrs)
    assert got.tolist() == [[expected]]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64])
def test_integers_wrap(dtype):
    top = np.iinfo(dtype).max
    data = np.array([[[top, top, 2]]], dtype)
    got = ops["Convolution-1"](data, np.array([[[2, 1]]], dtype), **window(1))
    want = np.array([3 * top, 2 * top + 2], object) % 2 ** (8 * data.itemsize)
    assert got.dtype == dtype
    assert [int(x) % 2 ** (8 * data.itemsize) for x in got.ravel()] == want.tolist()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", ALL)
def test_short_floats_are_rounded_once(name, dtype):
    data = np.full((1, 1, 4096), 1, dtype)
    filters = np.full((1,) * (3 if name in GROUPED else 2) + (3,), 0.01, dtype)
    got = ops[name](data, filters, **window(1))
    assert got.dtype == dtype
    assert got[0, 0, 10] == (np.float32(3) * filters.ravel()[0].astype(np.float32)).astype(dtype)


@pytest.mark.parametrize("name", ALL)
def test_empty_batches_stay_empty(name):
    data, filters = np.zeros((0, 2, 5, 5), np.float32), np.ones(filters_for(name), np.float32)
    sizes = (7, 7) if name in TRANSPOSED else (3, 3)
    assert ops[name](data, filters, **window(2)).shape == (0, 2, *sizes)


@pytest.mark.parametrize("name", ALL)
def test_batch_and_channels_stay_themselves_in_inference(name):
    batch, height = fresh(), fresh(3)
    found = shape_of(name, (batch, 2, height, 8), filters_for(name, features=2), pads_begin=(1, 1), pads_end=(1, 1))
    assert found[:2] == (batch, 2)
    assert (found[2] == height) is True
    assert found[3] == 8


def test_windows_of_unknown_sizes_have_bounds():
    height, width = fresh(), fresh(10, 20)
    found = shape_of("Convolution-1", (1, 3, height, width), (8, 3, 3, 3), strides=(2, 2))
    assert (found[2].low, found[2].high) == (1, None)
    assert (found[3].low, found[3].high) == (4, 9)
    found = shape_of("Convolution-1", (1, 3, height, width), (8, 3, 3, 3), strides=(1, 2), auto_pad="same_upper")
    assert (found[2] == height) is True
    assert (found[3].low, found[3].high) == (5, 10)


def test_kernels_of_unknown_sizes_have_an_element():
    found = shape_of("Convolution-1", (1, 3, 1, 8), (8, 3, fresh(), fresh()))
    assert found[2] == 1
    assert (found[3].low, found[3].high) == (1, 8)
    found = shape_of("ConvolutionBackpropData-1", (1, 3, 4, 8), (3, 8, fresh(), fresh(0, 3)), strides=(2, 1))
    assert (found[2].low, found[2].high) == (7, None)
    assert (found[3].low, found[3].high) == (8, 10)


def test_an_unknown_output_shape_leaves_the_sizes_open():
    op = ops["ConvolutionBackpropData-1"]
    tensors = [Tensor("f32", (1, 3, 4, 4)), Tensor("f32", (3, 5, 2, 2)), Tensor("i64", (2,))]
    found = op.infer(tensors, op.defaults | window(2))
    assert not found.complete
    assert found.outputs[0].shape[:2] == (1, 5)
    assert all(isinstance(size, Dim) for size in found.outputs[0].shape[2:])


def test_unequal_channels_are_a_mismatch():
    assert "`C_IN`" in fails("Convolution-1", (1, 3, 8, 8), (4, 2, 3, 3)).message


@pytest.mark.parametrize("name", ALL)
def test_convolution_c1_other_than_one_to_three_spatial_axes(name):
    with pytest.raises(Violation, match="`data` has 4 spatial axes, expected 1 to 3") as caught:
        shape_of(name, (1, 2, 3, 3, 3, 3), filters_for(name, kernel=(1, 1, 1, 1)))
    assert caught.value.label == "C1"
    assert fails(name, (1, 2, 3, 3), filters_for(name, kernel=(1,))).label == "C1"


@pytest.mark.parametrize("name", TRANSPOSED)
def test_convolution_c1_output_shape_of_another_length(name):
    op = ops[name]
    tensors = [Tensor("f32", (1, 2, 4, 4)), Tensor("f32", filters_for(name)), Tensor("i64", (3,))]
    with pytest.raises(Violation, match="`output_shape` has 3 elements for 2 spatial axes") as caught:
        op.infer(tensors, op.defaults | window(2))
    assert caught.value.label == "C1"


@pytest.mark.parametrize("name", ALL)
def test_convolution_c2_a_list_of_another_length(name):
    data, filters = (1, 2, 5, 5), filters_for(name)
    for attr in ("strides", "dilations", "pads_begin", "pads_end"):
        with pytest.raises(Violation, match=f"`{attr}` has 1 values for 2 spatial axes") as caught:
            shape_of(name, data, filters, **{attr: (1,)})
        assert caught.value.label == "C2"
    if name in TRANSPOSED:
        assert fails(name, data, filters, output_padding=(1,)).label == "C2"


@pytest.mark.parametrize("auto_pad", ["same_upper", "same_lower", "valid"])
@pytest.mark.parametrize("name", ALL)
def test_convolution_c2_pads_that_nothing_reads(name, auto_pad):
    data, filters = (1, 2, 5, 5), filters_for(name)
    for attr in ("pads_begin", "pads_end"):
        for pads in ((0,), (0, 0, 0)):
            assert fails(name, data, filters, auto_pad=auto_pad, **{attr: pads}).label == "C2"
    shape_of(name, data, filters, pads_begin=(), pads_end=(), auto_pad=auto_pad)


@pytest.mark.parametrize("name", ALL)
def test_convolution_takes_lists_without_values_for_the_usual_ones(name):
    """OpenVINO writes them where ranks are unknown."""
    random = np.random.default_rng(3)
    shapes = (1, 2, 5, 5), (2, 1, 1, 3, 3) if name in GROUPED else (2, 2, 3, 3)
    data, filters = (random.integers(-4, 5, shape).astype(np.float32) for shape in shapes)
    empty = dict.fromkeys(("strides", "dilations", "pads_begin", "pads_end"), ())
    without = ops[name](data, filters, **window(2) | empty)
    assert np.array_equal(without, ops[name](data, filters, **window(2)))
    tensors = [Tensor.of(data), Tensor.of(filters)]
    found = ops[name].infer(tensors, ops[name].defaults | window(2) | empty)
    assert [each.does for each in found.tolerated] == ["takes 1 for every axis"] * 2 + ["takes 0 for every axis"] * 2


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution_c3_a_kernel_larger_than_the_padded_data(name):
    reach = "the kernel reaches over 5 elements, but spatial axis 1 has 4 with padding"
    with pytest.raises(Violation, match=reach) as caught:
        shape_of(name, (1, 2, 9, 3), filters_for(name), dilations=(1, 2), pads_end=(0, 1))
    assert caught.value.label == "C3"
    assert fails(name, (1, 2, 9, 9), filters_for(name, kernel=(0, 1))).label == "C3"


@pytest.mark.parametrize("name", TRANSPOSED)
def test_convolution_c3_a_result_without_elements(name):
    with pytest.raises(Violation, match="spatial axis 0 of the result has 0 elements, expected 1 or more") as caught:
        shape_of(name, (1, 2, 2, 2), filters_for(name), pads_begin=(4, 0))
    assert caught.value.label == "C3"
    assert fails(name, (1, 2, 9, 9), filters_for(name, kernel=(0, 1))).label == "C3"


@pytest.mark.parametrize("name", GROUPED)
def test_convolution_c4_channels_that_are_not_groups_times_c_in(name):
    filters = (2, 4, 3, 1) if name == "GroupConvolution-1" else (2, 3, 4, 1)
    with pytest.raises(Violation, match="`data` has 5 channels, expected 6: 2 groups of 3") as caught:
        shape_of(name, (1, 5, 8), filters)
    assert caught.value.label == "C4"


def test_unknown_groups_leave_the_channels_open():
    found = shape_of("GroupConvolution-1", (1, fresh(), 8), (fresh(), 4, 3, 1))
    assert isinstance(found[1], Dim)
    assert found[2] == 8


@pytest.mark.parametrize("name", GROUPED)
def test_unknown_groups_are_as_many_as_the_channels_of_the_data_make(name):
    filters = (fresh(), 4, 3, 1) if name == "GroupConvolution-1" else (fresh(), 3, 4, 1)
    assert shape_of(name, (1, 6, 8), filters)[1] == 8
    assert shape_of(name, (1, fresh(4, 10), 8), filters)[1].bounds == "8..12"
    with pytest.raises(Violation, match="`data` has 5 channels"):
        shape_of(name, (1, 5, 8), filters)


def bits(data, filters, pad_value=0.0, **attrs):
    op = ops["BinaryConvolution-1"]
    window_attrs = op.defaults | {"mode": "xnor-popcount", "pad_value": pad_value} | window(2) | attrs
    tensors = [Tensor.of(data), Tensor.of(filters, "u1")]
    shape = op.infer(tensors, window_attrs).outputs[0].shape
    result = op.kernel(data, filters, **window_attrs)
    assert (result.shape, result.dtype) == (shape, data.dtype)
    return result


def test_binary_convolution_counts_equal_bits_less_different_ones():
    rng = np.random.default_rng(5)
    data, filters = rng.integers(0, 2, (2, 3, 4, 5)), rng.integers(0, 2, (4, 3, 2, 3)).astype(np.uint8)
    signs, weights = data * 2 - 1, filters[np.newaxis].astype(int) * 2 - 1
    want = slow_convolution(signs, weights, (1, 2), (1, 1), (0, 0), (0, 0))
    for dtype in (np.float32, np.int8, np.float16, np.int64):
        np.testing.assert_array_equal(bits(data.astype(dtype), filters, strides=(1, 2)), want)


@pytest.mark.parametrize(("pad_value", "expected"), [(0, 1), (1, 3), (0.5, -1), (-1, -1)])
def test_binary_convolution_pads_with_bits_or_with_nothing(pad_value, expected):
    data, filters = np.ones((1, 1, 1, 1), np.float32), np.ones((1, 1, 1, 3), np.uint8)
    assert bits(data, filters, pad_value, pads_begin=(0, 1), pads_end=(0, 1)).tolist() == [[[[expected]]]]
    assert bits(data, 1 - filters, pad_value, pads_begin=(0, 1), pads_end=(0, 1)).tolist() == [[[[-expected]]]]
    assert bits(2 * data, filters, pad_value=1, pads_begin=(0, 1), pads_end=(0, 1)).tolist() == [[[[1]]]]


DEFORMABLE = ["DeformableConvolution-1", "DeformableConvolution-8"]
IMAGE = np.array([[[[1.0, 2, 4], [8, 16, 32]]]])


def slow_deformable(data, offsets, filters, mask, group, parts, attrs, outside):
    """`outside` says whether a place less than a pixel outside is interpolated with zeros."""
    (batch, channels, height, width), (features, per_group, *kernel) = data.shape, filters.shape
    taps = list(np.ndindex(*kernel))
    result = np.zeros((batch, features, *offsets.shape[2:]))

    def pixel(n, c, y, x):
        return data[n, c, y, x] if 0 <= y < height and 0 <= x < width else 0

    for n, f, i, j in np.ndindex(*result.shape):
        for c in range(per_group):
            channel = f // (features // group) * per_group + c
            part = channel // (channels // parts)
            for number, (ky, kx) in enumerate(taps):
                at = part * len(taps) + number
                y = i * attrs["strides"][0] - attrs["pads_begin"][0] + ky * attrs["dilations"][0]
                x = j * attrs["strides"][1] - attrs["pads_begin"][1] + kx * attrs["dilations"][1]
                y, x = y + offsets[n, 2 * at, i, j], x + offsets[n, 2 * at + 1, i, j]
                low = -1 if outside else 0
                if not (low <= y < height and low <= x < width and (y > -1 and x > -1)):
                    continue
                top, left = int(np.floor(y)), int(np.floor(x))
                value = 0.0
                for down, across in np.ndindex(2, 2):
                    row, column = top + down, left + across
                    if not outside:
                        row, column = min(row, height - 1), min(column, width - 1)
                    share = (1 - abs(y - top - down)) * (1 - abs(x - left - across))
                    value += share * pixel(n, channel, row, column)
                result[n, f, i, j] += value * filters[f, c, ky, kx] * (1 if mask is None else mask[n, at, i, j])
    return result


@pytest.mark.parametrize(("group", "parts"), [(1, 1), (2, 1), (1, 4), (2, 2)])
def test_deformable_convolutions_agree_with_loops(group, parts):
    rng = np.random.default_rng(6)
    data, filters = rng.standard_normal((2, 4, 5, 6)), rng.standard_normal((4, 4 // group, 2, 3))
    attrs = window(2, strides=(1, 2), pads_begin=(1, 1), pads_end=(0, 1), dilations=(2, 1))
    offsets = rng.standard_normal((2, parts * 12, 4, 3)) * 2
    mask = rng.standard_normal((2, parts * 6, 4, 3))
    both = {"group": group, "deformable_group": parts}
    want = slow_deformable(data, offsets, filters, None, group, parts, attrs, False)
    np.testing.assert_allclose(ops[DEFORMABLE[0]](data, offsets, filters, **attrs, **both), want, atol=1e-12)
    for outside in (False, True):
        want = slow_deformable(data, offsets, filters, mask, group, parts, attrs, outside)
        got = ops[DEFORMABLE[1]](data, offsets, filters, mask, bilinear_interpolation_pad=outside, **attrs, **both)
        np.testing.assert_allclose(got, want, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.int32])
def test_deformable_convolution_without_offsets_is_a_convolution(dtype):
    data, offsets, filters = IMAGE.astype(dtype), np.zeros((1, 4, 2, 2), dtype), np.array([[[[1, 2]]]], dtype)
    for name in DEFORMABLE:
        got = ops[name](data, offsets, filters, **window(2))
        assert got.dtype == dtype
        assert got.tolist() == [[[[5, 10], [40, 80]]]]


def test_deformable_convolution_example_of_the_page():
    shapes = (1, 4, 224, 224), (1, 50, 220, 220), (64, 4, 5, 5), (1, 25, 220, 220)
    assert shape_of("DeformableConvolution-8", *shapes) == (1, 64, 220, 220)
    assert shape_of("DeformableConvolution-1", *shapes[:3]) == (1, 64, 220, 220)


@pytest.mark.parametrize("engine", ["reference", "numpy", "auto"])
def test_binary_convolution_reads_the_lowest_bit_of_each_byte_first_and_others_the_highest(engine, tmp_path):
    model = Model()
    x = model.parameter("x", "f32", (1, 1, 1, 11))
    model.weights += b"\x05\x06"  # 1 0 1 0 0 0 0 0, 0 1 1
    place = {"element_type": "u1", "shape": "1,1,1,11", "offset": "0", "size": "2"}
    (filters,) = model.layer("Const", [], [("u1", (1, 1, 1, 11))], **place)
    pads = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "auto_pad": "explicit"}
    count = {"mode": "xnor-popcount", "pad_value": "0"}
    (result,) = model.layer("BinaryConvolution", [x, filters], [("f32", (1, 1, 1, 1))], **pads, **count)
    model.result(result)
    (result,) = model.layer("Convert", [filters], [("i32", (1, 1, 1, 11))], destination_type="i32")
    model.result(result)
    executor = GraphExecutor(model.save(tmp_path), engine=engine)
    for bits, equal in (([1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1], 11), ([0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0], 9)):
        counted, others = executor.run([np.float32(bits).reshape(1, 1, 1, 11)]).values()
        assert counted.item() == 2 * equal - 11
        assert others.ravel().tolist() == [0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0]


def test_binary_convolution_of_constants_reads_the_lowest_bit_of_each_byte_first(tmp_path):
    model = Model()
    model.weights += b"\x05\x06"
    place = {"element_type": "u1", "shape": "1,1,1,11", "offset": "0", "size": "2"}
    (filters,) = model.layer("Const", [], [("u1", (1, 1, 1, 11))], **place)
    x = model.constant(np.float32([1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1]).reshape(1, 1, 1, 11))
    pads = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "auto_pad": "explicit"}
    count = {"mode": "xnor-popcount", "pad_value": "0"}
    (result,) = model.layer("BinaryConvolution", [x, filters], [("f32", (1, 1, 1, 1))], **pads, **count)
    model.result(result)
    (counted,) = GraphExecutor(model.save(tmp_path)).run([]).values()
    assert counted.item() == 11


def test_binaryconvolution_1_c1_other_than_two_spatial_axes():
    op = ops["BinaryConvolution-1"]
    tensors = [Tensor("f32", (1, 1, 4)), Tensor("u1", (1, 1, 2))]
    with pytest.raises(Violation, match="`data` has 1 spatial axes, expected 2") as caught:
        op.infer(tensors, op.defaults | window(1))
    assert caught.value.label == "C1"


def test_binaryconvolution_1_c2_a_list_of_another_length():
    with pytest.raises(Violation, match="`strides` has 1 values for 2 spatial axes") as caught:
        bits(np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2), np.uint8), strides=(1,))
    assert caught.value.label == "C2"


def test_binaryconvolution_1_c3_a_kernel_larger_than_the_padded_data():
    with pytest.raises(Violation, match="spatial axis 0 has 3 with padding") as caught:
        bits(np.ones((1, 1, 3, 3)), np.ones((1, 1, 4, 2), np.uint8))
    assert caught.value.label == "C3"


@pytest.mark.parametrize("name", DEFORMABLE)
def test_deformable_c1_other_than_two_spatial_axes(name):
    with pytest.raises(Violation, match="`data` has 1 spatial axes, expected 2") as caught:
        shape_of(name, (1, 1, 4), (1, 4, 3), (1, 1, 2))
    assert caught.value.label == "C1"


@pytest.mark.parametrize("name", DEFORMABLE)
def test_deformable_c2_a_list_of_another_length(name):
    with pytest.raises(Violation, match="`dilations` has 3 values for 2 spatial axes") as caught:
        shape_of(name, (1, 1, 4, 4), (1, 8, 3, 3), (1, 1, 2, 2), dilations=(1, 1, 1))
    assert caught.value.label == "C2"


@pytest.mark.parametrize("name", DEFORMABLE)
def test_deformable_c3_a_kernel_larger_than_the_padded_data(name):
    with pytest.raises(Violation, match="spatial axis 1 has 4 with padding") as caught:
        shape_of(name, (1, 1, 4, 4), (1, 20, 3, 1), (1, 1, 2, 5))
    assert caught.value.label == "C3"


@pytest.mark.parametrize("name", DEFORMABLE)
def test_deformable_c4_channels_and_features_that_are_not_in_groups(name):
    with pytest.raises(Violation, match="`data` has 3 channels, expected 4 in 2 groups") as caught:
        shape_of(name, (1, 3, 4, 4), (1, 8, 3, 3), (2, 2, 2, 2), group=2)
    assert caught.value.label == "C4"
    with pytest.raises(Violation, match="there are 3 features, expected a multiple of 2"):
        shape_of(name, (1, 4, 4, 4), (1, 8, 3, 3), (3, 2, 2, 2), group=2)


@pytest.mark.parametrize("name", DEFORMABLE)
def test_deformable_c5_offsets_of_other_channels(name):
    with pytest.raises(Violation, match="`offsets` has 8 channels, expected 16") as caught:
        shape_of(name, (1, 4, 4, 4), (1, 8, 3, 3), (2, 4, 2, 2), deformable_group=2)
    assert caught.value.label == "C5"
    with pytest.raises(Violation, match="`data` has 3 channels, expected a multiple of 2"):
        shape_of(name, (1, 3, 4, 4), (1, 16, 3, 3), (2, 3, 2, 2), deformable_group=2)


@pytest.mark.parametrize("name", DEFORMABLE)
def test_deformable_c6_offsets_of_another_size(name):
    with pytest.raises(Violation, match="axis 1 of `offsets` has 4 elements, but there are 3 windows") as caught:
        shape_of(name, (1, 1, 4, 4), (1, 8, 3, 4), (1, 1, 2, 2))
    assert caught.value.label == "C6"


@pytest.mark.parametrize("name", ["DeformableConvolution-1", "DeformableConvolution-8"])
def test_deformable_c6_offsets_of_another_rank(name):
    with pytest.raises(Violation, match="`offsets` has 3 axes for windows, expected 2") as caught:
        shape_of(name, (1, 1, 4, 4), (1, 8, 3, 3, 3), (1, 1, 2, 2))
    assert caught.value.label == "C6"


def test_deformableconvolution_8_c7_a_mask_of_other_channels():
    with pytest.raises(Violation, match="`mask` has 3 channels, expected 4") as caught:
        shape_of("DeformableConvolution-8", (1, 1, 4, 4), (1, 8, 3, 3), (1, 1, 2, 2), (1, 3, 3, 3))
    assert caught.value.label == "C7"


def test_a_mask_of_whole_numbers_is_converted():
    op, window = ops["DeformableConvolution-8"], dict.fromkeys(("pads_begin", "pads_end"), (0, 0))
    window |= {"strides": (1, 1), "dilations": (1, 1)}
    given = np.float16([[[[1, 2]]]]), np.zeros((1, 2, 1, 2), np.float16), np.ones((1, 1, 1, 1), np.float16)
    result = op(*given, np.array([[[[3, 2]]]]), **window)
    assert result.dtype == np.float16
    assert result.tolist() == [[[[3, 4]]]]
    assert tolerated(op, *given, np.array([[[[3, 2]]]]), **window) == (
        "E303",
        "`mask` is i64, but `data` is f16",
    )
    with pytest.raises(Violation, match="`mask` is boolean"):
        op(*given, np.array([[[[True, True]]]]), **window)


def test_deformableconvolution_1_c7_pads_behind_that_those_in_front_make_up_for():
    shorter_deformable("DeformableConvolution-1", "C7")


def test_deformableconvolution_8_c8_pads_behind_that_those_in_front_make_up_for():
    shorter_deformable("DeformableConvolution-8", "C8")


def shorter_deformable(name, label):
    """The windows of negative pads are the first ones of those without."""
    op, attrs = ops[name], {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 2)}
    data = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    filters = np.float32([[[[1, 2]]]])
    given = data, np.full((1, 4, 2, 2), 0.5, np.float32), filters
    message = "`pads_end[1]` is -2, expected 0 or more"
    assert tolerated(op, *given, pads_end=(0, -2), **attrs) == (label, message)
    whole = op(data, np.full((1, 4, 2, 4), 0.5, np.float32), filters, pads_end=(0, 0), **attrs)
    assert op(*given, pads_end=(0, -2), **attrs).tolist() == whole[..., :2].tolist()
    assert tolerated(op, data, np.zeros((1, 4, 2, 2), np.float32), filters, auto_pad="valid", pads_end=(0, -9), **attrs)
    with pytest.raises(Violation, match=r"`pads_end\[1\]` is -3") as caught:
        op(*given, pads_end=(0, -3), **attrs)
    assert caught.value.label == label


@pytest.mark.parametrize("name", ["ConvolutionBackpropData-1", "GroupConvolutionBackpropData-1"])
def test_a_negative_output_padding_crops_the_result(name):
    op, data, filters = ops[name], np.float32([[[1, 10]]]), np.float32([[[1, 2, 3]]])
    filters = filters if name[0] == "C" else filters[np.newaxis]
    attrs = {"strides": (2,), "dilations": (1,), "pads_begin": (1,), "pads_end": (0,)}
    assert op(data, filters, output_padding=(-1,), **attrs).tolist() == [[[2, 13, 20]]]


def test_convolutions_without_images_features_or_channels():
    op = registry().ops["Convolution-1"]
    attrs = {"strides": (1,), "pads_begin": (0,), "pads_end": (0,), "dilations": (1,), "auto_pad": "explicit"}
    f32 = np.float32
    assert op(np.ones((2, 4, 5), f32), np.ones((0, 4, 3), f32), **attrs).shape == (2, 0, 3)
    assert op(np.ones((0, 4, 5), f32), np.ones((2, 4, 3), f32), **attrs).shape == (0, 2, 3)
    assert op(np.ones((1, 0, 4), f32), np.ones((2, 0, 3), f32), **attrs).tolist() == [[[0, 0], [0, 0]]]
    backward = registry().ops["ConvolutionBackpropData-1"]
    assert backward(np.ones((1, 0, 2), f32), np.ones((0, 2, 3), f32), **attrs).tolist() == [[[0] * 4] * 2]
    grouped = registry().ops["GroupConvolutionBackpropData-1"]
    assert grouped(np.ones((1, 0, 2), f32), np.ones((1, 0, 2, 3), f32), **attrs).tolist() == [[[0] * 4] * 2]
    assert grouped(np.ones((1, 0, 2), f32), np.ones((0, 1, 2, 3), f32), **attrs).shape == (1, 0, 4)


@pytest.mark.parametrize("name", ["DeformableConvolution-1", "DeformableConvolution-8"])
def test_deformable_convolutions_without_images_features_channels_or_windows(name):
    op, f32, both = registry().ops[name], np.float32, (1, 1)
    attrs = {"strides": both, "pads_begin": (0, 0), "pads_end": (0, 0), "dilations": both}
    offsets = np.zeros((1, 8, 2, 2), f32)
    assert op(np.ones((1, 1, 3, 3), f32), offsets, np.ones((0, 1, 2, 2), f32), **attrs).shape == (1, 0, 2, 2)
    assert op(np.ones((0, 1, 3, 3), f32), offsets[:0], np.ones((1, 1, 2, 2), f32), **attrs).shape == (0, 1, 2, 2)
    nothing = op(np.ones((1, 0, 3, 3), f32), offsets, np.ones((2, 0, 2, 2), f32), **attrs)
    assert nothing.tolist() == np.zeros((1, 2, 2, 2)).tolist()
