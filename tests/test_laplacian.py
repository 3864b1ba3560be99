"""The graph Laplacian regularizer against its definition, edge by edge in NumPy."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import propreg
from known_graphs import adjacency, normal, seeds, tensor, undirected_graphs
from reference import dense
from strategies import Graph, graphs, logits, thorough

TRIANGLE = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])


def by_hand(graph: Graph, z: Tensor, norm: str | None, reduction: str) -> float:
    """Σ w_ij ‖z_i − z_j‖² over unordered pairs i < j that are joined; loops are no pair."""
    listed: dict[tuple[int, int], float] = {}  # an edge of weight 0 is no edge
    weights = [1.0] * graph.edge_index.shape[1] if graph.edge_weight is None else graph.edge_weight.tolist()
    for (source, target), weight in zip(graph.edge_index.t().tolist(), weights, strict=True):
        if weight > 0:
            listed[source, target] = listed.get((source, target), 0.0) + weight
    pairs: dict[tuple[int, int], float] = {}
    for i, j in {(min(e), max(e)) for e in listed if e[0] != e[1]}:
        directions = [listed[e] for e in ((i, j), (j, i)) if e in listed]
        pairs[i, j] = 1.0 if graph.edge_weight is None else sum(directions) / len(directions)
    rows = dense(z)
    if norm == "sym":
        degree = np.zeros(len(rows))
        for (i, j), weight in pairs.items():
            degree[i] += weight
            degree[j] += weight
        rows = rows / np.sqrt(np.where(degree > 0, degree, 1.0))[:, None]
    total = sum(weight * float(np.sum((rows[i] - rows[j]) ** 2)) for (i, j), weight in pairs.items())
    return total if reduction == "sum" else total / (sum(pairs.values()) or 1.0)


@st.composite
def cases(draw: st.DrawFn, weighted: bool | None = None) -> tuple[Graph, Tensor]:
    graph = draw(graphs(weighted=weighted))
    return graph, draw(logits(graph.num_nodes))


@thorough
@given(case=cases(), norm=st.sampled_from((None, "sym")), reduction=st.sampled_from(("mean", "sum")))
def test_it_is_the_sum_over_undirected_edges(case: tuple[Graph, Tensor], norm: str | None, reduction: str) -> None:
    """Isolated nodes, loops, duplicates, one-way edges, weights, one node, no edge."""
    graph, z = case
    value: Tensor = propreg.laplacian(z, graph.edge_index, graph.edge_weight, norm=norm, reduction=reduction)  # type: ignore[arg-type]
    np.testing.assert_allclose(value.item(), by_hand(graph, z, norm, reduction), rtol=1e-10, atol=1e-12)


@thorough
@given(case=cases(weighted=False))
def test_the_official_variant_is_twice_the_squared_mean_length(case: tuple[Graph, Tensor]) -> None:
    """2 · (mean ‖z_i − z_j‖)² over the edges as they are listed, loops and duplicates included (notes, row 11)."""
    graph, z = case
    source, target = graph.edge_index.numpy()
    lengths = np.sqrt(np.sum((dense(z)[source] - dense(z)[target]) ** 2, axis=1))
    expected = 2 * lengths.mean() ** 2 if len(lengths) else 0.0
    value = propreg.laplacian(z, graph.edge_index, variant="official").item()
    np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-12)


@thorough
@given(graph=undirected_graphs(), seed=seeds)
def test_the_papers_sum_is_the_quadratic_form_of_the_laplacian(graph: Graph, seed: int) -> None:
    """⟨Z, (D − A)Z⟩, and with ``norm="sym"`` ⟨Z, (I − D^(-1/2) A D^(-1/2))Z⟩ over the nodes that have an edge."""
    z = normal(seed, graph.num_nodes, 3)
    a = adjacency(graph)
    degree = a.sum(axis=1)
    plain = np.sum(z * ((np.diag(degree) - a) @ z))
    root = np.sqrt(np.where(degree > 0, degree, 1.0))
    symmetric = np.sum(z * ((np.diag((degree > 0) * 1.0) - a / np.outer(root, root)) @ z))
    value = propreg.laplacian(tensor(z), graph.edge_index, reduction="sum").item()
    normed = propreg.laplacian(tensor(z), graph.edge_index, norm="sym", reduction="sum").item()
    np.testing.assert_allclose([value, normed], [plain, symmetric], rtol=1e-11, atol=1e-12)


@thorough
@given(case=cases(), seed=seeds)
def test_neither_the_order_of_edges_nor_of_nodes_matters(case: tuple[Graph, Tensor], seed: int) -> None:
    graph, z = case
    rng = np.random.default_rng(seed)
    edges = torch.from_numpy(rng.permutation(graph.edge_index.shape[1]))
    nodes = torch.from_numpy(rng.permutation(graph.num_nodes))
    weight = None if graph.edge_weight is None else graph.edge_weight[edges]
    value = propreg.laplacian(z, graph.edge_index, graph.edge_weight)
    other = propreg.laplacian(z[nodes], nodes.argsort()[graph.edge_index[:, edges]], weight)
    torch.testing.assert_close(other, value, rtol=1e-10, atol=1e-12)


def test_each_undirected_edge_counts_once_and_a_loop_not_at_all() -> None:
    z = torch.tensor([[0.0], [2.0], [5.0]])
    once = propreg.laplacian(z, torch.tensor([[0], [1]]), reduction="sum")
    often = propreg.laplacian(z, torch.tensor([[0, 1, 1, 0, 2], [1, 0, 0, 1, 2]]), reduction="sum")
    assert once.item() == often.item() == 4.0
    assert propreg.laplacian(z, torch.tensor([[0, 1, 2], [0, 1, 2]])).item() == 0.0


def test_weights_of_one_direction_add_up_and_directions_are_averaged() -> None:
    z = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    edge_index = torch.tensor([[0, 0, 1], [1, 1, 0]])
    value = propreg.laplacian(z, edge_index, torch.tensor([1.0, 3.0, 2.0]), reduction="sum")
    assert value.item() == pytest.approx((1 + 3 + 2) / 2)


def test_the_weighted_mean_divides_by_the_weights_and_an_edge_of_weight_0_is_no_edge() -> None:
    z = torch.tensor([[0.0], [1.0], [3.0]], dtype=torch.float64)
    edges, weight = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), torch.tensor([3.0, 3.0, 1.0, 1.0])
    assert propreg.laplacian(z, edges, weight).item() == pytest.approx((3 * 1 + 1 * 4) / (3 + 1))
    kept, nothing = propreg.laplacian(z, edges[:, :2]), torch.zeros(4)
    assert propreg.laplacian(z, edges, torch.tensor([1.0, 1.0, 0.0, 0.0])).item() == kept.item()
    assert propreg.laplacian(z, edges, torch.tensor([1.0, 0.0, 0.0, 0.0])).item() == kept.item()
    assert propreg.laplacian(z, edges, nothing).item() == 0.0


def test_a_thousand_classes_and_one_class() -> None:
    for classes in (1, 1000):
        z = tensor(normal(0, 3, classes))
        np.testing.assert_allclose(
            propreg.laplacian(z, TRIANGLE).item(), by_hand(Graph(TRIANGLE, 3), z, None, "mean"), rtol=1e-12
        )


def test_a_propagation_and_sparse_tensors_are_accepted() -> None:
    """A propagation's own norm and loops are not the Laplacian's: loops count 0, and ``norm`` is asked for here."""
    z = tensor(normal(0, 3, 2))
    expected = propreg.laplacian(z, TRIANGLE)
    same: list[dict[str, Any]] = [{}, {"norm": "sym"}, {"add_self_loops": True}]
    for options in same:
        graph = propreg.Propagation(TRIANGLE, 3, **options)
        torch.testing.assert_close(propreg.laplacian(z, graph), expected)
    weighted = propreg.Propagation(TRIANGLE, 3, torch.full((6,), 0.5))
    torch.testing.assert_close(propreg.laplacian(z, weighted), expected)  # a mean: one weight for all changes nothing
    torch.testing.assert_close(
        propreg.laplacian(z, weighted, reduction="sum"), 0.5 * propreg.laplacian(z, TRIANGLE, reduction="sum")
    )
    sparse = torch.sparse_coo_tensor(TRIANGLE, torch.ones(6), (3, 3), check_invariants=True)
    torch.testing.assert_close(propreg.laplacian(z, sparse), expected)
