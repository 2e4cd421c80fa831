""".github/CONTRIBUTING.md: the map of the code names every module, and nothing that is not there."""

import ast
import re
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
MAP = (ROOT / ".github" / "CONTRIBUTING.md").read_text()
FOLDERS = ("irrun", "opsets", "samples", "tests", ".ci")
PATH = re.compile(r"[\w./-]*/[\w./-]*|[\w-]+\.(py|json|txt|md|toml)")


def named():
    """The modules of the list, by the headings that they stand below."""
    listed = MAP.partition("\n## Modules\n")[2]
    _, *parts = re.split(r"^### `([\w/]+/)`$", listed, flags=re.MULTILINE)
    return [
        folder + name
        for folder, text in zip(parts[::2], parts[1::2], strict=True)
        for name in re.findall(r"^- `(\w+\.py)`: \S", text, re.MULTILINE)
    ]


def modules():
    """The modules that there are, packages left out, by the lines that the list may have of them."""
    found = {}
    for path in sorted(path for folder in ("irrun", "opsets") for path in (ROOT / folder).rglob("*.py")):
        if path.name != "__init__.py":
            first, *_ = (ast.get_docstring(ast.parse(path.read_text())) or "").splitlines() or [""]
            found[path.relative_to(ROOT).as_posix()] = f"- `{path.name}`: {first}"
    return found


def written():
    """The paths that stand in the text, whole or from some folder on."""
    words = [word for quoted in re.findall(r"`([^`\n]+)`", MAP) for word in quoted.split()]
    return sorted({word for word in words if PATH.fullmatch(word)})


def test_every_module_is_on_the_map_and_every_one_on_the_map_is_there():
    listed, there = named(), modules()
    missing = [f"{path}, such as {line}" for path, line in there.items() if path not in listed]
    assert not missing, "\n".join(missing)
    assert sorted(listed) == sorted(there)


def test_every_path_on_the_map_is_there():
    ends = set()  # as texts name files from some folder on
    for path in (path for folder in FOLDERS for path in (ROOT / folder, *(ROOT / folder).rglob("*"))):
        parts = path.relative_to(ROOT).parts
        ends |= {PurePosixPath(*parts[start:]) for start in range(len(parts))}
    assert [path for path in written() if PurePosixPath(path) not in ends] == []
