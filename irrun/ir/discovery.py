"""From what a user names, folders and patterns too, to the files that are models, by their first bytes."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.parsers import expat

_HEAD_BYTES = 1 << 16

_CUT = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?.*?\?>\s*)?+(?:<!--.*?-->\s*)*+<(?:net(?![\w.:-])|(?:ne?)?\Z)", re.DOTALL
)
"""How the text of a model begins that is cut within its first tag, or broken there."""


def find_models(named: Sequence[str], skip_foreign: bool = False) -> tuple[list[Path], int]:
    """The models, each once, and the number of .xml files that were skipped because they are none.

    A folder stands for the models in it and below; a file is taken as it is, unless `skip_foreign`, which also takes a
    .bin for the model that it belongs to. Raises FileNotFoundError with a sentence where there is nothing; of several
    names, one that leads nowhere is left to the reader.
    """
    found: dict[Path, None] = {}
    skipped: set[Path] = set()
    for path in _expanded(named, several=len(named) > 1):
        folder = _is_folder(path)
        if skip_foreign and path.suffix.lower() == ".bin":  # of a model, or of something else
            path = path.with_suffix(".xml")
            if not path.exists():
                continue
        for file in _xml_files(path) if folder else [path]:
            if (folder or skip_foreign) and is_foreign(file):
                skipped.add(file)
            else:
                found[file] = None
    if not found and not skip_foreign:
        raise FileNotFoundError(f"there is no model in {', '.join(named)}")
    return list(found), len(skipped)


def is_foreign(path: Path) -> bool:
    """Whether the file is not meant to be a model: its root element is not <net>, or cannot be told, and the file has
    something else in it and no .bin beside it."""
    try:
        if not path.is_file():
            return False  # to open it might never end; the reader says what is wrong with it
        with path.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
    except OSError:
        return False
    root = root_tag(head)
    if root is None:
        return bool(head) and not _CUT.match(head) and not path.with_suffix(".bin").exists()
    return root.lower() != "net"


class _Found(Exception):
    """Stops the parser at the root element."""


def root_tag(head: bytes) -> str | None:
    """The tag of the root element of the XML text that begins with `head`; None where it cannot be told."""

    def found(tag: str, *_: object) -> None:
        raise _Found(tag)

    parser = expat.ParserCreate()
    parser.StartElementHandler = found
    parser.StartDoctypeDeclHandler = found  # names the root, and what follows it may be a bomb
    try:
        parser.Parse(head)
    except _Found as stop:
        return str(stop)
    except (expat.ExpatError, LookupError, ValueError):
        return None
    return None


def _expanded(named: Sequence[str], several: bool) -> Iterator[Path]:
    for name in named:
        if not name:  # a variable of a shell that is not set, which Path takes for the current folder
            raise FileNotFoundError("one of the names is empty")
        path = Path(name)
        if _exists(path):
            yield path
            continue
        matches = sorted(glob.glob(name, recursive=True))  # noqa: PTH207, Path.glob takes no absolute patterns
        if not matches and not several:
            pattern = glob.has_magic(name)
            raise FileNotFoundError(f"no file matches {name}" if pattern else f"there is no file {name}")
        yield from map(Path, matches or [name])


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True  # the reader says what is wrong with it


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _xml_files(folder: Path) -> Iterator[Path]:
    for inner, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(inner, name) for name in sorted(names) if name.lower().endswith(".xml"))
