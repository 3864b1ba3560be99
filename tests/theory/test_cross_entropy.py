"""Cross entropy in theorem 2: as stated it does not hold, and this is what does.

Cross entropy is KL + H(P). Its infimum is 0 and no finite logits reach it. At equal rows its value is H(P) and its
gradient that of H, which is 0 for uniform P only, and there the value is log C, not a minimum. Sure predictions
approach 0, whether their rows are equal or not.
"""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import propreg
from known_graphs import connected_graphs, normal, path, propagation, seeds, tensor, two_cliques
from reference import Array, entropy, log_softmax, softmax
from strategies import Graph, thorough


def cross_entropy(graph: Graph, z: Array) -> tuple[float, Array]:
    leaf = tensor(z, requires_grad=True)
    value = propreg.preg(leaf, graph.edge_index, phi="cross_entropy")
    (gradient,) = torch.autograd.grad(value, leaf)
    return value.item(), gradient.numpy()


def entropy_gradient(z: Array) -> Array:
    """∇H of one row: −p ∘ (log p + H)."""
    gradient: Array = -softmax(z) * (log_softmax(z) + entropy(z))
    return gradient


@thorough
@given(graph=connected_graphs(), seed=seeds, scale=st.sampled_from((0.1, 1.0, 10.0)))
def test_cross_entropy_is_kl_plus_entropy(graph: Graph, seed: int, scale: float) -> None:
    """For every node that has a neighbor, and for any logits."""
    z = scale * normal(seed, graph.num_nodes, 4)
    terms: dict[str, Array] = {}
    for phi in ("cross_entropy", "kl"):
        per_node: Tensor = propreg.preg(tensor(z), graph.edge_index, phi=phi, reduction="none")
        terms[phi] = per_node.numpy()
    np.testing.assert_allclose(terms["cross_entropy"], terms["kl"] + [entropy(row) for row in z], rtol=1e-12)


@thorough
@given(graph=connected_graphs(), seed=seeds)
def test_at_equal_rows_the_value_is_the_entropy_and_so_is_the_gradient(graph: Graph, seed: int) -> None:
    """Value H(P), gradient ∇H/N in every row: not 0, although the paper's proof computes 0.

    That proof puts the mean of the neighbors' probabilities for Q and takes Σ_m log(Q_m) ∂P_m for 0; but log Q_m
    depends on m.
    """
    row = normal(seed, 3)
    value, gradient = cross_entropy(graph, np.tile(row, (graph.num_nodes, 1)))
    np.testing.assert_allclose(value, entropy(row), rtol=1e-13)
    expected = np.tile(entropy_gradient(row) / graph.num_nodes, (graph.num_nodes, 1))
    np.testing.assert_allclose(gradient, expected, atol=1e-14)
    assert np.abs(gradient).max() > 1e-6


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_the_gradient_at_equal_rows_is_zero_only_for_uniform_predictions(classes: int) -> None:
    """∇H = 0 needs log p equal for all classes. There the value is log C, and making every row surer lowers it."""
    graph = two_cliques(3)
    uniform = np.zeros((6, classes))
    value, gradient = cross_entropy(graph, uniform)
    np.testing.assert_allclose(value, np.log(classes), rtol=1e-14)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-16)
    for tilt in (1e-3, 0.1, 1.0):
        surer = uniform + tilt * np.eye(classes)[0]
        lower, slope = cross_entropy(graph, surer)
        assert lower < value
        assert np.abs(slope).max() > 1e-6


@thorough
@given(graph=connected_graphs(), seed=seeds)
def test_the_infimum_is_not_reached(graph: Graph, seed: int) -> None:
    """The value is at least the mean of H(P), which is positive for finite logits and two classes: no minimizer."""
    z = 3 * normal(seed, graph.num_nodes, 3)
    value, _ = cross_entropy(graph, z)
    assert value >= np.mean([entropy(row) for row in z]) - 1e-14 > 0


def test_sure_predictions_with_unequal_rows_approach_the_infimum() -> None:
    """Two cliques and a bridge: each clique sure of its own class. The value goes to 0; the rows stay unequal.

    The two nodes of the bridge have one neighbor of the other class in four: their Q still leans to their own class
    by half the margin, so the value falls like the bridge's e^(−scale/2).
    """
    graph = two_cliques(4)
    labels = np.repeat(np.eye(2), 4, axis=0)
    values = [cross_entropy(graph, scale * labels)[0] for scale in (5.0, 10.0, 20.0, 40.0, 80.0)]
    assert values == sorted(values, reverse=True)
    assert 0 < values[-1] < 1e-16
    bridge = 2 / 8 * np.log1p(np.exp(-40.0 / 2))
    np.testing.assert_allclose(values[3], bridge, rtol=1e-6)


def test_theorem_2_does_not_hold_for_cross_entropy() -> None:
    """Â^∞ Z is not the minimizer that theorem 2 says it is: Z itself, with its unequal rows, has a smaller value.

    Equal rows are not even a local minimum: a step down the gradient makes them surer.
    """
    graph = two_cliques(4)
    z = 10.0 * np.repeat(np.eye(2), 4, axis=0)
    smoothed = np.linalg.matrix_power(propagation(graph, add_self_loops=True), 10_000) @ z
    np.testing.assert_allclose(smoothed, np.tile(smoothed[0], (8, 1)), atol=1e-9)
    unequal, _ = cross_entropy(graph, z)
    tilted = smoothed + np.array([0.5, 0.0])  # away from the uniform rows, where the gradient is 0
    equal, gradient = cross_entropy(graph, tilted)
    assert unequal < 0.01
    assert equal > 0.5
    lower, _ = cross_entropy(graph, tilted - gradient)
    assert lower < equal


@thorough
@given(graph=connected_graphs(), seed=seeds)
def test_with_the_target_held_fixed_equal_rows_are_stationary(graph: Graph, seed: int) -> None:
    """What holds of theorem 2: without a gradient through P (``detach="self"``) equal rows have the gradient 0."""
    z = tensor(np.tile(normal(seed, 3), (graph.num_nodes, 1)), requires_grad=True)
    propreg.preg(z, graph.edge_index, detach="self").backward()  # type: ignore[no-untyped-call]
    assert z.grad is not None
    assert z.grad.abs().max().item() < 1e-15


@thorough
@given(graph=connected_graphs(), seed=seeds)
def test_q_is_the_geometric_mean_of_the_neighbors(graph: Graph, seed: int) -> None:
    """Q, the softmax of mean logits, is the geometric mean of the neighbors' P, scaled to sum 1: Q ∝ exp(Â log P).

    The paper's proof has the arithmetic mean ÂP in its place.
    """
    z = normal(seed, graph.num_nodes, 3)
    geometric = np.exp(propagation(graph) @ log_softmax(z))
    q = geometric / geometric.sum(axis=1, keepdims=True)
    per_node = propreg.preg(tensor(z), graph.edge_index, reduction="none")
    np.testing.assert_allclose(per_node.numpy(), -(softmax(z) * np.log(q)).sum(axis=1), rtol=1e-12)


def test_q_is_not_the_arithmetic_mean() -> None:
    """A node between a neighbor sure of class 0 and one sure of class 1: with ÂP the value would be 1.82, not 1.43."""
    z = np.array([[4.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 4.0, 0.0]])
    value = propreg.preg(tensor(z), path(3).edge_index, reduction="none")[1].item()
    arithmetic = (softmax(z[0]) + softmax(z[2])) / 2
    assert value == pytest.approx(1.4253, abs=1e-4)
    assert -np.mean(np.log(arithmetic)) == pytest.approx(1.8193, abs=1e-4)
