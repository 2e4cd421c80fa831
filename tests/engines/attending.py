"""Attention of many rows, by the kernels that keep no scores, and as it is in f64."""

from __future__ import annotations

import numpy as np
from engines.works import computed, plain, work_of

from irrun.engines.compiled import flash
from irrun.engines.compiled.team import Team
from irrun.spec.dtypes import element_type

NAME = "ScaledDotProductAttention-13"


def attention(arrays, threads=1, causal=False, constant=()):
    """The work on arrays, and what is compiled of it."""
    query, value = arrays[0], arrays[2]
    outputs = [((*query.shape[:-1], value.shape[-1]), element_type(query.dtype))]
    work = work_of(NAME, {"causal": causal}, arrays, outputs, constant=constant)
    return work, flash.attention(work, Team(threads))


def attended(arrays, threads=1, causal=False):
    work, compiled = attention(arrays, threads, causal)
    assert compiled is not None
    return computed(compiled, work, arrays)[0]


def exact(arrays, causal=False):
    with np.errstate(all="ignore"):
        return plain(NAME, {"causal": causal}, [own if own.dtype == bool else own.astype(np.float64) for own in arrays])
