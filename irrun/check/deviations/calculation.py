"""Conditions that are decided by calculating: with wider numbers, with rounded ones, or how much boxes overlap.

The kernel is that of the op. Where an input is not known, or the kernel takes no such numbers, they stay undecided.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irrun.check.deviations.facts import Decision, Facts
from irrun.interruption import hand_on
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import INTEGER, Array

MAX_CALCULATED = 1 << 24
"""Elements of inputs with which a kernel is called again, or of what is made of them here."""


def overflows(facts: Facts) -> Decision:
    """Whether integers leave the type of the first result."""
    type = facts.node.outputs[0].type
    wide, known = _unrounded(facts)
    if wide is None:
        return known
    limits = np.iinfo(numpy_dtype(type))
    return bool(np.any((wide > limits.max) | (wide < limits.min)))


def rounded(facts: Facts) -> Decision:
    """Whether an integer of the first result is rounded, up or down."""
    wide, known = _unrounded(facts)
    return known if wide is None else bool(np.any(_parts(wide) > 0))


def halved(facts: Facts) -> Decision:
    """Whether an integer of the first result is rounded from a number that is as far from the next one."""
    wide, known = _unrounded(facts)
    return known if wide is None else bool(np.any(_parts(wide) == 0.5))


def changed_by_rounding(facts: Facts, name: str) -> Decision:
    """Whether the first result is another one after an input has been through f16."""
    given = _given(facts)
    if given is None:
        return None
    changed = list(given)
    for _, where in facts.places(name):
        array = given[where]
        if array is not None:
            with np.errstate(over="ignore"):
                changed[where] = array.astype(np.float16).astype(array.dtype)
    before, after = _calculated(facts, given), _calculated(facts, changed)
    return None if before is None or after is None else not np.array_equal(before, after, equal_nan=True)


def overlapping(facts: Facts) -> Decision:
    """Whether two of the boxes [..., boxes, 4], given by corners, overlap by exactly iou_threshold."""
    boxes, threshold = facts.value("boxes"), facts.value("iou_threshold")
    if boxes is None or threshold is None or facts.node.attrs.get("box_encoding", "corner") != "corner":
        return None
    if boxes.size * boxes.shape[-2] > MAX_CALCULATED:
        return None
    boxes = boxes.astype(np.float32)
    low, high = np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])
    extent = np.float32(not facts.node.attrs.get("normalized", True))
    area = np.prod(high - low + extent, axis=-1)
    end = np.minimum(high[..., None, :, :], high[..., None, :])
    begin = np.maximum(low[..., None, :, :], low[..., None, :])
    shared = np.prod(np.maximum(end - begin + extent, 0), axis=-1)
    with np.errstate(all="ignore"):
        overlap = shared / (area[..., None, :] + area[..., None] - shared)
    pairs = ~np.eye(boxes.shape[-2], dtype=bool)
    return bool(np.any((overlap == np.float32(threshold)) & pairs))


def almost_a_level(facts: Facts) -> Decision:
    """Whether 0 is next to the level in the middle of all, but not on it, in every range of output_low to output_high.

    Next to it is what is an eighth of the step of 256 levels away.
    """
    low, high, levels = (facts.value(name) for name in ("output_low", "output_high", "levels"))
    if low is None or high is None:
        return None
    with np.errstate(all="ignore"):
        zero = -low.astype(np.float64) * (levels - 1) / (high.astype(np.float64) - low)
    away = np.abs(zero - levels // 2) * 256 / levels
    return bool(np.all(away < 0.125) and np.any(away > 1e-3))


def _unrounded(facts: Facts) -> tuple[Array | None, Decision]:
    """The first result if integers of the first input's type are f64; else None, and False if it has no integers."""
    type = facts.node.outputs[0].type
    if type not in INTEGER:
        return None, None if type == "dynamic" else False
    given = _given(facts)
    if not given or given[0] is None:
        return None, None
    first = given[0].dtype
    wide = [array.astype(np.float64) if array is not None and array.dtype == first else array for array in given]
    result = _calculated(facts, wide)
    return (result, None) if result is not None and result.dtype.kind == "f" else (None, None)


def _parts(numbers: Array) -> Array:
    """What the finite ones are above the integer below them."""
    finite: Array = numbers[np.isfinite(numbers)]
    return finite - np.floor(finite)


def _given(facts: Facts) -> list[Array | None] | None:
    """The inputs of the kernel, None where one of them is not known or they are too many elements."""
    arrays: list[Array | None] = []
    for number, value in enumerate(facts.layer.inputs):
        given = facts.inputs[number] if number < len(facts.inputs) else None
        if given is None and value is not None:
            tensor = facts.inference.tensor(value)
            if not tensor.known:
                return None
            given = tensor.value
        arrays.append(given)
    if sum(array.size for array in arrays if array is not None) > MAX_CALCULATED:
        return None
    return arrays + [None] * (facts.node.op.least_inputs - len(arrays))


def _calculated(facts: Facts, arrays: Sequence[Array | None]) -> Array | None:
    """The first result of the kernel, which is told that all its numbers are f64 where some are."""
    op, types = facts.node.op, facts.node.types
    if not op.context <= {"types"}:
        return None
    if any(array is not None and array.dtype == np.float64 for array in arrays):
        types = dict.fromkeys(types, "f64")
    try:
        with np.errstate(all="ignore"):
            result = op.kernel(*arrays, **facts.node.attrs, **({"types": types} if op.context else {}))
    except Exception as error:  # a kernel that takes no such numbers
        hand_on(error)
        return None
    return np.asarray(result[0] if isinstance(result, tuple | list) else result)
