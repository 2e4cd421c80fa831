"""irrun explain: the long form of a diagnostic's code."""

from __future__ import annotations

import click

from irrun.cli.options import colour, complete_codes, paint


@click.command()
@click.argument("code", required=False, shell_complete=complete_codes)
@click.pass_context
def explain(context: click.Context, code: str | None) -> None:
    """Explain a code, such as E304; without one, list them all."""
    from irrun.check.codes import CODES

    if code is None:
        click.echo("\n".join(f"{name}  {listed.title}" for name, listed in CODES.items()))
        return
    entry = CODES.get(code.upper())
    if entry is None:
        from irrun.spelling import close_matches

        close = close_matches(code, CODES)
        hint = f"; did you mean {close[0]}?" if close else "; `irrun explain` lists them"
        raise click.BadParameter(f"there is no code {code}{hint}", context, param_hint="CODE")
    heading = paint(f"{code.upper()}: {entry.title}", "bold")
    text = click.wrap_text(entry.explanation, width=100)
    broken, mended = (click.wrap_text(part, 100, "    ", "    ", preserve_paragraphs=True) for part in entry.example)
    click.echo(f"{heading}\n\n{text}\n\nWrong:\n{broken}\n\nRight:\n{mended}", color=colour())
