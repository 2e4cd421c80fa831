"""Instructions whose sizes only a run tells, as engines compute them: specialised for each set of shapes they see."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from irrun.diagnostics import IRError
from irrun.engines.extents import once
from irrun.engines.memory import allocate
from irrun.engines.work import OPEN_GROWTH, Call, Compiled, Engine, OpenCall, Operand, Work, chain, either
from irrun.engines.work_cache import is_weight
from irrun.interruption import hand_on
from irrun.locks import Latest
from irrun.records import NamedTuple
from irrun.run.compiling import (
    compile_work,
    compiled_again,
    dense_operand,
    reordering,
    room,
    warn_fallback,
    work_of,
)
from irrun.run.kernels import Kernels
from irrun.run.memory import Meter, tensor_bytes
from irrun.run.passes.setting import Setting, Taken
from irrun.run.program import KERNEL, Instruction, Program
from irrun.run.rules import Rule
from irrun.run.session import Run
from irrun.spec.op import Array, Inferred, Tensor, Violation
from irrun.spec.traits import Converting

MAX_KEPT = 8
"""Sets of shapes for which an instruction keeps what engines made of it."""

MAX_SMALL, MAX_SINGLE = 1 << 12, 1 << 15
"""Elements that are read by an instruction which its kernel computes in less time than an engine prepares it, and by
one that is functions of numpy's which take each by itself."""


class _Specialized(NamedTuple):
    """What an engine made of an instruction and `fused` of its posts for some shapes; `checked` says that the rule has
    to see the data."""

    engine: Engine
    work: Work
    compiled: Compiled
    fused: int
    checked: bool = False


class _Bound(NamedTuple):
    """The calls that compute an instruction in memory of their own, and their results."""

    calls: list[Call]
    results: list[Array]


_Made = tuple[_Specialized | None, _Bound | None]
"""What was made, None where no engine takes it, and that bound to the arrays that it was made for, if it is new."""


def is_unsized(program: Program, instruction: Instruction) -> bool:
    """Whether all is known of an instruction but sizes, so that an engine may compute it when they are there."""
    return is_typed(program, instruction) and not all(tensor.static for tensor in _tensors(program, instruction))


def is_typed(program: Program, instruction: Instruction) -> bool:
    """Whether engines may compute an instruction that none has compiled, when its sizes are there."""
    if not instruction.plain or instruction.by != KERNEL:
        return False
    return all(tensor.numeric for tensor in _tensors(program, instruction))


def _tensors(program: Program, instruction: Instruction) -> list[Tensor]:
    numbers = (*instruction.operands, *instruction.results)
    return [program.tensors[number] for number in numbers if number is not None]


class Specialization:
    """Safe for threads. `read` are the tensors that anything in the program reads (`Program.read`).

    `opened` are the calls that engines have for any sizes, by their names, of the instruction without its posts.
    """

    def __init__(
        self, program: Program, instruction: Instruction, read: set[int | None], setting: Setting, kernels: Kernels
    ) -> None:
        self._program, self._instruction, self._setting, self._kernels = program, instruction, setting, kernels
        self._read = read
        self._computed = kernels.computation(program, instruction)
        self._kept: Latest[Hashable, _Specialized | None] = Latest(MAX_KEPT)
        self._rests: dict[int, Specialization] = {}
        self._small, results = _most_small(instruction), instruction.results
        self._single = len(instruction.operands) == len(results) == 1 and _is_single(instruction)
        self.opened = self._opened(instruction.head(0))
        self._whole = self._opened(instruction) if instruction.posts else self.opened
        made = [program.tensors[number] for number in results]
        self._most = sum(map(tensor_bytes, made)) if all(tensor.static for tensor in made) else None
        self._count = max((count for count, number in enumerate(results, 1) if number in read), default=1)
        self._weights = tuple(at for at, number in enumerate(instruction.operands) if program.is_weight(number))
        self._kind = self._kind_of()  # None once the rule has looked at more than shapes: then it is like no other
        self._told = True  # whether shapes tell those of the results, as far as has been seen

    def compute(self, arrays: Sequence[Array | None], run: Run) -> tuple[str, list[Array]]:
        """What computes it, its posts aside, and the results for the arrays of its operands. Raises ExecutionError.

        The first of these that can: itself for one element of an array that repeats it; a call for any sizes, with its
        posts or these behind it; kernels where little is read; what an engine made for arrays that lie like these;
        kernels.
        """
        if self._single and (array := arrays[0]) is not None and array.size and 0 in array.strides:
            single = once(array)
            if single.size < array.size:
                by, (result,) = self.compute([single], run)
                return by, [np.broadcast_to(result, array.shape)]
        given = self._openly(self._whole, arrays, run) or self._by_head(arrays, run)
        if given is not None:
            return given
        if sum(array.size for array in arrays if array is not None) <= self._small:
            return KERNEL, self._computed(arrays, run)
        found, bound = self._specialized(arrays, run) if self._told else (None, None)
        if found is None or not _fit(found.work, run.meter):
            return KERNEL, self._computed(arrays, run)
        return self._by_engine(found, bound, arrays, run)

    def _by_engine(
        self, found: _Specialized, bound: _Bound | None, arrays: Sequence[Array | None], run: Run
    ) -> tuple[str, list[Array]]:
        """By what an engine made, and the posts that it leaves over behind it; kernels where its result will not do."""
        if found.checked and found.compiled.judging is None:  # what judges the data asks only where it has doubts
            self._computed.check(arrays[: len(self._instruction.inputs)], run)
        try:
            calls, results = bound or self._bound(found, arrays, run)
            for call in calls:
                call()
        except IRError:
            raise
        except Exception as error:
            hand_on(error)
            raise self._kernels.failed(self._instruction, f"engine {found.engine.name}", error) from error
        if found.compiled.doubtful and not np.isfinite(results[0]).all():
            return KERNEL, self._computed(arrays, run)
        if run.meter is not None:
            run.meter.add(*results)
        if found.fused == len(self._instruction.posts):
            return found.engine.name, results
        others = arrays[len(found.work.inputs) :]
        return found.engine.name, self._with_rest(found.fused, results[0], others, run)

    def _openly(
        self, calls: Sequence[tuple[str, OpenCall]], arrays: Sequence[Array | None], run: Run
    ) -> tuple[str, list[Array]] | None:
        """By one of the calls for any sizes; None where there is none, or the rule has something to say."""
        for by, call in calls if calls and self._may_grow(arrays, run.meter) else ():
            try:
                given = call(arrays)
            except Exception as error:
                hand_on(error)
                raise self._kernels.failed(self._instruction, f"engine {by}", error) from error
            if given is None:
                continue
            if run.meter is not None:
                run.meter.add(*given)
            return by, list(given)
        return None

    def _by_head(self, arrays: Sequence[Array | None], run: Run) -> tuple[str, list[Array]] | None:
        """By a call for any sizes that does no posts, and these behind it; None where there is none."""
        if not self._instruction.posts or not self.opened:
            return None
        own = len(self._instruction.inputs)
        given = self._openly(self.opened, arrays[:own], run)
        if given is None:
            return None
        by, (result, *_) = given
        return by, self._with_rest(0, result, arrays[own:], run)

    def _with_rest(self, count: int, result: Array, others: Sequence[Array | None], run: Run) -> list[Array]:
        """What the posts from number `count` on make of a result; `others` are the arrays that they read besides."""
        _, results = self._rest(count).compute(self._operands(count, result, others), run)
        return results

    def _may_grow(self, arrays: Sequence[Array | None], meter: Meter | None) -> bool:
        """Whether there is room for whatever open calls give; if not, kernels say how much they want."""
        if meter is None:
            return True
        most = self._most
        if most is None:
            most = OPEN_GROWTH * sum([array.nbytes for array in arrays if array is not None])
        return meter.live + most <= meter.limit

    def _opened(self, instruction: Instruction) -> list[tuple[str, OpenCall]]:
        """The calls that engines have for any sizes, by their names."""
        found = list[tuple[str, OpenCall]]()
        if any(number in self._program.compressed for number in instruction.operands):  # of which calls get a stand-in
            return found
        if any(tensor.shape is None for tensor in _tensors(self._program, instruction)):  # no rule has seen the ranks
            return found
        operands = [None if number is None else self._open_operand(number) for number in instruction.operands]
        work = work_of(instruction, operands, [self._open_operand(number) for number in instruction.results])
        for engine in self._setting.engines:
            try:
                call = engine.open(work)
            except Exception as error:
                hand_on(error)
                warn_fallback("engine %s failed to prepare layer %s: %r", engine.name, instruction.layer, error)
                continue
            if call is not None:
                found.append((engine.name, call))
        return found

    def _open_operand(self, number: int) -> Operand:
        tensor = self._program.tensors[number]
        sizes = tuple(size if isinstance(size, int) else -1 for size in tensor.shape or ())
        return Operand(tensor.type, sizes, (), self._program.constants.get(number))

    def _rest(self, count: int) -> Specialization:
        """The posts that an engine has left over, as an instruction."""
        if count not in self._rests:
            rest = self._instruction.rest(count)
            self._rests[count] = Specialization(self._program, rest, self._read, self._setting, self._kernels)
        return self._rests[count]

    def _operands(self, count: int, result: Array, others: Sequence[Array | None]) -> Sequence[Array | None]:
        """The arrays of the operands of the posts from number `count` on, the first of which reads `result`."""
        first = self._instruction.posts[count]
        made = self._instruction.parts[count].outputs[0]
        rest = iter(others)
        own = [result if number == made else None if number is None else next(rest) for number in first.inputs]
        return [*own, *rest]

    def _kind_of(self) -> Hashable:
        """What instructions share of which the same comes for arrays of the same shapes, but for what their weights
        hold; None for one that is like no other."""
        instruction, program = self._instruction, self._program
        key: list[Hashable] = [*instruction.form, self._count]
        for at, number in enumerate(instruction.operands):
            constant = program.constant(number)
            if number in program.compressed or (constant is not None and is_weight(constant) != (at in self._weights)):
                return None
            value = None if constant is None or at in self._weights else constant.tobytes()
            key += () if number is None else (program.tensors[number].type, constant is None, value)
        return (*key, *(program.tensors[number].type for number in instruction.results))

    def _specialized(self, arrays: Sequence[Array | None], run: Run) -> _Made:
        """What an engine made for arrays that lie like these, of this one or of one that is alike, or makes now."""
        lying = _lying(arrays)
        kept = self._kept.recall(lying)
        if kept is not None:
            return kept[0], None
        taken, key = self._setting.taken, (self._kind, lying)
        before = None if self._kind is None else taken.get(key)
        again = None if before is None else self._again(before, arrays, run)
        found, bound = again or self._made(arrays, run)
        if again is None and found is not None and self._kind is not None:
            weights = tuple(at for at in self._weights if at < len(found.work.inputs))
            taken[key] = Taken(found.engine, found.fused, found.work, found.compiled, weights)
        self._kept.keep(lying, found)
        return found, bound

    def _again(self, taken: Taken, arrays: Sequence[Array | None], run: Run) -> _Made | None:
        """What an engine made of one that is alike, with the weights of this one; None where it fails."""
        instruction, work = self._instruction, taken.work
        inputs = list(work.inputs)
        for at in taken.weights:
            inputs[at] = self._operand(instruction.operands[at], arrays[at])
        work = Work(work.name, work.attrs, inputs, work.outputs, work.posts)
        compiled = compiled_again(work, instruction, taken)
        if compiled is None:
            return None
        found = _Specialized(taken.engine, work, compiled, taken.fused)
        if not _fit(work, run.meter):  # which the kernels say
            return found, None
        bound = self._tried(found, arrays, run)
        return None if bound is None else (found, bound)

    def _inferred(self, given: Sequence[Array | None]) -> Inferred | None:
        """What the rule says of shapes; None where engines cannot take that, or there is nothing to compute. This tells
        whether the instruction is like others (`_kind`), and shapes those of the results (`_told`)."""
        rule = Rule(self._program, self._instruction)
        inferred = None if self._kind is None else rule.of_shapes(given, self._weights)
        if inferred is None or not inferred.complete:  # the rule may look at what weights hold, or at data
            self._kind = None
            inferred = rule.of_shapes(given)
        self._told = inferred is None or all(tensor.static for tensor in inferred.outputs)
        if inferred is None or len(inferred.outputs) < len(self._instruction.outputs):  # of which the kernels speak
            return None
        return inferred if all(tensor.static and prod(tensor.shape or ()) for tensor in inferred.outputs) else None

    def _made(self, arrays: Sequence[Array | None], run: Run) -> _Made:
        """What an engine makes of it, and that bound to these arrays."""
        instruction, known = self._instruction, self._program.tensors
        inferred = self._inferred(arrays[: len(instruction.inputs)])
        if inferred is None or not self._posts_fit(inferred.outputs[0], arrays):
            return None, None
        operands = [*map(self._operand, instruction.operands, arrays)]
        for engine in self._setting.engines:
            for count in range(len(instruction.posts), -1, -1):
                some = instruction.head(count)
                made = zip(some.results, inferred.outputs[: self._count], strict=False)
                outputs = [dense_operand(Tensor(known[number].type, own.shape)) for number, own in made]
                work = work_of(some, operands[: len(some.operands)], outputs)
                if not _fit(work, run.meter):  # which the kernels say
                    return None, None
                compiled = compile_work(engine, work, some)
                if compiled is None:
                    continue
                found = _Specialized(engine, work, compiled, count, not inferred.complete)
                bound = self._tried(found, arrays, run)
                if bound is not None:
                    return found, bound
        return None, None

    def _tried(self, found: _Specialized, arrays: Sequence[Array | None], run: Run) -> _Bound | None:
        """What an engine made of it, bound to these arrays; None where it fails, which is noted in the log."""
        try:
            return self._bound(found, arrays, run)
        except Exception as error:
            hand_on(error)
            warn_fallback("engine %s failed to bind layer %s: %r", found.engine.name, self._instruction.layer, error)
            return None

    def _operand(self, number: int | None, array: Array | None) -> Operand | None:
        if number is None or array is None:
            return None
        value = self._program.constants.get(number)
        weights = self._program.compressed.get(number)
        return Operand(self._program.tensors[number].type, array.shape, array.strides, value, compressed=weights)

    def _posts_fit(self, result: Tensor, arrays: Sequence[Array | None]) -> bool:
        """Whether the rules of all posts are kept by these shapes, and none changes the result's."""
        instruction, known = self._instruction, self._program.tensors
        pairs = zip(instruction.operands, arrays, strict=True)
        given = [None if number is None else Tensor(known[number].type, _shape(array)) for number, array in pairs]
        for post, arguments in zip(instruction.posts, instruction.arguments()[1:], strict=True):
            tensors = [None if at is None else result if at < 0 else given[at] for at in arguments]
            try:
                inferred = post.op.infer(tensors, post.attrs)
            except Violation:
                return False
            made = inferred.outputs[0]
            if not inferred.complete or (made.type, made.shape) != (known[post.outputs[0]].type, result.shape):
                return False
            result = made  # of another type behind a conversion
        return True

    def _bound(self, found: _Specialized, arrays: Sequence[Array | None], run: Run) -> _Bound:
        """What an engine made of it, bound to these arrays, layouts brought to and fro."""
        engine, work, compiled = found.engine, found.work, found.compiled
        calls: list[Call] = []
        read: list[Array | None] = []
        for position, (operand, array) in enumerate(zip(work.inputs, arrays, strict=False)):
            if array is None or operand is None or position in compiled.taken:
                read.append(None)
            elif position in compiled.wants:
                layout = compiled.wants[position]
                brought = room(operand, layout)
                read.append(brought)
                calls.append(reordering(engine, operand, layout, array, brought))
            else:
                read.append(array)
        take = self._setting.reserve.lend
        written = [room(operand, compiled.gives.get(position), take) for position, operand in enumerate(work.outputs)]
        scratch = allocate(compiled.scratch) if compiled.scratch else None
        call = compiled.bind(read, written, scratch)
        if compiled.judging is not None:
            if found.checked:
                call = chain([partial(self._computed.check, arrays[: len(self._instruction.inputs)], run), call])
            call = either(compiled.judging(read, written, scratch), call)
        calls.append(call)
        results = list(written)
        for position, (operand, array) in enumerate(zip(work.outputs, written, strict=True)):
            layout = compiled.gives.get(position)
            if layout is not None and layout.strides is None:
                results[position] = room(operand, None, take)
                calls.append(reordering(engine, replace(operand, layout=layout), None, array, results[position]))
        return _Bound(calls, results)


def at_most_small(program: Program, instruction: Instruction) -> bool:
    """Whether one of known sizes reads so little that its kernel computes it while an engine prepares it."""
    read = [program.tensors[number] for number in instruction.operands if number is not None]
    return sum(prod(map(int, tensor.shape or ())) for tensor in read) <= _most_small(instruction)


def _most_small(instruction: Instruction) -> int:
    return MAX_SINGLE if all(map(_is_single, instruction.parts)) else MAX_SMALL


def _is_single(part: Instruction) -> bool:
    """Whether the kernel of an op is a function of numpy's that takes each element by itself."""
    return part.op.trait(Converting) is not None or part.function is not None


def _fit(work: Work, meter: Meter | None) -> bool:
    """Whether there is room for the outputs; they are allocated also where a kernel would give views."""
    outputs = [Tensor(output.type, output.shape) for output in work.outputs]
    return meter is None or meter.live + sum(map(tensor_bytes, outputs)) <= meter.limit


def _lying(arrays: Sequence[Array | None]) -> Hashable:
    """The shapes and strides of arrays."""
    return tuple([None if array is None else (array.shape, array.strides) for array in arrays])


def _shape(array: Array | None) -> tuple[int, ...] | None:
    return None if array is None else array.shape
