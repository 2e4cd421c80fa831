"""MACs and bytes: by hand for every op that multiplies, in unknown sizes, in loops, branches, and what is unknown."""

from pathlib import Path

import numpy as np
import pytest
from ir_builder import Model
from run.models import ADD, PLAIN, anything, branch, i64, loop, model, saved

import irrun
from irrun.spec.dims import fresh, same
from irrun.spec.registry import registry
from irrun.spec.traits import Accumulating, Products

SAMPLES = Path(__file__).parents[3] / "samples"

COUNTS = {
    # 1 x 4 x 6 x 7 results, each of 3 channels of 2 x 3 taps
    "BinaryConvolution-1": ([(1, 3, 7, 9), (4, 3, 2, 3)], {}, (1, 4, 6, 7), 168 * 18),
    # the same, each of the 2 channels of its group; offsets are only looked at
    "DeformableConvolution-1": ([(1, 4, 7, 9), (1, 12, 6, 7), (4, 2, 2, 3)], {}, (1, 4, 6, 7), 168 * 12),
    "DeformableConvolution-8": ([(1, 4, 7, 9), (1, 12, 6, 7), (4, 2, 2, 3), ()], {}, (1, 4, 6, 7), 168 * 12),
    # i j k: 2 x 3 x 4; then, with j summed over, i k l: 2 x 4 x 5
    "Einsum-7": ([(2, 3), (3, 4), (4, 5)], {"equation": "ij,jk,kl->il"}, (2, 5), 24 + 40),
    # 2 matrices of 3 x 3
    "Inverse-14": ([(2, 3, 3)], {}, (2, 3, 3), 2 * 27),
    # 7 rows of 4, each with the 3 columns of its group
    "GroupedMatMul-17": ([(7, 4), (2, 3, 4), (2,)], {}, (7, 3), 7 * 4 * 3),
    # 2 rows, each of 3 with 3 * 5 rows of W, and its state of 5 with as many of R
    "GRUCell-3": ([(2, 3), (2, 5), (15, 3), (15, 5), (15,)], {}, (2, 5), 2 * (45 + 75)),
    "LSTMCell-1": ([(2, 3), (2, 5), (2, 5), (20, 3), (20, 5), (20,)], {}, (2, 5), 2 * (60 + 100)),
    "LSTMCell-4": ([(2, 3), (2, 5), (2, 5), (20, 3), (20, 5), (20,)], {}, (2, 5), 2 * (60 + 100)),
    "RNNCell-3": ([(2, 3), (2, 5), (5, 3), (5, 5), (5,)], {}, (2, 5), 2 * (15 + 25)),
    # 2 sequences of 7 steps, in both directions
    "GRUSequence-5": ([(2, 7, 3), (2, 2, 5), (2,), (2, 15, 3), (2, 15, 5), (2, 15)], {}, (), 14 * 2 * (45 + 75)),
    "LSTMSequence-5": (
        [(2, 7, 3), (2, 2, 5), (2, 2, 5), (2,), (2, 20, 3), (2, 20, 5), (2, 20)],
        {},
        (),
        14 * 2 * (60 + 100),
    ),
    "RNNSequence-5": ([(2, 7, 3), (2, 1, 5), (2,), (1, 5, 3), (1, 5, 5), (1, 5)], {}, (), 14 * (15 + 25)),
}


@pytest.mark.parametrize("name", COUNTS)
def test_ops_that_accumulate_products_say_how_many(name):
    shapes, attrs, result, macs = COUNTS[name]
    assert registry().ops[name].trait(Accumulating).operations(shapes, attrs, result) == 2 * macs


def test_these_are_all_ops_that_do_and_none_says_it_twice():
    ops = registry().ops.values()
    assert {op.name for op in ops if op.trait(Accumulating)} == COUNTS.keys()
    assert not [op.name for op in ops if op.trait(Accumulating) and op.trait(Products)]


@pytest.mark.parametrize("name", [name for name in COUNTS if name != "Inverse-14"])
def test_an_unknown_batch_is_a_factor(name):
    shapes, attrs, result, _ = COUNTS[name]
    batch = fresh(name="batch")
    count = registry().ops[name].trait(Accumulating).operations
    one, any_number = (count([(n, *shapes[0][1:]), *shapes[1:]], attrs, (n, *result[1:])) for n in (1, batch))
    assert same(any_number, batch * one)


def test_a_network_is_counted_by_hand():
    costs = irrun.inspect(SAMPLES / "cnn" / "model.xml", {"image": (2, 3, 16, 16)}).costs
    first, second, last = 8 * 16 * 16 * 3 * 9, 16 * 8 * 8 * 8 * 9, 16 * 10
    assert costs.macs == 2 * (first + second + last) == 258_368
    assert costs.flops == 2 * costs.macs
    assert costs.by_type["Convolution"][:2] == (2, 2 * (first + second))
    assert (costs.layers, costs.counted, costs.coverage) == (19, 19, 1.0)


def test_unknown_sizes_stay_in_the_sum():
    found = irrun.inspect(SAMPLES / "cnn" / "model.xml", {"image": ("batch", 3, 16, 16)})
    assert found.sizes.text(found.costs.macs) == "129184*batch"
    assert found.sizes.text(found.costs.flops) == "258368*batch"


def test_sizes_that_broadcast_are_taken_to_be_equal(tmp_path):
    m = Model()
    x, y = (m.parameter(name, "f32", ("?", 4)) for name in "xy")
    (total,) = m.layer("Add", [x, y], [("f32", (-1, 4))], auto_broadcast="numpy")
    weights = m.constant(np.ones((4, 3), np.float32))
    m.result(m.layer("MatMul", [total, weights], [("f32", (-1, 3))])[0])
    found = irrun.inspect(m.save(tmp_path))
    assert found.sizes.text(found.costs.macs) == "12*x.0"


def test_bytes_are_what_layers_read_and_write_and_constants_as_they_are_stored(tmp_path):
    m = Model()
    x = m.parameter("x", "f32", (2, 4))
    stored = m.constant(np.ones((4, 3), np.float16))
    (weights,) = m.layer("Convert", [stored], [("f32", (4, 3))], destination_type="f32")
    (y,) = m.layer("MatMul", [x, weights], [("f32", (2, 3))])
    (flat,) = m.layer("Reshape", [y, m.constant(np.int64([6]))], [("f32", (6,))], special_zero="false")
    m.result(flat)
    found = irrun.inspect(m.save(tmp_path))
    moved = {layer.type: layer.bytes for layer in found.layers}
    assert moved == {"Parameter": 0, "Const": 0, "Convert": 0, "MatMul": 32 + 24 + 24, "Reshape": 0, "Result": 0}
    assert found.costs.by_element_type == {"f32 x f16": 24}


def test_of_a_table_only_what_is_looked_up_is_read(tmp_path):
    m = Model()
    ids = m.parameter("ids", "i32", (5,))
    table = m.constant(np.ones((1000, 8), np.float32))
    axis = m.constant(np.int64(0))
    m.result(m.layer("Gather", [table, ids, axis], [("f32", (5, 8))], "opset8", batch_dims="0")[0])
    moved = {layer.type: layer.bytes for layer in irrun.inspect(m.save(tmp_path)).layers}
    assert moved["Gather"] == 160 + 20 + 8 + 160


def test_a_loop_counts_as_often_as_it_goes_round(tmp_path):
    b, inner = model(), model()
    x = anything(b, "float32", (2, 4))
    state = anything(inner, "float32", (2, 4))
    product = inner.one("MatMul-1", state, inner.constant(np.ones((4, 4), np.float32)), **PLAIN)
    (last,) = loop(b, inner, i64(b, 5), [(state, x)], [product], [(product, state)], label="loop")
    b.result(last)
    found = irrun.inspect(saved(b, tmp_path))
    assert found.costs.macs == 5 * 2 * 4 * 4
    assert [(layer.path.split("/")[:2], layer.rounds) for layer in found.layers if layer.type == "MatMul"] == [
        (["loop", "body"], 5)
    ]


def test_a_loop_of_unknown_length_is_counted_in_that():
    found = irrun.inspect(SAMPLES / "stateful-loop" / "model.xml")
    assert found.sizes.text(found.costs.macs) == "16*steps"


def test_of_branches_the_one_counts_that_costs_more(tmp_path):
    b = model()
    x, condition = anything(b, "float32", (2, 4)), anything(b, "bool", ())
    bodies = []
    for columns in (3, 5):
        inner = model()
        taken = anything(inner, "float32", (2, 4))
        product = inner.one("MatMul-1", taken, inner.constant(np.ones((4, columns), np.float32)), **PLAIN)
        bodies.append((inner, inner.one("Add-1", product, product, **ADD)))
    b.result(branch(b, condition, bodies, x))
    costs = irrun.inspect(saved(b, tmp_path)).costs
    assert costs.macs == 2 * 4 * 5
    assert costs.by_type["MatMul"][:2] == (1, 40)
    assert costs.counted == costs.layers


def test_what_cannot_be_inferred_is_said_not_to_be_counted():
    found = irrun.inspect(SAMPLES.parent / "tests" / "invalid" / "five_defects.xml")
    assert not found.ok
    assert found.costs.uncounted == tuple(
        (name, "it could not be inferred") for name in ("bounded", "misspelt", "product")
    )
    assert (found.costs.counted, found.costs.layers) == (7, 10)


def test_a_rank_that_is_unknown_is_a_reason(tmp_path):
    m = Model()
    x = m.parameter("x", "f32", "...")
    m.result(m.layer("MatMul", [x, m.constant(np.ones((4, 3), np.float32))], [("f32", ())], name="product")[0])
    assert irrun.inspect(m.save(tmp_path)).costs.uncounted == (("product", "a rank is unknown"),)
