"""A graph as what counts in it: operations with their attributes as values, in an order that only the graph decides.

Ids, the order of the file, offsets and formatting are gone; what two models have in common is looked for in this form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import cache
from typing import Any

import numpy as np

from irrun.check.attributes import FOREIGN
from irrun.ir.graph import Graph, Layer, LayerBody, PortMap
from irrun.ir.layers import tensor_names
from irrun.ir.xml import Element
from irrun.records import dataclass
from irrun.spec.attributes import ELEMENT_TYPE, FLOAT_NUMBER, FLOATS, REQUIRED, SHAPE, Attr
from irrun.spec.op import FLOAT, Op
from irrun.spec.registry import registry


@dataclass(eq=False, slots=True, repr=False)
class Node:
    """A layer in a view.

    `op` is the name of its op, or its type and version where there is none. `inputs` are the nodes that it reads, each
    with the number of its output; `readers`, by output, the nodes that read it, each with the number of the input.
    `entry` is how a Parameter or Result of a body is mapped. `number` is its place in the order of the view.
    """

    layer: Layer
    op: str
    found: Op | None
    attributes: dict[str, Any]
    inputs: list[tuple[Node, int] | None] = field(default_factory=list)
    readers: list[list[tuple[Node, int]]] = field(default_factory=list)
    bodies: dict[str, View] = field(default_factory=dict)
    entry: tuple[Any, ...] = ()
    number: int = -1
    constant: bool = False

    @property
    def type(self) -> str:
        return self.found.type if self.found else self.layer.type

    @property
    def is_const(self) -> bool:
        return self.layer.type == "Const"


@dataclass(eq=False, slots=True, repr=False)
class View:
    """The nodes of a graph, producers before their readers: the order in which the Results need them.

    `path` are the layers and bodies that it lies in.
    """

    graph: Graph
    nodes: list[Node]
    parameters: list[Node]
    results: list[Node]
    path: tuple[str, ...] = ()

    def in_order(self, nodes: Sequence[Node]) -> list[Node]:
        """Nodes of the view as they are; Parameters and Results in the order in which the model has them."""
        if nodes and nodes[0].layer.type in ("Parameter", "Result"):
            chosen = set(nodes)
            return [node for node in (*self.parameters, *self.results) if node in chosen]
        return list(nodes)

    def walk(self) -> Iterator[Node]:
        """All nodes, those of bodies behind the one that owns them."""
        for node in self.nodes:
            yield node
            for body in node.bodies.values():
                yield from body.walk()


Normalize = Callable[[Attr, Any], Any]
"""What an attribute with a value counts as."""


def view_of(graph: Graph, normalize: Normalize | None = None, body: LayerBody | None = None) -> View:
    """The view of a graph, or of one that is the `body` of a layer."""
    made = {layer: _node(layer, normalize) for layer in graph.layers}
    for layer, node in made.items():
        node.readers = [[] for _ in layer.outputs]
    for layer, node in made.items():
        for number, value in enumerate(layer.inputs):
            source = None if value is None else made.get(value.layer)
            node.inputs.append(None if value is None or source is None else (source, value.index))
            if value is not None and source is not None:
                source.readers[value.index].append((node, number))
        for tag, inner in layer.bodies.items():
            node.bodies[tag] = view_of(inner.graph, normalize, inner)
    if body is not None:
        _map(made, body)
    parameters = [made[layer] for layer in graph.parameters]
    results = [made[layer] for layer in graph.results]
    if body is not None:
        parameters.sort(key=lambda node: node.entry)
        results.sort(key=lambda node: node.entry)
    nodes = _ordered(made.values(), results)
    for number, node in enumerate(nodes):
        node.number = number
        sources = [source for source in node.inputs if source is not None]
        node.constant = node.is_const or (
            bool(sources)
            and len(sources) == len(node.inputs)
            and all(source.constant for source, _ in sources)
            and bool(node.layer.outputs)
            and not node.bodies
        )
    return View(graph, nodes, parameters, results, path_of(graph))


def path_of(graph: Graph) -> tuple[str, ...]:
    """The layers and bodies that a graph lies in."""
    inside: list[str] = []
    while graph.owner is not None:
        inside = [graph.owner.name, graph.element.tag, *inside]
        graph = graph.owner.graph
    return tuple(inside)


def _map(made: dict[Layer, Node], body: LayerBody) -> None:
    """Say of the Parameters and Results of a body what they stand for."""
    for entry in body.inputs:
        made[entry.internal].entry = _entry(entry)
    for entry in body.outputs:
        made[entry.internal].entry = (*made[entry.internal].entry, *_entry(entry))
    for edge in body.back_edges:
        start = made[edge.parameter].entry
        made[edge.result].entry = (*made[edge.result].entry, "next", *start)


def _entry(entry: PortMap) -> tuple[Any, ...]:
    place = f"{entry.element.tag} {entry.external:06}"  # which sorts as the number does
    if entry.axis is None:
        return place, entry.purpose, ""
    sliced = f"axis={entry.axis} start={entry.start} end={entry.end} stride={entry.stride} part_size={entry.part_size}"
    return place, entry.purpose, sliced


def entry_text(node: Node) -> str:
    """How a Parameter or Result of a body is mapped, in words."""
    if not node.entry:
        return "nothing"
    words = " ".join(str(part) for part in node.entry if part != "")
    return re.sub(r"\b(input|output) (-?)0*(\d+)", _numbered, words)


def _numbered(found: re.Match[str]) -> str:
    return f"no {found[1]}" if found[2] else f"{found[1]} {found[3]}"


def _node(layer: Layer, normalize: Normalize | None) -> Node:
    op = registry().find(layer.type, layer.version)
    texts = {} if layer.type == "Const" else layer.attributes
    key = tuple(texts.items())
    name = op.name if op else f"{layer.type}@{layer.version}"
    values = _values(op, key) if op is None or not op.has_shape_attr else _values.__wrapped__(op, key)
    if normalize and op:
        kinds = {attr.name: attr for attr in op.attrs}
        values = {name: normalize(kinds[name], value) if name in kinds else value for name, value in values.items()}
    return Node(layer, name, op, values)


@cache
def _values(op: Op | None, texts: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """Attributes as values that are equal where they mean the same, with the defaults of those that are not given."""
    given = {name: text for name, text in texts if name not in FOREIGN}
    if op is None:
        return dict(sorted(given.items()))
    values: dict[str, Any] = {}
    for attr in op.attrs:
        text = given.pop(attr.name, None)
        if text is not None:
            values[attr.name] = _value(attr, text)
        elif attr.default is not REQUIRED:
            values[attr.name] = _plain(attr, attr.default)
    return values | dict(sorted(given.items()))


def _value(attr: Attr, text: str) -> Any:
    try:
        value = attr.parse(text)
    except ValueError:
        return text
    if attr.kind is SHAPE:
        bare = "".join(text.split()).removeprefix("[").removesuffix("]")
        return ",".join("?" if size == "-1" else size for size in bare.split(","))
    return _plain(attr, value)


def _plain(attr: Attr, value: Any) -> Any:
    """Floats as they are in 32 bits: some writers print all digits of these, others the shortest text."""
    if attr.kind is FLOAT_NUMBER and isinstance(value, int | float):
        return _single(value)
    if attr.kind is FLOATS and value is not None:
        return tuple(map(_single, value))
    return tuple(value) if isinstance(value, list) else value


def _single(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(str(np.float32(value)))


def normalizing(ignored: frozenset[str]) -> Normalize | None:
    """What attributes count as where some aspects are `ignored`: "precision", "shapes", "names"."""
    if not ignored & {"precision", "shapes", "names"}:
        return None

    def normalize(attr: Attr, value: Any) -> Any:
        if attr.kind is ELEMENT_TYPE and "precision" in ignored and value in FLOAT:
            return "float"
        if attr.kind is SHAPE and "shapes" in ignored:
            return None
        return None if attr.name == "variable_id" and "names" in ignored else value

    return normalize


def _ordered(nodes: Iterable[Node], results: list[Node]) -> list[Node]:
    """All nodes behind those that they read: for the Results one by one, then for what else nobody reads."""
    rest = [node for node in nodes if not any(node.readers)]
    others = sorted((node for node in rest if node.layer.type != "Result"), key=_spelling)
    ordered: list[Node] = []
    seen: set[Node] = set()
    for root in (*results, *others):
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, iter(root.inputs))]
        while stack:
            node, sources = stack[-1]
            for source in sources:
                if source is not None and source[0] not in seen:
                    seen.add(source[0])
                    stack.append((source[0], iter(source[0].inputs)))
                    break
            else:
                stack.pop()
                ordered.append(node)
    return ordered


def _spelling(node: Node) -> tuple[str, ...]:
    sources = [f"{source[0].type}:{source[0].layer.name}" for source in node.inputs if source]
    return node.layer.attributes.get("variable_id", ""), node.type, node.layer.name, *sources


def outer_names(node: Node) -> set[str]:
    """The names of an input, or of an output: those of the Result and of the tensor that it reads."""
    own = set(tensor_names(node.layer.attributes.get("output_names", "")))
    source = node.inputs[0] if node.inputs else None
    values = node.layer.outputs if source is None else [source[0].layer.outputs[source[1]]]
    return own.union(*(value.port.names for value in values))


def runtime_info(element: Element | None, prefix: str = "") -> dict[str, str]:
    """What an <rt_info> says, by the path of each value in it."""
    found: dict[str, str] = {}
    pending = [(prefix, element)] if element is not None else []
    while pending:
        above, parent = pending.pop()
        for child in parent.children:
            given = dict(child.attributes)
            name = given.pop("name", "") if child.tag in ("attribute", "info") else ""
            where = f"{above}{name or child.tag}"
            if list(given) in (["value"], []):
                if given or not child.children:
                    found[where] = given.get("value", "")
            else:
                found |= {f"{where}.{key}": value for key, value in given.items()}
            pending.append((f"{where}.", child))
    return dict(sorted(found.items()))
