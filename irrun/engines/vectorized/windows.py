"""Windows that slide over spatial axes: where the kernel stops, and what of the data a block of windows covers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from irrun.engines.extents import view
from irrun.engines.vectorized.blocks import dense
from irrun.engines.work import Work
from irrun.spec.op import Array


@dataclass(frozen=True, slots=True)
class Axis:
    """One spatial axis: elements, taps of the kernel, stops of the kernel, and elements of padding on both sides.

    The padding behind is what the attributes say; windows may end before it or beyond.
    """

    size: int
    kernel: int
    windows: int
    stride: int
    dilation: int
    begin: int
    end: int

    def covered(self, windows: int) -> int:
        """Elements from the first tap of the first to the last tap of the last of so many windows."""
        return (windows - 1) * self.stride + (self.kernel - 1) * self.dilation + 1

    def places(self, cut: slice) -> tuple[slice, slice]:
        """The elements that the windows `cut` cover, and their places in a frame that begins with the first window.

        What they cover besides is padding.
        """
        first = cut.start * self.stride - self.begin
        start, stop = max(first, 0), min(first + self.covered(cut.stop - cut.start), self.size)
        stop = max(start, stop)
        return slice(start, stop), slice(start - first, stop - first)

    @property
    def padded(self) -> bool:
        return self.begin > 0 or self.covered(self.windows) - self.begin > self.size


def axes_of(
    attrs: Mapping[str, Any], spatial: Sequence[int], kernel: Sequence[int], windows: Sequence[int]
) -> list[Axis]:
    """The spatial axes of an op from its attributes and shapes, which tell how much padding there is behind."""
    axes = []
    dilations = attrs.get("dilations") or (1,) * len(spatial)
    for number, (size, taps, count) in enumerate(zip(spatial, kernel, windows, strict=True)):
        stride, dilation = attrs["strides"][number], dilations[number]
        begin, end, auto_pad = 0, 0, attrs["auto_pad"]
        if auto_pad == "explicit":
            begin, end = attrs["pads_begin"][number], attrs["pads_end"][number]
        elif auto_pad != "valid":
            total = max((-(-size // stride) - 1) * stride + (taps - 1) * dilation + 1 - size, 0)
            begin = total // 2 if auto_pad == "same_upper" else total - total // 2
            end = total - begin
        axes.append(Axis(size, taps, count, stride, dilation, begin, end))
    return axes


def patches(frame: Array, axes: Sequence[Axis], counts: Sequence[int]) -> Array:
    """A view [channels, *kernel, *counts] of the first windows of a frame [channels, *spatial]."""
    strides = frame.strides[1:]
    seen: Array = view(
        frame,
        (len(frame), *(axis.kernel for axis in axes), *counts),
        (
            frame.strides[0],
            *(stride * axis.dilation for stride, axis in zip(strides, axes, strict=True)),
            *(stride * axis.stride for stride, axis in zip(strides, axes, strict=True)),
        ),
    )
    return seen


@dataclass(frozen=True, slots=True)
class Geometry:
    """A grouped convolution: images, groups, channels and features per group, and spatial axes."""

    images: int
    groups: int
    channels: int
    features: int
    axes: tuple[Axis, ...]

    @property
    def windows(self) -> tuple[int, ...]:
        return tuple(axis.windows for axis in self.axes)

    @property
    def taps(self) -> int:
        return prod(axis.kernel for axis in self.axes)

    @property
    def operations(self) -> float:
        """Additions and multiplications for one image."""
        return 2.0 * self.groups * self.features * prod(self.windows) * self.channels * self.taps


def geometry_of(work: Work) -> Geometry | None:
    """The geometry of a Convolution-1 or GroupConvolution-1 of f32 with dense filters; None if it is something else."""
    data, filters = work.inputs[:2]
    output = work.outputs[0]
    if data is None or filters is None or any(tensor.type != "f32" for tensor in (data, filters, output)):
        return None
    if not dense(filters):
        return None
    shape = filters.shape if work.name == "GroupConvolution-1" else (1, *filters.shape)
    groups, features, channels = shape[:3]
    axes = axes_of(work.attrs, data.shape[2:], shape[3:], output.shape[2:])
    return Geometry(data.shape[0], groups, channels, features, tuple(axes))
