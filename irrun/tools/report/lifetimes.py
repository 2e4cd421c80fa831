"""Which tensors a run holds while each layer of the model itself computes, and how many bytes that is.

As in `irrun.tools.inspect.memory`: inputs are held until their last reader has run, results and states to the end;
views take nothing of their own; constants are not counted. Of bodies only their most is.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from irrun.ir.graph import Graph, Layer, Value
from irrun.spec.evaluation import Evaluation, Unknown
from irrun.spec.traits import Storing
from irrun.tools.inspect.contents import Contents
from irrun.tools.report import texts


def lifetimes(contents: Contents, evaluation: Evaluation) -> dict[str, Any]:
    """The layers in the order of a run, the bytes held while each runs, and the tensors.

    Of each tensor the layer and the number of its output, its bytes, and the places in that order from and to which
    it is held, both included. Where the bytes of a tensor are not known, only that, as `unknown`.
    """
    graph = contents.model.graph
    numbers = {layer: number for number, layer in enumerate(contents.paths)}
    order = _order(contents, graph)
    try:
        held, tensors = _held(contents, graph, evaluation)
    except _UnknownBytes as unknown:
        return {
            "unknown": f"the size of what {texts.name(str(unknown))} gives depends on the data, or on what has an error"
        }
    return {
        "layers": [numbers[layer] for layer in order],
        "bytes": held,
        "tensors": [[numbers[value.layer], value.index, size, *span] for value, (size, *span) in tensors.items()],
    }


class _UnknownBytes(Exception):
    """A tensor has no known number of bytes; the text is the path of its layer."""


def _order(contents: Contents, graph: Graph) -> list[Layer]:
    return [layer for layer in contents.ordered(graph) if layer not in contents.stored]


def _held(
    contents: Contents, graph: Graph, evaluation: Evaluation
) -> tuple[list[int], dict[Value, tuple[int, int, int]]]:
    order = _order(contents, graph)
    roots: dict[Value, Value] = {}
    born: dict[Value, int] = {}
    last: dict[Value, int] = {}
    for position, layer in enumerate(order):
        node = contents.node(layer)
        view = None if node is None else node.op.view_of
        number = (
            node.op.port_names.index(view) if node is not None and view in node.op.port_names else len(layer.inputs)
        )
        source = layer.inputs[number] if number < len(layer.inputs) else None
        for value in layer.outputs:
            roots[value] = value if source is None else roots.get(source, source)
            if roots[value] is value:
                born[value] = last[value] = position
        kept = node is None or not layer.outputs or node.op.trait(Storing) is not None
        for read in layer.inputs:
            if read in roots and roots[read] in last:
                last[roots[read]] = len(order) - 1 if kept else max(position, last[roots[read]])
    tensors = {value: (_bytes(contents, value, evaluation), begin, last[value]) for value, begin in born.items()}
    changes: dict[int, int] = defaultdict(int)
    for size, begin, end in tensors.values():
        changes[begin] += size
        changes[end + 1] -= size
    held, live = [], 0
    for position, layer in enumerate(order):
        live += changes[position]
        within = (max(_held(contents, body.graph, evaluation)[0], default=0) for body in layer.bodies.values())
        held.append(live + max(within, default=0))
    return held, tensors


def _bytes(contents: Contents, value: Value, evaluation: Evaluation) -> int:
    size = contents.bytes(value)
    try:
        if size is not None:
            return evaluation.size(size)
    except (Unknown, ZeroDivisionError, RecursionError):
        pass
    if not value.consumers:
        return 0
    raise _UnknownBytes(contents.paths[value.layer])
