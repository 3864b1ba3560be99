"""Damaging files at random: flipped bits, missing ends, overwritten parts, wrong types, huge declared sizes."""

import gzip
import io
import re
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

Damage = Callable[[bytes, np.random.Generator], bytes]


def flip_bits(data: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    for place in rng.integers(0, len(data), rng.integers(1, 5)):
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def cut(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(len(data)))]


def overwrite(data: bytes, rng: np.random.Generator) -> bytes:
    start, length = int(rng.integers(len(data))), int(rng.integers(1, 200))
    piece = rng.bytes(length) if rng.random() < 0.5 else bytes(length)
    if rng.random() < 0.3:
        return data[:start] + piece + data[start:]  # put in rather than over
    return data[:start] + piece + data[start + length :]


def npz_dtype(data: bytes, rng: np.random.Generator) -> bytes:
    """One array of an npz archive in another type, with valid checksums."""
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays: dict[str, Any] = {name: file[name] for name in _plain(data)}
    name = str(rng.choice(sorted(arrays)))
    kind = str(rng.choice(["f8", "f4", "i1", "u1", "i8", "u8", "?", "c16", "U4", "O", "M8[s]", ">i4", "f2"]))
    with np.errstate(all="ignore"):
        base = arrays[name].astype("i8") if kind == "M8[s]" else arrays[name]
        arrays[name] = base.astype(kind)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def npz_shape(data: bytes, rng: np.random.Generator) -> bytes:
    """One array of an npz archive that declares a huge or odd shape, with valid checksums."""
    shapes = ["(9999999999,)", "(4, 9999999999)", "(999999999, 999999999)", "(-1,)", "(0,)", "(2, -3)", "()", "(1e9,)"]
    target = str(rng.choice(_plain(data)))
    shape = str(rng.choice(shapes))
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == f"{target}.npy":
                end = content.index(b"\n")
                head = re.sub(rb"'shape': \([^)]*\)", b"'shape': " + shape.encode(), content[:end])
                content = head[:end].ljust(end) + content[end:]
            new.writestr(info.filename, content)
    return buffer.getvalue()


def _plain(data: bytes) -> list[str]:
    """The members that are no pickled objects."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [i.filename.removesuffix(".npy") for i in archive.infolist() if b"'|O'" not in archive.read(i)[:128]]


def pickle_dtype(data: bytes, rng: np.random.Generator) -> bytes:
    """Another type code in a pickled array (or, in a text file, another kind of line)."""
    codes = [b"i4", b"f4", b"f8", b"i8", b"O8", b"V9", b"S4"]
    places = [match.start() for match in re.finditer(rb"U\x02[if][48]", data)]
    if not places:
        return data.replace(b"\n", b".5\n", 1) if b"K" not in data[:4] else flip_bits(data, rng)
    place = int(rng.choice(places))
    return data[: place + 2] + codes[int(rng.integers(len(codes)))] + data[place + 4 :]


def pickle_size(data: bytes, rng: np.random.Generator) -> bytes:
    """A huge number in the place of a length, a shape or an index."""
    places = [match.start() for match in re.finditer(rb"[TJX]|K|M", data)]
    if not places:
        return b"9" * int(rng.integers(1, 400)) + data
    place = int(rng.choice(places))
    width = {b"K": 2, b"M": 3}.get(data[place : place + 1], 5)
    if width < 5:
        return data[:place] + b"J\xff\xff\xff" + (b"\x7f" if rng.random() < 0.7 else b"\xff") + data[place + width :]
    return data[: place + 1] + b"\xff\xff\xff\x7f" + data[place + 5 :]


def text_table(data: bytes, rng: np.random.Generator, *, huge: bool) -> bytes:
    """An OGB archive with one cell of one table changed, with valid checksums."""
    cells = (
        ["9" * 18, "9" * 40, "4294967296", "1000000000"] if huge else ["1.5", "x", "", "-1", "1e3", "\x00", "é", '"']
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        target = str(rng.choice([name for name in old.namelist() if "raw/" in name or "split/" in name]))
        for info in old.infolist():
            content = old.read(info)
            if info.filename == target:
                lines = gzip.decompress(content).decode().split("\n")
                line = int(rng.integers(len(lines) - 1))
                row = lines[line].split(",")
                row[int(rng.integers(len(row)))] = str(rng.choice(cells))
                lines[line] = ",".join(row)
                content = gzip.compress("\n".join(lines).encode())
            new.writestr(info.filename, content)
    return buffer.getvalue()


ANY: list[Damage] = [flip_bits, cut, overwrite]
NPZ: list[Damage] = [*ANY, npz_dtype, npz_shape]
PICKLE: list[Damage] = [*ANY, pickle_dtype, pickle_size]
TABLES: list[Damage] = [
    *ANY,
    lambda data, rng: text_table(data, rng, huge=False),
    lambda data, rng: text_table(data, rng, huge=True),
]
