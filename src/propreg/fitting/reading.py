"""The graph that ``fit`` was given, with a warning of what is legal in it but seldom meant."""

import hashlib
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.doubts import one_way, unused_classes
from propreg.data.edges import check_nodes
from propreg.data.errors import DataError
from propreg.data.graph import Graph, SparseFeatures
from propreg.data.own import read_graph
from propreg.data.own_check import _weights as check_weights
from propreg.fitting.methods import METHODS

if TYPE_CHECKING:
    from torch_geometric.data import Data

UNDIRECTED = "pass torch_geometric.transforms.ToUndirected()(data)"

_given: set[tuple[str, bytes]] = (
    set()
)  # Python's own rule, once at a place, is forgotten whenever filters change, as in training


def graph_of(data: "Data | Graph") -> Graph:
    """The graph in NumPy arrays; of a ``Data``, each doubt is warned of, once a graph.

    A ``Graph`` is what a reader made of it; one that was made by hand is looked at for parts that do not fit together.

    Raises:
        DataError: If the graph cannot be used as it is.
    """
    if isinstance(data, Graph):
        _check(data)
        return data
    graph = read_graph(data)
    for doubt in (one_way(graph, UNDIRECTED), unused_classes(graph)):
        if doubt:
            warn_once(doubt, graph, stacklevel=4)
    return graph


def without_splits(graph: Graph) -> Graph:
    """The graph named by its edges, features and labels alone.

    Masks in a ``Data`` are no part of a run on other splits: random streams name the split themselves.

    Example:
        >>> graph = Graph("", np.zeros((2, 0), int), np.eye(1), np.zeros(1, int), digests={"edges": "a", "splits": "b"})
        >>> without_splits(graph).digests
        {'edges': 'a'}
    """
    return replace(graph, digests={part: d for part, d in graph.digests.items() if not part.startswith("split")})


def _check(graph: Graph) -> None:
    where = graph.name or "the graph"
    for part in ("y", "edge_index", *(["edge_weight"] if graph.edge_weight is not None else [])):
        _check_array(getattr(graph, part), part, where)
    y, edges = graph.y, graph.edge_index
    if y.dtype != np.int64 or y.ndim != 1:
        raise DataError(f"{where}: y must be the classes of the nodes, int64 [nodes], but {_kind(y)} came.")
    _check_features(graph.x, len(y), where)
    if edges.dtype != np.int64 or edges.ndim != 2 or len(edges) != 2:
        raise DataError(
            f"{where}: edge_index must be int64 [2, edges], source over target, but {_kind(edges)} came: use "
            ".astype(np.int64), and .T where it has a row for each edge."
        )
    check_nodes(edges, len(y), f"{where}, edge_index")
    if graph.edge_weight is not None:
        check_weights(graph.edge_weight, edges.shape[1], where)


def _check_features(x: object, nodes: int, where: str) -> None:
    if isinstance(x, SparseFeatures):
        values, shape = x.filled(), x.shape
        if len(x.indptr) != shape[0] + 1 or int(x.indptr[-1]) != len(x.indices):
            raise DataError(f"{where}: the indptr of x does not fit {shape[0]} rows and {len(x.indices)} values.")
    else:
        values = _check_array(x, "x", where)
        shape = values.shape
        if values.ndim != 2 or values.dtype.kind not in "biuf":
            raise DataError(f"{where}: x must be numbers [nodes, features], but {_kind(values)} came.")
    if shape[0] != nodes:
        raise DataError(f"{where}: x has {shape[0]} rows but y has {nodes}: both need one per node.")
    if not np.isfinite(values).all():
        raise DataError(f"{where}: its features hold a NaN or infinite number: every feature must be finite.")


def _check_array(value: object, part: str, where: str) -> NDArray[Any]:
    if not isinstance(value, np.ndarray):
        raise DataError(
            f"{where}: {part} must be a NumPy array, but a {type(value).__name__} came: of a tensor, tensor.numpy()."
        )
    return value


def _kind(array: NDArray[Any]) -> str:
    return f"{array.dtype} {list(array.shape)}"


def warn_of_unseen_weights(graph: Graph, method: str, model: str = "") -> None:
    """A model of the user's own (no name), a GAT and an MLP do not get the edge weights, which the regulariser uses."""
    if graph.edge_weight is None or method not in ("preg", "laplacian"):
        return
    who, fix = "a model of your own, forward(x, edge_index), does not get them", "keep them in the module, or "
    if model:
        who, fix = f"model={model!r} does not", ""
    doubt = f"{METHODS[method].title} uses the graph's edge weights, but {who}: {fix}train without them."
    warn_once(doubt, graph, stacklevel=4)


def warn_once(doubt: str, graph: Graph, stacklevel: int) -> None:
    """Warn of a doubt once a graph, at the place that called fit."""
    key = (doubt, hashlib.sha256(graph.edge_index.tobytes() + graph.y.tobytes()).digest())
    if key not in _given:
        warnings.warn(doubt, stacklevel=stacklevel)
        _given.add(key)  # after it: where warnings are errors, the next call is warned too
