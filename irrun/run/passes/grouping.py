"""Group: heads of an attention that share their keys and values read them where they lie, not from a copy for each.

Models write keys [batch, heads, length, size] with an axis of size 1 behind the heads, repeat them along it for each
query of a group, and fold both axes into one, which copies them. Attention takes more axes: queries that are split into
[batch, heads, group, rows, size] read the repetition, which is a view.

Expects a program without posts; leaves one whose results are the same. Batches and lengths may be open: the same comes
of these as of known ones. Where sizes do not provably fit, and where somebody looks at the tensors, it stays as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from irrun.run.passes.setting import Setting
from irrun.run.program import Instruction, Program
from irrun.spec.dims import Dim, Shape, same, same_shapes
from irrun.spec.op import Tensor
from irrun.spec.traits import Attending, Repeating, Reshaping


def group(program: Program, setting: Setting) -> Program:
    if not setting.transforms:
        return program
    grouping = _Grouping(program.begun())
    for instruction in program.instructions:
        grouping.add(instruction)
    return grouping.program


class _Grouping:
    """A program in the making."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._makers: dict[int | None, Instruction] = {}
        self._masks: dict[int, int] = {}
        self._attrs: dict[int, Mapping[str, Any]] = {}  # with which 0 keeps a size, by the identity of others

    def add(self, instruction: Instruction) -> None:
        trait = instruction.op.trait(Attending)
        if trait is None or not self._grouped(instruction, trait.sink):
            self._append(instruction)

    def _append(self, instruction: Instruction) -> None:
        self.program.instructions.append(instruction)
        for number in instruction.outputs:
            self._makers[number] = instruction

    def _grouped(self, instruction: Instruction, sink: int) -> bool:
        """Add an attention on keys and values as they are in front of their repetition; input number `sink` may be the
        sink."""
        query, key, value, *others = instruction.inputs
        rows, sizes = self._shape(query), self._shape(instruction.outputs[0])
        found, also = self._repeated(key), self._repeated(value)
        if query is None or rows is None or sizes is None or found is None or also is None:
            return False
        (fold, keys, split), (_, values, also_split) = found, also
        if len(rows) != 4 or any(isinstance(rows[n], Dim) for n in (1, 3)):
            return False
        if any((size > 0) is not True for size in (*rows, *sizes)):
            return False
        if split != also_split or rows[1] != split[0] * split[1] or isinstance(sizes[3], Dim):
            return False
        mask = others[0] if others else None
        if mask is not None and (mask := self._mask(fold, keys, mask)) is None:
            return False
        sunk = instruction.inputs[sink] if sink < len(instruction.inputs) else None
        if sunk is not None and (sunk := self._sink(fold, sunk, split)) is None:
            return False
        queries = self._reshaped(fold, query, (rows[0], *split, *rows[2:]))
        type = self.program.tensors[instruction.outputs[0]].type
        made = self.program.add(Tensor(type, (sizes[0], *split, *sizes[2:])))
        inputs = [queries, keys, values, *((mask, *others[1:]) if others else ())]
        if sunk is not None:
            inputs[sink] = sunk
        self._append(instruction.changed(inputs=tuple(inputs), outputs=(made,)))
        self._reshaped(fold, made, sizes, instruction.outputs[0])
        return True

    def _repeated(self, number: int | None) -> tuple[Instruction, int, tuple[int, int]] | None:
        """What folds the axes of repeated heads, the tensor [batch, heads, group, length, size] before, and these."""
        fold = self._makers.get(number)
        repeat = None if fold is None else self._makers.get(fold.inputs[0])
        folding = None if fold is None else fold.op.trait(Reshaping)
        if fold is None or repeat is None or folding is None or repeat.op.trait(Repeating) is None:
            return None
        (made,), folded = repeat.outputs, self._shape(fold.outputs[0])
        shape = self._shape(made)
        if not folding.free or shape is None or folded is None or len(shape) != 5 or len(folded) != 4:
            return None
        batch, heads, group, *rest = shape
        if not isinstance(heads, int) or not isinstance(group, int):
            return None
        pairs = [(batch, folded[0]), (heads * group, folded[1]), *zip(rest, folded[2:], strict=True)]
        return (fold, made, (heads, group)) if all(same(a, b) for a, b in pairs) else None

    def _mask(self, fold: Instruction, keys: int, number: int) -> int | None:
        """The mask [..., 1, rows, length] with an axis for the heads of a group, as keys have got theirs if that can
        be; None where each has its own."""
        shape = self._shape(number)
        if shape is None or (len(shape) > 2 and shape[-3] != 1) or len(shape) > 4:
            return None
        if len(shape) < 4:
            return number
        if number not in self._masks:
            target, like = (*shape[:2], 1, *shape[2:]), self._insertion(keys)
            if like is not None:
                made = self.program.add(Tensor(self.program.tensors[number].type, target))
                types = like.types_for(self.program.tensors[number].type)
                self._append(like.changed(inputs=(number, *like.inputs[1:]), outputs=(made,), types=types))
                self._masks[number] = made
            elif all((size > 0) is True for size in shape) and sum(isinstance(size, Dim) for size in shape[1:]) <= 1:
                self._masks[number] = self._reshaped(fold, number, target)
            else:
                return None
        return self._masks[number]

    def _insertion(self, keys: int) -> Instruction | None:
        """What has given keys [batch, heads, length, size] an axis behind the heads, whatever their sizes are."""
        repeat = self._makers[keys]
        found = self._makers.get(repeat.inputs[0])
        trait = None if found is None else found.op.trait(Reshaping)
        if found is None or trait is None or trait.free:
            return None
        if any(number not in self.program.constants for number in found.inputs[1:]):
            return None
        before, behind = self._shape(found.inputs[0]), self._shape(found.outputs[0])
        if before is None or behind is None or len(before) != 4 or len(behind) != 5 or before[1] == 1:
            return None
        return found if behind[2] == 1 and same_shapes(before, (*behind[:2], *behind[3:])) else None

    def _sink(self, fold: Instruction, number: int, split: tuple[int, int]) -> int | None:
        """The sink [..., heads, rows, 1] with the heads split as those of the queries; None where that is not known."""
        shape = self._shape(number)
        if shape is None or len(shape) != 4 or any(isinstance(size, Dim) for size in shape):
            return None
        heads = split if shape[1] == split[0] * split[1] else (1, 1)
        return self._reshaped(fold, number, (shape[0], *heads, *shape[2:]))

    def _reshaped(self, fold: Instruction, number: int, shape: Shape, result: int | None = None) -> int:
        """A tensor in another shape, as `fold` makes it: the first size is kept, and one other at most is open, the
        one but last if none is."""
        tensor, trait = self.program.tensors[number], fold.op.trait(Reshaping)
        assert trait is not None
        if result is None:
            result = self.program.add(Tensor(tensor.type, shape))
        left = next((axis for axis, size in enumerate(shape) if axis and isinstance(size, Dim)), len(shape) - 2)
        sizes = np.array([0 if not axis else -1 if axis == left else size for axis, size in enumerate(shape)])
        target = self.program.add_constant(sizes, "i64")
        attrs = fold.attrs
        if not attrs[trait.kept]:
            attrs = self._attrs.setdefault(id(attrs), {**attrs, trait.kept: True})
        known = all(isinstance(size, int) for size in shape)
        types = fold.types_for(tensor.type)
        self._append(fold.changed(attrs=attrs, inputs=(number, target), outputs=(result,), types=types, open=not known))
        return result

    def _shape(self, number: int | None) -> Shape | None:
        return None if number is None else self.program.tensors[number].shape
