"""Traits: what an op is to those that rewrite, fuse and measure programs, said by the op itself, as plain data.

Ports and attributes are named as the op declares them. Nothing here computes or knows an op. Each is a tuple, which is
quick to declare, and there are many; one that says nothing but that it is there has no fields, and is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irrun.records import NamedTuple
from irrun.spec.dims import Shape, Size

if TYPE_CHECKING:
    from irrun.spec.body import Body
    from irrun.spec.op import Doubt, Tensor

Count = Callable[[Sequence[Shape], Mapping[str, Any], Shape], Size]
"""The number of multiplications and additions of a call, by the shapes of its inputs, its attributes and its result."""


class Elementwise(NamedTuple):
    """The result at a place depends only on the elements of the first `arity` inputs there; it has their shape.

    Inputs behind those, such as a coefficient, are parameters: they hold for all places, or broadcast to these.
    `broadcast` says how two or three inputs come to one shape: "numpy", which an attribute auto_broadcast may change;
    or "slopes": a vector may stand for axis 1 of the first input, else the second one broadcasts into it.
    `commutative`: where they broadcast by numpy's rule, the order of the two inputs does not matter. `function` is the
    name of that of numpy which computes it, if there is one.
    """

    arity: int
    commutative: bool = False
    broadcast: str = "numpy"
    function: str | None = None


def broadcasts_by_numpy(attrs: Mapping[str, Any]) -> bool:
    """Whether the inputs of an element-wise op with these attributes come to one shape by numpy's rule, if at all."""
    return bool(attrs.get("auto_broadcast", "numpy") != "pdpd")


class Bounded(NamedTuple):
    """No number among the results is below `least(attrs)`; NaN may be."""

    least: Callable[[Mapping[str, Any]], float]


class Converting:
    """The elements of the first input as another element type."""


class Waning:
    """What is left beside 0 of numbers as large as 1 that cancel one another, for arguments below it."""


class Whole:
    """Of whole numbers it makes whole ones, and the same whether these are integers or floats, which have no others."""


class Measuring:
    """The result is the shape of the first input, whatever its elements are."""


class Retyping:
    """Each output is the input of its number, as another element type, which the types of all inputs decide."""


class Resizing(NamedTuple):
    """The first input with axes of other sizes, which come of the input `targets`: its scales, where these are floats.

    Where the attributes `pads` are zeros and all axes have the size that they had, it is that input; and where
    `selects`, of the attributes, is true, the result has no values but its.
    """

    targets: str
    pads: tuple[str, ...]
    selects: Callable[[Mapping[str, Any]], bool]

    def keeps(self, attrs: Mapping[str, Any]) -> bool:
        """Whether the result has no values but those of the first input."""
        return self.selects(attrs) and not self.padded(attrs)

    def padded(self, attrs: Mapping[str, Any]) -> bool:
        """Whether zeros are put around the first input."""
        return any(any(attrs[name]) for name in self.pads)


class Normalizing:
    """The elements of the first input relative to the mean and the spread of some of them."""


class Permutation(NamedTuple):
    """The first input with its axes in another order, which is the input `order`; an empty one reverses them."""

    order: str


class Reshaping(NamedTuple):
    """The elements of the first input, in the same order, under another shape. The kernel refuses what the rule does.

    Where it is `free`, the second input is that shape, in which one size may be -1: what is left over. Where the
    attribute `kept` is true, 0 is the size that the first input has on that axis.
    """

    free: bool = False
    kept: str = ""


class Padding(NamedTuple):
    """The first input with elements added at the ends of its axes, or cut off where their number is negative.

    `begins` and `ends` are the inputs that have these numbers, one for each axis. The attribute `mode` says what is
    added: for "constant" the scalar input `fill`, or zeros where it is not connected.
    """

    begins: str
    ends: str
    fill: str
    mode: str


class Reduction(NamedTuple):
    """Axes of the first input folded into one element: those that the input `axes` lists, all of them different.

    The attribute `keep_dims` is whether a 1 stands in their place. `linear`: a weighted sum, as mean and sum are.
    """

    axes: str
    keep_dims: str
    linear: bool


class Transforming(NamedTuple):
    """Axes of the first input, as the input `axes` lists them, over all of which each element of the result sums up."""

    axes: str


class Convolving(NamedTuple):
    """Windows slid over the spatial axes of the first input, [N, C, *spatial], which is padded with zeros.

    The attributes `begins` and `ends` have the padding of the spatial axes. They count where the attribute `auto_pad`
    is "explicit"; where it is "valid" there is none. The second input are the filters, [features, C, *window], or
    [groups, features, C, *window] where they are `grouped`.
    """

    begins: str
    ends: str
    auto_pad: str
    grouped: bool = False


class Lookup(NamedTuple):
    """Slices of the input `table` along the scalar input `axis`, one for each element of the input `indices`.

    The attribute `batch_dims`, if it has one, is how many axes both have in common.
    """

    table: str
    indices: str
    axis: str
    batch_dims: str = ""


class MatrixProduct(NamedTuple):
    """The product of two inputs' matrices, the last two axes of each, transposed where the attributes say so."""

    transpose_a: str
    transpose_b: str


class Products(NamedTuple):
    """Sums of products: `operations(shapes, attrs, result)` is the number of multiplications and additions of a call.

    `shapes` are those of the inputs, at least of the first two, and `result` that of the first output; where sizes are
    unknown, so is the number.
    """

    operations: Count

    def known(self, inputs: Sequence[Tensor], attrs: Mapping[str, Any], result: Tensor) -> int:
        """Their number for the first two inputs; 0 where it takes a run to know sizes, or a rank is no right one."""
        shapes = [tuple(map(int, tensor.shape or ())) for tensor in (*inputs, result) if tensor.static]
        if len(shapes) <= len(inputs):
            return 0
        try:
            return int(self.operations(shapes[:-1], attrs, shapes[-1]))
        except IndexError:  # which an error that is ignored may leave
            return 0


class Accumulating(NamedTuple):
    """Sums of products among other work, as in the cells of a recurrent network: `operations` is as in `Products`.

    The `shapes` are those of all inputs, empty ones where nothing is connected. What is done besides does not count.
    """

    operations: Count


class Iterating(NamedTuple):
    """The body `body` again and again: `rounds(body, inputs)` times at most, None where only a run tells how often."""

    rounds: Callable[[Body, Sequence[Tensor | None]], Size | None]


class Repeating:
    """The first input repeated along new axes, and along those of size 1, until it has the shape of the second one.

    Where no more inputs are connected, the kernel refuses what the rule does.
    """


class Attending(NamedTuple):
    """Values [..., keys, width] averaged for queries [..., rows, size] by their likeness to keys [..., keys, size].

    These are the first three inputs; what is in front of the last two axes broadcasts, as in the fourth one, a mask
    [..., rows, keys], which is added to products of queries and keys times the fifth one. Input number `sink` is one
    more score of each row, [..., rows, 1], which broadcasts as well. Where the attribute `causal` is true the mask is
    that of the future.
    """

    sink: int
    causal: str


class Weighing(NamedTuple):
    """Exponentials of the first input along the axis that the attribute `axis` names, divided by their sum."""

    axis: str


class Joining(NamedTuple):
    """The inputs one behind the other along the axis that the attribute `axis` names."""

    axis: str


class Cutting(NamedTuple):
    """A part of the first input, as a view of it. The inputs `bounds` say where it begins and ends.

    These may be any numbers: where all other inputs are known, the rule has refused what the kernel cannot compute.
    """

    bounds: tuple[str, str]


class Quantizing(NamedTuple):
    """The first input rounded to few values at even distances.

    The inputs `limits` are the least and the largest value that is rounded, and what these become; they broadcast to
    the first input. The attribute `levels` is how many values there are.
    """

    limits: tuple[str, str, str, str]
    levels: str


class Branching(NamedTuple):
    """One of two bodies: `then` where the input `condition` is true, else `otherwise`."""

    condition: str
    then: str
    otherwise: str


class Reading(NamedTuple):
    """What the variable holds that the attribute `variable` names, in a shape that the attribute `shape` covers."""

    variable: str
    shape: str


class Overwriting(NamedTuple):
    """The first input with elements replaced: by the third input, at places of which the second one says where.

    Where several updates go to one place the last one counts, which the specification leaves open; so it is where the
    attributes have the values of `only`. `rows(arrays, shape)` are the places as rows of numbers, and the updates in
    the same order, or None, of known inputs and the shape of the first one; `depth` is how many of the last axes of the
    second input say one place.
    """

    rows: Callable[[Sequence[Any], Shape], tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None]]
    depth: int = 0
    only: tuple[tuple[str, Any], ...] = ()

    def shape(self, where: np.ndarray[Any, Any]) -> tuple[int, ...]:
        """How the places lie in the second input."""
        shape: tuple[int, ...] = where.shape
        return shape[: where.ndim - self.depth]


class Doubting(NamedTuple):
    """With some constants the op is defined, but they are seldom meant.

    `doubts(tensors, attrs)` are those, of what is known before a run, by the names of the inputs; a run says nothing of
    its data.
    """

    doubts: Callable[[Mapping[str, Tensor], Mapping[str, Any]], Iterator[Doubt]]


class Filling(NamedTuple):
    """Elements of the first output that nothing makes are the lowest of its type, where the attribute `mode` is `word`.

    So they are other ones where the op computes in another type.
    """

    mode: str
    word: str


class Selecting(NamedTuple):
    """Each element of the first output is one of the first input; which one, only their order may decide.

    That is so where `whole`, of the attributes and the shapes of both, all known, is true: else some are of nothing.
    """

    whole: Callable[[Mapping[str, Any], Shape, Shape], bool]


class Splitting(NamedTuple):
    """The first input in parts, which lie one behind the other along the axis that the input `axis` is."""

    axis: str


class Storing(NamedTuple):
    """The first input, which the variable that the attribute `variable` names holds from the end of the graph on."""

    variable: str


Trait = (
    Accumulating
    | Elementwise
    | Permutation
    | Reshaping
    | Padding
    | Reduction
    | Convolving
    | Cutting
    | Iterating
    | Products
    | Attending
    | Branching
    | Bounded
    | Converting
    | Doubting
    | Filling
    | Joining
    | Lookup
    | MatrixProduct
    | Measuring
    | Quantizing
    | Reading
    | Repeating
    | Resizing
    | Retyping
    | Normalizing
    | Overwriting
    | Selecting
    | Splitting
    | Storing
    | Transforming
    | Waning
    | Weighing
    | Whole
)
