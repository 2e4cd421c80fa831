"""oneDNN's engine and stream, and the handles that it gives out.

With `bindings`, this module alone knows pointers. What is above it says "describe, compile, run" with layouts and numpy
arrays.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from ctypes import byref, c_char_p, c_int, c_int64, c_void_p
from functools import cached_property, partial
from math import gcd
from threading import Lock
from typing import Any

from irrun.engines.axes import dense_strides
from irrun.engines.extents import extent_of
from irrun.engines.memory import Arranged, data_address
from irrun.engines.onednn.bindings import (
    MAX_AXES,
    OneDNNError,
    Sizes,
    arguments_of,
    load_execute,
    load_functions,
    load_move,
    load_parallel,
    load_threads,
)
from irrun.engines.onednn.signals import sheltered
from irrun.engines.placement import Placement
from irrun.engines.threads import Threads
from irrun.engines.work import Call
from irrun.engines.work_cache import WorkCache
from irrun.locks import fork_safe
from irrun.spec.dtypes import numpy_dtype
from irrun.spec.op import Array

SRC, SRC_1, SRC_2 = 1, 2, 3
DST, DST_1, DST_2 = 17, 18, 19
WEIGHTS, WEIGHTS_1, BIAS = 33, 34, 41
SCALE, SHIFT, SCRATCHPAD = 51, 52, 80
POST = 32768
"""Numbers of arguments; those of post-op n, from 1 on, are n * POST + SRC_1 (binary)."""
SCALES, ZERO_POINTS = 4096, 8192
"""What is added to the number of an argument for its scales (f32) and its zero points (i32)."""

DATA_TYPES = {"f16": 1, "bf16": 2, "f32": 3, "i32": 4, "i8": 5, "u8": 6}
"""Element types as oneDNN numbers them."""

MAX_LAYOUTS, MAX_MEMORIES = 4096, 8192
"""Layouts, and addresses with what lies there, that are remembered."""

MAX_LEAKING = 8192
"""Primitives that leave memory behind, as many as a process makes for sizes that change: 50 to 120 KB each."""

INFERENCE = 96
FEW_ELEMENTS, FEW_PRODUCTS = 32_768, 250_000
"""Elements to go over, and multiplications, that one thread is through with before another one is awake."""
FEW_CODES = 4 * FEW_PRODUCTS
"""The same for multiplications of bytes."""

TILED = "core_amx"
"""What stands in the names of implementations that multiply tiles."""

_SINGLE_TAPS, _SHIFTED = "brgconv_1x1:avx512_core_amx", "jit:avx512_core_amx"
_DOUBTFUL = ("brgconv:avx512_core_amx", _SINGLE_TAPS, _SHIFTED)
"""Convolutions by tiles, which are not always right."""

_TILE_BYTES, _TOGETHER_BYTES = 64, 4
"""How long the rows of tiles are, and what of these is added up at once."""

_ANY, _BLOCKED = 1, 2
_CPU = _USER_SCRATCHPAD = _IN_ORDER = 1
_STRIDES, _IMPLEMENTATION, _EXEC_ARG, _NDIMS, _DIMS, _TYPE, _FORMAT, _BLOCKS = 14, 8, 255, 256, 257, 258, 262, 263
_NAMES = {code: name for name, code in DATA_TYPES.items()}
_REFERENCE = ("ref", "simple")
_TOLD = {
    "matmul": (SRC, WEIGHTS, BIAS, DST),
    "binary": (None, SRC, SRC_1, DST),
    "eltwise_forward": (None, None, SRC, DST),
    "softmax_forward": (None, None, SRC, DST),
    "pooling_forward": (None, None, SRC, DST),
    "convolution_forward": (None, None, SRC, WEIGHTS, BIAS, DST),
    "deconvolution_forward": (None, None, SRC, WEIGHTS, BIAS, DST),
    "reorder": (SRC, DST),
}
"""Which arguments the layouts are of that primitives are made for, in the order in which these are given."""
_RECURRENT = ("lstm_forward", "gru_forward", "lbr_gru_forward", "vanilla_rnn_forward")
"""Primitives whose reference is made of fast products and compiled functions."""
_MADE_OF_PRODUCTS = (*_RECURRENT, "deconvolution_forward")
"""Primitives that are made of others, whatever these are called."""
_AVX2, _AVX512, _AVX512_VNNI, _AVX512_BF16 = 0x7, 0x27, 0x67, 0xE7


class _Handle:
    """An object of oneDNN that is destroyed when nothing refers to it any more."""

    __slots__ = ("_as_parameter_", "_destroy")

    def __init__(self, pointer: c_void_p, destroy: Any) -> None:
        self._as_parameter_, self._destroy = pointer, destroy

    def __del__(self) -> None:  # a finalizer of weakref takes ten times as long to make, and there are many handles
        self._destroy(self._as_parameter_)


class Descriptor:
    """How a tensor lies in memory: a memory descriptor of oneDNN. `nbytes` are those it takes, padding included; one
    that is `open` leaves all but the shape and the type to a primitive."""

    def __init__(self, library: Library, handle: _Handle, *, open: bool = False) -> None:
        self._library, self._as_parameter_, self.open = library, handle, open
        self.nbytes = int(library.size_of(handle))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Descriptor) and bool(self._library.equal(self, other)))

    def __hash__(self) -> int:
        return self.nbytes or hash(self.shape)  # those that are open have no bytes

    @cached_property
    def shape(self) -> tuple[int, ...]:
        rank, sizes = c_int(), ctypes.POINTER(c_int64)()
        self._library.query(self, _NDIMS, byref(rank))
        self._library.query(self, _DIMS, byref(sizes))
        return tuple(sizes[: rank.value])

    @cached_property
    def type(self) -> str:
        """The element type."""
        code = c_int()
        self._library.query(self, _TYPE, byref(code))
        return _NAMES[code.value]

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return numpy_dtype(self.type).itemsize

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
        return tuple(self.itemsize * step for step in steps[: len(self.shape)])


class _Memory:
    """An address and how what begins there lies; `pointer` is where oneDNN has noted that."""

    __slots__ = ("_handle", "_layout", "pointer")

    def __init__(self, handle: _Handle, layout: Descriptor) -> None:
        self._handle, self._layout = handle, layout
        self.pointer: int = handle._as_parameter_.value or 0


class Primitive:
    """A computation, for a number of threads, that oneDNN compiles when it is first bound: others are often asked for
    only to see what they would be. `scratch` is how many bytes a call takes. One that is `leaking` leaves the tables of
    its functions behind when it is destroyed; `leaked` have been compiled so far. While one that is `exposed`
    computes, signals have to wait (`signals.py`)."""

    leaked = 0

    def __init__(
        self,
        library: Library,
        descriptor: _Handle,
        implementation: str,
        threads: int,
        given: dict[int, Descriptor],
        leaking: bool,
        exposed: bool,
    ) -> None:
        self.library, self._descriptor, self.implementation = library, descriptor, implementation
        self._threads, self._leaking, self._exposed = threads, leaking, exposed
        self._layouts = given
        self._execute: Callable[[c_int, bytes, object], object] | None = None
        self.scratch = int(library.size_of(library.dll.dnnl_primitive_desc_query_md(descriptor, _EXEC_ARG, SCRATCHPAD)))

    def pending(self) -> list[Call]:
        """What compiles it, by any thread, before it is bound; nothing where that is done. It raises OneDNNError."""
        return [self._compiled] if self._execute is None else []

    def _compiled(self) -> Callable[[c_int, bytes, object], object]:
        """What computes it. Raises OneDNNError."""
        self.library.use_threads(self._threads)
        handle = self.library.made("primitive_create", "primitive_destroy", self._descriptor)
        with self.library.lock:  # calls of other threads have the first one that is made
            Primitive.leaked += self._leaking
            if self._execute is None:
                self._handle = handle
                self._execute = self._executing()  # shared by all calls: closures of their own would be many objects
            return self._execute

    def layout(self, number: int) -> Descriptor:
        """How an argument must lie in memory."""
        if number not in self._layouts:
            self._layouts[number] = self.library.layout_of(self._descriptor, number)
        return self._layouts[number]

    def bind(self, arguments: Iterable[tuple[int, Descriptor, Array]], scratch: Any) -> Callable[[], object]:
        """A call that reads and writes these arrays, with all its arguments made. Raises OneDNNError."""
        execute, arguments = self._execute or self._compiled(), self._all(arguments, scratch)
        memories = [self.library.memory(layout, array) for _, layout, array in arguments]
        return partial(execute, c_int(len(arguments)), _numbered(arguments, memories), (self, memories, arguments))

    def bind_places(
        self,
        arguments: Iterable[tuple[int, Descriptor, Array]],
        scratch: Any,
        moved: Mapping[int, Sequence[Array]],
    ) -> Callable[[], object]:
        """A call that does so at one place after the other: with these arrays in turn for the arguments that are
        `moved`, which lie alike. To bind each place by itself takes longer than to compute it once. Raises
        OneDNNError."""
        execute, arguments = self._execute or self._compiled(), self._all(arguments, scratch)
        library = self.library
        own = {number: library.movable(layout, moved[number]) for number, layout, _ in arguments if number in moved}
        memories = [
            own[number][0] if number in own else library.memory(layout, array) for number, layout, array in arguments
        ]
        kept = self, memories, arguments, moved
        pointers = [memory.pointer for memory, _ in own.values()]
        turns = zip(*(addresses for _, addresses in own.values()), strict=True)
        places = [[*zip(pointers, turn, strict=True)] for turn in turns]
        move, count, told = library.move, c_int(len(arguments)), _numbered(arguments, memories)

        def call() -> None:
            for place in places:
                for pointer, address in place:
                    move(pointer, address)
                execute(count, told, kept)

        return call

    def _all(
        self, arguments: Iterable[tuple[int, Descriptor, Array]], scratch: Any
    ) -> list[tuple[int, Descriptor, Array]]:
        bound = list(arguments)
        if self.scratch:
            bound.append((SCRATCHPAD, self.layout(SCRATCHPAD), scratch))
        return bound

    def _executing(self) -> Callable[[c_int, bytes, object], object]:
        """What computes with so many arguments; these lie in what is kept beside them."""
        library, threads = self.library, self._threads
        execute, used, use = library.execute, library.threads_used, library.use_threads
        if self._exposed:
            execute = sheltered(execute, threads, library.parallel_call)
        place = library.place if threads > 1 else None
        handle, stream = self._handle._as_parameter_, library.stream._as_parameter_

        def call(count: c_int, arguments: bytes, kept: object) -> None:
            if used() != threads:  # a setting of the calling thread, which other executors and libraries share
                use(threads)
            if place is not None:
                place()
            execute(handle, stream, count, arguments)

        return call


class Library:
    """The loaded library with one CPU engine and one stream, for `threads` threads within a call.

    `wide` says that the processor has AVX-512, where channels come last in what is fastest, and else in blocks. `bf16`
    says that it multiplies bf16 itself. `exact` that it adds up products of bytes without saturating them on the way,
    `pairs` that it has what does so with products of numbers of 16 bits.
    `once` that there will be one run, `lasting` that primitives will be used in many, as all of these have the same
    `fixed` sizes.
    """

    def __init__(self, dll: ctypes.CDLL, threads: int, once: bool = False, fixed: bool = False) -> None:
        self.dll, self.threads, self.once = dll, threads, once
        self.lasting = fixed and not once
        self.threads_used, self.use_threads = load_threads(dll)
        self.parallel_call = load_parallel(dll)
        self._placement = Placement(1 if once else threads, self.parallel_call)
        self.size_of, self.equal = dll.dnnl_memory_desc_get_size, dll.dnnl_memory_desc_equal
        self.query, self.execute, self.move = dll.dnnl_memory_desc_query, load_execute(dll), load_move(dll)
        self.engine = self.made("engine_create", "engine_destroy", _CPU, 0)
        self.stream = self.made("stream_create", "stream_destroy", self.engine, _IN_ORDER)
        self._primitives: weakref.WeakValueDictionary[tuple[Any, ...], Primitive] = weakref.WeakValueDictionary()
        self._layouts: dict[tuple[Any, ...], Descriptor] = {}
        self._told: dict[Descriptor, Descriptor] = {}  # those of primitives, equal ones as one
        self._memories: dict[tuple[int, int], _Memory] = {}
        self.lock = fork_safe(Lock())
        self.works, self.pieces = WorkCache(), WorkCache()
        self.pool = Threads(threads)
        self.packed: weakref.WeakValueDictionary[tuple[Hashable, ...], Arranged] = weakref.WeakValueDictionary()
        isa = dll.dnnl_get_effective_cpu_isa()
        self.wide, self.bf16 = isa & _AVX512 == _AVX512, isa & _AVX512_BF16 == _AVX512_BF16
        self.exact, self.pairs = isa & _AVX512_VNNI == _AVX512_VNNI, isa & _AVX2 == _AVX2

    @property
    def place(self) -> Callable[[], object] | None:
        """What to call before threads of OpenMP compute, if they are to be brought to where they compute soonest."""
        return self._placement.look if self._placement.needed else None

    def parallel(self, address: int, argument: int) -> None:
        """Have each thread call a function of C with an argument, and wait for them."""
        if self._placement.needed:
            self._placement.look()
        self.parallel_call(address, argument, self.threads, 0)

    def made(self, create: str, destroy: str, *args: Any) -> _Handle:
        """What a function of oneDNN makes, which must be there."""
        found = self.possible(create, destroy, *args)
        if found is None:
            raise OneDNNError(f"dnnl_{create} has made nothing")
        return found

    def possible(self, create: str, destroy: str, *args: Any) -> _Handle | None:
        """What a function of oneDNN makes; None where it says that there is no such thing."""
        pointer = c_void_p()
        if getattr(self.dll, f"dnnl_{create}")(byref(pointer), *map(_argument, args)) is False:
            return None
        if not pointer:
            raise OneDNNError(f"dnnl_{create} has made nothing")
        return _Handle(pointer, getattr(self.dll, f"dnnl_{destroy}"))

    def strided(self, shape: Sequence[int], strides: Sequence[int], type: str = "f32") -> Descriptor | None:
        """The layout of an array by numpy's strides; None where oneDNN has none such, as for repeated elements."""
        key = (tuple(shape), type, tuple(strides))
        layout = self._layouts.get(key)
        if layout is None:
            item = numpy_dtype(type).itemsize
            if not shape or len(shape) > MAX_AXES or any(step % item or step < 0 for step in strides):
                return None
            if any(step == 0 and size > 1 for size, step in zip(shape, strides, strict=True)):
                return None
            sizes = (len(shape), key[0], DATA_TYPES[type], tuple(step // item for step in strides))
            found = self.possible("memory_desc_create_with_strides", "memory_desc_destroy", *sizes)
            if found is None:
                return None
            _make_room(self._layouts)
            layout = self._layouts[key] = Descriptor(self, found)
            layout.shape, layout.type, layout.strides = key  # so that nobody has to ask for them
        return layout

    def dense(self, shape: Sequence[int], type: str = "f32") -> Descriptor:
        layout = self.strided(shape, dense_strides(shape, numpy_dtype(type).itemsize), type)
        assert layout is not None
        return layout

    def any(self, shape: Sequence[int], type: str = "f32") -> Descriptor:
        """The layout that is left to the primitive."""
        key = (tuple(shape), type)
        layout = self._layouts.get(key)
        if layout is None:
            sizes = (len(shape), key[0], DATA_TYPES[type], _ANY)
            found = self.made("memory_desc_create_with_tag", "memory_desc_destroy", *sizes)
            _make_room(self._layouts)
            layout = self._layouts[key] = Descriptor(self, found, open=True)
            layout.shape, layout.type = key
        return layout

    def retyped(self, layout: Descriptor | None, type: str) -> Descriptor | None:
        """The layout of a tensor of another element type in the same order, where numpy can express it."""
        if layout is None or layout.strides is None:
            return None
        item = numpy_dtype(type).itemsize
        return self.strided(layout.shape, tuple(step // layout.itemsize * item for step in layout.strides), type)

    def layout_of(self, descriptor: _Handle, number: int) -> Descriptor:
        found = self.dll.dnnl_primitive_desc_query_md(descriptor, _EXEC_ARG, number)
        if found is None:
            raise OneDNNError(f"a primitive has no argument {number}")
        layout = Descriptor(self, self.made("memory_desc_clone", "memory_desc_destroy", found))
        _make_room(self._told)
        return self._told.setdefault(layout, layout)

    def memory(self, layout: Descriptor, array: Array) -> _Memory:
        """The memory of an array, which the layout must not reach beyond; it never goes back from the first element.

        What was used before for a layout at an address serves again. Raises OneDNNError where it does reach beyond.
        """
        _check_reach(layout, array)
        address = data_address(array)
        key = id(layout), address  # which is nobody else's as long as what is found keeps the layout
        found = self._memories.get(key)
        if found is None:
            _make_room(self._memories, MAX_MEMORIES)
            found = self._memories[key] = self._noted(layout, address)
        return found

    def movable(self, layout: Descriptor, arrays: Sequence[Array]) -> tuple[_Memory, list[int]]:
        """Memory that nobody else uses, and the addresses of arrays that it is to be of in turn. Raises as `memory`."""
        first = arrays[0]
        for array in arrays:
            if array is first or array.shape != first.shape or array.strides != first.strides:
                _check_reach(layout, array)
        addresses = [*map(data_address, arrays)]
        return self._noted(layout, addresses[0]), addresses

    def _noted(self, layout: Descriptor, address: int) -> _Memory:
        pointer = c_void_p()
        self.dll.dnnl_memory_create(byref(pointer), layout, self.engine, address)
        if not pointer:
            raise OneDNNError("dnnl_memory_create has made nothing")
        return _Memory(_Handle(pointer, self.dll.dnnl_memory_destroy), layout)

    def primitive(
        self,
        kind: str,
        *args: Any,
        posts: Sequence[tuple[Any, ...]] = (),
        small: bool = False,
        quantities: Sequence[tuple[int, int]] = (),
    ) -> Primitive | None:
        """Compile a primitive, or find an equal one; None where oneDNN has none, or only its slow reference, or where
        too many have left memory behind.

        `kind` and `args` are those of `dnnl_<kind>_primitive_desc_create`: layouts, tuples as dimensions, floats and
        ints. `posts` are ("eltwise", algorithm, alpha, beta) and ("binary", algorithm, layout). What is `small` (see
        FEW_ELEMENTS) is computed by one thread. `quantities` are the SCALES and ZERO_POINTS that it is given, with
        masks that have bit n set where they go along axis n.
        """
        threads = 1 if small else self.threads
        key = (kind, args, tuple(posts), threads, tuple(quantities))
        found = self._primitives.get(key)
        if found is None:
            self.use_threads(threads)
            found = self._compile(kind, args, posts, quantities, threads)
            if found is not None:
                self._primitives[key] = found
        return found

    def _compile(
        self,
        kind: str,
        args: Sequence[Any],
        posts: Sequence[tuple[Any, ...]],
        quantities: Sequence[tuple[int, int]],
        threads: int,
    ) -> Primitive | None:
        attributes = self._attributes(posts, quantities)
        places = (args[0], self.engine, args[1], self.engine) if kind == "reorder" else (self.engine, *args)
        descriptor = self.possible(f"{kind}_primitive_desc_create", "primitive_desc_destroy", *places, attributes)
        if descriptor is None:
            return None
        implementation = self._implementation(descriptor)
        shifted = any(number >= ZERO_POINTS for number, _ in quantities)
        if implementation in _DOUBTFUL and _is_wrong_by_tiles(implementation, args, shifted=shifted):
            while implementation in _DOUBTFUL:
                if not self.dll.dnnl_primitive_desc_next_impl(descriptor):
                    return None
                implementation = self._implementation(descriptor)
        parts = implementation.split("+")  # what a transposed convolution is made of stands behind a sign
        if kind not in ("reorder", *_RECURRENT) and any(part.startswith(_REFERENCE) for part in parts):
            return None
        leaking = "brg" in implementation and any(post[0] == "eltwise" for post in posts) and "conv" in kind
        if leaking and not self.lasting and Primitive.leaked >= MAX_LEAKING:
            return None
        exposed = is_exposed(kind, implementation)
        return Primitive(self, descriptor, implementation, threads, _given(kind, args, posts), leaking, exposed)

    def _implementation(self, descriptor: _Handle) -> str:
        name = c_char_p()
        self.dll.dnnl_primitive_desc_query(descriptor, _IMPLEMENTATION, 0, byref(name))
        return (name.value or b"").decode()

    def _attributes(self, posts: Sequence[tuple[Any, ...]], quantities: Sequence[tuple[int, int]]) -> _Handle:
        dll = self.dll
        attributes = self.made("primitive_attr_create", "primitive_attr_destroy")
        dll.dnnl_primitive_attr_set_scratchpad_mode(attributes, _USER_SCRATCHPAD)
        for number, mask in quantities:
            kind = "scales" if number < ZERO_POINTS else "zero_points"
            argument = number % SCALES
            getattr(dll, f"dnnl_primitive_attr_set_{kind}_mask")(attributes, argument, mask)
        if posts:
            chain = self.made("post_ops_create", "post_ops_destroy")
            for kind, *args in posts:
                getattr(dll, f"dnnl_post_ops_append_{kind}")(chain, *args)
            dll.dnnl_primitive_attr_set_post_ops(attributes, chain)
        return attributes


def is_exposed(kind: str, implementation: str) -> bool:
    """Whether a primitive may compute on a stack in the heap: products that are not `brgemm` do."""
    return "brg" not in implementation and ("gemm" in implementation or kind in _MADE_OF_PRODUCTS)


def _is_wrong_by_tiles(implementation: str, args: Sequence[Any], *, shifted: bool) -> bool:
    """Whether a convolution by products of tiles may be wrong.

    One of single taps is along three axes, where channels do not fill tiles. Others take neighbours in a row, as many
    as divide the stride and the kernel, for one pixel with all their channels, where these fill tiles; filters lie as
    if the channels of each pixel did. Where strides are longer than the kernel they write over data still to be read.
    Where data have a zero point, what is taken off for it is right where the last of two axes at most is padded, and no
    padding is more than half of the kernel, which is no longer than the data.
    """
    source, weights, strides, begins, ends = (args[number] for number in (2, 3, 6, 8, 9))
    channels, kernel = weights.shape[-1 - len(strides)], weights.shape[-len(strides) :]
    tile, together = _TILE_BYTES // source.itemsize, _TOGETHER_BYTES // source.itemsize
    if implementation == _SINGLE_TAPS:
        return len(strides) > 2 and channels % tile > 0
    alone = not begins[-1] and ends[-1] <= 0
    if implementation == _SHIFTED and shifted and (any(begins) or max(ends) > 0):
        spans = [(taps - 1) * (gap + 1) + 1 for taps, gap in zip(kernel, args[7], strict=True)]
        sizes = source.shape[-len(strides) :]
        usual = all(2 * max(pads) <= span <= size for span, size, *pads in zip(spans, sizes, begins, ends, strict=True))
        if alone or len(strides) > 2 or not usual:
            return True
    joined = gcd(strides[-1], kernel[-1])
    filled = not channels % together and channels % tile and not channels * joined % tile
    folded = filled and alone and channels * joined > tile
    return bool(folded or any(stride > taps for stride, taps in zip(strides, kernel, strict=True)))


def _numbered(arguments: Sequence[tuple[int, Descriptor, Array]], memories: Sequence[_Memory]) -> bytes:
    numbers: list[int] = []
    for (number, _, _), memory in zip(arguments, memories, strict=True):
        numbers += number, memory.pointer
    return arguments_of(numbers)


def _check_reach(layout: Descriptor, array: Array) -> None:
    """Raises OneDNNError where a layout reaches beyond an array from its first element on."""
    if array.flags.c_contiguous and layout.nbytes <= array.nbytes:
        return
    steps = layout.strides
    reach = layout.nbytes if steps is None else extent_of(layout.shape, steps, layout.itemsize)[1]
    if reach > extent_of(array.shape, array.strides, array.itemsize)[1]:
        raise OneDNNError(
            f"an array of shape {array.shape} and strides {array.strides} is to be read or written as "
            f"{layout.shape} with {steps}"
        )


def _make_room(kept: dict[Any, Any], most: int = MAX_LAYOUTS) -> None:
    """Forget all where there is too much: what is in use is held by others, and may be made again."""
    if len(kept) >= most:
        kept.clear()


def _given(kind: str, args: Sequence[Any], posts: Sequence[tuple[Any, ...]]) -> dict[int, Descriptor]:
    """The layouts of arguments that a primitive is told, by their numbers."""
    told = [*zip(_TOLD.get(kind, ()), args, strict=False)]
    told += [((n + 1) * POST + SRC_1, post[-1]) for n, post in enumerate(posts) if post[0] == "binary"]
    return {number: own for number, own in told if number and isinstance(own, Descriptor) and not own.open}


def _argument(value: Any) -> Any:
    return Sizes(*value) if isinstance(value, tuple) else value


def open_library(threads: int, *, once: bool = False, fixed: bool = False) -> Library | None:
    """The library, or None where it is not installed or not of the version and the kind that is spoken to."""
    dll = load_functions()
    return None if dll is None else Library(dll, threads, once, fixed)
