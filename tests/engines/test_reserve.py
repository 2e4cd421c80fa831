"""Memory of large results: the caller's for as long as an array lies in it, and then that of others."""

from __future__ import annotations

import gc

import numpy as np
from run.models import ADD, anything, i64, model, saved

import irrun
from irrun.engines.memory import ALIGNMENT, data_address
from irrun.engines.reserve import LEAST, MAX_BLOCKS, MAX_BYTES, Reserve
from irrun.run.memory import Meter, owner_of


def test_memory_that_nobody_uses_is_given_again():
    reserve = Reserve()
    first = reserve.take(LEAST)
    address = data_address(first)
    assert first.nbytes == LEAST
    assert address % ALIGNMENT == 0
    del first
    second = reserve.take(LEAST + 1000)
    assert data_address(second) == address
    assert second.nbytes == LEAST + 1000


def test_memory_is_nobody_elses_while_any_array_lies_in_it():
    reserve = Reserve()
    made = reserve.take(LEAST).view(np.float32).reshape(-1, 2)
    view = made[7:3:-2, 1]
    made[...] = 3
    del made
    held = memoryview(view)
    del view
    other = reserve.take(LEAST)
    other[...] = 255
    np.testing.assert_array_equal(np.asarray(held), [3, 3])
    assert not np.shares_memory(other, np.asarray(held))


def test_more_than_fits_and_much_less_is_new(monkeypatch):
    """Which its address need not show: the system may put what is new where something was."""
    reserve, empty, made = Reserve(), np.empty, []

    def noted(*args):
        made.append(args)
        return empty(*args)

    monkeypatch.setattr(np, "empty", noted)
    for size in (8 * LEAST, 16 * LEAST, LEAST):
        assert reserve.take(size).nbytes == size
    assert len(made) == 3
    assert reserve.take(LEAST).nbytes == LEAST
    assert len(made) == 3


def test_memory_goes_back_before_more_is_taken_that_stands_for_it(monkeypatch):
    """Not while an array lies in it, nor where what is taken is too large for those who need it."""
    reserve, empty = Reserve(), np.empty
    held = reserve.take(3 * LEAST)
    for size in (LEAST, 8 * LEAST):
        reserve.take(size)
    kept = []

    def noted(*args):
        kept.extend(own.nbytes // LEAST for own in reserve._blocks)
        return empty(*args)

    monkeypatch.setattr(np, "empty", noted)
    reserve.take(12 * LEAST)
    assert kept == [3, 1]
    assert owner_of(held) is reserve._blocks[0]


def test_the_smallest_memory_that_does_is_given():
    reserve = Reserve()
    large, small = reserve.take(3 * LEAST), reserve.take(LEAST)
    addresses = [data_address(small), data_address(large)]
    del large, small
    one = reserve.take(LEAST)
    other = reserve.take(3 * LEAST)
    assert [data_address(one), data_address(other)] == addresses


def test_a_reserve_refers_to_few_blocks():
    reserve = Reserve()
    kept = [reserve.take(LEAST) for _ in range(3 * MAX_BLOCKS)]
    assert len({data_address(own) for own in kept}) == len(kept)
    assert len(reserve._blocks) == MAX_BLOCKS
    reserve.take(MAX_BYTES)
    assert sum(own.nbytes for own in reserve._blocks) <= MAX_BYTES


def test_a_meter_counts_what_is_lent_until_nobody_uses_it():
    reserve, meter = Reserve(), Meter(1 << 40, 0, ())
    addresses = set()
    for number in range(3):
        array = reserve.empty((LEAST // 8 + number, 2), np.dtype(np.float32))
        addresses.add(data_address(array))
        view = array[1:]
        meter.add(array)
        del array
        assert meter.live == LEAST + 8 * number
        del view
        assert meter.live == 0
    assert len(addresses) == 1


def test_small_memory_is_left_to_the_allocator():
    reserve = Reserve()
    reserve.take(LEAST - 1)
    assert not reserve._blocks


def test_results_that_somebody_keeps_are_never_written_to(tmp_path):
    b = model()
    x = anything(b, "f4", (-1, 1024))
    b.result(b.one("Add-1", x, x, **ADD))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine="numpy")
    rng = np.random.default_rng(2)
    kept, addresses = [], set()
    for run in range(40):
        rows = int(rng.integers(1024, 2048))
        (result,) = executor.run([np.full((rows, 1024), run, np.float32)]).values()
        addresses.add(data_address(result))
        if rng.random() < 0.5:
            kept.append((2 * run, result[:: int(rng.integers(1, 5)), :3]))
        if kept and rng.random() < 0.4:
            del kept[int(rng.integers(len(kept)))]
        del result
        for value, part in kept:
            assert (part == value).all()
    assert len(addresses) < 40
    gc.collect()


def test_results_whose_sizes_the_data_tell_lie_there_too_and_are_the_callers(tmp_path):
    b = model()
    x, mask = anything(b, "f4", (1280, 1024)), anything(b, "f4", (1280,))
    places = b.one("Squeeze-1", b.one("NonZero-3", mask), i64(b, [0]))
    rows = b.one("Gather-8", x, places, i64(b, 0), batch_dims=0)
    b.result(b.one("Add-1", rows, rows, **ADD))
    executor = irrun.GraphExecutor(saved(b, tmp_path), engine="numpy")
    kept, addresses = [], set()
    for run in range(12):
        mask = (np.arange(1280) >= run).astype(np.float32)
        (result,) = executor.run([np.full((1280, 1024), run, np.float32), mask]).values()
        assert result.shape == (1280 - run, 1024)
        assert isinstance(owner_of(result).base, memoryview)  # of what was lent: nobody has copied it
        addresses.add(data_address(result))
        if run % 4 == 0:
            kept.append((2 * run, result[::3]))
        del result
        assert all((part == value).all() for value, part in kept)
    assert len(addresses) < 12
