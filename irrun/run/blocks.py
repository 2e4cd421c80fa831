"""Blocks of memory that runs take in turn, and the frames of the programs that have computed in them."""

from __future__ import annotations

from dataclasses import field
from threading import RLock
from typing import TYPE_CHECKING

from irrun.engines.memory import allocate, allocate_lasting
from irrun.locks import fork_safe
from irrun.records import dataclass
from irrun.spec.op import Array

if TYPE_CHECKING:
    from irrun.run.enclosure import Enclosure
    from irrun.run.frame import Frame
    from irrun.run.program import Program
    from irrun.run.specialization import Specialization

MAX_IDLE = 256
"""Turns of others after which a block goes that nobody has needed, as after many runs at once."""


@dataclass(eq=False, slots=True)
class Prepared:
    """A program, made ready for frames; `dropped` once nobody keeps it any more."""

    program: Program
    specializations: dict[int, Specialization | Enclosure]
    dropped: bool = False


@dataclass(eq=False, slots=True)
class Block:
    """Memory that one run uses at a time, and the frames of the programs that have computed in it.

    They share it because the system takes long to give memory, and less of it stays in the processor's caches. Frames
    were last `looked` through for those of programs that are not kept any more when so many had made way for others.
    It was used last in this `turn`.
    """

    memory: Array
    frames: dict[Prepared, Frame] = field(default_factory=dict)
    looked: int = 0
    turn: int = 0

    def grow(self, size: int) -> None:
        """Have room for a program of `size` bytes, with some to spare: what nobody writes to costs nothing."""
        if self.memory.nbytes < size:
            self.clear()
            self.memory = allocate_lasting(size + size // 2)

    def clear(self, *, dropped: bool = False) -> None:
        """Let go of all frames, or of those of programs that are `dropped`."""
        for prepared in [own for own in self.frames if own.dropped or not dropped]:
            self.frames.pop(prepared).close()

    def __del__(self) -> None:
        if hasattr(self, "frames"):  # what a handler of a signal raises may come before
            self.clear()


class Blocks:
    """The blocks that no run uses. Safe for threads."""

    def __init__(self) -> None:
        self._free: list[Block] = []  # the one that was released last is the last one
        self._turn = 0  # how often a block was taken
        self._dropped = 0  # how often programs made way for others
        self._lock = fork_safe(RLock())  # somebody may go, and drop programs, wherever memory is asked for

    def take(self, prepared: Prepared) -> Block:
        """A block that has a frame of a program, or else any one, which is the caller's until it is released."""
        with self._lock:
            fitting = [block for block in self._free if prepared in block.frames] or self._free[-1:]
            block = fitting[-1] if fitting else Block(allocate(0))
            if fitting:
                self._free.remove(block)
            self._turn += 1
            block.turn = self._turn
            if prepared.dropped:  # since somebody asked for it: its frame is not to outlast the turn
                block.looked = -1
        return block

    def release(self, block: Block) -> None:
        """Take back what `take` has lent."""
        with self._lock:
            if block.looked != self._dropped:
                block.clear(dropped=True)
                block.looked = self._dropped
            self._free.append(block)
            while self._free and self._turn - self._free[0].turn > MAX_IDLE:
                self._free.pop(0)

    def drop(self, prepared: Prepared) -> None:
        """Have no frame of a program that has made way for others, as blocks are released."""
        with self._lock:
            prepared.dropped = True
            self._dropped += 1
