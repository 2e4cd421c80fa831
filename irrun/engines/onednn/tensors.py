"""Operands as oneDNN sees them: layouts by strides, axes that can be one, constants laid out once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from irrun.engines import axes
from irrun.engines.axes import Sizes, canonical_strides, dense_strides, unless_so
from irrun.engines.memory import Arranged, allocate, allocate_lasting, arranged_once
from irrun.engines.onednn.library import DST, POST, SRC, ZERO_POINTS, Descriptor, Library, Primitive
from irrun.engines.work import Arrays, Call, Compiled, Layout, Operand, Work
from irrun.spec.dtypes import element_type, numpy_dtype
from irrun.spec.op import Array

FLOATS = frozenset({"f32", "bf16"})
"""Element types of what is computed; sums are those of f32."""

FEW_BYTES = 1 << 18
"""What one thread lays out sooner than another one is awake."""


def layout_of(library: Library, operand: Operand) -> Descriptor | None:
    """How an operand lies; None where oneDNN cannot express it."""
    if isinstance(operand.layout, Descriptor):
        return operand.layout
    steps = canonical_strides(operand.shape, operand.strides, itemsize(operand))
    return library.strided(operand.shape, steps, operand.type)


def itemsize(operand: Operand) -> int:
    """Bytes of an element."""
    return numpy_dtype(operand.type).itemsize


def is_dense_layout(layout: Descriptor) -> bool:
    """Whether a layout has no gaps and axes in their order, as far as it says: primitives take operands to be so."""
    return layout.strides is None or layout.strides == dense_strides(layout.shape, layout.itemsize)


def channels_last(library: Library, shape: Sizes, type: str) -> Descriptor:
    """The layout of a tensor [N, C, *spatial] that is stored as [N, *spatial, C]."""
    layout = library.strided(shape, axes.channels_last(Operand(type, shape, ())).strides, type)
    assert layout is not None
    return layout


def spread_layout(library: Library, shape: Sequence[int], strides: Sequence[int], type: str) -> Descriptor | None:
    """The layout of an operand with strides over `shape`, one element long where it is repeated."""
    own = tuple(1 if stride == 0 else size for size, stride in zip(shape, strides, strict=True))
    return library.strided(own, canonical_strides(own, strides, numpy_dtype(type).itemsize), type)


def given_as(work: Work, layout: Descriptor | None) -> dict[int, Layout]:
    """The layout of the first output, as engines say it: none where that is in C order."""
    return {} if layout is None else unless_so(work.outputs[0], layout)


def packed(
    library: Library,
    value: Array,
    source: Descriptor,
    target: Descriptor,
    arranged: Callable[[Array], Array] = np.asarray,
    part: int = 0,
) -> Arranged:
    """A constant in the layout that a primitive wants; the one that another work has made, as those of other input
    shapes do.

    `arranged` gives the array that lies as `source` says, made of that `part` of the constant.
    """

    def laid_out(value: Array) -> Array:
        memory = allocate_lasting(target.nbytes)
        copy(library, source, arranged(value), target, memory)
        return memory

    return arranged_once(library.packed, [value], laid_out, source, target, part)


def copy(library: Library, source: Descriptor, read: Array, target: Descriptor, written: Array) -> None:
    """Bring a tensor into another layout, right away."""
    primitive = library.primitive("reorder", source, target, small=target.nbytes < FEW_BYTES)
    assert primitive is not None
    primitive.bind([(SRC, source, read), (DST, target, written)], allocate(primitive.scratch))()


def compiled(
    work: Work,
    primitive: Primitive,
    inputs: Mapping[int, int],
    *,
    free: Sequence[int] = (),
    constants: Mapping[int, Callable[[], Array]] | None = None,
    taken: Sequence[int] = (),
    gives: Descriptor | None = None,
    doubtful: bool = False,
    quantities: Mapping[int, Array] | None = None,
) -> Compiled:
    """A work that is one primitive; `inputs` says which of its arguments is which operand, DST is the output. Constants
    of bf16 are made f32 where the primitive takes no others.

    `constants` give the arrays of further arguments. `free` are the arguments whose layout the primitive chose,
    `gives` is the layout of the output where not dense. `quantities` are scales and zero points, vectors.
    """
    wants: dict[int, Layout] = {}
    for number in free:
        operand = work.inputs[inputs[number]]
        if operand is not None:
            wants |= unless_so(operand, primitive.layout(number), inputs[number])
    made = constants or {}
    zero = primitive.library.dense((1,), "i32")
    layouts = {
        number: zero if ZERO_POINTS <= number < POST else primitive.layout(number) for number in (*inputs, *made, DST)
    }

    scales = [
        (number, primitive.library.dense(array.shape, element_type(array.dtype)), array)
        for number, array in (quantities or {}).items()
    ]

    bind = partial(_bound, primitive, inputs, layouts, scales, work, made)
    given = given_as(work, gives)
    return Compiled(bind, primitive.scratch, wants, given, frozenset(taken), doubtful, pending=primitive.pending)


def pending_of(parts: Iterable[Compiled | Primitive]) -> list[Call]:
    """What is `pending` of all that a work is made of."""
    return [call for own in parts for call in own.pending()]


def with_others(found: Compiled, work: Work, constants: Mapping[int, Callable[[], Array]]) -> Compiled:
    """What `compiled` gives for a work that is the same but for its weights, `found` being what it gave before."""
    assert isinstance(found.bind, partial)
    primitive, inputs, layouts, scales, _, _ = found.bind.args
    bind = partial(_bound, primitive, inputs, layouts, scales, work, constants)
    own = bind, found.scratch, found.wants, found.gives, found.taken, found.doubtful
    return Compiled(*own, pending=found.pending)


def _bound(
    primitive: Primitive,
    inputs: Mapping[int, int],
    layouts: Mapping[int, Descriptor],
    scales: Sequence[tuple[int, Descriptor, Array]],
    work: Work,
    constants: Mapping[int, Callable[[], Array]],
    read: Arrays,
    written: Sequence[Array],
    scratch: Any,
) -> Call:
    arguments = _arguments(inputs, layouts, work, constants, read, written)
    return primitive.bind([*arguments, *scales], scratch)


def bound_places(found: Compiled, places: Sequence[tuple[Arrays, Array]], scratch: Any) -> Call:
    """What `compiled` gives, bound to several sets of inputs with their outputs, which lie alike, one after another."""
    (read, written), *others = places
    if not others:
        return found.bind(read, [written], scratch)
    assert isinstance(found.bind, partial)
    primitive: Primitive = found.bind.args[0]
    inputs, layouts, scales, work, constants = found.bind.args[1:]
    moved = {DST: [own for _, own in places]}
    for number, position in inputs.items():
        if read[position] is not others[0][0][position]:
            moved[number] = [given[position] for given, _ in places]
    arguments = _arguments(inputs, layouts, work, constants, read, [written])
    return primitive.bind_places([*arguments, *scales], scratch, moved)


def _arguments(
    inputs: Mapping[int, int],
    layouts: Mapping[int, Descriptor],
    work: Work,
    constants: Mapping[int, Callable[[], Array]],
    read: Arrays,
    written: Sequence[Array],
) -> list[tuple[int, Descriptor, Array]]:
    arguments = [(DST, layouts[DST], written[0])]
    for number, position in inputs.items():
        own, array = work.inputs[position], read[position]
        if own is not None and own.type == "bf16" and own.value is not None and layouts[number].type == "f32":
            array = array.astype(np.float32)
        arguments.append((number, layouts[number], array))
    return arguments + [(number, layouts[number], constant()) for number, constant in constants.items()]
