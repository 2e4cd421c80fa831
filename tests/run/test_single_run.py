"""Which engines compute what of the only run of a model."""

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.engines.onednn import load
from irrun.run import executor as module
from run.models import PLAIN, anything, i64, model, saved

pytestmark = pytest.mark.skipif(load(1) is None, reason="oneDNN is not installed")

WINDOW = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1", "auto_pad": "explicit"}


def net(folder, columns):
    """A convolution of 9 * 16 * 16 weights, and a product of 64 * `columns`."""
    rng = np.random.default_rng(0)
    b = Model()
    x = b.parameter("x", "f32", (1, 16, 8, 8))
    filters = b.constant(rng.normal(size=(16, 16, 3, 3)).astype(np.float32))
    (y,) = b.layer("Convolution", [x, filters], [("f32", (1, 16, 8, 8))], **WINDOW)
    rows = b.constant(np.int64([16, 64]))
    (z,) = b.layer("Reshape", [y, rows], [("f32", (16, 64))], special_zero="false")
    matrix = b.constant(rng.normal(size=(64, columns)).astype(np.float32))
    (product,) = b.layer("MatMul", [z, matrix], [("f32", (16, columns))], transpose_a="false", transpose_b="false")
    b.result(product)
    return b.save(folder)


def by(executor):
    """What computes convolutions and products."""
    (prepared,) = executor._whole.preparation._kept.values()
    return {i.layer.type: i.by for i in prepared.program.instructions if i.layer.type in ("Convolution", "MatMul")}


@pytest.mark.parametrize(
    ("options", "columns", "expected"),
    [
        ({"once": True}, 400, ("numpy", "onednn")),
        ({"once": True}, 20, ("numpy", "numpy")),  # most of its weights are filters
        ({"once": True, "engine": "onednn"}, 20, ("onednn", "onednn")),
    ],
    ids=str,
)
def test_what_takes_long_to_prepare_is_left_to_numpy(options, columns, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SINGLE_RUN_BYTES", 4 * 64 * 300)
    path = net(tmp_path, columns)
    found = irrun.GraphExecutor(path, **options)
    assert tuple(by(found).values()) == expected
    data = np.random.default_rng(1).normal(size=(1, 16, 8, 8)).astype(np.float32)
    (wanted,) = irrun.GraphExecutor(path, engine="reference").run([data]).values()
    (result,) = found.run([data]).values()
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("operations", "engine"), [(2 * 16 * 64 * 20, "onednn"), (2 * 16 * 64 * 20 + 1, "numpy")])
def test_little_weights_that_are_multiplied_often_are_much(operations, engine, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SINGLE_RUN_OPERATIONS", operations)
    assert by(irrun.GraphExecutor(net(tmp_path, 20), once=True)) == {"Convolution": "numpy", "MatMul": engine}


@pytest.mark.parametrize(("operations", "expected"), [(2 * 16 * 64 * 20, True), (2 * 16 * 64 * 20 + 1, False)])
def test_of_sizes_that_the_data_tell_the_largest_count(operations, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SINGLE_RUN_OPERATIONS", operations)
    b = model()
    rows = b.one("Squeeze-1", b.one("NonZero-3", anything(b, "f4", (16,))), i64(b, [0]))
    chosen = b.one("Gather-8", anything(b, "f4", (16, 64)), rows, i64(b, 0), batch_dims=0)
    b.result(b.one("MatMul-1", chosen, b.constant(np.ones((64, 20), np.float32)), **PLAIN))
    found = irrun.GraphExecutor(saved(b, tmp_path), once=True)
    assert ("onednn" in [engine.name for engine in found._setting.engines]) == expected
