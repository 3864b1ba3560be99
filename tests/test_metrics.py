"""The metrics against scikit-learn's, from the measures of random predictions."""

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, balanced_accuracy_score, brier_score_loss, f1_score, log_loss, roc_auc_score

from propreg.engine.training.measures import measure
from propreg.metrics import METRICS


@pytest.mark.parametrize("classes", [3, 5])
@pytest.mark.parametrize("missing", [False, True], ids=["all classes", "a class without nodes"])
def test_metrics_are_scikit_learns(classes: int, missing: bool) -> None:
    rng = np.random.default_rng(classes)
    logits, y = 2 * rng.standard_normal((157, classes)), rng.integers(classes - missing, size=157)
    if missing:
        logits[:, -1] = -20.0  # nor is it predicted
    part = measure(torch.from_numpy(logits), torch.from_numpy(y))
    assert part is not None
    found = {name: metric.compute(part) for name, metric in METRICS.items()}
    p, guess = torch.from_numpy(logits).softmax(1).numpy(), logits.argmax(1)
    assert found["accuracy"] == pytest.approx(accuracy_score(y, guess), abs=1e-12)
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, guess), abs=1e-12)
    assert found["macro_f1"] == pytest.approx(f1_score(y, guess, average="macro"), abs=1e-12)
    assert found["nll"] == pytest.approx(log_loss(y, p, labels=range(classes)), rel=1e-5)
    one_hot = np.eye(classes)[y]
    brier = classes * np.mean([brier_score_loss(one_hot[:, c], p[:, c]) for c in range(classes)])
    assert found["brier"] == pytest.approx(brier, rel=1e-5)
    assert found["ece"] == pytest.approx(calibration_error(p, guess == y), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_roc_auc_of_two_classes_is_scikit_learns(dtype: torch.dtype) -> None:
    rng = np.random.default_rng(1)
    logits = torch.from_numpy(rng.integers(-4, 5, (200, 2)) / 4).to(dtype)  # with ties
    y = rng.integers(2, size=200)
    part = measure(logits, torch.from_numpy(y))
    assert part is not None
    expected = roc_auc_score(y, (logits[:, 1] - logits[:, 0]).numpy())
    assert METRICS["roc_auc"].compute(part) == pytest.approx(expected, abs=1e-6)


def test_more_classes_than_two_have_no_roc_auc() -> None:
    part = measure(torch.eye(3), torch.tensor([0, 1, 2]))
    assert part is not None
    assert np.isnan(METRICS["roc_auc"].compute(part))


def calibration_error(p: np.ndarray, right: np.ndarray, bins: int = 15) -> float:
    """Σ over bins of their share of the nodes times |accuracy − mean confidence|."""
    confidence, total = p.max(1), 0.0
    for k in range(bins):
        inside = (confidence >= k / bins) & ((confidence < (k + 1) / bins) | (k == bins - 1))
        if inside.any():
            total += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    return total


def test_directions() -> None:
    assert {name for name, metric in METRICS.items() if metric.direction == "lower"} == {"nll", "brier", "ece"}
    assert all(name == metric.name and metric.title and metric.digits > 0 for name, metric in METRICS.items())
