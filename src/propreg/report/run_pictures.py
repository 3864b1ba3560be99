"""The figures of a run as plain data, which the page and Matplotlib draw; no torch."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.fitting.verdict import JUDGING, Judging
from propreg.names import dataset_title, method_title, model_title
from propreg.report.leaderboard import leaderboard
from propreg.report.record_parts import History, NodeMap
from propreg.report.run_numbers import CHOSEN, Numbers, numbers_of, summary
from propreg.report.run_record import RunRecord, read_run
from propreg.report.text import clip, strength
from propreg.statistics import Runs, Summary
from propreg.study.figures.drawing.save import render
from propreg.study.figures.parts import Figure, Level, Panel, Series, Value, number

STATES = {
    "both": "right in both",
    "fixed": "fixed: right with the regularizer only",
    "broken": "broken: right without it only",
    "neither": "wrong in both",
}
"""What became of a node, in the order of :data:`propreg.running.map.STATES`."""
SPLITS = 40  # more rows cannot be distinguished
BARS = 25  # more classes are a list of mistakes only
EPOCHS = 400  # more points of a curve cannot be distinguished


def run_figures(record: Mapping[str, Any]) -> dict[str, str]:
    """Figures of a run as SVG: file names and texts; equal records give equal bytes.

    Args:
        record: What ``propreg run`` wrote as ``run.json``.

    Returns:
        ``accuracy-against-mu.svg`` (with interval and the picked μ), ``paired-differences.svg`` (split by split),
        ``training.svg``, of several models ``leaderboard.svg``, and where the record has them ``classes.svg`` (recall
        and F1) and ``map.svg`` (of the nodes).

    Raises:
        DataError: If the record is damaged.
        ImportError: If Matplotlib is not installed.
    """
    plain = without_formulas(read_run(record))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of characters that the font lacks: they become boxes
        pictures = run_pictures(plain, numbers_of(plain))
        return {f"{name}.svg": render(figure, ".svg").decode() for name, figure in pictures.items()}


def without_formulas(run: RunRecord) -> RunRecord:
    """The record for Matplotlib, which reads text between dollars as a formula."""
    return replace(
        run,
        dataset=_no_formula(run.dataset),
        model=_no_formula(run.model),
        method=_no_formula(run.method),
        splits=tuple(map(_no_formula, run.splits)),
        classes=tuple(map(_no_formula, run.classes)),
        models=tuple(replace(row, title=_no_formula(row.title)) for row in run.models),
    )


def _no_formula(text: str) -> str:
    return text.replace("$", r"\$")


def run_pictures(record: RunRecord, found: Numbers) -> dict[str, Figure]:
    """Accuracy against μ, paired differences, training curves; by the name of their file."""
    return {
        **({"leaderboard": leaderboard(record)} if record.models else {}),
        "accuracy-against-mu": _against_mu(record),
        "paired-differences": _differences(record, found),
        "training": _training(record),
        **({"classes": _classes(record)} if record.confusion and len(record.classes) <= BARS else {}),
        **({"map": _map(record, record.map)} if record.map is not None else {}),
    }


def _title(record: RunRecord, words: str) -> str:
    return f"{words}: {model_title(record.model)} on {clip(dataset_title(record.dataset), 40)}"


def _regularized(record: RunRecord, mu: float) -> str:
    return f"{model_title(record.model)} + {method_title(record.method)}, μ = {strength(mu)}"


def _against_mu(record: RunRecord) -> Figure:
    """Both accuracies from μ = 0 on: the other strengths must beat validation accuracy at 0."""
    above = record.mus[1:]
    log = bool(above) and above[-1] / above[0] > 150
    start = 1 if log else 0  # a logarithmic axis has no 0: the plain model is a horizontal line
    mus, test = record.mus[start:], [summary(runs) for runs in record.test]
    val = [summary(runs) for runs in record.val]
    points = test[start:]
    runs = tuple(int((~np.isnan(each)).sum()) for each in record.test[start:])
    levels = [] if test[0] is None else [_level("plain", "plain, test", test[0])]
    if log and val[0] is not None:
        levels.append(Level("val", "plain, validation", float(number(val[0].mean) or 0.0)))
    if record.mu:
        levels.append(Level(CHOSEN, f"picked on validation: μ = {strength(record.mu)}", record.mu, axis="x"))
    banded = [each if each is not None and each.runs > 1 else None for each in points]  # one run has no interval
    drawn = (
        Series(
            CHOSEN,
            record.judging.what,
            mus,
            _means(points),
            tuple(None if each is None else number(each.low) for each in banded),
            tuple(None if each is None else number(each.high) for each in banded),
            runs=runs,
            of=record.test[0].size,
        ),
        Series("val", f"validation {record.judging.score}", mus, _means(val[start:])),
    )
    nothing = not above or all(each is None for each in (*test[1:], *val[1:]))
    panel = Panel(
        "",
        "strength μ",
        _axis(record.judging, record.judging.score),
        drawn,
        tuple(levels),
        x_scale="log" if log else "linear",
        x_view=None if log or not above else (0.0, above[-1]),
        notes=() if record.mu else ("picked on validation: μ = 0, the plain model",),
        empty="no run with a strength above 0 is finished" if nothing else "",
    )
    where = "the plain model as horizontal lines" if log else "0 is the plain model"
    judging = record.judging
    band = f"the band is the 95 % interval of {judging.what}"
    about = f"Mean {judging.score} of all runs at each strength μ, {where}; {band}."
    return _figure(
        "accuracy-against-mu",
        _title(record, f"{judging.score[0].upper()}{judging.score[1:]} against μ"),
        about,
        (panel,),
    )


def _differences(record: RunRecord, found: Numbers) -> Figure:
    """By split, a dot for each seed; if there is one split, by seed."""
    apart: Runs = record.judging.sign * (record.test[record.mus.index(found.compared)] - record.test[0])
    rows, names = (apart, [f"split {name}" for name in record.splits])
    if len(record.splits) == 1:
        rows, names = apart.T, [f"seed {i}" for i in range(record.seeds)]
    rows, names = rows[:SPLITS], [clip(name, 24) for name in names[:SPLITS]]
    places = [(row, float(x)) for row in range(len(rows)) for x in rows[row] if not np.isnan(x)]
    known = [[float(x) for x in row if not np.isnan(x)] for row in rows]
    means = tuple(number(sum(row) / len(row)) if row else None for row in known)
    each = Series(
        "plain",
        "each seed",
        tuple(number(x) for _, x in places),
        tuple(float(row) for row, _ in places),
        kind="points",
    )
    several = rows.shape[1] > 1
    mean = Series(
        CHOSEN, "mean" if several else "difference", means, tuple(float(i) for i in range(len(rows))), kind="points"
    )
    nothing = mean.empty or not found.compared
    panel = Panel(
        "",
        f"{'points of' if record.judging.fraction else 'gain in'} {record.judging.what} over the plain model",
        "",
        (each, mean) if several else (mean,),
        (Level("plain", f"plain {model_title(record.model)}", 0.0, axis="x"),),
        y_names=tuple(names),
        empty="no pair of runs, plain and regularized, is finished" if nothing else "",
    )
    what = _regularized(record, found.compared)
    about = f"{what}, minus the plain model of the same split and seed. Right of the line, the regularizer won."
    return _figure("paired-differences", _title(record, "Paired differences"), about, (panel,))


def _training(record: RunRecord) -> Figure:
    # Curves of a fit on nodes are accuracies, whatever strengths are compared by.
    judging = record.judging if record.graph["graphs"] is not None else JUDGING
    panels, shown = [], [(part, _axis(judging, f"{name} {judging.score}")) for part, name in _PARTS]
    if record.graph["graphs"] is None:
        shown.insert(0, ("loss", "training loss"))
    if record.judging.part != "test":
        shown.pop()
    for name, axis in shown:
        drawn = [
            _curve(key, label, run, name, 100.0 if judging.fraction and name != "loss" else 1.0)
            for key, label, which in (
                ("plain", f"plain {model_title(record.model)}", "plain"),
                (CHOSEN, _regularized(record, record.mu), "chosen"),
            )
            if which == "plain" or record.mu
            for run in record.histories[which]
        ]
        nothing = all(each.empty for each in drawn)
        panels.append(Panel("", "epoch", axis, tuple(drawn), empty="no training was recorded" if nothing else ""))
    panels = [panel for panel in panels if not panel.empty] or panels  # of numbers to predict, the loss alone
    about = "A few trainings, epoch by epoch, without and with the regularizer, on the same splits and seeds."
    return _figure("training", _title(record, "Training"), about, tuple(panels), columns=len(panels))


def _classes(record: RunRecord) -> Figure:
    """Recall and F1 of each class, plain and regularized side by side."""
    which = [("plain", "plain", f"plain {model_title(record.model)}")]
    which += [(CHOSEN, "chosen", _regularized(record, record.mu))] if record.mu else []
    names = tuple(clip(name, 24) for name in record.classes)
    rows = tuple(map(float, range(len(names))))
    panels = []
    for title, score in (("Recall: found, of the nodes of the class", _recall), ("F1: with precision", _f1)):
        drawn = []
        for key, name, label in which:
            table = np.array((record.confusion or {})[name], np.float64)
            values = tuple(None if math.isnan(each) else number(100 * each) for each in score(table))
            drawn.append(Series(key, label, values, rows, kind="points"))
        panels.append(Panel(title, "%", "", tuple(drawn), y_names=names))
    about = "Recall and F1 of each class over the test nodes of all runs, without and with the regularizer."
    return _figure("classes", _title(record, "Class by class"), about, tuple(panels), columns=2)


def _recall(table: NDArray[np.float64]) -> NDArray[np.float64]:
    nodes = table.sum(axis=1)
    found: NDArray[np.float64] = np.where(nodes > 0, np.diag(table) / np.maximum(nodes, 1), np.nan)
    return found


def _f1(table: NDArray[np.float64]) -> NDArray[np.float64]:
    both = table.sum(axis=0) + table.sum(axis=1)
    found: NDArray[np.float64] = np.where(both > 0, 2 * np.diag(table) / np.maximum(both, 1), np.nan)
    return found


def _map(record: RunRecord, nodes: NodeMap) -> Figure:
    """A dot for each test node of one split, by what became of it."""
    drawn = []
    for state in (0, 3, 2, 1):  # what changed is drawn on top
        key, words = list(STATES.items())[state]
        mine = [i for i, each in enumerate(nodes.state) if each == state]
        if not mine:
            continue
        x, y = (tuple(number(values[i]) for i in mine) for values in (nodes.x, nodes.y))
        notes = tuple(_dot(record, nodes, i) for i in mine)
        drawn.append(Series(key, f"{words} ({len(mine):,})", x, y, notes=notes, kind="cloud"))
    about = (
        f"Nodes of split {nodes.split}, laid out by the model's probabilities: similar predictions lie close together."
    )
    return _figure("map", _title(record, "A map of the nodes"), about, (Panel("", "", "", tuple(drawn)),))


def _dot(record: RunRecord, nodes: NodeMap, i: int) -> str:
    label, plain, chosen = (clip(record.classes[part[i]], 24) for part in (nodes.label, nodes.plain, nodes.chosen))
    said = f"{clip(nodes.node[i], 24)}: {label}; plain {plain}"
    return f"{said}, regularized {chosen}" if record.mu else said


def _curve(key: str, label: str, run: History, name: str, scale: float) -> Series:
    values: tuple[float | None, ...] = getattr(run, name)
    kept = sorted({round(i) for i in np.linspace(0, len(values) - 1, min(len(values), EPOCHS))}) if values else []
    ys = [values[i] for i in kept]
    return Series(
        key,
        label,
        tuple(float(run.epoch[i]) for i in kept),
        tuple(None if y is None else number(scale * y) for y in ys),
    )


_PARTS = (("val", "validation"), ("test", "test"))


def _axis(judging: Judging, what: str) -> str:
    return f"{what} in %" if judging.fraction else what


def _means(found: list[Summary | None]) -> tuple[Value, ...]:
    return tuple(None if each is None else number(each.mean) for each in found)


def _level(key: str, label: str, found: Summary) -> Level:
    low, high = (number(found.low), number(found.high)) if found.runs > 1 else (None, None)
    return Level(key, label, float(number(found.mean) or 0.0), low, high)


def _figure(name: str, title: str, about: str, panels: tuple[Panel, ...], columns: int = 1) -> Figure:
    return Figure(name, title, about, "", "", "", (), panels, columns)
