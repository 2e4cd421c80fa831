"""Convolutions, transposed convolutions and pooling on oneDNN against the plain ops."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from differential.sealing import weights_sealed
from engines.onednn_works import (
    ENGINE,
    apply,
    channels_last,
    check,
    check_if_taken,
    computed,
    expected,
    needs_onednn,
    normal,
    placed,
    prepared,
    refused,
    room,
    views,
    work_of,
)

from irrun.engines.onednn import load, tiles
from irrun.engines.onednn.convolution import _in_rows, _prepared
from irrun.engines.onednn.tensors import channels_last as last
from irrun.engines.work import Operand, Post
from irrun.spec.op import Array
from irrun.spec.registry import registry

pytestmark = needs_onednn


def window(rank: int, **attrs: Any) -> dict[str, Any]:
    return {
        "strides": (1,) * rank,
        "dilations": (1,) * rank,
        "pads_begin": (0,) * rank,
        "pads_end": (0,) * rank,
    } | attrs


def add(operand: int) -> Post:
    return Post("Add-1", {}, operand)


RELU = Post("ReLU-1", {})


@pytest.mark.parametrize(
    ("data", "filters", "attrs"),
    [
        ((1, 3, 17, 19), (16, 3, 7, 7), {"strides": (2, 2), "pads_begin": (3, 3), "pads_end": (3, 3)}),
        ((2, 5, 9, 7), (6, 5, 3, 3), {"pads_begin": (1, 1), "pads_end": (1, 1)}),
        ((1, 32, 8, 8), (48, 32, 1, 1), {}),
        ((1, 32, 9, 9), (48, 32, 1, 1), {"strides": (2, 2)}),
        ((1, 4, 12, 11), (8, 4, 3, 2), {"dilations": (2, 3), "pads_begin": (2, 0), "pads_end": (1, 3)}),
        ((1, 4, 12, 11), (8, 4, 4, 4), {"auto_pad": "same_upper", "strides": (3, 2)}),
        ((1, 4, 12, 11), (8, 4, 4, 4), {"auto_pad": "same_lower", "strides": (3, 2)}),
        ((1, 4, 12, 11), (8, 4, 1, 1), {"auto_pad": "same_upper", "strides": (3, 5)}),
        ((1, 4, 12, 11), (8, 4, 4, 4), {"auto_pad": "valid", "pads_begin": (9, 9), "strides": (3, 2)}),
        ((1, 1, 1, 1), (1, 1, 1, 1), {}),
        ((1, 7, 20), (9, 7, 3), {"strides": (2,), "pads_begin": (1,), "pads_end": (0,)}),
        ((1, 3, 5, 6, 7), (4, 3, 2, 3, 3), {"pads_end": (1, 0, 2), "strides": (1, 2, 1)}),
    ],
)
def test_convolution(data: tuple[int, ...], filters: tuple[int, ...], attrs: dict[str, Any]) -> None:
    attrs = window(len(data) - 2, **attrs)
    check("Convolution-1", attrs, [normal(*data), normal(*filters)], constants=[1])
    check("Convolution-1", attrs, [channels_last(*data), normal(*filters)], constants=[1])


@pytest.mark.parametrize(
    ("data", "filters"),
    [((2, 6, 9, 8), (3, 4, 2, 3, 3)), ((1, 24, 9, 9), (24, 1, 1, 3, 3)), ((1, 20, 9, 9), (20, 1, 1, 5, 5))],
)
@pytest.mark.parametrize("stride", [1, 2])
def test_group_convolution(data: tuple[int, ...], filters: tuple[int, ...], stride: int) -> None:
    attrs = window(2, strides=(stride, stride), pads_begin=(1, 1), pads_end=(1, 1))
    check("GroupConvolution-1", attrs, [channels_last(*data), normal(*filters)], constants=[1])
    check("GroupConvolution-1", attrs, [normal(*data), normal(*filters)], constants=[1])


def test_group_convolution_with_two_features_a_channel_and_with_one_group() -> None:
    check("GroupConvolution-1", window(2), [normal(1, 6, 7, 7), normal(6, 2, 1, 3, 3)], constants=[1])
    check("GroupConvolution-1", window(2), [normal(1, 6, 7, 7), normal(1, 5, 6, 3, 3)], constants=[1])
    check("GroupConvolution-1", window(1), [normal(1, 6, 9), normal(6, 1, 1, 3)], constants=[1])


@pytest.mark.parametrize("constants", [[1], [1, 2], [1, 3], []], ids=str)
@pytest.mark.parametrize("auto_pad", ["explicit", "same_lower", "valid"])
@pytest.mark.parametrize(("channels", "size", "taps"), [(64, 99, 31), (12, 50, 4), (33, 7, 7), (1, 20, 3)], ids=str)
def test_group_convolution_over_one_axis(
    channels: int, size: int, taps: int, auto_pad: str, constants: list[int]
) -> None:
    attrs = window(1, strides=(2,), dilations=(1,), pads_begin=(2,), pads_end=(1,), auto_pad=auto_pad)
    filters = normal(channels, 1, 1, taps)
    (result,) = apply("GroupConvolution-1", attrs, normal(2, channels, size), filters)
    total, gelu = normal(*result.shape), Post("Gelu-7", {"approximation_mode": "erf"})
    for data in (normal(2, channels, size), channels_last(2, channels, size)):
        arrays = [data, filters, normal(1, channels, 1), total]
        check_if_taken("GroupConvolution-1", attrs, arrays[:2], constants[:1])
        check_if_taken("GroupConvolution-1", attrs, arrays, constants, [add(2), add(3), gelu])


def test_depthwise_convolution_over_one_axis_is_no_product_for_each_channel() -> None:
    assert ENGINE is not None
    library, filters = ENGINE._library, normal(64, 1, 1, 9)
    for data in (normal(1, 64, 99), channels_last(1, 64, 99)):
        found = _in_rows(library, work_of("GroupConvolution-1", window(1), [data, filters], [normal(1, 64, 91)], [1]))
        assert found is not None
        assert found.gives == {0: last(library, (1, 64, 91), "f32")}
        assert found.wants == ({0: last(library, data.shape, "f32")} if data.flags.c_contiguous else {})


def test_filters_that_are_not_constant() -> None:
    check("Convolution-1", window(2), [normal(1, 4, 7, 7), normal(5, 4, 3, 3)])
    check("GroupConvolution-1", window(2), [normal(1, 4, 7, 7), normal(4, 1, 1, 3, 3)])


def test_constants_behind_filters_that_are_not_constant_are_for_others_to_look_at() -> None:
    """What is made of a work over one axis is another one's, too, which has other constants there."""
    assert ENGINE is not None
    library, arrays, constant = ENGINE._library, [normal(1, 16, 1), normal(8, 3, 2, 1), normal(1, 24, 1)], [2]
    work = work_of("GroupConvolution-1", window(1), arrays, [normal(1, 24, 1)], constant, [add(2)])
    with weights_sealed():
        library.works.recall("rows", work, lambda own: _in_rows(library, own))
    check("GroupConvolution-1", window(1), arrays, constants=constant, posts=[add(2)])


def test_data_and_filters_that_are_views() -> None:
    data = normal(1, 9, 9, 8).transpose(0, 3, 1, 2)[:, ::2, :7]
    check("Convolution-1", window(2), [data, normal(3, 3, 4, 5).transpose(3, 2, 1, 0)], constants=[1])


@pytest.mark.parametrize(
    ("data", "filters", "attrs"),
    [
        ((2, 6, 7, 9), (6, 4, 3, 3), {}),
        ((1, 6, 7, 9), (6, 4, 3, 3), {"strides": (2, 2), "pads_begin": (1, 1), "pads_end": (1, 1)}),
        ((1, 6, 7, 9), (6, 4, 4, 4), {"strides": (2, 2), "pads_begin": (1, 1), "pads_end": (1, 1)}),
        ((1, 6, 7, 9), (6, 4, 3, 3), {"strides": (2, 3), "output_padding": (1, 2)}),
        ((1, 6, 7, 9), (6, 4, 2, 2), {"dilations": (2, 1), "auto_pad": "valid", "pads_begin": (3, 3)}),
        ((1, 6, 9), (6, 4, 3), {"strides": (2,)}),
        ((1, 3, 4, 5, 6), (3, 2, 2, 2, 2), {"strides": (2, 2, 2)}),
    ],
)
def test_transposed_convolution(data: tuple[int, ...], filters: tuple[int, ...], attrs: dict[str, Any]) -> None:
    attrs = {"output_padding": ()} | window(len(data) - 2, **attrs)
    arrays = [normal(*data), normal(*filters), normal(1, filters[1], *(1,) * (len(data) - 2))]
    check("ConvolutionBackpropData-1", attrs, [*arrays[:2], None], constants=[1])
    posts = [Post("Add-1", {}, 3), RELU]
    check_if_taken("ConvolutionBackpropData-1", attrs, [*arrays[:2], None, arrays[2]], constants=[1, 3], posts=posts)


@pytest.mark.parametrize("auto_pad", ["explicit", "same_upper", "same_lower"])
def test_transposed_convolution_with_an_output_shape(auto_pad: str) -> None:
    attrs = window(2, strides=(2, 2), output_padding=(), auto_pad=auto_pad)
    arrays = [normal(1, 3, 5, 6), normal(3, 4, 3, 3), np.array([10, 12])]
    check("ConvolutionBackpropData-1", attrs, arrays, constants=[1, 2])


def test_grouped_transposed_convolution() -> None:
    attrs = window(2, strides=(2, 2), pads_begin=(1, 1), pads_end=(1, 1), output_padding=(1, 0))
    check("GroupConvolutionBackpropData-1", attrs, [normal(2, 6, 5, 5), normal(3, 2, 4, 3, 3)], constants=[1])
    check("GroupConvolutionBackpropData-1", attrs, [normal(2, 6, 5, 5), normal(6, 1, 1, 3, 3)], constants=[1])
    check("GroupConvolutionBackpropData-1", attrs, [normal(2, 40, 9, 7), normal(40, 1, 1, 3, 3)], constants=[1])


def test_what_is_slow_behind_a_grouped_transposed_convolution_is_done_apart() -> None:
    """oneDNN would do it to one number after another."""
    name, attrs = "GroupConvolutionBackpropData-1", window(2, strides=(2, 2), output_padding=())
    arrays = [normal(1, 16, 5, 6), normal(4, 4, 4, 4, 4), None, normal(1, 16, 1, 1)]
    check(name, attrs, arrays[:3], constants=[1])
    assert refused(name, attrs, arrays[:3], constants=[1], posts=[RELU])
    assert refused(name, attrs, arrays, constants=[1, 3], posts=[add(3)])


def test_taps_apart_in_a_transposed_convolution_with_strides_are_left_to_no_plain_loop() -> None:
    assert ENGINE is not None
    name, attrs = "ConvolutionBackpropData-1", window(2, strides=(2, 2), dilations=(2, 2), output_padding=())
    arrays = [normal(1, 6, 7, 9), normal(6, 4, 3, 3)]
    check(name, attrs, arrays, constants=[1])
    found = _prepared(ENGINE._library, work_of(name, attrs, arrays, apply(name, attrs, *arrays), constants=[1]))
    assert found is not None
    assert "ref:" not in found[1].implementation


TILED = [
    ((1, 64, 9, 7), (64, 24, 2, 2)),
    ((3, 5, 4, 6), (5, 7, 2, 3)),
    ((2, 16, 5), (16, 8, 4)),
    ((1, 1, 33), (1, 1, 2)),
    ((2, 8, 3, 4, 5), (8, 6, 2, 3, 2)),
    ((1, 64, 40, 40), (64, 1, 2, 2)),
    ((2, 6, 4, 4), (1, 6, 5, 3, 1)),
    ((2, 6, 4, 1), (6, 5, 1, 1)),
]


@pytest.mark.parametrize("posts", ["", "bias", "bias relu", "sigmoid swish"])
@pytest.mark.parametrize(("data", "filters"), TILED, ids=str)
def test_transposed_convolution_without_overlaps(data: tuple[int, ...], filters: tuple[int, ...], posts: str) -> None:
    name = "GroupConvolutionBackpropData-1" if len(filters) > len(data) else "ConvolutionBackpropData-1"
    rank = len(data) - 2
    attrs = window(rank, strides=filters[-rank:], dilations=(1,) * rank, output_padding=())
    summand = normal(filters[-rank - 1], *(1,) * rank, seed=1)
    behind = {"": [], "bias": [add(3)], "bias relu": [add(3), RELU]}
    chained = behind.get(posts, [Post("Sigmoid-1", {}), Post("Swish-4", {})])
    for own in (normal(*data), channels_last(*data)):
        arrays = [own, normal(*filters), None, *([summand] if "bias" in posts else [])]
        wanted = expected(name, attrs, arrays, chained)
        work = work_of(name, attrs, arrays, wanted, (1, 3), chained)
        found = tiles.compile(ENGINE._library, work)
        assert found is not None
        np.testing.assert_allclose(computed(work, found, arrays)[0], wanted[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("filters", "attrs"),
    [
        ((8, 6, 3, 3), {"strides": (2, 2)}),
        ((8, 6, 2, 2), {"strides": (3, 3)}),
        ((8, 6, 2, 2), {"strides": (2, 2), "pads_begin": (1, 0)}),
        ((8, 6, 2, 2), {"strides": (2, 2), "pads_end": (0, 1)}),
        ((8, 6, 2, 2), {"strides": (2, 2), "output_padding": (1, 1)}),
        ((8, 6, 2, 2), {"strides": (2, 2), "dilations": (2, 2)}),
        ((2, 4, 3, 2, 2), {"strides": (2, 2)}),
        ((8, 1 << 16, 2, 2), {"strides": (2, 2)}),
    ],
)
def test_transposed_convolutions_that_are_no_products(filters: tuple[int, ...], attrs: dict[str, Any]) -> None:
    name = "GroupConvolutionBackpropData-1" if len(filters) > 4 else "ConvolutionBackpropData-1"
    attrs = window(2, **{"output_padding": (), **attrs})
    arrays = [normal(1, 8, 2, 3), np.zeros(filters, np.float32)]
    work = work_of(name, attrs, arrays, expected(name, attrs, arrays, []), (1,))
    assert tiles.compile(ENGINE._library, work) is None
    if filters[1] < 1 << 16:
        check(name, attrs, [arrays[0], normal(*filters)], constants=[1])


def test_relu_of_infinity_below_is_zero() -> None:
    """By whatever computes them: products of matrices, convolutions by blocks, transposed ones."""
    data = normal(1, 3, 17, 17)
    data[0, 1, 2, 13] = np.inf
    attrs = window(2, strides=(2, 1), output_padding=(1, 0))
    check_if_taken("ConvolutionBackpropData-1", attrs, [data, -np.abs(normal(3, 1, 2, 1))], [1], [RELU])
    attrs = window(2, pads_begin=(2, 0), pads_end=(2, 0))
    for filters in ((3, 2, 1, 1, 3), (1, 40, 3, 3, 3)):
        check("GroupConvolution-1", attrs, [data, -np.abs(normal(*filters))], [1], [RELU])


def test_bias_residual_and_activation() -> None:
    attrs = window(2, pads_begin=(1, 1), pads_end=(1, 1))
    arrays = [normal(1, 8, 9, 9), normal(20, 8, 3, 3), normal(1, 20, 1, 1), normal(1, 20, 9, 9)]
    posts = [add(2), Post("Add-1", {}, 3, reflected=True), RELU]
    check("Convolution-1", attrs, arrays, constants=[1, 2], posts=posts)
    arrays[3] = channels_last(1, 20, 9, 9)
    compiled = check("Convolution-1", attrs, arrays, constants=[1, 2], posts=posts)
    assert 3 not in compiled.wants


@pytest.mark.parametrize(
    "post",
    [
        Post("Multiply-1", {}, 2),
        Post("Subtract-1", {}, 2),
        Post("Subtract-1", {}, 2, reflected=True),
        Post("Divide-1", {"m_pythondiv": True, "auto_broadcast": "numpy"}, 2),
        Post("Maximum-1", {}, 2),
        Post("Minimum-1", {}, 2),
        Post("SquaredDifference-1", {}, 2),
    ],
    ids=lambda post: f"{post.name}{'-reflected' * post.reflected}",
)
@pytest.mark.parametrize("shape", [(), (1,), (20, 1, 1), (1, 20, 1, 1), (2, 20, 9, 9), (2, 1, 9, 9), (9,)], ids=str)
def test_an_operand_that_broadcasts(post: Post, shape: tuple[int, ...]) -> None:
    attrs = window(2, pads_begin=(1, 1), pads_end=(1, 1))
    arrays = [channels_last(2, 8, 9, 9), normal(20, 8, 3, 3), normal(*shape) + np.float32(3)]
    arrays[2] = np.asarray(arrays[2], np.float32)
    if not refused("Convolution-1", attrs, arrays, [1, 2], [post]):
        check("Convolution-1", attrs, arrays, [1, 2], [post, RELU])
    else:
        assert shape in ((2, 1, 9, 9), (9,)), "what models have is taken"


def test_what_is_not_taken() -> None:
    assert refused("Convolution-1", window(2), [normal(1, 2, 5, 5).astype(np.float64), normal(2, 2, 3, 3)])
    posts = [Post("Divide-1", {"m_pythondiv": True}, 2, reflected=True)]
    assert refused("Convolution-1", window(2), [normal(1, 2, 5, 5), normal(2, 2, 3, 3), normal(2, 1, 1)], [1, 2], posts)
    assert refused("Convolution-1", window(2), [normal(0, 2, 5, 5), normal(2, 2, 3, 3)], [1])


@pytest.mark.parametrize("head", ["Convolution-1", "MaxPool-1", "ReduceMean-1", "Sigmoid-1", "Multiply-1"])
def test_a_result_is_read_in_the_layout_that_it_came_in(head: str) -> None:
    assert ENGINE is not None
    filters, data = normal(32, 8, 3, 3), normal(2, 8, 9, 9)
    attrs: dict[str, Any]
    attrs, others = {
        "Convolution-1": (window(2), [normal(16, 32, 1, 1)]),
        "MaxPool-1": (POOL | {"rounding_type": "floor"}, []),
        "ReduceMean-1": ({"keep_dims": True}, [np.array([2, 3])]),
        "Sigmoid-1": ({}, []),
        "Multiply-1": ({}, [normal(2, 32, 7, 7)]),
    }[head]
    middle = expected("Convolution-1", window(2), [data, filters], [])
    first = work_of("Convolution-1", window(2), [data, filters], middle, [1])
    made = prepared(first)
    assert made is not None
    layout = made.gives[0]
    results = expected(head, attrs, [*middle, *others], [])
    second = work_of(head, attrs, [*middle, *others], results, [1] if others and head != "Multiply-1" else [])
    steps = layout.strides
    second.inputs[0] = Operand("f32", middle[0].shape, steps or (), None, None if steps else layout)
    compiled = prepared(second)
    assert compiled is not None
    assert 0 not in compiled.wants
    reorder = ENGINE.reorder(Operand("f32", middle[0].shape, middle[0].strides), layout)
    between = placed(middle[0].shape, layout)
    reorder.bind(middle, [between], room(reorder.scratch))()
    (output,) = computed(second, compiled, [between, *others])
    np.testing.assert_allclose(output, results[0], rtol=1e-5, atol=1e-5)


@pytest.mark.skipif("ONEDNN_MAX_CPU_ISA" in os.environ, reason="this is that run")
@pytest.mark.slow
def test_processors_without_avx512_where_channels_come_in_blocks() -> None:
    found = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            *sorted(Path(__file__).parent.glob("test_onednn*.py")),
        ],
        env={**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout[-3000:]


def test_equal_works_share_a_primitive_and_constants_are_let_go() -> None:
    arrays = [normal(1, 8, 9, 9), normal(20, 8, 3, 3)]
    work = work_of("Convolution-1", window(2), arrays, [normal(1, 20, 7, 7)], [1])
    compiled = prepared(work)
    assert compiled is not None
    assert compiled.taken == {1}


def images(*shape: int) -> list[Array]:
    """Data in both orders; pooling of dense ones needs AVX-512."""
    assert ENGINE is not None
    return [normal(*shape), channels_last(*shape)][not ENGINE._library.wide :]


POOL = {"strides": (2, 2), "kernel": (3, 3), "pads_begin": (1, 1), "pads_end": (1, 1), "auto_pad": "explicit"}


@pytest.mark.parametrize("shape", [(1, 16, 12, 13), (2, 5, 7, 7), (1, 64, 9, 9)])
@pytest.mark.parametrize("rounding", ["floor", "ceil"])
def test_pooling(shape: tuple[int, ...], rounding: str) -> None:
    attrs = POOL | {"rounding_type": rounding}
    for data in images(*shape):
        check("MaxPool-1", attrs, [data])
        for exclude in (True, False):
            check("AvgPool-1", attrs | {"exclude_pad": exclude}, [data])
            without = attrs | {"exclude_pad": exclude, "pads_begin": (0, 0), "pads_end": (0, 0)}
            check("AvgPool-1", without, [data])


def test_pooling_with_other_padding_ranks_and_posts() -> None:
    same = POOL | {"auto_pad": "same_upper", "rounding_type": "floor"}
    check("MaxPool-1", same, [channels_last(1, 5, 8, 9)])
    for exclude in (True, False):
        check("AvgPool-14", same | {"exclude_pad": exclude}, [channels_last(1, 5, 8, 9)])
        torch = POOL | {"rounding_type": "ceil_torch", "exclude_pad": exclude}
        check("AvgPool-14", torch, [channels_last(1, 5, 8, 8)])
    line = {"strides": (2,), "kernel": (3,), "pads_begin": (1,), "pads_end": (1,), "auto_pad": "explicit"}
    check("MaxPool-1", line | {"rounding_type": "floor"}, [channels_last(1, 5, 8)])
    check("MaxPool-1", POOL | {"rounding_type": "floor"}, [channels_last(1, 5, 8, 8)], posts=[Post("Tanh-1", {})])


def test_max_pool_of_nan_and_infinity() -> None:
    data = channels_last(1, 16, 6, 6)
    data[0, :, 0, 0], data[0, :, 3, 3], data[0, 3] = np.nan, np.inf, -np.inf
    check("MaxPool-1", POOL | {"rounding_type": "floor"}, [data])


def test_windows_of_padding_only_and_indices_are_not_taken() -> None:
    far = POOL | {"pads_begin": (3, 3), "rounding_type": "floor"}
    assert refused("MaxPool-1", far, [normal(1, 5, 8, 8)])
    indexed = POOL | {"rounding_type": "floor", "dilations": (1, 1), "index_element_type": "i64", "axis": 0}
    assert refused("MaxPool-8", indexed, [normal(1, 5, 8, 8)])


@pytest.mark.parametrize("keep_dims", [True, False])
def test_means_over_all_that_is_spatial(keep_dims: bool) -> None:
    for data in images(2, 20, 7, 7):
        check("ReduceMean-1", {"keep_dims": keep_dims}, [data, np.array([2, -1])], constants=[1])
    assert refused("ReduceMean-1", {"keep_dims": True}, [normal(2, 20, 7, 7), np.array([1])], [1])


@pytest.mark.parametrize("channels", [3, 16, 20])
def test_means_without_axes_of_what_comes_in_blocks_of_channels(channels: int) -> None:
    """Of fewer channels than a block has the result would not fit into its array."""
    assert ENGINE is not None
    middle = expected("Convolution-1", window(2), [normal(2, 2, 9, 9), normal(channels, 2, 3, 3)], [])
    first = prepared(work_of("Convolution-1", window(2), [normal(2, 2, 9, 9), normal(channels, 2, 3, 3)], middle, [1]))
    assert first is not None
    layout, axes = first.gives[0], np.array([2, 3])
    results = expected("ReduceMean-1", {"keep_dims": False}, [*middle, axes], [])
    work = work_of("ReduceMean-1", {"keep_dims": False}, [*middle, axes], results, [1])
    steps = layout.strides
    work.inputs[0] = Operand("f32", middle[0].shape, steps or (), None, None if steps else layout)
    compiled = prepared(work)
    if compiled is None:
        assert steps is None
        assert channels % 16
        return
    between = placed(middle[0].shape, layout)
    reorder = ENGINE.reorder(Operand("f32", middle[0].shape, middle[0].strides), layout)
    reorder.bind(middle, [between], room(reorder.scratch))()
    (output,) = computed(work, compiled, [between, axes])
    np.testing.assert_allclose(output, results[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("constants", [[1], [1, 2]])
def test_data_filters_and_biases_that_are_views(number: int, constants: list[int]) -> None:
    attrs = window(2, pads_begin=(1, 1), pads_end=(1, 1))
    for shape in ((16, 1, 1), (1, 16, 8, 9), (8, 9)):
        arrays = [normal(1, 4, 8, 9), normal(16, 4, 3, 3), views(*shape)[number]]
        check_if_taken("Convolution-1", attrs, arrays, constants, [add(2)])
    check("Convolution-1", attrs, [views(1, 4, 8, 9)[number], normal(16, 4, 3, 3)], [1])
    check_if_taken("Convolution-1", attrs, [normal(1, 4, 8, 9), views(16, 4, 3, 3)[number]], [1])


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("operand", [(16, 4, 4), (1, 16, 4, 4), (16, 1, 1), (4,)])
def test_pools_of_one_image_and_what_is_added(number: int, operand: tuple[int, ...]) -> None:
    for data in images(1, 16, 8, 8):
        for other in (normal(*operand), views(*operand)[number]):
            check_if_taken("MaxPool-1", POOL | {"rounding_type": "floor"}, [data, other], [], [add(1)])
            attrs = POOL | {"rounding_type": "floor", "exclude_pad": True}
            check_if_taken("AvgPool-1", attrs, [data, other], [1], [add(1)])


def test_an_operand_of_a_transposed_convolution_is_no_output_shape() -> None:
    attrs = window(2, strides=(2, 2), pads_begin=(1, 0), pads_end=(0, 1))
    check("ConvolutionBackpropData-1", attrs, [normal(1, 8, 5, 6), normal(8, 8, 3, 3), normal(8, 1, 1)], [1], [add(2)])
    check_if_taken("ConvolutionBackpropData-1", attrs, [normal(1, 8, 5, 6), normal(8, 8, 3, 3)])


@pytest.mark.parametrize("channels", [64, 128, 129, 257, 512, 1024])
@pytest.mark.parametrize(("sizes", "stride"), [((4, 4), 2), ((6, 6), 3), ((3, 2), 2), ((4,), 2)], ids=str)
def test_what_is_behind_transposed_convolutions_of_many_channels(
    channels: int, sizes: tuple[int, ...], stride: int
) -> None:
    """Sums of some of the channels are no results yet."""
    rank = len(sizes)
    attrs = window(rank, strides=(stride,) * rank, pads_begin=(1,) * rank, pads_end=(1,) * rank)
    arrays = [normal(1, channels, *(5,) * rank), normal(channels, 24, *sizes), normal(1, 24, *(1,) * rank)]
    check_if_taken("ConvolutionBackpropData-1", attrs, arrays, [1, 2], [add(2), RELU])
    check_if_taken("ConvolutionBackpropData-1", attrs, arrays, [1, 2], [add(2)])
    check_if_taken("ConvolutionBackpropData-1", attrs, arrays[:2], [1], [RELU])
    check_if_taken("ConvolutionBackpropData-1", attrs, arrays[:2], [1])


@pytest.mark.parametrize("channels", [1, 7, 16, 33])
@pytest.mark.parametrize("group", [False, True])
@pytest.mark.parametrize("sizes", [(5, 6), (9,)], ids=str)
@pytest.mark.parametrize("each", [(True, True), (True, False), (False, True)], ids=str)
def test_levels_of_each_channel(channels: int, group: bool, sizes: tuple[int, ...], each: tuple[bool, bool]) -> None:
    """Numbers next to the middle between two levels may come to either."""
    rank = len(sizes)
    name, filters = "Convolution-1", normal(channels, channels, *(1,) * rank)
    if group:
        name, filters = "GroupConvolution-1", normal(channels, 1, 1, *(3,) * rank)
    attrs = window(rank, pads_begin=(int(group),) * rank, pads_end=(int(group),) * rank)
    arrays = [normal(2, channels, *sizes), filters]
    (middle,) = expected(name, attrs, arrays, [])
    shapes = [(1, channels, *(1,) * rank) if own else () for own in each]
    low, first = (np.asarray(-1 - np.abs(normal(*shape)), np.float32) for shape in shapes)
    high, last = (np.asarray(1 + np.abs(normal(*shape)), np.float32) for shape in shapes)
    limits, levels = [low, high, first, last], {"levels": 256, "auto_broadcast": "numpy", "auto_broadcast_axis": -1}
    post = Post("FakeQuantize-1", levels, parameters=(2, 3, 4, 5))
    work = work_of(name, attrs, [*arrays, *limits], [middle], [1, 2, 3, 4, 5], [post])
    compiled = prepared(work)
    assert compiled is not None
    (found,) = computed(work, compiled, [*arrays, *limits])
    wanted = registry().ops["FakeQuantize-1"].kernel(middle, *limits, **levels)
    apart = np.abs(found - wanted)
    assert (apart <= 1.001 * (last - first) / 255).all()
    assert (apart > 1e-5).mean() < 0.01


def test_limits_that_no_convolution_takes() -> None:
    arrays, attrs = [normal(1, 4, 5, 6), normal(4, 4, 1, 1)], window(2)
    (middle,) = expected("Convolution-1", attrs, arrays, [])
    levels = {"levels": 256, "auto_broadcast": "numpy", "auto_broadcast_axis": -1}
    high, one = np.ones((1, 4, 1, 1), np.float32), np.ones((), np.float32)
    mixed = high * [[[[-1]], [[-1]], [[2]], [[-1]]]]  # above the high one in a channel
    along = np.ones((1, 1, 1, 6), np.float32)
    for low, upper, constants in (
        (mixed.astype(np.float32), high, [1, 2, 3, 4, 5]),
        (-along, along, [1, 2, 3, 4, 5]),
        (-high, high, [1, 4, 5]),
        (-np.ones((1, 4, 5, 6), np.float32), one, [1, 2, 3, 4, 5]),
        (np.full_like(high, -np.inf), high, [1, 2, 3, 4, 5]),
    ):
        post = Post("FakeQuantize-1", levels, parameters=(2, 3, 4, 5))
        work = work_of("Convolution-1", attrs, [*arrays, low, upper, -one, one], [middle], constants, [post])
        assert prepared(work) is None


LONG_ROWS = [
    ((1, 8, 5000), (12, 8, 7), {"pads_begin": (9,), "pads_end": (9,), "dilations": (3,)}),
    ((1, 8, 4096), (12, 8, 5), {"pads_begin": (1,), "pads_end": (7,)}),
    ((1, 3, 10001), (4, 3, 4), {"strides": (2,), "pads_begin": (3,)}),
    ((1, 16, 6000), (16, 16, 1), {}),
    ((1, 8, 4101), (12, 8, 4), {"auto_pad": "same_upper"}),
    ((1, 8, 7000), (2, 8, 7), {"auto_pad": "same_lower"}),
    ((1, 8, 1024), (12, 8, 3), {"pads_begin": (1,), "pads_end": (1,)}),
    ((1, 8, 2049), (12, 8, 3), {"strides": (2,), "pads_begin": (1,), "pads_end": (1,)}),
    ((3, 8, 1500), (12, 8, 3), {"pads_begin": (1,), "pads_end": (1,)}),
    ((2, 1, 4300), (12, 1, 5), {"strides": (2,)}),
]


@pytest.mark.parametrize(("data", "filters", "attrs"), LONG_ROWS, ids=str)
def test_convolutions_of_long_rows(data: tuple[int, ...], filters: tuple[int, ...], attrs: dict[str, Any]) -> None:
    arrays = [normal(*data), normal(*filters)]
    check("Convolution-1", window(1, **attrs), arrays, [1], tolerance=1e-5)
    result = apply("Convolution-1", window(1, **attrs), *arrays)[0].shape
    arrays += [normal(filters[0], 1), normal(*result)]
    check("Convolution-1", window(1, **attrs), arrays, [1, 2], [add(2), add(3), RELU], tolerance=1e-5)
    each = [*arrays[:2], normal(data[0], filters[0], 1)]
    check_if_taken("Convolution-1", window(1, **attrs), each, [1, 2], [add(2)])
    arrays[0], arrays[3] = channels_last(*data), channels_last(*result)
    check("Convolution-1", window(1, **attrs), arrays, [1, 2], [add(2), add(3)], tolerance=1e-5)


@pytest.mark.parametrize(
    ("data", "filters", "attrs"),
    [
        ((1, 16, 900), (16, 8, 16), {"strides": (8,), "pads_begin": (4,), "pads_end": (4,)}),
        ((1, 16, 2600), (16, 8, 4), {"strides": (2,), "pads_begin": (1,), "pads_end": (1,)}),
        ((1, 16, 1700), (16, 8, 3), {"strides": (3,), "output_padding": (1,)}),
        ((1, 16, 4500), (16, 8, 5), {"dilations": (2,), "pads_end": (3,)}),
        ((1, 16, 1200), (16, 8, 3), {"strides": (5,)}),
        ((1, 16, 4200), (16, 8, 1), {}),
        ((2, 16, 1300), (16, 8, 4), {"strides": (2,), "pads_begin": (1,), "pads_end": (1,)}),
    ],
    ids=str,
)
def test_transposed_convolutions_of_long_rows(
    data: tuple[int, ...], filters: tuple[int, ...], attrs: dict[str, Any]
) -> None:
    arrays = [normal(*data), normal(*filters), normal(filters[1], 1)]
    check("ConvolutionBackpropData-1", window(1, **attrs), arrays[:2], [1], tolerance=1e-5)
    check_if_taken("ConvolutionBackpropData-1", window(1, **attrs), arrays, [1, 2], [add(2), RELU])


@pytest.mark.parametrize("lengths", [(5000, 9000, 6024), (1030, 3700, 2150)])
def test_long_rows_of_other_lengths_have_the_same_primitives(lengths: tuple[int, ...]) -> None:
    """The last piece of each has more than a fourth, or less, as those of the others; so have several rows."""
    assert ENGINE is not None
    filters, attrs = normal(24, 8, 7), window(1, pads_begin=(3,), pads_end=(3,))
    made = ENGINE._library._primitives
    kept, counts = [], []
    for rows, length in enumerate(lengths, 1):
        arrays = [normal(rows, 8, length), filters]
        kept.append(prepared(work_of("Convolution-1", attrs, arrays, [normal(rows, 24, length)], [1])))
        counts.append(sum(kind == "convolution_forward" and args[2].shape[1] == 8 for kind, args, *_ in made))
    assert None not in kept
    assert counts[0] == counts[1] == counts[2]


def test_long_rows_of_other_lengths_share_what_was_made_of_their_weights() -> None:
    """Not of others that look alike."""
    assert ENGINE is not None
    attrs, filters = window(1, pads_begin=(3,), pads_end=(3,)), [normal(24, 8, 7) for _ in range(2)]
    cache = ENGINE._library.pieces
    cache._made.clear()  # so that there is room
    for own, length, more in ((0, 5000, 3), (1, 5000, 3), (0, 7048, 0), (1, 7048, 0)):
        before = len(cache._made)
        check("Convolution-1", attrs, [normal(1, 8, length), filters[own]], [1], tolerance=1e-5)
        assert len(cache._made) == before + more


@pytest.mark.parametrize(("fixed", "once", "whole"), [(True, False, True), (True, True, False), (False, False, False)])
def test_a_long_row_is_whole_where_its_length_lasts(fixed: bool, once: bool, whole: bool) -> None:
    engine = load(1, fixed=fixed, once=once)
    assert engine is not None
    arrays = [normal(1, 8, 5000), normal(24, 8, 7)]
    attrs = window(1, pads_begin=(3,), pads_end=(3,))
    work = work_of("Convolution-1", attrs, arrays, [normal(1, 24, 5000)], [1])
    kept = engine.compile(work)
    assert kept is not None
    lengths = {args[2].shape[2] for kind, args, *_ in engine._library._primitives if kind == "convolution_forward"}
    assert (5000 in lengths) == whole
