"""Holding a compiler of the numpy engine against the op's own kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from engines.works import THREADS, aligned_empty, computed, plain, posted, work_of

from irrun.engines.threads import Threads
from irrun.engines.work import Compiled, Post, Work

EAGER = 5
"""Pieces that `share_all` cuts every work into."""


def agrees(
    compiler: Callable[[Work, Threads], Compiled | None],
    name: str,
    attrs: Mapping[str, Any],
    arrays: Sequence[Any],
    posts: Sequence[Post] = (),
    operands: Sequence[Any] = (),
    constant: Sequence[int] = (1,),
) -> None:
    """Compile an op on `arrays` and compare it with its kernel; `operands` are those of posts."""
    expected = posted(posts, plain(name, attrs, arrays), [*arrays, *operands])
    everything = [*arrays, *operands]
    work = work_of(name, attrs, everything, [(expected.shape, "f32")], posts, constant)
    compiled = compiler(work, THREADS)
    assert compiled is not None
    (output,) = computed(compiled, work, everything)
    np.testing.assert_array_equal(bound_early(compiled, work, everything), output)
    finite = np.abs(expected[np.isfinite(expected)])
    np.testing.assert_allclose(output, expected, rtol=2e-5, atol=2e-6 * max(finite.max(initial=0), 1e-3))


def bound_early(compiled: Compiled, work: Work, arrays: Sequence[Any]) -> Any:
    """The output of a work that was bound before its inputs were there, as in a plan."""
    output = aligned_empty(work.outputs[0].shape, np.float32)
    scratch = aligned_empty((compiled.scratch,), np.uint8) if compiled.scratch else None
    varying = [
        owner(array)
        for array, operand in zip(arrays, work.inputs, strict=True)
        if operand is not None and operand.value is None
    ]
    kept = [array.copy() for array in varying]
    for array in varying:
        array[...] = 0
    call = compiled.bind(arrays, [output], scratch)
    for array, values in zip(varying, kept, strict=True):
        array[...] = values
    with np.errstate(all="ignore"):
        call()
    return output


def owner(array: Any) -> Any:
    """The array that has the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def share_all(monkeypatch: Any) -> None:
    """Cut works into pieces for the threads however small they are."""
    monkeypatch.setattr(Threads, "pieces", lambda self, seconds: EAGER)


BIASED = [Post("Add-1", {"auto_broadcast": "numpy"}, 2), Post("ReLU-1", {})]
"""A bias, the input behind two of an op, and an activation."""
