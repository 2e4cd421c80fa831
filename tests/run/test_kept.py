"""What executors keep for later: no more than they say, and nothing under the identity of what is gone."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun.run import preparation as preparing
from irrun.run.blocks import MAX_IDLE
from irrun.run.passes.setting import Setting
from run.test_growing import cache, given, some


def padded() -> Any:
    """Attributes of the model, and others that passes make: a Pad goes into the Convolution behind it."""
    with irrun.build("m", opset=13) as g:
        x = g.Parameter("f32[1,3,?,?]", name="x")
        ends = np.array([0, 0, 1, 1])
        p = g.Pad(x, ends, ends, np.float32(0), pad_mode="constant")
        c = g.Convolution(
            p, np.ones((4, 3, 3, 3), np.float32), strides=(1, 1), pads_begin=(0, 0), pads_end=(0, 0), dilations=(1, 1)
        )
        g.Result(g.ReLU(c), name="y")
    return g.model


def test_what_rules_have_said_is_kept_with_the_attributes_that_were_asked():
    executor = irrun.GraphExecutor(padded())
    for size in range(8, 40):
        executor.run(x=np.zeros((1, 3, size, size + size % 2), np.float32))
    setting: Setting = executor._whole.preparation._setting
    assert setting.answers
    gc.collect()
    for kept in (setting.answers, setting.views):
        for key, (attrs, _) in kept.items():
            assert key[1] == id(attrs)  # type: ignore[index] # of a dict that lives, so that no other one has its identity


def growing() -> Any:
    """Two inputs, of which one grows from run to run."""
    with irrun.build("m", opset=13) as g:
        x, y = g.Parameter("f32[1,?]", name="x"), g.Parameter("f32[?,1]", name="y")
        g.Result(g.Add(x, y), name="sum")
    return g.model


def test_patterns_of_sizes_that_grow_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preparing, "MAX_PATTERNS", 3)
    executor = irrun.GraphExecutor(growing(), engine="numpy")
    for rows in range(2, 12):
        for columns in (rows, rows + 1, rows + 2):
            found = executor.run(x=np.zeros((1, columns), np.float32), y=np.ones((rows, 1), np.float32))
            assert found["sum"].shape == (rows, columns)
    assert 0 < len(executor._whole.preparation._patterns) <= 3


def test_a_pattern_that_made_way_for_other_sizes_comes_back(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preparing, "MAX_KEPT", 4)
    monkeypatch.setattr(preparing, "_is_light", lambda program: False)
    executor = irrun.GraphExecutor(growing(), engine="numpy")
    made: list[object] = []
    prepare = preparing.Preparation._made
    monkeypatch.setattr(preparing.Preparation, "_made", lambda self, *args: made.append(args) or prepare(self, *args))

    def run(columns: int, rows: int) -> int:
        before = len(made)
        executor.run(x=np.zeros((1, columns), np.float32), y=np.ones((rows, 1), np.float32))
        return len(made) - before

    for _ in range(2):
        assert [run(columns, 4) for columns in range(10, 15)] == [1, 1, 0, 0, 0]
        for rows in range(50, 60):
            assert run(7 * rows, 2 * rows)


def test_a_run_may_end_when_its_memory_has_become_old():
    preparation = irrun.GraphExecutor(growing(), engine="numpy")._whole.preparation
    arrays = [np.zeros((1, 3), np.float32), np.ones((4, 1), np.float32)]
    slow, _ = preparation.acquire(arrays)
    for _ in range(MAX_IDLE + 10):
        quick, _ = preparation.acquire(arrays)
        preparation.release(quick)
    quick, _ = preparation.acquire(arrays)
    preparation.release(slow)
    preparation.release(quick)


def test_bodies_go_with_the_part_of_the_model_that_they_are_of():
    executor = irrun.GraphExecutor("samples/stateful-loop/model.xml")
    inputs = executor.random_inputs(1)
    graph = executor.model.graph
    loop = next(layer for layer in graph.layers if layer.bodies)
    names = [layer.name for layer in graph.layers if layer.type not in ("Result", "Assign", "Const") and layer.outputs]
    looped = f"{loop.name}:0"
    others = [name for name in names if name != loop.name]
    assert executor.run(inputs, outputs=[looped])
    before = _preparations()
    for name in others:
        executor.run(inputs, outputs=[looped, name])
    assert _preparations() > before
    executor._parts.clear()
    assert _preparations() < before


def _preparations() -> int:
    gc.collect()
    return sum(type(found) is preparing.Preparation for found in gc.get_objects())


@pytest.mark.parametrize("name", ["cnn", "stateful-loop", "transformer-block"])
def test_what_somebody_drops_is_gone_at_once(name: str):
    before = _preparations()
    gc.disable()
    try:
        executor = irrun.GraphExecutor(f"samples/{name}/model.xml")
        session = executor.session()
        for number in range(2):
            session.run(executor.random_inputs(number))
            executor.run(executor.random_inputs(number))
        gone = weakref.ref(executor), weakref.ref(session)
        del executor
        assert gone[0]() is not None, "a session keeps its executor"
        del session
        assert [found() for found in gone] == [None, None]
        assert sum(type(found) is preparing.Preparation for found in gc.get_objects()) <= before
    finally:
        gc.enable()


@pytest.mark.parametrize("engine", ["numpy", "onednn"])
def test_engines_go_with_their_executor(engine: str, tmp_path: Path):
    """Attention of sizes that only the data tell is called in one way for all layers."""
    executor, rng = cache(tmp_path, engine), np.random.default_rng(1)
    executor.run(given(some(rng, 5)))
    gone = [weakref.ref(found) for found in executor._engines]
    del executor
    gc.collect()
    assert [found() for found in gone] == [None] * len(gone)


def weighed() -> Any:
    """Rows times a matrix and some element-wise ops, of a batch and a length that are open."""
    rng = np.random.default_rng(3)
    with irrun.build("m", opset=13) as g:
        x = g.Parameter("f32[?,?,4]", name="x")
        y = g.MatMul(x, rng.normal(0, 1, (4, 4)).astype(np.float32), transpose_a=False, transpose_b=False)
        shape = g.Concat(g.Gather(g.ShapeOf(y), np.array([1, 0]), np.int64(0)), np.array([4]), axis=0)
        turned = g.Reshape(g.Transpose(y, np.array([1, 0, 2])), shape, special_zero=False)
        g.Result(g.SoftMax(g.Multiply(turned, g.Sigmoid(g.ReduceMean(turned, np.array([2]), keep_dims=True))), axis=1))
    return g.model


def test_inputs_of_any_rank_get_programs_for_their_sizes():
    with irrun.build("m", opset=13) as g:
        x = g.Parameter("f32[...]", name="x")
        g.Result(g.Add(g.ReLU(x), x), name="y")
    executor = irrun.GraphExecutor(g.model, engine="numpy")
    for shape in ((2, 3), (4,), (1, 2, 3), (), (3, 5)):
        assert executor.run(x=np.ones(shape, np.float32))["y"].tolist() == np.full(shape, 2.0).tolist()
    assert len(executor._whole.preparation._kept) == 5


@pytest.mark.parametrize("engine", ["numpy", "onednn", "check"])
@pytest.mark.parametrize("much", [False, True])
def test_sizes_that_come_once_get_no_program_where_little_is_computed(much: bool, engine: str, monkeypatch: Any):
    """The first ones do, those behind one that computes much, those that come again, and much larger ones; others go by
    an open one."""
    monkeypatch.setattr(preparing, "MORE_PATIENCE", 2)
    monkeypatch.setattr("irrun.run.specialization.MAX_SMALL", 1 << 12)
    ours, plain = (irrun.GraphExecutor(weighed(), engine=name) for name in (engine, "reference"))
    rng, made = np.random.default_rng(4), []
    for batch, length in [(60, 90) if much else (2, 7), (3, 5), (5, 3), (3, 5), (0, 4), (3, 5), (3, 5), (60, 90)]:
        x = rng.normal(0, 1, (batch, length, 4)).astype(np.float32)
        (found,), (expected,) = ours.run(x=x).values(), plain.run(x=x).values()
        np.testing.assert_allclose(found, expected, atol=1e-5)
        made.append(len(ours._whole.preparation._kept))
    assert made == ([1, *[2] * 7] if much else [1, 1, 1, 1, 1, 2, 2, 3])


def test_layers_that_are_alike_get_programs_for_sizes_that_come_once(monkeypatch: pytest.MonkeyPatch):
    """Those take little longer to make than all instructions to be asked for, however little each computes."""
    monkeypatch.setattr("irrun.run.specialization.MAX_SMALL", 1 << 12)
    rng = np.random.default_rng(3)
    with irrun.build("m", opset=13) as g:
        x = g.Parameter("f32[?,?,4]", name="x")
        for _ in range(6):
            y = g.MatMul(x, rng.normal(0, 1, (4, 4)).astype(np.float32), transpose_a=False, transpose_b=False)
            x = g.SoftMax(g.Multiply(y, g.ReduceMean(y, np.array([2]), keep_dims=True)), axis=1)
        g.Result(x)
    ours, plain = (irrun.GraphExecutor(g.model, engine=name) for name in ("numpy", "reference"))
    for count, (batch, length) in enumerate([(2, 7), (3, 5), (5, 3), (4, 6), (2, 9)], 1):
        x = rng.normal(0, 1, (batch, length, 4)).astype(np.float32)
        (found,), (expected,) = ours.run(x=x).values(), plain.run(x=x).values()
        np.testing.assert_allclose(found, expected, atol=1e-5)
        assert len(ours._whole.preparation._kept) == count


def test_what_inputs_that_are_much_larger_tell_is_not_held_against_small_ones(monkeypatch: pytest.MonkeyPatch):
    """As a prompt between single tokens does; nor is what these tell taken for it."""
    monkeypatch.setattr("irrun.run.specialization.MAX_SMALL", 1 << 12)
    executor = irrun.GraphExecutor(weighed(), engine="numpy")
    preparation = executor._whole.preparation

    def made(batch: int, length: int) -> bool:
        executor.run(x=np.zeros((batch, length, 4), np.float32))
        return (((batch, length, 4),), False) in preparation._kept

    sizes = [(2, 7), (3, 5), (60, 90), (4, 3), (5, 3), (61, 90), (2, 5)]
    assert [made(*own) for own in sizes] == [True, False, True, False, False, True, False]
