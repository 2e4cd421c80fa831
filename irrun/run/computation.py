"""An instruction made ready to be computed by the kernels of its ops, call after call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from irrun.check.infer import Inference, violated
from irrun.diagnostics import Diagnostic, ExecutionError, IRError
from irrun.interruption import hand_on
from irrun.run.bodies import RunningBody
from irrun.run.borders import body_inference
from irrun.run.memory import outputs_text, owner_of, owners, refusal, tensor_bytes
from irrun.run.program import Branches, Instruction, Program
from irrun.run.rules import Rule
from irrun.run.session import Run
from irrun.spec.body import Body
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array, Tensor, Violation, results_of
from irrun.spec.patterns import shape_text
from irrun.spec.traits import Branching

if TYPE_CHECKING:
    from irrun.ir.graph import Graph
    from irrun.ir.weights import Weights
    from irrun.run.kernels import Kernels


class Computation:
    """An instruction of a program, posts included. One with bodies is used by one run at a time, others by any."""

    def __init__(self, kernels: Kernels, program: Program, instruction: Instruction) -> None:
        self._compressed = [program.compressed.get(n) if n is not None else None for n in instruction.operands]
        if not any(self._compressed):
            self._compressed = []
        self._size = len(instruction.inputs)
        self._first = _Layer(kernels, program, instruction)
        posts = zip(instruction.posts, instruction.arguments()[1:], strict=True)
        self._posts = [(_Layer(kernels, program, post), arguments) for post, arguments in posts]

    @property
    def rounded(self) -> bool:
        """Whether engines may round to bf16 what it multiplies, which is f32."""
        return any(weights is not None and weights.rounded for weights in self._compressed)

    def __call__(self, arrays: Sequence[Array | None], run: Run) -> list[Array]:
        """The results for the arrays of its operands. Raises ExecutionError where they break a rule."""
        if self._compressed:
            arrays = [
                array if weights is None else weights.dense()
                for weights, array in zip(self._compressed, arrays, strict=True)
            ]
        if not self._posts:
            return self._first(arrays, run)
        results = self._first(arrays[: self._size], run)
        for layer, arguments in self._posts:
            given = [None if n is None else results[0] if n < 0 else arrays[n] for n in arguments]
            results = layer(given, run)
        return results

    def check(self, arrays: Sequence[Array | None], run: Run) -> None:
        """Ask the rule, where the results are sized, about the data of its inputs. Raises ExecutionError."""
        self._first.check(arrays, run)


class _Layer:
    """A layer as its op's kernel computes it."""

    def __init__(self, kernels: Kernels, program: Program, instruction: Instruction) -> None:
        op = instruction.op
        self._kernels, self._instruction, self._op = kernels, instruction, op
        self._rule = Rule(program, instruction)
        self._outputs = [program.tensors[number] for number in instruction.outputs]
        self._nbytes = sum(map(tensor_bytes, self._outputs))
        self._asks = instruction.open
        context: dict[str, Any] = {"types": instruction.types} if "types" in op.context else {}
        self._plain = partial(op.kernel, **instruction.attrs, **context)
        self._context = bool(op.context - {"types"}) or (self._asks and bool(op.context))
        self._viewed = next((n for n, port in enumerate(op.inputs) if port.name == op.view_of), None)
        self._variadic = bool(op.outputs) and op.outputs[-1].variadic
        self._only_bodies = op.context == {"bodies"}
        self._bodies: dict[str, Body] = {}
        known = all(number is None or program.tensors[number].static for number in instruction.inputs)
        patient = instruction.op.trait(Branching) is not None and not known
        self._running = {
            name: RunningBody(body, inner, kernels.bodies.prepared(inner, patient), instruction.layer, name)
            for name, (body, inner) in instruction.bodies.items()
        }
        self._branches = instruction.branches

    def __call__(self, arrays: Sequence[Array | None], run: Run) -> list[Array]:
        instruction = self._instruction
        try:
            if self._branches is not None:
                return self._branch(self._branches, arrays, run)
            if self._context or self._asks or run.meter is not None:
                results = self._prepared(arrays, run)
            else:
                results = self._plain(*arrays)
        except Violation as violation:
            raise self._broken(violation, arrays) from None
        except ExecutionError as error:
            if error.diagnostics[0].file is None:
                raise self._kernels.placed(*error.diagnostics) from None
            raise
        except IRError:
            raise
        except Exception as error:
            hand_on(error)
            raise self._kernels.failed(instruction, self._op.name, error) from error
        finally:
            if self._branches is None:
                for body in self._running.values():
                    body.end()
        found = [made if isinstance(made, np.ndarray) else np.asarray(made) for made in results_of(results)]
        if self._variadic and len(found) < len(instruction.outputs):
            layer = instruction.layer
            message = f"{self._op.name} gives {len(found)} outputs, but declares {len(instruction.outputs)}"
            raise self._kernels.placed(Diagnostic("E302", message, layer.span, layer.label))
        if self._op.extension_versions and not self._running:
            self._hold(found, arrays)
            if not self._op.view_of:  # what is given back as it came would be thought to be memory of its own
                given = owners(array for array in arrays if array is not None)
                found = [made.copy() if id(owner_of(made)) in given else made for made in found]
        if run.meter is not None:
            run.meter.add(*found[: len(instruction.outputs)])
        return found

    def _hold(self, found: Sequence[Array], arrays: Sequence[Array | None]) -> None:
        """Hold what a custom op gives against its declaration, as nobody else has tried it. Raises ExecutionError."""
        outputs = self._rule.ask(arrays, self._inferred).outputs if self._asks else self._outputs
        for port, (array, tensor) in enumerate(zip(found, outputs, strict=False)):
            numbers = tensor.numeric and tensor.type != "dynamic"
            if (numbers and array.dtype != numpy_dtype(tensor.type)) or (tensor.static and array.shape != tensor.shape):
                layer = self._instruction.layer
                given, declared = array.dtype.name + shape_text(array.shape), tensor.type + shape_text(tensor.shape)
                message = f"{self._op.name} gives {given} at output {port}, but declares {declared}"
                help = "the kernel of an op gives the element type and the shape that its declaration says"
                raise self._kernels.placed(Diagnostic("E602", message, layer.span, layer.label, help))

    def check(self, arrays: Sequence[Array | None], run: Run) -> None:
        try:
            answer = self._rule.ask(arrays, self._inferred)
        except Violation as violation:
            raise self._broken(violation, arrays) from None
        for message in answer.warnings:
            run.warn(self._instruction.layer, message)

    def _prepared(self, arrays: Sequence[Array | None], run: Run) -> Any:
        """What the kernel gives, after the rule was asked where that is due."""
        types, outputs, wanted = self._instruction.types, self._outputs, self._nbytes
        if self._asks:
            answer = self._rule.ask(arrays, self._inferred)
            types, outputs, wanted = answer.types, list(answer.outputs), answer.nbytes
            for message in answer.warnings:
                run.warn(self._instruction.layer, message)
        meter = run.meter
        if meter is not None and meter.live + wanted > meter.limit and not self._looks(arrays, wanted):
            raise refusal(self._instruction.layer, outputs_text(outputs), wanted, meter.live, meter.limit)
        if not self._context:
            return self._plain(*arrays)
        if self._running:
            for body in self._running.values():
                body.begin(run)
            bodies = self._bodies or self._bound()
            if self._only_bodies:
                return self._op.kernel(*arrays, **self._instruction.attrs, bodies=bodies)
        context = {"types": types, "state": run.variables, "bodies": self._bodies}
        own = {name: context[name] for name in self._op.context}
        return self._op.kernel(*arrays, **self._instruction.attrs, **own)

    def _branch(self, branches: Branches, arrays: Sequence[Array | None], run: Run) -> list[Array]:
        """What the body gives that the condition chooses."""
        condition = arrays[branches.condition]
        name, inputs, results = branches.bodies[bool(condition.item())]  # type: ignore[union-attr] # it is connected
        given = [arrays[number] for number in inputs]
        made = self._running[name].once(given, run)  # type: ignore[arg-type] # what a body reads is connected, too
        found = [made[number] for number in results]
        if run.meter is not None:
            run.meter.add(*found)
        return found

    def _looks(self, arrays: Sequence[Array | None], wanted: int) -> bool:
        """Whether the results are but a view of an input."""
        array = None if self._viewed is None else arrays[self._viewed]
        return array is not None and wanted <= array.nbytes

    def _bound(self) -> Mapping[str, Body]:
        """The bodies with what runs them."""
        for name, (body, program) in self._instruction.bodies.items():
            known = partial(_known, self._kernels.weights, self._instruction.layer.bodies[name].graph, program)
            self._bodies[name] = replace(body, infer=known, run=self._running[name])
        return self._bodies

    def _inferred(self) -> dict[str, Body]:
        """The bodies for the rule: what this run knows is no business of other threads.

        It does not look into branches: only one of them runs, which says itself what is wrong with it.
        """
        if self._op.trait(Branching) is not None:
            return {name: replace(body, infer=None) for name, (body, _) in self._instruction.bodies.items()}
        layer, again = self._instruction.layer, Inference(self._kernels.weights)
        return {
            name: replace(body, infer=body_inference(layer.bodies[name].graph, program, again))
            for name, (body, program) in self._instruction.bodies.items()
        }

    def _broken(self, violation: Violation, arrays: Sequence[Array | None]) -> ExecutionError:
        tensors = self._rule.tensors(arrays)
        return self._kernels.placed(violated(violation, self._op, self._instruction.layer, tensors))


def _known(weights: Weights, graph: Graph, program: Program, tensors: Sequence[Tensor]) -> list[Tensor]:
    """What is known of the results of a body."""
    return body_inference(graph, program, Inference(weights))(tensors)
