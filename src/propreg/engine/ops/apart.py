"""Samples of nodes that lie far apart."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Apart:
    """Draws nodes no two of which are within some hops, along edges in either direction.

    Args:
        edge_index: Edges, int64 [2, E].
        nodes: The number of nodes.
        hops: How far.
        count: How many nodes; fewer where no other node is far enough from those drawn.
    """

    def __init__(self, edge_index: NDArray[np.int64], nodes: int, hops: int, count: int) -> None:
        self.nodes, self.hops, self.count = nodes, hops, min(count, nodes)
        source, target = np.concatenate([edge_index, edge_index[::-1]], axis=1)
        self._source = source[np.argsort(target, kind="stable")]
        self._start = np.concatenate([[0], np.bincount(target, minlength=nodes).cumsum()])

    def drawn(self, streams: NDArray[np.uint64], epoch: int) -> tuple[Tensor, Tensor]:
        """Of each stream in an epoch: nodes, and their weights in a mean, 0 where there are fewer. [R, count]."""
        found = {stream: self._one(int(stream), epoch) for stream in dict.fromkeys(streams.tolist())}
        nodes = np.zeros((len(streams), self.count), np.int64)
        weights = np.zeros((len(streams), self.count))
        for i, stream in enumerate(streams.tolist()):
            chosen = found[stream]
            nodes[i, : len(chosen)], weights[i, : len(chosen)] = chosen, 1 / len(chosen)
        return torch.from_numpy(nodes), torch.from_numpy(weights)

    def _one(self, stream: int, epoch: int) -> list[int]:
        order = np.random.Generator(np.random.Philox(key=[stream, epoch])).permutation(self.nodes)
        near, chosen = np.zeros(self.nodes, np.bool_), list[int]()
        for node in order.tolist():
            if not near[node]:
                chosen.append(node)
                if len(chosen) == self.count:
                    break
                near |= self._within(node)
        return chosen

    def _within(self, node: int) -> NDArray[np.bool_]:
        """The nodes within the hops of a node."""
        seen = np.zeros(self.nodes, np.bool_)
        seen[node] = True
        edge = np.array([node])
        for _ in range(self.hops):
            start, length = self._start[edge], self._start[edge + 1] - self._start[edge]
            skipped = np.repeat(start - length.cumsum() + length, length)
            reached = self._source[skipped + np.arange(length.sum())]
            edge = np.unique(reached[~seen[reached]])
            seen[edge] = True
        return seen
