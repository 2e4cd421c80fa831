"""Ops that compute element by element: how one or two tensors are declared, checked and broadcast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irrun.spec import (
    INT,
    NUMERIC,
    Array,
    Attr,
    Input,
    Node,
    Op,
    Output,
    Shape,
    Shapes,
    Size,
    broadcast_shapes,
    choice,
    shape_text,
)

AUTO_BROADCAST = (
    Attr("auto_broadcast", choice("none", "numpy", "pdpd"), "numpy"),
    Attr("auto_broadcast.auto_broadcast_axis", INT, -1),
)
"""How a binary op broadcasts; `pdpd` aligns the second input with the axes of the first from an axis on."""

BROADCAST_CONSTRAINT = """
Constraints:
    C1: the shapes of the inputs fit under auto_broadcast: equal for `none`, aligned at the last axis for `numpy`;
        for `pdpd` the second one fits into the first from auto_broadcast_axis on.
"""


def unary(
    name: str,
    function: Callable[..., Any],
    doc: str,
    *,
    types: frozenset[str] = NUMERIC,
    attrs: Sequence[Attr] = (),
    symbolic: bool = False,
) -> Op:
    """An op of one tensor, whose result has the same type and shape."""
    return Op(
        name,
        function,
        inputs=[Input("data", "T", "[*shape]")],
        outputs=[Output("result", "T", "[*shape]")],
        attrs=attrs,
        types={"T": types},
        symbolic=symbolic,
        doc=doc,
    )


def binary(
    name: str,
    function: Callable[[Any, Any], Any],
    doc: str,
    *,
    types: frozenset[str] = NUMERIC,
    result: str = "T",
    symbolic: bool = False,
) -> Op:
    """An op of two tensors of one type, broadcast as the attribute auto_broadcast says. `doc` ends with its example."""

    def kernel(a: Array, b: Array, *, auto_broadcast: str = "numpy", auto_broadcast_axis: int = -1) -> Any:
        return function(a, aligned(a, b, auto_broadcast, auto_broadcast_axis))

    first, _, rest = doc.partition("\n")
    return Op(
        name,
        kernel,
        inputs=[Input("a", "T", "..."), Input("b", "T", "...")],
        outputs=[Output("result", result, "[*shape]")],
        attrs=AUTO_BROADCAST,
        types={"T": types},
        symbolic=symbolic,
        rule=broadcast_rule,
        doc=f"{first}\n{BROADCAST_CONSTRAINT}{rest}",
    )


def broadcast_rule(node: Node) -> Shapes:
    mode, axis = node.attrs["auto_broadcast"], node.attrs["auto_broadcast_axis"]
    shapes = [node.shape(port.name) for port in node.op.inputs]
    result = broadcast_result(shapes[0], shapes[1], mode, axis)
    if result is None:
        a, b = (f"`{port.name}` is {shape_text(s)}" for port, s in zip(node.op.inputs, shapes, strict=True))
        node.fail("C1", f"{a} and {b}, which do not broadcast ({mode})")
    return {"shape": result}


def broadcast_result(a: Shape, b: Shape, mode: str, axis: int) -> Shape | None:
    """The shape of an element-wise result, or None where the shapes provably do not fit."""
    if mode == "numpy":
        return broadcast_shapes(a, b)
    if mode == "pdpd":
        padded = _aligned_shape(len(a), b, axis)
        if padded is None or any((y == 1) is False and (x == y) is False for x, y in zip(a, padded, strict=True)):
            return None
        return a
    if len(a) != len(b) or any((x == y) is False for x, y in zip(a, b, strict=True)):
        return None
    return tuple(x if isinstance(x, int) else y for x, y in zip(a, b, strict=True))


def aligned(a: Array, b: Array, mode: str, axis: int) -> Array:
    """The second input in a shape that numpy broadcasts with the first as `mode` says."""
    if mode != "pdpd":
        return b
    shape = _aligned_shape(a.ndim, b.shape, axis)
    return b if shape is None else b.reshape(shape)


def _aligned_shape(rank: int, shape: Shape, axis: int) -> tuple[Size, ...] | None:
    """`shape` laid at `axis` (-1: the last axes) of a tensor of that rank; ones that stick out at its end are dropped."""
    start = rank - len(shape) if axis == -1 else axis
    while shape and start + len(shape) > rank and shape[-1] == 1:
        shape = shape[:-1]
    if start < 0 or start + len(shape) > rank:
        return None
    return (1,) * start + tuple(shape) + (1,) * (rank - start - len(shape))
