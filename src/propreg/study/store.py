"""The store: one SQLite file in WAL mode, one row per finished run, each written in a transaction of its own.

A key is stored once: what is trained twice does no harm. Several processes may work on one store. Each run has a
digest beside it, see :mod:`propreg.study.row_digest`.
"""

import json
import os
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from propreg.study.batches import Batch
from propreg.study.errors import StudyError, check_one
from propreg.study.opening import BUSY_SECONDS, close_store, open_store
from propreg.study.record import Outcome, Record
from propreg.study.row_digest import DIGESTS, read_digests, row_digest
from propreg.study.run import Cell, Run
from propreg.study.store_errors import store_sentence

Row = tuple[Any, ...]
_COLUMNS = ("val", "val_of", "test", "test_of", "epoch", "epochs", "failed_at", "measures")
_OUTCOME = ", ".join(_COLUMNS)


class Store:
    """Finished runs in a file.

    Args:
        path: The SQLite file.
        mode: ``"write"`` makes it where it is not there; ``"update"`` and ``"read"`` need one.

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
        self.path = Path(path)
        self._file = self.path.absolute()
        self._digests = False
        self._identity: tuple[int, int] | None = None
        with self.reading():
            self.db, self._tidies = open_store(self.path, mode)
        self._identity = self._identify()

    def close(self) -> None:
        """Close the file. What was only read has no more files beside it than before."""
        close_store(self.db, self._file, self._tidies)

    def still_there(self) -> None:
        """See that what is written goes to the file of that name: a deleted one takes runs, too, and loses them.

        Raises:
            StudyError: If it was deleted or replaced since it was opened.
        """
        if self._identity is None or self._identify() != self._identity:
            raise StudyError(
                f"{self.path} was deleted, moved or replaced while it was in use: put it back and run again; what was "
                "stored in it since then may be lost."
            )

    def _identify(self) -> tuple[int, int] | None:
        """Which file has the store's name; None where there is none."""
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
        """All or nothing; what sqlite3 raises becomes one sentence."""
        with self.reading():
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.still_there()
                self.db.execute("COMMIT")
            except BaseException:
                self._digests = False  # if the table was made in here, it is gone again
                with suppress(sqlite3.Error):  # a full disk has rolled back by itself
                    self.db.execute("ROLLBACK")
                raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All that is read inside is of one moment, whatever other processes write meanwhile."""
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
        """What sqlite3 raises inside becomes one sentence."""
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
        """Add to what is noted of a session."""
        with self.transaction():
            (text,) = self.db.execute("SELECT info FROM sessions WHERE id = ?", (number,)).fetchone()
            both = json.dumps(json.loads(text) | info, sort_keys=True)
            self.db.execute("UPDATE sessions SET info = ? WHERE id = ?", (both, number))

    def add(self, record: Record, session: int) -> bool:
        """Store a finished run; False if its key was there already."""
        with self.transaction():
            return self.add_within(record, session)

    def add_within(self, record: Record, session: int) -> bool:
        """:meth:`add` inside a transaction of the caller's.

        Where the key was there, but damaged, two that agree outvote the third: a digest that fits the record puts the
        row right, and a row that is the record gets its digest.
        """
        run, out = record.run, tuple(getattr(record.outcome, name) for name in _COLUMNS)
        key, row = run.key, (run.cell.text, run.split, run.seed, *out, record.batch)
        digest = row_digest(row)
        if not self._digests:
            self.db.execute(DIGESTS)
            self._digests = True
        if self._insert(key, row, session):
            self._note_digest(key, digest)
            return True
        *there, noted = self.db.execute(
            f"SELECT text, split, seed, {_OUTCOME}, batch, digest FROM runs LEFT JOIN cells ON cells.id = cell"
            " LEFT JOIN digests ON digests.key = runs.key WHERE runs.key = ?",
            (key,),
        ).fetchone()
        is_same = row_digest(there) == digest
        if is_same and noted != digest:
            self._note_digest(key, digest)
        elif not is_same and noted == digest:
            self.db.execute("DELETE FROM runs WHERE key = ?", (key,))
            self._insert(key, row, session)
        return False

    def _insert(self, key: str, row: Row, session: int) -> bool:
        self.db.execute("INSERT INTO cells (text) VALUES (?) ON CONFLICT (text) DO NOTHING", row[:1])
        done = self.db.execute(
            f"INSERT INTO runs (cell, split, seed, {_OUTCOME}, batch, key, session) VALUES ((SELECT id FROM cells WHERE"
            f" text = ?), {', '.join('?' * 13)}) ON CONFLICT (key) DO NOTHING",
            (*row, key, session),
        )
        return done.rowcount == 1

    def _note_digest(self, key: str, digest: bytes) -> None:
        self.db.execute("INSERT OR REPLACE INTO digests (key, digest) VALUES (?, ?)", (key, digest))

    def digests(self) -> dict[str, bytes]:
        """The digests of runs by key; runs of an earlier propreg have none."""
        with self.reading():
            return read_digests(self.db)

    def keys(self) -> set[str]:
        """The keys of all finished runs."""
        with self.reading():
            rows = self.db.execute("SELECT key FROM runs").fetchall()
        return {key for (key,) in rows}

    def find(self, key: str) -> Record:
        """The run of a key, or of the beginning of one.

        Raises:
            StudyError: If there is none, or more than one.
        """
        with self.reading():
            rows = self.db.execute(
                f"SELECT text, split, seed, {_OUTCOME}, batch FROM runs JOIN cells ON cells.id = cell"
                " WHERE key >= ? AND key < ? LIMIT 2",
                (key, key + "g"),
            ).fetchall()
        check_one(len(rows), self.path, key)
        text, split, seed, *out, batch = rows[0]
        return Record(Run(Cell.from_text(text), split, seed), Outcome(*out), batch)

    def tests(self, cell: str, split: int, but: int) -> list[float]:
        """Test accuracies of a cell on a split, as fractions, of every seed but one."""
        with self.reading():
            rows = self.db.execute(
                "SELECT test * 1.0 / test_of FROM runs JOIN cells ON cells.id = cell"
                " WHERE text = ? AND split = ? AND seed != ? ORDER BY seed",
                (cell, split, but),
            ).fetchall()
        return [value for (value,) in rows]

    def rows(self) -> Iterator[Row]:
        """(cell text, split, seed, the eight columns of the outcome, batch), sorted by the first three."""
        with self.reading():
            yield from self.db.execute(
                f"SELECT text, split, seed, {_OUTCOME}, batch FROM runs JOIN cells ON cells.id = cell"
                " ORDER BY text, split, seed"
            )

    def note_batch(self, batch: Batch, session: int, seconds: float | None = None) -> None:
        """Remember a batch's members, and how long a whole training took."""
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
        return [] if row is None else [row[0][i : i + 64] for i in range(0, len(row[0]), 64)]

    def seconds_per_cost(self) -> float | None:
        """How fast whole batches were trained so far, None where there was none."""
        with self.reading():
            took, cost = self.db.execute(
                "SELECT sum(seconds), sum(cost) FROM batches WHERE seconds IS NOT NULL"
            ).fetchone()
        return took / cost if cost else None

    def count_in(self, batches: Collection[str]) -> int:
        """How many runs there are of these batches."""
        with self.reading():
            rows = self.db.execute("SELECT batch, count(*) FROM runs GROUP BY batch").fetchall()
        return sum(runs for batch, runs in rows if batch in batches)

    def sessions(self) -> list[dict[str, Any]]:
        """Who wrote, and how many runs."""
        return list(self.numbered_sessions().values())

    def numbered_sessions(self) -> dict[int, dict[str, Any]]:
        """The same by the sessions' numbers."""
        with self.reading():
            rows = self.db.execute(
                "SELECT id, info, count(key) FROM sessions LEFT JOIN runs ON session = id GROUP BY id ORDER BY id"
            ).fetchall()
        try:
            return {number: json.loads(info) | {"runs": runs} for number, info, runs in rows}
        except (ValueError, TypeError, RecursionError):
            why = sqlite3.DatabaseError("malformed note of a session")
            raise StudyError(store_sentence(self.path, why, BUSY_SECONDS)) from None
