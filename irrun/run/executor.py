"""The executor: a model made ready once, then run as often as one likes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from irrun.check.infer import Inference, infer_body, violated
from irrun.check.validate import Shapes, validate
from irrun.diagnostics import Diagnostic, ExecutionError, IRError
from irrun.engines import SINGLE_RUN, load_engines
from irrun.ir.graph import Layer, Model, Value
from irrun.ir.weights import WeightsError
from irrun.run.inputs import bind_inputs, random_inputs
from irrun.run.memory import Budget, Meter, available, outputs_text, refusal, result_bytes
from irrun.run.plan import NOT_CONNECTED, Plan, Step, make_plan
from irrun.run.program import KERNEL, Unit
from irrun.run.programs import Programs
from irrun.run.workspace import Workspace
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array, Tensor, Violation
from irrun.spec.patterns import shape_text

if TYPE_CHECKING:
    from irrun.run.profile import Profile

_V10_OUTPUTS = {
    **dict.fromkeys(("f16", "bf16", "f64", "u8", "i8", "boolean"), "f32"),
    **dict.fromkeys(("i64", "u64"), "i32"),
}
"""How OpenVINO hands out the results of an IR of version 10: in the types that programs of its time expect."""


class State(MutableMapping[str, Array]):
    """The variables of a model. What a run assigns counts from its end on, so that the order of layers is no matter."""

    def __init__(self) -> None:
        self._values: dict[str, Array] = {}
        self._assigned: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        return self._values[name]

    def __setitem__(self, name: str, value: Array) -> None:
        self._assigned[name] = np.array(value)

    def __delitem__(self, name: str) -> None:
        del self._values[name]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def commit(self) -> None:
        self._values.update(self._assigned)
        self._assigned.clear()

    def discard(self) -> None:
        """Forget what a failed run has assigned."""
        self._assigned.clear()


class GraphExecutor:
    """A model that can be run.

    `max_memory` is how many bytes the arrays of a run may take together, the physical memory unless given: a layer that
    asks for more is refused before anything is allocated (see `irrun.run.memory` for what counts).

    `engine` is what computes (see `irrun.engines`), with `threads` threads, all processors unless given. `once` says
    that there will be one run, so that nothing is prepared that pays only in later ones.

    Raises IRError where the model has errors, or needs more memory whatever its inputs are; its warnings are in
    `report`. Raises EngineError where there is no such engine.
    """

    def __init__(
        self,
        model: Model | str | os.PathLike[str],
        weights: str | os.PathLike[str] | None = None,
        *,
        max_memory: int | None = None,
        engine: str = "auto",
        threads: int | None = None,
        once: bool = False,
    ) -> None:
        self.report = validate(model, weights)
        if self.report.model is None or self.report.inference is None or not self.report.ok:
            raise IRError(self.report.errors)
        self.model: Model = self.report.model
        self._inference: Inference = self.report.inference
        self.max_memory = available() if max_memory is None else max_memory
        budget = Budget(self.max_memory)
        engines = load_engines(engine, threads, small=once and (self.model.weights.size or 0) < SINGLE_RUN)
        constants: dict[Value, Array] = {}
        try:
            self._plan = make_plan(self.model.graph, self._inference, budget, constants)
        except WeightsError as error:
            raise self._unfit(str(error)) from None
        except ExecutionError as error:
            raise ExecutionError([self._placed(found) for found in error.diagnostics]) from None
        self._constants = budget.used
        self._doubtful = [node for node in self._inference.nodes.values() if node.complete and node.warnings]
        if self.model.weights.changed:
            raise self._unfit(f"`{self.model.weights.path}` was written to while it was read")
        self._state = State()
        self._parameters, self._outlets = self.model.graph.parameters, self.model.graph.results
        self._declared = [self._inference.nodes[layer].outputs[0] for layer in self._parameters]
        self._numbers: dict[str, int] = {}
        self.output_names = _output_names(self.model)
        self._programs = Programs(self.model, self._inference, self._plan, constants, engines, self.max_memory)

    def run(
        self, inputs: Mapping[str, Any] | Sequence[Any] = (), *, profile: Profile | None = None
    ) -> dict[str, Array]:
        """Compute all results, in the order of the model's Results.

        `inputs` are arrays by name or by position, of exactly the type and of a shape that the model declares.
        `profile` takes down how long each layer takes. Several threads may call this at once.
        Raises InputError where they do not fit, ExecutionError where the data break a constraint of a layer.
        """
        if self.model.weights.changed:
            raise self._unfit(f"`{self.model.weights.path}` was written to after the model was loaded")
        arrays = bind_inputs(self.model, self._parameters, self._declared, inputs, self._numbers)
        for node in self._doubtful:  # whatever computes it, or has computed it ahead
            self._warn(node.layer, node.warnings)
        with self._programs.workspace(arrays) as workspace:
            live = self._constants + (workspace.program.size if workspace else 0)
            meter = None
            if workspace.program.open if workspace else self._plan.open:
                outside = [*arrays, *self._plan.slots, workspace.memory if workspace else None]
                meter = Meter(self.max_memory, live, outside)
            try:
                with np.errstate(all="ignore"):
                    results, borrowed = self._results(arrays, workspace, meter, profile)
            except BaseException:
                self._state.discard()
                raise
            self._state.commit()
            live = meter.live if meter is not None else live if workspace else self._plan.peak
            return self._handed_out(results, borrowed, live)

    def _results(
        self, arrays: list[Array], workspace: Workspace | None, meter: Meter | None, profile: Profile | None
    ) -> tuple[list[Array], list[bool]]:
        """The results, and which of them may share memory with something else."""
        if workspace is None:
            self._plan.align()
            results = self._run_plan(self._plan, arrays, self._state, meter, profile)
            return results, [number in self._plan.borrowed for number in self._plan.results]
        run_step = partial(self._run_step, state=self._state, meter=meter)
        results = workspace.run(arrays, run_step, self._check_step, None if profile is None else profile.add)
        return results, [number in workspace.program.borrowed for number in workspace.program.results]

    def _handed_out(self, results: list[Array], borrowed: list[bool], live: int) -> dict[str, Array]:
        """The results by name, as arrays that nothing else uses; `live` bytes are in use.

        Raises ExecutionError where there is no room.
        """
        outputs = []
        for layer, array, copied in zip(self._outlets, results, borrowed, strict=True):
            type = self._type(layer)
            wanted = array.nbytes if copied or self.model.version == 10 else 0
            if live + wanted > self.max_memory:
                error = refusal(layer, f"the result {shape_text(array.shape)}", wanted, live, self.max_memory)
                raise ExecutionError([self._placed(found) for found in error.diagnostics])
            live += wanted
            if self.model.version == 10 and type in _V10_OUTPUTS:
                outputs.append(array.astype(numpy_dtype(_V10_OUTPUTS[type])))
            else:
                outputs.append(array.copy() if copied else array)
        return dict(zip(self.output_names, outputs, strict=True))

    def random_inputs(
        self, seed: int, shapes: Shapes | None = None, given: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """`given`, and a made-up array for every other input: normal floats, integers from 0 to 7.

        `shapes` gives the shape of an input by name; a size that stays unknown is taken as small as it may be.
        """
        return random_inputs(self.model, self._declared, seed, shapes or {}, given or {}, self.max_memory)

    def reset_state(self) -> None:
        """Forget the values of all variables: the next run starts as the first one did."""
        self._state = State()

    def _type(self, result: Layer) -> str:
        tensor = self._inference.tensor(result.inputs[0])
        return tensor.type if tensor else "dynamic"

    def _unfit(self, message: str) -> ExecutionError:
        help = "load the model again when the file is complete; write a new file and rename it instead of changing it"
        return ExecutionError([self._placed(Diagnostic("E502", message, help=help))])

    def _run_plan(
        self,
        plan: Plan,
        arrays: Sequence[Array],
        state: State,
        meter: Meter | None,
        profile: Profile | None = None,
    ) -> list[Array]:
        slots = list(plan.slots)
        for number, array in zip(plan.parameters, arrays, strict=True):
            slots[number] = array
        for step in plan.steps:
            args = [None if number == NOT_CONNECTED else slots[number] for number in step.inputs]
            begin = perf_counter()
            results = self._run_step(step, args, state, meter)
            if profile is not None:
                profile.add(Unit((step,), step.inputs, step.outputs, KERNEL), begin, perf_counter() - begin)
            for number, result in zip(step.outputs, results, strict=False):
                slots[number] = result
            for number in step.frees:
                slots[number] = None
        return [_present(slots[number]) for number in plan.results]

    def _run_step(self, step: Step, args: list[Array | None], state: State, meter: Meter | None) -> list[Array]:
        op, layer = step.node.op, step.node.layer
        tensors: list[Tensor | None] = []
        try:
            if step.recheck or op.context or meter is not None:
                tensors = _tensors(step, args)
                results = step.kernel(*args, **self._context(step, tensors, state, meter))
            else:
                results = step.kernel(*args)
        except Violation as violation:
            raise ExecutionError([self._placed(violated(violation, op, layer, tensors))]) from None
        except ExecutionError as error:
            if error.diagnostics[0].file is None:
                raise ExecutionError([self._placed(found) for found in error.diagnostics]) from None
            raise
        except IRError:
            raise
        except Exception as error:
            what = "ran out of memory" if isinstance(error, MemoryError) else f"failed: {error}"
            raise ExecutionError(
                [self._placed(Diagnostic("E602", f"{op.name} {what}", layer.place, layer.label))]
            ) from error
        given = results if isinstance(results, tuple | list) else (results,)
        found: list[Array] = [result if isinstance(result, np.ndarray) else np.asarray(result) for result in given]
        if op.outputs and op.outputs[-1].variadic and len(found) != len(step.outputs):
            message = f"{op.name} gives {len(found)} outputs, but declares {len(step.outputs)}"
            raise ExecutionError([self._placed(Diagnostic("E302", message, layer.place, layer.label))])
        if meter is not None:
            for array in found[: len(step.outputs)]:
                meter.add(array)
        return found

    def _check_step(self, step: Step, args: list[Array | None]) -> None:
        op, tensors = step.node.op, _tensors(step, args)
        try:
            inferred = op.infer(tensors, step.node.attrs)
        except Violation as violation:
            raise ExecutionError([self._placed(violated(violation, op, step.node.layer, tensors))]) from None
        self._warn(step.node.layer, inferred.warnings)

    def _context(self, step: Step, tensors: list[Tensor | None], state: State, meter: Meter | None) -> dict[str, Any]:
        """What the kernel of `step` asks for, after its rule was asked again where that is due."""
        op, layer = step.node.op, step.node.layer
        again = Inference(self._inference.weights)  # what this run knows is no business of other threads
        bodies = {
            name: replace(
                body,
                infer=partial(infer_body, layer.bodies[name].graph, again),
                run=partial(self._run_body, plan, state, meter),
            )
            for name, (body, plan) in step.bodies.items()
        }
        types, outputs = step.node.types, step.node.outputs
        if step.recheck:
            inferred = op.infer(tensors, step.node.attrs, bodies)
            types, outputs = inferred.types, inferred.outputs
            self._warn(layer, inferred.warnings)
        if meter is not None:
            _check_memory(step, tensors, outputs, meter)
        context = {"types": types, "bodies": bodies, "state": state}
        return {name: context[name] for name in op.context}

    def _run_body(self, plan: Plan, state: State, meter: Meter | None, arrays: Sequence[Array]) -> list[Array]:
        results = self._run_plan(plan, arrays, state, meter)
        state.commit()
        return results

    def _warn(self, layer: Layer, messages: Sequence[str]) -> None:
        for message in messages:
            warnings.warn(f"{self.model.path}:{layer.place.line}: layer {layer}: {message}", stacklevel=6)

    def _placed(self, diagnostic: Diagnostic) -> Diagnostic:
        return replace(diagnostic, file=str(self.model.path))


def _tensors(step: Step, args: Sequence[Array | None]) -> list[Tensor | None]:
    """All about the inputs of a step."""
    return [
        None if array is None else Tensor.of(array, None if type == "dynamic" else type)
        for array, type in zip(args, step.types, strict=True)
    ]


def _check_memory(step: Step, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor], meter: Meter) -> None:
    """Refuse a step whose results would take more memory than there is. Raises ExecutionError."""
    kept = outputs[: len(step.outputs)]
    wanted = result_bytes(step.node.op, inputs, kept)
    if meter.live + wanted > meter.limit:
        raise refusal(step.node.layer, outputs_text(kept), wanted, meter.live, meter.limit)


def _present(array: Array | None) -> Array:
    assert array is not None, "a plan computes what its results read"
    return array


def _output_names(model: Model) -> list[str]:
    """A unique name for every Result: its own, its tensor's, or its producer's."""
    names: dict[str, None] = {}
    counts: dict[str, int] = {}
    for layer in model.graph.results:
        source = layer.inputs[0]
        assert source is not None
        own = [name for name in layer.attributes.get("output_names", "").split(",") if name.strip()]
        several = f".{source.index}" if len(source.layer.outputs) > 1 else ""
        name = next(iter((*own, *source.port.names)), f"{source.layer.name}{several}")
        unique, count = name, counts.get(name, 1)
        while unique in names:
            unique = f"{name}_{count}"
            count += 1
        names[unique] = None
        counts[name] = count
    return list(names)
