"""The language in which a deviation says which layers it concerns, and how its clauses are decided.

A clause is a text that people can read:

    data is i8, u8                  its element type
    indices is empty                also: constant, connected, a scalar, dynamic, dynamic at axis 1, dynamic from
    axes is not constant            axis 2, handed out (to a result of the graph), read, read twice;
                                    `layer is constant`
    begin, end are constant         each of them
    a is made by a reduction        which devices compute in one with what reads it
    X is made by a quantization     of which devices keep codes
    data is made by a maximum of windows
                                    before which devices compute what reads it
    X is made by the same op        as the layer
    B is stored as i4, u4           made of a constant of such a type; `in groups` where that has more axes, and
                                    `scaled along its last axis`
    layer is counting behind a constant
                                    in a body, whose Parameter for that stands behind one that gets a constant
    layer is going on from a reshaped slice
                                    in a body, whose state is what an element-wise layer makes of it, its first input
    dilations is left out           an attribute that the file does not have
    mode is another one elsewhere   in another layer of the op
    data has nan                    one of the properties in `properties.py`; `layer` is all its inputs and outputs
    mode = linear, cubic            attributes, inputs and outputs by name, compared element by element: any will do
    axis 1 of data > 4              what comes `of` a tensor: axis, rank, size, shape, sum, and bits of its type
    size of a < rank of b + axis    and sums of these
    axes has all axes of data from 2 on, axes has not all axes of data from 2 on
    a varies along other axes than b, of those that are longer than 1, aligned at the last one
    result overflows                integers that leave the type of the result; `_WHOLE` lists more such facts
    rounding data to f16 changes the result
    (two boxes overlap)             what only people can tell, which is never decided

Alternatives stand between bars: `a has nan | b has nan`. What a layer is comes from `facts.py`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

import numpy as np

from irrun.check.deviations.calculation import (
    almost_a_level,
    changed_by_rounding,
    halved,
    overflows,
    overlapping,
    rounded,
)
from irrun.check.deviations.facts import ABSENT, Decision, Facts
from irrun.check.deviations.properties import PROPERTIES
from irrun.spec.dims import Dim
from irrun.spec.dtypes import ELEMENT_TYPES

Test = Callable[[Facts], Decision]

_COMPARISONS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_COMPARISON = re.compile(r"(.+?) (=|!=|<=|>=|<|>) (.+)")
_BEING = re.compile(r"(\w+) is (not )?(.+)")
_ALL_BEING = re.compile(r"(\w+(?:, \w+)+) are (.+)")
_HAVING = re.compile(r"(\w+) has (.+)")
_ROUNDING = re.compile(r"rounding (\w+) to f16 changes the result")
_PART = re.compile(r"(rank|size|shape|sum|bits|axis \d+) of (\w+)(?: along (\w+))?")
_OF_BODY = re.compile(
    r"(start|end|number) of (forward slices|backward slices|slices with gaps|slices that overlap|joins)"
)
_NAMING = re.compile(r"(\w+) has (not )?all axes of (\w+) from (\d+) on")
_VARYING = re.compile(r"(\w+) varies along other axes than (\w+)")
_DYNAMIC = re.compile(r"dynamic(?: (at|from) axis (\d+))?")
_STORED = re.compile(r"stored as (.+?)( in groups| scaled along its last axis)?")
_WHOLE: dict[str, Test] = {
    "result overflows": overflows,
    "result is rounded": rounded,
    "result is rounded from a half": halved,
    "0 is almost a level": almost_a_level,
    "two boxes overlap by exactly iou_threshold": overlapping,
}
_STATES: dict[str, Callable[[Facts, str], Decision]] = {
    "constant": Facts.constant,
    "connected": Facts.connected,
    "a scalar": lambda facts, name: _equal(facts.part("rank", name), 0),
    "empty": lambda facts, name: _equal(facts.part("size", name), 0),
    "of unknown rank": Facts.of_unknown_rank,
    "handed out": Facts.handed_out,
    "made by a reduction": Facts.made_by_a_reduction,
    "made by a quantization": Facts.made_by_a_quantization,
    "made by a maximum of windows": Facts.made_by_a_maximum_of_windows,
    "made by the same op": Facts.made_by_the_same_op,
    "read": Facts.read,
    "read twice": Facts.read_twice,
    "left out": Facts.left_out,
    "another one elsewhere": Facts.another_one_elsewhere,
    "given an input of the model": Facts.given_an_input,
    "counting behind a constant": Facts.counting_behind_a_constant,
    "going on from a reshaped slice": Facts.going_on_from_a_reshaped_slice,
}


def decide(clause: str, facts: Facts) -> Decision:
    """Whether a clause holds for a layer. Raises ValueError where it is none of this language."""
    return either(test(facts) for test in parse(clause))


@cache
def parse(clause: str) -> tuple[Test, ...]:
    """The alternatives of a clause. Raises ValueError where it is none of this language."""
    return tuple(_parse(text.strip()) for text in clause.split(" | "))


def names(clause: str) -> set[str]:
    """What a clause calls by name: inputs, outputs and attributes, or `layer` for all inputs and outputs."""
    found: set[str] = set()
    for text in clause.split(" | "):
        if text.startswith("(") or text in _WHOLE:
            continue
        if match := _NAMING.fullmatch(text):
            found |= {match[1], match[3]}
            continue
        if match := _VARYING.fullmatch(text):
            found |= {match[1], match[2]}
            continue
        if match := _ALL_BEING.fullmatch(text):
            found |= set(match[1].split(", "))
            continue
        match = _ROUNDING.fullmatch(text) or _HAVING.fullmatch(text) or _BEING.fullmatch(text)
        if match is not None:
            found.add(match[1])
            continue
        compared = _COMPARISON.fullmatch(text)
        for number, side in enumerate((compared[1], compared[3]) if compared else ()):
            terms = side.split(" + ")
            for term in terms:
                part = _PART.fullmatch(term)
                if part is not None:
                    found |= {name for name in (part[2], part[3]) if name is not None}
                elif (number == 0 or terms[1:]) and not _OF_BODY.fullmatch(term):
                    found.add(term)
    return found


def either(decisions: Iterable[Decision]) -> Decision:
    """True where one is, False where all are, else None."""
    found = set(decisions)
    return True if True in found else None if None in found else False


def _parse(text: str) -> Test:
    if text.startswith("(") and text.endswith(")"):
        return lambda facts: None
    if text in _WHOLE:
        return _WHOLE[text]
    if match := _ROUNDING.fullmatch(text):
        return partial(changed_by_rounding, name=match[1])
    if match := _NAMING.fullmatch(text):
        test = partial(Facts.names_all_axes, name=match[1], data=match[3], first=int(match[4]))
        return partial(_negated, test=test) if match[2] else test
    if match := _VARYING.fullmatch(text):
        return partial(Facts.varies_otherwise, name=match[1], other=match[2])
    if match := _HAVING.fullmatch(text):
        if match[2] not in PROPERTIES:
            raise ValueError(f"there is no property `{match[2]}`")
        return partial(Facts.has, name=match[1], property=PROPERTIES[match[2]])
    if match := _ALL_BEING.fullmatch(text):
        return partial(_all, tests=[_being(name, False, match[2]) for name in match[1].split(", ")])
    if match := _BEING.fullmatch(text):
        return _being(match[1], bool(match[2]), match[3])
    if match := _COMPARISON.fullmatch(text):
        return partial(_compared, left=match[1], sign=match[2], right=match[3].split(", "))
    raise ValueError(f"`{text}` is no clause")


def _being(name: str, negated: bool, state: str) -> Test:
    test: Test
    if match := _DYNAMIC.fullmatch(state):
        test = partial(Facts.dynamic, name=name, place=match[1], axis=int(match[2] or 0))
    elif match := _STORED.fullmatch(state):
        test = partial(Facts.stored, name=name, types=frozenset(match[1].split(", ")), how=match[2])
    elif state in _STATES:
        found = _STATES[state]
        test = lambda facts: found(facts, name)  # noqa: E731
    elif set(types := state.split(", ")) <= set(ELEMENT_TYPES):
        test = partial(Facts.typed, name=name, types=frozenset(types))
    else:
        raise ValueError(f"`{state}` is no state and no element type")
    return partial(_negated, test=test) if negated else test


def _negated(facts: Facts, test: Test) -> Decision:
    found = test(facts)
    return None if found is None else not found


def _all(facts: Facts, tests: list[Test]) -> Decision:
    found = {test(facts) for test in tests}
    return False if False in found else None if None in found else True


def _compared(facts: Facts, left: str, sign: str, right: list[str]) -> Decision:
    """Whether any element compares; with several values on the right, one of them has to be, or all for `!=`."""
    first = _operand(left, facts)
    answers = [_any(_COMPARISONS[sign], first, _operand(text, facts)) for text in right]
    if sign != "!=":
        return either(answers)
    return False if False in answers else None if None in answers else True


def _operand(text: str, facts: Facts) -> Any:
    """What a side of a comparison is: an array, None where it is not known, ABSENT where there is none."""
    if " + " in text:
        return _sum([_operand(part, facts) for part in text.split(" + ")])
    if match := _PART.fullmatch(text):
        return facts.part(match[1], match[2], match[3])
    if match := _OF_BODY.fullmatch(text):
        return facts.port_maps(match[1], match[2])
    if text in facts.names:
        return facts.value(text)
    if text in ("true", "false"):
        return np.asarray(text == "true")
    try:
        return np.asarray(float(text))
    except ValueError:
        return np.asarray(text)


def _sum(parts: list[Any]) -> Any:
    for missing in (ABSENT, None):
        if any(part is missing for part in parts):
            return missing
    return sum(parts)


def _equal(value: Any, number: int) -> Decision:
    return _any(operator.eq, value, np.asarray(number))


def _any(compare: Callable[[Any, Any], Any], a: Any, b: Any) -> Decision:
    if a is ABSENT or b is ABSENT:
        return False
    if a is None or b is None:
        return None
    try:
        pairs = np.broadcast(a, b)
    except ValueError:  # of inputs that the op broadcasts in a way of its own
        return None
    if object not in (a.dtype, b.dtype):
        with np.errstate(all="ignore"):
            return bool(np.any(compare(a, b)))
    return either(None if Dim in (type(x), type(y)) else bool(compare(x, y)) for x, y in pairs)
