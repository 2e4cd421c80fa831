"""Rewrite: the same with less to do, element-wise ops before transpositions and reshapes, pads in convolutions.

Models that were made with the channels last have a transposition on both sides of every convolution. One in front of an
element-wise op, a reduction or a pad changes place with it, until those stand at the convolution and can be fused with
it; the transpositions that are left are views. So do reshapes with functions of each element, and tensors that are
repeated, which have fewer elements before that.

Expects a folded program without posts; leaves one whose results are the same up to rounding. What is on the way is
made in other shapes than the model has, so it is left alone where somebody looks at it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from irrun.run.passes.setting import Setting
from irrun.run.program import Instruction, Program
from irrun.spec.dims import Shape, same_shapes
from irrun.spec.op import Array, Tensor
from irrun.spec.traits import (
    Convolving,
    Elementwise,
    Padding,
    Permutation,
    Reduction,
    Repeating,
    Reshaping,
    broadcasts_by_numpy,
)

Axes = tuple[int, ...]


def rewrite(program: Program, setting: Setting) -> Program:
    if not setting.transforms:
        return program
    rewriting = _Rewriting(program.begun(), setting)
    for instruction in program.instructions:
        rewriting.add(instruction)
    return rewriting.program


class _Rewriting:
    """A program in the making; `makers` has the closed instruction that made each tensor."""

    def __init__(self, program: Program, setting: Setting) -> None:
        self.program, self._setting = program, setting
        self.makers: dict[int, Instruction] = {}

    def add(self, instruction: Instruction) -> None:
        if not self._setting.closed(instruction, self.program):
            self.program.instructions.append(instruction)
            return
        rules = (self._padded_convolution, self._transposed_pad, self._reduced, self._elementwise, self._reshaped)
        if not any(rule(instruction) for rule in rules):
            self._append(instruction)

    def _append(self, instruction: Instruction) -> None:
        """Add a closed instruction as it is."""
        self.program.instructions.append(instruction)
        for number in instruction.outputs:
            self.makers[number] = instruction

    def _constant(self, array: Array, like: int) -> int:
        """A new constant of the element type of another one."""
        return self.program.add_constant(array, self.program.tensors[like].type)

    def _shape(self, number: int) -> Shape | None:
        tensor = self.program.tensors[number]
        return tensor.shape if self._setting.sized(tensor) else None

    def _value(self, instruction: Instruction, name: str) -> Array | None:
        """The constant at an input port."""
        return self.program.constant(instruction.port(name))

    def _maker(self, number: int | None, kind: type[Any]) -> Instruction | None:
        """The closed instruction with a trait of this kind that made a tensor."""
        maker = None if number is None else self.makers.get(number)
        return maker if maker is not None and maker.op.trait(kind) is not None else None

    def _transposition(self, number: int | None) -> tuple[Instruction, Axes] | None:
        """The transposition that made a tensor, and its order of axes."""
        maker = self._maker(number, Permutation)
        trait = None if maker is None else maker.op.trait(Permutation)
        if maker is None or trait is None:
            return None
        order, shape = self._value(maker, trait.order), self._shape(maker.inputs[0] or 0)
        if order is None or shape is None:
            return None
        return maker, tuple(order.tolist()) if order.size else tuple(reversed(range(len(shape))))

    def _behind(self, instruction: Instruction, inputs: Mapping[int, int], before: Tensor, maker: Instruction) -> bool:
        """Add `instruction` on the inputs that replace its own, and `maker`, which makes its result of that."""
        between = self.program.add(before)
        self.add(instruction.reading(inputs).changed(outputs=(between,)))
        self._append(
            maker.changed(
                layer=instruction.layer,
                inputs=(between, *maker.inputs[1:]),
                outputs=instruction.outputs,
                types=maker.types_for(before.type),
            )
        )
        return True

    def _transposed(self, instruction: Instruction, inputs: Mapping[int, int], maker: Instruction, order: Axes) -> bool:
        """Add `instruction` as it is before the transposition `maker`, of this `order`, and that behind it."""
        result = self.program.tensors[instruction.outputs[0]]
        shape = self._shape(instruction.outputs[0])
        assert shape is not None
        before = Tensor(result.type, tuple(shape[axis] for axis in np.argsort(order)))
        return self._behind(instruction, inputs, before, maker)

    def _elementwise(self, instruction: Instruction) -> bool:
        """An op whose inputs are transpositions of one order, and constants that are so whatever sizes are."""
        trait = instruction.op.trait(Elementwise)
        if trait is None or trait.broadcast != "numpy" or not broadcasts_by_numpy(instruction.attrs):
            return False
        read = {number for number in instruction.inputs if number is not None}
        if len(instruction.inputs) > trait.arity:  # parameters behind its tensors keep their shapes
            return False
        found = {number: self._transposition(number) for number in read}
        orders = {transposition[1] for transposition in found.values() if transposition}
        shape = self._shape(instruction.outputs[0])
        if len(orders) != 1 or not any(same_shapes(shape, self._shape(number)) for number in read if found[number]):
            return False
        (order,) = orders
        inputs: dict[int, int] = {}
        makers: list[Instruction] = []
        for number, transposition in found.items():
            constant = self.program.constants.get(number)
            if transposition is not None:
                makers.append(transposition[0])
                inputs[number] = makers[-1].inputs[0] or 0
            elif constant is not None and constant.ndim <= len(order) and number not in self.program.varying:
                full = constant.reshape((1,) * (len(order) - constant.ndim) + constant.shape)
                inputs[number] = self._constant(full.transpose(np.argsort(order)), number)
            else:
                return False
        return self._transposed(instruction, inputs, makers[0], order)

    def _reshaped(self, instruction: Instruction) -> bool:
        """A function of the elements of a tensor that is reshaped, or repeated, which is done behind it instead."""
        if instruction.op.trait(Elementwise) is None or len(instruction.inputs) > 1:
            return False
        (number,) = instruction.inputs
        maker = self._maker(number, Reshaping) or self._maker(number, Repeating)
        if maker is None or (source := maker.inputs[0]) is None or (shape := self._shape(source)) is None:
            return False
        before = Tensor(self.program.tensors[instruction.outputs[0]].type, shape)
        return self._behind(instruction, {maker.outputs[0]: source}, before, maker)

    def _reduced(self, instruction: Instruction) -> bool:
        """A reduction over axes of a transposition that leaves the other axes in their order, or keeps its rank."""
        trait = instruction.op.trait(Reduction)
        transposition = self._transposition(instruction.inputs[0]) if trait is not None else None
        if trait is None or transposition is None or (axes := self._value(instruction, trait.axes)) is None:
            return False
        maker, order = transposition
        reduced = [order[axis] for axis in axes.ravel().tolist()]
        left = [axis for axis in order if axis not in reduced]
        source, number = maker.inputs[0], instruction.port(trait.axes)
        assert source is not None
        assert number is not None
        keeps = bool(instruction.attrs[trait.keep_dims])
        if not keeps and left != sorted(left):
            return False
        inputs = {maker.outputs[0]: source, number: self._constant(np.array(reduced, axes.dtype), number)}
        if keeps:
            return self._transposed(instruction, inputs, maker, order)
        self._append(instruction.reading(inputs))
        return True

    def _transposed_pad(self, instruction: Instruction) -> bool:
        """A transposition of a pad, which comes before the pad instead."""
        transposition = instruction.op.trait(Permutation)
        maker = self._maker(instruction.inputs[0], Padding) if transposition is not None else None
        if transposition is None or maker is None or not self._pads_zeros(maker):
            return False
        order, source = self._value(instruction, transposition.order), maker.inputs[0]
        shape = None if source is None else self._shape(source)
        trait = maker.op.trait(Padding)
        if order is None or not order.size or source is None or shape is None or trait is None:
            return False
        moved = Tensor(self.program.tensors[source].type, tuple(shape[axis] for axis in order.tolist()))
        between = self.program.add(moved)
        self._append(instruction.changed(inputs=(source, *instruction.inputs[1:]), outputs=(between,)))
        inputs = {source: between}
        for name in (trait.begins, trait.ends):
            number, pads = maker.port(name), self._value(maker, name)
            assert number is not None
            assert pads is not None
            inputs[number] = self._constant(pads[order], number)
        self._append(maker.reading(inputs).changed(outputs=instruction.outputs))
        return True

    def _padded_convolution(self, instruction: Instruction) -> bool:
        """A convolution of data that are padded with zeros along its spatial axes: its own padding does that."""
        trait = instruction.op.trait(Convolving)
        maker = self._maker(instruction.inputs[0], Padding) if trait is not None else None
        padding = None if maker is None else maker.op.trait(Padding)
        if trait is None or maker is None or padding is None or not self._pads_zeros(maker):
            return False
        attrs = dict(instruction.attrs)
        if attrs[trait.auto_pad] not in ("explicit", "valid"):
            return False
        added = [self._value(maker, name) for name in (padding.begins, padding.ends)]
        begins, ends = (np.asarray(pads).tolist() for pads in added)
        if any((*begins[:2], *ends[:2])):
            return False
        for name, more in ((trait.begins, begins), (trait.ends, ends)):
            own = (attrs[name] if attrs[trait.auto_pad] == "explicit" else ()) or (0,) * (len(more) - 2)
            attrs[name] = tuple(a + b for a, b in zip(own, more[2:], strict=True))
        attrs[trait.auto_pad] = "explicit"
        self._append(instruction.changed(attrs=attrs, inputs=(maker.inputs[0], *instruction.inputs[1:])))
        return True

    def _pads_zeros(self, instruction: Instruction) -> bool:
        """Whether an instruction pads with zeros, on all sides that it pads at all."""
        trait = instruction.op.trait(Padding)
        if trait is None or instruction.attrs[trait.mode] != "constant":
            return False
        begins, ends = self._value(instruction, trait.begins), self._value(instruction, trait.ends)
        if begins is None or ends is None or (begins < 0).any() or (ends < 0).any():
            return False
        if instruction.port(trait.fill) is None:
            return True
        fill = self._value(instruction, trait.fill)
        return fill is not None and not fill.any()
