"""A graph on its device: the features, the matrices and the splits that a batch of replicas shares."""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from propreg._propagation import Propagation
from propreg.data.graph import Graph, SparseFeatures, Split
from propreg.engine.check import check_graph
from propreg.engine.features import Features
from propreg.engine.gat import Gat
from propreg.engine.losses import Regulariser
from propreg.engine.models import Appnp, Layers, Network
from propreg.engine.sparse import Matrix, Pattern
from propreg.engine.spec import Method, Model, Replica
from propreg.engine.targets import Targets


class Problem:
    """Everything about the graph that does not depend on a replica, made once per batch and device."""

    def __init__(
        self, graph: Graph, splits: Mapping[str, Split], device: torch.device | str, dtype: torch.dtype = torch.float32
    ) -> None:
        check_graph(graph, splits)
        self.graph, self.splits, self.dtype = graph, splits, dtype
        self.device = device = _device(device)
        self.digest = graph_digest(graph)
        self.num_nodes, self.num_classes = graph.num_nodes, graph.num_classes
        self.y = torch.from_numpy(graph.y).to(device)
        self.features = Features.of(graph, device, dtype)
        self._edges = torch.from_numpy(graph.edge_index)
        self._edge_weight = None if graph.edge_weight is None else torch.from_numpy(graph.edge_weight)
        self._adjacencies: dict[tuple[str, bool], Matrix] = {}
        self._pattern_with_loops: Pattern | None = None

    def network(self, model: Model) -> Network:
        """The model on this graph."""
        if model.name == "mlp":
            return Layers(model, self.features, self.num_classes, None)
        if model.name == "gat":
            return Gat(model, self.features, self.num_classes, self._looped_pattern())
        adjacency = self._adjacency("sym", True)
        kind = Layers if model.name == "gcn" else Appnp
        return kind(model, self.features, self.num_classes, adjacency)

    def regulariser(self, method: Method) -> Regulariser | None:
        """The method's term on this graph, None where it has none of its own."""
        if method.name in ("plain", "label_smoothing"):
            return None
        if method.name == "preg":
            propagation = self._propagation(method.norm, method.add_self_loops)
            connected = propagation.connected().to(self.device, self.dtype)
            adjacency = self._adjacency(method.norm, method.add_self_loops)
            return Regulariser(method, adjacency=adjacency, connected=connected)
        if method.name == "laplacian":
            if method.variant == "official" and self._edge_weight is not None:
                raise ValueError(
                    "the official Laplacian knows no edge weights, but the graph has some: leave them out."
                )
            matrix, number = self._laplacian()
            return Regulariser(method, laplacian=matrix, edges=self._edges.to(self.device), num_edges=number)
        return Regulariser(method)

    def targets(self, replicas: Sequence[Replica]) -> Targets:
        """The training nodes of each replica, rows of unequal length filled up with weight 0."""
        rows = [np.flatnonzero(self.splits[r.split].train) for r in replicas]
        nodes, weights = _padded(rows)
        index = torch.from_numpy(nodes).to(self.device)
        classes = self.y[index].clamp(min=0)  # what fills up a row is node 0, which may have no class
        return Targets(index, classes, torch.from_numpy(weights).to(self.device, self.dtype))

    def judged(self, replicas: Sequence[Replica], part: str) -> tuple[Tensor, Tensor]:
        """The nodes of a part of each replica's split, and 1 where a row is not filled up. int64, bool [R, T]."""
        rows = [np.flatnonzero(getattr(self.splits[r.split], part)) for r in replicas]
        nodes, weights = _padded(rows)
        return torch.from_numpy(nodes).to(self.device), torch.from_numpy(weights > 0).to(self.device)

    def _propagation(self, norm: str, loops: bool) -> Propagation:
        return Propagation(
            self._edges,
            self.num_nodes,
            self._edge_weight,
            norm=norm,  # type: ignore[arg-type]
            add_self_loops=loops,
        )

    def _adjacency(self, norm: str, loops: bool) -> Matrix:
        """Made once: kernels keep what they know of it, the order of its rows for example, as long as it is there."""
        if (norm, loops) not in self._adjacencies:
            row, col, values = self._propagation(norm, loops)._normalised(self.dtype)
            self._adjacencies[norm, loops] = self._matrix(row, col, values)
        return self._adjacencies[norm, loops]

    def _laplacian(self) -> tuple[Matrix, float]:
        from propreg._baselines import _once

        graph = self._propagation("rw", False)
        weight, number = _once(graph, torch.float64)
        source, target = self._edges
        degree = weight.new_zeros(self.num_nodes)
        degree.index_add_(0, source, weight).index_add_(0, target, weight)
        nodes = torch.arange(self.num_nodes, device=source.device)
        row, col = torch.cat([source, target, nodes]), torch.cat([target, source, nodes])
        matrix = self._matrix(row, col, torch.cat([-weight, -weight, degree]).to(self.dtype))
        return matrix, max(float(number), 1.0)

    def _matrix(self, row: Tensor, col: Tensor, values: Tensor) -> Matrix:
        size = (self.num_nodes, self.num_nodes)
        return Matrix(row.to(self.device), col.to(self.device), values.to(self.device), size)

    def _looped_pattern(self) -> Pattern:
        """Every edge as often as it is listed, and one loop at every node, as PyG's GAT has them; made once."""
        if self._pattern_with_loops is None:
            source, target = self._edges
            real, nodes = source != target, torch.arange(self.num_nodes, device=source.device)
            row, col = torch.cat([target[real], nodes]), torch.cat([source[real], nodes])
            size = (self.num_nodes, self.num_nodes)
            self._pattern_with_loops = Pattern(row.to(self.device), col.to(self.device), size)
        return self._pattern_with_loops


def _device(device: torch.device | str) -> torch.device:
    try:
        return torch.device(device)
    except (RuntimeError, TypeError):
        raise ValueError(f"device must be like 'cpu', 'cuda' or 'cuda:0', but {device!r} came.") from None


def graph_digest(graph: Graph) -> str:
    """The content digest that a run's identity holds: the catalogue's where there is one, else of the arrays."""
    if graph.digests:
        text = ",".join(f"{part}={digest}" for part, digest in sorted(graph.digests.items()))
        return hashlib.sha256(text.encode()).hexdigest()
    sha = hashlib.sha256()
    x = graph.x
    arrays = [x.indptr, x.indices, x.filled()] if isinstance(x, SparseFeatures) else [x]
    for array in [graph.edge_index, graph.y, *arrays, *([] if graph.edge_weight is None else [graph.edge_weight])]:
        sha.update(str((array.dtype.str, array.shape)).encode())
        sha.update(np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()


def _padded(rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    longest = max(len(row) for row in rows)
    nodes, weights = np.zeros((len(rows), longest), np.int64), np.zeros((len(rows), longest))
    for i, row in enumerate(rows):
        nodes[i, : len(row)] = row
        weights[i, : len(row)] = 1.0 / len(row)
    return nodes, weights
