"""Content digests: SHA-256 over canonical arrays, the same whatever file or number type held them.

Each part of a dataset has its own: edges, features, labels, splits. Equal digests mean equal content, so a run
that names them names its data. Arrays are converted block by block, so that no digest takes a copy of the data.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.edges import sort_keys
from propreg.data.features import canonical
from propreg.data.graph import SparseFeatures, Split

_BLOCK = 1 << 16  # numbers at a time: conversions stay in the cache


def digest_arrays(part: str, arrays: Mapping[str, tuple[str, NDArray[Any]]]) -> str:
    """SHA-256 of named arrays, each converted to its canonical type.

    Args:
        part: What the arrays are. It is hashed too, so that edges never equal labels.
        arrays: Name → (canonical little-endian type, array). The order counts.

    Returns:
        64 hexadecimal digits.

    Example:
        >>> small, wide = np.array([1, 2], np.uint8), np.array([1, 2], np.int64)
        >>> digest_arrays("y", {"y": ("<i8", small)}) == digest_arrays("y", {"y": ("<i8", wide)})
        True
    """
    state = _Digest(part)
    for name, (dtype, array) in arrays.items():
        state.add(name, dtype, array.shape, _blocks(array.reshape(-1), _BLOCK))
    return state.hexdigest()


def digest_edges(edge_index: NDArray[Any], edge_weight: NDArray[Any] | None = None) -> str:
    """Digest of a list of directed edges, whatever their order. A list in order, (source, target), is not sorted again.

    Example:
        >>> digest_edges(np.array([[0, 1], [1, 0]])) == digest_edges(np.array([[1, 0], [0, 1]]))
        True
    """
    source, target = edge_index
    if edge_weight is not None:
        if not _is_rising(source, target):
            order = _order(source, target, edge_weight)
            source, target, edge_weight = source[order], target[order], edge_weight[order]
        ends = {"source": ("<i8", source), "target": ("<i8", target)}
        return digest_arrays("weighted edges", ends | {"weight": ("<f4", edge_weight)})
    if _is_rising(source, target):
        return digest_arrays("edges", {"source": ("<i8", source), "target": ("<i8", target)})
    key, step = _keys(source, target)
    key = sort_keys(key)
    state = _Digest("edges")
    state.add("source", "<i8", key.shape, (block // step for block in _blocks(key, _BLOCK)))
    state.add("target", "<i8", key.shape, (block % step for block in _blocks(key, _BLOCK)))
    return state.hexdigest()


def digest_features(x: SparseFeatures | NDArray[Any]) -> str:
    """Digest of a feature matrix: the same for a dense matrix and its sparse form.

    Example:
        >>> from propreg.data.features import from_dense
        >>> dense = np.array([[0.0, 2.0], [1.0, 0.0]], np.float32)
        >>> digest_features(dense) == digest_features(from_dense(dense))
        True
    """
    if not isinstance(x, SparseFeatures):
        return _digest_dense(x)
    csr = canonical(x)
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
    """Digest of labels: classes as integers (−1 for none), or a float table with NaN for missing labels.

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


def join_digests(digests: Mapping[str, str]) -> str:
    """The one digest of several parts that a run's identity and its random streams hold.

    Example:
        >>> join_digests({"edges": "ab", "labels": "cd"}) == join_digests({"labels": "cd", "edges": "ab"})
        True
    """
    text = ",".join(f"{part}={digest}" for part, digest in sorted(digests.items()))
    return hashlib.sha256(text.encode()).hexdigest()


class _Digest:
    """SHA-256 of named arrays, block by block."""

    def __init__(self, part: str) -> None:
        self._state = hashlib.sha256(f"propreg 1 {part}\n".encode())
        self.hexdigest: Callable[[], str] = self._state.hexdigest

    def add(self, name: str, dtype: str, shape: tuple[int, ...], blocks: Iterable[NDArray[Any]]) -> None:
        self._state.update(f"{name} {dtype} {'x'.join(map(str, shape))}\n".encode())
        for block in blocks:
            self._state.update(np.ascontiguousarray(block, np.dtype(dtype)).data)


def _blocks(array: NDArray[Any], length: int) -> Iterator[NDArray[Any]]:
    return (array[start : start + length] for start in range(0, len(array), length))


def _is_rising(source: NDArray[Any], target: NDArray[Any]) -> bool:
    """Whether edges are sorted by (source, target) and all different."""
    for start in range(0, len(source) - 1, _BLOCK):
        s, t = source[start : start + _BLOCK + 1], target[start : start + _BLOCK + 1]
        if not ((s[1:] > s[:-1]) | ((s[1:] == s[:-1]) & (t[1:] > t[:-1]))).all():
            return False
    return True


def _keys(source: NDArray[Any], target: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    """Edges as single numbers source · step + target, and the step."""
    step = int(target.max(initial=0)) + 1
    key = source.astype(np.int64)
    key *= step
    key += target
    return key, step


def _order(source: NDArray[Any], target: NDArray[Any], weight: NDArray[Any]) -> NDArray[np.intp]:
    """The order by (source, target, weight)."""
    key, _ = _keys(source, target)
    order = np.argsort(key)
    key = key[order]
    if (key[1:] > key[:-1]).all():
        return order
    return np.lexsort((weight, target, source))  # several times slower, and needed only where an edge is listed twice


def _digest_dense(x: NDArray[Any]) -> str:
    """The digest of the matrix's CSR form, which is never made: of a full matrix it would be twice as large."""
    rows = max(1, _BLOCK // max(1, x.shape[1]))
    counts = np.concatenate([np.zeros(1, np.int64), *(np.count_nonzero(b, axis=1) for b in _blocks(x, rows))])
    indptr = np.cumsum(counts)
    columns = np.tile(np.arange(x.shape[1], dtype=np.int32), (min(rows, len(x)), 1))
    state = _Digest("features")
    state.add("shape", "<i8", (2,), [np.array(x.shape)])
    state.add("indptr", "<i8", indptr.shape, [indptr])
    state.add("indices", "<i4", (indptr[-1],), (columns[: len(b)][b != 0] for b in _blocks(x, rows)))
    state.add("values", "<f4", (indptr[-1],), (b[b != 0] for b in _blocks(x, rows)))
    return state.hexdigest()
