"""irrun execute: run a model on given or random inputs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irrun.cli.options import (
    ENGINE,
    MAX_MEMORY,
    MODEL,
    PRECISION,
    THREADS,
    WEIGHTS,
    colour,
    existing_folder,
    failures_said,
    ops_option,
    paint,
    parse_shape_option,
    say,
    show,
    warnings_said,
)

if TYPE_CHECKING:
    from irrun.run.executor import GraphExecutor
    from irrun.run.profile import Profile
    from irrun.spec.op import Array


def _named_file(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, Path]:
    files = {}
    for text in given:
        name, equals, path = text.rpartition("=")
        if not equals:
            raise click.BadParameter(f"`{text}` is not of the form NAME=file.npy", context, parameter)
        files[name] = Path(path)
    return files


@click.command()
@MODEL
@WEIGHTS
@click.option(
    "--inputs", "archive", type=click.Path(path_type=Path), metavar="FILE", help="An .npz file with an array per input."
)
@click.option(
    "--input",
    "files",
    multiple=True,
    metavar="NAME=FILE",
    callback=_named_file,
    help="An .npy file for one input, by name or position; may be given several times.",
)
@click.option("--random", "seed", type=click.IntRange(0), metavar="SEED", help="Make up the inputs that are not given.")
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=1,3,224,224",
    callback=parse_shape_option,
    help="The shape of an input that --random makes up.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    callback=existing_folder,
    help="Write the results to an .npz file.",
)
@MAX_MEMORY
@ENGINE
@PRECISION
@THREADS
@click.option("--profile", is_flag=True, help="Print how long each layer took, and what computed it.")
@click.option(
    "--trace-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    callback=existing_folder,
    help="Write how long each layer took as JSON for chrome://tracing or Perfetto.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="Run N times, to see in a profile what later runs take.",
)
@ops_option
@click.pass_context
def execute(
    context: click.Context,
    model: Path,
    weights: Path | None,
    archive: Path | None,
    files: dict[str, Path],
    seed: int | None,
    shapes: dict[str, list[str]],
    output: Path | None,
    max_memory: int | None,
    engine: str,
    precision: str | None,
    threads: int | None,
    profile: bool,
    trace_file: Path | None,
    repeat: int,
) -> None:
    """Run a model and print, or write, its results."""
    for path in filter(None, (model, weights, archive, *files.values())):
        if not os.path.exists(path):  # noqa: PTH110, Path.exists raises for some paths
            raise click.BadParameter(f"there is no file {path}", context)

    from irrun.check.render.text import one_line
    from irrun.files import atomic_write
    from irrun.run.executor import GraphExecutor

    measured: Profile | None = None
    if profile or trace_file is not None:
        from irrun.run.profile import Profile

        measured = Profile()

    def advice(_: str) -> str | None:
        given = "give the inputs with --inputs FILE or --input NAME=FILE, or make them up with --random SEED"
        return None if archive or files or seed is not None else given

    with failures_said(context, advice):
        with warnings_said():
            executor = GraphExecutor(
                model,
                weights,
                max_memory=max_memory,
                engine=engine,
                threads=threads,
                once=repeat == 1,
                precision=precision,
            )
        show(executor.report.warnings)
        inputs = _inputs(executor, archive, files, seed, shapes)
        with warnings_said():
            for _ in range(repeat):
                results = executor.run(inputs, profile=measured)
    if profile and measured is not None:
        click.echo(measured.table(), err=True)
    if trace_file is not None and measured is not None:
        trace = measured.trace().encode()
        _write(context, trace_file, lambda: atomic_write(trace_file, trace))
    if output is None:
        for name, array in results.items():
            click.echo(_described(one_line(name), array), color=colour())
        return

    from irrun.run.arrays import write_npz

    _write(context, output, lambda: write_npz(output, results))
    click.echo(one_line(f"{output}: {', '.join(results)}"), err=True)


def _write(context: click.Context, path: Path, write: Callable[[], None]) -> None:
    try:
        write()
    except OSError as error:
        say("error", f"{path} cannot be written: {error.strerror or error}")
        context.exit(1)


def _inputs(
    executor: GraphExecutor,
    archive: Path | None,
    files: dict[str, Path],
    seed: int | None,
    shapes: dict[str, list[str]],
) -> dict[str, Any]:
    from irrun.diagnostics import InputError
    from irrun.run.arrays import read_npy, read_npz

    most = executor.max_memory
    inputs: dict[str, Any] = read_npz(archive, most) if archive else {}
    for name, path in files.items():
        if name in inputs:
            raise InputError(f"`{name}` is given by {archive} and by {path}")
        inputs[name] = read_npy(path, most)
    for name, array in inputs.items():
        if not array.dtype.isnative:
            say("note", f"input `{name}` is in the byte order of other machines ({array.dtype}) and was converted")
    if seed is not None:
        return executor.random_inputs(seed, shapes, inputs)
    return inputs


def _described(name: str, array: Array) -> str:
    """A result in a few lines: its type, shape and values, long ones abbreviated."""
    import numpy as np

    from irrun.spec.dtypes import element_type
    from irrun.spec.patterns import shape_text

    values = np.array2string(array, threshold=24, edgeitems=3, precision=6)
    return f"{paint(name, 'bold')} {element_type(array.dtype)}{shape_text(array.shape)}\n{values}"
