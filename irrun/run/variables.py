"""Variables: where they lie, how they grow and change places, and as which types they are looked at."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from functools import partial
from math import prod
from threading import RLock
from typing import Any

import numpy as np

from irrun.engines.memory import data_address
from irrun.engines.reserve import OWN_REFERENCES
from irrun.engines.work import chain
from irrun.locks import fork_safe
from irrun.records import dataclass
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array

Together = Callable[[Sequence[Callable[[], object]]], object]
"""Makes several calls, in any order and perhaps at the same time."""


SPARE, SPARE_BYTES = 256, 1 << 26
"""Slices that a buffer has room for beyond what it holds, at least, as far as they take no more than so many bytes;
half of that if it is more. What nobody writes to costs nothing, but the system gives no more than it has."""


SHARED_BYTES = 1 << 20
"""Bytes from which on several threads copy them."""

MAX_LEFT = 64 << 20
"""Bytes of memory that is left for the next session: what longer texts took goes back to the system."""


@dataclass(slots=True, eq=False)
class Buffer:
    """Memory for a variable that grows along an `axis`, and how many slices of it some array has taken.

    Where slots along the first axis have changed places, `marks` [slots, slices] has a number for each: slots with
    the same number at a place are the same up to there, as are beams that have parted later. `marked` numbers have been
    given. `before` is what the variable lay in until it was reordered last, for the next time.
    """

    memory: Array
    taken: int
    axis: int
    marks: Array | None = None
    marked: int = 0
    before: Buffer | None = None

    def vacated(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Array, Array | None]:
        """Memory to write to, and the marks of what it holds: that from before, or new where that is in use."""
        before, self.before = self.before, None
        if before is not None:
            memory, marks = before.memory, before.marks
            del before
            if memory.shape == shape and memory.dtype == dtype and sys.getrefcount(memory) <= OWN_REFERENCES:
                return memory, marks
        return np.empty(shape, dtype), None


class Memories:
    """Memory that variables of earlier sessions lay in, for those of later ones: to touch memory that is new takes
    longer than to fill it. Safe for threads."""

    def __init__(self) -> None:
        self._left: list[Array] = []
        self._lock = fork_safe(RLock())  # a session may end while another one looks

    def leave(self, buffers: MutableMapping[str, Buffer]) -> None:
        """Forget buffers, whose memory may be for others now."""
        left = [buffer.memory for buffer in buffers.values()]
        buffers.clear()
        with self._lock:
            size = sum(memory.nbytes for memory in self._left)
            for memory in left:
                size += memory.nbytes
                if size > MAX_LEFT:
                    break
                self._left.append(memory)

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any], axis: int, least: int) -> Array:
        """Memory that nobody else uses, of this shape or from `least` to twice its size along an axis."""
        with self._lock:
            for number in range(len(self._left)):
                memory = self._left[number]
                if memory.dtype == dtype and _is_room(memory.shape, shape, axis, least):
                    del self._left[number]
                    if sys.getrefcount(memory) <= OWN_REFERENCES:
                        return memory
                    break  # an array of the session before is still somebody's
        return np.empty(shape, dtype)


def _is_room(own: tuple[int, ...], shape: tuple[int, ...], axis: int, least: int) -> bool:
    """Whether memory has the sizes of `shape`, but for an axis: from `least` to twice that."""
    others = (own[:axis], own[axis + 1 :]) == (shape[:axis], shape[axis + 1 :])
    return others and least <= own[axis] <= 2 * shape[axis]


def _spare(size: int, shape: Sequence[int], axis: int, dtype: np.dtype[Any]) -> int:
    """How many slices a buffer has room for beyond `size` along an axis; `shape` has its other sizes."""
    nbytes = prod(shape[:axis]) * prod(shape[axis + 1 :]) * dtype.itemsize
    return max(min(SPARE, SPARE_BYTES // max(nbytes, 1)), size // 2, 1)


def _begins(array: Array, buffer: Buffer) -> bool:
    """Whether an array is the beginning of a buffer along the axis that this grows along."""
    memory, axis = buffer.memory, buffer.axis
    if array.base is not memory or data_address(array) != data_address(memory):
        return False
    if array.dtype != memory.dtype or array.strides != memory.strides:
        return False
    return (array.shape[:axis], array.shape[axis + 1 :]) == (memory.shape[:axis], memory.shape[axis + 1 :])


class Variables(MutableMapping[str, Array]):
    """The variables of a session as one run sees them. What it assigns counts from the end of the graph or body on that
    does so, whatever the order of layers, and for the session from the end of the run.

    Those that grow lie in `buffers`: an array of `kept` is the beginning of one, and what lies behind it is nobody's.
    Their memory is from `memories`.
    """

    def __init__(
        self,
        kept: MutableMapping[str, Array],
        buffers: MutableMapping[str, Buffer] | None = None,
        memories: Memories | None = None,
    ) -> None:
        self._kept = kept
        self._buffers = {} if buffers is None else buffers
        self._memories = memories
        self._seen: dict[str, Array] = {}
        self._assigned: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        return self._seen[name] if name in self._seen else self._kept[name]

    def __setitem__(self, name: str, value: Array) -> None:
        self._assigned[name] = np.array(value)

    def latest(self, name: str) -> Array | None:
        """What a variable holds, where it lies in a buffer: not what a body has assigned in this run."""
        value = None if name in self._seen else self._kept.get(name)
        return value if value is not None and self.holds(name, value) else None

    def holds(self, name: str, array: Array) -> bool:
        """Whether an array lies in the buffer of a variable."""
        buffer = self._buffers.get(name)
        return buffer is not None and array.base is buffer.memory

    def append(self, name: str, past: Array, new: Array, axis: int) -> Array:
        """`past` with `new` behind it along an axis, of one type and shape but there, in the buffer of a variable.

        Only `new` is copied where `past` lies there already, and nobody else has taken the room behind it.
        """
        begin, end = past.shape[axis], past.shape[axis] + new.shape[axis]
        buffer = self._buffers.get(name)
        ahead = (slice(None),) * axis
        if buffer is None or past.base is not buffer.memory or begin != buffer.taken or end > buffer.memory.shape[axis]:
            spare = _spare(end, past.shape, axis, past.dtype)
            shape = (*past.shape[:axis], end + spare, *past.shape[axis + 1 :])
            memory = (self._memories or Memories()).take(shape, past.dtype, axis, end + spare // 2)
            buffer = self._buffers[name] = Buffer(memory, end, axis)
            buffer.memory[(*ahead, slice(0, begin))] = past
        buffer.memory[(*ahead, slice(begin, end))] = new
        buffer.taken = end
        whole: Array = buffer.memory[(*ahead, slice(0, end))]
        if buffer.marks is not None:
            count = len(buffer.marks)
            buffer.marks[:, begin:end] = np.arange(buffer.marked, buffer.marked + count)[:, None]
            buffer.marked += count
            whole.flags.writeable = False
        return whole

    def reorder(self, name: str, past: Array, indices: Sequence[int], axis: int, together: Together) -> Array:
        """Slices of `past` along its first axis, in a buffer of the variable with room behind them along another.

        What lies there already, from the time before, is left alone; the rest is copied by calls that may be made
        `together`. Nobody may write to the array, or to those that are appended to it.
        """
        size, slots = past.shape[axis], len(indices)
        buffer = self._buffers.get(name)
        fits = buffer is not None and buffer.memory.ndim == past.ndim and buffer.memory.shape[axis] > size
        shape = (slots, *past.shape[1:])
        room = size + _spare(size, shape, axis, past.dtype)
        if buffer is not None and fits:
            room = buffer.memory.shape[axis]
        shape = (*shape[:axis], room, *shape[axis + 1 :])
        marked = 0 if buffer is None else buffer.marked
        if buffer is not None and buffer.marks is not None and past.base is buffer.memory:
            wanted = buffer.marks[indices, :size]
        else:
            wanted = np.repeat(np.array(indices)[:, None] + marked, size, 1)
            marked += len(past)
        memory, marks = (buffer or Buffer(past, size, axis)).vacated(shape, past.dtype)
        alike = [0] * slots if marks is None else (marks[:, :size] == wanted).sum(1).tolist()
        ahead, calls = (slice(None),) * (axis - 1), []
        for slot, index in enumerate(indices):
            if alike[slot] < size:
                new = (*ahead, slice(alike[slot], size))
                calls.append(partial(np.copyto, memory[slot][new], past[index][new]))
        if (size * slots - sum(alike)) * (memory.nbytes // max(room * slots, 1)) > SHARED_BYTES:
            together(calls)
        elif calls:
            chain(calls)()
        if marks is None:
            marks = np.empty((slots, room), np.int64)
        marks[:, :size], marks[:, size:] = wanted, -1
        self._buffers[name] = Buffer(memory, size, axis, marks, marked, buffer)
        whole: Array = memory[(slice(None), *ahead, slice(0, size))]
        whole.flags.writeable = False
        return whole

    def store(self, name: str, value: Array) -> bool:
        """Assign what lies in the buffer of the variable as it is; False where it lies elsewhere."""
        if not self.holds(name, value):
            return False
        self._assigned[name] = value
        return True

    @property
    def memories(self) -> list[Array]:
        """What the variables lie in, and what they will."""
        return [*self.values(), *self._assigned.values()]

    def __delitem__(self, name: str) -> None:
        raise TypeError("a variable is never deleted by a run")

    def __iter__(self) -> Iterator[str]:
        return iter({**self._kept, **self._seen})

    def __len__(self) -> int:
        return len({**self._kept, **self._seen})

    def enter(self) -> dict[str, Array]:
        """The beginning of a body. What the graph around it has assigned is for `leave`: it counts from its end on."""
        outside, self._assigned = self._assigned, {}
        return outside

    def leave(self, outside: dict[str, Array]) -> None:
        """The end of a body: what it has assigned is what the next one reads."""
        self._seen.update(self._assigned)
        self._assigned = outside

    def commit(self) -> None:
        """The end of the run, which went well."""
        self._kept.update({**self._seen, **self._assigned})


class Declared(MutableMapping[str, Array]):
    """The variables of a session as who asks for runs sees them, in the types that the model declares.

    `declared` are these types by the names of all variables, and `types`, where they differ, the declared one and that
    which is computed in. What is looked at cannot be written to, and what is set is a copy, so that what is `kept` is
    nobody else's; but for the beginning of what lies in `buffers`, which may be set back. To set raises KeyError where
    the model has no such variable, TypeError for an array of another type. A shape is for the next run to judge.
    """

    def __init__(
        self,
        kept: MutableMapping[str, Array],
        buffers: Mapping[str, Buffer],
        declared: Mapping[str, str],
        types: Mapping[str, tuple[str, str]],
    ) -> None:
        self._kept, self._buffers, self._declared, self._types = kept, buffers, declared, types

    def __getitem__(self, name: str) -> Array:
        found = self._as(name, self._kept[name], 1, 0).view()
        found.flags.writeable = False
        return found

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self._declared:
            listing = ", ".join(f"`{own}`" for own in self._declared) or "none"
            raise KeyError(f"there is no variable {name!r}; the variables are {listing}")
        array, expected = np.asarray(value), self._declared[name]
        if array.dtype.kind == "O":
            raise TypeError(f"variable `{name}` is set to {type(value).__name__}, expected an array")
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        if expected not in ("dynamic", "string") and array.dtype != numpy_dtype(expected):
            raise TypeError(f"variable `{name}` is set to an array of {array.dtype}, expected {expected}")
        own = self._as(name, array, 0, 1)
        buffer = self._buffers.get(name)
        back = buffer is not None and _begins(own, buffer)
        self._kept[name] = own if back else own.copy()

    def __delitem__(self, name: str) -> None:
        del self._kept[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def _as(self, name: str, value: Array, source: int, target: int) -> Array:
        """The value in the type `target` of its variable, if it is of the type `source`."""
        types = self._types.get(name)
        if types is None or value.dtype != numpy_dtype(types[source]):
            return value
        with np.errstate(all="ignore"):
            return value.astype(numpy_dtype(types[target]))
