"""Products of codes by code of our own: works made at random, against sums of whole numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from engines.onednn_works import has_avx2, room

from irrun.engines import compiled
from irrun.engines.compiled.engine import CompiledEngine
from irrun.engines.compressed import CompressedWeights
from irrun.engines.grid import Coding, Grid
from irrun.engines.windows import Axis
from irrun.engines.work import Operand, Post, Work
from irrun.spec.dtypes import element_type, numpy_dtype

pytestmark = pytest.mark.skipif(
    not compiled.is_there() or not has_avx2(), reason="llvmlite is not installed, or the processor has no AVX2"
)
NUMPY = {"auto_broadcast": "numpy", "auto_broadcast_axis": -1}


def operand(array: Any, *, constant: bool = False) -> Operand:
    return Operand(element_type(array.dtype), array.shape, array.strides, array if constant else None)


def computed(engine: Any, work: Work, arrays: list[Any]) -> Any:
    made = engine.compile(work)
    assert made is not None
    for number, layout in made.wants.items():
        given = np.ndarray(arrays[number].shape, arrays[number].dtype, room(layout.nbytes), 0, layout.strides)
        given[...] = arrays[number]
        arrays[number] = given
    (target,) = work.outputs
    type = numpy_dtype(target.type)
    size = int(np.prod(target.shape)) * type.itemsize
    memory = room(size + 64)
    memory[size:] = 77
    strides = made.gives[0].strides if made.gives else None
    written: Any = np.ndarray(target.shape, type, memory, 0, strides)
    scratch = room(made.scratch)
    scratch[...] = 0x7F
    call = made.bind(arrays, [written], scratch)
    call()
    first = written.copy()
    call()
    np.testing.assert_array_equal(written, first)
    assert (memory[size:] == 77).all()
    return written


def turned(rng: Any, array: Any) -> Any:
    """The array with its channels last, or as it is."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1) if rng.random() < 0.7 else array


@pytest.mark.parametrize("seed", range(250))
def test_convolutions_and_what_becomes_of_them(seed: int) -> None:
    """From 150 on they have taps that see nothing but padding; from 190 on Winograd has a way for them."""
    rng = np.random.default_rng((1, seed))
    rank = int(rng.integers(1, 3))
    images, sizes = int(rng.integers(1, 4)), [int(n) for n in rng.integers(1, 20, rank)]
    kernel, strides, dilations = ([int(n) for n in rng.integers(1, most, rank)] for most in (4, 4, 3))
    begins, ends = ([int(n) for n in rng.integers(0, 3, rank)] for _ in range(2))
    if 150 <= seed < 190:
        sizes, dilations = ([int(n) for n in rng.integers(*range_, rank)] for range_ in ((1, 8), (3, 12)))
        begins, ends = ([int(n) for n in rng.integers(0, 20, rank)] for _ in range(2))
    if seed >= 190:
        images, sizes = int(rng.integers(1, 3)), [int(n) for n in rng.integers(11, 27, 2)]
        kernel, strides, dilations = [3, 3], [1, 1], [1, 1]
        begins, ends = ([int(n) for n in rng.integers(0, 3, 2)] for _ in range(2))
    rank = len(sizes)
    windows = [
        (size + begin + end - (taps - 1) * gap - 1) // step + 1
        for size, begin, end, taps, gap, step in zip(sizes, begins, ends, kernel, dilations, strides, strict=True)
    ]
    if min(windows) < 1:
        pytest.skip("no window fits")
    form = rng.choice(["dense", "groups", "single"])
    groups = 1 if form == "dense" else int(rng.choice([2, 3, 17, 40]))
    inner, own = (1, 1) if form == "single" else (int(rng.integers(1, 40 // groups + 2)), int(rng.integers(1, 40)))
    if seed >= 190:
        form, groups, inner, own = "dense", 1, 16 * int(rng.integers(2, 7)), int(rng.integers(32, 100))
    channels, columns = groups * inner, groups * own
    filters = rng.integers(-128, 128, (groups, own, inner, *kernel)).astype(np.int8)
    shape = filters.shape if form != "dense" else filters.shape[1:]
    lead = (groups, own) if form != "dense" else (own,)
    scale = np.float32(2.0 ** rng.integers(-12, -6, (*lead, *[1] * (len(shape) - len(lead)))))
    constant = CompressedWeights("i8", filters.reshape(-1).view(np.uint8), shape, shape, scale)
    grid = [Grid("u8", (0.5,), 0), Grid("u8", (0.25,), 131), Grid("i8", (0.5,), 0)][int(rng.integers(3))]
    limits = np.iinfo(numpy_dtype(grid.type))
    data = turned(rng, rng.integers(limits.min, limits.max + 1, (images, channels, *sizes)).astype(limits.dtype))
    attrs = {"strides": strides, "pads_begin": begins, "pads_end": ends, "dilations": dilations, "auto_pad": "explicit"}

    pads = [(0, 0), (0, 0), *zip(begins, ends, strict=True)]
    whole = np.pad(data.astype(np.int64) - grid.zero, pads)
    sums = np.zeros((images, groups, own, *windows))
    for tap in np.ndindex(*kernel):
        cuts = tuple(
            slice(at * gap, at * gap + (count - 1) * step + 1, step)
            for at, gap, count, step in zip(tap, dilations, windows, strides, strict=True)
        )
        part = whole[(slice(None), slice(None), *cuts)].reshape(images, groups, inner, -1)
        sums += np.einsum("ngip,goi->ngop", part, filters[(..., *tap)].astype(np.int64)).reshape(sums.shape)
    steps = (1, columns, *[1] * rank)
    expected = sums.reshape(images, columns, *windows) * np.broadcast_to(scale.reshape(-1), columns).reshape(steps)
    expected *= grid.scale[0]

    codes = Operand(grid.type, data.shape, data.strides)
    inputs: list[Any] = [Operand("f32", data.shape, np.empty(data.shape, np.float32).strides, codes=codes, grid=grid)]
    inputs.append(Operand("f32", shape, np.empty(shape, np.float32).strides, compressed=constant))
    arrays: list[Any] = [data, None]
    posts: list[Post] = []

    def number(array: Any, given: Operand) -> int:
        arrays.append(array)
        inputs.append(given)
        return len(inputs) - 1

    for kind in rng.choice(
        ["bias", "factor", "other", "codes", "relu", "clamp", "hswish", "round"], int(rng.integers(0, 4))
    ):
        if kind in ("bias", "factor"):
            values = (rng.integers(-8, 9, steps) / 4).astype(np.float32)
            name = "Add-1" if kind == "bias" else "Multiply-1"
            posts.append(Post(name, NUMPY, number(values, operand(values, constant=True))))
            expected = expected + values if kind == "bias" else expected * values
        elif kind == "other":
            values = turned(rng, rng.standard_normal(expected.shape).astype(np.float32))
            posts.append(Post("Add-1", NUMPY, number(values, operand(values))))
            expected = expected + values
        elif kind == "codes":
            values, own_grid = turned(rng, rng.integers(0, 256, expected.shape).astype(np.uint8)), Grid("u8", (0.5,), 7)
            dense = np.empty(values.shape, np.float32).strides
            posts.append(
                Post(
                    "Add-1",
                    NUMPY,
                    number(values, Operand("f32", values.shape, dense, None, None, None, operand(values), own_grid)),
                )
            )
            expected = expected + 0.5 * (values.astype(np.float64) - 7)
        elif kind == "relu":
            posts.append(Post("ReLU-1", {}))
            expected = np.maximum(expected, 0)
        elif kind == "clamp":
            low, high = ((-3.0, 6.0), (-math.inf, 5.0), (-1e300, math.inf))[int(rng.integers(3))]
            posts.append(Post("Clamp-1", {"min": low, "max": high}))
            expected = np.clip(expected, low, high)
        elif kind == "hswish":
            posts.append(Post("HSwish-4", {}))
            expected = expected * np.clip(expected + 3, 0, 6) / 6
        else:
            bounds = [np.float32(value) for value in (-4, 4 - 0.125, -4, 4 - 0.125)]
            at = tuple(number(bound, Operand("f32", (), (), bound)) for bound in bounds)
            posts.append(Post("FakeQuantize-1", {"levels": 64, **NUMPY}, parameters=at))
            expected = np.rint((np.clip(expected, -4, 3.875) + 4) * 8) / 8 - 4
    type = str(rng.choice(["f32", "u8", "i8"]))
    if type != "f32":
        first, levels = (0, 256) if type == "u8" else (-20, 41)
        coding = Coding(Grid(type, (0.125,), 0), (first / 8,), ((first + levels - 1) / 8,), (first,), (levels,))
        posts.append(Post("Quantize-0", {"coding": coding}))
    engine = CompiledEngine(int(rng.integers(1, 4)), quantized=True)
    name = "Convolution-1" if form == "dense" else "GroupConvolution-1"
    result = Operand(type, expected.shape, np.empty(expected.shape, numpy_dtype(type)).strides)
    found = computed(engine, Work(name, attrs, inputs, [result], posts), arrays)
    if type != "f32":
        expected = np.clip(expected * 8, first, first + levels - 1)
        assert np.abs(found - expected).max() <= 0.5 + 1 * any(post.parameters for post in posts) + 1e-3
    elif any(post.parameters for post in posts):
        assert np.abs(found - expected).max() <= 0.125 * 2.0 ** (2 * sum(p.name == "Multiply-1" for p in posts)) + 1e-3
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * (1 + np.abs(expected).max()))


@pytest.mark.parametrize("channels", [1808, 1824])
@pytest.mark.parametrize(("code", "zero", "weight"), [(255, 0, -128), (255, 0, 127), (0, 255, -128)])
def test_the_largest_sums_of_windows_of_nine(channels: int, code: int, zero: int, weight: int) -> None:
    """Winograd's sums are four times as large; 32 bits hold those of 1808 channels, and no more."""
    shape = (32, channels, 3, 3)
    filters = np.full(shape, weight, np.int8)
    constant = CompressedWeights(
        "i8", filters.reshape(-1).view(np.uint8), shape, shape, np.ones((1, 1, 1, 1), np.float32)
    )
    data = np.full((1, channels, 11, 12), code, np.uint8)
    given = np.array(zero, np.int32)
    attrs = {"strides": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1], "dilations": [1, 1], "auto_pad": "explicit"}
    result = Operand("f32", (1, 32, 11, 12), np.empty((1, 32, 11, 12), np.float32).strides)
    inputs = [operand(data), Operand("f32", shape, np.empty(shape, np.float32).strides, compressed=constant)]
    work = Work("IntegerConvolution-1", attrs, [*inputs, operand(given)], [result])
    found = computed(CompiledEngine(2, quantized=True), work, [data, None, given])
    taps = np.convolve(np.ones(11), np.ones(3), "same")[:, None] * np.convolve(np.ones(12), np.ones(3), "same")
    expected = (taps * channels * (code - zero) * weight).astype(np.float32)
    np.testing.assert_array_equal(found, np.broadcast_to(expected, found.shape))


def test_which_windows_winograd_takes() -> None:
    from irrun.engines.compiled.integer_product import Geometry
    from irrun.engines.compiled.integer_winograd import is_possible

    axis = Axis(14, 3, 14, 1, 1, 1, 1)
    whole = Geometry(1, 64, 1, (axis, axis))
    assert is_possible(whole, 64)
    assert is_possible(whole._replace(axes=(axis, axis._replace(begin=0, windows=12))), 64)
    for other in (axis._replace(stride=2), axis._replace(dilation=2), axis._replace(kernel=1), axis._replace(kernel=5)):
        assert not is_possible(whole._replace(axes=(axis, other)), 64)
        assert not is_possible(whole._replace(axes=(other, axis)), 64)
    assert not is_possible(whole._replace(groups=2), 64)
    assert not is_possible(whole._replace(channels=40), 64)
    assert not is_possible(whole, 16)
    assert not is_possible(whole._replace(axes=(axis, axis._replace(windows=1))), 64)  # a tile has two
    assert not is_possible(whole._replace(axes=(axis._replace(windows=7),) * 2), 64)
    assert is_possible(whole._replace(images=2, axes=(axis._replace(windows=7),) * 2), 64)


def test_how_many_pixels_are_computed_at_once() -> None:
    """None is computed in vain where code for the last ones saves enough."""
    from irrun.engines.compiled.integer_windows import tiled

    assert [tiled(pixels, 6) for pixels in (1, 5, 6, 7, 13, 25)] == [(1, 0), (5, 0), (6, 0), (4, 3), (5, 3), (5, 0)]
    assert [tiled(pixels, 6) for pixels in (49, 98, 196, 1000)] == [(6, 1), (6, 2), (6, 0), (6, 0)]
    for pixels in range(1, 500):
        size, rest = tiled(pixels, 6)
        assert 0 <= rest < size <= 6
        if rest:
            assert (pixels - rest) % size == 0


@pytest.mark.parametrize("limits", [(-3.0, 6.0), (-3.0, math.inf), (-math.inf, 6.0), (-math.inf, 1e300)])
def test_what_is_no_number_behind_codes_is_between_the_limits_too(limits: tuple[float, float]) -> None:
    """Sums of 1 and of -1 become infinities by their factor, and that of 0 NaN."""
    weights = np.array([[1, -1, 0, 2]], np.int8)
    scale = np.full((1, 4), 3e38, np.float32)
    constant = CompressedWeights("i8", weights.reshape(-1).view(np.uint8), (1, 4), (1, 4), scale)
    data, factor = np.array([[2]], np.uint8), np.array([1, 1, np.inf, -1], np.float32)
    grid = Grid("u8", (1.0,), 0)
    inputs = [
        Operand("f32", (1, 1), (4, 4), codes=operand(data), grid=grid),
        Operand("f32", (1, 4), (16, 4), compressed=constant),
        operand(factor, constant=True),
    ]
    posts = [Post("Multiply-1", NUMPY, 2), Post("Clamp-1", {"min": limits[0], "max": limits[1]})]
    attrs = {"transpose_a": False, "transpose_b": False}
    work = Work("MatMul-1", attrs, inputs, [Operand("f32", (1, 4), (16, 4))], posts)
    found = computed(CompiledEngine(1, quantized=True), work, [data, None, factor])
    expected = np.clip([[np.inf, -np.inf, np.nan, -np.inf]], *limits)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, expected.astype(np.float32))


@pytest.mark.parametrize(
    "posts",
    [
        [("Multiply-1", 1e30), ("Multiply-1", 1e30)],
        [("Multiply-1", 1e30), ("Multiply-1", 1e30), ("Multiply-1", 1e-30)],
        [("Add-1", 3e38), ("Add-1", 3e38)],
        [("Add-1", -3e38), ("Multiply-1", 2.0)],
        [("Subtract-1", 3e38), ("Subtract-1", 3e38), ("ReLU-1", None)],
    ],
)
def test_what_f32_does_not_hold_on_the_way_is_infinite(posts: list[tuple[str, float | None]]) -> None:
    weights = np.array([[1, -1, 0, 2]], np.int8)
    constant = CompressedWeights("i8", weights.reshape(-1).view(np.uint8), (1, 4), (1, 4), np.ones((1, 1), np.float32))
    data, expected = np.array([[1]], np.uint8), weights.astype(np.float32)
    inputs = [
        Operand("f32", (1, 1), (4, 4), codes=operand(data), grid=Grid("u8", (1.0,), 0)),
        Operand("f32", (1, 4), (16, 4), compressed=constant),
    ]
    arrays: list[Any] = [data, None]
    made = []
    for name, number in posts:
        if number is None:
            made.append(Post(name, {}))
            expected = np.maximum(expected, 0)
            continue
        arrays.append(np.float32(number).reshape(1, 1))
        inputs.append(operand(arrays[-1], constant=True))
        made.append(Post(name, NUMPY, len(inputs) - 1))
        with np.errstate(over="ignore"):
            functions: dict[str, Any] = {"Multiply-1": np.multiply, "Add-1": np.add, "Subtract-1": np.subtract}
            expected = functions[name](expected, arrays[-1])
    attrs = {"transpose_a": False, "transpose_b": False}
    work = Work("MatMul-1", attrs, inputs, [Operand("f32", (1, 4), (16, 4))], made)
    np.testing.assert_array_equal(computed(CompiledEngine(1, quantized=True), work, arrays), expected)


@pytest.mark.parametrize("scale", [(1e25, 1e25), (1.0, np.inf), (1.0, np.nan)])
def test_factors_that_f32_does_not_hold_are_left_to_others(scale: tuple[float, float]) -> None:
    weights = np.array([[1, -1, 0, 2]], np.int8)
    factor = np.full((1, 1), scale[1], np.float32)
    constant = CompressedWeights("i8", weights.reshape(-1).view(np.uint8), (1, 4), (1, 4), factor)
    inputs: list[Any] = [
        Operand("f32", (1, 1), (4, 4), codes=Operand("u8", (1, 1), (1, 1)), grid=Grid("u8", (scale[0],), 0)),
        Operand("f32", (1, 4), (16, 4), compressed=constant),
    ]
    attrs = {"transpose_a": False, "transpose_b": False}
    work = Work("MatMul-1", attrs, inputs, [Operand("f32", (1, 4), (16, 4))])
    assert CompiledEngine(1, quantized=True).compile(work) is None


@pytest.mark.parametrize("type", ["u8", "i8"])
@pytest.mark.parametrize("zero", [0, -7, 200])
def test_zero_points_that_the_run_tells(type: str, zero: int) -> None:
    rng = np.random.default_rng(zero % 100)
    limits = np.iinfo(numpy_dtype(type))
    data = rng.integers(limits.min, limits.max + 1, (3, 7, 37)).astype(limits.dtype)
    weights = rng.integers(-128, 128, (37, 21)).astype(np.int8)
    constant = CompressedWeights(
        "i8", weights.reshape(-1).view(np.uint8), (37, 21), (37, 21), np.ones((1, 1), np.float32)
    )
    given = np.array(zero, np.int32)
    work = Work(
        "IntegerMatMul-1",
        {"transpose_a": False, "transpose_b": False},
        [operand(data), Operand("f32", (37, 21), (84, 4), compressed=constant), operand(given)],
        [Operand("f32", (3, 7, 21), (588, 84, 4))],
    )
    found = computed(CompiledEngine(2, quantized=True), work, [data, None, given])
    np.testing.assert_array_equal(found, (data.astype(np.int64) - zero) @ weights.astype(np.int64))


def test_sums_that_32_bits_do_not_hold_are_left_to_others() -> None:
    shape = ((1 << 16) + 1, 1)
    constant = CompressedWeights("i8", np.full(shape[0], 127, np.uint8), shape, shape, np.ones((1, 1), np.float32))
    data = np.full((1, shape[0]), 255, np.uint8)
    given = np.array(0, np.int32)
    work = Work(
        "IntegerMatMul-1",
        {"transpose_a": False, "transpose_b": False},
        [operand(data), Operand("f32", shape, (4, 4), compressed=constant), operand(given)],
        [Operand("f32", (1, 1), (4, 4))],
    )
    assert CompiledEngine(1, quantized=True).compile(work) is None


@pytest.mark.parametrize(
    ("name", "data", "weights", "result", "attrs"),
    [
        ("Convolution-1", (1, 3, 5, 5, 5), (4, 3, 2, 2, 2), (1, 4, 4, 4, 4), {}),
        ("Convolution-1", (1, 3, 6, 6), (4, 3, 2, 2), (1, 4, 4, 5), {"pads_begin": (-1, 0)}),
        ("MatMul-1", (5, 3), (5, 4), (3, 4), {"transpose_a": True}),
        ("MatMul-1", (2, 5, 3), (2, 3, 4), (2, 5, 4), {}),
        ("MatMul-1", (3,), (3, 4), (4,), {}),
    ],
)
def test_products_of_codes_that_are_left_to_others_or_right(
    name: str, data: Any, weights: Any, result: Any, attrs: Any
) -> None:
    rng = np.random.default_rng(8)
    array, filters = rng.integers(0, 256, data).astype(np.uint8), rng.integers(-128, 128, weights).astype(np.int8)
    scale = np.ones((1,) * len(weights), np.float32)
    constant = CompressedWeights("i8", filters.reshape(-1).view(np.uint8), weights, weights, scale)
    grid, rank = Grid("u8", (1.0,), 0), len(data) - 2
    if name == "MatMul-1":
        attrs = {"transpose_a": False, "transpose_b": False} | attrs
        expected = np.matmul(array.T if attrs["transpose_a"] else array, filters.astype(np.int64))
    else:
        window = dict.fromkeys(("strides", "dilations"), (1,) * rank)
        window |= dict.fromkeys(("pads_begin", "pads_end"), (0,) * rank)
        attrs = {"auto_pad": "explicit"} | window | attrs
        expected = np.zeros(result)
        seen = array[:, :, -attrs["pads_begin"][0] :].astype(np.int64)
        for tap in np.ndindex(*weights[2:]):
            cut = tuple(slice(start, start + size) for start, size in zip(tap, result[2:], strict=True))
            own = filters[(slice(None), slice(None), *tap)].astype(np.int64)
            expected += np.einsum("nc...,fc->nf...", seen[(slice(None), slice(None), *cut)], own)
    given = Operand("f32", data, np.empty(data, np.float32).strides, codes=operand(array), grid=grid)
    read = Operand("f32", weights, np.empty(weights, np.float32).strides, compressed=constant)
    work = Work(name, attrs, [given, read], [Operand("f32", result, np.empty(result, np.float32).strides)])
    engine = CompiledEngine(2, quantized=True)
    if engine.compile(work) is not None:
        np.testing.assert_array_equal(computed(engine, work, [array, None]), expected)
