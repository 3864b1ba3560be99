"""Wrong edges and wrong labels: a part of those of a graph, drawn once; larger shares contain the smaller ones."""

import numpy as np
from numpy.typing import NDArray

from propreg.data.edges import undirected
from propreg.data.errors import DataError
from propreg.data.splits import as_labels, ranks

_REMOVED, _ADDED, _WRONG, _OTHER = (2**62 + i for i in range(4))  # draws that no split makes


def wrong_edges(edge_index: NDArray[np.int64], num_nodes: int, share: float) -> NDArray[np.int64]:
    """The undirected graph with a share of its edges replaced by as many between random nodes that have none yet.

    Args:
        edge_index: Both directions of every edge, without loops, [2, E].
        num_nodes: The number of nodes.
        share: Of the edges, 0 … 1.

    Raises:
        DataError: If the share is none, the graph is directed, or it is too dense for so many other edges.

    Example:
        >>> ring = undirected(np.arange(6), (np.arange(6) + 1) % 6, 6, "edges")
        >>> found = wrong_edges(ring, 6, 0.5)
        >>> found.shape, len(set(zip(*ring.tolist())) & set(zip(*found.tolist())))
        ((2, 12), 6)
    """
    _check_share("wrong_edges", share)
    source, target = edge_index[:, edge_index[0] < edge_index[1]]
    if not np.array_equal(undirected(source, target, num_nodes, "edges"), _sorted(edge_index)):
        raise DataError(
            "wrong_edges is for undirected graphs without loops: leave it out, or add the other directions."
        )
    count = round(share * len(source))
    kept = np.argsort(ranks(len(source), _REMOVED), kind="stable")[count:]
    added = _others(source * num_nodes + target, num_nodes, count)
    low, high = np.divmod(added, num_nodes)
    return undirected(np.concatenate([source[kept], low]), np.concatenate([target[kept], high]), num_nodes, "edges")


def _others(there: NDArray[np.int64], num_nodes: int, count: int) -> NDArray[np.int64]:
    """So many pairs of nodes that are not there, low · num_nodes + high, in the order of the draw."""
    for tries in (4, 16, 64, 256):
        ends = (ranks(2 * tries * count, _ADDED) % np.uint64(num_nodes)).astype(np.int64).reshape(-1, 2)
        low, high = ends.min(1), ends.max(1)
        drawn = (low * num_nodes + high)[low < high]
        fresh = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
        found: NDArray[np.int64] = fresh[~np.isin(fresh, there)][:count]
        if len(found) == count:
            return found
    raise DataError(f"wrong_edges finds no {count} pairs of nodes without an edge: the graph is too dense.")


def wrong_labels(y: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """The classes with a share of the labeled nodes' replaced by another one, each equally likely.

    Args:
        y: The class of each node, −1 for none.
        share: Of the labeled nodes, 0 … 1.

    Raises:
        DataError: If the share is none, or there is one class only.

    Example:
        >>> wrong_labels(np.array([0, 1, 0, 1, -1]), 1.0).tolist()
        [1, 0, 1, 0, -1]
    """
    _check_share("wrong_labels", share)
    labels = as_labels(y)
    classes, labeled = int(labels.max()) + 1, np.flatnonzero(labels >= 0)
    if classes < 2:
        raise DataError("wrong_labels needs at least two classes.")
    order = np.argsort(ranks(len(labels), _WRONG)[labeled], kind="stable")
    wrong = labeled[order[: round(share * len(labeled))]]
    shift = 1 + (ranks(len(labels), _OTHER)[wrong] % np.uint64(classes - 1)).astype(np.int64)
    found = labels.copy()
    found[wrong] = (labels[wrong] + shift) % classes
    return found


def _sorted(edge_index: NDArray[np.int64]) -> NDArray[np.int64]:
    return edge_index[:, np.lexsort((edge_index[1], edge_index[0]))]


def _check_share(name: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise DataError(f"{name} must be a share between 0 and 1, got {share!r}.")
