"""Build: the program of a graph, an instruction for each layer that a Result or an Assign depends on.

Expects a graph that was inferred without errors; leaves constants loaded, bodies as programs of their own, and nothing
computed. Every later pass takes a program and gives another one.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

from irrun.check.infer import Inference, body_of
from irrun.engines.compressed import LEAST, PACKED, CompressedWeights
from irrun.ir.graph import Graph, Layer, LayerBody, Value
from irrun.ir.structure import topological_order
from irrun.ir.weights import Weights
from irrun.run.memory import owned_bytes, refusal
from irrun.run.program import Instruction, Program
from irrun.spec.body import Body
from irrun.spec.op import Array, Tensor
from irrun.spec.registry import registry

STRUCTURAL = ("Parameter", "Const", "Result")
"""Layers that are no instructions: they say which tensors come from outside, and which go there."""


def build(
    graph: Graph,
    inference: Inference,
    limit: int,
    values: Sequence[Value] | None = None,
    *,
    compressed: bool = False,
    unsure: Collection[int] = (),
) -> Program:
    """The program of a graph whose constants take at most `limit` bytes; large ones of packed codes may be left to
    `compress` as the file has them.

    Its results are `values`, made of the Parameters that they depend on; those of the graph unless given. Of the
    parameters of a body that are `unsure`, by number, what is known of their shapes is supposed.

    Raises ExecutionError where constants take more, WeightsError where the .bin cannot be read any more.
    """
    needed = _needed(graph.sinks if values is None else [value.layer for value in values])
    layers = [layer for layer in topological_order(graph) if layer in needed]
    parameters = [layer for layer in graph.parameters if values is None or layer in needed]
    layers += [layer for layer in parameters if layer not in needed]
    sinks = set(graph.sinks)
    numbers: dict[Value, int] = {}
    handed_out = [_present(layer.inputs[0]) for layer in graph.results] if values is None else values
    program = Program([], {}, (), (), [])
    shared: dict[Hashable, Mapping[str, Any]] = {}
    bits: dict[int, Layer] = {}
    supposed: set[int] = set()
    for layer in layers:
        for value in layer.outputs:
            numbers[value] = program.add(inference.tensor(value))
        if unsure and layer.type == "Parameter" and parameters.index(layer) in unsure:
            supposed.update(_unknown([numbers[layer.outputs[0]]], program))
        if layer.type == "Const":
            number, stays = numbers[layer.outputs[0]], compressed and layer.outputs[0] not in handed_out
            packed = _packed(layer, inference.weights) if stays else None
            if packed is not None:
                program.compressed[number] = packed
                continue
            program.constants[number] = _constant(layer, inference.weights, program, limit)
            if program.tensors[number].type == "u1":
                bits[number] = layer
        elif layer.type not in STRUCTURAL:
            instruction = _instruction(layer, inference, numbers, limit - program.reserved, compressed, supposed)
            if not bits.keys().isdisjoint(instruction.inputs):
                instruction = _with_low_bits_first(instruction, bits, inference.weights, program)
            instruction.attrs = _shared(instruction, shared)
            instruction.effects |= layer in sinks
            if inference.nodes[layer].supposed or not supposed.isdisjoint(instruction.inputs) or _is_vague(instruction):
                instruction.open = True
                supposed.update(_unknown(instruction.outputs, program))
            widened = inference.nodes[layer].widened
            program.instructions += _widened(instruction, widened, program) if widened else [instruction]
    program.parameters = tuple(numbers[layer.outputs[0]] for layer in parameters)
    program.results = tuple(numbers[value] for value in handed_out)
    program.reserved += sum(body.reserved for i in program.instructions for _, body in i.bodies.values())
    return program


def _is_vague(instruction: Instruction) -> bool:
    """Whether a body gives tensors of unknown rank."""
    return not all(body.is_ranked(body.results) for _, body in instruction.bodies.values())


def _unknown(numbers: Sequence[int], program: Program) -> Sequence[int]:
    """Tensors whose shapes are supposed, or follow from such; a run tells them."""
    for number in numbers:
        program.tensors[number] = Tensor(program.tensors[number].type, None)
    return numbers


def _with_low_bits_first(
    instruction: Instruction, bits: Mapping[int, Layer], weights: Weights, program: Program
) -> Instruction:
    """An instruction with the constants of `bits` that it reads from their lowest bit on, as it does."""
    inputs = list(instruction.inputs)
    for position, (port, number) in enumerate(zip(instruction.op.inputs, inputs, strict=False)):
        if port.low_first and number is not None and number in bits:
            array = weights.low_bits_first(bits[number])
            inputs[position] = program.add_constant(array, "u1")
            program.reserved += owned_bytes(array)
    return instruction.changed(inputs=tuple(inputs))


def _shared(instruction: Instruction, kept: dict[Hashable, Mapping[str, Any]]) -> Mapping[str, Any]:
    """The attributes of an instruction; those of one with the same, so that passes see at once that two are alike."""
    attrs = instruction.attrs
    if not all(map(_is_plain, attrs.values())):
        return attrs
    return kept.setdefault((instruction.op, repr(attrs)), attrs)


def _is_plain(value: object) -> bool:
    """Whether a value is nothing but what its text says; an unknown size is equal to itself only."""
    return all(map(_is_plain, value)) if isinstance(value, tuple) else isinstance(value, str | int | float | None)


def _widened(instruction: Instruction, widened: Mapping[str, str], program: Program) -> list[Instruction]:
    """An instruction whose inputs mix types, computed in the widest, and the conversions around it.

    Those of results are the layer's for whoever looks at a run.
    """
    inputs, outputs = list(instruction.inputs), list(instruction.outputs)
    before, after = [], []
    for position, (port, number) in enumerate(zip(instruction.op.inputs, inputs, strict=False)):
        wide = widened.get(port.type)
        if number is not None and wide is not None and program.tensors[number].type != wide:
            inputs[position] = copy = program.add(Tensor(wide, program.tensors[number].shape))
            before.append(_conversion(instruction.layer, number, copy, program, ()))
    for position, (output, number) in enumerate(zip(instruction.op.outputs, outputs, strict=False)):
        wide = widened.get(output.type)
        if wide is not None and program.tensors[number].type != wide:
            outputs[position] = program.add(Tensor(wide, program.tensors[number].shape))
            after.append(_conversion(instruction.layer, outputs[position], number, program, (position,)))
    computed = instruction.changed(
        types={**instruction.types, **widened},
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        ports=tuple(
            None if made != number else position
            for position, (made, number) in enumerate(zip(outputs, instruction.outputs, strict=True))
        ),
    )
    return [*before, computed, *after]


def _conversion(layer: Layer, source: int, target: int, program: Program, ports: tuple[int, ...]) -> Instruction:
    types = {"T": program.tensors[source].type}
    attrs = {"destination_type": program.tensors[target].type}
    return Instruction(layer, registry().conversion, attrs, types, (source,), (target,), ports=ports)


def parameters_of(graph: Graph, values: Sequence[Value]) -> list[int]:
    """The numbers of the Parameters that tensors depend on."""
    needed = _needed([value.layer for value in values])
    return [number for number, layer in enumerate(graph.parameters) if layer in needed]


def _needed(sinks: Iterable[Layer]) -> set[Layer]:
    """The layers that `sinks` depend on, and these."""
    needed: set[Layer] = set()
    todo = list(sinks)
    while todo:
        layer = todo.pop()
        if layer not in needed:
            needed.add(layer)
            todo += [value.layer for value in layer.inputs if value is not None]
    return needed


def _packed(layer: Layer, weights: Weights) -> CompressedWeights | None:
    """A large constant of codes that share bytes, which stay as the file has them until somebody needs them."""
    blob = weights.check(layer)
    if blob.element_type not in PACKED or 4 * blob.elements < LEAST:
        return None
    return CompressedWeights(blob.element_type, weights.packed(layer), blob.shape, blob.shape)


def _present(value: Value | None) -> Value:
    assert value is not None, "a Result without an edge is an error of the model"
    return value


def _constant(layer: Layer, weights: Weights, program: Program, limit: int) -> Array:
    allocated = weights.allocated(layer)
    if program.reserved + allocated > limit:
        raise refusal(layer, "the constant", allocated, program.reserved, limit)
    array = weights.constant(layer)
    copied = 0 if array.flags.aligned else array.nbytes
    if program.reserved + copied > limit:
        raise refusal(layer, "an aligned copy of the constant", copied, program.reserved, limit)
    program.reserved += copied or owned_bytes(array)
    return array


def _instruction(
    layer: Layer,
    inference: Inference,
    numbers: dict[Value, int],
    limit: int,
    compressed: bool,
    supposed: Collection[int],
) -> Instruction:
    node = inference.nodes[layer]
    unsure = {at for at, value in enumerate(layer.inputs) if value is not None and numbers[value] in supposed}
    bodies = {name: _body(body, inference, limit, compressed, unsure) for name, body in layer.bodies.items()}
    return Instruction(
        layer,
        node.op,
        node.attrs,
        node.types,
        tuple(None if value is None else numbers[value] for value in layer.inputs),
        tuple(numbers[value] for value in layer.outputs),
        open=not node.complete,
        effects=any(inner.effects for _, body in bodies.values() for inner in body.instructions),
        bodies=bodies,
    )


def _body(
    inner: LayerBody, inference: Inference, limit: int, compressed: bool, unsure: Collection[int]
) -> tuple[Body, Program]:
    """A body and its program, where the shapes of the `unsure` inputs of its layer are supposed."""
    body = body_of(inner, inference)
    parameters = {entry.parameter for entry in body.inputs if entry.external in unsure}
    while True:
        program = build(inner.graph, inference, limit, compressed=compressed, unsure=parameters)
        vague = {number for number, of in enumerate(program.results) if program.tensors[of].shape is None}
        handed_on = {parameter for result, parameter in body.back_edges if result in vague and unsure} - parameters
        if not handed_on:
            return body, program
        parameters |= handed_on
