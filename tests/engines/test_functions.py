"""Every element-wise function by every engine over the numbers that it meets: held against its kernel in f64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ir_builder import Model, Tensor

import irrun
from irrun.engines.onednn import load
from irrun.engines.onednn.posts import FUNCTIONS, NEAR
from irrun.engines.vectorized.posts import F32, UNARY
from irrun.spec.op import Array, Op
from irrun.spec.registry import registry

OPS = registry().ops
ATTRS: dict[str, list[dict[str, str]]] = {
    "Clamp-1": [{"min": "-0.5", "max": "0.75"}],
    "Elu-1": [{"alpha": "0.5"}, {"alpha": "-2"}],
    "Gelu-7": [{"approximation_mode": "erf"}, {"approximation_mode": "tanh"}],
    "Round-5": [{"mode": "half_to_even"}, {"mode": "half_away_from_zero"}],
}
NAMES = sorted({*FUNCTIONS, "Swish-4", *(name for name, (_, types) in UNARY.items() if types >= F32)})
CANCELLING = ("Gelu-2", "Gelu-7")
"""Whose kernels take two numbers that are next to equal from each other: their small results are what rounding left."""

PLACES = ("alone", "behind an element-wise op", "behind a product", "behind a convolution")


def numbers() -> Array:
    random = np.random.default_rng(8)
    powers = 10.0 ** random.uniform(-30, 2, 2000)
    parts = [np.linspace(-120, 120, 8001), random.uniform(-12, 12, 4000), random.standard_normal(2000), powers, -powers]
    return np.concatenate(parts).astype(np.float32)[:17984]


SPECIAL = np.float32([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-45, -1e-45, 1e-39, -1e-39, 1e30, -1e30])


def found(op: Op, attrs: dict[str, str], data: Array, place: str, engine: str, folder: Path) -> Array:
    """What an engine makes of [N] numbers, through a model where the function stands in a place."""
    b = Model()
    (x, shape), wide = _placed(b, data, place), 8
    (result,) = b.layer(op.type, [x], [("f32", shape)], f"opset{min(op.held_by)}", **attrs)
    b.result(result)
    executor = irrun.GraphExecutor(b.save(folder), engine=engine)
    given = data.reshape(-1, 1) if "product" in place else data.reshape(1, 1, -1, 1) if "conv" in place else data
    with np.errstate(all="ignore"):
        (output,) = executor.run([given]).values()
    if "product" in place:
        return np.asarray(output[:, wide - 1])
    return np.asarray(output[0, wide - 1, :, 0] if "conv" in place else output)


def _placed(b: Model, data: Array, place: str) -> tuple[Tensor, tuple[int, ...]]:
    """What the function is done to, which has the numbers themselves in its last column or channel."""
    count = len(data)
    if place == PLACES[0]:
        return b.parameter("x", "f32", (count,)), (count,)
    if place == PLACES[1]:
        zero = b.constant(np.zeros(1, np.float32))
        x = b.parameter("x", "f32", (count,))
        return b.layer("Subtract", [x, zero], [("f32", (count,))], auto_broadcast="numpy")[0], (count,)
    if place == PLACES[2]:
        ones = b.constant(np.ones((1, 8), np.float32))
        x = b.parameter("x", "f32", (count, 1))
        transposed = {"transpose_a": "false", "transpose_b": "false"}
        return b.layer("MatMul", [x, ones], [("f32", (count, 8))], **transposed)[0], (count, 8)
    ones = b.constant(np.ones((8, 1, 1, 1), np.float32))
    x = b.parameter("x", "f32", (1, 1, count, 1))
    window = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "auto_pad": "explicit"}
    return b.layer("Convolution", [x, ones], [("f32", (1, 8, count, 1))], **window)[0], (1, 8, count, 1)


def exact(op: Op, attrs: dict[str, str], data: Array) -> Any:
    read = {attr.keyword: attr.parse(attrs[attr.name]) for attr in op.attrs if attr.name in attrs}
    with np.errstate(all="ignore"):
        return np.asarray(op.kernel(data.astype(np.float64), **{**op.defaults, **read}))


def engines() -> list[str]:
    return ["reference", "numpy", *(["onednn"] if load(1) else [])]


@pytest.mark.parametrize(("place", "reach"), [*((place, 120) for place in PLACES), (PLACES[0], 80), (PLACES[0], 4)])
@pytest.mark.parametrize("name", NAMES)
def test_functions_are_exact_beside_each_result(name: str, place: str, reach: float, tmp_path: Path) -> None:
    """But behind products and convolutions, which are as exact as their largest results, those of NEAR are, too.

    Numbers that do not reach far may be computed another way.
    """
    op, data = OPS[name], numbers()
    data = data[np.abs(data) <= reach]
    for attrs in ATTRS.get(name, [{}]):
        expected = exact(op, attrs, data)
        right = np.abs(expected) < np.finfo(np.float32).max
        for engine in engines():
            output = found(op, attrs, data, place, engine, tmp_path)
            bound = (1e-6 + 1.2e-7 * np.abs(data)) * np.abs(expected) + 1e-30
            if name in CANCELLING:
                bound += 4e-7
            if name in NEAR and engine == "onednn" and "behind a" in place and "element" not in place:
                bound += 1.1e-6
            with np.errstate(all="ignore"):
                wrong = right & ~(np.abs(output - expected) <= bound)
            where = np.flatnonzero(wrong)[:3]
            assert not wrong.any(), f"{engine} {attrs}: of {data[where]} {output[where]}, not {expected[where]}"


@pytest.mark.parametrize("place", PLACES[:2])
@pytest.mark.parametrize("name", NAMES)
def test_functions_of_what_is_no_usual_number(name: str, place: str, tmp_path: Path) -> None:
    op = OPS[name]
    for attrs in ATTRS.get(name, [{}]):
        expected = exact(op, attrs, SPECIAL)
        with np.errstate(all="ignore"):
            narrow = expected.astype(np.float32)
        for engine in engines():
            output = found(op, attrs, SPECIAL, place, engine, tmp_path)
            np.testing.assert_allclose(output, narrow, rtol=1e-5, atol=1e-30, err_msg=f"{engine} {attrs}")


def test_mish_in_steps_is_as_exact(tmp_path: Path) -> None:
    """x * tanh(softplus(x)), as exporters write it."""
    b, data = Model(), numbers()
    x = b.parameter("x", "f32", data.shape)
    (soft,) = b.layer("SoftPlus", [x], [("f32", data.shape)], "opset4")
    (factor,) = b.layer("Tanh", [soft], [("f32", data.shape)])
    (result,) = b.layer("Multiply", [x, factor], [("f32", data.shape)], auto_broadcast="numpy")
    b.result(result)
    path, expected = b.save(tmp_path), exact(OPS["Mish-4"], {}, data)
    for engine in engines():
        (output,) = irrun.GraphExecutor(path, engine=engine).run([data]).values()
        bound = (1e-6 + 1.2e-7 * np.abs(data)) * np.abs(expected) + 1e-30
        assert (np.abs(output - expected) <= bound).all(), engine
