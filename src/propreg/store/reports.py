"""The reports of a run as one compact text: what each selection rule reports, and its measures where it has some.

A list of reports, that of the run's own rule first and the others sorted by rule, each ``[rule, epoch, val, test]`` or,
if measures were asked for, ``[rule, epoch, val, test, [of val, of test]]``, with null for measures that are not finite.
The measures of a part of the split are::

    [nodes by class, correct by class, predicted by class, nll, brier, nodes by bin, correct by bin, confidence by bin]

of two classes, both with nodes, followed by ROC-AUC, which parts recorded before it was do not have.

``nll`` and ``brier`` are sums over the nodes, with six digits; null where they are not finite. The confidence of a bin
is the sum over its nodes less that of as many nodes in the middle of the bin, in hundredths: the calibration error on
500 nodes is off by 0.00015 at worst, and the measures of 136,355 runs add 24 MB to an export.
"""

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from propreg.engine.spec import Measures, PartMeasures, Report
from propreg.jsonio import LARGEST, canonical

ACCURACY = "accuracy"
_LISTS, _SUMS, _BINS = (0, 1, 2), (3, 4), (5, 6, 7)


def to_score(value: float, nodes: int, metric: str = ACCURACY) -> float:
    """A fraction of nodes as their number; a value of another metric as a decimal of twelve digits.

    Example:
        >>> to_score(0.815, 1000), to_score(3 * 0.05, 1000, "rmse")
        (815, 0.15)
    """
    return round(value * nodes) if metric == ACCURACY else float(f"{value:.12g}") + 0.0


def from_score(score: float, nodes: int, metric: str = ACCURACY) -> float:
    """What :func:`to_score` got: a fraction, or the value of the metric."""
    return score / nodes if metric == ACCURACY else float(score)


def write_reports(
    reports: Sequence[Report], val_of: int, test_of: int, metric: str = ACCURACY, *, measured: bool = False
) -> str | None:
    """The text of a run's reports; None if there is only one and it has no measures, as of most runs.

    With ``measured``, a report without measures, such as that of a run with NaN, has null for them, so that the run is
    not trained again for them.

    Example:
        >>> write_reports([Report("official", 7, 0.9, 0.8), Report("strict", 5, 0.9, 0.7)], 10, 10)
        '[["official",7,9,8],["strict",5,9,7]]'
    """
    if not reports or (len(reports) == 1 and not (measured or reports[0].measures)):
        return None
    found: list[list[Any]] = []
    for each in reports:
        scores = to_score(each.val, val_of, metric), to_score(each.test, test_of, metric)
        parts = [_pack(each.measures.val), _pack(each.measures.test)] if each.measures else None
        measures = [parts] if parts or measured else []
        found.append([each.rule, each.epoch, *scores, *measures])
    own, *others = found
    return canonical([own, *sorted(others)])


def read_reports(text: str, val_of: int, test_of: int, metric: str = ACCURACY) -> tuple[Report, ...]:
    """What :func:`write_reports` got, up to rounding."""
    found = []
    for rule, epoch, val, test, *measures in json.loads(text):
        parts = Measures(*map(_unpack, measures[0])) if measures and measures[0] else None
        found.append(Report(rule, epoch, from_score(val, val_of, metric), from_score(test, test_of, metric), parts))
    return tuple(found)


def has_reports(text: str | None, rules: Iterable[str], measures: bool) -> bool:
    """Whether a run has the reports of these rules, and measures with each of them and with its own rule's.

    Example:
        >>> has_reports(None, [], measures=False), has_reports('[["official",7,9,8]]', ["strict"], measures=False)
        (True, False)
    """
    found = {each[0]: len(each) == 5 for each in json.loads(text)} if text else {}
    wanted = set(rules)
    if not measures:
        return wanted <= found.keys()
    return bool(found) and wanted <= found.keys() and all(found.values())


def merge_reports(old: str | None, new: str | None) -> str | None:
    """The reports of two trainings of a run with equal scores: those of both, with measures where one has them.

    Example:
        >>> merge_reports('[["official",7,9,8]]', '[["official",7,9,8],["strict",5,9,7]]')
        '[["official",7,9,8],["strict",5,9,7]]'
    """
    if old is None or new is None:
        return new if old is None else old
    found = {each[0]: each for each in json.loads(old)}
    for each in json.loads(new):
        if len(each) > len(found.get(each[0], ())):
            found[each[0]] = each
    own, *others = found.values()
    return canonical([own, *sorted(others)])


def implausible_reports(
    text: str, val: tuple[float, int], test: tuple[float, int], epoch: int, epochs: int, metric: str
) -> list[str]:
    """What is wrong with the text of a run's reports, in words.

    Args:
        text: The text.
        val, test: The run's own score, and the nodes of the part.
        epoch: The run's own epoch.
        epochs: How many were trained.
        metric: The metric of the scores.

    Example:
        >>> implausible_reports('[["official",7,9,8],["strict",5,9,7]]', (9, 10), (8, 10), 7, 40, "accuracy")
        []
        >>> implausible_reports('[["official",7,9,3]]', (9, 10), (8, 10), 7, 40, "accuracy")
        ['has a first report that is not its own']
    """
    try:
        found = json.loads(text)
        if canonical(found) != text or not found or len({each[0] for each in found}) != len(found):
            return ["has reports that cannot be read"]
        for rule, at, *scores in found:
            measures = scores[2:]
            bad = not isinstance(rule, str) or type(at) is not int or not 0 <= at <= epochs
            bad = bad or not all(map(_is_number, scores[:2])) or len(scores[:2]) != 2 or len(measures) > 1
            if metric == ACCURACY:
                bad = bad or any(type(n) is not int or not 0 <= n <= most[1]
                                 for n, most in zip(scores, (val, test), strict=False))  # fmt: skip
            if bad:
                return ["has reports with impossible numbers"]
            for part, score, (_, nodes) in zip(
                measures[0] or () if measures else (), scores, (val, test), strict=False
            ):
                if not _is_part(part, score if metric == ACCURACY else None, nodes):
                    return ["has a report with impossible measures"]
        if found[0][1:4] != [epoch, val[0], test[0]]:
            return ["has a first report that is not its own"]
    except (ValueError, TypeError, LookupError, RecursionError, OverflowError):
        return ["has reports that cannot be read"]
    return []


def _pack(part: PartMeasures) -> list[Any]:
    nodes, right = [each[0] for each in part.bins], [each[1] for each in part.bins]
    offsets = [round(100 * (each[2] - middle)) for each, middle in zip(part.bins, _middles(nodes), strict=True)]
    sums = (float(f"{value:.6g}") if math.isfinite(value) else None for value in (part.nll, part.brier))
    area = [] if part.roc_auc is None else [part.roc_auc]
    return [list(part.count), list(part.right), list(part.predicted), *sums, nodes, right, offsets, *area]


def _unpack(part: list[Any]) -> PartMeasures:
    nll, brier = (math.nan if part[i] is None else float(part[i]) for i in _SUMS)
    nodes, right, offsets, *area = part[5:]
    confidence = [middle + offset / 100 for middle, offset in zip(_middles(nodes), offsets, strict=True)]
    count, correct, predicted = (tuple(part[i]) for i in _LISTS)
    bins = tuple(zip(nodes, right, confidence, strict=True))
    return PartMeasures(count, correct, predicted, nll, brier, bins, *map(float, area))


def _middles(nodes: Sequence[int]) -> list[float]:
    """The sum of the confidences of the nodes of each bin if all were in its middle."""
    return [number * (bin_ + 0.5) / len(nodes) for bin_, number in enumerate(nodes)]


def _is_part(part: Any, right: float | None, nodes: int) -> bool:
    """Whether measures add up: to the nodes of the part, and to those that the report has right."""
    if len(part) not in (8, 9) or not all(part[i] is None or _is_number(part[i]) for i in _SUMS):
        return False
    if len(part) == 9 and not (_is_number(part[8]) and 0 <= part[8] <= 1 and len(part[0]) == 2 and min(part[0])):
        return False
    if not all(type(n) is int and abs(n) <= LARGEST for i in (*_LISTS, *_BINS) for n in part[i]):
        return False
    if min(n for i in (*_LISTS, 5, 6) for n in part[i]) < 0 or len({len(part[i]) for i in _LISTS}) != 1:
        return False
    if any(sum(part[i]) != nodes for i in (0, 2, 5)) or sum(part[1]) != sum(part[6]):
        return False
    return right is None or sum(part[1]) == right


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]
