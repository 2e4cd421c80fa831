"""Weights that are no values of their type: a warning for each Const that holds NaN or infinity, or bytes that are no
booleans.

A constant whose other elements are all 0 is left alone where it has infinities only: it hides scores from a softmax.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from irrun.diagnostics import Diagnostic, Span
from irrun.ir.graph import Layer, Model
from irrun.ir.weights import NEAR, Array, Blob, WeightsError
from irrun.ir.xml import attribute_span
from irrun.records import NamedTuple
from irrun.spec.dtypes import ELEMENT_TYPES, numpy_dtype

MAX_SEARCHED = 1 << 26
"""Bytes of weights that are searched, unless all are asked for."""

HIGHEST = {
    "f8e4m3": b"\x7f\xff",
    "f8e8m0": b"\xff",
    "f8e5m2": b"\x7c\x7d\x7e\x7f\xfc\xfd\xfe\xff",
    "f16": b"\x7c\x7d\x7e\x7f\xfc\xfd\xfe\xff",
    **dict.fromkeys(("bf16", "f32", "f64"), b"\x7f\xff"),
}
"""The highest bytes of what is no number; of the larger types, some of the largest numbers have them, too."""

NEXT = {"bf16": 0x80, "f32": 0x80, "f64": 0xF0}
"""The byte below these is no less in what is no number; in the largest numbers, such as masks have, it is."""


def search_weights(model: Model, most: int | None) -> Iterator[Diagnostic]:
    """The Consts with NaN, infinity or bytes that are no booleans, among the first `most` bytes of weights in the order
    of layers; None are all."""
    weights = model.weights
    searched = 0
    buffer = bytearray(NEAR)
    for layer in (layer for layer in model.graph.walk() if layer.type == "Const"):
        blob = weights.checked(layer)
        if blob is None or not blob.elements or layer in weights.doubtful:
            continue
        if blob.element_type not in HIGHEST and blob.element_type != "boolean":
            continue
        searched += blob.needed
        if most is not None and searched > most:
            return
        try:
            if blob.element_type == "boolean":
                yield from _no_booleans(layer, weights.chunks(layer, buffer), blob)
                continue
            if not suspect(weights.chunks(layer, buffer), blob.element_type):
                continue
            dtype = numpy_dtype(blob.element_type)
            found = not_finite((np.frombuffer(chunk, dtype) for chunk in weights.chunks(layer)), blob.shape)
        except WeightsError:  # the file changes; who reads it next reports it
            return
        if found is not None and (found.nans or found.others):
            help = "a training that diverged, or values beyond the range of the type; results are likely to be NaN"
            message = f"the constant has {found} of {blob.elements:,} elements{found.place}"
            yield Diagnostic("W913", message, _place(layer), layer.label, help)


def _place(layer: Layer) -> Span | None:
    return attribute_span(layer.data, "offset") if layer.data else layer.element.span


def _no_booleans(layer: Layer, chunks: Iterable[bytes | bytearray], blob: Blob) -> Iterator[Diagnostic]:
    """A warning where there are bytes that are neither 0 nor 1."""
    count, first, begin = 0, 0, 0
    for chunk in chunks:
        others = chunk.translate(None, b"\0\1")
        if others and not count:
            first = begin + chunk.find(others[:1])
        count += len(others)
        begin += len(chunk)
    if count:
        message = (
            f"the constant has {count:,} of {blob.elements:,} bytes that are neither 0 nor 1{_at(first, blob.shape)}"
        )
        help = "irrun takes them for true; of OpenVINO's ops some do, others do not, or compute with the number"
        yield Diagnostic("W914", message, _place(layer), layer.label, help)


def _at(number: int, shape: tuple[int, ...]) -> str:
    if not shape:
        return ""
    index = ", ".join(str(int(place)) for place in np.unravel_index(number, shape))
    return f", the first at [{index}]"


def suspect(chunks: Iterable[bytes | bytearray], type: str) -> bool:
    """Whether there may be an element that is not finite. Without numpy: to load it takes longer than to look."""
    width = ELEMENT_TYPES[type].bits // 8
    least = NEXT.get(type)
    for chunk in chunks:
        highest = chunk[width - 1 :: width]
        for byte in HIGHEST[type]:
            place = highest.find(byte)
            while place >= 0:
                if least is None or chunk[place * width + width - 2] >= least:
                    return True
                place = highest.find(byte, place + 1)
    return False


class NotFinite(NamedTuple):
    """How many elements are `nans` or `infinities`, where the first of them is, and whether `others` are not 0."""

    nans: int
    infinities: int
    place: str
    others: bool

    def __str__(self) -> str:
        counts = ((self.nans, "NaN"), (self.infinities, "infinite"))
        return " and ".join(f"{count:,} {word}" for count, word in counts if count)


def not_finite(chunks: Iterable[Array], shape: tuple[int, ...]) -> NotFinite | None:
    """What of the elements of floats is not finite, which come some at a time; None where all are."""
    nans = infinities = begin = 0
    first: int | None = None
    others = False
    for chunk in chunks:
        numbers = chunk if chunk.dtype.kind == "f" else chunk.astype(np.float32)
        finite = np.isfinite(numbers)
        if finite.all():
            others = others or bool(numbers.any())
        else:
            nan = int(np.isnan(numbers).sum())
            nans += nan
            infinities += int((~finite).sum()) - nan
            others = others or bool(numbers[finite].any())
            first = begin + int(np.argmin(finite)) if first is None else first
        begin += chunk.size
    if first is None:
        return None
    return NotFinite(nans, infinities, _at(first, shape), others)
