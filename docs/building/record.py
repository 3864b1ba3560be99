"""The recorded runs as curves over μ: complete lines of the study's experiments."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from propreg import names
from propreg.statistics import Difference, paired, summarize
from propreg.store.results import Results
from propreg.study.spec.experiment import load_experiment
from propreg.study.spec.paper import published_strength
from propreg.study.spec.part import Line
from propreg.study.tables.rows import pick

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"
MODELS = {"gcn": "GCN", "gat": "GAT", "mlp": "MLP"}
PAPER_FORM, OFFICIAL_FORM = "preg-paper", "preg-reference"
FORMS = {OFFICIAL_FORM: names.FORMS["reference"], PAPER_FORM: names.FORMS["paper"]}


@dataclass(frozen=True)
class Point:
    """One strength of a line: accuracies in per cent, and the paired difference to the plain model."""

    mu: float
    val: float
    plain_val: float
    test: float
    plain: float
    difference: Difference

    @property
    def gain(self) -> float:
        """The mean difference in points."""
        return self.difference.mean


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
        """The strengths with a significant gain."""
        return [point for point in self.points if point.difference.verdict == "better"]


def curve(line: Line, results: Results) -> Curve | None:
    """The points of a line; None if a run of it, or of its plain model, is missing."""
    points = [_point(line, cell.strength, results) for cell in line.cells]
    found = tuple(point for point in points if point is not None)
    return Curve(line, found) if len(found) == len(points) else None


def _point(line: Line, mu: float, results: Results) -> Point | None:
    cell = replace(line.cells[0], strength=mu)
    mine = results.accuracies(cell, line.splits, line.seeds)
    plain = results.accuracies(cell.plain, line.splits, line.seeds)
    if mine is None or plain is None:
        return None
    val = float(mine.val.mean()), float(plain.val.mean())
    test = summarize(mine.test).mean, summarize(plain.test).mean
    return Point(mu, *val, *test, paired(mine.test, plain.test))


def published(found: Curve, results: Results) -> Point | None:
    """The strength that the official code was published with, which may lie off the grid."""
    mu = published_strength(found.line.model, found.line.dataset)
    return None if mu is None else _point(found.line, mu, results)


@cache
def curves(experiment: str, method: str, results: Results) -> tuple[Curve, ...]:
    """The complete lines of a method in an experiment."""
    lines = [line for line in load_experiment(experiment).lines if line.method.name == method and line.model in MODELS]
    return tuple(found for line in lines if (found := curve(line, results)) is not None)


def training_curves(results: Results, method: str) -> dict[int, Curve]:
    """The complete GCN curves of fig-training-nodes, by number of training nodes."""
    found = [c for c in curves("fig-training-nodes", method, results) if c.line.model == "gcn"]
    return {size: c for c in found if (size := c.line.cells[0].train_nodes) is not None}
