"""The passes that make a program, in order. Each is a module, which states what it expects and what it leaves."""

from __future__ import annotations

from collections.abc import Callable

from irrun.run.passes.assignment import assign
from irrun.run.passes.folding import fold
from irrun.run.passes.fusion import fuse
from irrun.run.passes.planning import plan_memory
from irrun.run.passes.pruning import prune
from irrun.run.passes.rewriting import rewrite
from irrun.run.passes.setting import Setting
from irrun.run.program import Program

Pass = Callable[[Program, Setting], Program]

PASSES: tuple[Pass, ...] = (fold, rewrite, prune, fuse, assign, plan_memory)
"""Behind `build`, for what the model declares of its inputs, and again for their shapes when these are known."""


def prepare(program: Program, setting: Setting) -> Program:
    """Raises ExecutionError where the program takes more memory than it may."""
    for step in PASSES:
        program = step(program, setting)
    return program
