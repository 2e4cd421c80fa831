"""irrun on a terminal: what it writes to stderr there, and what stands on the screen then."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

from command_line import COMMAND

SOON = "import irrun.cli.progress as progress; progress.LASTING = 0.3; "
"""So that nobody waits for two seconds; that these are two is tried once."""

_PART = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|\r|\n|[^\x1b\r\n]+")


@dataclass(frozen=True)
class Shown:
    """All that was written, and the status that the process ended with."""

    text: str
    status: int
    seconds: float
    columns: int

    @property
    def screen(self) -> list[str]:
        """The lines that stand on the screen in the end, without empty ones at its end."""
        lines, row, column = [""], 0, 0
        for part in _PART.finditer(self.text):
            code, kind = part[1], part[2]
            if kind == "A":
                row = max(row - int(code or 1), 0)
            elif kind == "K":
                lines[row] = ""
            elif kind == "m":
                continue
            elif kind is not None:
                raise AssertionError(f"nobody knows {part[0]!r} here")
            elif part[0] == "\r":
                column = 0
            elif part[0] == "\n":
                row, column = row + 1, 0
                lines += [""] * (row + 1 - len(lines))
            else:
                text = lines[row].ljust(column)
                lines[row] = text[:column] + part[0] + text[column + len(part[0]) :]
                column += len(part[0])
        while lines and not lines[-1].strip():
            lines.pop()
        return lines


def on_terminal(
    *arguments: object,
    env: dict[str, str] | None = None,
    columns: int = 80,
    soon: bool = True,
    interrupt: tuple[str, signal.Signals] | None = None,
) -> Shown:
    """What a process writes to stderr, which is a terminal, where it shows `soon` how far it is; it gets a signal once
    it has written some text."""
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    begin = monotonic()
    process = subprocess.Popen(
        [*COMMAND[:-1], f"{SOON if soon else ''}{COMMAND[-1]}", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=writer,
        env=environment | {"TERM": "xterm-256color"} | (env or {}),
    )
    os.close(writer)
    shown = b""
    with suppress(OSError):  # Linux says so when the other end is closed
        while chunk := os.read(reader, 1000):
            shown += chunk
            if interrupt is not None and interrupt[0].encode() in shown:
                process.send_signal(interrupt[1])
                begin, interrupt = monotonic(), None
    os.close(reader)
    return Shown(shown.decode(), process.wait(60), monotonic() - begin, columns)
