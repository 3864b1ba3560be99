"""The statistics of every table, figure and summary; NumPy only, exact where possible.

Runs are an array [splits, seeds]. The split is the unit that is resampled, since seeds of one split share its nodes;
where there is one split, it is the seed.

The interval is a percentile bootstrap, which is too narrow when units are few: for normal units it covers the true mean
about 84 times in 100 with five of them, 90 with ten, and near 95 only with many. :attr:`Difference.verdict`, the one
rule for better and worse, therefore also requires a small p-value.
"""

import itertools
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

EXACT_UP_TO = 5  # units: 5⁵ = 3,125 resamples are enumerated; with more units this many are drawn:
RESAMPLES = 10_000
FLIPS_UP_TO = 16  # units: 2¹⁶ sign flips are enumerated
SIGNIFICANCE = 1 / 16
"""The largest p-value of a significant difference: the smallest that the paper's five splits can give."""
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

    ``p_value`` is from a two-sided exact sign-flip test over splits: with five splits it cannot go below 1/16. ``won``
    is the share of paired runs with a positive difference.
    """

    mean: float
    low: float
    high: float
    p_value: float
    won: float

    @property
    def verdict(self) -> Verdict:
        """The sign of a significant difference: its interval excludes 0 and p is at most :data:`SIGNIFICANCE`.

        Five splits reach that p-value only where all of them agree, fewer never.

        Example:
            >>> Difference(1.0, 0.5, 1.5, 2 / 32, 0.9).verdict, Difference(1.0, 0.1, 1.5, 4 / 32, 0.9).verdict
            ('better', 'inconclusive')
        """
        if self.p_value > SIGNIFICANCE:
            return "inconclusive"
        return "better" if self.low > 0 else "worse" if self.high < 0 else "inconclusive"


def summarize(runs: Runs) -> Summary:
    """Mean, population std and interval of runs [splits, seeds].

    Example:
        >>> summarize(np.array([[1.0, 3.0], [2.0, 2.0]]))
        Summary(mean=2.0, std=0.7071067811865476, low=2.0, high=2.0, runs=4)
    """
    low, high = _interval(_units(runs))
    return Summary(float(runs.mean()), float(runs.std()), low, high, runs.size)


def paired(first: Runs, second: Runs) -> Difference:
    """``first − second``, run by run.

    Example:
        >>> better = paired(np.array([[2.0], [3.0], [4.0]]), np.array([[1.0], [1.0], [1.0]]))
        >>> better.mean, better.p_value, better.won
        (2.0, 0.25, 1.0)
    """
    if first.shape != second.shape:
        raise ValueError(f"paired runs must have the same shape, got {first.shape} and {second.shape}.")
    apart = first - second
    units = _units(apart)
    low, high = _interval(units)
    return Difference(float(apart.mean()), low, high, _sign_flip(units), float((apart > 0).mean()))


def smallest_p(units: int) -> float:
    """The smallest p-value that so many splits can give.

    Example:
        >>> smallest_p(5) == SIGNIFICANCE, smallest_p(4)
        (True, 0.125)
    """
    return 2.0 ** (1 - units)


def between_seeds(runs: Runs) -> float:
    """The standard deviation between seeds of the same split, pooled over splits.

    Example:
        >>> between_seeds(np.array([[1.0, 3.0], [12.0, 12.0]]))
        1.0
    """
    if runs.shape[1] < 2:
        return float("nan")
    return float(np.sqrt(runs.var(axis=1, ddof=1).mean()))


def _units(runs: Runs) -> Runs:
    """Means of splits, or the runs themselves where there is one split."""
    if runs.ndim != 2 or runs.size == 0:
        raise ValueError(f"runs must be an array [splits, seeds] with at least one run, got shape {runs.shape}.")
    units: Runs = runs[0] if runs.shape[0] == 1 else runs.mean(axis=1)
    return units


def _interval(units: Runs) -> tuple[float, float]:
    return _interval_of(np.ascontiguousarray(units, np.float64).tobytes())


@lru_cache(maxsize=1 << 16)
def _interval_of(raw: bytes) -> tuple[float, float]:
    """Cached by the units' bytes: a page shows the same runs in a table, a curve and a figure."""
    units = np.frombuffer(raw)
    low, high = np.quantile(units[_resamples(len(units))].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


@cache
def _resamples(count: int) -> NDArray[np.int64]:
    """The units of each resample; cached, since a table needs the same ones a thousand times."""
    if count <= EXACT_UP_TO:
        return np.array(list(itertools.product(range(count), repeat=count)))
    raw = np.random.Philox(key=count).random_raw(RESAMPLES * count).reshape(RESAMPLES, count)
    return (raw % np.uint64(count)).astype(np.int64)


def _sign_flip(units: Runs) -> float:
    """The share of sign patterns whose mean is at least as far from 0 as the observed one."""
    count = len(units)
    if count <= FLIPS_UP_TO:
        patterns = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
    else:
        raw = np.random.Philox(key=count + 1).random_raw(RESAMPLES * count).reshape(RESAMPLES, count)
        patterns = (raw & np.uint64(1)).astype(np.int64)
    means = np.abs(((1 - 2 * patterns) * units).mean(axis=1))
    return float((means >= abs(units.mean()) * (1 - 1e-12)).mean())
