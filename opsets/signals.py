"""Signal ops: Fourier transforms of axes and of short frames; complex numbers are pairs along a last axis of 2."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from irrun.spec import (
    BOOL,
    FLOAT,
    INDEX,
    Array,
    Attr,
    Dim,
    Input,
    Node,
    Output,
    Shape,
    Shapes,
    Size,
    Transforming,
    every,
    fresh,
    op,
    shape_text,
)

from ._precision import widened

TYPES = {"T": FLOAT, "T_IND": INDEX, "T_SIZE": INDEX}

MAX_LIGHT = 1 << 18
"""Elements up to which numpy transforms the last axis: that takes up to half a millisecond longer than scipy, which
takes a third of a second to load. Along several axes it takes five times as long."""

MAX_AT_ONCE = 1 << 14
"""Elements that numpy transforms at once, which stay in the cache: all at once take twice as long."""
AXES = (
    Input("axes", "T_IND", "[num_axes]"),
    Input("signal_size", "T_SIZE", "[num_axes]", optional=True),
)
COMPLEX = (Input("data", "T", "[D_0, *D, 2]"), *AXES)
TRANSFORMING = Transforming("axes")

FRAME_TYPES = {"T": FLOAT, "T_INT": INDEX}
FRAMES = (
    Input("window", "T", "[window_length]"),
    Input("frame_size", "T_INT", "[]"),
    Input("frame_step", "T_INT", "[]", lenient=True),
)


@op("DFT-7", types=TYPES, inputs=COMPLEX, outputs=[Output("result", "T", "[*sizes, 2]")], traits=[TRANSFORMING])
def dft(data: Array, axes: Array, signal_size: Array | None = None) -> Any:
    """Transform complex data along axes; signal_size trims an axis before, or pads it with zeros at its end.

    Constraints:
        C1: each axis lies in [-r, r), r the rank of data without its last axis.
        C2: the axes differ from each other.
        C3: each signal size is -1 (the size of the axis) or not negative.

    Deviation: OpenVINO takes no f64.

    Source: signals/dft-7.rst

    >>> op(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [3.0, 0.0]]), np.array([0]), np.array([2])).tolist()
    [[3.0, 0.0], [-1.0, 0.0]]
    """
    values = complex_of(data)
    return pairs_of(transformed("fftn", values, *lengths_of(values.shape, axes, signal_size)), data.dtype)


@op("IDFT-7", types=TYPES, inputs=COMPLEX, outputs=[Output("result", "T", "[*sizes, 2]")], traits=[TRANSFORMING])
def idft(data: Array, axes: Array, signal_size: Array | None = None) -> Any:
    """Undo the transformation of complex data along axes; signal_size trims or pads an axis before as in DFT-7.

    Constraints:
        C1: each axis lies in [-r, r), r the rank of data without its last axis.
        C2: the axes differ from each other.
        C3: each signal size is -1 (the size of the axis) or not negative.

    Deviation: OpenVINO takes no f64.

    Source: signals/idft-7.rst

    >>> op(np.array([[3.0, 0.0], [-1.0, 0.0]]), np.array([-1])).tolist()
    [[1.0, 0.0], [2.0, 0.0]]
    """
    values = complex_of(data)
    return pairs_of(transformed("ifftn", values, *lengths_of(values.shape, axes, signal_size)), data.dtype)


@dft.shapes
@idft.shapes
def _(node: Node) -> Shapes:
    *sizes, _ = node.shape("data")
    cuts = cut_axes(node, tuple(sizes))
    if cuts is None and node.inputs["signal_size"] is not None:
        return {"sizes": tuple(fresh() for _ in sizes)}
    for axis, size in (cuts or {}).items():
        sizes[axis] = sizes[axis] if size is None else size
    return {"sizes": tuple(sizes)}


@op(
    "RDFT-9",
    types=TYPES,
    inputs=[Input("data", "T", "[D_0, *D]"), *AXES],
    outputs=[Output("result", "T", "[*sizes, 2]")],
    traits=[TRANSFORMING],
)
def rdft(data: Array, axes: Array, signal_size: Array | None = None) -> Any:
    """Transform real data along axes, of which the last one keeps the first half, as the other half mirrors it.

    signal_size trims an axis before, or pads it with zeros at its end. Without axes the data become complex.

    Constraints:
        C1: each axis lies in [-r, r), r the rank of data.
        C2: the axes differ from each other.
        C3: each signal size is -1 (the size of the axis) or not negative.

    Deviation: OpenVINO makes nothing, instead of a single zero, of an empty last axis; it takes no f64, and its
    CPU plugin no signal size that is -1 or larger than the axis.

    Source: signals/rdft-9.rst

    >>> op(np.array([1.0, 2.0, 0.0, 3.0]), np.array([0])).tolist()
    [[6.0, 0.0], [1.0, 1.0], [-4.0, 0.0]]
    """
    values = widened(data)
    along, lengths = lengths_of(data.shape, axes, signal_size)
    if not along:
        return pairs_of(values + np.zeros((), np.complex64), data.dtype)
    kept = [*lengths[:-1], lengths[-1] // 2 + 1]
    return pairs_of(transformed("rfftn", values, along, lengths, kept), data.dtype)


@rdft.shapes
def _(node: Node) -> Shapes:
    sizes = list(node.shape("data"))
    cuts = cut_axes(node, tuple(sizes))
    if cuts is None:
        return {"sizes": tuple(fresh() for _ in sizes)}
    for axis, size in cuts.items():
        sizes[axis] = sizes[axis] if size is None else size
    if cuts:
        last = list(cuts)[-1]
        sizes[last] = sizes[last] // 2 + 1
    return {"sizes": tuple(sizes)}


@op("IRDFT-9", types=TYPES, inputs=COMPLEX, outputs=[Output("result", "T", "[*sizes]")], traits=[TRANSFORMING])
def irdft(data: Array, axes: Array, signal_size: Array | None = None) -> Any:
    """Undo RDFT-9: the data hold the first half of the last axis, and the mirror image of it is the other half.

    signal_size is the size of the result; along the last axis as much of the first half as it needs is read, or
    padded with zeros. Without axes the real part is left.

    Constraints:
        C1: each axis lies in [-r, r), r the rank of data without its last axis.
        C2: the axes differ from each other.
        C3: each signal size is -1 (the size of the axis; for the last axis twice its size without one) or not
            negative.
        C4: the last of the axes has elements, unless its signal size is given.

    Deviation: the page pads or trims the last axis after mirroring, which would not undo RDFT-9 for an odd size;
    OpenVINO does it before, and so does this. OpenVINO takes no f64, and its CPU plugin no signal size of -1.

    Source: signals/irdft-9.rst

    >>> op(np.array([[6.0, 0.0], [1.0, 1.0], [-4.0, 0.0]]), np.array([0])).tolist()
    [1.0, 2.0, 0.0, 3.0]
    """
    values = complex_of(data)
    along, lengths = lengths_of(values.shape, axes, signal_size)
    if not along:
        return values.real.astype(data.dtype)
    if signal_size is None or signal_size[-1] == -1:
        lengths[-1] = 2 * (lengths[-1] - 1)
    return transformed("irfftn", values, along, lengths).astype(data.dtype, copy=False)


@irdft.shapes
def _(node: Node) -> Shapes:
    *sizes, _ = node.shape("data")
    cuts = cut_axes(node, tuple(sizes))
    if cuts is None:
        return {"sizes": tuple(fresh() for _ in sizes)}
    last = list(cuts)[-1] if cuts else None
    for axis, size in cuts.items():
        if size is None and axis == last:
            half = sizes[axis]
            node.require("C4", half >= 1, f"axis {axis} of `data` is empty, and no signal size is given for it", "data")
            size = 2 * (at_least(1, half) - 1)
        sizes[axis] = sizes[axis] if size is None else size
    return {"sizes": tuple(sizes)}


@op(
    "STFT-15",
    types=FRAME_TYPES,
    inputs=[Input("signal", "T", "[signal_size] | [batch, signal_size]"), *FRAMES],
    outputs=[Output("result", "T", "[*result]")],
    attrs=[Attr("transpose_frames", BOOL, assumed=False)],
)
def stft(signal: Array, window: Array, frame_size: Array, frame_step: Array, *, transpose_frames: bool) -> Any:
    """Cut a signal into frames, weigh each by the window, and transform it as RDFT-9 does.

    A window shorter than a frame is padded with zeros on both sides, at the end with one more if need be.

    Constraints:
        C1: frame_size lies in [1, signal_size].
        C2: frame_step is positive.
        C3: window_length lies in [1, frame_size].

    Source: signals/stft-15.rst

    >>> op(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0]), np.array(2), np.array(1), transpose_frames=False).tolist()
    [[[3.0, 0.0], [-1.0, 0.0]], [[5.0, 0.0], [-1.0, 0.0]]]
    """
    size, step = int(frame_size), int(frame_step)
    frames = np.lib.stride_tricks.sliding_window_view(widened(signal), size, -1)[..., ::step, :]
    weighed = frames * framed_window(widened(window), size)
    spectra = transformed("rfftn", weighed, [weighed.ndim - 1], [size], [size // 2 + 1])
    return pairs_of(spectra.swapaxes(-1, -2) if transpose_frames else spectra, signal.dtype)


@stft.shapes
def _(node: Node) -> Shapes:
    size, step = check_frames(node, node.dims.get("signal_size"))
    *batch, length = node.shape("signal")
    frames = at_least(1, (length - size) // step + 1)
    ends = (size // 2 + 1, frames) if node.attrs["transpose_frames"] else (frames, size // 2 + 1)
    return {"result": (*batch, *ends, 2)}


@op(
    "ISTFT-16",
    types=FRAME_TYPES,
    inputs=[
        Input("data", "T", "[fft_results, frames, 2] | [batch, fft_results, frames, 2]"),
        *FRAMES,
        Input("signal_length", "T_INT", "[] | [1]", optional=True, lenient=True),
    ],
    outputs=[Output("signal", "T", "[*signal]")],
    attrs=[Attr("center", BOOL, assumed=False), Attr("normalized", BOOL, assumed=False)],
)
def istft(
    data: Array,
    window: Array,
    frame_size: Array,
    frame_step: Array,
    signal_length: Array | None = None,
    *,
    center: bool,
    normalized: bool,
) -> Any:
    """Undo STFT-15 with transposed frames: the sum of the weighed frames, divided by that of the squared windows.

    Where no window is, and behind the last frame, the signal is zero. With center, half a frame at the start is left
    out; so is half a frame at the end, unless signal_length asks for it.

    Constraints:
        C1: frame_size is positive.
        C2: frame_step is positive.
        C3: window_length lies in [1, frame_size].
        C4: fft_results is frame_size // 2 + 1.
        C5: there is a frame.
        C6: signal_length is not negative.

    The page does not say how frames are weighed; this is what OpenVINO 2026 does.
    Deviation: with center and an odd frame_size, OpenVINO makes the signal one element longer than the page.

    Source: signals/istft-16.rst

    >>> data = np.array([[[3.0, 0.0], [5.0, 0.0]], [[-1.0, 0.0], [-1.0, 0.0]]])
    >>> op(data, np.array([1.0, 1.0]), np.array(2), np.array(1), center=False, normalized=False).tolist()
    [1.0, 2.0, 3.0]
    """
    size, step = int(frame_size), int(frame_step)
    spectra = complex_of(data).swapaxes(-1, -2)
    frames = transformed("irfftn", spectra, [spectra.ndim - 1], [size])
    if normalized:
        frames = frames * frames.dtype.type(size**0.5)
    weights = framed_window(widened(window), size)
    total = overlapped(frames * weights, step)
    weight = overlapped(np.broadcast_to(weights * weights, frames.shape[-2:]), step)
    signal = np.divide(total, weight, out=np.zeros_like(total), where=weight != 0)[..., size // 2 if center else 0 :]
    length = (spectra.shape[-2] - 1) * step + (0 if center else size)
    if signal_length is not None:
        length = int(signal_length.item())
    signal = signal[..., :length]
    behind = length - signal.shape[-1]
    return np.pad(signal, [(0, 0)] * (signal.ndim - 1) + [(0, behind)]).astype(data.dtype, copy=False)


@istft.shapes
def _(node: Node) -> Shapes:
    size, step = check_frames(node, None)
    results, frames = node.dims.get("fft_results"), node.dims.get("frames")
    if results is not None:
        expected = size // 2 + 1
        node.require("C4", results == expected, f"`fft_results` is {results}, expected {expected}", "data")
    if frames is not None:
        node.require("C5", frames >= 1, "`data` has no frames", "data")
    given = None
    if node.inputs["signal_length"] is not None:
        given = node.size("signal_length")
        node.require("C6", given >= 0, f"`signal_length` is {given}, expected 0 or more", "signal_length")
    *batch, _, count, _ = node.shape("data")
    length = (at_least(1, count) - 1) * step + (0 if node.attrs["center"] else size)
    return {"signal": (*batch, at_least(0, length if given is None else given))}


def complex_of(data: Array) -> Any:
    """The complex numbers whose real and imaginary parts are the last axis of `data`, 16-bit ones as f32."""
    wide = np.ascontiguousarray(widened(data))
    return wide.view(np.result_type(wide, np.complex64))[..., 0]


def pairs_of(values: Array, dtype: np.dtype[Any]) -> Any:
    """Real and imaginary parts along a new last axis."""
    dense = np.ascontiguousarray(values)
    return dense.view(dense.real.dtype).reshape(*values.shape, 2).astype(dtype, copy=False)


def lengths_of(shape: tuple[int, ...], axes: Array, signal_size: Array | None) -> tuple[list[int], list[int]]:
    """The axes counted from the front, and the size of each before its transformation."""
    along = [axis % len(shape) for axis in axes.tolist()]
    sizes = [-1] * len(along) if signal_size is None else signal_size.tolist()
    return along, [shape[axis] if size == -1 else size for axis, size in zip(along, sizes, strict=True)]


def transformed(name: str, values: Array, along: list[int], lengths: list[int], kept: list[int] | None = None) -> Any:
    """`values` after the transformation that scipy.fft calls `name`; the result has `kept` (`lengths`) elements."""
    shape = list(values.shape)
    for axis, size in zip(along, lengths if kept is None else kept, strict=True):
        shape[axis] = size
    if not along:
        return values.copy()
    real = values.real.dtype
    dtype = real if name == "irfftn" else np.result_type(real, np.complex64)
    if not values.size or not all(lengths):  # a sum of no terms is zero
        return np.zeros(shape, dtype)
    if along == [values.ndim - 1] and max(values.size, prod(shape)) <= MAX_LIGHT:
        rows, result = values.reshape(-1, values.shape[-1]), np.empty((prod(shape[:-1]), shape[-1]), dtype)
        few = max(1, MAX_AT_ONCE // values.shape[-1])
        for first in range(0, len(rows), few):
            result[first : first + few] = getattr(np.fft, name)(rows[first : first + few], lengths, [1])
        return result.reshape(shape)
    import scipy.fft

    return getattr(scipy.fft, name)(values, lengths, along)


def framed_window(window: Array, size: int) -> Any:
    """`window` in the middle of `size` elements, the others zero."""
    start = (size - window.size) // 2
    return np.pad(window, (start, size - window.size - start))


def overlapped(frames: Array, step: int) -> Any:
    """The sum of `frames` [..., count, size], each of which starts `step` elements behind the one before."""
    *batch, count, size = frames.shape
    pieces = -(-size // step)
    padded = np.pad(frames, [(0, 0)] * (frames.ndim - 1) + [(0, pieces * step - size)])
    parts = padded.reshape(*batch, count, pieces, step)
    total = np.zeros((*batch, count + pieces - 1, step), frames.dtype)
    for piece in reversed(range(pieces)):  # adds the frames in their order
        total[..., piece : piece + count, :] += parts[..., piece, :]
    return total.reshape(*batch, (count + pieces - 1) * step)[..., : (count - 1) * step + size]


def cut_axes(node: Node, shape: Shape) -> dict[int, Size | None] | None:
    """The axes to transform, in order, with their signal sizes (None: that of the axis); None if they are unknown."""
    rank = len(shape)
    count = node.dims.get("num_axes")
    if count is not None:
        node.require("C2", count <= rank, f"`axes` has {count} elements, expected at most {rank}", "axes")
    connected = node.inputs["signal_size"] is not None
    sizes = node.sizes("signal_size")
    for position, size in enumerate(sizes or ()):
        message = f"`signal_size[{position}]` is {size}, expected -1 or more"
        node.require("C3", size >= -1, message, "signal_size")
    axes = node.value("axes")
    if axes is None:
        return None
    cuts: dict[int, Size | None] = {}
    for position, axis in enumerate(axes.tolist()):
        place = f"`axes[{position}]` is {axis}"
        node.require("C1", -rank <= axis < rank, f"{place}, outside [{-rank}, {rank}) for {shape_text(shape)}", "axes")
        node.require("C2", axis % rank not in cuts, f"{place}, which is an axis of an element before", "axes")
        size = sizes[position] if sizes else fresh() if connected else -1
        unsure = isinstance(size, Dim) and (size >= 0) is not True  # it may be -1
        cuts[axis % rank] = fresh() if unsure else None if size == -1 else size
    return cuts


def check_frames(node: Node, signal: Size | None) -> tuple[Size, Size]:
    """The size and the step of the frames of a signal of `signal` elements (None: of any number)."""
    size, step = node.size("frame_size"), node.size("frame_step")
    if signal is None:
        node.require("C1", size >= 1, f"`frame_size` is {size}, expected 1 or more", "frame_size")
    else:
        fits = [size >= 1, size <= signal]
        node.require("C1", every(fits), f"`frame_size` is {size}, outside [1, {signal}]", "frame_size")
    node.require("C2", step >= 1, f"`frame_step` is {step}, expected 1 or more", "frame_step")
    length = node.dims.get("window_length")
    if length is not None:
        fits = [length >= 1, length <= size]
        node.require("C3", every(fits), f"`window_length` is {length}, outside [1, {size}]", "window")
    return at_least(1, size), at_least(1, step)


def at_least(low: int, size: Size) -> Size:
    """`size`, of which is known that it is not below `low`."""
    return size.within(low) if isinstance(size, Dim) else size
