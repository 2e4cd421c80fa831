"""irrun generate: the tokens that a language model goes on with, and how fast."""

from __future__ import annotations

import json
import re
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from irrun.cli.files import require_files
from irrun.cli.options import (
    ENGINE,
    MAX_MEMORY,
    MODEL,
    PRECISION,
    THREADS,
    WEIGHTS,
    colour,
    failures_said,
    ops_option,
    say,
    show,
    warnings_said,
)
from irrun.cli.progress import progress

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_ID = re.compile(r"[0-9]{1,18}", re.ASCII)


def _ids(text: str) -> list[int]:
    """The token ids in `1,2,3`. Raises ValueError."""
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    for part in parts:
        if not _ID.fullmatch(part):
            raise ValueError(f"`{part}` is not a token id; they are given as 1,2,3")
    return [int(part) for part in parts]


def _lines(content: str) -> list[list[int]]:
    """The token ids in each line that is not empty. Raises ValueError, which begins with the number of the line."""
    rows = []
    for number, line in enumerate(content.splitlines(), 1):
        try:
            rows += [_ids(line)] if line.strip() else []
        except ValueError as error:
            raise ValueError(f"{number}: {error}") from None
    return rows


def _rows(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> list[list[int]]:
    try:
        return [_ids(text) for text in given]
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None


@click.command()
@MODEL
@WEIGHTS
@click.option(
    "--prompt-ids",
    "rows",
    multiple=True,
    metavar="1,2,3",
    callback=_rows,
    help="Token ids to go on from; given several times, these are the rows of a batch, padded on the left.",
)
@click.option(
    "--prompt-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Token ids to go on from, a row on each line; with --tokenizer a text.",
)
@click.option("--prompt", "texts", multiple=True, metavar="TEXT", help="A text to go on from, with --tokenizer.")
@click.option(
    "--tokenizer",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where tokenizer.json is, for prompts and results that are text; needs irrun[tokenizers].",
)
@click.option(
    "--max-tokens", type=click.IntRange(1), default=32, show_default=True, metavar="N", help="At most so many."
)
@click.option(
    "--eos-id",
    "eos_ids",
    type=click.IntRange(0),
    multiple=True,
    metavar="ID",
    help="A token that ends a row; may be given several times.",
)
@click.option(
    "--inputs",
    "archive",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="An .npz file with what the model takes besides in every step, such as `encoder_hidden_states`.",
)
@click.option("--json", "as_json", is_flag=True, help="Print ids, texts and times as JSON.")
@click.option("--profile", is_flag=True, help="Print how long each layer took, and what computed it.")
@MAX_MEMORY
@ENGINE
@PRECISION
@THREADS
@ops_option
@click.pass_context
def generate(
    context: click.Context,
    model: Path,
    weights: Path | None,
    rows: list[list[int]],
    prompt_file: Path | None,
    texts: tuple[str, ...],
    folder: Path | None,
    max_tokens: int,
    eos_ids: tuple[int, ...],
    archive: Path | None,
    as_json: bool,
    profile: bool,
    max_memory: int | None,
    engine: str,
    precision: str | None,
    threads: int | None,
) -> None:
    """Let a language model go on from a prompt, by the most likely token each time.

    The model is a decoder that keeps a cache, in variables or as inputs and outputs. Prints the new token ids of each
    row, or their text; and to stderr how long it took.
    """
    if sum(map(bool, (rows, prompt_file, texts))) != 1:
        raise click.UsageError("give one of --prompt-ids, --prompt-file and --prompt", context)
    if texts and folder is None:
        raise click.UsageError("--prompt is a text, which takes --tokenizer DIR", context)
    require_files(context, model, weights, prompt_file, archive, folder and folder / "tokenizer.json")
    tokenizer = _tokenizer(context, folder / "tokenizer.json") if folder else None
    if prompt_file:
        content = _read(context, prompt_file)
        try:
            texts = (content,) if tokenizer else ()
            rows = [] if tokenizer else _lines(content)
        except ValueError as error:
            say("error", f"{prompt_file}:{error}")
            context.exit(1)
    if tokenizer and texts:
        rows = [_encoded(context, tokenizer, text) for text in texts]

    from irrun.run import generation
    from irrun.run.arrays import read_npz
    from irrun.run.executor import GraphExecutor
    from irrun.run.profile import Profile

    measured = Profile() if profile else None
    steps: list[list[int]] = []

    def advice(error: str) -> str | None:
        missing = not archive and error.startswith("no array for input")
        return "give what is not made of the tokens with --inputs FILE" if missing else None

    with failures_said(context, advice):
        begin = perf_counter()
        with warnings_said(), progress("preparing"):
            executor = GraphExecutor(
                model, weights, max_memory=max_memory, engine=engine, threads=threads, precision=precision
            )
        show(executor.report.warnings)
        inputs: dict[str, Any] = read_npz(archive, executor.max_memory) if archive else {}
        loaded = perf_counter()
        with warnings_said(), progress("generating", max_tokens) as shown:
            tokens = generation.generate(
                executor,
                executor.session(),
                rows,
                max_tokens=max_tokens,
                eos_ids=eos_ids,
                inputs=inputs,
                profile=measured,
            )
            steps.append(next(tokens))
            shown.advance()
            first = perf_counter()
            steps += shown.each(tokens)
        end = perf_counter()
    if measured is not None:
        click.echo(measured.table(), err=True)

    results = [list(row) for row in zip(*steps, strict=True)]
    generated = [tokenizer.decode(row) for row in results] if tokenizer else None
    rate = (len(steps) - 1) * len(rows) / (end - first) if len(steps) > 1 else None
    if as_json:
        report: dict[str, Any] = {"prompt": rows, "tokens": results}
        if generated is not None:
            report["text"] = generated
        times = {"load_seconds": loaded - begin, "first_token_seconds": first - loaded, "tokens_per_second": rate}
        click.echo(json.dumps(report | times))
        return
    for line in generated or (",".join(map(str, row)) for row in results):
        click.echo(line.encode("utf-8", "backslashreplace").decode(), color=colour())
    then = f", then {rate:.1f} tokens/s" if rate is not None else ""
    click.echo(f"loaded in {loaded - begin:.2f} s, first token after {first - loaded:.3f} s{then}", err=True)


def _tokenizer(context: click.Context, path: Path) -> Tokenizer:
    try:
        from tokenizers import Tokenizer
    except ImportError:
        message = "--tokenizer needs the package `tokenizers`: pip install 'irrun[tokenizers]'"
        raise click.UsageError(message, context) from None
    content = _read(context, path)
    try:
        return Tokenizer.from_str(content)
    except Exception as error:  # the package raises nothing more special
        say("error", f"{path} is no tokenizer: {error}")
        context.exit(1)


def _encoded(context: click.Context, tokenizer: Tokenizer, text: str) -> list[int]:
    try:
        return list(tokenizer.encode(text).ids)
    except Exception as error:  # as above; such as for a text that is no UTF-8
        say("error", f"the prompt cannot be made tokens of: {error}")
        context.exit(1)


def _read(context: click.Context, path: Path) -> str:
    from irrun.files import open_regular

    try:
        with open_regular(path) as file:
            return file.read().decode("utf-8-sig")  # of which Windows writes a mark in front
    except (OSError, ValueError) as error:
        say("error", f"{path} cannot be read: {getattr(error, 'strerror', None) or error}")
        context.exit(1)
