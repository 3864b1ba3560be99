"""The tables of a store, and its version."""

import sqlite3
from collections import defaultdict
from contextlib import closing

APPLICATION = 0x50726567  # "Preg": tells a store from any other SQLite file
VERSION = 1

TABLES = """
CREATE TABLE cells (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE             -- canonical JSON, see propreg.study.run
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
    measures TEXT,                        -- canonical JSON of what else was measured
    batch TEXT NOT NULL,                  -- the batch it was trained in
    session INTEGER NOT NULL REFERENCES sessions (id)
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
"""


def create(db: sqlite3.Connection) -> None:
    """Make the tables of a store in a database that has none."""
    for statement in TABLES.split(";"):
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {VERSION}")


def missing(db: sqlite3.Connection) -> list[str]:
    """What a database lacks of a store's tables and their columns, in words.

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


def _columns(db: sqlite3.Connection) -> dict[str, set[str]]:
    found = defaultdict[str, set[str]](set)
    for table, name in db.execute(
        "SELECT tables.name, columns.name FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns"
        " WHERE tables.type = 'table'"
    ):
        found[table].add(name)
    return found
