"""From lines of an edge list to ``edge_index``: both directions, each edge once, in one order."""

import numpy as np
from numpy.typing import NDArray

from propreg.data._edges_csv import EdgeLines
from propreg.data.errors import DataError


def merge_edges(
    lines: EdgeLines, num_nodes: int, *, directed: bool, where: str
) -> tuple[NDArray[np.int64], NDArray[np.float32] | None]:
    """Every edge source → target once, sorted by source, then target.

    Args:
        lines: The edge list.
        num_nodes: The number of nodes.
        directed: Take each line as one edge from source to target. Otherwise each line is an undirected edge
            and stands for both directions. A line that repeats an edge adds nothing.
        where: The file's name for error messages.

    Returns:
        ``edge_index`` [2, E], and the weights [E] where there are any.

    Raises:
        DataError: If two lines give one edge two weights.

    Example:
        >>> lines = EdgeLines(np.array([[0, 1, 2], [1, 0, 2]]), None, None)
        >>> merge_edges(lines, 3, directed=False, where="edges.csv")
        (array([[0, 1, 2], [1, 0, 2]]), None)
    """
    source, target = lines.nodes
    key = source * num_nodes + target
    if not directed:
        key = np.concatenate([key, target * num_nodes + source])
    if lines.weight is None or lines.line is None:
        key.sort()
        first = _first(key)
        weight = None
    else:
        order = np.argsort(key, kind="stable")
        key = key[order]
        first = _first(key)
        entry = order % len(lines.weight)  # the line, whichever direction
        _check_equal(lines, entry, first, directed=directed, where=where)
        weight = lines.weight[entry[first]].astype(np.float32)
    key = key[first]
    return np.stack([key // max(num_nodes, 1), key % max(num_nodes, 1)]), weight


def _first(key: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Where a sorted key differs from the one before it."""
    first = np.ones(len(key), bool)
    np.not_equal(key[1:], key[:-1], out=first[1:])
    return first


def _check_equal(
    lines: EdgeLines, entry: NDArray[np.int64], first: NDArray[np.bool_], *, directed: bool, where: str
) -> None:
    if lines.weight is None or lines.line is None:
        return
    leader = entry[np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))]
    differs = np.flatnonzero(lines.weight[entry] != lines.weight[leader])
    if len(differs):
        pair = sorted((int(lines.line[entry[differs[0]]]), int(lines.line[leader[differs[0]]])))
        fix = "give the edge one weight" if directed else "give the edge one weight, or read it as directed"
        raise DataError(f"{where}, line {pair[1]}: repeats the edge of line {pair[0]} with another weight: {fix}.")
