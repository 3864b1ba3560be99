"""Which strength is chosen, and which runs are compared, also if not all are finished."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from propreg.engine.spec import Result
from propreg.statistics import Runs


@dataclass(frozen=True)
class Scores:
    """Accuracies [strengths, splits, seeds]; NaN where a run failed or is not finished."""

    val: Runs
    test: Runs
    failed: NDArray[np.bool_]

    @classmethod
    def of(cls, results: list[Result | None], shape: tuple[int, int, int]) -> "Scores":
        """From results in the arrays' order."""
        val, test, failed = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, np.bool_)
        for place, result in enumerate(results):
            if result is None:
                continue
            failed.flat[place] = result.failed
            if not result.failed:
                val.flat[place], test.flat[place] = result.val, result.test
        return cls(val, test, failed)


class NothingToChooseError(RuntimeError):
    """No run of any strength has a validation accuracy."""


def choose(scores: Scores) -> int:
    """The index of the strength with the highest mean validation accuracy; of equal ones the smaller.

    A strength with a failed run is not chosen, unless every strength has one. Strengths are compared on the splits and
    seeds that all of them have. If there are none, those strengths are compared that share one split and seed with most
    others, with the plain model (the first) among them if it has a run.

    Raises:
        NothingToChooseError: If no run has finished, or all have failed.

    Example:
        >>> val = np.array([[[0.5], [0.6]], [[0.7], [np.nan]]])  # the second strength lacks its second split
        >>> choose(Scores(val, val, np.zeros(val.shape, bool)))
        1
    """
    val, failed = (each.reshape(len(scores.val), -1) for each in (scores.val, scores.failed))
    there = ~np.isnan(val)
    if not there.any():
        raise NothingToChooseError(
            "every run's loss became NaN or infinite: lower lr, or scale the features to about 1."
            if failed.any()
            else "no finished run has a validation score, so no strength can be chosen: let the fit run for longer, or "
            "give a metric that is a number on the validation nodes."
        )
    sound = there.any(axis=1) & ~failed.any(axis=1)
    if sound.any():
        there[~sound] = False
    # The split and seed that most strengths have; one that the plain model has goes before all others.
    at = int(np.argmax(there.sum(axis=0) + len(val) * there[0]))
    compared = there[:, at]
    shared = there[compared].all(axis=0)
    means = np.full(len(val), -np.inf)
    means[compared] = val[compared][:, shared].mean(axis=1)
    return int(np.argmax(np.round(means, 12)))


def matched(*runs: Runs) -> tuple[Runs, ...]:
    """The same arrays [splits, seeds], cut to runs that all of them have: whole splits, if there are any.

    Else whole seeds; else one run of each split that has one: the split is the unit of the statistics, so it must not
    count by how many of its seeds happened to finish.

    Example:
        >>> [a.tolist() for a in matched(np.array([[1.0], [2.0]]), np.array([[3.0], [np.nan]]))]
        [[[1.0]], [[3.0]]]
    """
    there = ~np.any([np.isnan(r) for r in runs], axis=0)
    splits, seeds = there.all(axis=1), there.all(axis=0)
    if splits.any():
        return tuple(r[splits] for r in runs)
    if seeds.any():
        return tuple(r[:, seeds] for r in runs)
    some = there.any(axis=1)
    first = there.argmax(axis=1)
    return tuple(r[some, first[some]][:, None] for r in runs)
