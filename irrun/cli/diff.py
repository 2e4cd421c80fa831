"""irrun diff: what differs between two models."""

from __future__ import annotations

from pathlib import Path

import click

from irrun.cli.configuration import overrides
from irrun.cli.files import require_files, write_text
from irrun.cli.options import MAX_MEMORY, failures_said, ops_option, random_option, warnings_said
from irrun.cli.progress import progress

ASPECTS = ("names", "ids", "order", "rt_info", "weights", "precision", "shapes")
"""`IGNORABLE` of irrun.tools.diff, which is imported only where it is needed: `irrun --help` must not wait."""

VALUES = ("exact", "close", "stats")
"""Its `WEIGHTS`."""

FORMATS = ("text", "json")
"""Its renderers."""

DIFFERS = 1


def _aspects(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> frozenset[str]:
    found = [part.strip() for text in given for part in text.split(",") if part.strip()]
    for aspect in found:
        if aspect not in ASPECTS:
            raise click.BadParameter(f"`{aspect}` is not one of {', '.join(ASPECTS)}", context, parameter)
    return frozenset(found)


@click.command()
@click.argument("before", type=click.Path(path_type=Path), metavar="A")
@click.argument("after", type=click.Path(path_type=Path), metavar="B")
@click.option(
    "--ignore",
    multiple=True,
    metavar="ASPECTS",
    callback=_aspects,
    help=f"Leave out what concerns only {', '.join(ASPECTS[:-1])} or {ASPECTS[-1]}; several with commas. Ids never "
    "count: without them none are printed. Without weights, no values of constants are read, axes and sizes neither, "
    "and the .bin may be missing.",
)
@click.option(
    "--weights",
    "values",
    type=click.Choice(VALUES),
    default=VALUES[0],
    show_default=True,
    help="Which values of constants count as other ones: all that are not the same bits; those beyond 1e-3 of each "
    "number and 1e-5; or those whose mean, deviation or bounds are others.",
)
@click.option(
    "--numeric",
    "archive",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Run both models on the inputs in an .npz file, too, and name the first tensor whose values differ: floats by "
    "more than 1e-3 of each number and 1e-3 of its tensor's root mean square (at least 1e-5).",
)
@random_option("Run both models on random inputs")
@click.option("--format", type=click.Choice(FORMATS), default="text", show_default=True)
@MAX_MEMORY
@ops_option
@click.pass_context
def diff(
    context: click.Context,
    before: Path,
    after: Path,
    ignore: frozenset[str],
    values: str,
    archive: Path | None,
    seed: int | None,
    format: str,
    max_memory: int | None,
) -> None:
    """Say what differs between two models, A and B, in terms of layers, attributes, constants and connections.

    Two models are the same whatever the ids of their layers, the order in the file, the layout of the .bin and the
    formatting are. Other names of layers and of tensors inside the model are told, but make no other model. What
    happened in many places alike is told once.

    Exit status: 0 the same model; 1 another one, or one that cannot be read; 2 wrong use.
    """
    require_files(context, before, after, archive)
    if archive is None and seed is None and overrides(context, "max_memory"):
        raise click.UsageError("--max-memory is that of runs: give --numeric or --random, too", context)

    from irrun.diagnostics import InputError, IRError
    from irrun.run.arrays import read_npz
    from irrun.tools.diff import diff as compare

    def advice(error: str) -> str | None:
        if error.startswith("no array for input"):
            return "give it with --numeric FILE, or --random SEED to make it up"
        return None

    with failures_said(context, advice), warnings_said(), progress("comparing"):
        inputs = read_npz(archive, max_memory) if archive else None
        try:
            found = compare(
                before, after, ignore=ignore, values=values, inputs=inputs, seed=seed, max_memory=max_memory
            )
        except (InputError, IRError):
            if inputs is not None or seed is not None:  # what differs is known where only the runs fail
                without = compare(before, after, ignore=ignore, values=values)
                write_text(context, without.render(format) + "\n", None)
            raise
        text = found.render(format)
    write_text(context, text + "\n", None)
    context.exit(DIFFERS if found else 0)
