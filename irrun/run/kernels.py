"""The kernels of a model's ops: what engines are measured by, and what does what none takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from irrun.diagnostics import Diagnostic, ExecutionError
from irrun.ir.weights import Weights
from irrun.records import NamedTuple
from irrun.run.computation import Computation
from irrun.run.program import Instruction, Program
from irrun.spec.op import Op

if TYPE_CHECKING:
    from irrun.run.preparation import Bodies


class Kernels(NamedTuple):
    """The kernels of a model's ops. `path` is its file, which errors name; `bodies` are those that ops have."""

    path: Path
    weights: Weights
    bodies: Bodies

    def computation(self, program: Program, instruction: Instruction) -> Computation:
        """An instruction made ready for many calls."""
        return Computation(self, program, instruction)

    def placed(self, *diagnostics: Diagnostic) -> ExecutionError:
        """An error of diagnostics that name the file of the model."""
        return in_file(self.path, *diagnostics)

    def failed(self, instruction: Instruction, by: str, error: Exception) -> ExecutionError:
        """The error that something went wrong that is nobody's fault who uses irrun."""
        if isinstance(error, MemoryError):
            what = "ran out of memory"
        else:
            what = f"failed: {type(error).__name__}: {error}{_raised_at(error, instruction.op)}"
        layer = instruction.layer
        return self.placed(Diagnostic("E602", f"{by} {what}", layer.span, layer.label))


def in_file(path: Path, *diagnostics: Diagnostic) -> ExecutionError:
    """An error of the run, in the model's file."""
    return ExecutionError([replace(found, file=str(path)) for found in diagnostics])


def _raised_at(error: Exception, op: Op) -> str:
    """Where an exception comes from: the last line of the op's own file on the way to it, else the last of all."""
    from traceback import walk_tb

    lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    own = getattr(getattr(op.kernel, "__code__", None), "co_filename", None)
    found = [place for place in lines if place[0] == own] or lines
    return f", at {found[-1][0]}:{found[-1][1]}" if found else ""
