"""Which scope each layer of a graph belongs to, by its name, and by its neighbours where the name says nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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
    """The scope of each of the layers, which come behind those that they read; those set `apart` have none.

    Layers whose names have no scope, as passes of OpenVINO leave them, are in the innermost one that holds all that
    read them; where nothing with a scope does, in that which holds all that they read.
    """
    found = {layer: scope for layer in layers if layer not in apart and (scope := scope_of(layer.name))}
    for layer in reversed(layers):
        if layer not in apart and layer not in found:
            readers = (reader for value in layer.outputs for reader, _ in value.consumers)
            around = _common(found[reader] for reader in readers if reader in found)
            if around is not None:
                found[layer] = around
    for layer in layers:
        if layer not in apart and layer not in found:
            read = (value.layer for value in layer.inputs if value is not None)
            found[layer] = _common(found[source] for source in read if source in found) or ()
    return {layer: found.get(layer, ()) for layer in layers}


def _common(scopes: Iterable[Scope]) -> Scope | None:
    common: Scope | None = None
    for scope in scopes:
        common = scope if common is None else _shared(common, scope)
    return common


def _shared(one: Scope, other: Scope) -> Scope:
    length = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:length]
