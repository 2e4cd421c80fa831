"""Two models on the same inputs: the first tensor, in the order of the first model, whose values differ.

Both are run by the reference kernels, layer by layer. Tensors of the first run wait in a temporary file for the second.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from irrun.check.validate import find_input
from irrun.diagnostics import ExecutionError, InputError
from irrun.files import Unwritten, temporary
from irrun.ir.graph import Layer, Model
from irrun.ir.signature import names_of
from irrun.run.executor import GraphExecutor
from irrun.run.session import Event
from irrun.spec.op import Array
from irrun.spec.patterns import shape_text
from irrun.tools.diff.constants import ATOL, RTOL
from irrun.tools.diff.edits import TOLERANCE, Divergence
from irrun.tools.diff.view import Node

ENGINE = "reference"
"""What computes: every tensor is there to be looked at, and none is rounded in another order."""

Place = tuple[Layer, int]


def first_divergence(
    before: Model,
    after: Model,
    pairs: Sequence[tuple[Node, Node]],
    inputs: Mapping[str, Any] | None,
    seed: int | None,
    max_memory: int | None = None,
) -> Divergence:
    """The first tensor that differs, of those of layers that are in both models; bodies are part of their layers.

    With a `seed`, inputs that are not given are random. The second model gets what goes by its own names of inputs, or
    by their place. Raises InputError, IRError and ExecutionError as runs do.
    """
    partner = {x.layer: y.layer for x, y in pairs if x.layer.graph.owner is None}
    first = GraphExecutor(before, engine=ENGINE, max_memory=max_memory)
    second = GraphExecutor(after, engine=ENGINE, max_memory=max_memory)
    given = dict(inputs or {})
    if seed is not None:
        known = {name: array for name, array in given.items() if _is_input(before, name)}
        given = {**given, **first.random_inputs(seed, {}, known)}
    mine = {name: array for name, array in given.items() if _is_input(before, name)}
    theirs = _inputs_of(before, after, partner, given)
    order: list[Place] = []
    with TemporaryFile() as spool:
        kept: dict[Place, tuple[int, np.dtype[Any], tuple[int, ...]]] = {}

        def keep(event: Event) -> None:
            place = event.layer, event.port
            if event.path or event.layer not in partner or place in kept:
                return
            kept[place] = spool.tell(), event.array.dtype, event.array.shape
            with temporary():
                spool.write(event.array.tobytes())
            order.append(place)

        try:
            first.run(mine, observer=keep)
        except ExecutionError as error:
            if isinstance(error.__cause__, Unwritten):  # which no layer is to blame for
                raise error.__cause__ from None
            raise
        back = {y: x for x, y in partner.items()}
        found: dict[Place, str] = {}
        seen: dict[Place, int] = {}

        def look(event: Event) -> None:
            x = back.get(event.layer)
            place = None if x is None else (x, event.port)
            if event.path or place is None or place not in kept or place in seen:
                return
            at, dtype, shape = kept[place]
            spool.seek(at)
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            array = np.frombuffer(spool.read(size), dtype).reshape(shape)
            seen[place] = event.port
            sentence = difference_of(array, event.array)
            if sentence:
                found[place] = sentence

        second.run(theirs, observer=look)
    compared = [place for place in order if place in seen]
    for number, place in enumerate(compared, 1):
        if place in found:
            other = partner[place[0]].name, place[1]
            return Divergence(_named(place[0].name, place[1]), _named(*other), found[place], number)
    return Divergence("", "", "", len(compared))


def _named(name: str, port: int) -> str:
    return f"{name}:{port}"


def _is_input(model: Model, name: str) -> bool:
    try:
        find_input(model, name)
    except ValueError:
        return any(name in names_of(layer) for layer in model.graph.parameters)  # a run tells why it is none of one
    return True


def _positions(number: int) -> tuple[str, str]:
    """What the input at a position goes by where names do not count: see `find_input`."""
    return str(number), f"arr_{number}"


def _inputs_of(before: Model, after: Model, partner: Mapping[Layer, Layer], given: Mapping[str, Any]) -> dict[str, Any]:
    """What the second model is given: by its own names, else what its partner in the first model is given."""
    found: dict[str, Any] = {}
    back = {y: x for x, y in partner.items()}
    places = {layer: _positions(number) for number, layer in enumerate(before.graph.parameters)}
    for number, layer in enumerate(after.graph.parameters):
        own = [name for name in names_of(layer) if name in given]
        other = back.get(layer)
        theirs = [] if other is None else [name for name in (*names_of(other), *places[other]) if name in given]
        names = own or theirs or [name for name in _positions(number) if name in given]
        if not names:
            raise InputError(f"no array for input `{names_of(layer)[0]}` of {after.path}")
        found[str(number)] = given[names[0]]
    return found


def difference_of(old: Array, new: Array) -> str:
    """How two tensors differ by more than rounding, in words; empty where they do not."""
    if old.shape != new.shape:
        return f"shape {shape_text(old.shape)} -> {shape_text(new.shape)}"
    if not old.size:
        return ""
    if old.dtype.kind == "U" or new.dtype.kind == "U":
        wrong = int(np.count_nonzero(old.astype(str) != new.astype(str)))
        return f"{wrong:,} of {old.size:,} texts differ" if wrong else ""
    exact = old.dtype.kind in "biu" and new.dtype.kind in "biu"
    x, y = old.astype(np.float64), new.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        apart = np.where(same, 0.0, np.abs(x - y))
        apart[np.isnan(apart)] = math.inf
        spread = math.sqrt(float(np.mean(np.square(x[np.isfinite(x)])))) if np.isfinite(x).any() else 0.0
        allowed = 0.0 if exact else RTOL * np.abs(x) + max(ATOL, RTOL * spread)
        wrong = ~same & ~(apart <= allowed)
    if not wrong.any():
        return ""
    place = np.unravel_index(int(np.argmax(np.where(wrong, apart, -1.0))), wrong.shape)
    where = f" at [{', '.join(str(int(index)) for index in place)}]" if place else ""
    return (
        f"{int(wrong.sum()):,} of {wrong.size:,} values differ, by {float(apart[place]):.3g} at most{where} "
        f"({float(x[place]):.6g} -> {float(y[place]):.6g}), {float(apart.mean()):.3g} on average"
        + ("" if exact else f"; allowed is {TOLERANCE}")
    )
