"""Attention of many rows over many keys, of which nobody keeps the scores."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.compiled.flash_kernel import FORM, HEAD, ROOM, FlashKind, address_of, tile
from irrun.engines.compiled.team import Team
from irrun.engines.memory import ITEM, aligned, data_address
from irrun.engines.vectorized.attention import MANY
from irrun.engines.work import Arrays, Call, Compiled, Operand, Work, chain
from irrun.spec.op import Array

MAX_SIZE = 256
"""Elements of a key, or of a value: kernels have no loops over them."""

ROWS = 256
"""Rows of a block, at most: keys are laid out anew for each."""

FEWEST = 64
"""Rows of a block that threads share, at least."""

ITEMS = 4
"""Blocks for each thread, so that threads end at the same time."""


def attention(work: Work, team: Team) -> Compiled | None:
    """ScaledDotProductAttention-13 of f32 without a sink, of tensors whose last axis is dense."""
    (query, key, value), output = work.required(3), work.outputs[0]
    mask, scale, sink = (work.optional(number) for number in (3, 4, 5))
    if sink is not None or work.posts:
        return None
    if any(own is not None and own.type != "f32" for own in (query, key, value, scale, output)):
        return None
    causal = bool(work.attrs["causal"])
    if causal or (mask is not None and not mask.shape):
        mask = None
    if mask is not None and mask.type not in ("f32", "boolean"):
        return None
    *batch, rows, width = output.shape
    keys, size = key.shape[-2:]
    if min(rows, keys) < MANY or max(size, width) > MAX_SIZE:
        return None
    tensors = (query, key, value, *([] if mask is None else [mask]))
    if any(own.shape[-1] > 1 and own.strides[-1] != (1 if own.type == "boolean" else ITEM) for own in tensors):
        return None
    kind = FlashKind(size, width, None if mask is None else mask.type, causal, tile())
    heads = prod(batch)
    block = _block(rows, heads, team.count, kind.tile[0])
    blocks = -(-rows // block)
    room = aligned(kind.room_size(block))
    factor = size**-0.5

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        address = address_of(kind)
        arrays = [*inputs[:3], None if mask is None else inputs[3], outputs[0]]
        views = [None if own is None else np.broadcast_to(own, (*batch, *own.shape[-2:])) for own in arrays]
        places = np.array([[_place(own, index) for own in views] for index in np.ndindex(*batch)], np.uint64)
        assert places.shape[1:] == (len(HEAD),)
        ends = np.full(rows, keys, np.int64)
        steps = {f"{name}_row": _row(own) for name, own in zip(HEAD, views, strict=True)}
        told = {"items": heads * blocks, "room": 0, "room_size": room, "heads": data_address(places), "blocks": blocks}
        told |= {"block": block, "rows": rows, "keys": keys, "ends": data_address(ends), "factor": _bits(factor)}
        arguments = FORM.of(**told, **steps)
        pointer, memory, number = data_address(arguments), data_address(scratch), 1 + FORM.names.index("factor")

        def call(_: object = (inputs, outputs, scratch, places, ends)) -> None:
            arguments[0], arguments[ROOM] = 0, memory
            if scale is not None:
                arguments[number] = _bits(inputs[4].item())
            team.beside(address, pointer, shared=True)

        return call

    return Compiled(bind, team.count * room)


def _block(rows: int, heads: int, threads: int, tile: int) -> int:
    """Rows of a block: whole tiles, and as many blocks as threads want where that leaves enough rows."""
    most = min(ROWS, max(FEWEST, rows * heads // (ITEMS * threads)))
    blocks = -(-rows // most)
    return -(-rows // (blocks * tile)) * tile


def _place(array: Array | None, index: tuple[int, ...]) -> int:
    return 0 if array is None else data_address(array[index])


def _row(array: Array | None) -> int:
    return 0 if array is None or array.shape[-2] == 1 else array.strides[-2] % (1 << 64)


def _bits(number: float) -> int:
    return int.from_bytes(struct.pack("f", number), "little")
