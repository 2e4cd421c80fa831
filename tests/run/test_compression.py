"""Compressed weights: which chains stay compressed, and what is computed of them."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.engines.compressed import PACKED
from run.compressed_models import CHAINS, Chain, K, N, constant, convert, lookup, packed, product

ENGINES = pytest.mark.parametrize("engine", ["numpy", "auto", "check"])
EACH = pytest.mark.parametrize("name", CHAINS)
TABLES = pytest.mark.parametrize("name", [name for name, chain in CHAINS.items() if not chain.turned])
"""Those that are looked up in rows."""


def executor(model, folder, engine="numpy", **options):
    return irrun.GraphExecutor(model.save(folder), engine=engine, **options)


def compressed(ours):
    return ours._whole.preparation.general.program.compressed


def run(ours, *inputs):
    return list(ours.run(list(inputs)).values())


def rows_of(count, inner, seed=0):
    return np.random.default_rng(seed).standard_normal((count, inner)).astype(np.float32)


def assert_close(found, data, weights):
    """Products within a few roundings of f32 of their sums of absolute values."""
    expected = data.astype(np.float64) @ weights
    room = np.abs(data).astype(np.float64) @ np.abs(weights)
    assert found.dtype == np.float32
    assert found.shape == expected.shape
    assert (np.abs(found - expected) <= 1e-6 * room + 1e-30).all()


def model_of(chain, turned, shift=0, shape=("?",)):
    """x [?, inner] times the weights of a chain, `[columns, inner]` where turned."""
    model = Model()
    weights = chain.added(model, shift=shift)
    inner = weights[3][-1 if turned else -2]
    model.result(product(model, model.parameter("x", "f32", (*shape, inner)), weights, turned))
    return model


@ENGINES
@pytest.mark.parametrize("turned", [True, False])
@EACH
def test_products(name, turned, engine, tmp_path):
    chain = CHAINS[name]
    ours = executor(model_of(chain, turned), tmp_path, engine)
    assert [weights.type for weights in compressed(ours).values()] == [chain.type]
    assert not {"Convert", "Multiply", "Subtract"} & {
        i.op.type for i in ours._whole.preparation.general.program.instructions
    }
    weights = chain.values().T if turned else chain.values()
    for count in (1, 2, 5, 17, 100):
        data = rows_of(count, len(weights))
        assert_close(run(ours, data)[0], data, weights)


@ENGINES
@pytest.mark.parametrize("name", [name for name, chain in CHAINS.items() if chain.zero_type in PACKED])
def test_zero_points_of_large_weights_come_packed_as_well(name, engine, tmp_path, monkeypatch):
    monkeypatch.setattr("irrun.run.passes.building.LEAST", 0)
    ours = executor(model_of(CHAINS[name], True), tmp_path, engine)
    (weights,) = compressed(ours).values()
    assert weights.zero is not None
    for count in (1, 20):
        data = rows_of(count, len(CHAINS[name].values().T))
        assert_close(run(ours, data)[0], data, CHAINS[name].values().T)


@EACH
def test_dense_values(name, tmp_path):
    """All of them, and some rows."""
    chain = CHAINS[name]
    (weights,) = compressed(executor(model_of(chain, True), tmp_path)).values()
    expected = chain.values().T if chain.turned else chain.values()
    np.testing.assert_allclose(weights.dense(), expected, 3e-7)
    size = len(expected)
    for start, stop in ((0, 1), (size // 2, size // 2 + 1), (min(3, size - 1), size)):
        np.testing.assert_allclose(weights.dense(start, stop), expected[start:stop], 3e-7)
    places = np.array([size - 1, 0, size // 2, size - 1])
    found = np.empty((4, *expected.shape[1:]), np.float32)
    weights.take(places, found)
    np.testing.assert_allclose(found, expected[places], 3e-7)


@ENGINES
@TABLES
def test_lookups(name, engine, tmp_path):
    """Indices may count from the end; those outside of the table give zeros."""
    chain = CHAINS[name]
    model = Model()
    table = chain.added(model)
    model.result(lookup(model, table, model.parameter("i", "i64", ("?", 2))))
    ours = executor(model, tmp_path, engine)
    assert len(compressed(ours)) == 1
    size = chain.shape[0]
    indices = np.int64([[0, size - 1], [-1, size], [size // 2, -size]])
    (found,) = run(ours, indices)
    expected = chain.values()[indices % size]
    expected[1, 1] = 0
    np.testing.assert_allclose(found, expected, 3e-7)


@ENGINES
@TABLES
@pytest.mark.parametrize("outside", [False, True])
def test_lookups_at_constant_places_are_constant(name, outside, engine, tmp_path):
    """As positions are, for each length of its own. Where not all are inside of the table the run looks."""
    chain = CHAINS[name]
    model = Model()
    table = chain.added(model)
    size = chain.shape[0]
    places = np.int64([[0, size - 1, size // 2], [1, 1, 2]]) % size
    places[1, 2] += size * outside
    x = model.parameter("x", "f32", ("?", *places.shape, chain.shape[1]))
    (y,) = model.layer("Add", [x, lookup(model, table, model.constant(places))], [x[2:]], auto_broadcast="numpy")
    model.result(y)
    model.result(lookup(model, table, model.constant(np.zeros((2, 0), np.int64))))
    ours = executor(model, tmp_path, engine)
    expected = chain.values()[places % size]
    expected[1, 2] *= not outside
    for rows in (2, 1, 2):
        found, none = run(ours, np.ones((rows, *x[3][1:]), np.float32))
        np.testing.assert_allclose(found, np.broadcast_to(expected + 1, found.shape), 4e-7, 4e-7)
        assert none.shape == (2, 0, chain.shape[1])
    (*_, kept) = ours._whole.preparation._kept.values()
    looked = [part for i in kept.program.instructions for part in i.parts if part.op.type == "Gather"]
    assert outside or not any(kept.program.tensors[part.outputs[0]].shape == expected.shape for part in looked)


@ENGINES
def test_the_reference_computes_what_the_graph_says(engine, tmp_path):
    """In f16: 1 / 3 of 3 codes is rounded there, and not by others."""
    chain = CHAINS["u8 asymmetric"]
    model = model_of(chain, True)
    plain = executor(model, tmp_path, "reference")
    assert not compressed(plain)
    data = np.eye(K, dtype=np.float32)
    scale, zero = chain.factors()
    halves = ((chain.codes() - zero).astype(np.float16) * scale).astype(np.float32)
    np.testing.assert_array_equal(run(plain, data)[0], halves.T)
    np.testing.assert_allclose(run(executor(model, tmp_path, engine), data)[0], chain.values().T, 3e-7)


@ENGINES
@pytest.mark.parametrize("turned", [False, True])
def test_a_table_that_is_looked_up_and_multiplied(turned, engine, tmp_path):
    """As tied embeddings are; in f16 and in 8 bits, and multiplied through a transposition."""
    for name in ("f16", "u8 asymmetric"):
        chain = CHAINS[name]
        model = Model()
        table = chain.added(model)
        rows = lookup(model, table, model.parameter("i", "i64", ("?",)))
        weights = table
        if turned:
            order = model.constant(np.int64([1, 0]))
            (weights,) = model.layer("Transpose", [table, order], [("f32", (K, N))])
        model.result(rows)
        model.result(product(model, rows, weights, not turned))
        ours = executor(model, tmp_path, engine)
        assert len(compressed(ours)) == 1
        values = chain.values()
        for indices in ([5], [3, 3, 0, N - 1]):
            found, scores = run(ours, np.int64(indices))
            np.testing.assert_allclose(found, values[indices], 3e-7)
            assert_close(scores, found, values.T)


@ENGINES
@pytest.mark.parametrize("shift", [1, 3, 4])
def test_codes_at_any_address(shift, engine, tmp_path):
    for name in ("f16", "u4 in groups", "i8 symmetric"):
        ours = executor(model_of(CHAINS[name], True, shift), tmp_path, engine)
        for count in (1, 20):
            data = rows_of(count, K)
            assert_close(run(ours, data)[0], data, CHAINS[name].values().T)


@ENGINES
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (1, 2, 2, 3)])
def test_batches_of_rows(shape, engine, tmp_path):
    for name, turned in (("u4 in groups", True), ("i8 by row", False)):
        chain = CHAINS[name]
        for unknown in (False, True):
            model = model_of(chain, turned, shape=["?"] * len(shape) if unknown else shape)
            weights = chain.values().T if turned else chain.values()
            data = rows_of(1, int(np.prod(shape)) * len(weights)).reshape(*shape, -1)
            (found,) = run(executor(model, tmp_path, engine), data)
            assert found.shape == (*shape, weights.shape[1])
            assert_close(found.reshape(-1, weights.shape[1]), data.reshape(-1, len(weights)), weights)


@ENGINES
@pytest.mark.parametrize("count", [1, 7])
def test_transposed_rows(count, engine, tmp_path):
    chain = CHAINS["u4 in groups"]
    model = Model()
    x = model.parameter("x", "f32", (2, K, count))
    flags = {"transpose_a": "true", "transpose_b": "true"}
    model.result(model.layer("MatMul", [x, chain.added(model)], [("f32", (2, count, N))], **flags)[0])
    data = rows_of(2 * K, count).reshape(2, K, count)
    (found,) = run(executor(model, tmp_path, engine), data)
    assert_close(found.reshape(-1, N), data.swapaxes(1, 2).reshape(-1, K), chain.values().T)


@ENGINES
@pytest.mark.parametrize("count", [1, 3, 40])
def test_a_bias_and_an_activation_behind(count, engine, tmp_path):
    for name, turned in (("i4 in groups of 32", True), ("u4 in groups of rows", False)):
        chain = CHAINS[name]
        model = Model()
        weights = chain.added(model)
        values = chain.values().T if turned else chain.values()
        inner, columns = values.shape
        y = product(model, model.parameter("x", "f32", ("?", inner)), weights, turned)
        bias, more = rows_of(1, columns, 3)[0], rows_of(count, columns, 4)
        other = model.parameter("y", "f32", ("?", columns))
        for operand in (model.constant(bias), other):
            (y,) = model.layer("Add", [y, operand], [("f32", (-1, columns))], auto_broadcast="numpy")
        model.result(model.layer("Sigmoid", [y], [("f32", (-1, columns))])[0])
        ours = executor(model, tmp_path, engine)
        data = rows_of(count, inner)
        expected = 1 / (1 + np.exp(-(data.astype(np.float64) @ values + bias + more)))
        np.testing.assert_allclose(run(ours, data, more)[0], expected, 1e-4, 1e-6)


@ENGINES
@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none(odd, count, engine, tmp_path):
    """They reach all the columns of their row, and no other row."""
    for name in ("u4 in groups", "i8 symmetric", "u8 asymmetric", "nf4 in groups", "f16", "f8e4m3"):
        chain = CHAINS[name]
        ours = executor(model_of(chain, True), tmp_path, engine)
        data = rows_of(count, K)
        data[-1, 77] = odd
        with np.errstate(all="ignore"):
            expected = data @ chain.values().T.astype(np.float32)
        (found,) = run(ours, data)
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
        np.testing.assert_array_equal(found[-1], expected[-1])


UNTOUCHED = {
    "a result": lambda model, value: model.result(value),
    "a sum": lambda model, value: model.result(
        model.layer("Add", [value, value], [("f32", value[3])], auto_broadcast="numpy")[0]
    ),
    "columns looked up": lambda model, value: model.result(
        model.layer(
            "Gather",
            [value, model.constant(np.int64([1])), model.constant(np.int64(1))],
            [("f32", (N, 1))],
            "opset8",
            batch_dims="0",
        )[0]
    ),
}


@pytest.mark.parametrize("other", UNTOUCHED)
def test_what_others_read_is_made_dense_once(other, tmp_path):
    chain = CHAINS["u4 in groups"]
    model = Model()
    weights = chain.added(model)
    model.result(product(model, model.parameter("x", "f32", ("?", K)), weights, True))
    UNTOUCHED[other](model, weights)
    ours = executor(model, tmp_path)
    assert not compressed(ours)
    data = rows_of(2, K)
    np.testing.assert_allclose(run(ours, data)[0], data @ chain.values().T, 2e-3, 2e-3)


def test_chains_that_compute_something_else(tmp_path):
    """Integers that wrap around, a scale as large as the weights, f32 that is rounded on the way: as the graph says."""
    random = np.random.default_rng(0)
    codes = random.integers(0, 256, (N, K))
    model = Model()
    x = model.parameter("x", "f32", ("?", K))
    one = constant(model, "u8", (N, K), packed("u8", codes))
    (wrapped,) = model.layer(
        "Subtract", [one, model.constant(np.full((N, 1), 100, np.uint8))], [("u8", (N, K))], auto_broadcast="numpy"
    )
    two = convert(model, constant(model, "u8", (N, K), packed("u8", codes)), "f32")
    factor = random.random((N, K)).astype(np.float32)
    (scaled,) = model.layer("Multiply", [two, model.constant(factor)], [("f32", (N, K))], auto_broadcast="numpy")
    third = convert(model, constant(model, "u8", (N, K), packed("u8", codes)), "f32")
    (small,) = model.layer(
        "Multiply", [third, model.constant(np.float32([[1 / 3]]))], [("f32", (N, K))], auto_broadcast="numpy"
    )
    for weights in (convert(model, wrapped, "f32"), scaled, convert(model, convert(model, small, "f16"), "f32")):
        model.result(product(model, x, weights, True))
    ours = executor(model, tmp_path, precision="declared")
    assert not compressed(ours)
    data = rows_of(2, K)
    wanted = [(codes - 100) % 256, codes * factor, (codes * np.float32(1 / 3)).astype(np.float16)]
    for found, weights in zip(run(ours, data), wanted, strict=True):
        np.testing.assert_allclose(found, data @ weights.T.astype(np.float32), 1e-4, 1e-2)


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_weights_of_16_bits_in_bf16(name, tmp_path, monkeypatch):
    """Products in bf16 read numbers of that type; as many bytes as those of f16."""
    chain = CHAINS[name]
    path = model_of(chain, True).save(tmp_path)
    monkeypatch.setattr("irrun.run.executor.computed_in_bf16", lambda program, engines: frozenset({"MatMul-1"}))
    assert not compressed(irrun.GraphExecutor(path, precision="bf16"))
    assert len(compressed(irrun.GraphExecutor(path))) == 1


@ENGINES
@pytest.mark.parametrize("by", ["scale", "zero"])
def test_factors_along_the_first_axis(by, engine, tmp_path):
    """As "pdpd" lays vectors out: square weights would take those along the last axis as well."""
    size = 160
    random = np.random.default_rng(0)
    codes, factor = random.integers(0, 256, (size, size)), random.integers(1, 9, size).astype(np.float32)
    model = Model()
    weights = convert(model, constant(model, "u8", (size, size), packed("u8", codes)), "f32")
    axis = {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": "0"}
    op = "Multiply" if by == "scale" else "Subtract"
    (weights,) = model.layer(op, [weights, model.constant(factor)], [weights[2:]], **axis)
    model.result(product(model, model.parameter("x", "f32", ("?", size)), weights, True))
    ours = executor(model, tmp_path, engine)
    data = rows_of(3, size)
    values = codes * factor[:, None] if by == "scale" else codes - factor[:, None]
    assert_close(run(ours, data)[0], data, values.T)


def test_weights_of_16_bits_are_converted_once_for_many_rows(tmp_path):
    for shape, kept in (((1, 16), True), ((1, 17), False), (("?", 17), True)):
        ours = executor(model_of(CHAINS["f16"], True, shape=shape), tmp_path)
        assert len(compressed(ours)) == kept
        assert len(compressed(executor(model_of(CHAINS["u4 in groups"], True, shape=shape), tmp_path))) == 1


def test_small_constants_are_folded(tmp_path):
    chain = Chain("u4", (64, 2, 32), (64, 64), (64, 2, 1))
    ours = executor(model_of(chain, True), tmp_path)
    assert not compressed(ours)
    data = rows_of(3, 64)
    np.testing.assert_allclose(run(ours, data)[0], data @ chain.values().T, 1e-3, 1e-2)


def test_packed_codes_that_others_read_are_refused_where_there_is_no_room(tmp_path):
    chain = CHAINS["i4 by channel"]
    model = Model()
    value = chain.added(model)
    model.result(model.layer("Relu", [value], [("f32", (N, K))])[0])
    path = model.save(tmp_path)
    assert not compressed(irrun.GraphExecutor(path))
    with pytest.raises(irrun.ExecutionError, match="an unpacked constant would take"):
        irrun.GraphExecutor(path, max_memory=N * K - 1)


@ENGINES
def test_several_threads_run_one_model(engine, tmp_path):
    chain = CHAINS["u4 in groups"]
    ours = executor(model_of(chain, True), tmp_path, engine)
    values, wrong = chain.values().T, []

    def compute(seed):
        for count in (1, 2, 1, 30):
            data = rows_of(count, K, seed)
            try:
                assert_close(run(ours, data)[0], data, values)
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=compute, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


MEASURED = """
import os, resource, sys
import numpy as np
import irrun
from irrun.run import executor

executor.MAX_EXPANDED = -1
os.environ["IRRUN_CACHE_DIR"] = ""  # LLVM itself takes memory, in the first model

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

irrun.GraphExecutor(sys.argv[2], engine=sys.argv[3]).run([np.ones((1, 192), np.float32)])
before = peak()
ours = irrun.GraphExecutor(sys.argv[1], engine=sys.argv[3])
ours.run([np.ones((1, 4096), np.float32)])
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="a process is not told its peak memory")
@pytest.mark.parametrize("engine", ["numpy", "auto"])
def test_the_memory_of_large_weights(engine, tmp_path):
    """64 MB of f32 are 8 MB of codes, which are the file's, and 1 MB of scales: no more than 16 MB are taken."""
    (tmp_path / "small").mkdir()
    small = model_of(CHAINS["u4 in groups"], True).save(tmp_path / "small")
    model = Model()
    codes = np.random.default_rng(0).integers(0, 256, 4096 * 4096 // 2).astype(np.uint8).tobytes()
    value = convert(model, constant(model, "i4", (4096, 64, 64), codes), "f16")
    scale = model.constant(np.full((4096, 64, 1), 0.01, np.float16))
    (value,) = model.layer("Multiply", [value, scale], [("f16", (4096, 64, 64))], auto_broadcast="numpy")
    target = model.constant(np.int64([4096, 4096]))
    (value,) = model.layer("Reshape", [value, target], [("f16", (4096, 4096))], special_zero="false")
    model.result(product(model, model.parameter("x", "f32", ("?", 4096)), convert(model, value, "f32"), True))
    command = [sys.executable, "-c", MEASURED, str(model.save(tmp_path)), str(small), engine]
    taken = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert taken < 16_000


def test_a_program_says_what_is_compressed(tmp_path):
    text = str(executor(model_of(CHAINS["u4 in groups"], True), tmp_path)._whole.preparation.general.program)
    assert "= compressed f32[96, 192] of u4[96, 3, 64], scale [96, 3, 1], zero [96, 3, 1]" in text


@ENGINES
def test_an_observer_sees_products(engine, tmp_path):
    chain = CHAINS["u4 in groups"]
    ours = executor(model_of(chain, True), tmp_path, engine)
    data = rows_of(2, K)
    seen = []
    (found,) = ours.run([data], observer=lambda event: seen.append(event.array.copy())).values()
    np.testing.assert_array_equal(seen[-1], found)
    assert_close(found, data, chain.values().T)


@pytest.mark.parametrize("name", ["f16", "u4 in groups", "i8 symmetric"])
def test_weights_are_made_f32_at_once_where_no_engine_reads_them_as_quickly(name, tmp_path, monkeypatch):
    chain = CHAINS[name]
    path = model_of(chain, True).save(tmp_path)
    weights = chain.values()
    data = rows_of(3, weights.shape[1])
    for bound in (4 * weights.size, 4 * weights.size - 1):
        monkeypatch.setattr("irrun.run.executor.MAX_EXPANDED", bound)
        ours = irrun.GraphExecutor(path, engine="numpy")
        program = ours._whole.preparation.general.program
        assert (len(program.compressed), program.reserved >= bound) == ((0, True) if not bound % 4 else (1, False))
        assert_close(run(ours, data)[0], data, weights.T)
        assert len(compressed(irrun.GraphExecutor(path, engine="numpy", once=True))) == 1


@ENGINES
@TABLES
@pytest.mark.parametrize("scaled", [False, True])
def test_lookups_at_places_that_only_the_data_tell(name, scaled, engine, tmp_path):
    """As many as a mask has, so that no engine knows how many there are before the run."""
    chain = CHAINS[name]
    model = Model()
    table = chain.added(model)
    mask = model.parameter("mask", "f32", (chain.shape[0],))
    places = model.layer("NonZero", [mask], [("i64", (1, -1))], "opset3", output_type="i64")
    rows = lookup(model, table, model.layer("Squeeze", [*places, model.constant(np.int64([0]))], [("i64", (-1,))])[0])
    if scaled:
        (rows,) = model.layer("Multiply", [rows, model.constant(np.float32([2]))], [rows[2:]], auto_broadcast="numpy")
    model.result(rows)
    ours = executor(model, tmp_path, engine)
    assert len(compressed(ours)) == 1
    for count in (2, 1, chain.shape[0]):
        (found,) = run(ours, (np.arange(chain.shape[0]) < count).astype(np.float32))
        np.testing.assert_allclose(found, chain.values()[:count] * (1 + scaled), 3e-7)


@ENGINES
def test_filters_that_are_made_f32_count(engine, tmp_path, monkeypatch):
    monkeypatch.setattr("irrun.run.executor.MAX_EXPANDED", 0)
    chain = Chain("i8", (32, 16, 3, 3), (32, 16, 3, 3), scale=(32, 1, 1, 1))
    model = Model()
    x = model.parameter("x", "f32", (1, 16, 8, 8))
    window = dict.fromkeys(("strides", "dilations", "pads_begin", "pads_end"), "1,1")
    model.result(model.layer("Convolution", [x, chain.added(model)], [("f32", (1, 32, 8, 8))], **window)[0])
    ours = irrun.GraphExecutor(model.save(tmp_path), engine=engine)
    ours.run([np.ones((1, 16, 8, 8), np.float32)])
    (prepared,) = ours._whole.preparation._kept.values()
    assert not prepared.program.compressed
    assert prepared.program.reserved >= chain.values().size * 4
