"""Small models for tests, written as IR text without OpenVINO."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from irrun.spec.dtypes import ELEMENT_TYPES, element_type

Tensor = tuple[int, int, str, tuple]
"""An output: layer id, port id, element type and declared dims."""


class Model:
    """Layers are added in order; `save` writes model.xml and model.bin."""

    def __init__(self, version: int = 11) -> None:
        self.version = version
        self.layers: list[str] = []
        self.edges: list[str] = []
        self.weights = b""

    def parameter(self, name: str, type: str, shape: tuple | str) -> Tensor:
        text = shape if isinstance(shape, str) else ",".join(map(str, shape))
        dims = () if isinstance(shape, str) else tuple(size if isinstance(size, int) else -1 for size in shape)
        (output,) = self.layer("Parameter", [], [(type, dims)], names=[name], name=name, shape=text, element_type=type)
        return output

    def constant(self, array: object, name: str = "") -> Tensor:
        array = np.asarray(array)
        type = element_type(array.dtype)
        data = {"element_type": type, "shape": ",".join(map(str, array.shape))}
        data |= {"offset": str(len(self.weights)), "size": str(array.nbytes)}
        self.weights += array.tobytes()
        (output,) = self.layer("Const", [], [(type, array.shape)], name=name, **data)
        return output

    def layer(
        self,
        type: str,
        inputs: list[Tensor],
        outputs: list[tuple[str, tuple]],
        version: str = "opset1",
        name: str = "",
        names: list[str] | None = None,
        **data: str,
    ) -> list[Tensor]:
        number = len(self.layers)
        lines = [
            f'<layer id="{number}" name={quoteattr(name or f"{type}_{number}")} type="{type}" version="{version}">'
        ]
        if data:
            lines.append(f"<data {' '.join(f'{key}={quoteattr(value)}' for key, value in data.items())}/>")
        if inputs:
            lines += ["<input>", *(port(i, source[2], source[3]) for i, source in enumerate(inputs)), "</input>"]
        first = len(inputs)
        if outputs:
            given = names or [""] * len(outputs)
            ports = [port(first + i, *output, given[i]) for i, output in enumerate(outputs)]
            lines += ["<output>", *ports, "</output>"]
        self.layers.append("\n".join([*lines, "</layer>"]))
        for i, (layer, source, *_) in enumerate(inputs):
            ends = f'from-layer="{layer}" from-port="{source}" to-layer="{number}" to-port="{i}"'
            self.edges.append(f"<edge {ends}/>")
        return [(number, first + i, *output) for i, output in enumerate(outputs)]

    def result(self, source: Tensor) -> None:
        self.layer("Result", [source], [])

    def save(self, folder: Path) -> Path:
        path = folder / "model.xml"
        body = ["<layers>", *self.layers, "</layers>", "<edges>", *self.edges, "</edges>"]
        path.write_text(
            "\n".join(['<?xml version="1.0"?>', f'<net name="m" version="{self.version}">', *body, "</net>", ""])
        )
        path.with_suffix(".bin").write_bytes(self.weights)
        return path


def port(number: int, type: str, dims: tuple, names: str = "") -> str:
    named = f" names={quoteattr(names)}" if names else ""
    inner = "".join(f"<dim>{size}</dim>" for size in dims)
    return f'<port id="{number}" precision="{ELEMENT_TYPES[type].precision}"{named}>{inner}</port>'
