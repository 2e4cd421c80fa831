"""Constants that tell nothing but the range and the spread of those in whose place they are."""

from __future__ import annotations

import string
from typing import Any

import numpy as np

from irrun.ir.graph import Layer, Model
from irrun.spec.dtypes import CODES
from irrun.spec.op import Array

MAX_KEPT = 64
"""Elements of an integer constant that is kept: shapes, axes and indices decide what a model is."""

BLOCK = 1 << 20
"""Elements of a large constant that are made at a time, and alike those in whose place they are."""

_INDEX_TYPES = ("i32", "i64", "u32", "u64", "i16", "u16")


def strip_weights(model: Model, how: str, seed: int) -> int:
    """Put "random" numbers, or "zero", in the place of weights; how many constants were changed.

    Short integers, truth values, and constants of one value stay as they are. Raises IRError, and WeightsError for what
    cannot be read.
    """
    random = np.random.default_rng(seed)
    made: dict[tuple[int, int, str, str], Array] = {}
    count = 0
    for layer in model.graph.walk():
        if layer.type != "Const" or _kept(model, layer):
            continue
        blob, given = model.weights.check(layer), layer.attributes
        key = (blob.offset, blob.size, given["element_type"], given.get("shape", ""))
        if key not in made:  # those that share their bytes share them again
            array = model.weights.constant(layer)
            made[key] = np.zeros_like(array) if how == "zero" and array.dtype.kind != "U" else _alike(array, random)
        model.set_constant(layer, made[key], type=given["element_type"])
        count += 1
    return count


def _kept(model: Model, layer: Layer) -> bool:
    type = layer.attributes.get("element_type", "")
    size = int(np.prod(model.weights.check(layer).shape, dtype=np.int64))
    return type == "boolean" or not size or (type in _INDEX_TYPES and size <= MAX_KEPT)


def _alike(array: Array, random: np.random.Generator) -> Array:
    """Random elements of the same type: floats of the same mean, spread and range, with as many zeros and others that
    are not finite; integers in the same range, with as many zeros; texts of the same lengths. Numbers that rise or
    fall, or all of whose rows do, do so again, as boundaries and offsets have to."""
    if array.dtype.kind == "U":
        texts = ["".join(random.choice(list(string.ascii_lowercase), len(text))) for text in array.reshape(-1).tolist()]
        return np.array(texts, array.dtype).reshape(array.shape)
    flat = array.reshape(-1)
    ordered = _ordered(flat, random)
    if ordered is not None:
        return ordered.reshape(array.shape)
    whole = array.dtype.kind in "iu" or _whole(array.dtype)
    made = np.empty(flat.shape, flat.dtype)
    with np.errstate(all="ignore"):
        for begin in range(0, flat.size, BLOCK):
            part = flat[begin : begin + BLOCK]
            numbers = part if whole else part.astype(np.float64)
            made[begin : begin + BLOCK] = _placed(numbers, (_integers if whole else _floats)(numbers, random), random)
        return _in_rows(array, made.reshape(array.shape))


def _in_rows(array: Array, made: Array) -> Array:
    """`made`, with rows that rise where all rows of the array do, and fall where all fall."""
    if array.ndim < 2 or array.shape[-1] < 2:
        return made
    some = array.reshape(-1, array.shape[-1])[: BLOCK // array.shape[-1] + 1]  # most weights are not
    if not any(_in_order(some)):
        return made
    rising, falling = _in_order(array)
    if not rising and not falling:
        return made
    ordered = np.sort(made if made.dtype.kind in "iuf" else made.astype(np.float64), axis=-1).astype(made.dtype)
    return ordered if rising else ordered[..., ::-1]


def _in_order(array: Array) -> tuple[bool, bool]:
    """Whether all rows rise, and whether all fall."""
    rows = array if array.dtype.kind in "iuf" else array.astype(np.float64)
    before, behind = rows[..., :-1], rows[..., 1:]
    return bool((before <= behind).all()), bool((before >= behind).all())


def _ordered(flat: Array, random: np.random.Generator) -> Array | None:
    """Random elements between the ends of a vector that rises or falls, which do so, too; None for other vectors.

    Where each element of the vector is another one, so they are; it stays as it is where its type has too few numbers.
    """
    if not any(_in_order(flat[:BLOCK])):
        return None
    whole = flat.dtype.kind in "iu" or _whole(flat.dtype)
    numbers = flat.astype(np.int64 if whole else np.float64)
    turned = slice(None, None, -1 if numbers[0] > numbers[-1] else 1)
    rising = numbers[turned]
    distinct = bool((rising[1:] > rising[:-1]).all())
    if not distinct and not (rising[1:] >= rising[:-1]).all():
        return None
    finite = np.flatnonzero(np.isfinite(rising))
    if finite.size < 3:
        return flat
    first, last = int(finite[0]), int(finite[-1])
    low, high = rising[first], rising[last]
    parts = np.sort(random.random(last - first - 1))
    made = rising.copy()
    if whole:
        least = np.arange(1, parts.size + 1) if distinct else np.zeros(parts.size, np.int64)
        spare = int(high) - int(low) - (parts.size + 1 if distinct else 0)
        made[first + 1 : last] = low + least + np.minimum((parts * (spare + 1)).astype(np.int64), spare)
    else:
        made[first + 1 : last] = low + parts * (high - low)
    found = made.astype(flat.dtype)[turned]
    again = found.astype(numbers.dtype)[turned]
    return flat if distinct and not (again[1:] > again[:-1]).all() else found


def _whole(dtype: np.dtype[Any]) -> bool:
    """Whether these are the integers of few bits of ml_dtypes."""
    return dtype.name in ("int4", "uint4", "int2", "uint2") or dtype.name in CODES


def _integers(flat: Array, random: np.random.Generator) -> Array:
    """Integers in the range of those of a vector, but no zeros where these are not all the same."""
    low, high = int(flat.min()), int(flat.max())
    kind = np.uint64 if high >= 2**63 else np.int64
    if low == high or not low <= 0 <= high:
        return random.integers(low, high, flat.size, kind, endpoint=True)
    made = random.integers(low, high, flat.size, kind)
    made[made >= 0] += 1
    return made


def _floats(numbers: Array, random: np.random.Generator) -> Array:
    """Normal numbers of the mean and the standard deviation of the finite ones that are not 0, within their range."""
    known = numbers[np.isfinite(numbers) & (numbers != 0)]
    if not known.size:
        return np.zeros_like(numbers)
    low, high = known.min(), known.max()
    if low == high:
        return np.full_like(numbers, low)
    unit = max(-low, high)  # the square of which may be more than f64 has
    mean, spread = (known / unit).mean(), (known / unit).std()
    made = random.standard_normal(numbers.size)
    if numbers.size > 1 and made.std():
        made = (made - made.mean()) / made.std()
    clipped: Array = np.clip((mean + spread * made) * unit, low, high)
    return clipped


def _placed(given: Array, made: Array, random: np.random.Generator) -> Array:
    """`made`, with the zeros and what is not finite of `given` at other places."""
    special = (given == 0) | (~np.isfinite(given) if given.dtype.kind == "f" else np.zeros(given.shape, bool))
    values = given[special]
    if values.size:
        made[random.permutation(given.size)[: values.size]] = values
    return made
