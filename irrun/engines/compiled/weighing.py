"""The softmax of an attention's scores, in place, while a block of them is in the cache: masks are added on the way, and
who multiplies the values divides by the sums."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir

from irrun.engines.compiled.code import FLOATS, INT, INTS, LANES, LINE, Code, Form, floats, long
from irrun.engines.compiled.compiler import compiled
from irrun.engines.compiled.team import Team
from irrun.engines.memory import ITEM, data_address
from irrun.engines.vectorized.attention import Hidden, compile_attention
from irrun.engines.work import Call, Compiled, Work
from irrun.records import NamedTuple
from irrun.spec.op import Array

_FORM = Form(("rows", "keys", "scores", "sums", "mask", "mask_row", "seen"))
"""`mask_row` are bytes from row to row. The first row sees `seen` keys and each one more than the one before, where the
kernel is causal."""

_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_NUMBERS = ir.Constant(INTS, list(range(LANES)))


class _Kind(NamedTuple):
    """What a kernel is compiled for."""

    masked: bool
    causal: bool


def attention(work: Work, team: Team) -> Compiled | None:
    """ScaledDotProductAttention-13 as the numpy engine takes it, but for masks whose rows are not dense."""
    mask = work.optional(3)
    if mask is not None and mask.shape and mask.shape[-1] > 1 and mask.strides[-1] not in (1, ITEM):
        return None
    return compile_attention(work, team.pool, _weigh)


def _weigh(hidden: Hidden, scores: Array, sums: Array) -> list[Call]:
    """Calls that make weights of scores [*batch, rows, keys], and their sums [*batch, rows, 1]; see `weigh`."""
    masked, causal = isinstance(hidden, np.ndarray), isinstance(hidden, int)
    kind = _Kind(masked, causal)
    kernel = _KERNEL(compiled(kind, partial(_write, kind)))
    *batch, rows, keys = scores.shape
    if not masked and not causal:
        batch, rows = [], scores.size // keys
    calls: list[Call] = []
    for place in np.ndindex(*batch):
        own = {"rows": rows, "keys": keys, "scores": data_address(scores[place]), "sums": data_address(sums[place])}
        own |= {"mask": 0, "mask_row": 0, "seen": hidden if isinstance(hidden, int) else 0}
        if isinstance(hidden, np.ndarray):
            own |= {"mask": data_address(hidden[place]), "mask_row": hidden.strides[-2] % (1 << 64)}
        arguments = _FORM.of(**own)
        calls.append(partial(_call, kernel, data_address(arguments), (arguments, scores, sums, hidden)))
    return calls


def _call(kernel: Any, arguments: int, _: object) -> None:
    kernel(arguments)


def _write(kind: _Kind, function: ir.Function) -> None:
    c = Code(function)
    at = _FORM.loaded(c, function.args[0])
    c.loop(at["rows"], _Row(kind, c, at).write)
    c.b.ret_void()


def _read(c: Code, place: Any, inside: Any) -> Any:
    return c.load(place, FLOATS) if inside is None else c.some(place, FLOATS, inside)


class _Row:
    """The code for a row."""

    def __init__(self, kind: _Kind, c: Code, at: dict[str, Any]) -> None:
        self._kind, self._c, self._at = kind, c, at

    def write(self, row: Any) -> None:
        c, b, at = self._c, self._c.b, self._at
        keys = at["keys"]
        scores = c.at(at["scores"], row, b.mul(keys, long(ITEM)))
        mask = c.at(at["mask"], row, at["mask_row"])
        seen = c.least(keys, b.add(at["seen"], row)) if self._kind.causal else keys
        edge, total = c.variable(floats(-np.inf)), c.variable(floats(0.0))

        def score(place: Any, inside: Any = None) -> Any:
            first, *others = [scores, mask] if self._kind.masked else [scores]
            value = _read(c, b.add(first, place), inside)
            for other in others:
                value = b.fadd(value, _read(c, b.add(other, place), inside))
            return value if inside is None else b.select(inside, value, floats(-np.inf))

        def each(count: Any, body: Any) -> None:
            vectors = b.udiv(count, long(LANES))
            c.times(vectors, lambda vector: body(b.mul(vector, long(LINE)), None))
            inside = b.icmp_signed("<", _NUMBERS, c.splat(b.trunc(b.urem(count, long(LANES)), INT)))
            body(b.mul(vectors, long(LINE)), inside)

        def greatest(place: Any, inside: Any) -> None:
            edge.set(c.greatest(score(place, inside), edge.get()))

        each(seen, greatest)
        peak = c.splat(c.peak(edge.get()))

        def power(place: Any, inside: Any) -> None:
            made = c.exp(b.fsub(score(place, inside), peak))
            if inside is None:
                c.store(made, b.add(scores, place))
                total.set(b.fadd(total.get(), made))
            else:
                c.put(made, b.add(scores, place), inside)
                total.set(b.fadd(total.get(), b.select(inside, made, floats(0.0))))

        each(seen, power)
        c.store(c.sum(total.get()), c.at(at["sums"], row, ITEM))
        if self._kind.causal:
            behind = c.at(scores, seen, ITEM)

            def nothing(place: Any, inside: Any) -> None:
                if inside is None:
                    c.store(floats(0.0), b.add(behind, place))
                else:
                    c.put(floats(0.0), b.add(behind, place), inside)

            each(b.sub(keys, seen), nothing)
