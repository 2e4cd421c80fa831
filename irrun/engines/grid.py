"""Tensors on a grid: few values at even distances, each of which stands in a byte as its number, its code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grid:
    """The f32 values scale * (code - zero) of codes of the element type `type`, "u8" or "i8".

    There is one `scale`, above 0, for all of the tensor, or one for each channel along axis 1. Of the codes there are
    `levels`, from `first` on.
    """

    type: str
    scale: tuple[float, ...]
    zero: int
    first: int
    levels: int
