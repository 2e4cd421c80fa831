"""Strides of tensors that are walked through together, broadcast, reshaped and in C order."""

from __future__ import annotations

import numpy as np

from irrun.engines.axes import (
    broadcast_strides,
    canonical_strides,
    dense_strides,
    is_dense,
    merged,
    reshaped_strides,
)
from irrun.engines.work import Operand


def test_axes_merge_where_all_tensors_allow_it() -> None:
    assert merged((2, 3, 4), [(48, 16, 4), (0, 0, 4)]) == ((6, 4), [(16, 4), (0, 4)])
    assert merged((2, 3, 4), [(48, 16, 4)]) == ((24,), [(4,)])
    assert merged((1, 3, 1), [(4, 4, 4)]) == ((3,), [(4,)])
    assert merged((1, 1), [(4, 4)]) == ((), [()])


def test_views_in_another_shape() -> None:
    assert reshaped_strides((2, 3, 4), (48, 16, 4), (6, 4)) == (16, 4)
    assert reshaped_strides((6, 4), (16, 4), (2, 3, 1, 4)) == (48, 16, 0, 4)
    assert reshaped_strides((2, 3), (4, 8), (6,)) is None
    assert reshaped_strides((2, 3), (0, 0), (6,)) == (0,)


def test_strides_in_c_order_and_of_axes_of_one_element() -> None:
    assert dense_strides((2, 3, 4)) == (48, 16, 4)
    assert canonical_strides((2, 1, 4), (16, 999, 4)) == (16, 16, 4)
    assert canonical_strides((1, 1), (0, 0)) == (4, 4)
    for shape, strides, dense in (
        ((2, 3), (12, 4), True),
        ((2, 1, 3), (12, 0, 4), True),
        ((2, 3), (4, 8), False),
        ((2, 3), (24, 8), False),
        ((2, 3), (0, 4), False),
        ((3,), (-4,), False),
        ((), (), True),
    ):
        assert is_dense(Operand("f32", shape, strides)) == dense
    assert is_dense(Operand("f64", (2,), (8,)))


def test_strides_of_what_is_repeated() -> None:
    operand = Operand("f32", (3, 1), (4, 4))
    assert broadcast_strides(operand, (2, 3, 5)) == (0, 4, 0)
    np.testing.assert_array_equal(broadcast_strides(Operand("f32", (), ()), (2, 3)), (0, 0))
