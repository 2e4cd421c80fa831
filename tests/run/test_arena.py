"""Buffers in one block of memory: those that are alive together never overlap."""

import random

import pytest

from irrun.engines.memory import ALIGNMENT, allocate
from irrun.run.arena import Buffer, place


def test_buffers_that_follow_each_other_share_memory():
    first, second, third = Buffer(100, 0, 1), Buffer(100, 1, 2), Buffer(100, 2, 3)
    assert place([first, second, third]) == 2 * 128
    assert first.offset == third.offset != second.offset


def test_a_gap_is_one_with_its_neighbours():
    small = [Buffer(64, 0, 0), Buffer(64, 0, 0), Buffer(64, 0, 3)]
    large = Buffer(128, 1, 2)
    assert place([*small, large]) == 192
    assert large.offset == 0


@pytest.mark.parametrize("seed", range(20))
def test_no_two_alive_buffers_overlap(seed):
    draw = random.Random(seed)
    buffers = []
    for _ in range(200):
        first = draw.randrange(-1, 100)
        buffers.append(Buffer(draw.choice([0, 1, 64, 1000, 5000]), first, first + draw.choice([0, 1, 2, 3, 50])))
    total = place(buffers)
    for number, one in enumerate(buffers):
        assert one.offset % ALIGNMENT == 0
        assert one.offset + one.size <= total
        for other in buffers[:number]:
            apart = one.last < other.first or other.last < one.first
            assert apart or one.offset + one.size <= other.offset or other.offset + other.size <= one.offset
    alive = max(sum(-(-b.size // 64) * 64 for b in buffers if b.first <= now <= b.last) for now in range(-1, 150))
    assert total <= 1.5 * alive + 64 * len(buffers)


def test_memory_starts_at_a_cache_line():
    assert all(allocate(size).ctypes.data % ALIGNMENT == 0 and allocate(size).size == size for size in (1, 100, 4097))
