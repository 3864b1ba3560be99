"""The edges into each node in CSR form: what neighbors are sampled from, and how a graph lies on disk."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.edges import sort_keys

_BLOCK = 1 << 16  # nodes at a time


@dataclass(frozen=True)
class InEdges:
    """The sources of the edges into node i are ``source[start[i] : start[i + 1]]``, in the order they were listed.

    ``weight`` is None if all edges weigh 1. Nodes take 4 bytes where their number allows.

    Example:
        >>> edges = InEdges.of(np.array([[0, 2, 1], [1, 1, 0]]), 3)
        >>> edges.start.tolist(), edges.source.tolist()
        ([0, 1, 3, 3], [1, 0, 2])
    """

    start: NDArray[np.int64]
    source: NDArray[np.signedinteger[Any]]
    weight: NDArray[np.float32] | None = None

    @classmethod
    def of(
        cls, edge_index: NDArray[np.int64], num_nodes: int, edge_weight: NDArray[np.float32] | None = None
    ) -> "InEdges":
        """From a list of edges source → target."""
        source, target = edge_index
        count = len(source)
        start = np.zeros(num_nodes + 1, np.int64)
        np.cumsum(np.bincount(target, minlength=num_nodes), out=start[1:])
        narrow = np.int32 if num_nodes < 1 << 31 else np.int64
        if np.all(target[1:] >= target[:-1]):
            return cls(start, source.astype(narrow), edge_weight)
        key = target * count  # sorting numbers takes a quarter of the time of argsort
        key += np.arange(count)
        order = sort_keys(key) % count
        return cls(start, source[order].astype(narrow), None if edge_weight is None else edge_weight[order])

    @property
    def num_nodes(self) -> int:
        return len(self.start) - 1

    def targets(self, first: int = 0, last: int | None = None) -> NDArray[np.int64]:
        """The target of each edge into the nodes ``first`` … ``last`` − 1."""
        last = self.num_nodes if last is None else last
        return np.repeat(np.arange(first, last), np.diff(self.start[first : last + 1]))

    def edge_index(self) -> NDArray[np.int64]:
        """The list of edges [2, E], source over target, sorted by target."""
        return np.stack([self.source.astype(np.int64), self.targets()])

    def degree(self, *, add_self_loops: bool = False) -> NDArray[np.float64]:
        """What :meth:`propreg.Propagation.degree` is: the weight of the edges into each node, float64 [N].

        Args:
            add_self_loops: As in ``Propagation``: one loop for each node, of its own the last one.
        """
        if self.weight is None and not add_self_loops:
            return np.diff(self.start).astype(np.float64)
        degree = np.empty(self.num_nodes)
        for first in range(0, self.num_nodes, _BLOCK):
            last = min(first + _BLOCK, self.num_nodes)
            target, part = self.targets(first, last), slice(self.start[first], self.start[last])
            weight = np.ones(len(target)) if self.weight is None else self.weight[part].astype(np.float64)
            if add_self_loops:
                loop = np.flatnonzero(self.source[part] == target)
                kept = np.ones(last - first)
                kept[target[loop] - first] = weight[loop]  # of several the last is assigned last
                weight[loop] = 0.0
            degree[first:last] = np.bincount(target - first, weight, last - first)
            degree[first:last] += kept if add_self_loops else 0.0
        return degree
