"""Values that OpenVINO takes for missing attributes, against what ports declare: which one would give that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from irrun.check.attributes import as_written
from irrun.check.infer import Inference, InferredLayer
from irrun.check.origins import fits
from irrun.diagnostics import Diagnostic, Span
from irrun.interruption import hand_on
from irrun.spec.attributes import BOOL, INT, INTS, Attr

_MOST = 8
"""The largest number that is tried in place of the one that was taken."""

_TAKEN = "W950"


def against_ports(found: Iterable[Diagnostic], inference: Inference) -> list[Diagnostic]:
    """What is found, with one diagnostic for such a value and the outputs that are not as declared for that reason."""
    found = [*found]
    labels = {each.layer for each in found if each.code == _TAKEN}
    nodes = {layer.label: node for layer, node in inference.nodes.items() if layer.label in labels} if labels else {}
    told: set[Span] = set()
    said = []
    for each in found:
        node = nodes.get(each.layer) if each.code == _TAKEN and each.layer is not None else None
        attr = None if node is None else _only_missing(node)
        if node is not None and attr is not None and not _gives_declared(node, node.attrs, inference):
            told |= {value.port.element.span for value in node.layer.outputs}
            said.append(_disproved(each, node, attr, inference))
        else:
            said.append(each)
    return [each for each in said if each.code != "W931" or each.span not in told]


def _only_missing(node: InferredLayer) -> Attr | None:
    missing = [attr for attr in node.op.attrs if attr.assumed is not None and attr.name not in node.layer.attributes]
    return missing[0] if len(missing) == 1 else None


def _disproved(taken: Diagnostic, node: InferredLayer, attr: Attr, inference: Inference) -> Diagnostic:
    """The warning of a value that was taken, with which the output is not as declared."""
    right = [
        value
        for value in _others(node, attr)
        if _is_allowed(attr, value) and _gives_declared(node, node.attrs | {attr.keyword: value}, inference)
    ]
    message = f"{taken.message}, which does not give what the output port declares"
    help = f"the file may have had another value of `{attr.name}`; the port was written by who knew it"
    if len(right) == 1:
        help = f'write {attr.name}="{as_written(right[0])}", with which the output is as declared'
    return replace(taken, message=message, help=help)


def _others(node: InferredLayer, attr: Attr) -> Iterator[Any]:
    """Values that the attribute may have in place of the one that was taken."""
    taken = node.attrs[attr.keyword]
    if attr.kind is BOOL:
        yield not taken
    elif attr.kind is INT:
        yield from (number for number in range(_MOST + 1) if number != taken)
    elif attr.kind is INTS:
        lists = ((number,) * len(taken) for number in range(_MOST + 1))
        yield from (numbers for numbers in lists if numbers != taken)
    else:
        yield from (word for word in attr.kind.words if word != taken)


def _is_allowed(attr: Attr, value: Any) -> bool:
    try:
        attr.parse(as_written(value))
    except ValueError:
        return False
    return True


def _gives_declared(node: InferredLayer, attrs: dict[str, Any], inference: Inference) -> bool:
    inputs = [None if value is None else inference.tensor(value) for value in node.layer.inputs]
    try:
        outputs = node.op.infer(inputs, attrs).outputs
    except Exception as error:  # a rule is broken, or fails itself
        hand_on(error)
        return False
    return all(fits(value.port, tensor) for value, tensor in zip(node.layer.outputs, outputs, strict=False))
