"""What engines compute held against the ops' own kernels, layer by layer: `--engine check`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irrun.diagnostics import Diagnostic, Note
from irrun.run.computation import Computation
from irrun.run.kernels import Kernels
from irrun.run.program import Instruction
from irrun.run.session import Run
from irrun.spec.dtypes import FLOAT_FORMATS
from irrun.spec.op import Array
from irrun.spec.traits import Quantizing, Waning

DIGITS = {
    name: FLOAT_FORMATS[type].digit
    for name, type in (("float16", "f16"), ("bfloat16", "bf16"), ("float32", "f32"), ("float64", "f64"))
}
"""The relative distance of a number of each type to the next one."""

MOVED, FEW_MOVED, DRAWS = 64.0, 2.0, 8
"""Roundings that inputs are moved by, to see what an op makes of that, as a step function may make anything of it: all
numbers up or down, and then, so often, some up and some down, as what cancels in sums is not moved otherwise. Those of
16 bits are moved by fewer."""

CANCELLED = 0.25
"""Beside the results of ops that are `Waning`: engines may be off there by 1e-6, which is what is left of roundings."""

KNOWN = "oneDNN may make a number of the NaN of a product or a convolution: --engine reference shows where it goes"

STEPS, SUMS = 256.0, 64.0
FEW_STEPS, FEW_SUMS = 8.0, 4.0
"""How far results may lie apart: roundings of the number itself, or of the largest one beside it, which is what sums in
another order come to; fewer of numbers of 16 bits, whose sums are f32. Integers, booleans and what is not finite must
be equal."""


def hold(
    kernels: Kernels,
    computation: Computation,
    instruction: Instruction,
    by: str,
    given: Sequence[Array | None],
    found: Sequence[Array],
    run: Run,
) -> None:
    """Compute an instruction by its ops' kernels, too. Raises ExecutionError at the first element that differs."""
    expected = computation(given, run)
    rounded = computation.rounded or any(array is not None and array.dtype.name == "bfloat16" for array in given)
    digit = DIGITS["bfloat16"] if rounded else 0.0  # one of both may round to it in between, where the other does not
    waning = any(part.op.trait(Waning) is not None for part in instruction.parts)
    least = max(_largest_level(instruction, given), CANCELLED if waning else 0.0)
    for port, (right, array) in enumerate(zip(expected, found, strict=False)):
        wrong = differing(right, array, digit=digit, least=least)
        if wrong is None:
            continue
        spread: list[Array] = []
        for draw in range(1 + DRAWS):
            moved = [_moved(given, up, draw, digit if computation.rounded else 0.0) for up in (True, False)]
            spread += [computation(arrays, run)[port] for arrays in moved]
            wrong = differing(right, array, spread, digit, least)
            if wrong is None:
                break
        if wrong is None:  # the op itself makes as much of the rounding of its inputs, where it has steps
            continue
        raise kernels.placed(_mistake(instruction, port, by, array[wrong], right[wrong], wrong))


def _mistake(
    instruction: Instruction, port: int, by: str, found: Any, right: Any, place: tuple[int, ...]
) -> Diagnostic:
    """The diagnostic that an engine has made something else of an element than the ops' kernels."""
    layer, parts = instruction.layer, instruction.parts
    where = f" at [{', '.join(map(str, place))}]" if place else ""
    message = f"output {port} of {parts[-1].layer} is {found}{where} by the engine {by}"
    message = f"{message}, but {right} by the kernels of its ops"
    notes = [Note(f"computed together: {part.op.name}, layer {part.layer}", part.layer.span) for part in parts]
    help = f"that is a mistake in the engine {by}, not in the model: run with --engine reference, and report it"
    if by == "onednn" and instruction.posts and np.isnan(right):
        help = KNOWN
    return Diagnostic("E604", message, layer.span, layer.label, help, tuple(notes if instruction.posts else ()))


def differing(
    expected: Array,
    found: Array,
    others: Sequence[Array] = (),
    digit: float = 0.0,
    least: float = 0.0,
) -> tuple[int, ...] | None:
    """The index of the first element of `found` that is not what is expected up to rounding; None for none.

    `others` are what is as good as expected: the results for inputs that are rounded otherwise. `digit` is the
    relative distance of numbers where that is more than of the type of the result, `least` a number that is beside
    them although none of the results is as large.
    """
    if expected.shape != found.shape or expected.dtype.kind != found.dtype.kind:
        return ()
    if expected.dtype.name not in DIGITS:
        wrong = np.asarray(expected != found)
        for other in others:
            wrong &= other != found
    else:
        digit = max(digit, DIGITS[expected.dtype.name])
        right, array = expected.astype(np.float64), found.astype(np.float64)
        spread = [right, *(other.astype(np.float64) for other in others)]
        low, high = np.fmin.reduce(spread), np.fmax.reduce(spread)
        finite = np.isfinite(right)
        scale = float(np.abs(right[finite]).max(initial=least))
        steps, sums = (FEW_STEPS, FEW_SUMS) if digit >= DIGITS["float16"] else (STEPS, SUMS)
        with np.errstate(all="ignore"):
            room = digit * (steps * np.abs(right) + sums * scale) + 1e-37
            near = (array >= low - room) & (array <= high + room)
        same = (array == right) | (np.isnan(array) & np.isnan(right))
        wrong = ~np.where(finite, near, same)
    if not wrong.any():
        return None
    return tuple(int(place) for place in np.argwhere(wrong)[0])


def _largest_level(instruction: Instruction, given: Sequence[Array | None]) -> float:
    """Of quantizations, of which results are sums with the least level, however small what they come to."""
    arrays = dict(zip(instruction.operands, given, strict=True))
    limits = [
        array.astype(np.float64)
        for part in instruction.parts
        if (trait := part.op.trait(Quantizing)) is not None
        for name in trait.limits[2:]
        if (array := arrays.get(part.port(name))) is not None
    ]
    return max((float(np.abs(array[np.isfinite(array)]).max(initial=0.0)) for array in limits), default=0.0)


def _moved(arrays: Sequence[Array | None], up: bool, draw: int, least: float) -> list[Array | None]:
    """The arrays with all numbers a few roundings off, of draws behind the first one each up or down by chance. `least`
    is the relative distance of numbers where that is more than of their types."""
    moved: list[Array | None] = []
    for number, array in enumerate(arrays):
        known = None if array is None else DIGITS.get(array.dtype.name)
        if array is not None and known is not None:
            digit = max(known, least)
            signs = np.random.default_rng([draw, number]).choice([-1.0, 1.0], array.shape) if draw else 1.0
            roundings = FEW_MOVED if digit >= DIGITS["float16"] else MOVED
            array = (array * (1 + (roundings if up else -roundings) * digit * signs)).astype(array.dtype)
        moved.append(array)
    return moved
