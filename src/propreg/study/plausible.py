"""Whether the numbers of a run can be: what is stored, exported and taken in is looked at in the same way."""

import json
import sys
from collections.abc import Sequence
from typing import Any

LARGEST = 2**53
"""Beyond it whole numbers are not exact in every program that reads them."""


def implausible(row: Sequence[Any]) -> list[str]:
    """What cannot be of a run, in words; none where all can.

    Args:
        row: Split, seed, the eight columns of the outcome, batch.

    Example:
        >>> implausible([0, 1, 90, 100, 800, 1000, 12, 40, None, None, ""])
        []
        >>> implausible([0, 1, 101, 100, 800, 1000, 41, 40, None, None, ""])
        ['has more nodes right than there are', 'reports epoch 41 of 40']
    """
    numbers, (failed_at, measures, batch) = row[:8], row[8:]
    if {*map(type, numbers)} != {int} or (failed_at is not None and type(failed_at) is not int):  # True is none either
        return ["has something for a number that is none"]
    val, val_of, test, test_of, epoch, epochs = numbers[2:]
    found = []
    if min(numbers) < 0 or (failed_at or 0) < 0:
        found.append("has a number below 0")
    if max(numbers) > LARGEST or (failed_at or 0) > LARGEST:
        found.append("has a number far too large")
    if val > val_of or test > test_of:
        found.append("has more nodes right than there are")
    if not (val_of and test_of):
        found.append("has no validation or no test nodes")
    if epoch > epochs:
        found.append(f"reports epoch {epoch} of {epochs}")
    if not _is_text(batch):
        found.append("has something for its batch that is no text")
    if measures is not None and not (_is_text(measures) and _are_measures(measures)):
        found.append("has measures that are not numbers by name")
    return found


def _is_text(value: object) -> bool:
    """Whether it is text that a file can hold: JSON can name halves of characters, too."""
    return isinstance(value, str) and (value.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in value))


def _are_measures(text: str) -> bool:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and all(_is_finite(v) for v in found.values())


def _is_finite(value: object) -> bool:
    """Whether it is a number that a float can be; whole numbers can be larger."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max  # type: ignore[arg-type]
