"""By what a CI system knows a file and a diagnostic again: a path from the root of what it has checked out, and a
fingerprint."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from irrun.diagnostics import Diagnostic

if TYPE_CHECKING:
    from irrun.check.validate import Report


_CHECKED_OUT = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
"""Variables of GitHub and GitLab that say where it is: steps may run in folders below."""


def relative_path(path: Path) -> str:
    """The path from there, else from the current directory, with forward slashes; as it is where it leads elsewhere."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100, Path.absolute leaves `..` in it
    roots = [Path(root) for root in map(os.environ.get, _CHECKED_OUT) if root]
    inside = (absolute.relative_to(root) for root in (*roots, Path.cwd()) if absolute.is_relative_to(root))
    return next(inside, path).as_posix()


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
