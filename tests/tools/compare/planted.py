"""Layers of many kinds with random tensors, for faults to be planted in their results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from irrun.spec.op import Op
from irrun.spec.registry import registry
from irrun.tools.compare.observed import Context, Observed
from irrun.tools.compare.steps import rounded

F32 = np.float32


def find(name: str) -> Op:
    return registry().ops[name]


@dataclass
class Planted:
    """A layer on inputs: what is right, and how it is computed."""

    op: Op
    inputs: list[Any]
    attrs: dict[str, Any] = field(default_factory=dict)
    constants: frozenset[int] = frozenset()
    port: int = 0

    def compute(self, inputs: Any) -> list[Any]:
        found = self.op(*inputs, **self.attrs)
        return list(found) if isinstance(found, tuple | list) else [np.asarray(found)]

    def compute64(self, inputs: Any) -> list[Any]:
        wide = [x.astype(np.float64) if x is not None and x.dtype == F32 else x for x in inputs]
        return self.compute(wide)

    def compute_as(self, attrs: Any) -> list[Any]:
        return replace(self, attrs=self.attrs | attrs).compute(self.inputs)

    @property
    def moves(self) -> bool:
        """Whether the elements of the result are those of the inputs."""
        return self.op.type in ("Concat", "Gather", "Transpose")

    @property
    def right(self) -> Any:
        return self.compute(self.inputs)[self.port]

    def observed(self, actual: Any, precision: str = "f32", **changes: Any) -> Observed:
        seen = Observed(
            op=self.op,
            layer=None,
            port=self.port,
            actual=actual,
            expected=self.right,
            reference=self.right,
            inputs=self.inputs,
            reference_inputs=self.inputs,
            precision=precision,
            attrs=self.op.defaults | self.attrs,
            constants=self.constants,
        )
        return replace(seen, **changes)

    def context(self, **changes: Any) -> Context:
        known = Context(compute=self.compute, compute64=self.compute64, compute_as=self.compute_as)
        return replace(known, **changes)


def noisy(array: Any, precision: str, chance: np.random.Generator, layer: Planted) -> Any:
    """What a device that computes in a precision may give: off by a step of f32 or two, and rounded.

    What only moves elements of f32 does so exactly.
    """
    if array.dtype.kind != "f" or (precision == "f32" and layer.moves):
        return array.copy()
    with np.errstate(all="ignore"):
        moved = array * (1 + chance.normal(size=array.shape) * 1e-7)
        return rounded(moved, precision).astype(array.dtype)


def shape_of(chance: np.random.Generator, rank: int | None = None, least: int = 2, most: int = 9) -> tuple[int, ...]:
    rank = int(chance.integers(1, 6)) if rank is None else rank
    return tuple(int(size) for size in chance.integers(least, most, rank))


def normal(chance: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return (chance.normal(size=shape) * 10 ** chance.uniform(-1, 1)).astype(F32)


def i64(*values: int) -> Any:
    return np.array(values, np.int64)


def layers(chance: np.random.Generator) -> Iterator[Planted]:
    """One layer of each kind."""
    batch, channels, features, size = (int(number) for number in chance.integers((1, 2, 2, 5), (4, 9, 9, 12)))
    windows = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1)}
    image = normal(chance, (batch, channels, size, size + 2))
    yield Planted(find("Convolution-1"), [image, normal(chance, (features, channels, 3, 3))], windows, frozenset({1}))
    yield Planted(find("GroupConvolution-1"), [image, normal(chance, (channels, 1, 1, 3, 3))], windows, frozenset({1}))
    rows, depth, columns = (int(number) for number in chance.integers(2, 40, 3))
    yield Planted(
        find("MatMul-1"),
        [normal(chance, (batch, rows, depth)), normal(chance, (depth, columns))],
        constants=frozenset({1}),
    )
    yield Planted(find("MatMul-1"), [normal(chance, (rows, rows)), normal(chance, (rows, rows))])
    shape = shape_of(chance)
    yield Planted(find("SoftMax-8"), [normal(chance, (*shape, 7))], {"axis": -1})
    yield Planted(find("ReduceSum-1"), [normal(chance, (*shape, 5)), i64(-1)], {"keep_dims": False})
    yield Planted(find("ReduceMean-1"), [normal(chance, (3, *shape)), i64(0)], {"keep_dims": False})
    yield Planted(find("Gather-8"), [normal(chance, (20, *shape[:2])), chance.integers(1, 19, (7,)), i64(0)[0]])
    yield Planted(find("Concat-1"), [normal(chance, shape), normal(chance, shape)], {"axis": 0})
    yield Planted(find("Add-1"), [normal(chance, shape), normal(chance, shape)])
    yield Planted(find("Subtract-1"), [normal(chance, shape), normal(chance, shape)])
    yield Planted(find("Multiply-1"), [normal(chance, shape), normal(chance, shape[-1:])], constants=frozenset({1}))
    yield Planted(find("Divide-1"), [normal(chance, shape), np.abs(normal(chance, shape)) + F32(0.5)])
    yield Planted(find("ReLU-1"), [normal(chance, shape)])
    yield Planted(find("Gelu-7"), [normal(chance, shape)])
    yield Planted(find("Sigmoid-1"), [normal(chance, shape)])
    yield Planted(find("Transpose-1"), [normal(chance, shape), i64(*range(len(shape))[::-1])])
    yield Planted(
        find("MVN-6"),
        [normal(chance, (*shape, 9)), i64(-1)],
        {"normalize_variance": True, "eps": 1e-5, "eps_mode": "inside_sqrt"},
    )
    hidden = int(chance.integers(2, 9))
    yield Planted(
        find("LSTMCell-4"),
        [
            normal(chance, (batch, 5)),
            normal(chance, (batch, hidden)),
            normal(chance, (batch, hidden)),
            normal(chance, (4 * hidden, 5)) * F32(0.3),
            normal(chance, (4 * hidden, hidden)) * F32(0.3),
            normal(chance, (4 * hidden,)) * F32(0.3),
        ],
        {"hidden_size": hidden},
        frozenset({3, 4, 5}),
    )
