"""Files that are written whole or not at all, and files that are read without waiting for anyone."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

_CHUNK = 1 << 24
"""Bytes that are read at once."""


class Unwritten(OSError):
    """The temporary folder takes no more of what we keep there: no layer, model or device is at fault."""

    def __str__(self) -> str:
        where = f"the temporary folder {self.filename} cannot be written: " if self.filename else ""
        return f"{where}{self.strerror}"


@contextmanager
def temporary() -> Iterator[None]:
    """What is written to the temporary folder, or to one in it. Raises Unwritten."""
    try:
        yield
    except OSError as error:
        raise unwritten(error.errno, error.strerror or str(error)) from error


def unwritten(errno: int | None, reason: str) -> Unwritten:
    """The error that the temporary folder of this process, or one in it that is another process's, is not written."""
    import tempfile

    try:
        return Unwritten(errno, reason, tempfile.gettempdir())
    except FileNotFoundError as error:  # where no folder can be written that may be one
        return Unwritten(error.errno, error.strerror)


def is_there(name: str | os.PathLike[str]) -> bool:
    """Whether there is a file or a folder of a name, which may be no name of any: methods of Path raise for some."""
    return os.path.exists(name)  # noqa: PTH110


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


def read_most(stream: IO[bytes], size: int) -> bytes:
    """All that there is, up to `size` bytes. Raises OSError.

    `read` asks for memory for as much as it may read, and there may not be so much where there is little to read.
    """
    chunks = []
    while size and (chunk := stream.read(min(size, _CHUNK))):
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def hold(file: int) -> bool:
    """Keep others who hold it, too, away from an open file until it is closed, where the system can; whether none does
    already."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        pass
    return True


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of `path` only if nothing goes wrong. Raises OSError.

    A link stays one and leads to the new content, and whoever could read the old one can read that; a device or a pipe
    is written to as it is, from its beginning to its end.
    """
    mode = _mode(path)
    if mode is not None and not stat.S_ISREG(mode):
        with io.BufferedWriter(_Device(path, "wb")) as stream:
            yield stream
        return
    target = path.resolve()
    temporary = target.with_name(f".{target.name[:50]}.{os.urandom(8).hex()}")  # 255 bytes are the most that names have
    with _begun(temporary, path) as stream:
        try:
            if mode is not None:
                temporary.chmod(stat.S_IMODE(mode))
            yield stream
            stream.close()  # what it still holds may not fit
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _begun(temporary: Path, path: Path) -> IO[bytes]:
    """A file that will take the place of `path`. Raises OSError, of that."""
    try:
        return temporary.open("xb")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _mode(path: Path) -> int | None:
    """The mode of the file, its kind and who may do what with it; None where there is none. Raises OSError."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


class _Device(io.FileIO):
    """What has no places to seek, even if it says so: /dev/null is at byte 0 whatever was written."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise io.UnsupportedOperation("a device or a pipe has no places")

    def tell(self) -> int:
        raise io.UnsupportedOperation("a device or a pipe has no places")


@contextmanager
def whole_pair(first: Path, second: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Two files to write that take the places of `first` and `second` together, if nothing goes wrong. Raises OSError.

    Whoever looks meanwhile, or after a power failure, finds the old two, or no `second`, or the new two, but never one
    of each. The old ones lie beside under hidden names until both new ones are there.
    """
    with ExitStack() as stack:
        # undone the other way round: `first` is the old one again before `second` is there
        last, opening = (stack.enter_context(_Replacement(path)) for path in (second, first))
        opened = opening, last
        yield opened[0].stream, opened[1].stream
        for replacement in opened:
            replacement.stream.close()  # what it still holds may not fit
        for replacement in reversed(opened):
            replacement.put_aside()
        for replacement in opened:
            replacement.put_in_place()
        for replacement in opened:
            replacement.keep()


class _Replacement:
    """A file that is written beside the one whose place it takes; whatever it has done is undone unless it is kept."""

    def __init__(self, path: Path) -> None:
        mode = _mode(path)
        regular = mode is None or stat.S_ISREG(mode)
        self._exists = mode is not None and regular
        self._target = path.resolve() if regular else path
        name = f".{self._target.name[:50]}.{os.urandom(8).hex()}"  # 255 bytes are the most that names have
        self._temporary = self._target.with_name(name) if regular else None
        self._aside = self._target.with_name(f"{name}.old")
        self._moved = self._placed = self._kept = False
        self.stream = path.open("wb") if self._temporary is None else _begun(self._temporary, path)
        if mode is not None and self._temporary is not None:
            self._temporary.chmod(stat.S_IMODE(mode))

    def __enter__(self) -> _Replacement:
        return self

    def put_aside(self) -> None:
        if self._exists:
            self._target.replace(self._aside)
            self._moved = True

    def put_in_place(self) -> None:
        if self._temporary is not None:
            self._temporary.replace(self._target)
            self._placed = True

    def keep(self) -> None:
        self._kept = True

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # what it still holds may not fit, as was said already
            self.stream.close()
        if self._kept:
            self._aside.unlink(missing_ok=True)
            return
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)
        if self._moved:
            self._aside.replace(self._target)
        elif self._placed:
            self._target.unlink(missing_ok=True)


def atomic_write(path: Path, content: bytes) -> None:
    """Write a file that takes the place of `path` only when it is complete. Raises OSError."""
    with whole_file(path) as stream:
        stream.write(content)
