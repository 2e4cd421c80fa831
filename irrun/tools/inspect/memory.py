"""What a run holds at once, by the lifetimes of tensors, and what variables grow by with each token.

Inputs are held until their last reader has run, results and new states to the end; what is a view of another tensor
takes nothing. Weights are not counted, nor what layers need while they compute.
"""

from __future__ import annotations

from collections import defaultdict

from irrun.ir.graph import Graph, Layer, Value
from irrun.records import dataclass
from irrun.spec.dims import Dim, Size, Undecided, product
from irrun.spec.dtypes import ELEMENT_TYPES
from irrun.spec.traits import Reading, Storing
from irrun.tools.inspect.contents import Contents

_SIZES = "see --shape"


@dataclass(frozen=True, slots=True)
class Peak:
    """The most bytes of activations that are there at once, and the path of the layer while which they are.

    `bytes` is None where unknown sizes or types decide it, and `reason` says so; `help` what would tell it.
    """

    bytes: Size | None
    layer: str | None
    reason: str | None = None
    help: str | None = None


@dataclass(frozen=True, slots=True)
class GrowingState:
    """A variable to which each run appends along `axis`: so many `bytes` for each token."""

    variable: str
    type: str
    axis: int
    bytes: Size


def peak(contents: Contents) -> Peak:
    try:
        most, layer = _peak(contents, contents.model.graph)
    except Undecided:
        return Peak(None, None, "unknown sizes decide where it is", _SIZES)
    except _UnknownTensor as unknown:
        return Peak(None, None, *unknown.args)
    return Peak(most, None if layer is None else contents.paths[layer])


class _UnknownTensor(Exception):
    """A tensor has no known number of bytes; it says why, and perhaps what to do."""


def _peak(contents: Contents, graph: Graph) -> tuple[Size, Layer | None]:
    """The most bytes and where. Raises Undecided where unknown sizes decide that, and _UnknownTensor."""
    order = [layer for layer in contents.ordered(graph) if layer not in contents.stored]
    roots: dict[Value, Value] = {}
    last: dict[Value, int] = {}
    for position, layer in enumerate(order):
        node = contents.node(layer)
        source = None
        if node is not None and node.op.view_of is not None and node.op.view_of in node.op.port_names:
            number = node.op.port_names.index(node.op.view_of)
            source = layer.inputs[number] if number < len(layer.inputs) else None
        for value in layer.outputs:
            roots[value] = value if source is None else roots.get(source, source)
        kept = node is None or not layer.outputs or node.op.trait(Storing) is not None
        for read in layer.inputs:
            if read in roots:
                last[roots[read]] = len(order) if kept else max(position, last.get(roots[read], 0))
    freed: dict[int, list[Value]] = defaultdict(list)
    for value, position in last.items():
        freed[position].append(value)
    live: Size = 0
    most: Size = 0
    where: Layer | None = None
    sizes: dict[Value, Size] = {}
    for position, layer in enumerate(order):
        for value in layer.outputs:
            if roots[value] is value:
                sizes[value] = _bytes(contents, value)
                live = live + sizes[value]
        within: Size = 0
        inner: Layer | None = layer
        for body in layer.bodies.values():
            held, place = _peak(contents, body.graph)
            if _more(held, within):
                within, inner = held, place
        if _more(live + within, most):
            most, where = live + within, inner
        for value in (*freed[position], *(value for value in layer.outputs if value not in last)):
            live = live - sizes.pop(value, 0)
    return most, where


def _more(size: Size, most: Size) -> bool:
    """Whether a size is larger than the most so far, where no unknown size is 0. Raises Undecided."""
    return (most >= size) is not True and bool(size >= most)


def _bytes(contents: Contents, value: Value) -> Size:
    size = contents.bytes(value)
    if size is None:
        if not value.consumers:
            return 0
        path = f"`{contents.paths[value.layer]}`"
        if contents.tensor(value).type == "string":
            raise _UnknownTensor(f"{path} gives texts of any length")
        if contents.node(value.layer) is None:
            raise _UnknownTensor(f"{path} could not be inferred")
        raise _UnknownTensor(f"the size of what {path} gives is unknown", _SIZES)
    return size


def growing_states(contents: Contents) -> list[tuple[GrowingState, Layer, Dim]]:
    """The variables of the model itself in which what is stored is longer than what was read, by one axis alone.

    With each, the layer that reads it, and the unknown size that grows.
    """
    read: dict[str, Layer] = {}
    stored: dict[str, Value] = {}
    for layer in contents.model.graph.layers:
        node = contents.node(layer)
        reading = None if node is None else node.op.trait(Reading)
        storing = None if node is None else node.op.trait(Storing)
        if node is not None and reading is not None and layer.outputs:
            read.setdefault(str(node.attrs[reading.variable]), layer)
        if node is not None and storing is not None and layer.inputs and layer.inputs[0] is not None:
            stored.setdefault(str(node.attrs[storing.variable]), layer.inputs[0])
    found = []
    for name, value in stored.items():
        reader = read.get(name)
        before = contents.tensor(None if reader is None else reader.outputs[0]).shape
        after = contents.tensor(value)
        bits = ELEMENT_TYPES[after.type].bits if after.type in ELEMENT_TYPES else 0
        if reader is None or before is None or after.shape is None or len(before) != len(after.shape) or not bits:
            continue
        grown = [
            (axis, old) for axis, (old, new) in enumerate(zip(before, after.shape, strict=True)) if _grows(old, new)
        ]
        if len(grown) == 1:
            ((axis, old),) = grown
            others = product(size for number, size in enumerate(after.shape) if number != axis)
            assert isinstance(old, Dim), "a size that grows is unknown"
            found.append((GrowingState(name, after.type, axis, others * bits // 8), reader, old))
    return found


def _grows(old: Size, new: Size) -> bool:
    """Whether a size is an unknown one and something more."""
    if not isinstance(old, Dim) or not isinstance(new, Dim) or len(old.terms) != 1:
        return False
    ((monomial, factor),) = old.terms.items()
    return new.terms.get(monomial) == factor and len(new.terms) > 1
