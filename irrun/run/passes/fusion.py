"""Fuse: element-wise instructions that take the result of another one, and nothing else does, become its posts.

What makes codes of the result comes last in such a chain. An engine gets the whole chain offered, and may take less of
it. So a convolution is fused with its bias, the activation behind it and the sum with a residual, and a chain of
element-wise ops goes over memory once. Where two meet, what is not element-wise goes on.

Expects a program without posts; leaves one in which each stands where its last post was. A post changes neither the
type, unless it makes codes, nor the shape of the result, also where sizes are unknown but provably equal; but
conversions between f32 and bf16 of known sizes are posts, too. What a chain has in between is not rounded to 16 bits,
so there is none behind such a result where the model is taken at its word. Where somebody looks at the tensors all of
them are made, and nothing is fused.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from irrun.run.internal_ops import DEQUANTIZE, QUANTIZE
from irrun.run.passes.setting import Setting
from irrun.run.program import Instruction, Program
from irrun.spec.dims import same
from irrun.spec.traits import Converting, Elementwise, broadcasts_by_numpy

ROUNDED = {"f32", "bf16"}
"""Types that engines compute in together: sums are those of f32 in both."""

MAX_POSTS = 12
"""Element-wise ops in one chain; a longer one goes on in a next one."""


def fuse(program: Program, setting: Setting) -> Program:
    if not setting.transforms:
        return program
    readers: Counter[int | None] = Counter(program.results)
    reader: dict[int | None, int] = {}
    for position, instruction in enumerate(program.instructions):
        for number in instruction.inputs:
            readers[number] += 1
            reader[number] = position
    fused: dict[int, Instruction] = {}
    taken: set[int] = set()
    heads = sorted(enumerate(program.instructions), key=lambda each: _is_elementwise(each[1]))
    for position, instruction in heads:
        if position in taken:
            continue
        posts: list[Instruction] = []
        last = position
        while len(posts) < MAX_POSTS and _leads(posts[-1] if posts else instruction, instruction, program):
            result = (posts[-1] if posts else instruction).outputs[0]
            follower = reader.get(result)
            if readers[result] != 1 or follower is None or follower in taken:
                break
            if not _follows(program.instructions[follower], result, program):
                break
            if setting.literal and program.tensors[result].type in ROUNDED - {"f32"}:
                break  # what is in between would not be rounded
            posts.append(program.instructions[follower])
            taken.add(follower)
            last = follower
        fused[last] = instruction.changed(posts=tuple(posts)) if posts else instruction
    return replace(program, instructions=[fused[position] for position in sorted(fused)])


def _is_elementwise(instruction: Instruction) -> bool:
    """Whether an instruction goes over memory to do what products and convolutions do in registers, as their post."""
    return instruction.op.trait(Elementwise) is not None


def _leads(last: Instruction, head: Instruction, program: Program) -> bool:
    """Whether something may be done to the result of `last`, in the chain of `head`, right away."""
    return (
        last.plain
        and last.op is not QUANTIZE
        and head.op is not DEQUANTIZE
        and not head.op.view_of
        and len(last.outputs) == 1
        and (made := program.tensors[last.outputs[0]]).numeric
        and made.shape is not None
    )


def _follows(post: Instruction, result: int, program: Program) -> bool:
    """Whether `post` can be done to each element of a result."""
    if post.op.trait(Converting) is not None:
        return _is_rounding(post, program)
    trait = post.op.trait(Elementwise)
    if trait is None or not post.plain or len(post.outputs) != 1:
        return False
    connected = [number for number in post.inputs if number is not None]
    if len(connected) < trait.arity or trait.arity > 2 or not broadcasts_by_numpy(post.attrs):
        return False
    if any(number not in program.constants for number in connected[trait.arity :]):
        return False
    if trait.broadcast != "numpy" and post.inputs[0] != result:
        return False
    given, made = program.tensors[result], program.tensors[post.outputs[0]]
    if post.open and made.static:  # its rule has to see the data
        return False
    if (
        (given.type != made.type and post.op is not QUANTIZE)
        or given.shape is None
        or made.shape is None
        or len(given.shape) != len(made.shape)
    ):
        return False
    return all(same(a, b) for a, b in zip(given.shape, made.shape, strict=True))


def _is_rounding(post: Instruction, program: Program) -> bool:
    """Whether `post` converts between f32 and bf16, sizes known."""
    given, made = (program.tensors[number] for number in (post.inputs[0], post.outputs[0]) if number is not None)
    return post.plain and made.static and {given.type, made.type} == ROUNDED
