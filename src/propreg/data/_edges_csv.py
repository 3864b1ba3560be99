"""``edges.csv``: one edge a line, by the ids of its nodes."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from propreg.data._csv import FLOAT32_END, check_width, chunks, header, is_blank, number, plain_numbers
from propreg.data._edges_fast import PlainIds, PlainLines, plain_lines
from propreg.data._npy import open_regular
from propreg.data.errors import DataError

_KNOWN = ("source", "target", "weight")
_Columns = tuple[Sequence[int] | NDArray[np.int64], list[float], Sequence[int]]  # nodes, weights, line numbers


@dataclass(frozen=True)
class EdgeLines:
    """The lines of an edge list: nodes [2, lines], and weight and line number where there are weights."""

    nodes: NDArray[np.int64]
    weight: NDArray[np.float64] | None
    line: NDArray[np.int64] | None


def read_edges(path: Path, ids: dict[str, int], *, fast: bool = True) -> EdgeLines:
    """Read the lines of ``edges.csv`` as they are.

    Args:
        path: The file. Its header names the columns ``source``, ``target`` and, where there are weights,
            ``weight``.
        ids: Node id → node, in the order of the nodes.
        fast: Read plain integer lines a block at a time. The result is the same.

    Returns:
        One entry per line.

    Raises:
        DataError: If a line is not as it should be; the message has its number.
    """
    with open_regular(path) as file:
        try:
            plain = PlainIds.of(list(ids)) if fast else None
            first = plain_lines(file, plain) if plain is not None else PlainLines([], [], 0, False)
            parts = chunks(file, str(path), first_line=first.lines + 1)
            names = list(_KNOWN if first.weighted else _KNOWN[:2]) if first.lines else _header(parts, str(path))
            rest = _Table(names, ids, str(path))
            for lines, rows in parts:
                rest.add(lines, rows)
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}.") from error
    return _joined(first, rest)


class _Table:
    """The columns as they grow, in compact arrays rather than lists: a line takes 16 bytes, with a weight 32."""

    def __init__(self, names: list[str], ids: dict[str, int], where: str) -> None:
        self._names, self._ids, self._where = names, ids, where
        self._ends = (names.index("source"), names.index("target"))
        self._weight = names.index("weight") if "weight" in names else None
        self.nodes, self.weights, self.lines = array("q"), array("d"), array("q")

    def add(self, lines: Sequence[int], rows: list[list[str]]) -> None:
        """Add many lines at once where all are in order, or else one by one to see which is not."""
        nodes, weights, kept = self._at_once(lines, rows) or self._one_by_one(lines, rows)
        self.nodes.frombytes(np.asarray(nodes, np.int64).tobytes())
        if self._weight is not None:
            self.weights.extend(weights)
            self.lines.extend(kept)

    def _at_once(self, lines: Sequence[int], rows: list[list[str]]) -> _Columns | None:
        if set(map(len, rows)) != {len(self._names)}:
            return None
        ends = chain.from_iterable(map(itemgetter(*self._ends), rows))
        try:
            nodes = np.fromiter(map(self._ids.__getitem__, ends), np.int64, 2 * len(rows))
        except KeyError:  # unknown, or with spaces around it
            return None
        if self._weight is None:
            return nodes, [], lines
        weights = plain_numbers([row[self._weight] for row in rows])
        if weights is None or min(weights) < 0 or max(weights) >= FLOAT32_END:
            return None
        return nodes, weights, lines

    def _one_by_one(self, lines: Sequence[int], rows: list[list[str]]) -> _Columns:
        nodes: list[int] = []
        weights: list[float] = []
        kept: list[int] = []
        for line, row in zip(lines, rows, strict=True):
            if is_blank(row):
                continue
            where = f"{self._where}, line {line}"
            check_width(row, len(self._names), where)
            nodes += [self._node(row[end], self._names[end], where) for end in self._ends]
            weights += [] if self._weight is None else [_weight(row[self._weight], where)]
            kept.append(line)
        return nodes, weights, kept

    def _node(self, text: str, column: str, where: str) -> int:
        node = text.strip(" \t")
        if not node:
            raise DataError(f"{where}: {column} is empty: write the id of a node, or take the line out.")
        if node not in self._ids:
            raise DataError(
                f"{where}: {column} {node[:80]!r} is not an id in nodes.csv: add the node there, or take the edge out."
            )
        return self._ids[node]

    @property
    def weighted(self) -> bool:
        return self._weight is not None


def _joined(first: PlainLines, rest: _Table) -> EdgeLines:
    pairs = np.concatenate([*first.pairs, np.frombuffer(rest.nodes, np.int64).reshape(-1, 2)])
    if not rest.weighted:
        return EdgeLines(pairs.T, None, None)
    weights = np.concatenate([*first.weights, np.frombuffer(rest.weights, np.float64)])
    lines = np.concatenate([np.arange(2, first.lines + 1), np.frombuffer(rest.lines, np.int64)])
    return EdgeLines(pairs.T, weights, lines)


def _header(parts: Iterator[tuple[Sequence[int], list[list[str]]]], where: str) -> list[str]:
    line, record = next(((lines[0], rows[0]) for lines, rows in parts if not is_blank(rows[0])), (0, []))
    if not record:
        raise DataError(f"{where}: is empty: its first line must be source,target or source,target,weight.")
    names = header(record, _KNOWN, f"{where}, line {line}")
    for needed in ("source", "target"):
        if needed not in names:
            raise DataError(
                f"{where}, line {line}: has no column {needed!r} but {', '.join(map(repr, names))[:200]}: "
                "the first line must be source,target or source,target,weight, separated by commas."
            )
    for name in names:
        if name not in _KNOWN:
            raise DataError(
                f"{where}, line {line}: column {name[:80]!r} is not known: only source, target and weight are "
                "read, take it out."
            )
    return names


def _weight(text: str, where: str) -> float:
    value = number(text, "weight", where)
    if value < 0:
        raise DataError(f"{where}: weight is {text.strip()[:40]}: weights must not be negative.")
    return value
