"""The nodes of a batch that are drawn for P-reg alone, and the edges into them."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from propreg.scale.randomness import uniform


@dataclass(frozen=True)
class Outer:
    """Some nodes, with all edges into them or with a random part.

    Attributes:
        own: The graph's numbers of the nodes, int64 [n].
        target, edge: For each edge the place of its target in ``own``, and its own place in the graph.
        in_edges: How many edges lead into each node, int64 [n].
        rank, level: With a random part, each edge's place in a random order of all edges into its node, and the number
            of times that the node's part was doubled, see :func:`doublings`; else None.
    """

    own: Tensor
    target: Tensor
    edge: Tensor
    in_edges: Tensor
    rank: Tensor | None = None
    level: Tensor | None = None


def edges_into(start: Tensor, own: Tensor) -> Outer:
    """All edges into nodes of a graph as :class:`propreg.data.csr.InEdges` has it."""
    first = start[own]
    degree = start[own + 1] - first
    ends = degree.cumsum(0)
    size = int(ends[-1])  # a GPU has to be asked
    target = torch.repeat_interleave(degree, output_size=size)
    edge = torch.arange(size, device=own.device) + (first - ends + degree)[target]
    return Outer(own, target, edge, degree)


def some_edges_into(
    start: Tensor, own: Tensor, k: int, rng: np.random.Generator | torch.Generator, *, doubled: bool
) -> Outer:
    """A random part of the edges into each node: k, or more of those whose part is doubled."""
    every = edges_into(start, own)
    degree, target = every.in_edges, every.target
    level = doublings(degree, k, uniform(len(own), rng)) if doubled else torch.zeros_like(degree)
    rank = _shuffled(target, degree, uniform(len(target), rng))
    kept = (rank < (k << level)[target]).nonzero().flatten()
    return Outer(own, target[kept], every.edge[kept], degree, rank[kept], level)


def _shuffled(target: Tensor, degree: Tensor, drawn: Tensor) -> Tensor:
    """The place of each edge in a random order of the edges with its target."""
    order = drawn.argsort()
    order = order[target[order].argsort(stable=True)]
    place = torch.arange(len(order), device=order.device)
    rank = torch.empty_like(order).index_copy_(0, order, place)
    return rank - (degree.cumsum(0) - degree)[target]


def doublings(degree: Tensor, k: int, drawn: Tensor) -> Tensor:
    r"""How often the part of each node is doubled: ℓ times with probability :math:`2^{-3\ell/2}`, else not at all.

    At most as often as it takes to hold all edges. On average a part is less than three times k.

    Example:
        >>> doublings(torch.tensor([4, 5, 8, 9]), 4, torch.full((4,), 0.4)).tolist()
        [0, 0, 0, 2]
        >>> doublings(torch.tensor([4, 5, 8, 9]), 4, torch.full((4,), 0.3)).tolist()
        [0, 1, 1, 1]
    """
    limits = k << torch.arange(40, device=degree.device)
    needed = torch.bucketize(degree, limits)
    ends = (2.0 ** (-1.5 * torch.arange(1, 41, device=degree.device, dtype=torch.float64))).cumsum(0)
    level = torch.bucketize(drawn, ends, right=True) + 1
    return torch.where(level <= needed, level, 0)
