"""Threads that compute for a caller are off the processor that the caller is on."""

import ctypes
import os
import queue
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from engines.onednn_works import needs_onednn

from irrun.engines import placement
from irrun.engines.onednn import load
from irrun.engines.placement import USUAL_PAUSE, Placement, is_x86, pause, processor
from irrun.engines.work import Operand, Work

ALLOWED = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
pytestmark = pytest.mark.skipif(len(ALLOWED) < 2, reason="there are no two processors to choose from")


class Pool:
    """Threads that are kept, as OpenMP keeps them: `calls` are how often they were asked who they are."""

    def __init__(self):
        self.calls, self.ids = 0, []
        self._threads, self._tasks, self._done = [], [], queue.Queue()

    def parallel(self, function, argument, threads, flags):
        assert (argument, flags) == (None, 0)
        self.calls += 1
        while len(self._threads) < threads - 1:
            tasks = queue.Queue()
            thread = threading.Thread(target=self._serve, args=(tasks,), daemon=True)
            thread.start()
            self._threads.append(thread)
            self._tasks.append(tasks)
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function.value)
        for tasks in self._tasks:
            tasks.put(call)
        call(None)
        for _ in self._tasks:
            self._done.get(timeout=10)
        self.ids = [thread.native_id for thread in self._threads]

    def end(self):
        for tasks, thread in zip(self._tasks, self._threads, strict=True):
            tasks.put(None)
            thread.join()
            while Path(f"/proc/self/task/{thread.native_id}").exists():  # Python is through with it, Linux is not
                time.sleep(0.001)
        self._threads, self._tasks = [], []

    def _serve(self, tasks):
        while (call := tasks.get()) is not None:
            call(None)
            self._done.put(None)


@pytest.fixture
def pool():
    made = Pool()
    yield made
    made.end()


def anew(function):
    """Call a function in a thread that has called none of this before; it ends when this returns. What it gives."""
    given = queue.Queue()

    def call():
        try:
            given.put((function(), None))
        except BaseException as error:
            given.put((None, error))

    thread = threading.Thread(target=call)
    thread.start()
    result, error = given.get(timeout=60)
    thread.join()
    if error is not None:
        raise error
    return result


def test_others_keep_off_wherever_the_caller_goes(pool, monkeypatch):
    def call():
        placed = Placement(2, pool.parallel)
        assert placed.needed
        for here in (ALLOWED[0], ALLOWED[1], ALLOWED[1], ALLOWED[0]):
            monkeypatch.setattr(placement, "processor", lambda here=here: here)
            placed.keep()
            assert os.sched_getaffinity(pool.ids[0]) == set(ALLOWED) - {here}
            assert os.sched_getaffinity(0) == set(ALLOWED)

    anew(call)
    assert pool.calls == 1


def test_those_that_have_ended_are_found_anew_and_more_of_them_too(pool, monkeypatch):
    def call():
        for threads, here in ((2, ALLOWED[0]), (2, ALLOWED[1]), (2, ALLOWED[0])):
            monkeypatch.setattr(placement, "processor", lambda here=here: here)
            Placement(threads, pool.parallel).keep()
            assert os.sched_getaffinity(pool.ids[0]) == set(ALLOWED) - {here}
            pool.end()
        assert pool.calls == 3
        if len(ALLOWED) > 2:
            Placement(3, pool.parallel).keep()
            assert [os.sched_getaffinity(id) for id in pool.ids] == [set(ALLOWED) - {ALLOWED[0]}] * 2

    anew(call)


def test_callers_that_may_be_on_few_processors_leave_others_alone(pool):
    def call():
        os.sched_setaffinity(0, {ALLOWED[0]})
        assert processor() == ALLOWED[0]
        Placement(2, pool.parallel).keep()

    anew(call)
    assert pool.calls == 0


@pytest.mark.parametrize("name", ["OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"])
def test_who_says_where_threads_are_is_listened_to(name, pool, monkeypatch):
    monkeypatch.setenv(name, "0")
    assert not Placement(2, pool.parallel).needed


def test_one_thread_has_no_others(pool):
    assert not Placement(1, pool.parallel).needed


@needs_onednn
@pytest.mark.parametrize("once", [False, True])
def test_threads_of_onednn(once):
    """A product that two threads share; in a single run nobody looks for them."""

    def call():
        engine = load(2, once=once)
        shape = (256, 256)
        left, right = (np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32) for seed in range(2))
        operand = Operand("f32", shape, left.strides)
        attrs = {"transpose_a": False, "transpose_b": False}
        compiled = engine.compile(Work("MatMul-1", attrs, [operand, operand], [operand]))
        result = np.zeros(shape, np.float32)
        compute = compiled.bind([left, right], [result], np.zeros(compiled.scratch, np.uint8))
        for _ in range(placement.CALLS):
            compute()
        np.testing.assert_allclose(result, left @ right, rtol=1e-3, atol=1e-3)
        found, avoided = placement._caller.workers, placement._caller.avoided
        return [os.sched_getaffinity(worker) for worker in found] == [set(ALLOWED) - {avoided}] if found else None

    assert anew(call) is (None if once else True)


@pytest.mark.skipif(not is_x86(), reason="the code is that of x86")
def test_how_long_a_pause_takes_is_measured():
    assert 1e-9 < pause() < 1e-6


def test_how_long_a_pause_takes_where_nobody_may_write_code(monkeypatch):
    def refuse(*args, **options):
        raise PermissionError("the system forbids it")

    monkeypatch.setattr(placement.mmap, "mmap", refuse)
    assert pause() == USUAL_PAUSE
