"""The attributes of a layer against those that its op declares, and those that stand where nothing reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from irrun.check.documentation import close_matches
from irrun.diagnostics import Diagnostic, Place
from irrun.ir.graph import Layer
from irrun.ir.xml import Element, attribute_place
from irrun.spec.attributes import ELEMENT_TYPE, REQUIRED, SHAPE, Attr
from irrun.spec.dtypes import ELEMENT_TYPES, PRECISIONS
from irrun.spec.op import Op

_CACHE: dict[tuple[Op, frozenset[tuple[str, str]]], dict[str, Any]] = {}
_CACHE_SIZE = 10_000

FOREIGN = {"PrimitivesPriority", "alt_width", "originalLayersNames"}
"""Left on `<data>` by old tools for the benefit of plugins; they mean nothing to an op."""

_OF_LAYER = ("id", "name", "type", "version")
_TYPE_WORDS = {"float": "f32", "half": "f16", "double": "f64", "int": "i32", "long": "i64", "bool": "boolean"}


def read_attributes(op: Op, layer: Layer) -> tuple[dict[str, Any] | None, list[Diagnostic]]:
    """The attributes of `layer` by kernel keyword, defaults filled in; None where one is missing or unreadable."""
    misplaced = _misplaced(layer) if layer.strays or len(layer.element.attributes) > len(_OF_LAYER) else {}
    key = (op, frozenset(layer.attributes.items()))
    known = _CACHE.get(key)
    if known is not None:
        return known, list(_ignored(layer, misplaced, set()))
    values: dict[str, Any] = {}
    problems: list[Diagnostic] = []
    missing: list[str] = []
    for attr in op.attrs:
        text = layer.attributes.get(attr.name)
        if text is None:
            if attr.default is REQUIRED:
                missing.append(attr.name)
            values[attr.keyword] = attr.default
            continue
        try:
            values[attr.keyword] = attr.parse(text)
        except ValueError as error:
            message = f"attribute `{attr.name}` {error}"
            problems.append(_problem("E307", message, layer, attr.name, _meant(attr, text)))
    unknown = _unknown(op, layer)
    unreadable = bool(problems or missing)
    reported = set()
    for name in missing:
        typo = next((given for given, close in unknown.items() if close == name), None)
        if typo is not None:
            del unknown[typo]
        if name in misplaced and typo is None:
            reported.add(name)
        problems.append(_missing(op, name, layer, typo, misplaced.get(name)))
    problems += _ignored(layer, misplaced, reported)
    problems += [_unread(op, layer, name, close) for name, close in unknown.items()]
    if unreadable:
        return None, problems
    if not problems and all(attr.kind is not SHAPE for attr in op.attrs):  # each unknown size is one of its own
        if len(_CACHE) >= _CACHE_SIZE:
            _CACHE.clear()
        _CACHE[key] = values
    return values, problems


def _unknown(op: Op, layer: Layer) -> dict[str, str | None]:
    """The attributes that the op does not have, with the one that each may be meant for and that is not given."""
    names = [attr.name for attr in op.attrs]
    known = set(names) | FOREIGN
    free = [name for name in names if name not in layer.attributes]
    given = [name for name in layer.attributes if name not in known]
    return {name: next(iter(close_matches(name, free) or close_matches(name, names)), None) for name in given}


def _unread(op: Op, layer: Layer, name: str, close: str | None) -> Diagnostic:
    listed = ", ".join(f"`{attr.name}`" for attr in op.attrs)
    known = f"{op.name} has {listed}" if listed else f"{op.name} has none"
    hint = f"did you mean `{close}`?" if close else known
    return _problem("W930", f"{op.name} has no attribute `{name}`; it is ignored", layer, name, hint)


def _missing(op: Op, name: str, layer: Layer, typo: str | None, stray: Element | None) -> Diagnostic:
    """A required attribute is missing, perhaps because it is misspelt or stands in another element."""
    if typo is not None:
        message = f"{op.name} has no attribute `{typo}`, and lacks its required attribute `{name}`"
        return _problem("E306", message, layer, typo, f"did you mean `{name}`?")
    message = f"{op.name} lacks its required attribute `{name}`"
    if stray is not None:
        message += f": on this <{stray.tag}> it is not read"
        help = f'move {name}="{stray.attributes[name]}" to the first <data> of the layer'
        return Diagnostic("E306", message, attribute_place(stray, name), layer.label, help)
    place = layer.data.place if layer.data else layer.place
    help = f'add {name}="..." to <data>; OpenVINO may go on with a value that the specification does not give'
    return Diagnostic("E306", message, place, layer.label, help)


def _misplaced(layer: Layer) -> dict[str, Element]:
    """Attributes that are not read, with the element that they stand on: the <layer>, or another <data>."""
    own = {name: layer.element for name in layer.element.attributes if name not in _OF_LAYER}
    if layer.type == "Result":
        own.pop("output_names", None)
    for stray in layer.strays:
        own |= dict.fromkeys(stray.attributes, stray)
    return own


def _ignored(layer: Layer, misplaced: dict[str, Element], reported: set[str]) -> Iterator[Diagnostic]:
    """Warnings of misplaced attributes, unless some of those that stand there are `reported`."""
    for name, element in misplaced.items():
        if element is layer.element and name not in reported:
            help = "attributes of the op belong on <data>"
            place = attribute_place(element, name)
            yield Diagnostic("W902", f"`{name}` on <layer> is not read", place, layer.label, help)
    for stray in layer.strays:
        if not any(misplaced[name] is stray for name in reported):
            help = "move its attributes to the first <data>"
            yield Diagnostic("W901", "only the first <data> of a layer is read", stray.place, layer.label, help)


def _meant(attr: Attr, text: str) -> str | None:
    """What an unreadable word may be meant for."""
    if attr.kind is ELEMENT_TYPE:
        known = PRECISIONS.get(text.lower()) or _TYPE_WORDS.get(text.lower().rstrip("0123456789_t"), "")
        close = [known] if known in ELEMENT_TYPES else close_matches(text, ELEMENT_TYPES)
    else:
        close = close_matches(text, attr.kind.name.split(" | ")) if " | " in attr.kind.name else []
    return f"did you mean `{close[0]}`?" if close else None


def _problem(code: str, message: str, layer: Layer, name: str, help: str | None = None) -> Diagnostic:
    place: Place = attribute_place(layer.data, name) if layer.data else layer.place
    return Diagnostic(code, message, place, layer.label, help)
