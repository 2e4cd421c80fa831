"""A model as data: layers with their arrays, bodies and attributes, and as the two files of an IR.

Layers can be left out and changed, which a text could not: so findings are made small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from ir_builder import port

from irrun.spec.dtypes import element_type
from irrun.spec.op import Op
from irrun.spec.registry import registry

Array = np.ndarray[Any, Any]
Ref = tuple[int, int]
"""A layer's number and the number of its output."""

Dims = tuple[int, ...]
"""Declared sizes, -1 for an unknown one."""


@dataclass
class Layer:
    """One layer. `name` is the op's ("Gelu-7"); `array` is that of a constant; `attrs` are texts."""

    name: str
    inputs: list[Ref | None] = field(default_factory=list)
    attrs: dict[str, str] = field(default_factory=dict)
    outputs: list[tuple[str, Dims]] = field(default_factory=list)
    array: Array | None = None
    label: str = ""
    bodies: dict[str, Body] = field(default_factory=dict)

    @property
    def type(self) -> str:
        return self.name.rpartition("-")[0]


@dataclass
class Graph:
    """Layers in an order in which producers come first; Results are layers, too."""

    layers: list[Layer] = field(default_factory=list)

    def add(self, layer: Layer) -> int:
        self.layers.append(layer)
        return len(self.layers) - 1

    def of_type(self, type: str) -> list[int]:
        return [number for number, layer in enumerate(self.layers) if layer.type == type]

    def walk(self) -> list[Layer]:
        """All layers, those of bodies too."""
        bodies = [body.graph for layer in self.layers for body in layer.bodies.values()]
        return [*self.layers, *(layer for graph in bodies for layer in graph.walk())]


@dataclass
class Body:
    """A graph inside a layer; entries of the port maps are attributes, the layers inside by their numbers."""

    graph: Graph
    inputs: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    back_edges: list[tuple[int, int]] = field(default_factory=list)


Feed = dict[str, Array]


@dataclass
class Case:
    """A model, the inputs of one run after the other, and where its constants lie in the .bin.

    `gaps` is a seed of the bytes between them, 0 for none. `threads` and `once` are options of the executor.
    """

    graph: Graph
    feeds: list[Feed]
    kind: str = ""
    gaps: int = 0
    threads: int = 1


@cache
def op_of(name: str) -> tuple[Op, str]:
    """The op and a `version` of the IR that means it."""
    op = registry().ops[name]
    return op, f"opset{registry().opsets(op)[0]}"


def text_of(value: Any) -> str:
    """An attribute as an IR has it."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        return ",".join(map(text_of, value))
    return repr(float(value)) if isinstance(value, float) else str(value)


def save(case: Case, folder: Path) -> Path:
    """Write model.xml and model.bin."""
    path = folder / "model.xml"
    weights = _Weights(case.gaps)
    lines = ['<?xml version="1.0"?>', '<net name="m" version="11">', *_graph(case.graph, weights), "</net>", ""]
    path.write_text("\n".join(lines))
    path.with_suffix(".bin").write_bytes(weights.bytes)
    return path


class _Weights:
    """The .bin: constants behind each other, or with gaps of any length between them."""

    def __init__(self, gaps: int) -> None:
        self._random = np.random.default_rng(gaps) if gaps else None
        self.bytes = b""

    def add(self, array: Array) -> dict[str, str]:
        if self._random is not None:
            self.bytes += b"\xff" * int(self._random.choice([0, 0, 1, 2, 3, 4, 7, 16, 64]))
        offset = len(self.bytes)
        self.bytes += array.tobytes()
        shape = ",".join(map(str, array.shape))
        type = element_type(array.dtype)
        return {"element_type": type, "shape": shape, "offset": str(offset), "size": str(array.nbytes)}


def _graph(graph: Graph, weights: _Weights) -> list[str]:
    lines, edges = ["<layers>"], ["<edges>"]
    for number, layer in enumerate(graph.layers):
        lines += _layer(number, layer, graph, weights)
        for place, source in enumerate(layer.inputs):
            if source is not None:
                start = f'from-layer="{source[0]}" from-port="{len(graph.layers[source[0]].inputs) + source[1]}"'
                edges.append(f'<edge {start} to-layer="{number}" to-port="{place}"/>')
    return [*lines, "</layers>", *edges, "</edges>"]


def _layer(number: int, layer: Layer, graph: Graph, weights: _Weights) -> list[str]:
    op, version = op_of(layer.name)
    type = "Const" if op.type == "Constant" else op.type
    label = layer.label or f"{type}_{number}"
    lines = [f'<layer id="{number}" name={quoteattr(label)} type="{type}" version="{version}">']
    attrs: Mapping[str, str] = layer.attrs if layer.array is None else weights.add(layer.array)
    if attrs:
        lines.append(f"<data {' '.join(f'{key}={quoteattr(value)}' for key, value in attrs.items())}/>")
    first = len(layer.inputs)
    for name, body in layer.bodies.items():
        lines += _maps(name, body, first)
    if layer.inputs:
        sources = [None if ref is None else graph.layers[ref[0]].outputs[ref[1]] for ref in layer.inputs]
        ports = [port(number, *source) for number, source in enumerate(sources) if source is not None]
        lines += ["<input>", *ports, "</input>"]
    if layer.outputs:
        named = layer.label if type == "Parameter" else ""
        ports = [port(first + number, *output, named) for number, output in enumerate(layer.outputs)]
        lines += ["<output>", *ports, "</output>"]
    for name, body in layer.bodies.items():
        lines += [f"<{name}>", *_graph(body.graph, weights), f"</{name}>"]
    return [*lines, "</layer>"]


def _maps(name: str, body: Body, first: int) -> list[str]:
    lines = [f"<{name.replace('body', 'port_map')}>"]
    for tag, entries, base in (("input", body.inputs, 0), ("output", body.outputs, first)):
        for entry in entries:
            own = dict(entry)
            if own["external_port_id"] >= 0:
                own["external_port_id"] += base
            lines.append(f"<{tag} {' '.join(f'{key}={quoteattr(text_of(own[key]))}' for key in own)}/>")
    lines.append(f"</{name.replace('body', 'port_map')}>")
    if body.back_edges:
        edges = [f'<edge from-layer="{start}" to-layer="{end}"/>' for start, end in body.back_edges]
        lines += ["<back_edges>", *edges, "</back_edges>"]
    return lines
