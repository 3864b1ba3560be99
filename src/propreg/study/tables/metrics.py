"""Every metric at the picked strength, beside the plain model: ``propreg table NAME --metrics``."""

import math
from collections.abc import Iterable

import numpy as np

from propreg.fitting.picking import Select
from propreg.metrics import ABOUT, METRICS, Metric
from propreg.store.results import Results
from propreg.study.spec.part import Line
from propreg.study.tables.rows import line_rows, rule_of, scored, signed
from propreg.study.tables.selections import place_of
from propreg.study.tables.text import Listing

TITLE = "Metrics on test, means over the runs: the plain model, and what the method at its strength gains"
NOTES: tuple[str, ...] = (f"Accuracies, F1, ROC-AUC and ECE in percent. {ABOUT}",)
_NO_SHARES = ("nll", "brier")
_Values = dict[str, tuple[float, float]]


def metrics(lines: Iterable[Line], results: Results, rule: str = "", select: Select = "accuracy") -> Listing:
    """A row for each method whose runs, and the plain ones, have measures; then the mean gains."""
    places, found = list[str](), list[_Values]()
    for line in lines:
        if line.method.method != "plain" and (values := _values(line, results, rule_of(line, rule), select)):
            places.append(place_of(line))
            found.append(values)
    shown = [metric for metric in METRICS.values() if any(not math.isnan(each[metric.name][0]) for each in found)]
    rows = [
        (place, *(_cell(metric, *values[metric.name]) for metric in shown))
        for place, values in zip(places, found, strict=True)
    ]
    if rows:
        gains = {metric: np.array([values[metric.name][1] for values in found]) for metric in shown}
        rows.append(("mean gain", *(_shown(metric, float(np.nanmean(each))) for metric, each in gains.items())))
    return Listing(TITLE, ("", *(metric.title for metric in shown)), tuple(rows))


def _values(line: Line, results: Results, rule: str, select: Select) -> _Values | None:
    """The plain model's mean and the gain, by metric; None if nothing is picked yet, or there are no measures."""
    row = line_rows(line, "", results, rule, select)[0]
    if row.mean is None:
        return None
    (cell,) = (cell for cell in scored(line, results, rule)[0].cells if cell.strength == row.strength)
    found = {}
    for name, metric in METRICS.items():
        mine, plain = (results.scores(each, line.splits, line.seeds, name, rule) for each in (cell, cell.plain))
        if mine is None or plain is None:
            return None
        sign = 1 if metric.direction == "higher" else -1
        found[name] = float(plain.test.mean()), sign * float((mine.test - plain.test).mean())
    return found


def _cell(metric: Metric, plain: float, gain: float) -> str:
    if math.isnan(plain):
        return "–"
    shown = f"{plain:.3f}" if metric.name in _NO_SHARES else f"{100 * plain:.2f}"
    return f"{shown} {_shown(metric, gain)}"


def _shown(metric: Metric, gain: float) -> str:
    return signed(gain, 3) if metric.name in _NO_SHARES else signed(100 * gain, 2)
