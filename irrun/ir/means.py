"""The means that a <pre-process> of former years has OpenVINO take from an input, and irrun does not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from irrun.ir.findings import Findings
from irrun.ir.graph import Graph, Layer
from irrun.ir.weights import Weights
from irrun.ir.xml import Element
from irrun.records import NamedTuple

_NUMBER = r"(?a)\s*[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?inf|"
_DIGITS = r"(?a)[0-9]{1,18}"
_BYTES = 4
"""Of an element of an image of means."""


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
    channels = [child for child in element.children if child.tag == "channel"]
    means = [(channel, mean) for channel in channels if (mean := channel.find("mean")) is not None]
    if means:
        yield from _faults_of_means(means, channels, _dims(meant[0]), element, weights)


def _dims(layer: Layer) -> Sequence[int] | None:
    """The sizes of an input; None where some are not known."""
    sizes = [part.strip() for part in layer.attributes.get("shape", "").split(",")]
    return [int(size) for size in sizes] if all(re.fullmatch(_DIGITS, size) for size in sizes) else None


def _faults_of_means(
    means: Sequence[tuple[Element, Element]],
    channels: Sequence[Element],
    dims: Sequence[int] | None,
    element: Element,
    weights: Weights,
) -> Iterator[_Fault]:
    if dims is None or len(dims) < 2:
        what = "of unknown sizes" if dims is None else "of one dimension"
        yield _Fault(f"means cannot be taken from an input {what}", element)
        return
    count = dims[0 if len(dims) == 3 else 1]
    last, numbers = -1, dict[Element, int]()
    for channel in channels:
        text = channel.attributes.get("id", str(last + 1))
        if not re.fullmatch(_DIGITS, text) or int(text) >= count:
            yield _Fault(f"there is no channel `{text}` among the {count} of the input", channel, "id")
            return
        last = numbers[channel] = int(text)
    images = 0
    for _, mean in means:
        given = mean.attributes
        if "value" in given and not re.fullmatch(_NUMBER, given["value"]):
            yield _Fault(f"the mean is `{given['value']}`, expected a number", mean, "value")
        elif "value" not in given and "size" not in given:
            yield _Fault("a <mean> has neither `value` nor `size`", mean)
        elif "value" not in given:
            images += 1
            yield from _faults_of_image(mean, prod(dims[2:]) if len(dims) > 3 else None, weights)
    if 0 < images < len(means):
        yield _Fault("some of the means are numbers, others images", element)
    if 0 < len({numbers[channel] for channel, _ in means}) < count:
        yield _Fault(f"there are means for {len({numbers[c] for c, _ in means})} of the {count} channels", element)


def _faults_of_image(mean: Element, elements: int | None, weights: Weights) -> Iterator[_Fault]:
    """Of means for `elements` pixels, which lie in the .bin."""
    texts = [mean.attributes.get(name, "") for name in ("offset", "size")]
    if not all(re.fullmatch(_DIGITS, text) for text in texts):
        return
    offset, size = map(int, texts)
    if offset + size > (weights.size or 0):
        yield _Fault(f"the means end at byte {offset + size}, but the .bin has {weights.size or 0}", mean, "offset")
    elif elements is not None and size != _BYTES * elements:
        yield _Fault(
            f"`size` is {size} bytes, but the means of {elements} pixels take {_BYTES * elements}", mean, "size"
        )
