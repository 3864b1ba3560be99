"""The numbers at the top of a run's page, and the verdict in words."""

from dataclasses import dataclass

import numpy as np

from propreg.fitting.selection import matched
from propreg.fitting.verdict import Kind, best_above_zero, not_by_test
from propreg.names import method_title
from propreg.report.run_record import RunRecord
from propreg.report.text import number, strength
from propreg.statistics import Difference, Runs, Summary, summarize

CHOSEN = "preg-reference"
"""The key of the regularized model: P-reg's color in all figures."""


@dataclass(frozen=True)
class Numbers:
    """The comparison in per cent; None if no run of both is finished. ``compared`` is the strength compared with 0.

    ``units`` counts independent comparisons: splits, or seeds where there is one split. One has no interval.
    """

    compared: float
    plain: Summary | None
    chosen: Summary | None
    apart: Difference | None
    units: int
    kind: Kind
    finished: int
    wanted: int


def numbers_of(record: RunRecord) -> Numbers:
    """The numbers of the verdict, and how many trainings are finished."""
    pair, test = record.verdict.pair, record.test
    finished = int((~np.isnan(test)).sum())
    if pair is not None:
        return Numbers(
            pair.mu, pair.plain, pair.other, pair.difference, pair.units, record.verdict.kind, finished, test.size
        )
    compared = record.mu or best_above_zero(record) or 0.0
    plain, other = summary(test[0]), summary(test[record.mus.index(compared)])
    return Numbers(compared, plain, other, None, 0, record.verdict.kind, finished, test.size)


def summary(runs: Runs) -> Summary | None:
    """The finished runs, whole splits if there are any; None if there are none."""
    (there,) = matched(runs)
    return summarize(there) if there.size else None


def headline(record: RunRecord) -> str:
    """The page's first line."""
    title = method_title(record.method)
    first = title[0].upper() + title[1:]
    return {
        "helps": f"{first} helps {record.judging.where}",
        "not chosen": f"{first} was not chosen {record.judging.where}",
        "does not help": f"{first} does not help {record.judging.where}",
        "harms": f"{first} hurts {record.judging.where}",
        "inconclusive": f"Inconclusive: no significant effect of {title} {record.judging.where}",
    }[record.verdict.kind]


def explained(record: RunRecord, found: Numbers) -> str:
    """The verdict in one sentence, with its numbers."""
    if found.apart is None:
        return "There is no pair of finished runs, plain and regularized, to compare."
    apart = found.apart
    judging, places = record.judging, 2 if record.judging.fraction else 4
    mean, low, high = (number(value, places, sign=True) for value in (apart.mean, apart.low, apart.high))
    gain = f"{mean} points of {judging.what} against the plain model"
    if not judging.fraction:
        lower = " (lower is better)" if judging.sign < 0 else ""
        gain = f"a gain of {mean} in {judging.what} against the plain model{lower}"
    if found.units > 1:
        gain += f", 95 % interval {low} to {high}"
    else:
        gain += " in one pair of runs, too few for an interval"
    if not record.mu:
        return (
            "No strength did better than the plain model on validation, so the plain model was chosen. The best "
            f"strength above 0, μ = {strength(found.compared)}, gives {gain}."
            f"{' ' + not_by_test(judging) if apart.verdict == 'better' else ''}"
        )
    if judging.nested:
        return f"With each fold's own μ, picked on its validation nodes: {gain}."
    return f"With μ = {strength(found.compared)}, picked on validation: {gain}."
