"""The element type of weights, kept apart from the one that is computed in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irrun.ir.graph import Graph, Layer, Model
from irrun.ir.xml import Element
from irrun.spec.dtypes import FLOAT_FORMATS, numpy_dtype
from irrun.spec.registry import registry
from irrun.spec.traits import Converting

TYPES = ("f16", "f32")

LEAST = 32
"""Elements of a constant that is worth a conversion: smaller ones are coefficients and bounds."""


def weights(model: Model, given: Sequence[str]) -> None:
    """Let f32 weights be f16 in the file and converted as they are read, or f16 ones be f32 again.

    Weights that f16 cannot hold stay. Raises ValueError.
    """
    for type in given:
        if type not in TYPES:
            raise ValueError(f"`{type}` is not one of {', '.join(TYPES)}")
        taken: dict[Graph, set[str]] = {}
        for layer in model.graph.walk():
            taken.setdefault(layer.graph, set()).add(layer.name)
        for layer in [layer for layer in model.graph.walk() if layer.type == "Const"]:
            if type == "f16":
                _compress(model, layer, taken[layer.graph])
            else:
                _unpack(model, layer)


def _compress(model: Model, layer: Layer, taken: set[str]) -> None:
    if layer.attributes.get("element_type") != "f32" or not layer.outputs or layer.precise:
        return
    if model.weights.check(layer).elements < LEAST:
        return
    if any(reader.precise for reader, _ in layer.outputs[0].consumers):
        return
    if not _held_by_f16(model, layer):
        return
    names, readers = layer.outputs[0].port.names, list(layer.outputs[0].consumers)
    conversion = registry().conversion
    converted = model.add(
        conversion.type, [layer], {"destination_type": "f32"}, name=_free_name(layer, taken), graph=layer.graph
    )
    for reader, number in readers:
        model.rewire(reader, number, converted.outputs[0])
    layer.outputs[0].port.names = ()
    converted.outputs[0].port.names = names
    info = Element("rt_info", {})
    info.children = [Element("attribute", {"name": "decompression", "version": "0"})]
    converted.rt_info = info
    model.set_constant(layer, model.weights.constant(layer).astype(np.float16), type="f16")


def _held_by_f16(model: Model, layer: Layer) -> bool:
    """Whether no number of a constant becomes infinite, and not most become 0, as OpenVINO's own compression has it."""
    finite = lost = 0
    for block in model.weights.blocks(layer):
        sizes = np.abs(np.frombuffer(block, "<f4"))
        sizes = sizes[np.isfinite(sizes)]
        if (sizes > FLOAT_FORMATS["f16"].largest).any():
            return False
        finite += sizes.size
        lost += int(np.count_nonzero((sizes > 0) & (sizes < np.finfo(np.float16).smallest_subnormal)))
    return lost <= 0.75 * finite


def _free_name(layer: Layer, taken: set[str]) -> str:
    name = f"{layer.name}/decompressed"
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _unpack(model: Model, layer: Layer) -> None:
    if layer.attributes.get("element_type") not in ("f16", "bf16") or not layer.outputs:
        return
    readers = [reader for reader, _ in layer.outputs[0].consumers]
    if not readers or not all(_decompresses(reader) for reader in readers):
        return
    array = model.weights.constant(layer)
    model.set_constant(layer, array.astype(numpy_dtype("f32")), type="f32")
    for reader in dict.fromkeys(readers):
        names = (*layer.outputs[0].port.names, *reader.outputs[0].port.names)
        model.remove(reader, bridge=0)
        layer.outputs[0].port.names = tuple(dict.fromkeys(names))


def _decompresses(layer: Layer) -> bool:
    op = registry().find(layer.type, layer.version)
    return op is not None and op.trait(Converting) is not None and layer.attributes.get("destination_type") == "f32"
