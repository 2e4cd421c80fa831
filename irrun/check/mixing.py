"""Layers whose inputs mix floating-point types where the specification has one, as old converters write them."""

from __future__ import annotations

from collections.abc import Iterator

from irrun.check.doubts import followers
from irrun.check.infer import Inference, InferredLayer
from irrun.diagnostics import Diagnostic
from irrun.spec.op import FLOAT

MAX_NAMED = 5
"""Op types that the warning names."""


def mixed_types(inference: Inference) -> Iterator[Diagnostic]:
    """One warning for a model that has such layers, at the first one: a converter writes many, for one reason."""
    doubtful = followers(inference.nodes, inference.weights.doubtful.keys())
    mixing = (
        node
        for node in inference.nodes.values()
        if node.widened and node.layer not in doubtful and _mixed(node, inference)
    )
    nodes = sorted(mixing, key=lambda node: node.layer.span.line)
    if not nodes:
        return
    first, more = nodes[0], len(nodes) - 1
    types = list(dict.fromkeys(node.op.type for node in nodes))
    named = ", ".join(types[:MAX_NAMED]) + (", ..." if len(types) > MAX_NAMED else "")
    others = (
        f"; so do {more} more layers ({named})" if more > 1 else f"; so does one more layer ({named})" if more else ""
    )
    wide = next(type for type in first.widened.values() if type in FLOAT)
    help = (
        f"computed in {wide}, as OpenVINO does, the results in the type of the first input; converters up to 2021 "
        "write this with f16 weights: convert the model anew"
    )
    yield Diagnostic("W933", f"{_mixed(first, inference)}{others}", first.layer.span, first.layer.label, help)


def _mixed(node: InferredLayer, inference: Inference) -> str:
    """Which input has another floating-point type than the first one of its symbol, or nothing."""
    first: dict[str, tuple[str, str]] = {}
    for port, value in zip(node.op.inputs, node.layer.inputs, strict=False):
        type = inference.tensor(value).type
        if node.widened.get(port.type) not in FLOAT or type not in FLOAT:
            continue
        name, known = first.setdefault(port.type, (port.name, type))
        if type != known:
            return f"`{port.name}` is {type}, but `{name}` is {known}"
    return ""
