"""The programs of a model: one for each set of input shapes that it was run with, the latest ones kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from irrun.check.infer import Inference, infer
from irrun.diagnostics import ExecutionError
from irrun.engines.work import Engine
from irrun.ir.graph import Model, Value
from irrun.run.lowering import make_program
from irrun.run.memory import Budget
from irrun.run.plan import Plan, make_plan
from irrun.run.program import Program
from irrun.run.workspace import Workspace
from irrun.spec.op import Array, Tensor

MOST_KEPT = 8
"""Programs of a model. Each holds weights as its engines want them."""

PATIENCE = 16
"""Sets of shapes that come once each, after which a set must come twice to get a program: making one takes a while."""

Key = tuple[tuple[int, ...], ...]


@dataclass(slots=True)
class _Kept:
    """A program, its workspaces that nobody uses right now, and the plan's own constants."""

    program: Program | None
    free: list[Workspace] = field(default_factory=list)


class Programs:
    """Safe for threads: each run has a workspace of its own."""

    def __init__(
        self,
        model: Model,
        inference: Inference,
        plan: Plan,
        constants: dict[Value, Array],
        engines: Sequence[Engine],
        max_memory: int,
    ) -> None:
        self._model, self._inference, self._engines, self._max_memory = model, inference, engines, max_memory
        self._constants = constants
        self._lock = Lock()
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._once: OrderedDict[Key, None] = OrderedDict()
        self._misses = 0
        self._copies: dict[int, Array] = {}
        parameters = [inference.nodes[layer].outputs[0] for layer in model.graph.parameters]
        self._general: _Kept | None = None
        if not engines:
            self._general = _Kept(None)
        elif all(tensor.static for tensor in parameters):
            self._general = _Kept(self._lowered(plan, inference))

    @contextmanager
    def workspace(self, arrays: Sequence[Array]) -> Iterator[Workspace | None]:
        """A workspace for inputs of these shapes, until the end of the block; None where the plan must run as it is."""
        kept = self._general or self._specialized(tuple(array.shape for array in arrays))
        if kept is None or kept.program is None:
            yield None
            return
        with self._lock:
            workspace = kept.free.pop() if kept.free else None
        workspace = workspace or Workspace(kept.program)
        try:
            yield workspace
        finally:
            with self._lock:
                kept.free.append(workspace)

    def _specialized(self, key: Key) -> _Kept | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                self._misses = 0
                return self._kept[key]
            self._misses += 1
            if self._misses > PATIENCE and key not in self._once:
                self._once[key] = None
                if len(self._once) > PATIENCE:
                    self._once.popitem(last=False)
                return None
            self._once.pop(key, None)
        kept = _Kept(self._made_for(key))
        with self._lock:
            self._kept[key] = kept
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return kept

    def _made_for(self, key: Key) -> Program | None:
        graph = self._model.graph
        given = {layer: Tensor("dynamic", shape) for layer, shape in zip(graph.parameters, key, strict=True)}
        inference = infer(graph, self._inference.weights, given, self._inference)
        if any(found.severity == "error" for found in inference.diagnostics):
            return None  # the plain run finds the same, and says it with the data at hand
        try:
            plan = make_plan(graph, inference, Budget(self._max_memory), self._constants)
        except ExecutionError:
            return None
        return self._lowered(plan, inference)

    def _lowered(self, plan: Plan, inference: Inference) -> Program | None:
        program = make_program(plan, self._model.graph, inference, self._engines, self._copies)
        copied = sum(program.slots[number].nbytes for number in program.borrowed)
        most = plan.constants + program.size + program.scratch + copied
        return program if most <= self._max_memory else None  # the plan by itself takes less
