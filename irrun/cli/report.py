"""irrun report: a model as one HTML file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irrun.cli.comparing import (
    CONFIG,
    FAILED,
    INPUT_OPTIONS,
    TIMEOUT,
    advice,
    check_names,
    courses_of,
    tolerances_option,
)
from irrun.cli.files import STANDARD, keep_apart, require_files, writing, written_file
from irrun.cli.options import (
    ENGINE,
    MAX_MEMORY,
    MODEL,
    THREADS,
    WEIGHTS,
    failures_said,
    ops_option,
    say,
    show,
    warnings_said,
)
from irrun.cli.progress import progress
from irrun.cli.viewing import view_files, viewing_options, write_views

if TYPE_CHECKING:
    from irrun.ir.graph import Model
    from irrun.tools.compare.replay import Course, Given
    from irrun.tools.compare.results import Comparison
    from irrun.tools.compare.sides.contract import Options
    from irrun.tools.diff import Difference


@click.command()
@MODEL
@WEIGHTS
@INPUT_OPTIONS
@click.option("--profile", is_flag=True, help="Run the model on the inputs, twice, and show where the time goes.")
@click.option(
    "--compare",
    "other",
    metavar="OTHER",
    help="Show a comparison with OTHER, as `irrun compare MODEL OTHER` makes it, or one that its -o has written.",
)
@tolerances_option("Of --compare; by default what the least precise type that the other side computes in explains.")
@CONFIG
@TIMEOUT
@click.option(
    "--diff", "after", type=click.Path(path_type=Path), metavar="FILE", help="Show what differs in another model."
)
@written_file("-o", "--output", help="The HTML file, written whole or not at all; - is standard output.")
@viewing_options
@click.option("--open", "opened", is_flag=True, help="Open it in the browser.")
@ENGINE
@MAX_MEMORY
@THREADS
@ops_option
@click.pass_context
def report(
    context: click.Context,
    model: Path,
    weights: Path | None,
    archives: tuple[Path, ...],
    seed: int | None,
    shapes: dict[str, list[str]],
    steps: bool,
    profile: bool,
    other: str | None,
    tolerances: Given,
    config: dict[str, str],
    timeout: float,
    after: Path | None,
    output: Path | None,
    netron: Path | None,
    model_explorer: Path | None,
    opened: bool,
    engine: str,
    max_memory: int | None,
    threads: int | None,
) -> None:
    """Write a report of a model: one HTML file for a browser, which loads nothing from anywhere.

    It has the graph, in groups that open by a click, and as tables what `irrun validate` and `irrun inspect` say; with
    options a profile, a comparison, and what differs in another model. A model with errors has a report, too. MACs and
    bytes are counted under --shape, or the shapes of the arrays in --inputs. MODEL is an .xml file, or - for standard
    input; of an execution graph `irrun inspect` tells, and there is no report.

    Exit status: 0 it is written; 1 the model cannot be read, or not be run on its inputs; 2 wrong use; 3 the other side
    of a comparison failed.
    """
    _check(context, output, [netron, model_explorer], opened)
    require_files(context, weights, after, model=model)
    results = None if other is None else _results(context, Path(other))
    if (tolerances or config) and (other is None or results is not None):
        raise click.UsageError("--tol and --config are for a --compare that runs", context)
    read = [after, *archives, None if other is None else Path(other)]
    keep_apart(context, model, weights, read, [output, *view_files(netron, model_explorer)])

    from irrun.ir.collector import collector_paused
    from irrun.tools.compare.sides.contract import Options
    from irrun.tools.report.collection import collected, subject
    from irrun.tools.report.page import rendered

    held = {} if max_memory is None else {"max_bytes": max_memory}
    options = Options(config, timeout, threads=threads, **held)  # type: ignore[arg-type]
    drawn = {} if seed is None else shapes
    inputs = partial(courses_of, context, archives=archives, seed=seed, shapes=drawn, steps=steps)
    failures = failures_said(context, partial(advice, archives, seed))
    with collector_paused(), failures, warnings_said(), progress("reading") as shown:
        sizes = _sizes(archives, max_memory) | shapes
        try:
            about = subject(sys.stdin.buffer if model == STANDARD else model, weights, sizes)
        except ValueError as error:
            raise click.BadParameter(str(error), context, param_hint="--shape or --inputs") from None
        if results is not None:
            _check_model(context, results, about.model)
        runs = about.report.ok
        if not runs and (profile or after is not None or (other is not None and results is None)):
            say("warning", f"{model} has errors, which the report tells: it is neither run nor compared")
        timing = measured = None
        if profile and runs:
            from irrun.run.executor import GraphExecutor
            from irrun.run.profile import Profile
            from irrun.tools.report.timing import timed

            shown.tell("running")
            executor = GraphExecutor(about.model, engine=engine, threads=threads, max_memory=max_memory)
            measured = Profile()
            timing = timed(executor, inputs(executor)[0].steps, about.numbers, measured)
        if other is not None and results is None and runs:
            results = _compared(context, about.model, other, inputs, tolerances, options, max_memory, shown.tell)
        shown.tell("writing")
        difference = _difference(about.model, after) if after is not None and runs else None
        page = rendered(collected(about, timing=timing, comparison=results, difference=difference)) if output else b""
    if output is not None:
        _write(context, page, output, opened)
    write_views(context, about.report, netron, model_explorer, measured, results)


def _write(context: click.Context, page: bytes, output: Path, opened: bool) -> None:
    if output == STANDARD:
        sys.stdout.buffer.write(page)
        sys.stdout.buffer.flush()
        return

    from irrun.files import atomic_write

    with writing(context, output):
        atomic_write(output, page)
    if opened:
        click.launch(output.absolute().as_uri())


def _check(context: click.Context, output: Path | None, views: Sequence[Path | None], opened: bool) -> None:
    """Wrong use where nothing is to be written, or where what makes pages is not installed."""
    if output is None and not any(views):
        raise click.UsageError("give the file to write with -o FILE", context)
    if opened and output in (None, STANDARD):
        raise click.UsageError("--open needs a file: give it with -o FILE", context)
    if output is not None and find_spec("jinja2") is None:
        raise click.UsageError("reports need Jinja2: install it with `pip install 'irrun[report]'`", context)


def _results(context: click.Context, path: Path) -> Comparison | None:
    """What `irrun compare -o` has written; None for what is something else."""
    if path.suffix.lower() != ".json":
        return None
    from irrun.files import is_there, open_regular

    if not is_there(path):
        raise click.BadParameter(f"there is no file {path}", context, param_hint="--compare")
    from irrun.tools.compare.results import Comparison

    given: Any = None
    with suppress(OSError, ValueError, RecursionError), open_regular(path) as file:
        given = json.loads(file.read())
    if not isinstance(given, dict) or "irrun-compare" not in given:
        return None
    try:
        found = Comparison.from_dict(given)
        str(found)
        return found
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise click.BadParameter(f"{path} cannot be shown: {error}", context, param_hint="--compare") from None


def _check_model(context: click.Context, results: Comparison, model: Model) -> None:
    """Wrong use where a comparison is one of another model."""
    from irrun.tools.watch.origin import structure

    if results.digest is not None and results.digest != structure(model):
        message = f"it is of another model than {model.path}, or of an earlier version of it: {results.model}"
        raise click.BadParameter(message, context, param_hint="--compare")


def _sizes(archives: Sequence[Path], max_memory: int | None) -> dict[str, Sequence[int | str | None]]:
    """The shapes of the arrays in the first file, by name. Raises InputError."""
    if not archives:
        return {}
    from irrun.run.arrays import read_npz

    return {name: array.shape for name, array in read_npz(archives[0], max_memory).items()}


def _compared(
    context: click.Context,
    model: Model,
    other: str,
    inputs: partial[list[Course]],
    tolerances: Given,
    options: Options,
    max_memory: int | None,
    tell: Callable[[str], object],
) -> Comparison:
    """As `irrun compare` does."""
    from irrun.diagnostics import EngineError, InputError
    from irrun.tools.compare.comparison import compared, reference
    from irrun.tools.compare.sides.contract import SideFailed
    from irrun.tools.compare.sides.opening import open_side

    tell("comparing")
    executor = reference(model, None, max_memory)
    check_names(context, model, tolerances)
    courses = inputs(executor)
    try:
        with closing(open_side(other, executor.model, options)) as side:
            return compared(executor, side, courses, tolerances, tell=tell)
    except SideFailed as error:
        show([error.diagnostic(model.path)])
        context.exit(FAILED)
    except InputError:
        raise
    except (ValueError, EngineError) as error:
        raise click.BadParameter(str(error), context, param_hint="--compare") from None


def _difference(model: Model, after: Path) -> Difference:
    """Raises IRError where the other model cannot be read, or this one lacks its weights."""
    from irrun.tools.diff import diff

    return diff(model, after)
