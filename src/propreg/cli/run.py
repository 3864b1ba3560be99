"""``propreg run``: the plain model against the regularised one, on any graph, and a page to look at."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propreg.cli.complete import node_datasets

if TYPE_CHECKING:
    from propreg.running.comparison import Comparison


class Model(StrEnum):
    """The architectures."""

    gcn = "gcn"
    gat = "gat"
    mlp = "mlp"
    appnp = "appnp"


class Method(StrEnum):
    """The regularisers."""

    preg = "preg"
    laplacian = "laplacian"
    confidence_penalty = "confidence_penalty"
    label_smoothing = "label_smoothing"


class Preset(StrEnum):
    """Whose formula."""

    paper = "paper"
    reference = "reference"


def run(
    dataset: Annotated[
        str | None,
        typer.Option(help="A benchmark dataset; digits, the default, needs no download.", autocompletion=node_datasets),
    ] = None,
    graph: Annotated[
        Path | None, typer.Option(help="Your own graph: a folder with edges.csv and nodes.csv, or an .npz file.")
    ] = None,
    model: Annotated[Model, typer.Option(help="What is trained.")] = Model.gcn,
    method: Annotated[
        Method, typer.Option(help="The regulariser: P-reg, or one the paper compares with.")
    ] = Method.preg,
    preset: Annotated[Preset, typer.Option(help="The paper's formula, or the official code's.")] = Preset.paper,
    mu: Annotated[
        str, typer.Option(help="The strength: auto, a number, or a list like 0.2,0.5 to choose from.")
    ] = "auto",
    splits: Annotated[
        int | None, typer.Option(min=1, help="How many splits to train on; default 10 for digits, else 5.")
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Trainings per split and strength; default 1 for digits, else 3 (10 for one split)."),
    ] = None,
    max_epochs: Annotated[
        int | None, typer.Option(min=1, help="Stop a training after so many; default 100 for digits, else 1000.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write; one that is there gets a number instead.")
    ] = Path("propreg-run"),
    replace: Annotated[bool, typer.Option("--replace", help="Write over that folder, if it holds a run.")] = False,
    train_per_class: Annotated[
        int, typer.Option(min=1, help="Training nodes per class, where your graph has no split.")
    ] = 20,
    val_per_class: Annotated[
        int, typer.Option(min=1, help="Validation nodes per class, where your graph has no split.")
    ] = 30,
    directed: Annotated[bool, typer.Option("--directed", help="Take edges.csv as source → target only.")] = False,
    normalize_features: Annotated[
        bool, typer.Option("--normalize-features", help="Divide each node's features by their sum (your own graph).")
    ] = False,
    progress: Annotated[bool, typer.Option(help="Show a bar while training, on a terminal.")] = True,
) -> None:
    """Compare the plain model with a regularised one on a graph, and write a page about it."""
    if dataset is not None and graph is not None:
        raise typer.BadParameter("--dataset and --graph name two graphs: give one of them.")
    from propreg.running.settings import parse_mu

    try:
        strengths = parse_mu(mu)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    with _loading():
        from propreg.running import text
        from propreg.running.comparison import compare, make_plan
        from propreg.running.folder import claim, give_up
        from propreg.running.source import load_own, load_source

    source = (
        load_source(dataset or "digits", splits=splits)
        if graph is None
        else load_own(
            graph,
            directed=directed,
            normalize_features=normalize_features,
            splits=splits,
            train_per_class=train_per_class,
            val_per_class=val_per_class,
        )
    )
    plan = make_plan(
        source,
        model=model.value,
        method=method.value,
        preset=preset.value,
        mu=strengths,
        seeds=seeds,
        max_epochs=max_epochs,
        device=device,
    )
    _say(text.before(plan))
    folder = claim(output, replace=replace)
    try:
        comparison = compare(plan, progress=None if progress else False)
    except BaseException:
        give_up(folder)
        raise
    _say(["", *text.table(comparison), ""])
    _say(text.remarks(comparison))
    _write(folder, output, comparison)
    if not comparison.result.finished:
        raise typer.Exit(130)


def _write(folder: Path, wanted: Path, comparison: "Comparison") -> None:
    """Numbers and model first: a page that cannot be made must not lose them."""
    from propreg.running import text
    from propreg.running.folder import write_page, write_texts
    from propreg.running.recording import to_csv

    write_texts(folder, comparison.record, to_csv(comparison.result))
    comparison.result.save(folder / "model.npz")
    try:
        from propreg.report import run_figures, run_page

        write_page(folder, run_page(comparison.record), run_figures(comparison.record))
    finally:
        left_alone = f"{wanted} is there already and was left alone. " if folder != wanted else ""
        _say(["", *text.written(folder, left_alone)])


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)


@contextmanager
def _loading() -> Iterator[None]:
    """Importing torch takes seconds: a person at a terminal should not wonder."""
    waiting = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    if waiting:
        sys.stderr.write("loading PyTorch …")
        sys.stderr.flush()
    try:
        yield
    finally:
        if waiting:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
