"""Tables looked up by codes, in numpy and compiled, held against the op's kernel."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from engines.works import THREADS, computed, work_of

from irrun.engines.vectorized.tables import look_up
from irrun.run.internal_ops import TABLE
from irrun.spec.dtypes import element_type

LARGE = (3, 210, 113)
"""More codes than are looked up at once, shared by threads."""


def compilers() -> list[Any]:
    try:
        from irrun.engines.compiled import tables
        from irrun.engines.compiled.tables import tabulated
        from irrun.engines.compiled.team import Team
    except ImportError:
        return [pytest.param(None, marks=pytest.mark.skip("llvmlite compiles the loop"))]
    team = Team(2)

    def one_by_one(work: Any) -> Any:
        with mock.patch.object(tables, "features", frozenset):
            return tabulated(work, team)

    return [pytest.param(lambda work: tabulated(work, team), id="compiled"), pytest.param(one_by_one, id="one by one")]


@pytest.mark.parametrize("compile", [pytest.param(lambda work: look_up(work, THREADS), id="numpy"), *compilers()])
@pytest.mark.parametrize("shape", [(), (1,), (7, 5), (63,), (64,), (65,), (2, 1 << 14), LARGE])
@pytest.mark.parametrize("type", ["u1", "i1"])
@pytest.mark.parametrize("target", ["u1", "i1", "f4"])
def test_each_code_is_what_the_table_has_for_its_byte(compile: Any, shape: Any, type: str, target: str) -> None:
    rng = np.random.default_rng(5)
    codes = np.asarray(rng.integers(0, 256, shape).astype(np.uint8)).view(type)
    table = rng.integers(-128, 128, 256).astype(np.int8).view("i1").astype(target)
    work = work_of(TABLE.name, {}, [codes, table], [(shape, element_type(np.dtype(target)))], constant=[1])
    compiled = compile(work)
    assert not compiled.wants
    (found,) = computed(compiled, work, [codes, table])
    np.testing.assert_array_equal(found, TABLE.kernel(codes, table))


def test_numbers_written_out() -> None:
    table = np.arange(256, dtype=np.float32) / 2
    assert TABLE.kernel(np.int8([0, 1, -1, -128, 127]), table).tolist() == [0.0, 0.5, 127.5, 64.0, 63.5]


@pytest.mark.parametrize("compile", [pytest.param(lambda work: look_up(work, THREADS), id="numpy"), *compilers()])
def test_codes_of_another_order_are_wanted_in_their_own(compile: Any) -> None:
    codes, table = np.arange(30, dtype=np.uint8).reshape(5, 6).T, np.arange(256, dtype=np.uint8)
    work = work_of(TABLE.name, {}, [codes, table], [((6, 5), "u8")], constant=[1])
    assert compile(work).wants == {0: None}
