"""The graphs of a model as Model Explorer reads them: nodes in groups by their names, and a graph for each body."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from irrun.diagnostics import clipped
from irrun.files import atomic_write
from irrun.ir.graph import Graph, Layer
from irrun.run.keys import unique
from irrun.tools.viewers.facts import LONGEST, Facts, Number, Viewed, error, milliseconds
from irrun.tools.viewers.scopes import scopes

_BORDERS = {"error": "#d93025", "warning": "#e37400"}
"""Of nodes that diagnostics are about, the worst one."""


def graphs(viewed: Viewed) -> list[dict[str, Any]]:
    """The graphs, that of the model first, as JSON has them."""
    facts = {each.layer: each for each in viewed.layers}
    names = graph_ids(viewed)
    found: list[dict[str, Any]] = []
    for graph, name in names.items():
        ids = node_ids(graph)
        bodies = {layer: [names[body.graph] for body in layer.bodies.values()] for layer in ids}
        found.append({"id": name, "nodes": [_node(viewed, facts[layer], ids, bodies[layer]) for layer in ids]})
    found[0]["groupNodeAttributes"] = {"": _summary(viewed)}
    return found


def node_ids(graph: Graph) -> dict[Layer, str]:
    """What nodes are called: the ids of layers, with a number behind them where a broken file has an id twice."""
    counts: Counter[int] = Counter()
    ids = {}
    for layer in graph.layers:
        counts[layer.id] += 1
        ids[layer] = f"{layer.id}.{counts[layer.id]}" if counts[layer.id] > 1 else str(layer.id)
    return ids


def graph_ids(viewed: Viewed) -> dict[Graph, str]:
    """What graphs are called: as the file, and after it the path of a body. Models that are shown together differ."""
    return dict(_graphs(viewed.model.graph, viewed.path.name or "model"))


def write_graphs(viewed: Viewed, path: Path) -> None:
    """Write the graphs, whole or not at all; Model Explorer wants a name that ends in .json. Raises OSError."""
    collection = {"label": viewed.path.name, "graphs": graphs(viewed)}
    atomic_write(path, json.dumps(collection, allow_nan=False).encode())


def _graphs(graph: Graph, path: str) -> Iterator[tuple[Graph, str]]:
    yield graph, path
    for layer in graph.layers:
        for tag, body in layer.bodies.items():
            yield from _graphs(body.graph, f"{path}/{unique(layer)}/{tag}")


def _node(viewed: Viewed, facts: Facts, ids: Mapping[Layer, str], bodies: list[str]) -> dict[str, Any]:
    layer = facts.layer
    node: dict[str, Any] = {
        "id": ids[layer],
        "label": clipped(layer.type, LONGEST),
        "namespace": "/".join(scopes(layer.name)),
        "subgraphIds": bodies,
        "attrs": _pairs(_attributes(viewed, facts)),
        "incomingEdges": [
            {
                "sourceNodeId": ids[value.layer],
                "sourceNodeOutputId": str(value.index),
                "targetNodeInputId": str(number),
            }
            for number, value in enumerate(layer.inputs)
            if value is not None and value.layer in ids
        ],
        "outputsMetadata": [
            {"id": str(value.index), "attrs": _pairs(_output(value.port.names, type))}
            for value, type in zip(layer.outputs, facts.tensors, strict=True)
        ],
        "inputsMetadata": _inputs(viewed, layer),
    }
    severities = {found.severity for found in facts.diagnostics}
    border = next((colour for severity, colour in _BORDERS.items() if severity in severities), None)
    if border is not None:
        node["style"] = {"backgroundColor": "", "borderColor": border, "hoveredBorderColor": border}
    return node


def _inputs(viewed: Viewed, layer: Layer) -> list[dict[str, Any]]:
    """What the op calls its inputs."""
    inferred = viewed.inference.nodes.get(layer)
    names = () if inferred is None else inferred.op.port_names
    tags = zip(range(len(layer.inputs)), names, strict=False)
    return [{"id": str(number), "attrs": _pairs([("__tensor_tag", name)])} for number, name in tags]


def _output(names: tuple[str, ...], type: str) -> Iterator[tuple[str, Number]]:
    yield "shape", type  # what edges are labelled with
    if names:
        yield "names", ", ".join(names)  # `tensor_name` would be taken for the id of a node in node data


def _attributes(viewed: Viewed, facts: Facts) -> Iterator[tuple[str, Number]]:
    layer, cost = facts.layer, facts.cost
    yield "name", layer.name
    yield "op", cost.op or f"{layer.type} ({layer.version})"
    yield from layer.attributes.items()
    if cost.line:
        yield "line", str(cost.line)
    for found in facts.diagnostics:
        yield found.code, f"{found.message}{f'; help: {found.help}' if found.help else ''}"
    for name, size in (("MACs", cost.macs), ("bytes", cost.bytes), ("rounds", cost.rounds)):
        text = viewed.size(size)
        if text is not None and text != (1 if name == "rounds" else 0):
            yield name, text
    if facts.time is not None:
        yield "time, ms", milliseconds(facts.time[0])
        yield "computed by", facts.time[1]
    if facts.together is not None:
        yield "computed with", facts.together.name
    for name, measured in (("own error", facts.own), ("accumulated error", facts.accumulated)):
        if measured is not None:
            yield name, error(measured)


def _summary(viewed: Viewed) -> dict[str, str]:
    said = {name: f"{value:,}" if isinstance(value, int) else str(value) for name, value in viewed.summary.items()}
    for number, found in enumerate(viewed.loose, 1):
        said[f"{found.code} ({number})"] = clipped(found.message, LONGEST)
    return said


def _pairs(attributes: Iterator[tuple[str, Number]] | list[tuple[str, Number]]) -> list[dict[str, str]]:
    """Attributes as Model Explorer has them, which keeps one of each key."""
    counts: Counter[str] = Counter()
    found: list[dict[str, str]] = []
    for key, value in attributes:
        counts[key] += 1
        number = f" ({counts[key]})" if counts[key] > 1 else ""
        text = f"{value:,}" if isinstance(value, int) else str(value)
        found.append({"key": clipped(f"{key}{number}", LONGEST), "value": clipped(text, LONGEST)})
    return found
