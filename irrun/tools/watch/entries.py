"""Entries: what is written down of a tensor, and the index of those of a run, as JSON and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any

from irrun.diagnostics import InputError, clipped
from irrun.records import dataclass
from irrun.run.keys import place
from irrun.run.session import Event
from irrun.spec.dtypes import ELEMENT_TYPES, element_type
from irrun.tools.watch.statistics import HASH, Statistics, measured

SCHEMA = 1
"""The version of the index; a reader refuses later ones."""

INDEX = "irrun.jsonl"
"""The name of the index among arrays: an array of bytes, u8, that are lines of JSON. No key is like it: all have a
colon."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor of a run. `layer` is the name of the layer that made it, `operation` its type, `line` where it is in the
    file; `names` are those of the tensor. `type` and `shape` are as it was computed, also where an array is held in a
    wider type. `order` counts the tensors of all that were made in the run, `step` the runs of a session from 1 on.

    Of a file that was not written by irrun there is no more than its keys and arrays say: the `id` and `line` are
    None, `operation` and `hash` are empty, and there are no statistics.
    """

    key: str
    layer: str
    port: int
    path: tuple[tuple[str, str, int], ...]
    type: str
    shape: tuple[int, ...]
    hash: str = ""
    statistics: Statistics | None = None
    order: int = 0
    step: int = 1
    id: int | None = None
    operation: str = ""
    line: int | None = None
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, event: Event, key: str, order: int, step: int) -> Entry:
        """What is to be written down of an event. Takes a few passes over its array."""
        layer, array = event.layer, event.array
        statistics, digest = measured(array)
        names = layer.outputs[event.port].port.names if event.port < len(layer.outputs) else ()
        return cls(
            key,
            layer.name,
            event.port,
            event.path,
            element_type(array.dtype),
            array.shape,
            digest,
            statistics,
            order,
            step,
            layer.id,
            layer.type,
            layer.span.line,
            names,
        )

    @classmethod
    def named(cls, key: str, type: str, shape: tuple[int, ...], order: int) -> Entry:
        """What a key and an array say."""
        said = place(key)
        if said is None:
            return cls(key, key, 0, (), type, shape, order=order)
        return cls(key, said.layer, said.port, said.path, type, shape, order=order, step=said.step, id=said.id)

    def as_json(self) -> str:
        """As one line of JSON."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        if self.statistics is not None:
            values["statistics"] = self.statistics.as_dict()
        return json.dumps(values, allow_nan=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Index:
    """What a dump is made of: about the `run`, such as its model, inputs and engine, and its tensors by key."""

    run: Mapping[str, Any] = field(default_factory=dict)
    entries: Mapping[str, Entry] = field(default_factory=dict)


def heading(run: Mapping[str, Any]) -> str:
    """The beginning of an index, one line of JSON."""
    return json.dumps({"schema": SCHEMA, "hash": HASH, "run": run}, allow_nan=False, separators=(",", ":"))


def read_index(lines: list[bytes], where: str) -> Index:
    """The index in lines of JSON: the heading, and one for each tensor. Raises InputError."""
    try:
        head = json.loads(lines[0]) if lines else None
        if not isinstance(head, dict) or not isinstance(head.get("schema"), int) or not isinstance(head["run"], dict):
            raise ValueError("its first line is no heading of a dump")
        if head["schema"] > SCHEMA:
            raise InputError(
                f"{where} is of version {head['schema']}, and this irrun knows {SCHEMA}: install a later one"
            )
        entries: dict[str, Entry] = {}
        for number, line in enumerate(lines[1:], 2):
            if line.strip():
                entry = _entry(json.loads(line), number)
                if entry.key in entries:
                    raise ValueError(f"line {number} has the key `{clipped(entry.key, 200)}` again")
                entries[entry.key] = entry
    except (ValueError, KeyError, RecursionError) as error:
        raise InputError(f"{where} is damaged: {clipped(str(error), 300)}") from None
    return Index(head["run"], entries)


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "key": str,
    "layer": str,
    "port": int,
    "path": list,
    "type": str,
    "shape": list,
    "hash": str,
    "statistics": (dict, type(None)),
    "order": int,
    "step": int,
    "id": (int, type(None)),
    "operation": str,
    "line": (int, type(None)),
    "names": list,
}

_COUNTS = {field.name for field in fields(Statistics)} - {"minimum", "maximum", "mean", "std", "largest", "smallest"}


def _entry(values: Any, number: int) -> Entry:
    """Raises ValueError where a field is missing, or of another type."""
    if not isinstance(values, dict):
        raise ValueError(f"line {number} is no object")
    given: dict[str, Any] = {name: values.get(name) for name in _TYPES}
    for name, expected in _TYPES.items():
        if not isinstance(given[name], expected) or isinstance(given[name], bool):
            raise ValueError(f"line {number} has no good `{name}`")
    path, shape, names = given["path"], given["shape"], given["names"]
    if not all(isinstance(part, list) and list(map(type, part)) == [str, str, int] for part in path):
        raise ValueError(f"line {number} has no good `path`")
    if not all(type(size) is int and size >= 0 for size in shape) or not all(type(name) is str for name in names):
        raise ValueError(f"line {number} has no good `shape` or `names`")
    if given["type"] not in ELEMENT_TYPES:
        raise ValueError(f"line {number} has no good `type`")
    given |= {"path": tuple(map(tuple, path)), "shape": tuple(shape), "names": tuple(names)}
    given["statistics"] = _statistics(given["statistics"], number)
    return Entry(**given)


def _statistics(values: dict[str, Any] | None, number: int) -> Statistics | None:
    if values is None:
        return None
    names = [field.name for field in fields(Statistics)]
    for name in names:
        value = values.get(name)
        allowed = type(value) is int if name in _COUNTS else value is None or type(value) in (int, float)
        if not allowed:
            raise ValueError(f"line {number} has no good `{name}`")
    return Statistics(**{name: values[name] for name in names})
