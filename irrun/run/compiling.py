"""What engines are given of instructions and tensors, and what they make of that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import prod
from operator import mul
from typing import TYPE_CHECKING

import numpy as np

from irrun.engines.memory import allocate
from irrun.engines.work import Call, Compiled, Engine, Layout, Operand, Post, Work
from irrun.interruption import hand_on
from irrun.ir.graph import Layer
from irrun.run.program import Instruction
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array, Tensor
from irrun.spec.traits import Elementwise

if TYPE_CHECKING:
    from irrun.run.passes.setting import Taken


class EngineFailed(Exception):
    """An engine has failed on what it had made of a layer, which another one has to compute then."""

    def __init__(self, engine: str, layer: Layer, error: Exception) -> None:
        super().__init__(f"engine {engine} failed to bind layer {layer}: {error!r}")
        self.engine, self.layer = engine, layer


def warn_fallback(message: str, *details: object) -> None:
    """Note that something is computed in another way than it might be."""
    import logging  # which takes longer to load than most passes, and is hardly ever needed

    logging.getLogger("irrun").warning(message, *details)


def compile_work(engine: Engine, work: Work, instruction: Instruction) -> Compiled | None:
    """What an engine makes of a work; None where it does not take it, or fails, of which there is a note in the log."""
    try:
        return engine.compile(work)
    except Exception as error:
        hand_on(error)
        warn_fallback("engine %s failed to prepare layer %s: %r", engine.name, instruction.layer, error)
        return None


def compiled_again(work: Work, instruction: Instruction, taken: Taken) -> Compiled | None:
    """What comes of the work of one of a kind with weights of its own, perhaps the same ones."""
    pairs = [(work.inputs[at], taken.work.inputs[at]) for at in taken.weights]
    same = all(own is not None and other is not None and own.value is other.value for own, other in pairs)
    if same or taken.compiled.shared:
        return taken.compiled
    again = taken.compiled.again
    return again(work) if again is not None else compile_work(taken.engine, work, instruction)


def comes_alike(a: Compiled, b: Compiled) -> bool:
    """Whether two works that were compiled want and give the same."""
    return (a.wants, a.gives, a.taken, a.coded) == (b.wants, b.gives, b.taken, b.coded)


def work_of(instruction: Instruction, operands: Sequence[Operand | None], outputs: Sequence[Operand]) -> Work:
    """An instruction as engines see it; `operands` are those of `Instruction.operands`."""
    posts: list[Post] = []
    made, position = instruction.outputs[0], len(instruction.inputs)
    for post in instruction.posts:
        trait = post.op.trait(Elementwise)
        arity = 1 if trait is None else trait.arity
        post_ = Post(post.op.name, post.attrs)
        if arity > 1 and len(post.inputs) > 1 and post.inputs[1] is not None:
            post_.operand, post_.reflected = position, post.inputs[0] != made
            position += 1
        count = sum(number is not None for number in post.inputs[arity:])
        post_.parameters = tuple(range(position, position + count))
        position += count
        posts.append(post_)
        made = post.outputs[0]
    return Work(instruction.op.name, instruction.attrs, list(operands), list(outputs), posts)


def dense_operand(tensor: Tensor) -> Operand:
    """A tensor of known shape in C order."""
    return Operand(tensor.type, static_shape(tensor), strides_of(tensor))


def static_shape(tensor: Tensor) -> tuple[int, ...]:
    """The shape of a tensor whose sizes are known."""
    return tensor.shape or ()  # type: ignore[return-value] # which are no `Dim`


def strides_of(tensor: Tensor) -> tuple[int, ...]:
    """Those that numpy gives an array in C order."""
    if 0 in static_shape(tensor):
        return (0,) * len(static_shape(tensor))
    steps = accumulate(reversed(static_shape(tensor)[1:]), mul, initial=numpy_dtype(tensor.type).itemsize)
    return tuple(steps)[::-1] if tensor.shape else ()


def room(operand: Operand, layout: Layout | None, take: Callable[[int], Array] = allocate) -> Array:
    """Memory that is taken for a tensor in a layout, or in C order."""
    dtype = numpy_dtype(operand.type)
    if layout is None:
        return np.ndarray(operand.shape, dtype, take(prod(operand.shape) * dtype.itemsize))
    memory = take(layout.nbytes)
    return memory if layout.strides is None else np.ndarray(operand.shape, dtype, memory, strides=layout.strides)


def reordering(engine: Engine, operand: Operand, layout: Layout | None, source: Array, target: Array) -> Call:
    """A call that brings a tensor from where it lies into another layout, or into C order."""
    compiled = engine.reorder(operand, layout)
    return compiled.bind([source], [target], allocate(compiled.scratch) if compiled.scratch else None)
