"""Products with compressed weights, by the engines that read them, against products with their values."""

import gc
import os
import threading
import weakref
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from engines.agreement import share_all
from engines.works import aligned_empty, posted, work_of

from irrun.engines import load_engines
from irrun.engines.compressed import CODES, PACKED, CompressedWeights, numbers_of
from irrun.engines.vectorized.engine import VectorizedEngine
from irrun.engines.work import Operand, Post
from irrun.engines.work_cache import signature
from irrun.spec.dtypes import ELEMENT_TYPES

pytest.importorskip("llvmlite", reason="llvmlite compiles the kernels")

from irrun.engines.compiled import bf16, compiler, decoding, product_tiles, products
from irrun.engines.compiled.engine import CompiledEngine

ENGINES = pytest.mark.parametrize("make", [CompiledEngine, VectorizedEngine])
TYPES = sorted(CODES)
THOROUGH = ("u4", "i8", "f16")
"""Of the others, which differ in how codes become numbers only, sizes and numbers of rows take turns."""
BIAS = Post("Add-1", {"auto_broadcast": "numpy"}, 2)

rng = np.random.default_rng(0)


def weights(type, columns, inner, group=0, zero=True, shift=0):
    """Random codes of finite numbers, in groups along `inner` unless 0; the codes begin at any address."""
    count = columns * inner
    if type in ("f16", "bf16"):
        numbers = rng.standard_normal(count).astype(np.float32)
        halves = numbers.astype(np.float16).view(np.uint16) if type == "f16" else numbers.view(np.uint32) >> 16
        codes = halves.astype(np.uint16).view(np.uint8)
    elif type in PACKED:
        codes = rng.integers(0, 256, -(-count // 2)).astype(np.uint8)
    else:
        codes = rng.choice(np.flatnonzero(np.isfinite(numbers_of(type))), count).astype(np.uint8)
    memory = np.zeros(len(codes) + shift, np.uint8)
    memory[shift:] = codes
    stored = (columns, inner // group, group) if group else (columns, inner)
    factors = (*stored[:-1], 1)
    scale = rng.uniform(0.01, 0.1, factors).astype(np.float32)
    zeros = rng.integers(0, 9, factors).astype(np.float32)
    plain = type in ("f16", "bf16")
    return CompressedWeights(
        type, memory[shift:], stored, (columns, inner), None if plain else scale, zeros if zero and not plain else None
    )


def compiled(engine, matrix, data, posts=(), operands=(), transposed=True, **attrs):
    """The work as an engine compiles it, and how to call it on other data: that gives its result."""
    columns = matrix.shape[0 if transposed else 1]
    shape = (*data.shape[:-1], columns)
    flags = {"transpose_a": False, "transpose_b": transposed, **attrs}
    if flags["transpose_a"]:
        shape = (*data.shape[:-2], data.shape[-1], columns)
    work = work_of("MatMul-1", flags, [data, data, *operands], [(shape, "f32")], posts)
    work.inputs[1] = Operand("f32", matrix.shape, (4 * matrix.shape[1], 4), compressed=matrix)
    made = engine.compile(work)
    assert made is not None
    assert made.taken == {1}

    def call(given=data):
        output = aligned_empty(shape, np.float32)
        scratch = aligned_empty((made.scratch,), np.uint8) if made.scratch else None
        bound = made.bind([given, None, *operands], [output], scratch)
        del scratch
        for _ in range(2):
            bound()
        return output

    return call


def turns(type, rows, number):
    """All of several numbers of rows, or every third of them, others for each number of a shape."""
    return rows if type in THOROUGH else rows[number % 3 :: 3]


def assert_product(found, data, matrix):
    expected = data.astype(np.float64) @ matrix.astype(np.float64)
    room = np.abs(data).astype(np.float64) @ np.abs(matrix).astype(np.float64)
    assert (np.abs(found - expected) <= 1e-6 * room).all()


@ENGINES
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("type", TYPES)
def test_types_and_rows(type, threads, make):
    """Of every type, in groups and without, so many rows at once and so many columns left over."""
    engine = make(threads)
    shapes = (70, 192, 64), (33, 96, 32), (1, 320, 0), (3, 640, 128), (130, 64, 0)
    for number, (columns, inner, group) in enumerate(shapes):
        for zero in (True, False):
            matrix = weights(type, columns, inner, group, zero, shift=columns % 4)
            for rows in turns(type, (1, 2, 3, 4, 5, 8, 9, 17, 33), number + zero):
                data = rng.standard_normal((rows, inner)).astype(np.float32)
                assert_product(compiled(engine, matrix, data)(), data, matrix.dense().T)


@pytest.mark.parametrize("rows", [1, 6, 40])
@pytest.mark.parametrize("type", ["u4", "i8", "f16"])
def test_threads_that_share_large_products(type, rows):
    """More columns than a chunk has, and longer rows than a part."""
    for columns, inner, group in ((700, 2304, 0), (515, 2560, 128)):
        matrix = weights(type, columns, inner, group)
        data = rng.standard_normal((rows, inner)).astype(np.float32)
        for engine in (CompiledEngine(2), CompiledEngine(1), VectorizedEngine(2)):
            assert_product(compiled(engine, matrix, data)(), data, matrix.dense().T)


@pytest.mark.parametrize(("type", "group"), [("u4", 32), ("nf4", 0), ("i8", 0), ("f16", 0), ("bf16", 64), ("u8", 96)])
def test_panels_of_many_rows(type, group, monkeypatch):
    """Any number of rows and columns, in one part and in several, with what follows."""
    for part, columns, inner in ((768, 64, 96), (768, 200, 192), (64, 7, 384), (128, 101, 960)):
        monkeypatch.setattr(products, "PANEL_PART", part)
        matrix = weights(type, columns, inner, group)
        for rows in turns(type, (16, 33, 36, 64, 71, 130), columns):
            data = rng.standard_normal((rows, inner)).astype(np.float32)
            for threads in (1, 2, 3):
                assert_product(compiled(CompiledEngine(threads), matrix, data)(), data, matrix.dense().T)
            bias = rng.standard_normal(columns).astype(np.float32)
            call = compiled(CompiledEngine(2), matrix, data, [BIAS, Post("ReLU-1", {})], [bias])
            expected = np.maximum(data.astype(np.float64) @ matrix.dense().T + bias, 0)
            np.testing.assert_allclose(call(), expected, 1e-4, 1e-6 * expected.max())


def narrowed(array):
    return array.astype(ml_dtypes.bfloat16).astype(np.float32)


@pytest.mark.skipif(not bf16.is_made(), reason="the processor does not multiply bf16")
@pytest.mark.parametrize("type", TYPES)
def test_products_that_are_rounded(type, monkeypatch):
    """Of more than a few rows what is multiplied is bf16; of a few ones, and of other weights, f32."""
    shapes = (1024, 64, 96, 32), (1024, 200, 192, 0), (64, 7, 384, 64), (64, 101, 960, 0), (128, 33, 640, 320)
    for number, (part, columns, inner, group) in enumerate(shapes):
        monkeypatch.setattr(products, "PANEL_PART", part)
        matrix = replace(weights(type, columns, inner, group, number % 2), rounded=True)
        values = matrix.dense().T
        for rows in turns(type, (1, 8, 9, 10, 16, 31, 36, 71, 130), number):
            data = rng.standard_normal((rows, inner)).astype(np.float32)
            spread = np.full((rows, 2 * inner), np.nan, np.float32)[:, :inner]
            spread[...] = data
            read = [data, values] if rows <= products.FEW else [narrowed(data), narrowed(values)]
            for threads in (1, 2, 3):
                assert_product(compiled(CompiledEngine(threads), matrix, data)(), *read)
            assert_product(compiled(CompiledEngine(2), matrix, spread)(), *read)
            turned = np.ascontiguousarray(data.T)
            assert_product(compiled(CompiledEngine(2), matrix, turned, transpose_a=True)(), *read)
            bias = rng.standard_normal(columns).astype(np.float32)
            call = compiled(CompiledEngine(2), matrix, data, [BIAS, Post("ReLU-1", {})], [bias])
            expected = np.maximum(read[0].astype(np.float64) @ read[1] + bias, 0)
            np.testing.assert_allclose(call(), expected, 1e-4, 1e-6 * expected.max())


@pytest.mark.skipif(not bf16.is_made(), reason="the processor does not multiply bf16")
def test_numbers_that_are_rounded_to_infinity_or_are_none():
    """They are infinite, or NaN, in their row alone; what is no normal number counts as 0."""
    matrix = replace(weights("i8", 40, 64, 0, zero=False), rounded=True)
    data = rng.standard_normal((12, 64)).astype(np.float32)
    data[2, 5], data[4, 6], data[6, 7], data[8] = np.nan, np.inf, 3.4e38, 1e-40
    found = compiled(CompiledEngine(2), matrix, data)()
    plain = np.delete(np.arange(12), [2, 4, 6, 8])
    assert_product(found[plain], narrowed(data[plain]), narrowed(matrix.dense().T))
    zero = matrix.dense()[:, 6:8] == 0
    assert np.isnan(found[2]).all()
    assert np.isnan(found[4][zero[:, 0]]).all()
    assert np.isinf(found[4][~zero[:, 0]]).all()
    assert np.isinf(found[6][~zero[:, 1]]).all()
    assert not found[8].any()


@pytest.mark.parametrize("rows", [3, 12, 16, 70])
@pytest.mark.parametrize("type", ["f16", "bf16"])
def test_codes_of_16_bits_with_scales_and_zero_points(type, rows):
    """In groups, with both, one of them, and neither."""
    codes = weights(type, 70, 192, 64).codes
    scale, zero = (rng.uniform(1, 2, (70, 3, 1)).astype(np.float32) for _ in range(2))
    data = rng.standard_normal((rows, 192)).astype(np.float32)
    for factors in ((scale, zero), (scale, None), (None, zero), (None, None)):
        matrix = CompressedWeights(type, codes, (70, 3, 64), (70, 192), *factors)
        assert_product(compiled(CompiledEngine(2), matrix, data)(), data, matrix.dense().T)


def test_rows_and_columns_of_panels():
    """As many threads as there are have columns, and few rows are computed twice."""
    if not product_tiles._wide():
        pytest.skip("this processor has one kind of panels")
    assert product_tiles.panels_at_once(128, 768, 2) == (8, 48)
    assert product_tiles.panels_at_once(90, 768, 2) == (9, 48)
    assert product_tiles.panels_at_once(128, 128, 4) == (13, 32)


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("type", TYPES)
def test_processors_with_more_or_fewer_registers(type, wide, monkeypatch):
    """Any number of columns and rows, whatever is computed at once."""
    monkeypatch.setattr(product_tiles, "_wide", lambda: wide)
    shapes = (1, 64, 0), (6, 96, 32), (47, 192, 64), (130, 1600, 0), (67, 2560, 128)
    for number, (columns, inner, group) in enumerate(shapes):
        matrix = weights(type, columns, inner, group)
        for rows in turns(type, (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 31, 40), number):
            data = rng.standard_normal((rows, inner)).astype(np.float32)
            assert_product(compiled(CompiledEngine(1 + rows % 2), matrix, data)(), data, matrix.dense().T)


@pytest.mark.parametrize("rows", [1, 12, 40])
@pytest.mark.parametrize("type", sorted(PACKED))
def test_numbers_of_codes_are_kept_by_calls(type, rows, monkeypatch):
    """Also where another thread has made them at the same time, and those that everybody gets are others."""
    made = []

    def anew(type):
        found = numbers_of(type).copy()
        made.append(weakref.ref(found))
        return found

    monkeypatch.setattr(products, "numbers_of", anew)
    matrix, data = weights(type, 64, 128, 64), rng.standard_normal((rows, 128)).astype(np.float32)
    work = work_of("MatMul-1", {"transpose_a": False, "transpose_b": True}, [data, data], [((rows, 64), "f32")])
    work.inputs[1] = Operand("f32", matrix.shape, (512, 4), compressed=matrix)
    found = CompiledEngine(1).compile(work)
    call = found.bind([data, None], [aligned_empty((rows, 64), np.float32)], aligned_empty((found.scratch,), np.uint8))
    del work, found
    gc.collect()
    assert made[-1]() is not None
    del call


@pytest.mark.parametrize("tables", [frozenset(), frozenset({"avx2"})])
@pytest.mark.parametrize("type", sorted(PACKED))
def test_processors_without_tables_in_registers(type, tables, monkeypatch):
    """A kernel for these computes or chooses numbers, or looks up their bytes; it is compiled as another one."""
    if not tables <= compiler.features():
        pytest.skip("this processor cannot run such a kernel")
    monkeypatch.setenv("IRRUN_CACHE_DIR", "")
    fresh = compiler._Compiler()
    monkeypatch.setattr(compiler, "_compiler", lambda: fresh)
    monkeypatch.setattr(decoding, "features", lambda: tables | {"f16c"})
    for zero in (True, False):
        matrix = weights(type, 20, 64, 32, zero)
        for rows in (1, 20):
            data = rng.standard_normal((rows, 64)).astype(np.float32)
            assert_product(compiled(CompiledEngine(1), matrix, data)(), data, matrix.dense().T)


@ENGINES
@pytest.mark.parametrize("rows", [1, 3, 40])
def test_posts(rows, make):
    for transposed in (True, False) if make is VectorizedEngine else (True,):
        matrix = weights("u4", 64, 96, 32)
        dense = matrix.dense().T if transposed else matrix.dense()
        data = rng.standard_normal((2, rows, len(dense))).astype(np.float32)
        for shape in ((dense.shape[1],), (2, rows, dense.shape[1]), (1, 1, dense.shape[1])):
            bias = rng.standard_normal(shape).astype(np.float32)
            call = compiled(make(2), matrix, data, [BIAS, Post("ReLU-1", {})], [bias], transposed)
            np.testing.assert_allclose(call(), np.maximum(data @ dense + bias, 0), 1e-4, 1e-4)


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("seed", range(40))
def test_posts_of_all_kinds(seed, wide, monkeypatch):
    """By the kernel that has made some columns, or behind it, on operands however they lie."""
    monkeypatch.setattr(product_tiles, "_wide", lambda: wide)
    rng = np.random.default_rng(seed)
    columns, rows = int(rng.choice([16, 35, 48, 160, 656])), int(rng.choice([1, 2, 5, 8, 9, 40]))
    matrix = weights(str(rng.choice(["u4", "i8", "f16"])), columns, 96, 32)
    data = rng.standard_normal((2, rows, 96)).astype(np.float32)
    posts, operands = [], []
    for _ in range(rng.integers(1, 5)):
        name = str(rng.choice(["Add-1", "Multiply-1", "Subtract-1", "ReLU-1", "Swish-4", "Tanh-1", "Elu-1"]))
        if name in ("Add-1", "Multiply-1", "Subtract-1"):
            shapes = [(), (columns,), (1, columns), (2, rows, columns), (2, rows, 1)]
            own = rng.standard_normal(shapes[rng.integers(len(shapes))]).astype(np.float32)
            operands.append(own[::-1, ::-1] if own.ndim == 3 and rng.random() < 0.3 else own)
            posts.append(Post(name, BIAS.attrs, 1 + len(operands), reflected=bool(rng.random() < 0.3)))
        else:
            posts.append(Post(name, {"alpha": 0.5} if name == "Elu-1" else {}))
    expected = posted(posts, data.astype(np.float64) @ matrix.dense().T.astype(np.float64), [None, None, *operands])
    found = compiled(CompiledEngine(int(rng.integers(1, 4))), matrix, data, posts, operands)()
    np.testing.assert_allclose(found, expected, 1e-4, 1e-4 * max(1, np.abs(expected).max()))


@ENGINES
def test_data_that_lie_otherwise(make):
    """Rows that are apart, backwards and transposed, of several batches."""
    matrix = weights("i4", 50, 64, 32)
    wide = rng.standard_normal((8, 200)).astype(np.float32)
    for data in (wide[:, 3:67], wide[::2, :128:2], np.asfortranarray(wide[:, :64])):
        assert_product(compiled(make(2), matrix, data)(), data, matrix.dense().T)
    data = rng.standard_normal((3, 64, 1)).astype(np.float32)
    found = compiled(make(2), matrix, data, transpose_a=True)()
    assert_product(found[:, 0], data[..., 0], matrix.dense().T)


@pytest.mark.parametrize("columns", [64, 301])
def test_weights_that_are_not_transposed(columns, monkeypatch):
    share_all(monkeypatch)
    monkeypatch.setattr("irrun.engines.vectorized.compressed.DECODED", 2000)
    matrix = weights("u4", 96, columns, 0)
    for rows in (1, 30):
        data = rng.standard_normal((rows, 96)).astype(np.float32)
        assert_product(compiled(VectorizedEngine(2), matrix, data, transposed=False)(), data, matrix.dense())


def test_what_the_compiled_engine_leaves_to_others():
    """Groups that are no whole steps, scales along columns, weights that are not transposed, no weights at all."""
    engine = CompiledEngine(1)

    def taken(matrix, transposed=True):
        inner = matrix.shape[1 if transposed else 0]
        data = np.zeros((1, inner), np.float32)
        work = work_of("MatMul-1", {"transpose_a": False, "transpose_b": transposed}, [data, data], [((1, 1), "f32")])
        work.inputs[1] = Operand("f32", matrix.shape, (4, 4), compressed=matrix)
        return engine.compile(work) is not None

    good = weights("i8", 64, 64)
    assert taken(good)
    assert not taken(good, transposed=False)
    assert not taken(weights("i8", 64, 48))
    assert not taken(weights("u4", 64, 96, 16))
    columns = CompressedWeights("i8", good.codes, (64, 64), (64, 64), np.ones((1, 64), np.float32))
    assert not taken(columns)
    data = np.zeros((4, 4), np.float32)
    plain = work_of("MatMul-1", {"transpose_a": False, "transpose_b": True}, [data, data], [((4, 4), "f32")])
    assert engine.compile(plain) is None


def test_engines_that_do_not_know_compressed_weights():
    matrix = weights("i8", 64, 64)
    data = np.zeros((1, 64), np.float32)
    work = work_of("MatMul-1", {"transpose_a": False, "transpose_b": True}, [data, data], [((1, 64), "f32")])
    dense = signature(work)
    work.inputs[1] = Operand("f32", (64, 64), (256, 4), compressed=matrix)
    assert signature(work) != dense
    work.inputs[1].compressed = weights("u8", 64, 64)
    assert signature(work) != dense
    for engine in load_engines("onednn") if len(load_engines("auto")) > 2 else ():
        if engine.name == "onednn":
            assert engine.compile(work) is None


def test_threads_that_compute_at_the_same_time():
    """Two engines, of 1 and of 2 threads, in four threads; each has data of its own."""
    matrix = weights("u4", 512, 256, 64)
    dense = matrix.dense().T
    wrong = []

    def compute(seed, engine):
        own = np.random.default_rng(seed)
        for number in range(40):
            data = own.standard_normal((1 + number % 20, 256)).astype(np.float32)
            found = compiled(engine, matrix, data)()
            if not np.allclose(found, data @ dense, 1e-4, 1e-3):
                wrong.append((seed, number))

    engines = [CompiledEngine(1), CompiledEngine(2)]
    threads = [threading.Thread(target=compute, args=(seed, engines[seed % 2])) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_has_helpers_of_its_own():
    matrix = weights("i8", 900, 512)
    data = rng.standard_normal((1, 512)).astype(np.float32)
    call = compiled(CompiledEngine(2), matrix, data)
    expected = call()
    child = os.fork()
    if not child:
        os._exit(0 if np.array_equal(call(), expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_bytes_of_codes():
    for type in TYPES:
        assert decoding.bytes_of_step(type) == decoding.STEP * ELEMENT_TYPES[type].bits // 8
    assert products.FEW < 17
