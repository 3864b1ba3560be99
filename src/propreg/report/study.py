"""The whole study as the page shows it: sections, their lines, and what each line's places say."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from propreg.report.grids import Grids
from propreg.report.names import line_name
from propreg.report.rule import rule_words, units_words
from propreg.statistics import Difference, paired
from propreg.study.counting import count_runs
from propreg.study.experiment import Experiment, Line, load_experiment, study_names
from propreg.study.results import Results
from propreg.study.table import Row, line_rows
from propreg.study.telling import Told, told

"""Experiments that are no part of the paper."""


@dataclass(frozen=True)
class Place:
    """A line of an experiment: its number on the page, its rows, and the paired differences of these."""

    id: int
    line: Line
    rows: tuple[Row, ...]
    apart: tuple[Difference | None, ...]
    runs_of: int

    @property
    def label(self) -> str:
        """The method with its preset."""
        return line_name(self.line)

    def told(self, apart: Difference | None) -> Told:
        """What may be said of one of its differences."""
        return "cannot be told" if apart is None else told(apart)

    def row(self, selection: str) -> Row | None:
        """The row of this selection, if the line has one."""
        return next((row for row in self.rows if row.selection == selection), None)


@dataclass(frozen=True)
class Section:
    """An experiment and its lines."""

    experiment: Experiment
    places: tuple[Place, ...]

    @property
    def name(self) -> str:
        """That of the experiment."""
        return self.experiment.name

    @property
    def recorded(self) -> tuple[int, int]:
        """Complete lines, and all lines."""
        return sum(place.rows[0].mean is not None for place in self.places), len(self.places)

    @property
    def printed(self) -> bool:
        """Whether the paper prints a number for one of its lines."""
        return any(place.rows[0].paper_mean is not None for place in self.places)


@dataclass(frozen=True)
class Study:
    """All sections and the runs behind them."""

    sections: tuple[Section, ...]
    grids: tuple[dict[str, Any], ...]
    lines: tuple[dict[str, Any], ...]
    recorded: int
    wanted: int

    def section(self, name: str) -> Section | None:
        """The section of this experiment, if it is in the study."""
        return next((each for each in self.sections if each.name == name), None)


def collect(results: Results, names: Sequence[str] | None = None) -> Study:
    """Everything that the page shows of these experiments.

    Args:
        results: Recorded runs; what is missing stays missing.
        names: Experiments; all that belong to the study where left out.
    """
    grids = Grids(results)
    sections: list[Section] = []
    lines: list[dict[str, Any]] = []
    for name in study_names() if names is None else names:
        experiment = load_experiment(name)
        places = []
        for line in experiment.lines:
            place = _place(len(lines), line, experiment.paper, results)
            places.append(place)
            lines.append(_packed_line(place, experiment, grids))
        sections.append(Section(experiment, tuple(places)))
    recorded, wanted = count_runs((section.experiment for section in sections), results)
    return Study(tuple(sections), tuple(grids.found), tuple(lines), recorded, wanted)


def _place(number: int, line: Line, paper: str, results: Results) -> Place:
    rows = line_rows(line, paper, results)
    apart = [_apart(line, row, results) for row in rows]
    return Place(number, line, tuple(rows), tuple(apart), len(line.cells) * len(line.splits) * len(line.seeds))


def _apart(line: Line, row: Row, results: Results) -> Difference | None:
    """The difference of a row with its interval, which the row itself does not keep."""
    if row.difference is None:
        return None
    cell = next(cell for cell in line.cells if cell.strength == row.strength)
    mine, plain = (results.accuracies(each, line.splits, line.seeds) for each in (cell, cell.plain))
    return None if mine is None or plain is None else paired(mine.test, plain.test)


def _packed_line(place: Place, experiment: Experiment, grids: Grids) -> dict[str, Any]:
    line = place.line
    return {
        "experiment": experiment.name,
        "dataset": line.dataset,
        "model": line.model,
        "family": line.method.method,
        "method": line.method.name,
        "label": place.label,
        "mus": [cell.strength for cell in line.cells],
        "grids": [grids.place(cell, line) for cell in line.cells],
        "plain": grids.place(line.cells[0].plain, line),
        "rows": [_packed_row(place, *pair) for pair in zip(place.rows, place.apart, strict=True)],
        "of": place.runs_of,
        "units": units_words(line),
        "rule": rule_words(line),
    }


def _packed_row(place: Place, row: Row, apart: Difference | None) -> dict[str, Any]:
    """What is known of a row; nine decimals, so that the page rounds to the digits that the tables print."""
    names = ("selection", "strength", "mean", "std", "low", "high", "p_value", "paper_mean", "paper_std", "won", "runs")
    found: dict[str, Any] = {name: getattr(row, name) for name in (*names, "verdict", "failed")}
    if apart is not None:
        found["apart"] = [round(value, 9) for value in (apart.mean, apart.low, apart.high)]
        found["told"] = place.told(apart)
    if not row.failed:
        found.pop("failed")
    return {name: _short(name, value) for name, value in found.items() if value not in (None, "") or name == "strength"}


def _short(name: str, value: Any) -> Any:
    return round(value, 9) if isinstance(value, float) and name != "strength" else value
