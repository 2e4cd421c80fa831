"""irrun inspect: what a model is and what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irrun.cli.files import STANDARD, STDIN, keep_apart, read_standard_input, require_files, write_text, written_file
from irrun.cli.options import colour, ops_option, paint, parse_shape_option, say
from irrun.cli.progress import progress

if TYPE_CHECKING:
    from irrun.tools.inspect.inspection import Inspection


def _target(context: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    if text is not None:
        from irrun.tools.inspect.releases import parse_release

        try:
            parse_release(text)
        except ValueError as error:
            raise click.BadParameter(str(error), context, parameter) from None
    return text


def _conditions(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> list[Any]:
    if not given:
        return []

    from irrun.tools.inspect.assertions import parse_condition

    try:
        return [parse_condition(text) for text in given]
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--bin",
    "bin_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The .bin file; the one beside the model by default.",
)
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=1,?,2..8,seq",
    callback=parse_shape_option,
    help="Count under this shape of an input; equal names are equal sizes. May be given several times.",
)
@click.option(
    "--past",
    type=click.IntRange(0),
    metavar="TOKENS",
    help="Count with so many tokens in the states that grow with each run, as those of a language model do.",
)
@click.option("--layers", "list_layers", is_flag=True, help="List every layer with its MACs and bytes.")
@click.option("--weights", "list_weights", is_flag=True, help="Read all weights, and list them by their offset.")
@click.option(
    "--target",
    metavar="RELEASE",
    callback=_target,
    help="Exit with 1 if this release of OpenVINO, such as 2024.2, cannot read the model, and say which layers it is.",
)
@click.option(
    "--assert",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    callback=_conditions,
    help="Exit with 1 unless this holds, such as 'macs<=4.1e9', 'weights<100MiB', 'ops.Loop==0' or 'release<=2024.2'. "
    "May be given several times.",
)
@click.option("--format", type=click.Choice(("text", "json", "csv")), default="text", show_default=True)
@written_file("-o", "--output", help="Write what was found to a file, whole or not at all.")
@ops_option
@click.pass_context
def inspect(
    context: click.Context,
    model: Path,
    bin_file: Path | None,
    shapes: dict[str, list[str]],
    past: int | None,
    list_layers: bool,
    list_weights: bool,
    target: str | None,
    conditions: list[Any],
    format: str,
    output: Path | None,
) -> None:
    """Say what a model is and what it costs: inputs, releases that read it, MACs, memory, weights, where it comes from.

    MODEL is an .xml file, or - for standard input. A MAC is a multiplication whose product is added to others, as in
    products and convolutions; two FLOPs. CSV has a line for each layer, with --weights for each constant. Of an
    execution graph of OpenVINO it says which kernels a device took, for how long, and what it fused and added.

    Conditions are about macs, flops, bytes (read and written by layers), coverage (share of layers whose MACs are
    known), layers, peak (bytes of activations), state (bytes that variables grow by with each token), parameters
    (elements of constants), weights (their bytes), unused and duplicates (bytes of the .bin), not-finite and f16-loss
    (elements of constants), release (the oldest that reads the model), and ops.TYPE (layers of a type).
    """
    require_files(context, bin_file, model=model)
    keep_apart(context, model, bin_file, [], [output])

    from irrun.ir.collector import collector_paused

    with collector_paused(), progress("inspecting"):
        found = _inspected(context, model, bin_file, shapes, past, target, list_weights)
        from irrun.check.render.text import plain
        from irrun.tools.inspect.rendering import render_json, render_text
        from irrun.tools.inspect.tables import render_csv

        if format == "text":
            text = render_text(found, list_layers, list_weights, plain if output else paint)
        else:
            text = render_json(found) if format == "json" else render_csv(found, list_weights)
    write_text(context, text + "\n", output)
    _show(found)
    if past is not None and not found.states:
        say("note", "there is no state that grows with each run, for --past to count with")
    if target is not None:
        from irrun.tools.inspect.releases import measured_releases, parse_release

        newest = measured_releases()[1]
        if parse_release(target) > parse_release(newest):
            say("note", f"OpenVINO {target} was not measured: what is said holds for {newest}")
    failures = [failure for condition in conditions if (failure := condition.failure(found)) is not None]
    for failure in failures:
        say("error", failure)
    context.exit(0 if found.ok and not failures else 1)


def _inspected(
    context: click.Context,
    model: Path,
    bin_file: Path | None,
    shapes: dict[str, list[str]],
    past: int | None,
    target: str | None,
    read_weights: bool,
) -> Inspection:
    from irrun.tools.inspect.inspection import inspect as look

    content = read_standard_input() if model == STANDARD else None
    path = STDIN if model == STANDARD else model
    try:
        return look(
            path, shapes, bin_file, target=target, past=past, read_weights=read_weights or None, content=content
        )
    except ValueError as error:
        raise click.BadParameter(str(error), context, param_hint="--shape") from None


def _show(found: Inspection) -> None:
    """Diagnostics go to stderr, with the lines that they are about."""
    from irrun.check.render.text import render_diagnostic, source_of
    from irrun.check.validate import Report

    source = source_of(Report(found.path, list(found.diagnostics), content=found.content))
    for diagnostic in found.diagnostics:
        text = render_diagnostic(diagnostic, source, paint)
        click.echo(text.encode("utf-8", "backslashreplace").decode(), err=True, color=colour())
