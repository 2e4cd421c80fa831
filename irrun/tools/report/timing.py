"""Where the time of a run goes: what `irrun execute --profile` takes down, by layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irrun.ir.graph import Layer
from irrun.run.executor import GraphExecutor
from irrun.run.profile import Entry, Profile
from irrun.spec.op import Array
from irrun.tools.report import texts

MAX_EVENTS = 100_000
"""Calls that are told one by one; of a loop there may be millions."""

_MICRO = 1e6


def timed(
    executor: GraphExecutor, steps: Sequence[Mapping[str, Array]], numbers: Mapping[Layer, int], profile: Profile
) -> dict[str, Any]:
    """Two runs of the steps, each from a fresh state on, taken down in a new profile: the first one prepares, and the
    second is the one that counts.

    `entries` are layers that are computed together: the numbers of these, what computes them, the microseconds that
    they took in the `first` run, and the `calls` and the `time` in the second one. `events` are these calls: the number
    of an entry, the microseconds since the run began, and those that it took. Raises InputError and IRError as a run
    does.
    """
    _run(executor, steps, profile)
    prepared = len(profile.events)
    _run(executor, steps, profile)
    listed = list(profile.entries.items())
    places = {id(entry): number for number, (_, entry) in enumerate(listed)}
    first, second = _sums(profile.events[:prepared]), _sums(profile.events[prepared:])
    events = profile.events[prepared : prepared + MAX_EVENTS]
    begin = min((start for _, start, _ in events), default=0.0)
    return {
        "engines": executor.engines,
        "steps": len(steps),
        "entries": [
            {
                "layers": _layers(key, numbers),
                "name": texts.name(entry.name),
                "type": texts.value(entry.type),
                "shape": texts.name(entry.shape),
                "by": entry.by,
                "operations": entry.operations,
                "first": _micro(first.get(id(entry), (0, 0.0))[1]),
                "calls": second.get(id(entry), (0, 0.0))[0],
                "time": _micro(second.get(id(entry), (0, 0.0))[1]),
            }
            for key, entry in listed
        ],
        "events": [
            [places[id(entry)], _micro(start - begin), _micro(seconds)]
            for entry, start, seconds in sorted(events, key=lambda event: event[1])
        ],
        "left_out": max(0, len(profile.events) - prepared - MAX_EVENTS),
    }


def _run(executor: GraphExecutor, steps: Sequence[Mapping[str, Array]], profile: Profile) -> None:
    session = executor.session()
    for inputs in steps:
        session.run(inputs, profile=profile)


def _sums(events: Sequence[tuple[Entry, float, float]]) -> dict[int, tuple[int, float]]:
    """How many calls there are of each entry, by its id, and their seconds."""
    found: dict[int, tuple[int, float]] = {}
    for entry, _, seconds in events:
        calls, sum = found.get(id(entry), (0, 0.0))
        found[id(entry)] = (calls + 1, sum + seconds)
    return found


def _layers(key: object, numbers: Mapping[Layer, int]) -> list[int]:
    """The layers of an entry; none for what prepares data for others."""
    parts = key if isinstance(key, tuple) else ()
    return list(dict.fromkeys(numbers[part] for part in parts if isinstance(part, Layer) and part in numbers))


def _micro(seconds: float) -> float:
    return round(seconds * _MICRO, 1)
