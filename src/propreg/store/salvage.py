"""Salvage: what is whole of a damaged store or export, into a new store."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from propreg.store.batch import batch_id
from propreg.store.errors import StudyError
from propreg.store.export import digests_of, read_sidecar, readable_texts, unchecked_rows
from propreg.store.integrity import Sizes, cell_of, check_store, impossible
from propreg.store.rows import Row, row_digests, trimmed
from propreg.store.run import Cell, Outcome, Record, Run
from propreg.store.sqlite import is_store
from propreg.store.store import COLUMNS, Store

Notes = dict[int, dict[str, Any]]


@dataclass(frozen=True)
class Salvaged:
    """How many runs were kept, and how many were left out and why, in words."""

    kept: int
    left_out: dict[str, int]


@dataclass(frozen=True)
class _Found:
    """A row without its cell, the digest beside it, its key where one is stored, and the session that wrote it."""

    cell: str
    row: Row
    digest: bytes | None
    key: str | None = None
    session: int = 0


def salvage(source: Path, store: Path) -> Salvaged:
    """Take what has a good digest from a damaged store or export into a new store.

    Runs without a digest are left out: whether they changed cannot be known. Of runs that disagree on the size of a
    split, the fewer are left out. The source is only read.

    Args:
        source: The damaged file.
        store: The new store.

    Raises:
        StudyError: If the new store exists already, or nothing can be read.
    """
    if store.exists():
        raise StudyError(f"{store} exists already: name a new store with --store, and merge the two afterwards.")
    if is_store(source):
        with Store(source, "read") as opened:
            found, notes, batches = list(_rows(opened)), _sessions(opened), list(_batches(opened))
    else:
        found, notes, batches = list(_lines(source)), {0: {"made_by": read_sidecar(source)}}, []
    whole, left_out = _whole(found)
    if not whole:
        raise StudyError(f"{source} has no run that is whole and has a digest: no store was made.")
    with Store(store) as new, new.transaction():
        numbers = dict[int, int]()
        for record, session in whole:
            if session not in numbers:
                numbers[session] = new.begin_session_within({"taken_from": source.name, **notes.get(session, {})})
            new.add_within(record, numbers[session])
        new.db.executemany("INSERT OR IGNORE INTO batches (id, keys, cost, seconds) VALUES (?, ?, ?, ?)", batches)
    wrong = check_store(store).wrong
    if wrong:  # nothing in what was kept can be
        raise StudyError(wrong[0])
    return Salvaged(len(whole), dict(left_out))


def _whole(found: Iterable[_Found]) -> tuple[list[tuple[Record, int]], Counter[str]]:
    """The records that are whole, with their sessions; and why how many others are not."""
    cells, sizes, left_out = dict[str, Cell | None](), Sizes(), Counter[str]()
    kept = dict[str, tuple[Record, int]]()
    for each in found:
        text, row = each.cell, each.row
        if text not in cells:
            cells[text] = cell_of(text)
        cell = cells[text]
        (digest,) = row_digests(text, [row])
        key = Run.key_of(text, row[0], row[1])
        if each.digest is None:
            left_out["have no digest"] += 1
        elif digest != each.digest or cell is None or each.key not in (None, key):
            left_out["were changed after they were stored"] += 1
        elif impossible(cell, row):
            left_out["have impossible numbers"] += 1
        elif key not in kept:
            split, seed, *outcome, batch = row
            kept[key] = Record(Run(cell, split, seed), Outcome(*outcome), batch), each.session
            sizes.add(cell, key, row)
    for key, _ in sizes.unequal():
        left_out["have other sizes than most runs on their split"] += 1
        del kept[key]
    return list(kept.values()), left_out


def _lines(path: Path) -> Iterator[_Found]:
    """The rows of an export that can be read."""
    for text in readable_texts(path):
        with suppress(StudyError):
            rows, digests = unchecked_rows(text, path), digests_of(text, path)
            yield from (_Found(text.cell, tuple(row), digest) for row, digest in zip(rows, digests, strict=False))


def _rows(store: Store) -> Iterator[_Found]:
    """The rows of a store that can be read, from both ends: a damaged page ends a query."""
    cells = dict(_both_ends(store, "SELECT id, text FROM cells ORDER BY id"))
    digests = dict(_both_ends(store, "SELECT key, digest FROM digests ORDER BY key"))
    columns = f"split, seed, {COLUMNS}, batch"
    seen = set[str]()
    for order in ("key", "cell, split, seed"):
        for key, cell, session, *row in _both_ends(
            store, f"SELECT key, cell, session, {columns} FROM runs ORDER BY {order}"
        ):
            if key not in seen:
                seen.add(key)
                text = cells.get(cell)
                whole = trimmed((text, *row))[1:]
                yield _Found(text if isinstance(text, str) else "", whole, digests.get(key), key, session)


def _both_ends(store: Store, query: str) -> Iterator[Any]:
    head, _, order = query.partition(" ORDER BY ")
    backwards = ", ".join(f"{name} DESC" for name in order.split(", "))
    for each in (query, f"{head} ORDER BY {backwards}"):
        # Text that is not UTF-8 cannot be decoded, and damage can leave any.
        with suppress(sqlite3.Error, UnicodeDecodeError):
            yield from store.db.execute(each)


def _sessions(store: Store) -> Notes:
    found: Notes = {}
    for number, text in _both_ends(store, "SELECT id, info FROM sessions ORDER BY id"):
        with suppress(ValueError, TypeError, RecursionError):
            note = json.loads(text)
            if isinstance(note, dict):
                found[number] = note
    return found


def _batches(store: Store) -> Iterator[tuple[str, str, float, float | None]]:
    for batch, keys, cost, seconds in _both_ends(store, "SELECT id, keys, cost, seconds FROM batches ORDER BY id"):
        times = all(type(each) is float and 0 <= each < float("inf") for each in (cost, seconds or 0.0))
        if isinstance(keys, str) and batch_id(keys) == batch and times:
            yield batch, keys, cost, seconds
