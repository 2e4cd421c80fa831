"""Einsum of the numpy engine, held against the op's kernel."""

import numpy as np
import pytest
from engines.agreement import agrees
from engines.works import THREADS, work_of

from irrun.engines.vectorized.contraction import einsum
from irrun.engines.work import Post

SIZES = {"a": 2, "b": 3, "c": 5, "d": 4, "e": 7, "f": 1}
EQUATIONS = [
    *("bc,cd->bd", "bc,cd->db", "bc,dc->bd", "ac,c->a", "c,ca->a", "c,c->", "a,b->ab", "a,b->ba", "abc,abc->abc"),
    *("abcd,abed->abce", "abce,aebd->acbd", "bcij,cd->bdij".replace("i", "a").replace("j", "e"), "abc,bd->adc"),
    *("acde,abde->abc", "aef,efb->ab", "fc,fc->f", "ab, ba -> a"),
]


def arrays_of(equation, rng):
    terms = equation.replace(" ", "").split("->")[0].split(",")
    return [rng.normal(size=[SIZES[label] for label in term]).astype(np.float32) for term in terms]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum_agrees_with_its_kernel(equation):
    rng = np.random.default_rng(0)
    agrees(einsum, "Einsum-7", {"equation": equation}, arrays_of(equation, rng), constant=())


@pytest.mark.parametrize("equation", ["ab,ab->ab", "ab,ba->ba", "a,b->ba", "ab,bc->cab", "b,ab->ba", "a,a->a"])
def test_large_products_that_nothing_is_summed_of(equation):
    rng = np.random.default_rng(3)
    sizes = {"a": 700, "b": 500, "c": 3}
    terms = equation.split("->")[0].split(",")
    arrays = [rng.normal(size=[sizes[label] for label in term]).astype(np.float32) for term in terms]
    agrees(einsum, "Einsum-7", {"equation": equation}, arrays, constant=())
    agrees(einsum, "Einsum-7", {"equation": equation}, arrays, [Post("ReLU-1", {})], constant=())


def test_einsum_of_views_and_with_posts():
    rng = np.random.default_rng(1)
    a, b = arrays_of("abcd,abed->abce", rng)
    turned = np.ascontiguousarray(a.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0), b[:, ::-1]
    attrs = {"equation": "abcd,abed->abce"}
    agrees(einsum, "Einsum-7", attrs, turned, constant=())
    agrees(einsum, "Einsum-7", attrs, [a, b], [Post("ReLU-1", {})], constant=())


def test_einsum_that_is_no_product_is_left_to_others():
    rng = np.random.default_rng(2)
    for equation in ("ab,bc", "aab,bc->ac", "abc,bd->ad", "ab...,bc->ac...", "ab->ba"):
        terms = equation.split("->")[0].replace("...", "").split(",")
        arrays = [rng.normal(size=[3] * len(term)).astype(np.float32) for term in terms]
        work = work_of("Einsum-7", {"equation": equation}, arrays, [((3, 3), "f32")])
        assert einsum(work, THREADS) is None
    broadcast = [np.zeros((2, 1), np.float32), np.zeros((3, 4), np.float32)]
    assert einsum(work_of("Einsum-7", {"equation": "ab,bc->ac"}, broadcast, [((2, 4), "f32")]), THREADS) is None
