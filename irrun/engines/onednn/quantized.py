"""Products of integers: convolutions and products of matrices whose operands are codes, added up exactly.

What they stand for is applied to the sums: scales in f32, and zero points by what the primitives compensate. What
follows is done as in f32, and the result may be written as codes right away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from irrun.engines.axes import dense_strides
from irrun.engines.compressed import CompressedWeights
from irrun.engines.grid import INTEGER, Grid, factors_of, is_held, multiplies_codes
from irrun.engines.memory import Arranged
from irrun.engines.onednn.convolution import DIRECT, geometry_of
from irrun.engines.onednn.library import (
    BIAS,
    DST,
    FEW_CODES,
    FEW_ELEMENTS,
    INFERENCE,
    SCALES,
    SRC,
    TILED,
    WEIGHTS,
    ZERO_POINTS,
    Descriptor,
    Library,
)
from irrun.engines.onednn.posts import LOGISTIC, SWISH, aligned_axes, bias, bias_values, chain
from irrun.engines.onednn.products import product_of
from irrun.engines.onednn.sums import Sums
from irrun.engines.onednn.tensors import channels_last, compiled, layout_of, packed
from irrun.engines.windows import axes_of
from irrun.engines.work import Compiled, Operand, Work
from irrun.spec.op import Array

UNPADDED = "x64:gemm"
"""How the way is called that sometimes takes nothing off for the zero point where there is padding. It is the one for
groups of few channels along three axes."""

SLOW = frozenset({LOGISTIC, SWISH})
"""Functions that are as exact in a pass of their own, and take two to five times as long behind a convolution of
tiles."""


def compile(library: Library, work: Work) -> Compiled | None:
    """A product of codes; None where it is none of integers, or does not take all of the posts."""
    if not all(all(operand.shape) for operand in (*work.required(1), *work.outputs)):
        return None
    coded = frozenset(
        position for position, operand in enumerate(work.inputs) if operand is not None and operand.codes is not None
    )
    inputs = [
        operand if operand is None or operand.codes is None else replace(operand.codes, grid=operand.grid)
        for operand in work.inputs
    ]
    if work.name.startswith(INTEGER):
        (data,) = work.required(1)
        inputs[0] = replace(data, grid=Grid(data.type, (1.0,), 0))
    found = COMPILERS[work.name](library, replace(work, inputs=inputs))
    return None if found is None else replace(found, coded=coded)


def convolution(library: Library, work: Work) -> Compiled | None:
    """Convolution-1 and GroupConvolution-1 of codes with constant filters."""
    data, filters = work.required(2)
    weights, grid = filters.compressed, data.grid
    if weights is None or grid is None or not multiplies_codes(work):
        return None
    shape, grouped = weights.shape, "Group" in work.name
    factors, kernel = factors_of(weights, grid, grouped=grouped), shape[3:] if grouped else shape[2:]
    if not is_held(factors):
        return None
    if grouped and shape[0] == 1:
        shape = shape[1:]
    result, type = work.outputs[0].shape, work.outputs[0].type
    added = bias(work, 1)
    posts = chain(
        work.posts[added is not None :], work, aligned_axes(library, result), lambda t: library.any(result, t)
    )
    if posts is None:
        return None
    grouped = len(shape) > len(result)
    zeros, inputs = _zeros(work, grid)
    sums, axes = Sums(factors, zeros, bias_values(work, added)), axes_of(work.attrs, data.shape[2:], kernel, result[2:])
    if not all(axis.met for axis in axes):  # which kills a process where it is done by tiles
        return None
    padded = any(axis.begin or axis.reached for axis in axes)
    if zeros[SRC] and not padded:
        centered = sums.centered(weights.codes.view(np.int8).reshape(result[1], -1).sum(axis=1, dtype=np.int64))
        sums = centered if centered.is_held else sums
    sums, posts = sums.with_posts(posts)
    shift = None if sums.bias is None else library.dense((result[1],))
    primitive = library.primitive(
        "convolution_forward",
        *(INFERENCE, DIRECT, channels_last(library, data.shape, data.type), library.any(shape, "i8")),
        *(shift, library.any(result, type)),
        *geometry_of(axes),
        posts=posts.posts,
        small=prod(result) * prod(shape) < FEW_CODES * result[1],
        quantities=sums.masks(3 if grouped else 1),
    )
    if primitive is None or (padded and sums.zeros[SRC] != 0 and primitive.implementation.startswith(UNPADDED)):
        return None
    tiled = TILED in primitive.implementation and not library.once  # to make another primitive takes longer
    if tiled and any(post[1] in SLOW for post in posts.posts):
        return None
    laid = library.strided(shape, dense_strides(shape, 1), "i8")
    assert laid is not None
    return compiled(
        work,
        primitive,
        {SRC: 0, **inputs, **posts.inputs},
        free=(SRC, *posts.free),
        constants={
            WEIGHTS: _packed(library, weights, laid, primitive.layout(WEIGHTS)).array,
            **_bias(sums, result[1]),
            **posts.constants,
        },
        taken=(1,),
        gives=primitive.layout(DST),
        quantities=sums.quantities,
    )


def product(library: Library, work: Work) -> Compiled | None:
    """MatMul-1 of codes with constant weights, or with other codes."""
    left, right = work.required(2)
    weights, grid = right.compressed, left.grid
    if grid is None or len(grid.scale) > 1 or (weights is None and right.grid is None):
        return None
    if weights is not None:
        if not multiplies_codes(work):
            return None
        codes = weights.plain()
        right = Operand("i8", codes.shape, codes.strides, codes)
        zeros, given = _zeros(work, grid)
        sums = Sums(factors_of(weights, grid, grouped=False), zeros)
    elif right.grid is not None and right.type == "i8" and len(right.grid.scale) == 1:
        factor = np.array([grid.scale[0] * right.grid.scale[0]])
        sums, given = Sums(factor, {SRC: grid.zero, WEIGHTS: right.grid.zero}), {}
    else:
        return None
    own = replace(work, inputs=[left, right, *work.inputs[2:]])
    found = product_of(library, own, sums) if sums.is_held else None
    if found is None or found.sums is None:
        return None
    constants = {**_bias(found.sums, found.columns), **found.constants}
    quantities = found.sums.quantities
    if weights is None:
        inputs = {**found.inputs, WEIGHTS: 1}
        return compiled(own, found.primitive, inputs, constants=constants, quantities=quantities)
    constants[WEIGHTS] = _packed(library, weights, found.matrix, found.primitive.layout(WEIGHTS)).array
    inputs = {**found.inputs, **given}
    return compiled(own, found.primitive, inputs, constants=constants, taken=(1,), quantities=quantities)


def _zeros(work: Work, grid: Grid) -> tuple[dict[int, int | None], dict[int, int]]:
    """The zero points of sums, and those of them that are inputs of the work."""
    if work.name.startswith(INTEGER):
        return {SRC: None}, {ZERO_POINTS + SRC: 2}
    return {SRC: grid.zero}, {}


def _bias(sums: Sums, count: int) -> dict[int, Callable[[], Array]]:
    return {} if sums.bias is None else {BIAS: partial(np.asarray, sums.biases(count))}


def dequantize(library: Library, work: Work) -> Compiled | None:
    """Dequantize-0: what codes stand for, in the layout that these come in."""
    (data,), grid = work.required(1), work.attrs["grid"]
    source = layout_of(library, data)
    target = library.retyped(source, "f32")
    if work.posts or source is None or target is None:
        return None
    quantities: dict[int, Array] = {SCALES + SRC: np.array(grid.scale, np.float32)}
    masks = [(SCALES + SRC, 2 if len(grid.scale) > 1 else 0)]
    if grid.zero:
        quantities[ZERO_POINTS + SRC] = np.array([grid.zero], np.int32)
        masks.append((ZERO_POINTS + SRC, 0))
    small = prod(data.shape) < FEW_ELEMENTS
    primitive = library.primitive("reorder", source, target, small=small, quantities=masks)
    return None if primitive is None else compiled(work, primitive, {SRC: 0}, gives=target, quantities=quantities)


def _packed(library: Library, weights: CompressedWeights, source: Descriptor, target: Descriptor) -> Arranged:
    return packed(library, weights.codes, source, target, lambda codes: codes.view(np.int8).reshape(weights.shape))


COMPILERS = {
    **dict.fromkeys(("Convolution-1", "GroupConvolution-1"), convolution),
    "MatMul-1": product,
    **dict.fromkeys(("IntegerConvolution-1", "IntegerGroupConvolution-1"), convolution),
    "IntegerMatMul-1": product,
}
