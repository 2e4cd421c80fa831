"""Two models as one: the layers of another model behind those of this one, on outputs that become its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from irrun.check.infer import infer
from irrun.check.validate import find_input
from irrun.files import is_there
from irrun.ir.attribute_editing import data_of
from irrun.ir.editing import number_ports
from irrun.ir.graph import Layer, Model, Value
from irrun.ir.reader import read_model
from irrun.ir.signature import names_of, names_of_results
from irrun.records import dataclass


@dataclass(frozen=True, slots=True)
class Joined:
    """A model that was appended: its layers, as its file has them, and the Results whose places its inputs take."""

    path: Path
    layers: Sequence[Layer]
    mapped: Mapping[Layer, Layer]


def append(model: Model, given: str) -> Joined:
    """Let another model follow: what is given is its path, and behind it a line `OUTPUT=INPUT` for each of its inputs
    that reads an output; where both have one, that needs no line.

    Inputs that read none become inputs, outputs that are read are none any more. Raises ValueError, also where an
    input declares another type than the output has, and IRError where the other model cannot be read.
    """
    path, *pairs = given.split("\n")
    if not is_there(path):
        raise ValueError(f"there is no file {path}")
    other = read_model(path).copy()
    _check_variables(model, other)
    joined = Joined(Path(path), list(other.graph.layers), _mapped(model, other, pairs))
    _check_types(model, joined.mapped)
    _join(model, other, joined.mapped)
    return joined


def _mapped(model: Model, other: Model, pairs: Sequence[str]) -> dict[Layer, Layer]:
    """The Result of the model that each input of the other one reads."""
    results = dict(zip(model.graph.results, names_of_results(model.graph), strict=True))
    if not pairs and len(results) == len(other.graph.parameters) == 1:
        return {other.graph.parameters[0]: next(iter(results))}
    if not pairs:
        raise ValueError(f"say what goes where by --map OUTPUT=INPUT: outputs are {_listed(results)}")
    found: dict[Layer, Layer] = {}
    for pair in pairs:
        output, equals, name = pair.rpartition("=")
        if not equals:
            raise ValueError(f"`{pair}` is not of the form OUTPUT=INPUT")
        named = [result for result, names in results.items() if output in (*names, result.name)]
        if len(named) != 1:
            raise ValueError(f"`{output}` is no output of the model; its outputs are {_listed(results)}")
        parameter = other.graph.parameters[find_input(other, name)]
        if parameter in found:
            raise ValueError(f"input `{name}` is mapped twice")
        found[parameter] = named[0]
    return found


def _listed(results: dict[Layer, tuple[str, ...]]) -> str:
    return ", ".join(f"`{names[0]}`" for names in results.values()) or "none"


def _check_variables(model: Model, other: Model) -> None:
    ours, theirs = (
        {layer.attributes.get("variable_id") for layer in each.graph.walk() if layer.type in ("ReadValue", "Assign")}
        for each in (model, other)
    )
    shared = sorted(name for name in ours & theirs if name)
    if shared:
        raise ValueError(f"both models have a variable `{shared[0]}`")


def _check_types(model: Model, mapped: Mapping[Layer, Layer]) -> None:
    """Whether outputs are of the types that inputs declare: a Convert behind one would take others, and do nothing."""
    inference = infer(model.graph, model.weights)
    for parameter, result in mapped.items():
        given, wanted = inference.tensor(result.inputs[0]).type, parameter.attributes.get("element_type", "dynamic")
        if "dynamic" not in (given, wanted) and given != wanted:
            names = names_of_results(model.graph)[model.graph.results.index(result)]
            raise ValueError(f"output `{names[0]}` is {given}, but input `{names_of(parameter)[0]}` takes {wanted}")


def _join(model: Model, other: Model, mapped: Mapping[Layer, Layer]) -> None:
    for layer in [layer for layer in other.graph.walk() if layer.type == "Const"]:
        data = b"".join(other.weights.blocks(layer))
        data_of(layer).update(offset=str(model.weights.add(data)), size=str(max(len(data), 1)))
    graph = model.graph
    names = {layer.name for layer in graph.layers}
    tensors = {name for layer in graph.layers for value in layer.outputs for name in value.port.names}
    id = 1 + max((layer.id for layer in graph.layers), default=-1)
    sources = {parameter: result.inputs[0] for parameter, result in mapped.items()}
    for parameter, source in sources.items():
        if source is not None:
            _redirect(parameter.outputs[0], source)
    for layer in other.graph.layers:
        if layer in mapped:
            continue
        layer.graph, layer.id, id = graph, id, id + 1
        layer.name = _free(layer.name, names)
        layer.element.attributes.update(id=str(layer.id), name=layer.name)
        for value in layer.outputs:
            value.port.names = tuple(_free(name, tensors) for name in value.port.names)
        graph.layers.append(layer)
        number_ports(layer)
    graph.next_id = id
    for result in dict.fromkeys(mapped.values()):
        model.remove(result)
    model.edited = True


def _redirect(value: Value, source: Value) -> None:
    for reader, number in value.consumers:
        reader.inputs[number] = source
        source.consumers.append((reader, number))
    value.consumers = []


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    taken.add(free)
    return free
