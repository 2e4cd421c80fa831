"""What is compiled: loops over codes of weights, written down for LLVM and compiled for this processor when first used.

Vectors have 16 lanes, whatever the processor has: LLVM makes several of one where they are too wide. A step is 32 codes
that follow one another, as two vectors. Of codes that share bytes these are the ones with even and with odd numbers, so
the rows that they are multiplied with come in that order.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from irrun.engines.compiled.compiler import addresses, compiled, features
from irrun.engines.compressed import PACKED

STEP = 32
"""Codes of a step."""

LANES = 16

AHEAD = 4096
"""Bytes of codes, at least, that are brought into the cache before they are read: rows are too short for the processor
to do that of its own accord."""

MAX_UNROLLED = 4
"""Steps of a group that are written one after the other instead of as a loop."""

ARGUMENTS = (
    *("next", "chunk", "columns", "codes", "code_row", "data", "data_row", "rows", "numbers"),
    *("scale", "scale_row", "scale_group", "zero", "zero_row", "zero_group", "groups", "steps", "result", "result_row"),
    *("part", "room", "room_row", "room_size"),
)
"""Of every kernel, one after the other in memory as u64: addresses, numbers, and strides in bytes.

Any number of threads may run a kernel on the same arguments: each takes `chunk` columns, from `next` on, until all
`columns` are taken. `numbers` are those of 16 codes, `steps` are those of a group. Where weights are made f32 first,
that is `part` groups of a chunk at a time, a column every `room_row` bytes, in memory that the first thread finds at
`room` and the next one `room_size` bytes behind.
"""

COUNTERS = ("next", "room")
"""The arguments that a kernel changes."""

_FLOAT, _BYTE, _SHORT, _INT, _LONG = ir.FloatType(), *map(ir.IntType, (8, 16, 32, 64))
_FLOATS, _BYTES, _SHORTS, _INTS = (ir.VectorType(type, LANES) for type in (_FLOAT, _BYTE, _SHORT, _INT))
_HALVES = ir.VectorType(ir.HalfType(), LANES)

Values = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a kernel is compiled for: the type of the codes, whether there are scales and zero points, and how many
    columns and rows of the result are computed at once.

    `steps` are those of a group, 0 where they are told in a call. With `blocks` weights are made f32 before, which pays
    where there are many rows; else each code is for every few rows that it meets. With 0 rows that is all: the result
    are the weights.
    """

    type: str
    scaled: bool
    shifted: bool
    columns: int
    rows: int
    steps: int = 0
    blocks: bool = False


def bytes_of_step(type: str) -> int:
    """The bytes of 32 codes."""
    return 16 if type in PACKED else 64 if type in ("f16", "bf16") else 32


def is_possible(type: str) -> bool:
    """Whether LLVM converts these codes without calling a library for each."""
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    return type not in ("f16", "f8e4m3", "f8e5m2") or not x86 or "f16c" in features()


def address_of(kind: Kind) -> int:
    """Where the machine code of a kernel lies, a function of a pointer to its arguments. Safe for threads."""
    return compiled(kind, lambda function: _Writer(function, kind).write())


def helping() -> tuple[int, int]:
    """Where two functions lie. Both are given u64 that threads share: the number of calls and ends of calls, then, each
    64 bytes on, how many helpers are at work, and the kernel and its arguments.

    `lead(shared, kernel, arguments)` runs a kernel with those that help, until it is through and none is at work.
    `help(shared, last, spins)` helps with calls that it sees, until it has seen none for `spins` looks: it returns the
    number of the last one that it has helped with, and is given that the next time.
    """
    kernel_type = ir.FunctionType(ir.VoidType(), [_LONG])
    types = {"lead": ir.FunctionType(ir.VoidType(), [_LONG] * 3), "help": ir.FunctionType(_LONG, [_LONG] * 3)}

    def write(lead: ir.Function, help: ir.Function) -> None:
        _lead(lead, kernel_type)
        _help(help, kernel_type)

    lead, help = addresses("helping", types, write)
    return lead, help


def _shared(b: ir.IRBuilder, state: Any, number: int) -> Any:
    return b.inttoptr(b.add(state, _long(64 * number)), _LONG.as_pointer())


def _pause(b: ir.IRBuilder) -> None:
    if platform.machine().lower() in ("x86_64", "amd64"):
        name = "llvm.x86.sse2.pause"
        pause = b.module.globals.get(name) or ir.Function(b.module, ir.FunctionType(ir.VoidType(), []), name)
        b.call(pause, [])


def _lead(function: ir.Function, kernel_type: ir.FunctionType) -> None:
    b = ir.IRBuilder(function.append_basic_block())
    state, kernel, arguments = function.args
    calls, working, code, given = (_shared(b, state, number) for number in range(4))
    b.store(kernel, code)
    b.store(arguments, given)
    b.atomic_rmw("add", calls, _long(1), "seq_cst")
    b.call(b.inttoptr(kernel, kernel_type.as_pointer()), [arguments])
    b.atomic_rmw("add", calls, _long(1), "seq_cst")
    wait, end = b.append_basic_block(), b.append_basic_block()
    b.branch(wait)
    b.position_at_end(wait)
    _pause(b)
    b.cbranch(b.icmp_unsigned("==", b.load_atomic(working, "seq_cst", 8), _long(0)), end, wait)
    b.position_at_end(end)
    b.ret_void()


def _help(function: ir.Function, kernel_type: ir.FunctionType) -> None:
    b = ir.IRBuilder(function.append_basic_block())
    state, before, spins = function.args
    calls, working, code, given = (_shared(b, state, number) for number in range(4))
    start = b.block
    look, found, run, leave, idle, end = (b.append_basic_block() for _ in range(6))
    b.branch(look)
    b.position_at_end(look)
    last, left = b.phi(_LONG), b.phi(_LONG)
    now = b.load_atomic(calls, "seq_cst", 8)
    fresh = b.and_(b.icmp_unsigned("!=", now, last), b.trunc(now, ir.IntType(1)))  # an odd number is a call
    b.cbranch(fresh, found, idle)
    b.position_at_end(found)
    b.atomic_rmw("add", working, _long(1), "seq_cst")
    b.cbranch(b.icmp_unsigned("==", b.load_atomic(calls, "seq_cst", 8), now), run, leave)
    b.position_at_end(run)
    b.call(b.inttoptr(b.load(code), kernel_type.as_pointer()), [b.load(given)])
    b.branch(leave)
    b.position_at_end(leave)
    b.atomic_rmw("sub", working, _long(1), "seq_cst")
    b.branch(look)
    b.position_at_end(idle)
    _pause(b)
    rest = b.sub(left, _long(1))
    b.cbranch(b.icmp_unsigned("==", rest, _long(0)), end, look)
    b.position_at_end(end)
    b.ret(last)
    for phi, values in ((last, (before, now, last)), (left, (spins, spins, rest))):
        for value, block in zip(values, (start, leave, idle), strict=True):
            phi.add_incoming(value, block)


class _Writer:
    """The code of a kernel in the making."""

    def __init__(self, function: ir.Function, kind: Kind) -> None:
        self._kind = kind
        self._module = function.module
        self._b = ir.IRBuilder(function.append_basic_block())
        (self._arguments,) = function.args
        self._at = {name: self._argument(number) for number, name in enumerate(ARGUMENTS) if name not in COUNTERS}
        self._numbers = self._load(self._at["numbers"], _FLOATS) if kind.type in PACKED else None

    def write(self) -> None:
        """Chunks of columns until there are none left."""
        b, at = self._b, self._at
        if self._kind.blocks and self._kind.rows:
            room = b.gep(self._arguments, [ir.Constant(_INT, ARGUMENTS.index("room"))])
            self._nowhere = b.ptrtoint(b.alloca(_FLOAT), _LONG)
            self._room = b.atomic_rmw("add", room, at["room_size"], "monotonic")
        chunks, body, end = (b.append_basic_block() for _ in range(3))
        b.branch(chunks)
        b.position_at_end(chunks)
        first = b.atomic_rmw("add", self._arguments, at["chunk"], "monotonic")
        b.cbranch(b.icmp_unsigned("<", first, at["columns"]), body, end)
        b.position_at_end(body)
        last = self._least(b.add(first, at["chunk"]), at["columns"])
        self._part(first, last)
        b.branch(chunks)
        b.position_at_end(end)
        b.ret_void()

    def _part(self, first: Any, last: Any) -> None:
        if not self._kind.rows:
            self._values(first, last)
        elif self._kind.blocks:
            self._block(first, last)
        else:
            self._columns(first, last)

    def _values(self, first: Any, last: Any) -> None:
        """The weights themselves, as f32."""
        b, at = self._b, self._at

        def unpack(number: Any, _: Values) -> Values:
            column = b.add(first, number)
            self._unpack(column, self._place("result", "result_row", column), _long(0), at["groups"])
            return ()

        self._loop(b.sub(last, first), (), unpack)

    def _columns(self, first: Any, last: Any) -> None:
        b, at, size = self._b, self._at, _long(self._kind.columns)

        def block(number: Any, _: Values) -> Values:
            # the last block begins earlier where columns are left over: some are computed twice
            self._rows(self._least(b.add(first, b.mul(number, size)), b.sub(at["columns"], size)))
            return ()

        self._loop(self._blocks(b.sub(last, first), size), (), block)

    def _rows(self, column: Any) -> None:
        b, at, size = self._b, self._at, _long(self._kind.rows)

        def block(number: Any, _: Values) -> Values:
            self._tile(column, self._least(b.mul(number, size), b.sub(at["rows"], size)))
            return ()

        self._loop(self._blocks(at["rows"], size), (), block)

    def _tile(self, column: Any, row: Any) -> None:
        """Some columns of some rows of the result: sums over the steps of a group are scaled and added up."""
        b, at, kind = self._b, self._at, self._kind
        columns, rows = range(kind.columns), range(kind.rows)
        codes = [self._place("codes", "code_row", b.add(column, _long(n))) for n in columns]
        data = [self._place("data", "data_row", b.add(row, _long(m))) for m in rows]
        zeros = ir.Constant(_FLOATS, [0.0] * LANES)
        ahead = self._most(b.mul(at["code_row"], _long(2 * kind.columns)), _long(AHEAD))
        parted = 2 if len(columns) * len(rows) <= 4 else 1  # chains of sums that do not wait for one another

        def group(number: Any, totals: Values) -> Values:
            shifts = [self._factor("zero", b.add(column, _long(n)), number) for n in columns]
            begin = b.mul(number, at["steps"])

            def step(position: Any, sums: Values) -> Values:
                made = list(sums)
                place = b.add(begin, position)
                code = b.mul(place, _long(bytes_of_step(kind.type)))
                offset = b.mul(place, _long(4 * STEP))
                read = [
                    [self._load(b.add(b.add(own, offset), _long(half)), _FLOATS) for half in (0, 64)] for own in data
                ]
                for n in columns:
                    self._prefetch(b.add(b.add(codes[n], code), ahead))
                    halves = self._decoded(b.add(codes[n], code), shifts[n])
                    for m in rows:
                        for half in (0, 1):
                            place_of = (n * len(rows) + m) * parted + half % parted
                            made[place_of] = self._added(halves[half], read[m][half], made[place_of])
                return made

            sums = self._steps(step, [zeros] * (len(totals) * parted))
            if parted == 2:
                sums = [b.fadd(one, other) for one, other in zip(sums[::2], sums[1::2], strict=True)]
            scales = [self._factor("scale", b.add(column, _long(n)), number) for n in columns for _ in rows]
            return [
                b.fadd(own, total) if scale is None else self._added(own, scale, total)
                for own, scale, total in zip(sums, scales, totals, strict=True)
            ]

        totals = self._loop(at["groups"], [zeros] * (len(columns) * len(rows)), group)
        for n in columns:
            for m in rows:
                place = self._place("result", "result_row", b.add(row, _long(m)))
                place = b.add(place, b.mul(b.add(column, _long(n)), _long(4)))
                total = self._call(
                    "llvm.vector.reduce.fadd.v16f32", _FLOAT, ir.Constant(_FLOAT, 0.0), totals[n * len(rows) + m]
                )
                total.fastmath.add("reassoc")
                b.store(total, b.inttoptr(place, _FLOAT.as_pointer()))

    def _block(self, first: Any, last: Any) -> None:
        """A chunk of columns, a part of the groups after the other: the weights are made f32, and multiplied."""
        b, at, kind = self._b, self._at, self._kind
        many, size, rows = b.sub(last, first), _long(kind.columns), _long(kind.rows)

        def part(number: Any, _: Values) -> Values:
            group = b.mul(number, at["part"])
            groups = self._least(at["part"], b.sub(at["groups"], group))

            def unpack(column: Any, _: Values) -> Values:
                self._unpack(b.add(first, column), b.add(self._room, b.mul(column, at["room_row"])), group, groups)
                return ()

            def some_rows(block: Any, _: Values) -> Values:
                def some_columns(tile: Any, _: Values) -> Values:
                    self._sums(b.mul(block, rows), first, b.mul(tile, size), many, group, groups)
                    return ()

                self._loop(self._blocks(many, size), (), some_columns)
                return ()

            self._loop(many, (), unpack)
            self._loop(self._blocks(at["rows"], rows), (), some_rows)
            return ()

        self._loop(self._blocks(at["groups"], at["part"]), (), part)

    def _unpack(self, column: Any, target: Any, group: Any, groups: Any) -> None:
        """Write the values of some groups of a column."""
        b, at, kind = self._b, self._at, self._kind
        codes = self._place("codes", "code_row", column)

        def each(number: Any, _: Values) -> Values:
            own = b.add(group, number)
            shift, scale = self._factor("zero", column, own), self._factor("scale", column, own)

            def step(position: Any, _: Values) -> Values:
                code = b.mul(b.add(b.mul(own, at["steps"]), position), _long(bytes_of_step(kind.type)))
                place = b.mul(b.add(b.mul(number, at["steps"]), position), _long(4 * STEP))
                for half, values in enumerate(self._decoded(b.add(codes, code), shift)):
                    address = b.add(b.add(target, place), _long(64 * half))
                    scaled = values if scale is None else b.fmul(values, scale)
                    b.store(scaled, b.inttoptr(address, _FLOATS.as_pointer())).align = 4
                return ()

            self._steps(step, ())
            return ()

        self._loop(groups, (), each)

    def _sums(self, row: Any, first: Any, column: Any, many: Any, group: Any, groups: Any) -> None:
        """What some groups add to some rows and columns of the result; those beyond its end go nowhere."""
        b, at, kind = self._b, self._at, self._kind
        columns, rows = range(kind.columns), range(kind.rows)
        lengths = b.mul(groups, at["steps"])
        begin = b.mul(b.mul(group, at["steps"]), _long(4 * STEP))
        own = [self._least(b.add(column, _long(n)), b.sub(many, _long(1))) for n in columns]
        weights = [b.add(self._room, b.mul(place, at["room_row"])) for place in own]
        inside = [self._least(b.add(row, _long(m)), b.sub(at["rows"], _long(1))) for m in rows]
        data = [b.add(self._place("data", "data_row", place), begin) for place in inside]

        def step(number: Any, sums: Values) -> Values:
            made = list(sums)
            offset = b.mul(number, _long(4 * STEP))
            for half in (0, 64):
                at_half = b.add(offset, _long(half))
                factors = [self._load(b.add(place, at_half), _FLOATS) for place in weights]
                for m in rows:
                    values = self._load(b.add(data[m], at_half), _FLOATS)
                    for n in columns:
                        made[m * kind.columns + n] = self._added(values, factors[n], made[m * kind.columns + n])
            return made

        sums = self._loop(lengths, [ir.Constant(_FLOATS, [0.0] * LANES)] * (len(columns) * len(rows)), step)
        fresh = b.icmp_unsigned("==", group, _long(0))
        for m in rows:
            totals = self._totals(sums[m * kind.columns : (m + 1) * kind.columns])
            start = b.add(self._place("result", "result_row", inside[m]), b.mul(first, _long(4)))
            for n in columns:
                there = b.and_(
                    b.icmp_unsigned("<", b.add(row, _long(m)), at["rows"]),
                    b.icmp_unsigned("<", b.add(column, _long(n)), many),
                )
                place = b.select(there, b.add(start, b.mul(b.add(column, _long(n)), _long(4))), self._nowhere)
                before = b.select(fresh, ir.Constant(_FLOAT, 0.0), self._load(place, _FLOAT))
                b.store(b.fadd(before, totals[n]), b.inttoptr(place, _FLOAT.as_pointer()))

    def _totals(self, vectors: Values) -> list[Any]:
        """The sums of the lanes of four vectors, halves of which are added until one vector has a lane for each."""
        b, count = self._b, LANES
        left = list(vectors)
        while count > 1:
            half = count // 2
            if len(left) > 1:  # the halves of two beside each other
                low = [start + n for start in range(0, 2 * LANES, count) for n in range(half)]
                order = [ir.Constant(_INTS, [n + more for n in low]) for more in (0, half)]
                left = [
                    b.fadd(*(b.shuffle_vector(one, other, own) for own in order))
                    for one, other in zip(left[::2], left[1::2], strict=True)
                ]
            else:
                moved = ir.Constant(_INTS, [n ^ half for n in range(LANES)])
                left = [b.fadd(left[0], b.shuffle_vector(left[0], left[0], moved))]
            count = half
        lanes = [n * LANES // len(vectors) for n in range(len(vectors))]
        return [b.extract_element(left[0], ir.Constant(_INT, lane)) for lane in lanes]

    # Codes

    def _decoded(self, address: Any, shift: Any) -> list[Any]:
        """The numbers of the codes of a step, less the zero point."""
        b, type = self._b, self._kind.type
        if type in PACKED:
            codes = b.zext(self._load(address, _BYTES), _INTS)
            return [self._looked_up(codes, shift), self._looked_up(b.lshr(codes, _ints(4)), shift)]
        size = bytes_of_step(type) // 2
        made = [self._converted(b.add(address, _long(start))) for start in (0, size)]
        return made if shift is None else [b.fsub(values, shift) for values in made]

    def _looked_up(self, codes: Any, shift: Any) -> Any:
        """The numbers of codes in the lower four bits."""
        b, type = self._b, self._kind.type
        if "avx512f" in features():
            table = self._numbers if shift is None else b.fsub(self._numbers, shift)
            return self._call("llvm.x86.avx512.permvar.sf.512", _FLOATS, table, codes)
        codes = b.and_(codes, _ints(15))
        if type in ("u4", "i4"):
            values = b.sitofp(codes if type == "u4" else b.sub(b.xor(codes, _ints(8)), _ints(8)), _FLOATS)
        else:  # one of two, by a bit after the other
            options = [self._splat(b.extract_element(self._numbers, ir.Constant(_INT, n))) for n in range(16)]
            for bit in (1, 2, 4, 8):
                chosen = b.icmp_unsigned("!=", b.and_(codes, _ints(bit)), _ints(0))
                options = [b.select(chosen, odd, even) for even, odd in zip(options[::2], options[1::2], strict=True)]
            (values,) = options
        return values if shift is None else b.fsub(values, shift)

    def _converted(self, address: Any) -> Any:
        """16 numbers of codes of whole bytes."""
        b, type = self._b, self._kind.type
        if type == "f16":
            return b.fpext(self._load(address, _HALVES), _FLOATS)
        if type == "bf16":
            return b.bitcast(b.shl(b.zext(self._load(address, _SHORTS), _INTS), _ints(16)), _FLOATS)
        codes = self._load(address, _BYTES)
        if type == "i8":
            return b.sitofp(b.sext(codes, _INTS), _FLOATS)
        if type == "u8":
            return b.sitofp(b.zext(codes, _INTS), _FLOATS)
        bits = b.zext(codes, _SHORTS)
        if type == "f8e5m2":
            return b.fpext(b.bitcast(b.shl(bits, _shorts(8)), _HALVES), _FLOATS)
        size = b.and_(bits, _shorts(0x7F))
        half = b.or_(b.shl(b.and_(bits, _shorts(0x80)), _shorts(8)), b.shl(size, _shorts(7)))
        values = b.fmul(b.fpext(b.bitcast(half, _HALVES), _FLOATS), ir.Constant(_FLOATS, [256.0] * LANES))
        nan = b.icmp_unsigned("==", size, _shorts(0x7F))
        return b.select(nan, ir.Constant(_FLOATS, [float("nan")] * LANES), values)

    def _factor(self, name: str, column: Any, group: Any) -> Any:
        """The scale or zero point of a group in all lanes; None where there is none."""
        b, at = self._b, self._at
        if not (self._kind.scaled if name == "scale" else self._kind.shifted):
            return None
        place = b.add(at[name], b.add(b.mul(column, at[f"{name}_row"]), b.mul(group, at[f"{name}_group"])))
        return self._splat(self._load(place, _FLOAT))

    # Parts of any code

    def _argument(self, number: int) -> Any:
        place = self._b.gep(self._arguments, [ir.Constant(_INT, number)])
        return self._b.load(place)

    def _place(self, base: str, step: str, number: Any) -> Any:
        return self._b.add(self._at[base], self._b.mul(number, self._at[step]))

    def _blocks(self, count: Any, size: Any) -> Any:
        """How many blocks of a size there are; the last one may be smaller."""
        return self._b.udiv(self._b.add(count, self._b.sub(size, _long(1))), size)

    def _load(self, address: Any, type: ir.Type) -> Any:
        value = self._b.load(self._b.inttoptr(address, type.as_pointer()))
        value.align = 4 if type in (_FLOAT, _FLOATS) else 1
        return value

    def _most(self, one: Any, other: Any) -> Any:
        return self._b.select(self._b.icmp_unsigned("<", one, other), other, one)

    def _prefetch(self, address: Any) -> None:
        """Have bytes brought into the cache that come soon; what lies beyond the codes does no harm."""
        hints = [ir.Constant(_INT, value) for value in (0, 3, 1)]
        pointer = self._b.inttoptr(address, _BYTE.as_pointer())
        self._call("llvm.prefetch.p0", ir.VoidType(), pointer, *hints)

    def _least(self, one: Any, other: Any) -> Any:
        return self._b.select(self._b.icmp_unsigned("<", one, other), one, other)

    def _splat(self, value: Any) -> Any:
        nothing = ir.Constant(_FLOATS, ir.Undefined)
        first = self._b.insert_element(nothing, value, ir.Constant(_INT, 0))
        return self._b.shuffle_vector(first, nothing, _ints(0))

    def _added(self, one: Any, other: Any, total: Any) -> Any:
        return self._call("llvm.fma.v16f32", _FLOATS, one, other, total)

    def _call(self, name: str, type: ir.Type, *arguments: Any) -> Any:
        function = self._module.globals.get(name)
        if function is None:
            function = ir.Function(self._module, ir.FunctionType(type, [own.type for own in arguments]), name)
        return self._b.call(function, arguments)

    def _steps(self, step: Callable[[Any, Values], Values], before: Values) -> Values:
        if not 0 < self._kind.steps <= MAX_UNROLLED:
            return self._loop(self._at["steps"], before, step)
        for number in range(self._kind.steps):
            before = step(_long(number), before)
        return before

    def _loop(self, count: Any, before: Values, body: Callable[[Any, Values], Values]) -> Values:
        """The values after `count` times, at least once, that `body` makes those of the next time of the last ones."""
        b = self._b
        start, again, end = b.block, b.append_basic_block(), b.append_basic_block()
        b.branch(again)
        b.position_at_end(again)
        number = b.phi(_LONG)
        number.add_incoming(_long(0), start)
        held = [b.phi(value.type) for value in before]
        for value, first in zip(held, before, strict=True):
            value.add_incoming(first, start)
        made = body(number, held)
        following = b.add(number, _long(1))
        for value, new in zip((number, *held), (following, *made), strict=True):
            value.add_incoming(new, b.block)
        b.cbranch(b.icmp_unsigned("<", following, count), again, end)
        b.position_at_end(end)
        return made


def _long(value: int) -> ir.Constant:
    return ir.Constant(_LONG, value)


def _ints(value: int) -> ir.Constant:
    return ir.Constant(_INTS, [value] * LANES)


def _shorts(value: int) -> ir.Constant:
    return ir.Constant(_SHORTS, [value] * LANES)
