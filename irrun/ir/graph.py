"""A model as a graph: layers, the values that flow between them, and the bodies inside them.

This is what the file says, not whether it is right: the reader fills it, `irrun.check` judges it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irrun.diagnostics import LayerName, Span
from irrun.ir.xml import Element
from irrun.records import dataclass

if TYPE_CHECKING:
    from irrun.ir.signature import TensorInfo
    from irrun.ir.weights import Weights


OF_LAYER = ("id", "name", "type", "version")
"""The attributes of a <layer> itself."""


@dataclass(eq=False, slots=True, repr=False)
class Port:
    """A declared port. `precision` is an element type name (`f32`), None where it is missing or unknown.

    `dims` are the declared sizes, -1 where unknown; no dims mean a scalar or an unknown rank, the file does not tell.
    With a `number` it is given the element of its layer, in which its own is looked up when someone asks for that.
    """

    id: int
    precision: str | None
    dims: tuple[int, ...]
    names: tuple[str, ...]
    _element: Element
    _number: int | None = None

    def declares_as(self, output: Port) -> bool:
        """Whether an input declares what an output does, as far as it says a precision."""
        return self.dims == output.dims and self.precision in (None, output.precision)

    @property
    def element(self) -> Element:
        if self._number is not None:
            lists = [child for child in self._element.children if child.tag in ("input", "output")]
            ports = [port for listed in lists for port in listed.children]
            self._element, self._number = ports[self._number], None
        return self._element

    @element.setter
    def element(self, element: Element) -> None:
        self._element, self._number = element, None


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

    `attributes` are those of its first `<data>`, as text; `strays` are the other ones. A `broken` layer has ports whose
    form is at fault, or lacks bodies, which is reported: nothing can be said of its outputs. One that was `removed` is
    not in its graph any more.
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
    removed: bool = False

    def __getattr__(self, name: str) -> Element | None:
        """What was left out because nobody may ask for it: the first `data` or `rt_info` in its element."""
        if name not in ("data", "rt_info"):
            raise AttributeError(name)
        found = self.element.find(name)
        if found is not None and name == "data":
            found.attributes = self.attributes
        setattr(self, name, found)
        return found

    @property
    def span(self) -> Span:
        return self.element.span

    @property
    def marked(self) -> bool:
        """Whether its element has attributes beside those that every layer has."""
        return not self.element.deferred and len(self.element.attributes) > len(OF_LAYER)

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
    """A graph inside a layer, by the tag of its element: `body`, `then_body` or `else_body`.

    One that is `broken` has other entries and back edges than were meant, which is reported; where what it gives is
    `lost` that holds of its outputs.
    """

    graph: Graph
    inputs: list[PortMap] = field(default_factory=list)
    outputs: list[PortMap] = field(default_factory=list)
    back_edges: list[BackEdge] = field(default_factory=list)
    broken: bool = False
    lost: bool = False


@dataclass(eq=False, slots=True, repr=False, weakref_slot=True)
class Graph:
    """Layers in the order of the file; the graph of the model itself has no `owner`.

    It is `unsure` where some layer's id is missing or taken, so that ids may lead nowhere for that reason alone, or
    where layers depend on each other in a cycle, so that some edge leads elsewhere than was meant. Layers
    that are added get ids from `next_id` on, once there is one.
    """

    element: Element
    owner: Layer | None = None
    layers: list[Layer] = field(default_factory=list)
    rt_info: Element | None = None
    unsure: bool = False
    next_id: int | None = None

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

    def drop(self, layers: Collection[Layer]) -> None:
        """Take layers out, whatever reads them."""
        gone = set(layers)
        self.layers = [layer for layer in self.layers if layer not in gone]
        for layer in gone:
            layer.removed = True

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
    from what came from memory, which goes along, as does all of one that was `edited`.

    What changes a model raises ValueError, naming the layer, and leaves it as it was; whether layers keep to the rules
    of their ops, `irrun.validate` says, and `irrun.write_model` asks. Executors that were made before know nothing of
    it. `graph` is that of the model unless given: `layer.bodies["body"].graph` is that of a body. Inputs are values,
    such as `layer.outputs[1]`, or layers with one output.

    >>> import irrun
    >>> model = irrun.read_model("samples/cnn/model.xml")
    >>> last = model.graph.results[0].inputs[0].layer
    >>> print(last)
    17 `Softmax_62` (SoftMax)
    >>> model.remove(last, bridge=0)
    >>> logits = model.graph.results[0].inputs[0]
    >>> scores = model.add("Sigmoid", [logits], name="scores")
    >>> result = model.add_result(scores)
    >>> model.name_tensor(scores, "scores")
    >>> irrun.redeclare(model)
    >>> irrun.GraphExecutor(model).outputs
    (TensorInfo('probabilities', f32[image.0, 10]), TensorInfo('scores', f32[image.0, 10]))
    """

    name: str
    version: int
    graph: Graph
    weights: Weights
    path: Path
    legacy: list[Element] = field(default_factory=list)
    content: bytes | None = None
    edited: bool = False

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

    def layer(self, name: str | int) -> Layer:
        """The layer of a name, in bodies too, or of an id in the model itself. Raises ValueError."""
        from irrun.ir.editing import find_layer

        return find_layer(self, name)

    def copy(self) -> Model:
        """A model to change without changing this one; they share the bytes of their weights."""
        from irrun.ir.copying import copied

        return copied(self)

    def add(
        self,
        type: str,
        inputs: Sequence[Value | Layer] = (),
        attributes: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        version: str = "opset1",
        outputs: int | None = None,
        graph: Graph | None = None,
    ) -> Layer:
        """A new layer, in the graph that its inputs are in; its `outputs` are as many as its op has unless given."""
        from irrun.ir.editing import add_layer, value_of

        home = value_of(inputs[0]).layer.graph if graph is None and inputs else graph or self.graph
        self.edited = True
        return add_layer(home, type, inputs, attributes or {}, name, version, outputs)

    def add_constant(
        self, array: Any, *, type: str | None = None, name: str | None = None, graph: Graph | None = None
    ) -> Layer:
        """A new Const; of u1, u3, u6 and nf4 the array has the codes. Raises TypeError where it is none of the type."""
        from irrun.ir.editing import add_constant

        self.edited = True
        return add_constant(self, graph or self.graph, array, type, name)

    def add_parameter(self, type: Any, shape: Any, *, name: str | None = None, graph: Graph | None = None) -> Layer:
        """A new input, the last: of an element type, and a shape such as `(1, None, "2..8")`, None for any rank."""
        from irrun.ir.editing import add_parameter

        self.edited = True
        return add_parameter(graph or self.graph, type, shape, name)

    def add_result(self, source: Value | Layer, *, name: str | None = None) -> Layer:
        """A new output of the graph that `source` is in, the last."""
        from irrun.ir.editing import add_result, value_of

        self.edited = True
        return add_result(value_of(source).layer.graph, source, name)

    def remove(self, layer: Layer, *, bridge: int | Mapping[int, int] | None = None) -> None:
        """Take a layer out; what reads its output gets what its input `bridge` gets, of several `{output: input}`."""
        from irrun.ir.editing import remove_layer

        _check_layer(layer)
        self.edited = True
        remove_layer(layer, bridge)

    def replace(self, old: Value | Layer, new: Value | Layer) -> None:
        """Let all that read a value read another one, which gets its names; an old layer goes if nobody reads it."""
        from irrun.ir.editing import redirect, replace_layer, value_of

        self.edited = True
        if isinstance(old, Layer) and isinstance(new, Layer):
            replace_layer(old, new)
        else:
            redirect(value_of(old), new)

    def rewire(self, layer: Layer, number: int, source: Value | Layer) -> None:
        """Connect input `number` of a layer to another value."""
        from irrun.ir.editing import rewire

        _check_layer(layer)
        self.edited = True
        rewire(layer, number, source)

    def rename(self, layer: Layer, name: str) -> None:
        from irrun.ir.editing import rename_layer

        _check_layer(layer)
        self.edited = True
        rename_layer(layer, name)

    def name_tensor(self, source: Value | Layer, *names: str) -> None:
        """Give a tensor these names, all that it goes by."""
        from irrun.ir.editing import name_tensor

        self.edited = True
        name_tensor(source, names)

    def set_attribute(self, layer: Layer, name: str, value: Any) -> None:
        """Set an attribute to a number, a truth value, a text, or several of them; None removes it."""
        from irrun.ir.attribute_editing import set_attribute

        _check_layer(layer)
        self.edited = True
        set_attribute(layer, name, value)

    def set_constant(self, layer: Layer, array: Any, *, type: str | None = None) -> None:
        """Give a Const other data, of the type that it has unless given or the array is of another."""
        from irrun.ir.editing import set_constant

        _check_layer(layer)
        self.edited = True
        set_constant(self, layer, array, type)

    def prune(self, *, parameters: bool = False) -> list[Layer]:
        """Remove the layers that lead to no output, with `parameters` inputs too; which these were."""
        from irrun.ir.editing import prune

        self.edited = True
        return prune(self.graph, parameters)

    def __reduce__(self) -> Any:
        if self.edited:
            from irrun.ir.writer import model_bytes

            return _read_again, model_bytes(self)
        weights = self.weights.path if self.weights.content is None else bytes(self.weights.content)
        return _read_again, (self.path if self.content is None else self.content, weights)


def _check_layer(layer: object) -> None:
    """Raises TypeError for what is no layer, such as the name of one."""
    if not isinstance(layer, Layer):
        raise TypeError(f"{layer!r} is no Layer: model.layer(...) finds one by its name or id")


def outside(parameter: Layer) -> Value | None:
    """What the layer gets that a Parameter of its body gets."""
    owner = parameter.graph.owner
    for body in owner.bodies.values() if owner is not None else ():
        for entry in body.inputs:
            if entry.internal is parameter and owner is not None and 0 <= entry.external < len(owner.inputs):
                return owner.inputs[entry.external]
    return None


def leading_to(layers: Iterable[Layer]) -> set[Layer]:
    """These layers, and all that they are computed from in their graph."""
    found = set(layers)
    stack = list(found)
    while stack:
        for value in stack.pop().inputs:
            if value and value.layer not in found:
                found.add(value.layer)
                stack.append(value.layer)
    return found


def _read_again(source: Path | bytes, weights: Path | bytes | None) -> Model:
    """A model that was pickled. Raises IRError where its file is not there any more."""
    from irrun.ir.reader import read_model

    return read_model(source, weights)
