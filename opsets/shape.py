"""Shape ops: the shape of a tensor, and the same elements in another shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irrun.spec import (
    ANY,
    BOOL,
    FLOAT,
    INTEGER,
    MAX_RANK,
    UNLIKELY,
    Array,
    Attr,
    Dim,
    Input,
    Measuring,
    Node,
    Output,
    Reshaping,
    Shape,
    Shapes,
    Size,
    Sizes,
    Tensor,
    choice,
    divided,
    fresh,
    numpy_dtype,
    op,
    product,
    shape_text,
)
from irrun.spec.dims import UNDECIDED

from ._indexing import count_once

DATA = Input("data", "T", "...")


@op(
    "ShapeOf-1",
    types={"T": ANY},
    inputs=[DATA],
    outputs=[Output("shape", "i64", "[rank]")],
    opsets=frozenset({1, 2}),
    symbolic=True,
    self_checking=True,
    traits=[Measuring()],
)
def shape_of_1(data: Array) -> Any:
    """The shape of a tensor.

    Source: shape/shape-of-1.rst

    >>> op(np.zeros((2, 3))).tolist()
    [2, 3]
    """
    return np.array(data.shape, np.int64)


@shape_of_1.shapes
def _(node: Node) -> list[Tensor]:
    return [_shape_tensor(node, "i64")]


@op(
    "ShapeOf-3",
    of=shape_of_1,
    outputs=[Output("shape", "output_type", "[rank]")],
    attrs=[Attr("output_type", choice("i64", "i32"), "i64", demanded=True)],
    opsets=frozenset(range(3, 18)),
)
def shape_of(data: Array, *, output_type: str) -> Any:
    """The shape of a tensor, in the integer type output_type.

    Source: shape/shape-of-3.rst

    >>> op(np.zeros((2, 3)), output_type="i32").tolist()
    [2, 3]
    """
    return np.array(data.shape, numpy_dtype(output_type))


@shape_of.shapes
def _(node: Node) -> list[Tensor]:
    return [_shape_tensor(node, node.attrs["output_type"])]


shape_of.lowers("ShapeOf-1", output_type="i64")


def _shape_tensor(node: Node, type: str) -> Tensor:
    shape = node.inputs["data"].shape
    if shape is None:
        return Tensor(type, (fresh(),))
    return Tensor(type, (len(shape),), Sizes(shape, type=type))


@op(
    "Reshape-1",
    types={"T": ANY, "T_SHAPE": INTEGER},
    inputs=[DATA, Input("shape", "T_SHAPE", "[rank]")],
    outputs=[Output("output", "T", "[*output]")],
    attrs=[Attr("special_zero", BOOL, assumed=False)],
    symbolic=True,
    view_of="data",
    self_checking=True,
    traits=[Reshaping(free=True, kept="special_zero")],
)
def reshape(data: Array, shape: Array, *, special_zero: bool) -> Any:
    """The same elements in another shape, which may have one -1: the size that is left for it.

    With special_zero a 0 copies the dimension of data at its place. Copied dimensions do not count for -1, so that
    batches may be empty. An unknown size is taken for one that is really meant.

    Choice: sizes of 0 that data and shape both have do not count for -1, either, as where only a run tells that they
    are 0: a batch of 0 images, reshaped to that batch and -1, keeps its features. Where shape has other sizes of 0, or
    -1 would be no whole number, it is 0.

    Deviation: OpenVINO takes 0 for -1 beside a size of 0 that only a run tells, and 1 or an error beside a constant 0,
    unless a dimension of data is known to be 0.

    Constraints:
        C1: shape has no element below -1.
        C2: at most one element of shape is -1.
        C3: with special_zero, a 0 stands where data has a dimension.
        C4: data has as many elements as the output.

    Source: shape/reshape-1.rst

    >>> op(np.arange(12).reshape(2, 6), np.array([0, -1, 2]), special_zero=True).shape
    (2, 3, 2)
    """
    sizes = shape.tolist()
    if min(sizes, default=0) < -1:  # numpy takes it for -1
        raise ValueError(f"the shape {sizes}")
    return data.reshape([int(size) for size in _reshaped(data.shape, sizes, special_zero)])


@reshape.shapes
def _(node: Node) -> Shapes:
    special_zero = node.attrs["special_zero"]
    pattern = node.sizes("shape")
    if pattern is None:
        rank = node.dims["rank"]
        return {"output": tuple(fresh() for _ in range(rank))} if isinstance(rank, int) and rank <= MAX_RANK else {}
    for number, size in enumerate(pattern):
        if (size < -1) is True:
            node.fail("C1", f"`shape[{number}]` is {size}, expected -1 or more", "shape")
    if _free(pattern) > 1:
        node.fail("C2", f"`shape` is {shape_text(tuple(pattern))}, expected at most one -1", "shape")
    shape = node.inputs["data"].shape
    if shape is None:
        if not special_zero and any(_is(size, 0) for size in pattern):
            what = f"`shape` {shape_text(tuple(pattern))} wants no elements of `data`"
            node.warn(f"{what}: only data without elements fit", "shape", UNLIKELY, refused=_free(pattern) > 0)
        return {"output": tuple(size if _plain(size, special_zero) else fresh() for size in pattern)}
    if special_zero:
        for number, size in enumerate(pattern[len(shape) :], len(shape)):
            if _is(size, 0):
                node.fail("C3", f"`shape[{number}]` is 0, but `data` has rank {len(shape)}", "shape", about=["data"])
    output = _reshaped(shape, pattern, special_zero)
    fits = product(output) == product(shape)
    if fits is False:
        found = f"`data` is {shape_text(shape)}, {product(shape)} elements"
        node.fail(
            "C4",
            f"{found}, expected {product(output)} for `shape` {shape_text(tuple(pattern))}",
            "data",
            about=["shape"],
        )
    node.require("C4", fits, "")
    _check_factors(node, shape, pattern, output)
    return {"output": output}


def _check_factors(node: Node, shape: Shape, pattern: Sequence[Size], output: Shape) -> None:
    """Report data that fit at no sizes of what is unknown but 0: [n, 6] as [n, -1, 4], as [n, 7], or as [0, 6]."""
    rest = [size for size, wanted in zip(output, pattern, strict=True) if not _is(wanted, -1)]
    if _is(product(output), 0) and not _is(product(shape), 0):
        what = f"`shape` {shape_text(tuple(pattern))} wants no elements of `data` {shape_text(shape)}"
        node.warn(f"{what}: only data without elements fit", "shape", UNLIKELY, refused=len(rest) < len(pattern))
        return
    factors = _factors(product(shape), product(rest))
    if factors is None:
        return
    given, wanted = factors
    free = len(rest) < len(pattern)
    if given % wanted == 0 if free else given == wanted:
        return
    what = f"`data` {shape_text(shape)} has {given} elements where `shape` {shape_text(tuple(pattern))} wants"
    what = f"{what} {'a multiple of ' * free}{wanted}"
    known = [product([size for size in sizes if isinstance(size, int)]) for sizes in (shape, rest)]
    if free and known == [given, wanted]:  # which is what sizes of 0 leave, too, as they cancel each other
        node.fail("C4", what, "data", about=["shape"])
    node.warn(f"{what}: only data without elements fit", "shape", UNLIKELY)


def _factors(a: Size, b: Size) -> tuple[int, int] | None:
    """The factors of two products of the same unknown sizes; None where they are none."""
    if not (isinstance(a, Dim) and isinstance(b, Dim) and len(a.terms) == 1 and a.terms.keys() == b.terms.keys()):
        return None
    (one,), (other,) = a.terms.values(), b.terms.values()
    return (one, other) if other else None


def _reshaped(shape: Shape, pattern: Sequence[Size], special_zero: bool) -> Shape:
    copied = [special_zero and _is(size, 0) for size in pattern]
    output = [shape[axis] if copied[axis] else size for axis, size in enumerate(pattern)]
    given = [axis for axis, size in enumerate(output) if not copied[axis]]
    free = [axis for axis in given if _is(output[axis], -1)]
    unknown = [axis for axis in given if isinstance(output[axis], Dim) and (output[axis] >= -1) is not True]
    if len(free) + len(unknown) == 1:
        (axis,) = free or unknown
        total = [size for place, size in enumerate(shape) if not (place < len(copied) and copied[place])]
        rest = [size for place, size in enumerate(output) if place != axis and not copied[place]]
        output[axis] = _quotient(total, rest)
    else:
        for axis in free + unknown:
            output[axis] = fresh()
    return tuple(output)


def _quotient(total: Sequence[Size], rest: Sequence[Size]) -> Size:
    """The size that `rest` lacks of the elements of `total`, where sizes of 0 cancel each other as all others do."""
    zeros = sum(_is(size, 0) for size in rest)
    if not zeros:
        return divided(product(total), product(rest))
    own = sum(_is(size, 0) for size in total)
    if own < zeros and any(isinstance(size, Dim) for size in total):  # one of which may be 0
        return fresh()
    if own != zeros:
        return 0
    dividend, divisor = (product(size for size in sizes if not _is(size, 0)) for sizes in (total, rest))
    whole = dividend % divisor == 0
    return fresh() if whole is UNDECIDED else dividend // divisor if whole else 0


def _free(pattern: Sequence[Size]) -> int:
    return sum(_is(size, -1) for size in pattern)


def _is(size: Size, number: int) -> bool:
    """Whether a size is provably `number`."""
    return (size == number) is True


def _plain(size: Size, special_zero: bool) -> bool:
    """Whether an element of a reshape's shape is a size as it stands."""
    return (size >= 0) is True and not (special_zero and _is(size, 0))


AXES = Input("axes", "T_INT", "[] | [num_axes]")


def _squeezed(shape: Shape, axes: Sequence[int] | None) -> tuple[int, ...]:
    """The axes that go, of a shape without unknown sizes."""
    candidates = {axis % len(shape) for axis in axes} if axes and shape else range(len(shape))
    return tuple(axis for axis in candidates if shape[axis] == 1)


def _squeeze(data: Array, axes: Array | None) -> Any:
    return data.squeeze(_squeezed(data.shape, None if axes is None else axes.ravel().tolist()))


def _squeeze_rule(node: Node, allow_axis_skip: bool) -> Shapes:
    shape = node.inputs["data"].shape
    given = node.inputs["axes"] is not None
    axes = node.numbers("axes")
    if shape is None or (given and axes is None and not _is(product(node.inputs["axes"].shape or ()), 0)):
        return {}
    wanted = {node.axis("C1", axis, len(shape), "axes", number) for number, axis in enumerate(axes or ())}
    count_once(node, "C2", "axes", axes or (), wanted)
    if not shape:
        return {"output": ()}
    doubtful = [axis for axis in wanted or range(len(shape)) if isinstance(shape[axis] == 1, bool) is False]
    if doubtful and (allow_axis_skip or not wanted):
        return {}
    if doubtful:  # the kernel keeps what turns out to be no 1
        node.suppose()
    kept = [size for axis, size in enumerate(shape) if (size == 1) is False or (wanted and axis not in wanted)]
    return {"output": tuple(kept)}


@op(
    "Squeeze-1",
    types={"T": ANY, "T_INT": INTEGER},
    lenient_types={"T_INT": FLOAT},
    inputs=[DATA, Input("axes", "T_INT", "[] | [num_axes]", optional=True)],
    outputs=[Output("output", "T", "[*output]")],
    opsets=frozenset(range(1, 15)),
    symbolic=True,
    view_of="data",
    traits=[Reshaping()],
)
def squeeze_1(data: Array, axes: Array | None = None) -> Any:
    """Drop the listed dimensions of size 1, or all of them where axes is empty or missing; others are kept.

    A listed dimension of unknown size is inferred as dropped, as the specification says.
    Constraints:
        C1: each axis lies in [-r, r), r the rank of data.
        C2: no axis is there twice.

    Source: shape/squeeze-1.rst

    >>> op(np.zeros((1, 3, 1, 2)), np.array([0, 1, 2])).shape
    (3, 2)
    """
    return _squeeze(data, axes)


@squeeze_1.shapes
def _(node: Node) -> Shapes:
    return _squeeze_rule(node, allow_axis_skip=False)


@op("Squeeze-15", of=squeeze_1, attrs=[Attr("allow_axis_skip", BOOL, False)])
def squeeze(data: Array, axes: Array | None = None, *, allow_axis_skip: bool) -> Any:
    """Drop the listed dimensions of size 1, or all of them where axes is empty or missing; others are kept.

    A listed dimension of unknown size is inferred as dropped, unless allow_axis_skip: then the rank is unknown.
    Constraints:
        C1: each axis lies in [-r, r), r the rank of data.
        C2: no axis is there twice.

    Source: shape/squeeze-15.rst

    >>> op(np.zeros((1, 3, 1, 2))).shape
    (3, 2)
    """
    return _squeeze(data, axes)


@squeeze.shapes
def _(node: Node) -> Shapes:
    return _squeeze_rule(node, node.attrs["allow_axis_skip"])


squeeze.lowers("Squeeze-1", allow_axis_skip=False)


@op(
    "Unsqueeze-1",
    types={"T": ANY, "T_INT": INTEGER},
    lenient_types={"T_INT": FLOAT},
    inputs=[DATA, AXES],
    outputs=[Output("output", "T", "[*output]")],
    symbolic=True,
    view_of="data",
    traits=[Reshaping()],
)
def unsqueeze(data: Array, axes: Array) -> Any:
    """Insert dimensions of size 1; axes are places in the output.

    Deviation: OpenVINO accepts different axes that name the same place (C2), with a surprising result.
    Constraints:
        C1: each axis lies in [-r, r), r the rank of the output.
        C2: no two axes, such as 1 and 1, or 1 and -2, are the same place.
        C3: there is an axis.

    Source: shape/unsqueeze-1.rst

    >>> op(np.zeros((2, 3)), np.array([0, 3])).shape
    (1, 2, 3, 1)
    """
    listed = axes.ravel().tolist()
    rank = data.ndim + len(set(listed))
    new = {axis % rank for axis in listed if -rank <= axis < rank}
    if len(new) + data.ndim != rank:
        raise ValueError(f"axes {listed} for data of rank {data.ndim}")
    return data[tuple(None if axis in new else slice(None) for axis in range(rank))]  # np.expand_dims takes ten times


@unsqueeze.shapes
def _(node: Node) -> Shapes:
    shape = node.shape("data")
    axes = node.numbers("axes")
    if axes is None:
        count = product(node.shape("axes"))
        # listed twice, an axis counts once
        return {"output": tuple(fresh() for _ in range(len(shape) + 1))} if _is(count, 1) else {}
    node.require("C3", bool(axes), "`axes` is empty", about=["axes"])
    listed = list(dict.fromkeys(axes))
    count_once(node, "C2", "axes", axes, listed)
    rank = len(shape) + len(listed)
    places: dict[int, int] = {}
    for axis in listed:
        place = node.axis("C1", axis, rank, "axes")
        if place in places:
            node.fail("C2", f"`axes` {places[place]} and {axis} are both place {place} of rank {rank}", "axes")
        places[place] = axis
    rest = iter(shape)
    return {"output": tuple(1 if place in places else next(rest) for place in range(rank))}
