"""The page of a run: does it help on this graph, how sure is that, and what happened."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from propreg.report.names import dataset_name, method_name, model_name
from propreg.report.page import render
from propreg.report.payload import script_json
from propreg.report.run_numbers import explained, headline, numbers_of
from propreg.report.run_pictures import run_pictures
from propreg.report.run_record import RunRecord, read_run

SCRIPTS = ("dom.js", "data.js", "sort.js", "axes.js", "looks.js", "marks.js", "chart.js", "figures.js", "run.js")
CLASSES = 40  # more than this are no table that anyone reads
MISTAKES = 12
LISTED = 50_000  # runs: more would make the page too large


@dataclass(frozen=True)
class Mistake:
    """Nodes of one class that were taken for another: how many with the plain model, and how many with the chosen."""

    true: str
    predicted: str
    plain: int
    chosen: int


def run_page(record: Mapping[str, Any]) -> str:
    """The HTML of a run, one self-contained page.

    Args:
        record: What ``propreg run`` wrote as ``run.json``.

    Raises:
        DataError: If the record is damaged.
        ImportError: If Jinja2 is not installed.
    """
    run = read_run(record)
    found = numbers_of(run)
    pictures = run_pictures(run, found)
    first = headline(run, found)
    listed = run.test.size <= LISTED
    return render(
        "run.html",
        SCRIPTS,
        {
            "run": run,
            "dataset": dataset_name(run.dataset),
            "model": model_name(run.model),
            "method": method_name(run.method),
            "found": found,
            "headline": first,
            "explained": explained(run, found),
            "remarks": [note for note in run.notes if not note.startswith(first)],  # the heading has said that one
            "listed": listed,
            "neighbours": _neighbours(run),
            "pictures": pictures,
            "shares": _shares(run) if run.confusion and len(run.classes) <= CLASSES else None,
            "mistakes": _mistakes(run),
            "data": script_json(
                {
                    "figures": {name: figure.as_dict() for name, figure in pictures.items()},
                    "mus": run.mus,
                    "splits": run.splits,
                    "seeds": run.seeds,
                    "mu": run.mu,
                    "listed": listed,
                    "val": _plain(run.val) if listed else [],
                    "test": _plain(run.test) if listed else [],
                    "epochs": _plain(run.epochs) if listed else [],
                }
            ),
        },
    )


def _neighbours(run: RunRecord) -> str:
    """What the share of edges inside a class means for a method that asks neighbours."""
    share = run.graph["homophily"]
    if share is None:
        return "How alike neighbours are is not known."
    said = f"{share:.0%} of the edges link nodes of the same class"
    if share >= 0.7:
        return f"{said}: a neighbour is a good hint, which is what P-reg builds on."
    if share >= 0.5:
        return f"{said}: a neighbour is a hint, but often a wrong one."
    return f"{said}: neighbours mostly differ, and pulling predictions together may harm."


def _shares(run: RunRecord) -> list[tuple[str, list[list[tuple[int, str]]]]]:
    """Per table and class the counts with a tint by their share of the class."""
    tables = []
    for which, title in (("plain", f"Plain {model_name(run.model)}"), ("chosen", f"With {method_name(run.method)}")):
        if which == "chosen" and not run.mu:
            continue  # the plain model was chosen: it would be the same table again
        rows = []
        for true, counts in enumerate((run.confusion or {})[which]):
            total = sum(counts) or 1
            rows.append([(count, _tint(count / total, true == place)) for place, count in enumerate(counts)])
        tables.append((title, rows))
    return tables


def _tint(share: float, right: bool) -> str:
    step = sum(share > edge for edge in ((0.0, 0.3, 0.6, 0.85) if right else (0.02, 0.08, 0.2, 0.4)))
    return "" if not step else f"{'gain' if right else 'loss'}-{step}"


def _mistakes(run: RunRecord) -> list[Mistake]:
    """The most frequent ones of the plain model and of the chosen."""
    if not run.confusion:
        return []
    plain, chosen = (np.array(run.confusion[which]) for which in ("plain", "chosen"))
    found = [
        Mistake(run.classes[i], run.classes[j], int(plain[i, j]), int(chosen[i, j]))
        for i, j in zip(*np.nonzero(plain + chosen), strict=True)
        if i != j
    ]
    return sorted(found, key=lambda each: -max(each.plain, each.chosen))[:MISTAKES]


def _plain(values: Any) -> Any:
    """Lists with None for NaN; four digits are more than the page shows."""
    found = np.round(values, 4).astype(object)
    found[np.isnan(values)] = None
    return found.tolist()
