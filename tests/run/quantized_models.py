"""Quantized models as NNCF and older tools write them, and what they give by the ops' own kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from ir_builder import Model, Tensor

import irrun

NUMPY = {"auto_broadcast": "numpy"}
WINDOW = {"strides": "1,1", "pads_begin": "1,1", "pads_end": "1,1", "dilations": "1,1", "auto_pad": "explicit"}


def fake_quantize(model: Model, x: Tensor, low: Any, high: Any, levels: int = 256, output: Any = None) -> Tensor:
    limits = [low, high, *(output or (low, high))]
    constants = [model.constant(np.asarray(limit, np.float32)) for limit in limits]
    (y,) = model.layer("FakeQuantize", [x, *constants], [x[2:]], levels=str(levels), **NUMPY)
    return y


def codes(*shape: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).integers(-127, 128, shape).astype(np.int8)


def elementwise(model: Model, name: str, *inputs: Tensor, **data: str) -> Tensor:
    (y,) = model.layer(name, list(inputs), [inputs[0][2:]], **data)
    return y


def compressed(model: Model, codes: Any, scale: Any, zero: Any = None) -> Tensor:
    """Weights as NNCF writes them: codes, converted, perhaps less a zero point, times a scale."""
    (w,) = model.layer("Convert", [model.constant(codes)], [("f32", codes.shape)], destination_type="f32")
    if zero is not None:
        w = elementwise(model, "Subtract", w, model.constant(np.asarray(zero, np.float32)), **NUMPY)
    return elementwise(model, "Multiply", w, model.constant(np.asarray(scale, np.float32)), **NUMPY)


def convolution(model: Model, x: Tensor, w: Tensor, **window: str) -> Tensor:
    """A convolution whose results are as large as its data, unless `window` says otherwise."""
    grouped = len(w[3]) > len(x[3])
    features = w[3][0] * w[3][1] if grouped else w[3][0]
    kernel = w[3][3:] if grouped else w[3][2:]
    attrs = WINDOW | window
    steps, pads = (tuple(map(int, attrs[name].split(","))) for name in ("strides", "pads_begin"))
    sizes = ((size + 2 * pad - k) // step + 1 for size, pad, k, step in zip(x[3][2:], pads, kernel, steps, strict=True))
    (y,) = model.layer(
        "GroupConvolution" if grouped else "Convolution", [x, w], [(x[2], (x[3][0], features, *sizes))], **attrs
    )
    return y


def product(model: Model, a: Tensor, b: Tensor, *, turned: bool = True) -> Tensor:
    shape = (*a[3][:-1], b[3][-2] if turned else b[3][-1])
    attrs = {"transpose_a": "false", "transpose_b": str(turned).lower()}
    (y,) = model.layer("MatMul", [a, b], [(a[2], shape)], **attrs)
    return y


def dynamic(model: Model, x: Any, weights: Any, zero: Any = None, **window: str) -> Any:
    """A product as converters write what is quantized in the run: x are codes, `zero` their zero point."""
    (a,) = model.layer("Convert", [x], [("i32", x[3])], destination_type="i32")
    if zero is not None:
        (z,) = model.layer("Convert", [zero], [("i32", zero[3])], destination_type="i32")
        a = elementwise(model, "Subtract", a, z, **NUMPY)
    w = model.constant(np.asarray(weights, np.int32))
    y = convolution(model, a, w, **window) if len(x[3]) > 3 else product(model, a, w, turned=False)
    (y,) = model.layer("Convert", [y], [("f32", y[3])], destination_type="f32")
    return y


def names(executor: irrun.GraphExecutor) -> list[str]:
    """What the latest program computes: each instruction as its ops, without those that take no time."""
    (program,) = [prepared.program for prepared in list(executor._whole.preparation._kept.values())[-1:]]
    return ["+".join(part.op.type for part in i.parts) for i in program.instructions if i.by != "view"]


def results(path: Path, inputs: dict[str, Any], engine: str = "onednn") -> tuple[list[Any], list[Any], list[str]]:
    """The results by an engine and by the ops' kernels, and what the program of the engine computes."""
    executor = irrun.GraphExecutor(path, engine=engine, threads=2)
    found = list(executor.run(inputs).values())
    expected = list(irrun.GraphExecutor(path, engine="reference").run(inputs).values())
    return found, expected, names(executor)


def mixed(folder: Path) -> Path:
    """A model of quantized and other layers."""
    model = Model()
    x = fake_quantize(model, model.parameter("x", "f32", (1, 8, 6, 6)), 0.0, 2.55)
    w = compressed(model, codes(8, 8, 3, 3), np.full((8, 1, 1, 1), 0.003))
    y = elementwise(model, "Tanh", convolution(model, x, w))
    y = elementwise(model, "Multiply", y, x, **NUMPY)
    model.result(fake_quantize(model, y, -2.56, 2.54))
    return model.save(folder)
