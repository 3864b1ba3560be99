"""Reading the recorded runs: lines of the study's experiments, and what of them is complete."""

from collections.abc import Iterator
from dataclasses import dataclass

from propreg.statistics import Difference, paired, summarise
from propreg.study.experiment import Line, load_experiment
from propreg.study.render import decimals
from propreg.study.results import Results
from propreg.study.table import pick
from propreg.study.telling import told

MODELS = {"gcn": "GCN", "gat": "GAT", "mlp": "MLP"}


@dataclass(frozen=True)
class Point:
    """One strength of a line: accuracies in per cent, and the paired difference to the plain model."""

    mu: float
    val: float
    plain_val: float
    test: float
    difference: Difference


@dataclass(frozen=True)
class Curve:
    """A line of which every run is recorded, with its plain model."""

    line: Line
    points: tuple[Point, ...]

    @property
    def picked(self) -> Point:
        """The strength with the best validation accuracy, as tables pick it."""
        return self.points[pick([point.val for point in self.points])]

    @property
    def best_on_test(self) -> Point:
        """The strength with the best test accuracy."""
        return self.points[pick([point.test for point in self.points])]

    @property
    def helping(self) -> list[Point]:
        """Where the 95 % interval of the difference lies above 0 and all splits agree."""
        return [point for point in self.points if told(point.difference) == "better"]


def curve(line: Line, results: Results) -> Curve | None:
    """The points of a line; None where a run of it, or of its plain model, is missing."""
    points = []
    for cell in line.cells:
        mine = results.accuracies(cell, line.splits, line.seeds)
        plain = results.accuracies(cell.plain, line.splits, line.seeds)
        if mine is None or plain is None:
            return None
        apart = paired(mine.test, plain.test)
        mean = summarise(mine.test).mean
        points.append(Point(cell.strength, float(mine.val.mean()), float(plain.val.mean()), mean, apart))
    return Curve(line, tuple(points))


def curves(experiment: str, method: str, results: Results) -> Iterator[Curve]:
    """The complete lines of a method in an experiment."""
    for line in load_experiment(experiment).lines:
        if line.method.name == method and line.model in MODELS and (found := curve(line, results)) is not None:
            yield found


def points_of(value: float) -> str:
    """A difference with its sign, to a tenth of a point.

    Example:
        >>> points_of(-17.06), points_of(-0.04)
        ('−17.1', '0.0')
    """
    return decimals(value, 1, sign=True).replace("-", "−")


def table(head: list[str], rows: list[list[str]]) -> str:
    """Markdown of a table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))
