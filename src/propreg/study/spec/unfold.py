"""What records add to an experiment: later rungs of a search, and strengths beyond a grid whose largest is picked.

A part with ``beyond = [1.2, 2.0]`` has these strengths trained for the lines whose largest strength is picked on
validation, by the rule of their protocol or by their model's own. They are in batches of their own, so that those of
the grid stay what they were, and a table counts them once all their runs are recorded.
"""

from dataclasses import replace

from propreg.store.results import Results
from propreg.study.spec.experiment import Experiment
from propreg.study.spec.part import Line
from propreg.study.spec.search import best_of, rungs_of


def unfolded(experiment: Experiment, results: Results) -> Experiment:
    """The experiment with all lines and strengths that the records allow; the same where they add nothing."""
    if not any(line.unfolds for line in experiment.lines):
        return experiment
    lines = (rung for line in experiment.lines for rung in rungs_of(grown(line, results), results))
    return replace(experiment, lines=tuple(lines))


def grown(line: Line, results: Results) -> Line:
    """The line with the strengths beyond its grid, if its largest one is picked on validation."""
    if not line.beyond or line.cells[-1].strength in line.beyond:
        return line
    last = line.cells[-1:]
    if not any(best_of(line, results, line.seeds, 1, rule) == last for rule in {"", line.own_rule}):
        return line
    return replace(line, cells=(*line.cells, *(replace(last[0], strength=mu) for mu in line.beyond)))
