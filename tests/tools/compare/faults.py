"""Faults that devices have, as functions that plant one in the result of a layer."""

from __future__ import annotations

import numpy as np

from irrun.tools.compare.observed import Earlier
from tools.compare.planted import F32, normal


def wide_axis(array, chance, least=3):
    axes = [axis for axis, size in enumerate(array.shape) if size >= least]
    return int(chance.choice(axes)) if axes else None


def varied(array):
    return array.size >= 8 and len(np.unique(array)) > array.size / 3


def scale(layer, right, chance):
    factor = float(chance.choice([1 / 255, 1 / 8, 2.0, 255.0, -1.0, 0.5]))
    return right * F32(factor), {}, {}


def odd_scale(layer, right, chance):
    return (right * F32(chance.uniform(1.2, 3)), {}, {}) if varied(right) else None


def offset(layer, right, chance):
    return (right + F32(right.std() * chance.uniform(0.5, 3)), {}, {}) if varied(right) else None


def scale_and_offset(layer, right, chance):
    return (right * F32(1.7) + F32(right.std() + 1), {}, {}) if varied(right) else None


def normalized_by_channel(layer, right, chance):
    if right.ndim < 3 or right.shape[1] < 2 or not varied(right) or right.size // right.shape[1] < 8:
        return None
    size = (1, right.shape[1], *[1] * (right.ndim - 2))
    return right * chance.uniform(0.3, 3, size).astype(F32) + chance.normal(size=size).astype(F32), {}, {}


def transposed(layer, right, chance):
    if right.ndim < 2 or not varied(right):
        return None
    order = chance.permutation(right.ndim)
    return np.ascontiguousarray(right.transpose(order).reshape(right.shape)), {}, {}


def channels_last(layer, right, chance):
    if right.ndim != 4 or not varied(right):
        return None
    n, c, h, w = right.shape
    return np.ascontiguousarray(right.reshape(n, h, w, c).transpose(0, 3, 1, 2)), {}, {}


def reversed_channels(layer, right, chance):
    axis = wide_axis(right, chance, 2)
    return None if axis is None or not varied(right) else (np.flip(right, axis).copy(), {}, {})


def slices_shuffled(layer, right, chance):
    axis = wide_axis(right, chance, 5)
    if axis is None or right.ndim < 2 or not varied(right):
        return None
    order = chance.permutation(right.shape[axis])
    return np.take(right, order, axis), {}, {}


def elements_shuffled(layer, right, chance):
    return (
        (chance.permutation(right.ravel()).reshape(right.shape), {}, {}) if varied(right) and right.size > 20 else None
    )


def other_shape(layer, right, chance):
    if right.ndim < 2 or len(set(right.shape)) < 2 or not varied(right):
        return None
    order = np.roll(np.arange(right.ndim), 1)
    moved = right.transpose(order)
    return None if moved.shape == right.shape else (moved.copy(), {}, {})


def slice_wrong(layer, right, chance):
    axis = wide_axis(right, chance, 3)
    if axis is None or not varied(right) or right.ndim < 2:
        return None
    wrong = right.copy()
    place = (slice(None),) * axis + (int(chance.integers(right.shape[axis])),)
    wrong[place] = normal(chance, wrong[place].shape) + 3 * right.std() + 10
    return wrong, {}, {}


def box_wrong(layer, right, chance):
    if right.ndim < 2 or min(right.shape) < 3 or not varied(right):
        return None
    wrong = right.copy()
    place = tuple(slice(low, low + 2) for low in chance.integers(0, np.array(right.shape) - 1))
    wrong[place] += (5 + chance.uniform(1, 2, wrong[place].shape) * right.std()).astype(F32)
    return wrong, {}, {}


def other_rows(layer, right, chance):
    if right.ndim < 2 or right.shape[-2] < 6 or not varied(right):
        return None
    wrong = right.copy()
    wrong[..., 1::2, :] = 0
    return wrong, {}, {}


def tail_wrong(layer, right, chance):
    if right.shape[-1:] < (9,) or not varied(right):
        return None
    wrong = right.copy()
    wrong[..., 8:] = F32(7 + 3 * right.max())
    return wrong, {}, {}


def shift(layer, right, chance):
    axis = wide_axis(right, chance, 4)
    if axis is None or not varied(right) or right.size < 8:
        return None
    wrong = np.roll(right, 1, axis)
    edge = (slice(None),) * axis + (slice(0, 1),)
    wrong[edge] = 0
    return wrong, {}, {}


def index_off(layer, right, chance):
    if layer.op.type != "Gather":
        return None
    changed = [layer.inputs[0], layer.inputs[1] + 1, layer.inputs[2]]
    return layer.compute(changed)[0], {}, {}


def swapped(layer, right, chance):
    a, b = layer.inputs[:2] if len(layer.inputs) > 1 else (None, None)
    if b is None or a.shape != b.shape or layer.op.type in ("Add",):
        return None
    return layer.compute([b, a, *layer.inputs[2:]])[0], {}, {}


def read_twice(layer, right, chance):
    if len(layer.inputs) != 2 or layer.inputs[0].shape != layer.inputs[1].shape or layer.op.type == "Subtract":
        return None
    return layer.compute([layer.inputs[0], layer.inputs[0]])[0], {}, {}


def other_weights(layer, right, chance):
    if not layer.constants:
        return None
    number = min(layer.constants)
    changed = list(layer.inputs)
    changed[number] = changed[number] + normal(chance, changed[number].shape)
    return layer.compute(changed)[0], {}, {"constants": {number: changed[number]}}


def weights_transposed(layer, right, chance):
    number = min(layer.constants, default=None)
    if number is None or layer.inputs[number].ndim < 2:
        return None
    array = layer.inputs[number]
    changed = list(layer.inputs)
    changed[number] = np.ascontiguousarray(np.swapaxes(array, -1, -2)).reshape(array.shape)
    return layer.compute(changed)[0], {}, {}


def stale(layer, right, chance):
    old = normal(chance, right.shape)
    return (old, {}, {"earlier": [Earlier("step 0", old)]}) if right.size > 1 else None


def old_state(layer, right, chance):
    changed = list(layer.inputs)
    number = len(changed) - 1 if changed[-1].dtype == F32 else 0
    changed[number] = normal(chance, changed[number].shape)
    before = Earlier("step 1", normal(chance, right.shape), changed)
    return layer.compute(changed)[0], {}, {"earlier": [before]}


def random(layer, right, chance):
    found = right + normal(chance, right.shape) * (1 + right.std())
    return found, {}, {"repeated": found + (1 + np.abs(found)) * chance.uniform(1, 2, right.shape).astype(F32)}


def nan_born(layer, right, chance):
    wrong = right.copy()
    wrong.flat[chance.integers(right.size)] = np.nan
    return wrong, {}, {}


def fused(layer, right, chance):
    return right + 1 + right.std() * normal(chance, right.shape), {}, {"tapped": right}


def known(layer, right, chance):
    found = right + 1 + right.std() * normal(chance, right.shape)
    return found, {}, {"deviations": lambda *_: [("rounds down", "the page leaves it open", "")]}


def garbage(layer, right, chance):
    return (right.mean() + (1 + right.std()) * normal(chance, right.shape), {}, {}) if right.size > 20 else None


def by_pass(layer, right, chance):
    found = garbage(layer, right, chance)
    return found and (found[0], {}, {"pass_name": "ov::pass::Fusing"})


def unwritten(layer, right, chance):
    return (np.zeros_like(right), {}, {}) if varied(right) else None


def rectified(layer, right, chance):
    some = varied(right) and (right < 0).sum() > 1 and np.median(right) > 0
    return (np.maximum(right, 0), {}, {}) if some else None


FAULTS = {
    scale: {"N205", "N211"},  # a difference that is negated is one of swapped inputs, too
    odd_scale: {"N205"},
    offset: {"N205"},
    scale_and_offset: {"N205"},
    normalized_by_channel: {"N205"},
    transposed: {"N204"},
    channels_last: {"N204"},
    reversed_channels: {"N204"},
    slices_shuffled: {"N204"},
    elements_shuffled: {"N204"},
    other_shape: {"N204"},
    slice_wrong: {"N206"},
    box_wrong: {"N206"},
    other_rows: {"N206"},
    tail_wrong: {"N206"},
    shift: {"N207"},
    index_off: {"N207"},
    swapped: {"N211"},
    read_twice: {"N211"},
    other_weights: {"N212"},
    weights_transposed: {"N212"},
    stale: {"N210"},
    old_state: {"N210"},
    random: {"N209"},
    nan_born: {"N201"},
    fused: {"N214"},
    known: {"N104"},
    garbage: {"N299"},
    by_pass: {"N215"},
    unwritten: {"N219", "N211"},  # a difference of equal inputs is 0, too
    rectified: {"N220"},
}
"""Each fault, and what may be said of it."""
