"""What the tensors of an edited model were before: followed from step to step, by objects, and by names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace

from irrun.diagnostics import Diagnostic
from irrun.ir.graph import Layer, Model, Value
from irrun.records import NamedTuple, dataclass
from irrun.tools.edit.merging import Joined
from irrun.tools.edit.preprocessing import Preprocessing


class Origin(NamedTuple):
    """Output `port` of the layer at a place in the file of the model that is edited, 0, or of an appended one."""

    model: int
    layer: int
    port: int


@dataclass(slots=True)
class History:
    """What became of a model, whose inputs were `inputs`.

    `preprocessings` are in the order of the edits. `values` tells where tensors come from, and `results` what outputs
    are; a tensor that was cut off has the origin of the one whose place it takes. `links` is what inputs of `appended`
    models read.
    """

    inputs: frozenset[Origin]
    values: dict[Value, Origin]
    results: dict[Layer, Origin]
    preprocessings: list[Preprocessing] = field(default_factory=list)
    appended: list[Joined] = field(default_factory=list)
    links: dict[Origin, Origin] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model) -> History:
        values = _origins(model.graph.layers, 0)
        results = {layer: values[layer.inputs[0]] for layer in model.graph.results if layer.inputs[0] is not None}
        inputs = frozenset(values[layer.outputs[0]] for layer in model.graph.parameters)
        return cls(inputs, values, results)

    def names(self, model: Model) -> dict[str, Origin | None]:
        """The origins of tensors by name, None where several have it."""
        found: dict[str, Origin | None] = {}
        for value in _tensors(model):
            origin = self.values.get(value)
            for name in _names_of(value):
                found[name] = origin if found.get(name, origin) == origin else None
        return found

    def follow(self, model: Model, before: dict[str, Origin | None]) -> None:
        """Take down what a step has made: what took the name of a tensor took its place."""
        for value in _tensors(model):
            if value not in self.values:
                named = [origin for name in _names_of(value) if (origin := before.get(name)) is not None]
                if named:
                    self.values[value] = named[0]
        preprocessed = {step.parameter for step in self.preprocessings}
        for result in model.graph.results:
            source = result.inputs[0]
            if result not in self.results and source in self.values and source.layer not in preprocessed:
                self.results[result] = self.values[source]

    def whole(self, model: Model) -> bool:
        """Whether the edited model begins where the model before did, and nothing else came to it."""
        entries = [self.values.get(layer.outputs[0]) for layer in model.graph.parameters]
        return not self.preprocessings and not self.appended and all(entry in self.inputs for entry in entries)

    def join(self, other: Joined) -> None:
        """Take down a model that was appended, before `follow`."""
        self.appended.append(other)
        origins = _origins(other.layers, len(self.appended))
        self.values |= origins
        known = {layer: self.results[result] for layer, result in other.mapped.items() if result in self.results}
        self.links |= {origins[layer.outputs[0]]: origin for layer, origin in known.items()}

    def placed(self, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Diagnostics with the files that their layers stand in: those of appended models have lines of their own, and
        notes are left without, as they say of no file."""
        if not self.appended:
            return list(diagnostics)
        files = {
            inner.label: str(other.path)
            for other in self.appended
            for layer in other.layers
            for inner in (layer, *(each for body in layer.bodies.values() for each in body.graph.walk()))
        }
        return [
            replace(
                found,
                file=found.file if found.layer is None else files.get(found.layer, found.file),
                notes=tuple(replace(note, span=None) for note in found.notes),
            )
            for found in diagnostics
        ]


def _origins(layers: Sequence[Layer], model: int) -> dict[Value, Origin]:
    return {value: Origin(model, number, value.index) for number, layer in enumerate(layers) for value in layer.outputs}


def _tensors(model: Model) -> Iterator[Value]:
    return (value for layer in model.graph.layers for value in layer.outputs)


def _names_of(value: Value) -> tuple[str, ...]:
    """Those of the tensor, then those that its layer gives it."""
    layer = value.layer
    return (*value.port.names, f"{layer.name}:{value.index}", *([layer.name] if len(layer.outputs) == 1 else ()))
