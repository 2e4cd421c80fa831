"""Element-wise ops and chains of them: one pass over memory, in whatever order of axes the operands share."""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from irrun.engines.axes import Sizes, broadcast_strides, canonical_strides, merged, order_of, ordered_strides
from irrun.engines.grid import QUANTIZE
from irrun.engines.onednn.library import FEW_ELEMENTS, INFERENCE, POST, SRC, SRC_1, Descriptor, Library
from irrun.engines.onednn.posts import (
    BINARY,
    CLIPPING,
    FAKE_QUANTIZE,
    FUNCTIONS,
    INEXACT,
    MUL,
    Chain,
    Place,
    aligned_axes,
    chain,
)
from irrun.engines.onednn.tensors import FLOATS, compiled, itemsize, spread_layout
from irrun.engines.orders import leading
from irrun.engines.work import Compiled, Operand, Post, Work
from irrun.spec.traits import broadcasts_by_numpy


def compile(library: Library, work: Work) -> Compiled | None:
    """An op of one or two inputs, and what follows, over the input that is as large as the result."""
    head = _as_post(work)
    if head is None:
        return None
    position, first = head
    data = work.required(2)[position]
    shape, type = work.outputs[0].shape, work.outputs[0].type
    if type in FLOATS and type != data.type:
        return None
    posts, exact = [first, *work.posts], data.type == "f32"
    if isinstance(data.layout, Descriptor):
        place = aligned_axes(library, shape)
        found = chain(posts, work, place, partial(_alike, data.layout), exact=exact)
        return _compiled(library, work, position, data.layout, found, data.layout)

    order, item = order_of(data), itemsize(data)
    if order is None:
        return None
    moved = tuple(shape[axis] for axis in order)
    steps = ordered_strides(order, moved, item)
    others = {id(own): own for post in posts if (own := work.other(post)) is not None}
    strides = [steps, *(broadcast_strides(operand, shape) for operand in others.values())]
    sizes, walked = merged(moved, [[own[axis] for axis in order] for own in strides])
    places = dict(zip(others, walked[1:], strict=True))
    given = library.strided(shape, canonical_strides(shape, steps, item), data.type)
    if given is None:
        return None
    source, place = library.dense(sizes or (1,), data.type), _joined_place(library, sizes or (1,), places)
    result = _compiled(library, work, position, source, chain(posts, work, place, exact=exact), given)
    if result is None and len(sizes) < len(shape):  # some ways of broadcasting are known by the axes of images only
        found = chain(posts, work, aligned_axes(library, shape), exact=exact)
        result = _compiled(library, work, position, given, found, given)
    return result


def _as_post(work: Work) -> tuple[int, Post] | None:
    """The head as a post, behind the number of the input that it is done to."""
    second = work.optional(1)
    if work.name == "PReLU-1" or not broadcasts_by_numpy(work.attrs):
        return None
    if work.name == FAKE_QUANTIZE:  # of which codes are made: NaN would not stay NaN, and codes have none
        coding = bool(work.posts) and work.posts[-1].name == QUANTIZE
        return (0, Post(work.name, work.attrs, parameters=(1, 2, 3, 4))) if coding else None
    if second is None:
        return 0, Post(work.name, work.attrs)
    if work.name == "Swish-4":
        return 0, Post(work.name, work.attrs, parameters=(1,))
    position = leading(work)
    if position == 0:
        return 0, Post(work.name, work.attrs, 1)
    return (1, Post(work.name, work.attrs, 0, reflected=True)) if position == 1 and second.type in FLOATS else None


def _alike(layout: Descriptor, type: str) -> Descriptor | None:
    return layout if layout.type == type else None


def _joined_place(library: Library, sizes: Sizes, places: dict[int, Sizes]) -> Place:
    def place(operand: Operand) -> Descriptor | None:
        own = places.get(id(operand))
        if own is None or operand.layout is not None:  # numbers for channels, which may be no axis of their own here
            return None
        return spread_layout(library, sizes, own or (0,), operand.type)

    return place


def _compiled(
    library: Library, work: Work, position: int, source: Descriptor, found: Chain | None, given: Descriptor | None
) -> Compiled | None:
    """The chain as a primitive: a binary one, or an element-wise one where nothing of that kind follows."""
    if found is None or found.constants:
        return None
    (kind, *args), *rest = found.posts
    small, type = prod(source.shape) < FEW_ELEMENTS, work.outputs[0].type
    target = source
    if source.type != type:
        retyped, given = (library.retyped(layout, type) for layout in (source, given))
        if retyped is None or given is None:
            return None
        target = retyped
    if kind == "eltwise" and target is source and all(other == "binary" for other, *_ in rest):
        primitive = library.primitive(
            "eltwise_forward", *(INFERENCE, args[0], source, source, *args[1:]), posts=rest, small=small
        )
        constants = {}
    elif kind == "eltwise":  # times 1, as only binary primitives take element-wise functions behind them
        ones = np.ones((1,) * len(source.shape), np.float32)
        one = library.dense(ones.shape)
        primitive = library.primitive("binary", MUL, source, one, target, posts=found.posts, small=small)
        constants = {SRC_1: lambda: ones}
    else:
        primitive = library.primitive("binary", args[0], source, args[1], target, posts=rest, small=small)
        constants = {}
    if primitive is None:
        return None
    first = 0 if constants else POST  # posts begin behind what is the primitive itself
    moved = {number: number - first if number > 2 * POST or constants else SRC_1 for number in found.inputs}
    inputs = {SRC: position, **{moved[number]: operand for number, operand in found.inputs.items()}}
    free = [moved[number] for number in found.free]
    return compiled(work, primitive, inputs, free=free, constants=constants, gives=given)


COMPILERS = dict.fromkeys(
    {*FUNCTIONS, *BINARY, QUANTIZE, FAKE_QUANTIZE, "SquaredDifference-1"} - (INEXACT - CLIPPING), compile
)
BF16_COMPILERS = dict.fromkeys(INEXACT, compile)
