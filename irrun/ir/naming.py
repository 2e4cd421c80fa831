"""Names for the unknown sizes of a model's inputs, so that messages and listings say `batch` instead of `?`.

A size is named by the layout of its input where that says what it is, else by the input and the axis: `ids.0`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import numpy as np

from irrun.ir.graph import Graph, Layer, Port
from irrun.spec.attributes import parse_shape
from irrun.spec.dims import Dim, Shape, Size, fresh
from irrun.spec.op import Array, Tensor

ROLES = {"N": "batch", "C": "channels", "D": "depth", "H": "height", "W": "width"}
"""What the letters of a layout stand for."""

_LONGEST = 20
"""Characters of an input's name that are shorter to read than its number."""

MAX_INVENTED = 16
"""Elements of an unknown integer tensor that get a dimension each, so that equal ones stay equal."""

_PLAIN = re.compile(r"[A-Za-z_][\w.:]*")


def name_sizes(graph: Graph, given: Mapping[Layer, Tensor]) -> dict[Layer, Tensor]:
    """`given`, and what is declared of the other Parameters of `graph`; their unknown sizes have names.

    A Parameter whose sizes are all known, or unreadable, is left out unless it is given.
    """
    known = {layer: shape for layer in graph.parameters if (shape := _shape(layer, given)) is not None}
    roles = {layer: _roles(layer, shape) for layer, shape in known.items()}
    shared = Counter(role for listed in roles.values() for role in listed.values())
    shared.update(str(size.expression()) for shape in known.values() for size in shape if isinstance(size, Dim))
    names = _input_names(graph)
    named = dict(given)
    for layer, shape in known.items():
        tensor = given.get(layer, Tensor("dynamic", None))
        sizes = tuple(
            _named(size, _name(roles[layer].get(axis), shared, names[layer], axis)) for axis, size in enumerate(shape)
        )
        value = _values(layer, sizes, names[layer]) if tensor.value is None else tensor.value
        if value is not None or any(isinstance(size, Dim) for size in sizes):
            named[layer] = Tensor(tensor.type, sizes, value)
    return named


def _values(layer: Layer, shape: Shape, input: str) -> Array | None:
    """An unknown short tensor of integers, which may be sizes: `count` for a scalar, else `counts[0]` and so on."""
    if layer.attributes.get("element_type", "").lower() not in ("i32", "i64") or len(shape) > 1:
        return None
    if not all(isinstance(size, int) and size <= MAX_INVENTED for size in shape):
        return None
    value = np.empty(shape, object)
    for index in np.ndindex(value.shape):
        value[index] = fresh(None, name=f"{input}[{index[0]}]" if index else input)
    return value


def _shape(layer: Layer, given: Mapping[Layer, Tensor]) -> Shape | None:
    if layer in given and given[layer].shape is not None:
        return given[layer].shape
    try:
        return parse_shape(layer.attributes.get("shape", ""))
    except ValueError:  # which inference reports
        return None


def _named(size: Size, name: str) -> Size:
    return fresh(size.low, size.high, name) if isinstance(size, Dim) and size.expression() is None else size


def _name(role: str | None, shared: Mapping[str, int], input: str, axis: int) -> str:
    if role is None:
        return f"{input}.{axis}"
    return role if shared[role] == 1 else f"{input}.{role}"


def _roles(layer: Layer, shape: Shape) -> dict[int, str]:
    """What the layout of a Parameter calls its axes of unknown size; a role that it has twice is none."""
    marks = layout_marks(layer.outputs[0].port) if layer.outputs else []
    if "..." in marks:
        split = marks.index("...")
        if len(marks) - 1 > len(shape):
            return {}
        marks = [*marks[:split], *["?"] * (len(shape) - len(marks) + 1), *marks[split + 1 :]]
    if len(marks) != len(shape):
        return {}
    found = {axis: ROLES.get(mark, mark.lower()) for axis, mark in enumerate(marks) if isinstance(shape[axis], Dim)}
    twice = Counter(found.values())
    return {axis: role for axis, role in found.items() if twice[role] == 1 and _PLAIN.fullmatch(role)}


def layout_marks(port: Port) -> list[str]:
    """The marks of the layout that a port has in its rt_info, such as N, ... and C; none where it has no layout."""
    rt_info = port.element.find("rt_info")
    for attribute in rt_info.findall("attribute") if rt_info else ():
        given = attribute.attributes
        if (given.get("name"), given.get("version")) == ("layout", "0"):  # of other versions OpenVINO reads none
            text = given.get("layout", "").strip()
            return [mark.strip() for mark in text.removeprefix("[").removesuffix("]").split(",")]
    return []


def _input_names(graph: Graph) -> dict[Layer, str]:
    """A short name for each Parameter, different for all of them: its own where that is fit, else `input0`."""
    wanted = {layer: _short(layer) for layer in graph.parameters}
    taken = Counter(wanted.values())
    return {
        layer: name if name and taken[name] == 1 else _numbered(number, taken)
        for number, (layer, name) in enumerate(wanted.items())
    }


def _numbered(number: int, taken: Mapping[str, int]) -> str:
    name = f"input{number}"
    while name in taken:
        name = f"_{name}"
    return name


def _short(layer: Layer) -> str:
    names = (*(layer.outputs[0].port.names if layer.outputs else ()), layer.name)
    for text in (*names, *(name.rpartition("/")[2] for name in names)):
        if len(text) <= _LONGEST and _PLAIN.fullmatch(text):
            return text
    return ""
