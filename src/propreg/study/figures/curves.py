"""From recorded runs to the points of a panel: only cells whose runs are all recorded have a value."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from propreg.statistics import Difference, Runs, Summary, paired, summarize
from propreg.store.results import Results
from propreg.store.run import Cell
from propreg.study.figures.parts import Series, Value, number
from propreg.study.spec.experiment import Experiment
from propreg.study.spec.part import Line
from propreg.study.spec.presets import named_method
from propreg.study.tables.rows import decimals, pick, signed


@dataclass(frozen=True)
class Point:
    """Runs at one value of what is varied; ``values`` is None if some are missing."""

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
    """Test accuracies in percent [splits, seeds]."""
    found = results.accuracies(cell, line.splits, line.seeds)
    return None if found is None else found.test


def measures(results: Results, line: Line, cell: Cell, name: str) -> Runs | None:
    """Another measure of each run [splits, seeds]; None if a run lacks it."""
    rows = [results.outcome(cell, split, seed) for split in line.splits for seed in line.seeds]
    found = [None if row is None else row.measured.get(name) for row in rows]
    values = [value for value in found if value is not None]
    if not found or len(values) < len(found):
        return None
    return np.array(values, np.float64).reshape(len(line.splits), len(line.seeds))


def count(results: Results, line: Line, cell: Cell) -> int:
    """The number of recorded runs of a cell."""
    return results.count(cell, line.splits, line.seeds)


def per_cell(line: Line) -> int:
    """The number of runs behind a mean."""
    return len(line.splits) * len(line.seeds)


@dataclass(frozen=True)
class Picked:
    """The strength with the best mean validation accuracy, and its test accuracies."""

    strength: float
    test: Runs
    line: Line


def picked(results: Results, line: Line) -> Picked | None:
    """Pick a strength of a line, as tables do; None if a run of its grid is missing."""
    found = [results.accuracies(cell, line.splits, line.seeds) for cell in line.cells]
    complete = [each for each in found if each is not None]
    if len(complete) < len(found):
        return None
    best = pick(each.val.mean() for each in complete)
    return Picked(line.cells[best].strength, complete[best].test, line)


def gain(results: Results, chosen: Picked | None) -> Difference | None:
    """What a picked strength adds to the plain model on the same splits and seeds."""
    if chosen is None:
        return None
    base = results.accuracies(chosen.line.cells[0].plain, chosen.line.splits, chosen.line.seeds)
    return None if base is None else paired(chosen.test, base.test)


def series(key: str, label: str, points: Sequence[Point], of: int, missing: str = "") -> Series:
    """A line through points."""
    summaries = [None if point.values is None else summarize(point.values) for point in points]
    means, low, high = _ends(summaries)
    return Series(
        key,
        label,
        tuple(number(point.x) for point in points),
        means,
        low,
        high,
        runs=tuple(point.runs for point in points),
        of=of,
        notes=tuple(point.note for point in points) if any(point.note for point in points) else (),
        missing=missing,
    )


def in_rows(
    key: str,
    label: str,
    found: Sequence[Summary | Difference | None],
    of: int,
    notes: Sequence[str] = (),
    missing: str = "",
) -> Series:
    """Means with horizontal bars, one in each row of a panel whose y axis has names; each is of ``of`` runs."""
    means, low, high = _ends(found)
    return Series(
        key,
        label,
        means,
        tuple(map(float, range(len(found)))),
        x_low=low,
        x_high=high,
        runs=tuple(0 if each is None else of for each in found),
        of=of,
        notes=tuple(notes),
        kind="points",
        missing=missing,
    )


def _ends(
    found: Sequence[Summary | Difference | None],
) -> tuple[tuple[Value, ...], tuple[Value, ...], tuple[Value, ...]]:
    """Means, lower and upper ends."""
    rows = [(None, None, None) if each is None else (each.mean, each.low, each.high) for each in found]
    means, low, high = (tuple(number(row[i]) for row in rows) for i in range(3))
    return means, low, high


def view_from(floor: float, drawn: Iterable[Series], levels: Iterable[float] = ()) -> tuple[float, float]:
    """The part of the y axis from a floor to a little above everything."""
    highs = [value for each in drawn for value in each.high if value is not None]
    return round(floor, 1), round(max((*highs, *levels, floor + 1)) + 0.5, 1)


def method_label(name: str) -> str:
    """A method of the presets, for legends."""
    return named_method(name).title


def percent(value: float) -> str:
    """An accuracy.

    Example:
        >>> percent(80.0)
        '80.0 %'
    """
    return f"{decimals(value, 1)} %"


def difference_phrase(found: Difference) -> str:
    """A difference of accuracies in points, with its interval.

    Example:
        >>> difference_phrase(Difference(1.25, -0.5, 2.0, 0.06, 1.0))
        '+1.2 (−0.5 to +2.0)'
    """
    return f"{signed(found.mean)} ({signed(found.low)} to {signed(found.high)})"


def strengths_phrase(values: Sequence[float]) -> str:
    """Values of μ, shortened if they are many.

    Example:
        >>> strengths_phrase([0.1, 0.2]), strengths_phrase([0.1, 0.2, 0.3, 0.4])
        ('μ = 0.1, 0.2', 'μ = 0.1 … 0.4 (4 values)')
    """
    found = [f"{value:g}" for value in values]
    return f"μ = {', '.join(found)}" if len(found) <= 3 else f"μ = {found[0]} … {found[-1]} ({len(found)} values)"


def runs_phrase(line: Line, split: str = "splits") -> str:
    """The runs behind a mean."""
    return f"{per_cell(line)} runs ({len(line.splits)} {split} × {len(line.seeds)} seeds)"


def missing_phrase(label: str, results: Results, lines: Iterable[Line]) -> str:
    """How many of these lines' runs are recorded; empty if all are."""
    have, of = _recorded(results, lines)
    return "" if have == of else f"{label}: {have:,} of {of:,} runs recorded"


def missing_phrases(results: Results, groups: Mapping[str, Mapping[str, Sequence[Line]]]) -> tuple[str, ...]:
    """An entry for each group with missing runs; its members are named if some of them have runs."""
    out = []
    for group, members in groups.items():
        found = {label: _recorded(results, lines) for label, lines in members.items()}
        short = {label: (have, of) for label, (have, of) in found.items() if have < of}
        if short and len(found) > 1 and any(have for have, _ in found.values()):
            counts = ", ".join(f"{label} {have:,} of {of:,}" for label, (have, of) in short.items())
            out.append(f"{group}: {counts} runs recorded")
        elif short:
            out.append(missing_phrase(group, results, [line for lines in members.values() for line in lines]))
    return tuple(out)


def _recorded(results: Results, lines: Iterable[Line]) -> tuple[int, int]:
    have = of = 0
    for line in lines:
        have += sum(count(results, line, cell) for cell in line.cells)
        of += len(line.cells) * per_cell(line)
    return have, of
