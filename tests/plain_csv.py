"""A graph's folder read in the plainest way: row by row, whole text in memory, no concern for speed or messages."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass
class PlainGraph:
    ids: list[str]
    labels: list[str]
    splits: list[str]
    x: NDArray[np.float32] | None
    edges: dict[tuple[int, int], np.float32 | None]


def read_plain(folder: Path, *, directed: bool = False) -> PlainGraph:
    """What the two CSV files say; ValueError where they do not say a graph."""
    header, rows = _table(folder / "nodes.csv", {"id", "label"}, {"split"})
    ids: list[str] = []
    labels, splits, features = [], [], []
    for row in rows:
        cells = dict(zip(header, row, strict=True))
        ids.append(_name(cells.pop("id")))
        labels.append(_name(cells.pop("label")))
        split = cells.pop("split", "").strip(" \t").lower()
        splits.append({"valid": "val", "validation": "val"}.get(split, split))
        features.append([_number(cell) for cell in cells.values()])
        _need(ids[-1] != "" and ids.count(ids[-1]) == 1)
        _need(splits[-1] in ("", "train", "val", "test"))
        _need(splits[-1] == "" or labels[-1] != "")
    _need(len(ids) > 0)
    x = np.array(features, np.float32) if features[0] else None
    edges: dict[tuple[int, int], np.float32 | None] = {}
    place = {node: number for number, node in enumerate(ids)}
    exact: dict[tuple[int, int], float | None] = {}
    header, rows = _table(folder / "edges.csv", {"source", "target"}, {"weight"}, only=True)
    for row in rows:
        cells = dict(zip(header, row, strict=True))
        ends = [place.get(cells[end].strip(" \t"), -1) for end in ("source", "target")]
        _need(min(ends) >= 0)
        weight = _number(cells["weight"]) if "weight" in cells else None
        _need(weight is None or float(weight) >= 0)
        written = float(cells["weight"]) if "weight" in cells else None
        for source, target in [ends] if directed else [ends, ends[::-1]]:
            _need(exact.setdefault((source, target), written) == written)
            edges[source, target] = weight
    return PlainGraph(ids, labels, splits, x, edges)


def _table(path: Path, needed: set[str], known: set[str], only: bool = False) -> tuple[list[str], list[list[str]]]:
    text = path.read_bytes().removeprefix(b"\xef\xbb\xbf").decode()
    try:
        table = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise ValueError from error
    table = [row for row in table if len(row) > 1 or (row and row[0].strip(" \t"))]
    _need(len(table) > 0)
    header = [name.strip(" \t") for name in table[0]]
    header = [name.lower() if name.lower() in needed | known else name for name in header]
    _need(all(header) and len(set(header)) == len(header) and needed <= set(header))
    _need(not only or set(header) <= needed | known)
    return header, table[1:]


def _name(cell: str) -> str:
    name = cell.strip(" \t")
    _need(len(name) <= 1000 and "\0" not in name)
    return name


def _number(cell: str) -> np.float32:
    cell = cell.strip(" \t")
    _need(cell.isascii() and "_" not in cell and not any(space in cell for space in "\n\r\v\f\x1c\x1d\x1e\x1f"))
    with np.errstate(over="ignore"):
        number = np.float32(float(cell))
    _need(bool(np.isfinite(number)))
    return number


def _need(condition: bool) -> None:
    if not condition:
        raise ValueError
