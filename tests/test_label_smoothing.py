"""Label smoothing needs no code of ours: torch's argument is the paper's formula, and one conversion the official's."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from reference import dense, log_softmax

Z = torch.randn(9, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
Y = torch.tensor([0, 1, 2, 3, 4, 0, 1, 2, 3])
CLASSES = 5


def soft_cross_entropy(right: float, wrong: float) -> float:
    """Mean of −Σ_c target_c log p_c with the same two numbers in every row of targets."""
    target = np.full((9, CLASSES), wrong)
    target[np.arange(9), Y.numpy()] = right
    return float(-(target * log_softmax(dense(Z))).sum(axis=1).mean())


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 1.0])
def test_torchs_argument_is_the_papers_formula(alpha: float) -> None:
    """(1 − α) y + α/C."""
    expected = soft_cross_entropy(1 - alpha + alpha / CLASSES, alpha / CLASSES)
    assert cross_entropy(Z, Y, label_smoothing=alpha).item() == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("official", [0.0, 0.1, 0.5, (CLASSES - 1) / CLASSES])
def test_the_official_form_is_one_conversion_away(official: float) -> None:
    """The official code: 1 − α' for the right class and α'/(C − 1) for each wrong one; α = α'·C/(C − 1)."""
    expected = soft_cross_entropy(1 - official, official / (CLASSES - 1))
    value = cross_entropy(Z, Y, label_smoothing=official * CLASSES / (CLASSES - 1)).item()
    assert value == pytest.approx(expected, rel=1e-13)


def test_the_conversion_ends_where_the_right_class_becomes_the_least_likely() -> None:
    """Above (C − 1)/C the official form asks for less than 1/C of the right class, which torch's argument refuses."""
    official = 0.9
    assert 1 - official < official / (CLASSES - 1)
    with pytest.raises((RuntimeError, ValueError), match="label_smoothing"):
        cross_entropy(Z, Y, label_smoothing=official * CLASSES / (CLASSES - 1))
