"""Files that are written whole or not at all, and files that are read without waiting for anyone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def open_regular(path: Path) -> IO[bytes]:
    """A file to read; what is no regular file may block, or never end. Raises OSError."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError("it is not a regular file")
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    stream = os.fdopen(handle, "rb")
    if not stat.S_ISREG(os.fstat(handle).st_mode):  # it took the place of the one before
        stream.close()
        raise OSError("it is not a regular file any more")
    return stream


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of `path` only if nothing goes wrong. Raises OSError.

    A link stays one and leads to the new content; a device or a pipe is written to as it is.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if not stat.S_ISREG(mode):
        with path.open("wb") as stream:
            yield stream
        return
    target = path.resolve()
    temporary = target.with_name(f".{target.name[:50]}.{os.urandom(8).hex()}")  # 255 bytes are the most that names have
    with temporary.open("xb") as stream:
        try:
            yield stream
            stream.close()  # what it still holds may not fit
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def atomic_write(path: Path, content: bytes) -> None:
    """Write a file that takes the place of `path` only when it is complete. Raises OSError."""
    with whole_file(path) as stream:
        stream.write(content)
