"""Where the two files of a model come from: paths, bytes, and open files."""

from __future__ import annotations

import io
import mmap
import os
import stat
from pathlib import Path
from typing import IO

from irrun.ir.weights import Content

Source = str | os.PathLike[str] | Content | IO[bytes]
"""A file: its path, what it holds, or an open binary file, which is read from where it stands. Bytes are not copied,
and must not be changed as long as the model is used."""


def opened(source: Source, name: str) -> tuple[Path, Content | None]:
    """The path of a file and None, or what stands for its path and what it holds, memory-mapped if it can be.

    Raises OSError where it cannot be read, TypeError where it is no binary file.
    """
    if isinstance(source, str | os.PathLike):
        if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith(("<?xml ", "<net ")):
            raise TypeError("a text is no path: give what a file holds as bytes, as in text.encode()")
        return Path(source), None
    if isinstance(source, bytes | bytearray | memoryview | mmap.mmap):
        return Path(f"<{name}>"), source if isinstance(source, bytes) else memoryview(source).toreadonly().cast("B")
    content = _mapped(source)
    if content is not None and isinstance(source.name, str) and not is_memory(Path(source.name)):
        return Path(source.name), content
    given = getattr(source, "name", None)
    label = given if isinstance(given, str) and given.startswith("<") else f"<{name}>"  # <stdin>
    return Path(label), _read(source) if content is None else content


def is_memory(path: Path) -> bool:
    """Whether this is no path, but what stands for that of a text from memory, or from standard input."""
    return str(path).startswith("<")


def _mapped(file: IO[bytes]) -> Content | None:
    try:
        number = file.fileno()
        if not stat.S_ISREG(os.fstat(number).st_mode) or file.tell():
            return None
        return mmap.mmap(number, 0, access=mmap.ACCESS_READ)
    except (AttributeError, io.UnsupportedOperation, ValueError):  # no file of the system, or an empty one
        return None


def _read(file: IO[bytes]) -> bytes:
    if not hasattr(file, "read"):
        raise TypeError(f"{type(file).__name__} is no file: give a path, bytes or an open binary file")
    content = file.read()
    if not isinstance(content, bytes):
        raise TypeError(f"a file that gives {type(content).__name__}: open it in binary mode")
    return content
