"""irrun edit: another model from a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from irrun.cli.configuration import overrides
from irrun.cli.files import WRITTEN_MODEL, keep_apart, require_files, writing
from irrun.cli.options import MAX_MEMORY, Number, failures_said, ops_option, say, show, tell, warnings_said
from irrun.cli.progress import progress
from irrun.diagnostics import counted

if TYPE_CHECKING:
    from irrun.ir.graph import Model
    from irrun.spec.op import Array
    from irrun.tools.edit.history import History

DIFFERS = 1

VERBS = (
    ("reshape", "NAME=1,3,?,2..8", "Give an input another shape."),
    ("target", "RELEASE", "Write ops of operation sets that a release such as 2024.2 has not as older ones, if exact."),
    ("weights", "f16|f32", "Keep f32 weights as f16, converted as they are read; or f16 ones as f32 again."),
    ("layout", "[NAME=]NHWC", "Let data come in this layout; the model has NCHW unless given, as in NHWC->NCHW."),
    ("input-type", "[NAME=]TYPE", "Let data come in this element type, such as u8."),
    ("mean", "[NAME=]V,V,V", "Subtract this from the data, or one number for each channel."),
    ("scale", "[NAME=]V,V,V", "Divide the data by this, behind the mean."),
    ("cut-from", "NAME", "Let the model begin behind a tensor, which becomes an input."),
    ("cut-to", "NAME", "Let the model end with a tensor; given several times in a row, with all of these."),
    ("add-output", "NAME", "Let a tensor be an output, too."),
    ("rename", "OLD=NEW", "Give an input, output, tensor or layer another name."),
    ("precise", "NAME", "Mark a layer to be computed in f32 where a device would take 16 bits."),
    ("strip", "rt_info,names", "Remove runtime info, or the names of all but inputs and outputs."),
    ("append", "MODEL", "Let another model follow, whose inputs are outputs of this one; see --map."),
)
FLAGS = (
    ("dedup", "Let equal constants be one."),
    ("fold", "Compute what is made of constants and known sizes alone, where nothing gets larger but by a few bytes."),
)


class _InOrder(click.Command):
    """A command that remembers in which order its options were given."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(context).parse_args(args=list(args))
        context.meta["irrun.order"] = [parameter.name for parameter in order]
        return super().parse_args(context, args)


def _key(verb: str) -> str:
    return f"verb_{verb.replace('-', '_')}"


def _verbs(function: Callable[..., Any]) -> Callable[..., Any]:
    for name, help in reversed(FLAGS):
        option = click.option(f"--{name}", _key(name), is_flag=True, help=help)
        function = option(function)
    reverse = click.option(
        "--reverse-channels",
        _key("reverse-channels"),
        multiple=True,
        is_flag=False,
        flag_value="",
        metavar="[NAME]",
        help="Reverse the order of the channels, as from BGR to RGB.",
    )
    function = reverse(function)
    for name, metavar, help in reversed(VERBS):
        function = click.option(f"--{name}", _key(name), multiple=True, metavar=metavar, help=help)(function)
    return function


@click.command(cls=_InOrder)
@click.argument("path", type=click.Path(path_type=Path), metavar="MODEL")
@click.option(
    "--bin",
    "weights",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The .bin of MODEL; the one beside it unless given.",
)
@WRITTEN_MODEL
@_verbs
@click.option("--map", "pairs", multiple=True, metavar="OUTPUT=INPUT", help="With --append: which output goes where.")
@click.option(
    "--verify",
    "archive",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Run the model before and after on the inputs in an .npz file; write nothing where an output is not what the "
    "tensor was before. The inputs are those of MODEL: where data are preprocessed now, the new one gets data that "
    "become these, and where it begins behind tensors, what these were.",
)
@click.option(
    "--tolerance", type=Number(0), default=1e-5, show_default=True, help="What --verify lets results differ "
    "by, relative to the largest number of an output."
)  # fmt: skip
@MAX_MEMORY
@ops_option
@click.pass_context
def edit(
    context: click.Context,
    /,
    path: Path,
    weights: Path | None,
    output: Path,
    pairs: tuple[str, ...],
    archive: Path | None,
    tolerance: float,
    max_memory: int | None,
    **given: Any,
) -> None:
    """Make another model from MODEL: the edits are made in the order in which they stand here.

    Preprocessing options that follow each other are one edit: data are transposed, converted, reversed, reduced by the
    mean and divided by the scale, in this order. The result is validated before it is written; MODEL itself may be
    OUT.xml.

    Exit status: 0 fine; 1 the model is at fault, or results differ; 2 wrong use.
    """
    if archive is None and overrides(context, "tolerance"):
        raise click.UsageError("--tolerance says what --verify allows: give --verify FILE, too", context)
    require_files(context, path, archive)
    steps = _steps(context, given, pairs)
    _keep_apart(context, path, weights, archive, steps, output)
    if not steps:
        raise click.UsageError("nothing to do: give at least one edit, such as --reshape", context)

    from irrun.check.validate import validate
    from irrun.ir.collector import collector_paused
    from irrun.ir.reader import read_model
    from irrun.ir.writer import write_model
    from irrun.tools.edit import EditError, Step
    from irrun.tools.edit import edit as edited

    with collector_paused(), failures_said(context, lambda _: None), warnings_said(), progress("editing"):
        model = read_model(path, weights)
        try:
            history = edited(model, [Step(verb, text) for verb, text in steps])
        except EditError as error:
            raise click.UsageError(str(error), context) from None
        report = validate(model)
        if not report.ok:
            show(history.placed(report.errors))
            say("error", "the edited model is not valid; nothing is written")
            context.exit(1)
        if archive is not None:
            _verify(context, path, weights, model, archive, tolerance, max_memory, history)
        try:
            with writing(context, output):
                write_model(model, output)
        except ValueError as error:
            raise click.UsageError(f"{output} cannot be written: {error}", context) from None
    show(history.placed(report.warnings))
    tell(f"{output}: {counted(sum(1 for _ in model.graph.walk()), 'layer')}", err=True)


def _keep_apart(
    context: click.Context,
    path: Path,
    weights: Path | None,
    archive: Path | None,
    steps: list[tuple[str, str]],
    output: Path,
) -> None:
    """Refuse to write over what is read, but for MODEL itself where the output has its very name: that is meant."""
    read = [archive, *(Path(text.split("\n")[0]) for verb, text in steps if verb == "append")]
    targets = [output, output.with_suffix(".bin")]
    if output.name == path.name and output.absolute().parent.samefile(path.absolute().parent):
        keep_apart(context, None, None, read, targets)
    else:
        keep_apart(context, path, weights, read, targets)


def _steps(context: click.Context, given: dict[str, Any], pairs: tuple[str, ...]) -> list[tuple[str, str]]:
    left = {name: list(texts) for name, texts in given.items() if isinstance(texts, tuple)}
    maps = list(pairs)
    steps: list[tuple[str, str]] = []
    for name in cast("list[str | None]", context.meta["irrun.order"]):
        if name == "pairs":
            if not steps or steps[-1][0] != "append":
                raise click.UsageError("--map OUTPUT=INPUT goes behind the --append that it is for", context)
            steps[-1] = "append", f"{steps[-1][1]}\n{maps.pop(0)}"
        elif name is not None and name.startswith("verb_"):
            verb = name.removeprefix("verb_").replace("_", "-")
            steps.append((verb, left[name].pop(0) if name in left else ""))
    return steps


def _verify(
    context: click.Context,
    path: Path,
    weights: Path | None,
    model: Model,
    archive: Path,
    tolerance: float,
    max_memory: int | None,
    history: History,
) -> None:
    """Exit with 1 where outputs are not what they were. Raises click.UsageError where none of them was a tensor."""
    from irrun.diagnostics import InputError
    from irrun.run.arrays import read_npz
    from irrun.tools.edit.verification import verify

    inputs: dict[str, Array] = read_npz(archive, max_memory)
    try:
        found = verify(path, weights, model, inputs, tolerance, history)
    except InputError:
        raise
    except ValueError as error:
        raise click.UsageError(f"--verify: {error}", context) from None
    for line in found.lines:
        tell(line, err=True)
    if not found.ok:
        say("error", f"results are not within {tolerance:g} of their largest number; nothing is written")
        tell("help: --tolerance allows more: weights kept as f16 are off by some 0.001", err=True)
        context.exit(DIFFERS)
