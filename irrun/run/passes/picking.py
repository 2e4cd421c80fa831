"""Pick: rows that are multiplied by matrices which indices pick are so where these lie, as experts of a model do.

Models that pick experts for each token write: a look-up of whole matrices, and a product with them, batch by batch. The
look-up copies matrices that are read once. In place of both there is one instruction, which reads the table.

Expects a folded program without posts, whose sizes are known or are to be settled. Leaves the look-up for `prune`.
Where somebody looks at the tensors nothing is changed.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from irrun.run.internal_ops import PICKED_PRODUCT, picking
from irrun.run.passes.setting import Setting
from irrun.run.program import Instruction, Program
from irrun.spec.dims import same
from irrun.spec.dtypes import ELEMENT_TYPES
from irrun.spec.traits import Lookup, MatrixProduct

LEAST = 1 << 14
"""Elements of a matrix from which on it is worth it: others are copied while Python finds one."""


def pick(program: Program, setting: Setting) -> Program:
    if not setting.transforms or not any(own.op.trait(Lookup) for own in program.instructions):
        return program
    makers, readers = program.makers(), program.sole_readers()
    instructions = []
    for instruction in program.instructions:
        trait = instruction.op.trait(MatrixProduct)
        for side in (0, 1) if trait is not None and setting.closed(instruction, program) else ():
            number, other = instruction.inputs[side], instruction.inputs[1 - side]
            lookup = makers.get(number)
            found = None if lookup is None or number not in readers else _picked(program, setting, lookup, other)
            if found is None or trait is None:
                continue
            turned = [instruction.attrs[name] for name in (trait.transpose_a, trait.transpose_b)]
            if instruction.posts or turned[1 - side]:
                continue
            attrs = picking(transposed=turned[side] != (side == 0), column=side == 0)
            instruction = instruction.changed(op=PICKED_PRODUCT, attrs=attrs, types={}, inputs=(other, *found))
            break
        instructions.append(instruction)
    return replace(program, instructions=instructions)


def _picked(program: Program, setting: Setting, lookup: Instruction, other: int | None) -> tuple[int, int] | None:
    """The table of constant matrices, and the indices that pick one for each batch of the other tensor."""
    trait = lookup.op.trait(Lookup)
    if trait is None or lookup.posts or not setting.closed(lookup, program) or other is None:
        return None
    table, indices, axis = (lookup.port(name) for name in (trait.table, trait.indices, trait.axis))
    if table is None or indices is None or axis not in program.constants or lookup.attrs.get(trait.batch_dims, 0):
        return None
    tensors = program.tensors
    shape, rows, places = (tensors[number].shape for number in (table, other, indices))
    if shape is None or rows is None or places is None or (len(shape), len(rows), len(places)) != (3, 3, 1):
        return None
    sizes = tensors[table].static and prod(map(int, shape[1:])) >= LEAST
    known = table in program.compressed or table in program.constants
    if not (sizes and known and same(rows[0], places[0])) or int(program.constants[axis].item()) not in (0, -3):
        return None
    numbers = (other, *lookup.outputs)
    if any(tensors[number].type != "f32" for number in numbers) or tensors[table].type not in ELEMENT_TYPES:
        return None
    return table, indices
