"""Which runs experiments have, and which of them are recorded."""

from collections.abc import Iterable, Set
from typing import Protocol

from propreg.study.experiment import Experiment
from propreg.study.run import Cell

Place = tuple[str, int, int]
"""A run: its cell's text, split and seed."""


class HasRuns(Protocol):
    """What knows which runs there are; :class:`propreg.study.results.Results` does."""

    def places(self, cell: Cell) -> Set[tuple[int, int]]: ...


def recorded_runs(experiments: Iterable[Experiment], results: HasRuns) -> tuple[set[Place], int]:
    """The recorded runs of experiments, and how many they should have, each once: experiments share many."""
    wanted: dict[str, tuple[Cell, set[tuple[int, int]]]] = {}
    for line in (line for experiment in experiments for line in experiment.lines):
        runs = {(split, seed) for split in line.splits for seed in line.seeds}
        for cell in line.cells:
            wanted.setdefault(cell.text, (cell, set()))[1].update(runs)
    there = ((text, runs & results.places(cell)) for text, (cell, runs) in wanted.items())
    return {(text, *at) for text, runs in there for at in runs}, sum(len(runs) for _, runs in wanted.values())


def count_runs(experiments: Iterable[Experiment], results: HasRuns) -> tuple[int, int]:
    """How many runs of experiments are recorded, and how many they should have.

    Example:
        >>> from propreg.study.experiment import load_experiment
        >>> from propreg.study.results import Results
        >>> smoke = load_experiment("digits-smoke")
        >>> count_runs([smoke, smoke], Results())
        (0, 200)
    """
    found, runs = recorded_runs(experiments, results)
    return len(found), runs
