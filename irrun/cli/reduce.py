"""irrun reduce: the smallest model that still fails in the same way."""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from irrun.cli.comparing import CONFIG, advice
from irrun.cli.configuration import overrides
from irrun.cli.files import keep_apart, require_files, writing
from irrun.cli.options import (
    INPUTS,
    MAX_MEMORY,
    MODEL,
    RANDOM,
    RANDOM_SHAPES,
    WEIGHTS,
    Number,
    failures_said,
    made_up,
    ops_option,
    require_random,
    say,
    tell,
    warnings_said,
)
from irrun.cli.progress import progress

if TYPE_CHECKING:
    from irrun.tools.reduce.outcome import Check


def _pattern(context: click.Context, parameter: click.Parameter, text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text, re.MULTILINE)
    except re.error as error:
        raise click.BadParameter(f"`{text}` is no regular expression: {error}", context, parameter) from None


@click.command()
@MODEL
@WEIGHTS
@INPUTS
@RANDOM
@RANDOM_SHAPES
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="FOLDER",
    help="Where the model goes, and all that belongs to it.",
)
@click.option(
    "--check",
    "command",
    metavar="CMD",
    help="A command of the shell with {model} and {inputs} in it, and perhaps {expected}, irrun's own outputs: it ends "
    "with another status than 0 where the model fails.",
)
@click.option("--fail-code", type=click.IntRange(0, 255), metavar="N", help="It ends with this status then.")
@click.option("--fail-regex", "pattern", metavar="RE", callback=_pattern, help="And writes what matches this.")
@click.option("--diverges", metavar="OTHER", help="It differs beside OTHER, which is as in `irrun compare`.")
@click.option(
    "--tol", "tolerances", multiple=True, metavar="[NAME:]TOLERANCE", help="What --diverges allows, as there."
)
@CONFIG
@click.option("--fails-to-compile", "device", metavar="ov:DEVICE", help="OpenVINO does not compile it.")
@click.option("--nonfinite", is_flag=True, help="It makes NaN or infinity of finite inputs, on the way or in the end.")
@click.option("--precision", default="auto", show_default=True, help="In which types --nonfinite computes.")
@click.option("--diagnostic", metavar="CODE", help="It has this diagnostic of irrun, such as E602, in a run.")
@click.option("--timeout", type=Number(0.1), default=60.0, show_default=True, help="Seconds that a check may take.")
@click.option("--max-checks", type=click.IntRange(1), default=500, show_default=True, help="How many there may be.")
@click.option("--max-time", type=Number(1), default=3600.0, show_default=True, help="Seconds that all may take.")
@MAX_MEMORY
@partial(ops_option, exposed=True)  # the check's process loads them, too
@click.pass_context
def reduce(
    context: click.Context,
    /,
    model: Path,
    weights: Path | None,
    archive: Path | None,
    seed: int | None,
    shapes: dict[str, list[str]],
    folder: Path,
    command: str | None,
    fail_code: int | None,
    pattern: re.Pattern[str] | None,
    diverges: str | None,
    tolerances: tuple[str, ...],
    config: dict[str, str],
    device: str | None,
    nonfinite: bool,
    precision: str,
    diagnostic: str | None,
    timeout: float,
    max_checks: int,
    max_time: float,
    max_memory: int | None,
    ops_files: tuple[Path, ...],
) -> None:
    """Find the smallest model that still fails in the same way.

    MODEL is an .xml file. Layers are left out, with what others have read of them in one run as inputs, also in bodies;
    then sizes, weights and inputs become smaller and simpler. FOLDER gets min.xml, inputs.npz, expected.npz, repro.py
    and REPORT.md. Of what fails, how it ends, what the regular expression matches, or the cause and the operation have
    to stay the same; the first model of each other failure goes to interesting/. Who is interrupted gives the same
    command again: no check is made twice. --fails-to-compile and --diagnostic need no inputs: sizes stay open then.

    Exit status: 0 a model was found; 1 the whole model does not fail, or it or its inputs are at fault; 2 wrong use.
    """
    asked = {"--check": command, "--diverges": diverges, "--fails-to-compile": device, "--diagnostic": diagnostic}
    if sum(value is not None for value in asked.values()) + nonfinite != 1:
        raise click.UsageError(f"give one of {', '.join(asked)} and --nonfinite", context)
    if folder.suffix in (".xml", ".bin") and not folder.exists():
        raise click.UsageError(f"-o is the folder for min.xml and what belongs to it: name one, not {folder}", context)
    if (fail_code is not None or pattern is not None) and command is None:
        raise click.UsageError("--fail-code and --fail-regex go with --check", context)
    if tolerances and diverges is None:
        raise click.UsageError("--tol goes with --diverges", context)
    if config and diverges is None and device is None:
        raise click.UsageError("--config goes with --diverges and --fails-to-compile", context)
    if overrides(context, "precision") and not nonfinite:
        raise click.UsageError("--precision goes with --nonfinite", context)
    running = archive is not None or seed is not None
    require_random(context, seed, shapes)
    if not running and device is None and diagnostic is None:
        raise click.UsageError("this check runs the model: give --inputs FILE or --random SEED", context)
    if command is not None and "{model}" not in command:
        raise click.BadParameter(
            "the command needs {model}, where the model's file goes", context, param_hint="--check"
        )
    require_files(context, model, weights)

    from irrun.diagnostics import InputError
    from irrun.ir.reader import read_model
    from irrun.run.arrays import read_npz
    from irrun.run.executor import GraphExecutor
    from irrun.tools.reduce.reduction import FILES, NoFailure
    from irrun.tools.reduce.reduction import reduce as reduced
    from irrun.tools.reduce.trials import WORK, Limits

    read = [path for path in (model, weights, archive) if path is not None]
    removed = [path for path in read if (folder / WORK).resolve() in path.resolve().parents]
    keep_apart(context, model, weights, [archive], [folder / name for name in FILES] + removed)
    check = _check(
        context,
        command,
        fail_code,
        pattern,
        timeout,
        diverges,
        tolerances,
        config,
        device,
        precision,
        diagnostic,
        ops_files,
    )
    with (
        failures_said(context, partial(advice, (archive,) if archive else (), seed)),
        warnings_said(),
        progress("reducing") as shown,
    ):
        given = read_model(model, weights)
        inputs = None
        if running:
            executor = GraphExecutor(given, engine="reference", precision="auto", max_memory=max_memory)
            arrays = read_npz(archive, executor.max_memory) if archive else {}
            inputs = executor.named(made_up(context, executor, seed, shapes, arrays))
            del executor
        try:
            with writing(context, folder):
                found = reduced(given, inputs, check, folder, Limits(max_checks, max_time), shown.tell, _said)
        except NoFailure as error:
            say("error", f"{model} does not fail: {str(error) or 'the check finds nothing wrong'}")
            context.exit(1)
        except InputError:
            raise
        except ValueError as error:
            raise click.BadParameter(str(error), context) from None
    if found.exhausted:
        say("note", "all checks, or all the time, were used up; --max-checks and --max-time allow more")
    for kind, count in found.others.items():
        say("note", f"another failure in {count} model{'s' * (count > 1)}, the first of them in interesting/: {kind}")
    tell(f"{found.model}: {found.progress}; {found.outcome.kind}")


def _said(progress: str) -> None:
    if not sys.stderr.isatty():
        tell(progress, err=True)


def _check(
    context: click.Context,
    command: str | None,
    code: int | None,
    pattern: re.Pattern[str] | None,
    timeout: float,
    diverges: str | None,
    tolerances: tuple[str, ...],
    config: dict[str, str],
    device: str | None,
    precision: str,
    diagnostic: str | None,
    ops_files: tuple[Path, ...],
) -> Check:
    """The check that options ask for; its process loads the same custom ops."""
    from irrun.tools.reduce.commands import Command
    from irrun.tools.reduce.judging import Judgement

    ops = [str(path.absolute()) for path in ops_files]
    if command is not None:
        return Command(command, code, pattern, timeout)
    if diverges is not None:
        from irrun.tools.compare.tolerances import parse

        for text in tolerances:
            try:
                parse(text)
            except ValueError as error:
                raise click.BadParameter(str(error), context, param_hint="--tol") from None
        settings = {"other": diverges, "tolerances": list(tolerances), "config": config}
        return Judgement("diverges", settings, timeout, ops)
    if device is not None:
        name = device.removeprefix("ov:")
        return Judgement("compiles", {"device": name, "config": config}, timeout, ops)
    if diagnostic is not None:
        from irrun.cli.options import parse_codes
        from irrun.tools.watch.ranges import FINITE, RANGE

        try:
            (code_of,) = parse_codes([diagnostic])
        except ValueError as error:
            raise click.BadParameter(str(error) or "give one code", context, param_hint="--diagnostic") from None
        if code_of in (FINITE, RANGE):
            raise click.BadParameter(
                f"{code_of} is found by looks at all tensors: give --nonfinite, or a --check with irrun execute",
                context,
                param_hint="--diagnostic",
            )
        return Judgement("diagnostic", {"code": code_of}, timeout, ops)
    return Judgement("nonfinite", {"precision": precision}, timeout, ops)
