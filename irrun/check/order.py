"""Constants for which the specification leaves open what is computed: segments that are not sorted, places that several
updates go to, and numbers that the type does not allow for; and those that are seldom meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from irrun.check.documentation import source_page
from irrun.check.infer import Inference, InferredLayer
from irrun.diagnostics import Diagnostic
from irrun.ir.graph import Layer
from irrun.spec.op import UNLIKELY, Doubt, Op, Tensor
from irrun.spec.traits import Doubting, Overwriting

MAX_PLACES = 1 << 16
"""Updates of one layer whose places are compared."""


def check_order(inference: Inference) -> Iterator[Diagnostic]:
    """Warnings of constants for which results depend on what the specification does not give."""
    for node in inference.nodes.values():
        if node.doubts or node.op.traits:
            trait = None if node.doubts else node.op.trait(Overwriting)
            if trait is not None:
                yield from _repeated(node, trait, inference)
            elif node.layer not in inference.blamed or not node.doubts:  # whose slices are said to be wrong
                for doubt in doubts_of(node, [*map(inference.tensor, node.layer.inputs)], node.doubts):
                    yield _doubted(doubt, node.op, node.layer)
    for layer, (op, doubts) in inference.doubted.items():
        for doubt in doubts:
            yield _doubted(doubt, op, layer)


def doubts_of(node: InferredLayer, inputs: Sequence[Tensor], doubts: Sequence[Doubt]) -> Iterable[Doubt]:
    """The `doubts` of a rule about these inputs, or those that the op has."""
    doubting = None if doubts or not node.op.traits else node.op.trait(Doubting)
    return (
        doubts if doubting is None else doubting.doubts(dict(zip(node.op.port_names, inputs, strict=False)), node.attrs)
    )


def _doubted(doubt: Doubt, op: Op, layer: Layer) -> Diagnostic:
    span = layer.span
    if doubt.port is not None:
        span = layer.input_ports[op.port_names.index(doubt.port)].element.span
    others = "" if doubt.code == UNLIKELY else "; other implementations give something else"
    others = "; OpenVINO does not read it" if doubt.refused else others
    help = f"see {source_page(op)}{others}"
    return Diagnostic(doubt.code, doubt.message, span, layer.label, help)


def _repeated(node: InferredLayer, trait: Overwriting, inference: Inference) -> Iterator[Diagnostic]:
    """A warning where two updates that may differ go to one place, at the input that says where."""
    if any(node.attrs[name] != value for name, value in trait.only):
        return
    tensors = dict(zip(node.op.port_names, map(inference.tensor, node.layer.inputs), strict=False))
    data, where, updates = (tensors[name] for name in node.op.port_names[:3])
    needed = [where, *(tensors[name] for name in node.op.port_names[3:])]
    if not all(tensor.known for tensor in needed) or data.shape is None:
        return
    if where.content is None or not 1 < where.content.size <= MAX_PLACES or _are_distinct(where):
        return
    assert where.value is not None
    given = updates.value if updates.known else None
    places, rows = trait.rows([None, where.value, given, *(tensor.value for tensor in needed[1:])], data.shape)
    _, first, inverse, counts = np.unique(places, axis=0, return_index=True, return_inverse=True, return_counts=True)
    inverse = inverse.reshape(-1)
    again = (counts > 1)[inverse] & (first[inverse] != np.arange(len(places)))
    if rows is not None:
        again &= _differ(rows, rows[first[inverse]])
    if not again.any():
        return
    number = int(np.flatnonzero(again)[0])
    shape = trait.shape(where.value)
    one, other = (", ".join(map(str, np.unravel_index(n, shape))) for n in (number, first[inverse[number]]))
    name = node.op.port_names[1]
    message = f"`{name}[{one}]` names the same place as `{name}[{other}]`, for another update"
    help = f"which of the two counts is not specified, here it is the last one; see {source_page(node.op)}"
    span = node.layer.input_ports[1].element.span
    yield Diagnostic("W948", message, span, node.layer.label, help)


def _are_distinct(where: Tensor) -> bool:
    """Whether no place can be another one, as its numbers say without numpy."""
    numbers = where.listed
    return numbers is not None and min(numbers, default=-1) >= 0 and len(set(numbers)) == len(numbers)


def _differ(rows: Any, others: Any) -> Any:
    """For each row whether it is another one; NaN is NaN."""
    rows, others = rows.reshape(len(rows), -1), others.reshape(len(others), -1)
    return ((rows != others) & ((rows == rows) | (others == others))).any(axis=1)
