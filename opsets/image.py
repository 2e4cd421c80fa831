"""Image ops: resampling and colour formats."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irrun.spec import (
    BOOL,
    FLOAT,
    FLOAT_NUMBER,
    INTEGER,
    INTS,
    NUMERIC,
    Array,
    Attr,
    Dim,
    Input,
    Node,
    Output,
    Shapes,
    Size,
    choice,
    fresh,
    op,
)

SCALE_TOLERANCE = np.float32(1e-6)
"""What the reference adds to a scale before it multiplies a size, so that a third of 3 is 1."""

RESAMPLING = (
    Attr("shape_calculation_mode", choice("sizes", "scales")),
    Attr(
        "coordinate_transformation_mode",
        choice("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"),
        "half_pixel",
    ),
    Attr(
        "nearest_mode",
        choice("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"),
        "round_prefer_floor",
    ),
    Attr("antialias", BOOL, False),
    Attr("pads_begin", INTS, (0,), least=0),
    Attr("pads_end", INTS, (0,), least=0),
    Attr("cube_coeff", FLOAT_NUMBER, -0.75),
)


@op(
    "Interpolate-1",
    types={"T": FLOAT, "T_SIZE": INTEGER},
    inputs=[Input("data", "T", "[*data]"), Input("target_spatial_shape", "T_SIZE", "[num_axes]")],
    outputs=[Output("result", "T", "[*result]")],
    attrs=[
        Attr("axes", INTS, least=0),
        Attr("mode", choice("nearest", "linear", "cubic", "area")),
        Attr("align_corners", BOOL, True),
        Attr("antialias", BOOL, False),
        Attr("pads_begin", INTS, (0,), least=0),
        Attr("pads_end", INTS, (0,), least=0),
    ],
    opsets=frozenset({1, 2, 3}),
)
def interpolate_1(
    data: Array,
    target_spatial_shape: Array,
    *,
    axes: Sequence[int],
    mode: str,
    align_corners: bool,
    antialias: bool,
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
) -> Array:
    """Resample the data along some axes to the given sizes.

    The page leaves the formulas open; they are those of Interpolate-4 with the settings that OpenVINO puts in their
    place: nearest_mode `simple`, cube_coeff -0.75, coordinates by `align_corners` or else `asymmetric`, `linear`
    as `linear_onnx` up to rank 4. Linear without padding takes `half_pixel` instead of `asymmetric`, unless the data
    has rank 4 and the axes are 2 and 3.

    Constraints:
        C1: axes are different and lie in [0, r), r the rank of data.
        C2: target_spatial_shape has one element per axis.
        C3: the target sizes are 0 or more, and 0 only ... where the padded data is empty too; empty data stays empty.
        C4: pads have one value for all interpolated axes, or one per axis of data and then none for the others.
        C5: mode is not `area`, which the page names without a definition and OpenVINO does not compute.

    Source: image/interpolate-1.rst

    >>> op(np.array([[1.0, 2, 3]]), np.array([5]), axes=(1,), mode="linear").tolist()
    [[1.0, 1.5, 2.0, 2.5, 3.0]]
    """
