"""What a model is and what it costs, all together: `irrun.inspect`, and what comes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from irrun.check.infer import Inference, infer
from irrun.check.unread_weights import check_unchanged
from irrun.check.validate import GivenShapes, Report, given_tensors, validate
from irrun.diagnostics import Diagnostic, limited
from irrun.ir.collector import collector_paused
from irrun.ir.graph import Layer, Model
from irrun.ir.signature import TensorInfo, described, handed_out, names_of_inputs, names_of_results
from irrun.ir.sources import Source
from irrun.ir.weights import WeightsError
from irrun.records import dataclass
from irrun.spec.dims import Dim, Size
from irrun.spec.op import Tensor
from irrun.tools.inspect.contents import Contents
from irrun.tools.inspect.costs import Costs, LayerCost, costs
from irrun.tools.inspect.execution import Execution, execution
from irrun.tools.inspect.memory import GrowingState, Peak, growing_states, peak
from irrun.tools.inspect.provenance import Provenance, provenance
from irrun.tools.inspect.releases import Release, Releases, parse_release, releases, unreadable
from irrun.tools.inspect.sizes import Sizes
from irrun.tools.inspect.values import MOST_READ, read_values
from irrun.tools.inspect.weights import Weights
from irrun.tools.inspect.weights import weights as weights_of

EXECUTED = "E110"
"""What says that a file is an execution graph, which nothing can run: here it is one way to look at a model."""

PAST = "past"
"""What the length of states that grow is called."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a model is and what it costs.

    `diagnostics` are those of `irrun.validate`, and of the release that was asked about. What a broken file does not
    tell is empty; `layers` are None where there is no graph at all, and so is all that is said of it. Sizes are
    numbers, or arithmetic over unknown ones, which `sizes.text` writes. `ops` counts layers by type, those of bodies
    as well. `states` are variables that grow with each token. `execution` is how a device ran a model, where the file
    is an execution graph.

    >>> import irrun
    >>> found = irrun.inspect("samples/cnn/model.xml", {"image": (1, 3, 16, 16)})
    >>> found.costs.macs, found.costs.coverage, found.weights.elements
    (129184, 1.0, 1554)
    """

    path: Path
    name: str
    diagnostics: tuple[Diagnostic, ...]
    inputs: tuple[TensorInfo, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()
    variables: tuple[TensorInfo, ...] = ()
    ops: Mapping[str, int] = field(default_factory=dict)
    layers: tuple[LayerCost, ...] | None = None
    costs: Costs | None = None
    peak: Peak | None = None
    states: tuple[GrowingState, ...] = ()
    weights: Weights | None = None
    releases: Releases | None = None
    provenance: Provenance | None = None
    execution: Execution | None = None
    content: bytes | None = field(default=None, repr=False)
    sizes: Sizes = field(default_factory=Sizes, repr=False)

    @property
    def ok(self) -> bool:
        """Whether the model has no errors, and the release that was asked about reads it."""
        return not any(found.severity == "error" for found in self.diagnostics)

    @property
    def state_bytes(self) -> Size:
        """What the variables grow by with each token."""
        total: Size = 0
        for state in self.states:
            total = total + state.bytes
        return total

    def to_dict(self) -> dict[str, Any]:
        """All of it as numbers, texts, lists and dicts, as `--format json` writes it."""
        return {
            "path": str(self.path),
            "name": self.name,
            "ok": self.ok,
            "diagnostics": [
                {"code": d.code, "severity": d.severity, "message": d.message, "line": d.line, "help": d.help}
                for d in self.diagnostics
            ],
            **{name: [_of_tensor(info) for info in getattr(self, name)] for name in ("inputs", "outputs", "variables")},
            "ops": dict(self.ops),
            "costs": None
            if self.costs is None
            else {
                **self._plain(self.costs),
                "flops": self.sizes.text(self.costs.flops),
                "coverage": self.costs.coverage,
            },
            "peak": self._plain(self.peak),
            "states": self._plain(self.states),
            "state_bytes_per_token": self.sizes.text(self.state_bytes),
            "weights": None
            if self.weights is None
            else {
                **self._plain(self.weights),
                "bytes": self.weights.bytes,
                "elements": self.weights.elements,
                "duplicates": [[weight.path for weight in group] for group in self.weights.duplicates],
                "duplicate_bytes": self.weights.duplicate_bytes,
                "by_type": [
                    {"stored": stored, "computed": computed, "quantized": quantized}
                    | {"constants": count, "elements": elements, "bytes": size}
                    for (stored, computed, quantized), (count, elements, size) in self.weights.by_type().items()
                ],
            },
            "releases": self._plain(self.releases),
            "provenance": self._plain(self.provenance),
            "layers": self._plain(self.layers),
            "execution": self._plain(self.execution),
        }

    def _plain(self, value: Any) -> Any:
        if isinstance(value, Dim):
            return self.sizes.text(value)
        if is_dataclass(value):
            return {each.name: self._plain(getattr(value, each.name)) for each in fields(value)}
        if isinstance(value, Mapping):
            return {str(key): self._plain(item) for key, item in value.items()}
        if isinstance(value, tuple):
            return [self._plain(item) for item in value]
        return value


def _of_tensor(info: TensorInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "names": list(info.names),
        "type": info.type,
        "shape": None if info.shape is None else list(info.shape),
        "layout": info.layout,
    }


def inspect(
    model: Model | Source,
    shapes: GivenShapes | None = None,
    weights: Source | None = None,
    *,
    target: str | None = None,
    past: int | None = None,
    read_weights: bool | None = None,
    content: bytes | None = None,
) -> Inspection:
    """What a model is and what it costs: releases that read it, MACs, memory, weights, and where it comes from.

    `model`, `weights` and `content` are as in `irrun.validate`, `shapes` the shapes of inputs to count under.
    A `target` is a release of OpenVINO, such as "2024.2": what it cannot read is among the diagnostics. `past` is how
    many tokens states that grow hold already. With `read_weights` all weights are read, to say what they hold; by
    default those of up to 64 MiB.

    Never raises for a bad model. Raises ValueError where `shapes` names no input, holds what is no size or `target` is
    no release, and OSError and TypeError as `irrun.validate` does.
    """
    release = None if target is None else parse_release(target)
    with collector_paused():
        report = validate(model, weights, shapes, content=content, searched=0)
        return inspected(report, shapes, release, past, read_weights)


def inspected(
    report: Report,
    shapes: GivenShapes | None = None,
    release: Release | None = None,
    past: int | None = None,
    read_weights: bool | None = None,
    contents: Contents | None = None,
) -> Inspection:
    """The same of a model that was validated under these shapes; `contents` are its, where they are there already."""
    if report.model is None:
        return Inspection(report.path, "", tuple(report.diagnostics), content=report.content)
    contents = contents or Contents(report.model, report.inference or Inference(report.model.weights))
    ran = execution(report.model.graph.layers) if any(found.code == EXECUTED for found in report.diagnostics) else None
    told = [found for found in report.diagnostics if found.code != EXECUTED or release is not None]
    growing = growing_states(contents)
    more: list[Diagnostic] = []
    if past is not None and growing:
        given = {layer: _with_past(contents, layer, state.axis, past) for state, layer, _ in growing}
        inference = infer(report.model.graph, report.model.weights, given_tensors(report.model, shapes or {}) | given)
        contents = Contents(report.model, inference)
        known = {(found.code, found.span) for found in report.diagnostics}
        more += [found for found in inference.diagnostics if (found.code, found.span) not in known]
    if release is not None:
        more += limited(unreadable(contents, release))
    counted, sums = costs(contents)
    most = peak(contents)
    states = tuple(state for state, *_ in growing)
    sizes = Sizes()
    sizes.learn((sums.macs, sums.bytes, most.bytes, *(state.bytes for state in states)))
    sizes.call([size for *_, size in growing], PAST)
    if read_weights is None:
        read_weights = (report.model.weights.size or 0) <= MOST_READ
    held = report.model.weights
    values = None
    if read_weights and held.size is not None:
        with suppress(WeightsError):  # of which is told
            values = read_values(held, list(contents.paths))
        if not any(found.code == "E502" for found in told):
            more += check_unchanged(held)
    return Inspection(
        report.path,
        report.model.name,
        (*told, *(replace(found, file=str(report.path)) for found in more)),
        tuple(_inputs(contents)),
        tuple(_outputs(contents)),
        report.model.variables,
        dict(Counter(layer.type for layer in contents.paths).most_common()),
        tuple(counted),
        sums,
        most,
        states,
        weights_of(contents, values),
        releases(contents),
        provenance(contents, values),
        ran,
        report.content,
        sizes,
    )


def _inputs(contents: Contents) -> Iterator[TensorInfo]:
    """The inputs under the shapes that they were given."""
    graph = contents.model.graph
    for layer, names in zip(graph.parameters, names_of_inputs(graph), strict=True):
        value = layer.outputs[0] if layer.outputs else None
        yield described(names, contents.tensor(value), None if value is None else value.port)


def _outputs(contents: Contents) -> Iterator[TensorInfo]:
    """The outputs, in the types in which runs give them."""
    graph = contents.model.graph
    for layer, names in zip(graph.results, names_of_results(graph), strict=True):
        value = layer.inputs[0] if layer.inputs else None
        tensor = contents.tensor(value)
        given = replace(tensor, type=handed_out(tensor.type, contents.model.version))
        yield described(names, given, None if value is None else value.port)


def _with_past(contents: Contents, layer: Layer, axis: int, past: int) -> Tensor:
    """What is known of a state that is so long."""
    shape = contents.tensor(layer.outputs[0]).shape or ()
    return Tensor("dynamic", (*shape[:axis], past, *shape[axis + 1 :]))
