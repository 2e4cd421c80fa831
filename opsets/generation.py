"""Generation ops: ranges, unit matrices and random numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irrun.spec import (
    BOOL,
    FLOAT,
    INDEX,
    INT,
    INTEGER,
    NUMERIC,
    Array,
    Attr,
    Dim,
    Input,
    Node,
    Output,
    Shapes,
    Size,
    Sizes,
    choice,
    fresh,
    largest,
    numpy_dtype,
    op,
)
from irrun.spec.dims import every, negate

SEEDS = (Attr("global_seed", INT, 0, least=0), Attr("op_seed", INT, 0, least=0))
ONE = "[] | [1]"
BEYOND = 2**63
"""A size that no array can have."""


@op(
    "Range-1",
    types={"T": NUMERIC},
    inputs=[Input("start", "T", "[]"), Input("stop", "T", "[]"), Input("step", "T", "[]")],
    outputs=[Output("output", "T", "[count]")],
    opsets=frozenset({1, 2, 3}),
    symbolic=True,
)
def range_1(start: Array, stop: Array, step: Array) -> Any:
    """The numbers from start to stop, which is excluded, step apart: start + i * step.

    Floats are computed in f64 and rounded once.
    Constraints:
        C1: step is not 0.
        C2: start, stop and step are finite.

    Source: generation/range-1.rst

    >>> op(np.array(2), np.array(23), np.array(3)).tolist()
    [2, 5, 8, 11, 14, 17, 20]
    """
    return _numbers(_scalar(start), _scalar(stop), _scalar(step), start.dtype)


@range_1.shapes
def _(node: Node) -> Shapes:
    return {"count": _range_count(node, node.types.get("T", "dynamic"))}


@op(
    "Range-4",
    types={"T_START": NUMERIC, "T_STOP": NUMERIC, "T_STEP": NUMERIC},
    inputs=[Input("start", "T_START", "[]"), Input("stop", "T_STOP", "[]"), Input("step", "T_STEP", "[]")],
    outputs=[Output("output", "output_type", "[count]")],
    attrs=[Attr("output_type", choice(*sorted(NUMERIC)))],
    symbolic=True,
)
def range_(start: Array, stop: Array, step: Array, *, output_type: str) -> Any:
    """The numbers from start to stop, which is excluded, step apart: start + i * step.

    For integer output types start, stop and step are truncated first; floats are computed in f64 and rounded once.
    Deviation: OpenVINO's CPU plugin counts before it truncates where the inputs are no constants.
    Constraints:
        C1: step is not 0 in output_type.
        C2: start, stop and step are finite.

    Source: generation/range-4.rst

    >>> op(np.array(0.5), np.array(3.9), np.array(1), output_type="i32").tolist()
    [0, 1, 2]
    """
    a, b, c = (_scalar(array) for array in (start, stop, step))
    if output_type in INTEGER:
        a, b, c = _truncated(a), _truncated(b), _truncated(c)
    return _numbers(a, b, c, start.dtype if start.dtype == object else numpy_dtype(output_type))


@range_.shapes
def _(node: Node) -> Shapes:
    return {"count": _range_count(node, node.attrs["output_type"])}


def _range_count(node: Node, type: str) -> Size:
    numbers: list[Any] = []
    for name in ("start", "stop", "step"):
        found = node.inputs[name].numbers
        if found is None:
            node.complete = False
            numbers.append(None)
            continue
        (number,) = found
        number = number if isinstance(number, Size) else float(number)
        if isinstance(number, Dim):
            node.complete = False
        if isinstance(number, float) and not math.isfinite(number):
            node.fail("C2", f"`{name}` is {number}, expected a finite number", name)
        whole = type in INTEGER or (isinstance(number, float) and number.is_integer())
        numbers.append(_truncated(number) if whole else number)
    start, stop, step = numbers
    if step is not None and not isinstance(step, Dim) and step == 0:
        node.fail("C1", f"`step` is {node.inputs['step'].value} and counts as 0 in {type}", "step")
    return fresh() if any(number is None for number in numbers) else _count(start, stop, step)


def _count(start: Any, stop: Any, step: Any) -> Size:
    """How many numbers there are; of sizes as far as the sign of the step is known."""
    if any(isinstance(number, float) for number in (start, stop, step)):
        if any(isinstance(number, Dim) for number in (start, stop, step)):
            return fresh()
        try:
            whole: int = math.ceil((stop - start) / step)
        except OverflowError:  # more than f64 has
            whole = BEYOND if (start < stop) == (step > 0) else 0
        return max(whole, 0)
    if isinstance(step, Dim):
        if (step > 0) is not True:
            return fresh()
    elif step < 0:
        start, stop, step = -start, -stop, -step
    span: Size = stop - start
    exact = (span % step == 0) is True
    return largest(0, span // step if exact else (span + step - 1) // step)


def _scalar(array: Array) -> Any:
    """A number as Python's int or float, or the dimension that it is."""
    if array.dtype == object:
        return array.item()
    return int(array) if array.dtype.kind in "iu" else float(array)


def _truncated(number: Any) -> Any:
    return int(number) if isinstance(number, float) else number


def _numbers(start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    if dtype.kind == "O" or any(isinstance(number, Dim) for number in (start, stop, step)):
        return Sizes(start + number * step for number in range(int(_count(start, stop, step))))
    count = int(_count(start, stop, step))
    if dtype.kind in "iu":  # modulo 2^64, of which any integer type keeps the low bits
        counts = np.arange(count, dtype=np.uint64)
        return (np.array(start % 2**64, np.uint64) + counts * np.array(step % 2**64, np.uint64)).astype(dtype)
    return (float(start) + np.arange(count, dtype=np.float64) * float(step)).astype(dtype)


@op(
    "Eye-9",
    types={"T_ROWS": INDEX, "T_COLUMNS": INDEX, "T_DIAGONAL": INDEX, "T_BATCH": INDEX},
    inputs=[
        Input("num_rows", "T_ROWS", ONE),
        Input("num_columns", "T_COLUMNS", ONE),
        Input("diagonal_index", "T_DIAGONAL", ONE),
        Input("batch_shape", "T_BATCH", "[batch_rank]", optional=True),
    ],
    outputs=[Output("output", "output_type", "[*batch, rows, columns]")],
    attrs=[Attr("output_type", choice(*sorted(NUMERIC)))],
)
def eye(
    num_rows: Array, num_columns: Array, diagonal_index: Array, batch_shape: Array | None = None, *, output_type: str
) -> Any:
    """Matrices with ones on a diagonal, diagonal_index above the main one, and zeros elsewhere.

    Deviation: the inputs may be of different integer types, as OpenVINO allows.
    Constraints:
        C1: num_rows and num_columns are 0 or more.
        C2: batch_shape has no negative element.

    Source: generation/eye-9.rst

    >>> op(np.array(2), np.array(3), np.array(1), output_type="i32").tolist()
    [[0, 1, 0], [0, 0, 1]]
    """
    rows, columns = int(num_rows.item()), int(num_columns.item())
    diagonal = max(-rows, min(columns, int(diagonal_index.item())))
    matrix = np.eye(rows, columns, diagonal, numpy_dtype(output_type))
    batch = () if batch_shape is None else tuple(batch_shape.tolist())
    return np.broadcast_to(matrix, (*batch, rows, columns)).copy()


@eye.shapes
def _(node: Node) -> Shapes:
    sizes = {}
    for symbol, name in (("rows", "num_rows"), ("columns", "num_columns")):
        size = node.size(name)
        node.require("C1", size >= 0, f"`{name}` is {size}, expected 0 or more", name)
        sizes[symbol] = size.within(0) if isinstance(size, Dim) else size
    if node.inputs["batch_shape"] is None:
        return {"batch": (), **sizes}
    batch = node.sizes("batch_shape")
    for number, size in enumerate(batch or ()):
        node.require("C2", size >= 0, f"`batch_shape[{number}]` is {size}, expected 0 or more", "batch_shape")
    known = None if batch is None else tuple(size.within(0) if isinstance(size, Dim) else size for size in batch)
    return {"batch": known, **sizes}


@op(
    "RandomUniform-8",
    types={"T_SHAPE": INDEX},
    inputs=[
        Input("shape", "T_SHAPE", "[rank]"),
        Input("minval", "dynamic", ONE),
        Input("maxval", "dynamic", ONE),
    ],
    outputs=[Output("output", "output_type", "[*output]")],
    attrs=[
        Attr("output_type", choice("f16", "bf16", "f32", "f64", "i32", "i64")),
        *SEEDS,
        Attr("alignment", choice("tensorflow", "pytorch"), "tensorflow"),
    ],
    pure=False,
)
def random_uniform(
    shape: Array, minval: Array, maxval: Array, *, output_type: str, global_seed: int, op_seed: int, alignment: str
) -> Any:
    """Uniformly distributed numbers in [minval, maxval), drawn as TensorFlow (Philox) or PyTorch (MT19937) would.

    Every run draws the same numbers, unless both seeds are 0: then each draws others.
    Deviation: OpenVINO goes on drawing from run to run; i64 takes two random words for a number, as its reference.
    Constraints:
        C1: shape has no negative element.
        C2: minval and maxval have the element type output_type.
        C3: minval is below maxval.

    Source: generation/random-uniform-8.rst

    >>> op(np.array([3]), np.int32(50), np.int32(100), output_type="i32", global_seed=80, op_seed=100).tolist()
    [65, 70, 56]
    """
    low, high = minval.reshape(()), maxval.reshape(())
    count = math.prod(shape.tolist())
    if global_seed == 0 and op_seed == 0:
        global_seed = int(np.random.SeedSequence().generate_state(1)[0])
    if alignment == "tensorflow":
        wide = output_type in ("f64", "i64")
        numbers = _like_tensorflow(_philox(global_seed, op_seed, count * (1 + wide)), low, high, output_type)
    else:
        wide = output_type == "f64" or (output_type == "i64" and max(int(low), int(high)) >= 2**32)
        words = np.random.RandomState(global_seed & 0xFFFFFFFF)._bit_generator
        numbers = _like_pytorch(words.random_raw(count * (1 + wide)), wide, low, high, output_type)
    return numbers.reshape(shape.tolist())


@random_uniform.shapes
def _(node: Node) -> Shapes:
    for name in ("minval", "maxval"):
        type = node.inputs[name].type
        if type not in ("dynamic", node.attrs["output_type"]):
            node.fail(
                "C2",
                f"`{name}` is {type}, but `output_type` is {node.attrs['output_type']}",
                name,
                about=["output_type"],
            )
    low, high = node.value("minval"), node.value("maxval")
    if low is not None and high is not None and not low.item() < high.item():
        node.fail("C3", f"`minval` is {low.item()}, but `maxval` is {high.item()}", "minval", about=["maxval"])
    sizes = node.sizes("shape")
    for number, size in enumerate(sizes or ()):
        node.require("C1", size >= 0, f"`shape[{number}]` is {size}, expected 0 or more", "shape")
    if sizes is None:
        return {}
    return {"output": tuple(size.within(0) if isinstance(size, Dim) else size for size in sizes)}


def _philox(key: int, counter: int, count: int) -> Any:
    """`count` random words of 32 bits by Philox4x32-10."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    blocks = np.arange(-(-count // 4), dtype=np.uint64)
    a, b = blocks & mask, blocks >> half
    c, d = (np.full(blocks.shape, word, np.uint64) for word in (counter & 0xFFFFFFFF, counter >> 32))
    k, m = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        p, q = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b, c, d = (q >> half) ^ b ^ np.uint64(k), q & mask, (p >> half) ^ d ^ np.uint64(m), p & mask
        k, m = (k + 0x9E3779B9) & 0xFFFFFFFF, (m + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([a, b, c, d], 1).ravel()[:count]


def _like_tensorflow(words: Any, low: Array, high: Array, type: str) -> Any:
    if type == "i64":
        return _in_range(words[::2] | (words[1::2] << np.uint64(32)), low, high)
    if type == "i32":
        return _in_range(words, low, high)
    return _fractions(words, type) * (high - low) + low


def _fractions(words: Any, type: str) -> Any:
    """Numbers in [0, 1) whose mantissa is the low bits of the words, of two words each for f64."""
    if type == "f64":
        bits = ((words[::2] & np.uint64(0xFFFFF)) << np.uint64(32)) | words[1::2]
        return (bits | np.uint64(1023 << 52)).view(np.float64) - 1
    unsigned, mantissa, exponent = {
        "f32": (np.uint32, 23, 127),
        "f16": (np.uint16, 10, 15),
        "bf16": (np.uint16, 7, 127),
    }[type]
    bits = (words & np.uint64(2**mantissa - 1)) | np.uint64(exponent << mantissa)
    dtype = numpy_dtype(type)
    return bits.astype(unsigned).view(dtype) - dtype.type(1)


def _like_pytorch(words: Any, wide: bool, low: Array, high: Array, type: str) -> Any:
    if type in ("i32", "i64"):
        return _in_range((words[::2] << np.uint64(32)) | words[1::2] if wide else words, low, high)
    digits = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}[type]
    if type == "f64":
        words = (words[::2] << np.uint64(32)) | words[1::2]
    work = np.float64 if type == "f64" else np.float32
    unit = (words & np.uint64(2**digits - 1)).astype(work) * work(2.0**-digits)
    return (unit * (high - low).astype(work) + low.astype(work)).astype(low.dtype)


def _in_range(words: Any, low: Array, high: Array) -> Any:
    numbers = words % np.uint64(int(high) - int(low))
    return (numbers + np.array(int(low) % 2**64, np.uint64)).astype(low.dtype)


@op(
    "Multinomial-13",
    types={"T_IN": FLOAT, "T_SAMPLES": INDEX},
    lenient_types={"T_SAMPLES": INTEGER},
    inputs=[Input("probs", "T_IN", "[batch, classes]"), Input("num_samples", "T_SAMPLES", ONE)],
    outputs=[Output("output", "convert_type", "[batch, samples]")],
    attrs=[
        Attr("convert_type", choice("i32", "i64")),
        Attr("with_replacement", BOOL, assumed=False),
        Attr("log_probs", BOOL, assumed=False),
        *SEEDS,
    ],
    pure=False,
)
def multinomial(
    probs: Array,
    num_samples: Array,
    *,
    convert_type: str,
    with_replacement: bool,
    log_probs: bool,
    global_seed: int,
    op_seed: int,
) -> Any:
    """Classes drawn with the given probabilities, or with those whose logarithms are given.

    The class of a draw u is the first possible one whose cumulated probability is u or more; without replacement a
    drawn class has probability 0 from then on, and once that of all others is 0 they follow in ascending order. The
    draws are those of RandomUniform-8 for f64, sums are in f64.
    Deviation: the specification leaves the draws open; OpenVINO's CPU plugin draws others.
    Constraints:
        C1: num_samples is 0 or more.
        C2: without replacement, there are at least num_samples classes; with it one, where there are samples.
        C3: where they are no logarithms, probabilities are finite and not negative, and those of a row are not all 0.

    Source: generation/multinomial-13.rst

    >>> op(np.array([[0.0, 1.0]]), np.array(3), convert_type="i32", with_replacement=True, log_probs=False).tolist()
    [[1, 1, 1]]
    """
    batch, count = probs.shape[0], int(num_samples.item())
    if global_seed == 0 and op_seed == 0:
        global_seed = int(np.random.SeedSequence().generate_state(1)[0])
    draws = _fractions(_philox(global_seed, op_seed, 2 * batch * count), "f64").reshape(batch, count)
    numbers, left = probs.astype(np.float64), np.ones(probs.shape, bool)
    output = np.empty((batch, count), numpy_dtype(convert_type))
    for number in range(count):
        if not number or not with_replacement:
            weights = _weights(numbers, left, log_probs)
            cumulated = np.cumsum(weights, 1)
        reached = (cumulated >= draws[:, number : number + 1] * cumulated[:, -1:]) & (weights > 0)
        drawn = np.where(reached.any(1), reached.argmax(1), left.argmax(1))
        if not with_replacement:
            left[np.arange(batch), drawn] = False
        output[:, number] = drawn
    return output


def _weights(numbers: Array, left: Array, log_probs: bool) -> Any:
    """What the probabilities of the classes that are `left` are proportional to; 0 for the others."""
    if not log_probs:
        return np.where(left, numbers, 0)
    logs = np.where(left, numbers, -np.inf)
    most = logs.max(1, keepdims=True)  # relative to this one none overflows, nor do all vanish
    return np.exp(logs - np.where(np.isfinite(most), most, 0))


@multinomial.shapes
def _(node: Node) -> Shapes:
    samples, classes = node.size("num_samples"), node.dims.get("classes")
    node.require("C1", samples >= 0, f"`num_samples` is {samples}, expected 0 or more", "num_samples")
    if node.attrs["with_replacement"] and classes is not None:
        message = f"`num_samples` is {samples}, but there are no classes"
        node.require("C2", negate(every([samples > 0, classes == 0])), message, "num_samples")
    elif classes is not None:
        message = f"`num_samples` is {samples} without replacement, but there are {classes} classes"
        node.require("C2", samples <= classes, message, "num_samples")
    probs = None if node.attrs["log_probs"] else node.value("probs")
    if probs is not None and probs.size:
        numbers = probs.astype(np.float64)
        wrong = ~np.isfinite(numbers) | (numbers < 0)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            node.fail("C3", f"`probs[{row}, {column}]` is {numbers[row, column]}, expected 0 or more", "probs")
        empty = numbers.sum(1) == 0
        if empty.any():
            node.fail("C3", f"`probs[{int(empty.argmax())}]` has only zeros", "probs")
    return {"samples": samples.within(0) if isinstance(samples, Dim) else samples}
