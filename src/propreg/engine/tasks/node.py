"""A graph on its device: the features, the matrices and the splits that a batch of replicas shares."""

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from propreg._propagation import Propagation
from propreg.data.digests import join_digests
from propreg.data.graph import Graph, SparseFeatures, Split
from propreg.data.scaling import mean_and_deviation
from propreg.devices import find_device
from propreg.engine import kernels
from propreg.engine.models.network import Network
from propreg.engine.ops.features import Features
from propreg.engine.ops.sparse import Matrix, Pattern
from propreg.engine.regularizers.regularizer import Term
from propreg.engine.spec import Method, Model, Replica, Sizes
from propreg.engine.validate import check_graph


@dataclass
class Targets:
    """The training nodes of each replica: numbers, classes and weights [R, T]; a weight is 0 where a row is short."""

    nodes: Tensor
    classes: Tensor
    weights: Tensor

    def keep(self, kept: Tensor) -> "Targets":
        """The targets of these replicas alone."""
        return Targets(self.nodes[kept], self.classes[kept], self.weights[kept])

    def logits(self, z: Tensor) -> Tensor:
        """The logits of the training nodes, [R, T, C] of [R, N, C]."""
        return z.gather(1, self.nodes.unsqueeze(-1).expand(-1, -1, z.shape[-1]))

    def loss(self, z: Tensor, smoothing: Tensor | None = None) -> Tensor:
        """Mean cross entropy [R] of logits [R, N, C], see :func:`propreg.engine.ops.loss.cross_entropy`."""
        log_p = self.logits(z).log_softmax(-1)
        picked = log_p.gather(-1, self.classes.unsqueeze(-1)).squeeze(-1)
        if smoothing is not None:
            alpha = smoothing.unsqueeze(-1)
            picked = (1 - alpha) * picked + alpha * log_p.mean(-1)
        return -(picked * self.weights).sum(-1)

    def loss_at(self, z: Tensor, nodes: Tensor) -> Tensor | None:  # noqa: ARG002
        """The mean loss [R] of logits [R, T, L] at nodes [R, T] but −1; None where targets are classes."""
        return None

    def entropy_and_slopes(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Mean cross entropy [R] of the training nodes' logits [R, T, C], and its gradient to them.

        Bitwise equal to :func:`propreg.engine.ops.loss.cross_entropy`, so that strength 0 is the plain run.
        """
        log_p, classes = z.log_softmax(-1), self.classes.unsqueeze(-1)
        entropy = -(log_p.gather(-1, classes).squeeze(-1) * self.weights).sum(-1)
        back = torch.zeros_like(log_p).scatter_add_(-1, classes, -self.weights.unsqueeze(-1))
        return entropy, torch.ops.aten._log_softmax_backward_data(back, log_p, -1, log_p.dtype)


class Problem:
    """Everything about the graph that does not depend on a replica, made once per batch and device.

    Args:
        graph: The graph.
        splits: Its splits by name.
        device: Where it is trained on.
        dtype: The type of features and weights.
        balanced: Whether each class of a split's training nodes has the same weight in the loss; else each node has.
        judged_by: The classes that predictions are compared with, where training has others.
    """

    def __init__(
        self,
        graph: Graph,
        splits: Mapping[str, Split],
        device: torch.device | str,
        dtype: torch.dtype = torch.float32,
        *,
        balanced: bool = False,
        judged_by: NDArray[np.int64] | None = None,
    ) -> None:
        check_graph(graph, splits)
        self.graph, self.splits, self.dtype, self.balanced = graph, splits, dtype, balanced
        self.device = device = find_device(device, auto=False)
        self.digest = graph_digest(graph)
        self.num_nodes, self.num_classes = graph.num_nodes, graph.num_classes
        self.y = torch.from_numpy(graph.y if judged_by is None else judged_by).to(device)
        self.values = None if graph.targets is None else torch.from_numpy(graph.targets).to(device)
        self._lock = threading.RLock()  # workers on several cores share what is built on first use
        self._adjacencies: dict[tuple[str, bool], Matrix] = {}
        self._pattern_with_loops: Pattern | None = None

    def network(self, model: Model) -> Network:
        """The model on this graph."""
        return model.architecture.build(self, model)

    def regularizer(self, method: Method) -> Term:
        """The method on this graph."""
        return method.regularizer.build(self, method)

    @cached_property
    def features(self) -> Features:
        """X on the device; mini-batches, which take rows of the graph's, never ask for it."""
        return Features.of(self.graph, self.device, self.dtype)

    @cached_property
    def edge_index(self) -> Tensor:
        """The edges; on the CPU where they have weights."""
        # A sum of weights on a GPU depends on the order of its atomics; a sum of ones does not.
        at = torch.device("cpu") if self.graph.edge_weight is not None else self.device
        return torch.from_numpy(self.graph.edge_index).to(at)

    @cached_property
    def edge_weight(self) -> Tensor | None:
        """The weights of the edges, on the CPU."""
        return None if self.graph.edge_weight is None else torch.from_numpy(self.graph.edge_weight)

    @cached_property
    def sizes(self) -> Sizes:
        """The numbers that memory and time depend on."""
        edges, features = self.graph.edge_index.shape[1], self.features
        fused = self.dtype == torch.float32 and kernels.usable(self.y)
        return Sizes(self.num_nodes, edges, features.shape[1], self.num_classes, features.nnz, fused)

    def targets(self, replicas: Sequence[Replica], given: Sequence[NDArray[np.int64]] | None = None) -> Targets:
        """The training nodes of each replica, rows of unequal length filled up with weight 0.

        Args:
            replicas: The replicas.
            given: By replica the classes of its training nodes, −1 for all others; None: those of its split.
        """
        if given is None:
            rows = [np.flatnonzero(self.splits[r.split].train) for r in replicas]
            given = [self.graph.y] * len(rows)
        else:
            rows = [np.flatnonzero(each >= 0) for each in given]
        nodes, weights = _padded(rows)
        if self.balanced:
            _balance(weights, [each[row] for each, row in zip(given, rows, strict=True)])
        index = torch.from_numpy(nodes).to(self.device)
        # What fills up a row is node 0, which may have no class.
        classes = torch.from_numpy(np.stack([each[row] for each, row in zip(given, nodes, strict=True)]))
        classes = classes.to(self.device).clamp(min=0)
        found = index, classes, torch.from_numpy(weights).to(self.device, self.dtype)
        if self.values is None:
            return Targets(*found)
        from propreg.engine.tasks.values import Values

        mean, deviation = (
            torch.from_numpy(np.stack(each)).to(self.device).unsqueeze(1)
            for each in zip(*(self.units(r.split) for r in replicas), strict=True)
        )
        return Values(*found, self.values, (mean, deviation), self.graph.task)

    def units(self, split: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """What is taken from targets, and what they are divided by: numbers are standardized on the training nodes."""
        values = self.graph.targets
        if values is not None and self.graph.task == "regression":
            return mean_and_deviation(values[self.splits[split].train])
        return np.zeros(self.num_classes, np.float32), np.ones(self.num_classes, np.float32)

    def judged(self, replicas: Sequence[Replica], part: str) -> tuple[Tensor, Tensor]:
        """The nodes of a part of each replica's split, and 1 where a row is not filled up. int64, bool [R, T]."""
        rows = [np.flatnonzero(getattr(self.splits[r.split], part)) for r in replicas]
        nodes, weights = _padded(rows)
        return torch.from_numpy(nodes).to(self.device), torch.from_numpy(weights > 0).to(self.device)

    def propagation(self, norm: str, loops: bool) -> Propagation:
        """The library's propagation of the graph; on the CPU where edges have weights."""
        return Propagation(
            self.edge_index,
            self.num_nodes,
            self.edge_weight,
            norm=norm,  # type: ignore[arg-type]
            add_self_loops=loops,
            validate=False if self.edge_weight is None else None,  # check_graph has checked the node numbers
        )

    def adjacency(self, norm: str, loops: bool) -> Matrix:
        """The normalized adjacency matrix; made once, since kernels keep tables of it, like the order of its rows."""
        with self._lock:
            if (norm, loops) not in self._adjacencies:
                row, col, values = self.propagation(norm, loops).entries(self.dtype)
                self._adjacencies[norm, loops] = self.matrix(row, col, values)
            return self._adjacencies[norm, loops]

    def adjacencies(self, norm: str, loops: bool, layers: int) -> list[Matrix]:
        """The matrix for each layer: here the same."""
        return [self.adjacency(norm, loops)] * layers

    def matrix(self, row: Tensor, col: Tensor, values: Tensor) -> Matrix:
        """A sparse matrix [N, N] on the problem's device."""
        size = (self.num_nodes, self.num_nodes)
        return Matrix(row.to(self.device), col.to(self.device), values.to(self.device), size)

    def looped_pattern(self) -> Pattern:
        """Every edge as often as it is listed, and one loop at every node, as PyG's GAT has them; made once."""
        with self._lock:
            if self._pattern_with_loops is None:
                source, target = self.edge_index
                real, nodes = source != target, torch.arange(self.num_nodes, device=source.device)
                row, col = torch.cat([target[real], nodes]), torch.cat([source[real], nodes])
                size = (self.num_nodes, self.num_nodes)
                self._pattern_with_loops = Pattern(row.to(self.device), col.to(self.device), size)
            return self._pattern_with_loops


def graph_digest(graph: Graph) -> str:
    """The content digest that a run's identity holds: the catalog's where there is one, else of the arrays."""
    if graph.digests:
        return join_digests(graph.digests)
    sha = hashlib.sha256()
    x = graph.x
    arrays = [x.indptr, x.indices, x.filled()] if isinstance(x, SparseFeatures) else [x]
    more = [array for array in (graph.edge_weight, graph.targets) if array is not None]
    for array in [graph.edge_index, graph.y, *arrays, *more]:
        sha.update(str((array.dtype.str, array.shape)).encode())
        sha.update(np.ascontiguousarray(array).data)
    return sha.hexdigest()


def _balance(weights: np.ndarray, classes: list[np.ndarray]) -> None:
    """Give each class of a row the same sum of weights, in place."""
    for i, row in enumerate(classes):
        _, place, counts = np.unique(row, return_inverse=True, return_counts=True)
        weights[i, : len(row)] = 1.0 / (len(counts) * counts[place])


def _padded(rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    longest = max(len(row) for row in rows)
    nodes, weights = np.zeros((len(rows), longest), np.int64), np.zeros((len(rows), longest))
    for i, row in enumerate(rows):
        nodes[i, : len(row)] = row
        weights[i, : len(row)] = 1.0 / len(row)
    return nodes, weights
