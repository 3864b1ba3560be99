"""Edges into each node: against the edge list, and degrees against Propagation."""

import numpy as np
import torch
from hypothesis import given

from propreg import Propagation
from propreg.data.csr import InEdges
from strategies import Graph, graphs, thorough


@thorough
@given(graph=graphs())
def test_edges_and_degrees_are_those_of_the_list(graph: Graph) -> None:
    index = graph.edge_index.numpy()
    weight = None if graph.edge_weight is None else graph.edge_weight.float()
    edges = InEdges.of(index, graph.num_nodes, None if weight is None else weight.numpy())
    order = np.argsort(index[1], kind="stable")
    assert edges.edge_index().tolist() == index[:, order].tolist()
    if weight is not None:
        assert edges.weight is not None
        assert edges.weight.tolist() == weight.numpy()[order].tolist()
    for loops in (False, True):
        expected = Propagation(graph.edge_index, graph.num_nodes, weight, add_self_loops=loops).degree()
        np.testing.assert_allclose(edges.degree(add_self_loops=loops), expected.numpy(), rtol=1e-12)


def test_many_nodes_are_taken_in_blocks() -> None:
    nodes = (1 << 16) + 5
    rng = np.random.default_rng(0)
    index = rng.integers(nodes, size=(2, 200_000))
    index[0, ::50] = index[1, ::50]  # loops
    expected = Propagation(torch.from_numpy(index), nodes, add_self_loops=True).degree().numpy()
    assert (InEdges.of(index, nodes).degree(add_self_loops=True) == expected).all()
