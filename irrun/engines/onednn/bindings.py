"""The C functions of oneDNN: where the library is, what they take and return, and what their statuses mean.

Source: the C API of oneDNN 3.2, https://oneapi-src.github.io/oneDNN/v3.2
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import POINTER, c_char_p, c_float, c_int, c_int64, c_size_t, c_uint, c_void_p
from functools import cache, partial
from pathlib import Path
from struct import Struct
from typing import Any

from irrun.engines.placement import pause

DISTRIBUTION, FILE = "onednn-cpu-gomp", "libdnnl.so.3"
MAJOR = 3
"""The version of the API."""
MAX_AXES = 12

_OMP = 2
_PROFILED = ("ONEDNN_JIT_PROFILE", "DNNL_JIT_PROFILE")
"""Where somebody says which profilers are to be told of code. Unless they do it is none: oneDNN looks for VTune with
each function that it compiles, a quarter of the time in which it makes a primitive."""
_HARD = 2
"""How OpenMP rests: so that nothing is left."""
PATIENCE = 200e-6
"""Seconds for which a thread of OpenMP looks for work before it sleeps: most calls follow one another within them. To
wake one up takes 50 us, and its default of 300 000 looks, 3 to 16 ms, keeps the processor from whatever else wants to
compute."""

Sizes = c_int64 * MAX_AXES
"""The sizes or strides of all axes."""


class OneDNNError(RuntimeError):
    """A function of oneDNN failed that should not, or would have gone beyond the memory of an array."""


class Version(ctypes.Structure):
    _fields_ = (
        ("major", c_int),
        ("minor", c_int),
        ("patch", c_int),
        ("hash", c_char_p),
        ("cpu_runtime", c_uint),
        ("gpu_runtime", c_uint),
    )


@cache
def _arguments(count: int) -> Struct:
    """So many `dnnl_exec_arg_t`: the number of an argument, and where its memory is."""
    return Struct("iP" * count)


def arguments_of(numbered: Sequence[int]) -> bytes:
    """Arguments for `load_execute`: the number and the memory of each. Structures of ctypes take ten times as long."""
    return _arguments(len(numbered) // 2).pack(*numbered)


class Statuses(dict[int, Any]):
    """What the statuses of a function mean; others are errors. Its `__getitem__` is the quickest check there is."""

    def __init__(self, function: str, meanings: dict[int, Any]) -> None:
        super().__init__(meanings)
        self._function = function

    def __missing__(self, status: int) -> None:
        raise OneDNNError(f"{self._function} answered with status {status}")


DONE: dict[int, Any] = {0: None}
POSSIBLE: dict[int, Any] = {0: True, 2: False, 3: False}
"""Whether something was made: 2 and 3 say that the arguments make no sense together, or that there is no such thing."""

_NO_OTHER = 4
"""The status that says that there is no further way to compute a primitive."""

_NEW, _HANDLE = POINTER(c_void_p), c_void_p
_FORWARD = (_NEW, _HANDLE, c_int)
"""Where the handle goes, the engine and the kind of propagation."""

FUNCTIONS: dict[str, tuple[tuple[Any, ...], Any]] = {
    "dnnl_version": ((), POINTER(Version)),
    "dnnl_get_effective_cpu_isa": ((), c_int),
    "dnnl_set_jit_profiling_flags": ((c_uint,), POSSIBLE),
    "dnnl_engine_create": ((_NEW, c_int, c_size_t), DONE),
    "dnnl_engine_destroy": ((_HANDLE,), DONE),
    "dnnl_stream_create": ((_NEW, _HANDLE, c_uint), DONE),
    "dnnl_stream_destroy": ((_HANDLE,), DONE),
    "dnnl_memory_create": ((_NEW, _HANDLE, _HANDLE, c_void_p), DONE),
    "dnnl_memory_destroy": ((_HANDLE,), DONE),
    "dnnl_memory_desc_create_with_strides": ((_NEW, c_int, Sizes, c_int, Sizes), POSSIBLE),
    "dnnl_memory_desc_create_with_tag": ((_NEW, c_int, Sizes, c_int, c_int), DONE),
    "dnnl_memory_desc_clone": ((_NEW, _HANDLE), DONE),
    "dnnl_memory_desc_destroy": ((_HANDLE,), DONE),
    "dnnl_memory_desc_equal": ((_HANDLE, _HANDLE), c_int),
    "dnnl_memory_desc_get_size": ((_HANDLE,), c_size_t),
    "dnnl_memory_desc_query": ((_HANDLE, c_int, c_void_p), DONE),
    "dnnl_primitive_attr_create": ((_NEW,), DONE),
    "dnnl_primitive_attr_destroy": ((_HANDLE,), DONE),
    "dnnl_primitive_attr_set_post_ops": ((_HANDLE, _HANDLE), DONE),
    "dnnl_primitive_attr_set_scales_mask": ((_HANDLE, c_int, c_int), DONE),
    "dnnl_primitive_attr_set_scratchpad_mode": ((_HANDLE, c_int), DONE),
    "dnnl_primitive_attr_set_zero_points_mask": ((_HANDLE, c_int, c_int), DONE),
    "dnnl_post_ops_create": ((_NEW,), DONE),
    "dnnl_post_ops_destroy": ((_HANDLE,), DONE),
    "dnnl_post_ops_append_binary": ((_HANDLE, c_int, _HANDLE), DONE),
    "dnnl_post_ops_append_eltwise": ((_HANDLE, c_int, c_float, c_float), DONE),
    "dnnl_primitive_create": ((_NEW, _HANDLE), DONE),
    "dnnl_primitive_destroy": ((_HANDLE,), DONE),
    "dnnl_primitive_desc_destroy": ((_HANDLE,), DONE),
    "dnnl_primitive_desc_next_impl": ((_HANDLE,), {0: True, _NO_OTHER: False}),
    "dnnl_primitive_desc_query": ((_HANDLE, c_int, c_int, c_void_p), DONE),
    "dnnl_primitive_desc_query_md": ((_HANDLE, c_int, c_int), c_void_p),
    **{
        f"dnnl_{kind}_primitive_desc_create": ((*types, _HANDLE), POSSIBLE)
        for kind, types in {
            "binary": (*_FORWARD, *(_HANDLE,) * 3),
            "convolution_forward": (*_FORWARD, c_int, *(_HANDLE,) * 4, *(Sizes,) * 4),
            "deconvolution_forward": (*_FORWARD, c_int, *(_HANDLE,) * 4, *(Sizes,) * 4),
            "eltwise_forward": (*_FORWARD, c_int, *(_HANDLE,) * 2, c_float, c_float),
            "gru_forward": (*_FORWARD, c_int, *(_HANDLE,) * 7, c_uint),
            "layer_normalization_forward": (*_FORWARD, *(_HANDLE,) * 3, c_float, c_uint),
            "lbr_gru_forward": (*_FORWARD, c_int, *(_HANDLE,) * 7, c_uint),
            "lstm_forward": (*_FORWARD, c_int, *(_HANDLE,) * 11, c_uint),
            "matmul": (_NEW, *(_HANDLE,) * 5),
            "pooling_forward": (*_FORWARD, c_int, *(_HANDLE,) * 2, *(Sizes,) * 5),
            "reorder": (_NEW, *(_HANDLE,) * 4),
            "softmax_forward": (*_FORWARD, c_int, *(_HANDLE,) * 2, c_int),
            "vanilla_rnn_forward": (*_FORWARD, c_int, c_int, *(_HANDLE,) * 7, c_uint, c_float, c_float),
        }.items()
    },
}
"""The types of the arguments and of the result of the functions that are called; all handles are void pointers."""


@cache
def load_functions() -> ctypes.CDLL | None:
    """The library, its functions declared; None where it is not there, or not of the version and kind spoken to."""
    path = _path() if sys.platform == "linux" else None
    if path is None:
        return None
    try:
        with _surroundings(GOMP_SPINCOUNT=int(PATIENCE / pause())):
            dll = ctypes.CDLL(str(path))
        for name, (arguments, result) in FUNCTIONS.items():
            function = getattr(dll, name)
            function.argtypes = arguments
            function.restype = Statuses(name, result).__getitem__ if isinstance(result, dict) else result
    except (OSError, AttributeError):
        return None
    version = dll.dnnl_version().contents
    if version.major != MAJOR or version.cpu_runtime != _OMP:
        return None
    if os.environ.keys().isdisjoint(_PROFILED):
        dll.dnnl_set_jit_profiling_flags(0)
    _rest_at_fork(dll)
    return dll


def _rest_at_fork(dll: ctypes.CDLL) -> None:
    """Have OpenMP let the threads go that it keeps for a thread which forks: the child would wait for them for ever,
    as it has none of them. Both make others when they compute."""
    rest = getattr(dll, "omp_pause_resource_all", None)
    if rest is not None and hasattr(os, "register_at_fork"):
        rest.argtypes, rest.restype = (c_int,), c_int
        os.register_at_fork(before=partial(rest, _HARD))


def load_execute(dll: ctypes.CDLL) -> Any:
    """dnnl_primitive_execute(primitive, stream, number of arguments, arguments), which raises where its status is bad.

    Whoever calls it has made the arguments, two `c_void_p`, a `c_int` and `arguments_of`: to look at their types in
    every call would take a third of what a small one takes.
    """
    execute = dll["dnnl_primitive_execute"]
    execute.restype = Statuses("dnnl_primitive_execute", DONE).__getitem__
    return execute


def load_move(dll: ctypes.CDLL) -> Any:
    """dnnl_memory_set_data_handle(memory, address), called without giving up the interpreter, which would take longer.

    Raises where its status is bad."""
    move = ctypes.PyDLL(dll._name).dnnl_memory_set_data_handle
    move.argtypes, move.restype = (c_void_p, c_void_p), Statuses("dnnl_memory_set_data_handle", DONE).__getitem__
    return move


def load_threads(dll: ctypes.CDLL) -> tuple[Any, Any]:
    """OpenMP's functions that get and set how many threads what the calling thread calls may use.

    They are those of the library's own OpenMP, and called without giving up the interpreter, which would take longer.
    """
    openmp = ctypes.PyDLL(dll._name)
    get, change = openmp.omp_get_max_threads, openmp.omp_set_num_threads
    get.argtypes, get.restype = (), c_int
    change.argtypes, change.restype = (c_int,), None
    return get, change


def load_parallel(dll: ctypes.CDLL) -> Any:
    """GOMP_parallel(function, argument, threads, 0), which has as many threads call a function of C; those of the
    library's own OpenMP."""
    parallel = dll.GOMP_parallel
    parallel.argtypes, parallel.restype = (c_void_p, c_void_p, c_uint, c_uint), None
    return parallel


def _path() -> Path | None:
    """The library among the files of an installed distribution; what the current directory says is installed is not.

    `importlib.metadata` would find it, too, but takes as long to load as many a model takes to run.
    """
    try:
        here = Path.cwd()
    except FileNotFoundError:  # somebody has removed it
        here = None
    for folder in map(Path, sys.path):
        if folder == Path() or (here is not None and folder.resolve() == here):
            continue
        for record in folder.glob(f"{DISTRIBUTION.replace('-', '_')}-*.dist-info/RECORD"):
            for line in record.read_text().splitlines():
                path = folder / line.partition(",")[0]
                if path.name == FILE and path.is_file():
                    return path.resolve()
    return None


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
