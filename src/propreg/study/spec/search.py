"""Searches: configurations from a space, and successive halving on mean validation accuracy.

A part of an experiment with a ``space`` is a search for each of its datasets, models and methods::

    [spaces.grand]
    lr = { log = [0.003, 0.03] }
    temperature = { uniform = [0.1, 0.6] }
    hidden = { values = [32, 64] }
    strength = { log = [0.01, 1.0] }       # of the method; the plain model leaves it out

    [[parts]]
    space = "grand"
    rungs = [[128, 5], [32, 20], [8, 50]]  # configurations, and the seeds of each in all
    fresh = 100                            # seeds of the winner that selected nothing
    …

The configurations are the first points of a Sobol sequence, so they are fixed by the text of the space. The first rung
is the search's line in the experiment; :func:`propreg.study.spec.unfold.unfolded` adds the lines of the later ones as
far as records name them.
Seeds are counted on from rung to rung, and the fresh ones come last.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from propreg.engine.spec import Method
from propreg.store.errors import StudyError, unknown
from propreg.store.results import Accuracies, Results
from propreg.store.run import Cell, decimal
from propreg.study.spec.sobol import DIMENSIONS, sobol

if TYPE_CHECKING:
    from propreg.study.spec.part import Line

_OF_CELL = ("strength", "lr", "weight_decay", "dropout", "patience")
_KINDS = ("log", "uniform", "values")
Space = Mapping[str, Mapping[str, Sequence[Any]]]


@dataclass(frozen=True)
class Halving:
    """The plan of a search.

    Args:
        rungs: The configurations of each rung and the seeds that each has then had in all.
        fresh: How many further seeds the winner is trained with.
    """

    rungs: tuple[tuple[int, int], ...]
    fresh: int

    def __post_init__(self) -> None:
        counts, seeds = zip(*self.rungs, strict=True)
        falling = all(a > b for a, b in itertools.pairwise(counts))
        rising = all(a < b for a, b in itertools.pairwise((0, *seeds)))
        if not (falling and rising and counts[-1] >= 1 and self.fresh >= 1):
            raise StudyError(
                "rungs must be like [[128, 5], [32, 20], [8, 50]], fewer configurations with more seeds, and fresh at "
                f"least 1, got rungs = {[list(rung) for rung in self.rungs]} and fresh = {self.fresh}."
            )

    def seeds(self, rung: int) -> range:
        """The seeds that are new in a rung, counted from 0; the one after the last rung has the fresh seeds."""
        ends = [0, *(seeds for _, seeds in self.rungs)]
        return range(ends[-1], ends[-1] + self.fresh) if rung == len(self.rungs) else range(ends[rung], ends[rung + 1])

    @property
    def selecting(self) -> range:
        """All seeds of the last rung."""
        return range(self.rungs[-1][1])

    @property
    def runs(self) -> int:
        """The runs of the whole search on one split."""
        return sum(count * len(self.seeds(i)) for i, (count, _) in enumerate(self.rungs)) + self.fresh


def configurations(base: Cell, method: Method, space: Space, count: int) -> tuple[Cell, ...]:
    """The first configurations of a space: point i is the same with and without a term, but for its strength.

    Args:
        base: The cell whose settings they replace.
        method: The regularizer; the plain one has no strength.
        space: By setting of the run or of the model, ``log`` or ``uniform`` bounds, or ``values``.
        count: Their number.
    """
    plain = method == Method()
    if not plain and "strength" not in space:
        raise StudyError(f"a space for {method.name} needs a strength: write strength = {{ log = [0.01, 1.0] }}.")
    if not 1 <= len(space) <= DIMENSIONS:
        raise StudyError(f"a space has 1 to {DIMENSIONS} settings, got {len(space)}.")
    known = [*_OF_CELL, *(each.name for each in fields(base.model) if each.name != "name")]
    for name in space:
        if name not in known:
            raise unknown(f"setting of a space for {base.model.name}", name, known)
    # The centers of the points' intervals: the sequence begins at a corner of the space.
    points = sobol(count, len(space)) + 0.5 / count
    columns = {name: _values(name, ways, points[:, i]) for i, (name, ways) in enumerate(space.items())}
    found = []
    for values in (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)):
        of_cell: dict[str, Any] = {name: v for name, v in values.items() if name in _OF_CELL}
        of_model: dict[str, Any] = {name: v for name, v in values.items() if name not in _OF_CELL}
        of_cell |= {"strength": 0.0} if plain else {"method": method}
        found.append(replace(base, model=replace(base.model, **of_model), **of_cell))
    return tuple(found)


def _values(name: str, ways: Mapping[str, Sequence[Any]], points: NDArray[np.float64]) -> list[Any]:
    """The values of a setting at points in [0, 1), numbers with three digits."""
    kind, given = next(iter(ways.items()), ("", ()))
    if len(ways) != 1 or kind not in _KINDS or not given or (kind != "values" and len(given) != 2):
        raise StudyError(f"{name} of a space must be like {{ log = [0.001, 0.1] }}, uniform or values, got {ways!r}.")
    if kind == "values":
        return [given[int(u * len(given))] for u in points]
    low, high = (decimal(name, bound) for bound in given)
    if not (low < high and (kind == "uniform" or low > 0)):
        raise StudyError(f"{name} of a space needs a lower and a higher bound, above 0 for log, got {list(given)}.")
    found = low * (high / low) ** points if kind == "log" else low + (high - low) * points
    return [float(f"{value:.3g}") for value in found]


def rungs_of(line: "Line", results: Results) -> "list[Line]":
    """The line of each rung that the records allow, the first one's first and the winner's fresh seeds last."""
    if line.search is None or line.rung:
        return [line]
    found, plan = [line], line.search
    for number, (_, seeds) in enumerate(plan.rungs, start=1):
        last = number == len(plan.rungs)
        best = best_of(found[-1], results, range(seeds), 1 if last else plan.rungs[number][0])
        if best is None:
            break
        found.append(replace(line, cells=best, seeds=tuple(plan.seeds(number)), rung=number))
    return found


def best_of(
    line: "Line", results: Results, seeds: Sequence[int], count: int, rule: str = ""
) -> tuple[Cell, ...] | None:
    """The cells with the best mean validation accuracy, in the order of the line; None if a run is missing.

    Of equal ones the first is better. A ``rule`` other than that of the runs' protocol may choose the epoch.
    """
    scores = [
        results.scores(cell, line.splits, seeds, "accuracy", rule)
        if rule
        else results.accuracies(cell, line.splits, seeds)
        for cell in line.cells
    ]
    means = [float(each.val.mean()) for each in scores if each is not None]
    if len(means) < len(scores):
        return None
    order = np.argsort(-np.round(means, 9), kind="stable")  # rounded: a tie is a tie on every machine
    return tuple(line.cells[i] for i in sorted(order[:count]))


@dataclass(frozen=True)
class Winner:
    """The winner of a search: its accuracies with the seeds that selected it, and with fresh ones once recorded."""

    line: "Line"
    cell: Cell
    selecting: Accuracies
    fresh: Accuracies | None

    @property
    def optimism(self) -> float | None:
        """Mean validation accuracy of the selecting seeds minus that of the fresh ones, in points."""
        return None if self.fresh is None else float(self.selecting.val.mean() - self.fresh.val.mean())


def winner_of(line: "Line", results: Results) -> Winner | None:
    """The winner of the search that a first rung begins; None before its last rung is recorded."""
    rungs = rungs_of(line, results)
    if line.search is None or rungs[-1].rung < len(line.search.rungs):
        return None
    (cell,) = rungs[-1].cells
    selecting = results.accuracies(cell, line.splits, line.search.selecting)
    if selecting is None:
        return None
    return Winner(line, cell, selecting, results.accuracies(cell, line.splits, rungs[-1].seeds))


def recorded_runs(lines: Iterable["Line"], results: Results) -> int:
    """How many runs of these lines are recorded."""
    return sum(results.count(cell, line.splits, line.seeds) for line in lines for cell in line.cells)
