"""Infrastructure ops: inputs, constants and results of a model, its state, and loops."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from irrun.spec import (
    ANY,
    ELEMENT_TYPE,
    INDEX,
    SHAPE,
    STRING,
    STRINGS,
    UNSPECIFIED,
    WHOLE,
    Array,
    Attr,
    Body,
    BodyOutput,
    Dim,
    Input,
    Iterating,
    Node,
    Op,
    Output,
    Reading,
    Shape,
    Size,
    Storing,
    Tensor,
    Undecided,
    Violation,
    element_type,
    fresh,
    incompatible,
    misfit,
    numpy_dtype,
    op,
    product,
    shape_text,
)

from ._bodies import UNKNOWN, bounded, count_slices, fewest, iterate, loop_outputs, settle, slice_count


@op(
    "Parameter-1",
    outputs=[Output("output", "element_type", "...")],
    attrs=[Attr("shape", SHAPE), Attr("element_type", ELEMENT_TYPE)],
    opsets=frozenset(range(1, 18)),
    pure=False,
)
def parameter(*, shape: Any, element_type: str) -> Any:
    """An input of the model, which the caller of the run gives.

    Deviation: the page allows sizes only; files also have unknown ones (`?`, `1..8`) and unknown ranks (`...`).

    Source: infrastructure/parameter-1.rst
    """
    raise NotImplementedError("a Parameter has no kernel: its value is an input of the run")


@parameter.shapes
def _(node: Node) -> list[Tensor]:
    return [Tensor(node.attrs["element_type"], node.attrs["shape"])]


@op(
    "Constant-1",
    outputs=[Output("output", "element_type", "...")],
    attrs=[
        Attr("element_type", ELEMENT_TYPE),
        Attr("shape", SHAPE),
        Attr("offset", WHOLE, least=0),
        Attr("size", WHOLE, least=0),
    ],
    pure=False,
)
def constant(*, element_type: str, shape: Any, offset: int, size: int) -> Any:
    """A tensor that lies in the weights file, `size` bytes long from byte `offset` on. Its IR type is `Const`.

    Deviation: size may be 0, where the shape has no elements.
    Constraints:
        C1: every dimension of shape is known.

    Source: infrastructure/constant-1.rst
    """
    raise NotImplementedError("a Constant has no kernel: its value lies in the weights file")


@constant.shapes
def _(node: Node) -> list[Tensor]:
    shape = node.attrs["shape"]
    if shape is None or any(isinstance(size, Dim) for size in shape):
        node.fail("C1", f"`shape` is {shape_text(shape)}, expected a size for every dimension", about=["shape"])
    return [Tensor(node.attrs["element_type"], shape)]


@op(
    "Result-1",
    types={"T": ANY},
    inputs=[Input("input", "T", "...")],
    attrs=[Attr("output_names", STRINGS, ())],
    symbolic=True,
    view_of="input",
)
def result(input: Array, *, output_names: tuple[str, ...]) -> Any:
    """An output of the model. `output_names` is not in the specification, but files have it.

    Source: infrastructure/result-1.rst

    >>> op(np.array([1, 2])).tolist()
    [1, 2]
    """
    return input


@result.shapes
def _(node: Node) -> list[Tensor]:
    return [node.inputs["input"]]


def _slices(body: Body, tensors: Sequence[Tensor | None]) -> Size | None:
    """How many slices the sliced inputs have; None where none is sliced, or that is unknown."""
    for port in body.inputs:
        tensor = tensors[port.external] if port.axis is not None and port.external >= 0 else None
        if tensor is not None and port.axis is not None and tensor.shape is not None:
            return count_slices(port, tensor.shape[port.axis])
    return None


def _slices_of_all(body: Body, tensors: Sequence[Tensor | None]) -> Size | None:
    """How many slices the sliced inputs would have from one end of the axis to the other, as far as that is known."""
    counts = []
    for port in body.inputs:
        tensor = tensors[port.external] if port.axis is not None and port.external >= 0 else None
        if tensor is not None and port.axis is not None and tensor.shape is not None:
            whole = port._replace(start=0, end=-1, stride=abs(port.stride))
            counts.append(count_slices(whole, tensor.shape[port.axis]))
    return fewest(*counts)


def _slices_of_iterator(body: Body, tensors: Sequence[Tensor | None]) -> Size | None:
    sliced = any(port.axis is not None and port.external >= 0 for port in body.inputs)
    return _slices(body, tensors) if sliced else _iterations(body, [])


@op(
    "TensorIterator-1",
    inputs=[Input("inputs", "dynamic", "...", variadic=True)],
    outputs=[Output("outputs", "dynamic", "...", variadic=True)],
    traits=[Iterating(_slices_of_iterator)],
)
def tensor_iterator(*inputs: Array, bodies: Mapping[str, Body]) -> Any:
    """Run the body once for each slice of its sliced inputs.

    `start` and `end` are the first and the last index that slices cover, `part_size` is the length of a slice, `stride`
    how far the next one is away; negative strides go, and join results, backwards. Without sliced inputs the first
    joined output says how often: |end - start| / part_size times; without any, the body runs once.
    Without a slice it gives carried values as they came, joins nothing to an empty tensor, and has zeros for all else;
    sizes that only an iteration would tell are 0 then.
    Constraints:
        C1: the axis of a sliced input lies within its rank.
        C2: strides are not 0, and part_size is 1 or more.
        C3: start and end lie on the axis, in the order of the stride.
        C4: the slices fill the range from start to end exactly.
        C5: all sliced inputs have equally many slices.
        C6: a parameter of the body gets the element type that it declares, and keeps it in all iterations.
        C7: the axis of a joined output lies within the rank of its result.
        C8: joined results differ in size along their axis only.
        C9: a joined result has part_size elements along its axis.

    Source: infrastructure/tensor-iterator-1.rst
    """
    body = bodies["body"]
    return iterate(body, inputs, _iterations(body, [array.shape for array in inputs]), filled="C9")


@tensor_iterator.shapes
def _(node: Node) -> list[Tensor]:
    body = _body(node)
    tensors = node.inputs["inputs"]
    slices = slice_count(node, body, tensors)
    _check_joins(node, body)
    parameters, results = settle(node, body, tensors)
    count = _iterations(body, []) if slices is None else slices
    outputs = loop_outputs(node, body, tensors, parameters, results, count)
    for port in body.outputs:
        _check_joined(node, "C9", body, tensors, results, port, port.part_size)
        _measure_joined(outputs, port, count)
    return outputs


def _check_joined(
    node: Node,
    label: str,
    body: Body,
    tensors: Sequence[Tensor | None],
    results: Sequence[Tensor],
    port: BodyOutput,
    size: int,
) -> None:
    """A joined result is `size` long along its axis, as its `part_size` or its `stride` says; where slices of inputs
    are why not, these are to blame."""
    whole = results[port.result].shape
    if port.axis is None or whole is None:
        return
    found = (whole or (1,))[port.axis]
    fits = found == size
    of_parts = size == port.part_size
    expected = f"expected {size}" if of_parts else f"but is joined at stride {port.stride}"
    count = str(found) if str(found) != "?" else f"other than {size}"
    message = f"result {port.result} has {count} elements along axis {port.axis}, {expected}"
    if fits is False:
        for source in body.inputs if body.declared else ():
            declared = body.declared[source.parameter].shape
            given = None if source.external < 0 else tensors[source.external]
            off = None if given is None else misfit(source.axis, source.part_size, declared, given.shape)
            if off is not None:
                shape = shape_text(declared)
                why = f"input {source.external} is given to a parameter that declares {shape}, but {off.message}"
                node.fail(label, f"{message}: {why}", place=(source, off.attribute))
    node.require(label, fits, message, place=(port, "part_size" if of_parts else "stride"))


def _measure_joined(outputs: list[Tensor], port: BodyOutput, count: Size) -> None:
    """So many results that are joined are as long as `part_size` says, where their length is unknown."""
    shape = None if port.axis is None or port.external < 0 else outputs[port.external].shape
    if shape is not None and port.axis is not None and isinstance(shape[port.axis], Dim):
        whole = list(shape)
        whole[port.axis] = product((count, port.part_size))
        outputs[port.external] = Tensor(outputs[port.external].type, tuple(whole))


def _check_joins(node: Node, body: Body) -> None:
    for port in body.outputs:
        if port.axis is not None and (port.part_size < 1 or port.stride == 0):
            message = f"result {port.result} is joined with stride {port.stride} and part_size {port.part_size}"
            node.fail("C2", message, place=(port, "part_size" if port.stride else "stride"))


def _body(node: Node) -> Body:
    body = node.bodies.get("body")
    if body is None:  # the reader reports it
        raise Undecided
    return body


def _iterations(body: Body, shapes: list[Any]) -> int:
    """How often a TensorIterator runs its body."""
    for port in body.inputs:
        if port.axis is not None and port.external >= 0:
            return int(count_slices(port, shapes[port.external][port.axis]))
    for output in body.outputs:
        if output.axis is not None:
            return abs(output.end - output.start) // output.part_size
    return 1


def _trips_at_most(body: Body, tensors: Sequence[Tensor | None]) -> Size | None:
    """As if the condition held to the end, and a number that is unknown were not below 0, which means endlessly."""
    trips = None if tensors[0] is None or tensors[0].value is None else tensors[0].value.item()
    return fewest(None if trips is None or (trips >= 0) is False else trips, _slices(body, tensors))


@op(
    "Loop-5",
    types={"T_COUNT": INDEX},
    inputs=[
        Input("trip_count", "T_COUNT", "[] | [1]"),
        Input("execution_condition", "boolean", "[] | [1]"),
        Input("inputs", "dynamic", "...", variadic=True),
    ],
    outputs=[Output("outputs", "dynamic", "...", variadic=True)],
    traits=[Iterating(_trips_at_most)],
)
def loop(trip_count: Array, execution_condition: Array, *inputs: Array, bodies: Mapping[str, Body]) -> Any:
    """Run the body trip_count times (endlessly if negative), as long as the condition holds and there are slices.

    A loop without iterations gives carried values as they came, joins nothing to an empty tensor, and has zeros for all
    else; sizes that only an iteration would tell are 0 then.
    Deviation: OpenVINO's CPU plugin gives tensors of size 0 where the condition is false from the start; it slices all
    of an axis, whatever start and end are; where that has fewer slices than there are iterations it fails, and its
    reference takes the last slice again.
    Constraints:
        C1: the axis of a sliced input lies within its rank.
        C2: strides are not 0, and part_size is 1 or more.
        C3: start and end lie on the axis, in the order of the stride.
        C4: the slices fill the range from start to end exactly.
        C5: all sliced inputs have equally many slices.
        C6: a parameter of the body gets the element type that it declares, and keeps it in all iterations.
        C7: the axis of a joined output lies within the rank of its result.
        C8: joined results differ in size along their axis only.
        C9: a result of the body is the execution_condition.
        C10: the execution_condition of the body is one boolean.
        C11: the current_iteration of the body is one i32 or i64.
        C12: a joined result has as many elements along its axis as a step of stride. (The page has no stride for
            outputs; OpenVINO refuses other results.)

    Source: infrastructure/loop-5.rst
    """
    body = bodies["body"]
    arrays = (trip_count, execution_condition, *inputs)
    trips = int(trip_count.item())
    sliced = any(port.axis is not None and port.external >= 0 for port in body.inputs)
    slices = _iterations(body, [array.shape for array in arrays]) if sliced else None
    most = fewest(None if trips < 0 else trips, slices)
    go = bool(execution_condition.item())
    return iterate(body, arrays, most, go, _condition(body), single="C10")  # type: ignore[arg-type]


@loop.shapes
def _(node: Node) -> list[Tensor]:
    body = _body(node)
    tensors = [node.inputs["trip_count"], node.inputs["execution_condition"], *node.inputs["inputs"]]
    condition = _condition(body)
    if condition is None and body.complete:
        inner = next(((port, "") for port in body.outputs if port.external < 0), None)
        message = "the port map has no <output> with the purpose `execution_condition`"
        node.fail("C9", message, about=["execution_condition"], place=inner)
    _check_counters(node, body)
    _check_joins(node, body)
    slices = slice_count(node, body, tensors)
    most = _most(node, slices)
    parameters, results = settle(node, body, tensors, most)
    goes_on = UNKNOWN if condition is None else results[condition]
    if goes_on.type not in ("boolean", "dynamic") or not _single(goes_on.shape):
        found = f"{goes_on.type}{shape_text(goes_on.shape)}"
        at = next(port for port in body.outputs if port.purpose == "execution_condition"), ""
        node.fail("C10", f"result {condition} of the body is {found}, expected one boolean", place=at)
    trips = _trips(node, most, goes_on)
    wanted = node.size("trip_count")
    if isinstance(wanted, int) and isinstance(slices, int) and (trips == slices) is True and slices < wanted:
        whole = _slices_of_all(body, tensors)
        more = isinstance(whole, int) and whole >= wanted
        does = "slices all of the axis" if more else "fails behind these"
        message = f"`trip_count` is {wanted}, but there are {slices} slices: OpenVINO {does}, here it ends"
        node.warn(message, "trip_count", UNSPECIFIED)
    outputs = loop_outputs(node, body, tensors, parameters, results, trips)
    for port in body.outputs if (trips == 0) is not True else ():
        _check_joined(node, "C12", body, tensors, results, port, abs(port.stride))
    return outputs


def _condition(body: Body) -> int | None:
    """The number of the result that says whether to go on."""
    return next((port.result for port in body.outputs if port.purpose == "execution_condition"), None)


def _check_counters(node: Node, body: Body) -> None:
    for port in body.inputs:
        if port.purpose == "current_iteration" and body.declared:
            declared = body.declared[port.parameter]
            if declared.type not in INDEX | {"dynamic"} or not _single(declared.shape):
                found = f"{declared.type}{shape_text(declared.shape)}"
                message = f"parameter {port.parameter} of the body is {found}, expected one i32 or i64"
                node.fail("C11", message, place=(port, ""))


def _single(shape: Shape | None) -> bool:
    """Whether a shape may be one of a scalar or of a vector with one element."""
    return shape is None or (len(shape) < 2 and (product(shape) == 1) is not False)


def _most(node: Node, slices: Size | None) -> Size | None:
    """How often a Loop runs its body at most; None where there is no end to it."""
    trips: Size | None = node.size("trip_count")
    if isinstance(trips, int) and trips < 0:
        trips = None
    elif trips is not None and (trips >= 0) is not True:
        trips = fresh()
    return fewest(trips, slices)


def _trips(node: Node, most: Size | None, goes_on: Tensor) -> Size:
    """How often a Loop runs its body, `most` times or less, as far as that is known."""
    start = node.value("execution_condition")
    if start is not None and not start.item():
        return 0
    if start is None:
        return 0 if isinstance(most, int) and most == 0 else fresh() if most is None else bounded(most)
    going = goes_on.value.item() if goes_on.value is not None and goes_on.known else None
    if going is False:
        most = fewest(most, 1)
        assert most is not None
        return most
    if going is None or most is None:
        least = 1 if most is None or (most >= 1) is True else 0
        return fresh(1) if most is None else bounded(most, least)
    return most


VARIABLE = Attr("variable_id", STRING)


def _check_variable(node: Node) -> None:
    if not node.attrs["variable_id"]:
        node.fail("C1", "`variable_id` is empty", about=["variable_id"])


@op(
    "ReadValue-3",
    types={"T": ANY},
    inputs=[Input("init_value", "T", "[*shape]")],
    outputs=[Output("value", "T", "[*shape]")],
    attrs=[VARIABLE],
    opsets=frozenset({3, 4, 5}),
    view_of="init_value",
    pure=False,
)
def read_value_3(init_value: Array, *, variable_id: str, state: MutableMapping[str, Array]) -> Any:
    """The value that an Assign has stored under variable_id, or init_value where there is none.

    Constraints:
        C1: variable_id is not empty.
        C2: the stored value has the element type and the shape of init_value.

    Source: infrastructure/read-value-3.rst
    """
    stored = state.get(variable_id)
    if stored is None:
        return init_value
    if (stored.dtype != init_value.dtype and stored.dtype.kind != "U") or stored.shape != init_value.shape:
        found, expected = (
            f"{element_type(stored.dtype)}{shape_text(stored.shape)}",
            f"{element_type(init_value.dtype)}{shape_text(init_value.shape)}",
        )
        raise Violation(
            "C2",
            f"variable `{variable_id}` is {found}, but `init_value` is {expected}",
            about=["init_value"],
        )
    return stored


@read_value_3.shapes
def _(node: Node) -> None:
    _check_variable(node)


@op(
    "ReadValue-6",
    of=read_value_3,
    inputs=[Input("init_value", "T", "...", optional=True)],
    outputs=[Output("value", "variable_type", "...")],
    attrs=[VARIABLE, Attr("variable_type", ELEMENT_TYPE), Attr("variable_shape", SHAPE)],
    traits=[Reading("variable_id", "variable_shape")],
)
def read_value(
    init_value: Array | None = None,
    *,
    variable_id: str,
    variable_type: str,
    variable_shape: Shape | None,
    state: MutableMapping[str, Array],
) -> Any:
    """The value that an Assign has stored under variable_id; where there is none, init_value, or else zeros.

    The zeros have the shape variable_shape; its unknown sizes, or all of it, are 0.
    Constraints:
        C1: variable_id is not empty.
        C2: variable_shape covers the shape of init_value.
        C3: variable_type is the element type of init_value; it may be dynamic where there is an init_value.
        C4: the stored value has the type variable_type and a shape that variable_shape covers.

    Source: infrastructure/read-value-6.rst
    """
    stored = state.get(variable_id)
    if stored is None:
        if init_value is not None:
            return init_value
        shape = (0,) if variable_shape is None else variable_shape
        return np.zeros(tuple(0 if isinstance(size, Dim) else size for size in shape), numpy_dtype(variable_type))
    same_type = variable_type == "dynamic" or stored.dtype.kind == "U" or stored.dtype == numpy_dtype(variable_type)
    if not same_type or incompatible(variable_shape, stored.shape):
        found, expected = (
            f"{element_type(stored.dtype)}{shape_text(stored.shape)}",
            f"{variable_type}{shape_text(variable_shape)}",
        )
        raise Violation("C4", f"variable `{variable_id}` is {found}, expected {expected}")
    return stored


@read_value.shapes
def _(node: Node) -> list[Tensor]:
    _check_variable(node)
    type, shape = node.attrs["variable_type"], node.attrs["variable_shape"]
    init = node.inputs["init_value"]
    if init is None:
        if type == "dynamic":
            node.fail(
                "C3",
                "`variable_type` is dynamic, expected a type: there is no `init_value` to give it",
                about=["variable_type", "init_value"],
            )
        return [Tensor(type, shape)]
    if incompatible(shape, init.shape):
        found, expected = shape_text(init.shape), shape_text(shape)
        node.fail(
            "C2", f"`init_value` is {found}, but `variable_shape` is {expected}", "init_value", about=["variable_shape"]
        )
    if "dynamic" not in (type, init.type) and init.type != type:
        node.fail(
            "C3", f"`init_value` is {init.type}, but `variable_type` is {type}", "init_value", about=["variable_type"]
        )
    return [Tensor(init.type if type == "dynamic" else type, shape)]


def _assign(new_value: Array, *, variable_id: str, state: MutableMapping[str, Array]) -> Any:
    state[variable_id] = new_value
    return new_value


ASSIGN = """Store a tensor under variable_id, for ReadValue in the next run, and pass it on.

Constraints:
    C1: variable_id is not empty.

Source: infrastructure/assign-{version}.rst
"""


def _assign_op(version: int, opsets: frozenset[int] | None) -> Op:
    return Op(
        f"Assign-{version}",
        _assign,
        inputs=[Input("new_value", "T", "[*shape]")],
        outputs=[Output("value", "T", "[*shape]")],
        attrs=[VARIABLE],
        types={"T": ANY},
        opsets=opsets,
        view_of="new_value",
        pure=False,
        rule=_check_variable,
        traits=[Storing("variable_id")],
        doc=ASSIGN.format(version=version),
    )


assign_3 = _assign_op(3, frozenset({3, 4, 5}))
assign_6 = _assign_op(6, None)
