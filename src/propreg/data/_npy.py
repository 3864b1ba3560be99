"""The npy format: a header that is checked before anything is allocated, then the array's bytes."""

import math
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from propreg.data.errors import DataError

MAX_BYTES = 8 << 30
"""The default cap on what one file may unfold to."""

_MAGIC = b"\x93NUMPY"
_MAX_HEADER = 10_000  # NumPy's own limit
_MAX_TEXT = 4096  # characters in one string of a string array
_CHUNK = 1 << 20

# What NumPy writes, and nothing else: evaluating the text as Python, as np.load does, can be made to
# recurse without end. Python 2 wrote 3L for 3.
_HEADER = re.compile(
    r"\{'descr': '([<>|=][a-zA-Z][0-9]{0,6})', 'fortran_order': (False|True), "
    r"'shape': \(((?:[0-9]{1,18}L?, ?)*(?:[0-9]{1,18}L?)?)\),? ?\} *\n?"
)
_NUMBERS = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}


class Stream(Protocol):
    """Bytes that are read once, from front to back."""

    def fill(self, view: memoryview) -> None:
        """Fill ``view`` to its end, or raise :class:`DataError`."""


@dataclass(frozen=True)
class Header:
    """What an npy header declares, and the header's own length in bytes."""

    dtype: np.dtype[Any]
    fortran: bool
    shape: tuple[int, ...]
    length: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class FileStream:
    """An open file as a :class:`Stream`."""

    def __init__(self, file: BinaryIO, where: str) -> None:
        self._file = file
        self._where = where

    def fill(self, view: memoryview) -> None:
        done = 0
        while done < len(view):
            part = self._file.readinto(view[done:])  # type: ignore[attr-defined]
            if not part:
                raise DataError(f"{self._where}: ends too early (truncated): make or copy it again.")
            done += part


def read_npy(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> NDArray[Any]:
    """Read one array from an ``.npy`` file, refusing whatever could be unsafe or is not what it declares.

    Args:
        path: The file.
        max_bytes: The largest array that is accepted.

    Returns:
        The array, in native byte order.

    Raises:
        DataError: If the file is missing, damaged, too large, or holds anything but numbers, truth values
            or strings of fixed width.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(f"{folder}/a.npy", np.arange(3))
        ...     read_npy(f"{folder}/a.npy")
        array([0, 1, 2])
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            return read_array(FileStream(file, str(path)), size, str(path), max_bytes=max_bytes)
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}.") from error


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open an ordinary file for reading (a pipe would wait for ever)."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise DataError(f"{path}: is not an ordinary file: give the path of a file.")
        return open(path, "rb")
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file: check the path.") from error
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: cannot be opened: {getattr(error, 'strerror', None) or error}.") from error


def read_array(stream: Stream, size: int, where: str, *, max_bytes: int = MAX_BYTES) -> NDArray[Any]:
    """Read header and array from ``stream``, which holds exactly ``size`` bytes."""
    header = _read_header(stream, size, where)
    if header.length + header.nbytes != size:
        raise DataError(
            f"{where}: declares an array of shape {header.shape} and type {header.dtype.str} "
            f"({header.nbytes} bytes) but holds {size - header.length} bytes: it is damaged, make it again."
        )
    if header.nbytes > max_bytes:
        raise DataError(f"{where}: holds {header.nbytes} bytes, more than the limit of {max_bytes}.")
    try:
        flat = np.empty(math.prod(header.shape), header.dtype)
        shaped = flat.reshape(header.shape[::-1]).T if header.fortran else flat.reshape(header.shape)
    except (MemoryError, ValueError, OverflowError) as error:
        raise DataError(f"{where}: an array of shape {header.shape} cannot be held here: {error}.") from error
    raw = flat.view(np.uint8).data if header.nbytes else memoryview(b"")
    for start in range(0, header.nbytes, _CHUNK):
        stream.fill(raw[start : start + _CHUNK])
    if not header.dtype.isnative:
        flat.byteswap(inplace=True)
        shaped = shaped.view(header.dtype.newbyteorder("="))
    check_content(flat.view(header.dtype.newbyteorder("=")), where)
    return shaped


def _read_header(stream: Stream, size: int, where: str) -> Header:
    if size < 10:
        raise DataError(f"{where}: is too short for an npy array ({size} bytes): make or copy it again.")
    head = _take(stream, 8)
    if head[:6] != _MAGIC or (head[6], head[7]) not in {(1, 0), (2, 0), (3, 0)}:
        raise DataError(f"{where}: is not an npy array of version 1 to 3: write it with numpy.save or savez.")
    width = 2 if head[6] == 1 else 4
    if size < 8 + width:
        raise DataError(f"{where}: ends within its npy header: make or copy it again.")
    length = int.from_bytes(_take(stream, width), "little")
    if length > min(_MAX_HEADER, size - 8 - width):
        raise DataError(f"{where}: declares an npy header of {length} bytes: it is damaged, make it again.")
    text = _take(stream, length).decode("latin-1")
    match = _HEADER.fullmatch(text)
    if match is None:
        raise DataError(
            f"{where}: its npy header {text.strip()[:80]!r} is not that of a plain array: "
            "structured and other special types are not read."
        )
    shape = tuple(int(part.strip().rstrip("L")) for part in match[3].split(",") if part.strip())
    if len(shape) > 32:
        raise DataError(f"{where}: has {len(shape)} dimensions: at most 32 are read.")
    return Header(_plain_dtype(match[1], where), match[2] == "True", shape, 8 + width + length)


def _plain_dtype(text: str, where: str) -> np.dtype[Any]:
    kind, width = text[1], int(text[2:] or 0)
    if kind in "US" and 0 < width <= _MAX_TEXT:
        return np.dtype(text)
    if text[1:] in _NUMBERS and (text[0] in "<>" or width == 1):
        return np.dtype(text)
    raise DataError(
        f"{where}: has type {text!r}: only bool, integers, floats of 2 to 8 bytes and strings of at most "
        f"{_MAX_TEXT} characters are read (no pickled objects)."
    )


def check_content(flat: NDArray[Any], where: str) -> None:
    """Refuse bytes that NumPy takes but that are no value of the type."""
    kind, step = flat.dtype.kind, max(1, _CHUNK // max(1, flat.dtype.itemsize))
    if kind not in "bU":
        return
    for start in range(0, len(flat), step):
        part = flat[start : start + step]
        if kind == "b":
            bad = bool(part.view(np.uint8).max() > 1)
        else:
            code = part.view(np.uint32)
            bad = bool(code.max() > 0x10FFFF) or bool(((code >> 11) == 0x1B).any())  # 0x1B: surrogates
        if bad:
            raise DataError(f"{where}: holds bytes that are no {'truth value' if kind == 'b' else 'text'}.")


def _take(stream: Stream, count: int) -> bytes:
    buffer = bytearray(count)
    stream.fill(memoryview(buffer))
    return bytes(buffer)


def npy_header(array: NDArray[Any]) -> bytes:
    """The header of a C-ordered, little-endian npy file, the same for every NumPy."""
    descr = array.dtype.newbyteorder("<").str
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {array.shape!r}, }}"
    padding = -(10 + len(text) + 1) % 64
    body = text.encode("ascii") + b" " * padding + b"\n"
    return _MAGIC + b"\x01\x00" + len(body).to_bytes(2, "little") + body
