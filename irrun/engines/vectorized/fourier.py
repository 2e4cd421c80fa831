"""Fourier transforms on numpy: short axes as products with matrices of roots of one, longer ones by numpy's transform.

With threads that is as quick as scipy's transforms, which the ops' kernels use and which take long to load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from irrun.engines.axes import dense_strides
from irrun.engines.extents import view
from irrun.engines.memory import ITEM, aligned
from irrun.engines.threads import Threads, even_blocks, lengths
from irrun.engines.vectorized.copying import copy_calls
from irrun.engines.vectorized.posts import with_posts
from irrun.engines.vectorized.products import pieces_of
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.records import NamedTuple
from irrun.spec.op import Array

AT_ONCE = 1 << 15
"""Numbers that numpy transforms at once, which stay in the cache and hide what a call costs."""

NANOSECONDS = 3.0
"""What a number takes in one of numpy's transforms, about."""

SHORT, SHORT_REAL = 48, 96
"""Elements of an axis of complex and of real numbers up to which a product is as quick as a transform."""

REAL, INVERSE_REAL = "RDFT-9", "IRDFT-9"


class _Step(NamedTuple):
    """The transformation of an axis by numpy's `function`: of `size` elements as many as count become `made` ones.

    They lie in `outer` rows, with `inner` complex numbers for each element; of the last axis `inner` is 0, and an
    element is `parts[0]` numbers and becomes `parts[1]`. A short axis has the `matrix` that it is multiplied with.
    """

    function: Callable[..., object]
    length: int
    outer: int
    size: int
    made: int
    inner: int
    parts: tuple[int, int]
    inverse: bool
    matrix: Array | None

    @property
    def result(self) -> int:
        """Numbers that it makes."""
        return self.outer * self.made * (2 * self.inner or self.parts[1])


def fourier(work: Work, threads: Threads) -> Compiled | None:
    """The transformations of f32 along constant axes; the one between real and complex numbers is of the last axis."""
    data, axes, lengths = work.inputs[0], work.constant(1), work.constant(2)
    if data is None or data.type != "f32" or axes is None or not axes.size:
        return None
    if work.optional(2) is not None and lengths is None:
        return None
    steps = _steps(work.name, data.shape, axes.tolist(), [-1] * axes.size if lengths is None else lengths.tolist())
    if steps is None:
        return None
    copied = data.strides != dense_strides(data.shape, ITEM)
    rooms = [prod(data.shape) if copied else 0, *(step.result for step in steps[:-1])]
    starts = [0]
    for room in rooms:
        starts.append(starts[-1] + aligned(room * ITEM))

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> list[Call]:
        buffers = [
            scratch[start : start + room * ITEM].view(np.float32) if room else np.empty(0)
            for start, room in zip(starts, rooms, strict=False)
        ]
        calls: list[Call] = []
        given = inputs[0]
        if copied:
            calls += copy_calls(buffers[0].reshape(given.shape), given)
            given = buffers[0]
        for step, made in zip(steps, [*buffers[1:], outputs[0]], strict=True):
            calls.append(_bound(step, given.reshape(-1), made.reshape(-1), threads))
            given = made
        return calls

    return with_posts(work, bind, starts[-1], doubtful=True)


def _steps(name: str, shape: tuple[int, ...], axes: Sequence[int], lengths: Sequence[int]) -> list[_Step] | None:
    """The axes in the order of their transformation; None if the one between real and complex ones is not the last."""
    sizes = list(shape if name == REAL else shape[:-1])
    wanted = dict(zip((axis % len(sizes) for axis in axes), lengths, strict=True))
    last = len(sizes) - 1
    if name in (REAL, INVERSE_REAL) and axes[-1] % len(sizes) != last:
        return None
    inverse = name in ("IDFT-7", INVERSE_REAL)
    steps = []
    for axis in sorted(wanted, reverse=name != INVERSE_REAL):
        size, length = sizes[axis], wanted[axis]
        parts = {REAL: (1, 2), INVERSE_REAL: (2, 1)}.get(name, (2, 2)) if axis == last else (2, 2)
        if length == -1:
            length = 2 * (size - 1) if parts == (2, 1) else size
        if length <= 0:
            return None
        read = min(size, length // 2 + 1 if parts == (2, 1) else length)
        made = length // 2 + 1 if parts == (1, 2) else length
        inner = 0 if axis == last else prod(sizes[axis + 1 :])
        matrix = None
        if max(read, made) <= (SHORT if parts == (2, 2) else SHORT_REAL):
            matrix = _roots(length, read, made, inverse=inverse)
            matrix = matrix if inner else _of_pairs(matrix, length, parts)
        kind = f"{'i' if inverse else ''}{'' if parts == (2, 2) else 'r'}fft"
        steps.append(
            _Step(getattr(np.fft, kind), length, prod(sizes[:axis]), size, made, inner, parts, inverse, matrix)
        )
        sizes[axis] = made
    return steps


def _roots(length: int, read: int, made: int, *, inverse: bool) -> Array:
    """What each of the elements read counts for in each of those made: `[made, read]`."""
    angles = np.arange(length) * (2 * np.pi / length)
    roots = np.cos(angles) + (1j if inverse else -1j) * np.sin(angles)
    if inverse:
        roots /= length
    turns = np.outer(np.arange(made), np.arange(read)) % length
    found: Array = roots.astype(np.complex64)[turns]
    return found


def _of_pairs(roots: Array, length: int, parts: tuple[int, int]) -> Array:
    """The same for real numbers: `[read * parts, made * parts]`. Of a half each element counts for its mirror image."""
    made, read = roots.shape
    matrix = np.empty((read, parts[0], made, parts[1]), np.float32)
    matrix[:, 0, :, 0] = roots.real.T
    if parts[1] == 2:
        matrix[:, 0, :, 1] = roots.imag.T
    if parts[0] == 2:
        matrix[:, 1, :, 0] = -roots.imag.T
    if parts == (2, 2):
        matrix[:, 1, :, 1] = roots.real.T
    if parts == (2, 1):
        single = np.arange(read) * 2 % length == 0
        matrix[single, 1] = 0
        matrix[~single] *= 2
    return matrix.reshape(read * parts[0], made * parts[1])


def _bound(step: _Step, given: Array, made: Array, threads: Threads) -> Call:
    """A call that does a step to the numbers of one vector, and leaves its own in another one."""
    if step.matrix is None:
        return _transform(step, given, made, threads)
    if step.inner:
        along = given.view(np.complex64).reshape(step.outer, step.size, step.inner)[:, : step.matrix.shape[1]]
        result = made.view(np.complex64).reshape(step.outer, step.made, step.inner)
        return threads.call(
            [
                partial(np.matmul, step.matrix[rows], along[batch, :, columns], result[batch, rows, columns])
                for batch, rows, columns in pieces_of(result.shape, 4 * step.matrix.shape[1], threads)
            ]
        )
    lines, results = given.reshape(step.outer, -1)[:, : len(step.matrix)], made.reshape(step.outer, -1)
    return threads.call(
        [
            partial(np.matmul, lines[rows], step.matrix[:, columns], results[rows, columns])
            for rows, columns in pieces_of(results.shape, len(step.matrix), threads)
        ]
    )


def _transform(step: _Step, given: Array, made: Array, threads: Threads) -> Call:
    """A call of numpy's transform, block by block."""
    source, target = (
        vector.view(np.complex64) if parts == 2 else vector
        for vector, parts in zip((given, made), step.parts, strict=True)
    )
    inner = step.inner or 1
    source, target = source.reshape(step.outer, step.size, inner), target.reshape(step.outer, step.made, inner)
    function = step.function if step.inverse else partial(_scaled, step.function)
    calls = [
        partial(function, source[rows, :, columns], step.length, 1, None, target[rows, :, columns])
        for rows, columns in even_blocks(
            (step.outer, inner),
            max(1, AT_ONCE // step.length),
            threads.sharing(NANOSECONDS * step.outer * step.length * inner),
        )
    ]
    return threads.call(calls)


def _scaled(
    function: Callable[..., object], given: Array, length: int, axis: int, norm: str | None, made: Array
) -> None:
    """numpy's transform and its `length` times as much: numpy copies what it does not divide by that, for lack of an
    f32 to multiply by."""
    function(given, length, axis, "forward", made)
    numbers = made.view(np.float32)
    np.multiply(numbers, np.float32(length), numbers)


def frames(work: Work, threads: Threads) -> Compiled | None:
    """STFT-15 of f32 with frames of a constant size and step: blocks of frames are weighed and transformed in turn."""
    (signal, window), (size, step) = work.required(2), (work.constant(number) for number in (2, 3))
    if signal.type != "f32" or size is None or step is None:
        return None
    length, stride, batch = size.item(), step.item(), prod(signal.shape[:-1])
    count, bins = (signal.shape[-1] - length) // stride + 1, length // 2 + 1
    ahead, item = (0, *signal.strides)[-2:]
    start = (length - window.shape[0]) // 2
    inside = slice(start, start + window.shape[0])
    ends = (bins, count) if work.attrs["transpose_frames"] else (count, bins)
    sharing = threads.sharing(NANOSECONDS * batch * count * length)
    pieces = even_blocks((batch, count), max(1, AT_ONCE // length), sharing)
    transform: Callable[..., object] = np.fft.rfft
    room = aligned(ITEM * length * max(prod(lengths(piece)) for piece in pieces))

    def bind(inputs: Arrays, outputs: Sequence[Array], scratch: Any) -> list[Call]:
        taken = view(inputs[0], (batch, count, length), (ahead, stride * item, item))
        weights = np.zeros(length, np.float32)
        weigh = partial(np.multiply, inputs[1], np.float32(length), weights[inside])  # as the transform divides by it
        made = outputs[0].view(np.complex64).reshape(batch, *ends)
        if work.attrs["transpose_frames"]:
            made = made.swapaxes(1, 2)

        def bound(piece: tuple[slice, ...], memory: Array) -> list[Call]:
            given = taken[piece]
            weighed = memory[: given.size].reshape(given.shape)
            return [
                partial(np.multiply, given, weights, weighed),
                partial(transform, weighed, length, 2, "forward", made[piece]),
            ]

        if window.value is not None:
            weigh()
        calls = threads.each(pieces, bound, scratch, room, shared=sharing > 1)
        return [calls] if window.value is not None else [weigh, calls]

    return with_posts(work, bind, room * sharing, doubtful=True)


COMPILERS = dict.fromkeys(("DFT-7", "IDFT-7", REAL, INVERSE_REAL), fourier) | {"STFT-15": frames}
