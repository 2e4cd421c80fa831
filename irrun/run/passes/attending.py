"""Attend: attention that a model writes out is computed in one step, in which nobody keeps its scores.

Models write: the product of queries with keys, times a number, with a mask added, the softmax of that, and the product
with values. The scores, and the weights made of them, take more memory than all the rest where there are many rows.

Expects a folded program without posts. Leaves what was in between for `prune`. Where one of the tensors in between is
read by others, sizes do not provably fit, or codes are multiplied, and where somebody looks at the tensors, or each is
to be rounded, it stays as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from irrun.run.internal_ops import DEQUANTIZE
from irrun.run.passes.setting import Setting
from irrun.run.program import Instruction, Program
from irrun.spec.dims import same_shapes
from irrun.spec.dtypes import FLOAT_FORMATS, numpy_dtype
from irrun.spec.op import Tensor, Violation
from irrun.spec.registry import registry
from irrun.spec.traits import Attending, Elementwise, MatrixProduct, Permutation, Weighing, broadcasts_by_numpy

TYPES = ("f32", "bf16")
"""Of all that is computed."""

LEAST_RANK = 3
"""Of queries: what is attended to are batches of matrices."""

MAX_FACTOR = 1
"""Scores are multiplied by no more than that: queries are multiplied before, and might be too large then."""

_NUMBERS = np.array([1, 3, -0.75, 1e-20, -1e20, 3e38, -3e38, np.inf, -np.inf, 0], np.float32)
"""Of which it is known whether a function multiplies by a number: that is what it gives for the first one."""


def attend(program: Program, setting: Setting) -> Program:
    if not setting.transforms or setting.literal or not any(own.op.trait(Weighing) for own in program.instructions):
        return program
    search = _Search(program, setting)
    for instruction in program.instructions:
        search.add(instruction)
    return search.program


@cache
def _with_mask(causal: str) -> Mapping[str, Any]:
    """The attributes of an attention, by the name of that which makes it causal, shared by all: so they are of one
    kind."""
    return {causal: False}


class _Search:
    """Looks for products of weights with values, and for what the weights are made of; a `program` in the making."""

    def __init__(self, program: Program, setting: Setting) -> None:
        self.program, self._setting = program.begun(), setting
        self._makers, self._readers = program.makers(), program.sole_readers()

    def add(self, instruction: Instruction) -> None:
        """Add an instruction, or the attention that it ends."""
        weighing = self._alone(instruction.inputs[0]) if self._is_product(instruction) else None
        scores = self._scores(weighing.inputs[0]) if weighing is not None and self._is_along_keys(weighing) else None
        if scores is None or not self._attends(*scores, instruction):
            self.program.instructions.append(instruction)

    def _scores(self, number: int | None) -> tuple[Instruction, float, int | None] | None:
        """The product that scores come of, times which number, and the mask that is added to that."""
        found = self._scaled(number)
        if found is not None:
            return *found, None
        adding = self._alone(number)
        if adding is None or adding.function != "add" or not self._is_step(adding):
            return None
        for scores, mask in (adding.inputs, adding.inputs[::-1]):
            found = self._scaled(scores) if self._keeps_shape(adding, scores) else None
            if found is not None:
                return *found, mask
        return None

    def _scaled(self, number: int | None) -> tuple[Instruction, float] | None:
        """The product that a tensor is, and the number that it is multiplied by."""
        maker = self._alone(number)
        if maker is None or self._is_product(maker):
            return None if maker is None else (maker, 1.0)
        data = next((own for own in maker.inputs if own not in self.program.constants), None)
        if data is None or not self._is_step(maker) or not self._keeps_shape(maker, data):
            return None
        product, factor = self._alone(data), self._factor(maker)
        return None if product is None or factor is None or not self._is_product(product) else (product, factor)

    def _factor(self, instruction: Instruction) -> float | None:
        """The constant number that a step multiplies the other tensor by, if it does."""
        arrays = [self.program.constant(number) for number in instruction.inputs]
        constants = [array for array in arrays if array is not None]
        if len(constants) != 1 or constants[0].size != 1:
            return None
        type = self.program.tensors[instruction.outputs[0]].type
        numbers = _NUMBERS.astype(numpy_dtype(type))
        given = [numbers if array is None else array.reshape(()) for array in arrays]
        with np.errstate(all="ignore"):
            values = instruction.computed(given)[0].astype(np.float32)
            factor = float(values[0])
            near = np.allclose(values, factor * numbers.astype(np.float32), 4 * FLOAT_FORMATS[type].digit, 0)
        return factor if near and 0 < abs(factor) <= MAX_FACTOR else None

    def _attends(self, scoring: Instruction, factor: float, mask: int | None, last: Instruction) -> bool:
        """Add the attention between the product that makes scores and the last one, unless it is none."""
        program, trait = self.program, scoring.op.trait(MatrixProduct)
        query, value, type = scoring.inputs[0], last.inputs[1], program.tensors[last.outputs[0]].type
        assert trait is not None
        if last.attrs[trait.transpose_b]:
            return False
        key, turning = scoring.inputs[1], None
        if not scoring.attrs[trait.transpose_b]:
            turning = self._turning(key)
            if turning is None:
                return False
            key = turning.outputs[0]
        if any(maker.op is DEQUANTIZE for number in (query, key, value) if (maker := self._makers.get(number))):
            return False
        op = registry().attention  # which loads more ops: most models with a softmax do without
        attending = op.trait(Attending)
        assert attending is not None, "it is one"
        attrs = _with_mask(attending.causal)
        scale = np.array(factor, numpy_dtype(type))
        known = [None if number is None else program.known(number) for number in (query, key, value, mask)]
        known.append(Tensor(type, (), scale))
        if any(own is not None and own.type != type for own in known) or self._rank(query) < LEAST_RANK:
            return False
        if mask is not None and not self._rank(mask):  # attention takes one number for 0
            return False
        try:
            found = op.infer(known, attrs)
        except Violation:
            return False
        if found.doubts or found.tolerated:  # as masks of one number for all keys, which it does not have
            return False
        if not same_shapes(found.outputs[0].shape, program.tensors[last.outputs[0]].shape):
            return False
        inputs = (query, key, value, mask, program.add_constant(scale, type))
        if turning is not None:
            program.instructions.append(turning)
        told = {"types": found.types, "open": not found.complete}
        program.instructions.append(last.changed(op=op, attrs=attrs, inputs=inputs, **told))
        return True

    def _turning(self, number: int | None) -> Instruction | None:
        """What makes keys [..., keys, size] of what others [..., size, keys] are the transposition of, if elements lie
        next to one another there."""
        program, maker = self.program, self._makers.get(number)
        trait = None if maker is None else maker.op.trait(Permutation)
        if maker is None or trait is None or number is None:
            return None
        given = maker.port(trait.order)
        order, tensor = program.constant(given), program.tensors[number]
        if given is None or order is None or tensor.shape is None or order.size < 2 or order[-2] != order.size - 1:
            return None
        *others, size, keys = order.tolist()
        again = program.add_constant(np.array([*others, keys, size], order.dtype), program.tensors[given].type)
        made = program.add(Tensor(tensor.type, (*tensor.shape[:-2], tensor.shape[-1], tensor.shape[-2])))
        return maker.changed(inputs=(maker.inputs[0], again), outputs=(made,))

    def _alone(self, number: int | None) -> Instruction | None:
        """What makes a tensor that one instruction alone reads."""
        return self._makers.get(number) if number in self._readers else None

    def _is_simple(self, instruction: Instruction) -> bool:
        """Whether an instruction makes one tensor of the types that attention has, and only its numbers are left."""
        if not self._setting.closed(instruction, self.program) or len(instruction.outputs) != 1:
            return False
        tensor = self.program.tensors[instruction.outputs[0]]
        return tensor.type in TYPES and tensor.shape is not None

    def _is_product(self, instruction: Instruction) -> bool:
        """Whether an instruction is a product of matrices that the run makes, of which the first one lies as it is."""
        trait = instruction.op.trait(MatrixProduct)
        if trait is None or not self._is_simple(instruction) or instruction.attrs[trait.transpose_a]:
            return False
        return not any(n in self.program.constants or n in self.program.compressed for n in instruction.inputs)

    def _is_along_keys(self, weighing: Instruction) -> bool:
        """Whether an instruction makes weights along the last axis."""
        trait = weighing.op.trait(Weighing)
        if trait is None or not self._is_simple(weighing):
            return False
        return weighing.attrs[trait.axis] in (-1, self._rank(weighing.outputs[0]) - 1)

    def _is_step(self, instruction: Instruction) -> bool:
        """Whether an element-wise instruction of two tensors broadcasts them by numpy's rule."""
        trait = instruction.op.trait(Elementwise)
        if trait is None or len(instruction.inputs) != 2 or not self._is_simple(instruction):
            return False
        return trait.arity == 2 and trait.broadcast == "numpy" and broadcasts_by_numpy(instruction.attrs)

    def _rank(self, number: int | None) -> int:
        """How many axes a tensor has; 0 where that is not known."""
        return 0 if number is None else len(self.program.tensors[number].shape or ())

    def _keeps_shape(self, instruction: Instruction, number: int | None) -> bool:
        """Whether the result of an instruction has the shape of a tensor."""
        tensors = self.program.tensors
        return number is not None and same_shapes(tensors[number].shape, tensors[instruction.outputs[0]].shape)
