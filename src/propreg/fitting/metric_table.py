"""Every metric of a fit on classes: plain and regularized, with their difference, whatever strengths were picked by."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from propreg.engine.regularizers import REGULARIZERS
from propreg.fitting.verdict import Pair, pair_at, picks
from propreg.metrics import ABOUT, METRICS
from propreg.statistics import Runs

if TYPE_CHECKING:
    from propreg.fitting.result import FitResult


def metric_runs(result: "FitResult", name: str) -> Runs:
    """A metric of every run [strengths, splits, seeds] on the part that it is judged on; NaN where there is none."""
    found = np.full(result.test.shape, np.nan)
    splits = list(result.splits)
    for run in result.runs:
        if run.reports and (measures := run.reports[0].measures) is not None:
            at = result.mus.index(run.replica.strength), splits.index(run.replica.split), run.replica.seed
            found[at] = METRICS[name].compute(measures.test)
    return found


def metric_pairs(result: "FitResult") -> dict[str, Pair]:
    """By metric, the plain model and the compared strength on the runs that both have, as in the verdict."""
    mu, by_split = picks(result)
    found = {}
    for name, metric in METRICS.items():
        runs, sign = metric_runs(result, name), 1 if metric.direction == "higher" else -1
        if mu is not None and (both := pair_at(runs, mu, by_split, sign)) is not None:
            found[name] = both
    return found


def metric_lines(pairs: Mapping[str, Pair], method: str, part: str, nested: bool) -> Iterator[str]:
    """The table as text."""
    mu = next(iter(pairs.values())).mu
    other = f"{REGULARIZERS[method].title} {'per fold' if nested and mu else f'{mu:g}'}"
    wide = max(7, len(other))
    yield f"{part:<18} {'plain':>7}  {other:>{wide}}  {'gain':>8}  {'95 % interval':>19}  {'p':>6}"
    for name, pair in pairs.items():
        digits, apart = METRICS[name].digits, pair.difference
        plain, others = (f"{each.mean:.{digits}f}" for each in (pair.plain, pair.other))
        gain, low, high = (f"{x:+.{digits}f}".replace("-", "−") for x in (apart.mean, apart.low, apart.high))
        row = f"{METRICS[name].title:<18} {plain:>7}  {others:>{wide}}  {gain:>8}"
        yield row if pair.units == 1 else f"{row}  {f'{low} to {high}':>19}  {apart.p_value:>6.3g}"
    yield ABOUT
