"""Attention of many rows, by the kernels that keep no scores, and as it is in f64."""

from __future__ import annotations

import numpy as np
from engines.works import computed, plain, work_of

from irrun.engines import onednn
from irrun.engines.compiled import flash
from irrun.engines.compiled.team import Team
from irrun.engines.heads import LEAST_SCORES
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


def check_that_one_engine_takes_what_is_large_enough(heads):
    """Of random `heads` of a shape."""
    rows = LEAST_SCORES // 128
    for count, large in ((rows - 1, False), (rows, True)):
        work, _ = attention([heads(1, 1, count, 8), heads(1, 1, 128, 8), heads(1, 1, 128, 8)])
        for once in (False, True):
            for compiling in (False, True):
                engine = onednn.load(2, once=once, compiling=compiling)
                assert (engine.compile(work) is None) == (large and compiling and not once)
