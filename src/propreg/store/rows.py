"""A row of a finished run, as stores, exports and results hold it: its columns, its digest, and what it cannot be.

Split, seed, the outcome's columns (:attr:`propreg.store.run.Outcome.row`: eight, or ten where a run has a metric other
than accuracy or more than one report), batch. Where a row stands for itself, the text of its cell comes first.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from propreg.jsonio import LARGEST
from propreg.store.reports import ACCURACY, implausible_reports

Row = tuple[Any, ...]
DIGEST = 8
"""Bytes of a row's digest."""
# Damage can turn a text into bytes, which JSON does not know.
_encode = json.JSONEncoder(separators=(",", ":"), default=repr).encode
WIDTHS = (11, 13)
"""Columns of a row without its cell."""


def row_digest(row: Sequence[Any]) -> bytes:
    """Eight bytes of a row with its cell, so that a bit that flips in a file is seen and the run can be repaired.

    Example:
        >>> row_digest(["{}", 0, 1, 90, 100, 800, 1000, 12, 40, None, None, ""]).hex()
        '6c64c369cd23a7a8'
    """
    (digest,) = row_digests(row[0], [row[1:]])
    return digest


def row_digests(cell: object, rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """:func:`row_digest` of rows that share a cell: its text, which is the longest part of a row, is hashed once."""
    start = hashlib.sha256(_encode([cell])[:-1].encode())
    for row in rows:
        found = start.copy()
        found.update(f",{_encode(list(row))[1:]}".encode())
        yield found.digest()[:DIGEST]


def trimmed(row: Row) -> Row:
    """A row of all columns, as :attr:`propreg.store.run.Outcome.row` has them."""
    if row[-3:-1] == (ACCURACY, None):
        return (*row[:-3], row[-1])
    if row[-3] != ACCURACY:  # in a column of integers SQLite turns 2.0 into 2
        return tuple(float(v) if i in (3, 5) and type(v) is int else v for i, v in enumerate(row))
    return row


def implausible(row: Sequence[Any]) -> list[str]:
    """What cannot be of a run, in words; none where everything can. Stores, exports and imports are all checked by it.

    Args:
        row: The row without its cell.

    Example:
        >>> implausible([0, 1, 90, 100, 800, 1000, 12, 40, None, None, ""])
        []
        >>> implausible([0, 1, 101, 100, 800, 1000, 41, 40, None, None, ""])
        ['has more correct predictions than nodes', 'reports epoch 41 of 40']
    """
    metric, reports = row[10:12] if len(row) == WIDTHS[1] else (ACCURACY, None)
    numbers, (failed_at, measures), batch = row[:8], row[8:10], row[-1]
    counted = metric == ACCURACY
    whole = numbers if counted else [*row[:2], row[3], *row[5:8]]
    kinds = {*map(type, whole)} | ({int} if failed_at is None else {type(failed_at)})
    if kinds != {int} or not (counted or (_is_finite(row[2]) and _is_finite(row[4]))):  # True is no number either
        return ["has a value that is not a number"]
    val, val_of, test, test_of, epoch, epochs = numbers[2:]
    found = []
    if min(whole) < 0 or (failed_at or 0) < 0:
        found.append("has a number below 0")
    if max(whole) > LARGEST or (failed_at or 0) > LARGEST:
        found.append("has a number that is far too large")
    if counted and (val > val_of or test > test_of):
        found.append("has more correct predictions than nodes")
    if not (val_of and test_of):
        found.append("has no validation or no test nodes")
    if epoch > epochs:
        found.append(f"reports epoch {epoch} of {epochs}")
    if not _is_text(batch):
        found.append("has a batch name that is not text")
    if measures is not None and not (_is_text(measures) and _are_numbers(measures)):
        found.append("has measures that are not numbers by name")
    if not _is_text(metric):
        found.append("has an impossible metric")
    elif reports is not None and not _is_text(reports):
        found.append("has reports that cannot be read")
    elif reports is not None:
        found += implausible_reports(reports, (val, val_of), (test, test_of), epoch, epochs, metric)
    return found


def _is_text(value: object) -> bool:
    """Whether it is text that a file can hold: JSON can also name halves of characters."""
    return isinstance(value, str) and (value.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in value))


def _are_numbers(text: str) -> bool:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and all(_is_finite(v) for v in found.values())


def _is_finite(value: object) -> bool:
    """Whether it is a number that a float can be; an int can be larger."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max  # type: ignore[arg-type]
