"""A graph as a folder: ``edges.csv``, ``nodes.csv`` and perhaps ``features.npy`` or ``features.npz``."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from propreg.data.errors import DataError
from propreg.data.features import csr_features, dense_features
from propreg.data.formats.npz import read_npy, read_npz
from propreg.data.graph import Graph, SparseFeatures
from propreg.data.own.edges_csv import EdgeLines, merge_edges, read_edges
from propreg.data.own.nodes_csv import Nodes, read_nodes
from propreg.data.own.validate import readable

_SCIPY = frozenset({"format", "shape", "data", "indices", "indptr"})


def read_folder(
    path: Path, *, directed: bool = False, labeled: bool = True, columns: Mapping[str, str] | None = None
) -> Graph:
    """Read a graph from a folder; the format is described at :func:`propreg.load_graph`.

    Args:
        path: The folder.
        directed: Take each line of ``edges.csv`` as one edge source → target, not as an edge in both directions.
        labeled: Whether ``nodes.csv`` must have a column ``label``.
        columns: The files' names for columns, where they are others.

    Returns:
        The graph, nodes in the order of ``nodes.csv``, edges sorted by source, then target.
    """
    for needed in ("edges.csv", "nodes.csv"):
        if not (path / needed).exists():
            raise DataError(f"{path}: has no {needed}: a graph's folder holds edges.csv and nodes.csv.")
    nodes = read_nodes(path / "nodes.csv", labeled=labeled, columns=columns)
    x = _features(path, nodes)
    lines = read_edges(path / "edges.csv", nodes.ids, columns=columns)
    return graph_of(readable(path.resolve().name), nodes, x, lines, str(path / "edges.csv"), directed=directed)


def read_tables(
    nodes: Path, edges: Path, *, directed: bool = False, labeled: bool = True, columns: Mapping[str, str] | None = None
) -> Graph:
    """Read a graph from a file of nodes with feature columns and a file of edges, as in a folder."""
    found = read_nodes(nodes, labeled=labeled, columns=columns)
    if found.x is None:
        raise DataError(f"{nodes}: has no feature columns: add one for each feature.")
    lines = read_edges(edges, found.ids, columns=columns)
    return graph_of(readable(nodes.stem), found, found.x, lines, str(edges), directed=directed)


def graph_of(
    name: str,
    nodes: Nodes,
    x: NDArray[np.float32] | SparseFeatures,
    lines: EdgeLines,
    where: str,
    *,
    directed: bool,
) -> Graph:
    """The graph of nodes, their features, and lines of edges, which come from ``where``."""
    edge_index, weight = merge_edges(lines, len(nodes.ids), directed=directed, where=where)
    names, ids = nodes.class_names, tuple(nodes.ids)
    return Graph(name, edge_index, x, nodes.y, weight, nodes.split, names, ids, feature_names=nodes.feature_names)


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


def read_features(path: Path) -> NDArray[np.float32] | SparseFeatures:
    """Read ``features.npy`` (one matrix) or ``features.npz``.

    Args:
        path: The file. An npz holds one matrix under any name, or a CSR matrix: as ``scipy.sparse.save_npz``
            writes it, or as ``x_indptr``, ``x_indices``, ``x_shape`` and, unless all values are 1, ``x_values``.

    Returns:
        A dense float32 matrix, or the CSR one in canonical form.
    """
    if path.suffix == ".npy":
        return dense_features(read_npy(path), str(path))
    arrays = read_npz(path)
    if len(arrays) == 1:
        return dense_features(next(iter(arrays.values())), str(path))
    if arrays.keys() == _SCIPY:
        kind = arrays["format"].astype("U3").tolist()
        if kind != "csr":
            raise DataError(f"{path}: is a sparse matrix of format {kind!r}: save it as csr (matrix.tocsr()).")
        return csr_features(
            {f"x_{key}": arrays[key] for key in ("indptr", "indices", "shape")} | {"x_values": arrays["data"]},
            str(path),
        )
    return csr_features(arrays, str(path))
