"""Variables, which live on between runs: in the model itself, and in bodies."""

from __future__ import annotations

from typing import Any

import numpy as np

from differential.builder import Builder, Rejected, Size, Value
from differential.graph import Layer
from irrun.spec.dtypes import element_type


def variable(b: Builder) -> Value:
    """ReadValue, something done with it, and Assign; with `grows`, rows are added in every run."""
    b.state = True
    name = f"v{len(b.graph.of_type('ReadValue'))}"
    width = b.number(1, 6)
    grows = b.chance(0.4)
    rows: Size = b.choose(b.open) if grows and b.open else b.number(1, 3)
    x = b.keep(b.input([rows, width]))
    counts = [array.shape[0] for array in x.arrays]
    shape: list[Any] = ["?" if grows else rows, width]
    if not grows and not isinstance(rows, int):
        raise Rejected
    at = [sum(counts[:number]) if grows else counts[0] for number in range(b.sets)]
    init = b.constant(b.data((at[0], width)) if b.chance(0.7) else np.zeros((at[0], width), b.dtype))
    type = element_type(b.dtype)
    attrs = {"variable_id": name, "variable_type": type, "variable_shape": ",".join(map(str, shape))}
    arrays = (init.arrays[0], *(b.data((count, width)) for count in at[1:]))
    (old,) = b.layer(Layer("ReadValue-6", [init.ref], attrs), [arrays], False, False)
    if grows:
        new = b.one("Concat-1", old, x, axis=0)
    else:
        half = b.constant(np.asarray(0.5, b.dtype)) if b.dtype.kind == "f" else b.constant(np.asarray(1, b.dtype))
        part = b.one("Multiply-1", old, half, auto_broadcast="numpy")
        new = b.one("Add-1", part, x, auto_broadcast="numpy")
        if b.chance(0.4):
            new = b.one("Tanh-1", new) if new.float else new
    (stored,) = b.layer(Layer("Assign-6", [new.ref], {"variable_id": name}), [new.arrays], False, False)
    if b.chance(0.2):
        b.result(stored)
    if b.chance(0.4):
        b.result(old)
    return b.keep(new)


def counted(inner: Builder, x: Value) -> Value:
    """A sum with a variable that the body adds to; its name is one that no other body has."""
    if x.dtype != np.float32:
        raise Rejected
    attrs = {"variable_id": f"b{inner.number(0, 10**9)}", "variable_type": "f32", "variable_shape": "1"}
    start = inner.constant(np.float32([0.5]))
    (old,) = inner.layer(Layer("ReadValue-6", [start.ref], attrs), [start.arrays], False, False)
    more = inner.one("Add-1", old, inner.constant(np.float32([0.25])), auto_broadcast="numpy")
    inner.layer(Layer("Assign-6", [more.ref], {"variable_id": attrs["variable_id"]}), [more.arrays], False, False)
    return inner.one("Add-1", x, old, auto_broadcast="numpy")
