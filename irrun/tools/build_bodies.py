"""Bodies that are built: graphs whose inputs and outputs are those of an op."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from irrun.ir.editing import add_parameter, add_result
from irrun.ir.graph import Layer, LayerBody, Value
from irrun.ir.port_editing import add_back_edge, map_input, map_output, map_purpose
from irrun.spec.op import Tensor
from irrun.tools.build import Builder, Operand

_COUNTER = "current_iteration"
_CONDITION = "execution_condition"


class Body(Builder):
    """The graph in an op such as If, Loop or TensorIterator; its Results are the outputs of that, in order."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._inputs: dict[Layer, tuple[Operand, dict[str, Any]]] = {}
        self._taken: dict[Value, Operand] = {}
        self._results: dict[Value, Layer] = {}
        self._outputs: list[tuple[Layer, dict[str, Any]]] = []
        self._carried: list[tuple[Layer, Layer]] = []
        self._purposes: list[tuple[Layer, str]] = []
        self._before: list[tuple[int, int]] = []

    def input(
        self,
        x: Operand,
        *,
        axis: int | None = None,
        start: int = 0,
        end: int = -1,
        stride: int = 1,
        part_size: int = 1,
        shape: str | None = None,
        name: str | None = None,
    ) -> Operand:
        """A value from outside as it is inside; with `axis` each iteration gets a slice of it, `part_size` long.

        It has the shape of its first value unless that is given, such as `[batch, ?]`, where iterations change it.
        """
        assert self._outer is not None
        outside = self._outer._operand(self._outer._value(x))
        sizes = outside.tensor.shape
        if axis is not None and sizes is not None:
            if not -len(sizes) <= axis < len(sizes):
                raise ValueError(f"`axis` is {axis}, but {outside!r} has rank {len(sizes)}")
            axis %= len(sizes)
            sizes = (*sizes[:axis], part_size, *sizes[axis + 1 :])
        text = "..." if sizes is None else ",".join(str(size) if isinstance(size, int) else "?" for size in sizes)
        if shape is not None:
            _, sizes, text = self._spec(f"{outside.type}{shape}", "the input")
        layer = add_parameter(self._graph, outside.type, text, self._name("Parameter", name))
        slices = {} if axis is None else {"axis": axis, "start": start, "end": end, "stride": stride}
        self._inputs[layer] = outside, slices | ({} if axis is None else {"part_size": part_size})
        self._inferred(layer)
        tensor = Tensor(outside.type, sizes)  # its value may be another one in the next iteration
        self._inference.nodes[layer].outputs = [tensor]
        return Operand(self, layer.outputs[0], tensor)

    def Result(  # type: ignore[override]  # noqa: N802
        self,
        x: Operand,
        *,
        axis: int | None = None,
        start: int = 0,
        end: int = -1,
        stride: int = 1,
        part_size: int = 1,
    ) -> None:
        """The next output of the op: the last value of `x`, or with `axis` those of all iterations joined along it."""
        given = {"axis": axis, "start": start, "end": end, "stride": stride, "part_size": part_size}
        layer = self._result(x)
        if any(layer is other for other, _ in self._outputs):  # a Result of a branch is one output
            layer = self._added(self._value(x))
        self._outputs.append((layer, {} if axis is None else given))

    def carry(self, parameter: Operand, x: Operand) -> None:
        """Let `x` be the value of an `input` in the next iteration. Raises ValueError."""
        layer = parameter.value.layer
        if layer not in self._inputs:
            raise ValueError(f"{parameter!r} is not an input of the body")
        self._carried.append((self._result(x), layer))

    def iteration(self, type: str = "i64") -> Operand:
        """The number of the iteration, from 0 on."""
        counter = self.Parameter(f"{type}[]")
        self._purposes.append((counter.value.layer, _COUNTER))
        return counter

    def condition(self, x: Operand) -> None:
        """Go on with the next iteration if `x` is true."""
        self._purposes.append((self._result(x), _CONDITION))

    def _value(self, x: Operand) -> Value:
        if isinstance(x, Operand) and x._builder is not self and x._builder in self._around():
            if x.value not in self._taken:
                assert self._outer is not None
                inner = self._outer._operand(self._outer._value(x))
                self._taken[x.value] = self.input(inner)
            return self._taken[x.value].value
        return super()._value(x)

    def _around(self) -> Iterator[Builder]:
        outer = self._outer
        while outer is not None:
            yield outer
            outer = outer._outer

    def _result(self, x: Operand) -> Layer:
        value = self._value(x)
        if value not in self._results:
            self._results[value] = self._added(value)
        return self._results[value]

    def _added(self, value: Value) -> Layer:
        layer = add_result(self._graph, value, self._name("Result", None))
        self._inferred(layer)
        return layer

    def _attach(self, layer: Layer, tag: str) -> None:
        """Make this the body of a layer. Raises ValueError."""
        if self._graph.owner is not None:
            raise ValueError(f"the body is that of layer {self._graph.owner} already")
        if self._outer is None or layer.graph is not self._outer._graph:
            raise ValueError(f"the body was made for another graph than that of {layer}")
        self._graph.owner, self._graph.element.tag = layer, tag
        layer.bodies[tag] = LayerBody(self._graph)
        for parameter, (outside, slices) in self._inputs.items():
            map_input(parameter, outside.value, slices)
        for number, (result, slices) in enumerate(self._outputs):
            map_output(result, number, slices)
        for result, parameter in self._carried:
            add_back_edge(result, parameter)
        for inside, purpose in self._purposes:
            map_purpose(inside, purpose)

    def _detach(self) -> None:
        self._graph.owner = None
