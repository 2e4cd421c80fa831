"""The tensors of a program as arrays: where each lies in the memory of a frame, and in what order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from irrun.engines.work import Layout, Operand
from irrun.run.compiling import dense_operand, reordering, room, static_shape
from irrun.run.program import Instruction, Program, Storage
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array


class Tensors:
    """The arrays of a program's tensors, by their numbers: constants, what has a place in `memory`, and what was put
    there in a run; None for what is not there yet, or no more."""

    def __init__(self, program: Program, memory: Array) -> None:
        self.program, self.memory = program, memory
        self.arrays: list[Array | None] = [None] * len(program.tensors)
        for number, constant in program.constants.items():
            self.arrays[number] = constant
        for number, weights in program.compressed.items():  # of which kernels have their values
            self.arrays[number] = weights.stand_in
        for number, storage in program.storage.items():
            if storage.root not in program.constants:
                self.arrays[number] = self.placed(number, storage)

    def placed(self, number: int, storage: Storage, root: Array | None = None) -> Array:
        """The array of a tensor in the memory of the frame, or in that of another `root` than it has there."""
        tensor, offset = self.program.tensors[number], self.program.storage[storage.root].offset
        if storage.opaque:
            return self.memory[offset : offset + storage.nbytes]
        memory, start = (self.memory, offset) if root is None else (root, 0)
        return np.ndarray(static_shape(tensor), numpy_dtype(tensor.type), memory, start + storage.start, storage.steps)

    def present(self, number: int) -> Array:
        """A tensor that is there, as it lies."""
        array = self.arrays[number]
        assert array is not None, "a program computes what it reads"
        return array

    def operands(self, numbers: Sequence[int | None]) -> list[Array | None]:
        """Tensors as they lie."""
        return [None if number is None else self.arrays[number] for number in numbers]

    def put(self, number: int, result: Array) -> None:
        """What was computed elsewhere, in the place of a tensor, or for it."""
        if number in self.program.storage:
            np.copyto(self.present(number), result)
        else:
            self.arrays[number] = result

    def free(self, instruction: Instruction) -> None:
        """Drop what nobody reads behind an instruction."""
        for number in instruction.frees:
            self.arrays[number] = None

    def plain(self, number: int) -> Array:
        """A tensor as an array that everybody can read."""
        storage = self.program.storage.get(number)
        if storage is None or not storage.opaque:
            return self.present(number)
        result = room(self._operand(number, None), None)
        self._reorder(number, storage.layout, self.present(number), None, result)
        return result

    def raw(self, number: int) -> Array:
        """The numbers of a tensor, in the order in which they lie where only an engine knows that."""
        storage = self.program.storage.get(number)
        if storage is None or not storage.opaque:
            return self.present(number)
        return self.present(number).view(numpy_dtype(self.program.tensors[number].type))

    def values(self, number: int) -> Array:
        """The same as `plain`, also of weights that are codes."""
        weights = self.program.compressed.get(number)
        return self.plain(number) if weights is None else weights.dense()

    def replace(self, number: int, array: Array) -> None:
        """Put an array, which is somebody else's, in the place of a tensor."""
        storage = self.program.storage.get(number)
        if storage is None:
            self.arrays[number] = array.copy()
        elif storage.opaque:
            self._reorder(number, None, array, storage.layout, self.present(number))
        else:
            np.copyto(self.present(number), array)

    def _operand(self, number: int, layout: Layout | None) -> Operand:
        return replace(dense_operand(self.program.tensors[number]), layout=layout)

    def _reorder(self, number: int, source: Layout | None, read: Array, target: Layout | None, written: Array) -> None:
        """Bring a tensor of an engine from one layout into another one."""
        engine = self.program.storage[number].engine
        assert engine is not None
        dense = read if source is not None else np.ascontiguousarray(read)
        reordering(engine, self._operand(number, source), target, dense, written)()
