"""A model as a graph: layers, the values that flow between them, and the bodies inside them.

This is what the file says, not whether it is right: the reader fills it, `irrun.check` judges it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irrun.diagnostics import LayerName, Span
from irrun.ir.xml import Element

if TYPE_CHECKING:
    from irrun.ir.signature import TensorInfo
    from irrun.ir.weights import Weights


@dataclass(eq=False, slots=True, repr=False)
class Port:
    """A declared port. `precision` is an element type name (`f32`), None where it is missing or unknown.

    `dims` are the declared sizes, -1 where unknown; no dims mean a scalar or an unknown rank, the file does not tell.
    """

    id: int
    precision: str | None
    dims: tuple[int, ...]
    names: tuple[str, ...]
    element: Element


@dataclass(eq=False, slots=True, repr=False)
class Value:
    """A tensor: output number `index` of `layer`, read by `consumers`, each a layer and its input number."""

    layer: Layer
    index: int
    port: Port
    consumers: list[tuple[Layer, int]] = field(default_factory=list)


@dataclass(eq=False, slots=True, repr=False)
class Layer:
    """A layer. `inputs` go by the position of the port, as OpenVINO counts them; None where no edge arrives.

    `attributes` are those of its first `<data>`, as text; `strays` are the other ones. A `broken` layer has ports or
    bodies whose form is at fault, which is reported: nothing can be said of its outputs.
    """

    id: int
    name: str
    type: str
    version: str
    attributes: dict[str, str]
    element: Element
    data: Element | None
    graph: Graph
    input_ports: list[Port] = field(default_factory=list)
    inputs: list[Value | None] = field(default_factory=list)
    input_edges: list[Element | None] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    bodies: dict[str, LayerBody] = field(default_factory=dict)
    rt_info: Element | None = None
    strays: list[Element] = field(default_factory=list)
    broken: bool = False

    @property
    def span(self) -> Span:
        return self.element.span

    @property
    def label(self) -> LayerName:
        return LayerName(self.id, self.name, self.type)

    @property
    def precise(self) -> bool:
        """Whether its runtime info keeps it from being computed in 16 bits."""
        marks = self.rt_info.findall("attribute") if self.rt_info else ()
        return any(mark.attributes.get("name") == "precise" for mark in marks)

    def __str__(self) -> str:
        return str(self.label)


@dataclass(eq=False, slots=True, repr=False)
class PortMap:
    """One `<input>` or `<output>` of a port map.

    `external` is the input or output number of the owning layer, -1 where unconnected; `internal` the layer of the
    body that it is mapped to. With an `axis` it is sliced or concatenated along it.
    """

    external: int
    internal: Layer
    axis: int | None
    start: int
    end: int
    stride: int
    part_size: int
    purpose: str
    element: Element


@dataclass(eq=False, slots=True, repr=False)
class BackEdge:
    """What a Result of the body yields becomes the Parameter's value in the next iteration."""

    result: Layer
    parameter: Layer
    element: Element


@dataclass(eq=False, slots=True, repr=False)
class LayerBody:
    """A graph inside a layer, by the tag of its element: `body`, `then_body` or `else_body`."""

    graph: Graph
    inputs: list[PortMap] = field(default_factory=list)
    outputs: list[PortMap] = field(default_factory=list)
    back_edges: list[BackEdge] = field(default_factory=list)


@dataclass(eq=False, slots=True, repr=False)
class Graph:
    """Layers in the order of the file; the graph of the model itself has no `owner`.

    It is `unsure` where some layer's id is missing or taken, so that ids may lead nowhere for that reason alone.
    """

    element: Element
    owner: Layer | None = None
    layers: list[Layer] = field(default_factory=list)
    rt_info: Element | None = None
    unsure: bool = False

    @property
    def parameters(self) -> list[Layer]:
        return [layer for layer in self.layers if layer.type == "Parameter"]

    @property
    def results(self) -> list[Layer]:
        return [layer for layer in self.layers if layer.type == "Result"]

    @property
    def sinks(self) -> list[Layer]:
        """The layers that make others reachable: Results, and Assigns, which store state."""
        return [layer for layer in self.layers if layer.type in ("Result", "Assign")]

    def walk(self) -> Iterator[Layer]:
        """All layers, those of bodies behind the layer that owns them."""
        for layer in self.layers:
            yield layer
            for body in layer.bodies.values():
                yield from body.graph.walk()


@dataclass(eq=False, slots=True, repr=False)
class Model:
    """A model file. `legacy` are children of the root that only old tools use, kept as they are.

    `content` is the text of the file where it came from memory. A model that is pickled is read again, from its path or
    from what came from memory, which goes along.
    """

    name: str
    version: int
    graph: Graph
    weights: Weights
    path: Path
    legacy: list[Element] = field(default_factory=list)
    content: bytes | None = None

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """What its Parameters declare, in order."""
        from irrun.ir.signature import inputs

        return inputs(self.graph)

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """What the file declares of its outputs, in order; `GraphExecutor.outputs` are what they are."""
        from irrun.ir.signature import outputs

        return outputs(self.graph)

    @property
    def variables(self) -> tuple[TensorInfo, ...]:
        """The variables that it keeps from one run to the next."""
        from irrun.ir.signature import variables

        return variables(self.graph)

    def __repr__(self) -> str:
        return f"<Model {self.name!r} of {len(self.graph.layers)} layers, from {self.path}>"

    def __reduce__(self) -> Any:
        weights = self.weights.path if self.weights.content is None else bytes(self.weights.content)
        return _read_again, (self.path if self.content is None else self.content, weights)


def _read_again(source: Path | bytes, weights: Path | bytes | None) -> Model:
    """A model that was pickled. Raises IRError where its file is not there any more."""
    from irrun.ir.reader import read_model

    return read_model(source, weights)
