"""irrun as a process whose time and memory are measured, for what hostile files could do to it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from command_line import COMMAND

IN_TURN = """
import json, sys
from irrun.cli import main
for arguments in json.loads(sys.argv[1]):
    try:
        main(arguments, prog_name="irrun")
    except SystemExit as end:
        print(f"\\nended with {end.code}", flush=True)
"""

GIB = 1 << 30
_PATIENCE = 240.0
"""Seconds; other tests may run at the same time."""


@dataclass(frozen=True)
class Done:
    """A process that has ended: its exit status, its two outputs together, processor seconds and bytes at its peak."""

    status: int
    output: str
    seconds: float
    peak: int


def bounded(
    *args: object,
    status: int | Iterable[int] = (0, 1, 2),
    seconds: float = 20,
    memory: int = GIB,
    limits: dict[int, int] | None = None,
    signalled: tuple[float, Callable[[], bool]] | None = None,
    stdin: int | None = subprocess.DEVNULL,
    command: Sequence[str] = COMMAND,
) -> Done:
    """Run irrun; it must end in time, with one of the statuses, within the memory, and without a traceback.

    `limits` are limits of the system for the process. With `signalled` it gets SIGINT as soon as the function answers
    True.
    """

    def restrict() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for kind, limit in (limits or {}).items():
            resource.setrlimit(kind, (limit, limit))

    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [*command, *map(str, args)],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=stdin,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "FORCE_COLOR": ""},
            preexec_fn=restrict,
        )
        used, peak = _wait(process, signalled)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    done = Done(process.returncode, text, used.ru_utime + used.ru_stime, peak)
    expected = [status] if isinstance(status, int) else [*status]
    assert done.status in expected, f"status {done.status}: {text[-3000:]}"
    assert "Traceback" not in text, text[-3000:]
    assert done.seconds <= seconds, f"{done.seconds:.1f} s: {text[:500]}"
    assert done.peak <= memory, f"{done.peak / GIB:.2f} GiB: {text[:500]}"
    return done


def bounded_in_turn(commands: Iterable[Sequence[object]], status: int, **limits: float) -> list[str]:
    """What each of the commands prints, which one process runs in turn; each of them must end with the status."""
    listed = [[str(argument) for argument in arguments] for arguments in commands]
    done = bounded(json.dumps(listed), status=0, command=[sys.executable, "-P", "-c", IN_TURN], **limits)
    *outputs, rest = re.split(rf"\nended with {status}\n", done.output)
    assert not rest, rest
    assert len(outputs) == len(listed), done.output
    return outputs


def _wait(
    process: subprocess.Popen, signalled: tuple[float, Callable[[], bool]] | None
) -> tuple[resource.struct_rusage, int]:
    """What the process used, and the most memory it had, in bytes."""
    begin, peak = time.monotonic(), 0
    try:
        while True:
            peak = max(peak, _peak(process.pid))
            pid, code, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(code)
                return used, peak or used.ru_maxrss * 1024
            if signalled and signalled[1]():
                time.sleep(signalled[0])
                process.send_signal(signal.SIGINT)
                signalled = None
            assert time.monotonic() - begin < _PATIENCE, "it does not end"
            time.sleep(0.002)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise


def _peak(pid: int) -> int:
    """The most memory that a process has had so far; its usage at the end counts what it was forked from, too."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)
