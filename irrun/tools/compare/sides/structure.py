"""What a graph looks like around each of its tensors, whatever layers are called and however they are numbered."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from hashlib import blake2b
from typing import Any

from irrun.ir.graph import Graph, Layer
from irrun.records import NamedTuple


def ordered(graph: Graph) -> list[Layer]:
    """The layers, each behind those that it reads."""
    found: dict[Layer, None] = {}
    for last in graph.layers:
        stack = [(last, iter(last.inputs))]
        open = {last}
        while stack:
            layer, inputs = stack[-1]
            source = next((value.layer for value in inputs if value is not None and value.layer not in found), None)
            if source is None:
                stack.pop()
                found[layer] = None
            elif source not in open:
                open.add(source)
                stack.append((source, iter(source.inputs)))
    return list(found)


class Surrounding(NamedTuple):
    """What a tensor is made of, and what reads it."""

    up: Hashable
    down: Hashable


class Surroundings:
    """What a graph looks like around each tensor: a hash of all that it is made of, and one of all that reads it.

    Constants, and what is made of them alone, look like their sizes: weights may have been converted.
    """

    def __init__(self, layers: list[Layer]) -> None:
        parameters = [layer for layer in layers if layer.type == "Parameter"]
        numbers = {layer: number for number, layer in enumerate(sorted(parameters, key=_place))}
        results = [layer for layer in layers if layer.type == "Result"]
        numbers |= {layer: number for number, layer in enumerate(sorted(results, key=_place))}
        fixed: set[Layer] = set()
        up: dict[Layer, str] = {}
        for layer in layers:
            if layer.type != "Parameter" and all(value is not None and value.layer in fixed for value in layer.inputs):
                fixed.add(layer)
                up[layer] = _hash("fixed", [value.port.dims for value in layer.outputs])
            else:
                sources = [None if v is None else (v.index, up.get(v.layer)) for v in layer.inputs]
                up[layer] = _hash(_title(layer, numbers), sources)
        down: dict[Layer, str] = {}
        for layer in reversed(layers):
            read = [
                sorted((str(down.get(reader)), number) for reader, number in value.consumers) for value in layer.outputs
            ]
            title = (
                ("fixed", [value.port.dims for value in layer.outputs]) if layer in fixed else _title(layer, numbers)
            )
            down[layer] = _hash(title, read)
        self.found = {
            value: Surrounding((up[value.layer], value.index), (down[value.layer], value.index, value.port.dims))
            for layer in layers
            for value in layer.outputs
        }


def _place(layer: Layer) -> int:
    return layer.graph.layers.index(layer)


def _title(layer: Layer, numbers: Mapping[Layer, int]) -> Hashable:
    """What a layer is, but for its name; Parameters and Results are told apart by their order."""
    if layer in numbers:
        return layer.type, numbers[layer]
    attributes = sorted((name, re.sub(r"\s+", "", text)) for name, text in layer.attributes.items())
    return layer.type, tuple(attributes), len(layer.outputs)


def _hash(*parts: Any) -> str:
    return blake2b(repr(parts).encode(errors="surrogatepass"), digest_size=16).hexdigest()
