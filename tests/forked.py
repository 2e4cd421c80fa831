"""Processes that load nothing: copies of one that has loaded what commands need, and has done nothing else."""

from __future__ import annotations

import atexit
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

LIMIT = 1 << 20
"""Bytes of a question."""

IGNORED = {"PYTEST_CURRENT_TEST"}
"""Of the environment: other in every test, and nobody reads it."""


def environment() -> dict[str, str]:
    """That of this process, which those that it starts have as well."""
    return {name: value for name, value in os.environ.items() if name not in IGNORED}


FIRST = environment()

LOADED = (
    *("numpy", "scipy.special", "irrun.check.render.text", "irrun.ir.writer", "irrun.run.executor"),
    *("irrun.run.templates", "irrun.tools.compare.comparison", "irrun.tools.edit", "irrun.tools.inspect.rendering"),
)
"""Besides commands, ops and what computes by numpy."""

CODE = """import sys
sys.path.insert(0, {folder!r})
from forked import copied
sys.path.pop(0)
copied({socket})
from irrun.cli import main
main(prog_name='irrun')
"""


class Nursery:
    """The process that is copied. It has the environment that this one began with."""

    def __init__(self) -> None:
        self._socket, other = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with other:
            code = CODE.format(folder=str(Path(__file__).parent), socket=other.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", code], pass_fds=[other.fileno()], stdin=subprocess.DEVNULL, env=FIRST
            )

    @property
    def fits(self) -> bool:
        """Whether a process that is started now would have the same environment."""
        return environment() == FIRST

    def close(self) -> None:
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def run(self, args: list[str], folder: Path, timeout: float) -> subprocess.CompletedProcess[bytes]:
        """A copy that runs the command of `args` in a folder. Raises subprocess.TimeoutExpired."""
        outputs = [os.pipe(), os.pipe()]
        question = json.dumps([str(folder), args]).encode()
        socket.send_fds(self._socket, [question], [theirs for _, theirs in outputs])
        for _, theirs in outputs:
            os.close(theirs)
        pid = int(self._socket.recv(LIMIT))
        texts = self._read([ours for ours, _ in outputs], time.monotonic() + timeout)
        if texts is None:
            os.kill(pid, signal.SIGKILL)
        status = int(self._socket.recv(LIMIT))
        if texts is None:
            raise subprocess.TimeoutExpired(args, timeout)
        return subprocess.CompletedProcess(args, status, *texts)

    @staticmethod
    def _read(files: list[int], end: float) -> list[bytes] | None:
        """All that comes from pipes until they are closed; None where that takes too long."""
        found = dict.fromkeys(files, b"")
        with selectors.DefaultSelector() as selector:
            for file in files:
                selector.register(file, selectors.EVENT_READ)
            while selector.get_map() and time.monotonic() < end:
                for key, _ in selector.select(end - time.monotonic()):
                    part = os.read(key.fd, LIMIT)
                    found[key.fd] += part
                    if not part:
                        selector.unregister(key.fd)
            late = bool(selector.get_map())
        for file in files:
            os.close(file)
        return None if late else [*found.values()]


@cache
def nursery() -> Nursery:
    """The only one there is, until this process ends."""
    made = Nursery()
    atexit.register(made.close)
    return made


def can_be_copied() -> bool:
    """Whether the system has what that takes."""
    return hasattr(os, "fork") and hasattr(socket, "SOCK_SEQPACKET") and sys.platform == "linux"


def copied(number: int) -> None:
    """In the process that is copied: answer questions until nobody asks any more. It returns in copies alone."""
    _load()
    asked = socket.socket(fileno=number)
    while True:
        question, files, _, _ = socket.recv_fds(asked, LIMIT, 2)
        if not question:
            os._exit(0)
        pid = os.fork()
        if not pid:
            break
        for file in files:
            os.close(file)
        asked.send(str(pid).encode())
        asked.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
    asked.close()
    for file, stream in zip(files, (1, 2), strict=True):
        os.dup2(file, stream)
        os.close(file)
    folder, args = json.loads(question)
    os.chdir(folder)
    sys.argv[1:] = args


def _load() -> None:
    """What most commands load, so that each copy has it."""
    import gc
    from importlib import import_module

    from irrun.cli import COMMANDS
    from irrun.engines.vectorized.engine import MODULES
    from irrun.spec.registry import registry

    for name in (*(f"irrun.cli.{command}" for command in COMMANDS), *LOADED):
        import_module(name)
    for name in MODULES:
        import_module(f"irrun.engines.vectorized.{name}")
    assert registry().ops
    gc.freeze()
