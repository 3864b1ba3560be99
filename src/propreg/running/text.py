"""What a run says in a terminal, 80 columns wide."""

import math
import textwrap
from collections.abc import Iterator
from pathlib import Path

from propreg.fitting.methods import METHODS
from propreg.running.comparison import TITLES, Comparison, Plan, device_name, model_title
from propreg.running.verdict import points
from propreg.statistics import Summary

WIDTH = 80


def before(plan: Plan) -> Iterator[str]:
    """What is going to happen."""
    from propreg.data.stats import homophily
    from propreg.running.advice import linked_pairs

    graph = plan.source.graph
    share = homophily(graph.edge_index, graph.y)
    same = "" if math.isnan(share) else f"; {100 * share:.0f} % of the edges link nodes of the same class"
    yield from _wrapped(
        f"{printable(plan.source.name)}: {graph.num_nodes:,} nodes, {linked_pairs(graph):,} edges, "
        f"{graph.num_features:,} features, {graph.num_classes:,} classes{same}."
    )
    splits, strengths, title = len(plan.source.splits), len(plan.mus) - 1, METHODS[plan.method].title
    yield from _wrapped(
        f"Training {plan.runs:,} {TITLES.get(plan.model, plan.model)}s on {device_name(plan.device)}: plain and with "
        f"{title} at {_counted(strengths, 'strength')}, on {_counted(splits, 'split')}, "
        f"{_counted(plan.seeds, 'seed')} each."
    )


def table(comparison: Comparison) -> Iterator[str]:
    """Plain against regularised: accuracy, interval, paired difference."""
    plan, result, pair = comparison.plan, comparison.result, comparison.verdict.pair
    if pair is None:
        return
    apart, what = pair.difference, "splits" if len(result.splits) > 1 else "seeds"
    rows = [
        ("", "test accuracy", "95 % interval", "runs"),
        (model_title(plan), *_cells(pair.plain)),
        (model_title(plan, pair.mu), *_cells(pair.other)),
        ("difference", f"{points(apart.mean)} points", f"{points(apart.low)} to {points(apart.high)}", ""),
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        yield "   ".join([row[0].ljust(widths[0]), *cells[1:]]).rstrip()
    yield from _wrapped(
        f"Paired on the same {what}: p = {apart.p_value:.2g} (sign flips of {pair.units} {what}), better in "
        f"{100 * apart.won:.0f} % of the paired runs. Chosen on validation: mu = {result.mu:g}"
        f"{'' if result.mu else ', the plain model'}."
    )


def remarks(comparison: Comparison) -> Iterator[str]:
    """The verdict, then why, then what else to know."""
    first, *others = comparison.record["notes"]
    yield from _wrapped(printable(first))
    for note in others:
        lead = "  Perhaps because: " if note in comparison.reasons else "  Note: "
        yield from textwrap.wrap(lead + printable(note), WIDTH, subsequent_indent="    ")


def written(folder: Path, left_alone: str = "") -> Iterator[str]:
    """Where everything is."""
    about = {
        "index.html": "the page: open it in a browser",
        "figures": "its pictures, as SVG",
        "runs.csv": "every training",
        "model.npz": f'the trained model: propreg.load_model("{(folder / "model.npz").as_posix()}")',
        "run.json": "all numbers, for scripts",
    }
    yield from _wrapped(f"{left_alone}Written to {folder}:")
    for name, what in about.items():
        if (folder / name).exists():
            yield f"  {name:<11} {what}"


def printable(text: str) -> str:
    """Text from a user's file without what would move the cursor or change colours.

    Example:
        >>> printable("a\\x1b[31mb")
        'a?[31mb'
    """
    return "".join(c if c.isprintable() else "?" for c in text)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"


def _cells(summary: Summary) -> tuple[str, str, str]:
    return f"{100 * summary.mean:.2f} %", f"{100 * summary.low:.2f} to {100 * summary.high:.2f}", str(summary.runs)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, break_long_words=False)
