"""By what a strength is picked on validation. Imports no torch.

Of a run with n_c validation nodes of class c, of which r_c are predicted correctly:

==============  =====================================================================================================
``accuracy``    Σ_c r_c / Σ_c n_c: each class weighs as much as validation has nodes of it
``balanced``    the mean of the recalls r_c / n_c: all classes weigh the same
``reweighted``  Σ_c π_c · r_c / n_c: each class weighs as much as it is frequent where the model is to predict
``loss``        the mean negative log-likelihood, lower is better
==============  =====================================================================================================

Classes without a validation node are left out, and π is scaled to sum to 1 over the others.

π is estimated without labels of those nodes, by adjusted counts (Forman, 2008; black-box shift estimation of each class
against the rest): the plain model predicts class c for the share q_c of the nodes, for the share t_c = r_c / n_c of the
validation nodes of class c, and for the share f_c = (p_c − r_c) / (Σ n − n_c) of all others, p_c being its predictions
of c on validation. If class c is a share π_c of the nodes, then q_c = π_c · t_c + (1 − π_c) · f_c, so

    π_c = (q_c − f_c) / (t_c − f_c), at least 0, and q_c where t_c ≤ f_c.

The plain model's predictions count at all strengths: those of a strength would weigh its own favorite classes most.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from propreg import _choices
from propreg.engine.spec import PartMeasures

Select: TypeAlias = Literal["accuracy", "balanced", "reweighted", "loss"]
SELECTIONS: tuple[Select, ...] = get_args(Select)
TITLES: dict[Select, str] = {
    "accuracy": "accuracy",
    "balanced": "balanced accuracy",
    "reweighted": "accuracy reweighted by estimated class frequencies",
    "loss": "cross-entropy",
}
Frequencies: TypeAlias = NDArray[np.float64]


def check_select(select: str | None, task: str) -> None:
    """Raise if it is no way of picking a strength, or the task has no classes."""
    if select is None:
        return
    _choices.one_of("select", select, SELECTIONS, " or None")
    if task != "classes":
        raise ValueError(
            f"select is for classes, but the task is {task}: leave it out, strengths are picked by metric."
        )


def class_frequencies(val: Sequence[PartMeasures], predicted: Sequence[Sequence[int]]) -> Frequencies:
    """The estimated share of each class among nodes that the plain model predicts; sums to 1.

    Args:
        val: Of plain runs on one split, what they predict for its validation nodes.
        predicted: How many of the nodes each of these runs predicts to be of each class.

    Example:
        >>> part = PartMeasures(count=(10, 10), right=(9, 8), predicted=(11, 9), nll=0.0, brier=0.0, bins=())
        >>> class_frequencies([part], [(76, 24)]).round(6).tolist()  # (0.76 − 0.2) / (0.9 − 0.2), (0.24 − 0.1) / 0.7
        [0.8, 0.2]
    """
    count, right, said = (
        np.sum([getattr(part, name) for part in val], axis=0, dtype=np.float64)
        for name in ("count", "right", "predicted")
    )
    shares = np.sum(predicted, axis=0) / max(1, np.sum(predicted))
    within, beyond = right / np.maximum(count, 1), (said - right) / np.maximum(count.sum() - count, 1)
    apart = within - beyond
    solved = np.clip((shares - beyond) / np.where(apart > 0, apart, 1), 0, None)
    found: Frequencies = np.where(apart > 0, solved, shares)
    total = found.sum()
    return found / total if total else np.asarray(shares)


def picking_score(select: Select, val: PartMeasures, frequencies: Frequencies) -> float:
    """What a run counts when strengths are compared, higher is better.

    Args:
        select: Its name.
        val: What the run predicts for the validation nodes.
        frequencies: Of each class, see :func:`class_frequencies`; counts for ``"reweighted"`` alone.

    Example:
        >>> part = PartMeasures(count=(10, 10), right=(9, 8), predicted=(11, 9), nll=7.0, brier=0.0, bins=())
        >>> [round(picking_score(name, part, np.array([0.8, 0.2])), 6) for name in SELECTIONS]
        [0.85, 0.85, 0.88, -0.35]
    """
    count, right = np.array(val.count, np.float64), np.array(val.right, np.float64)
    if select == "loss":
        return -val.nll / float(count.sum())
    there = count > 0
    weights = {"accuracy": count, "balanced": there, "reweighted": frequencies * there}[select].astype(np.float64)
    if not weights.sum():
        weights = count  # no class of validation is predicted anywhere
    recall = np.where(there, right / np.maximum(count, 1), 0)
    return float((weights * recall).sum() / weights.sum())
