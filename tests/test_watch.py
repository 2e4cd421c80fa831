"""What is written down of the tensors of a run: which ones, under which keys, with which statistics, in which files."""

import json
import math
import struct
import zipfile
from hashlib import blake2b
from pathlib import Path

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
from irrun.tools.watch import statistics
from irrun.tools.watch.statistics import measured

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
    executor = irrun.GraphExecutor(saved(b, tmp_path))
    for options, expected in [
        ({"around": "c"}, "bcd"),
        ({"around": "c", "distance": 0}, "c"),
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
        irrun.ExecutionError, match=r"a copy of f32\[100\] would take .*400 bytes.* limit of 700"
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


@pytest.mark.parametrize(
    "dtype", ["f2", "f4", "f8", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, "i1", "u8", "i8", "?"]
)
@pytest.mark.parametrize("size", [1, 1000, statistics.BLOCK + 1, 5 * statistics.BLOCK - 7])
def test_statistics_are_those_that_numpy_says(dtype, size):
    random = np.random.default_rng(size)
    array = (random.standard_normal(size) * 30 * (random.random(size) > 0.1)).astype(dtype)
    if array.dtype.kind in "fV":
        array[random.integers(size, size=size // 100)] = np.nan
    found, _ = measured(array.reshape(1, size))
    wide = array.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    assert (found.count, found.nan) == (size, np.isnan(wide).sum())
    assert (found.minimum, found.maximum) == (finite.min(), finite.max())
    assert found.zeros == (finite == 0).sum()
    np.testing.assert_allclose([found.mean, found.std], [finite.mean(), finite.std()], 1e-5, 1e-5)
    magnitudes = np.abs(finite[finite != 0])
    assert found.smallest == (magnitudes.min() if magnitudes.size else None)
    assert found.flushed_f16 == (magnitudes <= 2.0**-25).sum()


def test_statistics_of_what_is_empty_no_number_huge_or_not_finite():
    assert measured(np.zeros((0, 3), F32))[0] == statistics.Statistics(0)
    assert measured(np.array(["a", "b"]))[0] == statistics.Statistics(2)
    assert measured(F32([np.nan, np.inf]))[0] == statistics.Statistics(2, nan=1, positive_infinite=1)
    huge, _ = measured(F32([3e38, -3e38, 3e38, 3e38]))
    np.testing.assert_allclose([huge.mean, huge.std], [1.5e38, 2.598e38], 1e-3)
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


def test_the_hash_is_what_the_index_says_of_it():
    array = np.arange(1, 6, dtype=np.float32)

    def splitmix64(number):
        state = (number + 1) * 0x9E3779B97F4A7C15 % 2**64
        state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB % 2**64
        return state ^ (state >> 31)

    content = array.tobytes()
    words = [int.from_bytes(content[start : start + 8], "little") for start in range(0, len(content), 8)]
    total = sum(word * (splitmix64(number) | 1) for number, word in enumerate(words)) + len(content)
    digest = blake2b((total % 2**64).to_bytes(8, "little"), digest_size=8).hexdigest()
    assert measured(array)[1] == digest
