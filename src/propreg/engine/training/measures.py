"""What a run's predictions are like at the reported epoch: class counts, proper scores, bins of confidence."""

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
    log_p = logits.double().log_softmax(1)
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
    columns = torch.cat([each.sum(0).double() for each in sums]).tolist()
    rows = [[columns.pop(0) for _ in range(each.shape[1])] for each in sums]
    count, hits, guesses, in_bin, hits_in_bin = (tuple(map(int, row)) for row in rows[:5])
    (nll,), (brier,) = rows[6:]
    if not math.isfinite(nll + brier):
        return None
    confidences = map(_canonical, rows[5])
    triples = tuple(zip(in_bin, hits_in_bin, confidences, strict=True))
    return PartMeasures(count, hits, guesses, _canonical(nll), _canonical(brier), triples)


def _canonical(x: float) -> float:
    """6 significant digits: those beyond depend on the device and on which other replicas were in the batch."""
    return float(f"{x:.6g}")
