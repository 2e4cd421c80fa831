"""What rules have said of types and shapes, remembered: most layers of a model are like another one of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from irrun.records import NamedTuple
from irrun.spec.body import Body
from irrun.spec.dims import serial
from irrun.spec.op import Array, Inferred, Op, Tensor
from irrun.spec.pending import Pending
from irrun.spec.sizes import comparable

MAX_KEPT = 4096
"""Answers that are kept; models of 10,000 layers have some hundred kinds of them."""

MAX_COMPARED = 64
"""Elements of a value by which an answer is found again: of shapes, axes and bounds."""


class _Watched(Tensor):
    """A tensor that adds its `number` to `asked` where someone looks at its content."""

    __slots__ = ("asked", "number")
    asked: set[int]
    number: int

    @classmethod
    def over(cls, tensor: Tensor, number: int, asked: set[int]) -> Tensor:
        watched = cls(tensor.type, tensor.shape, tensor.content)
        object.__setattr__(watched, "number", number)
        object.__setattr__(watched, "asked", asked)
        return watched

    @property
    def content(self) -> Array | Pending | None:
        if hasattr(self, "asked"):  # not where a rule has made another one of it
            self.asked.add(self.number)
        content: Array | Pending | None = _STORED.__get__(self)
        return content

    @content.setter
    def content(self, content: Array | Pending | None) -> None:
        _STORED.__set__(self, content)


_STORED = vars(Tensor)["content"]


class _Kind(NamedTuple):
    """Layers of one op, inputs of the same types and shapes: at which of these the rule has looked, and its answers."""

    asked: set[int]
    answers: dict[Hashable, _Answer]


class _Answer(NamedTuple):
    """An answer; `passed` are the numbers of the inputs that outputs are."""

    inferred: Inferred
    passed: Sequence[int | None]

    def over(self, inputs: Sequence[Tensor]) -> Inferred:
        """The answer for inputs that are alike."""
        outputs = [
            tensor if number is None else inputs[number]
            for tensor, number in zip(self.inferred.outputs, self.passed, strict=True)
        ]
        return Inferred(outputs, *self.inferred[1:])


class Answers:
    """What the rules of ops say of the layers of one model.

    An answer is kept for the types and shapes of the inputs, and for the values at which the rule has looked, where
    these are small, unless it holds an unknown size that is a new one each time.
    """

    def __init__(self) -> None:
        self._kinds: dict[Hashable, _Kind] = {}
        self._kept = 0

    def ask(
        self,
        op: Op,
        inputs: Sequence[Tensor],
        attrs: Mapping[str, Any],
        written: Mapping[str, str],
        bodies: Mapping[str, Body],
    ) -> Inferred:
        """What `op.infer` says; `written` is what the file has for `attrs`. Raises whatever that raises."""
        if bodies or op.has_shape_attr:
            return op.infer(inputs, attrs, bodies)
        key = (op, *written.items(), *[(tensor.type, comparable(tensor.shape)) for tensor in inputs])
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _Kind(set(), {})
        values = _values(inputs, kind.asked) if kind.asked else ()
        if values is None:
            return op.infer(inputs, attrs)
        answer = kind.answers.get(values)
        if answer is None:
            before = serial()
            watched = [_Watched.over(tensor, number, kind.asked) for number, tensor in enumerate(inputs)]
            inferred = op.infer(watched, attrs)
            numbers = {id(tensor): number for number, tensor in enumerate(watched)}
            answer = _Answer(inferred, [numbers.get(id(tensor)) for tensor in inferred.outputs])
            values = _values(inputs, kind.asked)
            if serial() == before + 1 and values is not None:
                self._make_room()
                kind.answers[values] = answer
        return answer.over(inputs)

    def _make_room(self) -> None:
        self._kept += 1
        if self._kept > MAX_KEPT:
            self._kinds.clear()
            self._kept = 0


def _values(inputs: Sequence[Tensor], numbers: set[int]) -> tuple[Hashable, ...] | None:
    """What equal values of some of the inputs share; None where one of them is too large."""
    found: list[Hashable] = []
    for number in sorted(numbers):
        value = inputs[number].content
        if value is None:
            found.append((number, None))
        elif value.size > MAX_COMPARED:
            return None
        elif isinstance(value, Pending):
            found.append((number, value.key))
        elif value.dtype == object:
            found.append((number, value.shape, comparable(value.ravel().tolist())))
        else:
            found.append((number, value.dtype.str, value.tobytes()))
    return tuple(found)
