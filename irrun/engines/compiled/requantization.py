"""What becomes of sums of products of codes: scales, a bias, the posts, and codes again or numbers on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from llvmlite import ir

from irrun.engines.axes import Strided, lies_so, ordered_strides
from irrun.engines.compiled.code import BYTES, FLOAT, FLOATS, INTS, Code, floats
from irrun.engines.compiled.posts import KernelOperand, KernelPost, kernel_posts, posted
from irrun.engines.grid import Coding
from irrun.engines.memory import ITEM, aligned, data_address
from irrun.engines.work import Operand, Post, Work
from irrun.records import NamedTuple, dataclass
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array

QUANTIZE, FAKE_QUANTIZE = "Quantize-0", "FakeQuantize-1"
"""Ops of posts that bring numbers onto a grid: as codes, and as numbers still."""

_MAGIC = 1.5 * 2**23
"""Added to an f32 of less than 2**22 it leaves no fraction, rounded to the nearest, halves to even ones."""

_LEVELS, _STEPS = ("level", "shift", "least", "most"), ("step", "first")
"""Tables of what makes levels of numbers, and numbers of these again."""

MAX_LEVELS = 1 << 16
"""Of a grid that numbers are rounded to."""

_CODES = "Codes"
"""Stands for a sum with what codes of the type that follows stand for."""


class Ending(NamedTuple):
    """What a kernel is compiled for: posts, and the element type of the result."""

    posts: tuple[KernelPost, ...]
    type: str

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of tables with an f32 for each column: of what is done first, of roundings to a grid, and of codes
        at the end."""
        rounded = [
            (f"{name}{n}")
            for n, post in enumerate(self.posts)
            if post.name == FAKE_QUANTIZE
            for name in (*_LEVELS, *_STEPS)
        ]
        return ("factor", "bias", *rounded, *(() if self.type == "f32" else _LEVELS))

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the arguments: where tables lie, and for the operand of each post where it does, and its bytes from
        an image to the next one and from a pixel to the next one; for codes the scale and the shift, too."""
        read = [n for n, post in enumerate(self.posts) if post.along is not None]
        places = [(f"operand{n}", f"operand_image{n}", f"operand_pixel{n}") for n in read]
        grids = [(f"scale{n}", f"shift{n}") for n in read if self.posts[n].name.startswith(_CODES)]
        return (*self.tables, *(name for own in (*places, *grids) for name in own))


@dataclass(frozen=True, slots=True)
class Requantization:
    """An ending, and what it reads: tables by their names, operands in the order of the posts that have one, and of
    these the ones that want another layout, and those that are codes."""

    ending: Ending
    tables: dict[str, Array]
    operands: tuple[KernelOperand, ...]
    wants: dict[int, Strided]
    coded: frozenset[int]
    grids: dict[int, tuple[float, float]]

    def arguments(self, inputs: Sequence[Any]) -> dict[str, int]:
        """Those of a call, when the inputs of the work are known."""
        told = {name: data_address(table) for name, table in self.tables.items()}
        read = [n for n, post in enumerate(self.ending.posts) if post.along is not None]
        for n, (number, (image, pixel)) in zip(read, self.operands, strict=True):
            told |= {f"operand{n}": data_address(inputs[number])}
            told |= {f"operand_image{n}": image, f"operand_pixel{n}": pixel}
            if number in self.grids:
                bits = np.array(self.grids[number], np.float32).view(np.uint32)
                told |= {f"scale{n}": int(bits[0]), f"shift{n}": int(bits[1])}
        return told


def requantization(work: Work, factors: Array, images: int, pixels: int, *, last: bool) -> Requantization | None:
    """What becomes of sums in the result of a work, of `images` times `pixels` times as many columns as there are
    `factors` (f64), which are its `last` axis, or else axis 1; None where that cannot be done by a kernel."""
    columns, posts = len(factors), list(work.posts)
    bias = np.zeros(columns)
    if not _held(factors):
        return None
    while posts and (linear := _linear(work, posts[0], columns, last=last)) is not None:
        factor, shift = linear
        if not (_held(factors * factor) and _held(bias * factor + shift)):
            break
        factors, bias = factors * factor, bias * factor + shift
        posts.pop(0)
    tables = {"factor": factors, "bias": bias}
    if posts and posts[-1].name == QUANTIZE:
        tables |= _coding(posts.pop().attrs["coding"])
    (result,) = work.outputs
    laid = _Operands(work, result.shape, last=last)
    shape = (images, pixels, columns) if last else (images, columns, pixels)
    order = (0, 1, 2) if last else (0, 2, 1)
    kernel: list[KernelPost] = []
    operands: list[KernelOperand] = []
    for post in posts:
        if post.name == FAKE_QUANTIZE:
            found = _rounding(work, post, last=last)
            if found is None:
                return None
            tables |= {f"{name}{len(kernel)}": table for name, table in found.items()}
            kernel.append(KernelPost(FAKE_QUANTIZE))
            continue
        added = laid.codes(post)
        if added is not None:
            item = prod(result.shape) // images
            kernel.append(KernelPost(f"{_CODES}-{added}", along=True))
            operands.append(KernelOperand(post.operand or 0, (item, columns)))
            continue
        own, read = kernel_posts(replace(work, inputs=laid.inputs(post), posts=[post]), shape, order)
        if not own:
            return None
        kernel += own
        operands += read
    limits = np.finfo(np.float32)
    made = {name: _table(np.clip(table, limits.min, limits.max), columns) for name, table in tables.items()}
    ending = Ending(tuple(kernel), result.type)
    return Requantization(ending, made, tuple(operands), laid.wants, frozenset(laid.grids), laid.grids)


class _Operands:
    """The operands of posts that are as large as the result, which kernels read in its order: channels last."""

    def __init__(self, work: Work, shape: tuple[int, ...], *, last: bool) -> None:
        self._work, self._shape, self._last = work, shape, last
        self.wants: dict[int, Strided] = {}
        self.grids: dict[int, tuple[float, float]] = {}

    def codes(self, post: Post) -> str | None:
        """The type of the codes that a post adds; None where it does something else."""
        operand = self._work.other(post)
        if operand is None or operand.codes is None or operand.grid is None or post.name != "Add-1":
            return None
        if operand.shape != self._shape or len(operand.grid.scale) > 1:
            return None
        scale = operand.grid.scale[0]
        assert post.operand is not None
        self.grids[post.operand] = scale, -scale * operand.grid.zero
        self._placed(post.operand, operand.codes)
        return operand.codes.type

    def inputs(self, post: Post) -> list[Operand | None]:
        """The inputs of the work as they come where that of the post is laid out as the result."""
        inputs, operand = list(self._work.inputs), self._work.other(post)
        if operand is not None and post.operand is not None and operand.value is None and operand.shape == self._shape:
            inputs[post.operand] = replace(operand, strides=self._placed(post.operand, operand), layout=None)
        return inputs

    def _placed(self, number: int, operand: Operand) -> tuple[int, ...]:
        layout = layout_of(operand, last=self._last)
        if not lies_so(operand, layout):
            self.wants[number] = layout
        return layout.strides


def layout_of(operand: Operand, *, last: bool) -> Strided:
    """In C order, but for axis 1, which comes last if none else is to be the `last`."""
    shape, item = operand.shape, numpy_dtype(operand.type).itemsize
    order = [*range(len(shape))] if last else [0, *range(2, len(shape)), 1]
    return Strided(ordered_strides(order, [shape[axis] for axis in order], item), item * prod(shape))


def _table(values: Array, columns: int) -> Array:
    """One f32 for each column, and 0 for those that fill up the last vector."""
    made = np.zeros(aligned(columns * ITEM) // ITEM, np.float32)
    made[:columns] = values
    return made


def _linear(work: Work, post: Post, columns: int, *, last: bool) -> tuple[Array, Array] | None:
    """The factor and the shift, f64, of a post that is a product or a sum with a constant, one number or one for each
    column; None where it is none."""
    operand = work.other(post)
    if operand is None or post.name not in ("Add-1", "Multiply-1", "Subtract-1") or operand.value is None:
        return None
    values = None if operand.type != "f32" else _for_columns(work, operand.value, last=last)
    if values is None or post.attrs.get("auto_broadcast", "numpy") == "pdpd" or not np.isfinite(values).all():
        return None
    none, one = np.zeros(1), np.ones(1)
    if post.name == "Multiply-1":
        return values, none
    if post.name == "Add-1":
        return one, values
    return (-one, values) if post.reflected else (one, -values)


def _held(values: Array) -> bool:
    """Whether numbers in f64 are none that are infinite in f32, or NaN."""
    return bool((np.abs(values) <= np.finfo(np.float32).max).all())


def _for_columns(work: Work, value: Array, *, last: bool) -> Array | None:
    """The numbers of a constant in f64: one, or one for each column; None where it has others."""
    shape = work.outputs[0].shape
    axis = len(shape) - 1 if last else 1
    own = (*(1,) * (len(shape) - value.ndim), *value.shape)
    if value.size != 1 and (value.size != shape[axis] or own[axis] != value.size):
        return None
    return value.reshape(-1).astype(np.float64)


def _coding(coding: Coding) -> dict[str, Array]:
    """The tables of what makes codes."""
    level, shift, least, most = coding.linear()
    limits = np.iinfo(numpy_dtype(coding.grid.type))
    least, most = np.maximum(least, limits.min), np.minimum(most, limits.max)
    return {"level": level, "shift": shift, "least": least, "most": most}


def _rounding(work: Work, post: Post, *, last: bool) -> dict[str, Array] | None:
    """The tables of a FakeQuantize; None where its limits are no constants for columns, or none that go upwards."""
    found = []
    for number in post.parameters:
        operand = work.inputs[number]
        if operand is None or operand.value is None or operand.type != "f32":
            return None
        found.append(_for_columns(work, operand.value, last=last))
    bounds = [values for values in found if values is not None]
    if len(bounds) < 4 or post.attrs["auto_broadcast"] == "pdpd" or post.attrs["levels"] > MAX_LEVELS:
        return None
    (low, high, first, last_level), steps = bounds, post.attrs["levels"] - 1
    if not (np.all(low < high) and np.isfinite([np.ptp(high - low), np.ptp(last_level - first)]).all()):
        return None
    level, none = steps / (high - low), np.zeros(1)
    if not _held(level):
        return None
    return {
        "level": level,
        "shift": -low * level,
        "least": none,
        "most": none + steps,
        "step": (last_level - first) / steps,
        "first": first,
    }


@dataclass(frozen=True, slots=True)
class Place:
    """Where a vector of results is: its image, its pixel in that, and its first column; which of its lanes are
    `inside`, None where all are."""

    image: Any
    pixel: Any
    column: Any
    inside: Any


def ended(c: Code, ending: Ending, at: dict[str, Any], sums: Any, place: Place) -> Any:
    """What becomes of a vector of sums, f32: f32 or, as a vector of bytes, codes."""
    b = c.b

    def table(name: str) -> Any:
        return c.load(c.at(at[name], place.column, ITEM), FLOATS)

    def start(n: int) -> Any:
        image = c.at(at[f"operand{n}"], place.image, at[f"operand_image{n}"])
        return c.at(image, place.pixel, at[f"operand_pixel{n}"])

    def read(n: int, _: int, along: bool) -> Any:
        address = start(n)
        if not along:
            return c.splat(c.load(address, FLOAT, 1))
        address = c.at(address, place.column, ITEM)
        return c.load(address, FLOATS, 1) if place.inside is None else c.some(address, FLOATS, place.inside, 1)

    def leveled(value: Any, n: str) -> Any:
        """Rounded levels, plus `_MAGIC`."""
        least, most = table(f"least{n}"), table(f"most{n}")
        level = c.fma(value, table(f"level{n}"), table(f"shift{n}"))
        level = b.select(b.fcmp_ordered(">", level, least), level, least)  # which NaN is, too
        level = b.select(b.fcmp_ordered("<", level, most), level, most)
        return b.fadd(level, floats(_MAGIC))

    value = c.fma(sums, table("factor"), table("bias"))
    for n, post in enumerate(ending.posts):
        if post.name.startswith(_CODES):
            address = b.add(start(n), place.column)
            codes = c.load(address, BYTES, 1) if place.inside is None else c.some(address, BYTES, place.inside)
            whole = b.sext(codes, INTS) if post.name.endswith("i8") else b.zext(codes, INTS)
            scale, shift = (c.splat(_float(c, at[f"{name}{n}"])) for name in ("scale", "shift"))
            value = b.fadd(value, c.fma(b.sitofp(whole, FLOATS), scale, shift))
        elif post.name == FAKE_QUANTIZE:
            level = b.fsub(leveled(value, str(n)), floats(_MAGIC))
            value = c.fma(level, table(f"step{n}"), table(f"first{n}"))
        else:
            value = posted(c, [post], value, partial(read, n))
    return value if ending.type == "f32" else b.trunc(b.bitcast(leveled(value, ""), INTS), BYTES)


def _float(c: Code, bits: Any) -> Any:
    return c.b.bitcast(c.b.trunc(bits, ir.IntType(32)), FLOAT)
