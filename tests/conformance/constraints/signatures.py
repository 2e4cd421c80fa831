"""What an op's declaration checks, as models that break it: inputs, element types, ranks, sizes and attributes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from math import isfinite

from conformance.constraints.bases import bases
from conformance.constraints.row import Given, Row
from irrun.spec.attributes import (
    BOOL,
    ELEMENT_TYPE,
    FLOAT_NUMBER,
    FLOATS,
    INT,
    INTS,
    REQUIRED,
    SHAPE,
    STRING,
    STRINGS,
    Attr,
)
from irrun.spec.op import FLOAT, OPSETS, Input, Op
from irrun.spec.registry import registry

TYPES = ("f16", "f32", "f64", "i8", "u8", "i32", "i64", "boolean", "string")
"""Element types that inputs are given though they are not allowed."""

ALONE = ("f16", "f32", "f64", "i32", "i64", "u8")
"""Those that one input is given while others of its symbol keep theirs."""

UNREADABLE = {
    INT.name: ("1.7", "abc", ""),
    FLOAT_NUMBER.name: ("1,5", "abc", ""),
    BOOL.name: ("yes", ""),
    ELEMENT_TYPE.name: ("f23", "FP32"),
    INTS.name: ("a", "1 2"),
    FLOATS.name: ("a", "1 2"),
    SHAPE.name: ("3x", "1,-2"),
}


def signature_rows(name: str) -> Iterator[Row]:
    """A row for each check of an op's declaration; `changed` says what was changed in its base."""
    op, base = registry().ops[name], bases().get(name)
    if base is None:
        return
    yield from _versions(op, base)
    yield from _counts(op, base)
    yield from _types(op, base)
    yield from _mixed(op, base)
    yield from _ranks(op, base)
    yield from _sizes(op, base)
    for attr in op.attrs:
        yield from _attribute(op, base, attr)


def _versions(op: Op, base: Row) -> Iterator[Row]:
    versions = registry().versions(op.type)
    held = frozenset().union(*(each.held_by for each in versions))
    if op is not versions[0] or not held:
        return
    for number in (min(held) - 1, max(held) + 1, 99):
        if number in OPSETS or number == 99:
            yield replace(base, label="E301", changed=f"version is opset{number}", version=f"opset{number}")


def _counts(op: Op, base: Row) -> Iterator[Row]:
    given = len(base.inputs)
    if op.least_inputs:
        few = base.inputs[: op.least_inputs - 1]
        yield replace(base, label="E302", changed=f"{len(few)} inputs", inputs=few)
    if not op.variadic and base.inputs:
        full = (*base.inputs, *[base.inputs[-1]] * (len(op.inputs) + 1 - given))
        yield replace(base, label="E302", changed=f"{len(full)} inputs", inputs=full)
    if op.outputs and not op.outputs[-1].variadic:
        more = len(op.outputs) + 1
        yield replace(base, label="E302", changed=f"{more} outputs", outputs=more)
    elif op.outputs:
        yield replace(base, label="E302", changed="one output more", outputs=base.counted() + 1)


def _ports(op: Op, base: Row) -> list[tuple[int, Input, Given]]:
    found = []
    for number, each in enumerate(base.inputs):
        port = op.inputs[min(number, len(op.inputs) - 1)]
        if each is not None and (number < len(op.inputs) or op.variadic):
            found.append((number, port, each))
    return found


def _with(base: Row, number: int, each: Given) -> tuple[Given | None, ...]:
    return tuple(each if n == number else old for n, old in enumerate(base.inputs))


def _types(op: Op, base: Row) -> Iterator[Row]:
    symbols: dict[str, list[int]] = {}
    for number, port, _ in _ports(op, base):
        key = port.type if port.type in op.types else f"{port.type} {number}"
        symbols.setdefault(key, []).append(number)
    for symbol, numbers in symbols.items():
        port = op.inputs[min(numbers[0], len(op.inputs) - 1)]
        allowed = op.types.get(port.type, frozenset({port.type}))
        if port.type == "dynamic":
            continue
        for type in TYPES:
            if type in allowed:
                continue
            inputs = tuple(
                _typed(each, type) if n in numbers and each is not None else each for n, each in enumerate(base.inputs)
            )
            what = symbol if port.type in op.types else f"`{port.name}`"
            yield replace(base, label="E303", changed=f"{what} is {type}", inputs=inputs)


def _typed(each: Given, type: str) -> Given:
    if each.value is None or type == "string" or each.type == "string" or not all(map(isfinite, each.value)):
        return Given(type, each.shape)
    whole = type not in FLOAT
    cast = bool if type == "boolean" else int if whole else float
    values = tuple(max(cast(value), 0) if type.startswith("u") else cast(value) for value in each.value)
    return Given(type, each.shape, values)


def _mixed(op: Op, base: Row) -> Iterator[Row]:
    first: dict[str, str] = {}
    for number, port, each in _ports(op, base):
        if port.type not in op.types:
            continue
        if port.type not in first:
            first[port.type] = each.type
            continue
        for type in ALONE:
            if type in op.types[port.type] and type != first[port.type]:
                changed = f"`{_name(op, number)}` alone is {type}"
                yield replace(base, label="E303", changed=changed, inputs=_with(base, number, _typed(each, type)))


def _name(op: Op, number: int) -> str:
    last = len(op.inputs) - 1
    return op.inputs[number].name if number < last or not op.variadic else f"{op.inputs[last].name}[{number - last}]"


def _reshaped(each: Given, shape: tuple[int, ...]) -> Given:
    count, old = 1, each.value
    for size in shape:
        count *= size
    value = None if old is None else tuple(old[n % len(old)] if old else 0 for n in range(count))
    return Given(each.type, shape, value)


def _ranks(op: Op, base: Row) -> Iterator[Row]:
    for number, port, each in _ports(op, base):
        name, shape = _name(op, number), each.shape
        for changed, other in (
            ("has one axis more", (1, *shape)),
            ("has one axis less", shape[1:]),
            ("is a scalar", ()),
            ("is [1]", (1,)),
        ):
            if other != shape and not any(pattern.fits(len(other)) for pattern in port.patterns):
                inputs = _with(base, number, _reshaped(each, other))
                yield replace(base, label="E305", changed=f"`{name}` {changed}", inputs=inputs)


def _sizes(op: Op, base: Row) -> Iterator[Row]:
    seen: set[str] = set()
    for number, port, each in _ports(op, base):
        pattern = next((p for p in port.patterns if p.fits(len(each.shape))), None)
        if pattern is None or pattern.anything:
            continue
        shape = each.shape
        places = [
            *enumerate(pattern.head),
            *((len(shape) - len(pattern.tail) + n, s) for n, s in enumerate(pattern.tail)),
        ]
        starred = range(len(pattern.head), len(shape) - len(pattern.tail))
        places += [(axis, pattern.star) for axis in starred if pattern.star]
        for axis, symbol in places:
            if isinstance(symbol, str) and symbol not in seen:
                continue
            for size in (shape[axis] + 1, 1):
                if size == shape[axis]:
                    continue
                other = (*shape[:axis], size, *shape[axis + 1 :])
                changed = f"`{_name(op, number)}` has {size} along axis {axis} ({symbol})"
                yield replace(base, label="E304", changed=changed, inputs=_with(base, number, _reshaped(each, other)))
        seen.update(s for _, s in places if isinstance(s, str))


def _attribute(op: Op, base: Row, attr: Attr) -> Iterator[Row]:
    name = attr.name
    if attr.default is REQUIRED and name in base.attrs:
        rest = {key: text for key, text in base.attrs.items() if key != name}
        yield replace(base, label="E306", changed=f"`{name}` is missing", attrs=rest)
    for text in _texts(op, attr, base.attrs.get(name, "")):
        yield replace(base, label="E307", changed=f"`{name}` is `{text}`", attrs={**base.attrs, name: text})


def _texts(op: Op, attr: Attr, given: str) -> Iterator[str]:
    """What the attribute may not be."""
    kind = attr.kind.name
    if attr.least is not None and isfinite(attr.least):
        yield _number(attr, attr.least - 1, given)
        if attr.least == 1 and attr.kind not in (INT, INTS):
            yield _number(attr, 0.5, given)
    if attr.most is not None:
        yield _number(attr, attr.most + 1, given)
    if attr.kind in (FLOAT_NUMBER, FLOATS):
        yield ",".join(["nan", *given.split(",")[1:]]) if attr.kind.many else "nan"
    yield from UNREADABLE.get(kind, ())
    if kind not in UNREADABLE and attr.kind not in (STRING, STRINGS):
        words = _words(attr.name) - set(kind.split(" | "))
        yield from sorted(words)
        if attr.kind.cased:
            yield from (word.upper() if word.islower() else word.lower() for word in kind.split(" | ") if word)
        yield "bogus"


def _number(attr: Attr, value: float, given: str) -> str:
    text = str(int(value)) if value == int(value) else str(value)
    if not attr.kind.many:
        return text
    return ",".join([text, *given.split(",")[1:]])


@cache
def _words(name: str) -> frozenset[str]:
    """What any op takes for an attribute of this name."""
    found: set[str] = set()
    for op in registry().ops.values():
        for attr in op.attrs:
            if attr.name == name and " | " in attr.kind.name:
                found.update(word for word in attr.kind.name.split(" | ") if word)
    return frozenset(found)
