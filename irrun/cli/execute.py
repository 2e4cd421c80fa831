"""irrun execute: run a model on given or random inputs."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from irrun.cli.configuration import overrides
from irrun.cli.files import STANDARD, keep_apart, require_files, writing, written_file
from irrun.cli.options import (
    ENGINE,
    MAX_MEMORY,
    MODEL,
    PRECISION,
    RANDOM,
    RANDOM_SHAPES,
    THREADS,
    WEIGHTS,
    Number,
    at_most_one,
    codes_option,
    colour,
    failures_said,
    made_up,
    ops_option,
    paint,
    say,
    show,
    warnings_said,
)
from irrun.cli.progress import Progress, progress
from irrun.cli.watching import Watched, Wishes, watching, watching_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from irrun.diagnostics import Diagnostic
    from irrun.run.executor import GraphExecutor
    from irrun.run.profile import Profile
    from irrun.run.results import Results
    from irrun.spec.op import Array


RTOL, ATOL = 1e-3, 1e-5
"""How far floats may be from those expected, as a part of these and as a number: what rounding in another order makes
of f32."""

SEARCHED = 1 << 16
"""Elements of a result that are searched at a time for what is not finite, few enough for a cache."""


def _named_file(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for text in given:
        name, _, path = text.rpartition("=")
        if not name or not path:
            raise click.BadParameter(f"`{text}` is not of the form NAME=file.npy", context, parameter)
        if name in files:
            raise click.BadParameter(f"`{name}` is given twice: {files[name]} and {path}", context, parameter)
        files[name] = Path(path)
    return files


@click.command()
@MODEL
@WEIGHTS
@click.option(
    "--inputs",
    "archive",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    callback=at_most_one,
    help="An .npz file with an array per input.",
)
@click.option(
    "--input",
    "files",
    multiple=True,
    metavar="NAME=FILE",
    callback=_named_file,
    help="An .npy file for one input, by name or position; may be given several times.",
)
@RANDOM
@RANDOM_SHAPES
@written_file("-o", "--output", help="Write the results to an .npz file; - is standard output.")
@written_file("--save-inputs", help="Write the inputs to an .npz file, such as those that --random made up.")
@click.option(
    "--expect",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Compare with the results in an .npz file, and exit with 1 where one differs.",
)
@click.option("--rtol", type=Number(0), default=RTOL, show_default=True, help="What --expect allows: a part,")
@click.option("--atol", type=Number(0), default=ATOL, show_default=True, help="and a number besides.")
@MAX_MEMORY
@ENGINE
@PRECISION
@THREADS
@click.option("--profile", is_flag=True, help="Print how long each layer took, and what computed it.")
@written_file("--trace-file", help="Write how long each layer took as JSON for chrome://tracing or Perfetto.")
@click.option(
    "--repeat",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="Run N times, and print how long runs take. Variables go on from run to run.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="CODES",
    callback=codes_option,
    help="Compute what kernels can where a layer breaks such a rule, E303, E304, E305 or E401; hide such warnings.",
)
@click.option("-v", "--verbose", is_flag=True, help="Say what computes, and why.")
@watching_options
@ops_option
@click.pass_context
def execute(
    context: click.Context,
    /,
    model: Path,
    weights: Path | None,
    archive: Path | None,
    files: dict[str, Path],
    seed: int | None,
    shapes: dict[str, list[str]],
    output: Path | None,
    save_inputs: Path | None,
    expect: Path | None,
    rtol: float,
    atol: float,
    max_memory: int | None,
    engine: str,
    precision: str | None,
    threads: int | None,
    profile: bool,
    trace_file: Path | None,
    repeat: int,
    ignore: tuple[str, ...],
    verbose: bool,
    **watched: Any,
) -> None:
    """Run a model and print, or write, its results.

    MODEL is an .xml file, or - for standard input.
    """
    gc.disable()  # a model is in use to the end, and runs leave no cycles: to search it takes as long as to plan it
    wishes = Wishes(context, **watched)
    for name in ("rtol", "atol"):
        if expect is None and overrides(context, name):
            raise click.UsageError(f"--{name} says what --expect allows: give --expect FILE, too", context)
    arrays = [archive, expect, *files.values()]
    require_files(context, weights, *arrays, model=model)
    keep_apart(context, model, weights, arrays, [output, save_inputs, trace_file, wishes.dump])

    from irrun.check.ignoring import IGNORABLE, ignorable
    from irrun.check.render.text import one_line
    from irrun.check.validate import validate
    from irrun.files import atomic_write
    from irrun.run.arrays import read_npz, write_npz
    from irrun.run.executor import GraphExecutor

    try:
        passed = ignorable(ignore)
    except ValueError as error:
        raise click.BadParameter(str(error), context, param_hint="--ignore") from None
    if passed and precision not in (None, "declared"):
        raise click.UsageError("--ignore goes with --precision declared", context)
    measured: Profile | None = None
    if profile or trace_file is not None:
        from irrun.run.profile import Profile

        measured = Profile()

    def advice(_: str) -> str | None:
        given = "give the inputs with --inputs FILE or --input NAME=FILE, or make them up with --random SEED"
        return None if archive or files or seed is not None else given

    loaded = False

    def remedy(found: Sequence[Diagnostic]) -> str | None:
        codes = sorted({diagnostic.code for diagnostic in found})
        if loaded or model == STANDARD or not passed.isdisjoint(codes) or not set(codes) <= set(IGNORABLE):
            return None
        if not validate(model, weights, searched=0, ignore=codes).ok:
            return None
        return f"--ignore {','.join(codes)} computes such layers all the same, as far as their kernels can"

    with failures_said(context, advice, remedy):
        with warnings_said(), progress("preparing"):
            executor = GraphExecutor(
                sys.stdin.buffer if model == STANDARD else model,
                weights,
                max_memory=max_memory,
                engine=engine,
                threads=threads,
                once=repeat == 1,
                precision=precision,
                ignore=ignore,
            )
        loaded = True
        hidden = tuple(code for code in ignore if code[0] == "W")
        show([found for found in executor.report.warnings if not found.code.startswith(hidden)])
        inputs = _inputs(context, executor, archive, files, seed, shapes)
        if verbose:
            say("note", executor.engines)
        if save_inputs is not None:
            kept = executor.named(inputs)
            with writing(context, save_inputs):
                write_npz(save_inputs, kept)
        with (
            writing(context, wishes.dump),
            warnings_said(),
            watching(wishes, executor, inputs) as session,
            progress("running", repeat) as shown,
        ):
            shown.tell(lambda: session.doing)
            results, times = _runs(executor, session, inputs, measured, shown, repeat)
        differing, unheld = [], []
        if expect is not None:
            from irrun.run.expectation import differences, in_order, unexpected

            expected = read_npz(expect, executor.max_memory)
            if (ordered := in_order(results, expected)) is not None:
                expected = ordered
                say("note", f"the arrays of {expect} have no names: they are taken for the outputs in their order")
            differing, unheld = differences(results, expected, rtol, atol), unexpected(results, expected)
    session.finish()
    if profile and measured is not None:
        click.echo(measured.table(), err=True)
    elif repeat > 1:
        click.echo(_durations(times), err=True)
    if trace_file is not None and measured is not None:
        trace = measured.trace().encode()
        with writing(context, trace_file):
            atomic_write(trace_file, trace)
    if output is not None:
        _write(context, output, results)
    elif expect is None:
        for name, array in results.items():
            click.echo(_described(one_line(name), array), color=colour())
    doubtful = _not_finite(results)
    if doubtful:
        say("warning", doubtful)
    if unheld:
        say("warning", f"{expect} has no array for {', '.join(f'`{one_line(name)}`' for name in unheld)}")
    for sentence in differing:
        say("error", sentence)
    if expect is not None and not differing:
        rest = "the others are " if unheld else ""
        click.echo(f"{rest}as expected within {rtol:g} of each number and {atol:g}", err=True)
    context.exit(1 if differing or session.failed else 0)


def _runs(
    executor: GraphExecutor,
    session: Watched,
    inputs: Mapping[str, Any],
    measured: Profile | None,
    shown: Progress,
    repeat: int,
) -> tuple[Results, list[float]]:
    """The results of the last of several runs, and how many seconds each took."""
    from irrun.diagnostics import IRError, counted

    times = list[float]()
    for number in shown.each(range(repeat)):
        begin = perf_counter()
        try:
            results = session.run(inputs, measured, number)
        except IRError:
            if number and executor.stateful:
                before = f"the variables are what is left by {counted(number, 'run')} before"
                say("note", f"in run {number + 1} of {repeat}: {before}")
            raise
        times.append(perf_counter() - begin)
    return results, times


def _write(context: click.Context, output: Path, results: Results) -> None:
    from irrun.check.render.text import one_line
    from irrun.run.arrays import write_npz

    if output == STANDARD:
        _print_archive(context, results)
        return
    with writing(context, output):
        write_npz(output, results)
    click.echo(one_line(f"{output}: {', '.join(results)}"), err=True)


def _print_archive(context: click.Context, results: Results) -> None:
    from io import BytesIO

    from irrun.run.arrays import dump_npz

    if sys.stdout.isatty():
        raise click.UsageError("an .npz file is not for terminals: redirect it, or give --output FILE", context)
    content = BytesIO()
    dump_npz(content, results)
    sys.stdout.buffer.write(content.getbuffer())
    sys.stdout.buffer.flush()


def _durations(times: list[float]) -> str:
    """How long runs took; the first one prepares."""
    from statistics import median

    first, *later = (1e3 * seconds for seconds in times)
    spread = f"minimum {min(later):.3g}, median {median(later):.3g}, maximum {max(later):.3g} ms"
    return f"{len(times)} runs: the first {first:.3g} ms, later ones {spread}"


def _not_finite(results: Mapping[str, Array]) -> str:
    """What of the results is not finite, in a line."""
    from irrun.check.finite import not_finite

    found = {}
    for name, array in results.items():
        if array.dtype.kind not in "fV":
            continue
        flat = array.ravel()
        blocks = (flat[begin : begin + SEARCHED] for begin in range(0, flat.size, SEARCHED))
        if (doubt := not_finite(blocks, array.shape)) is not None:
            found[name] = f"`{name}` ({doubt} of {array.size:,}{doubt.place})"
    return f"not finite: {', '.join(found.values())}" if found else ""


def _inputs(
    context: click.Context,
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
    return made_up(context, executor, seed, shapes, inputs)


def _described(name: str, array: Array) -> str:
    """A result in a few lines: its type, shape and values, long ones abbreviated."""
    import numpy as np

    from irrun.spec.dtypes import element_type
    from irrun.spec.patterns import shape_text

    values = np.array2string(array, threshold=24, edgeitems=3, precision=6)
    return f"{paint(name, 'bold')} {element_type(array.dtype)}{shape_text(array.shape)}\n{values}"
