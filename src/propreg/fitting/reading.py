"""The graph that ``fit`` was given, with a warning of what is legal in it but seldom meant."""

import hashlib
import warnings
from typing import TYPE_CHECKING

import numpy as np

from propreg.data.doubts import one_way, unused_classes
from propreg.data.errors import DataError
from propreg.data.graph import Graph, SparseFeatures
from propreg.data.own import read_graph
from propreg.fitting.methods import METHODS

if TYPE_CHECKING:
    from torch_geometric.data import Data

UNDIRECTED = "pass torch_geometric.transforms.ToUndirected()(data)"

_given: set[tuple[str, bytes]] = (
    set()
)  # Python's own rule, once at a place, is forgotten whenever filters change, as in training


def graph_of(data: "Data | Graph") -> Graph:
    """The graph in NumPy arrays; of a ``Data``, each doubt is warned of, once a graph.

    A ``Graph`` is what a reader made of it; one that was made by hand is looked at for what would only show as NaN.

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


def _check(graph: Graph) -> None:
    values = graph.x.filled() if isinstance(graph.x, SparseFeatures) else graph.x
    if not np.isfinite(values).all():
        raise DataError(f"{graph.name}: its features hold a NaN or infinite number: every feature must be finite.")
    if graph.y.dtype != np.int64:
        raise DataError(f"{graph.name}: y must be the classes of the nodes, int64, but {graph.y.dtype} came.")


def warn_of_unseen_weights(graph: Graph, method: str) -> None:
    """A model of the user's own does not get the edge weights, which the regulariser uses."""
    if graph.edge_weight is None or method not in ("preg", "laplacian"):
        return
    doubt = (
        f"{METHODS[method].title} uses the graph's edge weights, but a model of your own, forward(x, edge_index), does "
        "not get them: keep them in the module, or train without them."
    )
    warn_once(doubt, graph, stacklevel=4)


def warn_once(doubt: str, graph: Graph, stacklevel: int) -> None:
    """Warn of a doubt once a graph, at the place that called fit."""
    key = (doubt, hashlib.sha256(graph.edge_index.tobytes() + graph.y.tobytes()).digest())
    if key not in _given:
        warnings.warn(doubt, stacklevel=stacklevel)
        _given.add(key)  # after it: where warnings are errors, the next call is warned too
