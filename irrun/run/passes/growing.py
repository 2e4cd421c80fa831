"""Grow: a variable to which each run appends, as a cache of keys and values, is written to where it lies.

What is read of such a variable, reordered by beams, joined with something new and stored again is marked: the new part
goes into spare room behind the old one (`Variables.append`), and nothing else is copied while beams keep their order.

Expects a program without posts; leaves one whose results are the same. The kernels compute what is not as it was
expected to be, and all of it where somebody looks at the tensors or a body runs again and again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from irrun.run.passes.setting import Setting
from irrun.run.program import Instruction, Program, Quick
from irrun.run.session import Run
from irrun.run.variables import Together
from irrun.spec.dims import Shape, incompatible
from irrun.spec.op import Array
from irrun.spec.traits import Joining, Lookup, Reading, Storing


def grow(program: Program, setting: Setting) -> Program:
    if not setting.transforms or setting.checked or setting.iterated:
        return program
    makers = program.makers()
    stored = Counter(map(_stored, program.instructions))
    quick: dict[Instruction, Quick] = {}
    for instruction in program.instructions:
        name = _stored(instruction)
        if name is not None and stored[name] == 1:
            quick.update(_chain(instruction, name, program, makers, setting.engines[-1].together))
    instructions = [
        instruction.changed(quick=quick[instruction]) if instruction in quick else instruction
        for instruction in program.instructions
    ]
    return replace(program, instructions=instructions)


def _stored(instruction: Instruction) -> str | None:
    """The variable that an instruction stores."""
    trait = instruction.op.trait(Storing)
    return None if trait is None else str(instruction.attrs[trait.variable])


def _chain(
    last: Instruction,
    name: str,
    program: Program,
    makers: dict[int | None, Instruction],
    together: Together,
) -> list[tuple[Instruction, Quick]]:
    """What reads a variable, reorders, appends and stores it, each with its quick way; nothing where that is not so."""
    join = makers.get(last.inputs[0])
    joining = None if join is None else join.op.trait(Joining)
    if join is None or joining is None or len(join.inputs) != 2:
        return []
    shape = program.tensors[join.outputs[0]].shape
    first = makers.get(join.inputs[0])
    reorder = None
    if first is not None and (lookup := first.op.trait(Lookup)) is not None:
        axis = first.port(lookup.axis)
        if axis not in program.constants or program.constants[axis].item() != 0:
            return []
        reorder, first = first, makers.get(first.inputs[0])
    reading = None if first is None else first.op.trait(Reading)
    if first is None or reading is None or first.attrs[reading.variable] != name or shape is None:
        return []
    along = join.attrs[joining.axis] % len(shape)
    chain: list[tuple[Instruction, Quick]] = [
        (first, partial(_read, name, first.attrs[reading.shape])),
        (join, partial(_append, name, along)),
        (last, partial(_store, name)),
    ]
    return [*chain, (reorder, partial(_reordered, name, along, together))] if reorder is not None else chain


def _read(name: str, declared: Shape | None, arrays: Sequence[Array | None], run: Run) -> Sequence[Array] | None:
    latest = run.variables.latest(name)
    return None if latest is None or incompatible(declared, latest.shape) else (latest,)


def _reordered(
    name: str, axis: int, together: Together, arrays: Sequence[Array | None], run: Run
) -> Sequence[Array] | None:
    """The data as they are where each slice stays where it is, else where there is room to append.

    First values lie in memory that others may be given: these are not handed on.
    """
    data, indices = arrays[:2]
    if data is None or indices is None or indices.ndim != 1 or not axis:
        return None
    wanted = indices.tolist()
    if wanted == list(range(len(data))):
        return (data,) if run.variables.holds(name, data) else None
    if not all(0 <= index < len(data) for index in wanted) or not _has_room(run, data):
        return None
    return (run.variables.reorder(name, data, wanted, axis, together),)


def _append(name: str, axis: int, arrays: Sequence[Array | None], run: Run) -> Sequence[Array] | None:
    past, new = arrays
    if past is None or new is None or past.dtype != new.dtype or past.ndim != new.ndim:
        return None
    if (
        not _has_room(run, past)
        or past.shape[:axis] != new.shape[:axis]
        or past.shape[axis + 1 :] != new.shape[axis + 1 :]
    ):
        return None
    return (run.variables.append(name, past, new, axis),)


def _store(name: str, arrays: Sequence[Array | None], run: Run) -> Sequence[Array] | None:
    (value,) = arrays
    return (value,) if value is not None and run.variables.store(name, value) else None


def _has_room(run: Run, array: Array) -> bool:
    """Whether there may be another array like this one; else the kernel says what is too large."""
    return run.meter is None or run.meter.live + array.nbytes <= run.meter.limit
