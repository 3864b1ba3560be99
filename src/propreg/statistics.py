"""The statistics of every table, figure and summary, with NumPy alone.

Runs are an array [splits, seeds]. The units are the means of splits, since seeds of one split share its nodes; where
there is one split, they are its seeds. Intervals and p-values are Student's t on the units, so that an interval
excludes 0 where p < 0.05. Of five normal units or more it has the 95 % that it names; where units are as skewed as an
exponential, about 90 % (``tests/study/test_simulated.py``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

SIGNIFICANCE = 0.05
"""A difference is significant if its p-value is smaller."""
Runs = NDArray[np.float64]
Verdict = Literal["better", "worse", "inconclusive"]


@dataclass(frozen=True)
class Summary:
    """Mean and population standard deviation over runs, and a 95 % interval of the mean."""

    mean: float
    std: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True)
class Difference:
    """A paired difference on the same splits and seeds, with its 95 % interval.

    ``p_value`` is of a two-sided paired t test on the units. ``won`` is the share of paired runs with a positive
    difference.
    """

    mean: float
    low: float
    high: float
    p_value: float
    won: float

    @property
    def verdict(self) -> Verdict:
        """The sign of a significant difference: p is below :data:`SIGNIFICANCE`, so the interval excludes 0.

        Example:
            >>> Difference(1.0, 0.5, 1.5, 0.01, 0.9).verdict, Difference(1.0, -0.5, 2.5, 0.1, 0.9).verdict
            ('better', 'inconclusive')
        """
        if not self.p_value < SIGNIFICANCE:
            return "inconclusive"
        return "better" if self.mean > 0 else "worse"


def summarize(runs: Runs) -> Summary:
    """Mean, population std and interval of runs [splits, seeds].

    Example:
        >>> summarize(np.array([[1.0, 3.0], [2.0, 2.0]]))
        Summary(mean=2.0, std=0.7071067811865476, low=2.0, high=2.0, runs=4)
    """
    units, mean = _units(runs), float(runs.mean())
    half = t_quantile(len(units) - 1) * _error(units)
    return Summary(mean, float(runs.std()), mean - half, mean + half, runs.size)


def paired(first: Runs, second: Runs) -> Difference:
    """``first − second``, run by run.

    Where all n units are the same, as with small test sets two may be, there is no spread to compute from: p is then
    2 / 3ⁿ, the most that chance can give such units if their signs are even and 0 is the likeliest value, and the
    interval is the one that a t test with this p has.

    Example:
        >>> better = paired(np.array([[2.0], [3.0], [4.0]]), np.array([[1.0], [1.0], [1.0]]))
        >>> better.mean, round(better.p_value, 4), better.won
        (2.0, 0.0742, 1.0)
    """
    if first.shape != second.shape:
        raise ValueError(f"paired runs must have the same shape, got {first.shape} and {second.shape}.")
    apart = first - second
    if np.abs(_units(apart)).max() <= 1e-12 * max(np.abs(first).max(), np.abs(second).max()):
        apart = np.zeros_like(apart)  # gains and losses of seeds cancel but for rounding
    found, units, won = summarize(apart), _units(apart), float((first > second).mean())
    degrees, error = len(units) - 1, _error(units)
    if error:
        return Difference(found.mean, found.low, found.high, t_tails(found.mean / error, degrees), won)
    if not found.mean or not degrees:
        return Difference(found.mean, found.low, found.high, 1.0, won)
    p_value = 2 / 3 ** len(units)
    half = abs(found.mean) * t_quantile(degrees) / t_quantile(degrees, p_value)
    return Difference(found.mean, found.mean - half, found.mean + half, p_value, won)


def holm(found: Sequence[Difference]) -> list[Difference]:
    """The same with p-values that hold for all of them together: Holm's step-down correction.

    Example:
        >>> [each.p_value for each in holm([Difference(1.0, 0.0, 2.0, p, 1.0) for p in (0.25, 0.125, 0.0)])]
        [0.25, 0.25, 0.0]
    """
    ordered = sorted(range(len(found)), key=lambda i: found[i].p_value)
    values = [min(1.0, (len(found) - rank) * found[i].p_value) for rank, i in enumerate(ordered)]
    largest = dict(zip(ordered, np.maximum.accumulate(values).tolist(), strict=True))
    return [replace(each, p_value=largest[i]) for i, each in enumerate(found)]


def between_seeds(runs: Runs) -> float:
    """The standard deviation between seeds of the same split, pooled over splits.

    Example:
        >>> between_seeds(np.array([[1.0, 3.0], [12.0, 12.0]]))
        1.0
    """
    if runs.shape[1] < 2:
        return float("nan")
    return float(np.sqrt(runs.var(axis=1, ddof=1).mean()))


@cache
def t_quantile(degrees: int, tails: float = SIGNIFICANCE) -> float:
    """The half width of a 95 % interval in standard errors, by bisection of :func:`t_tails`; 0 of no degrees.

    Example:
        >>> [round(t_quantile(degrees), 3) for degrees in (1, 4, 9, 100)]
        [12.706, 2.776, 2.262, 1.984]
    """
    low, high = 0.0, 100.0 * (degrees > 0)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if t_tails(middle, max(degrees, 1)) < tails else (middle, high)
    return high


def t_tails(t: float, degrees: int) -> float:
    """P(|T| ≥ \\|t\\|) of Student's t, ∫ sinⁿ⁻¹ from 0 to arctan(√n / \\|t\\|) over that to π/2, by Gauss–Legendre.

    Example:
        >>> round(t_tails(1.0, 1), 12), round(t_tails(2.776, 4), 4)
        (0.5, 0.05)
    """
    places, weights = _gauss()
    ends = np.array([np.arctan2(np.sqrt(degrees), abs(t)), np.pi / 2])
    tail, whole = ends * (weights @ np.sin(np.outer((places + 1) / 2, ends)) ** (degrees - 1))
    return float(tail / whole)


@cache
def _gauss() -> tuple[Runs, Runs]:
    places, weights = np.polynomial.legendre.leggauss(200)
    return places, weights


def _units(runs: Runs) -> Runs:
    """Means of splits, or the runs themselves where there is one split."""
    if runs.ndim != 2 or runs.size == 0:
        raise ValueError(f"runs must be an array [splits, seeds] with at least one run, got shape {runs.shape}.")
    units: Runs = runs[0] if runs.shape[0] == 1 else runs.mean(axis=1)
    return units


def _error(units: Runs) -> float:
    """The standard error of their mean; 0 of a single unit, and where they differ by rounding alone."""
    error = float(units.std(ddof=1)) / len(units) ** 0.5 if len(units) > 1 else 0.0
    return error if error > 1e-9 * float(np.abs(units).max()) else 0.0
