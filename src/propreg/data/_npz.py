"""npz archives: a reader that believes nothing, and a writer whose bytes depend on the arrays alone."""

import os
import zipfile
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data._atomic import atomic_write
from propreg.data._npy import MAX_BYTES, check_content, npy_header, open_regular, read_array
from propreg.data._zip import Member, MemberStream, members
from propreg.data.errors import DataError

_MODEST = 64 << 20
_MAX_RATIO = 250  # beyond _MODEST bytes; text packs 4:1, 0/1 features about 50:1
_CHUNK = 1 << 22


def read_npz(
    path: str | os.PathLike[str],
    *,
    only: Collection[str] | None = None,
    max_bytes: int = MAX_BYTES,
) -> dict[str, NDArray[Any]]:
    """Read the arrays of an ``.npz`` archive, refusing whatever could be unsafe or is not what it declares.

    Every size is compared with every other before memory is asked for, arrays are filled in place from the
    packed data, and each member's checksum must hold: reading takes the size of the arrays and little more.

    Args:
        path: The archive, as ``numpy.savez`` or ``numpy.savez_compressed`` write it.
        only: Read these members where they are there, and do not look at the others (which may then be
            of any type). By default every member is read.
        max_bytes: The most bytes that the members read may unfold to. Above 64 MiB they may also not unfold
            to more than 250 times the file.

    Returns:
        Name (without ``.npy``) → array in native byte order; arrays in Fortran order stay so.

    Raises:
        DataError: If the file is missing, damaged, too large, has odd member names, or holds anything but
            numbers, truth values or strings of fixed width (no pickled objects).

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_npz(f"{folder}/a.npz", {"y": np.arange(3), "names": np.array(["a", "b"])})
        ...     arrays = read_npz(f"{folder}/a.npz")
        >>> sorted(arrays), arrays["y"].tolist(), arrays["names"].tolist()
        (['names', 'y'], [0, 1, 2], ['a', 'b'])
    """
    with open_regular(path) as file:
        try:
            length = os.fstat(file.fileno()).st_size
            found = members(file, length, str(path))
            wanted = [member for member in found if only is None or member.name.removesuffix(".npy") in only]
            _check_sizes(wanted, length, max_bytes, str(path))
            arrays = {}
            for member in wanted:
                where = f"{path}, member {member.name!r}"
                stream = MemberStream(file, member, length, where)
                arrays[member.name.removesuffix(".npy")] = read_array(stream, member.size, where, max_bytes=max_bytes)
                stream.finish()
            return arrays
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}.") from error


def _check_sizes(wanted: list[Member], length: int, max_bytes: int, where: str) -> None:
    for member in wanted:
        if not member.name.removesuffix(".npy") or not member.name.endswith(".npy"):
            raise DataError(f"{where}: member {member.name!r} is no npy array: write it with numpy.savez.")
    total = sum(member.size for member in wanted)
    if total > max_bytes:
        raise DataError(f"{where}: unfolds to {total} bytes, more than the limit of {max_bytes}.")
    if total > max(_MODEST, _MAX_RATIO * length):
        raise DataError(
            f"{where}: unfolds to {total} bytes, over {_MAX_RATIO} times its {length}, as zip bombs do: "
            "write it uncompressed (numpy.savez) if it is honest."
        )


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write ``arrays`` to an ``.npz`` archive in one step: the file is there whole or not at all.

    Equal arrays give equal bytes on every machine: names are sorted, times fixed, numbers little-endian, and
    nothing is compressed (packed bytes would depend on the version of zlib).

    Args:
        path: The file to make or replace, under exactly this name.
        arrays: Name → array of numbers, truth values or strings of fixed width.

    Raises:
        DataError: If an array is of another type, a name is no plain name, or the file cannot be written.
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


def _storable(name: str, array: NDArray[Any], where: str) -> NDArray[Any]:
    if not name.isidentifier() or not name.isascii():
        raise DataError(f"{where}: {name!r} is no plain name for a member: use letters, digits and _.")
    if array.dtype.kind not in "biufUS" or array.dtype.itemsize == 0 or array.dtype.str[1:] == "f16":
        raise DataError(f"{where}: {name!r} has type {array.dtype}: only bool, int, float, text are written.")
    check_content(array.reshape(-1), f"{where}, {name!r}")
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
