"""Scores of predicted probabilities: what strengths are chosen and compared by."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from propreg import _choices
from propreg.data.graph import Graph, Split, Task

Labels: TypeAlias = NDArray[np.int64]
Probabilities: TypeAlias = NDArray[np.floating[Any]]
Direction: TypeAlias = Literal["higher", "lower"]
Compute: TypeAlias = Callable[[Labels, Probabilities], float]


@dataclass(frozen=True)
class Score:
    """A number for the predictions of one run on a part of its split.

    Args:
        name: What options call it.
        title: What people call it.
        compute: The score of true classes [nodes] and probabilities [nodes, classes].
        direction: Whether ``"higher"`` or ``"lower"`` is better.
        fraction: Whether it lies between 0 and 1 and is shown in per cent.
    """

    name: str
    title: str
    compute: Compute
    direction: Direction = "higher"
    fraction: bool = True

    @property
    def sign(self) -> int:
        """1 if higher is better, else −1."""
        return 1 if self.direction == "higher" else -1


def accuracy(y: Labels, p: Probabilities) -> float:
    """The share of nodes whose class is predicted."""
    return float((p.argmax(axis=1) == y).mean())


def balanced_accuracy(y: Labels, p: Probabilities) -> float:
    """The mean over the classes that occur of the share of their nodes that is predicted."""
    right = p.argmax(axis=1) == y
    return float(np.mean([right[y == c].mean() for c in np.unique(y)]))


def macro_f1(y: Labels, p: Probabilities) -> float:
    """The mean F1 of the classes that occur or are predicted."""
    found = p.argmax(axis=1)
    classes = np.union1d(y, found)
    return float(
        np.mean([2 * ((y == c) & (found == c)).sum() / ((y == c).sum() + (found == c).sum()) for c in classes])
    )


def roc_auc(y: Labels, p: Probabilities) -> float:
    """The area under the ROC curve: of class 1 where there are two, else the mean of each class against the rest.

    Example:
        >>> roc_auc(np.array([0, 0, 1, 1]), np.array([[0.9, 0.1], [0.6, 0.4], [0.65, 0.35], [0.2, 0.8]]))
        0.75
    """
    return _one_against_rest(y, p, _auc)


def average_precision(y: Labels, p: Probabilities) -> float:
    """The mean precision at each node of a class, by falling probability; classes as in :func:`roc_auc`."""
    return _one_against_rest(y, p, _precision)


def log_loss(y: Labels, p: Probabilities) -> float:
    """The mean negative logarithm of the true class's probability."""
    picked = p[np.arange(len(y)), y].astype(np.float64)
    return float(-np.log(np.maximum(picked, np.finfo(np.float32).tiny)).mean())


def truth_of(graph: Graph) -> NDArray[Any]:
    """What predictions are compared with: classes [nodes], or labels or numbers [nodes, L]."""
    return graph.y if graph.targets is None else graph.targets


def check_score(score: Score, graph: Graph, parts: Mapping[str, Split], *, picks: bool = True) -> None:
    """Try a score on validation before hours are spent on training: it must return a number.

    Where strengths are picked by it, one of our own must be defined there, too.
    """
    values = []
    for split in parts.values():
        y = truth_of(graph)[split.val]
        value = score.compute(y, np.full((len(y), graph.num_classes), 1 / graph.num_classes, np.float32))
        real = isinstance(value, int | float | np.number) and np.isscalar(value)
        if not real or isinstance(value, bool | np.bool_):
            raise TypeError(
                f"metric must return a number of (y, probabilities), but {score.title} returned {value!r:.60}."
            )
        values.append(value)
    if picks and score in OF_TASK[graph.task].values() and np.isnan(np.array(values, np.float64)).all():
        raise ValueError(
            f"metric={score.name!r} is not defined where all validation nodes have the same label, as in "
            f"{'every' if len(parts) > 1 else 'the'} split: choose another metric, or give validation nodes of others."
        )


def _one_against_rest(
    y: Labels, p: Probabilities, of_one: Callable[[NDArray[np.bool_], Probabilities], float]
) -> float:
    classes = [1] if p.shape[1] == 2 else range(p.shape[1])
    found = [of_one(y == c, p[:, c]) for c in classes if 0 < (y == c).sum() < len(y)]
    return float(np.mean(found)) if found else float("nan")


def _auc(positive: NDArray[np.bool_], p: Probabilities) -> float:
    """The share of pairs of a positive and a negative node in the right order, ties counting half."""
    values, place, count = np.unique(p, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]
    positives = int(positive.sum())
    above = rank[positive].sum() - positives * (positives + 1) / 2
    return float(above / (positives * (len(values[place]) - positives)))


def _precision(positive: NDArray[np.bool_], p: Probabilities) -> float:
    order = np.argsort(-p, kind="stable")
    hits, sorted_p = np.cumsum(positive[order]), p[order]
    ends = np.append(np.flatnonzero(np.diff(sorted_p)), len(p) - 1)  # nodes of equal probability come together
    gained = np.diff(hits[ends], prepend=0)
    return float((gained * hits[ends] / (ends + 1)).sum() / positive.sum())


def of_labels(compute: Compute) -> Compute:
    """The mean over labels of a score of each label's known nodes, from labels and probabilities [nodes, labels]."""

    def mean(y: Labels, p: Probabilities) -> float:
        found = []
        for known, mine, said in zip(~np.isnan(y.T), y.T, p.T, strict=True):
            if known.any():
                found.append(compute(mine[known].astype(np.int64), np.stack([1 - said, said], axis=1)[known]))
        return float(np.nanmean(found)) if found and not np.isnan(found).all() else float("nan")

    return mean


def f1(y: Labels, p: Probabilities) -> float:
    """The F1 of class 1 of two; 0 where it is neither true nor predicted."""
    said = p.argmax(axis=1)
    return float(2 * ((y == 1) & (said == 1)).sum() / max(1, (y == 1).sum() + (said == 1).sum()))


def _known(y: Labels, p: Probabilities) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    known = ~np.isnan(y)
    return y[known].astype(np.float64), p[known].astype(np.float64)


def r2(y: Labels, p: Probabilities) -> float:
    """The coefficient of determination, averaged over columns: 1 is perfect, 0 is the mean."""
    columns = [_known(mine, said) for mine, said in zip(y.T, p.T, strict=True)]
    return float(np.mean([1 - ((a - b) ** 2).sum() / max(((a - a.mean()) ** 2).sum(), 1e-30) for a, b in columns]))


def rmse(y: Labels, p: Probabilities) -> float:
    """The root of the mean squared error of all known numbers."""
    a, b = _known(y, p)
    return float(np.sqrt(((a - b) ** 2).mean()))


def mae(y: Labels, p: Probabilities) -> float:
    """The mean absolute error of all known numbers."""
    a, b = _known(y, p)
    return float(np.abs(a - b).mean())


SCORES = {
    score.name: score
    for score in (
        Score("accuracy", "accuracy", accuracy),
        Score("balanced_accuracy", "balanced accuracy", balanced_accuracy),
        Score("macro_f1", "macro-F1", macro_f1),
        Score("roc_auc", "ROC-AUC", roc_auc),
        Score("average_precision", "average precision", average_precision),
        Score("log_loss", "log loss", log_loss, "lower", fraction=False),
    )
}
ACCURACY = SCORES["accuracy"]
OF_TASK: dict[Task, dict[str, Score]] = {
    "classes": SCORES,
    "multilabel": {
        score.name: score
        for score in (
            Score("roc_auc", "ROC-AUC", of_labels(roc_auc)),
            Score("average_precision", "average precision", of_labels(average_precision)),
            Score("macro_f1", "macro-F1", of_labels(f1)),
            Score("accuracy", "accuracy per label", of_labels(accuracy)),
            Score("log_loss", "log loss", of_labels(log_loss), "lower", fraction=False),
        )
    },
    "regression": {
        score.name: score
        for score in (
            Score("r2", "R²", r2, fraction=False),
            Score("rmse", "RMSE", rmse, "lower", fraction=False),
            Score("mae", "MAE", mae, "lower", fraction=False),
        )
    },
}
"""By task, its scores; the first is the default."""


def score_of(metric: "str | Score | Compute | tuple[Compute, Direction] | None", task: Task = "classes") -> Score:
    """The score of a name, or of a function ``(y, probabilities) -> number``, alone or with its direction.

    Args:
        metric: The name or function; None for the usual score of the task.
        task: What is learned.

    Example:
        >>> score_of("macro_f1").title, score_of((lambda y, p: 1.0, "lower")).direction
        ('macro-F1', 'lower')
    """
    scores = OF_TASK[task]
    if metric is None:
        return next(iter(scores.values()))
    if isinstance(metric, Score):
        return metric
    direction: Any = "higher"
    if isinstance(metric, tuple) and len(metric) == 2 and callable(metric[0]):
        metric, direction = metric
        _choices.one_of("the direction of metric", direction, ("higher", "lower"))
    if not isinstance(metric, str) and callable(metric):
        name = getattr(metric, "__name__", type(metric).__name__)
        return Score(name, name.strip("<>"), metric, direction, fraction=False)
    _choices.one_of("metric", metric, scores, " or a function (y, probabilities) -> number")
    return scores[str(metric)]
