"""Element-wise ops as calls on blocks, and chains of them that are applied in place while a block is in the cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from types import EllipsisType
from typing import Any

import numpy as np

from irrun.engines.axes import broadcast_strides, reshaped_strides
from irrun.engines.extents import view
from irrun.engines.threads import blocks, lengths
from irrun.engines.vectorized import functions
from irrun.engines.vectorized.quantization import fake_quantize_stage
from irrun.engines.work import Arrays, Call, Compiled, Operand, Work, chain
from irrun.engines.work_cache import is_weight
from irrun.records import dataclass
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array
from irrun.spec.traits import broadcasts_by_numpy

BLOCK = 1 << 17
"""Elements of a block: with its operands and temporaries it stays in the cache, and hides what a call costs."""

Index = tuple[slice, ...] | EllipsisType

Stage = Callable[..., list[Call]]
"""Binds an op to a block: given the inputs positionally and the output, which may be one of them, the calls to make."""

Function = Callable[..., object]

FLOATS = frozenset({"f16", "f32", "f64"})
INTEGERS = frozenset(f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64))
NUMBERS = FLOATS | INTEGERS
BOOLEAN = frozenset({"boolean"})
COMPARABLE = NUMBERS | BOOLEAN
WIDE = frozenset({"f32", "f64"})
F32 = frozenset({"f32"})

UNARY: dict[str, tuple[Function, frozenset[str]]] = {
    "Abs-1": (np.absolute, NUMBERS),
    "Acos-1": (np.arccos, WIDE),
    "Acosh-4": (np.arccosh, WIDE),
    "Asin-1": (np.arcsin, WIDE),
    "Asinh-4": (np.arcsinh, WIDE),
    "Atan-1": (np.arctan, WIDE),
    "Atanh-4": (np.arctanh, WIDE),
    "BitwiseNot-13": (np.invert, INTEGERS | BOOLEAN),
    "Ceiling-1": (np.ceil, FLOATS),
    "Cos-1": (np.cos, WIDE),
    "Cosh-1": (np.cosh, WIDE),
    "Erf-1": (functions.erf, F32),
    "Exp-1": (np.exp, WIDE),
    "Floor-1": (np.floor, FLOATS),
    "Gelu-2": (functions.gelu, F32),
    "HSigmoid-5": (functions.hsigmoid, F32),
    "HSwish-4": (functions.hswish, F32),
    "Log-1": (np.log, WIDE),
    "LogicalNot-1": (np.logical_not, BOOLEAN),
    "Mish-4": (functions.mish, F32),
    "Negative-1": (functions.negative, NUMBERS),
    "Sigmoid-1": (functions.sigmoid, F32),
    "Sign-1": (np.sign, NUMBERS),
    "Sin-1": (np.sin, WIDE),
    "Sinh-1": (np.sinh, WIDE),
    "SoftPlus-4": (functions.softplus, F32),
    "SoftSign-9": (functions.softsign, F32),
    "Sqrt-1": (np.sqrt, WIDE),
    "Swish-4": (functions.swish, F32),
    "Tan-1": (np.tan, WIDE),
    "Tanh-1": (np.tanh, WIDE),
}
"""Ops of one tensor without attributes, and the element types for which the function is the op."""

BINARY: dict[str, tuple[Function, frozenset[str]]] = {
    "Add-1": (np.add, NUMBERS),
    "BitwiseAnd-13": (np.bitwise_and, INTEGERS | BOOLEAN),
    "BitwiseOr-13": (np.bitwise_or, INTEGERS | BOOLEAN),
    "BitwiseXor-13": (np.bitwise_xor, INTEGERS | BOOLEAN),
    "Equal-1": (np.equal, COMPARABLE),
    "FloorMod-1": (functions.mod, NUMBERS),
    "Greater-1": (np.greater, COMPARABLE),
    "GreaterEqual-1": (np.greater_equal, COMPARABLE),
    "Less-1": (np.less, COMPARABLE),
    "LessEqual-1": (np.less_equal, COMPARABLE),
    "LogicalAnd-1": (np.logical_and, BOOLEAN),
    "LogicalOr-1": (np.logical_or, BOOLEAN),
    "LogicalXor-1": (np.logical_xor, BOOLEAN),
    "Maximum-1": (np.maximum, NUMBERS),
    "Minimum-1": (np.minimum, NUMBERS),
    "Mod-1": (functions.fmod, NUMBERS),
    "Multiply-1": (np.multiply, NUMBERS),
    "NotEqual-1": (np.not_equal, COMPARABLE),
    "PReLU-1": (functions.prelu, F32),
    "Subtract-1": (np.subtract, NUMBERS),
    "Swish-4": (functions.scaled_swish, F32),
    "Xor-1": (np.logical_xor, BOOLEAN),
}
"""Ops of two tensors of one type, in which no attribute matters but auto_broadcast."""


NANOSECONDS = {
    **dict.fromkeys(("Erf-1", "Gelu-2", "Gelu-7"), 1.8),
    **dict.fromkeys(("Elu-1", "Mish-4", "Power-1", "SoftPlus-4"), 1.0),
    **dict.fromkeys(("Cos-1", "Exp-1", "Log-1", "Sigmoid-1", "Sin-1", "Sqrt-1", "Swish-4", "Tanh-1"), 0.5),
    **dict.fromkeys(("HSwish-4", "PReLU-1", "SoftSign-9"), 0.5),
    **dict.fromkeys(("FloorMod-1", "Mod-1"), 6.0),
    "FakeQuantize-1": 0.7,
    "FakeConvert-13": 1.0,
}
"""What an op takes about for an element in the cache; those that are not here take 0.15."""


def nanoseconds_of(work: Work, *, head: bool = True) -> float:
    """What the posts of a work take about for an element, and the op itself where it is an element-wise `head`."""
    names = [*([work.name] if head else []), *(post.name for post in work.posts)]
    return sum(NANOSECONDS.get(name, 0.15) for name in names)


def stage_of(name: str, attrs: Mapping[str, Any], type: str, second: Operand | None = None) -> Stage | None:
    """How an op of one tensor is computed on a block, or one of two if there is a `second`; None if it is not taken.

    The `second` has a value only where it is the op's second input. `type` is the element type of the inputs.
    """
    if second is not None:
        return _stage_of_two(name, attrs, type, second)
    if name == "ReLU-1" and type in NUMBERS:
        dtype = numpy_dtype(type)
        return partial(_clip, np.zeros((), dtype), np.array(np.inf if type in FLOATS else np.iinfo(dtype).max, dtype))
    if name == "Clamp-1" and type == "f32":
        return partial(_clip, np.array(attrs["min"], np.float32), np.array(attrs["max"], np.float32))
    if name == "Clamp-1" and type in INTEGERS:
        return partial(_clip, *_whole_limits(numpy_dtype(type), attrs["min"], attrs["max"]))
    function: Function | None
    if name == "Elu-1":
        function, types = partial(functions.elu, np.array(attrs["alpha"], np.float32)), F32
    elif name == "Gelu-7":
        function, types = functions.gelu if attrs["approximation_mode"] == "erf" else functions.tanh_gelu, F32
    elif name == "Round-5" and attrs["mode"] == "half_to_even":
        function, types = np.rint, FLOATS
    elif name == "Round-5" and type == "f32":
        function, types = functions.nearest, F32
    else:
        function, types = UNARY.get(name, (None, NUMBERS))
    return partial(_apply, function) if function is not None and type in types else None


def _stage_of_two(name: str, attrs: Mapping[str, Any], type: str, second: Operand) -> Stage | None:
    if not broadcasts_by_numpy(attrs) or second.type != type:
        return None
    if name == "SquaredDifference-1":
        return _squared_difference if type in NUMBERS - {"f16"} else None  # which is rounded once
    if name == "Power-1":
        return _power(type, second)
    if name == "PReLU-1":
        stage = partial(_apply, functions.any_prelu) if second.value is None else _prelu
        return stage if type == "f32" else None
    function: Function | None
    if name == "Divide-1":
        function = np.divide if type in FLOATS else np.floor_divide if attrs["m_pythondiv"] else None
        types = NUMBERS
    elif name == "FloorMod-1" and type in INTEGERS and second.value is not None and second.value.size == 1:
        return partial(_apply, functions.rest if second.value.item() else np.mod)
    else:
        function, types = BINARY.get(name, (None, NUMBERS))
    return partial(_apply, function) if function is not None and type in types else None


def _apply(function: Function, *arrays: Array) -> list[Call]:
    if function in (np.maximum, np.minimum):  # which frown on a third argument
        return [partial(function, *arrays[:-1], out=arrays[-1])]
    return [partial(function, *arrays)]


def _clip(low: Array, high: Array, data: Array, output: Array) -> list[Call]:
    return [partial(functions.clip, data, low, high, output)]


def _whole_limits(dtype: np.dtype[Any], low: float, high: float) -> list[Array]:
    """The limits of integers: the least one that is not below the lower one, and the largest that is not above."""
    held = np.iinfo(dtype)
    edges = (
        int(edge) if held.min <= edge <= held.max else held.min if edge < 0 else held.max
        for edge in (np.ceil(low), np.floor(high))
    )
    return [np.array(edge, dtype) for edge in edges]


def _squared_difference(a: Array, b: Array, output: Array) -> list[Call]:
    return [partial(np.subtract, a, b, output), partial(np.multiply, output, output, output)]


def _prelu(data: Array, slopes: Array, output: Array) -> list[Call]:
    """By what constant slopes are, which may be others in each of the works that have this stage."""
    function = functions.prelu if np.isfinite(slopes).all() else functions.any_prelu
    return [partial(function, data, slopes, output)]


def _constant_power(base: Array, exponents: Array, output: Array) -> list[Call]:
    """By what constant exponents are, which may be others in each of the works that have this stage."""
    function = functions.any_power if (exponents == 0.5).any() else np.power
    return [partial(function, base, exponents, output)]


def _power(type: str, exponent: Operand) -> Stage | None:
    """Powers by products where the exponent is a constant 2 or 3, else by np.power, which integers share where all
    exponents are small constants; what weights hold is for a bind to see."""
    value = exponent.value
    constant = value.item() if value is not None and value.size == 1 else None
    if type in FLOATS:
        if constant == 2:
            return lambda base, _, output: [partial(np.multiply, base, base, output)]
        if constant == 3 and type == "f32":
            return lambda base, _, output: [partial(functions.cube, base, output)]
        return partial(_apply, functions.any_power) if value is None else _constant_power
    if type not in INTEGERS or value is None or is_weight(value):
        return None
    return partial(_apply, np.power) if (value >= 0).all() else None


@dataclass(slots=True, eq=False)
class Posts:
    """The posts of a work, ready to be bound: for each its stage, the numbers and the strides of its operands, and
    whether they come first."""

    shape: tuple[int, ...]
    stages: list[tuple[Stage, tuple[int, ...], list[tuple[int, ...]], bool]]

    def bind(self, inputs: Arrays, output: Array) -> Callable[[Index], list[Call]]:
        """Given a work's inputs and its output as an array of `shape`: what binds the posts to a block of it."""
        operands = [
            [viewed(inputs[number], self.shape, own) for number, own in zip(numbers, strides, strict=True)]
            for _, numbers, strides, _ in self.stages
        ]
        return partial(self._calls, operands, output)

    def within(self, on: Callable[[Index], list[Call]], piece: tuple[slice, ...]) -> list[Call]:
        """What `on` binds to a block, in parts that are small enough for the cache."""
        calls: list[Call] = []
        starts = [cut.start for cut in piece]
        for block in blocks(lengths(piece), BLOCK) if self.stages else []:
            moved = (slice(cut.start + start, cut.stop + start) for cut, start in zip(block, starts, strict=True))
            calls += on(tuple(moved))
        return calls

    def _calls(self, operands: Sequence[Arrays], output: Array, index: Index) -> list[Call]:
        block = output[index]
        calls: list[Call] = []
        for (stage, _, _, reflected), others in zip(self.stages, operands, strict=True):
            parts = [part(operand, index) for operand in others]
            calls += stage(*parts, block, block) if reflected else stage(block, *parts, block)
        return calls


def with_posts(
    work: Work, bind: Callable[[Arrays, Sequence[Array], Any], list[Call]], scratch: int = 0, **more: Any
) -> Compiled | None:
    """The work whose calls `bind` gives, and its posts over all of its first output; None where one is not taken. There
    may be `more` to a `Compiled`."""
    posts = posts_of(work)
    if posts is None or (work.posts and len(work.outputs) > 1):
        return None

    def bound(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        return chain([*bind(inputs, outputs, scratch), *posts.bind(inputs, outputs[0])(...)])

    return Compiled(bound, scratch, **more)


def part(operand: Array, index: Index) -> Array:
    """The part of an operand that broadcasts to the block `index` of a tensor of the same rank."""
    if index is ... or operand.size == 1:
        return operand
    return operand[tuple(slice(None) if size == 1 else cut for size, cut in zip(operand.shape, index, strict=False))]


def posts_of(work: Work, shape: tuple[int, ...] | None = None) -> Posts | None:
    """The posts of a work whose output is indexed as `shape`, a reshape of its own; None if one is not taken."""
    own = work.outputs[0].shape
    stages: list[tuple[Stage, tuple[int, ...], list[tuple[int, ...]], bool]] = []
    for post in work.posts:
        operand, type = work.other(post), work.outputs[0].type
        if post.name in ("PReLU-1", "Swish-4") and post.reflected:
            return None
        second = replace(operand, value=None) if operand is not None and post.reflected else operand
        quantizing = post.name == "FakeQuantize-1"
        if post.parameters and not quantizing:
            return None
        stage = fake_quantize_stage(post.attrs, type) if quantizing else stage_of(post.name, post.attrs, type, second)
        numbers = post.parameters if post.operand is None else (post.operand,)
        found = [_strides_of(post.name, work.inputs[number], own, shape) for number in numbers]
        strides = [steps for steps in found if steps is not None]
        if stage is None or len(strides) < len(found):
            return None
        stages.append((stage, numbers, strides, post.reflected))
    return Posts(own if shape is None else shape, stages)


def _strides_of(
    name: str, operand: Operand | None, own: tuple[int, ...], shape: tuple[int, ...] | None
) -> tuple[int, ...] | None:
    """The strides of an operand of the post `name` of a result of shape `own`, which is seen as `shape` if given."""
    if operand is None or prod(operand.shape) == 1:
        return ()
    strides = operand_strides(name, operand, own)
    return reshaped_strides(own, strides, shape) if strides and shape is not None else strides


def operand_strides(name: str, operand: Operand, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of the second operand of the op `name` where it is broadcast to `shape`.

    A vector of slopes, one for each channel, lies along axis 1.
    """
    sizes, strides = operand.shape, operand.strides
    if name == "PReLU-1" and len(sizes) == 1 and len(shape) > 1 and sizes[0] == shape[1]:
        sizes, strides = (sizes[0], *[1] * (len(shape) - 2)), (strides[0], *[0] * (len(shape) - 2))
    return broadcast_strides(Operand(operand.type, sizes, strides), shape)


def viewed(array: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """An array that is broadcast by strides of 0; a scalar stays one, which ufuncs are quickest with."""
    if array.size == 1:
        return array.reshape(())
    if array.shape == shape and array.strides == strides:
        return array
    return view(array, shape, strides)
