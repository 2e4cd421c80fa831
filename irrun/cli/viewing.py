"""What commands that look at a model share: files for viewers that other people make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from irrun.cli.files import existing_folder, writing
from irrun.cli.options import say

if TYPE_CHECKING:
    from irrun.check.validate import Report
    from irrun.run.profile import Profile
    from irrun.tools.compare.results import Comparison

Command = TypeVar("Command", bound=Callable[..., Any])


def _json_file(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and path.suffix.lower() != ".json":
        raise click.BadParameter(f"{path} must end in .json: the viewer takes no other name", context, parameter)
    return existing_folder(context, parameter, path)


_OPTIONS = tuple(
    click.option(
        name,
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE.json",
        callback=_json_file,
        help=help,
    )
    for name, help in (
        (
            "--netron",
            "Write what is known of each layer for Netron, where it is shown once the file is dropped onto the model.",
        ),
        (
            "--model-explorer",
            "Write the graphs for Model Explorer, and beside them FILE_macs.json and the like, a file for each number "
            "that nodes can be coloured by.",
        ),
    )
)


def viewing_options(function: Command) -> Command:
    """--netron and --model-explorer, which `write_views` takes."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def view_files(netron: Path | None, model_explorer: Path | None) -> list[Path | None]:
    """All files that `write_views` may write, for `keep_apart`."""
    files = [netron, model_explorer]
    if model_explorer is not None:
        from irrun.tools.viewers.model_explorer.node_data import METRICS, beside

        files += [beside(model_explorer, key) for key in METRICS]
    return files


def write_views(
    context: click.Context,
    report: Report,
    netron: Path | None,
    model_explorer: Path | None,
    profile: Profile | None = None,
    comparison: Comparison | None = None,
) -> None:
    """Write what was asked for, and say where it goes; exit where the model has no graph, or a file cannot be written.

    The profile and the comparison are of runs of the same model.
    """
    if netron is None and model_explorer is None:
        return
    from irrun.check.render.text import one_line
    from irrun.tools.viewers.facts import viewed
    from irrun.tools.viewers.model_explorer.graphs import write_graphs
    from irrun.tools.viewers.model_explorer.node_data import write_node_data
    from irrun.tools.viewers.netron import write_attachment

    try:
        found = viewed(report, profile, comparison)
    except ValueError as error:
        say("error", str(error))
        context.exit(1)
    if netron is not None:
        with writing(context, netron):
            write_attachment(found, netron)
        click.echo(one_line(f"{netron}: drop it onto {report.path.name} in Netron"), err=True)
    if model_explorer is not None:
        with writing(context, model_explorer):
            write_graphs(found, model_explorer)
            data = write_node_data(found, model_explorer)
        paths = f" --node_data_paths {','.join(map(str, data))}" if data else ""
        click.echo(one_line(f"{model_explorer}: model-explorer {model_explorer}{paths}"), err=True)
