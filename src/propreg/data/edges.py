"""Edge lists: checked, in both directions, in one order."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.errors import DataError
from propreg.devices import cores

_MANY = 1 << 20  # from here on threads pay
_BLOCK = 1 << 16


def undirected(source: NDArray[Any], target: NDArray[Any], num_nodes: int, where: str) -> NDArray[np.int64]:
    """Both directions of every edge, without self-loops and duplicates, sorted by (source, target).

    Equals PyG's ``to_undirected`` after ``remove_self_loops``.

    Args:
        source: One end of each edge; integers.
        target: The other end.
        num_nodes: The number of nodes.
        where: What to call the edges in an error.

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
    """The distinct values in order. ``np.unique`` does the same by hashing, which takes ten times as long."""
    first = np.ones(len(key), bool)
    np.greater(key[1:], key[:-1], out=first[1:])
    if first.all():
        return key
    key = sort_keys(key)
    np.not_equal(key[1:], key[:-1], out=first[1:])
    return key if first.all() else key[first]


def sort_keys(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """The values in order: ``np.sort``, in threads if there are many, each of which sorts one range of the values.

    Example:
        >>> sort_keys(np.array([3, 1, 2])).tolist()
        [1, 2, 3]
    """
    threads = min(cores(), 16)
    if len(key) < _MANY or threads == 1:
        return np.sort(key)
    sample = np.sort(key[:: max(1, len(key) // 4096)])
    step = max(1, len(sample) // threads)
    limits = [key.min(), *sample[step::step], key.max() + 1]

    def part(low: int, high: int) -> NDArray[np.int64]:
        blocks = (key[start : start + _BLOCK] for start in range(0, len(key), _BLOCK))
        found = np.concatenate([block[(block >= low) & (block < high)] for block in blocks])
        found.sort()
        return found

    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(part, limits[:-1], limits[1:])))


def split_keys(key: NDArray[np.int64], num_nodes: int) -> NDArray[np.int64]:
    """Source and target of edges given as numbers source · num_nodes + target."""
    edge_index = np.empty((2, len(key)), np.int64)
    np.divmod(key, max(num_nodes, 1), out=(edge_index[0], edge_index[1]))
    return edge_index


def once(edge_index: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each undirected edge once, with source < target."""
    return edge_index[:, edge_index[0] < edge_index[1]]


def check_nodes(nodes: NDArray[Any], num_nodes: int, where: str) -> None:
    """Raise unless all of a file's node numbers are 0 … num_nodes − 1."""
    if (bad := _outside(nodes, num_nodes, where)) is not None:
        raise DataError(f"{where}: node {bad} is out of range for {num_nodes} nodes: the data are damaged.")


def check_edges(edge_index: NDArray[Any], num_nodes: int, where: str) -> None:
    """Raise unless all ends of a user's edges are 0 … num_nodes − 1; the error names the edge.

    Example:
        >>> check_edges(np.array([[1, 2], [2, 3]]), 3, "edge_index")
        Traceback (most recent call last):
        ...
        propreg.data.errors.DataError: edge_index: node 3 is out of range for 3 nodes (edge 1, from 2 to 3): number the
        nodes from 0 to 2, like the rows of x; yours start at 1.
    """
    bad = _outside(edge_index, num_nodes, where)
    if bad is None:
        return
    edge = int(np.flatnonzero((edge_index == bad).any(0))[0])
    source, target = edge_index[:, edge].tolist()
    start = "; yours start at 1" if (int(edge_index.min()), int(edge_index.max())) == (1, num_nodes) else ""
    raise DataError(
        f"{where}: node {bad} is out of range for {num_nodes} nodes (edge {edge}, from {source} to {target}): number "
        f"the nodes from 0 to {num_nodes - 1}, like the rows of x{start}."
    )


def _outside(nodes: NDArray[Any], num_nodes: int, where: str) -> int | None:
    """A number that is not 0 … num_nodes − 1."""
    if nodes.dtype.kind not in "iu":
        raise DataError(f"{where}: node numbers must be integers, got {nodes.dtype}.")
    if not nodes.size:
        return None
    low, high = int(nodes.min()), int(nodes.max())
    return high if high >= num_nodes else low if low < 0 else None
