"""A graph as a folder: ``edges.csv``, ``nodes.csv`` and perhaps ``features.npy`` or ``features.npz``."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from propreg.data._edges_csv import read_edges
from propreg.data._edges_merge import merge_edges
from propreg.data._features import read_features
from propreg.data._nodes_csv import Nodes, read_nodes
from propreg.data.errors import DataError
from propreg.data.graph import Graph, SparseFeatures
from propreg.data.own_check import readable


def read_folder(path: Path, *, directed: bool = False) -> Graph:
    """Read a graph from a folder; the format is described at :func:`propreg.load_graph`.

    Args:
        path: The folder.
        directed: Take each line of ``edges.csv`` as one edge source → target, not as both directions.

    Returns:
        The graph, nodes in the order of ``nodes.csv``, edges sorted by source, then target.

    Raises:
        DataError: If a file is missing or not as it should be; the message names the file and the line.
    """
    for needed in ("edges.csv", "nodes.csv"):
        if not (path / needed).exists():
            raise DataError(f"{path}: has no {needed}: a graph's folder holds edges.csv and nodes.csv.")
    nodes = read_nodes(path / "nodes.csv")
    x = _features(path, nodes)
    lines = read_edges(path / "edges.csv", nodes.ids)
    edge_index, weight = merge_edges(lines, len(nodes.ids), directed=directed, where=str(path / "edges.csv"))
    return Graph(
        readable(path.resolve().name),
        edge_index,
        x,
        nodes.y,
        weight,
        nodes.split,
        nodes.class_names,
        tuple(nodes.ids),
    )


def _features(path: Path, nodes: Nodes) -> NDArray[np.float32] | SparseFeatures:
    files = [file for file in (path / "features.npy", path / "features.npz") if file.exists()]
    if nodes.x is not None:
        if files:
            raise DataError(
                f"{path}: has features in {files[0].name} and in nodes.csv (column {nodes.feature_names[0]!r:.80}): "
                "take one of them out."
            )
        return nodes.x
    if not files:
        raise DataError(
            f"{path / 'nodes.csv'}: has no feature columns, and there is no features.npy or features.npz: add one."
        )
    if len(files) > 1:
        raise DataError(f"{path}: has both features.npy and features.npz: take one of them out.")
    x = read_features(files[0])
    if x.shape[0] != len(nodes.ids):
        raise DataError(
            f"{files[0]}: has {x.shape[0]} rows but nodes.csv has {len(nodes.ids)} nodes: "
            "give one row per node, in the order of nodes.csv."
        )
    return x
