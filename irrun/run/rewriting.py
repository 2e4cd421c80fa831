"""Plans in another form that computes the same with less: element-wise ops before transpositions, pads in convolutions.

Models that were made with the channels last have a transposition on both sides of every convolution. One in front of an
element-wise op, a mean or a pad changes place with it, until those stand at the convolution and can be fused with it;
the transpositions that are left are views. So do reshapes with functions of each element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from irrun.run.fusion import BINARY, UNARY, closed
from irrun.run.plan import Plan, Step
from irrun.spec.op import Array, Tensor

_CONVOLUTIONS = ("Convolution-1", "GroupConvolution-1")

_RESHAPES = ("Reshape-1", "Squeeze-1", "Squeeze-15", "Unsqueeze-1")
_PADS = ("pads_begin", "pads_end")

Axes = tuple[int, ...]


def rewritten(plan: Plan) -> Plan:
    """The plan that a program is made of; its results are those of `plan` up to rounding."""
    rewriter = _Rewriter(list(plan.slots))
    for step in plan.steps:
        rewriter.add(step)
    return replace(plan, slots=rewriter.slots, steps=_used(rewriter.steps, plan.results))


def _used(steps: list[Step], results: list[int]) -> list[Step]:
    """The steps without those that nothing reads any more."""
    read = set(results)
    kept = []
    for step in reversed(steps):
        if not closed(step) or not read.isdisjoint(step.outputs):
            kept.append(step)
            read.update(step.inputs)
    return kept[::-1]


@dataclass(slots=True)
class _Rewriter:
    """Steps in order; `makers` has the one that made each slot."""

    slots: list[Array | None]
    steps: list[Step] = field(default_factory=list)
    makers: dict[int, Step] = field(default_factory=dict)

    def add(self, step: Step) -> None:
        for rule in (self._padded_convolution, self._transposed_pad, self._mean, self._elementwise, self._reshaped):
            if closed(step) and rule(step):
                return
        self._append(step)

    def _append(self, step: Step) -> None:
        self.steps.append(step)
        self.makers.update(dict.fromkeys(step.outputs, step))

    def _slot(self, constant: Array | None = None) -> int:
        self.slots.append(constant)
        return len(self.slots) - 1

    def _transposition(self, slot: int) -> tuple[Step, Axes] | None:
        """The transposition that made a slot, and its order of axes."""
        maker = self.makers.get(slot)
        if maker is None or maker.node.op.name != "Transpose-1" or not closed(maker):
            return None
        order = self.slots[maker.inputs[1]]
        if order is None:
            return None
        rank = len(maker.shapes[0] or ())
        return maker, tuple(order.tolist()) if order.size else tuple(reversed(range(rank)))

    def _transposed(self, step: Step, inputs: Mapping[int, int], maker: Step, order: Axes) -> None:
        """Add `step` as it is before the transposition `maker`, of this `order`, and that behind it.

        `inputs` replaces slots; the shape of what it gives is that of its result with the axes put back.
        """
        (result,) = step.node.outputs
        assert result.shape is not None
        before = Tensor(result.type, tuple(result.shape[axis] for axis in np.argsort(order)))
        slots = tuple(inputs.get(number, number) for number in step.inputs)
        self._behind(step, slots, self._shapes(step, slots), before, maker)

    def _behind(self, step: Step, slots: Axes, shapes: tuple[Any, ...], before: Tensor, maker: Step) -> None:
        """Add `step` on other inputs, so that it gives `before`, and then `maker`, which makes the result of that."""
        slot = self._slot()
        self.add(_changed(step, slots, (slot,), shapes, before))
        shapes = (before.shape, *maker.shapes[1:])
        self._append(_changed(maker, (slot, *maker.inputs[1:]), step.outputs, shapes, step.node.outputs[0]))

    def _shapes(self, step: Step, slots: Axes) -> tuple[Any, ...]:
        return tuple(
            constant.shape if (constant := self.slots[slot]) is not None else self._shape(slot, given)
            for slot, given in zip(slots, step.shapes, strict=True)
        )

    def _shape(self, slot: int, given: Any) -> Any:
        maker = self.makers.get(slot)
        return given if maker is None else maker.node.outputs[maker.outputs.index(slot)].shape

    def _elementwise(self, step: Step) -> bool:
        """An op whose inputs are transpositions of one order, and constants."""
        name = step.node.op.name
        if name not in UNARY | BINARY or name == "PReLU-1" or step.node.attrs.get("auto_broadcast") == "pdpd":
            return False
        found = {slot: self._transposition(slot) for slot in step.inputs}
        orders = {transposition[1] for transposition in found.values() if transposition}
        shape = step.node.outputs[0].shape
        if len(orders) != 1 or shape not in (
            given for given, slot in zip(step.shapes, step.inputs, strict=True) if found[slot]
        ):
            return False
        (order,) = orders
        inputs = {}
        for slot, transposition in found.items():
            constant = self.slots[slot]
            if transposition is not None:
                maker = transposition[0]
                inputs[slot] = maker.inputs[0]
            elif constant is not None and constant.ndim <= len(order):
                full = constant.reshape((1,) * (len(order) - constant.ndim) + constant.shape)
                inputs[slot] = self._slot(full.transpose(np.argsort(order)))
            else:
                return False
        self._transposed(step, inputs, maker, order)
        return True

    def _reshaped(self, step: Step) -> bool:
        """A function of the elements of a reshaped tensor, which is reshaped behind it instead."""
        maker = self.makers.get(step.inputs[0])
        if step.node.op.name not in UNARY or len(step.inputs) > 1 or maker is None or not closed(maker):
            return False
        if maker.node.op.name not in _RESHAPES or maker.shapes[0] is None:
            return False
        before = Tensor(step.node.outputs[0].type, maker.shapes[0])
        self._behind(step, maker.inputs[:1], maker.shapes[:1], before, maker)
        return True

    def _mean(self, step: Step) -> bool:
        """A mean over axes of a transposition that leaves the other axes in their order, or keeps its rank."""
        if step.node.op.name != "ReduceMean-1":
            return False
        transposition, axes = self._transposition(step.inputs[0]), self.slots[step.inputs[1]]
        if transposition is None or axes is None:
            return False
        maker, order = transposition
        reduced = [order[axis] for axis in axes.ravel().tolist()]
        inputs = {step.inputs[0]: maker.inputs[0], step.inputs[1]: self._slot(np.array(reduced, axes.dtype))}
        left = [axis for axis in order if axis not in reduced]
        if step.node.attrs["keep_dims"]:
            self._transposed(step, inputs, maker, order)
        elif left == sorted(left):
            slots = tuple(inputs[slot] for slot in step.inputs)
            self._append(_changed(step, slots, step.outputs, self._shapes(step, slots), step.node.outputs[0]))
        else:
            return False
        return True

    def _transposed_pad(self, step: Step) -> bool:
        """A transposition of a pad, which comes before the pad instead."""
        maker = self.makers.get(step.inputs[0]) if step.node.op.name == "Transpose-1" else None
        if maker is None or not self._zero_pad(maker):
            return False
        order = self.slots[step.inputs[1]]
        shape = maker.shapes[0]
        if order is None or not order.size or shape is None:
            return False
        moved = tuple(shape[axis] for axis in order.tolist())
        (result,) = step.node.outputs
        between = self._slot()
        transposed = Tensor(result.type, moved)
        self._append(_changed(step, (maker.inputs[0], step.inputs[1]), (between,), (shape, step.shapes[1]), transposed))
        pads = [self._slot(constant[order]) for slot in maker.inputs[1:3] if (constant := self.slots[slot]) is not None]
        slots = (between, *pads, *maker.inputs[3:])
        self._append(_changed(maker, slots, step.outputs, (moved, *maker.shapes[1:]), result))
        return True

    def _padded_convolution(self, step: Step) -> bool:
        """A convolution of data that are padded with zeros along its spatial axes: its own padding does that."""
        if step.node.op.name not in _CONVOLUTIONS or step.node.attrs["auto_pad"] not in ("explicit", "valid"):
            return False
        maker = self.makers.get(step.inputs[0])
        if maker is None or not self._zero_pad(maker):
            return False
        begins, ends = (np.asarray(self.slots[slot]).tolist() for slot in maker.inputs[1:3])
        if any((*begins[:2], *ends[:2])):
            return False
        attrs = dict(step.node.attrs)
        own = {name: attrs[name] if attrs["auto_pad"] == "explicit" else (0,) * (len(begins) - 2) for name in _PADS}
        attrs["auto_pad"] = "explicit"
        for name, more in zip(_PADS, (begins, ends), strict=True):
            attrs[name] = tuple(a + b for a, b in zip(own[name], more[2:], strict=True))
        slots, shapes = (maker.inputs[0], *step.inputs[1:]), (maker.shapes[0], *step.shapes[1:])
        self._append(_changed(step, slots, step.outputs, shapes, step.node.outputs[0], attrs=attrs))
        return True

    def _zero_pad(self, step: Step) -> bool:
        """Whether a step pads with zeros, on all sides that it pads at all."""
        if not step.node.op.name.startswith("Pad-") or not closed(step) or step.node.attrs["pad_mode"] != "constant":
            return False
        constants = [self.slots[slot] if slot >= 0 else np.zeros(1) for slot in step.inputs[1:]]
        if any(constant is None for constant in constants) or len(constants) < 2:
            return False
        begins, ends, *fill = (np.asarray(constant) for constant in constants)
        return bool((begins >= 0).all() and (ends >= 0).all()) and not any(value.any() for value in fill)


def _changed(
    step: Step,
    inputs: tuple[int, ...],
    outputs: tuple[int, ...],
    shapes: tuple[Any, ...],
    result: Tensor,
    attrs: Mapping[str, Any] | None = None,
) -> Step:
    """The step with other inputs and outputs, and perhaps with other attributes."""
    kernel: Callable[..., Any] = step.kernel
    node = replace(step.node, outputs=[Tensor(result.type, result.shape)])
    if attrs is not None:
        node, kernel = replace(node, attrs=dict(attrs)), partial(step.node.op.kernel, **attrs)
    return replace(step, node=node, kernel=kernel, inputs=inputs, outputs=outputs, shapes=shapes)
