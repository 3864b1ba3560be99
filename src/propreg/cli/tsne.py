"""``propreg tsne``: the outputs behind figure 3, laid out with t-SNE."""

from pathlib import Path
from typing import Annotated

import typer

from propreg.cli.shared import Device, make_trainer


def tsne(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The record to write, for example results/tsne.json.gz.")
    ],
    device: Device = "auto",
) -> None:
    """Train the runs of fig-tsne again, lay their outputs out with t-SNE, and write a small record for the figure."""
    from propreg.devices import check_device
    from propreg.study.execute.tsne import make_tsne
    from propreg.study.figures.tsne_record import check_tsne_target, write_tsne

    check_device(device)
    check_tsne_target(output)
    record = make_tsne(make_trainer(device), say=lambda text: typer.echo(text, err=True))
    write_tsne(output, record)
    typer.echo(f"{len(record.clouds)} methods with {len(record.clouds[0].runs)} seeds written to {output}.")
