"""The store: one SQLite file in WAL mode, one row per finished run, each written in a transaction of its own.

A key is stored once, so that work done twice does no harm. Several processes may work on one store. Each run has a
digest beside it, see :func:`propreg.store.rows.row_digest`.

Measures and the reports of further rules are recorded with a run but are no part of its identity: a run that was
recorded without them and is trained again for them keeps its key, and its row is completed, see :meth:`Store.add`.
"""

import json
import os
import shlex
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from propreg.jsonio import parse
from propreg.store.batch import Batch, batch_id
from propreg.store.errors import StudyError, check_one
from propreg.store.locks import Worker
from propreg.store.reports import merge_reports
from propreg.store.rows import Row, row_digest, trimmed
from propreg.store.run import Cell, Outcome, Record, Run
from propreg.store.sqlite import BUSY_SECONDS, open_store
from propreg.store.sqlite_errors import store_sentence

COLUMNS = ", ".join(Outcome.__dataclass_fields__)
"""The columns of an outcome."""
_NOT_COUNTED_TWICE = "max({}, (SELECT count(*) FROM runs))"


class Store:
    """Finished runs in a file.

    Args:
        path: The SQLite file.
        mode: ``"write"`` makes it if it does not exist; ``"update"`` and ``"read"`` need one.

    Raises:
        StudyError: If the file is no store, damaged, or from a newer propreg. It is left as it is.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/a.sqlite") as store:
        ...     run = Run(Cell("digits", "0" * 64), split=0, seed=1)
        ...     session = store.begin_session({})
        ...     record = Record(run, Outcome(90, 100, 800, 1000, 12, 40), "")
        ...     store.add(record, session), store.add(record, session), store.keys() == {run.key}
        (True, False, True)
    """

    def __init__(self, path: str | os.PathLike[str], mode: str = "write") -> None:
        self.path, self._mode = Path(path), mode
        self._file = self.path.absolute()
        self._identity: tuple[int, int] | None = None
        with self.reading():
            self._opened = open_store(self.path, mode)
            self.db = self._opened.db
        self._identity = self._identify()

    def close(self) -> None:
        """Close the file. A store that was only read has no more files beside it than before.

        The last writer to close brings the log into the file and removes it: leases of processes that are gone go with
        it, since ``store check`` takes one without a log as the sign of a copy that lacks its log.
        """
        if self._mode != "read":
            with suppress(StudyError, sqlite3.Error):  # a full disk, or another writer that holds on: they stay
                self._end_leases_of_the_gone()
        self._opened.close()

    def _end_leases_of_the_gone(self) -> None:
        found = self.db.execute("SELECT batch, host, pid, born FROM leases").fetchall()
        gone = [batch for batch, host, pid, born in found if type(pid) is int and Worker(host, pid, born).is_gone()]
        if gone:
            with self.transaction():
                self.db.executemany("DELETE FROM leases WHERE batch = ?", [(batch,) for batch in gone])

    def still_there(self) -> None:
        """Raise if the path no longer names the open file: SQLite keeps writing to an unlinked inode without an error.

        Raises:
            StudyError: If the file was deleted or replaced since it was opened: the runs would be lost.
        """
        if self._identity is None or self._identify() != self._identity:
            raise StudyError(
                f"{self.path} was deleted, moved or replaced while it was in use: put it back and run again; what was "
                "stored in it since then may be lost."
            )

    def _identify(self) -> tuple[int, int] | None:
        """The device and inode of the file at the store's path; None if there is none."""
        try:
            found = self._file.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all or nothing; an error of sqlite3 becomes one sentence."""
        with self.reading():
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.still_there()
                self.db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has rolled back by itself
                    self.db.execute("ROLLBACK")
                raise

    def checkpoint(self) -> None:
        """Bring what was committed from the log into the file itself, as far as no other process reads older pages."""
        with suppress(sqlite3.Error):  # it stays in the log
            self.db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read everything as of one moment, whatever other processes write meanwhile."""
        if self.db.in_transaction:
            yield
            return
        with self.reading():
            self.db.execute("BEGIN")
            try:
                yield
            finally:
                with suppress(sqlite3.Error):  # there is nothing to lose
                    self.db.execute("ROLLBACK")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn an error of sqlite3 into one sentence."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter of names in a damaged schema
            if self._identity is not None:
                self.still_there()  # a file that took its place may be the reason
            raise StudyError(store_sentence(self.path, error, BUSY_SECONDS)) from error

    def begin_session(self, info: dict[str, Any]) -> int:
        """Note who is about to write: machine, versions, device. Returns its number."""
        with self.transaction():
            return self.begin_session_within(info)

    def begin_session_within(self, info: dict[str, Any]) -> int:
        """:meth:`begin_session` inside a transaction of the caller's."""
        text = json.dumps(info, sort_keys=True)
        return int(self.db.execute("INSERT INTO sessions (info) VALUES (?)", (text,)).lastrowid or 0)

    def end_session(self, number: int, info: dict[str, Any]) -> None:
        """Add to the note of a session."""
        with self.transaction():
            (text,) = self.db.execute("SELECT info FROM sessions WHERE id = ?", (number,)).fetchone()
            both = json.dumps(json.loads(text) | info, sort_keys=True)
            self.db.execute("UPDATE sessions SET info = ? WHERE id = ?", (both, number))

    def add(self, record: Record, session: int) -> bool:
        """Store a finished run, or what a new training of it adds to its row.

        A row without all reports of the record gets them if the scores agree. If they disagree, the record takes its
        place only if another engine had trained it, by the notes of the two sessions; a session that names no engine,
        such as that of an import, replaces nothing.

        Returns:
            Whether the store has changed by it.
        """
        with self.transaction():
            return self.add_within(record, session)

    def add_within(self, record: Record, session: int) -> bool:
        """:meth:`add` inside a transaction of the caller's.

        If the key is stored but damaged, two that agree outvote the third: a digest that fits the record repairs the
        row, and a row that is the record gets its digest.
        """
        run = record.run
        row = (run.cell.text, run.split, run.seed, *record.outcome.row, record.batch)
        digest = row_digest(row)
        gone = self.db.execute("SELECT 1 FROM digests WHERE key = ?", (run.key,)).fetchone() is not None
        if self._insert(record, session):
            self._count(_NOT_COUNTED_TWICE.format("number") if gone else "number + 1")
            return True
        found = self.db.execute(
            f"SELECT text, split, seed, {COLUMNS}, batch, digest, session FROM runs LEFT JOIN cells ON cells.id = cell"
            " LEFT JOIN digests ON digests.key = runs.key WHERE runs.key = ?",
            (run.key,),
        ).fetchone()
        stored, noted, by = trimmed(found[:-2]), found[-2], found[-1]
        intact = row_digest(stored)
        if intact == digest:
            if noted != digest:
                self._note_digest(run.key, digest)
        elif noted == digest:
            self._replace(record, session)
        elif noted == intact:
            return self._complete(Outcome(*stored[3:-1]), by, record, session)
        return False

    def _complete(self, known: Outcome, by: int, record: Record, session: int) -> bool:
        """Give the row of a run what a record has beyond it; False if that is nothing, or they contradict."""
        new = record.outcome
        if known.agrees(new):
            reports = merge_reports(known.reports, new.reports)
            if reports == known.reports:
                return False
            self._replace(Record(record.run, replace(new, reports=reports), record.batch), session)
            return True
        engines = [self._engine(number) for number in (by, session)]
        if new.reports is None or engines[1] is None or engines[0] == engines[1]:
            return False
        self._replace(record, session)
        return True

    def _engine(self, session: int) -> str | None:
        """The digest of the engine that a session noted."""
        (text,) = self.db.execute("SELECT info FROM sessions WHERE id = ?", (session,)).fetchone()
        with suppress(ValueError):
            info = json.loads(text)
            return info.get("engine") if isinstance(info, dict) else None
        return None

    def _replace(self, record: Record, session: int) -> None:
        self.db.execute("DELETE FROM runs WHERE key = ?", (record.run.key,))
        self._insert(record, session)

    def remove(self, key: str) -> str:
        """Drop the run of a key, or of the beginning of one, or what is left of it. Returns the key.

        Raises:
            StudyError: If there is none, or more than one.
        """
        with self.transaction():
            found = self.db.execute(
                "SELECT key FROM runs WHERE key >= :key AND key < :end UNION"
                " SELECT key FROM digests WHERE key >= :key AND key < :end LIMIT 2",
                {"key": key, "end": key + "g"},
            ).fetchall()
            check_one(len(found), self.path, key)
            # A run that has gone by itself, and left its digest, may still be counted.
            there = self.db.execute("DELETE FROM runs WHERE key = ?", found[0]).rowcount
            self._count("number - 1" if there else _NOT_COUNTED_TWICE.format("number - 1"))
            self.db.execute("DELETE FROM digests WHERE key = ?", found[0])
        return str(found[0][0])

    def _count(self, number: str) -> None:
        self.db.execute(f"UPDATE totals SET number = {number} WHERE name = 'runs'")

    def _insert(self, record: Record, session: int) -> bool:
        run, out = record.run, record.outcome
        text, key = run.cell.text, run.key
        self.db.execute("INSERT INTO cells (text) VALUES (?) ON CONFLICT (text) DO NOTHING", (text,))
        done = self.db.execute(
            f"INSERT INTO runs (cell, split, seed, {COLUMNS}, batch, key, session) VALUES ((SELECT id FROM cells WHERE"
            f" text = ?), {', '.join('?' * (len(vars(out)) + 5))}) ON CONFLICT (key) DO NOTHING",
            (text, run.split, run.seed, *vars(out).values(), record.batch, key, session),
        )
        if done.rowcount == 1:
            self._note_digest(key, row_digest((text, run.split, run.seed, *out.row, record.batch)))
        return done.rowcount == 1

    def _note_digest(self, key: str, digest: bytes) -> None:
        self.db.execute("INSERT OR REPLACE INTO digests (key, digest) VALUES (?, ?)", (key, digest))

    def digests(self) -> dict[str, bytes]:
        """The digests of runs by key."""
        with self.reading():
            return dict(self.db.execute("SELECT key, digest FROM digests").fetchall())

    def is_whole(self, key: str) -> bool:
        """Whether the run of a key matches its digest."""
        with suppress(StudyError):
            self.find(key, verify=True)
            return True
        return False

    def total(self) -> int:
        """How many runs were stored by the count beside them; -1 if it is damaged."""
        with self.reading():
            row = self.db.execute("SELECT number FROM totals WHERE name = 'runs'").fetchone()
        return row[0] if row and type(row[0]) is int else -1

    def keys(self) -> set[str]:
        """The keys of all finished runs."""
        with self.reading():
            rows = self.db.execute("SELECT key FROM runs").fetchall()
        return {key for (key,) in rows}

    def recorded(self, batch: Batch) -> set[str]:
        """The keys of a batch's members that are recorded with all reports that the batch asks for."""
        column = "reports" if batch.rules or batch.measures else "NULL"
        with self.reading():
            members = json.dumps([run.key for run in batch.runs])
            rows = self.db.execute(
                f"SELECT key, {column} FROM runs WHERE key IN (SELECT value FROM json_each(?))", (members,)
            ).fetchall()
        return {key for key, reports in rows if batch.is_complete(reports)}

    def find(self, key: str, *, verify: bool = False) -> Record:
        """The run of a key, or of the beginning of one.

        Args:
            key: The key.
            verify: Whether it must match its digest.

        Raises:
            StudyError: If there is none, or more than one; or if it changed since it was stored.
        """
        with self.reading():
            rows = self.db.execute(
                f"SELECT runs.key, digest, text, split, seed, {COLUMNS}, batch FROM runs JOIN cells ON cells.id = cell"
                " LEFT JOIN digests ON digests.key = runs.key WHERE runs.key >= ? AND runs.key < ? LIMIT 2",
                (key, key + "g"),
            ).fetchall()
        check_one(len(rows), self.path, key)
        (whole, digest), row = rows[0][:2], trimmed(rows[0][2:])
        if verify and (Run.key_of(*row[:3]) != whole or digest != row_digest(row)):
            raise StudyError(
                f"{self.path} is damaged, run {whole[:16]} was changed after it was stored: "
                f"propreg store check --store {shlex.quote(str(self.path))} lists the fix."
            )
        text, split, seed, *out, batch = row
        return Record(Run(Cell.from_text(text), split, seed), Outcome(*out), batch)

    def tests(self, cell: str, split: int, but: int) -> list[float]:
        """The test scores of a cell on a split, accuracies as fractions, of every seed but one."""
        with self.reading():
            rows = self.db.execute(
                f"SELECT {COLUMNS} FROM runs JOIN cells ON cells.id = cell"
                " WHERE text = ? AND split = ? AND seed != ? ORDER BY seed",
                (cell, split, but),
            ).fetchall()
        return [Outcome(*row).test_score for row in rows]

    def seeds(self, cell: str, batch: str) -> set[int]:
        """The seeds of a cell whose runs are recorded as of a batch."""
        with self.reading():
            rows = self.db.execute(
                "SELECT DISTINCT seed FROM runs JOIN cells ON cells.id = cell WHERE text = ? AND batch = ?",
                (cell, batch),
            ).fetchall()
        return {seed for (seed,) in rows}

    def rows(self) -> Iterator[Row]:
        """All rows with their cells' texts, see :mod:`propreg.store.rows`, sorted by cell, split and seed."""
        for _, _, row in self.stored():
            yield row

    def stored(self) -> Iterator[tuple[str, int, Row]]:
        """The key and the session of each row, and the row, as :meth:`rows`."""
        with self.reading():
            for key, session, *row in self.db.execute(
                f"SELECT runs.key, session, text, split, seed, {COLUMNS}, batch FROM runs"
                " JOIN cells ON cells.id = cell ORDER BY text, split, seed"
            ):
                yield key, session, trimmed(tuple(row))

    def run_ids(self) -> set[tuple[str, int, int]]:
        """The cells' texts, splits and seeds of all finished runs, without reading their results."""
        with self.reading():
            return set(self.db.execute("SELECT text, split, seed FROM runs JOIN cells ON cells.id = cell"))

    def note_batch(self, batch: Batch, session: int, seconds: float | None = None) -> None:
        """Note a batch's members, and how long a whole training took."""
        with self.transaction():
            self.db.execute(
                "INSERT INTO batches (id, keys, cost, seconds, session) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (id) DO UPDATE SET seconds = coalesce(excluded.seconds, seconds),"
                " session = excluded.session",
                (batch.id, "".join(run.key for run in batch.runs), batch.cost, seconds, session),
            )

    def members(self, batch: str) -> list[str]:
        """The keys of a batch's members in order; none if it was not trained through this store."""
        with self.reading():
            row = self.db.execute("SELECT keys FROM batches WHERE id = ?", (batch,)).fetchone()
        if row is None or batch_id(row[0]) != batch:  # damage: the experiments know batches too
            return []
        return [row[0][i : i + 64] for i in range(0, len(row[0]), 64)]

    def seconds_per_cost(self) -> float | None:
        """The pace of whole batches so far, None if none was timed."""
        with self.reading():
            took, cost = self.db.execute(
                "SELECT sum(seconds), sum(cost) FROM batches WHERE seconds IS NOT NULL"
            ).fetchone()
        return took / cost if cost else None

    def count_in(self, batches: Collection[str]) -> int:
        """The number of runs of these batches."""
        with self.reading():
            rows = self.db.execute("SELECT batch, count(*) FROM runs GROUP BY batch").fetchall()
        return sum(runs for batch, runs in rows if batch in batches)

    def sessions(self) -> list[dict[str, Any]]:
        """Who wrote, and how many runs."""
        return list(self.numbered_sessions().values())

    def numbered_sessions(self) -> dict[int, dict[str, Any]]:
        """:meth:`sessions` by number."""
        with self.reading():
            rows = self.db.execute(
                "SELECT id, info, count(key) FROM sessions LEFT JOIN runs ON session = id GROUP BY id ORDER BY id"
            ).fetchall()
        try:
            return {number: parse(info) | {"runs": runs} for number, info, runs in rows}
        except (ValueError, TypeError, RecursionError):
            why = sqlite3.DatabaseError("malformed note of a session")
            raise StudyError(store_sentence(self.path, why, BUSY_SECONDS)) from None
