"""Windows that slide over spatial axes: where the kernel stops, and what of the data a block of windows covers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irrun.engines.work import Work
from irrun.records import NamedTuple
from irrun.spec import windows as spec


class Axis(NamedTuple):
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

    def meeting(self) -> tuple[Axis, slice]:
        """The axis of the taps that meet elements in any window, and which of the taps these are.

        Others see nothing but padding, as those of a wide dilation may. Some of these stay where windows would begin
        behind the first element without them.
        """
        first = range(-self.begin, -self.begin + self.kernel * self.dilation, self.dilation)
        span = (self.windows - 1) * self.stride
        met = [tap for tap, place in enumerate(first) if place + span >= 0 and place < self.size]
        if not met:
            return self, slice(0, self.kernel)
        taps = slice(min(met[0], self.begin // self.dilation), met[-1] + 1)
        begin = self.begin - taps.start * self.dilation
        return self._replace(kernel=taps.stop - taps.start, begin=begin), taps

    @property
    def met(self) -> bool:
        """Whether any tap meets an element in any window: others may all lie in the padding, or between two taps."""
        for place in range(-self.begin, -self.begin + self.kernel * self.dilation, self.dilation):
            first = max(-(place // self.stride), 0)  # of the windows in which it is not in front of all elements
            if first < self.windows and place + first * self.stride < self.size:
                return True
        return False

    @property
    def padded(self) -> bool:
        return self.begin > 0 or self.reached > 0

    @property
    def reached(self) -> int:
        """The padding behind that the windows reach to; negative where they leave elements out."""
        return self.covered(self.windows) - self.begin - self.size


def places_of(axes: Sequence[Axis], block: Sequence[slice]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Which elements of [..., *spatial] the windows `block` cover, and where these lie in a frame [..., *covered]."""
    places = [axis.places(cut) for axis, cut in zip(axes, block, strict=True)]
    return (..., *(elements for elements, _ in places)), (..., *(place for _, place in places))


def axes_of(
    attrs: Mapping[str, Any], spatial: Sequence[int], kernel: Sequence[int], windows: Sequence[int]
) -> list[Axis]:
    """The spatial axes of an op from its attributes and shapes, which tell how much padding there is behind."""
    names = ("strides", "pads_begin", "pads_end", "dilations", "auto_pad")
    grid = spec.axes_of(spatial, kernel, **{name: attrs[name] for name in names if name in attrs})
    return [
        Axis(size, taps, count, axis.stride, axis.dilation, *map(int, axis.pads))
        for axis, size, taps, count in zip(grid, spatial, kernel, windows, strict=True)
    ]


def transposed_axes_of(work: Work, kernel: Sequence[int]) -> list[Axis]:
    """The spatial axes of the convolution that would make the data of a transposed one out of its result."""
    (data,), result, attrs = work.required(1), work.outputs[0].shape[2:], work.attrs
    grid = spec.transposed_axes_of(data.shape[2:], kernel, **attrs)
    given = work.optional(2) is not None  # an output_shape
    begins = spec.crops_of(grid, result, **attrs) if given else [axis.begin for axis in grid]
    sizes = zip(grid, result, kernel, data.shape[2:], begins, strict=True)
    return [Axis(size, taps, count, axis.stride, axis.dilation, begin, 0) for axis, size, taps, count, begin in sizes]
