"""Works on random views for both engines: transposed, cut out, reversed, repeated, and constants at odd addresses."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from engines.onednn_works import room
from engines.works import op_of, plain, posted

from irrun.engines.work import Compiled, Engine, Layout, Operand, Post, Work
from irrun.spec.dtypes import element_type, numpy_dtype
from irrun.spec.op import Array
from irrun.spec.registry import registry

POSTS_BEHIND_ALL = (
    "Add-1",
    "Multiply-1",
    "Subtract-1",
    "Divide-1",
    "Tanh-1",
    "Sigmoid-1",
    "Abs-1",
    "SquaredDifference-1",
)
POSTS = (*POSTS_BEHIND_ALL, "ReLU-1", "Clamp-1", "Maximum-1", "Minimum-1", "PReLU-1", "Power-1", "Elu-1", "HSwish-4")
ATTRS: dict[str, dict[str, Any]] = {"Clamp-1": {"min": -0.5, "max": 0.75}, "Elu-1": {"alpha": 0.5}}


@dataclass
class Case:
    """An op with the shapes of its tensors of random numbers, or the arrays that the others are."""

    name: str
    attrs: Mapping[str, Any]
    inputs: list[Any]
    constants: frozenset[int] = frozenset()
    """Those that must be; others may be."""
    posts: bool = True


@dataclass
class Draw:
    """Random choices of one seed."""

    seed: int
    choose: random.Random = field(init=False)
    numbers: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.choose, self.numbers = random.Random(self.seed), np.random.default_rng(self.seed)

    def size(self, most: int = 7) -> int:
        return self.choose.choice((1, 2, 3, most, self.choose.randint(1, most)))

    def tensor(self, shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
        """Numbers of a shape in a random view."""
        ways = [self.dense, self._transposed, self._cut, self._reversed, self._repeated]
        return self.choose.choice(ways)(shape, dtype)

    def dense(self, shape: tuple[int, ...], dtype: Any) -> Array:
        return np.asarray(self.numbers.standard_normal(shape), dtype)

    def _transposed(self, shape: tuple[int, ...], dtype: Any) -> Array:
        order = self.choose.sample(range(len(shape)), len(shape))
        return self.dense(tuple(shape[axis] for axis in order), dtype).transpose(np.argsort(order))

    def _cut(self, shape: tuple[int, ...], dtype: Any) -> Array:
        steps = [self.choose.choice((1, 1, 2)) for _ in shape]
        starts = [self.choose.choice((0, 0, 1)) for _ in shape]
        whole = self.dense(tuple(s + n * k for s, n, k in zip(starts, shape, steps, strict=True)), dtype)
        return whole[(..., *(slice(s, s + n * k, k) for s, n, k in zip(starts, shape, steps, strict=True)))]

    def _reversed(self, shape: tuple[int, ...], dtype: Any) -> Array:
        return self.dense(shape, dtype)[(..., *(slice(None, None, self.choose.choice((1, -1))) for _ in shape))]

    def _repeated(self, shape: tuple[int, ...], dtype: Any) -> Array:
        own = tuple(self.choose.choice((1, size)) for size in shape)
        return np.broadcast_to(self.tensor(own, dtype), shape)

    def odd(self, array: Array) -> Array:
        """The same array, with the same strides, at an address that is not a multiple of its elements' size."""
        low = sum(min((size - 1) * step, 0) for size, step in zip(array.shape, array.strides, strict=True))
        high = sum(max((size - 1) * step, 0) for size, step in zip(array.shape, array.strides, strict=True))
        memory = np.zeros(high - low + array.itemsize + 64, np.uint8)
        start = -memory.ctypes.data % 64 + self.choose.choice((1, 2, 3)) - low
        moved = np.ndarray(array.shape, array.dtype, memory[start + low :].data, -low, array.strides)
        values = np.ascontiguousarray(array)
        if 0 in array.strides:
            moved = np.lib.stride_tricks.as_strided(moved, array.shape, array.strides)
        moved[...] = values
        moved.flags.writeable = False
        return moved


def broadcastable(draw: Draw, shape: tuple[int, ...]) -> tuple[int, ...]:
    own = tuple(draw.choose.choice((1, size, size)) for size in shape)
    return own[draw.choose.choice((0, 0, *range(len(shape) + 1))) :]


def posts_behind(draw: Draw, arrays: list[Any], shape: tuple[int, ...]) -> list[Post]:
    """Some element-wise ops behind a result; their operands are appended to the arrays."""
    result = []
    for _ in range(draw.choose.choice((0, 0, 1, 1, 2, 3))):
        name = draw.choose.choice(POSTS)
        op = registry().ops[name]
        attrs = op.defaults | ATTRS.get(name, {})
        if len(op.inputs) == 1:
            result.append(Post(name, attrs))
            continue
        if name == "Power-1":
            result.append(Post(name, attrs, len(arrays), draw.choose.random() < 0.5))
            arrays.append(np.array(2, np.float32))
            continue
        own = (shape[1],) if name == "PReLU-1" and len(shape) > 1 else broadcastable(draw, shape)
        if name == "PReLU-1" and len(shape) < 2:
            continue
        result.append(
            Post(name, attrs, len(arrays), name not in ("PReLU-1", "Divide-1") and draw.choose.random() < 0.4)
        )
        arrays.append(draw.tensor(own))
    return result


def work_on(draw: Draw, case: Case, engine: Engine) -> tuple[Work, list[Any], list[Any]]:
    """The work of a case, its arrays, and what the op's kernel makes of them."""
    op = op_of(case.name)
    attrs = op.defaults | dict(case.attrs)
    arrays = [draw.tensor(given) if isinstance(given, tuple) else given for given in case.inputs]
    types = {"T": element_type(arrays[0].dtype), "destination_type": attrs.get("destination_type")}
    with np.errstate(all="ignore"):
        results = plain(case.name, attrs, arrays, types)
    if arrays[-1] is None:
        arrays.pop()
    several = isinstance(results, tuple | list)
    expected = [np.asarray(result) for result in (results if several else (results,))]
    if case.name.startswith("MaxPool"):
        expected = expected[:1]  # nobody reads the indices
    posts: list[Post] = []
    if case.posts and expected[0].dtype == np.float32:
        posts = posts_behind(draw, arrays, expected[0].shape)
        expected[0] = np.asarray(posted(posts, expected[0], arrays))
    operands: list[Operand | None] = []
    for number, array in enumerate(arrays):
        if array is None:
            operands.append(None)
            continue
        constant = number in case.constants or (number and draw.choose.random() < 0.5)
        if constant and engine.unaligned(case.name) and draw.choose.random() < 0.4:
            array = arrays[number] = draw.odd(array)
        operands.append(Operand(element_type(array.dtype), array.shape, array.strides, array if constant else None))
    outputs = [
        Operand(element_type(result.dtype), result.shape, np.empty(result.shape, result.dtype).strides)
        for result in expected
    ]
    return Work(case.name, attrs, operands, outputs, posts), arrays, expected


WINDOW_NAMES = ("Convolution-1", "GroupConvolution-1", "ConvolutionBackpropData-1", "GroupConvolutionBackpropData-1")


def element_wise(draw: Draw, name: str) -> Case:
    shape = tuple(draw.size() for _ in range(draw.choose.choice((1, 2, 3, 4, 4))))
    op = registry().ops[name]
    attrs = ATTRS.get(name, {})
    if name == "Select-1":
        return Case(name, attrs, [draw.tensor(shape) > 0, shape, broadcastable(draw, shape)])
    if name == "HardSigmoid-1":
        return Case(name, attrs, [shape, np.float32([0.2])[0], np.float32([0.5])[0]])
    if name == "Convert-1":
        return Case(name, {"destination_type": draw.choose.choice(("i32", "f64", "boolean"))}, [shape], posts=False)
    if name in ("BitwiseNot-13", "LogicalNot-1"):
        return Case(name, attrs, [draw.tensor(shape) > 0], posts=False)
    if len(op.inputs) == 1:
        return Case(name, attrs, [shape])
    if name == "FakeQuantize-1":
        rows = (shape[0], *[1] * (len(shape) - 1)) if draw.choose.random() < 0.5 else ()
        limits = [np.full(rows, value, np.float32) for value in (-1.5, 1.25, -1.5, draw.choose.choice((1.25, 3.0)))]
        levels = {"levels": draw.choose.choice((2, 16, 256)), "auto_broadcast": "numpy"}
        return Case(name, levels, [shape, *limits], frozenset(range(1, 5)))
    if name == "FakeConvert-13":
        numbers = [np.array(value, np.float32) for value in (draw.choose.choice((0.5, 100.0)), 0.25)]
        attrs = {"destination_type": draw.choose.choice(("f8e4m3", "f8e5m2"))}
        return Case(name, attrs, [shape, *numbers[: draw.choose.choice((1, 2))]], frozenset((1, 2)))
    if name == "Swish-4":
        return Case(name, attrs, [shape, draw.choose.choice((None, np.array(1.5, np.float32)))])
    if name == "PReLU-1":
        return Case(name, attrs, [shape, (shape[1],) if len(shape) > 1 else (1,)])
    both = [shape, broadcastable(draw, shape)]
    draw.choose.shuffle(both)
    if name.startswith(("Bitwise", "Logical", "Xor")):
        return Case(name, attrs, [(draw.tensor(own) > 0) for own in both], posts=False)
    return Case(name, attrs, both)


def windows(draw: Draw, name: str) -> Case:
    rank = draw.choose.choice((1, 2, 2, 3))
    transposed, grouped = "Backprop" in name, name.startswith("Group")
    groups = draw.choose.choice((1, 2, 4)) if grouped else 1
    channels, features = draw.choose.choice((1, 2, 4, 8)), draw.choose.choice((1, 3, 8))
    kernel = tuple(draw.choose.choice((1, 2, 3)) for _ in range(rank))
    attrs = {
        "strides": tuple(draw.choose.choice((1, 1, 2)) for _ in kernel),
        "dilations": tuple(draw.choose.choice((1, 1, 2)) for _ in kernel),
        "pads_begin": tuple(draw.choose.choice((0, 1)) for _ in kernel),
        "pads_end": tuple(draw.choose.choice((0, 1)) for _ in kernel),
        "auto_pad": draw.choose.choice(("explicit", "explicit", "same_upper", "same_lower", "valid")),
    }
    if transposed:
        attrs["auto_pad"] = "explicit"
    spatial = tuple(draw.choose.choice((5, 6, 9)) for _ in kernel)
    data = (draw.choose.choice((1, 2)), groups * channels, *spatial)
    ends = (channels, features) if transposed else (features, channels)
    filters = (*((groups,) if grouped else ()), *ends, *kernel)
    return Case(name, attrs, [data, filters])


def pool(draw: Draw, name: str) -> Case:
    rank = draw.choose.choice((1, 2, 2, 3))
    kernel = tuple(draw.choose.choice((1, 2, 3)) for _ in range(rank))
    attrs = {
        "kernel": kernel,
        "strides": tuple(draw.choose.choice((1, 2)) for _ in kernel),
        "pads_begin": tuple(draw.choose.choice((0, size // 2)) for size in kernel),
        "pads_end": tuple(draw.choose.choice((0, size // 2)) for size in kernel),
        "auto_pad": draw.choose.choice(("explicit", "explicit", "same_upper", "valid")),
        "rounding_type": draw.choose.choice(("floor", "ceil")),
    }
    if name.startswith("AvgPool"):
        attrs["exclude_pad"] = draw.choose.choice((True, False))
    spatial = tuple(draw.choose.choice((5, 6, 9)) for _ in kernel)
    shape = (draw.choose.choice((1, 1, 2)), draw.choose.choice((1, 3, 16)), *spatial)
    if draw.choose.random() < 0.5:
        return Case(name, attrs, [np.moveaxis(draw.dense((shape[0], *spatial, shape[1]), np.float32), -1, 1)])
    return Case(name, attrs, [shape])


def product(draw: Draw, name: str) -> Case:
    batch = tuple(draw.size(3) for _ in range(draw.choose.choice((0, 0, 1, 2))))
    rows, inner, columns = draw.size(9), draw.size(9), draw.choose.choice((1, 3, 8, 16))
    first, second = draw.choose.random() < 0.3, draw.choose.random() < 0.3
    left = (inner, rows) if first else (rows, inner)
    right = (columns, inner) if second else (inner, columns)
    one = draw.choose.choice(((*batch, *left), left))
    other = draw.choose.choice(((*batch, *right), right))
    if not first and draw.choose.random() < 0.1:
        one = (inner,)
    if not second and draw.choose.random() < 0.1:
        other = (inner,)
    return Case(name, {"transpose_a": first and len(one) > 1, "transpose_b": second and len(other) > 1}, [one, other])


def contraction(draw: Draw, name: str) -> Case:
    sizes = {label: draw.size() for label in "bcijk"}
    terms = ("bij,bjk->bik", "bij,bjk->bki", "bcij,bckj->bick", "bij,jck->bcik", "bicj,kcj->bik", "bcij,ikj->bcik")
    equation = draw.choose.choice(terms)
    shapes = [tuple(sizes[label] for label in term) for term in equation.split("->")[0].split(",")]
    return Case(name, {"equation": equation}, shapes)


def frames(draw: Draw, name: str) -> Case:
    size = draw.size()
    window, signal = draw.choose.randint(1, size), (draw.size(), size + draw.size(20))
    shape = signal[draw.choose.choice((0, 1)) :]
    attrs = {"transpose_frames": draw.choose.choice((True, False))}
    return Case(name, attrs, [shape, (window,), np.array(size), np.array(draw.size())], frozenset({2, 3}))


def fourier(draw: Draw, name: str) -> Case:
    sizes = tuple(draw.size() + (name == "IRDFT-9") for _ in range(draw.choose.choice((1, 2, 3))))
    last = len(sizes) - 1
    first = draw.choose.sample(range(last), draw.choose.randint(0, last))
    shape = sizes if name == "RDFT-9" else (*sizes, 2)
    lengths = [None, np.array([draw.size(9) for _ in (*first, last)])][draw.choose.choice((0, 0, 1))]
    return Case(name, {}, [shape, np.array([*first, last]), lengths], frozenset({1, 2}))


def reduction(draw: Draw, name: str) -> Case:
    shape = tuple(draw.size() for _ in range(draw.choose.choice((2, 3, 4))))
    axes = sorted(draw.choose.sample(range(len(shape)), draw.choose.randint(1, len(shape))))
    if draw.choose.random() < 0.6 and len(shape) > 2:
        axes = list(range(2, len(shape)))
        shape = (2, 16, *shape[2:])
    data: Any = draw.tensor(shape) > 0 if "Logical" in name else shape
    attrs = {"keep_dims": draw.choose.choice((True, True, False))}
    return Case(
        name, attrs, [data, np.array(axes)], frozenset({1}), posts="Logical" not in name and draw.choose.random() < 0.5
    )


def normalization(draw: Draw, name: str) -> Case:
    rank = draw.choose.choice((2, 3, 4))
    shape = (draw.choose.choice((1, 1, 2, 3)), draw.choose.choice((2, 4, 6)), *(draw.size() for _ in range(rank - 2)))
    first = draw.choose.randrange(rank)
    axes = np.arange(first, rank)
    channels = (shape[1],)
    if name.startswith("BatchNorm"):
        tables = [channels, channels, channels, np.abs(draw.numbers.standard_normal(channels)).astype(np.float32)]
        tables.insert(2 if name.endswith("-1") else 0, shape)
        fixed = frozenset(range(5)) - {2 if name.endswith("-1") else 0}
        return Case(name, {"epsilon": 1e-2}, tables, fixed)
    if name == "GroupNormalization-12":
        groups = draw.choose.choice([n for n in (1, 1, 2) if shape[1] % n == 0])
        return Case(name, {"num_groups": groups, "epsilon": 1e-2}, [shape, channels, channels], frozenset({1, 2}))
    if name == "MVN-1":
        attrs = {"normalize_variance": True, "eps": 1e-2, "across_channels": draw.choose.choice((True, False))}
        return Case(name, attrs, [shape])
    if name == "MVN-6":
        attrs = {"normalize_variance": True, "eps": 1e-2, "eps_mode": "inside_sqrt"}
        return Case(name, attrs, [shape, axes], frozenset({1}))
    if name == "NormalizeL2-1":
        return Case(name, {"eps": 1e-2, "eps_mode": "add"}, [shape, axes], frozenset({1}))
    if name == "LRN-1":
        attrs = {"alpha": 0.5, "beta": 0.75, "bias": 1.0, "size": 3}
        return Case(name, attrs, [shape, np.array([first])], frozenset({1}))
    if name == "RootMeanSquare-0":
        return Case(name, {"eps": 1e-2}, [shape])
    return Case(name, {"axis": first}, [shape])


def movement(draw: Draw, name: str) -> Case:
    shape = (draw.choose.choice((1, 2)), 4, draw.choose.choice((2, 4)), draw.choose.choice((2, 6)))
    one = np.array
    cases: dict[str, tuple[dict[str, Any], list[Any]]] = {
        "Reshape": ({"special_zero": False}, [shape, one([shape[0] * 4, -1])]),
        "Squeeze": ({}, [(1, *shape[1:]), one([0])]),
        "Unsqueeze": ({}, [shape, one([2])]),
        "Broadcast": ({}, [(4, 1, shape[3]), one([2, 4, 5, shape[3]])]),
        "Concat": ({"axis": 1}, [shape, shape, (shape[0], 1, *shape[2:])]),
        "DepthToSpace": ({"block_size": 2, "mode": "blocks_first"}, [shape]),
        "SpaceToDepth": ({"block_size": 2, "mode": "blocks_first"}, [shape]),
        "Pad": ({"pad_mode": "reflect"}, [shape, one([0, 1, 1, 0]), one([0, 0, 1, 1])]),
        "ReorgYolo": ({"stride": (2,)}, [shape]),
        "Roll": ({}, [shape, one([1, 2]), one([1, 3])]),
        "ShuffleChannels": ({"axis": 1, "group": 2}, [shape]),
        "Slice": ({}, [shape, one([3, 0]), one([-9, 2]), one([-1, 1]), one([1, 2])]),
        "Split": ({"num_splits": 2}, [shape, one(1)]),
        "StridedSlice": ({"begin_mask": (0, 0), "end_mask": (0, 0)}, [shape, one([0, 3]), one([1, 0]), one([1, -2])]),
        "Tile": ({}, [shape, one([1, 2, 1, 3])]),
        "Transpose": ({}, [shape, draw.numbers.permutation(4)]),
        "VariadicSplit": ({}, [shape, one(1), one([1, 3])]),
        "Gather": ({}, [shape, one([3, 0, -1]), one(1)]),
        "GatherElements": ({"axis": 1}, [shape, draw.numbers.integers(0, 4, shape)]),
        "GatherND": ({}, [shape, one([[0, 3], [0, 1]])]),
        "OneHot": ({"axis": 1}, [draw.numbers.integers(0, 7, shape), one(6), np.float32(2), np.float32(-1)]),
        "ScatterNDUpdate": ({}, [shape, one([[0, 1], [0, 3]]), (2, *shape[2:])]),
    }
    attrs, inputs = cases[name.partition("-")[0]]
    if name == "Gather-1":
        inputs = [shape, one([3, 0, 1]), one(1)]
    constants = frozenset(n for n, given in enumerate(inputs) if n and not isinstance(given, tuple))
    return Case(name, attrs, inputs, constants, posts=name.startswith(("Gather", "ScatterND", "Transpose")))


def attention(draw: Draw, name: str) -> Case:
    batch, heads, rows, keys, size = 2, 3, draw.size(), draw.size(), 4
    inputs: list[Any] = [(batch, heads, rows, size), (batch, heads, keys, size), (batch, heads, keys, 5)]
    causal = draw.choose.random() < 0.3
    if not causal and draw.choose.random() < 0.6:
        mask = broadcastable(draw, (batch, heads, rows, keys))
        inputs.append((1, 1, 1, keys) if len(mask) < 2 else mask)
    return Case(name, {"causal": causal}, inputs, posts=False)


def resampling(draw: Draw, name: str) -> Case:
    shape = (2, 3, draw.size(), draw.size())
    attrs = {
        "mode": draw.choose.choice(("nearest", "linear_onnx", "linear", "cubic")),
        "shape_calculation_mode": "sizes",
        "coordinate_transformation_mode": draw.choose.choice(("half_pixel", "asymmetric", "align_corners")),
        "nearest_mode": "floor",
    }
    sizes, axes, scales = np.array([5, 6]), np.array([2, 3]), np.array([1, 1], np.float32)
    inputs = [shape, sizes, scales, axes] if name.endswith("-4") else [shape, sizes, axes]
    return Case(name, attrs, inputs, frozenset(range(1, 4)))


def recurrent(draw: Draw, name: str) -> Case:
    cell = "Cell" in name
    gates = {"L": 4, "G": 3, "R": 1}[name[0]]
    batch, steps, inner, hidden = draw.choose.choice((1, 2, 3)), draw.choose.choice((1, 4)), 5, 6
    attrs: dict[str, Any] = {"hidden_size": hidden}
    lead: tuple[int, ...] = ()
    if not cell:
        attrs["direction"] = draw.choose.choice(("forward", "reverse", "bidirectional"))
        lead = (1 + (attrs["direction"] == "bidirectional"),)
    if gates == 3:
        attrs["linear_before_reset"] = draw.choose.choice((True, False))
    state = (batch, *lead, hidden)
    states = [state] * (2 if gates == 4 else 1)
    rows = gates + bool(attrs.get("linear_before_reset"))
    weights = [(*lead, gates * hidden, inner), (*lead, gates * hidden, hidden), (*lead, rows * hidden)]
    lengths = [] if cell else [np.broadcast_to(steps, (batch,))]
    data = (batch, inner) if cell else (batch, steps, inner)
    inputs = [data, *states, *lengths, *weights]
    return Case(name, attrs, inputs, frozenset(range(len(inputs) - 3 - len(lengths), len(inputs))), posts=False)


def embedding(draw: Draw, name: str) -> Case:
    table, indices = (9, draw.size()), draw.numbers.integers(0, 9, 6)
    if "Packed" in name:
        return Case(name, {}, [table, indices.reshape(3, 2), (3, 2)], posts=False)
    if "Segments" in name:
        return Case(
            name, {}, [table, indices, np.array([0, 0, 2, 2, 2, 3]), np.array(5), np.array(1), (6,)], posts=False
        )
    return Case(name, {}, [table, indices, np.array([0, 2, 2, 5]), np.array(1), (6,)], posts=False)


MAKERS: list[tuple[tuple[str, ...], Callable[[Draw, str], Case]]] = [
    (WINDOW_NAMES, windows),
    (("MaxPool", "AvgPool"), pool),
    (("MatMul",), product),
    (("Einsum",), contraction),
    (("DFT", "IDFT", "RDFT", "IRDFT"), fourier),
    (("STFT",), frames),
    (("Reduce",), reduction),
    (("SoftMax", "LogSoftmax", "BatchNorm", "GroupNorm", "LRN", "MVN", "NormalizeL2", "RootMeanSquare"), normalization),
    (("ScaledDot",), attention),
    (("Interpolate",), resampling),
    (("LSTM", "GRU", "RNN"), recurrent),
    (("Embedding",), embedding),
    (
        ("Reshape", "Squeeze-", "Unsqueeze", "Broadcast", "Concat", "DepthTo", "Pad", "Roll", "Shuffle", "Slice"),
        movement,
    ),
    (("ReorgYolo", "SpaceTo", "Split", "StridedSlice", "Tile", "Transpose", "VariadicSplit", "Gather"), movement),
    (("OneHot", "ScatterND"), movement),
]


def case_of(draw: Draw, name: str) -> Case:
    """A random case of an op that an engine has a compiler for."""
    for prefixes, maker in MAKERS:
        if name.startswith(prefixes):
            return maker(draw, name)
    return element_wise(draw, name)


def computed(engine: Engine, work: Work, compiled: Compiled, arrays: list[Any]) -> list[Array]:
    """The outputs of the second of two calls, of what is bound to inputs in the layouts that are wanted."""
    inputs = list(arrays)
    for number, layout in compiled.wants.items():
        operand = work.inputs[number]
        assert operand is not None
        copy = placed(operand.shape, layout, arrays[number].dtype)
        _run(engine.reorder(operand, layout), [arrays[number]], [copy])
        inputs[number] = copy
    for number in compiled.taken:
        inputs[number] = None
    outputs = [
        placed(operand.shape, compiled.gives.get(number), numpy_dtype(operand.type))
        for number, operand in enumerate(work.outputs)
    ]
    kept = [None if array is None else array.copy() for array in inputs]
    _run(compiled, inputs, outputs)
    for array, before in zip(inputs, kept, strict=True):
        if array is not None:
            np.testing.assert_array_equal(array, before)
    results = []
    for number, (operand, output) in enumerate(zip(work.outputs, outputs, strict=True)):
        layout = compiled.gives.get(number)
        if layout is not None and layout.strides is None:
            dense = placed(operand.shape, None, np.float32)
            _run(engine.reorder(Operand("f32", operand.shape, (), None, layout), None), [output], [dense])
            output = dense
        results.append(output)
    return results


def _run(compiled: Compiled, inputs: Sequence[Any], outputs: list[Array]) -> None:
    call = compiled.bind(inputs, outputs, room(compiled.scratch) if compiled.scratch else None)
    with np.errstate(all="ignore"):
        call()
        for output in outputs:
            output.fill(99)
        call()


def placed(shape: tuple[int, ...], layout: Layout | None, dtype: Any) -> Array:
    """Memory for a tensor, full of what was there before, in C order or in a layout."""
    size = prod(shape) * np.dtype(dtype).itemsize if layout is None else layout.nbytes
    if layout is not None and layout.strides is None:
        return room(size)
    return np.ndarray(shape, dtype, room(size), strides=None if layout is None else layout.strides)


def assert_equal(outputs: list[Array], expected: list[Array]) -> None:
    for output, result in zip(outputs, expected, strict=True):
        assert output.dtype == result.dtype
        if result.dtype != np.float32:
            np.testing.assert_array_equal(output, result)
            continue
        largest = float(np.abs(result[np.isfinite(result)]).max(initial=1))
        np.testing.assert_allclose(output, result, rtol=5e-5, atol=1e-5 * largest)
