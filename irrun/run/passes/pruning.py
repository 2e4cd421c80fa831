"""Prune: instructions whose results nobody reads are left out, and constants that only they have read.

Expects a program whose memory is not planned; leaves one in which every tensor that is made is read, is a result, or
comes with one that is. Where somebody looks at the run, what is settled is looked at with what it was read of.
"""

from __future__ import annotations

from dataclasses import replace

from irrun.run.passes.setting import Setting
from irrun.run.program import Program


def prune(program: Program, setting: Setting) -> Program:
    read: set[int | None] = {*program.results, *(n for instruction in program.settled for n in instruction.inputs)}
    kept = []
    for instruction in reversed(program.instructions):
        if instruction.effects or not read.isdisjoint(instruction.results):
            kept.append(instruction)
            read.update(instruction.operands)
    read.update(number for instruction in program.settled for number in instruction.results)
    constants = {number: array for number, array in program.constants.items() if number in read}
    compressed = {number: weights for number, weights in program.compressed.items() if number in read}
    return replace(program, instructions=kept[::-1], constants=constants, compressed=compressed)
