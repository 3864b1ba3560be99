"""``propreg status``: how much of the experiments is done."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propreg.cli.complete import experiments
from propreg.cli.study import (
    DEFAULT_STORE,
    RESULTS,
    Json,
    Only,
    Seeds,
    StorePath,
    duration,
    lines_of,
    one_sentence,
    print_json,
    sweep,
)

if TYPE_CHECKING:
    from propreg.study.batches import Batch
    from propreg.study.recorded import Done


def status(
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments, for example table1. None: all.", autocompletion=experiments)
    ] = None,
    only: Only = None,
    seeds: Seeds = None,
    store: StorePath = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Show how much of an experiment is done, and about how long the rest takes; of all, if none is named."""
    with one_sentence():
        if names:
            _in_detail(names, only, seeds, store, as_json)
        else:
            _overview(only, seeds, store, as_json)


def _overview(only: list[str] | None, seeds: str | None, store: Path, as_json: bool) -> None:
    """A line for each experiment."""
    from propreg.study.counting import count_runs
    from propreg.study.errors import UsageError
    from propreg.study.experiment import experiment_names, load_experiment
    from propreg.study.recorded import Done, where_done
    from propreg.study.results import Results, load_results

    if only or seeds:
        raise UsageError("--only and --seeds need the experiment that they are a part of: propreg status NAME --only …")
    read = where_done(store, _usual(store))
    results = Results() if read is None else load_results(read)
    found = {name: load_experiment(name) for name in experiment_names()}
    rows = {name: count_runs([experiment], results) for name, experiment in found.items()}
    done, runs = count_runs(found.values(), results)
    if as_json:
        lines = [{"experiment": name, "done": d, "runs": n} for name, (d, n) in rows.items()]
        print_json({"runs": runs, "done": done, "experiments": lines, "read": None if read is None else str(read)})
        return
    for name, (some, all_) in rows.items():
        typer.echo(f"{name:<24} {some:>7,} of {all_:>7,} runs {100 * some // max(all_, 1):>4} %")
    typer.echo(f"{done:,} of {runs:,} runs done, counted once where experiments share them.")
    typer.echo(f"{_what_was_read(Done(read), store, [])} Line by line: propreg status NAME.")


def _in_detail(names: list[str], only: list[str] | None, seeds: str | None, store: Path, as_json: bool) -> None:
    """A line for each dataset, model and method."""
    from propreg.study.recorded import what_is_done

    lines, batches = lines_of(names, only, seeds), sweep(names, only, seeds)
    every_run = {run.key: run for batch in batches for run in batch.runs}
    done_so_far = what_is_done(every_run.values(), store, _usual(store))
    keys = done_so_far.keys
    rows: dict[tuple[str, str, str], list[int]] = {}
    for line in lines:
        row = rows.setdefault((line.dataset, line.model, line.method.name), [0, 0])
        mine = [run.key in keys for run in line.runs()]
        row[0], row[1] = row[0] + sum(mine), row[1] + len(mine)
    missing = [batch for batch in batches if any(run.key not in keys for run in batch.runs)]
    every = every_run.keys()
    left, how = _time_left(done_so_far, missing, len(every - keys))
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
    typer.echo(_what_was_read(done_so_far, store, names if missing else []))


def _usual(store: Path) -> Path | None:
    """A store that is named is not replaced by another record."""
    return RESULTS if store == DEFAULT_STORE else None


def _time_left(done: "Done", missing: "list[Batch]", runs: int) -> tuple[float | None, str]:
    """Seconds, and the words that say by what."""
    if done.seconds_per_cost is not None:
        return done.seconds_per_cost * sum(batch.cost for batch in missing), " by the pace so far"
    if done.pace is None:
        return None, ""
    where = f" ({done.pace.device})" if done.pace.device else ""
    return done.pace.seconds_per_run * runs, f", very roughly, by the mean time of a recorded run{where}"


def _what_was_read(done: "Done", store: Path, names: list[str]) -> str:
    """Where the numbers come from; where that is no store, how to go on with what is missing of experiments."""
    if done.read is None:
        return f"There is no store {store} yet: propreg reproduce makes it."
    if done.read == store:
        return f"Read from the store {store}."
    files = " ".join(map(str, done.files))
    on = f"; to go on from it: propreg store import {files}, then propreg reproduce {' '.join(names)}" if names else ""
    return f"Read from {done.read}/, since there is no store {store}{on}."
