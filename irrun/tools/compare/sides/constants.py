"""The constants of two models that should be the same."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from irrun.ir.graph import Layer, Model, Value
from irrun.records import dataclass
from irrun.run.keys import Path
from irrun.spec.op import Array
from irrun.tools.compare.sides.alignment import Pair
from irrun.tools.compare.sides.tensors import origins

_CHUNK = 1 << 20
"""Elements of constants that are compared at a time."""


@dataclass(frozen=True, slots=True)
class ConstantDifference:
    """Constants of two models that should be the same: the largest distance of elements, or types or shapes."""

    ours: Layer
    theirs: Layer
    what: str
    largest: float | None = None


def constant_differences(ours: Model, theirs: Model, pairs: Iterable[Pair]) -> list[ConstantDifference]:
    """The constants of aligned tensors that are not the same, in the order of our file.

    One that is only converted counts as it is held; what is computed of several constants is not looked at.
    """
    found = []
    for pair in pairs:
        mine, other = held_by(pair.ours.layer), held_by(pair.theirs.layer)
        if mine is not None and other is not None and mine is pair.ours.layer:
            what = _different(ours.weights.constant(mine), theirs.weights.constant(other))
            if what is not None:
                found.append(ConstantDifference(mine, other, *what))
    return sorted(found, key=lambda difference: difference.ours.span.line)


def held_by(layer: Layer) -> Layer | None:
    """The constant that a tensor is, perhaps of another type."""
    while layer.type != "Const":
        source = layer.inputs[0] if len(layer.inputs) == 1 == len(layer.outputs) else None
        if source is None or source.port.dims != layer.outputs[0].port.dims or layer.bodies:
            return None
        layer = source.layer
    return layer


def _different(mine: Array, other: Array) -> tuple[str, float | None] | None:
    """How two constants differ; None where they do not."""
    if mine.shape != other.shape:
        return f"its shape is {list(mine.shape)}, there {list(other.shape)}", None
    if mine.dtype.kind == "U" or other.dtype.kind == "U":
        return None if np.array_equal(mine, other) else ("its texts are others", None)
    count, largest = 0, 0.0
    flat, there = mine.reshape(-1), other.reshape(-1)
    with np.errstate(all="ignore"):
        for begin in range(0, mine.size, _CHUNK):
            a, b = (part[begin : begin + _CHUNK].astype(np.float64) for part in (flat, there))
            unequal = ~((a == b) | (np.isnan(a) & np.isnan(b)))
            count += int(unequal.sum())
            largest = max(largest, float(np.max(np.abs(a - b)[unequal], initial=0.0)))
    if not count:
        return None if mine.dtype == other.dtype else (f"it is {mine.dtype}, there {other.dtype}, of equal values", 0.0)
    return f"{count:,} of {mine.size:,} elements differ", largest


def is_constant(layer: Layer) -> bool:
    """Whether all that it is made of is in the file."""
    todo, seen = [layer], {layer}
    while todo:
        layer = todo.pop()
        if not layer.inputs and layer.type != "Const":
            return False
        before = {value.layer for value in layer.inputs if value is not None} - seen
        seen |= before
        todo += before
    return True


def is_constant_in(value: Value, path: Path) -> bool:
    """Whether a tensor that a layer reads in these bodies is constant, also where it comes into them from outside."""
    found = [source.layer for source, _ in origins(value, path)]
    return bool(found) and all(map(is_constant, found))
