"""The digests of :mod:`propreg.data.digest` for graphs that fill the memory: the same, but without copies."""

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from propreg.data.digest import digest_arrays, digest_edges

_CELLS = 1 << 14


def digest_sorted_edges(edge_index: NDArray[np.int64], edge_weight: NDArray[np.float32] | None = None) -> str:
    """What :func:`~propreg.data.digest.digest_edges` gives, at no cost where the edges are in order already.

    Example:
        >>> edges = np.array([[0, 1], [1, 0]])
        >>> digest_sorted_edges(edges) == digest_edges(edges) == digest_sorted_edges(edges[:, ::-1])
        True
    """
    source, target = edge_index
    rising = target[1:] > target[:-1]
    rising &= source[1:] == source[:-1]
    rising |= source[1:] > source[:-1]
    if not bool(rising.all()):
        return digest_edges(edge_index, edge_weight)
    ends = {"source": ("<i8", source), "target": ("<i8", target)}
    if edge_weight is None:
        return digest_arrays("edges", ends)
    return digest_arrays("weighted edges", ends | {"weight": ("<f4", edge_weight)})


def digest_dense(x: NDArray[np.float32]) -> str:
    """What :func:`~propreg.data.digest.digest_features` gives, without ever holding the matrix's sparse form.

    Columns and values of a full matrix take twice its size.

    Example:
        >>> from propreg.data.digest import digest_features
        >>> dense = np.array([[0.0, 2.0], [1.0, 0.0]], np.float32)
        >>> digest_dense(dense) == digest_features(dense)
        True
    """
    counts = np.concatenate([np.zeros(1, np.int64), *(np.count_nonzero(block, axis=1) for block in _blocks(x))])
    indptr = np.cumsum(counts)
    state = hashlib.sha256(b"propreg 1 features\nshape <i8 2\n")
    state.update(np.array(x.shape, "<i8").tobytes())
    state.update(f"indptr <i8 {len(indptr)}\n".encode() + indptr.astype("<i8").tobytes())
    state.update(f"indices <i4 {indptr[-1]}\n".encode())
    for block in _blocks(x):
        state.update(np.nonzero(block)[1].astype("<i4").tobytes())
    state.update(f"values <f4 {indptr[-1]}\n".encode())
    for block in _blocks(x):
        state.update(block[block != 0].astype("<f4").tobytes())
    return state.hexdigest()


def _blocks(x: NDArray[np.float32]) -> Iterator[NDArray[np.float32]]:
    rows = max(1, _CELLS // max(1, x.shape[1]))
    return (x[start : start + rows] for start in range(0, len(x), rows))
