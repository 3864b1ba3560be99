"""The rows of a table: for each line the strength picked on validation, and the one best on test beside it.

Only complete lines have numbers: where a run of a grid is missing, picking from the rest would not be the same choice.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np

from propreg.statistics import paired, summarise
from propreg.study.experiment import Experiment, Line
from propreg.study.paper import paper_number, verdict
from propreg.study.results import Accuracies, Results


@dataclass(frozen=True)
class Row:
    """One place of a table; accuracies in per cent. What is not known is None.

    ``selection`` says how the strength was come by: ``"validation"`` (picked there), ``"test"`` (best on test, as the
    paper's numbers seem to be), ``"fixed"`` where the line has only one, so that nothing was picked, or ``"none"`` for
    the plain model, which has no strength. ``low`` … ``high`` is a 95 % interval of the mean; ``difference`` and
    ``p_value`` are those to the plain model on the same splits and seeds. ``verdict`` is that on the paper's number, or
    says how many runs are there of an incomplete line. ``won`` is the share of runs better than the plain one of the
    same split and seed, ``failed`` the number of runs whose loss became NaN; they count with what they had reached.
    ``at_end`` says that the strength is the smallest or largest that was tried.
    """

    model: str
    dataset: str
    method: str
    preset: str
    selection: str
    strength: float | None
    runs: int
    mean: float | None
    std: float | None
    low: float | None
    high: float | None
    difference: float | None
    p_value: float | None
    paper_mean: float | None
    paper_std: float | None
    verdict: str
    won: float | None = None
    failed: int = 0
    at_end: bool = False

    @property
    def mark(self) -> str:
        """Stands behind a strength beyond which there may be a better one."""
        return "*" * self.at_end


COLUMNS = tuple(each.name for each in fields(Row))[:-3]
"""Those of the CSV, which scripts rely on."""


def table_rows(experiment: Experiment, results: Results, lines: Iterable[Line] | None = None) -> list[Row]:
    """The rows of an experiment's lines, in their order."""
    chosen = experiment.lines if lines is None else lines
    return [row for line in chosen for row in line_rows(line, experiment.paper, results)]


def line_rows(line: Line, paper: str, results: Results) -> list[Row]:
    """A row for the plain model or a fixed strength, two for a grid: picked on validation, and best on test."""
    found = [results.accuracies(cell, line.splits, line.seeds) for cell in line.cells]
    complete = [each for each in found if each is not None]
    alone = "none" if line.method.method == "plain" else "fixed" if len(line.cells) == 1 else ""
    if len(complete) < len(found):
        return [_incomplete(line, paper, results, alone or "validation")]
    if alone:
        return [_row(line, paper, results, alone, 0, complete)]
    return [
        _row(line, paper, results, "validation", pick([each.val.mean() for each in complete]), complete),
        _row(line, paper, results, "test", pick([each.test.mean() for each in complete]), complete),
    ]


def pick(means: Iterable[float]) -> int:
    """The place of the largest mean; of equals the first, which is the smallest strength.

    Example:
        >>> pick([0.5, 0.7, 0.7 + 1e-15])
        1
    """
    return int(np.argmax(np.round(list(means), 9)))  # rounded: a tie is a tie on every machine


def _row(line: Line, paper: str, results: Results, selection: str, place: int, accuracies: list[Accuracies]) -> Row:
    cell, test = line.cells[place], accuracies[place].test
    summary = summarise(test)
    base = results.accuracies(cell.plain, line.splits, line.seeds) if selection != "none" else None
    difference = None if base is None else paired(test, base.test)
    number = paper_number(paper, line.model, line.method.name, line.method.method, line.dataset)
    return Row(
        model=line.model,
        dataset=line.dataset,
        method=line.method.method,
        preset=line.preset,
        selection=selection,
        strength=cell.strength,
        runs=summary.runs,
        mean=summary.mean,
        std=summary.std,
        low=summary.low,
        high=summary.high,
        difference=None if difference is None else difference.mean,
        p_value=None if difference is None else difference.p_value,
        paper_mean=None if number is None else number[0],
        paper_std=None if number is None else number[1],
        verdict="" if number is None else verdict(test, number[0]),
        won=None if difference is None else difference.won,
        failed=results.failed(cell, line.splits, line.seeds),
        at_end=len(line.cells) > 1 and place in (0, len(line.cells) - 1),
    )


def _incomplete(line: Line, paper: str, results: Results, selection: str) -> Row:
    have = sum(results.count(cell, line.splits, line.seeds) for cell in line.cells)
    of = len(line.cells) * len(line.splits) * len(line.seeds)
    number = paper_number(paper, line.model, line.method.name, line.method.method, line.dataset) or (None, None)
    return Row(
        model=line.model,
        dataset=line.dataset,
        method=line.method.method,
        preset=line.preset,
        selection=selection,
        strength=None,
        runs=have,
        mean=None,
        std=None,
        low=None,
        high=None,
        difference=None,
        p_value=None,
        paper_mean=number[0],
        paper_std=number[1],
        verdict=f"incomplete: {have} of {of} runs",
    )
