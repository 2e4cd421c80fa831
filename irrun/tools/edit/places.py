"""Inputs, tensors and layers of a model by the names that users give them."""

from __future__ import annotations

from collections.abc import Sequence

from irrun.check.validate import find_input
from irrun.diagnostics import LONGEST_NAME, clipped
from irrun.ir.graph import Layer, Model, Value
from irrun.ir.signature import names_of_results
from irrun.run.keys import placed, unique, whenever
from irrun.spelling import close_matches

_LISTED = 4


def input_and(given: str, model: Model) -> tuple[Layer, str]:
    """The Parameter and the value of `NAME=value`, or of a value alone where there is one input. Raises ValueError."""
    name, equals, value = given.rpartition("=")
    parameters = model.graph.parameters
    if equals:
        return parameters[find_input(model, name)], value
    if len(parameters) != 1:
        listed = ", ".join(f"`{layer.name}`" for layer in parameters[:_LISTED]) or "none"
        raise ValueError(f"the model has {len(parameters)} inputs ({listed}): say which, as in NAME={value}")
    return parameters[0], value


def find_value(model: Model, name: str) -> Value:
    """The tensor of the model that goes by a name: of its own, of its layer, `layer:1`, or that of an output.

    Raises ValueError.
    """
    found: list[Value] = []
    names: dict[str, None] = {}
    for layer in model.graph.layers:
        for value in layer.outputs:
            own = [layer.name, unique(layer)] if len(layer.outputs) == 1 else []
            numbered = [f"{layer.name}:{value.index}", f"{layer.name}.{value.index}", f"{unique(layer)}:{value.index}"]
            every = (*value.port.names, *own, *numbered)
            if name in every and value not in found:
                found.append(value)
            names |= dict.fromkeys((*value.port.names, *(own[:1] or numbered[:1])))
    if not found:
        result = find_output(model, name)
        found = [value for value in result.inputs if value is not None] if result is not None else []
    if len(found) == 1:
        return found[0]
    shown = clipped(name, LONGEST_NAME)
    if not found:
        layers = [layer for layer in model.graph.layers if name in (layer.name, unique(layer))]
        found = [value for layer in layers for value in layer.outputs]
    if found:
        listed = ", ".join(f"`{unique(value.layer)}:{value.index}`" for value in found[:_LISTED])
        raise ValueError(f"`{shown}` is the name of {len(found)} tensors: say which, as {listed}")
    close = close_matches(name, names)
    hint = f"; did you mean {' or '.join(f'`{match}`' for match in close)}?" if close else ""
    inner = [layer for layer in model.graph.walk() if layer.name == name and layer.graph is not model.graph]
    if inner:
        hint = f", but of layer {inner[0]} in a body, which this cannot reach"
    raise ValueError(f"`{shown}` is no tensor of the model{hint}")


def find_output(model: Model, name: str) -> Layer | None:
    """The Result whose results go by a name, as `irrun execute` has it."""
    graph = model.graph
    keys = {names[0]: result for result, names in zip(graph.results, names_of_results(graph), strict=True)}
    return keys.get(name) or next((result for result in graph.results if name in (result.name, unique(result))), None)


def find_layers(model: Model, name: str) -> list[Layer]:
    """The layers that go by a name, in bodies too; by one such as `relu#5`, or `If_1/then_body/relu`, only one does."""
    found = [layer for layer in model.graph.walk() if layer.name == name]
    plain = whenever(name)
    return found or [layer for layer in model.graph.walk() if plain in (unique(layer), placed(layer))]


def several(name: str, layers: Sequence[Layer]) -> ValueError:
    """What to raise where a name is that of several layers."""
    listed = ", ".join(f"`{placed(layer)}`" for layer in layers[:_LISTED])
    return ValueError(f"`{clipped(name, LONGEST_NAME)}` is the name of several: say which, as {listed}")
