"""Products of few rows with constant weights, held against the op's kernel."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from engines.works import computed, plain, posted, work_of

pytest.importorskip("llvmlite", reason="llvmlite compiles the kernels")

from irrun.engines import onednn
from irrun.engines.compiled import panels
from irrun.engines.compiled.engine import CompiledEngine
from irrun.engines.compiled.panel_kernel import PART, at_once
from irrun.engines.rows import FEW_ROWS, LEAST_COLUMNS, LEAST_WEIGHTS, MOST_OF_ONE, MOST_WEIGHTS
from irrun.engines.work import Post

NUMPY = {"auto_broadcast": "numpy"}
PLAIN = {"transpose_a": False, "transpose_b": True}
ACTIVATIONS = [
    *(Post(f"{name}", {}) for name in ("ReLU-1", "Sigmoid-1", "Tanh-1", "Swish-4", "Gelu-2")),
    *(Post("Gelu-7", {"approximation_mode": mode}) for mode in ("erf", "tanh")),
]


def parallel(address: int, argument: int) -> None:
    """What has threads call a function, for tests on machines without OpenMP: the one that calls does."""
    CompiledEngine(1)._threads().run(address, argument, shared=False)


ENGINE = CompiledEngine(2, parallel)


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng((seed, *shape)).normal(size=shape).astype(np.float32)


def product(arrays: list[Any], attrs: dict[str, Any] = PLAIN, posts: Any = (), engine: Any = ENGINE) -> Any:
    """The work on arrays of which the second is constant, what comes of it, and what its kernels give."""
    expected = posted(posts, plain("MatMul-1", attrs, arrays[:2]), arrays)
    work = work_of("MatMul-1", attrs, arrays, [(expected.shape, "f32")], posts, constant=(1,))
    return work, engine.compile(work), expected


def check(arrays: list[Any], attrs: dict[str, Any] = PLAIN, posts: Any = (), engine: Any = ENGINE) -> None:
    work, found, expected = product(arrays, attrs, posts, engine)
    assert found is not None
    assert found.taken == {1}
    given = [arrays[0], None, *arrays[2:]]
    (output,) = computed(found, work, given)
    # a function may be steep: what is off is measured before it
    scale = max(np.abs(plain("MatMul-1", attrs, arrays[:2])).max(), 1) * max(
        [np.abs(array).max(initial=1) for array in arrays[2:]], default=1
    )
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=2e-6 * scale**2)


def test_numbers_of_a_small_product():
    weights = np.zeros((16, 256), np.float32)
    weights[:, 0], weights[:, 255] = np.arange(16), 1
    data = np.zeros((2, 256), np.float32)
    data[0, 0], data[1, 255] = 2, 3
    work, found, _ = product([data, weights])
    (output,) = computed(found, work, [data, None])
    assert output.tolist() == [[2.0 * n for n in range(16)], [3.0] * 16]


@pytest.mark.parametrize("rows", FEW_ROWS)
def test_numbers_of_rows(rows):
    check([numbers(rows, 130), numbers(40, 130)])


@pytest.mark.parametrize("columns", [8, 15, 16, 17, 31, 33, 64, 100])
def test_columns_that_are_no_whole_panels(columns):
    inner = -(-LEAST_WEIGHTS // columns)
    for rows in (1, 2, at_once(), at_once() + 1):
        check([numbers(rows, inner), numbers(columns, inner)])


@pytest.mark.parametrize("inner", [1, 2, 3, 5, PART - 1, PART, PART + 1, 2 * PART + 3])
def test_terms_that_are_no_whole_parts(inner):
    columns = max(-(-LEAST_WEIGHTS // inner), 16)
    for rows in (1, 2, 5):
        check([numbers(rows, inner), numbers(columns, inner)])


def test_matrices_however_they_lie():
    rows, columns, inner = 5, 40, 120
    for transpose_a in (False, True):
        for transpose_b in (False, True):
            attrs = {"transpose_a": transpose_a, "transpose_b": transpose_b}
            data = numbers(*((inner, rows) if transpose_a else (rows, inner)))
            weights = numbers(*((columns, inner) if transpose_b else (inner, columns)))
            check([data, weights], attrs)
            check([np.ascontiguousarray(data.T).T, np.ascontiguousarray(weights.T).T], attrs)
    check([numbers(3, 2, inner), numbers(1, columns, inner)])
    check([numbers(inner), numbers(64, inner)])
    wide = numbers(rows, 2 * inner)
    check([wide[:, ::2], numbers(columns, inner)])
    check([np.broadcast_to(numbers(1, inner), (4, inner)), numbers(columns, inner)])


def test_weights_that_threads_lay_out_before_a_call_is_bound():
    """Once for all works that read them."""
    arrays = [numbers(4, 64), numbers(96, 64)]
    calls = [call for _ in range(2) for call in product(arrays)[1].pending()]
    assert len(dict.fromkeys(calls)) == 1
    work, found, expected = product(arrays)
    ENGINE.together([*dict.fromkeys(calls)])
    assert found.pending() == []
    (output,) = computed(found, work, [arrays[0], None])
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("post", ACTIVATIONS, ids=lambda post: f"{post.name}{''.join(post.attrs.values())}")
def test_functions_behind_a_product(post):
    for rows, columns in ((1, 40), (3, 37), (7, 64)):
        check([numbers(rows, 128), numbers(columns, 128)], posts=[post])


@pytest.mark.parametrize("post", ACTIVATIONS, ids=lambda post: f"{post.name}{''.join(post.attrs.values())}")
def test_functions_of_all_numbers(post):
    own = [0.0, 1e-40, 1e-20, 1e-7, 1e-3, 0.3, 0.62, 0.63, 1, 2, 3, 5, 8, 9.5, 17, 40, 87, 88.5, 104, 1e4, 3e38]
    values = np.array([*own, *(-value for value in own), np.inf, np.nan], np.float32)
    data, weights = np.zeros((2, 128), np.float32), np.zeros((len(values), 128), np.float32)
    arrays = [data, weights, np.stack([values, values[::-1]])]
    posts = [Post("Add-1", NUMPY, 2), post]
    work, found, expected = product(arrays, posts=posts)
    (output,) = computed(found, work, [data, None, arrays[2]])
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=2e-7)


def test_the_least_number_of_all():
    """Where functions go to 0 or a limit, kernels may say NaN, too: 0 times infinity."""
    data, weights = np.zeros((1, 256), np.float32), np.zeros((16, 256), np.float32)
    arrays = [data, weights, np.full(16, -np.inf, np.float32)]
    for post in ACTIVATIONS:
        posts = [Post("Add-1", NUMPY, 2), post]
        work, found, expected = product(arrays, posts=posts)
        (output,) = computed(found, work, [data, None, arrays[2]])
        np.testing.assert_array_equal(output, expected, post.name)


@pytest.mark.parametrize("name", ["Add-1", "Multiply-1", "Subtract-1"])
def test_operands_however_they_lie(name):
    data, weights = numbers(2, 3, 100), numbers(50, 100)
    whole = numbers(2, 3, 50, seed=1)
    operands = [
        *(whole, whole[..., :1], whole[0, 0], whole[:1, :1, :1], np.array(2.5, np.float32)),
        *(whole[..., ::-1], whole[::-1, ::-1], np.broadcast_to(whole[:1, :1], (2, 3, 50))),
    ]
    for operand in operands:
        for reflected in (False, True):
            check([data, weights, operand], posts=[Post(name, NUMPY, 2, reflected)])
    for operand in (whole[:1], whole[:, :1], np.ascontiguousarray(whole.T).T):  # which are not seen as rows
        assert product([data, weights, operand], posts=[Post(name, NUMPY, 2)])[1] is None


def test_posts_in_any_order():
    rng = np.random.default_rng(5)
    for trial in range(30):
        rows, columns = int(rng.integers(1, 13)), int(rng.integers(16, 70))
        arrays, posts = [numbers(rows, 300, seed=trial), numbers(columns, 300, seed=trial) * np.float32(0.05)], []
        for _ in range(rng.integers(1, 6)):
            if rng.integers(2):
                posts.append(ACTIVATIONS[rng.integers(len(ACTIVATIONS))])
            else:
                shape = ((columns,), (rows, 1), (rows, columns), ())[rng.integers(4)]
                name = ("Add-1", "Multiply-1", "Subtract-1", "Maximum-1", "Divide-1")[rng.integers(5)]
                arrays.append(np.asarray(1 + np.abs(rng.normal(size=shape)), np.float32))
                posts.append(Post(name, NUMPY, len(arrays) - 1))
        check(arrays, posts=posts)


def test_constants_at_any_address():
    def odd(array: Any) -> Any:
        memory = np.zeros(array.nbytes + 1, np.uint8)
        memory[1:] = array.reshape(-1).view(np.uint8)
        return memory[1:].view(np.float32).reshape(array.shape)

    assert ENGINE.unaligned("MatMul-1")
    posts = [Post("Add-1", NUMPY, 2), Post("ReLU-1", {}), Post("Multiply-1", NUMPY, 3)]
    for columns in (50, 64):
        weights, bias, factor = (odd(numbers(*shape)) for shape in ((columns, 100), (columns,), ()))
        assert not weights.flags.aligned
        check([numbers(5, 100), weights, bias, factor], posts=posts)


def test_what_is_not_finite_stays_where_it_is():
    data, weights = numbers(3, 100), numbers(50, 100)
    for value in (np.nan, np.inf, -np.inf):
        data[1, 7] = value
        work, found, expected = product([data, weights], posts=[Post("ReLU-1", {})])
        (output,) = computed(found, work, [data, None])
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)


def test_a_shared_product(monkeypatch):
    asked = []

    def counted(address: int, argument: int) -> None:
        asked.append(argument)
        parallel(address, argument)

    engine = CompiledEngine(3, counted)
    check([numbers(4, 100), numbers(50, 100)], engine=engine)
    assert not asked, "one thread is through sooner"
    monkeypatch.setattr(panels, "SHARED_SECONDS", 0)
    for columns in (50, 300, 1000):
        check([numbers(4, 100), numbers(columns, 100)], engine=engine)
    assert asked
    if (other := onednn.load(2)) is not None:  # OpenMP's threads
        engine = CompiledEngine(2, other.parallel)
        for columns in (50, 300, 1000):
            check([numbers(4, 100), numbers(columns, 100)], engine=engine)


def test_weights_are_laid_out_once_for_all_rows():
    weights = numbers(50, 100)
    works = [product([numbers(rows, 100), weights])[:2] for rows in (2, 3)]
    for work, found in works:
        computed(found, work, [numbers(work.inputs[0].shape[0], 100), None])
    assert len([own for own in panels._panels.values() if own._value is weights]) == 1
    data = numbers(2, 100)
    found = works[0][1].again(work_of("MatMul-1", PLAIN, [data, -weights], [((2, 50), "f32")], constant=(1,)))
    (output,) = computed(found, works[0][0], [data, None])
    np.testing.assert_allclose(output, -data @ weights.T, rtol=1e-5, atol=1e-5)
    before = len(panels._panels)
    del works, found, work, output
    gc.collect()
    assert len(panels._panels) < before, "nobody keeps weights that no work reads"


def test_what_is_left_to_others():
    def taken(data: Any, weights: Any, *more: Any, posts: Any = (), engine: Any = ENGINE) -> bool:
        return product([data, weights, *more], PLAIN, posts, engine)[1] is not None

    weights = numbers(64, 64)
    assert taken(numbers(2, 64), weights)
    assert not taken(numbers(2, 64), weights, engine=CompiledEngine(2)), "others are as quick"
    assert not taken(numbers(FEW_ROWS[-1] + 1, 64), weights)
    assert not taken(numbers(2, 64), numbers(LEAST_WEIGHTS // 64 - 1, 64))
    assert not taken(numbers(2, 4096), numbers(LEAST_COLUMNS - 1, 4096))
    for rows, most in ((1, MOST_OF_ONE // 64), (2, MOST_WEIGHTS // 64)):
        assert taken(numbers(rows, most), numbers(64, most))
        assert not taken(numbers(rows, most + 1), numbers(64, most + 1))
    assert not taken(numbers(3, 2, 64), numbers(3, 64, 64))
    assert not taken(numbers(2, 64), weights.astype(np.float64))
    posts = [Post("Add-1", {"auto_broadcast": "pdpd"}, 2)]
    assert not taken(numbers(2, 64), weights, numbers(2, 64), posts=posts)
    varying = work_of("MatMul-1", PLAIN, [numbers(2, 64), weights], [((2, 64), "f32")])
    assert ENGINE.compile(varying) is None
    slow = work_of("MatMul-1", PLAIN, [numbers(16, 64), numbers(4096, 64)], [((16, 4096), "f32")], constant=(1,))
    assert ENGINE.compile(slow) is not None
    slow.posts += [Post("Cos-1", {}), Post("Sin-1", {})]
    assert ENGINE.compile(slow) is None, "numpy's threads share it"


@pytest.mark.skipif(onednn.load(1) is None, reason="oneDNN is not installed")
def test_one_engine_takes_them():
    weights = numbers(64, 64)
    work = work_of("MatMul-1", PLAIN, [numbers(2, 64), weights], [((2, 64), "f32")], constant=(1,))
    rows = FEW_ROWS[-1] + 1
    many = work_of("MatMul-1", PLAIN, [numbers(rows, 64), weights], [((rows, 64), "f32")], constant=(1,))
    for once in (False, True):
        for compiling in (False, True):
            engine = onednn.load(2, once=once, compiling=compiling)
            assert engine is not None
            assert (engine.compile(work) is not None) == engine.alone
            assert engine.compile(many) is not None
            other = CompiledEngine(2, None if engine.alone else engine.parallel)
            assert (other.compile(work) is not None) == (not engine.alone)
            assert engine.alone or (compiling and not once)


@pytest.mark.skipif(onednn.load(1) is None, reason="oneDNN is not installed")
@pytest.mark.parametrize("fixed", [False, True])
def test_weights_that_onednn_goes_over_as_quickly_are_not_laid_out_once_more(fixed):
    """Where sizes change neither are those that it is slower with: to lay them out takes as long as many runs."""
    engine = onednn.load(2, compiling=True, fixed=fixed)
    assert engine is not None
    weights = numbers(512, 512)
    for rows, left in ((4, True), (11, True), (12, False), (24, False)):
        for shape in ((rows, 512), (1, rows, 512)):
            work = work_of("MatMul-1", PLAIN, [numbers(*shape), weights], [(shape, "f32")], constant=(1,))
            assert (engine.compile(work) is None) == (left or (fixed and not engine.wide))


def test_an_output_beside_others_is_not_written_over():
    memory = np.full((5, 37), 7, np.float32)
    work = work_of("MatMul-1", PLAIN, [numbers(3, 128), numbers(37, 128)], [((3, 37), "f32")], constant=(1,))
    found = ENGINE.compile(work)
    assert found is not None
    found.bind([numbers(3, 128), None], [memory[1:4]], None)()
    assert (memory[[0, 4]] == 7).all()
    np.testing.assert_allclose(memory[1:4], numbers(3, 128) @ numbers(37, 128).T, rtol=1e-5, atol=1e-5)


def opened(arrays: list[Any], attrs: dict[str, Any] = PLAIN, posts: Any = (), engine: Any = ENGINE) -> Any:
    """What a call for any number of rows gives for arrays of which the second is constant; None without one, or where
    it leaves them to others."""
    work = work_of("MatMul-1", attrs, arrays, [((1,) * arrays[0].ndim, "f32")], posts, constant=(1,))
    for operand in (work.inputs[0], *work.outputs):
        assert operand is not None
        operand.shape, operand.strides = (-1,) * len(operand.shape), ()
    call = engine.open(work)
    found = None if call is None else call(arrays)
    return None if found is None else found[0]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("ahead", [(1,), (2, 3), (25,), (7, 30), (600,)])
def test_any_number_of_rows(ahead: tuple[int, ...], turned: bool) -> None:
    rows, weights = numbers(*ahead, 70), numbers(90, 70) if turned else numbers(70, 90)
    posts = [Post("Add-1", NUMPY, 2), Post("Swish-4", {}), Post("Multiply-1", NUMPY, 3), Post("Add-1", NUMPY, 4)]
    others = [numbers(90, seed=1), numbers(*ahead, 1, seed=2), numbers(*ahead, 90, seed=3)]
    attrs = {"transpose_a": False, "transpose_b": turned}
    for count in (0, 1, 2, 4):
        arrays = [rows, weights, *others[: count - (count > 1)]]
        expected = posted(posts[:count], plain("MatMul-1", attrs, arrays[:2]), arrays)
        for _ in range(2):
            found = opened(arrays, attrs, posts[:count])
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, 1e-5, 1e-3)


def test_one_call_for_more_shapes_than_it_knows_at_once(monkeypatch: Any) -> None:
    monkeypatch.setattr(panels, "MAX_KNOWN", 2)
    weights = numbers(90, 70)
    work = work_of("MatMul-1", PLAIN, [numbers(1, 70), weights], [((1, 90), "f32")], constant=(1,))
    for operand in (work.inputs[0], *work.outputs):
        assert operand is not None
        operand.shape = (-1, -1)
    call = ENGINE.open(work)
    assert call is not None
    for count in (1, 5, 1, 9, 30, 5, 1, 9):
        rows = numbers(count, 70, seed=count)
        (found,) = call([rows, weights])
        np.testing.assert_allclose(found, rows @ weights.T, 1e-5, 1e-3)


@pytest.mark.parametrize(
    ("rows", "weights", "operand"),
    [
        ((0, 70), (90, 70), None),
        ((5, 71), (90, 70), None),
        ((70,), (90, 70), None),
        ((5, 70), (1, 90, 70), None),
        ((5, 70), (4, 2000), None),
        ((5, 70), (8, 70), None),
        ((1, 5, 700), (400, 700), None),
        ((1000, 70), (90, 70), None),
        ((5, 70), (90, 70), (2, 5, 90)),
        ((1, 70), (90, 70), (5, 90)),
        ((5, 70), (90, 70), (4, 90)),
    ],
)
def test_rows_that_a_call_for_any_number_leaves_to_others(rows: Any, weights: Any, operand: Any) -> None:
    arrays = [numbers(*rows), numbers(*weights)]
    posts = [] if operand is None else [Post("Add-1", NUMPY, 2)]
    assert opened([*arrays, *([] if operand is None else [numbers(*operand)])], posts=posts) is None


def test_works_without_a_call_for_any_number_of_rows() -> None:
    rows, weights = numbers(5, 70), numbers(90, 70)
    assert opened([rows.T.copy(), weights], PLAIN | {"transpose_a": True}) is None
    assert opened([np.repeat(rows, 2, axis=1)[:, ::2], weights]) is None
    assert opened([rows, weights], posts=[Post("Log-1", {})]) is None
    assert opened([rows, weights], engine=CompiledEngine(2)) is None
    assert opened([rows, weights], engine=CompiledEngine(2, parallel, once=True)) is None
    narrow = [numbers(5000, 8), numbers(512, 8)]  # whose result is that much larger
    assert opened(narrow) is None
