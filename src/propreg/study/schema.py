"""The tables of a store, and its version."""

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
