"""Views within the memory of an array, and works that are bound to other arrays than they were compiled for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from irrun.engines.extents import checked, extent_of, view
from irrun.engines.memory import data_address
from irrun.engines.work import Compiled, Operand, Work

DENSE = np.arange(12, dtype=np.float32).reshape(3, 4)


@dataclass(frozen=True)
class Lies:
    nbytes: int
    strides: tuple[int, ...] | None


def test_bytes_before_and_behind_the_first_element() -> None:
    assert extent_of((3, 4), (16, 4), 4) == (0, 48)
    assert extent_of((3, 4), (-16, 4), 4) == (32, 16)
    assert extent_of((3, 4), (0, 0), 4) == (0, 4)
    assert extent_of((), (), 2) == (0, 2)


def test_the_address_of_an_array_is_that_of_its_first_element() -> None:
    for array in (
        DENSE,
        DENSE[1:],
        DENSE[::-1, 2:],
        DENSE[0, 0, None],
        np.array(1.5),
        np.empty(0),
        DENSE.view(np.matrix),
    ):
        assert data_address(array) == array.ctypes.data


def test_views_within_an_array() -> None:
    np.testing.assert_array_equal(view(DENSE, (4, 3), (4, 16)), DENSE.T)
    np.testing.assert_array_equal(view(DENSE[::-1], (2, 2), (-16, 8)), [[8, 10], [4, 6]])
    np.testing.assert_array_equal(view(DENSE[0, :1], (5,), (0,)), [0] * 5)


@pytest.mark.parametrize(
    ("array", "shape", "strides"),
    [
        (DENSE, (3, 5), (16, 4)),
        (DENSE, (3, 4), (20, 4)),
        (DENSE, (3,), (-4,)),
        (DENSE[::-1], (3, 4), (16, 4)),
        (np.broadcast_to(DENSE[0], (3, 4)), (3, 4), (16, 4)),
    ],
)
def test_views_beyond_an_array(array, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"reach beyond|incompatible with shape"):
        view(array, shape, strides)


def test_a_work_is_bound_only_to_what_it_was_compiled_for() -> None:
    work = Work("", {}, [Operand("f32", (3, 4), (4, 12)), None], [Operand("f32", (1, 4), (16, 4))])
    bound = []
    compiled = checked(work, Compiled(lambda *_: bound.append, 8, {}, {}, frozenset()))
    by_columns, result = np.asfortranarray(DENSE), np.empty((1, 4), np.float32)
    assert compiled.scratch == 8
    compiled.bind([by_columns, None], [result], None)
    compiled.bind([by_columns, None], [np.empty((4, 1), np.float32).T], None)  # which of one element is all the same
    for wrong in (DENSE, DENSE[:2], by_columns.reshape(12, order="F")):
        with pytest.raises(ValueError, match=r"for \(3, 4\) with \(4, 12\)"):
            compiled.bind([wrong, None], [result], None)
    with pytest.raises(ValueError, match="an array of shape"):
        compiled.bind([by_columns, None], [DENSE[:1, ::-1]], None)


def test_wanted_and_given_layouts_are_held_to() -> None:
    work = Work("", {}, [Operand("f32", (3, 4), (4, 12))] * 3, [Operand("f32", (3, 4), (16, 4))] * 2)
    wants, gives = {0: None, 1: Lies(64, None)}, {0: Lies(48, (4, 12))}
    compiled = checked(work, Compiled(lambda *_: list, 0, wants, gives, frozenset({2})))
    by_columns, blocks = np.asfortranarray(DENSE), np.empty(64, np.uint8)
    compiled.bind([DENSE, blocks, DENSE], [by_columns, DENSE], None)
    for inputs, outputs in (
        ([by_columns, blocks, None], [by_columns, DENSE]),
        ([DENSE, blocks[:63], None], [by_columns, DENSE]),
        ([DENSE, blocks, None], [DENSE, DENSE]),
        ([DENSE, blocks, None], [by_columns, by_columns]),
    ):
        with pytest.raises(ValueError, match="an array of shape"):
            compiled.bind(inputs, outputs, None)
