"""Normalize: lines that are divided by the root of the mean of their squares step by step are so in one step.

Language models normalize in this way before each of their products, in six ops that go over memory one by one.

Expects a folded program without posts, whose sizes are known or are to be settled. Leaves what was in between for
`prune`. An element-wise op is known by the numbers that its kernel gives, whatever it is called. Where somebody looks
at the tensors nothing is changed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from irrun.run.internal_ops import ROOT_MEAN_SQUARE, with_eps
from irrun.run.passes.setting import Setting
from irrun.run.program import Instruction, Program
from irrun.spec.dims import same_shapes
from irrun.spec.op import Array
from irrun.spec.traits import Elementwise, Reduction

MAX_STEPS = 2
"""Element-wise ops that a mean and its reciprocal root lie apart: a root and a quotient, or a power."""

_NUMBERS = np.array([1e-30, 3e-9, 0.015, 0.7, 1, 1.5, 2, 3, 10, 144, 7e4, 5e12, 1e30, np.inf, np.nan, 0], np.float32)
"""Of which a function is known that is asked for none below 0."""

_THREE = np.array([1, 3, 11], np.float32)
"""Of which the mean is 5."""

_SIGNED = np.array([*_NUMBERS.tolist(), -np.inf, -3e11, -7, -1, -0.3, -1e-9], np.float32)

with np.errstate(all="ignore"):
    _SQUARES, _ROOTS = np.square(_SIGNED), 1 / np.sqrt(_NUMBERS)


def normalize(program: Program, setting: Setting) -> Program:
    if not setting.transforms or not any(map(_is_folding, program.instructions)):
        return program
    search = _Search(program, setting)
    found = dict(filter(None, map(search.behind, program.instructions)))
    if not found:
        return program
    instructions = [found.get(id(instruction), instruction) for instruction in program.instructions]
    return replace(program, instructions=instructions)


def _is_folding(instruction: Instruction) -> bool:
    trait = instruction.op.trait(Reduction)
    return trait is not None and trait.linear


class _Search:
    """Looks for the ops that are behind a mean, and those before it."""

    def __init__(self, program: Program, setting: Setting) -> None:
        self._program, self._setting = program, setting
        self._found: dict[Hashable, Array] = {}  # what instructions make of numbers, by all that there is to it
        self._known: dict[Hashable, bool] = {}
        self._makers, self._readers = program.makers(), program.sole_readers()

    def behind(self, mean: Instruction) -> tuple[int, Instruction] | None:
        """The identity of the last op of a normalization around `mean`, with what takes its place, if there is one."""
        squares = mean.inputs[0] if mean.inputs else None
        square = self._makers.get(squares)
        if square is None or not self._is_mean(mean) or squares not in self._readers or not self._is_step(square):
            return None
        data = next((read for read in square.inputs if read not in self._program.constants), None)
        if data is None or not self._are(self._values(square, data, _SIGNED), _SQUARES):
            return None
        last, eps = self._readers.get(mean.outputs[0]), None
        if last is not None and self._is_step(last):
            eps = self._offset(last)
        if eps is None or last is None:
            return None
        number, values = last.outputs[0], _NUMBERS
        for _ in range(MAX_STEPS + 1):
            last = self._readers.get(number)
            if last is None or not self._is_step(last):
                return None
            if data in last.inputs:
                break
            values, number = self._values(last, number, values), last.outputs[0]
        if (
            last is None
            or last.function != "multiply"
            or {*last.inputs} != {data, number}
            or not self._are(values, _ROOTS)
        ):
            return None
        tensors = self._program.tensors
        if not same_shapes(tensors[data].shape, tensors[last.outputs[0]].shape):  # constants may add axes
            return None
        return id(last), last.changed(op=ROOT_MEAN_SQUARE, attrs=with_eps(eps), types={}, inputs=(data,))

    def _is_mean(self, instruction: Instruction) -> bool:
        """Whether an instruction gives the means along the last axis, which stays there with one element."""
        trait = instruction.op.trait(Reduction)
        if trait is None or not trait.linear or not self._is_simple(instruction):
            return False
        axes, shape = self._program.constant(instruction.port(trait.axes)), self._shape(instruction)
        if axes is None or axes.size != 1 or not instruction.attrs[trait.keep_dims] or not shape:
            return False
        if int(axes.item()) not in (-1, len(shape) - 1):
            return False
        key = instruction.op, id(instruction.attrs), axes.shape, axes.dtype
        if key not in self._found:
            self._found[key] = instruction.computed([_THREE, np.zeros(axes.shape, axes.dtype)])[0]
        return bool(self._found[key].tolist() == [5])

    def _is_step(self, instruction: Instruction) -> bool:
        """Whether an element-wise instruction changes neither the shape nor the order of a tensor."""
        trait = instruction.op.trait(Elementwise)
        if trait is None or trait.arity > 2 or len(instruction.inputs) != trait.arity or trait.broadcast != "numpy":
            return False
        if instruction.attrs.get("auto_broadcast", "numpy") != "numpy" or not self._is_simple(instruction):
            return False
        constants = [self._program.constants[n] for n in instruction.inputs if n in self._program.constants]
        return all(constant.size == 1 and constant.ndim <= len(self._shape(instruction)) for constant in constants)

    def _is_simple(self, instruction: Instruction) -> bool:
        """Whether an instruction makes one tensor of f32 of such tensors, and its rule need not see the data."""
        if not instruction.plain or instruction.posts or len(instruction.outputs) != 1 or None in instruction.inputs:
            return False
        numbers = (*instruction.inputs[:1], *instruction.outputs)
        tensors = [self._program.tensors[number] for number in numbers if number is not None]
        if any(tensor.type != "f32" or tensor.shape is None for tensor in tensors) or not tensors[-1].shape:
            return False
        static = all(tensor.static for tensor in tensors)
        return not instruction.open if static else all(map(self._setting.sized, tensors))

    def _shape(self, instruction: Instruction) -> Sequence[object]:
        return self._program.tensors[instruction.outputs[0]].shape or ()

    def _values(self, instruction: Instruction, number: int, values: Array) -> Array:
        """What an instruction makes of a vector in place of a tensor; nothing where it reads others than constants."""
        constants, arrays = self._program.constants, list[Array | None]()
        key: list[Hashable] = [instruction.op, id(instruction.attrs), values.tobytes()]
        for read in instruction.inputs:
            if read != number and read not in constants:
                return values[:0]
            arrays.append(values if read == number or read is None else constants[read].reshape(()))
            key.append(None if read == number or read is None else constants[read].tobytes())
        if (known := tuple(key)) not in self._found:
            self._found[known] = instruction.computed(arrays)[0]
        return self._found[known]

    def _are(self, values: Array, wanted: Array) -> bool:
        """Whether values are what is wanted, but for the last digits."""
        key = id(wanted), values.tobytes()
        if key not in self._known:
            near = values.shape == wanted.shape and np.allclose(values, wanted, rtol=1e-6, atol=0, equal_nan=True)
            self._known[key] = bool(near)
        return self._known[key]

    def _offset(self, instruction: Instruction) -> float | None:
        """The constant that an instruction adds to the other tensor that it reads, which is no less than 0."""
        constants = [self._program.constants[read] for read in instruction.inputs if read in self._program.constants]
        if instruction.function != "add" or len(constants) != 1 or constants[0].dtype != np.float32:
            return None
        eps = float(constants[0].item())
        return eps if eps >= 0 else None
