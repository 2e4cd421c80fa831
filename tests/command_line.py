"""irrun as a process, for the tests of its command line.

The first process of each command is a new one, as are those that read what is written to them, or have an environment
of their own. Others are copies of one that has loaded what commands need, which takes most of their time.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from forked import can_be_copied, nursery

COMMAND = [sys.executable, "-P", "-c", "from irrun.cli import main; main(prog_name='irrun')"]
"""-P: the current directory, which may hold the sources, is no place to import from."""

SECONDS = 60
"""That a command may take."""

_seen: set[str] = set()


def irrun(
    *args: object,
    status: int = 0,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    stdin: bytes | None = None,
) -> subprocess.CompletedProcess:
    """The finished process, which ended with `status` and without a traceback."""
    name = str(args[0]) if args else ""
    if name in _seen and env is None and stdin is None and can_be_copied() and nursery().fits:
        done = nursery().run([*map(str, args)], cwd or Path.cwd(), SECONDS)
    else:
        _seen.add(name)
        done = subprocess.run(
            [*COMMAND, *map(str, args)],
            capture_output=True,
            env=os.environ | (env or {}),
            cwd=cwd,
            input=stdin,
            timeout=SECONDS,
            check=False,
        )
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done
