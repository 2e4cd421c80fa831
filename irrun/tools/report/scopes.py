"""Which scope each layer of a graph belongs to, by its name, and by its neighbours where the name says nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irrun.diagnostics import clipped
from irrun.ir.graph import Layer

Scope = tuple[str, ...]

DEEPEST = 24
"""Scopes in each other that are kept; a name may be nothing but slashes."""

_LONGEST = 80
"""Characters of one scope."""

_TOP = "__module"
"""What the converter of PyTorch calls a model itself."""


def scope_of(name: str) -> Scope:
    """The scopes that a name spells out: `__module.model.layers.3/aten::add/Add` is in model, layers and 3.

    What has `::` in it is an operator of a framework, by which unrelated layers are called.
    """
    head, *rest = [part for part in name.split("/") if part] or [""]
    parts = [*head.split("."), *rest][:-1]
    if not rest and not head.startswith(f"{_TOP}.") and len(parts) < 2:
        parts = []  # Add.1, which is numbered
    kept = [clipped(part, _LONGEST) for part in parts if part and part != _TOP and "::" not in part]
    return tuple(kept[:DEEPEST])


def scopes(layers: Sequence[Layer], apart: Mapping[Layer, object]) -> dict[Layer, Scope]:
    """The scope of each layer; those that are set `apart`, such as inputs, have none.

    Layers whose names have no scope, as passes of OpenVINO leave them, go with those that they are connected with:
    all that hang together are in the innermost scope that holds everything around them.
    """
    found = {layer: () if layer in apart else scope_of(layer.name) for layer in layers}
    roots: dict[Layer, Layer] = {layer: layer for layer in layers if layer not in apart and not found[layer]}

    def root(layer: Layer) -> Layer:
        while roots[layer] is not layer:
            roots[layer] = roots[roots[layer]]
            layer = roots[layer]
        return layer

    around: dict[Layer, list[tuple[Layer, Scope]]] = {}
    for layer in layers:
        for value in layer.inputs:
            source = None if value is None else value.layer
            if source is None or source in apart or layer in apart or source not in found:
                continue
            if layer in roots and source in roots:
                roots[root(layer)] = root(source)
            elif layer in roots:
                around.setdefault(layer, []).append((layer, found[source]))
            elif source in roots:
                around.setdefault(source, []).append((source, found[layer]))
    common: dict[Layer, Scope] = {}
    for layer, borders in around.items():
        head = root(layer)
        for _, scope in borders:
            common[head] = scope if head not in common else _shared(common[head], scope)
    return {layer: common.get(root(layer), ()) if layer in roots else scope for layer, scope in found.items()}


def _shared(one: Scope, other: Scope) -> Scope:
    length = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:length]
