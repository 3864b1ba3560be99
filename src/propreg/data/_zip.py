"""The little of the zip format that an npz needs, every field checked before it is believed.

``zipfile`` trusts the directory: it takes members that overlap, names that differ between directory and
member, and any number of entries. Here each of these is refused.
"""

import struct
import zlib
from dataclasses import dataclass
from struct import unpack_from
from typing import BinaryIO

from propreg.data._npy import FileStream
from propreg.data.errors import DataError

_STORED, _DEFLATED = 0, 8
_KNOWN_FLAGS = 0x0002 | 0x0004 | 0x0008 | 0x0800  # deflate's level, sizes after the data, UTF-8 names
_MAX_MEMBERS = 10_000
_MAX_DIRECTORY = 16 << 20
_BEST_DEFLATE = 1032  # no deflate stream unfolds further
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Member:
    """One entry of the directory; ``start`` is where its local header lies."""

    name: str
    method: int
    crc: int
    packed: int
    size: int
    start: int


def members(file: BinaryIO, length: int, where: str) -> list[Member]:
    """The members of the archive, in the order of their place in the file."""
    try:
        count, size, start, end = _directory(file, length, where)
        if count > _MAX_MEMBERS or size > _MAX_DIRECTORY or start + size != end:
            raise _damaged(where, f"its directory of {count} entries and {size} bytes does not fit")
        directory = _read(file, start, size, where)
        found, place = [], 0
        for _ in range(count):
            member, place = _entry(directory, place, where)
            found.append(member)
    except struct.error as error:
        raise _damaged(where, "its directory ends too early") from error
    if place != size:
        raise _damaged(where, f"its directory has {size - place} bytes more than its entries")
    found.sort(key=lambda member: member.start)
    ends = [member.start for member in found[1:]] + [start]
    for member, following in zip(found, ends, strict=False):  # an empty archive has an end all the same
        if member.start + 30 + member.packed > following:
            raise _damaged(where, f"member {member.name!r} overlaps what follows it")
    if len({member.name for member in found}) != len(found):
        raise _damaged(where, "two members have the same name")
    return found


def _directory(file: BinaryIO, length: int, where: str) -> tuple[int, int, int, int]:
    """(entries, bytes, start, expected end) of the central directory."""
    if length < 22 or (tail := _read(file, length - 22, 22, where))[:4] != b"PK\x05\x06":
        start = _read(file, 0, min(length, 6), where)
        if start == b"\x93NUMPY":
            raise DataError(f"{where}: is a single npy array, not an npz archive: write it with numpy.savez.")
        raise DataError(f"{where}: is not a whole npz archive (truncated or another kind): make it again.")
    disk, start_disk, here, count, size, start, comment = unpack_from("<4H2LH", tail, 4)
    if disk or start_disk or here != count or comment:
        raise _damaged(where, "its last record does not fit")
    end = length - 22
    if end >= 76 and (locator := _read(file, end - 20, 20, where))[:4] == b"PK\x06\x07":
        (place,) = unpack_from("<Q", locator, 8)
        if place != end - 76 or (record := _read(file, place, 56, where))[:4] != b"PK\x06\x06":
            raise _damaged(where, "its zip64 record does not fit")
        here, count, size, start = unpack_from("<4Q", record, 24)
        end -= 76
    return count, size, start, end


def _entry(directory: bytes, place: int, where: str) -> tuple[Member, int]:
    if directory[place : place + 4] != b"PK\x01\x02":
        raise _damaged(where, "an entry of its directory does not start as one")
    fields = unpack_from("<4H3L5H2L", directory, place + 8)
    flags, method, _, _, crc, packed, size, name_len, extra_len, comment_len, disk, _, _, start = fields
    place += 46
    raw = directory[place : place + name_len]
    extra = directory[place + name_len : place + name_len + extra_len]
    place += name_len + extra_len + comment_len
    if place > len(directory) or disk:
        raise _damaged(where, "an entry of its directory ends too early")
    name = _name(raw, flags, where)
    if flags & ~_KNOWN_FLAGS:
        raise DataError(f"{where}: member {name!r} is encrypted or of an unknown kind: write a plain npz.")
    size, packed, start = _zip64(extra, size, packed, start)
    if method not in {_STORED, _DEFLATED}:
        raise DataError(f"{where}: member {name!r} is packed by method {method}: only deflate is read.")
    if (method == _STORED and packed != size) or size > packed * _BEST_DEFLATE:
        raise _damaged(where, f"member {name!r} declares {size} bytes in {packed}")
    return Member(name, method, crc, packed, size, start), place


def _zip64(extra: bytes, size: int, packed: int, start: int) -> tuple[int, int, int]:
    """Take from the zip64 field what was too large for its usual place."""
    values, place = [size, packed, start], 0
    while place + 4 <= len(extra):
        kind, length = unpack_from("<2H", extra, place)
        place += 4
        if kind == 1:
            field = place
            for which, value in enumerate(values):
                if value == 0xFFFFFFFF:
                    (values[which],) = unpack_from("<Q", extra, field)
                    field += 8
            break
        place += length
    return values[0], values[1], values[2]


def _name(raw: bytes, flags: int, where: str) -> str:
    try:
        name = raw.decode("utf-8" if flags & 0x0800 else "ascii")
    except UnicodeDecodeError as error:
        raise _damaged(where, f"the member name {raw[:80]!r} is no text") from error
    if not name or len(name) > 255 or not name.isprintable() or any(mark in name for mark in "/\\:"):
        raise DataError(f"{where}: the member name {name[:80]!r} has path parts: write plain names.")
    return name


class MemberStream:
    """The unpacked bytes of a member, read from front to back; :meth:`finish` checks the rest."""

    def __init__(self, file: BinaryIO, member: Member, limit: int, where: str) -> None:
        head = _read(file, member.start, 30, where)
        flags, method, *_, name_len, extra_len = unpack_from("<4H3L2H", head, 6)
        name = _read(file, member.start + 30, name_len, where)
        if head[:4] != b"PK\x03\x04" or method != member.method or flags & ~_KNOWN_FLAGS:
            raise _damaged(where, "its own header differs from the directory's")
        if _name(name, flags, where) != member.name:
            raise _damaged(where, "its own header has another name than the directory")
        if member.start + 30 + name_len + extra_len + member.packed > limit:
            raise _damaged(where, "it reaches beyond the archive's members")
        file.seek(member.start + 30 + name_len + extra_len)
        self._source, self._where, self._member = FileStream(file, where), where, member
        self._packed, self._crc = member.packed, 0
        self._inflate = zlib.decompressobj(-15) if member.method == _DEFLATED else None

    def fill(self, view: memoryview) -> None:
        if self._inflate is None:
            if len(view) > self._packed:
                raise _damaged(self._where, "it ends too early")
            self._source.fill(view)
            self._packed -= len(view)
        else:
            done = 0
            while done < len(view):
                part = self._unpack(min(_CHUNK, len(view) - done))
                view[done : done + len(part)] = part
                done += len(part)
        self._crc = zlib.crc32(view, self._crc)

    def finish(self) -> None:
        """Refuse bytes beyond the declared size, and a wrong checksum."""
        while self._inflate is not None and not self._inflate.eof:
            if self._unpack(1):
                raise _damaged(self._where, "it holds more than it declares")
        if self._packed or (self._inflate is not None and self._inflate.unused_data):
            raise _damaged(self._where, "it holds more than it declares")
        if self._crc != self._member.crc:
            raise _damaged(self._where, "its checksum is wrong")

    def _unpack(self, most: int) -> bytes:
        """Up to ``most`` bytes; none only while the packed data have not said anything yet."""
        inflate = self._inflate
        if inflate is None or inflate.eof:
            raise _damaged(self._where, "it ends too early")
        packed = inflate.unconsumed_tail
        if not packed:
            buffer = bytearray(min(_CHUNK, self._packed))
            self._source.fill(memoryview(buffer))
            self._packed -= len(buffer)
            packed = bytes(buffer)
        try:
            part = inflate.decompress(packed, most)
        except zlib.error as error:
            raise _damaged(self._where, "its packed data are broken") from error
        if not part and not packed and not inflate.eof:
            raise _damaged(self._where, "it ends too early")
        return part


def _read(file: BinaryIO, start: int, count: int, where: str) -> bytes:
    file.seek(start)
    buffer = bytearray(count)
    FileStream(file, where).fill(memoryview(buffer))
    return bytes(buffer)


def _damaged(where: str, what: str) -> DataError:
    return DataError(f"{where}: {what}: the archive is damaged, make or copy it again.")
