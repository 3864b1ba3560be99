"""``propreg table``: a table of the paper from recorded runs."""

import shutil
import sys
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from propreg.cli.complete import experiments
from propreg.cli.recorded import ResultsPath, read
from propreg.cli.shared import Only, one_sentence

if TYPE_CHECKING:
    from propreg.study.experiment import Experiment, Line
    from propreg.study.results import Results


class Format(StrEnum):
    """How a table is written."""

    text = "text"
    markdown = "markdown"
    latex = "latex"
    csv = "csv"
    html = "html"


def table(
    name: Annotated[str, typer.Argument(help="An experiment, for example table1.", autocompletion=experiments)],
    format: Annotated[Format | None, typer.Option(help="How it is written; default text.")] = None,
    only: Only = None,
    runs: Annotated[
        str | None, typer.Option(help="List the runs behind a place instead, for example cora/gcn/preg.")
    ] = None,
    picked: Annotated[
        bool,
        typer.Option(
            "--picked",
            help="List the strengths that were picked on validation, a line each; with --runs, only their runs.",
        ),
    ] = False,
    results: ResultsPath = None,
) -> None:
    """Print a table of the paper from recorded runs, the paper's numbers beside ours."""
    with one_sentence():
        from propreg.study.choosing import choose
        from propreg.study.errors import UsageError
        from propreg.study.experiment import load_experiment
        from propreg.study.picked import at_picked, picked_text

        if format is not None and (picked or runs is not None):
            raise UsageError("--format is for the table: leave it out with --runs and --picked.")
        experiment = load_experiment(name)
        lines = choose(experiment, only or ())
        if runs is not None:
            lines = _at_place(experiment, runs, lines, only or [])
        found = read([replace(experiment, lines=lines)], results).results
        if runs is not None:
            _print_runs(at_picked(lines, found) if picked else lines, found)
        elif picked:
            typer.echo(picked_text(lines, found), nl=False)
        else:
            typer.echo(_text(experiment, lines, found, format or Format.text), nl=False)


def _text(experiment: "Experiment", lines: "tuple[Line, ...]", found: "Results", how: Format) -> str:
    from propreg.study import render, render_narrow, render_wide
    from propreg.study.remarks import remarks
    from propreg.study.table import table_rows

    rows = table_rows(experiment, found, lines)
    if how is Format.csv:
        return render.to_csv(rows)
    said = remarks(experiment, lines, found)
    if how is Format.text:
        if not sys.stdout.isatty():  # a file or a pipe gets the same bytes everywhere
            return render.to_text(experiment, rows, said)
        return render_narrow.to_terminal(experiment, rows, shutil.get_terminal_size().columns, said)
    write = {
        Format.markdown: render_wide.to_markdown,
        Format.html: render_wide.to_html,
        Format.latex: render_wide.to_latex,
    }
    return write[how](experiment, rows, said)


def _at_place(experiment: "Experiment", text: str, chosen: "tuple[Line, ...]", only: list[str]) -> "tuple[Line, ...]":
    """The lines of a place that are also among the chosen ones."""
    from propreg.study.choosing import choose
    from propreg.study.errors import StudyError, UsageError

    parts = text.split("/")
    if len(parts) != 3:
        raise UsageError(f"--runs names a place as dataset/model/method, for example cora/gcn/preg, but {text!r} came.")
    here = choose(
        experiment, [f"{key}={part}" for key, part in zip(("dataset", "model", "method"), parts, strict=True)]
    )
    both = tuple(line for line in here if line in chosen)
    if not both:
        raise StudyError(f"No line of {experiment.name} matches both --runs {text} and --only {' --only '.join(only)}.")
    return both


def _print_runs(lines: "tuple[Line, ...]", found: "Results") -> None:
    typer.echo("method,preset,strength,split,seed,val,test,epoch,epochs,failed_at,key")
    for line in lines:
        for run in line.runs():
            out = found.outcome(run.cell, run.split, run.seed)
            start = f'{line.method.method},"{line.preset}",{run.cell.strength:g},{run.split},{run.seed}'
            if out is None:
                typer.echo(f"{start},,,,,,{run.key}")
                continue
            val, test = 100 * out.val / out.val_of, 100 * out.test / out.test_of
            failed = "" if out.failed_at is None else out.failed_at
            typer.echo(f"{start},{val:.2f},{test:.2f},{out.epoch},{out.epochs},{failed},{run.key}")
