"""Molecule datasets from OGB's zip archives of gzipped CSV tables."""

import csv
import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from propreg.data.benchmarks.molecules import PARTS, Molecules, check_molecules, small
from propreg.data.errors import DataError
from propreg.data.formats.files import read_members

_TABLES = {
    "raw/num-node-list.csv.gz": 1, "raw/num-edge-list.csv.gz": 1, "raw/edge.csv.gz": 2, "raw/node-feat.csv.gz": 9,
    "raw/edge-feat.csv.gz": 3, **{f"split/scaffold/{part}.csv.gz": 1 for part in PARTS},
}  # fmt: skip
_LABELS, _MAPPING = "raw/graph-label.csv.gz", "mapping/mol.csv.gz"


def read_ogb(path: Path, name: str, *, max_bytes: int = 64 << 20) -> Molecules:
    """Read an archive as OGB publishes it.

    Args:
        path: The zip archive.
        name: The dataset's name.
        max_bytes: The most bytes that one table may unfold to.
    """
    where = str(path)
    members = read_members(path, (*_TABLES, _LABELS, _MAPPING), max_bytes=max_bytes)
    tables = {ending: _integers(members.pop(ending), width, f"{where}, {ending}") for ending, width in _TABLES.items()}
    y = _labels(members[_LABELS], f"{where}, {_LABELS}")
    task_names, smiles = _mapping(members[_MAPPING], y.shape[1], f"{where}, {_MAPPING}")
    data = Molecules(
        name,
        smiles,
        task_names,
        y,
        tables["raw/num-node-list.csv.gz"][:, 0],
        tables["raw/num-edge-list.csv.gz"][:, 0],
        small(tables["raw/node-feat.csv.gz"]),
        small(tables["raw/edge.csv.gz"].T),
        small(tables["raw/edge-feat.csv.gz"]),
        {part: tables[f"split/scaffold/{part}.csv.gz"][:, 0] for part in PARTS},
    )
    return check_molecules(data, where)


def _integers(text: bytes, width: int, where: str) -> NDArray[np.int64]:
    """A table of integers from 0, ``width`` in every line."""
    if text.translate(None, b"0123456789,\n"):
        raise DataError(f"{where}: does not hold integers only: it is damaged, get the archive again.")
    lines = text.count(b"\n") + (not text.endswith(b"\n") and bool(text))
    try:
        # A single column is read several times faster than a table.
        flat = np.loadtxt(io.BytesIO(text.replace(b",", b"\n")), dtype=np.int64, ndmin=1) if lines else np.zeros(0)
    except (ValueError, OverflowError) as error:
        raise DataError(f"{where}: {error}: it is damaged, get the archive again.") from error
    if flat.size != lines * width or text.count(b",") != lines * (width - 1):
        raise DataError(f"{where}: {flat.size} numbers in {lines} lines of {width}: it is damaged, get it again.")
    if width > 1 and any(line.count(b",") != width - 1 for line in text.splitlines()):
        raise DataError(f"{where}: a line does not have {width} numbers: it is damaged, get the archive again.")
    return flat.astype(np.int64).reshape(-1, width)


def _rows(text: bytes, where: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(text.decode("ascii")), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{where}: {error}: it is damaged, get the archive again.") from error


def _labels(text: bytes, where: str) -> NDArray[np.float32]:
    rows = [row or [""] for row in _rows(text, where)]  # with a single task, a missing label is an empty line
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise DataError(f"{where}: the lines do not have the same number of labels: it is damaged, get it again.")
    try:
        values = [[float(cell) if cell.strip() else float("nan") for cell in row] for row in rows]
    except ValueError as error:
        raise DataError(f"{where}: {error}: it is damaged, get the archive again.") from error
    with np.errstate(over="ignore"):  # an infinity is refused later
        return np.array(values).astype(np.float32)


def _mapping(text: bytes, tasks: int, where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Task names, the first columns, and SMILES, the column of that name."""
    rows = _rows(text, where)
    if not rows or "smiles" not in rows[0] or any(len(row) != len(rows[0]) for row in rows):
        raise DataError(f"{where}: has no column 'smiles' or lines of different length: get the archive again.")
    names = [name for name in rows[0] if name not in ("smiles", "mol_id")]
    column = rows[0].index("smiles")
    return tuple(names[:tasks]), tuple(row[column] for row in rows[1:])
