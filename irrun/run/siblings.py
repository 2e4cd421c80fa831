"""Siblings: enclosed programs that differ in nothing but what their weights hold, as those of experts do.

What is prepared of one, the model, is made into that of another one in a small part of the time: sizes, engines and
memory are the same, and the weights are laid out anew.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from irrun.engines.memory import data_address
from irrun.engines.work import Compiled, Work
from irrun.run.compiling import comes_alike, compile_work, compiled_again
from irrun.run.internal_ops import REORDER
from irrun.run.passes.setting import Setting, Taken
from irrun.run.program import Instruction, Program
from irrun.spec.dims import Dim, Shape, key_of, same
from irrun.spec.op import Array, Tensor


def compact(program: Program) -> Program | None:
    """An enclosed program with numbers of its own for its tensors, in the order in which they come; None where it has
    more than instructions of the model's layers."""
    if any(own.posts or own.bodies or own.enclosed is not None for own in program.instructions):
        return None
    met = (number for own in program.instructions for number in (*own.inputs, *own.outputs) if number is not None)
    numbers = {number: place for place, number in enumerate(dict.fromkeys([*program.parameters, *met]))}
    made = {number for instruction in program.instructions for number in instruction.outputs}
    if not made.isdisjoint(program.shown) or not numbers.keys() >= {*program.results}:
        return None
    tensors = [program.tensors[number] for number in numbers]

    def renumbered(given: Sequence[int]) -> tuple[int, ...]:
        return tuple(map(numbers.__getitem__, given))

    instructions = [
        instruction.reading(numbers).changed(
            outputs=renumbered(instruction.outputs), frees=renumbered(instruction.frees)
        )
        for instruction in program.instructions
    ]
    return replace(
        program,
        tensors=tensors,
        constants={numbers[number]: array for number, array in program.constants.items()},
        compressed={numbers[number]: weights for number, weights in program.compressed.items()},
        parameters=renumbered(program.parameters),
        results=renumbered(program.results),
        instructions=instructions,
        shown={},
        settled=(),
    )


def kin_of(program: Program) -> Hashable:
    """What siblings share: all of a compact program but layers, and what weights hold."""
    sizes: dict[Hashable, int] = {}  # open ones, by what is equal where they are

    def pattern(shape: Shape | None) -> Hashable:
        if shape is None:
            return None
        return tuple(
            (sizes.setdefault(key_of(size), len(sizes)), size.low, size.high) if isinstance(size, Dim) else (size,)
            for size in shape
        )

    def known(number: int, tensor: Tensor) -> Hashable:
        array, weights = program.constants.get(number), program.compressed.get(number)
        if weights is not None:
            factors = [None if own is None else own.shape for own in (weights.scale, weights.zero)]
            return tensor.type, weights.type, weights.shape, weights.stored, *factors
        if array is not None:
            held = None if program.is_weight(number) else array.tobytes()
            return tensor.type, array.shape, array.strides, held
        values = None if tensor.numbers is None else pattern(tuple(tensor.numbers))
        return tensor.type, pattern(tensor.shape), tensor.content is None, values

    instructions = [
        (own.op, id(own.attrs), own.open, own.ports, own.inputs, own.outputs, *sorted(own.types.items()))
        for own in program.instructions
    ]
    tensors = [known(number, tensor) for number, tensor in enumerate(program.tensors)]
    return program.parameters, program.results, *instructions, *tensors


def sibling_of(model: Program, built: Program, own: Program, setting: Setting) -> Program | None:
    """What becomes of `own` where the `model` has become of `built`, whose kin it is; None where that has to be found
    out: something but engines has looked at weights, or an engine wants or gives something else for these."""
    varied = {*built.compressed, *filter(built.is_weight, built.constants)}
    constants = _constants(model, built, own, varied, setting) if _reads(model, built, varied) else None
    if constants is None or not model.compressed.keys() <= built.compressed.keys():
        return None
    compressed = {number: own.compressed[number] for number in model.compressed}
    layers = {id(one.layer): other.layer for one, other in zip(built.instructions, own.instructions, strict=True)}
    made = replace(model, constants=constants, compressed=compressed, instructions=[])
    for instruction in model.instructions:
        posts = tuple(post.changed(layer=layers[id(post.layer)]) for post in instruction.posts)
        changed = instruction.changed(layer=layers[id(instruction.layer)], posts=posts)
        if instruction.compiled is not None and not varied.isdisjoint(instruction.operands):
            anew = _compiled(made, changed, varied, setting)
            if anew is None:
                return None
            changed = changed.changed(work=anew[0], compiled=anew[1])
        made.instructions.append(changed)
    return made


def _reads(model: Program, built: Program, varied: set[int]) -> bool:
    """Whether all that has read weights still does, where it makes any elements: else what they hold has told that it
    need not, such as factors that are all 1."""
    read = {part.outputs[0]: part.inputs for own in model.instructions for part in own.parts if part.outputs}
    return all(
        varied.intersection(instruction.inputs) <= {*read.get(instruction.outputs[0], ())}
        or any(same(size, 0) for size in model.tensors[instruction.outputs[0]].shape or ())
        for instruction in built.instructions
    )


def _constants(
    model: Program, built: Program, own: Program, varied: set[int], setting: Setting
) -> dict[int, Array] | None:
    """The constants of a sibling; None where some are made of weights, or something lies within these."""
    if any(storage.root in varied for storage in model.storage.values()):
        return None
    tainted = {*varied}
    for instruction in built.instructions:
        if not tainted.isdisjoint(instruction.inputs):
            tainted.update(instruction.outputs)
    found: dict[int, Array] = {}
    for number, array in model.constants.items():
        if number in built.compressed:
            if array is not setting.dense(built.compressed[number]):
                return None
            array = setting.dense(own.compressed[number])
        elif number in varied:
            given, weights = built.constants[number], own.constants[number]
            if array is given and not given.flags.aligned:  # which who reads it puts up with
                array = weights
            elif array is given or _is_same(array, setting.alignment(given)):
                array = setting.alignment(weights)
            else:
                return None
        elif array.size and (number in tainted or (number >= len(built.tensors) and array.dtype.kind == "f")):
            return None
        found[number] = array
    return found


def _is_same(a: Array, b: Array) -> bool:
    """Whether two arrays of the same elements lie at the same place."""
    return (a.shape, a.strides, a.dtype, data_address(a)) == (b.shape, b.strides, b.dtype, data_address(b))


def _compiled(
    program: Program, instruction: Instruction, varied: set[int], setting: Setting
) -> tuple[Work, Compiled] | None:
    """The work of an instruction with weights of this program, and what comes of it; None where that is something else
    than of the model's."""
    work, compiled = instruction.work, instruction.compiled
    assert work is not None
    assert compiled is not None
    inputs, weights = list(work.inputs), []
    for at, (number, operand) in enumerate(zip(instruction.operands, inputs, strict=False)):
        if number not in varied or number is None or operand is None:
            continue
        weights.append(at)
        if operand.compressed is not None:
            inputs[at] = replace(operand, compressed=program.compressed[number])
        else:
            inputs[at] = replace(operand, value=program.constants[number])
    own = Work(work.name, work.attrs, inputs, work.outputs, work.posts)
    engine = setting.engine(instruction.by)
    made: Compiled | None
    if instruction.op is REORDER:
        made = engine.reorder(inputs[0], program.storage[instruction.outputs[0]].layout) if inputs[0] else None
    elif work.compressed:
        made = compile_work(engine, own, instruction)
    else:
        taken = Taken(engine, len(instruction.posts), work, compiled, tuple(weights))
        made = compiled_again(own, instruction, taken)
    return None if made is None or not comes_alike(made, compiled) else (own, made)
