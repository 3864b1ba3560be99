"""Parts of a large graph as the engine's problems: what an architecture, a regularizer or a module is run on."""

import threading
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from propreg._propagation import Propagation
from propreg.data.csr import InEdges
from propreg.data.graph import Graph, SparseFeatures
from propreg.data.scaling import Features as Rows
from propreg.data.scaling import Scaling
from propreg.engine import Problem
from propreg.engine.models.network import Parameters
from propreg.engine.ops.features import Features
from propreg.engine.ops.sparse import Matrix, Pattern
from propreg.scale.numpy_sampler import NumpySampler
from propreg.scale.source import always, from_edges

EDGES = 1 << 18  # of the nodes whose exact neighborhoods are computed at a time
KEPT = 4 * EDGES  # edges of such neighborhoods that stay in memory from one evaluation to the next


class Block(Problem):
    """Some nodes of a graph with some of its edges, and the degrees of the whole.

    Only what networks and regularizers are built from is there: nothing is known of splits and targets.

    Args:
        whole: The graph.
        nodes: Its nodes that are rows here.
        edge_index: The edges, in rows.
        weight: The edges' own weights; None for 1.
        share: If edges are sampled, how many each edge into a row stands for.
        rings: If rows are in the order of hops, their number for each.
    """

    def __init__(  # not Problem's, which checks and hashes a whole graph
        self,
        whole: "LargeGraph",
        nodes: Tensor,
        edge_index: Tensor,
        weight: Tensor | None = None,
        share: Tensor | None = None,
        rings: Sequence[int] = (),
    ) -> None:
        problem = whole.problem
        self.whole, self.nodes, self.own_weight, self.rings = whole, nodes, weight, rings
        self.dtype, self.device, self.splits, self.balanced = problem.dtype, problem.device, {}, False
        self.num_nodes, self.num_classes = len(nodes), problem.num_classes
        self.edge_index, self.edge_weight = edge_index, weight  # on the CPU, where matrices are made
        if share is not None:
            source, target = edge_index
            factor = torch.where(source == target, 1.0, share[target])  # loops stay what they are
            if bool((factor != 1).any()):
                self.edge_weight = factor if weight is None else factor * weight
        self._lock = threading.RLock()
        self._adjacencies: dict[tuple[str, bool], Matrix] = {}
        self._pattern_with_loops: Pattern | None = None

    @cached_property
    def features(self) -> Features:
        """Those of the rows."""
        y = np.zeros(self.num_nodes, np.int64)
        return Features.of(Graph("", self.edge_index.numpy(), self.whole.rows(self.nodes), y), self.device, self.dtype)

    def propagation(self, norm: str, loops: bool) -> Propagation:
        """With the whole graph's degrees."""
        return Propagation(
            self.edge_index,
            self.num_nodes,
            self.edge_weight,
            norm=norm,  # type: ignore[arg-type]
            add_self_loops=loops,
            degree=self.whole.degree(loops)[self.nodes],
            validate=False,
        )

    def adjacencies(self, norm: str, loops: bool, layers: int) -> list[Matrix]:
        """In the order of hops each layer computes the rows that the next one reads, and no others."""
        if len(self.rings) != layers + 1:
            return super().adjacencies(norm, loops, layers)
        row, col, values = self.propagation(norm, loops).entries(self.dtype)
        found, ends = [], np.cumsum(self.rings).tolist()
        for rows, columns in zip(ends[-2::-1], ends[:0:-1], strict=True):
            kept = row < rows
            some = [each[kept].to(self.device) for each in (row, col, values)]
            found.append(Matrix(some[0], some[1], some[2], (rows, columns)))
        return found

    def tensors(self) -> Parameters:
        """What a module of the user's own takes, by PyG's names."""
        x = self.whole.rows(self.nodes)
        dense = torch.from_numpy(x.to_dense() if isinstance(x, SparseFeatures) else x)
        found = {"x": dense.to(self.device, self.dtype), "edge_index": self.edge_index.to(self.device)}
        if self.own_weight is not None:
            found["edge_weight"] = self.own_weight.to(self.device, self.dtype)
        return found


class LargeGraph:
    """A graph of which blocks are cut: its features stay where they are, perhaps on disk.

    Args:
        problem: Its graph has the features as they are.
        scaling: What is done to the rows of a block.
    """

    def __init__(self, problem: Problem, scaling: Scaling) -> None:
        graph = problem.graph
        self.problem, self.scaling, self.num_nodes = problem, scaling, graph.num_nodes
        self.edges = InEdges.of(graph.edge_index, graph.num_nodes, graph.edge_weight)
        self.source = from_edges(self.edges, {}, always)
        self._degrees: dict[bool, Tensor] = {}

    def rows(self, nodes: Tensor) -> Rows:
        """The scaled features of some nodes."""
        return self.scaling(rows_of(self.problem.graph.x, nodes.numpy()))

    def degree(self, loops: bool) -> Tensor:
        """D of the whole graph, float64 [N]."""
        if loops not in self._degrees:
            self._degrees[loops] = self.source.degree(loops)
        return self._degrees[loops]

    def counts(self, nodes: Tensor) -> Tensor:
        """The number of edges into each node."""
        return self.source.start[nodes + 1] - self.source.start[nodes]

    def without_edges(self) -> Iterator[Block]:
        """All nodes in order, some at a time."""
        step = max(1, EDGES // max(1, self.problem.graph.num_features))
        for nodes in torch.split(torch.arange(self.num_nodes), step):
            yield Block(self, nodes, nodes.new_empty(2, 0))


class Neighborhoods:
    """The whole neighborhoods of some nodes, a part of the nodes at a time, which come first in their block.

    Iterating again makes no block anew, as long as there are not too many edges.

    Args:
        whole: The graph.
        nodes: The nodes.
        hops: How far the neighborhoods reach.
    """

    def __init__(self, whole: LargeGraph, nodes: Tensor, hops: int) -> None:
        self.whole, self.hops, self.count = whole, hops, len(nodes)
        self.parts = torch.split(nodes, _sizes(whole.counts(nodes) + 1))
        self._kept: list[Block] = []
        self._edges = 0

    def __iter__(self) -> Iterator[tuple[Tensor, Block]]:
        for number, part in enumerate(self.parts):
            if number < len(self._kept):
                yield part, self._kept[number]
                continue
            block = self._block(part)
            self._edges += block.edge_index.shape[1]
            if number == len(self._kept) and self._edges <= KEPT:
                self._kept.append(block)
            yield part, block

    def _block(self, nodes: Tensor) -> Block:
        whole = self.whole
        sample = NumpySampler(whole.edges, [-1] * self.hops)(nodes, np.random.default_rng(0))
        weight = None if whole.source.weight is None else whole.source.weight[sample.edge]
        return Block(whole, sample.nodes, sample.edge_index, weight)


def rows_of(x: Rows, nodes: NDArray[np.int64]) -> Rows:
    """Some rows of a feature matrix, as a copy.

    Example:
        >>> x = SparseFeatures(np.array([0, 1, 3]), np.array([2, 0, 1], np.int32), None, (2, 3))
        >>> rows_of(x, np.array([1, 0, 1])).to_dense().tolist()
        [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    if not isinstance(x, SparseFeatures):
        return x[nodes]
    start, counts = x.indptr[nodes], x.indptr[nodes + 1] - x.indptr[nodes]
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    place = np.arange(indptr[-1]) + np.repeat(start - indptr[:-1], counts)
    values = None if x.values is None else x.values[place]
    return SparseFeatures(indptr, x.indices[place], values, (len(nodes), x.shape[1]))


def _sizes(cost: Tensor) -> list[int]:
    """How many consecutive nodes to take at a time.

    Example:
        >>> _sizes(torch.tensor([EDGES, 1, 1]))
        [1, 2]
    """
    group = (cost.cumsum(0) - 1).div(EDGES, rounding_mode="floor")
    counts: list[int] = torch.unique_consecutive(group, return_counts=True)[1].tolist()
    return counts
