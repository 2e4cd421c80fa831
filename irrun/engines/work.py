"""The contract between a program and an engine: what is to be computed, and how the engine says that it can."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

import numpy as np

from irrun.engines.compressed import CompressedWeights
from irrun.engines.grid import Grid
from irrun.records import dataclass
from irrun.spec.op import Array

BUFFER = 512
"""Elements of numpy's buffers, through which it copies rows of about this length and shorter ones before it computes.

With its own 8192, ufuncs that broadcast, or whose rows are 300 to 3000 elements long, take two to three times as long.
"""


LONGEST_SUM = 1 << 17
"""Products of an element that engines add up in f32; longer sums lose digits, and are left to the op's kernel."""

MASKED = np.finfo(np.float32).min
"""What hides a score from a softmax, added to it. Where all are hidden they are all alike, and none is NaN."""


class Layout(Protocol):
    """How a tensor lies in the `nbytes` bytes that it takes, where that is not in C order. Layouts can be compared.

    With `strides` (in bytes) it is an array that everybody can read, such as one with the channels last. Without, only
    the engine that made it knows more, and it is a vector of bytes (u8) to everybody else.
    """

    @property
    def nbytes(self) -> int: ...

    @property
    def strides(self) -> tuple[int, ...] | None: ...


@dataclass(slots=True, eq=False)
class Operand:
    """A tensor that a work reads or writes, of known shape.

    `strides` are those of numpy, in bytes: an input may be a view (transposed, cut, reversed, repeated); an output is
    in C order unless the engine gives it a layout. `value` is its array where that is constant. With a `layout`, which
    is one of the engine's own without strides, `strides` mean nothing.

    Weights that stay `compressed` are f32 that is nowhere in memory: `value` is None, and an engine that takes such an
    input counts it among those that it has `taken`. One that knows nothing of them leaves the work to others.

    An f32 tensor on a `grid` has `codes`, an operand of u8 or i8 of the same shape. It is made of these only where it
    is read itself: an engine that reads the codes instead counts the input among `Compiled.coded`.
    """

    type: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    value: Array | None = None
    layout: Layout | None = None
    compressed: CompressedWeights | None = None
    codes: Operand | None = None
    grid: Grid | None = None


@dataclass(slots=True, eq=False)
class Post:
    """What is done to each element of a work's result: the op `name` ("ReLU-1") with its attributes.

    An op of two inputs takes the tensor `work.inputs[operand]` as the other one, which broadcasts to the result as
    numpy has it; `reflected` says that the other one is the op's first input. `parameters` are further inputs by their
    numbers, constants such as limits; who does not know them leaves the post to others.
    """

    name: str
    attrs: Mapping[str, Any]
    operand: int | None = None
    reflected: bool = False
    parameters: tuple[int, ...] = ()


@dataclass(slots=True, eq=False)
class Work:
    """An op and what is done to its (only) result right away, in order.

    `inputs` are those of the op, with None for one that is not connected, and behind them the operands of `posts`.
    `outputs` are what is left at the end: `posts` change no shape, and no type but between f32 and bf16, where one is a
    conversion; what is not rounded in between is as good. Outputs of the op that nothing reads are left out where no
    other comes behind them.
    """

    name: str
    attrs: Mapping[str, Any]
    inputs: list[Operand | None]
    outputs: list[Operand]
    posts: list[Post] = field(default_factory=list)

    @property
    def own(self) -> list[Operand | None]:
        """The inputs of the op itself."""
        read = [post.operand for post in self.posts if post.operand is not None]
        return self.inputs[: min([*read, *(number for post in self.posts for number in post.parameters)], default=None)]

    @property
    def tensors(self) -> list[Operand]:
        """The inputs that there are, and the outputs."""
        return [*(operand for operand in self.inputs if operand is not None), *self.outputs]

    @property
    def compressed(self) -> bool:
        """Whether an input is of weights that stay compressed."""
        return any(operand is not None and operand.compressed is not None for operand in self.inputs)

    def required(self, count: int) -> list[Operand]:
        """The first inputs, which the op cannot be without."""
        return [operand for operand in self.inputs[:count] if operand is not None]

    def optional(self, number: int) -> Operand | None:
        """An input of the op itself; None where it is not connected, or where the op is given fewer."""
        own = self.own
        return own[number] if number < len(own) else None

    def other(self, post: Post) -> Operand | None:
        """The operand of one of the posts; None where that has none."""
        return None if post.operand is None else self.inputs[post.operand]

    def constant(self, number: int) -> Any:
        """The array of an input of the op itself; None where that is not constant or not there."""
        operand = self.optional(number)
        return None if operand is None else operand.value


Call = Callable[[], object]
"""Computes once: reads the inputs and writes the outputs that it was bound to."""


class Joinable:
    """A call that can be made as one with others that `joins` the same: that costs less than to make each. It takes
    about `seconds` on one thread."""

    joins: Hashable
    seconds: float

    def __call__(self) -> object:
        raise NotImplementedError

    def joined(self, calls: Sequence[Any]) -> Call:
        """One call of several like this one, in order."""
        raise NotImplementedError


Judging = Callable[[], bool]
"""Computes once, if what it reads is as the op's rule wants it; whether it has."""


def either(judging: Judging, otherwise: Call) -> Call:
    """A call that is made otherwise where the data are not as the first one wants them."""

    def call() -> None:
        if not judging():
            otherwise()

    return call


def chain(calls: Sequence[Call]) -> Call:
    """One call that makes several, in order."""
    if len(calls) == 1:
        return calls[0]
    if len(calls) == 2:
        first, second = calls

        def both() -> None:
            first()
            second()

        return both
    several = tuple(calls)

    def every() -> None:
        for call in several:
            call()

    return every


Arrays = Sequence[Any]
"""Of the inputs of a work; None for one that is not connected. Who binds a work knows which ones are there."""


@dataclass(slots=True, eq=False)
class Compiled:
    """A work that an engine has prepared. It is shared by threads; what it binds is used by one at a time."""

    bind: Callable[[Arrays, Sequence[Array], Any], Call]
    """Given `(inputs, outputs, scratch)`, the arrays that every call will read and write: inputs with the strides of
    their operands, outputs in C order or in the layout that they are given, all aligned to 64 bytes unless constant or
    a view. Outputs never share memory with inputs. Arrays that lie otherwise raise ValueError."""
    scratch: int = 0
    """Bytes of memory for use within a call; for 0 `bind` is given None."""
    wants: Mapping[int, Layout | None] = field(default_factory=dict)
    """Layouts that inputs must come in where they are not in it already, by number; None is C order."""
    gives: dict[int, Layout] = field(default_factory=dict)
    """Layouts that outputs come in, by number."""
    taken: frozenset[int] = frozenset()
    """Constant inputs that are not read any more."""
    doubtful: bool = False
    """It may give NaN for what is infinite: where a result is not finite, others compute it again."""
    coded: frozenset[int] = frozenset()
    """Inputs of which the codes are read; of these `wants` has the layout."""
    again: Callable[[Work], Compiled] | None = None
    """Compiles, in less time, a work that differs in what its weights hold, constants that `signature` leaves out."""
    shared: bool = False
    """It serves such works as it is."""
    judging: Callable[[Arrays, Sequence[Array], Any], Judging] | None = None
    """Binds as `bind` does a call that looks at the data while it computes. It says False where the op's rule may have
    something to say of them, or where it is not made for them: then the rule is asked, and `bind`'s call made."""
    pending: Callable[[], Sequence[Call]] = tuple
    """Gives what takes long of `bind` and is left to do, as calls that any thread may make before, equal ones for all
    that share what they make."""


OpenCall = Callable[[Sequence[Any]], Sequence[Array] | None]
"""Computes a work of open sizes: fresh results for arrays of its inputs; None where they are not as it knows them.

Nobody has looked at the data: where these break the rule of the op, or it would warn of them, the answer is None, too.
Results of sizes that only the data tell take at most `OPEN_GROWTH` times the bytes of the inputs.
"""

OPEN_GROWTH = 16


class Engine(Protocol):
    """Something that computes works. `threads` is how many threads it may use at once.

    One that `decodes` multiplies with compressed weights as quickly as memory gives them. One that is `quantized`
    multiplies codes, one that is `coding` is asked first for element-wise ops that make them.
    """

    name: str
    threads: int
    decodes: bool
    quantized: bool
    coding: bool

    def unaligned(self, name: str) -> bool:
        """Whether constants of works of the op `name` may lie at any address, as they do in a file."""

    def compile(self, work: Work) -> Compiled | None:
        """Prepare a work; None where the engine does not take it, or not with all its posts."""

    def computes(self, name: str, type: str) -> bool:
        """Whether it takes works of the op `name` on floats of `type`, most of them, and the processor computes in that
        type rather than in another one between two conversions. What only moves elements does so in any type."""

    def together(self, calls: Sequence[Call]) -> None:
        """Make calls that have nothing to do with one another, on threads if it has any for that."""

    def open(self, work: Work) -> OpenCall | None:
        """A call for a work whose open sizes are -1 in shapes, and whose strides mean nothing; None if it has none, or
        not with all posts.

        It is asked for works of known sizes, too, which no engine has compiled.
        """

    def reorder(self, operand: Operand, layout: Any) -> Compiled:
        """A work of one input and one output that brings a tensor into another layout of its own (None: in C order)."""
