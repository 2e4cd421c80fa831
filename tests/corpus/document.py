"""An IR as an editable tree that knows at which line and column each of its elements and attributes will be written."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from irrun.spec.dtypes import ELEMENT_TYPES, element_type

Element = ET.Element
Spot = Element | tuple[Element, str]
"""An element, or an attribute of it."""


@dataclass
class Document:
    """`op` is the type of the layer that the model is about, for a model of one op."""

    name: str
    root: Element
    weights: bytes = b""
    op: str = ""
    lines: dict[Element, int] = field(default_factory=dict)
    columns: dict[tuple[Element, str], int] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, name: str, op: str = "") -> Document:
        weights = path.with_suffix(".bin")
        return cls(name, ET.parse(path).getroot(), weights.read_bytes() if weights.exists() else b"", op)

    def clone(self) -> Document:
        return Document(self.name, deepcopy(self.root), self.weights, self.op)

    # what is in it

    @property
    def layers(self) -> list[Element]:
        """The layers of the main graph."""
        return children(self.root, "layers")

    @property
    def edges(self) -> list[Element]:
        return children(self.root, "edges")

    def all_layers(self) -> Iterator[Element]:
        """Those of the bodies, too."""
        return self.root.iter("layer")

    def find(self, type: str, number: int = 0) -> Element:
        """The layer number `number` of a type, those of bodies included."""
        return [layer for layer in self.all_layers() if layer.get("type") == type][number]

    def subject(self) -> Element:
        """The layer that the model is about."""
        return self.find(self.op)

    def graph_of(self, layer: Element) -> Element:
        """What holds <layers> and <edges>: the <net> or a body."""
        for element in self.root.iter():
            layers = element.find("layers")
            if layers is not None and layer in list(layers):
                return element
        raise ValueError("the layer is in no graph")

    def edge_to(self, layer: Element, number: int = 0) -> Element:
        """The edge into input number `number`."""
        port = inputs(layer)[number].get("id")
        edges = children(self.graph_of(layer), "edges")
        return next(e for e in edges if (e.get("to-layer"), e.get("to-port")) == (layer.get("id"), port))

    def source(self, layer: Element, number: int = 0) -> tuple[Element, Element]:
        """The layer, and its output port, that input number `number` reads."""
        edge = self.edge_to(layer, number)
        layers = children(self.graph_of(layer), "layers")
        producer = next(each for each in layers if each.get("id") == edge.get("from-layer"))
        return producer, next(port for port in outputs(producer) if port.get("id") == edge.get("from-port"))

    # how to change it consistently

    def set_input(self, layer: Element, number: int, shape: Sequence[int] | None, type: str | None = None) -> None:
        """Give input number `number`, a Parameter or a Const, another shape or type, also where ports declare it."""
        producer, port = self.source(layer, number)
        data = producer.find("data")
        assert data is not None
        type = type or data.get("element_type", "")
        sizes = shape_of(data) if shape is None else list(shape)
        if producer.get("type") == "Const":
            count = int(np.prod(sizes))
            self.write(data, b"\0" * -(-count * ELEMENT_TYPES[type].bits // 8))
        data.set("element_type", type)
        data.set("shape", ",".join(map(str, sizes)))
        for each in (port, inputs(layer)[number]):
            declare(each, type, sizes)

    def set_value(self, layer: Element, number: int, value: Any) -> None:
        """Make input number `number` a constant; a plain number or list takes the type that the input has."""
        producer, port = self.source(layer, number)
        data = producer.find("data")
        assert data is not None
        type = data.get("element_type", "")
        array = np.asarray(value)
        if not isinstance(value, np.ndarray):
            array = array.astype({"f32": np.float32, "boolean": np.bool_}.get(type, type.replace("i", "int")))
        type = element_type(array.dtype)
        producer.set("type", "Const")
        data.attrib.clear()
        data.attrib.update(element_type=type, shape=",".join(map(str, array.shape)))
        self.write(data, array.tobytes())
        for each in (port, inputs(layer)[number]):
            declare(each, type, array.shape)

    def write(self, data: Element, content: bytes) -> None:
        """Give a Const a blob of its own."""
        data.set("offset", str(len(self.weights)))
        data.set("size", str(len(content)))
        self.weights += content

    # how it is written

    def text(self) -> bytes:
        """One element a line; fills `lines` and `columns`, both from 1."""
        self.lines.clear()
        self.columns.clear()
        written = ['<?xml version="1.0"?>']
        self._write(self.root, "", written)
        return "\n".join([*written, ""]).encode()

    def save(self, folder: Path) -> Path:
        path = folder / "model.xml"
        path.write_bytes(self.text())
        path.with_suffix(".bin").write_bytes(self.weights)
        return path

    def place(self, spot: Spot) -> tuple[int, int]:
        """The line and the column of an element or an attribute, once it is written."""
        if isinstance(spot, tuple):
            return self.lines[spot[0]], self.columns[spot]
        return self.lines[spot], self.columns[spot, ""]

    def _write(self, element: Element, indent: str, written: list[str]) -> None:
        tag = f"{indent}<{element.tag}"
        self.lines[element] = len(written) + 1
        self.columns[element, ""] = len(indent) + 1
        for name, value in element.attrib.items():
            self.columns[element, name] = len(tag) + 2
            tag += f" {name}={quoteattr(value)}"
        if not len(element):
            text = (element.text or "").strip()
            written.append(f"{tag}>{escape(text)}</{element.tag}>" if text else f"{tag}/>")
            return
        written.append(f"{tag}>")
        for child in element:
            self._write(child, indent + " ", written)
        written.append(f"{indent}</{element.tag}>")


def children(element: Element, tag: str) -> list[Element]:
    """What is in the first element of that tag; nothing where there is none."""
    found = element.find(tag)
    return [] if found is None else list(found)


def inputs(layer: Element) -> list[Element]:
    return children(layer, "input")


def outputs(layer: Element) -> list[Element]:
    return children(layer, "output")


def data_of(layer: Element) -> Element:
    """The <data> of a layer, a new one where there is none."""
    data = layer.find("data")
    if data is None:
        data = Element("data")
        layer.insert(0, data)
    return data


def shape_of(data: Element) -> list[int]:
    return [int(size) for size in data.get("shape", "").split(",") if size.strip()]


def declare(port: Element, type: str, sizes: Sequence[int]) -> None:
    port.set("precision", ELEMENT_TYPES[type].precision)
    for dim in list(port):
        port.remove(dim)
    for size in sizes:
        ET.SubElement(port, "dim").text = str(size)


def label(layer: Element) -> str:
    """As irrun names a layer."""
    return f"{layer.get('id')} {layer.get('name')}"
