"""Quantized models run as integers: which parts of them do, and that their results are those of the graph."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from engines.onednn_works import ENGINE, has_avx2
from ir_builder import Model

import irrun
from irrun.engines import compiled
from irrun.run.internal_ops import DEQUANTIZE, QUANTIZE
from irrun.run.passes.grids import coding_between
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.registry import registry
from run.quantized_models import (
    NUMPY,
    codes,
    compressed,
    convolution,
    dynamic,
    elementwise,
    fake_quantize,
    mixed,
    names,
    product,
    results,
)

VNNI = ENGINE is not None and ENGINE.quantized
"""Whether oneDNN multiplies codes, as it does where the processor adds up products of bytes exactly."""

INTEGERS = ENGINE is not None and (VNNI or (ENGINE.leaves_codes and compiled.is_there() and has_avx2()))
needs_integers = pytest.mark.skipif(not INTEGERS, reason="no engine multiplies codes")
U8, I8 = (0.0, 2.55), (-1.28, 1.27)


def image(*shape: int, seed: int = 0, scale: float = 1.0) -> Any:
    return (np.random.default_rng(seed).normal(0, scale, shape)).astype(np.float32)


def on_grid(found: Any, expected: Any, step: float, often: float = 0.01) -> None:
    """Results lie at most one step of their grid off, and few do."""
    off = np.abs(found - expected) / step
    assert off.max() < 1.01
    assert (off > 0.5).mean() <= often


@needs_integers
def test_numbers_written_out(tmp_path):
    """Codes of x: 2, 3 and 255, those of the weights: 1, -2 and 3, 0; 0.5 and 0.25 are their steps."""
    model = Model()
    x = fake_quantize(model, model.parameter("x", "f32", (1, 3)), 0.0, 127.5)
    w = compressed(model, np.int8([[1, -2, 3], [0, 0, -1]]), [[0.25], [2.0]])
    model.result(product(model, x, w))
    (found,), (expected,), program = results(model.save(tmp_path), {"x": np.float32([[1.0, 1.6, 900]])})
    assert found.tolist() == expected.tolist() == [[(2 * 1 - 3 * 2 + 255 * 3) * 0.125, -255.0]]
    assert program == ["Quantize", "MatMul"]


@needs_integers
@pytest.mark.parametrize("limits", [U8, I8, (-1.27, 1.27), (-0.5, 2.05)])
@pytest.mark.parametrize("kind", ["dense", "grouped", "depthwise"])
def test_a_convolution_between_quantizations(limits, kind, tmp_path):
    """With bias and activation; zero is not at an end of the grid in some, and padding is zero."""
    model = Model()
    x = model.parameter("x", "f32", (2, 8, 9, 7))
    shape = {"dense": (12, 8, 3, 3), "grouped": (2, 6, 4, 3, 3), "depthwise": (8, 1, 1, 3, 3)}[kind]
    levels = 255 if limits == (-1.27, 1.27) else 256
    lead = 1 if kind == "dense" else 2
    scale = np.random.default_rng(3).uniform(0.001, 0.01, (*shape[:lead], *[1] * (len(shape) - lead)))
    y = convolution(model, fake_quantize(model, x, *limits, levels), compressed(model, codes(*shape), scale))
    y = elementwise(model, "Add", y, model.constant(image(1, y[3][1], 1, 1)), **NUMPY)
    y = elementwise(model, "ReLU", y)
    model.result(fake_quantize(model, y, 0.0, 5.1))
    w = compressed(model, codes(4, y[3][1], 1, 1), np.full((4, 1, 1, 1), 0.01))
    model.result(convolution(model, fake_quantize(model, y, 0.0, 5.1), w, pads_begin="0,0", pads_end="0,0"))
    (first, second), (a, b), program = results(model.save(tmp_path), {"x": image(2, 8, 9, 7)})
    on_grid(first, a, 5.1 / 255)
    np.testing.assert_allclose(second, b, atol=3 * 5.1 / 255 * 1.27)
    name = "Convolution" if kind == "dense" else "GroupConvolution"
    assert program.count("Quantize") + sum("+Quantize" in text for text in program) == 2
    assert any(text.startswith(f"{name}+Add+ReLU") for text in program)


@needs_integers
def test_the_whole_chain_is_one_primitive(tmp_path):
    """A residual in codes, a quantization in between, and one at the end."""
    model = Model()
    x = fake_quantize(model, model.parameter("x", "f32", (1, 16, 8, 8)), *U8)
    w = [compressed(model, codes(16, 16, 3, 3, seed=s), np.full((16, 1, 1, 1), 0.002)) for s in range(3)]
    y = elementwise(model, "Add", convolution(model, x, w[0]), model.constant(image(1, 16, 1, 1)), **NUMPY)
    y = elementwise(model, "Add", fake_quantize(model, y, -3.0, 3.0), x, **NUMPY)
    y = fake_quantize(model, elementwise(model, "ReLU", y), 0.0, 4.0)
    model.result(elementwise(model, "Add", convolution(model, y, w[1]), convolution(model, y, w[2]), **NUMPY))
    (found,), (expected,), program = results(model.save(tmp_path), {"x": image(1, 16, 8, 8)})
    assert "Convolution+Add+FakeQuantize+Add+ReLU+Quantize" in program
    assert not any("Dequantize" in text for text in program)
    np.testing.assert_allclose(found, expected, atol=0.02 * np.abs(expected).max())


@needs_integers
@pytest.mark.parametrize("channels", [6, 16])
def test_a_sum_of_two_quantized_products_that_nothing_else_reads(channels, tmp_path):
    """The later one is there as codes for the earlier one, behind which the sum is done."""
    model = Model()
    x = fake_quantize(model, model.parameter("x", "f32", (1, 4, 8, 8)), *U8)
    parts = []
    for seed, limits in enumerate(((-2.56, 2.54), I8)):
        w = compressed(model, codes(channels, 4, 3, 3, seed=seed), np.full((channels, 1, 1, 1), 0.002))
        parts.append(fake_quantize(model, convolution(model, x, w), *limits))
    model.result(elementwise(model, "ReLU", elementwise(model, "Add", *parts, **NUMPY)))
    for engine in ("onednn", "auto", "numpy"):
        (found,), (expected,), program = results(model.save(tmp_path), {"x": image(1, 4, 8, 8)}, engine)
        off = np.abs(found - expected)
        assert off.max() < 0.02 + 0.01 + 1e-5
        assert (off > 1e-4).mean() < 0.03
        if engine == "onednn" and VNNI:
            assert any(text.endswith("+Quantize") for text in program)
            assert any("+FakeQuantize+Add+ReLU" in text for text in program)


@needs_integers
def test_what_moves_elements_moves_codes(tmp_path):
    model = Model()
    x = fake_quantize(model, model.parameter("x", "f32", (2, 6, 8, 10)), *I8)
    window = {"strides": "2,2", "kernel": "3,3", "pads_begin": "1,1", "pads_end": "1,1", "rounding_type": "floor"}
    (y,) = model.layer("MaxPool", [x], [("f32", (2, 6, 4, 5))], **window)
    (y,) = model.layer("Transpose", [y, model.constant(np.int64([0, 2, 3, 1]))], [("f32", (2, 4, 5, 6))])
    (y,) = model.layer(
        "Reshape", [y, model.constant(np.int64([2, 20, 6]))], [("f32", (2, 20, 6))], special_zero="false"
    )
    model.result(product(model, y, compressed(model, codes(9, 6), np.full((9, 1), 0.01))))
    (found,), (expected,), program = results(model.save(tmp_path), {"x": image(2, 6, 8, 10)})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert program[0] == "Quantize"
    assert "MatMul" in program
    assert "Dequantize" not in program


@needs_integers
@pytest.mark.parametrize("mode", ["nearest", "linear_onnx"])
@pytest.mark.parametrize("pads", ["0,0,0,0", "0,0,1,0"])
@pytest.mark.parametrize("engine", ["onednn", "numpy"])
def test_images_of_other_sizes_by_the_nearest_pixels_are_of_their_codes(mode, pads, engine, tmp_path):
    """So that they are not quantized again between the same limits."""
    model, high = Model(), 8 + pads.count("1")
    x = fake_quantize(model, model.parameter("x", "f32", (2, 4, 4, 6)), *I8)
    sizes, scales = model.constant(np.int64([high, 12])), model.constant(np.float32([2, 2]))
    attrs = {"mode": mode, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    attrs |= {"shape_calculation_mode": "sizes", "pads_begin": pads, "pads_end": "0"}
    axes = model.constant(np.int64([2, 3]))
    (y,) = model.layer("Interpolate", [x, sizes, scales, axes], [("f32", (2, 4, high, 12))], "opset4", **attrs)
    y = fake_quantize(model, y, *I8)
    model.result(convolution(model, y, compressed(model, codes(4, 4, 3, 3), np.full((4, 1, 1, 1), 0.01))))
    (found,), (expected,), program = results(model.save(tmp_path), {"x": image(2, 4, 4, 6)}, engine)
    kept = mode == "nearest" and "1" not in pads
    assert sum(name.count("Quantize") for name in program) == (1 if kept else 2)
    if engine == "onednn":
        assert not kept or not any("Dequantize" in name for name in program)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 if kept else 0.06)


@needs_integers
@pytest.mark.parametrize("limits", [U8, I8, (-0.5, 2.05)])
@pytest.mark.parametrize("other", [None, (-1.0, 1.0)])
def test_parts_that_are_joined_again(limits, other, tmp_path):
    """What is split and joined are codes, but where the grids of the parts differ."""
    model = Model()
    x = fake_quantize(model, model.parameter("x", "f32", (2, 6, 5, 7)), *limits)
    lengths = model.constant(np.int64([2, 4]))
    shapes = [("f32", (2, 2, 5, 7)), ("f32", (2, 4, 5, 7))]
    first, second = model.layer("VariadicSplit", [x, model.constant(np.int64(1)), lengths], shapes)
    y = convolution(model, second, compressed(model, codes(4, 4, 3, 3), np.full((4, 1, 1, 1), 0.004)))
    y = fake_quantize(model, y, *(other or limits))
    (y,) = model.layer("Concat", [y, first, second], [("f32", (2, 10, 5, 7))], axis="1")
    w = np.full((9, 1, 1, 1), 0.01)
    model.result(convolution(model, y, compressed(model, codes(9, 10, 1, 1), w), pads_begin="0,0", pads_end="0,0"))
    (found,), (expected,), program = results(model.save(tmp_path), {"x": image(2, 6, 5, 7)})
    np.testing.assert_allclose(found, expected, atol=0.02 * np.abs(expected).max())
    assert np.mean(np.abs(found - expected)) < 1e-3 * np.abs(expected).max()
    assert ("Dequantize" in program) == (other is not None)
    assert program.count("Quantize") == 1


@needs_integers
@pytest.mark.parametrize("limits", [U8, I8, (-0.5, 2.05)])
@pytest.mark.parametrize("second", [U8, I8, (-0.5, 2.05), (-2.55, 0.0)])
@pytest.mark.parametrize("sizes", [(3, 5, 40, 7), (8, 64, 64, 64), (1, 1, 3, 1), (2, 49, 300, 33)], ids=str)
def test_products_of_two_quantized_tensors(limits, second, sizes, tmp_path):
    """The codes of the second are signed, wherever zero lies, as processors multiply by such. One is turned."""
    count, rows, inner, columns = sizes
    model = Model()
    a = fake_quantize(model, model.parameter("a", "f32", (count, rows, inner)), *limits)
    b = fake_quantize(model, model.parameter("b", "f32", (count, columns, inner)), *second)
    (b,) = model.layer("Transpose", [b, model.constant(np.int64([0, 2, 1]))], [("f32", (count, inner, columns))])
    model.result(product(model, a, b, turned=False))
    inputs = {"a": image(count, rows, inner), "b": image(count, columns, inner, seed=1)}
    inputs["a"].flat[:3] = inputs["b"].flat[:3] = np.inf, -np.inf, 0.0
    (found,), (expected,), program = results(model.save(tmp_path), inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * inner * 2.55**2)
    if VNNI:  # others multiply codes with constants alone
        assert program == ["Quantize", "Quantize", "MatMul"]


@needs_integers
def test_a_tensor_that_is_multiplied_by_itself(tmp_path):
    """As its own scores are: it has one kind of codes, on both sides."""
    model = Model()
    x = fake_quantize(model, model.parameter("x", "f32", (2, 9, 40)), *U8)
    model.result(product(model, x, x))
    y = elementwise(model, "ReLU", model.parameter("y", "f32", (2, 9, 40)))
    y = fake_quantize(model, y, -0.5, 2.05)
    model.result(product(model, y, y))
    (first, second), (a, b), program = results(model.save(tmp_path), {"x": image(2, 9, 40), "y": image(2, 9, 40)})
    np.testing.assert_allclose(first, a, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(second, b, rtol=1e-5, atol=1e-4)
    if VNNI:
        assert "Dequantize" not in program


@needs_integers
def test_weights_that_are_quantized_in_the_graph(tmp_path):
    """As older tools write them: f32 with a FakeQuantize of 255 levels, scaled for each feature."""
    model = Model()
    x = fake_quantize(model, model.parameter("x", "f32", (1, 8, 6, 6)), *U8)
    high = np.random.default_rng(5).uniform(0.5, 2, (10, 1, 1, 1))
    w = fake_quantize(model, model.constant(image(10, 8, 3, 3)), -high, high, 255)
    model.result(convolution(model, x, w))
    (found,), (expected,), program = results(model.save(tmp_path), {"x": image(1, 8, 6, 6)})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)
    assert program[0] == "Quantize"
    assert not any("FakeQuantize" in text for text in program)


@needs_integers
@pytest.mark.parametrize(
    "case",
    [
        *("65536 levels", "off the grid", "next to the grid", "by channel", "zero points", "scales along inputs"),
        "computed limits",
    ],
)
def test_what_stays_f32(case, tmp_path):
    """What integers cannot say is computed as it stands, and right."""
    model = Model()
    x = model.parameter("x", "f32", (1, 8, 6, 6))
    low, high, levels = -1.0, 1.55, 256
    scale, zero = np.full((10, 1, 1, 1), 0.01), None
    if case == "65536 levels":
        levels = 65536
    elif case == "off the grid":
        high = 1.5012
    elif case == "next to the grid":  # half a thousandth of a level
        high = 1.550013
    elif case == "by channel":
        low, high = np.zeros((1, 8, 1, 1)), np.linspace(1, 2, 8).reshape(1, 8, 1, 1)
    elif case == "zero points":
        zero = np.full((10, 1, 1, 1), 0.5)
    elif case == "scales along inputs":
        scale = np.linspace(0.01, 0.02, 8).reshape(1, 8, 1, 1)
    if case == "computed limits":
        limit = model.parameter("limit", "f32", ())
        constants = [model.constant(np.float32(0)), limit, model.constant(np.float32(0)), limit]
        (q,) = model.layer("FakeQuantize", [x, *constants], [x[2:]], levels="256", **NUMPY)
    else:
        q = fake_quantize(model, x, low, high, levels)
    model.result(convolution(model, q, compressed(model, codes(10, 8, 3, 3), scale, zero)))
    inputs = {"x": image(1, 8, 6, 6), **({"limit": np.float32(1.5)} if case == "computed limits" else {})}
    (found,), (expected,), program = results(model.save(tmp_path), inputs)
    assert any("FakeQuantize" in text for text in program)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@needs_integers
@pytest.mark.parametrize("off", [0, 1e-4, 9e-4])
def test_weights_whose_zero_is_next_to_a_level(off, tmp_path):
    """In levels: a sum of 1024 products would pile it up."""
    model = Model()
    x = fake_quantize(model, model.parameter("x", "f32", (2, 1024)), -2.0, 2 * 127 / 128)
    low, high = -0.8 + 0.1 * off, 0.7 + 0.1 * off
    weights = np.random.default_rng(0).normal(0, 0.1, (5, 1024)).astype(np.float32)
    w = fake_quantize(model, model.constant(weights), low, high, 16)
    (y,) = model.layer("MatMul", [x, w], [("f32", (2, 5))], transpose_a="false", transpose_b="true")
    model.result(y)
    data = np.abs(np.random.default_rng(1).normal(size=(2, 1024))).astype(np.float32)
    (found,), (expected,), program = results(model.save(tmp_path), {"x": data})
    assert ("Quantize" in program) == (off == 0)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


@needs_integers
def test_numbers_are_made_for_those_who_read_no_codes(tmp_path):
    model = Model()
    x = fake_quantize(model, model.parameter("x", "f32", (1, 8, 6, 6)), *U8)
    model.result(convolution(model, x, compressed(model, codes(4, 8, 3, 3), np.full((4, 1, 1, 1), 0.01))))
    model.result(x)
    model.result(elementwise(model, "Sin", x))
    found, expected, program = results(model.save(tmp_path), {"x": image(1, 8, 6, 6)})
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    assert program.count("Dequantize") == 1


@needs_integers
def test_codes_that_are_read_by_element_wise_ops_alone(tmp_path):
    """What is made of codes is made for each chain of these anew, and nothing is lost."""
    model = Model()
    x = model.parameter("x", "f32", (1, 8, 6, 6))
    w = compressed(model, codes(8, 8, 3, 3), np.full((8, 1, 1, 1), 0.01))
    q = fake_quantize(model, elementwise(model, "Sin", x), *I8)
    y = elementwise(model, "Add", q, x, **NUMPY)
    model.result(fake_quantize(model, elementwise(model, "Add", y, q, **NUMPY), -5.12, 5.08))
    model.result(convolution(model, q, w))
    (first, second), (a, b), program = results(model.save(tmp_path), {"x": image(1, 8, 6, 6)})
    on_grid(first, a, 0.04)
    np.testing.assert_allclose(second, b, atol=0.02)
    assert program.count("Dequantize") == 1


@needs_integers
def test_channels_with_zeros_of_their_own_that_are_not_negative(tmp_path):
    """Some channels have a range on both sides of zero, others on one; what comes of a Clamp needs no codes below."""
    model = Model()
    low, high = np.zeros((1, 6, 1, 1), np.float32), np.linspace(1, 6, 6, dtype=np.float32).reshape(1, 6, 1, 1)
    low[0, 2:4], high[0, 2:4] = -1.28, 1.27
    x = elementwise(model, "Clamp", model.parameter("x", "f32", (1, 6, 7, 7)), min="0", max="6")
    w = compressed(model, codes(6, 1, 1, 3, 3), np.full((6, 1, 1, 1, 1), 0.01))
    model.result(convolution(model, fake_quantize(model, x, low, high), w))
    (found,), (expected,), program = results(model.save(tmp_path), {"x": image(1, 6, 7, 7, scale=4.0)})
    assert "GroupConvolution" in program
    assert not any("FakeQuantize" in text for text in program)
    np.testing.assert_allclose(found, expected, atol=0.05)
    assert (np.abs(found - expected) > 1e-4).mean() < 0.02


@pytest.mark.parametrize("engine", ["onednn", "numpy", "check", "reference"])
def test_every_engine_gives_the_same(engine, tmp_path):
    if engine == "onednn" and ENGINE is None:
        pytest.skip("oneDNN is not installed")
    path, inputs = mixed(tmp_path), {"x": image(1, 8, 6, 6)}
    (found,) = irrun.GraphExecutor(path, engine=engine, threads=2).run(inputs).values()
    (expected,) = irrun.GraphExecutor(path, engine="reference").run(inputs).values()
    on_grid(found, expected, 0.02)


@needs_integers
def test_who_looks_at_tensors_sees_those_of_the_graph(tmp_path):
    path = mixed(tmp_path)
    seen: dict[str, Any] = {}
    executor = irrun.GraphExecutor(path, engine="onednn")
    executor.run({"x": image(1, 8, 6, 6)}, observer=lambda event: seen.update({event.layer.type: event.array}))
    assert {array.dtype for array in seen.values()} == {np.dtype(np.float32)}
    assert "FakeQuantize" in seen


@needs_integers
@pytest.mark.parametrize("seed", range(12))
def test_random_networks(seed, tmp_path):
    """Chains of quantized convolutions with all that may stand between them, on sizes that vectors do not divide."""
    random = np.random.default_rng(seed)
    model = Model()
    channels, size = int(random.integers(1, 40)), int(random.integers(3, 20))
    y = model.parameter("x", "f32", (int(random.integers(1, 3)), channels, size, size + 1))
    inputs = {"x": image(*y[3], seed=seed)}
    step = 1.0
    for layer in range(int(random.integers(1, 5))):
        y, step = random_quantization(model, y, random)
        features = int(random.integers(1, 40))
        kernel = int(random.choice([1, 3]))
        depthwise = random.random() < 0.3
        shape = (y[3][1], 1, 1, kernel, kernel) if depthwise else (features, y[3][1], kernel, kernel)
        inner = kernel**2 * (1 if depthwise else y[3][1])
        lead = shape[:2] if depthwise else shape[:1]
        scale = random.uniform(0.5, 1.5, (*lead, *[1] * (len(shape) - len(lead)))) / 70 / inner**0.5
        pads = "0,0" if kernel == 1 else "1,1"
        steps = str(random.choice(["1,1", "2,2"]))
        w = compressed(model, codes(*shape, seed=layer), scale)
        y = convolution(model, y, w, pads_begin=pads, pads_end=pads, strides=steps)
        if random.random() < 0.7:
            y = elementwise(model, "Add", y, model.constant(image(1, y[3][1], 1, 1)), **NUMPY)
        if random.random() < 0.6:
            y = elementwise(model, str(random.choice(["ReLU", "Tanh", "Sigmoid"])), y)
    y, step = random_quantization(model, y, random)
    model.result(y)
    (found,), (expected,), _ = results(model.save(tmp_path), inputs)
    off = np.abs(found - expected) / step
    assert (off > 0.5).mean() < 0.05  # a step of one layer may become more in the next ones
    assert np.mean(off) < 0.1


def random_quantization(model: Model, y: Any, random: Any) -> tuple[Any, float]:
    """A quantization on a grid that has zero, and the step of that."""
    step, kind = float(random.uniform(0.005, 0.03)), int(random.integers(4))
    first, levels = [(0, 256), (-128, 256), (-127, 255), (int(random.integers(-255, 0)), 256)][kind]
    return fake_quantize(model, y, first * step, (first + levels - 1) * step, levels), step


@pytest.mark.parametrize("engine", ["onednn", "numpy"])
@pytest.mark.parametrize("type", ["u8", "i8"])
@pytest.mark.parametrize("largest", [127, 255])
@pytest.mark.parametrize("with_zero", [True, False])
def test_sums_of_whole_numbers_that_are_quantized_in_the_run(engine, type, largest, with_zero, tmp_path):
    """Exact: the largest sum is below 2^24. The zero point changes from run to run, padding is zero."""
    if engine == "onednn" and ENGINE is None:
        pytest.skip("oneDNN is not installed")
    random = np.random.default_rng(largest)
    model = Model()
    x, z = model.parameter("x", type, (2, 5, 6, 7)), model.parameter("z", type, ())
    m = model.parameter("m", type, (4, 30))
    zero = z if with_zero else None
    filters = random.integers(-largest - 1 if largest == 127 else -255, largest + 1, (6, 5, 3, 3))
    matrix = random.integers(-127, 128, (30, 9))
    model.result(dynamic(model, x, filters, zero))
    y = dynamic(model, m, matrix, zero)
    scale = model.parameter("scale", "f32", ())
    model.result(elementwise(model, "Multiply", y, scale, **NUMPY))
    path = model.save(tmp_path)
    executor = irrun.GraphExecutor(path, engine=engine, threads=2)
    limits = np.iinfo(numpy_dtype(type))
    for value in (0, 3, limits.max):
        inputs = {
            "x": random.integers(limits.min, limits.max + 1, (2, 5, 6, 7)).astype(limits.dtype),
            "m": random.integers(limits.min, limits.max + 1, (4, 30)).astype(limits.dtype),
            "scale": np.float32(0.5),
            **({"z": np.array(value, limits.dtype)} if with_zero else {"z": np.array(0, limits.dtype)}),
        }
        first, second = executor.run(inputs).values()
        moved = inputs["m"].astype(int) - (value if with_zero else 0)
        np.testing.assert_array_equal(second, (moved @ matrix) * 0.5)
        expected, _ = irrun.GraphExecutor(path, engine="reference").run(inputs).values()
        np.testing.assert_array_equal(first, expected)
    if engine == "onednn" and INTEGERS:
        program = names(executor)
        assert any(text.startswith("IntegerMatMul+Multiply") for text in program)
        assert ("IntegerConvolution" in program) == (largest == 127)


def test_whole_numbers_are_multiplied_as_floats_where_the_weights_are_the_first_layer_of_the_file(tmp_path):
    model = Model()
    w, x = model.constant(np.int32([[1, -2], [3, 4]])), model.parameter("x", "u8", (3, 2))
    (a,) = model.layer("Convert", [x], [("i32", (3, 2))], destination_type="i32")
    (y,) = model.layer("Convert", [product(model, a, w, turned=False)], [("f32", (3, 2))], destination_type="f32")
    model.result(y)
    executor = irrun.GraphExecutor(model.save(tmp_path), engine="numpy")
    (found,) = executor.run({"x": np.uint8([[0, 1], [2, 3], [255, 0]])}).values()
    assert found.tolist() == [[3, 4], [11, 8], [255, -510]]
    assert names(executor) == ["Convert", "MatMul"]


@needs_integers
def test_zero_points_of_the_other_type_are_subtracted(tmp_path):
    """So numbers are up to 383, for which sums of codes that engines add up in 32 bits have no room."""
    model = Model()
    x, zero = model.parameter("x", "u8", (1, 3, 4, 4)), model.parameter("zero", "i8", (1,))
    model.result(dynamic(model, x, codes(4, 3, 3, 3), zero))
    inputs = {"x": np.full((1, 3, 4, 4), 255, np.uint8), "zero": np.int8([-128])}
    (found,), (expected,), program = results(model.save(tmp_path), inputs)
    np.testing.assert_array_equal(found, expected)
    assert "IntegerConvolution" not in program


@needs_integers
@pytest.mark.parametrize("pads", ["1,1,1", "3,3,0", "3,3,3"])
@pytest.mark.parametrize("given", [False, True])
def test_groups_along_three_axes_with_a_zero_point_and_padding(given, pads, tmp_path):
    """For such padding oneDNN has a way that leaves the zero point out, at times."""
    model, shape, filters = Model(), (1, 4, 5, 7, 6), codes(4, 2, 1, 2, 2, 2)
    window = {"strides": "1,1,1", "pads_begin": pads, "pads_end": pads, "dilations": "1,1,1"}
    inputs = {"x": np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8 if given else np.float32)}
    if given:
        x, zero = model.parameter("x", "u8", shape), model.parameter("zero", "u8", ())
        inputs["zero"] = np.array(255, np.uint8)
        model.result(dynamic(model, x, filters, zero, **window))
    else:
        x = fake_quantize(model, model.parameter("x", "f32", shape), 0, 255, output=(-255, 0))
        model.result(convolution(model, x, compressed(model, filters, 1), **window))
    (found,), (expected,), _ = results(model.save(tmp_path), inputs)
    np.testing.assert_array_equal(found, expected)


@needs_integers
@pytest.mark.parametrize("kind", ["matrix", "filters", "codes"])
def test_sums_of_more_terms_than_32_bits_hold(kind, tmp_path):
    model, count = Model(), 70_000
    inputs = {"x": np.full((1, count), 255, np.float32)}
    x = fake_quantize(model, model.parameter("x", "f32", (1, count)), 0, 255)
    if kind == "filters":
        (x,) = model.layer("Reshape", [x, model.constant(np.int64([1, count, 1, 1]))], [("f32", (1, count, 1, 1))])
        w = compressed(model, np.full((2, count, 1, 1), -128, np.int8), 1)
        y = convolution(model, x, w, pads_begin="0,0", pads_end="0,0")
    else:
        inputs["w"] = np.full((2, count), -128, np.float32)
        other = fake_quantize(model, model.parameter("w", "f32", (2, count)), -128, 127)
        y = product(model, x, other if kind == "codes" else compressed(model, inputs["w"].astype(np.int8), 1))
        model.result(other)
    model.result(y)
    found, expected, _ = results(model.save(tmp_path), inputs)
    np.testing.assert_allclose(found[-1], expected[-1], rtol=1e-5)


@needs_integers
@pytest.mark.filterwarnings("ignore")
def test_factors_that_f32_does_not_hold(tmp_path):
    """0 times such a one would be no number."""
    model = Model()
    x = fake_quantize(model, model.parameter("x", "f32", (1, 4, 3, 3)), 0, 2.55)
    y = convolution(model, x, compressed(model, codes(4, 4, 3, 3), 1e30))
    model.result(elementwise(model, "Multiply", y, model.constant(np.float32(1e20)), **NUMPY))
    x = fake_quantize(model, model.parameter("z", "f32", (1, 4)), 0, 1e20)
    model.result(product(model, x, compressed(model, codes(3, 4), 1e30)))
    inputs = {"x": np.zeros((1, 4, 3, 3), np.float32), "z": np.zeros((1, 4), np.float32)}
    found, expected, _ = results(model.save(tmp_path), inputs)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@needs_integers
@pytest.mark.parametrize(("low", "width", "levels"), [(1000, 0.1, 65536), (-300, 0.002, 256), (16, 1, 65536)])
def test_ranges_far_from_zero(low, width, levels, tmp_path):
    """What f32 rounds where a number times a factor, and a shift, are the level would be several levels."""
    limits = np.float32(low), np.float32(low + width)
    model = Model()
    x = model.parameter("x", "f32", (1, 8, 5, 5))
    identity = np.eye(8, dtype=np.int8).reshape(8, 8, 1, 1)
    window = {"pads_begin": "0,0", "pads_end": "0,0"}
    y = convolution(model, x, model.constant(identity.astype(np.float32)), **window)
    model.result(fake_quantize(model, y, *limits, levels, (0, levels - 1)))
    y = fake_quantize(model, x, *limits, 256, (0, 255))
    model.result(convolution(model, y, compressed(model, identity, 1), **window))
    inputs = {"x": np.random.default_rng(0).uniform(*limits, (1, 8, 5, 5)).astype(np.float32)}
    found, expected, _ = results(model.save(tmp_path), inputs)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1)


@needs_integers
@pytest.mark.parametrize(
    ("limits", "levels"),
    [
        ((-3.4e38, 1.0), 256),
        ((-3.4e38, 3.4e38), 2),
        ((-np.inf, 1.0), 256),
        ((0.0, np.inf), 256),
        ((np.inf, np.inf), 16),
        ((np.nan, -1.0), 255),
        ((0.0, 1.0, -np.inf, -np.inf), 3),
        ((-128.0, 3.4e38), 256),
    ],
)
def test_limits_at_the_ends_of_f32(limits, levels, tmp_path, caplog):
    """Nothing is said about them, and what is computed is what kernels give; numbers, not codes, where it is none."""
    model = Model()
    x = fake_quantize(model, model.parameter("x", "f32", (1, 4, 3, 3)), 0, 2.55)
    w = fake_quantize(model, model.constant(image(4, 4, 1, 1)), *limits[:2], levels, limits[2:])
    window = {"pads_begin": "0,0", "pads_end": "0,0"}
    model.result(convolution(model, x, w, **window))
    y = convolution(model, x, compressed(model, codes(4, 4, 1, 1), 0.01), **window)
    y = fake_quantize(model, y, *limits[:2], levels, limits[2:])
    model.result(convolution(model, y, compressed(model, codes(3, 4, 1, 1), 1e37), **window))
    found, expected, _ = results(model.save(tmp_path), {"x": image(1, 4, 3, 3)})
    assert not caplog.records
    for one, other in zip(found, expected, strict=True):
        step = np.ptp(np.nan_to_num(np.float64(limits), posinf=0, neginf=0)) / (levels - 1)
        np.testing.assert_array_equal(np.isfinite(one), np.isfinite(other))
        np.testing.assert_allclose(one[np.isfinite(other)], other[np.isfinite(other)], rtol=1e-5, atol=1e-4 * step)


@pytest.mark.parametrize("engine", ["onednn", "numpy"])
def test_sums_that_may_be_beyond_i32_wrap_around(engine, tmp_path):
    if engine == "onednn" and ENGINE is None:
        pytest.skip("oneDNN is not installed")
    model, count = Model(), 40_000
    model.result(dynamic(model, model.parameter("x", "u8", (1, count)), np.full((count, 2), 255), None))
    inputs = {"x": np.full((1, count), 255, np.uint8)}
    (found,) = irrun.GraphExecutor(model.save(tmp_path), engine=engine).run(inputs).values()
    assert found.tolist() == [[np.float32(count * 255**2 - 2**32)] * 2]


@needs_integers
def test_factors_of_which_all_limits_come_at_run_time(tmp_path):
    """Nothing of the second one is constant."""
    model = Model()
    a = fake_quantize(model, model.parameter("a", "f32", (2, 3, 8)), *I8)
    b, low, high = (
        model.parameter(*told) for told in (("b", "f32", (2, 8, 4)), ("low", "f32", ()), ("high", "f32", ()))
    )
    (b,) = model.layer("FakeQuantize", [b, low, high, low, high], [b[2:]], levels="256", **NUMPY)
    model.result(product(model, a, b, turned=False))
    inputs = {"a": image(2, 3, 8), "b": image(2, 8, 4), "low": np.float32(-1.28), "high": np.float32(1.27)}
    (found,), (expected,), _ = results(model.save(tmp_path), inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_the_check_knows_that_the_last_level_is_a_sum(tmp_path):
    """It is 0 everywhere, up to the rounding of the least level and of what is added to it."""
    model = Model()
    x = model.parameter("x", "f32", (1, 8, 6, 6))
    y = elementwise(model, "Sigmoid", convolution(model, x, model.constant(image(8, 8, 3, 3))))
    model.result(fake_quantize(model, y, -3.2106614, 0.0))
    (found,) = irrun.GraphExecutor(model.save(tmp_path), engine="check").run([image(1, 8, 6, 6)]).values()
    np.testing.assert_allclose(found, 0, atol=1e-6)


@pytest.mark.parametrize("engine", ["onednn", "numpy", "auto"])
@pytest.mark.parametrize("count", [30, 40_000])
def test_quantized_to_whole_numbers_and_converted(engine, count, tmp_path):
    if engine == "onednn" and ENGINE is None:
        pytest.skip("oneDNN is not installed")
    model = Model()
    x = elementwise(model, "Abs", model.parameter("x", "f32", (1, count)))
    y = fake_quantize(model, x, 0.0, 99.5, 200, (0.0, 199.0))
    (y,) = model.layer("Convert", [y], [("u8", (1, count))], destination_type="u8")
    model.result(y)
    x = (np.arange(count, dtype=np.float32) % 200 / 2)[None]
    (found,) = irrun.GraphExecutor(model.save(tmp_path), engine=engine).run([x]).values()
    np.testing.assert_array_equal(found, x * 2)


@pytest.mark.parametrize("levels", [16, 255, 256])
@pytest.mark.parametrize("channels", [1, 5])
def test_codes_there_and_back_are_the_quantization(levels, channels):
    """By the kernels, with ties, NaN, and what lies outside; one step apart only where both are as near."""
    random = np.random.default_rng(levels)
    step = 2.0 ** random.integers(-6, -2, channels)
    zero = levels // 2
    limits = [np.float32(value) for value in (-zero * step, (levels - 1 - zero) * step) * 2]
    coding = coding_between(limits, levels)
    assert coding is not None
    data = image(3, channels, 400, scale=2.0)
    data[..., :3] = np.nan, np.inf, -np.inf
    data[0, :, 3:203] = (np.arange(200) + 0.5 - 100) * step.reshape(-1, 1)
    codes = QUANTIZE.kernel(data, coding=coding)
    found = DEQUANTIZE.kernel(codes, grid=coding.grid)
    shaped = [limit.reshape(-1, 1) for limit in limits]
    fake = registry().ops["FakeQuantize-1"]
    expected = fake(data, *shaped, levels=levels)
    expected[..., 0] = np.broadcast_to(shaped[0].ravel(), (3, channels))  # of NaN
    assert codes.dtype == numpy_dtype(coding.grid.type)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@needs_integers
@pytest.mark.filterwarnings("ignore:bf16 is emulated")
@pytest.mark.parametrize("precision", ["declared", "f64", "bf16"])
def test_precisions_that_keep_the_graph_as_it_is(precision, tmp_path):
    executor = irrun.GraphExecutor(mixed(tmp_path), engine="onednn", precision=precision)
    inputs = {"x": image(1, 8, 6, 6)}
    (found,) = executor.run(inputs).values()
    (expected,) = irrun.GraphExecutor(mixed(tmp_path), engine="reference").run(inputs).values()
    assert not any("uantize-0" in text or text == "Quantize" for text in names(executor))
    assert np.abs(found - expected).max() < 0.06


@needs_integers
def test_inputs_of_any_size_have_programs_of_integers(tmp_path):
    """Filters stay bytes in the program for any sizes; each size has a program that multiplies them."""
    model = Model()
    x = fake_quantize(model, model.parameter("x", "f32", ("?", 8, 6, "?")), *U8)
    w = compressed(model, codes(4, 8, 1, 1), np.full((4, 1, 1, 1), 0.01))
    (y,) = model.layer(
        "Convolution",
        [x, w],
        [("f32", (-1, 4, 6, -1))],
        strides="1,1",
        pads_begin="0,0",
        pads_end="0,0",
        dilations="1,1",
        auto_pad="explicit",
    )
    model.result(y)
    path = model.save(tmp_path)
    executor = irrun.GraphExecutor(path, engine="onednn")
    for shape in ((1, 8, 6, 6), (3, 8, 6, 5), (1, 8, 6, 6)):
        (found,) = executor.run({"x": image(*shape)}).values()
        (expected,) = irrun.GraphExecutor(path, engine="reference").run({"x": image(*shape)}).values()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        assert "Convolution" in names(executor)
        assert names(executor)[0] == "Quantize"
    seen = []
    executor.run({"x": image(1, 8, 6, 6)}, observer=lambda event: seen.append(event.array.dtype))
    assert set(seen) == {np.dtype(np.float32)}


def activated(model: Model, limits: tuple[float, float] = (-3.2, 3.175), again: int = 0, rows: int = 64) -> Any:
    """A quantized product, and Gelu of it in five layers with quantizations between them, as converters write it."""
    x = fake_quantize(model, model.parameter("x", "f32", (1, rows, 32)), *U8)
    y = fake_quantize(model, product(model, x, compressed(model, codes(48, 32), np.full((48, 1), 0.004))), *limits)
    (y,) = model.layer(
        "Reshape", [y, model.constant(np.int64([rows, 48]))], [("f32", (rows, 48))], special_zero="false"
    )
    for _ in range(again):
        y = fake_quantize(model, y, *limits)
    z = elementwise(model, "Multiply", y, model.constant(np.float32([[0.7071068]])), **NUMPY)
    z = fake_quantize(model, elementwise(model, "Erf", z), -1.0, 1.0, 255)
    z = fake_quantize(model, elementwise(model, "Add", z, model.constant(np.float32([[1.0]])), **NUMPY), 0.0, 2.0)
    z = fake_quantize(model, elementwise(model, "Multiply", y, z, **NUMPY), -1.0, 4.1)
    return y, elementwise(model, "Multiply", z, model.constant(np.float32(0.5)), **NUMPY)


@needs_integers
@pytest.mark.parametrize("limits", [(-3.2, 3.175), (0.0, 6.375), (-1.6, 4.775)])
def test_a_function_of_codes_is_a_table(limits, tmp_path):
    """Also where it is rounded to the codes that the next product reads."""
    model = Model()
    _, z = activated(model, limits)
    model.result(z)
    q = fake_quantize(model, z, -0.5, 2.05)
    model.result(product(model, q, compressed(model, codes(8, 48, seed=5), np.full((8, 1), 0.01))))
    (first, second), (a, b), program = results(model.save(tmp_path), {"x": image(1, 64, 32)})
    on_grid(first, a, 5.1 / 255 * 2)
    np.testing.assert_allclose(second, b, atol=3 * 0.01 * 1.27 * 5.1 / 255 * 2 * 127)
    assert [name for name in program if name not in ("Reorder", "Reshape")] == [
        "Quantize",
        "MatMul+Quantize",
        "Table",
        "Table",
        "MatMul",
    ]


@needs_integers
def test_a_table_has_what_the_kernels_give(tmp_path):
    """All codes occur, and each is what the graph makes of what it stands for."""
    model = Model()
    model.result(fake_quantize(model, activated(model)[1], -0.5, 2.05))
    x = np.linspace(0, 2.55, 1 << 14, dtype=np.float32).reshape(1, 512, 32)[:, :64]
    (found,), (expected,), program = results(model.save(tmp_path), {"x": np.ascontiguousarray(x)})
    assert "Table" in program
    np.testing.assert_array_equal(found, expected)


@needs_integers
@pytest.mark.parametrize("case", ["read", "scaled", "cheap", "product"])
def test_what_is_no_table(case, tmp_path):
    """What others read too, what has numbers for channels, what costs nothing, and what comes of no product."""
    model = Model()
    if case == "read":
        y, z = activated(model)
        model.result(y)
    else:
        x = model.parameter("x", "f32", (1, 64, 32))
        y = fake_quantize(model, x, *U8)
        if case != "product":
            y = product(model, y, compressed(model, codes(48, 32), np.full((48, 1), 0.004)))
        y = fake_quantize(model, y, -3.2, 3.175)
        z = elementwise(model, "ReLU" if case == "cheap" else "Erf", y)
        scale = image(*z[3][1:]) if case == "scaled" else np.float32(2)
        z = elementwise(model, "Multiply", z, model.constant(scale), **NUMPY)
        if case == "scaled":  # of one that is read otherwise there is no table of parts either
            z = elementwise(model, "Add", z, y, **NUMPY)
    model.result(z)
    found, expected, program = results(model.save(tmp_path), {"x": image(1, 64, 32)})
    assert not any("Table" in name for name in program)
    for own, other in zip(found, expected, strict=True):
        on_grid(own, other, 0.1)


@pytest.mark.parametrize("engine", ["numpy", "onednn"])
@pytest.mark.parametrize("again", [0, 3])
def test_quantizations_of_what_is_quantized_so_are_left_out(engine, again, tmp_path):
    if engine == "onednn" and ENGINE is None:
        pytest.skip("no oneDNN")
    model = Model()
    x = fake_quantize(model, model.parameter("x", "f32", (2, 6, 4)), -1.0, 1.55)
    for _ in range(again):
        (x,) = model.layer("Transpose", [x, model.constant(np.int64([1, 0, 2]))], [("f32", x[3][1::-1] + x[3][2:])])
        x = fake_quantize(model, x, -1.0, 1.55)
    other = fake_quantize(model, x, -1.0, 1.50)
    model.result(x)
    model.result(other)
    model.result(fake_quantize(model, other, -1.0, 1.55))
    model.result(fake_quantize(model, x, -1.0, 1.55, 255))
    model.result(fake_quantize(model, x, -1.0, 1.55, output=(0.0, 2.0)))
    data = image(2, 6, 4, seed=3)
    data[0, 0, 0] = np.nan
    found, expected, program = results(model.save(tmp_path), {"x": data}, engine)
    for own, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(own, right)
    assert sum(name.count("FakeQuantize") for name in program) == 5


@pytest.mark.parametrize("engine", ["auto", "numpy"])
def test_what_windows_of_padding_give_is_quantized(engine, tmp_path):
    """It is the lowest number, which is on no grid, though the largest elements of others are on that of the data."""
    model = Model()
    x = fake_quantize(model, model.parameter("x", "f32", (1, 2, 4)), -1.28, 1.27)
    window = {"kernel": "2", "strides": "1", "pads_begin": "3", "pads_end": "0", "rounding_type": "floor"}
    (y,) = model.layer("MaxPool", [x], [("f32", (1, 2, 6))], **window)
    model.result(fake_quantize(model, y, -1.28, 1.27))
    (found,), (expected,), _ = results(model.save(tmp_path), {"x": image(1, 2, 4)}, engine)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(found[:, :, :2], -1.28, rtol=1e-6)


@needs_integers
@pytest.mark.parametrize("high", [1e-40, 1e-37, 1e-36])
def test_limits_too_near_for_a_factor_of_f32(high, tmp_path):
    """What is between them is their middle, which is not lost where a number times the factor is none; also in between
    products."""
    model = Model()
    x = fake_quantize(model, model.parameter("x", "f32", (1, 4, 3, 3)), -high, high, 255, (-1.27, 1.27))
    y = convolution(model, x, compressed(model, codes(4, 4, 3, 3), np.full((4, 1, 1, 1), 0.01)))
    y = fake_quantize(model, y, -high, high, 255, (-1.27, 1.27))
    model.result(convolution(model, y, compressed(model, codes(4, 4, 3, 3, seed=2), np.full((4, 1, 1, 1), 0.01))))
    x = image(1, 4, 3, 3)
    x[0, :2] = 0
    x[0, 2, 0] = high / 2
    (found,), (expected,), _ = results(model.save(tmp_path), {"x": x})
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("engine", ["onednn", "numpy"])
@pytest.mark.parametrize("shape", [(40,), (3, 40, 9), (1, 40, 9)])
@pytest.mark.parametrize("turned", [True, False])
def test_weights_that_are_no_matrix_stay_numbers(engine, shape, turned, tmp_path, caplog):
    """With scales along other axes than a matrix has, which no factor of a column is."""
    if engine == "onednn" and ENGINE is None:
        pytest.skip("oneDNN is not installed")
    model = Model()
    x = fake_quantize(model, model.parameter("x", "f32", (3, 5, 40)), *I8)
    turned = turned and len(shape) > 1
    shape = (shape[0], shape[2], shape[1]) if turned else shape
    scale = np.full((1,) * len(shape), 0.01)
    if len(shape) > 1:
        along = (shape[0], 1, 1) if turned else (1, shape[1], 1)
        scale = np.random.default_rng(2).uniform(0.01, 0.1, along)
    w = compressed(model, codes(*shape), scale)
    attrs = {"transpose_a": "false", "transpose_b": str(turned).lower()}
    (y,) = model.layer("MatMul", [x, w], [("f32", (3, 5, 9) if len(shape) > 1 else (3, 5))], **attrs)
    model.result(y)
    (found,), (expected,), _ = results(model.save(tmp_path), {"x": image(3, 5, 40)}, engine)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert not caplog.messages


@pytest.mark.parametrize("layer", ["product", "product of codes", "convolution of single channels"])
def test_quantizations_by_channel_are_left_to_others_without_a_word(layer, tmp_path, caplog):
    """Where posts of oneDNN have no channels."""
    if ENGINE is None:
        pytest.skip("oneDNN is not installed")
    model = Model()
    limits = -np.linspace(1, 2, 8), np.linspace(1, 2, 8) * 127 / 128
    if layer == "convolution of single channels":
        x = model.parameter("x", "f32", (1, 8, 6, 7))
        y = fake_quantize(model, elementwise(model, "ReLU", x), *(limit.reshape(1, 8, 1, 1) for limit in limits))
        model.result(convolution(model, y, compressed(model, codes(8, 1, 1, 3, 3), np.full((8, 1, 1, 1, 1), 0.01))))
    else:
        x = model.parameter("x", "f32", (5, 16))
        y = fake_quantize(model, x, *I8) if layer == "product of codes" else x
        y = product(model, y, compressed(model, codes(8, 16), np.full((8, 1), 0.01)))
        model.result(fake_quantize(model, y, *(limit.reshape(1, 8) for limit in limits)))
    (found,), (expected,), _ = results(model.save(tmp_path), {"x": image(*x[3])})
    assert np.abs(found - expected).max() < 0.1
    assert not caplog.messages


@needs_integers
@pytest.mark.parametrize("scale", [np.inf, np.nan])
def test_scales_that_are_no_numbers_make_what_they_make_of_numbers(scale, tmp_path):
    """NaN of zeros, also of those of other channels."""
    model = Model()
    x = fake_quantize(model, model.parameter("x", "f32", (1, 4, 3, 3)), *I8)
    scales = np.array([0.01, scale, 0.02, -scale]).reshape(4, 1, 1, 1)
    model.result(convolution(model, x, compressed(model, codes(4, 4, 3, 3), scales)))
    (found,), (expected,), _ = results(model.save(tmp_path), {"x": image(1, 4, 3, 3)})
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("engine", ["onednn", "numpy"])
@pytest.mark.parametrize("type", [np.int8, ml_dtypes.int4])
@pytest.mark.parametrize("channels", [0, 1])
def test_sums_without_terms(engine, type, channels, tmp_path):
    """No weights, and no limits for them where each channel would have its own."""
    if engine == "onednn" and ENGINE is None:
        pytest.skip("oneDNN is not installed")
    model = Model()
    limits = (np.full((1, channels), limit) for limit in I8)
    x = fake_quantize(model, model.parameter("x", "f32", (3, 0)), *limits)
    weights = model.constant(np.zeros((5, 0), type))
    (w,) = model.layer("Convert", [weights], [("f32", (5, 0))], destination_type="f32")
    model.result(product(model, x, w))
    (found,), (expected,), _ = results(model.save(tmp_path), {"x": np.zeros((3, 0), np.float32)}, engine)
    assert found.tolist() == expected.tolist() == np.zeros((3, 5)).tolist()


@needs_integers
@pytest.mark.parametrize("clamp", [(0.5, 2.0), (-2.0, -1.5), (-3.0, 3.0), (-0.5, 0.1), (-0.5, 3.0)])
@pytest.mark.parametrize("limits", [(-1.28, 1.27 / 16), (-1.28 / 16, 1.27 / 8), (0.0, 0.255)])
def test_limits_beyond_those_of_the_grid(clamp, limits, tmp_path, caplog):
    """What is only one value, as all is beyond one end of the grid."""
    model = Model()
    x, ones = model.parameter("x", "f32", (1, 4, 6, 6)), model.constant(image(4, 4, 3, 3, seed=4))
    y = elementwise(model, "Clamp", convolution(model, x, ones), min=str(clamp[0]), max=str(clamp[1]))
    step = 2.0**-7
    low, high = (round(limit / step) * step for limit in limits)
    y = fake_quantize(model, y, low, high, round((high - low) / step) + 1)
    model.result(convolution(model, y, compressed(model, codes(4, 4, 3, 3), np.full((4, 1, 1, 1), 0.01))))
    (found,), (expected,), _ = results(model.save(tmp_path), {"x": image(1, 4, 6, 6, scale=0.2)})
    np.testing.assert_allclose(found, expected, atol=2 * step * 1.27 + 1e-4)
    assert not caplog.messages


def _windowed(name: str, *shape: int, **attrs: str) -> Any:
    window = {"pads_begin": "0,0", "pads_end": "0,0", "auto_pad": "explicit"} | attrs
    return lambda model, x: model.layer(name, [x], [("f32", shape)], **window)[0]


def _pooled_most(model: Model, x: Any) -> Any:
    window = {"kernel": "2,2", "strides": "2,2", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    shapes = [("f32", (2, 8, 3, 4)), ("i64", (2, 8, 3, 4))]
    return model.layer("MaxPool", [x], shapes, "opset8", index_element_type="i64", axis="0", **window)[0]


def _transposed(model: Model, x: Any) -> Any:
    window = {"strides": "2,2", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    weights = model.constant(image(8, 8, 2, 2, seed=3, scale=0.3))
    return model.layer("ConvolutionBackpropData", [x, weights], [("f32", (2, 8, 12, 16))], **window)[0]


def _contracted(equation: str, *shape: int) -> Any:
    def made(model: Model, x: Any) -> Any:
        return model.layer("Einsum", [x, x], [("f32", shape)], "opset7", equation=equation)[0]

    return made


def _attended(model: Model, x: Any) -> Any:
    return model.layer("ScaledDotProductAttention", [x, x, x], [("f32", x[3])], "opset13", causal="false")[0]


def _along(name: str, *shape: int, opset: str = "opset1", **attrs: str) -> Any:
    def made(model: Model, x: Any) -> Any:
        axes = model.constant(np.int64([2, 3]))
        return model.layer(name, [x, axes], [("f32", shape)], opset, **attrs)[0]

    return made


def _turned(model: Model, x: Any) -> Any:
    return model.layer("Transpose", [x, model.constant(np.int64([0, 2, 3, 1]))], [("f32", (2, 6, 8, 8))])[0]


def _joined(model: Model, x: Any) -> Any:
    return model.layer("Concat", [x, elementwise(model, "Tanh", x)], [("f32", (2, 16, 6, 8))], axis="1")[0]


def _recurrent(model: Model, x: Any) -> Any:
    data = model.layer("Reshape", [x, model.constant(np.int64([2, 48, 8]))], [("f32", (2, 48, 8))])[0]
    state = model.constant(np.zeros((2, 1, 5), np.float32))
    lengths = model.constant(np.full(2, 48, np.int32))
    weights = [model.constant(image(1, *shape, seed=6, scale=0.3)) for shape in ((15, 8), (15, 5), (15,))]
    shapes = [("f32", (2, 1, 48, 5)), ("f32", (2, 1, 5))]
    attrs = {"hidden_size": "5", "direction": "forward"}
    return model.layer("GRUSequence", [data, state, lengths, *weights], shapes, "opset5", **attrs)[0]


MAKERS = {
    "AvgPool": _windowed("AvgPool", 2, 8, 3, 4, kernel="2,2", strides="2,2", **{"exclude-pad": "true"}),
    "MaxPool": _pooled_most,
    "ConvolutionBackpropData": _transposed,
    "Einsum of rows": _contracted("abcd,abed->abce", 2, 8, 6, 6),
    "Einsum, turned": _contracted("abcd,abed->acbe", 2, 6, 8, 6),
    "ScaledDotProductAttention": _attended,
    "ReduceMean": _along("ReduceMean", 2, 8, 1, 1, keep_dims="true"),
    "ReduceL2": _along("ReduceL2", 2, 8, 1, 1, opset="opset4", keep_dims="true"),
    "MVN": _along("MVN", 2, 8, 6, 8, opset="opset6", normalize_variance="true", eps="1e-5", eps_mode="inside_sqrt"),
    "NormalizeL2": _along("NormalizeL2", 2, 8, 6, 8, eps="1e-5", eps_mode="add"),
    "Transpose": _turned,
    "Concat": _joined,
    "GRUSequence": _recurrent,
    "Softmax": lambda model, x: model.layer("SoftMax", [x], [("f32", x[3])], axis="1")[0],
    "Swish": lambda model, x: model.layer("Swish", [x], [("f32", x[3])], "opset4")[0],
    "Sigmoid": lambda model, x: elementwise(model, "Sigmoid", x),
    "Abs": lambda model, x: elementwise(model, "Abs", x),
    "SquaredDifference": lambda model, x: elementwise(
        model, "SquaredDifference", x, model.constant(image(8, 1, 1)), **NUMPY
    ),
}


@pytest.mark.parametrize("engine", ["onednn", "numpy"])
@pytest.mark.parametrize("name", MAKERS)
def test_what_any_op_gives_may_become_codes(name, engine, tmp_path, caplog):
    """The quantization may be done behind the op, by whoever computes it; a product reads the codes."""
    if engine == "onednn" and ENGINE is None:
        pytest.skip("oneDNN is not installed")
    model = Model()
    y = MAKERS[name](model, model.parameter("x", "f32", (2, 8, 6, 8)))
    y = fake_quantize(model, y, *I8)
    y = product(model, y, compressed(model, codes(4, y[3][-1]), np.full((4, 1), 0.01)))
    model.result(y)
    (found,), (expected,), _ = results(model.save(tmp_path), {"x": image(2, 8, 6, 8)}, engine)
    assert (np.abs(found - expected) > 1e-4).mean() < 0.02
    assert np.abs(found - expected).max() < 2 * 0.01 * 1.28
    assert not caplog.messages


@pytest.mark.parametrize("columns", [256, 300])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize(
    ("type", "scale", "zero"),
    [
        ("u8", "columns", 30),
        ("u8", "columns", None),
        ("i8", "rows", None),
        ("i8", "columns", 0.5),
        ("i8", "columns", None),
        ("i8", "all", None),
    ],
    ids=str,
)
def test_weights_that_are_no_codes_to_multiply_by_beside_some_that_are(
    columns, transposed, type, scale, zero, tmp_path
):
    """Queries and keys of one quantized tensor: what one product reads as codes the other one reads as numbers."""
    rng, model = np.random.default_rng(0), Model()
    x = fake_quantize(model, model.parameter("x", "f32", (20, 256)), -1.28, 1.27)
    model.result(product(model, x, compressed(model, codes(256, 256), np.full((256, 1), 0.01))))
    low, high = (0, 256) if type == "u8" else (-127, 128)
    numbers = rng.integers(low, high, (256, columns)).astype(type.replace("u", "uint").replace("i8", "int8"))
    shape = {"rows": (256, 1), "columns": (1, columns), "all": (1, 1)}[scale]
    factors, zeros = rng.uniform(0.01, 0.02, shape), None if zero is None else np.full(shape, zero)
    if transposed:
        numbers, factors, zeros = numbers.T, factors.T, None if zeros is None else zeros.T
    model.result(product(model, x, compressed(model, numbers, factors, zeros), turned=transposed))
    path, data = model.save(tmp_path), image(20, 256, scale=0.5)
    for engine in ("auto", "onednn", "numpy"):
        found, expected, _ = results(path, {"x": data}, engine)
        for own, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(own, wanted, rtol=1e-4, atol=1e-4)
