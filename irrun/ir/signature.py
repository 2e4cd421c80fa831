"""What a model takes, gives and keeps: its inputs, outputs and variables, as its file declares them."""

from __future__ import annotations

from typing import Any

import numpy as np

from irrun.ir.graph import Graph, Layer, Port
from irrun.ir.layers import tensor_names
from irrun.ir.naming import layout_marks, name_sizes
from irrun.records import dataclass
from irrun.spec.attributes import parse_shape
from irrun.spec.dims import Shape, Size
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Tensor

_V10_OUTPUTS = {
    **dict.fromkeys(("f16", "bf16", "f64", "u8", "i8", "boolean"), "f32"),
    **dict.fromkeys(("i64", "u64"), "i32"),
}
"""How OpenVINO hands out the results of an IR of version 10: in the types that programs of its time expect."""


def handed_out(type: str, version: int) -> str:
    """The element type in which the result of a model of this IR version comes out, which is computed as `type`."""
    return _V10_OUTPUTS.get(type, type) if version == 10 else type


@dataclass(frozen=True, slots=True, repr=False)
class TensorInfo:
    """An input, an output or a variable of a model.

    It goes by `name` and by all other `names`. `type` is its element type ("f32", "dynamic" where it has none of its
    own). Of its `shape`, a number is a known size and a text an unknown one: the name that it has in messages
    ("batch", "2*ids.1"), with bounds ("batch (1..8)", "2..8"), or "?"; None is an unknown rank. `layout` names the
    axes ("NCHW", "N...C"), None where the file does not say.
    """

    name: str
    names: tuple[str, ...]
    type: str
    shape: tuple[int | str, ...] | None
    layout: str | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy type of its arrays. Raises TypeError where its element type is dynamic."""
        if self.type == "dynamic":
            raise TypeError(f"`{self.name}` has no element type of its own")
        return numpy_dtype(self.type)

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    def __str__(self) -> str:
        sizes = "..." if self.shape is None else ", ".join(map(str, self.shape))
        return f"{self.type}[{sizes}]"

    def __repr__(self) -> str:
        layout = "" if self.layout is None else f", layout={self.layout!r}"
        return f"TensorInfo({self.name!r}, {self}{layout})"


def described(names: tuple[str, ...], tensor: Tensor, port: Port | None = None) -> TensorInfo:
    """What is known of a tensor that goes by `names`; the layout is that of its `port`."""
    shape = None if tensor.shape is None else tuple(map(_size, tensor.shape))
    return TensorInfo(names[0], names, tensor.type, shape, None if port is None else _layout(port))


def names_of(layer: Layer) -> tuple[str, ...]:
    """The names that a Parameter goes by: those of its tensor, and its own."""
    tensor_names = layer.outputs[0].port.names if layer.outputs else ()
    return tuple(dict.fromkeys((*tensor_names, layer.name)))


def names_of_inputs(graph: Graph) -> list[tuple[str, ...]]:
    """The names that each Parameter of a model goes by. Its own is none where another one's tensor has it: exporters
    call a layer `input_ids` whose tensor is `decoder_input_ids`, and OpenVINO looks for names of tensors alone.
    """
    own = [layer.outputs[0].port.names if layer.outputs else () for layer in graph.parameters]
    taken = {name for names in own for name in names}
    return [
        tuple(names) if names and layer.name in taken else names_of(layer)
        for layer, names in zip(graph.parameters, own, strict=True)
    ]


def names_of_results(graph: Graph) -> list[tuple[str, ...]]:
    """The names that each Result goes by, and its tensor: the first one, which no other Result has, is its key.

    That is a name of its own, its tensor's, or its producer's, with a number behind it where others have it too.
    """
    taken: set[str] = set()
    counts: dict[str, int] = {}
    found = []
    for layer in graph.results:
        source = layer.inputs[0] if layer.inputs else None
        own = [name for name in tensor_names(layer.attributes.get("output_names", "")) if name.strip()]
        others: list[str] = []
        if source is not None:
            several = f".{source.index}" if len(source.layer.outputs) > 1 else ""
            others = [*source.port.names, f"{source.layer.name}{several}"]
        name = next(iter((*own, *others, layer.name)))
        unique, count = name, counts.get(name, 1)
        while unique in taken:
            unique = f"{name}_{count}"
            count += 1
        taken.add(unique)
        counts[name] = count
        found.append(tuple(dict.fromkeys((unique, *own, *others, layer.name))))
    return found


def inputs(graph: Graph) -> tuple[TensorInfo, ...]:
    """The inputs of a model, in order, as its Parameters declare them."""
    named = name_sizes(graph, {})
    found = []
    for layer, names in zip(graph.parameters, names_of_inputs(graph), strict=True):
        port = layer.outputs[0].port if layer.outputs else None
        type = layer.attributes.get("element_type", "dynamic")
        shape = named[layer].shape if layer in named else _shape(layer.attributes.get("shape", "..."))
        found.append(described(names, Tensor(type, shape), port))
    return tuple(found)


def outputs(graph: Graph) -> tuple[TensorInfo, ...]:
    """The outputs of a model, in order, as the ports declare them that its Results read."""
    found = []
    for layer, names in zip(graph.results, names_of_results(graph), strict=True):
        source = layer.inputs[0] if layer.inputs else None
        port = None if source is None else source.port
        dims = () if port is None else port.dims
        shape = tuple("?" if size < 0 else size for size in dims)
        type = None if port is None else port.precision
        found.append(TensorInfo(names[0], names, type or "dynamic", shape, None if port is None else _layout(port)))
    return tuple(found)


def variables(graph: Graph) -> tuple[TensorInfo, ...]:
    """The variables of a model, also of its bodies, by the layers that read and write them."""
    found: dict[str, TensorInfo] = {}
    for layer in graph.walk():
        name = layer.attributes.get("variable_id") if layer.type in ("ReadValue", "Assign") else None
        if name is not None and (name not in found or layer.type == "ReadValue"):
            type = layer.attributes.get("variable_type", "dynamic")
            shape = _shape(layer.attributes.get("variable_shape", "..."))
            found[name] = described((name,), Tensor(type, shape))
    return tuple(found.values())


def _shape(text: str) -> Shape | None:
    try:
        return parse_shape(text)
    except ValueError:  # which inference reports
        return None


def _size(size: Size) -> int | str:
    return size if isinstance(size, int) else repr(size)


def _layout(port: Port) -> str | None:
    marks = layout_marks(port)
    short = all(len(mark) == 1 or mark == "..." for mark in marks)
    return ("".join if short else ",".join)(marks) if marks else None
