"""Options that several commands share, and how they write to a terminal."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from irrun.cli.progress import is_dumb
from irrun.diagnostics import EngineError
from irrun.engines import ENGINES, PRECISIONS

if TYPE_CHECKING:
    from irrun.diagnostics import Diagnostic
    from irrun.run.executor import GraphExecutor


Command = TypeVar("Command", bound=Callable[..., Any])


class Renamed(click.Option):
    """An option that is also taken by the names that it had before, which its help does not show."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        names, self.opts = self.opts, self.opts[:1]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = names


class Number(click.FloatRange):
    """A number in a range, which NaN is not."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value} is no number.", param, ctx)
        return number


MODEL = click.argument("model", type=click.Path(path_type=Path))
WEIGHTS = click.option(
    "--bin",
    "--weights",
    "weights",
    cls=Renamed,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The .bin file; the one beside the model by default.",
)

FORMAT_NAMES = ("text", "concise", "json", "jsonl", "sarif", "github", "gitlab", "junit")
"""The keys of irrun.check.render.formats, which is imported only where it is needed: `irrun --help` must not wait."""

_STYLES: dict[str, dict[str, Any]] = {
    "error": {"fg": "red", "bold": True},
    "warning": {"fg": "yellow", "bold": True},
    "info": {"fg": "cyan", "bold": True},
    "ok": {"fg": "green", "bold": True},
    "bold": {"bold": True},
    "dim": {"fg": "blue"},
}


_SIZE = r"\?|-1|\d+|\d+\.\.\d*|\.\.\d+|[^\W\d]\w*"
"""A size: known, unknown, from .. to, or a name for an unknown one."""

_BYTES = r"(?ai)\s*(\d{1,18}(?:\.\d{1,18})?)\s*((?:[kmgt]i?)?b?)\s*"
_UNITS = {
    **dict.fromkeys(("", "b"), 1),
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)},
    **{f"{letter}{end}": 1024**power for power, letter in enumerate("kmgt", 1) for end in ("", "i", "ib")},
}


def _bytes(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    found = re.fullmatch(_BYTES, text) if text is not None else None
    if text is not None and found is None:
        raise click.BadParameter(f"`{text}` is not a size such as 4GiB, 500MB or 1000000", context, parameter)
    return int(float(found[1]) * _UNITS[found[2].lower()]) if found else None


MAX_MEMORY = click.option(
    "--max-memory",
    metavar="SIZE",
    callback=_bytes,
    help="How much the results of layers may take at once, and the inputs: 4GiB, 500MB or a number of bytes; the "
    "physical memory by default. A layer that asks for more is refused before it runs. Not counted is what a layer "
    "needs besides while it computes.",
)
ENGINE = click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="auto",
    show_default=True,
    help="What computes: auto is onednn where that is installed and pays, else numpy; reference runs each layer by its "
    "op's own kernel, as `irrun ops` documents it; check is auto, and stops at the first layer that reference computes "
    "otherwise.",
)
PRECISION = click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    help="In which types floats are computed: declared, those of the model, is the default of the engine reference; "
    "auto, f32 for f16 and bf16, that of the others; f32 is auto with f32 for f64, too; bf16 is auto with bf16 for "
    "products, convolutions and what lies between; f16 emulates a device that rounds the result of every layer to f16; "
    "f64 computes all in f64. Inputs and results are as declared.",
)
THREADS = click.option(
    "--threads",
    type=click.IntRange(1),
    metavar="N",
    help="How many threads compute; as many as OMP_NUM_THREADS says, or processors.",
)


def paint(text: str, style: str) -> str:
    return click.style(text, **_STYLES[style])


def colour() -> bool | None:
    """What click.echo takes: False for no colour at all, None for colour on terminals only."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return False if is_dumb() else None


def note_read(context: click.Context, *paths: Path) -> None:
    """Keep in mind what an option reads before the command runs, which never sees the path."""
    context.meta.setdefault("irrun.read", []).extend(paths)


def files_read(context: click.Context) -> list[Path]:
    """What `note_read` was told."""
    return list(context.meta.get("irrun.read", ()))


def ops_option(function: Callable[..., Any], *, exposed: bool = False) -> Callable[..., Any]:
    """--ops FILE, which loads before the command runs; where it is `exposed` the command is given the paths, too."""

    def load(context: click.Context, parameter: click.Parameter, paths: tuple[Path, ...]) -> tuple[Path, ...]:
        if paths:
            from irrun.spec.registry import load_ops

            note_read(context, *paths)
            for path in paths:
                try:
                    load_ops(path)
                except (Exception, SystemExit) as error:  # whatever the user's module raises
                    raise click.BadParameter(f"{path}: {type(error).__name__}: {error}", context, parameter) from None
        return paths

    option = click.option(
        "--ops",
        "ops_files",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        multiple=True,
        metavar="FILE",
        callback=load,
        expose_value=exposed,
        help="A Python module with custom ops; may be given several times. It is run, so trust it.",
    )
    return option(function)


def parse_codes(given: Iterable[str]) -> tuple[str, ...]:
    """Codes and their beginnings, in capitals, from texts such as `E3,W931`. Raises ValueError for what begins none."""
    codes = tuple(code.strip().upper() for text in given for code in text.split(",") if code.strip())
    if not codes:
        return ()

    from irrun.check.codes import CODES

    for code in codes:
        if not any(known.startswith(code) for known in CODES):
            from irrun.spelling import close_matches

            close = close_matches(code, CODES)
            hint = f"did you mean {close[0]}?" if close else "`irrun explain` lists them"
            raise ValueError(f"there is no code {code}; {hint}")
    return codes


def complete_codes(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The codes that what is typed may become; of several, the last one."""
    from irrun.check.codes import CODES

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{code}" for code in CODES if code.startswith(last.upper())]


def codes_option(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return parse_codes(given)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None


def parse_shape_option(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, list[str]]:
    """NAME=1,?,2..8,seq for each input."""
    shapes = {}
    for text in given:
        name, equals, sizes = text.rpartition("=")
        if name in shapes:
            raise click.BadParameter(f"the shape of `{name}` is given twice", context, parameter)
        parts = [part.strip() for part in sizes.split(",")] if sizes.strip() else []
        if not equals or not all(re.fullmatch(_SIZE, part) for part in parts):
            raise click.BadParameter(f"`{text}` is not of the form NAME=1,?,2..8,seq", context, parameter)
        shapes[name] = ["?" if part == "-1" else part for part in parts]
    return shapes


def at_most_one(context: click.Context, parameter: click.Parameter, given: tuple[Path, ...]) -> Path | None:
    """The file of an option that other commands take several times: a second one is not left out in silence."""
    if len(given) > 1:
        raise click.BadParameter(f"one file is taken, not {len(given)}", context, parameter)
    return given[0] if given else None


INPUTS = click.option(
    "--inputs",
    "archive",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    metavar="FILE",
    callback=at_most_one,
    help="An .npz file with an array per input.",
)


class _Seed(click.IntRange):
    """A seed. That it may be left out makes what stands behind --random one."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        try:
            return super().convert(value, parameter, context)
        except click.BadParameter:
            message = f"`{value}` is no seed, which is 0 or more; without one, --random stands at the end"
            self.fail(f"{message}, or before another option", parameter, context)


def random_option(help: str) -> Callable[[Command], Command]:
    """--random, which may be given without its seed."""
    text = f"{help}; the seed is 0 where none is given."
    return click.option("--random", "seed", type=_Seed(0), is_flag=False, flag_value="0", metavar="[SEED]", help=text)


RANDOM = random_option("Make up the inputs that are not given")
RANDOM_SHAPES = click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=1,3,224,?",
    callback=parse_shape_option,
    help="The shape of an input that --random makes up; ? is a size that the model can do with.",
)


def require_random(context: click.Context, seed: int | None, shapes: Mapping[str, list[str]]) -> None:
    """Raises click.UsageError where there are shapes for inputs, and none is made up."""
    if shapes and seed is None:
        raise click.UsageError("--shape is the shape of an input that --random makes up", context)


def made_up(
    context: click.Context,
    executor: GraphExecutor,
    seed: int | None,
    shapes: Mapping[str, list[str]],
    arrays: Mapping[str, Any],
) -> dict[str, Any]:
    """`arrays`, and with a `seed` made-up ones for all other inputs, of the shapes that --shape gives.

    Raises click.UsageError where a shape is of no input, or of one that is not made up, and InputError.
    """
    from irrun.check.validate import find_input, given_shape

    require_random(context, seed, shapes)
    if seed is None:
        return dict(arrays)
    try:
        asked = {find_input(executor.model, name): name for name in shapes}
        for name, sizes in shapes.items():
            given_shape(sizes, name, {})
    except ValueError as error:
        raise click.BadParameter(str(error), context, param_hint="--shape") from None
    inputs = executor.random_inputs(seed, shapes, arrays)  # which knows the names of the arrays
    for name in arrays:
        twice = asked.get(find_input(executor.model, name))
        if twice is not None:
            message = f"there is an array for `{twice}`, so that it is not made up and has no shape of its own"
            raise click.BadParameter(message, context, param_hint="--shape")
    return inputs


def show(diagnostics: Sequence[Diagnostic]) -> None:
    """Diagnostics on stderr, those of one cause once."""
    from irrun.check.render.alike import grouped
    from irrun.check.render.text import render_diagnostic, source_at

    sources = {file: source_at(Path(file)) for file in {found.file for found in diagnostics if found.file}}
    for alike in grouped(diagnostics):
        text = render_diagnostic(alike.first, sources.get(alike.first.file or ""), paint, alike.more)
        click.echo(text.encode("utf-8", "backslashreplace").decode(), err=True, color=colour())


def tell(message: str, *, err: bool = False) -> None:
    """A line, whatever names in it hold."""
    from irrun.check.render.text import one_line

    click.echo(one_line(message), err=err)


def say(kind: str, message: str) -> None:
    from irrun.check.render.text import one_line

    click.echo(f"{paint(kind, 'bold' if kind == 'note' else kind)}: {one_line(message)}", err=True, color=colour())


@contextmanager
def failures_said(
    context: click.Context,
    advice: Callable[[str], str | None],
    remedy: Callable[[Sequence[Diagnostic]], str | None] = lambda _: None,
) -> Iterator[None]:
    """Exit with 1 where the model or its inputs are at fault, after what is wrong and the `advice` for that, if any.

    `remedy` is asked for advice about diagnostics.

    Raises click.BadParameter where an engine is not there.
    """
    from irrun.diagnostics import InputError, IRError

    try:
        yield
    except EngineError as error:
        raise click.BadParameter(str(error), context) from None
    except IRError as error:
        show(error.diagnostics)
        help = remedy(error.diagnostics)
        if help is not None:
            tell(f"help: {help}", err=True)
        context.exit(1)
    except (InputError, MemoryError) as error:
        problems = error.problems if isinstance(error, InputError) else [str(error) or "there is not enough memory"]
        for problem in problems:
            say("error", problem)
        help = advice(str(error))
        if help is not None:
            tell(f"help: {help}", err=True)
        context.exit(1)


@contextmanager
def warnings_said() -> Iterator[None]:
    """Warnings of runs go to stderr, every time."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: say("warning", str(message))
        warnings.simplefilter("always")
        yield
