"""Whether the regulariser helps on this graph, in one plain sentence."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from propreg.fitting.choosing import Scores, choose, matched
from propreg.fitting.methods import METHODS
from propreg.statistics import SURE, Difference, Summary, paired, summarise

if TYPE_CHECKING:
    from propreg.fitting.result import FitResult


@dataclass(frozen=True)
class Verdict:
    """``kind``, the sentence, and what it rests on (None: there is nothing to compare)."""

    kind: Literal["helps", "not chosen", "does not help", "cannot tell", "harms"]
    sentence: str
    pair: "Pair | None"


@dataclass(frozen=True)
class Pair:
    """The plain model and a strength, on the splits and seeds that both have finished."""

    mu: float
    plain: Summary
    other: Summary
    difference: Difference
    units: int  # independent comparisons: splits, or seeds where there is one split

    @property
    def sure(self) -> bool:
        """Whether the sign of the difference is as sure as five splits can make it."""
        return self.difference.p_value <= SURE


def pair(result: "FitResult", mu: float) -> Pair | None:
    """Compare a strength with the plain model, None where they have no run in common."""
    other, plain = matched(result.test[result.mus.index(mu)], result.test[0])
    if not other.size:
        return None
    count = len(other) if len(other) > 1 else other.size
    return Pair(mu, summarise(plain), summarise(other), paired(other, plain), count)


def judge(result: "FitResult") -> Verdict:
    """Compare the chosen strength with the plain model; where that was chosen, the best of the others.

    It helps where validation chose it, the 95 % interval of the difference on the test nodes lies above 0, and p is at
    most 1/16, as sure as five splits can be. It harms where the interval lies as surely below 0. Where the plain model
    was chosen, it does not help if the interval of at least five units ends at 0 or below; else it was not chosen.
    """
    title, compared = METHODS[result.method].title, result.mu or best_above_zero(result)
    here = "on this graph" if result.finished else "on this graph so far"
    of = "" if result.finished else "of what is finished, "
    found = None if compared is None else pair(result, compared)
    if found is None:
        sentence = f"It cannot be told whether {title} helps: there is no pair of finished runs to compare."
        return Verdict("cannot tell", sentence, None)
    above, below = found.sure and found.difference.low > 0, found.sure and found.difference.high < 0
    if not result.mu:
        no_gain = found.difference.high <= 0 and 2 / 2**found.units <= SURE
        sentence = (
            f"{title} {'does not help' if no_gain else 'was not chosen'} {here}: {of}no strength did better than "
            "the plain model on validation, so that the plain model was chosen. The best strength above 0, "
            f"mu = {compared:g}, gives {in_points(found)}."
        )
        if found.units > 1 and found.difference.low > 0:
            sentence += " Test nodes may not choose: more validation nodes would tell whether that is chance."
        return Verdict("does not help" if no_gain else "not chosen", sentence, found)
    if above:
        return Verdict("helps", f"{title} helps {here}: {in_points(found)}.", found)
    if below:
        sentence = f"{title} harms {here}: {of}mu = {compared:g} did best on validation, but gives {in_points(found)}."
        return Verdict("harms", sentence, found)
    p = f", p = {found.difference.p_value:.2g}" if found.units > 1 else ""
    return Verdict("cannot tell", f"It cannot be told whether {title} helps {here}: {in_points(found)}{p}.", found)


def in_points(found: Pair) -> str:
    """The difference with its interval, which one pair of runs does not have."""
    apart = found.difference
    said = f"{points(apart.mean)} points of test accuracy"
    if found.units == 1:
        return f"{said} in one pair of runs, too few for an interval"
    return f"{said} (95 % interval {points(apart.low)} to {points(apart.high)})"


def best_above_zero(result: "FitResult") -> float | None:
    """The strength above 0 with the best validation accuracy, None where no strength can be chosen."""
    val = result.val[1:]
    if not len(val):
        return None
    failed = np.isnan(val) & result.finished  # of a fit that was not interrupted, only failed runs are missing
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
