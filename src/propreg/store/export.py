"""Exports: runs as canonical text, sorted lines without times or host; the same runs are the same bytes.

The first line names the format and its version; each further line is a cell with its rows (see
:mod:`propreg.store.rows`), sorted, and their digests, eight bytes a row, in base64; the last line counts the runs and
has the SHA-256 of all lines before it::

    {"format":"propreg runs","version":3}
    {"cell":{…},"runs":[[split,seed,val,val_of,test,test_of,epoch,epochs,failed_at,measures,batch],…],"digests":"…"}
    {"runs":136410,"sha256":"…"}

A file whose name ends in ``.gz`` is compressed, without a name or a time inside. The file beside it says who trained
the runs.
"""

import base64
import gzip
import hashlib
import itertools
import json
import shlex
import zlib
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from propreg.data.formats.files import read_bytes
from propreg.jsonio import atomic_write, parse
from propreg.store.errors import StudyError
from propreg.store.rows import DIGEST, WIDTHS, Row, implausible, row_digests
from propreg.store.run import RunId

FORMAT, VERSION = "propreg runs", 3
ENDS = (".jsonl.gz", ".jsonl")
BESIDE = ".provenance.json"
MOST_BYTES = 1 << 30
"""A hundred times the study's record; a small compressed file can become larger than memory."""
MOST_NOTES = 64 << 20
"""Of the file beside an export, of which the study's has 20 kB."""
_HEAD = json.dumps({"format": FORMAT}, separators=(",", ":"))[:-1].encode()
"""How every export begins, of whatever version."""
_CELL, _RUNS, _DIGESTS = '{"cell":', ',"runs":', ',"digests":"'
_MEND = "export it again, or take a copy"
_OTHER = "name another file, for example runs.jsonl.gz"


class CellText(NamedTuple):
    """A line of an export as text: the cell, its rows, and their digests."""

    cell: str
    runs: str
    digests: str


def to_lines(rows: Iterable[Row]) -> Iterator[str]:
    """The text of sorted rows (those of :meth:`propreg.store.store.Store.rows`), line by line."""
    found, count = hashlib.sha256(), 0
    for line, members in _lines(rows):
        found.update(line.encode())
        count += members
        yield line
    yield json.dumps({"runs": count, "sha256": found.hexdigest()}, separators=(",", ":")) + "\n"


def _lines(rows: Iterable[Row]) -> Iterator[tuple[str, int]]:
    """Each line but the last, with the number of its runs."""
    yield json.dumps({"format": FORMAT, "version": VERSION}, separators=(",", ":")) + "\n", 0
    for cell, members in itertools.groupby(rows, key=lambda row: row[0]):
        runs = [row[1:] for row in members]
        digests = base64.b64encode(b"".join(row_digests(cell, runs))).decode()
        yield f'{_CELL}{cell}{_RUNS}{json.dumps(runs, separators=(",", ":"))}{_DIGESTS}{digests}"}}\n', len(runs)


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
    for text in read_texts(path):
        yield parsed(text.cell, path), rows_of(text, path)


def parsed(text: str, path: Path) -> Any:
    """A part of a line as JSON.

    Raises:
        StudyError: If it is not JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers too long and brackets too deep
        raise damaged(path) from error


def without_spaces(text: str, path: Path) -> str:
    """The text of a cell as we write it: an export of another program may have spaces in it.

    Raises:
        StudyError: If it is not JSON.
    """
    try:
        return json.dumps(parsed(text, path), separators=(",", ":"))
    except RecursionError as error:
        raise damaged(path) from error


def rows_of(text: CellText, path: Path) -> list[list[Any]]:
    """The rows of a line.

    Raises:
        StudyError: If it holds something else, a row's numbers cannot be, or it does not match its digest.
    """
    rows = unchecked_rows(text, path)
    check_rows(text.cell, rows, digests_of(text, path), path)
    return rows


def unchecked_rows(text: CellText, path: Path) -> list[list[Any]]:
    """The rows of a line, whatever numbers are in them."""
    rows = parsed(text.runs, path)
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) in WIDTHS for row in rows):
        raise damaged(path)
    return rows


def digests_of(text: CellText, path: Path) -> list[bytes]:
    """The digests of a line's rows."""
    try:
        raw = base64.b64decode(text.digests, validate=True)
    except ValueError as error:
        raise damaged(path) from error
    return [raw[at : at + DIGEST] for at in range(0, len(raw), DIGEST)]


def check_rows(
    cell: str,
    rows: Sequence[Sequence[Any]],
    digests: Sequence[bytes | None],
    path: Path,
    mend: str = _MEND,
) -> None:
    """Refuse rows that changed since they were written, or whose numbers cannot be: a mean of them would mean nothing.

    Args:
        cell: The text of their cell.
        rows: The rows, without it.
        digests: The digest of each; None where it is missing.
        path: Where they come from.
        mend: The fix.

    Raises:
        StudyError: If there is one.
    """
    if len(digests) != len(rows):
        raise damaged(path)
    for row, digest, found in zip(rows, digests, row_digests(cell, rows), strict=True):
        wrong = implausible(row)
        if digest != found:
            wrong = ["was changed after it was stored", *wrong]
        if wrong:
            who = f"the run of split {str(row[0])[:9]}, seed {str(row[1])[:9]}"
            raise StudyError(f"{path} is damaged, {who}, {' and '.join(wrong)}: {mend}.")


def read_texts(path: Path) -> Iterator[CellText]:
    """The cells of an export and their rows as text: a table needs few of them, and parsing takes most of the time.

    Raises:
        StudyError: As :func:`read_export`, but for what only parsing can find.
    """
    raw = _content(path)
    try:
        lines = raw.decode().splitlines()
    except UnicodeDecodeError as error:
        raise _unreadable(path, error) from error
    _check_version(lines[0] if lines else None, path)
    _check_whole(raw, lines.pop(), path)
    for line in lines[1:]:
        yield _split(line, path)


def readable_texts(path: Path) -> Iterator[CellText]:
    """What is left of the cells of a damaged export."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    if raw[:2] == b"\x1f\x8b":
        raw = b"".join(_inflated(raw))
    for line in raw.decode(errors="replace").splitlines():
        with suppress(StudyError):
            yield _split(line, path)


def _inflated(raw: bytes) -> Iterator[bytes]:
    """What can be read of compressed data, up to where it is damaged or too much."""
    unpacker, left = zlib.decompressobj(wbits=31), MOST_BYTES
    with suppress(zlib.error):
        for at in range(0, len(raw), 1024):
            part = unpacker.decompress(raw[at : at + 1024])
            left -= len(part)
            if left < 0:
                return
            yield part


def _split(line: str, path: Path) -> CellText:
    """A line of a cell as its parts."""
    runs, end = line.find(_RUNS), line.rfind(_DIGESTS)
    if not line.startswith(_CELL) or not 0 <= runs < end or not line.endswith('"}'):
        raise damaged(path)
    return CellText(line[len(_CELL) : runs], line[runs + len(_RUNS) : end], line[end + len(_DIGESTS) : -2])


def _check_whole(raw: bytes, last: str, path: Path) -> None:
    """Refuse a file that is not, byte by byte, what was exported."""
    body = raw[: raw.rfind(b"\n", 0, -1) + 1]
    try:
        noted = json.loads(last)["sha256"] if raw.endswith(b"\n") else None
    except (ValueError, RecursionError, TypeError, KeyError):
        noted = None
    if noted != hashlib.sha256(body).hexdigest():
        raise StudyError(
            f"{path} is damaged, its SHA-256 is not that of its content: {_MEND}; propreg store salvage "
            f"{shlex.quote(str(path))} --store NEW keeps the runs that match their digests."
        )


def _content(path: Path) -> bytes:
    """The bytes of an export, uncompressed."""
    try:
        with path.open("rb") as file, gzip.open(file) if file.peek(2)[:2] == b"\x1f\x8b" else file as lines:
            raw = lines.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from error
    if len(raw) > MOST_BYTES:
        raise StudyError(f"{path} has more than {MOST_BYTES >> 20:,} MiB of text: no export is so large.")
    return raw


def _unreadable(path: Path, error: Exception) -> StudyError:
    return StudyError(f"{path} cannot be read as exported runs ({_why(error)}): name another file.")


def _check_version(first: str | None, path: Path) -> None:
    """Refuse a file whose first line does not name the format and its version."""
    head = None if first is None else parsed(first, path)
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise StudyError(f"{path} does not hold exported runs: its first line should name the format.")
    version = head.get("version")
    if type(version) is not int or version < VERSION:
        raise damaged(path)
    if version > VERSION:
        raise StudyError(
            f"{path} has format version {version}, this propreg knows versions up to {VERSION}: "
            "install the newer propreg that wrote it."
        )


def damaged(path: Path) -> StudyError:
    """The error for a line that cannot be read."""
    return StudyError(f"{path} is damaged, a line is not an exported run: {_MEND}.")


def sidecar(path: Path) -> Path:
    """The file beside an export that says who trained its runs, where and with what.

    Example:
        >>> sidecar(Path("results/runs.jsonl.gz")).as_posix(), sidecar(Path("runs.a.jsonl")).as_posix()
        ('results/runs.provenance.json', 'runs.a.provenance.json')
    """
    end = next((end for end in ENDS if path.name.endswith(end)), "")
    return path.with_name(path.name.removesuffix(end) + BESIDE)


def read_sidecar(path: Path) -> list[dict[str, Any]]:
    """The notes of who trained the runs of an export; none if they cannot be read: runs are worth having without."""
    try:
        found = parse(read_bytes(sidecar(path), MOST_NOTES))
    except (ValueError, RecursionError):
        return []
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def export_files(folder: Path) -> list[Path]:
    """The exports in a folder, sorted; hidden files are half-written ones, or a system's notes about them."""
    return sorted(file for file in folder.glob("*.jsonl*") if file.name.endswith(ENDS) and file.name[0] != ".")


def record_files(path: Path) -> list[Path]:
    """The files of a record: the exports in a folder, or the file itself."""
    return export_files(path) if path.is_dir() else [path]


def check_target(file: Path, store: Path) -> None:
    """Refuse, before any work is done, to write an export over anything but an export.

    Args:
        file: Where the runs would go.
        store: The store that they come from.

    Raises:
        StudyError: If it is the store, a folder, or a file that is no export; or if the file beside it is none of ours.
    """
    if file.is_dir():
        raise StudyError(f"{file} is a folder: name a file in it, for example {file / 'runs.jsonl.gz'}.")
    if file.name.endswith(BESIDE):
        raise StudyError(f"{file} is the name of a provenance file, which lies beside an export: {_OTHER}.")
    if file.exists() and store.exists() and file.samefile(store):
        raise StudyError(f"{file} is the store itself: {_OTHER}.")
    beside = sidecar(file)
    for other in (file.with_name(beside.name.removesuffix(BESIDE) + end) for end in ENDS):
        if other.name != file.name and other.exists():
            raise StudyError(
                f"{other} has its provenance in {beside}, where the provenance of {file} would go: {_OTHER}."
            )
    for target, is_ours in ((file, _is_export), (beside, _is_sidecar)):
        if target.exists() and not (target.is_file() and is_ours(target)):
            what = "" if target == file else f", and the provenance of {file} would be written there"
            raise StudyError(f"{target} was not written by propreg store export and stays{what}: {_OTHER}.")


def check_kept(file: Path, kept: Set[RunId]) -> None:
    """Refuse to write over an export with runs that the new one would lack.

    Args:
        file: Where the runs would go.
        kept: The runs that would be in it.

    Raises:
        StudyError: If it has others, or cannot be read.
    """
    if not file.exists():
        return
    texts = ((without_spaces(text.cell, file), rows_of(text, file)) for text in read_texts(file))
    lost = sum((cell, split, seed) not in kept for cell, rows in texts for split, seed, *_ in rows)
    if lost:
        raise StudyError(
            f"{file} has {lost:,} runs that would be lost: propreg store import {shlex.quote(str(file))} takes them "
            "into the store first, or --replace drops them."
        )


def _is_export(file: Path) -> bool:
    size = len(_HEAD)
    with file.open("rb") as raw:
        if raw.read(size) == _HEAD:
            return True
    try:
        with gzip.open(file) as packed:
            return packed.read(size) == _HEAD
    except (OSError, EOFError, zlib.error):
        return False


def _is_sidecar(file: Path) -> bool:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, list) and all(isinstance(note, dict) for note in found)


def _why(error: Exception) -> str:
    """What is wrong with a file, in few words: bytes of a wrong file help nobody."""
    if isinstance(error, UnicodeDecodeError):
        return "it is no text"
    return str(error.strerror or error) if isinstance(error, OSError) and error.strerror else str(error)
