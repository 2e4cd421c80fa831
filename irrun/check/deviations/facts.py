"""What is known of a layer, before a run or in one, as the conditions of deviations ask for it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from irrun.check.constancy import is_constant, is_empty, is_known
from irrun.check.deviations.properties import Property
from irrun.check.infer import Inference, InferredLayer
from irrun.ir.graph import Layer, Value, leading_to
from irrun.spec.dims import Dim
from irrun.spec.dtypes import element_type, numpy_dtype
from irrun.spec.op import FLOAT, Array, Tensor
from irrun.spec.traits import Elementwise, Quantizing, Reading, Reduction, Reshaping, Selecting, Storing, Trait

ABSENT: Any = object()
"""An input that is not connected, or an output that is not there: nothing holds of it."""

Decision = bool | None
"""Whether something holds; None where that is not known yet."""


class Facts:
    """A layer, with the arrays that it was given and has made, where it has run.

    An input that is None and connected is one that nobody has kept: what a rule knows of it counts. `constants` are
    all layers that depend on no input, variable or random number, where someone has found them.
    """

    def __init__(
        self,
        layer: Layer,
        inference: Inference,
        inputs: Sequence[Array | None] = (),
        outputs: Sequence[Array | None] = (),
        constants: Collection[Layer] | None = None,
    ) -> None:
        self.layer, self.inference, self.constants = layer, inference, constants
        self.node: InferredLayer = inference.nodes[layer]
        self.inputs, self.outputs = inputs, outputs

    @cached_property
    def names(self) -> Mapping[str, list[tuple[str, Any]]]:
        """Where an input, an attribute or an output by this name is to be found; an input comes before the others."""
        op = self.node.op
        found: dict[str, list[tuple[str, Any]]] = {}
        count = len(self.layer.inputs)
        for number, port in enumerate(op.inputs):
            numbers = range(number, count) if port.variadic else [number]
            found[port.name] = [("input", n) for n in numbers if n < count and self.layer.inputs[n] is not None]
        for attr in op.attrs:
            found.setdefault(attr.keyword, [("attribute", attr.keyword)])
        made = len(self.node.outputs)
        for number, result in enumerate(op.outputs):
            numbers = range(number, made) if result.variadic else [number]
            found.setdefault(result.name, [("output", n) for n in numbers if n < made])
        return found

    def places(self, name: str) -> list[tuple[str, Any]]:
        """Where `name` is to be found; `layer` is all inputs and outputs. A user's own op may lack what ours has."""
        if name == "layer":
            op = self.node.op
            names = dict.fromkeys([port.name for port in op.inputs] + [port.name for port in op.outputs])
            return [place for port in names for place in self.names[port] if place[0] != "attribute"]
        return self.names.get(name, [])

    def tensors(self, name: str) -> Iterator[Tensor]:
        """What is known of the tensors by a name; an attribute is known."""
        for kind, where in self.places(name):
            if kind == "attribute":
                value = self.node.attrs[where]
                if value is not None:
                    array = np.asarray(value)
                    yield Tensor("f64" if array.dtype.kind == "f" else "i64", array.shape, array)
                continue
            arrays = self.inputs if kind == "input" else self.outputs
            array_there = arrays[where] if where < len(arrays) else None
            known = self._known((kind, where))
            if array_there is None:
                yield known
            else:
                array = np.asarray(array_there)
                type = known.type if known.type != "dynamic" else element_type(array.dtype)
                yield Tensor(type, array.shape, array)

    def value(self, name: str) -> Any:
        """All elements by a name; None where they are not known, ABSENT where there is nothing."""
        tensors = list(self.tensors(name))
        if not tensors:
            return ABSENT
        return tensors[0].value if len(tensors) == 1 else None

    def part(self, what: str, name: str, axes: str | None = None) -> Any:
        """A size or the like of a tensor, as an array."""
        tensor = next(self.tensors(name), None)
        if tensor is None:
            return ABSENT
        if what == "bits":
            return None if tensor.type == "dynamic" else np.asarray(numpy_dtype(tensor.type).itemsize * 8)
        if what == "sum":
            return None if not tensor.known or tensor.value is None else np.asarray(tensor.value.sum(dtype=float))
        if tensor.shape is None:
            return None
        shape = np.empty(len(tensor.shape), object)
        shape[:] = tensor.shape
        if what == "rank":
            return np.asarray(len(shape))
        if what == "size":
            return np.asarray(0) if is_empty(tensor) else np.asarray(np.prod(shape)) if tensor.static else None
        if what == "shape":
            along = None if axes is None else self.value(axes)
            if axes is None:
                return shape
            return None if along is None or along.dtype == object else shape[along.astype(int)]
        axis = int(what.removeprefix("axis "))
        return np.asarray(shape[axis]) if axis < len(shape) else ABSENT

    def has(self, name: str, property: Property) -> Decision:
        """Whether any element by this name has a property."""
        unknown = False
        for tensor in self.tensors(name):
            if property.types is not None and tensor.type != "dynamic" and tensor.type not in property.types:
                continue
            if tensor.type in ("string", "boolean") and property.types is None:
                continue
            if tensor.value is None or not tensor.known:
                unknown = unknown or not is_empty(tensor)
            elif property.holds(tensor.value):
                return True
        return None if unknown else False

    def typed(self, name: str, types: frozenset[str]) -> Decision:
        tensor = next(self.tensors(name), None)
        return False if tensor is None else None if tensor.type == "dynamic" else tensor.type in types

    def dynamic(self, name: str, place: str | None, axis: int) -> Decision:
        """Whether sizes are unknown before a run: all that are asked for are looked at, any will do."""
        for found in self.places(name):
            known = self._known(found)
            if known.shape is None:
                return True
            sizes = known.shape if place is None else known.shape[axis : axis + 1 if place == "at" else None]
            if any(isinstance(size, Dim) for size in sizes):
                return True
        return False

    def of_unknown_rank(self, name: str) -> Decision:
        """Whether not even the number of sizes is known before a run; of an output, where it is of all inputs, as that
        of another one is told where that is made."""
        places = self.places(name)
        given = [value for value in self.layer.inputs if value is not None]
        if any(kind == "output" for kind, _ in places) and any(self.inference.tensor(v).shape is None for v in given):
            return False
        return any(self._known(place).shape is None for place in places)

    def _known(self, place: tuple[str, Any]) -> Tensor:
        """What is known before a run of an input or an output."""
        kind, where = place
        return self.inference.tensor(self.layer.inputs[where]) if kind == "input" else self.node.outputs[where]

    def connected(self, name: str) -> Decision:
        return bool(self.places(name))

    def left_out(self, name: str) -> Decision:
        written = (attr.name for attr in self.node.op.attrs if attr.keyword == name)
        return any(not self.layer.attributes.get(attribute, "").strip() for attribute in written)

    def another_one_elsewhere(self, name: str) -> Decision:
        """Whether another layer of the op has another value for an attribute."""
        others = (node for node in self.inference.nodes.values() if node.op is self.node.op)
        return any(node.attrs.get(name) != self.node.attrs.get(name) for node in others)

    def read(self, name: str) -> Decision:
        return any(self.layer.outputs[n].consumers for n in self._connected_outputs(name))

    def read_twice(self, name: str) -> Decision:
        return any(len(self.layer.outputs[n].consumers) > 1 for n in self._connected_outputs(name))

    def handed_out(self, name: str) -> Decision:
        """Whether what is made here is a result of the graph as it is."""
        readers = (layer for n in self._connected_outputs(name) for layer, _ in self.layer.outputs[n].consumers)
        return any(layer.type == "Result" for layer in readers)

    def made_by_a_reduction(self, name: str) -> Decision:
        """Whether an input is what a reduction of data gives."""
        return any(node.op.trait(Reduction) is not None for node in self._makers(name))

    def made_by_a_quantization(self, name: str) -> Decision:
        """Whether an input is rounded to few values, which devices keep as codes."""
        return any(node.op.trait(Quantizing) is not None for node in self._makers(name))

    def made_by_a_maximum_of_windows(self, name: str) -> Decision:
        """Whether an input is the largest elements of windows, before which devices compute what reads it."""
        return any(node.op.trait(Selecting) is not None for node in self._makers(name))

    def made_by_the_same_op(self, name: str) -> Decision:
        """Whether an input is what a layer of this op gives."""
        return any(node.op is self.node.op for node in self._makers(name))

    def stored(self, name: str, types: frozenset[str], how: str | None) -> Decision:
        """Whether an input is made of a constant of such types, scaled along its last axis, or in groups along one."""
        value = next((self.layer.inputs[where] for kind, where in self.places(name) if kind == "input"), None)
        if value is None or not self._constant(value):
            return False
        constants = [layer for layer in leading_to([value.layer]) if layer.type == "Const"]
        known = [self.inference.tensor(layer.outputs[0]) for layer in constants]
        ranks = [len(found.shape or ()) for found in known if found.type in types]
        if not ranks or how is None:
            return bool(ranks)
        if how == " in groups":
            return max(ranks) > len(self.inference.tensor(value).shape or ())
        return any(found.type in FLOAT and found.shape and found.shape[-1] != 1 for found in known)

    def _makers(self, name: str) -> list[InferredLayer]:
        """The layers that give inputs, as far as they could be inferred."""
        given = (self.layer.inputs[where] for kind, where in self.places(name) if kind == "input")
        nodes = (self.inference.nodes.get(value.layer) for value in given if value is not None)
        return [node for node in nodes if node is not None]

    def names_all_axes(self, name: str, data: str, first: int) -> Decision:
        """Whether axes, counted from the beginning, are all of those that a tensor has from one on."""
        axes, rank = self.value(name), self.part("rank", data)
        if axes is ABSENT or rank is ABSENT:
            return False
        if axes is None or rank is None or axes.dtype == object:
            return None
        return set(range(first, int(rank))) <= set(axes.ravel().tolist())

    def varies_otherwise(self, name: str, other: str) -> Decision:
        """Whether two tensors, aligned at the last axis, are larger than 1 along different axes."""
        found = []
        for tensor in (next(self.tensors(name), None), next(self.tensors(other), None)):
            if tensor is None:
                return False
            if not tensor.static:
                return None
            assert tensor.shape is not None
            found.append({axis for axis, size in enumerate(reversed(tensor.shape)) if size != 1})
        return found[0] != found[1]

    def _connected_outputs(self, name: str) -> list[int]:
        return [n for kind, n in self.places(name) if kind == "output" and n < len(self.layer.outputs)]

    def constant(self, name: str) -> Decision:
        """Whether it depends on constants alone, so that it is computed before any run; `layer` is all its inputs."""
        if name == "layer" and not self.node.op.pure:
            return False
        numbers = [n for kind, n in self.places(name) if kind == "input"]
        return all(self._constant(self.layer.inputs[n]) for n in numbers)

    def _constant(self, value: Value | None) -> bool:
        if value is None or self.constants is None:
            return is_constant(value, self.inference)
        return value.layer in self.constants or is_known(self.inference.tensor(value))

    def given_an_input(self, name: str) -> Decision:
        """Whether the variable that is read here stores an input of the model as it is."""
        read = self.node.op.trait(Reading)
        if read is None:
            return False
        for layer in self.layer.graph.layers:
            node = self.inference.nodes.get(layer)
            stored = node.op.trait(Storing) if node else None
            if node is None or stored is None or node.attrs[stored.variable] != self.node.attrs[read.variable]:
                continue
            source = layer.inputs[0]
            if source is not None and not source.layer.inputs and source.layer.type != "Const":
                return True
        return False

    def counting_behind_a_constant(self, name: str) -> Decision:
        """Whether a body counts its iterations in a Parameter that stands behind one that gets a constant."""
        for body in self.layer.bodies.values():
            counter = next((entry.internal for entry in body.inputs if entry.purpose), None)
            constants = [
                entry.internal
                for entry in body.inputs
                if entry.external >= 0 and entry.axis is None and self._constant(self.layer.inputs[entry.external])
            ]
            order = body.graph.parameters
            if counter is not None and any(order.index(each) < order.index(counter) for each in constants):
                return True
        return False

    def going_on_from_a_reshaped_slice(self, name: str) -> Decision:
        """Whether a body makes a state of a reshaped slice, which is what an element-wise layer reads first."""
        for body in self.layer.bodies.values():
            slices = {entry.internal for entry in body.inputs if entry.axis is not None}
            for edge in body.back_edges:
                last = edge.result.inputs[0]
                first = self._first_source(last, Elementwise)
                source = self._first_source(first, Reshaping)
                if source is not None and source.layer in slices:
                    return True
        return False

    def _first_source(self, value: Value | None, trait: type[Trait]) -> Value | None:
        """What a layer reads first that gives a value, if its op has a trait."""
        node = None if value is None else self.inference.nodes.get(value.layer)
        return None if node is None or node.op.trait(trait) is None else node.layer.inputs[0]

    def port_maps(self, what: str, kind: str) -> Any:
        """The numbers of the port maps that slice inputs, or join results, of all bodies.

        Slices have gaps where they are shorter than their stride, and overlap where they are longer.
        """
        bodies = self.layer.bodies.values()
        maps = [entry for body in bodies for entry in (body.outputs if kind == "joins" else body.inputs)]
        maps = [entry for entry in maps if entry.axis is not None]
        if kind == "slices with gaps":
            maps = [entry for entry in maps if abs(entry.stride) > entry.part_size]
        elif kind == "slices that overlap":
            maps = [entry for entry in maps if abs(entry.stride) < entry.part_size]
        elif kind != "joins":
            maps = [entry for entry in maps if (entry.stride < 0) is kind.startswith("backward")]
        return np.asarray(len(maps) if what == "number" else [getattr(entry, what) for entry in maps])
