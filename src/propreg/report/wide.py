"""The study's tables side by side, as the page shows them: a pivot's rows with the lines behind them."""

from dataclasses import dataclass

from propreg.names import dataset_title, method_title, model_title
from propreg.report.study import Section, StudyLine
from propreg.study.tables.pivot import SIGNS, Gap, Pivot, PivotRow, best_of, pivot
from propreg.study.tables.rows import Row

SHOWN = 6
"""Methods of a model in a table; the others are variants, which a switch shows."""


@dataclass(frozen=True)
class Entry:
    """One cell of the table: a row and the line whose runs it opens."""

    line: StudyLine
    row: Row
    best: bool = False

    @property
    def kind(self) -> str:
        """A class for the style sheet: the verdict against the paper."""
        return "missing" if self.row.mean is None else self.row.verdict or "unjudged"

    @property
    def change(self) -> str:
        """A class for the style sheet: the verdict against the plain model."""
        return "inconclusive" if self.row.against_plain is None else self.row.against_plain.verdict

    @property
    def sign(self) -> str:
        """That of the verdict, empty if there is none."""
        return SIGNS.get(self.row.verdict, "")

    @property
    def gain_sign(self) -> str:
        """That of the verdict on the gain."""
        return SIGNS.get(self.row.gain_verdict, "")


@dataclass(frozen=True)
class WideRow:
    """A row of the pivot, with titles for people."""

    of: PivotRow
    entries: tuple[Entry | Gap, ...]
    variant: bool = False

    @property
    def model(self) -> str:
        """The model's title."""
        return model_title(self.of.model)

    @property
    def label(self) -> str:
        """The method's title with its preset."""
        return method_title(self.of.method, self.of.preset)


@dataclass(frozen=True)
class WideTable:
    """The whole table; ``datasets`` are pairs of a name and its title."""

    datasets: tuple[tuple[str, str], ...]
    rows: tuple[WideRow, ...]

    @property
    def gaps(self) -> bool:
        """Whether a cell is no part of the experiment."""
        return any(entry is Gap.NOT_ASKED for row in self.rows for entry in row.entries)


def widen(section: Section) -> WideTable:
    """The lines of an experiment side by side."""
    lines = {_key(row): each for each in section.lines for row in each.rows}
    table = pivot([row for each in section.lines for row in each.rows])
    best, first = best_of(table), _first(table)
    rows = [
        WideRow(
            each,
            tuple(
                cell if isinstance(cell, Gap) else Entry(lines[_key(cell)], cell, cell in best) for cell in each.cells
            ),
            (each.model, each.method, each.preset) not in first,
        )
        for each in table.rows
    ]
    return WideTable(tuple((name, dataset_title(name)) for name in table.datasets), tuple(rows))


def _first(table: Pivot) -> set[tuple[str, str, str]]:
    """The methods of each model that are shown before one asks for variants."""
    found: dict[str, dict[tuple[str, str, str], None]] = {}
    for row in table.rows:
        found.setdefault(row.model, {})[row.model, row.method, row.preset] = None
    return {key for methods in found.values() for key in list(methods)[:SHOWN]}


def _key(row: Row) -> tuple[str, ...]:
    return row.model, row.dataset, row.method, row.preset


def choices(sections: list[Section]) -> dict[str, list[tuple[str, str]]]:
    """What the filters offer: every dataset, model and family of methods, by name and title."""
    lines = [each.line for section in sections for each in section.lines]
    return {
        "dataset": [(name, dataset_title(name)) for name in dict.fromkeys(line.dataset for line in lines)],
        "model": [(name, model_title(name)) for name in dict.fromkeys(line.model for line in lines)],
        "method": [(name, method_title(name)) for name in dict.fromkeys(line.method.method for line in lines)],
    }
