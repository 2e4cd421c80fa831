"""What commands that compare share: options for inputs, tolerances and devices, and the runs that inputs are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irrun.cli.options import RANDOM, RANDOM_SHAPES, Number, made_up

if TYPE_CHECKING:
    from irrun.ir.graph import Model
    from irrun.run.executor import GraphExecutor
    from irrun.tools.compare.replay import Course, Given

FAILED = 3
"""The exit status where the other side failed."""


def _pairs(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"`{text}` is not of the form KEY=VALUE", context, parameter)
        found[name] = value
    return found


def _tolerances(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> Given:
    if not given:
        return ()
    from irrun.tools.compare.tolerances import parse

    try:
        return [parse(text) for text in given]
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None


_INPUTS = (
    click.option(
        "--inputs",
        "archives",
        multiple=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="An .npz file with an array per input; several are a run each.",
    ),
    RANDOM,
    RANDOM_SHAPES,
    click.option(
        "--steps", is_flag=True, help="The files of --inputs are steps of one session, such as prefill and decode."
    ),
)


def INPUT_OPTIONS(function: Callable[..., Any]) -> Callable[..., Any]:  # noqa: N802, used as the other options are
    """Files of inputs, or a seed; several runs, or steps of one session."""
    for option in reversed(_INPUTS):
        function = option(function)
    return function


def tolerances_option(otherwise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--tol, with what holds `otherwise`."""
    return click.option(
        "--tol",
        "tolerances",
        multiple=True,
        metavar="[NAME:]TOLERANCE",
        callback=_tolerances,
        help="What outputs may differ by: exact, f32, f16, bf16 or i8, or ATOL,RTOL[,SHARE OF OUTLIERS]; of an output "
        f"or a layer by NAME, which may be a pattern. {otherwise}",
    )


CONFIG = click.option(
    "--config",
    multiple=True,
    metavar="KEY=VALUE",
    callback=_pairs,
    help="A property of the device, such as INFERENCE_PRECISION_HINT=f32.",
)
TIMEOUT = click.option(
    "--timeout",
    type=Number(1),
    default=600.0,
    show_default=True,
    help="Seconds that a device may take a call.",
)


def check_names(context: click.Context, model: Model, tolerances: Given) -> None:
    """Refuse tolerances that are for nothing of a model. Raises click.BadParameter."""
    if not tolerances:
        return
    from irrun.tools.compare.replay import names_in, refuse_unknown

    try:
        refuse_unknown(names_in(model), tolerances, "the model")
    except ValueError as error:
        raise click.BadParameter(str(error), context, param_hint="--tol") from None


def advice(archives: Sequence[Path], seed: int | None, _: str) -> str | None:
    given = "give the inputs with --inputs FILE, or make them up with --random SEED"
    return None if archives or seed is not None else given


def courses_of(
    context: click.Context,
    executor: GraphExecutor,
    archives: Sequence[Path],
    seed: int | None,
    shapes: dict[str, list[str]],
    steps: bool,
) -> list[Course]:
    """The runs that files of inputs are. Raises click.UsageError and InputError."""
    from irrun.run.arrays import read_npz
    from irrun.tools.compare.replay import Course

    given = [(path.name, read_npz(path, executor.max_memory)) for path in archives] or [("random inputs", {})]
    listed = []
    for name, arrays in given:
        inputs = made_up(context, executor, seed, shapes, arrays)
        listed.append((name, executor.named(inputs)))
    if steps:
        return [Course(listed[0][0], [inputs for _, inputs in listed])]
    return [Course(name, [inputs]) for name, inputs in listed]
