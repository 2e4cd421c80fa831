"""The rows of a sweep in a file, each as soon as it is known, whole or not at all: where the next call goes on."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from irrun.diagnostics import EngineError
from irrun.files import atomic_write, hold, open_regular
from irrun.tools.sweep.rows import Place, Row, from_parquet, to_parquet

PARQUET = ".parquet"

_BEGINNING = b'{"model": '
"""Of each line."""


class Log:
    """The rows in `path`, which is .jsonl or .parquet; of a place the last one counts.

    A Parquet file is written at the end, and until then rows are in `path`.jsonl beside it. Raises ValueError for a
    file that is none of a sweep, or that another sweep writes to, OSError where it cannot be read or written,
    EngineError where pyarrow is needed and not installed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._columnar = path.suffix.lower() == PARQUET
        if self._columnar and find_spec("pyarrow") is None:
            raise EngineError('Parquet files take pyarrow: pip install "irrun[parquet]", or give a .jsonl file')
        self._lines = path.with_name(f"{path.name}.jsonl") if self._columnar else path
        self._rows: dict[Place, Row] = {}
        self._added = self._superseded = False
        if self._columnar and path.exists():
            with open_regular(path) as stream:
                self._keep(_read_parquet(path, stream.read()))
        self._file = os.open(self._lines, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)
        try:
            if not stat.S_ISREG(os.fstat(self._file).st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file", str(self._lines))
            if not hold(self._file):
                raise ValueError(f"another sweep is writing to {self._lines}")
            self._read()
        except BaseException:
            os.close(self._file)
            raise

    @property
    def rows(self) -> Iterable[Row]:
        return self._rows.values()

    def add(self, rows: Iterable[Row]) -> None:
        """Write rows down, in one piece."""
        rows = list(rows)
        data = b"".join(_line(row) for row in rows)
        while data:
            data = data[os.write(self._file, data) :]
        self._keep(rows)
        self._added |= bool(rows)

    def close(self) -> None:
        """Write what has to be at the end: the Parquet file, or the lines without those that others have replaced."""
        try:
            if self._columnar and (self._added or not self._path.exists()):
                atomic_write(self._path, to_parquet(self._rows.values()))
            elif not self._columnar and self._superseded:
                atomic_write(self._path, b"".join(map(_line, self._rows.values())))
            if self._columnar:
                self._lines.unlink(missing_ok=True)
        finally:
            os.close(self._file)

    def abandon(self) -> None:
        """Leave all as it is for the next call."""
        os.close(self._file)

    def _read(self) -> None:
        content = b""
        with suppress(OSError), open_regular(self._lines) as stream:
            content = stream.read()
        whole = content[: content.rfind(b"\n") + 1]
        found = []
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                found.append(Row.from_dict(json.loads(line)))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{self._lines} is no file of `irrun sweep` (line {number}): {error}") from None
        torn = content[len(whole) :]
        if not _BEGINNING.startswith(torn[: len(_BEGINNING)]):
            raise ValueError(f"{self._lines} is no file of `irrun sweep` (its last line): give another one")
        if torn:  # by a kill
            os.ftruncate(self._file, len(whole))
        self._added |= bool(found)
        self._keep(found)

    def _keep(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._superseded |= row.place in self._rows
            self._rows[row.place] = row


def _line(row: Row) -> bytes:
    return json.dumps(row.to_dict(), allow_nan=False).encode() + b"\n"


def _read_parquet(path: Path, content: bytes) -> list[Row]:
    try:
        return from_parquet(content)
    except ValueError as error:
        raise ValueError(f"{path} is no file of `irrun sweep`: {error}") from None
