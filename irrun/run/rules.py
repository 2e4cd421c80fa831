"""What the rule of an instruction says of arrays, remembered for shapes and small values that it has seen before."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping, Sequence

from irrun.records import NamedTuple
from irrun.run.memory import tensor_bytes
from irrun.run.program import Instruction, Program
from irrun.spec.body import Body
from irrun.spec.op import Array, Bound, Inferred, Tensor, Violation

MAX_KEPT = 64
"""Answers that are kept of one instruction."""

MAX_COMPARED = 64
"""Elements of an array by whose values an answer is found again."""


class Answer(NamedTuple):
    """What a rule says of arrays: `nbytes` are those of the outputs, as far as their sizes are known."""

    outputs: Sequence[Tensor]
    types: Mapping[str, str]
    warnings: Sequence[str]
    nbytes: int


class Rule:
    """The rule of an instruction in a program. Safe for threads.

    An answer that no data can change is kept for the shapes of the inputs, one that only small inputs can change for
    these and what they hold. Else the rule is asked every time. An op with bodies is asked about shapes, and about what
    its own inputs hold: constraints of what lies in a body are checked there, in each iteration.
    """

    def __init__(self, program: Program, instruction: Instruction) -> None:
        self._instruction = instruction
        self._types = [None if n is None else program.tensors[n].type for n in instruction.inputs]
        self._varying = [
            position for position, n in enumerate(instruction.inputs) if n is not None and n not in program.constants
        ]
        self._named = len(instruction.op.inputs) - instruction.op.variadic
        self._typeless = [position for position in self._varying if self._types[position] == "dynamic"]
        self._kept: dict[Hashable, Answer | None] = {}  # None where shapes alone do not do
        self._open: dict[Hashable, tuple[Bound, Answer] | None] = {}  # of shapes for which small values do not do

    def tensors(self, arrays: Sequence[Array | None]) -> list[Tensor | None]:
        """All about the inputs."""
        return [
            None if array is None or type is None else Tensor.of(array, None if type == "dynamic" else type)
            for array, type in zip(arrays, self._types, strict=True)
        ]

    def ask(self, arrays: Sequence[Array | None], bodies: Callable[[], Mapping[str, Body]]) -> Answer:
        """Raises Violation where the arrays break it."""
        shapes: Hashable = tuple([arrays[position].shape for position in self._varying])  # type: ignore[union-attr]
        if self._typeless:
            shapes = shapes, tuple([arrays[position].dtype for position in self._typeless])  # type: ignore[union-attr]
        if self._instruction.bodies:
            return self._of_bodies(shapes, arrays, bodies)
        answer = self._kept.get(shapes)
        if answer is None and shapes not in self._kept:
            answer = self._partial(arrays, 0)
            self._keep(shapes, answer)
        if answer is not None:
            return answer
        if shapes in self._open:
            return self._checked(shapes, arrays)
        small = [position for position in self._varying if arrays[position].size <= MAX_COMPARED]  # type: ignore[union-attr]
        key = shapes, tuple([arrays[position].tobytes() for position in small])  # type: ignore[union-attr]
        answer = self._kept.get(key)
        if answer is None:
            answer = self._partial(arrays, MAX_COMPARED)
            if answer is None:
                whole = self._whole(arrays)
                self._open[shapes] = self._sized(arrays)
                return whole
            self._keep(key, answer)
        return answer

    def of_shapes(self, arrays: Sequence[Array | None], unseen: Container[int] = ()) -> Inferred | None:
        """What it says of arrays of these shapes, whatever they hold unless constant; None where they break it.

        It sees nothing of what constants hold at the positions `unseen`.
        """
        tensors = self._without_values(arrays, lambda position, array: False)
        tensors = [_unvalued(tensor) if position in unseen else tensor for position, tensor in enumerate(tensors)]
        try:
            return self._instruction.op.infer(tensors, self._instruction.attrs)
        except Violation:
            return None

    def _checked(self, shapes: Hashable, arrays: Sequence[Array | None]) -> Answer:
        """The answer for data that only the rule can judge; if they change no size, they alone are looked at."""
        sized = self._open.get(shapes)  # which another thread may have made room in just now
        if sized is None:
            return self._whole(arrays)
        bound, answer = sized
        warnings = self._instruction.op.check(self.tensors(arrays), self._instruction.attrs, bound)
        return answer._replace(warnings=warnings) if warnings else answer

    def _sized(self, arrays: Sequence[Array | None]) -> tuple[Bound, Answer] | None:
        """What shapes alone say, if that is all about the sizes of the outputs."""
        op, attrs = self._instruction.op, self._instruction.attrs
        tensors = self._without_values(arrays, lambda position, array: False)
        inferred = op.infer(tensors, attrs)
        if op.variadic or not all(tensor.static for tensor in inferred.outputs):
            return None
        return op.bound(tensors, attrs), self._answer(inferred)._replace(warnings=())

    def _keep(self, key: Hashable, answer: Answer | None) -> None:
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
            self._open.clear()
        self._kept[key] = answer

    def _whole(self, arrays: Sequence[Array | None]) -> Answer:
        return self._answer(self._instruction.op.infer(self.tensors(arrays), self._instruction.attrs))

    def _partial(self, arrays: Sequence[Array | None], compared: int) -> Answer | None:
        """The answer where only inputs of few elements have values, beside constants; None where that does not do."""
        tensors = self._without_values(arrays, lambda position, array: array.size <= compared)
        try:
            inferred = self._instruction.op.infer(tensors, self._instruction.attrs)
        except Violation:  # it is asked again, for its message
            return None
        return self._answer(inferred) if inferred.complete else None

    def _of_bodies(
        self, shapes: Hashable, arrays: Sequence[Array | None], bodies: Callable[[], Mapping[str, Body]]
    ) -> Answer:
        own = [position for position in self._varying if position < self._named]
        key = shapes, tuple([arrays[position].tobytes() for position in own])  # type: ignore[union-attr]
        answer = self._kept.get(key)
        if answer is None:
            tensors = self._without_values(arrays, lambda position, array: position < self._named)
            answer = self._answer(self._instruction.op.infer(tensors, self._instruction.attrs, bodies()))
            self._keep(key, answer)
        return answer

    def _without_values(
        self, arrays: Sequence[Array | None], valued: Callable[[int, Array], bool]
    ) -> list[Tensor | None]:
        tensors = self.tensors(arrays)
        for position in self._varying:
            array = arrays[position]
            if array is not None and not valued(position, array):
                tensors[position] = _unvalued(tensors[position])
        return tensors

    def _answer(self, inferred: Inferred) -> Answer:
        outputs = inferred.outputs[: len(self._instruction.outputs)]
        return Answer(outputs, inferred.types, inferred.told, sum(map(tensor_bytes, outputs)))


def _unvalued(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else Tensor(tensor.type, tensor.shape)
