"""``propreg reproduce``: the paper's experiments, run by run; and what the commands of the study share."""

import json
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propreg.cli.changing_line import CLEAR, can_change
from propreg.cli.complete import experiments

if TYPE_CHECKING:
    from propreg.study.batches import Batch
    from propreg.study.experiment import Experiment
    from propreg.study.runner import Progress, Report
    from propreg.study.training import Trainer

DEFAULT_STORE = Path("propreg-study.sqlite")
Names = Annotated[list[str], typer.Argument(help="Experiments, for example table1.", autocompletion=experiments)]
StorePath = Annotated[Path, typer.Option("--store", help="The SQLite file that holds finished runs.")]
Only = Annotated[
    list[str] | None, typer.Option(help="Only a part, for example dataset=cora,model=gcn,method=preg-reference.")
]
Seeds = Annotated[str | None, typer.Option(help="Only these seeds, for example 0,1,2 or 0-4.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]


def reproduce(
    names: Names,
    only: Only = None,
    seeds: Seeds = None,
    device: Device = "auto",
    time_limit: Annotated[str | None, typer.Option(help="Stop cleanly after so long, for example 9m or 90s.")] = None,
    store: StorePath = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Train the runs of experiments that the store does not have yet. Ctrl-C stops cleanly; run again to go on."""
    with one_sentence():
        from propreg.study.device import check_device
        from propreg.study.runner import Stop
        from propreg.study.runner import reproduce as train
        from propreg.study.store import Store

        stop = Stop(_seconds(time_limit))
        batches = sweep(chosen_parts(names, only, seeds))
        check_device(device)
        show = _Shown(as_json)
        with Store(store) as opened, stop.on_signals():
            report = train(batches, opened, lambda: make_trainer(device), stop, show)
        _show_end(report, as_json)
    if report.reason == "interrupted":
        raise typer.Exit(130)


def _show_end(report: "Report", as_json: bool) -> None:
    if as_json:
        print_json({"event": "end", **vars(report)})
        return
    for line in report.skipped:
        typer.echo(f"left out: {line}", err=True)
    end = "all runs are there" if not report.missing else f"{report.missing} runs are missing ({report.reason})"
    typer.echo(f"{report.stored} runs stored in {report.seconds:.1f} s; {end}.")


class _Shown:
    """Progress for people on standard error, or a line of JSON per event on standard output."""

    def __init__(self, as_json: bool) -> None:
        self.as_json, self.last = as_json, 0.0

    def __call__(self, progress: "Progress") -> None:
        if progress.event == "run" and time.monotonic() - self.last < 1.0:
            return
        if self.as_json:
            self.last = time.monotonic()
            typer.echo(json.dumps(vars(progress)))
            return
        on_terminal = can_change()
        if progress.event == "run" and not on_terminal:
            return
        self.last = time.monotonic()
        text = f"{progress.done} of {progress.runs} runs"
        if progress.event == "batch done":
            left = f", about {duration(progress.seconds_left)} left" if progress.seconds_left else ""
            text += f"; {progress.batch} took {progress.seconds:.1f} s{left}"
        elif progress.event != "start":
            text += f"; training {progress.batch}, {progress.batches_left} batches to go"
        if on_terminal:
            sys.stderr.write(CLEAR + text + ("\n" if progress.event in ("start", "batch done") else ""))
            sys.stderr.flush()
        else:
            typer.echo(text, err=True)


@contextmanager
def one_sentence() -> Iterator[None]:
    """Turn an error that the user can act on into one sentence and exit status 1; 2 where an option is wrong."""
    from propreg.data.errors import DataError
    from propreg.study.errors import StudyError, UsageError

    try:
        yield
    except (StudyError, DataError, ImportError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2 if isinstance(error, UsageError) else 1) from error


def print_json(value: object) -> None:
    """One JSON value on standard output."""
    typer.echo(json.dumps(value, allow_nan=False))


def chosen_parts(names: list[str], only: list[str] | None, seeds: str | None) -> "list[Experiment]":
    """What filters leave of experiments, each of which counts once."""
    from propreg.study.choosing import choose
    from propreg.study.experiment import load_experiment

    spans = None if seeds is None else _spans(seeds)
    found = []
    for experiment in map(load_experiment, dict.fromkeys(names)):
        numbers = None if spans is None else _seeds_of(experiment, spans)
        found.append(replace(experiment, lines=choose(experiment, only or (), numbers)))
    return found


def sweep(parts: "Iterable[Experiment]") -> "list[Batch]":
    """Batches are cut per experiment, so that naming two of them changes neither's."""
    from propreg.study.batches import cut

    return list({batch.id: batch for part in parts for batch in cut(part.lines)}.values())


def make_trainer(device: str) -> "Trainer":
    """What trains; with it torch is imported."""
    from propreg.study.training import Trainer

    return Trainer(device)


def _seconds(text: str | None) -> float | None:
    from propreg.study.errors import UsageError

    if text is None:
        return None
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:])
    try:
        seconds = float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise UsageError(f"--time-limit must be like 90s, 9m or 1.5h, but {text!r} came.")
    return seconds


def _spans(text: str) -> list[range]:
    """Seeds as they are written: 0,1,2 or 0-4."""
    from propreg.study.errors import UsageError

    found: list[range] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        try:
            found.append(range(int(first), int(last if dash else first) + 1))
        except ValueError:
            raise UsageError(f"--seeds must be like 0,1,2 or 0-4, but {text!r} came.") from None
        if not found[-1]:
            raise UsageError(f"--seeds {part.strip()} is an empty range: write the smaller seed first, as in 0-4.")
    return found


def _seeds_of(experiment: "Experiment", spans: list[range]) -> list[int]:
    """All seeds of spans. Their ends are looked at first: what lies between may be more than memory holds."""
    from propreg.study.errors import unknown

    known = sorted({seed for line in experiment.lines for seed in line.seeds})
    for end in (end for span in spans for end in (span[0], span[-1])):
        if end not in known:
            raise unknown(f"seed in {experiment.name}", end, map(str, known))
    return [seed for span in spans for seed in span]


def duration(seconds: float | None) -> str:
    """A time in words."""
    seconds = seconds or 0.0
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )
