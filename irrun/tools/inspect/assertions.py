"""Conditions on what a model is and costs, such as `macs<=4.1e9`: for CI, where a model must not grow unseen."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from irrun.records import dataclass
from irrun.spec.dims import UNDECIDED, Dim
from irrun.spec.registry import registry
from irrun.spelling import advice, close_matches
from irrun.tools.inspect.costs import LayerCost
from irrun.tools.inspect.inspection import Inspection
from irrun.tools.inspect.releases import parse_release, release_text

Quantity = Callable[[Inspection], Any]
"""A size, a number, a release; None where the model does not tell."""


def _of_costs(name: str) -> Quantity:
    return lambda found: None if found.costs is None else getattr(found.costs, name)


def _of_weights(quantity: Callable[[Any], Any]) -> Quantity:
    return lambda found: None if found.weights is None else quantity(found.weights)


def _of_values(*names: str) -> Quantity:
    """Counts over all constants; None where these were not read."""

    def total(weights: Any) -> int | None:
        counted = [weight.values for weight in weights.constants if weight.values is not None]
        return sum(getattr(values, name) for values in counted for name in names) if weights.read else None

    return _of_weights(total)


QUANTITIES: Mapping[str, tuple[str, Quantity]] = {
    "macs": ("multiplications whose products are added up", _of_costs("macs")),
    "flops": ("two for each MAC", _of_costs("flops")),
    "bytes": ("read and written by layers", _of_costs("bytes")),
    "coverage": ("share of layers whose MACs are known, from 0 to 1, or 0% to 100%", _of_costs("coverage")),
    "layers": ("layers, those of bodies too", _of_costs("layers")),
    "peak": ("bytes of activations at once", lambda found: None if found.peak is None else found.peak.bytes),
    "state": ("bytes that variables grow by with each token", lambda found: found.state_bytes),
    "parameters": ("elements of constants", _of_weights(lambda weights: weights.elements)),
    "weights": ("bytes of constants", _of_weights(lambda weights: weights.bytes)),
    "unused": ("bytes of the .bin that are no constant's", _of_weights(lambda w: sum(gap.bytes for gap in w.gaps))),
    "duplicates": (
        "bytes of constants that another one holds too",
        _of_weights(lambda weights: weights.duplicate_bytes if weights.read else None),
    ),
    "not-finite": ("elements of constants that are NaN or infinite", _of_values("nans", "infinities")),
    "f16-loss": (
        "elements of constants that f16 makes infinite, or 0",
        _of_values("beyond_f16", "flushed_by_f16"),
    ),
    "release": (
        "the oldest release that reads it",
        lambda found: None if found.releases is None else parse_release(found.releases.oldest),
    ),
}
"""What conditions can be about; besides these, `ops.TYPE` is the number of layers of a type."""

_RELATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12} | {
    f"{letter}i": 1024**power for power, letter in enumerate("kmgt", 1)
}
_CONDITION = re.compile(r"\s*([A-Za-z][\w.-]*)\s*(<=|>=|==|!=|<|>)\s*([^\s=<>]\S*)\s*")
_NUMBER = re.compile(r"(\d{1,18}(?:\.\d{1,18})?(?:e\+?\d\d?)?)([kmgt]i?)?b?(%)?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Condition:
    """One that `text` says: that quantity `name` is in a `relation` to a `limit`."""

    text: str
    name: str
    relation: str
    limit: Any

    def failure(self, found: Inspection) -> str | None:
        """What is the case where the condition does not hold, or nobody can tell; None where it holds."""
        if self.name.startswith("ops."):
            type = self.name.removeprefix("ops.")
            if (meant := _misspelt(type, found.ops)) is not None:
                return f"`{self.text}` cannot be told: there is no op `{type}`; {meant}"
            value = found.ops.get(type, 0)
        else:
            value = QUANTITIES[self.name][1](found)
        unknown = 0 if found.layers is None else sum(self._unknown(layer) for layer in found.layers)
        if unknown:
            return f"`{self.text}` cannot be told: what {unknown} of {len(found.layers or ())} layers add is not known"
        if value is None:
            hint = (
                "; --weights reads what constants hold" if found.weights is not None and not found.weights.read else ""
            )
            if self.name == "peak" and found.peak is not None:
                hint = "".join(f"; {text}" for text in (found.peak.reason, found.peak.help) if text)
            return f"`{self.text}` cannot be told: {self.name} is not known{hint}"
        answer = _RELATIONS[self.relation](value, self.limit)
        if answer is UNDECIDED:
            return f"`{self.text}` cannot be told: {self.name} is {found.sizes.text(value)}; --shape gives sizes"
        return None if answer else f"`{self.text}` does not hold: {self.name} is {_written(found, value)}"

    def _unknown(self, layer: LayerCost) -> bool:
        """Whether what a layer adds to a sum is not known."""
        return (self.name in ("macs", "flops") and layer.macs is None) or (self.name == "bytes" and layer.bytes is None)


def parse_condition(text: str) -> Condition:
    """A condition such as `macs<=4.1e9`, `weights < 100MiB`, `ops.Loop==0` or `release<=2024.2`. Raises ValueError."""
    parts = _CONDITION.fullmatch(text)
    if parts is None:
        raise ValueError(f"`{text}` is not of the form NAME<=NUMBER; also with >=, <, >, == and !=")
    name, relation, limit = parts.groups()
    if name not in QUANTITIES and not (name.startswith("ops.") and len(name) > 4):
        raise ValueError(f"`{name}` is nothing to ask about; there are {', '.join(QUANTITIES)} and ops.TYPE")
    if name == "release":
        return Condition(text, name, relation, parse_release(limit))
    number = _NUMBER.fullmatch(limit)
    if number is None:
        raise ValueError(f"`{limit}` is not a number such as 4.1e9, 4.1G or 100MiB")
    value = float(number[1]) * _UNITS[(number[2] or "").lower()] / (100 if number[3] else 1)
    if name == "coverage" and value > 1:
        raise ValueError(f"`{text}` never holds: coverage is a share from 0 to 1; write {limit}% for percent")
    return Condition(text, name, relation, int(value) if value.is_integer() else value)


def _misspelt(type: str, held: Collection[str]) -> str | None:
    """What a type that neither a model has nor anybody knows is meant for; None for others: they may be foreign ops."""
    if type in held or type in registry().types():
        return None
    close = close_matches(type, {*held, *registry().types()})
    return advice(type, close[0]) if close else None


def _written(found: Inspection, value: Any) -> str:
    if isinstance(value, tuple):
        return release_text(value)
    if isinstance(value, Dim):
        return str(found.sizes.text(value))
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
