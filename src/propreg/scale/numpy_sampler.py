"""Neighbor sampling on a CPU, in NumPy: no compiled extension, no Python per node."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from propreg.data.csr import InEdges
from propreg.engine.training.memory import warm_up_malloc
from propreg.scale.sample import Sample, checked_fanouts

Numbers = NDArray[np.int64]
SCANNED = 32
"""Nodes of the graph per node reached, up to which looking through all is faster."""
_MARK = -2


class NumpySampler:
    """Samples the neighborhoods of seeds, hop by hop: each node that a hop reaches first gets neighbors in the next.

    Rows are numbered with a table over all nodes rather than a hash map: 4 bytes a node, and two to ten times as fast.

    Args:
        edges: The graph.
        num_neighbors: For each hop the number of edges into a node, or −1 for all.
        replace: Draw each neighbor anew; else a node that has no more neighbors than are drawn keeps each once.

    Example:
        >>> path = InEdges.of(np.array([[0, 1, 1, 2], [1, 0, 2, 1]]), 3)
        >>> sample = NumpySampler(path, [-1])(torch.tensor([1]), np.random.default_rng(0))
        >>> sample.nodes.tolist(), sample.edge_index.tolist()
        ([1, 0, 2], [[1, 2], [0, 0]])
    """

    def __init__(self, edges: InEdges, num_neighbors: Sequence[int], *, replace: bool = False) -> None:
        self.edges, self.num_neighbors, self.replace = edges, checked_fanouts(num_neighbors), replace
        self._row: NDArray[np.int32] | None = None

    def __call__(self, seeds: Tensor, rng: np.random.Generator, roots: Tensor | None = None) -> Sample:
        """The subgraph around seeds, which may repeat, and other roots; equal generators give equal samples."""
        if self._row is None:
            self._row = np.full(self.edges.num_nodes, -1, np.int32)  # each worker process has its own
            warm_up_malloc()  # a sample takes some 10 MB, whose pages cost as much as all the rest
        parts, others = [seeds.numpy()], seeds[:0] if roots is None else roots
        try:
            return self._sampled(parts, rng, others.numpy(), self._row)
        except BaseException:
            self._row = None
            raise
        finally:
            if self._row is not None:
                for part in parts:
                    self._row[part] = -1

    def _sampled(
        self, parts: list[Numbers], rng: np.random.Generator, roots: Numbers, row: NDArray[np.int32]
    ) -> Sample:
        row[parts[0]] = np.arange(len(parts[0]))
        parts.append(_numbered(roots, parts, row))
        root_rows = row[roots].astype(np.int64)
        frontier, first = np.concatenate(parts), 0
        counts = [len(frontier)]
        edges: list[Numbers] = []
        sources: list[NDArray[np.int32]] = []
        targets: list[Numbers] = []
        for k in self.num_neighbors:
            target, edge = self._drawn(frontier, first, k, rng)
            reached = self.edges.source[edge].astype(np.int64)  # NumPy would convert it each time
            first += len(frontier)
            frontier = _numbered(reached, parts, row)
            parts.append(frontier)
            counts.append(len(frontier))
            edges.append(edge)
            sources.append(row[reached])
            targets.append(target)
        sizes = [len(edge) for edge in edges]
        index = np.empty((2, sum(sizes)), np.int64)
        if sizes:
            np.concatenate(sources, out=index[0])
            np.concatenate(targets, out=index[1])
        return Sample(
            torch.from_numpy(np.concatenate(parts)),
            torch.from_numpy(index),
            torch.from_numpy(np.concatenate([np.empty(0, np.int64), *edges])),
            torch.from_numpy(root_rows),
            counts,
            sizes,
        )

    def _drawn(self, nodes: Numbers, first: int, k: int, rng: np.random.Generator) -> tuple[Numbers, Numbers]:
        """For each drawn edge the row of its target, where those of ``nodes`` start at ``first``, and its own place."""
        start, rows = self.edges.start[nodes], np.arange(first, first + len(nodes))
        degree = self.edges.start[nodes + 1] - start
        if k < 0:
            return _slices(rows, start, degree)
        if self.replace:
            some = np.flatnonzero(degree)
            offset = (rng.random((len(some), k)) * degree[some, None]).astype(np.int64)
            return np.repeat(rows[some], k), (offset + start[some, None]).reshape(-1)
        few, many = np.flatnonzero(degree <= k), np.flatnonzero(degree > k)
        target, edge = _slices(rows[few], start[few], degree[few])
        chosen = distinct(degree[many], k, rng) + start[many]
        return np.concatenate([np.tile(rows[many], k), target]), np.concatenate([chosen.reshape(-1), edge])


def distinct(degree: Numbers, k: int, rng: np.random.Generator) -> Numbers:
    """For each degree d > k, k different numbers below d, [k, n]: every subset equally likely (Floyd's algorithm)."""
    top = degree - k + np.arange(k)[:, None]
    chosen: Numbers = (rng.random(top.shape) * (top + 1)).astype(np.int64)
    for j in range(1, k):
        taken = (chosen[:j] == chosen[j]).any(axis=0)
        np.copyto(chosen[j], top[j], where=taken)
    return chosen


def _slices(rows: Numbers, start: Numbers, degree: Numbers) -> tuple[Numbers, Numbers]:
    ends = np.cumsum(degree)
    count = int(ends[-1]) if len(ends) else 0
    place = np.repeat(start - ends + degree, degree)
    place += np.arange(count)
    return np.repeat(rows, degree), place


def _numbered(reached: Numbers, parts: list[Numbers], row: NDArray[np.int32]) -> Numbers:
    """The nodes that are in no part yet, each once, numbered after these."""
    first = sum(map(len, parts))
    kept = _scanned(reached, parts, row) if len(reached) * SCANNED > len(row) else _compared(reached, row)
    row[kept] = np.arange(first, first + len(kept), dtype=np.int32)
    return kept


def _compared(reached: Numbers, row: NDArray[np.int32]) -> Numbers:
    fresh = reached[row[reached] < 0]
    own = np.arange(len(fresh), dtype=np.int32)
    row[fresh] = own
    kept: Numbers = fresh[row[fresh] == own]  # of equal nodes one reads back its own number
    return kept


def _scanned(reached: Numbers, parts: list[Numbers], row: NDArray[np.int32]) -> Numbers:
    """The same in ascending order. It looks through the whole table, and then writes in order: faster if many."""
    row[reached] = _MARK
    first = 0
    for part in parts:
        row[part] = np.arange(first, first + len(part))
        first += len(part)
    return np.flatnonzero(row == _MARK)
