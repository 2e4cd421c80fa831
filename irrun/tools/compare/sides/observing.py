"""What workers answer about tensors that lie in a folder, as observations of steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irrun.spec.op import Array
from irrun.tools.compare.sides.contract import Observation
from irrun.tools.compare.sides.exchange import Scratch, Stored, Stub

Named = Callable[[Sequence[Stub], Scratch], Mapping[str, Array]]
"""Outputs that lie in a folder, by the keys that they have in our model."""


def observations(answer: Mapping[str, Any], keys: Sequence[str], named: Named, folder: Scratch) -> list[Observation]:
    """Of each step the outputs of its runs, and the tensors: `keys` are those of the numbers that the worker tells,
    also as the `taps` of each run."""
    found = []
    for step in answer["steps"]:
        first, *others = step["runs"]
        tensors = {keys[int(number)]: stub for number, stub in step["tensors"].items()}
        repeats = tuple(named(run["outputs"], folder) for run in others)
        made = enumerate(step["runs"] if others else ())
        runs = {keys[int(tap)]: number for number, run in made for tap in run["taps"]}
        outputs = named(first["outputs"], folder)
        found.append(Observation(outputs, Stored(tensors, folder), first["seconds"], repeats, runs))
    return found


def tensors_of_steps(answer: Mapping[str, Any], keys: Sequence[str], folder: Scratch) -> list[Mapping[str, Array]]:
    """The tensors of each step alone."""
    return [Stored({keys[int(number)]: stub for number, stub in step.items()}, folder) for step in answer["steps"]]
