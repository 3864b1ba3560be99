"""Where a loader's graph comes from: a PyG ``Data`` on any device, or a folder of memory-mapped arrays."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from propreg import Propagation
from propreg.data.csr import InEdges
from propreg.data.own.stored import open_stored
from propreg.scale.torch_sampler import in_edges


@dataclass(frozen=True)
class Source:
    """The edges into each node as tensors, and what every node has: features, labels, masks, its degree."""

    start: Tensor
    source: Tensor
    weight: Tensor | None
    nodes: dict[str, Tensor]
    degree: Callable[[bool], Tensor]
    """The weight of the edges into each node, float64 [N], without or with added self-loops."""
    check: Callable[[], None]
    """Raises if the graph has changed."""

    @property
    def num_nodes(self) -> int:
        return len(self.start) - 1

    def edges(self) -> InEdges:
        """The same edges in NumPy's view of the memory."""
        return InEdges(self.start.numpy(), self.source.numpy(), None if self.weight is None else self.weight.numpy())


def source_of(data: Any) -> Source:
    """The graph of a PyG ``Data`` or of a stored folder; a source as it is."""
    if isinstance(data, Source):
        return data
    if isinstance(data, str | os.PathLike):
        stored = open_stored(data)
        nodes = {name: torch.from_numpy(array) for name, array in stored.arrays.items() if name != "node_ids"}
        return from_edges(stored.edges, nodes, stored.check)
    if not isinstance(getattr(data, "edge_index", None), Tensor) or not hasattr(data, "node_attrs"):
        raise TypeError(
            f"data must be a PyG Data with an edge_index, or the path of a stored graph, got a {type(data).__name__}."
        )
    index, count, weight = data.edge_index, data.num_nodes, getattr(data, "edge_weight", None)
    Propagation(index, count, weight)  # checks all of them, once
    nodes = {key: data[key] for key in data.node_attrs() if isinstance(data[key], Tensor)}
    for key, value in nodes.items():
        if value.layout != torch.strided:
            raise TypeError(f"data.{key} is sparse, and a batch takes rows of it: use data.{key}.to_dense().")
    if index.is_cuda:
        start, source, ordered = in_edges(index, count, weight)
        return Source(start, source, ordered, nodes, partial(_list_degree, index, count, weight), always)
    edges = InEdges.of(index.numpy(), count, None if weight is None else weight.detach().numpy())
    return from_edges(edges, nodes, always)


def from_edges(edges: InEdges, nodes: dict[str, Tensor], check: Callable[[], None]) -> Source:
    """The graph of arrays in memory or in files."""
    return Source(
        torch.from_numpy(edges.start),
        torch.from_numpy(edges.source),
        None if edges.weight is None else torch.from_numpy(edges.weight),
        nodes,
        partial(_degree, edges),
        check,
    )


# Functions, not lambdas: where processes are spawned, workers get a source pickled.


def _degree(edges: InEdges, add_self_loops: bool) -> Tensor:
    return torch.from_numpy(edges.degree(add_self_loops=add_self_loops))


def _list_degree(edge_index: Tensor, num_nodes: int, weight: Tensor | None, add_self_loops: bool) -> Tensor:
    return Propagation(edge_index, num_nodes, weight, add_self_loops=add_self_loops, validate=False).degree()


def always() -> None:
    """A graph in memory does not change unnoticed."""
