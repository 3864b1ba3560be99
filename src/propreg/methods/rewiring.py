"""Graphs in which neighbors are replaced by neighbors of theirs, another one for each random stream.

The graphs of a batch are one block-diagonal matrix. Replicas of one stream stand side by side as its columns, so that a
product reads each entry once for all of them, and sums a row in the order of its columns, on a GPU, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from propreg.engine import ops
from propreg.engine.ops.embedding_bag import bag_product

if TYPE_CHECKING:
    from propreg.engine.tasks.node import Problem


class Rewiring:
    """Draws graphs from a graph whose edges count once each, and whose nodes have self-loops.

    An edge u ← v is visited from u. A visit that hits cuts it, in the other direction, too, and adds one from a random
    neighbor of v, u among them, in the directions of the edge that it replaces. An edge in both directions is visited
    twice. One that is there already is added no second time, and an added one between a node and itself is its loop.
    """

    def __init__(self, problem: Problem) -> None:
        graph = problem.propagation("sym", True)
        row, col, normalized = graph.entries(torch.float64)
        degree = graph.degree().double()
        # Exactly 1 without weights: symmetric graphs need no transpose.
        weights = torch.ones_like(normalized)
        if problem.edge_weight is not None:
            weights = normalized * (degree[row] * degree[col]).sqrt()
        size = self.size = problem.num_nodes
        place, number = torch.unique(row * size + col, return_inverse=True)
        values = torch.zeros(len(place), dtype=torch.float64, device=place.device).index_add_(0, number, weights)
        place, values = place.to(problem.device), values.to(problem.device, problem.dtype)
        loop = place // size == place % size
        self._loop, self._loop_values = place[loop], values[loop]
        self._place, self._values = place[~loop], values[~loop]
        self._row, self._col = self._place // size, self._place % size
        back = self._col * size + self._row
        self._back = torch.searchsorted(self._place, back).clamp(max=max(len(back) - 1, 0))
        self._both = self._place[self._back] == back
        self._count = torch.bincount(self._row, minlength=size)
        self._start = self._count.cumsum(0) - self._count
        self.symmetric = bool(self._both.all()) and bool((self._values[self._back] == self._values).all())

    @property
    def edges(self) -> int:
        """The number of visits, E."""
        return len(self._place)

    def drawn(self, hits: Tensor, picks: Tensor) -> tuple[Tensor, Tensor]:
        """The places of the entries of graphs, rising, and their values; place (g · N + i) · N + j is i ← j of graph g.

        Args:
            hits: Which visits hit, bool [G, E].
            picks: Numbers in [0, 1) that pick the neighbors of v, [G, E].
        """
        graphs, size, v = len(hits), self.size, self._col
        cut = hits | (hits[:, self._back] & self._both)
        count = self._count[v]
        picked = (picks * count).long().add_(self._start[v]).clamp_(max=max(len(v) - 1, 0))
        picked = torch.where(count > 0, v[picked], v)  # a node that only sends has no neighbor but itself
        first = torch.arange(graphs, device=v.device).unsqueeze(1) * size**2
        backward = hits & self._both
        kept = (first + self._loop).flatten(), (first + self._place)[~cut]
        added = (first + self._row * size + picked)[hits], (first + picked * size + self._row)[backward]
        of_loops = self._loop_values.expand(graphs, -1).flatten()
        values, of_back = (known.expand(graphs, -1) for known in (self._values, self._values[self._back]))
        place, order = torch.cat([*kept, *added]).sort(stable=True)
        found = torch.cat([of_loops, values[~cut], values[hits], of_back[backward]])[order]
        once = torch.ones_like(place, dtype=torch.bool)
        once[1:] = place[1:] != place[:-1]
        return place[once], found[once]


class Beside(ops.Sharing):
    """Replicas of one random stream, side by side."""

    def __init__(self, streams: NDArray[np.uint64], device: torch.device) -> None:
        super().__init__(streams, device)
        self._flat = self._table.flatten()
        self._plain = torch.equal(self._flat, torch.arange(len(streams), device=device))

    def beside(self, x: Tensor) -> Tensor:
        """From [R, N, W] to [streams · N, most replicas of a stream · W]."""
        (streams, most), (nodes, width) = self._table.shape, x.shape[1:]
        x = x if self._plain else x[self._flat]
        return x.view(streams, most, nodes, width).transpose(1, 2).reshape(streams * nodes, most * width)

    def apart(self, y: Tensor) -> Tensor:
        """The other way round."""
        streams, most = self._table.shape
        x = y.view(streams, len(y) // streams, most, -1).transpose(1, 2).flatten(0, 1)
        return x if self._plain else x[self._slot]


class Rewired:
    """The graphs of an epoch as operators on [R, N, W].

    Args:
        rewiring: What they are drawn from.
        sharing: Which replicas have the same one.
        place, values: Their entries, see :meth:`Rewiring.drawn`.
    """

    def __init__(self, rewiring: Rewiring, sharing: Beside, place: Tensor, values: Tensor) -> None:
        size, rows = rewiring.size, len(sharing.first) * rewiring.size
        row, col = place // size, place % size + place // size**2 * size
        self.sharing, self.size = sharing, rows
        self._by_rows = _pointers(row, rows), col.int(), values
        self._by_columns = self._by_rows
        if not rewiring.symmetric:
            by_column, order = col.sort(stable=True)
            self._by_columns = _pointers(by_column, rows), row[order].int(), values[order]
        degree = values.new_zeros(rows, 1).add_(bag_product(*self._by_rows, values.new_ones(1, rows, 1))[0])
        self.degree = degree.view(-1, size, 1)[sharing.member]
        self._root = self.degree.rsqrt().masked_fill_(self.degree == 0, 0.0)

    def normalized(self, x: Tensor) -> Tensor:
        """D^(−1/2) A D^(−1/2) x."""
        return self._root * self.sums(self._root * x)

    def averaged(self, x: Tensor) -> Tensor:
        """D⁻¹ A x."""
        return self._root.square() * self.sums(x)

    def sums(self, x: Tensor) -> Tensor:
        """A x."""
        product: Tensor = _Sums.apply(x, self)  # type: ignore[no-untyped-call]
        return product

    def multiply(self, x: Tensor, transposed: bool) -> Tensor:
        """The bare product."""
        entries = self._by_columns if transposed else self._by_rows
        return self.sharing.apart(bag_product(*entries, self.sharing.beside(x).unsqueeze(0))[0])


class _Sums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, graphs: Rewired) -> Tensor:
        ctx.graphs = graphs
        return graphs.multiply(x, False)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.graphs.multiply(grad, True), None


def _pointers(ordered: Tensor, count: int) -> Tensor:
    return torch.searchsorted(ordered, torch.arange(count + 1, device=ordered.device)).int()
