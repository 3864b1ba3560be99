"""``propreg table``: a table of the paper from recorded runs."""

import os
import shutil
import sys
import textwrap
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propreg.cli.complete import experiments
from propreg.cli.recorded import ResultsPath, read
from propreg.cli.shared import Only

if TYPE_CHECKING:
    from propreg.fitting.picking import Select
    from propreg.store.progress import Reading
    from propreg.store.results import Results
    from propreg.study.spec.experiment import Experiment
    from propreg.study.spec.part import Line


_RULE_NOTES = {
    "own": "Each run counts with the epoch that the published rule of its model reports.",
    "prior_corrected": "All predictions are corrected for the class frequencies, which are estimated on the test nodes "
    "without their labels; the difference of a plain model is to its predictions as they are.",
}


class Format(StrEnum):
    """A format for a table."""

    text = "text"
    markdown = "markdown"
    latex = "latex"
    csv = "csv"
    html = "html"


def table(
    name: Annotated[
        str | None,
        typer.Argument(
            help="An experiment, for example table1, or your own my.toml; without it, a list.",
            autocompletion=experiments,
        ),
    ] = None,
    format: Annotated[Format | None, typer.Option(help="The format; default text.")] = None,
    long: Annotated[
        bool, typer.Option("--long", help="As text: also strengths, intervals, differences and the paper's numbers.")
    ] = False,
    only: Only = None,
    runs: Annotated[
        str | None, typer.Option(help="List the runs of a cell instead, for example cora/gcn/preg.")
    ] = None,
    picked: Annotated[
        bool,
        typer.Option(
            "--picked",
            help="List the strengths picked on validation; with --runs, only their runs.",
        ),
    ] = False,
    rule: Annotated[
        str,
        typer.Option(
            help="The selection rule whose epoch counts, for example latest_best; own is each model's published rule."
        ),
    ] = "",
    select: Annotated[
        str,
        typer.Option(
            help="What strengths are picked by on validation, of runs recorded with --measures: accuracy, balanced, "
            "reweighted or loss, as for propreg run; all compares what each of them gains on test."
        ),
    ] = "accuracy",
    metrics: Annotated[
        bool,
        typer.Option(
            "--metrics", help="Of runs recorded with --measures, every metric: accuracy, macro-F1, NLL, ECE and others."
        ),
    ] = False,
    results: ResultsPath = None,
) -> None:
    """Print a table of the paper from recorded runs, with the paper's numbers beside ours."""
    from propreg.store.errors import UsageError
    from propreg.study.spec.experiment import load_experiment, select_lines
    from propreg.study.spec.unfold import unfolded
    from propreg.study.tables.picked import at_picked, picked_text

    if name is None:
        _list(results)
        return
    _check_rule(rule)
    by = _checked_select(select, metrics, listed=picked or runs is not None or format is not None)
    if format is not None and (picked or runs is not None):
        raise UsageError("--format is for the table: leave it out with --runs or --picked.")
    experiment = load_experiment(name)
    lines = select_lines(experiment, only or ())
    if runs is not None:
        lines = _of_cell(experiment, runs, lines, only or [])
    reading = read([replace(experiment, lines=lines)], results)
    found = reading.results
    lines = unfolded(replace(experiment, lines=lines), found).lines
    if picked and any(line.search for line in lines):
        raise UsageError("--picked is for grids of strengths: propreg table lists the winner of each search.")
    if rule and any(line.search for line in lines):
        raise UsageError("--rule does not apply to a search, whose runs have one rule: leave it out.")
    if runs is not None:
        _print_runs(at_picked(lines, found, rule, by or "accuracy") if picked else lines, found, rule)
    elif picked:
        typer.echo(picked_text(lines, found, rule, by or "accuracy"), nl=False)
    elif by is None or metrics:
        typer.echo(_measured(experiment, lines, found, rule, by), nl=False)
    else:
        typer.echo(_text(experiment, lines, reading, format or Format.text, rule, by, long=long), nl=False)


def _list(results: Path | None) -> None:
    """The names that the command takes, with the share of recorded runs."""
    from propreg.store.progress import count_runs
    from propreg.study.spec.experiment import experiment_names, load_experiment
    from propreg.study.spec.unfold import unfolded

    every = [load_experiment(name) for name in experiment_names()]
    found = read(every, results).results
    size = max(len(experiment.name) for experiment in every)
    for experiment in every:
        here, wanted = count_runs([unfolded(experiment, found)], found)
        typer.echo(f"{experiment.name:<{size}}  {here:>6,} of {wanted:>6,} runs  {experiment.title}")


def _check_rule(rule: str) -> None:
    from typing import get_args

    from propreg.engine.spec import CORRECTED, RuleName
    from propreg.store.errors import UsageError, unknown
    from propreg.study.tables.rows import OWN

    known = (OWN, *get_args(RuleName), CORRECTED)
    if rule and rule not in known:
        raise UsageError(str(unknown("rule", rule, known)))


def _checked_select(select: str, metrics: bool, *, listed: bool) -> "Select | None":
    """What strengths are picked by; None for all ways beside each other, which is a table of its own."""
    from propreg.fitting.picking import SELECTIONS
    from propreg.store.errors import UsageError, unknown

    chosen = " and ".join(["--select all"] * (select == "all") + ["--metrics"] * metrics)
    if " and " in chosen:
        raise UsageError(f"{chosen} are tables of their own: leave out one of them.")
    if chosen and listed:
        raise UsageError(f"{chosen} is a table of its own: leave out --format, --runs and --picked.")
    if select == "all":
        return None
    if select not in SELECTIONS:
        raise UsageError(str(unknown("select", select, (*SELECTIONS, "all"))))
    return select


def _measured(
    experiment: "Experiment", lines: "tuple[Line, ...]", found: "Results", rule: str, select: "Select | None"
) -> str:
    """Every metric at the strengths that are picked; without a selection, what each of them gains."""
    from propreg.store.errors import StudyError
    from propreg.study.tables import metrics, selections
    from propreg.study.tables.text import listing_text

    if select is None:
        listing, notes = selections.selections(lines, found, rule), selections.NOTES
    else:
        listing, notes = metrics.metrics(lines, found, rule, select), metrics.NOTES
    if not listing.rows:
        raise StudyError(
            "No line with a strength has all its runs, plain ones too, with measures: "
            f"propreg reproduce {experiment.name} --measures records them."
        )
    shown = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return "\n".join([*listing_text(listing, shown), *notes]) + "\n"


def _text(
    experiment: "Experiment", lines: "tuple[Line, ...]", reading: "Reading", how: Format, rule: str, select: "Select",
    *, long: bool,
) -> str:  # fmt: skip
    from propreg.fitting.picking import TITLES
    from propreg.store.errors import UsageError
    from propreg.study.tables import ablation, costs, own_rule, pivot, ranking, search, text, together
    from propreg.study.tables.rows import engine_note, table_rows

    found = reading.results
    searched = search.searches(lines, found)
    if searched and select != "accuracy":
        raise UsageError("--select does not apply to a search, whose runs have one rule: leave it out.")
    rows = search.search_rows(searched, found) if searched else table_rows(experiment, found, lines, rule, select)
    engines = "" if searched else engine_note(lines, found)
    if how is Format.csv:
        if engines:
            typer.echo(engines, err=True)
        return text.to_csv(rows)
    beside = [] if rule or searched or select != "accuracy" else own_rule.listings(experiment, lines, found)
    beside += costs.listings(experiment, lines, found, costs.find_costs(reading.paths))
    beside += [*ranking.listings(experiment, lines, found), *search.listings(searched)]
    listings = [*ablation.listings(experiment, lines, found), *together.listings(experiment, rows), *beside]
    notes = search.notes(searched) if searched else ablation.notes(lines)
    notes += [engines] if engines else []
    notes += [_RULE_NOTES.get(rule, f"Each run counts with the epoch that the rule {rule} reports.")] if rule else []
    if select != "accuracy":
        notes.append(f"In place of validation accuracy, strengths are picked by {TITLES[select]} on validation.")
    shown, width = sys.stdout.isatty(), shutil.get_terminal_size().columns
    if how is Format.text and not long:
        bold = shown and os.environ.get("TERM") != "dumb"
        out = pivot.to_overview(experiment, rows, width if shown else None, bold=bold)
        out += [line for each in beside for line in ("", *text.listing_text(each, width if shown else None)[:-1])]
        return "\n".join([*out, *(textwrap.fill(note, width) if shown else note for note in notes)]) + "\n"
    if how is Format.text and shown:
        return text.to_terminal(experiment, rows, width, notes, listings)
    write = {
        Format.text: text.to_text,  # a file or a pipe gets the same bytes everywhere
        Format.markdown: pivot.to_markdown,
        Format.html: pivot.to_html,
        Format.latex: pivot.to_latex,
    }
    return write[how](experiment, rows, notes, listings)


def _of_cell(experiment: "Experiment", text: str, chosen: "tuple[Line, ...]", only: list[str]) -> "tuple[Line, ...]":
    """The lines of a cell that are also among the chosen ones."""
    from propreg.store.errors import StudyError, UsageError
    from propreg.study.spec.experiment import select_lines

    parts = text.split("/")
    if len(parts) != 3:
        raise UsageError(f"--runs takes dataset/model/method, for example cora/gcn/preg, got {text!r}.")
    here = select_lines(
        experiment, [f"{key}={part}" for key, part in zip(("dataset", "model", "method"), parts, strict=True)]
    )
    both = tuple(line for line in here if line in chosen)
    if not both:
        raise StudyError(f"No line of {experiment.name} matches both --runs {text} and --only {' --only '.join(only)}.")
    return both


def _print_runs(lines: "tuple[Line, ...]", found: "Results", rule: str) -> None:
    from propreg.study.tables.rows import rule_of, scale_of

    typer.echo("method,preset,strength,split,seed,val,test,epoch,epochs,failed_at,key")
    for line in lines:
        scale = scale_of(line.dataset)
        for run in line.runs():
            out = found.outcome(run.cell, run.split, run.seed)
            report = found.report(run.cell, run.split, run.seed, rule_of(line, rule))
            start = f'{line.method.method},"{line.preset}",{run.cell.strength:g},{run.split},{run.seed}'
            if out is None or report is None:
                typer.echo(f"{start},,,,,,{run.key}")
                continue
            val, test = (f"{scale.factor * each:.{scale.digits}f}" for each in (report.val, report.test))
            failed = "" if out.failed_at is None else out.failed_at
            typer.echo(f"{start},{val},{test},{report.epoch},{out.epochs},{failed},{run.key}")
