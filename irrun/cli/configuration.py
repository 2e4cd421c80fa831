"""Defaults of `irrun validate` from the table [tool.irrun] of a pyproject.toml; the command line wins over them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from irrun.cli.options import FORMAT_NAMES, note_read, parse_codes
from irrun.files import open_regular

_KEYS = ("select", "ignore", "strict", "format")


def read_defaults(context: click.Context, parameter: click.Parameter, config: Path | None) -> None:
    """The callback of an eager option, whose value is the file to read or None to look for one."""
    for path in [config] if config else _candidates():
        table = _table(path)
        if table is None:
            if config:
                raise click.UsageError(f"{path} has no table [tool.irrun]", context)
            continue
        for key, value in table.items():
            try:
                _check(key, value)
            except ValueError as error:
                raise click.UsageError(f"[tool.irrun] of {path}: {error}", context) from None
        context.default_map = table
        note_read(context, path)
        return


def overrides(context: click.Context, name: str) -> bool:
    """Whether the command line itself gives an option, by the name of its parameter."""
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def _candidates() -> list[Path]:
    """The pyproject.toml files upwards from the current directory, the nearest first."""
    here = Path.cwd()
    paths = [folder / "pyproject.toml" for folder in (here, *here.parents)]
    return [path for path in paths if path.is_file()]


def _table(path: Path) -> dict[str, Any] | None:
    import tomllib  # 2 ms, which only those wait who have such a file

    try:
        with open_regular(path) as stream:
            content = tomllib.load(stream)
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{path} cannot be read: {error}") from None
    tools = content.get("tool")
    table = tools.get("irrun") if isinstance(tools, dict) else None
    if table is not None and not isinstance(table, dict):
        raise click.UsageError(f"{path}: `irrun` of [tool] is not a table")
    return table


def _check(key: str, value: Any) -> None:
    """Raises ValueError for a key or a value that the table cannot have."""
    if key in ("select", "ignore"):
        if not isinstance(value, list) or not all(isinstance(code, str) for code in value):
            raise ValueError(f"`{key}` must be a list of codes")
        parse_codes(value)
    elif key == "strict":
        if not isinstance(value, bool):
            raise ValueError("`strict` must be true or false")
    elif key == "format":
        if value not in FORMAT_NAMES:
            raise ValueError(f"`format` is {value!r}, but must be one of {', '.join(FORMAT_NAMES)}")
    else:
        raise ValueError(f"there is no key `{key}`; the keys are {', '.join(_KEYS)}")
