"""A graph in one ``.npz`` file.

The format, version 1. Every member is a plain array. Any integer or float type is read, the type below is written.

===================  ============================  ===========================================================
member               type and shape                meaning
===================  ============================  ===========================================================
``edge_index``       int64 [2, E]                  every edge source → target; both directions of an undirected
``y``                int64 [N]                     class of each node from 0; −1 for no label
``x``                float32 [N, F]                the features, unless they are sparse:
``x_indptr``         int64 [N + 1]                 CSR: the start of each row, and the end
``x_indices``        int32 [K]                     CSR: column of each value
``x_values``         float32 [K]                   CSR: the values; left out if all are 1
``x_shape``          int64 [2]                     CSR: N and F
``edge_weight``      float32 [E]                   finite and not negative; left out if edges have no weights
``train_mask`` …     bool [N]                      with ``val_mask``, ``test_mask``; no node in two of them; left
                                                   out if the graph has no split
``class_names``      text [C]                      left out if classes have no names
``node_ids``         text [N]                      left out if nodes have no ids
``feature_names``    text [F]                      left out if features have no names
``name``             text, 0-d                     the graph's name, by default that of the file
``format``           text, 0-d                     ``propreg-graph-1``, also the default
``sha256``           text, 0-d                     of all other members (:func:`members_digest`); checked if present
===================  ============================  ===========================================================

So ``numpy.savez("mine.npz", edge_index=…, x=…, y=…)`` is enough. Other members are an error.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.errors import DataError
from propreg.data.features import checked_csr, csr_features, dense_features
from propreg.data.formats.npz import npy_header, read_npz, write_npz
from propreg.data.graph import MASKS, Graph, SparseFeatures
from propreg.data.own.validate import checked_graph, readable

FORMAT = "propreg-graph-1"
_SPARSE = ("x_indptr", "x_indices", "x_values", "x_shape")
_NAMES = ("class_names", "node_ids", "feature_names", "name", "format", "sha256")
_KNOWN = ("edge_index", "y", "x", *_SPARSE, "edge_weight", *MASKS, *_NAMES)
_CHUNK = 1 << 20


def read_graph_npz(path: str | os.PathLike[str], *, labeled: bool = True) -> Graph:
    """Read a graph from an ``.npz`` file in the format above.

    Args:
        path: The file.
        labeled: Refuse a file without ``y``; else its nodes have no label.

    Returns:
        The graph; sparse features in canonical form (columns sorted, no zeros stored).

    Raises:
        DataError: If the file is damaged, not in the format, or the parts do not fit together.
    """
    where, arrays = str(path), read_npz(path)
    for member in arrays:
        if member not in _KNOWN:
            raise DataError(f"{where}: member {member!r} is not in the format: only {', '.join(_KNOWN)} are.")
    if (version := _text(arrays, "format", FORMAT, where)) != FORMAT:
        raise DataError(
            f"{where}: has format {version!r:.80} but only {FORMAT!r} is read: update propreg or write the file again."
        )
    if "sha256" in arrays and _text(arrays, "sha256", "", where) != members_digest(arrays):
        raise DataError(
            f"{where}: its content does not have the SHA-256 that it declares: copy the file again, or leave the "
            "member 'sha256' out if you changed the others."
        )
    name = _text(arrays, "name", readable(Path(path).stem), where)
    sparse = {member: arrays.pop(member) for member in _SPARSE if member in arrays}
    if bool(sparse) == ("x" in arrays):
        raise DataError(f"{where}: needs either x or x_indptr, x_indices, x_shape: give the features in one form.")
    x = csr_features(sparse, where) if sparse else dense_features(arrays.pop("x"), f"{where}, x")
    return checked_graph(
        name,
        x,
        arrays,
        where,
        class_names=_texts(arrays, "class_names", where),
        node_ids=_texts(arrays, "node_ids", where),
        feature_names=_texts(arrays, "feature_names", where),
        labeled=labeled,
    )


def write_graph(path: str | os.PathLike[str], graph: Graph) -> None:
    """Write ``graph`` to an ``.npz`` file in the format above, in one step; equal graphs give equal bytes.

    Args:
        path: The file to create or replace.
        graph: The graph. Its digests are not written: they follow from the rest.

    Raises:
        DataError: If the graph has an ``extra``, which the format cannot hold, or the file cannot be written.

    Example:
        >>> import tempfile
        >>> graph = Graph("pair", np.array([[0, 1], [1, 0]]), np.eye(2, dtype=np.float32), np.array([0, 1]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_graph(f"{folder}/pair.npz", graph)
        ...     read_graph_npz(f"{folder}/pair.npz").edge_index.tolist()
        [[0, 1], [1, 0]]
    """
    if graph.extra:
        raise DataError(f"{path}: the graph's extra {sorted(graph.extra)} does not fit the format: take it out.")
    arrays: dict[str, NDArray[Any]] = {"format": np.array(FORMAT), "edge_index": graph.edge_index, "y": graph.y}
    if graph.edge_weight is not None:
        arrays["edge_weight"] = graph.edge_weight
    if graph.split is not None:
        masks = (graph.split.train, graph.split.val, graph.split.test)
        arrays |= dict(zip(MASKS, masks, strict=True))
    names = {name: getattr(graph, name) for name in ("class_names", "node_ids", "feature_names")}
    checked_graph(graph.name, graph.x, arrays, str(path), **names)  # so that the file can be read
    arrays |= {member: np.array(texts) for member, texts in names.items() if texts}
    if graph.name:
        arrays["name"] = np.array(graph.name)
    arrays |= _features(graph.x, str(path))
    arrays["sha256"] = np.array(members_digest(arrays))
    write_npz(path, arrays)


def _features(x: NDArray[np.float32] | SparseFeatures, where: str) -> dict[str, NDArray[Any]]:
    if not isinstance(x, SparseFeatures):
        return {"x": dense_features(x, f"{where}, x")}
    x = checked_csr(x.indptr, x.indices, x.values, x.shape, f"{where}, x")
    sparse: dict[str, NDArray[Any]] = {"x_indptr": x.indptr, "x_indices": x.indices, "x_shape": np.array(x.shape)}
    return sparse if x.values is None else sparse | {"x_values": x.values}


def members_digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 over name, npy header and content of every member but ``sha256``, sorted by name, C-ordered.

    A checksum of the bytes alone would not notice another type or shape declared for them.
    """
    state = hashlib.sha256()
    for member in sorted(arrays.keys() - {"sha256"}):
        array = arrays[member]
        state.update(member.encode() + b"\n" + npy_header(array))
        flat = array.reshape(-1)
        for start in range(0, len(flat), step := max(1, _CHUNK // array.dtype.itemsize)):
            part = flat[start : start + step]
            state.update(np.ascontiguousarray(part, part.dtype.newbyteorder("<")).view(np.uint8).data)
    return state.hexdigest()


def _text(arrays: dict[str, NDArray[Any]], member: str, default: str, where: str) -> str:
    if member not in arrays:
        return default
    if arrays[member].dtype.kind != "U" or arrays[member].ndim:
        raise DataError(f"{where}: {member} must be one text, got {_kind(arrays[member])}.")
    return str(arrays[member][()])


def _texts(arrays: dict[str, NDArray[Any]], member: str, where: str) -> list[str]:
    if member not in arrays:
        return []
    if arrays[member].dtype.kind != "U" or arrays[member].ndim != 1:
        raise DataError(f"{where}: {member} must be a vector of texts, got {_kind(arrays[member])}.")
    texts: list[str] = arrays[member].tolist()
    return texts


def _kind(array: NDArray[Any]) -> str:
    return f"{array.dtype} of shape {array.shape}"
