"""From recorded runs to places in a panel: only cells whose runs are all there have a value."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from propreg.statistics import Difference, Runs, paired, summarise
from propreg.study.experiment import Experiment, Line
from propreg.study.figures.parts import Series, Value, number
from propreg.study.figures.words import SURELY, counted
from propreg.study.results import Results
from propreg.study.run import Cell
from propreg.study.table import pick


@dataclass(frozen=True)
class Place:
    """A mean with its interval at one value of what is varied; None where runs are missing."""

    x: float
    values: Runs | None
    runs: int
    note: str = ""

    @property
    def mean(self) -> Value:
        """That of all runs."""
        return None if self.values is None else float(self.values.mean())


def lines_of(experiment: Experiment, **wanted: str) -> list[Line]:
    """The lines with this dataset, model, or method (its full name)."""
    return [
        line
        for line in experiment.lines
        if all((line.method.name if key == "method" else getattr(line, key)) == value for key, value in wanted.items())
    ]


def the_line(experiment: Experiment, **wanted: str) -> Line:
    """The only such line."""
    (line,) = lines_of(experiment, **wanted)
    return line


def test_runs(results: Results, line: Line, cell: Cell) -> Runs | None:
    """Test accuracies in per cent [splits, seeds]."""
    found = results.accuracies(cell, line.splits, line.seeds)
    return None if found is None else found.test


def measures(results: Results, line: Line, cell: Cell, name: str) -> Runs | None:
    """What else was measured of each run [splits, seeds]; None where a run lacks it."""
    rows = [results.outcome(cell, split, seed) for split in line.splits for seed in line.seeds]
    found = [None if row is None else row.measured.get(name) for row in rows]
    values = [value for value in found if value is not None]
    if not found or len(values) < len(found):
        return None
    return np.array(values, np.float64).reshape(len(line.splits), len(line.seeds))


def count(results: Results, line: Line, cell: Cell) -> int:
    """How many runs of a cell are recorded."""
    return results.count(cell, line.splits, line.seeds)


@dataclass(frozen=True)
class Picked:
    """The strength with the best mean validation accuracy, and what it gives on test."""

    strength: float
    test: Runs
    line: Line


def picked(results: Results, line: Line, *, on: str = "validation") -> Picked | None:
    """Pick a strength of a line, as tables do; None where a run of its grid is missing."""
    found = [results.accuracies(cell, line.splits, line.seeds) for cell in line.cells]
    complete = [each for each in found if each is not None]
    if len(complete) < len(found):
        return None
    best = pick([(each.val if on == "validation" else each.test).mean() for each in complete])
    return Picked(line.cells[best].strength, complete[best].test, line)


def gain(results: Results, chosen: Picked | None) -> Difference | None:
    """What a picked strength adds to the plain model on the same splits and seeds."""
    if chosen is None:
        return None
    base = results.accuracies(chosen.line.cells[0].plain, chosen.line.splits, chosen.line.seeds)
    return None if base is None else paired(chosen.test, base.test)


def series(key: str, label: str, places: Sequence[Place], of: int, missing: str = "") -> Series:
    """A line through places."""
    summaries = [None if place.values is None else summarise(place.values) for place in places]
    return Series(
        key,
        label,
        tuple(number(place.x) for place in places),
        tuple(None if each is None else number(each.mean) for each in summaries),
        tuple(None if each is None else number(each.low) for each in summaries),
        tuple(None if each is None else number(each.high) for each in summaries),
        runs=tuple(place.runs for place in places),
        of=of,
        notes=tuple(place.note for place in places) if any(place.note for place in places) else (),
        missing=missing,
    )


def view_from(floor: float, drawn: Iterable[Series], levels: Iterable[float] = ()) -> tuple[float, float]:
    """The part of the y axis from a floor to a little above everything."""
    highs = [value for each in drawn for value in each.high if value is not None]
    return round(floor, 1), round(max((*highs, *levels, floor + 1)) + 0.5, 1)


def lacking(label: str, results: Results, lines: Iterable[Line]) -> str:
    """What of these lines is not recorded, in words; empty where all is."""
    have, of = _recorded(results, lines)
    return "" if have == of else f"{label}: {counted(have, of)}"


def all_lacking(results: Results, groups: Mapping[str, Mapping[str, Sequence[Line]]]) -> tuple[str, ...]:
    """What is not recorded, an entry for each group; its members are told apart where some have runs."""
    out = []
    for group, members in groups.items():
        found = {label: _recorded(results, lines) for label, lines in members.items()}
        short = {label: (have, of) for label, (have, of) in found.items() if have < of}
        if short and len(found) > 1 and any(have for have, _ in found.values()):
            said_of = ", ".join(f"{label} {have:,} of {of:,}" for label, (have, of) in short.items())
            out.append(f"{group}: {said_of} runs recorded")
        elif short:
            out.append(lacking(group, results, [line for lines in members.values() for line in lines]))
    return tuple(out)


def _recorded(results: Results, lines: Iterable[Line]) -> tuple[int, int]:
    have = of = 0
    for line in lines:
        have += sum(count(results, line, cell) for cell in line.cells)
        of += len(line.cells) * len(line.splits) * len(line.seeds)
    return have, of


def per_cell(line: Line) -> int:
    """How many runs a value is the mean of."""
    return len(line.splits) * len(line.seeds)


def behind(line: Line, split: str = "splits") -> str:
    """The runs that a mean is of, in words."""
    return f"{per_cell(line)} runs ({len(line.splits)} {split} × {len(line.seeds)} seeds)"


def said(sentences: Iterable[str]) -> tuple[str, ...]:
    """Those that say something, and where one of them says surely, what that means."""
    found = [sentence for sentence in sentences if sentence]
    return (*found, *([SURELY] if any("surely" in sentence for sentence in found) else []))
