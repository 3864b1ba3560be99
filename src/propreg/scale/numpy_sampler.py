"""Neighbor sampling on a CPU, in NumPy: no compiled extension, no Python per node."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from propreg.data.csr import InEdges
from propreg.scale.sample import Sample, checked_fanouts

Numbers = NDArray[np.int64]


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
        parts.append(_numbered(roots, len(parts[0]), row))
        root_rows = row[roots].astype(np.int64)
        frontier, first = np.concatenate(parts), 0
        counts, edges, sources, targets = [len(frontier)], [], [], []
        for k in self.num_neighbors:
            local, edge = self._drawn(frontier, k, rng)
            reached = self.edges.source[edge]
            targets.append(local + first)
            first += len(frontier)
            frontier = _numbered(reached, first, row)
            parts.append(frontier)
            counts.append(len(frontier))
            edges.append(edge)
            sources.append(row[reached])
        none = np.empty(0, np.int64)
        index = np.stack([np.concatenate([none, *sources]), np.concatenate([none, *targets])])
        return Sample(
            torch.from_numpy(np.concatenate(parts)),
            torch.from_numpy(index),
            torch.from_numpy(np.concatenate([none, *edges])),
            torch.from_numpy(root_rows),
            counts,
            [len(edge) for edge in edges],
        )

    def _drawn(self, nodes: Numbers, k: int, rng: np.random.Generator) -> tuple[Numbers, Numbers]:
        """For each drawn edge the place of its target in ``nodes``, and its own place in the graph."""
        start = self.edges.start[nodes]
        degree = self.edges.start[nodes + 1] - start
        if self.replace and k > 0:
            some = np.flatnonzero(degree)
            offset = (rng.random((len(some), k)) * degree[some, None]).astype(np.int64)
            return np.repeat(some, k), (offset + start[some, None]).reshape(-1)
        whole = np.arange(len(nodes)) if k < 0 else np.flatnonzero(degree <= k)
        local, edge = _slices(whole, start[whole], degree[whole])
        if k < 0:
            return local, edge
        many = np.flatnonzero(degree > k)
        chosen = distinct(degree[many], k, rng) + start[many]
        return np.concatenate([np.tile(many, k), local]), np.concatenate([chosen.reshape(-1), edge])


def distinct(degree: Numbers, k: int, rng: np.random.Generator) -> Numbers:
    """For each degree d > k, k different numbers below d, [k, n]: every subset equally likely (Floyd's algorithm)."""
    top = degree - k + np.arange(k)[:, None]
    chosen: Numbers = (rng.random(top.shape) * (top + 1)).astype(np.int64)
    for j in range(1, k):
        taken = (chosen[:j] == chosen[j]).any(axis=0)
        np.copyto(chosen[j], top[j], where=taken)
    return chosen


def _slices(local: Numbers, start: Numbers, degree: Numbers) -> tuple[Numbers, Numbers]:
    ends = np.cumsum(degree)
    count = int(ends[-1]) if len(ends) else 0
    return np.repeat(local, degree), np.arange(count) + np.repeat(start - ends + degree, degree)


def _numbered(reached: NDArray[np.signedinteger[Any]], first: int, row: NDArray[np.int32]) -> Numbers:
    """The nodes that have no row yet, each once, numbered from ``first`` on."""
    fresh = reached[row[reached] < 0]
    own = np.arange(len(fresh), dtype=np.int32)
    row[fresh] = own
    kept = np.asarray(fresh[row[fresh] == own], np.int64)  # of equal nodes one reads back its own number
    row[kept] = np.arange(first, first + len(kept))
    return kept
