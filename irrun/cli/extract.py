"""irrun extract: a part of a model as a model of its own."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from irrun.cli.comparing import advice
from irrun.cli.configuration import overrides
from irrun.cli.files import WRITTEN_MODEL, keep_apart, require_files, writing, written_file
from irrun.cli.options import (
    INPUTS,
    MAX_MEMORY,
    MODEL,
    RANDOM,
    RANDOM_SHAPES,
    WEIGHTS,
    failures_said,
    made_up,
    ops_option,
    require_random,
    say,
    tell,
    warnings_said,
)
from irrun.cli.progress import progress
from irrun.diagnostics import counted

if TYPE_CHECKING:
    from irrun.tools.extract.extraction import Extracted


@click.command()
@MODEL
@WEIGHTS
@click.option(
    "--from",
    "begins",
    multiple=True,
    metavar="NAME[:PORT]",
    help="A layer to begin with, or a tensor, by its name or with a port, that is to be an input; may be given several "
    "times.",
)
@click.option(
    "--to",
    "ends",
    multiple=True,
    metavar="NAME[:PORT]",
    help="A layer to end with, or a tensor, by its name or with a port, that is to be an output; may be given several "
    "times.",
)
@click.option("--around", metavar="NAME", help="The layers around this one,")
@click.option(
    "--distance", type=click.IntRange(0), default=1, show_default=True, metavar="N", help="so many steps away."
)
@click.option(
    "--body",
    metavar="NAME[N]",
    help="A part of a body in its iteration N, from 0 on, or -1 for the last one, such as Loop_12[3], If_3/then_body, "
    "or Loop_12[3]/If_3/then_body; all of it unless more is said.",
)
@WRITTEN_MODEL
@INPUTS
@RANDOM
@RANDOM_SHAPES
@click.option(
    "--dynamic",
    type=click.Choice(["keep", "static"]),
    help="Whether sizes that MODEL leaves open stay so; by default they are those of the run, where there is one.",
)
@written_file(
    "--save-inputs", help="Where the inputs of the part go, from that run; by default beside it, as NAME_inputs.npz."
)
@written_file("--save-outputs", help="Where the outputs of the part go; by default beside it, as NAME_expected.npz.")
@MAX_MEMORY
@ops_option
@click.pass_context
def extract(
    context: click.Context,
    /,
    model: Path,
    weights: Path | None,
    begins: tuple[str, ...],
    ends: tuple[str, ...],
    around: str | None,
    distance: int,
    body: str | None,
    output: Path,
    archive: Path | None,
    seed: int | None,
    shapes: dict[str, list[str]],
    dynamic: str | None,
    save_inputs: Path | None,
    save_outputs: Path | None,
    max_memory: int | None,
) -> None:
    """Make a part of a model a model of its own, with the weights that it needs.

    MODEL is an .xml file. With --inputs or --random it is run once, and the part comes with inputs and outputs:

    \b
        irrun extract model.xml --from conv1 --to relu5 -o part.xml --random 7
        irrun execute part.xml --inputs part_inputs.npz --expect part_expected.npz

    What a variable holds in the run becomes an input.
    """
    running = archive is not None or seed is not None
    if not running and (save_inputs or save_outputs or dynamic == "static"):
        raise click.UsageError("this needs a run of the model: give --inputs FILE or --random SEED", context)
    require_random(context, seed, shapes)
    if around is not None and (begins or ends):
        raise click.UsageError("--around does not go with --from and --to", context)
    if around is None and overrides(context, "distance"):
        raise click.UsageError("--distance is that from a layer: name it with --around", context)
    if not (begins or ends or around or body):
        raise click.UsageError("say which part: --from, --to, --around or --body", context)
    kept = (save_inputs or _beside(output, "inputs"), save_outputs or _beside(output, "expected"))
    require_files(context, model, weights)
    keep_apart(context, model, weights, [archive], [output, output.with_suffix(".bin"), *(kept if running else ())])

    from irrun.diagnostics import InputError
    from irrun.ir.reader import read_model
    from irrun.run.arrays import read_npz
    from irrun.run.executor import GraphExecutor
    from irrun.tools.extract import extraction

    with (
        failures_said(context, partial(advice, (archive,) if archive else (), seed)),
        warnings_said(),
        progress("extracting"),
    ):
        given = read_model(model, weights)
        inputs = None
        if running:
            executor = GraphExecutor(given, engine="reference", precision="auto", max_memory=max_memory)
            inputs = read_npz(archive, executor.max_memory) if archive else {}
            inputs = made_up(context, executor, seed, shapes, inputs)
        try:
            found = extraction.extract(
                given,
                begin=begins,
                end=ends,
                around=around,
                distance=distance,
                body=body,
                inputs=inputs,
                dynamic=dynamic == "keep",
                max_memory=max_memory,
            )
        except InputError:
            raise
        except ValueError as error:
            raise click.BadParameter(str(error), context) from None
    _write(context, found, output, *kept)


def _write(context: click.Context, found: Extracted, output: Path, inputs: Path, outputs: Path) -> None:
    from irrun.ir.writer import write_model
    from irrun.run.arrays import write_npz

    with writing(context, output):
        write_model(found.model, output)
    for path, arrays in ((inputs, found.inputs), (outputs, found.outputs)):
        if arrays is not None:
            with writing(context, path):
                write_npz(path, arrays)
    taken = ", ".join(f"{info.name}: {info}" for info in found.model.inputs) or "none"
    given = ", ".join(f"{info.name}: {info}" for info in found.model.outputs)
    tell(f"{output}: {counted(sum(1 for _ in found.model.graph.walk()), 'layer')}; inputs: {taken}; outputs: {given}")
    if found.inputs is None or found.outputs is None:
        return
    tell(f"{inputs}, {outputs}: what these were in the run")
    from irrun.cli.execute import ATOL, RTOL
    from irrun.run.executor import GraphExecutor
    from irrun.run.expectation import differences

    for sentence in differences(GraphExecutor(found.model, once=True).run(found.inputs), found.outputs, RTOL, ATOL):
        say("warning", f"rounding in another order decides here: by the engine auto {sentence}")


def _beside(output: Path, what: str) -> Path:
    return output.with_name(f"{output.stem}_{what}.npz")
