"""Verify: what must hold of a program after every pass, worked out anew and slowly. For tests, and for those who debug.

Liveness is not asked of the pass that plans memory, but recomputed from what instructions read and may look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from irrun.engines.memory import ALIGNMENT
from irrun.engines.work import Operand
from irrun.run.internal_ops import QUANTIZE, REORDER
from irrun.run.passes.fusion import ROUNDED
from irrun.run.program import KERNEL, VIEW, Instruction, Program
from irrun.spec.dims import same
from irrun.spec.dtypes import ELEMENT_TYPES, numpy_dtype
from irrun.spec.op import Tensor


class VerificationError(AssertionError):
    """A program breaks an invariant."""


def verify(program: Program, *, planned: bool = False, asked: bool = False, iterated: bool = False) -> None:
    """Raises VerificationError, whose text names the instruction, where a program breaks an invariant.

    `planned` says that its memory is, `asked` that somebody may ask kernels for the same, as where a `Setting` is
    checked or watched, and `iterated` is that of the `Setting`.
    """
    verification = _Verification(program, planned)
    verification.tensors()
    for position, instruction in enumerate(program.instructions):
        verification.instruction(position, instruction)
    verification.results()
    if planned:
        verification.frees(asked)
        verification.storage(asked, iterated)
    for instruction in program.instructions:
        for _, body in instruction.bodies.values():
            verify(body)
        if instruction.enclosed is not None:
            verify(instruction.enclosed, planned=True, asked=asked)


class _Verification:
    def __init__(self, program: Program, planned: bool) -> None:
        self.program, self.planned = program, planned
        self.made = {*program.parameters, *program.constants, *program.compressed}
        self.hidden: set[int] = set()
        """What lies between an instruction and its posts, and is never made."""
        self.where = "the program"

    def require(self, holds: bool, message: str) -> None:
        if not holds:
            raise VerificationError(f"{self.where}: {message}")

    def tensors(self) -> None:
        program = self.program
        self.require(len({*program.parameters}) == len(program.parameters), "a tensor is two parameters")
        if program.borders is not None:
            sizes = (len(program.parameters), len(program.results))
            self.require(tuple(map(len, program.borders)) == sizes, "other borders than parameters and results")
        for number in program.parameters:
            self.require(number not in program.constants, f"the parameter %{number} is a constant")
        for number in (*self.made, *program.results, *program.storage):
            self.require(0 <= number < len(program.tensors), f"there is no tensor %{number}")
        for number, array in program.constants.items():
            tensor = program.tensors[number]
            fits = not tensor.static or tensor.shape == array.shape
            self.require(fits, f"the constant %{number} of shape {tensor.shape} holds an array of {array.shape}")
            held = tensor.type in ("dynamic", "string") or numpy_dtype(tensor.type) == array.dtype
            self.require(held, f"the constant %{number} of {tensor.type} holds an array of {array.dtype}")

        for number, weights in program.compressed.items():
            tensor = program.tensors[number]
            self.require(number not in program.constants, f"the compressed %{number} is a constant")
            self.require(number not in program.storage, f"the compressed %{number} has memory in a frame")
            same = tensor.shape == weights.shape and tensor.type in ("f32", weights.type)
            self.require(
                same, f"%{number}, {tensor.type}{tensor.shape}, is compressed to {weights.type}{weights.shape}"
            )
            bits = prod(weights.stored) * ELEMENT_TYPES[weights.type].bits
            held = len(weights.codes) == -(-bits // 8) and prod(weights.stored) == prod(weights.shape)
            self.require(
                held, f"%{number} has {len(weights.codes)} bytes of codes for {weights.stored} of {weights.type}"
            )

    def instruction(self, position: int, instruction: Instruction) -> None:
        self.where = f"instruction {position} (`{instruction.layer.name}`, {instruction.by})"
        coded = instruction.compiled.coded if instruction.compiled is not None else ()
        operands = [number for position, number in enumerate(instruction.operands) if position not in coded]
        for number in {*operands, *instruction.reads} - {None}:
            self.require(number not in self.hidden, f"it reads %{number}, which is between an instruction and its post")
            self.require(number in self.made, f"it reads %{number}, which nothing has made before")
        if instruction.posts:
            self._posts(instruction)
        if instruction.compiled is not None:
            self._compiled(instruction)
        else:
            self._uncompiled(instruction)
        for number in instruction.results:
            self.require(0 <= number < len(self.program.tensors), f"there is no tensor %{number}")
            self.require(number not in self.made, f"%{number} is made a second time")
            self.require(number not in self.hidden, f"%{number} lies between an instruction and its post")
            self.made.add(number)

    def _posts(self, instruction: Instruction) -> None:
        self.require(len(instruction.outputs) == 1, "posts behind several outputs")
        before = instruction.outputs[0]
        for post in instruction.posts:
            self.require(not post.posts and not post.bodies, "a post with posts or bodies of its own")
            self.require(len(post.outputs) == 1, f"the post {post.op.name} has several outputs")
            self.require(post.inputs.count(before) == 1, f"the post {post.op.name} does not read %{before}, once")
            fresh = before not in self.made | self.hidden
            self.require(fresh, f"%{before}, between an instruction and its post, is made elsewhere")
            self.hidden.add(before)
            given, made = self.program.tensors[before], self.program.tensors[post.outputs[0]]
            self.require(
                _alike(given, made, coding=post.op is QUANTIZE),
                f"the post {post.op.name} makes {made.type}{made.shape} of {given.shape}",
            )
            before = post.outputs[0]

    def _uncompiled(self, instruction: Instruction) -> None:
        by = instruction.by
        self.require(by in (KERNEL, VIEW), f"nothing was compiled for the engine {by}")
        self.require(by == KERNEL or not (instruction.posts or instruction.bodies), "a view with posts or bodies")
        for number in (*instruction.operands, *instruction.reads, *instruction.results):
            opaque = number in self.program.storage and self.program.storage[number].opaque
            self.require(not opaque, f"%{number} lies as only an engine can read it")
        for number in instruction.results if by == VIEW else ():
            storage = self.program.storage.get(number)
            self.require(storage is None or storage.root != number, f"the view %{number} has memory of its own")

    def _compiled(self, instruction: Instruction) -> None:
        """Works fit what is read, and layouts are only between one engine."""
        work, compiled, program = instruction.work, instruction.compiled, self.program
        assert compiled is not None
        self.require(work is not None, "it is compiled without a work")
        assert work is not None
        counts = {len(instruction.reads), len(work.inputs), len(instruction.operands)}
        self.require(len(counts) == 1, f"{len(instruction.reads)} reads for {len(work.inputs)} inputs of the work")
        self.require(len(work.posts) == len(instruction.posts), "other posts than its work has")
        for position, (number, operand) in enumerate(zip(instruction.reads, work.inputs, strict=True)):
            if number is None:
                given = operand is None or position in compiled.taken
                self.require(given, f"input {position} is not read, but was not taken")
                continue
            self.require(position not in compiled.taken, f"input {position} is read although it was taken")
            assert operand is not None
            if position in compiled.coded:
                assert operand.codes is not None
                operand = operand.codes
            tensor = program.tensors[number]
            self.require(_fits(tensor, operand), f"%{number} is no {operand.type}{operand.shape} as its work has it")
            storage = program.storage.get(number)
            layout = None if storage is None else storage.layout
            wanted = compiled.wants.get(position, operand.layout)
            if storage is not None and storage.opaque:
                self._owned(number, instruction)
                self.require(layout == wanted, f"%{number} lies in another layout than input {position} is wanted in")
            else:
                plain = wanted is None or wanted.strides is not None
                self.require(plain, f"%{number} lies otherwise than input {position} is wanted: a reorder is missing")
                if position in compiled.wants and storage is not None and storage.root == number:
                    self.require(layout == wanted, f"%{number} lies in another layout than wanted by input {position}")
        results = instruction.results[: len(work.outputs)]
        self.require(len(results) == len(work.outputs), "its work has more outputs than it makes")
        for position, number in enumerate(results):
            storage = program.storage.get(number)
            self.require(storage is not None and storage.root == number, f"%{number} has no memory to be written to")
            assert storage is not None
            kept = instruction.op is REORDER or storage.layout == compiled.gives.get(position)
            self.require(kept, f"%{number} lies in another layout than it is given in")
            if storage.opaque:
                self._owned(number, instruction)

    def _owned(self, number: int, instruction: Instruction) -> None:
        engine = self.program.storage[number].engine
        name = None if engine is None else engine.name
        self.require(name == instruction.by, f"%{number} lies as only the engine {name} can read it")

    def results(self) -> None:
        self.where = "the program"
        for number in self.program.results:
            self.require(number in self.made, f"nothing makes the result %{number}")
            storage = self.program.storage.get(number)
            self.require(storage is None or not storage.opaque, f"only an engine can read the result %{number}")

    # Memory

    def frees(self, asked: bool) -> None:
        """What has no place in the frame is let go of once, after it was read last; never what results may look at."""
        freed: dict[int, int] = {}
        last = dict.fromkeys(self.program.parameters, -1)
        for position, instruction in enumerate(self.program.instructions):
            self.where = f"instruction {position} (`{instruction.layer.name}`, {instruction.by})"
            for number in _touched(instruction, asked):
                self.require(number not in freed, f"it reads %{number}, which instruction {freed.get(number)} frees")
                last[number] = position
            last.update(dict.fromkeys(instruction.results, position))
            for number in instruction.frees:
                self.require(number in last, f"it frees %{number}, which is not there")
                self.require(number not in freed, f"it frees %{number} a second time")
                kept = number in self.program.constants or number in self.program.compressed
                self.require(not kept, f"it frees the constant %{number}")
                self.require(number not in self.program.results, f"it frees the result %{number}")
                freed[number] = position
        self.where = "the program"
        kept = {*self.program.results, *self.program.storage, *self.program.constants, *self.program.parameters}
        kept |= self.program.compressed.keys()
        for instruction in reversed(self.program.instructions):
            if not kept.isdisjoint(instruction.results):
                kept.update(_shared(instruction))
        for number in last:
            self.require(number in freed or number in kept, f"%{number} is never freed")

    def storage(self, asked: bool, iterated: bool) -> None:
        """Tensors that are in use at the same time share no bytes of the frame, views lie in memory that is there."""
        program = self.program
        self.where = "the program"
        for number, storage in program.storage.items():
            root = program.storage.get(storage.root)
            there = storage.root in program.constants or root is not None
            self.require(there, f"%{number} lies in %{storage.root}, which has no memory")
            if root is None or storage.root != number:
                self.require(root is None or root.root == storage.root, f"%{number} lies in a view, %{storage.root}")
                continue
            needed = storage.layout.nbytes if storage.layout is not None else _nbytes(program.tensors[number])
            self.require(storage.nbytes >= needed, f"%{number} takes {needed} bytes, but has {storage.nbytes}")
            inside = 0 <= storage.offset <= program.size - storage.nbytes
            self.require(inside, f"%{number} lies outside of the frame, which has {program.size} bytes")
            self.require(storage.offset % ALIGNMENT == 0, f"%{number} is not aligned")
        scratch = max((i.compiled.scratch for i in program.instructions if i.compiled), default=0)
        self.require(program.scratch >= scratch, f"{program.scratch} bytes of scratch where {scratch} are needed")
        uses = self._uses(asked, iterated)
        begins: dict[int, list[int]] = {}
        for block, positions in uses.items():
            begins.setdefault(min(positions), []).append(block)
        active: list[int] = []
        for position in sorted(begins):
            active = [block for block in active if max(uses[block]) >= position]
            for block in begins[position]:
                mine = program.storage[block]
                for other in active:
                    theirs = program.storage[other]
                    apart = mine.offset + mine.nbytes <= theirs.offset or theirs.offset + theirs.nbytes <= mine.offset
                    self.require(apart, f"%{block} and %{other} are in use at instruction {position} in the same bytes")
                active.append(block)

    def _uses(self, asked: bool, iterated: bool) -> dict[int, list[int]]:
        """When each block of the frame's memory is written or read, also through views and what kernels pass on."""
        program = self.program
        blocks: dict[int, set[int]] = {}  # those that the array of a tensor may lie in
        uses: dict[int, list[int]] = {}

        def use(numbers: Iterable[int], position: int) -> None:
            for number in numbers:
                for block in blocks.get(number, ()):
                    uses.setdefault(block, []).append(position)

        def enter(number: int, shared: Iterable[int]) -> None:
            storage = program.storage.get(number)
            if storage is None:
                blocks[number] = set().union(*(blocks.get(source, set()) for source in shared))
            else:
                blocks[number] = {storage.root} if storage.root in program.storage else set()

        for number in program.parameters:
            enter(number, ())
        use(program.parameters, -1)
        for position, instruction in enumerate(program.instructions):
            for number in instruction.results:
                enter(number, _shared(instruction))
            use(_touched(instruction, asked), position)
            use(instruction.results, position)
        end = len(program.instructions)
        use((*program.results, *(program.parameters if iterated else ())), end)
        return uses


def _touched(instruction: Instruction, asked: bool) -> set[int]:
    """What is read while an instruction is computed."""
    numbers = {*instruction.reads} if instruction.compiled or instruction.by == VIEW else {*instruction.operands}
    if instruction.open or asked:
        numbers |= {*instruction.inputs}
    if asked or (instruction.compiled is not None and instruction.compiled.doubtful):
        numbers |= {*instruction.operands}
    return {number for number in numbers if number is not None}


def _shared(instruction: Instruction) -> Iterator[int]:
    """The inputs that results of a kernel may be views of."""
    if instruction.compiled is not None or instruction.posts:
        return
    anything = bool(instruction.bodies) or instruction.enclosed is not None or not instruction.op.pure
    for position, number in enumerate(instruction.reads if instruction.by == VIEW else instruction.inputs):
        ports = instruction.op.inputs
        viewed = bool(ports) and ports[min(position, len(ports) - 1)].name == instruction.op.view_of
        if number is not None and (anything or viewed):
            yield number


def _alike(a: Tensor, b: Tensor, *, coding: bool) -> bool:
    if (
        (a.type != b.type and not coding and {a.type, b.type} != ROUNDED)
        or a.shape is None
        or b.shape is None
        or len(a.shape) != len(b.shape)
    ):
        return False
    return all(same(x, y) for x, y in zip(a.shape, b.shape, strict=True))


def _fits(tensor: Tensor, operand: Operand) -> bool:
    """Whether a tensor is what an operand says of it."""
    return tensor.type in ("dynamic", operand.type) and (not tensor.static or tensor.shape == operand.shape)


def _nbytes(tensor: Tensor) -> int:
    return prod(int(size) for size in tensor.shape or ()) * numpy_dtype(tensor.type).itemsize
