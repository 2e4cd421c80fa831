"""Normalization ops: data scaled by statistics of itself or of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any

import numpy as np

from irrun.spec import (
    BOOL,
    FLOAT,
    FLOAT_NUMBER,
    INDEX,
    INT,
    INTEGER,
    INTS,
    MOST_F32,
    NO_NAN,
    NUMERIC,
    Array,
    Attr,
    Doubting,
    Input,
    Node,
    Normalizing,
    Output,
    Tensor,
    choice,
    op,
)

from ._indexing import count_once
from ._precision import total_of_squares, widened
from ._unlikely import negative_variances


@op(
    "BatchNormInference-1",
    types={"T": FLOAT},
    inputs=[
        Input("gamma", "T", "[C]"),
        Input("beta", "T", "[C]"),
        Input("data", "T", "[N, C, *spatial]"),
        Input("mean", "T", "[C]"),
        Input("variance", "T", "[C]"),
    ],
    outputs=[Output("result", "T", "[N, C, *spatial]")],
    attrs=[Attr("epsilon", FLOAT_NUMBER, least=0, most=MOST_F32, assumed=0.0)],
    traits=[Doubting(negative_variances)],
)
def batch_norm_inference_1(
    gamma: Array, beta: Array, data: Array, mean: Array, variance: Array, *, epsilon: float
) -> Any:
    """Normalize each channel with given statistics: (data - mean) / sqrt(variance + epsilon) * gamma + beta.

    Constraints:
        C1: data has a channel.

    Deviation: the page lists data first, as BatchNormInference-5 has it; in a file it is the third input.

    Source: normalization/batch-norm-inference-1.rst

    >>> one = np.array([1.0])
    >>> op(2 * one, one, np.array([[4.0], [6.0]]), 3 * one, 4 * one, epsilon=0.0).tolist()
    [[2.0], [4.0]]
    """
    return _batch_norm(data, gamma, beta, mean, variance, epsilon)


@batch_norm_inference_1.shapes
def _(node: Node) -> None:
    channels = node.dims["C"]
    node.require("C1", channels >= 1, "`data` has no channel", about=["data"])


@op(
    "BatchNormInference-5",
    of=batch_norm_inference_1,
    inputs=[
        Input("data", "T", "[N, C, *spatial]"),
        Input("gamma", "T", "[C]"),
        Input("beta", "T", "[C]"),
        Input("mean", "T", "[C]"),
        Input("variance", "T", "[C]"),
    ],
)
def batch_norm_inference(
    data: Array, gamma: Array, beta: Array, mean: Array, variance: Array, *, epsilon: float
) -> Any:
    """Normalize each channel with given statistics: (data - mean) / sqrt(variance + epsilon) * gamma + beta.

    Constraints:
        C1: data has a channel.

    Source: normalization/batch-norm-inference-5.rst

    >>> one = np.array([1.0])
    >>> op(np.array([[4.0], [6.0]]), 2 * one, one, 3 * one, 4 * one, epsilon=0.0).tolist()
    [[2.0], [4.0]]
    """
    return _batch_norm(data, gamma, beta, mean, variance, epsilon)


def _batch_norm(data: Array, gamma: Array, beta: Array, mean: Array, variance: Array, epsilon: float) -> Any:
    scale, shift, centre, spread = (
        widened(array).reshape(-1, *[1] * (data.ndim - 2)) for array in (gamma, beta, mean, variance)
    )
    result = widened(data) - centre
    result *= scale / np.sqrt(spread + epsilon)
    result += shift
    return result.astype(data.dtype, copy=False)


@op(
    "GRN-1",
    types={"T": FLOAT},
    inputs=[Input("data", "T", "[*shape]")],
    outputs=[Output("result", "T", "[*shape]")],
    attrs=[Attr("bias", FLOAT_NUMBER, least=NO_NAN, assumed=1.0)],
)
def grn(data: Array, *, bias: float) -> Any:
    """Divide by the L2 norm over the channels: data / sqrt(sum(data ** 2) + bias).

    Constraints:
        C1: data has rank 2, 3 or 4.
        C2: bias is positive.

    Source: normalization/grn-1.rst

    >>> op(np.array([[3.0, 4.0]]), bias=1e-12).round(2).tolist()
    [[0.6, 0.8]]
    """
    wide = widened(data)
    return (wide / np.sqrt(total_of_squares(wide, (1,)) + bias)).astype(data.dtype, copy=False)


@grn.shapes
def _(node: Node) -> None:
    _require_positive(node, "C2", "bias")
    rank = len(node.shape("data"))
    node.require("C1", 2 <= rank <= 4, f"`data` has rank {rank}, expected 2 to 4", about=["data"])


@op(
    "GroupNormalization-12",
    types={"T": FLOAT},
    inputs=[
        Input("data", "T", "[N, C, *spatial]"),
        Input("scale", "T", "[C]", lenient=True),
        Input("bias", "T", "[C]", lenient=True),
    ],
    outputs=[Output("result", "T", "[N, C, *spatial]")],
    attrs=[Attr("num_groups", INT, least=1), Attr("epsilon", FLOAT_NUMBER, least=NO_NAN, assumed=0.0)],
    traits=[Normalizing()],
)
def group_normalization(data: Array, scale: Array, bias: Array, *, num_groups: int, epsilon: float) -> Any:
    """Normalize groups of channels by their mean and variance, then scale and shift each channel.

    Constraints:
        C1: num_groups is at most the number of channels.
        C2: num_groups divides the number of channels.
        C3: epsilon is positive.

    Source: normalization/group-normalization-12.rst

    >>> op(np.array([[1.0, 3.0]]), np.array([1.0, 2.0]), np.array([0.0, 1.0]), num_groups=1, epsilon=3.0).tolist()
    [[-0.5, 2.0]]
    """
    if not data.size:
        return data.copy()
    grouped = widened(data).reshape(len(data), num_groups, -1)
    result = _standardized(grouped, (2,), epsilon).reshape(data.shape)
    channels = (-1, *[1] * (data.ndim - 2))
    result *= widened(scale).reshape(channels)
    result += widened(bias).reshape(channels)
    return result.astype(data.dtype, copy=False)


@group_normalization.shapes
def _(node: Node) -> None:
    _require_positive(node, "C3", "epsilon")
    groups, channels = node.attrs["num_groups"], node.dims["C"]
    node.require(
        "C1",
        channels >= groups,
        f"`num_groups` is {groups}, but `data` has {channels} channels",
        about=["num_groups", "data"],
    )
    node.require(
        "C2",
        channels % groups == 0,
        f"`num_groups` is {groups}, which does not divide {channels} channels",
        about=["num_groups"],
    )


@group_normalization.decomposes
def _(make: Callable[..., Any], tensors: Mapping[str, Tensor | None], attrs: Mapping[str, Any]) -> Any:
    """MVN of groups, as rows of a tensor with three axes."""
    data = tensors["data"]
    if data is None or data.shape is None:
        raise ValueError("the rank of its input is not known")
    grouped = make("Reshape-1", "data", np.array([0, attrs["num_groups"], -1]), special_zero=True)
    even = {"normalize_variance": True, "eps": attrs["epsilon"], "eps_mode": "inside_sqrt"}
    normal = make("MVN-6", grouped, np.array([2]), **even)
    result = make("Reshape-1", normal, make("ShapeOf-3", "data", output_type="i64"), special_zero=False)
    scale, bias = "scale", "bias"
    if (axes := np.arange(1, len(data.shape) - 1)).size:
        scale, bias = (make("Unsqueeze-1", name, axes) for name in (scale, bias))
    return make("Add-1", make("Multiply-1", result, scale), bias)


@op(
    "LRN-1",
    types={"T": FLOAT, "T_IND": INTEGER},
    inputs=[Input("data", "T", "[*shape]"), Input("axes", "T_IND", "[num_axes]")],
    outputs=[Output("result", "T", "[*shape]")],
    attrs=[
        Attr("alpha", FLOAT_NUMBER),
        Attr("beta", FLOAT_NUMBER),
        Attr("bias", FLOAT_NUMBER),
        Attr("size", INT, least=1),
    ],
)
def lrn(data: Array, axes: Array, *, alpha: float, beta: float, bias: float, size: int) -> Any:
    """Divide each element by a power of the squares around it: (bias + alpha / size ** n * sum) ** beta, n axes.

    The region is centred on the element and cut off at the borders. An even size has no centre: then the region is
    (size - 1) // 2 elements to each side, as in OpenVINO's reference, where the page's pseudo-code is ambiguous.

    Constraints:
        C1: axes lie in [-r, r), r the rank of data.
        C2: beta is positive.
        C3: no axis is there twice.
        C4: there are r axes at most.

    Deviation: OpenVINO's CPU plugin takes the integer part of bias.

    Source: normalization/lrn-1.rst

    >>> op(np.array([[1.0, 2.0, 2.0]]), np.array([1]), alpha=3.0, beta=1.0, bias=0.0, size=3).round(2).tolist()
    [[0.2, 0.22, 0.25]]
    """
    wide = widened(data)
    along = _axes(axes, data.ndim)
    sums = np.square(wide)
    for axis in along:
        sums = _sums_around(sums, axis, (size - 1) // 2)
    sums *= alpha / size ** len(along)
    sums += bias
    return (wide / np.power(sums, beta, out=sums)).astype(data.dtype, copy=False)


@lrn.shapes
def _(node: Node) -> None:
    beta = node.attrs["beta"]
    message = f"`beta` is {beta}, expected a positive number"
    node.require("C2", not beta <= 0, message, about=["beta"], lenient="computes with it")
    _require_axes(node, "C1")
    axes, rank = node.numbers("axes"), len(node.shape("data"))
    _require_few_axes(node, "C4")
    if axes is not None:
        twice = len({axis % rank for axis in axes}) < len(axes)
        node.require("C3", not twice, f"`axes` is {axes}, which has an axis twice", "axes")


def _sums_around(array: Any, axis: int, reach: int) -> Any:
    """The sum of the elements up to `reach` places before and after each along `axis`."""
    values = np.moveaxis(array, axis, 0)
    result = array.copy()
    sums = np.moveaxis(result, axis, 0)
    for shift in range(1, min(reach, len(values) - 1) + 1):
        sums[shift:] += values[:-shift]
        sums[:-shift] += values[shift:]
    return result


@op(
    "MVN-1",
    types={"T": FLOAT},
    inputs=[Input("data", "T", "[*shape]")],
    outputs=[Output("result", "T", "[*shape]")],
    attrs=[
        Attr("across_channels", BOOL, None),
        Attr("reduction_axes", INTS, ()),
        Attr("normalize_variance", BOOL, assumed=False),
        Attr("eps", FLOAT_NUMBER, least=NO_NAN, assumed=0.0),
    ],
    traits=[Normalizing()],
)
def mvn_1(
    data: Array,
    *,
    across_channels: bool | None,
    reduction_axes: tuple[int, ...],
    normalize_variance: bool,
    eps: float,
) -> Any:
    """Subtract the mean and perhaps divide by sqrt(variance + eps), over reduction_axes or all axes from 1 or 2 on.

    Constraints:
        C1: across_channels or reduction_axes is given.
        C2: reduction_axes lie in [-r, r), r the rank of data.
        C3: eps is positive.
        C4: reduction_axes are different.

    Deviation: the page forbids both attributes at once, but OpenVINO writes both; then reduction_axes counts.

    Source: normalization/mvn-1.rst

    >>> op(np.array([[[1.0, 3.0]]]), across_channels=False, normalize_variance=True, eps=1e-9).round(4).tolist()
    [[[-1.0, 1.0]]]
    """
    axes = reduction_axes or range(1 if across_channels else 2, data.ndim)
    return _standardized(data, _axes(axes, data.ndim), eps, normalize=normalize_variance)


@mvn_1.shapes
def _(node: Node) -> None:
    _require_positive(node, "C3", "eps")
    axes = node.attrs["reduction_axes"]
    if node.attrs["across_channels"] is None and not axes:
        message = "neither `across_channels` nor `reduction_axes` is given"
        node.tolerate("C1", "takes each channel alone", message, about=["across_channels", "reduction_axes"])
    rank = len(node.shape("data"))
    places = {node.axis("C2", axis, rank, "reduction_axes") for axis in axes}
    count_once(node, "C4", "reduction_axes", axes, places, port=False)


@op(
    "MVN-6",
    types={"T": FLOAT, "T_IND": INDEX},
    lenient_types={"T_IND": NUMERIC},
    inputs=[Input("data", "T", "[*shape]"), Input("axes", "T_IND", "[num_axes]")],
    outputs=[Output("result", "T", "[*shape]")],
    attrs=[
        Attr("normalize_variance", BOOL, assumed=False),
        Attr("eps", FLOAT_NUMBER, least=NO_NAN, assumed=0.0),
        Attr("eps_mode", choice("inside_sqrt", "outside_sqrt"), assumed="inside_sqrt"),
    ],
    traits=[Normalizing()],
)
def mvn(data: Array, axes: Array, *, normalize_variance: bool, eps: float, eps_mode: str) -> Any:
    """Subtract the mean over axes and perhaps divide by sqrt(variance + eps), or by sqrt(variance) + eps.

    Constraints:
        C1: axes lie in [-r, r), r the rank of data.
        C2: eps is positive.
        C3: no axis is there twice.
        C4: there are r axes at most.

    Choice: more axes are refused as in OpenVINO, of which some would be there twice.

    Source: normalization/mvn-6.rst

    >>> attrs = {"normalize_variance": True, "eps": 1.0, "eps_mode": "outside_sqrt"}
    >>> op(np.array([[1.0, 3.0]]), np.array([-1]), **attrs).tolist()
    [[-0.5, 0.5]]
    """
    outside = eps_mode == "outside_sqrt"
    return _standardized(data, _axes(axes, data.ndim), eps, normalize=normalize_variance, outside=outside)


@mvn.shapes
def _(node: Node) -> None:
    _require_positive(node, "C2", "eps")
    _require_axes(node, "C1")
    _require_few_axes(node, "C4")
    _require_different_axes(node, "C3")


@op(
    "NormalizeL2-1",
    types={"T": FLOAT, "T_IND": INTEGER},
    inputs=[Input("data", "T", "[*shape]"), Input("axes", "T_IND", "[] | [num_axes]")],
    outputs=[Output("result", "T", "[*shape]")],
    attrs=[Attr("eps", FLOAT_NUMBER, least=NO_NAN), Attr("eps_mode", choice("add", "max"))],
)
def normalize_l2(data: Array, axes: Array, *, eps: float, eps_mode: str) -> Any:
    """Divide by the L2 norm over axes: data / sqrt(sum + eps), or data / sqrt(max(sum, eps)).

    Without any axis each element is divided by itself, as the page says: all but 0 become 1.

    Deviation: OpenVINO does so for rank 2 to 4 only, and divides by the norm of the single element for others.

    Constraints:
        C1: axes lie in [-r, r), r the rank of data.
        C2: no axis is there twice.
        C3: eps is positive.

    Source: normalization/normalize-l2-1.rst

    >>> op(np.array([[3.0, 4.0]]), np.array(1), eps=100.0, eps_mode="max").tolist()
    [[0.3, 0.4]]
    """
    if not axes.size:
        return (data != 0).astype(data.dtype)
    wide = widened(data)
    sums = total_of_squares(wide, _axes(axes, data.ndim))
    norm = np.sqrt(sums + eps if eps_mode == "add" else np.maximum(sums, eps))
    return (wide / norm).astype(data.dtype, copy=False)


@normalize_l2.shapes
def _(node: Node) -> None:
    _require_positive(node, "C3", "eps")
    _require_axes(node, "C1")
    _require_different_axes(node, "C2")


def _require_positive(node: Node, label: str, name: str) -> None:
    value = node.attrs[name]
    zero = "goes without it" if value == 0 else ""
    node.require(label, value > 0, f"`{name}` is {value}, expected a positive number", about=[name], lenient=zero)


def _require_axes(node: Node, label: str) -> None:
    rank = len(node.shape("data"))
    node.within(label, "axes", -rank, rank)


def _require_few_axes(node: Node, label: str) -> None:
    rank, count = len(node.shape("data")), node.dims["num_axes"]
    node.require(label, count <= rank, f"`axes` has {count} elements for rank {rank}, expected {rank} at most", "axes")


def _require_different_axes(node: Node, label: str) -> None:
    axes = node.numbers("axes")
    rank = len(node.shape("data"))
    if axes is not None:
        count_once(node, label, "axes", axes, {axis % rank for axis in axes}, port=False)


def _axes(axes: Iterable[Any] | Array, rank: int) -> tuple[int, ...]:
    """The axes in order, counted from the front, each once."""
    return tuple(sorted({int(axis) % rank for axis in np.ravel(np.asarray(axes))}))


def _standardized(
    data: Array, axes: tuple[int, ...], eps: float, *, normalize: bool = True, outside: bool = False
) -> Any:
    if not data.size:
        return data.copy()
    wide = widened(data)
    mean = wide.mean(axes, np.promote_types(wide.dtype, np.float64), keepdims=True)
    result = np.subtract(wide, mean, out=np.empty_like(wide))  # in f64: the last digit of a large mean may be much
    if normalize:
        variance = total_of_squares(result, axes) / prod(data.shape[axis] for axis in axes)
        result *= 1 / (np.sqrt(variance) + eps if outside else np.sqrt(variance + eps))
    return result.astype(data.dtype, copy=False)
