"""Places and elements on numpy: which elements are not 0, and vectors that have one element unlike the others."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import is_dense
from irrun.engines.threads import Threads
from irrun.engines.vectorized.posts import with_posts
from irrun.engines.work import OPEN_GROWTH, Arrays, Call, Compiled, OpenCall, Work
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array

FEW = 1 << 10
"""Elements of more than one axis, up to which numpy's own function for these is quicker than that for one axis."""


def open_non_zero(work: Work, _: Threads) -> OpenCall | None:
    """NonZero-3 of few elements, or along one axis, where its kernel has nothing to gain."""
    if work.posts or work.required(1)[0].type == "string":
        return None
    given = np.dtype(numpy_dtype(work.attrs["output_type"]))

    def call(arrays: Sequence[Any]) -> Sequence[Array] | None:
        (data,) = arrays
        if data.ndim == 0 or (data.ndim > 1 and data.size > FEW):
            return None
        if data.ndim * given.itemsize > OPEN_GROWTH * data.itemsize:
            return None
        return [np.array((data if data.dtype == np.bool_ else data != 0).nonzero(), given)]

    return call


def one_hot(work: Work, _: Threads) -> Compiled | None:
    """OneHot-1 and -16 with constant values."""
    (indices,), output = work.required(1), work.outputs[0]
    depth, on, off = (work.constant(number) for number in (1, 2, 3))
    if depth is None or on is None or off is None or indices.type not in ("i32", "i64") or not is_dense(indices):
        return None
    if output.type == "string":
        return None
    axis, size = work.attrs["axis"] % len(output.shape), int(depth.item())
    counts = work.attrs.get("negative_indices_mode") == "normalize"
    inner = prod(output.shape[axis + 1 :])
    count = prod(indices.shape)
    starts = np.arange(count, dtype=np.int64)
    starts += starts // inner * (inner * (size - 1))  # where the vector of each index begins
    lowest = -size if counts else 0

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> list[Call]:
        given, target = inputs[0].reshape(-1), outputs[0].reshape(-1)

        def call() -> None:
            target.fill(off.item())
            own = given.astype(np.int64)
            inside = (own >= lowest) & (own < size)
            if counts:
                own %= size
            own *= inner
            own += starts
            target[own if inside.all() else own[inside]] = on

        return [call]

    return with_posts(work, bind)


COMPILERS = {"OneHot-1": one_hot, "OneHot-16": one_hot}

OPENERS = {"NonZero-3": open_non_zero}
