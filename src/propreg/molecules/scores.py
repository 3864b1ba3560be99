"""ROC-AUC and RMSE as OGB's evaluator computes them, and accuracy, for many replicas at once."""

import torch
from torch import Tensor

from propreg.engine.training.measures import pairs_above


def mean_over_tasks(by_task: Tensor, counted: Tensor) -> Tensor:
    """The mean score of each replica over the tasks that count. [R], NaN where none does.

    Args:
        by_task: Scores, [R, tasks].
        counted: Whether a task has a score: of yes/no questions if both answers are there, else any label. [tasks].
    """
    total = torch.zeros(len(by_task), dtype=torch.float64, device=by_task.device)
    chosen = counted.nonzero().flatten().tolist()
    for task in chosen:  # one after the other, as OGB sums them
        total += by_task[:, task]
    return total / len(chosen) if chosen else total + torch.nan


def roc_auc_by_task(scores: Tensor, y: Tensor, labeled: Tensor) -> tuple[Tensor, Tensor]:
    """The area under the ROC curve of each task [R, tasks], and which tasks count, [tasks].

    A task counts if it has both classes among its labeled molecules; ties count half.

    Args:
        scores: Larger for the positive class, [R, molecules, tasks].
        y: 0 or 1, [molecules, tasks].
        labeled: True where there is a label, [molecules, tasks].
    """
    found = torch.full((len(scores), y.shape[1]), torch.nan, dtype=torch.float64, device=scores.device)
    counted = torch.zeros(y.shape[1], dtype=torch.bool, device=scores.device)
    for task in range(y.shape[1]):
        known = labeled[:, task].nonzero().squeeze(1)
        positive = y[known, task] > 0
        pairs = int(positive.sum()) * int((~positive).sum())
        if pairs:
            mine = scores[:, known, task]
            found[:, task] = torch.where(mine.isnan().any(1), torch.nan, pairs_above(mine, positive) / pairs)
            counted[task] = True
    return found, counted


def rmse_by_task(scores: Tensor, y: Tensor, labeled: Tensor) -> tuple[Tensor, Tensor]:
    """The root mean squared error of each task [R, tasks], NaN without a label, and which tasks count, [tasks]."""
    count = labeled.sum(0)
    squared = ((scores.double() - y.double()).square() * labeled).sum(1) / count
    return squared.sqrt(), count > 0


def accuracy(scores: Tensor, y: Tensor, labeled: Tensor) -> Tensor:
    """The share of labeled graphs [graphs, 1] whose class has the highest of the scores [R, graphs, classes]. [R]."""
    right = (scores.argmax(-1) == y[:, 0]) & labeled[:, 0]
    share = right.sum(1).double() / labeled.sum()
    return torch.where(scores.isnan().flatten(1).any(1), torch.nan, share)
