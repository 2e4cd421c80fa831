"""Images of brightness and colours of half the size as red, green and blue: NV12 and I420."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np

from irrun.engines.compiled.loops import looped, unordered
from irrun.engines.compiled.team import Team
from irrun.engines.work import Arrays, Call, Compiled, Work
from irrun.spec.op import Array

Pixels: TypeAlias = Array
"""Bytes or Floats."""

WHOLE = True
"""Whether pixels are bytes, which are rounded."""

RED, BLUE = 0, 2
"""Where they stand in a pixel."""

STEP = 1
"""How far the pixels of a colour are apart."""

PIXEL_NANOSECONDS = 3.0
"""What a pixel takes about."""


def convert(
    begin: int,
    end: int,
    data: Pixels,
    first: Pixels,
    second: Pixels,
    result: Pixels,
    height: int,
    width: int,
    image: int,
    colour_image: int,
    colour_row: int,
    ahead: int,
    apart: int,
) -> None:
    """Rows of all images. `image` elements lie between images of brightness, `colour_image` between those of colours.

    Rows of a colour are `colour_row` apart. The first colour begins `ahead` elements from the start of its memory, the
    second `apart`.
    """
    red = np.empty(2 * PAIRS, np.float32)
    green = np.empty(2 * PAIRS, np.float32)
    blue = np.empty(2 * PAIRS, np.float32)
    for number in range(begin, end):
        own, row = number // height, number % height
        bright = own * image + row * width
        colour = own * colour_image + row // 2 * colour_row
        for begin_pair in range(0, width // 2, PAIRS):
            pairs = min(PAIRS, width // 2 - begin_pair)
            for pair in range(pairs):
                place = colour + (begin_pair + pair) * STEP
                d = np.float32(first[ahead + place]) - 128
                blue[2 * pair], blue[2 * pair + 1] = d, d
            for pair in range(pairs):
                place = colour + (begin_pair + pair) * STEP
                e = np.float32(second[apart + place]) - 128
                red[2 * pair], red[2 * pair + 1] = e, e
            for pixel in range(2 * pairs):
                light = 1.164 * (np.float32(data[bright + 2 * begin_pair + pixel]) - 16)
                d, e = blue[pixel], red[pixel]
                red[pixel] = bounded(light + 1.596 * e)
                green[pixel] = bounded(light - 0.391 * d - 0.813 * e)
                blue[pixel] = bounded(light + 2.018 * d)
            target = 3 * (number * width + 2 * begin_pair)
            for pixel in range(2 * pairs):
                if WHOLE:
                    result[target + 3 * pixel + RED] = np.int32(red[pixel])
                    result[target + 3 * pixel + 1] = np.int32(green[pixel])
                    result[target + 3 * pixel + BLUE] = np.int32(blue[pixel])
                else:
                    result[target + 3 * pixel + RED] = red[pixel]
                    result[target + 3 * pixel + 1] = green[pixel]
                    result[target + 3 * pixel + BLUE] = blue[pixel]


PAIRS = 256
"""Pairs of pixels, which have the same colours, that are computed one after the other."""


def bounded(value: np.float32) -> np.float32:
    """A value between 0 and 255; of bytes it is what has the nearest one as its whole part."""
    value = np.float32(0) if value < 0 else value
    value = np.float32(255) if value > 255 else value
    return value + np.float32(0.5) if WHOLE else value


def colours(work: Work, team: Team) -> Compiled | None:
    """Of u8 and f32, in one plane or several."""
    planes, output = work.required(len(work.own)), work.outputs[0]
    type = output.type
    if work.posts or type not in ("u8", "f32"):
        return None
    images, height, width, _ = output.shape
    paired = work.name.startswith("NV12")
    step, row = (2, width) if paired else (1, width // 2)
    size, quarter = height * width, height * width // 4
    between = 1 if paired else quarter
    if len(planes) == 1:
        places = size * 3 // 2, size * 3 // 2, row, size, size + between
    else:
        places = size, 2 * quarter if paired else quarter, row, 0, 1 if paired else 0
    reverse = "toBGR" in work.name
    constants: dict[str, Hashable] = {"WHOLE": type == "u8", "Pixels": "Bytes" if type == "u8" else "Floats"}
    constants |= {"STEP": step, "RED": 2 if reverse else 0, "BLUE": 0 if reverse else 2}

    def bind(inputs: Arrays, outputs: Sequence[Array], _: Any) -> Call:
        arrays = inputs[0], inputs[len(planes) > 1], inputs[len(planes) - 1]
        arguments = (*arrays, outputs[0], height, width, *places)
        return looped(team, convert, arguments, images * height, images * size * PIXEL_NANOSECONDS, **constants)

    return Compiled(bind, wants=unordered(work))


COMPILERS = dict.fromkeys(("NV12toRGB-8", "NV12toBGR-8", "I420toRGB-8", "I420toBGR-8"), colours)
