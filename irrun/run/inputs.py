"""The arrays that a run is given: found by name or position, and checked against what the model declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, permutations
from typing import Any

import numpy as np

from irrun.check.origins import contradicts
from irrun.check.validate import find_input
from irrun.diagnostics import InputError
from irrun.interruption import hand_on
from irrun.ir.graph import Layer, Model
from irrun.ir.signature import names_of
from irrun.spec.dims import Dim
from irrun.spec.dtypes import ELEMENT_TYPES, WIDER, element_type, numpy_dtype
from irrun.spec.op import Array, Tensor
from irrun.spec.patterns import shape_text

_MAX_ORDERED = 5
"""Axes whose other orders are tried."""

Inputs = Mapping[str, Any] | Sequence[Any] | Array
"""Arrays by name or by position; an array alone is one input."""


class Binding:
    """Finds the arrays that the Parameters of a model are given; `tensors` are the declarations of all of these.

    It knows from run to run which Parameters names stand for, and what fits them as it is.
    """

    def __init__(self, model: Model, tensors: Sequence[Tensor]) -> None:
        self._model, self._tensors = model, tensors
        self._parameters = model.graph.parameters
        self._numbers: dict[str, int] = {}
        self._dtypes = [_dtype_of(tensor) for tensor in tensors]
        self._fitted: list[tuple[int, ...] | None] = [None] * len(tensors)  # the shapes that have fitted last

    def __call__(self, wanted: Sequence[int], inputs: Inputs, named: Mapping[str, Any]) -> list[Array]:
        """One array for each of the `wanted` Parameters. Raises InputError, which says all that is wrong."""
        parameters, tensors, numbers = self._parameters, self._tensors, self._numbers
        given: dict[int, Any] = {}
        problems: list[str] = []
        if not isinstance(inputs, Mapping):
            alone = any(hasattr(inputs, way) for way in ("__array__", "__dlpack__"))
            alone = alone or isinstance(inputs, int | float | complex | str)
            arrays = [inputs] if alone else inputs
            if not hasattr(arrays, "__len__"):
                raise InputError(
                    f"the inputs are {type(inputs).__name__}, expected arrays by name, a list or one array"
                )
            if len(arrays) > len(parameters):
                listing = ", ".join(f"`{_name(layer)}`" for layer in parameters) or "none"
                problems.append(f"{len(arrays)} arrays, but the inputs of the model are {listing}")
            given.update(zip(range(len(parameters)), arrays, strict=False))
            inputs = {}
        for name, array in (*inputs.items(), *named.items()):
            if name not in numbers:
                try:
                    numbers[name] = find_input(self._model, name)
                except ValueError as error:
                    problems.append(str(error))
                    continue
            number = numbers[name]
            if number in given:
                problems.append(f"`{name}` gives input `{_name(parameters[number])}` a second time")
            given[number] = array
        missing = [
            f"`{_name(parameters[number])}` ({tensors[number].type}{shape_text(tensors[number].shape, names=False)})"
            for number in wanted
            if number not in given
        ]
        if missing:
            problems.append(f"no array for input {', '.join(missing)}")
        bound = []
        for number in wanted:
            if number in given:
                try:
                    bound.append(self._fitting(number, given[number]))
                except InputError as error:
                    problems += error.problems
        if problems:
            raise InputError(*problems)
        return bound

    def _fitting(self, number: int, given: Any) -> Array:
        """`given` as an array of the declared type and shape."""
        dtype = self._dtypes[number]
        if isinstance(given, np.ndarray) and type(given) is not np.ndarray:
            given = _bare(_name(self._parameters[number]), given)
        if dtype is not None and isinstance(given, np.ndarray) and given.dtype == dtype:  # to numpy None is float64
            tensor = self._tensors[number]
            if given.shape == self._fitted[number] or not contradicts(given.shape, tensor):
                self._fitted[number] = given.shape
                return _truths(given) if tensor.type == "boolean" else given
        return _fitting(_name(self._parameters[number]), self._tensors[number], given, self._model.version)


def _bare(name: str, given: Array) -> Array:
    """An array of a class of its own, such as a matrix, whose operators are not those of arrays, as an array."""
    masked = int(np.ma.getmaskarray(given).sum()) if isinstance(given, np.ma.MaskedArray) else 0
    if masked:
        raise InputError(f"{masked} elements of input `{name}` are masked: give numbers for them, array.filled(0)")
    return np.asarray(given)


def _dtype_of(tensor: Tensor) -> np.dtype[Any] | None:
    """The dtype of arrays that need no conversion and no look at what they hold; None where there is more to it."""
    if not tensor.numeric or tensor.type == "dynamic":
        return None
    dtype = numpy_dtype(tensor.type)
    return dtype if element_type(dtype) == tensor.type else None


def _name(layer: Layer) -> str:
    return names_of(layer)[0]


def _fitting(name: str, tensor: Tensor, given: Any, version: int) -> Array:
    """`given` as an array of the declared type and shape."""
    array = given if isinstance(given, np.ndarray) else _array(name, given, tensor.type)
    if array.dtype.kind == "O" and tensor.type == "string" and all(isinstance(item, str) for item in array.flat):
        array = array.astype(np.str_)
    if array.dtype.kind == "O":
        raise InputError(f"input `{name}` is an array of dtype object, which the IR has no element type for")
    if array.dtype.kind == "S":
        raise InputError(f"input `{name}` holds bytes, not text: convert it, as in np.char.decode(array, 'utf-8')")
    if array.dtype.kind in "cMmV" and array.dtype.name not in {numpy_dtype(t).name for t in WIDER}:
        raise InputError(f"input `{name}` is an array of {array.dtype}, which the IR has no element type for")
    problems = []
    if contradicts(array.shape, tensor):
        expected = shape_text(tensor.shape, names=False)
        message = f"input `{name}` has shape {shape_text(array.shape)}, expected {expected}"
        problems.append(f"{message}: {_difference(array.shape, tensor)}{_hint(array.shape, tensor)}")
    try:
        array = _typed(name, array, tensor.type, version)
    except InputError as error:
        problems += error.problems
    if problems:
        raise InputError(*problems)
    return _truths(array) if tensor.type == "boolean" else array


def _truths(array: Array) -> Array:
    """Booleans whose bytes are 0 or 1: those of bytes that are viewed as booleans may be any, which kernels read
    in ways of their own."""
    codes = array.view(np.uint8)
    return codes != 0 if codes.size and codes.max() > 1 else array


def _difference(found: tuple[int, ...], tensor: Tensor) -> str:
    """Where a shape differs from what is declared."""
    expected = tensor.shape or ()
    if len(found) != len(expected):
        return f"its rank is {len(found)}, not {len(expected)}"
    pairs = zip(found, expected, strict=True)
    axis = next(axis for axis, (a, b) in enumerate(pairs) if (b == a) is False)
    size = expected[axis]
    return f"axis {axis} has {found[axis]} elements, not {size.bounds if isinstance(size, Dim) else size}"


def _hint(found: tuple[int, ...], tensor: Tensor) -> str:
    """What would make the shape fit: axes in another order, a batch that is missing or one too many."""
    rank = len(tensor.shape or ())
    if len(found) == rank - 1 and not contradicts((1, *found), tensor):
        return "; is the batch missing? array[np.newaxis] has one"
    if len(found) == rank + 1 and found[0] == 1 and not contradicts(found[1:], tensor):
        return "; is the batch too many? array[0] has none"
    if len(found) != rank or not 2 <= rank <= _MAX_ORDERED:
        return ""
    fitting = (order for order in permutations(range(rank)) if not contradicts(tuple(found[a] for a in order), tensor))
    order = min(fitting, key=lambda order: (order[0] != 0, _moves(order)), default=None)
    return "" if order is None else f"; are its axes in another order? array.transpose{order} fits"


def _moves(order: Sequence[int]) -> int:
    """How many axes stand behind another one than before: fewest where one block of axes has moved."""
    return sum(b != a + 1 for a, b in pairwise(order))


def _array(name: str, given: Any, type: str) -> Array:
    """Numbers that are not in an array yet, as one of the declared type where that loses nothing."""
    try:
        foreign = hasattr(given, "__dlpack__") and not hasattr(given, "__array__")
        array = np.from_dlpack(given) if foreign else np.asarray(given)
    except Exception as error:  # of whoever made it, as where it lies on another device
        hand_on(error)
        raise InputError(f"input `{name}` is no array: {error}") from None
    if type in ("dynamic", "string") or array.dtype.kind not in "biuf":
        return array
    return exactly(name, array, type)


def exactly(name: str, array: Array, type: str) -> Array:
    """Numbers as an array of another type, where that loses no more than digits of floats. Raises InputError."""
    with np.errstate(all="ignore"):
        converted: Array = array.astype(numpy_dtype(type))
        if array.dtype.kind == "f" and type.startswith(("f", "bf")):  # which are rounded
            lost = np.isfinite(array) & ~np.isfinite(converted)
        else:
            lost = converted.astype(array.dtype) != array
        if array.dtype.kind == "f" and type in ("i64", "u64"):  # whose highest integers are such floats again
            lost |= array >= 2.0 ** (63 if type == "i64" else 64)
    if lost.any():
        position = tuple(int(place) for place in np.argwhere(lost)[0])
        where = f"[{', '.join(map(str, position))}]" if position else ""
        raise InputError(f"`{name}{where}` is {array[position]}, which {type} cannot hold")
    return converted


def _typed(name: str, array: Array, type: str, version: int) -> Array:
    order = "" if array.dtype.isnative else " of the other byte order"  # which is converted
    array = array.astype(array.dtype.newbyteorder("=")) if order else array
    try:
        found = element_type(array.dtype)
    except TypeError:
        raise InputError(f"input `{name}` is an array of {array.dtype}, which the IR has no element type for") from None
    if type in ("dynamic", found) or (ELEMENT_TYPES[type].bits < 8 and array.dtype == numpy_dtype(type)):
        return array
    if version == 10 and type == "f16" and found == "f32":  # programs of its time fed f32
        return array.astype(np.float16)
    if WIDER.get(type) == found:
        converted = array.astype(numpy_dtype(type))
        if np.array_equal(converted.astype(array.dtype), array, equal_nan=found == "f32"):
            return converted
        raise InputError(f"input `{name}` has values that {type} cannot hold exactly")
    how = f"array.astype({numpy_dtype(type).name!r})" if type != "string" else "array.astype(str)"
    raise InputError(f"input `{name}` is {found}{order}, expected {type}: convert it, as in {how}")
