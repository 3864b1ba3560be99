"""The symmetric propagation of the official code: its fixed points are not the paper's."""

import numpy as np
import pytest
import torch
from hypothesis import given

import propreg
from known_graphs import (
    adjacency,
    components,
    connected_graphs,
    normal,
    normalized_laplacian,
    propagation,
    ring,
    seeds,
    star,
    tensor,
    undirected_graphs,
)
from reference import softmax
from strategies import Graph, thorough

reference_squared_error = propreg.PReg.preset("reference", phi="squared_error")
reference_kl = propreg.PReg.preset("reference", phi="kl")


@thorough
@given(graph=undirected_graphs(), seed=seeds)
def test_the_fixed_points_are_rows_in_proportion_to_the_root_of_the_degree(graph: Graph, seed: int) -> None:
    """D̃^(-1/2)(A+I)D̃^(-1/2) keeps Z = √d̃ wᵀ, with a w of its own in each component: value 0, gradient 0."""
    root = np.sqrt(adjacency(graph, add_self_loops=True).sum(axis=1))
    z = tensor(root[:, None] * normal(seed, graph.num_nodes, 3)[components(graph)], requires_grad=True)
    value = reference_squared_error(z, graph.edge_index)
    (gradient,) = torch.autograd.grad(value, z)
    assert value.item() < 1e-28
    assert gradient.abs().max().item() < 1e-14


@thorough
@given(graph=undirected_graphs())
def test_there_are_no_other_fixed_points(graph: Graph) -> None:
    """The null space of I − Â has one dimension per component, with loops and without."""
    for loops in (True, False):
        delta = normalized_laplacian(graph, "sym", add_self_loops=loops)
        dimension = graph.num_nodes - np.linalg.matrix_rank(delta, tol=1e-9)
        assert dimension == components(graph).max() + 1


@pytest.mark.parametrize("phi", ["squared_error", "kl", "reverse_kl", "l2_probability"])
def test_equal_rows_are_not_optimal_unless_the_graph_is_regular(phi: str) -> None:
    """On a star equal rows cost something under every φ; on a ring, where all degrees agree, they are free."""
    regularizer = propreg.PReg.preset("reference", phi=phi)
    for graph, free in ((star(4), False), (ring(5), True)):
        z = torch.tensor([[1.0, -1.0, 0.5]], dtype=torch.float64).expand(graph.num_nodes, 3)
        assert (regularizer(z, graph.edge_index).item() < 1e-7) == free


@thorough
@given(graph=connected_graphs(), seed=seeds)
def test_kl_is_zero_for_rows_in_proportion_plus_a_constant_per_row(graph: Graph, seed: int) -> None:
    """KL is 0 at Z = √d̃ wᵀ + u 1ᵀ: nodes of higher degree are surer, P = softmax(√d̃_i w)."""
    root = np.sqrt(adjacency(graph, add_self_loops=True).sum(axis=1))
    z = np.outer(root, normal(seed, 3)) + normal(seed + 1, graph.num_nodes, 1)
    assert abs(reference_kl(tensor(z), graph.edge_index).item()) < 1e-14


def test_kl_of_zero_does_not_mean_equal_probabilities() -> None:
    """On a star the middle is surer than the leaves at a value of 0."""
    graph = star(8)
    root = np.sqrt(adjacency(graph, add_self_loops=True).sum(axis=1))
    z = np.outer(root, [1.0, 0.0])
    assert abs(reference_kl(tensor(z), graph.edge_index).item()) < 1e-15
    assert softmax(z)[0, 0] - softmax(z)[1, 0] > 0.1


@thorough
@given(graph=connected_graphs(), seed=seeds)
def test_infinite_propagation_projects_onto_the_root_of_the_degree(graph: Graph, seed: int) -> None:
    """Lemma 1 for this operator: Â^∞ is the projection √d̃ √d̃ᵀ / Σd̃, so rows end in proportion, not equal."""
    a_hat = propagation(graph, "sym", add_self_loops=True)
    root = np.sqrt(adjacency(graph, add_self_loops=True).sum(axis=1))
    z = normal(seed, graph.num_nodes, 2)
    limit = np.linalg.matrix_power(a_hat, 2**14) @ z
    np.testing.assert_allclose(limit, np.outer(root, root @ z) / (root @ root), atol=1e-9)
