"""What each way of picking a strength gains on test: ``propreg table NAME --select all``."""

from collections.abc import Iterable

import numpy as np

from propreg.fitting.picking import SELECTIONS, TITLES
from propreg.names import dataset_title, method_title, model_title
from propreg.store.results import Results
from propreg.study.spec.part import Line
from propreg.study.tables.rows import Row, line_rows, signed
from propreg.study.tables.text import Listing

TITLE = (
    "Gain on test over the plain model, in points, by what the strength is picked by on validation; in brackets the "
    "strength. The best on test is optimistic: no selection can be expected to reach it"
)
NOTES: tuple[str, ...] = (
    f"reweighted: {TITLES['reweighted']}, by adjusted counts of the plain model's predictions on the test nodes, whose "
    "labels are not used. loss: cross-entropy. Only lines whose runs were recorded with --measures are shown.",
    "Share: the mean gain in percent of the mean gain of the best on test.",
)


def selections(lines: Iterable[Line], results: Results, rule: str = "") -> Listing:
    """A row for each line with a grid of strengths, as far as its measures are recorded, and their mean."""
    names, gains = list[tuple[str, ...]](), list[list[float]]()
    for line in lines:
        if len(line.cells) == 1:
            continue
        by = [line_rows(line, "", results, rule, select) for select in SELECTIONS]
        if any(len(rows) == 1 for rows in by):
            continue
        picked = [*(rows[0] for rows in by), by[0][1]]
        found = [row.difference for row in picked if row.difference is not None]
        if len(found) == len(picked):
            gains.append(found)
            names.append((place_of(line), *map(_cell, picked)))
    if gains:
        mean = np.mean(gains, axis=0)
        names.append(("mean", *(signed(each, 2) for each in mean)))
        names.append(("share", *(f"{100 * each / mean[-1]:.0f} %" if mean[-1] > 0 else "–" for each in mean)))
    return Listing(TITLE, ("", *SELECTIONS, "best on test"), tuple(names))


def _cell(row: Row) -> str:
    return f"{signed(row.difference, 2)} ({row.strength:g})"


def place_of(line: Line) -> str:
    """The name of a line's row."""
    form = f", {line.preset}" if line.preset else ""
    return f"{dataset_title(line.dataset)}: {model_title(line.model)} + {method_title(line.method.method)}{form}"
