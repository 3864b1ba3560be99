"""A table as the paper prints it: a row per model and method, a column per dataset."""

from dataclasses import dataclass

from propreg.report.names import dataset_name, method_name, model_name
from propreg.report.study import Place, Section
from propreg.statistics import Difference
from propreg.study.table import Row

SIGNS = {"reproduced": "=", "higher": "↑", "lower": "↓", "cannot tell": "?"}
PICKS = {"none": "", "validation": "μ picked on validation", "test": "μ best on test", "fixed": "μ fixed"}


@dataclass(frozen=True)
class Entry:
    """What stands in one place of the table."""

    place: Place
    row: Row
    apart: Difference | None

    @property
    def kind(self) -> str:
        """A word for the style sheet: that of the verdict."""
        return "missing" if self.row.mean is None else self.row.verdict.replace(" ", "-") or "unjudged"

    @property
    def change(self) -> str:
        """Whether it is better or worse than the plain model, a word for the style sheet."""
        said = self.place.told(self.apart)
        return "unsure" if said == "cannot be told" else said

    @property
    def sign(self) -> str:
        """That of the verdict, empty where there is none."""
        return SIGNS.get(self.row.verdict, "")


@dataclass(frozen=True)
class Blank:
    """A place of the table that has no entry, and why."""

    why: str
    asked: bool
    place: None = None


NOT_ASKED = Blank("not part of the experiment", asked=False)
NOT_THERE = Blank("not all runs are recorded", asked=True)


@dataclass(frozen=True)
class WideRow:
    """A model with a method, at a way of picking the strength."""

    model: str
    method: str
    selection: str
    label: str
    entries: tuple[Entry | Blank, ...]

    @property
    def model_label(self) -> str:
        """The model for people."""
        return model_name(self.model)

    @property
    def picked(self) -> str:
        """How the strength was picked, in words."""
        return PICKS[self.selection]


@dataclass(frozen=True)
class WideTable:
    """The whole table; ``datasets`` are pairs of a name and the same for people."""

    datasets: tuple[tuple[str, str], ...]
    rows: tuple[WideRow, ...]

    @property
    def gaps(self) -> bool:
        """Whether a place is no part of the experiment."""
        return any(entry is NOT_ASKED for row in self.rows for entry in row.entries)


def widen(section: Section) -> WideTable:
    """The lines of an experiment side by side; models keep the order in which they come."""
    datasets = list(dict.fromkeys(place.line.dataset for place in section.places))
    found: dict[tuple[str, str, str, str], dict[str, Entry]] = {}
    for place in section.places:
        line = place.line
        for row, apart in zip(place.rows, place.apart, strict=True):
            key = (line.model, line.method.method, place.label, row.selection)
            found.setdefault(key, {})[line.dataset] = Entry(place, row, apart)
    # Not simply in the order they are met: where the first dataset lacks runs, its best-on-test row is met late.
    models = list(dict.fromkeys(key[0] for key in found))
    labels = list(dict.fromkeys((key[0], key[2]) for key in found))
    asked = {(place.line.model, place.label, place.line.dataset) for place in section.places}
    rows = [
        WideRow(
            model,
            method,
            selection,
            label,
            tuple(entries.get(name, NOT_THERE if (model, label, name) in asked else NOT_ASKED) for name in datasets),
        )
        for (model, method, label, selection), entries in found.items()
    ]
    rows.sort(key=lambda r: (models.index(r.model), labels.index((r.model, r.label)), list(PICKS).index(r.selection)))
    return WideTable(tuple((name, dataset_name(name)) for name in datasets), tuple(rows))


def choices(sections: list[Section]) -> dict[str, list[tuple[str, str]]]:
    """What the filters offer: every dataset, model and family of methods, by name and for people."""
    lines = [place.line for section in sections for place in section.places]
    return {
        "dataset": [(name, dataset_name(name)) for name in dict.fromkeys(line.dataset for line in lines)],
        "model": [(name, model_name(name)) for name in dict.fromkeys(line.model for line in lines)],
        "method": [(name, method_name(name)) for name in dict.fromkeys(line.method.method for line in lines)],
    }
