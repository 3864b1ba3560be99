"""The store: one SQLite file in WAL mode, one row per finished run, each written in a transaction of its own.

A key is stored once: what is trained twice does no harm. Several processes may work on one store. Each run has a
digest beside it, see :mod:`propreg.study.row_digest`.
"""

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from propreg.study.batches import Batch
from propreg.study.errors import StudyError
from propreg.study.record import Outcome, Record
from propreg.study.row_digest import DIGESTS, read_digests, row_digest
from propreg.study.run import Cell, Run
from propreg.study.schema import APPLICATION, TABLES, VERSION
from propreg.study.store_errors import store_sentence

DEFAULT = "propreg-study.sqlite"
BUSY_SECONDS = 60.0
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
        if mode != "write" and not self.path.exists():
            raise StudyError(f"There is no store {self.path}: name one with --store, or run propreg reproduce first.")
        if self.path.is_dir():
            raise StudyError(f"{self.path} is a folder, not a store: name the SQLite file in it with --store.")
        self._digests, self._wal = False, self.path.with_name(f"{self.path.name}-wal")
        self._tidies = mode == "read" and not self._wal.exists()
        with self.reading():
            if mode == "read":
                self.db = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
            else:
                self.db = sqlite3.connect(self.path, timeout=BUSY_SECONDS)
            self.db.isolation_level = None  # transactions begin and end where we say so
        try:
            with self.reading():
                self._open(mode)
        except BaseException:
            self.close()
            raise

    def _open(self, mode: str) -> None:
        empty = not self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if empty and mode == "write":
            self._use_wal()
            self._create()
        ((application,), (version,)) = (
            self.db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        if application != APPLICATION:
            raise StudyError(f"{self.path} is not a propreg store: name another file with --store.")
        if version > VERSION:
            raise StudyError(
                f"{self.path} has schema {version}, this propreg knows schemas up to {VERSION}: "
                "install the newer propreg that wrote it."
            )
        if mode != "read":
            self._use_wal()
            self.db.execute("PRAGMA synchronous = NORMAL")  # in WAL mode a kill loses nothing, and files stay whole
            self.db.execute("PRAGMA foreign_keys = ON")

    def _use_wal(self) -> None:
        """Switching needs the file alone for a moment, and SQLite does not wait for that by itself."""
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self.db.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > until:
                    raise
                time.sleep(0.02)

    def _create(self) -> None:
        with self.transaction():
            if self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return  # another process was faster
            for statement in TABLES.split(";"):
                self.db.execute(statement)
            self.db.execute(f"PRAGMA application_id = {APPLICATION}")
            self.db.execute(f"PRAGMA user_version = {VERSION}")

    def close(self) -> None:
        """Close the file. What was only read has no more files beside it than before."""
        self.db.close()
        if not self._tidies:
            return
        # To read in WAL mode SQLite makes -wal and -shm, and who may only read cannot take them away again. Who may
        # write does so when closing, unless another process has the file open; an empty -wal changes nothing in it.
        uri = f"{self.path.absolute().as_uri()}?mode=rw"
        with suppress(sqlite3.Error, FileNotFoundError):  # another process may have taken the -wal away meanwhile
            if not self._wal.stat().st_size:
                with closing(sqlite3.connect(uri, uri=True, timeout=0)) as db:
                    db.execute("PRAGMA schema_version").fetchone()

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
                self.db.execute("COMMIT")
            except BaseException:
                self._digests = False  # if the table was made in here, it is gone again
                with suppress(sqlite3.Error):  # a full disk has rolled back by itself
                    self.db.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What sqlite3 raises inside becomes one sentence."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter of names in a damaged schema
            raise StudyError(store_sentence(self.path, error, BUSY_SECONDS)) from error

    def begin_session(self, info: dict[str, Any]) -> int:
        """Note who is about to write: machine, versions, device. Returns its number."""
        with self.transaction():
            text = json.dumps(info, sort_keys=True)
            number = self.db.execute("INSERT INTO sessions (info) VALUES (?)", (text,)).lastrowid
        return int(number or 0)

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
        if len(rows) != 1:
            found = "no run" if not rows else "more than one run"
            raise StudyError(f"{self.path} has {found} whose key begins with {key!r}: propreg table --runs lists keys.")
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

    def sessions(self) -> list[dict[str, Any]]:
        """Who wrote, and how many runs."""
        with self.reading():
            rows = self.db.execute(
                "SELECT info, count(key) FROM sessions LEFT JOIN runs ON session = id GROUP BY id ORDER BY id"
            ).fetchall()
        try:
            return [json.loads(info) | {"runs": runs} for info, runs in rows]
        except (ValueError, TypeError):
            why = sqlite3.DatabaseError("malformed note of a session")
            raise StudyError(store_sentence(self.path, why, BUSY_SECONDS)) from None
