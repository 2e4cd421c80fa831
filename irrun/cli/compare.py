"""irrun compare: a model beside a device, another model, or what another tool has written."""

from __future__ import annotations

import json
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

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
from irrun.cli.files import keep_apart, require_files, write_text, written_file
from irrun.cli.options import (
    FORMAT_NAMES,
    MAX_MEMORY,
    THREADS,
    WEIGHTS,
    failures_said,
    ops_option,
    paint,
    show,
    warnings_said,
)
from irrun.cli.progress import progress

if TYPE_CHECKING:
    from irrun.tools.compare.replay import Given
    from irrun.tools.compare.results import Comparison


@click.command()
@click.argument("model", type=click.Path(path_type=Path), required=False)
@click.argument("other", required=False)
@WEIGHTS
@INPUT_OPTIONS
@tolerances_option(
    "By default what the least precise type that the other side computes in explains: 80 dB for f32, 40 for f16, 25 "
    "for bf16, and 20 where the model has FakeQuantize of 8 bits and the other side rounds otherwise."
)
@click.option("--outputs-only", is_flag=True, help="Do not look at tensors on the way.")
@click.option("--passes", is_flag=True, help="Find the transformation of OpenVINO that changes values first.")
@CONFIG
@TIMEOUT
@click.option("--top", type=click.IntRange(0), default=10, show_default=True, help="How many tensors are listed.")
@click.option("--format", type=click.Choice(FORMAT_NAMES), default="text", show_default=True)
@written_file("-o", "--output", help="Write all that was measured to a JSON file, whole or not at all, for --recheck.")
@click.option(
    "--recheck",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Judge by --tol what -o has written, without running anything.",
)
@MAX_MEMORY
@THREADS
@ops_option
@click.pass_context
def compare(
    context: click.Context,
    model: Path | None,
    other: str | None,
    weights: Path | None,
    archives: tuple[Path, ...],
    seed: int | None,
    shapes: dict[str, list[str]],
    steps: bool,
    tolerances: Given,
    outputs_only: bool,
    passes: bool,
    config: dict[str, str],
    timeout: float,
    top: int,
    format: str,
    output: Path | None,
    recheck: Path | None,
    max_memory: int | None,
    threads: int | None,
) -> None:
    """Say which layer of a model is wrong first beside another side, and why.

    MODEL is an .xml file. OTHER is a device of OpenVINO (ov:CPU, ov:GPU.1, ov:NPU, ...), another .xml file, an .onnx
    file, tensors or outputs that another tool has written (.npz, .safetensors, Polygraphy's .json, a folder of .npy),
    engine:numpy and the like, or precision:f16 and the like.

    Exit status: 0 they agree; 1 they differ, or the model or its inputs are at fault; 2 wrong use; 3 the other side
    failed.
    """
    if recheck is not None:
        if any((model, other, weights, archives, seed is not None, shapes, steps, config, passes, outputs_only)):
            raise click.UsageError("--recheck runs nothing: no model, other side, inputs or device go with it", context)
        found = _rechecked(context, recheck, tolerances)
    elif model is None or other is None:
        raise click.UsageError("MODEL and OTHER are needed, or --recheck FILE", context)
    else:
        if config and not other.startswith("ov:"):
            raise click.UsageError(f"--config is for devices of OpenVINO, such as ov:CPU, not for {other}", context)
        require_files(context, model, weights)
        keep_apart(context, model, weights, [Path(other), *archives], [output])

        from irrun.diagnostics import EngineError, InputError
        from irrun.tools.compare.comparison import compared, reference
        from irrun.tools.compare.sides.contract import Options, SideFailed
        from irrun.tools.compare.sides.opening import open_side

        held = {} if max_memory is None else {"max_bytes": max_memory}
        options = Options(config, timeout, threads=threads, **held)  # type: ignore[arg-type]
        with failures_said(context, partial(advice, archives, seed)), warnings_said(), progress("comparing") as shown:
            executor = reference(model, weights, max_memory)
            check_names(context, executor.model, tolerances)
            courses = courses_of(context, executor, archives, seed, shapes, steps)
            try:
                with closing(open_side(other, executor.model, options)) as side:
                    found = compared(
                        executor, side, courses, tolerances, outputs_only=outputs_only, passes=passes, tell=shown.tell
                    )
            except SideFailed as error:
                show([error.diagnostic(model)])
                context.exit(FAILED)
            except InputError:
                raise
            except (ValueError, EngineError) as error:
                raise click.BadParameter(str(error), context, param_hint="OTHER") from None
    if output is not None:
        write_text(context, json.dumps(found.to_dict(), indent=1, allow_nan=False) + "\n", output)
    if format == "text":
        from irrun.tools.compare.table import text

        write_text(context, text(found, top, paint) + "\n", None)
    else:
        from irrun.check.render.formats import FORMATS

        write_text(context, FORMATS[format]([found.report]) + "\n", None)
    context.exit(0 if found.agrees else 1)


def _rechecked(context: click.Context, path: Path, tolerances: Given) -> Comparison:
    from irrun.files import open_regular
    from irrun.tools.compare.rechecking import rejudged
    from irrun.tools.compare.results import Comparison

    if not tolerances:
        raise click.UsageError("--recheck needs --tol", context)
    try:
        with open_regular(path) as file:
            found = rejudged(Comparison.from_dict(json.loads(file.read())), tolerances)
        str(found)
        return found
    except (OSError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise click.BadParameter(f"{path} cannot be judged again: {error}", context, param_hint="--recheck") from None
