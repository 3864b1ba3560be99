"""Comma-separated text, record by record, with the line on which each record starts."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, islice
from typing import BinaryIO

from propreg.data.errors import DataError

BOM = b"\xef\xbb\xbf"
MAX_NAME = 1000
"""The most characters of an id or a label (an npz gives each id the room of the longest)."""

FLOAT32_END = 2.0**128 - 2.0**103  # from here on float32 rounds to infinity
_PLAIN = re.compile(r"[0-9+\-.eE, \t]*")
_BREAK = re.compile(r"\r\n|\r|\n")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


def records(file: BinaryIO, where: str) -> Iterator[tuple[int, list[str]]]:
    """The records from where ``file`` stands, each with the line where it starts; blank lines left out.

    Fields are separated by commas; one in double quotes may hold commas, line breaks and doubled quotes. Text
    is UTF-8, with or without a byte order mark; lines end in LF, CRLF or CR.

    Args:
        file: The open file.
        where: Its name for error messages.

    Yields:
        The line where the record starts, and its fields as they are in the text.

    Raises:
        DataError: If the text is no UTF-8 or no CSV.

    Example:
        >>> list(records(io.BytesIO(b'id,label\\r\\n"a, or\\nb",x\\n\\nc,y\\n'), "nodes.csv"))
        [(1, ['id', 'label']), (2, ['a, or\\nb', 'x']), (5, ['c', 'y'])]
    """
    for lines, rows in chunks(file, where, most=16):  # few: a row may have thousands of features
        for line, row in zip(lines, rows, strict=True):
            if not is_blank(row):
                yield line, row


def is_blank(row: list[str]) -> bool:
    """Whether the line holds nothing but spaces."""
    return len(row) < 2 and not "".join(row).strip(" \t")


def chunks(
    file: BinaryIO, where: str, *, first_line: int = 1, most: int = 4096
) -> Iterator[tuple[Sequence[int], list[list[str]]]]:
    """As :func:`records`, but many at a time and blank lines as they are.

    Args:
        file: The open file, at the start of a line.
        where: Its name for error messages.
        first_line: The number of that line.
        most: The most records at a time; the first that is not blank, the header, comes alone.

    Yields:
        The lines where the records start, and the records.

    Raises:
        DataError: If the text is no UTF-8 or no CSV; what stands before the bad place was yielded then.
    """
    start = file.tell()
    if file.read(3) != BOM or start:
        file.seek(start)
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    reader = csv.reader(text, strict=True)
    size, line, failure = 1, first_line, None
    try:
        while failure is None:
            rows: list[list[str]] = []
            try:
                rows.extend(islice(reader, size))  # keeps what came before a failure
            except (UnicodeDecodeError, csv.Error) as error:
                failure = error
            if not rows:
                break
            lines: Sequence[int] = range(line, line + len(rows))
            if first_line + reader.line_num != line + len(rows):
                lines = list(accumulate((_height(row) for row in rows[:-1]), initial=line))
            line = lines[-1] + _height(rows[-1])
            size = size if is_blank(rows[0]) else most
            yield lines, rows
    finally:
        with suppress(ValueError):  # the file may be closed by now
            text.detach()  # or the wrapper would close a file that is not its own
    if isinstance(failure, UnicodeDecodeError):
        file.seek(start)
        line = first_line - 1 + _undecodable_line(file)
        raise DataError(f"{where}, line {line}: is not UTF-8 text: save the file as UTF-8.") from failure
    if failure is not None:
        raise DataError(f"{where}, line {line}: is not CSV ({failure}): check the double quotes from there on.")


def _height(row: list[str]) -> int:
    """The number of lines that a record takes: line breaks in quotes are part of its fields."""
    return 1 + sum(len(_BREAK.findall(field)) for field in row)


def _undecodable_line(file: BinaryIO) -> int:
    """The number, from 1, of the first line that is no UTF-8."""
    count = 1
    for line in file:
        try:
            line.decode()
        except UnicodeDecodeError as error:
            return count + line[: error.start].count(b"\r")
        count += 1 + line.replace(b"\r\n", b"").count(b"\r")
    return count


def header(record: list[str], known: tuple[str, ...], where: str) -> list[str]:
    """Column names without the spaces around them, those in ``known`` in lower case whatever their case."""
    names = [name.strip(" \t") for name in record]
    names = [name.lower() if name.lower() in known else name for name in names]
    seen = set()
    for place, name in enumerate(names):
        if not name:
            raise DataError(f"{where}: column {place + 1} has no name: name it or take the column out.")
        if name in seen:
            raise DataError(f"{where}: two columns are named {name[:80]!r}: rename one or take it out.")
        seen.add(name)
    return names


def check_width(record: list[str], width: int, where: str) -> None:
    """Refuse a record that has not one value per column."""
    if len(record) != width:
        raise DataError(
            f"{where}: has {len(record)} values but the header has {width} columns: "
            "put values that hold commas in double quotes, and leave a value empty rather than out."
        )


def plain_numbers(fields: list[str]) -> list[float] | None:
    """The numbers that ``fields`` write, at speed; None where one of them needs :func:`number`'s eye.

    float() takes more than numbers as people write them (1_000, nan, digits of any script); of the characters
    admitted here it takes just what number() does, and numbers beyond float32.
    """
    if not _PLAIN.fullmatch(",".join(fields)):
        return None
    try:
        return list(map(float, fields))
    except ValueError:
        return None


def number(text: str, what: str, where: str) -> float:
    """The finite number that ``text`` writes in plain decimal or scientific form."""
    text = text.strip(" \t")
    if _NUMBER.fullmatch(text):
        value = float(text)
        if abs(value) < FLOAT32_END:
            return value
        raise DataError(f"{where}: {what} is {text[:40]}, too large for float32: rescale it.")
    if _NOT_FINITE.fullmatch(text):
        raise DataError(f"{where}: {what} is {text}: give a finite number (0 where nothing is known).")
    if not text:
        raise DataError(f"{where}: {what} is empty: give a number (0 where there is none).")
    raise DataError(f"{where}: {what} is {text[:40]!r}, not a number: write it like 0.5 or 1e-3.")


def name(text: str, what: str, where: str) -> str:
    """An id or a label, without the spaces around it."""
    text = text.strip(" \t")
    if "\0" in text:
        raise DataError(f"{where}: the {what} {text[:80]!r} holds a NUL character: save the file as UTF-8 text.")
    if len(text) > MAX_NAME:
        raise DataError(f"{where}: the {what} has {len(text)} characters: at most {MAX_NAME} are read.")
    return text
