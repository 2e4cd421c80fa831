"""Layers of which one run of the other side has shown the result, and others what they have read: looked at in one run.

Devices fuse other layers in each run, and so round otherwise: what a layer that moves elements has made in one run is
not, to the last digit, what it has read in another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from irrun.records import dataclass
from irrun.run.session import Event
from irrun.spec.op import Array
from irrun.tools.compare.replay import Beside, Course
from irrun.tools.compare.results import Measured
from irrun.tools.compare.sides.contract import Observation, Side
from irrun.tools.compare.sides.tensors import key_of
from irrun.tools.compare.stretches import Stretch

Place = tuple[str, int]
"""The key of a tensor, and the step that it is of."""


@dataclass(frozen=True, slots=True)
class Apart:
    """A tensor that is off, beside tensors of other runs: `keys` are all of these, `before` what lies before its layer.

    `measured` is how far it is off, beside what it may be where rounding has made other ones of what was read.
    """

    keys: frozenset[str]
    measured: Measured
    before: Stretch


@dataclass(frozen=True, slots=True)
class Together:
    """What is shown where only `keys` are watched, and how far tensors are off there; those are missing that are of
    several runs again, as there is no room for all that they need in one."""

    observed: Sequence[Observation]
    keys: Sequence[str]
    measured: Mapping[Place, Measured]


def of_several_runs(event: Event, before: Stretch, observation: Observation) -> frozenset[str]:
    """The tensors that tell what a layer does, with those before it of which nothing is shown, where they are of
    several runs; none where they are of one."""
    if not observation.runs or event.path:
        return frozenset()
    read = [value for layer in (event.layer, *before.layers) for value in layer.inputs if value is not None]
    names = {event.name, *(key_of(value) for value in read)} & observation.runs.keys()
    return frozenset(names) if len({observation.runs[name] for name in names}) > 1 else frozenset()


def together(beside: Beside, side: Side, course: Course, apart: Mapping[Place, Apart]) -> Together:
    """What is shown where nothing is watched but what tells of these, and how far they are off then."""
    if not apart:
        return Together([], [], {})
    keys = sorted(frozenset().union(*(each.keys for each in apart.values())))
    course = replace(course, steps=course.steps[: max(step for _, step in apart) + 1])
    observed = side.observe(course.steps, keys)
    found: dict[Place, Measured] = {}

    def told(event: Event, _: Array, measured: Measured, before: Stretch) -> None:
        place = event.name, measured.where.step
        if place in apart and not of_several_runs(event, before, observed[measured.where.step]):
            found[place] = measured

    replace(beside).replay(course, observed, told)
    return Together(observed, keys, found)
