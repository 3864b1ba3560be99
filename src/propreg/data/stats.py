"""What a graph is like: homophily, isolated nodes, connected components."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def homophily(edge_index: NDArray[Any], y: NDArray[Any]) -> float:
    """The share of edges whose two ends have the same class, among those whose ends both have one.

    A loop says nothing about neighbours and does not count.

    Example:
        >>> homophily(np.array([[0, 1, 1, 2], [1, 0, 2, 1]]), np.array([0, 0, 1]))
        0.5
    """
    source, target = y[edge_index[0]], y[edge_index[1]]
    known = (source >= 0) & (target >= 0) & (edge_index[0] != edge_index[1])
    return float((source == target)[known].mean()) if bool(known.any()) else float("nan")


def isolated(edge_index: NDArray[Any], num_nodes: int) -> int:
    """The number of nodes without a neighbour other than themselves.

    Example:
        >>> isolated(np.array([[0, 1, 2], [1, 0, 2]]), 3)
        1
    """
    linked = np.zeros(num_nodes, bool)
    linked[edge_index[:, edge_index[0] != edge_index[1]]] = True
    return int(num_nodes - linked.sum())


def components(edge_index: NDArray[Any], num_nodes: int) -> int:
    """The number of connected components; an isolated node is one.

    Example:
        >>> components(np.array([[0, 1], [1, 0]]), 3)
        2
    """
    # Every node points to a lower or equal one of its component, and pointers are shortened (Shiloach and Vishkin):
    # a few passes over the edges, also on a long path.
    source, target = edge_index.astype(np.int64)
    parent = np.arange(num_nodes, dtype=np.int64)
    while True:
        grand = parent[parent]
        lower = np.minimum(grand[source], grand[target])
        shorter = grand.copy()
        for node in (parent[source], parent[target], source, target):
            np.minimum.at(shorter, node, lower)
        if np.array_equal(shorter, parent):
            return int((parent == np.arange(num_nodes)).sum())
        parent = shorter
