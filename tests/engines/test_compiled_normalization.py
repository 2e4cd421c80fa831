"""Normalization by groups, and along the last axes, by compiled loops against the plain kernels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from engines.onednn_works import placed, room
from engines.strided import Draw, assert_equal, case_of, work_on
from engines.strided import computed as computed_on_views
from engines.works import plain, posted, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the loops")

from irrun.engines.compiled import bf16, normalization
from irrun.engines.compiled.engine import LEAST, CompiledEngine
from irrun.engines.compiled.normalization import COMPILERS
from irrun.engines.compiled.team import Team
from irrun.engines.work import Compiled, Operand, Post, Work

TEAMS = [Team(count) for count in (1, 2, 3)]
GROUPS, MVN = "GroupNormalization-12", {"normalize_variance": True, "eps": 1e-5, "eps_mode": "inside_sqrt"}
NUMPY = {"auto_broadcast": "numpy"}
BF16 = ml_dtypes.bfloat16
DENSE, LAST = "dense", "channels last"

rng = np.random.default_rng(0)


@pytest.fixture(params=["shared", "alone"])
def _sharing(request: Any, monkeypatch: Any) -> None:
    """Threads share works however small they are, or none."""
    monkeypatch.setattr(normalization, "SHARED_NANOSECONDS", 0 if request.param == "shared" else 1e18)


def numbers(*shape: int, lies: str = DENSE, mean: float = 1.0) -> Any:
    array = (rng.standard_normal(shape) * 2 + mean).astype(np.float32)
    return laid(array) if lies == LAST else array


def laid(array: Any) -> Any:
    """An array with the channels last in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


def made(
    name: str, attrs: dict[str, Any], arrays: Sequence[Any], posts: Sequence[Post] = (), team: Team = TEAMS[1]
) -> tuple[Work, Compiled | None]:
    constant = (1,) if name == "MVN-6" else ()
    work = work_of(name, attrs, arrays, [(arrays[0].shape, "f32")], posts, constant)
    return work, COMPILERS[name](work, team)


def computed(compiled: Compiled, work: Work, arrays: Sequence[Any]) -> Any:
    """The output after two calls that must agree."""
    output = placed(work.outputs[0].shape, compiled.gives.get(0), work.outputs[0].type)
    call = compiled.bind(arrays, [output], room(compiled.scratch) if compiled.scratch else None)
    call()
    first = output.copy()
    output.fill(99)
    call()
    np.testing.assert_array_equal(output.astype(np.float32), first.astype(np.float32))
    return output


def check(name: str, attrs: dict[str, Any], *arrays: Any, posts: Sequence[Post] = ()) -> None:
    """All teams compute the same, which is what the kernels compute: in f64 where there are no posts."""
    own = min((post.operand for post in posts if post.operand is not None), default=len(arrays))
    with np.errstate(all="ignore"):
        wide = [array.astype(np.float64) if array.dtype == np.float32 else array for array in arrays[:own]]
        narrow = posts or any(not np.abs(array).max() < 1e18 for array in arrays[:own])  # which f32 cannot square
        expected = plain(name, attrs, arrays[:own] if narrow else wide)
        expected = posted(posts, expected, arrays)
    outputs = []
    for team in TEAMS:
        work, compiled = made(name, attrs, arrays, posts, team)
        assert compiled is not None
        outputs.append(computed(compiled, work, arrays))
        np.testing.assert_array_equal(outputs[-1], outputs[0])
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=1e-30)
    np.testing.assert_allclose(outputs[0], expected, rtol=1e-6, atol=(2e-6 if posts else 1e-6) * scale)


SHAPES = [
    ((1, 8), 2),
    ((3, 8), 8),
    ((2, 70), 2),
    ((1, 1), 1),
    ((2, 12, 3), 4),
    ((1, 4, 5, 7), 2),
    ((2, 6, 16), 3),
    ((5, 34, 31), 17),
    ((1, 21, 1, 1), 3),
    ((3, 64, 4, 4), 1),
    ((2, 6, 3, 4, 5), 6),
    ((1, 1, 30_001), 1),
    ((2, 3, 40, 401), 1),
    ((1, 32, 999), 1),
    ((1, 96, 32, 32), 32),
    ((3, 40, 33, 50), 20),
]


@pytest.mark.usefixtures("_sharing")
@pytest.mark.parametrize("lies", [DENSE, LAST])
@pytest.mark.parametrize(("shape", "groups"), SHAPES)
def test_groups_of_all_sizes(shape: tuple[int, ...], groups: int, lies: str) -> None:
    attrs = {"num_groups": groups, "epsilon": 1e-4}
    for mean in (0.0, 1e3, 1e5):
        tables = numbers(shape[1]), numbers(shape[1])
        check(GROUPS, attrs, numbers(*shape, lies=lies, mean=mean), *tables)


@pytest.mark.usefixtures("_sharing")
@pytest.mark.parametrize("lies", [DENSE, LAST])
def test_many_elements_keep_their_digits(lies: str) -> None:
    attrs = {"num_groups": 1, "epsilon": 1e-6}
    data = numbers(1, 3, 90_001, lies=lies, mean=1e4)
    data[0, :, 0] = 1e5, -1e5, 0  # what sums are made around is far from the others
    check(GROUPS, attrs, data, numbers(3), numbers(3))


@pytest.mark.parametrize("lies", [DENSE, LAST])
def test_alike_elements(lies: str) -> None:
    data = np.full((2, 20, 33), 0.1, np.float32)
    check(GROUPS, {"num_groups": 4, "epsilon": 1e-5}, laid(data) if lies == LAST else data, numbers(20), numbers(20))


POSTS = [
    *(Post(name, {}) for name in ("ReLU-1", "Sigmoid-1", "Tanh-1", "Swish-4", "Gelu-2")),
    *(Post("Gelu-7", {"approximation_mode": mode}) for mode in ("erf", "tanh")),
]


@pytest.mark.usefixtures("_sharing")
@pytest.mark.parametrize("lies", [DENSE, LAST])
@pytest.mark.parametrize("shape", [(2, 24, 5, 7), (2, 6, 100), (3, 42), (1, 3, 50)])
def test_posts(shape: tuple[int, ...], lies: str) -> None:
    attrs = {"num_groups": shape[1] // 3, "epsilon": 1e-4}
    first = numbers(*shape, lies=lies), numbers(shape[1]), numbers(shape[1])
    for post in POSTS:
        check(GROUPS, attrs, *first, posts=[post])
    ones = [1] * (len(shape) - 2)
    for other in (shape, (1, shape[1], *ones), (shape[0], shape[1], *ones), (1, *shape[1:]), (), shape[2:]):
        operand, factor = np.asarray(numbers(*other)), numbers(*shape, lies=lies)
        operand = laid(operand) if lies == LAST and len(other) == len(shape) else operand
        posts = [Post("Add-1", NUMPY, 3), Post("Swish-4", {}), Post("Multiply-1", NUMPY, 4, reflected=True)]
        check(GROUPS, attrs, *first, operand, factor, posts=posts)
    check(GROUPS, attrs, *first, factor, posts=[Post("Subtract-1", NUMPY, 3)])


@pytest.mark.usefixtures("_sharing")
@pytest.mark.parametrize("lies", [DENSE, LAST])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, -3e38, 1e25])
def test_numbers_that_are_not_finite_or_large(value: float, lies: str) -> None:
    attrs = {"num_groups": 2, "epsilon": 1e-5}
    tables = numbers(10), numbers(10)
    for place in (0, 1, 7, 36):
        data = numbers(2, 10, 300, lies=lies)
        data[1, 7, place] = value
        check(GROUPS, attrs, data, *tables)
        if lies == DENSE:
            check("MVN-6", MVN | {"normalize_variance": False}, data, np.array([2]))
        else:
            check("MVN-6", MVN | {"normalize_variance": False}, data.reshape(2, 10, 20, 15), np.array([2, 3]))
    for table in (0, 1):
        tables[table][4] = value
        check(GROUPS, attrs, numbers(2, 10, 300, lies=lies), *tables)
        tables[table][4] = 1


MODES = [{}, {"eps_mode": "outside_sqrt"}, {"normalize_variance": False}]


@pytest.mark.usefixtures("_sharing")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("lies", [DENSE, LAST])
def test_mean_and_variance(mode: dict[str, Any], lies: str) -> None:
    for shape in ((2, 3, 40, 50), (3, 33, 20, 1), (1, 5, 7, 2, 2)):
        data = numbers(*shape, lies=lies, mean=300)
        check("MVN-6", MVN | mode, data, np.arange(1, len(shape)))
        check("MVN-6", MVN | mode, data, np.arange(2, len(shape)) - len(shape))
        attrs = {"normalize_variance": not mode, "eps": 1e-9, "reduction_axes": ()}
        check("MVN-1", attrs | {"across_channels": True}, data)
        check("MVN-1", attrs | {"across_channels": None, "reduction_axes": tuple(range(2, len(shape)))}, data)
        factor, added = numbers(1, shape[1], *[1] * (len(shape) - 2)), numbers(*shape, lies=lies)
        posts = [Post("Multiply-1", NUMPY, 2), Post("Add-1", NUMPY, 3)]
        check("MVN-6", MVN | mode, data, np.arange(2, len(shape)), factor, added, posts=posts)
    check("MVN-6", MVN | mode, numbers(7, 90), np.array([1]), numbers(90), posts=[Post("Add-1", NUMPY, 2)])
    check("MVN-6", MVN | mode, numbers(90), np.array([0]))
    check("MVN-6", MVN | mode, numbers(2, 30, 90, mean=300), np.array([1, 2]))


@pytest.mark.usefixtures("_sharing")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(2, 24, 7, 5), (1, 3, 90, 2), (3, 130, 11), (1, 17, 2, 3, 4)], ids=str)
def test_channels_that_lie_last(shape: tuple[int, ...], mode: dict[str, Any]) -> None:
    data, axes, ones = numbers(*shape, lies=LAST, mean=300), np.array([1]), [1] * (len(shape) - 2)
    check("MVN-6", MVN | mode, data, axes)
    check("MVN-1", {"normalize_variance": not mode, "eps": 1e-9, "reduction_axes": (1,)}, data)
    factor, added, other = numbers(shape[1], *ones), numbers(1, shape[1], *ones), numbers(*shape, lies=LAST)
    posts = [Post("Multiply-1", NUMPY, 2), Post("Add-1", NUMPY, 3), Post("Add-1", NUMPY, 4), Post("ReLU-1", {})]
    check("MVN-6", MVN | mode, data, axes, factor, added, other, posts=posts)
    _, compiled = made("MVN-6", MVN, [data, axes])
    assert compiled is not None
    assert compiled.gives[0].strides == data.strides


@pytest.mark.usefixtures("_sharing")
@pytest.mark.parametrize("shape", [(1, 1, 768), (5,), (3, 1), (3, 4, 7), (2, 300, 33), (1, 70_001)])
def test_roots_of_means_of_squares(shape: tuple[int, ...]) -> None:
    name, attrs = "RootMeanSquare-0", {"eps": 1e-6}
    for mean in (0.0, 1e3, 1e10):
        check(name, attrs, numbers(*shape, mean=mean))
    check(name, attrs, numbers(*shape), numbers(shape[-1]), posts=[Post("Multiply-1", NUMPY, 1)])
    check(name, {"eps": 0.5}, numbers(*shape), numbers(*shape), posts=[Post("Add-1", NUMPY, 1), Post("ReLU-1", {})])
    for value in (np.nan, np.inf, 3e38, 1e-30):
        data = numbers(*shape)
        data.flat[-1] = value
        check(name, attrs, data)


def test_results_lie_as_the_data_do() -> None:
    data, tables = numbers(2, 20, 6, 7, lies=LAST), (numbers(20), numbers(20))
    _, compiled = made(GROUPS, {"num_groups": 4, "epsilon": 1e-5}, [data, *tables])
    assert compiled is not None
    assert compiled.gives[0].strides == data.strides
    assert compiled.gives[0].nbytes == data.nbytes


def test_what_is_left_to_others() -> None:
    attrs, data, table = {"num_groups": 1, "epsilon": 1e-3}, numbers(2, 4, 6, 5), numbers(4)
    assert made(GROUPS, attrs, [data, table, table])[1] is not None
    assert made(GROUPS, attrs, [data.transpose(0, 1, 3, 2), table, table])[1] is None
    assert made(GROUPS, attrs, [data, numbers(8)[::2], table])[1] is None
    assert made(GROUPS, attrs, [data, table, table], [Post("Sin-1", {})])[1] is None
    assert made(GROUPS, attrs, [data, table, table, data], [Post("Divide-1", NUMPY, 3, reflected=True)])[1] is None
    assert made(GROUPS, attrs, [data, table, table, data], [Post("Add-1", {"auto_broadcast": "pdpd"}, 3)])[1] is None
    assert made(GROUPS, attrs, [data.astype(np.float16), table, table])[1] is None
    assert made(GROUPS, attrs, [data, table.astype(np.float16), table])[1] is None
    assert made("MVN-6", MVN, [data, np.array([1])])[1] is None
    assert made("MVN-6", MVN, [laid(data), np.array([3])])[1] is None
    tokens = laid(numbers(2, 30, 20))
    assert made("MVN-6", MVN, [tokens, np.array([2])])[1] is None
    assert made("MVN-6", MVN, [tokens, np.array([1, 2])])[1] is None
    work = work_of("MVN-6", MVN, [data, np.array([3])], [(data.shape, "f32")])
    assert COMPILERS["MVN-6"](work, TEAMS[1]) is None


@pytest.mark.parametrize("name", sorted(COMPILERS))
def test_random_views(name: str) -> None:
    engine, count = CompiledEngine(2), 0
    engine._threads()
    for seed in range(60):
        draw = Draw(seed)
        work, arrays, expected = work_on(draw, case_of(draw, name), engine)
        compiled = engine.compile(work)
        if compiled is not None:
            count += 1
            assert_equal(computed_on_views(engine, work, compiled, arrays), expected)
    assert count > 0


def test_small_works_are_no_reason_to_load_what_compiles() -> None:
    engine = CompiledEngine(2)
    for points, taken in ((LEAST[GROUPS] // 64 - 1, False), (LEAST[GROUPS] // 64, True), (1, True)):
        data = numbers(1, 64, points)
        work, _ = made(GROUPS, {"num_groups": 4, "epsilon": 1e-5}, [data, numbers(64), numbers(64)])
        assert (engine.compile(work) is not None) == taken, prod(data.shape)


@pytest.mark.skipif(not bf16.is_made(), reason="the processor makes no bf16")
@pytest.mark.usefixtures("_sharing")
@pytest.mark.parametrize("lies", [DENSE, LAST])
@pytest.mark.parametrize(("shape", "groups"), SHAPES)
@pytest.mark.parametrize("name", [GROUPS, "MVN-6", "RootMeanSquare-0"])
def test_results_of_bf16_are_those_of_f32_rounded(name: str, shape: tuple[int, ...], groups: int, lies: str) -> None:
    data = numbers(*shape, lies=lies if name == GROUPS or (name == "MVN-6" and len(shape) > 3) else DENSE)
    data[0, 0] = np.nan
    if name == GROUPS:
        attrs, others = {"num_groups": groups, "epsilon": 1e-4}, [numbers(shape[1]), numbers(shape[1])]
    elif name == "MVN-6":
        attrs, others = {**MVN, "eps_mode": "outside_sqrt"}, [np.arange(2 if data.ndim > 2 else 1, data.ndim)]
    else:
        attrs, others = {"eps": 1e-6}, []
    arrays = [data, *others, numbers(*shape[1:])]
    product = Post("Multiply-1", NUMPY, len(others) + 1)
    expected, (work, compiled) = [], made(name, attrs, arrays, [product])
    if compiled is not None:
        expected = [computed(compiled, work, arrays).astype(BF16)]
    work.posts.append(Post("Convert-1", {"destination_type": "bf16"}))
    work.outputs = [Operand("bf16", shape, np.empty(shape, BF16).strides)]
    for team in TEAMS:
        narrow = COMPILERS[name](work, team)
        assert (narrow is None) == (compiled is None)
        if narrow is not None:
            found = computed(narrow, work, arrays)
            np.testing.assert_array_equal(found.astype(np.float32), expected[0].astype(np.float32))
