"""The process that another side lives in, as this one sees it: requests, answers, and how it ended.

What is asked and answered are lines of JSON; see `serving.py` for the other end of the pipe.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from signal import Signals
from tempfile import TemporaryDirectory, TemporaryFile
from threading import TIMEOUT_MAX, Thread
from typing import IO, Any

import irrun
from irrun.files import Unwritten, temporary, unwritten
from irrun.tools.compare.sides.contract import SideFailed

LAST_LINES = 5
"""Of what a worker has written before it died, in a message."""

_TAIL = 20_000
"""Bytes at the end of what it wrote that are looked at."""

_PATIENCE = 0.2
"""Seconds after which somebody who watches is asked again."""

_GRACE = 2.0
"""Seconds that a worker may take to end when it is told to."""

Watch = Callable[[], str | None]
"""Gives why a call that goes on should be given up, or None."""


class Worker:
    """A process that answers requests, started when it is needed and again when it has died.

    `module` is what it runs, `side` what it is called in messages, `timeout` how many seconds a call may take.
    """

    def __init__(self, module: str, side: str, timeout: float, env: Mapping[str, str] | None = None) -> None:
        self._module, self._side, self._timeout, self._env = module, side, timeout, dict(env or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._folder: TemporaryDirectory[str] | None = None
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    @property
    def pid(self) -> int | None:
        """Of the process, where there is one."""
        return None if self._process is None else self._process.pid

    def call(self, request: Mapping[str, Any], cwd: Path | None = None, watch: Watch | None = None) -> dict[str, Any]:
        """The answer to a request. A process that has to be started is in the folder `cwd`. Raises SideFailed,
        and Unwritten where there is no room for its files."""
        phase = "start"
        try:
            process = self._started(cwd)
            assert process.stdin is not None
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            deadline = time.monotonic() + self._timeout
            while True:
                line = self._line(deadline, watch)
                if isinstance(line, str):
                    raise self._ended(phase, line)
                if line is None:
                    raise self._ended(phase, None)
                answer: dict[str, Any] = json.loads(line)
                if "phase" in answer:
                    phase = answer["phase"]
                elif "error" in answer:
                    raise SideFailed(self._side, phase, answer["error"])
                elif "unwritten" in answer:  # in a folder within that of this process
                    raise unwritten(*answer["unwritten"])
                else:
                    return answer
        except (SideFailed, Unwritten):
            raise
        except OSError as error:  # it was gone when it was asked, or cannot be started
            raise self._ended(phase, None if isinstance(error, BrokenPipeError) else str(error)) from None
        except BaseException:  # the answer would be taken for that of the next request
            self.close(kill=True)
            raise

    def close(self, kill: bool = False) -> None:
        """End the process, at once or when it has done what it is doing."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        with suppress(OSError):  # what it was not sent any more
            process.stdin.close()
        try:
            process.wait(0 if kill else _GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._stderr is not None:
            self._stderr.close()
        if self._folder is not None:
            self._folder.cleanup()

    def __del__(self) -> None:
        with suppress(Exception):  # the interpreter may be ending
            self.close(kill=True)

    def _started(self, cwd: Path | None) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        with temporary():
            self._stderr = TemporaryFile()  # noqa: SIM115, closed with the worker
            self._folder = TemporaryDirectory(prefix="irrun-", ignore_cleanup_errors=True)  # it may be killed
        here = str(Path(irrun.__file__).parents[1])
        path = os.pathsep.join(part for part in (here, os.environ.get("PYTHONPATH")) if part)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": path, "TMPDIR": self._folder.name, **self._env},
            start_new_session=True,  # Ctrl-C is for whoever asks
        )
        self._process, self._lines = process, queue.SimpleQueue()
        assert process.stdout is not None
        Thread(target=_read, args=(process.stdout, self._lines), daemon=True).start()
        return process

    def _line(self, deadline: float, watch: Watch | None) -> bytes | str | None:
        """What it says next; None where that is nothing any more, a text where it is not waited for any longer."""
        while True:
            left = deadline - time.monotonic()
            try:
                return self._lines.get(timeout=max(0, min(left, _PATIENCE if watch else TIMEOUT_MAX)))
            except queue.Empty:
                if time.monotonic() >= deadline:
                    return f"it gave no answer within {self._timeout:g} seconds and was ended"
                reason = watch() if watch else None
                if reason is not None:
                    return reason

    def _ended(self, phase: str, reason: str | None) -> SideFailed:
        """The failure of a process that is not there any more, or is given up for a `reason`."""
        process, stderr = self._process, self._stderr
        signal, said = None, tuple[str, ...]()
        if process is not None and reason is None:
            try:
                process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            signal = _signal(process.returncode)
            reason = f"its process was ended by {signal}" if signal else f"its process ended ({process.returncode})"
            if signal == "SIGKILL":
                reason += ", perhaps because memory was short"
        if stderr is not None and not stderr.closed:
            said = _last_lines(stderr)
        self.close(kill=True)
        return SideFailed(self._side, phase, reason or "its process did not start", said, signal)


def _read(stream: IO[bytes], lines: queue.SimpleQueue[bytes | None]) -> None:
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(None)


def _signal(status: int) -> str | None:
    if status >= 0:
        return None
    try:
        return Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def _last_lines(stream: IO[bytes]) -> tuple[str, ...]:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _TAIL))
    lines = stream.read().decode(errors="replace").splitlines()
    return tuple(line.rstrip() for line in lines if line.strip())[-LAST_LINES:]
