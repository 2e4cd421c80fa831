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
from irrun.ir.weights import Weights
from irrun.run.memory import Budget, outputs_text, owned_bytes, refusal, result_bytes, tensor_bytes
from irrun.spec.body import Body
from irrun.spec.dims import Shape
from irrun.spec.op import Array

MOST_FOLDED = 1 << 28
"""Bytes that a constant result may have; larger ones are computed in the run, where they can be freed again."""

NOT_CONNECTED = -1
"""The slot of an optional input that no edge reaches."""

Runner = Callable[["Plan", Sequence[Array], MutableMapping[str, Array]], list[Array]]
"""What runs a plan: (plan, parameters, state) to results."""


@dataclass(slots=True)
class Step:
    """One layer to run. Slots number the tensors of a plan; `frees` are those that no later step reads.

    `types` and `shapes` are what is known of the inputs. `recheck` says that inference left a question open: the op's
    rule is asked again with the arrays of the run.
    `bodies` are the op's bodies, which see the state of the run. `wanted` is how many bytes the results take at least.
    """

    node: Node
    kernel: Callable[..., Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    types: tuple[str, ...]
    shapes: tuple[Shape | None, ...]
    recheck: bool
    wanted: int = 0
    bodies: dict[str, tuple[Body, Plan]] = field(default_factory=dict)
    frees: tuple[int, ...] = ()

    def compute(self, args: Sequence[Array | None]) -> list[Array]:
        """The results outside of a run, of a step that asks for nothing of one. Raises what the kernel raises."""
        with np.errstate(all="ignore"):
            results = self.kernel(*args, **({"types": self.node.types} if self.node.op.context else {}))
        return [np.asarray(result) for result in (results if isinstance(results, tuple | list) else (results,))]


@dataclass(slots=True)
class Plan:
    """`slots` has the constants in their places and None elsewhere; a run starts from a copy of it.

    `borrowed` are the results that may share memory with a parameter, a constant or the state. `constants` are the
    bytes of those that are not in the file, `peak` is the most bytes that are in use at once, as far as the plan can
    tell; it can if nothing in it is `open`, left to the run.
    """

    slots: list[Array | None]
    parameters: list[int]
    results: list[int]
    steps: list[Step]
    borrowed: set[int]
    constants: int
    peak: int
    open: bool

    def align(self) -> None:
        """Copy the constants that the .bin holds at odd places; to do before kernels read them."""
        for number, array in enumerate(self.slots):
            if array is not None:
                self.slots[number] = aligned(array)


def make_plan(
    graph: Graph, inference: Inference, budget: Budget, constants: MutableMapping[Value, Array] | None = None
) -> Plan:
    """Plan a graph that has been inferred without errors. Raises ExecutionError where it takes more than the budget.

    `constants` are those that another plan of the graph, for inputs of which no more is known, has found already; new
    ones are added, unless they hold for these shapes only.
    """
    general = constants is not None and not constants
    known = {} if constants is None else constants
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
        if layer.outputs and all(value in known for value in layer.outputs):
            for value in layer.outputs:
                slots[numbers[value]] = known[value]
            continue
        if layer.type == "Const":
            slots[numbers[layer.outputs[0]]] = _constant(layer, inference.weights, budget)
        else:
            step = _step(inference.nodes[layer], inference, numbers, budget)
            if not _known(step, slots) and not _fold(step, slots, budget):
                steps.append(step)
                continue
        if general:
            for value in layer.outputs:
                array = slots[numbers[value]]
                assert array is not None
                known[value] = array
    results = [_slot(layer.inputs[0], numbers) for layer in graph.results]
    parameters = [numbers[layer.outputs[0]] for layer in graph.parameters]
    _free(steps, slots, {*results, *parameters})
    peak = _peak(steps, budget)
    unknown = any(step.recheck or any(plan.open for _, plan in step.bodies.values()) for step in steps)
    return Plan(
        slots, parameters, results, steps, _borrowed(steps, slots, parameters, results), budget.used, peak, unknown
    )


def _constant(layer: Layer, weights: Weights, budget: Budget) -> Array:
    allocated = weights.allocated(layer)
    if not budget.fits(allocated):
        raise refusal(layer, "the constant", allocated, budget.used, budget.limit)
    array = weights.constant(layer)
    if not array.flags.aligned and not budget.fits(array.nbytes):
        raise refusal(layer, "an aligned copy of the constant", array.nbytes, budget.used, budget.limit)
    budget.used += owned_bytes(array) if array.flags.aligned else array.nbytes
    return array


def aligned(array: Array) -> Array:
    """The array, or a copy whose elements lie where processors expect them: loops over others are slow, or refused."""
    if array.flags.aligned:
        return array
    copy = np.empty(array.shape, array.dtype)
    copy.reshape(-1).view(np.uint8)[...] = array.reshape(-1).view(np.uint8)  # as bytes, which takes a tenth of the time
    return copy


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


def _step(node: Node, inference: Inference, numbers: dict[Value, int], budget: Budget) -> Step:
    kernel, layer = node.op.kernel, node.layer
    tensors = [inference.tensor(value) for value in layer.inputs]
    return Step(
        node,
        partial(kernel, **node.attrs) if node.attrs else kernel,
        tuple(_slot(value, numbers) for value in layer.inputs),
        tuple(numbers[value] for value in layer.outputs),
        tuple(tensor.type for tensor in tensors),
        tuple(tensor.shape for tensor in tensors),
        recheck=not node.complete,
        wanted=result_bytes(node.op, tensors, node.outputs),
        bodies={
            name: (body_of(body, inference), _body_plan(body.graph, inference, budget))
            for name, body in layer.bodies.items()
        },
    )


def _body_plan(graph: Graph, inference: Inference, budget: Budget) -> Plan:
    plan = make_plan(graph, inference, budget)
    plan.align()
    return plan


def _known(step: Step, slots: list[Array | None]) -> bool:
    """Take the results of a step whose values inference has found, such as sizes; False where it has not."""
    tensors = step.node.outputs[: len(step.outputs)]
    if step.recheck or step.bodies or not step.node.op.pure or step.wanted > MOST_FOLDED:
        return False
    if any(tensor.value is None or tensor.value.dtype == object for tensor in tensors):
        return False
    for number, tensor in zip(step.outputs, tensors, strict=True):
        slots[number] = tensor.value
    return True


def _fold(step: Step, slots: list[Array | None], budget: Budget) -> bool:
    """Compute a step whose inputs are all constant; False where it must wait for the run."""
    op = step.node.op
    arrays = [slots[number] for number in step.inputs if number != NOT_CONNECTED]
    if not arrays or any(array is None for array in arrays) or step.bodies or step.recheck:
        return False
    if not op.pure or op.context - {"types"} or any(not tensor.static for tensor in step.node.outputs):
        return False
    if step.wanted > MOST_FOLDED or not budget.fits(step.wanted):
        return False
    for number in step.inputs:
        if number != NOT_CONNECTED:
            slots[number] = aligned(slots[number])  # type: ignore[arg-type] # none of them is None
    args = [None if number == NOT_CONNECTED else slots[number] for number in step.inputs]
    try:
        results = step.compute(args)
    except Exception:  # the run reports it, with its layer
        return False
    for number, array in zip(step.outputs, results, strict=False):
        slots[number] = array
    budget.used += step.wanted
    return True


def _peak(steps: list[Step], budget: Budget) -> int:
    """The bytes of constants and results at the worst moment. Raises ExecutionError where the budget has less."""
    live = peak = budget.used
    sizes: dict[int, int] = {}
    for step in steps:
        inside = max((plan.peak - budget.used for _, plan in step.bodies.values()), default=0)
        if live + step.wanted + max(inside, 0) > budget.limit:
            node = step.node
            raise refusal(node.layer, outputs_text(node.outputs), step.wanted, live, budget.limit)
        peak = max(peak, live + step.wanted + max(inside, 0))
        live += step.wanted
        if step.wanted:
            for number, tensor in zip(step.outputs, step.node.outputs, strict=False):
                sizes[number] = tensor_bytes(tensor)
        live -= sum(sizes.pop(number, 0) for number in step.frees)
    return peak


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
