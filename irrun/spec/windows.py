"""The geometry of windows that slide over spatial axes, with sizes that may be unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irrun.records import NamedTuple
from irrun.spec.dims import Size, largest, smallest


class Axis(NamedTuple):
    """One spatial axis under a sliding kernel. All fields but the last two count elements."""

    size: Size
    kernel: Size
    stride: int = 1
    dilation: int = 1
    begin: int = 0
    end: int = 0
    auto_pad: str = "explicit"
    rounding: str = "floor"

    @property
    def reach(self) -> Size:
        """From the first to the last tap of the dilated kernel, both included."""
        reach: Size = (self.kernel - 1) * self.dilation + 1
        return reach

    @property
    def spread(self) -> Size:
        """Elements between the first and the last one that a transposed convolution lays a kernel on."""
        spread: Size = (self.size - 1) * self.stride + self.reach
        return spread

    @property
    def pads(self) -> tuple[Size, Size]:
        """Padding before and after the axis; `same_upper` puts the odd element behind, `same_lower` in front."""
        if self.auto_pad == "explicit":
            return self.begin, self.end
        if self.auto_pad == "valid":
            return 0, 0
        covered = (_ceil_divide(self.size, self.stride) - 1) * self.stride + self.reach
        total: Size = largest(covered - self.size, 0)
        less = total // 2
        more = total - less
        return (less, more) if self.auto_pad == "same_upper" else (more, less)

    @property
    def windows(self) -> Size:
        """Places where the kernel stops."""
        if self.auto_pad.startswith("same") and (self.rounding != "ceil" or (self.reach >= self.stride) is True):
            return _ceil_divide(self.size, self.stride)
        begin, end = self.pads
        steps = self.size + begin + end - self.reach
        if self.rounding == "floor":
            count: Size = steps // self.stride + 1
            return count
        count = _ceil_divide(steps, self.stride) + 1
        if (
            self.rounding == "ceil" or (end + self.stride <= self.reach) is True
        ):  # no window starts in the padding behind
            return count
        starts_before_the_end_padding = _ceil_divide(self.size + begin, self.stride)
        return smallest(count, largest(count - 1, starts_before_the_end_padding))

    def meet(self, windows: int) -> bool:
        """Whether each of so many windows has a tap on an element, where all is known: others are of padding alone."""
        begin, _ = self.pads
        starts = [number * self.stride - begin for number in range(windows)]
        taps = [max(-(start // self.dilation), 0) for start in starts]
        return all(
            tap < self.kernel and start + tap * self.dilation < self.size
            for start, tap in zip(starts, taps, strict=True)
        )

    @property
    def fits(self) -> Any:
        """Whether the padded axis holds the kernel at least once."""
        return self.auto_pad.startswith("same") or self.size + sum(self.pads) >= self.reach


def _ceil_divide(size: Size, by: int) -> Size:
    quotient: Size = size if by == 1 else (size + by - 1) // by
    return quotient


def axes_of(
    spatial: Sequence[Size],
    kernel: Sequence[Size],
    *,
    strides: Sequence[int],
    pads_begin: Sequence[int] = (),
    pads_end: Sequence[int] = (),
    dilations: Sequence[int] = (),
    auto_pad: str = "explicit",
    rounding_type: str = "floor",
) -> list[Axis]:
    """The spatial axes of an op, from its attributes; pads are ignored unless auto_pad is `explicit`.

    Lists without values mean a stride or dilation of 1, and no padding.
    """
    none, one = (0,) * len(spatial), (1,) * len(spatial)
    begins, ends = (pads_begin or none, pads_end or none) if auto_pad == "explicit" else (none, none)
    parts = zip(spatial, kernel, strides or one, dilations or one, begins, ends, strict=True)
    return [
        Axis(size, taps, stride, dilation, begin, end, auto_pad, rounding_type)
        for size, taps, stride, dilation, begin, end in parts
    ]


def transposed_axes_of(spatial: Sequence[Size], kernel: Sequence[Size], *, auto_pad: str, **attrs: Any) -> list[Axis]:
    """The spatial axes of the data of a transposed convolution; its pads are cropped from the result."""
    window = {name: attrs[name] for name in ("strides", "dilations", "pads_begin", "pads_end")}
    return axes_of(spatial, kernel, auto_pad="explicit" if auto_pad == "explicit" else "valid", **window)


def crops_of(
    grid: Sequence[Axis], lengths: Sequence[Any], *, auto_pad: str, output_padding: Sequence[int], **_: Any
) -> list[int]:
    """What a transposed convolution cuts off in front where its result is to have these lengths: half of what is over.

    Where that is odd, `same_upper` cuts off the larger half.
    """
    extra = output_padding or (0,) * len(grid)
    surplus = [max(int(axis.spread) + more - n, 0) for axis, more, n in zip(grid, extra, lengths, strict=True)]
    return [total - total // 2 if auto_pad == "same_upper" else total // 2 for total in surplus]
