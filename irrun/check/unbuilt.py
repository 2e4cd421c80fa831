"""Layers that reach no Result and no Assign: OpenVINO does not build them, whatever is wrong with them."""

from __future__ import annotations

from dataclasses import replace

from irrun.diagnostics import Diagnostic
from irrun.ir.graph import Graph, Layer, leading_to
from irrun.spec.registry import registry
from irrun.spelling import close_matches


class Unbuilt:
    """Which layers are not built.

    What leads to a layer that may be meant to end its graph counts as built, and so does all of one that lacks edges.
    """

    def __init__(self) -> None:
        self._alive: dict[Graph, set[Layer]] = {}

    def holds(self, layer: Layer) -> bool:
        """Whether it, or the layer that it is inside of, is not built."""
        graph: Graph | None = layer.graph
        while graph is not None:
            if layer.type != "Parameter" and layer not in self._reached(graph):
                return True
            if graph.owner is None:
                return False
            layer, graph = graph.owner, graph.owner.graph
        return False

    def _reached(self, graph: Graph) -> set[Layer]:
        if graph not in self._alive:
            whole = bool(graph.sinks) and not any(None in layer.inputs for layer in graph.layers)
            ends = [*graph.sinks, *filter(_may_be_a_sink, graph.layers)] if whole else graph.layers
            self._alive[graph] = leading_to(ends)
        return self._alive[graph]


def _may_be_a_sink(layer: Layer) -> bool:
    """Whether a layer is of no known type, and has no outputs or is spelt nearly as a Result or an Assign."""
    if registry().versions(layer.type):
        return False
    return not layer.outputs or bool(close_matches(layer.type, ("Result", "Assign")))


def as_unbuilt(diagnostic: Diagnostic) -> Diagnostic:
    """An error of a layer that is not built as the warning that it is."""
    if diagnostic.severity != "error":
        return diagnostic
    message = f"nothing reads the layer, so OpenVINO passes over it: {diagnostic.message}"
    return replace(diagnostic, message=message, ignored=True)
