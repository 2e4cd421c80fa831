"""irrun tune: the fewest layers of a model that a device has to compute in f32."""

from __future__ import annotations

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
from irrun.cli.files import WRITTEN_MODEL, keep_apart, require_files, writing
from irrun.cli.options import (
    MAX_MEMORY,
    MODEL,
    WEIGHTS,
    failures_said,
    ops_option,
    show,
    tell,
    warnings_said,
)
from irrun.cli.progress import progress
from irrun.diagnostics import counted

if TYPE_CHECKING:
    from irrun.tools.compare.replay import Given
    from irrun.tools.tune import Tuned


MAX_LISTED = 100
"""Marked layers that are named; the file has the others."""


@click.command()
@MODEL
@click.option("--device", "device", default="ov:CPU", show_default=True, metavar="ov:DEVICE", help="What computes it.")
@WEIGHTS
@INPUT_OPTIONS
@tolerances_option("f32 by default.")
@CONFIG
@click.option(
    "--checks", type=click.IntRange(3), default=30, show_default=True, help="How many sets of marks are tried."
)
@TIMEOUT
@WRITTEN_MODEL
@MAX_MEMORY
@ops_option
@click.pass_context
def tune(
    context: click.Context,
    model: Path,
    device: str,
    weights: Path | None,
    archives: tuple[Path, ...],
    seed: int | None,
    shapes: dict[str, list[str]],
    steps: bool,
    tolerances: Given,
    config: dict[str, str],
    checks: int,
    timeout: float,
    output: Path,
    max_memory: int | None,
) -> None:
    """Find the fewest layers to mark `precise` so that a model is good enough on a device that computes in 16 bits.

    The mark stands in the runtime info of a layer, where OpenVINO looks for it; all other bytes of the file stay as
    they are. What was found is held against irrun's own results on the device itself.

    Exit status: 0 the marked model is good enough; 1 it is not, with all layers marked, or the model or its inputs are
    at fault; 2 wrong use; 3 the device failed.
    """
    from irrun.diagnostics import EngineError, InputError
    from irrun.tools.compare.comparison import reference
    from irrun.tools.compare.sides.contract import Options, SideFailed
    from irrun.tools.compare.sides.opening import open_side
    from irrun.tools.tune import Marking
    from irrun.tools.tune import tune as tuned

    require_files(context, model, weights)
    keep_apart(context, model, weights, list(archives), [output, output.with_suffix(".bin")])
    held = {} if max_memory is None else {"max_bytes": max_memory}
    options = Options(config, timeout, **held)  # type: ignore[arg-type]
    with failures_said(context, partial(advice, archives, seed)), warnings_said(), progress("tuning") as shown:
        executor = reference(model, weights, max_memory)
        check_names(context, executor.model, tolerances)
        courses = courses_of(context, executor, archives, seed, shapes, steps)
        try:
            with closing(open_side(device, executor.model, options)) as side:
                if not isinstance(side, Marking):
                    raise click.BadParameter(f"{device} heeds no marks; give ov:CPU or the like", context)
                found = tuned(executor, side, courses, tolerances, checks, shown.tell)
        except SideFailed as error:
            show([error.diagnostic(model)])
            context.exit(FAILED)
        except InputError:
            raise
        except (ValueError, EngineError) as error:
            raise click.BadParameter(str(error), context) from None
    _write(context, output, found.content, executor.model.weights.path)
    _tell(found, device, output)
    context.exit(0 if found.passes else 1)


def _write(context: click.Context, output: Path, content: bytes, weights: Path | None) -> None:
    """The marked .xml, and a copy of the .bin beside it."""
    import shutil

    from irrun.files import atomic_write, open_regular, whole_pair

    with writing(context, output):
        if weights is None or not weights.exists():
            atomic_write(output, content)
            return
        with open_regular(weights) as source, whole_pair(output.with_suffix(".bin"), output) as (bin, xml):
            shutil.copyfileobj(source, bin, 1 << 24)
            xml.write(content)


def _tell(found: Tuned, device: str, output: Path) -> None:
    before, after = found.before.metrics, found.after.metrics
    if not found.marks and found.passes:
        enough = f"outputs are within {found.before.tolerance} on {device} ({before.sqnr:.1f} dB)"
        tell(f"{output}: nothing to mark, {enough}")
        return
    for name in found.marks[:MAX_LISTED]:
        tell(f"marked: {name}")
    if len(found.marks) > MAX_LISTED:
        tell(f"marked: {counted(len(found.marks) - MAX_LISTED, 'layer')} more, which {output} has")
    untold = f", which does not tell of {found.untold} in bodies" if found.untold else ""
    verdict = "good enough" if found.passes else "not good enough, with all that can be marked"
    tell(
        f"{output}: {len(found.marks)} of {counted(found.candidates, 'layer')} in 16 bits marked, "
        f"{found.heeded} heeded by {device}{untold}: {before.max_abs:.3g} -> {after.max_abs:.3g} "
        f"({before.sqnr:.1f} -> {after.sqnr:.1f} dB), "
        f"{verdict}, {counted(found.checks, 'check')}"
    )
