"""Small arrays of integers, known or not, as Python has them: shapes are computed without numpy, which takes longer to
load than most models to check."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from irrun.spec.dims import Dim, Size, broadcast_shapes
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.pending import Array, Pending


class _Objects:
    """What stands for numpy's dtype of objects."""

    kind = "O"

    @property
    def dtype(self) -> Any:
        """For numpy, which asks for it where it is given this in place of one."""
        return np.dtype(object)

    def __eq__(self, other: object) -> bool:
        return other is object or isinstance(other, _Objects)

    def __hash__(self) -> int:
        return hash(object)


class Sizes(Pending):
    """An array of ints and `Dim`s of rank n, which is what `shape` says; its `items` are in row-major order.

    It does what kernels that compute shapes ask of an array of dtype object, and becomes one where a function of numpy
    gets it. As the value of a tensor it is of the element type `type`.

    >>> a = Sizes([1, 2, 3, 4], (2, 2))
    >>> (a * 10 + Sizes([5, 6])).tolist(), a[:, 1].tolist(), a.prod((0,)).tolist()
    ([[15, 26], [35, 46]], [2, 4], [3, 8])
    """

    __slots__ = ("_array", "items", "shape", "type")

    dtype = _Objects()

    def __init__(self, items: Iterable[Any], shape: Sequence[int] | None = None, type: str = "i64") -> None:
        self.items = tuple(items)
        super().__init__(len(self.items))
        self.shape = (self.size,) if shape is None else tuple(shape)
        self.type = type
        self._array: Array | None = None

    def array(self) -> Array:
        """Of the element type; of dtype object where an element is unknown."""
        if self._array is None:
            known = not self.symbolic
            self._array = np.array(self.items, numpy_dtype(self.type)).reshape(self.shape) if known else self._objects()
        return self._array

    def numbers(self) -> list[Any]:
        return list(self.items)

    @property
    def symbolic(self) -> bool:
        return any(isinstance(item, Dim) for item in self.items)

    @property
    def known(self) -> bool:
        return not self.symbolic

    @property
    def key(self) -> Hashable:
        return comparable(self.items)

    def _objects(self) -> Array:
        objects = np.empty(self.size, object)
        objects[:] = self.items
        return objects.reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self._objects() if dtype is None else self._objects().astype(dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def flat(self) -> Iterator[Any]:
        return iter(self.items)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[number] for number in range(len(self)))

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def item(self) -> Any:
        (item,) = self.items
        return item

    def tolist(self) -> Any:
        return [part.tolist() if isinstance(part, Sizes) else part for part in self] if self.shape else self.item()

    def ravel(self) -> Sizes:
        return Sizes(self.items)

    def astype(self, dtype: Any, copy: bool = True) -> Sizes:
        """The same: the numbers are exact."""
        return self

    def reshape(self, *shape: Any) -> Sizes:
        sizes = list(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
        if -1 in sizes:
            sizes[sizes.index(-1)] = self.size // -prod(sizes)
        if prod(sizes) != self.size or min(sizes, default=0) < 0:
            raise ValueError(f"{self.size} elements do not fit into {sizes}")
        return Sizes(self.items, sizes)

    def squeeze(self, axes: Sequence[int]) -> Sizes:
        return self.reshape([size for axis, size in enumerate(self.shape) if axis not in axes])

    def transpose(self, order: Sequence[int] | None = None) -> Sizes:
        order = range(self.ndim)[::-1] if order is None else order
        offsets = self._offsets()
        return self._at([offsets[axis] for axis in order], [self.shape[axis] for axis in order])

    def __getitem__(self, index: Any) -> Any:
        """What ints, slices and None select. Raises IndexError beyond the end, TypeError for another index."""
        parts = index if isinstance(index, tuple) else (index,)
        offsets = iter(self._offsets())
        chosen: list[Sequence[int]] = []
        shape: list[int] = []
        for part in parts:
            if part is None:
                shape.append(1)
                continue
            along = next(offsets)
            if isinstance(part, slice):
                chosen.append(along[part])
                shape.append(len(chosen[-1]))
            else:
                chosen.append([along[part]])
        rest = list(offsets)
        picked = self._at([*chosen, *rest], [*shape, *map(len, rest)])
        return picked if picked.shape or None in parts or not parts else picked.item()

    def take(self, indices: Sizes, axis: int) -> Sizes:
        """Those at `indices` along an axis, a negative one from its end. Raises IndexError beyond it."""
        offsets = self._offsets()
        offsets[axis] = [offsets[axis][index] for index in indices.items]
        return self._at(offsets, (*self.shape[:axis], *indices.shape, *self.shape[axis + 1 :]))

    def spread(self, shape: Sequence[int]) -> Sizes:
        """Broadcast to `shape`. Raises ValueError."""
        offsets = [(0,) * size for size in shape[: len(shape) - self.ndim]]
        for own, size, along in zip(self.shape, shape[len(shape) - self.ndim :], self._offsets(), strict=True):
            if own not in (1, size):
                raise ValueError(f"{self.shape} does not broadcast to {shape}")
            offsets.append(tuple(along) if own == size else (0,) * size)
        return self._at(offsets, shape)

    def prod(self, axis: Sequence[int], keepdims: bool = False) -> Sizes:
        return self._reduced(operator.mul, 1, axis, keepdims)

    def sum(self, axis: Sequence[int], keepdims: bool = False) -> Sizes:
        return self._reduced(operator.add, 0, axis, keepdims)

    def all(self) -> bool:
        return all(self.items)

    def _reduced(self, function: Callable[[Any, Any], Any], first: int, axes: Sequence[int], keepdims: bool) -> Sizes:
        offsets = self._offsets()
        kept = [along for axis, along in enumerate(offsets) if axis not in axes]
        inner = _places([offsets[axis] for axis in axes])
        items = [reduce(function, [self.items[place + step] for step in inner], first) for place in _places(kept)]
        shape = [1 if axis in axes else size for axis, size in enumerate(self.shape) if keepdims or axis not in axes]
        return Sizes(items, shape)

    def _offsets(self) -> list[Sequence[int]]:
        """For each axis how far its elements are from the first."""
        steps = [prod(self.shape[axis + 1 :]) for axis in range(self.ndim)]
        return [
            range(0, size * step, step) if size and step else [0] * size
            for size, step in zip(self.shape, steps, strict=True)
        ]

    def _at(self, offsets: Sequence[Sequence[int]], shape: Sequence[int]) -> Sizes:
        return Sizes([self.items[place] for place in _places(offsets)], shape)

    def _with(self, other: Any, function: Callable[[Any, Any], Any]) -> Any:
        if isinstance(other, Size):
            return Sizes([function(item, other) for item in self.items], self.shape)
        if not isinstance(other, Sizes):
            return NotImplemented
        a, b = self, other
        if a.shape != b.shape:
            common = broadcast_shapes(a.shape, b.shape)
            if common is None:
                raise ValueError(f"{a.shape} and {b.shape} do not broadcast")
            shape = [int(size) for size in common]
            a, b = a.spread(shape), b.spread(shape)
        return Sizes(map(function, a.items, b.items), a.shape)

    def __add__(self, other: Any) -> Any:
        return self._with(other, operator.add)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, operator.sub)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, operator.mul)

    def __floordiv__(self, other: Any) -> Any:
        return self._with(other, operator.floordiv)

    def __mod__(self, other: Any) -> Any:
        return self._with(other, operator.mod)

    def __and__(self, other: Any) -> Any:
        return self._with(other, operator.and_)

    def __lt__(self, other: Any) -> Any:
        return self._with(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._with(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._with(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._with(other, operator.ge)

    def __eq__(self, other: object) -> Any:
        return self._with(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._with(other, operator.ne)

    def __neg__(self) -> Sizes:
        return Sizes(map(operator.neg, self.items), self.shape)

    def __abs__(self) -> Sizes:
        return Sizes(map(abs, self.items), self.shape)

    __hash__ = None  # type: ignore[assignment]


def comparable(sizes: Sequence[Size] | None) -> Hashable:
    """What is equal for equal sizes: they themselves are only equal or not where that is decided."""
    if sizes is None:
        return None
    if Dim not in map(type, sizes):
        return tuple(sizes)
    return tuple([(size.key, size.low, size.high) if isinstance(size, Dim) else size for size in sizes])


def joined(arrays: Sequence[Any], axis: int) -> Any:
    """Arrays one behind the other along an axis. Raises ValueError where they do not fit."""
    if not all(isinstance(array, Sizes) for array in arrays):
        return np.concatenate(arrays, axis)
    ranks = {array.ndim for array in arrays}
    axis = range(*ranks)[axis]
    first, *others = [array.shape[:axis] + array.shape[axis + 1 :] for array in arrays]
    if any(other != first for other in others):
        raise ValueError(f"{[array.shape for array in arrays]} are not joined along axis {axis}")
    outer = range(prod(first[:axis]))
    runs = [prod(array.shape[axis:]) for array in arrays]
    items = [
        item
        for row in outer
        for array, run in zip(arrays, runs, strict=True)
        for item in array.items[row * run : (row + 1) * run]
    ]
    return Sizes(items, (*first[:axis], sum(array.shape[axis] for array in arrays), *first[axis:]))


def quiet(*arrays: Any) -> AbstractContextManager[Any]:
    """Without warnings of numpy, which knows nothing of `Sizes`."""
    return nullcontext() if all(isinstance(array, Sizes) for array in arrays) else np.errstate(all="ignore")


def _places(offsets: Sequence[Sequence[int]]) -> list[int]:
    """The sums of an offset for each axis, in row-major order."""
    places = [0]
    for along in offsets:
        places = [place + offset for place in places for offset in along]
    return places
