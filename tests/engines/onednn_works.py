"""Works for the tests of the oneDNN engine: compiled and run as a program does it, beside the plain ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irrun.engines.onednn import load
from irrun.engines.work import Compiled, Layout, Operand, Post, Work
from irrun.spec.dtypes import element_type, numpy_dtype
from irrun.spec.op import Array
from irrun.spec.registry import registry

ENGINE = load(2)
needs_onednn = pytest.mark.skipif(ENGINE is None, reason="oneDNN is not installed")


def has_avx2() -> bool:
    """Whether the processor has what our own code for products of codes is written with."""
    path = Path("/proc/cpuinfo")
    return path.exists() and " avx2 " in path.read_text()


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)


def channels_last(*shape: int) -> Array:
    """Data [N, C, *spatial] that lies as [N, *spatial, C]."""
    return np.moveaxis(normal(shape[0], *shape[2:], shape[1]), -1, 1)


def apply(name: str, attrs: Mapping[str, Any], *arrays: Array | None) -> list[Array]:
    """What the op's own kernel gives."""
    op = registry().ops[name]
    values = op.defaults | dict(attrs)
    context = {"types": {"T": next(element_type(array.dtype) for array in arrays if array is not None)}}
    context = context if op.context else {}
    with np.errstate(all="ignore"):
        results = op.kernel(*arrays, **values, **context)
    return [np.asarray(result) for result in (results if isinstance(results, tuple | list) else (results,))]


def expected(name: str, attrs: Mapping[str, Any], arrays: Sequence[Array | None], posts: Sequence[Post]) -> list[Array]:
    operands = [post.operand for post in posts if post.operand is not None]
    first = min(operands, default=len(arrays))
    results = apply(name, attrs, *arrays[:first])
    for post in posts:
        if post.operand is None:
            results = apply(post.name, post.attrs, results[0])
        elif post.reflected:
            results = apply(post.name, post.attrs, arrays[post.operand], results[0])
        else:
            results = apply(post.name, post.attrs, results[0], arrays[post.operand])
    return results


def work_of(
    name: str,
    attrs: Mapping[str, Any],
    arrays: Sequence[Array | None],
    results: Sequence[Array],
    constants: Sequence[int] = (),
    posts: Sequence[Post] = (),
    type: str = "f32",
) -> Work:
    """The work of an op on arrays, whose results of `type` have the shapes of `results`."""
    values = registry().ops[name].defaults | dict(attrs)
    inputs = [
        None
        if array is None
        else Operand(element_type(array.dtype), array.shape, array.strides, array if n in constants else None)
        for n, array in enumerate(arrays)
    ]
    outputs = [Operand(type, array.shape, np.empty(array.shape, numpy_dtype(type)).strides) for array in results]
    return Work(name, values, inputs, outputs, list(posts))


def prepared(work: Work) -> Compiled | None:
    assert ENGINE is not None
    return ENGINE.compile(work)


def room(nbytes: int) -> Array:
    """Bytes at an address of 64, which are NaN if they are read as numbers."""
    memory = np.full(nbytes + 64, 255, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + nbytes]


def placed(shape: tuple[int, ...], layout: Layout | None, type: str = "f32") -> Array:
    """An array for a tensor in a layout with strides, or dense, and bytes for one in a layout without."""
    dtype = numpy_dtype(type)
    size = dtype.itemsize * int(np.prod(shape)) if layout is None else layout.nbytes
    if layout is not None and layout.strides is None:
        return room(size)
    return np.ndarray(shape, dtype, room(size), strides=None if layout is None else layout.strides)


def computed(work: Work, compiled: Compiled, arrays: Sequence[Array | None], calls: int = 2) -> list[Array]:
    """The outputs after some calls of what is bound to copies of the inputs in the layouts that are wanted."""
    assert ENGINE is not None
    inputs: list[Array | None] = list(arrays)
    for number, layout in compiled.wants.items():
        operand, array = work.inputs[number], arrays[number]
        assert operand is not None
        assert array is not None
        copy = placed(operand.shape, layout, operand.type)
        reorder = ENGINE.reorder(operand, layout)
        reorder.bind([array], [copy], room(reorder.scratch))()
        if copy.dtype == array.dtype:
            np.testing.assert_array_equal(copy, array)
        inputs[number] = copy
    for number in compiled.taken:
        inputs[number] = None
    outputs = [placed(own.shape, compiled.gives.get(number), own.type) for number, own in enumerate(work.outputs)]
    call = compiled.bind(inputs, outputs, room(compiled.scratch))
    first: list[Array] = []
    for _ in range(calls):
        call()
        first = first or [output.copy() for output in outputs]
    for output, before in zip(outputs, first, strict=True):
        if output.dtype == np.float32:
            np.testing.assert_allclose(output, before, rtol=1e-5, atol=1e-5)
    return [
        output if layout is None or layout.strides is not None else dense(output, operand, layout)
        for output, operand, layout in zip(outputs, work.outputs, map(compiled.gives.get, range(9)), strict=False)
    ]


def dense(blocked: Array, operand: Operand, layout: Layout) -> Array:
    """A tensor that came in a layout without strides."""
    assert ENGINE is not None
    result = placed(operand.shape, None, operand.type)
    reorder = ENGINE.reorder(Operand(operand.type, operand.shape, (), None, layout), None)
    reorder.bind([blocked], [result], room(reorder.scratch))()
    return result


def check(
    name: str,
    attrs: Mapping[str, Any],
    arrays: Sequence[Array | None],
    constants: Sequence[int] = (),
    posts: Sequence[Post] = (),
    tolerance: float = 2e-6,
) -> Compiled:
    """Compare a work with the plain op; `tolerance` is relative to the largest result."""
    results = expected(name, attrs, arrays, posts)
    work = work_of(name, attrs, arrays, results, constants, posts)
    compiled = prepared(work)
    assert compiled is not None, "the engine does not take it"
    outputs = computed(work, compiled, arrays)
    for output, result in zip(outputs, results, strict=True):
        finite = np.abs(result[np.isfinite(result)])
        np.testing.assert_allclose(output, result, rtol=1e-5, atol=tolerance * float(finite.max(initial=1e-30)))
    return compiled


def refused(
    name: str,
    attrs: Mapping[str, Any],
    arrays: Sequence[Array | None],
    constants: Sequence[int] = (),
    posts: Sequence[Post] = (),
) -> bool:
    return prepared(work_of(name, attrs, arrays, expected(name, attrs, arrays, posts), constants, posts)) is None


def check_if_taken(
    name: str,
    attrs: Mapping[str, Any],
    arrays: Sequence[Array | None],
    constants: Sequence[int] = (),
    posts: Sequence[Post] = (),
) -> None:
    """Compare a work with the plain op, unless the engine leaves it to others."""
    if not refused(name, attrs, arrays, constants, posts):
        check(name, attrs, arrays, constants, posts, tolerance=1e-5)


def views(*shape: int) -> list[Array]:
    """Read-only arrays of a shape that no memory holds as it would hold a dense one."""
    first = normal(*shape[:1], *(1,) * (len(shape) - 1))
    found = [
        np.broadcast_to(normal(*(1,) * len(shape)), shape),
        np.broadcast_to(first, shape),
        normal(*shape)[tuple(slice(None, None, -1) for _ in shape)],
        normal(*shape[::-1]).T,
        normal(*(2 * size for size in shape))[tuple(slice(None, None, 2) for _ in shape)],
        np.frombuffer(b"odd" + normal(*shape).tobytes(), np.float32, offset=3).reshape(shape),
    ]
    for array in found:
        array.flags.writeable = False
    return found
