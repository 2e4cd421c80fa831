"""What is compiled: loops over codes of weights, written down for LLVM and compiled for this processor when first used.

Vectors have 16 lanes, whatever the processor has: LLVM makes several of one where they are too wide. A step is 32 codes
that follow one another, as two vectors. Of codes that share bytes these are the ones with even and with odd numbers, so
the rows that they are multiplied with come in that order.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from irrun.engines.compressed import PACKED

STEP = 32
"""Codes of a step."""

LANES = 16

MAX_UNROLLED = 4
"""Steps of a group that are written one after the other instead of as a loop."""

ARGUMENTS = (
    *("next", "chunk", "columns", "codes", "code_row", "data", "data_row", "rows", "numbers"),
    *("scale", "scale_row", "scale_group", "zero", "zero_row", "zero_group", "groups", "steps", "result", "result_row"),
)
"""Of every kernel, one after the other in memory as u64: addresses, numbers, and strides in bytes.

Any number of threads may run a kernel on the same arguments: each takes `chunk` columns, from `next` on, until all
`columns` are taken. `numbers` are those of 16 codes, `steps` are those of a group.
"""

_FLOAT, _BYTE, _SHORT, _INT, _LONG = ir.FloatType(), *map(ir.IntType, (8, 16, 32, 64))
_FLOATS, _BYTES, _SHORTS, _INTS = (ir.VectorType(type, LANES) for type in (_FLOAT, _BYTE, _SHORT, _INT))
_HALVES = ir.VectorType(ir.HalfType(), LANES)

Values = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a kernel is compiled for: the type of the codes, whether there are scales and zero points, and how many
    columns and rows of the result are computed at once; no rows: weights [columns, inner] are written as f32.

    `steps` are those of a group, 0 where they are told in a call.
    """

    type: str
    scaled: bool
    shifted: bool
    columns: int
    rows: int
    steps: int = 0


def bytes_of_step(type: str) -> int:
    """The bytes of 32 codes."""
    return 16 if type in PACKED else 64 if type in ("f16", "bf16") else 32


@cache
def features() -> frozenset[str]:
    """What this processor can do, by LLVM's names."""
    return frozenset(name for name, there in llvm.get_host_cpu_features().items() if there)


def is_possible(type: str) -> bool:
    """Whether LLVM converts these codes without calling a library for each."""
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    return type not in ("f16", "f8e4m3", "f8e5m2") or not x86 or "f16c" in features()


class _Compiler:
    """LLVM, and the kernels that it has compiled; they stay in memory."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple()
        options = llvm.get_host_cpu_features().flatten()
        self._machine = target.create_target_machine(llvm.get_host_cpu_name(), options, opt=3, jit=True)
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self._machine)
        self._lock = Lock()
        self._addresses: dict[Kind, int] = {}

    def address(self, kind: Kind) -> int:
        with self._lock:
            found = self._addresses.get(kind)
            if found is None:
                found = self._addresses[kind] = self._compiled(kind, f"kernel_{len(self._addresses)}")
            return found

    def _compiled(self, kind: Kind, name: str) -> int:
        module = llvm.parse_assembly(str(_module(kind, name)))
        passes = llvm.create_pass_builder(self._machine, llvm.create_pipeline_tuning_options(speed_level=2))
        passes.getModulePassManager().run(module, passes)
        self._engine.add_module(module)
        self._engine.finalize_object()
        address: int = self._engine.get_function_address(name)
        return address


_compiler = cache(_Compiler)


def address_of(kind: Kind) -> int:
    """Where the machine code of a kernel lies, a function of a pointer to its arguments. Safe for threads."""
    return _compiler().address(kind)


def _module(kind: Kind, name: str) -> ir.Module:
    module = ir.Module()
    module.triple = llvm.get_default_triple()
    pointer = _LONG.as_pointer()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer]), name)
    _Writer(function, kind).write()
    return module


class _Writer:
    """The code of a kernel in the making."""

    def __init__(self, function: ir.Function, kind: Kind) -> None:
        self._kind = kind
        self._module = function.module
        self._b = ir.IRBuilder(function.append_basic_block())
        (self._arguments,) = function.args
        self._at = {name: self._argument(number) for number, name in enumerate(ARGUMENTS) if name != "next"}
        self._numbers = self._load(self._at["numbers"], _FLOATS) if kind.type in PACKED else None

    def write(self) -> None:
        """Chunks of columns until there are none left."""
        b, at = self._b, self._at
        chunks, body, end = (b.append_basic_block() for _ in range(3))
        b.branch(chunks)
        b.position_at_end(chunks)
        first = b.atomic_rmw("add", self._arguments, at["chunk"], "monotonic")
        b.cbranch(b.icmp_unsigned("<", first, at["columns"]), body, end)
        b.position_at_end(body)
        last = self._least(b.add(first, at["chunk"]), at["columns"])
        size = _long(self._kind.columns)
        blocks = b.udiv(b.add(b.sub(last, first), b.sub(size, _long(1))), size)

        def block(number: Any, _: Values) -> Values:
            # the last block begins earlier where columns are left over: some are computed twice
            column = self._least(b.add(first, b.mul(number, size)), b.sub(at["columns"], size))
            if self._kind.rows:
                self._rows(column)
            else:
                self._unpacked(column)
            return ()

        self._loop(blocks, (), block)
        b.branch(chunks)
        b.position_at_end(end)
        b.ret_void()

    def _rows(self, column: Any) -> None:
        b, at, size = self._b, self._at, _long(self._kind.rows)
        blocks = b.udiv(b.add(at["rows"], b.sub(size, _long(1))), size)

        def block(number: Any, _: Values) -> Values:
            self._tile(column, self._least(b.mul(number, size), b.sub(at["rows"], size)))
            return ()

        self._loop(blocks, (), block)

    def _tile(self, column: Any, row: Any) -> None:
        """Some columns of some rows of the result: sums over the steps of a group are scaled and added up."""
        b, at, kind = self._b, self._at, self._kind
        columns, rows = range(kind.columns), range(kind.rows)
        codes = [self._place("codes", "code_row", column, n) for n in columns]
        data = [self._place("data", "data_row", row, n) for n in rows]
        zeros = ir.Constant(_FLOATS, [0.0] * LANES)
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
                place = self._place("result", "result_row", row, m)
                place = b.add(place, b.mul(b.add(column, _long(n)), _long(4)))
                total = self._call(
                    "llvm.vector.reduce.fadd.v16f32", _FLOAT, ir.Constant(_FLOAT, 0.0), totals[n * len(rows) + m]
                )
                total.fastmath.add("reassoc")
                b.store(total, b.inttoptr(place, _FLOAT.as_pointer()))

    def _unpacked(self, column: Any) -> None:
        """The values of a row of the weights, in order."""
        b, at, kind = self._b, self._at, self._kind
        codes, result = self._place("codes", "code_row", column, 0), self._place("result", "result_row", column, 0)

        def group(number: Any, _: Values) -> Values:
            shift, scale = self._factor("zero", column, number), self._factor("scale", column, number)
            begin = b.mul(number, at["steps"])

            def step(position: Any, _: Values) -> Values:
                place = b.add(begin, position)
                halves = self._decoded(b.add(codes, b.mul(place, _long(bytes_of_step(kind.type)))), shift)
                if kind.type in PACKED:
                    orders = [[n // 2 + n % 2 * LANES for n in range(start, start + LANES)] for start in (0, LANES)]
                    halves = [b.shuffle_vector(*halves, ir.Constant(_INTS, order)) for order in orders]
                for half, values in enumerate(halves):
                    target = b.add(result, b.add(b.mul(place, _long(4 * STEP)), _long(64 * half)))
                    stored = b.store(
                        values if scale is None else b.fmul(values, scale), b.inttoptr(target, _FLOATS.as_pointer())
                    )
                    stored.align = 4
                return ()

            self._steps(step, ())
            return ()

        self._loop(at["groups"], (), group)

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

    def _place(self, base: str, step: str, first: Any, number: int) -> Any:
        return self._b.add(self._at[base], self._b.mul(self._b.add(first, _long(number)), self._at[step]))

    def _load(self, address: Any, type: ir.Type) -> Any:
        value = self._b.load(self._b.inttoptr(address, type.as_pointer()))
        value.align = 4 if type in (_FLOAT, _FLOATS) else 1
        return value

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
