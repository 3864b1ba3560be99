"""What a run says in a terminal, at most 80 columns wide."""

import math
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path

from propreg.fitting.methods import METHODS
from propreg.fitting.verdict import points
from propreg.running.comparison import TITLES, Comparison, Plan, device_name, model_title
from propreg.statistics import Summary

WIDTH = 80  # longer lines are hard to read


def before(plan: Plan) -> Iterator[str]:
    """What is going to happen."""
    from propreg.data.stats import homophily
    from propreg.fitting.reasons import linked_pairs

    graph = plan.source.graph
    share = homophily(graph.edge_index, graph.y)
    same = "" if math.isnan(share) else f"; {100 * share:.0f} % of the edges link nodes of the same class"
    yield from _wrapped(
        f"{printable(plan.source.name)}: {_counted(graph.num_nodes, 'node')}, "
        f"{_counted(linked_pairs(graph), 'edge')}, {_counted(graph.num_features, 'feature')}, "
        f"{_counted(graph.num_classes, 'class', 'classes')}{same}."
    )
    splits, strengths, title = len(plan.source.splits), len(plan.mus) - 1, METHODS[plan.method].title
    yield from _wrapped(
        f"Training {_counted(plan.runs, TITLES.get(plan.model, plan.model))} on {device_name(plan.device)}: plain and "
        f"with {title} at {_counted(strengths, 'strength')}, on {_counted(splits, 'split')}, "
        f"{_counted(plan.seeds, 'seed')} each."
    )


def table(comparison: Comparison) -> Iterator[str]:
    """Plain against regularised: accuracy, interval, paired difference."""
    plan, result, pair = comparison.plan, comparison.result, comparison.verdict.pair
    if pair is None:
        return
    apart, what = pair.difference, "split" if len(result.splits) > 1 else "seed"
    interval = f"{points(apart.low)} to {points(apart.high)}" if pair.units > 1 else "–"
    yield from _columns(
        [
            ("", "test accuracy", "95 % interval", "runs"),
            (model_title(plan), *_cells(pair.plain)),
            (model_title(plan, pair.mu), *_cells(pair.other)),
            ("difference", f"{points(apart.mean)} points", interval, ""),
        ]
    )
    chosen = f"Chosen on validation: mu = {result.mu:g}{'' if result.mu else ', the plain model'}."
    if pair.units == 1:
        yield from _wrapped(
            f"One pair of runs gives neither an interval nor a test: ask for more with --{what}s. {chosen}"
        )
        return
    yield from _wrapped(
        f"Paired on the same {what}s: p = {apart.p_value:.2g} (sign flips of {_counted(pair.units, what)}), better in "
        f"{100 * apart.won:.0f} % of the paired runs. {chosen}"
    )


def remarks(comparison: Comparison) -> Iterator[str]:
    """The verdict, then why, then what else to know."""
    first, *others = comparison.record["notes"]
    yield from _wrapped(printable(first))
    for note in others:
        lead = "  Perhaps because: " if note in comparison.reasons else "  Note: "
        yield from _wrapped(lead + printable(note), "    ")


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
            yield from _wrapped(f"  {name:<11} {what}", " " * 14)


def printable(text: str) -> str:
    """Text from a user's file without what would move the cursor or change colours.

    Example:
        >>> printable("a\\x1b[31mb")
        'a?[31mb'
    """
    return "".join(c if c.isprintable() else "?" for c in text)


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _cells(summary: Summary) -> tuple[str, str, str]:
    interval = f"{100 * summary.low:.2f} to {100 * summary.high:.2f}" if summary.runs > 1 else "–"
    return f"{100 * summary.mean:.2f} %", interval, str(summary.runs)


def _columns(rows: list[tuple[str, str, str, str]]) -> Iterator[str]:
    """A table; where it is too wide, each row's name stands above its numbers."""
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    stacked = sum(widths) + 9 > width()
    for name, *cells in rows:
        numbers = "   ".join(cell.rjust(wide) for cell, wide in zip(cells, widths[1:], strict=True)).rstrip()
        if stacked and name:
            yield name
        yield f"  {numbers}" if stacked else f"{name.ljust(widths[0])}   {numbers}"


def width() -> int:
    """The terminal's, or what ``COLUMNS`` says, but no more than is easily read."""
    return max(30, min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns))


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, width(), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
