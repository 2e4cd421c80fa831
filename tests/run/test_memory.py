"""Limits of memory: what is refused, before it is allocated, in programs, bodies and instructions of unknown sizes."""

import gc
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.run.memory import Meter
from run.models import ADD, PLAIN, anything, branch, i64, loop, model, saved

ENGINES = pytest.mark.parametrize("engine", ["reference", "numpy", "onednn", "check"])
F32 = np.float32
MB = 1_000_000


def wide(b, x, size):
    """x [n, 1] times ones [1, size]."""
    return b.one("MatMul-1", x, b.one("Broadcast-3", b.constant(F32([[1]])), size, mode="numpy"), **PLAIN)


def rows(b):
    """As many rows of ones, [n, 1], as an input has elements that are not 0."""
    places = b.one("Squeeze-1", b.one("NonZero-3", anything(b, "f4", (-1,))), i64(b, [0]))
    zeros = b.one("Convert-1", b.one("Unsqueeze-1", places, i64(b, [1])), destination_type="f32")
    return b.one("Exp-1", b.one("Multiply-1", zeros, b.constant(F32(0)), **ADD))


def peak_of_a_refusal(run, size):
    """The most bytes that are in use at once during a run that is refused."""
    tracemalloc.start()
    try:
        with pytest.raises(irrun.ExecutionError, match="E603"):
            run(size)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@ENGINES
@pytest.mark.parametrize(("limit", "fits"), [(9 * MB, True), (3 * MB, False)])
def test_a_program_of_known_sizes(engine, limit, fits, tmp_path):
    """4 MB of a product of [1000, 1] and [1, 1000], its sums of 4 kB, and what was given."""
    b = model()
    product = b.one("MatMul-1", anything(b, "f4", (1000, 1)), anything(b, "f4", (1, 1000)), **PLAIN)
    b.graph.layers[product.ref[0]].label = "product"
    b.result(b.one("ReduceSum-1", product, i64(b, [1]), keep_dims=False))
    path = saved(b, tmp_path)
    if fits:
        (sums,) = (
            irrun.GraphExecutor(path, engine=engine, max_memory=limit)
            .run([np.ones((1000, 1), F32), np.ones((1, 1000), F32)])
            .values()
        )
        assert (sums == 1000).all()
    else:
        with pytest.raises(irrun.ExecutionError, match=r"E603\]: an output of f32\[1000, 1000\]") as error:
            irrun.GraphExecutor(path, engine=engine, max_memory=limit)
        assert error.value.diagnostics[0].layer.name == "product"


STILL = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
HALVED = {"strides": "2,2", "kernel": "2,2", "pads_begin": "0,0", "pads_end": "0,0", "exclude-pad": "true"}


@pytest.mark.parametrize(
    ("type", "other", "attributes"),
    [
        ("Convolution", np.ones((1, 1, 3, 3), F32), STILL),
        ("AvgPool", None, HALVED),
        ("Transpose", np.array([3, 2, 1, 0]), {}),
    ],
)
def test_what_is_too_large_is_refused_before_anything_of_its_size_is_made(type, other, attributes, tmp_path):
    net = Model()
    inputs = [net.parameter("x", "f32", (1, 1, 40_000, 40_000)), *([] if other is None else [net.constant(other)])]
    net.result(net.layer(type, inputs, [("f32", ())], **attributes)[0])
    path = net.save(tmp_path)
    if type == "Transpose":  # of which the kernel makes a view
        assert irrun.GraphExecutor(path, max_memory=MB)
    else:
        assert peak_of_a_refusal(lambda limit: irrun.GraphExecutor(path, max_memory=limit), MB) < 20 * MB


def test_means_of_many_windows_are_prepared_without_a_number_for_each(tmp_path):
    net = Model()
    x = net.parameter("x", "f32", (1, 1, 8_000, 8_000))
    net.result(net.layer("AvgPool", [x], [("f32", (1, 1, 4_000, 4_000))], **HALVED)[0])
    path = net.save(tmp_path)
    tracemalloc.start()
    try:
        irrun.GraphExecutor(path, engine="numpy")
        assert tracemalloc.get_traced_memory()[1] < 20 * MB
    finally:
        tracemalloc.stop()


@ENGINES
def test_a_program_whose_sizes_are_those_of_its_inputs(engine, tmp_path):
    """[n, 1] times [1, n]: what is refused for 2,000 is computed for 200, before and after."""
    b = model()
    product = b.one("MatMul-1", anything(b, "f4", (-1, 1)), anything(b, "f4", (1, -1)), **PLAIN)
    b.graph.layers[product.ref[0]].label = "product"
    b.result(b.one("ReduceSum-1", product, i64(b, [0, 1]), keep_dims=False))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine, max_memory=8 * MB)

    def run(n):
        return [array.tolist() for array in ours.run([np.ones((n, 1), F32), np.ones((1, n), F32)]).values()]

    for _ in range(2):
        assert run(200) == [40_000]
        with pytest.raises(irrun.ExecutionError, match=r"E603\]: an output of f32\[2000, 2000\]") as error:
            run(2000)
        assert error.value.diagnostics[0].layer.name == "product"
    assert peak_of_a_refusal(run, 2000) < 2 * MB


@ENGINES
def test_an_instruction_of_unknown_sizes(engine, tmp_path):
    """A product of as many rows as there are places, which only the run tells."""
    b = model()
    x = rows(b)
    product = b.one("MatMul-1", x, b.constant(np.ones((1, 1000), F32)), **PLAIN)
    b.graph.layers[product.ref[0]].label = "product"
    b.result(b.one("ReduceSum-1", product, i64(b, [0, 1]), keep_dims=False))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine, max_memory=4 * MB)

    def run(n):
        return [array.tolist() for array in ours.run([np.ones(n, F32)]).values()]

    for _ in range(2):
        assert run(100) == [100_000]
        with pytest.raises(irrun.ExecutionError, match=r"E603\]: an output of f32\[5000, 1000\]") as error:
            run(5000)
        assert error.value.diagnostics[0].layer.name == "product"
    assert peak_of_a_refusal(run, 5000) < 2 * MB


@ENGINES
def test_what_is_freed_counts_no_longer(engine, tmp_path):
    """Ten products of 2 MB each, one after the other, of which two are in use at a time."""
    b = model()
    y = b.one("MatMul-1", rows(b), b.constant(np.ones((1, 500), F32)), **PLAIN)
    for _ in range(10):
        y = b.one("SoftMax-1", y, axis=1)
    b.result(b.one("ReduceSum-1", y, i64(b, [0, 1]), keep_dims=False))
    path = saved(b, tmp_path)
    for limit, fits in ((7 * MB, True), (3 * MB, False)):
        ours = irrun.GraphExecutor(path, engine=engine, max_memory=limit)
        for _ in range(2):
            if fits:
                (total,) = ours.run([np.ones(1000, F32)]).values()
                np.testing.assert_allclose(total, 1000, 1e-4)
            else:
                with pytest.raises(irrun.ExecutionError, match="E603"):
                    ours.run([np.ones(1000, F32)])


def repeated(b, inner_sizes, outer=None):
    """A loop whose body makes [n, n] of [n, 1] and sums it again, as often as an input says."""
    inner = model()
    p = anything(inner, "f4", inner_sizes)
    across = inner.one("Transpose-1", p, i64(inner, [1, 0]))
    product = inner.one("MatMul-1", p, across, **PLAIN)
    inner.graph.layers[product.ref[0]].label = "inside"
    mean = inner.one("ReduceMean-1", product, i64(inner, [1]), keep_dims=True)
    x = outer or anything(b, "f4", inner_sizes)
    (last,) = loop(b, inner, anything(b, "i8", ()), [(p, x)], [mean], [(mean, p)], label="repeat")
    return last


@ENGINES
@pytest.mark.parametrize("sizes", [(-1, 1), (1000, 1)], ids=["unsized", "sized"])
def test_a_body(engine, sizes, tmp_path):
    b = model()
    b.result(repeated(b, sizes))
    path = saved(b, tmp_path)
    inputs = [np.ones((1000, 1), F32), np.int64(3)]
    names = list(b.feeds[0])
    given = dict(zip(names, inputs if names[0] == "x0" and b.feeds[0]["x0"].ndim == 2 else inputs[::-1], strict=True))
    (result,) = irrun.GraphExecutor(path, engine=engine, max_memory=10 * MB).run(given).values()
    assert (result == 1).all()
    with pytest.raises(irrun.ExecutionError, match=r"E603\]: an output of f32\[1000, 1000\]") as error:
        irrun.GraphExecutor(path, engine=engine, max_memory=3 * MB).run(given)
    assert error.value.diagnostics[0].layer.name == "inside"


@ENGINES
@pytest.mark.parametrize("sizes", [(-1, 1), (1000, 1)], ids=["unsized", "sized"])
def test_a_body_beside_what_is_in_use_around_it(engine, sizes, tmp_path):
    """4 MB in the body and 4 MB around it: too much for 7 MB, whoever computes."""
    b = model()
    x = anything(b, "f4", sizes)
    around = b.one("MatMul-1", x, b.one("Transpose-1", x, i64(b, [1, 0])), **PLAIN)
    last = repeated(b, sizes, b.one("ReduceMean-1", around, i64(b, [1]), keep_dims=True))
    b.result(b.one("ReduceSum-1", b.one("MatMul-1", around, last, **PLAIN), i64(b, [0, 1]), keep_dims=False))
    path = saved(b, tmp_path)
    given = {"x0": np.ones((1000, 1), F32), "x1": np.int64(3)}
    (total,) = irrun.GraphExecutor(path, engine=engine, max_memory=14 * MB).run(given).values()
    assert total == 1e6
    with pytest.raises(irrun.ExecutionError, match="E603"):
        irrun.GraphExecutor(path, engine=engine, max_memory=7 * MB).run(given)


@ENGINES
def test_a_branch_that_is_not_taken_takes_nothing(engine, tmp_path):
    """The other one makes 4 MB of [1000, 1]."""
    b = model()
    bodies = []
    for large in (True, False):
        inner = model()
        x = anything(inner, "f4", (-1, 1))
        y = inner.one("MatMul-1", x, inner.one("Transpose-1", x, i64(inner, [1, 0])), **PLAIN) if large else x
        bodies.append((inner, inner.one("ReduceSum-1", y, i64(inner, [0, 1]), keep_dims=False)))
    b.result(branch(b, anything(b, "?", ()), bodies, anything(b, "f4", (-1, 1))))
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine, max_memory=MB)
    x = np.ones((1000, 1), F32)
    for _ in range(2):
        assert [array.tolist() for array in ours.run([np.bool_(False), x]).values()] == [1000]
        with pytest.raises(irrun.ExecutionError, match=r"E603\]: an output of f32\[1000, 1000\]"):
            ours.run([np.bool_(True), x])
    assert [array.tolist() for array in ours.run([np.bool_(True), x[:10]]).values()] == [100]


@ENGINES
def test_a_loop_that_grows_until_there_is_no_more_room(engine, tmp_path):
    inner, b = model(), model()
    p = anything(inner, "f4", (-1,))
    y = inner.one("Concat-1", p, p, axis=0)
    (last,) = loop(b, inner, anything(b, "i8", ()), [(p, anything(b, "f4", (-1,)))], [y], [(y, p)])
    b.result(last)
    ours = irrun.GraphExecutor(saved(b, tmp_path), engine=engine, max_memory=2 * MB)
    (result,) = ours.run([np.int64(10), np.ones(16, F32)]).values()
    assert result.shape == (1 << 14,)
    with pytest.raises(irrun.ExecutionError, match="E603"):
        ours.run([np.int64(60), np.ones(16, F32)])


def test_a_meter_counts_an_array_once_and_until_nothing_refers_to_it():
    meter = Meter(10**9, 100, [])
    first, second = np.zeros(1 << 16), np.zeros(1 << 17, np.int8)
    for array in (first, first[3:], second, first.reshape(2, -1)):
        meter.add(array)
    assert meter.live == 100 + (8 << 16) + (1 << 17)
    del array, first
    assert meter.live == 100 + (1 << 17)
    kept = second[:5]
    del second
    assert meter.live == 100 + (1 << 17)
    del kept
    assert meter.live == 100
    last = np.ones(1 << 16)
    meter.add(last)
    del meter
    assert last.sum() == 1 << 16


@pytest.mark.parametrize("name", ["cnn", "stateful-loop", "transformer-block"])
def test_runs_leave_nothing_to_the_garbage_collector(name):
    executor = irrun.GraphExecutor(Path(__file__).parents[2] / "samples" / name / "model.xml", once=True)
    inputs = executor.random_inputs(1)
    for _ in range(2):
        executor.run(inputs)
    gc.collect()
    gc.disable()
    try:
        executor.run(inputs)
        assert gc.collect() == 0
    finally:
        gc.enable()
