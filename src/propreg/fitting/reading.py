"""The graph that ``fit`` was given, with a warning of what is legal in it but seldom meant."""

import hashlib
import warnings
from typing import TYPE_CHECKING

from propreg.data.doubts import one_way, unused_classes
from propreg.data.graph import Graph
from propreg.data.own import read_graph

if TYPE_CHECKING:
    from torch_geometric.data import Data

UNDIRECTED = "pass torch_geometric.transforms.ToUndirected()(data)"

_given: set[tuple[str, bytes]] = (
    set()
)  # Python's own rule, once at a place, is forgotten whenever filters change, as in training


def graph_of(data: "Data | Graph") -> Graph:
    """The graph in NumPy arrays; of a ``Data``, each doubt is warned of, once a graph.

    A ``Graph`` is what a reader made of it, and taken as it is.

    Raises:
        DataError: If the graph cannot be used as it is.
    """
    if isinstance(data, Graph):
        return data
    graph = read_graph(data)
    for doubt in (one_way(graph, UNDIRECTED), unused_classes(graph)):
        if not doubt:
            continue
        key = (doubt, hashlib.sha256(graph.edge_index.tobytes() + graph.y.tobytes()).digest())
        if key not in _given:
            warnings.warn(doubt, stacklevel=3)  # the place that called fit
            _given.add(key)  # after it: where warnings are errors, the next call is warned too
    return graph
