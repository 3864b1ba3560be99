"""The study as data for the page: sections, their lines with their rows, and the runs behind every number.

A grid of whole numbers per cell, shared by all tables, is as small as runs get. Keys are left out, since 32 random
bytes per run do not compress: the page computes them, they are the digest of the cell's text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from propreg.names import method_title
from propreg.statistics import summarize
from propreg.store.progress import count_runs
from propreg.store.results import Accuracies, Results
from propreg.store.run import Cell
from propreg.study.spec.experiment import Experiment, load_experiment, study_names
from propreg.study.spec.part import Line
from propreg.study.spec.unfold import unfolded
from propreg.study.tables.rows import Row, line_rows, scale_of, scores_of
from propreg.study.tables.text import units_phrase


@dataclass(frozen=True)
class StudyLine:
    """A line of an experiment: its number on the page, its rows, and how many runs it needs."""

    id: int
    line: Line
    rows: tuple[Row, ...]
    runs_of: int

    @property
    def label(self) -> str:
        """The method with its preset."""
        return method_title(self.line.method.method, self.line.preset)


@dataclass(frozen=True)
class Section:
    """An experiment and its lines."""

    experiment: Experiment
    lines: tuple[StudyLine, ...]

    @property
    def name(self) -> str:
        """That of the experiment."""
        return self.experiment.name

    @property
    def recorded(self) -> tuple[int, int]:
        """The numbers of complete lines and of all lines."""
        return sum(each.rows[0].mean is not None for each in self.lines), len(self.lines)

    @property
    def printed(self) -> bool:
        """Whether the paper prints a number for one of its lines."""
        return any(each.rows[0].paper_mean is not None for each in self.lines)


@dataclass(frozen=True)
class Study:
    """All sections and the runs behind them; ``grids`` and ``lines`` are JSON for the page's scripts."""

    sections: tuple[Section, ...]
    grids: tuple[dict[str, Any], ...]
    lines: tuple[dict[str, Any], ...]
    recorded: int
    wanted: int

    def section(self, name: str) -> Section | None:
        """The section of this experiment, if it is in the study."""
        return next((each for each in self.sections if each.name == name), None)


class CachedResults(Results):
    """The same results, with accuracies computed once: tables, curves and figures need the same ones."""

    def __init__(self, results: Results) -> None:
        super().__init__()
        vars(self).update(vars(results))
        self._known: dict[tuple[str, Sequence[int], Sequence[int]], Accuracies | None] = {}

    def accuracies(self, cell: Cell, splits: Sequence[int], seeds: Sequence[int]) -> Accuracies | None:
        """The accuracies of a cell; None if a run is missing."""
        key = (cell.text, tuple(splits), tuple(seeds))
        if key not in self._known:
            self._known[key] = super().accuracies(cell, splits, seeds)
        return self._known[key]


def collect(results: Results, names: Sequence[str] | None = None) -> Study:
    """Everything that the page shows of these experiments.

    Args:
        results: Recorded runs; what is missing stays missing.
        names: Experiments; all of the study by default.
    """
    grids = _Grids(results)
    sections: list[Section] = []
    packed: list[dict[str, Any]] = []
    for name in study_names() if names is None else names:
        experiment = unfolded(load_experiment(name), results)
        lines = []
        for line in experiment.lines:
            rows = tuple(line_rows(line, experiment.paper, results))
            needed = len(line.cells) * len(line.splits) * len(line.seeds)
            lines.append(StudyLine(len(packed), line, rows, needed))
            packed.append(_packed_line(lines[-1], experiment, grids))
        sections.append(Section(experiment, tuple(lines)))
    recorded, wanted = count_runs((section.experiment for section in sections), results)
    return Study(tuple(sections), tuple(grids.found), tuple(packed), recorded, wanted)


def _packed_line(mine: StudyLine, experiment: Experiment, grids: "_Grids") -> dict[str, Any]:
    line = mine.line
    return {
        "experiment": experiment.name,
        "dataset": line.dataset,
        "model": line.model,
        "family": line.method.method,
        "method": line.method.name,
        "label": mine.label,
        "mus": [cell.strength for cell in line.cells],
        "grids": [grids.index(cell, line) for cell in line.cells],
        "plain": grids.index(line.cells[0].plain, line),
        "rows": [_packed_row(row) for row in mine.rows],
        "of": mine.runs_of,
        "units": units_phrase(line),
        **_score(line),
    }


def _score(line: Line) -> dict[str, Any]:
    """What the page calls the scores of a line that are no accuracies."""
    scale = scale_of(line.dataset)
    if scale.metric == "accuracy":
        return {}
    unit = ("", "") if scale.factor == 1 else (" %", " points")
    names = {"rmse": "RMSE", "rocauc": "ROC-AUC"}
    about = {"name": names[scale.metric], "digits": scale.digits, "unit": unit[0], "points": unit[1]}
    words = ("worse than", "better than") if scale.sign < 0 else ("below", "above")
    about |= {"sign": scale.sign, "margin": scale.margin, "worse": words[0], "better": words[1]}
    return {"score": about}


def _packed_row(row: Row) -> dict[str, Any]:
    """What is known of a row; nine decimals, so that the page rounds to the digits that the tables print."""
    names = ("selection", "strength", "mean", "std", "low", "high", "p_value", "paper_mean", "paper_std", "won", "runs")
    found: dict[str, Any] = {name: getattr(row, name) for name in (*names, "verdict", "gain_verdict", "failed")}
    if (apart := row.against_plain) is not None:
        found["apart"] = [round(value, 9) for value in (apart.mean, apart.low, apart.high)]
        found["against_plain"] = apart.verdict
    if not row.failed:
        found.pop("failed")
    return {name: _short(name, value) for name, value in found.items() if value not in (None, "") or name == "strength"}


def _short(name: str, value: Any) -> Any:
    return round(value, 9) if isinstance(value, float) and name != "strength" else value


@dataclass
class _Grids:
    """Collects the grids that lines need, each once."""

    results: Results
    found: list[dict[str, Any]] = field(default_factory=list)
    _indices: dict[tuple[str, tuple[int, ...], tuple[int, ...]], int] = field(default_factory=dict)

    def index(self, cell: Cell, line: Line) -> int:
        """The number of the grid of this cell on a line's splits and seeds."""
        key = (cell.text, line.splits, line.seeds)
        if key not in self._indices:
            self._indices[key] = len(self.found)
            self.found.append(self._grid(cell, line))
        return self._indices[key]

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
        scale = scale_of(line.dataset)
        if scale.metric != "accuracy":  # scores are no counts: 100 · score / val_of is what the tables show
            found["val_of"] = found["test_of"] = 100 / scale.factor
        failed = {i: each.failed_at for i, each in enumerate(outcomes) if each and each.failed_at is not None}
        if failed:
            found["failed"] = failed
        whole = scores_of(line, cell, self.results, "")
        if whole is not None:  # a point of the curve against the strength
            test = summarize(whole.test)
            found["sum"] = [round(v, 9) for v in (test.mean, test.low, test.high, float(whole.val.mean()))]
        return found
