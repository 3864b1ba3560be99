"""What a run's predictions are like at the reported epoch: class counts, proper scores, bins of confidence, ROC-AUC."""

import math

import torch
from torch import Tensor

from propreg.engine.spec import PartMeasures

BINS = 15


@torch.no_grad()
def measure(logits: Tensor, y: Tensor) -> PartMeasures | None:
    """The measures of logits [T, C] for nodes of classes y [T]; None if a logit is not finite.

    Sums are of float64. On a GPU one transfer brings the result, and no atomic addition makes a sum depend on the order
    of threads.
    """
    z = logits.double()
    log_p = z.log_softmax(1)
    p = log_p.exp()
    predicted = logits.max(1, keepdim=True).indices  # of equal logits the first, as accuracies are counted
    confidence, y = p.gather(1, predicted), y.unsqueeze(1)
    right, classes = predicted == y, torch.arange(logits.shape[1], device=y.device)
    actual = y == classes
    bins = (confidence * BINS).long().clamp(max=BINS - 1) == torch.arange(BINS, device=y.device)
    sums = [
        *(actual, actual & right, predicted == classes),
        *(bins, bins & right, bins * confidence),
        *(-log_p.gather(1, y), (p - actual.double()).square().sum(1, keepdim=True)),
    ]
    above = [pairs_above((z[:, 1:] - z[:, :1]).T, y.squeeze(1) == 1)] if z.shape[1] == 2 else []
    columns = torch.cat([*(each.sum(0).double() for each in sums), *above]).tolist()
    rows = [[columns.pop(0) for _ in range(each.shape[1])] for each in sums]
    count, hits, guesses, in_bin, hits_in_bin = (tuple(map(int, row)) for row in rows[:5])
    (nll,), (brier,) = rows[6:]
    if not math.isfinite(nll + brier):
        return None
    confidences = map(_canonical, rows[5])
    triples = tuple(zip(in_bin, hits_in_bin, confidences, strict=True))
    pairs = count[0] * count[1] if columns else 0
    roc_auc = _canonical(columns[0] / pairs) if pairs else None
    return PartMeasures(count, hits, guesses, _canonical(nll), _canonical(brier), triples, roc_auc)


@torch.no_grad()
def correct_prior(*parts: Tensor) -> list[Tensor]:
    r"""Logits as if training had seen classes as often as the last part's nodes have them, without their labels.

    With training nodes of all classes in equal numbers, a model learns :math:`p(c \mid x)` for classes that are equally
    frequent. Where class c is a share :math:`\pi_c` of the nodes, :math:`z_c + \log \pi_c` are the logits of Bayes'
    rule; :math:`\pi` is estimated as the mean prediction for the last part.

    Args:
        parts: Logits [T, C].

    Returns:
        Those of each part, float64.
    """
    prior = parts[-1].double().softmax(1).mean(0)
    return [z.double() + prior.log() for z in parts]


def pairs_above(scores: Tensor, positive: Tensor) -> Tensor:
    """In how many pairs the positive one of a positive and a negative item scores higher; ties count half. [R].

    The sum of the ranks of the positive items, less its smallest possible value: exact, as half ranks are. Over the
    number of pairs it is the area under the ROC curve.

    Args:
        scores: Of R replicas, [R, items].
        positive: Which items are positive, [items].
    """
    ordered, scores = scores.sort(1).values, scores.contiguous()
    below, upto = (torch.searchsorted(ordered, scores, right=right) for right in (False, True))
    ranks = (below + upto + 1).double() / 2
    number = positive.sum().double()
    return (ranks * positive).sum(1) - number * (number + 1) / 2


def _canonical(x: float) -> float:
    """6 significant digits: those beyond depend on the device and on which other replicas were in the batch."""
    return float(f"{x:.6g}")
