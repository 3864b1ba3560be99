"""A short digest of each stored run, so that a bit that flips in a file is seen, and the run can be put right.

The digests lie in a table of their own, which is made with the first run that is added: stores of an earlier propreg
stay readable, here and there, and their runs simply have none.
"""

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from typing import Any

DIGESTS = "CREATE TABLE IF NOT EXISTS digests (key TEXT PRIMARY KEY, digest BLOB NOT NULL) WITHOUT ROWID"


def row_digest(row: Sequence[Any]) -> bytes:
    """Eight bytes of a row as :meth:`propreg.study.store.Store.rows` has it: who it is, its outcome and its batch.

    Example:
        >>> row_digest(["{}", 0, 1, 90, 100, 800, 1000, 12, 40, None, None, ""]).hex()
        '6c64c369cd23a7a8'
    """
    # Damage can turn a text into bytes, which JSON does not know.
    text = json.dumps(list(row), separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode()).digest()[:8]


def read_digests(db: sqlite3.Connection) -> dict[str, bytes]:
    """The digests of a store by key; none where it has no table of them."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'digests'").fetchone() is None:
        return {}
    return dict(db.execute("SELECT key, digest FROM digests").fetchall())
