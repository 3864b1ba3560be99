"""``propreg status``: how much of the experiments is recorded."""

import shlex
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propreg.cli.complete import experiments
from propreg.cli.recorded import ResultsPath, StoreOrDefault, named
from propreg.cli.shared import (
    DEFAULT_STORE,
    Json,
    Only,
    Seeds,
    chosen_parts,
    print_json,
    results_folder,
    sweep,
)
from propreg.console import counted, duration

if TYPE_CHECKING:
    from propreg.store.batch import Batch
    from propreg.store.progress import Reading, SweepProgress
    from propreg.study.spec.experiment import Experiment


def status(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Experiments, for example table1, or your own my.toml; default: all.", autocompletion=experiments
        ),
    ] = None,
    only: Only = None,
    seeds: Seeds = None,
    store: StoreOrDefault = None,
    results: ResultsPath = None,
    as_json: Json = False,
) -> None:
    """Show how much of an experiment is recorded and about how long the rest will take; without a name, of all of them.

    Stores of shards that lie beside the store are counted, too.
    """
    from propreg.store.errors import UsageError

    if names:
        _in_detail(chosen_parts(names, only, seeds), _again(names, only, seeds), results, store, as_json)
        return
    if only or seeds:
        raise UsageError("--only and --seeds need the experiment that they are a part of: propreg status NAME --only …")
    _overview(results, store, as_json)


def _overview(results: Path | None, store: Path | None, as_json: bool) -> None:
    """A line for each experiment."""
    from propreg.store.progress import SweepProgress, count_runs
    from propreg.store.results import Results
    from propreg.study.spec.experiment import experiment_names, load_experiment, study_names
    from propreg.study.spec.unfold import unfolded

    found = {name: load_experiment(name) for name in experiment_names()}
    reading = _reading(list(found.values()), results, store)
    recorded, path = (Results(), None) if reading is None else (reading.results, reading.path)
    found = {name: unfolded(experiment, recorded) for name, experiment in found.items()}
    rows = {name: count_runs([experiment], recorded) for name, experiment in found.items()}
    done, runs = count_runs([found[name] for name in study_names()], recorded)
    if as_json:
        lines = [{"experiment": name, "done": d, "runs": n} for name, (d, n) in rows.items()]
        print_json({"runs": runs, "done": done, "experiments": lines, "read": None if path is None else str(path)})
        return
    for name, (some, all_) in rows.items():
        typer.echo(f"{name:<24} {some:>7,} of {all_:>7,} runs {100 * some // max(all_, 1):>4} %")
    typer.echo(f"{done:,} of the study's {runs:,} runs done, counted once where experiments share them.")
    typer.echo(f"{_what_was_read(reading, SweepProgress(path), store, '')} Line by line: propreg status NAME.")


def _reading(experiments: "Collection[Experiment]", results: Path | None, store: Path | None) -> "Reading | None":
    """The record that is read, with the stores of shards beside it; None if there is none yet."""
    from propreg.store.progress import find_records, read_recorded
    from propreg.store.results import add_store
    from propreg.study.spec.shards import shard_stores

    beside = store or DEFAULT_STORE
    shards = [] if results is not None else shard_stores(beside)
    found = find_records(named(results, store), results_folder(), DEFAULT_STORE)
    if not found or (store is not None and not store.exists()):
        if not shards:
            return None
        found, more = shards[:1], shards[1:]
    else:
        more = shards
    reading = read_recorded(experiments, found)
    if not shards:
        return reading
    for shard in more:
        add_store(reading.results, shard)
    read = f"{_source(reading)} Also counted:" if more is shards else "Read from"
    merge = shlex.join(["propreg", "store", "merge", *map(str, shards), "--store", str(beside)])
    return replace(reading, remark=f"{read} {counted(len(shards), 'store')} of shards. To join them: {merge}.")


def _again(names: list[str], only: list[str] | None, seeds: str | None) -> str:
    """The command that trains what is missing."""
    filters = [*(word for each in only or [] for word in ("--only", each)), *(["--seeds", seeds] if seeds else [])]
    return shlex.join(["propreg", "reproduce", *names, *filters])


def _in_detail(parts: "list[Experiment]", again: str, results: Path | None, store: Path | None, as_json: bool) -> None:
    """A line for each dataset, model and method."""
    from propreg.store.progress import SweepProgress
    from propreg.study.spec.unfold import unfolded

    reading = _reading(parts, results, store)
    if reading is not None:
        parts = [unfolded(part, reading.results) for part in parts]
    batches = sweep(parts)
    every = {run.key for batch in batches for run in batch.runs}
    progress = SweepProgress() if reading is None else SweepProgress.of(batches, reading)
    rows: dict[tuple[str, str, str], list[int]] = {}
    for line in (line for part in parts for line in part.lines):
        row = rows.setdefault((line.dataset, line.model, line.method.name), [0, 0])
        mine = [run.key in progress.keys for run in line.runs()]
        row[0], row[1] = row[0] + sum(mine), row[1] + len(mine)
    missing = [batch for batch in batches if batch.missing(progress.keys)]
    left, how = _time_left(progress, missing)
    if as_json:
        table = [
            dict(zip(("dataset", "model", "method"), k, strict=True), done=d, runs=n) for k, (d, n) in rows.items()
        ]
        total = {"runs": len(every), "done": len(every & progress.keys), "batches_left": len(missing)}
        read = None if progress.read is None else str(progress.read)
        print_json({**total, "seconds_left": left, "lines": table, "read": read})
        return
    for (dataset, model, method), (done, runs) in rows.items():
        typer.echo(f"{dataset:<10} {model:<12} {method:<28} {done:>6} of {runs:>6}")
    about = "" if left is None or not missing else f", about {duration(left)} of training left{how}"
    typer.echo(f"{len(every & progress.keys)} of {len(every)} runs done, {len(missing)} batches to train{about}.")
    if whole := sum(len(x.splits) * x.search.runs for part in parts for x in part.lines if x.search and not x.rung):
        typer.echo(f"A search goes on from rung to rung: with all of them there are {whole:,} runs.")
    typer.echo(_what_was_read(reading, progress, store, again if missing else ""))


def _time_left(progress: "SweepProgress", missing: "list[Batch]") -> tuple[float | None, str]:
    """Seconds, and the words for what they are estimated from."""
    cost = sum(batch.cost for batch in missing)
    if progress.seconds_per_cost is not None:
        return progress.seconds_per_cost * cost, " by the pace so far"
    if progress.pace is None or not progress.mean_cost:
        return None, ""
    where = f" ({progress.pace.device})" if progress.pace.device else ""
    seconds = progress.pace.seconds_per_run * cost / progress.mean_cost
    return seconds, f", roughly, by the times of recorded runs{where}"


def _what_was_read(reading: "Reading | None", progress: "SweepProgress", store: Path | None, again: str) -> str:
    """Where the numbers come from; if that is no store, also how to train what is missing."""
    if reading is None:
        where = f" --store {shlex.quote(str(store))}" if store else ""
        return f"There is no store {store or DEFAULT_STORE} yet: {again or 'propreg reproduce NAME'}{where} makes it."
    source = _source(reading)
    if not again or not progress.files:
        return source
    take = f"propreg store import {shlex.join(map(str, progress.files))}, then " if reading.behind else ""
    return f"{source} To go on from it: {take}{again}."


def _source(reading: "Reading") -> str:
    return reading.remark or f"Read from {reading.path}{'/' * reading.path.is_dir()}."
