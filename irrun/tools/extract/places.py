"""What texts on the command line mean: layers, tensors, and iterations of bodies, whatever the layers are called."""

from __future__ import annotations

import re
from collections.abc import Iterator

from irrun.diagnostics import LONGEST_NAME, clipped
from irrun.ir.graph import Graph, Layer, Model
from irrun.ir.signature import names_of_results
from irrun.records import dataclass
from irrun.run.keys import unique
from irrun.spelling import close_matches

_NUMBER = re.compile(r"(?:\[(-?\d{1,9})\])?(?:/(.*))?", re.DOTALL)
_PORT = re.compile(r"(.*):(\d{1,9})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Home:
    """A graph of a run: that of the model, or the body that each of the `owners` has by its tag, in an iteration.

    Without an iteration a layer takes the only one that it has; that of an If is the first one. Those below 0 are
    counted from the last one, which is -1.
    """

    graph: Graph
    owners: tuple[tuple[Layer, str, int], ...] = ()

    def __str__(self) -> str:
        return "/".join(f"{unique(layer)}/{tag}[{iteration}]" for layer, tag, iteration in self.owners)


@dataclass(frozen=True, slots=True)
class Place:
    """A layer in a graph of a run, or only its output number `port`."""

    home: Home
    layer: Layer
    port: int | None = None


def find_home(model: Model, text: str) -> Home:
    """The body that a text such as `Loop_12[3]`, `If_3/then_body` or `Loop_12/body[3]/If_3/else_body` means.

    Raises ValueError where it means none, or several.
    """
    found = [home for home, rest in _homes(Home(model.graph), text) if home.owners and not rest]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(sorted({str(home) for home in found}))
        raise ValueError(f"`{clipped(text, LONGEST_NAME)}` may be any of {listed}")
    owners = [f"{unique(layer)} ({', '.join(layer.bodies)})" for layer in model.graph.walk() if layer.bodies]
    listed = ", ".join(owners[:8]) + (", ..." if len(owners) > 8 else "") if owners else "none"
    hint = f"layers with bodies: {listed}; a body is written as `Loop_12[3]` or `If_3/then_body`"
    raise ValueError(f"`{clipped(text, LONGEST_NAME)}` is no body of the model; {hint}")


def find_place(model: Model, text: str, home: Home | None = None) -> Place:
    """The layer or tensor that a text means: `conv1`, `split:1`, `relu#5`, or in a body `Loop_12/body[3]/MatMul_4:0`.

    Where no layer has it, it is the name of a tensor. It is looked for in `home`, or in the graph of the model. Raises
    ValueError where there is none, or several.
    """
    begin = home or Home(model.graph)
    found = _places(begin, text)
    if not found:
        found = [
            place
            for inner, rest in _homes(begin, text)
            if inner.owners != begin.owners and rest
            for place in _places(inner, rest)
        ]
    if not found and not begin.owners:
        found = _outputs(begin, text)
    if len(found) == 1:
        return found[0]
    shown = clipped(text, LONGEST_NAME)
    if found:
        listed = ", ".join(f"`{unique(place.layer)}`" for place in found[:8])
        raise ValueError(f"`{shown}` is the name of {len(found)} layers: say which, as {listed}")
    tensors = (name for layer in begin.graph.layers for value in layer.outputs for name in value.port.names)
    close = close_matches(text, (*(layer.name for layer in begin.graph.layers), *tensors))
    hint = f"; did you mean `{close[0]}`?" if close else ""
    inside = [layer for layer in model.graph.walk() if layer.name == text and layer.graph is not begin.graph]
    if inside and inside[0].graph.owner is not None:
        owner = inside[0].graph.owner
        hint = (
            f"; layer {inside[0]} is in a body of layer {owner}: say in which iteration, as {unique(owner)}[0]/{text}"
        )
    raise ValueError(f"there is no layer or tensor `{shown}` in {str(begin) or 'the model'}{hint}")


def _places(home: Home, text: str) -> list[Place]:
    """A layer by its name, by its name and id, or either with the number of an output behind it; else a tensor."""
    found = [Place(home, layer) for layer in home.graph.layers if text in (layer.name, unique(layer))]
    if found:
        return found
    split = _PORT.fullmatch(text)
    layers = [layer for layer in home.graph.layers if split is not None and split[1] in (layer.name, unique(layer))]
    if split is None or not layers:
        values = [value for layer in home.graph.layers for value in layer.outputs]
        return [Place(home, value.layer, value.index) for value in values if text in value.port.names]
    port = int(split[2])
    if len(layers) == 1 and port >= len(layers[0].outputs):
        count = len(layers[0].outputs)
        there = f"they go from 0 to {count - 1}" if count else "it has none"
        raise ValueError(f"layer {layers[0]} has no output {port}: {there}")
    return [Place(home, layer, port) for layer in layers]


def _outputs(home: Home, text: str) -> list[Place]:
    """The output whose results have a name that differs from its own, as others have this, too."""
    named = zip(home.graph.results, names_of_results(home.graph), strict=True)
    sources = [result.inputs[0] for result, names in named if names[0] == text]
    return [Place(home, value.layer, value.index) for value in sources if value is not None]


def _homes(home: Home, text: str) -> Iterator[tuple[Home, str]]:
    """The bodies that the beginning of a text may mean, and what is left of it."""
    yield home, text
    for layer in home.graph.layers:
        if not layer.bodies:
            continue
        for name in dict.fromkeys((unique(layer), layer.name)):
            if not name or not text.startswith(name):
                continue
            behind = text[len(name) :]
            for tag, body in layer.bodies.items():
                tagged = [behind[len(tag) + 1 :]] if behind.startswith(f"/{tag}") else []
                plain = [behind] if len(layer.bodies) == 1 and not tagged else []
                for rest in (*tagged, *plain):
                    split = _NUMBER.fullmatch(rest)
                    if split is not None:
                        owners = (*home.owners, (layer, tag, int(split[1] or 0)))
                        yield from _homes(Home(body.graph, owners), split[2] or "")
