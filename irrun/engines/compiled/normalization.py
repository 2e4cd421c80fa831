"""Mean and variance of groups of channels, or along the last axes, each group while it is in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import constant_axes, is_dense
from irrun.engines.compiled.normalization_kernel import OPERAND, PART, SCALES, NormalizationKind, address_of
from irrun.engines.compiled.posts import kernel_posts
from irrun.engines.compiled.team import Team
from irrun.engines.memory import data_address
from irrun.engines.vectorized.posts import nanoseconds_of
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.records import NamedTuple
from irrun.spec.op import Array

CHUNK = 1 << 13
"""Elements that a thread takes at once, at least, where rows have fewer."""

SHARED_NANOSECONDS = 20_000
"""What one thread must need for threads to share it."""

NANOSECONDS = 0.5
"""What an element takes about, without posts."""

UNEVEN = 1.25
"""Rows are shared in parts where threads would take so much longer than with even shares of them."""

_SUMS = NormalizationKind("sums")


class _Extents(NamedTuple):
    """Rows of an image, lines of a row, and elements of a line."""

    images: int
    groups: int
    lines: int
    points: int


def group_normalization(work: Work, team: Team) -> Compiled | None:
    """GroupNormalization-12 of f32."""
    operands = work.required(3)
    if len(operands) < 3 or not all(own.type == "f32" and is_dense(own) for own in operands):
        return None
    images, channels, *spatial = operands[0].shape
    groups, points = work.attrs["num_groups"], prod(spatial)
    each = channels // groups
    extents = _Extents(images, groups, *((1, each) if points == 1 else (each, points)))
    return _compiled(work, team, extents, "inside", work.attrs["epsilon"], points == 1)


def mvn(work: Work, team: Team) -> Compiled | None:
    """MVN-1 of f32, and MVN-6 with constant axes, along the last axes."""
    (data,), attrs = work.required(1), work.attrs
    rank = len(data.shape)
    if work.name == "MVN-6":
        axes = constant_axes(work)
    else:
        every = attrs["reduction_axes"] or range(1 if attrs["across_channels"] else 2, rank)
        axes = sorted({axis % rank for axis in every})
    first = rank - len(axes)
    if data.type != "f32" or not is_dense(data) or not axes or axes[0] != first:
        return None
    before = data.shape[:first] or (1,)
    extents = _Extents(prod(before[:-1]), before[-1], 1, prod(data.shape[first:]))
    mode = attrs.get("eps_mode", "inside_sqrt").lower().removesuffix("_sqrt") if attrs["normalize_variance"] else "none"
    return _compiled(work, team, extents, mode, attrs["eps"], None)


def _compiled(
    work: Work, team: Team, extents: _Extents, mode: str, epsilon: float, scales: bool | None
) -> Compiled | None:
    images, groups, lines, points = extents
    posts, operands = kernel_posts(work, (images, groups * lines, points))
    if len(posts) < len(work.posts):
        return None
    rows, size = images * groups, lines * points
    together, pieces = max(PART // points, 1), max(points // PART, 1)
    parts = -(-lines // together) * pieces
    nanoseconds = NANOSECONDS + nanoseconds_of(work, head=False)
    shared = team.count > 1 and rows * size * nanoseconds > SHARED_NANOSECONDS
    apart = shared and parts > 1 and -(-rows // team.count) * team.count > UNEVEN * rows
    chunk = 1 if apart else max(CHUNK // size, 1)
    told = {"items": rows * parts if apart else -(-rows // chunk), "chunk": chunk, "rows": rows, "groups": groups}
    told |= {"lines": lines, "points": points, "parts": parts, "together": together, "pieces": pieces}
    told |= {"epsilon": int(np.float32(epsilon).view(np.uint32)), "scale": 0, "shift": 0}
    kind = NormalizationKind("parts" if apart else "rows", scales, points < 16, mode, posts)
    places = [number for number, post in enumerate(posts) if post.along is not None]

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        own = told | {"data": data_address(inputs[0]), "target": data_address(outputs[0])}
        own["sums"] = data_address(scratch) if apart else 0
        if scales is not None:
            own |= zip(SCALES, map(data_address, inputs[1:3]), strict=True)
        for n, operand in zip(places, operands, strict=True):
            values = data_address(inputs[operand.number]), *operand.strides
            own |= zip((f"{name}{n}" for name in OPERAND), values, strict=True)
        arguments = kind.form.of(**own)
        pointer, addresses = data_address(arguments), [address_of(step) for step in ([_SUMS] if apart else []) + [kind]]

        def call(_: object = (inputs, outputs[0], scratch)) -> None:
            for address in addresses:
                arguments[0] = 0
                team.beside(address, pointer, shared=shared)

        return call

    return Compiled(bind, rows * parts * 16 if apart else 0)


COMPILERS = {
    "GroupNormalization-12": group_normalization,
    **dict.fromkeys(("MVN-1", "MVN-6"), mvn),
}
