"""irrun validate: say everything that is wrong with models."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from irrun.cli.configuration import overrides, read_defaults
from irrun.cli.files import STDIN, keep_apart, read_standard_input, require_files, write_text, writing, written_file
from irrun.cli.options import (
    FORMAT_NAMES,
    WEIGHTS,
    codes_option,
    ops_option,
    paint,
    parse_shape_option,
)
from irrun.cli.progress import progress

if TYPE_CHECKING:
    from irrun.check.validate import Report

_WITH_FIXES = ("json", "jsonl", "sarif")
"""The formats in which programs are told of fixes."""


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@WEIGHTS
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=1,?,2..8,seq",
    callback=parse_shape_option,
    help="Check under this shape of an input; equal names are equal sizes. May be given several times.",
)
@click.option("--trace", "with_steps", is_flag=True, help="Trace every offending shape, type and value to its origin.")
@click.option("--shapes", "list_shapes", is_flag=True, help="Print the inferred types and shapes of every layer too.")
@click.option("--format", type=click.Choice(FORMAT_NAMES), default="text", show_default=True)
@written_file("-o", "--output", help="Write the report to a file, whole or not at all.")
@click.option(
    "--select",
    multiple=True,
    metavar="CODES",
    callback=codes_option,
    help="Report only these, such as E3,W931 (E3: all E3xx).",
)
@click.option(
    "--ignore", multiple=True, metavar="CODES", callback=codes_option, help="Report all but these; wins over --select."
)
@click.option("--deep", is_flag=True, help="Search all weights for NaN and infinity, not only the first 64 MiB.")
@click.option(
    "--deviations",
    "with_deviations",
    is_flag=True,
    help="List what OpenVINO's CPU plugin is known to do otherwise with these layers; the status stays as it is.",
)
@click.option("--fix", is_flag=True, help="Make the changes that are safe, then report what is left.")
@click.option("--diff", is_flag=True, help="Print what --fix would change, and change nothing.")
@click.option("--unsafe", is_flag=True, help="With --fix or --diff: also changes that are guesses, or change results.")
@click.option("-v", "--verbose", is_flag=True, help="Show infos, too: what converters always write and nothing reads.")
@click.option("--strict/--no-strict", help="Fail on warnings too.")
@click.option("--exit-zero", is_flag=True, help="Exit with status 0 whatever is found.")
@click.option("--skip-foreign", is_flag=True, help="Skip named .xml files whose root is not <net>, as in folders.")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=read_defaults,
    help="Take [tool.irrun] from this file; by default from the nearest pyproject.toml upwards that has it.",
)
@ops_option
@click.pass_context
def validate(
    context: click.Context,
    models: tuple[str, ...],
    weights: Path | None,
    shapes: dict[str, list[str]],
    with_steps: bool,
    list_shapes: bool,
    format: str,
    output: Path | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    deep: bool,
    with_deviations: bool,
    fix: bool,
    diff: bool,
    unsafe: bool,
    verbose: bool,
    strict: bool,
    exit_zero: bool,
    skip_foreign: bool,
) -> None:
    """Check models: format, graph, every op's signature, shapes and constraints, and the weights.

    MODEL is an .xml file, a folder of them, a pattern such as "models/**/*.xml", or - for standard input.
    """
    if list_shapes and format != "text":
        raise click.UsageError("--shapes goes with --format text", context)
    if unsafe and not (fix or diff):
        raise click.UsageError("--unsafe goes with --fix or --diff", context)
    if fix and diff:
        raise click.UsageError("--fix changes files, and --diff none: give one of them", context)
    if fix and "-" in models:
        raise click.UsageError("--fix changes files; from standard input there is --diff", context)
    paths, skipped = _found(context, models, skip_foreign)
    if weights is not None and len(paths) > 1:
        raise click.UsageError("--bin goes with one model", context)
    require_files(context, weights)
    keep_apart(context, paths[0] if paths else None, weights, paths[1:], [output])
    if overrides(context, "select") and not overrides(context, "ignore"):
        ignore = ()  # which is that of a file: what is asked for by its code is wanted

    from irrun.ir.collector import collector_paused

    reports: list[Report] = []
    tables: list[str] = []
    diffs: list[str] = []
    with collector_paused(), progress("checking", len(paths)) as shown:
        from irrun.check.render.infos import listed
        from irrun.check.render.text import overview, plain, render_report

        for path in shown.each(paths, str):
            if reports:
                gc.collect()  # what a large model took is given back before the next one is read
            report = _checked(context, path, weights, shapes, deep)
            if fix or diff:
                report, changes = _mended(context, report, weights, shapes, deep, (select, ignore), unsafe, diff)
                diffs.append(changes)
            elif format in _WITH_FIXES:
                report = _with_fixes(report)
            if with_steps:
                report = _traced(report)
            if with_deviations:
                report = _with_deviations(report)
            kept = [found for found in report.diagnostics if _wanted(found.code, select, ignore)]
            tables.append(_shapes(report) if list_shapes else "")
            kept_report = replace(report, diagnostics=kept, model=None, inference=None)
            reports.append(listed(kept_report, format, verbose or any(code[0] == "I" for code in select)))
    if diff:
        text = "".join(diffs).removesuffix("\n")
    elif format == "text":
        style = plain if output else paint
        text = "\n".join(table + render_report(report, style) for table, report in zip(tables, reports, strict=True))
    else:
        from irrun.check.render.formats import FORMATS

        text = FORMATS[format](reports)
    write_text(context, text + "\n" * bool(text), output)
    if len(paths) != 1 or skipped or diff:
        click.echo(overview(reports, skipped), err=True)
    failed = any(report.errors or (strict and report.warnings) for report in reports)
    context.exit(1 if failed and not exit_zero else 0)


def _found(context: click.Context, named: tuple[str, ...], skip_foreign: bool) -> tuple[list[Path], int]:
    from irrun.ir.discovery import find_models

    if "-" in named:
        if len(named) > 1:
            raise click.UsageError("- for standard input goes alone", context)
        return [STDIN], 0
    try:
        return find_models(named, skip_foreign)
    except FileNotFoundError as error:
        raise click.BadParameter(str(error), context, param_hint="MODEL") from None


def _with_fixes(report: Report) -> Report:
    from irrun.check.fixes import with_fixes

    return with_fixes(report)


def _mended(
    context: click.Context,
    report: Report,
    weights: Path | None,
    shapes: dict[str, list[str]],
    deep: bool,
    codes: tuple[tuple[str, ...], tuple[str, ...]],
    unsafe: bool,
    diff: bool,
) -> tuple[Report, str]:
    """The report of the model with its fixes made, in its file unless only the `diff` is asked for, and that."""
    from irrun.check.finite import MAX_SEARCHED
    from irrun.check.fixes.application import mended
    from irrun.check.render.text import one_line

    path = report.path
    if not report.diagnostics:
        return report, ""
    try:
        content = path.read_bytes() if report.content is None else report.content
    except OSError:  # which is reported
        return report, ""
    result = mended(
        path,
        content,
        weights,
        shapes,
        unsafe=unsafe,
        wanted=lambda code: _wanted(code, *codes),
        searched=None if deep else MAX_SEARCHED,
    )
    if result.content != content and not diff:
        from irrun.files import atomic_write

        with writing(context, path):
            atomic_write(path, result.content)
    for diagnostic, change in result.fixes:
        at = f"{one_line(str(path))}:{diagnostic.line}" if diagnostic.line else one_line(str(path))
        click.echo(f"{at}: {diagnostic.code} {'would be ' if diff else ''}fixed: {one_line(change.title)}", err=True)
    return result.report, result.diff if diff else ""


def _traced(report: Report) -> Report:
    from irrun.check.trace import traced

    return traced(report)


def _shapes(report: Report) -> str:
    from irrun.check.render.shapes import render_shapes

    return render_shapes(report)


def _with_deviations(report: Report) -> Report:
    from irrun.check.deviations import with_deviations

    return with_deviations(report)


def _checked(
    context: click.Context, path: Path, weights: Path | None, shapes: dict[str, list[str]], deep: bool
) -> Report:
    from irrun.check.finite import MAX_SEARCHED
    from irrun.check.validate import validate as check

    try:
        content = read_standard_input() if path == STDIN else None
        return check(path, weights, shapes, content=content, searched=None if deep else MAX_SEARCHED)
    except ValueError as error:
        raise click.BadParameter(str(error), context, param_hint="--shape") from None


def _wanted(code: str, select: tuple[str, ...], ignore: tuple[str, ...]) -> bool:
    return (not select or code.startswith(select)) and not code.startswith(ignore)
