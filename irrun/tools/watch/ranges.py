"""Ranges: the first tensor of a run that has numbers beyond a range although what its layer has read has none.

Numbers leave a range as NaN, as infinity, and as what is larger than the range. What is there on purpose is none of
that: infinities and numbers too large that a layer has read, be it of a constant or an input such as a mask, are its
results' own; and -inf among nothing but zeros is taken for a mask of scores. NaN that no input has is always found,
also where an input that is no mask has infinities, which is told then if nothing else is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from math import inf, isfinite

import numpy as np

from irrun.check.finite import not_finite
from irrun.diagnostics import Diagnostic, Note
from irrun.ir.graph import Layer, Model, Value
from irrun.ir.signature import names_of
from irrun.records import dataclass
from irrun.run.session import Event, Fused
from irrun.spec.dtypes import element_type
from irrun.spec.op import Array
from irrun.spec.patterns import shape_text
from irrun.tools.watch.blocks import FLUSHED_BF16, FLUSHED_F16, LARGEST_F16
from irrun.tools.watch.statistics import Statistics, measured

FINITE, RANGE = "E607", "E608"
"""The codes of what is found: what is not finite, and what is beyond a narrower range."""

BF16_OVERFLOWS = (2 - 2.0**-8) * 2.0**127
"""From here on bf16 rounds to infinity; its largest number lies below."""

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Range:
    """The finite numbers up to `most` in magnitude; what is not more than `flushed` becomes 0 in the type `name`."""

    name: str = ""
    most: float = inf
    flushed: float = 0.0

    def has(self, array: Array) -> bool:
        """Whether all numbers of an array are in it, by the quickest way to look at them."""
        numbers = _numbers(array)
        if numbers is None or not numbers.size:
            return True
        if numbers.flags.c_contiguous and numbers.dtype == np.float32:
            flat = numbers.reshape(-1)
            squares = float(np.dot(flat, flat))  # as quick as one pass can be
            if squares < self.most**2 if self.most < 1e19 else isfinite(squares):
                return True
        least, most = numbers.min(), numbers.max()
        return bool(np.isfinite(least) and np.isfinite(most) and most <= self.most and least >= -self.most)

    def flushes(self, array: Array) -> int:
        """How many numbers but 0 become 0."""
        numbers = _numbers(array)
        if numbers is None or not numbers.size:
            return 0
        count = 0
        flat = np.ascontiguousarray(numbers).reshape(-1)
        for begin in range(0, flat.size, _CHUNK):
            magnitudes = np.abs(flat[begin : begin + _CHUNK])
            count += int(np.count_nonzero(magnitudes <= self.flushed)) - int(np.count_nonzero(magnitudes == 0))
        return count


RANGES = {
    "f16": Range("f16", LARGEST_F16, FLUSHED_F16),
    "bf16": Range("bf16", np.nextafter(BF16_OVERFLOWS, 0), FLUSHED_BF16),
}

EVERYTHING = Range()
"""The range of what is finite."""


def _numbers(array: Array) -> Array | None:
    """The array as floats that numpy knows; None where its elements are none."""
    if array.dtype.kind == "f":
        return array
    if array.dtype.kind in "biuU" or element_type(array.dtype)[0] in "iu":
        return None
    return array.astype(np.float32)


@dataclass(slots=True)
class _State:
    """What of an array is beyond a range."""

    nan: int = 0
    infinite: int = 0
    beyond: int = 0
    masks: bool = False
    place: str = ""
    statistics: Statistics | None = None

    def __bool__(self) -> bool:
        return bool(self.nan or self.infinite or self.beyond)


def _state(array: Array, range: Range) -> _State:
    numbers = None if range.has(array) else _numbers(array)
    if numbers is None:
        return _State()
    statistics, _ = measured(numbers)
    beyond = np.abs(numbers) > range.most if range.most < inf else np.zeros(numbers.shape, bool)
    state = _State(statistics.nan, statistics.infinite, statistics=statistics)
    state.beyond = int(np.count_nonzero(beyond)) - (state.infinite if range.most < inf else 0)
    finite = statistics.count - state.nan - state.infinite
    state.masks = state.infinite == statistics.negative_infinite > 0 and finite == statistics.zeros and not state.nan
    found = not_finite([numbers.reshape(-1)], numbers.shape)
    if found is not None:
        state.place = found.place
    elif numbers.ndim:
        index = np.unravel_index(int(np.argmax(beyond)), numbers.shape)
        state.place = f", the first at [{', '.join(str(int(n)) for n in index)}]"
    return state


@dataclass(slots=True)
class Search:
    """An observer that finds the first tensor of a run that leaves a range; `found` says which, and `masks` which
    layers make -inf on purpose, as it seems. `settled` where nothing else will be found."""

    range: Range
    found: Diagnostic | None = None
    masks: list[Layer] = field(default_factory=list)
    inherited: int = 0
    looked_at: int = 0
    settled: bool = False

    def __call__(self, event: Event) -> None:
        if self.settled:
            return
        self.looked_at += 1
        state = _state(event.array, self.range)
        if not state:
            return
        read = [None if array is None else _state(array, self.range) for array in event.calculation.inputs]
        given = [found for found in read if found]
        if any(found.nan for found in given) or (not state.nan and _is_given(state, given)):
            self.inherited += 1
            return
        if state.masks:
            if event.layer not in self.masks:
                self.masks.append(event.layer)
            return
        if self.found is None:
            self.found = self._finding(event, state, "no NaN" if given else "none")
        elif state.nan:
            note = Note(f"layer {self.found.layer}: {self.found.message}", self.found.span)
            found = self._finding(event, state, "no NaN")
            self.found = replace(found, notes=(*found.notes, note))
        else:
            return
        self.settled = True

    def look_at_inputs(self, model: Model, arrays: Mapping[str, Array]) -> None:
        """Look at what the model is given: nothing of it comes from a layer."""
        for layer in model.graph.parameters:
            array = next((arrays[name] for name in names_of(layer) if name in arrays), None)
            state = _State() if array is None else _state(array, self.range)
            if self.found is None and array is not None and state and not state.masks:
                message = f"the input is given {_text(state, array, self.range)}"
                help = "give it numbers that the type has, or look for what made these"
                self.found = Diagnostic(self._code(state), message, layer.span, layer.label, help)
                self.settled = bool(state.nan or not state.infinite)

    def _finding(self, event: Event, state: _State, given: str) -> Diagnostic:
        layer = event.layer
        output = f"output {event.port}" if len(layer.outputs) > 1 else "the result"
        message = f"{output} has {_text(state, event.array, self.range)}; what the layer has read has {given}"
        notes = [
            _note(number, value, array, self.range)
            for number, (value, array) in enumerate(zip(layer.inputs, event.calculation.inputs, strict=False))
            if array is not None
        ]
        for owner, body, iteration in event.path:
            notes.append(Note(f"in iteration {iteration} of the {body.replace('_', ' ')} of `{owner}`"))
        help = "look at what it reads with --dump FILE --around NAME; irrun explain tells what leads there"
        return Diagnostic(self._code(state), message, layer.span, layer.label, help, tuple(notes))

    def _code(self, state: _State) -> str:
        return FINITE if state.nan or state.infinite else RANGE


def _is_given(state: _State, given: Iterable[_State]) -> bool:
    """Whether what is beyond a range, but no NaN, has been read."""
    if state.infinite:
        return any(found.infinite for found in given)
    return any(found.infinite or found.beyond for found in given)


def _text(state: _State, array: Array, range: Range) -> str:
    counts = [(state.nan, "NaN"), (state.infinite, "infinite"), (state.beyond, f"beyond {range.most:g}")]
    text = " and ".join(f"{count:,} {word}" for count, word in counts if count)
    statistics = state.statistics
    largest = ""
    if state.beyond and statistics is not None:
        largest = f", up to {statistics.largest:g}, which {range.name} does not have"
    return f"{text} of {array.size:,} elements{state.place}{largest}"


def _note(number: int, value: Value | None, array: Array, range: Range) -> Note:
    statistics, _ = measured(array)
    kind = f"{element_type(array.dtype)}{shape_text(array.shape)}"
    source = "" if value is None else f" of layer {value.layer}"
    extent = "" if statistics.minimum is None else f", from {statistics.minimum:g} to {statistics.maximum:g}"
    state = _state(array, range)
    besides = f", {_text(state, array, range)}" if state else ""
    return Note(f"input {number} is {kind}{source}{extent}{besides}", None if value is None else value.layer.span)


@dataclass(slots=True)
class Glance:
    """A first look at what engines make, of layers that are computed together as one: `suspects` are the layers of
    tensors that are not all in a range, and `flushed` counts numbers that become 0, by layer."""

    range: Range
    suspects: list[Layer] = field(default_factory=list)
    flushed: dict[Layer, int] = field(default_factory=dict)
    looked_at: int = 0

    def observer(self) -> Fused:
        return Fused(self._passes, self._look)

    def count(self, layer: Layer, array: Array) -> None:
        """Count what becomes 0 of a tensor."""
        self.looked_at += 1
        if self.range.flushed and (count := self.range.flushes(array)):
            self.flushed[layer] = max(count, self.flushed.get(layer, 0))

    def _passes(self, layer: Layer, array: Array) -> bool:
        self.count(layer, array)
        return bool(self.suspects) or self.range.has(array)

    def _look(self, event: Event) -> None:
        if not self.range.has(event.array):
            self.suspects.append(event.layer)


def suspected(layer: Layer, range: Range) -> Diagnostic:
    """What to say of a tensor that left a range when nobody looked at every tensor, and does not now."""
    what = f"numbers beyond {range.most:g}" if range.most < inf else "numbers that are not finite"
    message = f"the result has {what} where it is computed together with other layers, and none when it is alone"
    help = "compare with --engine reference"
    code = RANGE if range.most < inf else FINITE
    return Diagnostic(code, message, layer.span, layer.label, help)
