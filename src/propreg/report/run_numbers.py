"""What a run says in numbers: plain against chosen, and the verdict in words."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from propreg.fitting.choosing import matched
from propreg.report.names import method_name, number, strength
from propreg.report.run_record import RunRecord
from propreg.statistics import SURE, Difference, Runs, Summary, paired, summarise

Kind = Literal["helps", "not chosen", "does not help", "harms", "cannot tell"]


@dataclass(frozen=True)
class Numbers:
    """The comparison; None where no run of both is finished. ``compared`` is the strength that was held against 0.

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
    """Compare the chosen strength with the plain model; where that was chosen, the best of the others on validation."""
    compared = record.mu or _best_above_zero(record)
    place = record.mus.index(compared)
    plain, chosen = matched(record.test[0], record.test[place])
    apart = paired(chosen, plain) if plain.size and place else None
    units = len(plain) if len(plain) > 1 else plain.size
    return Numbers(
        compared,
        summary(record.test[0]),
        summary(record.test[place]),
        apart,
        units,
        _kind(record, apart, units),
        int((~np.isnan(record.test)).sum()),
        record.test.size,
    )


def summary(runs: Runs) -> Summary | None:
    """Of the runs that are there, whole splits where there are any; None where there are none."""
    (there,) = matched(runs)
    return summarise(there) if there.size else None


def headline(record: RunRecord, found: Numbers) -> str:
    """The first thing to read."""
    title = method_name(record.method)
    title = title[0].upper() + title[1:]
    return {
        "helps": f"{title} helps on this graph",
        "not chosen": f"{title} was not chosen on this graph",
        "does not help": f"{title} does not help on this graph",
        "harms": f"{title} harms on this graph",
        "cannot tell": f"It cannot be told whether {title} helps on this graph",
    }[found.kind]


def explained(record: RunRecord, found: Numbers) -> str:
    """The verdict in one sentence, with its numbers."""
    if found.apart is None:
        return "There is no pair of finished runs, plain and regularised, to compare."
    apart = found.apart
    said = f"{number(apart.mean, sign=True)} points of test accuracy against the plain model"
    if found.units > 1:
        said += f", 95 % interval {number(apart.low, sign=True)} to {number(apart.high, sign=True)}"
    else:
        said += " in one pair of runs, too few for an interval"
    if not record.mu:
        chance = " Test nodes may not choose: more validation nodes would tell whether that is chance."
        return (
            "No strength did better than the plain model on validation, so the plain model was chosen. The best "
            f"strength above 0, μ = {strength(found.compared)}, gives {said}."
            f"{chance if found.units > 1 and apart.low > 0 else ''}"
        )
    return f"With μ = {strength(found.compared)}, picked on validation: {said}."


def _kind(record: RunRecord, apart: Difference | None, units: int) -> Kind:
    """As ``propreg run`` judges it, see :func:`propreg.fitting.verdict.judge`."""
    if apart is None:
        return "cannot tell"
    sure = apart.p_value <= SURE
    if not record.mu:
        return "does not help" if apart.high <= 0 and 2 / 2**units <= SURE else "not chosen"
    if sure and apart.low > 0:
        return "helps"
    return "harms" if sure and apart.high < 0 else "cannot tell"


def _best_above_zero(record: RunRecord) -> float:
    """0 where there is no other."""
    means = [summary(runs) for runs in record.val[1:]]
    known = [(found.mean, -mu) for found, mu in zip(means, record.mus[1:], strict=True) if found is not None]
    return -max(known)[1] if known else 0.0
