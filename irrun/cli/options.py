"""Options that several commands share, and how they write to a terminal."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

MODEL = click.argument("model", type=click.Path(path_type=Path))
WEIGHTS = click.option(
    "--weights",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The .bin file; the one beside the model by default.",
)

_STYLES: dict[str, dict[str, Any]] = {
    "error": {"fg": "red", "bold": True},
    "warning": {"fg": "yellow", "bold": True},
    "ok": {"fg": "green", "bold": True},
    "bold": {"bold": True},
    "dim": {"fg": "blue"},
}


def paint(text: str, style: str) -> str:
    return click.style(text, **_STYLES[style])


def colour() -> bool | None:
    """What click.echo takes: False for no colour at all, None for colour on terminals only."""
    return False if os.environ.get("NO_COLOR") else True if os.environ.get("FORCE_COLOR") else None


def ops_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """--ops FILE, which loads before the command runs."""

    def load(context: click.Context, parameter: click.Parameter, paths: tuple[Path, ...]) -> tuple[Path, ...]:
        if paths:
            from irrun.spec.registry import load_ops

            for path in paths:
                try:
                    load_ops(path)
                except Exception as error:  # whatever the user's module raises
                    raise click.BadParameter(f"{path}: {type(error).__name__}: {error}", context, parameter) from None
        return paths

    option = click.option(
        "--ops",
        "ops_files",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        multiple=True,
        metavar="FILE",
        callback=load,
        expose_value=False,
        help="A Python module with custom ops; may be given several times. It is run, so trust it.",
    )
    return option(function)


def parse_shape_option(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, list[str]]:
    """NAME=1,3,?,? for each input."""
    shapes = {}
    for text in given:
        name, equals, sizes = text.rpartition("=")
        parts = [part.strip() for part in sizes.split(",")] if sizes.strip() else []
        if not equals or not all(part in ("?", "-1") or part.isdecimal() for part in parts):
            raise click.BadParameter(f"`{text}` is not of the form NAME=1,3,?,?", context, parameter)
        shapes[name] = ["?" if part == "-1" else part for part in parts]
    return shapes
