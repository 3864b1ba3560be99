"""Node datasets as npz files in the package's own form: what the cache holds and what sharing copies.

Each undirected edge once with source < target, sorted; features as CSR (``x_values`` absent where all are 1) or as
packed bits; labels; the public split as node numbers. All arrays are plain numbers.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data._npz import read_npz, write_npz
from propreg.data.edges import check_nodes, once, undirected
from propreg.data.errors import DataError
from propreg.data.graph import Graph, SparseFeatures, Split
from propreg.data.sparse import checked_csr, from_dense

_SPLIT = {"train": "train_idx", "val": "val_idx", "test": "test_idx"}
_ARRAYS = {
    "edge_index", "y", "x_indptr", "x_indices", "x_values", "x_packed", "x_shape", "num_nodes", "num_features",
    "num_classes", "unlabelled_idx", *_SPLIT.values(),
}  # fmt: skip
_MAX_BYTES = 256 << 20


def read_nodes(path: Path, name: str) -> Graph:
    """Read a node dataset; everything but the digests is checked here.

    Args:
        path: The npz file.
        name: What to call the graph.

    Returns:
        The graph with sparse features, edges sorted by (source, target), and the public split if it has one;
        ``extra["unlabelled"]`` holds the nodes that have neither features nor label in the source.

    Raises:
        DataError: If the file cannot be read or its arrays do not fit together.
    """
    arrays = read_npz(path, only=_ARRAYS, max_bytes=_MAX_BYTES)
    where = str(path)
    nodes, features, classes = (_number(arrays, f"num_{what}", where) for what in ("nodes", "features", "classes"))
    y = _integers(arrays, "y", where, 1)
    if len(y) != nodes or (nodes and not 0 <= int(y.min()) <= int(y.max()) < classes):
        raise DataError(f"{where}: y does not hold one of {classes} classes for each of {nodes} nodes: it is damaged.")
    edges = _integers(arrays, "edge_index", where, 2)
    if len(edges) != 2:
        raise DataError(f"{where}: edge_index must have two rows, but has {len(edges)}: it is damaged.")
    edge_index = undirected(edges[0], edges[1], nodes, f"{where}, edge_index")
    if edge_index.shape[1] != 2 * edges.shape[1]:
        raise DataError(f"{where}: edge_index holds self-loops or an edge twice: it is damaged.")
    unlabelled = _integers(arrays, "unlabelled_idx", where, 1) if "unlabelled_idx" in arrays else np.zeros(0, np.int64)
    check_nodes(unlabelled, nodes, f"{where}, unlabelled_idx")
    if bool(y[unlabelled].any()):
        raise DataError(f"{where}: unlabelled_idx names a node that has a label: it is damaged.")
    split = None
    if any(member in arrays for member in _SPLIT.values()):
        split = Split(**{which: _mask(arrays, member, nodes, where) for which, member in _SPLIT.items()})
    return Graph(
        name,
        edge_index,
        _features(arrays, nodes, features, where),
        y.astype(np.int64),
        split=split,
        extra={"unlabelled": unlabelled.astype(np.int64), "classes": classes},
    )


def write_nodes(path: Path, graph: Graph) -> None:
    """Write a node dataset for :func:`read_nodes`, whole or not at all."""
    x = graph.x if isinstance(graph.x, SparseFeatures) else from_dense(graph.x)
    arrays: dict[str, NDArray[Any]] = {
        "edge_index": once(graph.edge_index).astype(np.int32),
        "y": graph.y.astype(np.int32),
        "num_nodes": np.asarray(graph.num_nodes, np.int32),
        "num_features": np.asarray(graph.num_features, np.int32),
        "num_classes": np.asarray(graph.extra.get("classes", graph.num_classes), np.int32),
        "x_indptr": x.indptr,
        "x_indices": x.indices,
        "x_shape": np.asarray(x.shape, np.int32),
    }
    if x.values is not None:
        arrays["x_values"] = x.values
    if graph.split is not None:
        for which, member in _SPLIT.items():
            arrays[member] = np.flatnonzero(getattr(graph.split, which)).astype(np.int32)
    if len(graph.extra.get("unlabelled", ())):
        arrays["unlabelled_idx"] = graph.extra["unlabelled"]
    write_npz(path, arrays)


def _features(arrays: dict[str, NDArray[Any]], nodes: int, features: int, where: str) -> SparseFeatures:
    shape = _integers(arrays, "x_shape", where, 1)
    if shape.tolist() != [nodes, features]:
        raise DataError(
            f"{where}: x_shape is {shape.tolist()} for {nodes} nodes and {features} features: it is damaged."
        )
    if "x_packed" not in arrays:
        indptr, indices = (_integers(arrays, f"x_{part}", where, 1) for part in ("indptr", "indices"))
        return checked_csr(indptr, indices, arrays.get("x_values"), (nodes, features), f"{where}, x")
    packed = arrays["x_packed"]
    if packed.dtype != np.uint8 or packed.shape != (nodes, (features + 7) // 8):
        raise DataError(f"{where}: x_packed has type {packed.dtype} and shape {packed.shape}: it is damaged.")
    return from_dense(_Bits(packed, features))  # type: ignore[arg-type]


class _Bits:
    """Packed bits that unpack block by block, so that the dense matrix is never there at once."""

    def __init__(self, packed: NDArray[np.uint8], columns: int) -> None:
        self._packed = packed
        self.shape = (len(packed), columns)

    def __getitem__(self, rows: slice) -> NDArray[np.uint8]:
        return np.unpackbits(self._packed[rows], axis=1, count=self.shape[1])


def _mask(arrays: dict[str, NDArray[Any]], member: str, nodes: int, where: str) -> NDArray[np.bool_]:
    index = _integers(arrays, member, where, 1)
    check_nodes(index, nodes, f"{where}, {member}")
    mask = np.zeros(nodes, bool)
    mask[index] = True
    if int(mask.sum()) != len(index):
        raise DataError(f"{where}: {member} names a node twice: it is damaged.")
    return mask


def _number(arrays: dict[str, NDArray[Any]], member: str, where: str) -> int:
    value = int(_integers(arrays, member, where, 0))
    if not 0 <= value < 2**31:
        raise DataError(f"{where}: {member} is {value}: it is damaged.")
    return value


def _integers(arrays: dict[str, NDArray[Any]], member: str, where: str, dimensions: int) -> NDArray[Any]:
    if member not in arrays:
        raise DataError(f"{where}: has no array {member!r}: it is not a dataset file of propreg, or damaged.")
    array = arrays[member]
    if array.dtype.kind not in "iu" or array.ndim != dimensions:
        raise DataError(
            f"{where}: {member} must be integers in {dimensions} dimensions, but has type {array.dtype} "
            f"and shape {array.shape}: it is damaged."
        )
    return array
