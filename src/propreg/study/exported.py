"""Runs as canonical text: sorted lines, no times, no host; the same runs are the same bytes.

The first line names the format; each further line is a cell with its runs, sorted::

    {"cell":{…},"runs":[[split,seed,val,val_of,test,test_of,epoch,epochs,failed_at,measures,batch],…]}

A file whose name ends in ``.gz`` is compressed, without a name or a time inside.
"""

import gzip
import itertools
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from propreg.data._atomic import atomic_write
from propreg.study.errors import StudyError
from propreg.study.plausible import implausible
from propreg.study.store import Row

FORMAT, VERSION = "propreg runs", 1
COLUMNS = 11
HEAD = json.dumps({"format": FORMAT}, separators=(",", ":"))[:-1].encode()
"""How every export begins, of whatever version."""
_CELL, _RUNS = '{"cell":', ',"runs":'
_MEND = "export it again, or take a copy"


def to_lines(rows: Iterable[Row]) -> Iterator[str]:
    """The text of sorted rows (those of :meth:`propreg.study.store.Store.rows`), line by line."""
    yield json.dumps({"format": FORMAT, "version": VERSION}, separators=(",", ":")) + "\n"
    for cell, members in itertools.groupby(rows, key=lambda row: row[0]):
        runs = json.dumps([row[1:] for row in members], separators=(",", ":"))
        yield f"{_CELL}{cell}{_RUNS}{runs}}}\n"


def write_export(path: Path, rows: Iterable[Row]) -> None:
    """Write rows to a file, whole or not at all."""
    with atomic_write(path) as file:
        if path.suffix == ".gz":
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=9, mtime=0) as packed:
                for line in to_lines(rows):
                    packed.write(line.encode())
        else:
            for line in to_lines(rows):
                file.write(line.encode())


def read_export(path: Path) -> Iterator[tuple[dict[str, Any], list[list[Any]]]]:
    """The cells of an export, each as parsed JSON with its rows.

    Raises:
        StudyError: If the file is not an export, damaged, or of a newer format.
    """
    for cell, runs in read_texts(path):
        yield parsed(cell, path), rows_of(runs, path)


def parsed(text: str, path: Path) -> Any:
    """A part of a line as JSON.

    Raises:
        StudyError: If it is none.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers too long and brackets too deep
        raise damaged(path) from error


def canonical(text: str, path: Path) -> str:
    """The text of a cell without spaces, which an export of another program may have.

    Raises:
        StudyError: If it is no JSON.
    """
    try:
        return json.dumps(parsed(text, path), separators=(",", ":"))
    except RecursionError as error:
        raise damaged(path) from error


def rows_of(text: str, path: Path) -> list[list[Any]]:
    """The runs of a line.

    Raises:
        StudyError: If they are none, or their numbers cannot be.
    """
    rows = parsed(text, path)
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == COLUMNS for row in rows):
        raise damaged(path)
    check_rows(rows, path)
    return rows


def check_rows(rows: Iterable[Sequence[Any]], path: Path, mend: str = _MEND) -> None:
    """Refuse rows (split, seed, the outcome's columns, batch) whose numbers cannot be: no mean of them says anything.

    Raises:
        StudyError: If there is one.
    """
    for row in rows:
        if wrong := implausible(row):
            who = f"the run of split {str(row[0])[:9]}, seed {str(row[1])[:9]}"
            raise StudyError(f"{path} is damaged, {who}, {' and '.join(wrong)}: {mend}.")


def read_texts(path: Path) -> Iterator[tuple[str, str]]:
    """The cells of an export and their rows as text: a table needs a few of them, and parsing takes most of its time.

    Raises:
        StudyError: As :func:`read_export`, but for what only parsing can tell.
    """
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise StudyError(f"{path} cannot be read as exported runs ({_why(error)}): name another file.") from error
    lines = text.splitlines()
    head = parsed(lines[0], path) if lines else None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise StudyError(f"{path} does not hold exported runs: its first line should name the format.")
    version = head.get("version")
    if type(version) is not int:
        raise damaged(path)
    if version > VERSION:
        raise StudyError(
            f"{path} has format version {version}, this propreg knows versions up to {VERSION}: "
            "install the newer propreg that wrote it."
        )
    for line in lines[1:]:
        runs = line.find(_RUNS)
        if not line.startswith(_CELL) or runs < 0 or not line.endswith("}"):
            raise damaged(path)
        yield line[len(_CELL) : runs], line[runs + len(_RUNS) : -1]


def damaged(path: Path) -> StudyError:
    """The error for a line that cannot be read."""
    return StudyError(f"{path} is damaged, a line is not what an export has: {_MEND}.")


def _why(error: Exception) -> str:
    """What is wrong with a file, in few words: the bytes of a wrong file say nothing to people."""
    if isinstance(error, UnicodeDecodeError):
        return "it is no text"
    return str(error.strerror or error) if isinstance(error, OSError) and error.strerror else str(error)
