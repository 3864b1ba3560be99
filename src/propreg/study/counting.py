"""How many runs experiments have, and how many of them are recorded."""

from collections.abc import Iterable, Set
from typing import Protocol

from propreg.study.experiment import Experiment
from propreg.study.run import Cell


class HasRuns(Protocol):
    """What knows which runs there are; :class:`propreg.study.results.Results` does."""

    def places(self, cell: Cell) -> Set[tuple[int, int]]: ...


def count_runs(experiments: Iterable[Experiment], results: HasRuns) -> tuple[int, int]:
    """The recorded runs of experiments and all that they should have, each once: experiments share many.

    Example:
        >>> from propreg.study.experiment import load_experiment
        >>> from propreg.study.results import Results
        >>> smoke = load_experiment("digits-smoke")
        >>> count_runs([smoke, smoke], Results())
        (0, 200)
    """
    found: dict[str, tuple[Cell, set[tuple[int, int]]]] = {}
    for line in (line for experiment in experiments for line in experiment.lines):
        runs = {(split, seed) for split in line.splits for seed in line.seeds}
        for cell in line.cells:
            found.setdefault(cell.text, (cell, set()))[1].update(runs)
    recorded = sum(len(runs & results.places(cell)) for cell, runs in found.values())
    return recorded, sum(len(runs) for _, runs in found.values())
