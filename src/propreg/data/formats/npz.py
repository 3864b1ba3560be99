"""npz archives and npy arrays: a reader that trusts nothing, a writer whose bytes depend on the arrays alone."""

import math
import os
import re
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.errors import DataError
from propreg.data.formats.files import check_packing, open_regular, open_zip
from propreg.jsonio import atomic_write

MAX_BYTES = 8 << 30
"""The default cap on what one file may unfold to."""

_MODEST = 64 << 20
_MAX_RATIO = 250  # beyond _MODEST bytes; text packs 4:1, 0/1 features about 50:1
_MAGIC = b"\x93NUMPY"
_MAX_HEADER = 10_000  # NumPy's own limit
_MAX_TEXT = 4096  # characters in one string of a string array
_CHUNK = 1 << 16  # zipfile reads into a buffer of this size, and copies

# What NumPy writes, and nothing else: evaluating the text as Python, as np.load does, can be made to
# recurse without end. Python 2 wrote 3L for 3.
_HEADER = re.compile(
    r"\{'descr': '([<>|=][a-zA-Z][0-9]{0,6})', 'fortran_order': (False|True), "
    r"'shape': \(((?:[0-9]{1,18}L?, ?)*(?:[0-9]{1,18}L?)?)\),? ?\} *\n?"
)
_NUMBERS = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}


def read_npz(
    path: str | os.PathLike[str],
    *,
    only: Collection[str] | None = None,
    max_bytes: int = MAX_BYTES,
) -> dict[str, NDArray[Any]]:
    """Read the arrays of an ``.npz`` archive, refusing whatever could be unsafe or contradicts its declaration.

    Every size is compared with every other before memory is allocated, arrays are filled in place from the
    packed data, and each member's checksum must hold: reading takes the size of the arrays and little more.

    Args:
        path: The archive, as ``numpy.savez`` or ``numpy.savez_compressed`` write it.
        only: Read these members if they exist, and ignore the others (which may then be of any type). By default
            every member is read.
        max_bytes: The most bytes that the members read may unfold to. Above 64 MiB they may also not unfold
            to more than 250 times the file.

    Returns:
        Name (without ``.npy``) → array in native byte order; arrays in Fortran order stay so.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_npz(f"{folder}/a.npz", {"y": np.arange(3), "names": np.array(["a", "b"])})
        ...     arrays = read_npz(f"{folder}/a.npz")
        >>> sorted(arrays), arrays["y"].tolist(), arrays["names"].tolist()
        (['names', 'y'], [0, 1, 2], ['a', 'b'])
    """
    with open_zip(path, "npz") as archive:
        members = archive.infolist()
        for member in members:
            _check_name(member.orig_filename, str(path))
            check_packing(member, str(path))
        wanted = [member for member in members if only is None or member.filename.removesuffix(".npy") in only]
        _check_sizes(wanted, os.path.getsize(path), max_bytes, str(path))
        arrays = {}
        for member in wanted:
            where = f"{path}, member {member.filename!r}"
            with archive.open(member) as stream:
                array = _read_array(stream, member.file_size, where, max_bytes)
            arrays[member.filename.removesuffix(".npy")] = array
        return arrays


def read_npy(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read one array from an ``.npy`` file, refusing whatever could be unsafe or contradicts its declaration.

    Args:
        path: The file.

    Returns:
        The array, in native byte order.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(f"{folder}/a.npy", np.arange(3))
        ...     read_npy(f"{folder}/a.npy")
        array([0, 1, 2])
    """
    with open_regular(path) as file:
        try:
            return _read_array(file, os.fstat(file.fileno()).st_size, str(path), MAX_BYTES)
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}.") from error


def map_npy(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The array of an ``.npy`` file without reading it: pages come from disk when they are used; writes stay in memory.

    Raises:
        DataError: If the file is no C-ordered, little-endian array of its size. Its values are not checked.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        header = _read_header(file, size, str(path))
        if header.fortran or not header.dtype.isnative or header.length + header.nbytes != size:
            raise DataError(f"{path}: is not a whole C-ordered array of this machine's byte order: write it again.")
        if not header.nbytes:
            return np.empty(header.shape, header.dtype)
        try:
            mapped = np.memmap(file, header.dtype, "c", header.length, header.shape)
        except (OSError, ValueError, OverflowError) as error:
            raise DataError(f"{path}: cannot be mapped into memory: {error}.") from error
        return np.asarray(mapped)


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write ``arrays`` to an ``.npz`` archive in one step: the file is written completely or not at all.

    Equal arrays give equal bytes on every machine: names are sorted, times fixed, numbers little-endian, and
    nothing is compressed (packed bytes would depend on the version of zlib).

    Args:
        path: The file to create or replace, under exactly this name.
        arrays: Name → array of numbers, truth values or strings of fixed width.
    """
    ready = {name: _storable(name, np.asarray(arrays[name]), str(path)) for name in sorted(arrays)}
    with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in ready.items():
            header = npy_header(array)
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system = 3  # Unix, whatever wrote it
            info.external_attr = 0o644 << 16
            info.file_size = len(header) + array.nbytes  # lets zipfile choose zip64 for large members
            with archive.open(info, "w") as member:
                member.write(header)
                raw = array.reshape(-1).view(np.uint8).data if array.nbytes else memoryview(b"")
                for start in range(0, len(raw), _CHUNK):
                    member.write(raw[start : start + _CHUNK])


def npy_header(array: NDArray[Any]) -> bytes:
    """The header of a C-ordered, little-endian npy file, the same for every NumPy."""
    descr = array.dtype.newbyteorder("<").str
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {array.shape!r}, }}"
    padding = -(10 + len(text) + 1) % 64
    body = text.encode("ascii") + b" " * padding + b"\n"
    return _MAGIC + b"\x01\x00" + len(body).to_bytes(2, "little") + body


def _check_name(name: str, where: str) -> None:
    if not name or len(name) > 255 or not name.isprintable() or any(mark in name for mark in "/\\:"):
        raise DataError(f"{where}: the member name {name[:80]!r} has path parts: write plain names.")


def _check_sizes(wanted: list[zipfile.ZipInfo], length: int, max_bytes: int, where: str) -> None:
    for member in wanted:
        if not member.filename.removesuffix(".npy") or not member.filename.endswith(".npy"):
            raise DataError(f"{where}: member {member.filename!r} is not an npy array: write it with numpy.savez.")
    total = sum(member.file_size for member in wanted)
    if total > max_bytes:
        raise DataError(f"{where}: expands to {total} bytes, more than the limit of {max_bytes}.")
    if total > max(_MODEST, _MAX_RATIO * length):
        raise DataError(
            f"{where}: expands to {total} bytes, over {_MAX_RATIO} times its {length}, as a zip bomb does: "
            "write it uncompressed (numpy.savez) if you trust it."
        )


@dataclass(frozen=True)
class _Header:
    """The declarations of an npy header, and its length in bytes."""

    dtype: np.dtype[Any]
    fortran: bool
    shape: tuple[int, ...]
    length: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def _read_array(stream: IO[bytes], size: int, where: str, max_bytes: int) -> NDArray[Any]:
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
        raise DataError(f"{where}: an array of shape {header.shape} cannot be held in memory: {error}.") from error
    _fill(stream, flat.view(np.uint8).data if header.nbytes else memoryview(b""), where)
    if not header.dtype.isnative:
        flat.byteswap(inplace=True)
        shaped = shaped.view(header.dtype.newbyteorder("="))
    _check_content(flat.view(header.dtype.newbyteorder("=")), where)
    return shaped


def _fill(stream: IO[bytes], view: memoryview, where: str) -> None:
    done = 0
    while done < len(view):
        part = stream.readinto(view[done : done + _CHUNK])  # type: ignore[attr-defined]
        if not part:
            raise DataError(f"{where}: ends too early (truncated): make or copy it again.")
        done += part


def _take(stream: IO[bytes], count: int, where: str) -> bytes:
    buffer = bytearray(count)
    _fill(stream, memoryview(buffer), where)
    return bytes(buffer)


def _read_header(stream: IO[bytes], size: int, where: str) -> _Header:
    if size < 10:
        raise DataError(f"{where}: is too short for an npy array ({size} bytes): make or copy it again.")
    head = _take(stream, 8, where)
    if head[:6] != _MAGIC or (head[6], head[7]) not in {(1, 0), (2, 0), (3, 0)}:
        raise DataError(f"{where}: is not an npy array of version 1 to 3: write it with numpy.save or savez.")
    width = 2 if head[6] == 1 else 4
    if size < 8 + width:
        raise DataError(f"{where}: ends within its npy header: make or copy it again.")
    length = int.from_bytes(_take(stream, width, where), "little")
    if length > min(_MAX_HEADER, size - 8 - width):
        raise DataError(f"{where}: declares an npy header of {length} bytes: it is damaged, make it again.")
    text = _take(stream, length, where).decode("latin-1")
    match = _HEADER.fullmatch(text)
    if match is None:
        raise DataError(
            f"{where}: its npy header {text.strip()[:80]!r} is not that of a plain array: "
            "structured and other special types are not read."
        )
    shape = tuple(int(part.strip().rstrip("L")) for part in match[3].split(",") if part.strip())
    if len(shape) > 32:
        raise DataError(f"{where}: has {len(shape)} dimensions: at most 32 are read.")
    return _Header(_plain_dtype(match[1], where), match[2] == "True", shape, 8 + width + length)


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


def _check_content(flat: NDArray[Any], where: str) -> None:
    """Raise for bytes that NumPy accepts but that are no value of the type."""
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


def _storable(name: str, array: NDArray[Any], where: str) -> NDArray[Any]:
    if not name.isidentifier() or not name.isascii():
        raise DataError(f"{where}: {name!r} is not a plain name for a member: use letters, digits and _.")
    if array.dtype.kind not in "biufUS" or array.dtype.itemsize == 0 or array.dtype.str[1:] == "f16":
        raise DataError(f"{where}: {name!r} has type {array.dtype}: only bool, int, float, text are written.")
    _check_content(array.reshape(-1), f"{where}, {name!r}")
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
