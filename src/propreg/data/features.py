"""Feature matrices, dense or CSR: from arrays of any number type to finite float32 in one canonical form."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.errors import DataError
from propreg.data.graph import SparseFeatures

_CHECKED_ROWS = 1024


def dense_features(x: NDArray[Any], where: str) -> NDArray[np.float32]:
    """The matrix as C-ordered float32, if all values are finite."""
    if x.ndim != 2 or x.dtype.kind not in "biuf":
        raise DataError(f"{where}: features must be a matrix [nodes, features] of numbers, got {_kind(x)}.")
    with np.errstate(over="ignore"):  # infinities are refused below
        dense = np.ascontiguousarray(x, np.float32)
    for start in range(0, len(dense), _CHECKED_ROWS):
        good = np.isfinite(dense[start : start + _CHECKED_ROWS])
        if not bool(good.all()):
            row, column = (int(place) for place in np.argwhere(~good)[0])
            value = float(x[start + row, column])
            what = f"{value!r}, too large for float32" if np.isfinite(value) else repr(value)
            raise DataError(
                f"{where}: row {start + row}, column {column} (from 0) is {what}: give finite numbers (0 for unknown)."
            )
    return dense


def csr_features(arrays: Mapping[str, NDArray[Any]], where: str) -> SparseFeatures:
    """The CSR matrix in ``x_indptr``, ``x_indices``, ``x_shape`` and, unless all values are 1, ``x_values``."""
    needed = {"x_indptr", "x_indices", "x_shape"}
    if not needed <= arrays.keys() <= needed | {"x_values"}:
        raise DataError(
            f"{where}: holds {', '.join(sorted(arrays))[:200] or 'nothing'}: give one matrix, or x_indptr, x_indices, "
            "x_shape and x_values of a CSR matrix."
        )
    shape = arrays["x_shape"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise DataError(f"{where}: x_shape must be two integers, got {_kind(shape)}.")
    return checked_csr(
        arrays["x_indptr"],
        arrays["x_indices"],
        arrays.get("x_values"),
        (int(shape[0]), int(shape[1])),
        where,
    )


def _kind(array: NDArray[Any]) -> str:
    return f"{array.dtype} of shape {array.shape}"


_BLOCK_ROWS = 4096


def checked_csr(
    indptr: NDArray[Any], indices: NDArray[Any], values: NDArray[Any] | None, shape: tuple[int, int], where: str
) -> SparseFeatures:
    """A CSR matrix from untrusted arrays, in canonical form.

    Args:
        indptr: The start of each row, and the end; integers [rows + 1].
        indices: The column of each stored value.
        values: The stored values, or None if all are 1. Values stored twice for one entry are added.
        shape: (rows, columns).
        where: What to call the matrix in an error.

    Returns:
        The matrix with sorted columns, no stored zeros, and ``values`` None if all are 1.

    Example:
        >>> x = checked_csr(np.array([0, 2, 2]), np.array([2, 0]), None, (2, 3), "x")
        >>> x.to_dense().tolist(), x.indices.tolist()
        ([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]], [0, 2])
        >>> checked_csr(np.array([0, 1]), np.array([3]), None, (1, 3), "x")
        Traceback (most recent call last):
        ...
        propreg.data.errors.DataError: x: column 3 is out of range for a matrix of shape (1, 3): the data are damaged.
    """
    for name, array in (("indptr", indptr), ("indices", indices)):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise DataError(f"{where}: {name} must be a vector of integers, got {array.dtype}, {array.ndim}-d.")
    rows, columns = shape
    if rows < 0 or not 0 <= columns < 2**31:
        raise DataError(f"{where}: a matrix of shape {shape} is impossible: the data are damaged.")
    if len(indptr) != rows + 1 or int(indptr[0]) != 0 or int(indptr[-1]) != len(indices):
        raise DataError(f"{where}: indptr does not fit {rows} rows with {len(indices)} values: the data are damaged.")
    if bool((indptr[1:] < indptr[:-1]).any()):
        raise DataError(f"{where}: indptr decreases: the data are damaged.")
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < columns:
        bad = int(indices.max()) if int(indices.max()) >= columns else int(indices.min())
        raise DataError(f"{where}: column {bad} is out of range for a matrix of shape {shape}: the data are damaged.")
    if values is not None:
        if values.shape != indices.shape or values.dtype.kind not in "iufb":
            raise DataError(f"{where}: {len(indices)} values are needed, got {values.dtype} of shape {values.shape}.")
        if not bool(np.isfinite(values).all()):
            raise DataError(f"{where}: a value is NaN or infinite: the data are damaged.")
    x = canonical(SparseFeatures(indptr.astype(np.int64), indices.astype(np.int32), values, (rows, columns)))
    if x.values is not None and not bool(np.isfinite(x.values).all()):
        raise DataError(f"{where}: a value is too large for float32: the data are damaged.")
    return x


def canonical(x: SparseFeatures) -> SparseFeatures:
    """The same matrix with sorted columns, one value per entry, no stored zeros, and ``values`` None if all are 1.

    Example:
        >>> twice = SparseFeatures(np.array([0, 2]), np.array([1, 1], np.int32), np.array([1.0, 2.0]), (1, 2))
        >>> canonical(twice).filled().tolist()
        [3.0]
    """
    if is_canonical(x):
        return x
    rows = np.repeat(np.arange(x.shape[0], dtype=np.int64), np.diff(x.indptr))
    key = rows * max(x.shape[1], 1) + x.indices
    order = np.argsort(key, kind="stable")
    key, values = key[order], x.filled()[order]
    first = np.concatenate([np.ones(min(len(key), 1), bool), key[1:] != key[:-1]])
    summed = np.add.reduceat(values, np.flatnonzero(first)) if len(key) else values
    with np.errstate(over="ignore"):  # the caller refuses infinities
        key, summed = key[first], summed.astype(np.float32)
    kept = summed != 0
    key, summed = key[kept], summed[kept]
    counts = np.bincount(key // max(x.shape[1], 1), minlength=x.shape[0])
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    ones = bool((summed == 1).all())
    indices = (key % max(x.shape[1], 1)).astype(np.int32)
    return SparseFeatures(indptr, indices, None if ones else summed, x.shape)


def is_canonical(x: SparseFeatures) -> bool:
    """Whether the matrix is in the form that :func:`canonical` returns."""
    rising = np.ones(len(x.indices), bool)
    rising[1:] = x.indices[1:] > x.indices[:-1]
    rising[x.indptr[:-1][x.indptr[:-1] < len(rising)]] = True  # a row may start anywhere
    if not bool(rising.all()):
        return False
    if x.values is None:
        return True
    return x.values.dtype == np.float32 and bool((x.values != 0).all()) and not bool((x.values == 1).all())


def from_dense(x: NDArray[Any]) -> SparseFeatures:
    """The canonical CSR form of a dense matrix.

    Example:
        >>> from_dense(np.array([[0, 2], [1, 0]])).indices.tolist()
        [1, 0]
    """
    counts, columns, values = [], [], []
    for start in range(0, x.shape[0], _BLOCK_ROWS):  # by blocks: np.nonzero takes 16 bytes per value
        block = np.asarray(x[start : start + _BLOCK_ROWS])
        row, column = np.nonzero(block)
        counts.append(np.bincount(row, minlength=len(block)))
        columns.append(column.astype(np.int32))
        values.append(block[row, column].astype(np.float32))
    indptr = np.concatenate([np.zeros(1, np.int64), *counts]).cumsum()
    filled = np.concatenate(values or [np.zeros(0, np.float32)])
    ones = bool((filled == 1).all())
    indices = np.concatenate(columns or [np.zeros(0, np.int32)])
    return SparseFeatures(indptr, indices, None if ones else filled, (x.shape[0], x.shape[1]))
