"""What a sampler returns, and what both samplers check."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Sample:
    """A subgraph around some seeds: the seeds come first, then other roots, then what each hop newly reached.

    Attributes:
        nodes: The graph's number of each row, int64 [n].
        edge_index: int64 [2, e], source over target, in rows.
        edge: The place of each edge in :class:`propreg.data.csr.InEdges`, int64 [e].
        roots: The rows of the other roots, in the order given.
        num_nodes, num_edges: Of the seeds and other roots, then of each hop, as PyG counts them.
    """

    nodes: Tensor
    edge_index: Tensor
    edge: Tensor
    roots: Tensor
    num_nodes: list[int]
    num_edges: list[int]


def checked_fanouts(num_neighbors: Sequence[int]) -> list[int]:
    """One number per hop: at least 1, or −1 for all neighbors.

    Example:
        >>> checked_fanouts([10, 0])
        Traceback (most recent call last):
            ...
        ValueError: num_neighbors must hold one number per hop, at least 1 or -1 for all neighbors, got [10, 0].
    """
    if isinstance(num_neighbors, str) or not isinstance(num_neighbors, Sequence):
        raise TypeError(f"num_neighbors must be a list with one number per hop, got {num_neighbors!r}.")
    if not all(type(k) is int and (k == -1 or k >= 1) for k in num_neighbors):
        raise ValueError(
            f"num_neighbors must hold one number per hop, at least 1 or -1 for all neighbors, got {num_neighbors}."
        )
    return list(num_neighbors)
