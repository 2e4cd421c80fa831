"""Assign: every instruction goes to the first engine that takes it, with as many of its posts as that takes.

Expects a fused program; leaves one in which engines have compiled what they took, other layouts have a reorder between
those who give and those who want them, and instructions that only look at memory are views. What no engine takes, or
fails to prepare, is computed by the op's own kernel.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from irrun.engines.axes import dense_strides, reshaped_strides
from irrun.engines.memory import data_address
from irrun.engines.work import Compiled, Engine, Layout, Operand, Work
from irrun.engines.work_cache import is_weight
from irrun.interruption import hand_on
from irrun.ir.graph import Layer
from irrun.run.compiling import (
    EngineFailed,
    comes_alike,
    compile_work,
    compiled_again,
    dense_operand,
    static_shape,
    strides_of,
    work_of,
)
from irrun.run.internal_ops import DEQUANTIZE, QUANTIZE, REORDER
from irrun.run.memory import outputs_text, owner_of, refusal
from irrun.run.passes.kinds import Kinds
from irrun.run.passes.setting import Setting, Taken, Views
from irrun.run.program import VIEW, Instruction, Program, Storage
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array, Tensor
from irrun.spec.traits import Elementwise, Reshaping


def assign(program: Program, setting: Setting) -> Program:
    """Raises EngineFailed where an engine cannot bring a tensor into a layout of its own, or back, and ExecutionError
    where a tensor of one takes more memory than there may be in use."""
    if not setting.engines:
        return program
    made = [number for instruction in program.instructions for part in instruction.parts for number in part.outputs]
    assignment = Assignment(program, setting, program.read(made=setting.watched))
    for number in (*program.parameters, *made):
        assignment.place(number)
    for instruction in program.instructions:
        assignment.add(instruction)
    return assignment.finish()


class Assignment:
    """A program in the making; `read` are the tensors that something reads."""

    def __init__(self, program: Program, setting: Setting, read: set[int | None]) -> None:
        self.program = program = replace(program.begun(), storage={})
        self.setting, self._read = setting, read
        self._templates: dict[int, Array] = {**program.constants}
        self._reordered: dict[int, list[tuple[Layout | None, int]]] = {}
        self._laid: dict[int, Layer] = {}  # who has laid out a tensor as only its engine knows
        self._coded: dict[int, Instruction] = {}  # what makes numbers of codes
        self._pending: dict[int, Instruction] = {}  # of these, what nobody has needed yet
        self._taken: dict[Hashable, Taken | Views] = {}  # what came of instructions, by their kind
        self._kinds = Kinds(program, setting, read, self._coded)
        self._blank = np.empty(0, np.uint8)
        self._sizes: dict[int, int] = {}  # bytes of tensors, by the identity of what is known of them

    def place(self, number: int) -> None:
        """Give a tensor memory of its own, if its size is known."""
        tensor = self.program.tensors[number]
        nbytes = self._sizes.get(id(tensor))
        if nbytes is None:
            known = tensor.static and tensor.numeric and tensor.type != "dynamic"
            nbytes = prod(static_shape(tensor)) * numpy_dtype(tensor.type).itemsize if known else -1
            self._sizes[id(tensor)] = nbytes
        if nbytes >= 0:
            self.program.storage[number] = Storage(number, nbytes)

    def add(self, instruction: Instruction) -> None:
        self._layer = instruction.layer
        kind = self._kinds.of(instruction)
        taken = self._taken.get(kind)
        if taken is None or not self._repeat(instruction, taken):
            self._add(instruction, kind)

    def _add(self, instruction: Instruction, kind: Hashable) -> None:
        known = all(number is None or self._is_known(number) for number in instruction.operands)
        if not known or not instruction.plain or not all(map(self._is_known, instruction.outputs)):
            self._keep(instruction)
            return
        self._require_room(instruction, [n for n in instruction.operands if n is not None])
        if instruction.op is DEQUANTIZE and instruction.outputs[0] not in self._coded:
            self._coded[instruction.outputs[0]] = self._pending[instruction.outputs[0]] = instruction
            return
        if instruction.op.view_of and not instruction.open and self._view(instruction.head(0), kind):
            self._add_rest(instruction, 0)
            return
        if self._offer(instruction, kind):
            return
        if self._numbers(instruction.operands) or self._expanded(instruction):
            self.add(instruction)
            return
        self._keep(instruction.head(0))
        self._add_rest(instruction, 0)

    def _add_rest(self, instruction: Instruction, count: int) -> None:
        """Add the posts of an instruction from number `count` on, if there are any."""
        if count < len(instruction.posts):
            self.add(instruction.rest(count))

    def _repeat(self, instruction: Instruction, taken: Taken | Views) -> bool:
        """Do with an instruction what was done with one of its kind; False where its weights make a difference."""
        if isinstance(taken, Taken):
            some = instruction.head(taken.fused)
            again = self.again(some, taken)
            if again is None:
                return False
            self._take(taken.engine, some, *again)
            self._add_rest(instruction, taken.fused)
        else:
            source = instruction.port(instruction.op.view_of or "")
            assert source is not None, "its kind has one"
            self._look(instruction.head(0), source, taken)
            self._add_rest(instruction, 0)
        return True

    def _offer(self, instruction: Instruction, kind: Hashable) -> bool:
        """Whether an engine takes an instruction."""
        self._require_room(instruction, instruction.outputs)
        asked: Engine | None = None
        for engine, count in self._choices(instruction):
            if asked is None or (engine is not asked and any(map(self._is_told_apart, instruction.operands))):
                whole = self._work(instruction, engine)
            asked, work, some = engine, whole, instruction
            if count < len(instruction.posts):
                some = instruction.head(count)
                inputs, outputs = whole.inputs[: len(some.operands)], whole.outputs
                if outputs and outputs[0].type != self.program.tensors[some.results[0]].type:
                    outputs = [dense_operand(self.program.tensors[some.results[0]])]
                work = Work(whole.name, whole.attrs, inputs, outputs, whole.posts[:count])
            compiled = compile_work(engine, work, some)
            if compiled is None or (some.open and not self._readable(some)):
                continue
            operands = [number for at, number in enumerate(some.operands) if at not in compiled.coded]
            if self._numbers(operands):  # which may lie otherwise than was thought
                self.add(instruction)
                return True
            self._take(engine, some, work, compiled)
            if kind is not None and not compiled.coded:
                self._taken[kind] = Taken(engine, count, work, compiled, self.weights(some))
            self._add_rest(instruction, count)
            return True
        return False

    def _require_room(self, instruction: Instruction, numbers: Sequence[int]) -> None:
        """Raises ExecutionError where one tensor alone is too large: engines may prepare what grows with its size."""
        program, limit = self.program, self.setting.limit
        for number in numbers:
            storage = program.storage.get(number)
            nbytes = program.storage[storage.root].nbytes if storage and storage.root in program.storage else 0
            if nbytes > limit:
                what = outputs_text([program.tensors[number]])
                raise refusal(instruction.layer, what, nbytes, program.reserved, limit)

    def _choices(self, instruction: Instruction) -> list[tuple[Engine, int]]:
        """Engines by turns, each with as many posts as it takes. Element-wise ops are a pass over memory each: of them
        goes to an engine, the first one, that takes most of them at once; where these make codes one comes first that
        is `coding`."""
        engines = [own for own in self.setting.engines if (instruction.layer, own.name) not in self.setting.refused]
        counts = range(len(instruction.posts), -1, -1)
        apart = instruction.op.trait(Elementwise) is None or any(map(self._is_opaque, instruction.operands))
        if apart:
            return [(engine, count) for engine in engines for count in counts]
        if instruction.parts[-1].op is QUANTIZE:
            engines.sort(key=lambda engine: not engine.coding)
        return [(engine, count) for count in counts for engine in engines]

    def again(self, instruction: Instruction, taken: Taken) -> tuple[Work, Compiled] | None:
        """The work of one of a kind, and what comes of it; None where that wants or gives something else."""
        if not taken.weights:
            return taken.work, taken.compiled
        work = self._weighted(instruction, taken)
        found = compiled_again(work, instruction, taken)
        return None if found is None or not comes_alike(found, taken.compiled) else (work, found)

    def weights(self, instruction: Instruction) -> tuple[int, ...]:
        """Which of the operands of an instruction are weights."""
        return tuple(at for at, number in enumerate(instruction.operands) if self._is_weight(number))

    def _is_weight(self, number: int | None) -> bool:
        return number in self.program.constants and is_weight(self.program.constants[number])

    def _weighted(self, instruction: Instruction, taken: Taken) -> Work:
        """The work of one of a kind with the weights of another one."""
        operands, work = instruction.operands, taken.work
        inputs = list(work.inputs)
        for at in taken.weights:
            number = operands[at]
            assert number is not None
            inputs[at] = self._operand(number, taken.engine, work.name)
        return Work(work.name, work.attrs, inputs, work.outputs, work.posts)

    def _numbers(self, operands: Sequence[int | None]) -> bool:
        """Make those of the operands of which there are only codes so far; False where there are none such."""
        wanted = [number for number in dict.fromkeys(operands) if number in self._pending]
        for number in wanted:
            layer = self._layer
            self.add(self._pending.pop(number))
            self._layer = layer
        return bool(wanted)

    def _expanded(self, instruction: Instruction) -> bool:
        """Make the weights of an instruction f32 that no engine has taken compressed; False where it has none."""
        program = self.program
        found = [number for number in instruction.operands if number in program.compressed]
        for number in found:
            assert number is not None
            dense = self.setting.dense(program.compressed[number])
            program.constants[number] = self._templates[number] = dense
            program.reserved += dense.nbytes
        program.compressed = {n: weights for n, weights in program.compressed.items() if n not in found}
        return bool(found)

    def _is_known(self, number: int) -> bool:
        return any(number in known for known in (self.program.constants, self.program.compressed, self.program.storage))

    def _readable(self, instruction: Instruction) -> bool:
        """Whether the inputs are at hand in a run as the op's rule can read them."""
        return not any(map(self._is_opaque, instruction.inputs))

    def _is_opaque(self, number: int | None) -> bool:
        storage = None if number is None else self.program.storage.get(number)
        return storage is not None and storage.opaque

    def _view(self, instruction: Instruction, kind: Hashable) -> bool:
        """Take an instruction whose results are views of its input; False where it copies."""
        if self.setting.watched:
            return False
        op, program = instruction.op, self.program
        source = instruction.port(op.view_of or "")
        self._numbers([source])
        others = [(at, number) for at, number in enumerate(instruction.inputs) if number not in (None, source)]
        if source is None or any(number not in program.constants for _, number in others):
            return False
        if program.tensors[source].type != program.tensors[instruction.outputs[0]].type:  # it converts
            return False
        dense = self._dense(source)
        if (views := self._reshaped(instruction, dense)) is not None:
            if kind is not None and dense == source:
                self._taken[kind] = views
            self._look(instruction, dense, views)
            return True
        inputs = tuple(dense if number == source else number for number in instruction.inputs)
        template = self._template(dense)
        owner = owner_of(template)
        start = data_address(template) - data_address(owner)
        told = [(at, program.constants[number]) for at, number in others if number is not None]
        values = [(at, array.dtype, array.shape, array.tobytes()) for at, array in told]
        key = (instruction.op, id(instruction.attrs), template.dtype, template.shape, template.strides, start, *values)
        known = self.setting.views.get(key)
        if known is None:
            known = self.setting.views[key] = instruction.attrs, self._views(instruction, inputs, template, start)
        _, views = known
        if not views:
            return False
        if kind is not None and dense == source and not any(map(self._is_weight, inputs)):
            self._taken[kind] = views
        self._look(instruction, dense, views)
        return True

    def _reshaped(self, instruction: Instruction, source: int) -> Views | None:
        """The view that an instruction is of what lies in C order, where it only says what sizes that has."""
        storage = self.program.storage.get(source)
        if storage is None or storage.steps is not None or storage.opaque or storage.root in self.program.constants:
            return None
        if instruction.op.trait(Reshaping) is None:
            return None
        before, shape = (static_shape(self.program.tensors[number]) for number in (source, instruction.outputs[0]))
        return [(shape, None, storage.start)] if prod(before) == prod(shape) > 0 else None

    def _views(self, instruction: Instruction, inputs: Sequence[int | None], source: Array, start: int) -> Views:
        """Where in the memory of the `source`, which begins at byte `start` of it, the results of an instruction lie;
        nothing where it copies. Its kernel tells that, unless it would copy all of it for nothing."""
        if instruction.op.trait(Reshaping) is not None and source.size:
            shape = static_shape(self.program.tensors[instruction.outputs[0]])
            if prod(shape) != source.size:  # the run says what is wrong
                return []
            if source.flags.c_contiguous:
                return [(shape, None, start)]
            if reshaped_strides(source.shape, source.strides, shape) is None:
                return []
        arrays = [None if number is None else self._template(number) for number in inputs]
        try:
            results = instruction.computed(arrays)
        except Exception as error:  # the run reports it, with its layer
            hand_on(error)
            return []
        owner = owner_of(source)
        if not all(result.size and owner_of(result) is owner for result in results):
            return []
        begin = data_address(owner)
        return [(result.shape, _spread(result), data_address(result) - begin) for result in results]

    def _look(self, instruction: Instruction, source: int, views: Views) -> None:
        """Add an instruction whose results are `views` of a tensor."""
        program, constant = self.program, source in self.program.constants
        root = source if constant else program.storage[source].root
        for number, (shape, strides, start) in zip(instruction.outputs, views, strict=False):
            program.storage[number] = Storage(root, start=start, strides=strides)
            if root in program.constants:  # which may lie elsewhere afterwards
                template = self._template(source)
                self._templates[number] = np.ndarray(shape, template.dtype, owner_of(template), start, strides)
        if source not in instruction.inputs:
            own = instruction.port(instruction.op.view_of or "")
            instruction = instruction.changed(
                inputs=tuple(source if number == own else number for number in instruction.inputs)
            )
        program.instructions.append(instruction.changed(by=VIEW, reads=instruction.inputs))

    def _template(self, number: int) -> Array:
        """An array as the tensor will have it, in memory that all have for that, as nobody reads or writes it."""
        if number not in self._templates:
            tensor, storage = self.program.tensors[number], self.program.storage.get(number)
            shape, dtype = static_shape(tensor), numpy_dtype(tensor.type)
            if storage is None or storage.root == number:
                size, steps = prod(shape) * dtype.itemsize, None
                if storage is not None and storage.layout is not None and storage.layout.strides is not None:
                    size, steps = storage.layout.nbytes, storage.layout.strides
                if self._blank.nbytes < size:
                    self._blank = np.empty(size, np.uint8)  # what nobody writes to takes no memory
                self._templates[number] = np.ndarray(shape, dtype, self._blank, 0, steps)
            else:
                owner = owner_of(self._template(storage.root))
                self._templates[number] = np.ndarray(shape, dtype, owner, storage.start, storage.strides)
        return self._templates[number]

    def _is_told_apart(self, number: int | None) -> bool:
        """Whether engines are told different things of a tensor, or once another one has been asked."""
        constant = None if number is None else self.program.constants.get(number)
        if constant is not None:
            return not constant.flags.aligned
        return number in self._coded or self._is_opaque(number)

    def _work(self, instruction: Instruction, engine: Engine) -> Work:
        name = instruction.op.name
        operands = [None if number is None else self._operand(number, engine, name) for number in instruction.operands]
        results = instruction.results
        read = max((count for count, number in enumerate(results, 1) if number in self._read), default=0)
        return work_of(
            instruction, operands, [dense_operand(self.program.tensors[number]) for number in results[:read]]
        )

    def _operand(self, number: int, engine: Engine, name: str) -> Operand:
        """A tensor as a work of the op `name` has it."""
        tensor, storage = self.program.tensors[number], self.program.storage.get(number)
        constant = self.program.constants.get(number)
        if constant is not None:
            if not engine.unaligned(name):
                constant = self._aligned(number)
            return Operand(tensor.type, constant.shape, constant.strides, constant)
        if (weights := self.program.compressed.get(number)) is not None:
            return replace(dense_operand(tensor), compressed=weights)
        shape = static_shape(tensor)
        if storage is not None and storage.opaque:
            layout = storage.layout if storage.engine is engine else None
            operand = Operand(tensor.type, shape, strides_of(tensor), None, layout)
        else:
            steps = None if storage is None else storage.steps
            operand = Operand(tensor.type, shape, steps or strides_of(tensor))
        if (made := self._coded.get(number)) is not None and made.inputs[0] is not None:
            operand.codes = self._operand(made.inputs[0], engine, name)
            operand.grid = made.attrs["grid"]
        return operand

    def _aligned(self, number: int) -> Array:
        constants = self.program.constants
        if not constants[number].flags.aligned:
            constants[number] = self._templates[number] = self.setting.alignment(constants[number])
        return constants[number]

    def _take(self, engine: Engine, instruction: Instruction, work: Work, compiled: Compiled) -> None:
        reads: list[int | None] = []
        stored = self.program.storage
        for position, number in enumerate(instruction.operands):
            if number is not None and position in compiled.coded:
                number = self._coded[number].inputs[0]
            if number is None or position in compiled.taken:
                reads.append(None)
            elif position in compiled.wants:
                reads.append(self._in_layout(number, compiled.wants[position], engine))
            elif (storage := stored.get(number)) is None or storage.engine in (None, engine):
                reads.append(number)
            else:
                reads.append(self._dense(number))
        results = instruction.results[: len(work.outputs)]
        for position, layout in compiled.gives.items():
            self.lay(results[position], layout, engine, instruction.layer)
        self.program.instructions.append(
            instruction.changed(by=engine.name, work=work, compiled=compiled, reads=tuple(reads))
        )

    def lay(self, number: int, layout: Layout | None, engine: Engine, layer: Layer) -> None:
        """Note that a layer has a tensor laid out otherwise than in C order."""
        if layout is None:
            return
        storage = self.program.storage[number]
        storage.layout, storage.nbytes = layout, layout.nbytes
        self._templates.pop(number, None)
        if layout.strides is None:
            storage.engine, self._laid[number] = engine, layer

    def _dense(self, number: int) -> int:
        """The number of the same tensor as an array that everybody can read."""
        storage = self.program.storage.get(number)
        engine = storage.engine if storage is not None and storage.opaque else None
        return number if engine is None else self._in_layout(number, None, engine)

    def _in_layout(self, number: int, layout: Layout | None, engine: Engine) -> int:
        """The number of the same tensor in another layout."""
        storage = self.program.storage.get(number)
        if storage is not None and storage.opaque and storage.engine is not engine:
            number = self._dense(number)
            storage = self.program.storage.get(number)
        opaque = storage is not None and storage.opaque
        if not opaque and layout is None and self._template(number).flags.c_contiguous:
            return number
        for known, other in self._reordered.setdefault(number, []):
            if _is_same(known, layout):
                return other
        source = self._operand(number, engine, REORDER.name)
        layer = self._laid[number] if opaque else self._layer
        try:
            compiled = engine.reorder(source, layout)
        except Exception as error:
            hand_on(error)
            raise EngineFailed(engine.name, layer, error) from error
        copy = self.copy(number, layout, engine, layer)
        work = Work(REORDER.name, {}, [source], [dense_operand(self.program.tensors[copy])])
        self.program.instructions.append(
            Instruction(
                *(layer, REORDER, {}, {}, (number,), (copy,)),
                by=engine.name,
                work=work,
                compiled=compiled,
                reads=(number,),
                ports=(),
            )
        )
        return copy

    def copy(self, number: int, layout: Layout | None, engine: Engine, layer: Layer) -> int:
        """The number of a new tensor, which is another one in another layout."""
        tensor = self.program.tensors[number]
        copy = self.program.add(Tensor(tensor.type, tensor.shape))
        self.place(copy)
        self.lay(copy, layout, engine, layer)
        self._reordered.setdefault(number, []).append((layout, copy))
        self._read.add(copy)
        return copy

    def _keep(self, instruction: Instruction) -> None:
        """Leave an instruction to the kernels."""
        self._numbers(instruction.operands)
        if not any(map(self._is_opaque, instruction.operands)):
            self.program.instructions.append(instruction)
            return
        dense = {number: self._dense(number) for number in instruction.operands if number is not None}
        parts = [part.reading(dense) for part in instruction.parts]
        self.program.instructions.append(parts[0].changed(posts=tuple(parts[1:])))

    def finish(self) -> Program:
        """The program, its results and the constants that are read in forms that everybody can read."""
        program = self.program
        self._numbers(program.results)
        program.results = tuple(map(self._dense, program.results))
        read = [own.reads if own.compiled else own.operands for own in program.instructions]
        for number in program.constants.keys() & set[int | None]().union(*read):
            self._aligned(number)
        return program


def _is_same(one: Layout | None, other: Layout | None) -> bool:
    """Whether layouts, of two engines perhaps, are one."""
    if one is None or other is None or one.strides is None:
        return one == other
    return one.strides == other.strides


def _spread(array: Array) -> tuple[int, ...] | None:
    """The strides of an array that does not lie in C order."""
    return None if array.strides == dense_strides(array.shape, array.itemsize) else array.strides
