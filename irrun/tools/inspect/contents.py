"""The layers of a model with what inference knows of them: by path, in order, and which are constant.

Says nothing of what they cost or take; the modules beside it do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from functools import cached_property

from irrun.check.infer import Inference, InferredLayer
from irrun.ir.graph import Graph, Layer, Model, Value
from irrun.ir.structure import topological_order
from irrun.ir.weights import Blob, WeightsError, read_blob
from irrun.records import dataclass
from irrun.spec.dims import Size, product
from irrun.spec.dtypes import ELEMENT_TYPES
from irrun.spec.op import Tensor


@dataclass(eq=False)
class Contents:
    """A model and what is known of it; layers that could not be inferred have no node."""

    model: Model
    inference: Inference
    _bytes: dict[Value, Size | None] = field(default_factory=dict, repr=False)

    def node(self, layer: Layer) -> InferredLayer | None:
        return self.inference.nodes.get(layer)

    def tensor(self, value: Value | None) -> Tensor:
        return self.inference.tensor(value)

    def bytes(self, value: Value | None) -> Size | None:
        """The bytes of a tensor, as `bytes_of` says."""
        if value is None:
            return None
        if value not in self._bytes:
            self._bytes[value] = bytes_of(self.tensor(value))
        return self._bytes[value]

    def blob(self, layer: Layer) -> Blob | None:
        """What the .bin has of a Const; what its attributes say where there is no .bin, or it is too short."""
        checked = self.inference.weights.checked(layer)
        if checked is None and {"offset", "size"} <= layer.attributes.keys():
            with suppress(WeightsError):
                return read_blob(layer.attributes)
        return checked

    def ordered(self, graph: Graph) -> list[Layer]:
        """The layers of one graph, each after those that it reads: as the file has them, if it has them so.

        Cyclic ones, which are reported, are at the end.
        """
        seen: set[Layer] = set()
        for layer in graph.layers:
            seen.add(layer)
            if any(value is not None and value.layer not in seen for value in layer.inputs):
                order = topological_order(graph)
                missing = set(graph.layers) - set(order)
                return [*order, *(layer for layer in graph.layers if layer in missing)]
        return graph.layers

    @cached_property
    def paths(self) -> Mapping[Layer, str]:
        """Where each layer is, in the order of the file: its name, for layers of bodies `loop/body/name`."""
        return dict(_paths(self.model.graph, ""))

    @cached_property
    def stored(self) -> Mapping[Layer, int]:
        """The bytes of the .bin that the results of each layer come of, for those that come of nothing else."""
        found: dict[Layer, int] = {}
        for layer in (layer for graph in _graphs(self.model.graph) for layer in self.ordered(graph)):
            node = self.node(layer)
            blob = self.blob(layer)
            if blob is not None:
                found[layer] = blob.end - blob.offset
            elif node is not None and node.op.pure and layer.inputs and not layer.bodies:
                producers = {value.layer for value in layer.inputs if value is not None}
                if producers and producers <= found.keys():
                    found[layer] = sum(found[producer] for producer in producers)
        return found


def _graphs(graph: Graph) -> Iterator[Graph]:
    yield graph
    for layer in graph.layers:
        for body in layer.bodies.values():
            yield from _graphs(body.graph)


def _paths(graph: Graph, before: str) -> Iterator[tuple[Layer, str]]:
    for layer in graph.layers:
        path = f"{before}{layer.name}"
        yield layer, path
        for tag, body in layer.bodies.items():
            yield from _paths(body.graph, f"{path}/{tag}/")


def bytes_of(tensor: Tensor) -> Size | None:
    """The bytes of a tensor as a file packs it; None where its rank or type is unknown, and of strings."""
    bits = ELEMENT_TYPES[tensor.type].bits if tensor.type in ELEMENT_TYPES else 0
    if tensor.shape is None or not bits:
        return None
    elements = product(tensor.shape)
    if bits % 8 == 0:
        return elements * (bits // 8)
    total: Size = (elements * bits + 7) // 8
    return total
