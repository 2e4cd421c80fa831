"""An instruction computed by the kernels of its ops: what engines are measured by, and what does what none takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from traceback import walk_tb
from typing import Any, Protocol

import numpy as np

from irrun.check.infer import Inference, infer_body, violated
from irrun.diagnostics import Diagnostic, ExecutionError, IRError
from irrun.ir.graph import Layer
from irrun.ir.weights import Weights
from irrun.run.memory import outputs_text, refusal, result_bytes
from irrun.run.program import Instruction, Program
from irrun.run.session import Run
from irrun.spec.body import Body
from irrun.spec.op import Array, Inferred, Op, Tensor, Violation


class Prepared(Protocol):
    """A program that is made ready for arrays of any shapes."""

    def iterations(self, run: Run) -> Iterations: ...


class Iterations(Protocol):
    """Runs of one program, one after the other, until `close`. Results are nobody else's.

    `results` are the bytes of these where all are small and of sizes that do not change, else None.
    """

    results: int | None

    def __call__(self, arrays: Sequence[Array], run: Run) -> list[Array]: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Kernels:
    """The kernels of a model's ops. `path` is its file, which errors name."""

    path: Path
    weights: Weights
    prepared: Callable[[Program], Prepared]

    def compute(
        self, program: Program, instruction: Instruction, arrays: Sequence[Array | None], run: Run
    ) -> list[Array]:
        """The results for the arrays of its operands. Raises ExecutionError where they break a rule."""
        size = len(instruction.inputs)
        if program.compressed:
            arrays = [
                program.compressed[number].dense() if number in program.compressed else array
                for number, array in zip(instruction.operands, arrays, strict=True)
            ]
        results = self._compute(program, instruction, arrays[:size], run)
        operands, made = iter(arrays[size:]), instruction.outputs[0] if instruction.posts else None
        for post in instruction.posts:
            given = [results[0] if n == made else None if n is None else next(operands) for n in post.inputs]
            results = self._compute(program, post, given, run)
            made = post.outputs[0]
        return results

    def check(self, program: Program, instruction: Instruction, arrays: Sequence[Array | None], run: Run) -> None:
        """Ask the rule of an instruction whose results are sized about its data. Raises ExecutionError."""
        tensors = tensors_of(program, instruction, arrays)
        try:
            inferred = instruction.op.infer(tensors, instruction.attrs)
        except Violation as violation:
            raise self.placed(violated(violation, instruction.op, instruction.layer, tensors)) from None
        for message in inferred.warnings:
            run.warn(instruction.layer, message)

    def placed(self, *diagnostics: Diagnostic) -> ExecutionError:
        """An error of the run, in the model's file."""
        return ExecutionError([replace(found, file=str(self.path)) for found in diagnostics])

    def failed(self, instruction: Instruction, by: str, error: Exception) -> ExecutionError:
        """The error that something went wrong that is nobody's fault who uses irrun."""
        if isinstance(error, MemoryError):
            what = "ran out of memory"
        else:
            what = f"failed: {type(error).__name__}: {error}{_raised_at(error, instruction.op)}"
        layer = instruction.layer
        return self.placed(Diagnostic("E602", f"{by} {what}", layer.span, layer.label))

    def _compute(
        self, program: Program, instruction: Instruction, arrays: Sequence[Array | None], run: Run
    ) -> list[Array]:
        op, layer = instruction.op, instruction.layer
        tensors: list[Tensor | None] = []
        bodies: dict[str, Body] = {}
        try:
            if instruction.open or op.context or run.meter is not None:
                tensors = tensors_of(program, instruction, arrays)
                bodies = self._bodies(instruction, run) if instruction.bodies else {}
                context = self._context(program, instruction, tensors, bodies, run)
                results = op.kernel(*arrays, **instruction.attrs, **context)
            else:
                results = op.kernel(*arrays, **instruction.attrs)
        except Violation as violation:
            raise self.placed(violated(violation, op, layer, tensors)) from None
        except ExecutionError as error:
            if error.diagnostics[0].file is None:
                raise self.placed(*error.diagnostics) from None
            raise
        except IRError:
            raise
        except Exception as error:
            raise self.failed(instruction, op.name, error) from error
        finally:
            for body in bodies.values():
                assert isinstance(body.run, _Body)
                body.run.close()
        given = results if isinstance(results, tuple | list) else (results,)
        found: list[Array] = [result if isinstance(result, np.ndarray) else np.asarray(result) for result in given]
        if op.outputs and op.outputs[-1].variadic and len(found) != len(instruction.outputs):
            message = f"{op.name} gives {len(found)} outputs, but declares {len(instruction.outputs)}"
            raise self.placed(Diagnostic("E302", message, layer.span, layer.label))
        if run.meter is not None:
            for array in found[: len(instruction.outputs)]:
                run.meter.add(array)
        return found

    def _context(
        self,
        program: Program,
        instruction: Instruction,
        tensors: list[Tensor | None],
        bodies: Mapping[str, Body],
        run: Run,
    ) -> dict[str, Any]:
        """What a kernel asks for, after the rule was asked again where that is due."""
        types: Mapping[str, str] = instruction.types
        outputs = [program.tensors[number] for number in instruction.outputs]
        if instruction.open:
            inferred = instruction.op.infer(tensors, instruction.attrs, bodies)
            types, outputs = inferred.types, inferred.outputs[: len(outputs)]
            for message in inferred.warnings:
                run.warn(instruction.layer, message)
        if run.meter is not None:
            wanted = result_bytes(instruction.op, tensors, outputs)
            if run.meter.live + wanted > run.meter.limit:
                raise refusal(instruction.layer, outputs_text(outputs), wanted, run.meter.live, run.meter.limit)
        context = {"types": types, "bodies": bodies, "state": run.variables}
        return {name: context[name] for name in instruction.op.context}

    def _bodies(self, instruction: Instruction, run: Run) -> dict[str, Body]:
        again = Inference(self.weights)  # what this run knows is no business of other threads
        return {
            name: replace(
                body,
                infer=partial(infer_body, instruction.layer.bodies[name].graph, again),
                run=_Body(program, self.prepared(program), instruction.layer, name, run),
            )
            for name, (body, program) in instruction.bodies.items()
        }


def _raised_at(error: Exception, op: Op) -> str:
    """Where an exception comes from: the last line of the op's own file on the way to it, else the last of all."""
    lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    own = getattr(getattr(op.kernel, "__code__", None), "co_filename", None)
    found = [place for place in lines if place[0] == own] or lines
    return f", at {found[-1][0]}:{found[-1][1]}" if found else ""


class _Body:
    """What an op runs its body with."""

    def __init__(self, program: Program, prepared: Prepared, layer: Layer, name: str, run: Run) -> None:
        self._layer, self._name, self._run = layer, name, run
        self._iterations = prepared.iterations(run)
        self._assigns = any(instruction.effects for instruction in program.instructions)
        self._number = self._counted = 0

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        run = self._run
        if run.observer is not None or run.profile is not None:
            run = run.inside(self._layer, self._name, self._number)
        if self._assigns:
            outside = run.variables.enter()
            results = self._iterations(arrays, run)
            run.variables.leave(outside)
        else:
            results = self._iterations(arrays, run)
        self._number += 1
        if (meter := run.meter) is not None:
            if self._iterations.results is None:
                for array in results:
                    meter.add(array)
            else:  # in use until the layer is through: to follow each takes longer than to make it
                self._counted += self._iterations.results
                meter.live += self._iterations.results
            if meter.live > meter.limit:
                raise refusal(self._layer, "what its body gives", 0, meter.live, meter.limit)
        return results

    def close(self) -> None:
        self._iterations.close()
        if self._run.meter is not None:
            self._run.meter.live -= self._counted


def tensors_of(program: Program, instruction: Instruction, arrays: Sequence[Array | None]) -> list[Tensor | None]:
    """All about the inputs of an instruction."""
    return [
        None if array is None or number is None else Tensor.of(array, _type(program.tensors[number]))
        for number, array in zip(instruction.inputs, arrays, strict=True)
    ]


def _type(tensor: Tensor) -> str | None:
    return None if tensor.type == "dynamic" else tensor.type


def shapes_alone(program: Program, instruction: Instruction, arrays: Sequence[Array | None]) -> Inferred | None:
    """What the rule says of arrays of these shapes, whatever they hold unless constant; None where it is broken."""
    tensors = [
        None if tensor is None else tensor if number in program.constants else Tensor(tensor.type, tensor.shape)
        for tensor, number in zip(tensors_of(program, instruction, arrays), instruction.inputs, strict=True)
    ]
    try:
        return instruction.op.infer(tensors, instruction.attrs)
    except Violation:
        return None
