"""Einsum of two tensors, as labels: which are those of a batch, of rows, of columns, and which are summed over."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from irrun.engines.work import Work
from irrun.records import NamedTuple

EQUATION = re.compile(r"([A-Za-z]+),([A-Za-z]+)->([A-Za-z]*)")


class Contraction(NamedTuple):
    """Two tensors of the labels `terms`, all of a tensor's different, whose product has those of `output`.

    `inner` are those that are summed over, which both tensors have.
    """

    terms: tuple[str, str]
    output: str
    sizes: Mapping[str, int]
    inner: Sequence[str]

    def shared(self) -> list[str]:
        """The labels of the result that both tensors have, in its order."""
        return [label for label in self.output if all(label in term for term in self.terms)]

    def alone(self, number: int) -> list[str]:
        """The labels of the result that only the tensor of this number has, in its order."""
        return [label for label in self.output if label in self.terms[number] and label not in self.terms[1 - number]]


def contraction_of(work: Work) -> Contraction | None:
    """What Einsum-7 contracts: two tensors of f32 whose labels are all different, each in the other tensor or in the
    result; None for others."""
    found = EQUATION.fullmatch(re.sub(r"\s", "", work.attrs["equation"]))
    if found is None or len(work.own) != 2 or any(operand.type != "f32" for operand in work.required(2)):
        return None
    terms, output = (found[1], found[2]), found[3]
    sizes: dict[str, int] = {}
    for term, operand in zip(terms, work.required(2), strict=True):
        for label, size in zip(term, operand.shape, strict=True):
            if sizes.setdefault(label, size) != size:
                return None
    first, second = map(set, terms)
    if any(len(set(term)) != len(term) for term in terms) or (first ^ second) - set(output):
        return None
    return Contraction(terms, output, sizes, [label for label in terms[0] if label in second and label not in output])
