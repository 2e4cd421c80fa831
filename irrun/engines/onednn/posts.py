"""What is done to a result right away, as post-ops of a primitive: element-wise functions and other operands.

Known differences: the largest and smallest of a NaN and a number is the number, where numpy says NaN; so are ReLU,
Clamp, FakeQuantize, Exp and HSigmoid of NaN, and Sigmoid behind some convolutions. Gelu of inf is NaN: see `DOUBTFUL`.
Elu, Gelu, HSigmoid, HSwish and Mish are off by up to 1e-6 where their results are small: see `NEAR`.
What is `INEXACT` is only taken behind products and convolutions, where a pass of its own over the result would cost
much, and in bf16, which no other engine computes.
Results below 1e-30 may be 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from math import inf, prod
from typing import Any

import numpy as np

from irrun.engines.axes import Sizes, broadcast_strides, canonical_strides
from irrun.engines.grid import QUANTIZE, Coding, Grid, rounding_of
from irrun.engines.onednn.library import POST, SRC_1, Descriptor, Library
from irrun.engines.onednn.tensors import FLOATS, is_dense_layout, itemsize
from irrun.engines.work import Operand, Post, Work
from irrun.records import dataclass
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array

RELU, TANH, ELU, SQUARE, ABS, SQRT, LINEAR, _, HARD_SIGMOID, LOGISTIC, EXP, GELU_TANH = range(0x20, 0x2C)
SWISH, _, CLIP, _, _, GELU_ERF, ROUND, MISH, HARD_SWISH = range(0x2C, 0x35)
ADD, MUL, MAX, MIN, DIV, SUB = range(0x1FFF0, 0x1FFF6)

Function = tuple[int, float, float]
"""An element-wise algorithm of oneDNN with its alpha and beta."""

RECTIFY: Function = CLIP, 0.0, inf
"""ReLU. What oneDNN calls so is a product with 0 in some primitives, which makes NaN of -inf."""


def _gelu(attrs: Mapping[str, Any]) -> Function:
    return (GELU_TANH if attrs.get("approximation_mode", "erf") == "tanh" else GELU_ERF), 0.0, 0.0


def _round(attrs: Mapping[str, Any]) -> Function | None:
    return (ROUND, 0.0, 0.0) if attrs.get("mode", "half_to_even") == "half_to_even" else None


FUNCTIONS: dict[str, Callable[[Mapping[str, Any]], Function | None]] = {
    "Abs-1": lambda _: (ABS, 0.0, 0.0),
    "Clamp-1": lambda attrs: (CLIP, float(attrs["min"]), float(attrs["max"])),
    "Elu-1": lambda attrs: (ELU, float(attrs["alpha"]), 0.0),
    "Exp-1": lambda _: (EXP, 0.0, 0.0),
    "Gelu-2": _gelu,
    "Gelu-7": _gelu,
    "HSigmoid-5": lambda _: (HARD_SIGMOID, 1 / 6, 0.5),
    "HSwish-4": lambda _: (HARD_SWISH, 1 / 6, 0.5),
    "Mish-4": lambda _: (MISH, 0.0, 0.0),
    "Negative-1": lambda _: (LINEAR, -1.0, 0.0),
    "ReLU-1": lambda _: RECTIFY,
    "Round-5": _round,
    "Sigmoid-1": lambda _: (LOGISTIC, 0.0, 0.0),
    "Sqrt-1": lambda _: (SQRT, 0.0, 0.0),
    "Swish-4": lambda _: (SWISH, 1.0, 0.0),
    "Tanh-1": lambda _: (TANH, 0.0, 0.0),
}
"""Ops of one input; Swish may have a second one, for which see `_swishes`. Too inexact here are Log near 1 and
SoftPlus of negative numbers, which is 8e-6 off."""

DEQUANTIZE, FAKE_QUANTIZE = "Dequantize-0", "FakeQuantize-1"

CLIPPING = frozenset({"Clamp-1", FAKE_QUANTIZE, "ReLU-1"})
"""Ops whose results for NaN are other ones here; codes do not have it."""

NEAR = frozenset({"Elu-1", "Gelu-2", "Gelu-7", "HSigmoid-5", "HSwish-4", "Mish-4"})
"""Functions that are exact beside their largest results, but not beside those next to 0: they are off by up to 1e-6."""

INEXACT = CLIPPING | NEAR | {"Exp-1", "Maximum-1", "Minimum-1"}
"""Those, and ops whose results for NaN and inf are other ones."""

DOUBTFUL = ("Gelu-2", "Gelu-7")
"""Functions that give NaN for infinity here. Behind convolutions of f32 what is not finite is computed again; behind
products, whose results are large beside what they take to compute, to look would cost 5 %."""

HIDING = frozenset({"Clamp-1", "Exp-1", "HSigmoid-5", "Maximum-1", "Minimum-1", "ReLU-1", "Sigmoid-1"})
"""Ops that may make a number of NaN here, so that nobody sees what a doubtful function has made of infinity."""

BINARY = {"Add-1": ADD, "Multiply-1": MUL, "Maximum-1": MAX, "Minimum-1": MIN, "Divide-1": DIV, "Subtract-1": SUB}


ROUNDING = "Convert-1"
"""A post between f32 and bf16, of which the type of the result is all that counts."""


@dataclass(slots=True, eq=False)
class Chain:
    """Post-ops for a primitive, which of its arguments are which operands, those in a layout it chooses, and further
    ones that are constant."""

    posts: list[tuple[Any, ...]] = field(default_factory=list)
    inputs: dict[int, int] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    constants: dict[int, Callable[[], Array]] = field(default_factory=dict)


Place = Callable[[Operand], Descriptor | None]
"""How an operand lies, seen with the axes that the primitive has; None where it cannot be."""

Chosen = Callable[[str], Descriptor | None]
"""How a tensor of an element type has to lie that is as large as the result; None where it cannot."""


def chain(
    posts: Sequence[Post], work: Work, place: Place, any: Chosen | None = None, *, exact: bool = False
) -> Chain | None:
    """The posts of a work; `any` gives the layout of operands as large as the result where the primitive chooses it.

    None where one is not taken, as those are not that are INEXACT where the work is to be `exact`, and those that are
    HIDING behind one that is DOUBTFUL.
    """
    result = Chain()
    coding = bool(posts) and posts[-1].name == QUANTIZE
    doubted = False
    for post in posts:
        if doubted and post.name in HIDING and not coding:
            return None
        doubted = doubted or post.name in DOUBTFUL
        if exact and post.name in INEXACT and not (coding and post.name in CLIPPING):
            return None
        if post.parameters or post.name == QUANTIZE:
            if not _swishes(result, post, work) and not _quantizes(result, post, work, place):
                return None
            continue
        if post.name == ROUNDING:
            continue
        operand = work.other(post)
        if operand is not None:
            if not _append(result, post, operand, work.outputs[0].shape, place, any):
                return None
        else:
            function = FUNCTIONS[post.name](post.attrs) if post.name in FUNCTIONS else None
            if function is None:
                return None
            result.posts.append(("eltwise", *function))
    return result


def _swishes(result: Chain, post: Post, work: Work) -> bool:
    """Append Swish with a factor of its own, a finite number."""
    if post.name != "Swish-4":
        return False
    (operand,) = (work.inputs[number] for number in post.parameters)
    factor = None if operand is None else scalar(operand)
    if factor is None or not np.isfinite(factor):
        return False
    result.posts.append(("eltwise", SWISH, factor, 0.0))
    return True


def _quantizes(result: Chain, post: Post, work: Work, place: Place) -> bool:
    """Append a post that makes codes, or only rounds to a grid."""
    if post.name == QUANTIZE:
        return _encode(result, post.attrs["coding"], len(work.outputs[0].shape), place)
    found, rank = rounding_of(work, post, 1, FLOATS), len(work.outputs[0].shape)
    if found is None or not _scale(result, *found[:2], rank, place):
        return False
    result.posts += [("eltwise", CLIP, 0.0, post.attrs["levels"] - 1.0), ("eltwise", ROUND, 0.0, 0.0)]
    return _scale(result, *found[2:], rank, place)


def _scale(result: Chain, factor: Array, shift: Array, rank: int, place: Place) -> bool:
    """Append a product and a sum with numbers for all channels, or one for each; False where they cannot lie so."""
    if len(factor) == len(shift) == 1:
        result.posts.append(("eltwise", LINEAR, float(factor[0]), float(shift[0])))
        return True
    return _along_channels(result, MUL, factor, rank, place) and _along_channels(result, ADD, shift, rank, place)


def _encode(result: Chain, coding: Coding, rank: int, place: Place) -> bool:
    """Append what brings numbers to codes, which are rounded and saturated as they are written.

    What limited the numbers right before that limits their codes instead, which often needs nothing at all.
    """
    factor, shift, least, most = coding.linear()
    while result.posts and result.posts[-1][:2] == ("eltwise", CLIP):
        _, _, low, high = result.posts[-1]
        least, most = (np.clip(bound * factor + shift, least, most) for bound in (low, high))
        result.posts.pop()
    limits = np.iinfo(numpy_dtype(coding.grid.type))
    least, most = (np.clip(np.rint(bound), limits.min, limits.max) for bound in (least, most))
    if not _scale(result, factor, shift, rank, place):
        return False
    if np.ptp(least) == np.ptp(most) == 0:
        if least[0] > limits.min or most[0] < limits.max:
            result.posts.append(("eltwise", CLIP, float(least[0]), float(most[0])))
        return True
    bounds = [(MAX, least, least > limits.min), (MIN, most, most < limits.max)]
    return all(_along_channels(result, kind, bound, rank, place) for kind, bound, needed in bounds if needed.any())


def _along_channels(result: Chain, algorithm: int, vector: Array, rank: int, place: Place) -> bool:
    """Append an operation with a number for each channel, if it changes anything."""
    if algorithm == ADD and not vector.any():
        return True
    numbers = vector.astype(np.float32).reshape(1, -1, *[1] * (rank - 2))
    layout = place(Operand("f32", numbers.shape, numbers.strides, numbers))
    if layout is None:
        return False
    result.posts.append(("binary", algorithm, layout))
    result.constants[len(result.posts) * POST + SRC_1] = lambda: numbers
    return True


def _append(result: Chain, post: Post, operand: Operand, shape: Sizes, place: Place, any: Chosen | None) -> bool:
    number = scalar(operand)
    if post.name == "PReLU-1" and number and np.isfinite(number):
        result.posts.append(("eltwise", RELU, number, 0.0))
        return True
    if post.name == "Power-1" and number == 2 and not post.reflected:
        result.posts.append(("eltwise", SQUARE, 0.0, 0.0))
        return True
    algorithm = SUB if post.name == "SquaredDifference-1" else BINARY.get(post.name)
    if operand.grid is not None and operand.type not in FLOATS:
        return algorithm == ADD and _add_codes(result, post, operand, operand.grid, shape, place, any)
    if algorithm is None or operand.type not in FLOATS or (algorithm == DIV and post.reflected):
        return False
    if number is not None and np.isfinite(number) and algorithm in (ADD, SUB, MUL):
        scale, shift = (number, 0.0) if algorithm == MUL else (1.0, number if algorithm == ADD else -number)
        result.posts.append(("eltwise", LINEAR, scale, shift))
    else:
        free = any is not None and prod(operand.shape) == prod(shape)  # it has to lie as the result
        layout = place(operand)
        if any is not None and free:
            layout = any(operand.type) if operand.shape == shape else None
        if layout is None or post.operand is None or not (free or is_dense_layout(layout)):
            return False
        result.posts.append(("binary", algorithm, layout))
        argument = len(result.posts) * POST + SRC_1
        result.inputs[argument] = post.operand
        if free:
            result.free.append(argument)
    if post.name == "Subtract-1" and post.reflected:
        result.posts.append(("eltwise", LINEAR, -1.0, 0.0))
    if post.name == "SquaredDifference-1":
        result.posts.append(("eltwise", SQUARE, 0.0, 0.0))
    return True


def _add_codes(
    result: Chain, post: Post, operand: Operand, grid: Grid, shape: Sizes, place: Place, any: Chosen | None
) -> bool:
    """Append the sum with what codes stand for, in steps of their grid."""
    if operand.shape != shape or len(grid.scale) > 1 or post.operand is None:
        return False
    layout = place(operand) if any is None else any(operand.type)
    if layout is None or (any is None and not is_dense_layout(layout)):
        return False
    result.posts.append(("eltwise", LINEAR, 1 / grid.scale[0], float(-grid.zero)))
    result.posts.append(("binary", ADD, layout))
    argument = len(result.posts) * POST + SRC_1
    result.inputs[argument] = post.operand
    result.free += [] if any is None else [argument]
    result.posts.append(("eltwise", LINEAR, grid.scale[0], 0.0))
    return True


def scalar(operand: Operand) -> float | None:
    """The number that a constant is everywhere, where it has one element."""
    if operand.value is None or operand.value.size != 1 or operand.type not in FLOATS:
        return None
    return float(operand.value.reshape(())[()])


def aligned_axes(library: Library, shape: Sequence[int]) -> Place:
    """The place of operands that broadcast to `shape`, the axes of which the primitive has."""

    def place(operand: Operand) -> Descriptor | None:
        if isinstance(operand.layout, Descriptor):
            return operand.layout if len(operand.shape) == len(shape) else None
        own = (1,) * (len(shape) - len(operand.shape)) + operand.shape
        strides = (itemsize(operand),) * (len(shape) - len(operand.shape)) + operand.strides
        if 0 in (stride for size, stride in zip(own, strides, strict=True) if size > 1):
            return None
        return library.strided(own, canonical_strides(own, strides, itemsize(operand)), operand.type)

    return place


def bias(work: Work, axis: int) -> int | None:
    """The input that the first post adds, where it is a constant that only goes along `axis` of the result."""
    operand, shape = work.other(work.posts[0]) if work.posts else None, work.outputs[0].shape
    if operand is None or work.posts[0].name != "Add-1":
        return None
    if operand.value is None or operand.type not in FLOATS or operand.value.size != shape[axis]:
        return None
    steps: Sizes = broadcast_strides(operand, shape)
    alone = all(step == 0 for number, step in enumerate(steps) if number != axis % len(shape) and shape[number] > 1)
    return work.posts[0].operand if alone and (steps[axis] == itemsize(operand) or shape[axis] == 1) else None


def bias_values(work: Work, added: int | None) -> Array | None:
    """The vector of what `bias` has found, f64."""
    operand = None if added is None else work.inputs[added]
    return None if operand is None or operand.value is None else operand.value.reshape(-1).astype(np.float64)


def bias_layout(library: Library, work: Work, added: int | None, shape: Sequence[int], type: str) -> Descriptor | None:
    """The layout of what `bias` has found, of `shape`, for data of `type`: those of f32 have none of bf16."""
    operand = None if added is None else work.inputs[added]
    return None if operand is None else library.dense(shape, "f32" if type == "f32" else operand.type)
