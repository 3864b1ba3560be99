"""Opening a store's file: made where that is wanted, refused where it is another's, read without leaving traces."""

import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

from propreg.study.errors import StudyError
from propreg.study.schema import APPLICATION, VERSION, create

BUSY_SECONDS = 60.0
_RIGHTS = {"write": "rwc", "update": "rw", "read": "ro"}
_NO_RIGHTS = ("SQLITE_CANTOPEN", "SQLITE_READONLY")  # which of them depends on the system and on SQLite's version


def open_store(path: Path, mode: str) -> tuple[sqlite3.Connection, bool]:
    """Connect to a store, and say whether :func:`close_store` should tidy; transactions are the caller's.

    A file without any table is a store without runs, as a kill or a full disk may leave one that was being made.

    Args:
        path: The file.
        mode: As of :class:`propreg.study.store.Store`.

    Raises:
        StudyError: If it is not there, no store, or from a newer propreg.
        sqlite3.Error: If it is damaged or cannot be opened.
    """
    if mode != "write" and not path.exists():
        raise StudyError(f"There is no store {path}: name one with --store, or run propreg reproduce first.")
    if path.is_dir():
        raise StudyError(f"{path} is a folder, not a store: name the SQLite file in it with --store.")
    tidies = mode == "read" and not log_of(path).exists()
    db = _connect(path, _RIGHTS[mode])
    try:
        try:
            blank = _is_blank(db)
        except sqlite3.OperationalError as error:
            if mode != "read" or not error.sqlite_errorname.startswith(_NO_RIGHTS) or _has_log(path):
                raise
            # To read in WAL mode SQLite makes files beside the store, which it cannot in a folder that is read-only.
            # Without a log nobody is writing, so that it can be read as a file that does not change.
            db.close()
            db = _connect(path, "ro&immutable=1")
            blank = _is_blank(db)
        if blank and mode == "read":
            db.close()
            db = sqlite3.connect(":memory:", isolation_level=None)
            create(db)
            db.execute("PRAGMA query_only = ON")
            return db, tidies
        if blank and mode == "write":
            _use_wal(db)
            _create(db)
        _refuse_others(db, path)
        if mode != "read":
            _use_wal(db)
            db.execute("PRAGMA synchronous = NORMAL")  # in WAL mode a kill loses nothing, and files stay whole
            db.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        close_store(db, path, tidies)
        raise
    return db, tidies


def close_store(db: sqlite3.Connection, path: Path, tidies: bool) -> None:
    """Close a store's file.

    Args:
        db: The connection.
        path: The file.
        tidies: Whether it was only read and had no log beside it, and so should have none now.
    """
    db.close()
    if not tidies:
        return
    # To read in WAL mode SQLite makes -wal and -shm, and who may only read cannot take them away again. Who may
    # write does so when closing, unless another process has the file open; an empty -wal changes nothing in it.
    with suppress(sqlite3.Error, OSError):  # another process may have taken the -wal away meanwhile
        if not log_of(path).stat().st_size:
            with closing(_connect(path, "rw", 0)) as again:
                again.execute("PRAGMA schema_version").fetchone()


def log_of(path: Path) -> Path:
    """The file that holds what was written last: beside the store itself, where it is named by a link."""
    real = path.resolve()
    return real.with_name(f"{real.name}-wal")


def _has_log(path: Path) -> bool:
    log = log_of(path)
    return log.exists() and log.stat().st_size > 0


def _connect(path: Path, rights: str, timeout: float = BUSY_SECONDS) -> sqlite3.Connection:
    # An absolute address: no name, not even ":memory:", is then anything but a file.
    uri = f"{path.absolute().as_uri()}?mode={rights}"
    return sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)


def _is_blank(db: sqlite3.Connection) -> bool:
    """Whether nobody has used the file yet, neither we nor another program."""
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


def _create(db: sqlite3.Connection) -> None:
    with db:  # all tables or none
        db.execute("BEGIN IMMEDIATE")
        if _is_blank(db):  # else another process was faster
            create(db)
