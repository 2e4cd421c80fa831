"""Pooling ops: examples of the specification, loops, constraints and inference."""

import ml_dtypes
import numpy as np
import pytest

from irrun.spec import Dim, Tensor, Violation, fresh
from irrun.spec.registry import registry

ops = registry().ops
INDEXED = ["MaxPool-8", "MaxPool-14"]
DILATED = ["MaxPool-8", "MaxPool-14", "AvgPool-16"]
WITH_TORCH = ["MaxPool-14", "AvgPool-14", "AvgPool-16"]
POOLS = ["MaxPool-1", "MaxPool-8", "MaxPool-14", "AvgPool-1", "AvgPool-14", "AvgPool-16"]
SQUARE = np.array([[[[-1, 2, 3], [4, 5, -6], [-7, 8, 9]]]])
COUNT = np.arange(1, 10).reshape(1, 1, 3, 3)


def window(name, kernel, **attrs):
    rank = len(kernel)
    found = {"kernel": kernel, "strides": (1,) * rank, "pads_begin": (0,) * rank, "pads_end": (0,) * rank}
    if name.startswith("Avg"):
        found["exclude_pad"] = True
    return found | attrs


def pooled(name, data, kernel, **attrs):
    result = ops[name](np.asarray(data), **window(name, kernel, **attrs))
    if isinstance(result, tuple):
        return [output.tolist() for output in result]
    return result.tolist()


def inferred(name, shape, kernel, **attrs):
    op = ops[name]
    return op.infer([Tensor("f32", shape)], op.defaults | window(name, kernel, **attrs)).outputs[0].shape


def slow_pool(data, counts, kernel, strides, dilations, begins):
    """For every window the list of (value, index in its channel) of its real elements, first tap first."""
    windows = {}
    for n, c, *place in np.ndindex(*data.shape[:2], *counts):
        seen = []
        for tap in np.ndindex(*kernel):
            at = [p * s + t * d - b for p, s, t, d, b in zip(place, strides, tap, dilations, begins, strict=True)]
            if all(0 <= i < size for i, size in zip(at, data.shape[2:], strict=True)):
                seen.append((data[(n, c, *at)], int(np.ravel_multi_index(at, data.shape[2:]))))
        windows[(n, c, *place)] = seen
    return windows


@pytest.mark.parametrize("name", INDEXED)
def test_max_pool_examples_of_the_page(name):
    ones = {"pads_begin": (1, 1), "pads_end": (1, 1)}
    assert pooled(name, SQUARE, (2, 2), **ones) == [
        [[[[-1, 2, 3, 3], [4, 5, 5, 3], [4, 8, 9, 9], [-7, 8, 9, 9]]]],  # the page has -6 for the 3 under the 3
        [[[[0, 1, 2, 2], [3, 4, 4, 2], [3, 7, 8, 8], [6, 7, 8, 8]]]],
    ]
    line = [[[-1, 2, 3, 5, -7, 9, 1]]]
    assert pooled(name, line, (3,), auto_pad="valid") == [[[[3, 5, 5, 9, 9]]], [[[2, 3, 3, 5, 5]]]]
    assert pooled(name, SQUARE, (2, 2), auto_pad="same_lower") == [
        [[[[-1, 2, 3], [4, 5, 5], [4, 8, 9]]]],
        [[[[0, 1, 2], [3, 4, 4], [3, 7, 8]]]],
    ]
    two = np.concatenate([SQUARE, [[[[2, -1, 5], [6, -7, 1], [8, 2, -3]]]]], axis=1)
    assert pooled(name, two, (2, 2), auto_pad="same_upper") == [
        [[[[5, 5, 3], [8, 9, 9], [8, 9, 9]], [[6, 5, 5], [8, 2, 1], [8, 2, -3]]]],
        [[[[4, 4, 2], [7, 8, 8], [7, 8, 8]], [[12, 11, 11], [15, 16, 14], [15, 16, 17]]]],
    ]
    half = {"strides": (2, 2), "rounding_type": "ceil", "auto_pad": "valid"}
    assert pooled(name, SQUARE, (2, 2), **half) == [[[[[5, 3], [8, 9]]]], [[[[4, 2], [7, 8]]]]]
    assert pooled(name, COUNT, (2, 2), dilations=(2, 2), **ones) == [
        [[[[5, 6, 5], [8, 9, 8], [5, 6, 5]]]],
        [[[[4, 5, 4], [7, 8, 7], [4, 5, 4]]]],
    ]
    both = np.arange(1, 19).reshape(1, 2, 3, 3)
    assert pooled(name, both, (2, 2), axis=2) == [
        [[[[5, 6], [8, 9]], [[14, 15], [17, 18]]]],
        [[[[4, 5], [7, 8]], [[4, 5], [7, 8]]]],
    ]


def test_max_pool_14_ceil_torch_example_of_the_page():
    attrs = {"strides": (2, 2), "pads_begin": (1, 1), "pads_end": (1, 1), "rounding_type": "ceil_torch"}
    assert pooled("MaxPool-14", COUNT, (2, 2), **attrs) == [[[[[1, 3], [7, 9]]]], [[[[0, 2], [6, 8]]]]]


def test_max_pool_1_examples_of_the_page():
    assert pooled("MaxPool-1", SQUARE, (2, 2), auto_pad="same_lower") == [[[[-1, 2, 3], [4, 5, 5], [4, 8, 9]]]]
    half = {"strides": (2, 2), "rounding_type": "ceil", "auto_pad": "valid"}
    assert pooled("MaxPool-1", SQUARE, (2, 2), **half) == [[[[5, 3], [8, 9]]]]


@pytest.mark.parametrize("name", POOLS)
def test_shapes_of_the_pages(name):
    image = (1, 3, 32, 32)
    ones = {"pads_begin": (1, 1), "pads_end": (1, 1)}
    assert inferred(name, image, (2, 2), strides=(2, 2), **ones) == (1, 3, 17, 17)
    assert inferred(name, image, (5, 5), strides=(3, 3), **ones) == (1, 3, 10, 10)
    assert inferred(name, image, (5, 5), strides=(2, 2), **ones) == (1, 3, 15, 15)
    assert inferred(name, image, (5, 5), strides=(2, 2), auto_pad="valid", **ones) == (1, 3, 14, 14)
    assert inferred(name, image, (2, 2), strides=(2, 2), auto_pad="same_upper") == (1, 3, 16, 16)
    if name in DILATED:
        assert inferred(name, image, (5, 5), strides=(2, 2), dilations=(2, 2), **ones) == (1, 3, 13, 13)


@pytest.mark.parametrize("rounding", ["floor", "ceil"])
@pytest.mark.parametrize(
    ("size", "kernel", "strides", "dilations", "begins", "ends"),
    [
        ((6, 7), (3, 2), (2, 1), (1, 2), (1, 0), (1, 2)),
        ((9,), (2,), (4,), (3,), (0,), (0,)),
        ((4, 5, 3), (2, 3, 2), (1, 2, 2), (1, 1, 1), (1, 1, 0), (0, 2, 1)),
        ((3,), (2,), (3,), (1,), (0,), (1,)),  # rounded up, the last window is of padding
    ],
)
def test_dilated_pools_agree_with_loops(rounding, size, kernel, strides, dilations, begins, ends):
    rng = np.random.default_rng(0)
    data = rng.integers(-4, 5, (2, 3, *size)).astype(np.float32)
    attrs = {"strides": strides, "dilations": dilations, "pads_begin": begins, "pads_end": ends}
    attrs["rounding_type"] = rounding
    values, indices = ops["MaxPool-14"](data, **window("MaxPool-14", kernel, **attrs))
    means = ops["AvgPool-16"](data, **window("AvgPool-16", kernel, **attrs))
    counted = ops["AvgPool-16"](data, **window("AvgPool-16", kernel, **attrs, exclude_pad=False))
    windows = slow_pool(data, values.shape[2:], kernel, strides, dilations, begins)
    channel = int(np.prod(size))
    for place, seen in windows.items():
        start = (place[0] * 3 + place[1]) * channel
        if not seen:
            assert values[place] == np.finfo(np.float32).min
            assert indices[place] == start
            assert means[place] == counted[place] == 0
            continue
        best = max(value for value, _ in seen)
        assert values[place] == best
        assert indices[place] == start + next(index for value, index in seen if value == best)
        total = sum(value for value, _ in seen)
        assert means[place] == pytest.approx(total / len(seen), abs=1e-6)
        whole = np.prod(kernel) if any((*begins, *ends)) else len(seen)
        assert counted[place] == pytest.approx(total / whole, abs=1e-6)


def test_a_window_in_the_padding_gives_the_lowest_value_and_the_first_index():
    attrs = {"strides": (2,), "pads_end": (2,), "pads_begin": (1,), "rounding_type": "ceil"}
    values, indices = pooled("MaxPool-8", np.arange(7, dtype=np.float32).reshape(1, 1, 7), (3,), **attrs)
    assert values == [[[1, 3, 5, 6, float(np.finfo(np.float32).min)]]]
    assert indices == [[[1, 3, 5, 6, 0]]]


@pytest.mark.parametrize("name", INDEXED)
def test_elements_that_are_the_lowest_number_have_their_own_index(name):
    data = np.array([[[-128, -128]]], np.int8)
    assert pooled(name, data, (1,)) == [[[[-128, -128]]], [[[0, 1]]]]
    square = np.array([[[[9, 0, 0], [8, 0, 0]], [[0, 0, 0], [0, 0, 7]]]], np.uint8)
    values, indices = pooled(name, square, (2, 2), pads_begin=(1, 1), axis=2)
    assert values == [[[[9, 9, 0], [9, 9, 0]], [[0, 0, 0], [0, 0, 7]]]]
    assert indices == [[[[0, 0, 1], [0, 0, 1]], [[0, 0, 1], [0, 0, 5]]]]
    low = float(np.finfo(np.float32).min)
    line = np.array([[[1, np.nan, -np.inf, low, np.nan, np.nan]]], np.float32)
    assert pooled(name, line, (2,), strides=(2,)) == [[[[1, low, low]]], [[[0, 3, 0]]]]


@pytest.mark.parametrize("name", ["MaxPool-1", "MaxPool-8", "MaxPool-14"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_the_lowest_value_of_half_types_is_that_of_f32_rounded(name, dtype):
    lowest = ml_dtypes.finfo(dtype).min
    values = pooled(name, np.array([[[lowest, 1]]], dtype), (1,), pads_end=(1,))
    assert (values if name == "MaxPool-1" else values[0]) == [[[float(lowest), 1, -np.inf]]]


def test_nan_loses_against_numbers_and_minus_infinity_against_the_lowest_number():
    low = float(np.finfo(np.float32).min)
    data = np.array([[[-np.inf, -np.inf, np.nan, 1, np.nan, np.nan]]], np.float32)
    assert pooled("MaxPool-1", data, (2,)) == [[[low, low, 1, 1, low]]]


@pytest.mark.parametrize("name", ["AvgPool-1", "AvgPool-14", "AvgPool-16"])
def test_the_divisor_counts_padding_only_where_there_is_any(name):
    line = np.arange(1.0, 8).reshape(1, 1, 7)
    attrs = {"strides": (3,), "rounding_type": "ceil", "exclude_pad": False}
    assert pooled(name, line, (3,), **attrs) == [[[2, 5, 7]]]
    assert pooled(name, line, (3,), pads_end=(1,), **attrs) == [[[2, 5, pytest.approx(7 / 3)]]]
    assert pooled(name, line, (3,), pads_end=(1,), **attrs | {"exclude_pad": True}) == [[[2, 5, 7]]]
    assert pooled(name, line, (4,), strides=(2,), auto_pad="same_lower", exclude_pad=False) == [[[0.75, 2.5, 4.5, 4.5]]]


@pytest.mark.parametrize("name", WITH_TORCH)
def test_ceil_torch_drops_a_last_window_in_the_padding(name):
    attrs = {"strides": (2,), "pads_begin": (1,), "pads_end": (2,)}
    assert [
        inferred(name, (1, 1, 7), (3,), rounding_type=rounding, **attrs)[2]
        for rounding in ("floor", "ceil", "ceil_torch")
    ] == [4, 5, 4]
    assert inferred(name, (1, 1, 8), (3,), rounding_type="ceil_torch", strides=(3,), pads_end=(2,))[2] == 3


def test_integer_averages():
    data = [[[1, 2, -5, -7]]]
    assert pooled("AvgPool-1", np.array(data, np.int32), (2,)) == [[[1, -1, -6]]]
    assert pooled("AvgPool-1", np.array(data, np.int64), (2,)) == [[[1, -1, -6]]]
    assert pooled("AvgPool-1", np.array(data, np.int8), (2,)) == [[[2, -2, -6]]]
    assert pooled("AvgPool-1", np.array([[[255, 254]]], np.uint8), (2,)) == [[[254]]]
    assert ops["AvgPool-1"](np.ones((1, 1, 4), np.uint16), **window("AvgPool-1", (2,))).dtype == np.uint16


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64, np.int32])
@pytest.mark.parametrize("name", POOLS)
def test_results_have_the_type_of_the_data(name, dtype):
    data = np.arange(6).reshape(1, 1, 6).astype(dtype)
    result = ops[name](data, **window(name, (3,), pads_begin=(1,)))
    values = result[0] if isinstance(result, tuple) else result
    assert values.dtype == dtype
    assert values.astype(float).tolist() in ([[[1, 2, 3, 4, 5]]], [[[0.5, 1, 2, 3, 4]]], [[[0, 1, 2, 3, 4]]])


@pytest.mark.parametrize("name", INDEXED)
def test_indices_have_the_type_asked_for(name):
    data = np.zeros((1, 1, 4), np.float32)
    for wanted, dtype in (("i32", np.int32), ("i64", np.int64)):
        assert ops[name](data, **window(name, (2,), index_element_type=wanted))[1].dtype == dtype


@pytest.mark.parametrize("name", POOLS)
def test_empty_batches_stay_empty(name):
    result = ops[name](np.zeros((0, 3, 4, 4), np.float32), **window(name, (2, 2)))
    assert (result[0] if isinstance(result, tuple) else result).shape == (0, 3, 3, 3)


@pytest.mark.parametrize("name", POOLS)
def test_unknown_sizes_keep_their_identity_and_bounds(name):
    batch, height, width = fresh(), fresh(), fresh(5, 9)
    shape = inferred(name, (batch, 3, height, width), (3, 3), strides=(1, 2), pads_begin=(1, 1), pads_end=(1, 1))
    assert shape[:2] == (batch, 3)
    assert (shape[2] == height) is True
    assert (shape[3].low, shape[3].high) == (3, 5)
    shape = inferred(name, (batch, 3, height, width), (3, 3), strides=(1, 2), auto_pad="same_lower")
    assert (shape[2] == height) is True
    assert (shape[3].low, shape[3].high) == (3, 5)


@pytest.mark.parametrize("rounding", ["floor", "ceil", "ceil_torch"])
@pytest.mark.parametrize("auto_pad", ["explicit", "same_upper"])
def test_windows_lie_in_what_is_inferred_for_unknown_sizes(rounding, auto_pad):
    for kernel, stride, begin, end in ((1, 3, 0, 0), (3, 2, 1, 2), (2, 4, 0, 1), (2, 2, 1, 1)):
        attrs = {"strides": (stride,), "pads_begin": (begin,), "pads_end": (end,)}
        attrs |= {"rounding_type": rounding, "auto_pad": auto_pad}
        unknown = inferred("AvgPool-16", (1, 1, fresh(4, 9)), (kernel,), **attrs)[2]
        exact = [inferred("AvgPool-16", (1, 1, size), (kernel,), **attrs)[2] for size in range(4, 10)]
        assert isinstance(unknown, Dim)
        assert unknown.low <= min(exact)
        assert max(exact) <= unknown.high


@pytest.mark.parametrize("name", POOLS)
def test_pools_c1_other_than_one_to_three_spatial_axes(name):
    with pytest.raises(Violation, match="`data` has 4 spatial axes, expected 1 to 3") as caught:
        inferred(name, (1, 1, 2, 2, 2, 2), (1, 1, 1, 1))
    assert caught.value.label == "C1"


@pytest.mark.parametrize("name", POOLS)
def test_pools_c2_a_list_of_another_length(name):
    for attr in ("kernel", "strides", "pads_begin", "pads_end", "dilations"):
        if attr == "dilations" and name not in DILATED:
            continue
        short = {"kernel": (2, 2), "strides": (1, 1)} | {attr: (1,)}
        with pytest.raises(Violation, match=f"`{attr}` has 1 values for 2 spatial axes") as caught:
            inferred(name, (1, 1, 5, 5), **short)
        assert caught.value.label == "C2"


@pytest.mark.parametrize("auto_pad", ["same_upper", "same_lower", "valid"])
@pytest.mark.parametrize("name", POOLS)
def test_pools_c2_pads_that_nothing_reads(name, auto_pad):
    for attr in ("pads_begin", "pads_end"):
        for pads in ((0,), (0, 0, 0)):
            with pytest.raises(Violation, match=f"`{attr}` has {len(pads)} values for 2 spatial axes"):
                inferred(name, (1, 1, 5, 5), (2, 2), auto_pad=auto_pad, **{attr: pads})
    size = 4 if auto_pad == "valid" else 5
    assert inferred(name, (1, 1, 5, 5), (2, 2), pads_begin=(), auto_pad=auto_pad) == (1, 1, size, size)


@pytest.mark.parametrize("name", POOLS)
def test_pools_take_no_pads_for_none(name):
    data = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
    attrs = {"pads_begin": (), "pads_end": ()} | ({"dilations": (1, 1)} if name in DILATED else {})
    assert pooled(name, data, (2, 2), **attrs) == pooled(name, data, (2, 2))
    op = ops[name]
    tensors = [Tensor.of(data)]
    found = op.infer(tensors, op.defaults | window(name, (2, 2), **attrs))
    assert [str(each.violation) for each in found.tolerated] == [
        "`pads_begin` has no values for 2 spatial axes",
        "`pads_end` has no values for 2 spatial axes",
    ]


@pytest.mark.parametrize("name", POOLS)
def test_pools_c3_a_kernel_larger_than_the_padded_data(name):
    with pytest.raises(Violation, match="reaches over 4 elements, but spatial axis 1 has 3 with padding") as caught:
        inferred(name, (1, 1, 5, 2), (2, 4), pads_begin=(0, 1))
    assert caught.value.label == "C3"


@pytest.mark.parametrize("name", INDEXED)
def test_indexed_pools_c4_axis_outside_the_rank(name):
    with pytest.raises(Violation, match=r"`axis` is 3, outside \[-3, 3\) for rank 3") as caught:
        inferred(name, (1, 1, 5), (2,), axis=3)
    assert caught.value.label == "C4"


AVERAGES = ["AvgPool-1", "AvgPool-14", "AvgPool-16"]


@pytest.mark.parametrize("name", AVERAGES)
@pytest.mark.parametrize(("size", "strides"), [(3, 1), (3, 3), (fresh(1), 1), (fresh(1), 3)])
def test_avgpools_c4_the_first_window_is_of_padding(name, size, strides):
    message = (
        r"`pads_begin` is \[0, 2\], but the kernel reaches over 2 elements along spatial axis 1: "
        "the first window has none to average, as padding is excluded"
    )
    attrs = {"strides": (1, strides), "pads_begin": (0, 2)}
    with pytest.raises(Violation, match=message) as caught:
        inferred(name, (1, 1, 3, size), (2, 2), **attrs)
    assert caught.value.label == "C4"
    inferred(name, (1, 1, 3, size), (2, 2), exclude_pad=False, **attrs)
    inferred(name, (1, 1, 3, 3), (2, 2), auto_pad="valid", **attrs)


@pytest.mark.parametrize("name", AVERAGES)
def test_avgpools_c4_the_last_window_is_of_padding(name):
    attrs = {"pads_end": (2,)}
    for size, stride in ((3, 1), (fresh(1), 1), (3, 3)):
        with pytest.raises(Violation, match="the last window has none to average") as caught:
            inferred(name, (1, 1, size), (2,), strides=(stride,), **attrs)
        assert caught.value.label == "C4"
    assert pooled(name, [[[1.0, 3, 5, 7]]], (2,), strides=(3,), **attrs) == [[[2, 7]]]
    op = ops[name]
    open_size = op.infer([Tensor("f32", (1, 1, fresh(1)))], op.defaults | window(name, (2,), strides=(3,), **attrs))
    assert not open_size.complete


def test_avgpool_16_c4_counts_the_dilated_kernel():
    assert inferred("AvgPool-16", (1, 1, 3), (2,), dilations=(3,), pads_begin=(3,)) == (1, 1, 3)
    with pytest.raises(Violation, match="reaches over 4 elements"):
        inferred("AvgPool-16", (1, 1, 3), (2,), dilations=(3,), pads_begin=(4,))


ADAPTIVE = ["AdaptiveAvgPool-8", "AdaptiveMaxPool-8"]


def adaptive_shape(name, shape, sizes):
    op = ops[name]
    return op.infer([Tensor("f32", shape), sizes], op.defaults).outputs[0].shape


def test_adaptive_pools_cover_the_data_evenly():
    line = np.array([[[1.0, 2, 9, 4, 5]]])
    assert ops["AdaptiveAvgPool-8"](line, np.array([2])).tolist() == [[[4, 6]]]
    assert ops["AdaptiveAvgPool-8"](line, np.array([7])).tolist() == [[[1, 1.5, 5.5, 9, 6.5, 4.5, 5]]]
    values, indices = ops["AdaptiveMaxPool-8"](line, np.array([2]), index_element_type="i32")
    assert values.tolist() == [[[9, 9]]]
    assert indices.tolist() == [[[2, 2]]]
    assert indices.dtype == np.int32


@pytest.mark.parametrize("sizes", [(3, 2, 2), (1, 1, 1), (5, 4, 3), (0, 2, 2)])
def test_adaptive_pools_agree_with_loops(sizes):
    rng = np.random.default_rng(1)
    data = rng.integers(-3, 4, (2, 3, 4, 5, 3)).astype(np.float64)
    means = ops["AdaptiveAvgPool-8"](data, np.array(sizes))
    values, indices = ops["AdaptiveMaxPool-8"](data, np.array(sizes))
    assert means.shape == values.shape == indices.shape == (2, 3, *sizes)
    for n, c, *place in np.ndindex(*means.shape):
        bounds = [(i * b // a, -(-(i + 1) * b // a)) for i, a, b in zip(place, sizes, data.shape[2:], strict=True)]
        block = data[n, c][tuple(slice(*bound) for bound in bounds)]
        first = np.unravel_index(block.argmax(), block.shape)
        at = np.ravel_multi_index([i + low for i, (low, _) in zip(first, bounds, strict=True)], data.shape[2:])
        assert means[(n, c, *place)] == pytest.approx(block.mean(), abs=1e-12)
        assert values[(n, c, *place)] == block.max()
        assert indices[(n, c, *place)] == at


def test_adaptive_max_pool_prefers_numbers_to_nan():
    nan = float("nan")
    values, indices = ops["AdaptiveMaxPool-8"](np.array([[[nan, 1, -np.inf, -np.inf, nan, nan]]]), np.array([3]))
    assert values[0, 0, :2].tolist() == [1, -np.inf]
    assert np.isnan(values[0, 0, 2])
    assert indices.tolist() == [[[1, 2, 4]]]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", ADAPTIVE)
def test_adaptive_pools_keep_short_floats(name, dtype):
    result = ops[name](np.ones((1, 1, 3000), dtype), np.array([1]))
    values = result[0] if isinstance(result, tuple) else result
    assert values.dtype == dtype
    assert values.astype(float).tolist() == [[[1]]]


@pytest.mark.parametrize("name", ADAPTIVE)
def test_adaptive_pools_of_unknown_sizes(name):
    batch, size = fresh(), fresh(1)
    sizes = Tensor("i64", (2,), np.array([size, 4], object))
    assert adaptive_shape(name, (batch, 3, 8, fresh()), sizes) == (batch, 3, size, 4)
    shape = adaptive_shape(name, (batch, 3, 8, 8), Tensor("i64", (2,)))
    assert shape[:2] == (batch, 3)
    assert all(isinstance(size, Dim) for size in shape[2:])


@pytest.mark.parametrize("name", ADAPTIVE)
def test_adaptive_pools_c1_other_than_one_to_three_spatial_axes(name):
    with pytest.raises(Violation, match="`data` has 0 spatial axes, expected 1 to 3") as caught:
        adaptive_shape(name, (1, 2), Tensor("i64", (0,)))
    assert caught.value.label == "C1"


@pytest.mark.parametrize("name", ADAPTIVE)
def test_adaptive_pools_c2_output_shape_of_another_length(name):
    with pytest.raises(Violation, match="`output_shape` has 3 elements for 2 spatial axes") as caught:
        adaptive_shape(name, (1, 2, 3, 4), Tensor("i64", (3,)))
    assert caught.value.label == "C2"


@pytest.mark.parametrize("name", ADAPTIVE)
def test_adaptive_pools_c3_negative_sizes_and_empty_data(name):
    with pytest.raises(Violation, match="`output_shape` has -1, expected 0 or more") as caught:
        adaptive_shape(name, (1, 2, 3), Tensor.of(np.array([-1])))
    assert caught.value.label == "C3"
    with pytest.raises(Violation, match="spatial axis 0 of `data` is empty"):
        adaptive_shape(name, (1, 2, 0), Tensor.of(np.array([1])))
