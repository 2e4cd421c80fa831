"""irrun strip: a model that can be shown to others."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from irrun.cli.configuration import overrides
from irrun.cli.files import WRITTEN_MODEL, keep_apart, require_files, writing
from irrun.cli.options import MODEL, WEIGHTS, Number, failures_said, ops_option, say, tell
from irrun.cli.progress import progress
from irrun.diagnostics import counted

if TYPE_CHECKING:
    from irrun.ir.graph import Model
    from irrun.spec.op import Array


@click.command()
@MODEL
@WEIGHTS
@WRITTEN_MODEL
@click.option(
    "--values",
    type=click.Choice(["random", "zero", "keep"]),
    default="random",
    show_default=True,
    help="What the weights become: random ones of the same range and number of zeros, floats also of the same mean and "
    "deviation, or zeros. Short integers, which are shapes and axes, stay as they are, and numbers in order are in "
    "order again.",
)
@click.option(
    "--names",
    type=click.Choice(["hash", "keep"]),
    default="hash",
    show_default=True,
    help="What the names of layers, tensors and variables become.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the random weights.")
@click.option(
    "--inputs",
    "archive",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="An .npz file with an array per input, for --check; it is written beside the model under its new names, as "
    "NAME_inputs.npz, with the values that it has.",
)
@click.option("--check", "command", metavar="CMD", help="Say whether the model fails still; as in `irrun reduce`.")
@click.option("--fail-code", type=click.IntRange(0, 255), metavar="N", help="As in `irrun reduce`.")
@click.option("--fail-regex", "pattern", metavar="RE", help="As in `irrun reduce`.")
@click.option("--timeout", type=Number(0.1), default=60.0, show_default=True, help="Seconds of --check.")
@ops_option
@click.pass_context
def strip(
    context: click.Context,
    /,
    model: Path,
    weights: Path | None,
    output: Path,
    values: str,
    names: str,
    seed: int,
    archive: Path | None,
    command: str | None,
    fail_code: int | None,
    pattern: str | None,
    timeout: float,
) -> None:
    """Make a model that can be shown to others: other weights, names that are hashes, no runtime info, no comments.

    MODEL is an .xml file. Constants of one value, and shapes and axes, stay as they are, so that it is a model still.

    Exit status: 0 it was written, and with --check fails as before; 1 it does not, or the model is at fault; 2 wrong
    use.
    """
    if command is not None and "{model}" not in command:
        raise click.BadParameter(
            "the command needs {model}, where the model's file goes", context, param_hint="--check"
        )
    if command is None and (fail_code is not None or pattern is not None):
        raise click.UsageError("--fail-code and --fail-regex go with --check", context)
    if command is None and overrides(context, "timeout"):
        raise click.UsageError("--timeout goes with --check", context)
    if values != "random" and overrides(context, "seed"):
        raise click.UsageError(f"--seed is that of random weights, which --values {values} does not make", context)
    try:
        searched = None if pattern is None else re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise click.BadParameter(str(error), context, param_hint="--fail-regex") from None
    inputs = output.with_name(f"{output.stem}_inputs.npz")
    targets = [output, output.with_suffix(".bin"), inputs if archive else None]
    require_files(context, model, weights)
    keep_apart(context, model, weights, [archive], targets)

    from irrun.diagnostics import InputError
    from irrun.ir.reader import read_model
    from irrun.ir.weights import WeightsError
    from irrun.run.arrays import read_npz
    from irrun.tools.strip.stripping import strip as stripped

    with failures_said(context, lambda _: None), progress("stripping"):
        given = read_model(model, weights)
        try:
            found = stripped(given, weights=values, names=names, seed=seed)
        except WeightsError as error:
            raise InputError(str(error)) from None
        arrays = read_npz(archive) if archive else None
        _require_inputs(given, arrays or {})
    renamed = None if arrays is None else {found.names.get(name, name): array for name, array in arrays.items()}
    _write(context, found.model, output, inputs, renamed)
    tell(f"{output}: {counted(found.constants, 'constant')} and {counted(len(found.names), 'name')} changed")
    if command is None:
        return

    from irrun.tools.reduce.commands import Command
    from irrun.tools.reduce.outcome import NOT_MADE

    check = Command(command, fail_code, searched, timeout)
    with TemporaryDirectory(prefix="irrun-") as folder:
        before = Path(folder) / "model.xml"
        _write(context, given, before, Path(folder) / "inputs.npz", arrays)
        first, second = check(before, Path(folder) / "inputs.npz"), check(output, inputs)
    for outcome in (first, second):
        if outcome.signature == NOT_MADE:
            raise click.BadParameter(outcome.detail, context, param_hint="--check")
    if not first.fails:
        say("error", f"{model} does not fail itself")
    elif second.like(first):
        tell(f"it fails as before: {first.kind}")
        return
    else:
        say("error", f"it does not fail as before ({first.kind}), but {second.kind if second.fails else 'not at all'}")
    context.exit(1)


def _require_inputs(model: Model, arrays: dict[str, Array]) -> None:
    """Raises InputError where an array is of no input: its name, and what it holds, would be shared as they are."""
    from irrun.check.validate import find_input
    from irrun.diagnostics import InputError

    problems = []
    for name in arrays:
        try:
            find_input(model, name)
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise InputError(*problems)


def _write(context: click.Context, model: Model, output: Path, inputs: Path, arrays: dict[str, Array] | None) -> None:
    from irrun.ir.writer import write_model
    from irrun.run.arrays import write_npz

    with writing(context, output):
        write_model(model, output)
    if arrays is not None:
        with writing(context, inputs):
            write_npz(inputs, arrays)
