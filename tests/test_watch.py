"""What is written down of the tensors of a run: which ones, under which keys, with which statistics, in which files."""

import json
import math
import struct
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from differential.compare import wrong
from differential.generate import case
from differential.graph import save
from run.models import ADD, anything, i64, loop, model, saved

import irrun
from irrun.diagnostics import InputError
from irrun.run.keys import place
from irrun.tools.watch import blocks, statistics
from irrun.tools.watch.statistics import by_kernels, by_numpy, hashed, measured

F32 = np.float32
SAMPLES = Path(__file__).parent.parent / "samples"
FASTER = pytest.mark.parametrize("engine", ["numpy", "onednn"])


def named(b, value, label):
    b.graph.layers[value.ref[0]].label = label
    return value


def seen(executor, inputs, observer=lambda event: None):
    """The arrays of all events by key, which are different ones, and the results."""
    found = {}

    def observe(event):
        assert event.name not in found
        found[event.name] = event.array.copy()
        return observer(event)

    return executor.run(inputs, observer=observe), found


# Every tensor


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("precision", ["declared", "auto"])
@pytest.mark.parametrize("number", range(0, 48, 2))
def test_every_tensor_that_the_reference_makes_is_seen_of_random_models(number, precision, tmp_path):
    """By every engine, bodies included; results are those of the reference within rounding."""
    given = case(0, number)
    path = save(given, tmp_path)
    reference = irrun.GraphExecutor(path, engine="reference", precision=precision)
    executors = [irrun.GraphExecutor(path, engine=engine, precision=precision) for engine in ("numpy", "onednn")]
    for feed in given.feeds[:2]:
        try:
            expected, tensors = seen(reference, feed)
        except irrun.ExecutionError:
            break
        for executor in executors:
            results, found = seen(executor, feed)
            assert found.keys() == tensors.keys()
            for key, array in found.items():
                assert (array.dtype, array.shape) == (tensors[key].dtype, tensors[key].shape), key
            if precision == "declared":
                assert not any(wrong(results[name], expected[name]).any() for name in results)


@FASTER
def test_outputs_that_nobody_reads_are_seen(engine, tmp_path):
    b = model()
    values, _ = b.op("TopK-11", anything(b, "f4", (4,)), i64(b, 2), axis=0, mode="max", sort="value")
    b.graph.layers[values.ref[0]].label = "best"
    b.result(values)
    _, found = seen(irrun.GraphExecutor(saved(b, tmp_path), engine=engine), [F32([1, 4, 2, 3])])
    assert {key: array.tolist() for key, array in found.items()} == {"best:0": [4, 3], "best:1": [1, 3]}


@pytest.mark.parametrize("engine", ["reference", "numpy", "onednn"])
def test_a_conversion_that_changes_nothing_in_a_precision_is_seen_once(engine, tmp_path):
    b = model()
    x = named(b, b.one("Tanh-1", anything(b, "f2", (2,))), "half")
    y = named(b, b.one("Convert-1", x, destination_type="f32"), "wide")
    b.result(b.one("Abs-1", y))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine, precision="auto")
    results, found = seen(
        executor, [np.float16([0, 0])], lambda event: F32([-5, 7]) if event.name == "wide:0" else None
    )
    assert [*found][:2] == ["half:0", "wide:0"]
    assert results[0].tolist() == [5, 7]


@FASTER
def test_what_the_shapes_of_inputs_settle_is_seen_and_cannot_be_replaced(engine, tmp_path):
    b = model()
    x = anything(b, "f4", (-1, 2))
    shape = named(b, b.one("ShapeOf-3", x, output_type="i64"), "shape")
    b.result(b.one("Add-1", b.one("ReduceProd-1", shape, i64(b, [0]), keep_dims=False), i64(b, 1), **ADD))
    b.result(b.one("ReLU-1", x))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    _, found = seen(executor, [np.ones((3, 2), F32)])
    assert found["shape:0"].tolist() == [3, 2]
    _, found = seen(executor, [np.ones((5, 2), F32)], lambda e: e.array.copy() if e.name == "shape:0" else None)
    assert found["shape:0"].tolist() == [5, 2]
    with pytest.raises(irrun.ExecutionError, match="which inputs of these shapes settle") as error:
        seen(executor, [np.ones((3, 2), F32)], lambda event: np.int64([1, 1]) if event.name == "shape:0" else None)
    assert error.value.diagnostics[0].layer.name == "shape"


@FASTER
def test_every_convolution_of_a_model_that_fuses_them_is_dumped(engine):
    executor = irrun.GraphExecutor(SAMPLES / "cnn" / "model.xml", engine=engine)
    inputs = executor.random_inputs(7)
    plain = executor.run(inputs)
    dump = irrun.Dump(types=["Convolution"])
    watched = executor.run(inputs, observer=dump)
    layers = [layer.name for layer in executor.model.graph.layers if layer.type == "Convolution"]
    assert [*dump] == [f"{name}:0" for name in layers]
    np.testing.assert_allclose(watched[0], plain[0], 1e-5)


# Keys


def test_keys_of_hostile_names_differ_and_can_be_read_again(tmp_path):
    names = [
        "a/b",
        "a",
        "a",
        "x:0",
        "x",
        "loop/body[0]/y",
        "50%",
        "%5B",
        "[",
        "\\",
        "é\u2028ß",
        "#",
        "a#3",
        "@step2",
        "x" * 3000,
    ]
    b = model()
    x = anything(b, "f4", (1,))
    for name in names:
        x = named(b, b.one("Abs-1", x), name)
    b.result(x)
    dump = irrun.Dump()
    irrun.GraphExecutor(saved(b, tmp_path)).run([F32([1])], observer=dump)
    assert [entry.layer for entry in dump.entries.values()] == names
    first = next(iter(dump.entries.values())).id
    assert [*dump][:10] == [
        *("a/b:0", f"a#{first + 1}:0", f"a#{first + 2}:0", "x:0:0", "x:0", "loop/body%5B0%5D/y:0"),
        *("50%25:0", "%255B:0", "%5B:0", "%5C:0"),
    ]
    for key, entry in dump.entries.items():
        said = place(key)
        assert (said.path, said.port, said.step) == ((), 0, 1)
        assert said.layer == entry.layer or len(entry.layer) > 1000
    dump.save(tmp_path / "d.npz")
    with np.load(tmp_path / "d.npz") as archive, irrun.Dump.open(tmp_path / "d.npz") as again:
        assert {*archive} == {*dump, "irrun.jsonl"}
        assert [*again] == [*dump]


def test_keys_of_bodies(tmp_path):
    assert place("Loop_12/body[3]/if/a/then_body[0]/x:y:1@step2") == (
        (("Loop_12", "body", 3), ("if/a", "then_body", 0)),
        "x:y",
        None,
        1,
        2,
    )
    assert place("relu#5:0") == ((), "relu", 5, 0, 1)
    assert place("irrun.jsonl") is None


# Which


def counting(tmp_path, trips=4, inside=3):
    """A Loop of `trips` iterations around one of `inside`, whose body adds 1."""
    inner, middle, b = model(), model(), model()
    p = anything(inner, "f4", (1,))
    y = named(inner, inner.one("Add-1", p, inner.constant(F32([1])), **ADD), "next")
    q = anything(middle, "f4", (1,))
    (z,) = loop(middle, inner, i64(middle, inside), [(p, q)], [y], [(y, p)], label="inner")
    (last,) = loop(b, middle, i64(b, trips), [(q, anything(b, "f4", (1,)))], [z], [(z, q)], label="outer")
    b.result(named(b, b.one("ReLU-1", last), "end"))
    return saved(b, tmp_path)


@pytest.mark.parametrize("engine", ["reference", "numpy"])
@pytest.mark.parametrize(
    ("iterations", "expected"),
    [
        ("all", [(m, n) for m in range(4) for n in range(3)]),
        ("first", [(0, 0)]),
        ("last", [(3, 2)]),
        ("0,-1", [(0, 0), (0, 2), (3, 0), (3, 2)]),
        ([1, 9], [(1, 1)]),
        (-2, [(2, 1)]),
    ],
)
def test_iterations_of_bodies(iterations, expected, engine, tmp_path):
    executor = irrun.GraphExecutor(counting(tmp_path), engine=engine)
    dump = irrun.Dump("next", iterations=iterations)
    for start in (0, 100):  # a later run takes the place of the one before
        executor.run([F32([start])], observer=dump)
        values = {f"outer/body[{m}]/inner/body[{n}]/next:0": [start + 3 * m + n + 1] for m, n in expected}
        assert {key: array.tolist() for key, array in dump.items()} == values
        assert dump.entries.keys() == values.keys()


def test_iterations_that_are_none():
    with pytest.raises(ValueError, match="`some` is not all, first, last"):
        irrun.Dump(iterations="some")
    with pytest.raises(ValueError, match="`all` is no way to record"):
        irrun.Dump(record="all")


def test_layers_around_one_and_types_among_them(tmp_path):
    b = model()
    x = anything(b, "f4", (1,))
    for name in ("a", "b", "c", "d", "e"):
        x = named(b, b.one("Abs-1" if name != "d" else "Negative-1", x), name)
    b.result(x)
    built = irrun.read_model(saved(b, tmp_path))
    built.name_tensor(built.layer("c").outputs[0], "third")
    executor = irrun.GraphExecutor(built)
    for options, expected in [
        ({"around": "c"}, "bcd"),
        ({"around": "c", "distance": 0}, "c"),
        ({"around": "c:0", "distance": 0}, "c"),
        ({"around": "third", "distance": 0}, "c"),
        ({"around": "c", "distance": 9}, "abcde"),
        ({"around": "c", "types": "Negative"}, "d"),
        ({"layers": ["a", "[de]"], "types": ["Abs", "Relu"]}, "ae"),
        ({"around": "none"}, ""),
    ]:
        dump = irrun.Dump(**options)
        executor.run([F32([1])], observer=dump)
        assert [key[0] for key in dump] == [*expected]


def test_what_is_kept_is_limited(tmp_path):
    b = model()
    y = named(b, b.one("Abs-1", anything(b, "f4", (100,))), "first")
    b.result(named(b, b.one("ReLU-1", y), "second"))
    executor = irrun.GraphExecutor(saved(b, tmp_path))
    with pytest.raises(
        irrun.ExecutionError, match=r"a copy of f32\[100\] would take 400 bytes[^(]* limit of 700"
    ) as error:
        executor.run([np.ones(100, F32)], observer=irrun.Dump(max_memory=700))
    assert (error.value.diagnostics[0].layer.name, error.value.diagnostics[0].file is None) == ("second", False)
    dump = irrun.Dump(max_memory=800)
    for _ in range(3):
        executor.run([np.ones(100, F32)], observer=dump)
    assert len(dump) == 2


# Statistics


def test_statistics_of_few_numbers():
    found, _ = measured(F32([0, -0.0, 2, -4, np.nan, np.inf, -np.inf, -np.inf, 1e5, 1e-41, 1e-8]))
    assert (found.count, found.minimum, found.maximum, found.largest) == (11, -4, 1e5, 1e5)
    assert math.isclose(found.smallest, 1e-41, rel_tol=1e-3)
    assert (found.zeros, found.nan, found.positive_infinite, found.negative_infinite) == (2, 1, 1, 2)
    assert (found.subnormal, found.beyond_f16, found.flushed_f16, found.flushed_bf16) == (1, 1, 2, 1)
    assert math.isclose(found.mean, 99998 / 7, rel_tol=1e-6)


EVERY_TYPE = [
    *("f4", "f8", "f2", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn"),
    *("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "int4", "uint4", "uint2"),
]
PATHS = pytest.mark.parametrize("by", [by_numpy, by_kernels])


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def taken_by(by, array):
    """What is measured of dense elements in one of the two ways."""
    if by is by_kernels:
        pytest.importorskip("llvmlite", reason="llvmlite is not installed")
    found, numbers = by(array)
    return statistics.of_found(array.size, found), hashed(numbers.astype("<u8").tobytes())


def defined(array):
    """The statistics of numbers, one after the other, without mean and standard deviation; and these."""
    floating = array.dtype.kind not in "iub" and "int" not in array.dtype.name
    with np.errstate(invalid="ignore"):  # of NaN that signal
        numbers = array.astype(np.float64 if floating else object if array.dtype.kind in "iu" else np.int64).tolist()
    finite = [number for number in numbers if math.isfinite(number)]
    sizes = [abs(number) for number in finite if number]
    normal = float(ml_dtypes.finfo(array.dtype).smallest_normal) if floating else 0
    found = {
        "count": len(numbers),
        "minimum": min(finite, default=None),
        "maximum": max(finite, default=None),
        "largest": max(map(abs, finite), default=None),
        "smallest": min(sizes, default=None),
        "zeros": len(finite) - len(sizes),
        "nan": sum(math.isnan(number) for number in numbers),
        "positive_infinite": numbers.count(math.inf),
        "negative_infinite": numbers.count(-math.inf),
        "subnormal": sum(size < normal for size in sizes),
        "beyond_f16": sum(size > 65504 for size in sizes),
        "flushed_f16": sum(size <= 2.0**-25 for size in sizes),
        "flushed_bf16": sum(size <= 2.0**-134 for size in sizes),
    }
    if not finite:
        return found, None, None
    scale = float(found["largest"] or 1)
    scaled = [number / scale for number in finite]
    mean = math.fsum(scaled) / len(scaled)
    variance = math.fsum((number - mean) ** 2 for number in scaled) / len(scaled)
    return found, mean * scale, math.sqrt(variance) * scale


def as_defined(found, array):
    exact, mean, std = defined(array)
    given = found.as_dict()
    assert {name: given[name] for name in exact} == exact
    assert all(type(given[name]) is type(exact[name]) for name in exact)
    assert not any(math.copysign(1, given[name]) < 0 for name in ("minimum", "maximum", "largest") if given[name] == 0)
    if mean is None:
        assert (found.mean, found.std) == (None, None)
    else:
        assert abs(found.mean - mean) <= 1e-6 * std + 1e-12 * float(exact["largest"])
        assert abs(found.std - std) <= 1e-5 * std + 1e-12 * float(exact["largest"])


def numbers_of(dtype, size, seed):
    """Numbers of all magnitudes that a type has, but for f64 whose squares are infinite, with zeros of both signs and,
    of floats, what is no finite number."""
    random = np.random.default_rng([seed, size])
    if dtype.itemsize == 1:
        codes = np.arange(256, dtype=np.uint8)[: 2 if dtype.kind == "b" else None]
        if "int" in dtype.name and dtype.name[-1] in "24":
            codes = np.arange(-8, 8, dtype=np.int8).astype(dtype).view(np.uint8)
        return random.choice(codes, size).view(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        small = random.integers(max(limits.min, -9), 9, size).astype(dtype)
        any = random.integers(limits.min, limits.max, size, dtype=dtype, endpoint=True)
        return np.where(random.random(size) < 0.5, small, any)
    with np.errstate(all="ignore"):
        codes = random.integers(0, 256, (size, dtype.itemsize), np.uint8).reshape(-1).view(dtype)
        array = np.where(random.random(size) < 0.5, random.standard_normal(size).astype(dtype), codes)
        array[random.random(size) < 0.05] = -0.0
        if dtype == np.float64:
            array[(np.abs(array) > 1e140) & np.isfinite(array)] = 1e140
    return array


@PATHS
@pytest.mark.parametrize("name", EVERY_TYPE)
def test_statistics_are_those_that_are_defined_for_every_type(name, by):
    """Of few numbers, of what begins and ends within blocks and vectors, and of numbers that all are plain ones."""
    dtype = dtype_of(name)
    for size in (1, 2, 7, 8, 9, 15, 16, 17, 31, 100, 4_099):
        array = numbers_of(dtype, size, 1)
        as_defined(taken_by(by, array)[0], array)
    plain = (np.random.default_rng(2).standard_normal(3_001) * 3).clip(-9, 9)
    if "int" in dtype.name:  # casts of floats that do not fit have no defined result
        plain = plain.clip(ml_dtypes.iinfo(dtype).min, ml_dtypes.iinfo(dtype).max)
    array = plain.astype(np.float32).astype(dtype)
    as_defined(taken_by(by, array)[0], array)


@PATHS
@pytest.mark.parametrize("name", ["f4", "f8", "bfloat16", "float8_e5m2", "i8", "u4"])
def test_statistics_of_several_blocks_are_those_of_all(name, by):
    dtype = dtype_of(name)
    size = 2 * blocks.BLOCK + 1_000 if dtype.itemsize > 1 else 2 * blocks.HASHED + 1_001
    array = numbers_of(dtype, size, 3)
    as_defined(taken_by(by, array)[0], array)
    if dtype.kind == "f" and dtype.itemsize > 1:
        array[: blocks.BLOCK] = np.nan  # a block that has no number
        as_defined(taken_by(by, array)[0], array)


@PATHS
@pytest.mark.parametrize(
    "numbers",
    [
        lambda random: 1e6 + random.random(70_000) / 8,  # their variance is lost in their squares
        lambda random: 1e6 + random.random(70_000) / 8 * (np.arange(70_000) % 7 > 0),
        lambda random: np.append(1e30, random.standard_normal(70_000)),  # the first one is far away
        lambda random: np.append(1e5, 1 + random.random(300) / 1024),
        lambda random: random.choice([3e38, -3e38], 70_000),
        lambda random: random.standard_normal(70_000) * 1e-30,  # squares are too small for f32
        lambda random: np.full(70_000, 0.1),
        lambda random: random.standard_normal(70_000) * 1e-40,
        lambda random: np.where(random.random(70_000) < 0.5, -np.inf, 1e6 + random.random(70_000)),
        lambda random: np.full(70_000, np.nan),
        lambda random: np.full(70_000, -0.0),
    ],
)
def test_means_are_exact_of_numbers_that_are_far_apart_or_close_to_one_another(numbers, by):
    array = numbers(np.random.default_rng(4)).astype(F32)
    as_defined(taken_by(by, array)[0], array)


@PATHS
def test_means_of_f64_whose_sums_are_beyond_all_numbers(by):
    found, _ = taken_by(by, np.array([1.7e308, -1.7e308, 1.7e308, 1.7e308]))
    assert math.isclose(found.mean, 0.85e308, rel_tol=1e-9)
    assert (found.std, found.maximum, found.zeros) == (None, 1.7e308, 0)


def test_both_ways_to_measure_agree():
    pytest.importorskip("llvmlite", reason="llvmlite is not installed")
    for number, name in enumerate(EVERY_TYPE):
        for size in (3, 16_384, 65_536, 200_003):
            array = numbers_of(dtype_of(name), size, number)
            (one, first), (two, second) = taken_by(by_numpy, array), taken_by(by_kernels, array)
            assert first == second
            given = [{k: v for k, v in own.as_dict().items() if k not in ("mean", "std")} for own in (one, two)]
            assert given[0] == given[1]
            if one.mean is not None:
                assert abs(one.mean - two.mean) <= 1e-6 * (one.std or 0) + 1e-12 * float(one.largest)


def test_arrays_of_any_form_are_measured():
    array = np.random.default_rng(5).standard_normal((60, 70, 80)).astype(F32)
    for view in (array[::-1, ::3, 1::2], array.T, np.broadcast_to(array[:1], array.shape), np.asfortranarray(array)):
        assert measured(view) == measured(np.ascontiguousarray(view))
    assert measured(np.array(2.5, F32)) == measured(F32([2.5]))
    odd = np.frombuffer(b"x" + array.tobytes(), np.uint8)[1:]  # where no f32 should lie
    assert measured(odd.view(F32)) == measured(array)
    assert measured(odd)[1] == measured(array)[1]


def test_threads_measure_at_once():
    arrays = [np.random.default_rng(seed).standard_normal(400_000).astype(F32) for seed in range(6)]
    expected = [measured(array) for array in arrays]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(5):
            assert list(pool.map(measured, arrays)) == expected


def test_little_is_measured_without_llvmlite():
    code = (
        "import sys, numpy as np; from irrun.tools.watch.statistics import measured; "
        "measured(np.ones(1000, np.float32)); measured(np.ones(9, bool)); sys.exit('llvmlite' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_much_is_measured_by_kernels_where_there_are_any(monkeypatch):
    monkeypatch.setattr(statistics, "sys", SimpleNamespace(modules={"llvmlite": None}))
    monkeypatch.setattr(statistics, "_effort", statistics._Effort())
    monkeypatch.setattr(statistics, "is_there", lambda: False)
    assert not any(statistics._is_compiled(1 << 29) for _ in range(3))
    monkeypatch.setattr(statistics, "is_there", lambda: True)
    monkeypatch.setattr(statistics, "_effort", statistics._Effort())
    assert [statistics._is_compiled(1 << 29) for _ in range(3)] == [False, True, True]


def test_statistics_of_what_is_empty_or_no_number():
    assert measured(np.zeros((0, 3), F32)) == (statistics.Statistics(0), hashed(b""))
    assert measured(np.array(["a", "b"]))[0] == statistics.Statistics(2)
    assert measured(F32([np.nan, np.inf]))[0] == statistics.Statistics(2, nan=1, positive_infinite=1)
    whole, _ = measured(np.int64([-(2**63), 2**63 - 1]))
    assert (whole.minimum, whole.maximum, whole.largest, whole.smallest) == (-(2**63), 2**63 - 1, 2**63, 2**63 - 1)
    spread, _ = measured(F32([1e6, 1e6 + 1]))
    assert (spread.mean, spread.std) == (1000000.5, 0.5)


def test_hashes_are_those_of_bytes_in_the_order_of_elements():
    array = np.random.default_rng(0).standard_normal((400, 500)).astype(F32)
    _, digest = measured(array)
    assert digest == measured(np.asfortranarray(array))[1]
    other = array.copy()
    other.view(np.uint32)[399, 499] ^= 1
    assert digest != measured(other)[1]
    assert measured(F32([0.0]))[1] != measured(F32([-0.0]))[1]
    assert measured(np.array(["a", "bc"]))[1] == measured(np.array(["a", "bc"], "<U9"))[1]


# Files

TYPES = ["f4", "f2", "f8", "i8", "u1", "?", "bf16", "f8e4m3", "f8e8m0", "i4", "str"]


def dumped(tmp_path, **options):
    """A dump of a tensor of each type, behind layers that only move them."""
    arrays, b = [], model()
    for number, type in enumerate(TYPES):
        dtype = (
            irrun.spec.dtypes.numpy_dtype({"str": "string"}.get(type, type)) if len(type) > 2 or type == "i4" else type
        )
        array = np.array(["a", "éb"]) if type == "str" else np.array([1, 2]).astype(dtype)
        x = anything(b, "f4", (2,))
        arrays.append(array)
        b.result(named(b, b.one("Abs-1", x), f"layer {number}"))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine="reference")
    dump = irrun.Dump(**options)

    def observer(event):
        number = int(event.layer.name.split()[1])
        from dataclasses import replace

        dump(replace(event, array=arrays[number]))

    executor.run([F32([1, 0])] * len(TYPES), observer=observer)
    return dump, arrays


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_a_dump_that_is_saved_can_be_read_array_by_array(suffix, tmp_path):
    dump, _ = dumped(tmp_path)
    path = tmp_path / f"d{suffix}"
    dump.save(path)
    with irrun.Dump.open(path) as again:
        assert again.entries == dump.entries
        held = [key for key in dump if suffix == ".npz" or dump[key].dtype.kind != "U"]
        assert [*again] == held
        for key in held:
            assert (again[key].dtype, again[key].tolist()) == (dump[key].dtype, dump[key].tolist())
        with pytest.raises(KeyError):
            again["irrun.jsonl"]
    if suffix == ".npz":
        with np.load(path) as archive:
            plain = dict(archive)
        assert plain["layer 6:0"].dtype == F32
        assert plain["layer 9:0"].dtype == np.int8
        assert json.loads(bytes(plain["irrun.jsonl"]).splitlines()[0])["schema"] == 1


def test_safetensors_are_what_their_library_reads(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    dump = irrun.Dump()
    executor = irrun.GraphExecutor(SAMPLES / "cnn" / "model.xml")
    executor.run(executor.random_inputs(7), observer=dump)
    dump.save(tmp_path / "d.safetensors")
    found = safetensors.load_file(tmp_path / "d.safetensors")
    assert found.keys() == {*dump, "irrun.jsonl"}
    assert all(np.array_equal(found[key], dump[key]) for key in dump)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".jsonl"])
def test_statistics_alone(suffix, tmp_path):
    dump, _ = dumped(tmp_path, record="stats")
    assert (len(dump), len(dump.entries)) == (0, len(TYPES))
    dump.save(tmp_path / f"d{suffix}")
    with irrun.Dump.open(tmp_path / f"d{suffix}") as again:
        assert (len(again), again.entries) == (0, dump.entries)


def test_files_of_other_tools_have_entries_of_what_their_keys_say(tmp_path):
    np.savez(tmp_path / "o.npz", **{"loop/body[2]/x:1": F32([1, 2]), "plain": np.int64(3)})
    with irrun.Dump.open(tmp_path / "o.npz") as found:
        first, second = found.entries.values()
        assert (first.layer, first.port, first.path, first.type, first.shape) == (
            "x",
            1,
            (("loop", "body", 2),),
            "f32",
            (2,),
        )
        assert (second.layer, second.type, second.shape, second.statistics) == ("plain", "i64", (), None)
        assert found["plain"] == 3


def damaged(tmp_path):
    """Files that are not what they seem, with what is said of them."""
    dump, _ = dumped(tmp_path)
    for suffix in (".npz", ".safetensors", ".jsonl"):
        dump.save(tmp_path / f"good{suffix}")
    lines = (tmp_path / "good.jsonl").read_bytes().splitlines()
    tensors = (tmp_path / "good.safetensors").read_bytes()
    yield b"", "is no dump"
    yield b"hello, this is text", "is no dump"
    yield (tmp_path / "good.npz").read_bytes()[:-100], "not an .npz file, or not a whole one"
    yield b"\n".join([b'{"schema":9,"run":{}}']), "is of version 9, and this irrun knows 1"
    yield b"\n".join([b'{"schema":1}']), "is damaged"
    yield b"\n".join([lines[0], lines[1], lines[1]]), "line 3 has the key"
    yield b"\n".join([lines[0], lines[1].replace(b'"port":0', b'"port":"0"')]), "line 2 has no good `port`"
    yield b"\n".join([lines[0], lines[1].replace(b'"zeros":0', b'"zeros":null')]), "line 2 has no good `zeros`"
    yield b"\n".join([lines[0], lines[1][:-5]]), "is damaged"
    yield struct.pack("<Q", 1 << 40) + tensors[8:], "has a header of 1099511627776 bytes"
    yield tensors[:-1000], "an array that is not where it says"
    yield tensors.replace(b'"F32","shape":[2]', b'"F32","shape":[9]', 1), "not of its shape"
    yield tensors.replace(b'"F16"', b'"X16"', 1), "has the type 'X16'"


def test_damaged_files_are_refused(tmp_path):
    for number, (content, message) in enumerate(damaged(tmp_path)):
        path = tmp_path / f"bad{number}"
        path.write_bytes(content)
        with pytest.raises(InputError, match="bad") as error:
            irrun.Dump.open(path)
        assert message in str(error.value), (number, str(error.value))
    with pytest.raises(InputError, match="No such file"):
        irrun.Dump.open(tmp_path / "none.npz")


def test_an_array_that_is_not_what_the_index_says_is_refused(tmp_path):
    dump, _ = dumped(tmp_path)
    dump.save(tmp_path / "d.npz")
    with np.load(tmp_path / "d.npz") as archive:
        arrays = dict(archive)
    arrays["layer 0:0"] = np.zeros(3, F32)
    arrays["more"] = np.zeros(3, F32)
    np.savez(tmp_path / "e.npz", **arrays)
    with irrun.Dump.open(tmp_path / "e.npz") as found:
        with pytest.raises(InputError, match=r"is of shape \(3,\), and its file's index says \(2,\)"):
            found["layer 0:0"]
        with pytest.raises(InputError, match="the index of its file does not have"):
            found["more"]
        assert found["layer 1:0"].tolist() == [1, 2]


def test_a_dump_is_whole_or_not_there(tmp_path):
    dump, _ = dumped(tmp_path)
    dump._kept["layer 3:0"] = np.array([object()])
    with pytest.raises(TypeError):
        dump.save(tmp_path / "d.npz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.bin", "model.xml"]


def test_members_have_no_time_and_are_stored(tmp_path):
    dump, _ = dumped(tmp_path)
    for name in ("a.npz", "b.npz"):
        dump.save(tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint8, np.int64])
def test_hashes_tell_places_ends_and_numbers_of_elements_apart(dtype):
    rng = np.random.default_rng(3)
    for size in (1, 3, 8, 70_001):
        array = rng.integers(1, 100, size).astype(dtype)
        known = {measured(array)[1], measured(np.append(array, dtype(0)))[1]}
        assert len(known) == 2
        for index in {0, size // 2, size - 1}:
            other = array.copy()
            other[index] += 1
            assert measured(other)[1] not in known
        assert measured(array.copy())[1] in known
        turned = np.roll(array, 1)
        assert (measured(turned)[1] in known) == np.array_equal(turned, array)


@PATHS
@pytest.mark.parametrize(("dtype", "size"), [("f4", 5), ("f4", 40_001), ("u1", 65_536), ("u1", 70_003), ("f2", 9)])
def test_the_hash_is_what_the_index_says_of_it(dtype, size, by):
    array = np.random.default_rng(6).integers(1, 200, size).astype(dtype)

    def splitmix64(number):
        state = (number + 1) * 0x9E3779B97F4A7C15 % 2**64
        state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB % 2**64
        return state ^ (state >> 31)

    content, sums = array.tobytes(), b""
    for begin in range(0, len(content), 65_536):
        block = content[begin : begin + 65_536]
        words = [int.from_bytes(block[start : start + 8], "little") for start in range(0, len(block), 8)]
        total = sum(word * (splitmix64(number) | 1) for number, word in enumerate(words)) + len(block)
        sums += (total % 2**64).to_bytes(8, "little")
    assert taken_by(by, array)[1] == measured(array)[1] == blake2b(sums, digest_size=8).hexdigest()
