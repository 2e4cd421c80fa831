"""Models made in Python, op by op: every call is checked by the op's declaration and rule as it is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from irrun.check.attributes import read_attributes
from irrun.check.infer import Inference, body_of, infer_layer
from irrun.check.validate import given_shape
from irrun.diagnostics import IRError
from irrun.ir.attribute_editing import set_attribute
from irrun.ir.editing import add_constant, add_layer, add_parameter, add_result, declare, name_tensor, remove_layer
from irrun.ir.graph import Graph, Layer, Model, Value
from irrun.ir.naming import name_sizes
from irrun.ir.port_editing import add_output
from irrun.ir.reader import check_form
from irrun.ir.signature import TensorInfo, described
from irrun.ir.weights import Weights
from irrun.ir.xml import Element
from irrun.spec.dims import Dim, Shape
from irrun.spec.dtypes import ELEMENT_TYPES
from irrun.spec.op import LATEST_FULL, OPSETS, Op, Tensor, Violation
from irrun.tools.build_ops import as_array, check_bodies, find_op, type_for, types_of, version_of
from irrun.tools.editing import declared

if TYPE_CHECKING:
    from irrun.tools.build_bodies import Body

_VERSION = 11
"""Of the format."""

_SPEC = re.compile(r"\s*(\w+)\s*\[(.*)\]\s*", re.DOTALL)


class Operand:
    """A tensor of a model that is built: what a call has returned, and what others take.

    `info` is what is known of it, as of the inputs and outputs of a model.
    """

    __slots__ = ("_builder", "tensor", "value")

    def __init__(self, builder: Builder, value: Value, tensor: Tensor) -> None:
        self._builder = builder
        self.value = value
        self.tensor = tensor

    @property
    def info(self) -> TensorInfo:
        names = (*self.value.port.names, self.value.layer.name)
        return described(names, self.tensor, self.value.port)

    @property
    def type(self) -> str:
        return self.tensor.type

    @property
    def shape(self) -> tuple[int | str, ...] | None:
        """Its sizes, unknown ones as texts; None where its rank is unknown."""
        return self.info.shape

    def __repr__(self) -> str:
        number = f" output {self.value.index}" if len(self.value.layer.outputs) > 1 else ""
        return f"<{self.info} of {self.value.layer.name}{number}>"


Given = Operand | np.ndarray[Any, Any] | np.generic | bool | int | float | str | Sequence[Any] | None
"""What an op takes: operands, and what becomes a constant. None stands for an input that is left out at the end."""


class Builder:
    """A graph that is built: any op of its operation set is a method, as are Parameter, Result and Constant.

    Inputs go by position; arrays and numbers become constants, numbers of the type that the op has for that input.
    Attributes go by keyword, under their own names. The result is an operand, or a tuple of them.

    Raises IRError where a call breaks a rule of its op, ValueError or TypeError where it is no call of it; then nothing
    is added.
    """

    def __init__(self, model: Model, graph: Graph, opset: int, inference: Inference, outer: Builder | None) -> None:
        self._model, self._graph, self._opset, self._inference, self._outer = model, graph, opset, inference, outer
        self._sizes: dict[str, Dim] = {} if outer is None else outer._sizes
        self._names: set[str] = set()
        graph.next_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._outer is None:
            errors = [found for found in check_form(self._model) if found.severity == "error"]
            if errors:
                raise IRError(errors)

    @property
    def model(self) -> Model:
        """The model as far as it is built, to run, check, edit and write."""
        return self._model

    def __repr__(self) -> str:
        graph = self._graph
        inputs = ", ".join(f"{layer.name}: {self._known(layer)}" for layer in graph.parameters)
        what = f"<{type(self).__name__} of {len(graph.layers)} layers, opset{self._opset}: ({inputs}) -> "
        results = [self._operand(layer.inputs[0]) for layer in graph.results if layer.inputs[0]]
        return f"{what}({', '.join(str(result.info) for result in results)})>"

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *types_of(self._opset)})

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        try:
            op = find_op(name, self._opset)
        except ValueError as error:
            raise AttributeError(str(error)) from None

        def call(*inputs: Given, **attributes: Any) -> Any:
            return self.op(op.name, *inputs, **attributes)

        call.__name__, call.__doc__ = name, op.__doc__
        return call

    def Parameter(self, spec: str, *, name: str | None = None, layout: str | None = None) -> Operand:  # noqa: N802
        """An input, by its element type and shape: `f32[batch, 3, ?, 2..8]`, `i64[]`, or `f32[...]` for any rank.

        Sizes of one name are equal. A `layout`, such as `NCHW`, names the axes. Raises ValueError.
        """
        kind, shape, text = self._spec(spec, name or "the input")
        layer = add_parameter(self._graph, kind, text, self._name("Parameter", name))
        if layout is not None:
            marks = ",".join(layout.split(",") if "," in layout else re.findall(r"\.\.\.|.", layout))
            mark = Element("attribute", {"name": "layout", "version": "0", "layout": f"[{marks}]"})
            info = Element("rt_info", {})
            info.children = [mark]
            layer.outputs[0].port.element.children = [info]
        return self._parameter(layer, Tensor(kind, shape))

    def Constant(self, array: Any, *, type: str | None = None, name: str | None = None) -> Operand:  # noqa: N802
        """A constant; `type` is an element type, where that of the array is not meant. Raises TypeError, ValueError.

        Numbers of Python are i64, f32 and boolean unless it is given.
        """
        array = as_array(array, type)
        layer = add_constant(self._model, self._graph, array, type, self._name("Const", name))
        return self._inferred(layer)[0]

    def Result(self, x: Operand, *, name: str | None = None) -> None:  # noqa: N802
        """An output of the model, which goes by `name`. Raises ValueError."""
        value = self._value(x)
        if name is not None:
            name_tensor(value, (*value.port.names, name))
        layer = add_result(self._graph, value, self._name("Result", None))
        if name is not None and "," not in name:
            set_attribute(layer, "output_names", name)
        self._inferred(layer)

    def op(self, op: str, *inputs: Given, name: str | None = None, **attributes: Any) -> Any:
        """Any op: by its type, such as "Gather", or of a version, such as "Gather-7".

        Bodies are attributes, too: `then_body=...`, made by `body`. Raises as the methods do.
        """
        from irrun.tools.build_bodies import Body

        found = find_op(op, self._opset)
        bodies = {key: value for key, value in attributes.items() if isinstance(value, Body)}
        plain = {attr.name: attr.default for attr in found.attrs if attr.demanded}  # OpenVINO insists on them
        plain |= {key: value for key, value in attributes.items() if key not in bodies}
        check_bodies(found, bodies)
        before = list(self._graph.layers)
        try:
            values = self._values(found, list(inputs))
            label = self._name(found.type, name)
            layer = add_layer(self._graph, found.type, values, plain, label, version_of(found), 0)
            for tag, body in bodies.items():
                body._attach(layer, tag)
            for _ in range(self._count(found, layer)):
                add_output(layer)
            operands = self._inferred(layer)
        except Exception:
            self._forget([added for added in self._graph.layers if added not in set(before)])
            for body in bodies.values():
                body._detach()
            raise
        return tuple(operands) if len(operands) != 1 else operands[0]

    def body(self) -> Body:
        """A graph to be the body of an op: fill it, and give it to the call of the op.

        What it takes from outside becomes a Parameter of it, by `input` or just by using it.
        """
        from irrun.tools.build_bodies import Body

        graph = Graph(Element("body", {}))
        return Body(self._model, graph, self._opset, self._inference, self)

    def _name(self, type: str, name: str | None) -> str:
        """The name for a new layer. Raises ValueError where another layer has it."""
        if name in self._names:
            raise ValueError(f"there is a layer `{name}` already")
        number = self._graph.next_id or 0
        while name is None or name in self._names:
            name, number = f"{type}_{number}", number + 1
        return name

    def _spec(self, spec: str, input: str) -> tuple[str, Shape | None, str]:
        """The element type, the shape, and that as a file has it."""
        match = _SPEC.fullmatch(spec)
        if match is None or match[1] not in ELEMENT_TYPES:
            hint = "an element type and sizes, such as `f32[batch, 3, ?]`; `f32[]` is a scalar, `f32[...]` of any rank"
            raise ValueError(f"`{spec}` is not {hint}")
        if match[2].strip() == "...":
            return match[1], None, "..."
        sizes = [size.strip() for size in match[2].split(",")] if match[2].strip() else []
        shape = given_shape(sizes, input, self._sizes)
        texts = ["?" if size.isidentifier() or size == "-1" else size for size in sizes]
        return match[1], shape, ",".join(texts)

    def _parameter(self, layer: Layer, tensor: Tensor) -> Operand:
        self._inferred(layer)
        node = self._inference.nodes[layer]
        named = tensor if tensor.shape is None else name_sizes(self._graph, {layer: tensor}).get(layer, tensor)
        node.outputs = [named]
        return Operand(self, layer.outputs[0], named)

    def _values(self, op: Op, inputs: list[Given]) -> list[Value]:
        while inputs and inputs[-1] is None:
            inputs.pop()
        known = [self._operand(self._value(x)) if isinstance(x, Operand) else None for x in inputs]
        types = [operand.type if operand else None for operand in known]
        values: list[Value] = []
        for number, (given, operand) in enumerate(zip(inputs, known, strict=True)):
            if given is None:
                message = f"input {number} of {op.name} cannot be left out where there are more: an IR has no gaps"
                raise ValueError(message)
            if operand is None:
                operand = self.Constant(given, type=type_for(op, number, given, types))
            values.append(operand.value)
        return values

    def _value(self, x: Operand) -> Value:
        """The value that an operand is here: one of a graph around this one becomes a Parameter."""
        if not isinstance(x, Operand):
            raise TypeError(f"{x!r} is not an operand of the model")
        if x._builder is self:
            if x.value.layer.removed:
                raise ValueError(f"{x!r} was removed from the model")
            return x.value
        raise ValueError(f"{x!r} is not in this graph; a body takes what is outside, not the other way round")

    def _known(self, layer: Layer) -> TensorInfo:
        return self._operand(layer.outputs[0]).info

    def _operand(self, value: Value) -> Operand:
        return Operand(self, value, self._inference.tensor(value))

    def _count(self, op: Op, layer: Layer) -> int:
        """The outputs of a layer that has none yet, and is not of a body."""
        if layer.outputs or not (op.outputs and op.outputs[-1].variadic):
            return 0 if layer.outputs else len(op.outputs)
        attrs = read_attributes(op, layer).values
        if attrs is None:  # which inference reports
            return 1
        bodies = {tag: body_of(body, self._inference) for tag, body in layer.bodies.items()}
        try:
            inferred = op.infer([self._inference.tensor(value) for value in layer.inputs], attrs, bodies)
        except Violation:
            return 1
        return len(inferred.outputs)

    def _inferred(self, layer: Layer) -> list[Operand]:
        """The outputs of a layer, after its check. Raises IRError."""
        inference = self._inference
        start = len(inference.diagnostics)
        inference.seen.clear()
        node = infer_layer(layer, inference)
        inference.pending.clear()
        errors = [found for found in inference.diagnostics[start:] if found.severity == "error"]
        if node is None or errors:
            raise IRError(errors)
        inference.nodes[layer] = node
        self._names.add(layer.name)
        self._model.edited = True
        for inside in (layer, *(inner for body in layer.bodies.values() for inner in body.graph.walk())):
            for value in inside.outputs:
                tensor = inference.tensor(value)
                declare(value, tensor.type, declared(tensor))
        return [self._operand(value) for value in layer.outputs]

    def _forget(self, layers: Sequence[Layer]) -> None:
        for layer in reversed(layers):
            self._inference.nodes.pop(layer, None)
            self._names.discard(layer.name)
            remove_layer(layer, None)


def build(name: str = "model", *, opset: int = LATEST_FULL) -> Builder:
    """A model to be built; see `Builder`. Raises ValueError where there is no such operation set, TypeError where the
    name is no str.

    >>> import irrun
    >>> import numpy as np
    >>> weights = np.ones((10, 8), np.float32)
    >>> with irrun.build("dense", opset=13) as g:
    ...     x = g.Parameter("f32[batch, 8]", name="x")
    ...     y = g.Add(g.MatMul(x, weights, transpose_b=True), 1.0, name="y")
    ...     g.Result(y)
    >>> y
    <f32[batch, 10] of y>
    >>> irrun.GraphExecutor(g.model).run(np.ones((2, 8), np.float32))["y"].tolist()[0][:2]
    [9.0, 9.0]
    >>> g.MatMul(x, weights)
    Traceback (most recent call last):
    ...
    irrun.diagnostics.IRError: error[E401]: MatMul-1 C1: rows of `A` have 8 elements, but columns of `B` have 10
      note: in layer 7 `MatMul_7` (MatMul)
      note: `A` is f32[batch, 8], from layer 0 `x` (Parameter)
      note: `B` is f32[10, 8], from layer 6 `Const_6` (Const)
      help: after the transpositions the rows of A are as long as the columns of B; see matrix/matmul-1.rst
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a model is a str, not {name!r}")
    if opset not in OPSETS:
        raise ValueError(f"there is no operation set {opset!r}: they have numbers, from {OPSETS[0]} to {OPSETS[-1]}")
    weights = Weights(Path("<weights>"), b"")
    graph = Graph(Element("net", {"name": name, "version": str(_VERSION)}))
    model = Model(name, _VERSION, graph, weights, Path(f"<{name}>"), edited=True)
    return Builder(model, model.graph, opset, Inference(weights), None)
