"""Whether validation has other class frequencies than the nodes that a model is to predict.

Validation nodes are often drawn by class, as many of each; then validation accuracy is mean recall, and what is best
there need not be best where some classes are frequent and others rare.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from propreg.data.graph import Split
from propreg.statistics import SIGNIFICANCE

NOTICEABLE = 0.05
"""The smallest share of nodes that would have to be of another class for a difference to be worth a note."""


@dataclass(frozen=True)
class Shift:
    """The class frequencies of validation and of the labeled nodes outside training and validation, on one split.

    Args:
        chi_squared: Pearson's statistic of homogeneity of the two counts; its degrees of ``freedom`` and ``p_value``.
        distance: The total variation distance, half the sum of |v_c − o_c| over the shares of the classes.
        largest: The class whose shares differ most; ``val`` and ``others`` are the two.
    """

    chi_squared: float
    freedom: int
    p_value: float
    distance: float
    largest: int
    val: float
    others: float

    def sentence(self, names: Sequence[str]) -> str:
        """The note.

        Args:
            names: Of the classes, if they have any.
        """
        name = names[self.largest] if names else str(self.largest)
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.2g}"
        return (
            f"Validation has other class frequencies than the labeled nodes outside training and validation "
            f"(χ² = {self.chi_squared:,.0f} with {self.freedom} degrees of freedom, {p}): class {name} is "
            f"{100 * self.val:.0f} % of the former and {100 * self.others:.0f} % of the latter, so the best strength "
            "may differ."
        )


def shift_of(y: NDArray[np.int64], splits: Sequence[Split]) -> Shift | None:
    """The difference on the split where it is smallest; None unless it is significant and noticeable on every split.

    Labels outside training and validation count for this note alone.
    """
    found = [compare(y[split.val], y[(y >= 0) & ~(split.train | split.val)]) for split in splits]
    if any(each is None or each.p_value >= SIGNIFICANCE or each.distance < NOTICEABLE for each in found):
        return None
    return min((each for each in found if each is not None), key=lambda each: each.distance, default=None)


def compare(val: NDArray[np.int64], others: NDArray[np.int64]) -> Shift | None:
    """Pearson's χ² test of homogeneity of two samples of classes; None if one is empty or there is only one class.

    χ² = Σ over samples s and classes c of (n_sc − e_sc)² / e_sc, with e_sc = n_s · n_c / n.

    Example:
        >>> found = compare(np.array([0] * 10 + [1] * 10), np.array([0] * 30 + [1] * 10))
        >>> round(found.chi_squared, 6), found.freedom, round(found.p_value, 4), found.distance
        (3.75, 1, 0.0528, 0.25)
    """
    classes = 1 + max(val.max(initial=0), others.max(initial=0))
    counts = np.stack([np.bincount(each, minlength=classes) for each in (val, others)]).astype(np.float64)
    there = counts.sum(axis=0) > 0
    freedom = int(there.sum()) - 1
    if freedom < 1 or not counts.sum(axis=1).all():
        return None
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    chi_squared = float(((counts - expected)[:, there] ** 2 / expected[:, there]).sum())
    # P(χ² with k degrees of freedom > x) is the upper regularized gamma function Q(k/2, x/2).
    half = torch.tensor([freedom / 2, chi_squared / 2], dtype=torch.float64)
    shares = counts / counts.sum(axis=1, keepdims=True)
    apart = np.abs(shares[0] - shares[1])
    largest = int(apart.argmax())
    return Shift(
        chi_squared,
        freedom,
        float(torch.special.gammaincc(half[0], half[1])),
        float(apart.sum() / 2),
        largest,
        *map(float, shares[:, largest]),
    )
