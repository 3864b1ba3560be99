"""Values published in the unit tests of TensorFlow's Neural Structured Learning, for its distances and regularizer.

They are from ``lib/distances_test.py``, ``keras/layers/pairwise_distance_test.py`` and
``keras/graph_regularization_test.py`` of tensorflow/neural-structured-learning. NSL compares a sample with each of its
neighbors: here each sample is a node that hears one other node.
"""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from propreg import laplacian, preg

SAMPLES, NEIGHBORS = [[1, 1], [2, 2], [0, 2], [5, 5]], [[1, 1], [0, 2], [4, 4], [1, 4]]


def pairs(samples: Any, neighbors: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Nodes, edges neighbor → sample, and the numbers of the samples."""
    z = torch.tensor([*samples, *neighbors], dtype=torch.float64)
    number = torch.arange(len(samples))
    return z, torch.stack([number + len(samples), number]), number


def logits(probabilities: Any) -> list[list[float]]:
    """Logits of a distribution; 0 becomes e^-80."""
    return [[float(np.log(max(p, np.exp(-80)))) for p in row] for row in probabilities]


def test_cosine_distance() -> None:
    z, edges, samples = pairs([[1, 1], [1, 1], [3, 4], [-1, -1]], [[1, 1], [5, 5], [4, 3], [1, 1]])
    assert preg(z, edges, phi="cosine", mask=samples).item() == pytest.approx(0.51, abs=1e-12)


def test_l2_distance() -> None:
    z, edges, samples = pairs(SAMPLES, NEIGHBORS)
    assert laplacian(z, edges).item() == pytest.approx(10.25, abs=1e-12)
    assert 2 * preg(z, edges, phi="squared_error", mask=samples).item() == pytest.approx(10.25, abs=1e-12)


def test_weighted_l2_distance() -> None:
    """NSL's default divides by the number of weights that are not 0, its MEAN, as propreg, by their sum."""
    z, edges, _ = pairs(SAMPLES, NEIGHBORS)
    weight = torch.tensor([1.0, 0.0, 0.5, 0.5], dtype=torch.float64)
    total = laplacian(z, edges, weight, reduction="sum").item()
    assert total / 3 == pytest.approx(18.5 / 3, abs=1e-12)
    assert laplacian(z, edges, weight).item() == pytest.approx(18.5 / 2, abs=1e-12)


@pytest.mark.parametrize(("phi", "expected"), [("kl", 0.569814), ("jensen_shannon", 0.112710)])
def test_divergences_from_logits(phi: Any, expected: float) -> None:
    """The tests compute their expectations; these are the numbers."""
    z, edges, samples = pairs([[1, 2, 3], [1, -1, 2]], [[1, 2, 3], [1, 0, -1]])
    assert preg(z, edges, phi=phi, mask=samples).item() == pytest.approx(expected, abs=1e-6)


def test_divergences_of_distributions() -> None:
    z, edges, samples = pairs(logits([[0.3, 0.3, 0.4]]), logits([[0.9, 0.05, 0.05]]))
    assert preg(z, edges, phi="kl", mask=samples).item() == pytest.approx(1.039720, abs=1e-6)
    z, edges, samples = pairs(logits([[1, 0, 0], [0.1, 0.2, 0.7]]), logits([[1, 0, 0], [0.1, 0.9, 0]]))
    assert preg(z, edges, phi="jensen_shannon", mask=samples).item() == pytest.approx(0.181528, abs=1e-6)


@pytest.mark.parametrize(
    ("neighbors", "gradient"), [([[2.5, 3.0]], [-2.0, -6.0]), ([[2.5, 3.0], [2.0, 2.0]], [-3.0, -9.0])]
)
def test_one_step_of_a_linear_model_with_its_neighbors(neighbors: list[list[float]], gradient: list[float]) -> None:
    """A linear regression of one sample with label 0, its squared error plus the mean squared distance."""
    w = torch.tensor([[4.0], [-3.0]], requires_grad=True)
    x = torch.tensor([[2.0, 3.0], *neighbors])
    edges = torch.tensor([[1, 2][: len(neighbors)], [0, 0][: len(neighbors)]])
    optimizer = torch.optim.SGD([w], lr=0.01)
    z = x @ w
    loss = z[0].square().sum() + laplacian(z, edges)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    assert w.grad is not None
    assert w.grad.flatten().tolist() == pytest.approx(gradient, abs=1e-5)
    assert w.flatten().tolist() == pytest.approx([4 - 0.01 * gradient[0], -3 - 0.01 * gradient[1]], abs=1e-6)
