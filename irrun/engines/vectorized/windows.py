"""Grouped convolutions of dense filters, and the windows that they see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from irrun.engines.axes import is_dense
from irrun.engines.extents import view
from irrun.engines.windows import Axis, axes_of, transposed_axes_of
from irrun.engines.work import Work
from irrun.spec.op import Array


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
    """The geometry of a convolution of f32 with dense filters, or of a transposed one; None if it is something else.

    The axes of a transposed one are those of the convolution that would make its data out of its output.
    """
    (data, filters), output = work.required(2), work.outputs[0]
    if any(tensor.type != "f32" for tensor in (data, filters, output)) or not is_dense(filters):
        return None
    groups, *sizes = filters.shape if work.name.startswith("Group") else (1, *filters.shape)
    kernel = sizes[2:]
    if "Backprop" in work.name:
        channels, features = sizes[:2]
        axes = transposed_axes_of(work, kernel)
    else:
        features, channels = sizes[:2]
        axes = axes_of(work.attrs, data.shape[2:], kernel, output.shape[2:])
    return Geometry(data.shape[0], groups, channels, features, tuple(axes))
