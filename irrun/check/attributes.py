"""The attributes of a layer against those that its op declares."""

from __future__ import annotations

from typing import Any

from irrun.check.documentation import close_matches
from irrun.diagnostics import Diagnostic
from irrun.ir.graph import Layer
from irrun.ir.xml import attribute_place
from irrun.spec.attributes import REQUIRED, SHAPE
from irrun.spec.op import Op

_CACHE: dict[tuple[Op, frozenset[tuple[str, str]]], dict[str, Any]] = {}
_CACHE_SIZE = 10_000

FOREIGN = {"PrimitivesPriority", "alt_width", "originalLayersNames"}
"""Left on `<data>` by old tools for the benefit of plugins; they mean nothing to an op."""


def read_attributes(op: Op, layer: Layer) -> tuple[dict[str, Any] | None, list[Diagnostic]]:
    """The attributes of `layer` by kernel keyword, defaults filled in; None where one is missing or unreadable."""
    key = (op, frozenset(layer.attributes.items()))
    known = _CACHE.get(key)
    if known is not None:
        return known, []
    values: dict[str, Any] = {}
    problems: list[Diagnostic] = []
    for attr in op.attrs:
        text = layer.attributes.get(attr.name)
        if text is None:
            if attr.default is REQUIRED:
                problems.append(_missing(op, attr.name, layer))
            values[attr.keyword] = attr.default
            continue
        try:
            values[attr.keyword] = attr.parse(text)
        except ValueError as error:
            problems.append(_problem("E307", f"attribute `{attr.name}` {error}", layer, attr.name))
    if problems:
        return None, problems + _unknown(op, layer)
    problems = _unknown(op, layer)
    if not problems and all(attr.kind is not SHAPE for attr in op.attrs):  # each unknown size is one of its own
        if len(_CACHE) >= _CACHE_SIZE:
            _CACHE.clear()
        _CACHE[key] = values
    return values, problems


def _unknown(op: Op, layer: Layer) -> list[Diagnostic]:
    names = [attr.name for attr in op.attrs]
    problems = []
    for name in layer.attributes.keys() - set(names) - FOREIGN:
        close = close_matches(name, names)
        known = f"{op.name} has {', '.join(f'`{n}`' for n in names)}" if names else f"{op.name} has none"
        hint = f"did you mean `{close[0]}`?" if close else known
        problems.append(_problem("W930", f"{op.name} has no attribute `{name}`; it is ignored", layer, name, hint))
    return problems


def _missing(op: Op, name: str, layer: Layer) -> Diagnostic:
    place = layer.data.place if layer.data else layer.place
    return Diagnostic(
        "E306",
        f"{op.name} lacks its required attribute `{name}`",
        place,
        layer.label,
        help=f'add {name}="..." to <data>; OpenVINO may go on with a value that the specification does not give',
    )


def _problem(code: str, message: str, layer: Layer, name: str, help: str | None = None) -> Diagnostic:
    place = attribute_place(layer.data, name) if layer.data else layer.place
    return Diagnostic(code, message, place, layer.label, help)
