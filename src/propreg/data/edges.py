"""Edge lists of undirected graphs: checked, both directions, in one order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.errors import DataError


def undirected(source: NDArray[Any], target: NDArray[Any], num_nodes: int, where: str) -> NDArray[np.int64]:
    """Both directions of every edge, without self-loops and duplicates, sorted by (source, target).

    That is PyG's ``to_undirected`` after ``remove_self_loops``.

    Args:
        source: One end of each edge; integers.
        target: The other end.
        num_nodes: The number of nodes.
        where: What to call the edges in an error.

    Raises:
        DataError: If an end is not a node.

    Example:
        >>> undirected(np.array([2, 1, 0]), np.array([0, 1, 2]), 3, "edges").tolist()
        [[0, 2], [2, 0]]
    """
    check_nodes(source, num_nodes, where)
    check_nodes(target, num_nodes, where)
    kept = source != target
    source, target = source[kept].astype(np.int64), target[kept].astype(np.int64)
    key = np.concatenate([source * num_nodes + target, target * num_nodes + source])
    return split_keys(unique_sorted(key), num_nodes)


def unique_sorted(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct values in order (``np.unique`` hashes first, and takes longer)."""
    key = np.sort(key)
    first = np.ones(len(key), bool)
    first[1:] = key[1:] != key[:-1]
    return key if bool(first.all()) else key[first]


def split_keys(key: NDArray[np.int64], num_nodes: int) -> NDArray[np.int64]:
    """Source and target of edges numbered source · num_nodes + target."""
    edge_index = np.empty((2, len(key)), np.int64)
    np.divmod(key, max(num_nodes, 1), out=(edge_index[0], edge_index[1]))
    return edge_index


def once(edge_index: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each undirected edge once, with source < target."""
    return edge_index[:, edge_index[0] < edge_index[1]]


def check_nodes(nodes: NDArray[Any], num_nodes: int, where: str) -> None:
    """Refuse what are not node numbers 0 … num_nodes − 1."""
    if nodes.dtype.kind not in "iu":
        raise DataError(f"{where}: node numbers must be integers, but have type {nodes.dtype}.")
    if nodes.size and not 0 <= int(nodes.min()) <= int(nodes.max()) < num_nodes:
        bad = int(nodes.max()) if int(nodes.max()) >= num_nodes else int(nodes.min())
        raise DataError(f"{where}: node {bad} is out of range for {num_nodes} nodes: the data are damaged.")
