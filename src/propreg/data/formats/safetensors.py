"""The safetensors format for NumPy arrays: a reader that checks everything before it allocates, and a writer.

A file is the header's length (8 bytes, little-endian), the header (JSON), and the tensors' bytes, little-endian and in
C order. The header maps each name to ``{"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}``, with offsets from
the header's end; ``__metadata__`` maps texts to texts. The tensors' bytes fill the file without gap or overlap.
"""

import json
import math
import os
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from propreg.data.errors import DataError
from propreg.data.formats.files import open_regular
from propreg.data.formats.npz import MAX_BYTES
from propreg.jsonio import atomic_write

DTYPES = {
    "BOOL": "|b1", "U8": "|u1", "I8": "|i1", "U16": "<u2", "I16": "<i2", "F16": "<f2", "U32": "<u4", "I32": "<i4",
    "F32": "<f4", "U64": "<u8", "I64": "<i8", "F64": "<f8",
}  # fmt: skip
_NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
_METADATA = "__metadata__"
_MAX_HEADER = 16 << 20
_MAX_DIMENSIONS = 32


def read_safetensors(
    path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES
) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Read the tensors and the metadata of a safetensors file, refusing whatever is not what it declares.

    Args:
        path: The file.
        max_bytes: The largest file that is accepted.

    Returns:
        Name → array in native byte order, and the metadata.

    Raises:
        DataError: If the file is missing, damaged, too large, or has a dtype that NumPy has not (bfloat16, float8).

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_safetensors(f"{folder}/a.safetensors", {"w": np.eye(2)}, {"by": "me"})
        ...     arrays, about = read_safetensors(f"{folder}/a.safetensors")
        >>> arrays["w"].tolist(), about
        ([[1.0, 0.0], [0.0, 1.0]], {'by': 'me'})
    """
    where = str(path)
    with open_regular(path) as file:
        try:
            size = os.fstat(file.fileno()).st_size
            if size > max_bytes:
                raise DataError(f"{where}: has {size} bytes, more than the limit of {max_bytes}.")
            length = int.from_bytes(_taken(file, 8, where), "little") if size >= 8 else -1
            if not 2 <= length <= min(_MAX_HEADER, size - 8):
                raise DataError(f"{where}: is not a safetensors file, or it is damaged: write it again.")
            header = _header(_taken(file, length, where), where)
            about = _metadata(header.pop(_METADATA, {}), where)
            places = sorted(
                (_place(name, entry, size - 8 - length, where) for name, entry in header.items()),
                key=lambda place: place[0],
            )
            if [start for start, *_ in places] + [size - 8 - length] != [0] + [end for _, end, *_ in places]:
                raise _damaged(where, "the tensors have gaps or overlap")
            arrays = {}
            for _, _, name, dtype, shape in places:
                arrays[name] = _array(file, dtype, shape, f"{where}, {name!r:.80}")
            return arrays, about
        except OSError as error:
            raise DataError(f"{where}: cannot be read: {error.strerror or error}.") from error


def write_safetensors(
    path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]
) -> None:
    """Write arrays to a safetensors file in one step; equal arrays and metadata give equal bytes.

    Args:
        path: The file to create or replace.
        arrays: Name → array of bools, integers or floats of up to 8 bytes.
        metadata: Texts by name.

    Raises:
        DataError: If an array is of another type, a name is reserved, or the file cannot be written.
    """
    where, ready = str(path), {}
    for name, array in arrays.items():
        little = array.dtype.newbyteorder("<")
        if little not in _NAMES or name == _METADATA:
            raise DataError(f"{where}: {name!r} of type {array.dtype} cannot be written: only bool, int and float are.")
        ready[name] = np.ascontiguousarray(array, little).reshape(array.shape)
    # As the safetensors package orders them: with the widest first, all are aligned.
    order = sorted(ready, key=lambda name: (-ready[name].itemsize, name))
    header: dict[str, Any] = {_METADATA: dict(sorted(metadata.items()))}
    place = 0
    for name in order:
        array = ready[name]
        offsets = [place, place := place + array.nbytes]
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": offsets}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with atomic_write(path) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            if ready[name].nbytes:
                file.write(ready[name].reshape(-1).view(np.uint8).data)


def _header(raw: bytes, where: str) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) < len(pairs):
            raise ValueError("a name occurs twice")
        return dict(pairs)

    try:
        header = json.loads(raw.decode("utf-8"), object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise _damaged(where, "its header is not JSON") from error
    if not isinstance(header, dict):
        raise _damaged(where, "its header is not a JSON object")
    return header


def _metadata(about: Any, where: str) -> dict[str, str]:
    if not isinstance(about, dict) or not all(isinstance(text, str) for text in about.values()):
        raise _damaged(where, "its metadata are not texts")
    return about


def _place(name: str, entry: Any, size: int, where: str) -> tuple[int, int, str, np.dtype[Any], tuple[int, ...]]:
    """Start, end, name, dtype and shape of a tensor, which fit together and into ``size`` bytes."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise _damaged(where, f"{name!r:.80} is not described by dtype, shape and data_offsets")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not _counts(shape) or len(shape) > _MAX_DIMENSIONS or not _counts(offsets) or len(offsets) != 2:
        raise _damaged(where, f"the shape or the offsets of {name!r:.80} are not sizes")
    if not isinstance(kind, str) or kind not in DTYPES:
        raise DataError(f"{where}: {name!r:.80} has dtype {kind!r:.20}: only {', '.join(DTYPES)} are read.")
    (start, end), dtype = offsets, np.dtype(DTYPES[kind])
    if not start <= end <= size or end - start != math.prod(shape) * dtype.itemsize:
        raise _damaged(where, f"the offsets of {name!r:.80} do not fit its shape or the file")
    return start, end, name, dtype, tuple(shape)


def _counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 1 << 48 for n in value)


def _array(file: BinaryIO, dtype: np.dtype[Any], shape: tuple[int, ...], where: str) -> NDArray[Any]:
    try:
        array = np.empty(shape, dtype)
    except (MemoryError, ValueError, OverflowError) as error:
        raise DataError(f"{where}: an array of shape {shape} does not fit into memory: {error}.") from error
    if array.nbytes:
        raw = array.reshape(-1).view(np.uint8)
        _fill(file, raw.data, where)
        if dtype.kind == "b" and raw.max() > 1:
            raise _damaged(where, "a truth value is neither 0 nor 1")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _taken(file: BinaryIO, count: int, where: str) -> bytes:
    buffer = bytearray(count)
    _fill(file, memoryview(buffer), where)
    return bytes(buffer)


def _fill(file: BinaryIO, view: memoryview, where: str) -> None:
    done = 0
    while done < len(view):
        part = file.readinto(view[done:])  # type: ignore[attr-defined]
        if not part:
            raise _damaged(where, "it ends too early")
        done += part


def _damaged(where: str, what: str) -> DataError:
    return DataError(f"{where}: {what}: the file is damaged, write it again.")
