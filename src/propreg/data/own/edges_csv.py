"""``edges.csv``: one edge a line, by the ids of its nodes; and from its lines to ``edge_index``."""

import os
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from propreg.data.edges import split_keys, unique_sorted
from propreg.data.errors import DataError
from propreg.data.formats.csv import BOM, FLOAT32_END, check_width, chunks, header, is_blank, number, plain_numbers
from propreg.data.formats.files import open_regular

_KNOWN = ("source", "target", "weight")
_Columns = tuple[Sequence[int] | NDArray[np.int64], list[float], Sequence[int]]  # nodes, weights, line numbers

# Plain lines are unambiguous: ids as integers without leading zeros (01 is not the id 1), weights of digits, sign,
# point and exponent.
_BLOCK = 1 << 18
_PLAIN_ID = r"(?:0|[1-9][0-9]{0,17})"
_PLAIN_HEADER = re.compile(rb"[ \t]*source[ \t]*,[ \t]*target[ \t]*(,[ \t]*weight[ \t]*)?\r?\n", re.IGNORECASE)
_PLAIN_LINES = {
    weighted: re.compile(f"(?:{_PLAIN_ID},{_PLAIN_ID}{',[0-9+.eE-]+' * weighted}\n)++".encode())
    for weighted in (False, True)
}


@dataclass(frozen=True)
class EdgeLines:
    """The lines of an edge list: nodes [2, lines], and the weight and line number of each in a weighted list."""

    nodes: NDArray[np.int64]
    weight: NDArray[np.float64] | None
    line: NDArray[np.int64] | None


def read_edges(
    path: Path, ids: dict[str, int], *, fast: bool = True, columns: Mapping[str, str] | None = None
) -> EdgeLines:
    """Read the lines of ``edges.csv`` as they are.

    Args:
        path: The file. Its header names the columns ``source``, ``target`` and, if edges have weights, ``weight``.
        ids: Node id → node, in the order of the nodes.
        fast: Read plain lines of integers in blocks, by ``numpy.loadtxt``. The result is the same.
        columns: The file's names for the columns, where they are others.

    Returns:
        One entry per line.

    Raises:
        DataError: If a line is malformed; the message has its number.
    """
    with open_regular(path) as file:
        try:
            return edges_of(file, str(path), ids, fast=fast, columns=columns)
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}.") from error


def edges_of(
    file: BinaryIO, where: str, ids: dict[str, int], *, fast: bool = False, columns: Mapping[str, str] | None = None
) -> EdgeLines:
    """The lines in an open file, as :func:`read_edges`; ``fast`` needs a file on disk."""
    plain = PlainIds.of(list(ids)) if fast else None
    first = plain_lines(file, plain) if plain is not None else _NOTHING
    parts = chunks(file, where, first_line=first.lines + 1)
    names = list(_KNOWN if first.weighted else _KNOWN[:2]) if first.lines else _header(parts, where, columns)
    rest = _Table(names, ids, where)
    for lines, rows in parts:
        rest.add(lines, rows)
    return _joined(first, rest)


def merge_edges(
    lines: EdgeLines, num_nodes: int, *, directed: bool, where: str
) -> tuple[NDArray[np.int64], NDArray[np.float32] | None]:
    """Every edge source → target once, sorted by source, then target.

    Args:
        lines: The edge list.
        num_nodes: The number of nodes.
        directed: Take each line as one edge from source to target. Otherwise each line is an undirected edge
            and stands for both directions. A line that repeats an edge adds nothing.
        where: The file's name for error messages.

    Returns:
        ``edge_index`` [2, E], and the weights [E] of a weighted list.

    Example:
        >>> lines = EdgeLines(np.array([[0, 1, 2], [1, 0, 2]]), None, None)
        >>> merge_edges(lines, 3, directed=False, where="edges.csv")
        (array([[0, 1, 2], [1, 0, 2]]), None)
    """
    source, target = lines.nodes
    key = source * num_nodes + target
    if not directed:
        key = np.concatenate([key, target * num_nodes + source])
    if lines.weight is None or lines.line is None:
        return split_keys(unique_sorted(key), num_nodes), None
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.ones(len(key), bool)
    np.not_equal(key[1:], key[:-1], out=first[1:])
    entry = order % len(lines.weight)  # the line, whichever direction
    leader = entry[np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))]
    differs = np.flatnonzero(lines.weight[entry] != lines.weight[leader])
    if len(differs):
        pair = sorted((int(lines.line[entry[differs[0]]]), int(lines.line[leader[differs[0]]])))
        fix = "give the edge one weight" if directed else "give the edge one weight, or read it as directed"
        raise DataError(f"{where}, line {pair[1]}: repeats the edge of line {pair[0]} with another weight: {fix}.")
    return split_keys(key[first], num_nodes), lines.weight[entry[first]].astype(np.float32)


class PlainIds:
    """Node ids that are all plain integers, and the node of each."""

    def __init__(self, numbers: NDArray[np.int64]) -> None:
        self._table = None
        if (end := int(numbers.max()) + 1) < 8 * len(numbers) + 1024:  # looking up is ten times faster than searching
            self._table = np.full(end + 1, -1, np.int64)
            self._table[numbers] = np.arange(len(numbers))
        self._node = np.argsort(numbers, kind="stable")
        self._sorted = numbers[self._node]

    @classmethod
    def of(cls, ids: Sequence[str]) -> "PlainIds | None":
        """The table for ``ids``, or None if one of them is not written as a plain integer."""
        if not ids or not all(map(re.compile(_PLAIN_ID).fullmatch, ids)):
            return None
        return cls(np.fromiter(map(int, ids), np.int64, len(ids)))

    def nodes(self, numbers: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """The node of each id, or None if one is unknown."""
        if self._table is not None:
            found: NDArray[np.int64] = self._table[np.minimum(numbers, len(self._table) - 1)]
            return found if bool((found >= 0).all()) else None
        place = np.searchsorted(self._sorted, numbers)
        place[place == len(self._sorted)] = 0
        return self._node[place] if bool((self._sorted[place] == numbers).all()) else None


@dataclass(frozen=True)
class PlainLines:
    """Pairs of nodes [lines, 2], the weights of a weighted list, and the number of lines read.

    ``lines`` counts the header too; 0 means that nothing was read.
    """

    pairs: NDArray[np.int64]
    weights: NDArray[np.float64]
    lines: int
    weighted: bool


_NOTHING = PlainLines(np.zeros((0, 2), np.int64), np.zeros(0), 0, False)


def plain_lines(file: BinaryIO, ids: PlainIds) -> PlainLines:
    """Read plain lines from the start of an edge list, up to the first block in which a line is not plain.

    The rest is left to the exact reader, and so is a list in which a plain line is wrong: it writes the message.

    Args:
        file: The open file; left at the start of the first line that was not read.
        ids: The known nodes.

    Returns:
        The lines.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "edges.csv")
        ...     _ = path.write_text("source,target\\n7,3\\n3,3\\n")
        ...     with open(path, "rb") as file:
        ...         found = plain_lines(file, PlainIds.of(["3", "7"]))
        >>> found.pairs.tolist(), found.lines
        ([[1, 0], [0, 0]], 3)
    """
    start = file.tell()
    header = _PLAIN_HEADER.fullmatch(file.readline(256).removeprefix(BOM))
    weighted = header is not None and header[1] is not None
    count, end = 0, file.tell()
    while header is not None and (block := file.read(_BLOCK) + file.readline(_BLOCK)):
        block = block.replace(b"\r\n", b"\n") if b"\r" in block else block
        block += b"" if block.endswith(b"\n") else b"\n"
        if not _PLAIN_LINES[weighted].fullmatch(block):
            break
        count, end = count + block.count(b"\n"), file.tell()
    nodes, weights = _load(file.name, count, ids, weighted=weighted) if count else (None, np.zeros(0))
    file.seek(start if nodes is None else end)
    if nodes is None:
        return _NOTHING
    return PlainLines(nodes.reshape(-1, 2), weights, 1 + count, weighted)


def _load(
    path: str | os.PathLike[str], count: int, ids: PlainIds, *, weighted: bool
) -> tuple[NDArray[np.int64] | None, NDArray[np.float64]]:
    """Nodes and weights of the first ``count`` lines after the header; None for the nodes if a line is wrong."""
    columns = [("source", np.int64), ("target", np.int64), ("weight", np.float64)][: 2 + weighted]
    nothing: NDArray[np.float64] = np.zeros(0)
    try:  # from the path: of an open file, NumPy reads one line at a time, three times slower
        table = np.loadtxt(
            os.path.abspath(path), columns, comments=None, delimiter=",", skiprows=1, ndmin=1, max_rows=count
        )
    except ValueError:  # a weight like 1e or 0.5.5
        return None, nothing
    weights = table["weight"] if weighted else nothing
    if not ((weights >= 0) & (weights < FLOAT32_END)).all():
        return None, nothing
    return ids.nodes(np.stack([table["source"], table["target"]], axis=1).ravel()), weights


class _Table:
    """The columns as they grow, in compact arrays: 16 bytes per line, with a weight 32."""

    def __init__(self, names: list[str], ids: dict[str, int], where: str) -> None:
        self._names, self._ids, self._where = names, ids, where
        self._ends = (names.index("source"), names.index("target"))
        self._weight = names.index("weight") if "weight" in names else None
        self.nodes, self.weights, self.lines = array("q"), array("d"), array("q")

    def add(self, lines: Sequence[int], rows: list[list[str]]) -> None:
        """Add many lines at once if all are well-formed, else one by one to find the one that is not."""
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
            raise DataError(f"{where}: {column} is empty: write the id of a node, or delete the line.")
        if node not in self._ids:
            raise DataError(
                f"{where}: {column} {node[:80]!r} is not an id in nodes.csv: add the node there, or delete the edge."
            )
        return self._ids[node]

    @property
    def weighted(self) -> bool:
        return self._weight is not None


def _joined(first: PlainLines, rest: _Table) -> EdgeLines:
    pairs = np.concatenate([first.pairs, np.frombuffer(rest.nodes, np.int64).reshape(-1, 2)])
    if not rest.weighted:
        return EdgeLines(pairs.T, None, None)
    weights = np.concatenate([first.weights, np.frombuffer(rest.weights, np.float64)])
    lines = np.concatenate([np.arange(2, first.lines + 1), np.frombuffer(rest.lines, np.int64)])
    return EdgeLines(pairs.T, weights, lines)


def _header(
    parts: Iterator[tuple[Sequence[int], list[list[str]]]], where: str, columns: Mapping[str, str] | None
) -> list[str]:
    line, record = next(((lines[0], rows[0]) for lines, rows in parts if not is_blank(rows[0])), (0, []))
    if not record:
        raise DataError(f"{where}: is empty: its first line must be source,target or source,target,weight.")
    names = header(record, _KNOWN, f"{where}, line {line}", columns)
    for needed in ("source", "target"):
        if needed not in names:
            raise DataError(
                f"{where}, line {line}: has no column {needed!r} but {', '.join(map(repr, names))[:200]}: "
                "the first line must be source,target or source,target,weight, separated by commas, semicolons or "
                f"tabs; other names are given like --columns {needed}={names[0]:.40}, or in Python "
                f"load_graph(…, columns={{{needed!r}: {names[0]!r:.40}}})."
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
