"""A store's file: its tables and their version, and opening it."""

import shutil
import sqlite3
import time
from collections import defaultdict
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from propreg.store.errors import StudyError
from propreg.store.locks import claim_writing, network_of, release_writing

APPLICATION = 0x50726567  # "Preg": tells a store from any other SQLite file
VERSION = 3
BUSY_SECONDS = 60.0
STORES = (".sqlite", ".db")

_TABLES = """
CREATE TABLE cells (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE             -- canonical JSON, see propreg.store.run
);
CREATE TABLE runs (
    key TEXT PRIMARY KEY,                 -- SHA-256 of the run's canonical JSON
    cell INTEGER NOT NULL REFERENCES cells (id),
    split INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    val INTEGER NOT NULL,                 -- validation nodes classified correctly …
    val_of INTEGER NOT NULL,              -- … of so many
    test INTEGER NOT NULL,
    test_of INTEGER NOT NULL,
    epoch INTEGER NOT NULL,               -- the epoch that is reported
    epochs INTEGER NOT NULL,              -- how many were trained
    failed_at INTEGER,                    -- the epoch whose loss was NaN or infinite
    measures TEXT,                        -- canonical JSON of further numbers, such as ω
    batch TEXT NOT NULL,                  -- the batch it was trained in
    session INTEGER NOT NULL REFERENCES sessions (id),
    metric TEXT NOT NULL DEFAULT 'accuracy',  -- of val and test, which are reals where it is another
    reports TEXT                          -- see propreg.store.reports
) WITHOUT ROWID;
CREATE INDEX runs_by_cell ON runs (cell, split, seed);
CREATE TABLE batches (
    id TEXT PRIMARY KEY,
    keys TEXT NOT NULL,                   -- the members' keys in order, one after another
    cost REAL NOT NULL,
    seconds REAL,                         -- of its last whole training
    session INTEGER REFERENCES sessions (id)
) WITHOUT ROWID;
CREATE TABLE leases (
    batch TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    born TEXT NOT NULL,                   -- tells the process from a later one with the same number
    expires REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    info TEXT NOT NULL                    -- JSON: machine, versions, device, when
);
CREATE TABLE digests (
    key TEXT PRIMARY KEY,
    digest BLOB NOT NULL                  -- of the run's row, see propreg.store.rows
) WITHOUT ROWID;
CREATE TABLE totals (
    name TEXT PRIMARY KEY,
    number INTEGER NOT NULL               -- of the runs, so that rows that can no longer be found are missed
) WITHOUT ROWID;
INSERT INTO totals (name, number) VALUES ('runs', 0)
"""

_HEADER = 100
_RIGHTS = {"write": "rwc", "update": "rw", "read": "ro"}
_NO_RIGHTS = ("SQLITE_CANTOPEN", "SQLITE_READONLY")  # which of them depends on the system and on SQLite's version

_COPIES = 5


@dataclass
class Opened:
    """A connection to a store, and what is to be done when it is closed.

    Args:
        db: The connection.
        path: The file.
        tidies: Whether it was only read and had no log beside it, and so should have none now.
        writes: Whether this process is the one writer of a store on a network file system.
        copy: The folder of a copy that is read in place of the file.
    """

    db: sqlite3.Connection
    path: Path
    tidies: bool = False
    writes: bool = False
    copy: "TemporaryDirectory[str] | None" = None

    def close(self) -> None:
        """Close the file."""
        self.db.close()
        if self.writes:
            release_writing(self.path)
        if self.copy is not None:
            self.copy.cleanup()
        if not self.tidies:
            return
        # To read in WAL mode SQLite makes -wal and -shm, and who may only read cannot remove them. Who may write does
        # so when closing, unless another process has the file open; an empty -wal changes nothing in it.
        with suppress(sqlite3.Error, OSError):  # another process may have removed the -wal meanwhile
            if not log_of(self.path).stat().st_size:
                with closing(_connect(self.path, "rw", 0)) as again:
                    again.execute("PRAGMA schema_version").fetchone()


def open_store(path: Path, mode: str) -> Opened:
    """Connect to a store. Transactions are the caller's.

    A file without any table is a store without runs: a kill or a full disk may leave one that was being made. On a
    network file system it has a rollback journal and one writer.

    Args:
        path: The file.
        mode: As of :class:`propreg.store.store.Store`.

    Raises:
        StudyError: If it does not exist, is no store, or is from a newer propreg.
        sqlite3.Error: If it is damaged or cannot be opened.
    """
    if mode != "write" and not path.exists():
        raise StudyError(f"There is no store {path}: name one with --store, or run propreg reproduce first.")
    if path.is_dir():
        raise StudyError(f"{path} is a folder, not a store: name the SQLite file in it with --store.")
    _refuse_devices(path)
    network = network_of(path)
    if mode == "read":
        return _open_to_read(path, network)
    if network:
        claim_writing(path, network)
    try:
        opened = Opened(_connect(path, _RIGHTS[mode]), path.absolute(), writes=bool(network))
    except BaseException:
        if network:
            release_writing(path)
        raise
    try:
        _prepare(opened.db, path, mode, network)
    except BaseException:
        opened.close()
        raise
    return opened


def _prepare(db: sqlite3.Connection, path: Path, mode: str, network: str) -> None:
    """Make what a writer needs: the journal and the tables."""
    use_journal = _leave_wal if network else _use_wal
    if network and has_wal(path):  # before the first read, which would share memory between processes
        use_journal(db)
    if _is_blank(db) and mode == "write":
        use_journal(db)
        _create(db)
    _refuse_others(db, path)
    use_journal(db)
    # In WAL mode a kill loses nothing, and files stay whole.
    db.execute(f"PRAGMA synchronous = {'FULL' if network else 'NORMAL'}")
    db.execute("PRAGMA foreign_keys = ON")


def _open_to_read(path: Path, network: str) -> Opened:
    if 0 < path.stat().st_size < _HEADER:  # SQLite takes what is left of a file for an empty one
        raise sqlite3.DatabaseError("file is not a database")
    tidies = not log_of(path).exists()
    opened = Opened(_connect(path, "ro"), path.absolute(), tidies)
    try:
        if network and has_wal(path):
            opened = _without_locks(path, opened)
            blank = _is_blank(opened.db)
        else:
            try:
                blank = _is_blank(opened.db)
            except sqlite3.OperationalError as error:
                # To read in WAL mode SQLite makes files beside the store, which it cannot in a read-only folder.
                if not error.sqlite_errorname.startswith(_NO_RIGHTS):
                    raise
                opened = _without_locks(path, opened)
                blank = _is_blank(opened.db)
        if blank:
            opened.db.close()
            opened.db = sqlite3.connect(":memory:", isolation_level=None)
            create(opened.db)
            opened.db.execute("PRAGMA query_only = ON")
        else:
            _refuse_others(opened.db, path)
    except BaseException:
        opened.close()
        raise
    return opened


def _without_locks(path: Path, opened: Opened) -> Opened:
    """Read a store in WAL mode where SQLite can make no files beside it.

    Without a log nobody is writing, so that it is a file that does not change. Else it is copied with its log, or with
    the journal of a writer that was killed, from which only who may write can restore it.
    """
    opened.db.close()
    if not any(file.exists() and file.stat().st_size for file in _beside(path)):
        return Opened(_connect(path, "ro&immutable=1"), opened.path, opened.tidies)
    folder = TemporaryDirectory(prefix="propreg-")
    try:
        target = _copy(path.resolve(), Path(folder.name))
        db = _connect(target, "rw")
        db.execute("PRAGMA query_only = ON")
    except BaseException:
        folder.cleanup()
        raise
    return Opened(db, opened.path, copy=folder)


def _copy(real: Path, folder: Path) -> Path:
    """A copy of a store and its log or journal as they are at one moment."""
    target = folder / "store.sqlite"
    beside = [pair for pair in zip(_beside(real), _beside(target), strict=True) if pair[0].exists()]
    pairs = [(real, target), *beside]
    for _ in range(_COPIES):
        try:
            before = [_state(file) for file, _ in pairs]
            for file, other in pairs:
                shutil.copyfile(file, other)
            if before == [_state(file) for file, _ in pairs]:
                return target
        except OSError as error:
            raise StudyError(f"{real} or its log cannot be read: {error.strerror or error}.") from error
    raise StudyError(f"{real} is being written, and cannot be read in this folder meanwhile: run again later.")


def _beside(path: Path) -> tuple[Path, Path]:
    """The log and the rollback journal of a store."""
    log = log_of(path)
    return log, log.with_name(f"{log.name.removesuffix('-wal')}-journal")


def _state(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_mtime_ns, found.st_size


def is_store(path: Path) -> bool:
    """Whether a file is SQLite's, by its first bytes; an empty one is a store without runs if its name is a store's."""
    _refuse_devices(path)
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise StudyError(f"{path} cannot be read: {error.strerror or error}.") from error
    return head == b"SQLite format 3\x00" or (not head and path.suffix in STORES)


def _refuse_devices(path: Path) -> None:
    """Refuse pipes and devices, which may never end."""
    if path.is_fifo() or path.is_char_device() or path.is_block_device() or path.is_socket():
        raise StudyError(f"{path} cannot be read: it is a pipe or a device, not a file.")


def log_of(path: Path) -> Path:
    """The file that holds the latest writes: beside the store itself, also where ``path`` is a link."""
    real = path.resolve()
    return real.with_name(f"{real.name}-wal")


def create(db: sqlite3.Connection) -> None:
    """Make the tables of a store in a database that has none, inside the caller's transaction."""
    for statement in _TABLES.split(";"):  # not executescript, which commits first
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {VERSION}")


def missing(db: sqlite3.Connection) -> list[str]:
    """The tables of a store, and their columns, that a database lacks, in words.

    Example:
        >>> db = sqlite3.connect(":memory:")
        >>> create(db)
        >>> _ = db.execute("DROP TABLE leases")
        >>> _ = db.execute("ALTER TABLE batches DROP COLUMN cost")
        >>> missing(db)
        ['column cost of table batches', 'table leases']
    """
    with closing(sqlite3.connect(":memory:")) as new:
        create(new)
        wanted = _columns(new)
    there = _columns(db)
    found = [f"table {table}" for table in wanted.keys() - there.keys()]
    found += [f"column {name} of table {table}" for table in wanted.keys() & there.keys()
              for name in wanted[table] - there[table]]  # fmt: skip
    return sorted(found)


def has_log(path: Path) -> bool:
    """Whether the latest writes may be in a log beside the file."""
    log = log_of(path)
    return log.exists() and log.stat().st_size > 0


def has_wal(path: Path) -> bool:
    """Whether a file is in WAL mode, by its header."""
    try:
        with path.open("rb") as file:
            return file.read(20)[18:20] == b"\2\2"
    except OSError:
        return False


def _connect(path: Path, rights: str, timeout: float = BUSY_SECONDS) -> sqlite3.Connection:
    # With an absolute address no name, not even ":memory:", is anything but a file.
    uri = f"{path.absolute().as_uri()}?mode={rights}"
    db = sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)
    db.execute("PRAGMA trusted_schema = OFF")  # views and triggers of a store from others call no function
    return db


def _is_blank(db: sqlite3.Connection) -> bool:
    """Whether neither we nor another program has used the file yet."""
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return not tables and _ids(db) == (0, 0)


def _ids(db: sqlite3.Connection) -> tuple[int, int]:
    (application,), (version,) = (
        db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    return application, version


def _refuse_others(db: sqlite3.Connection, path: Path) -> None:
    application, version = _ids(db)
    if application != APPLICATION:
        raise StudyError(f"{path} is not a propreg store: name another file with --store.")
    if version > VERSION:
        raise StudyError(
            f"{path} has schema {version}, this propreg knows schemas up to {VERSION}: "
            "install the newer propreg that wrote it."
        )
    if version < VERSION:
        raise sqlite3.DatabaseError(f"malformed version {version} of its schema")


def _use_wal(db: sqlite3.Connection) -> None:
    """Switching needs the file alone for a moment, and SQLite does not wait for that by itself."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > until:
                raise
            time.sleep(0.02)


def _leave_wal(db: sqlite3.Connection) -> None:
    """Switch to a rollback journal without shared memory, which a file in WAL mode needs none of if it is exclusive."""
    db.execute("PRAGMA locking_mode = EXCLUSIVE")
    db.execute("PRAGMA journal_mode = DELETE")
    db.execute("PRAGMA locking_mode = NORMAL")
    db.execute("SELECT count(*) FROM sqlite_master").fetchone()  # gives the lock back


def _create(db: sqlite3.Connection) -> None:
    with db:  # all tables or none
        db.execute("BEGIN IMMEDIATE")
        if _is_blank(db):  # else another process was faster
            create(db)


def _columns(db: sqlite3.Connection) -> dict[str, set[str]]:
    found = defaultdict[str, set[str]](set)
    for table, name in db.execute(
        "SELECT tables.name, columns.name FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns"
        " WHERE tables.type = 'table'"
    ):
        found[table].add(name)
    return found
