"""The runtime info of layers and ports, as far as OpenVINO refuses a file for it; what it means is elsewhere."""

from __future__ import annotations

import re

from irrun.ir.findings import Findings
from irrun.ir.graph import Graph, Layer
from irrun.ir.xml import Element
from irrun.spec.attributes import parse_shape
from irrun.spec.dtypes import ELEMENT_TYPES

_AXIS = re.compile(r"\.\.\.|\?|\w*[^\W_]\w*", re.ASCII)
_NAMED = {"": ["..."], "**SCALAR**": list[str]()}
"""Layouts that list no axes, and those that they have."""

_OLD_TYPE = re.compile("|".join(sorted(ELEMENT_TYPES.keys() | {"undefined"})), re.IGNORECASE)
_NUMBER = re.compile(r"\s*0*([0-9]+)", re.ASCII)
"""What an item of a list is read up to."""

_DIGITS = 20
"""2**64 has so many: longer numbers are out of range, and need not be converted."""

_SHOWN = 40

_WITHOUT_INFO = 10
"""The version of the format of which nobody reads the info."""


def check_info(info: Element, layer: Layer, findings: Findings, port: Element | None = None) -> None:
    """Report an attribute that is there twice, a layout that is none or has another rank than its `port`, and values of
    the old API that are none."""
    if findings.version <= _WITHOUT_INFO:
        return
    seen: set[tuple[str | None, str | None]] = set()
    for mark in info.children:
        given = mark.attributes
        key = given.get("name"), given.get("version")
        if mark.tag != "attribute":
            continue
        if key in seen:
            message = f"the <rt_info> has a second attribute `{key[0]}`"
            findings.add("E222", message, mark, layer=layer, help="delete one of them; OpenVINO refuses the file")
        seen.add(key)
        if key == ("layout", "0") and "layout" in given:
            _check_layout(mark, given["layout"].strip(), layer, findings, port)
        if key in _OF_OLD_API and "value" in given and not _OF_OLD_API[key](given["value"]):
            message = f"`{given['value'][:_SHOWN]}` is no value of `{key[0]}`"
            findings.add("E222", message, mark, "value", layer=layer, help="delete the attribute, or mend its value")


def _check_layout(mark: Element, text: str, layer: Layer, findings: Findings, port: Element | None) -> None:
    shown, axes = text[:_SHOWN], _axes(text)
    if not all(map(_AXIS.fullmatch, axes)):
        help = "write it as `[N,C,H,W]`, with `?` for an axis without a name and `...` for any number of them"
        findings.add("E222", f"`{shown}` is not a layout", mark, "layout", layer=layer, help=help)
        return
    again = next((axis for number, axis in enumerate(axes) if axis != "?" and axis in axes[:number]), None)
    if again is not None:
        help = "each axis has a name of its own, or `?`; `...` stands once"
        findings.add("E222", f"the layout `{shown}` has `{again}` twice", mark, "layout", layer=layer, help=help)
        return
    if port is not None and layer.type in ("Parameter", "Result"):
        _check_rank(mark, layer, findings, port)


def check_layouts_of_results(graph: Graph, findings: Findings) -> None:
    """Report layouts of another rank where a Result takes them over, from the port of the layer that it reads."""
    values = [value for result in graph.results for value in result.inputs if value is not None]
    for value in dict.fromkeys(values) if findings.version > _WITHOUT_INFO else ():
        if value.layer.element.deferred or value.layer.type == "Parameter":
            continue
        port = value.port.element
        info = port.find("rt_info")
        for mark in info.children if info is not None else ():
            given = mark.attributes
            if (given.get("name"), given.get("version")) == ("layout", "0") and "layout" in given:
                _check_rank(mark, value.layer, findings, port)


def _check_rank(mark: Element, layer: Layer, findings: Findings, port: Element) -> None:
    shown, axes = mark.attributes["layout"].strip()[:_SHOWN], _axes(mark.attributes["layout"].strip())
    what, rank = _rank(layer, port)
    if rank is not None and len(axes) != rank and "..." not in axes:
        message = f"the layout `{shown}` has {len(axes)} axes, but the {what} {rank} dimensions"
        help = "name each of its axes, or delete the layout"
        findings.add("E222", message, mark, "layout", layer=layer, help=help)


def _rank(layer: Layer, port: Element) -> tuple[str, int | None]:
    """What says how many dimensions a tensor has, and how many, if that is known. Of an input OpenVINO reads the
    `shape`, whatever its port declares."""
    if layer.type != "Parameter" or "shape" not in layer.attributes:
        return "port", len(port.dims) or None
    try:
        shape = parse_shape(layer.attributes["shape"])
    except ValueError:
        shape = None
    return "shape", None if shape is None else len(shape)


def _axes(text: str) -> list[str]:
    """The axes of a layout; those of one that is none are no axes."""
    if text in _NAMED:
        return _NAMED[text]
    if not text.startswith("["):
        return re.findall(r"\.\.\.|.", text.upper(), re.DOTALL)
    inner = text[1:-1] if text.endswith("]") else ""
    return [axis.strip().upper() for axis in inner.split(",")]


def _is_old_type(text: str) -> bool:
    return _OLD_TYPE.fullmatch(text) is not None


def _is_order(text: str) -> bool:
    """Whether a text is a list of numbers of 64 bits, whatever comes behind each of them."""
    items = text.split(",")
    if not items[-1]:
        items.pop()
    numbers = [match and match[1] for match in map(_NUMBER.match, items)]
    return all(digits and len(digits) <= _DIGITS and int(digits) < 2**64 for digits in numbers)


_OF_OLD_API = {("old_api_map_element_type", "0"): _is_old_type, ("old_api_map_order", "0"): _is_order}
"""Attributes of models converted for API 1.0, and what tells their values: a type, and axes in their order."""
