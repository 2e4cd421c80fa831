"""Condition ops: one of two bodies, one of two elements, and where elements are not zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from irrun.spec import (
    ANY,
    BOOL,
    INDEX,
    INT,
    NUMERIC,
    Array,
    Attr,
    Body,
    Branching,
    Dim,
    Elementwise,
    Input,
    Node,
    Output,
    Shape,
    Shapes,
    Tensor,
    Undecided,
    Whole,
    broadcast_shapes,
    choice,
    fresh,
    numpy_dtype,
    op,
    product,
    shape_text,
)

from ._bodies import UNKNOWN, arguments, check_declared, infer, output_count, parameter_tensors, union
from ._elementwise import AUTO_BROADCAST, aligned, broadcast_result
from ._indexing import places_of

COUNTED = INDEX | {"u8", "u16", "u32", "u64"}
"""Types of numbers that are counted."""

WEIGHTS = INDEX | {"f32", "f64"}


@op(
    "If-8",
    inputs=[Input("cond", "boolean", "[] | [1]"), Input("inputs", "dynamic", "...", variadic=True)],
    outputs=[Output("outputs", "dynamic", "...", variadic=True)],
    traits=[Branching("cond", "then_body", "else_body")],
)
def if_(cond: Array, *inputs: Array, bodies: Mapping[str, Body]) -> Any:
    """Run then_body where cond is true, else else_body. Outputs that differ in shape have the sizes that both have.

    Where it is known which one runs, the other one goes by what its parameters declare, as in OpenVINO: it need not be
    right for these inputs.

    Constraints:
        C1: each body gives all outputs, of which there is at least one.
        C2: both bodies give an output the same element type.
        C3: a parameter of a body gets the element type that it declares. What it gets counts.

    Source: condition/if-8.rst
    """
    body = bodies["then_body" if cond.item() else "else_body"]
    assert body.run is not None, "a body that is run has a program"
    results = body.run(arguments(body, (cond, *inputs)))
    outputs: list[Any] = [None] * output_count(body)
    for port in body.outputs:
        if port.external >= 0:
            outputs[port.external] = results[port.result]
    return outputs


@if_.shapes
def _(node: Node) -> list[Tensor]:
    if len(node.bodies) < 2:  # the reader reports it
        raise Undecided
    tensors = [node.inputs["cond"], *node.inputs["inputs"]]
    cond, count = node.inputs["cond"], output_count(*node.bodies.values())
    idle = ("else_body" if cond.value.item() else "then_body") if cond.known else None
    branches: list[list[Tensor]] = []
    for name in ("then_body", "else_body"):
        body = node.bodies[name]
        given = {port.external for port in body.outputs} - {-1}
        if body.complete and (not count or len(given) != count):
            node.fail("C1", f"`{name}` gives {len(given)} outputs, expected {max(count, 1)}")
        parameters = parameter_tensors(body, tensors)
        for port in body.inputs:
            gets = parameters[port.parameter]
            check_declared(node, "C3", body, port, gets, lenient="goes by the type of the input")
        results = infer(body, parameter_tensors(body, [None] * len(tensors)) if name == idle else parameters)
        branch = [UNKNOWN] * count
        for output in body.outputs:
            if output.external >= 0:
                branch[output.external] = results[output.result]
        branches.append(branch)
    complete = all(body.complete for body in node.bodies.values())  # else outputs may be of other numbers
    for number, (a, b) in enumerate(zip(*branches, strict=True)):
        if complete and "dynamic" not in (a.type, b.type) and a.type != b.type:
            node.fail("C2", f"output {number} is {a.type} in `then_body`, but {b.type} in `else_body`")
    if idle is not None:
        return branches[0 if idle == "else_body" else 1]
    return [union(a, b) for a, b in zip(*branches, strict=True)]


@op(
    "Select-1",
    types={"T": ANY},
    inputs=[Input("cond", "boolean", "..."), Input("then", "T", "..."), Input("else", "T", "...")],
    outputs=[Output("output", "T", "[*output]")],
    attrs=AUTO_BROADCAST,
    symbolic=True,
    self_checking=True,
    traits=[Elementwise(3), Whole()],
)
def select(cond: Array, then: Array, else_: Array, *, auto_broadcast: str, auto_broadcast_axis: int) -> Any:
    """The elements of `then` where cond is true, else those of `else`.

    Deviation: with `numpy` cond may also be larger than both, as OpenVINO allows; by the page it is broadcast one way.
    Constraints:
        C1: the shapes fit under auto_broadcast: equal for `none`, aligned at the last axis for `numpy`; for `pdpd`
            those of `else` and cond fit into that of `then`.

    Source: condition/select-1.rst

    >>> op(np.array([[False, True], [True, False]]), np.array([[1, 2], [3, 4]]), np.array([10, 20])).tolist()
    [[10, 2], [3, 20]]
    """
    mode, axis = auto_broadcast, auto_broadcast_axis
    return np.where(aligned(then, cond, mode, axis), then, aligned(then, else_, mode, axis))


@select.shapes
def _(node: Node) -> Shapes:
    mode = node.attrs["auto_broadcast"]
    shapes = {name: shape for name in ("cond", "then", "else") if (shape := node.inputs[name].shape) is not None}
    if not shapes or (mode == "pdpd" and "then" not in shapes):
        raise Undecided
    result = _selected_shape(shapes, mode, node.attrs["auto_broadcast_axis"])
    if result is None:
        *others, last = [f"`{name}` is {shape_text(shape)}" for name, shape in shapes.items()]
        message = f"{', '.join(others)} and {last}, which do not broadcast ({mode})"
        node.fail("C1", message, about=[*shapes])
    return {"output": result} if len(shapes) == len(node.inputs) else {}


def _selected_shape(shapes: Mapping[str, Shape], mode: str, axis: int) -> Shape | None:
    """The shape that those of the inputs which are known broadcast to, None where they do not."""
    if mode == "numpy":
        return broadcast_shapes(*shapes.values())
    first, *others = [shapes[name] for name in ("then", "else", "cond") if name in shapes]
    result: Shape | None = first
    for shape in others:
        result = None if result is None else broadcast_result(result, shape, mode, axis)
    return result


@op(
    "NonZero-3",
    types={"T": ANY - {"string"}},
    inputs=[Input("data", "T", "...")],
    outputs=[Output("output", "output_type", "[rank, count]")],
    attrs=[Attr("output_type", choice("i64", "i32"), "i64")],
)
def non_zero(data: Array, *, output_type: str) -> Any:
    """The indices of the elements that are not 0, one column for each, in row-major order.

    Source: condition/nonzero-3.rst

    >>> op(np.array([[1, 0], [1, 1]])).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    places = data != 0
    if data.ndim == 0:
        return np.zeros((0, int(places)), numpy_dtype(output_type))
    return places_of(places).astype(numpy_dtype(output_type), copy=False)


@non_zero.shapes
def _(node: Node) -> Shapes:
    data = node.inputs["data"]
    if data.shape is None:
        return {}
    most = product(data.shape)
    count = fresh(0, most.high if isinstance(most, Dim) else most)
    if data.known and data.value.dtype != object:
        return {"rank": len(data.shape), "count": int(np.count_nonzero(data.value != 0))}
    return {"rank": len(data.shape), "count": count}


@op(
    "Bincount-17",
    types={"T_DATA": COUNTED, "T_WEIGHTS": WEIGHTS},
    inputs=[Input("data", "T_DATA", "[N]"), Input("weights", "T_WEIGHTS", "[N]", optional=True)],
    outputs=[Output("output", "dynamic", "[bins]")],
    attrs=[Attr("minlength", INT, 0)],
    opsets=frozenset({17}),
)
def bincount(data: Array, weights: Array | None = None, *, minlength: int) -> Any:
    """How often each number occurs, or the sum of the weights that stand where it does; minlength numbers or more.

    Weights are added up in the order of the data: f32 in f64, integers wrap around. No release of OpenVINO up to
    2026.4.1 has the op.
    Constraints:
        C1: minlength is not negative.
        C2: no number is negative.

    Source: condition/bincount-17.rst

    >>> op(np.array([0, 1, 1, 3, 3])).tolist()
    [1, 2, 0, 2]
    >>> op(np.array([0, 1, 1, 3]), np.array([0.5, 1.0, 2.0, 4.0]), minlength=5).tolist()
    [0.5, 3.0, 0.0, 4.0, 0.0]
    """
    numbers = data.astype(np.int64, copy=False)
    bins = max(int(numbers.max(initial=-1)) + 1, minlength)
    if weights is None:
        return np.bincount(numbers, minlength=bins).astype(np.int64, copy=False)
    if weights.dtype.kind == "f":
        return np.bincount(numbers, weights, bins).astype(weights.dtype, copy=False)
    sums = np.zeros(bins, weights.dtype)  # those of numpy are of f64
    np.add.at(sums, numbers, weights)
    return sums


@bincount.shapes
def _(node: Node) -> list[Tensor]:
    minlength, weights = node.attrs["minlength"], node.inputs.get("weights")
    if minlength < 0:
        node.fail("C1", f"minlength is {minlength}, expected 0 or more", "minlength")
    data = node.value("data")
    most = -1 if data is None or not data.size else int(data.max())
    if data is not None and data.size and int(data.min()) < 0:
        place = int(np.argmax(data < 0))
        node.fail("C2", f"`data[{place}]` is {data[place]}, expected a number that is not negative", "data")
    bins = fresh(minlength) if data is None else max(most + 1, minlength)
    return [Tensor("i64" if weights is None else weights.type, (bins,))]


@op(
    "Bucketize-3",
    types={"T": NUMERIC, "T_BOUNDARIES": NUMERIC},
    inputs=[Input("data", "T", "[*shape]"), Input("buckets", "T_BOUNDARIES", "[num_boundaries]")],
    outputs=[Output("output", "output_type", "[*shape]")],
    attrs=[Attr("output_type", choice("i64", "i32"), "i64", demanded=True), Attr("with_right_bound", BOOL, True)],
    traits=[Elementwise(1)],
)
def bucketize(data: Array, buckets: Array, *, output_type: str, with_right_bound: bool) -> Any:
    """The number of the bucket that each element falls into; a bucket ends at its right boundary or just before it.

    NaN falls into the first bucket, or into the last one without with_right_bound, as in the reference.
    Constraints:
        C1: the boundaries ascend, none is there twice.

    Source: condition/bucketize-3.rst

    >>> op(np.array([[3, 50], [10, -1]]), np.array([0, 5, 10])).tolist()
    [[1, 3], [2, 0]]
    """
    values, boundaries = (a.astype(np.float32) if a.dtype == numpy_dtype("bf16") else a for a in (data, buckets))
    found = np.searchsorted(boundaries, values, "left" if with_right_bound else "right")
    if with_right_bound:
        found = np.where(values != values, 0, found)
    return found.astype(numpy_dtype(output_type))


@bucketize.shapes
def _(node: Node) -> None:
    boundaries = node.value("buckets")
    if boundaries is None:
        return
    falls = np.flatnonzero(~(boundaries[1:] > boundaries[:-1]))
    if falls.size:
        place = int(falls[0])
        low, high = boundaries[place : place + 2]
        message = f"`buckets[{place}]` is {low}, not below `buckets[{place + 1}]`, {high}"
        twice = "gives the empty bucket no elements" if np.all(boundaries[1:] >= boundaries[:-1]) else ""
        node.require("C1", False, message, "buckets", lenient=twice)
