"""A part of a model with the inputs and outputs that it has in a run of the whole: the flow, from texts to arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress

from irrun.check.infer import infer
from irrun.diagnostics import ExecutionError, IRError
from irrun.ir.graph import Model, Value
from irrun.ir.reader import read_model
from irrun.ir.sources import Source
from irrun.records import dataclass
from irrun.run.executor import GraphExecutor
from irrun.run.inputs import Inputs
from irrun.run.keys import key
from irrun.run.results import Results
from irrun.spec.dtypes import element_type
from irrun.spec.op import Array, Tensor
from irrun.tools.extract.cutting import Part, cut, input_names
from irrun.tools.extract.places import Home, find_home, find_place
from irrun.tools.extract.recording import Recording, record
from irrun.tools.extract.regions import Region, around, between, whole


@dataclass(frozen=True, slots=True)
class Extracted:
    """A part of a model, as a model. `inputs` are what it was given in the run of the whole, by the names of its own
    inputs, and `outputs` what it makes of them; both are None where nothing was run."""

    model: Model
    inputs: Mapping[str, Array] | None = None
    outputs: Results | None = None


def extract(
    model: Model | Source,
    weights: Source | None = None,
    *,
    begin: Sequence[str] = (),
    end: Sequence[str] = (),
    around: str | None = None,
    distance: int = 1,
    body: str | None = None,
    inputs: Inputs | None = None,
    dynamic: bool | None = None,
    max_memory: int | None = None,
) -> Extracted:
    """A part of a model as a model of its own, with the constants that it needs.

    `begin` and `end` name layers, the first and the last ones, or tensors, such as `split:1`, or by names of their own;
    a tensor to begin with is an input of the part. Or the part is what lies `around` a layer, up to a `distance`. It
    lies in the graph of the model, or in a `body` such as `Loop_12[3]`, of that iteration, or `If_3/then_body`; without
    any other wish the part is all of that. What a variable holds becomes an input.

    `inputs` are those of a run of the model, which gives those of the part, and its outputs. Sizes of the part's inputs
    are then as they were in that run, unless `dynamic`, and without such a run as they are known.

    Raises IRError where the model has errors, or the part would have, InputError where inputs do not fit or the run
    does not come by the body, ValueError where something means no layer.

    >>> import irrun
    >>> executor = irrun.GraphExecutor("samples/cnn/model.xml")
    >>> part = irrun.extract("samples/cnn/model.xml", end=["Relu_50"], inputs=executor.random_inputs(7))
    >>> part.model.inputs, list(part.outputs)
    ((TensorInfo('image', f32[1, 3, 16, 16]),), ['Relu_50'])
    """
    given = model if isinstance(model, Model) else read_model(model, weights)
    home, region = selected(given, begin, end, around, distance, body)
    if inputs is None:
        inference = infer(given.graph, given.weights)
        errors = [found for found in inference.diagnostics if found.severity == "error"]
        if errors:
            raise IRError(errors)
        return Extracted(cut(given, region, inference.tensor).model)
    executor = GraphExecutor(given, engine="reference", precision="auto", max_memory=max_memory)
    wanted = {*region.borders(), *(value for layer in region.layers for value in layer.outputs if not layer.inputs)}
    arrays = executor.named(inputs)
    with closing(record(executor, arrays, home, wanted.__contains__)) as recording:
        if not home.owners:
            _complete(recording, executor, arrays, region.borders())
        part = cut(given, region, _knowledge(executor, recording, dynamic=bool(dynamic)))
        read = part_inputs(part, recording)
        outputs = GraphExecutor(part.model, engine="reference", precision="auto", max_memory=max_memory).run(read)
    return Extracted(part.model, read, outputs)


def selected(
    model: Model,
    begin: Sequence[str] = (),
    end: Sequence[str] = (),
    centre: str | None = None,
    distance: int = 1,
    body: str | None = None,
) -> tuple[Home, Region]:
    """The graph and the layers that texts mean. Raises ValueError."""
    home = None if body is None else find_home(model, body)
    if centre is not None and (begin or end):
        raise ValueError("what lies around a layer has no other begin or end")
    if centre is not None:
        place = find_place(model, centre, home)
        return place.home, around(place.home.graph, place, distance)
    begins, ends = ([find_place(model, text, home) for text in texts] for texts in (begin, end))
    homes = {(place.home.graph, place.home.owners): place.home for place in (*begins, *ends)}
    if len(homes) > 1:
        raise ValueError(f"layers of different graphs are no part: {', '.join(map(_shown, homes.values()))}")
    at = next(iter(homes.values()), home or Home(model.graph))
    return at, between(at.graph, begins, ends) if begins or ends else whole(at.graph)


def _complete(
    recording: Recording, executor: GraphExecutor, inputs: Mapping[str, Array], values: Sequence[Value]
) -> None:
    """Compute what a run of the whole leaves out, as what it makes of them is known before: sizes of which some are."""
    inference = executor.report.inference
    assert inference is not None
    for value in values:
        if value not in recording and value.layer.type != "Const":
            with suppress(ValueError, ExecutionError):
                name = key(value.layer, value.index, ())
                recording.add(value, executor.run(inputs, outputs=[name])[name], inference.tensor(value).type)


def part_inputs(part: Part, recording: Recording) -> dict[str, Array]:
    """What the inputs of a part were in the run that was recorded."""
    for value in part.sources:
        if value not in recording:
            what = f"output {value.index} of layer {value.layer} leads to no output of the model"
            raise ValueError(f"{what}, so it is computed in no run: extract what reads it without inputs")
    names = input_names(part.model)
    return {name: recording[value] for name, value in zip(names, part.sources, strict=True)}


def recorded(recording: Recording, value: Value, otherwise: Tensor) -> Tensor:
    """The type and the shape that a value had."""
    if value not in recording:
        return otherwise
    array = recording[value]
    type = otherwise.type if otherwise.type != "dynamic" else element_type(array.dtype)
    return Tensor(type, array.shape)


def _knowledge(executor: GraphExecutor, recording: Recording, *, dynamic: bool) -> Callable[[Value], Tensor]:
    """What is known of a value: by inference where that may stay open, else as it was."""
    inference = executor.report.inference
    assert inference is not None

    def known(value: Value) -> Tensor:
        tensor = inference.tensor(value)
        return tensor if dynamic and tensor.type != "dynamic" else recorded(recording, value, tensor)

    return known


def _shown(home: Home) -> str:
    return str(home) or "the model"
