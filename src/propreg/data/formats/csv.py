"""Text separated by commas, semicolons or tabs, record by record, with the number of the line of each record."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, islice
from typing import BinaryIO

from propreg.data.errors import DataError

BOM = b"\xef\xbb\xbf"
MAX_NAME = 1000
"""The most characters of an id or a label (in an npz, each id takes the space of the longest)."""

_LONGEST_HEADER = 1 << 20
FLOAT32_END = 2.0**128 - 2.0**103  # from here on float32 rounds to infinity
_PLAIN = re.compile(r"[0-9+\-.eE, \t]*")
_BREAK = re.compile(r"\r\n|\r|\n")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


def records(file: BinaryIO, where: str) -> Iterator[tuple[int, list[str]]]:
    """The records from the current place of ``file`` on, each with the number of its line, without blank lines.

    Fields are separated by commas, or by semicolons or tabs where the first line has more of them; one in double
    quotes may hold separators, line breaks and doubled quotes. Text is UTF-8, with or without a byte order mark; lines
    end in LF, CRLF or CR.

    Args:
        file: The open file.
        where: Its name for error messages.

    Yields:
        The number of the record's first line, and its fields as written.

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
    """As :func:`records`, many at a time and with blank lines.

    Args:
        file: The open file, at the start of a line.
        where: Its name for error messages.
        first_line: The number of that line.
        most: The most records at a time; the header, the first that is not blank, is yielded alone.

    Yields:
        The numbers of the records' first lines, and the records.
    """
    start = file.tell()
    if file.read(3) != BOM or start:
        file.seek(start)
    between = "," if start else _separator(file)
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    reader = csv.reader(text, strict=True, delimiter=between)
    size, line, failure = 1, first_line, None
    try:
        while failure is None:
            rows: list[list[str]] = []
            try:
                rows.extend(islice(reader, size))  # keeps the records before a failure
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
            text.detach()  # or the wrapper would close the caller's file
    if isinstance(failure, UnicodeDecodeError):
        file.seek(start)
        line = first_line - 1 + _undecodable_line(file)
        raise DataError(f"{where}, line {line}: is not UTF-8 text: save the file as UTF-8.") from failure
    if failure is not None:
        raise DataError(f"{where}, line {line}: is not CSV ({failure}): check the double quotes from there on.")


def _separator(file: BinaryIO) -> str:
    """The separator of which the first line has most, outside of quotes; the file is left where it was."""
    start, line = file.tell(), b""
    while not line.strip() and (line := file.readline(_LONGEST_HEADER)):
        pass
    file.seek(start)
    bare = re.sub(rb'"[^"]*"', b"", line)
    return max(",;\t", key=lambda each: bare.count(each.encode()))  # the comma, of equally many


def _height(row: list[str]) -> int:
    """The number of lines of a record: quoted fields may hold line breaks."""
    return 1 + sum(len(_BREAK.findall(field)) for field in row)


def _undecodable_line(file: BinaryIO) -> int:
    """The number, from 1, of the first line that is not UTF-8."""
    count = 1
    for line in file:
        try:
            line.decode()
        except UnicodeDecodeError as error:
            return count + line[: error.start].count(b"\r")
        count += 1 + line.replace(b"\r\n", b"").count(b"\r")
    return count


def header(
    record: list[str], known: tuple[str, ...], where: str, columns: Mapping[str, str] | None = None
) -> list[str]:
    """Column names without spaces around them; names in ``known`` in lower case.

    ``columns`` has the file's own names for some of the known ones.
    """
    names = [name.strip(" \t") for name in record]
    names = [name.lower() if name.lower() in known else name for name in names]
    for ours, theirs in (columns or {}).items():
        if ours not in known or ours == theirs:
            continue
        if theirs not in names:
            have = ", ".join(map(repr, names))[:200]
            raise DataError(f"{where}: has no column {theirs!r:.80}, which columns names for {ours}, but {have}.")
        if ours in names:
            raise DataError(f"{where}: columns names {theirs!r:.80} for {ours}, but there is a column {ours!r}, too.")
        names[names.index(theirs)] = ours
    seen = set()
    for place, name in enumerate(names):
        if not name:
            raise DataError(f"{where}: column {place + 1} has no name: name it or delete the column.")
        if name in seen:
            raise DataError(f"{where}: two columns are named {name[:80]!r}: rename or delete one.")
        seen.add(name)
    return names


def check_width(record: list[str], width: int, where: str) -> None:
    """Raise unless the record has one value per column."""
    if len(record) != width:
        raise DataError(
            f"{where}: has {len(record)} values but the header has {width} columns: "
            "put values that hold a separator in double quotes, and leave a value empty rather than out."
        )


def plain_numbers(fields: list[str]) -> list[float] | None:
    """The numbers in ``fields``, or None if one of them has to be read by :func:`number`, which is slower.

    float() accepts more than plain numbers (1_000, nan, digits of any script). Of the characters admitted here it
    accepts exactly what number() does, and numbers beyond float32.
    """
    if not _PLAIN.fullmatch(",".join(fields)):
        return None
    try:
        return list(map(float, fields))
    except ValueError:
        return None


def number(text: str, what: str, where: str) -> float:
    """The finite number in ``text``, in plain decimal or scientific form."""
    text = text.strip(" \t")
    if _NUMBER.fullmatch(text):
        value = float(text)
        if abs(value) < FLOAT32_END:
            return value
        raise DataError(f"{where}: {what} is {text[:40]}, too large for float32: rescale it.")
    if _NOT_FINITE.fullmatch(text):
        raise DataError(f"{where}: {what} is {text}: give a finite number (0 for unknown).")
    if not text:
        raise DataError(f"{where}: {what} is empty: give a number (0 for none).")
    raise DataError(f"{where}: {what} is {text[:40]!r}, not a number: write it like 0.5 or 1e-3.")


def name(text: str, what: str, where: str) -> str:
    """An id or a label, without spaces around it."""
    text = text.strip(" \t")
    if "\0" in text:
        raise DataError(f"{where}: the {what} {text[:80]!r} holds a NUL character: save the file as UTF-8 text.")
    if len(text) > MAX_NAME:
        raise DataError(f"{where}: the {what} has {len(text)} characters: at most {MAX_NAME} are read.")
    return text
