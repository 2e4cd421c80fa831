"""What attributes are called elsewhere, and what values of them mean there: in ONNX, PyTorch, TensorFlow, Caffe and old
IRs."""

from __future__ import annotations

from collections.abc import Iterable

_ALIKE = (
    ("transpose_a", "trans_a", "adj_a", "adj_x", "adjoint_a"),
    ("transpose_b", "trans_b", "adj_b", "adj_y", "adjoint_b"),
    ("axis", "axes", "reduction_axes", "dim", "dims"),
    ("keep_dims", "keep_dim"),
    ("eps", "epsilon"),
    ("clip", "clip_threshold", "cell_clip"),
    ("auto_broadcast", "broadcast"),
    ("kernel", "kernel_size", "kernel_shape", "ksize"),
    ("min", "min_value", "min_val"),
    ("max", "max_value", "max_val"),
    ("element_type", "destination_type", "output_type", "dtype", "to"),
    ("num_splits", "num_outputs", "num_or_size_splits"),
    ("approximation_mode", "approximate"),
    ("cube_coeff", "cubic_coeff_a"),
)

ELSEWHERE = {
    ("sampling_ratio", "-1"): "for as many samples as a bin has pixels, as -1 means in torchvision, write 0",
}
"""What to write for values that attributes have elsewhere, and may not have here."""


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


_GROUPS = {_plain(name): number for number, names in enumerate(_ALIKE) for name in names}


def synonyms(word: str, known: Iterable[str]) -> list[str]:
    """The known attributes that say what one called `word` says elsewhere.

    >>> synonyms("transB", ["transpose_a", "transpose_b"]), synonyms("dim", ["axis"]), synonyms("mode", ["axis"])
    (['transpose_b'], ['axis'], [])
    """
    group = _GROUPS.get(_plain(word))
    return [] if group is None else [name for name in known if _GROUPS.get(_plain(name)) == group]
