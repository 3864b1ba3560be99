"""The counts of a benchmark graph, compared with what its publishers give."""

from typing import NamedTuple

import numpy as np

from propreg.data.describe import homophily, isolated
from propreg.data.graph import Graph, SparseFeatures


class Facts(NamedTuple):
    """Undirected edges are counted once; ``stored`` are feature values, ``histogram`` the nodes per class."""

    nodes: int
    edges: int
    features: int
    classes: int
    isolated: int
    stored: int
    homophily: float
    histogram: str


def check_counts(graph: Graph, facts: Facts, *, valued: bool) -> None:
    """The graph has these counts; ``valued``: and feature values other than 1."""
    assert isinstance(graph.x, SparseFeatures)
    assert (graph.num_nodes, graph.edge_index.shape[1], graph.num_features) == (
        facts.nodes,
        2 * facts.edges,
        facts.features,
    )
    assert (graph.num_classes, len(graph.x.indices)) == (facts.classes, facts.stored)
    assert isolated(graph.edge_index, facts.nodes) == facts.isolated
    assert round(homophily(graph.edge_index, graph.y), 3) == facts.homophily
    assert np.bincount(graph.y).tolist() == list(map(int, facts.histogram.split()))
    assert (graph.x.values is not None) == valued
