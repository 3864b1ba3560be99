"""NumPy arrays and SciPy matrices as Python 2 pickled them, rebuilt from inert records."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data._inert_pickle import Global, Made
from propreg.data.errors import DataError
from propreg.data.graph import SparseFeatures
from propreg.data.sparse import checked_csr

RECONSTRUCT = Global("numpy.core.multiarray", "_reconstruct")
NDARRAY = Global("numpy", "ndarray")
DTYPE = Global("numpy", "dtype")
CSR = Global("scipy.sparse.csr", "csr_matrix")

_TYPES = {b"b1", b"i1", b"i2", b"i4", b"i8", b"u1", b"u2", b"u4", b"u8", b"f4", b"f8"}
_MAX_BYTES = 256 << 20


def to_array(made: Any, where: str) -> NDArray[Any]:
    """The array that a pickle describes, in native byte order.

    Raises:
        DataError: If it is no array of plain numbers, or does not hold what it declares.
    """
    if not isinstance(made, Made) or made.of != RECONSTRUCT or made.args[:1] != (NDARRAY,):
        raise DataError(f"{where}: holds something else than the array that belongs there: get the file again.")
    match made.state:
        case (int(), tuple() as shape, Made() as kind, bool() | 0 | 1 as fortran, bytes() as raw):
            dtype = _dtype(kind, where)
        case _:
            raise DataError(f"{where}: an array's state is damaged: get the file again.")
    if len(shape) > 2 or not all(type(n) is int and 0 <= n < 2**40 for n in shape):
        raise DataError(f"{where}: an array of shape {str(shape)[:80]} is none of this kind of file: get it again.")
    size = math.prod(shape) * dtype.itemsize
    if size != len(raw) or size > _MAX_BYTES:
        raise DataError(f"{where}: an array declares {size} bytes but holds {len(raw)}: get the file again.")
    array = np.frombuffer(raw, dtype).reshape(shape, order="F" if fortran else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)


def to_csr(made: Any, where: str) -> SparseFeatures:
    """The sparse matrix that a pickle describes, checked and in canonical form.

    Raises:
        DataError: If it is no sparse matrix, or its arrays do not fit together.
    """
    if not isinstance(made, Made) or made.of != CSR or not isinstance(made.state, dict):
        raise DataError(f"{where}: holds something else than the sparse matrix that belongs there: get it again.")
    state = {key.decode("latin-1") if isinstance(key, bytes) else key: value for key, value in made.state.items()}
    shape = state.get("_shape")
    if not isinstance(shape, tuple) or len(shape) != 2 or not all(type(n) is int for n in shape):
        raise DataError(f"{where}: its matrix has no shape: get the file again.")
    indptr, indices, values = (to_array(state.get(part), where) for part in ("indptr", "indices", "data"))
    return checked_csr(indptr, indices, values, shape, where)


def _dtype(made: Made, where: str) -> np.dtype[Any]:
    match made.args, made.state:
        case (bytes() as code, *_), (int(), b"<" | b">" | b"|" | b"=" as order, *rest):
            if made.of == DTYPE and code in _TYPES and all(part in (None, -1, 0) for part in rest):
                dtype: np.dtype[Any] = np.dtype((order + code).decode("ascii"))
                return dtype
    raise DataError(f"{where}: an array is not of plain numbers: get the file again.")
