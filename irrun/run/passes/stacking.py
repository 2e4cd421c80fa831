"""Stack: products of one tensor with several constant matrices, as queries, keys and values are, become one product.

An engine is as quick with one large matrix as with some small ones, or quicker, and there is less to prepare and to
call. What was added to the columns of each is added to those of all; parts of the columns, which are views, take the
place of the results. Nowhere do the matrices lie one below the other (`StackedWeights`) but where the engine has them.

Expects a program without posts whose sizes are known, or are to be settled, and nothing of which is made anew
afterwards for other sizes. Leaves alone products whose results something is done to at once, as their posts, or that
are read where it is quicker if they lie densely.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from irrun.engines.work_cache import is_weight
from irrun.records import NamedTuple
from irrun.run.internal_ops import COLUMNS, from_to
from irrun.run.passes.setting import Setting
from irrun.run.program import Instruction, Program
from irrun.spec.dims import Shape, same_shapes
from irrun.spec.op import Array, Tensor
from irrun.spec.traits import Attending, Cutting, Elementwise, MatrixProduct, Permutation, Reshaping, Splitting

LEAST = 1 << 17
"""Weights of all together from which on it pays: few more columns are as soon computed by themselves."""

NOTHING = -0.0
"""What changes no number that it is added to: 0 would make -0 of f32 a 0."""


class _Member(NamedTuple):
    """A product that may become part of one, and the sum behind it, with its constant, if there is one."""

    product: Instruction
    matrix: Array
    sum: Instruction | None
    constant: Array | None

    @property
    def result(self) -> int:
        return (self.sum or self.product).outputs[0]


def stack(program: Program, setting: Setting) -> Program:
    if not setting.engines or not setting.stacks or setting.watched:
        return program
    groups = [group for group in _Search(program, setting).groups() if _is_worth_it(group)]
    if not groups:
        return program
    first = {id(group[0].product): group for group in groups}
    gone = {id(part) for group in groups for own in group for part in (own.product, own.sum)}
    made = program.begun()
    made.compressed = {**program.compressed}
    for instruction in program.instructions:
        if id(instruction) in first:
            made.instructions += _stacked(first[id(instruction)], made, setting)
        elif id(instruction) not in gone:
            made.instructions.append(instruction)
    return made


def _is_worth_it(group: Sequence[_Member]) -> bool:
    return len(group) > 1 and sum(member.matrix.size for member in group) >= LEAST


class _Search:
    """Looks for products that read one tensor."""

    def __init__(self, program: Program, setting: Setting) -> None:
        self._program, self._setting = program, setting
        self._readers: dict[int | None, list[Instruction]] = defaultdict(list)
        for instruction in program.instructions:
            for number in {*instruction.inputs}:
                self._readers[number].append(instruction)

    def groups(self) -> list[list[_Member]]:
        """Those that may become one, of each tensor."""
        found: dict[tuple[int | None, int], list[_Member]] = {}
        for instruction in self._program.instructions:
            member = self._member(instruction)
            if member is not None:
                found.setdefault((instruction.inputs[0], member.matrix.shape[1]), []).append(member)
        return list(found.values())

    def _member(self, instruction: Instruction) -> _Member | None:
        trait = instruction.op.trait(MatrixProduct)
        if trait is None or instruction.attrs[trait.transpose_a] or instruction.posts:
            return None
        data, number = instruction.inputs[:2]
        value, tensors = self._program.constants.get(number or 0), self._program.tensors
        if data is None or number is None or value is None or value.ndim != 2 or not is_weight(value):
            return None
        if any(tensors[own].type != "f32" for own in (data, number, *instruction.outputs)):
            return None
        shape = tensors[data].shape
        if data in self._program.constants or not shape or len(shape) < 2 or _is_empty(shape):
            return None
        if not self._is_closed(instruction):
            return None
        matrix = value if instruction.attrs[trait.transpose_b] else value.T
        made = _Member(instruction, matrix, *self._sum(instruction, len(matrix)))
        return made if self._is_looked_at(made.result, len(matrix)) else None

    def _is_closed(self, instruction: Instruction) -> bool:
        return self._setting.closed(instruction, self._program)

    def _sum(self, product: Instruction, columns: int) -> tuple[Instruction | None, Array | None]:
        """What adds a constant for each of the columns to a product that nobody else reads, and the constant."""
        (number,) = product.outputs
        readers, nothing = self._readers[number], (None, None)
        if len(readers) != 1 or number in self._program.results:
            return nothing
        (reader,) = readers
        trait, others = reader.op.trait(Elementwise), [own for own in reader.inputs if own != number]
        if trait is None or trait.function != "add" or len(reader.inputs) != 2 or len(others) != 1:
            return nothing
        if reader.attrs.get("auto_broadcast", "numpy") != "numpy":
            return nothing
        constant, tensors = self._program.constants.get(others[0] or 0), self._program.tensors
        if constant is None or constant.dtype != np.float32 or constant.shape[-1:] != (columns,):
            return nothing
        if constant.size != columns or not self._is_closed(reader):
            return nothing
        fits = same_shapes(tensors[number].shape, tensors[reader.outputs[0]].shape)
        return (reader, constant.reshape(-1)) if fits else nothing

    def _is_looked_at(self, number: int, columns: int) -> bool:
        """Whether a result is read by what multiplies it, or behind views that leave the columns apart from the rows,
        by what goes through its elements: others would copy what does not lie densely, or take longer."""
        readers = self._readers[number]
        return number not in self._program.results and all(self._reads_apart(own, columns) for own in readers)

    def _reads_apart(self, reader: Instruction, columns: int) -> bool:
        if reader.op.trait(Reshaping) is not None:
            shape = self._program.tensors[reader.outputs[0]].shape
            return shape is not None and _ends_with(shape, columns) and self._is_viewed(reader.outputs[0])
        if reader.op.trait(Permutation) is not None:
            return self._is_viewed(reader.outputs[0])
        return any(reader.op.trait(kind) is not None for kind in (Attending, MatrixProduct))

    def _is_viewed(self, number: int) -> bool:
        """The same of a view of a result."""
        looking, through = (Reshaping, Permutation), (Attending, MatrixProduct, Elementwise, Cutting, Splitting)
        return number not in self._program.results and all(
            self._is_viewed(reader.outputs[0])
            if any(reader.op.trait(kind) is not None for kind in looking)
            else any(reader.op.trait(kind) is not None for kind in through)
            for reader in self._readers[number]
        )


def _is_empty(shape: Shape) -> bool:
    return any(isinstance(size, int) and not size for size in shape)


def _ends_with(shape: Shape, columns: int) -> bool:
    """Whether the last axes, of known sizes, have so many elements."""
    count = 1
    for size in reversed(shape):
        if count == columns:
            return True
        if not isinstance(size, int):
            return False
        count *= size
    return count == columns


def _stacked(group: Sequence[_Member], program: Program, setting: Setting) -> Iterator[Instruction]:
    """The instructions that take the place of a group."""
    head, widths = group[0].product, [len(own.matrix) for own in group]
    shape = program.tensors[head.outputs[0]].shape
    assert shape is not None
    whole = Tensor("f32", (*shape[:-1], sum(widths)))
    weights = setting.stacked([own.matrix for own in group])
    matrix = program.add(Tensor("f32", weights.shape))
    program.compressed[matrix] = weights
    made = program.add(whole)
    yield head.changed(inputs=(head.inputs[0], matrix), outputs=(made,), attrs=_attrs(head), ports=(None,))
    adding = next((own.sum for own in group if own.sum is not None), None)
    if adding is not None:
        constants = [
            np.full(len(own.matrix), NOTHING, np.float32) if own.constant is None else own.constant for own in group
        ]
        constant = program.add_constant(np.concatenate(constants), "f32")
        summed = program.add(whole)
        yield adding.changed(inputs=(made, constant), outputs=(summed,), ports=(None,))
        made = summed
    start = 0
    for own, width in zip(group, widths, strict=True):
        yield Instruction(
            *((own.sum or own.product).layer, COLUMNS, from_to(start, start + width), {}, (made,), (own.result,))
        )
        start += width


def _attrs(product: Instruction) -> Mapping[str, Any]:
    trait = product.op.trait(MatrixProduct)
    assert trait is not None
    return _transposing(trait.transpose_a, trait.transpose_b)


@cache
def _transposing(a: str, b: str) -> Mapping[str, Any]:
    """The attributes of a product whose matrix lies [columns, inner], shared by all: so they are of one kind."""
    return {a: False, b: True}
