"""Matrix products and attention on oneDNN against the plain ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engines.onednn_works import (
    ENGINE,
    check,
    check_if_taken,
    computed,
    expected,
    needs_onednn,
    normal,
    prepared,
    refused,
    views,
    work_of,
)

from irrun.engines.memory import data_address
from irrun.engines.onednn import load as load_onednn
from irrun.engines.onednn.products import _apart, product_of
from irrun.engines.work import Post
from irrun.spec.op import Array

pytestmark = needs_onednn

PLAIN: dict[str, Any] = {"transpose_a": False, "transpose_b": False}
ADD = "Add-1"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((5, 7), (7, 9)),
        ((1, 64), (64, 33)),
        ((2, 3, 5, 7), (7, 9)),
        ((3, 5, 7), (3, 7, 9)),
        ((3, 5, 7), (1, 7, 9)),
        ((1, 5, 7), (3, 7, 9)),
        ((5, 7), (3, 7, 9)),
        ((2, 1, 5, 7), (3, 7, 9)),
        ((2, 1, 5, 7), (1, 3, 7, 9)),
        ((7,), (7, 9)),
        ((5, 7), (7,)),
        ((7,), (7,)),
        ((7,), (3, 7, 9)),
        ((2, 3, 5, 7), (7,)),
        ((4, 1, 7), (7, 1)),
        ((4, 5, 1), (1, 6)),
        ((2, 3, 1, 7), (2, 3, 7, 5)),
    ],
)
@pytest.mark.parametrize("constants", [[], [1]])
def test_product(left: tuple[int, ...], right: tuple[int, ...], constants: list[int]) -> None:
    check("MatMul-1", PLAIN, [normal(*left), normal(*right)], constants)


@pytest.mark.parametrize("constants", [[], [1]])
@pytest.mark.parametrize("a", [False, True])
@pytest.mark.parametrize("b", [False, True])
def test_transposed_product(constants: list[int], a: bool, b: bool) -> None:
    attrs = {"transpose_a": a, "transpose_b": b}
    left, right = normal(2, *((7, 5) if a else (5, 7))), normal(*((9, 7) if b else (7, 9)))
    check("MatMul-1", attrs, [left, right], constants)
    check("MatMul-1", attrs, [left, normal(2, *right.shape)], constants)


def test_views() -> None:
    heads = normal(2, 11, 3, 8).transpose(0, 2, 1, 3)
    check("MatMul-1", {"transpose_a": False, "transpose_b": True}, [heads, heads])
    check("MatMul-1", PLAIN, [normal(2, 3, 11, 11), heads])
    check("MatMul-1", PLAIN, [normal(20, 16)[::2, :7], normal(14, 9)[::2]], [1])
    check("MatMul-1", PLAIN, [normal(1, 16, 4, 4).transpose(0, 2, 3, 1), normal(16, 9)], [1])


@pytest.mark.parametrize("shape", [(), (9,), (1, 1, 9), (2, 5, 9), (1, 1, 1), (2, 1, 1), (1, 5, 1)], ids=str)
@pytest.mark.parametrize("constant", [False, True])
def test_bias_and_other_operands(shape: tuple[int, ...], constant: bool) -> None:
    arrays = [normal(2, 5, 7), normal(7, 9), np.asarray(normal(*shape), np.float32)]
    gelu = Post("Gelu-7", {"approximation_mode": "erf"})
    posts = [Post(ADD, {}, 2), gelu]
    if refused("MatMul-1", PLAIN, arrays, [1, 2] if constant else [1], posts):
        assert shape in ((1, 5, 1), (2, 1, 1))
    else:
        check("MatMul-1", PLAIN, arrays, [1, 2] if constant else [1], posts)


def test_scale_bias_and_residual() -> None:
    arrays = [normal(1, 70, 96), normal(384, 96), normal(1, 1, 384), normal(1, 384), normal(1, 70, 384)]
    posts = [Post("Multiply-1", {}, 2), Post(ADD, {}, 3, reflected=True), Post(ADD, {}, 4)]
    check("MatMul-1", {"transpose_a": False, "transpose_b": True}, arrays, [1, 2, 3], posts)


@pytest.mark.parametrize("sizes", [(130, 256, 512), (64, 96, 1024), (1, 96, 1024), (7, 33, 2048)], ids=str)
def test_every_call_gives_the_same_whether_weights_are_packed_yet_or_not(sizes: tuple[int, int, int]) -> None:
    rows, inner, columns = sizes
    arrays = [normal(rows, inner), normal(columns, inner)]
    attrs = {"transpose_a": False, "transpose_b": True}
    work = work_of("MatMul-1", attrs, arrays, expected("MatMul-1", attrs, arrays, []), [1])
    compiled = prepared(work)
    assert compiled is not None
    assert compiled.taken == {1}
    (first,) = computed(work, compiled, arrays, calls=1)
    (later,) = computed(work, compiled, arrays, calls=4)
    np.testing.assert_allclose(first, later, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(later, arrays[0] @ arrays[1].T, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 5, 128])
@pytest.mark.parametrize("transposed", [False, True])
def test_what_is_computed_once(rows: int, transposed: bool) -> None:
    engine = load_onednn(2, once=True)
    assert engine is not None
    arrays = [normal(rows, 96), normal(1024, 96) if transposed else normal(96, 1024)]
    attrs = {"transpose_a": False, "transpose_b": transposed}
    (wanted,) = expected("MatMul-1", attrs, arrays, [])
    compiled = engine.compile(work_of("MatMul-1", attrs, arrays, [wanted], [1]))
    assert compiled is not None
    for calls in (1, 3):  # as the body of a loop has it
        (found,) = computed(work_of("MatMul-1", attrs, arrays, [wanted], [1]), compiled, arrays, calls=calls)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("shape", [(96, 1024), (33, 384), (3, 96, 1024), (2, 3, 40, 1536)], ids=str)
def test_rows_of_whole_parts_of_pages(shape: tuple[int, ...]) -> None:
    check("MatMul-1", PLAIN, [normal(65, shape[-2]), normal(*shape)], [1])


def test_no_step_between_rows_is_a_whole_part_of_a_page() -> None:
    assert ENGINE is not None
    library = ENGINE._library
    found = _apart(library, library.dense((3, 8, 1024)))
    assert found is not None
    assert found.strides == (8 * 4160, 4160, 4)
    found = _apart(library, library.dense((8, 384)))
    assert found is not None
    assert found.strides == (1600, 4)
    assert _apart(library, library.dense((8, 1000))) is None
    turned = library.strided((8, 1024), (4, 32))
    assert turned is not None
    assert _apart(library, turned) is None


def test_products_that_are_not_taken() -> None:
    assert refused("MatMul-1", PLAIN, [normal(3, 4).astype(np.float64), normal(4, 5).astype(np.float64)])
    assert refused("MatMul-1", PLAIN, [normal(0, 4), normal(4, 5)])
    assert refused("MatMul-1", PLAIN, [np.broadcast_to(normal(4), (3, 4))[:, ::-1], normal(4, 5)])


def attend(arrays: list[Array | None], constants: list[int] | None = None, causal: bool = False) -> None:
    check("ScaledDotProductAttention-13", {"causal": causal}, arrays, constants or [])


def heads(batch: int, count: int, length: int, size: int, seed: int = 0) -> Array:
    return normal(batch, length, count, size, seed=seed).transpose(0, 2, 1, 3)


def test_heads_of_one_batch_are_multiplied_as_those_of_several() -> None:
    """oneDNN has slow ways for what it does not know, of which the first call takes 30 ms."""
    assert ENGINE is not None
    found = []
    for batch in (1, 2):
        query, key, value = (heads(batch, 3, 64, 32, seed) for seed in range(3))
        check("MatMul-1", {"transpose_a": False, "transpose_b": True}, [query, key])
        check("MatMul-1", PLAIN, [normal(batch, 3, 64, 64), value])
        for arrays in ([query, key], [normal(batch, 3, 64, 64), value]):
            attrs = PLAIN | {"transpose_b": arrays[1] is key}
            work = work_of("MatMul-1", attrs, arrays, expected("MatMul-1", attrs, arrays, []))
            product = product_of(ENGINE._library, work)
            assert product is not None
            found.append(product.primitive.implementation)
    assert found[:2] == found[2:]


@pytest.mark.skipif(ENGINE is None or not ENGINE.wide, reason="without AVX-512 all products are of that kind")
def test_one_run_does_not_wait_for_code_of_all_sizes() -> None:
    gaps = np.zeros((2, 5, 3, 64), np.float32)[..., :32].transpose(0, 2, 1, 3)
    work = work_of("MatMul-1", PLAIN, [gaps, normal(2, 3, 32, 7)], [normal(2, 3, 5, 7)])
    for once in (False, True):
        engine = load_onednn(1, once=once)
        assert engine is not None
        product = product_of(engine._library, work)
        assert product is None if once else product is not None
    work = work_of("MatMul-1", PLAIN, [normal(2, 3, 5, 32), normal(2, 3, 32, 7)], [normal(2, 3, 5, 7)])
    assert product_of(engine._library, work) is not None


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("mask", [None, (11, 13), (1, 1, 11, 13), (1, 1, 1, 13)], ids=str)
def test_attention(batch: int, mask: tuple[int, ...] | None) -> None:
    arrays: list[Array | None] = [heads(batch, 3, 11, 8), heads(batch, 3, 13, 8, 1), heads(batch, 3, 13, 16, 2)]
    attend(arrays)
    if mask is not None:
        attend([*arrays, normal(*mask)], [3])
        visible = normal(*mask) > -0.5
        visible[..., 0] = True
        attend([*arrays, visible], [3])
        if batch == 1 or mask[-2] == 1:
            attend([*arrays, normal(*mask)])
            attend([*arrays, visible])


def test_masks_of_a_batch_and_rows_that_see_nothing() -> None:
    arrays: list[Array | None] = [heads(2, 3, 11, 8), heads(2, 3, 13, 8, 1), heads(2, 3, 13, 16, 2)]
    visible = normal(2, 1, 11, 13) > 0
    visible[1, 0, 4] = False
    attend([*arrays, visible])
    attend([*arrays, visible], [3])
    attend([*arrays, normal(2, 1, 11, 13)])
    attend([*arrays, normal(2, 3, 11, 13)])


def test_causal_scaled_and_other_ranks() -> None:
    for batch in (1, 2):
        attend([heads(batch, 3, 11, 8), heads(batch, 3, 13, 8), heads(batch, 3, 13, 16)], causal=True)
    arrays: list[Array | None] = [normal(3, 11, 8), normal(3, 13, 8), normal(3, 13, 16), None]
    attend(arrays[:3])
    attend([*arrays, np.float32([0.3])], [4])
    attend([normal(1, 1, 1, 8), normal(1, 1, 13, 8), normal(1, 1, 13, 16)])


def test_more_scores_than_are_computed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for most, least in ((3000, 32), (1500, 2), (500, 32)):
        monkeypatch.setattr("irrun.engines.onednn.attention.MAX_SCORES", {"f32": most})
        monkeypatch.setattr("irrun.engines.onednn.attention.LEAST_ROWS", least)
        attend([heads(1, 5, 11, 8), heads(1, 5, 13, 8), heads(1, 5, 13, 8)])
        attend([heads(1, 5, 11, 8), heads(1, 5, 13, 8), heads(1, 5, 13, 8), normal(1, 1, 11, 13)])
        attend([heads(2, 5, 11, 8), heads(2, 5, 13, 8), heads(2, 5, 13, 8)])


def test_many_scores_of_a_head_are_left_to_others_where_some_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irrun.engines.onednn.attention.MAX_OF_A_HEAD", 200)
    arrays: list[Array | None] = [heads(1, 5, 11, 8), heads(1, 5, 13, 8), heads(1, 5, 13, 16)]
    attend(arrays)
    attend([*arrays, np.float32(0)], [3])
    assert refused("ScaledDotProductAttention-13", {"causal": True}, arrays)
    assert refused("ScaledDotProductAttention-13", {"causal": False}, [*arrays, normal(1, 1, 11, 13)])


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e38])
@pytest.mark.parametrize("name", [0, 1])
def test_what_a_causal_row_does_not_see_is_nothing_to_it(number: float, name: int) -> None:
    """Not even where its score is no number; where it is seen, the row is none."""
    for rows, keys in ((8, 9), (11, 5), (1, 4)):
        arrays: list[Array | None] = [heads(2, 3, rows, 16), heads(2, 3, keys, 16, 1), heads(2, 3, keys, 2, 2)]
        own = arrays[name] = arrays[name].copy()
        own[1, 0, own.shape[2] // 2, 3] = number
        attend(arrays, causal=True)


def test_attention_that_is_not_taken() -> None:
    arrays: list[Array | None] = [normal(1, 2, 3, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 4), None, np.float32(0.5)]
    assert refused("ScaledDotProductAttention-13", {"causal": False}, arrays)


def test_works_of_several_shapes_share_weights_laid_out_once() -> None:
    assert ENGINE is not None
    weights, made = normal(64, 48), []
    for _ in range(2):  # as the programs of two shapes have it
        arrays = [normal(5, 64), weights]
        work = work_of("MatMul-1", {}, arrays, [normal(5, 48)], [1])
        made.append(prepared(work))
        assert made[-1] is not None
        computed(work, made[-1], arrays)
    assert len([key for key in ENGINE._library.packed if key[0][0] == data_address(weights)]) == 1


def test_again_with_other_weights_and_once_more() -> None:
    data, found = normal(5, 64), None
    for _ in range(3):
        arrays = [data, normal(64, 48)]
        work = work_of("MatMul-1", {}, arrays, [normal(5, 48)], [1])
        found = prepared(work) if found is None else found.again and found.again(work)
        assert found is not None
        np.testing.assert_allclose(computed(work, found, arrays)[0], data @ arrays[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("constants", [[], [1], [1, 2]])
def test_weights_and_biases_that_are_views(number: int, constants: list[int]) -> None:
    for shape in ((16,), (5, 16), (1, 16)):
        check_if_taken(
            "MatMul-1", {}, [normal(5, 8), normal(8, 16), views(*shape)[number]], constants, [Post(ADD, {}, 2)]
        )
    check_if_taken("MatMul-1", {}, [normal(5, 8), views(8, 16)[number], normal(16)], constants, [Post(ADD, {}, 2)])
    check_if_taken("MatMul-1", {}, [views(5, 8)[number], normal(8, 16), normal(16)], constants, [Post(ADD, {}, 2)])


def test_a_bias_of_one_number_that_is_repeated() -> None:
    zeros, repeated = np.zeros((2, 3), np.float32), np.broadcast_to(np.float32([7]), (4,))
    work = work_of("MatMul-1", {}, [zeros, normal(3, 4), repeated], [np.empty((2, 4))], [1, 2], [Post(ADD, {}, 2)])
    compiled = prepared(work)
    if compiled is not None:
        (output,) = computed(work, compiled, [zeros, normal(3, 4), repeated])
        np.testing.assert_array_equal(output, np.full((2, 4), 7))


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("constants", [[], [3]])
@pytest.mark.parametrize("shape", [(2, 1, 7, 9), (1, 3, 7, 9), (7, 9), (2, 1, 1, 9)])
def test_masks_that_are_views(number: int, constants: list[int], shape: tuple[int, ...]) -> None:
    arrays: list[Array | None] = [heads(2, 3, 7, 4), heads(2, 3, 9, 4, seed=1), heads(2, 3, 9, 4, seed=2)]
    for mask in (views(*shape)[number], views(*shape)[number] > 0):
        if constants:
            attend([*arrays, mask], constants)
        check_if_taken("ScaledDotProductAttention-13", {"causal": False}, [*arrays, mask], constants)
