"""Einsum on oneDNN against the plain op."""

from __future__ import annotations

import pytest
from engines.onednn_works import check, check_if_taken, needs_onednn, normal, refused

from irrun.engines.work import Post
from irrun.spec.op import Array

pytestmark = needs_onednn

NAME = "Einsum-7"
SIZES = {"a": 2, "b": 3, "c": 5, "d": 8, "e": 7, "f": 1}
TAKEN = [
    *("bc,cd->bd", "bc,cd->db", "bc,dc->bd", "abcd,abed->abce", "abce,aebd->acbd", "abcd,def->abcef", "bde,dea->ba"),
    *("abcd,dfe->afbce", "acbd,bed->acbe", "abc,cde->adbe", "aef,efb->ab", "bcae,cd->bdae", "ab, bc -> ac"),
]
"""Among them the queries, keys and values of attentions, positions relative to queries, and axes of one element."""


def arrays_of(equation: str) -> list[Array]:
    terms = equation.replace(" ", "").split("->")[0].split(",")
    return [normal(*(SIZES[label] for label in term), seed=number) for number, term in enumerate(terms)]


@pytest.mark.parametrize("constants", [(), (0,), (1,)])
@pytest.mark.parametrize("equation", TAKEN)
def test_sums_of_products(equation: str, constants: tuple[int, ...]) -> None:
    check(NAME, {"equation": equation}, arrays_of(equation), constants=constants)


@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (7,), (3, 1, 1), (1, 1, 1, 1), (5, 7)])
@pytest.mark.parametrize("equation", ["abcd,abed->abce", "acbd,abed->abce", "abcd,bed->abce"])
def test_what_is_added_behind_lies_as_the_result(equation: str, shape: tuple[int, ...]) -> None:
    arrays = [*arrays_of(equation), normal(*shape, seed=9)]
    for constants in ((), (2,), (1, 2)):
        posts = [Post("Add-1", {"auto_broadcast": "numpy"}, 2), Post("Sigmoid-1", {})]
        check_if_taken(NAME, {"equation": equation}, arrays, constants, posts)


def test_views() -> None:
    a, b = arrays_of("abcd,abed->abce")
    for left in (a, a.transpose(0, 1, 3, 2).copy().transpose(0, 1, 3, 2), a[:, :, ::2], a[:, ::-1]):
        for right in (b, b.swapaxes(0, 1).copy().swapaxes(0, 1), b[:, :, 1:5], b[:, :, ::-1]):
            check_if_taken(NAME, {"equation": "abcd,abed->abce"}, [left, right])


@pytest.mark.parametrize("equation", ["c,cd->d", "abc,abc->abc", "a,b->ab", "abc,abc->ab", "abc,cb->a", "c,c->"])
def test_what_has_no_rows_columns_or_sums_of_one_axis_is_left_to_others(equation: str) -> None:
    assert refused(NAME, {"equation": equation}, arrays_of(equation))
