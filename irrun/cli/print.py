"""irrun print: a model as text that `git diff` can show."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from irrun.cli.files import STANDARD, read_standard_input, require_files, write_text
from irrun.cli.options import WEIGHTS, failures_said, ops_option, say


@click.command(name="print")
@click.argument("model", type=click.Path(path_type=Path, allow_dash=True))
@WEIGHTS
@click.option("--no-weights", is_flag=True, help="Do not look for the .bin: constants are printed by type and shape.")
@click.option("--names", is_flag=True, help="Print names as the file has them, also those that are only counted out.")
@click.option(
    "--textconv",
    is_flag=True,
    help="For git: without weights, which it does not hand over, and with files that are no models as they are.",
)
@ops_option
@click.pass_context
def print_(
    context: click.Context, model: Path, weights: Path | None, no_weights: bool, names: bool, textconv: bool
) -> None:
    """Print a model as text, a line for each layer: what it computes of what, its type and shape.

    The order of the lines, and the names, do not depend on ids, on the order of the file or on numbers that converters
    count out, so that texts of two versions of a model differ where these do. MODEL is an .xml file, or - for standard
    input.

    \b
    To see models so in `git diff`, `git log -p` and `git show`:
        git config diff.irrun.textconv "irrun print --textconv"
        echo "*.xml diff=irrun" >> .gitattributes
    """
    no_weights |= textconv
    if no_weights and weights is not None:
        raise click.UsageError("--bin does not go with --no-weights and --textconv", context)
    require_files(context, weights, model=model)

    from irrun.diagnostics import IRError
    from irrun.tools.printing import print_model

    with failures_said(context, lambda _: None):
        source = read_standard_input() if model == STANDARD else model
        try:
            text = print_model(source, weights, without_weights=no_weights, names=names)
        except IRError:
            if not textconv or model == STANDARD:
                raise
            _pass_on(context, model)
            return
    write_text(context, text, None)


def _pass_on(context: click.Context, path: Path) -> None:
    """Write a file to standard output as it is: git shows nothing of any file where one cannot be converted."""
    from irrun.files import open_regular

    try:
        with open_regular(path) as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
    except OSError as error:
        say("error", f"{path} cannot be read: {error.strerror or error}")
        context.exit(1)
