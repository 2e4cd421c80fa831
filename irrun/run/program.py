"""A program: numbered tensors and a linear list of instructions, the one form between a checked graph and its numbers.

Passes (`irrun.run.passes`) make one of another; a frame (`irrun.run.frame`) has the memory of one and computes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from irrun.engines.compressed import CompressedWeights
from irrun.engines.work import Compiled, Engine, Layout, Work
from irrun.engines.work_cache import is_weight
from irrun.ir.graph import Layer
from irrun.records import NamedTuple, dataclass
from irrun.spec.body import Body
from irrun.spec.op import FLOAT, Array, Op, Tensor, results_of
from irrun.spec.patterns import shape_text
from irrun.spec.traits import Accumulating, Elementwise, Products

if TYPE_CHECKING:
    from irrun.run.session import Run

Quick = Callable[[Sequence[Array | None], "Run"], Sequence[Array] | None]
"""Computes an instruction as its kernel would, with less to do; None where the arrays are not what it knows."""

KERNEL = "kernel"
VIEW = "view"
"""What computes an instruction that no engine takes: the op's own kernel, in every run, or once for a view."""

ALIKE = 2
"""Instructions of which there are so many of a kind, in the middle, are soon prepared for other sizes."""

_TELLING = frozenset({"op", "attrs", "inputs", "outputs", "open", "posts"})
"""The fields of an instruction that tell its results, operands and form, which are asked for again and again."""


class Branch(NamedTuple):
    """One of the two bodies of an op: its parameters are these `inputs` of that, which gives these of its `results`."""

    name: str
    inputs: tuple[int, ...]
    results: tuple[int, ...]


class Branches(NamedTuple):
    """What runs where the input at the position `condition` is false, and where it is true."""

    condition: int
    bodies: tuple[Branch, Branch]


@dataclass(eq=False)
class Instruction:
    """A layer to compute, and the element-wise ones that are done to its result right away, its `posts`.

    Its `parts` are the layer itself and these. What they read lies in one list, `operands`, in which the result before
    each post is left out, so that what an engine takes with some of the posts reads the beginning of it:

        parts      y = MatMul(a, b)   z = Add(y, c)   t = ReLU(z)   Multiply(d, t)
        operands   a, b               c                             d
        head(1) is the first two parts, which read a, b, c; rest(1) the others, which read z, d

    Tensors go by number, None is an input that no edge reaches. It is `open` where its op's rule left a question to the
    run, which is then asked again with the arrays. `bodies` are programs of their own; `effects` says that it must run
    although nothing reads its outputs.

    `by` is what computes it, all posts included. An engine has `compiled` the `work`, and reads the tensors `reads`:
    the operands, perhaps laid out otherwise, None where it reads them no more. `quick` is tried before the kernel, and
    of `branches` the one that is chosen runs in place of it. `frees` are the tensors of a run that nobody reads
    after it. `enclosed` are instructions of unknown sizes as a program of their own, with the same numbers of tensors.

    `ports` are the outputs of the layer that the results are, by default all of them in order; None is none of these.
    One without any is no layer of the model, but belongs to one.
    """

    layer: Layer
    op: Op
    attrs: Mapping[str, Any]
    types: Mapping[str, str]
    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]
    open: bool = False
    effects: bool = False
    bodies: Mapping[str, tuple[Body, Program]] = field(default_factory=dict)
    posts: tuple[Instruction, ...] = ()
    by: str = KERNEL
    work: Work | None = None
    compiled: Compiled | None = None
    quick: Quick | None = None
    branches: Branches | None = None
    reads: tuple[int | None, ...] = ()
    frees: tuple[int, ...] = ()
    ports: tuple[int | None, ...] | None = None
    enclosed: Program | None = None

    def changed(self, **changes: Any) -> Instruction:
        """The instruction with some fields changed; `dataclasses.replace` takes twenty times as long."""
        copy = object.__new__(Instruction)
        known = copy.__dict__ = self.__dict__ | changes
        if not _TELLING.isdisjoint(changes):
            for name in ("results", "operands", "form"):
                known.pop(name, None)
        return copy

    def reading(self, others: Mapping[int, int]) -> Instruction:
        """The instruction with inputs taken from `others`, by the numbers of those that they stand for."""
        return self.changed(
            inputs=tuple(None if number is None else others.get(number, number) for number in self.inputs)
        )

    def head(self, count: int) -> Instruction:
        """The instruction with its first `count` posts."""
        return self if count == len(self.posts) else self.changed(posts=self.posts[:count])

    def rest(self, count: int) -> Instruction:
        """Its posts from number `count` on, of which there are some."""
        return self.posts[count].changed(posts=self.posts[count + 1 :])

    @property
    def parts(self) -> tuple[Instruction, ...]:
        """What its ops' kernels compute one by one."""
        return (self, *self.posts)

    @cached_property
    def results(self) -> tuple[int, ...]:
        """The tensors that are there afterwards: those between the instruction and its posts are never made."""
        return self.posts[-1].outputs if self.posts else self.outputs

    @cached_property
    def operands(self) -> tuple[int | None, ...]:
        """The tensors that it depends on."""
        if not self.posts:
            return self.inputs
        made = self.outputs[:1]
        numbers = list(self.inputs)
        for post in self.posts:
            numbers += [number for number in post.inputs if number not in made]
            made = post.outputs
        return tuple(numbers)

    def arguments(self) -> list[list[int | None]]:
        """Where the inputs of each of its parts are among the operands; -1 is the result of the part before."""
        arguments: list[list[int | None]] = []
        position, made = 0, self.outputs[:0]
        for part in self.parts:
            arguments.append([])
            for number in part.inputs:
                given = number in made
                arguments[-1].append(-1 if given else None if number is None else position)
                position += not given
            made = part.outputs[:1]
        return arguments

    @cached_property
    def form(self) -> tuple[Hashable, ...]:
        """What is computed, whatever the tensors are."""
        form: list[Hashable] = [self.op, id(self.attrs), len(self.inputs), self.open]
        made = self.outputs
        for post in self.posts:
            form += [post.op, id(post.attrs), *[number in made for number in post.inputs]]
            made = post.outputs
        return tuple(form)

    def computed(self, arrays: Sequence[Array | None]) -> list[Array]:
        """What the op's own kernel gives outside of a run, without posts. Raises what the kernel raises."""
        context = {"types": self.types} if self.op.context else {}
        with np.errstate(all="ignore"):
            return list(map(np.asarray, results_of(self.op.kernel(*arrays, **self.attrs, **context))))

    def types_for(self, type: str) -> Mapping[str, str]:
        """Its types where its first input is of another one."""
        symbol = self.op.inputs[0].type
        return {**self.types, symbol: type} if symbol in self.types else self.types

    def port(self, name: str) -> int | None:
        """The tensor at an input port, None where it is not connected."""
        ports = zip(self.op.inputs, self.inputs, strict=False)
        return next((number for port, number in ports if port.name == name), None)

    @property
    def function(self) -> str | None:
        """The name of numpy's function that computes it, without its posts, element by element, if there is one."""
        trait = self.op.trait(Elementwise)
        return None if trait is None else trait.function

    @property
    def multiplies(self) -> bool:
        """Whether it adds up products, for which engines are many times as quick as kernels."""
        return any(part.op.trait(kind) is not None for part in self.parts for kind in (Products, Accumulating))

    @property
    def plain(self) -> bool:
        """Whether its results depend on its inputs alone, and may be computed at any time."""
        return self.op.pure and not self.bodies and self.enclosed is None and self.op.context <= {"types"}


@dataclass(slots=True, eq=False)
class Storage:
    """Where the array of a tensor lies: in `nbytes` bytes of a frame's memory from `offset` on, in C order unless with
    a `layout`; one that is of `engine` alone is a vector of bytes. A view lies in the memory of the tensor `root`, from
    byte `start` of it on and with `strides`."""

    root: int
    nbytes: int = 0
    offset: int = -1
    layout: Layout | None = None
    engine: Engine | None = None
    start: int = 0
    strides: tuple[int, ...] | None = None

    @property
    def opaque(self) -> bool:
        return self.layout is not None and self.layout.strides is None

    @property
    def steps(self) -> tuple[int, ...] | None:
        """The strides of the array, by its layout where it has one; None in C order."""
        return self.strides if self.layout is None else self.layout.strides


@dataclass(slots=True, eq=False)
class Program:
    """`tensors` are what is known of each; `constants` are those that no run changes, beside those that stay
    `compressed`, which only engines that know them read. `reserved` are the bytes of constants that are not in the
    .bin file. For who looks at a run, `shown` are conversions that change nothing in these types, by the tensor that
    stands for their results, and `settled` are instructions whose results are constants now that shapes of inputs are
    known; `varying` are constants that are others for other shapes. Where it computes in other types than the model
    declares, `variables` have those of each variable, (declared, computed in), and `borders` the declared ones of the
    parameters and results of a body.

    Once its memory is planned, `storage` has the tensors whose place is fixed, in `size` bytes that each frame has, and
    `scratch` is the most that a call of an engine needs besides; `peak` are the most bytes that are in use at once, as
    far as the program can tell. It can unless it is `unsized`, where only a run tells how large some tensors are.

    While it is to be settled, `sizing` computes its last parameters, which depend on nothing but sizes.
    """

    tensors: list[Tensor]
    constants: dict[int, Array]
    parameters: tuple[int, ...]
    results: tuple[int, ...]
    instructions: list[Instruction]
    compressed: dict[int, CompressedWeights] = field(default_factory=dict)
    reserved: int = 0
    variables: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    borders: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    shown: Mapping[int, tuple[Instruction, ...]] = field(default_factory=dict)
    settled: tuple[Instruction, ...] = ()
    varying: frozenset[int] = frozenset()
    storage: dict[int, Storage] = field(default_factory=dict)
    size: int = 0
    scratch: int = 0
    peak: int = 0
    unsized: bool = True
    sizing: Program | None = None

    def begun(self) -> Program:
        """The same without instructions, for a pass to add them to; tensors and constants may be added, too."""
        return replace(self, tensors=[*self.tensors], constants={**self.constants}, instructions=[])

    def add(self, tensor: Tensor) -> int:
        """The number of a new tensor."""
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def add_constant(self, array: Array, type: str) -> int:
        """The number of a new tensor that is constant."""
        number = self.add(Tensor(type, array.shape))
        self.constants[number] = array
        return number

    def constant(self, number: int | None) -> Array | None:
        """The array of a tensor; None for one that is not constant."""
        return None if number is None else self.constants.get(number)

    def is_weight(self, number: int | None) -> bool:
        """Whether a tensor is a constant of which rules look at nothing but the shape, as a rule: floats, not few."""
        array = self.constant(number)
        return number is not None and array is not None and self.tensors[number].type in FLOAT and is_weight(array)

    def known(self, number: int) -> Tensor:
        """What is known of a tensor, its value where it is constant."""
        tensor, constant = self.tensors[number], self.constants.get(number)
        return tensor if constant is None else Tensor(tensor.type, constant.shape, constant)

    def known_inputs(self, instruction: Instruction) -> list[Tensor | None]:
        """The same of the inputs of an instruction."""
        return [None if number is None else self.known(number) for number in instruction.inputs]

    def is_ranked(self, numbers: Iterable[int | None]) -> bool:
        """Whether it is known how many axes tensors have; None is none."""
        return all(number is None or self.tensors[number].shape is not None for number in numbers)

    def repeats_itself(self) -> bool:
        """Whether many instructions are alike, as those of layers are, where the sizes are known."""
        kinds = {
            (own.form, *(None if number is None else self.tensors[number].shape for number in own.operands))
            for own in self.instructions
        }
        return len(self.instructions) >= ALIKE * len(kinds)

    def makers(self) -> dict[int | None, Instruction]:
        """The instruction that makes each tensor, where none has posts yet."""
        return {number: instruction for instruction in self.instructions for number in instruction.outputs}

    def readers(self) -> Mapping[int | None, list[Instruction]]:
        """The instructions that read each tensor, in order, where none has posts yet."""
        readers = defaultdict[int | None, list[Instruction]](list)
        for instruction in self.instructions:
            for number in {*instruction.inputs}:
                readers[number].append(instruction)
        return readers

    def sole_readers(self) -> dict[int | None, Instruction]:
        """The instruction that alone reads a tensor, for each that one alone reads and that is no result."""
        return {n: own[0] for n, own in self.readers().items() if len(own) == 1 and n not in self.results}

    def read(self, *, made: bool = False) -> set[int | None]:
        """The tensors that anything reads, also those between an instruction and its posts, and the results; with
        `made` also those that instructions make for nobody."""
        parts = [part for instruction in self.instructions for part in instruction.parts]
        unread = {number for instruction in self.instructions for number in instruction.results} if made else set[int]()
        return {*self.results, *unread, *(number for part in parts for number in part.inputs)}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self, indent: str = "") -> Iterator[str]:
        given = ", ".join(f"{self._name(number)}: {self._known(number)}" for number in self.parameters)
        yield f"{indent}program({given}) -> {', '.join(map(self._name, self.results))}"
        for number, array in sorted(self.constants.items()):
            yield f"{indent}  {self._name(number)} = constant {self._known(number)}{_few(array)}"
        for number, weights in sorted(self.compressed.items()):
            yield f"{indent}  {self._name(number)} = compressed {self._known(number)} of {_stored(weights)}"
        for instruction in self.instructions:
            yield f"{indent}  {self._text(instruction)}"
            if instruction.enclosed is not None:
                yield from instruction.enclosed._lines(f"{indent}    ")
            for name, (_, program) in instruction.bodies.items():
                yield f"{indent}    {name}:"
                yield from program._lines(f"{indent}    ")

    def _text(self, instruction: Instruction) -> str:
        results = ", ".join(f"{self._name(number)}: {self._known(number)}" for number in instruction.results)
        calls = [
            f"{part.op.name}({', '.join('_' if number is None else self._name(number) for number in part.inputs)})"
            for part in instruction.parts
        ]
        remarks = [f"`{instruction.layer.name}`", instruction.by]
        remarks += ["open"] if instruction.open else []
        remarks += ["quick"] if instruction.quick or instruction.branches else []
        for number, read in zip(instruction.operands, instruction.reads, strict=False):
            if number is not None and read is not None and read != number:
                remarks.append(f"reads {self._name(read)} for {self._name(number)}")
        if instruction.frees:
            remarks.append(f"frees {' '.join(map(self._name, instruction.frees))}")
        return f"{results} = {' + '.join(calls)}  # {', '.join(remarks)}"

    def _name(self, number: int) -> str:
        return f"%{number}"

    def _known(self, number: int) -> str:
        tensor, storage = self.tensors[number], self.storage.get(number)
        place = "" if storage is None else f" in %{storage.root}" if storage.root != number else f" @{storage.offset}"
        return f"{tensor.type}{shape_text(tensor.shape)}{place}"


def leading_to(results: Iterable[int], instructions: Sequence[Instruction]) -> list[Instruction]:
    """Those of the instructions, in order and without posts yet, that make results, or something that these need."""
    read: set[int | None] = set(results)
    kept = []
    for instruction in reversed(instructions):
        if not read.isdisjoint(instruction.outputs):
            kept.append(instruction)
            read.update(instruction.inputs)
    return kept[::-1]


def _few(array: Array) -> str:
    return f" = {array.tolist()}" if array.size <= 8 else ""


def _stored(weights: CompressedWeights) -> str:
    parts = [f"{weights.type}{shape_text(weights.stored)}"]
    for name, factor in (("scale", weights.scale), ("zero", weights.zero)):
        parts += [] if factor is None else [f"{name} {shape_text(factor.shape)}"]
    return ", ".join(parts)
