"""Damaged copies of a file's content, and what reading one takes."""

import io
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import TypeVar

from propreg.data.errors import DataError

T = TypeVar("T")
SLACK = 512 << 10  # buffers, and what Python itself takes


def damaged(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """``count`` copies with flipped bits, cut ends, lost, added, cleared or moved pieces."""
    random = Random(seed)
    for number in range(count):
        yield _KINDS[number % len(_KINDS)](bytearray(content), random)


def damaged_text(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """As :func:`damaged`, every other copy with marks that mean something in CSV put somewhere."""
    random = Random(seed)
    plain = damaged(content, count, seed)
    for number, copy in enumerate(plain):
        yield _marked(bytearray(content), random) if number % 2 else copy


def damaged_npz(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """As :func:`damaged`, every other copy a well-formed archive in which one member declares another array."""
    random = Random(seed)
    for number, copy in enumerate(damaged(content, count, seed)):
        yield _redeclared(content, random) if number % 2 else copy


def damaged_npy(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """As :func:`damaged`, every other copy with another declared type or shape."""
    random = Random(seed)
    for number, copy in enumerate(damaged(content, count, seed)):
        yield _redeclare(content, random) if number % 2 else copy


def rewrite(path: Path, content: bytes) -> None:
    """Give ``path`` new content as a new file: some file systems write a truncated one to disk at once."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def check_damaged(path: Path, copies: Iterator[bytes], same: Callable[[], bool], refused: int) -> None:
    """Each damaged copy at ``path`` is refused in a sentence with its name, or reads the ``same``; most are refused."""
    said = []
    for copy in copies:
        rewrite(path, copy)
        try:
            assert same(), "damage must not change anything silently"
        except DataError as error:
            said.append(str(error))
    assert len(said) > refused
    assert all("\n" not in sentence and str(path) in sentence for sentence in said)


def peak(call: Callable[[], T]) -> tuple[T, int]:
    """What ``call`` returns, and the most bytes it held at once."""
    if not tracemalloc.is_tracing():
        tracemalloc.start()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        result = call()
        return result, tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def _flip(content: bytearray, random: Random) -> bytes:
    for _ in range(random.choice([1, 1, 2, 8])):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    return bytes(content)


def _flip_near_ends(content: bytearray, random: Random) -> bytes:
    """Headers and directories lie there."""
    place = random.choice([random.randrange(min(200, len(content))), -1 - random.randrange(min(900, len(content)))])
    content[place] ^= 1 << random.randrange(8)
    return bytes(content)


def _cut(content: bytearray, random: Random) -> bytes:
    return bytes(content[: random.randrange(len(content))])


def _lose(content: bytearray, random: Random) -> bytes:
    start = random.randrange(len(content))
    del content[start : start + random.choice([1, 2, 4, 64])]
    return bytes(content)


def _add(content: bytearray, random: Random) -> bytes:
    start = random.randrange(len(content) + 1)
    content[start:start] = random.randbytes(random.choice([1, 2, 4, 64]))
    return bytes(content)


def _clear(content: bytearray, random: Random) -> bytes:
    start = random.randrange(len(content))
    stop = min(len(content), start + random.choice([1, 8, 512]))
    content[start:stop] = bytes([random.choice([0, 255])]) * (stop - start)
    return bytes(content)


def _move(content: bytearray, random: Random) -> bytes:
    length = random.choice([1, 8, 64])
    piece = content[(start := random.randrange(len(content))) : start + length]
    place = random.randrange(len(content))
    content[place : place + length] = piece
    return bytes(content)


_KINDS = (_flip, _flip_near_ends, _cut, _flip, _lose, _add, _clear, _move)


def _marked(content: bytearray, random: Random) -> bytes:
    marks = [b",", b"\n", b"\r", b"\r\n", b'"', b'""', b" ", b"\t", b"0", b"-", b".", b"e5", b"nan", b"inf", b"_"]
    marks += [b"\xef\xbb\xbf", "é".encode(), b"\xff", b"\0", b"train", b"1e39", b"+", "\u0663".encode(), b"\x0b"]
    for _ in range(random.choice([1, 1, 2])):
        place = random.randrange(len(content) + 1)
        content[place : place + random.choice([0, 0, 1, 3])] = random.choice(marks)
    return bytes(content)


def _redeclare(member: bytes, random: Random) -> bytes:
    """An npy file's bytes with another type or shape in its header, the header's length kept right."""
    length = int.from_bytes(member[8:10], "little")
    header, data = member[10 : 10 + length].decode(), member[10 + length :]
    descr = header.split("'")[3]
    shape = header[header.index("(") : header.index(")") + 1]
    if random.random() < 0.5:
        types = ["<i8", "<u8", ">i8", "<f8", "<f4", ">f4", "<i4", "<U1", "|S4", "|O", "<c8", "|b1", "<M8[s]", "|V4"]
        header = header.replace(f"'{descr}'", f"'{random.choice(types)}'")
    else:
        shapes = ["(1000000000000,)", "(0,)", "()", "(-1,)", "(4294967297, 4294967297)", "(1, 2)", "(1000000,)"]
        header = header.replace(shape, random.choice([*shapes, shape.replace("(", "(1, "), shape.replace("1", "7")]))
    body = header.encode()
    return member[:8] + len(body).to_bytes(2, "little") + body + data


def _redeclared(content: bytes, random: Random) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(target, "w") as copy:
        chosen = random.choice(source.namelist())
        for name in source.namelist():
            member = source.read(name)
            copy.writestr(name, _redeclare(member, random) if name == chosen else member)
    return target.getvalue()
