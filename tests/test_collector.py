"""The garbage collector: what it is kept from walking is given back all the same."""

import gc
import weakref
from functools import partial

import numpy as np
import pytest
from run.models import PLAIN, anything, i64, model, saved

import irrun
from irrun.ir import collector
from irrun.ir.collector import collector_paused

made_to_last = partial(collector_paused, lasting=True)


class Cycle:
    def __init__(self):
        self.itself = self


@pytest.fixture(autouse=True)
def collecting(monkeypatch):
    """Nothing is frozen, as where models are run, and the collector is on, which a command may have left off."""
    enabled = gc.isenabled()
    monkeypatch.setattr(collector, "_frozen", False)
    gc.unfreeze()
    gc.enable()
    yield
    gc.freeze()
    if not enabled:
        gc.disable()


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
    monkeypatch.setattr(collector, "_patience", 1)
    monkeypatch.setattr(collector, name, 2500)
    left, kept = weakref.WeakSet[Cycle](), []
    for _ in range(3):
        with made_to_last():
            left.add(Cycle())
            kept += [[] for _ in range(1000)]
    assert len(left) == 3  # young cycles would be found by the collector soon
    with reads():
        assert not left
    assert gc.isenabled()


def test_it_is_looked_at_less_often_where_nothing_is_found(monkeypatch):
    monkeypatch.setattr(collector, "_lasting", 0)
    monkeypatch.setattr(collector, "_patience", 1)
    monkeypatch.setattr(collector, "SELDOM", 1900)
    monkeypatch.setattr(collector, "NEXT_TO_NOTHING", 10)
    gc.collect()
    made, looks, kept = 0, list[int](), []
    monkeypatch.setattr(collector.gc, "collect", lambda: looks.append(made) or (20 if made == 14 else 0))
    while made < 20:
        with made_to_last():
            made += 1
            kept += [[] for _ in range(1000)]
    assert looks == [2, 6, 14, 16]


def test_what_others_have_frozen_stays_frozen(monkeypatch):
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        with made_to_last():
            pass
        assert gc.get_freeze_count() == before > 0
        monkeypatch.setattr(gc, "get_freeze_count", lambda: pytest.fail("it is counted again"))
        with made_to_last():
            pass
    finally:
        gc.unfreeze()


def garbage_of(run, rows):
    """How many objects the collector finds of runs with so many rows each, while as many others were kept before."""
    for count in (*(own + 1 for own in rows), *rows):  # machine code is made once, by what leaves garbage
        run(count)
    gc.collect()
    gc.disable()
    try:
        for count in rows:
            run(count + 1)
        gc.set_debug(gc.DEBUG_SAVEALL)
        return gc.collect()
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("least", [2, 5000], ids=["small", "results of their own memory"])
def test_programs_for_lengths_that_are_not_kept_are_no_garbage(tmp_path, least):
    b = model()
    product = b.one("MatMul-1", anything(b, "f4", (-1, 64)), b.constant(np.eye(64, dtype=np.float32)), **PLAIN)
    b.result(b.one("Exp-1", product))
    executor = irrun.GraphExecutor(saved(b, tmp_path))
    rows = range(least, least + 60, 3)
    assert garbage_of(lambda count: executor.run([np.ones((count, 64), np.float32)]), rows) == 0


def test_programs_of_rows_that_only_the_data_tell_are_no_garbage(tmp_path):
    b = model()
    places = b.one("Squeeze-1", b.one("NonZero-3", anything(b, "f4", (-1,))), i64(b, [0]))
    rows = b.one("Gather-8", anything(b, "f4", (-1, 64)), places, i64(b, 0), batch_dims=0)
    b.result(b.one("Exp-1", b.one("MatMul-1", rows, b.constant(np.eye(64, dtype=np.float32)), **PLAIN)))
    executor = irrun.GraphExecutor(saved(b, tmp_path))

    def run(count):
        for _ in range(3):
            executor.run([np.ones(count, np.float32), np.ones((count, 64), np.float32)])

    assert garbage_of(run, range(100, 200, 10)) == 0
