"""How a plan becomes a program: each step, with what is fused to it, goes to the first engine that takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from irrun.check.infer import Inference
from irrun.engines.work import Compiled, Engine, Layout, Operand, Work
from irrun.ir.graph import Graph
from irrun.run.arena import Buffer, place
from irrun.run.fusion import chains, closed, posts, settled
from irrun.run.plan import NOT_CONNECTED, Plan, Step, aligned
from irrun.run.program import KERNEL, VIEW, Program, Slot, Unit
from irrun.run.rewriting import rewritten
from irrun.spec.dtypes import ELEMENT_TYPES, numpy_dtype
from irrun.spec.op import Array, Tensor


def make_program(
    plan: Plan, graph: Graph, inference: Inference, engines: Sequence[Engine], copies: dict[int, Array]
) -> Program:
    """Give every step of a plan to the first engine that takes it.

    `copies` are the aligned copies of constants by their address in the file, which programs of one model share.
    """
    plan = rewritten(plan)
    lowering = _Lowering(plan, graph, inference, engines, copies)
    for chain in chains(plan):
        lowering.lower(chain)
    return lowering.finish()


@dataclass(slots=True)
class _Lowering:
    """A program in the making."""

    plan: Plan
    graph: Graph
    inference: Inference
    engines: Sequence[Engine]
    copies: dict[int, Array]
    slots: list[Slot] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    read: set[int] = field(default_factory=set)
    reordered: dict[int, list[tuple[Layout | None, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.read = {*self.plan.results, *(slot for step in self.plan.steps for slot in step.inputs)}
        known: dict[int, Tensor] = {}
        for number, layer in zip(self.plan.parameters, self.graph.parameters, strict=True):
            known[number] = self.inference.nodes[layer].outputs[0]
        for step in self.plan.steps:
            known.update(zip(step.outputs, step.node.outputs, strict=False))
        for number, constant in enumerate(self.plan.slots):
            if constant is not None:
                self.slots.append(Slot("", constant.shape, number, constant, constant))
            else:
                self.slots.append(_slot(number, known.get(number)))
        for step in self.plan.steps:  # arrays of uint8 may be of several types, which only their readers tell
            for slot, type in zip(step.inputs, step.types, strict=True):
                if slot != NOT_CONNECTED and self.slots[slot].constant is not None:
                    self.slots[slot].type = type

    def lower(self, chain: Sequence[Step]) -> None:
        head = chain[0]
        if settled(head) and all(self._known(slot) for step in chain for slot in step.inputs):
            if head.node.op.view_of and closed(head) and self._view(head):
                return
            for engine in self.engines:
                for count in range(len(chain), 0, -1):
                    work, inputs = self._work(chain[:count], engine)
                    compiled = engine.compile(work)
                    if compiled is not None and (closed(head) or self._plain(head, compiled)):
                        self._take(engine, chain[:count], inputs, compiled)
                        if chain[count:]:
                            self.lower(chain[count:])
                        return
        self._kernel(head)
        if chain[1:]:
            self.lower(chain[1:])

    def _known(self, number: int) -> bool:
        return number == NOT_CONNECTED or self.slots[number].shape is not None

    def _plain(self, head: Step, compiled: Compiled) -> bool:
        """Whether the inputs of a step are at hand in a run as its op's rule can read them."""
        inputs = range(len(head.inputs))
        laid_out = any(self.slots[slot].layout is not None for slot in head.inputs if slot != NOT_CONNECTED)
        return not laid_out and not compiled.taken.intersection(inputs) and not set(compiled.wants).intersection(inputs)

    def _view(self, step: Step) -> bool:
        """Take a step whose result, or results, are views of its input; False where it copies."""
        op = step.node.op
        source = next(n for port, n in zip(op.inputs, step.inputs, strict=False) if port.name == op.view_of)
        others = [n for n in step.inputs if n not in (NOT_CONNECTED, source)]
        if any(self.slots[n].constant is None for n in others):
            return False
        inputs = [n if n in (NOT_CONNECTED, *others) else self._dense(n) for n in step.inputs]
        source = self._dense(source)
        args = [None if n == NOT_CONNECTED else self._template(n) for n in inputs]
        try:
            results = step.compute(args)
        except Exception:  # the run reports it, with its layer
            return False
        if not all(result.size and np.may_share_memory(result, self._template(source)) for result in results):
            return False
        for number, result in zip(step.outputs, results, strict=False):
            self.slots[number].template = result
            self.slots[number].root = self.slots[source].root
        self.units.append(Unit([step], inputs, step.outputs, VIEW))
        return True

    def _template(self, number: int) -> Array:
        """An array as the slot will have it; its memory is not written, and so takes none where it is large."""
        slot = self.slots[number]
        if slot.template is None:
            slot.template = np.empty(slot.shape or (), numpy_dtype(slot.type))
        return slot.template

    def _work(self, chain: Sequence[Step], engine: Engine) -> tuple[Work, list[int]]:
        head = chain[0]
        found, operands = posts(chain, len(head.inputs))
        inputs = [*head.inputs, *operands]
        read = self._read_outputs(chain[-1])
        outputs = [
            Operand(tensor.type, _static(tensor), _strides(_static(tensor), numpy_dtype(tensor.type).itemsize))
            for tensor in (chain[-1].node.outputs if found else head.node.outputs)[: len(read)]
        ]
        given = [None if n == NOT_CONNECTED else self._operand(n, engine) for n in inputs]
        return Work(head.node.op.name, head.node.attrs, given, outputs, found), inputs

    def _operand(self, number: int, engine: Engine) -> Operand:
        slot = self.slots[number]
        assert slot.shape is not None
        if not engine.unaligned:
            self._align(slot)
        layout = slot.layout if slot.engine is engine else None
        if slot.layout is not None:
            return Operand(slot.type, slot.shape, _strides(slot.shape, numpy_dtype(slot.type).itemsize), None, layout)
        return Operand(slot.type, slot.shape, self._template(number).strides, slot.constant)

    def _read_outputs(self, step: Step) -> Sequence[int]:
        """The outputs of a step as far as something reads them."""
        count = max((number for number, slot in enumerate(step.outputs, 1) if slot in self.read), default=0)
        return step.outputs[:count]

    def _take(self, engine: Engine, chain: Sequence[Step], inputs: Sequence[int], compiled: Compiled) -> None:
        read = []
        for position, number in enumerate(inputs):
            if number == NOT_CONNECTED or position in compiled.taken:
                read.append(NOT_CONNECTED)
            elif position in compiled.wants:
                read.append(self._reordered(number, compiled.wants[position], engine))
            else:
                read.append(number if self.slots[number].engine is engine else self._dense(number))
        outputs = self._read_outputs(chain[-1])
        for position, layout in compiled.gives.items():
            self.slots[outputs[position]].lay(layout, engine)
        self.units.append(Unit(chain, read, outputs, engine.name, compiled, checked=chain[0].recheck))

    def _dense(self, number: int) -> int:
        slot = self.slots[number]
        return self._reordered(number, None, slot.engine) if slot.engine is not None else number

    def _reordered(self, number: int, layout: Layout | None, engine: Engine) -> int:
        """The slot of the same tensor in another layout."""
        if self.slots[number].engine not in (None, engine):
            number = self._dense(number)
        slot = self.slots[number]
        if slot.layout is None and layout is None and self._template(number).flags.c_contiguous:
            return number
        for wanted, other in self.reordered.setdefault(number, []):
            if wanted == layout:
                return other
        compiled = engine.reorder(self._operand(number, engine), layout)
        copy = _slot(len(self.slots), Tensor(slot.type, slot.shape))
        copy.lay(layout, engine)
        self.slots.append(copy)
        self.reordered[number].append((layout, copy.root))
        self.units.append(Unit((), (number,), (copy.root,), engine.name, compiled))
        return copy.root

    def _kernel(self, step: Step) -> None:
        inputs = [n if n == NOT_CONNECTED else self._dense(n) for n in step.inputs]
        self.units.append(Unit([step], inputs, step.outputs, KERNEL))

    def _align(self, slot: Slot) -> None:
        if slot.constant is not None and not slot.constant.flags.aligned:
            address = slot.constant.__array_interface__["data"][0]
            if address not in self.copies:
                self.copies[address] = aligned(slot.constant)
            slot.constant = slot.template = self.copies[address]

    def finish(self) -> Program:
        for unit in self.units:
            for number in _slots_of(unit):
                self._align(self.slots[number])
        results = [self._dense(number) for number in self.plan.results]
        fixed = self._fixed()
        last = dict.fromkeys(results, len(self.units))
        shared = {*fixed, *(number for number, slot in enumerate(self.slots) if slot.constant is not None)}
        shared |= {*self.plan.parameters}
        for number, unit in reversed(list(enumerate(self.units))):
            for slot in _slots_of(unit):
                last.setdefault(slot, number)
            longest = max((last[slot] for slot in unit.outputs), default=0)
            for slot in self._looked_at(unit, fixed):
                last[slot] = max(last[slot], longest)
        first = dict.fromkeys(self.plan.parameters, -1)
        for number, unit in enumerate(self.units):
            first.update(dict.fromkeys(unit.outputs, number))
            if shared.intersection(self._looked_at(unit, fixed)) or (unit.by == KERNEL and _impure(unit.steps[0])):
                shared.update(unit.outputs)
            unit.frees = sorted(slot for slot in _slots_of(unit) if last[slot] == number and self._loose(slot, fixed))
        for slot, end in list(last.items()):
            root = self.slots[slot].root
            last[root] = max(last.get(root, 0), end)
        buffers = {number: Buffer(self.slots[number].nbytes, first[number], last[number]) for number in fixed}
        for made in self.slots:
            made.template = None
        size = place(buffers.values())
        scratch = max((unit.compiled.scratch for unit in self.units if unit.compiled), default=0)
        borrowed = {number for number in results if number in shared or self.slots[number].root in shared}
        unknown = any(unit.by == KERNEL and (unit.steps[0].recheck or unit.steps[0].bodies) for unit in self.units)
        return Program(self.plan, self.units, self.slots, results, borrowed, buffers, size, scratch, unknown)

    def _fixed(self) -> set[int]:
        """The slots, none of them a view, that engines read or write: their arrays are bound to calls."""
        found: set[int] = set()
        for unit in self.units:
            if unit.compiled is not None:
                found.update(unit.outputs)
                found.update(self.slots[number].root for number in unit.inputs if number != NOT_CONNECTED)
        return {number for number in found if self.slots[number].constant is None}

    def _loose(self, number: int, fixed: set[int]) -> bool:
        """Whether the array of a slot is made anew in each run."""
        root = self.slots[number].root
        return root not in fixed and self.slots[root].constant is None

    def _looked_at(self, unit: Unit, fixed: set[int]) -> list[int]:
        """The inputs of a unit that its outputs may share memory with."""
        if unit.by not in (KERNEL, VIEW) or fixed.intersection(unit.outputs):
            return []
        step = unit.steps[0]
        if _impure(step):
            return [number for number in unit.inputs if number != NOT_CONNECTED]
        ports = zip(step.node.op.inputs, unit.inputs, strict=False)
        return [number for port, number in ports if port.name == step.node.op.view_of and number != NOT_CONNECTED]


def _slots_of(unit: Unit) -> set[int]:
    return {*unit.inputs, *unit.outputs} - {NOT_CONNECTED}


def _impure(step: Step) -> bool:
    """Whether the results may be arrays that are kept elsewhere: variables, or what a body passes on."""
    return bool(step.bodies) or not step.node.op.pure


def _slot(number: int, tensor: Tensor | None) -> Slot:
    if tensor is None or not tensor.static or tensor.type not in ELEMENT_TYPES or tensor.type == "string":
        return Slot("", None, number)
    shape = _static(tensor)
    return Slot(tensor.type, shape, number, nbytes=prod(shape) * numpy_dtype(tensor.type).itemsize)


def _static(tensor: Tensor) -> tuple[int, ...]:
    return tuple(int(size) for size in tensor.shape or ())


def _strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    return tuple(prod(shape[axis + 1 :]) * itemsize for axis in range(len(shape)))
