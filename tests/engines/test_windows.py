"""The geometry of windows that both engines go by."""

from __future__ import annotations

import numpy as np

from irrun.engines.windows import Axis, axes_of, transposed_axes_of
from irrun.engines.work import Operand, Post, Work

ATTRS = {"strides": (2,), "pads_begin": (1,), "pads_end": (2,), "dilations": (2,), "auto_pad": "explicit"}


def test_padding_as_the_attributes_say_and_as_the_windows_reach() -> None:
    (axis,) = axes_of(ATTRS, (9,), (3,), (4,))
    assert axis == Axis(size=9, kernel=3, windows=4, stride=2, dilation=2, begin=1, end=2)
    assert (axis.covered(4), axis.reached, axis.padded) == (11, 1, True)
    assert axis.places(slice(0, 1)) == (slice(0, 4), slice(1, 5))
    assert axis.places(slice(3, 4)) == (slice(5, 9), slice(0, 4))
    (axis,) = axes_of(ATTRS | {"auto_pad": "same_lower"}, (9,), (3,), (5,))
    assert (axis.begin, axis.end, axis.reached) == (2, 2, 2)
    (axis,) = axes_of({"strides": (3,), "pads_begin": (0,), "pads_end": (0,), "auto_pad": "valid"}, (9,), (2,), (3,))
    assert (axis.dilation, axis.reached, axis.padded) == (1, -1, False)


def test_taps_that_meet_elements() -> None:
    def of(size: int, kernel: int, dilation: int, begin: int, windows: int, stride: int = 1) -> tuple[int, int, slice]:
        axis, taps = Axis(size, kernel, windows, stride, dilation, begin, 0).meeting()
        assert axis == Axis(size, taps.stop - taps.start, windows, stride, dilation, axis.begin, 0)
        return axis.kernel, axis.begin, taps

    assert of(16, 3, 24, 24, 16) == (1, 0, slice(1, 2))
    assert of(16, 3, 12, 12, 16) == (3, 12, slice(0, 3))
    assert of(4, 5, 3, 6, 4) == (3, 3, slice(1, 4))
    assert of(4, 3, 4, 3, 1) == (2, 3, slice(0, 2))  # the first tap would meet nothing, but the second one is inside
    assert of(4, 3, 1, 0, 2) == (3, 0, slice(0, 3))
    assert of(1, 2, 5, 3, 1) == (2, 3, slice(0, 2))  # nothing at all


def test_crops_of_transposed_convolutions() -> None:
    data, result = (Operand("f32", shape, np.empty(shape, np.float32).strides) for shape in ((1, 4, 5), (1, 2, 10)))
    attrs = ATTRS | {"output_padding": (), "strides": (2,), "dilations": (1,)}
    lengths = Operand("i64", (1,), (8,), np.array([10]))
    for own, begin in (([], 1), ([None], 1), ([lengths], 0)):
        (axis,) = transposed_axes_of(Work("", attrs, [data, None, *own], [result]), (3,))
        assert (axis.size, axis.windows, axis.begin) == (10, 5, begin)
    later = Work("", attrs, [data, None, result], [result], [Post("Add-1", {}, 2)])
    assert transposed_axes_of(later, (3,))[0].begin == 1
    upper = attrs | {"auto_pad": "same_upper"}
    assert transposed_axes_of(Work("", upper, [data, None, lengths], [result]), (3,))[0].begin == 1
