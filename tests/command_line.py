"""irrun as a process, for the tests of its command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-P", "-c", "from irrun.cli import main; main(prog_name='irrun')"]
"""-P: the current directory, which may hold the sources, is no place to import from."""


def irrun(
    *args: object,
    status: int = 0,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    stdin: bytes | None = None,
) -> subprocess.CompletedProcess:
    """The finished process, which ended with `status` and without a traceback."""
    done = subprocess.run(
        [*COMMAND, *map(str, args)],
        capture_output=True,
        env=os.environ | (env or {}),
        cwd=cwd,
        input=stdin,
        timeout=60,
        check=False,
    )
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done
