"""Models made layer by layer, each computed right away for every set of sizes: so they are valid, and stay finite."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from differential.evaluation import computed, parameter
from differential.graph import Array, Case, Feed, Graph, Layer, Ref, text_of
from irrun.diagnostics import ExecutionError, IRError
from irrun.spec.dtypes import element_type
from irrun.spec.op import Violation

MAX_ELEMENTS = 100_000
"""Of a tensor."""

LARGEST = 1e4
"""What floats may grow to, unless the case is of special values."""


SMALL = (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 8, 9, 13, 16, 17, 24, 33)
LARGE = (48, 64, 65, 96, 130, 200)
"""Sizes of axes: those that blocks and vectors divide, and others."""

Size = int | tuple[int, ...]
"""Of an axis; a tuple has one for each set of sizes."""


class Rejected(Exception):
    """A layer that would make the model invalid, too large, or a heap of NaNs. The generator tries another one."""


@dataclass(frozen=True, eq=False)
class Value:
    """An output of a layer, and its arrays, one for each set of sizes.

    What is not `sure` may have other numbers in a run (a variable's), but not another shape.
    """

    ref: Ref
    arrays: tuple[Array, ...]
    constant: bool = False
    sure: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        return self.arrays[0].shape

    @property
    def rank(self) -> int:
        return self.arrays[0].ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.arrays[0].dtype

    @property
    def float(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def fixed(self) -> list[bool]:
        """Of which axes the size is the same for every set of sizes."""
        return [len({array.shape[axis] for array in self.arrays}) == 1 for axis in range(self.rank)]

    @property
    def static(self) -> bool:
        return all(self.fixed)

    @property
    def dims(self) -> tuple[int, ...]:
        return tuple(size if same else -1 for size, same in zip(self.shape, self.fixed, strict=True))


class Builder:
    """A model that grows. `random` decides everything; `sets` is how many sets of sizes there are."""

    def __init__(self, random: np.random.Generator, sets: int = 1, dtype: str = "f4", special: bool = False) -> None:
        self.random = random
        self.sets = sets
        self.dtype = np.dtype(dtype)
        self.special = special
        self.graph = Graph()
        self.feeds: list[Feed] = [{} for _ in range(sets)]
        self.values: list[Value] = []
        self.state = False
        self.most = MAX_ELEMENTS
        self.empty = False
        """Whether sizes may be 0."""
        self.large = False
        self.fusible = False
        """Whether chains are of ops that oneDNN takes behind others."""
        self.depth = 0
        """In how many bodies this is."""
        self.open: list[tuple[int, ...]] = []
        """Sizes that differ from set to set, for axes of inputs."""
        self.again = 0.5
        """How often a layer reads what another one gives, and not an input of its own."""

    # chance

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def choose(self, options: Sequence[Any]) -> Any:
        if not options:
            raise Rejected
        return options[int(self.random.integers(len(options)))]

    def number(self, low: int, high: int) -> int:
        """From `low` to `high`, both included."""
        return int(self.random.integers(low, high + 1))

    def size(self) -> int:
        """Sizes of axes: small ones, ones, and some that vectors and blocks do not divide."""
        if self.empty and self.chance(0.1):
            return 0
        return self.choose(LARGE if self.large and self.chance(0.5) else SMALL)

    def dim(self, probability: float = 0.4) -> Size:
        """A size, or one that differs from set to set."""
        return self.choose(self.open) if self.open and self.chance(probability) else self.size()

    def permutation(self, count: int) -> list[int]:
        return [int(axis) for axis in self.random.permutation(count)]

    def data(self, shape: Sequence[int], dtype: Any = None, low: float = -2, high: float = 2) -> Array:
        """Numbers of a type; of special cases also some that are no numbers, huge or tiny. Raises Rejected."""
        if math.prod(shape) > MAX_ELEMENTS:
            raise Rejected
        dtype = np.dtype(dtype or self.dtype)
        if dtype.kind == "b":
            return self.random.random(shape) < 0.5
        if dtype.kind in "iu":
            return self.random.integers(0 if dtype.kind == "u" else -5, 6, shape).astype(dtype)
        array = self.random.uniform(low, high, shape).astype(dtype)
        if self.special and array.size and self.chance(0.5):
            odd = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -1e-39, 3e4, -6e4]
            places = self.random.integers(0, array.size, self.number(1, 3))
            with np.errstate(all="ignore"):
                array.reshape(-1)[places] = self.random.choice(odd, len(places)).astype(dtype)
        return array

    # layers

    def layer(self, layer: Layer, arrays: Sequence[tuple[Array, ...]], constant: bool, sure: bool) -> list[Value]:
        """Add a layer whose outputs have these arrays."""
        for output in arrays:
            if any(array.ndim != output[0].ndim for array in output):
                raise Rejected
        values = [Value((0, 0), output) for output in arrays]
        layer.outputs = [(element_type(value.dtype), value.dims) for value in values]
        number = self.graph.add(layer)
        return [Value((number, port), output, constant, sure) for port, output in enumerate(arrays)]

    def parameter(self, arrays: Sequence[Array], open: Sequence[int] = ()) -> Value:
        """An input; the axes `open` are declared as unknown although they have one size."""
        value = Value((0, 0), tuple(arrays))
        dims = [-1 if axis in open else size for axis, size in enumerate(value.dims)]
        name = f"x{len(self.graph.of_type('Parameter'))}"
        for feed, array in zip(self.feeds, arrays, strict=True):
            feed[name] = array
        text = None
        if -1 in dims and self.depth == 0 and self.chance(0.15):
            sizes = np.array([array.shape for array in arrays])
            spans = [f"{low}..{2 * high + 1}" for low, high in zip(sizes.min(0), sizes.max(0), strict=True)]
            spans = [span if size < 0 else str(size) for span, size in zip(spans, dims, strict=True)]
            text = "..." if self.chance(0.3) else ",".join(spans)
        return self.layer(parameter(name, arrays[0], dims, text), [tuple(arrays)], False, True)[0]

    def input(self, shape: Sequence[Size], dtype: Any = None, **range: float) -> Value:
        """An input of random numbers; a tuple in `shape` is the size in each set."""
        shapes = [[size if isinstance(size, int) else size[n] for size in shape] for n in np.arange(self.sets)]
        open = [axis for axis in np.arange(len(shape)) if self.sets > 1 and self.chance(0.2)]
        return self.parameter([self.data(shape, dtype, **range) for shape in shapes], open)

    def constant(self, array: Any) -> Value:
        array = np.asarray(array)
        return self.layer(Layer("Constant-1", array=array), [(array,) * self.sets], True, True)[0]

    def i64(self, array: Any) -> Value:
        """Sizes, axes and the like, as i64 or i32."""
        return self.constant(np.asarray(array, self.choose([np.int64, np.int64, np.int32])))

    def op(self, name: str, *inputs: Value | None, **attrs: Any) -> list[Value]:
        """Add an op and compute it. Raises Rejected where that cannot be, or had better not be."""
        return self.computed(Layer(name, attrs={key: text_of(value) for key, value in attrs.items()}), inputs)

    def computed(self, layer: Layer, inputs: Sequence[Value | None]) -> list[Value]:
        """Add a layer of these inputs and compute it. Raises Rejected."""
        layer.inputs = [None if value is None else value.ref for value in inputs]
        given = [value for value in inputs if value is not None]
        sets = []
        for number in range(self.sets):
            try:
                sets.append(computed(layer, [None if v is None else v.arrays[number] for v in inputs]))
            except (Violation, IRError, ExecutionError):
                raise Rejected from None
            except Exception:
                if all(value.size for v in given for value in v.arrays):
                    raise
                raise Rejected from None  # kernels that do without elements are a thing of their own
        if len({len(outputs) for outputs in sets}) != 1:
            raise Rejected
        outputs = [tuple(group) for group in zip(*sets, strict=True)]
        if any(self._unfit(array) for output in outputs for array in output):
            raise Rejected
        constant = bool(given) and all(value.constant for value in given)
        return self.layer(layer, outputs, constant, all(value.sure for value in given))

    def one(self, name: str, *inputs: Value | None, **attrs: Any) -> Value:
        return self.op(name, *inputs, **attrs)[0]

    def _unfit(self, array: Array) -> bool:
        if array.size > self.most or array.ndim > 8:
            return True
        if array.dtype.kind != "f" or self.special or not array.size:
            return False
        wide = np.abs(array.astype(np.float64))
        return not bool((wide <= LARGEST).all())

    def result(self, value: Value) -> None:
        self.graph.add(Layer("Result-1", [value.ref]))

    def attempt(self, makers: Sequence[Callable[..., Value]], *args: Any, tries: int = 30) -> Value:
        """What the first of some random `makers` gives that is not rejected; layers of others stay, unread."""
        for _ in range(tries):
            count, known = len(self.graph.layers), [len(feed) for feed in self.feeds]
            values = len(self.values)
            try:
                return self.choose(makers)(self, *args)
            except Rejected:
                del self.graph.layers[count:], self.values[values:]
                for feed, size in zip(self.feeds, known, strict=True):
                    for name in list(feed)[size:]:
                        del feed[name]
        raise Rejected

    def pick(self, rank: int, fixed: Sequence[int] = (), shape: Sequence[Size] | None = None) -> Value:
        """A value of the main type, whose axes `fixed` have one size: one that is there, or an input."""
        fitting = [v for v in self.values if v.rank == rank and v.dtype == self.dtype and not v.constant]
        fitting = [v for v in fitting if all(v.fixed[axis] for axis in fixed)]
        if fitting and self.chance(self.again):
            return self.choose(fitting[-6:])
        sizes = [self.size() if axis in np.arange(rank)[list(fixed)] else self.dim() for axis in range(rank)]
        return self.keep(self.input(sizes if shape is None else shape))

    def keep(self, value: Value) -> Value:
        """Let later layers read `value`."""
        self.values.append(value)
        return value

    def case(self, kind: str, feeds: list[Feed]) -> Case:
        gaps = self.number(1, 1 << 30) if self.chance(0.7) else 0
        return Case(self.graph, feeds, kind, gaps, self.choose([1, 1, 1, 2]))
