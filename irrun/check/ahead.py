"""Values that are known before a run: small tensors of known inputs, computed by the ops' own kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from irrun.interruption import hand_on
from irrun.ir.naming import MAX_INVENTED
from irrun.spec.dims import Dim, fresh, product
from irrun.spec.dtypes import ELEMENT_TYPES, numpy_dtype
from irrun.spec.op import INTEGER, Array, Op, Tensor, results_of
from irrun.spec.pending import Pending
from irrun.spec.sizes import Sizes, quiet
from irrun.spec.traits import Converting, Whole

if TYPE_CHECKING:
    from irrun.check.infer import Inference

MAX_PROPAGATED = 4096
"""Elements of a tensor whose value is carried along: shapes, axes and small tables, not weights."""

MAX_SYMBOLIC = 256
"""Elements of a tensor with unknown ones whose value is carried along: a shape has 64 at most."""

MAX_SYMBOLIC_WORK = 200_000
"""Such elements in a whole model; arithmetic with them is slow."""

MAX_EXACT_WORK = 50_000
"""Elements of larger tensors in a whole model that are computed as Python's integers: so many take as long as to load
numpy."""

MAX_COUNTED = 256
"""What an attribute may say, or its elements multiplied, for the op to be computed ahead: it may count work."""

_RANGES = {
    type: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if type[0] == "i" else (0, 2**bits - 1)
    for type in INTEGER
    for bits in [int(type[1:])]
}
"""The least and the largest number of the types of integers."""

_EXACT = frozenset({"f32", "f64"})
"""The types of floats that hold all whole numbers that sizes come to, as long as these are not multiplied."""

_INVENTED = ("i32", "i64")
"""Element types of tensors that may hold sizes: where their values are unknown, these have names."""


class Spent:
    """The elements of larger tensors that a model's were so far."""

    def __init__(self) -> None:
        self.elements = 0


def computed_ahead(
    op: Op,
    attrs: Mapping[str, Any],
    inputs: Sequence[Tensor | None],
    outputs: Sequence[Tensor],
    types: Mapping[str, str],
    inference: Inference,
) -> list[Tensor] | None:
    """The outputs with the values that the op's own kernel gives, or None where they are not worth it or do not come.

    Where nobody has to know by now, these are computed once someone asks.
    """
    contents = [tensor.content for tensor in inputs if tensor is not None and tensor.content is not None]
    symbolic = any(tensor.symbolic for tensor in inputs if tensor is not None)
    small = sum(content.size for content in contents) <= MAX_PROPAGATED
    if not (op.pure and small and op.context <= {"types"} and (follows(op, inputs) or not symbolic)):
        return None
    if not all(_small(tensor) for tensor in outputs) or not all(map(_moderate, attrs.values())):
        return None
    if any(port.low_first for port in op.inputs):  # the values of bits are in the other order
        return None
    sizes = [content.size for content in contents] + [int(product(tensor.shape or ())) for tensor in outputs]
    if symbolic:
        inference.symbolic += sum(sizes)
        if max(sizes) > MAX_SYMBOLIC or inference.symbolic > MAX_SYMBOLIC_WORK:
            return None
    kernel = partial(op.kernel, **attrs, **({"types": types} if op.context else {}))
    whole = all(tensor.type in INTEGER for tensor in (*inputs, *outputs) if tensor is not None)
    floats = any(tensor is not None and tensor.type in _EXACT and tensor.symbolic for tensor in inputs)
    rounded = floats and op.trait(Whole) is not None
    work = _Work(kernel, inputs, outputs, inference.exact, exact=op.symbolic and whole, rounded=rounded)
    sized = op.symbolic and whole and not work.sources and max(sizes) <= MAX_SYMBOLIC
    if symbolic or sized:
        return work.results
    return [
        Tensor(tensor.type, tensor.shape, _Computed(work, number, int(product(tensor.shape or ()))))
        for number, tensor in enumerate(outputs)
    ]


def follows(op: Op, inputs: Sequence[Tensor | None]) -> bool:
    """Whether the kernel computes with unknown elements of its inputs.

    Arithmetic with these is that of integers: where they are floats, they may be converted and moved, and what makes
    whole numbers of whole ones may be computed of those.
    """
    types = INTEGER | (_EXACT if op.trait(Whole) is not None else frozenset())
    whole = all(tensor is None or tensor.type in types or not tensor.symbolic for tensor in inputs)
    return op.symbolic and (whole or bool(op.view_of) or op.trait(Converting) is not None)


def invented(tensor: Tensor) -> Tensor:
    """An unknown small tensor of integers with a dimension for each element."""
    if tensor.type not in _INVENTED or tensor.shape is None or len(tensor.shape) > 1 or not tensor.static:
        return tensor
    count = int(product(tensor.shape))
    if count > MAX_INVENTED:
        return tensor
    value = Sizes([fresh(None) for _ in range(count)], [int(size) for size in tensor.shape], tensor.type)
    return Tensor(tensor.type, tensor.shape, value)


class _Work:
    """A small tensor or several, to be computed by a kernel once someone asks; its `sources` are such that it reads.

    One that also computes with unknown elements is `exact`: integers are given to it as they are, as long as they are
    few, or not many of these are in the whole model. One that is `rounded` computes with floats, which do not hold all.
    """

    def __init__(
        self,
        kernel: Callable[..., Any],
        inputs: Sequence[Tensor | None],
        outputs: Sequence[Tensor],
        spent: Spent,
        *,
        exact: bool,
        rounded: bool,
    ) -> None:
        self._kernel, self._inputs, self._outputs, self._exact = kernel, inputs, outputs, exact
        self._rounded = rounded
        self._spent = spent
        contents = [tensor.content for tensor in inputs if tensor is not None]
        self.sources = [content.work for content in contents if isinstance(content, _Computed)]
        self._done = False
        self._results: list[Tensor] | None = None

    @property
    def results(self) -> list[Tensor] | None:
        """The outputs with values, or None."""
        waiting = [self]  # a stack of our own: a mask may be made by a hundred updates, one after the other
        while waiting:
            work = waiting[-1]
            before = [source for source in work.sources if not source._done]
            waiting += before
            if not before:
                waiting.pop()._compute()
        return self._results

    def _compute(self) -> None:
        if self._done:
            return
        if self._exact and self._is_affordable():
            self._results = self._computed([_sizes(tensor) for tensor in self._inputs])
        if not self._results:
            self._results = self._computed([None if tensor is None else tensor.value for tensor in self._inputs])
        self._done = True

    def _is_affordable(self) -> bool:
        sizes = [int(product(tensor.shape or ())) for tensor in self._outputs]
        self._spent.elements += sum(size for size in sizes if size > MAX_SYMBOLIC)
        return self._spent.elements <= MAX_EXACT_WORK

    def _computed(self, arrays: Sequence[Array | Sizes | None]) -> list[Tensor] | None:
        if any(array is None and tensor is not None for array, tensor in zip(arrays, self._inputs, strict=True)):
            return None
        try:
            with quiet(*(array for array in arrays if array is not None)):
                if self._rounded:
                    arrays = [array if array is None else _as_integers(array) for array in arrays]
                results = results_of(self._kernel(*arrays))
            valued = [_valued(tensor, result) for tensor, result in zip(self._outputs, results, strict=True)]
            return None if self._rounded and not all(map(_held, valued)) else valued
        except Exception as error:  # a question about an unknown dimension, or a failure that the run reports better
            hand_on(error)
            return None


class _Computed(Pending):
    """A result of a kernel that nobody has asked for yet."""

    __slots__ = ("_number", "work")

    def __init__(self, work: _Work, number: int, size: int) -> None:
        super().__init__(size)
        self.work, self._number = work, number

    def array(self) -> Array | None:
        results = self.work.results
        return None if results is None else results[self._number].value

    def numbers(self) -> list[Any] | None:
        results = self.work.results
        return None if results is None else results[self._number].numbers

    @property
    def known(self) -> bool:
        return self.work.results is not None

    @property
    def key(self) -> Hashable:
        content = self.content
        return content.key if isinstance(content, Sizes) else super().key

    @property
    def content(self) -> Array | Pending | None:
        """What the kernel has given."""
        results = self.work.results
        return None if results is None else results[self._number].content


def _sizes(tensor: Tensor | None) -> Sizes | None:
    """The value of a tensor of few integers, without numpy."""
    if tensor is None or tensor.type not in INTEGER or tensor.shape is None or not tensor.static:
        return None
    content = tensor.content
    if isinstance(content, _Computed):
        content = content.content
    if content is None or content.size > MAX_SYMBOLIC or isinstance(content, Sizes):
        return content if isinstance(content, Sizes) else None
    numbers = tensor.numbers
    return None if numbers is None else Sizes(numbers, [int(size) for size in tensor.shape], tensor.type)


def _valued(tensor: Tensor, value: Any) -> Tensor:
    """A tensor with what a kernel has given.

    Raises OverflowError where the type does not hold numbers of any size, and TypeError for a fraction among integers.
    """
    low, high = _RANGES.get(tensor.type, (-(2**63), 2**64 - 1))
    if isinstance(value, Dim | int | Sizes) and tensor.type in _RANGES:
        sizes = value if isinstance(value, Sizes) else Sizes([value], ())
        if not all(isinstance(item, Dim) or low <= item <= high for item in sizes.items):
            raise OverflowError  # a run wraps it around
        return Tensor(tensor.type, tensor.shape, Sizes(sizes.items, sizes.shape, tensor.type))
    value = np.asarray(value)
    if value.dtype == object and any(isinstance(item, int) and not low <= item <= high for item in value.flat):
        raise OverflowError  # a run wraps it around
    if value.dtype.kind in "fO" and tensor.type in _RANGES and not all(map(_whole, value.flat)):
        raise TypeError  # a run has the type to round by
    if value.dtype == object and tensor.type in ELEMENT_TYPES and all(isinstance(item, int) for item in value.flat):
        value = value.astype(numpy_dtype(tensor.type))
    if value.dtype.kind == "i" and tensor.type in ("i8", "i16", "i32"):  # a scalar comes out as an int of Python
        value = value.astype(numpy_dtype(tensor.type))
    return Tensor(tensor.type, tensor.shape, value)


def _as_integers(array: Array | Sizes) -> Array | Sizes:
    """The numbers beside unknown ones as these are computed with.

    Raises TypeError for fractions, infinity, NaN, and numbers beyond those up to which f32 holds each whole one.
    """
    if array.dtype == object or array.dtype.kind != "f":
        return array
    whole = array.astype(np.int64)
    if not np.array_equal(whole, array) or (np.abs(whole) > 2**24).any():
        raise TypeError  # a run has the type to compute in
    return whole


def _held(tensor: Tensor) -> bool:
    """Whether floats hold what is in a tensor: no products of unknown sizes, which may be larger than sizes are."""
    sizes = [item for item in tensor.numbers or () if isinstance(item, Dim)]
    return all(len(monomial) < 2 for size in sizes for monomial in size.terms)


def _whole(item: Any) -> bool:
    return isinstance(item, Dim | int | np.integer)


def _moderate(value: Any) -> bool:
    """Whether what an attribute says cannot make a kernel on small tensors slow or large."""
    numbers = value if isinstance(value, tuple) else (value,)
    return math.prod(max(abs(number), 1) for number in numbers if isinstance(number, int)) <= MAX_COUNTED


def _small(tensor: Tensor) -> bool:
    return tensor.static and (product(tensor.shape or ()) <= MAX_PROPAGATED) is True
