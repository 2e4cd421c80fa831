"""Graphs as the text of an .xml and the bytes of a .bin, one element a line, written without irrun: the ground that
defects are planted in. What is planted, and where it should be blamed, is in the modules beside this one."""

import re
import struct
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

import numpy as np

PRECISIONS = {
    "f64": "FP64",
    "f32": "FP32",
    "f16": "FP16",
    "boolean": "BOOL",
    "u1": "BIN",
    "dynamic": "dynamic",
}
FORMATS = {
    "f64": "<f8", "f32": "<f4", "f16": "<f2", "i64": "<i8", "i32": "<i4", "i16": "<i2", "i8": "i1",
    "u64": "<u8", "u32": "<u4", "u16": "<u2", "u8": "u1", "boolean": "u1",
}  # fmt: skip
BITS = {"u1": 1, "u2": 2, "u3": 3, "u4": 4, "i4": 4, "nf4": 4, "f4e2m1": 4, "u6": 6, "bf16": 16}
TENSOR = re.compile(r"(?P<type>\w+)\[(?P<dims>[^\]]*)\](?:\{(?P<values>.*)\})?")


@dataclass(frozen=True, slots=True)
class Tensor:
    """`f32[2,?]`, or with numbers `i64[2]{0,1}`; `{*}` holds 0, 1, ... 6, 0, ..., and `...` has any rank."""

    type: str
    dims: tuple[str, ...] | None
    values: str | None = None

    @staticmethod
    def parse(text: str) -> "Tensor":
        match = TENSOR.fullmatch(text)
        assert match, text
        dims = match["dims"]
        return Tensor(match["type"], None if dims == "..." else tuple(filter(None, dims.split(","))), match["values"])

    @property
    def shape(self) -> str:
        return "..." if self.dims is None else ",".join(self.dims)

    def port(self, id: int, names: str = "") -> list[str]:
        precision = PRECISIONS.get(self.type, self.type.upper())
        attributes = f' id="{id}" precision="{precision}"' + (f" names={quoteattr(names)}" if names else "")
        if not self.dims:
            return [f"<port{attributes}/>"]
        dims = [f"\t<dim>{dim if dim.isdigit() else -1}</dim>" for dim in self.dims]
        return [f"<port{attributes}>", *dims, "</port>"]

    def bytes(self) -> bytes:
        count = int(np.prod([int(dim) for dim in self.dims or ()], dtype=np.int64))
        if self.type == "string":
            texts = [text.encode() for text in (self.values or "").split(",")][:count]
            ends = np.cumsum([len(text) for text in texts], dtype="<i4")
            return struct.pack("<ii", count, 0) + ends.tobytes() + b"".join(texts)
        if self.type in BITS or self.type.startswith("f8"):
            return bytes((BITS.get(self.type, 8) * count + 7) // 8)
        numbers = (
            np.arange(count) % (2 if self.type == "boolean" else 7)
            if self.values == "*"
            else [float(v) for v in (self.values or "").split(",") if v]
        )
        array = np.zeros(count, FORMATS[self.type])
        array[:] = np.asarray(numbers).astype(array.dtype)
        return array.tobytes()


@dataclass(slots=True)
class Graph:
    """A graph that grows layer by layer; `weights` may be shared by the graphs of one model."""

    name: str = "model"
    weights: bytearray = field(default_factory=bytearray)
    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    ports: dict[tuple[int, int], Tensor] = field(default_factory=dict)
    count: int = 0

    def op(
        self,
        name: str,
        op: str,
        inputs: list[tuple[int, int]],
        outputs: list[str],
        inside: list[str] | None = None,
        names: str = "",
        attributes: dict[str, str] | None = None,
        **more: str,
    ) -> list[tuple[int, int]]:
        """Add a layer such as `opset1.Add`; what it gives are its outputs as (layer, port)."""
        version, type = op.rsplit(".", 1)
        id = self.count
        self.count += 1
        lines = [f'<layer id="{id}" name={quoteattr(name)} type="{type}" version="{version}">']
        attributes = (attributes or {}) | more
        if attributes:
            lines.append("\t<data " + " ".join(f"{key}={quoteattr(value)}" for key, value in attributes.items()) + "/>")
        if inputs:
            lines.append("\t<input>")
            for port, source in enumerate(inputs):
                lines += ["\t\t" + line for line in self.ports[source].port(port)]
                self.edges.append(
                    f'<edge from-layer="{source[0]}" from-port="{source[1]}" to-layer="{id}" to-port="{port}"/>'
                )
            lines.append("\t</input>")
        made = []
        if outputs:
            lines.append("\t<output>")
            for port, text in enumerate(outputs, len(inputs)):
                tensor = Tensor.parse(text)
                lines += ["\t\t" + line for line in tensor.port(port, names)]
                self.ports[id, port] = tensor
                made.append((id, port))
            lines.append("\t</output>")
        lines += ["\t" + line for line in inside or []]
        self.layers += [*lines, "</layer>"]
        return made

    def parameter(self, name: str, text: str, names: str = "") -> tuple[int, int]:
        tensor = Tensor.parse(text)
        return self.op(name, "opset1.Parameter", [], [text], names=names, shape=tensor.shape, element_type=tensor.type)[
            0
        ]

    def const(self, name: str, text: str) -> tuple[int, int]:
        tensor = Tensor.parse(text)
        data = tensor.bytes()
        offset = len(self.weights)
        self.weights += data
        where = {"offset": str(offset), "size": str(len(data))}
        plain = {"element_type": tensor.type, "shape": tensor.shape} | where
        return self.op(name, "opset1.Const", [], [text.partition("{")[0]], attributes=plain)[0]

    def result(self, name: str, source: tuple[int, int]) -> int:
        self.op(name, "opset1.Result", [source], [])
        return self.count - 1

    def lines(self) -> list[str]:
        """The layers and edges, as they stand in a net or a body."""
        inner = ["<layers>", *("\t" + line for line in self.layers), "</layers>"]
        return [*inner, "<edges>", *("\t" + edge for edge in self.edges), "</edges>"]

    def body(self, tag: str) -> list[str]:
        return [f"<{tag}>", *("\t" + line for line in self.lines()), f"</{tag}>"]

    def text(self) -> str:
        lines = ["\t" + line for line in self.lines()]
        return "\n".join(['<?xml version="1.0"?>', f'<net name="{self.name}" version="11">', *lines, "</net>", ""])
