"""oneDNN through ctypes: the library, its engine and stream, and the handles that it gives out.

This module alone knows pointers. What is above it says "describe, compile, run" with layouts and numpy arrays.

Source: the C API of oneDNN 3.2, https://oneapi-src.github.io/oneDNN/v3.2
"""

from __future__ import annotations

import ctypes
import os
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_float, c_int, c_int64, c_size_t, c_uint, c_void_p
from functools import cached_property, partial
from math import prod
from pathlib import Path
from typing import Any

from irrun.spec.op import Array

FILE = "libdnnl.so.3"
MAJOR = 3
"""The version of the API."""

SRC, SRC_1, SRC_2 = 1, 2, 3
DST, DST_1, DST_2 = 17, 18, 19
WEIGHTS, WEIGHTS_1, BIAS = 33, 34, 41
SCALE, SHIFT, SCRATCHPAD = 51, 52, 80
POST = 32768
"""Numbers of arguments; those of post-op n, from 1 on, are n * POST + SRC_1 (binary)."""

F32, U8 = 3, 6
INFERENCE = 96
FEW_ELEMENTS, FEW_PRODUCTS = 16_384, 250_000
"""Elements to go over, and multiplications, that one thread is through with before another one is awake."""
STRICT, BF16 = 0, 1
"""Modes of floating-point arithmetic: f32 as it is, or rounded to bf16 where that is faster."""

_ANY, _BLOCKED = 1, 2
_CPU = _USER_SCRATCHPAD = 1
_OMP = 2
_STRIDES, _IMPLEMENTATION, _EXEC_ARG, _NDIMS, _DIMS, _FORMAT, _BLOCKS = 14, 8, 255, 256, 257, 262, 263
_MAX_RANK = 12
_REFERENCE = ("ref", "simple")
_RECURRENT = ("lstm_forward", "gru_forward", "lbr_gru_forward", "vanilla_rnn_forward")
"""Primitives whose reference is made of fast products and compiled functions."""
_AVX512 = 0x27
_SPINS = 3000
"""How often a thread of OpenMP looks for work before it sleeps: some 40 us. Calls follow one another within less, and
the default of 300 000, 4 ms, takes the processor from whatever else wants to compute."""

_Dims = c_int64 * _MAX_RANK
_Floats = c_float * 2


class OneDNNError(RuntimeError):
    """A function of oneDNN failed that should not."""


class _Statuses(dict[int, None]):
    """What a status means: nothing, or an error. Its `__getitem__` is the quickest check there is."""

    def __missing__(self, status: int) -> None:
        raise OneDNNError(f"oneDNN answered with status {status}")


class _Version(ctypes.Structure):
    _fields_ = (
        ("major", c_int),
        ("minor", c_int),
        ("patch", c_int),
        ("hash", c_char_p),
        ("cpu_runtime", c_uint),
        ("gpu_runtime", c_uint),
    )


class _Argument(ctypes.Structure):
    _fields_ = (("number", c_int), ("memory", c_void_p))


class _Handle:
    """An object of oneDNN that is destroyed when nothing refers to it any more."""

    __slots__ = ("__weakref__", "_as_parameter_")

    def __init__(self, pointer: c_void_p, destroy: Any) -> None:
        self._as_parameter_ = pointer
        weakref.finalize(self, destroy, pointer).atexit = False


class Layout:
    """How a tensor lies in memory: a memory descriptor of oneDNN. `nbytes` are those it takes, padding included."""

    def __init__(self, library: Library, handle: _Handle) -> None:
        self._library, self._as_parameter_ = library, handle
        self.nbytes = int(library.size_of(handle))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Layout) and bool(self._library.equal(self, other)))

    def __hash__(self) -> int:
        return self.nbytes

    @cached_property
    def shape(self) -> tuple[int, ...]:
        rank, sizes = c_int(), ctypes.POINTER(c_int64)()
        self._library.query(self, _NDIMS, byref(rank))
        self._library.query(self, _DIMS, byref(sizes))
        return tuple(sizes[: rank.value])

    @cached_property
    def strides(self) -> tuple[int, ...] | None:
        """The strides in bytes where numpy can express the layout, else None."""
        kind, blocks, steps = c_int(), c_int(), ctypes.POINTER(c_int64)()
        self._library.query(self, _FORMAT, byref(kind))
        if kind.value != _BLOCKED:
            return None
        self._library.query(self, _BLOCKS, byref(blocks))
        if blocks.value:
            return None
        self._library.query(self, _STRIDES, byref(steps))
        return tuple(4 * step for step in steps[: len(self.shape)])


class Primitive:
    """A computation that oneDNN has compiled, for any number of threads. `scratch` is how many bytes a call takes."""

    def __init__(self, library: Library, descriptor: _Handle, implementation: str) -> None:
        self._library, self._descriptor, self.implementation = library, descriptor, implementation
        pointer = c_void_p()
        library.check("dnnl_primitive_create", byref(pointer), descriptor)
        self._as_parameter_ = _Handle(pointer, library.dll.dnnl_primitive_destroy)
        self.scratch = self.layout(SCRATCHPAD).nbytes
        self.small = False

    def layout(self, number: int) -> Layout:
        """How an argument must lie in memory."""
        return self._library.layout_of(self._descriptor, number)

    def bind(self, arguments: Iterable[tuple[int, Layout, Array]], scratch: Array | None) -> Callable[[], object]:
        """A call that reads and writes these arrays: what is called is C, all arguments are made."""
        library = self._library
        bound = list(arguments)
        if self.scratch:
            assert scratch is not None
            bound.append((SCRATCHPAD, self.layout(SCRATCHPAD), scratch))
        memories = [library.memory(layout, array) for _, layout, array in bound]
        array = (_Argument * len(bound))()
        for place, (number, _, _), memory in zip(array, bound, memories, strict=True):
            place.number, place.memory = number, memory._as_parameter_
        call = partial(
            library.execute, self._as_parameter_._as_parameter_, library.stream._as_parameter_, c_int(len(bound)), array
        )
        call.kept = (self, memories, bound)  # type: ignore[attr-defined]
        return partial(library.alone, call) if self.small else call


class Library:
    """The loaded library with one CPU engine and one stream, for `threads` threads within a call.

    `wide` says that the processor has AVX-512, where channels come last in what is fastest, and else in blocks.
    """

    def __init__(self, dll: ctypes.CDLL, threads: int, fpmath: int = STRICT) -> None:
        self.dll, self.threads, self.fpmath = dll, threads, fpmath
        self.set_threads = ctypes.CDLL("libgomp.so.1").omp_set_num_threads
        self.set_threads(threads)
        self.size_of = dll.dnnl_memory_desc_get_size
        self.size_of.restype = c_size_t
        self.equal = dll.dnnl_memory_desc_equal
        self.query = dll.dnnl_memory_desc_query
        self.query_argument = dll.dnnl_primitive_desc_query_md
        self.query_argument.restype = c_void_p
        self.execute = dll.dnnl_primitive_execute
        self.execute.restype = _Statuses({0: None}).__getitem__
        pointer = c_void_p()
        self.check("dnnl_engine_create", byref(pointer), _CPU, c_size_t(0))
        self.engine = _Handle(pointer, dll.dnnl_engine_destroy)
        pointer = c_void_p()
        self.check("dnnl_stream_create", byref(pointer), self.engine, 1)
        self.stream = _Handle(pointer, dll.dnnl_stream_destroy)
        self._primitives: weakref.WeakValueDictionary[tuple[Any, ...], Primitive] = weakref.WeakValueDictionary()
        self._layouts: dict[tuple[Any, ...], Layout] = {}
        self.packed: weakref.WeakValueDictionary[tuple[Any, ...], Any] = weakref.WeakValueDictionary()
        self.wide = dll.dnnl_get_effective_cpu_isa() & _AVX512 == _AVX512

    def alone(self, call: Callable[[], object]) -> None:
        """Call with one thread."""
        self.set_threads(1)
        call()
        self.set_threads(self.threads)

    def check(self, name: str, *args: object) -> None:
        status = getattr(self.dll, name)(*args)
        if status:
            raise OneDNNError(f"{name} answered with status {status}")

    def strided(self, shape: Sequence[int], strides: Sequence[int]) -> Layout | None:
        """The layout of an f32 array by numpy's strides; None where oneDNN has none such."""
        key = (tuple(shape), tuple(strides))
        if key not in self._layouts:
            if not shape or len(shape) > _MAX_RANK or any(step % 4 or step < 0 for step in strides):
                return None
            pointer = c_void_p()
            steps = _Dims(*(step // 4 for step in strides))
            create = self.dll.dnnl_memory_desc_create_with_strides
            if create(byref(pointer), len(shape), _Dims(*shape), F32, steps):
                return None
            self._layouts[key] = Layout(self, _Handle(pointer, self.dll.dnnl_memory_desc_destroy))
        return self._layouts[key]

    def dense(self, shape: Sequence[int]) -> Layout:
        layout = self.strided(shape, dense_strides(shape))
        assert layout is not None
        return layout

    def any(self, shape: Sequence[int]) -> Layout:
        """The layout that is left to the primitive."""
        key = tuple(shape)
        if key not in self._layouts:
            pointer = c_void_p()
            self.check("dnnl_memory_desc_create_with_tag", byref(pointer), len(shape), _Dims(*shape), F32, _ANY)
            self._layouts[key] = Layout(self, _Handle(pointer, self.dll.dnnl_memory_desc_destroy))
        return self._layouts[key]

    def layout_of(self, descriptor: _Handle, number: int) -> Layout:
        pointer = c_void_p()
        found = c_void_p(self.query_argument(descriptor, _EXEC_ARG, number))
        self.check("dnnl_memory_desc_clone", byref(pointer), found)
        return Layout(self, _Handle(pointer, self.dll.dnnl_memory_desc_destroy))

    def memory(self, layout: Layout, array: Array) -> _Handle:
        pointer, address = c_void_p(), c_void_p(array.__array_interface__["data"][0])
        self.check("dnnl_memory_create", byref(pointer), layout, self.engine, address)
        return _Handle(pointer, self.dll.dnnl_memory_destroy)

    def primitive(
        self, kind: str, *args: Any, posts: Sequence[tuple[Any, ...]] = (), small: bool = False
    ) -> Primitive | None:
        """Compile a primitive, or find an equal one; None where oneDNN has none, or only its slow reference.

        `kind` and `args` are those of `dnnl_<kind>_primitive_desc_create`: layouts, tuples as dimensions, floats and
        ints. `posts` are ("eltwise", algorithm, alpha, beta) and ("binary", algorithm, layout). What is `small` (see
        FEW_ELEMENTS) is computed by one thread.
        """
        key = (kind, args, tuple(posts), small)
        found = self._primitives.get(key)
        if found is None:
            if small:
                self.set_threads(1)
            try:
                found = self._compile(kind, args, posts)
            finally:
                self.set_threads(self.threads)
            if found is not None:
                found.small = small
                self._primitives[key] = found
        return found

    def _compile(self, kind: str, args: Sequence[Any], posts: Sequence[tuple[Any, ...]]) -> Primitive | None:
        attributes = self._attributes(posts)
        pointer = c_void_p()
        create = getattr(self.dll, f"dnnl_{kind}_primitive_desc_create")
        if kind == "reorder":
            source, target = args
            status = create(byref(pointer), source, self.engine, target, self.engine, attributes)
        else:
            status = create(byref(pointer), self.engine, *map(_argument, args), attributes)
        if status:
            return None
        descriptor = _Handle(pointer, self.dll.dnnl_primitive_desc_destroy)
        name = c_char_p()
        self.check("dnnl_primitive_desc_query", descriptor, _IMPLEMENTATION, 0, byref(name))
        implementation = (name.value or b"").decode()
        if kind not in ("reorder", *_RECURRENT) and implementation.startswith(_REFERENCE):
            return None
        return Primitive(self, descriptor, implementation)

    def _attributes(self, posts: Sequence[tuple[Any, ...]]) -> _Handle:
        pointer = c_void_p()
        self.check("dnnl_primitive_attr_create", byref(pointer))
        attributes = _Handle(pointer, self.dll.dnnl_primitive_attr_destroy)
        self.check("dnnl_primitive_attr_set_scratchpad_mode", attributes, _USER_SCRATCHPAD)
        if self.fpmath != STRICT:
            self.check("dnnl_primitive_attr_set_fpmath_mode", attributes, self.fpmath)
        if posts:
            pointer = c_void_p()
            self.check("dnnl_post_ops_create", byref(pointer))
            chain = _Handle(pointer, self.dll.dnnl_post_ops_destroy)
            for kind, *args in posts:
                self.check(f"dnnl_post_ops_append_{kind}", chain, *map(_argument, args))
            self.check("dnnl_primitive_attr_set_post_ops", attributes, chain)
        return attributes


def _argument(value: Any) -> Any:
    if isinstance(value, float):
        return c_float(value)
    if isinstance(value, tuple):
        return _Dims(*value)
    return value


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides in bytes of an f32 array in C order."""
    return tuple(4 * prod(shape[number + 1 :]) for number in range(len(shape)))


@contextmanager
def _surroundings(**defaults: int) -> Iterator[None]:
    """Environment variables for a while, those that are not set."""
    added = {name: str(value) for name, value in defaults.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def open_library(threads: int, fpmath: int) -> Library | None:
    """The library, or None where it is not there or not of the version and the kind that this module speaks to."""
    if sys.platform != "linux":
        return None
    for place in _places():
        if isinstance(place, Path) and not place.exists():
            continue
        try:
            with _surroundings(GOMP_SPINCOUNT=_SPINS, OMP_NUM_THREADS=threads):
                dll = ctypes.CDLL(str(place))
        except OSError:
            continue
        dll.dnnl_version.restype = ctypes.POINTER(_Version)
        version = dll.dnnl_version().contents
        if version.major == MAJOR and version.cpu_runtime == _OMP:
            return Library(dll, threads, fpmath)
    return None


def _places() -> Iterable[Path | str]:
    """Where pip puts the library: beside the tree of packages, wherever that is; at last, what the loader knows."""
    yield Path(sys.prefix, "lib", FILE)
    for entry in sys.path:
        packages = Path(entry)
        yield packages / "lib" / FILE  # pip install --target
        if packages.name == "site-packages" and len(packages.parents) > 1:
            yield packages.parents[1] / FILE
    yield FILE
