"""The runs behind every number, as small as they go: one grid of whole numbers per cell, shared by all tables.

Keys are not stored, since 32 random bytes per run do not compress: the page computes them from the cell's text, which
is what they are the digest of.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from propreg.statistics import Summary, summarise
from propreg.study.experiment import Line
from propreg.study.results import Accuracies, Results
from propreg.study.run import Cell


class Remembered(Results):
    """The same results, with accuracies computed once: tables, curves and figures ask for the same ones."""

    def __init__(self, results: Results) -> None:
        super().__init__()
        self._cells, self._waiting = results._cells, results._waiting
        self._known: dict[tuple[str, Sequence[int], Sequence[int]], Accuracies | None] = {}

    def accuracies(self, cell: Cell, splits: Sequence[int], seeds: Sequence[int]) -> Accuracies | None:
        """Those of a cell; None where a run is missing."""
        key = (cell.text, tuple(splits), tuple(seeds))
        if key not in self._known:
            self._known[key] = super().accuracies(cell, splits, seeds)
        return self._known[key]


@dataclass
class Grids:
    """Collects the grids that lines ask for, each once."""

    results: Results
    found: list[dict[str, Any]] = field(default_factory=list)
    _places: dict[tuple[str, tuple[int, ...], tuple[int, ...]], int] = field(default_factory=dict)

    def place(self, cell: Cell, line: Line) -> int:
        """The number of the grid of this cell on a line's splits and seeds."""
        key = (cell.text, line.splits, line.seeds)
        if key not in self._places:
            self._places[key] = len(self.found)
            self.found.append(self._grid(cell, line))
        return self._places[key]

    def _grid(self, cell: Cell, line: Line) -> dict[str, Any]:
        pairs = [(split, seed) for split in line.splits for seed in line.seeds]
        found: dict[str, Any] = {"cell": cell.text, "splits": line.splits, "seeds": line.seeds}
        if not self.results.count(cell, line.splits, line.seeds):
            return found
        outcomes = [self.results.outcome(cell, split, seed) for split, seed in pairs]
        for name in ("val", "test", "epoch"):
            found[name] = [None if each is None else getattr(each, name) for each in outcomes]
        for name in ("val_of", "test_of"):
            sizes = [0 if each is None else getattr(each, name) for each in outcomes]
            found[name] = sizes[0] if len(set(sizes)) == 1 else sizes
        failed = {i: each.failed_at for i, each in enumerate(outcomes) if each and each.failed_at is not None}
        if failed:
            found["failed"] = failed
        whole = self.results.accuracies(cell, line.splits, line.seeds)
        if whole is not None:
            found["sum"] = _summary(whole)
        return found


def _summary(runs: Accuracies) -> list[float]:
    """Test accuracy with its interval, then validation accuracy: a point of the curve against the strength."""
    test: Summary = summarise(runs.test)
    return [round(value, 9) for value in (test.mean, test.low, test.high, float(runs.val.mean()))]
