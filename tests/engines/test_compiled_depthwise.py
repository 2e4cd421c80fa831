"""Depthwise convolutions, compiled, against the op's kernel, and which of them others leave to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engines.works import computed, plain, posted, wanted, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the kernels")

from irrun.engines import onednn
from irrun.engines.axes import channels_last, lies_so
from irrun.engines.compiled import depthwise
from irrun.engines.compiled.engine import CompiledEngine
from irrun.engines.work import Operand, Post, Work

NAME, ADD = "GroupConvolution-1", {"auto_broadcast": "numpy"}
Sizes = tuple[int, ...]


@pytest.fixture(params=["alone", "shared"])
def engine(request: Any, monkeypatch: Any) -> CompiledEngine:
    """One thread, and three that share whatever there is, for works of any size."""
    monkeypatch.setattr("irrun.engines.depthwise.LEAST_DEPTHWISE", 1)
    monkeypatch.setattr("irrun.engines.compiled.engine.LEAST", {})
    if request.param == "shared":
        monkeypatch.setattr(depthwise, "SHARED", 0)
    return CompiledEngine(3 if request.param == "shared" else 1)


def numbers(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def with_channels_last(array: Any) -> Any:
    return np.moveaxis(np.moveaxis(array, 1, -1).copy(), -1, 1)


def windows(data: Sizes, kernel: Sizes, strides: Sizes, dilations: Sizes, begins: Sizes, ends: Sizes) -> Sizes:
    axes = zip(data, kernel, strides, dilations, begins, ends, strict=True)
    return tuple((size + a + b - dilation * (taps - 1) - 1) // step + 1 for size, taps, step, dilation, a, b in axes)


def check(
    engine: CompiledEngine,
    data: Any,
    kernel: Sizes,
    *geometry: Sizes,
    posts: tuple[Post, ...] = (),
    others: Any = (),
    features: int = 1,
) -> None:
    channels = data.shape[1]
    filters = numbers(3, channels, features, 1, *kernel)
    names = ("strides", "dilations", "pads_begin", "pads_end")
    attrs = {**dict(zip(names, geometry, strict=True)), "auto_pad": "explicit"}
    given = [data, filters, *others]
    expected = posted(posts, plain(NAME, attrs, given[:2]), given)
    work = work_of(NAME, attrs, given, [(expected.shape, "f32")], posts, (1, *range(2, 2 + len(others))))
    made = engine.compile(work)
    assert made is not None
    assert made.taken == {1}
    assert (0 in made.wants) == (not lies_so(work.required(1)[0], channels_last(work.required(1)[0])))
    (found,) = computed(made, work, wanted(made, work, given))
    np.testing.assert_allclose(found, expected, 1e-5, 1e-5)


@pytest.mark.parametrize("seed", range(60))
def test_random_geometry_along_one_two_and_three_axes(engine: CompiledEngine, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = seed % 3 + 1
    while True:
        sizes, strides, dilations = rng.integers(1, 14, rank), rng.integers(1, 4, rank), rng.integers(1, 5, rank)
        kernel, begins, ends = rng.integers(1, 5, rank), rng.integers(0, 9, rank), rng.integers(0, 9, rank)
        geometry = tuple(tuple(map(int, own)) for own in (strides, dilations, begins, ends))
        if min(windows(tuple(sizes), tuple(kernel), *geometry)) > 0:
            break
    data = numbers(seed, int(rng.integers(1, 3)), int(rng.choice([3, 16, 17, 40])), *sizes)
    features = int(rng.choice([1, 2, 4, 8]))
    features = features if features * data.shape[1] % 16 == 0 else 1
    taps = tuple(map(int, kernel))
    check(engine, with_channels_last(data) if seed % 2 else data, taps, *geometry, features=features)


@pytest.mark.parametrize(("channels", "features"), [(8, 2), (24, 2), (4, 4), (12, 4), (2, 8), (6, 8)])
def test_several_features_of_a_channel(engine: CompiledEngine, channels: int, features: int) -> None:
    """As patches of images are merged: a vector has all that is made of a few channels."""
    data, total = numbers(8, 2, channels, 9, 8), channels * features
    posts, bias = (Post("Add-1", ADD, 2), Post("ReLU-1", {})), numbers(9, 1, total, 1, 1)
    check(engine, data, (7, 7), (2, 2), (1, 1), (3, 3), (3, 3), posts=posts, others=(bias,), features=features)


def test_wide_padding_and_windows_that_meet_nothing(engine: CompiledEngine) -> None:
    check(engine, numbers(0, 1, 20, 33, 33), (3, 3), (1, 1), (18, 18), (18, 18), (18, 18))
    check(engine, numbers(1, 2, 5, 4, 5, 6), (2, 3, 2), (2, 1, 3), (1, 1, 1), (7, 5, 9), (6, 8, 4))
    check(engine, numbers(2, 1, 16, 9), (3,), (4,), (1,), (0,), (0,))


@pytest.mark.parametrize("shape", [(2, 19, 3, 5, 21), (1, 32, 6, 7), (1, 7, 40)])
def test_what_follows_is_done_to_the_sums(engine: CompiledEngine, shape: Sizes) -> None:
    data, rank = numbers(4, *shape), len(shape) - 2
    same = (1,) * rank
    bias, beside, scale = numbers(5, 1, shape[1], *same), with_channels_last(numbers(6, *shape)), numbers(7, 1)
    posts = (Post("Add-1", ADD, 2), Post("Add-1", ADD, 3), Post("Sigmoid-1", {}), Post("Multiply-1", ADD, 4))
    check(engine, data, (3,) * rank, same, same, same, same, posts=posts, others=(bias, beside, scale))


def test_what_is_left_to_others(engine: CompiledEngine) -> None:
    attrs = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1), "auto_pad": "explicit"}
    data, filters = numbers(0, 1, 8, 6, 6), numbers(1, 8, 1, 1, 3, 3)

    def taken(data: Any, filters: Any, posts: tuple[Post, ...] = (), constant: Sizes = (1,), type: str = "f32") -> bool:
        shape = (*data.shape[:1], filters.shape[0] * filters.shape[1], *data.shape[2:])
        other = numbers(2, 1, shape[1], 6, 6)
        work = work_of(NAME, attrs, [data, filters, other], [(shape, type)], posts, constant)
        return engine.compile(work) is not None

    assert taken(data, filters)
    assert not taken(data, filters, constant=())
    assert taken(data, numbers(1, 8, 2, 1, 3, 3))
    assert not taken(data, numbers(1, 8, 3, 1, 3, 3))
    assert not taken(data[:, :3], numbers(1, 3, 2, 1, 3, 3))
    assert not taken(data, numbers(1, 4, 2, 2, 3, 3))
    assert not taken(data.astype(np.float16), filters.astype(np.float16), type="f16")
    assert not taken(data, filters, (Post("Add-1", ADD, 2),))  # whose channels do not lie side by side
    assert not taken(data, filters, (Post("Floor-1", {}), Post("Power-1", ADD, 2)))


def test_depthwise_convolutions_that_onednn_has_no_kernel_for_are_left_to_it() -> None:
    """Where there is something else that takes them."""
    engines = {compiling: onednn.load(2, compiling=compiling) for compiling in (False, True)}
    alone, beside = engines[False], engines[True]
    if alone is None or beside is None:
        pytest.skip("oneDNN is not installed")
    other = CompiledEngine(2, beside.parallel)
    cases: list[tuple[Sizes, Sizes, Sizes, bool]] = [
        ((1, 32, 6, 16, 16), (3, 3, 3), (1, 1, 1), False),
        ((1, 32, 33, 33), (3, 3), (12, 12), False),
        ((1, 32, 33, 33), (3, 3), (1, 1), True),
    ]
    for shape, kernel, dilations, made in cases:
        pads = tuple(taps // 2 * apart for taps, apart in zip(kernel, dilations, strict=True))
        attrs = {"strides": (1,) * len(kernel), "dilations": dilations, "pads_begin": pads, "pads_end": pads}
        filters = numbers(1, shape[1], 1, 1, *kernel)
        strides = np.empty(shape, np.float32).strides
        data, weights = Operand("f32", shape, strides), Operand("f32", filters.shape, filters.strides, filters)
        work = Work(NAME, {**attrs, "auto_pad": "explicit"}, [data, weights], [data])
        assert alone.compile(work) is not None
        assert (beside.compile(work) is not None) == made
        assert made or other.compile(work) is not None
