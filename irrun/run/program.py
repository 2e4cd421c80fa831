"""A program: a plan for known shapes, each step given to what computes it, in memory laid out beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from irrun.engines.work import Compiled, Engine, Layout
from irrun.run.arena import Buffer
from irrun.run.plan import Plan, Step
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array

KERNEL = "kernel"
VIEW = "view"
"""What computes a unit that no engine takes: the op's own kernel, in every run or once for a view of fixed memory."""


RunStep = Callable[[Step, list[Array | None]], list[Array]]
"""Runs a step by its op's own kernel: (step, inputs) to outputs."""

CheckStep = Callable[[Step, list[Array | None]], None]
"""Asks the rule of a step's op about these inputs. Raises ExecutionError where they break it."""


@dataclass(slots=True)
class Slot:
    """A tensor of a program. `shape` is None where only a run tells.

    `root` is the slot whose memory it looks at, itself unless it is a view; that takes `nbytes`, in C order unless
    there are `strides`. With a `layout` of `engine` it is a vector of bytes. `template` is an array like the one that
    it will be, while the program is made.
    """

    type: str
    shape: tuple[int, ...] | None
    root: int
    constant: Array | None = None
    template: Array | None = None
    layout: Layout | None = None
    engine: Engine | None = None
    nbytes: int = 0
    strides: tuple[int, ...] | None = None

    def lay(self, layout: Layout | None, engine: Engine) -> None:
        """Note that its memory is laid out otherwise than in C order."""
        if layout is None:
            return
        if layout.strides is None:
            self.layout, self.engine = layout, engine
        else:
            memory = np.empty(layout.nbytes, np.uint8)
            self.strides = layout.strides
            self.template = np.ndarray(self.shape or (), numpy_dtype(self.type), memory, strides=layout.strides)
        self.nbytes = layout.nbytes


@dataclass(slots=True)
class Unit:
    """One or more layers that are computed by one call of `by`: the name of an engine, `KERNEL` or `VIEW`.

    `checked` says that the rule of the first one must be asked again in each run, before an engine computes.
    """

    steps: Sequence[Step]
    inputs: Sequence[int]
    outputs: Sequence[int]
    by: str
    compiled: Compiled | None = None
    frees: Sequence[int] = ()
    checked: bool = False


@dataclass(slots=True)
class Program:
    """`fixed` are the slots whose arrays lie in the `size` bytes of a `Workspace`; the others change in each run.

    `borrowed` are the results that may share memory with that, or with a parameter, a constant or the state. A program
    is `open` where a kernel gives what only the run knows the size of.
    """

    plan: Plan
    units: list[Unit]
    slots: list[Slot]
    results: list[int]
    borrowed: set[int]
    fixed: dict[int, Buffer]
    size: int
    scratch: int
    open: bool
