"""Bodies: how If, TensorIterator and Loop hand tensors to them and take what they give, in a run and before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irrun.spec import (
    Array,
    Body,
    BodyInput,
    BodyOutput,
    Dim,
    Node,
    Shape,
    Size,
    Sizes,
    Tensor,
    Violation,
    fresh,
    largest,
    numpy_dtype,
    product,
    shape_text,
    smallest,
)

UNKNOWN = Tensor("dynamic", None)
MAX_ROUNDS = 8
"""Rounds that a loop gets to settle what it carries from one iteration to the next; two are usual."""


# What If, Loop and TensorIterator have in common


def arguments(body: Body, arrays: Sequence[Array | None]) -> list[Any]:
    """The arrays that the parameters of the body get as they are; a parameter that gets none has nothing to read it."""
    parameters: list[Any] = [None] * body.parameters
    for port in body.inputs:
        if port.external >= 0:
            parameters[port.parameter] = arrays[port.external]
    if any(array is None for array in parameters):
        fillers = [_filler(tensor) for tensor in body.declared] or [np.zeros(0)] * body.parameters
        return [filler if array is None else array for array, filler in zip(parameters, fillers, strict=True)]
    return parameters


def parameter_tensors(body: Body, tensors: Sequence[Tensor | None]) -> list[Tensor]:
    """What is known of the parameters of the body in the first iteration: what they declare, where nothing else is."""
    parameters = [UNKNOWN] * body.parameters
    for port in body.inputs:
        tensor = tensors[port.external] if port.external >= 0 else None
        if tensor is not None:
            parameters[port.parameter] = tensor if port.axis is None else _part_tensor(tensor, port)
    if not body.declared:
        return parameters
    return [
        Tensor(tensor.type, declared.shape) if tensor.shape is None else tensor
        for tensor, declared in zip(parameters, body.declared, strict=True)
    ]


def infer(body: Body, parameters: Sequence[Tensor]) -> list[Tensor]:
    return [UNKNOWN] * body.results if body.infer is None else body.infer(parameters)


def output_count(*bodies: Body) -> int:
    """How many outputs an op has that gets them from `bodies`."""
    return max((port.external for body in bodies for port in body.outputs), default=-1) + 1


def union(a: Tensor, b: Tensor) -> Tensor:
    """What is known of a tensor that is `a` or `b`."""
    type = b.type if a.type == "dynamic" else a.type
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return Tensor(type, None)
    return Tensor(type, tuple(_either(x, y) for x, y in zip(a.shape, b.shape, strict=True)))


def _either(a: Size, b: Size) -> Size:
    if (a == b) is True:
        return a
    lows = [size.low if isinstance(size, Dim) else size for size in (a, b)]
    highs = [size.high if isinstance(size, Dim) else size for size in (a, b)]
    high = None if highs[0] is None or highs[1] is None else max(highs[0], highs[1])
    return fresh(min(low or 0 for low in lows), high)


def _filler(tensor: Tensor) -> Array:
    """An array of what is known of a tensor; unknown sizes are 0."""
    shape = tuple(0 if isinstance(size, Dim) else size for size in tensor.shape or ())
    return np.zeros(shape, np.uint8 if tensor.type == "dynamic" else numpy_dtype(tensor.type))


# Slices


def slice_count(node: Node, body: Body, tensors: Sequence[Tensor | None]) -> Size | None:
    """How many slices the sliced inputs have, all the same number; None where no input is sliced."""
    counts: list[tuple[BodyInput, Size]] = []
    for port in body.inputs:
        if port.axis is None or port.external < 0:
            continue
        name = f"input {port.external}"
        if port.stride == 0 or port.part_size < 1:
            at = port, "part_size" if port.stride else "stride"
            node.fail("C2", f"{name} is sliced with stride {port.stride} and part_size {port.part_size}", place=at)
        tensor = tensors[port.external]
        shape = tensor.shape if tensor is not None else None
        if shape is None:
            counts.append((port, fresh()))
            continue
        if not -len(shape) <= port.axis < len(shape):
            node.fail(
                "C1", f"{name} is sliced along axis {port.axis}, outside its rank {len(shape)}", place=(port, "axis")
            )
        counts.append((port, _checked_count(node, port, shape[port.axis])))
    carried = {parameter for _, parameter in body.back_edges}
    for port, count in counts[1:]:
        first, expected = counts[0]
        message = f"input {port.external} has {count} slices, but input {first.external} has {expected}"
        wrong = first if first.parameter in carried and port.parameter not in carried else port
        node.require("C5", count == expected, message, place=(wrong, ""))
    known = [count for _, count in counts if isinstance(count, int)]
    return known[0] if known else counts[0][1] if counts else None


def _checked_count(node: Node, port: BodyInput, size: Size) -> Size:
    first, last = _span(port, size)
    where = f"start {port.start} and end {port.end} of input {port.external}, whose axis has {size} elements"
    node.require("C3", first >= 0, f"{where}, lie before it", place=(port, ""))
    node.require("C3", last < size, f"{where}, lie behind it", place=(port, ""))
    length = last - first + 1
    wrong = f"{where}, are in the wrong order for stride {port.stride}"
    least = 1 if isinstance(size, int) and size else 0  # what is empty has no slices
    node.require("C3", length >= least, wrong, place=(port, "stride"))
    rest = (length - port.part_size) % abs(port.stride)
    message = (
        f"input {port.external} has {length} elements from start to end, which slices of {port.part_size} elements"
    )
    if (length == 0) is not True:
        node.require("C4", rest == 0, f"{message} at stride {port.stride} do not fill", place=(port, "part_size"))
    count = count_slices(port, size)
    return count.within(0) if isinstance(count, Dim) else count


def count_slices(port: BodyInput, size: Size) -> Size:
    """How many slices of an axis with `size` elements there are."""
    first, last = _span(port, size)
    length = last - first + 1
    step = abs(port.stride)
    return length // step if step == port.part_size else largest(0, (length - port.part_size) // step + 1)


def _span(port: BodyInput, size: Size) -> tuple[Size, Size]:
    """The lowest and the highest index that are sliced; `start` and `end` are both included."""
    start, end = (size + index if index < 0 else index for index in (port.start, port.end))
    return (start, end) if port.stride > 0 else (end, start)


def _is_sliced(port: BodyInput) -> bool:
    return port.axis is not None and port.external >= 0


def _parts(array: Array, port: BodyInput) -> Callable[[int], Array]:
    """The slice of an array that an iteration gets, by its number."""
    axis = (port.axis or 0) % array.ndim
    first, last = _span(port, array.shape[axis])
    low = int(first if port.stride > 0 else last - port.part_size + 1)
    before = (slice(None),) * axis
    stride, size = port.stride, port.part_size

    def part(number: int) -> Array:
        begin = low + number * stride
        found: Array = array[(*before, slice(begin, begin + size))]
        return found

    return part


def _part_tensor(tensor: Tensor, port: BodyInput) -> Tensor:
    if tensor.shape is None or port.axis is None:
        return Tensor(tensor.type, None)
    shape = list(tensor.shape)
    shape[port.axis] = port.part_size
    return Tensor(tensor.type, tuple(shape))


# Running


def iterate(
    body: Body,
    arrays: Sequence[Array],
    most: int | None = None,
    go: bool = True,
    condition: int | None = None,
    *,
    single: str = "",
    filled: str | None = None,
) -> tuple[Any, ...]:
    """Run the body at most `most` times, as long as `go` and then its result number `condition` hold.

    `single` is the label of the constraint that this is one element, and `filled` that of the one that joined results
    have part_size elements along their axis.
    """
    assert body.run is not None, "a body that is run has a program"
    parameters = arguments(body, arrays)
    sliced = [(port.parameter, _parts(arrays[port.external], port)) for port in body.inputs if _is_sliced(port)]
    sliced += [(parameter, _counters(body, parameter)) for parameter in _counting(body)]
    for port in body.inputs:
        if port.purpose == "current_iteration" and port.external < 0:
            parameters[port.parameter] = _counters(body, port.parameter)(0)
    joined = [(port.result, port.external) for port in body.outputs if port.axis is not None and port.external >= 0]
    collected: dict[int, list[Any]] = {external: [] for _, external in joined}
    results: list[Any] | None = None
    number = 0
    while go and (most is None or number < most):
        for parameter, part in sliced:
            parameters[parameter] = part(number)
        results = body.run(parameters)
        for result, external in joined:
            collected[external].append(results[result])
        for result, parameter in body.back_edges:
            parameters[parameter] = results[result]
        if condition is not None:
            goes_on = results[condition]
            if goes_on.size != 1:
                found = f"result {condition} of the body is boolean{shape_text(goes_on.shape)}"
                raise Violation(single, f"{found}, expected one boolean")
            go = bool(goes_on.item())
        number += 1
    outputs: list[Any] = [None] * output_count(body)
    blank = _blank_results(body, arrays, most) if results is None else []
    carried = {result: parameters[parameter] for result, parameter in body.back_edges}
    for output in body.outputs:
        if output.external < 0:
            continue
        if output.axis is not None:
            outputs[output.external] = _joined(output, collected[output.external], blank, filled)
        elif results is not None:
            outputs[output.external] = results[output.result]
        else:
            outputs[output.external] = carried.get(output.result, blank[output.result])
    return tuple(outputs)


def _counting(body: Body) -> list[int]:
    """The parameters that count the iterations."""
    carried = {parameter for _, parameter in body.back_edges}
    found = (port.parameter for port in body.inputs if port.purpose == "current_iteration")
    return [parameter for parameter in found if parameter not in carried]


def _counted(body: Body, parameters: list[Tensor], most: Size | None) -> list[Tensor]:
    """The parameters with what those that count hold in any of `most` iterations or less."""
    known = list(parameters)
    for number in _counting(body) if body.declared else ():
        known[number] = _counter(body.declared[number], most.high if isinstance(most, Dim) else most)
    return known


def _counter(declared: Tensor, most: int | None) -> Tensor:
    if declared.type not in ("i32", "i64") or not declared.static or declared.shape not in ((), (1,)):
        return declared
    number = 0 if most is not None and most <= 1 else fresh(0, None if most is None else most - 1)
    return replace(declared, content=Sizes([number], declared.shape, declared.type))


def _counters(body: Body, parameter: int) -> Callable[[int], Array]:
    """The array that a parameter which counts gets in an iteration."""
    declared = body.declared[parameter] if body.declared else UNKNOWN
    dtype = np.int32 if declared.type == "i32" else np.int64
    if declared.shape == ():
        return lambda number: np.array(number, dtype)
    return lambda number: np.array([number], dtype)


def _joined(output: BodyOutput, parts: Sequence[Array], blank: Sequence[Array], filled: str | None) -> Array:
    """The results of all iterations, one behind the other, or before it where stride is negative."""
    lines = [part.reshape(1) if part.ndim == 0 else part for part in parts or [blank[output.result]]]
    axis = (output.axis or 0) % lines[0].ndim
    if not parts:
        return np.take(lines[0], [], axis)
    first = lines[0].shape
    for number, line in enumerate(lines):
        shape = line.shape
        if shape != first and (shape[:axis], shape[axis + 1 :]) != (first[:axis], first[axis + 1 :]):
            raise Violation(
                "C8",
                f"output {output.external} joins {shape_text(first)} of the first iteration "
                f"and {shape_text(shape)} of iteration {number} along axis {axis}",
            )
        if filled is not None and shape[axis] != output.part_size:
            size = f"{shape[axis]} elements along axis {axis}, expected {output.part_size}"
            raise Violation(filled, f"result {output.result} has {size}")
    return np.concatenate(lines[::-1] if output.stride < 0 else lines, axis)


def _blank_results(body: Body, arrays: Sequence[Array], most: int | None) -> list[Array]:
    """Zeros in place of the results of a body that does not run, of the sizes that they would have if it did.

    Where it could not with these arrays, the results are what they are for anything that the parameters declare.
    """
    parameters = _counted(body, parameter_tensors(body, [Tensor.of(array) for array in arrays]), most)
    results = infer(body, parameters)
    if body.declared and any(tensor.type == "dynamic" for tensor in results):
        known = infer(body, body.declared)
        results = [b if a.type == "dynamic" else a for a, b in zip(results, known, strict=True)]
    return [_filler(tensor) for tensor in results]


# Inference


def settle(
    node: Node, body: Body, tensors: Sequence[Tensor | None], most: Size | None = None
) -> tuple[list[Tensor], list[Tensor]]:
    """What holds of the parameters and the results of the body in each of its iterations, `most` or less."""
    parameters = _counted(body, parameter_tensors(body, tensors), most)
    _check_types(node, body, parameters, infer(body, parameters))
    loose: set[tuple[int, int]] = set()
    for last in range(MAX_ROUNDS):
        results = infer(body, parameters)
        wider = list(parameters)
        for result, parameter in body.back_edges:
            wider[parameter] = _carried(parameter, wider[parameter], results[result], loose)
        if all(a is b for a, b in zip(wider, parameters, strict=True)):
            break
        if last == MAX_ROUNDS - 2:
            for _, parameter in body.back_edges:
                wider[parameter] = Tensor(wider[parameter].type, None)
        parameters = wider
    return parameters, results


def _check_types(node: Node, body: Body, parameters: Sequence[Tensor], results: Sequence[Tensor]) -> None:
    for port in body.inputs:
        check_declared(node, "C6", body, port, parameters[port.parameter])
    for number, (result, parameter) in enumerate(body.back_edges):
        known = [parameters[parameter].type, *(tensor.type for tensor in body.declared[parameter : parameter + 1])]
        expected = next((type for type in known if type != "dynamic"), "dynamic")
        if "dynamic" not in (results[result].type, expected) and results[result].type != expected:
            node.fail(
                "C6",
                f"result {result} of the body is {results[result].type}, "
                f"but parameter {parameter}, its next value, is {expected}",
                place=(number, ""),
            )


def check_declared(node: Node, label: str, body: Body, port: BodyInput, given: Tensor, *, lenient: str = "") -> None:
    """A parameter of a body gets the element type that it declares; `lenient` is what OpenVINO does where not."""
    declared = body.declared[port.parameter].type if body.declared else "dynamic"
    if "dynamic" not in (declared, given.type) and declared != given.type:
        number, other = port.external, f"parameter {port.parameter} of the body declares {declared}"
        message = f"input {number} is {given.type}, but {other}"
        node.require(label, False, message, place=(port, ""), lenient=lenient)


def _carried(parameter: int, tensor: Tensor, result: Tensor, loose: set[tuple[int, int]]) -> Tensor:
    """What is known of a parameter that is `tensor` now and may be `result` next; itself where that is no news."""
    a, b = tensor.value, result.value
    value = a if a is not None and tensor.known and b is not None and result.known and np.array_equal(a, b) else None
    if tensor.shape is None or (result.type == "dynamic" and result.shape is None):  # where a layer is wrong: no news
        return tensor if value is a else Tensor(tensor.type, tensor.shape, value)
    if result.shape is None or len(result.shape) != len(tensor.shape):
        return Tensor(tensor.type, None)
    shape: list[Size] = []
    for axis, (now, then) in enumerate(zip(tensor.shape, result.shape, strict=True)):
        if (now == then) is True or (parameter, axis) in loose:
            shape.append(now)
        else:
            loose.add((parameter, axis))
            shape.append(fresh())
    same = all(x is y for x, y in zip(shape, tensor.shape, strict=True))
    return tensor if same and value is a else Tensor(tensor.type, tuple(shape), value)


def loop_outputs(
    node: Node,
    body: Body,
    tensors: Sequence[Tensor | None],
    parameters: Sequence[Tensor],
    results: Sequence[Tensor],
    count: Size,
) -> list[Tensor]:
    """What is known of the outputs after `count` iterations."""
    first = parameter_tensors(body, tensors)
    again: list[Tensor] | None = None
    outputs = [UNKNOWN] * output_count(body)
    for port in body.outputs:
        if port.axis is not None:
            _check_join_axis(node, port, results[port.result].shape)
        if port.external < 0:
            continue
        result = results[port.result]
        if port.axis is None:
            result = Tensor(result.type, result.shape)
            starts = [first[parameter] for number, parameter in body.back_edges if number == port.result]
            if starts and (count >= 1) is not True:
                result = starts[0] if (count == 0) is True else union(starts[0], result)
            outputs[port.external] = result
            continue
        if again is None and not result.static:
            again = infer(body, _renewed(body, parameters, first))
        other = result if again is None else again[port.result]
        outputs[port.external] = Tensor(result.type, _joined_shape(port.axis, result.shape, other.shape, count))
    return outputs


def _check_join_axis(node: Node, port: BodyOutput, shape: Shape | None) -> None:
    if shape is None or port.axis is None:
        return
    rank = max(len(shape), 1)  # scalars are joined to a vector
    if not -rank <= port.axis < rank:
        message = f"result {port.result} is joined along axis {port.axis}, outside its rank {len(shape)}"
        node.fail("C7", message, place=(port, "axis"))


def _renewed(body: Body, parameters: Sequence[Tensor], first: Sequence[Tensor]) -> list[Tensor]:
    """The parameters of another iteration: a size that changes from one to the next is another unknown one."""
    counting = _counting(body)
    renewed = []
    for number, (now, start) in enumerate(zip(parameters, first, strict=True)):
        if number in counting and isinstance(now.content, Sizes):
            items = [fresh(size.low, size.high) if isinstance(size, Dim) else size for size in now.content.items]
            renewed.append(replace(now, content=Sizes(items, now.content.shape, now.type)))
            continue
        if now.shape is None or start.shape is None:
            renewed.append(now)
            continue
        shape = tuple(a if (a == b) is True else fresh() for a, b in zip(now.shape, start.shape, strict=True))
        renewed.append(replace(now, shape=shape))
    return renewed


def _joined_shape(axis: int, shape: Shape | None, other: Shape | None, count: Size) -> Shape | None:
    """`count` results of that shape joined; `other` is the shape as another iteration has it."""
    if shape is None:
        return None
    shape = shape or (1,)
    other = other or (1,) * len(shape)
    axis %= len(shape)
    constant = len(other) == len(shape) and (shape[axis] == other[axis]) is True
    total = product((count, shape[axis])) if constant or (count == 0) is True else fresh()
    if (count == 1) is True:
        total = shape[axis]
    return (*shape[:axis], total, *shape[axis + 1 :])


def bounded(count: Size, low: int = 0) -> Size:
    """A number of iterations of which only an upper bound is known."""
    high = count.high if isinstance(count, Dim) else count
    return fresh(low if high is None else min(low, high), high)


def fewest(*counts: Size | None) -> Size | None:
    """The least of the counts that are not None."""
    known = [count for count in counts if count is not None]
    return smallest(*known) if known else None
