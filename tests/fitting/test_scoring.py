"""The scores: equal to scikit-learn's, on predictions with ties and classes that do not occur."""

from typing import Any

import numpy as np
import pytest
from sklearn import metrics

from propreg.fitting.scoring import SCORES, score_of


def predictions(seed: int, classes: int, ties: bool) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(classes), 80)
    if ties:
        p = np.round(p, 1) + 0.05
        p /= p.sum(axis=1, keepdims=True)
    return rng.integers(0, classes, 80), p


def one_hot(y: Any, classes: int) -> Any:
    return np.eye(classes, dtype=int)[y]


THEIRS: dict[str, Any] = {
    "accuracy": lambda y, p: metrics.accuracy_score(y, p.argmax(axis=1)),
    "balanced_accuracy": lambda y, p: metrics.balanced_accuracy_score(y, p.argmax(axis=1)),
    "macro_f1": lambda y, p: metrics.f1_score(y, p.argmax(axis=1), average="macro"),
    "roc_auc": lambda y, p: (
        metrics.roc_auc_score(y, p[:, 1]) if p.shape[1] == 2 else metrics.roc_auc_score(y, p, multi_class="ovr")
    ),
    "average_precision": lambda y, p: (
        metrics.average_precision_score(y, p[:, 1])
        if p.shape[1] == 2
        else metrics.average_precision_score(one_hot(y, p.shape[1]), p, average="macro")
    ),
    "log_loss": lambda y, p: metrics.log_loss(y, p, labels=range(p.shape[1])),
}


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("ties", [False, True])
def test_scikit_learn_agrees(name: str, classes: int, ties: bool) -> None:
    for seed in range(5):
        y, p = predictions(seed, classes, ties)
        assert SCORES[name].compute(y, p) == pytest.approx(THEIRS[name](y, p), rel=1e-6), seed


def test_classes_without_a_node_do_not_count() -> None:
    y, p = predictions(0, 3, ties=False)
    known = y < 2
    for name in ("roc_auc", "average_precision", "balanced_accuracy"):
        assert np.isfinite(SCORES[name].compute(y[known], p[known]))
    assert np.isnan(SCORES["roc_auc"].compute(np.zeros(4, int), np.full((4, 2), 0.5)))


def test_only_log_loss_is_better_lower() -> None:
    assert [name for name, score in SCORES.items() if score.sign < 0] == ["log_loss"]
    assert [name for name, score in SCORES.items() if not score.fraction] == ["log_loss"]


def test_what_is_no_metric() -> None:
    assert score_of(lambda y, p: len(y) / len(p)).direction == "higher"
    with pytest.raises(ValueError, match=r"metric must be one of 'accuracy', .* got 'f1'. Did you mean 'macro_f1'"):
        score_of("f1")
    with pytest.raises(ValueError, match="the direction of metric must be one of 'higher', 'lower', got 'up'"):
        score_of((lambda y, p: 0.0, "up"))  # type: ignore[arg-type]  # noqa: ARG005
    with pytest.raises(TypeError, match=r"metric must be one of .* or a function \(y, probabilities\)"):
        score_of(3)  # type: ignore[arg-type]
