"""Kinds of instructions: of one kind comes the same, whoever computes it, but for what weights hold."""

from __future__ import annotations

from collections.abc import Container, Hashable

from irrun.engines.signature import is_weight
from irrun.run.passes.setting import Setting
from irrun.run.program import Instruction, Program
from irrun.run.quantization import DEQUANTIZE


class Kinds:
    """The kinds in a `program` in the making, of which something reads the tensors `read`, and some are `coded`."""

    def __init__(self, program: Program, setting: Setting, read: Container[int | None], coded: Container[int]) -> None:
        self._program, self._setting, self._read, self._coded = program, setting, read, coded
        self._described: dict[int, int] = {}  # how a tensor lies, as the number of what all share that lie so
        self._numbers: dict[Hashable, int] = {}

    def of(self, instruction: Instruction) -> Hashable:
        """What instructions of a kind share; None where that depends on more."""
        if instruction.op is DEQUANTIZE or not instruction.plain:
            return None
        key: list[Hashable] = [*instruction.form]
        if self._setting.refused:
            key += [engine for layer, engine in self._setting.refused if layer is instruction.layer]
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

    def _describe(self, number: int) -> int | None:
        """How a tensor lies, and what it holds where that is constant and small; None where there is more to it."""
        program = self._program
        tensor, constant, storage = program.tensors[number], program.constants.get(number), program.storage.get(number)
        described: Hashable
        if constant is not None:
            value = None if is_weight(constant) else constant.tobytes()
            described = tensor.type, constant.shape, constant.strides, value
        elif storage is None or number in self._coded:
            return None
        else:
            described = tensor.type, tensor.shape, storage.strides, storage.start, storage.layout, id(storage.engine)
        found = self._described[number] = self._numbers.setdefault(described, len(self._numbers) + 1)
        return found
