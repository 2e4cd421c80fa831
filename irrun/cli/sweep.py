"""irrun sweep: many models on many inputs and devices, by processes of this machine or by a cluster."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from irrun.cli.comparing import CONFIG, FAILED
from irrun.cli.files import STANDARD, existing_folder, keep_apart, write_text, writing, written_file
from irrun.cli.options import ENGINE, MAX_MEMORY, PRECISION, Number, colour, ops_option, paint, say
from irrun.cli.progress import progress

RESULTS = (".jsonl", ".parquet")
"""How files of results end."""


def _things(context: click.Context, parameter: click.Parameter, text: str) -> tuple[str, ...]:
    from irrun.tools.sweep.tasks import DO

    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in DO:
            raise click.BadParameter(f"`{name}` is none of {', '.join(DO)}", context, parameter)
    return names


def _results(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and path.suffix.lower() not in RESULTS:
        raise click.BadParameter(f"{path} ends in neither of {' and '.join(RESULTS)}", context, parameter)
    return existing_folder(context, parameter, path)


def _tolerances(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    if given:
        from irrun.tools.compare.tolerances import parse

        for text in given:
            try:
                parse(text)
            except ValueError as error:
                raise click.BadParameter(str(error), context, parameter) from None
    return given


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option(
    "--do",
    required=True,
    metavar="WHAT",
    callback=_things,
    help="validate, inspect, execute or compare, or several of them with commas.",
)
@click.option(
    "--inputs",
    multiple=True,
    metavar="GLOB",
    help="The .npz files that each model is run on; {folder} stands for the folder of a model, {name} for its name "
    "without .xml. May be given several times.",
)
@click.option(
    "--random",
    "seeds",
    type=click.IntRange(0),
    multiple=True,
    metavar="SEED",
    help="Make inputs up; several seeds are as many sets of inputs.",
)
@click.option(
    "--against",
    multiple=True,
    metavar="OTHER",
    help="What --do compare compares with, as in `irrun compare`: ov:CPU, engine:numpy, {folder}/{name}.onnx, ... May "
    "be given several times.",
)
@click.option(
    "--jobs",
    metavar="N",
    help="How many processes do it, as many as processors by default; or dask://HOST:PORT, the scheduler of a cluster; "
    "or local-cluster, one of dask on this machine.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    callback=_results,
    help="Write a row for each task to a .jsonl or .parquet file. What is in it already is not done again.",
)
@click.option("--again", is_flag=True, help="Do again what has crashed, failed or taken too long before.")
@click.option(
    "--timeout",
    type=Number(0.1),
    default=600.0,
    show_default=True,
    help="Seconds that a task may take.",
)
@click.option(
    "--threads",
    type=click.IntRange(1),
    metavar="N",
    help="How many threads compute in each process; processors by processes, by default, and 1 on clusters.",
)
@written_file("--junit", help="Write the results as JUnit XML.")
@written_file("--matrix", help="Write an HTML page: models by what was done, on which device.")
@click.option(
    "--tol",
    "tolerances",
    multiple=True,
    metavar="[NAME:]TOLERANCE",
    callback=_tolerances,
    help="What outputs may differ by, as in `irrun compare`.",
)
@CONFIG
@click.option("--outputs-only", is_flag=True, help="Compare outputs, and no tensors on the way.")
@ENGINE
@PRECISION
@MAX_MEMORY
@partial(ops_option, exposed=True)  # workers load them, too
@click.pass_context
def sweep(
    context: click.Context,
    models: tuple[str, ...],
    do: tuple[str, ...],
    inputs: tuple[str, ...],
    seeds: tuple[int, ...],
    against: tuple[str, ...],
    jobs: str | None,
    output: Path | None,
    again: bool,
    timeout: float,
    threads: int | None,
    junit: Path | None,
    matrix: Path | None,
    tolerances: tuple[str, ...],
    config: dict[str, str],
    outputs_only: bool,
    engine: str,
    precision: str | None,
    max_memory: int | None,
    ops_files: tuple[Path, ...],
) -> None:
    """Do something with many models, on many inputs, on several devices.

    MODEL is an .xml file, a folder of them, or a pattern such as "models/**/*.xml". Each task is done in a process that
    may crash or hang, which is a row of the results like any other. The same command again goes on where it was ended,
    and does nothing where nothing has changed: models, inputs, options and versions count, names and dates do not.

    Exit status: 0 all is well; 1 a model, its inputs or a comparison is at fault; 2 wrong use; 3 something could not be
    done: a device failed, a task crashed or took too long.
    """
    unquoted = next((name for name in models if name.lower().endswith(".npz")), None)
    if unquoted is not None:
        raise click.UsageError(f"{unquoted} is no model: quote the pattern of --inputs", context)
    if "compare" in do and not against:
        raise click.UsageError("--do compare needs --against OTHER, such as ov:CPU", context)
    if against and "compare" not in do:
        raise click.UsageError("--against goes with --do compare", context)
    if junit == matrix == STANDARD:
        raise click.UsageError("--junit and --matrix cannot both go to standard output", context)
    if (inputs or seeds) and not {"execute", "compare"} & set(do):
        raise click.UsageError("--inputs and --random go with --do execute and compare", context)

    from irrun.diagnostics import EngineError
    from irrun.engines import load_engines
    from irrun.ir.discovery import find_models
    from irrun.tools.sweep.clusters import opened
    from irrun.tools.sweep.course import Lost
    from irrun.tools.sweep.junit import render_junit
    from irrun.tools.sweep.matrix import check_template, render_matrix
    from irrun.tools.sweep.rows import AT_FAULT, OK
    from irrun.tools.sweep.summary import text
    from irrun.tools.sweep.sweeping import swept
    from irrun.tools.sweep.tasks import Settings, is_file, plan

    settings = Settings(
        timeout,
        threads,
        engine,
        precision,
        max_memory,
        tolerances,
        tuple(sorted(config.items())),
        outputs_only,
        tuple(str(path) for path in ops_files),
    )
    try:
        if matrix is not None:
            check_template()
        if "execute" in do and engine == "onednn":  # the one that may lack; to load it takes a while
            load_engines(engine, 1)
        with progress("sweeping") as shown:
            paths, skipped = find_models(models)
            planned = plan(paths, do, inputs, seeds, against, settings)
            given = {Path(task.inputs) for task in planned.tasks if is_file(task.inputs)}
            given |= {Path(task.device) for task in planned.tasks if task.do == "compare"}
            keep_apart(context, None, None, [*paths, *given], [output, junit, matrix])

            def tell(done: int, of: int) -> None:
                shown.done, shown.total = done, of

            with opened(jobs) as (executor, slots), writing(context, output):
                found = swept(planned, output, executor, slots, again=again, tell=tell)
    except FileNotFoundError as error:
        raise click.BadParameter(str(error), context) from None
    except Lost as error:
        say("error", str(error))
        context.exit(FAILED)
    except (EngineError, ValueError) as error:
        raise click.UsageError(str(error), context) from None
    if skipped:
        say("note", f"{skipped} other .xml file{'s' * (skipped != 1)} skipped")
    for path, render in ((junit, render_junit), (matrix, render_matrix)):
        if path is None:
            continue
        content = render(found.rows)
        if path == STANDARD:
            write_text(context, content.decode(), None)
        else:
            from irrun.files import atomic_write

            with writing(context, path):
                atomic_write(path, content)
    said = text(found, paint).encode("utf-8", "backslashreplace").decode()
    click.echo(said, err=STANDARD in (junit, matrix), color=colour())
    bad = {row.status for row in found.rows} - {OK}
    context.exit(FAILED if bad - set(AT_FAULT) else 1 if bad else 0)
