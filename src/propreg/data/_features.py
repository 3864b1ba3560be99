"""Feature matrices from arrays and files: any number type in, finite float32 or CSR out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data._npy import read_npy
from propreg.data._npz import read_npz
from propreg.data.errors import DataError
from propreg.data.graph import SparseFeatures
from propreg.data.sparse import checked_csr

_ROWS = 1024
_SCIPY = frozenset({"format", "shape", "data", "indices", "indptr"})


def read_features(path: Path) -> NDArray[np.float32] | SparseFeatures:
    """Read ``features.npy`` (one matrix) or ``features.npz``.

    Args:
        path: The file. An npz holds one matrix under any name, or a CSR matrix: as ``scipy.sparse.save_npz``
            writes it, or as ``x_indptr``, ``x_indices``, ``x_shape`` and, unless all are 1, ``x_values``.

    Returns:
        A dense float32 matrix, or the CSR one in canonical form.

    Raises:
        DataError: If the file is damaged, or is no matrix of finite numbers.
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


def dense_features(x: NDArray[Any], where: str) -> NDArray[np.float32]:
    """The matrix as C-ordered float32, no value NaN or infinite."""
    if x.ndim != 2 or x.dtype.kind not in "biuf":
        raise DataError(f"{where}: features must be a matrix [nodes, features] of numbers, not {_kind(x)}.")
    with np.errstate(over="ignore"):  # what overflows is refused below
        dense = np.ascontiguousarray(x, np.float32)
    for start in range(0, len(dense), _ROWS):
        good = np.isfinite(dense[start : start + _ROWS])
        if not bool(good.all()):
            row, column = (int(place) for place in np.argwhere(~good)[0])
            value = float(x[start + row, column])
            what = f"{value!r}, too large for float32" if np.isfinite(value) else repr(value)
            raise DataError(
                f"{where}: row {start + row}, column {column} (from 0) is {what}: give finite numbers "
                "(0 where nothing is known)."
            )
    return dense


def csr_features(arrays: Mapping[str, NDArray[Any]], where: str) -> SparseFeatures:
    """The CSR matrix in ``x_indptr``, ``x_indices``, ``x_shape`` and perhaps ``x_values``."""
    needed = {"x_indptr", "x_indices", "x_shape"}
    if not needed <= arrays.keys() <= needed | {"x_values"}:
        raise DataError(
            f"{where}: holds {', '.join(sorted(arrays))[:200] or 'nothing'}: give one matrix, or x_indptr, x_indices, "
            "x_shape and x_values of a CSR matrix."
        )
    shape = arrays["x_shape"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise DataError(f"{where}: x_shape must be two integers, not {_kind(shape)}.")
    return checked_csr(
        arrays["x_indptr"],
        arrays["x_indices"],
        arrays.get("x_values"),
        (int(shape[0]), int(shape[1])),
        where,
    )


def _kind(array: NDArray[Any]) -> str:
    return f"{array.dtype} of shape {array.shape}"
