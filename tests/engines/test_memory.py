"""Memory for weights, in large pages where the system has them."""

from __future__ import annotations

import gc
import mmap
import os
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from irrun.engines import memory
from irrun.engines.memory import ALIGNMENT, BLOCK, LARGE_PAGED, allocate_lasting, data_address
from irrun.run.memory import Meter, owner_of

SIZES = [1, LARGE_PAGED.start - 1, LARGE_PAGED.start, 100_001, BLOCK // 4 - 1, LARGE_PAGED.stop, BLOCK + 5]


@pytest.fixture(params=["large", "refused", "unknown"], autouse=True)
def pages(request, monkeypatch):
    monkeypatch.setattr(memory, "_large_pages", memory._LargePages())
    if request.param == "refused":

        def refuse(*_, **__):
            raise OSError("no memory")

        monkeypatch.setattr(mmap, "mmap", refuse)
    elif request.param == "unknown":
        monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    return request.param


def test_arrays_are_aligned_and_apart():
    arrays = [allocate_lasting(size) for _ in range(4) for size in SIZES]
    for number, array in enumerate(arrays):
        assert array.nbytes == SIZES[number % len(SIZES)]
        assert data_address(array) % ALIGNMENT == 0
        array[...] = number
    for number, array in enumerate(arrays):
        assert (array == number).all()


def test_threads_have_memory_of_their_own():
    def take(number):
        arrays = [allocate_lasting(LARGE_PAGED.start) for _ in range(100)]
        for array in arrays:
            array[...] = number
        return arrays

    with ThreadPoolExecutor(4) as threads:
        for number, arrays in enumerate(threads.map(take, range(8))):
            assert all((array == number).all() for array in arrays)


def test_each_array_is_the_owner_of_its_memory():
    """By which a run tells apart what lies in one frame, in another one, and elsewhere."""
    first, second = (allocate_lasting(LARGE_PAGED.start) for _ in range(2))
    meter = Meter(BLOCK, 0, [first])
    meter.hold(id(owner_of(second)), second.nbytes)
    meter.let_go(id(owner_of(second)), second.nbytes)
    meter.add(first[5:])
    assert meter.live == 0
    meter.add(second[5:])
    assert second.nbytes <= meter.live <= second.nbytes + ALIGNMENT


def test_where_there_is_no_room_for_a_block_there_may_be_for_an_array(monkeypatch):
    most = LARGE_PAGED.stop + ALIGNMENT

    def scarce(size, *_):
        if size > most:
            raise MemoryError
        return np.zeros(size, np.uint8)

    def refuse(*_, **__):
        raise OSError(12, "no memory")

    monkeypatch.setattr(memory.np, "empty", scarce)
    monkeypatch.setattr(mmap, "mmap", refuse)
    assert allocate_lasting(LARGE_PAGED.start).nbytes == LARGE_PAGED.start


def test_a_block_goes_with_the_last_array_in_it(pages):
    if pages != "large" or not hasattr(mmap, "MADV_HUGEPAGE"):
        pytest.skip("there are no blocks")
    first, second = allocate_lasting(LARGE_PAGED.start), allocate_lasting(LARGE_PAGED.start)
    block = first.base.obj
    assert second.base.obj is block
    gone = weakref.ref(block)
    while allocate_lasting(LARGE_PAGED.stop - 1).base.obj is block:
        pass
    del block, first
    gc.collect()
    assert gone() is not None
    del second
    gc.collect()
    assert gone() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_writes_to_memory_of_its_own():
    array = allocate_lasting(LARGE_PAGED.start)
    array[...] = 1
    child = os.fork()
    if not child:
        array[...] = 2
        allocate_lasting(LARGE_PAGED.start)[...] = 3
        os._exit(not (array == 2).all())
    assert os.waitpid(child, 0)[1] == 0
    allocate_lasting(LARGE_PAGED.start)[...] = 4
    assert (array == 1).all()
