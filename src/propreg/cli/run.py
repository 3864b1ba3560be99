"""``propreg run``: a plain GCN against the same GCN with P-reg."""

from typing import Annotated

import typer


def run(
    mu: Annotated[float, typer.Option(help="Strength of the regulariser.")] = 0.5,
) -> None:
    """Train a plain GCN and a GCN with P-reg on the digits graph and print both accuracies."""
    typer.echo(f"not there yet: mu={mu}")
