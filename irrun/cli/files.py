"""The files that commands read and write: options for them, and what is said where one is missing or in the way."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from irrun.cli import UNWRITABLE
from irrun.cli.options import colour, files_read, say

STANDARD = Path("-")
"""Standard input, or output."""

STDIN = Path("<stdin>")
"""What the model from standard input is called."""


def existing_folder(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """A file to write whose folder exists."""
    if path is not None and path != STANDARD and not path.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {path.parent} to write to", context, parameter)
    return path


def _model_name(context: click.Context, parameter: click.Parameter, path: Path) -> Path:
    if path.suffix.lower() != ".xml":
        raise click.BadParameter(f"{path} is not the name of an .xml file", context, parameter)
    existing_folder(context, parameter, path)
    return path


def written_file(*names: str, help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option for a file to write; its folder has to exist."""
    return click.option(
        *names, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", callback=existing_folder, help=help
    )


WRITTEN_MODEL = click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="OUT.xml",
    required=True,
    callback=_model_name,
    help="Where the model goes, its .bin beside it.",
)


def read_standard_input() -> bytes:
    """The text of a model, or a little more than one may have."""
    from irrun.files import read_most
    from irrun.ir.reader import MAX_XML_BYTES

    return read_most(sys.stdin.buffer, MAX_XML_BYTES + 1)


def require_files(context: click.Context, *paths: Path | None, model: Path | None = None) -> None:
    """Wrong use where one of the files is not there; the `model` may be `-`, which is standard input."""
    for path in paths if model == STANDARD else (model, *paths):
        if path is not None and not os.path.exists(path):  # noqa: PTH110, methods of Path raise for some
            hint = ", and standard input is not read here" if path == STANDARD else ""
            link = os.path.islink(path)  # noqa: PTH114
            missing = f"the link {path} leads to no file" if link else f"there is no file {path}{hint}"
            raise click.BadParameter(missing, context)


def keep_apart(
    context: click.Context,
    model: Path | None,
    weights: Path | None,
    others: Iterable[Path | None],
    written: Iterable[Path | None],
) -> None:
    """Refuse to write over a file that is read, or twice over one. A model is read with its .bin, also among others."""
    given = [path for path in others if path is not None]
    models = [path for path in given if path.suffix.lower() == ".xml"]
    if model is not None and model != STANDARD:
        given.append(model)
        models += [model] if weights is None else []
    read = [*given, *([] if weights is None else [weights]), *files_read(context)]
    read += [path.with_suffix(".bin") for path in models if path.name]  # which `.` has not
    targets = [path for path in written if path is not None and path != STANDARD]
    for path in targets:
        for other in read:
            with suppress(OSError):
                if path.samefile(other):
                    raise click.BadParameter(f"{path} is read by this run, and would be overwritten", context)
    places = [os.path.realpath(path) for path in targets]
    for number, path in enumerate(targets):
        if places[number] in places[:number]:
            raise click.BadParameter(f"{path} would be written twice", context)


@contextmanager
def writing(context: click.Context, path: Path | None) -> Iterator[None]:
    """Exit where a file cannot be written."""
    from irrun.files import Unwritten

    try:
        yield
    except Unwritten:  # which is another folder
        raise
    except OSError as error:
        say("error", f"{path} cannot be written: {error.strerror or error}")
        context.exit(UNWRITABLE)


def write_text(context: click.Context, text: str, output: Path | None) -> None:
    """Write to a file, whole or not at all; without one, or to `-`, to standard output."""
    data = text.encode("utf-8", "backslashreplace")
    if output is None or output == STANDARD:
        click.echo(data.decode(), nl=False, color=colour())
        return

    from irrun.files import atomic_write

    with writing(context, output):
        atomic_write(output, data)
