"""By what a CI system knows a file and a diagnostic again: a path from the current directory, and a fingerprint."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from irrun.diagnostics import Diagnostic

if TYPE_CHECKING:
    from irrun.check.validate import Report


def relative_path(path: Path) -> str:
    """The path from the current directory with forward slashes; as it is where it leads elsewhere."""
    here = Path.cwd()
    return (path.relative_to(here) if path.is_relative_to(here) else path).as_posix()


def identified(reports: Sequence[Report]) -> Iterator[tuple[Diagnostic, str, str]]:
    """Each diagnostic with the relative path of its file and a fingerprint that no other one has.

    A fingerprint does not depend on lines and columns, so it outlives edits elsewhere in the file.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    for report in reports:
        path = relative_path(report.path)
        for diagnostic in report.diagnostics:
            layer = (diagnostic.layer.name, diagnostic.layer.type) if diagnostic.layer else ()
            parts = (path, diagnostic.code, diagnostic.message, *layer)
            content = "\0".join((*parts, str(seen[parts])))
            seen[parts] += 1
            yield diagnostic, path, hashlib.sha256(content.encode("utf-8", "backslashreplace")).hexdigest()
