"""The passes that make a program, in order. Each is a module, which states what it expects and what it leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from irrun.run.passes.assignment import assign
from irrun.run.passes.attending import attend
from irrun.run.passes.compression import compress
from irrun.run.passes.dropping import drop
from irrun.run.passes.enclosing import enclose
from irrun.run.passes.folding import fold
from irrun.run.passes.fusion import fuse
from irrun.run.passes.grouping import group
from irrun.run.passes.growing import grow
from irrun.run.passes.inlining import inline
from irrun.run.passes.narrowing import narrow
from irrun.run.passes.normalizing import normalize
from irrun.run.passes.picking import pick
from irrun.run.passes.planning import plan_memory
from irrun.run.passes.pruning import prune
from irrun.run.passes.quantization import quantize
from irrun.run.passes.rewriting import rewrite
from irrun.run.passes.separating import separate
from irrun.run.passes.setting import Setting
from irrun.run.passes.shortening import shorten
from irrun.run.program import Instruction, Program

Pass = Callable[[Program, Setting], Program]

PASSES: tuple[Pass, ...] = (
    compress,
    narrow,
    fold,
    separate,
    inline,
    drop,
    rewrite,
    quantize,
    attend,
    group,
    normalize,
    pick,
    prune,
    enclose,
    grow,
    fuse,
    assign,
    shorten,
    plan_memory,
)
"""Behind `build`, for what the model declares of its inputs, and again for their shapes when these are known."""

_FIRST_TO_PLACE = PASSES.index(assign)
"""Those before say what is computed, also for sizes that are open; from here on by whom and where."""


def prepare(program: Program, setting: Setting) -> Program:
    """Raises ExecutionError where the program takes more memory than it may.

    Bodies are prepared for what the model declares here; for the shapes of a run, when that comes to them.
    """
    if setting.shapes is None:
        instructions = [_with_bodies(instruction, setting) for instruction in program.instructions]
        program = replace(program, instructions=instructions)
    return place(decide(program, setting), setting)


def decide(program: Program, setting: Setting) -> Program:
    """What is computed."""
    for step in PASSES[:_FIRST_TO_PLACE]:
        program = step(program, setting)
    return program


def place(program: Program, setting: Setting) -> Program:
    """A program that is decided, ready for frames. Raises ExecutionError where it takes more memory than it may."""
    for step in PASSES[_FIRST_TO_PLACE:]:
        program = step(program, setting)
    return program


def _with_bodies(instruction: Instruction, setting: Setting) -> Instruction:
    bodies = {name: (body, prepare(program, setting)) for name, (body, program) in instruction.bodies.items()}
    return instruction.changed(bodies=bodies)
