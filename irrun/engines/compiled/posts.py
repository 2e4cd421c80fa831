"""Posts that kernels of f32 compute on vectors: functions, and sums, products and the like with another tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from irrun.engines.axes import reshaped_strides
from irrun.engines.compiled.bf16 import item_of, number_of, vector_of
from irrun.engines.compiled.code import Code
from irrun.engines.compiled.functions import BINARY, function_of
from irrun.engines.compiled.quantization import FAKE_QUANTIZE, numbers_of, quantized
from irrun.engines.memory import data_address
from irrun.engines.vectorized.posts import operand_strides
from irrun.engines.work import Post, Work
from irrun.records import NamedTuple
from irrun.spec.op import Array
from irrun.spec.traits import broadcasts_by_numpy

DIVISORS = frozenset({"Divide-1"})
"""Posts that nobody divides by: a function may have another sign of 0 here, which makes another infinity of it."""

REFLECTED = (("reflected", True),)
"""The attributes of a post whose operand is the first input of the op."""


class KernelPost(NamedTuple):
    """The name of an op; whether its operand has an element for each of the last axis, None where there is no operand;
    and the attributes that matter."""

    name: str
    along: bool | None = None
    attrs: tuple[tuple[str, Any], ...] = ()


class KernelOperand(NamedTuple):
    """The number of the input that a post reads, and its strides in bytes along all axes but the last one."""

    number: int
    strides: tuple[int, ...]


def kernel_posts(
    work: Work,
    shape: tuple[int, ...],
    order: Sequence[int] | None = None,
    *,
    quantizing: bool = False,
    type: str = "f32",
) -> tuple[tuple[KernelPost, ...], tuple[KernelOperand, ...]]:
    """The first posts of a work, as many as a kernel can compute that sees the result as `shape`, and the operands of
    those that have one, which are of the `type`. Axes of `shape` are gone through in `order` where that is given. One
    of a kernel that is `quantizing` is told `quantizations` besides."""
    posts: list[KernelPost] = []
    operands: list[KernelOperand] = []
    for post in work.posts:
        strides = _strides_of(work, post, shape, order or range(len(shape)), type)
        if strides is not None and post.operand is not None:
            posts.append(KernelPost(post.name, strides[-1] > 0, REFLECTED if post.reflected else ()))
            operands.append(KernelOperand(post.operand, strides[:-1]))
        elif post.operand is None and not post.parameters and function_of(post.name, post.attrs) is not None:
            posts.append(KernelPost(post.name, attrs=tuple(post.attrs.items())))
        elif quantizing and post.name == FAKE_QUANTIZE and numbers_of(work, post) is not None:
            posts.append(KernelPost(post.name))
        else:
            break
    return tuple(posts), tuple(operands)


def _strides_of(
    work: Work, post: Post, shape: tuple[int, ...], order: Sequence[int], type: str
) -> tuple[int, ...] | None:
    """The strides of the operand of a post; None where there is none, or kernels do not compute it."""
    operand = work.other(post)
    if operand is None or post.name not in BINARY:
        return None
    if operand.type != type or operand.layout is not None or operand.compressed is not None:
        return None
    if not broadcasts_by_numpy(post.attrs) or (post.reflected and post.name in DIVISORS):
        return None
    own = work.outputs[0].shape
    strides = reshaped_strides(own, operand_strides(post.name, operand, own), shape)
    if strides is None or min(strides) < 0 or strides[order[-1]] not in (0, item_of(type)):
        return None
    return tuple(strides[axis] for axis in order)


def quantizations(work: Work) -> dict[int, Array]:
    """The numbers of the posts that quantize, as `loaded` loads them."""
    return {n: found for n, post in enumerate(work.posts) if (found := numbers_of(work, post)) is not None}


def quantization_names(posts: Sequence[KernelPost]) -> dict[int, str]:
    """Names by which a kernel is told where the numbers lie of posts that quantize."""
    return {n: f"quantization{n}" for n, post in enumerate(posts) if post.name == FAKE_QUANTIZE}


def posted(
    c: Code,
    posts: Sequence[KernelPost],
    value: Any,
    read: Callable[[int, bool], Any],
    quantizing: Mapping[int, Mapping[str, Any]] | None = None,
) -> Any:
    """What posts make of a vector; `read` gives that of the operand of a post, by its number and whether it is
    `along`, and `quantizing` has the numbers of those that quantize."""
    for number, (name, along, attrs) in enumerate(posts):
        if quantizing and number in quantizing:
            value = quantized(c, quantizing[number], value)
        elif along is None:
            function = function_of(name, dict(attrs))
            assert function is not None, "others are not posts of a kernel"
            value = function(c, value)
        else:
            other = read(number, along)
            pair = (other, value) if attrs == REFLECTED else (value, other)
            value = BINARY[name](c, *pair)
    return value


@cache
def operand_names(posts: tuple[KernelPost, ...], axes: tuple[str, ...]) -> tuple[str, ...]:
    """Names of what a kernel is told of operands of posts: of each where it lies, and its bytes from one to the next
    along `axes`."""
    read = [n for n, post in enumerate(posts) if post.along is not None]
    return tuple(name for n in read for name in (f"operand{n}", *(f"operand_{axis}{n}" for axis in axes)))


def operand_arguments(
    posts: tuple[KernelPost, ...], operands: Sequence[KernelOperand], inputs: Sequence[Any], axes: tuple[str, ...]
) -> dict[str, int]:
    """What goes by these names in a call, when the inputs of the work are known."""
    values = [value for own in operands for value in (data_address(inputs[own.number]), *own.strides)]
    return dict(zip(operand_names(posts, axes), values, strict=True))


def operand_start(c: Code, at: Mapping[str, Any], n: int, places: Mapping[str, Any]) -> Any:
    """Where what the post of number `n` reads begins, at `places` along the axes."""
    start = at[f"operand{n}"]
    for axis, place in places.items():
        start = c.at(start, place, at[f"operand_{axis}{n}"])
    return start


def read_operand(
    c: Code,
    at: Mapping[str, Any],
    n: int,
    places: Mapping[str, Any],
    column: Any,
    inside: Any,
    *,
    along: bool,
    type: str = "f32",
) -> Any:
    """A vector of it: from a column on, the lanes that are `inside` if not all are, or one number for all. It may lie
    anywhere, as constants do."""
    start = operand_start(c, at, n, places)
    if not along:
        return c.splat(number_of(c, type, start))
    return vector_of(c, type, c.at(start, column, item_of(type)), inside)
