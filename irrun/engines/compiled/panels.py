"""Products of few rows of f32 with constant weights, which lie as panels of 16 columns.

oneDNN has one thread for most of them; and where there is no AVX-512 only its code for many rows, which goes over
weights at a third of the speed of memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import dense_strides
from irrun.engines.compiled.code import LANES, LINE
from irrun.engines.compiled.panel_kernel import AXES, PanelKind, address_of, at_once
from irrun.engines.compiled.posts import KernelOperand, KernelPost, kernel_posts, operand_arguments
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import SHARED_SECONDS, Team
from irrun.engines.memory import ITEM, Arranged, allocate_lasting, arranged_once, data_address
from irrun.engines.rows import SMALL_ROWS, rows_of
from irrun.engines.threads import MEMORY_SPEED
from irrun.engines.vectorized.posts import Posts, nanoseconds_of, posts_of
from irrun.engines.work import OPEN_GROWTH, Arrays, Call, Compiled, Layout, OpenCall, Operand, Work, chain
from irrun.engines.work_cache import WorkCache
from irrun.records import dataclass
from irrun.spec.op import Array

PRODUCTS = 35e9
"""Products that one thread adds up in a second, about."""

CHUNKS = 4
"""That each thread takes, where it can: those that come later take fewer."""

MAX_KNOWN = 64
"""Shapes of arrays for which a call for any number of rows knows what the product is."""

POSTS_SECONDS = 50e-6
"""What posts may take that one thread computes behind the product; longer ones are left to who shares them."""


def _arranged(columns: Array) -> Array:
    """Weights [columns, inner] as an array [panels, inner, 16]. Columns that are not there are 0."""
    count, inner = columns.shape
    whole = count // LANES
    memory = allocate_lasting(-(-count // LANES) * inner * LINE).view(np.float32)
    made: Array = memory.reshape(-1, inner, LANES)
    made[:whole] = columns[: whole * LANES].reshape(whole, LANES, inner).transpose(0, 2, 1)
    if whole < len(made):
        made[whole] = 0
        made[whole, :, : count % LANES] = columns[whole * LANES :].T
    return made


_panels: weakref.WeakValueDictionary[tuple[Hashable, ...], Arranged] = weakref.WeakValueDictionary()


def panels_of(value: Array, columns: Callable[[Array], Array], *way: Hashable) -> Arranged:
    """Those of the `columns` [columns, inner] of a constant, which all works share that have them in the same way."""
    return arranged_once(_panels, [value], lambda value: _arranged(columns(value)), *way)


def panel_call(team: Team, panels: Array, data: Array, result: Array) -> Kernel:
    """A call of one thread for data [rows, inner] times panels, into a result [rows, columns] of dense rows."""
    kind = _kind_of(len(data))
    told = _told(panels, len(panels), data, data.strides, result)
    seconds = result.size * panels.shape[1] / PRODUCTS
    arguments, held = kind.form.of(**told), (panels, data, result)
    return Kernel(team, address_of(kind), arguments, held, shared=False, seconds=seconds, whole=True)


def _kind_of(rows: int, posts: tuple[KernelPost, ...] = ()) -> PanelKind:
    return PanelKind(-(-rows // -(-rows // at_once())), posts)


def _told(panels: Array, chunk: int, data: Array, strides: Sequence[int], result: Array) -> dict[str, int]:
    """What the kernel is told of all but its posts."""
    count, inner, _ = panels.shape
    told = {"items": -(-count // chunk), "chunk": chunk, "panels": count, "panel": panels.strides[0], "inner": inner}
    told |= {"columns": result.shape[1], "weights": data_address(panels)}
    told |= {"rows": result.shape[0], "data": data_address(data), "data_row": strides[0], "data_step": strides[1]}
    return told | {"result": data_address(result), "result_row": result.strides[0]}


@dataclass(frozen=True, slots=True)
class _Product:
    """What a product is whatever its weights hold."""

    kind: PanelKind
    operands: tuple[KernelOperand, ...]
    rest: Posts
    rows: int
    strides: tuple[int, int]
    wants: dict[int, Layout | None]
    inner: int
    columns: int

    def compiled(self, team: Team, work: Work) -> Compiled:
        panels, again = _weights_of(work), partial(self.compiled, team)
        bind = partial(self._bind, team, panels)
        return Compiled(bind, 0, self.wants, taken=frozenset({1}), again=again, pending=panels.pending)

    def _bind(self, team: Team, panels: Arranged, inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        address, weights, output = address_of(self.kind), panels.array(), outputs[0].reshape(self.rows, self.columns)
        seconds = max(self.rows * self.columns * self.inner / PRODUCTS, weights.nbytes / MEMORY_SPEED)
        shared = seconds > SHARED_SECONDS
        count = len(weights)
        chunk = -(-count // (CHUNKS * team.count)) if shared else count
        told = _told(weights, chunk, inputs[0], self.strides, output)
        told |= operand_arguments(self.kind.posts, self.operands, inputs, AXES)
        held = panels, weights, inputs, output
        kernel = Kernel(
            team, address, self.kind.form.of(**told), held, shared=shared, seconds=seconds, whole=not shared
        )
        return chain([kernel, *self.rest.bind(inputs, output)(...)])


def _weights_of(work: Work) -> Arranged:
    """The constant weights of a work, as panels."""
    _, right = work.required(2)
    assert right.value is not None
    turned = work.attrs["transpose_b"]
    return panels_of(right.value, _rows if turned else _columns, turned)


def _rows(value: Array) -> Array:
    return value.reshape(value.shape[-2:])


def _columns(value: Array) -> Array:
    return _rows(value).T


def product(work: Work, team: Team) -> Compiled | None:
    """MatMul-1 of few rows, which the engine has made sure of, with the posts that take next to no time."""
    made = _product_of(work)
    return None if made is None else made.compiled(team, work)


def _product_of(work: Work) -> _Product | None:
    found = rows_of(work)
    assert found is not None, "there are few rows, or rows of C order"
    rows, strides, wants = found
    right = work.required(2)[1]
    inner, columns = right.shape[-2:] if not work.attrs["transpose_b"] else right.shape[:-3:-1]
    own, operands = kernel_posts(work, (rows, columns))
    left = replace(work, posts=work.posts[len(own) :])
    rest = posts_of(left, (rows, columns))
    if rest is None or nanoseconds_of(left, head=False) * rows * columns * 1e-9 > POSTS_SECONDS:
        return None
    return _Product(_kind_of(rows, own), operands, rest, rows, strides, wants, inner, columns)


class _AnyRows:
    """The call of a work for any number of rows. Safe for threads."""

    def __init__(self, work: Work, team: Team) -> None:
        self._work, self._team, self._panels = work, team, _weights_of(work)
        shape = work.required(2)[1].shape
        self._inner, self._columns = shape[::-1] if work.attrs["transpose_b"] else shape
        self._known: dict[Hashable, _Product | None] = {}  # None where others have to compute it

    def __call__(self, arrays: Sequence[Any]) -> Sequence[Array] | None:
        rows = arrays[0]
        if rows.shape[-1] != self._inner or not 0 < rows.size <= SMALL_ROWS or not rows.flags.c_contiguous:
            return None
        shape = (*rows.shape[:-1], self._columns)
        if prod(shape) * ITEM > OPEN_GROWTH * sum(own.nbytes for own in arrays):
            return None
        key = shape, *((own.shape, own.strides) for own in arrays[2:])
        if key in self._known:
            product = self._known.get(key)  # another thread may have made room in just now
        else:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            product = self._known[key] = self._product(shape, arrays)
        if product is None:
            return None
        result = self._team.reserve.empty(shape, rows.dtype)
        product._bind(self._team, self._panels, arrays, [result], None)()
        return (result,)

    def _product(self, shape: tuple[int, ...], arrays: Sequence[Any]) -> _Product | None:
        """What the product is for these arrays; None where the kernel does not do all posts, or they make it larger."""
        work = self._work
        inputs = [
            None if own is None else Operand(own.type, array.shape, array.strides)
            for own, array in zip(work.inputs, arrays, strict=True)
        ]
        sized = replace(work, inputs=inputs, outputs=[Operand("f32", shape, dense_strides(shape))])
        others = [own.shape for post in work.posts if (own := sized.other(post)) is not None]
        if any(len(own) > len(shape) or not all(map(_fits, own[::-1], shape[::-1])) for own in others):
            return None
        posts, _ = kernel_posts(sized, (prod(shape[:-1]), self._columns))
        return _alike.recall("rows", sized, _product_of) if len(posts) == len(work.posts) else None


_alike = WorkCache()  # as experts are: of works without what their weights hold


def _fits(size: int, own: int) -> bool:
    return size in (1, own)


def open(work: Work, team: Team) -> OpenCall:
    """A call for a product of any number of rows, which the engine has made sure of, with posts."""
    return _AnyRows(work, team)


COMPILERS = {"MatMul-1": product}
OPENERS = {"MatMul-1": open}
