"""What a graph as a whole must be: free of cycles, with results that its layers reach, and unambiguous names."""

from __future__ import annotations

from collections import deque

from irrun.diagnostics import Note
from irrun.ir.findings import Findings, whole_number
from irrun.ir.graph import Graph, Layer, Value, leading_to
from irrun.ir.layers import tensor_names
from irrun.spec.registry import registry
from irrun.spelling import listed

MAX_CYCLES = 100
"""Cycles of a graph that are reported; the search for the next one may go through all of it."""

MAX_COUNTED = 20
"""Layers that nothing reads for which it is said how many others feed only them."""

_NAMED = 8
"""The layers of a cycle that a message names; the other ones are counted."""


def topological_order(graph: Graph) -> list[Layer]:
    """The layers, each after those that it reads; without those on a cycle and what depends on them."""
    return _Sorting(graph).order


class _Sorting:
    """Kahn's algorithm, which can go on after a cycle was taken out."""

    def __init__(self, graph: Graph) -> None:
        self.order: list[Layer] = []
        self.waiting = {layer: len(layer.inputs) - layer.inputs.count(None) for layer in graph.layers}
        self._advance(deque(layer for layer, count in self.waiting.items() if not count))

    def _advance(self, ready: deque[Layer]) -> None:
        waiting = self.waiting
        while ready:
            layer = ready.popleft()
            if waiting.pop(layer, None) is None:
                continue
            self.order.append(layer)
            for value in layer.outputs:
                for consumer, _ in value.consumers:
                    left = waiting.get(consumer)
                    if left is not None:
                        waiting[consumer] = left - 1
                        if left == 1:
                            ready.append(consumer)

    def take_cycle(self) -> list[Layer]:
        """A cycle among the layers that are left, from its first layer in the file on, in the direction of the data."""
        layer = next(iter(self.waiting))
        seen: dict[Layer, None] = {}
        while layer not in seen:
            seen[layer] = None
            layer = next(value.layer for value in layer.inputs if value and value.layer in self.waiting)
        walked = list(seen)
        cycle = walked[walked.index(layer) :][::-1]
        places = {layer: number for number, layer in enumerate(self.waiting)}
        first = cycle.index(min(cycle, key=places.__getitem__))
        cycle = cycle[first:] + cycle[:first]
        self._advance(deque(cycle))
        return cycle


def check_structure(graph: Graph, findings: Findings, *, connected: bool) -> None:
    """Report what is wrong with the graph; unreachable layers only where all are `connected` as they should be."""
    cyclic = not _in_order(graph) and _report_cycles(graph, findings)
    graph.unsure |= cyclic
    _warn_of_names(graph, findings)
    if not graph.sinks and _may_have_a_sink(graph, connected):  # which is reported
        return
    if not graph.sinks:
        _take_for_results(graph, findings)
    if not graph.sinks and (graph.layers or graph.element.find("layers") is not None):
        what = f"the {graph.element.tag}" if graph.owner else "the model"
        help = (
            "end what is to be returned in a layer of type `Result`; OpenVINO loads such a model, but it does nothing"
        )
        findings.add("E212", f"{what} has no Result", graph.element, graph=graph, help=help)
    elif connected and not cyclic:
        _warn_of_unreachable(graph, findings)


def _take_for_results(graph: Graph, findings: Findings) -> None:
    """Take layers that have the form of a Result for that, in a graph that has none, which is reported there."""
    for layer in graph.layers:
        if len(layer.input_ports) == 1 and not layer.outputs and not layer.attributes:
            message = f"the type is `{layer.type}`, but the layer ends the graph, which has no Result"
            help = "write `Result`; OpenVINO loads a model without one, but it does nothing"
            findings.add("E212", message, layer.element, "type", layer=layer, help=help)
            layer.type = "Result"


def _may_have_a_sink(graph: Graph, connected: bool) -> bool:
    """Whether what ends the graph may be a layer of no known type, or one that edges name and that is not there."""
    known = registry()
    ends = [layer for layer in graph.layers if layer.input_ports and not layer.outputs]
    return any(not known.versions(layer.type) for layer in ends) or (not connected and lacks_layers(graph))


def lacks_layers(graph: Graph) -> bool:
    """Whether edges name layers that are not there, which is reported."""
    ids, edges = {layer.id for layer in graph.layers}, graph.element.find("edges")
    ends = [
        whole_number(edge.attributes.get(name, ""))
        for edge in (edges.children if edges is not None else ())
        for name in ("from-layer", "to-layer")
    ]
    return not ids.issuperset(end for end in ends if end is not None)


def _in_order(graph: Graph) -> bool:
    """Whether each layer stands behind those that it reads, as in nearly all files."""
    seen: set[Layer] = set()
    for layer in graph.layers:
        for value in layer.inputs:
            if value is not None and value.layer not in seen:
                return False
        seen.add(layer)
    return True


def _report_cycles(graph: Graph, findings: Findings) -> bool:
    """Whether there are any."""
    sorting = _Sorting(graph)
    cyclic = bool(sorting.waiting)
    for _ in range(MAX_CYCLES):
        if not sorting.waiting:
            break
        _report_cycle(sorting.take_cycle(), findings)
    return cyclic


def _report_cycle(cycle: list[Layer], findings: Findings) -> None:
    names = [str(layer) for layer in cycle[:_NAMED]]
    if len(cycle) > _NAMED:
        names.append(f"{len(cycle) - _NAMED} more")
    first, last = cycle[0], cycle[-1]
    number = next(n for n, value in enumerate(first.inputs) if value and value.layer is last)
    edge = first.input_edges[number]
    message = f"the layers depend on each other in a cycle: {' -> '.join([*names, names[0]])}"
    notes = tuple(Note(f"layer {layer}", layer.span) for layer in cycle[:_NAMED])
    help = "a loop is written as a Loop or TensorIterator layer, whose body has back edges"
    findings.add("E209", message, edge or first.element, layer=first, help=help, notes=notes)


def _warn_of_names(graph: Graph, findings: Findings) -> None:
    _warn_of_output_names(graph, findings)
    for layer in graph.layers:
        if layer.outputs and layer.type == "Result":
            _report_outputs(layer, findings)
    names = [layer.name for layer in graph.layers if layer.name]
    of_tensors = [name for layer in graph.layers for value in layer.outputs for name in value.port.names]
    if any(name != name.strip() for name in of_tensors):
        _warn_of_blanks(graph, findings)
    told = _collisions(graph, findings) if findings.version == 10 and graph.owner is None else set()
    if len(set(names)) < len(names) or len(set(of_tensors)) < len(of_tensors):
        _warn_of_shared_names(graph, findings, told)


def _warn_of_blanks(graph: Graph, findings: Findings) -> None:
    """Report names of tensors that begin or end with a blank, which is part of them."""
    for layer in graph.layers:
        for value in layer.outputs:
            odd = next((name for name in value.port.names if name.strip() not in (name, "")), None)
            if odd is not None:
                message = f"the name of the tensor is `{odd}`, with the blank"
                help = f"write `{odd.strip()}`: OpenVINO takes blanks around commas for parts of names"
                findings.add("W917", message, value.port.element, "names", layer=layer, help=help)


def _collisions(graph: Graph, findings: Findings) -> set[Layer]:
    """The layers whose names cannot become those of inputs and outputs, as they do of files of version 10; reported."""
    inputs = [layer.outputs[0] for layer in graph.parameters if layer.outputs]
    outputs: list[Value] = []
    seen = set(inputs)
    for result in graph.results:
        value = result.inputs[0] if result.inputs else None
        if value is not None and value.port.names and value in seen:
            which = "an input" if value.layer.type == "Parameter" else "another output"
            message = f"`{value.port.names[0]}` would be the name of this output, but is that of {which}"
            help = "delete the names of the port; in version 10 OpenVINO refuses files where two of these have one name"
            notes = (Note("what both are", value.port.element.span),)
            findings.add("E223", message, result.element, layer=result, notes=notes, help=help)
        if value is not None:
            outputs.append(value)
            seen.add(value)
    taken: dict[str, Value] = {}
    for value in (*inputs, *outputs):
        for name in value.port.names:
            taken.setdefault(name, value)
    found: dict[Value, Layer] = {}
    for value in (*outputs, *inputs):
        layer, name = value.layer, value.layer.name
        if len(layer.outputs) > 1:
            name = f"{name}.{value.index}"
        other = taken.setdefault(name, value) if layer.name else value
        if other is value or value in found:
            continue
        found[value] = layer
        kind = "input" if layer.type == "Parameter" else "output"
        message = f"`{name}` would be the name of this {kind}, but is one of what layer {other.layer} gives"
        help = (
            "make them differ; in version 10 layers give inputs and outputs their names, and OpenVINO refuses the file"
        )
        notes = (Note("the other one", other.port.element.span),)
        findings.add("E223", message, layer.element, "name", layer=layer, notes=notes, help=help)
    return {*found.values()}


def _warn_of_shared_names(graph: Graph, findings: Findings, told: set[Layer]) -> None:
    """Report names that several layers, or tensors, have, but for layers of which it is `told` already, and for two of
    one id, which may be one layer, or one port, that is there twice."""
    layers: dict[str, Layer] = {}
    values: dict[str, Value] = {}
    for layer in graph.layers:
        if layer.name:
            first = layers.setdefault(layer.name, layer)
            if first is not layer and first.id != layer.id and not told & {first, layer}:
                notes = (Note(f"layer {first} has it, too", first.span),)
                message = f"two layers are named `{layer.name}`"
                help = "outputs and messages go by names; make them differ"
                findings.add("W903", message, layer.element, "name", layer=layer, notes=notes, help=help)
        for value in layer.outputs:
            shared: dict[Value, list[str]] = {}
            for name in value.port.names:
                other = values.setdefault(name, value)
                twice = other.layer.id == layer.id and (other.layer is not layer or other.port.id == value.port.id)
                twice |= bool(told & {layer, other.layer})
                if other is not value and not twice and not _is_repeated_inside(value, other, graph):
                    shared.setdefault(other, []).append(name)
            for other, names in shared.items():
                notes = (Note(f"layer {other.layer} gives it, too", other.port.element.span),)
                kept = addressed(value, graph) and not addressed(other, graph)
                help = f"make them differ; OpenVINO renames the {'first' if kept else 'second'} to `{names[0]}_1`"
                message = f"two tensors are named {listed([*dict.fromkeys(names)])}"
                findings.add("W906", message, value.port.element, "names", layer=layer, notes=notes, help=help)


def _warn_of_output_names(graph: Graph, findings: Findings) -> None:
    """Report the names that two Results of the model have for different tensors."""
    first: dict[str, Layer] = {}
    for layer in graph.results if graph.owner is None else ():
        for name in tensor_names(layer.attributes.get("output_names", "")):
            other = first.setdefault(name, layer)
            known = None not in (*other.inputs, *layer.inputs)  # else they may read one tensor
            if other is not layer and known and other.inputs != layer.inputs:
                notes = (Note(f"layer {other} has it, too", other.span),)
                help = "make them differ; a program that asks for the name gets one of them"
                message = f"two outputs are named `{name}`"
                findings.add("W906", message, layer.element, "output_names", layer=layer, notes=notes, help=help)


def _report_outputs(layer: Layer, findings: Findings) -> None:
    """Report the outputs of a Result; one that nobody reads has every file of the converters that wrote version 10.

    One that has not one input is none, which is reported; nor is one that has attributes.
    """
    if len(layer.input_ports) != 1:
        return
    read = [(reader, number) for value in layer.outputs for reader, number in value.consumers]
    if read and layer.data and layer.data.attributes:
        message = "a Result ends the graph, and has no attributes: this layer has, and others read what it gives"
        help = "the type is wrong: write that of the op which has these attributes"
        notes = tuple(Note(f"layer {reader} reads it", reader.span) for reader, _ in read[:_NAMED])
        findings.add("E206", message, layer.element, "type", layer=layer, help=help, notes=notes)
        layer.broken = True
        return
    if read:
        edges = [(reader, reader.input_edges[number] or layer.element) for reader, number in read]
        (reader, edge), rest = edges[0], edges[1 : _NAMED + 1]
        message = f"layer {layer} has no outputs: it ends the graph"
        help = "let the edge begin where that of the Result begins, or write the type that is meant"
        notes = tuple(Note("so does this edge", other.span) for _, other in rest)
        findings.add("E206", message, edge, "from-layer", layer=reader, help=help, notes=notes)
    if not read and len(layer.outputs) == 1 and findings.version > 10:
        message = "a Result has no output, but this one declares a port"
        help = "delete the <output>; OpenVINO ignores it, other readers may take it for one of the graph's tensors"
        findings.add("W945", message, layer.outputs[0].port.element, layer=layer, help=help)


def _is_repeated_inside(value: Value, other: Value, graph: Graph) -> bool:
    """Whether one of two tensors has a name of the other besides its own, and nobody is to ask for it by that.

    Exporters give inner tensors the names of inputs; and names within bodies are nobody's business.
    """
    if graph.owner is not None:
        return len(value.port.names) > 1 or len(other.port.names) > 1
    inputs = [each.layer.type == "Parameter" for each in (value, other)]
    inner = other if inputs[0] else value
    return any(inputs) and len(inner.port.names) > 1 and not addressed(inner, graph)


def addressed(value: Value, graph: Graph) -> bool:
    """Whether the tensor is an input or an output of the model, so that a program asks for it by name."""
    inside = value.layer.type != "Parameter" and not any(layer.type == "Result" for layer, _ in value.consumers)
    return graph.owner is None and not inside


def _loose(layer: Layer) -> bool:
    return layer.type == "Const" and not any(value.consumers for value in layer.outputs)


def _warn_of_unreachable(graph: Graph, findings: Findings) -> None:
    """One warning for each layer that nothing reads; those that only feed it are counted with it."""
    alive = leading_to(graph.sinks)
    if len(alive) == len(graph.layers):
        return
    # a Parameter is an input all the same, and OpenVINO itself leaves Consts behind that nothing reads
    harmless = {layer for layer in graph.layers if layer.type == "Parameter" or _loose(layer)}
    dead = {layer for layer in graph.layers if layer not in alive and layer not in harmless}
    counted = 0
    for layer in graph.layers:
        if layer in dead and not any(value.consumers for value in layer.outputs):
            counted += 1
            feeding = _feeding(layer, dead) if counted <= MAX_COUNTED else 0
            what = f", nor do the {feeding} that feed only such layers" if feeding > 1 else ""
            what = ", nor does the one that feeds it" if feeding == 1 else what
            message = f"the layer reaches no Result or Assign{what}"
            help = "delete it, or connect it; OpenVINO does not even build it"
            findings.add("W904", message, layer.element, layer=layer, help=help)


def _feeding(layer: Layer, dead: set[Layer]) -> int:
    seen, stack = {layer}, [layer]
    while stack:
        for value in stack.pop().inputs:
            if value and value.layer in dead and value.layer not in seen:
                seen.add(value.layer)
                stack.append(value.layer)
    return len(seen) - 1
