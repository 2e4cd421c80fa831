"""What passes are told about the run that a program is made for."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar

import numpy as np

from irrun.engines.compressed import CompressedWeights
from irrun.engines.work import Compiled, Engine, Work
from irrun.ir.graph import Layer
from irrun.ir.weights import Weights
from irrun.records import NamedTuple, dataclass
from irrun.run.alignment import Alignment
from irrun.spec.dims import Shape
from irrun.spec.evaluation import Evaluation, Presumed
from irrun.spec.op import Array, Inferred, Tensor

Attributes = Mapping[str, Any]
Views = list[tuple[tuple[int, ...], tuple[int, ...] | None, int]]
"""Shapes, strides (none in C order) and first bytes of the results of an instruction within the memory of its input."""


MAX_ANSWERS, MAX_TAKEN, MAX_CODES = 1 << 14, 64, 1 << 10
"""What rules have said and where views lie, works, and codes of constants, as many as are remembered."""

_Value = TypeVar("_Value")


class Form(NamedTuple):
    """What is known of an instruction whatever open sizes are: those with one `number` are of one kind where their
    tensors `lying` lie in one way."""

    number: int
    lying: tuple[int, ...]


class Taken(NamedTuple):
    """What an engine has made of an instruction and `fused` of its posts; `weights` are operands of it, by position."""

    engine: Engine
    fused: int
    work: Work
    compiled: Compiled
    weights: tuple[int, ...]


class Kept(dict[Hashable, _Value]):
    """What programs of one model share. Beyond `most` all is forgotten, which may be made again: each set of input
    shapes brings more."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: Hashable, value: _Value) -> None:
        if len(self) >= self._most:
            self.clear()
        super().__setitem__(key, value)


@dataclass(slots=True, eq=False)
class Setting:
    """`shapes` are those of the inputs, None while they are what the model declares; a size may be left open in them,
    then it is a `Dim`. A program may take `limit` bytes. It is made `anew` of one that was just built, or else again of
    one for any inputs, on which all that has nothing to do with shapes was done.

    `engines` compute it, the first one first; `refused` are those that have failed to bind a layer.
    In a program that is `watched` every tensor is made, also those that nobody reads, and has memory of its own, so
    that it may be written to; where it is `checked` inputs are kept until an instruction is through; where it is
    `iterated` those of the program are kept to its end, so that the next run need not be given again what is the same.
    One that `encloses` others prepares them for the sizes that its runs see. Where weights may stay `compressed` there
    are engines that read them so; they do not if all take no more than `expanded` bytes as f32.
    `bf16` has the ops that engines compute in that type where it may be, None where all is f32.
    Where it is `quantized` there is an engine that multiplies codes of what is on a grid; where it is `literal` no
    product is made one of another type. A program that is to be settled has what is `presumed` of what is open in
    it; one that was settled may have `forms` of its instructions, by their identity.
    What programs of one model share: `answers` are what rules have said of what is all there is to know, `views` where
    results lay that only look at memory, both beside the attributes that keys know by their identity, which are kept
    for that; `taken` what engines have made of instructions for sizes that a run has told, `alignment` has copies of
    constants, `dense` values of compressed weights, `codes` whole numbers as such.
    """

    weights: Weights
    limit: int
    engines: Sequence[Engine] = ()
    shapes: tuple[Shape, ...] | None = None
    anew: bool = True
    watched: bool = False
    checked: bool = False
    iterated: bool = False
    compressed: bool = False
    bf16: frozenset[str] | None = None
    encloses: bool = False
    expanded: int = 0
    quantized: bool = False
    literal: bool = False
    presumed: Presumed | None = None
    forms: Mapping[int, Form] = field(default_factory=dict)
    refused: set[tuple[Layer, str]] = field(default_factory=set)
    answers: dict[Hashable, tuple[Attributes, Inferred]] = field(default_factory=lambda: Kept(MAX_ANSWERS))
    views: dict[Hashable, tuple[Attributes, Views]] = field(default_factory=lambda: Kept(MAX_ANSWERS))
    taken: dict[Hashable, Taken] = field(default_factory=lambda: Kept(MAX_TAKEN))
    alignment: Alignment = field(default_factory=Alignment)
    _dense: dict[CompressedWeights, Array] = field(default_factory=dict)
    _codes: dict[Hashable, tuple[Array, CompressedWeights]] = field(default_factory=lambda: Kept(MAX_CODES))

    @property
    def sizes(self) -> Evaluation | None:
        """What is open in a program that is to be settled, in numbers."""
        return None if self.presumed is None else self.presumed.sizes

    def sized(self, tensor: Tensor) -> bool:
        """Whether all sizes of a tensor are known, or are to be settled before the run."""
        sizes = self.sizes
        if tensor.static or sizes is None:
            return tensor.static
        return tensor.shape is not None and sizes.can_tell(tensor.shape)

    def dense(self, weights: CompressedWeights) -> Array:
        """The values of weights, f32, which programs share."""
        if weights not in self._dense:
            array = self._dense[weights] = weights.dense()
            array.flags.writeable = False
        return self._dense[weights]

    def codes(self, weights: Array) -> CompressedWeights:
        """Constant whole numbers from -128 to 127 as codes, which programs share."""
        found = self._codes.get(id(weights))
        if found is None:
            stored = weights.astype(np.int8).reshape(-1).view(np.uint8)
            scale = np.ones((1,) * weights.ndim, np.float32)
            made = CompressedWeights("i8", stored, weights.shape, weights.shape, scale)
            found = self._codes[id(weights)] = weights, made  # which is of that id as long as it is kept
        return found[1]
