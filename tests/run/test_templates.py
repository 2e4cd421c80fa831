"""Programs that are settled for sizes from what was decided for open ones."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.engines.vectorized.engine import VectorizedEngine
from irrun.run import templates
from irrun.run.passes.assignment import Assignment
from irrun.run.program import Instruction
from irrun.spec.op import Op
from run.models import ADD, PLAIN, anything, i64, loop, model, saved
from run.quantized_models import codes, compressed, convolution, dynamic, elementwise, fake_quantize
from run.resizing import differences, in_full, settled
from run.sized import Sized
from run.test_program import random_model


@pytest.fixture
def counts():
    """How many programs were settled, all of which are verified."""
    found = Counter()
    with settled(found):
        yield found


def same_as_in_full(ours, full, x):
    """The only result is that of a program which is made in full, bit by bit."""
    with in_full():
        (expected,) = full.run([x]).values()
    (result,) = ours.run([x]).values()
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("number", range(12))
def test_random_models_in_other_sizes_as_programs_that_are_made_in_full(number):
    found = Counter()
    for engine in ("numpy", "onednn"):
        assert differences(20261122, number, engine, found) == []


def test_sizes_that_contradict_one_another_are_an_error_of_the_run():
    """A Reshape of a tensor that is larger by one rule than by another is no view of it."""
    for engine in ("numpy", "onednn"):
        assert differences(20261130, 363, engine, Counter()) == []


@pytest.mark.parametrize("seed", range(7))
def test_chains_of_other_batches_as_programs_that_are_made_in_full(seed, tmp_path, counts):
    path = random_model(seed, tmp_path, dynamic=True)
    ours, full = (irrun.GraphExecutor(path, engine="numpy") for _ in range(2))
    rng = np.random.default_rng(seed)
    for batch in (2, 5, 7, 1, 0, 4, 1, 9, 0):
        feed = [rng.standard_normal((batch, 3, 4), np.float32) for _ in ours.inputs]
        with in_full():
            expected = full.run(feed)
        for name, array in ours.run(feed).items():
            np.testing.assert_array_equal(array, expected[name])
    assert counts["settled"] >= 3


def quantized(folder, seed):
    """Convolutions of 8 channels of codes, of images of any size, with other ops between and behind them."""
    rng, m = np.random.default_rng(seed), Model()
    x = y = fake_quantize(m, m.parameter("x", "f32", (1, 8, "?", "?")), 0.0, 2.55)
    for number in range(5):
        weights = codes(8, 8, 3, 3, seed=10 * seed + number)
        y = convolution(m, y, compressed(m, weights, np.full((8, 1, 1, 1), 0.0005 * (number + 1))))
        kind = rng.choice(["ReLU", "Tanh", "Add", "none", "wide"])
        if kind in ("ReLU", "Tanh"):
            y = elementwise(m, str(kind), y)
        elif kind == "Add":
            y = elementwise(m, "Add", y, x)
        y = fake_quantize(m, y, 0.0 if kind == "ReLU" else -2.56, 2.55 if kind == "ReLU" else 2.54)
        if kind == "wide":
            y = fake_quantize(m, elementwise(m, "Sigmoid", y), 0.0, 1.0)
    m.result(y)
    return m.save(folder)


@pytest.mark.parametrize("engine", ["numpy", "onednn"])
@pytest.mark.parametrize("seed", range(6))
def test_quantized_models_of_other_sizes_as_programs_that_are_made_in_full(engine, seed, tmp_path, counts):
    path = quantized(tmp_path, seed)
    ours, full = (irrun.GraphExecutor(path, engine=engine) for _ in range(2))
    rng = np.random.default_rng(seed)
    for height, width in ((5, 8), (9, 4), (7, 6), (11, 3), (6, 10), (4, 7), (12, 5)):
        same_as_in_full(ours, full, rng.random((1, 8, height, width), np.float32) * 2.5)
    assert counts["settled"] >= 2
    assert counts["repeated"] >= 1


def test_images_that_are_brought_into_a_layout_as_others_of_their_kind_are(tmp_path, counts):
    m, rng = Model(), np.random.default_rng(1)
    for name in "abc":
        weights = m.constant(rng.standard_normal((16, 16, 3, 3), np.float32))
        m.result(convolution(m, m.parameter(name, "f32", (1, 16, "?", "?")), weights))
    path, profile = m.save(tmp_path), irrun.Profile()
    ours, full = (irrun.GraphExecutor(path, engine="onednn") for _ in range(2))
    for height, width in ((15, 18), (19, 14), (17, 16), (21, 13), (16, 20)):
        feed = [rng.standard_normal((1, 16, height, width), np.float32) for _ in "abc"]
        with in_full():
            expected = full.run(feed)
        for name, array in ours.run(feed, profile=profile).items():
            np.testing.assert_array_equal(array, expected[name])
    assert {entry.type for entry in profile.entries.values()} == {"Reorder", "Convolution"}
    assert counts["repeated"] >= 2


@pytest.mark.parametrize("engine", ["numpy", "onednn"])
def test_products_of_what_is_quantized_in_the_run_as_programs_that_are_made_in_full(engine, tmp_path, counts):
    """Codes of one constant are laid out once for all lengths."""
    m, rng = Model(), np.random.default_rng(3)
    x, zero = m.parameter("x", "u8", ("?", 12)), m.parameter("zero", "u8", ())
    for name in ("Tanh", "Sigmoid", "Tanh"):
        y = dynamic(m, x, rng.integers(-127, 128, (12, 10)), zero)
        m.result(elementwise(m, name, elementwise(m, "Multiply", y, m.constant(np.float32(0.001)))))
    path = m.save(tmp_path)
    ours, full = (irrun.GraphExecutor(path, engine=engine) for _ in range(2))
    for length in (5, 9, 7, 3, 11, 6, 8):
        feed = {"x": rng.integers(0, 256, (length, 12)).astype(np.uint8), "zero": np.array(length, np.uint8)}
        with in_full():
            expected = full.run(feed)
        for name, array in ours.run(feed).items():
            np.testing.assert_array_equal(array, expected[name])
    assert counts["settled"] >= 2
    assert counts["repeated"] >= 1


def attention(folder, table=6):
    """x [batch, length, 4] + positions of a table, and their products with themselves, as [batch, length * length]."""
    b = model()
    x = anything(b, "f4", (-1, -1, 4))
    shape = b.one("ShapeOf-3", x, output_type="i64")
    length = b.one("Gather-8", shape, i64(b, [1]), i64(b, 0), batch_dims=0)
    table = b.constant(np.arange(4 * table, dtype=np.float32).reshape(table, 4))
    positions = b.one("Slice-8", table, i64(b, [0]), length, i64(b, [1]), i64(b, [0]))
    x = b.one("Add-1", x, positions, **ADD)
    y = b.one("MatMul-1", x, x, transpose_a=False, transpose_b=True)
    b.result(b.one("Reshape-1", b.one("ReLU-1", y), i64(b, [0, -1]), special_zero=True))
    return saved(b, folder)


def expected(x, table=6):
    y = x + np.arange(4 * table, dtype=np.float32).reshape(table, 4)[: x.shape[1]]
    return np.maximum(y @ y.transpose(0, 2, 1), 0).reshape(x.shape[0], -1)


def test_what_depends_on_sizes_alone_is_computed_for_each(tmp_path, counts):
    executor = irrun.GraphExecutor(attention(tmp_path), engine="numpy")
    for batch, length in ((2, 3), (2, 4), (3, 5), (4, 6), (5, 2), (2, 2), (3, 3), (1, 5), (1, 4), (1, 6), (3, 1)):
        x = np.random.default_rng(length).standard_normal((batch, length, 4), np.float32)
        (result,) = executor.run([x]).values()
        np.testing.assert_allclose(result, expected(x), rtol=1e-5)
    assert counts["settled"] == 7, "of each pattern from the second time on"


def test_products_of_what_a_batch_tells_are_computed_once_for_lengths_that_follow(tmp_path, counts):
    """x [batch, length, 4] times three queries that are repeated for each batch and turned by weights, as detectors
    have them; positions of each length are added up before."""
    b = model()
    x = anything(b, "f4", (-1, -1, 4))
    rng = np.random.default_rng(2)
    queries, turn, sums = (rng.standard_normal(shape, np.float32) for shape in ((1, 3, 4), (4, 4), (1, 4)))
    shape = b.one("ShapeOf-3", x, output_type="i64")
    batch, length = (b.one("Gather-8", shape, i64(b, n), i64(b, 0), batch_dims=0) for n in range(2))
    target = b.one("Concat-1", b.one("Unsqueeze-1", batch, i64(b, 0)), i64(b, [1, 1]), axis=0)
    repeated = b.one("Broadcast-3", b.constant(queries), target, mode="bidirectional")
    turned = b.one("MatMul-1", repeated, b.constant(turn), **PLAIN)
    places = b.one("Range-4", i64(b, 0), length, i64(b, 1), output_type="f32")
    added = b.one("MatMul-1", b.one("Unsqueeze-1", places, i64(b, 1)), b.constant(sums), **PLAIN)
    y = b.one("Add-1", x, added, **ADD)
    b.result(b.one("MatMul-1", y, turned, transpose_a=False, transpose_b=True))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine="numpy")
    computed, multiplied = Instruction.computed, []

    def noted(self, arrays):
        if self.op.type == "MatMul":
            multiplied.append(arrays[0].shape)
        return computed(self, arrays)

    with patch.object(Instruction, "computed", noted):
        for batch, length in ((2, 5), (3, 7), (2, 6), (4, 9), (4, 2), (4, 3), (2, 3), (2, 8)):
            multiplied.clear()
            x = rng.standard_normal((batch, length, 4), np.float32)
            (result,) = executor.run([x]).values()
            y = x + np.arange(length)[:, None] * sums
            np.testing.assert_allclose(result, y @ (queries[0] @ turn).T, rtol=1e-3, atol=1e-4)
            assert ((batch, 3, 4) in multiplied) is ((batch, length) not in {(4, 2), (4, 3), (2, 8)})
            assert ((length, 1) in multiplied) is ((batch, length) != (2, 3)), "the length before was 3, too"
    assert counts["settled"] >= 6


def test_a_size_that_breaks_a_rule_is_reported_as_ever(tmp_path, counts):
    executor = irrun.GraphExecutor(attention(tmp_path), engine="numpy")
    for length in (3, 4, 5):
        executor.run([np.zeros((2, length, 4), np.float32)])
    with pytest.raises(irrun.ExecutionError, match=r"7.*6|6.*7"):
        executor.run([np.zeros((2, 7, 4), np.float32)])
    assert counts["not settled"] == 1
    with patch.object(templates, "decide", lambda *_: pytest.fail("there is a template")):
        executor.run([np.zeros((2, 6, 4), np.float32)])


def distances(folder):
    """x [batch, length] + the distance of each position from the last, at most 3."""
    b = model()
    x = anything(b, "f4", (-1, -1))
    length = b.one("Gather-8", b.one("ShapeOf-3", x, output_type="i64"), i64(b, 1), i64(b, 0), batch_dims=0)
    positions = b.one("Range-4", i64(b, 0), length, i64(b, 1), output_type="i64")
    last = b.one("Subtract-1", length, i64(b, 1), **ADD)
    far = b.one("Minimum-1", b.one("Subtract-1", last, positions, **ADD), i64(b, 3), **ADD)
    b.result(b.one("Add-1", x, b.one("Convert-1", far, destination_type="f32"), **ADD))
    return saved(b, folder)


@contextmanager
def rules_asked():
    """The types of the ops whose rules are asked meanwhile."""
    asked, infer = [], Op.infer

    def noted(op, inputs, *args):
        asked.append(op.type)
        return infer(op, inputs, *args)

    with patch.object(Op, "infer", noted):
        yield asked


def test_what_kernels_check_themselves_is_computed_of_sizes_without_asking_their_rules(tmp_path, counts):
    executor = irrun.GraphExecutor(distances(tmp_path), engine="numpy")
    for length in (4, 5, 6, 7):
        with rules_asked() as asked:
            (result,) = executor.run([np.zeros((2, length), np.float32)]).values()
        np.testing.assert_array_equal(result, [np.minimum(np.arange(length)[::-1], 3)] * 2)
    assert counts["settled"] == 3
    assert "Range" in asked
    assert not {"Subtract", "Minimum", "Convert"} & {*asked}


def test_rules_that_say_all_of_open_sizes_are_not_asked_again(tmp_path, counts):
    """x [batch, length] plus half the distance of each place from each other one, added up by columns: what turns the
    distances, and what divides them, is of shapes that the length alone tells."""
    b = model()
    x = anything(b, "f4", (-1, -1))
    length = b.one("Gather-8", b.one("ShapeOf-3", x, output_type="i64"), i64(b, 1), i64(b, 0), batch_dims=0)
    places = b.one("Range-4", i64(b, 0), length, i64(b, 1), output_type="f32")
    column, row = (b.one("Unsqueeze-1", places, i64(b, axis)) for axis in (1, 0))
    turned = b.one("Transpose-1", b.one("Subtract-1", column, row, **ADD), i64(b, [1, 0]))
    halved = b.one("Divide-1", turned, b.constant(np.array(2, np.float32)), m_pythondiv=True, **ADD)
    b.result(b.one("MatMul-1", x, halved, **PLAIN))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine="numpy")
    for length in (4, 5, 6, 7):
        x, places = np.random.default_rng(length).standard_normal((2, length), np.float32), np.arange(length)
        with rules_asked() as asked:
            (result,) = executor.run([x]).values()
        np.testing.assert_allclose(result, x @ (places - places[:, None]) / 2, rtol=1e-5, atol=1e-5)
    assert counts["settled"] == 3
    assert not {"Transpose", "Divide"} & {*asked}


def test_sizes_are_followed_where_they_are_floats_on_the_way(tmp_path, counts):
    """x [batch, length] + the middles of its columns, as detectors write their anchors; behind it products of halves,
    which are no sizes."""
    b = model()
    x = anything(b, "f4", (-1, -1))
    length = b.one("Gather-8", b.one("ShapeOf-3", x, output_type="i64"), i64(b, 1), i64(b, 0), batch_dims=0)
    length = b.one("Convert-1", length, destination_type="f32")
    zero, half, one = (b.constant(np.float32(number)) for number in (0, 0.5, 1))
    middles = b.one("Add-1", b.one("Range-4", zero, length, one, output_type="f32"), half, **ADD)
    y = b.one("Add-1", x, middles, **ADD)
    middle = b.one("Divide-1", length, b.constant(np.float32(2)), m_pythondiv=True, **ADD)
    for _ in range(3):
        y = b.one("Multiply-1", b.one("Tanh-1", y), middle, **ADD)
    b.result(y)
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine="numpy")
    for batch, length in ((2, 3), (3, 5), (4, 7), (5, 2), (6, 9)):
        x = np.random.default_rng(length).standard_normal((batch, length), np.float32)
        (result,) = executor.run([x]).values()
        y = x + np.arange(length) + 0.5
        for _ in range(3):
            y = np.tanh(y) * (length / 2)
        np.testing.assert_allclose(result, y, rtol=1e-5)
    assert counts["settled"] >= 2


@pytest.mark.parametrize("engine", ["numpy", "auto"])
def test_numbers_that_sizes_tell_stay_apart_where_they_were_equal_in_other_sizes(engine, tmp_path, counts, caplog):
    """x [batch, length] to the power of the tens and of the fives in its length, where engines look at exponents; and
    what is shown of columns below 9 in each row, and of those before it."""
    b = model()
    x, shown = anything(b, "f4", (-1, -1)), anything(b, "?", (-1, -1))
    length = b.one("Gather-8", b.one("ShapeOf-3", x, output_type="i64"), i64(b, 1), i64(b, 0), batch_dims=0)
    floating = b.one("Convert-1", length, destination_type="f32")
    for step in (10, 5):
        parts = b.one("Divide-1", floating, b.constant(np.float32(step)), m_pythondiv=True, **ADD)
        b.result(b.one("Power-1", x, b.one("Floor-1", parts), **ADD))
    columns = b.one("Range-4", i64(b, 0), length, i64(b, 1), output_type="i64")
    rows = b.one("Unsqueeze-1", columns, i64(b, 1))
    for own, most in ((rows, i64(b, 9)), (columns, rows)):
        below = b.one("Unsqueeze-1", b.one("Less-1", own, most, **ADD), i64(b, 0))
        b.result(b.one("LogicalAnd-1", b.one("Unsqueeze-1", shown, i64(b, 1)), below, **ADD))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine=engine)
    for length in (10, 20, 31, 15, 7, 40, 12, 9):
        x = np.random.default_rng(length).random((2, length), np.float32)
        shown = x < 0.8
        tens, fives, few, before = executor.run([x, shown]).values()
        np.testing.assert_allclose(tens, x ** (length // 10), rtol=1e-5)
        np.testing.assert_allclose(fives, x ** (length // 5), rtol=1e-5)
        places = np.arange(length)
        np.testing.assert_array_equal(few, shown[:, None] & (places[:, None] < 9))
        np.testing.assert_array_equal(before, shown[:, None] & (places < places[:, None]))
    assert not caplog.records, "nobody is given what it was not compiled for"
    assert counts["repeated"] >= 2


def test_what_has_a_shape_may_have_a_type_that_only_a_run_tells():
    """A reshaped result of a TensorIterator whose body cannot be told what it is given."""
    assert differences(8, 98, "numpy", Counter()) == []


def test_sizes_that_only_the_data_tell_stay_open(tmp_path, counts):
    b = model()
    x = anything(b, "f4", (-1,))
    b.result(b.one("NonZero-3", x))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine="numpy")
    for length in (3, 4, 5, 6):
        x = np.arange(length, dtype=np.float32)
        (result,) = executor.run([x]).values()
        np.testing.assert_array_equal(result, [np.arange(1, length)])
    assert counts["settled"] == 3


@pytest.mark.parametrize("engine", ["numpy", "auto"])
@pytest.mark.parametrize("telling", ["axes", "some of a shape"])
def test_what_the_data_tell_more_of_has_templates_too(engine, telling, tmp_path, counts):
    """How many axes there are where those of one element are left out, or one of two sizes that a shape is made of."""
    b = model()
    x = anything(b, "f4", (-1, 16))
    weights = b.constant(np.random.default_rng(0).standard_normal((16, 16), np.float32))
    highest = b.one("ReduceMax-1", b.one("MatMul-1", x, weights, **PLAIN), i64(b, [1]), keep_dims=False)
    places = b.one("NonZero-3", b.one("Greater-1", highest, b.constant(np.float32(5)), **ADD), output_type="i64")
    if telling == "axes":
        b.result(b.one("Gather-8", x, b.one("Squeeze-1", places), i64(b, 0), batch_dims=0))
    else:
        rows, count = (
            b.one("Gather-8", b.one("ShapeOf-3", own, output_type="i64"), i64(b, [axis]), i64(b, 0), batch_dims=0)
            for own, axis in ((x, 0), (places, 1))
        )
        shape = b.one("Concat-1", rows, count, axis=0)
        least, most = (b.constant(np.float32(number)) for number in (0, 1))
        seeds = {"global_seed": 1, "op_seed": 2, "alignment": "tensorflow"}
        b.result(b.one("RandomUniform-8", shape, least, most, output_type="f32", **seeds))
    path = saved(b, tmp_path)
    ours, full = (irrun.GraphExecutor(path, engine=engine) for _ in range(2))
    for length in (30, 40, 50, 60, 35):
        same_as_in_full(ours, full, np.random.default_rng(length).standard_normal((length, 16), np.float32))
    assert counts["settled"] >= 3
    assert counts["repeated"] >= 2


def layers(folder, count=4):
    """x [batch, length, 8], of which each layer makes attention of two heads, and adds it."""
    b = model()
    x = anything(b, "f4", (-1, -1, 8))
    rng = np.random.default_rng(1)
    for _ in range(count):
        parts = [b.one("MatMul-1", x, b.constant(rng.standard_normal((8, 8), np.float32)), **PLAIN) for _ in range(3)]
        heads = [b.one("Reshape-1", part, i64(b, [0, 0, 2, 4]), special_zero=True) for part in parts]
        q, k, v = (b.one("Transpose-1", own, i64(b, [0, 2, 1, 3])) for own in heads)
        scores = b.one("MatMul-1", q, k, transpose_a=False, transpose_b=True)
        made = b.one("MatMul-1", b.one("SoftMax-8", scores, axis=-1), v, **PLAIN)
        joined = b.one(
            "Reshape-1", b.one("Transpose-1", made, i64(b, [0, 2, 1, 3])), i64(b, [0, 0, 8]), special_zero=True
        )
        x = b.one("Add-1", x, joined, **ADD)
    b.result(x)
    return saved(b, folder)


@pytest.mark.parametrize("engine", ["numpy", "auto"])
def test_layers_that_are_alike_become_what_the_first_one_of_other_sizes_does(engine, tmp_path, counts):
    path = layers(tmp_path)
    ours, full = (irrun.GraphExecutor(path, engine=engine) for _ in range(2))
    for length in (5, 7, 11, 70, 6, 9, 130, 12):
        x = np.random.default_rng(length).standard_normal((2, length, 8), np.float32)
        same_as_in_full(ours, full, x)
    assert counts["repeated"] >= 2


def rotary(folder, special_zero):
    """x [batch, length, 32]: attention of 4 heads over 2 heads of keys, both turned by angles of their positions."""
    b = model()
    x, shown = anything(b, "f4", (-1, -1, 32)), anything(b, "?", (-1, -1))
    rng = np.random.default_rng(7)
    sizes = b.one("ShapeOf-3", x, output_type="i64")
    batch, length = (b.one("Gather-8", sizes, i64(b, [n]), i64(b, 0), batch_dims=0) for n in range(2))
    places = b.one("Range-4", i64(b, 0), b.one("Squeeze-1", length, i64(b, 0)), i64(b, 1), output_type="f32")
    angles = b.one(
        "MatMul-1", b.one("Unsqueeze-1", places, i64(b, 1)), b.constant(np.ones((1, 8), np.float32)), **PLAIN
    )
    turn = b.one("Unsqueeze-1", b.one("Cos-1", angles), i64(b, [0, 1]))
    before = b.one(
        "LessEqual-1", b.one("Unsqueeze-1", places, i64(b, 0)), b.one("Unsqueeze-1", places, i64(b, 1)), **ADD
    )
    mask = b.one("LogicalAnd-1", before, b.one("Unsqueeze-1", shown, i64(b, [1, 2])), **ADD)

    def heads(count):
        weights = b.constant(rng.standard_normal((32, 8 * count), np.float32))
        rows = b.one("Reshape-1", b.one("MatMul-1", x, weights, **PLAIN), i64(b, [0, 0, count, 8]), special_zero=True)
        return b.one("Transpose-1", rows, i64(b, [0, 2, 1, 3]))

    def repeated(rows):
        target = b.one("Concat-1", batch, i64(b, [2, 2]), length, i64(b, [8]), axis=0)
        copies = b.one("Broadcast-3", b.one("Unsqueeze-1", rows, i64(b, 2)), target, mode="bidirectional")
        folded = b.one("Concat-1", batch, i64(b, [4]), length, i64(b, [8]), axis=0)
        return b.one("Reshape-1", copies, folded, special_zero=special_zero)

    query, key, value = heads(4), heads(2), heads(2)
    query, key = (b.one("Multiply-1", own, turn, **ADD) for own in (query, key))
    made = b.one("ScaledDotProductAttention-13", query, repeated(key), repeated(value), mask, causal=False)
    b.result(b.one("Transpose-1", made, i64(b, [0, 2, 1, 3])))
    return saved(b, folder)


@pytest.mark.parametrize("engine", ["numpy", "onednn", "auto"])
@pytest.mark.parametrize("special_zero", [False, True])
def test_positions_that_sizes_tell_and_heads_that_share_keys(engine, special_zero, tmp_path, counts):
    """The same is decided of open sizes as of known ones."""
    path = rotary(tmp_path, special_zero)
    ours, full = (irrun.GraphExecutor(path, engine=engine) for _ in range(2))
    for batch, length in [(1, 5), (1, 9), (1, 7), (1, 40), (1, 1), (3, 5), (4, 6), (2, 9), (5, 20)]:
        x = np.random.default_rng(length).standard_normal((batch, length, 32), np.float32)
        shown = np.arange(length) < length - np.arange(batch)[:, None] % 2
        shown[:, 0] = True
        with in_full():
            (expected,) = full.run([x, shown]).values()
        (result,) = ours.run([x, shown]).values()
        np.testing.assert_array_equal(result, expected)
    assert counts["settled"] == 6
    ranks = {
        len(kept.program.tensors[own.inputs[0]].shape)
        for kept in ours._whole.preparation._kept.values()
        for own in kept.program.instructions
        if own.op.name == "ScaledDotProductAttention-13"
    }
    assert ranks == {5}


def test_who_assigns_a_variable_need_not_give_it_on(tmp_path, counts):
    m = Model()
    x = m.parameter("x", "f32", ("?", 4))
    variable = {"variable_id": "past", "variable_type": "f32", "variable_shape": "?,4"}
    (past,) = m.layer("ReadValue", [m.constant(np.zeros((0, 4), np.float32))], [("f32", (-1, 4))], "opset6", **variable)
    (whole,) = m.layer("Concat", [past, x], [("f32", (-1, 4))], axis="0")
    m.layer("Assign", [whole], [], "opset6", variable_id="past")
    m.result(elementwise(m, "Tanh", elementwise(m, "Add", x, x)))
    session = irrun.GraphExecutor(m.save(tmp_path), engine="numpy").session()
    for length in (3, 5, 7, 9):
        session.run([np.ones((length, 4), np.float32)])
    assert session.variables["past"].shape == (24, 4)
    assert counts["settled"] >= 2


def test_of_layers_that_are_alike_one_is_offered_to_engines(tmp_path):
    executor = irrun.GraphExecutor(layers(tmp_path), engine="numpy")
    offered = []
    add = Assignment.add

    def noted(self, instruction):
        offered.append(instruction.layer)
        add(self, instruction)

    with patch.object(Assignment, "add", noted):
        for length, most in ((5, 60), (6, 60), (7, 20), (8, 20)):
            offered.clear()
            executor.run([np.zeros((2, length, 8), np.float32)])
            assert len({*offered}) <= most


def test_what_an_engine_cannot_bind_is_placed_anew(tmp_path, counts):
    """What was refused for some sizes is refused for others."""
    executor = irrun.GraphExecutor(layers(tmp_path), engine="numpy")
    feeds = [np.random.default_rng(n).standard_normal((2, n, 8), np.float32) for n in (5, 6, 7, 8, 9)]
    for feed in feeds[:3]:
        executor.run([feed])
    assert counts["repeated"] == 1
    compile, failed = VectorizedEngine.compile, []

    def failing(self, work):
        found = compile(self, work)
        if found is not None and work.name == "Add-1" and not failed:
            failed.append(work)
            found.bind = lambda *_: 1 / 0
        return found

    with patch.object(VectorizedEngine, "compile", failing):
        found = [next(iter(executor.run([feed]).values())) for feed in feeds[3:]]
    other = irrun.GraphExecutor(layers(tmp_path), engine="reference")
    for feed, result in zip(feeds[3:], found, strict=True):
        np.testing.assert_allclose(result, *other.run([feed]).values(), rtol=1e-3, atol=1e-3)
    assert failed


def test_weights_of_layers_that_are_alike_stay_apart(tmp_path, counts):
    """What an engine makes of a product serves for the next one, but for its weights."""
    b = model()
    x = anything(b, "f4", (-1, 8))
    weights = [np.random.default_rng(n).standard_normal((8, 8)).astype(np.float32) for n in range(4)]
    y = x
    for n, w in enumerate(weights):
        y = b.one("Add-1", b.one("MatMul-1", y, b.constant(w), **PLAIN), b.constant(np.full((1, 8), n, "f4")), **ADD)
    b.result(y)
    path = saved(b, tmp_path)
    for engine in ("numpy", "onednn"):
        executor = irrun.GraphExecutor(path, engine=engine)
        for rows in (3, 4, 5, 6, 3):
            x = np.random.default_rng(rows).standard_normal((rows, 8), np.float32)
            want = x
            for n, w in enumerate(weights):
                want = want @ w + n
            (result,) = executor.run([x]).values()
            np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-4)


def pooled(folder):
    """An image pooled by 2, with sizes rounded up, brought to the sizes that are rounded down, where it is added."""
    b = model()
    x = b.parameter([np.zeros((1, 2, 4, 4), np.float32)], [2, 3])
    window = {"strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0", "kernel": "2,2", "auto_pad": "explicit"}
    more = b.one("MaxPool-1", x, **window, rounding_type="ceil")
    less = b.one("MaxPool-1", x, **window, rounding_type="floor")
    sizes = b.one("Gather-8", b.one("ShapeOf-3", less, output_type="i64"), i64(b, [2, 3]), i64(b, 0), batch_dims=0)
    attrs = {"mode": "nearest", "shape_calculation_mode": "sizes", "nearest_mode": "floor"}
    near = b.one(*("Interpolate-11", more, sizes, i64(b, [2, 3])), **attrs, coordinate_transformation_mode="half_pixel")
    b.result(b.one("Add-1", b.one("ReLU-1", near), less, **ADD))
    return saved(b, folder)


def test_sizes_that_were_equal_so_far_are_presumed_to_be_until_they_are_not(tmp_path, counts):
    path = pooled(tmp_path)
    ours, full = (irrun.GraphExecutor(path, engine="numpy") for _ in range(2))
    left = []
    for sizes in ((4, 6), (6, 8), (8, 4), (10, 6), (7, 8), (9, 8), (5, 6), (6, 9), (3, 7), (12, 14), (11, 4)):
        x = np.random.default_rng(sizes[0]).standard_normal((1, 2, *sizes), np.float32)
        same_as_in_full(ours, full, x)
        left.append(any(own.op.type == "Interpolate" for own in kept(ours)[-1].instructions))
    assert left == [any(size % 2 for size in sizes) for sizes in ((0, 0),) * 4 + ((1, 1),) * 5 + ((1, 0),) * 2]
    assert counts["not settled"] >= 1
    assert counts["settled"] >= 6


def kept(executor):
    """The programs that an executor keeps, the latest one last."""
    return [prepared.program for prepared in executor._whole.preparation._kept.values()]


def test_programs_of_few_alike_instructions_are_made_in_full_some_times_more(tmp_path):
    executor = irrun.GraphExecutor(pooled(tmp_path), engine="numpy")
    made, decide = [], templates.decide

    def noted(program, setting):
        made.append(setting.sizes is not None)
        return decide(program, setting)

    with patch.object(templates, "decide", noted):
        for size in (4, 6, 8, 10, 12, 14):
            executor.run([np.zeros((1, 2, size, 2 * size), np.float32)])
    assert made == [False] * templates.PATIENCE + [True]


def test_results_that_are_brought_into_another_layout_are_so_in_all_sizes(tmp_path, counts):
    pytest.importorskip("irrun.engines.onednn.bindings")
    b = model()
    x = anything(b, "f4", (1, 3, -1, -1))
    rng = np.random.default_rng(2)
    window = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1", "auto_pad": "explicit"}
    for channels in (3, 8, 8, 8):
        filters = b.constant(rng.standard_normal((8, channels, 3, 3), np.float32) / 9)
        x = b.one("ReLU-1", b.one("Convolution-1", x, filters, **window))
        x = b.one("Add-1", x, b.one("CumSum-3", x, i64(b, 2), exclusive=False, reverse=False), **ADD)
    b.result(x)
    path = saved(b, tmp_path)
    ours, full = (irrun.GraphExecutor(path, engine="onednn") for _ in range(2))
    for sizes in ((20, 24), (30, 16), (17, 40), (26, 22), (9, 31)):
        x = rng.standard_normal((1, 3, *sizes), np.float32)
        same_as_in_full(ours, full, x)
    assert counts["settled"] == 4


@pytest.mark.parametrize("engine", ["numpy", "onednn"])
def test_kernels_and_bodies_lie_between_what_engines_compute_in_all_sizes(engine, tmp_path, counts):
    b = model()
    x = anything(b, "f4", (2, -1, 8))
    rng = np.random.default_rng(4)
    inner = model()
    given = anything(inner, "f4", (2, -1, 8))
    made = inner.one("Tanh-1", inner.one("Exp-1", given))
    (x,) = loop(b, inner, i64(b, 2), [(given, x)], [made], [(made, given)])
    for _ in range(4):
        x = b.one("MatMul-1", x, b.constant(rng.standard_normal((8, 8), np.float32)), **PLAIN)
        x = b.one("ReverseSequence-1", x, i64(b, [1, 1]), batch_axis=0, seq_axis=1)
        x = b.one("Add-1", x, b.one("CumSum-3", x, i64(b, 1), exclusive=True, reverse=False), **ADD)
    b.result(x)
    path = saved(b, tmp_path)
    ours, full = (irrun.GraphExecutor(path, engine=engine) for _ in range(2))
    for length in (5, 9, 7, 3, 11, 6, 8):
        same_as_in_full(ours, full, rng.standard_normal((2, length, 8), np.float32))
    assert counts["settled"] - counts["repeated"] == 2  # one of the model, and one of the body


def test_a_program_goes_on_as_one_did_that_had_begun_in_the_same_way(tmp_path, counts):
    """Whether an engine takes a product depends on how many rows it has, in each layer on its own."""
    path = layers(tmp_path)
    compile = VectorizedEngine.compile

    def of_few_rows(self, work):
        many = work.name == "MatMul-1" and work.outputs[0].shape[-2] > 100
        return None if many else compile(self, work)

    with patch.object(VectorizedEngine, "compile", of_few_rows):
        ours, full = (irrun.GraphExecutor(path, engine="numpy") for _ in range(2))
        for length in (5, 150, 6, 7, 160, 8, 170, 180, 9, 10):
            x = np.random.default_rng(length).standard_normal((2, length, 8), np.float32)
            same_as_in_full(ours, full, x)
    assert counts["repeated"] >= 6
    assert counts["begun"] >= 1


def test_a_program_is_repeated_whichever_engine_takes_what_all_of_them_lay_out_alike(tmp_path, counts):
    """For attention of few scores no code is compiled; what the others are is the same for both."""
    path = layers(tmp_path)
    ours, full = (irrun.GraphExecutor(path, engine="auto") for _ in range(2))
    for length in (5, 6, 7, 160, 8, 170, 9):
        x = np.random.default_rng(length).standard_normal((2, length, 8), np.float32)
        same_as_in_full(ours, full, x)
    assert (counts["settled"], counts["repeated"], counts["begun"]) == (6, 5, 0)


def test_rows_of_which_the_data_tell_the_sizes_are_prepared_once_for_all_lengths(tmp_path, counts):
    b = model()
    x = anything(b, "f4", (-1, 64))
    places = b.one("Squeeze-1", b.one("NonZero-3", b.one("ReduceMax-1", x, i64(b, [1]), keep_dims=False)), i64(b, [0]))
    rows = b.one("Gather-8", x, places, i64(b, 0), batch_dims=0)
    weights = np.random.default_rng(0).standard_normal((64, 64), np.float32)
    rows = b.one("Exp-1", b.one("Tanh-1", b.one("MatMul-1", rows, b.constant(weights), **PLAIN)))
    b.result(b.one("ReduceSum-1", rows, i64(b, [0]), keep_dims=False))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine="auto")
    prepared = set()
    for length in (30, 40, 50, 60):
        x = np.random.default_rng(length).standard_normal((length, 64), np.float32)
        x[::3] = 0
        for _ in range(3):
            (result,) = executor.run([x]).values()
            expected = np.exp(np.tanh(x[x.max(axis=1) != 0].astype(np.float64) @ weights)).sum(axis=0)
            np.testing.assert_allclose(result, expected, rtol=1e-5)
        for own in kept(executor)[2:]:
            prepared |= {id(each.enclosed) for each in own.instructions if each.enclosed is not None}
    assert counts["settled"] >= 3
    assert len(prepared) == 1


def test_primitives_that_leave_memory_behind_are_made_for_so_many_sizes(tmp_path, monkeypatch):
    """Then functions are computed behind convolutions, as nobody knows how many sizes will come."""
    library = pytest.importorskip("irrun.engines.onednn.library")
    b = model()
    x = anything(b, "f4", (1, 16, -1, -1))
    rng = np.random.default_rng(2)
    window = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1", "auto_pad": "explicit"}
    for _ in range(3):
        filters = b.constant(rng.standard_normal((16, 16, 3, 3), np.float32) / 12)
        x = b.one("Tanh-1", b.one("Convolution-1", x, filters, **window))
    b.result(x)
    path = saved(b, tmp_path)
    ours, other = (irrun.GraphExecutor(path, engine=engine) for engine in ("onednn", "numpy"))
    monkeypatch.setattr(library, "MAX_LEAKING", library.Primitive.leaked + 6)
    for height in range(20, 30):
        feed = [rng.standard_normal((1, 16, height, 24), np.float32)]
        (found,), (expected,) = (executor.run(feed).values() for executor in (ours, other))
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert library.Primitive.leaked <= library.MAX_LEAKING


def test_a_template_that_another_thread_takes_away_is_used_to_the_end(tmp_path, counts):
    executor, real = irrun.GraphExecutor(attention(tmp_path), engine="numpy"), templates.settle

    def meanwhile(*given):
        for known in executor._whole.preparation._templates._kept.values():
            known.template = None
        return real(*given)

    with patch.object(templates, "settle", meanwhile):
        for length in (3, 4, 5, 6):
            x = np.random.default_rng(length).standard_normal((2, length, 4), np.float32)
            (result,) = executor.run([x]).values()
            np.testing.assert_allclose(result, expected(x), rtol=1e-5)
    assert counts["settled"] >= 1


def test_of_what_rules_have_said_no_more_is_remembered_than_some_hundred_shapes_bring(tmp_path, monkeypatch):
    monkeypatch.setattr("irrun.run.passes.setting.MAX_ANSWERS", 12)
    b = model()
    x = b.one("ReLU-1", anything(b, "f4", (-1, -1)))
    b.result(b.one("Transpose-1", b.one("Reshape-1", x, i64(b, [0, -1]), special_zero=True), i64(b, [1, 0])))
    ours = irrun.GraphExecutor(saved(b, tmp_path))
    setting = ours._whole.preparation._setting
    for size in range(2, 40):
        given = np.arange(-3, size * 5 - 3, dtype=np.float32).reshape(size, 5)
        (result,) = ours.run([given]).values()
        np.testing.assert_array_equal(result, np.maximum(given, 0).T)
        assert len(setting.answers) <= 12
        assert len(setting.views) <= 12
    assert setting.answers


@pytest.mark.parametrize("engine", ["numpy", "onednn", "auto"])
@pytest.mark.parametrize("seed", range(12))
def test_what_sizes_tell_makes_a_difference_to_ops_that_are_alike_otherwise(engine, seed, tmp_path, counts):
    made = Sized(seed)
    path = made.saved(tmp_path)
    ours, full = (irrun.GraphExecutor(path, engine=engine) for _ in range(2))
    for feed in made.b.feeds:
        with in_full():
            expected = full.run(feed)
        for name, array in ours.run(feed).items():
            np.testing.assert_array_equal(array, expected[name])
    assert counts["repeated"] >= 1 or made.b.graph.of_type("If")  # which are made in full
    assert counts["not repeated"] == 0
