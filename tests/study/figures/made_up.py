"""Results with known numbers: what a figure should show follows from the rule that made them."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from propreg.store.results import Results
from propreg.store.run import Cell, Run
from propreg.study.figures.parts import Figure
from propreg.study.spec.experiment import load_experiment
from propreg.study.spec.part import Line

NODES = 10_000


@dataclass(frozen=True)
class Case:
    """A run and the line it belongs to."""

    line: Line
    run: Run

    @property
    def cell(self) -> Cell:
        """What is trained."""
        return self.run.cell

    @property
    def mu(self) -> float:
        """The strength."""
        return self.run.cell.strength

    @property
    def method(self) -> str:
        """Its full name."""
        return self.line.method.name


Rule = Callable[[Case], float]
"""The accuracy of a run in per cent."""


def recorded(
    name: str,
    test: Rule,
    *,
    val: Rule | None = None,
    measures: Callable[[Case], dict[str, float]] | None = None,
    only: Callable[[Case], bool] | None = None,
) -> Results:
    """The runs of an experiment that ``only`` lets through; validation accuracy is that on test where none is given."""
    results = Results()
    for line in load_experiment(name).lines:
        for run in line.runs():
            case = Case(line, run)
            if only is not None and not only(case):
                continue
            counts = (round(NODES * (val or test)(case) / 100), NODES, round(NODES * test(case) / 100), NODES)
            also = None if measures is None or not run.cell.measure else json.dumps(measures(case))
            results.take(run.cell.text, [(run.split, run.seed, *counts, 9, 10, None, also, "b")])
    return results


def listed_rows(figure: Figure) -> dict[str, tuple[str, ...]]:
    """The rows of a figure's listings by their name; a name in two of them has the values of both."""
    found: dict[str, tuple[str, ...]] = {}
    for listing in figure.listings:
        for name, *values in listing.rows:
            found[name] = (*found.get(name, ()), *values)
    return found
