"""What a model can do without: runtime info, names, constants that are there twice, and layers of constants."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np

from irrun.check.infer import Inference, infer
from irrun.ir.graph import Graph, Layer, Model, Value
from irrun.ir.structure import topological_order
from irrun.spec.dims import product
from irrun.spec.dtypes import ELEMENT_TYPES, numpy_dtype
from irrun.spec.op import INTEGER, Array
from irrun.spec.traits import Converting, Quantizing
from irrun.tools.extract.regions import constant_layers

STRIPPED = ("rt_info", "names")

MAX_GROWN = 64
"""Bytes by which what a layer computes may be more than the constants that go with it, such as shapes."""

MAX_CODE_BITS = 8
"""Of elements that are codes of compressed weights."""


def strip(model: Model, given: Sequence[str]) -> None:
    """Remove `rt_info`, or `names` of layers and of tensors that are no inputs or outputs. Raises ValueError."""
    aspects = [part.strip() for text in given for part in text.split(",") if part.strip()]
    for aspect in aspects:
        if aspect not in STRIPPED:
            raise ValueError(f"`{aspect}` is not one of {', '.join(STRIPPED)}")
    for layer in model.graph.walk() if "rt_info" in aspects else ():
        layer.rt_info = None
        layer.graph.rt_info = None
    if "names" in aspects:
        for graph in dict.fromkeys([model.graph, *(layer.graph for layer in model.graph.walk())]):
            _unname(graph)
    model.edited = True


def _unname(graph: Graph) -> None:
    names = {layer.name for layer in graph.layers if layer.type in ("Parameter", "Result")}
    for layer in graph.layers:
        for value in layer.outputs:
            if layer.type != "Parameter" and not any(reader.type == "Result" for reader, _ in value.consumers):
                value.port.names = ()
        read = any(reader.type == "Result" for value in layer.outputs for reader, _ in value.consumers)
        if layer.type in ("Parameter", "Result") or (graph.owner is None and read):
            continue
        number, name = layer.id, f"{layer.type}_{layer.id}"
        while name in names:
            number += 1
            name = f"{layer.type}_{number}"
        names.add(name)
        layer.name = layer.element.attributes["name"] = name


def dedup(model: Model, given: Sequence[str]) -> None:
    """Let equal constants of a graph be one: those of one type, shape and value."""
    for graph in dict.fromkeys(layer.graph for layer in model.graph.walk()):
        first: dict[tuple[str, tuple[int, ...], int, bytes], Layer] = {}
        gone: list[Layer] = []
        for layer in [layer for layer in graph.layers if layer.type == "Const"]:
            if not layer.outputs or not layer.outputs[0].consumers:
                continue
            blob = model.weights.check(layer)
            digest = hashlib.sha256()
            for block in model.weights.blocks(layer):
                digest.update(block)
            key = (blob.element_type, blob.shape, blob.size, digest.digest())
            other = first.setdefault(key, layer)
            if other is not layer and other.precise == layer.precise:
                model.replace(layer.outputs[0], other)
                gone.append(layer)
        graph.drop(gone)


def fold(model: Model, given: Sequence[str]) -> None:
    """Let constants take the places of layers that are computed of constants alone, and of sizes that are known.

    Not where these are larger than what they are made of and nobody else reads, but for a few bytes, and not of
    quantizations and of what unpacks weights.
    """
    from irrun.tools.folding import computed, frontier_of

    inference = infer(model.graph, model.weights)
    sizes = _known(model.graph, inference)
    for value, array in sizes.items():
        _replace(model, value, array, inference)
    constant = _constant(model, inference)
    frontier = frontier_of(model.graph, constant)
    if frontier:
        for value, array in zip(frontier, computed(model, frontier), strict=True):
            _replace(model, value, array, inference)
    if sizes or frontier:
        model.prune()


def _replace(model: Model, value: Value, array: Array, inference: Inference) -> None:
    layer = model.add_constant(array, type=inference.tensor(value).type)
    names = value.port.names
    model.replace(value, layer)
    layer.outputs[0].port.names = names


def _known(graph: Graph, inference: Inference) -> dict[Value, Array]:
    """Integers that inference knows though they are computed of what is no constant, as sizes are."""
    constant = constant_layers(graph)
    found: dict[Value, Array] = {}
    for layer in graph.layers:
        node = inference.nodes.get(layer)
        if layer in constant or node is None or not node.op.pure or layer.bodies:
            continue
        for value in layer.outputs:
            tensor = inference.tensor(value)
            if value.consumers and tensor.type in INTEGER and tensor.known:
                found[value] = np.asarray(tensor.value).astype(numpy_dtype(tensor.type))
    return found


def _constant(model: Model, inference: Inference) -> set[Layer]:
    """The layers to be computed ahead, with the constants that they are computed of."""
    places = Counter(_place(layer, model) for layer in model.graph.walk() if layer.type == "Const")
    found: set[Layer] = set()
    for layer in topological_order(model.graph):
        if layer.type == "Const":
            found.add(layer)
            continue
        node = inference.nodes.get(layer)
        if node is None or not layer.inputs or layer.bodies or not node.op.pure or not layer.outputs:
            continue
        read = [value for value in layer.inputs if value is not None]
        if not all(value.layer in found for value in read) or node.op.trait(Quantizing):
            continue
        if node.op.trait(Converting) and (layer.rt_info or _unpacks(layer, inference)):
            continue  # runtime info is what marks those of compressed weights
        sizes = [_bytes(value, inference) for value in layer.outputs if value.consumers]
        gone = [
            value
            for value in dict.fromkeys(read)
            if all(reader is layer for reader, _ in value.consumers)
            and (value.layer.type != "Const" or places[_place(value.layer, model)] == 1)
        ]
        most = sum(_bytes(value, inference) or 0 for value in gone) + MAX_GROWN
        if all(size is not None for size in sizes) and sum(size or 0 for size in sizes) <= most:
            found.add(layer)
    return found


def _unpacks(layer: Layer, inference: Inference) -> bool:
    """Whether a conversion makes numbers of codes of few bits: what multiplies codes looks for it, at any size."""
    given, made = (ELEMENT_TYPES.get(inference.tensor(value).type) for value in (layer.inputs[0], layer.outputs[0]))
    return given is not None and made is not None and given.bits <= MAX_CODE_BITS and made.bits > given.bits


def _place(layer: Layer, model: Model) -> tuple[int, int] | None:
    """Where the bytes of a Const lie, which others may share."""
    blob = model.weights.checked(layer)
    return None if blob is None else (blob.offset, blob.size)


def _bytes(value: Value, inference: Inference) -> int | None:
    tensor = inference.tensor(value)
    if not tensor.static or tensor.type not in ELEMENT_TYPES or not ELEMENT_TYPES[tensor.type].bits:
        return None
    return -(-int(product(tensor.shape or ())) * ELEMENT_TYPES[tensor.type].bits // 8)
