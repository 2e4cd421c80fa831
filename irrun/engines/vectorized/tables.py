"""Tables that are looked up by codes: what stands for each of the 256 values of a byte."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import is_dense
from irrun.engines.threads import Threads, cuts
from irrun.engines.work import Arrays, Call, Compiled, Layout, Work
from irrun.spec.op import Array

BLOCK = 1 << 14
"""Codes that are looked up at once: as many as their places, of 8 bytes each, stay in the cache."""

ELEMENT_NANOSECONDS = 1.1
"""What a code takes about."""


def look_up(work: Work, threads: Threads) -> Compiled | None:
    """Table-0."""
    codes, table = work.required(2)
    if work.posts or codes.type not in ("u8", "i8") or table.value is None:
        return None
    wants: dict[int, Layout | None] = {} if is_dense(codes) else {0: None}
    count = prod(codes.shape)
    sharing = threads.sharing(count * ELEMENT_NANOSECONDS)

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        source, target = inputs[0].reshape(-1).view(np.uint8), outputs[0].reshape(-1)
        calls = [
            partial(_looked_up, inputs[1], source[cut], target[cut], np.empty(cut.stop - cut.start, np.intp))
            for cut in cuts(count, -(-count // (BLOCK * sharing)) * sharing)
        ]
        return threads.call(calls)

    return Compiled(bind, wants=wants)


def _looked_up(table: Array, codes: Array, target: Array, places: Array) -> None:
    np.copyto(places, codes)
    np.take(table, places, out=target, mode="clip")


COMPILERS = {"Table-0": look_up}
