"""Whether the regularizer helps on this graph: computed once, for the terminal, ``run.json`` and the page alike."""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from propreg.engine.regularizers import REGULARIZERS
from propreg.fitting.selection import Scores, choose, matched
from propreg.statistics import SIGNIFICANCE, Difference, Runs, Summary, paired, smallest_p, summarize

NOT_BY_TEST = "Do not choose by test accuracy: more validation nodes would show whether this is chance."
Kind = Literal["helps", "not chosen", "does not help", "harms", "inconclusive"]


class Compared(Protocol):
    """The part of a fit that the verdict depends on: a :class:`propreg.FitResult`, or the record of a run."""

    @property
    def mu(self) -> float: ...
    @property
    def mus(self) -> tuple[float, ...]: ...
    @property
    def val(self) -> Runs: ...
    @property
    def test(self) -> Runs: ...
    @property
    def finished(self) -> bool: ...
    @property
    def method(self) -> str: ...


@dataclass(frozen=True)
class Pair:
    """The plain model and a strength, on the splits and seeds that both have finished."""

    mu: float
    plain: Summary
    other: Summary
    difference: Difference
    units: int  # independent comparisons: splits, or seeds where there is one split


@dataclass(frozen=True)
class Verdict:
    """The answer, the same in one sentence, and the numbers behind it; None if there is nothing to compare."""

    kind: Kind
    sentence: str
    pair: Pair | None


def pair(result: Compared, mu: float) -> Pair | None:
    """Compare a strength with the plain model; None if they have no run in common."""
    other, plain = matched(result.test[result.mus.index(mu)], result.test[0])
    if not other.size:
        return None
    count = len(other) if len(other) > 1 else other.size
    return Pair(mu, summarize(plain), summarize(other), paired(other, plain), count)


def judge(result: Compared, scale: float = 100.0) -> Verdict:
    """Compare the chosen strength with the plain model; if that was chosen, the best of the others on validation.

    It helps if validation chose it and the difference on the test nodes is significant, see
    :attr:`propreg.statistics.Difference.verdict`; it harms if the difference is significant and negative. If the plain
    model was chosen, it does not help if the interval of at least five units ends at 0 or below; else it was not
    chosen.

    Args:
        result: A fit, or its record.
        scale: What makes the accuracies per cent.
    """
    title = REGULARIZERS[result.method].title if result.method in REGULARIZERS else result.method
    here = "on this graph" if result.finished else "on this graph so far"
    of = "" if result.finished else "of what is finished, "
    compared = result.mu or best_above_zero(result)
    found = None if compared is None else pair(result, compared)
    if found is None:
        return Verdict("inconclusive", "Inconclusive: there is no pair of finished runs to compare.", None)
    gives, apart = in_points(found, scale), found.difference
    if not result.mu:
        no_gain = apart.high <= 0 and smallest_p(found.units) <= SIGNIFICANCE
        sentence = (
            f"{title} {'does not help' if no_gain else 'was not chosen'} {here}: {of}no strength did better than "
            "the plain model on validation, so the plain model was chosen. The best strength above 0, "
            f"mu = {found.mu:g}, gives {gives}."
        )
        if found.units > 1 and apart.low > 0:
            sentence += f" {NOT_BY_TEST}"
        return Verdict("does not help" if no_gain else "not chosen", sentence, found)
    if apart.verdict == "better":
        return Verdict("helps", f"{title} helps {here}: {gives}.", found)
    if apart.verdict == "worse":
        sentence = f"{title} harms {here}: {of}mu = {found.mu:g} did best on validation, but gives {gives}."
        return Verdict("harms", sentence, found)
    p = f", p = {apart.p_value:.2g}" if found.units > 1 else ""
    return Verdict("inconclusive", f"Inconclusive {here}: {title} gives {gives}{p}.", found)


def in_points(found: Pair, scale: float = 100.0) -> str:
    """The difference with its interval, which one pair of runs does not have."""
    apart = found.difference
    mean, low, high = (points(scale * share / 100) for share in (apart.mean, apart.low, apart.high))
    gain = f"{mean} points of test accuracy"
    if found.units == 1:
        return f"{gain} in one pair of runs, too few for an interval"
    return f"{gain} (95 % interval {low} to {high})"


def best_above_zero(result: Compared) -> float | None:
    """The strength above 0 with the best validation accuracy; None if no strength can be chosen."""
    val = result.val[1:]
    if not len(val):
        return None
    failed = np.isnan(val) & result.finished  # in a fit that was not interrupted, only failed runs are missing
    try:
        return result.mus[1 + choose(Scores(val, result.test[1:], failed))]
    except RuntimeError:
        return None


def points(share: float) -> str:
    """A difference of accuracies in points, with its sign.

    Example:
        >>> points(0.0123), points(-0.00001)
        ('+1.23', '−0.00')
    """
    return f"{100 * share:+.2f}".replace("-", "−")
