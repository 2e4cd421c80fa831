"""Shorten: instructions of open sizes whose rules need not be asked again are computed by their kernels alone.

To ask a rule takes ten times as long as to compute the small tensors that shapes, masks and positions are made of.
Kernels that are self-checking fail where the rule does, and then it is asked, for its message. Of two bodies the one
that is chosen runs without a kernel in between, which would look at the map of its ports each time.

Expects what engines have left to the kernels; leaves some of it with a quick way.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from irrun.interruption import hand_on
from irrun.records import NamedTuple
from irrun.run.passes.setting import Setting
from irrun.run.program import KERNEL, Branch, Branches, Instruction, Program, Quick
from irrun.run.session import Run
from irrun.spec.dims import Shape, same
from irrun.spec.op import Array
from irrun.spec.traits import Attending, Branching, Cutting, Lookup, Measuring, Repeating, Reshaping

MAX_SMALL = 4096
"""Elements of an array that is small. Of others a rule tells in advance how much memory the result takes."""


def shorten(program: Program, setting: Setting) -> Program:
    if not setting.engines or not any(_is_left(each) or each.bodies for each in program.instructions):
        return program
    attended = _attended(program) if not setting.checked and not setting.watched else {}
    instructions = []
    for instruction in program.instructions:
        if (quick := _quick(instruction, program, attended)) is not None:
            instruction = instruction.changed(quick=quick)
        elif (branches := _branches(instruction)) is not None:
            instruction = instruction.changed(branches=branches)
        instructions.append(instruction)
    return replace(program, instructions=instructions)


def _branches(instruction: Instruction) -> Branches | None:
    """Both bodies of one that runs one of them, where all their parameters and all its outputs are connected."""
    branching = instruction.op.trait(Branching)
    if branching is None or instruction.open or len(instruction.bodies) < 2:
        return None
    found = []
    condition = next(number for number, port in enumerate(instruction.op.inputs) if port.name == branching.condition)
    for name in (branching.otherwise, branching.then):
        body, program = instruction.bodies[name]
        given = {port.parameter: port.external for port in body.inputs if port.external >= 0}
        made = {port.external: port.result for port in body.outputs}
        parameters, outputs = range(len(program.parameters)), range(len(instruction.outputs))
        if not given.keys() >= set(parameters) or not made.keys() >= set(outputs):
            return None
        if any(instruction.inputs[number] is None for number in (condition, *given.values())):
            return None
        found.append(Branch(name, tuple(map(given.__getitem__, parameters)), tuple(map(made.__getitem__, outputs))))
    return Branches(condition, (found[0], found[1]))


class _Part(NamedTuple):
    """A kernel, with where its arguments are among the arrays of the operands; -1 is the result before it."""

    kernel: Callable[..., Any]
    arguments: Sequence[int | None]


def _attended(program: Program) -> dict[int, set[int]]:
    """What nothing but attention reads, as keys and values, and the axes along which it broadcasts these itself: those
    in front of the last two along which its queries are provably as large."""
    found: dict[int, set[int]] = {}
    others = set(program.results)
    for instruction in program.instructions:
        query, *given = instruction.inputs[:3] if instruction.op.trait(Attending) is not None else (None,)
        own = {number for number in given if number is not None and number != query}
        for number in own:
            axes = _as_large(program.tensors[number].shape, None if query is None else program.tensors[query].shape)
            found[number] = found.get(number, axes) & axes
        others.update(number for number in instruction.operands if number is not None and number not in own)
        others.update(number for number in instruction.reads if number is not None)
    return {number: axes for number, axes in found.items() if number not in others}


def _as_large(keys: Shape | None, queries: Shape | None) -> set[int]:
    """The axes in front of the last two along which queries are provably as large as what they are held against."""
    if keys is None or queries is None or len(keys) != len(queries):
        return set()
    return {axis for axis, sizes in enumerate(zip(keys[:-2], queries[:-2], strict=True)) if same(*sizes)}


def _is_left(instruction: Instruction) -> bool:
    """Whether a rule has to be asked in the run before a kernel computes."""
    return instruction.open and instruction.quick is None and instruction.by == KERNEL


def _quick(instruction: Instruction, program: Program, attended: Mapping[int, set[int]]) -> Quick | None:
    """The kernels of an instruction and of its posts, one after the other."""
    if not _is_left(instruction):
        return None
    if len(instruction.outputs) > 1 or not all(checks_itself(part, program) for part in instruction.parts):
        return None
    if any(number in program.compressed for number in instruction.operands):  # of which it is given no numbers
        return None
    if not all(_is_known(number, program) for number in (*instruction.operands, *instruction.results)):
        return None
    if instruction.op.trait(Repeating) is not None and instruction.outputs[0] in attended:
        return partial(_unrepeated, attended[instruction.outputs[0]])
    looks = any(instruction.op.trait(kind) is not None for kind in (Reshaping, Repeating, Cutting, Measuring))
    views = looks and not instruction.posts
    parts: list[_Part] = []
    for part, arguments in zip(instruction.parts, instruction.arguments(), strict=True):
        context = {"types": part.types} if part.op.context else {}
        parts.append(_Part(partial(part.op.kernel, **part.attrs, **context), arguments))
    return partial(_computed, parts, views)


def _unrepeated(axes: Container[int], arrays: Sequence[Array | None], run: Run) -> Sequence[Array] | None:
    """A view of data that are repeated in front of the last two axes, where they are left as they are along `axes`."""
    data, target = arrays
    if data is None or target is None or data.ndim != target.size or data.ndim < 3:
        return None
    wanted = target.tolist()
    fits = all(size in (1, own) for own, size in zip(wanted[:-2], data.shape[:-2], strict=True))
    if not fits or list(data.shape[-2:]) != wanted[-2:]:
        return None
    kept = tuple(own if axis in axes else size for axis, (own, size) in enumerate(zip(data.shape, wanted, strict=True)))
    return (data if kept == data.shape else np.broadcast_to(data, kept),)


def checks_itself(instruction: Instruction, program: Program) -> bool:
    """Whether its kernel refuses what its rule does."""
    op = instruction.op
    if not instruction.plain or instruction.attrs.get("auto_broadcast", "numpy") != "numpy":
        return False
    if op.trait(Reshaping) is not None and not op.self_checking:
        return all(number in program.constants for number in instruction.inputs[1:])
    if (cutting := op.trait(Cutting)) is not None:
        bounds = {instruction.port(name) for name in cutting.bounds}
        return all(n is None or n in bounds or n in program.constants for n in instruction.inputs[1:])
    if (lookup := op.trait(Lookup)) is not None:
        constant = instruction.port(lookup.axis) in program.constants
        return op.self_checking and constant and instruction.attrs.get(lookup.batch_dims, 0) == 0
    return op.self_checking or (op.trait(Repeating) is not None and len(instruction.inputs) == 2)


def _is_known(number: int | None, program: Program) -> bool:
    tensor = None if number is None else program.tensors[number]
    return tensor is None or (tensor.shape is not None and tensor.numeric)


def _computed(parts: Sequence[_Part], views: bool, arrays: Sequence[Array | None], run: Run) -> Sequence[Array] | None:
    if not views and any(array is not None and array.size > MAX_SMALL for array in arrays):
        return None
    result: Any = None
    try:
        for part in parts:
            given = [None if n is None else result if n < 0 else arrays[n] for n in part.arguments]
            result = part.kernel(*given)
    except Exception as error:  # of which the rule knows more
        hand_on(error)
        return None
    if run.meter is not None and views and run.meter.live + result.nbytes > run.meter.limit:
        return None
    return (np.asarray(result),)
