"""What lies between the tensors that another side has shown, where a replay goes on with ours.

A layer reads there what it has read on the other side only as far as that is known. What is between known tensors is a
stretch of layers, of which nobody can say what a single one does of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from irrun.ir.graph import Layer, Value
from irrun.records import dataclass
from irrun.run.keys import Path, key
from irrun.run.session import Event
from irrun.spec.dtypes import is_exact
from irrun.spec.traits import Converting, Measuring, Reading, Storing
from irrun.tools.compare.sides.tensors import origins


@dataclass(frozen=True, slots=True)
class Open:
    """A tensor of a replay that is ours, the `number`-th of these, and those that its `layer` has `read`.

    `rounds` says that rounding may have made another one of it on the other side; where elements were only moved it is
    the same there.
    """

    number: int
    layer: Layer
    rounds: bool
    read: tuple[Open, ...]


@dataclass(frozen=True, slots=True)
class Stretch:
    """The layers before one back to tensors that are known, in the order of computation; none where it has read these.

    `rounds` says that they do more than move elements.
    """

    layers: tuple[Layer, ...]
    rounds: bool


NOTHING = Stretch((), rounds=False)
"""Before a layer that has read what is known."""


class Stretches:
    """The tensors of a replay that are ours, as the other side has not shown its own, step after step.

    `exact` says of an event whether its layer gives the same numbers wherever it is computed.
    """

    def __init__(self, exact: Callable[[Event], bool]) -> None:
        self._exact = exact
        self._open: dict[str, Open] = {}
        self._variables: dict[str, tuple[Open, ...]] = {}
        self._count = 0

    def begin(self) -> None:
        """Begin with another step. Variables hold what was stored before."""
        self._open.clear()

    def read(self, event: Event) -> tuple[Open, ...]:
        """What the layer of an event has read that is ours."""
        op, attributes = event.calculation.op, event.calculation.attributes
        if op.trait(Measuring) is not None:
            return ()
        reading = op.trait(Reading)
        if reading is not None and str(attributes[reading.variable]) in self._variables:
            return self._variables[str(attributes[reading.variable])]
        names = [name for value in event.layer.inputs if value is not None for name in _made_as(value, event.path)]
        return tuple(self._open[name] for name in dict.fromkeys(names) if name in self._open)

    def add(self, event: Event, read: tuple[Open, ...], *, known: bool) -> None:
        """Go on behind an event whose layer has `read` what is ours; the other side's own tensor may be `known`."""
        storing = event.calculation.op.trait(Storing)
        if storing is not None:
            self._variables[str(event.calculation.attributes[storing.variable])] = () if known else read
        if not known:
            rounds = any(each.rounds for each in read) or not (_kept(event) or self._exact(event))
            self._open[event.name] = Open(self._count, event.layer, rounds, read)
            self._count += 1


def stretch(read: Sequence[Open]) -> Stretch:
    """What lies before a layer that has read this."""
    if not read:
        return NOTHING
    found: dict[int, Layer] = {}
    left = list(read)
    while left:
        each = left.pop()
        if each.number not in found:
            found[each.number] = each.layer
            left += each.read
    layers = tuple(dict.fromkeys(found[number] for number in sorted(found)))
    return Stretch(layers, any(each.rounds for each in read))


def _kept(event: Event) -> bool:
    """Whether a tensor holds the numbers that its layer has read, or what it has computed of integers alone."""
    inputs = [array for array in event.calculation.inputs if array is not None]
    if event.calculation.op.trait(Converting) is None:
        return is_exact(event.array) and all(is_exact(array) for array in inputs)
    return bool(np.can_cast(inputs[0].dtype, event.array.dtype))


def _made_as(value: Value, path: Path) -> Iterator[str]:
    """The keys of the tensors that a layer reads as a value: those of a Parameter of a body were made elsewhere."""
    return (key(source.layer, source.index, there) for source, there in origins(value, path))
