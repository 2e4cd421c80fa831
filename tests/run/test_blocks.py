"""Blocks of memory that runs take in turn, and which frames stay in them."""

from __future__ import annotations

from typing import Any

from irrun.run.blocks import Blocks, Prepared


class Framed:
    """What stands for a frame, and whether it was closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


def prepared() -> Prepared:
    program: Any = None
    return Prepared(program, {})


def framed(blocks: Blocks, own: Prepared) -> Framed:
    """The frame that a turn leaves in a block."""
    block, frame = blocks.take(own), Framed()
    kept: Any = frame
    block.frames[own] = kept
    blocks.release(block)
    return frame


def test_frames_stay_until_their_program_is_dropped_and_the_block_had_a_turn():
    blocks, own, other = Blocks(), prepared(), prepared()
    frame = framed(blocks, own)
    assert not frame.closed
    blocks.drop(own)
    assert not framed(blocks, other).closed
    assert frame.closed


def test_a_frame_of_a_program_that_was_dropped_just_before_goes_with_the_turn():
    blocks, own = Blocks(), prepared()
    framed(blocks, prepared())
    blocks.drop(own)
    framed(blocks, prepared())  # which has looked through the block
    assert framed(blocks, own).closed
