"""The attributes of a layer against those that its op declares, and those that stand where nothing reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import islice
from typing import Any

from irrun.check.documentation import source_page
from irrun.check.leftovers import is_leftover
from irrun.check.synonyms import ELSEWHERE, synonyms
from irrun.diagnostics import Diagnostic, Note, Span
from irrun.ir.graph import OF_LAYER, Layer
from irrun.ir.xml import Element, attribute_span
from irrun.records import NamedTuple
from irrun.spec.attributes import BOOL, ELEMENT_TYPE, FLOAT_NUMBER, FLOATS, INT, INTS, REQUIRED, SHAPE, Attr, EachAxis
from irrun.spec.dtypes import ELEMENT_TYPES, meant_type
from irrun.spec.op import Op
from irrun.spec.registry import registry
from irrun.spelling import advice, close_matches, listed, misspelt

_CACHE: dict[tuple[Op, tuple[tuple[str, str], ...]], dict[str, Any]] = {}
_CACHE_SIZE = 10_000

FOREIGN = {"PrimitivesPriority", "alt_width", "originalLayersNames"}
"""Left on `<data>` by old tools for the benefit of plugins; they mean nothing to an op."""

_FOREIGN = 3
"""Attributes of a layer, none of which its op has, that tell that it may be of another type; one will do where the
number of its inputs is not right either."""

_SEVERAL = 2
"""So many tell it where another op has them, and those of its own."""

_NAMED = 4
"""Types and attributes that such a message names."""

MAX_UNKNOWN = 50
"""Attributes of one layer that nothing reads and that are reported."""

_NUMBERS = ("OpenVINO reads the digits at the front, or fails",)
_MADE_OF = {
    BOOL: ("write `true` or `false`; OpenVINO ignores other words and goes on with its default",),
    INT: _NUMBERS,
    FLOAT_NUMBER: _NUMBERS,
    INTS: ("separate whole numbers by single commas",),
    FLOATS: ("separate numbers by single commas",),
    SHAPE: ("write sizes separated by commas: `224`, `?` for any, `1..8` for a range",),
}

_CASE = "OpenVINO ignores the case of it, of a Const not always; other readers of the file do not"


class Attributes(NamedTuple):
    """The attributes of a layer by kernel keyword, defaults filled in; None where one is missing or unreadable.

    `suspect` is the warning among `problems` that may be the reason if the layer breaks a rule: of an attribute that is
    not read, so that a default stands for it; `guessed` are the keywords of such. `readable` are the values of those
    that can be read where there are none of all; None where the layer may be of another type.
    """

    values: dict[str, Any] | None
    problems: list[Diagnostic]
    suspect: Diagnostic | None = None
    readable: dict[str, Any] | None = None
    guessed: Collection[str] = ()


def read_attributes(op: Op, layer: Layer) -> Attributes:
    """What the file gives for the attributes of `op`, and what is wrong with it."""
    misplaced = _misplaced(layer) if layer.strays or layer.marked else {}
    key = (op, tuple(layer.attributes.items()))
    known = _CACHE.get(key)
    if known is not None:
        if not misplaced and not layer.strays:
            return Attributes(known, [])
        ignored = list(_ignored(layer, misplaced, ()))
        suspect = _suspect(op, layer, misplaced, ignored)
        return Attributes(known, ignored, suspect, guessed=_guessed(op, layer, misplaced, ()))
    values, missing, problems, readable = _parsed(op, layer)
    strange = [] if op.attr_names.issuperset(layer.attributes) else _strange(op, layer)
    left = [name for name in strange if is_leftover(op.type, name, layer.attributes[name])]
    demanded = _demanded(op, layer, values, misplaced)
    meant = [*missing, *demanded]
    unknown = _unknown(op, layer, [name for name in strange if name not in left], meant) if strange else {}
    foreign = _foreign(op, layer, unknown)
    unknown = unknown if foreign is None else {}
    lost, insisted, meant_for = _misspelt(op, layer, unknown, missing, demanded)
    problems += lost
    readable = readable and not lost
    if missing:
        problems += _assume(op, layer, values, missing, misplaced)
    strayed = [name for name in missing if name in misplaced]
    if missing:
        readable = False
        lacked = _missing(op, layer, [name for name in missing if name not in misplaced], strayed, misplaced)
        problems += lacked if foreign is None else (with_note(found, foreign) for found in lacked)
    ignored = list(_ignored(layer, misplaced, strayed))
    unread = [_unread(op, layer, name, close) for name, close in unknown.items()]
    strangers = [found for found, close in zip(unread, unknown.values(), strict=True) if not close]
    noted = _noted(problems, strangers)  # of a layer that may be of another type
    problems += [found for found in unread if not (noted and found in strangers)]
    problems += ignored + [_left(op, layer, name) for name in left] + insisted
    if demanded and foreign is None:
        lacking = _insisted(op, layer, list(demanded.values()))
        problems += [] if _noted(problems, [lacking]) else [lacking]
    if foreign is not None and not missing:
        problems.append(foreign)
    if not readable:
        others = {keyword: value for keyword, value in values.items() if value is not REQUIRED}
        return Attributes(
            None, [*with_warnings(problems)], readable=others if foreign is None and not (missing and unknown) else None
        )
    if not problems:
        if not op.has_shape_attr:  # each unknown size is one of its own
            if len(_CACHE) >= _CACHE_SIZE:
                _CACHE.clear()
            _CACHE[key] = values
        return Attributes(values, problems)
    if foreign is not None:
        return Attributes(values, problems, foreign)
    typos = insisted + [found for found, close in zip(unread, unknown.values(), strict=True) if close]
    meant_for += [close for close in unknown.values() if close]
    suspect = next(iter(typos), None) or _suspect(op, layer, misplaced, ignored)
    return Attributes(values, problems, suspect, guessed=_guessed(op, layer, misplaced, meant_for))


def _misspelt(
    op: Op, layer: Layer, unknown: dict[str, str | None], missing: list[str], demanded: dict[str, Attr]
) -> tuple[list[Diagnostic], list[Diagnostic], list[str]]:
    """What is said where an attribute that the op has not stands for one that is `missing`, and where it does for one
    that OpenVINO has `demanded`, with the names of these; none of them is any of that any more."""
    lost: list[Diagnostic] = []
    insisted: list[Diagnostic] = []
    meant_for: list[str] = []
    for typo, close in list(unknown.items()):
        if close in missing:
            del unknown[typo]
            missing.remove(close)
            message = f"{op.name} has no attribute `{typo}`, and lacks its required attribute `{close}`"
            lost.append(_problem("E306", message, layer, typo, advice(typo, close)))
        elif close in demanded:
            del unknown[typo]
            message = f"{op.name} has no attribute `{typo}`, and {_without(op, [demanded.pop(close)], 'it')}"
            insisted.append(_problem("W955", message, layer, typo, advice(typo, close)))
            meant_for.append(close)
    return lost, insisted, meant_for


def _noted(problems: list[Diagnostic], others: Sequence[Diagnostic]) -> bool:
    """Have others as notes of what says that a value is taken for one that is missing; False where nothing does."""
    taken = next((number for number, each in enumerate(problems) if each.code == "W950"), None)
    if taken is not None:
        problems[taken] = reduce(with_note, others, problems[taken])
    return taken is not None


def _parsed(op: Op, layer: Layer) -> tuple[dict[str, Any], list[str], list[Diagnostic], bool]:
    """The values by keyword, required ones that are missing, what is wrong, and whether all that is there is read."""
    values: dict[str, Any] = {}
    missing: list[str] = []
    problems: list[Diagnostic] = []
    readable = True
    for attr in op.attrs:
        text = layer.attributes.get(attr.name)
        if text is None:
            if attr.default is REQUIRED:
                missing.append(attr.name)
            values[attr.keyword] = attr.default
            continue
        try:
            value = values[attr.keyword] = attr.parse(text)
        except ValueError as error:
            unused = _unused(op, layer, attr, text)
            if unused is not None:
                values[attr.keyword], warnings = unused
                problems += warnings
                continue
            readable = False
            given = f" is `{text}`, where an element" if attr.kind.many and text not in str(error) else ""
            message = f"attribute `{attr.name}`{given} {error}"
            problems.append(_problem("E307", message, layer, attr.name, _meant(attr, text) or _advice(op, attr, text)))
            continue
        if value != text and value in ELEMENT_TYPES and text.lower() == value:
            message = f"the element type is written `{text}`, but is spelt `{value}` in an IR"
            problems.append(_problem("W908", message, layer, attr.name, _CASE))
        if attr.lenient or attr.kind in (FLOAT_NUMBER, FLOATS):
            problems += _beyond(op, layer, attr, value, text)
        if attr.meant(text):
            problems.append(_reworded(op, layer, attr, text))
    return values, missing, problems, readable


def _demanded(op: Op, layer: Layer, values: Mapping[str, Any], misplaced: Collection[str]) -> dict[str, Attr]:
    """What the file lacks, and may by the specification, but not by OpenVINO: where something reads it."""
    return {
        attr.name: attr
        for attr in op.attrs
        if attr.demanded and attr.name not in layer.attributes and attr.name not in misplaced and _is_read(attr, values)
    }


def _is_read(attr: Attr, values: Mapping[str, Any]) -> bool:
    """Whether no other attribute says that nothing reads this one."""
    if attr.unread is None:
        return True
    name, unreading = attr.unread
    return values.get(name) not in unreading


def _assume(
    op: Op, layer: Layer, values: dict[str, Any], missing: list[str], misplaced: dict[str, Element]
) -> list[Diagnostic]:
    """Give missing attributes the values that OpenVINO assumes for them, where it does so for all; they are missing no
    longer."""
    absent = [attr for attr in op.attrs if attr.name in missing and attr.name not in misplaced]
    assumed = {attr: _assumed(attr, layer) for attr in absent}
    if not absent or None in assumed.values():
        return []
    for attr, value in assumed.items():
        missing.remove(attr.name)
        values[attr.keyword] = value
    return [_taken(op, layer, {attr.name: as_written(value) for attr, value in assumed.items()})]


def _astray(op: Op, layer: Layer, misplaced: Collection[str]) -> list[str]:
    """The names of attributes that stand where nothing reads them alone."""
    return [attr.name for attr in op.attrs if attr.name in misplaced and attr.name not in layer.attributes]


def _suspect(op: Op, layer: Layer, misplaced: dict[str, Element], ignored: list[Diagnostic]) -> Diagnostic | None:
    return ignored[0] if ignored and _astray(op, layer, misplaced) else None


def _guessed(op: Op, layer: Layer, misplaced: Collection[str], meant: Collection[str]) -> list[str]:
    """The keywords of attributes that others may be `meant` for, and of those that stand where nothing reads them."""
    names = {*meant, *_astray(op, layer, misplaced)}
    return [attr.keyword for attr in op.attrs if attr.name in names]


def _strange(op: Op, layer: Layer) -> list[str]:
    """The attributes that the op does not have."""
    return [name for name in layer.attributes if name not in op.attr_names and name not in FOREIGN][:MAX_UNKNOWN]


def _foreign(op: Op, layer: Layer, unknown: dict[str, str | None]) -> Diagnostic | None:
    """The warning of a layer of which the op knows not one of several attributes: it may have had another type."""
    names = [*unknown]
    count = len(layer.inputs)
    fits = count >= op.least_inputs and (op.variadic or count <= len(op.inputs))
    known = op.attr_names & layer.attributes.keys()
    alone = not known and (len(names) >= _FOREIGN or not fits)
    if not names or any(unknown.values()) or not (alone or len(names) >= _SEVERAL):
        return None
    given = [*names, *known]
    having = [each.type for each in registry().ops.values() if each.attr_names.issuperset(given)]
    types = [*dict.fromkeys("Const" if type == "Constant" else type for type in having)]
    if op.type in types or not (alone or types):  # of another version, as is said of each
        return None
    meant = f"{', '.join(types[:_NAMED])} {'has' if len(types) == 1 else 'have'} them all; " if types else ""
    first = ", ".join(f"`{name}`" for name in names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    message = f"{op.name} has none of the attributes {first} of this layer; they are ignored"
    help = f"{meant}is the type wrong?"
    return Diagnostic("W930", message, attribute_span(layer.element, "type"), layer.label, help)


def with_note(found: Diagnostic, other: Diagnostic) -> Diagnostic:
    return replace(found, notes=(*found.notes, Note(f"{other.message}: {other.help}", other.span)))


def with_warnings(problems: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    """What is wrong with a layer, warnings as notes of its first error: whatever they are of may be the cause."""
    first = next((found for found in problems if found.severity == "error"), None)
    warnings = [found for found in problems if first is not None and found.severity == "warning"]
    for found in problems:
        if found is first:
            yield reduce(with_note, warnings, found)
        elif found not in warnings:
            yield found


def _unknown(op: Op, layer: Layer, strange: Sequence[str], missing: Sequence[str]) -> dict[str, str | None]:
    """Attributes that the op does not have, with the one that each may be meant for: one that is required and not given
    before others that are not given."""
    names = [attr.name for attr in op.attrs]
    free = [name for name in names if name not in layer.attributes]
    close = {
        name: close_matches(name, missing, likely=True)
        or synonyms(name, free)
        or close_matches(name, free)
        or close_matches(name, names)
        for name in strange
    }
    return {name: next(iter(found), None) for name, found in close.items()}


def _left(op: Op, layer: Layer, name: str) -> Diagnostic:
    help = "converters up to 2021 wrote it, and OpenVINO ignores it, too"
    return _problem("I901", f"{op.name} has no attribute `{name}`, which a converter has left", layer, name, help)


def _of_version(op: Op, name: str) -> str | None:
    """What to do about an attribute that another version of the op has; None where none has it."""
    versions = registry()
    for other in versions.versions(op.type):
        sets = versions.opsets(other) if name in other.attr_names else []
        if sets:
            return f'{other.name} has it: is version="opset{sets[0]}" meant?'
    return None


def _unread(op: Op, layer: Layer, name: str, close: str | None) -> Diagnostic:
    own = ", ".join(f"`{attr.name}`" for attr in op.attrs)
    known = f"{op.name} has {own}" if own else f"{op.name} has none"
    hint = _of_version(op, name) or (advice(name, close) if close else known)
    return _problem("W930", f"{op.name} has no attribute `{name}`; it is ignored", layer, name, hint)


def _missing(
    op: Op, layer: Layer, absent: list[str], strayed: list[str], misplaced: dict[str, Element]
) -> Iterator[Diagnostic]:
    """Required attributes are missing: `absent` altogether, or `strayed` into an element where they are not read."""
    if absent:
        span = layer.data.span if layer.data else layer.span
        given = " ".join(f'{name}="..."' for name in absent)
        help = f"add {given} to <data>; OpenVINO may go on with a value that the specification does not give"
        yield Diagnostic("E306", _lacking(op, absent), span, layer.label, help)
    if strayed:
        stray = misplaced[strayed[0]]
        given = " ".join(f'{name}="{misplaced[name].attributes[name]}"' for name in strayed)
        message = f"{_lacking(op, strayed)}: on this <{stray.tag}> nothing reads it"
        span = attribute_span(stray, strayed[0])
        yield Diagnostic("E306", message, span, layer.label, f"move {given} to the first <data> of the layer")


def _assumed(attr: Attr, layer: Layer) -> Any:
    """What OpenVINO takes for a missing attribute; None where the file does not say how often."""
    if not isinstance(attr.assumed, EachAxis):
        return attr.assumed
    rank = len(layer.input_ports[0].element.dims) if layer.input_ports else 0
    return (attr.assumed.value,) * (rank - 2) if rank > 2 else None


def _taken(op: Op, layer: Layer, texts: Mapping[str, str]) -> Diagnostic:
    """The warning of required attributes for which OpenVINO takes values of its own."""
    message = f"{_lacking(op, [*texts])}; OpenVINO takes {listed([*texts.values()])}, and so does irrun"
    span = layer.data.span if layer.data else layer.span
    given = " ".join(f'{name}="{text}"' for name, text in texts.items())
    return Diagnostic("W950", message, span, layer.label, f"write {given}; see {source_page(op)}")


def _insisted(op: Op, layer: Layer, attrs: Sequence[Attr]) -> Diagnostic:
    """The warning of attributes that have a default, but without which OpenVINO takes no model, or something else."""
    message = _without(op, attrs, op.name)
    given = " ".join(f'{attr.name}="{as_written(attr.default)}"' for attr in attrs)
    span = layer.data.span if layer.data else layer.span
    help = f"write {given}, as the specification has it and irrun computes; see {source_page(op)}"
    return Diagnostic("W955", message, span, layer.label, help)


def _without(op: Op, attrs: Sequence[Attr], what: str) -> str:
    """What OpenVINO makes of an op without attributes that are demanded, all for the same reason."""
    names, assumed = listed([attr.name for attr in attrs]), [attr.assumed for attr in attrs]
    if None in assumed:
        return f"OpenVINO does not take {what} without {names}"
    return f"without {names} OpenVINO takes {listed([as_written(value) for value in assumed])} for {op.name}"


def as_written(value: Any) -> str:
    """A value as a file has it."""
    if isinstance(value, tuple):
        return ",".join(map(as_written, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _beyond(op: Op, layer: Layer, attr: Attr, value: Any, text: str) -> Iterator[Diagnostic]:
    """The warning of a value out of range, or of no number, with which OpenVINO computes."""
    try:
        attr.check(value, text)
        if any(element != element for element in (value if attr.kind.many else (value,))):
            raise ValueError(f"is {text}, expected {'numbers' if attr.kind.many else 'a number'}")
    except ValueError as error:
        help = f"OpenVINO computes with it, and so does irrun; see {source_page(op)}"
        yield _problem("W953", f"attribute `{attr.name}` {error}", layer, attr.name, help)


def _reworded(op: Op, layer: Layer, attr: Attr, text: str) -> Diagnostic:
    """The warning of a word that OpenVINO takes for another one."""
    message = f"attribute `{attr.name}` is `{text}`, expected one of {', '.join(attr.kind.words)}"
    help = f"OpenVINO takes it for `{attr.meant(text)}`, and so does irrun; see {source_page(op)}"
    return _problem("W953", message, layer, attr.name, help)


def _unused(op: Op, layer: Layer, attr: Attr, text: str) -> tuple[Any, list[Diagnostic]] | None:
    """A value out of range that nothing reads, since another attribute says so, and the warning; without one where the
    other attribute, which is reported, cannot be read, so that something may or may not. Else None."""
    if attr.unread is None:
        return None
    name, values = attr.unread
    other = next(each for each in op.attrs if each.name == name)
    given = layer.attributes.get(name)
    try:
        value = attr.kind.parse(text)
    except ValueError:
        return None
    try:
        means = other.default if given is None else other.parse(given)
    except ValueError:
        return value, []
    if means not in values:
        return None
    try:
        attr.check(value, text)
    except ValueError as error:
        help = f"`{name}` is {as_written(means)}, so nothing reads it; see {source_page(op)}"
        return value, [_problem("W953", f"attribute `{attr.name}` {error}", layer, attr.name, help)]
    return None


def _lacking(op: Op, names: list[str]) -> str:
    return f"{op.name} lacks its required attribute{'s' if len(names) > 1 else ''} {listed(names)}"


def _misplaced(layer: Layer) -> dict[str, Element]:
    """Attributes that are not read, with the element that they stand on: the <layer>, or another <data>."""
    given = layer.element.attributes
    own = {name: layer.element for name in given if name not in OF_LAYER}
    meant = misspelt([name for name in OF_LAYER if name not in given], own, OF_LAYER)
    if meant is not None:  # which is reported
        del own[meant[1]]
    if layer.type == "Result":
        own.pop("output_names", None)
    for stray in layer.strays:
        own |= dict.fromkeys(stray.attributes, stray)
    return own


def _ignored(layer: Layer, misplaced: dict[str, Element], reported: Collection[str]) -> Iterator[Diagnostic]:
    """Warnings of misplaced attributes, unless some of those that stand there are `reported`."""
    for name, element in islice(misplaced.items(), MAX_UNKNOWN):
        if element is layer.element and name not in reported:
            help = "attributes of the op belong on <data>"
            span = attribute_span(element, name)
            yield Diagnostic("W902", f"`{name}` on <layer> is not read", span, layer.label, help)
    for stray in layer.strays[:MAX_UNKNOWN]:
        if not any(misplaced[name] is stray for name in reported):
            help = _united(layer.data.attributes if layer.data else {}, stray.attributes)
            yield Diagnostic("W901", "only the first <data> of a layer is read", stray.span, layer.label, help)


def _united(first: Mapping[str, str], second: Mapping[str, str]) -> str:
    """What makes one <data> of two that have these attributes."""
    others = [name for name, text in second.items() if first.get(name, text) != text]
    if others:
        what = "delete one of the two" if second.keys() <= first.keys() else "make one of the two"
        return f"{what}: they contradict each other in {listed(others[:MAX_UNKNOWN])}"
    if second.items() <= first.items():
        return "delete it: all that it says stands in the first <data>"
    return "move its attributes to the first <data>"


def _meant(attr: Attr, text: str) -> str | None:
    """What an unreadable word may be meant for."""
    if attr.kind is ELEMENT_TYPE:
        known = meant_type(text)
        close = [known] if known is not None else close_matches(text, ELEMENT_TYPES)
    else:
        words = attr.kind.words
        close = close_matches(text, words) if len(words) > 1 or attr.kind.cased else []
    return advice(text, close[0]) if close else None


def _advice(op: Op, attr: Attr, text: str) -> str:
    """What OpenVINO makes of a text of this kind, where that cannot be read, or what it means elsewhere; and where the
    attribute is described."""
    page = f"see {source_page(op)}"
    try:
        attr.kind.parse(text)
    except ValueError:
        return "; ".join([*_MADE_OF.get(attr.kind, ()), page])
    meant = ELSEWHERE.get((attr.name, text.strip()))
    return page if meant is None else f"{meant}; {page}"


def _problem(code: str, message: str, layer: Layer, name: str, help: str | None = None) -> Diagnostic:
    span: Span = attribute_span(layer.data, name) if layer.data else layer.span
    return Diagnostic(code, message, span, layer.label, help)
