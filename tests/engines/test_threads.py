"""The pool of threads and the threads of BLAS."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time

import numpy as np
import pytest

from irrun.engines import threads as module
from irrun.engines.threads import Threads, blocks, cuts, hold_blas


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("pieces", [0, 1, 2, 3, 17])
def test_every_piece_is_computed_once(count, pieces):
    pool, seen = Threads(count), []
    for _ in range(3):
        pool.run(lambda piece, thread: seen.append((piece, thread)), pieces)
    assert sorted(piece for piece, _ in seen) == sorted([*range(pieces)] * 3)
    assert all(0 <= thread < count for _, thread in seen)


def test_pieces_of_one_thread_do_not_overlap():
    pool, busy, clashes = Threads(3), [False] * 3, []

    def piece(number, thread):
        clashes.append(busy[thread])
        busy[thread] = True
        time.sleep(0.001)
        busy[thread] = False

    pool.run(piece, 20)
    assert not any(clashes)


def test_pieces_run_at_the_same_time():
    pool, meeting = Threads(2), threading.Barrier(2, timeout=20)
    pool.run(lambda piece, thread: meeting.wait(), 2)


@pytest.mark.parametrize("failing", range(4))
def test_an_exception_is_raised_after_all_has_ended(failing):
    pool, running = Threads(2), []

    def piece(number, thread):
        running.append(number)
        time.sleep(0.002)
        if number == failing:
            raise KeyError(number)
        running.remove(number)

    with pytest.raises(KeyError):
        pool.run(piece, 4)
    assert running == [failing]
    seen = []
    pool.run(lambda number, thread: seen.append(number), 4)
    assert sorted(seen) == [0, 1, 2, 3]


def test_a_run_within_a_run_is_computed_by_its_caller():
    pool, seen = Threads(2), []
    pool.run(lambda outer, _: pool.run(lambda inner, _: seen.append((outer, inner)), 3), 3)
    assert sorted(seen) == [(outer, inner) for outer in range(3) for inner in range(3)]


def test_several_threads_share_a_pool():
    pool, totals = Threads(2), [0] * 6

    def user(number):
        for _ in range(50):
            found: list[int] = []
            pool.run(lambda piece, thread, found=found: found.append(piece), 4)
            totals[number] += sum(found)

    users = [threading.Thread(target=user, args=(number,)) for number in range(6)]
    for thread in users:
        thread.start()
    for thread in users:
        thread.join()
    assert totals == [50 * 6] * 6


def test_no_two_threads_have_one_number():
    for _ in range(20):
        pool, together, numbers = Threads(3), threading.Barrier(6, timeout=20), []

        def user(pool=pool, together=together):
            together.wait()
            pool.run(lambda piece, thread: time.sleep(0.0001), 6)

        others = set(threading.enumerate())
        users = [threading.Thread(target=user, name="user") for _ in range(6)]
        for thread in users:
            thread.start()
        for thread in users:
            thread.join()
        numbers = [thread.name for thread in threading.enumerate() if thread not in others]
        assert len(numbers) == len(set(numbers)) == 2


def test_the_threads_end_with_their_pool():
    others = set(threading.enumerate())
    pool = Threads(4)
    assert set(threading.enumerate()) <= others
    pool.run(lambda piece, thread: None, 4)
    own = set(threading.enumerate()) - others
    assert len(own) == 3
    del pool
    gc.collect()
    for thread in own:
        thread.join(20)
        assert not thread.is_alive()


def test_workers_ignore_floating_point_errors():
    pool, meeting = Threads(2), threading.Barrier(2, timeout=20)

    def piece(number, thread):
        meeting.wait()
        if thread:
            np.log(np.zeros(3))

    pool.run(piece, 2)


class Interruption(BaseException):
    """What the handler of a signal raises."""


def interrupted(call, number):
    """Make a call that is interrupted at the `number`-th place where it can be; whether there is such a place."""
    left = number

    def look(frame, event, _):
        nonlocal left
        if event in ("call", "c_return") and frame.f_code.co_filename == module.__file__:
            left -= 1
            if left == 0:
                sys.setprofile(None)
                raise Interruption

    sys.setprofile(look)
    try:
        call()
    except Interruption:
        return True
    finally:
        sys.setprofile(None)
    return False


def test_interruptions_leave_nothing_behind():
    found = module._openblas()
    before = found and found[1]()
    pool, number, running = Threads(3), 1, set()

    def piece(own, thread):
        running.add(thread)
        time.sleep(0.0005)
        running.discard(thread)

    while interrupted(lambda: pool.run(piece, 5), number):
        running.discard(0)  # the caller's own piece ends where it is interrupted
        assert not running
        number += 1
        seen = []
        pool.run(lambda own, _, seen=seen: seen.append(own), 5)
        assert sorted(seen) == [0, 1, 2, 3, 4]
        assert found is None or found[1]() == before
        assert not module._blas.users
    assert number > 20
    assert len(pool._numbers) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    pool = Threads(2)
    pool.run(lambda piece, thread: None, 2)
    child = os.fork()
    if not child:
        found = []
        pool.run(lambda piece, thread: found.append(piece), 4)
        os._exit(0 if sorted(found) == [0, 1, 2, 3] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_blas_is_held_to_one_thread_and_gets_its_threads_back():
    found = module._openblas()
    if found is None:
        pytest.skip("numpy has no OpenBLAS of its own")
    put, get = found
    before = get()
    put(2)
    try:
        assert hold_blas(lambda: (hold_blas(get), get())) == (1, 1)
        assert get() == 2
        with pytest.raises(ZeroDivisionError):
            hold_blas(lambda: 1 // 0)
        assert get() == 2
        Threads(2).run(lambda piece, thread: None, 2)
        assert get() == 2
    finally:
        put(before)


def test_without_openblas_nothing_is_governed(monkeypatch):
    monkeypatch.setattr(module, "_openblas", lambda: None)
    assert hold_blas(pow, 2, 3) == 8


def test_short_works_are_not_shared():
    assert Threads(2).pieces(1e-6) == 1
    assert Threads(2).pieces(1e-3) >= 2
    assert Threads(1).pieces(1.0) == 1


def test_cuts_cover_a_length_in_whole_units():
    assert cuts(10, 3) == [slice(0, 3), slice(3, 6), slice(6, 10)]
    assert cuts(50, 2, 16) == [slice(0, 32), slice(32, 50)]
    assert cuts(3, 8) == [slice(0, 1), slice(1, 2), slice(2, 3)]
    assert cuts(5, 4, 16) == [slice(0, 5)]


@pytest.mark.parametrize("shape", [(), (7,), (3, 4, 5), (1, 9, 2), (5, 1, 1)])
@pytest.mark.parametrize("limit", [1, 3, 10, 1000])
def test_blocks_cover_an_array_once(shape, limit):
    seen = np.zeros(shape, int)
    for index in blocks(shape, limit):
        assert seen[index].size <= limit
        seen[index] += 1
    assert (seen == 1).all()
