"""Cases made small while they still go wrong in the same way, and told in a few lines."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from differential.evaluation import evaluated, parameter
from differential.graph import Array, Body, Case, Graph, Layer, Ref

MAX_TRIES = 250


def minimise(case: Case, fails: Callable[[Case], bool]) -> Case:
    """A smaller case that fails, too."""
    tries = 0
    smaller = True
    while smaller:
        smaller = False
        for candidate in _candidates(case):
            tries += 1
            if tries > MAX_TRIES:
                return case
            if fails(candidate):
                case, smaller = candidate, True
                break
    return case


def _candidates(case: Case) -> Iterator[Case]:
    graph = case.graph
    results = graph.of_type("Result")
    if len(results) > 1:
        for kept in results:
            yield _pruned(case, [kept])
        for left in results:
            yield _pruned(case, [number for number in results if number != left])
    for number in range(len(case.feeds) - 1, -1, -1):
        if len(case.feeds) > 1:
            yield replace(case, feeds=[feed for n, feed in enumerate(case.feeds) if n != number])
    small = _pruned(case, results)
    if len(small.graph.layers) < len(graph.layers):
        yield small
    if case.gaps:
        yield replace(case, gaps=0)
    if case.threads > 1:
        yield replace(case, threads=1)
    yield from _without_a_layer(case, results)


def _without_a_layer(case: Case, results: list[int]) -> Iterator[Case]:
    graph = case.graph
    try:
        runs = [evaluated(case, feed) for feed in case.feeds]
    except Exception:
        runs = []
    for number in range(len(graph.layers) - 1, -1, -1):
        layer = graph.layers[number]
        if layer.type in ("Result", "Assign", "Parameter", "Constant"):
            continue
        if runs and not _behind_inputs(graph, number):
            for port in range(len(layer.outputs)):
                yield _cut(case, number, port, [run[number][port] for run in runs], constant=True)
            continue
        for ref in layer.inputs:
            if ref is not None and len(layer.outputs) == 1 and _output(graph, ref) == layer.outputs[0]:
                yield _pruned(_rewired(case, {(number, 0): ref}), results)
        if runs and layer.outputs:
            for port in range(len(layer.outputs)):
                yield _cut(case, number, port, [run[number][port] for run in runs], constant=False)


def _behind_inputs(graph: Graph, number: int) -> bool:
    layer = graph.layers[number]
    if layer.type in ("Parameter", "ReadValue"):
        return True
    return any(_behind_inputs(graph, ref[0]) for ref in layer.inputs if ref is not None)


def _output(graph: Graph, ref: Ref) -> tuple[str, tuple[int, ...]]:
    return graph.layers[ref[0]].outputs[ref[1]]


def _rewired(case: Case, others: dict[Ref, Ref]) -> Case:
    layers = [
        replace(layer, inputs=[others.get(ref, ref) if ref is not None else None for ref in layer.inputs])
        for layer in case.graph.layers
    ]
    return replace(case, graph=Graph(layers))


def _cut(case: Case, number: int, port: int, arrays: list[Array], *, constant: bool) -> Case:
    """An output replaced by an input, or by a constant."""
    dims = case.graph.layers[number].outputs[port][1]
    feeds = case.feeds
    if constant:
        new = Layer("Constant-1", array=arrays[0], outputs=[case.graph.layers[number].outputs[port]])
    else:
        name = f"y{number}_{port}"
        new = parameter(name, arrays[0], dims)
        feeds = [{**feed, name: array} for feed, array in zip(feeds, arrays, strict=True)]
    layers = [new, *(_shifted(layer) for layer in case.graph.layers)]
    moved = replace(case, graph=Graph(layers), feeds=feeds)
    rewired = _rewired(moved, {(number + 1, port): (0, 0)})
    return _pruned(rewired, rewired.graph.of_type("Result"))


def _shifted(layer: Layer) -> Layer:
    return replace(layer, inputs=[None if ref is None else (ref[0] + 1, ref[1]) for ref in layer.inputs])


def _pruned(case: Case, results: list[int]) -> Case:
    """Only what these Results and the Assigns need."""
    layers = case.graph.layers
    needed: set[int] = set()
    todo = [*results, *case.graph.of_type("Assign")]
    while todo:
        number = todo.pop()
        if number not in needed:
            needed.add(number)
            todo += [ref[0] for ref in layers[number].inputs if ref is not None]
    places = {number: place for place, number in enumerate(sorted(needed))}
    kept = [copy.copy(layers[number]) for number in sorted(needed)]
    for layer in kept:
        layer.inputs = [None if ref is None else (places[ref[0]], ref[1]) for ref in layer.inputs]
    names = {layer.label for layer in kept if layer.type == "Parameter"}
    feeds = [{name: array for name, array in feed.items() if name in names} for feed in case.feeds]
    return replace(case, graph=Graph(kept), feeds=feeds)


def described(case: Case) -> str:
    """The layers, one a line, and the arrays of the runs as far as they are small."""
    lines = [*_lines(case.graph, "  ")]
    for number, feed in enumerate(case.feeds):
        given = [f"{name}={array_text(array)}" for name, array in feed.items()]
        lines.append(f"  run {number}: {', '.join(given)}")
    lines.append(f"  kind {case.kind}, gaps {case.gaps}, threads {case.threads}")
    return "\n".join(lines)


def _lines(graph: Graph, indent: str) -> Iterator[str]:
    for number, layer in enumerate(graph.layers):
        inputs = ", ".join(
            "-" if ref is None else f"{ref[0]}.{ref[1]}" if ref[1] else f"{ref[0]}" for ref in layer.inputs
        )
        outputs = ", ".join(f"{type}{list(dims)}" for type, dims in layer.outputs)
        attrs = " ".join(f"{key}={value}" for key, value in layer.attrs.items() if key != "element_type")
        if layer.array is not None:
            attrs = array_text(layer.array)
        yield f"{indent}{number} {layer.label}{layer.name}({inputs}) {attrs} -> {outputs}"
        for name, body in layer.bodies.items():
            yield f"{indent}  {name}: {_maps(body)}"
            yield from _lines(body.graph, indent + "    ")


def _maps(body: Body) -> str:
    return f"inputs {body.inputs} outputs {body.outputs} back edges {body.back_edges}"


def array_text(array: Array) -> str:
    if array.size <= 6:
        return f"{array.dtype}{list(array.shape)}{np.array2string(array.ravel(), precision=4, max_line_width=999)}"
    return f"{array.dtype}{list(array.shape)}"
