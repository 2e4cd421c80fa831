"""irrun schema: a grammar of the IR for editors and other tools."""

from __future__ import annotations

import click

from irrun.cli.options import ops_option


@click.command()
@ops_option
def schema() -> None:
    """Print a RELAX NG grammar of the IR: what may stand where, and the attributes of every operation."""
    from irrun.check.grammar import grammar
    from irrun.spec.registry import registry

    click.echo(grammar(registry()), nl=False)
