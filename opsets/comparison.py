"""Comparison ops: two tensors compared element by element, and elements tested for being finite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from irrun.spec import ANY, BOOL, FLOAT, Array, Attr, Tensor

from ._elementwise import binary, dtype_of, unary

equal = binary(
    "Equal-1",
    "equal",
    """Whether elements are equal. NaN equals nothing.

    Source: comparison/equal-1.rst

    >>> op(np.array([1, 2, 3]), np.array([1, 0, 3])).tolist()
    [True, False, True]
    """,
    types=ANY,
    result="boolean",
    symbolic=True,
    commutative=True,
)

not_equal = binary(
    "NotEqual-1",
    "not_equal",
    """Whether elements differ. NaN differs from everything.

    Source: comparison/notequal-1.rst

    >>> op(np.array([1, 2, 3]), np.array([1, 0, 3])).tolist()
    [False, True, False]
    """,
    types=ANY,
    result="boolean",
    symbolic=True,
    commutative=True,
)

greater = binary(
    "Greater-1",
    "greater",
    """Whether elements of a are greater than those of b. False where one is NaN.

    Source: comparison/greater-1.rst

    >>> op(np.array([1, 2, 3]), np.array(2)).tolist()
    [False, False, True]
    """,
    types=ANY,
    result="boolean",
    symbolic=True,
)

greater_equal = binary(
    "GreaterEqual-1",
    "greater_equal",
    """Whether elements of a are greater than those of b, or equal. False where one is NaN.

    Source: comparison/greater-equal-1.rst

    >>> op(np.array([1, 2, 3]), np.array(2)).tolist()
    [False, True, True]
    """,
    types=ANY,
    result="boolean",
    symbolic=True,
)

less = binary(
    "Less-1",
    "less",
    """Whether elements of a are less than those of b. False where one is NaN.

    Source: comparison/less-1.rst

    >>> op(np.array([1, 2, 3]), np.array(2)).tolist()
    [True, False, False]
    """,
    types=ANY,
    result="boolean",
    symbolic=True,
)

less_equal = binary(
    "LessEqual-1",
    "less_equal",
    """Whether elements of a are less than those of b, or equal. False where one is NaN.

    Source: comparison/lessequal-1.rst

    >>> op(np.array([1, 2, 3]), np.array(2)).tolist()
    [True, True, False]
    """,
    types=ANY,
    result="boolean",
    symbolic=True,
)

is_finite = unary(
    "IsFinite-10",
    "isfinite",
    """Whether elements are neither infinite nor NaN.

    Source: comparison/isfinite-10.rst

    >>> op(np.array([np.nan, 2.1, 3.7, np.inf])).tolist()
    [False, True, True, False]
    """,
    types=FLOAT,
    result="boolean",
)


@is_finite.decomposes
def _(make: Callable[..., Any], tensors: Mapping[str, Tensor | None], attrs: Mapping[str, Any]) -> Any:
    return make("Less-1", make("Abs-1", "data"), np.array(np.inf, dtype_of(tensors["data"])))


def _is_inf(data: Array, *, detect_negative: bool, detect_positive: bool) -> Any:
    if detect_negative and detect_positive:
        return np.isinf(data)
    if not (detect_negative or detect_positive):
        return np.zeros(data.shape, np.bool_)
    return data == data.dtype.type(np.inf if detect_positive else -np.inf)


is_inf = unary(
    "IsInf-10",
    _is_inf,
    """Whether elements are infinite; an infinity whose sign is not to be detected gives false.

    Source: comparison/isinf-10.rst

    >>> op(np.array([-np.inf, 1.0, np.inf]), detect_negative=False).tolist()
    [False, False, True]
    """,
    types=FLOAT,
    result="boolean",
    attrs=[Attr("detect_negative", BOOL, True), Attr("detect_positive", BOOL, True)],
)


@is_inf.decomposes
def _(make: Callable[..., Any], tensors: Mapping[str, Tensor | None], attrs: Mapping[str, Any]) -> Any:
    negative, positive = attrs["detect_negative"], attrs["detect_positive"]
    if not (negative or positive):
        return make("Broadcast-3", np.array(False), make("ShapeOf-3", "data", output_type="i64"))
    data = make("Abs-1", "data") if negative and positive else "data"
    return make("Equal-1", data, np.array(np.inf if positive else -np.inf, dtype_of(tensors["data"])))


is_nan = unary(
    "IsNaN-10",
    "isnan",
    """Whether elements are NaN.

    Source: comparison/isnan-10.rst

    >>> op(np.array([np.nan, 2.1, 3.7, np.nan, np.inf])).tolist()
    [True, False, False, True, False]
    """,
    types=FLOAT,
    result="boolean",
)


@is_nan.decomposes
def _(make: Callable[..., Any], tensors: Mapping[str, Tensor | None], attrs: Mapping[str, Any]) -> Any:
    return make("NotEqual-1", "data", "data")
