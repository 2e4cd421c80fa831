"""Element-wise ops and their chains, normalization and copies on oneDNN against the plain ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engines.onednn_works import apply, channels_last, check, computed, needs_onednn, normal, prepared, refused, work_of

from irrun.engines import onednn
from irrun.engines.onednn.posts import BINARY as OPERATIONS
from irrun.engines.onednn.posts import FAKE_QUANTIZE, FUNCTIONS, INEXACT
from irrun.engines.orders import is_of_short_rows
from irrun.engines.work import Post
from irrun.spec.op import Array

pytestmark = needs_onednn

ATTRS: dict[str, dict[str, Any]] = {
    "Clamp-1": {"min": -0.5, "max": 0.75},
    "Elu-1": {"alpha": 0.5},
    "Gelu-7": {"approximation_mode": "tanh"},
    "Round-5": {"mode": "half_to_even"},
}
DROPS_NAN = {"Clamp-1", "Exp-1", "HSigmoid-5", "ReLU-1"}
"""Functions of NaN that are a number here, as `irrun.engines.onednn.posts` says."""


def data_for(name: str, *shape: int) -> Array:
    data = 3 * normal(*shape)
    return np.abs(data) + np.float32(0.1) if name in ("Log-1", "Sqrt-1") else data


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_as_a_head_and_behind_one(name: str) -> None:
    attrs = ATTRS.get(name, {})
    for shape in ((7,), (2, 5, 9, 3), (1, 40, 33, 20)):
        if name not in INEXACT:
            check(name, attrs, [np.asarray(data_for(name, *shape))], tolerance=1e-6)
    data = data_for(name, 2, 5, 9, 3)
    post, added = Post(name, attrs), Post("Add-1", {}, 2)
    check("MatMul-1", {}, [data, np.eye(3, dtype=np.float32), data], [1], posts=[post, added], tolerance=1e-6)
    if name in INEXACT:
        assert refused("Add-1", {}, [data, np.float32([0.0])], [1], posts=[post])
        return
    check("Add-1", {}, [data, np.float32([0.0])], [1], posts=[post], tolerance=1e-6)
    check("Negative-1", {}, [-data, data], posts=[post, Post("Add-1", {}, 1)], tolerance=1e-6)


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - INEXACT))
def test_infinities_and_signed_zeros(name: str) -> None:
    data = np.float32([np.inf, -np.inf, 0.0, -0.0, 1e-30, -1e-30, 1e30, -1e30, 88, -88, 104, -104])
    attrs = ATTRS.get(name, {})
    (result,) = apply(name, attrs, data)
    work = work_of(name, attrs, [data], [result])
    compiled = prepared(work)
    assert compiled is not None
    (output,) = computed(work, compiled, [data])
    np.testing.assert_allclose(output, result, rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "Gelu-2"])
def test_nan_stays_unless_the_module_says_so(name: str) -> None:
    data, one = np.full((20, 1), np.nan, np.float32), np.ones((1, 1), np.float32)
    work = work_of("MatMul-1", {}, [data, one], [data], posts=[Post(name, ATTRS.get(name, {}))])
    compiled = prepared(work)
    assert compiled is not None
    (output,) = computed(work, compiled, [data, one])
    assert np.isnan(output).all() != (name in DROPS_NAN)
    if name not in INEXACT:
        check("Add-1", {}, [data, one], posts=[Post(name, ATTRS.get(name, {}))])


@pytest.mark.parametrize("name", ["Clamp-1", "Exp-1", "HSigmoid-5", "Maximum-1", "Minimum-1", "ReLU-1", "Gelu-7"])
def test_nothing_that_loses_nan_is_taken_behind_pools_and_element_wise_ops(name: str) -> None:
    image, post = channels_last(1, 16, 6, 6), Post(name, ATTRS.get(name, {}), *([1] if name in OPERATIONS else []))
    operand = [normal(1, 16, 6, 6)] if name in OPERATIONS else []
    pool = {"kernel": (3, 3), "strides": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1), "auto_pad": "explicit"}
    check("MaxPool-1", {**pool, "rounding_type": "floor"}, [image])
    assert refused("MaxPool-1", {**pool, "rounding_type": "floor"}, [image, *operand], posts=[post])
    assert refused("Tanh-1", {}, [image, *operand], posts=[post])


def test_fake_quantize_is_taken_for_codes_alone_behind_element_wise_ops() -> None:
    data, bounds = normal(3, 4), [np.float32([number]) for number in (-1.5, 1.5, -1.5, 1.5)]
    post = Post(FAKE_QUANTIZE, {"levels": 256, "auto_broadcast": "numpy"}, parameters=(2, 3, 4, 5))
    work = work_of("Add-1", {}, [data, data, *bounds], [data], [2, 3, 4, 5], [post])
    assert prepared(work) is None


@pytest.mark.parametrize("name", sorted(INEXACT - {FAKE_QUANTIZE}))
def test_ops_whose_results_for_nan_differ_are_left_to_others(name: str) -> None:
    data = [normal(3, 4)] * (2 if name in OPERATIONS else 1)
    assert refused(name, ATTRS.get(name, {}), data)


BINARY = ["Add-1", "Multiply-1", "Divide-1", "Subtract-1", "SquaredDifference-1"]


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((2, 5, 9, 3), (2, 5, 9, 3)),
        ((2, 5, 9, 3), (3,)),
        ((2, 5, 9, 3), (5, 1, 1)),
        ((2, 5, 9, 3), (2, 5, 1, 1)),
        ((2, 5, 9, 3), ()),
        ((1, 197, 768), (768,)),
        ((9,), (9,)),
    ],
)
def test_two_inputs(name: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    attrs = {"m_pythondiv": True} if name == "Divide-1" else {}
    first, second = np.asarray(normal(*left)), np.asarray(normal(*right, seed=1), np.float32)
    second = np.asarray(np.where(np.abs(second) < 0.1, 0.5, second), np.float32)
    for constants in ([], [1]):
        check(name, attrs, [first, second], constants)
    if name != "Divide-1":
        check(name, attrs, [second, first])
    elif left != right:
        assert refused(name, attrs, [second, first])


@pytest.mark.parametrize("name", ["Maximum-1", "Minimum-1"])
def test_extremes_behind_a_product(name: str) -> None:
    for other in (normal(2, 5, 9, 3), normal(3), normal(1, 5, 1, 1)):
        arrays = [normal(2, 5, 9, 4, seed=1), normal(4, 3, seed=2), np.asarray(other)]
        check("MatMul-1", {}, arrays, posts=[Post(name, {}, 2)])


def test_orders_of_axes_that_operands_share() -> None:
    image, other = channels_last(2, 20, 7, 9), channels_last(2, 20, 7, 9)
    for arrays in ([image, other], [image, normal(2, 20, 1, 1)], [image, normal(1, 20, 1, 1)]):
        compiled = check("Multiply-1", {}, arrays, posts=[Post("Tanh-1", {})])
        assert compiled.gives[0].strides == image.strides
    check("Add-1", {}, [normal(3, 4, 5).transpose(2, 0, 1), normal(3, 4, 5).transpose(2, 0, 1)])
    check("Sigmoid-1", {}, [normal(3, 4, 5).transpose(2, 0, 1)])


def test_chain() -> None:
    arrays = [normal(2, 5, 9, 3), normal(3), normal(2, 5, 9, 3), np.float32(2)]
    posts = [
        Post("Multiply-1", {}, 2),
        Post("Subtract-1", {}, 3, reflected=True),
        Post("Tanh-1", {}),
        Post("Power-1", {"auto_broadcast": "numpy"}, 3),
    ]
    check("Add-1", {}, arrays, [1, 3], posts)


@pytest.mark.parametrize("factor", [0.0, 0.5, 1.0, 1.702, 30.0])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_swish_with_a_factor(factor: float, shape: tuple[int, ...]) -> None:
    beta = np.full(shape, factor, np.float32)
    check("Swish-4", {}, [normal(2, 5, 9) * 4, beta], [1])
    swish, product = Post("Swish-4", {}, parameters=(2,)), normal(7, 16)
    check_scaled("MatMul-1", {"transpose_a": False, "transpose_b": False}, [normal(5, 7), product, beta], swish)
    check_scaled("Add-1", {}, [normal(5, 7), normal(5, 7), beta], swish)


def check_scaled(name: str, attrs: dict[str, Any], arrays: list[Array], post: Post) -> None:
    """Compare a work with a post that has the last array as its parameter with the plain ops."""
    (result,) = apply(name, attrs, *arrays[:-1])
    results = apply(post.name, post.attrs, result, arrays[-1].reshape(()))
    work = work_of(name, attrs, arrays, results, [1, 2], [post])
    compiled = prepared(work)
    assert compiled is not None
    (output,) = computed(work, compiled, arrays)
    np.testing.assert_allclose(output, results[0], rtol=1e-5, atol=1e-6)


def test_element_wise_works_that_are_not_taken() -> None:
    assert refused("Add-1", {}, [normal(3, 1), normal(1, 4)])
    assert refused("ReLU-1", {}, [normal(3, 4)[:, ::2]])
    assert refused("ReLU-1", {}, [np.asarray(np.float32(1))])
    assert refused("Swish-4", {}, [normal(3, 4), np.float32(2)])
    assert refused("Swish-4", {}, [normal(3, 4), np.float32(np.inf)], [1])
    assert refused("ReLU-1", {}, [normal(3, 4).astype(np.float64)])
    assert refused("Round-5", {"mode": "half_away_from_zero"}, [normal(3, 4)])


@pytest.mark.parametrize(("shape", "axes"), [((1, 197, 768), [-1]), ((2, 8, 5, 5), [2, 3]), ((4, 33), [1])])
def test_mean_variance_normalization(shape: tuple[int, ...], axes: list[int]) -> None:
    attrs = {"normalize_variance": True, "eps": 1e-5, "eps_mode": "inside_sqrt"}
    inner = shape[-len(axes) :]
    arrays = [normal(*shape), np.array(axes), normal(*inner), normal(1, *inner)]
    scale, shift = Post("Multiply-1", {}, 2), Post("Add-1", {}, 3)
    check("MVN-6", attrs, arrays[:2], [1])
    check("MVN-6", attrs, arrays, [1, 2, 3], posts=[scale, shift])
    check("MVN-6", attrs, arrays[:3], [1, 2], posts=[scale])
    check("MVN-6", attrs, [*arrays[:2], arrays[3]], [1, 2], posts=[Post("Add-1", {}, 2)])
    assert refused("MVN-6", attrs, arrays, [1, 2, 3], posts=[shift, scale])
    assert refused("MVN-6", attrs | {"eps_mode": "outside_sqrt"}, arrays[:2], [1])
    assert refused("MVN-6", attrs, [arrays[0], np.array([0])], [1])


@pytest.mark.parametrize("order", [[0, 3, 1, 2], [0, 2, 3, 1], [3, 2, 1, 0], []])
def test_transposed_copies(order: list[int]) -> None:
    check("Transpose-1", {}, [normal(2, 5, 7, 9), np.array(order, np.int64)], [1])


def test_copies_of_views() -> None:
    view = normal(2, 7, 3, 8).transpose(0, 2, 1, 3)
    check("Reshape-1", {"special_zero": True}, [view, np.array([0, 0, -1])], [1])
    check("Unsqueeze-1", {}, [view, np.array([0])], [1])
    assert refused("Reshape-1", {"special_zero": True}, [normal(2, 3), np.array([6])], [1])


def test_many_short_rows_with_constants_are_left_to_who_makes_long_ones_of_them() -> None:
    engine = onednn.load(2, compiling=True)
    assert engine is not None
    pixels, few = np.zeros((1, 224, 224, 3), np.float32), np.zeros((1, 24, 24, 3), np.float32)
    colours, channels = np.ones(3, np.float32), np.ones((224, 1, 1), np.float32)
    for data, factors, constant, taken in (
        (pixels, colours, True, False),
        (pixels, colours, False, True),
        (few, colours, True, True),
        (pixels, channels, True, True),
    ):
        work = work_of("Multiply-1", {}, [data, factors], [data], [1] if constant else [])
        assert (engine.compile(work) is not None) == taken
    scalar = np.ones((), np.float32)
    assert not is_of_short_rows(work_of("Multiply-1", {}, [scalar, scalar], [scalar], [1]))
