"""The executor: a model made ready once, then run as often as one likes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from irrun.check.infer import Inference, infer_body, violated
from irrun.check.validate import Shapes, validate
from irrun.diagnostics import Diagnostic, ExecutionError, IRError
from irrun.ir.graph import Layer, Model
from irrun.run.inputs import bind_inputs, random_inputs
from irrun.run.plan import NOT_CONNECTED, Plan, Step, make_plan
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array, Tensor, Violation

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

    Raises IRError where the model has errors; its warnings are in `report`.
    """

    def __init__(self, model: Model | str | os.PathLike[str], weights: str | os.PathLike[str] | None = None) -> None:
        self.report = validate(model, weights)
        if self.report.model is None or self.report.inference is None or not self.report.ok:
            raise IRError(self.report.errors)
        self.model: Model = self.report.model
        self._inference: Inference = self.report.inference
        self._plan = make_plan(self.model.graph, self._inference)
        self._state = State()
        self._parameters = [self._inference.nodes[layer].outputs[0] for layer in self.model.graph.parameters]
        self.output_names = _output_names(self.model)

    def run(self, inputs: Mapping[str, Any] | Sequence[Any] = ()) -> dict[str, Array]:
        """Compute all results, in the order of the model's Results.

        `inputs` are arrays by name or by position, of exactly the type and of a shape that the model declares.
        Raises InputError where they do not fit, ExecutionError where the data break a constraint of a layer.
        """
        arrays = bind_inputs(self.model, self._parameters, inputs)
        try:
            with np.errstate(all="ignore"):
                results = self._run_plan(self._plan, arrays, self._state)
        except BaseException:
            self._state.discard()
            raise
        self._state.commit()
        types = [self._type(layer) for layer in self.model.graph.results]
        outputs = [
            self._handed_out(array, type, number in self._plan.borrowed)
            for array, type, number in zip(results, types, self._plan.results, strict=True)
        ]
        return dict(zip(self.output_names, outputs, strict=True))

    def random_inputs(
        self, seed: int, shapes: Shapes | None = None, given: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """`given`, and a made-up array for every other input: normal floats, integers from 0 to 7.

        `shapes` gives the shape of an input by name; a size that stays unknown is taken as small as it may be.
        """
        return random_inputs(self.model, self._parameters, seed, shapes or {}, given or {})

    def reset_state(self) -> None:
        """Forget the values of all variables: the next run starts as the first one did."""
        self._state = State()

    def _type(self, result: Layer) -> str:
        tensor = self._inference.tensor(result.inputs[0])
        return tensor.type if tensor else "dynamic"

    def _handed_out(self, array: Array, type: str, borrowed: bool) -> Array:
        if self.model.version == 10 and type in _V10_OUTPUTS:
            return array.astype(numpy_dtype(_V10_OUTPUTS[type]))
        return array.copy() if borrowed else array

    def _run_plan(self, plan: Plan, arrays: Sequence[Array], state: State) -> list[Array]:
        slots = list(plan.slots)
        for number, array in zip(plan.parameters, arrays, strict=True):
            slots[number] = array
        for step in plan.steps:
            args = [None if number == NOT_CONNECTED else slots[number] for number in step.inputs]
            results = self._run_step(step, args, state)
            for number, result in zip(step.outputs, results, strict=False):
                slots[number] = result if isinstance(result, np.ndarray) else np.asarray(result)
            for number in step.frees:
                slots[number] = None
        return [_present(slots[number]) for number in plan.results]

    def _run_step(self, step: Step, args: list[Array | None], state: State) -> Sequence[Any]:
        op, layer = step.node.op, step.node.layer
        tensors: list[Tensor | None] = []
        try:
            if step.recheck or op.context:
                tensors = [
                    None if array is None else Tensor.of(array, None if type == "dynamic" else type)
                    for array, type in zip(args, step.types, strict=True)
                ]
                results = step.kernel(*args, **self._context(step, tensors, state))
            else:
                results = step.kernel(*args)
        except Violation as violation:
            raise ExecutionError([self._placed(violated(violation, op, layer, tensors))]) from None
        except (IRError, KeyboardInterrupt):
            raise
        except Exception as error:
            what = "ran out of memory" if isinstance(error, MemoryError) else f"failed: {error}"
            raise ExecutionError(
                [self._placed(Diagnostic("E602", f"{op.name} {what}", layer.place, layer.label))]
            ) from error
        results = results if isinstance(results, tuple | list) else (results,)
        if op.outputs and op.outputs[-1].variadic and len(results) != len(step.outputs):
            message = f"{op.name} gives {len(results)} outputs, but declares {len(step.outputs)}"
            raise ExecutionError([self._placed(Diagnostic("E302", message, layer.place, layer.label))])
        return results

    def _context(self, step: Step, tensors: list[Tensor | None], state: State) -> dict[str, Any]:
        """What the kernel of `step` asks for, after its rule was asked again where that is due."""
        op, layer = step.node.op, step.node.layer
        again = Inference(self._inference.weights)  # what this run knows is no business of other threads
        bodies = {
            name: replace(
                body,
                infer=partial(infer_body, layer.bodies[name].graph, again),
                run=partial(self._run_body, plan, state),
            )
            for name, (body, plan) in step.bodies.items()
        }
        types = op.infer(tensors, step.node.attrs, bodies).types if step.recheck else step.node.types
        context = {"types": types, "bodies": bodies, "state": state, "warn": partial(self._warn, layer)}
        return {name: context[name] for name in op.context}

    def _run_body(self, plan: Plan, state: State, arrays: Sequence[Array]) -> list[Array]:
        results = self._run_plan(plan, arrays, state)
        state.commit()
        return results

    def _warn(self, layer: Layer, message: str) -> None:
        warnings.warn(f"{self.model.path}:{layer.place.line}: layer {layer}: {message}", stacklevel=6)

    def _placed(self, diagnostic: Diagnostic) -> Diagnostic:
        return replace(diagnostic, file=str(self.model.path))


def _present(array: Array | None) -> Array:
    assert array is not None, "a plan computes what its results read"
    return array


def _output_names(model: Model) -> list[str]:
    """A unique name for every Result: its own, its tensor's, or its producer's."""
    names: list[str] = []
    for layer in model.graph.results:
        source = layer.inputs[0]
        assert source is not None
        own = [name for name in layer.attributes.get("output_names", "").split(",") if name.strip()]
        several = f".{source.index}" if len(source.layer.outputs) > 1 else ""
        name = next(iter((*own, *source.port.names)), f"{source.layer.name}{several}")
        unique, count = name, 1
        while unique in names:
            unique = f"{name}_{count}"
            count += 1
        names.append(unique)
    return names
