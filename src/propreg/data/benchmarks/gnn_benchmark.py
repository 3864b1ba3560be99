"""The Coauthor and Amazon graphs from the npz files of the GNN benchmark of Shchur et al."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.edges import undirected
from propreg.data.errors import DataError
from propreg.data.features import checked_csr
from propreg.data.formats.npz import read_npz
from propreg.data.graph import Graph, SparseFeatures

_ARRAYS = {f"{matrix}_{part}" for matrix in ("adj", "attr") for part in ("data", "indices", "indptr", "shape")}


def read_benchmark(path: Path, name: str) -> Graph:
    """Read one npz file as PyG's ``read_npz`` does: counts made 0/1, both directions of every edge, no self-loops.

    Only the nine needed arrays are read; the files also hold names as pickled objects, which are ignored.
    """
    arrays = read_npz(path, only={*_ARRAYS, "labels"}, max_bytes=256 << 20)
    where = str(path)
    missing = sorted({*_ARRAYS, "labels"} - set(arrays))
    if missing:
        raise DataError(f"{where}: has no array {missing[0]!r}: it is not a file of the GNN benchmark, get it again.")
    x = _matrix(arrays, "attr", where)
    if x.values is not None:
        x = SparseFeatures(x.indptr, x.indices, np.where(x.values > 0, np.float32(1), x.values), x.shape)
        x = checked_csr(x.indptr, x.indices, x.values, x.shape, f"{where}, attr")
    adjacency = _matrix({**arrays, "adj_data": np.ones(len(arrays["adj_indices"]), np.int8)}, "adj", where)
    labels = arrays["labels"]
    nodes = x.shape[0]
    if labels.dtype.kind not in "iu" or labels.shape != (nodes,) or adjacency.shape != (nodes, nodes):
        raise DataError(
            f"{where}: {nodes} rows of features, labels of type {labels.dtype} and shape {labels.shape}, and an "
            f"adjacency of shape {adjacency.shape} do not fit: the file is damaged, get it again."
        )
    if nodes == 0 or not 0 <= int(labels.min()) <= int(labels.max()) < 1000:
        raise DataError(f"{where}: its labels are not classes: the file is damaged, get it again.")
    source = np.repeat(np.arange(nodes), np.diff(adjacency.indptr))
    return Graph(
        name,
        undirected(source, adjacency.indices, nodes, f"{where}, adj"),
        x,
        labels.astype(np.int64),
        extra={"unlabeled": np.zeros(0, np.int64), "classes": int(labels.max()) + 1},
    )


def _matrix(arrays: dict[str, NDArray[Any]], prefix: str, where: str) -> SparseFeatures:
    data, indices, indptr, shape = (arrays[f"{prefix}_{part}"] for part in ("data", "indices", "indptr", "shape"))
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise DataError(f"{where}: {prefix}_shape does not hold two integers: the file is damaged, get it again.")
    return checked_csr(indptr, indices, data, (int(shape[0]), int(shape[1])), f"{where}, {prefix}")
