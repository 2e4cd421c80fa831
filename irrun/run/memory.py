"""Memory of a run: how much may be allocated, what steps will ask for, and the sentence that refuses it in advance.

Counted are the results of layers and the constants that are not views of the .bin. What a kernel needs besides while
it computes, and what the caller gives and keeps, is not.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence, Set
from pathlib import Path
from weakref import ref

import numpy as np

from irrun.diagnostics import Diagnostic, ExecutionError
from irrun.ir.graph import Layer
from irrun.spec.dims import Dim
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array, Op, Tensor
from irrun.spec.patterns import shape_text

MAX_TINY = 512
"""Bytes of an array that is not followed: the objects around it take nearly as many, and are not counted either."""

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def available() -> int:
    """The bytes of physical memory, or of what a container may have of it."""
    if not hasattr(os, "sysconf"):
        return 1 << 40
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = _CGROUP.read_text().strip()
    except OSError:
        return physical
    return min(physical, int(limit)) if limit.isdecimal() else physical


def tensor_bytes(tensor: Tensor) -> int:
    """The bytes of an array of what is known of a tensor; unknown sizes count as small as they may be."""
    if tensor.shape is None or tensor.type == "dynamic":
        return 0
    total = max(numpy_dtype(tensor.type).itemsize, 1)
    for size in tensor.shape:
        total *= max(size.low or 0, 0) if isinstance(size, Dim) else size
    return total


def result_bytes(op: Op, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> int:
    """The bytes that the results of a layer take; a view takes none unless it is larger than what it looks at."""
    wanted = sum(map(tensor_bytes, outputs))
    for port, tensor in zip(op.inputs, inputs, strict=False):
        if port.name == op.view_of and tensor is not None and wanted <= tensor_bytes(tensor):
            return 0
    return wanted


def as_text(size: int) -> str:
    """`1,536 bytes` or `12.3 GiB`."""
    value, unit = float(size), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{size:,} bytes" if unit == 0 else f"{value:,.1f} {_UNITS[unit]}"


def refusal(layer: Layer, what: str, wanted: int, live: int, limit: int) -> ExecutionError:
    """The error that a layer asks for more than there may be; `live` bytes are in use already."""
    beside = f" beside {as_text(live)} in use" if live else ""
    exact = f" ({wanted} bytes)" if wanted >= 1024 else ""
    message = f"{what} would take {as_text(wanted)}{exact}{beside}, more than the limit of {as_text(limit)}"
    help = "is a size wrong? Else allow more with --max-memory, or GraphExecutor(..., max_memory=bytes)"
    return ExecutionError([Diagnostic("E603", message, layer.span, layer.label, help, file=None)])


def outputs_text(tensors: Sequence[Tensor]) -> str:
    """The outputs of a layer in words, at most four of them with type and shape."""
    shapes = " and ".join(f"{tensor.type}{shape_text(tensor.shape)}" for tensor in tensors[:4])
    more = f" and {len(tensors) - 4} more" if len(tensors) > 4 else ""
    return f"{'outputs' if len(tensors) > 1 else 'an output'} of {shapes}{more}"


class _Counted(ref[Array]):
    """An array that a meter counts until nothing refers to it. A `finalize` takes twice as long to make."""

    __slots__ = ("key", "size")
    key: int
    size: int


class Meter:
    """The bytes of the arrays that a run has made and that are still in use."""

    __slots__ = ("_counted", "_gone", "_known", "_sum", "limit")

    def __init__(self, limit: int, live: int, outside: Sequence[Array], known: Set[int] = frozenset()) -> None:
        """`live` bytes are in use from the start; the memory of arrays `outside` is not the run's.

        Nor is that of the arrays whose owners have these ids, `known` in advance (`owners`).
        """
        self.limit = limit
        self._sum = live
        self._known = owners(outside) | known
        self._counted: dict[int, _Counted] = {}
        self._gone: list[_Counted] = []  # what a signal raises where Python is called for an array that goes is lost

    @property
    def live(self) -> int:
        """The bytes that are in use."""
        gone = self._gone
        while gone:
            counted = gone.pop()
            self._counted.pop(counted.key, None)
            self._sum -= counted.size
        return self._sum

    @live.setter
    def live(self, size: int) -> None:
        self._sum = size

    def add(self, *arrays: Array) -> None:
        """Count the memory of arrays, unless it is tiny, from now on until nothing refers to it any more."""
        for array in arrays:
            owner = array if array.base is None else owner_of(array)
            if owner.nbytes <= MAX_TINY:
                continue
            key, live = id(owner), self.live
            if key not in self._known and key not in self._counted:
                counted = self._counted[key] = _Counted(owner, self._gone.append)
                counted.key, counted.size = key, owner.nbytes
                self.live = live + owner.nbytes

    def hold(self, owner: int, size: int) -> None:
        """Count `size` bytes of a frame's memory, which the array with the id `owner` has, until it is let go of.

        Arrays that lie in it are not counted.
        """
        self._known.add(owner)
        self.live += size

    def let_go(self, owner: int, size: int) -> None:
        """Count the memory of a frame no longer, after `hold`."""
        self._known.discard(owner)
        self.live -= size


def owner_of(array: Array) -> Array:
    """The array that has the memory which `array` looks at."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def owners(arrays: Iterable[Array]) -> set[int]:
    """The ids of the arrays that have the memory of these."""
    return {id(owner_of(array)) for array in arrays}


def owned_bytes(array: Array) -> int:
    """The bytes of an array that are memory of its own, not a view of the .bin."""
    return 0 if owner_of(array).base is not None else array.nbytes
