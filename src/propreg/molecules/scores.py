"""ROC-AUC and RMSE as OGB's evaluator computes them, and accuracy, for many replicas at once."""

import torch
from torch import Tensor


def roc_auc(scores: Tensor, y: Tensor, labeled: Tensor) -> Tensor:
    """The mean over tasks of the area under the ROC curve. [R], NaN where no task has both classes.

    A task counts if it has both classes among its labeled molecules; ties count half.

    Args:
        scores: Larger for the positive class, [R, molecules, tasks].
        y: 0 or 1, [molecules, tasks].
        labeled: True where there is a label, [molecules, tasks].
    """
    total, tasks = torch.zeros(len(scores), dtype=torch.float64, device=scores.device), 0
    for task in range(y.shape[1]):
        known = labeled[:, task].nonzero().squeeze(1)
        positive = y[known, task] > 0
        pairs = int(positive.sum()) * int((~positive).sum())
        if pairs == 0:
            continue
        total += _above(scores[:, known, task], positive) / pairs
        tasks += 1
    return total / tasks if tasks else total + torch.nan


def _above(scores: Tensor, positive: Tensor) -> Tensor:
    """In how many pairs the positive molecule scores higher, by the sum of its ranks; ties count half. [R]."""
    ordered = scores.sort(1).values
    scores = scores.contiguous()
    below, upto = (torch.searchsorted(ordered, scores, right=right) for right in (False, True))
    ranks = (below + upto + 1).double() / 2
    number = positive.sum().double()
    area: Tensor = (ranks * positive).sum(1) - number * (number + 1) / 2
    return torch.where(scores.isnan().any(1), torch.nan, area)


def rmse(scores: Tensor, y: Tensor, labeled: Tensor) -> Tensor:
    """The mean over tasks of the root mean squared error. [R]."""
    count = labeled.sum(0).clamp(min=1)
    squared = ((scores.double() - y.double()).square() * labeled).sum(1) / count
    return squared.sqrt().mean(1)


def accuracy(scores: Tensor, y: Tensor, labeled: Tensor) -> Tensor:
    """The share of labeled graphs [graphs, 1] whose class has the highest of the scores [R, graphs, classes]. [R]."""
    right = (scores.argmax(-1) == y[:, 0]) & labeled[:, 0]
    share = right.sum(1).double() / labeled.sum()
    return torch.where(scores.isnan().flatten(1).any(1), torch.nan, share)
