"""irrun validate: say everything that is wrong with models."""

from __future__ import annotations

import json
from pathlib import Path

import click

from irrun.cli.options import WEIGHTS, colour, ops_option, paint, parse_shape_option


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="MODEL...")
@WEIGHTS
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=1,3,?,?",
    callback=parse_shape_option,
    help="Check under this shape of an input; may be given several times.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--strict", is_flag=True, help="Fail on warnings too.")
@ops_option
@click.pass_context
def validate(
    context: click.Context,
    models: tuple[Path, ...],
    weights: Path | None,
    shapes: dict[str, list[str]],
    form: str,
    strict: bool,
) -> None:
    """Check models: format, graph, every op's signature, shapes and constraints, and the weights."""
    missing = [str(path) for path in models if not path.exists()]
    if missing:
        raise click.BadParameter(f"there is no file {', '.join(missing)}", context, param_hint="MODEL")
    if weights is not None and len(models) > 1:
        raise click.UsageError("--weights goes with one model", context)

    from irrun.check.render import render_text, to_json
    from irrun.check.validate import validate as check

    failed = False
    found = []
    for path in models:
        try:
            report = check(path, weights, shapes)
        except ValueError as error:
            raise click.BadParameter(str(error), context, param_hint="--shape") from None
        failed |= bool(report.diagnostics) if strict else not report.ok
        if form == "text":
            click.echo(render_text(report, paint), color=colour())
        found.append(to_json(report))
    if form == "json":
        click.echo(json.dumps(found[0] if len(found) == 1 else found, indent=2))
    context.exit(1 if failed else 0)
