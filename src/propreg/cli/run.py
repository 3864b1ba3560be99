"""``propreg run``: a plain GCN against the same GCN with P-reg."""

from typing import Annotated

import typer


def run(
    mu: Annotated[float, typer.Option(min=0.0, help="Strength of the regulariser.")] = 0.5,
    splits: Annotated[int, typer.Option(min=1, max=10, help="How many of the ten splits to train on.")] = 5,
) -> None:
    """Train a plain GCN and a GCN with P-reg on the digits graph and print both accuracies."""
    from rich.console import Console

    from propreg.demo import compare_on_digits

    console = Console()
    console.print("1,797 handwritten digits, each linked to its 5 nearest; 5 labels per class.", highlight=False)
    pairs = []
    for pair in compare_on_digits(mu, splits):
        pairs.append(pair)
        console.print(f"split {pair.split}: plain GCN {pair.plain:.2%}, with P-reg {pair.preg:.2%}", highlight=False)
    plain, with_preg = (sum(side) / len(pairs) for side in zip(*((p.plain, p.preg) for p in pairs), strict=True))
    won = sum(p.preg > p.plain for p in pairs)
    console.print(
        f"\nplain GCN          {plain:.2%}\nGCN + P-reg ({mu:g})  {with_preg:.2%}   "
        f"({100 * (with_preg - plain):+.2f} points, better on {won} of {len(pairs)} splits)",
        highlight=False,
    )
