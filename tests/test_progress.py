"""What people see while they wait: the time on a terminal, and nothing elsewhere."""

import os
import pty
import subprocess
from contextlib import suppress

import pytest
from command_line import COMMAND, irrun
from ir_builder import Model

SLOW = """\
import time
from irrun.spec import Input, Output, op

@op("Slow-1", inputs=[Input("x", "f32", "[...]")], outputs=[Output("y", "f32", "[...]")], opsets=frozenset(),
    extension_versions=("extension",), pure=False)
def slow(x):
    '''Wait.'''
    time.sleep({seconds})
    return x.copy()

@slow.shapes
def _(node):
    return [node.inputs["x"]]
"""


@pytest.fixture
def slow(tmp_path):
    """The arguments of a run that takes as many seconds as it is given, and a little more."""

    def arguments(seconds: float) -> list[object]:
        model = Model()
        (y,) = model.layer("Slow", [model.parameter("x", "f32", (2,))], [("f32", (2,))], version="extension")
        model.result(y)
        (tmp_path / "slow.py").write_text(SLOW.format(seconds=seconds))
        return ["execute", model.save(tmp_path), "--random", 1, "--ops", tmp_path / "slow.py"]

    return arguments


def on_terminal(*arguments):
    """What a process that ends well writes to stderr, which is a terminal."""
    reader, writer = pty.openpty()
    try:
        subprocess.run(
            [*COMMAND, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=writer, timeout=60, check=True
        )
        os.set_blocking(reader, False)
        with suppress(BlockingIOError):  # nothing was written
            return os.read(reader, 10_000).decode()
        return ""
    finally:
        os.close(writer)
        os.close(reader)


def test_a_long_run_tells_the_time_on_a_terminal_and_takes_it_away(slow):
    text = on_terminal(*slow(3.4))
    assert text.startswith("running Slow_1, 1 of 1 (2 s)\r\x1b[2K")
    assert "running Slow_1, 1 of 1 (3 s)" in text
    assert text.endswith("(3 s)\r\n\r\x1b[1A\x1b[2K")


def test_a_long_run_is_silent_where_there_is_no_terminal(slow):
    assert irrun(*slow(2.2)).stderr == ""


def test_a_short_run_says_nothing(slow):
    assert "running" not in on_terminal(*slow(0))
