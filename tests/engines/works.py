"""Works of random tensors for the tests of the numpy engine, and the plain kernels that they are held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irrun.engines.threads import Threads
from irrun.engines.work import Compiled, Layout, Operand, Post, Work
from irrun.run.internal_ops import ROOT_MEAN_SQUARE, TABLE
from irrun.spec.dtypes import element_type, numpy_dtype
from irrun.spec.op import Op
from irrun.spec.registry import registry

THREADS = Threads(2)


def op_of(name: str) -> Op:
    """An op of models, or one that passes put in place of others."""
    internal = {op.name: op for op in (ROOT_MEAN_SQUARE, TABLE)}
    return internal[name] if name in internal else registry().ops[name]


def plain(name: str, attrs: Mapping[str, Any], arrays: Sequence[Any], types: Mapping[str, str] | None = None) -> Any:
    """What the kernel of the op computes."""
    op = op_of(name)
    context = {"types": types} if "types" in op.context else {}
    with np.errstate(all="ignore"):
        return op.kernel(*arrays, **(op.defaults | dict(attrs)), **context)


def aligned_empty(shape: Sequence[int], dtype: Any) -> Any:
    """Memory as a plan hands it out: dense, aligned to 64 bytes, and full of what was there before."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    raw = np.full(count * dtype.itemsize + 64, 0xFF, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + count * dtype.itemsize].view(dtype).reshape(shape)


def work_of(
    name: str,
    attrs: Mapping[str, Any],
    arrays: Sequence[Any],
    outputs: Sequence[tuple[Sequence[int], str]],
    posts: Sequence[Post] = (),
    constant: Sequence[int] = (),
) -> Work:
    """The work of an op on arrays, behind whose inputs stand the operands of posts; `constant` numbers are known."""
    operands = [
        None
        if array is None
        else Operand(element_type(array.dtype), array.shape, array.strides, array if number in constant else None)
        for number, array in enumerate(arrays)
    ]
    results = [Operand(type, tuple(shape), np.empty(shape, numpy_dtype(type)).strides) for shape, type in outputs]
    return Work(name, attrs, operands, results, list(posts))


def computed(compiled: Compiled, work: Work, arrays: Sequence[Any]) -> list[Any]:
    """The outputs of a work, after two calls that must agree; inputs that vary are there only once it is bound."""
    outputs = [room_of(tensor, compiled.gives.get(number)) for number, tensor in enumerate(work.outputs)]
    before = [None if array is None else array.copy() for array in arrays]
    with np.errstate(all="ignore"):
        scratch = aligned_empty((compiled.scratch,), np.uint8) if compiled.scratch else None  # shared: it may be larger
        varying = [
            (array, kept)
            for array, kept, operand in zip(arrays, before, work.inputs, strict=False)
            if array is not None and operand is not None and operand.value is None and array.flags.writeable
        ]
        for array, _ in varying:
            array[...] = np.zeros((), array.dtype)
        call = compiled.bind(arrays, outputs, scratch)
        for array, kept in varying:
            array[...] = kept
        call()
        first = [output.copy() for output in outputs]
        for output in outputs:
            as_it_lies = output.transpose(sorted(range(output.ndim), key=lambda axis: -output.strides[axis]))
            as_it_lies.reshape(-1).view(np.uint8)[...] = 0xFF
        call()
    for array, kept in zip(arrays, before, strict=True):
        if array is not None:
            np.testing.assert_array_equal(comparable(array), comparable(kept))
    for output, other in zip(outputs, first, strict=True):
        np.testing.assert_array_equal(comparable(output), comparable(other))
    return outputs


def wanted(compiled: Compiled, work: Work, arrays: Sequence[Any]) -> list[Any]:
    """The inputs of a work as it wants them."""
    made = list(arrays)
    for number, layout in compiled.wants.items():
        made[number] = room_of(work.required(number + 1)[number], layout)
        made[number][...] = arrays[number]
    return made


def room_of(tensor: Operand, layout: Layout | None) -> Any:
    """Memory for a tensor, in C order or in a layout that has strides."""
    dtype = numpy_dtype(tensor.type)
    if layout is None:
        return aligned_empty(tensor.shape, dtype)
    return np.ndarray(tensor.shape, dtype, aligned_empty((layout.nbytes,), np.uint8), 0, layout.strides)


def comparable(array: Any) -> Any:
    """An array of a type that numpy knows NaN of."""
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def posted(posts: Sequence[Post], result: Any, arrays: Sequence[Any]) -> Any:
    """What the plain kernels make of `result` by the posts."""
    for post in posts:
        read = post.parameters if post.operand is None else (post.operand,)
        other = tuple(arrays[number] for number in read)
        types = {"T": element_type(result.dtype)}
        result = plain(post.name, post.attrs, (*other, result) if post.reflected else (result, *other), types)
    return result
