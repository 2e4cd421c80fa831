"""Ops that compute element by element: how one or two tensors are declared, checked, broadcast and rounded."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import cleandoc
from typing import Any

import numpy as np

from irrun.spec import (
    INT,
    NUMERIC,
    Array,
    Attr,
    Bounded,
    Elementwise,
    Input,
    Node,
    Op,
    Output,
    Shape,
    Shapes,
    Size,
    Tensor,
    Trait,
    Waning,
    Whole,
    broadcast_shapes,
    choice,
    incompatible,
    meet,
    numpy_dtype,
    quiet,
    shape_text,
)

AUTO_BROADCAST = (
    Attr("auto_broadcast", choice("none", "numpy", "pdpd"), "numpy", words=(("explicit", "none"),)),
    Attr("auto_broadcast.auto_broadcast_axis", INT, -1),
)
"""How a binary op broadcasts; `pdpd` aligns the second input with the axes of the first from an axis on."""

Function = Callable[..., Any] | str
"""A function of arrays; one of numpy's by its name, so that to declare an op loads no numpy."""

BROADCAST_CONSTRAINT = """
Constraints:
    C1: the shapes of the inputs fit under auto_broadcast: equal for `none`, aligned at the last axis for `numpy`;
        for `pdpd` the second one fits into the first from auto_broadcast_axis on.
"""


_OPERATORS: dict[str, Callable[..., Any]] = {
    "absolute": abs,
    "add": operator.add,
    "mod": operator.mod,
    "multiply": operator.mul,
    "negative": operator.neg,
    "subtract": operator.sub,
}
"""What calls functions of numpy for its arrays, and does the same for others."""


def dtype_of(tensor: Tensor | None) -> np.dtype[Any]:
    """What numbers that are computed with a tensor have for a type. Raises ValueError where that is not known."""
    if tensor is None or tensor.type not in NUMERIC:
        raise ValueError("the type of its input is not known")
    return numpy_dtype(tensor.type)


def called(function: Function) -> Callable[..., Any]:
    if not isinstance(function, str):
        return function
    if function in _OPERATORS:
        return _OPERATORS[function]
    return lambda *arrays, **keywords: getattr(np, function)(*arrays, **keywords)


def unary(
    name: str,
    function: Function,
    doc: str,
    *,
    types: frozenset[str] = NUMERIC,
    lenient_types: frozenset[str] = frozenset(),
    result: str = "T",
    attrs: Sequence[Attr] = (),
    opsets: frozenset[int] | None = None,
    symbolic: bool = False,
    view_of: str | None = None,
    least: float | None = None,
    whole: bool = False,
    waning: bool = False,
) -> Op:
    """An op of one tensor, whose result has the same shape, and the same type unless `result` names another.

    No number in it is below `least`, if that is given. `whole` and `waning` are the traits of these names.
    """

    compute = called(function)
    traits: list[Trait] = [Elementwise(1), *([] if least is None else [Bounded(lambda _: least)])]
    traits += [trait for trait, has in ((Whole(), whole), (Waning(), waning)) if has]

    def kernel(data: Array, **attributes: Any) -> Any:
        with quiet(data):
            return compute(data, **attributes)

    return Op(
        name,
        kernel,
        inputs=[Input("data", "T", "[*shape]")],
        outputs=[Output("result", result, "[*shape]")],
        attrs=attrs,
        types={"T": types},
        lenient_types={"T": lenient_types},
        opsets=opsets,
        symbolic=symbolic,
        view_of=view_of,
        self_checking=True,
        traits=traits,
        doc=doc,
    )


def binary(
    name: str,
    function: Function,
    doc: str,
    *,
    types: frozenset[str] = NUMERIC,
    result: str = "T",
    opsets: frozenset[int] | None = None,
    symbolic: bool = False,
    commutative: bool = False,
    whole: bool = False,
    rule: Callable[[Node], Shapes] | None = None,
    constraints: str = BROADCAST_CONSTRAINT,
) -> Op:
    """An op of two tensors of one type, broadcast as the attribute auto_broadcast says. `doc` ends with its example.

    `constraints` documents what `rule` checks, which is the broadcasting unless more is given. `whole` is the trait of
    that name.
    """

    compute = called(function)
    elementwise = Elementwise(2, commutative, function=function if isinstance(function, str) else None)

    def kernel(a: Array, b: Array, *, auto_broadcast: str, auto_broadcast_axis: int) -> Any:
        with quiet(a, b):
            return compute(a, aligned(a, b, auto_broadcast, auto_broadcast_axis))

    first, _, rest = cleandoc(doc).partition("\n")
    return Op(
        name,
        kernel,
        inputs=[Input("a", "T", "..."), Input("b", "T", "...")],
        outputs=[Output("result", result, "[*shape]")],
        attrs=AUTO_BROADCAST,
        types={"T": types},
        opsets=opsets,
        symbolic=symbolic,
        self_checking=rule is None,
        traits=[elementwise, *([Whole()] if whole else [])],
        rule=rule or broadcast_rule,
        doc=f"{first}\n{constraints}{rest}",
    )


def nearest(values: Array) -> Any:
    """`values` rounded to integers, halves away from zero; the sign of a zero is kept."""
    whole = np.trunc(values)
    return whole + np.copysign(np.abs(values - whole) >= 0.5, values)


def real(function: Function, whole: Function = nearest) -> Callable[..., Any]:
    """`function`, which is written for f32 and f64 arrays of rank 1 or more, for every type and rank.

    16-bit floats are computed in f32 and rounded once. Integers are computed in f64 and made `whole`; a result that
    their type does not hold, NaN included, is the lowest value of the type. All inputs have the type of the first one,
    whose shape the result has.
    """

    function, whole = called(function), called(whole)

    @wraps(function)
    def compute(*inputs: Array | None, **attributes: Any) -> Any:
        data = inputs[0]
        assert data is not None
        dtype = data.dtype
        integer = dtype.kind in "iu"
        wide = np.dtype(np.float64) if integer else np.dtype(np.float32) if dtype.itemsize == 2 else dtype
        arrays = [None if item is None else np.atleast_1d(item).astype(wide, copy=False) for item in inputs]
        with np.errstate(all="ignore"):
            result = function(*arrays, **attributes).reshape(data.shape)
            return _held(whole(result), dtype) if integer else result.astype(dtype, copy=False)

    return compute


def _held(values: Any, dtype: np.dtype[Any]) -> Any:
    limits = np.iinfo(dtype)
    inside = (values >= limits.min) & (values < float(limits.max) + 1)  # NaN is on neither side
    return np.where(inside, values, limits.min).astype(dtype)


def broadcast_rule(node: Node) -> Shapes:
    mode, axis = node.attrs["auto_broadcast"], node.attrs["auto_broadcast_axis"]
    shapes = [node.shape(port.name) for port in node.op.inputs]
    result = broadcast_result(shapes[0], shapes[1], mode, axis)
    if result is None:
        a, b = (f"`{port.name}` is {shape_text(s)}" for port, s in zip(node.op.inputs, shapes, strict=True))
        where = f"pdpd from axis {axis}" if mode == "pdpd" and axis != -1 else mode
        node.fail("C1", f"{a} and {b}, which do not broadcast ({where})", about=[port.name for port in node.op.inputs])
    return {"shape": result}


def broadcast_result(a: Shape, b: Shape, mode: str, axis: int) -> Shape | None:
    """The shape of an element-wise result, or None where the shapes provably do not fit."""
    if mode == "numpy":
        return broadcast_shapes(a, b)
    if mode == "pdpd":
        padded = _aligned_shape(len(a), b, axis)
        if padded is None or any((y == 1) is False and (x == y) is False for x, y in zip(a, padded, strict=True)):
            return None
        return tuple(meet(x, y) if (y == 1) is False else x for x, y in zip(a, padded, strict=True))
    if incompatible(a, b):
        return None
    return tuple(map(meet, a, b))


def aligned(a: Array, b: Array, mode: str, axis: int) -> Array:
    """The second input in a shape that numpy broadcasts with the first as `mode` says."""
    if mode != "pdpd":
        return b
    shape = _aligned_shape(a.ndim, b.shape, axis)
    return b if shape is None else b.reshape(shape)


def _aligned_shape(rank: int, shape: Shape, axis: int) -> tuple[Size, ...] | None:
    """`shape` laid at `axis` (-1: the last axes) of `rank` axes; ones that stick out at the end are dropped."""
    start = rank - len(shape) if axis == -1 else axis
    while shape and start + len(shape) > rank and shape[-1] == 1:
        shape = shape[:-1]
    if start < 0 or start + len(shape) > rank:
        return None
    return (1,) * start + tuple(shape) + (1,) * (rank - start - len(shape))
