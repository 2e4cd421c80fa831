"""Numbers and colours for the nodes of a model in Model Explorer: costs, times and errors, a file for each."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from irrun.files import atomic_write
from irrun.spec.dims import Size
from irrun.tools.compare.results import Measured
from irrun.tools.viewers.facts import Facts, Number, Viewed, error, milliseconds
from irrun.tools.viewers.model_explorer.graphs import graph_ids, node_ids

_GRADIENT = ((0.0, "#fff7ec"), (0.5, "#fc8d59"), (1.0, "#7f0000"))
"""From little to much, in the eyes of those who see no red and green, too."""

_WORST = _GRADIENT[-1][1]
"""The colour of what has no number, such as an error of NaN, and of a number that is the only one of its graph."""


def _cost(size: Size | None) -> Number | None:
    return size if isinstance(size, int) and size else None


def _decibels(measured: Measured | None) -> Number | None:
    """How large an error is; nothing where there is none."""
    if measured is None or measured.metrics.equal:
        return None
    size = error(measured)
    return size if isinstance(size, str) else round(20 * math.log10(size), 3) if size else None


METRICS: dict[str, tuple[str, Callable[[Facts], Number | None]]] = {
    "macs": ("MACs", lambda facts: _cost(facts.cost.macs)),
    "bytes": ("bytes read and written", lambda facts: _cost(facts.cost.bytes)),
    "time": ("time, ms", lambda facts: None if facts.time is None else milliseconds(facts.time[0])),
    "own_error": ("own error, dB", lambda facts: _decibels(facts.own)),
    "accumulated_error": ("accumulated error, dB", lambda facts: _decibels(facts.accumulated)),
}
"""By the name that a file gets: what people read, and the number of a layer, None for no colour."""


def node_data(viewed: Viewed) -> dict[str, dict[str, Any]]:
    """By the keys of METRICS, those of which some layer has a number, as JSON has them: the nodes of each graph."""
    names = graph_ids(viewed)
    ids = {graph: node_ids(graph) for graph in names}
    found: dict[str, dict[str, Any]] = {}
    for key, (title, number) in METRICS.items():
        for facts in viewed.layers:
            value = number(facts)
            if value is None:
                continue
            graph = facts.layer.graph
            data = found.setdefault(key, {}).setdefault(names[graph], _empty(title))
            result = {"value": value} | ({"bgColor": _WORST} if isinstance(value, str) else {})
            data["results"][ids[graph][facts.layer]] = result
    for data in (data for graphs in found.values() for data in graphs.values()):
        numbers = [result for result in data["results"].values() if not isinstance(result["value"], str)]
        if len({number["value"] for number in numbers}) == 1:  # no gradient lies between a number and itself
            for number in numbers:
                number["bgColor"] = _WORST
    return found


def _empty(title: str) -> dict[str, Any]:
    return {"name": title, "results": {}, "gradient": [{"stop": stop, "bgColor": colour} for stop, colour in _GRADIENT]}


def beside(path: Path, key: str) -> Path:
    """The file of one of METRICS beside that of the graphs: `model_macs.json` beside `model.json`."""
    return path.with_name(f"{path.stem}_{key}.json")


def write_node_data(viewed: Viewed, path: Path) -> list[Path]:
    """Write a file for each of METRICS that says something beside that of the graphs, each whole or not at all."""
    written = []
    for key, data in node_data(viewed).items():
        target = beside(path, key)
        atomic_write(target, json.dumps(data, allow_nan=False).encode())
        written.append(target)
    return written
