"""Which layers of a graph belong to a part of it, and where its borders are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irrun.ir.graph import Graph, Layer, Value, leading_to
from irrun.ir.structure import topological_order
from irrun.records import dataclass
from irrun.spec.registry import registry
from irrun.tools.extract.places import Place


@dataclass(frozen=True, slots=True)
class Region:
    """Layers of a graph, without Results, and the values that are its outputs."""

    graph: Graph
    layers: frozenset[Layer]
    ends: tuple[Value, ...]

    def borders(self) -> list[Value]:
        """The values that layers of the region read, and its ends, which no layer of it makes, in order."""
        read = [value for layer in self.graph.layers if layer in self.layers for value in layer.inputs if value]
        return list(dict.fromkeys(value for value in (*read, *self.ends) if value.layer not in self.layers))


def closed(graph: Graph, layers: Iterable[Layer], ends: Sequence[Value] | None = None) -> Region:
    """The region of these layers, and of the constants that they read; Parameters that they read are in it, too.

    Its ends are those given, or what somebody outside of it reads; without such, what nobody reads.
    """
    constants = constant_layers(graph)
    kept = {layer for layer in layers if layer.type != "Result"}
    if ends is None:
        # what is made of constants alone is nobody's result
        made = [value for layer in graph.layers if layer in kept - constants for value in layer.outputs]
        living = leading_to(graph.sinks)
        outside = [value for value in made if any(reader in living - kept for reader, _ in value.consumers)]
        loose = [] if outside else [value for value in made if not value.consumers]
        ends = outside + [value for value in loose if value.layer.type != "Parameter"]
        if not ends:
            ends = [value for layer in kept for value in layer.outputs]
    stack = [value.layer for layer in kept for value in layer.inputs if value] + [value.layer for value in ends]
    while stack:
        layer = stack.pop()
        if layer not in kept and (layer in constants or layer.type == "Parameter"):
            kept.add(layer)
            stack += [value.layer for value in layer.inputs if value]
    return Region(graph, frozenset(kept), tuple(ends))


def between(graph: Graph, begins: Sequence[Place], targets: Sequence[Place]) -> Region:
    """The layers from some to others: those that the first lead to, and that lead to the last.

    A layer to begin with is in it, an output of one is what it reads. Without such, it goes back to Parameters and
    variables; without layers to end with, on to the Results. Raises ValueError where no layer is between.
    """
    ends = _ends(graph, targets)
    firsts = [place.layer for place in begins if place.port is None]
    cut = {place.layer.outputs[place.port] for place in begins if place.port is not None}
    before = _before([value.layer for value in ends if value not in cut], cut)
    if begins:
        after = _after([*firsts, *(reader for value in cut for reader, _ in value.consumers)], cut)
        layers = before & after
        if not targets:
            ends = [value for value in ends if value.layer in layers]
        if not layers or not ends:
            where = " or ".join(f"`{place.layer.name}`" for place in begins)
            goal = " or ".join(f"`{place.layer.name}`" for place in targets) or "a Result"
            raise ValueError(f"no way leads from {where} to {goal}")
        ends = [value for value in ends if value.layer in layers]
    else:
        layers = before
    return closed(graph, (layer for layer in layers if not stateful(layer)), ends)


def around(graph: Graph, place: Place, distance: int) -> Region:
    """The layers that are at most `distance` steps from one, against edges and with them."""
    seen = {place.layer}
    front = [place.layer]
    for _ in range(distance):
        reached = [value.layer for layer in front for value in layer.inputs if value]
        reached += [reader for layer in front for value in layer.outputs for reader, _ in value.consumers]
        front = [layer for layer in dict.fromkeys(reached) if layer not in seen and layer.type != "Const"]
        seen.update(front)
    seen &= leading_to(graph.sinks) | {place.layer}
    kept = {layer for layer in seen if layer.type not in ("Result", "Parameter") and not stateful(layer)}
    if not kept:
        raise ValueError(f"there is no layer to compute within {distance} of `{place.layer.name}`")
    return closed(graph, kept)


def whole(graph: Graph) -> Region:
    """All that leads to the Results."""
    ends = _ends(graph, ())
    return closed(graph, (layer for layer in _before([v.layer for v in ends], set()) if not stateful(layer)), ends)


def constant_layers(graph: Graph) -> set[Layer]:
    """The layers that compute of constants alone, the same in every run."""
    found: set[Layer] = set()
    for layer in topological_order(graph):
        if layer.type == "Const":
            found.add(layer)
        elif layer.outputs and layer.inputs and all(value and value.layer in found for value in layer.inputs):
            op = registry().find(layer.type, layer.version)
            if op is not None and op.pure and not layer.bodies:
                found.add(layer)
    return found


def stateful(layer: Layer) -> bool:
    """Whether a layer reads or writes a variable itself."""
    op = registry().find(layer.type, layer.version)
    return op is not None and "state" in op.context


def _ends(graph: Graph, targets: Sequence[Place]) -> list[Value]:
    if not targets:
        return list(dict.fromkeys(value for layer in graph.results for value in layer.inputs if value))
    found: list[Value] = []
    for place in targets:
        if place.layer.type == "Result" or not place.layer.outputs:
            found += [value for value in place.layer.inputs if value]
        elif place.port is None:
            found += place.layer.outputs
        else:
            found.append(place.layer.outputs[place.port])
    return list(dict.fromkeys(found))


def _before(layers: Iterable[Layer], cut: set[Value]) -> set[Layer]:
    """These layers, and all that they are computed of, without what lies before a `cut` and before variables."""
    seen = set(layers)
    stack = list(seen)
    while stack:
        layer = stack.pop()
        if stateful(layer):
            continue
        for value in layer.inputs:
            if value and value not in cut and value.layer not in seen:
                seen.add(value.layer)
                stack.append(value.layer)
    return seen


def _after(layers: Iterable[Layer], cut: set[Value]) -> set[Layer]:
    """These layers, and all that is computed of them."""
    seen = set(layers)
    stack = list(seen)
    while stack:
        for value in stack.pop().outputs:
            if value not in cut:
                for reader, _ in value.consumers:
                    if reader not in seen:
                        seen.add(reader)
                        stack.append(reader)
    return seen
