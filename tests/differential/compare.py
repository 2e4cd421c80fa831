"""How far two results may be apart: rounding, as much of it as the model makes of tiny changes on the way."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from differential.graph import Array, Case, Graph, Layer, Ref, op_of, save

RELATIVE = {"f2": 4e-3, "f4": 2e-5, "f8": 1e-10}
"""What floats may differ by without a second look, of an element; a fourth of it of the largest one of the tensor."""

NOISE = {"f16": 1e-3, "f32": 3e-6, "f64": 1e-13}
"""What the second look changes every float of every tensor by."""

DRAWS = 6

SLACK = 20.0
"""How many times as far as that noise moves it a result may be off."""

TINY = 1e-11
"""What nobody looks at, as Gelu(-6)."""

STEPS = frozenset(
    {
        *("Ceiling", "Convert", "Equal", "FakeQuantize", "Floor", "FloorMod", "Greater", "GreaterEqual", "Less"),
        *("LessEqual", "MaxPool", "Mod", "NotEqual", "Round", "Sign", "TopK", "Unique", "Interpolate"),
        *("NonMaxSuppression", "AdaptiveMaxPool"),
    }
)
"""Ops that make a large difference of a small one, where nobody knows."""

CANCELLING = frozenset({"Gelu"})
"""Ops that take numbers near 1 from 1, so that what they give is off by the last bits of what they are given."""


def wrong(found: Array, expected: Array) -> Array:
    """Which elements are further apart than rounding alone explains; shapes and types are equal."""
    if expected.dtype.kind != "f":
        return np.asarray(found != expected)
    relative = RELATIVE[expected.dtype.str[1:]]
    with np.errstate(all="ignore"):
        one, other = found.astype(np.float64), expected.astype(np.float64)
        finite = np.isfinite(other)
        largest = np.abs(other[finite]).max(initial=0)
        near = np.abs(one - other) <= relative * np.abs(other) + relative / 4 * largest + TINY
        return np.asarray(~((finite & near) | (one == other) | (np.isnan(one) & np.isnan(other))))


def explained(case: Case, run: int, output: int, found: Array, expected: Array, folder: Path) -> bool:
    """Whether tiny changes on the way move the result as far as it is off."""
    import irrun

    with np.errstate(all="ignore"):
        base = expected.astype(np.float64)
        off = np.abs(found.astype(np.float64) - base)
        moved = np.zeros(base.shape)
        for draw in range(DRAWS):
            try:
                executor = irrun.GraphExecutor(save(noisy(case, draw), folder), engine="reference")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    for feed in case.feeds[: run + 1]:
                        outputs = list(executor.run(feed).values())
            except irrun.IRError:  # shapes are others than what the case says, or a size came of what was changed
                return True
            other = outputs[output].astype(np.float64)
            if other.shape != base.shape:
                return True
            same = (other == base) | (np.isnan(other) & np.isnan(base))
            moved = np.maximum(moved, np.where(same, 0, np.nan_to_num(np.abs(other - base), nan=np.inf)))
    if any(layer.type in STEPS for layer in case.graph.walk()):
        moved = np.maximum(moved, moved.max(initial=0))
    bad = wrong(found, expected)
    return bool((np.isinf(moved[bad]) | (off[bad] <= SLACK * moved[bad])).all())


def noisy(case: Case, draw: int) -> Case:
    """The case with every tensor of floats changed by about the last bits of its elements, also those in bodies."""
    random = np.random.default_rng([draw, 77])
    arrays = [array for feed in case.feeds for array in feed.values()]
    arrays += [layer.array for layer in case.graph.walk() if layer.array is not None]
    plain = all(bool(np.isfinite(array).all()) for array in arrays if array.dtype.kind == "f")
    return replace(case, graph=_noisy(case.graph, random, plain))


def _noisy(graph: Graph, random: np.random.Generator, plain: bool) -> Graph:
    """Elements also change by the last bits of the largest one of their tensor; where there are infinite ones, which is
    not `plain`, by about the last bit of numbers near 1, so that a 0 is another number.
    """
    result = Graph()
    numbers: dict[tuple[int, int], tuple[int, int]] = {}
    places: dict[int, int] = {}
    for number, layer in enumerate(graph.layers):
        inputs = [None if ref is None else numbers[ref] for ref in layer.inputs]
        bodies = {}
        for name, body in layer.bodies.items():
            inner = _noisy(body.graph, random, plain)
            moved = inner.places  # type: ignore[attr-defined]
            bodies[name] = replace(
                body,
                graph=inner,
                inputs=[{**entry, "internal_layer_id": moved[entry["internal_layer_id"]]} for entry in body.inputs],
                outputs=[{**entry, "internal_layer_id": moved[entry["internal_layer_id"]]} for entry in body.outputs],
                back_edges=[(moved[a], moved[c]) for a, c in body.back_edges],
            )
        own = places[number] = result.add(replace(layer, inputs=inputs, bodies=bodies))
        quiet = op_of(layer.name)[0].view_of is not None or layer.type in ("Constant", "ReadValue", "Assign")
        for port, (type, dims) in enumerate(layer.outputs):
            numbers[number, port] = (own, port)
            if type not in NOISE or quiet:
                continue
            own_noise = _Noise(result, random, type, dims)
            value = own_noise.times((own, port))
            scale = inputs[0] if layer.type in CANCELLING and inputs[0] is not None else value
            numbers[number, port] = own_noise.plus(value, scale, plain) if dims else value
    result.places = places  # type: ignore[attr-defined]
    return result


@dataclass
class _Noise:
    """Layers behind a tensor of floats that change it a little."""

    graph: Graph
    random: np.random.Generator
    type: str
    dims: tuple[int, ...]

    def _constant(self, array: Array, type: str) -> Ref:
        return self.graph.add(Layer("Constant-1", array=array, outputs=[(type, array.shape)])), 0

    def _draw(self, shift: float, size: float) -> Ref:
        sizes = [1 if size < 0 else size for size in self.dims]
        array = shift + self.random.uniform(-size, size, sizes)
        return self._constant(array.astype({"f16": "f2", "f32": "f4", "f64": "f8"}[self.type]), self.type)

    def _layer(self, name: str, *inputs: Ref, **attrs: str) -> Ref:
        return self.graph.add(Layer(name, list(inputs), attrs, [(self.type, self.dims)])), 0

    def times(self, value: Ref) -> Ref:
        return self._layer("Multiply-1", value, self._draw(1, NOISE[self.type]), auto_broadcast="numpy")

    def plus(self, value: Ref, scale: Ref, plain: bool) -> Ref:
        """With the last bits of the largest element of `scale`, of the shape of `value`."""
        if not plain:
            return self._layer("Add-1", value, self._draw(0, NOISE[self.type] / 1000), auto_broadcast="numpy")
        axes = self._constant(np.arange(len(self.dims)), "i64")
        largest = self._layer("ReduceMax-1", self._layer("Abs-1", scale), axes, keep_dims="true")
        more = self._layer("Multiply-1", largest, self._draw(0, NOISE[self.type] / 30), auto_broadcast="numpy")
        return self._layer("Add-1", value, more, auto_broadcast="numpy")
