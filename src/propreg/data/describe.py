"""What a graph is like (homophily, components, linked pairs), and what in it is legal but seldom meant."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.edges import unique_sorted
from propreg.data.graph import Graph

RARE = 0.05  # a few citations are mutual; in an undirected graph listed in one direction almost no edge is
LISTED = 5  # the most classes that a warning names
UNKNOWN = frozenset({"nan", "n/a", "na", "none", "null", "?", "-", "unknown", "missing", "<na>", "#n/a", "-1", "nil"})
_BLOCK = 1 << 16  # edges at a time: temporary arrays stay in the cache


def homophily(edge_index: NDArray[Any], y: NDArray[Any]) -> float:
    """The share of edges that link nodes of one class, among the edges whose two ends have a label.

    Self-loops do not count. NaN if no such edge exists.

    Example:
        >>> homophily(np.array([[0, 1, 1, 2], [1, 0, 2, 1]]), np.array([0, 0, 1]))
        0.5
    """
    same = known = 0
    for source, target in _blocks(edge_index):
        ends = y[source], y[target]
        counted = (ends[0] >= 0) & (ends[1] >= 0) & (source != target)
        known += int(np.count_nonzero(counted))
        same += int(np.count_nonzero((ends[0] == ends[1]) & counted))
    return same / known if known else float("nan")


def isolated(edge_index: NDArray[Any], num_nodes: int) -> int:
    """The number of nodes without a neighbor other than themselves.

    Example:
        >>> isolated(np.array([[0, 1, 2], [1, 0, 2]]), 3)
        1
    """
    linked = np.zeros(num_nodes, bool)
    for source, target in _blocks(edge_index):
        linked[_without_loops(source, source, target)] = True
        linked[_without_loops(target, source, target)] = True
    return int(num_nodes - np.count_nonzero(linked))


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


def is_undirected(edge_index: NDArray[Any]) -> bool:
    """Whether every edge is listed as often in one direction as in the other.

    Compares two 64-bit sums over hashed pairs (source, target) with the sums over (target, source), in one pass
    without sorting. Lists that differ have equal sums with a probability of about 2⁻¹²⁸.

    Example:
        >>> is_undirected(np.array([[0, 1, 2], [1, 0, 2]])), is_undirected(np.array([[0, 1], [1, 2]]))
        (True, False)
    """
    total = np.zeros(2, np.uint64)
    for source, target in _blocks(edge_index):
        ends = source.astype(np.uint64), target.astype(np.uint64)
        total += _mixed(*ends)
        total -= _mixed(*ends[::-1])
    return not total.any()


def linked_pairs(edge_index: NDArray[Any], num_nodes: int) -> int:
    """The number of pairs of different nodes that an edge links, each pair counted once.

    Example:
        >>> linked_pairs(np.array([[0, 1, 1], [1, 0, 1]]), 2)
        1
    """
    pairs = _keys(edge_index, num_nodes, upward=True)
    if not is_undirected(edge_index):
        pairs = np.concatenate([pairs, _keys(edge_index, num_nodes, upward=False)])
    return len(unique_sorted(pairs))


def one_way(graph: Graph, fix: str) -> str:
    """The warning for a graph in which hardly an edge has its reverse; empty if both directions are listed.

    Args:
        graph: The graph. Self-loops have no direction and do not count.
        fix: What to do if the graph is meant to be undirected.

    Example:
        >>> path = Graph("path", np.array([[0, 1], [1, 2]]), np.eye(3, dtype=np.float32), np.zeros(3, np.int64))
        >>> one_way(path, "list both directions").partition(": ")[2]
        'if the graph is undirected, list both directions.'
    """
    if is_undirected(graph.edge_index):
        return ""
    up, down = (unique_sorted(_keys(graph.edge_index, graph.num_nodes, upward=upward)) for upward in (True, False))
    count = len(up) + len(down)
    both = 2 * (count - len(unique_sorted(np.concatenate([up, down]))))
    if both >= RARE * count:
        return ""
    few = f"only {both:,} also run" if both else "none also runs"
    return (
        f"Of {count:,} {'edge' if count == 1 else 'edges'}, {few} the other way, so a node learns only from the nodes "
        f"that point to it: if the graph is undirected, {fix}."
    )


def unused_classes(graph: Graph) -> str:
    """The warning for class numbers that no node has; empty if each class has a node.

    Example:
        >>> edges, y = np.array([[0, 1], [1, 0]]), np.array([0, 2])
        >>> unused_classes(Graph("pair", edges, np.eye(2, dtype=np.float32), y)).partition(": ")[0]
        'No node is of class 1, though classes are numbered 0 to 2'
    """
    used = np.zeros(graph.num_classes, bool)
    used[graph.y[graph.y >= 0]] = True
    unused = np.flatnonzero(~used)
    if not len(unused):
        return ""
    more = f" and {len(unused) - LISTED} more" if len(unused) > LISTED else ""
    named = ", ".join(str(c) for c in unused[:LISTED]) + more
    return (
        f"No node is of class {named}, though classes are numbered 0 to {graph.num_classes - 1}: the model still gets "
        "an output for each number; number the classes without gaps to avoid this."
    )


def doubtful_labels(graph: Graph) -> str:
    """The warning for labels that people write where they know none; empty if there are none.

    Example:
        >>> edges, y = np.zeros((2, 0), int), np.array([0, 1, 1])
        >>> doubtful_labels(Graph("", edges, np.eye(3), y, class_names=("cat", "N/A")))
        "2 nodes have the label 'N/A', which counts as a class of its own: leave a label empty if it is unknown."
    """
    doubtful = [(place, name) for place, name in enumerate(graph.class_names) if name.strip().lower() in UNKNOWN]
    if not doubtful:
        return ""
    count = int(np.isin(graph.y, [place for place, _ in doubtful]).sum())
    named = " or ".join(repr(name) for _, name in doubtful)
    return (
        f"{count:,} {'node has' if count == 1 else 'nodes have'} the label {named}, which counts as a class of its "
        "own: leave a label empty if it is unknown."
    )


def _blocks(edge_index: NDArray[Any]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    for start in range(0, edge_index.shape[1], _BLOCK):
        yield edge_index[0, start : start + _BLOCK], edge_index[1, start : start + _BLOCK]


def _without_loops(ends: NDArray[Any], source: NDArray[Any], target: NDArray[Any]) -> NDArray[Any]:
    kept = source != target
    return ends if kept.all() else ends[kept]


def _keys(edge_index: NDArray[Any], num_nodes: int, *, upward: bool) -> NDArray[np.int64]:
    """Lower end · num_nodes + higher end of the edges that lead to a higher number (``upward``) or to a lower one."""
    keys = []
    for source, target in _blocks(edge_index):
        low, high = (source, target) if upward else (target, source)
        kept = low < high
        keys.append(low[kept].astype(np.int64) * num_nodes + high[kept])
    return np.concatenate([np.zeros(0, np.int64), *keys])


def _mixed(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Two sums, modulo 2⁶⁴, of pairs as 64-bit numbers after two and after three rounds of MurmurHash3's mixing."""
    mixed = high << np.uint64(32)
    mixed |= low
    sums = []
    for factor in (0x9E3779B97F4A7C15, 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        mixed *= np.uint64(factor)
        mixed ^= mixed >> np.uint64(32)
        sums.append(mixed.sum())
    return np.array(sums[1:], np.uint64)  # one round is too little: half of its bits are linear in the pair
