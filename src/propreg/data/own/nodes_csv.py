"""``nodes.csv``: one node a line, with its id, label, split and features."""

import re
import sys
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from propreg.data.errors import DataError
from propreg.data.formats.csv import check_width, header, name, number, plain_numbers, records
from propreg.data.formats.files import open_regular
from propreg.data.graph import MASKS, Split

_KNOWN = ("id", "label", "split")
_SPLITS = {"": 0, "train": 1, "val": 2, "valid": 2, "validation": 2, "test": 3}
_INTEGER = re.compile(r"[+-]?[0-9]{1,300}")


@dataclass(frozen=True)
class Nodes:
    """The nodes in the order of their lines; ``x`` is None if the file has no feature columns."""

    ids: dict[str, int]
    y: NDArray[np.int64]
    class_names: tuple[str, ...]
    split: Split | None
    x: NDArray[np.float32] | None
    feature_names: tuple[str, ...]


def read_nodes(path: Path, *, labeled: bool = True, columns: Mapping[str, str] | None = None) -> Nodes:
    """Read ``nodes.csv``.

    Args:
        path: The file. Its header names the columns: ``id``, ``label``, perhaps ``split``; all others are features.
        labeled: Refuse a file without a column ``label``; else its nodes have none.
        columns: The file's names for ``id``, ``label`` and ``split``, where they are others.

    Returns:
        The nodes.

    Raises:
        DataError: If a line is malformed; the message has its number.
    """
    with open_regular(path) as file:
        try:
            return nodes_of(file, str(path), labeled=labeled, columns=columns)
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}.") from error


def nodes_of(file: BinaryIO, where: str, *, labeled: bool = True, columns: Mapping[str, str] | None = None) -> Nodes:
    """The nodes in an open file, as :func:`read_nodes`."""
    rows = records(file, where)
    table = _Table(_header(next(rows, None), where, labeled, columns))
    for line, row in rows:
        table.add(line, row, f"{where}, line {line}")
    return table.nodes(where)


class _Table:
    """The columns as they grow; numbers in compact arrays."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._id = names.index("id")
        self._label = names.index("label") if "label" in names else None
        self._split = names.index("split") if "split" in names else None
        self._features = [place for place, column in enumerate(names) if column not in _KNOWN]
        self._ids: dict[str, int] = {}
        self._labels: list[str] = []
        self._lines, self._splits, self._values = array("q"), bytearray(), array("f")

    def add(self, line: int, row: list[str], where: str) -> None:
        check_width(row, len(self._names), where)
        node = name(row[self._id], "id", where)
        label = "" if self._label is None else name(row[self._label], "label", where)
        if not node:
            raise DataError(f"{where}: id is empty: give every node an id of its own.")
        before = self._ids.setdefault(node, len(self._ids))
        if before != len(self._lines):
            raise DataError(
                f"{where}: id {node[:80]!r} is also in line {self._lines[before]}: give every node an id of its own."
            )
        if self._split is not None:
            self._splits.append(part := _split(row[self._split], where))
            if part and not label:
                raise DataError(
                    f"{where}: node {node[:80]!r} is in {row[self._split].strip()} but has no label: "
                    "write its label, or leave its split empty."
                )
        self._lines.append(line)
        self._labels.append(sys.intern(label))  # a class is one string, not one per node
        if self._features:
            self._values.extend(self._numbers(row, where))

    def _numbers(self, row: list[str], where: str) -> list[float]:
        fields = [row[place] for place in self._features]
        plain = plain_numbers(fields)
        if plain is not None:
            return plain
        return [number(row[place], f"feature {self._names[place]!r}", where) for place in self._features]

    def nodes(self, where: str) -> Nodes:
        if not self._ids:
            raise DataError(f"{where}: has a header but no nodes: add a line for each node.")
        y, class_names = _classes(self._labels)
        feature_names = tuple(self._names[place] for place in self._features)
        return Nodes(self._ids, y, class_names, _masks(self._splits), self._matrix(where), feature_names)

    def _matrix(self, where: str) -> NDArray[np.float32] | None:
        if not self._features:
            return None
        x = np.frombuffer(self._values, np.float32).reshape(len(self._ids), len(self._features))
        wrong = np.flatnonzero(~np.isfinite(x))
        if len(wrong):
            node, column = divmod(int(wrong[0]), len(self._features))
            raise DataError(
                f"{where}, line {self._lines[node]}: feature {self._names[self._features[column]]!r} "
                "is too large for float32: rescale it."
            )
        return x


def _header(
    first: tuple[int, list[str]] | None, where: str, labeled: bool, columns: Mapping[str, str] | None
) -> list[str]:
    if first is None:
        raise DataError(f"{where}: is empty: its first line must be id,label,split and the features' names.")
    line, record = first
    names = header(record, _KNOWN, f"{where}, line {line}", columns)
    for needed in ("id", "label") if labeled else ("id",):
        if needed not in names:
            raise DataError(
                f"{where}, line {line}: has no column {needed!r} but {', '.join(map(repr, names))[:200]}: the first "
                "line must be id,label,split and the features' names, separated by commas, semicolons or tabs; other "
                f"names are given like --columns {needed}={names[0]:.40}, or in Python "
                f"load_graph(…, columns={{{needed!r}: {names[0]!r:.40}}})."
            )
    masks = [name for name in names if name.strip().lower() in MASKS]
    if masks:
        raise DataError(
            f"{where}, line {line}: column {masks[0]!r} looks like a mask, and would be read as a feature: write one "
            "column split with train, val or test in it, or rename the column."
        )
    return names


def _split(text: str, where: str) -> int:
    part = _SPLITS.get(text.strip(" \t").lower())
    if part is None:
        raise DataError(f"{where}: split is {text.strip()[:40]!r}: write train, val, test or nothing.")
    return part


def _classes(labels: list[str]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Labels as numbers, in numerical order if all are integers, else in alphabetical order."""
    found = set(labels) - {""}
    if all(map(_INTEGER.fullmatch, found)):
        ordered = sorted(found, key=lambda text: (int(text), text))
    else:
        ordered = sorted(found)
    place = {text: number for number, text in enumerate(ordered)} | {"": -1}
    return np.fromiter((place[text] for text in labels), np.int64, len(labels)), tuple(ordered)


def _masks(splits: bytearray) -> Split | None:
    codes = np.frombuffer(splits, np.uint8)
    return Split(codes == 1, codes == 2, codes == 3) if codes.any() else None
