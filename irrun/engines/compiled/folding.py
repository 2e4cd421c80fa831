"""Reductions by compiled loops: lines of a tensor folded into one element each, of neighbouring columns or lanes at
once.

Axes that are folded may have one other axis between them: data are `[outer, first, middle, second, inner]`, of which
`first` and `second` are folded. Where few elements are left, these are folded in parts, and then the parts.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np

from irrun.engines.axes import constant_axes, is_dense
from irrun.engines.compiled.loops import MEMORY, SHARED_NANOSECONDS, Doubles, Elements, looped
from irrun.engines.compiled.team import Team
from irrun.engines.orders import reordered
from irrun.engines.vectorized.posts import with_posts
from irrun.engines.vectorized.reduction import Bind, in_memory_order
from irrun.engines.work import Call, Compiled, Operand, Work, chain
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array

Results: TypeAlias = Array
"""As `Elements`, any memory."""

Element: TypeAlias = Any
Number: TypeAlias = Any
"""What is read, and what is folded: int, float or np.float32."""

SUMS: type[np.generic] = np.float64
"""Of what type the memory of what is folded is."""

MAPS, FOLDS, ENDS = "", "sum", ""
"""What is done to elements ("absolute", "square", "wide square" in f64, or "deviation" for that of how far they are
from the centre of their line), how they are folded ("sum", "product", "most", "least"), and what is made of what comes
out ("mean", "root"). Bytes with a sign are "turned", and back, into others in the same order."""

START: float = 0.0
"""What folding begins with."""

SIGNED = False
"""Whether bytes have a sign."""

REAL = True
"""Whether floats are folded, else integers."""

EXACT = WIDE = True
"""Whether floats are folded in f64, and are f32 that are made f64 for that."""

NARROWS = True
"""Whether what comes out becomes f32."""

AHEAD = False
"""Whether parts are those of `first`, else of `second`."""

FEW = 1024
"""Elements of a row that are added up in f32, several sums side by side; of more that would lose digits."""

SINGLE = False
"""Whether rows follow one another, and have one part each."""

COLUMNS = 1024
"""Columns that are folded at once."""

LANES, GROUP = 64, 8
"""Elements of a row that are folded side by side, half as many where it is not longer than FEW, and of the rest."""

LONG, SHORT = 64, 32
"""Elements from which on rows are folded by LANES, and by GROUP; shorter ones are so one by one."""

PARTS = 8
"""Parts of all the lines, for each thread, that there are at least."""

LEAST = 1 << 12
"""Elements of less data are not worth code of their own."""

ELEMENT_NANOSECONDS = 0.15
"""What an element takes about."""

INTEGERS: dict[str, type[np.generic]] = {
    "boolean": np.uint8,
    "u8": np.uint8,
    "i8": np.uint8,
    "i32": np.int32,
    "i64": np.int64,
}
BETWEEN: dict[type[np.generic], str] = {
    np.float32: "Floats",
    np.float64: "Doubles",
    np.uint8: "Bytes",
    np.int32: "Ints",
    np.int64: "Longs",
}
"""In what integers are folded, and what memory of what is folded in part is called."""

WAYS = {
    "ReduceSum-1": ("", "sum", ""),
    "ReduceMean-1": ("", "sum", "mean"),
    "ReduceL1-4": ("absolute", "sum", ""),
    "ReduceL2-4": ("square", "sum", "root"),
    "ReduceProd-1": ("", "product", ""),
    "ReduceMax-1": ("", "most", ""),
    "ReduceMin-1": ("", "least", ""),
    "ReduceLogicalAnd-1": ("", "least", ""),
    "ReduceLogicalOr-1": ("", "most", ""),
}
"""MAPS, FOLDS and ENDS of ops."""


def fold(
    begin: int,
    end: int,
    data: Elements,
    centres: Doubles,
    result: Results,
    parts: int,
    first: int,
    middle: int,
    second: int,
    inner: int,
    length: int,
) -> None:
    """Blocks of columns of parts of the lines; the mean is that of `length` elements. `centres` are one for each line,
    [outer, middle, inner], where they are asked for."""
    sums = np.empty(COLUMNS, SUMS)
    blocks = (inner + COLUMNS - 1) // COLUMNS
    for number in range(begin, end):
        column = number % blocks * COLUMNS
        count = min(COLUMNS, inner - column)
        line = number // blocks
        own = line % middle
        part = line // middle % parts
        outer = line // middle // parts
        centre = (outer * middle + own) * inner + column
        for k in range(count):
            sums[k] = START
        for row in range(part * first // parts if AHEAD else 0, (part + 1) * first // parts if AHEAD else first):
            place = ((outer * first + row) * middle + own) * second
            low = place + (0 if AHEAD else part * second // parts)
            high = place + (second if AHEAD else (part + 1) * second // parts)
            for source in range(low, high):
                for k in range(count):
                    sums[k] = folded(sums[k], mapped(data[source * inner + column + k], centres, centre + k))
        for k in range(count):
            made = ended(sums[k], length)
            result[line * inner + column + k] = np.float32(made) if NARROWS else made


def fold_rows(
    begin: int,
    end: int,
    data: Elements,
    centres: Doubles,
    result: Results,
    parts: int,
    first: int,
    middle: int,
    second: int,
    length: int,
) -> None:
    """As `fold` where there are no columns, LANES elements of a row side by side."""
    sums = np.empty(LANES, SUMS)
    for line in range(begin, end):
        if SINGLE:
            own, part, outer = 0, 0, line
        else:
            own, part, outer = line % middle, line // middle % parts, line // middle // parts
        centre = outer * middle + own
        for k in range(LANES):
            sums[k] = START
        for row in range(part * first // parts if AHEAD else 0, (part + 1) * first // parts if AHEAD else first):
            place = ((outer * first + row) * middle + own) * second
            low = place + (0 if SINGLE or AHEAD else part * second // parts)
            high = place + (second if SINGLE or AHEAD else (part + 1) * second // parts)
            whole = high - (high - low) % LANES
            for source in range(low, whole, LANES):
                for k in range(LANES):
                    sums[k] = folded(sums[k], mapped(data[source + k], centres, centre))
            few = high - (high - low) % GROUP
            for source in range(whole, few, GROUP):
                for k in range(GROUP):
                    sums[k] = folded(sums[k], mapped(data[source + k], centres, centre))
            for source in range(few, high):
                sums[source - few] = folded(sums[source - few], mapped(data[source], centres, centre))
        for others in range(GROUP, LANES, GROUP):
            for k in range(GROUP):
                sums[k] = folded(sums[k], sums[others + k])
        total = sums[0]
        for k in range(1, GROUP):
            total = folded(total, sums[k])
        made = ended(total, length)
        result[line] = np.float32(made) if NARROWS else made


def mapped(value: Element, centres: Doubles, centre: int) -> Number:
    """What is folded in place of an element, by MAPS."""
    if MAPS == "wide square":
        return float(value) * float(value)
    if MAPS == "deviation":
        return (float(value) - centres[centre]) * (float(value) - centres[centre])
    if SIGNED:
        value = (value ^ 128) - 128
    if MAPS == "turned":
        value = value ^ 128
    if MAPS == "absolute":
        value = -value if value < 0 else value
    if MAPS == "square":
        value = value * value
    return float(value) if WIDE else value


def folded(one: Number, other: Number) -> Number:
    """Of two; NaN is skipped by the least and the most unless there is nothing else."""
    if FOLDS == "sum":
        return one + other
    if FOLDS == "product":
        return one * other
    if FOLDS == "most":
        return other if (other > one) | (one != one) else one
    return other if (other < one) | (one != one) else one


def ended(total: Number, length: int) -> Number:
    """Without its fraction if it is an integer. Of a sum that f32 does not hold, so that it is infinite to the op's
    kernel and to OpenVINO, the mean is so, too."""
    if REAL and ENDS == "mean":
        if EXACT and NARROWS:
            total = float(np.float32(total))
        total = total / (float(length) if EXACT else np.float32(length))
    elif REAL and ENDS == "root":
        total = np.sqrt(total)
    elif ENDS == "mean":
        total = (total if total >= 0 else total + length - 1) // length
    elif ENDS == "root":
        total = int(np.sqrt(float(total)))
    elif ENDS == "turned":
        total = total ^ 128
    return total


def folding(shape: Sequence[int], along: Sequence[int]) -> tuple[int, ...] | None:
    """`[outer, first, middle, second, inner]` of data whose axes `along` are folded; None where that cannot be."""
    sizes: list[int] = []
    kept = True  # whether the last of these stays
    for axis, size in reversed(list(enumerate(shape))):
        if size == 1:
            continue
        if not sizes or kept != (axis not in along):
            sizes += [1] if not sizes and axis in along else []
            sizes.append(1)
            kept = axis not in along
        sizes[-1] *= size
    if len(sizes) < 2 or len(sizes) > 5:
        return None
    if len(sizes) <= 3:  # nothing is folded ahead of others
        inner, second, outer = (*sizes, 1)[:3]
        return outer, 1, 1, second, inner
    inner, second, middle, first, outer = (*sizes, 1)[:5]
    return outer, first, middle, second, inner


def _memory(name: str, type: str, extents: Sequence[int]) -> type[np.generic]:
    """The type that elements are folded in: that of integers, which wrap around as the result does, but where more of
    the sum is asked for; f32 for sums of so few that no digits are lost."""
    _, first, _, second, inner = extents
    _, folds, ends = WAYS[name]
    length = first * second
    if type == "f32":
        few = folds == "sum" and inner == 1 and second >= LONG and length <= FEW
        return np.float32 if few or folds in ("most", "least") else np.float64
    if ends:
        most = 1 << 23 if ends == "mean" else 1 << 15  # of the largest bytes, or of their squares
        return np.int32 if MEMORY[type] == "Bytes" and length < most else np.int64
    return INTEGERS[type]


_NOTHING = float("nan")
"""The only one that kernels are known by: no two are equal."""


def _start(folds: str, type: str) -> float:
    """Of floats it is none that the first one would not replace."""
    if folds in ("sum", "product"):
        start = int(folds == "product")
        return float(start) if type == "f32" else start
    if type == "f32":
        return _NOTHING
    dtype = numpy_dtype(type) if type in ("i32", "i64") else np.dtype(np.uint8)
    return int(np.iinfo(dtype).min if folds == "most" else np.iinfo(dtype).max)


NO_CENTRES = np.zeros(1)
"""Of data whose centres are not asked for."""


class Folding:
    """How data of a type, `[outer, first, middle, second, inner]`, are folded by the threads of a team: what is done to
    elements, how they are folded, and in what type."""

    def __init__(
        self, team: Team, type: str, extents: tuple[int, ...], maps: str, folds: str, sums: type[np.generic]
    ) -> None:
        self._team, self.extents, self._sums = team, extents, sums
        outer, first, middle, second, inner = extents
        self._real = type == "f32"
        self._number = "int" if not self._real else "float" if sums is np.float64 else "np.float32"
        self._folded: dict[str, Hashable] = {"Number": self._number, "SUMS": cast("Hashable", sums), "FOLDS": folds}
        self._folded |= {"START": _start(folds, type), "REAL": self._real, "EXACT": self._number == "float"}
        self._read: dict[str, Hashable] = {"Elements": MEMORY[type], "Element": "np.float32" if self._real else "int"}
        self._read |= {"MAPS": maps, "SIGNED": type == "i8" and maps != "turned", "WIDE": self._number == "float"}
        self._nanoseconds = prod(extents) * ELEMENT_NANOSECONDS
        self._items = outer * middle * -(-inner // COLUMNS)
        self._parts = 1
        if self._nanoseconds > SHARED_NANOSECONDS and self._items < team.count * PARTS:
            self._parts = min(-(-team.count * PARTS // self._items), max(first, second))
        self.room = outer * middle * inner * self._parts * np.dtype(sums).itemsize if self._parts > 1 else 0
        """Bytes that parts need."""

    def bind(
        self, data: Array, result: Array, scratch: Array, results: str, ends: str = "", centres: Array = NO_CENTRES
    ) -> Call:
        """What folds data into the memory of a result, which is `results` to the loop."""
        last: dict[str, Hashable] = {"Results": results, "ENDS": ends, "NARROWS": results == "Floats"}
        if self._parts == 1:
            return self._whole(data, centres, result, ends, **last)
        between = scratch[: self.room].view(self._sums)
        begun = self._whole(data, centres, between, ends, Results=BETWEEN[self._sums], ENDS="", NARROWS=False)
        kind: dict[str, Hashable] = {**self._folded, **last, "Elements": BETWEEN[self._sums], "Element": self._number}
        kind |= {"MAPS": "", "SIGNED": False, "WIDE": False, "AHEAD": False}
        outer, first, middle, second, inner = self.extents
        columns = middle * inner
        arguments = (between, NO_CENTRES, result, 1, 1, 1, self._parts, columns, first * second)
        return chain([begun, looped(self._team, fold, arguments, outer * -(-columns // COLUMNS), 0.0, **kind)])

    def _whole(self, data: Array, centres: Array, result: Array, ends: str, **constants: Hashable) -> Call:
        """The parts of the data, each folded; `ends` is what is made of them in the end."""
        (outer, first, middle, second, inner), parts = self.extents, self._parts
        ahead = first > second
        kind: dict[str, Hashable] = {**self._folded, **self._read, "AHEAD": ahead, **constants}
        if inner > 1:
            sizes = (parts, first, middle, second, inner, first * second)
            return looped(
                self._team, fold, (data, centres, result, *sizes), self._items * parts, self._nanoseconds, **kind
            )
        lying = (parts, first, middle, second, first * second)
        row = second // (1 if ahead else parts)
        group = GROUP if self._real and row >= SHORT else 1
        several = self._real or ends == "root"  # of other integers LLVM itself finds how they are folded side by side
        lanes = LANES if row > FEW else LANES // 2
        kind |= {"GROUP": group, "LANES": lanes if several and row >= LONG else group}
        kind["SINGLE"] = first == middle == parts == 1
        count = outer * middle * parts
        return looped(self._team, fold_rows, (data, centres, result, *lying), count, self._nanoseconds, **kind)


def reduction(work: Work, team: Team) -> Compiled | None:
    """A reduction over constant axes."""
    (data,), along = work.required(1), constant_axes(work)
    if not along or data.type not in MEMORY or prod(data.shape) < LEAST:
        return None
    if data.type in ("i32", "i64") and work.name == "ReduceL2-4":  # of roots beyond the type the kernel tells
        return None

    def folded(data: Operand, along: Sequence[int]) -> Bind | None:
        return _bound(work.name, data, along, team)

    order = reordered(work)
    if order is not None:
        return in_memory_order(work, along, order, folded)
    bind = folded(data, along) if is_dense(data) else None
    return None if bind is None else with_posts(work, lambda inputs, outputs, _: bind(inputs[0], outputs[0]))


def _bound(name: str, data: Operand, along: Sequence[int], team: Team) -> Bind | None:
    """What folds data in C order; None where there are too many axes."""
    extents = folding(data.shape, along)
    if extents is None:
        return None
    maps, folds, ends = WAYS[name]
    sums = _memory(name, data.type, extents)
    if data.type == "i8" and folds in ("most", "least"):
        maps, ends = "turned", "turned"
    made = Folding(team, data.type, extents, maps, folds, sums)

    results = MEMORY[data.type]
    return lambda data, output: [made.bind(data, output, np.empty(made.room, np.uint8), results, ends)]


COMPILERS = dict.fromkeys(WAYS, reduction)
