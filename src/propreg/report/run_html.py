"""The page of a run: whether the regularizer helps on this graph, and how the trainings went."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from propreg.data.benchmarks.catalog import NODE_SETS
from propreg.fitting.picking import TITLES
from propreg.metrics import ABOUT
from propreg.names import FORMS, dataset_title, method_title, model_title
from propreg.report.page import render, script_json
from propreg.report.recipe import call, command, latex, loop, next_steps
from propreg.report.run_numbers import explained, headline, numbers_of
from propreg.report.run_pictures import run_pictures
from propreg.report.run_record import RunRecord, read_run

SCRIPTS = (
    "dom.js",
    "contents.js",
    "data.js",
    "sort.js",
    "axes.js",
    "looks.js",
    "marks.js",
    "chart.js",
    "figures.js",
    "takeaway.js",
    "live.js",
    "run.js",
)
CLASSES = 40  # more make a table that nobody reads
MISTAKES = 12
REFRESH = 2  # seconds after which a page of --live is loaded again
LISTED = 50_000  # runs: more make the page too large


@dataclass(frozen=True)
class Mistake:
    """Nodes of one class predicted as another: how many by the plain model, and by the chosen one."""

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
    listed, benchmark, graphs = run.test.size <= LISTED, run.dataset in NODE_SETS, run.graph["graphs"] is not None
    return render(
        "run.html",
        SCRIPTS,
        {
            "run": run,
            "dataset": dataset_title(run.dataset),
            "model": model_title(run.model),
            "method": method_title(run.method),
            "found": found,
            "headline": headline(run),
            "explained": explained(run, found),
            "remarks": run.notes[1:],  # the first is the verdict, which the heading has
            "listed": listed,
            "graphs": graphs,
            "table": "molecules" in run.settings,
            "targets_note": _targets_note(run),
            "spread": _SPREADS.get(run.judging.score, ""),
            "refresh": REFRESH,
            "neighbors": "" if graphs else _neighbors(run),
            "places": 2 if run.judging.fraction else 4,
            "about_metrics": ABOUT,
            "picked_by": _picked_by(run),
            "unit": "%" if run.judging.fraction else "",
            "curves": "accuracy",
            "form": FORMS.get(run.preset, run.preset),
            "pictures": pictures,
            "shares": _shares(run) if run.confusion and len(run.classes) <= CLASSES else None,
            "mistakes": _mistakes(run),
            "classes": "classes" in pictures,
            "nodes": run.map,
            "agreement": _agreement(run),
            "recipe": {
                "In a terminal": command(run, benchmark),
                "In Python": call(run, benchmark),
                "In a loop of your own": loop(run) if run.mu and run.method == "preg" and not graphs else "",
                "As a table (LaTeX, booktabs)": latex(run, found),
            },
            "steps": next_steps(run, benchmark),
            "data": script_json(
                {
                    "figures": {name: figure.as_dict() for name, figure in pictures.items()},
                    "mus": run.mus,
                    "splits": run.splits,
                    "seeds": run.seeds,
                    "mu": run.mu,
                    "finished": run.finished,
                    "fraction": run.judging.fraction,
                    "sign": run.judging.sign,
                    "listed": listed,
                    "val": _plain(run.val) if listed else [],
                    "test": _plain(run.test) if listed else [],
                    "epochs": _plain(run.epochs) if listed else [],
                }
            ),
        },
    )


def _picked_by(run: RunRecord) -> str:
    """What μ was picked by if not by the score of the curves, in words."""
    named = run.settings.get("select", "")
    return next((title for name, title in TITLES.items() if name == named), "")


_SPREADS = {"ROC-AUC": "share of 1", "RMSE": "spread"}


def _targets_note(run: RunRecord) -> str:
    """What the numbers of a target are, and how to read many of them."""
    count = len(run.targets)
    said = {
        "RMSE": "RMSE is in the target's own units, and lower is better; the spread is the standard deviation of the "
        "target, about the RMSE of a model that always predicts the mean.",
        "ROC-AUC": "ROC-AUC is 50 for random answers and 100 for a perfect ranking.",
    }.get(run.judging.score, "Of graphs with one class each, this is the comparison above.")
    said += " A positive gain is better."
    if count > 4:
        said += f" With {count} targets, chance alone gives about {0.05 * count:.1f} p-values below 0.05."
    return said


def _neighbors(run: RunRecord) -> str:
    """What the share of edges inside a class means for a method that uses neighbors."""
    share = run.graph["homophily"]
    if share is None:
        return "The homophily of this graph is not known."
    same = f"{100 * share:.0f} % of the edges link nodes of the same class"
    if share >= 0.7:
        return f"{same}: a neighbor's class is a good hint, which P-reg relies on."
    if share >= 0.5:
        return f"{same}: a neighbor's class is a hint, but often a wrong one."
    return f"{same}: neighbors mostly differ, and pulling their predictions together may hurt."


def _agreement(run: RunRecord) -> str:
    """What the regularizer did to the edges, in one sentence."""
    labels, plain, chosen = (run.agreement[name] for name in ("labels", "plain", "chosen"))
    if plain is None or chosen is None:
        return ""
    said = f"The plain model predicts the same class at both ends of {100 * plain:.1f} % of the edges"
    if run.mu:
        said += f", the regularized one of {100 * chosen:.1f} %"
    return f"{said}; of the labels, {100 * labels:.1f} % agree." if labels is not None else f"{said}."


def _shares(run: RunRecord) -> list[tuple[str, list[list[tuple[int, float, str]]]]]:
    """Per table and class the counts, their share of the class in per cent, and a tint by it."""
    tables = []
    for which, title in (("plain", f"Plain {model_title(run.model)}"), ("chosen", f"With {method_title(run.method)}")):
        if which == "chosen" and not run.mu:
            continue  # the plain model was chosen: the same table again
        rows = []
        for true, counts in enumerate((run.confusion or {})[which]):
            total = sum(counts) or 1
            shares = [count / total for count in counts]
            tints = [_tint(share, true == place) for place, share in enumerate(shares)]
            rows.append([(n, 100 * share, tint) for n, share, tint in zip(counts, shares, tints, strict=True)])
        tables.append((title, rows))
    return tables


def _tint(share: float, right: bool) -> str:
    step = sum(share > edge for edge in ((0.0, 0.3, 0.6, 0.85) if right else (0.02, 0.08, 0.2, 0.4)))
    return "" if not step else f"{'gain' if right else 'loss'}-{step}"


def _mistakes(run: RunRecord) -> list[Mistake]:
    """The most frequent mistakes of either model."""
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
