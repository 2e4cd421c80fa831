"""Fold: what is constant for all inputs of these shapes is computed now, with the ops' own kernels.

Expects a program in topological order. Where shapes of inputs are set, rules that left a question open are asked again
with what is known now. Leaves no instruction whose results are constants, or have no elements, and those `open` whose
rules have still to see the data; one that breaks its rule stays as it is: the run says so, with its data. What is
constant, but was no constant when the model was loaded, is `settled` where somebody looks at the run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.check.infer import Inference, with_values
from irrun.interruption import hand_on
from irrun.run.borders import body_inference
from irrun.run.memory import result_bytes
from irrun.run.passes.setting import Setting
from irrun.run.program import Instruction, Program
from irrun.spec.dims import Dim, Shape, Size, key_of
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import FLOAT, Array, Inferred, Op, Tensor, Violation
from irrun.spec.sizes import Sizes
from irrun.spec.traits import Branching, Lookup

MAX_FOLDED = 1 << 28
"""Bytes that a constant result may have; larger ones are computed in the run, where they can be freed again."""

MAX_FOLDED_ASIDE = 1 << 12
"""The same of what is computed only to know sizes that depend on it."""

MAX_COMPARED = 64
"""Elements of a constant by whose values what a rule has said of them is found again."""


def fold(program: Program, setting: Setting) -> Program:
    folding = Folding(program.begun(), setting)
    folding.run(program.instructions)
    folded = folding.program
    if setting.shapes is not None and not setting.anew:
        folded.varying = frozenset(folded.constants.keys() - program.constants.keys())
    return folded


class Folding:
    """A program in the making, with constants of at most `largest` bytes."""

    def __init__(self, program: Program, setting: Setting, largest: int | None = None) -> None:
        self.program, self.setting = program, setting
        self._largest = MAX_FOLDED if largest is None else largest
        self._constants: dict[int, Tensor] = {}
        self._open_answers: dict[Hashable, Inferred] = {}
        self._inference = Inference(setting.weights)
        self._whole = setting.whole
        self._moved: set[int | None] = set()  # tensors of another rank, or other sizes, than was known of them
        if setting.shapes is not None:
            for number, shape in zip(program.parameters, setting.shapes, strict=False):  # not of what `sizing` makes
                if _contradicts(program.tensors[number].shape, shape):
                    self._moved.add(number)
                program.tensors[number] = _shaped(program.tensors[number], shape)

    def run(self, instructions: list[Instruction], over: Sequence[Sequence[int]] = ()) -> None:
        """Fold these; constants that are `over` behind each of them are let go."""
        settled = [*self.program.settled]
        for position, instruction in enumerate(instructions):
            inputs = [self._tensor(number) for number in instruction.inputs]
            if self.setting.shapes is not None and self._is_asked(instruction):
                instruction = self._asked(instruction, inputs)
            if not (
                self._known(instruction, inputs)
                or self._empty(instruction)
                or self._computed(instruction, inputs)
                or self._looked_up(instruction)
            ):
                self.program.instructions.append(instruction)
            elif self.setting.watched and instruction.ports != ():
                settled.append(instruction)
            for number in over[position] if over else ():
                self._constants.pop(number, None)
                self.program.constants.pop(number, None)
        self.program.settled = tuple(settled)

    def asked(self, instruction: Instruction) -> Instruction:
        """The instruction after its rule was asked with what is known of its inputs now. Raises Violation."""
        return self._told(instruction, [self._tensor(number) for number in instruction.inputs])

    def _tensor(self, number: int | None) -> Tensor | None:
        """What is known of a tensor, of a constant once made."""
        if number is None:
            return None
        if number not in self.program.constants:
            return self.program.tensors[number]
        known = self._constants.get(number)
        if known is None:
            known = self._constants[number] = self.program.known(number)
        return known

    def _is_asked(self, instruction: Instruction) -> bool:
        """Whether the rule may say more, or something else, than it did when less was known."""
        return instruction.open or not (self._settled(instruction) and self._moved.isdisjoint(instruction.inputs))

    def _settled(self, instruction: Instruction) -> bool:
        """Whether no more can become known of the results: no size and no value among them is open."""
        outputs = [self.program.tensors[number] for number in instruction.outputs]
        return all(tensor.static and (tensor.value is None or tensor.known) for tensor in outputs)

    def _asked(self, instruction: Instruction, inputs: list[Tensor | None]) -> Instruction:
        """The same; nothing is known of what one gives that breaks its rule, so that no engine is asked for it."""
        try:
            return self._told(instruction, inputs)
        except Violation:
            for number in instruction.outputs:
                self.program.tensors[number] = Tensor(self.program.tensors[number].type, None)
            return instruction.changed(open=True)

    def _told(self, instruction: Instruction, inputs: list[Tensor | None]) -> Instruction:
        inferred = self._answer(instruction, inputs)
        outputs = inferred.outputs
        if len(outputs) < len(instruction.outputs):
            return instruction
        if any(map(self._is_valued, instruction.inputs, inputs)):
            op, layer = instruction.op, instruction.layer
            outputs = with_values(op, instruction.attrs, inputs, outputs, inferred.types, layer, self._inference)
        if inferred.supposed and not self._will_be_asked(inputs):  # what follows is right whatever the run finds
            outputs = [Tensor(tensor.type, None) for tensor in outputs]
        for number, tensor in zip(instruction.outputs, outputs, strict=False):
            if _contradicts(self.program.tensors[number].shape, tensor.shape):
                self._moved.add(number)
            self.program.tensors[number] = self._presumed(tensor)
        return instruction.changed(types=inferred.types, open=not inferred.complete or bool(inferred.doubts))

    def _is_valued(self, number: int | None, tensor: Tensor | None) -> bool:
        """Whether something is known of the values of a tensor that is no constant, as where sizes are open."""
        value = None if tensor is None else tensor.value
        return value is not None and (value.dtype == object or number not in self.program.constants)

    def _presumed(self, tensor: Tensor) -> Tensor:
        """The tensor, with sizes that are presumed to be equal as one."""
        presumed = self.setting.presumed
        if presumed is None or tensor.shape is None or tensor.static:
            return tensor
        return Tensor(tensor.type, presumed.shape(tensor.shape), tensor.content)

    def _answer(self, instruction: Instruction, inputs: list[Tensor | None]) -> Inferred:
        """What the rule of an instruction says of inputs, which programs of a setting remember. Raises Violation."""
        op, attrs, answers = instruction.op, instruction.attrs, self.setting.answers
        if instruction.bodies:
            inference, bodies = Inference(self.setting.weights), {}  # another round knows other sizes
            for name, (body, program) in instruction.bodies.items():
                infer = body_inference(instruction.layer.bodies[name].graph, program, inference)
                if op.trait(Branching) is not None:
                    infer = partial(self._of_branch, program, infer)
                bodies[name] = replace(body, infer=infer)
            return op.infer(inputs, attrs, bodies)
        keys = [_key(tensor) for tensor in inputs]
        key: Hashable = (op, id(attrs), *keys)
        if None in keys:
            return op.infer(inputs, attrs) if self.setting.sizes is None else self._open_answer(op, attrs, inputs, keys)
        known = answers.get(key)
        if known is not None:
            return known[1]
        found = op.infer([_without_weights(tensor) for tensor in inputs], attrs)
        if not found.complete:
            return op.infer(inputs, attrs)
        answers[key] = attrs, found
        return found

    def _of_branch(
        self, program: Program, otherwise: Callable[[Sequence[Tensor]], list[Tensor]], given: Sequence[Tensor]
    ) -> list[Tensor]:
        """What is known of the results of a branch: what rules say of its program, which remember that for when it is
        prepared; what they say of its graph where sizes or values of what it is given are open."""
        declared = [program.tensors[number].type for number in program.parameters]
        closed = all(tensor.static and (tensor.content is None or tensor.known) for tensor in given)
        if not closed or [tensor.type for tensor in given] != declared:
            return otherwise(given)
        shapes = tuple([tensor.shape or () for tensor in given])
        setting = replace(self.setting, shapes=shapes, presumed=None, watched=False)
        folding = Folding(program.begun(), setting, MAX_FOLDED_ASIDE)
        for number, tensor in zip(program.parameters, given, strict=True):
            if tensor.value is not None:
                folding.program.constants[number] = tensor.value
        folding.run(program.instructions)
        return [folding._tensor(number) or Tensor("dynamic", None) for number in program.results]

    def _open_answer(
        self, op: Op, attrs: Mapping[str, Any], inputs: list[Tensor | None], known: Sequence[Hashable]
    ) -> Inferred:
        """What a rule says of sizes that are open: the same of the same ones, unless it knows of sizes of its own."""
        keys = [
            own if tensor is None or own is not None else _open_key(tensor)
            for tensor, own in zip(inputs, known, strict=True)
        ]
        key: Hashable = (op, id(attrs), *keys)
        found = None if None in keys else self._open_answers.get(key)
        if found is None:
            found = op.infer(inputs, attrs)
            if None not in keys and all(map(self._can_be_told, found.outputs)):
                self._open_answers[key] = found
        return found

    def _will_be_asked(self, inputs: Sequence[Tensor | None]) -> bool:
        """Whether a rule is asked again when all sizes of its inputs are known, before anything is run."""
        if self.setting.sizes is None:
            return False
        return all(tensor is None or self._can_be_told(tensor) for tensor in inputs)

    def _can_be_told(self, tensor: Tensor) -> bool:
        """Whether all sizes that are known of a tensor follow from those of the inputs."""
        assert self.setting.sizes is not None
        numbers = tensor.numbers if tensor.symbolic else ()
        if tensor.shape is None or numbers is None:
            return False
        return self.setting.sizes.can_tell((*tensor.shape, *numbers))

    def _known(self, instruction: Instruction, inputs: list[Tensor | None]) -> bool:
        """Take the results whose values are known already, such as sizes; False where they are not, or where somebody
        looks at how they come of sizes that are open."""
        outputs = [self.program.tensors[number] for number in instruction.outputs]
        if instruction.open or not instruction.plain:
            return False
        if self.setting.watched and any(map(self._is_valued, instruction.inputs, inputs)):
            return False
        if any(tensor.value is None or tensor.value.dtype == object for tensor in outputs):
            return False
        self._take(instruction, [tensor.value for tensor in outputs if tensor.value is not None])
        return True

    def _empty(self, instruction: Instruction) -> bool:
        """Take results that have no elements for these shapes of inputs; False where there are others, or where sizes
        are open, so that a rule may have something to say of what is computed for them alone."""
        outputs = [self.program.tensors[number] for number in instruction.outputs]
        if not self._whole or self.setting.watched or instruction.open or not instruction.plain or not outputs:
            return False
        if not all(tensor.static and tensor.numeric and 0 in (tensor.shape or ()) for tensor in outputs):
            return False
        if self._comes_of_question(instruction):
            return False
        self._take(instruction, [np.empty(tensor.shape, numpy_dtype(tensor.type)) for tensor in outputs])
        return True

    def _comes_of_question(self, instruction: Instruction) -> bool:
        """Whether what it reads is made by any whose rule leaves something to the run, which has to be asked there."""
        makers, wanted = self.program.makers(), [*instruction.inputs]
        while wanted:
            maker = makers.pop(wanted.pop(), None)
            if maker is not None:
                if maker.open:
                    return True
                wanted += maker.inputs
        return False

    def _computed(self, instruction: Instruction, inputs: list[Tensor | None]) -> bool:
        """Compute an instruction whose inputs are all constant; False where it must wait for the run."""
        program, outputs = self.program, [self.program.tensors[number] for number in instruction.outputs]
        connected = [number for number in instruction.inputs if number is not None]
        if not connected or any(number not in program.constants for number in connected) or instruction.open:
            return False
        if not instruction.plain or any(not tensor.static for tensor in outputs):
            return False
        wanted = result_bytes(instruction.op, inputs, outputs)
        if not self._has_room(wanted):
            return False
        arrays = [
            None if number is None else self.setting.alignment(program.constants[number])
            for number in instruction.inputs
        ]
        try:
            results = instruction.computed(arrays)
        except Exception as error:  # the run reports it, with its layer
            hand_on(error)
            return False
        self._take(instruction, results)
        program.reserved += wanted
        return True

    def _looked_up(self, instruction: Instruction) -> bool:
        """Look rows of compressed weights up whose places are constant, all of them inside; False for what is none."""
        if instruction.op.trait(Lookup) is None or instruction.open or not instruction.plain:
            return False
        program, (table, at, *_) = self.program, instruction.inputs
        weights = None if table is None else program.compressed.get(table)
        places = program.constant(at)
        if weights is None or places is None or program.tensors[instruction.outputs[0]].type != "f32":
            return False
        if not places.size or places.min() < 0 or places.max() >= weights.shape[0]:
            return False
        shape = (*places.shape, *weights.shape[1:])
        wanted = prod(shape) * np.dtype(np.float32).itemsize
        if not self._has_room(wanted):
            return False
        result = np.empty(shape, np.float32)
        weights.take(places.reshape(-1).astype(np.intp), result.reshape(places.size, *weights.shape[1:]))
        self._take(instruction, [result])
        program.reserved += wanted
        return True

    def _has_room(self, wanted: int) -> bool:
        """Whether there is room for so many bytes of constants more."""
        return wanted <= self._largest and self.program.reserved + wanted <= self.setting.limit

    def _take(self, instruction: Instruction, results: list[Array]) -> None:
        for number, array in zip(instruction.outputs, results, strict=False):
            array.flags.writeable = False  # what is not to be written to is copied when it is handed out
            self.program.constants[number] = array


def _contradicts(before: Shape | None, after: Shape | None) -> bool:
    """Whether a rank or a size that was known is another one now, as where a rule says what is most likely."""
    if before is None or after is None:
        return before is not None
    return len(before) != len(after) or any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(before, after, strict=True)
    )


def _shaped(tensor: Tensor, shape: Shape) -> Tensor:
    """An input that turns out to have that shape; what is known of a number in it, as of a counter, stays true."""
    content = tensor.content
    if isinstance(content, Sizes) and any(map(_limited, content.items)) and not any(isinstance(n, Dim) for n in shape):
        return Tensor(tensor.type, shape, content if tensor.shape == shape else None)
    return Tensor(tensor.type, shape)


def _limited(size: Size) -> bool:
    return isinstance(size, Dim) and size.low is not None


def _key(tensor: Tensor | None) -> Hashable:
    """All that a rule may look at in a tensor, () for none; None where that cannot be compared in good time."""
    if tensor is None:
        return ()
    if not tensor.static:
        return None
    value: Hashable = None
    if tensor.value is not None and not _is_weight(tensor):
        if tensor.value.size > MAX_COMPARED or tensor.value.dtype.kind == "O":
            return None
        value = tensor.value.tobytes()
    return tensor.type, tensor.shape, value


def _open_key(tensor: Tensor) -> Hashable:
    """The same as `_key`, of a tensor with sizes that are open, or numbers in it."""
    if tensor.shape is None:
        return None
    value: Hashable = None
    if tensor.content is not None and not (tensor.static and _is_weight(tensor)):
        numbers = tensor.numbers
        if numbers is None or len(numbers) > MAX_COMPARED:
            return None
        value = tuple(number.key if isinstance(number, Dim) else repr(number) for number in numbers)
    return tensor.type, tuple(map(key_of, tensor.shape)), value


def _is_weight(tensor: Tensor) -> bool:
    return tensor.value is not None and tensor.type in FLOAT and tensor.value.size > MAX_COMPARED


def _without_weights(tensor: Tensor | None) -> Tensor | None:
    """What rules need to know of a tensor: they seldom look at numbers that a kernel computes with."""
    return Tensor(tensor.type, tensor.shape) if tensor is not None and _is_weight(tensor) else tensor
