"""How a device ran a model, as its execution graph says: which layers, as what kernels, in which types, for how long.

Such a graph is what `ov.serialize(compiled_model.get_runtime_model(), ...)` and `benchmark_app -exec_graph_path` write.
Times are there where the model was compiled with `PERF_COUNT`, and an infer request of it has run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import inf

from irrun.ir.graph import Layer
from irrun.records import dataclass

_TIME = re.compile(r"\s*(\d{1,18})\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class ExecutedLayer:
    """A layer as a device ran it. `microseconds` are those of a run in the mean, None where it has none, as what is
    done before. `kernel` is what computes it, `element_type` the one in which, `layouts` are those of its outputs.
    `originals` are the layers of the model that it stands for, none for one that the device has added.
    """

    id: int
    path: str
    type: str
    line: int
    order: int | None
    microseconds: int | None
    kernel: str
    element_type: str
    layouts: tuple[str, ...]
    originals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """What some of the layers take together: how many these are, and how many of them have a time."""

    layers: int
    timed: int
    microseconds: int


@dataclass(frozen=True, slots=True)
class Execution:
    """The `layers` in the order in which they ran."""

    layers: tuple[ExecutedLayer, ...]

    @property
    def total(self) -> Share:
        return _share(self.layers)

    @property
    def added(self) -> Share:
        """Layers with a time that stand for none of the model's, such as changes of layout and type."""
        return _share(layer for layer in self.layers if layer.microseconds is not None and not layer.originals)

    @property
    def fused(self) -> int:
        """How many layers of the model run as a part of others."""
        return sum(len(layer.originals) - 1 for layer in self.layers if layer.originals)

    def by_type(self) -> dict[str, Share]:
        """What layers of each type take, the slowest first."""
        return self._by("type", self.layers)

    def by_element_type(self) -> dict[str, Share]:
        """What is computed in each element type, of what has a time."""
        return self._by("element_type", self.timed)

    def by_kernel(self, type: str) -> dict[str, Share]:
        """The kernels that compute layers of a type, of what has a time."""
        return self._by("kernel", [layer for layer in self.timed if layer.type == type])

    @property
    def timed(self) -> tuple[ExecutedLayer, ...]:
        """The layers that have a time, the slowest first."""
        known = [layer for layer in self.layers if layer.microseconds is not None]
        return tuple(sorted(known, key=lambda layer: -(layer.microseconds or 0)))

    def _by(self, what: str, layers: Iterable[ExecutedLayer]) -> dict[str, Share]:
        found: dict[str, list[ExecutedLayer]] = {}
        for layer in layers:
            found.setdefault(getattr(layer, what), []).append(layer)
        shares = {name: _share(own) for name, own in found.items()}
        return dict(sorted(shares.items(), key=lambda item: (-item[1].microseconds, -item[1].layers, item[0])))


def execution(layers: Iterable[Layer]) -> Execution:
    """What an execution graph of these layers says."""
    found = [_executed(layer) for layer in layers]
    return Execution(tuple(sorted(found, key=lambda layer: inf if layer.order is None else layer.order)))


def _executed(layer: Layer) -> ExecutedLayer:
    attributes = layer.attributes
    return ExecutedLayer(
        layer.id,
        layer.name,
        layer.type,
        layer.span.line,
        _number(attributes.get("execOrder", "")),
        _number(attributes.get("execTimeMcs", "")),
        attributes.get("primitiveType", ""),
        attributes.get("runtimePrecision", ""),
        _listed(attributes.get("outputLayouts", "")),
        _listed(attributes.get("originalLayersNames", "")),
    )


def _number(text: str) -> int | None:
    found = _TIME.fullmatch(text)
    return None if found is None else int(found[1])


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part for part in map(str.strip, text.split(",")) if part)


def _share(layers: Iterable[ExecutedLayer]) -> Share:
    known = list(layers)
    times = [layer.microseconds for layer in known if layer.microseconds is not None]
    return Share(len(known), len(times), sum(times))
