"""Compress: weights that a file holds in few bits stay as they are where products and look-ups read them.

Exporters write: a constant of codes, converted to floats, with a zero point subtracted, times a scale, reshaped from
groups, converted to f32. What comes out of such a chain becomes one tensor, of `Program.compressed`, if all that read
it can read it so; no value of it is touched. Scales and zero points are applied in f32, whatever the graph says. Where
products are to be computed in bf16 those that read it are f32 still, but may round what they multiply.

Expects a program as it was built, for any inputs; leaves one without the chains that nobody reads any more, and with
constants of packed codes unpacked that somebody does read.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from math import prod

import numpy as np

from irrun.engines.compressed import CODES, LEAST, PACKED, CompressedWeights
from irrun.run.memory import refusal
from irrun.run.passes.grids import Grids, integer_weights, levels_of, quantized_weights
from irrun.run.passes.precision import unrounded
from irrun.run.passes.pruning import prune
from irrun.run.passes.setting import Setting
from irrun.run.program import Instruction, Program
from irrun.spec.dims import Dim
from irrun.spec.dtypes import ELEMENT_TYPES
from irrun.spec.op import Array, Tensor
from irrun.spec.traits import (
    Converting,
    Convolving,
    Lookup,
    MatrixProduct,
    Permutation,
    Quantizing,
    Reshaping,
    broadcasts_by_numpy,
)

FEW_ROWS = 16
"""Rows of a product up to which it takes longer to read weights than to compute. Where there are always more, weights
of 16 bits are converted once: they would take half the memory, and be converted in every run."""

FLOATS = ("f16", "bf16", "f32")


def compress(program: Program, setting: Setting) -> Program:
    """Raises ExecutionError where constants that are unpacked take more memory than they may."""
    if not setting.compressed or not setting.anew:
        return program
    compression = _Compression(program, setting.bf16 or frozenset())
    multiplied = compression.integers() if setting.quantized else {}
    taken = compression.taken() | multiplied
    instructions = [
        compression.turned(instruction)
        for instruction in program.instructions
        if taken.keys().isdisjoint(instruction.outputs)
    ]
    compressed = {**program.compressed, **taken}
    program = prune(replace(program, instructions=instructions, compressed=compressed), setting)
    _unpack(program, setting)
    _expand(program, setting, multiplied)
    factors = {id(f): f.nbytes for w in program.compressed.values() for f in (w.scale, w.zero) if f is not None}
    program.reserved += sum(factors.values())
    return program


def _unpack(program: Program, setting: Setting) -> None:
    """Make constants of packed codes that somebody reads as they are."""
    for number, weights in list(program.compressed.items()):
        if program.tensors[number].type not in PACKED:
            continue
        wanted = prod(weights.shape)
        if program.reserved + wanted > setting.limit:
            reader = next(instruction for instruction in program.instructions if number in instruction.inputs)
            raise refusal(reader.layer, "an unpacked constant", wanted, program.reserved, setting.limit)
        array = program.constants[number] = weights.plain()
        array.flags.writeable = False
        program.reserved += wanted
        del program.compressed[number]


def _expand(program: Program, setting: Setting, kept: Container[int]) -> None:
    """Make weights f32 once for all runs, but those that are `kept`, where that takes little enough memory."""
    loose = {number: weights for number, weights in program.compressed.items() if number not in kept}
    wanted = sum(4 * prod(weights.shape) for weights in loose.values())
    if wanted > min(setting.expanded, setting.limit - program.reserved):
        return
    for number, weights in loose.items():
        program.constants[number] = weights.dense()
        program.constants[number].flags.writeable = False
    program.compressed = {number: weights for number, weights in program.compressed.items() if number in kept}
    program.reserved += wanted


class _Compression:
    """What of a program is compressed weights, and who reads them; some ops are computed in bf16."""

    def __init__(self, program: Program, narrow: frozenset[str]) -> None:
        self._program, self._narrow = program, narrow
        self._exact = unrounded(program) if narrow else set()
        self._makers, self._readers = program.makers(), program.readers()
        self._found: dict[int, CompressedWeights | None] = {}
        self._turns: dict[int, int] = {}

    def taken(self) -> dict[int, CompressedWeights]:
        """The tensors that stay compressed."""
        taken: dict[int, CompressedWeights] = {}
        for instruction in self._program.instructions:
            for read in instruction.inputs:
                number = self._source(read)
                if number is None or number in taken or not self._reads(instruction, read):
                    continue
                weights = self._weights(number)
                if weights is not None and self._fits(number, weights):
                    taken[number] = replace(weights, rounded=self._is_rounded(number))
        self._turns = {number: source for number, source in self._turns.items() if source in taken}
        return taken

    def integers(self) -> dict[int, CompressedWeights]:
        """The weights that can be multiplied as integers, with data that are quantized."""
        found: dict[int, CompressedWeights] = {}
        grids, alone = Grids(self._program, self._value), self._program.sole_readers()
        for instruction in self._program.instructions:
            number = instruction.inputs[1] if len(instruction.inputs) > 1 else None
            if number is None or self._program.tensors[number].type != "f32" or grids.of(instruction.inputs[0]) is None:
                continue
            if instruction.op.trait(Convolving) is None and instruction.op.trait(MatrixProduct) is None:
                continue
            weights = self._weights(number) or self._quantized(self._makers.get(number))
            plain = None if weights is None else integer_weights(weights, instruction)
            if plain is not None and number in alone:
                found[number] = plain
        return found

    def _quantized(self, maker: Instruction | None) -> CompressedWeights | None:
        """What a quantization makes of a constant."""
        trait = None if maker is None else maker.op.trait(Quantizing)
        if maker is None or trait is None or not broadcasts_by_numpy(maker.attrs):
            return None
        found = [value for number in maker.inputs if (value := self._value(number)) is not None]
        return quantized_weights(found[0], found[1:], levels_of(maker)) if len(found) == len(maker.inputs) else None

    def turned(self, instruction: Instruction) -> Instruction:
        """A product that reads the transposition of weights, as one that reads the weights."""
        number = instruction.inputs[1] if len(instruction.inputs) > 1 else None
        source = None if number is None else self._turns.get(number)
        if source is None:
            return instruction
        trait = instruction.op.trait(MatrixProduct)
        assert trait is not None
        attrs = {**instruction.attrs, trait.transpose_b: not instruction.attrs[trait.transpose_b]}
        return instruction.changed(attrs=attrs, inputs=(instruction.inputs[0], source))

    # Who reads them

    def _source(self, number: int | None) -> int | None:
        """The tensor itself, or the matrix that it is the transposition of."""
        maker = self._makers.get(number)
        trait = None if maker is None else maker.op.trait(Permutation)
        if number is None or maker is None or trait is None or maker.inputs[0] is None:
            return number
        order = self._program.constant(maker.inputs[1])
        if order is None or order.tolist() not in ([1, 0], []) or len(self._shape(maker.inputs[0]) or ()) != 2:
            return number
        self._turns[number] = maker.inputs[0]
        return maker.inputs[0]

    def _fits(self, number: int, weights: CompressedWeights) -> bool:
        """Whether the weights are worth it, and all that read them can read them compressed."""
        if self._program.tensors[number].type != "f32" or 4 * prod(weights.shape) < LEAST:
            return False
        if len(weights.shape) == 3:
            return number not in self._program.results and all(map(self._picks, self._readers[number]))
        if len(weights.shape) != 2:
            return False
        halves = ELEMENT_TYPES[weights.type].bits == 16
        for reader in self._readers[number]:
            final, read = [reader], number
            if reader.op.trait(Permutation) is not None and self._source(reader.outputs[0]) == number:
                read = reader.outputs[0]
                final = self._readers[read]
            if not {number, read}.isdisjoint(self._program.results):
                return False
            if not all(self._reads(other, read) and not (halves and self._is_dense(other)) for other in final):
                return False
        return True

    def _is_rounded(self, number: int) -> bool:
        """Whether all products with the weights, or their transposition, may be computed in bf16."""
        read = [number, *(turned for turned, source in self._turns.items() if source == number)]
        products = [
            reader for own in read for reader in self._readers[own] if reader.op.trait(MatrixProduct) is not None
        ]
        return all(own.op.name in self._narrow and not own.layer.precise and own not in self._exact for own in products)

    def _reads(self, instruction: Instruction, number: int | None) -> bool:
        """Whether an instruction is a product with the tensor as its second matrix, or a look-up of rows of it."""
        inputs, attrs = instruction.inputs, instruction.attrs
        if inputs.count(number) != 1 or number is None or self._program.tensors[number].type != "f32":
            return False
        if instruction.op.trait(MatrixProduct) is not None:
            return inputs[1] == number
        lookup = instruction.op.trait(Lookup)
        if lookup is None or inputs[0] != number or number in self._turns:
            return False
        axis = self._program.constant(inputs[2])
        indices = self._program.tensors[inputs[1]].shape if inputs[1] is not None else None
        batch = attrs.get(lookup.batch_dims, 0)
        return (
            axis is not None
            and axis.ravel().tolist() in ([0], [-len(self._program.tensors[number].shape or ())])
            and (batch == 0 or batch == -len(indices or ()))
        )

    def _picks(self, instruction: Instruction) -> bool:
        """Whether an instruction looks up matrices for products that read them row by row, as `pick` has it done."""
        if instruction.op.trait(Lookup) is None or not self._reads(instruction, instruction.inputs[0]):
            return False
        made = instruction.outputs[0]
        for reader in self._readers[made]:
            trait = reader.op.trait(MatrixProduct)
            if trait is None or reader.inputs.count(made) != 1:
                return False
            turned = [reader.attrs[name] for name in (trait.transpose_a, trait.transpose_b)]
            if turned != ([False, False] if reader.inputs[0] == made else [False, True]):
                return False
        return made not in self._program.results

    def _is_dense(self, instruction: Instruction) -> bool:
        """Whether weights of 16 bits are converted for an instruction: it always has many rows, or computes in bf16,
        which takes as much memory."""
        trait, shape = instruction.op.trait(MatrixProduct), self._shape(instruction.inputs[0], static=False)
        if trait is not None and instruction.op.name in self._narrow:
            return True
        if trait is None or shape is None:
            return False
        least = [(size.low or 0) if isinstance(size, Dim) else size for size in shape]
        inner = least.pop(-2 if instruction.attrs[trait.transpose_a] and len(least) > 1 else -1) if least else 1
        return prod(least) > FEW_ROWS and inner > 0

    # What they are

    def _weights(self, number: int | None) -> CompressedWeights | None:
        """What a chain of instructions makes of a constant of codes, if it makes nothing else of it."""
        if number is None:
            return None
        if number not in self._found:
            self._found[number] = None  # there are no cycles
            self._found[number] = self._constant(number) or self._made(number)
        return self._found[number]

    def _constant(self, number: int) -> CompressedWeights | None:
        if number in self._program.compressed:
            return self._program.compressed[number]
        array, type = self._program.constants.get(number), self._program.tensors[number].type
        if array is None or type not in CODES - PACKED or not array.flags.c_contiguous or not array.size:
            return None
        return CompressedWeights(type, array.reshape(-1).view(np.uint8), array.shape, array.shape)

    def _made(self, number: int) -> CompressedWeights | None:
        maker = self._makers.get(number)
        if maker is None or not maker.plain or maker.open or self._program.tensors[number].type not in FLOATS:
            return None
        function, (first, *others) = maker.function, maker.inputs or (None,)
        weights = self._weights(first)
        if function == "multiply" and weights is None:
            weights, others = self._weights(others[0]), [first]
        if weights is None:
            return None
        if maker.op.trait(Reshaping) is not None:
            shape = self._shape(number)
            if shape is None or prod(shape) != prod(weights.shape):
                return None
            plain = weights.scale is None and weights.zero is None
            return replace(weights, shape=shape, stored=shape if plain else weights.stored)
        if maker.op.trait(Converting) is not None:
            return weights if self._keeps(first, number) else None
        grouped = weights.shape == weights.stored and self._shape(number) == weights.stored
        if function not in ("subtract", "multiply") or not grouped or weights.scale is not None:
            return None
        if not broadcasts_by_numpy(maker.attrs):
            return None
        if function == "subtract" and weights.zero is not None:
            return None
        if self._program.tensors[first or 0].type not in FLOATS:  # integers wrap around
            return None
        factor = self._factor(others[0], weights.stored)
        if factor is None:
            return None
        return replace(weights, scale=factor) if function == "multiply" else replace(weights, zero=factor)

    def _keeps(self, source: int | None, target: int) -> bool:
        """Whether a conversion leaves numbers as they are, but for the rounding of scaled ones to f16 or bf16."""
        tensors = self._program.tensors
        before, after = tensors[source or 0].type, tensors[target].type
        if before in CODES - {"f16", "bf16"}:
            return True
        return after == "f32" or before == after

    def _factor(self, number: int | None, stored: tuple[int, ...]) -> Array | None:
        """A scale or zero point that broadcasts to what is stored, and is much smaller, as f32 of the same rank."""
        value = self._value(number)
        if value is None or value.ndim > len(stored) or 2 * value.size > prod(stored):
            return None
        value = np.ascontiguousarray(value, np.float32).reshape((1,) * (len(stored) - value.ndim) + value.shape)
        fits = all(size in (1, whole) for size, whole in zip(value.shape, stored, strict=True))
        return value if fits else None

    def _value(self, number: int | None) -> Array | None:
        """A constant, perhaps converted, as f32."""
        if number is None:
            return None
        type = self._program.tensors[number].type
        if number in self._program.compressed:
            return None if type == "nf4" else self._program.compressed[number].plain().astype(np.float32)
        if number in self._program.constants:
            return None if type in ("nf4", "string") else self._program.constants[number].astype(np.float32)
        maker = self._makers.get(number)
        if maker is None or maker.op.trait(Converting) is None or type not in FLOATS:
            return None
        return self._value(maker.inputs[0])

    def _shape(self, number: int | None, *, static: bool = True) -> tuple[int, ...] | None:
        tensor: Tensor | None = None if number is None else self._program.tensors[number]
        if tensor is None or tensor.shape is None or (static and not tensor.static):
            return None
        return tensor.shape  # type: ignore[return-value] # sizes that are known, if asked for
