"""The measures of a run's predictions, against a loop over the nodes."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from propreg.engine.spec import PartMeasures
from propreg.engine.training.measures import BINS, correct_prior, measure


def by_loop(logits: NDArray[np.float64], y: NDArray[np.int64]) -> PartMeasures:
    """Node by node."""
    classes = logits.shape[1]
    count, right, predicted = ([0] * classes for _ in range(3))
    bins = [[0, 0, 0.0] for _ in range(BINS)]
    nll = brier = 0.0
    for row, label in zip(logits, y, strict=True):
        p = np.exp(row - row.max())
        p /= p.sum()
        guess = int(row.argmax())
        count[label] += 1
        predicted[guess] += 1
        right[label] += int(guess == label)
        nll -= math.log(p[label])
        brier += sum((p[c] - (c == label)) ** 2 for c in range(classes))
        place = bins[min(int(p[guess] * BINS), BINS - 1)]
        place[0] += 1
        place[1] += int(guess == label)
        place[2] += p[guess]
    nll, brier = float(f"{nll:.6g}"), float(f"{brier:.6g}")
    triples = tuple((int(n), int(k), float(f"{c:.6g}")) for n, k, c in bins)
    area = float(f"{area_by_pairs(logits[:, 1] - logits[:, 0], y):.6g}") if classes == 2 else None
    return PartMeasures(tuple(count), tuple(right), tuple(predicted), nll, brier, triples, area)


def area_by_pairs(scores: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    """Of all pairs of a node of class 1 and one of class 0, the share in which the first scores higher."""
    pairs = [(scores[i], scores[j]) for i in np.flatnonzero(y == 1) for j in np.flatnonzero(y == 0)]
    return float(sum((one > other) + 0.5 * (one == other) for one, other in pairs) / len(pairs))


@pytest.mark.parametrize("scale", [0.0, 0.3, 3.0, 100.0])
@pytest.mark.parametrize("classes", [2, 7, 15])
def test_measures_are_those_of_the_nodes_one_by_one(classes: int, scale: float) -> None:
    rng = np.random.default_rng(classes)
    logits, y = scale * rng.standard_normal((211, classes)), rng.integers(classes, size=211)
    if scale == 100.0:
        logits[y == 0] = np.clip(logits[y == 0], -30, 30)  # the logarithm of the loop's p must exist
        logits = np.clip(logits, -300, 300)
    found = measure(torch.from_numpy(logits), torch.from_numpy(y))
    assert found is not None
    expected = by_loop(logits, y)
    assert (found.count, found.right, found.predicted) == (expected.count, expected.right, expected.predicted)
    assert found.roc_auc == expected.roc_auc
    assert [each[:2] for each in found.bins] == [each[:2] for each in expected.bins]
    for got, wanted in zip(
        (found.nll, found.brier, *(c for *_, c in found.bins)),
        (expected.nll, expected.brier, *(c for *_, c in expected.bins)),
        strict=True,
    ):
        assert got == pytest.approx(wanted, rel=2e-6, abs=1e-9)
        assert got == float(f"{got:.6g}")


def test_roc_auc_by_hand_ties_count_half() -> None:
    scores = torch.tensor([3.0, 1.0, 1.0, 0.0, -1.0])  # of classes 1, 1, 0, 1, 0
    found = measure(torch.stack([torch.zeros(5), scores], 1), torch.tensor([1, 1, 0, 1, 0]))
    assert found is not None
    # 3 is above 1 and −1; 1 ties with 1 and is above −1; 0 is below 1 and above −1: (2 + 1.5 + 1) of 3 · 2 pairs.
    assert found.roc_auc == 0.75


@pytest.mark.parametrize("y", [[0, 0, 0], [1, 1, 1]])
def test_there_is_no_roc_auc_of_one_class(y: list[int]) -> None:
    found = measure(torch.tensor([[0.0, 1.0], [0.0, 2.0], [1.0, 0.0]]), torch.tensor(y))
    assert found is not None
    assert found.roc_auc is None


def test_of_equal_logits_the_first_is_predicted() -> None:
    found = measure(torch.tensor([[1.0, 1.0], [0.0, 0.0]]), torch.tensor([0, 1]))
    assert found is not None
    assert (found.right, found.predicted) == ((1, 0), (2, 0))
    assert found.bins[7] == (2, 1, 1.0), "a confidence of 1/2 lies in the bin that begins at 7/15"


def test_a_corrected_prior_by_hand() -> None:
    """Test nodes: p = (3/4, 1/4) three times and (1/2, 1/2), so π = (11/16, 5/16)."""
    odds = torch.tensor([3.0, 3.0, 3.0, 1.0])
    test = torch.stack([odds.log(), torch.zeros(4)], 1)
    val = torch.tensor([[0.0, math.log(2)], [0.0, math.log(3)]])
    corrected = correct_prior(val, test)
    # Bayes: odds times 11/5.
    assert corrected[1].softmax(1)[3].tolist() == pytest.approx([11 / 16, 5 / 16])
    assert (corrected[0][:, 0] - corrected[0][:, 1]).exp().tolist() == pytest.approx([11 / 10, 11 / 15])
    assert corrected[0].argmax(1).tolist() == [0, 1], "odds of 2 are turned by 11/5, those of 3 are not"


def test_full_confidence_lies_in_the_last_bin() -> None:
    found = measure(torch.tensor([[500.0, 0.0]]), torch.tensor([0]))
    assert found is not None
    assert found.bins[-1] == (1, 1, 1.0)
    assert (found.nll, found.brier) == (0.0, 0.0)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_logits_that_are_not_finite_have_no_measures(value: float) -> None:
    assert measure(torch.tensor([[value, 0.0], [1.0, 2.0]]), torch.tensor([0, 1])) is None
