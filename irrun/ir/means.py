"""The means that a <pre-process> of former years has OpenVINO take from an input, and irrun does not."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from math import prod

from irrun.ir.findings import Findings, whole_number
from irrun.ir.graph import Graph, Layer
from irrun.ir.weights import Weights
from irrun.ir.xml import Element
from irrun.records import NamedTuple
from irrun.spec.attributes import parse_shape
from irrun.spec.dtypes import ELEMENT_TYPES

_NUMBER = re.compile(r"(?a)\s*[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]*)?|\.?)")
"""What C++ reads as a float to the end of the text, if only as 0 where it breaks off too early."""

_WITHOUT_NUMBERS = ("boolean", "string", "dynamic")
"""Element types that nothing is subtracted from."""


class _Fault(NamedTuple):
    """What OpenVINO refuses, and where it stands."""

    message: str
    element: Element
    attribute: str | None = None


def check_means(root: Element, graph: Graph, weights: Weights, findings: Findings) -> None:
    """Report the first thing for which OpenVINO refuses the means, or else that they are not taken here."""
    element = root.find("pre-process")
    if element is None:
        return
    fault = next(_faults(element, graph, weights), None)
    if fault is not None:
        help = "delete <pre-process>, and build its means into the model with `irrun edit --mean`"
        findings.add("E224", fault.message, fault.element, fault.attribute, graph=graph, help=help)
    elif any(channel.find("mean") for channel in element.children):
        message = "OpenVINO takes the means of <pre-process> from the input, which is not done here"
        help = "build them into the model with `irrun edit --mean`, and delete the element"
        findings.add("W907", message, element, graph=graph, help=help)


def _faults(element: Element, graph: Graph, weights: Weights) -> Iterator[_Fault]:
    name = element.attributes.get("reference-layer-name", "").strip()
    meant = [layer for layer in graph.parameters if name in ("", layer.name)]
    if not meant:
        yield _Fault(f"there is no input `{name}` to take means from", element, "reference-layer-name")
        return
    input = meant[0] if name else next((layer for layer in meant if _has_channels_of_images(layer)), meant[0])
    try:
        shape = parse_shape(input.attributes.get("shape", ""))
    except ValueError:  # which is reported
        return
    if shape is None or not all(isinstance(size, int) for size in shape):
        yield _Fault("means cannot be taken from an input of unknown sizes", element)
    elif not 2 <= len(shape) <= 5:
        count = "one dimension" if len(shape) == 1 else f"{len(shape)} dimensions"
        yield _Fault(f"means cannot be taken from an input of {count}", element)
    else:
        yield from _faults_of_channels(element, input, [int(size) for size in shape], weights)


def _has_channels_of_images(layer: Layer) -> bool:
    """Whether an input has four dimensions, known or not: the first that has is meant where none is named."""
    try:
        shape = parse_shape(layer.attributes.get("shape", ""))
    except ValueError:
        return False
    return shape is not None and len(shape) == 4


def _faults_of_channels(element: Element, input: Layer, dims: Sequence[int], weights: Weights) -> Iterator[_Fault]:
    count = dims[0 if len(dims) == 3 else 1]
    type = input.attributes.get("element_type", "dynamic").lower()
    pixels = prod(dims[1:] if len(dims) == 3 else dims[2:])
    numbers: dict[tuple[int, float], Element] = {}
    images: dict[tuple[int, int, int], Element] = {}
    channels = [child for child in element.children if child.tag == "channel"]
    for position, channel in enumerate(channels):
        text = channel.attributes.get("id", str(position))
        id, mean = whole_number(text), channel.find("mean")
        if id is None or (mean is not None and id >= count):
            yield _Fault(f"there is no channel `{text}` among the {count} of the input", channel, "id")
        elif mean is not None:
            given = mean.attributes
            if "value" in given:
                if not _NUMBER.fullmatch(given["value"]):
                    yield _Fault(f"the mean is `{given['value']}`, expected a number", mean, "value")
                    return
                numbers[id, _single(given["value"])] = channel
            if "size" in given and "offset" in given:
                yield from _faults_of_image(mean, pixels, type, weights)
                images[id, whole_number(given["offset"]) or 0, whole_number(given["size"]) or 0] = channel
            elif "value" not in given and "size" not in given:
                yield _Fault("a <mean> has neither `value` nor `size`", mean)
    if numbers and images:
        yield _Fault("some of the means are numbers, others images", element)
    found = [key[0] for key in (numbers or images)]
    if found and type in _WITHOUT_NUMBERS:
        yield _Fault(f"means cannot be taken from an input of type {type}", element)
    if found and len(set(found)) < count:
        yield _Fault(f"there are means for {len(set(found))} of the {count} channels", element)
    elif len(found) > count:
        again = next(id for place, id in enumerate(found) if id in found[:place])
        yield _Fault(f"there are two means for channel {again}", element)


def _single(text: str) -> float:
    """A number as OpenVINO tells it from others: in 32 bits."""
    try:
        number = float(text)
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except ValueError:  # a text that breaks off
        return 0.0
    except OverflowError:
        return number


def _faults_of_image(mean: Element, pixels: int, type: str, weights: Weights) -> Iterator[_Fault]:
    """Of means for so many pixels, which lie in the .bin as elements of the type of the input."""
    offset, size = (whole_number(mean.attributes[name]) for name in ("offset", "size"))
    bits = ELEMENT_TYPES[type].bits if type in ELEMENT_TYPES else 0
    if offset is None or size is None:
        name = "size" if offset is not None else "offset"
        yield _Fault(f"`{name}` is `{mean.attributes[name]}`, expected a number of bytes", mean, name)
    elif type not in _WITHOUT_NUMBERS and bits % 8:
        yield _Fault(f"means of pixels cannot be taken from an input of type {type}", mean)
    elif offset + size > (weights.size or 0):
        yield _Fault(f"the means end at byte {offset + size}, but the .bin has {weights.size or 0}", mean, "offset")
    elif type not in _WITHOUT_NUMBERS and size != pixels * bits // 8:
        message = f"`size` is {size} bytes, but the means of {pixels} pixels take {pixels * bits // 8}"
        yield _Fault(message, mean, "size")
