"""Products of codes by oneDNN and by code of our own, against sums of whole numbers in a loop."""

from __future__ import annotations

from itertools import product as places
from typing import Any

import numpy as np
import pytest
from engines.onednn_works import ENGINE, channels_last, has_avx2, room

from irrun.engines import compiled
from irrun.engines.compiled.engine import CompiledEngine
from irrun.engines.compressed import CompressedWeights
from irrun.engines.grid import Coding, Grid, is_of_codes
from irrun.engines.onednn import quantized
from irrun.engines.work import Operand, Post, Work
from irrun.spec.dtypes import element_type, numpy_dtype
from irrun.spec.registry import registry

QUANTIZED: dict[str, Any] = {
    "onednn": ENGINE if ENGINE is not None and ENGINE.quantized else None,
    "compiled": CompiledEngine(2, quantized=True) if compiled.is_there() and has_avx2() else None,
}
own = pytest.mark.parametrize("engine", ["onednn"], indirect=True)
"""Of tests of what oneDNN alone computes."""


@pytest.fixture(autouse=True, params=["onednn", "compiled"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if QUANTIZED[request.param] is None:
        pytest.skip(f"{request.param} is not installed, or the processor does not add up products of bytes exactly")
    monkeypatch.setitem(globals(), "ENGINE", QUANTIZED[request.param])


GRIDS = [Grid("u8", (0.5,), 0), Grid("u8", (0.25,), 131), Grid("i8", (0.125,), 0)]
rng = np.random.default_rng(7)


def codes(type: str, *shape: int) -> Any:
    limits = np.iinfo(numpy_dtype(type))
    return rng.integers(limits.min, limits.max + 1, shape).astype(limits.dtype)


def weights(scale: Any, *shape: int) -> tuple[CompressedWeights, Any]:
    array = codes("i8", *shape)
    return CompressedWeights("i8", array.reshape(-1).view(np.uint8), shape, shape, np.float32(scale)), array


def coded(array: Any, grid: Grid) -> Operand:
    own = Operand(element_type(array.dtype), array.shape, array.strides)
    return Operand("f32", array.shape, np.empty(array.shape, np.float32).strides, codes=own, grid=grid)


def output(*shape: int, type: str = "f32") -> Operand:
    return Operand(type, shape, np.empty(shape, numpy_dtype(type)).strides)


def computed(work: Work, *arrays: Any) -> Any:
    """What the engine makes of codes and other inputs, of which None has been taken."""
    assert ENGINE is not None
    made = ENGINE.compile(work)
    assert made is not None
    inputs = list(arrays)
    for number, layout in made.wants.items():
        operand = work.inputs[number]
        assert operand is not None
        operand = operand.codes or operand
        assert layout is not None
        inputs[number] = np.ndarray(operand.shape, arrays[number].dtype, room(layout.nbytes), 0, layout.strides)
        reorder = ENGINE.reorder(operand, layout)
        reorder.bind([arrays[number]], [inputs[number]], room(reorder.scratch))()
        np.testing.assert_array_equal(inputs[number], arrays[number])
    (target,) = work.outputs
    layout = made.gives.get(0)
    nbytes = layout.nbytes if layout is not None else int(np.prod(target.shape)) * numpy_dtype(target.type).itemsize
    strides = None if layout is None else layout.strides
    written = np.ndarray(target.shape, numpy_dtype(target.type), room(nbytes), 0, strides)
    made.bind(inputs, [written], room(made.scratch))()
    return written


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 17, 3), (33, 70, 65)])
def test_rows_with_constant_weights(grid: Grid, turned: bool, sizes: tuple[int, int, int]) -> None:
    rows, inner, columns = sizes
    shape = (columns, inner) if turned else (inner, columns)
    scale = 2.0 ** rng.integers(-6, 0, (columns, 1) if turned else (1, columns))
    constant, array = weights(scale, *shape)
    data = codes(grid.type, rows, inner)
    matrix = array.T if turned else array
    work = Work(
        "MatMul-1",
        {"transpose_a": False, "transpose_b": turned},
        [coded(data, grid), Operand("f32", shape, (4 * shape[1], 4), compressed=constant)],
        [output(rows, columns)],
    )
    sums = np.zeros((rows, columns))
    for row, column in places(range(rows), range(columns)):
        terms = zip(data[row].tolist(), matrix[:, column].tolist(), strict=True)
        sums[row, column] = sum((a - grid.zero) * b for a, b in terms)
    np.testing.assert_allclose(computed(work, data, None), sums * grid.scale[0] * scale.reshape(-1), rtol=1e-6)


@own
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("turned", [True, False])
def test_batches_of_two_codes(grid: Grid, turned: bool) -> None:
    other = Grid("i8", (0.0625,), 3)
    a, b = codes(grid.type, 2, 3, 9, 20), codes("i8", 2, 3, *((11, 20) if turned else (20, 11)))
    work = Work(
        "MatMul-1",
        {"transpose_a": False, "transpose_b": turned},
        [coded(a, grid), coded(b, other)],
        [output(2, 3, 9, 11)],
    )
    right = (b.astype(np.int64) - 3).swapaxes(-1, -2) if turned else b.astype(np.int64) - 3
    sums = np.matmul(a.astype(np.int64) - grid.zero, right)
    np.testing.assert_allclose(computed(work, a, b), sums * grid.scale[0] * other.scale[0], rtol=1e-6)


@own
@pytest.mark.parametrize("zero", [0, 127])
def test_sums_that_do_not_fit_into_32_bits_are_left_to_f32(zero: int) -> None:
    grid, other = Grid("u8", (0.5,), 0), Grid("i8", (0.5,), zero)
    a, b = np.full((1, 40000), 255, np.uint8), np.full((40000, 1), -128, np.int8)
    attrs = {"transpose_a": False, "transpose_b": False}
    assert is_of_codes(Work("MatMul-1", attrs, [coded(a, grid), coded(b, other)], [output(1, 1)])) == (zero == 0)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize(("groups", "channels", "features"), [(0, 5, 7), (0, 33, 18), (1, 4, 3), (3, 4, 2), (9, 1, 1)])
@pytest.mark.parametrize(("stride", "pad"), [(1, 1), (2, 0)])
def test_convolutions(grid: Grid, groups: int, channels: int, features: int, stride: int, pad: int) -> None:
    """What lies in the padding is zero, not the code 0."""
    count = max(groups, 1)
    shape = (*([groups] if groups else []), features, channels, 3, 3)
    lead = shape[: 2 if groups else 1]
    scale = 2.0 ** rng.integers(-6, 0, (*lead, *[1] * (len(shape) - len(lead))))
    constant, array = weights(scale, *shape)
    data = codes(grid.type, 2, count * channels, 6, 7)
    sizes = [(size + 2 * pad - 3) // stride + 1 for size in (6, 7)]
    attrs = {"strides": (stride, stride), "pads_begin": (pad, pad), "pads_end": (pad, pad), "dilations": (1, 1)}
    work = Work(
        "GroupConvolution-1" if groups else "Convolution-1",
        {**attrs, "auto_pad": "explicit"},
        [coded(data, grid), Operand("f32", shape, np.empty(shape, np.float32).strides, compressed=constant)],
        [output(2, count * features, *sizes)],
    )
    padded = np.pad(data.astype(np.int64) - grid.zero, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    sums = np.zeros((2, count, features, *sizes), np.int64)
    filters = array.reshape(count, features, channels, 3, 3).astype(np.int64)
    for image, group, y, x in places(range(2), range(count), *map(range, sizes)):
        own = padded[image, group * channels : (group + 1) * channels]
        window = own[:, y * stride : y * stride + 3, x * stride : x * stride + 3]
        for feature in range(features):
            sums[image, group, feature, y, x] = (window * filters[group, feature]).sum()
    expected = sums * grid.scale[0] * scale.reshape(1, count, features, 1, 1)
    np.testing.assert_allclose(computed(work, data, None), expected.reshape(2, -1, *sizes), rtol=1e-6)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize(("channels", "size"), [(96, 2), (48, 4)])
def test_windows_side_by_side(grid: Grid, channels: int, size: int) -> None:
    """Whose pixels oneDNN would take several at a time, and wrongly, where the processor multiplies tiles."""
    constant, array = weights(np.ones((1, 1, 1, 1)), 32, channels, size, size)
    data = codes(grid.type, 1, channels, 3 * size, 8 * size)
    attrs = {"strides": (size, size), "pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1)}
    work = Work(
        "Convolution-1",
        {**attrs, "auto_pad": "explicit"},
        [coded(data, grid), Operand("f32", array.shape, array.astype(np.float32).strides, compressed=constant)],
        [output(1, 32, 3, 8)],
    )
    windows = (data.astype(np.int64) - grid.zero).reshape(channels, 3, size, 8, size)
    sums = np.einsum("cyaxb,fcab->fyx", windows, array.astype(np.int64))
    np.testing.assert_allclose(computed(work, data, None)[0], sums * grid.scale[0], rtol=1e-6)


@own
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize(
    ("sizes", "kernel", "pads", "strides"),
    [
        ((30, 100), (3, 1), (1, 0), (1, 1)),
        ((9, 32), (9, 4), (8, 1), (2, 4)),
        ((7, 1), (9, 5), (4, 2), (1, 4)),
        ((4, 28, 28), (3, 1, 5), (1, 0, 2), (1, 1, 1)),
        ((5, 32), (9, 4), (8, 0), (2, 4)),
        ((25, 5), (9, 2), (0, 0), (2, 5)),
    ],
)
def test_padding_and_strides(
    grid: Grid, sizes: tuple[int, ...], kernel: tuple[int, ...], pads: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    """With which oneDNN is wrong, or ends the process, where the processor multiplies tiles."""
    constant, array = weights(np.ones((1,) * (2 + len(sizes))), 8, 96, *kernel)
    data = codes(grid.type, 1, 96, *sizes)
    padded = np.pad(data[0].astype(np.int64) - grid.zero, ((0, 0), *zip(pads, pads, strict=True)))
    counts = [(a - b) // step + 1 for a, b, step in zip(padded.shape[1:], kernel, strides, strict=True)]
    sums = np.zeros((8, *counts), np.int64)
    for tap in np.ndindex(*kernel):
        seen = [slice(a, a + (n - 1) * step + 1, step) for a, n, step in zip(tap, counts, strides, strict=True)]
        sums += np.tensordot(array[:, :, *tap].astype(np.int64), padded[:, *seen], 1)
    attrs = {"strides": strides, "pads_begin": pads, "pads_end": pads, "dilations": (1,) * len(sizes)}
    work = Work(
        "Convolution-1",
        {**attrs, "auto_pad": "explicit"},
        [coded(data, grid), Operand("f32", array.shape, array.astype(np.float32).strides, compressed=constant)],
        [output(1, *sums.shape)],
    )
    np.testing.assert_allclose(computed(work, data, None)[0], sums * grid.scale[0], rtol=1e-6)


@own
@pytest.mark.parametrize("grid", GRIDS)
def test_single_taps_along_three_axes(grid: Grid) -> None:
    """Of which oneDNN mixes some up where the processor multiplies tiles, and channels do not fill these."""
    constant, array = weights(np.ones((1, 1, 1, 1, 1)), 16, 144, 1, 1, 1)
    data = codes(grid.type, 1, 144, 6, 1, 17)
    attrs = {
        name: (value,) * 3 for name, value in {"strides": 1, "dilations": 1, "pads_begin": 0, "pads_end": 0}.items()
    }
    work = Work(
        "Convolution-1",
        {**attrs, "auto_pad": "explicit"},
        [coded(data, grid), Operand("f32", array.shape, array.astype(np.float32).strides, compressed=constant)],
        [output(1, 16, 6, 1, 17)],
    )
    sums = np.tensordot(array[:, :, 0, 0, 0].astype(np.int64), data[0].astype(np.int64) - grid.zero, 1)
    np.testing.assert_allclose(computed(work, data, None)[0], sums * grid.scale[0], rtol=1e-6)


@pytest.mark.parametrize(
    "coding",
    [
        Coding(Grid("u8", (1.0,), 0), (0.0,), (255.0,), (0,), (256,)),
        Coding(Grid("u8", (1.0,), 100), (-100.0,), (155.0,), (0,), (256,)),
        Coding(Grid("i8", (1.0,), 0), (-127.0,), (127.0,), (-127,), (255,)),
        Coding(Grid("i8", (1.0,), 0), (-8.0,), (7.0,), (-8,), (16,)),
    ],
)
def test_results_written_as_codes(coding: Coding) -> None:
    """Halves go to the even code, what lies outside to the ends of the grid; 254.5 is behind the last tie."""
    constant, _ = weights([[0.25]], 1, 1)
    constant.codes[:] = 2
    data = codes("i8", 400, 1)
    work = Work(
        "MatMul-1",
        {"transpose_a": False, "transpose_b": True},
        [coded(data, Grid("i8", (1.0,), 0)), Operand("f32", (1, 1), (4, 4), compressed=constant)],
        [output(400, 1, type=coding.grid.type)],
        [Post("Quantize-0", {"coding": coding})],
    )
    expected = np.clip(np.rint(data / 2), coding.low, coding.high) + coding.grid.zero
    np.testing.assert_array_equal(computed(work, data, None), expected)


def test_rounding_behind_a_convolution_and_a_residual_in_codes() -> None:
    """16 channels of codes, doubled, rounded to steps of 0.5, and codes of steps of 0.25 added to that."""
    grid, residual = Grid("u8", (1.0,), 0), Grid("u8", (0.25,), 10)
    scale = np.full((1, 1, 1, 1), 0.3, np.float32)
    eye = np.eye(16, dtype=np.int8).reshape(16, 16, 1, 1)
    constant = CompressedWeights("i8", eye.reshape(-1).view(np.uint8), eye.shape, eye.shape, scale)
    data, other = (channels_last_codes(1, 16, 5, 5) for _ in range(2))
    limits = [np.float32(value) for value in (-20, 20 - 0.5, -20, 20 - 0.5)]
    numpy = {"auto_broadcast": "numpy", "auto_broadcast_axis": -1}
    window = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1), "auto_pad": "explicit"}
    inputs = [coded(data, grid), Operand("f32", eye.shape, (64, 4, 4, 4), compressed=constant)]
    inputs += [Operand("f32", (), (), limit) for limit in limits]
    posts = [Post("FakeQuantize-1", {"levels": 80, **numpy}, parameters=(2, 3, 4, 5)), Post("Add-1", numpy, 6)]
    work = Work("Convolution-1", window, [*inputs, coded(other, residual)], [output(1, 16, 5, 5)], posts)
    found = computed(work, data, None, *limits, other)
    rounded = registry().ops["FakeQuantize-1"].kernel(data * np.float32(0.3), *limits, levels=80, **numpy)
    np.testing.assert_allclose(found, rounded + 0.25 * (other.astype(np.float32) - 10), atol=1e-5)


@pytest.mark.parametrize("type", ["u8", "i8"])
def test_bias_and_limits_behind_a_convolution_of_data_with_a_zero_point(type: str) -> None:
    """Codes of grids of their own for each channel, some of which reach beyond what limits the numbers."""
    grid, scales = Grid("u8", (0.25,), 131), tuple((0.25, 0.5, 0.0625)[n % 3] for n in range(33))
    constant, array = weights([[[[2.0**-6]]]], 33, 20, 1, 1)
    data, shift = codes("u8", 2, 20, 5, 3), (rng.integers(-40, 40, (1, 33, 1, 1)) / 4).astype(np.float32)
    least, most = (0, 255) if type == "u8" else (-128, 127)
    low, high = (tuple(bound * scale for scale in scales) for bound in (least, most))
    coding = Coding(Grid(type, scales, 0), low, high, (least,) * 33, (256,) * 33)
    window = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1), "auto_pad": "explicit"}
    inputs = [coded(data, grid), Operand("f32", array.shape, (80, 4, 4, 4), compressed=constant)]
    numpy = {"auto_broadcast": "numpy"}
    posts = [
        Post("Add-1", numpy, 2),
        Post("Clamp-1", {"min": -9.0, "max": 20.0}),
        Post("Quantize-0", {"coding": coding}),
    ]
    values = Operand("f32", shift.shape, shift.strides, shift)
    work = Work("Convolution-1", window, [*inputs, values], [output(2, 33, 5, 3, type=type)], posts)
    sums = np.einsum("nchw,fc->nfhw", data.astype(np.int64) - 131, array[:, :, 0, 0].astype(np.int64))
    numbers = np.clip(sums * 2.0**-8 + shift, -9, 20)
    steps = numbers / np.reshape(scales, (-1, 1, 1))
    np.testing.assert_array_equal(computed(work, data, None, None), np.clip(np.rint(steps), least, most))


@pytest.mark.parametrize(("factor", "shift"), [(2.0, None), (-2.0, None), (2.0, 40.0)])
def test_what_is_linear_on_both_sides_of_an_activation(factor: float, shift: float | None) -> None:
    """Only a positive factor, to which nothing is added, is as good behind it."""
    grid, numpy = Grid("u8", (0.25,), 131), {"auto_broadcast": "numpy"}
    constant, array = weights([[0.125]], 9, 20)
    data = codes("u8", 5, 20)
    numbers = [np.float32(value) for value in (factor, shift or 0, 0.5)]
    inputs = [coded(data, grid), Operand("f32", (9, 20), (80, 4), compressed=constant)]
    inputs += [Operand("f32", (), (), value) for value in numbers]
    posts = [Post("Multiply-1", numpy, 2), *([Post("Add-1", numpy, 3)] if shift else []), Post("ReLU-1", {})]
    work = Work(
        "MatMul-1",
        {"transpose_a": False, "transpose_b": True},
        inputs,
        [output(5, 9)],
        [*posts, Post("Multiply-1", numpy, 4), Post("Add-1", numpy, 2)],
    )
    sums = (data.astype(np.int64) - 131) @ array.T.astype(np.int64) / 32
    expected = np.maximum(sums * factor + (shift or 0), 0) * 0.5 + factor
    np.testing.assert_allclose(computed(work, data, None, *numbers), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("zero", [0, 7])
def test_rounding_to_a_grid_of_each_channel_behind_a_convolution(zero: int) -> None:
    """Numbers of half steps of 1/8, rounded to steps of the channel's own from its own first one on."""
    grid, steps = (
        Grid("u8", (0.125,), zero),
        np.float32([(0.25, 0.5, 1)[n % 3] for n in range(16)]).reshape(1, -1, 1, 1),
    )
    eye = np.eye(16, dtype=np.int8).reshape(16, 16, 1, 1)
    constant = CompressedWeights("i8", eye.reshape(-1).view(np.uint8), eye.shape, eye.shape, np.full((1,) * 4, 0.5))
    low = -(np.arange(16, dtype=np.float32).reshape(1, -1, 1, 1) % 4) - np.float32(0.375)
    limits = [low, low + 15 * steps, low, low + 15 * steps]
    data = channels_last_codes(1, 16, 5, 5)
    numpy = {"auto_broadcast": "numpy", "auto_broadcast_axis": -1}
    window = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1), "auto_pad": "explicit"}
    inputs = [coded(data, grid), Operand("f32", eye.shape, (64, 4, 4, 4), compressed=constant)]
    inputs += [Operand("f32", limit.shape, limit.strides, limit) for limit in limits]
    posts = [Post("FakeQuantize-1", {"levels": 16, **numpy}, parameters=(2, 3, 4, 5)), Post("ReLU-1", {})]
    work = Work("Convolution-1", window, inputs, [output(1, 16, 5, 5)], posts)
    numbers = (data.astype(np.float32) - zero) / 16
    rounded = registry().ops["FakeQuantize-1"].kernel(numbers, *limits, levels=16, **numpy)
    np.testing.assert_array_equal(computed(work, data, None, *limits), np.maximum(rounded, 0))


def channels_last_codes(*shape: int) -> Any:
    data = channels_last(*shape)
    return np.ndarray(shape, np.uint8, codes("u8", data.size), 0, tuple(step // 4 for step in data.strides))


@own
def test_codes_and_numbers() -> None:
    """To codes and back, by channel, and what lies between limits that are not those of the grid."""
    data = np.array([[[-3, 0.24]], [[0.26, 9]]], np.float32).reshape(1, 2, 1, 2)
    grid = Grid("u8", (0.5,), 1)
    coding = Coding(grid, (-0.5,), (1.0,), (0,), (4,))
    quantize = Work("Quantize-0", {"coding": coding}, [plain(data)], [output(1, 2, 1, 2, type="u8")])
    assert computed(quantize, data).ravel().tolist() == [0, 1, 2, 3]
    array = np.array([0, 1, 2, 3], np.uint8).reshape(1, 2, 1, 2)
    back = Work("Dequantize-0", {"grid": grid}, [plain(array)], [output(1, 2, 1, 2)])
    assert computed(back, array).ravel().tolist() == [-0.5, 0, 0.5, 1]


@own
@pytest.mark.parametrize("limits", [(-1.0, 2.0, -1.0, 2.0), (0.0, 3.0, -1.5, 4.5)])
def test_codes_of_what_is_rounded_to_another_grid(limits: tuple[float, ...]) -> None:
    """Two quantizations behind one another, which may choose another step only where a number is near a tie."""
    bounds = [np.float32(limit) for limit in limits]
    data = rng.uniform(-4, 5, (3, 7, 5)).astype(np.float32)
    attrs = {"levels": 16, "auto_broadcast": "numpy", "auto_broadcast_axis": -1}
    coding = Coding(Grid("i8", (0.25,), 0), (-32.0,), (31.75,), (-128,), (256,))
    inputs = [plain(data), *(Operand("f32", (), (), bound) for bound in bounds)]
    work = Work("FakeQuantize-1", attrs, inputs, [output(3, 7, 5, type="i8")], [Post("Quantize-0", {"coding": coding})])
    numbers = registry().ops["FakeQuantize-1"].kernel(data, *bounds, **attrs)
    place = (data.astype(np.float64) - limits[0]) / (limits[1] - limits[0]) * 15
    assert np.abs(place - np.floor(place) - 0.5).min() > 1e-5
    clear = np.abs(numbers / 0.25 - np.floor(numbers / 0.25) - 0.5) > 1e-4  # of ties
    assert clear.mean() > 0.5
    expected = np.clip(np.rint(numbers / 0.25), -128, 127)
    np.testing.assert_array_equal(computed(work, data, *bounds)[clear], expected[clear])


@own
@pytest.mark.parametrize("type", ["u8", "i8", "f32"])
def test_channels_that_are_joined_where_they_come_last(type: str) -> None:
    """Parts that are cut out of others, and one in C order, side by side in every place of the image."""
    whole = [np.ascontiguousarray(codes("u8", 2, 5, 6, count)).astype(numpy_dtype(type)) for count in (9, 20, 1)]
    first, second, third = (np.moveaxis(array, -1, 1) for array in whole)
    arrays = [first, second[:, 3:10], third, codes("u8", 2, 3, 5, 6).astype(numpy_dtype(type)), second[:, 12:]]
    target = output(2, 28, 5, 6, type=type)
    work = Work("Concat-1", {"axis": -3}, [plain(array) for array in arrays], [target])
    np.testing.assert_array_equal(computed(work, *arrays), np.concatenate(arrays, axis=1))
    assert ENGINE is not None
    dense = [np.ascontiguousarray(array) for array in arrays]
    assert ENGINE.compile(Work("Concat-1", {"axis": 1}, [plain(array) for array in dense], [target])) is None
    none = plain(first[:, :0])
    assert ENGINE.compile(Work("Concat-1", {"axis": 1}, [plain(first), none], [output(2, 9, 5, 6, type=type)])) is None


@own
def test_functions_are_a_pass_of_their_own_behind_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on any processor whose ways to compute a convolution are called like those of tiles."""
    monkeypatch.setattr(quantized, "TILED", "")
    eye, constant = codes("i8", 16, 16, 1, 1), weights(np.float32(0.25), 16, 16, 1, 1)[0]
    data = channels_last_codes(1, 16, 5, 5)
    window = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1), "auto_pad": "explicit"}
    inputs = [coded(data, GRIDS[0]), Operand("f32", eye.shape, (64, 4, 4, 4), compressed=constant)]
    assert ENGINE is not None
    for name, taken in (("Swish-4", False), ("Sigmoid-1", False), ("HSwish-4", True), ("ReLU-1", True)):
        work = Work("Convolution-1", window, inputs, [output(1, 16, 5, 5)], [Post(name, {})])
        assert (ENGINE.compile(work) is not None) == taken


@own
def test_numbers_of_a_quantization_are_left_to_who_keeps_nan() -> None:
    assert ENGINE is not None
    inputs = [plain(np.zeros((2, 3), np.float32)), *(Operand("f32", (), (), np.float32(n)) for n in range(4))]
    attrs = {"levels": 16, "auto_broadcast": "numpy", "auto_broadcast_axis": -1}
    assert ENGINE.compile(Work("FakeQuantize-1", attrs, inputs, [output(2, 3)])) is None


def plain(array: Any) -> Operand:
    return Operand(element_type(array.dtype), array.shape, array.strides)
