"""Fixes of words: types, operation sets and attributes that are misspelt, misplaced or unreadable."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from irrun.check.assumed import as_port_declares, missing
from irrun.check.attributes import as_written
from irrun.check.fixes.place import Case
from irrun.check.lookup import meant_types, takes
from irrun.check.synonyms import synonyms
from irrun.diagnostics import Fix
from irrun.ir.graph import OF_LAYER
from irrun.ir.text_edits import set_attribute as with_attribute
from irrun.spec.attributes import BOOL, ELEMENT_TYPE, FLOAT_NUMBER, FLOATS, INT, INTS, REQUIRED, SHAPE, Attr
from irrun.spec.dtypes import ELEMENT_TYPES, meant_type
from irrun.spec.op import Op
from irrun.spec.registry import registry
from irrun.spelling import close_matches, misspelt

_SPELT = re.compile(r"is spelt [`<](\w+)[`>]")

_LACKED = re.compile(r"no `([\w-]+)`")

_TRUTH = {"yes": "true", "on": "true", "y": "true", "t": "true", "no": "false", "off": "false", "n": "false"}
_TRUTH |= {"f": "false", ".true.": "true", ".false.": "false", "1.0": "true", "0.0": "false"}
_WHOLE = re.compile(r"([+-]?\d+)\.0*", re.ASCII)
_SEPARATOR = re.compile(r"\s*[,;|]\s*|\s+")
_OPSET = re.compile(r"\D*(\d{1,3})\D*", re.ASCII)


def respelled_word(case: Case) -> Iterator[Fix]:
    """W908: a type, an element type, a precision or the root as an IR has it."""
    right = _SPELT.search(case.diagnostic.message)
    if right is None or case.attribute == "type":
        yield from respelled_type(case)
    elif case.attribute is None:
        yield case.fix(f"write <{right[1]}>", *case.respelled(case.element, right[1]))
    else:
        yield case.set(case.attribute, right[1])


def respelled_type(case: Case) -> Iterator[Fix]:
    """E217, E221, W908: the type as an IR has it."""
    written = case.element.attributes["type"]
    known = {"constant": "Const", "const": "Const", "result": "Result", "assign": "Assign"}
    known |= {"parameter": "Parameter", "readvalue": "ReadValue"}
    op = registry().find(written, case.element.attributes.get("version", ""))
    right = known.get(written.lower()) or (op.type if op else None)
    if right is not None and right != written:
        layer = case.layer
        # of a layer that has not the form of that another type may be meant
        ended = right != "Result" or layer is None or bool(layer.input_ports)
        stored = right != "Const" or layer is None or "offset" in layer.attributes
        yield case.set("type", right, safe=ended and stored)


def lost_output(case: Case) -> Iterator[Fix]:
    """E225: the type of what ends a graph."""
    yield case.set("type", "Result")


def unknown_op(case: Case) -> Iterator[Fix]:
    """E301: another type, or an operation set that has it."""
    known = registry()
    type, version = case.element.attributes.get("type", ""), case.element.attributes.get("version", "")
    if case.layer is None:
        return
    if case.attribute == "type":
        forms = meant_types(case.layer)
        there = [name for name in forms if known.find(name, version) is not None]
        fitting = [name for name in forms if forms[name]]
        certain = _certain(type, fitting, fitting)
        for name in there or forms:
            yield case.set("type", name, safe=name == certain)
        return
    versions = known.versions(type)
    number = _OPSET.fullmatch(version)
    meant = f"opset{int(number[1])}" if number else ""
    if meant not in ("", version) and known.find(type, meant) is not None:
        yield case.set("version", meant)
        return
    held = sorted(n for op in versions for n in known.opsets(op))
    if number and held and not version.startswith("opset0"):
        nearest = min(held, key=lambda n: abs(n - int(number[1])))
        yield case.set("version", f"opset{nearest}", safe=len(versions) == 1 and takes(versions[0], case.layer))
    elif held:
        yield case.set("version", f"opset{held[0]}", safe=len(versions) == 1 and takes(versions[0], case.layer))


def misspelt_attribute(case: Case) -> Iterator[Fix]:
    """E201, E505: an attribute that seems to be meant for one that is missing gets its name, and keeps its value."""
    lacked = _LACKED.findall(case.diagnostic.message)
    meant = misspelt(lacked, [case.attribute or ""], lacked)
    if meant is not None:
        yield case.rename(meant[1], meant[0])


def missing_attribute(case: Case) -> Iterator[Fix]:
    """E306: one that is misspelt, stands where nothing reads it, or is said by the ports."""
    layer, op = case.layer, _op(case)
    if layer is None or op is None:
        return
    if case.attribute is not None and case.element is layer.data:
        yield from _renamed(case, op, safe=True)
        return
    if case.attribute is not None:
        yield from _moved(case, op)
        return
    for attr in op.attrs:
        if attr.default is REQUIRED and attr.name not in layer.attributes:
            value = _declared(case, attr)
            if value is not None and layer.data is not None:
                yield case.set(attr.name, value, element=layer.data)


def demanded_attribute(case: Case) -> Iterator[Fix]:
    """W955: one that is misspelt, or whose default goes into the file, or else what gives what the port declares."""
    layer, op = case.layer, _op(case)
    if layer is None or op is None or layer.data is None:
        return
    if case.attribute is not None:
        yield from _renamed(case, op, safe=False)
        return
    absent = [attr for attr in op.attrs if attr.demanded and f"`{attr.name}`" in case.diagnostic.message]
    node = case.inference.nodes.get(layer) if case.inference is not None else None
    right = None if node is None or case.inference is None else as_port_declares(node, missing(node), case.inference)
    given = {attr.name: right or as_written(attr.default) for attr in absent}
    title = " ".join(f'{name}="{text}"' for name, text in given.items())
    yield case.fix(f"write {title}", *(with_attribute(layer.data, name, text) for name, text in given.items()))


def as_declared(case: Case) -> Iterator[Fix]:
    """E310: the attribute that says otherwise than the port what type or shape the output has."""
    layer, op = case.layer, _op(case)
    if layer is None or layer.data is None or op is None:
        return
    for attr in op.attrs:
        given, declared = layer.attributes.get(attr.name), _declared(case, attr)
        if given is not None and declared is not None and given.replace(" ", "") != declared:
            yield case.set(attr.name, declared, element=layer.data, safe=False)


def _declared(case: Case, attr: Attr) -> str | None:
    """What the output ports say that an attribute must be: of element types, and of the shapes of inputs."""
    layer = case.layer
    if layer is None or len(layer.outputs) != 1:
        return None
    port = layer.outputs[0].port
    if attr.kind is ELEMENT_TYPE and port.precision not in (None, "dynamic"):
        return port.precision
    if attr.kind is SHAPE and port.dims and not layer.inputs:
        return ",".join("?" if size == -1 else str(size) for size in port.dims)
    return None


def unread_attribute(case: Case) -> Iterator[Fix]:
    """W930: nobody reads it, but somebody may have meant it; the one that it is meant for would change results."""
    op = _op(case)
    if op is None or case.attribute is None or (case.layer is not None and case.element is case.layer.element):
        return
    yield from _renamed(case, op, safe=False)
    edit = case.without_attribute(case.element, case.attribute)
    yield case.fix(f"delete `{case.attribute}`", edit, safe=False)


def suspected_attribute(case: Case) -> Iterator[Fix]:
    """E3xx and E4xx of a layer where an attribute is not read, so that its default breaks a rule."""
    op = _op(case)
    if op is None or case.layer is None or case.attribute is None or case.element is not case.layer.data:
        return
    if case.attribute not in op.attr_names:
        yield from _renamed(case, op, safe=True)


def _renamed(case: Case, op: Op, *, safe: bool) -> Iterator[Fix]:
    given = case.element.attributes
    name = case.attribute or ""
    free = [attr.name for attr in op.attrs if attr.name not in given]
    close = synonyms(name, [attr.name for attr in op.attrs if attr.name in free and _readable(attr, given[name])])
    close = close or close_matches(name, free)
    required = [attr.name for attr in op.attrs if (attr.default is REQUIRED or attr.demanded) and attr.name in close]
    certain = _certain(name, close, required or free)
    if certain is None and len(required) == 1 and close[0] == required[0]:
        certain = close[0]
    for new in [certain] if certain else close:
        yield case.rename(name, new, safe=safe and certain is not None)


def _certain(word: str, close: list[str], known: Iterable[str]) -> str | None:
    """The one that a word must be meant for: the only close one, or the only one that is a slip of the hand away."""
    if len(close) == 1:
        return close[0]
    slips = [name for name in known if _one_apart(word.lower(), name.lower())]
    return slips[0] if len(slips) == 1 else None


def _one_apart(one: str, other: str) -> bool:
    """Whether a letter more, less or other, or two letters the other way round, make the one of the other."""
    if abs(len(one) - len(other)) > 1 or one == other:
        return one == other
    start = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    a, b = one[start:], other[start:]
    return a[1:] == b or a == b[1:] or a[1:] == b[1:] or (a[:2] == b[1::-1] and len(b) > 1 and a[2:] == b[2:])


def _moved(case: Case, op: Op) -> Iterator[Fix]:
    """Attributes of the op that stand on another element go to the first <data>."""
    layer = case.layer
    if layer is None or layer.data is None:
        return
    given = case.element.attributes
    names = [attr.name for attr in op.attrs if attr.name in given and attr.name not in layer.attributes]
    if names:
        edits = [with_attribute(layer.data, name, given[name]) for name in names]
        if case.element is not layer.element and set(given) <= set(names) | set(layer.attributes):
            edits.append(case.without(case.element))
        else:
            edits += [case.without_attribute(case.element, name) for name in names]
        yield case.fix(f"move {', '.join(f'`{name}`' for name in names)} to <data>", *edits)


def stray_data(case: Case) -> Iterator[Fix]:
    """W901: a second <data> goes where the first says the same; otherwise what it says may be what was meant."""
    layer = case.layer
    if layer is None or layer.data is None:
        return
    given = case.element.attributes
    if given.items() <= layer.attributes.items():
        yield case.fix("delete this <data>, which says what the first one does", case.without(case.element))
        return
    new = {name: value for name, value in given.items() if name not in layer.attributes}
    if len(new) == len(given):
        edits = [with_attribute(layer.data, name, value) for name, value in new.items()]
        yield case.fix("move the attributes to the first <data>", *edits, case.without(case.element), safe=False)
    yield case.fix("delete this <data>, which nothing reads", case.without(case.element), safe=False)


def stray_attribute(case: Case) -> Iterator[Fix]:
    """W902: an attribute on <layer> goes; one of the op that is not given may belong on <data>.

    A word that is near one which is read somewhere may be meant for that.
    """
    name, layer, op = case.attribute, case.layer, _op(case)
    if name is None or layer is None:
        return
    edit = case.without_attribute(case.element, name)
    of_op = op is not None and name in op.attr_names and name not in layer.attributes
    if of_op and layer.data is not None:
        moved = with_attribute(layer.data, name, case.element.attributes[name])
        yield case.fix(f"move `{name}` to <data>", moved, edit, safe=False)
    known = {*OF_LAYER, "output_names", *(op.attr_names if op is not None else ())}
    strange = name not in known and not close_matches(name, known)
    repeated = layer.attributes.get(name) == case.element.attributes[name]
    yield case.fix(f"delete `{name}`, which nothing reads", edit, safe=repeated or strange)


def misspelt_variable(case: Case) -> Iterator[Fix]:
    """E219: the variable that a ReadValue reads and nobody stores."""
    read, stored = (
        {layer.attributes.get("variable_id", "") for layer in case.graph.layers if layer.type == type}
        for type in ("ReadValue", "Assign")
    )
    close = close_matches(case.element.attributes.get("variable_id", ""), sorted(read - stored))
    for name in close:
        yield case.set("variable_id", name, safe=len(close) == 1)


def unreadable_value(case: Case) -> Iterator[Fix]:
    """E307: the same value as the kind of attribute is written; without a value there is the default."""
    op, layer = _op(case), case.layer
    if op is None or layer is None or case.attribute is None:
        return
    attr = next((attr for attr in op.attrs if attr.name == case.attribute), None)
    if attr is None:
        return
    text = case.element.attributes[attr.name]
    declared = _declared(case, attr)
    for meant, safe in _meant(attr, text):
        if _readable(attr, meant):
            yield case.set(attr.name, meant, safe=safe and (attr.kind is not ELEMENT_TYPE or declared in (None, meant)))
            return
    if attr.default is not REQUIRED:
        edit = case.without_attribute(case.element, attr.name)
        yield case.fix(f"delete `{attr.name}`, so that it is {attr.default}", edit, safe=False)


def _meant(attr: Attr, text: str) -> Iterator[tuple[str, bool]]:
    bare = text.strip().strip("\"'").strip()
    if attr.kind is BOOL:
        close = close_matches(bare, ("true", "false"))
        for word in (_TRUTH.get(bare.lower(), bare), *(close if len(close) == 1 else ())):
            yield word, _readable(attr, word) and attr.parse(word) is _gone_on_with(attr)
    elif attr.kind is ELEMENT_TYPE:
        yield element_type_of(bare), True
        close = close_matches(bare, ELEMENT_TYPES)
        if close:
            yield close[0], _certain(bare, close, ELEMENT_TYPES) == close[0]
    elif attr.kind in (INT, FLOAT_NUMBER):
        yield _number(bare.strip("[](){}"), attr), True
        yield bare.replace(",", "."), False
    elif attr.kind in (INTS, FLOATS, SHAPE):
        inner = bare.strip("[](){}<>").strip()
        yield re.sub("[;|]", ",", bare), True
        parts = [_number(part, attr) for part in _SEPARATOR.split(inner)]
        yield ",".join(parts), True
        yield ",".join(part for part in parts if part), False
    elif len(words := attr.kind.words) > 1:
        plain = bare.lower().replace("-", "_").replace(" ", "_")
        yield plain, True
        close = close_matches(bare, words)
        if close:
            yield close[0], _certain(bare, close, words) == close[0]


def _gone_on_with(attr: Attr) -> Any:
    """What OpenVINO computes with where it cannot read an attribute, as it ignores words that are no booleans."""
    return attr.assumed if attr.default is REQUIRED else attr.default


def element_type_of(text: str) -> str:
    """The name of an element type that is written as ports or other tools do."""
    return meant_type(text) or text.strip().lower()


def _number(text: str, attr: Attr) -> str:
    whole = _WHOLE.fullmatch(text)
    if whole and attr.kind in (INT, INTS, SHAPE):
        return whole[1]
    if attr.kind in (FLOAT_NUMBER, FLOATS) and text[-1:] in ("f", "F", "d", "D") and len(text) > 1:
        return text[:-1]
    return text.removeprefix("+")


def _readable(attr: Attr, text: str) -> bool:
    try:
        attr.parse(text)
    except ValueError:
        return False
    return True


def _op(case: Case) -> Op | None:
    return None if case.layer is None else registry().find(case.layer.type, case.layer.version)
