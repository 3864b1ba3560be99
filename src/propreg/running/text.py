"""The terminal output of a run, at most 80 columns wide."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from propreg.console import WIDTH, counted, printable, width, wrapped
from propreg.data.graph import Graph
from propreg.devices import device_title
from propreg.engine.models import MODELS
from propreg.engine.regularizers import REGULARIZERS
from propreg.fitting.leaderboard import Leaderboard
from propreg.fitting.verdict import points
from propreg.running.compare import Comparison
from propreg.running.folder import MODEL, PREDICTIONS
from propreg.running.plan import Plan
from propreg.statistics import Summary


def before(plan: Plan, models: Sequence[str] = ()) -> Iterator[str]:
    """The graph, and what is going to be trained on it; ``models`` names all, if there are several."""
    from propreg.data.describe import homophily, linked_pairs

    graph = plan.source.graph
    share = homophily(graph.edge_index, graph.y)
    same = "" if math.isnan(share) else f"; {100 * share:.0f} % of the edges link nodes of the same class"
    edges = linked_pairs(graph.edge_index, graph.num_nodes)
    yield from wrapped(
        f"{printable(plan.source.name)}: {counted(graph.num_nodes, 'node')}, "
        f"{counted(edges, 'edge')}, {counted(graph.num_features, 'feature')}, "
        f"{counted(graph.num_classes, 'class', 'classes')}{same}."
    )
    splits, strengths, title = len(plan.source.splits), len(plan.mus) - 1, REGULARIZERS[plan.method].title
    what = counted(plan.runs, MODELS[plan.model].title)
    if len(models) > 1:
        what += f" and as many of {' and '.join(MODELS[name].title for name in models[1:])}"
    yield from wrapped(
        f"Training {what} on {device_title(plan.device)}: plain and "
        f"with {title} at {counted(strengths, 'strength')}, on {counted(splits, 'split')}, "
        f"{counted(plan.seeds, 'seed')} each."
    )


def table(comparison: Comparison) -> Iterator[str]:
    """Plain against regularized: accuracy, interval, paired difference."""
    plan, result, pair = comparison.plan, comparison.result, comparison.verdict.pair
    if pair is None:
        return
    judging = result.judging
    apart, what = pair.difference, "split" if len(result.splits) > 1 else "seed"
    interval = f"{points(apart.low)} to {points(apart.high)}" if pair.units > 1 else "–"
    yield from _columns(
        [
            ("", judging.what, "95 % interval", "runs"),
            (_title(plan), *_cells(pair.plain)),
            (_title(plan, pair.mu, nested=judging.nested), *_cells(pair.other)),
            ("difference", f"{points(apart.mean)} points", interval, ""),
        ]
    )
    chosen = f"Chosen on validation: mu = {result.mu:g}{'' if result.mu else ', the plain model'}."
    if pair.units == 1:
        yield from wrapped(f"One pair of runs gives neither an interval nor a test: use more with --{what}s. {chosen}")
        return
    yield from wrapped(
        f"Paired on the same {what}s: p = {apart.p_value:.2g} (sign flips of {counted(pair.units, what)}), better in "
        f"{100 * apart.won:.0f} % of the paired runs. {chosen}"
    )


def remarks(comparison: Comparison) -> Iterator[str]:
    """The verdict, then possible reasons, then notes."""
    first, *others = comparison.record["notes"]
    yield from wrapped(printable(first))
    for note in others:
        lead = "  Perhaps because: " if note in comparison.reasons else "  Note: "
        yield from wrapped(lead + printable(note), "    ")


def predicted(graph: Graph) -> Iterator[str]:
    """How many nodes without a label have a prediction now."""
    if count := int((graph.y < 0).sum()):
        yield from wrapped(
            f"{counted(count, 'node')} without a label {'was' if count == 1 else 'were'} predicted, with all others."
        )


def written(folder: Path, left_alone: str = "") -> Iterator[str]:
    """The files of the run."""
    about = {
        "index.html": "the page: open it in a browser",
        "figures": "its figures, as SVG",
        "runs.csv": "every training",
        PREDICTIONS: "each node's predicted class and its probability",
        MODEL: f'the trained model: propreg.load_model("{(folder / MODEL).as_posix()}")',
        "run.json": "all numbers, for scripts",
    }
    yield from wrapped(f"{left_alone}Written to {folder}:")
    for name, what in about.items():
        if (folder / name).exists():
            yield from wrapped(f"  {name:<17} {what}", " " * (20 if width() == WIDTH else 4))


def kept(folder: Path, trainings: int, *, resumed: bool) -> Iterator[str]:
    """That an earlier run of this folder did not end; nothing if it is being resumed, or none was."""
    if trainings and not resumed:
        yield from wrapped(
            f"{folder} has {counted(trainings, 'finished training')} of a run that did not end: --resume, with the "
            "options of that run, goes on from there."
        )


def to_resume() -> Iterator[str]:
    """How to go on after an interruption."""
    yield from wrapped("The finished trainings are kept: the same command with --resume goes on from there.")


def leaderboard(board: Leaderboard) -> Iterator[str]:
    """All models, the best on validation first."""
    rows = [
        (f"{place}  {row.title}", f"{100 * row.validation:.2f} %", *_cells(row.test)[:2])
        for place, row in enumerate(board.rows(), 1)
    ]
    yield from _columns([("", "validation", board.judging.what, "95 % interval"), *rows])


def _title(plan: Plan, mu: float = 0.0, *, nested: bool = False) -> str:
    """The name of a row, for example ``GCN + P-reg, mu = 0.5``."""
    plain = MODELS[plan.model].title
    strength = "mu per fold" if nested else f"mu = {mu:g}"
    return f"{plain} + {REGULARIZERS[plan.method].title}, {strength}" if mu else f"{plain}, plain"


def _cells(summary: Summary) -> tuple[str, str, str]:
    interval = f"{100 * summary.low:.2f} to {100 * summary.high:.2f}" if summary.runs > 1 else "–"
    return f"{100 * summary.mean:.2f} %", interval, str(summary.runs)


def _columns(rows: list[tuple[str, str, str, str]]) -> Iterator[str]:
    """A table; if it is too wide, each row's name stands above its numbers."""
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    stacked = sum(widths) + 9 > width()
    for name, *cells in rows:
        numbers = "   ".join(cell.rjust(wide) for cell, wide in zip(cells, widths[1:], strict=True)).rstrip()
        if stacked and name:
            yield name
        yield f"  {numbers}" if stacked else f"{name.ljust(widths[0])}   {numbers}"
