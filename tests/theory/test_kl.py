"""KL in theorem 2: which logits have the value 0, and what a small value means.

The exact statement, for an undirected graph with k components, N nodes and C classes: KL P-reg is 0 if and only if P
has equal rows within each component, that is, Z = (one row w per component) + u 1ᵀ with *any* u, one constant per
row. These Z are a linear space of dimension k(C − 1) + N.
"""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

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
    tensor,
    two_cliques,
    undirected_graphs,
)
from reference import Array, softmax
from strategies import Graph, thorough


def kl(graph: Graph, z: Array) -> tuple[float, Array]:
    leaf = tensor(z, requires_grad=True)
    value = propreg.preg(leaf, graph.edge_index, phi="kl")
    (gradient,) = torch.autograd.grad(value, leaf)
    return value.item(), gradient.numpy()


@thorough
@given(graph=undirected_graphs(), seed=seeds)
def test_equal_probabilities_per_component_are_minimizers(graph: Graph, seed: int) -> None:
    """Any row per component plus any constant per row has the value 0 and the gradient 0."""
    z = normal(seed, graph.num_nodes, 3)[components(graph)] + 3 * normal(seed + 1, graph.num_nodes, 1)
    value, gradient = kl(graph, z)
    assert abs(value) < 1e-14
    np.testing.assert_allclose(gradient, 0.0, atol=1e-14)


@thorough
@given(graph=undirected_graphs(max_nodes=6), classes=st.integers(1, 4))
def test_nothing_else_is_a_minimizer(graph: Graph, classes: int) -> None:
    """KL is 0 where P = Q, that is where Δ̃Z is one constant per row, Δ̃Z = c 1ᵀ: where Δ̃Z(I − 11ᵀ/C) = 0.

    This is linear in Z, and its solutions have dimension k(C − 1) + N: the ones of the test above and no more. (Take
    from each row its mean: what is left lies in the null space of Δ̃, hence has equal rows in each component.)
    """
    centring = np.eye(classes) - 1.0 / classes
    condition = np.kron(normalized_laplacian(graph), centring)  # acts on Z row by row
    dimension = condition.shape[1] - np.linalg.matrix_rank(condition, tol=1e-9)
    pieces = components(graph).max() + 1
    assert dimension == pieces * (classes - 1) + graph.num_nodes


@thorough
@given(graph=connected_graphs(), seed=seeds)
def test_the_constants_per_row_need_not_be_zero(graph: Graph, seed: int) -> None:
    """At a minimizer Δ̃Z = c 1ᵀ; c need not be 0. On a connected graph it may be any c with πᵀc = 0, π_i = d_i/Σd.

    πᵀΔ̃ = 0 forces that one condition, and Δ̃ has rank N − 1, so there is no other. Hence Z itself need not have equal
    rows and squared error may be large: compare P, not Z.
    """
    degree = adjacency(graph).sum(axis=1)
    stationary = degree / degree.sum()
    delta = normalized_laplacian(graph)
    np.testing.assert_allclose(stationary @ delta, 0.0, atol=1e-15)
    c = normal(seed, graph.num_nodes)
    c -= stationary @ c
    u = np.linalg.lstsq(delta, c, rcond=None)[0]
    np.testing.assert_allclose(delta @ u, c, atol=1e-10)
    z = np.tile(normal(seed + 1, 3), (graph.num_nodes, 1)) + u[:, None]
    value, _ = kl(graph, z)
    assert abs(value) < 1e-12
    np.testing.assert_allclose(softmax(z), np.tile(softmax(z)[0], (graph.num_nodes, 1)), atol=1e-10)
    if np.abs(c).max() > 0.1:
        assert propreg.preg(tensor(z), graph.edge_index, phi="squared_error").item() > 1e-4


@thorough
@given(graph=connected_graphs(), seed=seeds)
def test_a_value_of_zero_means_equal_probabilities_and_nothing_less(graph: Graph, seed: int) -> None:
    """Pinsker: each node's KL is at least ½‖P_i − Q_i‖₁², so the value is 0 only where P = Q."""
    z = 2 * normal(seed, graph.num_nodes, 4)
    per_node = propreg.preg(tensor(z), graph.edge_index, phi="kl", reduction="none").numpy()
    apart = np.abs(softmax(z) - softmax(propagation(graph) @ z)).sum(axis=1)
    assert np.all(per_node >= 0.5 * apart**2 - 1e-14)


def test_a_small_value_does_not_mean_nearly_equal_rows() -> None:
    """The minimum 0 is also approached at infinity, by sure predictions that differ between two cliques.

    So "minimizing KL gives equal rows" holds for the minimizers and not for every minimizing sequence: here the value
    falls below 1e-12 while P stays as unequal as can be, and the gradient vanishes as well.
    """
    graph = two_cliques(4)
    labels = np.repeat(np.eye(2), 4, axis=0)
    values = []
    for scale in (10.0, 20.0, 40.0, 80.0):
        value, gradient = kl(graph, scale * labels)
        values.append(value)
    assert values == sorted(values, reverse=True)
    assert abs(values[-1]) < 1e-12
    assert np.abs(gradient).max() < 1e-12
    assert np.abs(softmax(80.0 * labels)[0] - softmax(80.0 * labels)[-1]).max() > 0.999


def test_the_value_is_not_convex() -> None:
    """On the line from sure but unequal rows to equal ones the value rises first: the way to 0 may lead uphill."""
    graph = two_cliques(4)
    unequal, equal = 40.0 * np.repeat(np.eye(2), 4, axis=0), np.tile([40.0, 0.0], (8, 1))
    ends = [kl(graph, z)[0] for z in (unequal, equal)]
    between = [kl(graph, (1 - t) * unequal + t * equal)[0] for t in np.linspace(0.05, 0.95, 19)]
    assert max(ends) < 1e-8
    assert max(between) > 0.1


def test_descent_from_moderate_logits_reaches_equal_probabilities() -> None:
    """An example, no theorem (see the two tests above): from normal logits on a ring, descent reaches a minimizer."""
    graph, z = ring(5), normal(3, 5, 3)
    for _ in range(300):
        z = z - 8.0 * kl(graph, z)[1]
    p = softmax(z)
    np.testing.assert_allclose(p, np.tile(p[0], (5, 1)), atol=1e-10)
