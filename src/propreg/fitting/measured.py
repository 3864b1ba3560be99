"""What the reported weights of each run predict: its scores, its measures, and what strengths are picked by."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from propreg.data.graph import Split
from propreg.engine.spec import Measures, Result
from propreg.engine.training.measures import measure
from propreg.fitting.picking import Select, class_frequencies, picking_score
from propreg.statistics import Runs


@dataclass(frozen=True)
class Measured:
    """One run.

    Args:
        val, test: Its score on the two parts.
        measures: Of classes, its measures; None if a logit is not finite.
        predicted: Of classes, how many of the other nodes, outside training and validation, it predicts to be of each;
            of all nodes if there are no others.
    """

    val: float
    test: float
    measures: Measures | None = None
    predicted: tuple[int, ...] = ()


def measures_of(z: Tensor, y: Tensor, split: Split) -> tuple[Measures | None, tuple[int, ...]]:
    """The measures of logits [N, C] for classes [N], and the predictions of the other nodes, see :class:`Measured`."""
    val, test = (measure(z[nodes], y[nodes]) for nodes in map(_nodes, (split.val, split.test)))
    others = ~(split.train | split.val)
    guesses = z[_nodes(others if others.any() else ~others)].argmax(1)
    found = torch.bincount(guesses, minlength=z.shape[1]).tolist()
    return None if val is None or test is None else Measures(val, test), tuple(found)


def with_measures(run: Result, measures: Measures | None) -> Result:
    """The run with the measures of its reported epoch."""
    if not run.reports:
        return run
    own, *others = run.reports
    return replace(run, reports=(replace(own, measures=measures), *others))


def picked_by(
    select: Select, runs: Sequence[Result | None], shape: tuple[int, int, int], measured: Callable[[Result], Measured]
) -> Runs:
    """The scores [strengths, splits, seeds] by which a strength is picked, higher is better; NaN where there is none.

    Args:
        select: By what, see :mod:`propreg.fitting.picking`.
        runs: In the array's order, None where one is not finished.
        shape: Of the array.
        measured: Measures a run.
    """
    found = np.full(shape, np.nan)
    grid = np.array([*runs, None], object)[:-1].reshape(shape)  # the None keeps NumPy from looking into a run
    for split in range(shape[1]):
        plain = [measured(run) for run in grid[0, split] if run is not None and not run.failed]
        known = [(each.measures.val, each.predicted) for each in plain if each.measures is not None]
        # Without a plain run there are no frequencies, and validation's own count: accuracy.
        weights: NDArray[np.float64] = class_frequencies(*zip(*known, strict=True)) if known else np.zeros(1)
        for place in np.ndindex(shape[0], shape[2]):
            run = grid[place[0], split, place[1]]
            if run is not None and not run.failed and (of := measured(run).measures) is not None:
                found[place[0], split, place[1]] = picking_score(select, of.val, weights)
    return found


def _nodes(mask: NDArray[np.bool_]) -> Tensor:
    return torch.from_numpy(np.flatnonzero(mask))
