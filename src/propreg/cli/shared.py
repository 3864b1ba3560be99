"""What the commands share: options, and the selected part of experiments."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from propreg.store.batch import Batch
    from propreg.study.execute.trainer import Trainer
    from propreg.study.spec.experiment import Experiment

DEFAULT_STORE = Path("propreg-study.sqlite")
RESULTS = Path("results")
PACKAGED = Path(__file__).parent.parent / "record"
"""The study's record in an installed package; a checkout has it in ``results/``."""
StorePath = Annotated[Path, typer.Option("--store", help="The SQLite file that holds finished runs.")]
Only = Annotated[
    list[str] | None, typer.Option(help="Only a part, for example dataset=cora,model=gcn,method=preg-reference.")
]
Seeds = Annotated[str | None, typer.Option(help="Only these seeds, for example 0,1,2 or 0-4.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Columns = Annotated[
    str | None,
    typer.Option(
        help="The names of columns where they are others: label=species,source=from,target=to; of id, label, split, "
        "source, target and weight."
    ),
]


def columns_of(text: str | None) -> dict[str, str] | None:
    """The names of columns by what they hold.

    Example:
        >>> columns_of("label=species, id=name")
        {'label': 'species', 'id': 'name'}
    """
    if text is None:
        return None
    from propreg import _choices
    from propreg.data.own.frames import COLUMNS

    found: dict[str, str] = {}
    for part in text.split(","):
        what, equals, name = (each.strip() for each in part.partition("="))
        if not equals or not name or what in found:
            raise typer.BadParameter(f"--columns is like label=species,source=from, each once, got {text!r}.")
        try:
            _choices.one_of("a key of --columns", what, COLUMNS)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        found[what] = name
    return found


def results_folder() -> Path:
    """The folder of the record: ``results/`` here if there is one, else the one that came with the package."""
    return PACKAGED if PACKAGED.is_dir() and not RESULTS.is_dir() else RESULTS


def say(lines: Iterable[str]) -> None:
    """Print lines."""
    for line in lines:
        typer.echo(line)


def page_of(record: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """The page of a run, and its figures."""
    from propreg.report import run_figures, run_page

    return run_page(record), run_figures(record)


def print_json(value: object) -> None:
    """One JSON value on standard output."""
    typer.echo(json.dumps(value, allow_nan=False))


def chosen_parts(names: list[str], only: list[str] | None, seeds: str | None) -> "list[Experiment]":
    """The experiments of these names, each once, with the lines and seeds that the filters leave."""
    from propreg.store.errors import UsageError
    from propreg.study.spec.experiment import load_experiment, select_lines

    spans = None if seeds is None else _spans(seeds)
    found = []
    for experiment in map(load_experiment, dict.fromkeys(names)):
        if spans is not None and any(line.search for line in experiment.lines):
            raise UsageError(
                f"--seeds cannot choose from {experiment.name}, a search with seeds of its own: leave it out."
            )
        numbers = None if spans is None else _seeds_of(experiment, spans)
        found.append(replace(experiment, lines=select_lines(experiment, only or (), numbers)))
    return found


def sweep(parts: "Iterable[Experiment]", *, measures: bool = False) -> "list[Batch]":
    """The batches of experiments, cut per experiment, so that naming two of them changes neither's."""
    from propreg.study.spec.batches import cut, joined

    batches = joined(batch for part in parts for batch in cut(part.lines))
    return [replace(batch, measures=True) for batch in batches] if measures else batches


def with_rungs(parts: "list[Experiment]", store: Path) -> "list[Experiment]":
    """The experiments with what the store adds to them; it is read only if it may add something."""
    from propreg.store.results import load_results
    from propreg.study.spec.unfold import unfolded

    if not any(line.unfolds for part in parts for line in part.lines):
        return parts
    results = load_results(store)
    return [unfolded(part, results) for part in parts]


def make_trainer(device: str, store: Path | None = None) -> "Trainer":
    """The trainer; this imports torch. Batches in training are kept beside the store."""
    from propreg.study.execute.trainer import Trainer

    return Trainer(device, folder=None if store is None else store.with_name(f"{store.name}.training"))


def _spans(text: str) -> list[range]:
    """The seeds of 0,1,2 or 0-4."""
    from propreg.store.errors import UsageError

    found: list[range] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        try:
            found.append(range(int(first), int(last if dash else first) + 1))
        except ValueError:
            raise UsageError(f"--seeds must be like 0,1,2 or 0-4, got {text!r}.") from None
        if not found[-1]:
            raise UsageError(f"--seeds {part.strip()} is an empty range: write the smaller seed first, as in 0-4.")
    return found


def _seeds_of(experiment: "Experiment", spans: list[range]) -> list[int]:
    """All seeds of spans. The ends are checked first: a span may be larger than memory."""
    from propreg.store.errors import unknown

    known = sorted({seed for line in experiment.lines for seed in line.seeds})
    for end in (end for span in spans for end in (span[0], span[-1])):
        if end not in known:
            raise unknown(f"seed in {experiment.name}", end, map(str, known))
    return [seed for span in spans for seed in span]
