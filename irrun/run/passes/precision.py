"""Precision: in which type each float tensor is computed.

Inputs come and results go in the types that the model declares; between them a tensor is of the type that `TYPES` says
for the declared one. An instruction whose op refuses that is left as it is, with conversions around it: so is one of
random numbers, one that fills with the lowest number of its type, and one that meets a tensor whose type only a run
tells. A conversion between types that are now the same disappears, but where others read what it converts. Types of
integers never change. Bodies are retyped with the program that they belong to, down to what they are given and give,
and so are variables: `Program.borders` and `Program.variables` have what the model says.

Where floats become narrower, two kinds of layers stay in f32: those that the model marks as precise, and those that
compute from integers of 16 bits and more alone: sizes, positions and counts, of which f16 and bf16 have too few. So do
the scales of a resized image, which decide sizes, too.

Expects programs as they were built, for any inputs, bodies included; leaves one whose instructions have inputs and
outputs of types that their ops take together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from irrun.interruption import hand_on
from irrun.ir.graph import Layer
from irrun.run.program import Instruction, Program
from irrun.spec.dtypes import ELEMENT_TYPES, FLOAT_FORMATS, numpy_dtype
from irrun.spec.op import INTEGER, Inferred, Tensor
from irrun.spec.registry import registry
from irrun.spec.traits import Converting, Filling, Reading, Resizing, Storing

MAX_SATURATED = 64
"""Elements of a constant that is looked through for numbers that f16 or bf16 does not have."""

AUTO = {"f16": "f32", "bf16": "f32"}

TYPES: Mapping[str, Mapping[str, str]] = {
    "auto": AUTO,
    "declared": {},
    "f32": {**AUTO, "f64": "f32"},
    "bf16": AUTO,
    "f16": dict.fromkeys(("bf16", "f32", "f64"), "f16"),
    "f64": dict.fromkeys(("f16", "bf16", "f32"), "f64"),
}
"""The types that floats are computed in, by what the model declares. Those that are not named stay as they are. What is
computed in bf16 is chosen afterwards, by `narrow`."""

FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
NARROW = frozenset({"f16", "bf16"})
WIDE = dict.fromkeys(FLOATS, "f32")
"""What stays in f32 where other floats become narrower."""

COUNTS = frozenset(type for type in INTEGER if ELEMENT_TYPES[type].bits > 8)
"""Integers of which f16 and bf16 do not have all."""


def retype(program: Program, precision: str) -> Program:
    """The program computed in a `precision` of `TYPES`."""
    types = TYPES[precision]
    if all(tensor.type not in types for part in programs(program) for tensor in part.tensors):
        return program
    variables = _variables(program)
    program = Retyping(program, types, variables).run()
    program.variables = {name: (type, types[type]) for name, type in variables.items() if type in types}
    return program


def programs(program: Program) -> Iterator[Program]:
    """A program and those of all bodies in it."""
    yield program
    for instruction in program.instructions:
        for _, body in instruction.bodies.values():
            yield from programs(body)


def _is_open(body: Program) -> bool:
    """Whether only a run tells the types of what a body is given or gives."""
    return any(body.tensors[number].type == "dynamic" for number in (*body.parameters, *body.results))


def _variables(program: Program) -> dict[str, str]:
    """The declared types of variables; of none where some are not named, or of types that only a run tells."""
    found: dict[str, str] = {}
    for part in programs(program):
        for instruction in part.instructions:
            if "state" in instruction.op.context:
                number = next(number for number in (*instruction.outputs, *instruction.inputs) if number is not None)
                name, type = _variable(instruction), part.tensors[number].type
                if name is None or type == "dynamic" or found.setdefault(name, type) != type:
                    return {}
        if part is not program and _is_open(part):
            return {}
    return found


def _variable(instruction: Instruction) -> str | None:
    trait = instruction.op.trait(Reading) or instruction.op.trait(Storing)
    return None if trait is None else str(instruction.attrs[trait.variable])


class Retyping:
    """A program in the making; `owner` is the layer that it is a body of."""

    def __init__(
        self, program: Program, types: Mapping[str, str], variables: Mapping[str, str], owner: Layer | None = None
    ) -> None:
        self.program = program.begun()
        self._instructions = program.instructions
        self._types, self._variables, self._owner = types, variables, owner
        self._declared = [tensor.type for tensor in program.tensors]
        self._held: dict[int, int] = {}
        """The tensors that stand for those that nothing makes any more."""
        self._converted: dict[tuple[int, str], int] = {}
        self._makers: dict[int, Layer] = {}
        self._uses = Counter(n for part in program.instructions for n in part.inputs if n is not None)
        self._uses.update(program.results)
        self._unchanging = [(part.layer, number) for number, parts in program.shown.items() for part in parts]
        self._unrounded = unrounded(program) if self._types.get("f32") in NARROW else set[Instruction]()

    def run(self) -> Program:
        program, inside = self.program, self._owner is not None
        results = program.results
        if inside:
            for number in program.parameters:
                self._set(number, self._wanted(number))
        for instruction in self._instructions:
            self._add(instruction)
        program.shown = self._shown()
        program.results = tuple(
            self._as(number, self._wanted(number) if inside else self._declared[number], self._owner)
            for number in results
        )
        if inside:
            program.borders = (
                tuple(self._declared[number] for number in program.parameters),
                tuple(self._declared[number] for number in results),
            )
        return program

    def _wanted(self, number: int) -> str:
        return self._types.get(self._declared[number], self._declared[number])

    def _set(self, number: int, type: str) -> None:
        """Make a tensor of a type; the value of floats has to be computed anew, perhaps of inputs of other types."""
        tensor = self.program.tensors[number]
        if type in FLOATS:
            kept = tensor.value is not None and tensor.value.dtype == object
            self.program.tensors[number] = Tensor(type, tensor.shape, tensor.value if kept else None)

    def _as(self, number: int, type: str, reader: Layer | None) -> int:
        """The tensor in a type, converted once."""
        layer = self._makers.get(number, reader)
        number = self._held.get(number, number)
        tensor = self.program.tensors[number]
        if tensor.type == type:
            return number
        found = self._converted.get((number, type))
        if found is None and self._types.get(tensor.type) == type in NARROW and number in self.program.constants:
            found = self._saturated(number, type)
        if found is None:
            assert layer is not None, "what comes from outside is given, and handed out, in one type"
            found = self._converted[number, type] = self.program.add(Tensor(type, tensor.shape))
            self.program.instructions.append(
                Instruction(
                    *(
                        layer,
                        registry().conversion,
                        {"destination_type": type},
                        {"T": tensor.type},
                        (number,),
                        (found,),
                    ),
                    open=not tensor.static,
                    ports=(),
                )
            )
        return found

    def _saturated(self, number: int, type: str) -> int | None:
        """A small constant in a type that has not all its numbers, if so: what hides a score must not be infinite."""
        array, dtype = self.program.constants[number], numpy_dtype(type)
        if array.size > MAX_SATURATED:
            return None
        most = FLOAT_FORMATS[type].largest
        finite = np.isfinite(array)
        if not (np.abs(array[finite]) > most).any():
            return None
        held = np.where(finite, np.clip(array, -most, most), array).astype(dtype)
        held.flags.writeable = False
        found = self._converted[number, type] = self.program.add_constant(held, type)
        return found

    def _add(self, instruction: Instruction) -> None:
        found = {self._declared[n] for n in (*instruction.inputs, *instruction.outputs) if n is not None}
        inside = {
            tensor.type for _, body in instruction.bodies.values() for p in programs(body) for tensor in p.tensors
        }
        types = self._types_of(instruction)
        if "dynamic" in found or types.keys().isdisjoint(found | inside) or not self._retyped(instruction, types):
            inputs = tuple(
                None if number is None else self._as(number, self._declared[number], instruction.layer)
                for number in instruction.inputs
            )
            for number in instruction.outputs:
                self._set(number, self._declared[number])
            self._append(instruction.changed(inputs=inputs))

    def _append(self, instruction: Instruction) -> None:
        self._makers.update(dict.fromkeys(instruction.outputs, instruction.layer))
        self.program.instructions.append(instruction)

    def _retyped(self, instruction: Instruction, types: Mapping[str, str]) -> bool:
        """Add an instruction that computes in other types; False where it cannot."""
        given = [None if n is None else types.get(self._declared[n], self._declared[n]) for n in instruction.inputs]
        if self._types.get("f32") in NARROW and (resizing := instruction.op.trait(Resizing)) is not None:
            scales = instruction.port(resizing.targets)
            kept = None if scales is None else WIDE.get(self._declared[scales], self._declared[scales])
            given = [kept if n == scales else type for n, type in zip(instruction.inputs, given, strict=True)]
        made = [types.get(self._declared[number], self._declared[number]) for number in instruction.outputs]
        if instruction.bodies:
            changed = self._with_bodies(instruction)
        elif given == made and given[0] is not None and self._disappears(instruction):
            number = instruction.inputs[0]
            assert number is not None
            self._held[instruction.outputs[0]] = same = self._as(number, given[0], instruction.layer)
            self._makers[instruction.outputs[0]] = instruction.layer
            self._show(same, instruction)
            if instruction.ports is None and same not in self.program.constants:
                self._unchanging.append((instruction.layer, same))
            return True
        else:
            changed = self._asked(instruction, given, made)
        if changed is None:
            return False
        inputs = tuple(
            None if number is None or type is None else self._as(number, type, instruction.layer)
            for number, type in zip(instruction.inputs, given, strict=True)
        )
        for number, type in zip(instruction.outputs, made, strict=True):
            self._set(number, type)
        self._append(changed.changed(inputs=inputs))
        return True

    def _disappears(self, instruction: Instruction) -> bool:
        """Whether readers of a conversion that changes nothing may read what it converts. Others may, too, who must not
        see what an observer puts in the place of the conversion: where none looks, `drop` leaves it out."""
        if instruction.op.trait(Converting) is None:
            return False
        number = instruction.inputs[0]
        alone = number is None or self._uses[number] < 2 or number in self.program.constants
        return alone or instruction.ports is not None

    def _show(self, number: int, conversion: Instruction) -> None:
        """Where a conversion that disappears was what an observer sees of its layer, that is what it has converted."""
        if not conversion.ports:
            return
        for position, maker in enumerate(self.program.instructions):
            if number in maker.outputs and maker.layer is conversion.layer and maker.ports is not None:
                shown = [*maker.ports]
                shown[maker.outputs.index(number)] = conversion.ports[0]
                self.program.instructions[position] = maker.changed(ports=tuple(shown))

    def _shown(self) -> dict[int, tuple[Instruction, ...]]:
        """The conversions that have disappeared, by the tensors that stand for their results."""
        found: dict[int, tuple[Instruction, ...]] = {}
        for layer, number in self._unchanging:
            held = self._held.get(number, number)
            type = self.program.tensors[held].type
            attrs, types = {"destination_type": type}, {"T": type}
            conversion = Instruction(layer, registry().conversion, attrs, types, (held,), (held,))
            found[held] = (*found.get(held, ()), conversion)
        return found

    def _types_of(self, instruction: Instruction) -> Mapping[str, str]:
        if "state" in instruction.op.context:
            return self._types if _variable(instruction) in self._variables else {}
        filling = instruction.op.trait(Filling)
        if not instruction.op.pure or (filling is not None and instruction.attrs[filling.mode] == filling.word):
            return {}
        narrowed = self._types.get("f32") in NARROW and not instruction.bodies
        return WIDE if narrowed and (instruction.layer.precise or instruction in self._unrounded) else self._types

    def _asked(self, instruction: Instruction, given: list[str | None], made: list[str]) -> Instruction | None:
        """The instruction as its op's rule takes it with inputs of the types `given`, if it makes these of them."""
        op, tensors = instruction.op, self.program.tensors
        attrs = instruction.attrs
        for port, type in zip(op.outputs, made, strict=False):
            if attrs.get(port.type) in ELEMENT_TYPES.keys() - {"dynamic", type}:
                attrs = {**attrs, port.type: type}
        symbols = {*(port.type for port in op.inputs), *(port.type for port in op.outputs)}
        declared = "dynamic" not in symbols  # then shapes do not matter
        inputs = [
            None if n is None or type is None else Tensor(type, None) if declared else _retyped(tensors[n], type)
            for n, type in zip(instruction.inputs, given, strict=True)
        ]
        try:
            inferred: Inferred = op.infer(inputs, attrs)
        except Exception as error:  # a violation, or what a user's rule makes of types it has not been asked about
            hand_on(error)
            return None
        found = [tensor.type for tensor in inferred.outputs[: len(made)]]
        if found != made or inferred.widened:
            return None
        return instruction.changed(attrs=attrs, types=inferred.types)

    def _with_bodies(self, instruction: Instruction) -> Instruction | None:
        if any(_is_open(program) for _, program in instruction.bodies.values()):
            return None
        bodies = {}
        for name, (body, program) in instruction.bodies.items():
            declared = tuple(
                Tensor(self._types.get(tensor.type, tensor.type), tensor.shape, None) for tensor in body.declared
            )
            retyped = Retyping(program, self._types, self._variables, instruction.layer).run()
            bodies[name] = replace(body, declared=declared), retyped
        return instruction.changed(bodies=bodies)


def _retyped(tensor: Tensor, type: str) -> Tensor:
    if tensor.type == type:
        return tensor
    if tensor.value is None or tensor.value.dtype == object:
        return Tensor(type, tensor.shape, tensor.value)
    with np.errstate(all="ignore"):
        return Tensor(type, tensor.shape, tensor.value.astype(numpy_dtype(type)))


def unrounded(program: Program) -> set[Instruction]:
    """Instructions that make floats of constants alone, or of integers that f16 and bf16 have too few digits for."""
    constant: set[int | None] = {*program.constants, *program.compressed}
    counts: set[int] = set()
    found: set[Instruction] = set()
    for instruction in program.instructions:
        types = {number: program.tensors[number].type for number in instruction.inputs if number is not None}
        if not types or not instruction.plain:
            continue
        if constant.issuperset(types):
            constant.update(instruction.outputs)
            found.add(instruction)
            continue
        floats = {number for number, type in types.items() if type in FLOATS}
        if floats:
            counting = not floats <= constant and floats <= counts | constant
        else:
            counting = not COUNTS.isdisjoint(types.values())
        if counting:
            found.add(instruction)
            counts.update(instruction.outputs)
    return found
