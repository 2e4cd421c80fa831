"""Mean and variance of groups of channels, or along the last axes, and roots of means of squares: each group while it
is in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import axes_of_mvn, channels_last, has_channels_last, is_dense
from irrun.engines.compiled import bf16
from irrun.engines.compiled import normalization_channels as channels
from irrun.engines.compiled import normalization_kernel as rows
from irrun.engines.compiled.centring import standardized
from irrun.engines.compiled.code import LANES
from irrun.engines.compiled.normalization_code import AXES, SCALES, NormalizationKind
from irrun.engines.compiled.posts import kernel_posts, operand_arguments
from irrun.engines.compiled.sequence import Kernel
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

CALLS = 2
"""Of threads where they share rows or images in parts."""

NANOSECONDS = 0.3
"""What an element takes about, without posts."""

UNEVEN = 1.25
"""Rows are shared in parts where threads would take so much longer than with even shares of them."""

FEW_POINTS = 16
"""Of a part of an image with channels last, at least: what is kept of it takes four times as much as one of them."""


class _Extents(NamedTuple):
    """Groups of an image, lines of a group, and elements of a line."""

    images: int
    groups: int
    lines: int
    points: int


def group_normalization(work: Work, team: Team) -> Compiled | None:
    """GroupNormalization-12 of f32."""
    operands = work.required(3)
    if len(operands) < 3 or not all(own.type == "f32" for own in operands) or not all(map(is_dense, operands[1:])):
        return None
    data, groups = operands[0], work.attrs["num_groups"]
    extents = _Extents(data.shape[0], groups, data.shape[1] // groups, prod(data.shape[2:]))
    if not is_dense(data) and not has_channels_last(data):
        return None
    return _compiled(work, team, extents, "inside", work.attrs["epsilon"], scaled=True)


def mvn(work: Work, team: Team) -> Compiled | None:
    """MVN-1 of f32, and MVN-6 with constant axes, along the last axes, or any others of data in C order; of images with
    channels last, too, and of their channels."""
    (data,), attrs, axes = work.required(1), work.attrs, axes_of_mvn(work)
    rank = len(data.shape)
    mode = attrs.get("eps_mode", "inside_sqrt").removesuffix("_sqrt") if attrs["normalize_variance"] else "none"
    if data.type == "f32" and axes == [1] and rank > 2 and not is_dense(data) and has_channels_last(data):
        extents = _Extents(data.shape[0], prod(data.shape[2:]), 1, data.shape[1])
        return _compiled(work, team, extents, mode, attrs["eps"], scaled=False, along_channels=True)
    first = rank - len(axes)
    if axes and axes[0] != first:
        return standardized(work, team, axes, mode, attrs["eps"])
    if data.type != "f32" or not axes:
        return None
    if not is_dense(data) and not (rank > 3 and first in (1, 2) and has_channels_last(data)):
        return None  # of three axes they are tokens, not channels, and who reads them wants them in order
    before, behind = data.shape[:first] or (1,), data.shape[first:]
    if is_dense(data):
        extents = _Extents(prod(before[:-1]), before[-1], 1, prod(behind))
    elif first == 1:
        extents = _Extents(data.shape[0], 1, data.shape[1], prod(data.shape[2:]))
    else:
        extents = _Extents(data.shape[0], data.shape[1], 1, prod(behind))
    return _compiled(work, team, extents, mode, attrs["eps"], scaled=False)


def root_mean_square(work: Work, team: Team) -> Compiled | None:
    """Lines along the last axis, over the roots of the means of their squares."""
    (data,) = work.required(1)
    if data.type != "f32" or not is_dense(data):
        return None
    extents = _Extents(1, prod(data.shape[:-1]), 1, data.shape[-1])
    return _compiled(work, team, extents, "inside", work.attrs["eps"], scaled=False, centred=False)


class _Cut(NamedTuple):
    """How images are cut for a kernel: what it can do without looking at others, how many there are of that, and parts
    of each; of these, what they have `together`, and `pieces`; and the bytes that it needs for one."""

    wholes: int
    parts: int
    together: int
    pieces: int
    room: int


def _rows_cut(extents: _Extents) -> _Cut:
    together, pieces = max(rows.PART // extents.points, 1), max(extents.points // rows.PART, 1)
    parts = -(-extents.lines // together) * pieces
    return _Cut(extents.images * extents.groups, parts, together, pieces, parts * rows.SUM_BYTES)


def _images_cut(extents: _Extents) -> _Cut:
    count = extents.groups * extents.lines
    together, pieces = max(channels.PART // count, FEW_POINTS), max(channels.PIECE // count, 1)
    parts = -(-extents.points // together)
    return _Cut(extents.images, parts, together, pieces, channels.room_of(count, parts))


def _compiled(
    work: Work,
    team: Team,
    extents: _Extents,
    mode: str,
    epsilon: float,
    *,
    scaled: bool,
    centred: bool = True,
    along_channels: bool = False,
) -> Compiled | None:
    """Where it is `along_channels`, which lie last, the groups are points of images and the points are channels."""
    data = work.required(1)[0]
    last, along = not is_dense(data) and not along_channels, False if scaled else None
    if scaled and (last or extents.points == 1):
        along = True
    if not last and extents.points == 1:
        extents = extents._replace(lines=1, points=extents.lines)
    images, groups, lines, points = extents
    shape = (images, points, groups) if along_channels else (images, groups * lines, points)
    gives = work.outputs[0].type
    if gives == "bf16":  # that is what the last post makes of it
        if not bf16.is_made():
            return None
        work = replace(work, posts=work.posts[:-1])
    posts, operands = kernel_posts(work, shape, (0, 2, 1) if last or along_channels else None)
    if len(posts) < len(work.posts):
        return None
    short = (groups * lines if last else points) < LANES
    kind = NormalizationKind(
        "whole", last, short, last and lines == 1, along, mode, posts, centred, work.outputs[0].type
    )
    cut = _images_cut(extents) if last else _rows_cut(extents)
    nanoseconds = prod(data.shape) * (NANOSECONDS + nanoseconds_of(work, head=False))
    even = -(-cut.wholes // team.count) * team.count <= UNEVEN * cut.wholes
    chunk = 1 if last else max(CHUNK // (lines * points), 1)
    items = -(-cut.wholes // chunk)
    steps = [(kind, items, items > 1 and nanoseconds > SHARED_NANOSECONDS)]
    if team.count > 1 and not even and cut.parts > 1 and nanoseconds > CALLS * SHARED_NANOSECONDS:
        chunk, every = 1, cut.wholes * cut.parts
        steps = [(NormalizationKind("sums", last, last and short, centred=centred), every, True)]
        if last:
            steps.append((replace(kind, does="moments", scales=None, posts=()), images, False))
        steps.append((replace(kind, does="parts"), every, True))
    room = cut.wholes * cut.room if last or len(steps) > 1 else 0
    told = extents._asdict() | cut._asdict() | {"chunk": chunk, "room_image": cut.room, "scale": 0, "shift": 0}
    told["epsilon"] = int(np.float32(epsilon).view(np.uint32))
    address_of = channels.address_of if last else rows.address_of

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> Call:
        own = told | {"data": data_address(inputs[0]), "target": data_address(outputs[0])}
        own["room"] = data_address(scratch) if room else 0
        if scaled:
            own |= zip(SCALES, map(data_address, inputs[1:3]), strict=True)
        own |= operand_arguments(posts, operands, inputs, AXES)
        held, seconds = (inputs, outputs[0], scratch), nanoseconds * 1e-9
        kernels = [
            Kernel(team, address_of(kind), kind.form.of(**own | {"items": items}), held, shared=shared, seconds=seconds)
            for kind, items, shared in steps
        ]
        return kernels[0] if len(kernels) == 1 else kernels[0].joined(kernels)

    return Compiled(bind, room, gives={} if is_dense(data) else {0: channels_last(work.outputs[0])}, shared=True)


COMPILERS = {
    "GroupNormalization-12": group_normalization,
    **dict.fromkeys(("MVN-1", "MVN-6"), mvn),
    "RootMeanSquare-0": root_mean_square,
}
