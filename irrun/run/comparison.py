"""What engines compute held against the ops' own kernels, layer by layer: `--engine check`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from irrun.diagnostics import Diagnostic, Note
from irrun.run.kernels import Kernels
from irrun.run.program import Instruction
from irrun.spec.op import Array

DIGITS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
"""The relative distance of a number of each type to the next one."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far results may lie apart: `steps` of rounding of the number itself, or `sums` of the largest one beside it,
    which is what sums in another order come to. Integers, booleans and what is not finite must be equal."""

    steps: float = 256
    sums: float = 64

    def hold(
        self, kernels: Kernels, instruction: Instruction, by: str, expected: Sequence[Array], found: Sequence[Array]
    ) -> None:
        """Raises ExecutionError at the first element that differs."""
        for port, (right, array) in enumerate(zip(expected, found, strict=False)):
            wrong = self.differing(right, array)
            if wrong is None:
                continue
            layer, last = instruction.layer, instruction.parts[-1].layer
            where = f"[{', '.join(map(str, wrong))}]" if wrong else ""
            message = (
                f"output {port} of {last} is {array[wrong]}{where and ' at ' + where} by the engine {by}, "
                f"but {right[wrong]} by the kernels of its ops"
            )
            notes = [
                Note(f"computed together: {part.op.name}, layer {part.layer}", part.layer.place)
                for part in instruction.parts
            ]
            help = f"that is a mistake in the engine {by}, not in the model: run with --engine reference, and report it"
            raise kernels.placed(
                Diagnostic("E604", message, layer.place, layer.label, help, tuple(notes if instruction.posts else ()))
            )

    def differing(self, expected: Array, found: Array) -> tuple[int, ...] | None:
        """The index of the first element of `found` that is not what is expected up to rounding; None for none."""
        if expected.shape != found.shape or expected.dtype.kind != found.dtype.kind:
            return ()
        digit = DIGITS.get(expected.dtype.name)
        if digit is None:
            wrong = np.asarray(expected != found)
        else:
            right, array = expected.astype(np.float64), found.astype(np.float64)
            finite = np.isfinite(right)
            scale = float(np.abs(right[finite]).max(initial=0.0))
            with np.errstate(all="ignore"):
                near = np.abs(array - right) <= digit * (self.steps * np.abs(right) + self.sums * scale) + 1e-37
            same = (array == right) | (np.isnan(array) & np.isnan(right))
            wrong = ~np.where(finite, near, same)
        if not wrong.any():
            return None
        return tuple(int(place) for place in np.argwhere(wrong)[0])
