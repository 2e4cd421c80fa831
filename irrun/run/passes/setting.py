"""What passes are told about the run that a program is made for."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from irrun.engines.compressed import CompressedWeights
from irrun.engines.reserve import Reserve
from irrun.engines.work import Compiled, Engine, Work
from irrun.ir.graph import Layer
from irrun.ir.weights import Weights
from irrun.records import NamedTuple, dataclass
from irrun.run.alignment import Alignment
from irrun.spec.dims import Shape
from irrun.spec.evaluation import Evaluation, Presumed
from irrun.spec.op import Array, Inferred, Tensor

if TYPE_CHECKING:
    from irrun.run.program import Instruction, Program

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
    """What holds for all programs of a model, what they share, and what is said of one of them."""

    weights: Weights
    limit: int
    """Bytes that a program may take."""
    engines: Sequence[Engine] = ()
    """What computes it, the first one first."""
    checked: bool = False
    """What engines compute is held against the ops' kernels: inputs of an instruction are kept until it is through."""
    compressed: bool = False
    """Weights may stay compressed: there are engines that read them so."""
    expanded: int = 0
    """They do not where all take no more than so many bytes as f32."""
    quantized: bool = False
    """There is an engine that multiplies codes of what is on a grid."""
    literal: bool = False
    """No product is made one of another type."""
    encloses: bool = False
    """Rows of instructions become programs of their own, for the sizes that runs see."""
    bf16: frozenset[str] | None = None
    """Ops that engines compute in that type where it may be; None where all is f32."""

    shapes: tuple[Shape, ...] | None = None
    """Of the inputs, with a `Dim` for a size that is left open; None for what the model declares."""
    anew: bool = True
    """It is made of a program that was just built, not of one for any inputs, of which all is done but for shapes."""
    watched: bool = False
    """Every tensor is made, also those that nobody reads, and has memory of its own, so that it may be written to."""
    iterated: bool = False
    """Parameters are kept to the end of a run, so that the next one need not be given again what is the same."""
    presumed: Presumed | None = None
    """Of what is open in a program that is to be settled."""
    forms: Mapping[int, Form] = field(default_factory=dict)
    """Of instructions of one that was settled, by their identity."""

    refused: set[tuple[Layer, str]] = field(default_factory=set)
    """Layers that engines have failed to bind."""
    answers: dict[Hashable, tuple[Attributes, Inferred]] = field(default_factory=lambda: Kept(MAX_ANSWERS))
    """What rules have said, beside attributes that keys know by their identity, which are kept for that."""
    views: dict[Hashable, tuple[Attributes, Views]] = field(default_factory=lambda: Kept(MAX_ANSWERS))
    """Where results lay that only look at memory, in the same way."""
    taken: dict[Hashable, Taken] = field(default_factory=lambda: Kept(MAX_TAKEN))
    """What engines have made of instructions for sizes that a run has told."""
    alignment: Alignment = field(default_factory=Alignment)
    """Copies of constants."""
    reserve: Reserve = field(default_factory=Reserve)
    """Memory of large results."""
    _dense: dict[CompressedWeights, Array] = field(default_factory=dict)
    _codes: dict[Hashable, tuple[Array, CompressedWeights]] = field(default_factory=lambda: Kept(MAX_CODES))

    def engine(self, name: str) -> Engine:
        """The engine that is called so, one of these."""
        return next(engine for engine in self.engines if engine.name == name)

    @property
    def transforms(self) -> bool:
        """Whether a program may compute otherwise than layer by layer: engines do, and nobody watches."""
        return bool(self.engines) and not self.watched

    @property
    def whole(self) -> bool:
        """Whether shapes of the inputs are set, with all sizes."""
        return self.shapes is not None and all(isinstance(size, int) for shape in self.shapes for size in shape)

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

    def closed(self, instruction: Instruction, program: Program) -> bool:
        """Whether all about an instruction is known before the run, so that only its numbers are left to compute.

        Its sizes may still be open where they are to be settled, when its rule is asked again.
        """
        if (instruction.open and self.sizes is None) or not instruction.plain:
            return False
        results = [program.tensors[number] for number in instruction.outputs]
        return all(self.sized(tensor) and tensor.numeric for tensor in results)

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
