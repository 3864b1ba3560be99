"""Files and zip archives from anywhere, read within limits; nothing is ever unpacked to disk."""

import gzip
import io
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from propreg.data.errors import DataError

_MAX_MEMBERS = 10_000
_MAX_DIRECTORY = 4 << 20  # bytes; 10,000 members take one or two million
_BEST_DEFLATE = 1032  # no deflate stream unfolds further
_KNOWN_FLAGS = 0x0002 | 0x0004 | 0x0008 | 0x0800  # deflate's level, sizes after the data, UTF-8 names
_LOCAL_HEADER = 30
_END = b"PK\x05\x06"  # how the end record starts
_TAIL = 22 + (1 << 16) + 76  # end record, the longest comment, and the zip64 records before them
_CHUNK = 1 << 16


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open an ordinary file for reading (a pipe would wait forever)."""
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


def read_bytes(path: Path, max_bytes: int) -> bytes:
    """The content of an ordinary file of at most ``max_bytes``."""
    with open_regular(path) as file:
        try:
            # The size first: read(n) allocates n bytes however small the file is.
            size = os.fstat(file.fileno()).st_size
            if size > max_bytes:
                raise DataError(f"{path}: has {size} bytes, more than {max_bytes}: this is not the expected file.")
            return file.read(size)
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}.") from error


@contextmanager
def open_zip(path: str | os.PathLike[str], kind: str = "zip") -> Iterator[zipfile.ZipFile]:
    """Open a zip archive and check its directory; errors of the archive in the block become :class:`DataError`.

    ``zipfile`` checks each member's own header and checksum, but trusts the directory: it takes members that overlap
    (many over one packed stream unfold a small file to any size), that have the same name, or that declare more than
    they can hold, and it reads the directory whole, whatever size it declares. All of these are refused here.
    """
    with open_regular(path) as file:
        try:
            count = _declared_count(file, kind, str(path))
            with zipfile.ZipFile(file) as archive:
                _check_members(archive, count, str(path))
                yield archive
        except DataError:
            raise
        except (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError, KeyError) as error:
            raise _damaged(path, error) from error
        except (OSError, ValueError, IndexError, OverflowError, NotImplementedError, RuntimeError) as error:
            raise _damaged(path, error) from error


def check_packing(member: zipfile.ZipInfo, where: str) -> None:
    """Raise for a member that is encrypted, not packed by deflate, or larger than its packed bytes can unfold to."""
    if member.flag_bits & ~_KNOWN_FLAGS:
        raise DataError(f"{where}: member {member.filename!r} is encrypted or of an unknown kind: write a plain file.")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(
            f"{where}: member {member.filename!r} is packed by method {member.compress_type}: only deflate is read."
        )
    size, packed = member.file_size, member.compress_size
    if size > packed * _BEST_DEFLATE or (member.compress_type == zipfile.ZIP_STORED and size != packed):
        raise DataError(
            f"{where}: member {member.filename!r} declares {size} bytes in {packed}: the archive is damaged, make or "
            "copy it again."
        )


def read_members(path: Path, endings: tuple[str, ...], *, max_bytes: int) -> dict[str, bytes]:
    """Read the members whose names end in ``endings``, gzip undone.

    Args:
        path: The zip archive.
        endings: For example ``raw/edge.csv.gz``: exactly one member must end in each.
        max_bytes: The most bytes that one member may unfold to, after zip and after gzip.

    Returns:
        Ending → content.
    """
    with open_zip(path) as archive:
        for name in archive.namelist():
            if name.startswith("/") or ".." in PurePosixPath(name).parts or "\\" in name or ":" in name:
                raise DataError(
                    f"{path}: member {name[:80]!r} points outside the archive: do not trust it, get it again."
                )
        return {ending: _read_member(archive, ending, max_bytes, str(path)) for ending in endings}


def _declared_count(file: BinaryIO, kind: str, where: str) -> int:
    """The number of members in the end record, or in large archives its zip64 twin; a vast directory is refused."""
    length = os.fstat(file.fileno()).st_size
    file.seek(max(0, length - _TAIL))
    tail = file.read(_TAIL)
    at = len(tail) - 22 if tail[-22:-18] == _END else tail.rfind(_END)
    if at < 0 or len(tail) - at < 22:
        file.seek(0)
        if kind == "npz" and file.read(6) == b"\x93NUMPY":
            raise DataError(f"{where}: is a single npy array, not an npz archive: write it with numpy.savez.")
        raise DataError(f"{where}: is not a whole {kind} archive (truncated or another kind): make or get it again.")
    count, size, start, comment = struct.unpack_from("<H2LH", tail, at + 10)
    end = length - len(tail) + at
    fits = len(tail) - at == 22 + comment
    if tail[max(0, at - 20) : at].startswith(b"PK\x06\x07"):
        record, end = tail[max(0, at - 76) : at], end - 76
        fits = fits and record[:4] == b"PK\x06\x06" and record[64:72] == struct.pack("<Q", end)
        count, size, start = struct.unpack_from("<3Q", record, 32) if fits else (count, size, start)
    if not fits or size > _MAX_DIRECTORY or start + size != end:
        raise DataError(
            f"{where}: its directory of {size} bytes does not fit: the archive is damaged, make or copy it again."
        )
    return int(count)


def _check_members(archive: zipfile.ZipFile, count: int, where: str) -> None:
    members = sorted(archive.infolist(), key=lambda member: member.header_offset)
    if len(members) != count:  # a damaged length field makes zipfile skip entries
        raise DataError(
            f"{where}: its directory has {len(members)} entries, not {count}: the archive is damaged, make or copy it "
            "again."
        )
    if count > _MAX_MEMBERS:
        raise DataError(f"{where}: has {len(members)} members: this is not the expected archive.")
    if len({member.orig_filename for member in members}) != len(members):
        raise DataError(f"{where}: two members have the same name: the archive is damaged, make or copy it again.")
    ends = [member.header_offset for member in members[1:]] + [archive.start_dir]
    for member, following in zip(members, ends, strict=False):  # an empty archive has an end all the same
        if member.header_offset + _LOCAL_HEADER + member.compress_size > following:
            raise DataError(
                f"{where}: member {member.filename!r} overlaps what follows it: the archive is damaged, make or copy "
                "it again."
            )


def _damaged(path: str | os.PathLike[str], error: Exception) -> DataError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return DataError(f"{path}: {reason}: the archive is damaged, make or copy it again.")


def _read_member(archive: zipfile.ZipFile, ending: str, max_bytes: int, where: str) -> bytes:
    found = [info for info in archive.infolist() if f"/{info.filename}".endswith(f"/{ending}")]
    if len(found) != 1:
        raise DataError(f"{where}: {len(found)} members end in {ending!r} instead of one: get the archive again.")
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
            raise DataError(
                f"{where}: expands to more than {max_bytes} bytes, as a zip bomb does: get the archive again."
            )
    return b"".join(pieces)
