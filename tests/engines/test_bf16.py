"""Works of bf16 on oneDNN against the ops' own kernels in f64: one rounding of the result, and sums of f32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from engines.onednn_works import ENGINE, computed, expected, prepared, work_of

from irrun.engines.onednn import attention, convolution
from irrun.engines.vectorized.engine import VectorizedEngine
from irrun.engines.work import Compiled, Post
from irrun.spec.op import Array

BF16 = ml_dtypes.bfloat16
native = pytest.mark.skipif(
    ENGINE is None or not ENGINE.computes("MatMul-1", "bf16"),
    reason="oneDNN is not installed, or the processor does not multiply bf16",
)
pytestmark = native

ROUNDING = 2.0**-8
"""The largest relative error of a number rounded to bf16."""

SUMS = 1e-5
"""The error of sums in f32, of the largest result."""


def random(*shape: int, seed: int = 0, type: Any = BF16) -> Array:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(type)


def last(*shape: int) -> Array:
    """Data [N, C, *spatial] that lies as [N, *spatial, C]."""
    return np.moveaxis(random(shape[0], *shape[2:], shape[1]), -1, 1)


def check(
    name: str,
    attrs: Mapping[str, Any],
    arrays: Sequence[Array | None],
    constants: Sequence[int] = (),
    posts: Sequence[Post] = (),
    type: str = "bf16",
) -> Compiled:
    """Compare a work with results of `type` with the plain op on the same numbers in f64."""
    exact = [array.astype(np.float64) if array is not None and array.dtype.kind in "fV" else array for array in arrays]
    results = expected(name, attrs, exact, posts)
    work = work_of(name, attrs, arrays, results, constants, posts, type)
    compiled = prepared(work)
    assert compiled is not None, "the engine does not take it"
    for output, result in zip(computed(work, compiled, arrays), results, strict=True):
        assert output.dtype == (BF16 if type == "bf16" else np.float32)
        agree(output, result, ROUNDING if type == "bf16" else 0)
    return compiled


def agree(output: Array, result: Array, rounding: float = ROUNDING) -> None:
    scale = float(np.abs(result).max(initial=1e-30))
    np.testing.assert_allclose(output.astype(np.float64), result, rtol=rounding, atol=SUMS * scale)


def add(operand: int) -> Post:
    return Post("Add-1", {}, operand)


RELU = Post("ReLU-1", {})


def window(rank: int, **attrs: Any) -> dict[str, Any]:
    zeros, ones = (0,) * rank, (1,) * rank
    return {"strides": ones, "dilations": ones, "pads_begin": zeros, "pads_end": zeros} | attrs


CONVOLUTIONS = [
    ((1, 3, 17, 19), (16, 3, 7, 7), {"strides": (2, 2), "pads_begin": (3, 3), "pads_end": (3, 3)}),
    ((2, 5, 9, 7), (6, 5, 3, 3), {"pads_begin": (1, 1), "pads_end": (1, 1)}),
    ((1, 32, 8, 8), (48, 32, 1, 1), {}),
    ((1, 64, 9, 9), (64, 64, 3, 3), {"strides": (2, 2), "pads_begin": (1, 1)}),
    ((1, 4, 12, 11), (8, 4, 3, 2), {"dilations": (2, 3), "pads_begin": (2, 0), "pads_end": (1, 3)}),
    ((1, 80, 6, 8), (32, 80, 2, 2), {"strides": (2, 2)}),  # whose pixels oneDNN would take two by two, and wrongly
    ((1, 24, 6, 8), (32, 24, 1, 4), {"strides": (1, 4)}),
    ((1, 80, 22, 2, 33), (8, 80, 1, 1, 1), {}),
    ((1, 320, 20, 14), (80, 320, 1, 7), {"strides": (2, 1), "pads_begin": (0, 3), "pads_end": (1, 1)}),
    ((1, 7, 20), (9, 7, 3), {"strides": (2,), "pads_begin": (1,), "pads_end": (0,)}),
    ((1, 3, 5, 6, 7), (4, 3, 2, 3, 3), {"pads_end": (1, 0, 2), "strides": (1, 2, 1)}),
]


@pytest.mark.parametrize(("data", "filters", "attrs"), CONVOLUTIONS)
@pytest.mark.parametrize("laid", [random, last])
def test_convolution(data: tuple[int, ...], filters: tuple[int, ...], attrs: dict[str, Any], laid: Any) -> None:
    check("Convolution-1", window(len(data) - 2, **attrs), [laid(*data), random(*filters)], [1])


def test_taps_that_meet_nothing_but_padding_are_left() -> None:
    """With tiles oneDNN would end the process."""
    attrs = window(2, strides=(5, 2), dilations=(2, 1), pads_begin=(3, 0), pads_end=(1, 0))
    arrays = [random(1, 320, 1, 8), random(16, 320, 3, 2)]
    work = work_of("Convolution-1", attrs, arrays, [np.zeros((1, 16, 1, 4), BF16)], [1], type="bf16")
    assert prepared(work) is None


@pytest.mark.parametrize("bias", [BF16, np.float32])
@pytest.mark.parametrize("residual", [random, last])
@pytest.mark.parametrize("type", ["bf16", "f32"])
def test_convolution_with_bias_residual_and_activation(bias: Any, residual: Any, type: str) -> None:
    arrays = [last(2, 16, 9, 8), random(24, 16, 3, 3), random(1, 24, 1, 1, type=bias), residual(2, 24, 9, 8)]
    attrs = window(2, pads_begin=(1, 1), pads_end=(1, 1))
    check("Convolution-1", attrs, arrays, [1, 2], [add(2), add(3), RELU], type)


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("channels", [8, 24, 96])
@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise_convolution(channels: int, stride: int, size: int) -> None:
    attrs = window(2, strides=(stride, stride), pads_begin=(1, 1), pads_end=(1, 1))
    arrays = [last(2, channels, 9, 8), random(channels, 1, 1, size, size), random(1, channels, 1, 1)]
    check("GroupConvolution-1", attrs, arrays, [1, 2], [add(2), Post("HSwish-4", {})])


@pytest.mark.parametrize("laid", [random, last])
@pytest.mark.parametrize(("channels", "stride", "size"), [(8, 1, 3), (24, 2, 5), (96, 1, 5)])
def test_depthwise_convolution_by_the_kernel_that_gives_f32(
    channels: int, stride: int, size: int, laid: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some processors have no quick kernel that gives bf16; the one that others have is taken for a slow one here."""
    monkeypatch.setattr(convolution, "DEPTHWISE", "brdgmm")
    attrs = window(2, strides=(stride, stride), pads_begin=(1, 1), pads_end=(1, 1))
    arrays = [laid(2, channels, 11, 10), random(channels, 1, 1, size, size), random(1, channels, 1, 1)]
    (result,) = expected("GroupConvolution-1", attrs, [array.astype(np.float32) for array in arrays[:2]], [])
    arrays.append(laid(*result.shape))
    check("GroupConvolution-1", attrs, arrays, [1, 2], [add(2), Post("HSwish-4", {}), add(3)])


def test_group_convolution() -> None:
    check("GroupConvolution-1", window(2), [random(2, 6, 9, 8), random(3, 4, 2, 3, 3)], [1])


@pytest.mark.parametrize("group", [False, True])
def test_transposed_convolution(group: bool) -> None:
    attrs = window(2, strides=(2, 2), pads_begin=(1, 1), pads_end=(1, 1), output_padding=(0, 0))
    if group:
        check("GroupConvolutionBackpropData-1", attrs, [random(1, 6, 9, 8), random(3, 2, 4, 4, 4)], [1])
    else:
        check("ConvolutionBackpropData-1", attrs, [random(1, 16, 9, 8), random(16, 8, 4, 4)], [1])


@pytest.mark.parametrize("channels", [1, 2, 3, 17, 32])
@pytest.mark.parametrize("sizes", [(5, 6), (59,), (2, 5, 9), (30, 6)])
def test_transposed_convolution_of_single_taps(channels: int, sizes: tuple[int, ...]) -> None:
    arrays = [random(1, channels, *sizes), random(channels, 2, *(1 for _ in sizes))]
    attrs = window(len(sizes), output_padding=(0,) * len(sizes))
    work = work_of("ConvolutionBackpropData-1", attrs, arrays, [np.zeros((1, 2, *sizes), BF16)], [1], type="bf16")
    if ENGINE is not None and ENGINE.compile(work) is not None:  # those of odd numbers of channels are left
        check("ConvolutionBackpropData-1", attrs, arrays, [1])


@pytest.mark.parametrize(
    ("left", "right", "attrs"),
    [
        ((7, 96), (96, 33), {}),
        ((2, 5, 64), (48, 64), {"transpose_b": True}),
        ((64, 3), (64, 5), {"transpose_a": True}),
        ((64,), (64, 5), {}),
        ((1, 200), (200, 100), {}),
    ],
)
@pytest.mark.parametrize("type", ["bf16", "f32"])
def test_product_with_constant_weights(left: tuple[int, ...], right: tuple[int, ...], attrs: Any, type: str) -> None:
    attrs = {"transpose_a": False, "transpose_b": False} | attrs
    check("MatMul-1", attrs, [random(*left), random(*right)], [1], type=type)


@pytest.mark.parametrize("bias", [BF16, np.float32])
@pytest.mark.parametrize("activation", ["Gelu-7", "ReLU-1", "Tanh-1", "Sigmoid-1", "Swish-4"])
def test_product_with_bias_activation_and_residual(bias: Any, activation: str) -> None:
    arrays = [random(3, 7, 40), random(40, 24), random(24, type=bias), random(3, 7, 24)]
    posts = [add(2), Post(activation, {"approximation_mode": "erf"} if activation == "Gelu-7" else {}), add(3)]
    check("MatMul-1", {"transpose_a": False, "transpose_b": False}, arrays, [1, 2], posts)


@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_batches(transposed: bool) -> None:
    right = random(2, 3, 9, 16) if transposed else random(2, 3, 16, 9)
    attrs = {"transpose_a": False, "transpose_b": transposed}
    check("MatMul-1", attrs, [random(2, 3, 7, 16), right, np.array(0.25, BF16)], [2], [Post("Multiply-1", {}, 2)])
    heads = random(2, 7, 3, 16).transpose(0, 2, 1, 3)
    check("MatMul-1", attrs, [heads, right])


@pytest.mark.parametrize("name", ["MaxPool-8", "AvgPool-1"])
@pytest.mark.parametrize("laid", [random, last])
def test_pooling(name: str, laid: Any) -> None:
    attrs: dict[str, Any] = {"kernel": (3, 3), "strides": (2, 2), "pads_begin": (1, 1), "pads_end": (1, 1)}
    attrs |= {"exclude_pad": True} if name == "AvgPool-1" else {"dilations": (1, 1)}
    array = laid(2, 16, 9, 9)
    result, *_ = expected(name, attrs, [array.astype(np.float64)], [])
    work = work_of(name, attrs, [array], [result], type="bf16")
    compiled = prepared(work)
    assert compiled is not None
    agree(computed(work, compiled, [array])[0], result)


@pytest.mark.parametrize("laid", [random, last])
def test_mean_of_all_that_is_spatial(laid: Any) -> None:
    check("ReduceMean-1", {"keep_dims": True}, [laid(2, 16, 7, 7), np.array([2, 3])], [1])


UNARY = {
    "Abs-1": {},
    "Clamp-1": {"min": -0.5, "max": 0.75},
    "Elu-1": {"alpha": 0.5},
    "Exp-1": {},
    "Gelu-7": {"approximation_mode": "tanh"},
    "HSigmoid-5": {},
    "HSwish-4": {},
    "Mish-4": {},
    "Negative-1": {},
    "ReLU-1": {},
    "Sigmoid-1": {},
    "Swish-4": {},
    "Tanh-1": {},
}


@pytest.mark.parametrize("name", UNARY)
def test_element_wise(name: str) -> None:
    check(name, UNARY[name], [random(3, 5, 7)])
    check(name, UNARY[name], [last(2, 8, 5, 5)])
    check(name, UNARY[name], [random(6, 10, 7)[::2, ::2]])


@pytest.mark.parametrize("name", ["Add-1", "Subtract-1", "Multiply-1", "Divide-1", "Maximum-1", "Minimum-1"])
@pytest.mark.parametrize("other", [(2, 8, 5, 6), (1, 8, 1, 1), (1,), (6,), (2, 1, 5, 6)])
def test_element_wise_of_two(name: str, other: tuple[int, ...]) -> None:
    second = random(*other, seed=1)
    second[np.abs(second) < 0.1] = 1
    check(name, {"auto_broadcast": "numpy"}, [random(2, 8, 5, 6), second])
    check(name, {"auto_broadcast": "numpy"}, [last(2, 8, 5, 6), second])


def test_chain_of_element_wise_ops_is_rounded_once() -> None:
    posts = [Post("Sigmoid-1", {}), Post("Multiply-1", {}, 2), add(3)]
    arrays = [random(2, 8, 5, 6), random(8, 1, 1), random(2, 8, 5, 6, seed=2), random(1, type=np.float32)]
    check("Add-1", {"auto_broadcast": "numpy"}, arrays, [3], posts)


@pytest.mark.parametrize("factor", [BF16, np.float32])
def test_layer_normalization(factor: Any) -> None:
    attrs = {"normalize_variance": True, "eps": 1e-5, "eps_mode": "inside_sqrt"}
    for seed in (0, 1):  # layers of a model are alike but for their constants
        arrays = [random(2, 7, 64), np.array([-1]), *(random(64, seed=seed + n, type=factor) for n in (0, 1))]
        check("MVN-6", attrs, arrays, [1, 2, 3], [Post("Multiply-1", {}, 2), add(3)])


def test_softmax() -> None:
    """Its numerators are rounded before they are divided."""
    data = random(2, 9, 40)
    (result,) = expected("SoftMax-8", {"axis": -1}, [data.astype(np.float64)], [])
    work = work_of("SoftMax-8", {"axis": -1}, [data], [result], type="bf16")
    compiled = prepared(work)
    assert compiled is not None
    agree(computed(work, compiled, [data])[0], result, 2 * ROUNDING)


@pytest.mark.parametrize("masked", [None, "constant", "given", "boolean", "causal"])
@pytest.mark.parametrize("most", [1 << 23, 4000, 1500, 400])
@pytest.mark.parametrize("inside", [False, True])
def test_attention(masked: str | None, most: int, inside: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, and by parts of the batch, the heads and the rows."""
    monkeypatch.setattr("irrun.engines.onednn.attention.MAX_SCORES", {"bf16": most})
    arrays: list[Array | None] = [
        random(2, rows, 3, 16, seed=seed).swapaxes(1, 2) if inside else random(2, 3, rows, 16, seed=seed)
        for seed, rows in enumerate((17, 19, 19))
    ]
    mask = random(2, 1, 17, 19, seed=3)
    if masked == "boolean":
        mask = mask > 0
    if masked not in (None, "causal"):
        arrays.append(mask)
    exact = [array.astype(np.float64) if array.dtype == BF16 else array for array in arrays]
    attrs = {"causal": masked == "causal"}
    (result,) = expected("ScaledDotProductAttention-13", attrs, exact, [])
    work = work_of("ScaledDotProductAttention-13", attrs, arrays, [result], [3] * (masked == "constant"), type="bf16")
    compiled = prepared(work)
    assert compiled is not None
    (output,) = computed(work, compiled, arrays)
    # weights, which sum up to 1, are rounded: by no more than ROUNDING of the largest value in all
    np.testing.assert_allclose(output.astype(np.float64), result, rtol=ROUNDING, atol=ROUNDING * 3)


def test_attention_whose_scores_are_no_products_of_tiles_goes_head_by_head(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where keys are many, on processors that multiply tiles."""
    monkeypatch.setattr("irrun.engines.onednn.attention.MAX_SCORES", {"bf16": 1 << 15})
    monkeypatch.setattr("irrun.engines.onednn.attention._Kernel.leaves_tiles", True)
    asked = []
    parts = attention._parts

    def noted(*args: Any, inside: bool) -> Any:
        asked.append(inside)
        return parts(*args, inside=inside)

    monkeypatch.setattr("irrun.engines.onednn.attention._parts", noted)
    arrays: list[Array | None] = [random(1, rows, 3, 16, seed=rows).swapaxes(1, 2) for rows in (50, 70, 70)]
    exact = [array.astype(np.float64) for array in arrays if array is not None]
    (result,) = expected("ScaledDotProductAttention-13", {"causal": False}, exact, [])
    work = work_of("ScaledDotProductAttention-13", {"causal": False}, arrays, [result], type="bf16")
    compiled = prepared(work)
    assert compiled is not None
    (output,) = computed(work, compiled, arrays)
    np.testing.assert_allclose(output.astype(np.float64), result, rtol=ROUNDING, atol=ROUNDING * 3)
    assert asked == [True, False]


@pytest.mark.parametrize("laid", [random, last])
def test_conversion_rounds_to_the_nearest_and_keeps_the_order_of_axes(laid: Any) -> None:
    data = laid(2, 8, 5, 6).astype(np.float32) * np.float32(1.2345)
    data = np.moveaxis(np.ascontiguousarray(np.moveaxis(data, 1, -1)), -1, 1) if laid is last else data
    for array, type in ((data, "bf16"), (data.astype(BF16), "f32")):
        result = array.astype(BF16 if type == "bf16" else np.float32)
        work = work_of("Convert-1", {"destination_type": type}, [array], [result], type=type)
        compiled = prepared(work)
        assert compiled is not None
        (output,) = computed(work, compiled, [array])
        np.testing.assert_array_equal(output, result)
        assert bool(compiled.gives) == (laid is last)


def test_what_is_not_finite() -> None:
    """Infinity is kept; NaN is in sums and products, and a number in ReLU, Clamp, Exp, maxima and minima."""
    data = np.array([np.nan, np.inf, -np.inf, 1, -1], BF16)

    def of(name: str, *others: Array, **attrs: Any) -> list[float]:
        work = work_of(name, attrs, [data, *others], [data], type="bf16")
        compiled = prepared(work)
        assert compiled is not None
        (output,) = computed(work, compiled, [data, *others])
        return output.astype(float).tolist()

    np.testing.assert_equal(of("Add-1", data, auto_broadcast="numpy"), [np.nan, np.inf, -np.inf, 2, -2])
    np.testing.assert_equal(of("Multiply-1", data, auto_broadcast="numpy"), [np.nan, np.inf, np.inf, 1, 1])
    assert of("ReLU-1")[1:] == [np.inf, 0, 1, 0]
    assert of("Clamp-1", min=-2.0, max=2.0)[1:] == [2, -2, 1, -1]


def test_who_computes_in_which_type() -> None:
    assert ENGINE is not None
    assert ENGINE.computes("Convolution-1", "bf16")
    assert ENGINE.computes("Convolution-1", "f32")
    assert not ENGINE.computes("Convolution-1", "f16")
    assert not ENGINE.computes("LSTMSequence-5", "bf16")
    assert not ENGINE.computes("TopK-11", "f32")
    plain = VectorizedEngine(1)
    assert plain.computes("MatMul-1", "f32")
    assert not plain.computes("MatMul-1", "bf16")
    assert plain.computes("Concat-1", "bf16")
    assert plain.computes("Gather-8", "bf16")


def test_conversions_behind_products_and_normalizations_cost_nothing() -> None:
    wide, narrow = (Post("Convert-1", {"destination_type": type}) for type in ("f32", "bf16"))
    arrays = [random(7, 40), random(40, 24), random(24), random(7, 24, type=np.float32)]
    attrs: dict[str, Any] = {"transpose_a": False, "transpose_b": False}
    check_converted("MatMul-1", attrs, arrays, [1, 2], [add(2), wide, add(3)], "f32")
    attrs = {"normalize_variance": True, "eps": 1e-5, "eps_mode": "inside_sqrt"}
    arrays = [random(7, 64, type=np.float32), np.array([-1]), random(64, type=np.float32)]
    check_converted("MVN-6", attrs, arrays, [1, 2], [Post("Multiply-1", {}, 2), narrow], "bf16")


def check_converted(
    name: str,
    attrs: Mapping[str, Any],
    arrays: Sequence[Array],
    constants: Sequence[int],
    posts: Sequence[Post],
    type: str,
) -> None:
    """Compare a work with conversions among its posts with the plain op in f64, which has none."""
    exact = [array.astype(np.float64) if array.dtype.kind in "fV" else array for array in arrays]
    (result,) = expected(name, attrs, exact, [post for post in posts if post.name != "Convert-1"])
    work = work_of(name, attrs, arrays, [result], constants, posts, type)
    compiled = prepared(work)
    assert compiled is not None
    agree(computed(work, compiled, arrays)[0], result, ROUNDING if type == "bf16" else 1e-5)
