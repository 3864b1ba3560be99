"""Theorem 1 and the kernel behind it: squared-error P-reg as a quadratic form."""

import numpy as np
import pytest
from hypothesis import given

import propreg
from known_graphs import (
    adjacency,
    component_means,
    normal,
    normalized_laplacian,
    path,
    propagation,
    ring,
    seeds,
    star,
    tensor,
    undirected_graphs,
)
from reference import Array
from strategies import Graph, graphs, thorough


def value(graph: Graph, z: Array) -> float:
    return propreg.preg(tensor(z), graph.edge_index, graph.edge_weight, phi="squared_error").item()


@thorough
@given(graph=undirected_graphs(), seed=seeds)
def test_squared_error_is_the_quadratic_form_of_theorem_1(graph: Graph, seed: int) -> None:
    """Theorem 1: squared-error P-reg is ⟨Z, RZ⟩/(2N) with R = Δ̃ᵀΔ̃ and Δ̃ = I − D⁻¹A.

    It holds for every graph. The paper's D⁻¹ needs every node to have a neighbor; the row of Δ̃ of a node without
    one is 0 here.
    """
    z = normal(seed, graph.num_nodes, 3)
    delta = normalized_laplacian(graph)
    expected = np.sum(z * (delta.T @ delta @ z)) / (2 * graph.num_nodes)
    np.testing.assert_allclose(value(graph, z), expected, rtol=1e-12, atol=1e-14)


@thorough
@given(graph=graphs(weighted=True), seed=seeds)
def test_theorem_1_needs_no_symmetry(graph: Graph, seed: int) -> None:
    """The quadratic form stays right for directed and weighted multigraphs with loops."""
    z = normal(seed, graph.num_nodes, 2)
    a = graph.sparse().to_dense().numpy()
    degree = a.sum(axis=1)
    delta = np.diag((degree > 0) * 1.0) - a / np.where(degree > 0, degree, 1.0)[:, None]
    expected = np.sum(z * (delta.T @ delta @ z)) / (2 * graph.num_nodes)
    np.testing.assert_allclose(value(graph, z), expected, rtol=1e-12, atol=1e-14)


def test_r_is_a_function_of_the_laplacian_only_on_regular_graphs() -> None:
    """The paper writes R = r(Δ̃), a scalar function of Δ̃'s eigenvalues. That needs a symmetric Δ̃.

    On a ring (every degree 2) Δ̃ is symmetric and R = Δ̃². On a star it is not symmetric, R is not Δ̃², and R does not
    even commute with Δ̃, so it is no function of it at all. The quadratic form of theorem 1 holds all the same.
    """
    regular, irregular = normalized_laplacian(ring(5)), normalized_laplacian(star(3))
    np.testing.assert_allclose(regular.T @ regular, regular @ regular, atol=1e-15)
    r = irregular.T @ irregular
    assert np.abs(r - irregular @ irregular).max() > 0.1
    assert np.abs(r @ irregular - irregular @ r).max() > 0.1


@thorough
@given(graph=undirected_graphs(), seed=seeds)
def test_the_kernel_is_a_pseudo_inverse(graph: Graph, seed: int) -> None:
    """The paper's kernel (Δ̃ᵀΔ̃)⁻¹ does not exist: R is singular on every graph, since R1 = 0.

    Its pseudo-inverse K is the reproducing kernel of ⟨f, Rg⟩, on the functions that sum to 0 on every component:
    KR takes from any f its component means, and ⟨K_i, Rf⟩ = f_i for such an f.
    """
    delta = normalized_laplacian(graph)
    r = delta.T @ delta
    np.testing.assert_allclose(r @ np.ones(graph.num_nodes), 0.0, atol=1e-14)
    assert np.linalg.matrix_rank(r, tol=1e-9) < graph.num_nodes
    kernel = np.linalg.pinv(r, rcond=1e-9, hermitian=True)
    f = normal(seed, graph.num_nodes)
    centered = f - component_means(graph) @ f
    np.testing.assert_allclose(kernel @ r @ f, centered, atol=1e-9)
    np.testing.assert_allclose(kernel.T @ r @ centered, centered, atol=1e-9)


@pytest.mark.parametrize("graph", [path(4), star(3)], ids=["path", "star"])
def test_the_last_step_of_lemma_2_divides_by_the_squared_degree(graph: Graph) -> None:
    """‖ÂZ − Z‖² = Σ_i d_i⁻² ‖(ΔZ)_i‖² with Δ = D − A.

    The paper's last line has d_i⁻¹ and Δ̃ instead; that is another number wherever a degree is not 1, with Δ̃ and with
    Δ. Its conclusion stands: both are 0 for equal rows.
    """
    z = normal(0, graph.num_nodes, 3)
    a = adjacency(graph)
    degree = a.sum(axis=1)
    laplacian = np.diag(degree) - a
    frobenius = np.sum((propagation(graph) @ z - z) ** 2)
    row = np.sum((laplacian @ z) ** 2, axis=1)
    row_normalized = np.sum((normalized_laplacian(graph) @ z) ** 2, axis=1)
    np.testing.assert_allclose(np.sum(row / degree**2), frobenius, rtol=1e-13)
    np.testing.assert_allclose(2 * graph.num_nodes * value(graph, z), frobenius, rtol=1e-13)
    assert abs(np.sum(row / degree) - frobenius) > 0.1
    assert abs(np.sum(row_normalized / degree) - frobenius) > 0.1
