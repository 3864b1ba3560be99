"""``propreg reproduce``: the paper's experiments, or those of a file of yours, run by run."""

import json
import shlex
import time
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from propreg.cli.complete import experiments
from propreg.cli.guard import FAILED, INTERRUPTED, MISSING
from propreg.cli.shared import (
    DEFAULT_STORE,
    RESULTS,
    Device,
    Json,
    Only,
    Seeds,
    StorePath,
    chosen_parts,
    make_trainer,
    print_json,
    sweep,
    with_rungs,
)
from propreg.console import StatusLine, duration

if TYPE_CHECKING:
    from propreg.store.batch import Batch
    from propreg.store.store import Store
    from propreg.study.execute.runner import Progress, SweepReport
    from propreg.study.spec.experiment import Experiment


class Engine(StrEnum):
    """Where runs are trained."""

    local = "local"
    ray = "ray"


Names = Annotated[
    list[str],
    typer.Argument(help="Experiments, for example table1, or your own my.toml.", autocompletion=experiments),
]


def reproduce(
    names: Names,
    only: Only = None,
    seeds: Seeds = None,
    device: Device = "auto",
    time_limit: Annotated[str | None, typer.Option(help="Stop cleanly after this time, for example 9m or 90s.")] = None,
    measures: Annotated[
        bool,
        typer.Option(
            "--measures",
            help="Also record the measures behind macro-F1, NLL, Brier score and calibration error. Runs that are "
            "recorded without them are trained again; if the scores differ, the record is replaced only if another "
            "engine version trained it.",
        ),
    ] = False,
    shard: Annotated[
        str | None,
        typer.Option(
            help="Train one of N parts of equal cost, for example 3/8 (counted from 0), into its own store beside "
            "--store. auto/8 reads the number of the part from SLURM or Kubernetes, auto reads both from SLURM. "
            "propreg store merge joins the stores.",
        ),
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="Where to train: in this process, or on a Ray cluster.")
    ] = Engine.local,
    address: Annotated[
        str | None,
        typer.Option(help="The Ray cluster, as host:6379; default: the cluster of this machine, or a new one on it."),
    ] = None,
    gpus: Annotated[
        float | None,
        typer.Option(min=0, help="GPUs per Ray worker, for example 0.5; default 1 if the cluster has GPUs."),
    ] = None,
    memory: Annotated[
        float | None, typer.Option(min=0, help="GiB of memory per Ray worker; default: no limit.")
    ] = None,
    store: StorePath = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Train the runs of experiments that the store lacks. Ctrl-C stops cleanly; run again to continue.

    A search trains a rung once the store holds all runs of the rung before, and strengths beyond a grid are trained
    once its largest is picked; a shard trains the first rung and the grid only.

    The exit code is 3 if runs are missing at the end: the time was up, or batches were left out.
    """
    from propreg.devices import check_device
    from propreg.store.errors import UsageError
    from propreg.store.store import Store
    from propreg.study.execute.cluster import RayExecutor, Share
    from propreg.study.execute.executors import Executor, LocalExecutor
    from propreg.study.execute.runner import Stop, SweepReport, refuse_changed_graphs, run_sweep
    from propreg.study.spec.shards import Shard

    stop = Stop(_seconds(time_limit))
    parts = chosen_parts(names, only, seeds)
    if engine is Engine.local:
        check_device(device)
        if (address, gpus, memory) != (None, None, None):
            raise UsageError("--address, --gpus and --memory are for a Ray cluster: add --engine ray.")
    part = None if shard is None else Shard.parse(shard)
    unfolding = part is None and any(line.unfolds for each in parts for line in each.lines)
    show, report = _Shown(as_json), SweepReport()
    with Store(store if part is None else part.store(store)) as opened, stop.on_signals():
        _tell_of_results(parts, opened)
        executor: Executor = (
            LocalExecutor(opened, lambda: make_trainer(device, opened.path))
            if engine is Engine.local
            else RayExecutor(opened, partial(make_trainer, device), address, Share(gpus, memory))
        )
        known: list[Batch] = []
        while True:
            batches = sweep(with_rungs(parts, opened.path) if unfolding else parts, measures=measures)
            if batches == known:
                break
            known = batches
            if part is not None:
                batches, whole = part.of(batches), len(batches)
                typer.echo(f"shard {part}: {len(batches)} of {whole} batches, stored in {opened.path}", err=True)
            refuse_changed_graphs(opened, batches)
            report = run_sweep(batches, opened, executor, stop, show).after(report)
            if report.missing or report.unequal or not unfolding:
                break
    _show_end(report, as_json, "" if part is None else f" of shard {part}")
    if report.reason == "interrupted":
        raise typer.Exit(INTERRUPTED)
    if report.unequal:
        raise typer.Exit(FAILED)
    if report.missing:
        raise typer.Exit(MISSING)


def _tell_of_results(parts: "list[Experiment]", store: "Store") -> None:
    """Warn that recorded runs are about to be trained again: a store does not look at the folder beside it."""
    from propreg.store.errors import StudyError
    from propreg.store.export import export_files
    from propreg.store.progress import missing_from

    files = export_files(RESULTS) if store.path == DEFAULT_STORE and RESULTS.is_dir() else []
    if not files:
        return
    try:
        lost = missing_from(store, parts, RESULTS)
    except StudyError:
        return  # exports that cannot be read are no reason not to train
    if lost:
        typer.echo(
            f"{RESULTS}/ has {lost:,} of these runs, but {store.path} does not, so they are trained again: to use "
            f"the record, stop and run propreg store import {shlex.join(map(str, files))} first.",
            err=True,
        )


def _show_end(report: "SweepReport", as_json: bool, of: str) -> None:
    if as_json:
        print_json({"event": "end", **vars(report)})
        return
    for line in report.skipped:
        typer.echo(f"left out: {line}", err=True)
    for key in report.unequal:
        typer.echo(
            f"{key}: trained again with the same engine, this run gave a different result; the record is unchanged. "
            f"propreg rerun {key[:16]} compares the two.",
            err=True,
        )
    end = f"{report.missing} runs{of} are missing ({report.reason})" if report.missing else f"all runs{of} are recorded"
    typer.echo(f"{report.stored} runs stored in {report.seconds:.1f} s; {end}.")


class _Shown:
    """Progress for people on standard error, or a line of JSON per event on standard output."""

    def __init__(self, as_json: bool) -> None:
        self.as_json, self.last, self.line = as_json, 0.0, StatusLine()

    def __call__(self, progress: "Progress") -> None:
        if progress.event == "run" and time.monotonic() - self.last < 1.0:
            return
        if self.as_json:
            self.last = time.monotonic()
            typer.echo(json.dumps(vars(progress)))
            return
        if progress.event == "run" and not self.line.can_rewrite:
            return
        self.last = time.monotonic()
        text = f"{progress.done} of {progress.runs} runs"
        if progress.event == "lost":
            text += f"; {progress.batch}: {progress.note}"
        elif progress.event == "batch done":
            left = f", about {duration(progress.seconds_left)} left" if progress.seconds_left else ""
            text += f"; {progress.batch} took {progress.seconds:.1f} s{left}"
        elif progress.event != "start":
            text += f"; training {progress.batch}, {progress.batches_left} batches to go"
        if self.line.can_rewrite and progress.event not in ("start", "batch done", "lost"):
            self.line.update(text)
        else:
            self.line.clear()
            typer.echo(text, err=True)


def _seconds(text: str | None) -> float | None:
    from propreg.store.errors import UsageError

    if text is None:
        return None
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:])
    try:
        seconds = float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise UsageError(f"--time-limit must be like 90s, 9m or 1.5h, got {text!r}.")
    return seconds
