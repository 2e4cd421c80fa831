"""Attention of many rows over many keys, of which nobody keeps the scores."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import Strided, unless_so
from irrun.engines.compiled.flash_form import FORM, HEAD, KEYS, TILED, FlashKind, tile
from irrun.engines.compiled.flash_kernel import address_of
from irrun.engines.compiled.flash_pairs import PairedBlock
from irrun.engines.compiled.flash_tiles import TiledBlock
from irrun.engines.compiled.flash_vectors import VectorBlock
from irrun.engines.compiled.sequence import Kernel
from irrun.engines.compiled.team import SHARED_SECONDS, Team
from irrun.engines.heads import dense_mask, heads_inside, is_streamed, mask_of, with_blind_rows
from irrun.engines.memory import aligned, data_address
from irrun.engines.vectorized.attention import find_ends
from irrun.engines.work import Arrays, Call, Compiled, Work, chain
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array

ROWS = 256
"""Rows of a block, at most: keys are laid out anew for each."""

FEWEST = 64
"""Rows of a block, at least, where threads share them."""

ITEMS = 4
"""Blocks for each thread, so that threads end at the same time."""

SPEED = 80e9
"""Floating point operations of one thread in a second, about."""

LOOKING_SECONDS = 0.5e-3
"""What one thread must need for it to be worth looking for keys that weigh nothing."""

Lying = tuple[tuple[tuple[int, ...], tuple[int, ...]] | None, ...]
"""Shapes and strides of the arrays that a kernel reads and writes, None for one that is not there."""

_FACTOR = FORM.place("factor")


def attention(work: Work, team: Team) -> Compiled | None:
    """ScaledDotProductAttention-13, where it `is_streamed`. The result comes with the heads next to their elements."""
    result = work.outputs[0]
    size = tile(result.type)
    if size is None or not is_streamed(work):
        return None
    key, mask, shape = work.required(2)[1], mask_of(work), result.shape
    scale, sink = work.optional(4), work.optional(5)
    rows, keys, heads, causal = shape[-2], key.shape[-2], prod(shape[:-2]), bool(work.attrs["causal"])
    constant = None if mask is None or mask.value is None else dense_mask(mask.value)
    kind = FlashKind(
        result.type, key.shape[-1], shape[-1], None if mask is None else mask.type, sink is not None, causal, size, KEYS
    )
    seconds = 2 * heads * rows * keys * (kind.size + kind.width) / SPEED
    shared = team.count > 1 and seconds > SHARED_SECONDS
    block = _block(rows, heads, team.count if shared else 1, size[0])
    blocks, room = -(-rows // block), aligned(kind.room_size(block))
    address = address_of(kind, VectorBlock if kind.type == "f32" else TiledBlock if size == TILED else PairedBlock)
    numbers = np.indices(shape[:-2], np.int64).reshape(len(shape) - 2, heads)
    known: dict[Lying, Array] = {}
    told = {"items": heads * blocks, "room_size": room, "blocks": blocks, "block": block, "rows": rows, "keys": keys}

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        hiding = None if mask is None else inputs[3] if constant is None else constant
        given = (*inputs[:3], hiding, None if sink is None else inputs[5], outputs[0])
        lying = tuple(None if own is None else (own.shape, own.strides) for own in given)
        if lying not in known:  # the same each time, but for what lies between elements of axes of size 1
            known[lying] = _offsets(lying, numbers)
        places = known[lying] + [0 if own is None else data_address(own) for own in given]
        ends, first = np.full(rows, keys, np.int64), list[Call]()
        if seconds > LOOKING_SECONDS:
            whole = [(*shape[:-2], *own.shape[-2:]) for own in inputs[:3]]
            arrays = [
                own if own.shape == full else np.broadcast_to(own, full)
                for own, full in zip(inputs[:3], whole, strict=True)
            ]
            scaled = inputs[4] if scale is not None else None
            first = _looking(ends, arrays, hiding, scaled, causal=causal)
        steps = {f"{name}_row": _row(own) for name, own in zip(HEAD, given, strict=True)}
        at = {"heads": data_address(places), "ends": data_address(ends), "room": 0, "factor": _bits(kind.size**-0.5)}
        arguments = FORM.of(**told, **steps, **at)
        held, counted = (inputs, outputs, scratch, places, ends), (FORM.place("room"), data_address(scratch))
        kernel = Kernel(team, address, arguments, held, shared=shared, seconds=seconds, counted=counted)
        if scale is None:
            return chain([*first, kernel])

        def tell() -> None:
            arguments[_FACTOR] = _bits(inputs[4].item())

        return chain([*first, tell, kernel])

    lying = Strided(heads_inside(result), prod(shape) * numpy_dtype(result.type).itemsize)
    gives = unless_so(result, lying)
    taken = frozenset() if constant is None else frozenset({3})
    return with_blind_rows(work, Compiled(bind, team.count * room, gives=gives, taken=taken))


def _block(rows: int, heads: int, threads: int, tile: int) -> int:
    """Rows of a block: whole tiles, and as many blocks as threads want where that leaves enough rows."""
    most = min(ROWS, max(FEWEST, rows * heads // (ITEMS * threads)))
    return -(-rows // (-(-rows // most) * tile)) * tile


def _looking(
    ends: Array, arrays: Sequence[Any], mask: Array | None, scale: Array | None, *, causal: bool
) -> list[Call]:
    """Calls that find for each row how many keys there are but those at the end that weigh nothing, the `ends`."""
    query, key, value = arrays
    rows, size = query.shape[-2:]
    keys = key.shape[-2]
    if causal:
        return [partial(_find_seen, ends, value)]
    if query.dtype != np.float32:
        return []
    if mask is None or mask.shape[-2:] != (rows, keys) or mask.size != rows * keys:
        return []
    factor = np.array(size**-0.5, np.float32) if scale is None else scale.reshape(())
    return [partial(find_ends, ends, mask[(0,) * (mask.ndim - 2)], factor, query, key, value)]


def _find_seen(ends: Array, value: Array) -> None:
    """Row i sees the keys up to i; a value that is not finite shows through a weight of 0."""
    if value.dtype == np.float32:
        axes = list(range(value.ndim))
        with np.errstate(all="ignore"):
            finite = np.isfinite(np.einsum(value, axes, value, axes, axes[:-1]).max())
    else:
        finite = np.isfinite(value).all()
    keys = value.shape[-2]
    ends[:] = np.minimum(np.arange(1, len(ends) + 1), keys) if finite else keys


def _offsets(lying: Lying, numbers: Array) -> Any:
    """From the beginnings of arrays that broadcast to the first rows of all heads, [heads, arrays]; `numbers` are those
    of the heads along each axis, in columns."""
    steps = np.zeros((len(lying), len(numbers)), np.int64)
    for own, known in zip(steps, lying, strict=True):
        if known is not None:
            outer = [step if size > 1 else 0 for size, step in zip(*known, strict=True)][:-2]
            own[len(numbers) - len(outer) :] = outer
    return (steps @ numbers).T.copy()


def _row(array: Array | None) -> int:
    """Bytes from row to row, as a u64; 0 where there is one for all."""
    return 0 if array is None or array.shape[-2] == 1 else array.strides[-2] % (1 << 64)


def _bits(number: float) -> int:
    return int.from_bytes(struct.pack("<f", number), "little")
