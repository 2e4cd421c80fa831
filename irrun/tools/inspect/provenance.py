"""Where a model comes from, as its file says, and fingerprints that tell whether two models are the same.

The fingerprint of the structure is over ops, attributes, element types and how they are connected: names, ids, line
breaks and the order of layers do not matter, nor where in the .bin a constant lies. That of the weights is over what
the constants hold, in any order. Both are the same on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from irrun.diagnostics import clipped
from irrun.ir.graph import Graph, Layer, LayerBody
from irrun.ir.xml import Element
from irrun.records import dataclass
from irrun.spec.registry import registry
from irrun.spec.traits import Reading, Storing
from irrun.tools.inspect.contents import Contents
from irrun.tools.inspect.values import Values

_LONGEST = 200
"""Characters of a value that is kept."""

_MOST = 500
"""Entries that are kept."""

_DEEPEST = 16

_OF_PLACE = ("offset",)
"""Attributes that say where a constant lies, not what it is."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """`entries` are what the file says of its making, by dotted names: "conversion_parameters.framework".

    `structure` and `weights` are fingerprints; that of the weights is None where these were not read.
    """

    ir_version: int
    entries: Mapping[str, str]
    structure: str
    weights: str | None

    @property
    def made_by(self) -> str | None:
        """The version of the converter or of the runtime that wrote the file."""
        names = ("Runtime_version", "MO_version", "MI_version")
        return next((self.entries[name] for name in names if name in self.entries), None)


def provenance(contents: Contents, values: Mapping[Layer, Values] | None) -> Provenance:
    model = contents.model
    entries: dict[str, str] = {}
    for element in (*(e for e in model.legacy if e.tag == "meta_data"), model.graph.rt_info):
        for child in () if element is None else element.children:
            for name, value in _entries(child, "", 0):
                if len(entries) < _MOST:
                    entries.setdefault(name, clipped(value, _LONGEST))
    return Provenance(model.version, entries, _structure(contents), _of_weights(contents, values))


def _entries(element: Element, before: str, deep: int) -> Iterator[tuple[str, str]]:
    """What an element of rt_info says: itself by its `value`, and what is in it."""
    given = element.attributes.get("name") if element.tag == "info" else None
    name = f"{before}{given or element.tag}"
    if "value" in element.attributes:
        yield name, element.attributes["value"]
    for key, value in element.attributes.items():
        if key not in ("value", "name"):
            yield f"{name}.{key}", value
    for child in element.children if deep < _DEEPEST else ():
        yield from _entries(child, f"{name}.", deep + 1)


def _digest(*parts: object) -> str:
    return hashlib.blake2b("\0".join(map(str, parts)).encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()


def _structure(contents: Contents) -> str:
    return _of_graph(contents, contents.model.graph)


def _of_graph(contents: Contents, graph: Graph) -> str:
    """Of what leads to the results, which stand in their order, and to what is stored."""
    inputs = {layer: number for number, layer in enumerate(graph.parameters)}
    found: dict[Layer, str] = {}
    for layer in contents.ordered(graph):
        op = registry().find(layer.type, layer.version)
        named = set(_OF_PLACE)
        if op is not None:
            named |= {trait.variable for trait in (op.trait(Reading), op.trait(Storing)) if trait is not None}
        attributes = sorted((k, "".join(v.split())) for k, v in layer.attributes.items() if k not in named)
        sources = ["" if value is None else f"{found.get(value.layer, '')}:{value.index}" for value in layer.inputs]
        bodies = [f"{tag}:{_of_body(contents, body)}" for tag, body in sorted(layer.bodies.items())]
        name = f"{layer.type}-{layer.version}" if op is None else op.name
        found[layer] = _digest(name, inputs.get(layer, ""), attributes, sources, bodies)
    results = graph.results
    stored = sorted(found[layer] for layer in graph.sinks if layer not in set(results))
    return _digest(len(inputs), [found[layer] for layer in results], stored)


def _of_body(contents: Contents, body: LayerBody) -> str:
    parameters = {layer: number for number, layer in enumerate(body.graph.parameters)}
    results = {layer: number for number, layer in enumerate(body.graph.results)}
    maps = [
        sorted(
            (str((m.external, numbers.get(m.internal), m.axis, m.start, m.end, m.stride, m.part_size, m.purpose)))
            for m in listed
        )
        for listed, numbers in ((body.inputs, parameters), (body.outputs, results))
    ]
    edges = sorted(str((results.get(edge.result), parameters.get(edge.parameter))) for edge in body.back_edges)
    return _digest(_of_graph(contents, body.graph), maps, edges)


def _of_weights(contents: Contents, values: Mapping[Layer, Values] | None) -> str | None:
    """None where some constant was not read."""
    if values is None:
        return None
    found = []
    for layer in contents.paths:
        blob = contents.blob(layer)
        if blob is not None:
            if layer not in values:
                return None
            found.append(_digest(blob.element_type, blob.shape, values[layer].hash))
    return _digest(sorted(found))
