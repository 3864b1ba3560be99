"""Whether the regularizer helps on this graph: computed once, for the terminal, ``run.json`` and the page alike."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from propreg.engine.regularizers import REGULARIZERS
from propreg.fitting.selection import Scores, choose, matched
from propreg.statistics import Difference, Runs, Summary, paired, summarize

NO_TEST = (
    "The data has no test nodes: the numbers are of the validation nodes, on which mu was chosen too, so they are "
    "optimistic."
)
Kind = Literal["helps", "not chosen", "does not help", "harms", "inconclusive"]


@dataclass(frozen=True)
class Judging:
    """The numbers that runs are compared by.

    Args:
        score: What people call them.
        part: The part of a split that they are of, ``"test"`` or ``"validation"``.
        sign: 1 if higher is better, else −1.
        fraction: Whether they are fractions, shown in per cent.
        nested: Whether each split's strength is picked on its own validation nodes, which no other split then judges.
        where: What it was trained on.
    """

    score: str = "accuracy"
    part: str = "test"
    sign: int = 1
    fraction: bool = True
    nested: bool = False
    where: str = "on this graph"

    @property
    def what(self) -> str:
        """For example ``test accuracy``."""
        return f"{self.part} {self.score}"


JUDGING = Judging()


class Compared(Protocol):
    """The part of a fit that the verdict depends on: a :class:`propreg.FitResult`, or the record of a run."""

    @property
    def mu(self) -> float: ...
    @property
    def mus(self) -> tuple[float, ...]: ...
    @property
    def picking(self) -> Runs: ...
    @property
    def test(self) -> Runs: ...
    @property
    def finished(self) -> bool: ...
    @property
    def method(self) -> str: ...
    @property
    def judging(self) -> Judging: ...


@dataclass(frozen=True)
class Pair:
    """The plain model and a strength, on the splits and seeds that both have; a positive difference is a gain."""

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
    place = result.mus.index(mu)
    return pair_at(result.test, mu, [place] * result.test.shape[1], result.judging.sign)


def nested_pair(result: Compared) -> Pair | None:
    """Compare the strengths that each split picks on its own validation nodes with the plain model."""
    return pair_at(result.test, result.mu, _nested_picks(result), result.judging.sign)


def picks(result: Compared) -> tuple[float | None, list[int | None]]:
    """The strength that is compared with the plain model, None if there is none, and its place on each split.

    The chosen one, or that of each fold; if the plain model was chosen, the best of the others on validation.
    """
    mu = result.mu or best_above_zero(result)
    if result.judging.nested and result.mu:
        return mu, _nested_picks(result)
    return mu, [None if mu is None else result.mus.index(mu)] * result.test.shape[1]


def pair_at(runs: Runs, mu: float, places: Sequence[int | None], sign: int) -> Pair | None:
    """Compare the runs [strengths, splits, seeds] at a place of each split with the plain ones, the first.

    Args:
        runs: A score of every run.
        mu: What the compared strength is called.
        places: Of the strength, for each split; None leaves a split out.
        sign: 1 if higher is better, else −1.
    """
    other = np.full(runs.shape[1:], np.nan)
    for split, place in enumerate(places):
        if place is not None:
            other[split] = runs[place, split]
    other, plain = matched(other, runs[0])
    if not other.size:
        return None
    count = len(other) if len(other) > 1 else other.size
    return Pair(mu, summarize(plain), summarize(other), paired(sign * other, sign * plain), count)


def _nested_picks(result: Compared) -> list[int | None]:
    """The place of the strength that each split picks on its own validation nodes; None without a run to pick from."""
    val, test = result.picking, result.test
    found: list[int | None] = []
    for split in range(test.shape[1]):
        mine = slice(split, split + 1)
        failed = np.isnan(val[:, mine]) & result.finished
        try:
            found.append(choose(Scores(val[:, mine], test[:, mine], failed)))
        except RuntimeError:
            found.append(None)
    return found


def judge(result: Compared) -> Verdict:
    """Compare the chosen strength with the plain model; if that was chosen, the best of the others on validation.

    It helps if validation chose it and the difference on the test nodes is significant, see
    :attr:`propreg.statistics.Difference.verdict`; it harms if the difference is significant and negative. If the plain
    model was chosen, such a difference shows that it does not help; else it was not chosen.
    """
    title = REGULARIZERS[result.method].title if result.method in REGULARIZERS else result.method
    here = result.judging.where + " so far" * (not result.finished)
    of = "" if result.finished else "over the finished trainings, "
    judging, (compared, places) = result.judging, picks(result)
    found = None if compared is None else pair_at(result.test, compared, places, judging.sign)
    if found is None:
        return Verdict("inconclusive", "Inconclusive: there is no pair of finished runs to compare.", None)
    kind, sentence = _judged(result, found, title, in_points(found, judging), here, of)
    return Verdict(kind, sentence if judging.part == "test" else f"{sentence} {NO_TEST}", found)


def _judged(result: Compared, found: Pair, title: str, gives: str, here: str, of: str) -> tuple[Kind, str]:
    apart = found.difference
    if not result.mu:
        no_gain = apart.verdict == "worse"
        sentence = (
            f"{title} {'does not help' if no_gain else 'was not chosen'} {here}: {of}no strength did better than "
            "the plain model on validation, so the plain model was chosen. The best strength above 0, "
            f"mu = {found.mu:g}, gives {gives}."
        )
        if apart.verdict == "better":
            sentence += f" {not_by_test(result.judging)}"
        return "does not help" if no_gain else "not chosen", sentence
    if apart.verdict == "better":
        return "helps", f"{title} helps {here}: {gives}."
    if apart.verdict == "worse":
        best = "mu picked in each fold" if result.judging.nested else f"mu = {found.mu:g}"
        return "harms", f"{title} hurts {here}: {of}{best} did best on validation, but gives {gives}."
    p = f", p = {apart.p_value:.2g}" if found.units > 1 else ""
    return "inconclusive", f"Inconclusive {here}: {title} gives {gives}{p}."


def in_points(found: Pair, judging: Judging) -> str:
    """The difference with its interval, which one pair of runs does not have."""
    apart = found.difference
    if judging.fraction:
        mean, low, high = (points(share) for share in (apart.mean, apart.low, apart.high))
        gain = f"{mean} points of {judging.what}"
    else:
        mean, low, high = (signed(value) for value in (apart.mean, apart.low, apart.high))
        gain = f"a gain of {mean} in {judging.what}{' (lower is better)' if judging.sign < 0 else ''}"
    if found.units == 1:
        return f"{gain} in one pair of runs, too few for an interval"
    return f"{gain} (95 % interval {low} to {high})"


def best_above_zero(result: Compared) -> float | None:
    """The strength above 0 with the best score on validation; None if no strength can be chosen."""
    val = result.picking[1:]
    if not len(val):
        return None
    failed = np.isnan(val) & result.finished  # in a fit that was not interrupted, only failed runs are missing
    try:
        return result.mus[1 + choose(Scores(val, result.test[1:], failed))]
    except RuntimeError:
        return None


def not_by_test(judging: Judging) -> str:
    """The warning where validation chose the plain model and the test part would not have."""
    return f"Do not choose by {judging.what}: more validation data would show whether this is chance."


def signed(value: float) -> str:
    """A difference with its sign, to four digits after the point or three significant ones.

    Example:
        >>> signed(0.01234), signed(-12345.6)
        ('+0.0123', '−1.23e+04')
    """
    shown = f"{value:+.4f}" if not math.isfinite(value) or abs(value) < 1000 else f"{value:+.3g}"
    return shown.replace("-", "−")


def points(share: float) -> str:
    """A difference of accuracies in points, with its sign.

    Example:
        >>> points(0.0123), points(-0.00001)
        ('+1.23', '−0.00')
    """
    return f"{100 * share:+.2f}".replace("-", "−")
