"""How far right results may lie apart: by the precision that a layer is computed in and the length of its sums.

The table OWN is of single layers (what a layer makes of the inputs that the other side gave it), SQNR of whole models.
They were calibrated with tests/exports/calibration.py on OpenVINO's CPU plugin (2026.4, AMX), as it is and at f32, and
on the engine onednn: 7,775 tensors of 20 models, among them convolutional, recurrent, attention, detection and int8
ones. The largest own errors were, of the rms: f32 8.7e-6 (a sum of 192 terms) and bf16 0.052 (a depthwise
convolution), and f16 was one step and a half off where it only moves elements. The least ratios of outputs to their
noise were 111 dB at f32, 60 dB at f16, 30 dB at bf16 and 25 dB at int8. What no table covers are choices (indices of
TopK and MaxPool, boxes in the order of their scores), which rounding tips: these are causes, not tolerances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from irrun.check.constancy import constant_layers
from irrun.check.infer import Inference, InferredLayer
from irrun.diagnostics import IRError
from irrun.ir.graph import Graph, leading_to
from irrun.ir.signature import names_of_results
from irrun.records import dataclass
from irrun.spec.dtypes import is_exact, is_number
from irrun.spec.op import INTEGER, Array, Op, Violation
from irrun.spec.traits import (
    Accumulating,
    Cutting,
    Elementwise,
    Joining,
    Lookup,
    Padding,
    Permutation,
    Products,
    Quantizing,
    Reduction,
    Repeating,
    Reshaping,
    Selecting,
    Splitting,
    Transforming,
)
from irrun.spelling import close_matches
from irrun.tools.compare.blocks import numbers
from irrun.tools.compare.steps import DIGITS, LEAST, NORMAL, floating


@dataclass(frozen=True, slots=True)
class Tolerance:
    """An element may be `atol` + `spread` * rms + `rtol` * its size off, rms that of all that is expected.

    Of integers only `atol` counts. A share of `outliers` of all elements may be anywhere, but not infinite or NaN.
    With `sqnr`, in dB, the noise of all elements together must be so far below what is expected.
    """

    atol: float = 0.0
    rtol: float = 0.0
    outliers: float = 0.0
    spread: float = 0.0
    sqnr: float | None = None

    def allowed(self, size: Array, rms: float, *, exact: bool = False) -> Array:
        """How far each element may be, by the `size` of what is expected."""
        if exact:
            return np.full(size.shape, self.atol)
        room = self.atol + self.spread * rms
        return room + self.rtol * size if self.rtol else np.full(size.shape, room)

    def times(self, factor: float) -> Tolerance:
        """One that allows `factor` times as much."""
        sqnr = None if self.sqnr is None else self.sqnr - 20 * math.log10(factor)
        return replace(self, atol=self.atol * factor, rtol=self.rtol * factor, spread=self.spread * factor, sqnr=sqnr)

    def applied(self, *, exact: bool) -> Tolerance:
        """What of it counts: of integers no part of their size, and of nothing less than 1."""
        return replace(self, atol=self.atol if self.atol >= 1 else 0.0, rtol=0.0, spread=0.0) if exact else self

    @property
    def elements(self) -> Tolerance:
        """What it says of single elements."""
        return replace(self, sqnr=None)

    def __str__(self) -> str:
        if self == EXACT:
            return "exact"
        parts = [f"{self.atol:.3g}"] if self.atol >= NORMAL["f32"] else []  # of what is less nobody thinks
        parts += [f"{self.spread:.3g} of the rms"] if self.spread else []
        parts += [f"{self.rtol:.3g} of each element"] if self.rtol else []
        parts += [f"{self.outliers:.3g} of all elements anywhere"] if 0 < self.outliers < 1 else []
        parts += [f"{self.sqnr:g} dB"] if self.sqnr is not None else []
        return " + ".join(parts)


EXACT = Tolerance()

OWN = {"f64": (8.0, 8.0), "f32": (40.0, 16.0), "tf32": (8.0, 2.0), "f16": (8.0, 2.0), "bf16": (8.0, 2.0)}
"""The steps of each precision that a layer's own result may be off: of the rms (for short sums), and of the element."""

INTEGERS = frozenset({"i8", "u8", "i4", "u4"})
"""Precisions of products of codes, whose sums are exact, but handed on in bf16 where the device thinks fit."""

SQNR = {"f64": 80.0, "f32": 80.0, "tf32": 40.0, "f16": 40.0, "bf16": 25.0, "i8": 20.0}
"""The least ratio, in dB, of outputs to their noise, by the least precise precision on the way to them."""

LEVELS = {
    "exact": EXACT,
    "f64": Tolerance(rtol=1e-12, spread=1e-12),
    "f32": Tolerance(rtol=1e-4, spread=1e-4, sqnr=SQNR["f32"]),
    "f16": Tolerance(rtol=1e-2, spread=2e-2, sqnr=SQNR["f16"]),
    "bf16": Tolerance(rtol=5e-2, spread=2e-1, sqnr=SQNR["bf16"]),
    "i8": Tolerance(rtol=1e-1, spread=5e-1, sqnr=SQNR["i8"]),
}
"""What `--tol LEVEL` says, and `irrun.testing.assert_close`: for outputs, whatever the layers before them."""

_MOVING = (Permutation, Reshaping, Padding, Lookup, Joining, Cutting, Selecting, Splitting, Repeating)


def terms(op: Op, attrs: Mapping[str, Any], shapes: Sequence[tuple[int, ...] | None], result: tuple[int, ...]) -> float:
    """How many numbers are summed up for an element of the result, at most; 0 where elements are only moved.

    `shapes` are those of the inputs, None for one that is not connected. Where the op does not say what it sums, it is
    the longest axis of an input: that of a softmax, or of the state of a recurrent cell. Of axes that are transformed
    only their number is known here: the longest ones are taken.
    """
    known = [shape for shape in shapes if shape is not None]
    counting = op.trait(Products) or op.trait(Accumulating)
    if counting is not None and None not in shapes[:2]:
        given = [() if shape is None else shape for shape in shapes]
        return max(1.0, int(counting.operations(given, attrs, result)) / (2 * max(1, math.prod(result))))
    if op.trait(Reduction) is not None and known:
        return max(1.0, math.prod(known[0]) / max(1, math.prod(result)))
    transforming = op.trait(Transforming)
    if transforming is not None and len(known) > 1:
        (count,) = known[op.port_names.index(transforming.axes)]
        return float(math.prod(sorted(known[0])[len(known[0]) - count :]))
    if op.view_of is not None or any(op.trait(kind) is not None for kind in _MOVING):
        return 0.0
    if op.trait(Elementwise) is not None:
        return 1.0
    return float(max((size for shape in known for size in shape), default=1))


def own(precision: str, terms: float, step: float | None = None) -> Tolerance:
    """How far a layer's own result may be that sums up so many `terms` in a precision.

    `step` is the distance between the values of the result where it is on a grid, as codes of 8 bits are: rounding may
    fall to either side, twice where two such sums are added up, so it is two steps of that.
    """
    name = "bf16" if precision in INTEGERS else floating(precision)
    digit, (spread, relative) = DIGITS[name], OWN[name]
    atol = 0.0 if step is None else 2 * step * (1 + 1e-3)
    if not terms:
        return Tolerance(atol=atol, rtol=0.0 if name in ("f32", "f64") else 2 * digit)
    spread *= max(1.0, math.sqrt(terms) / 8)
    atol = max(atol, spread * LEAST["f32"])  # what is not normal has no digits to be right in
    return Tolerance(atol=atol, rtol=relative * digit, spread=spread * digit)


def grid_step(op: Op, attrs: Mapping[str, Any], inputs: Sequence[Array | None]) -> float | None:
    """The largest distance between neighbouring results of an op that quantizes; None for other ops."""
    quantizing = op.trait(Quantizing)
    if quantizing is None:
        return None
    given = dict(zip(op.port_names, inputs, strict=False))
    low, high = (given.get(name) for name in quantizing.limits[2:])
    levels = int(attrs[quantizing.levels])
    if low is None or high is None or not low.size or not high.size or levels < 2:
        return None
    with np.errstate(all="ignore"):
        return float(np.abs(high.astype(np.float64) - low.astype(np.float64)).max()) / (levels - 1)


def on_grid(inference: Inference) -> bool:
    """Whether a model puts numbers that are computed in runs on a grid of 8 bits or fewer.

    Then rounding tips some to the next step, whatever precision they are computed in, unless the same kernels round.
    """
    fixed = constant_layers(inference)
    for layer, node in inference.nodes.items():
        if layer in fixed:
            continue
        quantizing = node.op.trait(Quantizing)
        if quantizing is not None and int(node.attrs[quantizing.levels]) <= 256:
            return True
        read = {inference.tensor(value).type for value in layer.inputs if value is not None}
        if read & DIGITS.keys() and any(tensor.type in INTEGERS for tensor in node.outputs):
            return True
    return False


def of_whole_numbers(inference: Inference, graph: Graph) -> frozenset[str]:
    """The outputs that are computed of integers and booleans alone, by the names that results have."""
    found = []
    for layer, (name, *_) in zip(graph.results, names_of_results(graph), strict=True):
        nodes = [inference.nodes.get(each) for each in leading_to([layer])]
        if all(node is not None and not node.layer.bodies and _is_whole(node) for node in nodes):
            found.append(name)
    return frozenset(found)


def _is_whole(node: InferredLayer) -> bool:
    return all(tensor.type in INTEGER or tensor.type == "boolean" for tensor in node.outputs)


def of_outputs(precisions: Iterable[str]) -> Tolerance:
    """How far the outputs of a model may be, by the precisions of the layers on the way to them."""
    least = min((SQNR.get(name, SQNR["f32"]) for name in precisions), default=SQNR["f32"])
    return Tolerance(outliers=1.0, sqnr=least)


def of_elements(tolerance: Tolerance) -> Tolerance:
    """One that says of single elements whether they are right, where another one is of all of them together alone."""
    if tolerance.sqnr is None or tolerance.outliers < 1:
        return tolerance
    fitting = (level for level in LEVELS.values() if level.sqnr is not None and level.sqnr <= tolerance.sqnr)
    return replace(next(fitting, LEVELS["i8"]), sqnr=tolerance.sqnr)


def noise_floor(
    compute: Callable[[Sequence[Array | None]], Sequence[Array]],
    inputs: Sequence[Array | None],
    port: int,
    precision: str,
    expected: Array,
    exact: Array | None = None,
) -> Array | None:
    """What the layer itself makes of rounding: the largest change of each element of its result, in f64.

    Its floating-point inputs are moved to the next number of `precision`, each up or down by chance, twice; `exact` is
    the result of its kernel in f64, which `expected` is held against, too. A layer whose floor is above the tolerance
    is ill-conditioned: no device could do better. None for integers and where the kernel refuses the inputs.
    """
    if is_exact(expected) or not is_number(expected):
        return None
    digit, chance = DIGITS[floating(precision)], np.random.default_rng(0)
    right = numbers(expected)
    floor = np.zeros(expected.shape)
    with np.errstate(all="ignore"):
        if exact is not None and exact.shape == expected.shape:
            floor = np.abs(numbers(exact) - right)
        for _ in range(2):
            try:
                moved = compute([_moved(array, digit / 2, chance) for array in inputs])[port]
            except (Violation, IRError):
                return None
            if moved.shape == expected.shape:
                floor = np.fmax(floor, np.abs(numbers(moved) - right))
    return np.nan_to_num(floor, nan=0.0, posinf=np.inf)


def _moved(array: Array | None, part: float, chance: np.random.Generator) -> Array | None:
    if array is None or is_exact(array) or not is_number(array):
        return array
    signs = chance.integers(0, 2, array.shape, np.int8).astype(np.float32) * 2 - 1
    moved: Array = (array.astype(np.float64) * (1 + part * signs)).astype(array.dtype)
    return moved


def parse(text: str) -> tuple[str | None, Tolerance]:
    """What `--tol` says: `LEVEL`, `ATOL,RTOL` or `ATOL,RTOL,OUTLIERS`, and before a colon the name it is for, if any.

    Raises ValueError that says what is wrong.
    """
    name, colon, value = text.rpartition(":")
    if colon and not name:
        raise ValueError(f"`{text}` has no name before the colon")
    if value in LEVELS:
        return name or None, LEVELS[value]
    parts = [part.strip() for part in value.split(",")]
    try:
        given = [float(part) for part in parts]
    except ValueError:
        close = close_matches(value, LEVELS, likely=True)
        hint = f"; did you mean {close[0]}?" if close else ""
        levels = ", ".join(LEVELS)
        raise ValueError(f"`{value}` is neither ATOL,RTOL[,OUTLIERS] nor one of {levels}{hint}") from None
    if not 2 <= len(given) <= 3:
        raise ValueError(f"`{value}` has {len(given)} number{'s' * (len(given) != 1)}, expected ATOL,RTOL[,OUTLIERS]")
    if not all(math.isfinite(number) and number >= 0 for number in given):
        raise ValueError(f"`{value}`: tolerances are finite numbers of 0 or more")
    outliers = given[2] if len(given) == 3 else 0.0
    if outliers > 1:
        raise ValueError(f"`{value}`: OUTLIERS is a share of the elements, from 0 to 1, not {outliers:g}")
    return name or None, Tolerance(given[0], given[1], outliers)


def named(given: Iterable[tuple[str | None, Tolerance]], *names: str) -> Tolerance | None:
    """The last tolerance that is for one of `names`, exactly or as a pattern with `*`; else the last for no name."""
    chosen: Tolerance | None = None
    special: Tolerance | None = None
    for pattern, tolerance in given:
        if pattern is None:
            chosen = tolerance
        elif any(pattern == name or fnmatchcase(name, pattern) for name in names):
            special = tolerance
    return chosen if special is None else special
