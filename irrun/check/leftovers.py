"""Attributes that converters wrote on layers of a type though its op has none such, and nothing reads them."""

from __future__ import annotations

from collections.abc import Mapping

_CAFFE = (
    *("height", "height_scale", "interp_mode", "num_classes", "pad_mode", "pad_value", "prob", "resize_mode"),
    *("visualize", "visualize_threshold", "width", "width_scale"),
)
"""What Caffe says of a DetectionOutput for pictures and files that it writes, and the number that inputs tell."""

_LEFT: Mapping[str, Mapping[str, float | None]] = {
    "BinaryConvolution": {"output_padding": 0},
    "Convolution": {"output_padding": 0},
    "DetectionOutput": {"eta": 1, **dict.fromkeys(_CAFFE)},
    "GroupConvolution": {"output_padding": 0},
    "MaxPool": {"axis": None, "dilations": 1, "index_element_type": None},
    "Pad": {"pad_value": 0},
    "PriorBox": dict.fromkeys(("img_h", "img_size", "img_w", "step_h", "step_w"), 0.0),
    "PriorBoxClustered": {"flip": None, **dict.fromkeys(("img_h", "img_size", "img_w"), 0.0)},
}
"""By type and name what all numbers of the attribute are where it says nothing, None where it never says anything.

Model Optimizer up to 2021 wrote these, those of Caffe for models of Caffe only; those of a later MaxPool are what the
Post-training Optimization Tool left on a MaxPool of opset1.
"""


def is_leftover(type: str, name: str, text: str) -> bool:
    """Whether an attribute that the op of a layer does not have is one that a converter wrote, and says nothing."""
    known = _LEFT.get(type, {})
    if name not in known:
        return False
    expected = known[name]
    try:
        return expected is None or all(float(part) == expected for part in text.split(","))
    except ValueError:
        return False
