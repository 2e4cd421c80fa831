"""Values that OpenVINO takes for missing attributes, against what ports declare: which one would give that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from irrun.check.attributes import as_written
from irrun.check.infer import Inference, InferredLayer
from irrun.check.origins import fits
from irrun.diagnostics import Diagnostic, LayerName, Note, Span, retold
from irrun.interruption import hand_on
from irrun.spec.attributes import BOOL, INT, INTS, Attr
from irrun.spec.op import UNLIKELY, Doubt
from irrun.spelling import listed

_MOST = 8
"""The largest number that is tried in place of the one that was taken."""

_TAKEN = ("W950", "W955")
_FOLLOWING = ("W931", "W932")
"""What is told of an output that is not as declared."""

_CAUSE, _LACKING = "E310", "E306"

_REASONS = ("W901", "W902", "W930", "W946", "W949", "W950", "W951", "W952", "W953", "W954", "W955")
"""What is told of a layer that may be why its outputs are not as declared."""

_OF_ATTRIBUTES = ("W901", "W902", "W930", "W950", "W955")
_OF_RULES = ("W949", "W951", "W954")
"""Those of attributes that are not read or not there, and of rules, which may be broken for that reason."""

_MOST_NOTED = 8
"""Outputs that a diagnostic has a note for."""


def against_ports(found: Iterable[Diagnostic], inference: Inference) -> list[Diagnostic]:
    """What is found, with one diagnostic for such a value and the outputs that are not as declared for that reason."""
    found = [*found]
    labels = {each.layer for each in found if each.code in _TAKEN}
    nodes = {layer.label: node for layer, node in inference.nodes.items() if layer.label in labels} if labels else {}
    told: set[Span] = set()
    said = []
    for each in found:
        node = nodes.get(each.layer) if each.code in _TAKEN and each.layer is not None else None
        attrs = [] if node is None else missing(node)
        if node is not None and attrs and not _gives_declared(node, node.attrs, inference):
            told |= {value.port.element.span for value in node.layer.outputs}
            said.append(_disproved(each, node, attrs, inference))
        elif node is not None and (doubt := _unlikely(node)) is not None and each.code == "W950":
            said.append(_doubted(each, doubt, node, inference))
        else:
            said.append(each)
    taken = {each.layer: each for each in said if each.code in _TAKEN}
    causes = {each.layer for each in said if each.code == _CAUSE and each.span in told}
    return [
        _with_reason(each, taken[each.layer]) if each.code == _CAUSE and each.span in told else each
        for each in said
        if not (each.code in _FOLLOWING and each.span in told) and not (each.code in _TAKEN and each.layer in causes)
    ]


def told_with_layers(found: list[Diagnostic]) -> list[Diagnostic]:
    """What is found, with outputs that are not as declared as notes of what may be why: a warning of the same layer, of
    an attribute that nothing reads or of a rule that it breaks. It is an error where a reader cannot be computed."""
    reasons: dict[LayerName | None, Diagnostic] = {}
    following: dict[LayerName | None, list[Diagnostic]] = {}
    rules: dict[LayerName | None, list[Diagnostic]] = {}
    for each in found:
        if each.code in _OF_RULES:
            rules.setdefault(each.layer, []).append(each)
        if (each.code in _REASONS or each.code == _LACKING) and each.layer is not None:
            reasons.setdefault(each.layer, each)
        elif each.code in (*_FOLLOWING, _CAUSE):
            following.setdefault(each.layer, []).append(each)
    told: dict[int, Diagnostic | None] = {}
    for layer, reason in reasons.items():
        outputs = following.get(layer, [])
        if reason.code in (*_OF_ATTRIBUTES, _LACKING):
            outputs += rules.get(layer, [])
        error = next((each for each in outputs if each.code == _CAUSE), None)
        told |= {id(each): None for each in outputs}
        notes = [Note(each.message, each.span) for each in outputs[:_MOST_NOTED] if each is not error]
        told[id(reason)] = replace(reason, notes=(*reason.notes, *notes)) if error is None else None
        if error is not None:
            message, notes = f"{error.message}: {reason.message}", [*notes, *error.notes]
            told[id(error)] = replace(error, message=message, span=reason.span, help=reason.help, notes=tuple(notes))
    errors = {each.span for each in found if each.severity == "error"}  # which say what is wrong with the port
    return retold((each for each in found if not (each.code in _FOLLOWING and each.span in errors)), told)


def _with_reason(cause: Diagnostic, taken: Diagnostic) -> Diagnostic:
    """The error of an output that is not as declared, told where the attributes are missing for it."""
    message, notes = f"{cause.message}: {taken.message}", (*taken.notes, *cause.notes)
    return replace(cause, message=message, span=taken.span, help=taken.help, notes=notes)


def missing(node: InferredLayer) -> list[Attr]:
    """The attributes that the file lacks, and that OpenVINO takes values for or insists on."""
    told = [attr for attr in node.op.attrs if attr.assumed is not None or attr.demanded]
    return [attr for attr in told if attr.name not in node.layer.attributes]


def _disproved(taken: Diagnostic, node: InferredLayer, attrs: list[Attr], inference: Inference) -> Diagnostic:
    """The warning of values that were taken, with which the output is not as declared."""
    right = as_port_declares(node, attrs, inference)
    what = "and its default" if taken.code == "W955" else "which"
    message = f"{taken.message}, {what} does not give what the output port declares"
    names = listed([attr.name for attr in attrs])
    help = f"the file may have had another value of {names}; the port was written by who knew it"
    if right is not None:
        help = _advice(attrs[0], right)
    return replace(taken, message=message, help=help)


def advised(node: InferredLayer, inference: Inference) -> str | None:
    """What to write for the only attribute that is missing, if one value alone gives what the output port declares."""
    attrs = missing(node)
    right = as_port_declares(node, attrs, inference)
    return None if right is None else _advice(attrs[0], right)


def _advice(attr: Attr, right: str) -> str:
    return f'write {attr.name}="{right}", with which the output is as declared'


def _unlikely(node: InferredLayer) -> Doubt | None:
    """What is doubtful about a layer whatever its data are."""
    return next((doubt for doubt in node.doubts if doubt.code == UNLIKELY), None)


def _doubted(taken: Diagnostic, doubt: Doubt, node: InferredLayer, inference: Inference) -> Diagnostic:
    """What is said of values that were taken and that are seldom meant; an error where OpenVINO reads no such layer."""
    help = advised(node, inference) or taken.help
    if not doubt.refused:
        return replace(taken, help=help)
    message = f"{taken.message}, with which OpenVINO does not read the layer"
    return replace(taken, code="E306", message=message, help=help)


def as_port_declares(node: InferredLayer, attrs: list[Attr], inference: Inference) -> str | None:
    """The value of the only attribute that is missing with which alone the output is as declared."""
    if len(attrs) != 1:
        return None
    (attr,) = attrs
    right = [
        value
        for value in _others(node, attr)
        if _is_allowed(attr, value) and _gives_declared(node, node.attrs | {attr.keyword: value}, inference)
    ]
    return as_written(right[0]) if len(right) == 1 else None


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
