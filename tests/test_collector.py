"""The garbage collector: what it is kept from walking is given back all the same."""

import gc
import weakref
from functools import partial

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.ir import collector
from irrun.ir.collector import collector_paused

made_to_last = partial(collector_paused, lasting=True)


class Cycle:
    def __init__(self):
        self.itself = self


def test_what_was_read_before_is_given_back(monkeypatch):
    monkeypatch.setattr(collector, "LARGE", 0)
    left = weakref.WeakSet[Cycle]()
    for _ in range(5):
        with collector_paused():
            assert not left
            left.add(Cycle())
            kept = [[] for _ in range(1000)]
    del kept


@pytest.mark.parametrize(("name", "reads"), [("SELDOM", made_to_last), ("FEW", collector_paused)])
def test_what_was_to_last_is_looked_at_some_time(monkeypatch, name, reads):
    monkeypatch.setattr(collector, "_lasting", 0)
    monkeypatch.setattr(collector, name, 3)
    left = weakref.WeakSet[Cycle]()
    for _ in range(3):
        with made_to_last():
            left.add(Cycle())
    assert len(left) == 3  # young cycles would be found by the collector soon
    with reads():
        assert not left
    assert gc.isenabled()


def test_what_others_have_frozen_stays_frozen():
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        with made_to_last():
            pass
        assert gc.get_freeze_count() == before > 0
    finally:
        gc.unfreeze()


def test_programs_for_lengths_that_are_not_kept_are_no_garbage(tmp_path):
    model = Model()
    data = model.parameter("data", "f32", ("?", 64))
    weights = model.constant(np.eye(64, dtype=np.float32))
    (product,) = model.layer("MatMul", [data, weights], [("f32", (-1, 64))], transpose_a="false", transpose_b="false")
    (result,) = model.layer("Exp", [product], [("f32", (-1, 64))])
    model.layer("Result", [result], [])
    executor = irrun.GraphExecutor(model.save(tmp_path))
    for rows in range(2, 40, 3):
        executor.run({"data": np.ones((rows, 64), np.float32)})
    gc.collect()
    gc.disable()
    try:
        for rows in range(40, 100, 3):
            executor.run({"data": np.ones((rows, 64), np.float32)})
        gc.set_debug(gc.DEBUG_SAVEALL)
        assert gc.collect() == 0
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
