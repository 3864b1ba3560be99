"""Reading members of a zip archive into memory, within limits; nothing is ever unpacked to disk."""

import gzip
import io
import struct
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO

from propreg.data._npy import open_regular
from propreg.data.errors import DataError

_MAX_MEMBERS = 10_000
_CHUNK = 1 << 16


def read_members(path: Path, endings: tuple[str, ...], *, max_bytes: int) -> dict[str, bytes]:
    """Read the members whose names end in ``endings``, gzip undone.

    Args:
        path: The zip archive.
        endings: For example ``raw/edge.csv.gz``: exactly one member must end in each.
        max_bytes: The most bytes that one member may unfold to, after zip and after gzip.

    Returns:
        Ending → content.

    Raises:
        DataError: If the archive is damaged, unfolds too far, or has a member that points outside.
    """
    with open_regular(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                _check_names(archive, str(path))
                return {ending: _read(archive, ending, max_bytes, str(path)) for ending in endings}
        except (OSError, EOFError, ValueError, NotImplementedError, RuntimeError, IndexError) as error:
            raise _damaged(path, error) from error
        except (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, KeyError) as error:
            raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> DataError:
    if isinstance(error, DataError):
        return error
    return DataError(f"{path}: is no whole zip archive ({error}): it is damaged, get it again.")


def _check_names(archive: zipfile.ZipFile, where: str) -> None:
    names = archive.namelist()
    if len(names) > _MAX_MEMBERS:
        raise DataError(f"{where}: has {len(names)} members: it is not the archive it should be.")
    for name in names:
        parts = PurePosixPath(name).parts
        if name.startswith("/") or ".." in parts or "\\" in name or ":" in name:
            raise DataError(f"{where}: member {name[:80]!r} points outside the archive: do not trust it, get it again.")
    if len(set(names)) != len(names):
        raise DataError(f"{where}: two members have the same name: it is damaged, get it again.")


def _read(archive: zipfile.ZipFile, ending: str, max_bytes: int, where: str) -> bytes:
    found = [info for info in archive.infolist() if f"/{info.filename}".endswith(f"/{ending}")]
    if len(found) != 1:
        raise DataError(f"{where}: {len(found)} members end in {ending!r} where one should: get the archive again.")
    with archive.open(found[0]) as member:
        packed = _bounded(member, max_bytes, f"{where}, {ending}")
    if not ending.endswith(".gz"):
        return packed
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as unpacked:
        return _bounded(unpacked, max_bytes, f"{where}, {ending}")


def _bounded(stream: IO[bytes] | gzip.GzipFile, max_bytes: int, where: str) -> bytes:
    pieces, total = [], 0
    while piece := stream.read(_CHUNK):
        pieces.append(piece)
        total += len(piece)
        if total > max_bytes:
            raise DataError(f"{where}: unfolds to more than {max_bytes} bytes, as zip bombs do: get the archive again.")
    return b"".join(pieces)
