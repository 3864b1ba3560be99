"""``propreg status``: how much of the experiments is done."""

import shlex
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propreg.cli.complete import experiments
from propreg.cli.recorded import ResultsPath, StoreOrDefault, named
from propreg.cli.shared import (
    DEFAULT_STORE,
    RESULTS,
    Json,
    Only,
    Seeds,
    chosen_parts,
    duration,
    one_sentence,
    print_json,
    sweep,
)

if TYPE_CHECKING:
    from propreg.study.batches import Batch
    from propreg.study.done import Done
    from propreg.study.experiment import Experiment
    from propreg.study.places import Reading


def status(
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments, for example table1. None: all.", autocompletion=experiments)
    ] = None,
    only: Only = None,
    seeds: Seeds = None,
    store: StoreOrDefault = None,
    results: ResultsPath = None,
    as_json: Json = False,
) -> None:
    """Show how much of an experiment is done, and about how long the rest takes; of all, if none is named."""
    with one_sentence():
        from propreg.study.errors import UsageError

        if names:
            _in_detail(chosen_parts(names, only, seeds), _again(names, only, seeds), results, store, as_json)
            return
        if only or seeds:
            raise UsageError(
                "--only and --seeds need the experiment that they are a part of: propreg status NAME --only …"
            )
        _overview(results, store, as_json)


def _overview(results: Path | None, store: Path | None, as_json: bool) -> None:
    """A line for each experiment."""
    from propreg.study.counting import count_runs
    from propreg.study.done import Done
    from propreg.study.experiment import experiment_names, load_experiment, study_names
    from propreg.study.results import Results

    found = {name: load_experiment(name) for name in experiment_names()}
    reading = _reading(list(found.values()), results, store)
    recorded, place = (Results(), None) if reading is None else (reading.results, reading.path)
    rows = {name: count_runs([experiment], recorded) for name, experiment in found.items()}
    done, runs = count_runs([found[name] for name in study_names()], recorded)
    if as_json:
        lines = [{"experiment": name, "done": d, "runs": n} for name, (d, n) in rows.items()]
        print_json({"runs": runs, "done": done, "experiments": lines, "read": None if place is None else str(place)})
        return
    for name, (some, all_) in rows.items():
        typer.echo(f"{name:<24} {some:>7,} of {all_:>7,} runs {100 * some // max(all_, 1):>4} %")
    typer.echo(f"{done:,} of the study's {runs:,} runs done, counted once where experiments share them.")
    typer.echo(f"{_what_was_read(reading, Done(place), store, '')} Line by line: propreg status NAME.")


def _reading(experiments: "Collection[Experiment]", results: Path | None, store: Path | None) -> "Reading | None":
    """The record; None where there is none yet, or not the store that is named."""
    from propreg.study.places import places, read_recorded

    found = places(named(results, store), RESULTS, DEFAULT_STORE)
    return read_recorded(experiments, found) if found and (store is None or store.exists()) else None


def _again(names: list[str], only: list[str] | None, seeds: str | None) -> str:
    """The command that trains what is missing."""
    filters = [*(word for each in only or [] for word in ("--only", each)), *(["--seeds", seeds] if seeds else [])]
    return shlex.join(["propreg", "reproduce", *names, *filters])


def _in_detail(parts: "list[Experiment]", again: str, results: Path | None, store: Path | None, as_json: bool) -> None:
    """A line for each dataset, model and method."""
    from propreg.study.done import Done, what_is_done

    batches = sweep(parts)
    every_run = {run.key: run for batch in batches for run in batch.runs}
    reading = _reading(parts, results, store)
    done_so_far = Done() if reading is None else what_is_done(every_run.values(), reading)
    keys = done_so_far.keys
    rows: dict[tuple[str, str, str], list[int]] = {}
    for line in (line for part in parts for line in part.lines):
        row = rows.setdefault((line.dataset, line.model, line.method.name), [0, 0])
        mine = [run.key in keys for run in line.runs()]
        row[0], row[1] = row[0] + sum(mine), row[1] + len(mine)
    missing = [batch for batch in batches if any(run.key not in keys for run in batch.runs)]
    every = every_run.keys()
    left, how = _time_left(done_so_far, missing)
    if as_json:
        table = [
            dict(zip(("dataset", "model", "method"), k, strict=True), done=d, runs=n) for k, (d, n) in rows.items()
        ]
        total = {"runs": len(every), "done": len(every & keys), "batches_left": len(missing)}
        read = None if done_so_far.read is None else str(done_so_far.read)
        print_json({**total, "seconds_left": left, "lines": table, "read": read})
        return
    for (dataset, model, method), (done, runs) in rows.items():
        typer.echo(f"{dataset:<10} {model:<12} {method:<28} {done:>6} of {runs:>6}")
    about = "" if left is None or not missing else f", about {duration(left)} of training left{how}"
    typer.echo(f"{len(every & keys)} of {len(every)} runs done, {len(missing)} batches to train{about}.")
    typer.echo(_what_was_read(reading, done_so_far, store, again if missing else ""))


def _time_left(done: "Done", missing: "list[Batch]") -> tuple[float | None, str]:
    """Seconds, and the words that say by what."""
    cost = sum(batch.cost for batch in missing)
    if done.seconds_per_cost is not None:
        return done.seconds_per_cost * cost, " by the pace so far"
    if done.pace is None or not done.mean_cost:
        return None, ""
    where = f" ({done.pace.device})" if done.pace.device else ""
    return done.pace.seconds_per_run * cost / done.mean_cost, f", roughly, by the times of recorded runs{where}"


def _what_was_read(reading: "Reading | None", done: "Done", store: Path | None, again: str) -> str:
    """Where the numbers come from; where that is no store, how to go on with what is missing."""
    if reading is None:
        where = f" --store {shlex.quote(str(store))}" if store else ""
        return f"There is no store {store or DEFAULT_STORE} yet: {again or 'propreg reproduce NAME'}{where} makes it."
    said = reading.remark or f"Read from {reading.path}{'/' * reading.path.is_dir()}."
    if not again or not done.files:
        return said
    take = f"propreg store import {shlex.join(map(str, done.files))}, then " if reading.behind else ""
    return f"{said} To go on from it: {take}{again}."
