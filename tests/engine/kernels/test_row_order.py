"""The order of a graph's nodes: each node once, the same each time, communities together."""

import pytest
import torch

from propreg.engine.kernels.spmm.row_order import locality_order


def cliques(count: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """So many cliques in a ring, their nodes shuffled."""
    inside = torch.combinations(torch.arange(size))
    edges = torch.cat([inside + size * number for number in range(count)])
    bridges = torch.stack([torch.arange(count) * size, (torch.arange(count) * size + size + 1) % (count * size)], 1)
    shuffled = torch.randperm(count * size, generator=torch.Generator().manual_seed(1))
    row, col = shuffled[torch.cat([edges, bridges])].unbind(1)
    return row, col


def test_communities_are_together() -> None:
    row, col = cliques(30, 8)
    place = locality_order(row, col, 240)
    assert torch.equal(place.sort().values, torch.arange(240))
    assert torch.equal(place, locality_order(row, col, 240))
    apart = (place[row] - place[col]).abs()
    assert float((apart < 8).float().mean()) > 0.9  # of nodes in any order: 7 %
    turned = locality_order(col, row, 240)
    assert torch.equal(place, turned)


@pytest.mark.parametrize("nodes", [0, 1, 5])
def test_a_graph_without_edges(nodes: int) -> None:
    none = torch.empty(0, dtype=torch.int64)
    assert locality_order(none, none, nodes).tolist() == list(range(nodes))


def test_nodes_without_neighbors_and_edges_given_twice() -> None:
    row, col = torch.tensor([0, 0, 2, 3, 3]), torch.tensor([2, 2, 0, 3, 3])
    place = locality_order(row, col, 6)
    assert sorted(place.tolist()) == list(range(6))
    assert abs(int(place[0] - place[2])) == 1
