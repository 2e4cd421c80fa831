"""All defects of the corpus, made anew from valid models in each process."""

from __future__ import annotations

from functools import cache

from corpus import attributes, bodies, constants, constraints, files, graphs, signatures
from corpus.defect import Defect

PARTS = (files, graphs, attributes, constants, signatures, bodies, constraints)


@cache
def all_defects() -> tuple[Defect, ...]:
    return tuple(defect for part in PARTS for defect in part.defects())
