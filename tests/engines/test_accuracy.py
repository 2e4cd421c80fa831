"""Sums of many terms are as exact by every engine as f32 allows: held against f64, in parts of the largest result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ir_builder import Model

import irrun

ENGINES = pytest.mark.parametrize("engine", ["reference", "numpy", "auto"])
BOUND = 1e-6

SHAPES = [
    ((1, 64, 768), (2,)),
    ((1, 64, 5000), (2,)),
    ((1, 32, 32, 32), (2, 3)),
    ((1, 32, 64, 64), (2, 3)),
    ((1, 8, 320, 320), (2, 3)),
    ((1, 4, 317, 317), (2, 3)),
    ((1, 2, 1000, 1000), (2, 3)),
    ((1, 320, 320, 8), (1, 2)),
    ((1, 100, 160, 64), (1, 2)),
    ((1, 10007, 16), (1,)),
    ((1, 10007, 300), (1,)),
    ((65536, 5), (0,)),
    ((3, 1000003), (1,)),
    ((1000003,), (0,)),
    ((200, 7, 500), (0, 2)),
    ((40, 30, 20, 50), (0, 2)),
]
"""Of data, with the axes that are summed."""


def numbers(shape: tuple[int, ...], mean: float) -> Any:
    return (np.random.default_rng(5).standard_normal(shape) + mean).astype(np.float32)


def error(engine: str, folder: Path, build: Callable[..., Any], data: Any, expected: Any) -> float:
    """How far the result of the layer that `build` adds is from what is expected, in parts of the largest of that."""
    b = Model()
    (result,) = build(b, b.parameter("x", "f32", data.shape))
    b.result(result)
    (found,) = irrun.GraphExecutor(b.save(folder), engine=engine).run([data]).values()
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def indices(b: Model, values: Any) -> Any:
    return b.constant(np.asarray(values, np.int64))


def reduction(name: str, opset: str, axes: tuple[int, ...], shape: tuple[int, ...]) -> Callable[..., Any]:
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return lambda b, x: b.layer(name, [x, indices(b, axes)], [("f32", kept)], opset, keep_dims="true")


REDUCTIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "ReduceSum": ("opset1", lambda x, axes: x.sum(axes, keepdims=True)),
    "ReduceMean": ("opset1", lambda x, axes: x.mean(axes, keepdims=True)),
    "ReduceL1": ("opset4", lambda x, axes: np.abs(x).sum(axes, keepdims=True)),
    "ReduceL2": ("opset4", lambda x, axes: np.sqrt((x * x).sum(axes, keepdims=True))),
}


@ENGINES
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize(("shape", "axes"), SHAPES, ids=str)
def test_reductions(name, shape, axes, engine, tmp_path):
    data, (opset, exact) = numbers(shape, 1), REDUCTIONS[name]
    expected = exact(data.astype(np.float64), axes)
    assert error(engine, tmp_path, reduction(name, opset, axes, shape), data, expected) < BOUND


@ENGINES
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_numbers_at_odd_addresses(name, engine, tmp_path):
    shape = 3, 1000003
    data = np.empty(4 * 3 * 1000003 + 1, np.uint8)[1:].view(np.float32).reshape(shape)
    data[...] = numbers(shape, 1)
    opset, exact = REDUCTIONS[name]
    expected = exact(data.astype(np.float64), (1,))
    assert error(engine, tmp_path, reduction(name, opset, (1,), shape), data, expected) < BOUND


@ENGINES
@pytest.mark.parametrize("size", [32, 40, 64, 320, 317])
@pytest.mark.parametrize("behind", [False, True], ids=["alone", "behind a convolution"])
def test_means_of_images(size, behind, engine, tmp_path):
    """Behind a convolution of oneDNN, the data come in its layout."""
    shape = (1, 16, size, size)
    data = numbers(shape, 1)
    window = {"strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}

    def build(b: Model, x: Any) -> Any:
        if behind:
            weights = b.constant(np.eye(16, dtype=np.float32).reshape(16, 16, 1, 1))
            (x,) = b.layer("Convolution", [x, weights], [("f32", shape)], **window, dilations="1,1")
        pool = {"kernel": f"{size},{size}", "exclude-pad": "true", "rounding_type": "floor"}
        return b.layer("AvgPool", [x], [("f32", (1, 16, 1, 1))], **window, **pool)

    assert error(engine, tmp_path, build, data, data.astype(np.float64).mean((2, 3), keepdims=True)) < BOUND


def normalized(x: Any, axes: tuple[int, ...]) -> Any:
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + 1e-9)


@ENGINES
@pytest.mark.parametrize(("shape", "axes"), SHAPES, ids=str)
@pytest.mark.parametrize("mean", [1, 100])
def test_mean_variance_normalization(shape, axes, mean, engine, tmp_path):
    """oneDNN, which takes lines of rows that are not too long, rounds their sum and the mean to f32, each of which
    costs a last digit there."""
    data = numbers(shape, mean)
    expected = normalized(data.astype(np.float64), axes)
    lost = np.spacing(np.float32(mean)) / np.abs(expected).max()
    attrs = {"eps": "1e-9", "normalize_variance": "true", "eps_mode": "inside_sqrt"}
    found = error(
        *(engine, tmp_path, lambda b, x: b.layer("MVN", [x, indices(b, axes)], [("f32", shape)], "opset6", **attrs)),
        *(data, expected),
    )
    assert found < BOUND + 2 * lost * (engine == "auto")


@ENGINES
@pytest.mark.parametrize("mean", [1, 100])
@pytest.mark.parametrize("shape", [(1, 8, 320, 160), (2, 4, 1000, 500)], ids=str)
def test_group_normalization(shape, mean, engine, tmp_path):
    data = numbers(shape, mean)
    groups = data.astype(np.float64).reshape(shape[0], 2, -1)

    def build(b: Model, x: Any) -> Any:
        ones, zeros = (b.constant(np.full(shape[1], value, np.float32)) for value in (1, 0))
        return b.layer(
            "GroupNormalization", [x, ones, zeros], [("f32", shape)], "opset12", num_groups="2", epsilon="1e-9"
        )

    assert error(engine, tmp_path, build, data, normalized(groups, (2,)).reshape(shape)) < BOUND


@ENGINES
@pytest.mark.parametrize(("shape", "axes"), SHAPES, ids=str)
def test_normalize_l2(shape, axes, engine, tmp_path):
    data = numbers(shape, 1)
    wide = data.astype(np.float64)

    def build(b: Model, x: Any) -> Any:
        return b.layer("NormalizeL2", [x, indices(b, axes)], [("f32", shape)], eps="1e-9", eps_mode="add")

    assert error(engine, tmp_path, build, data, wide / np.sqrt((wide**2).sum(axes, keepdims=True))) < BOUND


@ENGINES
@pytest.mark.parametrize(("shape", "axes"), [(shape, axes) for shape, axes in SHAPES if len(axes) == 1], ids=str)
@pytest.mark.parametrize("name", ["SoftMax", "LogSoftmax"])
def test_softmax(name, shape, axes, engine, tmp_path):
    data = numbers(shape, 1)
    powers = np.exp(data.astype(np.float64))
    expected = powers / powers.sum(axes, keepdims=True)
    opset = {"SoftMax": "opset8", "LogSoftmax": "opset5"}[name]
    found = error(
        *(engine, tmp_path, lambda b, x: b.layer(name, [x], [("f32", shape)], opset, axis=str(axes[0]))),
        *(data, expected if name == "SoftMax" else np.log(expected)),
    )
    assert found < BOUND


@ENGINES
@pytest.mark.parametrize("shape", [(3, 100003), (1000003,), (2, 20000, 3)], ids=str)
@pytest.mark.parametrize("mean", [1, 100])
def test_cumulative_sums(shape, mean, engine, tmp_path):
    data = numbers(shape, mean)
    axis = len(shape) // 2
    found = error(
        *(engine, tmp_path, lambda b, x: b.layer("CumSum", [x, indices(b, axis)], [("f32", shape)], "opset3")),
        *(data, np.cumsum(data.astype(np.float64), axis)),
    )
    assert found < BOUND


@ENGINES
@pytest.mark.parametrize("size", [4096, 100003, 1000003])
@pytest.mark.parametrize("mean", [1, 100])
def test_products(size, mean, engine, tmp_path):
    data, weights = numbers((5, size), mean), numbers((size, 3), 1)
    attrs = {"transpose_a": "false", "transpose_b": "false"}
    found = error(
        *(engine, tmp_path, lambda b, x: b.layer("MatMul", [x, b.constant(weights)], [("f32", (5, 3))], **attrs)),
        *(data, data.astype(np.float64) @ weights.astype(np.float64)),
    )
    assert found < BOUND
