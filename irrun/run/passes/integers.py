"""Integers: products of i32 that come of codes less a zero point, and go on as f32, are products of codes.

Converters write so what quantizes in the run: codes of u8 or i8, converted to i32, less a zero point, multiplied with
constants of i32 that are codes less a zero point, too, converted to f32. Where these do not fit into i8, or no engine
multiplies codes, f32 is multiplied instead. Sums that may be beyond i32, where they wrap around, stay as they are.
"""

from __future__ import annotations

from math import prod

import numpy as np

from irrun.records import NamedTuple
from irrun.run.internal_ops import integer_product
from irrun.run.passes.setting import Setting
from irrun.run.program import Instruction, Program
from irrun.spec.dims import Shape, product, same
from irrun.spec.op import Array, Tensor
from irrun.spec.traits import Converting, Convolving, MatrixProduct

BYTES = ("u8", "i8")
"""Types of codes."""

LARGEST = 255
"""Whole numbers that are codes less a zero point of the same type are not beyond, in either direction."""

_ZERO = np.zeros((), np.int32)


class _Found(NamedTuple):
    """A product of `weights` and what is converted by `codes`, less what is converted by `zero` in `difference`."""

    product: Instruction
    converted: Instruction
    codes: Instruction
    difference: Instruction | None
    zero: Instruction | None
    weights: Array


def multiply_integers(program: Program, setting: Setting) -> Program:
    """The program with its products of whole numbers as those of codes, where an engine is there for that, else f32."""
    rewriting = _Rewriting(program, setting)
    for instruction in program.instructions:
        rewriting.add(instruction)
    return rewriting.program


class _Rewriting:
    """A program in the making."""

    def __init__(self, program: Program, setting: Setting) -> None:
        self._old, self.program, self._setting = program, program.begun(), setting
        self.program.compressed = {**program.compressed}
        self._makers, self._readers = program.makers(), program.sole_readers()
        self._done: set[Instruction] = set()

    def add(self, instruction: Instruction) -> None:
        if instruction in self._done:
            return
        found = self._found(instruction)
        if found is None:
            self.program.instructions.append(instruction)
        elif self._setting.quantized and found.weights.min() >= -128 and found.weights.max() <= 127:
            self._of_codes(found)
        else:
            self._of_floats(found)

    def _found(self, multiplied: Instruction) -> _Found | None:
        if multiplied.op.trait(Convolving) is None and multiplied.op.trait(MatrixProduct) is None:
            return None
        if not self._setting.closed(multiplied, self._old) or self._type(multiplied.outputs[0]) != "i32":
            return None
        converted, weights = self._readers.get(multiplied.outputs[0]), self._old.constant(multiplied.inputs[1])
        if converted is None or weights is None or not weights.size:
            return None
        if converted.op.trait(Converting) is None or self._type(converted.outputs[0]) != "f32":
            return None
        data, zero, difference = self._makers.get(multiplied.inputs[0]), None, None
        if data is not None and data.function == "subtract" and self._setting.closed(data, self._old):
            difference = data
            data, zero = (self._makers.get(number) for number in difference.inputs)
            if zero is None or not self._converts(zero) or not same(product(self._shape(zero.outputs[0])), 1):
                return None
        if data is None or not self._converts(data):
            return None
        if zero is not None and self._type(zero.inputs[0]) != self._type(data.inputs[0]):
            return None
        largest = max(-int(weights.min()), int(weights.max()))
        if largest > LARGEST or _terms(multiplied, weights) * LARGEST * largest >= 2**31:
            return None
        return _Found(multiplied, converted, data, difference, zero, weights)

    def _converts(self, instruction: Instruction) -> bool:
        """Whether an instruction makes i32 of codes."""
        return (
            instruction.op.trait(Converting) is not None
            and self._setting.closed(instruction, self._old)
            and self._type(instruction.inputs[0]) in BYTES
            and self._type(instruction.outputs[0]) == "i32"
        )

    def _type(self, number: int | None) -> str:
        return "" if number is None else self._old.tensors[number].type

    def _of_codes(self, found: _Found) -> None:
        """Add the product of codes."""
        weights = self.program.add(Tensor("f32", found.weights.shape))
        self.program.compressed[weights] = self._setting.codes(found.weights)
        zero = self.program.add_constant(_ZERO, "i32") if found.zero is None else found.zero.outputs[0]
        self._done.add(found.converted)
        self.program.instructions.append(
            found.product.changed(
                op=integer_product(found.product.op),
                types={},
                inputs=(found.codes.inputs[0], weights, zero),
                outputs=found.converted.outputs,
            )
        )

    def _of_floats(self, found: _Found) -> None:
        """Add the product of f32."""
        data = self._as_floats(found.codes)
        if found.difference is not None and found.zero is not None:
            inputs = (data, self._as_floats(found.zero))
            data = self.program.add(Tensor("f32", self._shape(found.difference.outputs[0])))
            types = found.difference.types_for("f32")
            self.program.instructions.append(found.difference.changed(inputs=inputs, outputs=(data,), types=types))
        weights = self.program.add_constant(found.weights.astype(np.float32), "f32")
        self._done.add(found.converted)
        self.program.instructions.append(
            found.product.changed(
                inputs=(data, weights), outputs=found.converted.outputs, types=found.product.types_for("f32")
            )
        )

    def _as_floats(self, conversion: Instruction) -> int:
        number = self.program.add(Tensor("f32", self._shape(conversion.outputs[0])))
        attrs = {**conversion.attrs, "destination_type": "f32"}
        self.program.instructions.append(conversion.changed(attrs=attrs, outputs=(number,)))
        return number

    def _shape(self, number: int) -> Shape:
        return self._old.tensors[number].shape or ()


def _terms(multiplied: Instruction, weights: Array) -> int:
    """How many products are added up for an element."""
    trait, convolving = multiplied.op.trait(MatrixProduct), multiplied.op.trait(Convolving)
    if trait is None:
        return prod(weights.shape[2 if convolving is not None and convolving.grouped else 1 :])
    return int(weights.shape[-1 if weights.ndim < 2 or multiplied.attrs[trait.transpose_b] else -2])
