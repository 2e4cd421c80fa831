"""Constants with which ops are defined, but which are seldom meant: what is said of them before a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from irrun.spec import UNLIKELY, UNSORTED, Doubt, Tensor, comparable

Tensors = Mapping[str, Tensor]
Attrs = Mapping[str, Any]

PILLOW = -0.5
"""The coefficient of Pillow's bicubic resampling."""


def indices_outside(tensors: Tensors, attrs: Attrs) -> Iterator[Doubt]:
    """Indices of a Gather beyond its data."""
    data, axis = tensors["data"], tensors["axis"]
    numbers = axis.numbers if axis.known else None
    if data.shape is None or not numbers or not -len(data.shape) <= numbers[0] < len(data.shape):
        return
    size = data.shape[int(numbers[0])]
    if isinstance(size, int):
        yield from _outside("indices", tensors["indices"], -size, size, "zeros stand in its place")


def positions_outside(tensors: Tensors, attrs: Attrs) -> Iterator[Doubt]:
    """Indices of a OneHot of which nothing comes; negative ones mean that where they are to be ignored."""
    depth = tensors["depth"]
    numbers = depth.numbers if depth.known else None
    if not numbers or not isinstance(numbers[0], int):
        return
    mode = attrs.get("negative_indices_mode")
    least = 0 if mode is None else -numbers[0] if mode == "normalize" else -math.inf
    yield from _outside("indices", tensors["indices"], least, numbers[0], "`off_value` stands in all its places")


def negative_variances(tensors: Tensors, attrs: Attrs) -> Iterator[Doubt]:
    epsilon = attrs["epsilon"]
    place = _first(tensors["variance"], lambda numbers: numbers + epsilon <= 0)
    if place is not None:
        channel, variance = place
        message = f"`variance[{channel}]` is {variance:g}, and `epsilon` {epsilon:g}: the channel has no finite numbers"
        yield Doubt(message, "variance", UNLIKELY)


def overlaps_outside(tensors: Tensors, attrs: Attrs) -> Iterator[Doubt]:
    """The threshold of boxes that overlap, which do so by a part between 0 and 1."""
    threshold, sigma = tensors.get("iou_threshold"), tensors.get("soft_nms_sigma")
    if threshold is None:
        return
    if sigma is not None and not (sigma.known and sigma.numbers in ([0], [])):  # which has another way to hide boxes
        return
    numbers = threshold.numbers if threshold.known else None
    if numbers and (numbers[0] < 0 or numbers[0] > 1):
        what = "all boxes but the best of each class are removed" if numbers[0] < 0 else "no box is removed"
        yield Doubt(f"`iou_threshold` is {numbers[0]:g}, outside [0, 1]: {what}", "iou_threshold", UNLIKELY)


def unsorted_rows(tensors: Tensors, attrs: Attrs) -> Iterator[Doubt]:
    rows = tensors["sorted"].value if tensors["sorted"].known else None
    if rows is None or not rows.ndim:
        return
    falls = np.argwhere(rows[..., 1:] < rows[..., :-1])
    if len(falls):
        *row, place = map(int, falls[0])
        here, before = (", ".join(map(str, (*row, number))) for number in (place + 1, place))
        value, other = rows[(*row, place + 1)], rows[(*row, place)]
        message = f"`sorted[{here}]` is {value}, below `sorted[{before}]`, which is {other}: a search may miss it"
        yield Doubt(message, "sorted", UNSORTED)


def negative_repeats(tensors: Tensors, attrs: Attrs) -> Iterator[Doubt]:
    found = _first(tensors["repeats"], lambda numbers: numbers < 0)
    if found is not None:
        place, value = found
        yield Doubt(f"`repeats[{place}]` is {value}, which counts as 0: nothing comes out", "repeats", UNLIKELY)


def crops_beyond(tensors: Tensors, attrs: Attrs) -> Iterator[Doubt]:
    """Pads that crop more than there is, of which OpenVINO refuses to run the model."""
    begins, ends = (pads.numbers if pads.known else None for pads in (tensors["pads_begin"], tensors["pads_end"]))
    for axis, (size, begin, end) in enumerate(zip(tensors["data"].shape or (), begins or (), ends or (), strict=False)):
        if isinstance(size, int) and size + begin + end < 0:
            message = f"dimension {axis} has {size} elements, of which pads of {begin} and {end} crop more"
            yield Doubt(f"{message}: nothing comes out", "pads_begin" if begin < end else "pads_end", UNLIKELY)
            return


def exchanged_limits(tensors: Tensors, attrs: Attrs) -> Iterator[Doubt]:
    """A lower limit of inputs above the upper one; that of outputs may be, where a negative factor is in it."""
    lows, highs = (tensors[name].numbers if tensors[name].known else None for name in ("input_low", "input_high"))
    if not lows or not highs or (len(lows) != len(highs) and 1 not in (len(lows), len(highs))):
        return
    count = max(len(lows), len(highs))
    pairs = zip(lows * count if len(lows) == 1 else lows, highs * count if len(highs) == 1 else highs, strict=True)
    found = next(((low, high) for low, high in pairs if low > high), None)
    if found is not None:
        message = (
            f"`input_low` is {found[0]:g}, above `input_high`, which is {found[1]:g}: what lies between falls where"
        )
        yield Doubt(f"{message} it should rise", "input_low", UNLIKELY)


def pillow_coefficients(tensors: Tensors, attrs: Attrs) -> Iterator[Doubt]:
    """A coefficient other than Pillow's, where its cubic mode is asked for.

    Converters from PyTorch, which computes as Pillow does, write the coefficient of the other cubic mode.
    """
    given = attrs["cube_coeff"]
    if attrs["mode"] == "bicubic_pillow" and given != PILLOW:
        message = f"`cube_coeff` is {given:g} for `bicubic_pillow`: irrun resamples with it, but Pillow, PyTorch and"
        yield Doubt(f"{message} OpenVINO's CPU plugin with {PILLOW} whatever it is", None, UNLIKELY)


def _outside(name: str, tensor: Tensor, low: float, high: int, what: str) -> Iterator[Doubt]:
    found = _first(tensor, lambda numbers: (numbers < low) | (numbers >= high))
    if found is not None:
        place, value = found
        where = f"`{name}[{place}]`" if place else f"`{name}`"
        range = f"below {high}" if low == -math.inf else f"inside [{low}, {high})"
        yield Doubt(f"{where} is {value}, expected a number {range}: {what}", name, UNLIKELY)


def _first(tensor: Tensor, wrong: Callable[[Any], Any]) -> tuple[str, Any] | None:
    """The place and the value of the first number of a known tensor that is `wrong`; None where there is none."""
    if not tensor.known:
        return None
    if (listed := tensor.listed) is not None and not any(map(wrong, listed)):
        return None
    value = tensor.value
    assert value is not None
    found = np.argwhere(wrong(comparable(value)))
    if not len(found):
        return None
    place = tuple(map(int, found[0]))
    return ", ".join(map(str, place)), value[place].item()
