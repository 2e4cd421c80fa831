"""Codes made of f32 by code of our own: works made at random, against the ops step by step in f64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engines.onednn_works import has_avx2
from engines.works import aligned_empty, computed, work_of

from irrun.engines import compiled
from irrun.engines.compiled.engine import LEAST_CODED, CompiledEngine
from irrun.engines.grid import QUANTIZE, Coding, Grid
from irrun.engines.work import Operand, Post
from irrun.run.internal_ops import QUANTIZE as OP
from irrun.spec.dtypes import numpy_dtype

pytestmark = pytest.mark.skipif(
    not compiled.is_there() or not has_avx2(), reason="llvmlite is not installed, or the processor has no AVX2"
)
NUMPY = {"auto_broadcast": "numpy", "auto_broadcast_axis": -1}
NEAR = 1e-4
"""How near, in levels, a number may be to the border between two without being on the right side of it."""

CODINGS = (
    Coding(Grid("i8", (0.0513,), 0), (-128 * 0.0513,), (127 * 0.0513,), (-128,), (256,)),
    Coding(Grid("i8", (0.0471,), 0), (-127 * 0.0471,), (127 * 0.0471,), (-127,), (255,)),
    Coding(Grid("u8", (0.0253,), 0), (0.0,), (255 * 0.0253,), (0,), (256,)),
    Coding(Grid("u8", (0.1173,), 7), (-7 * 0.1173,), (16 * 0.1173,), (0,), (24,)),
)


def engine() -> CompiledEngine:
    return CompiledEngine(2, coding=True)


def turned(array: Any) -> Any:
    """The array with its channels last."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


class Chain:
    """A work in the making, and what is to come of it: numbers, and which of them are near a border."""

    def __init__(self, rng: Any, data: Any, *, last: bool) -> None:
        self.rng, self.lies = rng, turned if last else np.ascontiguousarray
        self.arrays: list[Any] = [self.lies(data)]
        self.posts: list[Post] = []
        self.codes: dict[int, tuple[Any, Grid]] = {}
        self.value, self.doubtful = data.astype(np.float64), np.zeros(data.shape, bool)

    def operand(self, array: Any) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1

    def swish(self) -> None:
        self.posts.append(Post("Swish-4", {}))
        self.value = self.value / (1 + np.exp(-self.value))

    def sigmoid(self) -> None:
        self.posts.append(Post("Sigmoid-1", {}))
        self.value = 1 / (1 + np.exp(-self.value))

    def relu(self) -> None:
        self.posts.append(Post("ReLU-1", {}))
        self.value = np.maximum(self.value, 0)

    def clamp(self) -> None:
        self.posts.append(Post("Clamp-1", {"min": -0.75, "max": 2.0}))
        self.value = np.clip(self.value, -0.75, 2)

    def constant(self) -> None:
        """A product or a sum with one number, or one for each place along the axis that comes last in memory."""
        shape, axis = [1] * self.value.ndim, 1 if self.lies is turned else -1
        if self.rng.random() < 0.6:
            shape[axis] = self.value.shape[axis]
        values = self.rng.standard_normal(shape).astype(np.float32)
        name = str(self.rng.choice(["Add-1", "Multiply-1", "Subtract-1"]))
        self.posts.append(Post(name, NUMPY, self.operand(values)))
        self.value = {"Add-1": np.add, "Multiply-1": np.multiply, "Subtract-1": np.subtract}[name](self.value, values)

    def other(self) -> None:
        values = self.lies(self.rng.standard_normal(self.value.shape).astype(np.float32))
        self.posts.append(Post("Add-1", NUMPY, self.operand(values)))
        self.value = self.value + values

    def added(self) -> None:
        """Codes of the same shape, which may be a part of others."""
        grid = Grid("u8", (0.5,), 7) if self.rng.random() < 0.5 else Grid("i8", (0.25,), 0)
        limits = np.iinfo(numpy_dtype(grid.type))
        shape = [*self.value.shape]
        shape[1] += 5
        whole = self.lies(self.rng.integers(limits.min, limits.max + 1, shape).astype(limits.dtype))
        codes = whole[:, 2 : 2 + self.value.shape[1]]
        number = self.operand(codes if self.rng.random() < 0.5 else self.lies(codes))
        self.posts.append(Post("Add-1", NUMPY, number))
        self.codes[number] = self.arrays[number], grid
        self.value = self.value + (codes.astype(np.float64) - grid.zero) * grid.scale[0]

    def rounded(self) -> None:
        low, levels = -2.0, int(self.rng.choice([16, 256]))
        high = low + (levels - 1) / 32
        numbers = tuple(self.operand(np.float32(limit)) for limit in (low, high, low, high))
        self.posts.append(Post("FakeQuantize-1", {"levels": levels, **NUMPY}, parameters=numbers))
        level = (np.clip(self.value, low, high) - low) * 32
        self.doubtful |= np.abs(level % 1 - 0.5) < NEAR
        self.value = np.rint(level) / 32 + low

    def made(self, coding: Coding) -> tuple[Any, Any]:
        """The codes as they are computed, and as they are to be but for what is doubtful."""
        shape, (head, *posts) = self.value.shape, [*self.posts, Post(QUANTIZE, {"coding": coding})]
        work = work_of(head.name, head.attrs, self.arrays, [(shape, coding.grid.type)], posts)
        for number, array in enumerate(self.arrays):
            if array.shape != shape:
                work.inputs[number].value = array
        for number, (codes, grid) in self.codes.items():
            given = Operand(grid.type, shape, codes.strides)
            work.inputs[number] = Operand("f32", shape, np.empty(shape, np.float32).strides, codes=given, grid=grid)
        found = engine().compile(work)
        assert found is not None
        assert found.coded == {*self.codes}
        arrays = [self.laid(number, array, found.wants.get(number)) for number, array in enumerate(self.arrays)]
        level = (self.value - coding.low[0]) / (coding.high[0] - coding.low[0]) * (coding.levels[0] - 1)
        self.doubtful |= np.abs(level % 1 - 0.5) < NEAR
        return computed(found, work, arrays)[0], OP.kernel(self.value.astype(np.float32), coding=coding)

    def laid(self, number: int, array: Any, layout: Any) -> Any:
        if layout is None:
            return array
        made = np.ndarray(array.shape, array.dtype, aligned_empty((layout.nbytes,), np.uint8), 0, layout.strides)
        made[...] = array
        return made


OF_ONE = ("swish", "sigmoid", "relu", "clamp")


@pytest.mark.parametrize("seed", range(160))
def test_chains_of_all_kinds(seed: int) -> None:
    rng = np.random.default_rng((3, seed))
    channels = int(rng.choice([1, 3, 16, 24, 37, 80, 512]))
    images, rank = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    side = int(np.ceil((LEAST_CODED / channels / images) ** (1 / rank)))
    data = rng.standard_normal((images, channels, *[side + int(n) for n in rng.integers(0, 4, rank)])) * 3
    chain = Chain(rng, data.astype(np.float32), last=bool(rng.random() < 0.7))
    kinds = ["constant", "other", "added", "rounded", *OF_ONE]
    head = [str(rng.choice([*OF_ONE, "constant"]))] if rng.random() < 0.9 else []
    for kind in [*head, *rng.choice(kinds, int(rng.integers(0, 4)) if head else 0)]:
        getattr(chain, str(kind))()
    codes, expected = chain.made(CODINGS[seed % len(CODINGS)])
    same = (codes == expected) | chain.doubtful
    assert chain.doubtful.mean() < 0.02
    assert same.all(), (np.argwhere(~same)[:3], [post.name for post in chain.posts])
    assert codes.strides[1] == (1 if chain.lies is turned else int(np.prod(data.shape[2:]))) or channels == 1


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("rounded", [False, True])
def test_what_is_infinite_or_no_number(coding: Coding, rounded: bool) -> None:
    """NaN is the first code, whatever it goes through on the way."""
    data = np.resize(np.float32([np.nan, np.inf, -np.inf, 3e38, -3e38, 1, -0.0]), (1, 7, 2400))
    chain = Chain(np.random.default_rng(4), data, last=False)
    with np.errstate(all="ignore"):
        chain.relu()
        if rounded:
            chain.rounded()
        codes, expected = chain.made(coding)
    np.testing.assert_array_equal(codes, expected)
    assert (codes[np.isnan(data)] == coding.first[0]).all()


def test_numbers_of_an_example() -> None:
    """Halves go to the even code."""
    coding = Coding(Grid("i8", (0.5,), 0), (-64.0,), (63.5,), (-128,), (256,))
    data = np.resize(np.float32([0.25, 0.75, -0.25, -0.75, 100, -100, 1]), 7 * 2400).reshape(1, 7, 2400)
    codes, _ = Chain(np.random.default_rng(5), data, last=False).made(coding)
    assert codes.reshape(-1)[:7].tolist() == [0, 2, 0, -2, 127, -128, 2]


def test_few_codes_are_left_to_others() -> None:
    work = work_of(QUANTIZE, {"coding": CODINGS[0]}, [np.zeros((1, 100), np.float32)], [((1, 100), "i8")])
    assert engine().compile(work) is None


@pytest.mark.parametrize("lies", [np.ascontiguousarray, turned])
def test_codes_of_each_channel_are_not_those_of_each_place_in_a_row(lies: Any) -> None:
    """Even where there are as many: the columns are channels where these come last."""
    data = lies(np.random.default_rng(6).standard_normal((1, 24, 30, 24)).astype(np.float32))
    scale = tuple(2.0 ** -(2 + np.arange(24) % 5))
    low, high = tuple(-127 * own for own in scale), tuple(127 * own for own in scale)
    coding = Coding(Grid("i8", scale, 0), low, high, (-127,) * 24, (255,) * 24)
    work = work_of(QUANTIZE, {"coding": coding}, [data], [(data.shape, "i8")])
    found = engine().compile(work)
    assert (found is not None) == (lies is turned)
    if found is not None:
        assert np.array_equal(computed(found, work, [data])[0], OP.kernel(data, coding=coding))
