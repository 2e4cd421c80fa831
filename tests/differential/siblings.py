"""Random models in which several products read one tensor, as queries, keys and values of an attention do."""

from __future__ import annotations

import warnings

import numpy as np

from differential.builder import Builder, Rejected, Value
from differential.elementwise import chain
from differential.generate import finished
from differential.graph import Case
from differential.heads import HEADS
from differential.movement import MOVES


def siblings(seed: int, number: int) -> Case:
    """Number `number` of the series `seed`."""
    random = np.random.default_rng([seed, number])
    while True:
        b = Builder(random, sets=int(random.choice([2, 3, 11])), special=random.random() < 0.1)
        if b.sets > 2:
            b.open = [tuple(int(size) for size in random.permutation(20)[: b.sets] + 1) for _ in range(2)]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for _ in range(b.number(1, 3)):
                    _family(b)
                return finished(b, "siblings")
        except Rejected:
            continue


def _family(b: Builder) -> None:
    """Products of one tensor, and what reads them: views of them, one another, or anything."""
    b.again = 0.6
    fitting = [value for value in b.values if value.rank > 1 and value.shape[-1] >= 4 and value.fixed[-1]]
    if fitting and b.chance(0.6):
        x = b.choose(fitting)
    else:
        x = b.keep(b.input([*(b.dim() for _ in range(b.choose([1, 1, 2, 2, 3]))), b.choose([4, 8, 17])]))
    made = [_product(b, x) for _ in range(b.number(2, 5))]
    for value in made:
        seen = _view(b, value) if b.chance(0.9) else value
        b.keep(b.one("Abs-1", seen) if b.chance(0.8) else seen)
    if b.chance(0.4):
        b.keep(_attention(b, made))
    for _ in range(b.number(0, 3)):
        b.keep(b.attempt(b.choose([MOVES, HEADS])))
        if b.chance(0.3):
            b.keep(chain(b, b.values[-1], b.number(1, 2)))


def _view(b: Builder, value: Value) -> Value:
    """Columns as heads, or in front of the rows, or as they are under another shape."""
    columns = value.shape[-1]
    heads = b.choose([count for count in (1, 2, 4, 8) if columns % count == 0])
    match b.choose(["heads", "order", "flat"]):
        case "heads":
            shape = b.i64([0] * (value.rank - 1) + [heads, columns // heads])
            return b.one("Reshape-1", value, shape, special_zero=True)
        case "order":
            return b.one("Transpose-1", value, b.i64(b.permutation(value.rank)))
        case _:
            return b.one("Reshape-1", value, b.i64([-1, columns // heads]), special_zero=False)


def _product(b: Builder, x: Value) -> Value:
    inner, turned = x.shape[-1], b.chance(0.5)
    columns = b.choose([1, 8, 8, 16, 17, 24, 40])
    shape = (columns, inner) if turned else (inner, columns)
    weights = b.constant(b.data(shape) / max(inner, 1) ** 0.5)
    if b.chance(0.1):
        weights = b.one("Transpose-1", weights, b.i64([1, 0]))
        turned = not turned
    made = b.one("MatMul-1", x, weights, transpose_a=False, transpose_b=turned)
    if b.chance(0.6):
        bias = b.constant(b.data((1,) * b.number(0, x.rank - 1) + (b.choose([columns, columns, columns, 1]),)))
        made = b.one("Add-1", *((made, bias) if b.chance(0.7) else (bias, made)), auto_broadcast="numpy")
    return chain(b, made, 1) if b.chance(0.1) else made


def _attention(b: Builder, made: list[Value]) -> Value:
    """Of three of the products, where their sizes fit."""
    query, key, value = (b.choose(made) for _ in range(3))
    if query.rank != key.rank or query.shape[-1] != key.shape[-1]:
        raise Rejected
    if query.rank > 2 and b.chance(0.5):
        return b.one("ScaledDotProductAttention-13", query, key, value, causal=b.chance(0.5))
    scores = b.one("MatMul-1", query, key, transpose_a=False, transpose_b=True)
    return b.one("MatMul-1", b.one("SoftMax-8", scores, axis=-1), value, transpose_a=False, transpose_b=False)
