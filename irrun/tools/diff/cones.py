"""Constants that are computed of others: how they are stored and made, and what values come out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irrun.check.attributes import read_attributes
from irrun.records import dataclass
from irrun.spec.dtypes import CODES
from irrun.spec.op import Violation
from irrun.spec.traits import Converting
from irrun.tools.diff.constants import ATOL, RTOL, Constants, Delta, compare
from irrun.tools.diff.regions import Region
from irrun.tools.diff.view import Node

Array = np.ndarray[Any, Any]

MAX_COMPUTED = 1 << 22
"""Elements of one constant that are computed to see whether it is the same."""

MAX_TOGETHER = 1 << 27
"""Elements of all constants in the file that are computed with in one comparison."""


@dataclass(frozen=True, slots=True)
class Cone:
    """How a constant is made. It is `plain` where it is one constant in the file, converted perhaps by the `chain`.

    `stored` is the element type of its largest constant in the file, `text` all of it in words.
    """

    stored: str
    chain: str
    plain: bool
    text: str


class Cones:
    """Constants of two models that are computed of others."""

    def __init__(self, constants: tuple[Constants, Constants], stats: bool) -> None:
        """With `stats`, statistics of stored ones are compared."""
        self._constants, self._stats = constants, stats
        self._left = MAX_TOGETHER

    def described(self, nodes: Sequence[Node]) -> Cone:
        """How the nodes of a constant make it."""
        stored = [node for node in nodes if node.is_const]
        steps = [node.type for node in nodes if not node.is_const]
        largest = max(stored, key=_size, default=None)
        type = "" if largest is None else largest.layer.attributes.get("element_type", "")
        plain = len(stored) == 1 and all(_converts(node) for node in nodes if not node.is_const)
        chain = " + ".join(dict.fromkeys(steps))
        return Cone(type, chain, plain, f"{type} with {chain}" if chain else type)

    def delta(self, region: Region) -> tuple[bool, Delta | None]:
        """Whether it is known how the values differ, and how they do; nothing where they are the same."""
        sides = self._stored(region.before), self._stored(region.after)
        if sides[0] is None or sides[1] is None:
            delta = self._computed(region)
            return delta is not None, delta
        old, new = sides[0].layer, sides[1].layer
        before, after = self._constants
        mine, theirs = before.blob(old), after.blob(new)
        if mine is None or theirs is None or mine.elements != theirs.elements:
            return False, None
        if not (before.compared(old) and after.compared(new)):
            return mine.shape == theirs.shape, None
        return True, compare(before, old, after, new, stats=self._stats)

    def needs_computing(self, region: Region) -> bool:
        """Whether a constant must be computed to be compared, as it is not just stored in another type."""
        return None in (self._stored(region.before), self._stored(region.after))

    def _stored(self, nodes: Sequence[Node]) -> Node | None:
        """The constant in the file, where nothing else is done than to convert it."""
        stored = [node for node in nodes if node.is_const]
        return stored[0] if len(stored) == 1 and all(node.is_const or _converts(node) for node in nodes) else None

    def _computed(self, region: Region) -> Delta | None:
        arrays = []
        for nodes, constants in zip((region.before, region.after), self._constants, strict=True):
            known: dict[Node, Array | None] = {}
            for node in nodes:
                known[node] = self._value(node, constants, known)
            array = known[nodes[-1]]
            if array is None:
                return None
            arrays.append(np.asarray(array).astype(np.float64))
        old, new = arrays
        if old.shape != new.shape or not old.size:
            return None
        with np.errstate(all="ignore"):
            apart = np.abs(old - new)
            apart = np.where((old == new) | (np.isnan(old) & np.isnan(new)), 0.0, apart)
        apart[np.isnan(apart)] = math.inf
        place = int(np.argmax(apart))
        wrong = int(np.count_nonzero(apart))
        close = bool((apart <= ATOL + RTOL * np.abs(old)).all())
        at = old.flat[place].item(), new.flat[place].item()
        return Delta(old.size, wrong, float(apart.flat[place]), float(apart.mean()), place, *at, False, close, close)

    def _value(self, node: Node, constants: Constants, known: dict[Node, Array | None]) -> Array | None:
        """The array of a constant node, by the kernels of its ops; None where that takes too much, or does not work."""
        elements = _size(node)
        if elements > MAX_COMPUTED or elements > self._left:
            return None
        if node.is_const:
            self._left -= elements
            codes = node.layer.attributes.get("element_type") in CODES
            return constants.values(node.layer) if constants.compared(node.layer) and not codes else None
        inputs = []
        for source in node.inputs:
            if source is not None and source[0] not in known and source[0].is_const:
                known[source[0]] = self._value(source[0], constants, known)
            inputs.append(None if source is None else known.get(source[0]))
        if node.found is None or not node.found.pure or any(array is None for array in inputs):
            return None
        values = read_attributes(node.found, node.layer).values
        if values is None or len(node.layer.outputs) != 1:
            return None
        try:
            result = node.found(*inputs, **values)
        except (Violation, TypeError, ValueError):
            return None
        return np.asarray(result[0] if isinstance(result, tuple | list) else result)


def _size(node: Node) -> int:
    return math.prod(node.layer.outputs[0].port.dims) if node.layer.outputs else 0


def _converts(node: Node) -> bool:
    return node.found is not None and node.found.trait(Converting) is not None
