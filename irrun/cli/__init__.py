"""The command line: one module per command, each importing what it needs when it runs."""

from __future__ import annotations

import builtins
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TextIO

import click

from irrun.deferred import defer, defer_part
from irrun.files import Unwritten
from irrun.interruption import INTERRUPTED

UNREAD = 141
"""The exit status where nobody reads standard output to its end, such as `head`: as shells have it, and no other."""

UNWRITABLE = 2
"""The exit status where standard output, or a file, cannot be written."""

COMMANDS = {
    "compare": "Say which layer is wrong first beside a device or another model, and why.",
    "diff": "Say what differs between two models.",
    "edit": "Change a model: shapes, types, target release, preprocessing, borders, names.",
    "execute": "Run a model and print, or write, its results.",
    "explain": "Explain a code, such as E304; without one, list them all.",
    "extract": "Make a part of a model a model of its own, with inputs and expected results.",
    "generate": "Let a language model go on from a prompt.",
    "inspect": "Say what a model is and what it costs.",
    "ops": "List the known operations, or show one.",
    "print": "Print a model as stable text, a line for each layer.",
    "reduce": "Find the smallest model that still fails in the same way.",
    "report": "Write a report of a model: graph, tables and plots in one HTML file.",
    "schema": "Print a RELAX NG grammar of the IR.",
    "strip": "Make a model that can be shared: other weights, names and no runtime info.",
    "sweep": "Do something with many models, on many inputs and devices.",
    "tune": "Find the fewest layers that a device has to compute in f32.",
    "validate": "Check models: format, graph, operations, shapes and weights.",
}
"""Each is what the module of this name calls so, with an underscore behind it where Python has that name; and what it
does, which `irrun --help` says without loading any."""


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Why a disk takes no more."""


class _Commands(click.Group):
    """The commands, of which only the one that runs is loaded, and which an interruption, and a full disk or nobody
    behind standard output, end without a traceback."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = import_module(f"irrun.cli.{name}")
        command: click.Command = getattr(module, f"{name}_" if hasattr(builtins, name) else name)
        return command

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = arguments[0]
        if name not in COMMANDS and not name.startswith("-"):
            from irrun.spelling import close_matches

            near = " or ".join(f"`{known}`" for known in close_matches(name, COMMANDS, likely=True)[:2])
            meant = f"; did you mean {near}?" if near else f"; there are {', '.join(COMMANDS)}"
            raise click.UsageError(f"there is no command `{name}`{meant}", context)
        return super().resolve_command(context, arguments)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _endings():  # help is printed here
            return super().make_context(*args, **kwargs)

    def invoke(self, context: click.Context) -> Any:
        try:
            os.getcwd()  # noqa: PTH109, no Path is needed
        except FileNotFoundError:  # which is no place to look for files, or to write them to
            raise click.UsageError("the current folder does not exist any more: change to another one") from None
        with _endings():
            try:
                return super().invoke(context)
            except click.UsageError as error:
                from irrun.check.render.text import one_line

                raise click.UsageError(one_line(error.format_message()), error.ctx) from None


@contextmanager
def _endings() -> Iterator[None]:
    """End with a status of its own after Ctrl-C, and where standard output or temporary files cannot be written."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError as error:
        if error.filename is not None:
            raise
        _forget(sys.stdout, sys.stderr)
        raise SystemExit(UNREAD) from None
    except Unwritten as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(UNWRITABLE) from None
    except OSError as error:
        if error.filename is not None or error.errno not in _FULL:
            raise
        click.echo(f"error: standard output cannot be written: {error.strerror}", err=True)
        _forget(sys.stdout)
        raise SystemExit(UNWRITABLE) from None


def _forget(*streams: TextIO) -> None:
    """Have what is left of the text of streams go nowhere at the end."""
    with open(os.devnull, "wb") as nothing:  # noqa: PTH123
        for stream in streams:
            os.dup2(nothing.fileno(), stream.fileno())


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="irrun")
def main() -> None:
    """Validate and run OpenVINO IR models by the written specification, without OpenVINO.

    Exit status: 0 fine; 1 the model or its inputs are at fault, or a comparison is; 2 wrong use, or a file that cannot
    be written; 3 the other side of a comparison failed; 130 Ctrl-C; 141 nobody reads what is printed any more; 143
    SIGTERM.
    """
    defer("numpy")
    defer_part("numpy", "_typing", NDArray=list)  # which numpy has in annotations; the rest of it takes 7 ms
