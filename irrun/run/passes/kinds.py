"""Kinds of instructions: of one kind comes the same, whoever computes it, but for what weights hold."""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping

from irrun.engines.work_cache import is_weight
from irrun.run.internal_ops import DEQUANTIZE
from irrun.run.passes.setting import Form, Setting
from irrun.run.program import Instruction, Program
from irrun.spec.dims import key_of
from irrun.spec.op import Array, Tensor

_DENSE = 0
"""How most tensors lie: in C order, in memory of their own."""


def forms(program: Program) -> Mapping[int, Form]:
    """The forms of instructions of open sizes, by their identity, those that have one."""
    read = program.read()
    varying = set() if program.sizing is None else {*program.sizing.results}
    numbers: dict[Hashable, int] = {}
    found: dict[int, Form] = {}

    def known(number: int | None) -> Hashable:
        if number is None or number in varying:
            return None
        constant = program.constants.get(number)
        return known_of(program.tensors[number]) if constant is None else _of_constant(program, number, constant)

    for instruction in program.instructions:
        if instruction.op is DEQUANTIZE or not instruction.plain:
            continue
        if not program.is_ranked((*instruction.operands, *instruction.results)):
            continue
        operands = [known(number) for number in instruction.operands]
        given = [None if number is None else number in varying for number in instruction.operands]
        results = [(number in read, *known_of(program.tensors[number])) for number in instruction.results]
        number = numbers.setdefault((instruction.form, *operands, *given, *results), len(numbers))
        lying = [number for number in instruction.operands if number is not None and number not in program.constants]
        found[id(instruction)] = Form(number, tuple(lying))
    return found


class Kinds:
    """The kinds in a `program` in the making, of which something reads the tensors `read`, and some are `coded`."""

    def __init__(self, program: Program, setting: Setting, read: Container[int | None], coded: Container[int]) -> None:
        self._program, self._setting, self._read, self._coded = program, setting, read, coded
        self._described: dict[int, int] = {}  # how a tensor lies, as the number of what all share that lie so
        self._lying: dict[int, int] = {}  # the same of tensors of which all else is known
        self._numbers: dict[Hashable, int] = {}
        self._forms: Mapping[int, Form] = {} if setting.refused else setting.forms

    def of(self, instruction: Instruction) -> Hashable:
        """What instructions of a kind share; None where that depends on more."""
        form = self._forms.get(id(instruction))
        if form is not None:
            return self._formed(form)
        if instruction.op is DEQUANTIZE or not instruction.plain:
            return None
        key: list[Hashable] = [*instruction.form]
        if self._setting.refused:
            refused = self._setting.refused
            key += [own.name for own in self._setting.engines if (instruction.layer, own.name) in refused]
        described = self._described
        for number in instruction.operands:
            found = None if number is None else described.get(number) or self._describe(number)
            if found is None and number is not None:
                return None
            key.append(found)
        tensors = self._program.tensors
        for number in instruction.results:
            tensor = tensors[number]
            key += (number in self._read, tensor.type, tensor.shape)
        return tuple(key)

    def _formed(self, form: Form) -> Hashable:
        key = [form.number]
        lying = self._lying
        for number in form.lying:
            found = lying.get(number)
            if found is None:
                found = self._lies(number)
                if found is None:
                    return None
                lying[number] = found
            key.append(found)
        return tuple(key)

    def _lies(self, number: int) -> int | None:
        """How a tensor of known type and shape lies, or what is known of it where it is constant."""
        storage = self._program.storage.get(number)
        if storage is None or number in self._coded or number in self._program.constants:
            return self._describe(number)
        if storage.strides is None and storage.layout is None and not storage.start:
            return _DENSE
        described = storage.strides, storage.start, storage.layout, id(storage.engine)
        return self._numbers.setdefault(described, len(self._numbers) + 1)

    def _describe(self, number: int) -> int | None:
        """How a tensor lies, and what it holds where that is constant and small; None where there is more to it."""
        program = self._program
        tensor, constant, storage = program.tensors[number], program.constants.get(number), program.storage.get(number)
        described: Hashable
        if constant is not None:
            described = _of_constant(program, number, constant)
        elif storage is None or number in self._coded:
            return None
        else:
            described = tensor.type, tensor.shape, storage.strides, storage.start, storage.layout, id(storage.engine)
        found = self._described[number] = self._numbers.setdefault(described, len(self._numbers) + 1)
        return found


def _of_constant(program: Program, number: int, constant: Array) -> tuple[Hashable, ...]:
    value = None if is_weight(constant) else constant.tobytes()
    return program.tensors[number].type, constant.shape, constant.strides, value


def known_of(tensor: Tensor) -> tuple[Hashable, ...]:
    """The type and the shape of a tensor, which are equal where they are provably so."""
    return tensor.type, None if tensor.shape is None else tuple(map(key_of, tensor.shape))
