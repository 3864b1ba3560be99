"""``propreg run``: the plain model against the regularised one, on any graph, and a page to look at."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propreg.cli.changing_line import CLEAR, can_change
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
        int | None, typer.Option(min=1, help="Training nodes per class, where your graph has no split; default 20.")
    ] = None,
    val_per_class: Annotated[
        int | None,
        typer.Option(min=1, help="Validation nodes per class, where your graph has no split; default 30."),
    ] = None,
    directed: Annotated[bool, typer.Option("--directed", help="Take your edges.csv as source → target only.")] = False,
    normalize_features: Annotated[
        bool, typer.Option("--normalize-features", help="Divide each node's features by their sum (your own graph).")
    ] = False,
    progress: Annotated[bool, typer.Option(help="Show how far it is and how long it takes.")] = True,
) -> None:
    """Compare the plain model with a regularised one on a graph, and write a page about it."""
    if dataset is not None and graph is not None:
        raise typer.BadParameter("--dataset and --graph name two graphs: give one of them.")
    if graph is None:
        _only_for_own_graphs(
            {
                "--train-per-class": train_per_class is not None,
                "--val-per-class": val_per_class is not None,
                "--directed": directed,
                "--normalize-features": normalize_features,
            }
        )
    from propreg.running.settings import check_device, parse_mu

    try:
        strengths = parse_mu(mu, method.value)
        check_device(device)
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
    with suppress(BrokenPipeError):  # whoever stops reading still gets the folder; the end of the output says so
        _say(text.before(plan))
    folder = claim(output, replace=replace)
    try:
        comparison = compare(plan, progress="lines" if progress else False)
    except BaseException:
        give_up(folder)
        raise
    try:
        _write(folder, comparison)
    finally:  # a closed pipe must not lose what was trained, nor a full disk what can still be said
        left_alone = f"{output} is there already and was left alone. " if folder != output else ""
        _say(["", *text.table(comparison), "", *text.remarks(comparison), "", *text.written(folder, left_alone)])
    if not comparison.result.finished:
        raise typer.Exit(130)


def _only_for_own_graphs(given: dict[str, bool]) -> None:
    """Refuse what would be ignored: a benchmark has its own splits and features."""
    if said := [name for name, there in given.items() if there]:
        are = "is" if len(said) == 1 else "are"
        out = "it" if len(said) == 1 else "them"
        raise typer.BadParameter(
            f"{' and '.join(said)} {are} for your own graph: give one with --graph, or leave {out} out."
        )


def _write(folder: Path, comparison: "Comparison") -> None:
    """Numbers and model first: a page that cannot be made must not lose them."""
    from propreg.running.folder import write_page, write_texts
    from propreg.running.recording import to_csv

    write_texts(folder, comparison.record, to_csv(comparison.result))
    comparison.result.save(folder / "model.npz")
    from propreg.report import run_figures, run_page

    write_page(folder, run_page(comparison.record), run_figures(comparison.record))


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)


@contextmanager
def _loading() -> Iterator[None]:
    """Importing torch takes seconds: a person at a terminal should not wonder."""
    waiting = can_change()
    if waiting:
        sys.stderr.write("loading PyTorch …")
        sys.stderr.flush()
    try:
        yield
    finally:
        if waiting:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()
