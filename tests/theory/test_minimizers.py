"""Lemma 2 and section 3.2: what minimizes squared-error P-reg, and where descent ends."""

import numpy as np
import pytest
import torch
from hypothesis import given
from torch import Tensor

import propreg
from known_graphs import (
    adjacency,
    component_means,
    components,
    connected_graphs,
    in_three_pieces,
    normal,
    normalized_laplacian,
    path,
    propagation,
    seeds,
    star,
    tensor,
    two_cliques,
    undirected,
    undirected_graphs,
)
from reference import Array
from strategies import Graph, graphs, thorough


def value_and_gradient(graph: Graph, z: Array, **options: object) -> tuple[float, Array]:
    leaf = tensor(z, requires_grad=True)
    value: Tensor = propreg.preg(leaf, graph.edge_index, phi="squared_error", **options)  # type: ignore[arg-type]
    (gradient,) = torch.autograd.grad(value, leaf)
    return value.item(), gradient.numpy()


@thorough
@given(graph=undirected_graphs(), seed=seeds)
def test_equal_rows_per_component_are_minimizers(graph: Graph, seed: int) -> None:
    """Lemma 2, one half: rows equal within every component give the value 0 and the gradient 0."""
    z = normal(seed, graph.num_nodes, 3)[components(graph)]
    value, gradient = value_and_gradient(graph, z)
    assert value < 1e-28
    np.testing.assert_allclose(gradient, 0.0, atol=1e-15)


@thorough
@given(graph=undirected_graphs(), seed=seeds)
def test_nothing_else_is_a_minimizer(graph: Graph, seed: int) -> None:
    """Lemma 2, the other half, which the paper does not show: no other Z gives 0.

    The value is 0 just where Δ̃Z = 0, and the null space of Δ̃ has one dimension per component: the rows that are
    equal within each. Away from them, by a distance δ, the value is at least λδ²/(2N) with λ the smallest positive
    eigenvalue of Δ̃ᵀΔ̃. (The paper speaks of a connected graph and of equal rows everywhere.)
    """
    delta = normalized_laplacian(graph)
    eigenvalues = np.linalg.eigvalsh(delta.T @ delta)
    pieces = components(graph).max() + 1
    assert np.sum(eigenvalues < 1e-9) == pieces
    z = normal(seed, graph.num_nodes, 3)
    distance = np.sum((z - component_means(graph) @ z) ** 2)
    smallest = eigenvalues[pieces] if pieces < graph.num_nodes else 0.0
    value, _ = value_and_gradient(graph, z)
    assert value >= smallest * distance / (2 * graph.num_nodes) - 1e-12


def test_on_a_directed_graph_equal_rows_are_not_the_only_minimizers() -> None:
    """Lemma 2 is about undirected graphs. With edges 0 → 2 ← 1 node 2 has only to be the mean of the other two.

    The null space then has a dimension for each part that listens to no other, here nodes 0 and 1, and not one for
    the whole connected piece.
    """
    graph = Graph(torch.tensor([[0, 1], [2, 2]]), 3)
    value, gradient = value_and_gradient(graph, np.array([[0.0, 8.0], [2.0, 0.0], [1.0, 4.0]]))
    assert value == 0.0
    assert not gradient.any()


@thorough
@given(graph=graphs(weighted=False), seed=seeds)
def test_the_value_is_convex_and_its_gradient_linear(graph: Graph, seed: int) -> None:
    """The gradient is Δ̃ᵀΔ̃Z/N on every graph, so a point without gradient is a minimizer: value = ⟨Z, ∇⟩/2."""
    z = normal(seed, graph.num_nodes, 3)
    delta = normalized_laplacian(graph)
    value, gradient = value_and_gradient(graph, z)
    np.testing.assert_allclose(gradient, delta.T @ delta @ z / graph.num_nodes, atol=1e-13)
    np.testing.assert_allclose(value, 0.5 * np.sum(z * gradient), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("graph", [in_three_pieces(), star(4)], ids=["three pieces", "star"])
def test_descent_reaches_the_component_means(graph: Graph) -> None:
    """Gradient descent ends at equal rows per component: at the plain mean of the rows it started from.

    The paper says that minimizing and infinite propagation end at the same point. They end in the same set: Â^∞ Z is
    the mean weighted by degree, and descent's limit the plain mean, the nearest minimizer to the start.
    """
    start = normal(2, graph.num_nodes, 2)
    delta = normalized_laplacian(graph)
    rate = graph.num_nodes / np.linalg.eigvalsh(delta.T @ delta).max()
    z = start
    for _ in range(200):
        z = z - rate * value_and_gradient(graph, z)[1]
    np.testing.assert_allclose(z, component_means(graph) @ start, atol=1e-10)


def test_descent_and_infinite_propagation_end_in_different_points() -> None:
    """On a path with loops the middle has degree 3 and the ends 2: the two limits differ for a general start."""
    graph, start = path(3), np.array([1.0, 0.0, 0.0])
    degree = adjacency(graph, add_self_loops=True).sum(axis=1)
    propagated = degree @ start / degree.sum()
    np.testing.assert_allclose(component_means(graph) @ start, 1 / 3)
    np.testing.assert_allclose(propagated, 2 / 7)


@thorough
@given(graph=connected_graphs(), seed=seeds)
def test_one_step_with_the_neighbors_held_fixed_is_one_propagation(graph: Graph, seed: int) -> None:
    """Section 3.2: with ÂZ held fixed, Z − N·∇ is ÂZ: a gradient step of rate N is a graph convolution."""
    z = normal(seed, graph.num_nodes, 3)
    _, gradient = value_and_gradient(graph, z, detach="neighbours")
    step = z - graph.num_nodes * gradient
    np.testing.assert_allclose(step, propagation(graph) @ z, rtol=0, atol=1e-14)


def test_one_step_is_bit_for_bit_on_numbers_without_rounding() -> None:
    """The same with whole numbers on a ring of four, where nothing is rounded: equal to the last bit."""
    graph = undirected(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    z = np.array([[4.0, -8.0], [12.0, 0.0], [0.0, 4.0], [-4.0, 2.0]])
    _, gradient = value_and_gradient(graph, z, detach="neighbours")
    assert np.array_equal(z - 4 * gradient, propagation(graph) @ z)


def test_the_iteration_of_section_3_2_may_never_lower_the_value() -> None:
    """Section 3.2 lets k → ∞. Without self-loops on a bipartite graph that iteration flips and the value stays.

    True descent, through both sides, lowers it from the same start.
    """
    graph, z = path(4), np.array([[1.0], [-1.0], [1.0], [-1.0]])
    before, _ = value_and_gradient(graph, z)
    _, held = value_and_gradient(graph, z, detach="neighbours")
    after, _ = value_and_gradient(graph, z - 4 * held)
    assert after == before == 2.0
    _, full = value_and_gradient(graph, z)
    lower, _ = value_and_gradient(graph, z - 0.1 * full)
    assert lower < before


def test_rank_one_does_not_mean_equal_rows() -> None:
    """The paper's proof of theorem 2 goes by rank(Z) = 1. Rows in proportion have rank 1 and need not be equal.

    Such a Z minimizes nothing: no φ is 0 there. And P may have equal rows where Z has rank 2.
    """
    graph = two_cliques(3)
    z = np.outer(np.arange(1.0, 7.0), [1.0, -1.0, 0.5])
    assert np.linalg.matrix_rank(z) == 1
    for phi in ("squared_error", "kl", "reverse_kl", "l2_probability"):
        assert propreg.preg(tensor(z), graph.edge_index, phi=phi).item() > 0.01
    equal = np.tile([1.0, -1.0, 0.5], (6, 1)) + np.arange(6.0)[:, None]
    assert np.linalg.matrix_rank(equal) == 2
    assert propreg.preg(tensor(equal), graph.edge_index, phi="kl").item() < 1e-15
