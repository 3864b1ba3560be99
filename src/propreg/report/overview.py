"""The first screen: does P-reg help, and does the paper hold?"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from propreg.report.names import dataset_name, model_name
from propreg.report.rule import rule_words
from propreg.report.study import Place, Section, Study
from propreg.statistics import Difference
from propreg.study.paper import paper_number
from propreg.study.presets import named_model
from propreg.study.table import Row

VERDICTS = ("reproduced", "higher", "lower", "cannot tell", "not recorded")
FORMS = {
    "reference": "in the official code’s form (preset reference), from which the paper’s numbers come",
    "paper": "with the paper’s formula (preset paper), the library’s default",
}
Printed = tuple[object, ...]
_STEPS = (0.5, 1.5, 3.0)  # points: where the tint of a difference becomes stronger


@dataclass(frozen=True)
class Square:
    """A model on a dataset: what P-reg adds to the plain model, ours and the paper's."""

    place: Place
    row: Row
    apart: Difference | None
    paper: float | None

    @property
    def tone(self) -> str:
        """A class for its tint: how much, and whether its sign can be told."""
        if self.apart is None:
            return "unknown"
        if self.told == "cannot be told":
            return "even"
        strength = 1 + sum(abs(self.apart.mean) >= step for step in _STEPS)
        return f"{'gain' if self.told == 'better' else 'loss'}-{strength}"

    @property
    def told(self) -> str:
        """Better, worse, or that it cannot be told."""
        return self.place.told(self.apart)


@dataclass(frozen=True)
class Matrix:
    """P-reg in one preset: models from top to bottom, datasets from left to right."""

    preset: str
    datasets: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Square | None, ...]], ...]

    @property
    def squares(self) -> list[Square]:
        """Those that are in the experiment."""
        return [square for _, row in self.rows for square in row if square is not None]

    @property
    def known(self) -> list[Difference]:
        """The differences that are recorded."""
        return [square.apart for square in self.squares if square.apart is not None]

    @property
    def rule(self) -> str:
        """When better or worse is said here."""
        return rule_words(self.squares[0].place.line)

    @property
    def better(self) -> int:
        """Where P-reg is more accurate, as far as that can be told."""
        return sum(square.told == "better" for square in self.squares)

    @property
    def worse(self) -> int:
        """Where P-reg is less accurate, as far as that can be told."""
        return sum(square.told == "worse" for square in self.squares)


@dataclass(frozen=True)
class Tally:
    """How many of a table's printed numbers got which verdict, each number counted once.

    ``elsewhere`` are numbers that another table prints as well, of the same runs: they count there.
    """

    section: str
    title: str
    counts: tuple[tuple[str, int], ...]
    elsewhere: int = 0

    @property
    def total(self) -> int:
        """All numbers that the paper prints there and that the study has a line for."""
        return sum(count for _, count in self.counts)

    @property
    def recorded(self) -> int:
        """Those with a verdict."""
        return self.total - dict(self.counts)["not recorded"]


def matrices(study: Study) -> list[Matrix]:
    """One per preset of P-reg in Table 1, the official code's first, since the paper's numbers come from it."""
    section = study.section("table1")
    if section is None:
        return []
    found = [_matrix(section, preset) for preset in FORMS]
    return [matrix for matrix in found if matrix.squares]


def tallies(study: Study) -> list[Tally]:
    """One per table that has numbers of the paper; a number that two tables print counts in one of them."""
    counted: set[Printed] = set()
    found = {section.name: _tally(section, counted) for section in sorted(study.sections, key=_main_first)}
    return [found[section.name] for section in study.sections if found[section.name].total]


def add_up(all_of_them: Iterable[Tally]) -> dict[str, int]:
    """The counts of several tables together."""
    total: Counter[str] = Counter(dict.fromkeys(VERDICTS, 0))
    for tally in all_of_them:
        total.update(dict(tally.counts))
    return dict(total)


def help_words(matrix: Matrix) -> str:
    """Which P-reg this is, and what became of the pairs that it does not make more accurate."""
    known, unsure = len(matrix.known), len(matrix.known) - matrix.better - matrix.worse
    words = [f"{FORMS[matrix.preset]}; {matrix.worse or 'none'} less accurate."]
    if unsure:
        words.append(f"For {unsure} it cannot be told.")
    if len(matrix.squares) > known:
        words.append(f"{len(matrix.squares) - known} more of Table 1 are not recorded yet.")
    return " ".join(words)


def hold_words(held: dict[str, int]) -> str:
    """Whether the paper holds, as far as the record goes."""
    if held["not recorded"] == sum(held.values()):
        return f"None of the paper’s {held['not recorded']} numbers has been rerun in this record."
    words = [
        "printed numbers come out within one point.",
        f"{held['higher']} come out higher, {held['lower']} lower; {held['cannot tell']} scatter too much to tell.",
    ]
    if held["not recorded"]:
        words.append(f"{held['not recorded']} are not recorded yet.")
    return " ".join(words)


def _matrix(section: Section, preset: str) -> Matrix:
    mine = [p for p in section.places if p.line.method.method == "preg" and p.line.preset == preset]
    datasets = list(dict.fromkeys(place.line.dataset for place in mine))
    models = list(dict.fromkeys(place.line.model for place in mine))
    at = {(place.line.model, place.line.dataset): _square(place, section.experiment.paper) for place in mine}
    rows = tuple((model_name(model), tuple(at.get((model, name)) for name in datasets)) for model in models)
    return Matrix(preset, tuple(map(dataset_name, datasets)), rows)


def _square(place: Place, paper: str) -> Square:
    line = place.line
    with_preg = paper_number(paper, line.model, line.method.name, line.method.method, line.dataset)
    plain = paper_number(paper, line.model, "plain", "plain", line.dataset)
    apart = None if with_preg is None or plain is None else with_preg[0] - plain[0]
    return Square(place, place.rows[0], place.apart[0], apart)


def _main_first(section: Section) -> bool:
    return section.name != "table1"


def _printed(place: Place) -> Printed:
    """What makes a printed number the same in two tables: the runs that it is set against, and its value."""
    line, row = place.line, place.rows[0]
    return tuple(cell.text for cell in line.cells), line.splits, line.seeds, row.paper_mean, row.paper_std


def _tally(section: Section, counted: set[Printed]) -> Tally:
    """Of several lines for one printed number the first that is complete counts: it follows the paper most closely.

    Adds this table's numbers to those that are counted already, which it leaves out.
    """
    found: dict[tuple[str, str, str], str] = {}
    printed = [place for place in section.places if place.rows[0].paper_mean is not None]
    mine = [place for place in printed if _printed(place) not in counted]
    counted.update(map(_printed, mine))
    for place in mine:
        row, line = place.rows[0], place.line
        # A number belongs to a family, except where one table prints several of a family.
        method = line.method.name if section.name == "table-phi" else line.method.method
        key = (named_model(line.model)[0].name, method, line.dataset)
        if found.setdefault(key, "not recorded") == "not recorded" and row.mean is not None:
            found[key] = row.verdict
    counts = Counter(found.values())
    title = section.experiment.title.split(":")[0]
    return Tally(
        section.name, title, tuple((name, counts[name]) for name in VERDICTS), elsewhere=len(printed) - len(mine)
    )
