"""``propreg figure``: a figure of the paper from recorded runs."""

import shlex
import shutil
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propreg.cli.recorded import ResultsPath, read
from propreg.cli.shared import DEFAULT_STORE

if TYPE_CHECKING:
    from propreg.store.progress import Reading
    from propreg.study.figures.parts import Figure
    from propreg.study.spec.experiment import Experiment


def figure(
    name: Annotated[str, typer.Argument(help="A figure, for example fig-mask, table1 or overview.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write: .svg, .png or .pdf; default NAME.svg."),
    ] = None,
    results: ResultsPath = None,
    dataset: Annotated[str | None, typer.Option(help="For fig-depth: a dataset, or all; default cora.")] = None,
) -> None:
    """Draw a figure of the paper from recorded runs; print its caption, its numbers and the missing runs."""
    from propreg.store.errors import unknown
    from propreg.study.figures.build import figure_data, figure_names
    from propreg.study.figures.drawing.save import check_path, save_figure
    from propreg.study.figures.tsne_record import find_tsne

    if name not in figure_names():
        raise unknown("figure", name, figure_names())
    output = output or Path(f"{name}.svg")
    check_path(output)
    reading = read([_asked(name, dataset)], results)
    outputs = find_tsne(reading.paths) if name == "fig-tsne" else None
    made = figure_data(name, reading.results, dataset=dataset, tsne=outputs)
    if outputs is None:
        _need_runs(name, dataset, reading, output)
    save_figure(made, output)
    _print(made)
    typer.echo(f"Written to {output}.")


def _print(figure: "Figure") -> None:
    """The caption, paragraph by paragraph, and the numbers behind it."""
    from propreg.study.tables.text import listing_text

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    typer.echo(textwrap.fill(f"{figure.about} {figure.marks}".strip(), width))
    for name, text in (("The paper", figure.claim), ("The project's record", figure.finding)):
        if text:
            typer.echo(textwrap.fill(f"{name}: {text}", width))
    for listing in figure.listings:
        typer.echo("\n".join(["", *listing_text(listing, width)]), nl=False)
    if figure.missing:
        typer.echo("Missing:")
    for line in figure.missing:
        typer.echo(textwrap.fill(line, width, initial_indent="- ", subsequent_indent="  "))


def _asked(name: str, dataset: str | None) -> "Experiment":
    """The part of an experiment that a figure shows."""
    from propreg.study.spec.experiment import load_experiment

    experiment = load_experiment("table1" if name == "overview" else name)
    wanted = (dataset or "cora").lower()
    if name != "fig-depth" or wanted == "all":
        return experiment
    return replace(experiment, lines=tuple(line for line in experiment.lines if line.dataset == wanted))


def _need_runs(name: str, dataset: str | None, reading: "Reading", output: Path) -> None:
    """Raise if no run is recorded, with the commands that train and draw."""
    from propreg.store.errors import StudyError
    from propreg.store.progress import count_runs
    from propreg.store.sqlite import is_store
    from propreg.study.figures.tsne_record import FILE

    asked, place = _asked(name, dataset), reading.path
    if count_runs([asked], reading.results)[0]:
        return
    if name == "fig-tsne":
        file = shlex.quote(str((place if place.is_dir() else place.parent) / FILE))
        raise StudyError(f"{place} has no record of fig-tsne: propreg tsne -o {file} trains and records it.")
    is_part = name == "fig-depth" and (dataset or "").lower() != "all"
    only = [f"dataset={asked.lines[0].dataset}"] if is_part else []
    command = " --only ".join([f"propreg reproduce {asked.name}", *only])
    in_store = place.is_file() and is_store(place)
    draw = f"propreg figure {name} -o {shlex.quote(str(output))} --results {DEFAULT_STORE}"
    then = "" if in_store else f", and then {draw} draws it"
    store = f" --store {shlex.quote(str(place))}" if in_store and place != DEFAULT_STORE else ""
    raise StudyError(f"{place} has no run of {' with '.join([asked.name, *only])}: {command}{store} trains them{then}.")
