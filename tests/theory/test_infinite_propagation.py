"""Lemma 1: what propagating for ever does."""

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
    path,
    propagation,
    seeds,
    star,
    tensor,
    undirected_graphs,
)
from reference import Array
from strategies import Graph, thorough

SQUARINGS = 20  # Â a million times, far more than the slowest graph of seven nodes needs


def for_ever(a_hat: Array) -> Array:
    for _ in range(SQUARINGS):
        a_hat = a_hat @ a_hat
        a_hat /= a_hat.sum(axis=1, keepdims=True)  # stays row-stochastic, whatever rounding does
    return a_hat


@thorough
@given(graph=connected_graphs(), seed=seeds)
def test_infinite_propagation_with_loops_gives_equal_rows(graph: Graph, seed: int) -> None:
    """Lemma 1: on a connected graph with self-loops, Â^∞ Z has equal rows.

    Each is the mean of Z's rows weighted by degree, π_i = d̃_i / Σd̃. The paper's constants k ≠ 0 may well be 0: they
    are where that mean is.
    """
    limit = for_ever(propagation(graph, add_self_loops=True))
    degree = adjacency(graph, add_self_loops=True).sum(axis=1)
    np.testing.assert_allclose(limit, np.tile(degree / degree.sum(), (graph.num_nodes, 1)), atol=1e-12)
    z = tensor(limit @ normal(seed, graph.num_nodes, 3))
    assert propreg.preg(z, graph.edge_index, phi="squared_error", add_self_loops=True).item() < 1e-24


def test_the_operator_gets_there_step_by_step() -> None:
    """Propagation itself, applied again and again: every step narrows each column's range, down to equal rows."""
    graph = star(4)
    step = propreg.Propagation(graph.edge_index, graph.num_nodes, add_self_loops=True)
    z = tensor(normal(1, graph.num_nodes, 3))
    spread = torch.inf
    for _ in range(100):
        z = step(z)
        assert (z.amax(0) - z.amin(0)).max().item() <= spread + 1e-15
        spread = (z.amax(0) - z.amin(0)).max().item()
    assert spread < 1e-14


@thorough
@given(graph=undirected_graphs())
def test_the_largest_eigenvalue_is_one(graph: Graph) -> None:
    """With self-loops the eigenvalues of D⁻¹A lie in [2/max d̃ − 1, 1], and 1 occurs once per component.

    The paper's proof says that the largest is 2 and the smallest 0; those are the bounds of I − D⁻¹A's spectrum.
    Power iteration would blow up with 2; with 1 it converges. The proof needs a connected graph: a graph of several
    components has one limit row for each.
    """
    degree = adjacency(graph, add_self_loops=True).sum(axis=1)
    # Similar to D⁻¹A, hence the same eigenvalues, and symmetric, hence exactly real ones.
    eigenvalues = np.linalg.eigvalsh(adjacency(graph, add_self_loops=True) / np.sqrt(np.outer(degree, degree)))
    assert abs(eigenvalues.max() - 1.0) < 1e-12
    assert eigenvalues.min() > 2.0 / degree.max() - 1.0 - 1e-12
    assert np.sum(eigenvalues > 1.0 - 1e-9) == components(graph).max() + 1


def test_the_smallest_eigenvalue_may_be_negative() -> None:
    """On a path of three nodes with loops it is −1/6, not the proof's 0."""
    eigenvalues = np.linalg.eigvals(propagation(path(3), add_self_loops=True))
    np.testing.assert_allclose(np.sort(eigenvalues.real), [-1 / 6, 1 / 2, 1.0], atol=1e-14)


@pytest.mark.parametrize(
    ("graph", "side"), [(path(4), [1.0, -1.0, 1.0, -1.0]), (star(3), [1.0, -1.0, -1.0, -1.0])], ids=["path", "star"]
)
def test_without_loops_a_bipartite_graph_need_not_converge(graph: Graph, side: list[float]) -> None:
    """Lemma 1 needs its self-loops: on a bipartite graph without them ±1 on the two sides flips sign for ever."""
    step = propreg.Propagation(graph.edge_index, graph.num_nodes)
    z = torch.tensor(side, dtype=torch.float64)
    assert torch.equal(step(z), -z)
    assert torch.equal(step(step(z)), z)
