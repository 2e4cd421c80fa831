"""Quantize: what is on a grid and goes into products is there as codes, one byte each, and integers are multiplied.

A FakeQuantize in front of a product becomes two instructions, one that makes codes of numbers and one that makes
numbers of codes. What only moves elements moves codes, and what is a function of the elements of a quantized product
alone, such as an activation in several layers, is looked up in a table by their codes. A product still reads numbers,
as the graph has it: an engine that multiplies integers reads the codes of these instead (`assign`), and then nobody
makes the numbers.

Expects a folded program without posts, in which weights that could be integers have stayed so (`compress`); leaves one
whose results are the same up to a step of its grids where rounding decides which. Weights of products that cannot be
of integers after all become f32. What is on the way is left alone where somebody looks at it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from irrun.engines.grid import Coding, channels_of, is_of_integers
from irrun.run.internal_ops import DEQUANTIZE, QUANTIZE, TABLE
from irrun.run.passes.grids import Grids, kept_by
from irrun.run.passes.integers import BYTES, multiply_integers
from irrun.run.passes.setting import Setting
from irrun.run.passes.tables import Functions, requantized
from irrun.run.program import Instruction, Program
from irrun.spec.dims import same_shapes
from irrun.spec.op import Array, Tensor
from irrun.spec.traits import Convolving, Elementwise, MatrixProduct, Quantizing


def quantize(program: Program, setting: Setting) -> Program:
    if setting.shapes is None or not setting.engines or setting.literal or not _concerns(program):
        return program
    if not setting.watched:
        program = multiply_integers(program, setting)
        program = requantized(program, _grids(program), setting)
    if not setting.quantized:
        return program
    quantization = _Quantization(program, setting)
    if not setting.watched:
        quantization.find()
    return quantization.made()


def _concerns(program: Program) -> bool:
    """Whether anything in a program may be on a grid, or is there as codes."""
    if program.compressed or any(tensor.type in BYTES for tensor in program.tensors):
        return True
    return any(instruction.op.trait(Quantizing) is not None for instruction in program.instructions)


def _grids(program: Program) -> Grids:
    return Grids(program, program.constant)


class _Quantization:
    """A program in the making; `wanted` are the tensors whose codes products read, and those that these come of.
    `_tables` are tensors that are looked up: by whose codes, and what makes the table of its own codes or numbers."""

    def __init__(self, program: Program, setting: Setting) -> None:
        self._old, self.program, self._setting = program, program.begun(), setting
        self._grids = _grids(program)
        self._tables: dict[int, tuple[int, Callable[[Coding | None], Array]]] = {}
        self.wanted: set[int] = set()
        self._products: set[Instruction] = set()
        self._codes: dict[int, int] = {}

    def find(self) -> None:
        """Look for products of integers."""
        for instruction in self._old.instructions:
            if self._setting.closed(instruction, self._old) and self._is_integer(instruction):
                self._products.add(instruction)
                for number in instruction.inputs[:2]:
                    self._want(number)
        for instruction in self._old.instructions:
            if self._setting.closed(instruction, self._old) and self._is_sum(instruction):
                self._want(max(number for number in instruction.inputs if number is not None))
        self._find_tables()

    def _find_tables(self) -> None:
        """Look for functions of quantized products of integers."""
        if not self._products:
            return
        functions, covered = Functions(self._old, self._grids, self._setting), set[int]()
        for root in functions.roots():
            ends = [] if root in covered or not self._is_quantized_product(root) else functions.ends(root)
            for number in ends:
                self._tables[number] = root, partial(functions.table, number, root)
            if ends:
                self._want(root)
                covered |= functions.of(root)

    def _is_integer(self, instruction: Instruction) -> bool:
        """Whether an instruction is a product of two tensors on grids."""
        convolved, multiplied = instruction.op.trait(Convolving), instruction.op.trait(MatrixProduct)
        if convolved is not None:
            grouped, transposed = convolved.grouped, False
        elif multiplied is not None:
            grouped, transposed = None, instruction.attrs[multiplied.transpose_b]
        else:
            return False
        data, other = instruction.inputs[:2]
        grid, weights = self._grids.of(data), None if other is None else self._old.compressed.get(other)
        if grid is None or not self._is_sized(data):
            return False
        if len(grid.scale) > 1 and not (
            convolved is not None and convolved.grouped and weights is not None and weights.shape[2] == 1
        ):
            return False
        if weights is not None:
            return is_of_integers(weights, channels_of(len(weights.shape), grouped=grouped, transposed=transposed))
        second = self._grids.of(other)
        return convolved is None and second is not None and len(second.scale) == 1 and self._is_sized(other)

    def _is_sum(self, instruction: Instruction) -> bool:
        """Whether an instruction is a sum of two quantized tensors that both come of products, and of which neither is
        there as codes. One of them is done behind its product, and had better find the other one as codes."""
        if instruction.function != "add" or len({*instruction.inputs}) < 2:
            return False
        makers = [self._grids.makers.get(number) for number in instruction.inputs]
        first, *others = [self._old.tensors[number].shape for number in instruction.inputs if number is not None]
        return all(same_shapes(first, other) for other in others) and all(
            maker is not None
            and maker.op.trait(Quantizing) is not None
            and self.wanted.isdisjoint(maker.outputs)
            and (grid := self._grids.of(maker.outputs[0])) is not None
            and len(grid.scale) == 1
            and self._comes_of_product(maker.inputs[0])
            for maker in makers
        )

    def _is_quantized_product(self, number: int) -> bool:
        """Whether a tensor has the elements of a product of integers, quantized."""
        maker = self._grids.makers.get(number)
        while maker is not None and maker.op.trait(Quantizing) is None:
            sources = kept_by(maker, number, self._old)
            if len(sources) != 1 or sources[0] is None:
                return False
            number, maker = sources[0], self._grids.makers.get(sources[0])
        return maker is not None and self._comes_of_product(maker.inputs[0])

    def _comes_of_product(self, number: int | None) -> bool:
        """Whether a tensor is a product of integers, or that and a constant in an element-wise op."""
        maker = self._grids.makers.get(number)
        while maker is not None and maker not in self._products and maker.op.trait(Elementwise) is not None:
            varying = [number for number in maker.inputs if number not in self._old.constants]
            maker = self._grids.makers.get(varying[0]) if len(varying) == 1 else None
        return maker in self._products

    def _is_sized(self, number: int | None) -> bool:
        return number is not None and self._setting.sized(self._old.tensors[number])

    def _want(self, number: int | None) -> None:
        if number is None or number in self.wanted or self._grids.of(number) is None:
            return
        self.wanted.add(number)
        maker = self._grids.makers[number]
        if maker.op.trait(Quantizing) is None:
            for source in kept_by(maker, number, self._old):
                self._want(source)

    def made(self) -> Program:
        """The program with codes where they are wanted."""
        for instruction in self._old.instructions:
            if self._tabulated(instruction):
                continue
            if self.wanted.isdisjoint(instruction.outputs) or not self._coded(instruction):
                self.program.instructions.append(instruction)
        self._expand()
        return self.program

    def _tabulated(self, instruction: Instruction) -> bool:
        """Add a look-up in place of the instruction; False where that is none of the `_tables`."""
        result = instruction.outputs[0] if instruction.outputs else -1
        if result not in self._tables or self._tables[result][0] not in self._codes:
            return False
        root, make = self._tables[result]
        coding = self._grids.coding(instruction) if result in self.wanted else None
        table = make(coding)
        number = self.program.add_constant(table, "f32" if coding is None else coding.grid.type)
        target = result
        if coding is not None:
            target = self._codes[result] = self._new(coding.grid.type, result)
        self.program.instructions.append(
            Instruction(instruction.layer, TABLE, {}, {}, (self._codes[root], number), (target,))
        )
        if coding is not None:
            attrs = {"grid": coding.grid}
            self.program.instructions.append(
                Instruction(instruction.layer, DEQUANTIZE, attrs, {}, (target,), (result,))
            )
        return True

    def _coded(self, instruction: Instruction) -> bool:
        """Add the instruction on codes; False where it is left as it is."""
        grids = {number: grid for number in instruction.outputs if (grid := self._grids.of(number)) is not None}
        others = set(instruction.outputs) - grids.keys()
        if not self._setting.closed(instruction, self._old) or (others and self._old.read().intersection(others)):
            return False
        if instruction.op.trait(Quantizing) is not None:
            self._quantized(instruction)
        else:
            sources = kept_by(instruction, next(iter(grids)), self._old)
            if not self._codes.keys() >= set(sources):
                return False
            inputs = (
                *(self._codes[number] for number in sources if number is not None),
                *instruction.inputs[len(sources) :],
            )
            self._codes |= {number: self._new(grid.type, number) for number, grid in grids.items()}
            type = next(iter(grids.values())).type
            outputs = tuple(self._codes.get(number, number) for number in instruction.outputs)
            self.program.instructions.append(
                instruction.changed(inputs=inputs, outputs=outputs, types=instruction.types_for(type))
            )
        for number, grid in grids.items():
            self.program.instructions.append(
                Instruction(instruction.layer, DEQUANTIZE, {"grid": grid}, {}, (self._codes[number],), (number,))
            )
        return True

    def _quantized(self, instruction: Instruction) -> None:
        (result,), source, coding = instruction.outputs, instruction.inputs[0], self._grids.coding(instruction)
        assert coding is not None
        self._codes[result] = self._new(coding.grid.type, result)
        self.program.instructions.append(
            Instruction(instruction.layer, QUANTIZE, {"coding": coding}, {}, (source,), (self._codes[result],))
        )

    def _new(self, type: str, like: int) -> int:
        return self.program.add(Tensor(type, self._old.tensors[like].shape))

    def _expand(self) -> None:
        """Make filters f32 that are not multiplied as integers: no engine reads them otherwise."""
        others = [i for i in self._old.instructions if i.op.trait(Convolving) and i not in self._products]
        kept = {i.inputs[1] for i in self._products}
        compressed = dict(self.program.compressed)
        for number in {instruction.inputs[1] for instruction in others} - kept:
            if number is not None and number in compressed:
                dense = self.program.constants[number] = self._setting.dense(compressed.pop(number))
                self.program.reserved += dense.nbytes
        self.program.compressed = compressed
