"""Content digests: SHA-256 over canonical arrays, the same whatever file or number type held them.

Each part of a dataset has its own: edges, features, labels, splits. Equal digests mean equal content, so a run
that names them names its data.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.graph import SparseFeatures, Split
from propreg.data.sparse import canonical, from_dense

_CHUNK = 1 << 18


def digest_arrays(part: str, arrays: Mapping[str, tuple[str, NDArray[Any]]]) -> str:
    """SHA-256 of named arrays, each written out in its canonical type.

    Args:
        part: What the arrays are; part of what is hashed, so that edges never equal labels.
        arrays: Name → (canonical little-endian type, array). The order counts.

    Returns:
        64 hexadecimal digits.

    Example:
        >>> small, wide = np.array([1, 2], np.uint8), np.array([1, 2], np.int64)
        >>> digest_arrays("y", {"y": ("<i8", small)}) == digest_arrays("y", {"y": ("<i8", wide)})
        True
    """
    state = hashlib.sha256(f"propreg 1 {part}\n".encode())
    for name, (dtype, array) in arrays.items():
        state.update(f"{name} {dtype} {'x'.join(map(str, array.shape))}\n".encode())
        flat = array.reshape(-1)
        for start in range(0, len(flat), _CHUNK):  # converted piece by piece: no second copy of the whole
            state.update(np.ascontiguousarray(flat[start : start + _CHUNK], np.dtype(dtype)).tobytes())
    return state.hexdigest()


def digest_edges(edge_index: NDArray[Any], edge_weight: NDArray[Any] | None = None) -> str:
    """Digest of a list of directed edges, whatever their order.

    Example:
        >>> digest_edges(np.array([[0, 1], [1, 0]])) == digest_edges(np.array([[1, 0], [0, 1]]))
        True
    """
    source, target = edge_index
    if edge_weight is None:
        step = int(target.max(initial=0)) + 1
        key = source.astype(np.int64) * step + target
        key.sort()
        return digest_arrays("edges", {"source": ("<i8", key // step), "target": ("<i8", key % step)})
    order = np.lexsort((edge_weight, target, source))
    return digest_arrays(
        "weighted edges",
        {
            "source": ("<i8", source[order]),
            "target": ("<i8", target[order]),
            "weight": ("<f4", edge_weight[order]),
        },
    )


def digest_features(x: SparseFeatures | NDArray[Any]) -> str:
    """Digest of a feature matrix: the same for a dense matrix and its sparse form.

    Example:
        >>> dense = np.array([[0.0, 2.0], [1.0, 0.0]], np.float32)
        >>> digest_features(dense) == digest_features(from_dense(dense))
        True
    """
    csr = canonical(x) if isinstance(x, SparseFeatures) else from_dense(x)
    values = np.broadcast_to(np.float32(1), csr.indices.shape) if csr.values is None else csr.values
    return digest_arrays(
        "features",
        {
            "shape": ("<i8", np.array(csr.shape)),
            "indptr": ("<i8", csr.indptr),
            "indices": ("<i4", csr.indices),
            "values": ("<f4", values),
        },
    )


def digest_labels(y: NDArray[Any]) -> str:
    """Digest of labels: classes as integers (−1 for none), or a float table with NaN for what is missing.

    Example:
        >>> digest_labels(np.array([0, 1], np.uint8)) == digest_labels(np.array([0, 1]))
        True
    """
    if y.dtype.kind == "f":
        y = np.where(np.isnan(y), np.float32(np.nan), y)  # one NaN, not any of its 16 million bit patterns
        return digest_arrays("label table", {"y": ("<f4", y)})
    return digest_arrays("labels", {"y": ("<i8", y)})


def digest_splits(splits: list[Split]) -> str:
    """Digest of one or more splits, in their order.

    Example:
        >>> none = np.zeros(2, bool)
        >>> digest_splits([Split(~none, none, none)]) == digest_splits([Split(none, ~none, none)])
        False
    """
    return digest_arrays(
        "splits",
        {which: ("|b1", np.array([getattr(split, which) for split in splits])) for which in ("train", "val", "test")},
    )


def combined(digests: Mapping[str, str]) -> str:
    """One digest of several parts' digests, for a run's key.

    Example:
        >>> combined({"edges": "ab", "labels": "cd"}) == combined({"labels": "cd", "edges": "ab"})
        True
    """
    lines = "".join(f"{part} {digests[part]}\n" for part in sorted(digests))
    return hashlib.sha256(lines.encode()).hexdigest()
