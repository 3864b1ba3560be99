"""An order of a graph's nodes in which nodes with common neighbors are close to each other.

Programs process rows in this order, so that the rows one of them gathers are already in a cache from another.
Communities come from label propagation: each node takes the label most frequent among its neighbors, half of the nodes
at a time. Communities are then the nodes of a smaller graph, and so on; the nodes are sorted by their labels, those of
the last level first. The order is deterministic.
"""

import torch
from torch import Tensor

ROUNDS, FEWEST, LEVELS = 8, 8, 6
LARGE = 50_000  # entries; smaller matrices fit a cache anyway
HUGE = 20_000_000  # entries; for larger ones computing the order would take gigabytes


def locality_order(row: Tensor, col: Tensor, nodes: int) -> Tensor:
    """The position of each node in the order. int64 [N].

    Args:
        row, col: The edges; their direction does not matter.
        nodes: The number of nodes.
    """
    weight = torch.ones(2 * len(row), dtype=torch.int64, device=row.device)
    row, col = torch.cat([row, col]), torch.cat([col, row])
    mine = torch.arange(nodes, device=row.device)  # the community of each node
    labels = []
    for _ in range(LEVELS):
        label, count = _communities(row, col, weight, nodes)
        mine = label[mine]
        labels.append(mine)
        if count <= FEWEST or count > 0.9 * nodes:
            break
        row, col, weight = _between(label[row], label[col], weight, count)
        nodes = count
    order = torch.arange(len(mine), device=mine.device)
    for label in labels:
        order = order[label[order].argsort(stable=True)]
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=order.device)
    return place


def _communities(row: Tensor, col: Tensor, weight: Tensor, nodes: int) -> tuple[Tensor, int]:
    """A label for each node, and the number of labels."""
    numbers = torch.arange(nodes, device=row.device)
    label = numbers
    for turn in range(ROUNDS):
        pairs, inverse = torch.unique(row * nodes + label[col], return_inverse=True)
        owner, theirs = pairs // nodes, pairs % nodes
        sums = torch.zeros_like(pairs).index_add_(0, inverse, weight)
        most = torch.zeros_like(label).scatter_reduce_(0, owner, sums, "amax")
        best = sums == most[owner]
        first = torch.full_like(label, nodes).scatter_reduce_(0, owner[best], theirs[best], "amin")
        moves = (numbers * 40_503 + turn * 30_011) % 65_536 < 32_768  # moving all at once would swap labels forever
        label = torch.where(moves & (first < nodes), first, label)
    found, label = torch.unique(label, return_inverse=True)
    return label, len(found)


def _between(row: Tensor, col: Tensor, weight: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The edges between communities, each once with the sum of its weights."""
    pairs, inverse = torch.unique(row * count + col, return_inverse=True)
    sums = torch.zeros_like(pairs).index_add_(0, inverse, weight)
    row, col = pairs // count, pairs % count
    other = row != col
    return row[other], col[other], sums[other]
