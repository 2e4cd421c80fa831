"""Works that are alike: what an engine has made of one serves for others, as layers of a model repeat themselves."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from irrun.engines.extents import checked
from irrun.engines.grid import is_of_codes
from irrun.engines.work import Compiled, Operand, Work
from irrun.locks import Latest
from irrun.spec.op import Array

MAX_KEPT = 512
"""Works that an engine remembers, the latest ones."""

MAX_COMPARED = 16
"""Elements of a constant that is a part of what a work is: axes, factors and sizes, not weights."""

_Made = TypeVar("_Made")


def signature(work: Work) -> Hashable:
    """All about a work but the values of its weights, constants of more than `MAX_COMPARED` elements."""
    posts = [(post.name, *post.attrs.items(), post.operand, post.reflected, post.parameters) for post in work.posts]
    tensors = [_described(operand) for operand in (*work.inputs, *work.outputs)]
    return work.name, *work.attrs.items(), len(work.inputs), *tensors, *posts


class WorkCache:
    """What an engine has made of works, by their signature. Safe for threads, which may make the same twice."""

    def __init__(self) -> None:
        self._made: Latest[Hashable, Any] = Latest(MAX_KEPT)

    def recall(self, what: Hashable, work: Work, make: Callable[[Work], _Made]) -> _Made:
        """What `make` gives for a work like this one, by the name `what`; it must not look at the values of weights."""
        key = what, signature(work)
        found: tuple[_Made] | None = self._made.recall(key)
        if found is not None:
            return found[0]
        made = make(work)
        self._made.keep(key, made)
        return made

    def recall_own(self, name: str, work: Work, make: Callable[[Work], _Made]) -> _Made:
        """The same of a work with the same weights, which what is made keeps."""
        weights = (operand.value for operand in work.inputs if operand is not None)
        return self.recall((name, *map(id, weights)), work, make)

    def compiled(self, name: str, work: Work, compile: Callable[[Work], Compiled | None]) -> Compiled | None:
        """The work as `compile` prepares it, that of one like it if no weights come in; it is bound as it is told."""

        def prepare(work: Work) -> Compiled | None:
            found = compile(work)
            return None if found is None else checked(work, found)

        if _has_weights(work):
            return prepare(work)
        made = self.recall(name, work, prepare)
        if made is not None:
            made.shared = True  # weights of posts are read where they are bound
        return made


def is_weight(array: Array) -> bool:
    """Whether a constant is none of what a work is."""
    return array.size > MAX_COMPARED


def _has_weights(work: Work) -> bool:
    """Whether a constant whose values its signature leaves out comes into what is made of a work.

    Those are inputs of the op itself and parameters of posts, and where sums of codes are scaled all operands.
    """
    looked_at = {*range(len(work.own)), *(number for post in work.posts for number in post.parameters)}
    operands = work.inputs if is_of_codes(work) else [work.inputs[number] for number in looked_at]
    values = [operand.value for operand in operands if operand is not None]
    return work.compressed or any(value is not None and is_weight(value) for value in values)


def _described(operand: Operand | None) -> Hashable:
    if operand is None:
        return None
    value: Hashable = operand.value is not None
    if operand.value is not None and not is_weight(operand.value):
        value = operand.value.tobytes()
    if (weights := operand.compressed) is not None:
        factors = [None if factor is None else factor.shape for factor in (weights.scale, weights.zero)]
        value = weights.type, weights.stored, weights.rounded, *factors
    codes = None if operand.codes is None else (_described(operand.codes), operand.grid)
    return operand.type, operand.shape, operand.strides, operand.layout, value, codes
