"""Plain lines of ``integer,integer`` or ``integer,integer,number`` turned into edges a block at a time.

Only what cannot be misread is read here: digits without a leading zero, commas, line breaks, ids that are all known,
weights in the characters of a number. Anything else is left to the exact reader, which also knows how to complain.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from propreg.data._csv import BOM, FLOAT32_END

_BLOCK = 1 << 18
_PLAIN_ID = re.compile(r"0|[1-9][0-9]{0,17}")
_PLAIN_HEADER = re.compile(rb"[ \t]*source[ \t]*,[ \t]*target[ \t]*(,[ \t]*weight[ \t]*)?\r?\n", re.IGNORECASE)
_NUMBER_BYTES = b"0123456789+-.eE"


class PlainIds:
    """Node ids that are all plain integers, and the node each stands for."""

    def __init__(self, numbers: NDArray[np.int64]) -> None:
        self._node = np.argsort(numbers, kind="stable")
        self._sorted = numbers[self._node]

    @classmethod
    def of(cls, ids: Sequence[str]) -> "PlainIds | None":
        """The table for ``ids``, or None where one of them is not written as a plain integer."""
        if not ids or not all(map(_PLAIN_ID.fullmatch, ids)):
            return None
        return cls(np.fromiter(map(int, ids), np.int64, len(ids)))

    def nodes(self, numbers: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """The node of each id, or None where one is unknown."""
        place = np.searchsorted(self._sorted, numbers)
        place[place == len(self._sorted)] = 0
        return self._node[place] if bool((self._sorted[place] == numbers).all()) else None


@dataclass(frozen=True)
class PlainLines:
    """What was read: pairs of nodes [lines, 2] block by block, their weights if any, and how many lines in all.

    ``lines`` counts the header too; 0 means that the header itself is not plain.
    """

    pairs: list[NDArray[np.int64]]
    weights: list[NDArray[np.float64]]
    lines: int
    weighted: bool


def plain_lines(file: BinaryIO, ids: PlainIds) -> PlainLines:
    """Read plain lines from the start of an edge list, as far as they go.

    Args:
        file: The open file; left at the start of the first line that was not read.
        ids: The known nodes.

    Returns:
        The lines.

    Example:
        >>> import io
        >>> found = plain_lines(io.BytesIO(b"source,target\\n7,3\\n3,3\\n"), PlainIds.of(["3", "7"]))
        >>> found.pairs, found.lines
        ([array([[1, 0], [0, 0]])], 3)
    """
    start = file.tell()
    header = _PLAIN_HEADER.fullmatch(file.readline(256).removeprefix(BOM))
    if header is None:
        file.seek(start)
        return PlainLines([], [], 0, False)
    weighted = header[1] is not None
    pairs: list[NDArray[np.int64]] = []
    weights: list[NDArray[np.float64]] = []
    lines = 1
    while True:
        start = file.tell()
        parsed = _parse(file.read(_BLOCK) + file.readline(_BLOCK), ids, weighted)
        if parsed is None:
            file.seek(start)
            return PlainLines(pairs, weights, lines, weighted)
        pairs.append(parsed[0])
        weights.append(parsed[1])
        lines += len(parsed[0])


def _parse(block: bytes, ids: PlainIds, weighted: bool) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
    """Pairs of nodes and weights of the lines in ``block``, or None where any is not plain (or there is none)."""
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    if not block.endswith(b"\n"):
        block += b"\n"
    text = np.frombuffer(block, np.uint8)
    columns = 3 if weighted else 2
    marks = np.flatnonzero((text == 44) | (text == 10))
    if len(marks) % columns:
        return None
    ends = marks.reshape(-1, columns)
    starts = np.concatenate([np.zeros(1, np.int64), marks[:-1] + 1]).reshape(-1, columns)
    if bool((text[ends[:, :-1]] != 44).any() or (text[ends[:, -1]] != 10).any()):
        return None
    numbers = _integers(text, starts[:, :2].ravel(), ends[:, :2].ravel())
    nodes = None if numbers is None else ids.nodes(numbers)
    weights = _weights(block) if weighted else np.zeros(0)
    return None if nodes is None or weights is None else (nodes.reshape(-1, 2), weights)


def _integers(text: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64] | None:
    length = ends - starts
    if int(length.min()) < 1 or int(length.max()) > 18:
        return None
    value = np.zeros(len(ends), np.int64)
    for place in range(int(length.max())):  # from the left, each value as far as it is long
        here = length > place
        digit = text[starts[here] + place] - np.uint8(48)  # wraps round: what is no digit becomes large
        if bool((digit > 9).any()):
            return None
        if place == 0 and bool(((digit == 0) & (length > 1)).any()):  # 01 is another id than 1
            return None
        value[here] = value[here] * 10 + digit
    return value


def _weights(block: bytes) -> NDArray[np.float64] | None:
    fields = block.replace(b"\n", b",").split(b",")[2:-1:3]
    if b"".join(fields).translate(None, _NUMBER_BYTES):
        return None
    try:
        weights = np.fromiter(map(float, fields), np.float64, len(fields))
    except ValueError:
        return None
    return weights if bool(((weights >= 0) & (weights < FLOAT32_END)).all()) else None
