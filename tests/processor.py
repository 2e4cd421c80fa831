"""What processes of tests and benchmarks have computed."""

from __future__ import annotations

import os
from pathlib import Path


def processor_time(process: int | None) -> float:
    """Seconds of processor time that a process has had; 0 where it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
