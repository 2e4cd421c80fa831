"""Normalizations on numpy against the plain kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from engines.works import THREADS, computed, plain, posted, work_of

from irrun.engines.vectorized.normalization import COMPILERS
from irrun.engines.work import Compiled, Post, Work

rng = np.random.default_rng(2)
NUMPY = {"auto_broadcast": "numpy", "auto_broadcast_axis": -1}
MVN = {"normalize_variance": True, "eps": 1e-5, "eps_mode": "inside_sqrt"}


def numbers(*shape: int) -> Any:
    return (rng.standard_normal(shape) * 2 + 1).astype(np.float32)


def made(
    name: str, attrs: dict[str, Any], arrays: Sequence[Any], posts: Sequence[Post] = (), constant: Sequence[int] = ()
) -> tuple[Work, Compiled | None]:
    shape = arrays[2 if name == "BatchNormInference-1" else 0].shape
    work = work_of(name, attrs, arrays, [(shape, "f32")], posts, constant)
    return work, COMPILERS[name](work, THREADS)


def check(
    name: str, attrs: dict[str, Any], *arrays: Any, posts: Sequence[Post] = (), constant: Sequence[int] = ()
) -> None:
    own = min((post.operand for post in posts if post.operand is not None), default=len(arrays))
    expected = posted(posts, plain(name, attrs, arrays[:own]), arrays)
    work, compiled = made(name, attrs, arrays, posts, constant)
    assert compiled is not None
    np.testing.assert_allclose(computed(compiled, work, arrays)[0], expected, rtol=2e-5, atol=1e-5)


SHAPES = [
    ((7,), 0),
    ((1, 9), 1),
    ((5, 3), 0),
    ((4, 30, 5), 1),
    ((100, 7), 1),
    ((2, 3, 49, 49), 3),
    ((1, 21, 90, 110), 1),
    ((3, 700, 90), 2),
    ((2, 1, 6), 2),
]


@pytest.mark.parametrize("name", ["SoftMax-1", "SoftMax-8", "LogSoftmax-5"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_softmax(name: str, shape: tuple[int, ...], axis: int) -> None:
    check(name, {"axis": axis}, numbers(*shape) * 3)
    check(name, {"axis": axis}, np.ascontiguousarray(numbers(*shape).T * 3).T)


@pytest.mark.parametrize("name", ["SoftMax-8", "LogSoftmax-5"])
@pytest.mark.parametrize("columns", [5, 60])
def test_softmax_of_what_is_not_finite(name: str, columns: int) -> None:
    data = numbers(50, columns)
    data[3, 4], data[4, 1], data[5, 2] = np.nan, np.inf, -np.inf
    data[6], data[7, 1:], data[8] = -np.inf, -1e38, 1e38
    check(name, {"axis": 1}, data)
    check(name, {"axis": 0}, data[:, :4])


@pytest.mark.parametrize("name", ["SoftMax-8", "LogSoftmax-5"])
@pytest.mark.parametrize("hidden", [-104.0, -1e4, -1e38, -np.inf])
@pytest.mark.parametrize("axis", [1, 2])
def test_softmax_of_what_a_mask_hides(name: str, hidden: float, axis: int) -> None:
    data = numbers(2, 150, 170)
    data[:, :, 100:] += np.float32(hidden)
    data[:, 90:] += np.float32(hidden)
    check(name, {"axis": axis}, data[:, :90] if axis == 2 else data[:, :, :100])


AXES = [((64, 100), [-1]), ((2, 3, 40, 50), [2, 3]), ((2, 30, 4, 5), [1]), ((2, 3, 4), [0, 1, 2]), ((2, 1, 9), [2, 1])]


@pytest.mark.parametrize(("shape", "axes"), AXES)
@pytest.mark.parametrize("mode", ["inside_sqrt", "outside_sqrt", "no variance"])
def test_mean_and_variance(shape: tuple[int, ...], axes: list[int], mode: str) -> None:
    attrs = MVN | ({"normalize_variance": False} if mode == "no variance" else {"eps_mode": mode})
    check("MVN-6", attrs, numbers(*shape), np.array(axes), constant=(1,))
    check("MVN-6", attrs, np.ascontiguousarray(numbers(*shape).T).T, np.array(axes), constant=(1,))


def test_lines_that_are_not_finite_less_their_mean() -> None:
    data = numbers(6, 9)
    data[1, 2], data[2, 3], data[4, 5] = np.inf, -np.inf, np.nan
    attrs = MVN | {"normalize_variance": False}
    check("MVN-6", attrs, data, np.array([1]), constant=(1,))
    check("MVN-6", attrs, np.ascontiguousarray(data.T).T, np.array([0]), constant=(1,))


@pytest.mark.parametrize("shape", [(3, 10, 48), (1, 900, 384), (1, 1, 5)])
def test_layer_normalization_with_scale_and_shift(shape: tuple[int, ...]) -> None:
    posts = [Post("Multiply-1", NUMPY, 2), Post("Add-1", NUMPY, 3), Post("Swish-4", {})]
    check(
        "MVN-6", MVN, numbers(*shape), np.array([-1]), *(numbers(shape[-1]) for _ in "ab"), posts=posts, constant=(1,)
    )


def test_first_version_of_mean_and_variance() -> None:
    attrs = {"normalize_variance": True, "eps": 1e-9, "reduction_axes": ()}
    check("MVN-1", attrs | {"across_channels": True}, numbers(2, 3, 4, 5))
    check("MVN-1", attrs | {"across_channels": False}, numbers(2, 3, 4, 5))
    check("MVN-1", attrs | {"across_channels": None, "reduction_axes": (-1,)}, numbers(2, 3, 4, 5))


@pytest.mark.parametrize("mode", ["add", "max"])
def test_norms(mode: str) -> None:
    for shape, axes in AXES:
        check("NormalizeL2-1", {"eps": 0.5, "eps_mode": mode}, numbers(*shape), np.array(axes), constant=(1,))
    data = numbers(4, 5)
    data[1], data[2, 3] = 0, np.nan
    check("NormalizeL2-1", {"eps": 1e-9, "eps_mode": mode}, data, np.array([1]), constant=(1,))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 33])
@pytest.mark.parametrize(("beta", "bias"), [(0.75, 1.0), (0.75, 0.1), (0.5, 2.5), (-1.0, 1.0)])
def test_local_responses(size: int, beta: float, bias: float) -> None:
    attrs = {"alpha": 0.3, "beta": beta, "bias": bias, "size": size}
    for shape, axes in [case for case in AXES if len(case[1]) == 1] + [((1, 96, 55, 57), [1])]:
        check("LRN-1", attrs, numbers(*shape), np.array(axes), posts=[Post("ReLU-1", {})], constant=(1,))
    last = numbers(2, 9, 11, 13).transpose(0, 3, 1, 2)  # channels
    check("LRN-1", attrs, last, np.array([1]), constant=(1,))
    check("LRN-1", attrs, last, np.array([-2]), constant=(1,))
    data = numbers(6, 9)
    data[1, 2], data[2, 3], data[3, 4], data[4], data[5] = np.inf, -np.inf, np.nan, 0, 1e18
    check("LRN-1", attrs, data, np.array([1]), constant=(1,))


def test_local_responses_to_squares_beyond_f32() -> None:
    attrs = {"size": 5, "alpha": 1e-4, "beta": 0.25, "bias": 1.0}
    with np.errstate(over="ignore"):
        check(
            "LRN-1", attrs, np.full((2, 5, 3, 4), 1e19, np.float32) * numbers(2, 5, 3, 4), np.array([1]), constant=(1,)
        )


@pytest.mark.parametrize(("batch", "channels", "groups"), [(1, 8, 2), (3, 12, 12), (2, 64, 1)])
def test_groups_of_channels(batch: int, channels: int, groups: int) -> None:
    attrs, posts = {"num_groups": groups, "epsilon": 1e-4}, [Post("Swish-4", {})]
    tables = [numbers(channels), numbers(channels)]
    name = "GroupNormalization-12"
    check(name, attrs, numbers(batch, channels, 5, 7), *tables, posts=posts, constant=(1, 2))
    check(name, attrs, numbers(batch, channels, 30, 40), *tables, constant=(1, 2))
    check(name, attrs, numbers(batch, 5, 7, channels).transpose(0, 3, 1, 2), *tables, constant=(1, 2))


@pytest.mark.parametrize("shape", [(2, 5), (2, 5, 7), (1, 5, 200, 210)])
def test_batch_normalization(shape: tuple[int, ...]) -> None:
    gamma, beta, mean, variance = numbers(5), numbers(5), numbers(5), np.abs(numbers(5)) + 0.1
    data, other, attrs = numbers(*shape), numbers(*shape), {"epsilon": 1e-3}
    posts = [Post("Add-1", NUMPY, 5), Post("ReLU-1", {})]
    check("BatchNormInference-5", attrs, data, gamma, beta, mean, variance, other, posts=posts, constant=(1, 2, 3, 4))
    check("BatchNormInference-1", attrs, gamma, beta, data, mean, variance, constant=(0, 1, 3, 4))


@pytest.mark.parametrize("operand", [(1, 4, 5, 3), (4, 5, 3), (4, 1, 1), ()])
def test_one_group_of_one_image_and_what_is_added(operand: tuple[int, ...]) -> None:
    attrs, post = {"num_groups": 1, "epsilon": 1e-5}, Post("Add-1", NUMPY, 3)
    arrays = [numbers(1, 4, 5, 3), numbers(4), numbers(4), np.asarray(numbers(*operand))]
    check("GroupNormalization-12", attrs, *arrays, posts=[post], constant=(1, 2))
    check("GroupNormalization-12", attrs, *arrays, posts=[post, Post("Abs-1", {})], constant=(1, 2, 3))


def test_long_lines_keep_their_digits() -> None:
    data = numbers(3, 200_000)
    work, compiled = made("MVN-6", MVN, [data, np.array([1])], constant=(1,))
    assert compiled is not None
    wide = data.astype(np.float64)
    exact = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(computed(compiled, work, [data, np.array([1])])[0], exact, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axes", [[0, 1, 2], [1, 2]])
@pytest.mark.parametrize("mean", [3e5, 1e7])
def test_means_far_from_zero(axes: list[int], mean: float) -> None:
    data = (mean + numbers(2, 4, 64, 16).astype(np.float64)).astype(np.float32)
    attrs = MVN | {"eps": 1e-6}
    work, compiled = made("MVN-6", attrs, [data, np.array(axes)], constant=(1,))
    assert compiled is not None
    wide = data.astype(np.float64)
    spread = np.sqrt(wide.var(tuple(axes), keepdims=True) + 1e-6)
    exact = (wide - wide.mean(tuple(axes), keepdims=True)) / spread
    np.testing.assert_allclose(computed(compiled, work, [data, np.array(axes)])[0], exact, rtol=1e-2, atol=0.1)


def test_lines_of_one_number_less_their_mean_are_zero() -> None:
    for count in (30, 77, 500):
        for normalizes in (True, False):
            attrs = MVN | {"eps": 1e-12, "eps_mode": "outside_sqrt", "normalize_variance": normalizes}
            data = np.full((count, 200), 7.7, np.float32)
            work, compiled = made("MVN-6", attrs, [data, np.array([0])], constant=(1,))
            assert compiled is not None
            assert not computed(compiled, work, [data, np.array([0])])[0].any()


def test_what_is_left_to_others() -> None:
    data = numbers(2, 3, 4)
    assert made("SoftMax-8", {"axis": 1}, [data.astype(np.float64)])[1] is None
    assert made("MVN-6", MVN, [data, np.array([1])])[1] is None
    assert made("MVN-6", MVN, [data, np.array([0, 2])], constant=(1,))[1] is None
    assert made("NormalizeL2-1", {"eps": 1.0, "eps_mode": "add"}, [data, np.array([], int)], constant=(1,))[1] is None
    attrs = {"alpha": 1.0, "beta": 0.75, "bias": 1.0, "size": 3}
    assert made("LRN-1", attrs, [data, np.array([1, 2])], constant=(1,))[1] is None
    assert made("LRN-1", attrs, [data, np.array([1])])[1] is None
    five = [data, *(numbers(3) for _ in range(4))]
    assert made("BatchNormInference-5", {"epsilon": 1e-3}, five)[1] is None
    assert made("GroupNormalization-12", {"num_groups": 1, "epsilon": 1e-3}, five[:3])[1] is None
