"""Made-up arrays for the inputs of a model that none is given for, of sizes that all layers can do with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from irrun.check.validate import GivenShapes, by_input, find_input, given_shape
from irrun.diagnostics import InputError
from irrun.ir.graph import Model
from irrun.ir.signature import names_of, names_of_inputs
from irrun.run.memory import as_text
from irrun.spec.dims import Dim, Shape, Size
from irrun.spec.dtypes import ELEMENT_TYPES, numpy_dtype
from irrun.spec.op import Array, Tensor
from irrun.spec.patterns import shape_text

_TRIED = (1, 2, 4, 8, 16, 32, 64, 96, 128, 224, 256, 384, 512)
"""Numbers for sizes that are not known."""

_LARGER = 6
"""The place of the first of these that leaves windows something to see, where smaller ones do not."""

_MOST_TRIED = 48
"""Sizes of weights that are tried besides, for sizes that follow from these."""

_SMALL = 8
"""Integers are drawn that are less: sizes of axes that they are indices of are rarely smaller."""

_DRAWN_BYTES = 20
"""What an element takes while it is drawn, at most: it is converted to its type."""

Unsuited = Callable[[GivenShapes], str | None]
"""Why some layer of a model cannot do with these shapes of inputs, by their names; None if all can."""

Breaking = Callable[[Mapping[int, Array]], bool]
"""Whether some layer breaks a rule with these inputs, by their positions."""

Unsuiting = Callable[[Mapping[int, Shape]], str | None]
"""The same, by their positions."""


def random_inputs(
    model: Model,
    tensors: Sequence[Tensor],
    seed: int,
    shapes: GivenShapes,
    given: Mapping[str, Any],
    most: int,
    unsuited: Unsuited,
    breaking: Breaking,
) -> dict[str, Any]:
    """`given`, and arrays for the other inputs, of `most` bytes together at most.

    Their sizes are as `GraphExecutor.random_inputs` says.
    """
    rng = np.random.default_rng(seed)
    try:
        present = {find_input(model, name) for name in given}
        asked = {find_input(model, name): given_shape(sizes, name, {}) for name, sizes in by_input(shapes)}
    except ValueError as error:
        raise InputError(str(error)) from None
    wished: dict[int, Shape] = {}
    for number, (layer, tensor) in enumerate(zip(model.graph.parameters, tensors, strict=True)):
        sizes = asked.get(number, tensor.shape)
        if number in present:
            continue
        if sizes is None or tensor.type == "dynamic":
            raise InputError(
                f"input `{names_of(layer)[0]}` has no rank or no type of its own: give an array or a shape for it"
            )
        within = sizes if tensor.shape is None else _within(sizes, tensor.shape)
        if within is None:
            found, expected = (shape_text(shape, names=False) for shape in (sizes, tensor.shape))
            raise InputError(f"input `{names_of(layer)[0]}` is to have shape {found}, expected {expected}")
        wished[number] = within
    names = {number: _key(model, number) for number in wished}
    fixed = {name: np.shape(array) for name, array in given.items()}
    made: dict[int, Array] = {}
    total = 0

    def unsuiting(shapes: Mapping[int, Shape]) -> str | None:
        told = {names[number]: [_told(size) for size in shape] for number, shape in shapes.items()}
        return unsuited({**fixed, **told})

    for number, shape in _sized(wished, unsuiting, names, model):
        wanted = _DRAWN_BYTES * math.prod(shape)
        if wanted > most - total:
            name = names_of(model.graph.parameters[number])[0]
            message = f"input `{name}` of {shape_text(shape)} would take {as_text(wanted)} to make up"
            raise InputError(f"{message}, more than the limit of {as_text(most)}: ask for another shape with --shape")
        total += wanted
        made[number] = _random(tensors[number].type, tuple(map(int, shape)), rng)
    _lower(made, tensors, breaking, rng)
    return {**given, **{names[number]: array for number, array in made.items()}}


def _lower(made: dict[int, Array], tensors: Sequence[Tensor], breaking: Breaking, rng: np.random.Generator) -> None:
    """Draw the integers again that break a rule, from fewer numbers: as far as that, known before a run, goes for them
    alone, as for indices of an axis of few."""
    whole = [number for number, array in made.items() if _is_whole(tensors[number].type) and array.size]
    if not whole or not breaking({number: made[number] for number in whole}) or breaking({}):
        return
    for number in whole:
        drawn = made[number]
        for most in range(_SMALL - 1, -1, -1):
            if not breaking({number: drawn}):
                made[number] = drawn
                break
            if most:
                drawn = _random(tensors[number].type, drawn.shape, rng, most)


def _within(asked: Shape, declared: Shape) -> Shape | None:
    """The sizes that are asked for, those that are left open as far as they are declared; None where none can be so."""
    if len(asked) != len(declared):
        return None
    sizes: list[Size] = []
    for size, known in zip(asked, declared, strict=True):
        if (size == known) is False:
            return None
        if isinstance(size, int):
            sizes.append(size)
        else:
            sizes.append(known.within(size.low, size.high) if isinstance(known, Dim) else known)
    return tuple(sizes)


def _told(size: Size) -> int | None:
    return None if isinstance(size, Dim) else size


def _sizes_of_weights(model: Model) -> list[int]:
    constants = (layer for layer in model.graph.walk() if layer.type == "Const" and layer.outputs)
    found = {size for layer in constants for size in layer.outputs[0].port.dims or () if isinstance(size, int)}
    return sorted(size for size in found - {*_TRIED} if size > 1)[:_MOST_TRIED]


def _sized(
    wished: Mapping[int, Shape], unsuiting: Unsuiting, names: Mapping[int, str], model: Model
) -> Iterable[tuple[int, Shape]]:
    """Shapes with a number for each unknown size: the smallest of a few that all layers can do with.

    The first axis, which most often is the batch, stays as small as it may be as long as that will do. Where no number
    does for all of them they are found one by one, also among the sizes of weights. Raises InputError where none is.
    """
    unknown = any(isinstance(size, Dim) for sizes in wished.values() for size in sizes)
    why: str | None = None
    for batches in (_TRIED[:1], _TRIED):
        for number in _TRIED if unknown else _TRIED[:1]:
            first = number if number in batches else 1
            shapes = {
                position: tuple(_number(size, number if axis else first) for axis, size in enumerate(sizes))
                for position, sizes in wished.items()
            }
            reason = unsuiting(shapes) if unknown else None
            if reason is None:
                return shapes.items()
            why = why or reason
    others = _sizes_of_weights(model)
    for small in (_TRIED, _TRIED[_LARGER:]):
        found = _one_by_one(wished, unsuiting, (*small, *others, *_TRIED[: len(_TRIED) - len(small)]))
        if found is not None:
            return found.items()
    listing = " ".join(
        f"--shape {names[number]}={','.join(size.bounds if isinstance(size, Dim) else str(size) for size in sizes)}"
        for number, sizes in wished.items()
        if any(isinstance(size, Dim) for size in sizes)
    )
    tried = f"no size that was tried ({_TRIED[0]} to {_TRIED[-1]}) suits all layers"
    raise InputError(f"{tried}: give numbers in place of `?` in {listing}; with {_TRIED[0]}, {why}")


def _one_by_one(wished: Mapping[int, Shape], unsuiting: Unsuiting, numbers: Sequence[int]) -> dict[int, Shape] | None:
    """Shapes whose sizes are found in turn: for each the first number that layers can do with while those which follow
    are open still; None where there is none."""
    made = dict(wished)
    for position, shape in wished.items():
        for axis, size in enumerate(shape):
            if not isinstance(size, Dim):
                continue
            for number in numbers:
                own = made[position]
                made[position] = (*own[:axis], _number(size, number), *own[axis + 1 :])
                if unsuiting(made) is None:
                    break
            else:
                return None
    return made


def _number(size: Size, wanted: int) -> int:
    """A size, which is `wanted` if it is not known and may be so."""
    if not isinstance(size, Dim):
        return size
    least = max(size.low or 1, 1)
    return max(least, wanted if size.high is None else min(wanted, size.high))


def _key(model: Model, number: int) -> str:
    """A name that finds this input, or its position."""
    names = (*names_of_inputs(model.graph)[number], str(number))
    return next((name for name in names if _finds(model, name, number)), names[0])


def _finds(model: Model, name: str, number: int) -> bool:
    try:
        return find_input(model, name) == number
    except ValueError:  # the name of several inputs
        return False


def _is_whole(type: str) -> bool:
    return type in ("i4", "u4", "u2") or (type not in ("string", "boolean") and numpy_dtype(type).kind in "iu")


def _random(type: str, shape: Sequence[int], rng: np.random.Generator, small: int = _SMALL) -> Array:
    if type == "string":
        letters = rng.integers(ord("a"), ord("z") + 1, (*shape, 5), np.int32)
        return np.array(letters).view("<U5").reshape(shape)
    if type == "boolean":
        return rng.random(shape) < 0.5
    dtype = numpy_dtype(type)
    if _is_whole(type):
        most = min(small, 1 << ELEMENT_TYPES[type].bits - (type[0] == "i"))
        return rng.integers(0, most, shape, np.int64).astype(dtype)
    return rng.standard_normal(shape, np.float32).astype(dtype)
