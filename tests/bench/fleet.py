"""Many models with inputs, for sweeps: copies of exported ones, and as many built ones as are wanted beside these."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import irrun
from bench.models import models_in

SETS = 3
"""Files of inputs of each model."""


def fleet(folder: Path, count: int, exports: Sequence[Path], largest: int) -> list[Path]:
    """So many models, each in a folder of its own with `inputs0.npz` and so on; those of `exports` first, up to
    `largest` bytes of weights each. What is there already stays."""
    done = sorted(folder.glob("*/model.xml"))
    if len(done) == count:
        return done
    found = [model for place in exports for model in models_in(place)]
    found = [model for model in found if model.path.with_suffix(".bin").stat().st_size <= largest][:count]
    for model in found:
        target = folder / model.name
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(model.path, target / "model.xml")
        shutil.copy(model.path.with_suffix(".bin"), target / "model.bin")
        with np.load(model.inputs) as arrays:
            _write_inputs(target, dict(arrays))
    for number in range(count - len(found)):
        target = folder / f"built{number:03}"
        target.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(number)
        _KINDS[number % len(_KINDS)](rng, target / "model.xml")
        executor = irrun.GraphExecutor(target / "model.xml", engine="numpy", once=True)
        _write_inputs(target, executor.random_inputs(number))
    return sorted(folder.glob("*/model.xml"))


def _write_inputs(folder: Path, arrays: dict[str, np.ndarray]) -> None:
    """Sets of inputs that differ in their floats, which any model takes."""
    for number in range(SETS):
        scaled = {
            name: (array * array.dtype.type(1 - 0.01 * number) if array.dtype.kind == "f" else array)
            for name, array in arrays.items()
        }
        np.savez(folder / f"inputs{number}.npz", **scaled)


def _weights(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)


def _dense(rng: np.random.Generator, path: Path) -> None:
    width = int(rng.choice([128, 256, 512]))
    with irrun.build("dense") as g:
        x = g.Parameter(f"f32[16, {width}]", name="x")
        for _ in range(int(rng.integers(4, 12))):
            x = g.ReLU(g.Add(g.MatMul(x, _weights(rng, width, width), transpose_b=True), _weights(rng, 1, width)))
        g.Result(x, name="y")
    irrun.write_model(g.model, path)


def _image(rng: np.random.Generator, path: Path) -> None:
    channels, size = int(rng.choice([16, 32, 64])), int(rng.choice([32, 48, 64]))
    flat = {"strides": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1], "dilations": [1, 1], "auto_pad": "explicit"}
    with irrun.build("image") as g:
        x = g.Parameter(f"f32[1, 3, {size}, {size}]", name="x")
        x = g.Convolution(x, _weights(rng, channels, 3, 3, 3), **flat)
        for _ in range(int(rng.integers(4, 16))):
            x = g.ReLU(g.Add(x, g.Convolution(x, _weights(rng, channels, channels, 3, 3) / 9, **flat)))
        g.Result(g.ReduceMean(x, [2, 3], keep_dims=False), name="y")
    irrun.write_model(g.model, path)


def _attention(rng: np.random.Generator, path: Path) -> None:
    width, length = int(rng.choice([128, 256])), int(rng.choice([32, 64, 128]))
    with irrun.build("attention") as g:
        x = g.Parameter(f"f32[1, {length}, {width}]", name="x")
        for _ in range(int(rng.integers(2, 6))):
            q, k, v = (g.MatMul(x, _weights(rng, width, width), transpose_b=True) for _ in range(3))
            scores = g.SoftMax(g.Multiply(g.MatMul(q, k, transpose_b=True), width**-0.5), axis=-1)
            x = g.Add(x, g.MatMul(scores, v))
            hidden = g.Gelu(g.MatMul(x, _weights(rng, 4 * width, width), transpose_b=True), approximation_mode="ERF")
            x = g.Add(x, g.MatMul(hidden, _weights(rng, width, 4 * width), transpose_b=True))
        g.Result(x, name="y")
    irrun.write_model(g.model, path)


_KINDS: Sequence[Callable[[np.random.Generator, Path], None]] = (_dense, _image, _attention)
