"""Variables by their names alone: which ReadValues and Assigns of a graph have no partner in it, or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irrun.diagnostics import Note
from irrun.ir.findings import Findings
from irrun.ir.graph import Graph, Layer
from irrun.ir.structure import lacks_layers
from irrun.spelling import close_matches

_Named = Mapping[str, Sequence[Layer]]
"""Layers by the variable that they read or store."""


def check_pairs(main: Graph, findings: Findings) -> None:
    """Report variables that are stored but never read, or read but never stored, in the same graph; each graph has its
    own, so of two partners in different ones that which stores is reported."""
    graphs = [main]
    for graph in graphs:
        graphs += [body.graph for layer in graph.layers for body in layer.bodies.values()]
    sides = {graph: (_by_variable("ReadValue", graph), _by_variable("Assign", graph)) for graph in graphs}
    read = {name: layers for reads, _ in sides.values() for name, layers in reads.items()}
    stored = {name: layers for _, stores in sides.values() for name, layers in stores.items()}
    for graph, (reads, stores) in sides.items():
        if reads or stores:
            _check_graph(graph, reads, stores, read, stored, findings)


def _check_graph(
    graph: Graph, read: _Named, stored: _Named, read_anywhere: _Named, stored_anywhere: _Named, findings: Findings
) -> None:
    if "" in read or "" in stored:
        return  # which is reported, and may be the partner
    strange = [layer for layer in graph.layers if layer.type not in ("ReadValue", "Assign")]
    either = {layer.attributes.get("variable_id") for layer in strange}  # which may be the partner, and is reported
    lost = stored.keys() != read.keys() and lacks_layers(graph)
    for name, layers in stored.items():
        for layer in layers[1:]:
            if layer.id == layers[0].id:  # which is reported: it may be there twice
                continue
            notes = (Note(f"layer {layers[0]} stores it, too", layers[0].span),)
            message = f"variable `{name}` is stored twice"
            help = "store it once; which of the two counts depends on the order in which they happen to run"
            _at_variable("W912", message, layer, findings, help, notes)
        if name not in read and name not in either and not lost:
            close = close_matches(name, read)
            help = (
                f"did you mean `{close[0]}`?" if close else "add a ReadValue of that variable_id, or delete the layer"
            )
            message = f"variable `{name}` is stored, but no ReadValue reads it"
            others = tuple(
                Note(f"layer {layer} reads it, but in another graph, which has variables of its own", layer.span)
                for layer in read_anywhere.get(name, ())
            )
            _at_variable("E219", message, layers[0], findings, help, others)
    twice = any(len(layers) > 1 for layers in stored.values())
    if not stored.keys() - read.keys() - either and not twice:  # a misspelt one would be reported twice
        alone = read.keys() - stored_anywhere.keys() - either
        for name in () if lost else alone:
            help = "add an Assign of that variable_id; without one the layer always gives its initial value"
            _at_variable("W911", f"variable `{name}` is read, but no Assign stores it", read[name][0], findings, help)


def _by_variable(type: str, graph: Graph) -> dict[str, list[Layer]]:
    found: dict[str, list[Layer]] = {}
    for layer in graph.layers:
        if layer.type == type:
            found.setdefault(layer.attributes.get("variable_id", ""), []).append(layer)
    return found


def _at_variable(
    code: str, message: str, layer: Layer, findings: Findings, help: str, notes: tuple[Note, ...] = ()
) -> None:
    assert layer.data  # that is where its variable_id is from
    findings.add(code, message, layer.data, "variable_id", layer=layer, help=help, notes=notes)
