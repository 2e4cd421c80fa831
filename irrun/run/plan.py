"""A plan: a checked graph as a list of steps, with all that can be prepared before the first run.

Constants are loaded and constant subgraphs computed, layers that no result needs are left out, every kernel is bound to
its attributes, and every step knows which tensors nobody reads after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from irrun.check.infer import Inference, Node, body_of
from irrun.ir.graph import Graph, Layer, Value
from irrun.ir.structure import topological_order
from irrun.spec.body import Body
from irrun.spec.op import Array, Tensor

MOST_FOLDED = 1 << 28
"""Bytes that one constant result may have; larger ones are computed in the run, where they can be freed again."""

NOT_CONNECTED = -1
"""The slot of an optional input that no edge reaches."""

Runner = Callable[["Plan", Sequence[Array], MutableMapping[str, Array]], list[Array]]
"""What runs a plan: (plan, parameters, state) to results."""


@dataclass(slots=True)
class Step:
    """One layer to run. Slots number the tensors of a plan; `frees` are those that no later step reads.

    `recheck` says that inference left a question open: the op's rule is asked again with the arrays of the run.
    `bodies` are the op's bodies, which see the state of the run.
    """

    node: Node
    kernel: Callable[..., Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    types: tuple[str, ...]
    recheck: bool
    bodies: dict[str, tuple[Body, Plan]] = field(default_factory=dict)
    frees: tuple[int, ...] = ()


@dataclass(slots=True)
class Plan:
    """`slots` has the constants in their places and None elsewhere; a run starts from a copy of it.

    `borrowed` are the results that may share memory with a parameter, a constant or the state.
    """

    slots: list[Array | None]
    parameters: list[int]
    results: list[int]
    steps: list[Step]
    borrowed: set[int]


def make_plan(graph: Graph, inference: Inference) -> Plan:
    """Plan a graph that has been inferred without errors."""
    needed = _needed(graph)
    numbers: dict[Value, int] = {}
    for layer in graph.layers:
        for value in layer.outputs:
            numbers[value] = len(numbers)
    slots: list[Array | None] = [None] * len(numbers)
    steps: list[Step] = []
    for layer in topological_order(graph):
        if layer not in needed or layer.type in ("Parameter", "Result"):
            continue
        if layer.type == "Const":
            # compiled loops are slow on, or refuse, unaligned data
            slots[numbers[layer.outputs[0]]] = np.require(inference.weights.constant(layer), requirements="A")
            continue
        step = _step(inference.nodes[layer], inference, numbers)
        if not _fold(step, slots):
            steps.append(step)
    results = [_slot(layer.inputs[0], numbers) for layer in graph.results]
    parameters = [numbers[layer.outputs[0]] for layer in graph.parameters]
    _free(steps, slots, {*results, *parameters})
    return Plan(slots, parameters, results, steps, _borrowed(steps, slots, parameters, results))


def _needed(graph: Graph) -> set[Layer]:
    """The layers that a Result or an Assign depends on."""
    needed: set[Layer] = set()
    todo = list(graph.sinks)
    while todo:
        layer = todo.pop()
        if layer not in needed:
            needed.add(layer)
            todo += [value.layer for value in layer.inputs if value is not None]
    return needed


def _slot(value: Value | None, numbers: dict[Value, int]) -> int:
    return NOT_CONNECTED if value is None else numbers[value]


def _step(node: Node, inference: Inference, numbers: dict[Value, int]) -> Step:
    kernel, layer = node.op.kernel, node.layer
    tensors = [inference.tensor(value) for value in layer.inputs]
    return Step(
        node,
        partial(kernel, **node.attrs) if node.attrs else kernel,
        tuple(_slot(value, numbers) for value in layer.inputs),
        tuple(numbers[value] for value in layer.outputs),
        tuple(tensor.type if tensor else "" for tensor in tensors),
        recheck=not node.complete,
        bodies={
            name: (body_of(body, inference), make_plan(body.graph, inference)) for name, body in layer.bodies.items()
        },
    )


def _fold(step: Step, slots: list[Array | None]) -> bool:
    """Compute a step whose inputs are all constant; False where it must wait for the run."""
    op = step.node.op
    arrays = [slots[number] for number in step.inputs if number != NOT_CONNECTED]
    if not arrays or any(array is None for array in arrays) or step.bodies or step.recheck:
        return False
    if not op.pure or op.context - {"types"} or any(not tensor.static for tensor in step.node.outputs):
        return False
    sizes = (_bytes(tensor) for tensor in step.node.outputs)
    if sum(sizes) > MOST_FOLDED:
        return False
    args = [None if number == NOT_CONNECTED else slots[number] for number in step.inputs]
    try:
        with np.errstate(all="ignore"):
            results = step.kernel(*args, **({"types": step.node.types} if op.context else {}))
    except Exception:  # the run reports it, with its layer
        return False
    for number, array in zip(step.outputs, results if isinstance(results, tuple | list) else (results,), strict=False):
        slots[number] = np.asarray(array)
    return True


def _bytes(tensor: Tensor) -> int:
    total = 16  # the widest element there is, strings apart
    for size in tensor.shape or ():
        total *= int(size)
    return total


def _free(steps: list[Step], slots: list[Array | None], kept: set[int]) -> None:
    """Note at every step what it is the last to read, and forget the constants that only folding needed."""
    read: set[int] = set()
    for step in reversed(steps):
        touched = {number for number in (*step.inputs, *step.outputs) if number != NOT_CONNECTED}
        constant = {number for number in touched if slots[number] is not None}
        step.frees = tuple(sorted(touched - read - kept - constant))
        read |= touched
    for number in range(len(slots)):
        if number not in read and number not in kept:
            slots[number] = None


def _borrowed(steps: list[Step], slots: list[Array | None], parameters: list[int], results: list[int]) -> set[int]:
    outside = {*parameters, *(number for number, array in enumerate(slots) if array is not None)}
    for step in steps:
        if set(_viewed(step)) & outside or not step.node.op.pure or step.bodies:
            outside.update(step.outputs)
    return outside & set(results)


def _viewed(step: Step) -> Iterator[int]:
    """The slots that the outputs of a step may share memory with."""
    op = step.node.op
    for port, number in zip(op.inputs, step.inputs, strict=False):
        if port.name == op.view_of:
            yield number
