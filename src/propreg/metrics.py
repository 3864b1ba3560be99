"""What a run's predictions are worth: metrics of the measures that a run records. Imports no torch.

Example:
    >>> from propreg.engine.spec import PartMeasures
    >>> part = PartMeasures(
    ...     count=(3, 1), right=(3, 0), predicted=(4, 0), nll=2.0, brier=1.0, bins=((0, 0, 0.0),) * 14 + ((4, 3, 3.9),)
    ... )
    >>> {metric.name: metric.compute(part) for metric in (METRICS["accuracy"], METRICS["balanced_accuracy"])}
    {'accuracy': 0.75, 'balanced_accuracy': 0.5}
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from propreg.engine.spec import PartMeasures


@dataclass(frozen=True)
class Metric:
    """One number per run and part of the split.

    Args:
        name: What files and options call it.
        title: What people call it.
        direction: Whether ``"higher"`` or ``"lower"`` is better.
        digits: Decimals that a table shows.
        compute: The metric of a part's measures; fractions stay fractions.
    """

    name: str
    title: str
    direction: Literal["higher", "lower"]
    digits: int
    compute: Callable[[PartMeasures], float]


def accuracy(part: PartMeasures) -> float:
    """The share of nodes whose class is predicted."""
    return sum(part.right) / sum(part.count)


def balanced_accuracy(part: PartMeasures) -> float:
    """The mean over the classes that occur of the share of their nodes that is predicted."""
    recalls = [right / count for right, count in zip(part.right, part.count, strict=True) if count]
    return sum(recalls) / len(recalls)


def macro_f1(part: PartMeasures) -> float:
    """The mean F1 of the classes that occur or are predicted: 2 · right / (count + predicted)."""
    classes = zip(part.right, part.count, part.predicted, strict=True)
    scores = [2 * right / (count + predicted) for right, count, predicted in classes if count + predicted]
    return sum(scores) / len(scores)


def nll(part: PartMeasures) -> float:
    """The mean negative log-likelihood of the nodes' classes."""
    return part.nll / sum(part.count)


def brier(part: PartMeasures) -> float:
    """The mean over nodes of the squared distance between probabilities and the one-hot class, between 0 and 2."""
    return part.brier / sum(part.count)


def roc_auc(part: PartMeasures) -> float:
    """The area under the ROC curve of class 1; NaN unless there are two classes, both with nodes."""
    return math.nan if part.roc_auc is None else part.roc_auc


def ece(part: PartMeasures) -> float:
    """The expected calibration error: |correct − confidence|, summed per bin, over the number of nodes."""
    return sum(abs(right - confidence) for _, right, confidence in part.bins) / sum(part.count)


ABOUT = (
    "NLL, Brier score (0 to 2) and ECE are better where they are lower; a positive gain is always better. ECE: in 15 "
    "bins of equal width of the predicted class's probability, the mean probability less the share that is right."
)
METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "Accuracy", "higher", 4, accuracy),
        Metric("balanced_accuracy", "Balanced accuracy", "higher", 4, balanced_accuracy),
        Metric("macro_f1", "Macro-F1", "higher", 4, macro_f1),
        Metric("roc_auc", "ROC-AUC", "higher", 4, roc_auc),
        Metric("nll", "NLL", "lower", 3, nll),
        Metric("brier", "Brier score", "lower", 3, brier),
        Metric("ece", "ECE", "lower", 4, ece),
    )
}
