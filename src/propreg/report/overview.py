"""The first screen: whether P-reg helps, and whether the paper's numbers are reproduced, in numbers."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from propreg.names import dataset_title, model_title
from propreg.report.study import Section, Study, StudyLine
from propreg.statistics import Difference, Verdict, holm
from propreg.study.spec.paper import paper_gain, printed_model
from propreg.study.tables.rows import Row

VERDICTS = ("reproduced", "higher", "lower", "inconclusive", "not recorded")
FORMS = {
    "reference": "in the official-code form, from which the paper’s numbers come",
    "paper": "in the paper form, the library’s default",
}
_STEPS = (0.5, 1.5, 3.0)  # points from which the tint of a difference is stronger


@dataclass(frozen=True)
class Square:
    """A model on a dataset: what P-reg adds to the plain model, ours and the paper's."""

    line: StudyLine
    row: Row
    paper: float | None

    @property
    def apart(self) -> Difference | None:
        """The paired difference to the plain model."""
        return self.row.against_plain

    @property
    def verdict(self) -> Verdict:
        """Better, worse or inconclusive."""
        return "inconclusive" if self.apart is None else self.apart.verdict

    @property
    def tone(self) -> str:
        """A class for its tint: how large, and whether significant."""
        if self.apart is None:
            return "unknown"
        if self.verdict == "inconclusive":
            return "even"
        strength = 1 + sum(abs(self.apart.mean) >= step for step in _STEPS)
        return f"{'gain' if self.verdict == 'better' else 'loss'}-{strength}"


@dataclass(frozen=True)
class GainMatrix:
    """What P-reg adds in one preset: models from top to bottom, datasets from left to right."""

    preset: str
    datasets: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Square | None, ...]], ...]

    @property
    def squares(self) -> list[Square]:
        """The pairs of model and dataset that are in the experiment."""
        return [square for _, row in self.rows for square in row if square is not None]

    @property
    def form(self) -> str:
        """Which P-reg this is."""
        return FORMS[self.preset]

    @property
    def gains(self) -> dict[str, int]:
        """How many squares have which verdict on the gain against the paper's."""
        found = Counter(square.row.gain_verdict for square in self.squares)
        return {name: found[name] for name in VERDICTS[:-1]}

    @property
    def counts(self) -> dict[str, int]:
        """How many squares are better, worse and inconclusive, and how many have no difference."""
        found = Counter(square.verdict if square.apart else "not recorded" for square in self.squares)
        return {name: found[name] for name in ("better", "worse", "inconclusive", "not recorded")}

    @property
    def together(self) -> int:
        """How many are better by p-values that hold for all squares at once."""
        return sum(each.verdict == "better" for each in holm([s.apart for s in self.squares if s.apart is not None]))

    @property
    def known(self) -> int:
        """How many squares have a difference."""
        return len(self.squares) - self.counts["not recorded"]


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
        """The numbers with a verdict."""
        return self.total - dict(self.counts)["not recorded"]


def matrices(study: Study) -> list[GainMatrix]:
    """One per preset of P-reg in Table 1, the official code's first, since the paper's numbers come from it."""
    section = study.section("table1")
    if section is None:
        return []
    found = [_matrix(section, preset) for preset in FORMS]
    return [matrix for matrix in found if matrix.squares]


def tallies(study: Study) -> list[Tally]:
    """One per table that has numbers of the paper; a number that two tables print counts in one of them."""
    counted: set[tuple[object, ...]] = set()
    main_first = sorted(study.sections, key=lambda section: section.name != "table1")
    found = {section.name: _tally(section, counted) for section in main_first}
    return [found[section.name] for section in study.sections if found[section.name].total]


def add_up(all_of_them: Iterable[Tally]) -> dict[str, int]:
    """The counts of several tables together."""
    total: Counter[str] = Counter(dict.fromkeys(VERDICTS, 0))
    for tally in all_of_them:
        total.update(dict(tally.counts))
    return dict(total)


def _matrix(section: Section, preset: str) -> GainMatrix:
    mine = [each for each in section.lines if each.line.method.method == "preg" and each.line.preset == preset]
    datasets = list(dict.fromkeys(each.line.dataset for each in mine))
    models = list(dict.fromkeys(each.line.model for each in mine))
    at = {(each.line.model, each.line.dataset): _square(each, section.experiment.paper) for each in mine}
    rows = tuple((model_title(model), tuple(at.get((model, name)) for name in datasets)) for model in models)
    return GainMatrix(preset, tuple(map(dataset_title, datasets)), rows)


def _square(mine: StudyLine, paper: str) -> Square:
    line = mine.line
    gain = paper_gain(paper, line.model, line.method.name, line.dataset)
    return Square(mine, mine.rows[0], gain)


def _printed(mine: StudyLine) -> tuple[object, ...]:
    """What makes a printed number the same in two tables: the runs that it is compared with, and its value."""
    line, row = mine.line, mine.rows[0]
    return tuple(cell.text for cell in line.cells), line.splits, line.seeds, row.paper_mean, row.paper_std


def _tally(section: Section, counted: set[tuple[object, ...]]) -> Tally:
    """Of several lines for one printed number the first that is complete counts: it follows the paper most closely.

    Numbers in ``counted`` are left out, and this table's are added to it.
    """
    found: dict[tuple[str, str, str], str] = {}
    printed = [each for each in section.lines if each.rows[0].paper_mean is not None]
    mine = [each for each in printed if _printed(each) not in counted]
    counted.update(map(_printed, mine))
    for each in mine:
        row, line = each.rows[0], each.line
        # A number belongs to a family, except where one table prints several of a family.
        method = line.method.name if section.name == "table-phi" else line.method.method
        key = (printed_model(section.experiment.paper, line.model), method, line.dataset)
        if found.setdefault(key, "not recorded") == "not recorded" and row.mean is not None:
            found[key] = row.verdict
    counts = Counter(found.values())
    title = section.experiment.title.split(":")[0]
    return Tally(section.name, title, tuple((name, counts[name]) for name in VERDICTS), len(printed) - len(mine))
