"""``propreg figure``: a figure of the paper from recorded runs."""

import shutil
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propreg.cli.study import DEFAULT_STORE, RESULTS, one_sentence

if TYPE_CHECKING:
    from propreg.study.figures.parts import Figure
    from propreg.study.tsne_record import TsneRecord


def figure(
    name: Annotated[str, typer.Argument(help="A figure, for example fig-mask, table1 or overview.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write: .svg, .png or .pdf.")],
    results: Annotated[
        Path | None, typer.Option(help="A store, an export, or a folder of exports; default results/, then the store.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="For fig-depth: another dataset than Cora, or all of them.")
    ] = None,
) -> None:
    """Draw a figure of the paper from recorded runs, and print its caption: what it shows and what is missing."""
    with one_sentence():
        from propreg.study.errors import unknown
        from propreg.study.figures.build import figure_data, figure_names
        from propreg.study.figures.save import check_path, save_figure
        from propreg.study.results import load_results, where_results

        if name not in figure_names():
            raise unknown("figure", name, figure_names())
        check_path(output)
        place = where_results(results, RESULTS, DEFAULT_STORE)
        found = load_results(place)
        made = figure_data(name, found, dataset=dataset, tsne=_outputs(place) if name == "fig-tsne" else None)
        save_figure(made, output)
        _print(made)
        typer.echo(f"Written to {output}.")


def _print(figure: "Figure") -> None:
    """The caption, a line or a paragraph for each thing it says."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    typer.echo(textwrap.fill(f"{figure.about} {figure.marks}".strip(), width))
    if figure.claim:
        typer.echo(textwrap.fill(f"The paper: {figure.claim}", width))
    for title, lines in (("What the runs say:", figure.found), ("Missing:", figure.missing)):
        if lines:
            typer.echo(title)
        for line in lines:
            typer.echo(textwrap.fill(line, width, initial_indent="- ", subsequent_indent="  "))


def _outputs(place: Path) -> "TsneRecord | None":
    """The record of outputs that lies with the runs; None where there is none, which the figure then says."""
    from propreg.study.tsne_record import FILE, read_tsne

    path = (place if place.is_dir() else place.parent) / FILE
    return read_tsne(path) if path.exists() else None
