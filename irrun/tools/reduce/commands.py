"""A command of the user's as a check: how it ends, and what it writes, is what a model fails with."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from irrun.records import dataclass
from irrun.tools.reduce.outcome import NOT_MADE, Outcome

MAX_READ = 1 << 20
"""Bytes of what a command writes that are searched, at its end."""

NOT_RUN = {126: "cannot be run", 127: "is not there"}
"""What shells end with where they have run nothing."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command with `{model}` and `{inputs}` in it, by the shell, and perhaps `{expected}`, our outputs.

    A model fails where it ends with another status than 0, or with `code`, or a signal, or not within `timeout`
    seconds. Where there is a `pattern`, what is written has to match it, too; its groups, or all that it matches, are
    part of the signature. Where the shell does not find what is to run, or may not run it, the check cannot be made,
    unless that is the `code`.
    """

    command: str
    code: int | None = None
    pattern: re.Pattern[str] | None = None
    timeout: float = 60.0

    @property
    def description(self) -> str:
        parts = [self.command, f"code {self.code}", f"regex {self.pattern.pattern if self.pattern else None}"]
        return "; ".join(parts)

    def shown_by(self, running: bool) -> str:
        return self._line({"model": Path("min.xml"), "inputs": Path("inputs.npz"), "expected": Path("expected.npz")})

    def _line(self, given: Mapping[str, Path]) -> str:
        text = self.command
        for name, path in given.items():
            text = text.replace(f"{{{name}}}", shlex.quote(str(path)))
        return text

    def close(self) -> None:
        """Nothing lives on between checks."""

    def __call__(self, model: Path, inputs: Path) -> Outcome:
        given = {"model": model, "inputs": inputs}
        if "{expected}" in self.command:
            given["expected"] = _expected(model, inputs)
        with TemporaryFile() as output:
            status, late = _run(self._line(given), output, self.timeout)
            written = _end(output)
        ended = f"none within {self.timeout:g} s" if late else _exit(status)
        detail = "\n".join(written.strip().splitlines()[-5:])
        if status in NOT_RUN and status != self.code:
            named = f"; --fail-code {status} takes that for the failure"
            return Outcome(False, NOT_MADE, f"the command {NOT_RUN[status]} (exit {status}): {detail}{named}")
        matched = None if self.pattern is None else self.pattern.search(written)
        fails = late or (status != 0 if self.code is None else status == self.code)
        if self.pattern is not None:
            fails = fails and matched is not None if not late else matched is not None
        signature = {"exit": ended}
        if matched is not None:
            signature["match"] = " ".join(part or "" for part in matched.groups()) or matched[0]
        return Outcome(fails, signature, detail)


def _expected(model: Path, inputs: Path) -> Path:
    """Our outputs of a model, in a file beside it; an empty one where it cannot be run."""
    from irrun.diagnostics import EngineError, InputError, IRError
    from irrun.run.arrays import read_npz, write_npz
    from irrun.run.executor import GraphExecutor

    path = model.with_name("expected.npz")
    try:
        results = GraphExecutor(model, engine="reference", precision="auto").run(read_npz(inputs))
    except (IRError, InputError, EngineError, MemoryError):
        results = {}  # type: ignore[assignment]
    write_npz(path, results)
    return path


def _run(command: str, output: IO[bytes], timeout: float) -> tuple[int, bool]:
    """The status of a command, and whether it had to be ended, with all that it has started."""
    process = subprocess.Popen(
        command, shell=True, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
    )
    try:
        return process.wait(timeout), False
    except subprocess.TimeoutExpired:
        return -1, True
    finally:
        _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a command and what it has left behind in its session."""
    with suppress(OSError, AttributeError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.poll() is None:
        process.kill()
        process.wait()


def _exit(status: int) -> str:
    number = -status if status < 0 else status - 128 if 128 < status < 160 else 0  # as shells have it
    if number:
        with suppress(ValueError):
            return signal.Signals(number).name
    return str(status)


def _end(stream: IO[bytes]) -> str:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - MAX_READ))
    return stream.read().decode(errors="replace")
